// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_MATMUL_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_MATMUL_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/matmul_plan.hpp>
#include <KokkosNN/impl/call/matmul_units.hpp>
#include <KokkosNN/impl/call/vendor_matmul.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/call/warpgroup_matmul_launch.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/device/matrix_unit.hpp>
#include <KokkosNN/impl/gpu/matmul.hpp>
#include <KokkosNN/impl/host/matmul.hpp>
#include <KokkosNN/impl/inputs/matmul_tensors.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

// A matrix product's way to its plan and its launch.

namespace KokkosNN::Impl {

/// A checked call, its Views erased.
struct MatmulArguments {
  const MatmulOperands& operands;
  const MatmulLayout& layout;
  const MatmulOptions& options;
};

template <class Exec, class T>
struct MatmulCall;

/// Matrices of a batch that are to be added, one after the other.
template <class S>
struct MatmulPartsLeft {
  S* first;
  std::int64_t count;
};

inline Teams matmul_teams(const MatmulPlan& plan) {
  return {plan.league_size, plan.team_size, plan.scratch_level, plan.scratch};
}

template <class T>
BatchedMatrix<T> batched_matrix(const MatmulLayout& layout, int number) {
  return {static_cast<const T*>(layout.data[number]), layout.row_stride[number], layout.col_stride[number],
          layout.map(number)};
}

template <class T>
MatmulData<T> matmul_data(const MatmulLayout& layout, const MatmulPlan& plan) {
  MatmulData<T> data;
  data.batches    = layout.batches;
  data.rows       = layout.rows;
  data.cols       = layout.cols;
  data.inner      = layout.inner;
  data.a          = batched_matrix<T>(layout, MatmulTensors::a);
  data.b          = batched_matrix<T>(layout, MatmulTensors::b);
  data.row_blocks = plan.row_blocks;
  data.col_blocks = plan.col_blocks;
  data.group      = plan.group;
  return data;
}

/// Products of T whose epilogue is an F of A, from and to tensors of c's extents. Files that are compiled for
/// warpgroups and others have a launch each.
template <class Exec, class T, class F, class A, class C, class Inputs, MatmulRows rows,
          bool on_warpgroups = is_compiled_for_warpgroups>
struct MatmulLaunch {
  using Results = MatmulResults<C, Inputs>;

  static void run(const Exec& exec, const MatmulArguments& call, const F& f) {
    if constexpr (backend_of<Exec>() == Backend::host) {
      run_on_host(exec, call, f);
    } else {
      with_matrix_unit<Exec, T>(call.options.precision,
                                [&]<class Unit>(std::type_identity<Unit>) { run_on_gpu<Unit>(exec, call, f); });
    }
  }

 private:
  static MatmulPlan plan_of(const Exec& exec, const MatmulArguments& call, const MatmulKernelShape& shape) {
    const MatmulOperands& operands = call.operands;
    MatmulPlan plan =
        make_matmul_plan(operands.function, element_type<T>(), call.options, call.layout, shape, device_traits(exec));
    if (is_verbose()) report_call(operands.function, operands.tensor[MatmulTensors::a], plan.label);
    return plan;
  }

  static void run_on_host(const Exec& exec, const MatmulArguments& call, const F& f) {
    const MatmulPlan plan = plan_of(exec, call, {});
    using Kernel          = HostMatmul<T, F, A, Results, rows>;
    Kernel kernel{data_of(call.layout, plan), epilogue_of(call, f), results_of(call), plan.rows, plan.cols,
                  maps_of(call, plan)};
    const MatmulSums& sums = call.layout.sums;
    kernel.summed_batches  = sums.count();
    kernel.sums_of_a       = row_map(sums.extent, sums.stride_of_a, sums.n);
    kernel.sums_of_b       = row_map(sums.extent, sums.stride_of_b, sums.n);
    using Bounds           = Kokkos::LaunchBounds<max_threads_per_team>;
    if (plan.parts == 1) return launch<Bounds>(exec, plan.label, teams_of(plan), kernel);
    const WorkspaceLease<Exec, WorkspaceUse::sums> workspace(exec, plan.workspace);
    kernel.parts_sums = reinterpret_cast<typename Kernel::S*>(workspace.data());
    kernel.step       = HostMatmulStep::parts;
    launch<Bounds>(exec, plan.label, teams_of(plan), kernel);
    kernel.step = HostMatmulStep::epilogue;
    launch<Bounds>(exec, plan.sum_label, {plan.sum_league_size, plan.team_size, plan.scratch_level, plan.scratch},
                   kernel);
  }

