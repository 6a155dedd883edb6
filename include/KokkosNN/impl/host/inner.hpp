// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_INNER_HPP
#define KOKKOSNN_IMPL_HOST_INNER_HPP

#include <KokkosNN/impl/gpu/gradient_inner_lanes.hpp>
#include <KokkosNN/impl/gpu/inner_lanes.hpp>
#include <KokkosNN/impl/host/row_per_lane.hpp>
#include <KokkosNN/impl/host/sums.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>
#include <KokkosNN/impl/backend.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <type_traits>

// Kernel inner_lanes on a host: a thread processes a block of rows side by side, some vectors of them, along the
// reduced axis, some columns at a time. Columns that are needed again are kept, in the order in which they will be
// read, if they fit in a cache; otherwise columns are read twice.

namespace KokkosNN::Impl {

/// Rows of a block: `count` of them lie in the tensor.
template <class A>
struct InnerBlock {
  static constexpr int lanes = simd_width<A>;

  std::int64_t outer;
  std::int64_t first;
  int count;

  KOKKOS_FORCEINLINE_FUNCTION int vectors() const { return (count + lanes - 1) / lanes; }
  /// Number of rows in the v-th vector.
  KOKKOS_FORCEINLINE_FUNCTION int rows(int v) const { return std::min<int>(lanes, count - v * lanes); }
};

/// Vectors of a block at each column of a tensor.
template <class T, class A>
struct BlockColumns {
  static constexpr int lanes = simd_width<A>;
  static constexpr int step  = host_inner_step;
  /// True if vectors are loaded and stored as they lie in memory: a float of a call in double is converted.
  static constexpr bool has_vectors = std::is_same_v<accumulator_t<T>, A>;

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
    const int rows      = block.rows(v);
    const T* const from = at(c, v);
    if (rows == lanes && inner_stride == 1) return load_whole(from);
    A each[lanes] = {};
    for (int l = 0; l < rows; ++l) each[l] = static_cast<A>(from[l * inner_stride]);
    return load_vector(each);
  }

  /// Loads n columns from c on; `pad` instead of those behind them.
  KOKKOS_FORCEINLINE_FUNCTION void load(std::int64_t c, int n, int v, A pad, Vector<A> (&values)[step]) const {
    if (n == step && block.rows(v) == lanes && inner_stride == 1) {
      for (int i = 0; i < step; ++i) values[i] = load_whole(at(c + i, v));
    } else {
      for (int i = 0; i < step; ++i) values[i] = i < n ? load(c + i, v) : splat<Vector<A>>(pad);
    }
  }

  /// Stores a vector; by non-temporal stores if `nontemporal_stores`, which `may_store_nontemporal` allows.
  template <bool nontemporal_stores>
  KOKKOS_FORCEINLINE_FUNCTION void store(const Vector<A>& value, std::int64_t c, int v) const {
    const int rows = block.rows(v);
    T* const to    = at(c, v);
    if (rows == lanes && inner_stride == 1) {
      if constexpr (nontemporal_stores && has_vectors) return store_vector_nontemporal(to, value);
      return store_whole(to, value);
    }
    A each[lanes];
    store_vector(each, value);
    for (int l = 0; l < rows; ++l) to[l * inner_stride] = static_cast<T>(each[l]);
  }
  KOKKOS_FORCEINLINE_FUNCTION bool may_store_nontemporal() const {
    const auto is_whole = [](std::uintptr_t bytes) { return bytes % (lanes * sizeof(T)) == 0; };
    return has_vectors && inner_stride == 1 && is_whole(reinterpret_cast<std::uintptr_t>(base)) &&
           is_whole(static_cast<std::uintptr_t>(col_stride) * sizeof(T));
  }

