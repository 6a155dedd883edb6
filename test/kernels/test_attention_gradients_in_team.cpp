// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/emulated_heads.hpp"

#include <KokkosNN/impl/gpu/attention_gradient_tiles.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

// A GPU's kernels of attention's gradients on a matrix unit in an emulated team, by the units and the tiles of CUDA.

namespace KokkosNNTest {
namespace {

namespace Impl = KokkosNN::Impl;
using KokkosNN::bhalf_t;
using KokkosNN::half_t;

/// A call's tensors, and the logit of (head, query, key) from its scaled score, and its derivative by that: -inf where
/// the key is ruled out.
template <class Unit, int dims, bool has_elements>
struct Trial {
  using X       = typename Unit::Element;
  using A       = typename Unit::Accumulated;
  using Queries = Impl::AttentionQueryGradientsInTiles<Unit, dims, has_elements>;
  template <bool of_keys, bool of_values>
  using Keys = Impl::AttentionKeyGradientsInTiles<Unit, dims, has_elements, of_keys, of_values>;

  Shape n;
  bool copies;
  Heads<X> q, k, v, o, dout, dq, dk, dv;
  std::vector<A> lse, delta;
  Impl::AttentionGradientData<X> data;
  std::function<double(std::int64_t, std::int64_t, std::int64_t, double)> logit = [](auto, auto, auto, double s) {
    return s;
  };
  std::function<double(double)> slope = [](double) { return 1.0; };

  Trial(const Shape& shape, bool aligned)
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
        if (p[std::size_t(j)] != 0) result += p[std::size_t(j)] * double(v.at(b, kv, j, d));
      }
      o.at(b, h, i, d) = X(result);
      d_sum += double(o.at(b, h, i, d)) * double(dout.at(b, h, i, d));
    }
    for (std::int64_t j = 0; j < n.keys; ++j) {
      const double probability = p[std::size_t(j)];
      if (probability == 0) continue;
      double dp = 0;
      for (std::int64_t d = 0; d < n.value_dim; ++d) {
        dp += double(dout.at(b, h, i, d)) * double(v.at(b, kv, j, d));
        wanted_v[place(dv, b, kv, j, d)] += probability * double(dout.at(b, h, i, d));
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
    run_kernel<Queries>();
    if constexpr (Impl::AttentionGradientTilesOf<Unit, dims>::joins_keys_and_values) {
      run_kernel<Keys<true, true>>();
    } else {
      run_kernel<Keys<false, true>>();
      run_kernel<Keys<true, false>>();
    }
  }
  template <class Kernel>
  void run_kernel() {
    Kernel kernel;
    kernel.data        = data;
    kernel.copies_q    = copies;
    kernel.copies_k    = copies;
    kernel.copies_v    = copies;
    kernel.copies_dout = copies;
    run_emulated(kernel);
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

template <class C>
class AttentionGradientsInTeams : public testing::Test {};
using Configs = testing::Types<EmulatedConfig<EmulatedMma<bhalf_t>, 64>, EmulatedConfig<EmulatedMma<half_t>, 128>,
                               EmulatedConfig<EmulatedMma<bhalf_t>, 256>, EmulatedConfig<EmulatedMmaDouble, 64>,
                               EmulatedConfig<EmulatedMmaDouble, 128>, EmulatedConfig<EmulatedFma<float>, 64>,
                               EmulatedConfig<EmulatedFma<float>, 128>, EmulatedConfig<EmulatedFma<float>, 256>,
                               EmulatedConfig<EmulatedFma<double>, 128>>;
TYPED_TEST_SUITE(AttentionGradientsInTeams, Configs);

TYPED_TEST(AttentionGradientsInTeams, AreRightWithAndWithoutAsynchronousCopies) {
  for (const bool aligned : {true, false}) {
    Trial<typename TypeParam::Unit, TypeParam::dims, false> trial(
        {1, 2, 1, 75, 70, TypeParam::dims - 7, TypeParam::dims - 40}, aligned);
    trial.expect_right(TypeParam::tolerance);
  }
}

TYPED_TEST(AttentionGradientsInTeams, AreOfKeysThatAQuerySeesWhateverTheOthersHold) {
  Trial<typename TypeParam::Unit, TypeParam::dims, false> trial({2, 2, 2, 90, 140, TypeParam::dims, 24}, true);
  trial.data.scale = -trial.data.scale;
  const EmulatedRanges ranges;
  ranges.set(trial.data.ranges);
  trial.logit = [&](auto... score) { return ranges.logit(score...); };
  using X     = typename TypeParam::X;
  for (std::int64_t j = 97; j < 140; ++j) {
    for (std::int64_t d = 0; d < TypeParam::dims; ++d) trial.k.at(0, 0, j, d) = X(NAN);
    for (std::int64_t d = 0; d < 24; ++d) trial.v.at(0, 0, j, d) = X(INFINITY);
  }
  for (std::int64_t d = 0; d < 24; ++d) trial.dout.at(0, 1, 5, d) = X(NAN);  // a query that sees no key
  trial.expect_right(TypeParam::tolerance);
}

TYPED_TEST(AttentionGradientsInTeams, KeepToTheTokensOfAPackedSequence) {
  Trial<typename TypeParam::Unit, TypeParam::dims, false> trial({1, 4, 2, 90, 160, TypeParam::dims - 3, 24}, false);
  const EmulatedSequences sequences(90, 160);
  sequences.set(trial.data);
  trial.logit = [&](auto... score) { return sequences.logit(score...); };
  trial.expect_right(TypeParam::tolerance);
}

TYPED_TEST(AttentionGradientsInTeams, TakeBooleansBiasSlopesAndSoftcap) {
  Trial<typename TypeParam::Unit, TypeParam::dims, true> trial({1, 3, 1, 50, 100, 40, TypeParam::dims}, false);
  const EmulatedElements elements(50, 100);
  elements.set(trial.data.elements);
  trial.logit = [&](auto... score) { return elements.logit(score...); };
  trial.slope = [](double s) { return 1 - std::tanh(s / 2) * std::tanh(s / 2); };
  elements.fill_others(trial.v, TypeParam::dims, typename TypeParam::X(NAN));
  trial.expect_right(TypeParam::tolerance);
}

}  // namespace
}  // namespace KokkosNNTest
