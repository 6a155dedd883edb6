// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_HPP

#include <KokkosNN/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>

// The numbers behind a plan, as data: a small struct a strategy, and tables of them by the rows that they are for, each
// number with the measurement that it comes from.

namespace KokkosNN::Impl {

// --- tables by the rows that they are for ---

/// Rows as tables tell them apart.
struct RowsKey {
  RowOperator op;
  int pack;          ///< elements that a thread loads at once
  bool moves_packs;  ///< whole packs; where threads do not, what is side by side in memory is best moved by many
  RowStrategy strategy = RowStrategy::automatic;
};

constexpr bool is_any(RowOperator) { return true; }
template <RowOperator... ops>
constexpr bool is_one_of(RowOperator op) {
  return ((op == ops) || ...);
}

enum class Moves { any, packs, elements };

/// Rows that an entry of a table is for; a field that it leaves out is for all.
struct RowsFilter {
  bool (*op)(RowOperator) = is_any;
  int pack                = 0;
  Moves moves             = Moves::any;
  RowStrategy strategy    = RowStrategy::automatic;

  constexpr bool takes(const RowsKey& key) const {
    return op(key.op) && (pack == 0 || pack == key.pack) &&
           (moves == Moves::any || (moves == Moves::packs) == key.moves_packs) &&
           (strategy == RowStrategy::automatic || strategy == key.strategy);
  }
};

template <class T>
struct Keyed {
  RowsFilter rows;
  T value;
};

/// The one look-up: the first entry that takes the rows. The last one of a table takes all.
template <class T>
const T& look_up(std::span<const Keyed<T>> table, const RowsKey& key) {
  const auto found = std::ranges::find_if(table, [&](const Keyed<T>& entry) { return entry.rows.takes(key); });
  if (found == table.end()) throw std::logic_error("KokkosNN: a table of the policy has no entry for some rows");
  return found->value;
}

/// The entry for a size: the first that reaches up to it, of a table that ascends by `most`; none where all are
/// smaller.
template <class Entry, class Size>
const Entry* entry_for(std::span<const Entry> table, Size Entry::* most, Size size) {
  const auto entry = std::ranges::lower_bound(table, size, {}, most);
  return entry == table.end() ? nullptr : &*entry;
}

/// The last entry of a table takes all rows.
template <class T>
constexpr bool takes_all(std::span<const Keyed<T>> table) {
  const RowsFilter& last = table.back().rows;
  return last.op == is_any && last.pack == 0 && last.moves == Moves::any && last.strategy == RowStrategy::automatic;
}

/// Entries ascend by `most`, in all tables.
template <class Entry, class Size>
constexpr bool ascend(std::span<const Keyed<std::span<const Entry>>> tables, Size Entry::* most) {
  return std::ranges::all_of(tables, [&](const auto& table) {
    return std::ranges::adjacent_find(table.value, std::ranges::greater_equal{}, most) == table.value.end();
  });
}

/// a is less than so many percent of b.
constexpr bool is_below(std::int64_t a, int percent, std::int64_t b) { return 100 * a < percent * b; }

inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();  ///< where a limit is not reached

// --- strategies ---

/// How a row of up to `max_packs` packs is held in registers.
struct RegisterEntry {
  std::int64_t max_packs;
  int packs_per_thread;
  int team_size;             ///< of teams that hold several rows; a team that holds one is as large as the row needs
  int packs_when_large = 0;  ///< packs_per_thread of a large call; 0: the same

