// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_KERNELS_SEGMENTED_HPP
#define KOKKOSNN_IMPL_KERNELS_SEGMENTED_HPP

#include <KokkosNN/impl/kernels/segmented_rows.hpp>
#include <KokkosNN/impl/primitives/finish.hpp>
#include <KokkosNN/impl/primitives/lanes.hpp>
#include <KokkosNN/impl/primitives/segments.hpp>
#include <KokkosNN/impl/segmented_plan.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

// Ragged rows, balanced by construction: a team's work is a chunk of the values, whatever the rows are. Three kernels,
// one after the other, of which the second and third have something to do only where rows are long:
//
//   ChunkRows      finishes the rows that begin in a team's chunk; of a long row it leaves the state of the chunk's
//   part JoinLongRows   joins the states of each long row, in the order of its chunks WriteLongRows  reads the parts of
//   long rows again, and writes them
//
// What is done with rows and parts of rows is the Operation's: SegmentedForward or SegmentedBackward.

namespace KokkosNN::Impl {

/// Where the kernels leave notes for each other, an entry a chunk.
template <class State>
struct SegmentedWorkspace {
  ChunkNote* notes;
  State* heads;  ///< of the part that belongs to a row which began earlier
  State* tails;  ///< of the first part of a long row; JoinLongRows replaces it by the row's

  static constexpr std::size_t bytes(std::int64_t chunks) {
    return static_cast<std::size_t>(chunks) * (sizeof(ChunkNote) + 2 * sizeof(State));
  }
  static SegmentedWorkspace in(char* memory, std::int64_t chunks) {
    auto* const states = reinterpret_cast<State*>(memory);  // first, as they may want the larger alignment
    return {reinterpret_cast<ChunkNote*>(states + 2 * chunks), states, states + chunks};
  }
};

/// What a GPU's team knows of its chunk; elements counted from the chunk's begin.
struct ChunkFacts {
  std::int64_t first;  ///< of the rows that begin in it
  std::int64_t last;   ///< one behind, without a long one
  int from;            ///< elements of those rows
  int to;
  int head;  ///< [0, head) belongs to a long row that began earlier
  int tail;  ///< [tail, size) to one that begins here
};
static_assert(sizeof(ChunkFacts) == chunk_facts_bytes);

template <class Operation>
struct ChunkRows {
  using A       = typename Operation::A;
  using State   = typename Operation::State;
  using Classes = LengthClasses<Operation::max_packs>;

  Operation op;
  RowOffsets offsets;
  Chunks chunks;
  SegmentedWorkspace<State> workspace;
  int scratch_level;
  int scratch_bytes;
  SegmentedScratch places;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    KOKKOS_IF_ON_DEVICE((Team<Member>(*this, team).run();))
    KOKKOS_IF_ON_HOST((run_on_host(team);))
    if constexpr (Operation::one_value_a_row) store_empty_rows(team.league_rank(), team.team_rank(), team.team_size());
  }

 private:
  KOKKOS_INLINE_FUNCTION std::int64_t first_row(std::int64_t c, int lane) const {
    if (c == 0) return 0;
    return c == chunks.count ? chunks.rows : rows_before(offsets, chunks.rows, chunks.begin(c), lane);
  }

  /// Each team looks at its share of the rows: empty ones have no chunk, and may all lie together.
  KOKKOS_INLINE_FUNCTION void store_empty_rows(std::int64_t team, int rank, int size) const {
    const std::int64_t share = (chunks.rows + chunks.count - 1) / chunks.count;
    const std::int64_t last  = (team + 1) * share < chunks.rows ? (team + 1) * share : chunks.rows;
    for (std::int64_t row = team * share + rank; row < last; row += size) {
      if (chunks.inside(offsets[row + 1]) <= chunks.inside(offsets[row])) op.store_value(State{}, row);
    }
  }

