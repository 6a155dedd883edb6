// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_SEGMENTED_ROWS_HPP
#define KOKKOSNN_IMPL_GPU_SEGMENTED_ROWS_HPP

#include <KokkosNN/impl/kernel_shapes.hpp>
#include <KokkosNN/impl/tuned_shapes.hpp>
#include <KokkosNN/impl/gpu/device/flat_rows.hpp>
#include <KokkosNN/impl/gpu/device/pair_tile.hpp>
#include <KokkosNN/impl/gpu/device/running_tiles.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/inputs/segments.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/backend.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Operations of a GPU on a ragged row or a part of one: the forward operators, and the gradients. A host has its own
// (host/segmented_rows.hpp).
//
//   share_row<n>   processes a whole row by threads that each hold n of its elements; join merges their states
//   prefetch       prefetches elements
//   share_flat     processes many short rows; the forward operators on CUDA only
//   reduce_shared  returns a thread's state over its elements of a part
//   write_shared   writes those elements, which are read again

namespace KokkosNN::Impl {

/// Calls f(elements of this thread) for elements begin to end, a tile of `thread_elements` a thread at a time.
template <int threads, int known_stride, class F>
KOKKOS_INLINE_FUNCTION void for_shared_tiles(std::int64_t begin, std::int64_t end, int thread_elements, int rank,
                                             const F& f) {
  const int tile = thread_elements * threads;
  KOKKOSNN_IMPL_NO_UNROLL
  for (std::int64_t at = begin; at < end; at += tile) {
    f(SharedElements<threads, known_stride>{at, end - at < tile ? static_cast<int>(end - at) : tile, rank});
  }
}

/// softmax, log_softmax or logsumexp of rows of X; Y is the type of results, or of one value a row. A GPU's compiler
/// knows the stride of a row's elements, equal in all tensors; 0: it does not.
template <RowOperator operation, class ParamsOfRow, class X, class Y, Backend backend, int stride_of_elements>
struct SegmentedForward {
  using Params     = ParamsOfRow;
  using A          = typename Params::accumulator;
  using State      = typename Params::State;
  using OpEpilogue = Epilogue<operation>;

  static constexpr int tensors         = 1;
  static constexpr int max_packs       = segment_packs(tensors, sizeof(A));
  static constexpr int lane_elements   = 4 * max_packs;
  static constexpr int known_stride    = stride_of_elements;
  static constexpr bool has_neighbours = known_stride == 1;

  template <int threads>
  using Shared = SharedElements<threads, known_stride>;

  static constexpr bool one_value_a_row = OpEpilogue::one_value_a_row;
  static constexpr bool keep            = OpEpilogue::keeps_exponentials;
  static constexpr bool takes_flat =
      has_neighbours && takes_rows_flat(backend, sizeof(X), one_value_a_row ? sizeof(X) : sizeof(Y), sizeof(A));
  using Flat       = FlatShared<A, FlatPart<Params>>;
  using input_type = X;

  Params params;
  Values<const X> x;
  Values<Y> y;

  /// Operation on the rows of one of several heads.
  KOKKOS_INLINE_FUNCTION SegmentedForward of_head(std::int64_t head) const {
    return {params, x.of_head(head), y.of_head(head)};
  }

  KOKKOS_INLINE_FUNCTION void store_value(const State& state, std::int64_t row) const {
    y[row] = static_cast<Y>(OpEpilogue::value(params, state));
  }

  KOKKOS_INLINE_FUNCTION void prefetch(std::int64_t begin, int count) const { x.prefetch(begin, count); }

  /// Processes a whole row. Row -1 is no row: its result is stored nowhere.
  template <int held, int threads, class Join>
  KOKKOS_INLINE_FUNCTION void share_row(const Shared<threads>& share, std::int64_t row, const Join& join) const {
    constexpr int lanes = threads < warp_width() ? threads : warp_width();
    constexpr int width = share_pack<held>;
    constexpr int K     = held / width;
    Tile<A, width, K> tile;
    load(share, tile);
    const A reference = params.exp.reference_of(reduce_lanes(tile.max(), 1, lanes, MaxJoin{}));
    PackSums<Params, width> sums;
    tile.template add_exponentials<leaves_if<keep>, sum_for<operation>>(
        params, params.exp.at(finite_reference(reference)), sums);
    const State mine{reference, sums.all_lanes()};
    const State all = join(params, mine);
    if constexpr (one_value_a_row) {
      if (row >= 0 && share.rank == 0) store_value(all, row);
    } else {
      const auto epilogue = make_epilogue<RowEpilogue>(params, mine, all);
      share.template store<width, K>(y, [&](int k, int v) { return epilogue(params, tile.pack[k][v]); });
    }
  }

