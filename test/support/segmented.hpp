// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_SEGMENTED_HPP
#define KOKKOSNN_TEST_SUPPORT_SEGMENTED_HPP

#include "check.hpp"
#include "gradient.hpp"

#include "../reference/gradients.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::SegmentedOptions;
using Lengths = std::vector<std::int64_t>;

/// The public function of an operator on ragged rows.
template <RowOperator Op, class Execution, class XView, class OffsetsView, class YView>
void apply_segmented(const Execution& exec, const XView& x, const OffsetsView& offsets, const YView& y,
                     const SegmentedOptions& options = {}) {
  if constexpr (Op == RowOperator::softmax) KokkosNN::segmented_softmax(exec, x, offsets, y, options);
  if constexpr (Op == RowOperator::log_softmax) KokkosNN::segmented_log_softmax(exec, x, offsets, y, options);
  if constexpr (Op == RowOperator::logsumexp) KokkosNN::segmented_logsumexp(exec, x, offsets, y, options);
}

template <class Offset>
using OffsetsView = Kokkos::View<Offset*, Memory>;

/// These offsets, whatever they are.
template <class Offset>
OffsetsView<const Offset> raw_offsets(const std::vector<Offset>& values) {
  const OffsetsView<Offset> offsets("offsets", values.size());
  const auto host = Kokkos::create_mirror_view(offsets);
  for (std::size_t i = 0; i < values.size(); ++i) host(i) = values[i];
  Kokkos::deep_copy(offsets, host);
  return offsets;
}

/// Where rows of these lengths begin, from `first` on, and where the last ends.
template <class Offset = int>
OffsetsView<const Offset> offsets_of(const Lengths& lengths, std::int64_t first = 0) {
  std::vector<Offset> offsets{static_cast<Offset>(first)};
  for (const std::int64_t length : lengths) {
    first += length;
    offsets.push_back(static_cast<Offset>(first));
  }
  return raw_offsets(offsets);
}

inline std::int64_t total(const Lengths& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), std::int64_t(0));
}

/// Reproducible lengths, uniform in [least, most].
inline Lengths random_lengths(std::int64_t rows, std::int64_t least, std::int64_t most, std::uint32_t seed = 1) {
  std::mt19937 engine(seed);
  Lengths lengths(rows);
  for (auto& length : lengths) length = least + static_cast<std::int64_t>(engine() % (most - least + 1));
  return lengths;
}

/// The promised error of ragged rows: that of all rows, but for softmax of floats on CUDA (segmented.hpp).
template <RowOperator Op, class Y>
inline constexpr double ragged_promise = Op == RowOperator::softmax && std::is_same_v<Y, float> &&
                                                 KokkosNN::Impl::backend_of<Exec>() == KokkosNN::Backend::cuda
                                             ? 5.0
                                             : promise<Op, Y>;

/// One call on ragged rows of its own: values filled row by row, `before` and `after` elements that belong to no row
/// around them; the output poisoned and guarded.
template <RowOperator Op, class T, class Offset = int, class Y = T>
class SegmentedTrial {
 public:
  static constexpr bool is_lse = Op == RowOperator::logsumexp;

  explicit SegmentedTrial(Lengths lengths, Recipe recipe = Recipe::uniform, int misalignment = 0,
                          int y_misalignment = 0, std::int64_t before = 0, std::int64_t after = 0)
      : m_lengths(std::move(lengths)),
        m_before(before),
        m_offsets(offsets_of<Offset>(m_lengths, before)),
        m_x(before + total(m_lengths) + after, misalignment),
        m_y(is_lse ? std::int64_t(m_lengths.size()) : m_x.count(), y_misalignment) {
    std::int64_t at = before;
    for (std::size_t row = 0; row < m_lengths.size(); ++row) {
      InputRow values(recipe, static_cast<std::int64_t>(row), m_lengths[row]);
      for (std::int64_t i = 0; i < m_lengths[row]; ++i) m_x.host()[at++] = static_cast<T>(values.next());
    }
    m_x.upload();
  }

  Buffer<T>& x() { return m_x; }
  Buffer<Y>& y() { return m_y; }
  const Lengths& lengths() const { return m_lengths; }