  template <class Unit>
  static void run_on_gpu(const Exec& exec, const MatmulArguments& call, const F& f) {
    if constexpr (is_librarys && rows == MatmulRows::own && has_few_rows_tile<Unit>) {
      if (has_few_rows(element_type<T>(), call.layout, call.options))
        return run_tiles<Unit, MatmulFewRowsTileOf<Unit>>(exec, call, f);
    }
    run_tiles<Unit, MatmulTileOf<Unit>>(exec, call, f);
  }
  template <class Unit, class Tile>
  static void run_tiles(const Exec& exec, const MatmulArguments& call, const F& f) {
    constexpr bool are_few = !std::is_same_v<Tile, MatmulTileOf<Unit>>;
    using Kernel           = MatmulInTeam<Unit, MatmulForm::a_along_b_across, F, A, Results, rows, Tile>;
    using KernelAlong      = MatmulInTeam<Unit, MatmulForm::a_along_b_along, F, A, Results, rows, Tile>;
    const MatmulPlan plan  = plan_of(exec, call,
                                     {Tile::rows, Tile::cols, Tile::inner, Tile::resident, Kernel::team_size,
                                      Kernel::scratch, !are_few && has_warpgroup_kernel() && has_warpgroups(exec)});
    if constexpr (rows == MatmulRows::own && !are_few) {
      if (plan.parts > 1 || plan.rounds > 1) return run_parts(exec, call, plan, f);
    }
    if (plan.is_on_warpgroups) return run_on_warpgroups(exec, call, plan, f);
    switch (plan.form) {
      case MatmulForm::a_along_b_across:
        return launch_form<Kernel>(exec, call, plan, f);
      case MatmulForm::a_along_b_along:
        return launch_form<KernelAlong>(exec, call, plan, f);
      case MatmulForm::a_across_b_across:  // rows with maps have no such form, nor have few rows
        if constexpr (rows == MatmulRows::own && !are_few) {
          launch_form<MatmulInTeam<Unit, MatmulForm::a_across_b_across, F, A, Results>>(exec, call, plan, f);
        }
    }
  }

  /// Kernels for warpgroups of the library's own calls are in the library, others where their file is for them.
  static constexpr bool is_librarys = std::is_same_v<F, MatmulResult> && std::is_same_v<C, T> && Inputs::count == 0;

  static bool has_warpgroup_kernel() {
    if constexpr (backend_of<Exec>() != Backend::cuda || !has_warpgroup_products<T, A, C, rows>) {
      return false;
    } else if constexpr (is_librarys) {
      return MatmulOnWarpgroups<Exec, T>::is_compiled();
    } else {
      return on_warpgroups;
    }
  }
  static void run_on_warpgroups([[maybe_unused]] const Exec& exec, [[maybe_unused]] const MatmulArguments& call,
                                [[maybe_unused]] const MatmulPlan& plan, [[maybe_unused]] const F& f) {
    if constexpr (backend_of<Exec>() == Backend::cuda && has_warpgroup_products<T, A, C, rows>) {
      if constexpr (is_librarys) {
        MatmulOnWarpgroups<Exec, T>::run(exec, call.layout, plan, data_of(call.layout, plan), epilogue_of(call, f),
                                         results_of(call));
      } else if constexpr (on_warpgroups) {
        launch_on_warpgroups<T>(exec, call.layout, plan, data_of(call.layout, plan), epilogue_of(call, f),
                                results_of(call));
      }
    }
  }

  template <class Kernel>
  static void launch_form(const Exec& exec, const MatmulArguments& call, const MatmulPlan& plan, const F& f) {
    launch_tiles(exec, plan.label, teams_of(plan),
                 Kernel{{epilogue_of(call, f), results_of(call), has_units_of<Results>(call.layout)},
                        data_of(call.layout, plan),
                        plan.copies_a,
                        plan.copies_b,
                        maps_of(call, plan)});
  }

  /// The parts' sums by the library's kernels, then the epilogue.
  static void run_parts(const Exec& exec, const MatmulArguments& call, const MatmulPlan& plan, const F& f) {
    using S = accumulator_t<T>;
    const WorkspaceLease<Exec, WorkspaceUse::sums> workspace(exec, plan.workspace);
    S* const sums                 = reinterpret_cast<S*>(workspace.data());
    const MatmulPartsLeft<S> left = MatmulCall<Exec, T>::run_parts(exec, call, plan, sums);
    const MatmulLayout& layout    = call.layout;
    launch<Kokkos::LaunchBounds<matmul_sum_team>>(
        exec, plan.sum_label, {plan.sum_league_size, matmul_sum_team, 0, 0},
        MatmulPartsSum<S, F, A, Results>{left.first, left.count, layout.batches, layout.rows, layout.cols,
                                         epilogue_of(call, f), results_of(call), matmul_workspace_matrices(plan)});
  }

