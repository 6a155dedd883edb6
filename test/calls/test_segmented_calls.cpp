// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/instances.hpp"
#include "support/recorder.hpp"
#include "support/segmented.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Functions on ragged rows: their errors for wrong arguments, and their behaviour as a part of a Kokkos program.

namespace KokkosNNTest {

using Vector = Kokkos::View<float*, Memory>;
using Ints   = OffsetsView<int>;

/// The message of the std::invalid_argument that `call` throws, or nothing.
std::string complaint_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

void expect_complaint(const std::function<void()>& call, const std::vector<std::string>& parts) {
  const std::string message = complaint_of(call);
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message << ": no " << part;
}

// --- wrong arguments ---

TEST(SegmentedErrors, NameTheFunctionAndTheExtentsThatDiffer) {
  const Vector x("x", 10), y("y", 11), dx("dx", 10);
  const auto offsets = offsets_of({4, 6});

  expect_complaint([&] { KokkosNN::segmented_softmax(x, offsets, y); },
                   {"KokkosNN::segmented_softmax: ", "y must have 10 elements as values, but has 11"});
  expect_complaint([&] { KokkosNN::segmented_log_softmax(x, offsets, y); },
                   {"KokkosNN::segmented_log_softmax: ", "11"});
  expect_complaint([&] { KokkosNN::segmented_logsumexp(x, offsets, y); },
                   {"KokkosNN::segmented_logsumexp: ", "lse must have 2 elements as there are rows, but has 11"});
  expect_complaint([&] { KokkosNN::segmented_softmax_backward(x, y, offsets, dx); },
                   {"KokkosNN::segmented_softmax_backward: ", "dy must have 10 elements as y, but has 11"});
  expect_complaint([&] { KokkosNN::segmented_log_softmax_backward(x, x, offsets, y); },
                   {"KokkosNN::segmented_log_softmax_backward: ", "dx must have 10 elements as y, but has 11"});
}

using Heads = Kokkos::View<float**, Kokkos::LayoutRight, Memory>;

TEST(SegmentedErrors, NameTheHeadsThatDiffer) {
  const Heads x("x", 10, 4), y("y", 10, 3), dx("dx", 10, 4), lse("lse", 2, 3), short_lse("lse", 1, 4);
  const auto offsets = offsets_of({4, 6});

  expect_complaint([&] { KokkosNN::segmented_softmax(x, offsets, y); },
                   {"KokkosNN::segmented_softmax: ", "y must have 4 heads as the values have, but has 3"});
  expect_complaint([&] { KokkosNN::segmented_logsumexp(x, offsets, lse); },
                   {"KokkosNN::segmented_logsumexp: ", "lse must have 4 heads as the values have, but has 3"});
  expect_complaint([&] { KokkosNN::segmented_logsumexp(x, offsets, short_lse); },
                   {"lse must have 2 elements as there are rows, but has 1"});
  expect_complaint([&] { KokkosNN::segmented_softmax_backward(x, y, offsets, dx); },
                   {"KokkosNN::segmented_softmax_backward: ", "dy must have 4 heads"});
  expect_complaint([&] { KokkosNN::segmented_log_softmax_backward(x, x, offsets, y); }, {"dx must have 4 heads"});
}

TEST(SegmentedErrors, AnOutputWhoseHeadsShareMemoryIsRefusedAndNothingIsWritten) {
  Buffer<float> x(40), y(40);
  for (std::int64_t i = 0; i < x.count(); ++i) x.host()[i] = 0.5f;
  x.upload();
  const auto offsets = offsets_of({4, 6});
  const auto view    = [](Buffer<float>& b, std::int64_t element, std::int64_t head) {
    return strided_view<2>(b.device(), Placement{{10, 4}, {element, head}, 0});
  };

  for (const auto& strides : {std::pair{1, 0}, std::pair{0, 1}, std::pair{1, 1}, std::pair{2, 1}}) {
    const auto shared = view(y, strides.first, strides.second);
    expect_complaint([&] { KokkosNN::segmented_softmax(view(x, 4, 1), offsets, shared); },
                     {"KokkosNN::segmented_softmax: ", "share memory", "extents (10, 4)"});
  }
  expect_complaint(
      [&] {
        KokkosNN::segmented_softmax(view(x, 4, 1), offsets,
                                    strided_view<2>(x.device(), Placement{{10, 4}, {1, 10}, 0}));
      },
      {"values", "y", "overlap"});

  y.download();
  EXPECT_TRUE(y.untouched());
  EXPECT_EQ(complaint_of([&] { KokkosNN::segmented_softmax(view(x, 1, 1), offsets, view(y, 4, 1)); }), "");
  Kokkos::fence();
}

constexpr std::int64_t least_offset = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t most_offset  = std::numeric_limits<std::int64_t>::max();

TEST(SegmentedErrors, BadOffsetsOfSeveralHeadsThatNobodyCheckedTouchNoOtherMemory) {
  const std::int64_t n = 20000;
  for (const std::vector<std::int64_t>& strides :
       {std::vector<std::int64_t>{4, 1}, {1, n}, {1, n + 3}, {9, 2}, {5, 1}}) {
    const Placement place{{n, 4}, strides, 0};
    Buffer<float> x(place.span()), y(place.span()), lse(6 * 4);
    for (const std::vector<std::int64_t>& drawn : {std::vector<std::int64_t>{0, 9000, 30, 15000, 10, 20000, 19999},
                                                   {-5, 100, 1000000000000, 7, -1, 60000, 90000},
                                                   {20000, 16000, 12000, 9000, 6000, 3000, 0},
                                                   {0, 76, least_offset, 100, most_offset, 90, least_offset},
                                                   {100000, 0, 100000, 0, 100000, 0, 100000}}) {
      const auto offsets = raw_offsets(drawn);
      const auto in = strided_view<2>(x.device(), place), out = strided_view<2>(y.device(), place);
      KokkosNN::segmented_softmax(in, offsets, out);
      KokkosNN::segmented_softmax_backward(in, in, offsets, out);
      KokkosNN::segmented_logsumexp(in, offsets, strided_view<2>(lse.device(), right({6, 4})));
      Kokkos::fence();
      y.download();
      lse.download();

      EXPECT_TRUE(gaps_intact(y, place));
      EXPECT_TRUE(lse.guards_intact());
    }
  }
}

TEST(SegmentedErrors, OffsetsNeedAnElement) {
  const Vector x("x", 10), y("y", 10);

  expect_complaint([&] { KokkosNN::segmented_softmax(x, Ints("none", 0), y); },
                   {"KokkosNN::segmented_softmax: ", "row_offsets must have an element more"});
}

TEST(SegmentedErrors, ScalesMustBeWithinBounds) {
  const Vector x("x", 10), y("y", 10);
  const auto offsets = offsets_of({4, 6});
  for (const double scale :
       {0.0, 1e40, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    expect_complaint([&] { KokkosNN::segmented_softmax(x, offsets, y, {.scale = scale}); },
                     {"KokkosNN::segmented_softmax: ", "scale"});
  }
}

TEST(SegmentedErrors, OverlapOtherThanInPlaceIsRefusedAndNothingIsWritten) {
  const Vector memory("memory", 30);
  Kokkos::deep_copy(memory, 7.0f);
  const auto part    = [&](int begin, int end) { return Kokkos::subview(memory, std::pair<int, int>(begin, end)); };
  const auto offsets = offsets_of({4, 6});

  expect_complaint([&] { KokkosNN::segmented_softmax(part(0, 10), offsets, part(1, 11)); }, {"values", "y", "overlap"});
  expect_complaint([&] { KokkosNN::segmented_logsumexp(part(0, 10), offsets, part(0, 2)); }, {"lse", "overlap"});
  expect_complaint([&] { KokkosNN::segmented_softmax_backward(part(0, 10), part(9, 19), offsets, part(10, 20)); },
                   {"dy", "dx", "overlap"});
  expect_complaint(
      [&] {
        const Kokkos::View<float*, Memory, Kokkos::MemoryUnmanaged> over(
            reinterpret_cast<float*>(const_cast<int*>(offsets.data())), 3);
        KokkosNN::segmented_softmax(part(0, 3), offsets, over);
      },
      {"row_offsets", "overlap"});
  const Kokkos::View<float*, Kokkos::LayoutStride, Memory> one(memory.data(), Kokkos::LayoutStride(10, 0));
  expect_complaint([&] { KokkosNN::segmented_softmax(part(20, 30), offsets, one); },
                   {"KokkosNN::segmented_softmax: ", "share memory", "strides (0)"});

  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), memory);
  for (std::size_t i = 0; i < host.extent(0); ++i) EXPECT_EQ(host(i), 7.0f) << i;
}

