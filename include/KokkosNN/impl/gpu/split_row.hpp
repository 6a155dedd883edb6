// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_SPLIT_ROW_HPP
#define KOKKOSNN_IMPL_GPU_SPLIT_ROW_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/status_word.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/gpu/row_in_team.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>

#include <Kokkos_Core.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

// split_row: several teams share a row. Each reads its part, publishes its (max, sum), waits for its siblings' and
// writes. What takes longest is the letters' way through a memory that is busy: 1024 x 65536 floats 5 of a turn's 7.5
// us on an H200. So a team that has the registers reduces its next row meanwhile. Teams that wait must be running at
// the same time: the planner makes the league no larger than what the device surely holds, and teams number themselves
// in the order in which they start, so that those that share a row started together.

namespace KokkosNN::Impl {

/// In front of the mailboxes, one a team, in the memory that a launch needs. All is zero before it and after it.
struct alignas(64) TeamCounters {
  int started;
  int left;
};

template <class State>
KOKKOS_INLINE_FUNCTION constexpr std::size_t split_row_workspace_bytes(std::int64_t league_size) {
  return sizeof(TeamCounters) + static_cast<std::size_t>(league_size) * sizeof(typename MailboxFor<State>::type);
}

/// The Storage is RegisterStorage or PackedStorage where a team's part of a row fits, OnlineStorage where it does not.
template <RowOperator op, int V, bool overlaps, class Storage, class Math, class Source, class Sink>
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
    auto* number = reinterpret_cast<int*>(pairs + exchange_pairs(group.warps()));

