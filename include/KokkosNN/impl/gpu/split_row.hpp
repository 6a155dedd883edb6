// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_SPLIT_ROW_HPP
#define KOKKOSNN_IMPL_GPU_SPLIT_ROW_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/status_word.hpp>
#include <KokkosNN/impl/gpu/shared_row.hpp>

#include <Kokkos_Core.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

// Kernel split_row: several co-resident teams share a row. Each reads its part, publishes its (max, sum), waits for its
// peers' status words and writes.
// The latency of status words in a busy memory dominates: it is longer than loading, computing and writing together.
//   1024 x 65536 f32, H200 | status words 5 us of an epoch's 7.5
// So a team with enough registers reduces its next row meanwhile (`overlaps`), and reads a status word an epoch ahead.
// (Copies to shared memory ahead of time, by each thread or in bulk, are slower: a row's next part comes as fast from
// the cache, and status words wait behind it.)
// Teams join no more than they need: if a row has at most as many teams as a warp has lanes, the first warp reads all
// status words and broadcasts their union (`told_by_first`). If each warp read them by itself, without a barrier,
// status words would be slower.
// Teams that wait must run at the same time: the planner makes the league no larger than what the device surely holds,
// and teams number themselves in the order in which they start, so that those that share a row started together.

namespace KokkosNN::Impl {

/// Counters ahead of the status words, of which each team has one, in a launch's workspace. The workspace is zero
/// before and after a launch.
struct alignas(64) TeamCounters {
  int started;
  int left;
};

template <class State>
KOKKOS_INLINE_FUNCTION constexpr std::size_t split_row_workspace_bytes(std::int64_t league_size) {
  return sizeof(TeamCounters) + static_cast<std::size_t>(league_size) * sizeof(typename StatusWordFor<State>::type);
}

/// Functor of split_row. The Placement is RegisterPlacement or PackedPlacement if a team's part of a row fits, else
/// OnlinePlacement.
template <RowOperator op, int V, bool overlaps, class Placement, class Params, class Source, class Output>
struct SplitRow : SharedRow<op, V, Placement, Params, Source, Output> {
  using Shared = SharedRow<op, V, Placement, Params, Source, Output>;
  using Shared::source, Shared::output, Shared::params, Shared::shares, Shared::part_of;
  using typename Shared::A, typename Shared::State, typename Shared::OpEpilogue;
  using Words = typename StatusWordFor<State>::type;

  std::int64_t rows;
  int scratch_level;
  int scratch_bytes;
  char* workspace;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const RowGroup group{team.team_rank(), team.team_size(), 0};
    auto* pairs  = static_cast<State*>(team_scratch(team, scratch_level, scratch_bytes));
    auto* number = reinterpret_cast<int*>(pairs + exchange_pairs(group.warps()));

    const int ticket = take_ticket(team, number);
    const Seat peer  = {{group, ticket % shares.parts}, ticket / shares.parts, team.league_size() / shares.parts};
    if constexpr (overlaps) {
      do_rows_in_pairs(team, peer, pairs);
    } else {
      do_rows(team, peer, pairs);
    }
    leave(team);
  }

 private:
  /// Rows and part of a team: every `groups`-th row from `first_row` on, and of each row part `number`.
  struct Seat : TeamOfRow {
    int first_row;
    int groups;

    /// Hidden from the optimiser, which would compute all addresses ahead of the loop over rows and spill them.
    KOKKOS_INLINE_FUNCTION RowGroup new_group() const { return {opaque(group.rank), opaque(group.size), 0}; }
  };

  KOKKOS_INLINE_FUNCTION TeamCounters& counters() const { return *reinterpret_cast<TeamCounters*>(workspace); }

  /// Status words of the teams that share this one's rows.
  KOKKOS_INLINE_FUNCTION Words* status_words(const Seat& peer) const {
    return reinterpret_cast<Words*>(workspace + sizeof(TeamCounters)) + std::int64_t(peer.first_row) * shares.parts;
  }

  /// Number of teams that have started before this one.
  template <class Member>
  KOKKOS_INLINE_FUNCTION int take_ticket(const Member& team, int* number) const {
    if (team.team_rank() == 0) *number = Kokkos::atomic_fetch_add(&counters().started, 1);
    team.team_barrier();
    return *number;
  }

  /// Called once a team has read its last status word. The last team to arrive resets the workspace to zero for the
  /// next launch; nobody reads it any more. A GPU's team needs neither a barrier nor a fence here: a status word that
  /// was waited for has been read, and nothing is written before the count is known.
  ///   4 x 200000 f32 | 10.1 us | with a barrier and a fence here and ahead of the ticket 10.9
  template <class Member>
  KOKKOS_INLINE_FUNCTION void leave(const Member& team) const {
    const int rank = team.team_rank();
    if (rank >= warp_width()) return;
    int before = 0;
    if (rank == 0) {
      KOKKOS_IF_ON_DEVICE((before = Kokkos::atomic_fetch_add(&counters().left, 1);))
      KOKKOS_IF_ON_HOST((before = std::atomic_ref<int>(counters().left).fetch_add(1, std::memory_order_acq_rel);))
    }
    if (shuffle_from(before, 0) != team.league_size() - 1) return;
    auto* words  = reinterpret_cast<int*>(workspace);
    const auto n = static_cast<int>(split_row_workspace_bytes<State>(team.league_size()) / sizeof(int));
    for (int i = rank; i < n; i += warp_width()) words[i] = 0;
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_rows(const Member& team, const Seat& peer, State* pairs) const {
    int round          = 0;
    std::int64_t epoch = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t row = peer.first_row; row < rows; row += peer.groups, ++epoch) {
      Placement placement(nullptr, peer.new_group());
      const State mine = reduce(team, peer, placement, row, epoch, pairs, round, [] {});
      epilogue(team, peer, placement, row, epoch, pairs, round, mine, first_word(peer, epoch));
    }
  }

