// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/attention_mask_gradients_layout.hpp>
#include <KokkosNN/impl/call/attention_plan.hpp>

#include "argument_error.hpp"
#include "broadcast.hpp"
#include "masks.hpp"

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <utility>

// Checks of an attention call, and its tensors as kernels see them.

namespace KokkosNN::Impl {
namespace {

enum Axis { batch, head, sequence, dim };

constexpr std::int64_t most_dims = 256;

void exchange_head_and_sequence(Tensor& t) {
  std::swap(t.extent[head], t.extent[sequence]);
  std::swap(t.stride[head], t.stride[sequence]);
}

/// Gives a packed tensor, (token, head, dim) or (token, head), the axes of others: a batch of one, whose stride is the
/// tokens'.
void add_batch_axis(Tensor& t) {
  if (!t.exists()) return;
  for (int axis = t.rank; axis > 0; --axis) {
    t.extent[axis] = t.extent[axis - 1];
    t.stride[axis] = t.stride[axis - 1];
  }
  ++t.rank;
  t.extent[batch] = 1;
  exchange_head_and_sequence(t);
}

/// Gives tensors the axes (batch, head, sequence, dim).
void order_axes(const AttentionCallOptions& options, std::initializer_list<Tensor*> tensors, Tensor& lse) {
  for (Tensor* t : tensors) {
    if (options.is_packed)
      add_batch_axis(*t);
    else if (options.sequence_is_second)
      exchange_head_and_sequence(*t);
  }
  if (options.is_packed) add_batch_axis(lse);
}

void require_extent(const char* function, const char* name, const Tensor& t, Axis axis, std::int64_t want,
                    const char* other_name, const Tensor& other) {
  constexpr const char* axis_names[] = {"batch", "head", "sequence", "dim"};
  if (t.extent[axis] == want) return;
  (ArgumentError(function) << name << " of (batch, head, sequence, dim) " << shape_of(t) << " must have " << want
                           << " along " << axis_names[axis] << ", as " << other_name << " is " << shape_of(other))
      .raise();
}

void validate_extents(const char* function, const AttentionTensors& t) {
  require_extent(function, "k", t.k, batch, t.q.extent[batch], "q", t.q);
  require_extent(function, "k", t.k, dim, t.q.extent[dim], "q", t.q);
  require_extent(function, "v", t.v, batch, t.k.extent[batch], "k", t.k);
  require_extent(function, "v", t.v, head, t.k.extent[head], "k", t.k);
  require_extent(function, "v", t.v, sequence, t.k.extent[sequence], "k", t.k);
  for (const Axis axis : {batch, head, sequence}) require_extent(function, "o", t.o, axis, t.q.extent[axis], "q", t.q);
  require_extent(function, "o", t.o, dim, t.v.extent[dim], "v", t.v);
  const std::int64_t heads = t.q.extent[head], kv_heads = t.k.extent[head];
  if (heads > 0 && (kv_heads == 0 || heads % kv_heads != 0)) {
    (ArgumentError(function) << "q has " << heads << " heads, which is no multiple of the " << kv_heads
                             << " heads of k")
        .raise();
  }
  for (const auto& [name, tensor] : {std::pair{"q", &t.q}, {"v", &t.v}}) {
    const std::int64_t dims = tensor->extent[dim];
    if (dims >= 1 && dims <= most_dims) continue;
    (ArgumentError(function) << "the head dim of " << name << " must be within 1 to " << most_dims << ", but is "
                             << dims)
        .raise();
  }
  if (!t.lse.exists()) return;
  for (const Axis axis : {batch, head, sequence}) {
    if (t.lse.extent[axis] == t.q.extent[axis]) continue;
    (ArgumentError(function) << "lse must be (" << t.q.extent[batch] << ", " << t.q.extent[head] << ", "
                             << t.q.extent[sequence] << "), but is " << shape_of(t.lse))
        .raise();
  }
}

struct Named {
  const char* name;
  const Tensor* tensor;
};

/// Throws std::invalid_argument for an output that overlaps itself, an input, another output, a View of the mask or
/// offsets.
void validate_overlap(const char* function, std::initializer_list<Named> inputs, std::initializer_list<Named> outputs,
                      const AttentionCallOptions& options) {
  for (const Named& output : outputs) {
    if (!output.tensor->exists()) continue;
    validate_output(function, *output.tensor);
    for (const Named& input : inputs) {
      require_apart(function, input.name, *input.tensor, output.name, *output.tensor, false);
    }
    for (const Named& other : outputs) {
      if (other.tensor == output.tensor) break;
      require_apart(function, other.name, *other.tensor, output.name, *output.tensor, false);
    }
    validate_memory(function, options.mask, *output.tensor);
    require_apart(function, "query_offsets", options.query_offsets, output.name, *output.tensor, false);
    require_apart(function, "key_offsets", options.key_offsets, output.name, *output.tensor, false);
  }
}

double scale_of(const char* function, double scale, std::int64_t dims) {
  if (scale == 0) return 1 / std::sqrt(static_cast<double>(dims));
  validate_scale(function, scale);
  return scale;
}

AttentionStrides strides_of_axes(const Tensor& t) {
  return {t.stride[batch], t.stride[head], t.stride[sequence], t.rank > dim ? t.stride[dim] : 0};
}

/// The scores, which no memory holds.
Tensor scores_of(const AttentionTensors& t, const AttentionShape& shape) {
  Tensor scores      = t.q;
  scores.data        = nullptr;
  scores.extent[dim] = t.k.extent[sequence];
  if (shape.is_packed) {  // a mask's Views may depend on the sequence and the head
    scores.extent[batch]    = shape.batch;
    scores.extent[sequence] = scores.extent[dim] = 1;
  }
  return scores;
}

/// Takes the number of sequences from their offsets.
void set_sequences(const char* function, const AttentionCallOptions& options, AttentionLayout& layout) {
  const Tensor &queries = options.query_offsets, &keys = options.key_offsets;
  if (queries.extent[0] < 1 || queries.extent[0] != keys.extent[0]) {
    (ArgumentError(function) << "query_offsets and key_offsets must both have one number more than there are "
                                "sequences, but have "
                             << queries.extent[0] << " and " << keys.extent[0])
        .raise();
  }
  layout.shape.batch         = queries.extent[0] - 1;
  layout.query_offset_stride = queries.stride[0];
  layout.key_offset_stride   = keys.stride[0];
}

ScoreMaskLayout layout_of(const char* function, const MaskTensors& mask, const Tensor& scores) {
  const BroadcastMask views(function, mask, scores);
  MaskLayout diagonals;
  set_diagonals(mask, diagonals);
  return {diagonals.has_diagonals,
          diagonals.low,
          diagonals.high,
          strides_of_axes(views.keep),
          strides_of_axes(views.bias),
          strides_of_axes(views.lengths),
          strides_of_axes(views.slopes),
          strides_of_axes(views.sinks),
          strides_of_axes(views.offsets)};
}

void validate_dropout(const char* function, const AttentionDropout& dropout) {
  if (dropout.probability >= 0 && dropout.probability < 1) return;
  (ArgumentError(function) << "the dropout's probability must be at least 0 and below 1, but is "
                           << dropout.probability)
      .raise();
}

/// Layout of tensors whose axes are (batch, head, sequence, dim), but for overlap.
AttentionLayout checked_layout(const char* function, const AttentionTensors& tensors,
                               const AttentionCallOptions& options) {
  validate_extents(function, tensors);
  validate_numbers(function, options.mask);
  refuse_scales(function, options.mask);
  validate_dropout(function, options.dropout);
  AttentionLayout layout;
  layout.scale = scale_of(function, options.scale, tensors.q.extent[dim]);
  layout.shape = {tensors.q.extent[batch],    tensors.q.extent[head],     tensors.k.extent[head],
                  tensors.q.extent[sequence], tensors.k.extent[sequence], tensors.q.extent[dim],
                  tensors.v.extent[dim],      options.is_packed};
  if (options.is_packed) set_sequences(function, options, layout);
  layout.mask = layout_of(function, options.mask, scores_of(tensors, layout.shape));
  layout.q    = strides_of_axes(tensors.q);
  layout.k    = strides_of_axes(tensors.k);
  layout.v    = strides_of_axes(tensors.v);
  layout.o    = strides_of_axes(tensors.o);
  layout.lse  = strides_of_axes(tensors.lse);
  return layout;
}

void validate_same(const char* function, const char* name, const Tensor& t, const char* other_name,
                   const Tensor& other) {
  for (const Axis axis : {batch, head, sequence, dim}) {
    require_extent(function, name, t, axis, other.extent[axis], other_name, other);
  }
}

/// Extents that a tensor of a merge must have, as o has them.
void require_extents(const char* function, const char* name, const Tensor& t, const Tensor& want) {
  bool fits = t.rank == want.rank;
  for (int axis = 0; axis < want.rank; ++axis) fits = fits && t.extent[axis] == want.extent[axis];
  if (fits) return;
  (ArgumentError(function) << name << " must be " << shape_of(want) << ", but is " << shape_of(t)).raise();
}

/// Takes the axis of the parts away; returns its extent and stride.
std::pair<std::int64_t, std::int64_t> drop_parts(Tensor& t) {
  const std::pair parts(t.extent[0], t.stride[0]);
  for (int axis = 1; axis < t.rank; ++axis) {
    t.extent[axis - 1] = t.extent[axis];
    t.stride[axis - 1] = t.stride[axis];
  }
  --t.rank;
  return parts;
}

}  // namespace

void refuse_dropout(const char* function, const AttentionDropout& dropout) {
  if (dropout.probability == 0) return;
  (ArgumentError(function) << "there is no dropout here, but options.dropout has the probability "
                           << dropout.probability)
      .raise();
}

AttentionMaskGradientLayout normalise_attention_mask_gradient(const char* function, bool of_sinks,
                                                              AttentionGradientTensors tensors, const Tensor& result,
                                                              const AttentionCallOptions& options) {
  AttentionTensors& t = tensors.forward;
  if (of_sinks) t.q = t.k = t.v = t.o;  // whose extents and strides are of no matter
  order_axes(options, {&t.q, &t.k, &t.v, &t.o, &tensors.dout}, t.lse);
  AttentionMaskGradientLayout layout;
  layout.of_sinks         = of_sinks;
  layout.gradient.forward = checked_layout(function, t, options);
  layout.gradient.dout    = strides_of_axes(tensors.dout);
  validate_same(function, "dout", tensors.dout, "o", t.o);
  const Tensor& wanted = of_sinks ? options.mask.sinks : options.mask.bias;
  if (!wanted.exists()) {
    (ArgumentError(function) << (of_sinks ? "options have no sinks" : "the mask has no AdditiveBias")).raise();
  }
  require_extents(function, of_sinks ? "dsinks" : "dbias", result, wanted);
  if (of_sinks) {
    layout.dsink_stride = result.stride[0];
    if (result.extent[0] != layout.gradient.forward.shape.heads) {
      (ArgumentError(function) << "dsinks must have a value for each of " << layout.gradient.forward.shape.heads
                               << " heads, but have " << result.extent[0])
          .raise();
    }
  } else {
    MaskTensors mask;
    mask.bias                     = result;
    layout.dbias                  = layout_of(function, mask, scores_of(t, layout.gradient.forward.shape)).bias;
    std::int64_t* const extents[] = {&layout.kept.batch, &layout.kept.heads, &layout.kept.queries, &layout.kept.keys};
    for (int axis = 0; axis < 4; ++axis) {
      const int of_result = axis - (4 - result.rank);
      *extents[axis]      = of_result < 0 ? 1 : result.extent[of_result];
    }
  }
  validate_overlap(function,
                   {{"q", &t.q}, {"k", &t.k}, {"v", &t.v}, {"o", &t.o}, {"lse", &t.lse}, {"dout", &tensors.dout}},
                   {{of_sinks ? "dsinks" : "dbias", &result}}, options);
  return layout;
}

AttentionMergeLayout normalise_attention_merge(const char* function, AttentionMergeTensors tensors,
                                               const AttentionCallOptions& options) {
  const AttentionMergeTensors given = tensors;
  AttentionMergeLayout layout;
  refuse_dropout(function, options.dropout);
  const auto of_o   = drop_parts(tensors.o_parts);
  const auto of_lse = drop_parts(tensors.lse_parts);
  order_axes(options, {&tensors.o_parts, &tensors.o}, tensors.lse_parts);
  if (options.is_packed) add_batch_axis(tensors.lse);
  Tensor rows = tensors.o;
  rows.rank   = dim;
  require_extents(function, "each part of o", tensors.o_parts, tensors.o);
  require_extents(function, "each part of lse", tensors.lse_parts, rows);
  if (tensors.lse.exists()) require_extents(function, "lse", tensors.lse, rows);
  if (of_o.first != of_lse.first) {
    (ArgumentError(function) << "o has " << of_o.first << " parts, but lse " << of_lse.first).raise();
  }
  const Tensor& o        = tensors.o;
  layout.shape           = {of_o.first, o.extent[batch], o.extent[head], o.extent[sequence], o.extent[dim]};
  layout.o_part_stride   = of_o.second;
  layout.lse_part_stride = of_lse.second;
  layout.o_parts         = strides_of_axes(tensors.o_parts);
  layout.lse_parts       = strides_of_axes(tensors.lse_parts);
  layout.o               = strides_of_axes(o);
  layout.lse             = strides_of_axes(tensors.lse);
  layout.sink_stride     = layout_of(function, options.mask, o).sinks.head;
  if (layout.writes()) {
    validate_overlap(function, {{"the parts of o", &given.o_parts}, {"the parts of lse", &given.lse_parts}},
                     {{"lse", &tensors.lse}, {"o", &o}}, options);
  }
  return layout;
}

AttentionLayout normalise_attention(const char* function, AttentionTensors tensors,
                                    const AttentionCallOptions& options) {
  order_axes(options, {&tensors.q, &tensors.k, &tensors.v, &tensors.o}, tensors.lse);
  AttentionLayout layout = checked_layout(function, tensors, options);
  cut_keys(layout.shape);
  if (layout.writes()) {
    const AttentionTensors& t = tensors;
    validate_overlap(function, {{"q", &t.q}, {"k", &t.k}, {"v", &t.v}}, {{"lse", &t.lse}, {"o", &t.o}}, options);
  }
  return layout;
}

AttentionInputStrides normalise_attention_inputs(const char* function, const Tensor& o, const Tensor& lse,
                                                 const AttentionCallOptions& options, const AttentionInputs& inputs) {
  AttentionInputStrides strides;
  for (int i = 0; i < inputs.count; ++i) {
    const Tensor& given    = inputs.tensor[i];
    const char* const name = inputs.name[i];
    Tensor input           = broadcast(function, name, given, "o", o);
    Tensor none;
    order_axes(options, {&input}, none);
    strides.input[i] = strides_of_axes(input);
    require_apart(function, name, given, "o", o, true);
    if (lse.exists()) require_apart(function, name, given, "lse", lse, false);
  }
  return strides;
}

AttentionGradientLayout normalise_attention_gradient(const char* function, AttentionGradientTensors tensors,
                                                     const AttentionCallOptions& options) {
  AttentionTensors& inputs = tensors.forward;
  order_axes(options,
             {&inputs.q, &inputs.k, &inputs.v, &inputs.o, &tensors.dout, &tensors.dq, &tensors.dk, &tensors.dv},
             inputs.lse);
  const AttentionLayout layout = checked_layout(function, tensors.forward, options);
  validate_same(function, "dout", tensors.dout, "o", tensors.forward.o);
  validate_same(function, "dq", tensors.dq, "q", tensors.forward.q);
  validate_same(function, "dk", tensors.dk, "k", tensors.forward.k);
  validate_same(function, "dv", tensors.dv, "v", tensors.forward.v);
  const AttentionTensors& t = tensors.forward;
  validate_overlap(function,
                   {{"q", &t.q}, {"k", &t.k}, {"v", &t.v}, {"o", &t.o}, {"lse", &t.lse}, {"dout", &tensors.dout}},
                   {{"dq", &tensors.dq}, {"dk", &tensors.dk}, {"dv", &tensors.dv}}, options);
  return {layout, strides_of_axes(tensors.dout), strides_of_axes(tensors.dq), strides_of_axes(tensors.dk),
          strides_of_axes(tensors.dv)};
}

}  // namespace KokkosNN::Impl
