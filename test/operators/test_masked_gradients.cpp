// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/masked_strategies.hpp"
#include "support/recorder.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace KokkosNNTest {
namespace {

/// How far a gradient may be off, in units of T at the largest term of its sum.
template <class T>
double bound(long double magnitude, double ulps) {
  return ulps * static_cast<double>(ulp_at<T>(magnitude));
}

/// A forward call's result in memory, a gradient dy, and the gradients by the reference.
template <class T, RowOperator Op = RowOperator::masked_softmax_backward>
struct GradientTrial {
  static constexpr bool has_logarithms = Op == RowOperator::masked_log_softmax_backward;
  static constexpr RowOperator forward_op =
      has_logarithms ? RowOperator::masked_log_softmax : RowOperator::masked_softmax;

  MaskedTrial<T, T, 4, forward_op> forward;
  Buffer<T> dy;
  Buffer<T> dx;
  Placement place;

  explicit GradientTrial(Placement where)
      : forward(where, where), dy(where.span()), dx(where.span()), place(std::move(where)) {
    std::int64_t number = 0;
    for_each_index(place, place, [&](std::int64_t offset, std::int64_t, std::int64_t) {
      dy.host()[offset] = static_cast<T>(noise_at({number++, 77}, 2));
    });
    dy.upload();
  }

  auto view(Buffer<T>& buffer) const { return strided_view<4>(buffer.device(), place); }
  auto dy_view() const { return strided_view<4>(static_cast<const T*>(dy.device()), place); }

  /// y from the reference, rounded to T, so that the gradient is judged by itself.
  void set_y(const Meaning& meaning, const MaskedSoftmaxOptions& options) {
    double ignored = 0;
    forward.for_rows([&](const Index& row, std::int64_t offset, std::int64_t) {
      const auto y = forward.expected_row(forward.x().host() + offset, row, meaning, options, ignored);
      for (std::int64_t k = 0; k < forward.cols(); ++k)
        forward.y().host()[offset + k * place.strides[3]] = T(double(y[k]));
    });
    forward.y().upload();
  }

  template <class M>
  void call(const M& mask, const MaskedSoftmaxOptions& options) {
    apply(forward.x_view(), forward.y_view(), dy_view(), mask, view(dx), options);
    Exec().fence();
  }

  template <class XView, class YView, class DyView, class M, class DxView>
  static void apply(const XView& x, const YView& y, const DyView& dy, const M& mask, const DxView& dx_,
                    const MaskedSoftmaxOptions& options = {}) {
    if constexpr (has_logarithms) {
      KokkosNN::masked_log_softmax_backward(Exec(), x, y, dy, mask, dx_, options);
    } else {
      KokkosNN::masked_softmax_backward(Exec(), x, y, dy, mask, dx_, options);
    }
  }

  template <class M>
  RowPlan plan(const M& mask, const MaskedSoftmaxOptions& options) {
    return KokkosNN::make_plan(Op, Exec(), forward.x_view(), forward.y_view(), dy_view(), mask, view(dx), options);
  }

  template <class M>
  void run(const M& mask, const MaskedSoftmaxOptions& options) {
    dx.poison_all();
    call(mask, options);
    dx.download();
  }

  /// f(row, its offset, dz of its columns, which is 0 where masked, and the sizes of what it is a difference of)
  template <class F>
  void for_reference_rows(const Meaning& meaning, const F& f) {
    forward.for_rows([&](const Index& row, std::int64_t offset, std::int64_t) {
      std::vector<Real> dz(forward.cols(), 0), sizes(forward.cols(), 0);
      Real sum = 0, largest = 0, size = 0;
      const auto at = [&](Buffer<T>& b, std::int64_t k) { return exact(b.host()[offset + k * place.strides[3]]); };
      const auto for_kept = [&](const auto& each) {
        for (std::int64_t k = 0; k < forward.cols(); ++k) {
          if (meaning.allows(At::of(row, k))) each(k, at(forward.y(), k), at(dy, k));
        }
      };
      for_kept([&](std::int64_t, Real y, Real gradient) {
        sum += has_logarithms ? gradient : y * gradient;
        size += std::fabs(gradient);
        largest = std::max<Real>(largest, std::fabs(gradient));
      });
      for_kept([&](std::int64_t k, Real y, Real gradient) {
        dz[k]    = has_logarithms ? gradient - std::exp(y) * sum : y * (gradient - sum);
        sizes[k] = has_logarithms ? std::fabs(gradient) + std::exp(y) * size : y * largest;
      });
      f(row, offset, dz, sizes);
    });
  }

