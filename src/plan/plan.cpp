// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/plan.hpp>

#include <KokkosNN/impl/compiled_kernels.hpp>
#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/tuning.hpp>

#include "policy/policy.hpp"

#include <algorithm>
#include <bit>
#include <climits>
#include <cmath>
#include <cstdint>
#include <span>
#include <sstream>
#include <stdexcept>

namespace KokkosNN {
namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The smallest multiple of b that is at least a, and at least b.
std::int64_t round_up(std::int64_t a, std::int64_t b) { return std::max<std::int64_t>(1, ceil_div(a, b)) * b; }

Impl::Policy policy_for(Backend backend, int pack) {
  switch (backend) {
    case Backend::cuda:
      return Impl::policy_cuda(pack);
    case Backend::hip:
      return Impl::policy_hip(pack);
    case Backend::host:
      break;
  }
  return Impl::policy_host(pack);
}

/// Plans one problem; each strategy has a function that fills a plan in or says why it cannot.
class Planner {
 public:
  Planner(const RowProblem& problem, const DeviceTraits& traits, const SoftmaxOptions& options)
      : m_problem(problem),
        m_traits(traits),
        m_request(options.plan),
        m_is_batch_invariant(options.determinism == Determinism::batch_invariant) {
    m_pack   = Impl::pack_size(traits.backend, problem.x_bytes, problem.y_bytes, problem.accumulator_bytes);
    m_policy = policy_for(traits.backend, m_pack);
    if (is_gradient()) Impl::tune_for_gradient(m_policy, traits.backend, m_pack, problem.op, moves_packs());
    if (traits.backend == Backend::cuda) tune_cuda();
    m_plan.op      = problem.op;
    m_plan.x_type  = problem.x_type;
    m_plan.y_type  = problem.y_type;
    m_plan.dy_type = problem.dy_type;
    m_plan.pack    = m_pack;
    m_plan.form    = form();
    m_packs        = std::max<std::int64_t>(1, has_edges() ? problem.cols / m_pack : ceil_div(problem.cols, m_pack));
  }

  RowPlan plan() {
    validate_request();
    const bool is_forced = m_request.strategy != RowStrategy::automatic;
    m_plan.strategy      = is_forced ? m_request.strategy : choose();
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
      case RowStrategy::inner_lanes:
        inner_lanes();
        break;
      case RowStrategy::automatic:
        refuse("there is no such strategy");
    }
    m_plan.eviction = eviction();
    if (prefetches_rows()) prefetch_later_rows();
    m_plan.nontemporal_stores         = uses_nontemporal_stores();
    m_plan.batch_invariant = m_is_batch_invariant;
    validate_plan();
    return m_plan;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    std::ostringstream text;
    text << "KokkosNN::" << to_string(m_problem.op) << ": " << to_string(m_plan.strategy) << " cannot serve "
         << m_problem.rows << " rows of " << m_problem.cols << " " << to_string(m_problem.x_type) << ": " << why;
    throw std::invalid_argument(text.str());
  }

  /// The kernels for contiguous rows are a GPU's: a host's loops take any row. Packs that begin at other columns in
  /// every row, or leave an edge to single threads, add up in another order, so not with batch invariance. No mask has a
  /// kernel for edges.
  RowForm form() const {
    if (!is_gpu() || m_problem.form == RowForm::strided) return RowForm::strided;
    if (m_problem.form == RowForm::aligned && m_problem.cols % m_pack == 0) return RowForm::aligned;
    const bool too_few_lanes = m_request.threads_per_row != 0 && m_request.threads_per_row < threads_for_edges();
    const bool has_no_edges = is_masked(m_problem.op) || is_norm(m_problem.op);
    return has_no_edges || m_is_batch_invariant || too_few_lanes ? RowForm::strided : RowForm::misaligned;
  }

  bool has_edges() const { return m_plan.form == RowForm::misaligned; }

  /// Threads that a row with edges must have: one for each of their elements.
  int threads_for_edges() const { return static_cast<int>(std::bit_ceil(unsigned(2 * m_pack - 2))); }
  int least_lanes() const { return has_edges() ? threads_for_edges() : 1; }

  bool is_gpu() const { return m_traits.backend != Backend::host; }
  bool is_gradient() const { return KokkosNN::is_gradient(m_problem.op); }
  bool loops_over_inner() const { return is_gradient() || is_norm(m_problem.op); }
  bool has_second_kernel() const {
    return !is_gradient() && !is_cross_entropy(m_problem.op) && !is_norm(m_problem.op);
  }
  int max_packs_per_thread() const { return Impl::most_packs(m_traits.backend, m_problem.op); }

  /// Exact numbers not with batch invariance: a row at another address would have other sums.
  bool is_packs_per_thread(int k) const {
    const RowForm form = m_is_batch_invariant ? RowForm::strided : m_plan.form;
    return Impl::has_register_kernel(m_traits.backend, k, m_problem.op, form, m_problem.x_bytes, m_problem.y_bytes);
  }

  /// The problem's rows as kernels are compiled for them.
  Impl::KernelTypes kernel_types() const {
    return {m_traits.backend,   m_problem.op, m_pack, m_problem.x_bytes, m_problem.y_bytes, m_problem.accumulator_bytes,
            has_staged_kernel()};
  }

  /// Threads that a team of the planned strategy may have: some kernels are compiled for small teams of busy threads.
  int max_team_size() const {
    if (!is_gpu()) return m_traits.max_team_size;
    switch (m_plan.strategy) {
      case RowStrategy::inner_lanes:
        return std::min(loops_over_inner() ? Impl::max_threads_when_wide : Impl::max_threads_per_team,
                        m_traits.max_team_size);
      case RowStrategy::team_online:
        return std::min(threads_when_looping(), m_traits.max_team_size);
      case RowStrategy::split_row:
        return std::min(threads_when_holding(), m_traits.max_team_size);
      case RowStrategy::automatic:
      case RowStrategy::vector_lanes:
      case RowStrategy::team_scratch:
      case RowStrategy::team_registers:
        break;
    }
    return m_traits.max_team_size;
  }

  int threads_when_looping() const { return Impl::most_threads_when_looping(m_problem.op); }

  /// Whether threads move whole packs; with batch invariance rows are planned as if none did, as some of them do not.
  bool moves_packs() const { return form() != RowForm::strided && !m_is_batch_invariant; }

