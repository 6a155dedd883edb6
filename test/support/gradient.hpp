// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_GRADIENT_HPP
#define KOKKOSNN_TEST_SUPPORT_GRADIENT_HPP

#include "check.hpp"
#include "recorder.hpp"
#include "strategies.hpp"

#include "../reference/gradients.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace KokkosNNTest {

/// The strategies that a gradient can be forced on; logsumexp_backward keeps nothing of a row.
inline const std::vector<RowStrategy>& strategies_of(RowOperator op) {
  static const std::vector<RowStrategy> elementwise = strategies_here(
      {RowStrategy::vector_lanes, RowStrategy::team_online, RowStrategy::split_row, RowStrategy::inner_lanes});
  return op == RowOperator::logsumexp_backward ? elementwise : all_strategies;
}

/// In ulp: of the magnitude that the documentation names; logsumexp_backward of the result.
template <RowOperator Op, class Y>
inline constexpr double gradient_promise = is_16_bit<Y> ? 1.0 : (Op == RowOperator::logsumexp_backward ? 8.0 : 4.0);

/// Where the output goes.
enum class Output { own, over_x, over_dy };

/// One gradient on tensors of its own. x is what the forward call left (y; of logsumexp its input), rounded to X; dy is
/// noise (of logsumexp one value a row, beside lse); dx is poisoned and guarded.
template <RowOperator Op, class X, int Rank = 2, class D = X, class Y = X>
class GradientTrial {
 public:
  static constexpr bool is_lse = Op == RowOperator::logsumexp_backward;
  static constexpr int d_rank  = is_lse ? Rank - 1 : Rank;

  GradientTrial(Placement x_place, Placement dy_place, Placement dx_place, int axis, double scale = 1,
                Recipe recipe = Recipe::uniform, int misalignment = 0)
      : m_x_place(std::move(x_place)),
        m_dy_place(std::move(dy_place)),
        m_dx_place(std::move(dx_place)),
        m_axis(axis < 0 ? axis + Rank : axis),
        m_scale(scale),
        m_x(m_x_place.span(), misalignment),
        m_dy(m_dy_place.span(), misalignment),
        m_lse(is_lse ? m_dy_place.span() : 0, misalignment),
        m_dx(m_dx_place.span(), misalignment) {
    fill_inputs(recipe);
    upload();
  }

  /// All three tensors alike.
  GradientTrial(const Placement& place, int axis, double scale = 1, Recipe recipe = Recipe::uniform,
                int misalignment = 0)
      : GradientTrial(place, is_lse ? right(place.without(axis < 0 ? axis + Rank : axis).extents) : place, place, axis,
                      scale, recipe, misalignment) {}

  /// Rows x cols, dense, last axis.
  GradientTrial(std::int64_t rows, std::int64_t cols, double scale = 1, Recipe recipe = Recipe::uniform)
    requires(Rank == 2)
      : GradientTrial(right({rows, cols}), -1, scale, recipe) {}

  Buffer<X>& x() { return m_x; }
  Buffer<D>& dy() { return m_dy; }
  Buffer<D>& lse() { return m_lse; }
  Buffer<Y>& dx() { return m_dx; }

  void upload() {
    m_x.upload();
    m_dy.upload();
    m_lse.upload();
  }

  auto x_view() const { return strided_view<Rank>(static_cast<const X*>(m_x.device()), m_x_place); }
  auto dy_view() const { return strided_view<d_rank>(static_cast<const D*>(m_dy.device()), m_dy_place); }
  auto lse_view() const { return strided_view<d_rank>(static_cast<const D*>(m_lse.device()), m_dy_place); }
  auto dx_view(Output output = Output::own) const {
    if (output == Output::over_x) return strided_view<Rank>(reinterpret_cast<Y*>(m_x.device()), m_x_place);
    if (output == Output::over_dy && !is_lse) {
      return strided_view<Rank>(reinterpret_cast<Y*>(m_dy.device()), m_dy_place);
    }
    return strided_view<Rank>(m_dx.device(), m_dx_place);
  }

  SoftmaxOptions complete(SoftmaxOptions options) const {
    options.axis  = m_axis;
    options.scale = m_scale;
    return options;
  }

  RowPlan plan(const SoftmaxOptions& options = {}) const {
    if constexpr (is_lse) {
      return KokkosNN::make_plan(Op, Exec(), x_view(), lse_view(), dy_view(), dx_view(), complete(options));
    } else {
      return KokkosNN::make_plan(Op, Exec(), x_view(), dy_view(), dx_view(), complete(options));
    }
  }