  ::testing::AssertionResult correct(const Meaning& meaning, const MaskedSoftmaxOptions& options) {
    if (!gaps_intact(dx, place)) return ::testing::AssertionFailure() << "something outside dx was written";
    if (const auto n = unwritten(dx, place)) return ::testing::AssertionFailure() << n << " elements not written";
    ::testing::AssertionResult result = ::testing::AssertionSuccess();
    for_reference_rows(meaning, [&](const Index& row, std::int64_t offset, const std::vector<Real>& dz,
                                    const std::vector<Real>& sizes) {
      for (std::int64_t k = 0; k < forward.cols(); ++k) {
        const std::int64_t i = offset + k * place.strides[3];
        const Real slope     = Reference::capped_slope(exact(forward.x().host()[i]), options.scale, options.softcap);
        const Real expected  = dz[k] * slope;
        const Real magnitude = std::fabs(slope) * sizes[k];
        const Real bend =
            options.softcap == 0 ? 0 : std::fabs(options.scale * exact(forward.x().host()[i]) / options.softcap);
        const Real value = exact(dx.host()[i]);
        if (!(std::fabs(value - expected) <=
              bound<T>(std::max(magnitude, std::fabs(expected)), 6 + 4 * double(bend)))) {
          result = ::testing::AssertionFailure() << "row " << row[0] << ", " << row[1] << ", " << row[2] << ", column "
                                                 << k << ": " << double(value) << " instead of " << double(expected);
        }
      }
    });
    return result;
  }
};

bool keeps(const Index& i) { return (i[0] * 7 + i[1] * 3) % 5 != 0; }

/// The masks of these tests, for x of (2, 3, 7, cols).
struct Masks {
  MaskData<bool, 2> kept;
  std::int64_t offset;

  explicit Masks(std::int64_t cols) : kept(right({7, cols}), keeps), offset(cols - 7) {}

  auto causal() const { return CausalMask{offset}; }
  Meaning of_causal() const {
    return {[this](const At& at) { return at.key <= at.query + offset; }};
  }
  auto joined() const { return masks(causal(), BooleanMask{kept.view()}); }
  Meaning of_joined() const {
    return {[this](const At& at) { return of_causal().allows(at) && kept({at.query, at.key}); }};
  }
};

}  // namespace

template <class T>
class MaskedGradients : public ::testing::Test {};
TYPED_TEST_SUITE(MaskedGradients, ElementTypes, ElementNames);

/// dx on every strategy, against the reference.
template <class T, RowOperator op>
void expect_right_on_every_strategy() {
  for (const RowStrategy strategy : row_strategies) {
    int served = 0;
    for (const std::int64_t cols : {5, 8, 33, 64, 100, 256, 1000, 4097}) {
      GradientTrial<T, op> trial(right({2, 3, 7, cols}));
      const Masks mask(cols);
      const MaskedSoftmaxOptions plain  = on(strategy, {.scale = 0.5});
      const MaskedSoftmaxOptions capped = on(strategy, {.scale = -2, .softcap = 3});
      const auto check = [&](const auto& m, const Meaning& meaning, const MaskedSoftmaxOptions& options) {
        trial.set_y(meaning, options);
        RowPlan plan;
        try {
          plan = trial.plan(m, options);
        } catch (const std::invalid_argument&) {
          return;
        }
        trial.dx.poison_all();
        const auto kernels = kernels_of([&] { trial.call(m, options); });
        trial.dx.download();
        EXPECT_EQ(kernels, std::vector{to_string(plan)});
        EXPECT_EQ(to_string(plan).rfind(std::string("KokkosNN::") + to_string(op) + "[", 0), 0u);
        EXPECT_TRUE(trial.correct(meaning, options)) << to_string(plan) << ", " << cols << " columns";
        ++served;
      };
      check(mask.causal(), mask.of_causal(), plain);
      check(mask.joined(), mask.of_joined(), plain);
      check(mask.joined(), mask.of_joined(), capped);
    }
    EXPECT_GT(served, 5) << to_string(strategy);
  }
}