  void tune_cuda() {
    const RowOperator op = m_problem.op;
    if (op == RowOperator::log_softmax && moves_packs()) Impl::tune_cuda_for_log_softmax(m_policy, m_pack);
    if (op == RowOperator::logsumexp) Impl::tune_cuda_for_logsumexp(m_policy, m_pack, moves_packs());
    if (op == RowOperator::masked_softmax) Impl::tune_cuda_for_mask(m_policy, m_pack, moves_packs());
    if (is_cross_entropy(op)) Impl::tune_cuda_for_label(m_policy, m_pack, op, moves_packs());
  }

  /// The form of rows that split_row's teams are counted for: with batch invariance the same for all.
  RowForm counted_form() const { return m_is_batch_invariant ? RowForm::aligned : m_plan.form; }

  int threads_when_holding() const {
    return Impl::most_threads_when_holding(m_traits.backend, m_problem.op, counted_form());
  }

  /// Rows as far as they may matter: with batch invariance always many.
  std::int64_t rows_that_count() const { return m_is_batch_invariant ? INT64_MAX : m_problem.rows; }

  void validate_request() {
    m_plan.strategy = m_request.strategy;
    if (m_request.team_size < 0 || m_request.threads_per_row < 0 || m_request.packs_per_thread < 0 ||
        m_request.teams_per_row < 0 || m_request.launches < 0) {
      refuse("a size in options.plan is negative");
    }
    if (m_request.launches > 2) refuse("launches must be 1 or 2, but is " + std::to_string(m_request.launches));
    if (m_request.team_size > max_team_size()) {
      refuse("team_size " + std::to_string(m_request.team_size) + " is more than the " +
             std::to_string(max_team_size()) + " threads that a team may have");
    }
    if (m_request.team_size % m_traits.warp_size != 0) {
      refuse("team_size " + std::to_string(m_request.team_size) + " is no multiple of the " +
             std::to_string(m_traits.warp_size) + " lanes of a warp");
    }
    const int k = m_request.packs_per_thread;
    if (k != 0 && !is_packs_per_thread(k)) {
      std::string sizes;
      for (int size = 1; size <= 2 * max_packs_per_thread(); ++size) {
        if (is_packs_per_thread(size)) sizes += " " + std::to_string(size);
      }
      refuse("packs_per_thread " + std::to_string(k) + " is none of those that there are:" + sizes);
    }
  }

  /// What was asked for must be what the plan has.
  void validate_plan() {
    const auto require = [&](const char* name, int asked, int planned) {
      if (asked != 0 && asked != planned) {
        refuse(std::string(name) + " " + std::to_string(asked) + " was asked for, and it runs with " +
               std::to_string(planned));
      }
    };
    require("packs_per_thread", m_request.packs_per_thread, m_plan.packs_per_thread);
    require("threads_per_row", m_request.threads_per_row, m_plan.threads_per_row);
    require("team_size", m_request.team_size, m_plan.team_size);
    require("teams_per_row", m_request.teams_per_row, m_plan.teams_per_row);
    require("launches", m_request.launches, m_plan.launches);
    if (!Impl::has_kernel(m_plan, kernel_types())) refuse("no kernel is compiled for " + to_string(m_plan));
  }

  RowStrategy choose() const {
    if (prefers_inner_lanes()) return RowStrategy::inner_lanes;
    return is_gpu() ? choose_on_gpu() : choose_on_host();
  }

  /// Neighbouring rows are neighbours in memory, neighbouring columns are not. Another order of additions than where a
  /// row lies alone, so not with batch invariance.
  bool prefers_inner_lanes() const {
    return !m_is_batch_invariant && !is_masked(m_problem.op) && m_problem.x_col_stride != 1 &&
           m_problem.inner_contiguous && m_problem.inner > 1;
  }

  RowStrategy choose_on_gpu() const {
    if (has_few_rows() && m_packs > m_policy.split_few_rows_packs) return RowStrategy::split_row;
    if (reduces_long_rows()) return RowStrategy::team_online;
    if (register_entry() == nullptr)
      return m_problem.cols >= m_policy.split_min_cols ? RowStrategy::split_row : RowStrategy::team_online;
    const bool has_loss_and_gradient = m_problem.op == RowOperator::cross_entropy_with_gradient;
    if (has_loss_and_gradient && has_edges() && m_packs > m_policy.loss_edges_max_packs) return RowStrategy::split_row;
    if (needed_lanes(held_packs()) <= m_traits.warp_size) return RowStrategy::vector_lanes;
    return is_elementwise(m_problem.op) ? RowStrategy::team_online : RowStrategy::team_registers;
  }

  /// Not enough for a team on every multiprocessor.
  bool has_few_rows() const { return rows_that_count() < m_traits.multiprocessors; }

  /// What only reads a row has no second read to save: a small team that loops over it has loads in flight all the
  /// time.
  bool reduces_long_rows() const {
    return is_gpu() && is_reduction(m_problem.op) && m_packs >= m_policy.reduce_min_packs && !has_few_rows();
  }

  RowStrategy choose_on_host() const {
    if (register_entry() != nullptr) return RowStrategy::vector_lanes;
    const std::size_t row_bytes = kept_row_bytes();
    const bool is_on_chip =
        !is_elementwise(m_problem.op) &&
        row_bytes <= std::min(m_policy.max_scratch_row_bytes * std::size_t(host_threads_a_row()), scratch_limit(1));
    return is_on_chip ? RowStrategy::team_scratch : RowStrategy::team_online;
  }

  /// Threads that share a row on a host: more than one where there are fewer rows than threads, and rows are long.
  int host_threads_a_row() const {
    if (m_is_batch_invariant || m_problem.cols < m_policy.split_min_cols) return 1;
    const std::int64_t threads = m_traits.multiprocessors / std::max<std::int64_t>(1, m_problem.rows);
    return static_cast<int>(std::clamp<std::int64_t>(threads, 1, m_traits.max_team_size));
  }

  /// Whether a call moves much more than a cache holds; with batch invariance all do.
  bool is_large_call() const {
    return m_is_batch_invariant || moved_bytes() > m_policy.large_caches * static_cast<double>(m_traits.cache);
  }

  const Impl::RegisterPolicy* register_entry() const {
    return Impl::entry_for(m_policy.registers, &Impl::RegisterPolicy::max_packs, m_packs);
  }

