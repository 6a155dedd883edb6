// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_KERNELS_HPP
#define KOKKOSNN_KERNELS_HPP

#include <KokkosNN/impl/call/attention_launch.hpp>
#include <KokkosNN/impl/call/attention_mask_gradients_launch.hpp>
#include <KokkosNN/impl/call/column_sums_launch.hpp>
#include <KokkosNN/impl/call/cross_entropy_launch.hpp>
#include <KokkosNN/impl/call/gradient_launch.hpp>
#include <KokkosNN/impl/call/graph_attention_launch.hpp>
#include <KokkosNN/impl/call/masked_gradient_launch.hpp>
#include <KokkosNN/impl/call/masked_launch.hpp>
#include <KokkosNN/impl/call/operand_launch.hpp>
#include <KokkosNN/impl/call/quantized_launch.hpp>
#include <KokkosNN/impl/call/rms_norm_rope_launch.hpp>
#include <KokkosNN/impl/call/rope_launch.hpp>
#include <KokkosNN/impl/call/segment_index_launch.hpp>
#include <KokkosNN/impl/call/segmented_launch.hpp>
#include <KokkosNN/impl/call/soft_loss_launch.hpp>
#include <KokkosNN/impl/call/view_launch.hpp>

// The kernels of all operators on Views. The library holds them compiled for the default execution space, and for the
// element types that the functions' documentation names; a file that calls with other types or on another space
// compiles them by itself, and includes this header before such a call. Without it the call does not compile, and a
// message says so. KokkosNN.hpp includes it; a header of one family alone compiles in half of the time.

#endif  // KOKKOSNN_KERNELS_HPP