  /// A host's team is one thread; rows go through its cache one after the other.
  template <class Member>
  KOKKOS_INLINE_FUNCTION void run_on_host(const Member& team) const {
    const std::int64_t c     = team.league_rank();
    const std::int64_t first = first_row(c, 0);
    const std::int64_t last  = first_row(c + 1, 0);
    const HeadPart head      = HeadPart::of(chunks, offsets, c, first);
    const TailPart tail      = TailPart::of(chunks, offsets, c, last);
    const bool has_tail      = tail.begin < chunks.end(c);
    A* const scratch         = static_cast<A*>(team_scratch(team, scratch_level, scratch_bytes));
    if (chunks.begin(c) < head.end) workspace.heads[c] = op.reduce_part(chunks.begin(c), head.end);
    if (has_tail) workspace.tails[c] = op.reduce_part(tail.begin, chunks.end(c));
    if (chunks.count > 1) workspace.notes[c] = {head, tail};

    const std::int64_t farthest = chunks.inside(chunks.end(c) + chunks.overhang);
    for (std::int64_t row = first; row < last - (has_tail ? 1 : 0); ++row) {
      const std::int64_t begin = offsets[row];
      const std::int64_t end   = offsets[row + 1];
      if (chunks.begin(c) <= begin && begin < end && end <= farthest) op.do_row(begin, end, row, scratch);
    }
  }

  /// A GPU's team: its chunk in team scratch, and what its threads know together.
  template <class Member>
  struct Team {
    const ChunkRows& kernel;
    const Member& team;
    const Chunks& chunks;
    char* scratch;
    RowGroup group;
    std::int64_t c;
    int round = 0;

    KOKKOS_INLINE_FUNCTION Team(const ChunkRows& k, const Member& member)
        : kernel(k),
          team(member),
          chunks(k.chunks),
          scratch(static_cast<char*>(team_scratch(member, k.scratch_level, k.scratch_bytes))),
          group{member.team_rank(), member.team_size(), 0},
          c(member.league_rank()) {}

    KOKKOS_INLINE_FUNCTION std::int64_t begin() const { return chunks.begin(c); }
    KOKKOS_INLINE_FUNCTION std::int64_t end() const { return chunks.end(c); }
    KOKKOS_INLINE_FUNCTION auto planes() const {
      return typename Operation::Planes{reinterpret_cast<A*>(scratch), kernel.places.plane};
    }
    KOKKOS_INLINE_FUNCTION State* pairs() const { return reinterpret_cast<State*>(scratch + kernel.places.pairs); }
    /// Of a turn's rows, relative to the chunk's begin, and the end of the last.
    KOKKOS_INLINE_FUNCTION int* starts() const { return reinterpret_cast<int*>(scratch + kernel.places.starts); }
    /// A turn's rows by length.
    KOKKOS_INLINE_FUNCTION std::uint16_t* order() const {
      return reinterpret_cast<std::uint16_t*>(scratch + kernel.places.order);
    }
    KOKKOS_INLINE_FUNCTION ChunkFacts& facts() const {
      return *reinterpret_cast<ChunkFacts*>(scratch + kernel.places.facts);
    }
    /// Rows of each class of lengths, and of those before it.
    KOKKOS_INLINE_FUNCTION int* counts() const { return reinterpret_cast<int*>(scratch + kernel.places.counts); }
    KOKKOS_INLINE_FUNCTION int* bases() const { return counts() + max_length_classes; }

    KOKKOS_INLINE_FUNCTION void run() {
      find_rows();
      kernel.op.keep_span(begin(), end(), planes(), group);
      clear_counts();
      team.team_barrier();
      load_overhang();
      team.team_barrier();
      reduce_parts();
      do_rows();
      if constexpr (!Operation::one_value_a_row) {
        team.team_barrier();
        const int from = facts().from;
        const int to   = facts().to;
        if (from < to) kernel.op.store_cells(begin() + from, to - from, planes(), from, group);
      }
    }

   private:
    /// An offset, but at most as far as this team's scratch reaches.
    KOKKOS_INLINE_FUNCTION std::int64_t within(std::int64_t offset) const {
      const std::int64_t farthest = chunks.inside(begin() + chunks.size() + chunks.overhang);
      return offset < begin() ? begin() : (offset > farthest ? farthest : offset);
    }

    KOKKOS_INLINE_FUNCTION int warp() const { return group.rank / native_lanes(); }
    KOKKOS_INLINE_FUNCTION int lane() const { return group.rank & (native_lanes() - 1); }

