// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_NORM_HPP
#define KOKKOSNN_TEST_SUPPORT_NORM_HPP

#include "check.hpp"
#include "recorder.hpp"
#include "strategies.hpp"

#include "../reference/norm.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::PlanRequest;

/// In ulp, of what the documentation names.
template <class T>
inline constexpr double norm_promise = is_16_bit<T> ? 1.0 : 8.0;

/// Checks a sum over rows as column_sums.hpp and norm.hpp promise it. Products of doubles are rounded, so that their
/// errors are measured against the terms' sizes; all else is as good as exact.
template <class T>
::testing::AssertionResult is_column_sum(const Reference::TermSum& expected, long double value, bool of_products,
                                         bool is_double) {
  const long double share = of_products && is_double ? 1 : 0x1p-20L;
  const long double size  = std::isfinite(expected.size()) ? expected.size() : 0;
  const double error      = ulp_error<T>(value, expected.sum(), size * share);
  if (error <= (of_products && is_double ? 4 : 1)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << static_cast<double>(value) << " instead of "
                                       << static_cast<double>(expected.sum()) << " (" << error << " ulp)";
}

/// Choices of a normalisation's test.
struct NormCase {
  int axis                = -1;
  Recipe recipe           = Recipe::uniform;
  int misalignment        = 0;
  bool has_weights        = true;
  bool has_gradients      = true;  ///< of weights and biases, in the backward
  std::int64_t stride     = 1;     ///< of weights and biases
  double epsilon          = 1e-5;
  double weight_offset    = 0;
  double mean             = 0;  ///< added to all of x
  Determinism determinism = Determinism::run_to_run;
  PlanRequest plan        = {};
};

/// Where the output of a normalisation goes; with a residual also where the sum goes, over the other of the inputs.
enum class NormOutput { own, over_x, over_dy, over_dsum, sum_over_x, sum_over_residual, over_x_sum_over_residual };

/// One normalisation, or its gradient, on tensors of its own: inputs filled, outputs poisoned and guarded. W is the
/// weights' type. A residual lies as x does, a sum and its gradient as y.
template <RowOperator Op, class T, int Rank = 2, class W = T>
class NormTrial {
 public:
  using A                             = KokkosNN::accumulator_t<T>;
  static constexpr bool is_layer_norm = Op == RowOperator::layer_norm || Op == RowOperator::layer_norm_backward ||
                                        Op == RowOperator::add_layer_norm || Op == RowOperator::add_layer_norm_backward;
  static constexpr bool is_backward   = KokkosNN::is_gradient(Op);
  static constexpr bool has_residual  = !is_backward && KokkosNN::row_tensors(Op) == 2;
  static constexpr bool has_dsum      = is_backward && KokkosNN::row_tensors(Op) == 3;

  NormTrial(Placement x, Placement y, NormCase given)
      : m_case(given),
        m_x_place(std::move(x)),
        m_y_place(std::move(y)),
        m_axis(given.axis < 0 ? given.axis + Rank : given.axis),
        m_cols(m_x_place.extents[m_axis]),
        m_value_place(right(m_x_place.without(m_axis).extents)),
        m_x(m_x_place.span(), given.misalignment),
        m_dy(m_y_place.span(), given.misalignment),
        m_y(m_y_place.span(), given.misalignment),
        m_residual(has_residual ? m_x_place.span() : 0, given.misalignment),
        m_sum(has_residual ? m_y_place.span() : 0, given.misalignment),
        m_dsum(has_dsum ? m_y_place.span() : 0, given.misalignment),
        m_weight(m_cols * given.stride),
        m_bias(m_cols * given.stride),
        m_dweight(m_cols * given.stride),
        m_dbias(m_cols * given.stride),
        m_mean(m_value_place.span()),
        m_rstd(m_value_place.span()) {
    fill_rows();
    fill_columns();
    m_x.upload(), m_dy.upload(), m_residual.upload(), m_dsum.upload(), m_weight.upload(), m_bias.upload();
    set_values();
  }
  NormTrial(const Placement& place, NormCase given) : NormTrial(place, place, given) {}
  NormTrial(std::int64_t rows, std::int64_t cols, NormCase given = {})
    requires(Rank == 2)
      : NormTrial(right({rows, cols}), given) {}

  NormCase& choice() { return m_case; }
  Buffer<T>& x() { return m_x; }
  Buffer<T>& y() { return m_y; }
  Buffer<T>& residual() { return m_residual; }
  Buffer<T>& sum() { return m_sum; }
  Buffer<W>& bias() { return m_bias; }
  Buffer<W>& dweight() { return m_dweight; }
  Buffer<W>& dbias() { return m_dbias; }
  Buffer<A>& mean() { return m_mean; }
  Buffer<A>& rstd() { return m_rstd; }

  /// Values of a gradient that the forward call would leave.
  void set_values() {
    if (!is_backward) return;
    for_each_row(m_x.host(), m_x_place, m_y_place, [&](const Reference::Row<T>& x, auto, std::int64_t row, auto) {
      const auto moments =
          is_layer_norm ? Reference::layer_moments(x, m_case.epsilon) : Reference::rms_moments(x, m_case.epsilon);
      m_mean.host()[row] = static_cast<A>(moments.mean());
      m_rstd.host()[row] = static_cast<A>(moments.rstd);
    });
    m_mean.upload(), m_rstd.upload();
  }

  auto options() const {
    if constexpr (is_layer_norm) {
      return KokkosNN::LayerNormOptions{m_axis, m_case.epsilon, m_case.determinism, m_case.plan};
    } else {
      return KokkosNN::RmsNormOptions{m_axis, m_case.epsilon, m_case.weight_offset, m_case.determinism, m_case.plan};
    }
  }

  void call(NormOutput output = NormOutput::own, const Exec& exec = Exec()) const {
    const auto y = rows_view(y_buffer(output)), sum = rows_view(sum_buffer(output));
    if (m_case.has_weights) {
      call_with(exec, y, sum, column_view(m_weight), column_view(m_bias));
    } else {
      call_with(exec, y, sum, KokkosNN::no_view, KokkosNN::no_view);
    }
  }

  void run() {
    m_y.poison_all(), m_sum.poison_all();
    if (!is_backward) m_mean.poison_all(), m_rstd.poison_all();
    call();
    Exec().fence();
    m_y.download(), m_sum.download(), m_mean.download(), m_rstd.download();
    m_dweight.download(), m_dbias.download();
  }

  /// Everything that must hold after a run.
  ::testing::AssertionResult correct() const {
    if (!gaps_intact(m_y, m_y_place)) return ::testing::AssertionFailure() << "something outside the rows was written";
    if (const auto n = unwritten(m_y, m_y_place)) return ::testing::AssertionFailure() << n << " elements not written";
    if constexpr (has_residual) {
      if (!gaps_intact(m_sum, m_y_place)) return ::testing::AssertionFailure() << "the sum has written its gaps";
    }
    return all_close(inputs(), m_y.host(), m_y_place, m_sum.host(), m_y_place);
  }

  ::testing::AssertionResult run_correct() {
    run();
    return correct();
  }

  /// Runs the strategy and asserts that exactly its kernel ran and was right.
  ::testing::AssertionResult takes_the_path(RowStrategy strategy) {
    m_case.plan.strategy   = strategy;
    const std::string want = std::string("KokkosNN::") + to_string(Op) + "[" + to_string(strategy);
    const auto kernels     = kernels_of([&] { run(); });
    const auto is_wanted   = [&](const std::string& label) { return label.starts_with(want); };
    if (std::ranges::count_if(kernels, is_wanted) != 1) {
      return ::testing::AssertionFailure() << want << " did not run once";
    }
    const auto result = correct();
    return result
               ? result
               : ::testing::AssertionFailure() << *std::ranges::find_if(kernels, is_wanted) << ": " << result.message();
  }

  /// Runs in place and compares with what the inputs were.
  ::testing::AssertionResult run_in_place_correct(NormOutput output) {
    const Inputs before = inputs();
    call(output);
    Exec().fence();
    const Buffer<T>& y   = y_buffer(output);
    const Buffer<T>& sum = sum_buffer(output);
    for (Buffer<T>* rows : {&m_x, &m_dy, &m_residual, &m_sum, &m_dsum, &m_y}) rows->download();
    m_mean.download(), m_rstd.download(), m_dweight.download(), m_dbias.download();
    if (!gaps_intact(y, place_of(y)) || (has_residual && !gaps_intact(sum, place_of(sum)))) {
      return ::testing::AssertionFailure() << "something outside the rows was written";
    }
    return all_close(before, y.host(), place_of(y), sum.host(), place_of(sum));
  }

 private:
  /// The rows that a call reads, as they were before it.
  struct Inputs {
    std::vector<T> x, dy, residual, dsum;
  };
  Inputs inputs() const {
    const auto all = [](const Buffer<T>& b) { return std::vector<T>(b.host(), b.host() + b.count()); };
    return {all(m_x), all(m_dy), all(m_residual), all(m_dsum)};
  }

  const Buffer<T>& y_buffer(NormOutput output) const {
    if (output == NormOutput::over_x || output == NormOutput::over_x_sum_over_residual) return m_x;
    if (output == NormOutput::over_dsum) return m_dsum;
    return output == NormOutput::over_dy ? m_dy : m_y;
  }
  const Buffer<T>& sum_buffer(NormOutput output) const {
    if (output == NormOutput::sum_over_x) return m_x;
    const bool is_over = output == NormOutput::sum_over_residual || output == NormOutput::over_x_sum_over_residual;
    return is_over ? m_residual : m_sum;
  }
  const Placement& place_of(const Buffer<T>& rows) const {
    return &rows == &m_x || &rows == &m_residual ? m_x_place : m_y_place;
  }
  auto rows_view(const Buffer<T>& rows) const { return strided_view<Rank>(rows.device(), place_of(rows)); }
  auto input_view(const Buffer<T>& rows) const {
    return strided_view<Rank>(static_cast<const T*>(rows.device()), place_of(rows));
  }
  Placement column_place() const { return {{m_cols}, {m_case.stride}, 0}; }
  auto column_view(const Buffer<W>& buffer) const {
    return strided_view<1>(static_cast<const W*>(buffer.device()), column_place());
  }
  auto column_result(const Buffer<W>& buffer) const { return strided_view<1>(buffer.device(), column_place()); }

  template <class Y, class Weight, class Bias>
  void call_with(const Exec& exec, const Y& y, const Y& sum, const Weight& weight, const Bias& bias) const {
    const auto x      = input_view(m_x);
    const auto dy     = input_view(m_dy);
    const auto mean   = strided_view<Rank - 1>(m_mean.device(), m_value_place);
    const auto rstd   = strided_view<Rank - 1>(m_rstd.device(), m_value_place);
    const auto choose = options();
    if constexpr (Op == RowOperator::rms_norm) KokkosNN::rms_norm(exec, x, weight, y, rstd, choose);
    if constexpr (Op == RowOperator::layer_norm) KokkosNN::layer_norm(exec, x, weight, bias, y, mean, rstd, choose);
    if constexpr (Op == RowOperator::add_rms_norm) {
      KokkosNN::add_rms_norm(exec, x, input_view(m_residual), weight, y, sum, rstd, choose);
    }
    if constexpr (Op == RowOperator::add_layer_norm) {
      KokkosNN::add_layer_norm(exec, x, input_view(m_residual), weight, bias, y, sum, mean, rstd, choose);
    }
    const auto dweight = column_result(m_dweight), dbias = column_result(m_dbias);
    if constexpr (Op == RowOperator::rms_norm_backward) {
      if (!m_case.has_gradients) return KokkosNN::rms_norm_backward(exec, x, weight, rstd, dy, y, choose);
      KokkosNN::rms_norm_backward(exec, x, weight, rstd, dy, y, dweight, choose);
    }
    if constexpr (Op == RowOperator::layer_norm_backward) {
      if (!m_case.has_gradients) return KokkosNN::layer_norm_backward(exec, x, weight, mean, rstd, dy, y, choose);
      KokkosNN::layer_norm_backward(exec, x, weight, mean, rstd, dy, y, dweight, dbias, choose);
    }
    if constexpr (Op == RowOperator::add_rms_norm_backward) {
      KokkosNN::add_rms_norm_backward(exec, x, weight, rstd, dy, input_view(m_dsum), y, dweight, choose);
    }
    if constexpr (Op == RowOperator::add_layer_norm_backward) {
      KokkosNN::add_layer_norm_backward(exec, x, weight, mean, rstd, dy, input_view(m_dsum), y, dweight, dbias, choose);
    }
  }

  void fill_rows() {
    fill(m_dy.host(), m_y_place, m_axis, Recipe::uniform);
    if (has_dsum) fill(m_dsum.host(), m_y_place, m_axis, Recipe::ascending);
    for_each_index(m_x_place.without(m_axis), m_x_place.without(m_axis),
                   [&](std::int64_t offset, auto, std::int64_t row) {
                     InputRow values(m_case.recipe, row, m_cols), others(Recipe::uniform, row + 1000, m_cols);
                     for (std::int64_t i = 0; i < m_cols; ++i) {
                       const std::int64_t at = offset + i * m_x_place.strides[m_axis];
                       m_x.host()[at]        = static_cast<T>(values.next() + m_case.mean);
                       if (has_residual) m_residual.host()[at] = static_cast<T>(others.next());
                     }
                   });
  }
  void fill_columns() {
    InputRow weights(Recipe::uniform, 77, m_cols), biases(Recipe::uniform, 78, m_cols);
    for (std::int64_t i = 0; i < m_cols; ++i) {
      m_weight.host()[i * m_case.stride] = static_cast<W>(weights.next());
      m_bias.host()[i * m_case.stride]   = static_cast<W>(biases.next());
    }
  }

  /// f(row of x, offset in a tensor like y, the row's number, its stride)
  template <class F>
  void for_each_row(const T* x, const Placement& x_place, const Placement& y_place, const F& f) const {
    for_each_index(x_place.without(m_axis), y_place.without(m_axis),
                   [&](std::int64_t x_offset, std::int64_t y_offset, std::int64_t row) {
                     const T* const first = m_cols > 0 ? x + x_offset : x;  // which is null without elements
                     f(Reference::Row<T>{first, m_cols, x_place.strides[m_axis]}, y_offset, row,
                       y_place.strides[m_axis]);
                   });
  }

  /// Compares the gradients of weights and biases, for the values of rows that the call was given.
  ::testing::AssertionResult weight_gradients_close(const T* x, const Placement& x_place, const T* dy) const {
    if (!is_backward || !m_case.has_gradients) return ::testing::AssertionSuccess();
    std::vector<Reference::TermSum> dweight(m_cols), dbias(m_cols);
    for_each_row(x, x_place, m_y_place, [&](const Reference::Row<T>& row_x, std::int64_t offset, auto row, auto step) {
      const Reference::Real mean = is_layer_norm ? exact(m_mean.host()[row]) : 0, rstd = exact(m_rstd.host()[row]);
      for (std::int64_t i = 0; i < m_cols; ++i) {
        const Reference::Real dy_i = exact(dy[offset + i * step]);
        dweight[i].add(dy_i * ((row_x[i] - mean) * rstd));
        dbias[i].add(dy_i);
      }
    });
    const auto result = columns_close(m_dweight, dweight, true);
    if (!result || !is_layer_norm) return result;
    return columns_close(m_dbias, dbias, false);
  }
  ::testing::AssertionResult columns_close(const Buffer<W>& result, const std::vector<Reference::TermSum>& expected,
                                           bool of_products) const {
    const char* name = of_products ? "dweight " : "dbias ";
    if (!gaps_intact(result, column_place())) return ::testing::AssertionFailure() << name << "has written its gaps";
    for (std::int64_t i = 0; i < m_cols; ++i) {
      const auto close = is_column_sum<W>(expected[i], exact(result.host()[i * m_case.stride]), of_products,
                                          std::is_same_v<T, double>);
      if (!close) return ::testing::AssertionFailure() << name << i << ": " << close.message();
    }
    return ::testing::AssertionSuccess();
  }

  std::vector<Reference::Real> column_values(const Buffer<W>& buffer, Reference::Real missing, double offset) const {
    std::vector<Reference::Real> values(static_cast<std::size_t>(m_cols), missing);
    for (std::int64_t i = 0; i < m_cols && m_case.has_weights; ++i) {
      values[i] = exact(buffer.host()[i * m_case.stride]) + Reference::Real(offset);
    }
    return values;
  }

  /// Compares all results; those of a norm with a residual with the norm of the sum as it was written.
  ::testing::AssertionResult all_close(const Inputs& in, const T* y, const Placement& y_place, const T* sum,
                                       const Placement& sum_place) const {
    if constexpr (has_residual) {
      const auto is_sum = sum_correct(in, sum, sum_place);
      return is_sum ? close(sum, sum_place, nullptr, nullptr, y, y_place) : is_sum;
    }
    const auto rows = close(in.x.data(), m_x_place, in.dy.data(), in.dsum.data(), y, y_place);
    return rows ? weight_gradients_close(in.x.data(), m_x_place, in.dy.data()) : rows;
  }

  /// Checks that the sum is x + residual, rounded to the accumulator's type and to T.
  ::testing::AssertionResult sum_correct(const Inputs& in, const T* sum, const Placement& place) const {
    ::testing::AssertionResult result = ::testing::AssertionSuccess();
    if (m_cols == 0) return result;  // there is no memory
    for_each_row(in.x.data(), m_x_place, place,
                 [&](const Reference::Row<T>& x, std::int64_t offset, auto row, auto step) {
                   const Reference::Row<T> residual{in.residual.data() + (x.data - in.x.data()), m_cols,
                                                    m_x_place.strides[m_axis]};
                   for (std::int64_t i = 0; i < m_cols; ++i) {
                     const double error = ulp_error<T>(exact(sum[offset + i * step]), x[i] + residual[i]);
                     if (!(error <= 0.501))
                       result = ::testing::AssertionFailure() << "sum of row " << row << ", column " << i;
                   }
                 });
    return result;
  }

  ::testing::AssertionResult close(const T* x, const Placement& x_place, const T* dy, const T* dsum, const T* y,
                                   const Placement& y_place) const {
    if (m_cols == 0) return ::testing::AssertionSuccess();  // nothing is written
    const auto weight = column_values(m_weight, 1, is_layer_norm ? 0 : m_case.weight_offset);
    auto bias         = column_values(m_bias, 0, 0);
    if (!is_layer_norm) std::ranges::fill(bias, 0);
    std::vector<std::int64_t> dy_offsets;  // dy lies as y does, also where that is written over x
    const Placement dy_rows = m_y_place.without(m_axis);
    for_each_index(dy_rows, dy_rows, [&](std::int64_t offset, auto, auto) { dy_offsets.push_back(offset); });
    Errors errors, value_errors;
    for_each_row(
        x, x_place, y_place, [&](const Reference::Row<T>& row_x, std::int64_t offset, std::int64_t row, auto step) {
          std::vector<Reference::Normalised> expected;
          if constexpr (is_backward) {
            const Reference::RowMoments given{is_layer_norm ? exact(m_mean.host()[row]) : 0, 0,
                                              exact(m_rstd.host()[row])};
            const Reference::Row<T> row_dy{dy + dy_offsets[row], m_cols, m_y_place.strides[m_axis]};
            const T* const from = has_dsum ? dsum + dy_offsets[row] : nullptr;
            const Reference::Row<T> row_dsum{from, m_cols, m_y_place.strides[m_axis]};
            expected =
                Reference::norm_backward(row_x, row_dy, has_dsum ? &row_dsum : nullptr, given, weight, is_layer_norm);
          } else {
            const auto moments = is_layer_norm ? Reference::layer_moments(row_x, m_case.epsilon)
                                               : Reference::rms_moments(row_x, m_case.epsilon);
            expected           = Reference::norm(row_x, moments, weight, bias, is_layer_norm);
            const A rstd       = m_rstd.host()[row];
            value_errors.add(ulp_error<A>(exact(rstd), moments.rstd), row, -1, exact(rstd), moments.rstd);
            if (is_layer_norm) {
              const A mean = m_mean.host()[row];
              value_errors.add(ulp_error<A>(exact(mean), moments.mean(), 1 / moments.rstd), row, -2, exact(mean),
                               moments.mean());
            }
          }
          for (std::int64_t i = 0; i < m_cols; ++i) {
            const long double value = exact(y[offset + i * step]);
            errors.add(ulp_error<T>(value, expected[i].value,
                                    std::isfinite(expected[i].magnitude) ? expected[i].magnitude : 0),
                       row, i, value, expected[i].value);
          }
        });
    if (!(errors.max_ulp <= norm_promise<T>)) return ::testing::AssertionFailure() << errors.worst;
    if (!(value_errors.max_ulp <= 8)) return ::testing::AssertionFailure() << "mean or rstd: " << value_errors.worst;
    return ::testing::AssertionSuccess();
  }

  NormCase m_case;
  Placement m_x_place;
  Placement m_y_place;
  int m_axis;
  std::int64_t m_cols;
  Placement m_value_place;
  Buffer<T> m_x;
  Buffer<T> m_dy;
  Buffer<T> m_y;
  Buffer<T> m_residual;
  Buffer<T> m_sum;
  Buffer<T> m_dsum;
  Buffer<W> m_weight;
  Buffer<W> m_bias;
  Buffer<W> m_dweight;
  Buffer<W> m_dbias;
  Buffer<A> m_mean;
  Buffer<A> m_rstd;
};

/// The strategies that a norm can be forced on.
inline std::vector<RowStrategy> norm_strategies() {
  return strategies_with_kernels(RowOperator::rms_norm, all_strategies);
}

/// Expects that every strategy serves some widths, takes its path there and matches the reference.
template <RowOperator Op, class T>
void expect_path_of_every_strategy() {
  for (const RowStrategy strategy : norm_strategies()) {
    int served = 0;
    for (const std::int64_t cols : {1, 2, 7, 16, 33, 64, 200, 257, 1000, 2048, 5003}) {
      NormTrial<Op, T, 3> trial(strategy_place(strategy, 37, cols), {.axis = strategy_axis});
      trial.choice().plan.strategy = strategy;
      try {
        trial.call();
      } catch (const std::invalid_argument&) {
        continue;
      }
      ++served;
      EXPECT_TRUE(trial.takes_the_path(strategy)) << to_string(Op) << ", " << cols << " columns";
    }
    EXPECT_GE(served, 4) << to_string(Op) << " by " << to_string(strategy);
  }
}

/// Calls f with each of the operators, as a std::integral_constant.
template <class F>
void for_each_norm(const F& f) {
  f(std::integral_constant<RowOperator, RowOperator::rms_norm>{});
  f(std::integral_constant<RowOperator, RowOperator::layer_norm>{});
  f(std::integral_constant<RowOperator, RowOperator::rms_norm_backward>{});
  f(std::integral_constant<RowOperator, RowOperator::layer_norm_backward>{});
}

/// And with each of those with a residual.
template <class F>
void for_each_add_norm(const F& f) {
  f(std::integral_constant<RowOperator, RowOperator::add_rms_norm>{});
  f(std::integral_constant<RowOperator, RowOperator::add_layer_norm>{});
  f(std::integral_constant<RowOperator, RowOperator::add_rms_norm_backward>{});
  f(std::integral_constant<RowOperator, RowOperator::add_layer_norm_backward>{});
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_NORM_HPP