  /// Packs that a thread holds of this row. What only reads a row has nothing to keep beside it; where there are few
  /// rows, what a thread does by itself is what the call takes.
  int held_packs() const {
    const auto* entry     = register_entry();
    const bool holds_more = is_gpu() && is_reduction(m_problem.op) && m_packs >= m_policy.reduce_full_packs;
    if (is_gpu() && m_request.team_size == 0 && m_request.threads_per_row == 0) {
      const int most = max_packs_per_thread();
      for (int k = 1; k < most; k *= 2) {
        const bool by_kernel = is_few_rows_kernel(k, round_up(ceil_div(m_packs, k), m_traits.warp_size));
        // 8 x 8192 f32 in a graph: 3.2 us by 512 threads of 4 packs, 3.4 by 256 of 8.
        const int team_size = m_policy.few_rows_team_size * (by_kernel && 2 * k == most ? 2 : 1);
        const bool holds    = m_packs <= std::int64_t(k) * team_size && is_packs_per_thread(k);
        if (holds && (by_kernel || has_few_rows())) return k;
      }
    }
    if (entry == nullptr || holds_more) return max_packs_per_thread();
    const int k = entry->packs(is_large_call());
    return is_packs_per_thread(k) ? k : max_packs_per_thread();
  }

  /// Threads that hold a row at k packs each: a power of two within a warp, whole warps above.
  std::int64_t needed_lanes(int k) const {
    const std::int64_t lanes = std::max<std::int64_t>(least_lanes(), ceil_div(m_packs, k));
    return lanes <= m_traits.warp_size ? std::int64_t(std::bit_ceil(std::uint64_t(lanes)))
                                   : round_up(lanes, m_traits.warp_size);
  }

  /// A row in team scratch: in accumulators, or as it is, or two tensors as they are, each up to a 16-byte boundary.
  std::size_t kept_row_bytes() const {
    const std::size_t elements = std::size_t(m_packs) * std::size_t(m_pack);
    const std::size_t bytes    = elements * std::size_t(m_problem.x_bytes);
    if (Impl::keeps_packed_in_scratch(m_traits.backend, m_problem.x_bytes, m_problem.op)) return bytes;
    if (!is_gradient()) return elements * std::size_t(m_problem.accumulator_bytes);
    return std::size_t(row_tensors(m_problem.op)) * (bytes + 16);
  }

  std::size_t scratch_limit(int level) const {
    constexpr std::size_t slack = 64;  // for alignment
    return m_traits.scratch[level] > slack ? m_traits.scratch[level] - slack : 0;
  }

  /// A reference and a sum, which may be wider than the accumulator, of any row; of a cross entropy a second sum; of a
  /// norm up to five doubles.
  std::size_t pair_bytes() const {
    return sizeof(Impl::RowState<double, Impl::DoubleDouble<double>>) +
           (is_cross_entropy(m_problem.op) ? sizeof(double) : 0) + (is_norm(m_problem.op) ? 2 * sizeof(double) : 0);
  }

  /// Of scratch that the launch asks for: a GPU's kernels have places of their own.
  std::size_t exchange_bytes(int threads) const {
    return is_gpu() ? 0 : std::size_t(Impl::exchange_pairs(threads)) * pair_bytes();
  }

  /// Scratch of a team that has a row: for its threads' states, or on a host for those of the row's pieces, and for what
  /// is kept of the row.
  std::size_t row_scratch_bytes(int threads, std::size_t kept) const {
    const std::size_t bytes = exchange_bytes(threads) + kept;
    if (is_gpu()) return bytes;
    const std::int64_t pieces = ceil_div(m_problem.cols, Impl::host_piece(m_problem.accumulator_bytes));
    return std::max(bytes, Impl::host_scratch_bytes(pieces, pair_bytes(), kept));
  }

  /// Whether a host's results go past the caches, as the threads' share of those does not hold what the call reads and
  /// writes. (16 MiB a tensor, two cores of a Xeon, softmax x 1024 24.0 GB/s, stored 15.9, softmax_backward 20.5 and
  /// 15.6; of an EPYC 45.8 and 37.7, 66.7 and 67.5.) A line that two rows share is put together first, or stored where
  /// rows are not one piece, and short rows have many of those.
  bool uses_nontemporal_stores() const {
    const std::int64_t row_bytes = m_problem.cols * m_problem.y_bytes;
    const bool shares_lines      = row_bytes % static_cast<std::int64_t>(Impl::host_line) != 0;
    if (m_problem.y_col_stride == 1 && shares_lines && row_bytes < least_nontemporal_row_bytes()) return false;
    return !is_gpu() && m_traits.cache > 0 && moved_bytes() >= static_cast<double>(m_traits.cache);
  }
  std::int64_t least_nontemporal_row_bytes() const {
    if (!m_problem.one_piece) return m_policy.least_nontemporal_row_bytes_apart;
    return (m_problem.y_bytes == 2 ? 2 : 1) * m_policy.least_nontemporal_row_bytes;
  }

  /// Puts `bytes` of scratch at the lowest level that holds them.
  void set_scratch(std::size_t bytes) {
    m_plan.scratch_bytes = bytes;
    if (bytes <= scratch_limit(0)) return;
    if (bytes > scratch_limit(1)) {
      refuse("it needs " + std::to_string(bytes) + " bytes of team scratch and the device gives " +
             std::to_string(std::max(scratch_limit(0), scratch_limit(1))));
    }
    m_plan.scratch_level = 1;
  }

  /// Rows to teams: `rows_at_once` at a time, on a host several times that.
  void set_league(int rows_at_once) {
    const std::int64_t elements = std::max<std::int64_t>(1, m_problem.cols * rows_at_once);
    const std::int64_t turns    = is_gpu() ? 1 : std::max<std::int64_t>(1, m_policy.elements_per_turn / elements);
    // A host's threads must all get something to do.
    const std::int64_t fair = std::max<std::int64_t>(1, m_problem.rows / (std::int64_t(4) * m_traits.multiprocessors));
    m_plan.rows_per_team =
        static_cast<int>(rows_at_once * std::min(turns, std::max<std::int64_t>(1, fair / rows_at_once)));
    m_plan.league_size = capped_league(ceil_div(m_problem.rows, m_plan.rows_per_team));
  }

  static std::int64_t capped_league(std::int64_t teams) { return std::clamp<std::int64_t>(teams, 1, INT_MAX); }

  void require_capacity(std::int64_t lanes) {
    const std::int64_t held = lanes * m_plan.packs_per_thread;
    if (held < m_packs) {
      refuse(std::to_string(lanes) + " threads hold " + std::to_string(held * m_pack) + " elements in registers");
    }
  }

