// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_MASKED_HPP
#define KOKKOSNN_TEST_SUPPORT_MASKED_HPP

#include "check.hpp"
#include "strategies.hpp"
#include "tensor.hpp"
#include "types.hpp"

#include "../reference/masked_softmax.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::AdditiveBias;
using KokkosNN::Alibi;
using KokkosNN::BooleanMask;
using KokkosNN::CausalMask;
using KokkosNN::MaskedSoftmaxOptions;
using KokkosNN::masks;
using KokkosNN::RowLengths;
using KokkosNN::SlidingWindow;
using Reference::Real;

/// An element of x by its axes; those that x lacks are 0.
struct At {
  std::int64_t batch = 0;
  std::int64_t head  = 0;
  std::int64_t query = 0;
  std::int64_t key   = 0;

  static At of(const std::vector<std::int64_t>& row, std::int64_t key) {
    const auto from_end = [&](std::size_t n) { return row.size() >= n ? row[row.size() - n] : 0; };
    return {from_end(3), from_end(2), from_end(1), key};
  }
};

/// The index behind this one, last axis fastest.
inline void next(std::vector<std::int64_t>& index, const Placement& place) {
  for (int d = place.rank() - 1; d >= 0 && ++index[d] == place.extents[d]; --d) index[d] = 0;
}

/// Meaning of a mask, stated independently of the library.
struct Meaning {
  std::function<bool(const At&)> allows = [](const At&) { return true; };
  std::function<Real(const At&)> adds   = nullptr;  ///< to the logit
  std::vector<double> sinks             = {};       ///< one a head
  std::function<Real(const At&)> scales = nullptr;  ///< x, beside options.scale
};

/// A View of a mask with its values on host and device; what lies between them are large numbers.
template <class T, int Rank>
class MaskData {
 public:
  MaskData(Placement place, const std::function<T(const std::vector<std::int64_t>&)>& value, int misalignment = 0)
      : m_place(std::move(place)),
        m_first(misalignment),
        m_device("MaskData", static_cast<std::size_t>(m_place.span() + misalignment)),
        m_host(Kokkos::create_mirror(m_device)) {
    std::memset(static_cast<void*>(m_host.data()), 0x7f, m_host.size() * sizeof(T));
    std::vector<std::int64_t> index(m_place.extents.size(), 0);
    for_each_index(m_place, m_place, [&](std::int64_t offset, std::int64_t, std::int64_t) {
      m_host.data()[m_first + offset] = value(index);
      next(index, m_place);
    });
    Kokkos::deep_copy(m_device, m_host);
  }

  auto view() const { return strided_view<Rank>(static_cast<const T*>(m_device.data() + m_first), m_place); }

  T operator()(const std::vector<std::int64_t>& index) const {
    std::int64_t offset = m_first + m_place.origin;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * m_place.strides[d];
    return m_host.data()[offset];
  }

 private:
  Placement m_place;
  std::int64_t m_first;
  Kokkos::View<T*, Memory> m_device;
  typename Kokkos::View<T*, Memory>::host_mirror_type m_host;
};

/// Noise that depends on the index alone.
inline double noise_at(const std::vector<std::int64_t>& index, double size) {
  std::uint32_t seed = 12345;
  for (const std::int64_t i : index) seed = 1103515245u * seed + static_cast<std::uint32_t>(i) + 7u;
  return size * noise_of(random_bits(seed));
}

/// One masked call on tensors of its own: x filled, y poisoned and guarded, results against the reference.
template <class X, class Y = X, int Rank = 4, RowOperator Op = RowOperator::masked_softmax>
class MaskedTrial {
 public:
  static constexpr bool has_values = Op == RowOperator::masked_logsumexp;