    /// One warp finds where the chunk's rows begin, another where they end; the others load meanwhile. These two ask
    /// for what they will load, instead of holding it in registers.
    KOKKOS_INLINE_FUNCTION void find_rows() const {
      if (warp() > 1) return;
      kernel.op.prefetch(begin(), end(), group);
      const std::int64_t rows = kernel.first_row(c + warp(), lane());
      if (lane() > 0) return;
      if (warp() == 0) {
        const HeadPart head = HeadPart::of(chunks, kernel.offsets, c, rows);
        facts().first       = rows;
        facts().head        = relative(head.end);
        facts().from        = relative(within(kernel.offsets[rows]));
        if (chunks.count > 1) kernel.workspace.notes[c].head = head;
      } else {
        const TailPart tail = TailPart::of(chunks, kernel.offsets, c, rows);
        const bool has_tail = tail.begin < end();
        facts().last        = rows - (has_tail ? 1 : 0);
        facts().tail        = relative(tail.begin);
        facts().to          = relative(has_tail ? tail.begin : within(kernel.offsets[rows]));
        if (chunks.count > 1) kernel.workspace.notes[c].tail = tail;
      }
    }

    KOKKOS_INLINE_FUNCTION int relative(std::int64_t element) const { return static_cast<int>(element - begin()); }

    /// What the last row has beyond the chunk.
    KOKKOS_INLINE_FUNCTION void load_overhang() const {
      const int size = chunks.size();
      const int to   = facts().to;
      if (size < to && facts().from < to) {
        kernel.op.keep_elements(begin() + size, to - size, planes(), size, group);
      }
    }

    KOKKOS_INLINE_FUNCTION void clear_counts() const {
      for (int i = group.rank; i < max_length_classes; i += group.size) counts()[i] = 0;
    }

    /// Of the long rows that this chunk has a part of.
    KOKKOS_INLINE_FUNCTION void reduce_parts() {
      const int head = facts().head;
      const int tail = facts().tail;
      const int size = relative(end());
      if (head > 0) {
        const State state = reduce_by_team(0, head);
        if (group.rank == 0) kernel.workspace.heads[c] = state;
      }
      if (tail < size) {
        const State state = reduce_by_team(tail, size - tail);
        if (group.rank == 0) kernel.workspace.tails[c] = state;
      }
    }

    KOKKOS_INLINE_FUNCTION State reduce_by_team(int first, int length) {
      const State mine = kernel.op.template reduce_cells<false>(planes(), first, length, group);
      return exchange(kernel.op.math, team, group, pairs(), round++, merge_warp(kernel.op.math, mine, group.lanes()));
    }

    /// Turn by turn, as many rows as there is room for.
    KOKKOS_INLINE_FUNCTION void do_rows() {
      KOKKOSNN_IMPL_NO_UNROLL
      for (std::int64_t row = facts().first; row < facts().last;) {
        const int most          = group.size * segment_rows_per_thread;
        const std::int64_t left = facts().last - row;
        const int rows          = left < most ? static_cast<int>(left) : most;
        sort_rows(row, rows);
        do_sorted_rows(row);
        const int done = starts()[rows];
        if (done >= facts().to) return;  // only empty rows are left
        const bool are_empty = done == starts()[0];
        row += rows;
        // Many empty rows: on to the last that begins where they are, which is the first that may have elements.
        if (are_empty) row = first_filled(row, begin() + done);
        team.team_barrier();
        clear_counts();
        team.team_barrier();
      }
    }

    KOKKOS_INLINE_FUNCTION std::int64_t first_filled(std::int64_t row, std::int64_t element) const {
      const std::int64_t beyond = rows_before(kernel.offsets, chunks.rows, element + 1, lane());
      return beyond - 1 > row ? beyond - 1 : row;
    }