  static MatmulRowMapsFor<rows> maps_of([[maybe_unused]] const MatmulArguments& call,
                                        [[maybe_unused]] const MatmulPlan& plan) {
    MatmulRowMapsFor<rows> maps{};
    if constexpr (rows != MatmulRows::own) {
      maps               = call.layout.maps;
      maps.sums_per_team = plan.sums_per_team;
    }
    return maps;
  }

  static Teams teams_of(const MatmulPlan& plan) { return matmul_teams(plan); }
  static MatmulData<T> data_of(const MatmulLayout& layout, const MatmulPlan& plan) {
    return matmul_data<T>(layout, plan);
  }

  static MatmulEpilogue<F, A> epilogue_of(const MatmulArguments& call, const F& f) {
    return {f, static_cast<A>(call.options.alpha), static_cast<A>(call.options.beta)};
  }

  static Results results_of(const MatmulArguments& call) {
    const MatmulLayout& layout = call.layout;
    Results results;
    for (int t = 0; t < Results::count; ++t) {
      const int number      = t == 0 ? int(MatmulTensors::c) : MatmulTensors::inputs + t - 1;
      results.data[t]       = const_cast<void*>(layout.data[number]);
      results.row_stride[t] = layout.row_stride[number];
      results.col_stride[t] = layout.col_stride[number];
      results.batch[t]      = layout.map(number);
    }
    return results;
  }
};

/// Products without an epilogue on tensors of one type, compiled in the library.
template <class Exec, class T>
struct MatmulCall {
  /// Not inline: users compile no kernels.
  static void run(const Exec& exec, const MatmulArguments& call);

  /// The sums of a GPU's parts of the inner axis and of batches, of which all but the last round's are added up.
  static MatmulPartsLeft<accumulator_t<T>> run_parts(const Exec& exec, const MatmulArguments& call,
                                                     const MatmulPlan& plan, accumulator_t<T>* sums);

 private:
  /// True if a vendor's library computes the product, which is enqueued then.
  static bool is_run_by_vendor(const Exec& exec, const MatmulArguments& call);