  /// Whether teams ask for rows that later ones load: where a team has its rows on chip, or near, and rests from
  /// loading while it computes and writes. Gradients, with three tensors on the way, gain nothing by it; a log-sum-exp,
  /// which never stops to write, only where its threads hold little. Of masked rows nobody else knows what will be
  /// loaded.
  bool prefetches_rows() const {
    const bool is_on_chip = m_plan.strategy == RowStrategy::vector_lanes ||
                            m_plan.strategy == RowStrategy::team_registers ||
                            m_plan.strategy == RowStrategy::team_scratch || m_plan.strategy == RowStrategy::team_online;
    const bool is_held_long = !is_reduction(m_problem.op) || m_plan.packs_per_thread <= 4;
    return m_traits.prefetches && m_plan.form != RowForm::strided && is_on_chip && is_held_long && !is_gradient() &&
           !is_masked(m_problem.op) && gains_by_prefetch();
  }

  /// What is kept to the last has results written to memory early and in order, and rows that are asked for ahead are in
  /// the way of that: then only those ask who have little in flight. Otherwise rows of few packs a thread are asked for.
  bool gains_by_prefetch() const {
    if (prefetches_anyhow()) return true;
    const int k     = m_plan.packs_per_thread;
    const int few   = m_policy.prefetch_few_packs;
    const int whole = m_policy.prefetch_packs;
    if (m_plan.eviction == Eviction::last) return k <= few || (k <= whole && leaves_packs_empty());
    return k == whole || (k <= few && m_pack == 8);
  }
  /// Whether that was measured: for rows in registers, of doubles, which take long to compute, only for short ones.
  bool chooses_prefetch() const {
    if (!tells_when_to_evict() || is_reduction(m_problem.op)) return false;
    return m_plan.strategy == RowStrategy::vector_lanes ||
           (m_plan.strategy == RowStrategy::team_registers && m_pack > 2);
  }
  /// Whose threads all wait for memory together: a team that fills a multiprocessor, and one that fetches all its rows.
  bool asks_anyhow() const { return m_plan.staged || m_plan.team_size > Impl::max_threads_when_wide; }
  bool leaves_packs_empty() const { return 10 * m_packs < 9 * std::int64_t(m_plan.threads_per_row) * m_plan.packs_per_thread; }

  /// Threads of a multiprocessor by rule: as many as the largest team of the strategy has, but twice as many of those
  /// that hold little, where that much more has to be in flight.
  std::int64_t threads_by_rule() const {
    const bool hold_little = m_plan.packs_per_thread <= m_policy.prefetch_few_packs && !m_plan.staged;
    const bool need_more   = leaves_packs_empty() || (m_pack == 8 && m_plan.eviction != Eviction::last);
    return std::int64_t(max_team_size()) * (chooses_prefetch() && hold_little && need_more ? 2 : 1);
  }

  /// The rows of teams that come a wave later, or as many bytes later as the cache keeps; only if there is a second wave.
  void prefetch_later_rows() {
    const std::int64_t teams = m_traits.multiprocessors * (threads_by_rule() / m_plan.team_size);
    const std::int64_t wave  = teams * m_plan.rows_per_team;
    if (m_problem.rows <= wave) return;
    const double row_bytes = static_cast<double>(m_problem.cols) * m_problem.x_bytes;
    // Rows that are read twice must not be driven out of the cache in between.
    const double in_use = 2 * row_bytes * static_cast<double>(wave);
    const double room   = m_policy.prefetch_online_caches * static_cast<double>(m_traits.cache);
    if (m_plan.strategy == RowStrategy::team_online && in_use > room) return;
    const double kept = m_policy.prefetch_caches * static_cast<double>(m_traits.cache) / row_bytes;
    m_plan.rows_ahead = std::min(wave, static_cast<std::int64_t>(kept) / m_plan.rows_per_team * m_plan.rows_per_team);
  }

  /// Whether the kernel's loads say when the cache gives their lines up: not those of masked rows and of rows with a
  /// label, of which nobody has measured what they gain.
  bool tells_when_to_evict() const {
    if (!m_traits.evicts_as_told || m_traits.cache == 0) return false;
    if (is_masked(m_problem.op) || is_cross_entropy(m_problem.op)) return false;
    return m_plan.form != RowForm::strided || m_plan.strategy == RowStrategy::inner_lanes;
  }

  /// A matter of how much the call moves; what a second kernel reads again is kept.
  Eviction eviction() const {
    if (!tells_when_to_evict()) return Eviction::normal;
    if (m_plan.launches == 2) return Eviction::last;
    const double caches     = moved_bytes() / static_cast<double>(m_traits.cache);
    const auto* const entry = Impl::entry_for(eviction_table(), &Impl::EvictionPolicy::max_caches, caches);
    if (entry == nullptr) return Eviction::normal;
    const bool is_too_much = entry->eviction == Eviction::last && caches > m_policy.prefetch_last_caches;
    return is_too_much && prefetches_anyhow() ? Eviction::normal : entry->eviction;
  }

  /// Whether rows are asked for ahead, if they may be, whatever is kept.
  bool prefetches_anyhow() const {
    const bool is_by_itself = m_plan.strategy != RowStrategy::split_row && m_plan.strategy != RowStrategy::inner_lanes;
    return is_by_itself && !is_gradient() && (!chooses_prefetch() || asks_anyhow());
  }

  std::span<const Impl::EvictionPolicy> eviction_table() const {
    if (m_plan.strategy == RowStrategy::split_row) return m_policy.split_evictions;
    return m_plan.strategy == RowStrategy::inner_lanes ? m_policy.inner_evictions : m_policy.evictions;
  }

  double elements() const { return static_cast<double>(m_problem.rows) * static_cast<double>(m_problem.cols); }
  double moved_bytes() const {
    const int read    = row_tensors(m_problem.op) * m_problem.x_bytes;
    const int written = is_reduction(m_problem.op) ? 0 : m_problem.y_bytes;
    return elements() * (read + written);
  }

  /// Whether rows are short, many, of one piece of memory and begin between packs: they have a kernel of their own, in
  /// which nothing can be chosen.
  bool goes_through_scratch() const {
    const bool is_free           = m_request.threads_per_row == 0 && m_request.packs_per_thread == 0 && m_request.team_size == 0;
    const std::int64_t row_bytes = m_problem.cols * m_problem.x_bytes;
    return is_free && has_edges() && m_problem.one_piece && has_staged_kernel() &&
           row_bytes <= m_policy.staged_row_bytes &&
           m_problem.rows <= std::int64_t(INT_MAX) * m_policy.staged_team_size &&  // a team has one turn
           m_problem.rows >= row_bytes * m_policy.staged_rows_per_byte * m_traits.multiprocessors;
  }

