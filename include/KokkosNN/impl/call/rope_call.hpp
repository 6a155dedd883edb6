// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ROPE_CALL_HPP
#define KOKKOSNN_IMPL_CALL_ROPE_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/impl/call/compiled_rope_calls.hpp>
#include <KokkosNN/impl/call/rope_plan.hpp>
#include <KokkosNN/instantiations/rope.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

// The body of a rotary embedding: check what the compiler can see, then the arguments, launch.

namespace KokkosNN::Impl {

template <class V>
inline constexpr bool holds_positions = std::is_same_v<typename V::non_const_value_type, std::int32_t> ||
                                        std::is_same_v<typename V::non_const_value_type, std::int64_t>;

template <class Exec, class XView, class YView>
constexpr void check_rope_rows() {
  static_assert(XView::rank() >= 2 && XView::rank() <= 4, "KokkosNN::rope: x must have rank 2 to 4");
  static_assert(XView::rank() == YView::rank(), "KokkosNN::rope: x and y must have the same rank");
  static_assert(hold_elements<XView>, "KokkosNN::rope: x must hold double, float, half_t or bhalf_t");
  static_assert(hold_one_type<XView, YView>, "KokkosNN::rope: x and y must hold the same type");
  static_assert(is_writable<YView>, "KokkosNN::rope: y must not be const");
  static_assert(can_access<Exec, XView, YView>,
                "KokkosNN::rope: the execution space must be able to access the memory of x and y");
}

template <class Exec, class XView, class TableView>
constexpr void check_rope_table() {
  if constexpr (is_given<TableView>) {
    using A = accumulator_t<typename XView::non_const_value_type>;
    static_assert(TableView::rank() == 2, "KokkosNN::rope: cos and sin must have rank 2");
    static_assert(std::is_same_v<typename TableView::non_const_value_type, A>,
                  "KokkosNN::rope: cos and sin must hold double if x does, else float");
    static_assert(can_access<Exec, TableView>,
                  "KokkosNN::rope: the execution space must be able to access the memory of cos and sin");
  }
}

template <class Exec, class XView, class PositionsView>
constexpr void check_rope_positions() {
  if constexpr (is_given<PositionsView>) {
    static_assert(PositionsView::rank() == 1 || (PositionsView::rank() == 2 && XView::rank() >= 3),
                  "KokkosNN::rope: positions must have rank 1, or 2 where x has a batch");
    static_assert(holds_positions<PositionsView>, "KokkosNN::rope: positions must be std::int32_t or std::int64_t");
    static_assert(can_access<Exec, PositionsView>,
                  "KokkosNN::rope: the execution space must be able to access the memory of the positions");
  }
}

/// The body of rope (`direction` 1) and of rope_backward (-1), whose x is dy and whose y is dx.
template <int direction, class Exec, class XView, class CosView, class SinView, class YView, class PositionsView>
void rope_call(const Exec& exec, const XView& x, const CosView& cos, const SinView& sin, const YView& y,
               const RopeOptions& options, const PositionsView& positions) {
  check_rope_rows<Exec, XView, YView>();
  check_rope_table<Exec, XView, CosView>();
  check_rope_table<Exec, XView, SinView>();
  check_rope_positions<Exec, XView, PositionsView>();
  const bool is_forward = direction > 0;
  const char* function  = is_forward ? "rope" : "rope_backward";
  using Call            = RopeCall<Exec, typename XView::non_const_value_type>;
  require_kernels<Call>();
  const Kokkos::Profiling::ScopedRegion region(std::string("KokkosNN::") + function);
  const RopeTensors tensors{tensor_of(x), tensor_of(y), tensor_of(cos), tensor_of(sin), tensor_of(positions)};
  const RopeLayout layout =
      normalise_rope(function, is_forward ? "x" : "dy", is_forward ? "y" : "dx", tensors, options);
  if (layout.elements() == 0) return;
  Call::run(exec, {function, tensors, layout, options, direction});
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ROPE_CALL_HPP