  int packs(bool is_large) const { return is_large && packs_when_large != 0 ? packs_when_large : packs_per_thread; }
};
/// Ascending by max_packs.
using RegisterTable = std::span<const RegisterEntry>;

/// Rows in registers: vector_lanes, team_registers.
struct RegisterPolicy {
  double large_caches       = 0;   ///< a call is large that moves more than so many last-level caches
  int fewer_packs_percent   = 90;  ///< fewer packs a thread than fit, if so the threads of a team hold so much less
  int few_rows_team_size    = 0;   ///< few rows on a GPU take fewer packs a thread, in teams of up to this size,
  int few_rows_largest_team = 0;   ///< or this one with half of all packs, by the kernel for few rows
  int few_rows_threads      = 0;   ///< a multiprocessor has at most so many threads in that kernel; 0: there is none
};

/// Short rows that begin between packs, through team scratch.
struct StagedPolicy {
  int row_bytes     = 0;  ///< they have up to so many; 0: there is no such kernel
  int team_size     = 0;
  int rows_per_byte = 0;  ///< a multiprocessor has so many for every byte of one
};

struct ScratchPolicy {
  int packs_per_thread      = 1;  ///< sets the team size
  int team_size             = 1;  ///< up to here
  std::size_t max_row_bytes = 0;  ///< it is chosen up to here (scratch itself may allow more)
};

struct OnlinePolicy {
  int team_size          = 1;
  std::int64_t long_cols = never;  ///< rows from here on take the largest team
};

/// Operators that write no rows.
struct ReductionPolicy {
  std::int64_t online_packs = never;  ///< rows from here on go to team_online, which then reads once
  int packs_per_thread      = 1;      ///< in teams whose threads have at least so many packs
  int team_size             = 1;      ///< but that need not have more threads,
  int largest_team          = 1;      ///< or so many
  double fill               = 0;      ///< for a last wave that fills so much of the device
  std::int64_t full_packs   = never;  ///< rows from here on hold as many packs a thread as fit
};

struct SplitPolicy {
  int team_size          = 1;
  int small_team_size    = 0;   ///< of rows that so few such teams hold: fewer threads are idle behind the last pack,
  int small_teams        = 0;   ///< but each team more has to be waited for; where teams hold two rows,
  int small_teams_alone  = 0;   ///< and where nothing is done meanwhile
  int smallest_team      = 0;   ///< or of this size, where they hold two rows and leave markedly fewer threads idle:
  int less_idle_percent  = 97;  ///< less than so much of what small teams have
  int many_small_teams   = 0;   ///< or up to so many small ones, of rows whose larger teams no warp has a lane for,
  std::int64_t many_rows = 0;   ///< of at least so many rows
  double twice_caches    = 0;   ///< rows too long for teams, up to so many last-level caches, take two kernels
  bool teams_loop        = false;  ///< all rows' teams run at once, and loop over more than they hold
};

/// Rows that go to split_row.
struct SplitChoice {
  std::int64_t min_cols        = never;  ///< shorter rows are not worth an exchange
  std::int64_t few_rows_packs  = never;  ///< nor are few rows of up to so many packs on a GPU
  std::int64_t edges_max_packs = never;  ///< rows with edges do beyond so many packs, though a team holds them
};

/// Numbers of packs of a row; none by default.
struct PackRange {
  std::int64_t min = never;
  std::int64_t max = never;

