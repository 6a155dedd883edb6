// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_QUANTIZED_HPP
#define KOKKOSNN_TEST_SUPPORT_QUANTIZED_HPP

#include "check.hpp"

#include "../reference/norm.hpp"
#include "../reference/softmax.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::float8_e4m3;
using KokkosNN::no_view;

inline constexpr RowOperator quantized_operators[] = {RowOperator::softmax, RowOperator::rms_norm,
                                                      RowOperator::layer_norm};

/// Arguments of a trial, besides the places of x and y.
struct QuantizedCase {
  RowOperator op             = RowOperator::rms_norm;
  int axis                   = -1;
  double scale               = 1;
  MaskedRowPolicy masked_row = MaskedRowPolicy::nan;
  double epsilon             = 1e-5;
  double weight_offset       = 0;
  bool has_columns           = true;   ///< weight and bias, where the operator has them
  bool has_float_columns     = false;  ///< of the accumulator's type
  bool has_scales            = true;
  int misalignment           = 0;
  Recipe recipe              = Recipe::uniform;
};

/// The largest number of a format.
template <class Q>
inline constexpr long double largest_code = std::is_same_v<Q, std::int8_t> ? 127 : 448;

/// A number rounded to the format, as a number.
template <class Q>
long double rounded_to(long double value) {
  if constexpr (std::is_same_v<Q, std::int8_t>) return std::nearbyint(value);
  return static_cast<long double>(static_cast<float>(float8_e4m3(static_cast<double>(value))));
}

template <class Q>
long double number_of(Q code) {
  return static_cast<long double>(static_cast<float>(code));
}

/// One call on tensors of its own: x filled, y and scales poisoned and guarded, results against the reference.
template <class T, class Q, int Rank = 2>
class QuantizedTrial {
 public:
  using A = KokkosNN::accumulator_t<T>;

  QuantizedTrial(Placement x_place, Placement y_place, const QuantizedCase& given)
      : m_given(given),
        m_x_place(std::move(x_place)),
        m_y_place(std::move(y_place)),
        m_axis(given.axis < 0 ? given.axis + Rank : given.axis),
        m_cols(m_x_place.extents[m_axis]),
        m_scales_place(right(m_x_place.without(m_axis).extents)),
        m_x(m_x_place.span(), given.misalignment),
        m_y(m_y_place.span(), given.misalignment),
        m_scales(m_scales_place.span()),
        m_weight(2 * m_cols),
        m_bias(2 * m_cols),
        m_float_weight(m_cols),
        m_float_bias(m_cols) {
    fill(m_x.host(), m_x_place, m_axis, given.recipe);
    m_x.upload();
    fill_columns();
  }
  QuantizedTrial(std::int64_t rows, std::int64_t cols, const QuantizedCase& given)
    requires(Rank == 2)
      : QuantizedTrial(right({rows, cols}), right({rows, cols}), given) {}

  Buffer<T>& x() { return m_x; }
  Buffer<Q>& y() { return m_y; }
  Buffer<float>& scales() { return m_scales; }
  Buffer<T>& weight() { return m_weight; }

  auto x_view() const { return strided_view<Rank>(static_cast<const T*>(m_x.device()), m_x_place); }
  auto y_view() const { return strided_view<Rank>(m_y.device(), m_y_place); }
  auto scales_view() const { return strided_view<Rank - 1>(m_scales.device(), m_scales_place); }

  /// The call alone.
  void call() const {
    if constexpr (std::is_same_v<Q, float8_e4m3>) {
      if (!m_given.has_scales) return call_with(no_view);
    }
    call_with(scales_view());
  }

  void run() {
    m_y.poison_all();
    m_scales.poison_all();
    call();
    Exec().fence();
    m_y.download();
    m_scales.download();
  }

