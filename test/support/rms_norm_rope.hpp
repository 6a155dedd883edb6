// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_RMS_NORM_ROPE_HPP
#define KOKKOSNN_TEST_SUPPORT_RMS_NORM_ROPE_HPP

#include "check.hpp"

#include "../reference/rope.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::no_view;
using KokkosNN::RmsNormRopeOptions;
using KokkosNN::RopeForm;

inline constexpr RopeForm both_rope_forms[] = {RopeForm::half_rotated, RopeForm::interleaved};

/// The weight of a trial.
enum class WeightOf { none, columns, heads, columns_in_float };

/// Arguments of a trial, besides the places of x and y.
struct RmsNormRopeCase {
  RmsNormRopeOptions options = {.epsilon = 1e-3};
  bool has_tables            = true;
  WeightOf weight            = WeightOf::columns;
  bool is_in_place           = false;
  int misalignment           = 0;
};

/// One call on tensors (batch, sequence, head, dim) of its own: x filled, y poisoned and guarded, results against the
/// reference. The sequence's axis is the options'; positions are indices and an offset.
template <class T>
class RmsNormRopeTrial {
 public:
  using A = KokkosNN::accumulator_t<T>;

  RmsNormRopeTrial(Placement x_place, Placement y_place, const RmsNormRopeCase& given)
      : m_given(given),
        m_x_place(std::move(x_place)),
        m_y_place(std::move(y_place)),
        m_sequence((given.options.rope.sequence_axis + 4) % 4),
        m_heads(m_sequence == 2 ? 1 : 2),
        m_dim(m_x_place.extents[3]),
        m_rotary(given.options.rope.rotary_dims == 0 ? m_dim : given.options.rope.rotary_dims),
        m_table_rows(m_x_place.extents[m_sequence] + std::max<std::int64_t>(0, given.options.rope.position_offset)),
        m_x(m_x_place.span(), given.misalignment),
        m_y(m_y_place.span(), given.misalignment),
        m_cos(m_table_rows * m_rotary / 2),
        m_sin(m_table_rows * m_rotary / 2),
        m_weight_place(right({m_x_place.extents[m_heads], m_dim}, 3)),
        m_weight(m_weight_place.span()),
        m_float_weight(m_dim) {
    fill(m_x.host(), m_x_place, 3, Recipe::uniform);
    m_x.upload();
    fill_tables();
    fill_weights();
  }
  RmsNormRopeTrial(const std::vector<std::int64_t>& extents, const RmsNormRopeCase& given)
      : RmsNormRopeTrial(right(extents), right(extents), given) {}

  Buffer<T>& x() { return m_x; }
  Buffer<T>& y() { return m_y; }
  auto x_view() const { return strided_view<4>(static_cast<const T*>(m_x.device()), m_x_place); }
  auto y_view() const {
    return m_given.is_in_place ? strided_view<4>(m_x.device(), m_x_place) : strided_view<4>(m_y.device(), m_y_place);
  }
  auto weight_view() const {
    return strided_view<1>(static_cast<const T*>(m_weight.device()), Placement{{m_dim}, {1}, 0});
  }
  auto table_view(const Buffer<A>& table) const {
    return strided_view<2>(static_cast<const A*>(table.device()), right({m_table_rows, m_rotary / 2}));
  }
  auto cos_view() const { return table_view(m_cos); }
  auto sin_view() const { return table_view(m_sin); }

  /// The call alone.
  void call() const {
    switch (m_given.weight) {
      case WeightOf::none:
        return call_with(no_view);
      case WeightOf::columns:
        return call_with(weight_view());
      case WeightOf::heads:
        return call_with(strided_view<2>(static_cast<const T*>(m_weight.device()), m_weight_place));
      case WeightOf::columns_in_float:
        return call_with(strided_view<1>(static_cast<const A*>(m_float_weight.device()), right({m_dim})));
    }
  }

  ::testing::AssertionResult run_correct() {
    const std::vector<T> before(m_x.host(), m_x.host() + m_x.count());
    m_y.poison_all();
    call();
    Exec().fence();
    m_x.download();
    m_y.download();
    Buffer<T>& result   = m_given.is_in_place ? m_x : m_y;
    const Placement& at = m_given.is_in_place ? m_x_place : m_y_place;
    if (!gaps_intact(result, at)) return ::testing::AssertionFailure() << "something outside y was written";
    if (unwritten(result, at) > 0) return ::testing::AssertionFailure() << "elements were not written";
    if (m_dim == 0) return ::testing::AssertionSuccess();
    Errors errors;
    const Placement x_rows = m_x_place.without(3), y_rows = at.without(3);
    for_each_index(x_rows, y_rows, [&](std::int64_t x_row, std::int64_t y_row, std::int64_t number) {
      std::int64_t index[3], left = number;
      for (int d = 2; d >= 0; --d) {
        index[d] = left % x_rows.extents[d];
        left /= x_rows.extents[d];
      }
      const std::int64_t position = index[m_sequence] + m_given.options.rope.position_offset;
      check_row({before.data() + x_row, m_dim, m_x_place.strides[3]}, {result.host() + y_row, m_dim, at.strides[3]},
                position, index[m_heads], number, errors);
    });
    const double most = is_16_bit<T> ? 1 : 12;
    if (errors.max_ulp <= most) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << errors.worst;
  }

