// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_POLICY_HPP
#define KOKKOSNN_SRC_PLAN_POLICY_HPP

#include <KokkosNN/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

// The numbers behind a plan, as data: one table a backend, each entry with the measurement that it comes from.

namespace KokkosNN::Impl {

/// How a row of up to `max_packs` packs is held in registers.
struct RegisterPolicy {
  std::int64_t max_packs;
  int packs_per_thread;
  int team_size;  ///< of teams that hold several rows; a team that holds one is as large as the row needs
  int packs_when_large = 0;  ///< packs_per_thread of a large call; 0: the same

  int packs(bool is_large) const { return is_large && packs_when_large != 0 ? packs_when_large : packs_per_thread; }
};

/// Ascending by max_packs.
using RegisterTable = std::span<const RegisterPolicy>;

/// The table for a width of packs on CUDA: 2, 4 or 8 elements.
inline RegisterTable by_pack(int pack, RegisterTable v2, RegisterTable v4, RegisterTable v8) {
  if (pack <= 2) return v2;
  return pack <= 4 ? v4 : v8;
}

/// When the cache gives up what a call reads that moves up to `max_caches` times as many bytes as the cache holds.
struct EvictionPolicy {
  double max_caches;
  Eviction eviction;
};

/// The entry for a size: the first that reaches up to it, of a table that ascends by `most`; none where all are
/// smaller.
template <class Entry, class Size>
const Entry* entry_for(std::span<const Entry> table, Size Entry::*most, Size size) {
  const auto entry = std::ranges::lower_bound(table, size, {}, most);
  return entry == table.end() ? nullptr : &*entry;
}

struct Policy {
  RegisterTable registers;            ///< for the pack width at hand
  double large_caches;                ///< a call is large that moves more than so many last-level caches
  int few_rows_team_size;             ///< few rows on a GPU take fewer packs a thread, in teams of up to this size
  int few_rows_threads;               ///< a multiprocessor has at most so many in a kernel for few rows
  int staged_row_bytes;               ///< rows of up to so many bytes that begin between packs go through team scratch
  int staged_team_size;               ///< in teams of so many threads,
  int staged_rows_per_byte;           ///< if a multiprocessor has so many for every byte of one
  int scratch_packs_per_thread;       ///< team_scratch: sets the team size
  int scratch_team_size;              ///< up to here
  std::size_t max_scratch_row_bytes;  ///< team_scratch is chosen up to here (scratch itself may allow more)
  std::span<const EvictionPolicy> evictions;        ///< ascending max_caches; what calls read that move more: in turn
  std::span<const EvictionPolicy> inner_evictions;  ///< the same of rows side by side
  std::span<const EvictionPolicy> split_evictions;  ///< and of rows that teams share
  double prefetch_caches;  ///< what lies between a team's rows and those that it asks for, in last-level caches
  double prefetch_last_caches;  ///< what is asked for anyhow is kept to the last up to so many caches
  int prefetch_packs;           ///< small calls ask if a thread has so many packs, large ones if packs are empty, too
  int prefetch_few_packs;       ///< up to so many are too little in flight, and a multiprocessor holds more such threads
  double prefetch_online_caches;  ///< team_online does, where its rows in flight and those asked for take up to so many
  int online_team_size;
  std::int64_t online_long_cols;   ///< rows from here on take the largest team that team_online has
  std::int64_t reduce_min_packs;   ///< log-sum-exps of rows from here on go to team_online, which then reads once
  int reduce_packs_per_thread;     ///< in teams whose threads have at least so many packs
  int reduce_team_size;            ///< but that need not have more threads, or twice as many
  double reduce_fill;              ///< for a last wave that fills so much of the device
  std::int64_t reduce_full_packs;  ///< and those of rows from here on hold as many packs a thread as fit
  int split_team_size;
  int split_small_team_size;    ///< of rows that so few such teams hold: fewer threads are idle behind the last pack,
  int split_small_teams;        ///< but each team more has to be waited for
  int split_small_teams_alone;  ///< the same where nothing is done meanwhile
  int split_many_small_teams;   ///< or up to so many, where no warp can read all status words of larger ones either,
  std::int64_t split_many_rows;  ///< of at least so many rows
  double split_twice_caches;    ///< few rows that no teams hold, of together up to so many last-level caches, are split
                                ///< by two kernels
  std::int64_t loss_edges_max_packs;  ///< a cross entropy's rows with edges go to split_row beyond so many packs
  std::int64_t split_min_cols;  ///< rows shorter than this are not worth an exchange
  std::int64_t split_few_rows_packs;  ///< nor are few rows of up to so many packs on a GPU
  int inner_lanes;                    ///< packs side by side
  int inner_least_lanes;              ///< or down to so many, where a team holds its columns then
  std::int64_t inner_few_columns;     ///< up to so many are held in fewer packs, where there are kernels for that
  int inner_team_size;                ///< of a team that holds its columns,
  int inner_max_team_size;            ///< and where even the fewest lanes need more
  int inner_lanes_looping;            ///< of teams that go through their columns twice,
  int inner_least_lanes_looping;      ///< or down to so many, where there would be too few teams
  int inner_looping_team_size;     ///< of such a team, where there are many
  std::int64_t least_nontemporal_row_bytes;  ///< on a host, of rows in one piece that don't end with a cache line; twice
                                          ///< as many of elements of 16 bits
  std::int64_t least_nontemporal_row_bytes_apart;  ///< and of rows that are not one piece
  std::int64_t elements_per_turn;  ///< a host team takes rows of together at least this many elements at a time
};

Policy policy_cuda(int pack);
Policy policy_hip(int pack);
Policy policy_host(int pack);

// `moves_packs`: threads move whole packs. Where they do not, what is side by side in memory is best moved by many.

/// Changes a backend's policy to what a gradient needs.
void tune_for_gradient(Policy& policy, Backend backend, int pack, RowOperator op, bool moves_packs);

/// Changes CUDA's policy to what a log-softmax that moves packs needs.
void tune_cuda_for_log_softmax(Policy& policy, int pack);

/// Changes CUDA's policy to what rows with a label need.
void tune_cuda_for_label(Policy& policy, int pack, RowOperator op, bool moves_packs);

/// Changes CUDA's policy to what rows under a mask need.
void tune_cuda_for_mask(Policy& policy, int pack, bool moves_packs);

/// Changes it to what a log-sum-exp needs.
void tune_cuda_for_logsumexp(Policy& policy, int pack, bool moves_packs);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_POLICY_HPP
