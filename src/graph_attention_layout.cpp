// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/graph_attention_layout.hpp>

#include "argument_error.hpp"
#include "masks.hpp"

#include <cmath>
#include <cstdint>
#include <initializer_list>

// Checks of a call of attention over a graph, and its tensors as kernels see them.

namespace KokkosNN::Impl {
namespace {

enum Axis { row, head, dim };

/// A tensor and what messages call it.
struct Named {
  const char* name;
  const Tensor& tensor;
};

void require_shape(const char* function, const Named& t, std::initializer_list<std::int64_t> want) {
  Tensor shape;
  for (const std::int64_t extent : want) shape.extent[shape.rank++] = extent;
  bool fits = t.tensor.rank == shape.rank;
  for (int axis = 0; axis < shape.rank; ++axis) fits = fits && t.tensor.extent[axis] == shape.extent[axis];
  if (fits) return;
  (ArgumentError(function) << t.name << " must be " << shape_of(shape) << ", but is " << shape_of(t.tensor)).raise();
}

GraphAttentionRows rows_of(const Tensor& t) {
  return {t.stride[row], t.stride[head], t.rank > dim ? t.stride[dim] : 0};
}

void set_extents(const char* function, const GraphAttentionTensors& t, GraphAttentionLayout& l) {
  l.nodes     = t.q.extent[row];
  l.sources   = t.k.extent[row];
  l.edges     = t.entries.extent[0];
  l.heads     = t.q.extent[head];
  l.kv_heads  = t.k.extent[head];
  l.dim       = t.q.extent[dim];
  l.value_dim = t.v.extent[dim];
  if (l.dim < 1 || l.value_dim < 1) {
    (ArgumentError(function) << "the head dims of q and v must be positive, but are " << l.dim << " and "
                             << l.value_dim)
        .raise();
  }
  if (l.kv_heads == 0 || l.heads % l.kv_heads != 0) {
    (ArgumentError(function) << "q has " << l.heads << " heads, which is no multiple of the " << l.kv_heads
                             << " heads of k")
        .raise();
  }
  require_shape(function, {"k", t.k}, {l.sources, l.kv_heads, l.dim});
  require_shape(function, {"v", t.v}, {l.sources, l.kv_heads, l.value_dim});
  require_shape(function, {"row_map", t.row_map}, {l.nodes + 1});
  require_shape(function, {"o", t.o}, {l.nodes, l.heads, l.value_dim});
  if (t.lse.exists()) require_shape(function, {"lse", t.lse}, {l.nodes, l.heads});
  if (t.bias.exists()) require_shape(function, {"bias", t.bias}, {l.edges, l.heads});
}

void set_strides(const GraphAttentionTensors& t, GraphAttentionLayout& l) {
  l.q              = rows_of(t.q);
  l.k              = rows_of(t.k);
  l.v              = rows_of(t.v);
  l.o              = rows_of(t.o);
  l.lse            = rows_of(t.lse);
  l.bias           = rows_of(t.bias);
  l.dout           = rows_of(t.dout);
  l.dq             = rows_of(t.dq);
  l.dk             = rows_of(t.dk);
  l.dv             = rows_of(t.dv);
  l.dbias          = rows_of(t.dbias);
  l.row_map_stride = t.row_map.stride[0];
  l.entry_stride   = t.entries.stride[0];
}

void set_sinks(const char* function, const Tensor& sinks, GraphAttentionLayout& l) {
  if (!sinks.exists()) return;
  if (sinks.extent[0] != l.heads && sinks.extent[0] != 1) {
    (ArgumentError(function) << "options.sinks must hold one value for each of the " << l.heads << " heads, but hold "
                             << sinks.extent[0])
        .raise();
  }
  l.sink_stride = sinks.extent[0] == 1 ? 0 : sinks.stride[0];
}

/// Throws std::invalid_argument for an output that overlaps itself, an input or another output.
void validate_overlap(const char* function, std::initializer_list<Named> inputs, std::initializer_list<Named> outputs) {
  for (const Named& output : outputs) {
    if (!output.tensor.exists()) continue;
    validate_output(function, output.tensor);
    for (const Named& input : inputs) {
      require_apart(function, input.name, input.tensor, output.name, output.tensor, false);
    }
    for (const Named& other : outputs) {
      if (&other == &output) break;
      require_apart(function, other.name, other.tensor, output.name, output.tensor, false);
    }
  }
}

}  // namespace

GraphAttentionLayout normalise_graph_attention(const char* function, bool is_gradient, const GraphAttentionTensors& t,
                                               const AttentionCallOptions& options) {
  GraphAttentionLayout l;
  set_extents(function, t, l);
  set_strides(t, l);
  set_sinks(function, options.mask.sinks, l);
  validate_numbers(function, options.mask);
  refuse_scales(function, options.mask);
  refuse_dropout(function, options.dropout);
  if (options.scale != 0) validate_scale(function, options.scale);
  l.scale = options.scale != 0 ? options.scale : 1 / std::sqrt(static_cast<double>(l.dim));
  if (!is_gradient) {
    validate_overlap(function,
                     {{"q", t.q},
                      {"k", t.k},
                      {"v", t.v},
                      {"row_map", t.row_map},
                      {"entries", t.entries},
                      {"bias", t.bias},
                      {"options.sinks", options.mask.sinks}},
                     {{"lse", t.lse}, {"o", t.o}});
    return l;
  }
  require_shape(function, {"dout", t.dout}, {l.nodes, l.heads, l.value_dim});
  require_shape(function, {"dq", t.dq}, {l.nodes, l.heads, l.dim});
  require_shape(function, {"dk", t.dk}, {l.sources, l.kv_heads, l.dim});
  require_shape(function, {"dv", t.dv}, {l.sources, l.kv_heads, l.value_dim});
  if (t.dbias.exists()) require_shape(function, {"dbias", t.dbias}, {l.edges, l.heads});
  validate_overlap(function,
                   {{"q", t.q},
                    {"k", t.k},
                    {"v", t.v},
                    {"o", t.o},
                    {"dout", t.dout},
                    {"lse", t.lse},
                    {"row_map", t.row_map},
                    {"entries", t.entries},
                    {"bias", t.bias},
                    {"options.sinks", options.mask.sinks}},
                   {{"dq", t.dq}, {"dk", t.dk}, {"dv", t.dv}, {"dbias", t.dbias}});
  return l;
}

}  // namespace KokkosNN::Impl
