// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/instances.hpp"
#include "support/recorder.hpp"
#include "support/rope.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

// The rotary position embedding and its gradient.

namespace KokkosNNTest {
namespace {

using KokkosNN::rope;
using KokkosNN::rope_backward;

template <class T>
class Rope : public ::testing::Test {};
TYPED_TEST_SUITE(Rope, ElementTypes, ElementNames);

/// f(a case with tables or without, forward or backward, of each form)
template <class F>
void for_each_kind(const F& f) {
  for (const RopeForm form : all_rope_forms) {
    for (const bool has_tables : {true, false}) {
      for (const bool is_backward : {true, false}) {
        RopeCase given;
        given.options.form = form;
        given.has_tables   = has_tables;
        given.is_backward  = is_backward;
        f(given);
      }
    }
  }
}

std::string name_of(const RopeCase& given) {
  return std::string(given.options.form == RopeForm::interleaved ? "interleaved" : "half_rotated") +
         (given.has_tables ? ", tables" : ", angles") + (given.is_backward ? ", backward" : "");
}

TYPED_TEST(Rope, RotatesRowsOfAnyEvenLength) {
  for_each_kind([](const RopeCase& given) {
    for (const std::int64_t dim : {2, 4, 6, 10, 34, 64, 80, 96, 128, 256, 2100}) {
      for (const std::int64_t heads : {1, 3, 5, 8}) {
        EXPECT_TRUE((dense_rope<TypeParam, 4>({2, 7, heads, dim}, given).run_correct()))
            << name_of(given) << ", " << heads << " heads of " << dim;
      }
    }
  });
}

TYPED_TEST(Rope, RotatesTheFirstElementsAloneAndCopiesTheOthers) {
  for_each_kind([](RopeCase given) {
    for (const bool is_in_place : {false, true}) {
      given.is_in_place = is_in_place;
      for (const auto& [dim, rotary] : {std::pair{64, 32}, {65, 2}, {80, 20}, {128, 96}, {130, 128}, {7, 6}}) {
        given.options.rotary_dims = rotary;
        EXPECT_TRUE((dense_rope<TypeParam, 4>({2, 5, 3, dim}, given).run_correct()))
            << name_of(given) << ", " << rotary << " of " << dim << (is_in_place ? " in place" : "");
      }
    }
  });
}

TYPED_TEST(Rope, TakesViewsOfRankTwoToFourWithPositionsAlongAnyAxisButTheLast) {
  for_each_kind([](RopeCase given) {
    EXPECT_TRUE((dense_rope<TypeParam, 2>({19, 64}, given).run_correct())) << name_of(given);
    EXPECT_TRUE((dense_rope<TypeParam, 3>({19, 3, 32}, given).run_correct())) << name_of(given);
    for (const int axis : {0, 1, 2, -2, -3, -4}) {
      given.options.sequence_axis = axis;
      EXPECT_TRUE((dense_rope<TypeParam, 4>({3, 4, 5, 32}, given).run_correct()))
          << name_of(given) << ", axis " << axis;
      if (axis == 2 || axis == -4) continue;
      EXPECT_TRUE((dense_rope<TypeParam, 3>({3, 4, 32}, given).run_correct())) << name_of(given) << ", axis " << axis;
    }
  });
}

TYPED_TEST(Rope, TakesAnyStridesAndLayouts) {
  const std::vector<std::int64_t> extents{2, 18, 3, 48};
  const Placement places[] = {right(extents),
                              right(extents, 5),
                              left(extents),
                              left(extents, 3),
                              Placement{extents, {18 * 3 * 48 * 2, 3 * 48 * 2, 48 * 2, 2}, 1},
                              Placement{extents, {48, 2 * 48, 2 * 18 * 48, 1}, 0}};
  for_each_kind([&](RopeCase given) {
    for (const Placement& x : places) {
      for (const Placement& y : places) {
        RopeTrial<TypeParam, 4> trial(x, y, given);
        EXPECT_TRUE(trial.run_correct()) << name_of(given) << ", strides " << x.strides[3] << " and " << y.strides[3];
      }
    }
    given.misalignment = 1;
    EXPECT_TRUE((dense_rope<TypeParam, 4>(extents, given).run_correct())) << name_of(given) << ", misaligned";
    given.options.rotary_dims = 40;
    RopeTrial<TypeParam, 4> partial(left(extents), right(extents, 1), given);
    EXPECT_TRUE(partial.run_correct()) << name_of(given) << ", partial, to another layout";
    given.options.sequence_axis = -4;  // first, so that the batch is the inner axis of positions
    RopeTrial<TypeParam, 4> first(right(extents), left(extents), given);
    EXPECT_TRUE(first.run_correct()) << name_of(given) << ", sequence first";
  });
}

TYPED_TEST(Rope, ReadsInputsWhoseStridesAreZero) {
  RopeCase given;
  const std::vector<std::int64_t> extents{3, 4, 2, 16};
  RopeTrial<TypeParam, 4> trial(Placement{extents, {0, 16, 0, 1}, 0}, right(extents), given);
  EXPECT_TRUE(trial.run_correct());
}

TYPED_TEST(Rope, ReadsTablesOfAnyStrides) {
  for_each_kind([](RopeCase given) {
    if (!given.has_tables) return;
    given.table_stride = 2;
    for (const std::int64_t dim : {6, 64, 80}) {
      EXPECT_TRUE((dense_rope<TypeParam, 3>({9, 3, dim}, given).run_correct())) << name_of(given) << ", " << dim;
    }
  });
}

TYPED_TEST(Rope, RunsInPlace) {
  for_each_kind([](RopeCase given) {
    given.is_in_place = true;
    for (const std::int64_t dim : {6, 64, 96}) {
      EXPECT_TRUE((dense_rope<TypeParam, 4>({2, 7, 3, dim}, given).run_correct())) << name_of(given) << ", " << dim;
      RopeTrial<TypeParam, 4> left_trial(left({2, 7, 3, dim}), left({2, 7, 3, dim}), given);
      EXPECT_TRUE(left_trial.run_correct()) << name_of(given) << ", left, " << dim;
    }
  });
}

TYPED_TEST(Rope, TakesPositionsOfASequenceOrOfEachBatch) {
  for_each_kind([](RopeCase given) {
    for (const PositionsOf positions : {PositionsOf::sequence, PositionsOf::batch}) {
      for (const bool has_32_bits : {true, false}) {
        given.positions   = positions;
        given.has_32_bits = has_32_bits;
        for (const std::int64_t offset : {0, 6}) {
          given.options.position_offset = offset;
          for (const int axis : {0, 1, -2}) {
            given.options.sequence_axis = axis;
            EXPECT_TRUE((dense_rope<TypeParam, 4>({3, 5, 4, 32}, given).run_correct())) << name_of(given) << axis;
            EXPECT_TRUE((dense_rope<TypeParam, 3>({3, 5, 6}, given).run_correct())) << name_of(given) << axis;
            RopeTrial<TypeParam, 4> strided(left({3, 5, 4, 6}), right({3, 5, 4, 6}), given);
            EXPECT_TRUE(strided.run_correct()) << name_of(given) << axis;
          }
          given.options.sequence_axis = -3;
        }
      }
    }
  });
}

TYPED_TEST(Rope, StartsAtAnOffset) {
  for_each_kind([](RopeCase given) {
    given.options.position_offset = 1000;
    EXPECT_TRUE((dense_rope<TypeParam, 4>({1, 3, 4, 64}, given).run_correct())) << name_of(given);
    if (given.has_tables) return;
    given.options.position_offset = -17;
    EXPECT_TRUE((dense_rope<TypeParam, 4>({1, 30, 4, 64}, given).run_correct())) << name_of(given) << ", negative";
  });
}

TYPED_TEST(Rope, ComputesAnglesForAnyBaseAndScale) {
  for_each_kind([](RopeCase given) {
    if (given.has_tables) return;
    for (const double theta : {1.0, 2.0, 10000.0, 500000.0, 1e6, 0x1p60}) {
      for (const double scale : {1.0, 0.25, 1.0 / 3, -2.0}) {
        given.options.theta          = theta;
        given.options.position_scale = scale;
        EXPECT_TRUE((dense_rope<TypeParam, 3>({50, 2, 80}, given).run_correct()))
            << name_of(given) << ", theta " << theta << ", scale " << scale;
      }
    }
  });
}

/// Positions at which an angle of float arithmetic is off by radians. With double the reference's frequencies must be
/// exact: powers of two.
TYPED_TEST(Rope, ComputesAnglesOfFarPositions) {
  for_each_kind([](RopeCase given) {
    if (given.has_tables) return;
    const bool is_double = std::is_same_v<TypeParam, double>;
    given.positions      = PositionsOf::sequence;
    for (const std::int64_t far :
         {(std::int64_t(1) << 20) - 40, std::int64_t(1) << 24, (std::int64_t(1) << 31) - 400}) {
      given.far           = far;
      given.options.theta = 65536;
      EXPECT_TRUE((dense_rope<TypeParam, 3>({60, 3, 32}, given).run_correct())) << name_of(given) << ", from " << far;
      if (is_double) continue;
      given.options.theta = 10000;
      EXPECT_TRUE((dense_rope<TypeParam, 3>({60, 3, 128}, given).run_correct())) << name_of(given) << ", from " << far;
    }
  });
}

TEST(RotaryFrequencies, HaveTwoWordsAtEveryColumn) {
  for (const double theta : {10000.0, 500000.0, 3.0, 1.0}) {
    for (const std::int64_t columns : {1, 3, 64, 128, 4096}) {
      const auto frequencies = KokkosNN::Impl::rotary_frequencies(theta, 1, columns);
      // Behind the last column the frequency is that of the first over theta.
      const auto last   = frequencies.of(columns);
      const auto first  = product(last, KokkosNN::Impl::DoubleDouble<double>{theta, 0});
      const double rest = (first.high - frequencies.first.high) + (first.low - frequencies.first.low);
      EXPECT_LE(std::fabs(rest) / frequencies.first.high, 0x1p-80) << theta << ", " << columns << " columns";
    }
  }
}

TEST(CosSin, IsWithinItsBoundOfTheAngle) {
  using KokkosNN::Impl::ReducedAngle;
  double worst = 0, worst_float = 0;
  const auto frequencies = KokkosNN::Impl::rotary_frequencies(65536, 1, 16);  // column i: 2^-i radians a position
  for (std::int64_t n = 0; n < 200000; ++n) {
    const std::int64_t position = n < 1000 ? n : n * 10501 % (std::int64_t(1) << 31), column = n % 16;
    const auto reduced      = reduced_angle(frequencies.of(column), static_cast<double>(position));
    const long double angle = std::ldexp(static_cast<long double>(position), -static_cast<int>(column));
    const auto both         = cos_sin(reduced);
    const auto narrow       = cos_sin(KokkosNN::Impl::rounded_angle<float>(reduced));
    const auto add          = [&](double value, float narrow_value, long double expected) {
      worst       = std::max(worst, ulp_error<double>(value, expected, 0.125L));
      worst_float = std::max(worst_float, ulp_error<float>(narrow_value, expected, 0.125L));
    };
    add(both.cos, narrow.cos, std::cos(angle));
    add(both.sin, narrow.sin, std::sin(angle));
  }
  EXPECT_LE(worst, 2);
  EXPECT_LE(worst_float, 2);
  RecordProperty("double_ulp", std::to_string(worst));
  RecordProperty("float_ulp", std::to_string(worst_float));
}

TYPED_TEST(Rope, IsUndoneByItsGradient) {
  const double bound = 4 * rope_promise<TypeParam>(false);
  for_each_kind([&](RopeCase given) {
    if (given.is_backward) return;
    given.is_in_place = true;
    auto trial        = dense_rope<TypeParam, 4>({2, 9, 3, 64}, given);
    const std::vector<TypeParam> before(trial.x().host(), trial.x().host() + trial.x().count());
    trial.call();
    if (given.has_tables) {
      KokkosNN::rope_backward(trial.y_view(), trial.cos_view(), trial.sin_view(), trial.y_view(), given.options);
    } else {
      KokkosNN::rope_backward(trial.y_view(), trial.y_view(), given.options);
    }
    Exec().fence();
    trial.x().download();
    Errors errors;
    for (std::int64_t i = 0; i < trial.x().count(); ++i) {
      errors.add(ulp_error<TypeParam>(exact(trial.x().host()[i]), exact(before[i]), 8), i / 64, i % 64,
                 exact(trial.x().host()[i]), exact(before[i]));
    }
    EXPECT_LE(errors.max_ulp, bound) << name_of(given) << ": " << errors.worst;
  });
}

TYPED_TEST(Rope, LetsNanAndInfinityReachTheirOwnPairAlone) {
  using A = KokkosNN::accumulator_t<TypeParam>;
  for_each_kind([](const RopeCase& given) {
    for (const std::int64_t dim : {6, 64}) {
      for (const A value : {std::numeric_limits<A>::quiet_NaN(), std::numeric_limits<A>::infinity()}) {
        auto trial = dense_rope<TypeParam, 3>({5, 3, dim}, given);
        for (std::int64_t row = 0; row < 15; row += 2) {
          trial.x().host()[row * dim + row * 5 % dim] = static_cast<TypeParam>(value);
        }
        trial.x().upload();
        EXPECT_TRUE(trial.run_correct()) << name_of(given) << ", " << dim << ", " << value;
      }
    }
  });
}

TYPED_TEST(Rope, WritesNanWhereAPositionIsOutsideOfTheTables) {
  for (const RopeForm form : all_rope_forms) {
    for (const std::int64_t dim : {6, 64}) {
      RopeCase given;
      given.options.form        = form;
      given.options.rotary_dims = dim - 2;
      given.positions           = PositionsOf::sequence;
      auto trial                = dense_rope<TypeParam, 3>({6, 3, dim}, given);
      trial.position(1)         = -1;
      trial.position(2)         = trial.table_rows();
      trial.position(3)         = std::numeric_limits<std::int64_t>::max();
      trial.position(4)         = std::numeric_limits<std::int64_t>::min();
      trial.upload_positions();
      EXPECT_TRUE(trial.run_correct()) << dim;
    }
  }
}

/// Past the caches, where a host's stores are non-temporal.
TEST(RopeFloat, WritesLargeTensors) {
  const std::int64_t rows = rows_beyond_the_cache(256);
  if (rows == 0) GTEST_SKIP() << "caches are too large to write past them, or not known";
  for (const RopeForm form : all_rope_forms) {
    for (const std::int64_t rotary : {128, 64}) {
      RopeCase given;
      given.options.form        = form;
      given.options.rotary_dims = rotary;
      EXPECT_TRUE((dense_rope<float, 3>({rows, 2, 128}, given).run_correct())) << rotary;
    }
  }
}

/// Computed by hand from the definition, as of ONNX' RotaryEmbedding: caches of cosines and sines, position ids.
TEST(RopeFloat, HasTheResultsOfItsDefinition) {
  const auto view_of = [](std::vector<float> values, int rows, int cols) {
    const Kokkos::View<float**, Kokkos::LayoutRight, Memory> view("values", rows, cols);
    const auto host = Kokkos::create_mirror_view(view);
    for (int i = 0; i < rows * cols; ++i) host(i / cols, i % cols) = values[static_cast<std::size_t>(i)];
    Kokkos::deep_copy(view, host);
    return view;
  };
  const auto x   = view_of({1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6}, 2, 6);
  const auto cos = view_of({1, 0.5, 0, 2, 0.25, -1}, 3, 2);  // any numbers will do
  const auto sin = view_of({0, 1, 1, 0.5, 3, 2}, 3, 2);
  const Kokkos::View<std::int64_t*, Memory> ids("ids", 2);
  const auto host_ids = Kokkos::create_mirror_view(ids);
  host_ids(0) = 2, host_ids(1) = 1;
  Kokkos::deep_copy(ids, host_ids);
  const auto expect = [&](const RopeOptions& options, const std::vector<float>& expected) {
    const Kokkos::View<float**, Kokkos::LayoutRight, Memory> y("y", 2, 6);
    KokkosNN::rope(x, cos, sin, y, options, ids);
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    for (int i = 0; i < 12; ++i) EXPECT_EQ(host(i / 6, i % 6), expected[static_cast<std::size_t>(i)]) << i;
  };
  // Row 0 at position 2: cos (0.25, -1), sin (3, 2); row 1 at position 1: cos (0, 2), sin (1, 0.5).
  expect({.form = RopeForm::half_rotated, .rotary_dims = 4}, {-8.75, -10, 3.75, 0, 5, 6, -3, 2, 1, 9, 5, 6});
  expect({.form = RopeForm::interleaved, .rotary_dims = 4}, {-5.75, 3.5, -11, 2, 5, 6, -2, 1, 4, 9.5, 5, 6});
}

/// Views of rows for the tests of errors and of Kokkos' behaviour.
struct Rows {
  Kokkos::View<float***, Kokkos::LayoutRight, Memory> x{"x", 6, 2, 8}, y{"y", 6, 2, 8};
  Kokkos::View<float**, Kokkos::LayoutRight, Memory> cos{"cos", 6, 4}, sin{"sin", 6, 4};
  Kokkos::View<std::int32_t*, Memory> positions{"positions", 6};
};

/// call() must throw an error with these words, and write nothing.
void expect_error(const Rows& rows, const std::function<void()>& call, const std::vector<std::string>& words) {
  Kokkos::deep_copy(rows.y, 7);
  try {
    call();
    ADD_FAILURE() << "no error about " << words[0];
  } catch (const std::invalid_argument& error) {
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << word << " is not in: " << error.what();
    }
  }
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), rows.y);
  for (std::size_t i = 0; i < host.size(); ++i) ASSERT_EQ(host.data()[i], 7);
}

