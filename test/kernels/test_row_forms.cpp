// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"

#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/impl/call/gradient_launch.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/rows_call.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

// Kernels that only a GPU's plans name, run on a host: rows with edges, and rows kept as they were loaded. Packs of two
// and teams of two threads, so that edges have an element for each thread at most.

namespace KokkosNNTest {

using KokkosNN::RowForm;
using Host = Kokkos::DefaultHostExecutionSpace;

/// Half of a float's bits: a 16-bit type in every Kokkos build.
struct UpperHalf {
  std::uint16_t bits;

  KOKKOS_DEFAULTED_FUNCTION UpperHalf() = default;
  KOKKOS_FUNCTION explicit UpperHalf(float value)
      : bits(static_cast<std::uint16_t>((Kokkos::bit_cast<std::uint32_t>(value) + 0x8000u) >> 16)) {}
  KOKKOS_FUNCTION operator float() const { return Kokkos::bit_cast<float>(std::uint32_t(bits) << 16); }
};

constexpr int pack    = 2;
constexpr int threads = 2;
constexpr int packs   = 4;

RowPlan plan_for(std::int64_t rows) {
  RowPlan plan;
  plan.strategy        = RowStrategy::team_registers;
  plan.threads_per_row = threads;
  plan.team_size       = threads;
  plan.league_size     = rows;
  plan.scratch_bytes   = 1024;
  return plan;
}

/// One placement of the row kernel.
template <class Placement>
struct ByTeam {
  static constexpr std::int64_t most_cols = threads * packs * pack;

  template <class Source, class Sink, class Params>
  static void run(const Source& source, const Sink& sink, const Params& params, std::int64_t rows, std::int64_t cols) {
    using Kernel       = KokkosNN::Impl::RowInTeam<RowOperator::softmax, pack, Placement, Params, Source, Sink>;
    const RowPlan plan = plan_for(rows);
    KokkosNN::Impl::launch<1>(Host(), plan, Kernel::of(plan, source, sink, params, rows, cols));
  }
};

/// split_row by two kernels: three teams a row, however short it is.
struct BySplitTwice {
  static constexpr std::int64_t most_cols = 3 * threads * pack;