 private:
  using Real = Reference::Real;

  void fill_tables() {
    for (std::int64_t p = 0; p < m_table_rows; ++p) {
      for (std::int64_t i = 0; i < m_rotary / 2; ++i) {
        const Real angle                   = Reference::angle_of(m_given.options.rope, m_rotary, i, p);
        m_cos.host()[p * m_rotary / 2 + i] = static_cast<A>(std::cos(angle));
        m_sin.host()[p * m_rotary / 2 + i] = static_cast<A>(std::sin(angle));
      }
    }
    m_cos.upload();
    m_sin.upload();
  }

  void fill_weights() {
    const auto value = [](std::int64_t i) {
      return 1 + 0.5 * noise_of(random_bits(17, static_cast<std::uint64_t>(i)));
    };
    for (std::int64_t i = 0; i < m_weight.count(); ++i) m_weight.host()[i] = static_cast<T>(value(i));
    for (std::int64_t i = 0; i < m_dim; ++i) m_float_weight.host()[i] = static_cast<A>(value(i));
    m_weight.upload();
    m_float_weight.upload();
  }
  Real weight_at(std::int64_t head, std::int64_t column) const {
    if (m_given.weight == WeightOf::none) return 1;
    const Real offset = m_given.options.weight_offset;
    if (m_given.weight == WeightOf::columns_in_float) return exact(m_float_weight.host()[column]) + offset;
    const std::int64_t row = m_given.weight == WeightOf::heads ? head : 0;
    return exact(m_weight.host()[row * m_weight_place.strides[0] + column]) + offset;
  }

  template <class Weight>
  void call_with(const Weight& weight) const {
    const auto& options = m_given.options;
    if (m_given.has_tables) {
      KokkosNN::rms_norm_rope(Exec(), x_view(), weight, cos_view(), sin_view(), y_view(), options);
    } else {
      KokkosNN::rms_norm_rope(Exec(), x_view(), weight, y_view(), options);
    }
  }

  /// Adds the errors of a row's results, each against what it is documented to be relative to.
  void check_row(const Reference::Row<T>& x, const Reference::Row<T>& y, std::int64_t position, std::int64_t head,
                 std::int64_t number, Errors& errors) const {
    Real squares = 0;
    for (std::int64_t i = 0; i < m_dim; ++i) squares += x[i] * x[i];
    const Real rstd = 1 / std::sqrt(squares / Real(m_dim) + Real(m_given.options.epsilon));
    const auto n    = [&](std::int64_t i) { return x[i] * rstd * weight_at(head, i); };
    for (std::int64_t i = 0; i < m_rotary / 2; ++i) {
      const auto [first, second] = Reference::pair_of(m_given.options.rope.form, m_rotary, i);
      const Real angle           = Reference::angle_of(m_given.options.rope, m_rotary, i, position);
      Real cos = std::cos(angle), sin = std::sin(angle);
      if (m_given.has_tables) {
        cos = exact(m_cos.host()[position * m_rotary / 2 + i]);
        sin = exact(m_sin.host()[position * m_rotary / 2 + i]);
      }
      add(errors, y[first], Reference::rotated(n(first), n(second), cos, sin), number, first);
      add(errors, y[second], Reference::rotated(n(second), n(first), cos, -sin), number, second);
    }
    for (std::int64_t i = m_rotary; i < m_dim; ++i) errors.add(ulp_error<T>(y[i], n(i)), number, i, y[i], n(i));
  }

  void add(Errors& errors, Real value, const Reference::Rotated& expected, std::int64_t row, std::int64_t col) const {
    const Real least     = m_given.has_tables ? 0 : std::ldexp(expected.element, -Format<A>::digits);
    const Real magnitude = std::max(expected.term, least);
    errors.add(ulp_error<T>(value, expected.value, std::isfinite(magnitude) ? magnitude : Real(0)), row, col, value,
               expected.value);
  }

  RmsNormRopeCase m_given;
  Placement m_x_place;
  Placement m_y_place;
  int m_sequence;
  int m_heads;
  std::int64_t m_dim;
  std::int64_t m_rotary;
  std::int64_t m_table_rows;
  Buffer<T> m_x;
  Buffer<T> m_y;
  Buffer<A> m_cos;
  Buffer<A> m_sin;
  Placement m_weight_place;
  Buffer<T> m_weight;
  Buffer<A> m_float_weight;
};

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_RMS_NORM_ROPE_HPP
