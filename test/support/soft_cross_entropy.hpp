// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_SOFT_CROSS_ENTROPY_HPP
#define KOKKOSNN_TEST_SUPPORT_SOFT_CROSS_ENTROPY_HPP

#include "cross_entropy.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::SoftCrossEntropyOptions;

/// One cross entropy against probabilities on tensors of its own, against plain loops in long double.
template <RowOperator Op, class T, int Rank = 2>
class SoftLossTrial {
 public:
  using A                            = KokkosNN::accumulator_t<T>;
  static constexpr bool has_gradient = Op == RowOperator::soft_cross_entropy_with_gradient;

  SoftLossTrial(Placement logits, Placement dlogits, int axis, const SoftCrossEntropyOptions& call_options = {},
                bool is_weighted = false, Recipe recipe = Recipe::uniform, int misalignment = 0)
      : options(call_options),
        m_place(std::move(logits)),
        m_dlogits_place(std::move(dlogits)),
        m_axis(axis < 0 ? axis + Rank : axis),
        m_values(right(m_place.without(m_axis).extents)),
        m_rows(m_values.count()),
        m_cols(m_place.extents[m_axis]),
        m_weighted(is_weighted),
        m_logits(m_place.span(), misalignment),
        m_targets(m_place.span(), misalignment),
        m_dlogits(m_dlogits_place.span(), misalignment),
        m_loss(options.reduction == Reduction::none ? m_rows : 1),
        m_lse(m_rows),
        m_weights(m_cols) {
    options.axis = axis;
    fill(m_logits.host(), m_place, m_axis, recipe);
    // Probabilities of powers of two, some of them 0.
    for_each_row([&](std::int64_t row, std::int64_t offset, std::int64_t) {
      for (std::int64_t c = 0; c < m_cols; ++c) {
        m_targets.host()[offset + c * along()] = T((row + 3 * c) % 5 == 0 ? 0.f : 1.f / float(1 + (7 * c + row) % 16));
      }
    });
    for (std::int64_t c = 0; c < m_cols; ++c) m_weights.host()[c] = A(0.25) + A(c % 5) / 2;
    upload();
  }
  SoftLossTrial(std::int64_t rows, std::int64_t cols, const SoftCrossEntropyOptions& call_options = {},
                bool is_weighted = false, Recipe recipe = Recipe::uniform)
    requires(Rank == 2)
      : SoftLossTrial(right({rows, cols}), right({rows, cols}), -1, call_options, is_weighted, recipe) {}

  SoftCrossEntropyOptions options;

  Buffer<T>& logits() { return m_logits; }
  Buffer<T>& targets() { return m_targets; }
  Buffer<T>& dlogits() { return m_dlogits; }
  Buffer<A>& loss() { return m_loss; }
  Buffer<A>& lse() { return m_lse; }

  void upload() {
    m_logits.upload();
    m_targets.upload();
    m_weights.upload();
  }

  void call() const {
    const auto with_loss = [&](const auto& loss) {
      const auto weights = strided_view<1>(static_cast<const A*>(m_weights.device()), right({m_cols}));
      m_weighted ? call_with(loss, weights) : call_with(loss, KokkosNN::no_view);
    };
    if (options.reduction == Reduction::none) {
      with_loss(strided_view<Rank - 1>(m_loss.device(), m_values));
    } else {
      with_loss(strided_view<0>(m_loss.device(), Placement{}));
    }
  }

  void run() {
    m_loss.poison_all();
    m_lse.poison_all();
    m_dlogits.poison_all();
    call();
    Exec().fence();
    m_loss.download();
    m_lse.download();
    m_dlogits.download();
  }

  ::testing::AssertionResult run_correct() {
    run();
    if (!gaps_intact(m_loss, right({m_loss.count()})) || !gaps_intact(m_lse, m_values)) {
      return ::testing::AssertionFailure() << "something outside loss or lse was written";
    }
    if (has_gradient && !gaps_intact(m_dlogits, m_dlogits_place)) {
      return ::testing::AssertionFailure() << "something outside dlogits was written";
    }
    Errors losses, gradients;
    check(losses, gradients);
    const double promise = std::is_same_v<T, double> ? 64 : 8;
    if (!(losses.max_ulp <= promise)) return ::testing::AssertionFailure() << "loss or lse: " << losses.worst;
    if (!(gradients.max_ulp <= (is_16_bit<T> ? 1.0 : promise))) {
      return ::testing::AssertionFailure() << "gradient: " << gradients.worst;
    }
    return ::testing::AssertionSuccess();
  }

 private:
  using Real = Reference::Real;

