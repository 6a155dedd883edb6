// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_EMULATED_HEADS_HPP
#define KOKKOSNN_TEST_SUPPORT_EMULATED_HEADS_HPP

#include "support/team_emulation.hpp"

#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/gpu/device/matrix_unit.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

// Tensors of attention for kernels that run in an emulated team, and the units that they run on.

namespace KokkosNNTest {

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// A tensor (batch, head, sequence, dim), NaN between its rows.
template <class T>
struct Heads {
  std::vector<T> memory;
  KokkosNN::Impl::AttentionStrides strides;

  Heads(std::int64_t batch, std::int64_t heads, std::int64_t length, std::int64_t dim, bool is_aligned, unsigned seed) {
    constexpr std::int64_t chunk = 16 / std::int64_t(sizeof(T));
    const std::int64_t row       = (dim + chunk - 1) / chunk * chunk + (is_aligned ? chunk : 1);
    strides                      = {heads * length * row, length * row, row, 1};
    memory.assign(static_cast<std::size_t>(batch * strides.batch), T(NAN));
    std::mt19937 random(seed);
    for (std::int64_t r = 0; r < batch * heads * length; ++r) {
      for (std::int64_t d = 0; d < dim; ++d) {
        memory[static_cast<std::size_t>(r * row + d)] = T((static_cast<int>(random() % 65) - 32) / 16.0f);
      }
    }
  }
  T& at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) {
    return memory[static_cast<std::size_t>(b * strides.batch + h * strides.head + i * strides.sequence + d)];
  }
};

struct Shape {
  std::int64_t batch, heads, kv_heads, queries, keys, dim, value_dim;
};

/// A mask's part that looks at single scores, of three heads and so many queries and keys: every third key is ruled
/// out, and there are a bias, slopes and a softcap of 2.
struct EmulatedElements {
  std::int64_t keys;
  std::vector<std::uint8_t> keep;
  std::vector<float> bias, slopes{0.25f, 0.5f, 0.125f};

  EmulatedElements(std::int64_t queries, std::int64_t key_count)
      : keys(key_count), keep(std::size_t(keys), 1), bias(std::size_t(queries * keys)) {
    for (std::int64_t j = 0; j < keys; j += 3) keep[std::size_t(j)] = 0;
    for (std::size_t i = 0; i < bias.size(); ++i) bias[i] = float(int(i % 37) - 18) / 16;
  }
  template <class Elements>
  void set(Elements& elements) const {
    elements.softcap         = 2;
    elements.inverse_softcap = 0.5;
    elements.keep            = keep.data();
    elements.keep_strides    = {0, 0, 0, 1};
    elements.bias            = {bias.data(), true};
    elements.bias_strides    = {0, 0, keys, 1};
    elements.slopes          = {slopes.data(), true};
    elements.slope_strides   = {0, 1, 0, 0};
    elements.alibi_offset    = 3;
  }
  double logit(std::int64_t h, std::int64_t i, std::int64_t j, double s) const {
    if (keep[std::size_t(j)] == 0) return -infinity;
    return 2 * std::tanh(s / 2) + double(bias[std::size_t(i * keys + j)]) -
           double(slopes[std::size_t(h)]) * std::abs(double(j - i - 3));
  }
  /// Gives the keys that are ruled out one value.
  template <class T>
  void fill_others(Heads<T>& v, std::int64_t dim, T value) const {
    for (std::int64_t j = 0; j < keys; ++j) {
      for (std::int64_t d = 0; d < dim && keep[std::size_t(j)] == 0; ++d) v.at(0, 0, j, d) = value;
    }
  }
};

/// A mask's part that rules out keys by their numbers: a window around the diagonal, and a length a head, 97 and 0.
struct EmulatedRanges {
  std::vector<std::int32_t> lengths{97, 0};

  template <class Ranges>
  void set(Ranges& ranges) const {
    ranges.has_diagonals       = true;
    ranges.low                 = -20;
    ranges.high                = 17;
    ranges.lengths             = {lengths.data(), false};
    ranges.length_strides.head = 1;
  }
  double logit(std::int64_t h, std::int64_t i, std::int64_t j, double s) const {
    return j >= i - 20 && j <= i + 17 && j < lengths[std::size_t(h)] ? s : -infinity;
  }
};

/// Three packed sequences, the second one without keys, in tensors of a batch of one; `logit` is that of all their
/// queries and keys: causal within a sequence.
struct EmulatedSequences {
  std::vector<std::int32_t> queries;
  std::vector<std::int64_t> keys;

  /// Shares so many tokens of q and of k out.
  EmulatedSequences(std::int32_t query_tokens, std::int64_t key_tokens)
      : queries{0, query_tokens / 3, query_tokens / 2, query_tokens},
        keys{0, key_tokens / 2, key_tokens / 2, key_tokens} {}

  template <class Data>
  void set(Data& data) const {
    data.shape.is_packed      = true;
    data.shape.batch          = 3;
    data.query_offsets        = {{queries.data(), false}, 1, data.shape.queries};
    data.key_offsets          = {{keys.data(), true}, 1, data.shape.keys};
    data.ranges.has_diagonals = true;
    data.ranges.ends_align    = true;
    data.ranges.low           = -1000;
    data.ranges.high          = 0;
  }
  double logit(std::int64_t, std::int64_t i, std::int64_t j, double s) const {
    for (std::size_t n = 0; n < 3; ++n) {
      if (i < queries[n] || i >= queries[n + 1] || j < keys[n] || j >= keys[n + 1]) continue;
      return keys[n + 1] - j >= queries[n + 1] - i ? s : -infinity;
    }
    return -infinity;
  }
};

/// A kernel's unit and the elements that it pads heads to.
template <class Unit_, int dims_>
struct EmulatedConfig {
  using Unit                = Unit_;
  using X                   = typename Unit::Element;
  static constexpr int dims = dims_;
  /// Largest error of results up to 2, by weights that are rounded to the elements' type.
  static constexpr double tolerance = sizeof(X) == 2   ? 0.02
                                      : sizeof(X) == 8 ? 1e-12
                                      : Unit::K == 8   ? 0.01  // TF32
                                                       : 1e-5;
};

template <class T>
using EmulatedMma = KokkosNN::Impl::MmaUnit16<T, EmulatedInstructions>;
template <class T>
using EmulatedFma       = KokkosNN::Impl::FmaUnit<T, 32, EmulatedInstructions>;
using EmulatedMmaDouble = KokkosNN::Impl::MmaUnitDouble<EmulatedInstructions>;
template <int parts>
using EmulatedTensorFloat = KokkosNN::Impl::MmaUnitTensorFloat<parts, EmulatedInstructions>;

/// Runs a kernel in a league of three emulated teams, which take blocks in turn.
template <class Kernel>
void run_emulated(const Kernel& kernel) {
  constexpr int teams = 3;
  for (int league = 0; league < teams; ++league) {
    EmulatedTeam team(Kernel::team_size, Kernel::Unit::lanes, Kernel::scratch, static_cast<std::uint32_t>(league));
    team.run([&](int rank) { kernel(EmulatedMember{league, teams, rank}); });
  }
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_EMULATED_HEADS_HPP
