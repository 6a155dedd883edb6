// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_PLANNER_HPP
#define KOKKOSNN_SRC_PLAN_PLANNER_HPP

#include <KokkosNN/impl/compiled_kernels.hpp>
#include <KokkosNN/impl/host/shapes.hpp>
#include <KokkosNN/impl/kernel_shapes.hpp>
#include <KokkosNN/plan.hpp>

#include "policy/policy.hpp"
#include "rounding.hpp"

#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace KokkosNN::Impl {

/// A league has as many teams as an int counts.
inline std::int64_t capped_league(std::int64_t teams) { return std::clamp<std::int64_t>(teams, 1, INT_MAX); }

/// Plans one problem; each strategy has a function that fills a plan in or says why it cannot.
class Planner {
 public:
  Planner(const RowProblem& problem, const DeviceTraits& traits, const SoftmaxOptions& options);

  RowPlan plan();

 private:
  [[noreturn]] void refuse(const std::string& why) const;

  // planner.cpp: rows as kernels and tables know them
  RowForm form() const;
  bool has_kernels_for_edges() const;
  bool asks_for_strided_rows() const;
  bool has_edges() const { return m_plan.form == RowForm::misaligned; }
  int threads_for_edges() const;
  int least_lanes() const { return has_edges() ? threads_for_edges() : 1; }
  bool is_gpu() const { return m_traits.backend != Backend::host; }
  bool is_gradient() const { return KokkosNN::is_gradient(m_problem.op); }
  bool moves_packs() const { return form() != RowForm::strided && !m_is_batch_invariant; }
  std::int64_t rows_that_count() const { return m_is_batch_invariant ? never : m_problem.rows; }
  bool has_few_rows() const { return rows_that_count() < m_traits.multiprocessors; }
  double elements() const { return static_cast<double>(m_problem.rows) * static_cast<double>(m_problem.cols); }
  double moved_bytes() const;
  bool is_large_call() const;
  RowPlan plan_of_strided_rows() const;
  void fill_in();
  void one_row_a_team(int team_size);
  void set_league(int rows_at_once);

  // request.cpp: what the caller asks for
  void validate_request();
  void validate_packs() const;
  void validate_plan() const;

  // choose.cpp
  RowStrategy choose() const;
  RowStrategy choose_on_gpu() const;
  RowStrategy choose_on_host() const;
  bool prefers_inner_lanes() const;
  bool reduces_long_rows() const;

  // kernels.cpp: which of a strategy's kernels runs, and the threads that it is compiled for
  KernelTypes kernel_types() const;
  bool has_staged_kernel() const;
  bool has_second_kernel() const { return splits_twice(m_problem.op, m_plan.form); }
  bool has_online_kernel() const;
  bool has_cluster_kernel() const;
  int max_packs_per_thread() const { return most_packs(m_traits.backend, m_problem.op); }
  bool is_packs_per_thread(int k) const;
  bool is_few_rows_kernel(int k, std::int64_t team_size) const;
  int max_team_size() const;
  int threads_when_looping() const { return most_threads_when_looping(m_problem.op); }
  RowForm counted_form() const { return m_is_batch_invariant ? RowForm::aligned : m_plan.form; }
  int threads_when_holding() const { return most_threads_when_holding(m_traits.backend, m_problem.op, counted_form()); }
  void runs_by(RowKernel kernel, int max_threads);
  void runs_rows_in_registers();
  void runs_rows_of_team(int max_threads);
  void runs_parts_of_rows();
  void runs_inner_rows();
  int threads_in_lanes() const {
    return most_threads_in_lanes(m_problem.accumulator_bytes, m_pack, m_plan.packs_per_thread);
  }
  bool runs_in_lanes_in_one_turn() const;

  // registers.cpp
  void vector_lanes();
  void vector_lanes_by_scratch();
  void team_registers();
  const RegisterEntry* register_entry() const;
  int held_packs() const;
  int packs_of_few_rows() const;
  int packs_of_lanes() const;
  int fitting_packs(int k) const;
  std::int64_t needed_lanes(int k) const;
  void require_capacity(std::int64_t lanes) const;
  bool goes_through_scratch() const;

