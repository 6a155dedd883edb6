// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_KERNELS_SEGMENTED_HOST_HPP
#define KOKKOSNN_IMPL_KERNELS_SEGMENTED_HOST_HPP

#include <KokkosNN/impl/kernels/segmented_rows.hpp>
#include <KokkosNN/impl/primitives/lanes.hpp>
#include <KokkosNN/impl/primitives/segments.hpp>
#include <KokkosNN/impl/segmented_plan.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

// Ragged rows on a host, balanced by construction: a team of one thread takes a chunk of the values, whatever the rows
// are. Three kernels, one after the other, of which the second and third have something to do only where rows are long:
//
//   ChunkRows      finishes the rows that begin in a chunk; of a long row it leaves the state of the chunk's part
//   JoinLongRows   joins the states of each long row, in the order of its chunks
//   WriteLongRows  reads the parts of long rows again, and writes them
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

template <class Operation>
struct ChunkRows {
  using A     = typename Operation::A;
  using State = typename Operation::State;

  Operation op;
  RowOffsets offsets;
  Chunks chunks;
  SegmentedWorkspace<State> workspace;
  int scratch_level;
  int scratch_bytes;

  template <class Member>
  void operator()(const Member& team) const {
    const std::int64_t c = team.league_rank();
    do_chunk(c, static_cast<A*>(team_scratch(team, scratch_level, scratch_bytes)));
    if constexpr (Operation::one_value_a_row) store_empty_rows(c);
  }

 private:
  std::int64_t first_row(std::int64_t c) const {
    if (c == 0) return 0;
    return c == chunks.count ? chunks.rows : rows_before(offsets, chunks.rows, chunks.begin(c));
  }

  /// Each team looks at its share of the rows: empty ones have no chunk, and may all lie together.
  void store_empty_rows(std::int64_t team) const {
    const std::int64_t share = (chunks.rows + chunks.count - 1) / chunks.count;
    const std::int64_t last  = (team + 1) * share < chunks.rows ? (team + 1) * share : chunks.rows;
    for (std::int64_t row = team * share; row < last; ++row) {
      if (chunks.inside(offsets[row + 1]) <= chunks.inside(offsets[row])) op.store_value(State{}, row);
    }
  }

  /// Rows go through the thread's cache one after the other.
  void do_chunk(std::int64_t c, A* scratch) const {
    const std::int64_t first = first_row(c);
    const std::int64_t last  = first_row(c + 1);
    const HeadPart head      = HeadPart::of(chunks, offsets, c, first);
    const TailPart tail      = TailPart::of(chunks, offsets, c, last);
    const bool has_tail      = tail.begin < chunks.end(c);
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
};

/// A team takes the long row, if there is one, that begins in its chunk.
template <class Operation>
struct JoinLongRows {
  using State = typename Operation::State;

  Operation op;
  Chunks chunks;
  SegmentedWorkspace<State> workspace;

  template <class Member>
  void operator()(const Member& team) const {
    const std::int64_t c  = team.league_rank();
    const ChunkNote& note = workspace.notes[c];
    if (note.tail.begin >= chunks.end(c)) return;
    State state             = workspace.tails[c];
    const std::int64_t last = chunks.of(note.tail.row_end - 1);
    for (std::int64_t part = c + 1; part <= last; ++part) state = merge_two(op.math, state, workspace.heads[part]);
    if constexpr (Operation::one_value_a_row) {
      op.store_value(state, note.tail.row);
    } else {
      workspace.tails[c] = state;
    }
  }
};

/// A team writes the parts of long rows in its chunk.
template <class Operation>
struct WriteLongRows {
  using State = typename Operation::State;

  Operation op;
  Chunks chunks;
  SegmentedWorkspace<State> workspace;

  template <class Member>
  void operator()(const Member& team) const {
    const std::int64_t c     = team.league_rank();
    const std::int64_t begin = chunks.begin(c);
    const std::int64_t end   = chunks.end(c);
    const ChunkNote& note    = workspace.notes[c];
    if (begin < note.head.end) op.write_part(begin, note.head.end, workspace.tails[note.head.chunk]);
    if (note.tail.begin < end) op.write_part(note.tail.begin, end, workspace.tails[c]);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNELS_SEGMENTED_HOST_HPP