TYPED_TEST(MaskedGradients, ByXMatchTheReferenceOnEveryStrategy) {
  expect_right_on_every_strategy<TypeParam, RowOperator::masked_softmax_backward>();
}

TYPED_TEST(MaskedGradients, OfLogSoftmaxMatchTheReferenceOnEveryStrategy) {
  expect_right_on_every_strategy<TypeParam, RowOperator::masked_log_softmax_backward>();
}

/// dx where NaN and infinities stand under the mask.
template <class T, RowOperator op>
void expect_zeros_where_masked() {
  for (const std::int64_t cols : {9, 100, 1000}) {
    GradientTrial<T, op> trial(right({2, 3, 7, cols}));
    const Masks mask(cols);
    trial.set_y(mask.of_joined(), {});
    trial.forward.for_rows([&](const Index& row, std::int64_t offset, std::int64_t) {
      for (std::int64_t k = 0; k < cols; ++k) {
        if (mask.of_joined().allows(At::of(row, k))) continue;
        trial.dy.host()[offset + k]          = T(not_a_number);
        trial.forward.y().host()[offset + k] = T(infinity);
      }
    });
    trial.dy.upload();
    trial.forward.y().upload();

    trial.run(mask.joined(), {});

    EXPECT_TRUE(trial.correct(mask.of_joined(), {})) << cols << " columns";
  }
}

TYPED_TEST(MaskedGradients, AreZeroWhereMaskedWhateverStandsThere) {
  expect_zeros_where_masked<TypeParam, RowOperator::masked_softmax_backward>();
  expect_zeros_where_masked<TypeParam, RowOperator::masked_log_softmax_backward>();
}

/// Windows that begin and end anywhere in a vector, in place of dy; what they rule out is NaN.
template <class T, RowOperator op>
void expect_right_in_windows() {
  for (const std::int64_t cols : {1, 3, 7, 8, 9, 15, 17, 31, 40, 100, 257, 4099}) {
    GradientTrial<T, op> trial(right({2, 3, 7, cols}));
    const std::int64_t offset = cols / 3;
    const Meaning meaning{
        [=](const At& at) { return at.key >= at.query + offset - 5 && at.key <= at.query + offset + cols / 4; }};
    const MaskedSoftmaxOptions options{.scale = 0.5, .masked_row = MaskedRowPolicy::zero};
    trial.set_y(meaning, options);
    trial.forward.for_rows([&](const Index& row, std::int64_t place, std::int64_t) {
      for (std::int64_t k = 0; k < cols; ++k) {
        if (meaning.allows(At::of(row, k))) continue;
        trial.dy.host()[place + k] = trial.forward.y().host()[place + k] = T(not_a_number);
      }
    });
    trial.forward.y().upload();
    std::copy_n(trial.dy.host(), trial.dy.count(), trial.dx.host());
    trial.dx.upload();

    trial.apply(trial.forward.x_view(), trial.forward.y_view(), trial.view(trial.dx),
                KokkosNN::SlidingWindow{.left = 5, .right = cols / 4, .offset = offset}, trial.view(trial.dx), options);

    Exec().fence();
    trial.dx.download();
    EXPECT_TRUE(trial.correct(meaning, options)) << cols << " columns";
  }
}

TYPED_TEST(MaskedGradients, OfWindowsMatchOverDyWhereverTheyBegin) {
  expect_right_in_windows<TypeParam, RowOperator::masked_softmax_backward>();
  expect_right_in_windows<TypeParam, RowOperator::masked_log_softmax_backward>();
}

