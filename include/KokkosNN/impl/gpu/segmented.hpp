// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_SEGMENTED_HPP
#define KOKKOSNN_IMPL_GPU_SEGMENTED_HPP

#include <KokkosNN/impl/inputs/row_offsets.hpp>
#include <KokkosNN/impl/tuned_shapes.hpp>
#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/segmented_rows.hpp>
#include <KokkosNN/impl/inputs/segments.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>

// Kernels of ragged rows on a GPU. Three run one after the other; the second and third have work only if there are long
// rows:
//
//   ShortRows   some lanes of a warp process a row from memory; a row that they do not hold takes the whole warp, and a
//               row much longer than a warp holds goes on a list, in parts if it needs more than one team
//   FlatRows    instead of ShortRows, for rows of a middling mean length: a warp processes as many neighbouring rows as
//               it holds, 1024 elements, each lane an equal number of elements, wherever rows begin, all relative to
//               one reference; if none suits all of them, ShortRows' way
//   LongRows    finishes the rows on the list that one team holds, and leaves the states of the parts of others
//   LongParts   joins a row's states, reads the parts again, and writes them
//
// A row's index in the list depends on the order in which warps append; no result does. No code on the host knows a
// length or waits for one. Where GPUs can, teams of short rows prefetch the rows of later teams (`RowsAhead`).
//
// Rows of several heads are numbered one after the other, and dealt to lanes, warps and teams as if they were of one
// head, such that neighbouring lanes have neighbours in memory. OneHead, HeadsApart and Heads map numbers to rows.

namespace KokkosNN::Impl {

/// Row of one of the heads, as it was looked up.
struct FoundRow {
  std::int64_t begin;
  std::int64_t end;
  std::int64_t row;
  std::int64_t head;
};

/// Remaining range of neighbouring rows of a warp.
struct FlatShare {
  std::int64_t first;
  int rows;
};

/// Rows of one head.
struct OneHead {
  static constexpr int side_by_side = 1;

  RowOffsets offsets;
  std::int64_t elements;
  std::int64_t rows;

  KOKKOS_INLINE_FUNCTION std::int64_t count() const { return rows; }

  /// Finds the row of a number; an empty row if there is none.
  template <bool are_dense>
  KOKKOS_INLINE_FUNCTION FoundRow find(std::int64_t number, bool has_row) const {
    const auto of_row = offsets.of_row<are_dense>(number, has_row);
    return {offset_inside(of_row.first, elements), offset_inside(of_row.second, elements), number, 0};
  }

  /// Prefetches the offsets of `wanted` rows.
  KOKKOS_INLINE_FUNCTION void prefetch(std::int64_t number, int wanted) const {
    prefetch_bytes(static_cast<const char*>(offsets.data) + number * offsets.bytes, wanted * offsets.bytes);
  }

  using Share = FlatShare;

  /// Range number `number` of at most `most` rows; empty behind the last row.
  KOKKOS_INLINE_FUNCTION Share share(std::int64_t number, int most) const { return share_from(number * most, most); }
  /// Range that lies `shares` ranges behind one that is used up.
  KOKKOS_INLINE_FUNCTION Share share_behind(const Share& done, std::int64_t shares, int most) const {
    return share_from(done.first + (shares - 1) * most, most);
  }
  KOKKOS_INLINE_FUNCTION Share rest(const Share& share, int taken) const {
    return {share.first + taken, share.rows - taken};
  }
  /// Offset of row number k of a range; behind its last row, that row's end.
  KOKKOS_INLINE_FUNCTION std::int64_t offset(const Share& share, int k) const { return offsets[share.first + k]; }

 private:
  KOKKOS_INLINE_FUNCTION Share share_from(std::int64_t first, int most) const {
    const std::int64_t left = rows - first;
    return {first, left < most ? (left < 0 ? 0 : static_cast<int>(left)) : most};
  }
};

/// Rows of several heads that are contiguous in memory, one head behind the other: one long vector, in which a row's
/// elements lie `head` times `head_stride` behind its offsets.
struct HeadsApart {
  static constexpr int side_by_side = 1;

  RowOffsets offsets;
  std::int64_t elements;  ///< of the vector
  Divisor rows;           ///< rows of a head
  std::int64_t heads;
  std::int64_t head_elements;
  std::int64_t head_stride;
  Divisor shares;  ///< ranges of a head

