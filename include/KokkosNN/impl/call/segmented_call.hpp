// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_SEGMENTED_CALL_HPP
#define KOKKOSNN_IMPL_CALL_SEGMENTED_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/instantiations/segmented.hpp>
#include <KokkosNN/impl/call/segmented_launch.hpp>
#include <KokkosNN/impl/call/segmented_plan.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

// The body of a function on ragged rows: check what the compiler can see, then the arguments, launch.

namespace KokkosNN::Impl {

template <class T>
inline constexpr bool is_offset = std::integral<T> && !std::is_same_v<T, bool>;

template <class Exec, class V>
inline constexpr bool can_access = Kokkos::SpaceAccessibility<Exec, typename V::memory_space>::accessible;

// A static_assert's text must be a literal before C++26, so each function has its own.
#define KOKKOSNN_IMPL_CHECK_SEGMENTED(NAME, INPUT, OUTPUT)                                                         \
  static_assert(OffsetsView::rank() == 1, "KokkosNN::" NAME ": row_offsets must have rank 1");                     \
  static_assert(XView::rank() == YView::rank() && (XView::rank() == 1 || XView::rank() == 2),                      \
                "KokkosNN::" NAME ": " INPUT " and " OUTPUT " must both have rank 1, or 2 where there are heads"); \
  static_assert(is_offset<typename OffsetsView::non_const_value_type>,                                             \
                "KokkosNN::" NAME ": row_offsets must hold integers");                                             \
  static_assert(Concepts::Element<typename XView::non_const_value_type> &&                                         \
                    Concepts::Element<typename YView::non_const_value_type>,                                       \
                "KokkosNN::" NAME ": " INPUT " and " OUTPUT " must hold double, float, half_t or bhalf_t");        \
  static_assert(!std::is_const_v<typename YView::value_type>, "KokkosNN::" NAME ": " OUTPUT " must not be const"); \
  static_assert(can_access<Exec, XView> && can_access<Exec, OffsetsView> && can_access<Exec, YView>,               \
                "KokkosNN::" NAME ": the execution space must be able to access the memory of " INPUT              \
                ", row_offsets and " OUTPUT)

template <RowOperator op, class Exec, class XView, class OffsetsView, class YView>
constexpr void check_segmented() {
  if constexpr (op == RowOperator::softmax) {
    KOKKOSNN_IMPL_CHECK_SEGMENTED("segmented_softmax", "values", "y");
  } else if constexpr (op == RowOperator::log_softmax) {
    KOKKOSNN_IMPL_CHECK_SEGMENTED("segmented_log_softmax", "values", "y");
  } else if constexpr (op == RowOperator::logsumexp) {
    KOKKOSNN_IMPL_CHECK_SEGMENTED("segmented_logsumexp", "values", "lse");
  } else if constexpr (op == RowOperator::softmax_backward) {
    KOKKOSNN_IMPL_CHECK_SEGMENTED("segmented_softmax_backward", "y and dy", "dx");
  } else {
    KOKKOSNN_IMPL_CHECK_SEGMENTED("segmented_log_softmax_backward", "y and dy", "dx");
  }
}

#undef KOKKOSNN_IMPL_CHECK_SEGMENTED

template <RowOperator op, class Exec, class YView, class DyView, class OffsetsView, class DxView>
constexpr void check_segmented_gradient() {
  using T = typename DxView::non_const_value_type;
  check_segmented<op, Exec, YView, OffsetsView, DxView>();
  static_assert(DyView::rank() == YView::rank(), "KokkosNN: the gradients of ragged rows: dy must have the rank of y");
  static_assert(std::is_same_v<T, typename YView::non_const_value_type> &&
                    std::is_same_v<T, typename DyView::non_const_value_type>,
                "KokkosNN: the gradients of ragged rows: y, dy and dx must hold one type");
  static_assert(can_access<Exec, DyView>,
                "KokkosNN: the gradients of ragged rows: the execution space must be able to access the memory of dy");
}

template <class OffsetsView>
RowOffsets offsets_of(const OffsetsView& row_offsets) {
  using T = typename OffsetsView::non_const_value_type;
  return {row_offsets.data(), row_offsets.extent(0) <= 1 ? 1 : static_cast<std::int64_t>(row_offsets.stride(0)),
          static_cast<int>(sizeof(T)), std::is_signed_v<T>};
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
  SegmentedArguments arguments{{tensor_of(values), tensor_of(y), {}, tensor_of(row_offsets)}, offsets_of(row_offsets)};
  if (!check_arguments(exec, function, op, arguments, options)) return;
  SegmentedCall<Exec, op, X, Y>::run(exec, arguments);
}

template <RowOperator op, class Exec, class YView, class DyView, class OffsetsView, class DxView, class Options>
void segmented_gradient_call(const Exec& exec, const char* function, const YView& y, const DyView& dy,
                             const OffsetsView& row_offsets, const DxView& dx, const Options& options) {
  using T = typename DxView::non_const_value_type;
  SegmentedArguments arguments{{tensor_of(y), tensor_of(dx), tensor_of(dy), tensor_of(row_offsets)},
                               offsets_of(row_offsets)};
  if (!check_arguments(exec, function, op, arguments, options)) return;
  SegmentedGradientCall<Exec, op, T>::run(exec, arguments);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_SEGMENTED_CALL_HPP
