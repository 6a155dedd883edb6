// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/message.hpp"
#include "support/segmented.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Rows whose elements lie in any order, by an index: against the reference of each row, whose elements are gathered.

namespace KokkosNNTest {

using KokkosNN::SegmentIndex;

namespace {

/// The row of each element, shuffled; `outside` more elements are in no row, with numbers below 0 and beyond.
std::vector<std::int64_t> shuffled_rows(const Lengths& lengths, std::int64_t outside, std::uint32_t seed = 7) {
  std::vector<std::int64_t> rows;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    rows.insert(rows.end(), static_cast<std::size_t>(lengths[r]), static_cast<std::int64_t>(r));
  }
  for (std::int64_t i = 0; i < outside; ++i) {
    rows.push_back(i % 2 == 0 ? -1 - i : static_cast<std::int64_t>(lengths.size()) + i);
  }
  std::shuffle(rows.begin(), rows.end(), std::mt19937(seed));
  return rows;
}

Lengths index_lengths() {
  Lengths lengths = random_lengths(150, 0, 30);
  for (const std::int64_t length : {0, 1, 600, 5000, 0}) lengths.push_back(length);
  return lengths;
}

constexpr bool is_gradient_of_rows(RowOperator op) {
  return op == RowOperator::softmax_backward || op == RowOperator::log_softmax_backward;
}

/// A call on rows by an index, of `heads` heads at any strides. x are logits, of a gradient y; results are poisoned and
/// guarded.
template <RowOperator Op, class T, class I = std::int32_t>
class IndexTrial {
 public:
  static constexpr bool is_lse      = Op == RowOperator::logsumexp;
  static constexpr bool is_gradient = is_gradient_of_rows(Op);

  IndexTrial(std::vector<std::int64_t> rows, std::int64_t segments, const Placement& place,
             Recipe recipe = Recipe::uniform, double scale = 1)
      : m_rows(std::move(rows)),
        m_segments(segments),
        m_place(place),
        m_out_place(is_lse ? right({segments, place.extents[1]}) : place),
        m_scale(scale),
        m_x(place.span()),
        m_dy(place.span()),
        m_out(m_out_place.span()) {
    std::vector<I> index;
    for (const std::int64_t row : m_rows) index.push_back(static_cast<I>(row));
    m_index = raw_offsets(index);
    fill(m_x.host(), m_place, 0, recipe);
    fill(m_dy.host(), m_place, 0, Recipe::uniform);
    if (is_gradient) make_results();
    upload();
  }

  Buffer<T>& x() { return m_x; }
  Buffer<T>& dy() { return m_dy; }
  Buffer<T>& out() { return m_out; }
  void upload() {
    m_x.upload();
    m_dy.upload();
  }
  std::int64_t at(std::int64_t i, std::int64_t head) const {
    return m_place.origin + i * m_place.strides[0] + head * m_place.strides[1];
  }

  void call(Output output = Output::own, const SegmentedOptions& given = {}) const {
    SegmentedOptions options = given;
    options.scale            = m_scale;
    const SegmentIndex index{m_index, m_segments};
    const auto x  = strided_view<2>(static_cast<const T*>(m_x.device()), m_place);
    const auto dy = strided_view<2>(static_cast<const T*>(m_dy.device()), m_place);
    T* const to   = (output == Output::own ? m_out : (output == Output::over_x ? m_x : m_dy)).device();
    const auto y  = strided_view<2>(to, m_out_place);
    if constexpr (Op == RowOperator::softmax_backward) {
      KokkosNN::segmented_softmax_backward(Exec(), x, dy, index, y, options);
    } else if constexpr (Op == RowOperator::log_softmax_backward) {
      KokkosNN::segmented_log_softmax_backward(Exec(), x, dy, index, y, options);
    } else {
      apply_segmented<Op>(Exec(), x, index, y, options);
    }
  }

