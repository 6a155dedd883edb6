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
// a source and head of k, and its edges in blocks of as many as it has lanes: what is one number an edge, a lane has.
// The rows of a block are gathered in rounds. Some lanes have the packs of a row, and so many rows lie side by side as
// the warp has lanes for: groups. Several rounds are asked for at once, as the gathers are what takes time. Lanes add
// up what they gather in the order of the edges, and their sums are joined in a fixed order.

namespace KokkosNN::Impl {

/// Rounds whose rows a lane asks for at once, of `rows` rows each: as many as take 32 registers.
template <class X, int packs>
constexpr int graph_rounds(int rows) {
  const int registers = packs * 16 / int(sizeof(X)) * int(sizeof(accumulator_t<X>)) / 4 * rows;
  return registers <= 4 ? 8 : registers <= 8 ? 4 : 2;
}
inline constexpr int least_graph_lanes = 8;  ///< that share a row: sums of as many rounds are found together

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

/// A lane of a warp that gathers rows: `lanes` neighbouring lanes, a power of two, share a row.
struct GraphLane {
  int lane;
  int lanes;

  KOKKOS_FORCEINLINE_FUNCTION static int width() { return warp_width(); }
  KOKKOS_FORCEINLINE_FUNCTION int part() const { return lane % lanes; }
  KOKKOS_FORCEINLINE_FUNCTION int group() const { return lane / lanes; }
  KOKKOS_FORCEINLINE_FUNCTION int groups() const { return width() / lanes; }
  /// Edge of a block whose row this lane has part of in a round; its lane.
  KOKKOS_FORCEINLINE_FUNCTION int edge_of(int round) const { return round * groups() + group(); }

  /// True if this lane's edge is one of `count` rounds from `first` on.
  KOKKOS_FORCEINLINE_FUNCTION bool has_edge_of(int first, int count) const {
    return lane >= first * groups() && lane < (first + count) * groups();
  }

  /// Joins a number of all lanes.
  template <class A, class Join>
  KOKKOS_FORCEINLINE_FUNCTION static A joined(A value, const Join& join) {
    for (int mask = 1; mask < width(); mask *= 2) value = join(value, shuffle_xor(value, mask));
    return value;
  }
  template <class A>
  KOKKOS_FORCEINLINE_FUNCTION static A sum(A value) {
    return joined(value, [](A a, A b) { return a + b; });
  }
  template <class A>
  KOKKOS_FORCEINLINE_FUNCTION A sum_of_row(A value) const {
    for (int mask = 1; mask < lanes; mask *= 2) value += shuffle_xor(value, mask);
    return value;
  }
  template <class A>
  KOKKOS_FORCEINLINE_FUNCTION A sum_of_groups(A value) const {
    for (int mask = lanes; mask < width(); mask *= 2) value += shuffle_xor(value, mask);
    return value;
  }

  /// Sums over the lanes of a row of `count` rounds' numbers, given to the lanes of their edges: those of rounds
  /// `first` to first + count - 1. Halves of the lanes go on with half of the numbers each.
  template <int count, class A>
  KOKKOS_FORCEINLINE_FUNCTION A sums_of_rounds(A (&values)[count], int first) const {
    int mask = lanes;
    KOKKOSNN_IMPL_UNROLL
    for (int left = count; left > 1; left /= 2) {
      mask /= 2;
      const bool is_upper = (lane & mask) != 0;
      KOKKOSNN_IMPL_UNROLL
      for (int n = 0; n < count / 2; ++n) {
        if (n >= left / 2) break;
        const A other = shuffle_xor(is_upper ? values[n] : values[n + left / 2], mask);
        values[n]     = (is_upper ? values[n + left / 2] : values[n]) + other;
      }
    }
    while (mask > 1) {
      mask /= 2;
      values[0] += shuffle_xor(values[0], mask);
    }
    // The sum of round first + n is at the part whose highest bits are those of n.
    const int round = lane / groups() - first;
    return shuffle_from(values[0], lane % groups() * lanes + (round & (count - 1)) * (lanes / count));
  }
};

/// Runs step(row, lane) of a step's rows, a warp each: items are lanes.
template <class Step>
struct GraphWarps {
  static constexpr int width = 32;  ///< of CUDA's warps, which alone run this

