// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_LAUNCH_HPP
#define KOKKOSNN_IMPL_MPI_LAUNCH_HPP

#include <KokkosNN/impl/call/cross_entropy_launch.hpp>
#include <KokkosNN/impl/call/gradient_launch.hpp>
#include <KokkosNN/impl/call/rows_call.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/mpi/pair_exchange.hpp>
#include <KokkosNN/impl/mpi/rank_states.hpp>
#include <KokkosNN/impl/mpi/states.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

// Launches of an operator on rows whose columns are spread over ranks: `reduce` reads a rank's columns and leaves one
// or more pairs a row; `epilogue` takes the pairs of the whole rows, reads the columns again and writes. Both run the
// kernel of team_online with other sources and outputs. No code here depends on ranks.

namespace KokkosNN::Impl {

/// Number of threads that a team may have: strided rows need more registers.
constexpr int most_threads_online(RowOperator op, RowForm form) {
  return form == RowForm::strided ? std::min(max_threads_when_wide, most_threads_when_looping(op))
                                  : most_threads_when_looping(op);
}

template <RowForm form, class Map = MapOf<form>, class T>
MemoryRows<T, form, Map> rows_of(const RowsLayout& layout, int tensor, T* data) {
  return {data, layout.col_stride[tensor], layout.map(tensor)};
}

/// Launches team_online on the rows of a source and an output.
template <RowOperator op, int V, class Placement, class Exec, class Params, class Source, class Output>
void launch_online(const Exec& exec, const RowPlan& plan, const RowsLayout& layout, const Params& params,
                   const Source& source, const Output& output) {
  constexpr Backend backend = backend_of<Exec>();
  constexpr int max_threads = most_threads_online(op, Source::form);
  constexpr KernelKey key{RowStrategy::team_online,
                          RowKernel::row_in_team,
                          Source::form,
                          V,
                          packs_when_looping(backend, V, op, Source::form),
                          max_threads};
  if (plan.op != op || key_of(plan) != key) refuse_plan_without_kernel(plan);
  launch_row_in_team<max_threads>(
      exec, plan,
      RowInTeam<op, V, Placement, Params, Source, Output>::of(plan, source, output, params, layout.rows, layout.cols));
}

/// Plan of team_online on a shard, which may accumulate in more than its tensors hold.
template <class Exec>
RowPlan plan_online(RowOperator op, const Exec& exec, const RowsLayout& layout, const Tensors& types,
                    int accumulator_bytes, Determinism determinism) {
  RowProblem problem        = problem_of(op, layout, types);
  problem.accumulator_bytes = accumulator_bytes;
  problem.is_shard          = true;
  SoftmaxOptions options;
  options.determinism   = determinism;
  options.plan.strategy = RowStrategy::team_online;
  RowPlan plan          = make_plan(problem, device_traits(exec), options);
  const int max_threads = most_threads_online(op, plan.form);
  if (backend_of<Exec>() != Backend::host && plan.team_size > max_threads) {
    options.plan.team_size = max_threads;
    plan                   = make_plan(problem, device_traits(exec), options);
  }
  plan.kernel      = RowKernel::row_in_team;
  plan.max_threads = max_threads;
  return plan;
}

/// Runs f for each row or pair, a small task.
template <class Exec, class F>
void for_each_row(const Exec& exec, const std::string& label, std::int64_t n, const F& f) {
  if (n == 0) return;
  require_launching_thread(exec, label);
  const Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>> policy(exec, 0, n);
  Kokkos::parallel_for(
      label, Kokkos::Experimental::require(policy, Kokkos::Experimental::WorkItemProperty::HintLightWeight), f);
}

/// Sets states[i] to the identity.
template <class State>
struct ClearStates {
  State* states;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { states[i] = {}; }
};

/// Sets into[i] to merge(into[i], from[i]).
template <class State>
struct MergeStates {
  State* into;
  const State* from;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const { into[i] = merge(into[i], from[i]); }
};

/// Sets the states of a shard without columns, whatever is summed: the identity.
template <class Exec, class State>
void clear_states(const Exec& exec, std::int64_t n, State* states) {
  for_each_row(exec, "KokkosNN::mpi[empty]", n, ClearStates<State>{states});
}

/// Converts the pairs of whole rows to states, once instead of by every thread of a row.
template <class Params>
struct UnpackPairs {
  using State = typename Params::State;

  Params params;
  RankStates<ShardPair> pairs;
  State* states;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    State state = FromPair<State>::state(params, pairs.merged(row));
    if constexpr (requires { state.reference; }) {
      // A row with +inf has a log-sum-exp, but no other result.
      using A = decltype(state.reference);
      if (state.reference == Kokkos::Experimental::infinity_v<A>) state.sum = {Kokkos::Experimental::quiet_NaN_v<A>};
    }
    states[row] = state;
  }
};