  /// Processes rows if registers hold two of them: while one row's status words are in flight, the team reduces the
  /// next.
  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_rows_in_pairs(const Member& team, const Seat& peer, State* pairs) const {
    int round = 0;
    Placement placement(nullptr, peer.new_group());
    State mine;
    std::int64_t row = peer.first_row;
    bool is_row      = row < rows;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t epoch = 0; is_row; ++epoch, row += peer.groups) {
      auto word             = first_word(peer, epoch - 1);
      const auto read_again = [&] {
        if (!first_warp_reads_all() && !Words::holds(word, epoch - 1)) word = first_word(peer, epoch - 1);
      };
      Placement next(nullptr, peer.new_group());
      State mine_of_next;
      is_row = row < rows;
      if (is_row) mine_of_next = reduce(team, peer, next, row, epoch, pairs, round, read_again);
      if (epoch > 0) epilogue(team, peer, placement, row - peer.groups, epoch - 1, pairs, round, mine, word);
      placement = next;
      mine      = mine_of_next;
    }
  }

  /// Row of the input. Two rows of floats leave no register for an eviction hint.
  KOKKOS_INLINE_FUNCTION auto input_row(std::int64_t row) const {
    auto input = source.row(row);
    if constexpr (overlaps && V <= 4) input.clear_policy();
    return input;
  }

  /// First half of a row: reduces this team's part, publishes its state and returns this thread's. The loads of `ask`
  /// arrive while the team's warps exchange their states.
  template <class Member, class Ask>
  KOKKOS_INLINE_FUNCTION State reduce(const Member& team, const Seat& peer, Placement& placement, std::int64_t row,
                                      std::int64_t epoch, State* pairs, int& round, const Ask& ask) const {
    const auto input = input_row(row);
    const State mine = placement.reduce(input, part_of(peer, input), params, peer.group.lanes());
    ask();
    if constexpr (is_joined<State>) {
      const State warp  = merge_warp<Placement::sums_warps>(params, mine, peer.group.lanes());
      const State whole = exchange<true>(params, team, peer.group, pairs, round++, warp);
      if (peer.group.rank == 0) publish(status_words(peer)[peer.number], epoch, whole);
    }
    // The next row's part is prefetched while the peers' status words are in flight.
    if (row + peer.groups < rows) {
      const auto next = source.row(row + peer.groups);
      placement.prefetch(next, part_of(peer, next));
    }
    return mine;
  }

  /// Second half of a row: joins the peers' states and writes the part.
  template <class Member>
  KOKKOS_INLINE_FUNCTION void epilogue(const Member& team, const Seat& peer, Placement& placement, std::int64_t row,
                                       std::int64_t epoch, State* pairs, int& round, const State& mine,
                                       const typename Words::Word& word) const {
    const auto input = source.row(row);
    const auto out   = output_row<OpEpilogue>(output, row);
    // All warps have read the previous row's facts, as there was a barrier in this row's first half.
    this->prepare(peer, placement, input);
    State all = mine;
    if constexpr (is_joined<State>) all = join_peers(team, peer, epoch, pairs, round++, word);
    this->write(peer, placement, input, out, mine, all);
  }

  /// True if the first warp has a lane for each status word: it then broadcasts their union, and other warps join
  /// nothing.
  KOKKOS_INLINE_FUNCTION bool first_warp_reads_all() const { return shares.parts <= warp_width(); }

  /// Reads this thread's first status word for `join_peers`: early, as the answer takes a while.
  KOKKOS_INLINE_FUNCTION typename Words::Word first_word(const Seat& peer, std::int64_t epoch) const {
    if (!is_joined<State> || peer.group.rank >= shares.parts) return {};
    return status_words(peer)[peer.group.rank].read(epoch);
  }

  /// Waits for the peers' status words, one a thread, and returns their union, joined in one order in all teams of a
  /// row.
  template <class Member>
  KOKKOS_INLINE_FUNCTION State join_peers(const Member& team, const Seat& peer, std::int64_t epoch, State* pairs,
                                          int round, const typename Words::Word& first) const {
    State all;
    if (!first_warp_reads_all() || peer.group.rank < warp_width()) {
      all = merge_lanes(params, read_words(peer, epoch, first), peer.group.lanes());
    }
    return first_warp_reads_all() ? told_by_first(team, peer.group, pairs, round, all)
                                  : exchange(params, team, peer.group, pairs, round, all);
  }

  /// Union of the status words that this thread reads.
  KOKKOS_INLINE_FUNCTION State read_words(const Seat& peer, std::int64_t epoch, typename Words::Word word) const {
    State all;
    for (int p = peer.group.rank; p < shares.parts; p += peer.group.size) {
      const Words& status = status_words(peer)[p];
      if (p != peer.group.rank) word = status.read(epoch);
      while (!status.holds(word, epoch)) {
        wait_a_little();
        word = status.read(epoch);
      }
      all = merge_two(params, all, opened<State>(status, word));
    }
    return all;
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_SPLIT_ROW_HPP