TYPED_TEST(MaskedGradients, UnderASoftcapAreZeroWhereABooleanMaskRulesOutANaN) {
  if (on_gpu) GTEST_SKIP() << "a GPU's kernels look at x there";
  for (const std::int64_t cols : {9, 100, 1000}) {
    for (const Placement& place : {right({2, 3, 7, cols}), left({2, 3, 7, cols})}) {
      GradientTrial<TypeParam> trial(place);
      const Masks mask(cols);
      const MaskedSoftmaxOptions capped{.scale = 2, .softcap = 3};
      trial.set_y(mask.of_joined(), capped);
      const auto set_masked = [&](double value) {
        trial.forward.for_rows([&](const Index& row, std::int64_t offset, std::int64_t) {
          for (std::int64_t k = 0; k < cols; ++k) {
            if (mask.of_joined().allows(At::of(row, k))) continue;
            trial.forward.x().host()[offset + k * place.strides[3]] = TypeParam(value);
          }
        });
      };
      set_masked(not_a_number);
      trial.forward.x().upload();

      trial.run(mask.joined(), capped);

      set_masked(0);  // the reference looks at all of x
      EXPECT_TRUE(trial.correct(mask.of_joined(), capped)) << cols << " columns";
    }
  }
}

TYPED_TEST(MaskedGradients, OfABooleanMaskAtAnyDistanceMatch) {
  const std::int64_t cols = 100;
  for (const Placement& place : {right({7, cols}, 3), left({7, cols}), right({7, 1}), right({1, cols})}) {
    GradientTrial<TypeParam> trial(right({2, 3, 7, cols}));
    const MaskData<bool, 2> kept(place, keeps);
    const Meaning meaning{
        [&](const At& at) { return kept({place.extents[0] == 1 ? 0 : at.query, place.extents[1] == 1 ? 0 : at.key}); }};
    const MaskedSoftmaxOptions options{.masked_row = MaskedRowPolicy::zero};
    trial.set_y(meaning, options);

    trial.run(BooleanMask{kept.view()}, options);

    EXPECT_TRUE(trial.correct(meaning, options));
  }
}

TYPED_TEST(MaskedGradients, OfLogSoftmaxAreZeroInRowsWithoutAnAllowedColumn) {
  GradientTrial<TypeParam, RowOperator::masked_log_softmax_backward> trial(right({2, 3, 7, 40}));
  const Meaning meaning{[](const At& at) { return at.key <= at.query - 3; }};
  trial.set_y(meaning, {});  // NaN in the first rows

  trial.run(CausalMask{-3}, {.scale = 2});

  EXPECT_TRUE(trial.correct(meaning, {.scale = 2}));
}

TYPED_TEST(MaskedGradients, OfLogSoftmaxInPlaceAndStridedMatch) {
  const std::int64_t cols = 100;
  for (const Placement& place : {right({2, 3, 7, cols}, 3), left({2, 3, 7, cols})}) {
    GradientTrial<TypeParam, RowOperator::masked_log_softmax_backward> trial(place);
    const Masks mask(cols);
    trial.set_y(mask.of_joined(), {});
    trial.run(mask.joined(), {});
    EXPECT_TRUE(trial.correct(mask.of_joined(), {}));

    std::copy_n(trial.dy.host(), trial.dy.count(), trial.dx.host());
    trial.dx.upload();
    trial.apply(trial.forward.x_view(), trial.forward.y_view(), trial.view(trial.dx), mask.joined(),
                trial.view(trial.dx));
    Exec().fence();
    trial.dx.download();
    EXPECT_TRUE(trial.correct(mask.of_joined(), {})) << "over dy";
  }
}