/// Converts the states of whole rows to log-sum-exps.
template <class Params, class Y>
struct StoreLogSumExps {
  using State = typename Params::State;

  Params params;
  RankStates<ShardPair> pairs;
  Y* lse;
  RowMap map;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    lse[map(row)] = static_cast<Y>(
        Epilogue<RowOperator::logsumexp>::value(params, FromPair<State>::state(params, pairs.merged(row))));
  }
};

/// First half of softmax, log_softmax and logsumexp: (max, sum) of a shard's rows, for results of a given accuracy.
template <class Exec, class X, class A, ExpAccuracy accuracy>
struct ShardedReduction {
  static constexpr Backend backend = backend_of<Exec>();
  static constexpr int V           = pack_size(backend, sizeof(X), sizeof(X), sizeof(A));
  using Params                     = SoftmaxParams<A, accuracy>;

  /// Not inline, as ViewCall::run: users compile no kernels.
  static void run(const Exec& exec, const RowsLayout& layout, const SoftmaxOptions& options, const X* x,
                  ShardPair* pairs);
};

template <class Exec, class X, class A, ExpAccuracy accuracy>
void ShardedReduction<Exec, X, A, accuracy>::run(const Exec& exec, const RowsLayout& layout,
                                                 const SoftmaxOptions& options, const X* x, ShardPair* pairs) {
  constexpr RowOperator op = RowOperator::logsumexp;
  if (layout.cols == 0) return clear_states(exec, layout.rows, pairs);
  const RowPlan plan = plan_online(op, exec, layout, {tensor_of_type<X>()}, sizeof(A), options.determinism);
  with_form<backend, true>(plan.form, [&](auto form) {
    using Source = MemoryRows<const X, form()>;
    launch_online<op, V, typename Placements<op, Source, A, V, backend>::Online>(
        exec, plan, layout, Params(options.scale, options.masked_row), rows_of<form()>(layout, SoftmaxTensors::x, x),
        PairOutput{pairs});
  });
}

/// Second half of softmax, log_softmax and logsumexp: the results of a shard's columns. `states` is memory for a state
/// a row.
template <class Exec, RowOperator op, class X, class Y>
struct ShardedFinish {
  static constexpr Backend backend = backend_of<Exec>();
  using A                          = common_accumulator_t<X, Y>;
  static constexpr int V           = pack_size(backend, sizeof(X), sizeof(Y), sizeof(A));
  using Params                     = SoftmaxParams<A, exp_accuracy_for<Y>>;
  using State                      = typename Params::State;

  /// Not inline, as ViewCall::run: users compile no kernels.
  static void run(const Exec& exec, const RowsLayout& layout, const SoftmaxOptions& options, const X* x, Y* y,
                  const RankStates<ShardPair>& pairs, State* states);
};

template <class Exec, RowOperator op, class X, class Y>
void ShardedFinish<Exec, op, X, Y>::run(const Exec& exec, const RowsLayout& layout, const SoftmaxOptions& options,
                                        const X* x, Y* y, const RankStates<ShardPair>& pairs, State* states) {
  const Params params(options.scale, options.masked_row);
  const std::string name = std::string("KokkosNN::mpi::") + to_string(op);
  if constexpr (op == RowOperator::logsumexp) {
    for_each_row(exec, name + "[lse]", layout.rows,
                 StoreLogSumExps<Params, Y>{params, pairs, y, layout.map(SoftmaxTensors::y)});
  } else {
    if (layout.cols == 0) return;
    for_each_row(exec, name + "[states]", layout.rows, UnpackPairs<Params>{params, pairs, states});
    const Tensors types = {tensor_of_type<X>(), tensor_of_type<Y>()};
    const RowPlan plan  = plan_online(op, exec, layout, types, sizeof(A), options.determinism);
    with_form<backend, true>(plan.form, [&](auto form) {
      using Rows   = MemoryRows<const X, form()>;
      using Source = RowsWithStates<Rows, State>;
      launch_online<op, V, FinishingPlacement<typename Placements<op, Rows, A, V, backend>::Online>>(
          exec, plan, layout, params, Source{rows_of<form()>(layout, SoftmaxTensors::x, x), states},
          rows_of<form()>(layout, SoftmaxTensors::y, y));
    });
  }
}