  // scratch.cpp
  void team_scratch();
  void refuse_to_keep() const;
  int host_threads_a_row() const;
  std::size_t kept_row_bytes() const;
  std::size_t scratch_limit(int level) const;
  std::size_t state_bytes() const;
  std::size_t exchange_bytes(int threads) const;
  std::size_t row_scratch_bytes(int threads, std::size_t kept) const;
  void set_scratch(std::size_t bytes);
  int even_team(int k, int most) const;

  // online.cpp
  void team_online();
  int online_team_size() const;
  int reducing_team_size() const;

  // split.cpp
  void split_row();
  void split_by_two_kernels();
  void split_over_resident_teams();
  std::int64_t teams_that_hold(int team_size) const;
  std::int64_t teams_that_hold() const { return teams_that_hold(m_plan.team_size); }
  int split_team_size() const;
  bool takes_many_small_teams() const;
  bool leaves_fewer_idle(int fewer, int threads) const;
  bool is_read_twice_from_cache() const;
  std::int64_t most_teams_a_row(int threads) const;
  std::int64_t teams_in_one_wave() const;
  std::int64_t resident_teams(int compiled_for) const;

  // cluster.cpp
  void row_in_cluster();
  bool prefers_clusters() const;
  std::int64_t teams_of_cluster() const;
  std::size_t staged_bytes() const;

  // inner.cpp
  void inner_lanes();
  void gpu_inner_lanes(bool keeps);
  void host_inner_lanes();
  int host_inner_width() const;
  std::int64_t host_inner_kept(int width_bytes) const;
  std::size_t inner_scratch(int team_size) const;
  int inner_most_threads(bool keeps) const;
  int inner_max_team_size() const;
  int inner_pack(bool keeps) const;
  int inner_packs(bool keeps) const;
  std::int64_t inner_teams(int lanes) const;
  bool finds_lanes_that_keep();
  bool finds_lanes_that_keep(int team_size);
  int inner_lanes_that_loop() const;
  int inner_looping_team_size() const;

  // cache.cpp: what the last-level cache is told
  bool tells_when_to_evict() const;
  Eviction eviction() const;
  bool is_by_itself() const;
  bool prefetches_rows() const;
  bool gains_by_prefetch() const;
  bool prefetches_anyhow() const;
  bool chooses_prefetch() const;
  bool asks_anyhow() const;
  bool leaves_packs_empty() const;
  std::int64_t threads_by_rule() const;
  void prefetch_later_rows();
  bool uses_nontemporal_stores() const;
  std::int64_t least_nontemporal_row_bytes() const;

  template <class T>
  const T& policy(std::span<const Keyed<T>> BackendPolicy::* table) const {
    return look_up(m_policy.*table, m_key);
  }
  const RegisterPolicy& registers() const { return policy(&BackendPolicy::registers); }
  const StagedPolicy& staged() const { return policy(&BackendPolicy::staged); }
  const ScratchPolicy& scratch() const { return policy(&BackendPolicy::scratch); }
  const OnlinePolicy& online() const { return policy(&BackendPolicy::online); }
  const ReductionPolicy& reduction() const { return policy(&BackendPolicy::reductions); }
  const SplitPolicy& split() const { return policy(&BackendPolicy::split); }
  const SplitChoice& split_choice() const { return policy(&BackendPolicy::split_choice); }
  const ClusterPolicy& clusters() const { return policy(&BackendPolicy::clusters); }
  const InnerPolicy& inner() const { return policy(&BackendPolicy::inner); }
  const PrefetchPolicy& prefetch() const { return policy(&BackendPolicy::prefetch); }
  const HostPolicy& host() const { return policy(&BackendPolicy::host); }

  const RowProblem& m_problem;
  const DeviceTraits& m_traits;
  const SoftmaxOptions& m_options;
  const PlanRequest& m_request;
  const BackendPolicy& m_policy;
  bool m_is_batch_invariant;
  int m_pack;
  std::int64_t m_packs;
  RowsKey m_key;
  RowPlan m_plan;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_PLANNER_HPP
