// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_ATTENTION_HPP
#define KOKKOSNN_TEST_SUPPORT_ATTENTION_HPP

#include "types.hpp"

#include <KokkosNN/attention.hpp>
#include <KokkosNN/impl/math/philox.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>
#include <vector>

// A call of attention and its results in long double.

namespace KokkosNNTest {

template <class T>
using Tensor4 = Kokkos::View<T****, Kokkos::LayoutStride, Memory>;

/// Changes a scaled score of (batch, head, query, key); -inf where the key is ruled out.
using Logit                 = std::function<long double(int, int, int, int, long double)>;
inline const Logit unmasked = [](int, int, int, int, long double s) { return s; };

/// Factor of the weight of (batch, head, query, key), behind the sum of weights.
using WeightFactor = std::function<long double(int, int, int, int)>;

/// Factors of dropout by the rule of dropout.hpp, for calls with so many heads.
inline WeightFactor dropout_factors(const KokkosNN::AttentionDropout& of, int heads) {
  return [=](int b, int h, int i, int j) -> long double {
    const KokkosNN::Impl::Philox random{
        {static_cast<std::uint32_t>(of.seed), static_cast<std::uint32_t>(of.seed >> 32)}};
    const auto words   = random({{static_cast<std::uint32_t>(j / 32 * 8 + j % 8), static_cast<std::uint32_t>(i),
                                  static_cast<std::uint32_t>(b * heads + h), of.offset}});
    const double bound = std::ceil((1 - of.probability) * 4294967296.0);
    return words.word[j % 32 / 8] < bound ? 1 / (1 - static_cast<long double>(of.probability)) : 0;
  };
}

inline constexpr long double infinite_logit = std::numeric_limits<long double>::infinity();

/// Extents of a call.
struct HeadExtents {
  int batch = 2, heads = 4, kv_heads = 2, queries = 5, keys = 7, dim = 8, value_dim = 8;
};

inline double value_at(std::int64_t i) { return std::sin(0.7 * static_cast<double>(i) + 0.3) * 1.5; }

/// A strided tensor in memory of its own, one element of canary between its elements along dim where `spaced`.
template <class T>
struct HeadsOperand {
  Tensor4<T> view;
  Kokkos::View<T*, Memory> memory;
  typename Kokkos::View<T*, Memory>::host_mirror_type host;
  std::int64_t stride[4];

  HeadsOperand(int a, int b, int c, int d, bool sequence_second, bool spaced) {
    const std::int64_t step = spaced ? 2 : 1;
    const std::int64_t row  = d * step + (spaced ? 3 : 0);
    stride[3]               = step;
    stride[2]               = sequence_second ? b * row : row;
    stride[1]               = sequence_second ? row : c * row;
    stride[0]               = std::int64_t(b) * c * row;
    memory                  = Kokkos::View<T*, Memory>("memory", static_cast<std::size_t>(a * stride[0] + 1));
    host                    = Kokkos::create_mirror(memory);
    for (std::size_t i = 0; i < host.size(); ++i) host(i) = static_cast<T>(value_at(static_cast<std::int64_t>(i)));
    const auto at = [](std::int64_t n) { return static_cast<std::size_t>(n); };
    view          = Tensor4<T>(memory.data(), Kokkos::LayoutStride(at(a), at(stride[0]), at(b), at(stride[1]), at(c),
                                                                   at(stride[2]), at(d), at(stride[3])));
    upload();
  }
  T& operator()(int a, int b, int c, int d) const {
    return host(static_cast<std::size_t>(a * stride[0] + b * stride[1] + c * stride[2] + d * stride[3]));
  }
  long double exact(int a, int b, int c, int d) const {
    return static_cast<long double>(static_cast<double>((*this)(a, b, c, d)));
  }
  void upload() { Kokkos::deep_copy(memory, host); }
  void download() { Kokkos::deep_copy(host, memory); }

