// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "runtime.hpp"

#include <KokkosNN/add_norm.hpp>
#include <KokkosNN/column_sums.hpp>
#include <KokkosNN/cross_entropy.hpp>
#include <KokkosNN/gradients.hpp>
#include <KokkosNN/kokkosnn.h>
#include <KokkosNN/masked_softmax.hpp>
#include <KokkosNN/norm.hpp>
#include <KokkosNN/segmented.hpp>
#include <KokkosNN/softmax.hpp>

#include <Kokkos_Core.hpp>

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <type_traits>

// The operators of kokkosnn.h. A further operator of a family is a function at the end, a further family a Call.

namespace KokkosNN::C {
namespace {

using namespace KokkosNN::Impl;

// --- the kernels that the library holds compiled, by family and element types ---

/// Launches an operator on rows of X; `Second` is the second type of the families that have one.
template <OperatorFamily family, RowOperator op, class X, class Second>
struct CallOf;

template <RowOperator op, class X, class Y>
struct CallOf<OperatorFamily::forward, op, X, Y> : ViewCall<Exec, op, X, Y> {};
template <RowOperator op, class X, class Y>
struct CallOf<OperatorFamily::gradient, op, X, Y> : GradientCall<Exec, op, X, X, X> {};
template <RowOperator op, class X, class Lse>
struct CallOf<OperatorFamily::value_gradient, op, X, Lse> : GradientCall<Exec, op, X, Lse, X> {};
template <RowOperator op, class X, class Y>
struct CallOf<OperatorFamily::masked, op, X, Y> : MaskedCall<Exec, op, X, X> {};
template <RowOperator op, class X, class Y>
struct CallOf<OperatorFamily::masked_gradient, op, X, Y> : MaskedGradientCall<Exec, op, X, X, X> {};
template <RowOperator op, class X, class Y>
struct CallOf<OperatorFamily::cross_entropy, op, X, Y> : CrossEntropyCall<Exec, op, X, X> {};
template <RowOperator op, class X, class Y>
struct CallOf<OperatorFamily::soft_loss, op, X, Y> : SoftLossCall<Exec, op, X> {};
template <RowOperator op, class X, class Y>
struct CallOf<OperatorFamily::norm, op, X, Y> : OperandCall<Exec, op, X> {};
template <RowOperator op, class X, class Y>
struct CallOf<OperatorFamily::norm_gradient, op, X, Y> : OperandCall<Exec, op, X> {};
template <RowOperator op, class X, class Y>
struct CallOf<OperatorFamily::add_norm, op, X, Y> : OperandCall<Exec, op, X> {};
template <RowOperator op, class X, class Y>
struct CallOf<OperatorFamily::add_norm_gradient, op, X, Y> : OperandCall<Exec, op, X> {};

/// f(type) for the second type of a call on rows of X, where it may differ.
template <OperatorFamily family, class X, class F>
void with_second_type(const Tensors& tensors, const F& f) {
  constexpr bool is_forward = family == OperatorFamily::forward;
  if constexpr (is_forward && std::is_same_v<X, float>) {
    if (tensors[SoftmaxTensors::y].type == ElementType::f16) return f(std::type_identity<half_t>{});
    if (tensors[SoftmaxTensors::y].type == ElementType::bf16) return f(std::type_identity<bhalf_t>{});
  } else if constexpr (is_half<X> && (is_forward || family == OperatorFamily::value_gradient)) {
    const Tensor& second = tensors[is_forward ? int(SoftmaxTensors::y) : int(GradientTensors::dy)];
    if (second.type == ElementType::f32) return f(std::type_identity<float>{});
  }
  f(std::type_identity<X>{});
}

/// An operator on rows of any type: one body of a call, whose launch alone is compiled for each type.
template <RowOperator op>
struct AnyTypeCall {
  static constexpr OperatorFamily family = traits_of(op).family;
  using Arguments                        = typename CallOf<family, op, float, float>::Arguments;