  ::testing::AssertionResult run_correct(Output output = Output::own, const SegmentedOptions& options = {}) {
    const std::vector<T> x(m_x.host(), m_x.host() + m_x.count());
    const std::vector<T> dy(m_dy.host(), m_dy.host() + m_dy.count());
    m_out.poison_all();
    call(output, options);
    Exec().fence();
    Buffer<T>& to = output == Output::own ? m_out : (output == Output::over_x ? m_x : m_dy);
    to.download();
    if (!to.guards_intact()) return ::testing::AssertionFailure() << "something outside was written";
    if (output == Output::own && !gaps_intact(m_out, m_out_place)) {
      return ::testing::AssertionFailure() << "something between the heads was written";
    }
    Errors errors;
    for (std::int64_t head = 0; head < m_place.extents[1]; ++head) {
      if (!is_lse && !outside_is_intact(output, x, dy, to, head)) {
        return ::testing::AssertionFailure() << "an element in no row was written";
      }
      for_rows([&](std::int64_t row, const std::vector<std::int64_t>& of_row) {
        if (of_row.empty() && !is_lse) return;
        const std::vector<T> x_row = gathered(x.data(), of_row, head), dy_row = gathered(dy.data(), of_row, head);
        const std::vector<T> results =
            is_lse ? std::vector<T>{to.host()[row * m_out_place.strides[0] + head * m_out_place.strides[1]]}
                   : gathered(to.host(), of_row, head);
        compare(x_row, dy_row, results, row, options, errors);
      });
    }
    const double allowed = is_gradient ? gradient_promise<Op, T> : ragged_promise<Op, T>;
    if (errors.max_ulp <= allowed) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << errors.worst;
  }

 private:
  template <class F>
  void for_rows(const F& f) const {
    std::vector<std::vector<std::int64_t>> all(static_cast<std::size_t>(m_segments));
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
      if (m_rows[i] >= 0 && m_rows[i] < m_segments) all[m_rows[i]].push_back(static_cast<std::int64_t>(i));
    }
    for (std::size_t row = 0; row < all.size(); ++row) f(static_cast<std::int64_t>(row), all[row]);
  }

  std::vector<T> gathered(const T* from, const std::vector<std::int64_t>& of_row, std::int64_t head) const {
    std::vector<T> result;
    for (const std::int64_t i : of_row) result.push_back(from[at(i, head)]);
    return result;
  }

  /// The forward call's results, in place of logits.
  void make_results() {
    for (std::int64_t head = 0; head < m_place.extents[1]; ++head) {
      for_rows([&](std::int64_t, const std::vector<std::int64_t>& of_row) {
        std::vector<Reference::Real> y;
        const std::vector<T> logits = gathered(m_x.host(), of_row, head);
        const Reference::Row<T> row{logits.data(), static_cast<std::int64_t>(logits.size())};
        if (of_row.empty()) return;
        if (Op == RowOperator::softmax_backward) Reference::softmax(row, m_scale, MaskedRowPolicy::nan, y);
        if (Op == RowOperator::log_softmax_backward) Reference::log_softmax(row, m_scale, MaskedRowPolicy::nan, y);
        for (std::size_t k = 0; k < of_row.size(); ++k) {
          m_x.host()[at(of_row[k], head)] = static_cast<T>(static_cast<double>(y[k]));
        }
      });
    }
  }

  bool outside_is_intact(Output output, const std::vector<T>& x, const std::vector<T>& dy, const Buffer<T>& to,
                         std::int64_t head) const {
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
      if (m_rows[i] >= 0 && m_rows[i] < m_segments) continue;
      const std::int64_t place = at(static_cast<std::int64_t>(i), head);
      const T before           = output == Output::own ? poison<T>() : (output == Output::over_x ? x : dy)[place];
      if (!same_bits(to.host()[place], before)) return false;
    }
    return true;
  }

  void compare(const std::vector<T>& x, const std::vector<T>& dy, const std::vector<T>& results, std::int64_t row,
               const SegmentedOptions& options, Errors& errors) const {
    const Reference::Row<T> x_row{x.data(), static_cast<std::int64_t>(x.size())}, dy_row{dy.data(), x_row.cols};
    if constexpr (is_gradient) {
      const auto expected = Op == RowOperator::softmax_backward
                                ? Reference::softmax_backward(x_row, dy_row, m_scale)
                                : Reference::log_softmax_backward(x_row, dy_row, m_scale);
      for (std::size_t i = 0; i < results.size(); ++i) {
        const auto& [want, magnitude, ill] = expected[i];
        errors.add(ulp_error<T>(exact(results[i]), want, std::isfinite(magnitude) ? magnitude : 0), row,
                   static_cast<std::int64_t>(i), exact(results[i]), want);
      }
    } else {
      compare_row<Op>(x_row, results.data(), 1, row, {.scale = m_scale, .masked_row = options.masked_row}, errors);
    }
  }

  std::vector<std::int64_t> m_rows;
  std::int64_t m_segments;
  Placement m_place;
  Placement m_out_place;
  double m_scale;
  OffsetsView<const I> m_index;
  Buffer<T> m_x;
  Buffer<T> m_dy;
  Buffer<T> m_out;
};

