// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/attention.hpp"
#include "support/types.hpp"

#include <KokkosNN/attention.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

// Features of ONNX' Attention, by the names of its node tests. The operator's tensors are Views here: 3d ones,
// (batch, sequence, head * dim), have the sequence as second axis; keys of the past lie ahead of the new ones in k and
// v; a softcap acts ahead of the mask.

namespace KokkosNNTest {
namespace {

using KokkosNN::AttentionOptions;
using KokkosNN::masks;

/// attn_mask of a case: none, or of bool or float, and its rank.
enum class AttnMask { none, boolean, number };

struct OnnxCase {
  std::string name;
  HeadExtents n;
  bool is_3d     = false;
  int past       = 0;  ///< keys of the past among those of n
  bool is_causal = false;
  double scale   = 0;
  double softcap = 0;
  AttnMask mask  = AttnMask::none;
  int mask_rank  = 2;      ///< (query, key), (head, query, key) or (batch, head, query, key)
  bool is_padded = false;  ///< keys behind nonpad_kv_seqlen, a number a batch entry, do not count
};

constexpr HeadExtents equal{2, 3, 3, 4, 6, 8, 8};
constexpr HeadExtents unequal{2, 3, 3, 4, 6, 8, 10};
constexpr HeadExtents grouped{2, 9, 3, 4, 6, 8, 8};
constexpr HeadExtents with_past{2, 3, 3, 4, 18, 8, 8};
constexpr HeadExtents grouped_with_past{2, 9, 3, 4, 18, 8, 10};

const OnnxCase cases[] = {
    {.name = "attention_4d", .n = equal},
    {.name = "attention_4d_causal", .n = equal, .is_causal = true},
    {.name = "attention_4d_scaled", .n = equal, .scale = 0.01},
    {.name = "attention_4d_softcap", .n = equal, .softcap = 2},
    {.name = "attention_4d_attn_mask", .n = equal, .mask = AttnMask::number},
    {.name = "attention_4d_attn_mask_3d", .n = equal, .mask = AttnMask::number, .mask_rank = 3},
    {.name      = "attention_4d_attn_mask_3d_causal",
     .n         = equal,
     .is_causal = true,
     .mask      = AttnMask::number,
     .mask_rank = 3},
    {.name = "attention_4d_attn_mask_4d", .n = equal, .mask = AttnMask::number, .mask_rank = 4},
    {.name      = "attention_4d_attn_mask_4d_causal",
     .n         = equal,
     .is_causal = true,
     .mask      = AttnMask::number,
     .mask_rank = 4},
    {.name = "attention_4d_attn_mask_bool", .n = equal, .mask = AttnMask::boolean},
    {.name = "attention_4d_attn_mask_bool_4d", .n = equal, .mask = AttnMask::boolean, .mask_rank = 4},
    {.name = "attention_4d_diff_heads_sizes", .n = unequal},
    {.name = "attention_4d_diff_heads_sizes_causal", .n = unequal, .is_causal = true},
    {.name = "attention_4d_diff_heads_sizes_attn_mask", .n = unequal, .mask = AttnMask::number},
    {.name      = "attention_4d_diff_heads_mask4d_padded_kv",
     .n         = unequal,
     .mask      = AttnMask::number,
     .mask_rank = 4,
     .is_padded = true},
    {.name = "attention_4d_gqa", .n = grouped},
    {.name = "attention_4d_gqa_causal", .n = grouped, .is_causal = true},
    {.name = "attention_4d_gqa_attn_mask", .n = grouped, .mask = AttnMask::number},
    {.name = "attention_4d_gqa_softcap", .n = grouped, .softcap = 2},
    {.name = "attention_4d_with_past_and_present", .n = with_past, .past = 12, .mask = AttnMask::number},
    {.name = "attention_4d_causal_with_past_and_present", .n = with_past, .past = 14, .is_causal = true},
    {.name = "attention_4d_gqa_with_past_and_present", .n = grouped_with_past, .past = 12, .mask = AttnMask::number},
    {.name      = "attention_4d_gqa_softcap_causal_with_past",
     .n         = grouped_with_past,
     .past      = 14,
     .is_causal = true,
     .softcap   = 2},
    {.name = "attention_3d", .n = equal, .is_3d = true},
    {.name = "attention_3d_causal", .n = equal, .is_3d = true, .is_causal = true},
    {.name = "attention_3d_scaled", .n = equal, .is_3d = true, .scale = 0.01},
    {.name = "attention_3d_softcap", .n = equal, .is_3d = true, .softcap = 3},
    {.name = "attention_3d_attn_mask", .n = equal, .is_3d = true, .mask = AttnMask::number},
    {.name = "attention_3d_diff_heads_sizes_causal", .n = unequal, .is_3d = true, .is_causal = true},
    {.name = "attention_3d_gqa_attn_mask", .n = grouped, .is_3d = true, .mask = AttnMask::boolean, .mask_rank = 4},
    {.name  = "attention_3d_gqa_with_past_and_present",
     .n     = grouped_with_past,
     .is_3d = true,
     .past  = 12,
     .mask  = AttnMask::number}};

/// Masks of all cases, of which the last axes may broadcast.
struct MaskTensors {
  Kokkos::View<float****, Kokkos::LayoutRight, Memory> numbers{"numbers", 2, 9, 4, 18};
  Kokkos::View<bool****, Kokkos::LayoutRight, Memory> keep{"keep", 2, 9, 4, 18};
  Kokkos::View<std::int64_t*, Memory> lengths{"lengths", 2};