TYPED_TEST(MaskedGradients, SumsIgnoreWhatIsMasked) {
  const std::int64_t cols = 100;
  GradientTrial<TypeParam> trial(right({2, 3, 7, cols}));
  const Masks mask(cols);
  trial.set_y(mask.of_joined(), {});
  trial.forward.for_rows([&](const Index& row, std::int64_t offset, std::int64_t) {
    for (std::int64_t k = 0; k < cols; ++k) {
      if (!mask.of_joined().allows(At::of(row, k)))
        trial.dy.host()[offset + k] = TypeParam(std::numeric_limits<double>::quiet_NaN());
    }
  });
  trial.dy.upload();
  Buffer<float> dbias(7 * cols), dsinks(3), all_sinks(1);

  KokkosNN::masked_softmax_bias_backward(Exec(), trial.forward.y_view(), trial.dy_view(), mask.joined(),
                                         strided_view<4>(dbias.device(), right({1, 1, 7, cols})));
  KokkosNN::masked_softmax_sinks_backward(Exec(), trial.forward.y_view(), trial.dy_view(), mask.joined(),
                                          strided_view<1>(dsinks.device(), right({3})));
  KokkosNN::masked_softmax_sinks_backward(Exec(), trial.forward.y_view(), trial.dy_view(), mask.joined(),
                                          strided_view<1>(all_sinks.device(), right({1})));
  Exec().fence();

  dbias.download();
  dsinks.download();
  all_sinks.download();
  for (std::int64_t i = 0; i < dbias.count(); ++i) ASSERT_TRUE(std::isfinite(dbias.host()[i])) << i;
  const float sum = dsinks.host()[0] + dsinks.host()[1] + dsinks.host()[2];
  EXPECT_NEAR(all_sinks.host()[0], sum, 1e-5) << "one sink for all heads has the gradients of all";
}

TYPED_TEST(MaskedGradients, UnderASoftcapAreZeroAndFiniteForLogitsFarBeyondIt) {
  GradientTrial<TypeParam> trial(right({1, 1, 2, 40}));
  for (std::int64_t i = 0; i < 80; ++i) trial.forward.x().host()[i] = TypeParam(i % 2 == 0 ? 6e4 : -6e4);
  trial.forward.x().upload();
  const MaskedSoftmaxOptions capped{.softcap = 30};
  trial.set_y(Meaning{}, capped);

  trial.run(masks(), capped);

  for (std::int64_t i = 0; i < 80; ++i) EXPECT_EQ(exact(trial.dx.host()[i]), 0) << i;
}

TYPED_TEST(MaskedGradients, InPlaceAndStridedMatch) {
  const std::int64_t cols = 100;
  for (const Placement& place : {right({2, 3, 7, cols}, 3), left({2, 3, 7, cols}),
                                 Placement{{2, 3, 7, cols}, {21 * cols, cols, 3 * cols, 1}, 0}}) {
    GradientTrial<TypeParam> trial(place);
    const Masks mask(cols);
    trial.set_y(mask.of_joined(), {});
    trial.run(mask.joined(), {});
    EXPECT_TRUE(trial.correct(mask.of_joined(), {}));

    const auto matches_over = [&](Buffer<TypeParam>& input, const auto& y, const auto& dy) {
      std::copy_n(input.host(), input.count(), trial.dx.host());
      trial.dx.upload();
      KokkosNN::masked_softmax_backward(Exec(), trial.forward.x_view(), y, dy, mask.joined(), trial.view(trial.dx));
      Exec().fence();
      trial.dx.download();
      return trial.correct(mask.of_joined(), {});
    };
    EXPECT_TRUE(matches_over(trial.dy, trial.forward.y_view(), trial.view(trial.dx))) << "over dy";
    EXPECT_TRUE(matches_over(trial.forward.y(), trial.view(trial.dx), trial.dy_view())) << "over y";
  }
}

/// The sum of dz over what `to` maps to the same index, and of its terms' sizes.
template <class T, class To>
void reference_sums(GradientTrial<T>& trial, const Meaning& meaning, const To& to, std::vector<Real>& sums,
                    std::vector<Real>& sizes) {
  trial.for_reference_rows(
      meaning, [&](const Index& row, std::int64_t, const std::vector<Real>& dz, const std::vector<Real>& of_terms) {
        for (std::int64_t k = 0; k < trial.forward.cols(); ++k) {
          const auto i = static_cast<std::size_t>(to(At::of(row, k)));
          sums[i] += dz[k];
          sizes[i] += 2 * of_terms[k];
        }
      });
}

