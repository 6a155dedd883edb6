// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_ROPE_HPP
#define KOKKOSNN_TEST_SUPPORT_ROPE_HPP

#include "check.hpp"

#include "../reference/rope.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::RopeForm;
using KokkosNN::RopeOptions;

inline constexpr RopeForm all_rope_forms[] = {RopeForm::half_rotated, RopeForm::interleaved};

/// Where positions come from: the index, or a View.
enum class PositionsOf { index, sequence, batch };

/// Arguments of a trial of a rotary embedding, besides the places of x and y.
struct RopeCase {
  RopeOptions options       = {};
  bool has_tables           = true;
  bool is_backward          = false;
  bool is_in_place          = false;
  PositionsOf positions     = PositionsOf::index;
  bool has_32_bits          = false;  ///< positions of a View
  std::int64_t far          = 0;      ///< added to the positions of a View
  std::int64_t table_stride = 1;      ///< of the columns of tables
  int misalignment          = 0;
};

/// The promised error: with tables, and without.
template <class T>
constexpr double rope_promise(bool has_tables) {
  return is_16_bit<T> ? 1 : has_tables ? 2 : 4;
}

/// One rotary embedding on tensors of its own: x filled, y poisoned and guarded, results against the reference.
template <class T, int Rank>
class RopeTrial {
 public:
  using A = KokkosNN::accumulator_t<T>;

  RopeTrial(Placement x_place, Placement y_place, const RopeCase& given, Recipe recipe = Recipe::uniform)
      : m_given(given),
        m_x_place(std::move(x_place)),
        m_y_place(std::move(y_place)),
        m_sequence(sequence_axis()),
        m_batch(m_sequence == 0 && Rank > 2 ? 1 : 0),
        m_dim(m_x_place.extents[Rank - 1]),
        m_rotary(given.options.rotary_dims == 0 ? m_dim : given.options.rotary_dims),
        m_x(m_x_place.span(), given.misalignment),
        m_y(m_y_place.span(), given.misalignment),
        m_table_rows(std::max<std::int64_t>(0, given.options.position_offset) + length() + 11),
        m_tables_place{{m_table_rows, m_rotary / 2}, {m_rotary / 2 * given.table_stride + 3, given.table_stride}, 0},
        m_cos(m_tables_place.span()),
        m_sin(m_tables_place.span()),
        m_positions("positions", positions_count()),
        m_narrow("positions", positions_count()) {
    fill(m_x.host(), m_x_place, Rank - 1, recipe);
    m_x.upload();
    fill_positions();
    if (given.has_tables) fill_tables();
  }

  Buffer<T>& x() { return m_x; }
  Buffer<T>& y() { return m_y; }
  const Placement& x_place() const { return m_x_place; }

  auto x_view() const { return strided_view<Rank>(static_cast<const T*>(m_x.device()), m_x_place); }
  auto y_view() const {
    return m_given.is_in_place ? strided_view<Rank>(m_x.device(), m_x_place)
                               : strided_view<Rank>(m_y.device(), m_y_place);
  }
  auto cos_view() const { return strided_view<2>(static_cast<const A*>(m_cos.device()), m_tables_place); }
  auto sin_view() const { return strided_view<2>(static_cast<const A*>(m_sin.device()), m_tables_place); }
  std::int64_t table_rows() const { return m_table_rows; }

  /// Position of a View, by its number.
  std::int64_t& position(std::int64_t number) { return m_host_positions[static_cast<std::size_t>(number)]; }
  void upload_positions() {
    const auto wide   = Kokkos::create_mirror(m_positions);
    const auto narrow = Kokkos::create_mirror(m_narrow);
    for (std::size_t i = 0; i < m_host_positions.size(); ++i) {
      wide(i)   = m_host_positions[i];
      narrow(i) = static_cast<std::int32_t>(m_host_positions[i]);
    }
    Kokkos::deep_copy(m_positions, wide);
    Kokkos::deep_copy(m_narrow, narrow);
  }

  /// The call alone.
  void call(const Exec& exec = Exec()) const {
    if (m_given.positions == PositionsOf::index) return call_with(exec, KokkosNN::no_view);
    m_given.has_32_bits ? call_at(exec, m_narrow) : call_at(exec, m_positions);
  }

