// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_GRAPH_ATTENTION_LAYOUT_HPP
#define KOKKOSNN_IMPL_CALL_GRAPH_ATTENTION_LAYOUT_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/attention_plan.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/layout.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// A call of attention over a graph on the host: its tensors, and the extents and strides that its kernels see.

namespace KokkosNN::Impl {

/// Views of a call and of its gradients, erased: rows of nodes (node, head, dim), of sources (source, head of k, dim)
/// and of edges (edge, head). lse, bias and dbias need not exist.
struct GraphAttentionTensors {
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor row_map;
  Tensor entries;
  Tensor o;
  Tensor lse;
  Tensor bias;
  Tensor dout;
  Tensor dq;
  Tensor dk;
  Tensor dv;
  Tensor dbias;
};

/// Distances of a tensor's rows and elements.
struct GraphAttentionRows {
  std::int64_t row  = 0;
  std::int64_t head = 0;
  std::int64_t dim  = 0;

  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t r, std::int64_t h) const { return r * row + h * head; }
};

/// A checked call.
struct GraphAttentionLayout {
  std::int64_t nodes     = 0;
  std::int64_t sources   = 0;
  std::int64_t edges     = 0;
  std::int64_t heads     = 0;
  std::int64_t kv_heads  = 0;
  std::int64_t dim       = 0;
  std::int64_t value_dim = 0;
  GraphAttentionRows q;
  GraphAttentionRows k;
  GraphAttentionRows v;
  GraphAttentionRows o;
  GraphAttentionRows lse;
  GraphAttentionRows bias;
  GraphAttentionRows dout;
  GraphAttentionRows dq;
  GraphAttentionRows dk;
  GraphAttentionRows dv;
  GraphAttentionRows dbias;
  std::int64_t row_map_stride = 0;
  std::int64_t entry_stride   = 0;
  std::int64_t sink_stride    = 0;
  double scale                = 1;

  KOKKOS_INLINE_FUNCTION std::int64_t group() const { return heads / kv_heads; }
};

/// Checks a call, or one of the gradients, and describes it. Throws std::invalid_argument for extents that do not fit,
/// for bad numbers of the options and for overlap.
KOKKOSNN_EXPORT GraphAttentionLayout normalise_graph_attention(const char* function, bool is_gradient,
                                                               const GraphAttentionTensors& tensors,
                                                               const AttentionCallOptions& options);

/// A checked call.
struct GraphAttentionArguments {
  const char* function;
  bool is_gradient;
  const GraphAttentionTensors& tensors;
  const GraphAttentionLayout& layout;
  const AttentionCallOptions& options;
};

/// Attention over a graph, and its gradients, on tensors of X.
template <class ExecutionSpace, class X>
struct GraphAttentionCall {
  static void run(const ExecutionSpace& exec, const GraphAttentionArguments& call);
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_GRAPH_ATTENTION_LAYOUT_HPP