  KOKKOS_INLINE_FUNCTION std::int64_t count() const { return rows.value * heads; }

  template <bool are_dense>
  KOKKOS_INLINE_FUNCTION FoundRow find(std::int64_t number, bool has_row) const {
    const std::int64_t head = rows.quotient(number);
    const auto of_row       = offsets.of_row<are_dense>(number - head * rows.value, has_row);
    return {head * head_stride + offset_inside(of_row.first, head_elements),
            head * head_stride + offset_inside(of_row.second, head_elements), number, 0};
  }

  KOKKOS_INLINE_FUNCTION void prefetch(std::int64_t number, int wanted) const {
    const std::int64_t row = number - rows.quotient(number) * rows.value;
    if (row + wanted > rows.value) return;
    prefetch_bytes(static_cast<const char*>(offsets.data) + row * offsets.bytes, wanted * offsets.bytes);
  }

  struct Share : FlatShare {
    std::int64_t number;
    std::int64_t head;
  };

  KOKKOS_INLINE_FUNCTION Share share(std::int64_t number, int most) const {
    const std::int64_t head = shares.quotient(number);
    const std::int64_t row  = (number - head * shares.value) * most;
    const std::int64_t left = head < heads ? rows.value - row : 0;
    return {{head * rows.value + row, left < most ? static_cast<int>(left) : most}, number, head};
  }
  KOKKOS_INLINE_FUNCTION Share share_behind(const Share& done, std::int64_t by, int most) const {
    return share(done.number + by, most);
  }
  KOKKOS_INLINE_FUNCTION Share rest(const Share& share, int taken) const {
    return {{share.first + taken, share.rows - taken}, share.number, share.head};
  }
  KOKKOS_INLINE_FUNCTION std::int64_t offset(const Share& share, int k) const {
    return share.head * head_stride + offset_inside(offsets[share.first - share.head * rows.value + k], head_elements);
  }
};

/// Rows of any number of heads at any strides; or of `known` heads that lie side by side, whose rows are numbered side
/// by side too, so that neighbouring lanes load neighbours.
template <int known>
struct Heads {
  static constexpr int side_by_side = known > 0 ? known : 1;

  RowOffsets offsets;
  std::int64_t elements;  ///< elements of a head
  std::int64_t all_rows;  ///< rows of all heads
  Divisor inner;          ///< heads, or rows of a head
  bool are_heads_inner;   ///< a number's head runs faster than its row

  KOKKOS_INLINE_FUNCTION std::int64_t count() const { return all_rows; }

  template <bool are_dense>
  KOKKOS_INLINE_FUNCTION FoundRow find(std::int64_t number, bool has_row) const {
    const auto [row, head] = split(number);
    const auto of_row      = offsets.of_row<are_dense>(row, has_row);
    return {offset_inside(of_row.first, elements), offset_inside(of_row.second, elements), row, head};
  }

  KOKKOS_INLINE_FUNCTION void prefetch(std::int64_t number, int wanted) const {
    prefetch_bytes(static_cast<const char*>(offsets.data) + number / side_by_side * offsets.bytes,
                   wanted / side_by_side * offsets.bytes);
  }

 private:
  KOKKOS_INLINE_FUNCTION Kokkos::pair<std::int64_t, std::int64_t> split(std::int64_t number) const {
    if constexpr (known > 0) {
      const auto row = static_cast<std::int64_t>(static_cast<std::uint64_t>(number) / known);
      return {row, number - row * known};
    }
    const std::int64_t outer = inner.quotient(number);
    const std::int64_t rest  = number - outer * inner.value;
    return {are_heads_inner ? outer : rest, are_heads_inner ? rest : outer};
  }
};

/// Returns the operation on one of its heads. HeadsApart or one head need none: a row's begin includes the head.
template <class Operation>
KOKKOS_INLINE_FUNCTION decltype(auto) of_head(const Operation& op, [[maybe_unused]] std::int64_t head) {
  if constexpr (Operation::has_neighbours) {
    return (op);
  } else {
    return op.of_head(head);
  }
}

/// Entry of the list: a part of a row, or all of it.
struct LongPart {
  std::int64_t row;
  std::int64_t head;  ///< only if the operation has `of_head`
  std::int64_t begin;
  std::int64_t end;
  std::int64_t first;  ///< entry of the row's first part
  std::int64_t parts;  ///< number of the row's parts
};

/// List of long rows, and data that the kernels leave for each other.
template <class State>
struct LongRowList {
  std::int64_t* found;    ///< number of entries; 0 between calls
  std::int64_t* entries;  ///< copy of `found` for the last kernel, while `found` becomes 0
  LongPart* parts;
  State* states;  ///< states of the parts
  std::int64_t capacity;