template <class F>
void for_each_indexed(const F& f) {
  for_each_segmented(f);
  for_each_segmented_gradient(f);
}

/// Where heads may lie: side by side, apart, with gaps.
std::vector<Placement> places_of(std::int64_t elements, std::int64_t heads) {
  return {right({elements, heads}), left({elements, heads}), right({elements, heads}, 2), left({elements, heads}, 3)};
}

template <class T>
class SegmentIndexOf : public ::testing::Test {};
TYPED_TEST_SUITE(SegmentIndexOf, ElementTypes, ElementNames);

TYPED_TEST(SegmentIndexOf, ElementsInAnyOrderMatchInEveryLayout) {
  const Lengths lengths = index_lengths();
  const auto rows       = shuffled_rows(lengths, 5);
  const auto segments   = static_cast<std::int64_t>(lengths.size());
  for_each_indexed([&](auto op) {
    for (const std::int64_t heads : {1, 3}) {
      for (const Placement& place : places_of(static_cast<std::int64_t>(rows.size()), heads)) {
        IndexTrial<decltype(op)::value, TypeParam> trial(rows, segments, place);
        EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(decltype(op)::value) << ", " << heads << " heads";
      }
    }
  });
}

TYPED_TEST(SegmentIndexOf, EveryRecipeAndScaleMatch) {
  const Lengths lengths = index_lengths();
  const auto rows       = shuffled_rows(lengths, 0);
  const Placement place = right({static_cast<std::int64_t>(rows.size()), 1});
  for (const Recipe recipe : all_recipes) {
    for (const double scale : {1.0, -0.7}) {
      for_each_segmented([&](auto op) {
        IndexTrial<decltype(op)::value, TypeParam, std::int64_t> trial(rows, static_cast<std::int64_t>(lengths.size()),
                                                                       place, recipe, scale);
        EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(decltype(op)::value) << ' ' << int(recipe) << ' '
                                         << scale;
      });
    }
  }
}

TYPED_TEST(SegmentIndexOf, CallsInPlaceMatch) {
  const Lengths lengths = index_lengths();
  const auto rows       = shuffled_rows(lengths, 3);
  const auto segments   = static_cast<std::int64_t>(lengths.size());
  const Placement place = right({static_cast<std::int64_t>(rows.size()), 2});
  IndexTrial<RowOperator::softmax, TypeParam> softmax(rows, segments, place);
  IndexTrial<RowOperator::log_softmax, TypeParam> log_softmax(rows, segments, place);
  EXPECT_TRUE(softmax.run_correct(Output::over_x));
  EXPECT_TRUE(log_softmax.run_correct(Output::over_x));
  for_each_segmented_gradient([&](auto op) {
    for (const Output output : {Output::over_x, Output::over_dy}) {
      IndexTrial<decltype(op)::value, TypeParam> trial(rows, segments, place);
      EXPECT_TRUE(trial.run_correct(output));
    }
  });
}

TYPED_TEST(SegmentIndexOf, RowsWithNaNInfinitiesAndMaskedElementsMatch) {
  const float inf       = std::numeric_limits<float>::infinity();
  const float nan       = std::numeric_limits<float>::quiet_NaN();
  const Lengths lengths = random_lengths(200, 1, 20);
  const auto rows       = shuffled_rows(lengths, 0);
  const Placement place = right({static_cast<std::int64_t>(rows.size()), 1});
  for (const MaskedRowPolicy policy : {MaskedRowPolicy::nan, MaskedRowPolicy::zero}) {
    for_each_segmented([&](auto op) {
      IndexTrial<decltype(op)::value, TypeParam> trial(rows, static_cast<std::int64_t>(lengths.size()), place);
      std::vector<bool> has_one(lengths.size(), false);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        const std::int64_t kind = rows[i] % 6;  // NaN; +inf; both; one -inf; all -inf; none
        const bool is_first     = !has_one[rows[i]];
        has_one[rows[i]]        = true;
        if (kind == 4 || (is_first && kind < 4)) {
          trial.x().host()[i] = static_cast<TypeParam>(kind == 0 ? nan : (kind < 3 ? inf : -inf));
        } else if (kind == 2) {
          trial.x().host()[i] = static_cast<TypeParam>(nan);
        }
      }
      trial.upload();
      EXPECT_TRUE(trial.run_correct(Output::own, {.masked_row = policy})) << KokkosNN::to_string(decltype(op)::value);
    });
  }
}

