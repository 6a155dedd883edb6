// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_CROSS_ENTROPY_HPP
#define KOKKOSNN_TEST_SUPPORT_CROSS_ENTROPY_HPP

#include "check.hpp"
#include "recorder.hpp"
#include "strategies.hpp"

#include "../reference/cross_entropy.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::CrossEntropyOptions;
using KokkosNN::Reduction;

/// The strategies that a cross entropy can be forced on; the backward keeps nothing of a row.
inline const std::vector<RowStrategy>& loss_strategies_of(RowOperator op) {
  const auto of = [](RowOperator rows) {
    return strategies_with_kernels(rows,
                                   {RowStrategy::vector_lanes, RowStrategy::team_scratch, RowStrategy::team_registers,
                                    RowStrategy::team_online, RowStrategy::split_row});
  };
  static const std::vector<RowStrategy> losses         = of(RowOperator::cross_entropy);
  static const std::vector<RowStrategy> with_gradients = of(RowOperator::cross_entropy_with_gradient);
  static const std::vector<RowStrategy> elementwise =
      strategies_here({RowStrategy::vector_lanes, RowStrategy::team_online, RowStrategy::split_row});
  if (op == RowOperator::cross_entropy_backward) return elementwise;
  return op == RowOperator::cross_entropy ? losses : with_gradients;
}

/// One cross entropy on tensors of its own: logits by a recipe, labels scattered with every seventh row ignored, class
/// weights if they are asked for, outputs poisoned and guarded.
template <RowOperator Op, class X, class LabelType = std::int64_t, int Rank = 2, class Y = X>
class LossTrial {
 public:
  using A                                 = KokkosNN::accumulator_t<X>;
  static constexpr bool has_gradient      = Op != RowOperator::cross_entropy;
  static constexpr bool is_backward       = Op == RowOperator::cross_entropy_backward;
  static constexpr std::int64_t scattered = 31;

  LossTrial(Placement logits_place, Placement dlogits_place, const CrossEntropyOptions& call_options = {},
            bool is_weighted = false, Recipe recipe = Recipe::uniform, int misalignment = 0)
      : options(call_options),
        m_place(std::move(logits_place)),
        m_dlogits_place(std::move(dlogits_place)),
        m_rows_place(right(m_place.without(Rank - 1).extents)),
        m_rows(m_rows_place.count()),
        m_cols(m_place.extents.back()),
        m_weighted(is_weighted),
        m_logits(m_place.span(), misalignment),
        m_dlogits(m_dlogits_place.span(), misalignment),
        m_loss(options.reduction == Reduction::none ? m_rows : 1),
        m_lse(m_rows),
        m_weights(m_cols),
        m_labels("labels", static_cast<std::size_t>(m_rows)),
        m_host_labels(Kokkos::create_mirror(m_labels)) {
    fill(m_logits.host(), m_place, Rank - 1, recipe);
    for (std::int64_t row = 0; row < m_rows; ++row) {
      const std::int64_t label =
          row % 7 == 3 ? options.ignore_index : row * scattered % std::max<std::int64_t>(1, m_cols);
      m_host_labels(row) = static_cast<LabelType>(label);
    }
    for (std::int64_t c = 0; c < m_cols; ++c) m_weights.host()[c] = A(0.25) + A(c % 5) / 2;
    upload();
  }

  /// Rows x cols, dense.
  LossTrial(std::int64_t rows, std::int64_t cols, const CrossEntropyOptions& call_options = {},
            bool is_weighted = false, Recipe recipe = Recipe::uniform)
    requires(Rank == 2)
      : LossTrial(right({rows, cols}), right({rows, cols}), call_options, is_weighted, recipe) {}

  CrossEntropyOptions options;

  Buffer<X>& logits() { return m_logits; }
  Buffer<Y>& dlogits() { return m_dlogits; }
  Buffer<A>& loss() { return m_loss; }
  Buffer<A>& lse() { return m_lse; }
  Buffer<A>& weights() { return m_weights; }
  LabelType& label(std::int64_t row) { return m_host_labels(row); }