  /// Number of entries: rows of more than `least` elements are at most as many as fit into the values, and each further
  /// part of a row holds more.
  static constexpr std::int64_t capacity_for(std::int64_t elements, int least) { return elements / least + 1; }
  static constexpr std::size_t bytes(std::int64_t capacity) {
    return 16 + static_cast<std::size_t>(capacity) * (sizeof(LongPart) + sizeof(State));
  }
  static LongRowList in(std::int64_t* found, char* memory, std::int64_t capacity) {
    auto* const states = reinterpret_cast<State*>(memory + 16);
    return {found, reinterpret_cast<std::int64_t*>(memory), reinterpret_cast<LongPart*>(states + capacity), states,
            capacity};
  }

  KOKKOS_INLINE_FUNCTION std::int64_t within(std::int64_t entry) const { return entry < capacity ? entry : capacity; }

  /// Appends a row to the list, in parts of whole tiles. Offsets that make rows overlap could need more room than there
  /// is.
  template <bool has_heads>
  KOKKOS_INLINE_FUNCTION void add(const FoundRow& row, std::int64_t tile) const {
    const std::int64_t begin = row.begin;
    const std::int64_t end   = row.end;
    const std::int64_t tiles = (end - begin + tile - 1) / tile;
    const std::int64_t part  = (tiles + most_parts_of_row - 1) / most_parts_of_row * tile;
    const std::int64_t count = (end - begin + part - 1) / part;
    const std::int64_t first = Kokkos::atomic_fetch_add(found, count);
    const std::int64_t last  = within(first + count);
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t from = begin + (i - first) * part;
      LongPart& entry         = parts[i];
      if constexpr (has_heads) entry.head = row.head;  // one word less, or kernels without heads spill
      entry.row   = row.row;
      entry.begin = from;
      entry.end   = from + part < end ? from + part : end;
      entry.first = first;
      entry.parts = count;
    }
  }
};

/// Merge of a row's state within a warp.
struct WarpJoin {
  int lanes;
  template <class Params, class State>
  KOKKOS_INLINE_FUNCTION State operator()(const Params& params, const State& mine) const {
    return merge_warp(params, mine, lanes);
  }
};

/// Merge of a row's state within a team.
template <class Member>
struct TeamJoin {
  const Member& team;
  RowGroup group;
  mutable int round = 0;

  KOKKOS_INLINE_FUNCTION explicit TeamJoin(const Member& member)
      : team(member), group{member.team_rank(), member.team_size(), 0} {}

  /// Merges states relative to a reference that is equal within a warp.
  template <class Params, class State>
  KOKKOS_INLINE_FUNCTION State operator()(const Params& params, const State& mine) const {
    return exchange(params, team, group, static_cast<State*>(nullptr), round++,
                    merge_warp(params, mine, group.lanes()));
  }
  /// Merges any states.
  template <class Params, class State>
  KOKKOS_INLINE_FUNCTION State of_any(const Params& params, const State& mine) const {
    return exchange(params, team, group, static_cast<State*>(nullptr), round++,
                    merge_lanes(params, mine, group.lanes()));
  }
};

/// Rows that a team prefetches for a later team.
struct RowsAhead {
  std::int64_t rows     = 0;  ///< distance from its own first row; 0: no prefetching
  std::int64_t elements = 0;  ///< elements of that number of rows in the mean
  int count             = 0;  ///< number of elements to prefetch
};

template <class Operation, int row_lanes, class Rows>
struct ShortRows {
  using State = typename Operation::State;
  template <int threads>
  using Shared = typename Operation::template Shared<threads>;

  Operation op;
  Rows rows;
  LongRowList<State> list;
  RowsAhead ahead = {};