TEST(RopeErrors, NameTheFunctionAndTheValues) {
  const Rows r;
  const auto with = [&](const RopeOptions& options) {
    return [&r, options] { rope(r.x, r.cos, r.sin, r.y, options); };
  };
  const auto angles = [&](const RopeOptions& options) { return [&r, options] { rope(r.x, r.y, options); }; };
  expect_error(r, with({.rotary_dims = 5}), {"KokkosNN::rope: ", "rotary_dims", "8", "5"});
  expect_error(r, with({.rotary_dims = 10}), {"rotary_dims", "10"});
  expect_error(r, with({.rotary_dims = -2}), {"rotary_dims", "-2"});
  expect_error(r, with({.rotary_dims = 6}), {"cos and sin", "3 columns", "4"});
  expect_error(r, with({.sequence_axis = 2}), {"sequence_axis 2", "rank 3"});
  expect_error(r, with({.sequence_axis = -4}), {"sequence_axis -4"});
  expect_error(r, with({.position_offset = 1}), {"positions 1 to 6", "6 rows"});
  expect_error(r, with({.position_offset = -1}), {"position_offset -1"});
  expect_error(r, with({.position_offset = std::int64_t(1) << 60}), {"position_offset", "1152921504606846976"});
  expect_error(r, with({.position_scale = 0.5}), {"position_scale", "0.5"});
  expect_error(r, angles({.theta = 0}), {"KokkosNN::rope: ", "theta", "0"});
  expect_error(r, angles({.theta = -3}), {"theta is -3"});
  expect_error(r, angles({.theta = std::nan("")}), {"theta"});
  expect_error(r, angles({.position_scale = 0}), {"position_scale", "0"});
  expect_error(r, [&] { rope_backward(r.x, r.y, {.theta = 0}); }, {"KokkosNN::rope_backward: "});
  const Kokkos::View<float***, Kokkos::LayoutRight, Memory> other("other", 6, 3, 8), odd("odd", 6, 2, 7);
  expect_error(r, [&] { rope(other, r.y); }, {"(6, 3, 8)", "(6, 2, 8)"});
  expect_error(r, [&] { rope_backward(other, r.y); }, {"dy", "dx"});
  expect_error(r, [&] { rope(odd, odd); }, {"rotary_dims", "7"});
  const Kokkos::View<float**, Kokkos::LayoutRight, Memory> short_sin("sin", 5, 4);
  expect_error(r, [&] { rope(r.x, r.cos, short_sin, r.y); }, {"(6, 4)", "(5, 4)"});
  const Kokkos::View<std::int32_t*, Memory> five("five", 5);
  expect_error(r, [&] { rope(r.x, r.y, {}, five); }, {"positions", "(6)", "(5)"});
  const Kokkos::View<std::int32_t**, Kokkos::LayoutRight, Memory> batches("batches", 3, 6);
  expect_error(r, [&] { rope(r.x, r.y, {}, batches); }, {"positions", "(2, 6)", "(3, 6)"});
}

