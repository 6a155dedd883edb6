// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "runtime.hpp"

#include <KokkosNN/kokkosnn.h>
#include <KokkosNN/matmul.hpp>

#include <type_traits>

// Matrix products in C: those without an epilogue, on tensors of one type.

namespace KokkosNN::C {
namespace {

using namespace KokkosNN::Impl;

kokkosnn_matmul_options given_options(const char* function, const kokkosnn_matmul_options* options) {
  return read(function, "matmul options", options, kokkosnn_matmul_options KOKKOSNN_MATMUL_OPTIONS_INIT);
}
MatmulOptions options_of(const char* function, const kokkosnn_matmul_options& given) {
  return {.alpha       = given.alpha,
          .beta        = given.beta,
          .precision   = precision_of(function, given.precision),
          .determinism = determinism_of(function, given.determinism),
          .provider    = enumerator(function, "provider", given.provider, MatmulProvider::vendor)};
}

MatmulOperands operands_of(const char* function, const kokkosnn_tensor* a, const kokkosnn_tensor* b,
                           const kokkosnn_tensor* c, const char* name_of_c = "c") {
  MatmulOperands operands{function, MatmulTensors::inputs, {}, {}};
  const auto set = [&](int number, const char* name, const kokkosnn_tensor* given) {
    operands.name[number]   = name;
    operands.tensor[number] = tensor_of(function, name, given);
  };
  set(MatmulTensors::a, "a", a);
  set(MatmulTensors::b, "b", b);
  set(MatmulTensors::c, name_of_c, c);
  const Tensor& first  = operands.tensor[MatmulTensors::a];
  const Tensor& second = operands.tensor[MatmulTensors::b];
  const Tensor& result = operands.tensor[MatmulTensors::c];
  require_rank(function, name_of_c, result, 2, max_rank);
  require_rank(function, "a", first, 2, result.rank);
  require_rank(function, "b", second, 2, result.rank);
  require_type(function, "b", second, first.type, first.type);
  require_type(function, name_of_c, result, first.type, first.type);
  return operands;
}

/// Integers that map rows, if they are given.
Tensor row_map_of(const char* function, const char* name, const kokkosnn_tensor* given) {
  const Tensor t = tensor_of(function, name, {given, Holds::integers, true});
  if (given != nullptr) require_rank(function, name, t, 1, 1);
  return t;
}

/// A gradient of one of the operands, if it is wanted.
Tensor gradient_of(const MatmulOperands& forward, int number, const char* name, const kokkosnn_tensor* given) {
  const Tensor t = tensor_of(forward.function, name, optional(given));
  if (given != nullptr) {
    require_type(forward.function, name, t, forward.tensor[number].type, forward.tensor[number].type);
  }
  return t;
}

}  // namespace
}  // namespace KokkosNN::C

using namespace KokkosNN::C;
using namespace KokkosNN::Impl;

extern "C" {

kokkosnn_status kokkosnn_matmul(const kokkosnn_exec* where, const kokkosnn_tensor* a, const kokkosnn_tensor* b,
                                const kokkosnn_tensor* c, const kokkosnn_matmul_options* options) {
  constexpr const char* function = "matmul";
  return guarded([&] {
    const kokkosnn_matmul_options given     = given_options(function, options);
    const KokkosNN::MatmulOptions converted = options_of(function, given);
    MatmulOperands operands                 = KokkosNN::C::operands_of(function, a, b, c);
    operands.rows                           = row_map_of(function, "rows", given.rows);
    operands.row_offsets                    = row_map_of(function, "row_offsets", given.row_offsets);
    on_instance(function, where, [&](const Exec& exec) {
      run_matmul(operands, normalise(operands), converted, [&](const MatmulArguments& call) {
        with_type(operands.tensor[MatmulTensors::a].type,
                  [&]<class T>(std::type_identity<T>) { MatmulCall<Exec, T>::run(exec, call); });
      });
    });
  });
}

kokkosnn_status kokkosnn_matmul_backward(const kokkosnn_exec* where, const kokkosnn_tensor* dc,
                                         const kokkosnn_tensor* a, const kokkosnn_tensor* b, const kokkosnn_tensor* da,
                                         const kokkosnn_tensor* db, const kokkosnn_matmul_options* options) {
  constexpr const char* function = "matmul_backward";
  return guarded([&] {
    const kokkosnn_matmul_options given     = given_options(function, options);
    const KokkosNN::MatmulOptions converted = options_of(function, given);
    if (given.rows != nullptr || given.row_offsets != nullptr) {
      (ArgumentError(function) << "rows and row_offsets must be null: gradients have none").raise();
    }
    const MatmulOperands forward = KokkosNN::C::operands_of(function, a, b, dc, "dc");
    const Tensor to_a            = gradient_of(forward, MatmulTensors::a, "da", da);
    const Tensor to_b            = gradient_of(forward, MatmulTensors::b, "db", db);
    on_instance(function, where, [&](const Exec& exec) {
      with_type(forward.tensor[MatmulTensors::a].type, [&]<class T>(std::type_identity<T>) {
        matmul_backward_erased<T>(exec, converted, forward, da == nullptr ? nullptr : &to_a,
                                  db == nullptr ? nullptr : &to_b);
      });
    });
  });
}
}
