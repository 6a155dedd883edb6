// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_KERNELS_INNER_LANES_HPP
#define KOKKOSNN_IMPL_KERNELS_INNER_LANES_HPP

#include <KokkosNN/impl/primitives/finish.hpp>
#include <KokkosNN/impl/primitives/lanes.hpp>
#include <KokkosNN/impl/primitives/tile.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

// inner_lanes: lanes run over a contiguous axis and threads over the reduced one. A pack holds neighbouring rows at one
// column; everything that row_in_team does to the elements of a pack together is done here lane by lane of the pack.

namespace KokkosNN::Impl {

/// Packs of neighbouring rows, one for each column c of one outer index.
template <class T, int V>
struct InnerColumn {
  using value_type = std::remove_const_t<T>;

  T* base;
  std::int64_t col_stride;
  std::int64_t inner_stride;
  bool whole_packs;

  KOKKOS_INLINE_FUNCTION MemoryStretch<T> at(std::int64_t c) const {
    return {base + c * col_stride, inner_stride, whole_packs};
  }
};

/// Rows side by side: `map` finds the first row of an outer index, rows lie `inner_stride` apart, columns `col_stride`.
template <class T>
struct InnerRows {
  using value_type = std::remove_const_t<T>;

  T* data;
  std::int64_t col_stride;
  std::int64_t inner_stride;
  RowMap map;

  /// The packs from row i of outer index o on.
  template <int V>
  KOKKOS_INLINE_FUNCTION InnerColumn<T, V> column(std::int64_t o, std::int64_t i) const {
    T* const base = data + map(o) + i * inner_stride;
    const bool whole =
        moves_whole_packs<T, V>(base, inner_stride) && moves_whole_packs<T, V>(base + col_stride, inner_stride);
    return {base, col_stride, inner_stride, whole};
  }
};

/// One pack of rows: what RowState is to one row.
template <class Math, int V>
struct PackState {
  Pack<typename Math::accumulator, V> reference;
  Pack<typename Math::wide_sum, V> sum;

  KOKKOS_INLINE_FUNCTION typename Math::State of(int v) const { return {reference[v], sum[v]}; }
};

template <RowOperator op, int V, int K, class Math, class Source, class Sink>
struct InnerLanes {
  using A        = typename Math::accumulator;
  using Finisher = Finish<op>;
  using T        = typename Source::value_type;

  Source source;
  Sink sink;
  Math math;
  std::int64_t outer;
  std::int64_t inner;
  std::int64_t cols;
  int lanes;  // packs side by side
  int scratch_level;
  int scratch_bytes;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const std::int64_t width  = std::int64_t(lanes) * V;
    const std::int64_t blocks = (inner + width - 1) / width;
    void* const slots         = team_scratch(team, scratch_level, scratch_bytes);
    for (std::int64_t b = team.league_rank(); b < outer * blocks; b += team.league_size()) {
      const std::int64_t o = b / blocks;
      do_block(team, o, (b - o * blocks) * width, slots);
    }
  }

 private:
  /// This thread's place: pack column `lane`, and every `depth`-th position of the reduced axis from `first` on.
  struct Place {
    int lane;
    int first;
    int depth;
  };

  struct Column {
    Pack<A, V> pack[K];
  };

  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_block(const Member& team, std::int64_t o, std::int64_t inner_begin,
                                       void* slots) const {
    const Place place{team.team_rank() % lanes, team.team_rank() / lanes, team.team_size() / lanes};
    const std::int64_t i     = inner_begin + std::int64_t(place.lane) * V;
    const Window window      = {0, inner - i < V ? static_cast<int>(inner - i) : V};
    const auto input         = source.template column<V>(o, i);
    const std::int64_t depth = std::int64_t(K) * place.depth;
    const std::int64_t tiles = (cols + depth - 1) / depth;

    Column column;
    RunningSum<Math> running[V];
    for (std::int64_t t = 0; t < tiles; ++t) {
      load(column, input, window, place.first + t * depth, place.depth);
      add(column, running, tiles == 1);
    }

    Pack<A, V> own;
    PackState<Math, V> all;
    for (int v = 0; v < V; ++v) own[v] = running[v].reference;
    all.reference = join(team, place, own, slots, MaxJoin{});
    for (int v = 0; v < V; ++v) all.sum[v] = rescaled(math, running[v].state().sum, own[v], all.reference[v]);
    all.sum = join(team, place, all.sum, slots, SumJoin{});

    if constexpr (Finisher::one_value_a_row) {
      for (int v = 0; v < V && place.first == 0; ++v) {
        if (window.has(v)) sink.store(Finisher::value(math, all.of(v)), o * inner + i + v);
      }
    } else {
      write(column, input, sink.template column<V>(o, i), window, place, tiles, own, all);
    }
  }

