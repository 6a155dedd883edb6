// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_KERNELS_HOST_INNER_HPP
#define KOKKOSNN_IMPL_KERNELS_HOST_INNER_HPP

#include <KokkosNN/impl/device_traits.hpp>
#include <KokkosNN/impl/kernels/gradient_inner_lanes.hpp>
#include <KokkosNN/impl/kernels/inner_lanes.hpp>
#include <KokkosNN/impl/primitives/finish.hpp>
#include <KokkosNN/impl/primitives/gradient.hpp>
#include <KokkosNN/impl/primitives/host_lanes.hpp>
#include <KokkosNN/impl/primitives/host_sums.hpp>
#include <KokkosNN/impl/primitives/vector.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

// inner_lanes on a host: a thread has a block of rows side by side, some vectors of them, and goes along the reduced
// axis. The columns of a block are kept in the second-level cache where they fit in there, otherwise they are read twice.

namespace KokkosNN::Impl {

/// The rows of a block: `count` of them lie in the tensor.
template <class A>
struct InnerBlock {
  static constexpr int lanes = lanes_of<A>;

  std::int64_t outer;
  std::int64_t first;
  int count;

  KOKKOS_FORCEINLINE_FUNCTION int vectors() const { return (count + lanes - 1) / lanes; }
  /// Rows of the v-th vector.
  KOKKOS_FORCEINLINE_FUNCTION int rows(int v) const { return std::min<int>(lanes, count - v * lanes); }
};

/// The vectors of a block at each column of a tensor.
template <class T, class A>
struct BlockColumns {
  static constexpr int lanes      = lanes_of<A>;
  static constexpr bool is_direct = std::is_same_v<std::remove_const_t<T>, A>;
  static constexpr int columns_ahead = 16;

  T* base;
  std::int64_t col_stride;
  std::int64_t inner_stride;
  InnerBlock<A> block;

  BlockColumns(const InnerRows<T>& rows, const InnerBlock<A>& of)
      : base(rows.data + rows.map(of.outer) + of.first * rows.inner_stride),
        col_stride(rows.col_stride),
        inner_stride(rows.inner_stride),
        block(of) {}

  KOKKOS_FORCEINLINE_FUNCTION Vector<A> load(std::int64_t c, int v) const {
    const T* const from = base + c * col_stride + v * lanes * inner_stride;
    const int rows      = block.rows(v);
    if constexpr (is_direct) {
      if (rows == lanes && inner_stride == 1) return load_vector<A>(from);
    }
    A each[lanes] = {};
    for (int l = 0; l < rows; ++l) each[l] = static_cast<A>(from[l * inner_stride]);
    return load_vector(each);
  }

  KOKKOS_FORCEINLINE_FUNCTION void store(const Vector<A>& value, std::int64_t c, int v) const {
    T* const to    = base + c * col_stride + v * lanes * inner_stride;
    const int rows = block.rows(v);
    if constexpr (is_direct) {
      if (rows == lanes && inner_stride == 1) return store_vector(to, value);
    }
    A each[lanes];
    store_vector(each, value);
    for (int l = 0; l < rows; ++l) to[l * inner_stride] = static_cast<T>(each[l]);
  }

  /// Asks for a column that will be loaded soon: a machine does not see by itself that it comes next.
  KOKKOS_FORCEINLINE_FUNCTION void look_ahead(std::int64_t c) const {
    const char* const line = reinterpret_cast<const char*>(base + (c + columns_ahead) * col_stride);
    for (int byte = 0; byte < block.count * int(sizeof(T)); byte += int(host_line)) prefetch_line(line + byte);
  }
};

/// f(block) for the blocks of `width` rows of this thread.
template <class A, class Member, class F>
void for_blocks(const Member& team, std::int64_t outer, std::int64_t inner, int width, const F& f) {
  const std::int64_t blocks  = (inner + width - 1) / width;
  const std::int64_t threads = std::int64_t(team.league_size()) * team.team_size();
  for (std::int64_t b = std::int64_t(team.league_rank()) * team.team_size() + team.team_rank(); b < outer * blocks;
       b += threads) {
    const std::int64_t o     = b / blocks;
    const std::int64_t first = (b - o * blocks) * width;
    f(InnerBlock<A>{o, first, static_cast<int>(std::min<std::int64_t>(width, inner - first))});
  }
}

/// Softmax and its kin.
template <RowOperator op, class Math, class Source, class Sink>
struct HostInner {
  using A                     = typename Math::accumulator;
  using T                     = Vector<A>;
  using X                     = std::remove_const_t<typename Source::value_type>;
  using State                 = typename Math::State;
  using Finisher              = Finish<op>;
  static constexpr int lanes  = lanes_of<A>;
  static constexpr int most   = host_inner_bytes / int(sizeof(T));  // vectors side by side
  static constexpr bool keeps = op == RowOperator::softmax;         // the exponentials

