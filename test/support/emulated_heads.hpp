// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_EMULATED_HEADS_HPP
#define KOKKOSNN_TEST_SUPPORT_EMULATED_HEADS_HPP

#include "support/team_emulation.hpp"

#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/gpu/device/matrix_unit.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
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

/// A bias of 16 bits, or booleans, of so many queries and keys, from a multiple of 16 bytes on.
template <class X>
struct AlignedMask {
  static constexpr std::size_t unit = 16;

  std::int64_t keys;
  bool is_bias;
  std::vector<X> bias;
  std::vector<std::uint8_t> keep;

  AlignedMask(std::int64_t queries, std::int64_t key_count, bool with_bias)
      : keys(key_count), is_bias(with_bias), bias(std::size_t(queries * keys) + unit), keep(bias.size()) {
    for (std::int64_t i = 0; i < queries * keys; ++i) {
      const std::uint32_t hash                  = static_cast<std::uint32_t>(i) * 2654435761u >> 16;
      const_cast<X*>(first(bias))[i]            = X(float(int(hash % 64) - 32) / 16);
      const_cast<std::uint8_t*>(first(keep))[i] = hash % 4 == 0 ? 0 : static_cast<std::uint8_t>(1u << hash % 8);
    }
  }
  template <class Elements>
  void set(Elements& elements) const {
    const KokkosNN::Impl::AttentionStrides strides{0, 0, keys, 1};
    if (is_bias) {
      elements.bias         = {first(bias), false};
      elements.bias_strides = strides;
    } else {
      elements.keep         = first(keep);
      elements.keep_strides = strides;
    }
  }
  double logit(std::int64_t, std::int64_t i, std::int64_t j, double s) const {
    if (is_bias) return s + double(first(bias)[i * keys + j]);
    return first(keep)[i * keys + j] == 0 ? -infinity : s;
  }