TEST(SegmentedErrors, CheckedOffsetsNameTheFirstBadRow) {
  const Vector x("x", 10), y("y", 10);
  const auto complain = [&](const std::vector<int>& offsets, const std::vector<std::string>& parts) {
    expect_complaint([&] { KokkosNN::segmented_softmax(x, raw_offsets(offsets), y, {.check_offsets = true}); }, parts);
  };

  complain({0, 4, 3, 10}, {"KokkosNN::segmented_softmax: row_offsets", "row 1 has the offsets 4 and 3"});
  complain({-1, 4, 10}, {"row 0 has the offsets -1 and 4"});
  complain({0, 4, 11}, {"to 10, the number of values", "row 1 has the offsets 4 and 11"});
  expect_complaint(
      [&] {
        KokkosNN::segmented_softmax_backward(x, x, raw_offsets<std::uint64_t>({0, 4, ~std::uint64_t(0)}), y,
                                             {.check_offsets = true});
      },
      {"KokkosNN::segmented_softmax_backward: ", "row 1 has the offsets 4 and 18446744073709551615"});
  EXPECT_EQ(
      complaint_of([&] { KokkosNN::segmented_softmax(x, raw_offsets<int>({2, 2, 9}), y, {.check_offsets = true}); }),
      "");
}