  /// Processes rows of a window; `results` is the eviction hint of results, and `ask` is called once the rows are
  /// there. It returns false and writes nothing if the rows need a reference each.
  template <int Q, class Ask>
  KOKKOS_INLINE_FUNCTION bool share_flat(Flat& shared, const FlatTile<A, Q>& tile, const FlatRow& row,
                                         std::int64_t number, [[maybe_unused]] LinePolicy lines, const Ask& ask) const {
    shared.heads[row.lane] = 0;
    fetch_flat(tile, x.data + row.first, row);
    sync_lanes();
    mark_head(shared, tile, row);
    await_fetched<X>(tile, row);
    ask();
    const std::uint32_t heads = shared.heads[row.lane];
    A reference               = A(0);
    KOKKOSNN_IMPL_NO_UNROLL
    for (bool is_found = false; !add_runs(shared, tile, row.lane, heads, reference, is_found); is_found = true) {
      sync_lanes();
      fetch_flat(tile, x.data + row.first, row);  // loaded again: exponentials may have replaced the logits
      await_fetched<X>(tile, row);
      if (!find_reference(tile, row, reference)) return false;
    }
    sync_lanes();
    if constexpr (one_value_a_row) {
      if (number >= 0) store_value(flat_state(shared, tile, row, reference), number);
    } else {
      const int place  = 1 + count_bits(lanes_that(!row.is_empty()) & lanes_before(row.lane));
      const int before = sum_before(count_bits(heads), row.lane);
      if (!row.is_empty()) shared.words[place] = flat_epilogue(shared, tile, row, reference).words();
      sync_lanes();
      make_flat_epilogue(tile, row.lane, heads, shared.words + before);
      sync_lanes();
      store_flat(tile, y.data + row.first, row.window, row.lane, lines);
    }
    return true;
  }

  template <int threads>
  KOKKOS_INLINE_FUNCTION State reduce_shared(std::int64_t begin, std::int64_t end, int rank) const {
    RunningSum<Params> running;
    for_shared_tiles<threads, known_stride>(begin, end, lane_elements, rank, [&](const Shared<threads>& share) {
      Tile<A, 4, max_packs> tile;
      load(share, tile);
      const auto reference = running.raise(params, tile.max());
      PackSums<Params, 4> sums;
      tile.template add_exponentials<Leaves::logits, sum_for<operation>>(params, reference, sums);
      running.add(sums.all_lanes());
    });
    return running.state();
  }

  template <int threads>
  KOKKOS_INLINE_FUNCTION void write_shared(std::int64_t begin, std::int64_t end, const State& all, int rank) const {
    if constexpr (!one_value_a_row) {
      const auto epilogue = make_epilogue<RowEpilogue>(params, all, all);
      for_shared_tiles<threads, known_stride>(begin, end, lane_elements, rank, [&](const Shared<threads>& share) {
        Tile<A, 4, max_packs> tile;
        load(share, tile);
        share.template store<4, max_packs>(y,
                                           [&](int k, int v) { return epilogue.from_input(params, tile.pack[k][v]); });
      });
    }
  }

 private:
  using RowEpilogue =
      typename std::conditional_t<one_value_a_row, Epilogue<RowOperator::softmax>, OpEpilogue>::template Row<Params, A>;

  /// Largest distance, in powers of two, of logits whose exponentials can neither leave the range of a float nor be
  /// lost beside each other.
  static constexpr A near = 30;

  /// Exponential of elements that were not multiplied by the sign of the scale.
  KOKKOS_INLINE_FUNCTION auto signed_exp() const {
    auto exp = params.exp;
    exp.scale2 *= params.sign;
    exp.scale2_low *= params.sign;
    return exp;
  }

  /// Finds a reference for all elements of a window, if there is one. W, here and below: elements in 16 bytes.
  template <int Q>
  KOKKOS_INLINE_FUNCTION bool find_reference(const FlatTile<A, Q>& tile, const FlatRow& row, A& reference) const {
    constexpr int W      = 16 / sizeof(X);
    constexpr A infinity = Kokkos::Experimental::infinity_v<A>;
    A most               = -infinity;
    A least              = infinity;
    for_loaded<X>(tile, row.lane, [&](const Pack<A, W>& pack, int p) {
      for (int v = 0; v < W; ++v) {
        if (!row.window.has(row.lane * tile.elements + W * p + v)) continue;
        most  = larger_or_nan(most, params.sign * pack[v]);
        least = -larger_or_nan(-least, -params.sign * pack[v]);
      }
    });
    if (lanes_that(most != most) != 0) return false;
    most      = reduce_lanes(most, 1, warp_width(), MaxJoin{});
    least     = -reduce_lanes(-least, 1, warp_width(), MaxJoin{});
    reference = params.exp.reference_of(most);
    return (most - least) * params.exp.scale2 < 2 * near && params.exp.has_power(2 * most);
  }

