// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_GRAPH_ATTENTION_LANES_HPP
#define KOKKOSNN_IMPL_GPU_GRAPH_ATTENTION_LANES_HPP

#include <KokkosNN/impl/gpu/device/warp.hpp>
#include <KokkosNN/impl/gpu/graph_attention.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Attention over the edges of a graph on a GPU, where rows are whole packs of 16 bytes. A warp has a node and head, or
// a source and head of k. Some of its lanes have the packs of a row; that many rows are gathered side by side as the
// warp has lanes for, and several times as many are asked for at once: the gathers of rows are all that takes time.
// Lanes add up what they gather in the order of the edges, and their sums are joined in a fixed order.

namespace KokkosNN::Impl {

/// Rows that each lane asks for at once.
inline constexpr int graph_rows_at_once = 4;

/// A lane's part of a row: `packs` packs of 16 bytes, as many lanes as share the row apart.
template <class X, int packs>
struct GraphRowPart {
  using A                   = accumulator_t<X>;
  static constexpr int pack = 16 / int(sizeof(X));

  A value[packs][pack];

  KOKKOS_FORCEINLINE_FUNCTION void clear() {
    for_all([](A& each) { each = 0; });
  }
  /// Loads the packs of a row that lane `part` of `lanes` has; those behind `dim` elements, or of no row, are zeros.
  KOKKOS_FORCEINLINE_FUNCTION void load(const X* row, int part, int lanes, std::int64_t dim) {
    KOKKOSNN_IMPL_UNROLL
    for (int n = 0; n < packs; ++n) {
      const std::int64_t first = std::int64_t(part + n * lanes) * pack;
      Words words{};
      if (row != nullptr && first < dim) words = *reinterpret_cast<const Words*>(row + first);
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < pack; ++i) value[n][i] = static_cast<A>(words.element[i]);
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void store(A factor, X* row, int part, int lanes, std::int64_t dim) const {
    KOKKOSNN_IMPL_UNROLL
    for (int n = 0; n < packs; ++n) {
      const std::int64_t first = std::int64_t(part + n * lanes) * pack;
      Words words;
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < pack; ++i) words.element[i] = static_cast<X>(value[n][i] * factor);
      if (first < dim) *reinterpret_cast<Words*>(row + first) = words;
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void set(A number) {
    for_all([&](A& each) { each = number; });
  }
  KOKKOS_FORCEINLINE_FUNCTION A product(const GraphRowPart& other) const {
    A sum = 0;
    KOKKOSNN_IMPL_UNROLL
    for (int n = 0; n < packs; ++n) {
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < pack; ++i) sum = Kokkos::fma(value[n][i], other.value[n][i], sum);
    }
    return sum;
  }
  /// Adds another row's part times a weight, unless that is 0.
  KOKKOS_FORCEINLINE_FUNCTION void add(A weight, const GraphRowPart& other) {
    if (weight == A(0)) return;
    KOKKOSNN_IMPL_UNROLL
    for (int n = 0; n < packs; ++n) {
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < pack; ++i) value[n][i] = Kokkos::fma(weight, other.value[n][i], value[n][i]);
    }
  }
  template <class F>
  KOKKOS_FORCEINLINE_FUNCTION void for_all(const F& f) {
    KOKKOSNN_IMPL_UNROLL
    for (int n = 0; n < packs; ++n) {
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < pack; ++i) f(value[n][i]);
    }
  }

 private:
  struct alignas(16) Words {
    X element[pack];
  };
};

/// A lane of a warp that gathers rows: `lanes` neighbouring lanes share a row.
struct GraphLane {
  int lane;
  int lanes;

  KOKKOS_FORCEINLINE_FUNCTION static int width() { return warp_width(); }
  KOKKOS_FORCEINLINE_FUNCTION int part() const { return lane % lanes; }
  KOKKOS_FORCEINLINE_FUNCTION int group() const { return lane / lanes; }
  KOKKOS_FORCEINLINE_FUNCTION int groups() const { return width() / lanes; }
  KOKKOS_FORCEINLINE_FUNCTION bool is_first() const { return part() == 0; }

