// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"

#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/impl/call/gradient_launch.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/operand_launch.hpp>
#include <KokkosNN/impl/gpu/split_row.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

// SplitRow, which only a GPU's plans name, run on a host: teams of one thread that wait for each other's status words,
// for each kind of state that they exchange. The results are held to those of the public functions.

namespace KokkosNNTest {

using KokkosNN::RowForm;
namespace Impl = KokkosNN::Impl;

using Host = Kokkos::DefaultHostExecutionSpace;
using Rows = Kokkos::View<float**, Kokkos::LayoutRight, Kokkos::HostSpace>;

constexpr int pack  = 2;
constexpr int packs = 4;

/// Lines of 64 bytes, as a workspace has them.
struct alignas(64) Line {
  char bytes[64] = {};
};

/// Runs the kernel with so many teams a row, as many groups of them as there are threads for. Returns true if it left
/// the workspace as it was, zero.
template <RowOperator op, bool overlaps, class Placement, class Params, class Source, class Sink>
bool split(const Params& params, const Source& source, const Sink& sink, std::int64_t rows, std::int64_t cols,
           int teams) {
  using Kernel              = Impl::SplitRow<op, pack, overlaps, Placement, Params, Source, Sink>;
  const std::int64_t all    = std::max<std::int64_t>(1, (cols + pack - 1) / pack);
  const std::int64_t groups = std::min<std::int64_t>(rows, Host().concurrency() / teams);
  RowPlan plan;
  plan.strategy      = RowStrategy::split_row;
  plan.kernel        = KokkosNN::RowKernel::split_online;
  plan.team_size     = 1;
  plan.league_size   = groups * teams;
  plan.scratch_bytes = 1024;
  std::vector<Line> workspace(Impl::split_row_workspace_bytes<typename Params::State>(plan.league_size) / 64 + 1);
  Impl::launch<1>(Host(), plan,
                  Kernel{{source, sink, params, {cols, teams, (all + teams - 1) / teams * pack}},
                         rows,
                         0,
                         static_cast<int>(plan.scratch_bytes),
                         workspace[0].bytes});
  Host().fence();
  return std::ranges::all_of(
      workspace, [](const Line& line) { return std::ranges::all_of(line.bytes, [](char byte) { return byte == 0; }); });
}

Rows noise(std::int64_t rows, std::int64_t cols, int seed) {
  const Rows view("noise", rows, cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < cols; ++c) view(r, c) = float(((r * 131 + c * 37 + seed * 17) % 101)) * 0.07f - 3;
  }
  return view;
}

Impl::MemoryRows<float, RowForm::strided> memory(const Rows& view) {
  Impl::RowMap map;
  map.n         = 1;
  map.extent[0] = view.extent_int(0);
  map.stride[0] = view.extent_int(1);
  return {view.data(), 1, map};
}
Impl::MemoryRows<const float, RowForm::strided> input(const Rows& view) {
  const auto rows = memory(view);
  return {rows.data, 1, rows.map};
}

void expect_near(const Rows& is, const Rows& must_be) {
  for (std::int64_t r = 0; r < is.extent_int(0); ++r) {
    for (std::int64_t c = 0; c < is.extent_int(1); ++c) {
      ASSERT_NEAR(is(r, c), must_be(r, c), 1e-5 * (std::abs(must_be(r, c)) + 1)) << "row " << r << ", column " << c;
    }
  }
}

/// f(rows, columns, teams a row) for rows of fewer packs than teams, and of many turns of the few groups that there
/// are: more than there are tags of status words.
template <class F>
void for_each_split(const F& f) {
  for (int teams = 1; teams <= std::min(4, Host().concurrency()); teams *= 2) {
    for (const std::int64_t rows : {1, 3, 700}) {
      for (const std::int64_t cols : {1, 2, 5, 16, 61}) {
        SCOPED_TRACE(::testing::Message() << rows << " x " << cols << ", " << teams << " teams a row");
        f(rows, cols, teams);
      }
    }
  }
}

template <bool overlaps, class Placement>
void softmax_matches(std::int64_t most_cols_a_team) {
  using Params = Impl::SoftmaxParams<float, Impl::ExpAccuracy::full>;
  for_each_split([&](std::int64_t rows, std::int64_t cols, int teams) {
    if (cols > most_cols_a_team * teams) return;
    const Rows x = noise(rows, cols, 1), y("y", rows, cols), must_be("must_be", rows, cols);
    KokkosNN::softmax(Host(), x, must_be);
    EXPECT_TRUE((split<RowOperator::softmax, overlaps, Placement>(Params(1, MaskedRowPolicy::nan), input(x), memory(y),
                                                                  rows, cols, teams)));
    expect_near(y, must_be);
  });
}

TEST(SplitRowOnHost, ReferencesWithSumsMatch) {
  constexpr RowOperator op = RowOperator::softmax;
  softmax_matches<false, Impl::OnlinePlacement<op, float, pack, packs, false>>(1 << 20);
  softmax_matches<false, Impl::RegisterPlacement<op, float, pack, packs, false>>(packs * pack);
  softmax_matches<true, Impl::RegisterPlacement<op, float, pack, packs, false>>(packs * pack);
}

TEST(SplitRowOnHost, SumsOfGradientsMatch) {
  constexpr RowOperator op = RowOperator::log_softmax_backward;
  using Params             = Impl::GradientParams<op, float, Impl::ExpAccuracy::full>;
  using Placement          = Impl::PairOnlinePlacement<float, float, float, pack, packs>;
  for_each_split([&](std::int64_t rows, std::int64_t cols, int teams) {
    const Rows y = noise(rows, cols, 1), dy = noise(rows, cols, 2), dx("dx", rows, cols), must_be("dx", rows, cols);
    KokkosNN::log_softmax_backward(Host(), y, dy, must_be);
    const Impl::PairRows<decltype(input(y)), decltype(input(dy))> pairs{input(y), input(dy)};
    EXPECT_TRUE((split<op, false, Placement>(Params(1, MaskedRowPolicy::nan), pairs, memory(dx), rows, cols, teams)));
    expect_near(dx, must_be);
  });
}

TEST(SplitRowOnHost, MomentsMatch) {
  constexpr RowOperator op = RowOperator::layer_norm;
  using Operator           = Impl::LayerNorm<float>;
  using Placement          = Impl::OperandOnlinePlacement<Operator, float, pack, packs>;
  for_each_split([&](std::int64_t rows, std::int64_t cols, int teams) {
    const Rows x = noise(rows, cols, 1), y("y", rows, cols), must_be("must_be", rows, cols);
    KokkosNN::layer_norm(Host(), x, KokkosNN::no_view, KokkosNN::no_view, must_be);
    Impl::OperandParams<Operator, float> params{Operator::Params(KokkosNN::LayerNormOptions()), {}, cols};
    for (int i = 0; i < Operator::column_inputs; ++i) params.columns[i].missing = params.own.missing(i);
    Impl::OperandRows<Operator, float, RowForm::strided> source;
    source.input[0] = input(x);
    Impl::OperandOutput<Operator, float, RowForm::strided> output;
    output.rows = memory(y);
    EXPECT_TRUE((split<op, false, Placement>(params, source, output, rows, cols, teams)));
    expect_near(y, must_be);
  });
}

}  // namespace KokkosNNTest
