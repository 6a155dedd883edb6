// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_RMS_NORM_ROPE_HPP
#define KOKKOSNN_IMPL_GPU_RMS_NORM_ROPE_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/pack_arithmetic.hpp>
#include <KokkosNN/impl/inputs/operands.hpp>
#include <KokkosNN/impl/inputs/rope_rows.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/operators/rms_norm.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// RMSNorm of rows, and the rotary embedding of what it gives, in one pass. One kernel serves all layouts and both
// forms, on hosts, too. A group of threads has some heads of a position, and keeps its angles meanwhile.

namespace KokkosNN::Impl {

/// Two packs of a row that are rotated together, or that lie behind the rotated elements: where they begin, counted
/// from a column whose alignment decides how they are moved, and how many of their elements lie in the row.
struct RopeUnit {
  std::int64_t from[2];
  int place[2];
  int end[2];  ///< of the elements from that column on
  bool is_rotated;

  KOKKOS_INLINE_FUNCTION std::int64_t column(int i) const { return from[i] + place[i]; }
  template <int V>
  KOKKOS_INLINE_FUNCTION int count(int i) const {
    const int left = end[i] - place[i];
    return left < V ? (left > 0 ? left : 0) : V;
  }
};

/// The units of rows: those of pairs, and those behind.
template <int V>
struct RopeUnits {
  int pairs;
  int rest;
  RopeForm form;

  KOKKOS_INLINE_FUNCTION int rotated() const { return (pairs + V - 1) / V; }
  KOKKOS_INLINE_FUNCTION int count() const { return rotated() + (rest + 2 * V - 1) / (2 * V); }

  KOKKOS_INLINE_FUNCTION RopeUnit unit(int number) const {
    if (number >= rotated()) {
      const int place = (number - rotated()) * 2 * V;
      return {{2 * pairs, 2 * pairs}, {place, place + V}, {rest, rest}, false};
    }
    const int place = number * V;
    if (form == RopeForm::half_rotated) return {{0, pairs}, {place, place}, {pairs, pairs}, true};
    return {{0, 0}, {2 * place, 2 * place + V}, {2 * pairs, 2 * pairs}, true};
  }
};

/// Normalises rows and rotates them. A thread keeps K units of a row; a longer row's others are read again. Rows that
/// are `aligned` consist of units of whole packs, and so do their weights.
template <class X, int V, int K, class Angles, RowForm form_of_rows>
struct RmsNormRope {
  using A     = accumulator_t<X>;
  using Norm  = RmsNorm<A>;
  using State = ReducedState<typename Norm::Reduction>;