  static double number(int b, int h, int i, int j) { return std::sin(1.3 * b + 0.7 * h + 2.1 * i + 0.4 * j); }
  static bool is_kept(int b, int h, int i, int j) { return j == i || (3 * b + 5 * h + 7 * i + 2 * j) % 5 != 1; }
  static int length(int b) { return b == 0 ? 3 : 4; }

  MaskTensors() {
    const auto numbers_host = Kokkos::create_mirror_view(numbers);
    const auto keep_host    = Kokkos::create_mirror_view(keep);
    const auto lengths_host = Kokkos::create_mirror_view(lengths);
    for (int b = 0; b < 2; ++b) {
      lengths_host(b) = length(b);
      for (int h = 0; h < 9; ++h)
        for (int i = 0; i < 4; ++i)
          for (int j = 0; j < 18; ++j) {
            numbers_host(b, h, i, j) = static_cast<float>(number(b, h, i, j));
            keep_host(b, h, i, j)    = is_kept(b, h, i, j);
          }
    }
    Kokkos::deep_copy(numbers, numbers_host);
    Kokkos::deep_copy(keep, keep_host);
    Kokkos::deep_copy(lengths, lengths_host);
  }
};

/// Calls f with the part of a mask that a case has, of as many axes as its attn_mask.
template <class V, class F>
void with_part(const V& all, const OnnxCase& c, const F& f) {
  using Kokkos::subview;
  const auto heads = std::pair(0, c.n.heads), rows = std::pair(0, c.n.queries), keys = std::pair(0, c.n.keys);
  if (c.mask_rank == 2) return f(subview(all, 0, 0, rows, keys));
  if (c.mask_rank == 3) return f(subview(all, 0, heads, rows, keys));
  f(subview(all, Kokkos::ALL, heads, rows, keys));
}

void run(AttentionTrial<float>& trial, const OnnxCase& c, const MaskTensors& tensors, const AttentionOptions& options) {
  const auto with_causal = [&](const auto&... parts) {
    if (c.is_causal) return trial.run(masks(KokkosNN::CausalMask{c.past}, parts...), options);
    trial.run(masks(parts...), options);
  };
  if (c.mask == AttnMask::none) return with_causal();
  if (c.mask == AttnMask::boolean) {
    return with_part(tensors.keep, c, [&](const auto& view) { with_causal(KokkosNN::BooleanMask{view}); });
  }
  with_part(tensors.numbers, c, [&](const auto& view) {
    if (c.is_padded) return with_causal(KokkosNN::AdditiveBias{view}, KokkosNN::RowLengths{tensors.lengths});
    with_causal(KokkosNN::AdditiveBias{view});
  });
}

TEST(AttentionOfOnnx, CasesAreWithinTheBoundOfLongDouble) {
  const MaskTensors tensors;
  for (const OnnxCase& c : cases) {
    AttentionTrial<float> trial(c.n, c.is_3d);
    run(trial, c, tensors, {.scale = c.scale, .softcap = c.softcap});
    const Logit logit = [&](int b, int h, int i, int j, long double s) {
      if (c.is_causal && j > i + c.past) return -infinite_logit;
      if (c.is_padded && j >= MaskTensors::length(b)) return -infinite_logit;
      const int mask_b = c.mask_rank > 3 ? b : 0, mask_h = c.mask_rank > 2 ? h : 0;
      if (c.mask == AttnMask::boolean && !MaskTensors::is_kept(mask_b, mask_h, i, j)) return -infinite_logit;
      if (c.softcap != 0) s = c.softcap * std::tanh(s / c.softcap);
      if (c.mask == AttnMask::number) s += static_cast<float>(MaskTensors::number(mask_b, mask_h, i, j));
      return s;
    };
    EXPECT_LE(trial.error(logit, c.scale), 1) << c.name;
  }
}

}  // namespace
}  // namespace KokkosNNTest
