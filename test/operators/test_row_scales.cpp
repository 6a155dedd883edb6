// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/masked_strategies.hpp"
#include "support/message.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

// Scales of rows, a View beside options.scale: against the reference, and gradients against calls of one row each whose
// options have the row's scale.

namespace KokkosNNTest {

using KokkosNN::RowScales;

namespace {

/// Scales of every row, of both signs, some of them small.
double scale_at(std::int64_t head, std::int64_t query) {
  return (query % 3 == 1 ? -1.0 : 1.0) * (0.0625 + 0.5 * static_cast<double>((3 * head + query) % 5));
}

template <class T>
MaskData<T, 2> scale_data(std::int64_t heads, std::int64_t queries) {
  return {right({heads, queries}), [](const Index& i) { return static_cast<T>(scale_at(i[0], i[1])); }};
}

const auto scales_of_rows = [](const At& at) { return Real(scale_at(at.head, at.query)); };

template <class T>
class RowScalesOfType : public ::testing::Test {};
TYPED_TEST_SUITE(RowScalesOfType, ElementTypes, ElementNames);

TYPED_TEST(RowScalesOfType, MultiplyTheLogitsOfTheirRowsInEveryStrategy) {
  const auto scales = scale_data<TypeParam>(3, 7);
  const auto floats = scale_data<float>(3, 7);
  for (const RowStrategy strategy : row_strategies) {
    for (const std::int64_t cols : {5, 40, 100}) {
      MaskedTrial<TypeParam> trial({2, 3, 7, cols});
      const MaskedSoftmaxOptions options = on(strategy, {.scale = 1.5, .masked_row = MaskedRowPolicy::zero});
      EXPECT_TRUE(takes_the_path(trial, RowScales{scales.view()}, {.scales = scales_of_rows}, options));
      const Meaning causal{.allows = [](const At& at) { return at.key <= at.query - 1; }, .scales = scales_of_rows};
      EXPECT_TRUE(takes_the_path(trial, masks(CausalMask{-1}, RowScales{floats.view()}), causal, options));
    }
  }
}

TYPED_TEST(RowScalesOfType, MultiplyThoseOfLogarithmsAndLogSumExps) {
  const auto scales = scale_data<float>(3, 7);
  MaskedTrial<TypeParam, TypeParam, 4, RowOperator::masked_log_softmax> logarithms({2, 3, 7, 40});
  MaskedTrial<TypeParam, TypeParam, 4, RowOperator::masked_logsumexp> sums({2, 3, 7, 40});
  EXPECT_TRUE(logarithms.run_correct(RowScales{scales.view()}, {.scales = scales_of_rows}, {.scale = -0.5}));
  EXPECT_TRUE(sums.run_correct(RowScales{scales.view()}, {.scales = scales_of_rows}, {.scale = -0.5}));
}

TEST(RowScales, StandUnderASoftcapAndBeforeABias) {
  const auto scales = scale_data<float>(3, 7);
  const MaskData<float, 2> bias(right({7, 50}), bias_at<float>);
  MaskedTrial<float> trial({2, 3, 7, 50});
  const Meaning meaning{.adds   = [&](const At& at) { return exact(bias({at.query, at.key})); },
                        .scales = scales_of_rows};
  const auto both = masks(AdditiveBias{bias.view()}, RowScales{scales.view()});

  EXPECT_TRUE(trial.run_correct(both, meaning, {.scale = 2}));
  EXPECT_TRUE(trial.run_correct(both, meaning, {.scale = 2, .softcap = 3}));
  EXPECT_TRUE(trial.run_correct(RowScales{scales.view()}, {.scales = scales_of_rows}, {.scale = 2, .softcap = 3}));
}

TEST(RowScales, HaveTheShapesOfLengths) {
  const MaskData<float, 1> of_batch(right({2}), [](const Index& i) { return i[0] == 0 ? 0.5f : 3.0f; });
  const MaskData<float, 3> of_queries(right({2, 1, 7}), [](const Index& i) { return 0.25f * float(1 + i[0] + i[2]); });
  MaskedTrial<float> trial({2, 3, 7, 40});
  MaskedTrial<float, float, 2> plain({2, 40});

  EXPECT_TRUE(trial.run_correct(RowScales{of_batch.view()},
                                {.scales = [](const At& at) { return at.batch == 0 ? Real(0.5) : Real(3); }}));
  EXPECT_TRUE(trial.run_correct(RowScales{of_queries.view()},
                                {.scales = [](const At& at) { return Real(0.25) * Real(1 + at.batch + at.query); }}));
  EXPECT_TRUE(plain.run_correct(RowScales{of_batch.view()},
                                {.scales = [](const At& at) { return at.query == 0 ? Real(0.5) : Real(3); }}));
}

TEST(RowScales, OfZeroMakeARowUniformAndOfNaNMakeItNaN) {
  const MaskData<float, 1> scales(right({3}), [](const Index& i) {
    return i[0] == 0 ? 0.0f : (i[0] == 1 ? static_cast<float>(not_a_number) : 1.0f);
  });
  MaskedTrial<float, float, 2> trial({3, 40});
  trial.run(RowScales{scales.view()});
  for (int k = 0; k < 40; ++k) {
    EXPECT_EQ(trial.y().host()[k], 0.025f);
    EXPECT_TRUE(std::isnan(trial.y().host()[40 + k]));
    EXPECT_FALSE(std::isnan(trial.y().host()[80 + k]));
  }
}

TEST(RowScales, OfSplitRowsDoNotScaleWhatIsBehindATeamsPart) {
  const auto scales = scale_data<float>(3, 7);
  MaskedTrial<float> trial({2, 3, 7, 301});
  EXPECT_TRUE(takes_the_path(trial, RowScales{scales.view()}, {.scales = scales_of_rows}, on(shared_rows)) || on_gpu);
}

// --- gradients ---

using Rows = Kokkos::View<float**, Kokkos::LayoutRight, Memory>;

Rows noisy_rows(std::int64_t seed, std::size_t rows, std::size_t cols, double size) {
  Rows view("noisy", rows, cols);
  const auto host = Kokkos::create_mirror(view);
  for (std::size_t i = 0; i < host.size(); ++i) {
    host.data()[i] = static_cast<float>(noise_at({seed, static_cast<std::int64_t>(i)}, size));
  }
  Kokkos::deep_copy(view, host);
  return view;
}

/// Expects gradients of rows under their scales to be those of rows one by one under an option.
template <bool is_logarithm>
void expect_gradients_of_single_rows(double softcap) {
  constexpr std::size_t rows = 7;
  constexpr std::size_t cols = 70;
  const MaskData<float, 1> scales(right({rows}), [](const Index& i) { return float(scale_at(0, i[0])); });
  const Rows x = noisy_rows(1, rows, cols, 4), dy = noisy_rows(2, rows, cols, 1);
  const Rows y("y", rows, cols), dx("dx", rows, cols), expected("expected", rows, cols);
  const auto call = [&](const Rows& on_x, const Rows& on_y, const Rows& on_dy, const auto& mask, const Rows& on_dx,
                        const MaskedSoftmaxOptions& options) {
    if constexpr (is_logarithm) {
      KokkosNN::masked_log_softmax(Exec(), on_x, mask, on_y, options);
      KokkosNN::masked_log_softmax_backward(Exec(), on_x, on_y, on_dy, mask, on_dx, options);
    } else {
      KokkosNN::masked_softmax(Exec(), on_x, mask, on_y, options);
      KokkosNN::masked_softmax_backward(Exec(), on_x, on_y, on_dy, mask, on_dx, options);
    }
  };
  const auto row_of = [](const Rows& all, std::size_t r) { return Rows(all.data() + r * cols, 1, cols); };
  for (std::size_t r = 0; r < rows; ++r) {
    const auto q = static_cast<std::int64_t>(r);
    call(row_of(x, r), row_of(y, r), row_of(dy, r), CausalMask{q + 20}, row_of(expected, r),
         {.scale = 1.5 * scale_at(0, q), .softcap = softcap});
  }
  Exec().fence();
  call(x, y, dy, masks(CausalMask{20}, RowScales{scales.view()}), dx, {.scale = 1.5, .softcap = softcap});
  Exec().fence();
  const auto got  = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), dx);
  const auto want = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), expected);
  double largest  = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    ASSERT_NEAR(got.data()[i], want.data()[i], 1e-5) << i;
    largest = std::max(largest, std::fabs(double(want.data()[i])));
  }
  EXPECT_GT(largest, 0.01);
}

