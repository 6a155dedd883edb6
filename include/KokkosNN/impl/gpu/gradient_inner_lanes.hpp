// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_GRADIENT_INNER_LANES_HPP
#define KOKKOSNN_IMPL_GPU_GRADIENT_INNER_LANES_HPP

#include <KokkosNN/impl/gpu/device/pair_tile.hpp>
#include <KokkosNN/impl/gpu/inner_lanes.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Kernel inner_lanes for gradients: as in inner_lanes.hpp, a pack holds neighbouring rows at one column; here two
// tensors have packs, and a row has one sum in place of (max, sum).

namespace KokkosNN::Impl {

/// Inner rows of y and of dy.
template <class Y, class D>
struct InnerPairs {
  using y_type  = Y;
  using dy_type = D;

  InnerRows<const Y> y;
  InnerRows<const D> dy;
};

/// Inner rows of x, each with its log-sum-exp and the gradient of that.
template <class X, class L>
struct InnerScalars {
  InnerRows<const X> x;
  const L* lse;
  const L* dlse;
  RowMap lse_map;
  RowMap dlse_map;

  template <class A>
  KOKKOS_INLINE_FUNCTION RowScalars<A> scalars(std::int64_t row) const {
    return {static_cast<A>(lse[lse_map(row)]), static_cast<A>(dlse[dlse_map(row)])};
  }
};

/// K packs of T at positions of the reduced axis.
template <class T, int V, int K>
struct HeldColumn {
  HeldPack<T, V> pack[K];

  /// Loads positions first, first + step, ...
  KOKKOS_INLINE_FUNCTION void load(const InnerColumn<const T, V>& column, const TileBounds& window, std::int64_t first,
                                   int step, std::int64_t cols) {
    const bool whole = column.whole_packs && window.template has_pack<V>(0);
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const std::int64_t c = first + k * std::int64_t(step);
      pack[k].clear();
      if (c >= cols) continue;
      if (whole) {
        pack[k].load(column.base + c * column.col_stride, column.policy);
      } else {
        pack[k].hold(column.at(c).template load_pack<V>(0, window, T(0)));
      }
    }
  }
};

template <RowOperator op, int V, int K, class Params, class Source, class Output>
struct GradientInnerLanes {
  using A           = typename Params::accumulator;
  using State       = typename Params::State;
  using T           = typename Output::value_type;
  using RowEpilogue = typename Epilogue<op>::template Row<Params, A>;

  Source source;
  Output output;
  Params params;
  std::int64_t outer;
  std::int64_t inner;
  std::int64_t cols;
  int lanes;  // packs side by side
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
  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_block(const Member& team, const InnerPlace& place, std::int64_t o,
                                       std::int64_t inner_begin, void* slots) const {
    const std::int64_t i    = inner_begin + std::int64_t(place.lane) * V;
    const TileBounds window = {inner - i < V ? static_cast<int>(inner - i) : V};
    if constexpr (is_joined<State>) {
      do_pairs(team, o, i, window, place, slots);
    } else {
      do_scalars(o, i, window, place);
    }
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_pairs(const Member& team, std::int64_t o, std::int64_t i, const TileBounds& window,
                                       const InnerPlace& place, void* slots) const {
    const auto y            = source.y.template column<V>(o, i);
    const auto dy           = source.dy.template column<V>(o, i);
    const std::int64_t step = std::int64_t(K) * place.depth;
    HeldColumn<typename Source::y_type, V, K> y_held;
    HeldColumn<typename Source::dy_type, V, K> dy_held;
    const auto load = [&](std::int64_t first) {
      y_held.load(y, window, first, place.depth, cols);
      dy_held.load(dy, window, first, place.depth, cols);
    };

    auto running     = filled<RunningTerms<Params>, V>(RunningTerms<Params>{});
    std::int64_t end = 0;  // end of the columns read so far
    for (; end < cols; end += step) {
      load(end + place.first);
      const auto sums = sums_of_held<Params, V>(y_held.pack, dy_held.pack);
      for (int v = 0; v < V; ++v) running[v] = running[v] + RunningTerms<Params>(sums.lane(v));
    }
    Pack<typename Params::wide_sum, V> own;
    for (int v = 0; v < V; ++v) own[v] = static_cast<typename Params::wide_sum>(running[v]);
    if (place.speakers() > 1) team.team_barrier();  // other threads may still read the slots
    const auto all = join_inner(team, place, own, static_cast<decltype(own)*>(slots), SumJoin{});

    RowEpilogue epilogue[V];
    for (int v = 0; v < V; ++v) epilogue[v] = RowEpilogue(params, State{all[v]});
    const auto out = output.template column<V>(o, i);
    // Backward: the last columns are still held, and those before may be in a cache.
    const std::int64_t last = end - step;
    for (std::int64_t c = last; c >= 0; c -= step) {
      if (c < last) load(c + place.first);
      store(out, window, c + place.first, place.depth, [&](int k) {
        Pack<T, V> result;
        y_held.pack[k].show_again(params.zero, [&](const auto& value) {
          dy_held.pack[k].show_again(params.zero, [&](const auto& gradient) {
            for (int v = 0; v < V; ++v) {
              result[v] = static_cast<T>(epilogue[v](params, static_cast<A>(value[v]), static_cast<A>(gradient[v])));
            }
          });
        });
        return result;
      });
    }
  }

  KOKKOS_INLINE_FUNCTION void do_scalars(std::int64_t o, std::int64_t i, const TileBounds& window,
                                         const InnerPlace& place) const {
    RowEpilogue epilogue[V];
    for (int v = 0; v < V; ++v) {
      epilogue[v] = RowEpilogue(params, source.template scalars<A>(o * inner + (v < window.end ? i + v : 0)));
    }
    const auto x   = source.x.template column<V>(o, i);
    const auto out = output.template column<V>(o, i);
    for (std::int64_t first = place.first; first < cols; first += std::int64_t(K) * place.depth) {
      HeldColumn<std::remove_const_t<typename decltype(source.x)::value_type>, V, K> held;
      held.load(x, window, first, place.depth, cols);
      store(out, window, first, place.depth, [&](int k) {
        Pack<T, V> result;
        held.pack[k].show([&](const auto& value) {
          for (int v = 0; v < V; ++v) result[v] = static_cast<T>(epilogue[v](params, static_cast<A>(value[v])));
        });
        return result;
      });
    }
  }

  /// Stores the packs of positions first, first + step, ..., result(k) being the k-th.
  template <class OutputRow, class Result>
  KOKKOS_INLINE_FUNCTION void store(const OutputRow& out, const TileBounds& window, std::int64_t first, int step,
                                    const Result& result) const {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const std::int64_t c = anew(first + k * std::int64_t(step));
      if (c < cols) out.at(c).template store_pack<V>(result(k), 0, window);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_GRADIENT_INNER_LANES_HPP