  ::testing::AssertionResult run_correct() {
    run();
    if (!gaps_intact(m_y, m_y_place)) return ::testing::AssertionFailure() << "something outside y was written";
    if (!m_scales.guards_intact()) return ::testing::AssertionFailure() << "something outside scales was written";
    if (const auto n = unwritten(m_y, m_y_place)) return ::testing::AssertionFailure() << n << " elements not written";
    if (!m_given.has_scales && !m_scales.untouched()) return ::testing::AssertionFailure() << "scales were written";
    std::string wrong;
    const Placement rows = m_x_place.without(m_axis), y_rows = m_y_place.without(m_axis);
    for_each_index(rows, y_rows, [&](std::int64_t x_row, std::int64_t y_row, std::int64_t number) {
      if (wrong.empty()) wrong = check_row(x_row, y_row, number);
    });
    if (wrong.empty()) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << wrong;
  }

  /// The results of a row in long double, each with what its error is relative to.
  std::vector<Reference::Normalised> results_of(std::int64_t x_row) const {
    const Reference::Row<T> x{m_x.host() + x_row, m_cols, m_x_place.strides[m_axis]};
    if (m_given.op == RowOperator::softmax) {
      std::vector<Reference::Real> values;
      Reference::softmax(x, m_given.scale, m_given.masked_row, values);
      std::vector<Reference::Normalised> results;
      for (const auto value : values) results.push_back({value, 0});
      return results;
    }
    const bool is_layer_norm = m_given.op == RowOperator::layer_norm;
    std::vector<Reference::Real> weight(m_cols, 1), bias(m_cols, 0);
    for (std::int64_t i = 0; m_given.has_columns && i < m_cols; ++i) {
      weight[i] = exact_weight(m_weight, m_float_weight, i) + (is_layer_norm ? 0 : m_given.weight_offset);
      bias[i]   = is_layer_norm ? exact_weight(m_bias, m_float_bias, i) : 0;
    }
    const auto moments =
        is_layer_norm ? Reference::layer_moments(x, m_given.epsilon) : Reference::rms_moments(x, m_given.epsilon);
    return Reference::norm(x, moments, weight, bias, is_layer_norm);
  }

 private:
  void fill_columns() {
    for (std::int64_t i = 0; i < m_cols; ++i) {
      const double weight      = 1 + 0.5 * noise_of(random_bits(11, static_cast<std::uint64_t>(i)));
      const double bias        = 0.25 * noise_of(random_bits(13, static_cast<std::uint64_t>(i)));
      m_weight.host()[2 * i]   = static_cast<T>(weight);
      m_bias.host()[2 * i]     = static_cast<T>(bias);
      m_float_weight.host()[i] = static_cast<A>(weight);
      m_float_bias.host()[i]   = static_cast<A>(bias);
    }
    m_weight.upload();
    m_bias.upload();
    m_float_weight.upload();
    m_float_bias.upload();
  }
  Reference::Real exact_weight(const Buffer<T>& own, const Buffer<A>& in_float, std::int64_t i) const {
    return m_given.has_float_columns ? exact(in_float.host()[i]) : exact(own.host()[2 * i]);
  }

  template <class Scales>
  void call_with(const Scales& scales) const {
    if (m_given.op == RowOperator::softmax) {
      return KokkosNN::quantized_softmax(
          Exec(), x_view(), y_view(), scales,
          {.axis = m_given.axis, .scale = m_given.scale, .masked_row = m_given.masked_row});
    }
    if (!m_given.has_columns) return call_norm(scales, no_view, no_view);
    if (m_given.has_float_columns) {
      return call_norm(scales, strided_view<1>(static_cast<const A*>(m_float_weight.device()), right({m_cols})),
                       strided_view<1>(static_cast<const A*>(m_float_bias.device()), right({m_cols})));
    }
    const Placement every_second{{m_cols}, {2}, 0};
    call_norm(scales, strided_view<1>(static_cast<const T*>(m_weight.device()), every_second),
              strided_view<1>(static_cast<const T*>(m_bias.device()), every_second));
  }
  template <class Scales, class Weight, class Bias>
  void call_norm(const Scales& scales, const Weight& weight, const Bias& bias) const {
    if (m_given.op == RowOperator::rms_norm) {
      KokkosNN::quantized_rms_norm(
          Exec(), x_view(), weight, y_view(), scales,
          {.axis = m_given.axis, .epsilon = m_given.epsilon, .weight_offset = m_given.weight_offset});
    } else {
      KokkosNN::quantized_layer_norm(Exec(), x_view(), weight, bias, y_view(), scales,
                                     {.axis = m_given.axis, .epsilon = m_given.epsilon});
    }
  }

