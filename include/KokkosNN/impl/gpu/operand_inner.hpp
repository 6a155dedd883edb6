// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_OPERAND_INNER_HPP
#define KOKKOSNN_IMPL_GPU_OPERAND_INNER_HPP

#include <KokkosNN/impl/gpu/gradient_inner_lanes.hpp>
#include <KokkosNN/impl/inputs/operands.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// inner_lanes for any operator that is a struct (inputs/operands.hpp): a pack holds neighbouring rows at one column.

namespace KokkosNN::Impl {

/// Rows side by side of one type: inputs, values that are read, output, values that are written.
template <class Operator, class T>
struct InnerOperands : SumOutput<Operator, InnerRows<T>> {
  using A = typename Operator::accumulator;

  InnerRows<const T> input[Operator::row_inputs];
  Kokkos::Array<RowValues<const A, RowMap>, Operator::row_scalars> scalars;
  InnerRows<T> output;
  Kokkos::Array<RowValues<A, RowMap>, Operator::row_outputs> values;
};

template <int V, int K, class Params, class T>
struct OperandInner {
  using Operator = typename Params::Operator;
  using A        = typename Params::accumulator;
  using State    = typename Params::State;
  using Epilogue = typename Operator::Epilogue;
  using HeldRows = HeldColumn<T, V, K>[held_rows<Operator>];
  /// Rows that only the epilogue reads.
  struct NoRows {};
  struct LateRows {
    HeldColumn<T, V, K> input[Operator::late_inputs > 0 ? Operator::late_inputs : 1];
  };
  using Late = std::conditional_t<(Operator::late_inputs > 0), LateRows, NoRows>;

  InnerOperands<Operator, T> operands;
  Params params;
  std::int64_t outer;
  std::int64_t inner;
  int lanes;  // packs side by side
  int scratch_level;
  int scratch_bytes;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    KOKKOS_IF_ON_DEVICE((for_blocks_of_team(team);))
    KOKKOS_IF_ON_HOST((for_blocks_of_thread(team);))
  }

 private:
  /// Where a thread is: row i of outer index o and the V - 1 behind it, every so many columns of them.
  struct Place {
    std::int64_t o;
    std::int64_t i;
    TileBounds window;
    std::int64_t first;
    int depth;
  };

  KOKKOS_INLINE_FUNCTION Place place_of(std::int64_t o, std::int64_t i, std::int64_t first, int depth) const {
    return {o, i, {inner - i < V ? static_cast<int>(inner - i) : V}, first, depth};
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void for_blocks_of_team(const Member& team) const {
    auto* slots      = static_cast<Pack<State, V>*>(team_scratch(team, scratch_level, scratch_bytes));
    const auto place = InnerPlace::of(team, lanes);
    for_inner_blocks(team, outer, inner, lanes * V, [&](std::int64_t o, std::int64_t begin) {
      do_block(place_of(o, begin + std::int64_t(place.lane) * V, place.first, place.depth), place.first == 0,
               [&](const Pack<State, V>& own) {
                 if (place.speakers() > 1) team.team_barrier();  // the slots may still be read
                 return join_inner(team, place, own, slots, StateJoin{});
               });
    });
  }

  /// A host's thread has blocks by itself.
  template <class Member>
  KOKKOS_INLINE_FUNCTION void for_blocks_of_thread(const Member& team) const {
    const std::int64_t blocks  = (inner + V - 1) / V;
    const std::int64_t threads = std::int64_t(team.league_size()) * team.team_size();
    for (std::int64_t b = std::int64_t(team.league_rank()) * team.team_size() + team.team_rank(); b < outer * blocks;
         b += threads) {
      do_block(place_of(b / blocks, b % blocks * V, 0, 1), true, [](const auto& own) { return own; });
    }
  }

  template <class Join>
  KOKKOS_INLINE_FUNCTION void do_block(const Place& at, bool writes_values, const Join& join) const {
    HeldRows held;
    ScalarsOf<Operator> scalars[V];
    for (int v = 0; v < V; ++v) {
      scalars[v] = values_of_row(operands.scalars, at.o * inner + (v < at.window.end ? at.i + v : 0));
    }

    const std::int64_t step = std::int64_t(K) * at.depth;
    Pack<State, V> own;
    std::int64_t end = 0;  // of what was read
    for (; end < params.cols; end += step) {
      load(held, at, end + at.first);
      add_to(own, held, at, end + at.first, scalars);
    }
    const Pack<State, V> all = join(own);

    const auto out = operands.output.template column<V>(at.o, at.i);
    Epilogue epilogue[V];
    for (int v = 0; v < V; ++v) {
      epilogue[v] = Epilogue(params.own, all[v], scalars[v], params.cols);
      if (writes_values && v < at.window.end) store_row_outputs(operands.values, at.o * inner + at.i + v, epilogue[v]);
    }
    // Backward: what was read last is still held, and what was read before that may be in a cache.
    const std::int64_t last = end - step;
    for (std::int64_t c = last; writes_rows<Operator> && c >= 0; c -= step) {
      if (c < last) load(held, at, c + at.first);
      Late late;
      load_late(late, at, c + at.first);
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) {
        const std::int64_t column = anew(c + at.first + k * std::int64_t(at.depth));
        if (column >= params.cols) continue;
        Pack<T, V> result;
        show(held, late, k, column, [&](const auto& x, const auto& columns, auto) {
          for (int v = 0; v < V; ++v) result[v] = static_cast<T>(columns.apply(v, x, epilogue[v]));
        });
        store_sum(held, at, k, column);
        out.at(column).template store_pack<V>(result, 0, at.window);
      }
    }
  }

