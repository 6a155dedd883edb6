// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_RMS_NORM_ROPE_CALL_HPP
#define KOKKOSNN_IMPL_CALL_RMS_NORM_ROPE_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/impl/call/compiled_rope_calls.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/impl/call/rope_call.hpp>
#include <KokkosNN/instantiations/rms_norm_rope.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <string>
#include <type_traits>

// The body of an RMSNorm with a rotary embedding: check what the compiler can see, then the arguments, launch.

namespace KokkosNN::Impl {

template <class Exec, class XView, class WeightView>
constexpr void check_rope_weight() {
  if constexpr (is_given<WeightView>) {
    using X = typename XView::non_const_value_type;
    using E = typename WeightView::non_const_value_type;
    static_assert(WeightView::rank() == 1 || (WeightView::rank() == 2 && XView::rank() >= 3),
                  "KokkosNN::rms_norm_rope: weight must have rank 1, or 2 where x has heads");
    static_assert(std::is_same_v<E, X> || std::is_same_v<E, accumulator_t<X>>,
                  "KokkosNN::rms_norm_rope: weight must hold x's type, or float if that has 16 bits");
    static_assert(can_access<Exec, WeightView>,
                  "KokkosNN::rms_norm_rope: the execution space must be able to access the memory of weight");
  }
}

template <class Exec, class XView, class WeightView, class CosView, class SinView, class YView, class PositionsView>
void rms_norm_rope_call(const Exec& exec, const XView& x, const WeightView& weight, const CosView& cos,
                        const SinView& sin, const YView& y, const RmsNormRopeOptions& options,
                        const PositionsView& positions) {
  check_rope_rows<Exec, XView, YView>();
  check_rope_weight<Exec, XView, WeightView>();
  check_rope_table<Exec, XView, CosView>();
  check_rope_table<Exec, XView, SinView>();
  check_rope_positions<Exec, XView, PositionsView>();
  constexpr const char* function = "rms_norm_rope";
  using Call                     = RmsNormRopeCall<Exec, typename XView::non_const_value_type>;
  require_kernels<Call>();
  const Kokkos::Profiling::ScopedRegion region(std::string("KokkosNN::") + function);
  const RopeTensors tensors{tensor_of(x), tensor_of(y), tensor_of(cos), tensor_of(sin), tensor_of(positions)};
  const Tensor of_weight  = tensor_of(weight);
  const RopeLayout layout = normalise_rms_norm_rope(function, tensors, of_weight, options);
  if (layout.elements() == 0) return;
  Call::run(exec, {function, tensors, of_weight, layout, options});
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_RMS_NORM_ROPE_CALL_HPP