  bool has_staged_kernel() const {
    return Impl::has_staged_types(m_problem.op, m_problem.x_type, m_problem.y_type, m_problem.dy_type);
  }

  void vector_lanes_by_scratch() {
    m_plan.staged    = true;
    m_plan.threads_per_row     = 1;
    m_plan.team_size = m_policy.staged_team_size;
    set_league(m_plan.team_size);
    set_scratch(std::size_t(m_plan.team_size * row_tensors(m_problem.op) * m_problem.cols * m_problem.x_bytes));
  }

  void vector_lanes() {
    if (goes_through_scratch()) return vector_lanes_by_scratch();
    const auto* entry = register_entry();
    int k             = m_request.packs_per_thread;
    if (k == 0) {
      k                    = held_packs();
      const int most_lanes = m_request.threads_per_row != 0 ? m_request.threads_per_row : m_traits.warp_size;
      while (k < max_packs_per_thread() && needed_lanes(k) > most_lanes) k *= 2;
      while (is_packs_per_thread(k / 2) && least_lanes() * (k / 2) >= m_packs) k /= 2;
    }
    m_plan.packs_per_thread = k;
    m_plan.threads_per_row            = m_request.threads_per_row != 0 ? m_request.threads_per_row
                                                   : static_cast<int>(std::min<std::int64_t>(needed_lanes(k), m_traits.warp_size));
    if (m_plan.threads_per_row > m_traits.warp_size || !std::has_single_bit(unsigned(m_plan.threads_per_row))) {
      refuse("threads_per_row " + std::to_string(m_plan.threads_per_row) + " is not a power of two up to " +
             std::to_string(m_traits.warp_size));
    }
    require_capacity(m_plan.threads_per_row);
    m_plan.team_size = m_request.team_size != 0
                           ? m_request.team_size
                           : std::min(entry != nullptr ? entry->team_size : m_traits.warp_size, m_traits.max_team_size);
    set_league(m_plan.team_size / m_plan.threads_per_row);
  }

  void refuse_to_keep() const {
    if (is_elementwise(m_problem.op)) refuse("nothing of a row is kept, as each element is read once by itself");
  }

  void team_registers() {
    refuse_to_keep();
    m_plan.packs_per_thread =
        m_request.packs_per_thread != 0 ? m_request.packs_per_thread : fitting_packs(held_packs());
    const int k               = m_plan.packs_per_thread;
    const std::int64_t needed = round_up(ceil_div(m_packs, k), m_traits.warp_size);
    one_row_a_team(m_request.team_size != 0 ? m_request.team_size
                                            : static_cast<int>(std::min<std::int64_t>(needed, m_traits.max_team_size)));
    require_capacity(m_plan.threads_per_row);
    m_plan.few_rows = is_few_rows_kernel(k, m_plan.team_size);
    set_scratch(row_scratch_bytes(m_plan.team_size, is_gpu() ? 0 : kept_row_bytes()));
  }

  /// Whether these rows are so few that they go to a kernel of k packs for that, if there is one, in teams of such a
  /// size.
  bool is_few_rows_kernel(int k, std::int64_t team_size) const {
    const std::int64_t teams = std::int64_t(m_policy.few_rows_threads) * m_traits.multiprocessors / team_size;
    return rows_that_count() <= teams && Impl::has_few_rows_kernel(m_traits.backend, k, m_problem.op, m_plan.form,
                                                                   m_problem.x_bytes, m_problem.y_bytes);
  }

  /// k packs a thread, or fewer where much less of the team would be idle. 4096 x 1280 f32: 0.91 of copy, with 8 packs
  /// 0.86; 4096 x 2304: 0.94 and 0.93; where the gain in filling is small a larger team is the slower one.
  int fitting_packs(int k) const {
    const int fewer        = Impl::fewer_packs(m_traits.backend, m_problem.op);
    const auto packs_held  = [&](int n) { return n * round_up(ceil_div(m_packs, n), m_traits.warp_size); };
    const bool is_possible = k == max_packs_per_thread() && is_packs_per_thread(fewer);
    return is_possible && 10 * packs_held(fewer) < 9 * packs_held(k) ? fewer : k;
  }

  void team_scratch() {
    refuse_to_keep();
    int team_size = m_request.team_size;
    if (team_size == 0) {
      team_size =
          is_gpu() ? even_team(m_policy.scratch_packs_per_thread, m_policy.scratch_team_size) : host_threads_a_row();
    }
    one_row_a_team(team_size);
    set_scratch(row_scratch_bytes(team_size, kept_row_bytes()));
  }

  void team_online() {
    const int k   = Impl::packs_when_looping(m_traits.backend, m_pack, m_problem.op, m_plan.form);
    int team_size = m_request.team_size;
    if (team_size == 0) {
      team_size = is_gpu() ? even_team(k, online_team_size()) : host_threads_a_row();
    }
    m_plan.packs_per_thread = k;
    one_row_a_team(team_size);
    set_scratch(row_scratch_bytes(team_size, 0));
  }

  int online_team_size() const {
    if (has_few_rows()) return max_team_size();
    if (reduces_long_rows()) return reducing_team_size();
    return m_problem.cols >= m_policy.online_long_cols ? max_team_size() : m_policy.online_team_size;
  }

  /// The smallest team, from one that leaves its threads a good many packs on, of which the last wave does not leave
  /// much of the device empty.
  int reducing_team_size() const {
    const std::int64_t least = m_packs / m_policy.reduce_packs_per_thread;
    const int first =
        std::clamp(static_cast<int>(std::bit_floor(std::uint64_t(least))), m_traits.warp_size, m_policy.reduce_team_size);
    int best         = first;
    double best_fill = 0;
    for (int team = first; team <= 2 * m_policy.reduce_team_size && best_fill < m_policy.reduce_fill;
         team += m_traits.warp_size) {
      const double at_once = double(m_traits.multiprocessors) * std::max(1, Impl::max_threads_when_looping / team);
      const double waves   = static_cast<double>(rows_that_count()) / at_once;
      const double fill    = waves / std::ceil(waves);
      if (fill >= best_fill) {
        best      = team;
        best_fill = fill;
      }
    }
    return best;
  }

