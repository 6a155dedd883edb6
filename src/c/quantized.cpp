// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "runtime.hpp"

#include <KokkosNN/kokkosnn.h>
#include <KokkosNN/quantized.hpp>

#include <type_traits>

// Softmax and norms with results in 8 bits, in C.

namespace KokkosNN::C {
namespace {

using namespace KokkosNN::Impl;

/// The arguments of a call, in the order of QuantizedTensors; those of columns where the operator has them.
struct QuantizedGiven {
  const kokkosnn_tensor* x;
  const kokkosnn_tensor* y;
  const kokkosnn_tensor* scales;
  const kokkosnn_tensor* weight = nullptr;
  const kokkosnn_tensor* bias   = nullptr;
};

/// A weight or a bias of rows of x.
Tensor column_of(const char* function, const char* name, const kokkosnn_tensor* given, const Tensor& x) {
  const Tensor t = tensor_of(function, name, optional(given));
  if (!t.exists()) return t;
  require_rank(function, name, t, 1, 1);
  require_type(function, name, t, x.type, accumulator_of(x.type));
  return t;
}

Tensors tensors_of(const char* function, const QuantizedGiven& given, int axes) {
  using Is = QuantizedTensors;
  Tensors tensors;
  const Tensor x = tensor_of(function, "x", given.x);
  require_rank(function, "x", x, 1, max_rank);
  tensors[Is::x] = x;
  tensors[Is::y] = tensor_of(function, "y", Argument(given.y, Holds::codes, false));
  require_rank(function, "y", tensors[Is::y], x.rank, x.rank);
  const bool is_int8  = tensors[Is::y].is_signed;
  tensors[Is::scales] = tensor_of(function, "scales", is_int8 ? Argument(given.scales) : optional(given.scales));
  if (tensors[Is::scales].exists()) {
    require_rank(function, "scales", tensors[Is::scales], x.rank - axes, x.rank - axes);
    require_type(function, "scales", tensors[Is::scales], ElementType::f32, ElementType::f32);
  }
  tensors[Is::columns]     = column_of(function, "weight", given.weight, x);
  tensors[Is::columns + 1] = column_of(function, "bias", given.bias, x);
  return tensors;
}

template <RowOperator op, class Options>
kokkosnn_status run_quantized(const kokkosnn_exec* where, const QuantizedGiven& given, const Options* options) {
  constexpr const char* function = quantized_name<op>;
  return guarded([&] {
    const auto converted = options_of(function, options);
    int axes             = 1;
    if constexpr (requires { converted.axes; }) axes = converted.axes;
    const Tensors tensors = tensors_of(function, given, axes);
    on_instance(function, where, [&](const Exec& exec) {
      with_type(tensors[QuantizedTensors::x].type, [&]<class X>(std::type_identity<X>) {
        const bool is_float8 = !tensors[QuantizedTensors::y].is_signed;
        quantize_erased<QuantizedCall<Exec, op, X>>(function, exec, tensors, is_float8, converted);
      });
    });
  });
}

}  // namespace
}  // namespace KokkosNN::C

using KokkosNN::RowOperator;
using KokkosNN::C::run_quantized;

extern "C" {

kokkosnn_status kokkosnn_quantized_softmax(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                           const kokkosnn_tensor* y, const kokkosnn_tensor* scales,
                                           const kokkosnn_softmax_options* options) {
  return run_quantized<RowOperator::softmax>(exec, {x, y, scales}, options);
}

kokkosnn_status kokkosnn_quantized_rms_norm(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                            const kokkosnn_tensor* weight, const kokkosnn_tensor* y,
                                            const kokkosnn_tensor* scales, const kokkosnn_rms_norm_options* options) {
  return run_quantized<RowOperator::rms_norm>(exec, {x, y, scales, weight}, options);
}

kokkosnn_status kokkosnn_quantized_layer_norm(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                              const kokkosnn_tensor* weight, const kokkosnn_tensor* bias,
                                              const kokkosnn_tensor* y, const kokkosnn_tensor* scales,
                                              const kokkosnn_layer_norm_options* options) {
  return run_quantized<RowOperator::layer_norm>(exec, {x, y, scales, weight, bias}, options);
}
}
