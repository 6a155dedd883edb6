// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_KOKKOSNN_HPP
#define KOKKOSNN_KOKKOSNN_HPP

#include <KokkosNN/add_norm.hpp>
#include <KokkosNN/attention.hpp>
#include <KokkosNN/attention_mask_gradients.hpp>
#include <KokkosNN/column_sums.hpp>
#include <KokkosNN/concepts.hpp>
#include <KokkosNN/cross_entropy.hpp>
#include <KokkosNN/dropout.hpp>
#include <KokkosNN/elementwise.hpp>
#include <KokkosNN/float8.hpp>
#include <KokkosNN/fused.hpp>
#include <KokkosNN/fused_attention.hpp>
#include <KokkosNN/gradients.hpp>
#include <KokkosNN/graph_attention.hpp>
#include <KokkosNN/half.hpp>
#include <KokkosNN/kernels.hpp>
#include <KokkosNN/mask.hpp>
#include <KokkosNN/masked_softmax.hpp>
#include <KokkosNN/matmul.hpp>
#include <KokkosNN/merge_attention.hpp>
#include <KokkosNN/norm.hpp>
#include <KokkosNN/online.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/pack.hpp>
#include <KokkosNN/packed_attention.hpp>
#include <KokkosNN/plan.hpp>
#include <KokkosNN/precision.hpp>
#include <KokkosNN/quantized.hpp>
#include <KokkosNN/rms_norm_rope.hpp>
#include <KokkosNN/rope.hpp>
#include <KokkosNN/segmented.hpp>
#include <KokkosNN/softmax.hpp>
#include <KokkosNN/team.hpp>
#include <KokkosNN/team_attention.hpp>
#include <KokkosNN/team_matmul.hpp>
#include <KokkosNN/tuning.hpp>
#include <KokkosNN/version.hpp>

#endif  // KOKKOSNN_KOKKOSNN_HPP