  auto x_view() const { return vector(static_cast<const T*>(m_x.device()), m_x.count()); }
  auto y_view() const { return vector(m_y.device(), m_y.count()); }
  const auto& offsets() const { return m_offsets; }

  void call(const SegmentedOptions& options = {}, const Exec& exec = Exec()) const {
    apply_segmented<Op>(exec, x_view(), m_offsets, y_view(), options);
  }

  ::testing::AssertionResult run_correct(const SegmentedOptions& options = {}) {
    m_y.poison_all();
    call(options);
    Exec().fence();
    m_y.download();
    return correct(options);
  }

  ::testing::AssertionResult run_in_place_correct(const SegmentedOptions& options = {})
    requires(!is_lse)
  {
    const std::vector<T> before(m_x.host(), m_x.host() + m_x.count());
    const auto view = vector(m_x.device(), m_x.count());
    apply_segmented<Op>(Exec(), view, m_offsets, view, options);
    Exec().fence();
    m_x.download();
    if (!m_x.guards_intact()) return ::testing::AssertionFailure() << "something outside was written";
    return close(before.data(), m_x.host(), options);
  }

  /// Everything that must hold after a run.
  ::testing::AssertionResult correct(const SegmentedOptions& options = {}) const {
    if (!m_y.guards_intact()) return ::testing::AssertionFailure() << "something outside the output was written";
    if (!is_lse) {
      const std::int64_t end = m_before + total(m_lengths);
      for (std::int64_t i = 0; i < m_y.count(); ++i) {
        if ((i < m_before || i >= end) && !same_bits(m_y.host()[i], poison<Y>())) {
          return ::testing::AssertionFailure() << "element " << i << " of no row was written";
        }
      }
    }
    return close(m_x.host(), m_y.host(), options);
  }

 private:
  template <class U>
  static auto vector(U* data, std::int64_t count) {
    return UnmanagedView<U, 1, Kokkos::LayoutRight>(data, static_cast<std::size_t>(count));
  }

  ::testing::AssertionResult close(const T* x, const Y* y, const SegmentedOptions& options) const {
    const SoftmaxOptions plain{.scale = options.scale, .masked_row = options.masked_row};
    Errors errors;
    std::int64_t at = m_before;
    for (std::size_t row = 0; row < m_lengths.size(); ++row) {
      const Y* const result = is_lse ? y + row : y + at;
      if (is_lse || m_lengths[row] > 0) {
        compare_row<Op>(Reference::Row<T>{x + at, m_lengths[row]}, result, 1, static_cast<std::int64_t>(row), plain,
                        errors);
      }
      at += m_lengths[row];
    }
    if (errors.max_ulp <= ragged_promise<Op, Y>) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << errors.worst;
  }

  Lengths m_lengths;
  std::int64_t m_before;
  OffsetsView<const Offset> m_offsets;
  Buffer<T> m_x;
  Buffer<Y> m_y;
};

/// One gradient on ragged rows: y rounded from the forward formula, dy noise.
template <RowOperator Op, class T>
class SegmentedGradientTrial {
 public:
  explicit SegmentedGradientTrial(Lengths lengths, double scale = 1, int misalignment = 0,
                                  Recipe recipe = Recipe::uniform)
      : m_lengths(std::move(lengths)),
        m_scale(scale),
        m_offsets(offsets_of<int>(m_lengths)),
        m_y(total(m_lengths), misalignment),
        m_dy(total(m_lengths), misalignment),
        m_dx(total(m_lengths), misalignment) {
    std::vector<Reference::Real> y;
    for_each_row([&](std::int64_t row, std::int64_t at, std::int64_t length) {
      InputRow logits(recipe, row, length), gradient(Recipe::uniform, row + 100000, length);
      std::vector<T> x(length);
      for (T& value : x) value = static_cast<T>(logits.next());
      const Reference::Row<T> x_row{x.data(), length};
      if (Op == RowOperator::softmax_backward) Reference::softmax(x_row, scale, MaskedRowPolicy::nan, y);
      if (Op == RowOperator::log_softmax_backward) Reference::log_softmax(x_row, scale, MaskedRowPolicy::nan, y);
      for (std::int64_t i = 0; i < length; ++i) {
        m_y.host()[at + i]  = static_cast<T>(static_cast<double>(y[i]));
        m_dy.host()[at + i] = static_cast<T>(gradient.next());
      }
    });
    upload();
  }