  static void run(const Exec& exec, const Arguments& call) {
    with_type(call.tensors[0].type, [&]<class X>(std::type_identity<X>) {
      with_second_type<family, X>(call.tensors, [&]<class Second>(std::type_identity<Second>) {
        CallOf<family, op, X, Second>::run(exec, call);
      });
    });
  }
};

}  // namespace
}  // namespace KokkosNN::C

/// Each of its types is.
template <KokkosNN::RowOperator op>
inline constexpr bool KokkosNN::Impl::is_compiled<KokkosNN::C::AnyTypeCall<op>> = true;

namespace KokkosNN::C {
namespace {

// --- the bodies of the C functions ---

template <RowOperator op, class Options>
void run_erased(const kokkosnn_exec* where, const Tensors& tensors, const Options& options) {
  const CallersDevice device;
  const Exec exec = instance_for(to_string(op), where);
  call_erased<op, AnyTypeCall<op>>(exec, tensors, options);
}

/// An operator without a mask; arguments in the order of its operands.
template <RowOperator op, class Options>
kokkosnn_status run(const kokkosnn_exec* where, std::initializer_list<Argument> arguments, const Options* options) {
  return guarded([&] {
    const auto converted = options_of(to_string(op), options);
    int axes             = 1;
    if constexpr (requires { converted.axes; }) axes = converted.axes;
    run_erased<op>(where, tensors_of(op, arguments, axes), converted);
  });
}

/// A forward operator with a mask.
template <RowOperator op>
kokkosnn_status run_masked(const kokkosnn_exec* where, const kokkosnn_tensor* x, const kokkosnn_mask* mask,
                           const kokkosnn_tensor* y, const kokkosnn_masked_softmax_options* options) {
  return guarded([&] {
    const Tensors tensors = tensors_of(op, {x, y});
    run_erased<op>(where, tensors, masked_options(to_string(op), mask, options, tensors[0], nullptr));
  });
}

/// The gradient by x of one; x is read under a softcap.
template <RowOperator op>
kokkosnn_status run_masked_gradient(const kokkosnn_exec* where, const kokkosnn_tensor* x, const kokkosnn_tensor* y,
                                    const kokkosnn_tensor* dy, const kokkosnn_mask* mask, const kokkosnn_tensor* dx,
                                    const kokkosnn_masked_softmax_options* options) {
  return guarded([&] {
    const Tensors tensors = tensors_of(op, {y, dx, dy});
    const Tensor logits   = tensor_of(to_string(op), "x", optional(x));
    run_erased<op>(where, tensors, masked_options(to_string(op), mask, options, tensors[0], &logits));
  });
}

/// The gradient of logsumexp: lse and dlse hold one type.
void require_one_type(const char* function, const Tensors& tensors) {
  const Tensor& lse = tensors[GradientTensors::lse];
  if (lse.type == tensors[GradientTensors::dy].type) return;
  throw std::invalid_argument("KokkosNN::" + std::string(function) +
                              ": lse and dlse must hold the same type, but hold " + to_string(lse.type) + " and " +
                              to_string(tensors[GradientTensors::dy].type));
}

/// A gradient with respect to a bias, or, `to_heads`, to sinks.
kokkosnn_status run_mask_sums(const char* function, const kokkosnn_exec* where, const kokkosnn_tensor* y_given,
                              const kokkosnn_tensor* dy_given, const kokkosnn_mask* mask_given, const char* result_name,
                              const kokkosnn_tensor* result_given, bool to_heads) {
  return guarded([&] {
    const Tensor y      = tensor_of(function, "y", y_given);
    const Tensor dy     = tensor_of(function, "dy", dy_given);
    const Tensor result = tensor_of(function, result_name, result_given);
    require_mask_sums(function, y, dy, result_name, result, to_heads);
    const MaskTensors mask = mask_of(function, mask_given, y);
    on_instance(function, where, [&](const Exec& exec) {
      with_type(y.type, [&]<class Y>(std::type_identity<Y>) {
        run_mask_sums_erased<Exec, Y, Y>(function, exec, y, dy, mask, result, to_heads);
      });
    });
  });
}

/// Sums over all axes of x but one.
kokkosnn_status run_column_sums(const kokkosnn_exec* where, const kokkosnn_tensor* x, const kokkosnn_tensor* y,
                                const kokkosnn_column_sums_options* options) {
  constexpr const char* function = "column_sums";
  return guarded([&] {
    const ColumnSumsOptions converted = options_of(function, options);
    Tensors tensors;
    tensors[ColumnSumsTensors::x] = tensor_of(function, "x", x);
    tensors[ColumnSumsTensors::y] = tensor_of(function, "y", y);
    const ElementType type        = tensors[ColumnSumsTensors::x].type;
    require_rank(function, "x", tensors[ColumnSumsTensors::x], 1, max_rank);
    require_rank(function, "y", tensors[ColumnSumsTensors::y], 1, 1);
    require_type(function, "y", tensors[ColumnSumsTensors::y], type, accumulator_of(type));
    on_instance(function, where, [&](const Exec& exec) {
      with_type(type, [&]<class T>(std::type_identity<T>) { column_sums_erased<T>(exec, tensors, converted); });
    });
  });
}

/// A loss from log-sum-exps; its extents are checked with those of a C++ call.
kokkosnn_status run_cross_entropy_from_lse(const kokkosnn_exec* where, const kokkosnn_tensor* lse,
                                           const kokkosnn_tensor* label_logits, const kokkosnn_tensor* labels,
                                           const kokkosnn_tensor* loss, const kokkosnn_tensor* weights,
                                           const kokkosnn_cross_entropy_options* options) {
  constexpr const char* function = "cross_entropy_from_lse";
  using Is                       = LossOfLseTensors;
  return guarded([&] {
    const CrossEntropyOptions converted = options_of(function, options);
    Tensors tensors;
    tensors[Is::lse]          = tensor_of(function, "lse", lse);
    tensors[Is::label_logits] = tensor_of(function, "label_logits", label_logits);
    tensors[Is::labels]       = tensor_of(function, "labels", integers(labels));
    tensors[Is::loss]         = tensor_of(function, "loss", loss);
    tensors[Is::weights]      = tensor_of(function, "weights", optional(weights));
    const ElementType type    = tensors[Is::lse].type;
    require_rank(function, "lse", tensors[Is::lse], 0, max_rank - 1);
    require_type(function, "lse", tensors[Is::lse], ElementType::f32, ElementType::f64);
    require_type(function, "label_logits", tensors[Is::label_logits], type, type);
    require_type(function, "loss", tensors[Is::loss], type, type);
    if (tensors[Is::weights].exists()) {
      require_rank(function, "weights", tensors[Is::weights], 1, 1);
      require_type(function, "weights", tensors[Is::weights], type, type);
    }
    on_instance(function, where, [&](const Exec& exec) {
      if (type == ElementType::f64) return LossOfLseCall<Exec, double>::run(exec, tensors, converted);
      LossOfLseCall<Exec, float>::run(exec, tensors, converted);
    });
  });
}

/// Takes row offsets as an index, if the options say so.
void set_segments(const char* function, SegmentedArguments& arguments, const kokkosnn_segmented_options* given) {
  arguments.tensors.segments  = segments_of(function, given);
  arguments.tensors.has_index = arguments.tensors.segments != 0;
}

/// A function on ragged rows; dy is null where the operator has none.
template <RowOperator op>
kokkosnn_status run_segmented(const kokkosnn_exec* where, const kokkosnn_tensor* x, const kokkosnn_tensor* dy,
                              const kokkosnn_tensor* row_offsets, const kokkosnn_tensor* y,
                              const kokkosnn_segmented_options* given) {
  return guarded([&] {
    const std::string function     = std::string("segmented_") + to_string(op);
    const SegmentedOptions options = options_of(function.c_str(), given);
    SegmentedArguments arguments{segmented_tensors(function.c_str(), op, x, dy, row_offsets, y), {}};
    arguments.offsets = offsets_of(arguments.tensors.offsets);
    set_segments(function.c_str(), arguments, given);
    on_instance(function.c_str(), where, [&](const Exec& exec) {
      if (!check_arguments(exec, function.c_str(), op, arguments, options)) return;
      with_type(arguments.tensors.x.type, [&]<class T>(std::type_identity<T>) {
        if (arguments.tensors.has_index) {
          SegmentIndexCall<Exec, T>::run(exec, op, arguments, {});
        } else if constexpr (is_gradient(op)) {
          SegmentedGradientCall<Exec, op, T>::run(exec, arguments);
        } else {
          SegmentedCall<Exec, op, T, T>::run(exec, arguments);
        }
      });
    });
  });
}

/// The gradient of a log-sum-exp of ragged rows.
kokkosnn_status run_segmented_lse_gradient(const kokkosnn_exec* where, const kokkosnn_tensor* x,
                                           const kokkosnn_tensor* lse, const kokkosnn_tensor* dlse,
                                           const kokkosnn_tensor* row_offsets, const kokkosnn_tensor* dx,
                                           const kokkosnn_segmented_options* given) {
  constexpr const char* function = "segmented_logsumexp_backward";
  return guarded([&] {
    const SegmentedOptions options = options_of(function, given);
    SegmentedArguments arguments{{tensor_of(function, "values", x),
                                  tensor_of(function, "dx", dx),
                                  {},
                                  tensor_of(function, "row_offsets", integers(row_offsets))},
                                 {}};
    const Tensor& values = arguments.tensors.x;
    require_rank(function, "values", values, 1, 2);
    require_rank(function, "row_offsets", arguments.tensors.offsets, 1, 1);
    require_rank(function, "dx", arguments.tensors.y, values.rank, values.rank);
    require_type(function, "dx", arguments.tensors.y, values.type, values.type);
    arguments.offsets = offsets_of(arguments.tensors.offsets);
    set_segments(function, arguments, given);
    const SegmentedLse given_lse{tensor_of(function, "lse", lse), tensor_of(function, "dlse", dlse)};
    require_rank(function, "lse", given_lse.lse, values.rank, values.rank);
    require_rank(function, "dlse", given_lse.dlse, values.rank, values.rank);
    require_type(function, "lse", given_lse.lse, values.type, values.type);
    require_type(function, "dlse", given_lse.dlse, values.type, values.type);
    on_instance(function, where, [&](const Exec& exec) {
      if (!check_lse_gradient(exec, function, arguments, given_lse, options)) return;
      with_type(values.type, [&]<class T>(std::type_identity<T>) {
        if (arguments.tensors.has_index) {
          SegmentIndexCall<Exec, T>::run(exec, RowOperator::logsumexp_backward, arguments, given_lse);
        } else {
          SegmentedLseGradientCall<Exec, T>::run(exec, arguments, given_lse);
        }
      });
    });
  });
}

}  // namespace
}  // namespace KokkosNN::C

