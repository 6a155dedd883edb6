// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MATH_PHILOX_HPP
#define KOKKOSNN_IMPL_MATH_PHILOX_HPP

#include <Kokkos_Core.hpp>

#include <cstdint>

// A counter-based generator of random bits: a function of a key and a counter, without a state.

namespace KokkosNN::Impl {

/// Philox 4x32 with 10 rounds. Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
struct Philox {
  struct Words {
    std::uint32_t word[4];
  };

  std::uint32_t key[2];

  KOKKOS_FUNCTION Words operator()(Words counter) const {
    std::uint32_t first = key[0], second = key[1];
    for (int round = 0; round < 10; ++round) {
      counter = one_round(counter, first, second);
      first += 0x9E3779B9u;
      second += 0xBB67AE85u;
    }
    return counter;
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static Words one_round(const Words& c, std::uint32_t first, std::uint32_t second) {
    const std::uint64_t a = std::uint64_t(0xD2511F53u) * c.word[0], b = std::uint64_t(0xCD9E8D57u) * c.word[2];
    return {{static_cast<std::uint32_t>(b >> 32) ^ c.word[1] ^ first, static_cast<std::uint32_t>(b),
             static_cast<std::uint32_t>(a >> 32) ^ c.word[3] ^ second, static_cast<std::uint32_t>(a)}};
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MATH_PHILOX_HPP
