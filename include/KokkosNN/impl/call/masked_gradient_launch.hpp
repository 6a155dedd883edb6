// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_MASKED_GRADIENT_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_MASKED_GRADIENT_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/gradient_launch.hpp>
#include <KokkosNN/impl/call/mask_layout.hpp>
#include <KokkosNN/impl/call/masked_launch.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/mask_sums.hpp>
#include <KokkosNN/impl/host/masked_pairs.hpp>
#include <KokkosNN/impl/inputs/masked_pairs.hpp>
#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// The gradients of a masked softmax and its logarithm on their way to a launch: with respect to x in the kernels of
// gradients without a mask, with respect to a bias and to sinks in kernels of their own.

namespace KokkosNN::Impl {

/// The launches of the gradient with respect to x with one of the two kinds of masks.
template <class ExecutionSpace, RowOperator op, class X, class D, class Dx, bool has_element_mask>
struct MaskedPairsLauncher {
  static constexpr Backend backend = backend_of<ExecutionSpace>();
  using A                          = gradient_accumulator_t<X, D, Dx>;
  static constexpr int V           = pack_size(backend, gradient_input_bytes<X, D>(op), sizeof(Dx), sizeof(A));
  using Params                     = GradientParams<op, A, exp_accuracy_for<Dx>>;
  using Elements                   = std::conditional_t<has_element_mask, GradientElements<X, A>, NoGradientElements>;

  using Arguments = MaskedArguments<ExecutionSpace>;

  static void run(const ExecutionSpace& exec, const Arguments& call) {
    with_form<backend, false>(call.plan.form, [&](auto form) { run_rows<form()>(exec, call); });
  }

 private:
  using Tensor = GradientTensors;

  template <RowForm form>
  static void run_rows(const ExecutionSpace& exec, const Arguments& call) {
    constexpr bool has_logarithms = op == RowOperator::masked_log_softmax_backward;
    using Source = MaskedPairRows<MemoryRows<const X, form>, MemoryRows<const D, form>, Elements, has_logarithms>;
    const Source source{rows_of<const X, form>(call, Tensor::x), rows_of<const D, form>(call, Tensor::dy),
                        range_of(call.options.mask, call.layout.mask, call.layout.cols), elements_of(call)};
    const Params params(call.options.scale, call.options.masked_row);
    run_on_rows<op, V>(exec, call, params, source, rows_of<Dx, form>(call, Tensor::dx));
  }

  static Elements elements_of(const Arguments& call) {
    Elements elements;
    if constexpr (has_element_mask) {
      const MaskTensors& mask  = call.options.mask;
      const MaskLayout& layout = call.layout.mask;
      const double softcap     = mask.softcap;
      elements.keep            = kept_bytes(mask);
      elements.keep_stride     = layout.keep_col_stride;
      elements.keep_place      = layout.keep;
      elements.x               = softcap != 0 ? static_cast<const X*>(mask.x.data) : nullptr;
      elements.x_stride        = layout.x_col_stride;
      elements.x_place         = layout.x;
      elements.inner_scale     = softcap != 0 ? static_cast<A>(call.options.scale / softcap) : A(1);
      elements.scales          = pointer_to<X>(mask.scales);
      elements.scale_place     = layout.scales;
    }
    return elements;
  }
};

template <class ExecutionSpace, RowOperator op, class X, class D, class Dx>
struct Launcher<MaskedGradientCall<ExecutionSpace, op, X, D, Dx>> {
  static void run(const ExecutionSpace& exec, const MaskedArguments<ExecutionSpace>& call) {
    call.layout.has_element_mask ? MaskedPairsLauncher<ExecutionSpace, op, X, D, Dx, true>::run(exec, call)
                                 : MaskedPairsLauncher<ExecutionSpace, op, X, D, Dx, false>::run(exec, call);
  }
};

template <class ExecutionSpace, RowOperator op, class X, class D, class Dx>
void MaskedGradientCall<ExecutionSpace, op, X, D, Dx>::run(const ExecutionSpace& exec, const Arguments& call) {
  run_compiled<MaskedGradientCall>(exec, call);
}

template <class ExecutionSpace, class Y, class D>
struct Launcher<MaskSumsCall<ExecutionSpace, Y, D>> {
  static constexpr bool on_gpu = backend_of<ExecutionSpace>() != Backend::host;
  static constexpr int threads = on_gpu ? 128 : 1;
  static constexpr int columns = on_gpu ? 4 : 64;  ///< sums that a thread has at a time
  /// Teams that there should be, if rows allow; the same on every machine, as the order of the sums follows from it.
  static constexpr std::int64_t teams = 1024;