  /// The call alone.
  void call(const SoftmaxOptions& options = {}, Output output = Output::own, const Exec& exec = Exec()) const {
    const SoftmaxOptions all = complete(options);
    if constexpr (Op == RowOperator::softmax_backward) {
      KokkosNN::softmax_backward(exec, x_view(), dy_view(), dx_view(output), all);
    } else if constexpr (Op == RowOperator::log_softmax_backward) {
      KokkosNN::log_softmax_backward(exec, x_view(), dy_view(), dx_view(output), all);
    } else {
      KokkosNN::logsumexp_backward(exec, x_view(), lse_view(), dy_view(), dx_view(output), all);
    }
  }

  /// The call's plan object.
  auto plan_object(const SoftmaxOptions& options = {}, const Exec& exec = Exec()) const {
    if constexpr (Op == RowOperator::softmax_backward) {
      return KokkosNN::SoftmaxBackwardPlan(exec, x_view(), dy_view(), dx_view(), complete(options));
    } else if constexpr (Op == RowOperator::log_softmax_backward) {
      return KokkosNN::LogSoftmaxBackwardPlan(exec, x_view(), dy_view(), dx_view(), complete(options));
    } else {
      return KokkosNN::LogSumExpBackwardPlan(exec, x_view(), lse_view(), dy_view(), dx_view(), complete(options));
    }
  }

  void run(const SoftmaxOptions& options = {}) {
    m_dx.poison_all();
    call(options);
    Exec().fence();
    m_dx.download();
  }

  /// Everything that must hold after a run.
  ::testing::AssertionResult correct(const SoftmaxOptions& options = {}) const {
    if (!gaps_intact(m_dx, m_dx_place)) return ::testing::AssertionFailure() << "something outside dx was written";
    if (const auto n = unwritten(m_dx, m_dx_place))
      return ::testing::AssertionFailure() << n << " elements not written";
    return close(m_x.host(), m_dy.host(), m_dx.host(), m_dx_place, options);
  }

  ::testing::AssertionResult run_correct(const SoftmaxOptions& options = {}) {
    run(options);
    return correct(options);
  }

  /// Runs the strategy and asserts that exactly its kernel ran and was right.
  ::testing::AssertionResult takes_the_path(RowStrategy strategy, SoftmaxOptions options = {}) {
    options.plan.strategy   = strategy;
    const std::string label = to_string(plan(options));
    const std::string want  = std::string("KokkosNN::") + KokkosNN::to_string(Op) + "[" + KokkosNN::to_string(strategy);
    if (label.rfind(want, 0) != 0) return ::testing::AssertionFailure() << label << " does not start with " << want;
    const auto kernels = kernels_of([&] { run(options); });
    if (std::count(kernels.begin(), kernels.end(), label) != 1) {
      return ::testing::AssertionFailure() << label << " did not run once";
    }
    const auto result = correct(options);
    return result ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << label << ": " << result.message();
  }

  /// Runs in place and compares with what the inputs were.
  ::testing::AssertionResult run_in_place_correct(Output output, const SoftmaxOptions& options = {}) {
    const std::vector<X> x(m_x.host(), m_x.host() + m_x.count());
    const std::vector<D> dy(m_dy.host(), m_dy.host() + m_dy.count());
    call(options, output);
    Exec().fence();
    m_x.download();
    m_dy.download();
    const bool over_x = output == Output::over_x;
    const auto* const result =
        over_x ? reinterpret_cast<const Y*>(m_x.host()) : reinterpret_cast<const Y*>(m_dy.host());
    if (over_x ? !gaps_intact(m_x, m_x_place) : !gaps_intact(m_dy, m_dy_place)) {
      return ::testing::AssertionFailure() << "something outside was written";
    }
    return close(x.data(), dy.data(), result, over_x ? m_x_place : m_dy_place, options);
  }

  /// The reference of every element, in the order of for_each_index over rows, from these inputs.
  template <class F>
  void for_each_row(const X* x, const D* dy, const Placement& dx_place, const SoftmaxOptions& options,
                    const F& f) const {
    const Placement x_rows = m_x_place.without(m_axis);
    std::vector<std::int64_t> dy_offsets, dx_offsets;
    const Placement dy_rows = is_lse ? m_dy_place : m_dy_place.without(m_axis);
    for_each_index(x_rows, dy_rows, [&](auto, std::int64_t offset, auto) { dy_offsets.push_back(offset); });
    for_each_index(x_rows, dx_place.without(m_axis),
                   [&](auto, std::int64_t offset, auto) { dx_offsets.push_back(offset); });
    const std::int64_t cols = m_x_place.extents[m_axis];
    for_each_index(x_rows, x_rows, [&](std::int64_t offset, auto, std::int64_t row) {
      const Reference::Row<X> x_row{x + offset, cols, m_x_place.strides[m_axis]};
      const D* const d = dy + dy_offsets[row];
      if constexpr (is_lse) {
        f(row, dx_offsets[row],
          Reference::logsumexp_backward(x_row, exact(m_lse.host()[dy_offsets[row]]), exact(*d), m_scale,
                                        options.masked_row));
      } else {
        const Reference::Row<D> dy_row{d, cols, m_dy_place.strides[m_axis]};
        f(row, dx_offsets[row],
          Op == RowOperator::softmax_backward ? Reference::softmax_backward(x_row, dy_row, m_scale)
                                              : Reference::log_softmax_backward(x_row, dy_row, m_scale));
      }
    });
  }