  /// Sum over the lanes of a row.
  template <class A>
  KOKKOS_FORCEINLINE_FUNCTION A sum_of_row(A value) const {
    for (int mask = 1; mask < lanes; mask *= 2) value += shuffle_xor(value, mask);
    return value;
  }
  /// Joins a number of all groups.
  template <class A, class Join>
  KOKKOS_FORCEINLINE_FUNCTION A join_groups(A value, const Join& join) const {
    for (int mask = lanes; mask < width(); mask *= 2) value = join(value, shuffle_xor(value, mask));
    return value;
  }
  template <class A>
  KOKKOS_FORCEINLINE_FUNCTION A sum_of_groups(A value) const {
    return join_groups(value, [](A a, A b) { return a + b; });
  }
  /// The value of the first lane of this one's row.
  template <class A>
  KOKKOS_FORCEINLINE_FUNCTION A of_first(A value) const {
    return shuffle_from(value, lane - part());
  }
  /// Calls f(number, exists, n) for a lane's numbers from `begin` to `end` in rounds of `count`, all lanes together,
  /// and behind each round then().
  template <int count, class F, class Then>
  KOKKOS_FORCEINLINE_FUNCTION void in_rounds(std::int64_t begin, std::int64_t end, const F& f, const Then& then) const {
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t first = begin; first < end; first += std::int64_t(count) * groups()) {
      KOKKOSNN_IMPL_UNROLL
      for (int n = 0; n < count; ++n) {
        const std::int64_t number = first + n * groups() + group();
        f(number, number < end, n);
      }
      then();
    }
  }
};

/// Runs step(row, lane) of a step's rows, a warp each: items are lanes.
template <class Step>
struct GraphWarps {
  Step step;
  int lanes;       ///< that share a row
  int most_width;  ///< lanes that warps may have

  KOKKOS_FUNCTION std::int64_t items() const { return step.rows() * most_width; }
  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const std::int64_t row = item / GraphLane::width();
    if (row < step.rows()) step(row, GraphLane{static_cast<int>(item % GraphLane::width()), lanes});
  }
};

/// Attention of a node and head.
template <class X, int packs>
struct GraphForwardInWarp {
  using A                    = accumulator_t<X>;
  using Part                 = GraphRowPart<X, packs>;
  static constexpr int count = graph_rows_at_once;

  GraphLogits<X, 1> logits;

  KOKKOS_FUNCTION std::int64_t rows() const { return logits.data.layout.nodes * logits.data.layout.heads; }

  KOKKOS_FUNCTION void operator()(std::int64_t row, const GraphLane& lane) const {
    const GraphAttentionData<X>& data = logits.data;
    const GraphAttentionLayout& l     = data.layout;
    const std::int64_t head = row % l.heads, node = row / l.heads;
    const auto edges      = data.edges_of(node);
    const A max           = find_logits(node, head, lane);
    const A sink          = data.sink(head);
    const A reference     = finite_reference(max_ignoring_nan(max, sink));
    const X* const values = data.v + data.kv_head(head) * l.v.head;
    Part sum_of_values, value[count];
    A sum = 0, weight[count];
    sum_of_values.clear();
    lane.in_rounds<count>(
        edges.begin, edges.end,
        [&](std::int64_t edge, bool exists, int n) {
          // Only the lane that wrote a logit reads it.
          A logit = -Kokkos::Experimental::infinity_v<A>;
          if (exists && lane.is_first()) logit = data.probabilities[data.place(edge, head)];
          weight[n]                 = Kokkos::exp(lane.of_first(logit) - reference);
          const std::int64_t source = exists && weight[n] != A(0) ? data.source_of(edge) : -1;
          value[n].load(source < 0 ? nullptr : values + source * l.v.row, lane.part(), lane.lanes, l.value_dim);
        },
        [&] {
          KOKKOSNN_IMPL_UNROLL
          for (int n = 0; n < count; ++n) {
            sum += weight[n];
            sum_of_values.add(weight[n], value[n]);
          }
        });
    sum = lane.sum_of_groups(sum) + Kokkos::exp(sink - reference);
    sum_of_values.for_all([&](A& each) { each = lane.sum_of_groups(each); });
    write(node, head, lane, max_ignoring_nan(max, sink), sum, sum_of_values);
  }

