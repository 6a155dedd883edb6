// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_GRAPH_ATTENTION_HPP
#define KOKKOSNN_IMPL_GPU_GRAPH_ATTENTION_HPP

#include <KokkosNN/impl/call/graph_attention_layout.hpp>
#include <KokkosNN/impl/gpu/items.hpp>
#include <KokkosNN/impl/inputs/masked.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Attention over the edges of a graph, on a GPU and on a host, in steps whose items are shared out among threads. A
// number an edge and head is kept between the steps, which is little beside the keys and values that an edge gathers:
// logits, which become probabilities, and in the gradients those of the logits. Sums of a node are in the order of its
// edges, sums of a source in the order of the edges' numbers.

namespace KokkosNN::Impl {

/// All that the steps read and write. An entry outside of the sources is no edge.
template <class X>
struct GraphAttentionData {
  using A = accumulator_t<X>;

  GraphAttentionLayout layout;
  CountsOfRows row_map;
  CountsOfRows entries;
  const X* q;
  const X* k;
  const X* v;
  const X* dout;
  X* o;  ///< read by the gradients, as is lse
  A* lse;
  X* dq;
  X* dk;
  X* dv;
  void* dbias;  ///< null where it is not wanted
  bool dbias_is_float;
  TypedPointer<X> bias;
  TypedPointer<X> sinks;
  A scale;
  A softcap;
  A inverse_softcap;
  A of_masked_rows;
  // Memory of the call.
  A* probabilities;          ///< (edge, head); logits at first
  A* gradients;              ///< by the scaled scores
  std::int64_t* edge_nodes;  ///< of each edge
  std::int64_t* source_map;  ///< first of each source's edges in source_edges
  std::int64_t* cursors;
  std::int64_t* source_edges;

  struct Edges {
    std::int64_t begin;
    std::int64_t end;
  };
  KOKKOS_INLINE_FUNCTION std::int64_t within(std::int64_t edge) const {
    return edge < 0 ? 0 : edge < layout.edges ? edge : layout.edges;
  }
  KOKKOS_INLINE_FUNCTION Edges edges_of(std::int64_t node) const {
    return {within(row_map[node * layout.row_map_stride]), within(row_map[(node + 1) * layout.row_map_stride])};
  }
  /// The edge's source; -1: there is no edge.
  KOKKOS_INLINE_FUNCTION std::int64_t source_of(std::int64_t edge) const {
    const std::int64_t source = entries[edge * layout.entry_stride];
    return source >= 0 && source < layout.sources ? source : -1;
  }
  KOKKOS_INLINE_FUNCTION A sink(std::int64_t head) const {
    return sinks.exists() ? sinks.template load<A>(head * layout.sink_stride) : -Kokkos::Experimental::infinity_v<A>;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t kv_head(std::int64_t head) const { return head / layout.group(); }
  KOKKOS_INLINE_FUNCTION std::int64_t place(std::int64_t edge, std::int64_t head) const {
    return edge * layout.heads + head;
  }
};

/// Logits of edges; an item is every `lanes`-th edge of a node and head.
template <class X, int lanes>
struct GraphLogits {
  using A = accumulator_t<X>;

  GraphAttentionData<X> data;

  KOKKOS_FUNCTION std::int64_t items() const { return data.layout.nodes * data.layout.heads * lanes; }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const std::int64_t head = item / lanes % data.layout.heads, node = item / lanes / data.layout.heads;
    const auto edges = data.edges_of(node);
    for (std::int64_t edge = edges.begin + item % lanes; edge < edges.end; edge += lanes) {
      const std::int64_t source = data.source_of(edge);
      data.probabilities[data.place(edge, head)] =
          source < 0 ? -Kokkos::Experimental::infinity_v<A> : logit(edge, head, scaled_score(node, head, source));
    }
  }

  KOKKOS_FUNCTION A scaled_score(std::int64_t node, std::int64_t head, std::int64_t source) const {
    const GraphAttentionLayout& l = data.layout;
    return data.scale * strided_product<A>(data.q + l.q(node, head), l.q.dim, data.k + l.k(source, data.kv_head(head)),
                                           l.k.dim, l.dim);
  }
  KOKKOS_FUNCTION A logit(std::int64_t edge, std::int64_t head, A scaled) const {
    if (data.softcap != A(0)) scaled = data.softcap * bounded_tanh(scaled * data.inverse_softcap);
    if (data.bias.exists()) scaled += data.bias.template load<A>(data.layout.bias(edge, head));
    return scaled;
  }
};

/// Log-sum-exps; logits become probabilities. An item is a node and head.
template <class X>
struct GraphProbabilities {
  using A = accumulator_t<X>;

