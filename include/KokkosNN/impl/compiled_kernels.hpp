// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_COMPILED_KERNELS_HPP
#define KOKKOSNN_IMPL_COMPILED_KERNELS_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/host/shapes.hpp>
#include <KokkosNN/impl/kernel_shapes.hpp>
#include <KokkosNN/plan.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

// Which kernels there are: `exists` is what the planner plans by, what the launcher finds its kernels by, and so what
// is compiled.

namespace KokkosNN::Impl {

/// Rows as kernels are compiled for them.
struct KernelTypes {
  Backend backend;
  RowOperator op;
  int pack;     ///< elements that a thread loads at once
  int x_bytes;  ///< of an element of the rows that are read, and of those that are written
  int y_bytes;
  int accumulator_bytes;
  bool can_be_staged = false;  ///< see `has_staged_types`
  bool element_mask  = false;  ///< as RowProblem has them
  bool is_extended   = false;
  bool one_stride    = true;
  bool is_shard      = false;
};

/// A kernel by all that it is compiled for, besides the types.
struct KernelKey {
  RowStrategy strategy;
  RowKernel kernel;
  RowForm form;
  int pack;
  int packs_per_thread;
  int max_threads;

  bool operator==(const KernelKey&) const = default;
};

constexpr KernelKey key_of(const RowPlan& plan) {
  return {plan.strategy, plan.kernel, plan.form, plan.pack, plan.packs_per_thread, plan.max_threads};
}

/// An operator has a kernel that takes short rows through team scratch; all that it moves is of one type then.
constexpr bool has_staged_types(RowOperator op, ElementType x, ElementType y, ElementType dy) {
  if (is_forward(op) && is_reduction(op)) return true;  // it writes no rows
  if (x != y) return false;
  const bool sums_rows = traits_of(op).family == OperatorFamily::gradient;
  return is_forward(op) || (sums_rows && dy == y);
}

/// Rows of such a form have kernels.
constexpr bool has_form(const KernelTypes& types, RowForm form) {
  if (types.backend == Backend::host) return form == RowForm::strided;
  return form != RowForm::misaligned || has_edge_kernels(types.backend, types.op, types.x_bytes);
}

/// Rows have few kernels, see `has_few_kernels_along_axes`.
constexpr bool has_few_kernels(const KernelTypes& types, RowForm form) {
  return !types.one_stride && has_few_kernels_along_axes(types.backend, types.op, types.x_bytes, form);
}

/// Rows have kernels of two packs a thread, and of powers of two from there on: neither of one pack, which is for rows
/// that a few threads have or a few teams, nor of fewer packs than a thread can hold, which fill teams better. On CUDA
/// strided rows, but masked ones, whose strided kernels serve all that are not aligned; on HIP all rows.
constexpr bool has_few_packs(const KernelTypes& types, RowForm form) {
  const bool is_plain = form == RowForm::strided && !is_masked(types.op);
  return types.backend == Backend::hip || (types.backend == Backend::cuda && is_plain);
}

/// A warp holds rows by all packs that a thread can have. No team has rows of cross_entropy_backward, and on CUDA its
/// tables have fewer packs but for doubles and for floats that are moved one by one.
constexpr bool is_held_by_all_packs(const KernelTypes& types, RowForm form) {
  if (types.backend != Backend::cuda || types.op != RowOperator::cross_entropy_backward) return true;
  return types.pack == 2 || (types.pack == 4 && form == RowForm::strided);
}

/// Rows in registers have a kernel of k packs a thread.
constexpr bool has_register_kernel(const KernelTypes& types, RowForm form, int k) {
  const Backend backend = types.backend;
  if (is_exact_packs(backend, k, types.op, form, types.x_bytes, types.y_bytes)) return true;
  if (k == most_packs(backend, types.op) && !is_held_by_all_packs(types, form)) return false;
  if (has_few_packs(types, form) && (k == 1 || k == fewer_packs(backend, types.op))) return false;
  if (has_few_kernels(types, form) && !is_packs_along_axes(backend, k, types.op)) return false;
  return is_packs_per_thread(backend, k, types.op);
}

/// A host has loops of vectors for rows: compilers of device code have no vectors.
constexpr bool has_host_loops(Backend backend) { return backend == Backend::host && has_host_vectors; }

constexpr bool is_in_registers(RowStrategy strategy) {
  return strategy == RowStrategy::vector_lanes || strategy == RowStrategy::team_registers;
}

/// True if a team of more threads than gain by more registers may hold k packs a thread. As many as a thread can hold,
/// of operators that have rows of a team each: fewer packs are for shorter rows, of smaller teams. Rows of
/// cross_entropy are looped over or split once a small team does not hold them (`ReductionPolicy::online_packs`).
constexpr bool has_large_teams(const KernelTypes& types, int k) {
  return k == most_packs(types.backend, types.op) && !is_elementwise(types.op) && !has_few_masked_kernels(types.op) &&
         types.op != RowOperator::cross_entropy;
}

/// Threads that a team may have of the kernel for small teams of busy threads, which have more registers, and what is
/// the largest team that runs by it. 0: there is none of k packs. Rows of any form, of doubles, or with edges and a
/// label, and masks need more registers; in small teams they are worth more than resident teams. What masks would spill
/// is so much that it counts in larger teams too. (On HIP the registers of a kernel do not depend on its team.)
struct BusyTeams {
  int max_threads = 0;
  int largest     = 0;
};
constexpr BusyTeams busy_teams(const KernelTypes& types, RowForm form, int k) {
  const bool is_strided = form == RowForm::strided;
  const int packs       = k * held_tensors(types.op);
  if (types.backend != Backend::cuda) return {};
  if (is_masked(types.op)) {
    const bool is_busy    = is_strided || types.element_mask;
    const int max_threads = is_busy ? max_threads_when_wide : max_threads_when_looping;
    return is_wide(types.pack, packs * (is_busy ? 2 : 1)) ? BusyTeams{max_threads, max_threads} : BusyTeams{};
  }
  const bool has_edges_and_label = form == RowForm::misaligned && is_cross_entropy(types.op);
  const bool is_busy             = is_strided || types.accumulator_bytes == 8 || has_edges_and_label;
  if (!is_busy || !is_wide(types.pack, packs)) return {};
  const int max_threads = is_strided ? max_threads_when_wide : max_threads_when_looping;
  return {max_threads, has_large_teams(types, k) ? max_threads_when_wide / 2 : max_threads};
}

/// Threads of the largest team that holds a row in registers at k packs each.
constexpr int most_threads_in_registers(const KernelTypes& types, RowForm form, int k) {
  const int busy = busy_teams(types, form, k).max_threads;
  return busy != 0 && !has_large_teams(types, k) ? busy : max_threads_per_team;
}

/// Kernels of light teams (`is_light`) exist for k packs.
constexpr bool has_light_teams(const KernelTypes& types, RowForm form, int k) {
  return is_light(types.backend, k, types.op, form, types.x_bytes, types.y_bytes);
}

/// RowInTeam has a kernel of k packs that is compiled for so many threads: not of more packs than all rows have kernels
/// of, as a warp holds such rows, nor of one pack where few rows have a kernel for them alone. Light teams have no
/// larger one beside theirs, nor have small teams of rows along several axes, which hold all of these.
constexpr bool is_bound_of_teams(const KernelTypes& types, RowForm form, int k, int max_threads) {
  const bool is_single = k == 1 && has_few_rows_kernel(types.backend, k, types.op, form, types.x_bytes, types.y_bytes);
  if (k > most_packs(types.backend, types.op) || is_single) return false;
  if (has_light_teams(types, form, k)) return max_threads == max_threads_when_light;
  const BusyTeams busy = busy_teams(types, form, k);
  if (busy.max_threads != 0 && max_threads == busy.max_threads) return true;
  const bool are_all_small = has_few_kernels(types, form) && k * busy.largest >= most_packs_along_axes;
  return max_threads == most_threads_in_registers(types, form, k) && !are_all_small;
}

/// A kernel of rows in registers is compiled.
constexpr bool exists_in_registers(const KernelKey& key, const KernelTypes& types) {
  const int k = key.packs_per_thread;
  if (!has_register_kernel(types, key.form, k)) return false;
  if (key.strategy == RowStrategy::team_registers && is_elementwise(types.op)) return false;
  switch (key.kernel) {
    case RowKernel::host_rows:
      return has_host_loops(types.backend) && key.max_threads == max_threads_per_team;
    case RowKernel::few_rows:
      return key.strategy == RowStrategy::team_registers && key.max_threads == max_threads_per_team &&
             has_few_rows_kernel(types.backend, k, types.op, key.form, types.x_bytes, types.y_bytes);
    case RowKernel::row_in_lanes:
      return key.strategy == RowStrategy::vector_lanes &&
             key.max_threads == most_threads_in_lanes(types.accumulator_bytes, types.pack, k) &&
             has_lanes_kernel(types.backend, k, types.op, key.form, types.x_bytes, types.pack);
    case RowKernel::row_in_team:
      return !has_host_loops(types.backend) && is_bound_of_teams(types, key.form, k, key.max_threads);
    default:
      return false;
  }
}

/// Rows of a form have a kernel of team_online. On a GPU shards have it, rows whose operator writes nothing or depends
/// on no sum, and those of which a team holds less than is worth an exchange. Of the others plain rows have it as
/// strided ones, for who asks for it.
constexpr bool has_online_kernel(const KernelTypes& types, RowForm form) {
  const int most         = most_packs(types.backend, types.op);
  const int held_columns = most * types.pack * most_threads_in_registers(types, form, most);
  return types.backend == Backend::host || types.is_shard || is_reduction(types.op) || is_elementwise(types.op) ||
         held_columns < least_split_columns || (form == RowForm::strided && has_plain_rows(types.op));
}

/// A kernel of rows in team scratch, or that are read twice, is compiled.
constexpr bool exists_in_team(const KernelKey& key, const KernelTypes& types) {
  const bool is_online  = key.strategy == RowStrategy::team_online;
  const bool has_loops  = has_host_loops(types.backend);
  const RowKernel only  = has_loops ? RowKernel::host_rows : RowKernel::row_in_team;
  const int max_threads = is_online && !has_loops ? most_threads_when_looping(types.op) : max_threads_per_team;
  if (key.kernel != only || key.max_threads != max_threads) return false;
  if (!is_online) return has_scratch_kernel(types.backend, types.op, key.form) && key.packs_per_thread == 1;
  return has_online_kernel(types, key.form) &&
         key.packs_per_thread == packs_when_looping(types.backend, types.pack, types.op, key.form);
}

/// Teams that share a row hold it as rows in registers are held: not where those are read twice in truth, as logits
/// that were changed are where packs would be kept as they were loaded, nor where there are few kernels.
constexpr bool holds_split_rows(const KernelTypes& types) {
  return !has_few_masked_kernels(types.op) &&
         !(types.is_extended &&
           keeps_packed(types.backend, types.x_bytes, types.pack, most_packs(types.backend, types.op)));
}

/// Rows of a form have a kernel by which teams loop over their parts, longer ones than they hold. That is all that some
/// operators have of rows over several teams; of the others plain rows have it in any form, doubles between pack
/// boundaries for logsumexp alone. Longer rows that are normed, masked or labelled are strided ones. (rms_norm f32 8 x
/// 2097152 takes 100 us so, by a kernel of its own 75.)
constexpr bool has_split_online_kernel(const KernelTypes& types, RowForm form) {
  const bool is_pair = form == RowForm::misaligned && types.accumulator_bytes == 8 && !is_reduction(types.op);
  const bool is_long = has_plain_rows(types.op) && !is_pair;
  return form == RowForm::strided || is_long || !holds_split_rows(types);
}

/// A kernel of rows that several teams share is compiled: for GPUs. A host's threads share a row as one team.
constexpr bool exists_for_split_rows(const KernelKey& key, const KernelTypes& types) {
  if (types.backend == Backend::host) return false;
  if (key.packs_per_thread != most_packs(types.backend, types.op)) return false;
  switch (key.kernel) {
    case RowKernel::split_row:
      return holds_split_rows(types) && key.max_threads == most_threads_when_holding(types.backend, types.op, key.form);
    case RowKernel::split_online:
      return has_split_online_kernel(types, key.form) && key.max_threads == most_threads_when_looping(types.op);
    case RowKernel::split_twice:
      return splits_twice(types.op, key.form) && key.max_threads == max_threads_per_team;
    default:
      return false;
  }
}

/// A kernel of rows that a cluster of teams has is compiled: not of doubles, and not where a forward call changes the
/// type.
constexpr bool exists_for_clusters(const KernelKey& key, const KernelTypes& types) {
  const bool are_alike     = is_gradient(types.op) || types.x_bytes == types.y_bytes;
  const bool has_types     = are_alike && types.accumulator_bytes == 4;
  const bool at_one_stride = types.one_stride || key.form == RowForm::aligned ||
                             !has_kernels_at_one_stride(types.backend, types.op, types.x_bytes, key.form);
  return types.backend == Backend::cuda && key.kernel == RowKernel::row_in_cluster &&
         has_cluster_kernel(types.op, key.form, types.x_bytes) && at_one_stride && !types.is_extended && has_types &&
         key.packs_per_thread == most_packs(types.backend, types.op) && key.max_threads == cluster_team_size;
}

/// A kernel of rows side by side is compiled. A host's takes blocks of any width.
constexpr bool exists_for_inner_rows(const KernelKey& key, const KernelTypes& types) {
  if (is_masked(types.op) || is_cross_entropy(types.op) || key.form != RowForm::strided) return false;
  if (key.max_threads != most_threads_of_inner_lanes(types.backend, types.op)) return false;
  const int k = key.packs_per_thread;
  if (has_host_loops(types.backend)) return key.kernel == RowKernel::host_inner;
  if (rereads_inner_rows(types.op)) {
    const int pack = gradient_inner_pack_size(types.backend, types.pack);
    return key.kernel == RowKernel::inner_lanes && k == gradient_inner_packs(types.backend, pack) &&
           (key.pack == pack || types.backend == Backend::host);
  }
  const bool keeps    = key.kernel == RowKernel::inner_lanes;
  const int pack      = inner_pack_size(types.backend, types.x_bytes, types.y_bytes, types.accumulator_bytes, keeps);
  const int most      = inner_packs(types.backend, pack, types.x_bytes, types.accumulator_bytes, keeps);
  const bool has_half = keeps && has_fewer_inner_packs(types.backend, types.x_bytes, pack);
  return (keeps || key.kernel == RowKernel::inner_online) && (k == most || (has_half && k == most / 2)) &&
         (key.pack == pack || types.backend == Backend::host);
}

/// A kernel is compiled for rows of such types.
constexpr bool exists(const KernelKey& key, const KernelTypes& types) {
  if (!has_form(types, key.form)) return false;
  if (key.pack != types.pack && key.strategy != RowStrategy::inner_lanes) return false;
  switch (key.strategy) {
    case RowStrategy::automatic:
      return false;
    case RowStrategy::vector_lanes:
      if (key.kernel != RowKernel::staged_rows) return exists_in_registers(key, types);
      return types.backend == Backend::cuda && !has_few_kernels(types, key.form) && key.form == RowForm::misaligned &&
             types.can_be_staged && key.packs_per_thread == 1 && key.max_threads == max_threads_when_wide;
    case RowStrategy::team_registers:
      return exists_in_registers(key, types);
    case RowStrategy::team_scratch:
    case RowStrategy::team_online:
      return !has_few_kernels(types, key.form) && exists_in_team(key, types);
    case RowStrategy::split_row:
      return !has_few_kernels(types, key.form) && exists_for_split_rows(key, types);
    case RowStrategy::row_in_cluster:
      return exists_for_clusters(key, types);
    case RowStrategy::inner_lanes:
      return exists_for_inner_rows(key, types);
  }
  return false;
}

/// The kernels of rows in registers that are compiled for a form: the launcher's list.
struct RegisterKernel {
  RowKernel kernel = RowKernel::row_in_team;
  int packs        = 0;
  int max_threads  = 0;
};
struct RegisterKernels {
  static constexpr std::array packs{1, 2, 3, 4, 5, 6, 8, 10};
  static constexpr std::array launch_bounds{max_threads_when_wide, max_threads_when_light, max_threads_when_looping,
                                            max_threads_per_team};