  template <class Source, class Sink, class Params>
  static void run(const Source& source, const Sink& sink, const Params& params, std::int64_t rows, std::int64_t cols) {
    constexpr bool has_edges     = Source::form == RowForm::misaligned;
    constexpr RowOperator op     = RowOperator::softmax;
    constexpr std::int64_t teams = 3;
    using Placement              = KokkosNN::Impl::RegisterPlacement<op, float, pack, 2 * packs, has_edges>;
    const RowPlan plan           = plan_for(teams * rows);
    const int scratch            = static_cast<int>(plan.scratch_bytes);
    const std::int64_t all       = std::max<std::int64_t>(1, has_edges ? cols / pack : (cols + pack - 1) / pack);
    const KokkosNN::Impl::RowShares shares{cols, teams, (all + teams - 1) / teams * pack};
    std::vector<typename Params::State> states(teams * rows);
    KokkosNN::Impl::launch<1>(Host(), plan,
                              KokkosNN::Impl::ReduceParts<pack, Placement, Params, Source>{source, params, shares, 0,
                                                                                           scratch, states.data()});
    KokkosNN::Impl::launch<1>(Host(), plan,
                              KokkosNN::Impl::WriteParts<op, pack, Placement, Params, Source, Sink>{
                                  source, sink, params, shares, 0, scratch, states.data()});
    Host().fence();
  }
};

/// Softmax of `rows` x `cols` elements that begin `offset` behind a pack boundary.
template <class T, class Kernel, RowForm form>
::testing::AssertionResult matches(std::int64_t rows, std::int64_t cols, int offset, double scale) {
  using Params = KokkosNN::Impl::SoftmaxParams<float, KokkosNN::Impl::exp_accuracy_for<T>>;
  using Source = KokkosNN::Impl::MemoryRows<const T, form>;
  using Sink   = KokkosNN::Impl::MemoryRows<T, form>;
  const T untouched(7);
  std::vector<T> x(rows * cols + offset + pack), y(x.size(), untouched);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(static_cast<float>((i * 37) % 23) * 0.5f - 5.0f);

  KokkosNN::Impl::RowMap map;
  map.n         = 1;
  map.extent[0] = rows;
  map.stride[0] = cols;
  const Params params(scale, MaskedRowPolicy::nan);
  Kernel::run(Source{x.data() + offset, 1, map}, Sink{y.data() + offset, 1, map}, params, rows, cols);
  Host().fence();

  for (std::int64_t r = 0; r < rows; ++r) {
    const auto logit = [&](std::int64_t c) { return scale * double(float(x[offset + r * cols + c])); };
    double max = logit(0), sum = 0;
    for (std::int64_t c = 1; c < cols; ++c) max = std::max(max, logit(c));
    for (std::int64_t c = 0; c < cols; ++c) sum += std::exp(logit(c) - max);
    for (std::int64_t c = 0; c < cols; ++c) {
      const std::int64_t i  = offset + r * cols + c;
      const double expected = std::exp(logit(c) - max) / sum;
      if (!(std::abs(double(float(y[i])) - expected) <= (sizeof(T) == 2 ? 0.01 : 1e-6) * expected)) {
        return ::testing::AssertionFailure() << "row " << r << ", column " << c << " of " << cols << ", offset "
                                             << offset << ": " << float(y[i]) << " instead of " << expected;
      }
    }
  }
  for (int i = 0; i < offset; ++i) {
    if (float(y[i]) != float(untouched)) return ::testing::AssertionFailure() << "written in front of the rows";
  }
  for (std::size_t i = offset + rows * cols; i < y.size(); ++i) {
    if (float(y[i]) != float(untouched)) return ::testing::AssertionFailure() << "written behind the rows";
  }
  return ::testing::AssertionSuccess();
}

template <class T, class Kernel, RowForm form>
void every_width_matches() {
  if (Host().concurrency() < threads) GTEST_SKIP() << "one thread: there is no team of two";
  for (std::int64_t cols = form == RowForm::aligned ? pack : 1; cols <= Kernel::most_cols;
       cols += form == RowForm::aligned ? pack : 1) {
    for (const int offset : {0, 1}) {
      if (form == RowForm::aligned && offset != 0) continue;
      for (const double scale : {1.0, -0.5, 1e6}) {  // of 1e6 x no power of two is a reference
        const auto result = matches<T, Kernel, form>(5, cols, offset, scale);
        ASSERT_TRUE(result) << "scale " << scale;
      }
    }
  }
}

template <bool has_edges>
using InRegisters = KokkosNN::Impl::RegisterPlacement<RowOperator::softmax, float, pack, packs, has_edges>;

TEST(RowForms, AlignedRowsMatch) { every_width_matches<float, ByTeam<InRegisters<false>>, RowForm::aligned>(); }

TEST(RowForms, RowsWithEdgesMatchWhereverTheyBegin) {
  every_width_matches<float, ByTeam<InRegisters<true>>, RowForm::misaligned>();
}

TEST(RowForms, RowsWithEdgesThatAreReadTwiceMatchWhereverTheyBegin) {
  using Placement = KokkosNN::Impl::OnlinePlacement<RowOperator::softmax, float, pack, 1>;
  every_width_matches<float, ByTeam<Placement>, RowForm::misaligned>();
}

TEST(RowForms, RowsThatAreReadTwiceButForTheLastTileMatch) {
  using Placement = KokkosNN::Impl::OnlinePlacement<RowOperator::softmax, float, pack, 1, true>;
  every_width_matches<float, ByTeam<Placement>, RowForm::strided>();
  every_width_matches<float, ByTeam<Placement>, RowForm::aligned>();
  every_width_matches<float, ByTeam<Placement>, RowForm::misaligned>();
}

TEST(RowForms, SplitRowsWithEdgesMatchHoweverShortTheyAre) {
  every_width_matches<float, BySplitTwice, RowForm::misaligned>();
  every_width_matches<float, BySplitTwice, RowForm::aligned>();
}

template <bool has_edges>
using AsLoaded = KokkosNN::Impl::PackedPlacement<RowOperator::softmax, UpperHalf, float, pack, packs, has_edges>;

TEST(RowForms, RowsKeptAsTheyWereLoadedMatch) {
  every_width_matches<UpperHalf, ByTeam<AsLoaded<false>>, RowForm::strided>();
  every_width_matches<UpperHalf, ByTeam<AsLoaded<false>>, RowForm::aligned>();
  every_width_matches<UpperHalf, ByTeam<AsLoaded<true>>, RowForm::misaligned>();
}

/// Short rows of one piece of memory through team scratch, two a team: the last team has one.
template <class T, class Y, RowOperator Op>
void staged_rows_match() {
  if (Host().concurrency() < threads) GTEST_SKIP() << "one thread: there is no team of two";
  using Params          = KokkosNN::Impl::SoftmaxParams<float, KokkosNN::Impl::exp_accuracy_for<Y>>;
  using Source          = KokkosNN::Impl::MemoryRows<const T, RowForm::misaligned, KokkosNN::Impl::RowStride>;
  using Rows            = KokkosNN::Impl::MemoryRows<T, RowForm::misaligned, KokkosNN::Impl::RowStride>;
  constexpr bool is_lse = Op == RowOperator::logsumexp;
  using Sink            = std::conditional_t<is_lse, KokkosNN::Impl::MemoryScalars<Y, KokkosNN::Impl::RowStride>, Rows>;
  constexpr std::int64_t rows = 7;
  for (std::int64_t cols = 1; cols <= 19; ++cols) {
    for (const double scale : {1.0, -0.5, 1e6}) {
      const std::int64_t written = is_lse ? rows : rows * cols;
      std::vector<T> x(rows * cols);
      std::vector<Y> y(written + 2, Y(7.0f));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(static_cast<float>((i * 37) % 23) * 0.5f - 5.0f);
      KokkosNN::Impl::RowMap map;
      map.n = 1, map.extent[0] = rows, map.stride[0] = cols;
      KokkosNN::Impl::RowMap one_apart = map;
      one_apart.stride[0]              = 1;
      RowPlan plan                     = plan_for((rows + threads - 1) / threads);
      plan.scratch_bytes               = threads * cols * sizeof(T);
      const Sink sink                  = [&] {
        if constexpr (is_lse) {
          return Sink{y.data(), one_apart};
        } else {
          return Sink{y.data(), 1, map};
        }
      }();
      KokkosNN::Impl::launch<1>(
          Host(), plan,
          KokkosNN::Impl::StagedRows<Op, pack, Params, Source, Sink>{
              Source{x.data(), 1, map}, sink, rows, Params(scale, MaskedRowPolicy::nan), int(cols), 0});
      Host().fence();

      for (std::int64_t r = 0; r < rows; ++r) {
        const auto logit = [&](std::int64_t c) { return scale * double(float(x[r * cols + c])); };
        double max = logit(0), sum = 0;
        for (std::int64_t c = 1; c < cols; ++c) max = std::max(max, logit(c));
        for (std::int64_t c = 0; c < cols; ++c) sum += std::exp(logit(c) - max);
        for (std::int64_t c = 0; c < (is_lse ? 1 : cols); ++c) {
          const double lse      = max + std::log(sum);
          const double expected = is_lse                           ? lse
                                  : Op == RowOperator::log_softmax ? logit(c) - lse
                                                                   : std::exp(logit(c) - lse);
          const double got      = double(float(y[is_lse ? r : r * cols + c]));
          const double bound =
              (sizeof(Y) == 2 ? 0.01 : 2e-6) * std::max(std::abs(expected), Op == RowOperator::softmax ? 0.0 : 1.0);
          ASSERT_LE(std::abs(got - expected), bound)
              << "row " << r << ", column " << c << " of " << cols << ", scale " << scale;
        }
      }
      EXPECT_EQ(float(y[written]), 7.0f) << "written behind the rows";
      EXPECT_EQ(float(y[written + 1]), 7.0f) << "written behind the rows";
    }
  }
}

TEST(RowForms, ShortRowsThroughScratchMatch) {
  staged_rows_match<float, float, RowOperator::softmax>();
  staged_rows_match<float, float, RowOperator::log_softmax>();
  staged_rows_match<float, float, RowOperator::logsumexp>();
  staged_rows_match<UpperHalf, UpperHalf, RowOperator::softmax>();
  staged_rows_match<UpperHalf, UpperHalf, RowOperator::log_softmax>();
  staged_rows_match<UpperHalf, float, RowOperator::logsumexp>();
}

/// Gradients of short rows go through team scratch too; their results are written over dy.
template <class T, RowOperator Op>
void staged_gradients_match() {
  if (Host().concurrency() < threads) GTEST_SKIP() << "one thread: there is no team of two";
  using Params                = KokkosNN::Impl::GradientParams<Op, float, KokkosNN::Impl::exp_accuracy_for<T>>;
  constexpr std::int64_t rows = 7;
  constexpr double scale      = -0.5;
  for (std::int64_t cols = 1; cols <= 19; ++cols) {
    std::vector<T> y(rows * cols), dy(rows * cols), dx(rows * cols + 1, T(7.0f));
    for (std::size_t i = 0; i < y.size(); ++i) {
      y[i]  = T(static_cast<float>((i * 37) % 23) * 0.01f - (Op == RowOperator::log_softmax_backward ? 2.0f : 0.0f));
      dy[i] = T(static_cast<float>((i * 29) % 19) * 0.5f - 4.0f);
    }
    RowPlan plan       = plan_for((rows + threads - 1) / threads);
    plan.scratch_bytes = 2 * threads * cols * sizeof(T);
    KokkosNN::Impl::launch<1>(
        Host(), plan,
        KokkosNN::Impl::StagedGradients<Op, pack, Params, T>{
            y.data(), dy.data(), dx.data(), rows, Params(scale, MaskedRowPolicy::nan), int(cols), {}});
    Host().fence();

    for (std::int64_t r = 0; r < rows; ++r) {
      double sum = 0;
      for (std::int64_t i = r * cols; i < (r + 1) * cols; ++i) {
        sum += double(float(dy[i])) * (Op == RowOperator::softmax_backward ? double(float(y[i])) : 1.0);
      }
      for (std::int64_t i = r * cols; i < (r + 1) * cols; ++i) {
        const double value = float(y[i]), gradient = float(dy[i]);
        const double expected =
            scale * (Op == RowOperator::softmax_backward ? value * (gradient - sum) : gradient - std::exp(value) * sum);
        ASSERT_NEAR(double(float(dx[i])), expected, sizeof(T) == 2 ? 0.05 : 1e-5) << cols << " columns, element " << i;
      }
    }
    EXPECT_EQ(float(dx.back()), 7.0f) << "written behind the rows";
  }
}

TEST(RowForms, GradientsOfShortRowsThroughScratchMatch) {
  staged_gradients_match<float, RowOperator::softmax_backward>();
  staged_gradients_match<float, RowOperator::log_softmax_backward>();
  staged_gradients_match<UpperHalf, RowOperator::softmax_backward>();
  staged_gradients_match<UpperHalf, RowOperator::log_softmax_backward>();
}

TEST(RowForms, RowsKeptInScratchAsTheyWereLoadedMatch) {
  using InScratch = KokkosNN::Impl::PackedScratchPlacement<RowOperator::softmax, UpperHalf, float, pack, 3>;
  every_width_matches<UpperHalf, ByTeam<InScratch>, RowForm::strided>();
}

/// Terms of up to 59 bits and of either sign: their sum is an integer in units of 2^-56, which one double does not
/// hold.
TEST(TermSums, LoseNoRoundingOfAThreadsTerms) {
  using Params =
      KokkosNN::Impl::GradientParams<RowOperator::softmax_backward, double, KokkosNN::Impl::ExpAccuracy::full>;
  using Sums          = KokkosNN::Impl::TermSums<Params, 1>;
  constexpr int width = 4, tile = 8;
  static_assert(Sums::two_words && width * tile <= Sums::most_terms);
  constexpr std::int64_t one = std::int64_t(1) << 40;
  for (const int shift : {0, 1, 2}) {  // of what dy has besides 1
    KokkosNN::Pack<double, width> y[tile], dy[tile];
    std::int64_t exact = 0;
    for (int i = 0; i < width * tile; ++i) {
      const std::int64_t a     = (i % 3 == 0 ? -1 : 1) * (1 + std::int64_t(i) * 7919 % (1 << (3 + i % 16)));
      const std::int64_t b     = one + ((std::int64_t(i) * 104729 + 1) << shift) % one;
      y[i / width][i % width]  = std::ldexp(static_cast<double>(a), -16);
      dy[i / width][i % width] = std::ldexp(static_cast<double>(b), -40);
      exact += a * b;
    }
    const auto total = KokkosNN::Impl::sums_of_packs<Params, 1>([&](const auto& f) {
                         for (int k = 0; k < tile; ++k) f(y[k], dy[k]);
                       }).all_lanes();

    const auto high = static_cast<std::int64_t>(std::ldexp(total.high, 56));
    EXPECT_EQ(std::ldexp(total.low, 56), static_cast<double>(exact - high)) << shift;
    EXPECT_NE(high, exact) << "one double held the sum";
  }
}

/// A gradient by one placement of the row kernel, of rows that begin `offset` behind a pack boundary in every tensor.
template <RowOperator op, class Placement>
struct GradientByTeam {
  using Params = KokkosNN::Impl::GradientParams<op, float, KokkosNN::Impl::ExpAccuracy::full>;
  using Rows   = KokkosNN::Impl::MemoryRows<const float, RowForm::misaligned>;
  using Sink   = KokkosNN::Impl::MemoryRows<float, RowForm::misaligned>;

