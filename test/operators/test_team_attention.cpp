// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/attention.hpp"
#include "support/types.hpp"

#include <KokkosNN/team_attention.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

// Attention of a head inside a kernel, a team a head, against long double.

namespace KokkosNNTest {
namespace {

using KokkosNN::MaskedRowPolicy;
using KokkosNN::TeamAttentionOptions;
using Policy = Kokkos::TeamPolicy<Exec>;

/// A head a team, its scores in team scratch.
template <class T>
struct HeadInTeam {
  using A       = KokkosNN::accumulator_t<T>;
  using Scratch = Kokkos::View<A**, Kokkos::LayoutRight, Exec::scratch_memory_space, Kokkos::MemoryUnmanaged>;

  Tensor4<T> q, k, v, o;
  Kokkos::View<A***, Memory> lse;
  TeamAttentionOptions options;

  KOKKOS_FUNCTION void operator()(const typename Policy::member_type& member) const {
    const auto heads = q.extent(1), head = member.league_rank() % heads, batch = member.league_rank() / heads;
    const auto kv_head = head / (heads / k.extent(1));
    const auto all     = Kokkos::ALL;
    const Scratch scores(member.team_scratch(0), q.extent(2), k.extent(2));
    KokkosNN::team_attention(member, Kokkos::subview(q, batch, head, all, all),
                             Kokkos::subview(k, batch, kv_head, all, all), Kokkos::subview(v, batch, kv_head, all, all),
                             scores, Kokkos::subview(o, batch, head, all, all), options,
                             Kokkos::subview(lse, batch, head, all));
  }
};

template <class T>
void run(AttentionTrial<T>& trial, const TeamAttentionOptions& options) {
  using Kernel     = HeadInTeam<T>;
  const auto bytes = Kernel::Scratch::shmem_size(trial.n.queries, trial.n.keys);
  Policy policy(trial.n.batch * trial.n.heads, Kokkos::AUTO);
  policy.set_scratch_size(0, Kokkos::PerTeam(bytes));
  Kokkos::parallel_for(policy, Kernel{trial.q.view, trial.k.view, trial.v.view, trial.o.view, trial.lse, options});
  Exec().fence();
  trial.o.download();
}

template <class T>
class TeamAttention : public ::testing::Test {};
TYPED_TEST_SUITE(TeamAttention, ElementTypes, ElementNames);

TYPED_TEST(TeamAttention, IsThatOfAHead) {
  for (const bool spaced : {false, true}) {
    AttentionTrial<TypeParam> trial({2, 4, 2, 9, 21, 12, 7}, spaced, spaced);
    run(trial, {});
    EXPECT_LE(trial.error(unmasked), 1);
    EXPECT_TRUE(trial.o.gaps_are_intact());
  }
}

TYPED_TEST(TeamAttention, MasksKeysBehindADiagonal) {
  AttentionTrial<TypeParam> trial({1, 2, 1, 9, 21, 12, 7});
  run(trial, {.scale = -0.5, .is_causal = true, .offset = -2, .masked_row = MaskedRowPolicy::zero});
  const Logit logit = [](int, int, int i, int j, long double s) { return j <= i - 2 ? s : -infinite_logit; };
  EXPECT_LE(trial.error(logit, -0.5, -infinite_logit, 0), 1);
}

}  // namespace
}  // namespace KokkosNNTest
