// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_COMPILED_KERNELS_HPP
#define KOKKOSNN_IMPL_COMPILED_KERNELS_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/plan.hpp>

#include <array>

// Which kernels there are: what the planner may plan, and what the launcher compiles.

namespace KokkosNN::Impl {

/// Numbers of packs a thread that the launcher looks for kernels of rows in registers for.
inline constexpr std::array pack_counts{1, 2, 3, 4, 5, 6, 8, 10};

/// Rows as kernels are compiled for them.
struct KernelTypes {
  Backend backend;
  RowOperator op;
  int pack;     ///< elements that a thread loads at once
  int x_bytes;  ///< of an element of the rows that are read, and of those that are written
  int y_bytes;
  int accumulator_bytes;
  bool can_be_staged;  ///< see `has_staged_types`
};

/// Rows in registers have a kernel of k packs a thread.
constexpr bool has_register_kernel(Backend backend, int k, RowOperator op, RowForm form, int x_bytes, int y_bytes) {
  return is_packs_per_thread(backend, k, op) || is_exact_packs(backend, k, op, form, x_bytes, y_bytes);
}
constexpr bool has_register_kernel(const RowPlan& plan, const KernelTypes& types) {
  return has_register_kernel(types.backend, plan.packs_per_thread, types.op, plan.form, types.x_bytes, types.y_bytes);
}

/// An operator has a kernel that takes short rows through team scratch; all that it moves is of one type then.
constexpr bool has_staged_types(RowOperator op, ElementType x, ElementType y, ElementType dy) {
  if (op == RowOperator::logsumexp) return true;  // it writes no rows
  if (x != y) return false;
  const bool sums_rows = op == RowOperator::softmax_backward || op == RowOperator::log_softmax_backward;
  return is_forward(op) || (sums_rows && dy == y);
}

/// Rows of such a form have kernels.
constexpr bool has_form(const KernelTypes& types, RowForm form) {
  if (types.backend == Backend::host) return form == RowForm::strided;
  return form != RowForm::misaligned || !(is_masked(types.op) || is_norm(types.op));
}

/// The strategy inner_lanes has a kernel of these packs. A host's takes blocks of any width.
constexpr bool has_inner_kernel(const RowPlan& plan, const KernelTypes& types) {
  if (is_masked(types.op) || is_cross_entropy(types.op) || plan.form != RowForm::strided) return false;
  if (types.backend == Backend::host) return true;
  if (is_gradient(types.op) || is_norm(types.op)) {
    const int pack = gradient_inner_pack_size(types.backend, types.pack);
    return plan.pack == pack && plan.packs_per_thread == gradient_inner_packs(types.backend, pack);
  }
  const auto has = [&](bool keeps) {
    const int pack      = inner_pack_size(types.backend, types.x_bytes, types.y_bytes, types.accumulator_bytes, keeps);
    const int most      = inner_packs(types.backend, pack, types.x_bytes, types.accumulator_bytes, keeps);
    const bool has_half = keeps && has_fewer_inner_packs(types.backend, types.x_bytes, pack);
    const int k         = plan.packs_per_thread;
    return plan.pack == pack && (k == most || (has_half && k == most / 2));
  };
  return has(true) || has(false);
}

/// A plan has one of the kernels that are compiled for such rows. The planner returns no other plan, and the
/// launcher throws for one.
constexpr bool has_kernel(const RowPlan& plan, const KernelTypes& types) {
  const bool in_registers = plan.strategy == RowStrategy::vector_lanes || plan.strategy == RowStrategy::team_registers;
  if (plan.op != types.op || !has_form(types, plan.form)) return false;
  if (plan.staged && plan.strategy != RowStrategy::vector_lanes) return false;
  if (plan.few_rows && plan.strategy != RowStrategy::team_registers) return false;
  if (plan.launches != 1 && (plan.launches != 2 || plan.strategy != RowStrategy::split_row)) return false;
  if (plan.pack != types.pack && plan.strategy != RowStrategy::inner_lanes) return false;
  if (plan.staged) return types.backend == Backend::cuda && plan.form == RowForm::misaligned && types.can_be_staged;
  if (in_registers && !has_register_kernel(plan, types)) return false;
  switch (plan.strategy) {
    case RowStrategy::automatic:
      return false;
    case RowStrategy::vector_lanes:
      return true;
    case RowStrategy::team_registers:
      return !is_elementwise(types.op) &&
             (!plan.few_rows || has_few_rows_kernel(types.backend, plan.packs_per_thread, types.op, plan.form,
                                                    types.x_bytes, types.y_bytes));
    case RowStrategy::team_scratch:
      return !is_elementwise(types.op);
    case RowStrategy::team_online:
      return plan.packs_per_thread == packs_when_looping(types.backend, types.pack, types.op, plan.form);
    case RowStrategy::split_row:
      return plan.packs_per_thread == most_packs(types.backend, types.op) &&
             (plan.launches == 1 ||
              (!is_gradient(types.op) && !is_cross_entropy(types.op) && !is_norm(types.op)));
    case RowStrategy::inner_lanes:
      return has_inner_kernel(plan, types);
  }
  return false;
}

/// Throws std::logic_error: a plan without a kernel is a fault of the library.
[[noreturn]] KOKKOSNN_EXPORT void refuse_plan_without_kernel(const RowPlan& plan);

inline void require_kernel(const RowPlan& plan, const KernelTypes& types) {
  if (!has_kernel(plan, types)) refuse_plan_without_kernel(plan);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_COMPILED_KERNELS_HPP