/// dbias of these extents, against the reference.
template <class T, class B>
void bias_gradient_matches(const std::vector<std::int64_t>& x, const std::vector<std::int64_t>& bias) {
  GradientTrial<T> trial(right(x));
  const Masks mask(x[3]);
  trial.set_y(mask.of_joined(), {});
  const Placement place = right(bias);
  Buffer<B> dbias(place.span());

  KokkosNN::masked_softmax_bias_backward(Exec(), trial.forward.y_view(), trial.dy_view(), mask.joined(),
                                         strided_view<4>(dbias.device(), place));
  Exec().fence();

  dbias.download();
  ASSERT_TRUE(gaps_intact(dbias, place));
  ASSERT_EQ(unwritten(dbias, place), 0);
  std::vector<Real> sums(place.count(), 0), sizes(place.count(), 0);
  reference_sums(
      trial, mask.of_joined(),
      [&](const At& at) {
        const std::int64_t index[4] = {at.batch, at.head, at.query, at.key};
        std::int64_t offset         = 0;
        for (int d = 0; d < 4; ++d) offset += bias[d] == 1 ? 0 : index[d] * place.strides[d];
        return offset;
      },
      sums, sizes);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double error = static_cast<double>(std::fabs(exact(dbias.host()[i]) - sums[i]));
    ASSERT_LE(error, bound<B>(std::fabs(sums[i]), 1) + 1e-15 * static_cast<double>(sizes[i])) << "element " << i;
  }
}

TYPED_TEST(MaskedGradients, OfABiasAreSummedOverTheAxesAlongWhichItIsBroadcast) {
  for (const std::int64_t cols : {9, 100, 700}) {
    for (const std::vector<std::int64_t>& bias :
         {Index{2, 3, 7, cols}, Index{1, 3, 7, cols}, Index{1, 1, 7, cols}, Index{2, 1, 1, cols}, Index{1, 1, 1, cols},
          Index{1, 3, 1, cols}, Index{2, 3, 7, 1}, Index{1, 3, 1, 1}, Index{1, 1, 1, 1}}) {
      bias_gradient_matches<TypeParam, TypeParam>({2, 3, 7, cols}, bias);
      bias_gradient_matches<TypeParam, float>({2, 3, 7, cols}, bias);
    }
  }
  bias_gradient_matches<TypeParam, TypeParam>({40, 30, 7, 20}, {1, 1, 1, 20});
  bias_gradient_matches<TypeParam, TypeParam>({40, 30, 7, 20}, {1, 30, 1, 1});
}

TYPED_TEST(MaskedGradients, OfSinksAreWhatTheColumnsGradientsLack) {
  const std::vector<double> logits{1, -0.5, 2};
  for (const std::int64_t batch : {2, 50}) {
    GradientTrial<TypeParam> trial(right({batch, 3, 7, 60}));
    const Masks mask(60);
    Meaning meaning = mask.of_joined();
    meaning.sinks   = logits;
    trial.set_y(meaning, {});
    Buffer<float> dsinks(3);

    KokkosNN::masked_softmax_sinks_backward(Exec(), trial.forward.y_view(), trial.dy_view(), mask.joined(),
                                            strided_view<1>(dsinks.device(), right({3})));
    Exec().fence();

    dsinks.download();
    std::vector<Real> sums(3, 0), sizes(3, 0);
    reference_sums(trial, meaning, [](const At& at) { return at.head; }, sums, sizes);
    for (int h = 0; h < 3; ++h) {
      const double error = static_cast<double>(std::fabs(exact(dsinks.host()[h]) + sums[h]));
      EXPECT_LE(error, bound<float>(std::fabs(sums[h]), 1) + 1e-15 * static_cast<double>(sizes[h])) << "head " << h;
    }
  }
}