  KOKKOS_INLINE_FUNCTION static constexpr int rows_of_team() { return segment_team_size / row_lanes; }
  /// True if lanes hold at most half as many elements again as they need. With longer rows of many lengths the code for
  /// that takes longer to fetch than it saves.
  ///   f32, 131072 rows of 200 in the mean | 86.5 us | with fine shares 93.1
  static constexpr bool has_fine_shares = row_lanes < segment_row_lanes(Operation::max_packs);

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t turn = team.league_rank(); turn * rows_of_team() < rows.count(); turn += team.league_size()) {
      const int rank = opaque(team.team_rank());  // opaque, or nvcc keeps values that depend on it, and spills
      do_rows(turn * rows_of_team() + rank / row_lanes, rows.count(), rank & (warp_width() - 1),
              [&](std::int64_t begin) {
                if constexpr (Operation::known_stride != 0) {
                  if (rank == 0 && ahead.rows > 0) ask_ahead(turn * rows_of_team(), begin);
                }
              });
    }
  }

  /// Processes this lane's row, if it is before `last`, with all lanes of the warp; then, one by one, the rows of the
  /// warp that take all lanes. Calls ask(begin of the row) once that is known.
  template <class Ask>
  KOKKOS_INLINE_FUNCTION void do_rows(std::int64_t number, std::int64_t last, int lane, const Ask& ask) const {
    constexpr int warp_takes = warp_tiles * Operation::lane_elements * warp_width();
    const int rank           = lane & (row_lanes - 1);
    const bool has_row       = number < last;  // compared by index, as branches here cost registers
    FoundRow row             = rows.template find<Operation::known_stride != 0>(has_row ? number : last, has_row);
    ask(row.begin);
    if (row.end < row.begin) row.end = row.begin;
    const bool is_long = row.end - row.begin > warp_takes;
    if (count_lanes(is_long) > 0 && is_long && rank == 0) {  // with the vote nvcc spills less
      list.template add<!Operation::has_neighbours>(row, Operation::lane_elements * segment_team_size);
    }
    const int count    = is_long ? 0 : static_cast<int>(row.end - row.begin);
    const bool is_held = count <= Operation::lane_elements * row_lanes;
    const bool is_mine = has_row && !is_long && is_held;
    if (count_lanes(is_mine) > 0) {
      do_share<4, row_lanes>({row.begin, is_mine ? count : 0, rank}, is_mine ? row.row : -1, row.head);
    }
    if (count_lanes(!is_held) == 0) return;
    constexpr int heads = Rows::side_by_side;
    KOKKOSNN_IMPL_NO_UNROLL
    for (int leader = 0; leader < warp_width(); leader += heads * row_lanes) {
      const int wanted = shuffle_from(is_held ? 0 : count, leader);
      if (wanted == 0) continue;
      const std::int64_t head = Operation::has_neighbours || heads > 1 ? 0 : shuffle_from(row.head, leader);
      do_by_warp<heads>(shuffle_from(row.begin, leader), wanted, shuffle_from(row.row, leader), head, lane);
    }
  }

 private:
  /// Processes the row of all heads that lie side by side, `at_once` of them at the same time: fewer, with more lanes
  /// each, if the lanes then hold the row.
  template <int at_once>
  KOKKOS_INLINE_FUNCTION void do_by_warp(std::int64_t begin, int count, std::int64_t row, std::int64_t head,
                                         int lane) const {
    constexpr int lanes = warp_width() / at_once > 0 ? warp_width() / at_once : 1;
    constexpr int held  = Operation::lane_elements * lanes;
    if constexpr (at_once > 1) {
      if (count > held && count <= Operation::lane_elements * warp_width()) {
        return do_by_warp<at_once / 2>(begin, count, row, head, lane);
      }
    }
    const int rank = lane & (lanes - 1);
    KOKKOSNN_IMPL_NO_UNROLL
    for (int first = 0; first < Rows::side_by_side; first += at_once) {
      const std::int64_t own = head + first + lane / lanes;
      if (count <= held) {
        do_share<4, lanes>({begin, count, rank}, row, own);
      } else {
        do_tiles<lanes>(begin, begin + count, row, own, rank);
      }
    }
  }

  /// Processes a row that lanes do not hold, tile by tile.
  template <int lanes>
  KOKKOS_INLINE_FUNCTION void do_tiles(std::int64_t begin, std::int64_t end, std::int64_t row, std::int64_t head,
                                       int rank) const {
    const auto& own  = of_head(op, head);
    const State mine = own.template reduce_shared<lanes>(begin, end, rank);
    const State all  = merge_lanes(op.params, mine, lanes);
    if constexpr (Operation::one_value_a_row) {
      if (rank == 0) own.store_value(all, row);
    } else {
      own.template write_shared<lanes>(begin, end, all, rank);
    }
  }

  /// Processes a row that lanes hold. The lanes of a warp run in step, so they hold about as many elements as the
  /// longest of their rows needs.
  template <int held, int threads>
  KOKKOS_INLINE_FUNCTION void do_share(const Shared<threads>& share, std::int64_t row, std::int64_t head) const {
    if constexpr (held < Operation::lane_elements) {
      constexpr int next = has_fine_shares ? next_share(held) : 2 * held;
      if (count_lanes(share.count > held * threads) > 0) return do_share<next, threads>(share, row, head);
    }
    of_head(op, head).template share_row<held, threads>(share, row, WarpJoin{threads});
  }

  /// Prefetches for the team whose rows begin with number `first`, at element `begin`. Heads side by side are one range
  /// of memory.
  KOKKOS_INLINE_FUNCTION void ask_ahead(std::int64_t first, std::int64_t begin) const {
    if (first + ahead.rows + rows_of_team() > rows.count()) return;
    rows.prefetch(first + ahead.rows, rows_of_team());
    const std::int64_t wanted = begin * Rows::side_by_side + ahead.elements;
    if (wanted + ahead.count <= rows.elements * Rows::side_by_side) op.prefetch(wanted, ahead.count);
  }
};