/// Both halves of softmax_backward and log_softmax_backward on a shard's columns. `reduce` does without dx.
template <class Exec, RowOperator op, class Y, class D, class Dx>
struct ShardedGradient {
  static constexpr Backend backend = backend_of<Exec>();
  using A                          = gradient_accumulator_t<Y, D, Dx>;
  static constexpr int V           = pack_size(backend, gradient_input_bytes<Y, D>(op), sizeof(Dx), sizeof(A));
  using Params                     = GradientParams<op, A, exp_accuracy_for<Dx>>;
  using State                      = typename Params::State;

  /// Not inline, as ViewCall::run: users compile no kernels.
  static void reduce(const Exec& exec, const RowsLayout& layout, const SoftmaxOptions& options, const Y* y, const D* dy,
                     ShardPair* pairs);
  static void epilogue(const Exec& exec, const RowsLayout& layout, const SoftmaxOptions& options, const Y* y,
                       const D* dy, Dx* dx, const RankStates<ShardPair>& pairs, State* states);

 private:
  static Tensors types() { return {tensor_of_type<Y>(), tensor_of_type<Dx>(), tensor_of_type<D>()}; }

  template <RowForm form>
  static auto source_of(const RowsLayout& layout, const Y* y, const D* dy) {
    return PairRows<MemoryRows<const Y, form>, MemoryRows<const D, form>>{
        rows_of<form>(layout, GradientTensors::x, y), rows_of<form>(layout, GradientTensors::dy, dy)};
  }
};

template <class Exec, RowOperator op, class Y, class D, class Dx>
void ShardedGradient<Exec, op, Y, D, Dx>::reduce(const Exec& exec, const RowsLayout& layout,
                                                 const SoftmaxOptions& options, const Y* y, const D* dy,
                                                 ShardPair* pairs) {
  if (layout.cols == 0) return clear_states(exec, layout.rows, pairs);
  const RowPlan plan = plan_online(op, exec, layout, types(), sizeof(A), options.determinism);
  with_form<backend, true>(plan.form, [&](auto form) {
    const auto source = source_of<form()>(layout, y, dy);
    using Source      = std::decay_t<decltype(source)>;
    launch_online<op, V, typename Placements<op, Source, A, V, backend>::Online>(
        exec, plan, layout, Params(options.scale, options.masked_row), source, PairOutput{pairs});
  });
}

template <class Exec, RowOperator op, class Y, class D, class Dx>
void ShardedGradient<Exec, op, Y, D, Dx>::epilogue(const Exec& exec, const RowsLayout& layout,
                                                   const SoftmaxOptions& options, const Y* y, const D* dy, Dx* dx,
                                                   const RankStates<ShardPair>& pairs, State* states) {
  if (layout.cols == 0) return;
  const Params params(options.scale, options.masked_row);
  for_each_row(exec, std::string("KokkosNN::mpi::") + to_string(op) + "[states]", layout.rows,
               UnpackPairs<Params>{params, pairs, states});
  const RowPlan plan = plan_online(op, exec, layout, types(), sizeof(A), options.determinism);
  with_form<backend, true>(plan.form, [&](auto form) {
    const auto rows = source_of<form()>(layout, y, dy);
    using Rows      = std::decay_t<decltype(rows)>;
    using Source    = RowsWithStates<Rows, State>;
    launch_online<op, V, FinishingPlacement<typename Placements<op, Rows, A, V, backend>::Online>>(
        exec, plan, layout, params, Source{rows, states}, rows_of<form()>(layout, GradientTensors::dx, dx));
  });
}

/// Converts the pairs of whole rows to losses and log-sum-exps.
template <class Params, class A>
struct StoreLosses {
  using State = typename Params::State;

  Params params;
  Labels labels;
  RankStates<ShardPair> pairs;
  int pairs_a_row;
  OptionalScalars<A> loss;
  OptionalScalars<A> lse;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    ShardPair own[most_pairs];
    for (int i = 0; i < most_pairs; ++i) {
      if (i < pairs_a_row) own[i] = pairs.merged(row * pairs_a_row + i);
    }
    const State total = total_of(own);
    const Label label = params.label_of(labels(row));
    const A row_lse   = Epilogue<RowOperator::logsumexp>::value(params, total);
    A value           = label.is_ignored ? A(0) : Kokkos::Experimental::quiet_NaN_v<A>;
    if (label.is_class) {
      value = row_loss(params, total, static_cast<A>(own[1].lse()), params.weights(label.number), row_lse);
    }
    lse.store(row_lse, row);
    loss.store(value, row);
  }

 private:
  static constexpr int most_pairs = 3;

  KOKKOS_INLINE_FUNCTION State total_of(const ShardPair (&own)[most_pairs]) const {
    using Exponentials = RowState<A, decltype(State::sum)>;
    const auto total   = FromPair<Exponentials>::state(params, own[0]);
    if constexpr (Params::is_extended) {
      using Linear = typename State::Linear;
      return State::of(total, pairs_a_row > 2 ? static_cast<Linear>(own[2].sum) : Linear(0));
    } else {
      return total;
    }
  }
};

