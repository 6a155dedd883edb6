// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_INNER_LANES_HPP
#define KOKKOSNN_IMPL_GPU_INNER_LANES_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/running_tiles.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Kernel inner_lanes: lanes run over a contiguous axis and threads over the reduced one. A pack holds neighbouring rows
// at one column; each element of a pack has a maximum and a sum of its own.
// A team processes a slab: few neighbouring rows, all columns. Its loads bring whole lines into the cache
// (`InnerColumns`), as neighbouring teams are about to load the rest. 16-bit columns stay as they were loaded
// (`PackedColumn`). Columns that are read twice are read backward the second time, except for those that the team still
// holds.

namespace KokkosNN::Impl {

/// Pack of neighbouring rows at one column. Its loads fetch whole lines: a slab of few lanes is narrower than a line.
///   LayoutLeft 65536 x 1024 f32, 64 bytes wide, share of copy | 0.82 | partial lines 0.75
template <class T>
struct InnerColumns : MemoryColumns<T, RowForm::strided> {
  using Base = MemoryColumns<T, RowForm::strided>;
  using typename Base::value_type;

  template <int V>
  KOKKOS_INLINE_FUNCTION Pack<value_type, V> load_inner_pack(int c) const {
    KOKKOS_IF_ON_DEVICE(
        (return load_at_once<true>(reinterpret_cast<const Pack<value_type, V>*>(this->base + c), this->policy);))
    KOKKOS_IF_ON_HOST((return Base::template load_inner_pack<V>(c);))
  }

  /// Loads a pack as words of two 16-bit elements.
  template <int V>
  KOKKOS_INLINE_FUNCTION auto load_inner_words(int c) const {
    KOKKOS_IF_ON_DEVICE(
        (return load_at_once<true>(reinterpret_cast<const Pack<std::uint32_t, V / 2>*>(this->base + c), this->policy);))
    KOKKOS_IF_ON_HOST((return words_of(load_inner_pack<V>(c));))
  }
};

/// Packs of neighbouring rows, one for each column c of one outer index.
template <class T, int V>
struct InnerColumn {
  using value_type = std::remove_const_t<T>;

  T* base;
  std::int64_t col_stride;
  std::int64_t inner_stride;
  bool whole_packs;
  LinePolicy policy;

  KOKKOS_INLINE_FUNCTION InnerColumns<T> at(std::int64_t c) const {
    return {{base + c * col_stride, inner_stride, whole_packs, policy}};
  }
};

/// Inner rows: `map` finds the first row of an outer index, rows lie `inner_stride` apart, columns `col_stride`.
template <class T>
struct InnerRows {
  using value_type = std::remove_const_t<T>;

  T* data;
  std::int64_t col_stride;
  std::int64_t inner_stride;
  RowMap map;
  LinePolicy policy = {};

  /// Packs from row i of outer index o on.
  template <int V>
  KOKKOS_INLINE_FUNCTION InnerColumn<T, V> column(std::int64_t o, std::int64_t i) const {
    T* const base = data + map(o) + i * inner_stride;
    const bool whole =
        moves_whole_packs<T, V>(base, inner_stride) && moves_whole_packs<T, V>(base + col_stride, inner_stride);
    return {base, col_stride, inner_stride, whole, policy};
  }
};

/// Position of a thread in a team of inner_lanes: pack column `lane`, and every `depth`-th position of the reduced axis
/// from `first` on. It uses shifts: divisions would cost a block of few columns noticeable time.
struct InnerPlace {
  int lanes;  // packs side by side, a power of two
  int lane;
  int first;
  int depth;
  int log2_warp_depth;

  template <class Member>
  KOKKOS_INLINE_FUNCTION static InnerPlace of(const Member& team, int lanes) {
    const int shift = log2_of(lanes);
    return {lanes, team.team_rank() & (lanes - 1), team.team_rank() >> shift, team.team_size() >> shift,
            warp_width() > lanes ? log2_of(warp_width()) - shift : 0};
  }