    const int ticket = take_ticket(team, number);
    const Seat seat  = {group, ticket % teams_per_row, ticket / teams_per_row, team.league_size() / teams_per_row};
    if constexpr (overlaps) {
      do_rows_in_pairs(team, seat, pairs);
    } else {
      do_rows(team, seat, pairs);
    }
    leave(team);
  }

 private:
  /// A team among all: every `groups`-th row from `first_row` on is its row, and of that part `number`.
  struct Seat {
    RowGroup group;
    int number;
    int first_row;
    int groups;

    /// Unknown to the optimiser, or it would compute all addresses ahead of the loop over rows and spill them.
    KOKKOS_INLINE_FUNCTION RowGroup new_group() const { return {opaque(group.rank), opaque(group.size), 0}; }
  };

  KOKKOS_INLINE_FUNCTION TeamCounters& counters() const { return *reinterpret_cast<TeamCounters*>(workspace); }

  /// Those of the teams that share this one's rows.
  KOKKOS_INLINE_FUNCTION Letters* mailboxes(const Seat& seat) const {
    return reinterpret_cast<Letters*>(workspace + sizeof(TeamCounters)) + std::int64_t(seat.first_row) * teams_per_row;
  }

  /// How many teams have started before this one.
  template <class Member>
  KOKKOS_INLINE_FUNCTION int take_ticket(const Member& team, int* number) const {
    if (team.team_rank() == 0) *number = Kokkos::atomic_fetch_add(&counters().started, 1);
    team.team_barrier();
    return *number;
  }

  /// For a team that has read its last letters. The last one, of which no sibling will read any, leaves zeros for the
  /// next launch. A GPU's team waits for nobody here, and without a fence not for its results to reach memory: a letter
  /// that was waited for has been read, and there is nothing to write before the count is known. (4 x 200000 f32 10.1
  /// us; with a barrier and a fence here and ahead of the ticket 10.9.)
  template <class Member>
  KOKKOS_INLINE_FUNCTION void leave(const Member& team) const {
    const int rank = team.team_rank();
    if (rank >= native_lanes()) return;
    int before = 0;
    if (rank == 0) {
      KOKKOS_IF_ON_DEVICE((before = Kokkos::atomic_fetch_add(&counters().left, 1);))
      KOKKOS_IF_ON_HOST((before = std::atomic_ref<int>(counters().left).fetch_add(1, std::memory_order_acq_rel);))
    }
    if (shuffle_from(before, 0) != team.league_size() - 1) return;
    auto* words  = reinterpret_cast<int*>(workspace);
    const auto n = static_cast<int>(split_row_workspace_bytes<State>(team.league_size()) / sizeof(int));
    for (int i = rank; i < n; i += native_lanes()) words[i] = 0;
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_rows(const Member& team, const Seat& seat, State* pairs) const {
    int round         = 0;
    std::int64_t turn = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t row = seat.first_row; row < rows; row += seat.groups, ++turn) {
      Storage storage(nullptr, seat.new_group());
      const State mine = reduce(team, seat, storage, row, turn, pairs, round, [] {});
      finish(team, seat, storage, row, turn, pairs, round, mine, first_letter(seat, turn));
    }
  }

  /// The same where registers hold two rows: while the letters of one are on their way the team reduces the next.
  template <class Member>
  KOKKOS_INLINE_FUNCTION void do_rows_in_pairs(const Member& team, const Seat& seat, State* pairs) const {
    int round = 0;
    Storage storage(nullptr, seat.new_group());
    State mine;
    std::int64_t row = seat.first_row;
    bool is_row      = row < rows;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t turn = 0; is_row; ++turn, row += seat.groups) {
      auto letter           = first_letter(seat, turn - 1);
      const auto read_again = [&] {
        if (!first_warp_reads_all() && !Letters::holds(letter, turn - 1)) letter = first_letter(seat, turn - 1);
      };
      Storage next(nullptr, seat.new_group());
      State mine_of_next;
      is_row = row < rows;
      if (is_row) mine_of_next = reduce(team, seat, next, row, turn, pairs, round, read_again);
      if (turn > 0) finish(team, seat, storage, row - seat.groups, turn - 1, pairs, round, mine, letter);
      storage = next;
      mine    = mine_of_next;
    }
  }

  /// Two rows of floats leave no register for a word to the cache.
  KOKKOS_INLINE_FUNCTION auto input_row(std::int64_t row) const {
    auto input = source.row(row);
    if constexpr (overlaps && V <= 4) {
      if constexpr (requires { input.policy; }) input.policy = {};
      if constexpr (requires { input.dy.policy; }) input.y.policy = input.dy.policy = {};
    }
    return input;
  }

  KOKKOS_INLINE_FUNCTION auto part_of(const Seat& seat, const auto& row) const {
    return RowPart::share<V>(row, cols, seat.group.rank, share * seat.number, share);
  }

  /// A row's first half: this team's part of it, told to its siblings. Returns this thread's state. What `ask` asks for
  /// arrives while the team's warps tell each other.
  template <class Member, class Ask>
  KOKKOS_INLINE_FUNCTION State reduce(const Member& team, const Seat& seat, Storage& storage, std::int64_t row,
                                      std::int64_t turn, State* pairs, int& round, const Ask& ask) const {
    const auto input = input_row(row);
    const State mine = storage.reduce(input, part_of(seat, input), math, seat.group.lanes());
    ask();
    if constexpr (is_joined<State>) {
      const State warp  = merge_warp<sums_warps<Storage>>(math, mine, seat.group.lanes());
      const State whole = exchange<true>(math, team, seat.group, pairs, round++, warp);
      if (seat.group.rank == 0) publish(mailboxes(seat)[seat.number], turn, whole);
    }
    // The next row's part moves towards this team while the siblings' letters do.
    if (row + seat.groups < rows) {
      const auto next = source.row(row + seat.groups);
      storage.prefetch(next, part_of(seat, next));
    }
    return mine;
  }

  /// The second one: what all siblings have told is joined, and the part written.
  template <class Member>
  KOKKOS_INLINE_FUNCTION void finish(const Member& team, const Seat& seat, Storage& storage, std::int64_t row,
                                     std::int64_t turn, State* pairs, int& round, const State& mine,
                                     const typename Letters::Letter& letter) const {
    const auto input  = source.row(row);
    const auto output = output_row<Finisher>(sink, row);
    if constexpr (finds_facts) {
      find_facts(seat, input);
    } else {
      prepare_write(storage, input, part_of(seat, input), math);
    }
    State all = mine;
    if constexpr (is_joined<State>) all = join_siblings(team, seat, turn, pairs, round++, letter);
    if constexpr (finds_facts) {
      if (seat.group.warps() == 1) sync_lanes();
      storage.take_facts(part_of(seat, input), *team_shared<typename Storage::Facts>());
    }
    all = completed(math, input, all);

    if constexpr (Finisher::one_value_a_row) {
      if (seat.number == 0 && seat.group.rank == 0) sink.store(Finisher::value(math, all), output);
    } else {
      using FinishRow = typename Finisher::template Row<Math, A>;
      const auto finish =
          with_rounded_factor(finish_row<FinishRow>(math, Storage::has_own_reference ? mine : all, all));
      storage.write(input, output, part_of(seat, input), math, finish);
      write_others<V>(input, output, cols, std::int64_t(seat.number) * seat.group.size + seat.group.rank,
                      std::int64_t(teams_per_row) * seat.group.size, math, finish);
    }
  }

  /// Whether one warp of a team finds out what a row's write needs besides its elements, and tells the others, for whom
  /// there is a barrier ahead.
  static constexpr bool finds_facts = [] {
    if constexpr (native_lanes() > 1 && is_joined<State> && requires { Storage::tells_facts; }) {
      return Storage::tells_facts;
    }
    return false;
  }();

  /// The last warp does: the first one has letters to read. What it left for the row before has been read by all, as
  /// there was a barrier in this row's first half.
  KOKKOS_INLINE_FUNCTION void find_facts(const Seat& seat, const auto& input) const {
    if (seat.group.rank < (seat.group.warps() - 1) * native_lanes()) return;
    sync_lanes();
    const Span all_packs = RowPart::whole<V>(input, cols, 0).packs;
    Storage::find_facts(input, all_packs, part_of(seat, input).packs, seat.number == 0, math,
                        seat.group.rank == seat.group.size - 1, *team_shared<typename Storage::Facts>());
  }

  /// Whether the first warp has a lane for each letter: it then tells the others, who join nothing themselves.
  KOKKOS_INLINE_FUNCTION bool first_warp_reads_all() const { return teams_per_row <= native_lanes(); }

  /// What lies in this thread's first mailbox, for `join_siblings`: asked for early, as the answer takes a while.
  KOKKOS_INLINE_FUNCTION typename Letters::Letter first_letter(const Seat& seat, std::int64_t turn) const {
    if (!is_joined<State> || seat.group.rank >= teams_per_row) return {};
    return mailboxes(seat)[seat.group.rank].read(turn);
  }

  /// Threads wait for a letter each; everybody gets their union, joined in one order in all teams of a row.
  template <class Member>
  KOKKOS_INLINE_FUNCTION State join_siblings(const Member& team, const Seat& seat, std::int64_t turn, State* pairs,
                                             int round, const typename Letters::Letter& first) const {
    State all;
    if (!first_warp_reads_all() || seat.group.rank < native_lanes()) {
      all = merge_lanes(math, read_letters(seat, turn, first), seat.group.lanes());
    }
    return first_warp_reads_all() ? told_by_first(team, seat.group, pairs, round, all)
                                  : exchange(math, team, seat.group, pairs, round, all);
  }

  /// The union of the letters that come to this thread.
  KOKKOS_INLINE_FUNCTION State read_letters(const Seat& seat, std::int64_t turn,
                                            typename Letters::Letter letter) const {
    State all;
    for (int p = seat.group.rank; p < teams_per_row; p += seat.group.size) {
      const Letters& mailbox = mailboxes(seat)[p];
      if (p != seat.group.rank) letter = mailbox.read(turn);
      while (!mailbox.holds(letter, turn)) {
        wait_a_little();
        letter = mailbox.read(turn);
      }
      all = merge_two(math, all, opened<State>(mailbox, letter));
    }
    return all;
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_SPLIT_ROW_HPP