  /// Writes the sums of runs, and exponentials over logits if they are kept. It returns false if the reference, not
  /// known to suit all elements, does not suit them.
  template <int Q>
  KOKKOS_INLINE_FUNCTION bool add_runs(Flat& shared, const FlatTile<A, Q>& tile, int lane, std::uint32_t heads,
                                       A reference, bool suits) const {
    constexpr int W  = 16 / sizeof(X);
    const A exponent = params.exp.at(reference).exponent;
    const auto exp   = signed_exp();
    FlatPart<Params> run{};
    A largest = A(0);
    for_loaded<X>(tile, lane, [&](const Pack<A, W>& pack, int p) {
      Pack<A, W> e;
      for (int v = 0; v < W; ++v) {
        largest = larger_or_nan(largest, Kokkos::abs(pack[v]));
        e[v]    = exp.of_near(pack[v], exponent);
      }
      for (int k = 0; k < W / 4; ++k) {
        run                              = run_behind(run, heads, &e[4 * k]);
        shared.runs[W / 4 * p + k][lane] = run;
        heads >>= 4;
        if constexpr (keep) {
          *reinterpret_cast<Pack<A, 4>*>(tile.own(lane) + (W * p + 4 * k) * sizeof(A)) = {e[4 * k], e[4 * k + 1],
                                                                                          e[4 * k + 2], e[4 * k + 3]};
        }
      }
    });
    return suits || lanes_that(!(largest < near * params.exp.inverse)) == 0;
  }

  template <int Q>
  KOKKOS_INLINE_FUNCTION FlatPart<Params> flat_sum(const Flat& shared, const FlatTile<A, Q>& tile, const FlatRow& row,
                                                   A reference) const {
    [[maybe_unused]] const A exponent = params.exp.at(reference).exponent;
    return sum_of_row<FlatPart<Params>>(shared, tile, row, [&](int quad, int v) {
      if constexpr (keep) {
        return (&tile.template at<A>(quad, 0))[v];
      } else {
        const X logit = (&tile.template at<X>(quad, tile.template loaded<X>))[v];
        return signed_exp().of_near(static_cast<A>(logit), exponent);
      }
    });
  }

  template <int Q>
  KOKKOS_INLINE_FUNCTION State flat_state(const Flat& shared, const FlatTile<A, Q>& tile, const FlatRow& row,
                                          A reference) const {
    if (row.is_empty()) return State{};
    return params.exp.at_its_sum(reference, wide_of<typename Params::wide_sum>(flat_sum(shared, tile, row, reference)));
  }

  template <int Q>
  KOKKOS_INLINE_FUNCTION RowEpilogue flat_epilogue(const Flat& shared, const FlatTile<A, Q>& tile, const FlatRow& row,
                                                   A reference) const {
    if constexpr (keep) {
      return RowEpilogue(params, params.exp.at(reference), split_sum<A>(flat_sum(shared, tile, row, reference)));
    } else {
      return RowEpilogue(params, reference, flat_state(shared, tile, row, reference));
    }
  }

  /// Writes the results of a lane's elements; `words` are the epilogues, from that of the first element's row on.
  template <int Q>
  KOKKOS_INLINE_FUNCTION void make_flat_epilogue(const FlatTile<A, Q>& tile, int lane, std::uint32_t heads,
                                                 const DoubleDouble<A>* words) const {
    using From      = std::conditional_t<keep, A, X>;
    constexpr int W = 16 / sizeof(Y);
    char* const own = tile.own(lane);
    KOKKOSNN_IMPL_NO_UNROLL
    for (int p = 0; p < tile.elements / W; ++p) {
      const Pack<From, W> from =
          *reinterpret_cast<const Pack<From, W>*>(own + tile.template loaded<From> + W * p * sizeof(From));
      Pack<Y, W> result;
      for (int v = 0; v < W; ++v) {
        if (has_head(heads, v)) ++words;
        const A value = static_cast<A>(from[v]);
        result[v]     = static_cast<Y>(RowEpilogue(*words)(params, keep ? value : params.sign * value));
      }
      *reinterpret_cast<Pack<Y, W>*>(own + W * p * sizeof(Y)) = result;
      heads >>= W;
    }
  }