  /// Inputs to the device. The backward's are a gradient of the loss and the log-sum-exps.
  void upload() {
    m_logits.upload();
    m_weights.upload();
    Kokkos::deep_copy(m_labels, m_host_labels);
    if constexpr (is_backward) {
      for (std::int64_t i = 0; i < m_loss.count(); ++i) m_loss.host()[i] = A(1) + A(i % 4) / 4;
      for_each_row([&](std::int64_t row, const Reference::Row<X>& x, std::int64_t) {
        const auto lse    = Reference::lse_of(Reference::capped_logits(x, options.softcap)).value;
        m_lse.host()[row] = static_cast<A>(lse);
      });
      m_loss.upload();
      m_lse.upload();
    }
  }

  auto logits_view() const { return strided_view<Rank>(static_cast<const X*>(m_logits.device()), m_place); }
  auto labels_view() const {
    return strided_view<Rank - 1>(static_cast<const LabelType*>(m_labels.data()), m_rows_place);
  }
  auto lse_view() const { return strided_view<Rank - 1>(m_lse.device(), m_rows_place); }
  auto weights_view() const { return strided_view<1>(static_cast<const A*>(m_weights.device()), right({m_cols})); }
  auto dlogits_view(bool in_place = false) const {
    if (in_place) return strided_view<Rank>(reinterpret_cast<Y*>(m_logits.device()), m_place);
    return strided_view<Rank>(m_dlogits.device(), m_dlogits_place);
  }

  /// The call alone.
  void call(bool in_place = false, const Exec& exec = Exec()) const {
    const auto with_weights = [&](const auto& loss) {
      m_weighted ? call_with(exec, loss, weights_view(), in_place) : call_with(exec, loss, KokkosNN::no_view, in_place);
    };
    if (options.reduction == Reduction::none) {
      with_weights(strided_view<Rank - 1>(m_loss.device(), m_rows_place));
    } else {
      with_weights(strided_view<0>(m_loss.device(), Placement{}));
    }
  }

  void run(bool in_place = false) {
    if constexpr (!is_backward) {
      m_loss.poison_all();
      m_lse.poison_all();
    }
    m_dlogits.poison_all();
    call(in_place);
    Exec().fence();
    if (in_place) {
      m_before.assign(m_logits.host(), m_logits.host() + m_logits.count());
      m_logits.download();
    }
    m_loss.download();
    m_lse.download();
    m_dlogits.download();
  }

  /// Everything that must hold after a run.
  ::testing::AssertionResult correct(bool in_place = false) const {
    if constexpr (!is_backward) {
      if (!gaps_intact(m_loss, right({m_loss.count()})) || !gaps_intact(m_lse, m_rows_place)) {
        return ::testing::AssertionFailure() << "something outside loss or lse was written";
      }
      if (unwritten(m_loss, right({m_loss.count()})) + unwritten(m_lse, m_rows_place) > 0) {
        return ::testing::AssertionFailure() << "a loss or an lse was not written";
      }
    }
    if constexpr (has_gradient) {
      if (in_place ? !gaps_intact(m_logits, m_place) : !gaps_intact(m_dlogits, m_dlogits_place)) {
        return ::testing::AssertionFailure() << "something outside dlogits was written";
      }
      if (!in_place && unwritten(m_dlogits, m_dlogits_place) > 0) {
        return ::testing::AssertionFailure() << "an element of dlogits was not written";
      }
    }
    return close(in_place);
  }

  ::testing::AssertionResult run_correct(bool in_place = false) {
    run(in_place);
    return correct(in_place);
  }

  /// Runs the strategy and asserts that exactly its kernel ran and was right.
  ::testing::AssertionResult takes_the_path(RowStrategy strategy, bool in_place = false) {
    options.plan.strategy  = strategy;
    const std::string want = std::string("KokkosNN::") + KokkosNN::to_string(Op) + "[" + KokkosNN::to_string(strategy);
    const auto kernels     = kernels_of([&] { run(in_place); });
    const auto is_wanted   = [&](const std::string& label) { return label.rfind(want, 0) == 0; };
    if (std::count_if(kernels.begin(), kernels.end(), is_wanted) != 1) {
      return ::testing::AssertionFailure() << want << " did not run once";
    }
    const auto result = correct(in_place);
    return result ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << want << ": " << result.message();
  }