TEST(RowScalesGradients, AreThoseOfSingleRowsUnderTheirScales) {
  for (const double softcap : {0.0, 2.5}) {
    expect_gradients_of_single_rows<false>(softcap);
    expect_gradients_of_single_rows<true>(softcap);
  }
}

// --- errors ---

TEST(RowScalesErrors, NameTheFunctionAndTheOffendingValues) {
  const MaskData<float, 1> three(right({3}), [](const Index&) { return 1.0f; });
  const MaskData<float, 2> six(right({3, 6}), [](const Index&) { return 1.0f; });
  MaskedTrial<float> trial({2, 3, 7, 40});
  EXPECT_EQ(message_of([&] { trial.call(RowScales{three.view()}); }),
            "KokkosNN::masked_softmax: RowScales of rank 1 must hold one scale for each index of the first axis of x, "
            "(2, 3, 7, 40), but hold 3");
  EXPECT_EQ(message_of([&] {
              trial.call(RowScales{six.view()});
            }).find("KokkosNN::masked_softmax: RowScales of extents (3, 6) does not broadcast to (2, 3, 7)"),
            0u);
  const Rows y("y", 4, 6);
  EXPECT_NE(message_of([&] {
              KokkosNN::masked_softmax(Exec(), y, RowScales{Kokkos::View<float*, Memory>(y.data(), 4)}, y);
            }).find("RowScales"),
            std::string::npos);
}

TEST(RowScalesErrors, OfAttentionSayThatItTakesNone) {
  const MaskData<float, 1> scales(right({1}), [](const Index&) { return 1.0f; });
  const Kokkos::View<float****, Kokkos::LayoutRight, Memory> q("q", 1, 2, 3, 4), o("o", 1, 2, 3, 4);
  EXPECT_EQ(message_of([&] { KokkosNN::attention(Exec(), q, q, q, o, RowScales{scales.view()}); }),
            "KokkosNN::attention: attention takes no RowScales, but the mask has some of extents (1)");
}

}  // namespace

}  // namespace KokkosNNTest