  /// K packs at positions first, first + step, ... of the reduced axis.
  template <class Input>
  KOKKOS_INLINE_FUNCTION void load(Column& column, const Input& input, const Window& window, std::int64_t first,
                                   std::int64_t step) const {
    const T pad = math.template pad<T>();
    Pack<T, V> raw[K];
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const std::int64_t c = first + k * step;
      raw[k]               = input.at(c).template load_pack<V>(0, c < cols ? window : Window{0, 0}, pad);
    }
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) widen(column.pack[k], raw[k], math.sign);
  }

  /// Adds a column of packs to the running sums; `keep` leaves exponentials in the column where the operator wants
  /// them.
  KOKKOS_INLINE_FUNCTION void add(Column& column, RunningSum<Math> (&running)[V], bool keep) const {
    Pack<A, V> max = filled<A, V>(-Kokkos::Experimental::infinity_v<A>);
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) raise_maxima(max, column.pack[k]);
    ExpReference<A> reference[V];
    for (int v = 0; v < V; ++v) reference[v] = running[v].raise(math, max[v]);
    const bool keep_them = Finisher::keeps_exponentials && keep;
    ExponentialSums<Math, V> sums;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; k += 2) {
      Pack<A, V>& first  = column.pack[k];
      Pack<A, V>& second = column.pack[k + 1];
      for (int v = 0; v < V; ++v) {
        const A a = math.exp(first[v], reference[v]);
        const A b = math.exp(second[v], reference[v]);
        first[v]  = keep_them ? a : first[v];
        second[v] = keep_them ? b : second[v];
        sums.add(v, a + b);
      }
    }
    for (int v = 0; v < V; ++v) running[v].add(sums.lane(v));
  }

  /// Joins a pack over the threads that hold the same rows: by shuffles within a warp, then through scratch.
  template <class Member, class X, class Join>
  KOKKOS_INLINE_FUNCTION Pack<X, V> join(const Member& team, const Place& place, Pack<X, V> pack, void* scratch,
                                         const Join& join_values) const {
    auto* slots = static_cast<Pack<X, V>*>(scratch);
    for (int v = 0; v < V; ++v) pack[v] = reduce_lanes(pack[v], lanes, native_lanes(), join_values);
    // Lanes of one warp that hold the same rows now agree; one of them a warp speaks.
    const int warp_depth = native_lanes() > lanes ? native_lanes() / lanes : 1;
    const int speakers   = (place.depth + warp_depth - 1) / warp_depth;
    if (speakers == 1) return pack;
    team.team_barrier();  // the slots may still be read
    if (place.first % warp_depth == 0) slots[(place.first / warp_depth) * lanes + place.lane] = pack;
    team.team_barrier();
    pack = slots[place.lane];
    for (int s = 1; s < speakers; ++s) {
      const Pack<X, V> other = slots[s * lanes + place.lane];
      for (int v = 0; v < V; ++v) pack[v] = join_values(pack[v], other[v]);
    }
    return pack;
  }

  template <class Input, class Output>
  KOKKOS_INLINE_FUNCTION void write(Column& column, const Input& input, const Output& output, const Window& window,
                                    const Place& place, std::int64_t tiles, const Pack<A, V>& own,
                                    const PackState<Math, V>& all) const {
    using Y = typename Sink::value_type;
    typename Finisher::template Row<Math, A> finish[V];
    for (int v = 0; v < V; ++v) {
      finish[v] = {math, tiles > 1 ? all.reference[v] : own[v], all.of(v)};
    }
    for (std::int64_t t = 0; t < tiles; ++t) {
      const std::int64_t first = place.first + t * K * std::int64_t(place.depth);
      if (tiles > 1) load(column, input, window, first, place.depth);
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) {
        const std::int64_t c = first + k * std::int64_t(place.depth);
        Pack<Y, V> y;
        for (int v = 0; v < V; ++v) {
          const A x = column.pack[k][v];
          y[v]      = static_cast<Y>(tiles > 1 ? finish[v].from_input(math, x) : finish[v](math, x));
        }
        if (c < cols) output.at(c).template store_pack<V>(y, 0, window);
      }
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNELS_INNER_LANES_HPP