  /// Complaint about a row, empty where it is right.
  std::string check_row(std::int64_t x_row, std::int64_t y_row, std::int64_t number) const {
    // Exponentials in float are as good as 16-bit results need them.
    const bool is_fast          = m_given.op == RowOperator::softmax && sizeof(T) <= 4;
    const long double tolerance = is_fast ? 0x1p-13L : 0x1p-20L;
    const auto results          = results_of(x_row);
    long double largest         = 0;
    bool is_number              = true;
    for (const auto& result : results) {
      is_number = is_number && std::isfinite(static_cast<float>(result.value));
      largest   = std::max(largest, std::fabs(result.value));
    }
    const auto code      = [&](std::int64_t i) { return m_y.host()[y_row + i * m_y_place.strides[m_axis]]; };
    const float scale    = m_given.has_scales ? m_scales.host()[number] : 1.0f;
    const auto complaint = [&](std::int64_t i, long double wanted) {
      std::ostringstream text;
      text << "row " << number << ", column " << i << ": " << static_cast<double>(number_of(code(i))) << " instead of "
           << static_cast<double>(wanted) << ", scale " << scale << ", largest " << static_cast<double>(largest);
      return text.str();
    };
    if (m_given.has_scales && !is_number) {
      if (!std::isnan(scale)) return "the scale of row " + std::to_string(number) + " is a number";
      for (std::int64_t i = 0; i < m_cols; ++i) {
        if (!same_bits(code(i), code_of_no_number())) return complaint(i, 0);
      }
      return {};
    }
    if (m_given.has_scales) {
      const long double least  = 0x1p-126L;
      const long double wanted = largest == 0 ? 1 : std::max(least, largest / largest_code<Q>);
      const bool may_be_zero   = largest < std::numeric_limits<A>::min();  // in the accumulator
      if (!(std::fabs(scale / wanted - 1) <= tolerance) && !(may_be_zero && scale == 1)) return complaint(-1, wanted);
    }
    bool reaches = false;
    for (std::int64_t i = 0; i < m_cols; ++i) {
      const long double wanted = results[i].value / scale;
      const long double error  = 8 * ulp_at<A>(results[i].magnitude) * (results[i].magnitude > 0) / scale;
      const long double slack  = std::fabs(wanted) * tolerance + error;
      const long double found  = number_of(code(i));
      const bool is_nan        = std::isnan(wanted);
      reaches                  = reaches || std::fabs(found) == largest_code<Q>;
      if (is_nan ? !std::isnan(found)
                 : !(rounded_to<Q>(wanted - slack) <= found && found <= rounded_to<Q>(wanted + slack))) {
        return complaint(i, wanted);
      }
    }
    const bool is_full = largest / largest_code<Q> > 0x1p-125L;
    if (m_given.has_scales && is_full && !reaches) return "no result of row " + std::to_string(number) + " is largest";
    return {};
  }

  static Q code_of_no_number() {
    if constexpr (std::is_same_v<Q, float8_e4m3>) {
      return float8_e4m3::from_bits(0x7f);
    } else {
      return 0;
    }
  }

  QuantizedCase m_given;
  Placement m_x_place;
  Placement m_y_place;
  int m_axis;
  std::int64_t m_cols;
  Placement m_scales_place;
  Buffer<T> m_x;
  Buffer<Q> m_y;
  Buffer<float> m_scales;
  Buffer<T> m_weight;
  Buffer<T> m_bias;
  Buffer<A> m_float_weight;
  Buffer<A> m_float_bias;
};

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_QUANTIZED_HPP