  KOKKOS_INLINE_FUNCTION void load_input(HeldColumn<T, V, K>& column, int i, const Place& at,
                                         std::int64_t first) const {
    column.load(operands.input[i].template column<V>(at.o, at.i), at.window, first, at.depth, params.cols);
  }

  KOKKOS_INLINE_FUNCTION void load(HeldRows& held, const Place& at, std::int64_t first) const {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < held_rows<Operator>; ++i) load_input(held[i], i, at, first);
    if constexpr (Operator::sums_inputs) {
      HeldColumn<T, V, K> other;
      load_input(other, 1, at, first);
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) held[0].pack[k].template add<A>(other.pack[k]);
    }
  }
  KOKKOS_INLINE_FUNCTION void load_late([[maybe_unused]] Late& late, [[maybe_unused]] const Place& at,
                                        [[maybe_unused]] std::int64_t first) const {
    if constexpr (Operator::late_inputs > 0) {
      for (int i = 0; i < Operator::late_inputs; ++i) load_input(late.input[i], held_rows<Operator> + i, at, first);
    }
  }

  /// Stores the k-th pack of the sum, if the operator writes that.
  KOKKOS_INLINE_FUNCTION void store_sum([[maybe_unused]] const HeldRows& held, [[maybe_unused]] const Place& at,
                                        [[maybe_unused]] int k, [[maybe_unused]] std::int64_t column) const {
    if constexpr (Operator::sums_inputs) {
      held[0].pack[k].show([&](const Pack<T, V>& sum) {
        operands.sum.template column<V>(at.o, at.i).at(column).template store_pack<V>(sum, 0, at.window);
      });
    }
  }

  KOKKOS_INLINE_FUNCTION void add_to(Pack<State, V>& own, const HeldRows& held, const Place& at, std::int64_t first,
                                     const ScalarsOf<Operator> (&scalars)[V]) const {
    const auto has = [&](int k) { return first + k * std::int64_t(at.depth) < params.cols; };
    int count      = 0;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) count += has(k);
    Operator::Reduction::template add<Operator, V>(own.value, params.own, scalars, count, [&](const auto& f) {
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) {
        if (has(k)) show(held, nullptr, k, first + k * std::int64_t(at.depth), f);
      }
    });
  }

  /// f(packs of the rows, of the column operands, V) for the k-th pack, at a column: all of its rows have one. `late`
  /// is null or has the rows that come last.
  template <class LatePacks, class F>
  KOKKOS_INLINE_FUNCTION void show(const HeldRows& held, [[maybe_unused]] const LatePacks& late, int k,
                                   std::int64_t column, const F& f) const {
    constexpr int own       = held_rows<Operator>;
    constexpr bool has_late = !std::is_null_pointer_v<LatePacks> && Operator::late_inputs > 0;
    Pack<A, V> x[own + (has_late ? Operator::late_inputs : 0)];
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < own; ++i) {
      held[i].pack[k].show_again(params.zero, [&](const Pack<T, V>& raw) { widen(x[i], raw); });
    }
    if constexpr (has_late) {
      for (int i = 0; i < Operator::late_inputs; ++i) {
        late.input[i].pack[k].show([&](const Pack<T, V>& raw) { widen(x[own + i], raw); });
      }
    }
    ColumnPacks<Operator, V> columns;
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < Operator::column_inputs; ++j)
      columns.pack[j] = filled<A, V>(params.columns[j].load_one(column));
    f(x, columns, WholePack<V>{});
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_OPERAND_INNER_HPP