  /// Number of positions of the reduced axis that the lanes of one warp have at a time.
  KOKKOS_INLINE_FUNCTION int warp_depth() const { return 1 << log2_warp_depth; }
  /// Number of warps, or parts of one, that hold the same rows.
  KOKKOS_INLINE_FUNCTION int speakers() const { return (depth + warp_depth() - 1) >> log2_warp_depth; }
  /// Number of the warp that this thread is in, and true for the one of its lanes that writes to the slots.
  KOKKOS_INLINE_FUNCTION int speaker() const { return first >> log2_warp_depth; }
  KOKKOS_INLINE_FUNCTION bool speaks() const { return (first & (warp_depth() - 1)) == 0; }
};

/// Calls f(outer index, first row of a block) for this team's blocks of `width` rows side by side, a power of two.
template <class Member, class F>
KOKKOS_INLINE_FUNCTION void for_inner_blocks(const Member& team, std::int64_t outer, std::int64_t inner, int width,
                                             const F& f) {
  const std::int64_t blocks = (inner + width - 1) >> log2_of(width);
  for (std::int64_t b = team.league_rank(); b < outer * blocks; b += team.league_size()) {
    const std::int64_t o = outer == 1 ? 0 : b / blocks;
    f(o, (b - o * blocks) * width);
  }
}

/// Reduces by shuffles within a warp, then through shared memory: one lane per group writes. The caller must ensure
/// that `slots` is not being read.
template <class Member, class X, int V, class Join>
KOKKOS_INLINE_FUNCTION Pack<X, V> join_inner(const Member& team, const InnerPlace& place, Pack<X, V> pack,
                                             Pack<X, V>* slots, const Join& join_values) {
  for (int v = 0; v < V; ++v) pack[v] = reduce_lanes(pack[v], place.lanes, warp_width(), join_values);
  const int n = place.speakers();
  if (n == 1) return pack;
  if (place.speaks()) slots[place.speaker() * place.lanes + place.lane] = pack;
  team.team_barrier();
  pack = slots[place.lane];
  for (int s = 1; s < n; ++s) {
    const Pack<X, V> other = slots[s * place.lanes + place.lane];
    for (int v = 0; v < V; ++v) pack[v] = join_values(pack[v], other[v]);
  }
  return pack;
}

/// States of a pack of rows, one RowState each.
template <class Params, int V>
struct PackState {
  Pack<typename Params::accumulator, V> reference;
  Pack<typename Params::wide_sum, V> sum;

  KOKKOS_INLINE_FUNCTION typename Params::State of(int v) const { return {reference[v], sum[v]}; }
};

/// K packs of a thread, in the accumulator type.
template <class A, int V, int K>
struct WideColumn {
  Pack<A, V> pack[K];

  template <class T>
  KOKKOS_INLINE_FUNCTION void hold(int k, const Pack<T, V>& raw) {
    widen(pack[k], raw);
  }
  /// Loads a pack that lies in the tensor.
  template <class Columns>
  KOKKOS_INLINE_FUNCTION void load_inner(int k, const Columns& at) {
    hold(k, at.template load_inner_pack<V>(0));
  }
  KOKKOS_INLINE_FUNCTION void apply_sign(A sign) { Impl::apply_sign(pack, sign); }

  /// Sets the numbers of one row to 0.
  KOKKOS_INLINE_FUNCTION void make_zeros_of_numbers(int v) {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) pack[k][v] = zero_of_number(pack[k][v]);
  }

  template <int pass>
  KOKKOS_INLINE_FUNCTION Pack<A, V>& get(int k) {
    return pack[k];
  }
};

/// K packs of a thread as they were loaded, 16 bits an element, for twice as many columns. Each pass unpacks them
/// again, and exponentials are computed twice.
template <class T, class A, int V, int K>
struct PackedColumn {
  PackedTile<T, V, K> tile;