  /// A team of at most `most` threads that takes a row in tiles of k packs a thread: in as few as it can, filled
  /// evenly.
  int even_team(int k, int most) const {
    const std::int64_t tiles = ceil_div(m_packs, std::int64_t(k) * most);
    return static_cast<int>(round_up(ceil_div(m_packs, k * tiles), m_traits.warp_size));
  }

  void one_row_a_team(int team_size) {
    m_plan.team_size = team_size;
    m_plan.threads_per_row     = team_size;
    set_league(1);
  }

  void split_row() {
    m_plan.packs_per_thread = max_packs_per_thread();
    m_plan.team_size = m_request.team_size != 0 ? m_request.team_size : std::min(split_team_size(), max_team_size());
    m_plan.threads_per_row     = m_plan.team_size;
    if (!has_second_kernel() && m_request.launches == 2) {
      refuse("gradients, norms and cross entropies have no second kernel to split a row with");
    }
    m_plan.launches = m_request.launches != 0 ? m_request.launches : (is_read_twice_from_cache() ? 2 : 1);
    if (m_plan.launches == 2) {
      split_by_two_kernels();
    } else {
      split_over_resident_teams();
    }
    set_scratch(exchange_bytes(m_plan.team_size) + sizeof(std::int64_t));
  }

  /// Teams of a size that hold a row in their registers.
  std::int64_t teams_that_hold(int team_size) const {
    return ceil_div(m_packs, std::int64_t(m_plan.packs_per_thread) * team_size);
  }
  std::int64_t teams_that_hold() const { return teams_that_hold(m_plan.team_size); }

  int split_team_size() const {
    const bool overlaps = Impl::overlaps_rows(m_traits.backend, m_problem.op, counted_form());
    const int small     = m_policy.split_small_team_size;
    const int most      = overlaps ? m_policy.split_small_teams : m_policy.split_small_teams_alone;
    if (takes_many_small_teams()) return small;
    if (most == 0 || teams_that_hold(small) > most) return m_policy.split_team_size;
    return overlaps && leaves_fewer_idle(small / 2, small) ? small / 2 : small;
  }

  /// Whether small teams are right although they are many: of larger ones, too, there are more status words than a warp has
  /// lanes, but each thread of a small one has a status word at most, and there are rows enough for teams to fall out of step.
  bool takes_many_small_teams() const {
    if (m_policy.split_many_small_teams == 0 || !is_forward(m_problem.op) || is_reduction(m_problem.op)) return false;
    return counted_form() == RowForm::aligned && rows_that_count() >= m_policy.split_many_rows &&
           teams_that_hold(m_policy.split_team_size) > m_traits.warp_size &&
           teams_that_hold(m_policy.split_small_team_size) <= m_policy.split_many_small_teams;
  }

  /// Whether teams of `fewer` threads, if one warp can read all of their status words, have markedly fewer threads behind a
  /// row's last pack.
  bool leaves_fewer_idle(int fewer, int threads) const {
    const std::int64_t teams = teams_that_hold(fewer);
    return teams <= m_traits.warp_size && 100 * fewer * teams < 97 * threads * teams_that_hold(threads);
  }

  /// Whether few rows stay, by and large, in a GPU's cache between two kernels, and are too long for the teams that may
  /// share one to hold it, so that one kernel would read them again as well.
  bool is_read_twice_from_cache() const {
    const double bytes = elements() * m_problem.x_bytes;
    return is_gpu() && has_second_kernel() && m_request.teams_per_row == 0 && has_few_rows() &&
           bytes <= m_policy.split_twice_caches * static_cast<double>(m_traits.cache) &&
           teams_that_hold() > most_teams_a_row(threads_when_holding());
  }

  void split_by_two_kernels() {
    const std::int64_t needed = teams_that_hold();
    const std::int64_t teams  = m_request.teams_per_row != 0 ? m_request.teams_per_row : needed;
    if (teams < needed)
      refuse(std::to_string(teams) + " teams do not hold a row, which takes " + std::to_string(needed));
    if (teams > INT_MAX / std::max<std::int64_t>(1, m_problem.rows))
      refuse("more teams would be needed than a league has");
    m_plan.teams_per_row = static_cast<int>(teams);
    m_plan.league_size   = m_problem.rows * teams;
  }

  void split_over_resident_teams() {
    const std::int64_t holding = teams_that_hold();
    std::int64_t teams         = m_request.teams_per_row;
    if (teams == 0) {
      teams = std::min(holding, teams_in_one_wave());
      if (teams > most_teams_a_row(threads_when_holding())) {
        teams = std::min(holding - 1, most_teams_a_row(threads_when_looping()));  // they loop over their parts
      }
    }
    const std::int64_t resident = resident_teams(teams >= holding ? threads_when_holding() : threads_when_looping());
    if (teams > resident) {
      refuse(std::to_string(teams) + " teams a row must run at once and the device surely runs " +
             std::to_string(resident));
    }
    m_plan.teams_per_row = static_cast<int>(teams);
    m_plan.league_size   = std::min(m_problem.rows, resident / teams) * teams;
  }

  /// Two calls on two instances can't starve each other as long as neither needs more than half of the device.
  std::int64_t most_teams_a_row(int threads) const {
    return std::max<std::int64_t>(1, is_gpu() ? resident_teams(threads) / 2 : resident_teams(threads));
  }