 private:
  /// Writes the logits of a row's edges, and returns the largest one.
  KOKKOS_FORCEINLINE_FUNCTION A find_logits(std::int64_t node, std::int64_t head, const GraphLane& lane) const {
    const GraphAttentionData<X>& data = logits.data;
    const GraphAttentionLayout& l     = data.layout;
    const auto edges                  = data.edges_of(node);
    const X* const keys               = data.k + data.kv_head(head) * l.k.head;
    A max                             = -Kokkos::Experimental::infinity_v<A>;
    Part query, key[count];
    std::int64_t edge_of[count];  // -1: there is none
    bool has_source[count];
    query.load(data.q + l.q(node, head), lane.part(), lane.lanes, l.dim);
    lane.in_rounds<count>(
        edges.begin, edges.end,
        [&](std::int64_t edge, bool exists, int n) {
          const std::int64_t source = exists ? data.source_of(edge) : -1;
          edge_of[n]                = exists ? edge : -1;
          has_source[n]             = source >= 0;
          key[n].load(source < 0 ? nullptr : keys + source * l.k.row, lane.part(), lane.lanes, l.dim);
        },
        [&] {
          KOKKOSNN_IMPL_UNROLL
          for (int n = 0; n < count; ++n) {
            const A scaled = data.scale * lane.sum_of_row(query.product(key[n]));
            if (edge_of[n] < 0) continue;
            const A logit =
                has_source[n] ? logits.logit(edge_of[n], head, scaled) : -Kokkos::Experimental::infinity_v<A>;
            if (lane.is_first()) data.probabilities[data.place(edge_of[n], head)] = logit;
            max = max_ignoring_nan(max, logit);
          }
        });
    return lane.join_groups(max, [](A a, A b) { return max_ignoring_nan(a, b); });
  }

  KOKKOS_FORCEINLINE_FUNCTION void write(std::int64_t node, std::int64_t head, const GraphLane& lane, A max, A sum,
                                         Part& sum_of_values) const {
    const GraphAttentionData<X>& data = logits.data;
    const GraphAttentionLayout& l     = data.layout;
    const bool is_masked              = sum == A(0);
    if (data.lse != nullptr && lane.lane == 0) {
      data.lse[l.lse(node, head)] = is_masked ? -Kokkos::Experimental::infinity_v<A> : max + Kokkos::log(sum);
    }
    if (is_masked) sum_of_values.set(data.of_masked_rows);
    if (lane.group() == 0) {
      sum_of_values.store(is_masked ? A(1) : A(1) / sum, data.o + l.o(node, head), lane.part(), lane.lanes,
                          l.value_dim);
    }
  }
};

/// Gradients of the edges of a node and head, as GraphEdgeGradients finds them, and dq.
template <class X, int packs>
struct GraphEdgeGradientsInWarp {
  using A                    = accumulator_t<X>;
  using Part                 = GraphRowPart<X, packs>;
  static constexpr int count = 2;  ///< rows of keys, and of values, that a lane asks for at once

  GraphEdgeGradients<X, 1> step;

  KOKKOS_FUNCTION std::int64_t rows() const { return step.logits.data.layout.nodes * step.logits.data.layout.heads; }

  KOKKOS_FUNCTION void operator()(std::int64_t row, const GraphLane& lane) const {
    const GraphAttentionData<X>& data = step.logits.data;
    const GraphAttentionLayout& l     = data.layout;
    const std::int64_t head = row % l.heads, node = row / l.heads;
    const auto edges      = data.edges_of(node);
    const X* const keys   = data.k + data.kv_head(head) * l.k.head;
    const X* const values = data.v + data.kv_head(head) * l.v.head;
    Part query, dout, dq, key[count], value[count];
    std::int64_t edge_of[count], source_of[count];  // -1: there is none
    const A delta = load_row(node, head, lane, query, dout);
    const A lse   = data.lse[l.lse(node, head)];
    dq.clear();
    lane.in_rounds<count>(
        edges.begin, edges.end,
        [&](std::int64_t edge, bool exists, int n) {
          const std::int64_t source = exists ? data.source_of(edge) : -1;
          edge_of[n]                = exists ? edge : -1;
          source_of[n]              = source;
          key[n].load(source < 0 ? nullptr : keys + source * l.k.row, lane.part(), lane.lanes, l.dim);
          value[n].load(source < 0 ? nullptr : values + source * l.v.row, lane.part(), lane.lanes, l.value_dim);
        },
        [&] {
          KOKKOSNN_IMPL_UNROLL
          for (int n = 0; n < count; ++n) {
            const A scaled = data.scale * lane.sum_of_row(query.product(key[n]));
            const A dvalue = lane.sum_of_row(dout.product(value[n]));
            if (edge_of[n] < 0) continue;
            const auto terms = step.terms_of(edge_of[n], head, source_of[n], scaled, dvalue, lse, delta);
            if (lane.is_first()) step.store(edge_of[n], head, node, source_of[n], terms);
            dq.add(terms.gradient, key[n]);
          }
        });
    dq.for_all([&](A& each) { each = lane.sum_of_groups(each); });
    if (lane.group() == 0) dq.store(data.scale, data.dq + l.dq(node, head), lane.part(), lane.lanes, l.dim);
  }