  /// Keeps a pack, behind `opaque`: nvcc would hold the halves of words in registers of their own until the load paths
  /// meet.
  KOKKOS_INLINE_FUNCTION void hold(int k, const Pack<T, V>& raw) {
    tile.word[k] = words_of(raw);
    for (int w = 0; w < V / 2; ++w) tile.word[k][w] = opaque(tile.word[k][w]);
  }
  template <class Columns>
  KOKKOS_INLINE_FUNCTION void load_inner(int k, const Columns& at) {
    tile.word[k] = at.template load_inner_words<V>(0);
  }
  KOKKOS_INLINE_FUNCTION void apply_sign(A sign) {
    if (sign > A(0)) return;  // one branch for all: with a mask instead, words are spilled
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      for (int w = 0; w < V / 2; ++w) tile.word[k][w] = opaque(tile.word[k][w]) ^ signs_of_word;
    }
  }

  KOKKOS_INLINE_FUNCTION void make_zeros_of_numbers(int v) {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const A x            = get<1>(k)[v];
      std::uint32_t& words = tile.word[k][v / 2];
      if (x == x) words &= v % 2 == 0 ? 0xffff0000u : 0x0000ffffu;
    }
  }

  template <int pass>
  KOKKOS_INLINE_FUNCTION Pack<A, V> get(int k) const {
    Pack<A, V> pack;
    tile.template unpack<pass>(pack, k);
    return pack;
  }
};

/// Functor of inner_lanes. `keeps`: the K packs of each thread hold all columns, in registers; otherwise columns are
/// read twice. `is_packed`: columns stay as they were loaded.
template <RowOperator op, int V, int K, bool keeps, bool is_packed, class Params, class Source, class Output>
struct InnerLanes {
  using A          = typename Params::accumulator;
  using W          = typename Params::wide_sum;
  using OpEpilogue = Epilogue<op>;
  using T          = typename Source::value_type;