  ::testing::AssertionResult run_correct() {
    const std::vector<T> before(m_x.host(), m_x.host() + m_x.count());
    m_y.poison_all();
    call();
    Exec().fence();
    m_x.download();
    m_y.download();
    const bool in_place = m_given.is_in_place;
    Buffer<T>& result   = in_place ? m_x : m_y;
    const Placement& at = in_place ? m_x_place : m_y_place;
    if (!gaps_intact(result, at)) return ::testing::AssertionFailure() << "something outside y was written";
    if (!in_place && unwritten(result, at) > 0) return ::testing::AssertionFailure() << "elements were not written";
    return correct(before.data(), result.host(), at);
  }

  /// The largest error of rotated elements, and that the others were copied.
  ::testing::AssertionResult correct(const T* x, const T* y, const Placement& y_place) const {
    Errors errors;
    std::int64_t changed = 0;
    for_each_row(y_place, [&](std::int64_t x_row, std::int64_t y_row, std::int64_t number, std::int64_t position) {
      const auto x_at = [&](std::int64_t i) { return x[x_row + i * m_x_place.strides[Rank - 1]]; };
      const auto y_at = [&](std::int64_t i) { return y[y_row + i * y_place.strides[Rank - 1]]; };
      for (std::int64_t i = 0; i < m_rotary / 2; ++i) {
        const auto [first, second] = Reference::pair_of(m_given.options.form, m_rotary, i);
        const auto [cos, sin]      = angle(i, position);
        const Real radians = m_given.has_tables ? 0 : Reference::angle_of(m_given.options, m_rotary, i, position);
        const Real a = exact(x_at(first)), b = exact(x_at(second));
        compare(errors, y_at(first), Reference::rotated(a, b, cos, sin, radians), number, first);
        compare(errors, y_at(second), Reference::rotated(b, a, cos, -sin, radians), number, second);
      }
      for (std::int64_t i = m_rotary; i < m_dim; ++i) changed += !same_bits(x_at(i), y_at(i));
    });
    if (changed > 0) return ::testing::AssertionFailure() << changed << " elements were not copied";
    if (errors.max_ulp <= rope_promise<T>(m_given.has_tables)) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << errors.worst;
  }

 private:
  using Real = Reference::Real;

  int sequence_axis() const {
    const int axis = m_given.options.sequence_axis;
    if (Rank == 2 && axis == -3) return 0;
    return axis < 0 ? axis + Rank : axis;
  }
  std::int64_t length() const { return m_x_place.extents[m_sequence]; }
  std::size_t positions_count() const {
    if (m_given.positions == PositionsOf::index) return 0;
    const std::int64_t batches = m_given.positions == PositionsOf::batch ? m_x_place.extents[m_batch] : 1;
    return static_cast<std::size_t>(length() * batches);
  }

  void fill_positions() {
    for (std::size_t i = 0; i < positions_count(); ++i) {
      const auto within = static_cast<std::int64_t>(i * 37 + 5) % (length() + 11);
      m_host_positions.push_back(within + m_given.far);
    }
    upload_positions();
  }

  void fill_tables() {
    for (std::int64_t p = 0; p < m_table_rows; ++p) {
      for (std::int64_t i = 0; i < m_rotary / 2; ++i) {
        const Real angle       = Reference::angle_of(m_given.options, m_rotary, i, p);
        m_cos.host()[at(p, i)] = static_cast<A>(std::cos(angle));
        m_sin.host()[at(p, i)] = static_cast<A>(std::sin(angle));
      }
    }
    m_cos.upload();
    m_sin.upload();
  }
  std::int64_t at(std::int64_t p, std::int64_t i) const {
    return p * m_tables_place.strides[0] + i * m_tables_place.strides[1];
  }

  /// Cosine and sine that a call rotates by; the gradient's sine is the negative one.
  std::pair<Real, Real> angle(std::int64_t i, std::int64_t position) const {
    const Real sign = m_given.is_backward ? -1 : 1;
    if (!m_given.has_tables) {
      const Real angle = Reference::angle_of(m_given.options, m_rotary, i, position);
      return {std::cos(angle), sign * std::sin(angle)};
    }
    if (position < 0 || position >= m_table_rows) return {std::nanl(""), std::nanl("")};
    return {exact(m_cos.host()[at(position, i)]), sign * exact(m_sin.host()[at(position, i)])};
  }