TYPED_TEST(MaskedGradients, AgreeWithDifferencesOfTheForwardCall) {
  if constexpr (std::is_same_v<TypeParam, double>) {
    // L = sum of y dy; each derivative against (L(+h) - L(-h)) / 2h.
    const std::int64_t cols = 11;
    const std::vector<std::int64_t> extents{2, 3, 7, cols};
    GradientTrial<double> trial(right(extents));
    const Masks mask(cols);
    MaskData<double, 4> sinks_at(right({1, 1, 1, 3}), [](const Index& i) { return 0.3 * double(i[3]) - 0.2; });
    Kokkos::View<double*, Memory> sinks("sinks", 3);
    Kokkos::View<double****, Kokkos::LayoutRight, Memory> bias("bias", 1, 3, 1, cols);
    const auto sinks_host = Kokkos::create_mirror(sinks);
    const auto bias_host  = Kokkos::create_mirror(bias);
    for (int h = 0; h < 3; ++h) sinks_host(h) = 0.3 * h - 0.2;
    for (std::int64_t i = 0; i < 3 * cols; ++i) bias_host.data()[i] = noise_at({i}, 1);
    const MaskedSoftmaxOptions options{.scale = 0.7, .softcap = 4, .sinks = sinks};
    const auto joined = masks(mask.causal(), BooleanMask{mask.kept.view()}, AdditiveBias{bias});
    const auto loss   = [&] {
      Kokkos::deep_copy(sinks, sinks_host);
      Kokkos::deep_copy(bias, bias_host);
      trial.forward.x().upload();
      trial.forward.run(joined, options);
      Real sum = 0;
      for (std::int64_t i = 0; i < trial.place.count(); ++i) {
        sum += exact(trial.forward.y().host()[i]) * exact(trial.dy.host()[i]);
      }
      return sum;
    };
    const auto slope = [&](double& value) {
      const double at = value, h = 1e-5;
      value           = at + h;
      const Real up   = loss();
      value           = at - h;
      const Real down = loss();
      value           = at;
      return static_cast<double>((up - down) / (2 * h));
    };
    loss();
    Kokkos::View<double*, Memory> dsinks("dsinks", 3);
    Kokkos::View<double****, Kokkos::LayoutRight, Memory> dbias("dbias", 1, 3, 1, cols);
    trial.run(joined, options);
    KokkosNN::masked_softmax_bias_backward(Exec(), trial.forward.y_view(), trial.dy_view(), joined, dbias);
    KokkosNN::masked_softmax_sinks_backward(Exec(), trial.forward.y_view(), trial.dy_view(), joined, dsinks);
    Exec().fence();
    const auto dsinks_host = Kokkos::create_mirror(dsinks);
    const auto dbias_host  = Kokkos::create_mirror(dbias);
    Kokkos::deep_copy(dsinks_host, dsinks);
    Kokkos::deep_copy(dbias_host, dbias);

    for (int h = 0; h < 3; ++h) EXPECT_NEAR(dsinks_host(h), slope(sinks_host(h)), 1e-8) << "sink " << h;
    for (std::int64_t i = 0; i < 3 * cols; i += 5) {
      EXPECT_NEAR(dbias_host.data()[i], slope(bias_host.data()[i]), 1e-8) << "bias " << i;
    }
    for (std::int64_t i = 0; i < trial.place.count(); i += 13) {
      EXPECT_NEAR(trial.dx.host()[i], slope(trial.forward.x().host()[i]), 1e-8) << "x " << i;
    }
  }
}

TEST(MaskedLogSoftmaxGradient, AgreesWithDifferencesOfTheForwardCall) {
  const std::vector<std::int64_t> extents{2, 3, 7, 11};
  GradientTrial<double, RowOperator::masked_log_softmax_backward> trial(right(extents));
  const Masks mask(11);
  const MaskData<double, 1> sinks(right({3}), [](const Index& i) { return 0.3 * double(i[0]) - 0.2; });
  const MaskedSoftmaxOptions options{.scale = 0.7, .softcap = 4, .sinks = sinks.view()};
  // L = sum of y dy over what the mask allows.
  const auto loss = [&] {
    trial.forward.x().upload();
    trial.forward.run(mask.joined(), options);
    Real sum = 0;
    for (std::int64_t i = 0; i < trial.place.count(); ++i) {
      const Real y = exact(trial.forward.y().host()[i]);
      if (std::isfinite(y)) sum += y * exact(trial.dy.host()[i]);
    }
    return sum;
  };
  loss();
  trial.run(mask.joined(), options);
  for (std::int64_t i = 0; i < trial.place.count(); i += 13) {
    double& x       = trial.forward.x().host()[i];
    const double at = x, h = 1e-5;
    x               = at + h;
    const Real up   = loss();
    x               = at - h;
    const Real down = loss();
    x               = at;
    EXPECT_NEAR(trial.dx.host()[i], static_cast<double>((up - down) / (2 * h)), 1e-8) << "x " << i;
  }
}

