// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "runtime.hpp"

#include <KokkosNN/kokkosnn.h>
#include <KokkosNN/rms_norm_rope.hpp>
#include <KokkosNN/rope.hpp>

#include <type_traits>

// The rotary position embedding, its gradient, and RMSNorm with it in C.

namespace KokkosNN::C {
namespace {

using namespace KokkosNN::Impl;

RopeOptions options_of(const char* function, const kokkosnn_rope_options* options) {
  static_assert(static_cast<int>(RopeForm::interleaved) == KOKKOSNN_ROPE_INTERLEAVED);
  const auto given = read(function, "rope options", options, kokkosnn_rope_options KOKKOSNN_ROPE_OPTIONS_INIT);
  return {.form            = enumerator(function, "form", given.form, RopeForm::interleaved),
          .rotary_dims     = given.rotary_dims,
          .sequence_axis   = given.sequence_axis,
          .position_offset = given.position_offset,
          .theta           = given.theta,
          .position_scale  = given.position_scale,
          .check_positions = given.check_positions != 0};
}

/// A table of cosines or sines, if there is one.
Tensor table_of(const char* function, const char* name, const kokkosnn_tensor* given, const Tensor& x) {
  const Tensor t = tensor_of(function, name, optional(given));
  if (!t.exists()) return t;
  require_rank(function, name, t, 2, 2);
  require_type(function, name, t, accumulator_of(x.type), accumulator_of(x.type));
  return t;
}

/// Positions, if there are any: a row of them, or one for each index of the batch.
Tensor positions_of(const char* function, const kokkosnn_tensor* given, const Tensor& x) {
  const Tensor t = tensor_of(function, "positions", Argument(given, Holds::integers, true));
  if (!t.exists()) return t;
  require_rank(function, "positions", t, 1, x.rank >= 3 ? 2 : 1);
  if (!t.is_signed || t.element_bytes < 4) {
    (ArgumentError(function) << "positions must hold i32 or i64").raise();
  }
  return t;
}

/// The tensors of a call; ranks and types are checked.
RopeTensors tensors_of(const char* function, const char* x_name, const kokkosnn_tensor* x_given,
                       const kokkosnn_tensor* cos, const kokkosnn_tensor* sin, const char* y_name,
                       const kokkosnn_tensor* y_given, const kokkosnn_tensor* positions) {
  const Tensor x = tensor_of(function, x_name, x_given);
  require_rank(function, x_name, x, 2, 4);
  const Tensor y = tensor_of(function, y_name, y_given);
  require_rank(function, y_name, y, x.rank, x.rank);
  require_type(function, y_name, y, x.type, x.type);
  const RopeTensors tensors{x, y, table_of(function, "cos", cos, x), table_of(function, "sin", sin, x),
                            positions_of(function, positions, x)};
  if (tensors.cos.exists() != tensors.sin.exists()) {
    (ArgumentError(function) << (tensors.cos.exists() ? "sin" : "cos") << " is missing beside the other table").raise();
  }
  return tensors;
}

/// rope (`direction` 1) or rope_backward (-1), whose x is dy and whose y is dx.
kokkosnn_status run_rope(int direction, const kokkosnn_exec* where, const kokkosnn_tensor* x_given,
                         const kokkosnn_tensor* cos, const kokkosnn_tensor* sin, const kokkosnn_tensor* y_given,
                         const kokkosnn_tensor* positions, const kokkosnn_rope_options* options) {
  const bool is_forward      = direction > 0;
  const char* const function = is_forward ? "rope" : "rope_backward";
  const char* const x_name   = is_forward ? "x" : "dy";
  const char* const y_name   = is_forward ? "y" : "dx";
  return guarded([&] {
    const RopeOptions converted = options_of(function, options);
    const RopeTensors tensors   = tensors_of(function, x_name, x_given, cos, sin, y_name, y_given, positions);
    on_instance(function, where, [&](const Exec& exec) {
      const RopeLayout layout = normalise_rope(function, x_name, y_name, tensors, converted);
      if (layout.elements() == 0) return;
      with_type(tensors.x.type, [&]<class T>(std::type_identity<T>) {
        RopeCall<Exec, T>::run(exec, {function, tensors, layout, converted, direction});
      });
    });
  });
}

RmsNormRopeOptions options_of(const char* function, const kokkosnn_rms_norm_rope_options* options) {
  const auto given = read(function, "options of rms_norm_rope", options,
                          kokkosnn_rms_norm_rope_options KOKKOSNN_RMS_NORM_ROPE_OPTIONS_INIT);
  return {.epsilon       = given.epsilon,
          .weight_offset = given.weight_offset,
          .rope          = {.form            = enumerator(function, "form", given.form, RopeForm::interleaved),
                            .rotary_dims     = given.rotary_dims,
                            .sequence_axis   = given.sequence_axis,
                            .position_offset = given.position_offset,
                            .theta           = given.theta,
                            .position_scale  = given.position_scale,
                            .check_positions = given.check_positions != 0}};
}

/// A weight, if there is one: an element a column, or one a head and column.
Tensor weight_of(const char* function, const kokkosnn_tensor* given, const Tensor& x) {
  const Tensor t = tensor_of(function, "weight", optional(given));
  if (!t.exists()) return t;
  require_rank(function, "weight", t, 1, x.rank >= 3 ? 2 : 1);
  require_type(function, "weight", t, x.type, accumulator_of(x.type));
  return t;
}

}  // namespace
}  // namespace KokkosNN::C

extern "C" {

kokkosnn_status kokkosnn_rope(const kokkosnn_exec* exec, const kokkosnn_tensor* x, const kokkosnn_tensor* cos,
                              const kokkosnn_tensor* sin, const kokkosnn_tensor* y, const kokkosnn_tensor* positions,
                              const kokkosnn_rope_options* options) {
  return KokkosNN::C::run_rope(1, exec, x, cos, sin, y, positions, options);
}

kokkosnn_status kokkosnn_rope_backward(const kokkosnn_exec* exec, const kokkosnn_tensor* dy, const kokkosnn_tensor* cos,
                                       const kokkosnn_tensor* sin, const kokkosnn_tensor* dx,
                                       const kokkosnn_tensor* positions, const kokkosnn_rope_options* options) {
  return KokkosNN::C::run_rope(-1, exec, dy, cos, sin, dx, positions, options);
}

kokkosnn_status kokkosnn_rms_norm_rope(const kokkosnn_exec* exec, const kokkosnn_tensor* x,
                                       const kokkosnn_tensor* weight, const kokkosnn_tensor* cos,
                                       const kokkosnn_tensor* sin, const kokkosnn_tensor* y,
                                       const kokkosnn_tensor* positions,
                                       const kokkosnn_rms_norm_rope_options* options) {
  using namespace KokkosNN::C;
  constexpr const char* function = "rms_norm_rope";
  return guarded([&] {
    const KokkosNN::RmsNormRopeOptions converted = options_of(function, options);
    const RopeTensors tensors                    = tensors_of(function, "x", x, cos, sin, "y", y, positions);
    const Tensor of_weight                       = weight_of(function, weight, tensors.x);
    on_instance(function, exec, [&](const Exec& instance) {
      const RopeLayout layout = normalise_rms_norm_rope(function, tensors, of_weight, converted);
      if (layout.elements() == 0) return;
      with_type(tensors.x.type, [&]<class T>(std::type_identity<T>) {
        RmsNormRopeCall<Exec, T>::run(instance, {function, tensors, of_weight, layout, converted});
      });
    });
  });
}
}
