// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ATTENTION_PLAN_HPP
#define KOKKOSNN_IMPL_CALL_ATTENTION_PLAN_HPP

#include <KokkosNN/dropout.hpp>
#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/mask_layout.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>
#include <KokkosNN/precision.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

// An attention call on the host: its tensors, the extents and strides that its kernels see, its plan.

namespace KokkosNN::Impl {

/// Views of a call, erased, with axes (batch, head, sequence, dim), or (token, head, dim) of packed sequences; lse has
/// no dim, and need not exist.
struct AttentionTensors {
  Tensor q;
  Tensor k;
  Tensor v;
  Tensor o;
  Tensor lse;
};

/// Options of a call, erased; its mask is that of the scores (batch, head, query, key).
struct AttentionCallOptions {
  double scale               = 0;  ///< 0: 1 / sqrt(dim)
  MaskedRowPolicy masked_row = MaskedRowPolicy::nan;
  bool sequence_is_second    = false;  ///< axes of q, k, v and o are (batch, sequence, head, dim)
  MaskTensors mask;
  Precision precision         = Precision::exact;
  MatmulTier tier             = MatmulTier::automatic;
  bool ends_align             = false;  ///< diagonals begin where a sequence's last query is at its last key
  bool is_packed              = false;
  std::int64_t first_key      = 0;  ///< keys of the call are some of all that lengths count, from this number on
  std::int64_t diagonal_shift = 0;  ///< is added to the offset of every diagonal
  Tensor query_offsets;             ///< of packed sequences
  Tensor key_offsets;
  AttentionDropout dropout;
};

/// A checked call.
struct AttentionLayout {
  AttentionShape shape;
  AttentionStrides q;
  AttentionStrides k;
  AttentionStrides v;
  AttentionStrides o;
  AttentionStrides lse;
  ScoreMaskLayout mask;
  double scale                     = 1;
  std::int64_t query_offset_stride = 0;
  std::int64_t key_offset_stride   = 0;

  bool writes() const { return shape.batch * shape.heads * shape.queries > 0; }
};

/// Throws std::invalid_argument for a dropout, where there is none.
KOKKOSNN_EXPORT void refuse_dropout(const char* function, const AttentionDropout& dropout);

/// Checks a call and describes it. Throws std::invalid_argument for extents that do not fit, for heads that are no
/// multiple of k's, for a head dim beyond 256, for bad numbers of the options and for overlap.
KOKKOSNN_EXPORT AttentionLayout normalise_attention(const char* function, AttentionTensors tensors,
                                                    const AttentionCallOptions& options);

/// Inputs of an epilogue, which broadcast to o.
inline constexpr int max_attention_inputs = 5;
struct AttentionInputs {
  int count = 0;
  Tensor tensor[max_attention_inputs];
  const char* name[max_attention_inputs];
};
struct AttentionInputStrides {
  AttentionStrides input[max_attention_inputs];
};

/// Checks the inputs of an epilogue: they broadcast to o, are o itself or apart from it, and apart from lse.
KOKKOSNN_EXPORT AttentionInputStrides normalise_attention_inputs(const char* function, const Tensor& o,
                                                                 const Tensor& lse, const AttentionCallOptions& options,
                                                                 const AttentionInputs& inputs);

/// Views of a call of the gradients; o and lse of `forward` are inputs.
struct AttentionGradientTensors {
  AttentionTensors forward;
  Tensor dout;
  Tensor dq;
  Tensor dk;
  Tensor dv;
};

struct AttentionGradientLayout {
  AttentionLayout forward;
  AttentionStrides dout;
  AttentionStrides dq;
  AttentionStrides dk;
  AttentionStrides dv;
};

/// As normalise_attention, of the gradients.
KOKKOSNN_EXPORT AttentionGradientLayout normalise_attention_gradient(const char* function,
                                                                     AttentionGradientTensors tensors,
                                                                     const AttentionCallOptions& options);

/// Views of a call that joins parts; those of the parts have an axis of parts ahead of the others.
struct AttentionMergeTensors {
  Tensor o_parts;
  Tensor lse_parts;
  Tensor o;
  Tensor lse;
};

struct AttentionMergeLayout {
  AttentionMergeShape shape;
  AttentionStrides o_parts;
  AttentionStrides lse_parts;
  AttentionStrides o;
  AttentionStrides lse;
  std::int64_t o_part_stride   = 0;
  std::int64_t lse_part_stride = 0;
  std::int64_t sink_stride     = 0;