  RopeRows<X> rows;
  Angles angles;
  typename Norm::Params norm;
  ColumnOperand<X, A> weight;
  std::int64_t weight_head_bytes;  ///< from a head's weights to the next one's
  RopeForm form;
  int threads_per_row;
  int groups_per_team;
  int heads_per_group;
  std::int64_t head_parts;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const RowGroup group      = RowGroup::of(team, threads_per_row);
    const std::int64_t items  = rows.outer.extent * rows.inner.extent * head_parts;
    const std::int64_t stride = std::int64_t(team.league_size()) * groups_per_team;
    int round                 = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t block = std::int64_t(team.league_rank()) * groups_per_team; block < items; block += stride) {
      KOKKOS_IF_ON_DEVICE((do_heads(team, group, block + group.index, items, round);))
      KOKKOS_IF_ON_HOST((for (int i = 0; i < groups_per_team; ++i) do_heads(team, group, block + i, items, round);))
    }
  }

 private:
  using P                        = Pack<X, V>;
  static constexpr bool is_whole = form_of_rows == RowForm::aligned;

  struct Pair {
    P pack[2];
  };
  struct Kept {
    Pair pair[K];
  };
  struct Turn {
    A cos[V];
    A sin[V];
  };
  /// A row of x and y, and its head's weights.
  struct At {
    MemoryRow<const X, form_of_rows> x;
    MemoryRow<X, form_of_rows> y;
    ColumnOperand<X, A> weight;
  };

  KOKKOS_INLINE_FUNCTION RopeUnits<V> units() const {
    return {static_cast<int>(rows.pairs), static_cast<int>(rows.rest), form};
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_heads(const Member& team, const RowGroup& group, std::int64_t item, std::int64_t items,
                                       int& round) const {
    // Groups without a row take part in shuffles and barriers, but touch no memory.
    const bool is_item       = item < items;
    const std::int64_t index = is_item ? item / head_parts : 0;
    const std::int64_t part  = is_item ? item - index * head_parts : 0;
    const RopePlace at       = rows.place(index);
    const RopeUnits<V> all   = units();
    Turn turns[K];
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) turns[k] = turn_of(at.position, group.rank + k * group.size, all);
    // A head's units are asked for before the one in front of it is written.
    const auto head_of = [&](int i) {
      const std::int64_t head = part + i * head_parts;
      return is_item && i < heads_per_group && head < rows.heads.extent ? head : -1;
    };
    Kept kept = loaded(group, at, head_of(0), all);
    KOKKOSNN_IMPL_NO_UNROLL
    for (int i = 0; i < heads_per_group; ++i) {
      const Kept next = loaded(group, at, head_of(i + 1), all);
      do_row(team, group, at, head_of(i), all, turns, kept, round++);
      kept = next;
    }
  }

  /// Angles of a unit's pairs, where it has some.
  KOKKOS_INLINE_FUNCTION Turn turn_of(std::int64_t position, int number, const RopeUnits<V>& all) const {
    Turn turn      = {};
    const int left = number < all.rotated() ? all.pairs - number * V : 0;
    if (is_whole ? left > 0 : left >= V) {
      angles.load(position, std::int64_t(number) * V, turn.cos, turn.sin);
      return turn;
    }
    if constexpr (is_whole) return turn;
    KOKKOSNN_IMPL_NO_UNROLL
    for (int j = 0; j < left; ++j) {
      A cos[1], sin[1];
      angles.load(position, std::int64_t(number) * V + j, cos, sin);
      KOKKOSNN_IMPL_UNROLL
      for (int v = 0; v < V; ++v) {
        if (v != j) continue;
        turn.cos[v] = cos[0];
        turn.sin[v] = sin[0];
      }
    }
    return turn;
  }

  KOKKOS_INLINE_FUNCTION At row_at(const RopePlace& at, std::int64_t head) const {
    At row{{rows.x + at.x + head * rows.heads.x_stride, rows.x_dim_stride},
           {rows.y + at.y + head * rows.heads.y_stride, rows.y_dim_stride},
           weight};
    if (weight.data.exists()) {
      row.weight.data.data = static_cast<const char*>(weight.data.data) + head * weight_head_bytes;
    }
    return row;
  }

  /// Units of a head's row that a thread keeps, or none for -1.
  KOKKOS_INLINE_FUNCTION Kept loaded(const RowGroup& group, const RopePlace& at, std::int64_t head,
                                     const RopeUnits<V>& all) const {
    Kept kept;
    if (head < 0) return kept;
    const At row = row_at(at, head);
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int number = group.rank + k * group.size;
      if (number < all.count()) kept.pair[k] = loaded(row, all.unit(number));
    }
    return kept;
  }

  /// The row of a head, or none for -1.
  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_row(const Member& team, const RowGroup& group, const RopePlace& at, std::int64_t head,
                                     const RopeUnits<V>& all, const Turn (&turns)[K], const Kept& kept,
                                     int round) const {
    const bool has_row = head >= 0;
    const At row       = row_at(at, has_row ? head : 0);
    const int count    = has_row ? all.count() : 0;
    State mine;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      if (group.rank + k * group.size < count) add_squares(mine, kept.pair[k]);
    }
    KOKKOSNN_IMPL_NO_UNROLL
    for (int number = group.rank + K * group.size; number < count; number += group.size) {
      add_squares(mine, loaded(row, all.unit(number)));
    }
    const State warp  = merge_warp(norm, mine, group.lanes());
    const State total = exchange(norm, team, group, static_cast<State*>(nullptr), round, warp);
    const typename Norm::Epilogue epilogue(norm, total, ScalarsOf<Norm>{}, rows.dim);
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const int number = group.rank + k * group.size;
      if (number < count) write(row, all.unit(number), kept.pair[k], turns[k], epilogue);
    }
    KOKKOSNN_IMPL_NO_UNROLL
    for (int number = group.rank + K * group.size; number < count; number += group.size) {
      const RopeUnit unit = all.unit(number);
      write(row, unit, loaded(row, unit), turn_of(at.position, number, all), epilogue);
    }
  }

  KOKKOS_INLINE_FUNCTION Pair loaded(const At& row, const RopeUnit& unit) const {
    Pair pair;
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < 2; ++i) {
      const auto columns = row.x.template from<V>(unit.from[i]);
      if constexpr (is_whole) {
        pair.pack[i] = columns.template load_inner_pack<V>(unit.place[i]);
      } else {
        pair.pack[i] = columns.template load_pack<V>(unit.place[i], TileBounds{unit.end[i]}, X(0));
      }
    }
    return pair;
  }

  /// Adds the squares of a unit, whose elements outside of the row are 0.
  KOKKOS_INLINE_FUNCTION static void add_squares(State& state, const Pair& pair) {
    Pack<A, V> squares = filled<A, V>(A(0));
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < 2; ++i) {
      Pack<A, V> x;
      widen(x, pair.pack[i]);
      KOKKOSNN_IMPL_UNROLL
      for (int v = 0; v < V; ++v) squares[v] = multiply_add(x[v], x[v], squares[v]);
    }
    state.sum[0] = state.sum[0] + WideOf<A>{folded<1>(squares)[0]};
  }

  KOKKOS_INLINE_FUNCTION void write(const At& row, const RopeUnit& unit, const Pair& pair, const Turn& turn,
                                    const typename Norm::Epilogue& epilogue) const {
    Pack<A, V> normed[2];
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < 2; ++i) {
      Pack<A, V> x, weights;
      widen(x, pair.pack[i]);
      if constexpr (is_whole) {
        row.weight.load_aligned(weights, unit.column(i));
      } else if (unit.count<V>(i) == V) {
        row.weight.load(weights, unit.column(i), WholePack<V>{});
      } else {
        row.weight.load(weights, unit.column(i), unit.count<V>(i));
      }
      KOKKOSNN_IMPL_UNROLL
      for (int v = 0; v < V; ++v) normed[i][v] = epilogue(x[v], weights[v]);
    }
    if (unit.is_rotated) rotate(normed, turn);
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < 2; ++i) {
      P result;
      KOKKOSNN_IMPL_UNROLL
      for (int v = 0; v < V; ++v) result[v] = static_cast<X>(normed[i][v]);
      const auto columns = row.y.template from<V>(unit.from[i]);
      if constexpr (is_whole) {
        columns.template store_whole_pack<V>(result, unit.place[i]);
      } else {
        columns.template store_pack<V>(result, unit.place[i], TileBounds{unit.end[i]});
      }
    }
  }

  KOKKOS_INLINE_FUNCTION void rotate(Pack<A, V> (&normed)[2], const Turn& turn) const {
    if (form == RopeForm::half_rotated || V == 1) {
      KOKKOSNN_IMPL_UNROLL
      for (int v = 0; v < V; ++v) rotate_pair(normed[0][v], normed[1][v], turn.cos[v], turn.sin[v]);
      return;
    }
    KOKKOSNN_IMPL_UNROLL
    for (int v = 0; v < V; ++v) {  // neighbours are a pair
      Pack<A, V>& pack = normed[2 * v / V];
      rotate_pair(pack[2 * v % V], pack[(2 * v + 1) % V], turn.cos[v], turn.sin[v]);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_RMS_NORM_ROPE_HPP