  Source source;
  Output output;
  Params params;
  std::int64_t outer;
  std::int64_t inner;
  std::int64_t cols;
  int lanes;  // packs side by side, a power of two
  int scratch_level;
  int scratch_bytes;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    void* const slots      = team_scratch(team, scratch_level, scratch_bytes);
    const InnerPlace place = InnerPlace::of(team, lanes);
    for_inner_blocks(team, outer, inner, lanes * V,
                     [&](std::int64_t o, std::int64_t begin) { do_block(team, place, o, begin, slots); });
  }

 private:
  using Column = std::conditional_t<is_packed, PackedColumn<T, A, V, K>, WideColumn<A, V, K>>;

  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_block(const Member& team, const InnerPlace& place, std::int64_t o,
                                       std::int64_t inner_begin, void* slots) const {
    const std::int64_t i    = inner_begin + std::int64_t(place.lane) * V;
    const TileBounds window = {inner - i < V ? static_cast<int>(inner - i) : V};
    const auto input        = source.template column<V>(o, i);

    // Two sets of slots: a thread that writes one set again has passed the barrier behind the other. One warp needs
    // none.
    auto* const sums   = static_cast<Pack<W, V>*>(slots);
    auto* const maxima = reinterpret_cast<Pack<A, V>*>(sums + (slots == nullptr ? 0 : place.speakers() * lanes));
    Column column;
    std::int64_t end = 0;  // end of the columns read so far
    PackState<Params, V> all;
    if constexpr (keeps) {
      load(column, input, window, place, 0);
      all.reference = join_inner(team, place, references_of(column), maxima, MaxJoin{});
      all.sum       = join_inner(team, place, sum_of_exponentials(column, all.reference), sums, SumJoin{});
    } else {
      RunningSum<Params> running[V];
      for (; end < cols; end += reach(place)) {
        load(column, input, window, place, end);
        add(column, running);
      }
      Pack<A, V> own;
      for (int v = 0; v < V; ++v) own[v] = running[v].reference;
      all.reference = join_inner(team, place, own, maxima, MaxJoin{});
      for (int v = 0; v < V; ++v) all.sum[v] = rescaled(params, running[v].state().sum, own[v], all.reference[v]);
      all.sum = join_inner(team, place, all.sum, sums, SumJoin{});
    }

    if constexpr (OpEpilogue::one_value_a_row) {
      for (int v = 0; v < V && place.first == 0; ++v) {
        if (v < window.end) output.store(OpEpilogue::value(params, all.of(v)), o * inner + i + v);
      }
    } else {
      write(column, input, output.template column<V>(o, i), window, place, end, all);
    }
  }

  /// Calls f(position of the pack, true if it is in the tensor, k) for K positions of the reduced axis from c on. Each
  /// address follows from the one before: nvcc would compute all of them ahead, and spill.
  template <class Side, class F>
  KOKKOS_INLINE_FUNCTION void for_places(const Side& side, const TileBounds& window, const InnerPlace& place,
                                         std::int64_t c, const F& f) const {
    auto at                 = side.at(c + place.first);
    const std::int64_t step = side.col_stride * place.depth;
    const std::int64_t rest = window.end > 0 ? cols - c - place.first : 0;
    const int reach         = K * place.depth;
    int left                = rest < reach ? static_cast<int>(rest) : reach;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      f(at, left > 0, k);
      at.base = opaque(at.base + anew(step));
      left    = opaque(left - place.depth);
    }
  }

  /// Calls f(position of the pack, true, k) for K positions that are all in the tensor.
  template <class Side, class F>
  KOKKOS_INLINE_FUNCTION void for_all_places(const Side& side, const InnerPlace& place, std::int64_t c,
                                             const F& f) const {
    auto at                 = side.at(c + place.first);
    const std::int64_t step = side.col_stride * place.depth;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      f(at, k);
      at.base = opaque(at.base + anew(step));
    }
  }

  /// True if all positions from c on are in the tensor, for all lanes of a warp except those beyond the inner axis.
  KOKKOS_INLINE_FUNCTION bool has_all_places(const TileBounds& window, const InnerPlace& place, std::int64_t c) const {
    const int last = (place.first | (place.warp_depth() - 1)) + (K - 1) * place.depth;
    return window.end > 0 && c + last < cols;
  }

  /// Number of positions of the reduced axis that a team has at a time.
  KOKKOS_INLINE_FUNCTION std::int64_t reach(const InnerPlace& place) const { return std::int64_t(K) * place.depth; }

  /// True if this lane's packs are moved at once; single elements always are.
  template <class Side>
  KOKKOS_INLINE_FUNCTION static bool moves_whole(const Side& side, const TileBounds& window) {
    return V == 1 || (side.whole_packs && window.template has_pack<V>(0));
  }

  /// Loads K packs at positions c, c + depth, ... of the reduced axis.
  template <class Input>
  KOKKOS_INLINE_FUNCTION void load(Column& column, const Input& input, const TileBounds& window,
                                   const InnerPlace& place, std::int64_t c) const {
    const T pad = params.template pad<T>();
    if (moves_whole(input, window) && has_all_places(window, place, c)) {
      for_all_places(input, place, c, [&](const auto& at, int k) { column.load_inner(k, at); });
    } else if (moves_whole(input, window)) {
      for_places(input, window, place, c, [&](const auto& at, bool is_column, int k) {
        column.hold(k, filled<T, V>(pad));
        if (is_column) column.load_inner(k, at);
      });
    } else {
      for_places(input, window, place, c, [&](const auto& at, bool is_column, int k) {
        column.hold(k, at.template load_pack<V>(0, is_column ? window : TileBounds{0}, pad));
      });
    }
    column.apply_sign(params.sign);
  }

  KOKKOS_INLINE_FUNCTION static Pack<A, V> max_of(Column& column) {
    Pack<A, V> max = filled<A, V>(-Kokkos::Experimental::infinity_v<A>);
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) raise_maxima(max, column.template get<0>(k));
    return max;
  }

  KOKKOS_INLINE_FUNCTION Pack<A, V> references_of(Column& column) const {
    Pack<A, V> reference = max_of(column);
    for (int v = 0; v < V; ++v) reference[v] = params.exp.reference_of(reference[v]);
    return reference;
  }

  /// Sums exponentials, and leaves them in the column if the operator keeps them.
  KOKKOS_INLINE_FUNCTION Pack<W, V> sum_of_exponentials(Column& column, const Pack<A, V>& references) const {
    ExpReference<A> reference[V];
    for (int v = 0; v < V; ++v) reference[v] = params.exp.at(finite_reference(references[v]));
    find_infinities(column, reference);
    constexpr bool writes = OpEpilogue::keeps_exponentials && !is_packed;
    return exponentials<writes>(column, reference);
  }

  /// Replaces the numbers of rows whose reference is +inf by zeros, whose exponentials are 1. (A separate sum beside
  /// those of other rows would be spilled.)
  KOKKOS_INLINE_FUNCTION void find_infinities([[maybe_unused]] Column& column,
                                              [[maybe_unused]] ExpReference<A> (&reference)[V]) const {
    if constexpr (finds_infinity<sum_for<op>, Params>) {
      bool any = false;
      for (int v = 0; v < V; ++v) any |= is_infinite<sum_for<op>, Params>(reference[v]);
      if (!any) return;
      for (int v = 0; v < V; ++v) {
        if (!is_infinite<sum_for<op>, Params>(reference[v])) continue;
        column.make_zeros_of_numbers(v);
        reference[v].base = A(0);
      }
    }
  }

  KOKKOS_INLINE_FUNCTION A exponential(A x, const ExpReference<A>& reference) const {
    return params.exp.template term_of_difference<sum_for<op>>(x - reference.base, reference);
  }

  template <bool keep>
  KOKKOS_INLINE_FUNCTION Pack<W, V> exponentials(Column& column, const ExpReference<A> (&reference)[V]) const {
    static_assert(K % 2 == 0 && exponentials_at_once >= 2);
    ExponentialSums<Params, V> sums;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; k += 2) {
      auto&& first  = column.template get<1>(k);
      auto&& second = column.template get<1>(k + 1);
      for (int v = 0; v < V; ++v) {
        const A a = exponential(first[v], reference[v]);
        const A b = exponential(second[v], reference[v]);
        if constexpr (keep) {
          first[v]  = a;
          second[v] = b;
        }
        sums.add(v, a + b);
      }
    }
    Pack<W, V> total;
    for (int v = 0; v < V; ++v) total[v] = sums.lane(v);
    return total;
  }

  KOKKOS_INLINE_FUNCTION void add(Column& column, RunningSum<Params> (&running)[V]) const {
    const Pack<A, V> max = max_of(column);
    ExpReference<A> reference[V];
    for (int v = 0; v < V; ++v) reference[v] = running[v].raise(params, max[v]);
    find_infinities(column, reference);
    const Pack<W, V> total = exponentials<false>(column, reference);
    for (int v = 0; v < V; ++v) running[v].add(total[v]);
  }

  template <class Input, class OutputRow>
  KOKKOS_INLINE_FUNCTION void write(Column& column, const Input& input, const OutputRow& out, const TileBounds& window,
                                    const InnerPlace& place, std::int64_t end, const PackState<Params, V>& all) const {
    typename OpEpilogue::template Row<Params, A> epilogue[V];
    for (int v = 0; v < V; ++v) epilogue[v] = {params, all.reference[v], all.of(v)};
    if constexpr (keeps && is_packed) {
      store(column, out, window, place, 0, [&](A x, int v) { return epilogue[v].from_input(params, x); });
    } else if constexpr (keeps) {
      store(column, out, window, place, 0, [&](A kept, int v) { return epilogue[v](params, kept); });
    } else {
      // Backward: the column still holds the last packs, and a cache those before.
      const std::int64_t last = end - reach(place);
      for (std::int64_t c = last; c >= 0; c -= reach(place)) {
        if (c < last) load(column, input, window, place, c);
        store(column, out, window, place, c, [&](A x, int v) { return epilogue[v].from_input(params, x); });
      }
    }
  }

  template <class OutputRow, class F>
  KOKKOS_INLINE_FUNCTION void store(Column& column, const OutputRow& out, const TileBounds& window,
                                    const InnerPlace& place, std::int64_t c, const F& value) const {
    using Y         = typename Output::value_type;
    const auto pack = [&](int k) {
      auto&& x = column.template get<2>(k);
      Pack<Y, V> y;
      for (int v = 0; v < V; ++v) y[v] = static_cast<Y>(value(x[v], v));
      return y;
    };
    const bool whole = moves_whole(out, window);
    if (whole && has_all_places(window, place, c)) {
      for_all_places(out, place, c, [&](const auto& at, int k) { at.store_whole_pack(pack(k), 0); });
      return;
    }
    for_places(out, window, place, c, [&](const auto& at, bool is_column, int k) {
      if (!is_column) return;
      if (opaque(int(whole)) != 0) {  // opaque, or nvcc would compare for all k ahead of the branch above
        at.store_whole_pack(pack(k), 0);
      } else {
        at.template store_pack<V>(pack(k), 0, window);
      }
    });
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_INNER_LANES_HPP
