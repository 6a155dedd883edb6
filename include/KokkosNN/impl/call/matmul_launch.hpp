// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_MATMUL_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_MATMUL_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/call/large_scratch_launch.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/matmul_plan.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/gpu/device/matrix_unit.hpp>
#include <KokkosNN/impl/gpu/matmul.hpp>
#include <KokkosNN/impl/host/matmul.hpp>
#include <KokkosNN/impl/inputs/matmul_tensors.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>

#include <type_traits>

// A matrix product's way to its plan and its launch.

namespace KokkosNN::Impl {

/// A checked call, its Views erased.
struct MatmulArguments {
  const MatmulOperands& operands;
  const MatmulLayout& layout;
  double alpha;
  double beta;
  Precision precision;
};

/// Products of T whose epilogue is an F of A, from and to tensors of c's extents.
template <class Exec, class T, class F, class A, class C, class Inputs, MatmulRows rows>
struct MatmulLaunch {
  using Results = MatmulResults<C, Inputs>;

  static void run(const Exec& exec, const MatmulArguments& call, const F& f) {
    if constexpr (backend_of<Exec>() == Backend::host) {
      run_on_host(exec, call, f);
    } else {
      with_matrix_unit<Exec, T>(call.precision,
                                [&]<class Unit>(std::type_identity<Unit>) { run_on_gpu<Unit>(exec, call, f); });
    }
  }

 private:
  static MatmulPlan plan_of(const Exec& exec, const MatmulArguments& call, const MatmulKernelShape& shape) {
    const MatmulOperands& operands = call.operands;
    MatmulPlan plan =
        make_matmul_plan(operands.function, element_type<T>(), call.precision, call.layout, shape, device_traits(exec));
    if (is_verbose()) report_call(operands.function, operands.tensor[MatmulTensors::a], plan.label);
    return plan;
  }

  static void run_on_host(const Exec& exec, const MatmulArguments& call, const F& f) {
    const MatmulPlan plan = plan_of(exec, call, {});
    launch<Kokkos::LaunchBounds<max_threads_per_team>>(
        exec, plan.label, teams_of(plan),
        HostMatmul<T, F, A, Results, rows>{data_of(call, plan), epilogue_of(call, f), results_of(call), plan.rows,
                                           plan.cols, maps_of(call, plan)});
  }

  template <class Unit>
  static void run_on_gpu(const Exec& exec, const MatmulArguments& call, const F& f) {
    using Kernel          = MatmulInTeam<Unit, MatmulForm::a_along_b_across, F, A, Results, rows>;
    using Tile            = typename Kernel::Tile;
    const MatmulPlan plan = plan_of(exec, call, {Tile::rows, Tile::cols, Kernel::team_size, Kernel::scratch});
    switch (plan.form) {
      case MatmulForm::a_along_b_across:
        return launch_form<Kernel>(exec, call, plan, f);
      case MatmulForm::a_along_b_along:
        return launch_form<MatmulInTeam<Unit, MatmulForm::a_along_b_along, F, A, Results, rows>>(exec, call, plan, f);
      case MatmulForm::a_across_b_across:  // rows with maps have no such form
        if constexpr (rows == MatmulRows::own) {
          launch_form<MatmulInTeam<Unit, MatmulForm::a_across_b_across, F, A, Results>>(exec, call, plan, f);
        }
    }
  }

  template <class Kernel>
  static void launch_form(const Exec& exec, const MatmulArguments& call, const MatmulPlan& plan, const F& f) {
    launch_tiles(exec, plan.label, teams_of(plan),
                 Kernel{data_of(call, plan), epilogue_of(call, f), results_of(call), plan.copies_a, plan.copies_b,
                        maps_of(call, plan)});
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

  static Teams teams_of(const MatmulPlan& plan) {
    return {plan.league_size, plan.team_size, plan.scratch_level, plan.scratch};
  }

  static BatchedMatrix<T> matrix_of(const MatmulLayout& layout, int number) {
    return {static_cast<const T*>(layout.data[number]), layout.row_stride[number], layout.col_stride[number],
            layout.map(number)};
  }

  static MatmulData<T> data_of(const MatmulArguments& call, const MatmulPlan& plan) {
    const MatmulLayout& layout = call.layout;
    MatmulData<T> data;
    data.batches    = layout.batches;
    data.rows       = layout.rows;
    data.cols       = layout.cols;
    data.inner      = layout.inner;
    data.a          = matrix_of(layout, MatmulTensors::a);
    data.b          = matrix_of(layout, MatmulTensors::b);
    data.row_blocks = plan.row_blocks;
    data.col_blocks = plan.col_blocks;
    data.group      = plan.group;
    return data;
  }

  static MatmulEpilogue<F, A> epilogue_of(const MatmulArguments& call, const F& f) {
    return {f, static_cast<A>(call.alpha), static_cast<A>(call.beta)};
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
};

template <class Exec, class T>
void MatmulCall<Exec, T>::run(const Exec& exec, const MatmulArguments& call) {
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

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_MATMUL_LAUNCH_HPP