TEST(RopeErrors, AreMadeOfOverlap) {
  const Rows r;
  const auto shifted = Kokkos::subview(r.y, std::pair(1, 6), Kokkos::ALL, Kokkos::ALL);
  const auto begin   = Kokkos::subview(r.y, std::pair(0, 5), Kokkos::ALL, Kokkos::ALL);
  expect_error(r, [&] { rope(shifted, begin); }, {"overlap", "in place"});
  const Kokkos::View<float**, Kokkos::LayoutRight, Memory, Kokkos::MemoryUnmanaged> table(r.y.data(), 6, 4);
  expect_error(r, [&] { rope(r.x, table, r.sin, r.y); }, {"cos", "overlap"});
  expect_error(r, [&] { rope(r.x, r.cos, table, r.y); }, {"sin", "overlap"});
  const Kokkos::View<std::int32_t*, Memory, Kokkos::MemoryUnmanaged> inside(reinterpret_cast<std::int32_t*>(r.y.data()),
                                                                            6);
  expect_error(r, [&] { rope(r.x, r.y, {}, inside); }, {"positions", "overlap"});
  const auto folded = strided_view<3>(r.y.data(), Placement{{6, 2, 8}, {0, 8, 1}, 0});
  expect_error(r, [&] { rope(r.x, folded); }, {"share memory"});
}