TYPED_TEST(SegmentIndexOf, GradientsOfInfinitiesAndNaNAreAsIeeeArithmeticHasThem) {
  const float inf       = std::numeric_limits<float>::infinity();
  const float nan       = std::numeric_limits<float>::quiet_NaN();
  const Lengths lengths = random_lengths(100, 3, 20);
  const auto rows       = shuffled_rows(lengths, 0);
  const Placement place = right({static_cast<std::int64_t>(rows.size()), 1});
  for_each_segmented_gradient([&](auto op) {
    IndexTrial<decltype(op)::value, TypeParam> trial(rows, static_cast<std::int64_t>(lengths.size()), place);
    std::vector<int> seen(lengths.size(), 0);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::int64_t kind = rows[i] % 5;  // NaN; inf; -inf; both; none
      const int n             = seen[rows[i]]++;
      if (kind == 4 || n > (kind == 3 ? 1 : 0)) continue;
      trial.dy().host()[i] =
          static_cast<TypeParam>(kind == 0 ? nan : (kind == 1 || (kind == 3 && n == 0) ? inf : -inf));
    }
    trial.upload();
    EXPECT_TRUE(trial.run_correct()) << KokkosNN::to_string(decltype(op)::value);
  });
}

TYPED_TEST(SegmentIndexOf, LogSumExpsHaveTheGradientOfSortedRows) {
  const Lengths lengths = index_lengths();
  const auto rows       = shuffled_rows(lengths, 0);
  const std::int64_t n  = static_cast<std::int64_t>(rows.size());
  const auto segments   = static_cast<std::int64_t>(lengths.size());
  using Vector          = Kokkos::View<TypeParam*, Memory>;
  const auto vector_of  = [](const std::vector<TypeParam>& values) {
    const Vector view("values", values.size());
    const auto host = Kokkos::create_mirror_view(view);
    for (std::size_t i = 0; i < values.size(); ++i) host(i) = values[i];
    Kokkos::deep_copy(view, host);
    return view;
  };
  std::vector<std::int64_t> order(rows.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return rows[a] < rows[b]; });
  std::vector<TypeParam> x(rows.size()), sorted_x(rows.size()), lse(lengths.size()), dlse(lengths.size());
  for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<TypeParam>(noise_of(random_bits(std::uint32_t(i) + 1)));
  for (std::int64_t i = 0; i < n; ++i) sorted_x[i] = x[order[i]];
  for (std::int64_t r = 0; r < segments; ++r) {
    lse[r]  = static_cast<TypeParam>(3 + noise_of(random_bits(std::uint32_t(r) + 9999)));
    dlse[r] = static_cast<TypeParam>(noise_of(random_bits(std::uint32_t(r) + 99999)));
  }
  const Vector dx("dx", x.size()), sorted_dx("sorted_dx", x.size());
  KokkosNN::segmented_logsumexp_backward(vector_of(x), vector_of(lse), vector_of(dlse),
                                         SegmentIndex{raw_offsets(rows), segments}, dx, {.scale = 0.5});
  KokkosNN::segmented_logsumexp_backward(vector_of(sorted_x), vector_of(lse), vector_of(dlse), offsets_of(lengths),
                                         sorted_dx, {.scale = 0.5});
  Exec().fence();
  const auto got  = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), dx);
  const auto want = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), sorted_dx);
  bool is_zero    = true;
  for (std::int64_t i = 0; i < n; ++i) {
    ASSERT_TRUE(same_bits(got(order[i]), want(i))) << i;
    is_zero = is_zero && static_cast<double>(want(i)) == 0;
  }
  EXPECT_FALSE(is_zero);
}