  /// Calls f(row, reference, offset of the row's gradient) for each row. `tells_lse`: the reference takes the
  /// log-sum-exps that lse() holds instead of its own. `needs_gradient`: without, the reference has none.
  template <class F>
  void for_each_reference(const F& f, bool tells_lse = is_backward, bool needs_gradient = true) const {
    std::vector<Reference::Real> weights;
    if (m_weighted) weights.assign(m_weights.host(), m_weights.host() + m_cols);
    const Reference::Real z_loss_weight = options.weighted_z_loss ? Reference::nan : weight_of_z_losses();
    for_each_row([&](std::int64_t row, const Reference::Row<X>& x, std::int64_t dlogits_offset) {
      const auto told  = tells_lse ? static_cast<Reference::Real>(m_lse.host()[row]) : Reference::nan;
      const auto label = value_of(m_host_labels(row));
      f(row, Reference::cross_entropy(x, label, options, weights, told, needs_gradient, z_loss_weight), dlogits_offset);
    });
  }

 private:
  /// Weight of each row's lse^2 that has not that of its class: a mean divides by the weights.
  Reference::Real weight_of_z_losses() const {
    if (options.reduction != Reduction::mean || !m_weighted) return 1;
    Reference::Real weights = 0, count = 0;
    for (std::int64_t row = 0; row < m_rows; ++row) {
      const std::int64_t label = value_of(m_host_labels(row));
      if (label == options.ignore_index || label < 0 || label >= m_cols) continue;
      weights += m_weights.host()[label];
      count += 1;
    }
    return weights / count;
  }

  /// A label, or in the place of one beyond 63 bits a number that is no class and not ignored.
  std::int64_t value_of(LabelType label) const {
    if (std::in_range<std::int64_t>(label)) return static_cast<std::int64_t>(label);
    return options.ignore_index == -1 ? -2 : -1;
  }

  template <class LossView, class WeightsView>
  void call_with(const Exec& exec, const LossView& loss, const WeightsView& weights, bool in_place) const {
    if constexpr (Op == RowOperator::cross_entropy) {
      KokkosNN::cross_entropy(exec, logits_view(), labels_view(), loss, options, lse_view(), weights);
    } else if constexpr (is_backward) {
      KokkosNN::cross_entropy_backward(exec, logits_view(), labels_view(), lse_view(), loss, dlogits_view(in_place),
                                       options, weights);
    } else {
      KokkosNN::cross_entropy_with_gradient(exec, logits_view(), labels_view(), loss, dlogits_view(in_place), options,
                                            lse_view(), weights);
    }
  }

  /// f(row, its logits as they were before a run, offset of its gradient)
  template <class F>
  void for_each_row(const F& f) const {
    const X* const logits = m_before.empty() ? m_logits.host() : m_before.data();
    for_each_index(m_place.without(Rank - 1), m_dlogits_place.without(Rank - 1),
                   [&](std::int64_t offset, std::int64_t dlogits_offset, std::int64_t row) {
                     f(row, Reference::Row<X>{logits + offset, m_cols, m_place.strides.back()}, dlogits_offset);
                   });
  }

  /// How much of its last digit a logit under a soft cap may lack, times what the documentation promises.
  double promise() const { return 8 * std::max(1.0, 2 * options.softcap); }
  double gradient_promise() const { return is_16_bit<Y> ? 1.0 : promise(); }

  /// Beside a gradient of 16 bits log-sum-exps are only as good as that needs, and losses as good as their rows' lse.
  static constexpr bool has_rough_lse = Op == RowOperator::cross_entropy_with_gradient && is_16_bit<Y>;

  double lse_error(double value, const Reference::Measured& expected) const {
    if (has_rough_lse && std::fabs(value - static_cast<double>(expected.value)) < 0x1p-12) return 0;
    return ulp_error<A>(value, expected.value, expected.magnitude);
  }