  Source source;
  Sink sink;
  Math math;
  std::int64_t outer;
  std::int64_t inner;
  std::int64_t cols;
  int width;  // rows of a block
  int scratch_level;
  int scratch_bytes;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    KOKKOS_IF_ON_HOST((do_blocks(team);))
  }

 private:
  template <class Member>
  void do_blocks(const Member& team) const {
    char* const scratch = static_cast<char*>(team_scratch(team, scratch_level, scratch_bytes));
    const auto bytes    = static_cast<std::size_t>(scratch_bytes) / static_cast<std::size_t>(team.team_size());
    A* const held       = reinterpret_cast<A*>(host_aligned(scratch + bytes * static_cast<std::size_t>(team.team_rank())));
    for_blocks<A>(team, outer, inner, width, [&](const InnerBlock<A>& block) {
      host_inner_keeps(cols, width, sizeof(A)) ? do_kept(block, held) : do_twice(block, held);
    });
  }

  BlockColumns<const X, A> input_of(const InnerBlock<A>& block) const {
    return {InnerRows<const X>{source.data, source.col_stride, source.inner_stride, source.map}, block};
  }

  /// Columns begin to end; the largest logits.
  void load(const BlockColumns<const X, A>& input, std::int64_t begin, std::int64_t end, A* held, T (&max)[most]) const {
    const int vectors = input.block.vectors();
    const T sign      = splat<T>(math.sign);
    for (int v = 0; v < vectors; ++v) max[v] = splat<T>(-Kokkos::Experimental::infinity_v<A>);
    for (std::int64_t c = begin; c < end; ++c) {
      A* const to = held + (c - begin) * width;
      input.look_ahead(c);
      for (int v = 0; v < vectors; ++v) {
        const T x = input.load(c, v) * sign;
        store_vector(to + v * lanes, x);
        max[v] = max_ignoring_nan(max[v], x);
      }
    }
  }

  void do_kept(const InnerBlock<A>& block, A* held) const {
    T max[most];
    load(input_of(block), 0, cols, held, max);
    for (int v = 0; v < block.vectors(); ++v) {
      A* const own     = held + v * lanes;
      const auto state = reduce_side_by_side<keeps, sum_for<op>>(math, own, cols, width, max[v]);
      if constexpr (Finisher::one_value_a_row) {
        State states[lanes];
        state.store(states);
        store_values(block, v, states);
      } else {
        const auto finish = finish_own_lanes<Finisher>(math, state);
        for (std::int64_t c = 0; c < cols; ++c) store_vector(own + c * width, finish(math, load_vector(own + c * width)));
      }
    }
    if constexpr (!Finisher::one_value_a_row) {
      const BlockColumns<typename Sink::value_type, A> output(sink, block);
      for (std::int64_t c = 0; c < cols; ++c) {
        for (int v = 0; v < block.vectors(); ++v) output.store(load_vector(held + c * width + v * lanes), c, v);
      }
    }
  }

  void do_twice(const InnerBlock<A>& block, A* held) const {
    const auto input        = input_of(block);
    const std::int64_t step = host_inner_columns(width, sizeof(A));
    State total[most][lanes];
    for (std::int64_t begin = 0; begin < cols; begin += step) {
      const std::int64_t end = std::min(cols, begin + step);
      T max[most];
      load(input, begin, end, held, max);
      for (int v = 0; v < block.vectors(); ++v) {
        State states[lanes];
        reduce_side_by_side<false, sum_for<op>>(math, held + v * lanes, end - begin, width, max[v]).store(states);
        for (int l = 0; l < lanes; ++l) total[v][l] = merge_two(math, total[v][l], states[l]);
      }
    }
    if constexpr (Finisher::one_value_a_row) {
      for (int v = 0; v < block.vectors(); ++v) store_values(block, v, total[v]);
    } else {
      write_again(block, input, total);
    }
  }

