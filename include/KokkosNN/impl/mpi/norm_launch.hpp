// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_NORM_LAUNCH_HPP
#define KOKKOSNN_IMPL_MPI_NORM_LAUNCH_HPP

#include <KokkosNN/impl/call/column_sums_launch.hpp>
#include <KokkosNN/impl/call/operand_launch.hpp>
#include <KokkosNN/impl/mpi/launch.hpp>
#include <KokkosNN/impl/mpi/pair_exchange.hpp>
#include <KokkosNN/impl/mpi/rank_states.hpp>
#include <KokkosNN/impl/mpi/states.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

// Launches of the operators that are one struct (inputs/operands.hpp) on rows whose columns are spread over ranks, as
// launch.hpp has them: `reduce` leaves the states of a rank's columns, `epilogue` makes each row's Operator::Epilogue
// of the whole row's state, once, and the rows' kernel reads it as it reads other values of a row.

namespace KokkosNN::Impl {

/// States that ranks exchange of a row: `a_row` of `type`, which count the columns, too.
template <class Reduction>
struct ShardStateOf;

/// Sums: a pair (0, sum) each, and one of the number of columns.
template <class A, int n>
struct ShardStateOf<Sums<A, n>> {
  using type                 = ShardPair;
  static constexpr int a_row = n + 1;

  KOKKOS_INLINE_FUNCTION static void store(const Sums<A, n>& sums, std::int64_t cols, ShardPair* to) {
    for (int i = 0; i < n; ++i) to[i] = {0, rounded(sums.sum[i])};
    to[n] = {0, static_cast<double>(cols)};
  }
  KOKKOS_INLINE_FUNCTION static std::int64_t columns(const ShardPair* from) {
    return static_cast<std::int64_t>(from[n].sum);
  }
  KOKKOS_INLINE_FUNCTION static Sums<A, n> load(const ShardPair* from) {
    Sums<A, n> sums;
    for (int i = 0; i < n; ++i) sums.sum[i] = WideOf<A>{from[i].sum};
    return sums;
  }
};

template <class A>
struct ShardStateOf<Moments<A>> {
  using type                 = ShardMoments;
  using W                    = WideOf<A>;
  static constexpr int a_row = 1;

  KOKKOS_INLINE_FUNCTION static void store(const Moments<A>& moments, std::int64_t, ShardMoments* to) {
    *to = {moments.count, DoubleDouble<double>{moments.mean}, DoubleDouble<double>{moments.squares}};
  }
  KOKKOS_INLINE_FUNCTION static std::int64_t columns(const ShardMoments* from) {
    return static_cast<std::int64_t>(from->count);
  }
  KOKKOS_INLINE_FUNCTION static Moments<A> load(const ShardMoments* from) {
    if constexpr (std::is_same_v<W, double>) {
      return {from->count, rounded(from->mean), rounded(from->squares)};
    } else {
      return {from->count, from->mean, from->squares};
    }
  }
};

/// Output of the states of a shard's rows.
template <class Reduction>
struct NormStateOutput {
  using Shard                        = ShardStateOf<Reduction>;
  static constexpr bool takes_states = true;

  typename Shard::type* states;

  template <class Params>
  KOKKOS_INLINE_FUNCTION void store_state(const Params& params, const ReducedState<Reduction>& state,
                                          std::int64_t row) const {
    Shard::store(state, params.cols, states + row * Shard::a_row);
  }
};

/// The operator whose rows' epilogues are made: it reads the words of one a row, and reduces nothing.
template <class OperatorT>
struct FinishingOperator : OperatorT {
  using A                          = typename OperatorT::accumulator;
  using Made                       = typename OperatorT::Epilogue;
  static constexpr int row_scalars = static_cast<int>(sizeof(Made) / sizeof(A));
  static constexpr int row_outputs = 0;
  static_assert(sizeof(Made) == row_scalars * sizeof(A), "an epilogue is numbers of the accumulator's type");

  struct Epilogue : Made {
    KOKKOS_DEFAULTED_FUNCTION Epilogue() = default;
    KOKKOS_INLINE_FUNCTION Epilogue(const typename OperatorT::Params&, const typename OperatorT::Reduction&,
                                    const ScalarsOf<FinishingOperator>& words, std::int64_t)
        : Made(Kokkos::bit_cast<Made>(words)) {}
  };
};

/// Makes the epilogues of whole rows, and writes the values that rows have beside their elements.
template <class Operator>
struct MakeEpilogues {
  using A         = typename Operator::accumulator;
  using Reduction = typename Operator::Reduction;
  using Shard     = ShardStateOf<Reduction>;

  typename Operator::Params params;
  RankStates<typename Shard::type> states;
  Kokkos::Array<RowValues<const A, RowMap>, Operator::row_scalars> scalars;
  Kokkos::Array<RowValues<A, RowMap>, Operator::row_outputs> values;
  typename Operator::Epilogue* made;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    typename Shard::type own[Shard::a_row];
    for (int i = 0; i < Shard::a_row; ++i) own[i] = states.merged(row * Shard::a_row + i);
    const std::int64_t cols = Shard::columns(own);
    if (cols == 0) return;  // of no rank: nothing is written
    const typename Operator::Epilogue epilogue(params, Shard::load(own), values_of_row(scalars, row), cols);
    store_row_outputs(values, row, epilogue);
    made[row] = epilogue;
  }
};