    /// Leaves the rows that have elements in `order`, by length. Which of equally long ones comes first depends on who
    /// counted first; no result does.
    KOKKOS_INLINE_FUNCTION void sort_rows(std::int64_t row, int rows) const {
      int place[segment_rows_per_thread];
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < segment_rows_per_thread; ++k) {
        const int i = group.rank + k * group.size;
        if (i <= rows) starts()[i] = relative(within(kernel.offsets[row + i]));
      }
      if (group.rank == 0) starts()[rows] = relative(within(kernel.offsets[row + rows]));
      team.team_barrier();
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < segment_rows_per_thread; ++k) {
        const int i = group.rank + k * group.size;
        if (has_elements(i, rows)) place[k] = Kokkos::atomic_fetch_add(&counts()[Classes::of(length(i))], 1);
      }
      team.team_barrier();
      if (group.rank <= Classes::of_team() + 1) {
        int before = 0;
        for (int k = 0; k < group.rank; ++k) before += counts()[k];
        bases()[group.rank] = before;
      }
      team.team_barrier();
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < segment_rows_per_thread; ++k) {
        const int i = group.rank + k * group.size;
        if (has_elements(i, rows)) order()[bases()[Classes::of(length(i))] + place[k]] = static_cast<std::uint16_t>(i);
      }
      team.team_barrier();
    }

    KOKKOS_INLINE_FUNCTION int length(int i) const { return starts()[i + 1] - starts()[i]; }
    KOKKOS_INLINE_FUNCTION bool has_elements(int i, int rows) const { return i < rows && length(i) > 0; }

    KOKKOS_INLINE_FUNCTION void do_sorted_rows(std::int64_t row) {
      const int log2_lanes = Classes::log2_lanes();
      const int warps      = group.warps();
      int turn             = warp();  // tasks are dealt to the warps in turn, the longest rows first
      KOKKOSNN_IMPL_NO_UNROLL
      for (int k = log2_lanes; k >= 0; --k) {
        const int first         = bases()[Classes::first(k)];
        const int last          = bases()[Classes::first(k + 1)];
        const int log2_together = log2_lanes - k;  // rows that a warp takes together
        const int tasks         = (last - first + (1 << log2_together) - 1) >> log2_together;
        KOKKOSNN_IMPL_NO_UNROLL
        for (; turn < tasks; turn += warps) {
          const int at   = first + (turn << log2_together);
          const int mine = at + (lane() >> k);
          const int most = at + (1 << log2_together) < last ? at + (1 << log2_together) - 1 : last - 1;
          do_together(row, mine < last ? order()[mine] : -1, Classes::packs(length(order()[most]), k), k);
        }
        turn -= tasks;
      }
      for (int i = bases()[Classes::of_team()]; i < bases()[Classes::of_team() + 1]; ++i) do_by_team(row, order()[i]);
    }

    /// Row i, if there is one, of 2^k lanes of this warp, of which each has so many packs.
    KOKKOS_INLINE_FUNCTION void do_together(std::int64_t row, int i, int packs, int k) const {
      const int lanes = 1 << k;
      const int first = i < 0 ? 0 : starts()[i];
      const int count = i < 0 ? 0 : length(i);
      do_packs<1>(packs, first, count, lane() & (lanes - 1), lanes, row + i);
    }

    template <int K>
    KOKKOS_INLINE_FUNCTION void do_packs(int packs, int first, int count, int lane_of_row, int lanes,
                                         std::int64_t row) const {
      if constexpr (K < Operation::max_packs) {
        if (packs > K) return do_packs<K + 1>(packs, first, count, lane_of_row, lanes, row);
      }
      kernel.op.template do_cells<K>(planes(), first, count, lane_of_row, lanes, row);
    }

    KOKKOS_INLINE_FUNCTION void do_by_team(std::int64_t row, int i) {
      const auto& op   = kernel.op;
      const State mine = op.template reduce_cells<true>(planes(), starts()[i], length(i), group);
      const State all  = exchange(op.math, team, group, pairs(), round++, merge_warp(op.math, mine, group.lanes()));
      op.finish_cells(planes(), starts()[i], length(i), mine, all, group, row + i);
    }
  };
};

/// A team takes the long rows that begin in so many chunks.
template <class Operation>
struct JoinLongRows {
  using State = typename Operation::State;

  static constexpr int most_wide_rows = chunks_per_join / chunks_joined_by_thread;

  Operation op;
  Chunks chunks;
  SegmentedWorkspace<State> workspace;
  int scratch_level;
  int scratch_bytes;