 private:
  /// Loads a row's query and dout, and returns the sum of o dout.
  KOKKOS_FORCEINLINE_FUNCTION A load_row(std::int64_t node, std::int64_t head, const GraphLane& lane, Part& query,
                                         Part& dout) const {
    const GraphAttentionData<X>& data = step.logits.data;
    const GraphAttentionLayout& l     = data.layout;
    Part o;
    query.load(data.q + l.q(node, head), lane.part(), lane.lanes, l.dim);
    dout.load(data.dout + l.dout(node, head), lane.part(), lane.lanes, l.value_dim);
    o.load(data.o + l.o(node, head), lane.part(), lane.lanes, l.value_dim);
    return lane.sum_of_row(o.product(dout));
  }
};

/// dk and dv of a source and head of k.
template <class X, int packs>
struct GraphSourceSumsInWarp {
  using A                    = accumulator_t<X>;
  using Part                 = GraphRowPart<X, packs>;
  static constexpr int count = 2;  ///< rows of queries, and of dout, that a lane asks for at once

  GraphAttentionData<X> data;

  KOKKOS_FUNCTION std::int64_t rows() const { return data.layout.sources * data.layout.kv_heads; }

  KOKKOS_FUNCTION void operator()(std::int64_t row, const GraphLane& lane) const {
    const GraphAttentionLayout& l = data.layout;
    const std::int64_t kv_head = row % l.kv_heads, source = row / l.kv_heads;
    const std::int64_t begin = data.within(data.source_map[source]), end = data.within(data.source_map[source + 1]);
    Part dk, dv, query[count], dout[count];
    A gradient[count], probability[count];
    dk.clear();
    dv.clear();
    for (std::int64_t head = kv_head * l.group(); head < (kv_head + 1) * l.group(); ++head) {
      lane.in_rounds<count>(
          begin, end,
          [&](std::int64_t i, bool exists, int n) {
            const std::int64_t edge = exists ? data.source_edges[i] : 0;
            const std::int64_t node = exists ? data.edge_nodes[edge] : 0;
            gradient[n]             = exists ? data.gradients[data.place(edge, head)] : A(0);
            probability[n]          = exists ? data.probabilities[data.place(edge, head)] : A(0);
            query[n].load(exists ? data.q + l.q(node, head) : nullptr, lane.part(), lane.lanes, l.dim);
            dout[n].load(exists ? data.dout + l.dout(node, head) : nullptr, lane.part(), lane.lanes, l.value_dim);
          },
          [&] {
            KOKKOSNN_IMPL_UNROLL
            for (int n = 0; n < count; ++n) {
              dk.add(gradient[n], query[n]);
              dv.add(probability[n], dout[n]);
            }
          });
    }
    dk.for_all([&](A& each) { each = lane.sum_of_groups(each); });
    dv.for_all([&](A& each) { each = lane.sum_of_groups(each); });
    if (lane.group() != 0) return;
    dk.store(data.scale, data.dk + l.dk(source, kv_head), lane.part(), lane.lanes, l.dim);
    dv.store(A(1), data.dv + l.dv(source, kv_head), lane.part(), lane.lanes, l.value_dim);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_GRAPH_ATTENTION_LANES_HPP