  /// The tensor with the axes (batch, sequence, head, dim).
  Tensor4<T> sequence_second() const {
    return Tensor4<T>(view.data(),
                      Kokkos::LayoutStride(view.extent(0), view.stride(0), view.extent(2), view.stride(2),
                                           view.extent(1), view.stride(1), view.extent(3), view.stride(3)));
  }
  /// The first of axis 0 with the axes (sequence, head, dim).
  auto rows() const {
    return Kokkos::View<T***, Kokkos::LayoutStride, Memory>(
        view.data(), Kokkos::LayoutStride(view.extent(2), view.stride(2), view.extent(1), view.stride(1),
                                          view.extent(3), view.stride(3)));
  }
  /// True if what is not the tensor's, of what was downloaded, is as it was made.
  bool gaps_are_intact() const {
    std::vector<bool> is_own(host.size(), false);
    for (std::size_t a = 0; a < view.extent(0); ++a)
      for (std::size_t b = 0; b < view.extent(1); ++b)
        for (std::size_t c = 0; c < view.extent(2); ++c)
          for (std::size_t d = 0; d < view.extent(3); ++d) {
            is_own[a * view.stride(0) + b * view.stride(1) + c * view.stride(2) + d * view.stride(3)] = true;
          }
    for (std::size_t i = 0; i < host.size(); ++i) {
      const auto made = static_cast<T>(value_at(static_cast<std::int64_t>(i)));
      if (!is_own[i] && static_cast<double>(host(i)) != static_cast<double>(made)) return false;
    }
    return true;
  }
};

/// Tensors of a call, whose values are sines, and its results' errors.
template <class T>
struct AttentionTrial {
  using A = KokkosNN::accumulator_t<T>;

  HeadExtents n;
  HeadsOperand<T> q, k, v, o;
  Kokkos::View<A***, Memory> lse;
  WeightFactor factor_of = [](int, int, int, int) { return 1; };

  explicit AttentionTrial(const HeadExtents& extents, bool sequence_second = false, bool spaced = false)
      : n(extents),
        q(n.batch, n.heads, n.queries, n.dim, sequence_second, spaced),
        k(n.batch, n.kv_heads, n.keys, n.dim, sequence_second, spaced),
        v(n.batch, n.kv_heads, n.keys, n.value_dim, sequence_second, spaced),
        o(n.batch, n.heads, n.queries, n.value_dim, sequence_second, spaced),
        lse("lse", static_cast<std::size_t>(n.batch), static_cast<std::size_t>(n.heads),
            static_cast<std::size_t>(n.queries)) {}

  template <class M>
  void run(const M& mask, const KokkosNN::AttentionOptions& options = {}) {
    KokkosNN::attention(Exec(), q.view, k.view, v.view, o.view, mask, options, lse);
    Exec().fence();
    o.download();
  }