/// Both halves of a norm, or of its gradient by the rows, on a shard's columns; and the gradients of weights, which
/// exchange nothing.
template <class Exec, RowOperator op, class T>
struct ShardedNorm {
  static constexpr Backend backend = backend_of<Exec>();
  using A                          = accumulator_t<T>;
  static constexpr int V           = pack_size(backend, sizeof(T), sizeof(T), sizeof(A));
  using Options                    = typename OptionsOf<op>::type;
  using Operator                   = typename OperatorFor<op, A>::type;
  using Made                       = typename Operator::Epilogue;
  using Shard                      = ShardStateOf<typename Operator::Reduction>;
  using State                      = typename Shard::type;

  /// Not inline, as ViewCall::run: users compile no kernels.
  static void reduce(const Exec& exec, const RowsLayout& layout, const Tensors& tensors, const Options& options,
                     State* states);
  static void epilogue(const Exec& exec, const RowsLayout& layout, const Tensors& tensors, const Options& options,
                       const RankStates<State>& states, Made* made);
  static void sum_weight_gradients(const Exec& exec, const RowsLayout& layout, const Tensors& tensors);

 private:
  using Numbers = OperandNumbers<Operator>;

  static RowPlan plan_of(const Exec& exec, const RowsLayout& layout, const Options& options) {
    const Tensor rows   = tensor_of_type<T>();
    const Tensors types = {rows, rows, row_tensors(op) > 1 ? rows : Tensor{}};
    return plan_online(op, exec, layout, types, sizeof(A), options.determinism);
  }

  template <class OfOperator, RowForm form>
  static OperandRows<OfOperator, T, form> source_of(const RowsLayout& layout, const Tensors& tensors) {
    OperandRows<OfOperator, T, form> source;
    for (int i = 0; i < Operator::row_inputs; ++i) {
      const int number = Numbers::input(i);
      source.input[i]  = rows_of<form>(layout, number, static_cast<const T*>(tensors[number].data));
    }
    return source;
  }

  template <class OfOperator, RowForm form>
  using Online = typename Placements<op, OperandRows<OfOperator, T, form>, A, V, backend>::Online;
};

template <class Exec, RowOperator op, class T>
void ShardedNorm<Exec, op, T>::reduce(const Exec& exec, const RowsLayout& layout, const Tensors& tensors,
                                      const Options& options, State* states) {
  if (layout.cols == 0) return clear_states(exec, layout.rows * Shard::a_row, states);
  const RowPlan plan = plan_of(exec, layout, options);
  with_form<backend, false>(plan.form, [&](auto form) {
    auto source = source_of<Operator, form()>(layout, tensors);
    Numbers::set_values(source.scalars, layout, tensors);
    launch_online<op, V, Online<Operator, form()>>(
        exec, plan, layout, Numbers::template params<OperandParams<Operator, T>>(options, layout, tensors), source,
        NormStateOutput<typename Operator::Reduction>{states});
  });
}

template <class Exec, RowOperator op, class T>
void ShardedNorm<Exec, op, T>::epilogue(const Exec& exec, const RowsLayout& layout, const Tensors& tensors,
                                        const Options& options, const RankStates<State>& states, Made* made) {
  using Finishing = FinishingOperator<Operator>;
  MakeEpilogues<Operator> make{typename Operator::Params(options), states, {}, {}, made};
  Numbers::set_values(make.scalars, layout, tensors);
  Numbers::set_values(make.values, layout, tensors);
  for_each_row(exec, std::string("KokkosNN::mpi::") + to_string(op) + "[states]", layout.rows, make);
  if (layout.cols == 0) return;

  constexpr std::int64_t words = Finishing::row_scalars;
  const RowMap map_of_words    = row_map(&layout.rows, &words, 1);
  const RowPlan plan           = plan_of(exec, layout, options);
  with_form<backend, false>(plan.form, [&](auto form) {
    auto source = source_of<Finishing, form()>(layout, tensors);
    for (int i = 0; i < Finishing::row_scalars; ++i) {
      source.scalars[i] = {reinterpret_cast<const A*>(made) + i, map_of_words};
    }
    OperandOutput<Finishing, T, form()> to;
    to.rows =
        rows_of<form()>(layout, Numbers::output, static_cast<T*>(const_cast<void*>(tensors[Numbers::output].data)));
    launch_online<op, V, FinishingPlacement<Online<Finishing, form()>>>(
        exec, plan, layout, Numbers::template params<OperandParams<Finishing, T>>(options, layout, tensors), source,
        to);
  });
}

template <class Exec, RowOperator op, class T>
void ShardedNorm<Exec, op, T>::sum_weight_gradients([[maybe_unused]] const Exec& exec,
                                                    [[maybe_unused]] const RowsLayout& layout,
                                                    [[maybe_unused]] const Tensors& tensors) {
  if constexpr (Operator::has_weight_gradients) {
    if (layout.sums_rows && layout.cols > 0) Numbers::template sum_weight_gradients<T>(exec, op, layout, tensors);
  }
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MPI_NORM_LAUNCH_HPP
