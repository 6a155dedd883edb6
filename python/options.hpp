// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_PYTHON_OPTIONS_HPP
#define KOKKOSNN_PYTHON_OPTIONS_HPP

#include <KokkosNN/kokkosnn.h>

// The structs of kokkosnn.h by the names of their members: defaults(pointer to the struct) are a struct's defaults, and
// list(struct, members) calls members(name, member) for each of its members, in a row.

inline kokkosnn_softmax_options defaults(const kokkosnn_softmax_options*) { return KOKKOSNN_SOFTMAX_OPTIONS_INIT; }
template <class Members>
void list(kokkosnn_softmax_options& o, Members& members) {
  members("scale", o.scale)("axis", o.axis)("masked_row", o.masked_row)("determinism", o.determinism)("axes", o.axes);
}

inline kokkosnn_masked_softmax_options defaults(const kokkosnn_masked_softmax_options*) {
  return KOKKOSNN_MASKED_SOFTMAX_OPTIONS_INIT;
}
template <class Members>
void list(kokkosnn_masked_softmax_options& o, Members& members) {
  members("scale", o.scale)("softcap", o.softcap)("sinks", o.sinks)("masked_row", o.masked_row)("determinism",
                                                                                                o.determinism);
}

inline kokkosnn_cross_entropy_options defaults(const kokkosnn_cross_entropy_options*) {
  return KOKKOSNN_CROSS_ENTROPY_OPTIONS_INIT;
}
template <class Members>
void list(kokkosnn_cross_entropy_options& o, Members& members) {
  members("ignore_index", o.ignore_index)("label_smoothing", o.label_smoothing)("z_loss", o.z_loss);
  members("softcap", o.softcap)("gradient_scale", o.gradient_scale)("reduction", o.reduction);
  members("check_labels", o.check_labels)("determinism", o.determinism)("axis", o.axis);
  members("first_class", o.first_class)("classes", o.classes)("weighted_z_loss", o.weighted_z_loss);
}

inline kokkosnn_soft_cross_entropy_options defaults(const kokkosnn_soft_cross_entropy_options*) {
  return KOKKOSNN_SOFT_CROSS_ENTROPY_OPTIONS_INIT;
}
template <class Members>
void list(kokkosnn_soft_cross_entropy_options& o, Members& members) {
  members("label_smoothing", o.label_smoothing)("gradient_scale", o.gradient_scale)("reduction", o.reduction);
  members("determinism", o.determinism)("axis", o.axis);
}

inline kokkosnn_rms_norm_options defaults(const kokkosnn_rms_norm_options*) { return KOKKOSNN_RMS_NORM_OPTIONS_INIT; }
template <class Members>
void list(kokkosnn_rms_norm_options& o, Members& members) {
  members("epsilon", o.epsilon)("weight_offset", o.weight_offset)("axis", o.axis)("determinism", o.determinism);
}

inline kokkosnn_layer_norm_options defaults(const kokkosnn_layer_norm_options*) {
  return KOKKOSNN_LAYER_NORM_OPTIONS_INIT;
}
template <class Members>
void list(kokkosnn_layer_norm_options& o, Members& members) {
  members("epsilon", o.epsilon)("axis", o.axis)("determinism", o.determinism);
}

inline kokkosnn_attention_options defaults(const kokkosnn_attention_options*) {
  return KOKKOSNN_ATTENTION_OPTIONS_INIT;
}
template <class Members>
void list(kokkosnn_attention_options& o, Members& members) {
  members("scale", o.scale)("softcap", o.softcap)("sinks", o.sinks)("masked_row", o.masked_row)("axes", o.axes);
  members("precision", o.precision)("diagonal", o.diagonal)("dropout_probability", o.dropout_probability);
  members("dropout_seed", o.dropout_seed)("dropout_offset", o.dropout_offset);
}

inline kokkosnn_matmul_options defaults(const kokkosnn_matmul_options*) { return KOKKOSNN_MATMUL_OPTIONS_INIT; }
template <class Members>
void list(kokkosnn_matmul_options& o, Members& members) {
  members("alpha", o.alpha)("beta", o.beta)("precision", o.precision)("determinism", o.determinism);
  members("provider", o.provider)("rows", o.rows)("row_offsets", o.row_offsets);
}

inline kokkosnn_rope_options defaults(const kokkosnn_rope_options*) { return KOKKOSNN_ROPE_OPTIONS_INIT; }
template <class Members>
void list(kokkosnn_rope_options& o, Members& members) {
  members("form", o.form)("rotary_dims", o.rotary_dims)("sequence_axis", o.sequence_axis);
  members("position_offset", o.position_offset)("theta", o.theta)("position_scale", o.position_scale);
  members("check_positions", o.check_positions);
}

inline kokkosnn_rms_norm_rope_options defaults(const kokkosnn_rms_norm_rope_options*) {
  return KOKKOSNN_RMS_NORM_ROPE_OPTIONS_INIT;
}
template <class Members>
void list(kokkosnn_rms_norm_rope_options& o, Members& members) {
  members("epsilon", o.epsilon)("weight_offset", o.weight_offset);
  members("form", o.form)("rotary_dims", o.rotary_dims)("sequence_axis", o.sequence_axis);
  members("position_offset", o.position_offset)("theta", o.theta)("position_scale", o.position_scale);
  members("check_positions", o.check_positions);
}

inline kokkosnn_gelu_options defaults(const kokkosnn_gelu_options*) { return KOKKOSNN_GELU_OPTIONS_INIT; }
template <class Members>
void list(kokkosnn_gelu_options& o, Members& members) {
  members("form", o.form);
}

inline kokkosnn_column_sums_options defaults(const kokkosnn_column_sums_options*) {
  return KOKKOSNN_COLUMN_SUMS_OPTIONS_INIT;
}
template <class Members>
void list(kokkosnn_column_sums_options& o, Members& members) {
  members("axis", o.axis);
}

inline kokkosnn_segmented_options defaults(const kokkosnn_segmented_options*) {
  return KOKKOSNN_SEGMENTED_OPTIONS_INIT;
}
template <class Members>
void list(kokkosnn_segmented_options& o, Members& members) {
  members("scale", o.scale)("masked_row", o.masked_row)("check_offsets", o.check_offsets)("segments", o.segments);
}

inline kokkosnn_mask defaults(const kokkosnn_mask*) { return KOKKOSNN_MASK_INIT; }
template <class Members>
void list(kokkosnn_mask& m, Members& members) {
  members("boolean", m.boolean)("bias", m.bias)("lengths", m.lengths)("alibi_slopes", m.alibi_slopes);
  members("causal_offset", m.causal_offset)("window_left", m.window_left)("window_right", m.window_right);
  members("window_offset", m.window_offset)("alibi_offset", m.alibi_offset)("is_causal", m.is_causal);
  members("has_window", m.has_window)("diagonal_offsets", m.diagonal_offsets)("row_scales", m.row_scales);
}

#endif