  /// Loads elements times the sign of the scale.
  template <int threads, int width, int K>
  KOKKOS_INLINE_FUNCTION void load(const Shared<threads>& share, Tile<A, width, K>& tile) const {
    share.load(x, tile.pack, params.sign * -Kokkos::Experimental::infinity_v<A>);
    apply_sign(tile.pack, params.sign);
  }
};

/// softmax_backward or log_softmax_backward of rows of y and dy, both of T.
template <RowOperator operation, class ParamsOfRow, class T, Backend backend, int stride_of_elements>
struct SegmentedBackward {
  using Params     = ParamsOfRow;
  using A          = typename Params::accumulator;
  using State      = typename Params::State;
  using OpEpilogue = Epilogue<operation>;

  static constexpr int tensors         = 2;
  static constexpr int max_packs       = segment_packs(tensors, sizeof(A));
  static constexpr int lane_elements   = 4 * max_packs;
  static constexpr int known_stride    = stride_of_elements;
  static constexpr bool has_neighbours = known_stride == 1;

  template <int threads>
  using Shared = SharedElements<threads, known_stride>;

  static constexpr bool one_value_a_row = false;
  static constexpr bool takes_flat      = false;

  Params params;
  Values<const T> y;
  Values<const T> dy;
  Values<T> dx;

  KOKKOS_INLINE_FUNCTION SegmentedBackward of_head(std::int64_t head) const {
    return {params, y.of_head(head), dy.of_head(head), dx.of_head(head)};
  }

  KOKKOS_INLINE_FUNCTION void prefetch(std::int64_t begin, int count) const {
    y.prefetch(begin, count);
    dy.prefetch(begin, count);
  }

  template <int held, int threads, class Join>
  KOKKOS_INLINE_FUNCTION void share_row(const Shared<threads>& share, std::int64_t, const Join& join) const {
    constexpr int width = share_pack<held>;
    constexpr int K     = held / width;
    Pack<A, width> value[K];
    Pack<A, width> gradient[K];
    load(share, value, gradient);
    const State all     = join(params, State{sum_of(value, gradient)});
    const auto epilogue = make_epilogue<RowEpilogue>(params, all, all);
    share.template store<width, K>(dx, [&](int k, int v) { return epilogue(params, value[k][v], gradient[k][v]); });
  }

  template <int threads>
  KOKKOS_INLINE_FUNCTION State reduce_shared(std::int64_t begin, std::int64_t end, int rank) const {
    RunningTerms<Params> running{};
    for_shared_tiles<threads, known_stride>(begin, end, lane_elements, rank, [&](const Shared<threads>& share) {
      Pack<A, 4> value[max_packs];
      Pack<A, 4> gradient[max_packs];
      load(share, value, gradient);
      running = running + RunningTerms<Params>(sum_of(value, gradient));
    });
    return {static_cast<typename Params::wide_sum>(running)};
  }

  template <int threads>
  KOKKOS_INLINE_FUNCTION void write_shared(std::int64_t begin, std::int64_t end, const State& all, int rank) const {
    const auto epilogue = make_epilogue<RowEpilogue>(params, all, all);
    for_shared_tiles<threads, known_stride>(begin, end, lane_elements, rank, [&](const Shared<threads>& share) {
      Pack<A, 4> value[max_packs];
      Pack<A, 4> gradient[max_packs];
      load(share, value, gradient);
      share.template store<4, max_packs>(dx,
                                         [&](int k, int v) { return epilogue(params, value[k][v], gradient[k][v]); });
    });
  }

 private:
  using RowEpilogue = typename OpEpilogue::template Row<Params, A>;

  template <int threads, int width, int K>
  KOKKOS_INLINE_FUNCTION void load(const Shared<threads>& share, Pack<A, width> (&value)[K],
                                   Pack<A, width> (&gradient)[K]) const {
    share.load(y, value, A(0));
    share.load(dy, gradient, A(0));
  }

  template <int width, int K>
  KOKKOS_INLINE_FUNCTION static typename Params::wide_sum sum_of(const Pack<A, width> (&value)[K],
                                                                 const Pack<A, width> (&gradient)[K]) {
    return sums_of_packs<Params, 1>([&](const auto& f) {
             KOKKOSNN_IMPL_UNROLL
             for (int k = 0; k < K; ++k) f(value[k], gradient[k]);
           })
        .all_lanes();
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_SEGMENTED_ROWS_HPP
