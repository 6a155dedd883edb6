// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_SEGMENTED_CALL_HPP
#define KOKKOSNN_IMPL_CALL_SEGMENTED_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/instantiations/segment_index.hpp>
#include <KokkosNN/instantiations/segmented.hpp>
#include <KokkosNN/impl/call/compiled_segmented_calls.hpp>
#include <KokkosNN/impl/call/segmented_plan.hpp>
#include <KokkosNN/plan.hpp>
#include <KokkosNN/segment_index.hpp>

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

/// A call's Views, erased, with its offsets or its index.
template <Concepts::RaggedRows Rows>
SegmentedArguments erased_segments(const Tensor& x, const Tensor& y, const Tensor& dy, const Rows& rows) {
  SegmentedArguments arguments{{x, y, dy, {}}, {}};
  if constexpr (is_segment_index<Rows>) {
    arguments.tensors.offsets   = tensor_of(rows.view);
    arguments.tensors.has_index = true;
    arguments.tensors.segments  = rows.segments;
  } else {
    arguments.tensors.offsets = tensor_of(rows);
  }
  arguments.offsets = offsets_of(arguments.tensors.offsets);
  return arguments;
}

/// Takes over rows and options of a checked call, and looks at offsets or index if asked to.
template <class Exec, class Options>
void set_options(const Exec& exec, const char* function, SegmentedArguments& arguments, const Options& options) {
  const SegmentedTensors& tensors = arguments.tensors;
  arguments.elements              = tensors.x.extent[0];
  arguments.rows                  = tensors.rows();
  arguments.scale                 = options.scale;
  arguments.masked_row            = options.masked_row;
  if (!options.check_offsets) return;
  const auto check = tensors.has_index ? OffsetsCheck<Exec>::run_index : OffsetsCheck<Exec>::run;
  check(exec, function, arguments.offsets, arguments.rows, arguments.elements);
}

/// Checks the arguments of a call. False where there is nothing to write.
template <class Exec, class Options>
bool check_arguments(const Exec& exec, const char* function, RowOperator op, SegmentedArguments& arguments,
                     const Options& options) {
  const SegmentedTensors& tensors = arguments.tensors;
  validate_segmented(function, op, tensors, options.scale);
  set_options(exec, function, arguments, options);
  return arguments.rows > 0 && tensors.heads() > 0 && (arguments.elements > 0 || op == RowOperator::logsumexp);
}

/// Checks a call that is erased, and runs it by a Call, or by the one of an index.
template <class Call, class T, class Rows, class Exec, class Options>
void run_segments(const Exec& exec, const char* function, RowOperator op, SegmentedArguments& arguments,
                  const Options& options) {
  if constexpr (is_segment_index<Rows>) {
    require_kernels<SegmentIndexCall<Exec, T>>();
    if (check_arguments(exec, function, op, arguments, options))
      SegmentIndexCall<Exec, T>::run(exec, op, arguments, {});
  } else {
    require_kernels<Call>();
    if (check_arguments(exec, function, op, arguments, options)) Call::run(exec, arguments);
  }
}

template <RowOperator op, class Exec, class XView, class Rows, class YView, class Options>
void segmented_call(const Exec& exec, const char* function, const XView& values, const Rows& rows, const YView& y,
                    const Options& options) {
  using X = typename XView::non_const_value_type;
  using Y = typename YView::non_const_value_type;
  static_assert(!is_segment_index<Rows> || std::is_same_v<X, Y>,
                "KokkosNN: rows by a SegmentIndex: the values and the output must hold one type");
  SegmentedArguments arguments = erased_segments(tensor_of(values), tensor_of(y), {}, rows);
  run_segments<SegmentedCall<Exec, op, X, Y>, Y, Rows>(exec, function, op, arguments, options);
}

template <RowOperator op, class Exec, class YView, class DyView, class Rows, class DxView, class Options>
void segmented_gradient_call(const Exec& exec, const char* function, const YView& y, const DyView& dy, const Rows& rows,
                             const DxView& dx, const Options& options) {
  using T                      = typename DxView::non_const_value_type;
  SegmentedArguments arguments = erased_segments(tensor_of(y), tensor_of(dx), tensor_of(dy), rows);
  run_segments<SegmentedGradientCall<Exec, op, T>, T, Rows>(exec, function, op, arguments, options);
}

/// Checks the arguments of a gradient of log-sum-exps. False where there is nothing to write.
template <class Exec, class Options>
bool check_lse_gradient(const Exec& exec, const char* function, SegmentedArguments& arguments,
                        const SegmentedLse& values, const Options& options) {
  const SegmentedTensors& tensors = arguments.tensors;
  validate_segmented_lse(function, tensors, values.lse, values.dlse, options.scale);
  set_options(exec, function, arguments, options);
  return arguments.rows > 0 && tensors.heads() > 0 && arguments.elements > 0;
}

template <class Exec, class XView, class LseView, class DlseView, class Rows, class DxView, class Options>
void segmented_lse_gradient_call(const Exec& exec, const XView& values, const LseView& lse, const DlseView& dlse,
                                 const Rows& rows, const DxView& dx, const Options& options) {
  using OffsetsView              = view_of_rows<Rows>;
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
  SegmentedArguments arguments = erased_segments(tensor_of(values), tensor_of(dx), {}, rows);
  const SegmentedLse given{tensor_of(lse), tensor_of(dlse)};
  if constexpr (is_segment_index<Rows>) {
    require_kernels<SegmentIndexCall<Exec, T>>();
    if (!check_lse_gradient(exec, function, arguments, given, options)) return;
    SegmentIndexCall<Exec, T>::run(exec, RowOperator::logsumexp_backward, arguments, given);
  } else {
    require_kernels<SegmentedLseGradientCall<Exec, T>>();
    if (!check_lse_gradient(exec, function, arguments, given, options)) return;
    SegmentedLseGradientCall<Exec, T>::run(exec, arguments, given);
  }
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SEGMENTED_CALL_HPP