  /// Prefetches columns that will be loaded soon: a machine does not see by itself that they come next. It pays where
  /// tensors are not in the caches.
  ///   LayoutLeft 4096 x 4096 f32 softmax_backward, two cores | 17.8 GB/s | without 13.8
  ///   LayoutLeft 16384 x 64 | 52 GB/s | without 60
  KOKKOS_FORCEINLINE_FUNCTION void look_ahead(std::int64_t c) const {
    for (int i = 0; i < step; ++i) prefetch_elements<host_line>(base + (c + i) * col_stride, block.count);
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION T* at(std::int64_t c, int v) const {
    return base + c * col_stride + v * lanes * inner_stride;
  }

  KOKKOS_FORCEINLINE_FUNCTION static Vector<A> load_whole(const T* from) {
    if constexpr (has_vectors) {
      return load_vector(from);
    } else {
      A each[lanes];
      for (int l = 0; l < lanes; ++l) each[l] = static_cast<A>(from[l]);
      return load_vector(each);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION static void store_whole(T* to, const Vector<A>& value) {
    if constexpr (has_vectors) {
      store_vector(to, value);
    } else {
      A each[lanes];
      store_vector(each, value);
      for (int l = 0; l < lanes; ++l) to[l] = static_cast<T>(each[l]);
    }
  }
};

/// Calls f(c, n) for every n columns from c on.
template <class F>
KOKKOS_FORCEINLINE_FUNCTION void for_steps(std::int64_t cols, const F& f) {
  for (std::int64_t c = 0; c < cols; c += host_inner_step) {
    f(c, static_cast<int>(std::min<std::int64_t>(host_inner_step, cols - c)));
  }
}

/// Shape of a call on rows side by side, which all threads share.
struct InnerCallShape {
  std::int64_t outer;
  std::int64_t inner;
  std::int64_t cols;
  int width;  // rows of a block
  bool nontemporal_stores;
  int scratch_level;
  int scratch_bytes;

  /// Calls f(block, held) for the blocks of this thread; `held` is memory for the columns that it keeps.
  template <class A, class Member, class F>
  void for_blocks(const Member& team, const F& f) const {
    char* const scratch = static_cast<char*>(team_scratch(team, scratch_level, scratch_bytes));
    const auto bytes    = static_cast<std::size_t>(scratch_bytes) / static_cast<std::size_t>(team.team_size());
    A* const held = reinterpret_cast<A*>(host_aligned(scratch + bytes * static_cast<std::size_t>(team.team_rank())));
    const std::int64_t blocks  = (inner + width - 1) / width;
    const std::int64_t threads = std::int64_t(team.league_size()) * team.team_size();
    for (std::int64_t b = std::int64_t(team.league_rank()) * team.team_size() + team.team_rank(); b < outer * blocks;
         b += threads) {
      const std::int64_t o     = b / blocks;
      const std::int64_t first = (b - o * blocks) * width;
      f(InnerBlock<A>{o, first, static_cast<int>(std::min<std::int64_t>(width, inner - first))}, held);
    }
    if (nontemporal_stores) fence_nontemporal_stores();
  }

  /// Stores value(i, v), the i-th column of a step, for all columns of a block, one after the other: stores do not wait
  /// for one another if they are neighbours. `prepare(c, n)` is called ahead of the n columns from c on.
  template <class T, class A, class Prepare, class Value>
  KOKKOS_FORCEINLINE_FUNCTION void write(const BlockColumns<T, A>& out, const Prepare& prepare,
                                         const Value& value) const {
    if (nontemporal_stores && out.may_store_nontemporal()) return write_by<true>(out, prepare, value);
    write_by<false>(out, prepare, value);
  }

  /// Stores values that compute(c, n, v, y) computes, a step at a time.
  template <int most, class T, class A, class Compute>
  KOKKOS_FORCEINLINE_FUNCTION void write_computed(const BlockColumns<T, A>& out, const Compute& compute) const {
    Vector<A> results[most][host_inner_step];
    write(
        out,
        [&](std::int64_t c, int n) KOKKOSNN_IMPL_INLINED {
          for (int v = 0; v < out.block.vectors(); ++v) compute(c, n, v, results[v]);
        },
        [&](int i, int v) KOKKOSNN_IMPL_INLINED { return results[v][i]; });
  }

 private:
  template <bool past_caches, class T, class A, class Prepare, class Value>
  KOKKOS_FORCEINLINE_FUNCTION void write_by(const BlockColumns<T, A>& out, const Prepare& prepare,
                                            const Value& value) const {
    const int vectors = out.block.vectors();
    for_steps(cols, [&](std::int64_t c, int n) KOKKOSNN_IMPL_INLINED {
      prepare(c, n);
      for (int i = 0; i < n; ++i) {
        for (int v = 0; v < vectors; ++v) out.template store<past_caches>(value(i, v), c + i, v);
      }
    });
  }
};

template <class Plan>
InnerCallShape inner_shape(const Plan& plan, std::int64_t rows, std::int64_t inner, std::int64_t cols) {
  return {rows / inner,
          inner,
          cols,
          plan.pack,
          plan.nontemporal_stores,
          plan.scratch_level,
          static_cast<int>(plan.scratch_bytes)};
}

/// Functor of softmax, log_softmax and logsumexp.
template <RowOperator op, class Params, class Source, class Output>
struct HostInner {
  using A                    = typename Params::accumulator;
  using T                    = Vector<A>;
  using X                    = std::remove_const_t<typename Source::value_type>;
  using State                = typename Params::State;
  using OpEpilogue           = Epilogue<op>;
  static constexpr int lanes = simd_width<A>;
  static constexpr int step  = host_inner_step;
  static constexpr int most  = host_inner_bytes / int(sizeof(T));  // vectors side by side
  /// Columns of a step that are kept: exponentials and their references, or logits.
  static constexpr bool keeps_exponentials = op == RowOperator::softmax;
  static constexpr int kept                = host_inner_kept(op) * lanes;

  Source source;
  Output output;
  Params params;
  InnerCallShape shape;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    KOKKOS_IF_ON_HOST((shape.for_blocks<A>(team, [&](const InnerBlock<A>& block, A* held) { do_block(block, held); });))
  }

 private:
  using Rows = RawArray<RunningLanes<Params>, most>;

  void do_block(const InnerBlock<A>& block, A* held) const {
    const BlockColumns<const X, A> input({source.data, source.col_stride, source.inner_stride, source.map}, block);
    Rows rows;
    for (int v = 0; v < block.vectors(); ++v) new (rows.at(v)) RunningLanes<Params>(params);
    if constexpr (OpEpilogue::one_value_a_row) {
      reduce<false>(input, held, rows);
      for (int v = 0; v < block.vectors(); ++v) store_values(block, v, rows[v]);
    } else if (host_inner_keeps(op, shape.cols)) {
      reduce<true>(input, held, rows);
      write_kept(block, held, rows);
    } else {
      reduce<false>(input, held, rows);
      write_again(block, input, rows);
    }
  }

  template <bool keeps>
  void reduce(const BlockColumns<const X, A>& input, A* held, Rows& rows) const {
    const Params own   = params;
    const bool negates = own.sign < A(0);
    const int vectors  = input.block.vectors();
    for_steps(shape.cols, [&](std::int64_t c, int n) KOKKOSNN_IMPL_INLINED {
      if (shape.nontemporal_stores) input.look_ahead(c + step);
      for (int v = 0; v < vectors; ++v) {
        T x[step], e[step];
        input.load(c, n, v, own.template pad<A>(), x);
        if (negates) {
          for (T& each : x) each = -each;
        }
        rows[v].template take<sum_for<op>>(own, x, e);
        if constexpr (keeps) {
          for (int i = 0; i < step; ++i) store_vector(held + i * lanes, keeps_exponentials ? e[i] : x[i]);
          if constexpr (keeps_exponentials) store_vector(held + step * lanes, rows[v].reference());
          held += kept;
        }
      }
    });
  }

  /// Makes the epilogue of each vector.
  auto epilogue_of(const InnerBlock<A>& block, const Rows& rows) const {
    using Wide = typename OpEpilogue::template Row<Params, T>;
    RawArray<Wide, most> epilogue;
    for (int v = 0; v < block.vectors(); ++v) new (epilogue.at(v)) Wide(rows[v].template epilogue<OpEpilogue>(params));
    return epilogue;
  }

  void write_kept(const InnerBlock<A>& block, A* held, const Rows& rows) const {
    const Params own    = params;
    const int vectors   = block.vectors();
    const auto epilogue = epilogue_of(block, rows);
    A* of_step          = held;
    shape.write(
        BlockColumns<typename Output::value_type, A>(output, block),
        [&](std::int64_t c, int) KOKKOSNN_IMPL_INLINED {
          of_step = held + c / step * vectors * kept;
          if constexpr (keeps_exponentials) {
            for (int v = 0; v < vectors; ++v) {
              A* const exponentials = of_step + v * kept;
              rows[v].bring_up(own, load_vector(exponentials + step * lanes), exponentials, step);
            }
          }
        },
        [&](int i, int v)
            KOKKOSNN_IMPL_INLINED { return epilogue[v](own, load_vector(of_step + v * kept + i * lanes)); });
  }

  void write_again(const InnerBlock<A>& block, const BlockColumns<const X, A>& input, const Rows& rows) const {
    const Params own    = params;
    const T sign        = splat<T>(own.sign);
    const auto epilogue = epilogue_of(block, rows);
    shape.write_computed<most>(BlockColumns<typename Output::value_type, A>(output, block),
                               [&](std::int64_t c, int n, int v, T(&y)[step]) KOKKOSNN_IMPL_INLINED {
                                 if (v == 0 && shape.nontemporal_stores) input.look_ahead(c + step);
                                 input.load(c, n, v, A(0), y);
                                 for (T& x : y) x = epilogue[v].from_input(own, x * sign);
                               });
  }

  void store_values(const InnerBlock<A>& block, int v, const RunningLanes<Params>& rows) const {
    const std::int64_t first = block.outer * shape.inner + block.first + v * lanes;
    State states[lanes];
    rows.store(params, states);
    for (int l = 0; l < block.rows(v); ++l) output.store(OpEpilogue::value(params, states[l]), first + l);
  }
};

/// Functor of the gradients: two tensors and a sum a row, or one tensor and scalars of a row.
template <RowOperator op, class Params, class Source, class Output>
struct HostGradientInner {
  using A                    = typename Params::accumulator;
  using T                    = Vector<A>;
  using State                = typename Params::State;
  using OpEpilogue           = Epilogue<op>;
  using Narrow               = typename OpEpilogue::template Row<Params, A>;
  using Wide                 = typename OpEpilogue::template Row<Params, T>;
  static constexpr int lanes = simd_width<A>;
  static constexpr int step  = host_inner_step;
  static constexpr int most  = host_inner_bytes / int(sizeof(T));

  Source source;
  Output output;
  Params params;
  InnerCallShape shape;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    KOKKOS_IF_ON_HOST((do_blocks(team);))
  }

 private:
  template <class Member>
  void do_blocks(const Member& team) const {
    shape.for_blocks<A>(team, [&](const InnerBlock<A>& block, A*) {
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

  /// Reads both tensors twice: to keep them takes more out of the caches than it saves.
  void do_pairs(const InnerBlock<A>& block) const {
    const Params own  = params;
    const auto y      = columns_of(source.y, block);
    const auto dy     = columns_of(source.dy, block);
    const int vectors = block.vectors();
    LaneTerms<Params> sums[most];
    for_steps(shape.cols, [&](std::int64_t c, int n) KOKKOSNN_IMPL_INLINED {
      if (shape.nontemporal_stores && Params::sums_products) y.look_ahead(c + step);
      if (shape.nontemporal_stores) dy.look_ahead(c + step);
      for (int v = 0; v < vectors; ++v) {
        T a[step] = {}, b[step];
        if constexpr (Params::sums_products) y.load(c, n, v, A(0), a);
        dy.load(c, n, v, A(0), b);
        for (int i = 0; i < step; ++i) sums[v].add(a[i], b[i]);
      }
    });
    RawArray<Wide, most> epilogue;
    for (int v = 0; v < vectors; ++v) {
      typename Params::wide_sum each[lanes];
      sums[v].lanes(each);
      new (epilogue.at(v)) Wide(lanes_epilogue<OpEpilogue, Params>([&](int l) { return Narrow(own, State{each[l]}); }));
    }
    std::int64_t of_step = 0;
    shape.write(
        BlockColumns<typename Output::value_type, A>(output, block),
        [&](std::int64_t c, int) KOKKOSNN_IMPL_INLINED {
          of_step = c;
          if (!shape.nontemporal_stores) return;
          y.look_ahead(c + step);
          dy.look_ahead(c + step);
        },
        [&](int i, int v)
            KOKKOSNN_IMPL_INLINED { return epilogue[v](own, y.load(of_step + i, v), dy.load(of_step + i, v)); });
  }

  void do_elements(const InnerBlock<A>& block) const {
    const Params own = params;
    const auto x     = columns_of(source.x, block);
    RawArray<Wide, most> epilogue;
    for (int v = 0; v < block.vectors(); ++v) {
      const std::int64_t first = block.outer * shape.inner + block.first + v * lanes;
      const int last           = block.rows(v) - 1;
      new (epilogue.at(v)) Wide(lanes_epilogue<OpEpilogue, Params>(
          [&](int l) { return Narrow(own, source.template scalars<A>(first + std::min(l, last))); }));
    }
    shape.write_computed<most>(BlockColumns<typename Output::value_type, A>(output, block),
                               [&](std::int64_t c, int n, int v, T(&dx)[step]) KOKKOSNN_IMPL_INLINED {
                                 if (v == 0 && shape.nontemporal_stores) x.look_ahead(c + step);
                                 x.load(c, n, v, A(0), dx);
                                 for (T& value : dx) value = epilogue[v](own, value);
                               });
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_INNER_HPP