/// Both halves of a cross entropy's forward on a shard's columns, without the sum over rows.
template <class Exec, class X>
struct ShardedCrossEntropy {
  static constexpr Backend backend = backend_of<Exec>();
  static constexpr RowOperator op  = RowOperator::cross_entropy;
  using A                          = accumulator_t<X>;
  static constexpr int V           = pack_size(backend, sizeof(X), sizeof(X), sizeof(A));
  template <bool extended>
  using Params = CrossEntropyParams<op, A, exp_accuracy_for<A>, extended>;

  /// Inputs of a cross entropy's kernels besides logits and labels.
  struct Shared {
    ClassShard shard;
    ClassWeights<A> weights;
    const A* weight_of_classes;  ///< null: their number
    const A* z_loss_weight;      ///< null: 1

    bool is_extended(const CrossEntropyOptions& options) const {
      return Impl::is_extended(options, weights.data != nullptr, false);
    }
    static int pairs_a_row(const CrossEntropyOptions& options) { return options.label_smoothing != 0 ? 3 : 2; }

    template <bool extended>
    Params<extended> params(const CrossEntropyOptions& options) const {
      Params<extended> result(options, shard);
      result.weights           = weights;
      result.weight_of_classes = weight_of_classes;
      if constexpr (extended) result.z_loss_weight = z_loss_weight;
      return result;
    }
  };

  /// Not inline, as ViewCall::run: users compile no kernels.
  static void reduce(const Exec& exec, const RowsLayout& layout, const CrossEntropyOptions& options,
                     const Shared& shared, const X* logits, Labels labels, ShardPair* pairs);
  static void epilogue(const Exec& exec, std::int64_t rows, const CrossEntropyOptions& options, const Shared& shared,
                       const Labels& labels, const RankStates<ShardPair>& pairs, const OptionalScalars<A>& loss,
                       const OptionalScalars<A>& lse);

 private:
  template <bool extended>
  static void reduce_with(const Exec& exec, const RowsLayout& layout, const RowPlan& plan,
                          const CrossEntropyOptions& options, const Shared& shared, const X* logits,
                          const Labels& labels, ShardPair* pairs) {
    with_form<backend, true>(plan.form, [&](auto form) {
      using Map    = decltype(labels.map);  // one kind of map finds logits and labels
      using Source = LabelledRows<X, form(), A, extended, Map>;
      launch_online<op, V, typename Placements<op, Source, A, V, backend>::Online>(
          exec, plan, layout, shared.template params<extended>(options),
          Source{rows_of<form(), Map>(layout, CrossEntropyTensors::logits, logits), labels, {}, {}},
          LabelledPairOutput{pairs, Shared::pairs_a_row(options)});
    });
  }
};

template <class Exec, class X>
void ShardedCrossEntropy<Exec, X>::reduce(const Exec& exec, const RowsLayout& layout,
                                          const CrossEntropyOptions& options, const Shared& shared, const X* logits,
                                          Labels labels, ShardPair* pairs) {
  if (layout.cols == 0) return clear_states(exec, layout.rows * Shared::pairs_a_row(options), pairs);
  const RowPlan plan = plan_online(op, exec, layout, {tensor_of_type<X>()}, sizeof(A), options.determinism);
  if (shared.is_extended(options)) {
    reduce_with<true>(exec, layout, plan, options, shared, logits, labels, pairs);
  } else {
    reduce_with<false>(exec, layout, plan, options, shared, logits, labels, pairs);
  }
}

template <class Exec, class X>
void ShardedCrossEntropy<Exec, X>::epilogue(const Exec& exec, std::int64_t rows, const CrossEntropyOptions& options,
                                            const Shared& shared, const Labels& labels,
                                            const RankStates<ShardPair>& pairs, const OptionalScalars<A>& loss,
                                            const OptionalScalars<A>& lse) {
  const std::string label = "KokkosNN::mpi::cross_entropy[losses]";
  const auto start        = [&](const auto& params) {
    for_each_row(
        exec, label, rows,
        StoreLosses<std::decay_t<decltype(params)>, A>{params, labels, pairs, Shared::pairs_a_row(options), loss, lse});
  };
  shared.is_extended(options) ? start(shared.template params<true>(options))
                              : start(shared.template params<false>(options));
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MPI_LAUNCH_HPP