  std::array<RegisterKernel, 4 * packs.size()> all{};  ///< of a number of packs there are 4 at most
  std::size_t count = 0;
};
constexpr RegisterKernels register_kernels(RowForm form, const KernelTypes& types) {
  RegisterKernels list;
  for (const int k : RegisterKernels::packs) {
    for (const int bound : RegisterKernels::launch_bounds) {
      for (const RowKernel kernel : {RowKernel::few_rows, RowKernel::row_in_lanes, RowKernel::row_in_team}) {
        const bool is_in_teams     = kernel == RowKernel::few_rows;
        const RowStrategy strategy = is_in_teams ? RowStrategy::team_registers : RowStrategy::vector_lanes;
        if (!exists({strategy, kernel, form, types.pack, k, bound}, types)) continue;
        list.all[list.count++] = {kernel, k, bound};
      }
    }
  }
  return list;
}

/// A plan has one of the kernels that are compiled for such rows. The planner returns no other plan, and the
/// launcher throws for one.
constexpr bool has_kernel(const RowPlan& plan, const KernelTypes& types) {
  return plan.op == types.op && exists(key_of(plan), types);
}

/// Throws std::logic_error: a plan without a kernel is a fault of the library.
[[noreturn]] KOKKOSNN_EXPORT void refuse_plan_without_kernel(const RowPlan& plan);

inline void require_kernel(const RowPlan& plan, const KernelTypes& types) {
  if (!has_kernel(plan, types)) refuse_plan_without_kernel(plan);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_COMPILED_KERNELS_HPP