 private:
  template <class T>
  static const T* first(const std::vector<T>& memory) {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
    return reinterpret_cast<const T*>((begin + unit - 1) / unit * unit);
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

/// Factor that dropout gives the weight of (batch, head, query, key); 1 without.
template <class Data>
double dropout_factor(const Data& data, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const auto& dropout = data.elements.dropout;
  return double(dropout.factor(dropout.row(b, h, i), j));
}

/// Gives a call of so many heads dropout.
template <class Data>
void drop_weights(Data& data, std::int64_t heads) {
  using A               = typename Data::A;
  data.elements.dropout = KokkosNN::Impl::AttentionWeightDropout<A>::of(0.4, 0xfedcba9876543210, 3, heads);
}

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

/// A call's tensors, and the logit of (head, query, key) from its scaled score: -inf where the key is ruled out.
template <class X>
struct EmulatedTrial {
  using A = KokkosNN::accumulator_t<X>;

  Shape n;
  bool copies;
  Heads<X> q, k, v, o;
  std::vector<A> lse;
  KokkosNN::Impl::AttentionData<X> data;
  std::function<double(std::int64_t, std::int64_t, std::int64_t, double)> logit = [](auto, auto, auto, double s) {
    return s;
  };
  double sink = -infinity;

  EmulatedTrial(const Shape& shape, bool aligned)
      : n(shape),
        copies(aligned),
        q(n.batch, n.heads, n.queries, n.dim, aligned, 1),
        k(n.batch, n.kv_heads, n.keys, n.dim, aligned, 2),
        v(n.batch, n.kv_heads, n.keys, n.value_dim, aligned, 3),
        o(n.batch, n.heads, n.queries, n.value_dim, false, 4),
        lse(static_cast<std::size_t>(n.batch * n.heads * n.queries), A(NAN)) {
    data.shape          = {n.batch, n.heads, n.kv_heads, n.queries, n.keys, n.dim, n.value_dim};
    data.lse            = lse.data();
    data.lse_strides    = {n.heads * n.queries, n.queries, 1, 0};
    data.scale          = A(1 / std::sqrt(double(n.dim)));
    data.of_masked_rows = A(7);
    data.ranges.cols    = n.keys;
  }

  /// The data that a kernel reads and writes.
  const KokkosNN::Impl::AttentionData<X>& prepared() {
    data.q         = q.memory.data();
    data.k         = k.memory.data();
    data.v         = v.memory.data();
    data.o         = o.memory.data();
    data.q_strides = q.strides;
    data.k_strides = k.strides;
    data.v_strides = v.strides;
    data.o_strides = o.strides;
    for (auto* strides : {&data.q_strides, &data.k_strides, &data.v_strides, &data.o_strides, &data.lse_strides}) {
      if (data.shape.is_packed) strides->batch = strides->sequence;
    }
    return data;
  }

  void expect_right(double tolerance) {
    for (std::int64_t b = 0; b < n.batch; ++b)
      for (std::int64_t h = 0; h < n.heads; ++h)
        for (std::int64_t i = 0; i < n.queries; ++i) expect_row(b, h, i, tolerance);
  }

 private:
  void expect_row(std::int64_t b, std::int64_t h, std::int64_t i, double tolerance) {
    const std::int64_t kv_head = h / (n.heads / n.kv_heads);
    std::vector<double> z(static_cast<std::size_t>(n.keys));
    double max = sink;
    for (std::int64_t j = 0; j < n.keys; ++j) {
      double score = 0;
      for (std::int64_t d = 0; d < n.dim; ++d) score += double(q.at(b, h, i, d)) * double(k.at(b, kv_head, j, d));
      z[std::size_t(j)] = logit(h, i, j, score * double(data.scale));
      max               = std::fmax(max, z[std::size_t(j)]);
    }
    const bool is_masked = max == -infinity;
    double sum           = is_masked ? 1 : std::exp(sink - max);
    for (const double each : z) sum += is_masked ? 0 : std::exp(each - max);
    const double want = is_masked ? -infinity : max + std::log(sum);
    const auto got    = double(lse[std::size_t((b * n.heads + h) * n.queries + i)]);
    if (got != want) {
      ASSERT_NEAR(got, want, tolerance) << "lse of head " << h << ", query " << i;
    }
    for (std::int64_t d = 0; d < n.value_dim; ++d) {
      double result = 0;
      for (std::int64_t j = 0; j < n.keys; ++j) {
        const double weight =
            is_masked ? 0 : std::exp(z[std::size_t(j)] - max) / sum * dropout_factor(data, b, h, i, j);
        if (weight != 0) result += weight * double(v.at(b, kv_head, j, d));
      }
      if (is_masked) result = 7;
      if (double(o.at(b, h, i, d)) == result) continue;  // an infinity, too
      ASSERT_NEAR(double(o.at(b, h, i, d)), result, tolerance) << "head " << h << ", query " << i << ", " << d;
    }
    for (std::int64_t d = n.value_dim; d < o.strides.sequence; ++d) ASSERT_TRUE(std::isnan(double(o.at(b, h, i, d))));
  }
};

/// A call's tensors, and the logit of (head, query, key) from its scaled score, and its derivative by that: -inf where
/// the key is ruled out.
template <class X>
struct EmulatedGradientTrial {
  using A = KokkosNN::accumulator_t<X>;

  Shape n;
  bool copies;
  Heads<X> q, k, v, o, dout, dq, dk, dv;
  std::vector<A> lse, delta;
  KokkosNN::Impl::AttentionGradientData<X> data;
  std::function<double(std::int64_t, std::int64_t, std::int64_t, double)> logit = [](auto, auto, auto, double s) {
    return s;
  };
  std::function<double(double)> slope = [](double) { return 1.0; };

  EmulatedGradientTrial(const Shape& shape, bool aligned)
      : n(shape),
        copies(aligned),
        q(n.batch, n.heads, n.queries, n.dim, aligned, 1),
        k(n.batch, n.kv_heads, n.keys, n.dim, aligned, 2),
        v(n.batch, n.kv_heads, n.keys, n.value_dim, aligned, 3),
        o(n.batch, n.heads, n.queries, n.value_dim, aligned, 4),
        dout(n.batch, n.heads, n.queries, n.value_dim, aligned, 5),
        dq(n.batch, n.heads, n.queries, n.dim, false, 6),
        dk(n.batch, n.kv_heads, n.keys, n.dim, false, 7),
        dv(n.batch, n.kv_heads, n.keys, n.value_dim, false, 8),
        lse(static_cast<std::size_t>(n.batch * n.heads * n.queries), A(0)),
        delta(lse.size(), A(NAN)) {
    data.shape       = {n.batch, n.heads, n.kv_heads, n.queries, n.keys, n.dim, n.value_dim};
    data.lse_strides = {n.heads * n.queries, n.queries, 1, 0};
    data.scale       = A(1 / std::sqrt(double(n.dim)));
    data.ranges.cols = n.keys;
  }

  virtual ~EmulatedGradientTrial() = default;

  /// Computes o and lse, then runs the kernels; compares by the largest gradient that there is.
  void expect_right(double tolerance) {
    std::vector<double> wanted_q(dq.memory.size()), wanted_k(dk.memory.size()), wanted_v(dv.memory.size());
    for (std::int64_t b = 0; b < n.batch; ++b)
      for (std::int64_t h = 0; h < n.heads; ++h)
        for (std::int64_t i = 0; i < n.queries; ++i) add_row(b, h, i, wanted_q, wanted_k, wanted_v);
    run();
    expect_near(dq, n.heads, n.queries, n.dim, wanted_q, tolerance, "dq");
    expect_near(dk, n.kv_heads, n.keys, n.dim, wanted_k, tolerance, "dk");
    expect_near(dv, n.kv_heads, n.keys, n.value_dim, wanted_v, tolerance, "dv");
  }

 protected:
  virtual void run_kernels() = 0;

 private:
  static std::size_t place(const Heads<X>& t, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) {
    return std::size_t(b * t.strides.batch + h * t.strides.head + i * t.strides.sequence + d);
  }

  void add_row(std::int64_t b, std::int64_t h, std::int64_t i, std::vector<double>& wanted_q,
               std::vector<double>& wanted_k, std::vector<double>& wanted_v) {
    const std::int64_t kv = h / (n.heads / n.kv_heads);
    std::vector<double> z(std::size_t(n.keys)), scaled(std::size_t(n.keys));
    double max = -infinity, sum = 0;
    for (std::int64_t j = 0; j < n.keys; ++j) {
      double score = 0;
      for (std::int64_t d = 0; d < n.dim; ++d) score += double(q.at(b, h, i, d)) * double(k.at(b, kv, j, d));
      scaled[std::size_t(j)] = score * double(data.scale);
      z[std::size_t(j)]      = logit(h, i, j, scaled[std::size_t(j)]);
      max                    = std::fmax(max, z[std::size_t(j)]);
    }
    for (const double each : z) sum += max == -infinity ? 0 : std::exp(each - max);
    const double total                                  = sum == 0 ? -infinity : max + std::log(sum);
    lse[std::size_t((b * n.heads + h) * n.queries + i)] = A(total);
    double d_sum                                        = 0;
    std::vector<double> p(std::size_t(n.keys));
    for (std::int64_t j = 0; j < n.keys; ++j) p[std::size_t(j)] = sum == 0 ? 0 : std::exp(z[std::size_t(j)] - total);
    for (std::int64_t d = 0; d < n.value_dim; ++d) {
      double result = 0;
      for (std::int64_t j = 0; j < n.keys; ++j) {
        const double weight = p[std::size_t(j)] * dropout_factor(data, b, h, i, j);
        if (weight != 0) result += weight * double(v.at(b, kv, j, d));
      }
      o.at(b, h, i, d) = X(result);
      d_sum += double(o.at(b, h, i, d)) * double(dout.at(b, h, i, d));
    }
    for (std::int64_t j = 0; j < n.keys; ++j) {
      const double probability = p[std::size_t(j)];
      if (probability == 0) continue;
      const double factor = dropout_factor(data, b, h, i, j);
      double dp           = 0;
      for (std::int64_t d = 0; d < n.value_dim; ++d) {
        dp += factor * double(dout.at(b, h, i, d)) * double(v.at(b, kv, j, d));
        wanted_v[place(dv, b, kv, j, d)] += factor * probability * double(dout.at(b, h, i, d));
      }
      const double g = probability * (dp - d_sum) * slope(scaled[std::size_t(j)]) * double(data.scale);
      for (std::int64_t d = 0; d < n.dim; ++d) {
        wanted_q[place(dq, b, h, i, d)] += g * double(k.at(b, kv, j, d));
        wanted_k[place(dk, b, kv, j, d)] += g * double(q.at(b, h, i, d));
      }
    }
  }

  void run() {
    data.q            = q.memory.data();
    data.k            = k.memory.data();
    data.v            = v.memory.data();
    data.o            = o.memory.data();
    data.dout         = dout.memory.data();
    data.dq           = dq.memory.data();
    data.dk           = dk.memory.data();
    data.dv           = dv.memory.data();
    data.lse          = lse.data();
    data.delta        = delta.data();
    data.q_strides    = q.strides;
    data.k_strides    = k.strides;
    data.v_strides    = v.strides;
    data.o_strides    = o.strides;
    data.dout_strides = dout.strides;
    data.dq_strides   = dq.strides;
    data.dk_strides   = dk.strides;
    data.dv_strides   = dv.strides;
    for (auto* strides : {&data.q_strides, &data.k_strides, &data.v_strides, &data.o_strides, &data.lse_strides,
                          &data.dout_strides, &data.dq_strides, &data.dk_strides, &data.dv_strides}) {
      if (data.shape.is_packed) strides->batch = strides->sequence;
    }
    data.delta_strides = data.lse_strides;
    run_kernels();
  }

  void expect_near(Heads<X>& got, std::int64_t heads, std::int64_t length, std::int64_t dim,
                   const std::vector<double>& wanted, double tolerance, const char* name) {
    double largest = 1;
    for (const double each : wanted) {
      if (std::isfinite(each)) largest = std::fmax(largest, std::abs(each));
    }
    for (std::int64_t b = 0; b < n.batch; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t i = 0; i < length; ++i) {
          for (std::int64_t d = 0; d < dim; ++d) {
            ASSERT_NEAR(double(got.at(b, h, i, d)), wanted[place(got, b, h, i, d)], tolerance * largest)
                << name << " of head " << h << ", row " << i << ", " << d;
          }
          for (std::int64_t d = dim; d < got.strides.sequence; ++d) ASSERT_TRUE(std::isnan(double(got.at(b, h, i, d))));
        }
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
using EmulatedFma = KokkosNN::Impl::FmaUnit<T, 32, EmulatedInstructions>;
template <class T>
using EmulatedMfma      = KokkosNN::Impl::MfmaUnit<T, EmulatedAmdInstructions>;
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