  template <class Source>
  static void run(const Source& source, const Sink& sink, std::int64_t rows, std::int64_t cols) {
    using Kernel       = KokkosNN::Impl::RowInTeam<op, pack, Placement, Params, Source, Sink>;
    const RowPlan plan = plan_for(rows);
    KokkosNN::Impl::launch<1>(Host(), plan,
                              Kernel::of(plan, source, sink, Params(1, MaskedRowPolicy::nan), rows, cols));
    Host().fence();
  }

  static ::testing::AssertionResult matches(std::int64_t rows, std::int64_t cols, int offset) {
    const float untouched = 7;
    std::vector<float> x(rows * cols + offset + pack), dy(x.size()), dx(x.size(), untouched);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i]  = static_cast<float>((i * 37) % 23) * 0.125f - 2;
      dy[i] = static_cast<float>((i * 11) % 17) * 0.25f - 1;
    }
    const KokkosNN::Impl::RowMap map = {1, {rows}, {cols}, {}};
    const Rows values{x.data() + offset, 1, map};
    const Sink sink{dx.data() + offset, 1, map};
    if constexpr (op == RowOperator::logsumexp_backward) {
      const KokkosNN::Impl::RowMap a_value_a_row = {1, {rows}, {1}, {}};
      run(KokkosNN::Impl::ScalarRows<Rows, float, float>{values, dy.data(), dy.data() + 1, a_value_a_row,
                                                         a_value_a_row},
          sink, rows, cols);
    } else {
      run(KokkosNN::Impl::PairRows<Rows, Rows>{values, Rows{dy.data() + offset, 1, map}}, sink, rows, cols);
    }