  std::int64_t along() const { return m_place.strides[m_axis]; }

  template <class F>
  void for_each_row(const F& f) const {
    for_each_index(m_place.without(m_axis), m_dlogits_place.without(m_axis),
                   [&](std::int64_t offset, std::int64_t to, std::int64_t row) { f(row, offset, to); });
  }

  template <class LossView, class WeightsView>
  void call_with(const LossView& loss, const WeightsView& weights) const {
    const auto logits  = strided_view<Rank>(static_cast<const T*>(m_logits.device()), m_place);
    const auto targets = strided_view<Rank>(static_cast<const T*>(m_targets.device()), m_place);
    const auto lse     = strided_view<Rank - 1>(m_lse.device(), m_values);
    if constexpr (has_gradient) {
      KokkosNN::soft_cross_entropy_with_gradient(Exec(), logits, targets, loss,
                                                 strided_view<Rank>(m_dlogits.device(), m_dlogits_place), options, lse,
                                                 weights);
    } else {
      KokkosNN::soft_cross_entropy(Exec(), logits, targets, loss, options, lse, weights);
    }
  }

  void check(Errors& losses, Errors& gradients) const {
    const bool is_mean = options.reduction == Reduction::mean;
    const Real e = options.label_smoothing, by = is_mean ? Real(1) / m_rows : Real(1);
    Real sum = 0, size_of_sum = 1;
    for_each_row([&](std::int64_t row, std::int64_t offset, std::int64_t to) {
      std::vector<Real> x(m_cols), t(m_cols);
      Real all = 0, size = 0, loss = 0;
      for (std::int64_t c = 0; c < m_cols; ++c) {
        x[c] = exact(m_logits.host()[offset + c * along()]);
        t[c] = (m_weighted ? Real(m_weights.host()[c]) : Real(1)) *
               ((1 - e) * exact(m_targets.host()[offset + c * along()]) + e / m_cols);
        all += t[c];
        size += t[c] == 0 ? 0 : std::fabs(t[c] * x[c]);
      }
      const Reference::Measured lse = Reference::lse_of(x);
      for (std::int64_t c = 0; c < m_cols; ++c) loss += t[c] == 0 ? 0 : t[c] * (lse.value - x[c]);
      if (std::isinf(lse.value)) loss = Reference::nan;
      const Real magnitude = std::max({Real(1), size, std::fabs(lse.value * all)});
      losses.add(ulp_error<A>(m_lse.host()[row], lse.value, lse.magnitude), row, -1, m_lse.host()[row], lse.value);
      if (options.reduction == Reduction::none) {
        losses.add(ulp_error<A>(m_loss.host()[row], loss, magnitude), row, 0, m_loss.host()[row], loss);
      }
      sum += by * loss;
      size_of_sum += by * magnitude;
      if constexpr (has_gradient) check_gradient(row, to, x, t, lse.value, all, by * options.gradient_scale, gradients);
    });
    if (options.reduction == Reduction::none) return;
    if (is_mean && m_rows == 0) sum = Reference::nan;
    losses.add(ulp_error<A>(m_loss.host()[0], sum, size_of_sum), -1, 0, m_loss.host()[0], sum);
  }

  void check_gradient(std::int64_t row, std::int64_t to, const std::vector<Real>& x, const std::vector<Real>& t,
                      Real lse, Real all, Real by, Errors& errors) const {
    for (std::int64_t c = 0; c < m_cols; ++c) {
      const Real p    = std::isinf(lse) ? Reference::nan : Reference::exp_real(x[c] - lse);
      const Real want = by * (p * all - t[c]), size = std::fabs(by) * std::max(p * all, t[c]);
      const long double value = exact(m_dlogits.host()[to + c * m_dlogits_place.strides[m_axis]]);
      // Exponentials below the normal range may be 0.
      const auto tiny = 64 * std::max(smallest_normal<T>(), smallest_normal<A>() * std::fabs(by * all));
      if (std::fabs(want) < tiny && std::fabs(value - want) < tiny) continue;
      errors.add(ulp_error<T>(value, want, size), row, c, value, want);
    }
  }

  Placement m_place;
  Placement m_dlogits_place;
  int m_axis;
  Placement m_values;
  std::int64_t m_rows;
  std::int64_t m_cols;
  bool m_weighted;
  Buffer<T> m_logits;
  Buffer<T> m_targets;
  Buffer<T> m_dlogits;
  Buffer<A> m_loss;
  Buffer<A> m_lse;
  Buffer<A> m_weights;
};

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_SOFT_CROSS_ENTROPY_HPP
