// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "planner.hpp"

#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/tuning.hpp>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>

namespace KokkosNN {
namespace Impl {

Planner::Planner(const RowProblem& problem, const DeviceTraits& traits, const SoftmaxOptions& options)
    : m_problem(problem),
      m_traits(traits),
      m_options(options),
      m_request(options.plan),
      m_policy(policy_of(traits.backend)),
      m_is_batch_invariant(options.determinism == Determinism::batch_invariant),
      m_pack(pack_size(traits.backend, problem.x_bytes, problem.y_bytes, problem.accumulator_bytes)) {
  m_key          = {problem.op, m_pack, moves_packs()};
  m_plan.op      = problem.op;
  m_plan.x_type  = problem.x_type;
  m_plan.y_type  = problem.y_type;
  m_plan.dy_type = problem.dy_type;
  m_plan.pack    = m_pack;
  m_plan.form    = form();
  m_packs        = std::max<std::int64_t>(1, has_edges() ? problem.cols / m_pack : ceil_div(problem.cols, m_pack));
}

RowPlan Planner::plan() {
  validate_request();
  const bool is_forced = m_request.strategy != RowStrategy::automatic;
  m_plan.strategy      = is_forced ? m_request.strategy : choose();
  fill_in();
  if (m_plan.form != RowForm::strided && !has_kernel(m_plan, kernel_types())) return plan_of_strided_rows();
  m_plan.eviction = eviction();
  if (prefetches_rows()) prefetch_later_rows();
  m_plan.nontemporal_stores = uses_nontemporal_stores();
  m_plan.batch_invariant    = m_is_batch_invariant;
  validate_plan();
  return m_plan;
}

/// Strided rows have a kernel of everything that any rows have.
RowPlan Planner::plan_of_strided_rows() const {
  RowProblem strided = m_problem;
  strided.form       = RowForm::strided;
  return Planner(strided, m_traits, m_options).plan();
}

void Planner::fill_in() {
  switch (m_plan.strategy) {
    case RowStrategy::vector_lanes:
      vector_lanes();
      break;
    case RowStrategy::team_registers:
      team_registers();
      break;
    case RowStrategy::team_scratch:
      team_scratch();
      break;
    case RowStrategy::team_online:
      team_online();
      break;
    case RowStrategy::split_row:
      split_row();
      break;
    case RowStrategy::row_in_cluster:
      row_in_cluster();
      break;
    case RowStrategy::inner_lanes:
      inner_lanes();
      break;
    case RowStrategy::automatic:
      refuse("there is no such strategy");
  }
}

void Planner::refuse(const std::string& why) const {
  std::ostringstream text;
  text << "KokkosNN::" << to_string(m_problem.op) << ": " << to_string(m_plan.strategy) << " cannot serve "
       << m_problem.rows << " rows of " << m_problem.cols << " " << to_string(m_problem.x_type) << ": " << why;
  throw std::invalid_argument(text.str());
}

/// The kernels for contiguous rows are a GPU's: a host's loops take any row.
RowForm Planner::form() const {
  if (!is_gpu() || m_problem.form == RowForm::strided || asks_for_strided_rows()) return RowForm::strided;
  if (m_problem.form == RowForm::aligned && m_problem.cols % m_pack == 0) return RowForm::aligned;
  return has_kernels_for_edges() ? RowForm::misaligned : RowForm::strided;
}

/// True if the caller asks for kernels that only strided rows have.
bool Planner::asks_for_strided_rows() const {
  return m_request.strategy == RowStrategy::team_scratch &&
         !has_scratch_kernel(m_traits.backend, m_problem.op, RowForm::aligned);
}

/// True if rows between pack boundaries have the kernels that they need. Packs that begin at other columns in every
/// row, or leave an edge to single threads, add up in another order, so not with batch invariance. No mask has a kernel
/// for edges.
bool Planner::has_kernels_for_edges() const {
  const bool too_few_lanes  = m_request.threads_per_row != 0 && m_request.threads_per_row < threads_for_edges();
  const bool has_edge_forms = has_edge_kernels(m_traits.backend, m_problem.op, m_problem.x_bytes);
  if (!has_edge_forms || m_is_batch_invariant || too_few_lanes || m_request.launches == 2) return false;
  if (!has_few_kernels(kernel_types(), RowForm::misaligned)) return true;
  const int k          = m_request.packs_per_thread;
  const bool has_packs = k == 0 || is_packs_along_axes(m_traits.backend, k, m_problem.op);
  const bool is_held   = m_request.strategy == RowStrategy::automatic || is_in_registers(m_request.strategy);
  return has_packs && is_held && m_problem.cols / m_pack <= most_packs_along_axes;
}

/// Threads that a row with edges must have: one for each of their elements.
int Planner::threads_for_edges() const { return static_cast<int>(std::bit_ceil(unsigned(2 * m_pack - 2))); }

double Planner::moved_bytes() const {
  const int read    = row_tensors(m_problem.op) * m_problem.x_bytes;
  const int written = written_tensors(m_problem.op) * m_problem.y_bytes;
  return elements() * (read + written);
}

/// True if a call moves much more than a cache holds; with batch invariance all do.
bool Planner::is_large_call() const {
  return m_is_batch_invariant || moved_bytes() > registers().large_caches * static_cast<double>(m_traits.cache);
}

void Planner::one_row_a_team(int team_size) {
  m_plan.team_size       = team_size;
  m_plan.threads_per_row = team_size;
  set_league(1);
}

/// Rows to teams: `rows_at_once` at a time, on a host several times that, of which all threads must get some.
void Planner::set_league(int rows_at_once) {
  const std::int64_t elements = std::max<std::int64_t>(1, m_problem.cols * rows_at_once);
  const std::int64_t turns    = is_gpu() ? 1 : std::max<std::int64_t>(1, host().elements_per_turn / elements);
  const std::int64_t shares   = std::int64_t(host().turns_a_thread) * m_traits.multiprocessors;
  const std::int64_t fair     = std::max<std::int64_t>(1, m_problem.rows / shares / rows_at_once);
  m_plan.rows_per_team        = static_cast<int>(rows_at_once * std::min(turns, fair));
  m_plan.league_size          = capped_league(ceil_div(m_problem.rows, m_plan.rows_per_team));
}

namespace {

/// Plan that was measured for a problem on this machine, where the caller leaves all to the planner. Not with batch
/// invariance: an entry is for many rows.
const TuningEntry* tuned(const RowProblem& problem, const DeviceTraits& traits, const SoftmaxOptions& options) {
  const bool is_free = options.plan == PlanRequest{} && options.determinism != Determinism::batch_invariant;
  return is_free && traits.tuning != nullptr ? traits.tuning->find(problem) : nullptr;
}

std::optional<RowPlan> tuned_plan(const RowProblem& problem, const DeviceTraits& traits,
                                  const SoftmaxOptions& options) {
  if (const TuningEntry* entry = tuned(problem, traits, options)) {
    SoftmaxOptions with_entry = options;
    with_entry.plan           = entry->plan;
    try {
      return Planner(problem, traits, with_entry).plan();
    } catch (const std::invalid_argument&) {  // it serves most rows of the entry's lengths, but not these
    }
  }
  return std::nullopt;
}

/// Why a policy chose a strategy, in the words of choose.cpp.
const char* reason_of(RowStrategy strategy) {
  switch (strategy) {
    case RowStrategy::vector_lanes:
      return "few lanes hold a row";
    case RowStrategy::team_registers:
      return "a team's registers hold a row";
    case RowStrategy::team_scratch:
      return "the cache holds a row";
    case RowStrategy::team_online:
      return "nothing holds a row, or nothing has to";
    case RowStrategy::split_row:
      return "few rows, or longer ones than a team holds";
    case RowStrategy::row_in_cluster:
      return "a cluster of teams holds a row";
    case RowStrategy::inner_lanes:
      return "neighbouring rows are neighbours in memory";
    case RowStrategy::automatic:
      break;
  }
  return "unknown strategy";
}

}  // namespace

std::string reason_of_plan(const RowProblem& problem, const DeviceTraits& traits, const SoftmaxOptions& options) {
  if (options.plan.strategy != RowStrategy::automatic) return "asked for by options.plan";
  if (tuned_plan(problem, traits, options)) return "tuned: measured on this device";
  return std::string("policy: ") + reason_of(make_plan(problem, traits, options).strategy);
}

}  // namespace Impl

RowPlan make_plan(const RowProblem& problem, const DeviceTraits& traits, const SoftmaxOptions& options) {
  if (const auto plan = Impl::tuned_plan(problem, traits, options)) return *plan;
  return Impl::Planner(problem, traits, options).plan();
}

}  // namespace KokkosNN