  /// Teams a row of which all rows' teams run at once. A log-sum-exp has no second read to save, so its teams may loop
  /// over more than they hold, and wait for each other once: 64 x 1048576 f32 by 4 teams 78 us, by 128 134 us.
  std::int64_t teams_in_one_wave() const {
    if (!is_gpu() || m_problem.op != RowOperator::logsumexp || m_is_batch_invariant) return INT64_MAX;
    const std::int64_t resident = resident_teams(threads_when_looping());
    const std::int64_t teams    = std::max<std::int64_t>(1, resident / std::max<std::int64_t>(1, m_problem.rows));
    return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(teams)));
  }

  /// Teams that are sure to run at the same time, of kernels compiled for so many threads.
  std::int64_t resident_teams(int compiled_for) const {
    if (!is_gpu()) return std::max(1, m_traits.multiprocessors / m_plan.team_size);
    const int threads = std::min(m_traits.resident_threads, compiled_for);
    return std::int64_t(m_traits.multiprocessors) * std::max(1, threads / m_plan.team_size);
  }

  void inner_lanes() {
    if (is_masked(m_problem.op)) refuse("rows side by side do not all have the same columns in a mask");
    if (is_cross_entropy(m_problem.op))
      refuse("no cross entropy runs its lanes over another axis than that of the classes");
    if (m_problem.inner < 1) refuse("there is no axis besides the reduced one that lanes could run over");
    m_plan.form             = RowForm::strided;
    const bool keeps        = !loops_over_inner() && finds_lanes_that_keep();
    m_plan.pack             = inner_pack(keeps);
    m_plan.packs_per_thread = inner_packs(keeps);
    if (!keeps) m_plan.threads_per_row = inner_lanes_that_loop();
    if (!std::has_single_bit(unsigned(m_plan.threads_per_row))) {
      refuse("threads_per_row " + std::to_string(m_plan.threads_per_row) + " is not a power of two");
    }
    if (!is_gpu()) return host_inner_lanes();
    const int one             = std::max(m_traits.warp_size, m_plan.threads_per_row);
    const std::int64_t needed = round_up(m_plan.threads_per_row * ceil_div(m_problem.cols, m_plan.packs_per_thread), one);
    m_plan.team_size          = m_request.team_size;
    if (m_plan.team_size == 0) {
      const std::int64_t most = std::max<std::int64_t>(one, inner_most_threads(keeps));
      m_plan.team_size        = static_cast<int>(std::min(needed, most));
      while (m_plan.team_size > one && inner_scratch(m_plan.team_size) > scratch_limit(0)) m_plan.team_size -= one;
    }
    if (m_plan.team_size > max_team_size()) {
      refuse("threads_per_row " + std::to_string(m_plan.threads_per_row) + " need a team of " + std::to_string(m_plan.team_size) +
             ", and a team may have " + std::to_string(max_team_size()) + " threads");
    }
    if (m_plan.team_size % m_plan.threads_per_row != 0) {
      refuse("team_size " + std::to_string(m_plan.team_size) + " is no multiple of lanes " +
             std::to_string(m_plan.threads_per_row));
    }
    m_plan.league_size = capped_league(inner_teams(m_plan.threads_per_row));
    set_scratch(inner_scratch(m_plan.team_size));
  }

  /// A host's thread has a block of rows by itself, and keeps of all of their columns what it needs again.
  void host_inner_lanes() {
    m_plan.pack      = host_inner_width();
    m_plan.team_size = m_request.team_size != 0 ? m_request.team_size : m_plan.threads_per_row;
    if (m_plan.team_size > m_traits.max_team_size || m_plan.team_size % m_plan.threads_per_row != 0) {
      refuse("team_size " + std::to_string(m_plan.team_size) + " is no multiple of lanes " +
             std::to_string(m_plan.threads_per_row) + " up to " + std::to_string(m_traits.max_team_size));
    }
    const std::int64_t blocks = m_problem.rows / m_problem.inner * ceil_div(m_problem.inner, m_plan.pack);
    m_plan.league_size        = capped_league(ceil_div(blocks, m_plan.team_size));
    const std::int64_t kept   = host_inner_kept(m_plan.pack * m_problem.accumulator_bytes);
    if (kept > 0) set_scratch(static_cast<std::size_t>(m_plan.team_size * (kept + std::int64_t(Impl::host_line))));
  }

  /// Rows of a block: many, as what lies side by side at a column is moved at once, but all threads must have as many
  /// blocks, if they have few.
  int host_inner_width() const {
    const int bytes            = m_problem.accumulator_bytes;
    const std::int64_t least   = Impl::host_inner_least_bytes / bytes;
    const std::int64_t outer   = m_problem.rows / m_problem.inner;
    const std::int64_t threads = m_traits.multiprocessors;
    const bool in_caches       = 2 * moved_bytes() <= static_cast<double>(m_traits.cache);
    const int narrow           = in_caches ? Impl::host_inner_least_bytes : Impl::host_inner_good_bytes;
    int widest                 = in_caches ? Impl::host_inner_bytes : Impl::host_inner_memory_bytes;
    while (widest > narrow && host_inner_kept(widest) > Impl::host_inner_most_kept_bytes(in_caches)) widest /= 2;
    const auto fits = [&] { return std::size_t(m_plan.threads_per_row * host_inner_kept(widest)) < scratch_limit(1); };
    while (widest > Impl::host_inner_least_bytes && !fits()) widest /= 2;
    std::int64_t blocks = ceil_div(m_problem.inner, widest / bytes);
    while (outer * blocks < 8 * threads && outer * blocks % threads != 0 && blocks * least < m_problem.inner) ++blocks;
    return static_cast<int>(round_up(ceil_div(m_problem.inner, blocks), least));
  }
  /// Bytes that a thread keeps of so wide a block.
  std::int64_t host_inner_kept(int width_bytes) const {
    return Impl::host_inner_keeps(m_problem.op, m_problem.cols)
               ? Impl::host_inner_kept_bytes(m_problem.op, m_problem.cols, width_bytes)
               : 0;
  }

  /// A sum and a maximum for each row, from every warp of a team; of a gradient a sum.
  std::size_t inner_scratch(int team_size) const {
    const std::int64_t speakers = ceil_div(team_size / m_plan.threads_per_row, std::max(1, m_traits.warp_size / m_plan.threads_per_row));
    const bool has_wide_sums    = m_problem.y_type != ElementType::f16 && m_problem.y_type != ElementType::bf16;
    const int words             = (has_wide_sums ? 2 : 1) + (is_gradient() ? 0 : 1);
    const int slot_bytes        = is_norm(m_problem.op) ? 6 * int(sizeof(double)) : words * m_problem.accumulator_bytes;
    return speakers == 1 ? 0 : std::size_t(speakers * m_plan.threads_per_row * m_plan.pack * slot_bytes);
  }

  int inner_most_threads(bool keeps) const {
    return keeps || loops_over_inner() ? inner_max_team_size() : inner_looping_team_size();
  }
  int inner_max_team_size() const { return std::min(m_policy.inner_max_team_size, max_team_size()); }

  int inner_pack(bool keeps) const {
    if (loops_over_inner()) return Impl::gradient_inner_pack_size(m_traits.backend, m_pack);
    return Impl::inner_pack_size(m_traits.backend, m_problem.x_bytes, m_problem.y_bytes, m_problem.accumulator_bytes,
                                 keeps);
  }
  int inner_packs(bool keeps) const {
    if (loops_over_inner()) return Impl::gradient_inner_packs(m_traits.backend, inner_pack(keeps));
    const int pack  = inner_pack(keeps);
    const int most  = Impl::inner_packs(m_traits.backend, pack, m_problem.x_bytes, m_problem.accumulator_bytes, keeps);
    const bool some = keeps && Impl::has_fewer_inner_packs(m_traits.backend, m_problem.x_bytes, pack);
    return some && m_problem.cols <= m_policy.inner_few_columns ? most / 2 : most;
  }

  /// Teams of so many lanes side by side.
  std::int64_t inner_teams(int lanes) const {
    return m_problem.rows / std::max<std::int64_t>(1, m_problem.inner) *
           ceil_div(m_problem.inner, std::int64_t(lanes) * m_plan.pack);
  }

  /// Sets the lanes of a team that has all columns in registers, if there is one: the fewer lanes, the longer its
  /// columns, and the smaller the team. A log-sum-exp, which reads no column again, is worth neither fewer nor larger.
  bool finds_lanes_that_keep() {
    if (m_request.team_size != 0) return finds_lanes_that_keep(m_request.team_size);
    const int preferred = std::min(m_policy.inner_team_size, m_traits.max_team_size);
    const bool goes_on  = m_problem.op != RowOperator::logsumexp;
    return finds_lanes_that_keep(preferred) || (goes_on && finds_lanes_that_keep(inner_max_team_size()));
  }
  bool finds_lanes_that_keep(int team_size) {
    const int most   = m_request.threads_per_row != 0 ? m_request.threads_per_row : m_policy.inner_lanes;
    const int fewest = m_problem.op == RowOperator::logsumexp ? m_policy.inner_lanes : m_policy.inner_least_lanes;
    const int least  = m_request.threads_per_row != 0 ? m_request.threads_per_row : fewest;
    for (m_plan.threads_per_row = most; m_plan.threads_per_row >= least; m_plan.threads_per_row /= 2) {
      if (team_size / m_plan.threads_per_row * std::int64_t(inner_packs(true)) >= m_problem.cols) return true;
    }
    return false;
  }

  /// As many lanes as leave a team to nearly every multiprocessor. A gradient's packs are long: few lanes move whole
  /// sectors.
  int inner_lanes_that_loop() const {
    if (loops_over_inner() && m_request.threads_per_row == 0) return m_policy.inner_least_lanes_looping;
    int lanes = m_request.threads_per_row != 0 ? m_request.threads_per_row : m_policy.inner_lanes_looping;
    while (m_request.threads_per_row == 0 && lanes > m_policy.inner_least_lanes_looping &&
           10 * inner_teams(lanes) < 9 * m_traits.multiprocessors) {
      lanes /= 2;
    }
    return lanes;
  }

  /// The fewer teams a multiprocessor has, the larger they are.
  int inner_looping_team_size() const {
    std::int64_t threads     = Impl::max_threads_per_team;
    const std::int64_t teams = is_gpu() ? ceil_div(inner_teams(m_plan.threads_per_row), m_traits.multiprocessors) : 1;
    while (threads > m_policy.inner_looping_team_size && threads * teams > Impl::max_threads_per_team) threads /= 2;
    return std::min(m_traits.max_team_size, static_cast<int>(threads));
  }

  const RowProblem& m_problem;
  const DeviceTraits& m_traits;
  const PlanRequest& m_request;
  bool m_is_batch_invariant;
  int m_pack;
  std::int64_t m_packs;
  Impl::Policy m_policy;
  RowPlan m_plan;
};

}  // namespace

