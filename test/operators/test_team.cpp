// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::TeamSoftmaxOptions;
using TeamPolicy = Kokkos::TeamPolicy<Exec>;
using TeamMember = TeamPolicy::member_type;
using TeamMatrix = Kokkos::View<float**, Kokkos::LayoutRight, Memory>;

/// Arguments of a user's kernel: input, and the results of the three functions of one row.
struct TeamTensors {
  Kokkos::View<const float**, Kokkos::LayoutRight, Memory> x;
  TeamMatrix softmax;
  TeamMatrix log_softmax;
  Kokkos::View<float*, Memory> logsumexp;
  TeamSoftmaxOptions options;
};

/// One row by one team.
struct RowByTeam {
  TeamTensors t;

  KOKKOS_FUNCTION void operator()(const TeamMember& member) const {
    const int row = member.league_rank();
    const auto x  = Kokkos::subview(t.x, row, Kokkos::ALL);
    KokkosNN::team_softmax(member, x, Kokkos::subview(t.softmax, row, Kokkos::ALL), t.options);
    KokkosNN::team_log_softmax(member, x, Kokkos::subview(t.log_softmax, row, Kokkos::ALL), t.options);
    const float lse = KokkosNN::team_logsumexp(member, x, t.options);
    // Every thread of the team has the value: the last one writes it.
    if (member.team_rank() == member.team_size() - 1) {
      Kokkos::single(Kokkos::PerThread(member), [&] { t.logsumexp(row) = lse; });
    }
  }
};

/// One row by one thread of the team and its vector lanes.
struct RowByThread {
  TeamTensors t;

  KOKKOS_FUNCTION void operator()(const TeamMember& member) const {
    const int row = member.league_rank() * member.team_size() + member.team_rank();
    if (row >= static_cast<int>(t.x.extent(0))) return;
    const auto x = Kokkos::subview(t.x, row, Kokkos::ALL);
    KokkosNN::thread_softmax(member, x, Kokkos::subview(t.softmax, row, Kokkos::ALL), t.options);
    KokkosNN::thread_log_softmax(member, x, Kokkos::subview(t.log_softmax, row, Kokkos::ALL), t.options);
    const float lse = KokkosNN::thread_logsumexp(member, x, t.options);
    Kokkos::single(Kokkos::PerThread(member), [&] { t.logsumexp(row) = lse; });
  }
};

/// Through team scratch and in place: what a fused attention kernel does.
struct RowInScratch {
  TeamTensors t;

  KOKKOS_FUNCTION void operator()(const TeamMember& member) const {
    using Scratch   = Kokkos::View<float*, Exec::scratch_memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    const int row   = member.league_rank();
    const auto cols = t.x.extent(1);
    const Scratch scores(member.team_scratch(0), cols);
    Kokkos::parallel_for(Kokkos::TeamVectorRange(member, cols), [&](std::size_t i) { scores(i) = 2 * t.x(row, i); });
    member.team_barrier();
    KokkosNN::team_softmax(member, scores, scores, t.options);
    Kokkos::parallel_for(Kokkos::TeamVectorRange(member, cols), [&](std::size_t i) { t.softmax(row, i) = scores(i); });
  }
};

/// Tensors with a host's copy of x. Values are multiples of 1/64, so that differences from the maximum are exact: these
/// functions do not correct for their rounding.
struct TeamCase {
  TeamTensors t;
  std::vector<float> x;
  Placement place;

  TeamCase(std::int64_t rows, std::int64_t cols, const TeamSoftmaxOptions& options = {})
      : x(rows * cols), place(right({rows, cols})) {
    fill(x.data(), place, -1, Recipe::uniform);
    for (float& value : x) value = std::round(value * 64) / 64;
    t.softmax     = TeamMatrix("softmax", rows, cols);
    t.log_softmax = TeamMatrix("log_softmax", rows, cols);
    t.logsumexp   = Kokkos::View<float*, Memory>("logsumexp", rows);
    t.options     = options;
    Kokkos::deep_copy(t.softmax, poison<float>());
    Kokkos::deep_copy(t.log_softmax, poison<float>());
    Kokkos::deep_copy(t.logsumexp, poison<float>());
  }

  void upload() {
    const TeamMatrix device("x", place.extents[0], place.extents[1]);
    Kokkos::deep_copy(
        device,
        Kokkos::View<const float**, Kokkos::LayoutRight, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
            x.data(), place.extents[0], place.extents[1]));
    t.x = device;
  }

  void expect_matches(const std::string& what) const {
    const SoftmaxOptions options{.scale = t.options.scale, .masked_row = t.options.masked_row};
    const auto softmax     = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), t.softmax);
    const auto log_softmax = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), t.log_softmax);
    const auto logsumexp   = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), t.logsumexp);
    // A nested sum is one running sum a thread: its rounding errors walk at random.
    const double limit = 8 + std::sqrt(static_cast<double>(place.extents[1]));
    expect_close(compare<RowOperator::softmax>(x.data(), place, softmax.data(), place, 1, options), limit, what);
    expect_close(compare<RowOperator::log_softmax>(x.data(), place, log_softmax.data(), place, 1, options), limit,
                 what);
    expect_close(
        compare<RowOperator::logsumexp>(x.data(), place, logsumexp.data(), right({place.extents[0]}), 1, options),
        limit, what);
  }

  static void expect_close(const Errors& errors, double limit, const std::string& what) {
    EXPECT_LE(errors.max_ulp, limit) << what << ": " << errors.worst;
  }
};