    for (std::size_t i = 0; i < dx.size(); ++i) {
      const std::int64_t place = static_cast<std::int64_t>(i) - offset;
      const bool is_in_a_row   = place >= 0 && place < rows * cols;
      const double want        = is_in_a_row ? expected(x, dy, offset + place / cols * cols, cols, i) : untouched;
      if (!(std::abs(dx[i] - want) <= 1e-5 * (1 + std::abs(want)))) {
        return ::testing::AssertionFailure() << "element " << place << " of rows of " << cols << ", offset " << offset
                                             << ": " << dx[i] << " instead of " << want;
      }
    }
    return ::testing::AssertionSuccess();
  }

  static double expected(const std::vector<float>& x, const std::vector<float>& dy, std::int64_t row, std::int64_t cols,
                         std::size_t i) {
    double sum = 0;
    for (std::int64_t c = row; c < row + cols; ++c) {
      sum += double(dy[c]) * (op == RowOperator::softmax_backward ? double(x[c]) : 1.0);
    }
    if (op == RowOperator::softmax_backward) return x[i] * (dy[i] - sum);
    if (op == RowOperator::log_softmax_backward) return dy[i] - std::exp(double(x[i])) * sum;
    const std::int64_t number = row / cols;  // offsets are shorter than any row that is tried
    return dy[number + 1] * std::exp(double(x[i]) - double(dy[number]));
  }

  static void every_width_matches(std::int64_t least_cols = 1) {
    if (Host().concurrency() < threads) GTEST_SKIP() << "one thread: there is no team of two";
    for (std::int64_t cols = least_cols; cols <= threads * packs * pack; ++cols) {
      for (const int offset : {0, 1}) ASSERT_TRUE(matches(5, cols, offset));
    }
  }
};

