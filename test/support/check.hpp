// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_CHECK_HPP
#define KOKKOSNN_TEST_SUPPORT_CHECK_HPP

#include "inputs.hpp"
#include "tensor.hpp"
#include "types.hpp"
#include "ulp.hpp"

#include "../reference/softmax.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::Determinism;
using KokkosNN::MaskedRowPolicy;
using KokkosNN::RowKernel;
using KokkosNN::RowOperator;
using KokkosNN::RowPlan;
using KokkosNN::RowStrategy;
using KokkosNN::SoftmaxOptions;

/// The public function of an operator, with the operator as a template parameter.
template <RowOperator Op, class Execution, class XView, class YView>
void apply(const Execution& exec, const XView& x, const YView& y, const SoftmaxOptions& options = {}) {
  if constexpr (Op == RowOperator::softmax) KokkosNN::softmax(exec, x, y, options);
  if constexpr (Op == RowOperator::log_softmax) KokkosNN::log_softmax(exec, x, y, options);
  if constexpr (Op == RowOperator::logsumexp) KokkosNN::logsumexp(exec, x, y, options);
}

/// How far results are from the reference.
struct Errors {
  double max_ulp = 0;  ///< over all elements
  std::string worst;   ///< where, what and what was expected

  void add(double ulp, std::int64_t row, std::int64_t col, long double value, long double expected) {
    if (!(ulp > max_ulp)) return;
    max_ulp = ulp;
    std::ostringstream text;
    text.precision(12);
    text << "row " << row << ", column " << col << ": " << static_cast<double>(value) << " instead of "
         << static_cast<double>(expected) << " (" << ulp << " ulp)";
    worst = text.str();
  }
};

template <class T>
long double exact(const T& value) {
  return static_cast<long double>(static_cast<double>(value));
}

/// Compares one row of results, `stride` apart, with the reference.
template <RowOperator Op, class X, class Y>
void compare_row(const Reference::Row<X>& x, const Y* y, std::int64_t y_stride, std::int64_t row,
                 const SoftmaxOptions& options, Errors& errors) {
  static thread_local std::vector<Reference::Real> expected;
  const Reference::Real scale = options.scale;
  if constexpr (Op == RowOperator::logsumexp) {
    const Reference::Real lse       = Reference::logsumexp(x, scale);
    const Reference::Real magnitude = std::max<Reference::Real>(1, Reference::magnitude_of_max(x, scale));
    errors.add(ulp_error<Y>(exact(*y), lse, magnitude), row, 0, exact(*y), lse);
  } else {
    if constexpr (Op == RowOperator::softmax) Reference::softmax(x, scale, options.masked_row, expected);
    if constexpr (Op == RowOperator::log_softmax) Reference::log_softmax(x, scale, options.masked_row, expected);
    for (std::int64_t i = 0; i < x.cols; ++i) {
      const long double value = exact(y[i * y_stride]);
      const double ulp =
          Op == RowOperator::softmax ? probability_error<Y>(value, expected[i]) : ulp_error<Y>(value, expected[i], 1);
      errors.add(ulp, row, i, value, expected[i]);
    }
  }
}

/// Compares whole tensors on the host; the reduced axis is `axis` of x.
template <RowOperator Op, class X, class Y>
Errors compare(const X* x, const Placement& x_place, const Y* y, const Placement& y_place, int axis,
               const SoftmaxOptions& options = {}) {
  Errors errors;
  if (axis < 0) axis += x_place.rank();
  const std::int64_t cols     = x_place.extents[axis];
  const bool reduces          = Op == RowOperator::logsumexp;
  const Placement y_rows      = reduces ? y_place : y_place.without(axis);
  const std::int64_t y_stride = reduces ? 0 : y_place.strides[axis];
  for_each_index(x_place.without(axis), y_rows, [&](std::int64_t x_offset, std::int64_t y_offset, std::int64_t row) {
    compare_row<Op>(Reference::Row<X>{x + x_offset, cols, x_place.strides[axis]}, y + y_offset, y_stride, row, options,
                    errors);
  });
  return errors;
}

template <RowOperator Op, class Y>
inline constexpr double promise = Op == RowOperator::softmax ? promised_ulp<Y> : promised_log_ulp<Y>;

/// Fills the tensor at `place` row by row along `axis`.
template <class T>
void fill(T* data, const Placement& place, int axis, Recipe recipe) {
  if (axis < 0) axis += place.rank();
  const Placement rows    = place.without(axis);
  const std::int64_t cols = place.extents[axis];
  for_each_index(rows, rows, [&](std::int64_t offset, std::int64_t, std::int64_t row) {
    InputRow values(recipe, row, cols);
    for (std::int64_t i = 0; i < cols; ++i) data[offset + i * place.strides[axis]] = static_cast<T>(values.next());
  });
}