using KokkosNN::RowOperator;
using KokkosNN::C::absent;
using KokkosNN::C::classes;
using KokkosNN::C::guarded;
using KokkosNN::C::integers;
using KokkosNN::C::optional;
using KokkosNN::C::run;
using KokkosNN::C::run_segmented;

using Where  = const kokkosnn_exec*;
using Tensor = const kokkosnn_tensor*;
using Mask   = const kokkosnn_mask*;

extern "C" {

// --- softmax.hpp ---

kokkosnn_status kokkosnn_softmax(Where exec, Tensor x, Tensor y, const kokkosnn_softmax_options* options) {
  return run<RowOperator::softmax>(exec, {x, y}, options);
}

kokkosnn_status kokkosnn_log_softmax(Where exec, Tensor x, Tensor y, const kokkosnn_softmax_options* options) {
  return run<RowOperator::log_softmax>(exec, {x, y}, options);
}

kokkosnn_status kokkosnn_logsumexp(Where exec, Tensor x, Tensor lse, const kokkosnn_softmax_options* options) {
  return run<RowOperator::logsumexp>(exec, {x, lse}, options);
}

// --- gradients.hpp ---

kokkosnn_status kokkosnn_softmax_backward(Where exec, Tensor y, Tensor dy, Tensor dx,
                                          const kokkosnn_softmax_options* options) {
  return run<RowOperator::softmax_backward>(exec, {y, dx, dy}, options);
}

kokkosnn_status kokkosnn_log_softmax_backward(Where exec, Tensor y, Tensor dy, Tensor dx,
                                              const kokkosnn_softmax_options* options) {
  return run<RowOperator::log_softmax_backward>(exec, {y, dx, dy}, options);
}

kokkosnn_status kokkosnn_logsumexp_backward(Where exec, Tensor x, Tensor lse, Tensor dlse, Tensor dx,
                                            const kokkosnn_softmax_options* options) {
  constexpr RowOperator op = RowOperator::logsumexp_backward;
  return guarded([&] {
    const auto converted = KokkosNN::C::options_of(to_string(op), options);
    const auto tensors   = KokkosNN::C::tensors_of(op, {x, dx, dlse, lse}, converted.axes);
    KokkosNN::C::require_one_type(to_string(op), tensors);
    KokkosNN::C::run_erased<op>(exec, tensors, converted);
  });
}

// --- masked_softmax.hpp ---

kokkosnn_status kokkosnn_masked_softmax(Where exec, Tensor x, Mask mask, Tensor y,
                                        const kokkosnn_masked_softmax_options* options) {
  return KokkosNN::C::run_masked<RowOperator::masked_softmax>(exec, x, mask, y, options);
}

kokkosnn_status kokkosnn_masked_log_softmax(Where exec, Tensor x, Mask mask, Tensor y,
                                            const kokkosnn_masked_softmax_options* options) {
  return KokkosNN::C::run_masked<RowOperator::masked_log_softmax>(exec, x, mask, y, options);
}

kokkosnn_status kokkosnn_masked_logsumexp(Where exec, Tensor x, Mask mask, Tensor lse,
                                          const kokkosnn_masked_softmax_options* options) {
  return KokkosNN::C::run_masked<RowOperator::masked_logsumexp>(exec, x, mask, lse, options);
}

kokkosnn_status kokkosnn_masked_softmax_backward(Where exec, Tensor x, Tensor y, Tensor dy, Mask mask, Tensor dx,
                                                 const kokkosnn_masked_softmax_options* options) {
  return KokkosNN::C::run_masked_gradient<RowOperator::masked_softmax_backward>(exec, x, y, dy, mask, dx, options);
}

kokkosnn_status kokkosnn_masked_log_softmax_backward(Where exec, Tensor x, Tensor y, Tensor dy, Mask mask, Tensor dx,
                                                     const kokkosnn_masked_softmax_options* options) {
  return KokkosNN::C::run_masked_gradient<RowOperator::masked_log_softmax_backward>(exec, x, y, dy, mask, dx, options);
}

kokkosnn_status kokkosnn_masked_softmax_bias_backward(Where exec, Tensor y, Tensor dy, Mask mask, Tensor dbias) {
  return KokkosNN::C::run_mask_sums("masked_softmax_bias_backward", exec, y, dy, mask, "dbias", dbias, false);
}

kokkosnn_status kokkosnn_masked_softmax_sinks_backward(Where exec, Tensor y, Tensor dy, Mask mask, Tensor dsinks) {
  return KokkosNN::C::run_mask_sums("masked_softmax_sinks_backward", exec, y, dy, mask, "dsinks", dsinks, true);
}

// --- cross_entropy.hpp ---

kokkosnn_status kokkosnn_cross_entropy(Where exec, Tensor logits, Tensor labels, Tensor loss, Tensor lse,
                                       Tensor weights, Tensor predicted,
                                       const kokkosnn_cross_entropy_options* options) {
  return run<RowOperator::cross_entropy>(
      exec, {logits, absent, integers(labels), loss, optional(lse), optional(weights), classes(predicted)}, options);
}

kokkosnn_status kokkosnn_cross_entropy_backward(Where exec, Tensor logits, Tensor labels, Tensor lse, Tensor dloss,
                                                Tensor dlogits, Tensor weights,
                                                const kokkosnn_cross_entropy_options* options) {
  return run<RowOperator::cross_entropy_backward>(
      exec, {logits, dlogits, integers(labels), dloss, lse, optional(weights)}, options);
}

kokkosnn_status kokkosnn_cross_entropy_with_gradient(Where exec, Tensor logits, Tensor labels, Tensor loss,
                                                     Tensor dlogits, Tensor lse, Tensor weights, Tensor predicted,
                                                     const kokkosnn_cross_entropy_options* options) {
  return run<RowOperator::cross_entropy_with_gradient>(
      exec, {logits, dlogits, integers(labels), loss, optional(lse), optional(weights), classes(predicted)}, options);
}

kokkosnn_status kokkosnn_soft_cross_entropy(Where exec, Tensor logits, Tensor targets, Tensor loss, Tensor lse,
                                            Tensor weights, const kokkosnn_soft_cross_entropy_options* options) {
  return run<RowOperator::soft_cross_entropy>(exec, {logits, absent, targets, optional(weights), loss, optional(lse)},
                                              options);
}

kokkosnn_status kokkosnn_soft_cross_entropy_with_gradient(Where exec, Tensor logits, Tensor targets, Tensor loss,
                                                          Tensor dlogits, Tensor lse, Tensor weights,
                                                          const kokkosnn_soft_cross_entropy_options* options) {
  return run<RowOperator::soft_cross_entropy_with_gradient>(
      exec, {logits, dlogits, targets, optional(weights), loss, optional(lse)}, options);
}

kokkosnn_status kokkosnn_cross_entropy_from_lse(Where exec, Tensor lse, Tensor label_logits, Tensor labels, Tensor loss,
                                                Tensor weights, const kokkosnn_cross_entropy_options* options) {
  return KokkosNN::C::run_cross_entropy_from_lse(exec, lse, label_logits, labels, loss, weights, options);
}

// --- norm.hpp ---

kokkosnn_status kokkosnn_rms_norm(Where exec, Tensor x, Tensor weight, Tensor y, Tensor rstd,
                                  const kokkosnn_rms_norm_options* options) {
  return run<RowOperator::rms_norm>(exec, {x, y, optional(weight), optional(rstd)}, options);
}

kokkosnn_status kokkosnn_layer_norm(Where exec, Tensor x, Tensor weight, Tensor bias, Tensor y, Tensor mean,
                                    Tensor rstd, const kokkosnn_layer_norm_options* options) {
  return run<RowOperator::layer_norm>(exec, {x, y, optional(weight), optional(bias), optional(mean), optional(rstd)},
                                      options);
}

kokkosnn_status kokkosnn_rms_norm_backward(Where exec, Tensor x, Tensor weight, Tensor rstd, Tensor dy, Tensor dx,
                                           Tensor dweight, const kokkosnn_rms_norm_options* options) {
  return run<RowOperator::rms_norm_backward>(exec, {x, dx, dy, optional(weight), rstd, optional(dweight)}, options);
}

kokkosnn_status kokkosnn_layer_norm_backward(Where exec, Tensor x, Tensor weight, Tensor mean, Tensor rstd, Tensor dy,
                                             Tensor dx, Tensor dweight, Tensor dbias,
                                             const kokkosnn_layer_norm_options* options) {
  return run<RowOperator::layer_norm_backward>(
      exec, {x, dx, dy, optional(weight), mean, rstd, optional(dweight), optional(dbias)}, options);
}

// --- add_norm.hpp ---

kokkosnn_status kokkosnn_add_rms_norm(Where exec, Tensor x, Tensor residual, Tensor weight, Tensor y, Tensor sum,
                                      Tensor rstd, const kokkosnn_rms_norm_options* options) {
  return run<RowOperator::add_rms_norm>(exec, {x, y, residual, optional(weight), optional(rstd), sum}, options);
}

kokkosnn_status kokkosnn_add_layer_norm(Where exec, Tensor x, Tensor residual, Tensor weight, Tensor bias, Tensor y,
                                        Tensor sum, Tensor mean, Tensor rstd,
                                        const kokkosnn_layer_norm_options* options) {
  return run<RowOperator::add_layer_norm>(
      exec, {x, y, residual, optional(weight), optional(bias), optional(mean), optional(rstd), sum}, options);
}

kokkosnn_status kokkosnn_add_rms_norm_backward(Where exec, Tensor sum, Tensor weight, Tensor rstd, Tensor dy,
                                               Tensor dsum, Tensor dx, Tensor dweight,
                                               const kokkosnn_rms_norm_options* options) {
  return run<RowOperator::add_rms_norm_backward>(exec, {sum, dx, dy, dsum, optional(weight), rstd, optional(dweight)},
                                                 options);
}

kokkosnn_status kokkosnn_add_layer_norm_backward(Where exec, Tensor sum, Tensor weight, Tensor mean, Tensor rstd,
                                                 Tensor dy, Tensor dsum, Tensor dx, Tensor dweight, Tensor dbias,
                                                 const kokkosnn_layer_norm_options* options) {
  return run<RowOperator::add_layer_norm_backward>(
      exec, {sum, dx, dy, dsum, optional(weight), mean, rstd, optional(dweight), optional(dbias)}, options);
}

// --- column_sums.hpp ---

kokkosnn_status kokkosnn_column_sums(Where exec, Tensor x, Tensor y, const kokkosnn_column_sums_options* options) {
  return KokkosNN::C::run_column_sums(exec, x, y, options);
}

// --- segmented.hpp ---

kokkosnn_status kokkosnn_segmented_softmax(Where exec, Tensor values, Tensor row_offsets, Tensor y,
                                           const kokkosnn_segmented_options* options) {
  return run_segmented<RowOperator::softmax>(exec, values, nullptr, row_offsets, y, options);
}

kokkosnn_status kokkosnn_segmented_log_softmax(Where exec, Tensor values, Tensor row_offsets, Tensor y,
                                               const kokkosnn_segmented_options* options) {
  return run_segmented<RowOperator::log_softmax>(exec, values, nullptr, row_offsets, y, options);
}

kokkosnn_status kokkosnn_segmented_logsumexp(Where exec, Tensor values, Tensor row_offsets, Tensor lse,
                                             const kokkosnn_segmented_options* options) {
  return run_segmented<RowOperator::logsumexp>(exec, values, nullptr, row_offsets, lse, options);
}

kokkosnn_status kokkosnn_segmented_softmax_backward(Where exec, Tensor y, Tensor dy, Tensor row_offsets, Tensor dx,
                                                    const kokkosnn_segmented_options* options) {
  return run_segmented<RowOperator::softmax_backward>(exec, y, dy, row_offsets, dx, options);
}

kokkosnn_status kokkosnn_segmented_log_softmax_backward(Where exec, Tensor y, Tensor dy, Tensor row_offsets, Tensor dx,
                                                        const kokkosnn_segmented_options* options) {
  return run_segmented<RowOperator::log_softmax_backward>(exec, y, dy, row_offsets, dx, options);
}

kokkosnn_status kokkosnn_segmented_logsumexp_backward(Where exec, Tensor values, Tensor lse, Tensor dlse,
                                                      Tensor row_offsets, Tensor dx,
                                                      const kokkosnn_segmented_options* options) {
  return KokkosNN::C::run_segmented_lse_gradient(exec, values, lse, dlse, row_offsets, dx, options);
}
}