/// Results of softmax by row and by the place of an element in it, for one order of the elements.
template <RowOperator Op>
std::vector<float> results_in_order(const Lengths& lengths, std::uint32_t seed) {
  std::vector<std::int64_t> sorted = shuffled_rows(lengths, 0, 1);
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::int64_t> order(sorted.size()), rows(sorted.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  for (std::size_t i = 0; i < order.size(); ++i) rows[i] = sorted[order[i]];
  IndexTrial<Op, float> trial(rows, static_cast<std::int64_t>(lengths.size()),
                              right({static_cast<std::int64_t>(rows.size()), 1}));
  for (std::size_t i = 0; i < order.size(); ++i) {
    trial.x().host()[i]  = static_cast<float>(noise_of(random_bits(std::uint32_t(order[i]) + 5)));
    trial.dy().host()[i] = static_cast<float>(noise_of(random_bits(std::uint32_t(order[i]) + 500000)));
  }
  trial.upload();
  trial.call();
  Exec().fence();
  trial.out().download();
  if (Op == RowOperator::logsumexp) return {trial.out().host(), trial.out().host() + lengths.size()};
  std::vector<float> results(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) results[order[i]] = trial.out().host()[i];
  return results;
}

TEST(SegmentIndexBits, DoNotDependOnTheOrderOfElements) {
  const Lengths lengths{4000, 1, 0, 300, 77, 20000, 12};
  for_each_indexed([&](auto op) {
    const auto first = results_in_order<decltype(op)::value>(lengths, 1);
    for (const std::uint32_t seed : {2u, 3u}) {
      const auto other = results_in_order<decltype(op)::value>(lengths, seed);
      EXPECT_TRUE(std::equal(first.begin(), first.end(), other.begin(), same_bits<float>))
          << KokkosNN::to_string(decltype(op)::value);
    }
  });
}

TEST(SegmentIndexCalls, TakeIntegersOfEveryWidth) {
  const Lengths lengths{3, 0, 5, 2};
  const auto rows       = shuffled_rows(lengths, 0);
  const Placement place = right({10, 1});
  IndexTrial<RowOperator::softmax, float, std::uint8_t> bytes(rows, 4, place);
  IndexTrial<RowOperator::softmax, float, std::int16_t> shorts(rows, 4, place);
  IndexTrial<RowOperator::softmax, float, std::uint32_t> words(rows, 4, place);
  EXPECT_TRUE(bytes.run_correct());
  EXPECT_TRUE(shorts.run_correct());
  EXPECT_TRUE(words.run_correct());
}

TEST(SegmentIndexCalls, OfNothingWriteNothingButLogSumExpsOfEmptyRows) {
  const Kokkos::View<float*, Memory> none("none", 0), x("x", 3), y("y", 3), lse("lse", 2);
  const Kokkos::View<int*, Memory> no_index("no_index", 0), index("index", 3);
  Kokkos::deep_copy(y, 7.0f);
  KokkosNN::segmented_softmax(none, SegmentIndex{no_index, 5}, none);
  KokkosNN::segmented_softmax(x, SegmentIndex{index, 0}, y);
  KokkosNN::segmented_logsumexp(none, SegmentIndex{no_index, 2}, lse);
  Exec().fence();
  const auto of_y   = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
  const auto of_lse = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), lse);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(of_y(i), 7.0f);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(of_lse(i), -std::numeric_limits<float>::infinity());
}

TEST(SegmentIndexErrors, NameTheFunctionAndTheOffendingValues) {
  const Kokkos::View<float*, Memory> x("x", 3), y("y", 3), lse("lse", 4);
  const auto two = raw_offsets<int>({0, 1}), three = raw_offsets<int>({0, 5, 1});
  EXPECT_EQ(message_of([&] { KokkosNN::segmented_softmax(x, SegmentIndex{two, 4}, y); }),
            "KokkosNN::segmented_softmax: index must have 3 elements as values, but has 2");
  EXPECT_EQ(message_of([&] { KokkosNN::segmented_softmax(x, SegmentIndex{three, -4}, y); }),
            "KokkosNN::segmented_softmax: segments must not be negative, but is -4");
  EXPECT_EQ(message_of([&] { KokkosNN::segmented_logsumexp(x, SegmentIndex{three, 3}, lse); }),
            "KokkosNN::segmented_logsumexp: lse must have 3 elements as there are rows, but has 4");
  EXPECT_EQ(message_of([&] { KokkosNN::segmented_softmax(x, SegmentIndex{three, 5}, y, {.check_offsets = true}); }),
            "KokkosNN::segmented_softmax: index must be from 0 to 4, segments being 5, but element 1 has 5");
  EXPECT_EQ(message_of([&] { KokkosNN::segmented_softmax(x, SegmentIndex{three, 6}, y, {.check_offsets = true}); }),
            "(nothing was thrown)");
}

}  // namespace

}  // namespace KokkosNNTest