  constexpr bool has(std::int64_t packs) const { return packs >= min && packs <= max; }
};

/// Rows that clusters of teams hold.
struct ClusterPolicy {
  PackRange packs;             ///< of rows that have so many packs
  PackRange packs_with_edges;  ///< or, where they begin between packs, so many;
  int team_size = 256;         ///< of teams so large at most, where a cluster holds a row by them
};

struct InnerPolicy {
  int lanes                = 1;   ///< packs side by side
  int least_lanes          = 1;   ///< or down to so many, where a team holds its columns then
  std::int64_t few_columns = 0;   ///< up to so many are held in fewer packs, where there are kernels for that
  int team_size            = 1;   ///< of a team that holds its columns,
  int max_team_size        = 1;   ///< and where even the fewest lanes need more
  int lanes_looping        = 1;   ///< of teams that go through their columns twice,
  int least_lanes_looping  = 1;   ///< or down to so many, where there would be too few teams:
  int idle_percent         = 90;  ///< less than so many percent of the multiprocessors
  int looping_team_size    = 1;   ///< of such a team, where there are many
};

/// Eviction of a GPU's last-level cache for a call that moves up to `max_caches` times as many bytes as it holds.
struct EvictionEntry {
  double max_caches;
  Eviction eviction;
};
/// Ascending by max_caches; what calls read that move more: in turn.
using EvictionTable = std::span<const EvictionEntry>;

/// Rows that teams ask for before later ones load them.
struct PrefetchPolicy {
  double caches         = 0;   ///< what lies between a team's rows and those that it asks for, in last-level caches
  double kept_caches    = 0;   ///< what is asked for anyhow is kept to the last up to so many caches
  int packs             = 0;   ///< small calls ask if a thread has so many packs, large ones if packs are empty, too
  int few_packs         = 0;   ///< up to so many are too little in flight, and a multiprocessor holds more such threads
  int empty_percent     = 90;  ///< packs are empty where less than so many percent hold something
  int reduction_packs   = 4;   ///< who writes no rows never stops loading with more packs a thread than that
  bool asks_with_few    = false;  ///< small calls ask with few packs a thread, too, and as far ahead as large ones
  bool chooses_in_teams = true;   ///< it was measured for rows that have a team
  double online_caches  = 0;  ///< team_online asks where rows in flight and those asked for take up to so many caches
  int online_tensors    = 2;  ///< that such rows take room of: what is read, and what is written
};

/// Only of a host.
struct HostPolicy {
  std::int64_t elements_per_turn = 1;   ///< a team takes rows of together at least this many elements at a time,
  int turns_a_thread             = 4;   ///< but each thread has so many turns
  int inner_blocks_a_thread      = 8;   ///< from so many blocks of rows side by side on, threads need not have as many
  int inner_cached_calls         = 2;   ///< a call is in caches that hold what so many such calls move
  int inner_least_bytes          = 64;  ///< of accumulators side by side that a thread has at least,
  int inner_memory_bytes         = 1024;         ///< and at most where memory is waited for
  std::int64_t inner_cached_kept_bytes = 0;      ///< kept of a block at most where a call is in caches
  std::int64_t nontemporal_row_bytes   = 0;      ///< results go past the caches from so many bytes a row on, where rows
                                                 ///< are one piece and don't end with a cache line; of 16-bit elements
  int nontemporal_16_bit_factor            = 2;  ///< from so many times as many on
  std::int64_t nontemporal_row_bytes_apart = 0;  ///< and where rows are not one piece
};

// --- backends ---

/// All numbers of a backend, by rows.
struct BackendPolicy {
  std::span<const Keyed<RegisterTable>> register_tables;
  std::span<const Keyed<RegisterPolicy>> registers;
  std::span<const Keyed<StagedPolicy>> staged;
  std::span<const Keyed<ScratchPolicy>> scratch;
  std::span<const Keyed<OnlinePolicy>> online;
  std::span<const Keyed<ReductionPolicy>> reductions;
  std::span<const Keyed<SplitPolicy>> split;
  std::span<const Keyed<SplitChoice>> split_choice;
  std::span<const Keyed<ClusterPolicy>> clusters;
  std::span<const Keyed<InnerPolicy>> inner;
  std::span<const Keyed<EvictionTable>> evictions;
  std::span<const Keyed<PrefetchPolicy>> prefetch;
  std::span<const Keyed<HostPolicy>> host;
};

/// All rows find an entry in each table, as every backend asserts of its own.
constexpr bool is_complete(const BackendPolicy& p) {
  return takes_all(p.register_tables) && takes_all(p.registers) && takes_all(p.staged) && takes_all(p.scratch) &&
         takes_all(p.online) && takes_all(p.reductions) && takes_all(p.split) && takes_all(p.split_choice) &&
         takes_all(p.clusters) && takes_all(p.inner) && takes_all(p.evictions) && takes_all(p.prefetch) &&
         takes_all(p.host) && ascend(p.register_tables, &RegisterEntry::max_packs) &&
         ascend(p.evictions, &EvictionEntry::max_caches);
}

const BackendPolicy& cuda_policy();
const BackendPolicy& hip_policy();
const BackendPolicy& host_policy();

inline const BackendPolicy& policy_of(Backend backend) {
  switch (backend) {
    case Backend::cuda:
      return cuda_policy();
    case Backend::hip:
      return hip_policy();
    case Backend::host:
      break;
  }
  return host_policy();
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_POLICY_HPP