  GraphAttentionData<X> data;

  KOKKOS_FUNCTION std::int64_t items() const { return data.layout.nodes * data.layout.heads; }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    constexpr A none        = -Kokkos::Experimental::infinity_v<A>;
    const std::int64_t head = item % data.layout.heads, node = item / data.layout.heads;
    const auto edges = data.edges_of(node);
    const A sink     = data.sink(head);
    A max            = max_ignoring_nan(none, sink);
    for (std::int64_t edge = edges.begin; edge < edges.end; ++edge) {
      max = max_ignoring_nan(max, data.probabilities[data.place(edge, head)]);
    }
    const A reference = finite_reference(max);
    A sum             = Kokkos::exp(sink - reference);
    for (std::int64_t edge = edges.begin; edge < edges.end; ++edge) {
      A& number = data.probabilities[data.place(edge, head)];
      number    = Kokkos::exp(number - reference);
      sum += number;
    }
    const bool is_masked = sum == A(0);
    for (std::int64_t edge = edges.begin; edge < edges.end && !is_masked; ++edge) {
      data.probabilities[data.place(edge, head)] /= sum;
    }
    if (data.lse != nullptr) data.lse[data.layout.lse(node, head)] = is_masked ? none : max + Kokkos::log(sum);
    if (is_masked) write_masked(node, head);
  }

 private:
  KOKKOS_FUNCTION void write_masked(std::int64_t node, std::int64_t head) const {
    X* const o = data.o + data.layout.o(node, head);
    for (std::int64_t d = 0; d < data.layout.value_dim; ++d) {
      o[d * data.layout.o.dim] = static_cast<X>(data.of_masked_rows);
    }
  }
};

/// Some neighbouring elements of a sum of rows.
template <class X, int width>
struct GraphSum {
  using A = accumulator_t<X>;

  A sum[width] = {};

  /// Adds weight times a row's elements from `first` on, unless the weight is 0.
  KOKKOS_FORCEINLINE_FUNCTION void add(A weight, const X* row, std::int64_t stride, std::int64_t first,
                                       std::int64_t dim) {
    if (weight == A(0)) return;
    row += first * stride;
    if (stride == 1 && first + width <= dim) {
      KOKKOSNN_IMPL_UNROLL
      for (int d = 0; d < width; ++d) sum[d] = Kokkos::fma(weight, static_cast<A>(row[d]), sum[d]);
    } else {
      KOKKOSNN_IMPL_UNROLL
      for (int d = 0; d < width; ++d) {
        if (first + d < dim) sum[d] = Kokkos::fma(weight, static_cast<A>(row[d * stride]), sum[d]);
      }
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void store(A factor, X* row, std::int64_t stride, std::int64_t first,
                                         std::int64_t dim) const {
    KOKKOSNN_IMPL_UNROLL
    for (int d = 0; d < width; ++d) {
      if (first + d < dim) row[(first + d) * stride] = static_cast<X>(sum[d] * factor);
    }
  }
};

/// Sums of a node's edges: o, or dq. An item is some elements of a node and head.
template <class X, int width, bool of_gradients>
struct GraphNodeSums {
  using A = accumulator_t<X>;

  GraphAttentionData<X> data;

  KOKKOS_FUNCTION std::int64_t dim() const { return of_gradients ? data.layout.dim : data.layout.value_dim; }
  KOKKOS_FUNCTION std::int64_t chunks() const { return (dim() + width - 1) / width; }
  KOKKOS_FUNCTION std::int64_t items() const { return data.layout.nodes * data.layout.heads * chunks(); }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const GraphAttentionLayout& l = data.layout;
    const std::int64_t first = item % chunks() * width, row = item / chunks(), head = row % l.heads,
                       node        = row / l.heads;
    const GraphAttentionRows& rows = of_gradients ? l.k : l.v;
    const X* const gathered        = of_gradients ? data.k : data.v;
    const A* const weights         = of_gradients ? data.gradients : data.probabilities;
    const auto edges               = data.edges_of(node);
    GraphSum<X, width> sum;
    bool has_weight = of_gradients || data.sink(head) != -Kokkos::Experimental::infinity_v<A>;
    for (std::int64_t edge = edges.begin; edge < edges.end; ++edge) {
      const A weight            = weights[data.place(edge, head)];
      const std::int64_t source = data.source_of(edge);
      has_weight                = has_weight || weight != A(0);
      if (source >= 0) sum.add(weight, gathered + rows(source, data.kv_head(head)), rows.dim, first, dim());
    }
    if (!has_weight) return;  // a row without an edge has been written
    if constexpr (of_gradients) {
      sum.store(data.scale, data.dq + l.dq(node, head), l.dq.dim, first, dim());
    } else {
      sum.store(A(1), data.o + l.o(node, head), l.o.dim, first, dim());
    }
  }
};

/// Probabilities, gradients by the scores and by the bias, and how many edges each source has. Items as GraphLogits'.
template <class X, int lanes>
struct GraphEdgeGradients {
  using A = accumulator_t<X>;

