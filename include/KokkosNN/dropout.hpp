// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_DROPOUT_HPP
#define KOKKOSNN_DROPOUT_HPP

#include <cstdint>

// Dropout of attention's weights, an option of attention and its gradients.

namespace KokkosNN {

/// Dropout of attention's weights: behind the softmax, each becomes 0 with this probability, the others are multiplied
/// by 1 / (1 - probability); sums of exponentials and lse are those without.
///
/// Weights that stay are a function of seed, offset, batch (or packed sequence), head, query and key: nothing is
/// stored, and a call of the gradients with the same values finds the same weights. All kernels and backends agree. The
/// bits are Philox 4x32-10's under the key `seed`: word (j % 32) / 8 of the counter (j / 32 * 8 + j % 8, query,
/// batch * heads + head, offset), j being the key; a weight stays where its word is below ceil((1 - probability) 2^32).
/// Numbers repeat beyond 2^33 keys, 2^32 queries and 2^32 heads.
struct AttentionDropout {
  double probability   = 0;  ///< 0 to below 1; 0: no dropout
  std::uint64_t seed   = 0;
  std::uint32_t offset = 0;  ///< another one for each call under a seed: a layer, a step
};

}  // namespace KokkosNN

#endif  // KOKKOSNN_DROPOUT_HPP