  Step step;
  int lanes;  ///< that share a row

  KOKKOS_FUNCTION std::int64_t items() const { return step.rows() * width; }
  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    step(item / width, GraphLane{static_cast<int>(item % width), lanes});
  }
};

/// Attention of a node and head.
template <class X, int packs>
struct GraphForwardInWarp {
  using A                    = accumulator_t<X>;
  using Part                 = GraphRowPart<X, packs>;
  static constexpr int count = graph_rounds<X, packs>(1);

  GraphLogits<X, 1> logits;

  KOKKOS_FUNCTION std::int64_t rows() const { return logits.data.layout.nodes * logits.data.layout.heads; }

  KOKKOS_FUNCTION void operator()(std::int64_t row, const GraphLane& lane) const {
    const GraphAttentionData<X>& data = logits.data;
    const GraphAttentionLayout& l     = data.layout;
    const std::int64_t head = row % l.heads, node = row / l.heads;
    const auto edges = data.edges_of(node);
    const A sink     = data.sink(head);
    const A max      = max_ignoring_nan(find_logits(node, head, lane), sink);
    A sum            = 0;
    Part values;
    values.clear();
    for (std::int64_t first = edges.begin; first < edges.end; first += lane.width()) {
      add_block(first, edges.end, head, finite_reference(max), lane, sum, values);
    }
    sum = lane.sum(sum) + Kokkos::exp(sink - finite_reference(max));
    values.for_all([&](A& each) { each = lane.sum_of_groups(each); });
    const bool is_masked = sum == A(0);
    if (data.lse != nullptr && lane.lane == 0) {
      data.lse[l.lse(node, head)] = is_masked ? -Kokkos::Experimental::infinity_v<A> : max + Kokkos::log(sum);
    }
    if (is_masked) values.set(data.of_masked_rows);
    if (lane.group() == 0) {
      values.store(is_masked ? A(1) : A(1) / sum, data.o + l.o(node, head), lane.part(), lane.lanes, l.value_dim);
    }
  }

 private:
  /// Writes the logits of a row's edges, and returns the largest one.
  KOKKOS_FORCEINLINE_FUNCTION A find_logits(std::int64_t node, std::int64_t head, const GraphLane& lane) const {
    const GraphAttentionData<X>& data = logits.data;
    const GraphAttentionLayout& l     = data.layout;
    const auto edges                  = data.edges_of(node);
    const X* const keys               = data.k + data.kv_head(head) * l.k.head;
    A max                             = -Kokkos::Experimental::infinity_v<A>;
    Part query;
    query.load(data.q + l.q(node, head), lane.part(), lane.lanes, l.dim);
    for (std::int64_t first = edges.begin; first < edges.end; first += lane.width()) {
      const std::int64_t edge = first + lane.lane, source = edge < edges.end ? data.source_of(edge) : -1;
      A score = 0;
      for (int round = 0; round < lane.lanes && first + round * lane.groups() < edges.end; round += count) {
        Part key[count];
        A products[count];
        KOKKOSNN_IMPL_UNROLL
        for (int n = 0; n < count; ++n) {
          const std::int64_t gathered = shuffle_from(source, lane.edge_of(round + n));
          key[n].load(gathered < 0 ? nullptr : keys + gathered * l.k.row, lane.part(), lane.lanes, l.dim);
        }
        KOKKOSNN_IMPL_UNROLL
        for (int n = 0; n < count; ++n) products[n] = query.product(key[n]);
        const A own = lane.template sums_of_rounds<count>(products, round);
        if (lane.has_edge_of(round, count)) score = own;
      }
      if (edge >= edges.end) continue;
      const A logit = source < 0 ? -Kokkos::Experimental::infinity_v<A> : logits.logit(edge, head, data.scale * score);
      data.probabilities[data.place(edge, head)] = logit;
      max                                        = max_ignoring_nan(max, logit);
    }
    return lane.joined(max, [](A a, A b) { return max_ignoring_nan(a, b); });
  }

