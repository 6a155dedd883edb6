// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_KERNELS_SPLIT_ROW_HPP
#define KOKKOSNN_IMPL_KERNELS_SPLIT_ROW_HPP

#include <KokkosNN/impl/kernels/row_in_team.hpp>
#include <KokkosNN/impl/primitives/finish.hpp>
#include <KokkosNN/impl/primitives/lanes.hpp>
#include <KokkosNN/impl/primitives/mailbox.hpp>
#include <KokkosNN/impl/primitives/tile.hpp>

#include <Kokkos_Core.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

// split_row: several teams share a row. Each reads its part, publishes its (max, sum), waits for its siblings' and
// writes. Teams that wait must be running at the same time: the planner makes the league no larger than what the device
// surely holds, and teams number themselves in the order in which they start, so that those that share a row started
// together.

namespace KokkosNN::Impl {

/// In front of the mailboxes, one a team, in the memory that a launch needs. All is zero before it and after it.
struct alignas(64) TeamCounters {
  int started;
  int finished;
};

template <class State>
KOKKOS_INLINE_FUNCTION constexpr std::size_t split_row_workspace_bytes(std::int64_t league_size) {
  return sizeof(TeamCounters) + static_cast<std::size_t>(league_size) * sizeof(typename MailboxFor<State>::type);
}

/// The Storage is RegisterStorage or PackedStorage where a team's part of a row fits, OnlineStorage where it does not.
template <RowOperator op, int V, class Storage, class Math, class Source, class Sink>
struct SplitRow {
  using A        = typename Math::accumulator;
  using State    = typename Math::State;
  using Letters  = typename MailboxFor<State>::type;
  using Finisher = Finish<op>;

  Source source;
  Sink sink;
  Math math;
  std::int64_t rows;
  std::int64_t cols;
  int teams_per_row;
  std::int64_t share;  // elements of a row that a team has: whole packs
  int scratch_level;
  int scratch_bytes;
  char* workspace;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const RowGroup group{team.team_rank(), team.team_size(), 0};
    auto* pairs  = static_cast<State*>(team_scratch(team, scratch_level, scratch_bytes));
    auto* totals = pairs + exchange_pairs(group.warps());
    auto* number = reinterpret_cast<int*>(totals + 2);

    const int ticket = count_teams(team, &counters().started, number);
    do_rows(team, group, pairs, totals, ticket / teams_per_row, ticket % teams_per_row);
    // Whoever ends last has no sibling left that reads, and leaves zeros for the next launch.
    if (count_teams(team, &counters().finished, number) == team.league_size() - 1) {
      auto* words  = reinterpret_cast<int*>(workspace);
      const auto n = static_cast<int>(split_row_workspace_bytes<State>(team.league_size()) / sizeof(int));
      for (int i = group.rank; i < n; i += group.size) words[i] = 0;
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION TeamCounters& counters() const { return *reinterpret_cast<TeamCounters*>(workspace); }

  /// How many teams have been here before.
  template <class Member>
  KOKKOS_INLINE_FUNCTION static int count_teams(const Member& team, int* counter, int* number) {
    team.team_barrier();
    if (team.team_rank() == 0) {
      KOKKOS_IF_ON_DEVICE((Kokkos::memory_fence(); *number = Kokkos::atomic_fetch_add(counter, 1);))
      // Kokkos' is relaxed: with a fence in front alone, what the last team clears would not be behind what others
      // wrote.
      KOKKOS_IF_ON_HOST((*number = std::atomic_ref<int>(*counter).fetch_add(1, std::memory_order_acq_rel);))
    }
    team.team_barrier();
    return *number;
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_rows(const Member& team, const RowGroup& group, State* pairs, State* totals,
                                      int row_group, int number) const {
    const int groups = team.league_size() / teams_per_row;
    auto* mailboxes =
        reinterpret_cast<Letters*>(workspace + sizeof(TeamCounters)) + std::int64_t(row_group) * teams_per_row;
    for (std::int64_t row = row_group, turn = 0; row < rows; row += groups, ++turn) {
      const auto input   = source.row(row);
      const auto output  = output_row<Finisher>(sink, row);
      const auto part_of = [&](const auto& of) {
        return RowPart::share<V>(of, cols, group.rank, share * number, share);
      };
      // Unknown to the optimiser, or it would compute all addresses ahead of the loop and spill them.
      Storage storage(nullptr, {opaque(group.rank), opaque(group.size), 0});
      const RowPart part = part_of(input);
      const State mine   = storage.reduce(input, part, math, group.lanes());
      const State warp   = merge_warp<sums_warps<Storage>>(math, mine, group.lanes());
      const State whole  = exchange(math, team, group, pairs, int(turn & 1), warp);
      if constexpr (is_joined<State>) {
        if (group.rank == 0) publish(mailboxes[number], turn, whole);
      }

      // The next row's part moves towards this team while the siblings' letters do.
      if (row + groups < rows) {
        const auto next = source.row(row + groups);
        storage.prefetch(next, part_of(next));
      }
      State all = whole;
      if constexpr (is_joined<State>) all = await_siblings(team, group, mailboxes, turn, totals + (turn & 1));
      all = completed(math, input, all);

      if constexpr (Finisher::one_value_a_row) {
        if (number == 0 && group.rank == 0) sink.store(Finisher::value(math, all), output);
      } else {
        using FinishRow   = typename Finisher::template Row<Math, A>;
        const auto finish =
            with_rounded_factor(finish_row<FinishRow>(math, Storage::has_own_reference ? mine : all, all));
        storage.write(input, output, part, math, finish);
        write_others<V>(input, output, cols, std::int64_t(number) * group.size + group.rank,
                        std::int64_t(teams_per_row) * group.size, math, finish);
      }
    }
  }

  /// Warp 0 reads the siblings' letters, everybody gets their union; all parts join them in the same order. Two totals
  /// are used in turn: the barrier of the next turn's exchange comes before this one is written again.
  template <class Member>
  KOKKOS_INLINE_FUNCTION State await_siblings(const Member& team, const RowGroup& group, const Letters* mailboxes,
                                              std::int64_t turn, State* total) const {
    const int lanes = group.lanes();
    if (group.rank < lanes) {
      State all;
      for (int p = group.rank; p < teams_per_row; p += lanes) {
        all = merge_two(math, all, await<State>(mailboxes[p], turn));
      }
      all = merge_lanes(math, all, lanes);
      if (group.rank == 0) *total = all;
    }
    team.team_barrier();
    return *total;
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNELS_SPLIT_ROW_HPP