TEST(SegmentedErrors, BadOffsetsThatNobodyCheckedTouchNoOtherMemory) {
  const std::int64_t n = 50000;
  Buffer<float> x(n), y(n), lse(6);
  const auto vector = [](Buffer<float>& b) {
    return UnmanagedView<float, 1, Kokkos::LayoutRight>(b.device(), static_cast<std::size_t>(b.count()));
  };
  for (const std::vector<std::int64_t>& offsets : {std::vector<std::int64_t>{0, 40000, 30, 20000, 10, 50000, 49999},
                                                   {-5, 100, 1000000000000, 7, -1, 60000, 90000},
                                                   {50000, 40000, 30000, 20000, 10000, 5000, 0},
                                                   {0, 76, least_offset, 100, most_offset, 90, least_offset},
                                                   {100000, 0, 100000, 0, 100000, 0, 100000}}) {
    const auto view = raw_offsets(offsets);
    KokkosNN::segmented_softmax(vector(x), view, vector(y));
    KokkosNN::segmented_softmax_backward(vector(x), vector(x), view, vector(y));
    KokkosNN::segmented_logsumexp(vector(x), view, vector(lse));
    Kokkos::fence();
    y.download();
    lse.download();

    EXPECT_TRUE(y.guards_intact());
    EXPECT_TRUE(lse.guards_intact());
  }
}

// --- as a part of a Kokkos program ---

/// All five functions, ready to be called; with long rows, so that every kernel has work.
struct FiveCalls {
  SegmentedTrial<RowOperator::softmax, float> softmax{{5, 0, 40000, 31}};
  SegmentedTrial<RowOperator::log_softmax, float> log_softmax{{5, 0, 40000, 31}};
  SegmentedTrial<RowOperator::logsumexp, float> logsumexp{{5, 0, 40000, 31}};
  SegmentedGradientTrial<RowOperator::softmax_backward, float> softmax_backward{{5, 0, 40000, 31}};
  SegmentedGradientTrial<RowOperator::log_softmax_backward, float> log_softmax_backward{{5, 0, 40000, 31}};

  void operator()(const Exec& exec) const {
    softmax.call({}, exec);
    log_softmax.call({}, exec);
    logsumexp.call({}, exec);
    softmax_backward.call(Output::own, exec);
    log_softmax_backward.call(Output::own, exec);
  }
  static constexpr bool on_host = KokkosNN::Impl::backend_of<Exec>() == KokkosNN::Backend::host;
  /// Three each, but on a host two where a row has one value.
  static constexpr std::size_t kernels = on_host ? 14 : 15;
};