template <RowOperator op>
void gradients_with_edges_match() {
  GradientByTeam<op,
                 KokkosNN::Impl::PairRegisterPlacement<float, float, float, pack, packs, true>>::every_width_matches();
  GradientByTeam<op, KokkosNN::Impl::PairOnlinePlacement<float, float, float, pack, 1>>::every_width_matches();
}

TEST(RowForms, GradientsOfRowsWithEdgesMatchWhereverTheyBegin) {
  gradients_with_edges_match<RowOperator::softmax_backward>();
  gradients_with_edges_match<RowOperator::log_softmax_backward>();
}

TEST(RowForms, GradientsOfLogSumExpsOfRowsWithEdgesMatchWhereverTheyBegin) {
  using Placement = KokkosNN::Impl::ElementwisePlacement<float, float, pack, 1>;
  GradientByTeam<RowOperator::logsumexp_backward, Placement>::every_width_matches(2);
}

TEST(RowForms, KernelsOfFloatsAtOneStrideHaveFewArguments) {
  using KokkosNN::Impl::MemoryRows;
  using KokkosNN::Impl::RowStride;
  using Params    = KokkosNN::Impl::SoftmaxParams<float, KokkosNN::Impl::ExpAccuracy::full>;
  using Placement = KokkosNN::Impl::RegisterPlacement<RowOperator::softmax, float, 4, 1, false>;
  using Aligned   = KokkosNN::Impl::RowInTeam<RowOperator::softmax, 4, Placement, Params,
                                              MemoryRows<const float, RowForm::aligned, RowStride>,
                                              MemoryRows<float, RowForm::aligned, RowStride>>;
  using Shifted   = KokkosNN::Impl::RowInTeam<RowOperator::softmax, 4, Placement, Params,
                                              MemoryRows<const float, RowForm::misaligned, RowStride>,
                                              MemoryRows<float, RowForm::misaligned, RowStride>>;

  constexpr std::size_t number = KokkosNN::Impl::has_launch_attributes ? sizeof(std::int64_t) : 0;  // of the launch
  EXPECT_LE(sizeof(Aligned), KokkosNN::Impl::most_argument_bytes + number);
  EXPECT_LE(sizeof(Shifted), KokkosNN::Impl::most_argument_bytes + number);
}

}  // namespace KokkosNNTest
