// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/impl/call/verbose.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <initializer_list>
#include <string>

// The line a call that KOKKOSNN_VERBOSE=1 prints; ctest runs this file with and without it.

namespace KokkosNNTest {
namespace {

using Matrix = Kokkos::View<float**>;
using Vector = Kokkos::View<float*>;

/// Expects a call to print one line with all of these parts where the environment asks for it, and else nothing.
template <class F>
void expect_line(const F& call, std::initializer_list<std::string> parts) {
  testing::internal::CaptureStderr();
  call();
  const std::string printed = testing::internal::GetCapturedStderr();
  const char* value         = std::getenv("KOKKOSNN_VERBOSE");
  if (value == nullptr || std::string(value) == "0") {
    EXPECT_EQ(printed, "");
    return;
  }
  EXPECT_EQ(printed.find('\n') + 1, printed.size()) << printed;
  for (const std::string& part : parts) EXPECT_NE(printed.find(part), std::string::npos) << part << " in " << printed;
}

TEST(Verbose, LineOfACallHasExtentsPlanAndReason) {
  const Kokkos::View<float***> x("x", 2, 3, 40), y("y", 2, 3, 40);
  const auto plan = to_string(make_plan(KokkosNN::RowOperator::softmax, Kokkos::DefaultExecutionSpace(), x, y));
  expect_line([&] { KokkosNN::softmax(x, y); },
              {"KokkosNN::softmax of f32 (2, 3, 40): 6 rows of 40, " + plan + ", policy: "});
}

TEST(Verbose, LineSaysThatAPlanWasAskedFor) {
  const Matrix x("x", 3, 40), y("y", 3, 40);
  const auto strategy = KokkosNN::RowStrategy::team_online;
  expect_line([&] { KokkosNN::softmax(x, y, {.plan = {.strategy = strategy}}); },
              {"[team_online,", ", asked for by options.plan\n"});
}

TEST(Verbose, APlanObjectPrintsALineARun) {
  const Matrix x("x", 3, 40), y("y", 3, 40);
  const KokkosNN::SoftmaxPlan plan(Kokkos::DefaultExecutionSpace(), x, y);
  expect_line([&] { plan.run(); }, {"KokkosNN::softmax of f32 (3, 40): 3 rows of 40, ", ", a plan object's\n"});
}

TEST(Verbose, EveryFamilyPrintsALine) {
  const Matrix x("x", 3, 40), y("y", 3, 40), dx("dx", 3, 40);
  const Vector weight("weight", 40);
  const Kokkos::View<int*> labels("labels", 3), offsets("offsets", 4);
  const Kokkos::View<float> loss("loss");
  const KokkosNN::CausalMask mask;
  expect_line([&] { KokkosNN::softmax_backward(y, x, dx); }, {"KokkosNN::softmax_backward of f32 (3, 40)"});
  expect_line([&] { KokkosNN::masked_softmax(x, mask, y); }, {"KokkosNN::masked_softmax of f32 (3, 40)"});
  expect_line([&] { KokkosNN::masked_softmax_bias_backward(y, x, mask, dx); },
              {"KokkosNN::masked_softmax_bias_backward of f32 (3, 40): sums"});
  expect_line([&] { KokkosNN::cross_entropy(x, labels, loss); }, {"KokkosNN::cross_entropy of f32 (3, 40)"});
  expect_line([&] { KokkosNN::rms_norm(x, weight, y); }, {"KokkosNN::rms_norm of f32 (3, 40)"});
  expect_line([&] { KokkosNN::column_sums(x, weight); }, {"KokkosNN::column_sums of f32 (3, 40): sums"});
  expect_line([&] { KokkosNN::rope(x, y); }, {"KokkosNN::rope of f32 (3, 40): KokkosNN::rope["});
  expect_line([&] { KokkosNN::add(Kokkos::DefaultExecutionSpace(), x, y, dx); },
              {"KokkosNN::add of f32 (3, 40): KokkosNN::add["});
  expect_line([&] { KokkosNN::segmented_softmax(weight, offsets, weight); },
              {"KokkosNN::segmented_softmax of f32 (40): 3 rows in 40 elements, KokkosNN::segmented_softmax["});
}

/// The planner alone: no line is printed.
TEST(Verbose, ReasonIsOfTheStrategyOrOfWhoChoseIt) {
  KokkosNN::RowProblem problem;
  problem.rows         = 1000;
  problem.cols         = 100;
  problem.x_col_stride = problem.y_col_stride = 1;
  const auto traits                           = KokkosNN::device_traits(Kokkos::DefaultExecutionSpace());
  KokkosNN::SoftmaxOptions options;
  EXPECT_EQ(KokkosNN::Impl::reason_of_plan(problem, traits, options).rfind("policy: ", 0), 0U);
  options.plan.strategy = KokkosNN::RowStrategy::team_online;
  EXPECT_EQ(KokkosNN::Impl::reason_of_plan(problem, traits, options), "asked for by options.plan");
}

TEST(Configuration, NamesVersionCompilerAndTheBackendsOfKokkos) {
  const KokkosNN::Configuration built = KokkosNN::configuration();
  EXPECT_EQ(built.version, KOKKOSNN_VERSION_STRING);
  EXPECT_NE(built.compiler, "");
  EXPECT_NE(built.build_type, "");
  EXPECT_EQ(std::atoi(built.kokkos_version.c_str()), KOKKOS_VERSION / 10000);
  std::string backend = Kokkos::DefaultExecutionSpace::name();
  for (char& c : backend) c = static_cast<char>(std::toupper(c));
  EXPECT_NE(built.kokkos_devices.find(backend), std::string::npos) << built.kokkos_devices;
  EXPECT_TRUE(built.commit.empty() || built.commit.size() == 12) << built.commit;

  const std::string line = to_string(built);
  for (const std::string& part : {built.version, built.compiler, built.kokkos_version, built.kokkos_devices})
    EXPECT_NE(line.find(part), std::string::npos) << line;
}

}  // namespace
}  // namespace KokkosNNTest