  ::testing::AssertionResult close(bool in_place) const {
    Errors losses, gradients;
    Reference::Measured sum{0, 1};
    Reference::Real divisor = 0;
    const auto add_loss     = [&](std::int64_t row, double value, const Reference::Measured& expected) {
      losses.add(ulp_error<A>(value, expected.value, expected.magnitude), row, 0, value, expected.value);
    };
    const bool is_reduced = options.reduction != Reduction::none, is_mean = options.reduction == Reduction::mean;
    const auto add_row = [&](std::int64_t row, const Reference::CrossEntropy& expected, std::int64_t) {
      divisor += expected.weight;
      sum.value += expected.loss.value;
      sum.magnitude += expected.loss.magnitude;
      if (is_backward) return;
      const double lse = m_lse.host()[row];
      losses.add(lse_error(lse, expected.lse), row, -1, lse, expected.lse.value);
      if (!is_reduced) add_loss(row, m_loss.host()[row], expected.loss);
    };
    for_each_reference(add_row, is_backward || has_rough_lse, false);
    if (is_mean) sum = {sum.value / divisor, divisor > 0 ? sum.magnitude / divisor : 0};
    if (!is_backward && is_reduced) add_loss(-1, m_loss.host()[0], sum);
    if constexpr (has_gradient) check_gradient(in_place, is_mean ? divisor : 1, gradients);
    if (!(losses.max_ulp <= promise())) return ::testing::AssertionFailure() << "loss or lse: " << losses.worst;
    if (!(gradients.max_ulp <= gradient_promise())) return ::testing::AssertionFailure() << gradients.worst;
    return ::testing::AssertionSuccess();
  }

  void check_gradient(bool in_place, Reference::Real divisor, Errors& errors) const {
    const Y* const results   = in_place ? reinterpret_cast<const Y*>(m_logits.host()) : m_dlogits.host();
    const Placement& place   = in_place ? m_place : m_dlogits_place;
    const std::int64_t along = place.strides.back();
    std::vector<std::int64_t> offsets;
    for_each_index(place.without(Rank - 1), m_rows_place,
                   [&](std::int64_t offset, auto, auto) { offsets.push_back(offset); });
    for_each_reference([&](std::int64_t row, const Reference::CrossEntropy& expected, std::int64_t) {
      const Reference::Real dloss = !is_backward                           ? options.gradient_scale
                                    : options.reduction == Reduction::none ? m_loss.host()[row]
                                                                           : m_loss.host()[0];
      const Reference::Real by    = options.gradient_scale != 1 && is_backward ? dloss * options.gradient_scale : dloss;
      const bool is_ignored       = value_of(m_host_labels(row)) == options.ignore_index;
      for (std::int64_t c = 0; c < m_cols; ++c) {
        const long double value = exact(results[offsets[row] + c * along]);
        const auto& [dz, size]  = expected.gradient[c];
        const auto want         = is_ignored ? 0 : by / divisor * dz;
        // Exponentials below the normal range may be 0, and with them their multiples; half_t has subnormals.
        const bool ends_early = Format<Y>::min_exponent <= Format<float>::min_exponent;
        const auto tiny =
            64 * std::max(ends_early ? smallest_normal<Y>() : 0, smallest_normal<A>() * std::fabs(by / divisor));
        if (!is_ignored && std::fabs(want) < tiny && std::fabs(value - want) < tiny) continue;
        errors.add(ulp_error<Y>(value, want, std::fabs(by / divisor) * size), row, c, value, want);
      }
    });
  }

  Placement m_place;
  Placement m_dlogits_place;
  Placement m_rows_place;
  std::int64_t m_rows;
  std::int64_t m_cols;
  bool m_weighted;
  Buffer<X> m_logits;
  Buffer<Y> m_dlogits;
  Buffer<A> m_loss;
  Buffer<A> m_lse;
  Buffer<A> m_weights;
  Kokkos::View<LabelType*, Memory> m_labels;
  typename Kokkos::View<LabelType*, Memory>::host_mirror_type m_host_labels;
  std::vector<X> m_before;
};

/// Calls f with each of the three, as a std::integral_constant.
template <class F>
void for_each_cross_entropy(const F& f) {
  f(std::integral_constant<RowOperator, RowOperator::cross_entropy>{});
  f(std::integral_constant<RowOperator, RowOperator::cross_entropy_backward>{});
  f(std::integral_constant<RowOperator, RowOperator::cross_entropy_with_gradient>{});
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_CROSS_ENTROPY_HPP