  /// Largest error of o and lse, in units of the promise; NaN for a NaN where there should be none. `sink`: -inf
  /// without one.
  double error(const Logit& logit, double scale = 0, long double sink = -infinite_logit,
               long double if_masked = NAN) const {
    const auto lse_host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), lse);
    const double factor = scale == 0 ? 1 / std::sqrt(n.dim) : scale;
    double worst        = 0;
    for (int b = 0; b < n.batch; ++b)
      for (int h = 0; h < n.heads; ++h)
        for (int i = 0; i < n.queries; ++i) {
          worst = std::max(worst, row_error(b, h, i, logit, factor, sink, if_masked, lse_host(b, h, i)));
          if (std::isnan(worst)) return worst;
        }
    return worst;
  }

 private:
  double row_error(int b, int h, int i, const Logit& logit, double scale, long double sink, long double if_masked,
                   A lse_value) const {
    const int kv_head = h / (n.heads / n.kv_heads);
    std::vector<long double> z(static_cast<std::size_t>(n.keys)), factor(z.size());
    long double max = sink, terms = 1;
    for (int j = 0; j < n.keys; ++j) factor[j] = factor_of(b, h, i, j);
    for (int j = 0; j < n.keys; ++j) {
      if (logit(b, h, i, j, 0) == -infinite_logit) {
        z[j] = -infinite_logit;
        continue;
      }
      long double score = 0, size = 0;
      for (int d = 0; d < n.dim; ++d) {
        const long double term = q.exact(b, h, i, d) * k.exact(b, kv_head, j, d);
        score += term;
        size += std::abs(term);
      }
      z[j]  = logit(b, h, i, j, scale * score);
      max   = std::max(max, z[j]);
      terms = std::max({terms, std::abs(scale) * size, std::abs(z[j])});
    }
    long double sum = max == -infinite_logit ? 0 : std::exp(sink - max);
    for (const long double each : z) sum += max == -infinite_logit ? 0 : std::exp(each - max);
    std::vector<long double> weight(z.size());
    for (int j = 0; j < n.keys; ++j) weight[j] = std::exp(z[j] - max) / sum * factor[j];
    const long double unit  = std::is_same_v<A, double> ? 0x1p-52L : 0x1p-23L;
    const long double bound = (16 + n.dim + 4 * terms) * unit;
    const long double want  = sum == 0 ? -infinite_logit : max + std::log(sum);
    const auto lse_got      = static_cast<long double>(lse_value);
    double worst            = lse_got == want ? 0 : static_cast<double>(std::abs(lse_got - want) / bound);
    for (int d = 0; d < n.value_dim; ++d) {
      long double result = 0, size = 0;
      for (int j = 0; j < n.keys; ++j) {
        if (z[j] == -infinite_logit) continue;
        result += weight[j] * v.exact(b, kv_head, j, d);
        size = std::max(size, std::max(factor[j], 1.0L) * std::abs(v.exact(b, kv_head, j, d)));
      }
      if (sum == 0) result = if_masked;
      const long double got = o.exact(b, h, i, d);
      if (std::isnan(result)) {
        if (!std::isnan(got)) return INFINITY;
        continue;
      }
      long double rounding = is_16_bit<T> ? std::ldexp(std::abs(result), -Format<T>::digits) + 0x1p-24L : 0;
      if (is_16_bit<T> && on_gpu) rounding += std::ldexp(size, -Format<T>::digits);  // of the weights
      const auto error = static_cast<double>(std::abs(got - result) / (bound * size + rounding));
      if (got == result) continue;
      if (std::isnan(error)) return error;
      worst = std::max(worst, error);
    }
    return worst;
  }
};

/// Gradients of a trial's call, whose o and lse they start from, and their errors.
template <class T>
struct AttentionGradientTrial {
  using Sums = std::vector<long double>;

  const AttentionTrial<T>& call;
  HeadsOperand<T> dout, dq, dk, dv;

  explicit AttentionGradientTrial(const AttentionTrial<T>& of, bool sequence_second = false, bool spaced = false)
      : call(of),
        dout(of.n.batch, of.n.heads, of.n.queries, of.n.value_dim, sequence_second, spaced),
        dq(of.n.batch, of.n.heads, of.n.queries, of.n.dim, sequence_second, spaced),
        dk(of.n.batch, of.n.kv_heads, of.n.keys, of.n.dim, sequence_second, spaced),
        dv(of.n.batch, of.n.kv_heads, of.n.keys, of.n.value_dim, sequence_second, spaced) {}

  void download() {
    Exec().fence();
    for (HeadsOperand<T>* each : {&dq, &dk, &dv}) each->download();
  }
  bool gaps_are_intact() const { return dq.gaps_are_intact() && dk.gaps_are_intact() && dv.gaps_are_intact(); }

  /// Largest error, in units of rounding errors of all terms of an element; `logit` has the softcap inside.
  double error(const Logit& logit, double scale, double softcap, long double sink = -infinite_logit) const {
    const HeadExtents& n = call.n;
    Terms q(n.batch * n.heads * n.queries * n.dim), k(n.batch * n.kv_heads * n.keys * n.dim);
    Terms v(n.batch * n.kv_heads * n.keys * n.value_dim);
    const double factor = scale == 0 ? 1 / std::sqrt(n.dim) : scale;
    for (int b = 0; b < n.batch; ++b)
      for (int h = 0; h < n.heads; ++h)
        for (int i = 0; i < n.queries; ++i) add_row({b, h, i}, logit, factor, softcap, sink, q, k, v);
    return std::max({worst_of(dq, q), worst_of(dk, k), worst_of(dv, v)});
  }

 private:
  struct Row {
    int b, h, i;
  };
  /// Sums of terms, and of their sizes times the relative errors that they may have.
  struct Terms {
    Sums sum, size;