TYPED_TEST(MaskedGradients, SumsHaveTheSameBitsEveryTime) {
  GradientTrial<TypeParam> trial(right({20, 3, 7, 90}));
  const Masks mask(90);
  trial.set_y(mask.of_joined(), {});
  Buffer<TypeParam> dbias(90);
  Buffer<float> dsinks(3);
  std::vector<TypeParam> first;
  std::vector<float> first_sinks;
  for (int run = 0; run < 10; ++run) {
    KokkosNN::masked_softmax_bias_backward(Exec(), trial.forward.y_view(), trial.dy_view(), mask.joined(),
                                           strided_view<1>(dbias.device(), right({90})));
    KokkosNN::masked_softmax_sinks_backward(Exec(), trial.forward.y_view(), trial.dy_view(), mask.joined(),
                                            strided_view<1>(dsinks.device(), right({3})));
    Exec().fence();
    dbias.download();
    dsinks.download();
    if (run == 0) {
      first.assign(dbias.host(), dbias.host() + 90);
      first_sinks.assign(dsinks.host(), dsinks.host() + 3);
    }
    ASSERT_EQ(std::memcmp(first.data(), dbias.host(), 90 * sizeof(TypeParam)), 0);
    ASSERT_EQ(std::memcmp(first_sinks.data(), dsinks.host(), 3 * sizeof(float)), 0);
  }
}

TEST(MaskedGradientErrors, NameWhatDiffers) {
  GradientTrial<float> trial(right({2, 3, 7, 20}));
  Buffer<float> out(7 * 20);
  const auto complaint = [](const auto& f) {
    try {
      f();
    } catch (const std::invalid_argument& e) {
      return std::string(e.what());
    }
    return std::string("(nothing was thrown)");
  };
  const auto small = strided_view<4>(trial.dx.device(), right({2, 3, 7, 19}));
  EXPECT_EQ(complaint([&] {
              KokkosNN::masked_softmax_backward(trial.forward.x_view(), trial.forward.y_view(), trial.dy_view(),
                                                CausalMask{}, small);
            }),
            "KokkosNN::masked_softmax_backward: y and dx must have the same extents, but y is (2, 3, 7, 20) and dx is "
            "(2, 3, 7, 19)");
  EXPECT_EQ(
      complaint([&] {
        KokkosNN::masked_softmax_bias_backward(trial.forward.y_view(), trial.dy_view(), CausalMask{},
                                               strided_view<2>(out.device(), right({6, 20})));
      }),
      "KokkosNN::masked_softmax_bias_backward: dbias of extents (6, 20) does not broadcast to (2, 3, 7, 20); x is "
      "(2, 3, 7, 20)");
  EXPECT_EQ(
      complaint([&] {
        KokkosNN::masked_softmax_sinks_backward(trial.forward.y_view(), trial.dy_view(), CausalMask{},
                                                strided_view<1>(out.device(), right({4})));
      }),
      "KokkosNN::masked_softmax_sinks_backward: dsinks must hold one value for each of the 3 heads of x, (2, 3, 7, "
      "20), but holds 4");
  EXPECT_NE(complaint([&] {
              KokkosNN::masked_softmax_bias_backward(trial.forward.y_view(), trial.dy_view(), CausalMask{},
                                                     strided_view<2>(out.device(), Placement{{7, 20}, {0, 1}, 0}));
            }).find("KokkosNN::masked_softmax_bias_backward: elements of the output share memory"),
            std::string::npos);
  EXPECT_NE(complaint([&] {
              KokkosNN::masked_softmax_backward(trial.forward.x_view(), trial.forward.y_view(), trial.dy_view(),
                                                CausalMask{}, strided_view<4>(trial.forward.x().device(), trial.place),
                                                {.softcap = 2});
            }).find("x at"),
            std::string::npos);
  out.download();
  EXPECT_TRUE(out.untouched());
}

}  // namespace KokkosNNTest