  /// Visits (value, reference) of every element of dx after a run.
  template <class F>
  void for_each_result(const F& f) const {
    for_each_row(m_x.host(), m_dy.host(), m_dx_place, {}, [&](auto, std::int64_t offset, const auto& expected) {
      for (std::size_t i = 0; i < expected.size(); ++i) {
        f(exact(m_dx.host()[offset + std::int64_t(i) * m_dx_place.strides[m_axis]]), expected[i]);
      }
    });
  }

 private:
  void fill_inputs(Recipe recipe) {
    const Placement x_rows  = m_x_place.without(m_axis);
    const Placement dy_rows = is_lse ? m_dy_place : m_dy_place.without(m_axis);
    const std::int64_t cols = m_x_place.extents[m_axis];
    std::vector<Reference::Real> y;
    for_each_index(x_rows, dy_rows, [&](std::int64_t x_offset, std::int64_t dy_offset, std::int64_t row) {
      InputRow logits(recipe, row, cols);
      std::vector<X> x(cols);
      for (X& value : x) value = static_cast<X>(logits.next());
      const Reference::Row<X> x_row{x.data(), cols};
      if (Op == RowOperator::softmax_backward) Reference::softmax(x_row, m_scale, MaskedRowPolicy::nan, y);
      if (Op == RowOperator::log_softmax_backward) Reference::log_softmax(x_row, m_scale, MaskedRowPolicy::nan, y);
      for (std::int64_t i = 0; i < cols; ++i) {
        m_x.host()[x_offset + i * m_x_place.strides[m_axis]] =
            is_lse ? x[i] : static_cast<X>(static_cast<double>(y[i]));
      }
      InputRow gradient(Recipe::uniform, row + 100000, cols);
      if (is_lse) {
        m_lse.host()[dy_offset] = static_cast<D>(static_cast<double>(Reference::logsumexp(x_row, m_scale)));
        m_dy.host()[dy_offset]  = static_cast<D>(gradient.next());
      } else {
        for (std::int64_t i = 0; i < cols; ++i) {
          m_dy.host()[dy_offset + i * m_dy_place.strides[m_axis]] = static_cast<D>(gradient.next());
        }
      }
    });
  }

  ::testing::AssertionResult close(const X* x, const D* dy, const Y* dx, const Placement& dx_place,
                                   const SoftmaxOptions& options) const {
    Errors errors;
    for_each_row(x, dy, dx_place, options, [&](std::int64_t row, std::int64_t offset, const auto& expected) {
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const auto& [exact_dx, magnitude, ill] = expected[i];
        const bool overflows                   = std::fabs(exact_dx) >= std::ldexp(1.0L, 2 - Format<Y>::min_exponent);
        const long double want                 = overflows ? std::copysign(Reference::infinity, exact_dx) : exact_dx;
        const long double value                = exact(dx[offset + std::int64_t(i) * dx_place.strides[m_axis]]);
        // Exponentials below the normal range may be 0, and with them their multiples.
        if (is_lse && std::isfinite(value) && std::fabs(want) < 64 * smallest_normal<Y>() &&
            std::fabs(value - want) < 64 * smallest_normal<Y>()) {
          continue;
        }
        errors.add(ulp_error<Y>(value, want, std::isfinite(magnitude) ? magnitude : 0), row, std::int64_t(i), value,
                   want);
      }
    });
    if (errors.max_ulp <= gradient_promise<Op, Y>) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << errors.worst;
  }

  Placement m_x_place;
  Placement m_dy_place;
  Placement m_dx_place;
  int m_axis;
  double m_scale;
  Buffer<X> m_x;
  Buffer<D> m_dy;
  Buffer<D> m_lse;
  Buffer<Y> m_dx;
};

/// Calls f with each of the three gradients, as a std::integral_constant.
template <class F>
void for_each_gradient(const F& f) {
  f(std::integral_constant<RowOperator, RowOperator::softmax_backward>{});
  f(std::integral_constant<RowOperator, RowOperator::log_softmax_backward>{});
  f(std::integral_constant<RowOperator, RowOperator::logsumexp_backward>{});
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_GRADIENT_HPP