TEST(SegmentedBehaviour, EveryLabelStartsWithTheFunctionsName) {
  const FiveCalls calls;
  const Exec fresh = other_instance();
  Recorder recorder;

  calls(fresh);

  EXPECT_EQ(recorder.kernels.size(), FiveCalls::kernels);
  EXPECT_EQ(recorder.regions,
            (std::vector<std::string>{"KokkosNN::segmented_softmax", "KokkosNN::segmented_log_softmax",
                                      "KokkosNN::segmented_logsumexp", "KokkosNN::segmented_softmax_backward",
                                      "KokkosNN::segmented_log_softmax_backward"}));
  for (const auto& kernel : recorder.kernels)
    EXPECT_EQ(kernel.label.rfind("KokkosNN::segmented_", 0), 0u) << kernel.label;
  const std::vector<std::string> names = FiveCalls::on_host
                                             ? std::vector<std::string>{"chunks", "join", "long_rows"}
                                             : std::vector<std::string>{"rows", "long_rows", "long_parts"};
  for (std::size_t k = 0; k < names.size(); ++k) {
    EXPECT_EQ(recorder.kernels[k].label.rfind("KokkosNN::segmented_softmax[" + names[k] + ",f32,", 0), 0u)
        << recorder.kernels[k].label;
  }
  fresh.fence();
}

TEST(SegmentedBehaviour, ACallOfFewValuesIsOneKernel) {
  const SegmentedTrial<RowOperator::softmax, float> trial({5, 0, 700, 31});

  EXPECT_EQ(kernels_of([&] { trial.call(); }).size(), 1u);
}

TEST(SegmentedBehaviour, EveryKernelRunsOnTheInstanceThatWasPassed) {
  const FiveCalls calls;
  if (!tools_tell_instances_apart()) GTEST_SKIP() << "instances of this backend share one id";
  const Exec first = other_instance(), second = other_instance();
  for (const Exec& exec : {first, second, Exec()}) {
    Recorder recorder;

    calls(exec);

    ASSERT_EQ(recorder.kernels.size(), FiveCalls::kernels);
    for (const auto& kernel : recorder.kernels) EXPECT_EQ(kernel.device, tools_id(exec)) << kernel.label;
    exec.fence();
  }
}

TEST(SegmentedBehaviour, FromTheSecondCallOnNothingFencesAndNothingAllocates) {
  const FiveCalls calls;
  const Exec exec = other_instance();
  calls(exec);
  exec.fence();
  Recorder recorder;

  calls(exec);
  calls(exec);

  EXPECT_EQ(recorder.kernels.size(), 2 * FiveCalls::kernels);
  EXPECT_TRUE(recorder.neither_fenced_nor_allocated());
  exec.fence();
}

TEST(SegmentedBehaviour, CheckingOffsetsIsTheOnlyThingThatWaits) {
  const SegmentedTrial<RowOperator::softmax, float> trial({5, 0, 700, 31});
  trial.call({.check_offsets = true});
  Exec().fence();
  Recorder recorder;

  trial.call({.check_offsets = true});

  ASSERT_EQ(recorder.kernels.size(), 2u);
  EXPECT_EQ(recorder.kernels[0].label, "KokkosNN::check_row_offsets");
  Exec().fence();
}

TEST(SegmentedBehaviour, ManyCallsInARowOnTwoInstancesAreAllRight) {
  const Exec first = other_instance(), second = other_instance();
  std::vector<SegmentedTrial<RowOperator::softmax, float>> trials;
  for (const Lengths& lengths :
       {Lengths{70000, 3}, Lengths{3, 20000, 9}, random_lengths(2000, 0, 60), Lengths{50001}}) {
    trials.emplace_back(lengths);
  }

  for (int turn = 0; turn < 10; ++turn) {
    for (std::size_t i = 0; i < trials.size(); ++i) trials[i].call({}, i % 2 == 0 ? first : second);
  }
  first.fence();
  second.fence();

  for (auto& trial : trials) {
    trial.y().download();
    EXPECT_TRUE(trial.correct());
  }
}

}  // namespace KokkosNNTest