  bool writes() const { return shape.batch * shape.heads * shape.queries > 0; }
};

/// As normalise_attention, of parts of its results.
KOKKOSNN_EXPORT AttentionMergeLayout normalise_attention_merge(const char* function, AttentionMergeTensors tensors,
                                                               const AttentionCallOptions& options);

/// Plan of a call. A team takes some rows of scores at a time, and of these a tile of keys.
struct AttentionPlan {
  ElementType type         = ElementType::f32;
  Precision precision      = Precision::exact;  ///< of products of float
  int tile                 = 1;
  int rows_per_team        = 1;
  int team_size            = 1;
  std::int64_t league_size = 1;
  int scratch_level        = 0;
  std::size_t scratch      = 0;      ///< bytes a team
  bool in_tiles            = false;  ///< a GPU's kernel on a matrix unit runs, else a row of scores a team
  bool copies_q            = false;  ///< q's tiles come by asynchronous copies of 16 bytes, else element by element
  bool copies_k            = false;
  bool copies_v            = false;
  bool copies_dout         = false;
  bool is_on_warpgroups    = false;  ///< Hopper's
  std::int64_t bundle      = 1;      ///< heads whose blocks come side by side there
  bool writes_units        = false;  ///< eight elements of o at a time there
  bool merges_in_team      = false;  ///< a team joins the parts of a row, else a thread those of some elements
};

/// Chooses the plan: no launch, no allocation on a device. `shape` is a GPU's kernel on a matrix unit, which serves
/// where its scratch can be had.
KOKKOSNN_EXPORT AttentionPlan make_attention_plan(ElementType type, Precision precision,
                                                  const AttentionTensors& tensors, const AttentionLayout& layout,
                                                  const AttentionKernelShape& shape, const DeviceTraits& traits);

/// Plan of the kernel on Hopper's warpgroups, of that shape; it is not `is_on_warpgroups` where that does not serve:
/// masks' elements, few queries, tensors that have no boxes.
KOKKOSNN_EXPORT AttentionPlan make_warpgroup_attention_plan(ElementType type, const AttentionTensors& tensors,
                                                            const AttentionLayout& layout,
                                                            const AttentionCallOptions& options,
                                                            const AttentionKernelShape& shape,
                                                            const DeviceTraits& traits);

/// As make_warpgroup_attention_plan, of a kernel of the gradients: that of the queries, or that of the keys.
KOKKOSNN_EXPORT AttentionPlan make_warpgroup_gradient_plan(ElementType type, const AttentionGradientTensors& tensors,
                                                           const AttentionGradientLayout& layout,
                                                           const AttentionCallOptions& options, bool of_keys,
                                                           const AttentionKernelShape& shape,
                                                           const DeviceTraits& traits);

/// Cuts the keys of a call into parts that are computed side by side where few queries see many keys. It depends on
/// extents of a batch entry alone: neither on how many entries there are, nor on the device.
KOKKOSNN_EXPORT void cut_keys(AttentionShape& shape);

/// Plan of a kernel of the gradients: that of the queries, whose teams take rows, or that of the keys. Its league is
/// empty where it has nothing to write.
KOKKOSNN_EXPORT AttentionPlan make_attention_gradient_plan(ElementType type, const AttentionGradientTensors& tensors,
                                                           const AttentionGradientLayout& layout, bool of_keys,
                                                           const AttentionKernelShape& shape,
                                                           const DeviceTraits& traits);

/// Plan of the kernel that joins parts.
KOKKOSNN_EXPORT AttentionPlan make_attention_merge_plan(ElementType type, const AttentionMergeShape& shape,
                                                        const DeviceTraits& traits);

/// Label of the kernel: `KokkosNN::attention[f32,k128,r1,ts128]`; on a matrix unit
/// `KokkosNN::attention[bf16,k64,r128,c111,ts128]`, c if q, k, v (and dout) are copied asynchronously; on Hopper's
/// warpgroups `KokkosNN::attention[warpgroups,bf16,k128,r128,ts384]`.
KOKKOSNN_EXPORT std::string to_string(const char* function, const AttentionPlan& plan);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ATTENTION_PLAN_HPP