  /// Adds up the weights of a block of edges, and the values times their weights.
  KOKKOS_FORCEINLINE_FUNCTION void add_block(std::int64_t first, std::int64_t end, std::int64_t head, A reference,
                                             const GraphLane& lane, A& sum, Part& values) const {
    const GraphAttentionData<X>& data = logits.data;
    const GraphAttentionLayout& l     = data.layout;
    const X* const all                = data.v + data.kv_head(head) * l.v.head;
    const std::int64_t edge           = first + lane.lane;
    A weight                          = 0;
    if (edge < end) weight = Kokkos::exp(data.probabilities[data.place(edge, head)] - reference);  // it wrote that
    const std::int64_t source = edge < end && weight != A(0) ? data.source_of(edge) : -1;
    sum += weight;
    for (int round = 0; round < lane.lanes && first + round * lane.groups() < end; round += count) {
      Part value[count];
      KOKKOSNN_IMPL_UNROLL
      for (int n = 0; n < count; ++n) {
        const std::int64_t gathered = shuffle_from(source, lane.edge_of(round + n));
        value[n].load(gathered < 0 ? nullptr : all + gathered * l.v.row, lane.part(), lane.lanes, l.value_dim);
      }
      KOKKOSNN_IMPL_UNROLL
      for (int n = 0; n < count; ++n) values.add(shuffle_from(weight, lane.edge_of(round + n)), value[n]);
    }
  }
};

/// Gradients of the edges of a node and head, as GraphEdgeGradients finds them, and dq.
template <class X, int packs>
struct GraphEdgeGradientsInWarp {
  using A                    = accumulator_t<X>;
  using Part                 = GraphRowPart<X, packs>;
  static constexpr int count = graph_rounds<X, packs>(2);

  GraphEdgeGradients<X, 1> step;

  KOKKOS_FUNCTION std::int64_t rows() const { return step.logits.data.layout.nodes * step.logits.data.layout.heads; }

  KOKKOS_FUNCTION void operator()(std::int64_t row, const GraphLane& lane) const {
    const GraphAttentionData<X>& data = step.logits.data;
    const GraphAttentionLayout& l     = data.layout;
    const std::int64_t head = row % l.heads, node = row / l.heads;
    const auto edges = data.edges_of(node);
    Row own{head, node, edges.end, data.lse[l.lse(node, head)], 0, {}, {}, {}};
    Part o;
    own.query.load(data.q + l.q(node, head), lane.part(), lane.lanes, l.dim);
    own.dout.load(data.dout + l.dout(node, head), lane.part(), lane.lanes, l.value_dim);
    o.load(data.o + l.o(node, head), lane.part(), lane.lanes, l.value_dim);
    own.delta = lane.sum_of_row(o.product(own.dout));
    own.dq.clear();
    for (std::int64_t first = edges.begin; first < edges.end; first += lane.width()) add_block(first, lane, own);
    own.dq.for_all([&](A& each) { each = lane.sum_of_groups(each); });
    if (lane.group() == 0) own.dq.store(data.scale, data.dq + l.dq(node, head), lane.part(), lane.lanes, l.dim);
  }

 private:
  struct Row {
    std::int64_t head;
    std::int64_t node;
    std::int64_t end;  ///< of the edges
    A lse;
    A delta;
    Part query;
    Part dout;
    Part dq;
  };