  static void add_to_total(const Exec& exec, const MatmulLayout& layout, const MatmulPlan& plan,
                           const MatmulPartsLeft<accumulator_t<T>>& parts, accumulator_t<T>* sums);
  static void run_round(const Exec& exec, const MatmulArguments& call, const MatmulPlan& plan,
                        const MatmulLayout& layout, accumulator_t<T>* sums);
  template <class Unit, MatmulForm form>
  static void launch_parts(const Exec& exec, const MatmulLayout& layout, const MatmulPlan& plan,
                           accumulator_t<T>* sums);
};

template <class Exec, class T>
bool MatmulCall<Exec, T>::is_run_by_vendor(const Exec& exec, const MatmulArguments& call) {
  const char* const function = call.operands.function;
  const VendorQueue queue    = vendor_queue(exec);
  if (!is_vendors(function, queue.backend, element_type<T>(), call.options, call.layout)) return false;
  const std::string label = vendor_label(function, queue.backend, element_type<T>(), call.options.precision);
  if (is_verbose()) report_call(function, call.operands.tensor[MatmulTensors::a], label);
  require_launching_thread(exec, label);
  const Kokkos::Profiling::ScopedRegion region(label);
  run_vendors(label, queue, element_type<T>(), call.options, call.layout);
  return true;
}

template <class Exec, class T>
struct Launcher<MatmulCall<Exec, T>> {
  static void run(const Exec& exec, const MatmulArguments& call) {
    const auto run = [&]<MatmulRows rows>(std::integral_constant<MatmulRows, rows>) {
      MatmulLaunch<Exec, T, MatmulResult, accumulator_t<T>, T, ElementTypes<>, rows>::run(exec, call, MatmulResult{});
    };
    switch (call.layout.kind) {
      case MatmulRows::own:
        return run(std::integral_constant<MatmulRows, MatmulRows::own>{});
      case MatmulRows::gathered:
        return run(std::integral_constant<MatmulRows, MatmulRows::gathered>{});
      case MatmulRows::summed:
        return run(std::integral_constant<MatmulRows, MatmulRows::summed>{});
    }
  }
};

template <class Exec, class T>
void MatmulCall<Exec, T>::run(const Exec& exec, const MatmulArguments& call) {
  if (!is_run_by_vendor(exec, call)) run_compiled<MatmulCall>(exec, call);
}

template <class Exec, class T>
MatmulPartsLeft<accumulator_t<T>> MatmulCall<Exec, T>::run_parts(const Exec& exec, const MatmulArguments& call,
                                                                 const MatmulPlan& plan, accumulator_t<T>* sums) {
  using S                 = accumulator_t<T>;
  const std::int64_t size = call.layout.rows * call.layout.cols;
  S* const parts          = sums + (plan.rounds > 1 ? size : 0);  // behind the total
  MatmulPartsLeft<S> left{parts, 0};
  for (std::int64_t round = 0; round < plan.rounds; ++round) {
    const MatmulLayout layout = layout_of_parts(call.layout, plan, round, int(sizeof(T)));
    run_round(exec, call, plan, layout, parts);
    left.count += layout.batches / call.layout.batches;
    if (round + 1 == plan.rounds) break;
    add_to_total(exec, call.layout, plan, left, sums);
    left = {sums, 1};
  }
  return left;
}

template <class Exec, class T>
void MatmulCall<Exec, T>::add_to_total([[maybe_unused]] const Exec& exec, [[maybe_unused]] const MatmulLayout& layout,
                                       [[maybe_unused]] const MatmulPlan& plan,
                                       [[maybe_unused]] const MatmulPartsLeft<accumulator_t<T>>& parts,
                                       [[maybe_unused]] accumulator_t<T>* sums) {
  if constexpr (backend_of<Exec>() != Backend::host) {
    using S                     = accumulator_t<T>;
    using Totals                = MatmulResults<S, ElementTypes<>>;
    const std::int64_t distance = matmul_workspace_matrices(plan), of_batch = distance * layout.rows * layout.cols;
    Totals totals;
    totals.data[0]       = sums;
    totals.row_stride[0] = layout.cols;
    totals.col_stride[0] = 1;
    totals.batch[0]      = row_map(&layout.batches, &of_batch, 1);
    launch<Kokkos::LaunchBounds<matmul_sum_team>>(
        exec, plan.sum_label, {plan.sum_league_size, matmul_sum_team, 0, 0},
        MatmulPartsSum<S, MatmulResult, S, Totals>{
            parts.first, parts.count, layout.batches, layout.rows, layout.cols, {{}, S(1), S(0)}, totals, distance});
  }
}

template <class Exec, class T>
void MatmulCall<Exec, T>::run_round([[maybe_unused]] const Exec& exec, [[maybe_unused]] const MatmulArguments& call,
                                    [[maybe_unused]] const MatmulPlan& plan,
                                    [[maybe_unused]] const MatmulLayout& layout,
                                    [[maybe_unused]] accumulator_t<T>* sums) {
  if constexpr (backend_of<Exec>() != Backend::host) {
    with_matrix_unit<Exec, T>(call.options.precision, [&]<class Unit>(std::type_identity<Unit>) {
      switch (plan.form) {
        case MatmulForm::a_along_b_across:
          return launch_parts<Unit, MatmulForm::a_along_b_across>(exec, layout, plan, sums);
        case MatmulForm::a_along_b_along:
          return launch_parts<Unit, MatmulForm::a_along_b_along>(exec, layout, plan, sums);
        case MatmulForm::a_across_b_across:
          return launch_parts<Unit, MatmulForm::a_across_b_across>(exec, layout, plan, sums);
      }
    });
  }
}

template <class Exec, class T>
template <class Unit, MatmulForm form>
void MatmulCall<Exec, T>::launch_parts(const Exec& exec, const MatmulLayout& layout, const MatmulPlan& plan,
                                       accumulator_t<T>* sums) {
  using S = accumulator_t<T>;
  MatmulParts<S> results;
  results.data[0]       = sums;
  results.row_stride[0] = layout.row_stride[MatmulTensors::c];
  results.col_stride[0] = layout.col_stride[MatmulTensors::c];
  results.batch[0]      = layout.map(MatmulTensors::c);
  results.parts         = plan.inner_parts;
  results.inner         = plan.part_inner;
  const bool has_units  = results.col_stride[0] == 1 && results.row_stride[0] * std::int64_t(sizeof(S)) % 16 == 0;
  launch_tiles(exec, plan.label, matmul_teams(plan),
               MatmulInTeam<Unit, form, MatmulResult, S, MatmulParts<S>>{
                   {{{}, S(1), S(0)}, results, has_units}, matmul_data<T>(layout, plan), plan.copies_a, plan.copies_b});
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_MATMUL_LAUNCH_HPP