/// True if all of the buffer's host copy but the elements of `place` still holds the poison.
template <class T, class Space>
bool gaps_intact(const Buffer<T, Space>& buffer, const Placement& place) {
  if (!buffer.guards_intact()) return false;
  if (place.count() == buffer.count()) return true;
  std::vector<bool> is_element(static_cast<std::size_t>(buffer.count()), false);
  for_each_index(place, place, [&](std::int64_t offset, std::int64_t, std::int64_t) { is_element[offset] = true; });
  for (std::int64_t i = 0; i < buffer.count(); ++i) {
    if (!is_element[i] && !same_bits(buffer.host()[i], poison<T>())) return false;
  }
  return true;
}

/// How many elements of `place` still hold the poison; of the host's copy.
template <class T, class Space>
std::int64_t unwritten(const Buffer<T, Space>& buffer, const Placement& place) {
  std::int64_t count = 0;
  for_each_index(place, place, [&](std::int64_t offset, std::int64_t, std::int64_t) {
    count += same_bits(buffer.host()[offset], poison<T>());
  });
  return count;
}

/// A multiple of 16 rows of so many floats, which a host's caches don't hold: it writes past them. 0 where those are
/// too large to test with, or not known.
inline std::int64_t rows_beyond_the_cache(std::int64_t cols) {
  if (on_gpu) return 112;
  const std::size_t cache = KokkosNN::device_traits(Exec()).cache;
  if (cache == 0 || cache > (std::size_t(64) << 20)) return 0;
  return (static_cast<std::int64_t>(cache / sizeof(float)) / cols / 16 + 1) * 16;
}

/// One call on tensors of its own: x filled, y poisoned and guarded, results against the reference.
template <RowOperator Op, class X, class Y = X, int Rank = 2, class Space = Memory>
class Trial {
 public:
  static constexpr int y_rank = Op == RowOperator::logsumexp ? Rank - 1 : Rank;

  /// `x_misalignment`, `y_misalignment`: elements off the alignment of an allocation.
  Trial(Placement x_place, Placement y_place, int axis, Recipe recipe = Recipe::uniform, int x_misalignment = 0,
        int y_misalignment = 0)
      : m_x_place(std::move(x_place)),
        m_y_place(std::move(y_place)),
        m_axis(axis),
        m_x(m_x_place.span(), x_misalignment),
        m_y(m_y_place.span(), y_misalignment) {
    fill(m_x.host(), m_x_place, axis, recipe);
    m_x.upload();
  }

  /// Rows x cols, dense, last axis.
  Trial(std::int64_t rows, std::int64_t cols, Recipe recipe = Recipe::uniform)
    requires(Rank == 2)
      : Trial(right({rows, cols}), Op == RowOperator::logsumexp ? right({rows}) : right({rows, cols}), -1, recipe) {}

  Buffer<X, Space>& x() { return m_x; }
  Buffer<Y, Space>& y() { return m_y; }
  const Placement& x_place() const { return m_x_place; }
  const Placement& y_place() const { return m_y_place; }

  auto x_view() const { return strided_view<Rank, Space>(static_cast<const X*>(m_x.device()), m_x_place); }
  auto y_view() const { return strided_view<y_rank, Space>(m_y.device(), m_y_place); }

  SoftmaxOptions with_axis(SoftmaxOptions options) const {
    options.axis = m_axis;
    return options;
  }

  RowPlan plan(const SoftmaxOptions& options = {}) const {
    return KokkosNN::make_plan(Op, typename Space::execution_space(), x_view(), y_view(), with_axis(options));
  }

  /// The call alone, without the copies around it.
  void call(const SoftmaxOptions& options = {}) const {
    const typename Space::execution_space exec;
    apply<Op>(exec, x_view(), y_view(), with_axis(options));
    exec.fence("Trial::call");
  }

  void run(const SoftmaxOptions& options = {}) {
    m_y.poison_all();
    call(options);
    m_y.download();
  }

  Errors errors(const SoftmaxOptions& options = {}) const {
    return compare<Op>(m_x.host(), m_x_place, m_y.host(), m_y_place, m_axis, options);
  }

  /// Everything that must hold after a run.
  ::testing::AssertionResult correct(const SoftmaxOptions& options = {}) const {
    if (!gaps_intact(m_y, m_y_place)) return ::testing::AssertionFailure() << "something outside y was written";
    if (const auto n = unwritten(m_y, m_y_place)) return ::testing::AssertionFailure() << n << " elements not written";
    const Errors found = errors(options);
    if (!(found.max_ulp <= promise<Op, Y>)) return ::testing::AssertionFailure() << found.worst;
    return ::testing::AssertionSuccess();
  }

  ::testing::AssertionResult run_correct(const SoftmaxOptions& options = {}) {
    run(options);
    return correct(options);
  }

 private:
  Placement m_x_place;
  Placement m_y_place;
  int m_axis;
  Buffer<X, Space> m_x;
  Buffer<Y, Space> m_y;
};

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_CHECK_HPP