  GraphLogits<X, lanes> logits;

  KOKKOS_FUNCTION std::int64_t items() const { return logits.items(); }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const GraphAttentionData<X>& data = logits.data;
    const GraphAttentionLayout& l     = data.layout;
    const std::int64_t head = item / lanes % l.heads, node = item / lanes / l.heads;
    const auto edges    = data.edges_of(node);
    const X* const dout = data.dout + l.dout(node, head);
    const A lse         = data.lse[l.lse(node, head)];
    const A delta       = strided_product<A, X>(data.o + l.o(node, head), l.o.dim, dout, l.dout.dim, l.value_dim);
    for (std::int64_t edge = edges.begin + item % lanes; edge < edges.end; edge += lanes) {
      const std::int64_t source = data.source_of(edge);
      A scaled = 0, dvalue = 0;
      if (source >= 0) {
        scaled = logits.scaled_score(node, head, source);
        dvalue = strided_product<A>(dout, l.dout.dim, data.v + l.v(source, data.kv_head(head)), l.v.dim, l.value_dim);
      }
      store(edge, head, node, source, terms_of(edge, head, source, scaled, dvalue, lse, delta));
    }
  }

  /// Terms of an edge: its probability, the gradients by its logit, and by its scaled score.
  struct Terms {
    A probability;
    A by_logit;
    A gradient;
  };
  /// Finds them from the scaled score, and from the product of dout and the value.
  KOKKOS_FORCEINLINE_FUNCTION Terms terms_of(std::int64_t edge, std::int64_t head, std::int64_t source, A scaled,
                                             A dvalue, A lse, A delta) const {
    const GraphAttentionData<X>& data = logits.data;
    Terms terms{0, 0, 0};
    if (source < 0 || lse == -Kokkos::Experimental::infinity_v<A>) return terms;
    terms.probability = Kokkos::exp(logits.logit(edge, head, scaled) - lse);
    if (terms.probability != A(0)) terms.by_logit = terms.probability * (dvalue - delta);
    terms.gradient = terms.by_logit;
    if (data.softcap != A(0)) {
      const A t = bounded_tanh(scaled * data.inverse_softcap);
      terms.gradient *= (A(1) - t) * (A(1) + t);
    }
    return terms;
  }
  KOKKOS_FORCEINLINE_FUNCTION void store(std::int64_t edge, std::int64_t head, std::int64_t node, std::int64_t source,
                                         const Terms& terms) const {
    const GraphAttentionData<X>& data = logits.data;
    const std::int64_t place          = data.place(edge, head);
    if (head == 0) data.edge_nodes[edge] = node;
    if (head == 0 && source >= 0) Kokkos::atomic_inc(&data.cursors[source]);
    data.probabilities[place] = terms.probability;
    data.gradients[place]     = terms.gradient;
    if (data.dbias != nullptr) store_bias(data.layout.dbias(edge, head), terms.by_logit);
  }

 private:
  KOKKOS_FUNCTION void store_bias(std::int64_t place, A gradient) const {
    if (logits.data.dbias_is_float) {
      static_cast<float*>(logits.data.dbias)[place] = static_cast<float>(gradient);
    } else {
      static_cast<X*>(logits.data.dbias)[place] = static_cast<X>(gradient);
    }
  }
};

// --- the edges of each source, in their order ---

template <class X>
struct GraphClearCounts {
  GraphAttentionData<X> data;