  void write_again(const InnerBlock<A>& block, const BlockColumns<const X, A>& input,
                   const State (&total)[most][lanes]) const {
    using Narrow = typename Finisher::template Row<Math, A>;
    using Wide   = typename Finisher::template Row<Math, T>;
    const BlockColumns<typename Sink::value_type, A> output(sink, block);
    RawArray<Wide, most> finish;
    for (int v = 0; v < block.vectors(); ++v) {
      new (finish.at(v)) Wide(finish_lanes<Finisher, Math>(
          [&](int l) { return finish_row<Narrow>(math, total[v][l], total[v][l]); }));
    }
    const T sign = splat<T>(math.sign);
    for (std::int64_t c = 0; c < cols; ++c) {
      input.look_ahead(c);
      for (int v = 0; v < block.vectors(); ++v) output.store(finish[v].from_input(math, input.load(c, v) * sign), c, v);
    }
  }

  void store_values(const InnerBlock<A>& block, int v, const State (&states)[lanes]) const {
    const std::int64_t first = block.outer * inner + block.first + v * lanes;
    for (int l = 0; l < block.rows(v); ++l) sink.store(Finisher::value(math, states[l]), first + l);
  }
};

/// The gradients: two tensors and a sum a row, or one and what a row brings along.
template <RowOperator op, class Math, class Source, class Sink>
struct HostGradientInner {
  using A                    = typename Math::accumulator;
  using T                    = Vector<A>;
  using State                = typename Math::State;
  using Finisher             = Finish<op>;
  using Narrow               = typename Finisher::template Row<Math, A>;
  using Wide                 = typename Finisher::template Row<Math, T>;
  static constexpr int lanes = lanes_of<A>;
  static constexpr int most  = host_inner_bytes / int(sizeof(T));

  Source source;
  Sink sink;
  Math math;
  std::int64_t outer;
  std::int64_t inner;
  std::int64_t cols;
  int width;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    KOKKOS_IF_ON_HOST((do_blocks(team);))
  }

 private:
  template <class Member>
  void do_blocks(const Member& team) const {
    for_blocks<A>(team, outer, inner, width, [&](const InnerBlock<A>& block) {
      if constexpr (is_joined<State>) {
        do_pairs(block);
      } else {
        do_elements(block);
      }
    });
  }

  template <class E>
  static BlockColumns<const E, A> columns_of(const InnerRows<const E>& rows, const InnerBlock<A>& block) {
    return {rows, block};
  }

  void do_pairs(const InnerBlock<A>& block) const {
    const auto y      = columns_of(source.y, block);
    const auto dy     = columns_of(source.dy, block);
    const int vectors = block.vectors();
    HostTerms<Math> sums[most];
    for (std::int64_t c = 0; c < cols; ++c) {
      if constexpr (Math::sums_products) y.look_ahead(c);
      dy.look_ahead(c);
      for (int v = 0; v < vectors; ++v) {
        if constexpr (Math::sums_products) {
          sums[v].add(y.load(c, v), dy.load(c, v));
        } else {
          sums[v].add(T{}, dy.load(c, v));
        }
      }
    }
    RawArray<Wide, most> finish;
    for (int v = 0; v < vectors; ++v) {
      typename Math::wide_sum each[lanes];
      sums[v].lanes(each);
      new (finish.at(v)) Wide(finish_lanes<Finisher, Math>([&](int l) { return Narrow(math, State{each[l]}); }));
    }
    const BlockColumns<typename Sink::value_type, A> output(sink, block);
    for (std::int64_t c = 0; c < cols; ++c) {
      y.look_ahead(c);
      dy.look_ahead(c);
      for (int v = 0; v < vectors; ++v) output.store(finish[v](math, y.load(c, v), dy.load(c, v)), c, v);
    }
  }

  void do_elements(const InnerBlock<A>& block) const {
    const auto x = columns_of(source.x, block);
    const BlockColumns<typename Sink::value_type, A> output(sink, block);
    RawArray<Wide, most> finish;
    for (int v = 0; v < block.vectors(); ++v) {
      const std::int64_t first = block.outer * inner + block.first + v * lanes;
      const int last           = block.rows(v) - 1;
      new (finish.at(v)) Wide(finish_lanes<Finisher, Math>(
          [&](int l) { return Narrow(math, source.template scalars<A>(first + std::min(l, last))); }));
    }
    for (std::int64_t c = 0; c < cols; ++c) {
      x.look_ahead(c);
      for (int v = 0; v < block.vectors(); ++v) output.store(finish[v](math, x.load(c, v)), c, v);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNELS_HOST_INNER_HPP