/// Team sizes that this machine has: 1, something odd, and many.
std::vector<int> team_sizes() {
  if (on_gpu) return {1, 3, 32, 128};
  std::vector<int> sizes;
  for (const int size : {1, 2, 3, 4}) {
    if (size <= Exec().concurrency()) sizes.push_back(size);
  }
  return sizes;
}

std::vector<int> vector_lengths() { return on_gpu ? std::vector<int>{1, 4, 32} : std::vector<int>{1, 8}; }

template <class Kernel>
void run_rows(TeamCase& problem, int rows_per_team, int team_size, int vector_length) {
  problem.upload();
  const int rows = static_cast<int>(problem.place.extents[0]);
  const TeamPolicy policy(Exec(), (rows + rows_per_team - 1) / rows_per_team, team_size, vector_length);
  Kokkos::parallel_for("user kernel", policy, Kernel{problem.t});
  Exec().fence();
}

std::string shape(std::int64_t cols, int team_size, int lanes) {
  return std::to_string(cols) + " columns, team " + std::to_string(team_size) + ", lanes " + std::to_string(lanes);
}

TEST(Team, ARowByATeamMatchesForEveryTeamSizeAndVectorLength) {
  for (const int team_size : team_sizes()) {
    for (const int lanes : vector_lengths()) {
      if (team_size * lanes > 1024) continue;
      for (const std::int64_t cols : {1, 2, 3, 5, 31, 64, 100, 1000}) {
        TeamCase problem(7, cols, {.scale = 0.5});

        run_rows<RowByTeam>(problem, 1, team_size, lanes);

        problem.expect_matches(shape(cols, team_size, lanes));
      }
    }
  }
}

TEST(Team, ARowByAThreadMatchesForEveryTeamSizeAndVectorLength) {
  for (const int team_size : team_sizes()) {
    for (const int lanes : vector_lengths()) {
      if (team_size * lanes > 1024) continue;
      for (const std::int64_t cols : {1, 2, 3, 5, 31, 64, 100, 1000}) {
        TeamCase problem(7, cols, {.scale = -2});

        run_rows<RowByThread>(problem, team_size, team_size, lanes);

        problem.expect_matches(shape(cols, team_size, lanes));
      }
    }
  }
}

template <class Kernel>
void check_special_rows(MaskedRowPolicy policy, bool by_thread) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const int team_size : team_sizes()) {
    for (const std::int64_t cols : {1, 3, 40}) {
      TeamCase problem(8, cols, {.masked_row = policy});
      float* x = problem.x.data();
      std::fill_n(x, cols, -infinity);
      x[cols + cols / 2]     = std::numeric_limits<float>::quiet_NaN();
      x[2 * cols + cols / 2] = infinity;
      x[3 * cols]            = -infinity;
      x[5 * cols - 1]        = -infinity;
      std::fill_n(x + 5 * cols, cols, 0.0f);
      x[6 * cols]     = infinity;
      x[7 * cols - 1] = infinity;  // two of them
      x[7 * cols]     = infinity;
      x[8 * cols - 1] = std::numeric_limits<float>::quiet_NaN();

      run_rows<Kernel>(problem, by_thread ? team_size : 1, team_size, 1);

      problem.expect_matches(shape(cols, team_size, 1));
    }
  }
}

TEST(Team, AScaleActsOnTheDifferenceOfLogitsSoThatNeitherOverflows) {
  const float most = std::numeric_limits<float>::max();
  for (const double scale : {0.125, -0.25, 8.0}) {
    for (const int team_size : team_sizes()) {
      // A log-sum-exp of a large scale is infinite, all logits being at one end of the range.
      TeamCase by_team(4, 40, {.scale = scale}), by_thread(4, 40, {.scale = scale});
      for (TeamCase* problem : {&by_team, &by_thread}) {
        for (int i = 0; i < 4 * 40; ++i) problem->x[i] = scale < 1 && i % 3 == 0 ? -most : most;
      }

      run_rows<RowByTeam>(by_team, 1, team_size, 1);
      run_rows<RowByThread>(by_thread, team_size, team_size, 1);

      by_team.expect_matches("team, scale " + std::to_string(scale));
      by_thread.expect_matches("thread, scale " + std::to_string(scale));
    }
  }
}

TEST(Team, SpecialRowsFollowTheTableByTeam) {
  check_special_rows<RowByTeam>(MaskedRowPolicy::nan, false);
  check_special_rows<RowByTeam>(MaskedRowPolicy::zero, false);
}

TEST(Team, SpecialRowsFollowTheTableByThread) {
  check_special_rows<RowByThread>(MaskedRowPolicy::nan, true);
  check_special_rows<RowByThread>(MaskedRowPolicy::zero, true);
}

TEST(Team, ARowInTeamScratchInPlaceMatches) {
  for (const int team_size : team_sizes()) {
    TeamCase problem(9, 200);
    problem.upload();
    TeamPolicy policy(Exec(), 9, team_size);
    policy.set_scratch_size(0, Kokkos::PerTeam(200 * sizeof(float) + 64));

    Kokkos::parallel_for("user kernel", policy, RowInScratch{problem.t});
    Exec().fence();

    const auto softmax = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), problem.t.softmax);
    TeamCase::expect_close(
        compare<RowOperator::softmax>(problem.x.data(), problem.place, softmax.data(), problem.place, 1, {.scale = 2}),
        16, "team " + std::to_string(team_size));
  }
}

}  // namespace KokkosNNTest