TEST(RopeErrors, AreMadeOfPositionsOutsideOfTheTablesIfTheyAreChecked) {
  const Rows r;
  const auto set = [&](int index, std::int32_t value) {
    const auto host = Kokkos::create_mirror_view(r.positions);
    Kokkos::deep_copy(host, 5);
    host(index) = value;
    Kokkos::deep_copy(r.positions, host);
  };
  const RopeOptions checked{.check_positions = true};
  set(3, 5);
  EXPECT_NO_THROW(rope(r.x, r.cos, r.sin, r.y, checked, r.positions));
  set(3, 6);
  expect_error(r, [&] { rope(r.x, r.cos, r.sin, r.y, checked, r.positions); }, {"position 6", "index 3", "6 rows"});
  set(4, -2);
  expect_error(r, [&] { rope_backward(r.x, r.cos, r.sin, r.y, checked, r.positions); },
               {"KokkosNN::rope_backward", "position -2", "index 4"});
  set(0, 5);
  expect_error(r, [&] { rope(r.x, r.cos, r.sin, r.y, {.position_offset = 1, .check_positions = true}, r.positions); },
               {"position 6", "index 0"});
  EXPECT_NO_THROW(rope(r.x, r.y, checked, r.positions));
  Kokkos::fence();
}

TEST(RopeFloat, WritesNothingOfEmptyViews) {
  const auto kernels = kernels_of([] {
    for (const auto& extents : {std::vector<std::int64_t>{0, 3, 2, 8}, {2, 0, 2, 8}, {2, 3, 0, 8}, {2, 3, 2, 0}}) {
      for (const bool has_tables : {true, false}) {
        RopeCase given;
        given.has_tables = has_tables;
        dense_rope<float, 4>(extents, given).call();
      }
    }
  });
  EXPECT_TRUE(std::ranges::none_of(kernels, [](const std::string& l) { return l.starts_with("KokkosNN::rope["); }));
}

