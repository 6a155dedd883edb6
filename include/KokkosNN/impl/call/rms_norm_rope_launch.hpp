// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_RMS_NORM_ROPE_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_RMS_NORM_ROPE_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/compiled_rope_calls.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/rope_launch.hpp>
#include <KokkosNN/impl/call/rope_plan.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/gpu/rms_norm_rope.hpp>
#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/impl/tuned_shapes.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

// The way of an RMSNorm with a rotary embedding from its layout to a launch.

namespace KokkosNN::Impl {

template <class ExecutionSpace, class X>
struct Launcher<RmsNormRopeCall<ExecutionSpace, X>> {
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  static constexpr int V           = row_pack(backend, sizeof(X));
  static constexpr int K           = backend == Backend::host ? rms_norm_rope_host_units : rms_norm_rope_units;
  using A                          = accumulator_t<X>;
  using Weight                     = ColumnOperand<X, A>;

  static void run(const ExecutionSpace& exec, const RmsNormRopeArguments& call) {
    const RopeOptions& options = call.options.rope;
    const RopeArguments rotation{call.function, call.tensors, call.layout, options, 1};
    require_positions<X>(exec, rotation);
    const bool has_tables      = call.tensors.cos.exists();
    const RmsNormRopePlan plan = make_rms_norm_rope_plan({element_type<X>(), int(sizeof(X)), options.form, has_tables},
                                                         call.layout, has_aligned_weights(call), device_traits(exec));
    if (is_verbose()) report_call(call.function, call.tensors.x, to_string(call.function, plan));
    RopeRows<X> rows = rope_rows_of<X>(rotation);
    rows.rest        = call.layout.dim - 2 * call.layout.pairs;  // normalised in place, too
    if (has_tables) {
      launch_kernel(exec, call, plan, rows, rope_tables_of<A>(call.tensors));
    } else {
      launch_kernel(exec, call, plan, rows,
                    ComputedAngles<A>{rotary_frequencies(options.theta, options.position_scale, call.layout.pairs)});
    }
  }

 private:
  template <class Angles>
  static void launch_kernel(const ExecutionSpace& exec, const RmsNormRopeArguments& call, const RmsNormRopePlan& plan,
                            const RopeRows<X>& rows, const Angles& angles) {
    const auto launch_as = [&](auto row_form) {
      constexpr RowForm form = decltype(row_form)::value;
      launch<Kokkos::LaunchBounds<rope_team_size, rms_norm_rope_teams(form, sizeof(X))>>(
          exec, to_string(call.function, plan), Teams{plan.league_size, plan.team_size, 0, 0},
          RmsNormRope<X, V, K, Angles, form>{rows, angles, norm_of(call), weight_of(call),
                                             weight_head_bytes(call.weight), plan.form, plan.threads_per_row,
                                             plan.groups_per_team, plan.heads_per_group, plan.head_parts});
    };
    if constexpr (backend == Backend::cuda) {
      if (plan.rows == RowForm::aligned) return launch_as(std::integral_constant<RowForm, RowForm::aligned>{});
    }
    launch_as(std::integral_constant<RowForm, RowForm::strided>{});
  }

  static RmsNormParams<A> norm_of(const RmsNormRopeArguments& call) {
    RmsNormOptions constants;
    constants.epsilon       = call.options.epsilon;
    constants.weight_offset = call.options.weight_offset;
    return RmsNormParams<A>(constants);
  }
  static Weight weight_of(const RmsNormRopeArguments& call) {
    const Tensor& weight = call.weight;
    return {{weight.data, weight.type == ElementType::f32},
            weight.exists() ? weight.stride[weight.rank - 1] : std::int64_t(1),
            norm_of(call).missing(0)};
  }
  /// Bytes from a head's weights to the next one's.
  static std::int64_t weight_head_bytes(const Tensor& weight) {
    return weight.rank == 2 ? weight.stride[0] * std::int64_t(weight.element_bytes) : std::int64_t(0);
  }
  /// True if there are no weights, or each head's are contiguous and begin at a boundary of 16 bytes.
  static bool has_aligned_weights(const RmsNormRopeArguments& call) {
    return weight_of(call).is_aligned() && weight_head_bytes(call.weight) % Weight::access_bytes == 0;
  }
};

template <class ExecutionSpace, class X>
void RmsNormRopeCall<ExecutionSpace, X>::run(const ExecutionSpace& exec, const RmsNormRopeArguments& call) {
  run_compiled<RmsNormRopeCall>(exec, call);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_RMS_NORM_ROPE_LAUNCH_HPP