  KOKKOS_FORCEINLINE_FUNCTION void add_block(std::int64_t first, const GraphLane& lane, Row& row) const {
    const GraphAttentionData<X>& data = step.logits.data;
    const GraphAttentionLayout& l     = data.layout;
    const X* const keys               = data.k + data.kv_head(row.head) * l.k.head;
    const X* const values             = data.v + data.kv_head(row.head) * l.v.head;
    const std::int64_t edge = first + lane.lane, source = edge < row.end ? data.source_of(edge) : -1;
    for (int round = 0; round < lane.lanes && first + round * lane.groups() < row.end; round += count) {
      Part key[count], value[count];
      A products[count], dvalues[count];
      KOKKOSNN_IMPL_UNROLL
      for (int n = 0; n < count; ++n) {
        const std::int64_t gathered = shuffle_from(source, lane.edge_of(round + n));
        key[n].load(gathered < 0 ? nullptr : keys + gathered * l.k.row, lane.part(), lane.lanes, l.dim);
        value[n].load(gathered < 0 ? nullptr : values + gathered * l.v.row, lane.part(), lane.lanes, l.value_dim);
      }
      KOKKOSNN_IMPL_UNROLL
      for (int n = 0; n < count; ++n) {
        products[n] = row.query.product(key[n]);
        dvalues[n]  = row.dout.product(value[n]);
      }
      const A score  = lane.template sums_of_rounds<count>(products, round);
      const A dvalue = lane.template sums_of_rounds<count>(dvalues, round);
      A gradient     = 0;
      if (edge < row.end && lane.has_edge_of(round, count)) {
        const auto terms = step.terms_of(edge, row.head, source, data.scale * score, dvalue, row.lse, row.delta);
        step.store(edge, row.head, row.node, source, terms);
        gradient = terms.gradient;
      }
      KOKKOSNN_IMPL_UNROLL
      for (int n = 0; n < count; ++n) row.dq.add(shuffle_from(gradient, lane.edge_of(round + n)), key[n]);
    }
  }
};

/// Sums dk and dv of a source and head of k.
template <class X, int packs>
struct GraphSourceSumsInWarp {
  using A                    = accumulator_t<X>;
  using Part                 = GraphRowPart<X, packs>;
  static constexpr int count = graph_rounds<X, packs>(2);

  GraphAttentionData<X> data;

  KOKKOS_FUNCTION std::int64_t rows() const { return data.layout.sources * data.layout.kv_heads; }

  KOKKOS_FUNCTION void operator()(std::int64_t row, const GraphLane& lane) const {
    const GraphAttentionLayout& l = data.layout;
    const std::int64_t kv_head = row % l.kv_heads, source = row / l.kv_heads;
    const std::int64_t begin = data.within(data.source_map[source]), end = data.within(data.source_map[source + 1]);
    Part dk, dv;
    dk.clear();
    dv.clear();
    for (std::int64_t head = kv_head * l.group(); head < (kv_head + 1) * l.group(); ++head) {
      for (std::int64_t first = begin; first < end; first += lane.width()) add_block(first, end, head, lane, dk, dv);
    }
    dk.for_all([&](A& each) { each = lane.sum_of_groups(each); });
    dv.for_all([&](A& each) { each = lane.sum_of_groups(each); });
    if (lane.group() != 0) return;
    dk.store(data.scale, data.dk + l.dk(source, kv_head), lane.part(), lane.lanes, l.dim);
    dv.store(A(1), data.dv + l.dv(source, kv_head), lane.part(), lane.lanes, l.value_dim);
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION void add_block(std::int64_t first, std::int64_t end, std::int64_t head,
                                             const GraphLane& lane, Part& dk, Part& dv) const {
    const GraphAttentionLayout& l = data.layout;
    std::int64_t node             = -1;
    A gradient = 0, probability = 0;
    if (first + lane.lane < end) {
      const std::int64_t edge = data.source_edges[first + lane.lane];
      node                    = data.edge_nodes[edge];
      gradient                = data.gradients[data.place(edge, head)];
      probability             = data.probabilities[data.place(edge, head)];
    }
    for (int round = 0; round < lane.lanes && first + round * lane.groups() < end; round += count) {
      Part query[count], dout[count];
      KOKKOSNN_IMPL_UNROLL
      for (int n = 0; n < count; ++n) {
        const std::int64_t of = shuffle_from(node, lane.edge_of(round + n));
        query[n].load(of < 0 ? nullptr : data.q + l.q(of, head), lane.part(), lane.lanes, l.dim);
        dout[n].load(of < 0 ? nullptr : data.dout + l.dout(of, head), lane.part(), lane.lanes, l.value_dim);
      }
      KOKKOSNN_IMPL_UNROLL
      for (int n = 0; n < count; ++n) {
        dk.add(shuffle_from(gradient, lane.edge_of(round + n)), query[n]);
        dv.add(shuffle_from(probability, lane.edge_of(round + n)), dout[n]);
      }
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_GRAPH_ATTENTION_LANES_HPP