  void compare(Errors& errors, T value, const Reference::Rotated& expected, std::int64_t row, std::int64_t col) const {
    // Without tables a cosine near 0 is as good as a number of 2^-24's size.
    const Real least     = std::ldexp(expected.element, -Format<A>::digits);
    const Real magnitude = m_given.has_tables ? expected.term : std::max(expected.term, least);
    const Real distance  = exact(value) - expected.value;
    const Real nearest   = std::isfinite(distance)
                               ? expected.value + std::clamp(distance, -expected.uncertainty, expected.uncertainty)
                               : expected.value;
    const double ulp     = ulp_error<T>(exact(value), nearest, std::isfinite(magnitude) ? magnitude : Real(0));
    errors.add(ulp, row, col, exact(value), expected.value);
  }

  /// f(offset in x, offset in y, number of the row, position)
  template <class F>
  void for_each_row(const Placement& y_place, const F& f) const {
    const Placement x_rows = m_x_place.without(Rank - 1), y_rows = y_place.without(Rank - 1);
    if (m_x_place.count() == 0) return;
    for_each_index(x_rows, y_rows, [&](std::int64_t x_row, std::int64_t y_row, std::int64_t number) {
      std::int64_t index[Rank] = {}, left = number;
      for (int d = Rank - 2; d >= 0; --d) {
        index[d] = left % x_rows.extents[d];
        left /= x_rows.extents[d];
      }
      const std::int64_t s = index[m_sequence], batch = index[m_batch];
      const std::int64_t place = m_given.positions == PositionsOf::batch ? batch * length() + s : s;
      const std::int64_t position =
          m_given.positions == PositionsOf::index ? s : m_host_positions[static_cast<std::size_t>(place)];
      // As the call adds them: a sum beyond 64 bits is no row of the tables.
      const auto sum =
          static_cast<std::uint64_t>(position) + static_cast<std::uint64_t>(m_given.options.position_offset);
      f(x_row, y_row, number, static_cast<std::int64_t>(sum));
    });
  }

  template <class PositionsView>
  void call_at(const Exec& exec, const PositionsView& positions) const {
    const auto* const data = positions.data();
    if (m_given.positions == PositionsOf::sequence) return call_with(exec, strided_view<1>(data, right({length()})));
    if constexpr (Rank > 2) call_with(exec, strided_view<2>(data, right({m_x_place.extents[m_batch], length()})));
  }

  template <class Positions>
  void call_with(const Exec& exec, const Positions& positions) const {
    const auto& options = m_given.options;
    if (m_given.has_tables) {
      m_given.is_backward
          ? KokkosNN::rope_backward(exec, x_view(), cos_view(), sin_view(), y_view(), options, positions)
          : KokkosNN::rope(exec, x_view(), cos_view(), sin_view(), y_view(), options, positions);
    } else {
      m_given.is_backward ? KokkosNN::rope_backward(exec, x_view(), y_view(), options, positions)
                          : KokkosNN::rope(exec, x_view(), y_view(), options, positions);
    }
  }

  RopeCase m_given;
  Placement m_x_place;
  Placement m_y_place;
  int m_sequence;
  int m_batch;
  std::int64_t m_dim;
  std::int64_t m_rotary;
  Buffer<T> m_x;
  Buffer<T> m_y;
  std::int64_t m_table_rows;
  Placement m_tables_place;
  Buffer<A> m_cos;
  Buffer<A> m_sin;
  std::vector<std::int64_t> m_host_positions;
  Kokkos::View<std::int64_t*, Memory> m_positions;
  Kokkos::View<std::int32_t*, Memory> m_narrow;
};

/// Dense tensors of x's extents.
template <class T, int Rank>
RopeTrial<T, Rank> dense_rope(const std::vector<std::int64_t>& extents, const RopeCase& given) {
  return RopeTrial<T, Rank>(right(extents), right(extents), given);
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_ROPE_HPP
