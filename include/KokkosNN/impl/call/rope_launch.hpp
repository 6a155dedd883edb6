// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ROPE_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_ROPE_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/compiled_rope_calls.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/rope_plan.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/gpu/first_index.hpp>
#include <KokkosNN/impl/gpu/rope.hpp>
#include <KokkosNN/impl/host/rope.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

// A rotary embedding's way from a plan to a launch.

namespace KokkosNN::Impl {

/// Holds for a row whose position is outside of the tables.
template <class X>
struct IsOutsideOfTables {
  RopeRows<X> rows;
  std::int64_t table_rows;

  KOKKOS_FUNCTION bool operator()(std::int64_t i) const {
    const std::int64_t position = rows.place(i).position;
    return position < 0 || position >= table_rows;
  }
};

template <class X>
struct StorePosition {
  RopeRows<X> rows;
  std::int64_t index;
  std::int64_t* to;

  KOKKOS_FUNCTION void operator()(int) const { *to = rows.place(index).position; }
};

/// Rows of a call.
template <class X>
RopeRows<X> rope_rows_of(const RopeArguments& call) {
  const RopeLayout& layout = call.layout;
  const Tensor& positions  = call.tensors.positions;
  RopeRows<X> rows;
  rows.x               = static_cast<const X*>(call.tensors.x.data);
  rows.y               = static_cast<X*>(const_cast<void*>(call.tensors.y.data));
  rows.outer           = layout.outer;
  rows.inner           = layout.inner;
  rows.heads           = layout.heads;
  rows.dim             = layout.dim;
  rows.pairs           = layout.pairs;
  rows.rest            = layout.is_in_place ? 0 : layout.dim - 2 * layout.pairs;
  rows.x_dim_stride    = layout.x_dim_stride;
  rows.y_dim_stride    = layout.y_dim_stride;
  rows.positions       = positions.exists() ? positions.data : nullptr;
  rows.position_bytes  = positions.element_bytes;
  rows.position_offset = call.options.position_offset;
  return rows;
}

/// Tables of a call that has some.
template <class A>
TableAngles<A> rope_tables_of(const RopeTensors& tensors) {
  return {static_cast<const A*>(tensors.cos.data),
          static_cast<const A*>(tensors.sin.data),
          tensors.cos.extent[0],
          tensors.cos.stride[0],
          tensors.cos.stride[1],
          tensors.sin.stride[0],
          tensors.sin.stride[1]};
}

/// Throws std::invalid_argument if a View's position is no row of the tables, where the options ask for that.
template <class X, class ExecutionSpace>
void require_positions(const ExecutionSpace& exec, const RopeArguments& call) {
  if (!call.tensors.cos.exists() || !call.tensors.positions.exists() || !call.options.check_positions) return;
  using Range              = Kokkos::RangePolicy<ExecutionSpace>;
  const std::string check  = std::string("KokkosNN::") + call.function + "[check_positions]";
  const RopeRows<X> rows   = rope_rows_of<X>(call);
  const std::int64_t n     = call.layout.positions();
  const std::int64_t index = first_index(exec, check, n, IsOutsideOfTables<X>{rows, call.layout.table_rows});
  if (index == n) return;
  const Kokkos::View<std::int64_t, ExecutionSpace> found("KokkosNN::position");
  Kokkos::parallel_for(check, Range(exec, 0, 1), StorePosition<X>{rows, index, found.data()});
  exec.fence(check);
  std::int64_t position = 0;
  Kokkos::deep_copy(position, found);
  raise_bad_position(call.function, call.layout, index, position);
}

template <class ExecutionSpace, class X>
struct Launcher<RopeCall<ExecutionSpace, X>> {
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  using A                          = accumulator_t<X>;

  static void run(const ExecutionSpace& exec, const RopeArguments& call);

 private:
  template <RopeForm form, class Angles>
  static void run_with(const ExecutionSpace& exec, const RopeArguments& call, const RopePlan& plan,
                       const Angles& angles) {
    plan.moves_packs ? launch_kernel<form, true>(exec, call, plan, angles)
                     : launch_kernel<form, false>(exec, call, plan, angles);
  }

  template <RopeForm form, bool packed, class Angles>
  static void launch_kernel(const ExecutionSpace& exec, const RopeArguments& call, const RopePlan& plan,
                            const Angles& angles) {
    const std::string label = to_string(call.function, plan);
    const Teams teams{plan.league_size, plan.team_size, 0, 0};
    const A direction = static_cast<A>(call.direction);
    if constexpr (backend == Backend::host) {
      constexpr bool by_vectors = packed && (form == RopeForm::half_rotated || simd_width<A> > 1);
      launch<Kokkos::LaunchBounds<max_threads_per_team>>(
          exec, label, teams,
          HostRope<X, form, by_vectors, Angles>{rope_rows_of<X>(call), angles, direction, plan.positions_per_team,
                                                plan.heads_per_team, plan.head_parts, plan.nontemporal_stores});
    } else {
      constexpr int V = packed ? 16 / int(sizeof(X)) : 1;
      launch<Kokkos::LaunchBounds<rope_team_size, rope_teams_resident>>(
          exec, label, teams,
          RopeInTeam<X, form, V, Angles>{rope_rows_of<X>(call),
                                         angles,
                                         direction,
                                         {plan.positions_per_team, plan.heads_per_team, plan.head_parts,
                                          plan.heads_side_by_side, plan.positions_first}});
    }
  }
};

template <class ExecutionSpace, class X>
void Launcher<RopeCall<ExecutionSpace, X>>::run(const ExecutionSpace& exec, const RopeArguments& call) {
  const bool has_tables = call.tensors.cos.exists();
  require_positions<X>(exec, call);
  const RopePlan plan = make_rope_plan({element_type<X>(), int(sizeof(X)), call.options.form, has_tables}, call.layout,
                                       device_traits(exec));
  if (is_verbose()) report_call(call.function, call.tensors.x, to_string(call.function, plan));
  const auto run_form = [&](const auto& angles) {
    call.options.form == RopeForm::interleaved ? run_with<RopeForm::interleaved>(exec, call, plan, angles)
                                               : run_with<RopeForm::half_rotated>(exec, call, plan, angles);
  };
  if (has_tables) {
    run_form(rope_tables_of<A>(call.tensors));
  } else {
    run_form(ComputedAngles<A>{rotary_frequencies(call.options.theta, call.options.position_scale, call.layout.pairs)});
  }
}

template <class ExecutionSpace, class X>
void RopeCall<ExecutionSpace, X>::run(const ExecutionSpace& exec, const RopeArguments& call) {
  run_compiled<RopeCall>(exec, call);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ROPE_LAUNCH_HPP