  MaskedTrial(Placement x_place, Placement y_place, Recipe recipe = Recipe::uniform, int misalignment = 0)
      : m_x_place(std::move(x_place)),
        m_y_place(std::move(y_place)),
        m_x(m_x_place.span(), misalignment),
        m_y(m_y_place.span(), misalignment) {
    fill(m_x.host(), m_x_place, -1, recipe);
    m_x.upload();
  }
  explicit MaskedTrial(std::vector<std::int64_t> extents, Recipe recipe = Recipe::uniform)
      : MaskedTrial(right(extents), results_of(right(extents)), recipe) {}

  /// Where the results of such an x lie, one after the other.
  static Placement results_of(const Placement& x) {
    return right(has_values ? x.without(Rank - 1).extents : x.extents);
  }

  Buffer<X>& x() { return m_x; }
  Buffer<Y>& y() { return m_y; }
  const Placement& x_place() const { return m_x_place; }
  const Placement& y_place() const { return m_y_place; }
  auto x_view() const { return strided_view<Rank>(static_cast<const X*>(m_x.device()), m_x_place); }
  auto y_view() const { return strided_view<has_values ? Rank - 1 : Rank>(m_y.device(), m_y_place); }
  std::int64_t cols() const { return m_x_place.extents.back(); }

  /// The element of x at these indices, on the host.
  X& x_at(const std::vector<std::int64_t>& index) {
    std::int64_t offset = m_x_place.origin;
    for (int d = 0; d < Rank; ++d) offset += index[d] * m_x_place.strides[d];
    return m_x.host()[offset];
  }

  template <class M>
  RowPlan plan(const M& mask, const MaskedSoftmaxOptions& options = {}) const {
    return KokkosNN::make_plan(Op, Exec(), x_view(), mask, y_view(), options);
  }

  template <class M>
  void call(const M& mask, const MaskedSoftmaxOptions& options = {}) const {
    const Exec exec;
    apply(exec, x_view(), mask, y_view(), options);
    exec.fence("MaskedTrial::call");
  }

  /// The public function of the operator.
  template <class Execution, class XView, class M, class YView>
  static void apply(const Execution& exec, const XView& x, const M& mask, const YView& y,
                    const MaskedSoftmaxOptions& options) {
    if constexpr (Op == RowOperator::masked_softmax) KokkosNN::masked_softmax(exec, x, mask, y, options);
    if constexpr (Op == RowOperator::masked_log_softmax) KokkosNN::masked_log_softmax(exec, x, mask, y, options);
    if constexpr (Op == RowOperator::masked_logsumexp) KokkosNN::masked_logsumexp(exec, x, mask, y, options);
  }

  template <class M>
  void run(const M& mask, const MaskedSoftmaxOptions& options = {}) {
    m_y.poison_all();
    call(mask, options);
    m_y.download();
  }

  /// Everything that must hold after a run.
  ::testing::AssertionResult correct(const Meaning& meaning, const MaskedSoftmaxOptions& options = {}) const {
    if (!gaps_intact(m_y, m_y_place)) return ::testing::AssertionFailure() << "something outside y was written";
    if (const auto n = unwritten(m_y, m_y_place)) return ::testing::AssertionFailure() << n << " elements not written";
    return correct(m_y.host(), m_y_place, m_x.host(), meaning, options);
  }

  /// True if y is the result of inputs x within the promised error.
  ::testing::AssertionResult correct(const Y* y, const Placement& y_place, const X* x, const Meaning& meaning,
                                     const MaskedSoftmaxOptions& options) const {
    Errors errors;
    double allowance = promise;
    for_rows([&](const std::vector<std::int64_t>& row, std::int64_t x_offset, std::int64_t number) {
      double magnitude    = 1;
      const auto expected = expected_row(x + x_offset, row, meaning, options, allowance, &magnitude);
      std::int64_t y_row  = y_place.origin;
      for (std::size_t d = 0; d < row.size(); ++d) y_row += row[d] * y_place.strides[d];
      for (std::size_t k = 0; k < expected.size(); ++k) {
        const auto column       = static_cast<std::int64_t>(k);
        const long double value = exact(y[y_row + (has_values ? 0 : column * y_place.strides.back())]);
        const double ulp        = Op == RowOperator::masked_softmax ? probability_error<Y>(value, expected[k])
                                                                    : ulp_error<Y>(value, expected[k], magnitude);
        errors.add(ulp, number, column, value, expected[k]);
      }
    });
    if (!(errors.max_ulp <= allowance)) {
      return ::testing::AssertionFailure() << errors.worst << ", allowed are " << allowance;
    }
    return ::testing::AssertionSuccess();
  }