namespace {

/// What was measured for a problem on this machine, where the caller leaves all to the planner. Not with batch
/// invariance: an entry is for many rows.
const TuningEntry* tuned(const RowProblem& problem, const DeviceTraits& traits, const SoftmaxOptions& options) {
  const bool is_free = options.plan == PlanRequest{} && options.determinism != Determinism::batch_invariant;
  return is_free && traits.tuning != nullptr ? traits.tuning->find(problem) : nullptr;
}

}  // namespace

RowPlan make_plan(const RowProblem& problem, const DeviceTraits& traits, const SoftmaxOptions& options) {
  if (const TuningEntry* entry = tuned(problem, traits, options)) {
    SoftmaxOptions with_entry = options;
    with_entry.plan           = entry->plan;
    try {
      return Planner(problem, traits, with_entry).plan();
    } catch (const std::invalid_argument&) {  // it serves most rows of the entry's lengths, but not these
    }
  }
  return Planner(problem, traits, options).plan();
}

std::string to_string(const RowPlan& plan) {
  std::ostringstream text;
  text << "KokkosNN::" << to_string(plan.op) << '[' << to_string(plan.strategy) << ',' << to_string(plan.x_type);
  if (is_gradient(plan.op) && plan.dy_type != plan.x_type) text << '+' << to_string(plan.dy_type);
  if (plan.y_type != plan.x_type) text << '>' << to_string(plan.y_type);
  text << ",v" << plan.pack << ",k" << plan.packs_per_thread << ",l" << plan.threads_per_row << ",ts" << plan.team_size;
  if (plan.strategy == RowStrategy::split_row) text << ",s" << plan.teams_per_row;
  if (plan.launches == 2) text << ",twice";
  if (plan.form == RowForm::misaligned) text << ",shifted";
  if (plan.few_rows) text << ",few";
  if (plan.staged) text << ",staged";
  text << ']';
  return text.str();
}

const char* to_string(RowStrategy strategy) {
  switch (strategy) {
    case RowStrategy::vector_lanes:
      return "vector_lanes";
    case RowStrategy::team_scratch:
      return "team_scratch";
    case RowStrategy::team_registers:
      return "team_registers";
    case RowStrategy::team_online:
      return "team_online";
    case RowStrategy::split_row:
      return "split_row";
    case RowStrategy::inner_lanes:
      return "inner_lanes";
    case RowStrategy::automatic:
      return "automatic";
  }
  return "unknown strategy";
}

const char* to_string(ElementType type) {
  switch (type) {
    case ElementType::f64:
      return "f64";
    case ElementType::f32:
      return "f32";
    case ElementType::f16:
      return "f16";
    case ElementType::bf16:
      return "bf16";
    case ElementType::other:
      return "other";
  }
  return "unknown type";
}

const char* to_string(Backend backend) {
  switch (backend) {
    case Backend::cuda:
      return "cuda";
    case Backend::hip:
      return "hip";
    case Backend::host:
      return "host";
  }
  return "unknown backend";
}

}  // namespace KokkosNN
