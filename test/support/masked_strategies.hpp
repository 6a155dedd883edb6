// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_MASKED_STRATEGIES_HPP
#define KOKKOSNN_TEST_SUPPORT_MASKED_STRATEGIES_HPP

#include "masked.hpp"
#include "recorder.hpp"
#include "strategies.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

// Masks that every strategy is tested with, and what to look for there.

namespace KokkosNNTest {

inline constexpr double infinity     = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

using Index = std::vector<std::int64_t>;

/// Three elements of four are kept, and the diagonal.
inline bool is_kept_at(const Index& i) {
  std::uint32_t hash = 1;
  for (const std::int64_t n : i) hash = hash * 2654435761u + static_cast<std::uint32_t>(n) * 40503u + 11u;
  return (hash >> 13) % 4 != 0 || i.back() == i[i.size() - 2];
}

template <class T>
T bias_at(const Index& i) {
  return static_cast<T>(noise_at(i, 3));
}

/// The strategies that masked rows can be forced on, and their log-sum-exps, of which some are for those alone.
inline std::vector<RowStrategy> masked_strategies_of(RowOperator op) {
  return strategies_with_kernels(op, {RowStrategy::vector_lanes, RowStrategy::team_scratch, RowStrategy::team_registers,
                                      RowStrategy::team_online, RowStrategy::split_row});
}
inline const std::vector<RowStrategy> row_strategies   = masked_strategies_of(RowOperator::masked_softmax);
inline const std::vector<RowStrategy> value_strategies = masked_strategies_of(RowOperator::masked_logsumexp);

/// Runs the mask with the strategy forced, and asserts that its kernels ran and that the results are right; whether the
/// strategy can serve.
template <class Trial, class M>
bool takes_the_path(Trial& trial, const M& mask, const Meaning& meaning, const MaskedSoftmaxOptions& options) {
  RowPlan plan;
  try {
    plan = trial.plan(mask, options);
  } catch (const std::invalid_argument&) {
    return false;
  }
  EXPECT_EQ(plan.strategy, options.plan.strategy);
  EXPECT_EQ(to_string(plan).rfind(std::string("KokkosNN::") + to_string(plan.op) + "[" + to_string(plan.strategy), 0),
            0u);
  trial.y().poison_all();
  const auto kernels = kernels_of([&] { trial.call(mask, options); });
  trial.y().download();
  EXPECT_EQ(kernels, std::vector<std::string>(plan.launches(), to_string(plan)));
  EXPECT_TRUE(trial.correct(meaning, options)) << to_string(plan) << ", " << trial.cols() << " columns";
  return true;
}

/// A range of columns, single elements and a sink.
template <class T>
struct StrategyMasks {
  MaskData<bool, 2> keep;
  MaskData<T, 1> sinks{right({3}), [](const Index& i) { return T(double(i[0]) - 1); }};
  std::int64_t offset;

  explicit StrategyMasks(std::int64_t cols) : keep(right({7, cols}), is_kept_at), offset(cols / 2) {}

  auto band() const { return KokkosNN::SlidingWindow{.left = offset + 3, .right = 0, .offset = offset}; }
  Meaning of_band() const {
    return {[this](const At& at) { return at.key <= at.query + offset && at.key >= at.query - 3; }};
  }
  auto joined() const { return KokkosNN::masks(band(), KokkosNN::BooleanMask{keep.view()}); }
  Meaning of_joined() const {
    return {[this](const At& at) { return of_band().allows(at) && keep({at.query, at.key}); }, nullptr, {-1, 0, 1}};
  }
};

/// Each of x's elements that a mask does not allow becomes NaN or an infinity.
template <class T, int Rank, RowOperator Op>
void spoil_masked(MaskedTrial<T, T, Rank, Op>& trial, const Meaning& meaning) {
  trial.for_rows([&](const Index& row, std::int64_t offset, std::int64_t) {
    for (std::int64_t k = 0; k < trial.cols(); ++k) {
      if (meaning.allows(At::of(row, k))) continue;
      trial.x().host()[offset + k * trial.x_place().strides.back()] = T(k % 3 == 0 ? infinity : not_a_number);
    }
  });
  trial.x().upload();
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_MASKED_STRATEGIES_HPP