  KOKKOS_FUNCTION std::int64_t items() const { return data.layout.sources; }
  KOKKOS_FUNCTION void operator()(std::int64_t source) const { data.cursors[source] = 0; }
};

/// Exclusive sums of the counts, by a scan.
template <class X>
struct GraphScanCounts {
  GraphAttentionData<X> data;

  KOKKOS_FUNCTION void operator()(std::int64_t source, std::int64_t& sum, bool is_final) const {
    const std::int64_t count = source < data.layout.sources ? data.cursors[source] : 0;
    if (is_final) {
      data.source_map[source] = sum;
      if (source < data.layout.sources) data.cursors[source] = sum;
    }
    sum += count;
  }
};

/// Gives edges to their sources, in any order. An item is a node.
template <class X>
struct GraphFillSources {
  GraphAttentionData<X> data;

  KOKKOS_FUNCTION std::int64_t items() const { return data.layout.nodes; }
  KOKKOS_FUNCTION void operator()(std::int64_t node) const {
    const auto edges = data.edges_of(node);
    for (std::int64_t edge = edges.begin; edge < edges.end; ++edge) {
      const std::int64_t source = data.source_of(edge);
      if (source < 0) continue;
      const std::int64_t place = Kokkos::atomic_fetch_add(&data.cursors[source], std::int64_t(1));
      if (place < data.layout.edges) data.source_edges[place] = edge;
    }
  }
};

/// Puts a source's edges in order, which makes its sums the same each time.
template <class X>
struct GraphSortSources {
  GraphAttentionData<X> data;

  KOKKOS_FUNCTION std::int64_t items() const { return data.layout.sources; }
  KOKKOS_FUNCTION void operator()(std::int64_t source) const {
    const std::int64_t begin = data.within(data.source_map[source]), end = data.within(data.source_map[source + 1]);
    std::int64_t* const edges = data.source_edges + begin;
    for (std::int64_t root = (end - begin) / 2; root-- > 0;) sift(edges, root, end - begin);
    for (std::int64_t left = end - begin; left-- > 1;) {
      Kokkos::kokkos_swap(edges[0], edges[left]);
      sift(edges, 0, left);
    }
  }

 private:
  KOKKOS_FUNCTION static void sift(std::int64_t* heap, std::int64_t root, std::int64_t count) {
    for (std::int64_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
      if (child + 1 < count && heap[child] < heap[child + 1]) ++child;
      if (heap[root] >= heap[child]) return;
      Kokkos::kokkos_swap(heap[root], heap[child]);
      root = child;
    }
  }
};

/// Sums of a source's edges: dk, or dv. An item is some elements of a source and head of k.
template <class X, int width, bool of_keys>
struct GraphSourceSums {
  using A = accumulator_t<X>;

  GraphAttentionData<X> data;

  KOKKOS_FUNCTION std::int64_t dim() const { return of_keys ? data.layout.dim : data.layout.value_dim; }
  KOKKOS_FUNCTION std::int64_t chunks() const { return (dim() + width - 1) / width; }
  KOKKOS_FUNCTION std::int64_t items() const { return data.layout.sources * data.layout.kv_heads * chunks(); }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const GraphAttentionLayout& l = data.layout;
    const std::int64_t first = item % chunks() * width, row = item / chunks();
    const std::int64_t kv_head = row % l.kv_heads, source = row / l.kv_heads;
    const GraphAttentionRows& rows = of_keys ? l.q : l.dout;
    const X* const gathered        = of_keys ? data.q : data.dout;
    const A* const weights         = of_keys ? data.gradients : data.probabilities;
    const std::int64_t end         = data.within(data.source_map[source + 1]);
    GraphSum<X, width> sum;
    for (std::int64_t i = data.within(data.source_map[source]); i < end; ++i) {
      const std::int64_t edge = data.source_edges[i], node = data.edge_nodes[edge];
      for (std::int64_t head = kv_head * l.group(); head < (kv_head + 1) * l.group(); ++head) {
        sum.add(weights[data.place(edge, head)], gathered + rows(node, head), rows.dim, first, dim());
      }
    }
    if constexpr (of_keys) {
      sum.store(data.scale, data.dk + l.dk(source, kv_head), l.dk.dim, first, dim());
    } else {
      sum.store(A(1), data.dv + l.dv(source, kv_head), l.dv.dim, first, dim());
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_GRAPH_ATTENTION_HPP
