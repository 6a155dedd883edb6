// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_ATTENTION_DROPOUT_HPP
#define KOKKOSNN_IMPL_INPUTS_ATTENTION_DROPOUT_HPP

#include <KokkosNN/impl/math/philox.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstdint>

// Dropout of attention's weights: whether one stays is a function of seed, offset, row of scores and key, so the
// gradients find it out again.

namespace KokkosNN::Impl {

/// Row of scores, as the counter has it.
struct DropoutRow {
  std::uint32_t query;
  std::uint32_t head;  ///< batch * heads + head
};

/// A counter gives the words of the keys j, j + 8, j + 16 and j + 24 of 32: a thread has several of them in tiles of a
/// matrix unit, in rows as in columns.
template <class A>
struct AttentionWeightDropout {
  static constexpr int keys = 32;
  using Words               = Philox::Words;

  Philox random{};
  std::uint32_t offset     = 0;
  std::uint32_t kept_below = 0;  ///< bound of the words of weights that stay; 0: there is no dropout
  A scale                  = 1;  ///< of the weights that stay
  std::int64_t heads       = 1;

  /// `probability` is that of a weight to become 0, below 1.
  static AttentionWeightDropout of(double probability, std::uint64_t seed, std::uint32_t offset, std::int64_t heads) {
    AttentionWeightDropout dropout;
    if (probability == 0) return dropout;
    const double most = 4294967295.0, kept = std::ceil((1 - probability) * 4294967296.0);
    dropout.random     = {{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
    dropout.offset     = offset;
    dropout.kept_below = static_cast<std::uint32_t>(kept < 1 ? 1 : kept < most ? kept : most);
    dropout.scale      = static_cast<A>(1 / (1 - probability));
    dropout.heads      = heads;
    return dropout;
  }

  KOKKOS_FORCEINLINE_FUNCTION bool exists() const { return kept_below != 0; }
  KOKKOS_FORCEINLINE_FUNCTION DropoutRow row(std::int64_t batch, std::int64_t head, std::int64_t query) const {
    return {static_cast<std::uint32_t>(query), static_cast<std::uint32_t>(batch * heads + head)};
  }

  /// Words of four keys, of which number(key) is the key's.
  KOKKOS_FORCEINLINE_FUNCTION Words words(const DropoutRow& row, std::int64_t key) const {
    return random({{static_cast<std::uint32_t>(key / keys * 8 + key % 8), row.query, row.head, offset}});
  }
  KOKKOS_FORCEINLINE_FUNCTION static int number(std::int64_t key) { return static_cast<int>(key % keys) / 8; }
  KOKKOS_FORCEINLINE_FUNCTION bool keeps(std::uint32_t word) const { return word < kept_below; }

  /// Factor of a weight: 0, or what makes up for those that are dropped; 1 without dropout.
  KOKKOS_FUNCTION A factor(const DropoutRow& row, std::int64_t key) const {
    if (!exists()) return A(1);
    const Words four = words(row, key);
    const int n      = number(key);
    return keeps(n == 0 ? four.word[0] : n == 1 ? four.word[1] : n == 2 ? four.word[2] : four.word[3]) ? scale : A(0);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_ATTENTION_DROPOUT_HPP