  static constexpr std::size_t scratch(int team_size, int lanes) {
    return most_wide_rows * sizeof(std::int64_t) +
           2 * static_cast<std::size_t>(std::max(1, team_size / lanes)) * sizeof(State);
  }

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const RowGroup group{team.team_rank(), team.team_size(), 0};
    auto* const pairs        = static_cast<State*>(team_scratch(team, scratch_level, scratch_bytes));
    auto* const wide         = reinterpret_cast<std::int64_t*>(pairs + 2 * group.warps());
    const std::int64_t begin = std::int64_t(team.league_rank()) * chunks_per_join;
    const std::int64_t end   = begin + chunks_per_join < chunks.count ? begin + chunks_per_join : chunks.count;
    for (int i = group.rank; i < most_wide_rows; i += group.size) wide[i] = -1;
    team.team_barrier();
    for (std::int64_t c = begin + group.rank; c < end; c += group.size) {
      const ChunkNote note = workspace.notes[c];
      if (note.tail.begin >= chunks.end(c)) continue;
      // Of such rows no two begin in as many chunks, so each has a place of its own.
      if (chunks.of(note.tail.row_end - 1) - c > chunks_joined_by_thread) {
        wide[(c - begin) / chunks_joined_by_thread] = c;
      } else {
        store(c, note, join(workspace.tails[c], note, c + 1, 1));
      }
    }
    team.team_barrier();
    for (int i = 0; i < most_wide_rows; ++i) {
      const std::int64_t c = wide[i];
      if (c < 0) continue;
      const ChunkNote note = workspace.notes[c];
      const State mine     = join(group.rank == 0 ? workspace.tails[c] : State{}, note, c + 1 + group.rank, group.size);
      const State all      = exchange(op.math, team, group, pairs, i, merge_lanes(op.math, mine, group.lanes()));
      if (group.rank == 0) store(c, note, all);
    }
  }

 private:
  /// Every so many-th part of the row from chunk `first` on.
  KOKKOS_INLINE_FUNCTION State join(State state, const ChunkNote& note, std::int64_t first, int step) const {
    const std::int64_t last = chunks.of(note.tail.row_end - 1);
    for (std::int64_t c = first; c <= last; c += step) state = merge_two(op.math, state, workspace.heads[c]);
    return state;
  }

  KOKKOS_INLINE_FUNCTION void store(std::int64_t c, const ChunkNote& note, const State& state) const {
    if constexpr (Operation::one_value_a_row) {
      op.store_value(state, note.tail.row);
    } else {
      workspace.tails[c] = state;
    }
  }
};

/// A team writes the parts of long rows in so many chunks; most calls have none.
template <class Operation>
struct WriteLongRows {
  using State = typename Operation::State;

  Operation op;
  Chunks chunks;
  SegmentedWorkspace<State> workspace;
  int chunks_per_team;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const RowGroup group{team.team_rank(), team.team_size(), 0};
    const std::int64_t begin = std::int64_t(team.league_rank()) * chunks_per_team;
    const std::int64_t end   = begin + chunks_per_team < chunks.count ? begin + chunks_per_team : chunks.count;
    if (!is_any_long(begin, end, group.rank & (native_lanes() - 1))) return;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t c = begin; c < end; ++c) {
      const ChunkNote note = workspace.notes[c];
      if (has_head(c, note)) op.write_part(chunks.begin(c), note.head.end, workspace.tails[note.head.chunk], group);
      if (has_tail(c, note)) op.write_part(note.tail.begin, chunks.end(c), workspace.tails[c], group);
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION bool has_head(std::int64_t c, const ChunkNote& note) const {
    return chunks.begin(c) < note.head.end;
  }
  KOKKOS_INLINE_FUNCTION bool has_tail(std::int64_t c, const ChunkNote& note) const {
    return note.tail.begin < chunks.end(c);
  }

  /// The lanes of each warp look at all chunks together, in the time of one look.
  KOKKOS_INLINE_FUNCTION bool is_any_long(std::int64_t begin, std::int64_t end, int lane) const {
    bool is_long = false;
    for (std::int64_t c = begin + lane; c < end; c += native_lanes()) {
      const ChunkNote& note = workspace.notes[c];
      is_long               = is_long || has_head(c, note) || has_tail(c, note);
    }
    return count_lanes(is_long) > 0;
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNELS_SEGMENTED_HPP
