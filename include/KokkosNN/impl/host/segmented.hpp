// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_SEGMENTED_HPP
#define KOKKOSNN_IMPL_HOST_SEGMENTED_HPP

#include <KokkosNN/impl/inputs/row_offsets.hpp>
#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/host/row_writer.hpp>
#include <KokkosNN/impl/host/segmented_rows.hpp>
#include <KokkosNN/impl/inputs/segments.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

// Kernels of ragged rows on a host, balanced by construction: a team of one thread processes a chunk of the values,
// whatever the rows are. Three run one after the other; the second and third have work only if there are long rows:
//
//   ChunkRows      finishes the rows that begin in a chunk; of a long row it leaves the state of the chunk's part
//   JoinLongRows   joins the states of each long row, in the order of its chunks
//   WriteLongRows  reads the parts of long rows again, and writes them
//
// The Operation, HostSegmentedForward or HostSegmentedBackward, processes runs of rows, rows and parts of rows. A team
// processes the rows of all heads, one head after the other, while the chunk's values are in its cache. No code on the
// host side of a launch knows a length or waits for one.

namespace KokkosNN::Impl {

/// Data that the kernels leave for each other: one ChunkNote a chunk, two states a chunk and head.
template <class State>
struct SegmentedWorkspace {
  ChunkNote* notes;
  State* begun;      ///< of the part of a row that began in an earlier chunk
  State* beginning;  ///< of a long row's first part; JoinLongRows replaces it by the row's state
  std::int64_t heads;

  static constexpr std::size_t bytes(std::int64_t chunks, std::int64_t heads) {
    return static_cast<std::size_t>(chunks) * (sizeof(ChunkNote) + static_cast<std::size_t>(heads) * 2 * sizeof(State));
  }
  static SegmentedWorkspace in(char* memory, std::int64_t chunks, std::int64_t heads) {
    auto* const states = reinterpret_cast<State*>(memory);  // first, as they may need the larger alignment
    return {reinterpret_cast<ChunkNote*>(states + 2 * chunks * heads), states, states + chunks * heads, heads};
  }

  State& begun_in(std::int64_t chunk, std::int64_t head) const { return begun[chunk * heads + head]; }
  State& beginning_in(std::int64_t chunk, std::int64_t head) const { return beginning[chunk * heads + head]; }
};

template <class Operation>
struct ChunkRows {
  using A     = typename Operation::A;
  using State = typename Operation::State;

  Operation op;
  RowOffsets offsets;
  Chunks chunks;
  SegmentedWorkspace<State> workspace;
  bool nontemporal_stores;
  int scratch_level;
  int scratch_bytes;

  template <class Member>
  void operator()(const Member& team) const {
    const std::int64_t c = team.league_rank();
    auto writer          = op.writer(nontemporal_stores);
    do_chunk(c, static_cast<A*>(team_scratch(team, scratch_level, scratch_bytes)), writer);
    if constexpr (Operation::one_value_a_row) {
      for (std::int64_t head = 0; head < workspace.heads; ++head) store_empty_rows(op.of_head(head), c);
    }
  }

 private:
  std::int64_t first_row(std::int64_t c) const {
    if (c == 0) return 0;
    return c == chunks.count ? chunks.rows : rows_before(offsets, chunks.rows, chunks.begin(c));
  }

  /// Stores the results of empty rows: each team checks an equal range of rows, as empty rows are in no chunk, and may
  /// all be neighbours.
  void store_empty_rows(const Operation& own, std::int64_t team) const {
    const std::int64_t share = (chunks.rows + chunks.count - 1) / chunks.count;
    const std::int64_t last  = (team + 1) * share < chunks.rows ? (team + 1) * share : chunks.rows;
    for (std::int64_t row = team * share; row < last; ++row) {
      if (chunks.inside(offsets[row + 1]) <= chunks.inside(offsets[row])) own.store_value(State{}, row);
    }
  }

  /// Processes a chunk's rows, which pass through the thread's cache one after the other.
  template <class Writer>
  void do_chunk(std::int64_t c, A* scratch, Writer& writer) const {
    const std::int64_t first = first_row(c);
    const std::int64_t last  = first_row(c + 1);
    const HeadPart head      = HeadPart::of(chunks, offsets, c, first);
    const TailPart tail      = TailPart::of(chunks, offsets, c, last);
    const bool has_tail      = tail.begin < chunks.end(c);
    if (chunks.count > 1) workspace.notes[c] = {head, tail};
    for (std::int64_t number = 0; number < workspace.heads; ++number) {
      const Operation own = op.of_head(number);
      if (chunks.begin(c) < head.end) workspace.begun_in(c, number) = own.reduce_part(chunks.begin(c), head.end);
      if (has_tail) workspace.beginning_in(c, number) = own.reduce_part(tail.begin, chunks.end(c));
      do_rows(own, c, first, last - (has_tail ? 1 : 0), scratch, writer);
    }
  }

  /// Processes rows by runs of neighbours, and longer ones one by one.
  template <class Writer>
  void do_rows(const Operation& own, std::int64_t c, std::int64_t first, std::int64_t last, A* scratch,
               Writer& writer) const {
    const std::int64_t farthest = chunks.inside(chunks.end(c) + chunks.overhang);
    for (std::int64_t row = first; row < last;) {
      const std::int64_t begin = offsets[row];
      if (chunks.begin(c) <= begin) {
        const RowRun run(offsets, row, last, farthest, Operation::most_in_run, Operation::longest_in_run);
        if (run.elements() > 0) own.do_run(run, writer);
        row += run.rows;
        if (run.rows > 0) continue;
        const std::int64_t end = offsets[row + 1];
        if (begin < end && end <= farthest) own.do_row(begin, end, row, scratch, writer);
      }
      ++row;
    }
  }
};

/// Functor of JoinLongRows: a team processes the long row, if there is one, that begins in its chunk.
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
    const std::int64_t last = chunks.of(note.tail.row_end - 1);
    for (std::int64_t head = 0; head < workspace.heads; ++head) {
      State& all  = workspace.beginning_in(c, head);
      State state = all;
      for (std::int64_t part = c + 1; part <= last; ++part) {
        state = merge_two(op.params, state, workspace.begun_in(part, head));
      }
      if constexpr (Operation::one_value_a_row) {
        op.of_head(head).store_value(state, note.tail.row);
      } else {
        all = state;
      }
    }
  }
};

/// Functor of WriteLongRows: a team writes the parts of long rows in its chunk.
template <class Operation>
struct WriteLongRows {
  using State = typename Operation::State;

  Operation op;
  Chunks chunks;
  SegmentedWorkspace<State> workspace;
  bool nontemporal_stores;

  template <class Member>
  void operator()(const Member& team) const {
    const std::int64_t c     = team.league_rank();
    auto writer              = op.writer(nontemporal_stores);
    const std::int64_t begin = chunks.begin(c);
    const std::int64_t end   = chunks.end(c);
    const ChunkNote& note    = workspace.notes[c];
    for (std::int64_t head = 0; head < workspace.heads; ++head) {
      const Operation own = op.of_head(head);
      if (begin < note.head.end)
        own.write_part(begin, note.head.end, workspace.beginning_in(note.head.chunk, head), writer);
      if (note.tail.begin < end) own.write_part(note.tail.begin, end, workspace.beginning_in(c, head), writer);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_SEGMENTED_HPP