  Buffer<T>& y() { return m_y; }
  Buffer<T>& dy() { return m_dy; }
  Buffer<T>& dx() { return m_dx; }
  const auto& offsets() const { return m_offsets; }

  void upload() {
    m_y.upload();
    m_dy.upload();
  }

  static auto vector(const Buffer<T>& buffer) {
    return UnmanagedView<T, 1, Kokkos::LayoutRight>(buffer.device(), static_cast<std::size_t>(buffer.count()));
  }

  void call(Output output = Output::own, const Exec& exec = Exec()) const {
    const SegmentedOptions options{.scale = m_scale};
    const auto dx = vector(output == Output::own ? m_dx : (output == Output::over_x ? m_y : m_dy));
    if constexpr (Op == RowOperator::softmax_backward) {
      KokkosNN::segmented_softmax_backward(exec, vector(m_y), vector(m_dy), m_offsets, dx, options);
    } else {
      KokkosNN::segmented_log_softmax_backward(exec, vector(m_y), vector(m_dy), m_offsets, dx, options);
    }
  }

  ::testing::AssertionResult run_correct(Output output = Output::own) {
    const std::vector<T> y(m_y.host(), m_y.host() + m_y.count());
    const std::vector<T> dy(m_dy.host(), m_dy.host() + m_dy.count());
    m_dx.poison_all();
    call(output);
    Exec().fence();
    Buffer<T>& dx = output == Output::own ? m_dx : (output == Output::over_x ? m_y : m_dy);
    dx.download();
    if (!dx.guards_intact()) return ::testing::AssertionFailure() << "something outside was written";
    return close(y.data(), dy.data(), dx.host());
  }

  template <class F>
  void for_each_row(const F& f) const {
    std::int64_t at = 0;
    for (std::size_t row = 0; row < m_lengths.size(); ++row) {
      if (m_lengths[row] > 0) f(static_cast<std::int64_t>(row), at, m_lengths[row]);
      at += m_lengths[row];
    }
  }

 private:
  ::testing::AssertionResult close(const T* y, const T* dy, const T* dx) const {
    Errors errors;
    for_each_row([&](std::int64_t row, std::int64_t at, std::int64_t length) {
      const Reference::Row<T> y_row{y + at, length}, dy_row{dy + at, length};
      const auto expected = Op == RowOperator::softmax_backward
                                ? Reference::softmax_backward(y_row, dy_row, m_scale)
                                : Reference::log_softmax_backward(y_row, dy_row, m_scale);
      for (std::int64_t i = 0; i < length; ++i) {
        const auto& [want, magnitude, ill] = expected[i];
        errors.add(ulp_error<T>(exact(dx[at + i]), want, std::isfinite(magnitude) ? magnitude : 0), row, i,
                   exact(dx[at + i]), want);
      }
    });
    if (errors.max_ulp <= gradient_promise<Op, T>) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << errors.worst;
  }

  Lengths m_lengths;
  double m_scale;
  OffsetsView<const int> m_offsets;
  Buffer<T> m_y;
  Buffer<T> m_dy;
  Buffer<T> m_dx;
};

/// Calls f with each forward operator, or each gradient, as a std::integral_constant.
template <class F>
void for_each_segmented(const F& f) {
  f(std::integral_constant<RowOperator, RowOperator::softmax>{});
  f(std::integral_constant<RowOperator, RowOperator::log_softmax>{});
  f(std::integral_constant<RowOperator, RowOperator::logsumexp>{});
}
template <class F>
void for_each_segmented_gradient(const F& f) {
  f(std::integral_constant<RowOperator, RowOperator::softmax_backward>{});
  f(std::integral_constant<RowOperator, RowOperator::log_softmax_backward>{});
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_SEGMENTED_HPP