/// Functor of FlatRows: a warp processes windows of neighbouring rows, one after the other, range after range. While it
/// computes one window it reads the offsets of the next and prefetches its elements. A row's result depends on the rows
/// that share its window, so on the input alone.
template <class Operation, int row_lanes, class Rows>
struct FlatRows {
  using Flat = typename Operation::Flat;
  using X    = typename Operation::input_type;

  using Share = typename Rows::Share;

  ShortRows<Operation, row_lanes, Rows> by_row;
  int rows_of_warp;
  LinePolicy results;  ///< eviction hint of results

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const int warps  = flat_team_size / warp_width();
    const int lane   = team.team_rank() % warp_width();
    Flat& shared     = *warp_shared<Flat, flat_team_size>();
    const Rows& rows = by_row.rows;
    Share share      = rows.share(std::int64_t(team.league_rank()) * warps + team_warp(), rows_of_warp);
    if (share.rows <= 0) return;
    std::int64_t offset = offset_of(share, lane);
    KOKKOSNN_IMPL_NO_UNROLL
    while (share.rows > 0) {
      const FlatRow row = window_of(offset, share.rows, lane);
      const int taken   = row.rows > 0 ? row.rows : 1;
      Share next        = rows.rest(share, taken);
      if (next.rows == 0) next = rows.share_behind(next, std::int64_t(team.league_size()) * warps, rows_of_warp);
      if (next.rows > 0) offset = offset_of(next, lane);
      const auto ask = [&] {
        if (next.rows > 0) prefetch(offset, lane);
      };
      if (row.rows == 0 || !is_done_flat(shared, row, share.first, ask)) do_rows(share.first, taken, lane);
      share = next;
    }
  }

 private:
  /// Offset of this lane's row in the window that begins a range.
  KOKKOS_INLINE_FUNCTION std::int64_t offset_of(const Share& share, int lane) const {
    return by_row.rows.offset(share, lane < share.rows ? lane : share.rows);
  }

  /// Window of at most `rows` rows, as many as a warp holds; empty if the first row is too long.
  KOKKOS_INLINE_FUNCTION FlatRow window_of(std::int64_t raw_offset, int rows, int lane) const {
    const int last            = rows < warp_width() ? rows : warp_width() - 1;
    const std::int64_t offset = offset_inside(raw_offset, by_row.rows.elements);
    const std::int64_t begin  = shuffle_from(offset, 0);
    const int phase           = pack_phase<X, 16 / sizeof(X)>(by_row.op.x.data + begin);
    // A row that begins before the first one, as with bad offsets, fits no better than one that is too long.
    const std::int64_t ahead = offset - begin;
    const int place          = phase + (ahead < 0 || ahead > Flat::elements ? Flat::elements + 1 : int(ahead));
    const int next           = shuffle_from(place, lane + 1);
    const int fitting        = first_lane(lanes_that(lane >= last || next < place || next > Flat::elements));
    const int end            = shuffle_from(place, fitting);
    const bool has_row       = lane < fitting;
    // opaque, or nvcc keeps the lane's positions in tiles of all sizes from window to window, and spills.
    return {begin - phase, {phase, end}, fitting, opaque(lane), has_row ? place : end, has_row ? next : end};
  }

  /// Prefetches approximately the window that begins at the first lane's `raw_offset`.
  KOKKOS_INLINE_FUNCTION void prefetch(std::int64_t raw_offset, int lane) const {
    if (lane != 0) return;
    const std::int64_t begin  = offset_inside(raw_offset, by_row.rows.elements);
    const std::int64_t left   = by_row.rows.elements - begin;
    const std::int64_t wanted = left < Flat::elements ? left : Flat::elements;
    if (left > 0) prefetch_bytes(by_row.op.x.data + begin, static_cast<int>(wanted * sizeof(X)));
  }

  template <class Ask>
  KOKKOS_INLINE_FUNCTION bool is_done_flat(Flat& shared, const FlatRow& row, std::int64_t first, const Ask& ask) const {
    sync_lanes();  // lanes may still read the data of the last window
    return with_tile<2>(shared.tile, row.window, [&](const auto& tile) {
      return by_row.op.share_flat(shared, tile, row, row.lane < row.rows ? first + row.lane : -1, results, ask);
    });
  }

  KOKKOS_INLINE_FUNCTION void do_rows(std::int64_t first, int rows, int lane) const {
    constexpr int at_a_time = warp_width() > row_lanes ? warp_width() / row_lanes : 1;
    const std::int64_t last = first + rows;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t row = first; row < last; row += at_a_time) {
      by_row.do_rows(row + lane / row_lanes, last, lane, [](std::int64_t) {});
    }
  }

  /// Calls f(tile) with the smallest tile that holds the window, in steps of two quads a lane.
  template <int Q, class F>
  KOKKOS_INLINE_FUNCTION static bool with_tile(char* memory, const FlatWindow& window, const F& f) {
    if constexpr (Q < most_flat_quads) {
      if (window.end > 4 * Q * warp_width()) return with_tile<Q + 2>(memory, window, f);
    }
    return f(FlatTile<typename Operation::A, Q>{memory});
  }
};