  template <class M>
  ::testing::AssertionResult run_correct(const M& mask, const Meaning& meaning,
                                         const MaskedSoftmaxOptions& options = {}) {
    run(mask, options);
    return correct(meaning, options);
  }

  /// f(indices of the row, offset of its first x, its number)
  template <class F>
  void for_rows(const F& f) const {
    const Placement rows = m_x_place.without(Rank - 1);
    std::vector<std::int64_t> index(rows.extents.size(), 0);
    for_each_index(rows, rows, [&](std::int64_t offset, std::int64_t, std::int64_t number) {
      f(index, offset, number);
      next(index, rows);
    });
  }

  /// The oracle's row, of a log-sum-exp one value; `allowance` grows by what rounding its logits costs, and
  /// `magnitude` to that of the largest logit where that is what an error is measured by.
  std::vector<Real> expected_row(const X* x, const std::vector<std::int64_t>& row, const Meaning& meaning,
                                 const MaskedSoftmaxOptions& options, double& allowance,
                                 double* magnitude = nullptr) const {
    std::vector<Real> z(cols());
    std::vector<bool> allowed(cols());
    for (std::int64_t k = 0; k < cols(); ++k) {
      const At at    = At::of(row, k);
      allowed[k]     = meaning.allows(at);
      const Real own = meaning.scales ? Real(meaning.scales(at)) : Real(1);
      z[k]           = Reference::capped(own * exact(x[k * m_x_place.strides.back()]), options.scale, options.softcap);
      // The terms that are rounded may be larger than the logit: a bias can be next to minus the capped x.
      const Real added = meaning.adds ? Real(meaning.adds(at)) : Real(0);
      const Real size  = std::fabs(z[k]) + std::fabs(added);
      z[k] += added;
      const bool is_rounded =
          (meaning.adds || meaning.scales || options.softcap != 0) && allowed[k] && std::isfinite(z[k]);
      if (is_rounded && !is_16_bit<Y>) {
        const double roundings = options.softcap != 0 ? 6 : 3;  // a softcap adds those of two products and of tanh
        allowance              = std::max(allowance, promise + roundings * static_cast<double>(size));
      }
    }
    const Real sink = meaning.sinks.empty() ? -Reference::infinity : Real(meaning.sinks[At::of(row, 0).head]);
    if constexpr (Op == RowOperator::masked_softmax) {
      return Reference::masked_softmax(z, allowed, sink, options.masked_row);
    } else if constexpr (Op == RowOperator::masked_log_softmax) {
      return Reference::masked_log_softmax(z, allowed, sink, options.masked_row);
    } else {
      const Real max = Reference::masked_sum(z, allowed, sink).max;
      if (magnitude != nullptr && std::isfinite(max)) *magnitude = std::max(1.0, double(std::fabs(max)));
      return {Reference::masked_logsumexp(z, allowed, sink)};
    }
  }

 private:
  static constexpr double promise = Op == RowOperator::masked_softmax ? promised_ulp<Y> : promised_log_ulp<Y>;

  Placement m_x_place;
  Placement m_y_place;
  Buffer<X> m_x;
  Buffer<Y> m_y;
};

/// The options with a strategy forced.
inline MaskedSoftmaxOptions on(RowStrategy strategy, MaskedSoftmaxOptions options = {}) {
  options.plan.strategy = strategy;
  return options;
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_MASKED_HPP