TEST(RopeFloat, EnqueuesOneKernelOnItsInstanceAndNeitherFencesNorAllocates) {
  const Rows r;
  const Exec other = other_instance();
  for (const bool has_tables : {true, false}) {
    const auto run = [&] {
      has_tables ? rope(other, r.x, r.cos, r.sin, r.y, {}, r.positions)
                 : rope_backward(other, r.x, r.y, {}, r.positions);
    };
    run();
    other.fence();
    Recorder recorder;
    run();
    EXPECT_TRUE(recorder.neither_fenced_nor_allocated());
    ASSERT_EQ(recorder.kernels.size(), 1U);
    const std::string begin = has_tables ? "KokkosNN::rope[f32,half_rotated,tables,packs"
                                         : "KokkosNN::rope_backward[f32,half_rotated,angles,packs";
    EXPECT_EQ(recorder.kernels[0].label.substr(0, begin.size()), begin);
    EXPECT_EQ(recorder.kernels[0].device, tools_id(other));
    EXPECT_EQ(recorder.regions, std::vector<std::string>{has_tables ? "KokkosNN::rope" : "KokkosNN::rope_backward"});
  }
  other.fence();
}

TEST(RopeFloat, TakesViewsOfKokkosLayouts) {
  const auto run = [](auto layout) {
    using Layout = decltype(layout);
    const Kokkos::View<float****, Layout, Memory> x("x", 2, 3, 4, 8), y("y", 2, 3, 4, 8);
    Kokkos::deep_copy(x, 1);
    KokkosNN::rope(x, y, {.theta = 1});
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
    for (int s = 0; s < 3; ++s) {
      EXPECT_NEAR(host(1, s, 3, 2), std::cos(s) - std::sin(s), 1e-6);
      EXPECT_NEAR(host(0, s, 1, 7), std::cos(s) + std::sin(s), 1e-6);
    }
  };
  run(Kokkos::LayoutRight());
  run(Kokkos::LayoutLeft());
}

}  // namespace
}  // namespace KokkosNNTest