/// Functor of LongRows: a team takes every n-th entry of the list, n being the number of teams.
template <class Operation>
struct LongRows {
  using State = typename Operation::State;

  Operation op;
  LongRowList<State> list;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const TeamJoin<Member> join(team);
    const std::int64_t entries = list.within(*list.found);
    if (team.league_rank() == 0 && join.group.rank == 0) *list.entries = entries;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t i = team.league_rank(); i < entries; i += team.league_size()) {
      const LongPart part = list.parts[i];
      if (part.parts == 1) {
        const int count = static_cast<int>(part.end - part.begin);
        of_head(op, part.head)
            .template share_row<Operation::lane_elements, segment_team_size>({part.begin, count, join.group.rank},
                                                                             part.row, join);
      } else {
        const State state = join.of_any(
            op.params,
            of_head(op, part.head).template reduce_shared<segment_team_size>(part.begin, part.end, join.group.rank));
        if (join.group.rank == 0) list.states[i] = state;
      }
    }
  }
};

template <class Operation>
struct LongParts {
  using State = typename Operation::State;

  Operation op;
  LongRowList<State> list;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const TeamJoin<Member> join(team);
    const std::int64_t entries = *list.entries;
    if (team.league_rank() == 0 && join.group.rank == 0) *list.found = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t i = team.league_rank(); i < entries; i += team.league_size()) {
      const LongPart part = list.parts[i];
      if (part.parts == 1) continue;
      if constexpr (Operation::one_value_a_row) {
        if (part.first != i) continue;
        const State all = row_state(part, join);
        if (join.group.rank == 0) of_head(op, part.head).store_value(all, part.row);
      } else {
        of_head(op, part.head)
            .template write_shared<segment_team_size>(part.begin, part.end, row_state(part, join), join.group.rank);
      }
    }
  }

 private:
  /// State of a row: each thread joins every n-th part's state, then the team joins the threads'.
  template <class Join>
  KOKKOS_INLINE_FUNCTION State row_state(const LongPart& part, const Join& join) const {
    const std::int64_t last = list.within(part.first + part.parts);
    State mine{};
    for (std::int64_t i = part.first + join.group.rank; i < last; i += join.group.size) {
      mine = merge_two(op.params, mine, list.states[i]);
    }
    return join.of_any(op.params, mine);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_SEGMENTED_HPP
