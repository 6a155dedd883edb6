// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"

#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/impl/launch.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

// Kernels that only a GPU's plans name, run on a host: rows with rims, and rows kept as they were loaded. Packs of two
// and teams of two threads, so that rims have an element for each thread at most.

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
  plan.strategy      = RowStrategy::team_registers;
  plan.lanes         = threads;
  plan.team_size     = threads;
  plan.league_size   = rows;
  plan.scratch_bytes = 1024;
  return plan;
}

/// One storage of the row kernel.
template <class Storage>
struct ByTeam {
  static constexpr std::int64_t most_cols = threads * packs * pack;

  template <class Source, class Sink, class Math>
  static void run(const Source& source, const Sink& sink, const Math& math, std::int64_t rows, std::int64_t cols) {
    KokkosNN::Impl::launch<1>(Host(), plan_for(rows),
                              KokkosNN::Impl::RowInTeam<RowOperator::softmax, pack, Storage, Math, Source, Sink>{
                                  source, sink, math, rows, cols, threads, 1, 1, 0, 0, 1024});
  }
};

/// split_row by two kernels: three teams a row, however short it is.
struct BySplitTwice {
  static constexpr std::int64_t most_cols = 3 * threads * pack;

  template <class Source, class Sink, class Math>
  static void run(const Source& source, const Sink& sink, const Math& math, std::int64_t rows, std::int64_t cols) {
    RowPlan plan       = plan_for(3 * rows);
    plan.strategy      = RowStrategy::split_row;
    plan.launches      = 2;
    plan.teams_per_row = 3;
    KokkosNN::Impl::RowsCall<Host, RowOperator::softmax, Math, Source, Sink, pack>{Host(), plan, math, source,
                                                                                   sink,   rows, cols}
        .run(nullptr);
  }
};

/// Softmax of `rows` x `cols` elements that begin `offset` behind a pack boundary.
template <class T, class Kernel, RowForm form>
::testing::AssertionResult matches(std::int64_t rows, std::int64_t cols, int offset, double scale) {
  using Math   = KokkosNN::Impl::RowMath<float, KokkosNN::Impl::exp_accuracy_for<T>>;
  using Source = KokkosNN::Impl::MemoryRows<const T, form>;
  using Sink   = KokkosNN::Impl::MemoryRows<T, form>;
  const T untouched(7);
  std::vector<T> x(rows * cols + offset + pack), y(x.size(), untouched);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = T(static_cast<float>((i * 37) % 23) * 0.5f - 5.0f);

  KokkosNN::Impl::RowMap map;
  map.n         = 1;
  map.extent[0] = rows;
  map.stride[0] = cols;
  const Math math(scale, MaskedRowPolicy::nan);
  Kernel::run(Source{x.data() + offset, 1, map}, Sink{y.data() + offset, 1, map}, math, rows, cols);
  Host().fence();

  for (std::int64_t r = 0; r < rows; ++r) {
    double sum = 0;
    for (std::int64_t c = 0; c < cols; ++c) sum += std::exp(scale * double(float(x[offset + r * cols + c])));
    for (std::int64_t c = 0; c < cols; ++c) {
      const std::int64_t i  = offset + r * cols + c;
      const double expected = std::exp(scale * double(float(x[i]))) / sum;
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
      for (const double scale : {1.0, -0.5}) {
        const auto result = matches<T, Kernel, form>(5, cols, offset, scale);
        ASSERT_TRUE(result) << "scale " << scale;
      }
    }
  }
}

template <bool has_rims>
using InRegisters = KokkosNN::Impl::RegisterStorage<RowOperator::softmax, float, pack, packs, has_rims>;

TEST(RowForms, AlignedRowsMatch) { every_width_matches<float, ByTeam<InRegisters<false>>, RowForm::aligned>(); }

TEST(RowForms, RowsWithRimsMatchWhereverTheyBegin) {
  every_width_matches<float, ByTeam<InRegisters<true>>, RowForm::shifted>();
}

TEST(RowForms, RowsWithRimsThatAreReadTwiceMatchWhereverTheyBegin) {
  using Storage = KokkosNN::Impl::OnlineStorage<RowOperator::softmax, float, pack, 1>;
  every_width_matches<float, ByTeam<Storage>, RowForm::shifted>();
}

TEST(RowForms, SplitRowsWithRimsMatchHoweverShortTheyAre) {
  every_width_matches<float, BySplitTwice, RowForm::shifted>();
  every_width_matches<float, BySplitTwice, RowForm::aligned>();
}

template <bool has_rims>
using AsLoaded = KokkosNN::Impl::PackedStorage<RowOperator::softmax, UpperHalf, float, pack, packs, has_rims>;

TEST(RowForms, RowsKeptAsTheyWereLoadedMatch) {
  every_width_matches<UpperHalf, ByTeam<AsLoaded<false>>, RowForm::any>();
  every_width_matches<UpperHalf, ByTeam<AsLoaded<false>>, RowForm::aligned>();
  every_width_matches<UpperHalf, ByTeam<AsLoaded<true>>, RowForm::shifted>();
}

}  // namespace KokkosNNTest