    explicit Terms(int count) : sum(static_cast<std::size_t>(count), 0), size(sum) {}
    void add(std::int64_t at, long double term, long double bound) {
      sum[static_cast<std::size_t>(at)] += term;
      size[static_cast<std::size_t>(at)] += bound;
    }
  };

  void add_row(const Row& row, const Logit& logit, double scale, double softcap, long double sink, Terms& q, Terms& k,
               Terms& v) const {
    const HeadExtents& n = call.n;
    const auto [b, h, i] = row;
    const int g          = h / (n.heads / n.kv_heads);
    Sums score(static_cast<std::size_t>(n.keys)), z(score.size());
    long double max = sink, terms = 1, delta = 0, delta_size = 0;
    for (int j = 0; j < n.keys; ++j) {
      long double size = 0;
      for (int d = 0; d < n.dim; ++d) {
        const long double term = scale * call.q.exact(b, h, i, d) * call.k.exact(b, g, j, d);
        score[j] += term;
        size += std::abs(term);
      }
      z[j] = logit(b, h, i, j, score[j]);
      if (z[j] == -infinite_logit) continue;
      max   = std::max(max, z[j]);
      terms = std::max({terms, size, std::abs(z[j])});
    }
    if (max == -infinite_logit) return;
    long double sum = std::exp(sink - max);
    for (const long double each : z) sum += std::exp(each - max);
    for (int d = 0; d < n.value_dim; ++d) {
      const long double term = call.o.exact(b, h, i, d) * dout.exact(b, h, i, d);
      delta += term;
      delta_size += std::abs(term);
    }
    using A                    = KokkosNN::accumulator_t<T>;
    const long double unit     = std::is_same_v<A, double> ? 0x1p-52L : 0x1p-23L;
    const long double relative = 2 * (32 + n.dim + n.value_dim + 4 * terms) * unit;
    for (int j = 0; j < n.keys; ++j) {
      if (z[j] == -infinite_logit) continue;
      const long double p = std::exp(z[j] - max) / sum;
      // Weights below the normal range may be 0.
      const long double of_p = relative * p + std::numeric_limits<A>::min();
      const long double t    = softcap == 0 ? 0 : std::tanh(score[j] / softcap);
      const long double f    = call.factor_of(b, h, i, j);
      long double dp = 0, dp_size = delta_size;
      const std::int64_t of_key = (std::int64_t(b) * n.kv_heads + g) * n.keys + j;
      for (int d = 0; d < n.value_dim; ++d) {
        const long double gradient = dout.exact(b, h, i, d), term = gradient * call.v.exact(b, g, j, d);
        dp += f * term;
        dp_size += f * std::abs(term);
        v.add(of_key * n.value_dim + d, f * p * gradient, f * of_p * std::abs(gradient));
      }
      const long double by_score = scale * p * (dp - delta) * (1 - t * t);
      const long double bound    = of_p * std::abs(scale) * dp_size;
      const std::int64_t of_row  = (std::int64_t(b) * n.heads + h) * n.queries + i;
      for (int d = 0; d < n.dim; ++d) {
        const long double of_k = call.k.exact(b, g, j, d), of_q = call.q.exact(b, h, i, d);
        q.add(of_row * n.dim + d, by_score * of_k, bound * std::abs(of_k));
        k.add(of_key * n.dim + d, by_score * of_q, bound * std::abs(of_q));
      }
    }
  }

  static double worst_of(const HeadsOperand<T>& got, const Terms& want) {
    double worst  = 0;
    std::size_t i = 0;
    for (std::size_t a = 0; a < got.view.extent(0); ++a)
      for (std::size_t b = 0; b < got.view.extent(1); ++b)
        for (std::size_t c = 0; c < got.view.extent(2); ++c)
          for (std::size_t d = 0; d < got.view.extent(3); ++d, ++i) {
            const long double value = got.exact(int(a), int(b), int(c), int(d)), sum = want.sum[i];
            if (value == sum) continue;
            const long double rounding = std::ldexp(std::abs(sum), -Format<T>::digits) + 0x1p-24L * is_16_bit<T>;
            const auto error           = static_cast<double>(std::abs(value - sum) / (want.size[i] + rounding));
            if (std::isnan(error)) return error;
            worst = std::max(worst, error);
          }
    return worst;
  }
};

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_ATTENTION_HPP