  using Arguments = typename MaskSumsCall<ExecutionSpace, Y, D>::Arguments;

  static void run(const ExecutionSpace& exec, const Arguments& call);

 private:
  using Terms = MaskTerms<Y, D>;

  static Terms terms_of(const Arguments& call, const MaskSums& at) {
    return {call.y, call.dy, kept_bytes(call.mask), limits_of(call.mask, at, at.cols), at};
  }

  template <class Kernel>
  static void launch_teams(const char* label, const ExecutionSpace& exec, std::int64_t units, const Kernel& kernel) {
    using Bounds = Kokkos::LaunchBounds<threads, least_residency(backend_of<ExecutionSpace>())>;
    using Policy = Kokkos::TeamPolicy<ExecutionSpace, Bounds>;
    Policy policy(exec, static_cast<int>(std::min<std::int64_t>(units, INT_MAX)), threads, 1);
    if (TeamSum<threads>::scratch_bytes > 0) {
      policy.set_scratch_size(0, Kokkos::PerTeam(TeamSum<threads>::scratch_bytes));
    }
    Kokkos::parallel_for(label, light(policy), kernel);
  }

  /// As in `launch`: the functor travels with the launch.
  template <class Policy>
  static auto light(const Policy& policy) {
    return Kokkos::Experimental::require(policy, Kokkos::Experimental::WorkItemProperty::HintLightWeight);
  }
};

template <class ExecutionSpace, class Y, class D>
void Launcher<MaskSumsCall<ExecutionSpace, Y, D>>::run(const ExecutionSpace& exec, const Arguments& call) {
  const MaskSums& sums = call.sums;
  if (sums.results() == 0) return;
  require_launching_thread(exec, "masked_softmax_backward");
  const auto ceil_div         = [](std::int64_t a, std::int64_t b) { return (a + b - 1) / b; };
  const std::int64_t tiles    = sums.sums_columns ? 1 : ceil_div(sums.cols, threads * columns);
  const std::int64_t at_once  = sums.sums_columns ? threads : 1;  // reduced rows that a team adds at a time
  const std::int64_t most     = std::max<std::int64_t>(1, ceil_div(sums.reduced, at_once));
  const std::int64_t chunks   = std::clamp<std::int64_t>(ceil_div(teams, sums.kept * tiles), 1, most);
  const std::int64_t rows     = sums.rows();
  const std::int64_t partials = chunks > 1 ? chunks * sums.results() : 0;
  const WorkspaceLease<ExecutionSpace, WorkspaceUse::sums> workspace(
      exec, static_cast<std::size_t>(std::max<std::int64_t>(1, 2 * rows + partials)) * sizeof(double));
  auto* const dots   = reinterpret_cast<double*>(workspace.data());
  auto* const totals = dots + rows;
  auto* const parts  = totals + rows;

  const SumResult<Y> result{call.result, call.result_is_float, call.sign};
  if (rows > 0) {
    launch_teams("KokkosNN::masked_softmax_backward[rows]", exec, rows,
                 SumRows<threads, Terms>{terms_of(call, call.whole), dots, totals});
  }
  launch_teams("KokkosNN::masked_softmax_backward[sums]", exec, sums.kept * tiles * chunks,
               SumChunks<threads, columns, Terms, Y>{terms_of(call, sums), dots, totals, result, parts, chunks, tiles});
  if (chunks > 1) {
    using Policy = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
    Kokkos::parallel_for("KokkosNN::masked_softmax_backward[chunks]", light(Policy(exec, 0, sums.results())),
                         JoinChunks<Y>{sums, parts, chunks, result});
  }
}

template <class ExecutionSpace, class Y, class D>
void MaskSumsCall<ExecutionSpace, Y, D>::run(const ExecutionSpace& exec, const Arguments& call) {
  run_compiled<MaskSumsCall>(exec, call);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_MASKED_GRADIENT_LAUNCH_HPP
