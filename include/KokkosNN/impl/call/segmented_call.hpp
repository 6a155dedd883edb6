// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_SEGMENTED_CALL_HPP
#define KOKKOSNN_IMPL_CALL_SEGMENTED_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/instantiations/segmented.hpp>
#include <KokkosNN/impl/call/compiled_segmented_calls.hpp>
#include <KokkosNN/impl/call/segmented_plan.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// The body of a function on ragged rows: check what the compiler can see, then the arguments, launch.

namespace KokkosNN::Impl {

/// Row offsets of a View, erased.
inline RowOffsets offsets_of(const Tensor& row_offsets) {
  return {row_offsets.data, row_offsets.extent[0] <= 1 ? 1 : row_offsets.stride[0], row_offsets.element_bytes,
          row_offsets.is_signed};
}

/// Checks the arguments of a call. False where there is nothing to write.
template <class Exec, class Options>
bool check_arguments(const Exec& exec, const char* function, RowOperator op, SegmentedArguments& arguments,
                     const Options& options) {
  const SegmentedTensors& tensors = arguments.tensors;
  validate_segmented(function, op, tensors, options.scale);
  arguments.elements   = tensors.x.extent[0];
  arguments.rows       = tensors.offsets.extent[0] - 1;
  arguments.scale      = options.scale;
  arguments.masked_row = options.masked_row;
  if (options.check_offsets) {
    OffsetsCheck<Exec>::run(exec, function, arguments.offsets, arguments.rows, arguments.elements);
  }
  return arguments.rows > 0 && tensors.heads() > 0 && (arguments.elements > 0 || op == RowOperator::logsumexp);
}

template <RowOperator op, class Exec, class XView, class OffsetsView, class YView, class Options>
void segmented_call(const Exec& exec, const char* function, const XView& values, const OffsetsView& row_offsets,
                    const YView& y, const Options& options) {
  using X = typename XView::non_const_value_type;
  using Y = typename YView::non_const_value_type;
  require_kernels<SegmentedCall<Exec, op, X, Y>>();
  SegmentedArguments arguments{{tensor_of(values), tensor_of(y), {}, tensor_of(row_offsets)},
                               offsets_of(tensor_of(row_offsets))};
  if (!check_arguments(exec, function, op, arguments, options)) return;
  SegmentedCall<Exec, op, X, Y>::run(exec, arguments);
}

template <RowOperator op, class Exec, class YView, class DyView, class OffsetsView, class DxView, class Options>
void segmented_gradient_call(const Exec& exec, const char* function, const YView& y, const DyView& dy,
                             const OffsetsView& row_offsets, const DxView& dx, const Options& options) {
  using T = typename DxView::non_const_value_type;
  require_kernels<SegmentedGradientCall<Exec, op, T>>();
  SegmentedArguments arguments{{tensor_of(y), tensor_of(dx), tensor_of(dy), tensor_of(row_offsets)},
                               offsets_of(tensor_of(row_offsets))};
  if (!check_arguments(exec, function, op, arguments, options)) return;
  SegmentedGradientCall<Exec, op, T>::run(exec, arguments);
}

/// Checks the arguments of a gradient of log-sum-exps. False where there is nothing to write.
template <class Exec, class Options>
bool check_lse_gradient(const Exec& exec, const char* function, SegmentedArguments& arguments,
                        const SegmentedLse& values, const Options& options) {
  const SegmentedTensors& tensors = arguments.tensors;
  validate_segmented_lse(function, tensors, values.lse, values.dlse, options.scale);
  arguments.elements   = tensors.x.extent[0];
  arguments.rows       = tensors.offsets.extent[0] - 1;
  arguments.scale      = options.scale;
  arguments.masked_row = options.masked_row;
  if (options.check_offsets) {
    OffsetsCheck<Exec>::run(exec, function, arguments.offsets, arguments.rows, arguments.elements);
  }
  return arguments.rows > 0 && tensors.heads() > 0 && arguments.elements > 0;
}

template <class Exec, class XView, class LseView, class DlseView, class OffsetsView, class DxView, class Options>
void segmented_lse_gradient_call(const Exec& exec, const XView& values, const LseView& lse, const DlseView& dlse,
                                 const OffsetsView& row_offsets, const DxView& dx, const Options& options) {
  using T                        = typename DxView::non_const_value_type;
  constexpr const char* function = "segmented_logsumexp_backward";
  static_assert(hold_elements<DxView> && hold_one_type<DxView, XView, LseView, DlseView>,
                "KokkosNN::segmented_logsumexp_backward: values, lse, dlse and dx must hold one type, double, float, "
                "half_t or bhalf_t");
  static_assert((XView::rank() == 1 || XView::rank() == 2) && LseView::rank() == XView::rank() &&
                    DlseView::rank() == XView::rank() && DxView::rank() == XView::rank(),
                "KokkosNN::segmented_logsumexp_backward: values, lse, dlse and dx must have rank 1, or 2 where there "
                "are heads");
  static_assert(OffsetsView::rank() == 1 && holds_integers<OffsetsView>,
                "KokkosNN::segmented_logsumexp_backward: row_offsets must have rank 1 and hold integers");
  static_assert(is_writable<DxView>, "KokkosNN::segmented_logsumexp_backward: dx must not be const");
  static_assert(can_access<Exec, XView, LseView, DlseView, OffsetsView, DxView>,
                "KokkosNN::segmented_logsumexp_backward: the execution space must be able to access the Views' memory");
  require_kernels<SegmentedLseGradientCall<Exec, T>>();
  SegmentedArguments arguments{{tensor_of(values), tensor_of(dx), {}, tensor_of(row_offsets)},
                               offsets_of(tensor_of(row_offsets))};
  const SegmentedLse given{tensor_of(lse), tensor_of(dlse)};
  if (!check_lse_gradient(exec, function, arguments, given, options)) return;
  SegmentedLseGradientCall<Exec, T>::run(exec, arguments, given);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SEGMENTED_CALL_HPP
