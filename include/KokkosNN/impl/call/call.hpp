// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_CALL_HPP
#define KOKKOSNN_IMPL_CALL_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/arguments.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <optional>
#include <string>
#include <tuple>

// The body of every operator's calls: check what the compiler can see, normalise, plan, launch. A family of operators
// says what its Views are by a struct, `Views`: `op`, `Options`, `check<Exec>()`, `tensors(views...)`, and
// `Call<Exec>`, which launches.

namespace KokkosNN::Impl {

template <class Layout, class Options>
RowProblem problem_with(RowOperator op, const Layout& layout, const Tensors& tensors, const Options& options) {
  RowProblem problem = problem_of(op, layout, tensors);
  set_options(problem, tensors, options);
  return problem;
}

template <class Exec, class Layout, class Options>
RowPlan plan_rows(RowOperator op, const Exec& exec, const Layout& layout, const Tensors& tensors,
                  const Options& options) {
  return make_plan(problem_with(op, layout, tensors, options), device_traits(exec), planning_options(options));
}

/// The plan of a call; checks its tensors as the call does.
template <class Exec, class Options>
RowPlan plan_of(RowOperator op, const Exec& exec, const Tensors& tensors, const Options& options) {
  return plan_rows(op, exec, normalise(to_string(op), op, tensors, options), tensors, options);
}

/// Checks, plans and enqueues a call on erased Views.
template <RowOperator op, class Call, class Exec, class Options>
void call_erased(const Exec& exec, const Tensors& tensors, const Options& options) {
  require_kernels<Call>();
  std::optional<Kokkos::Profiling::ScopedRegion> region;
  if (Kokkos::Tools::profileLibraryLoaded()) region.emplace(std::string("KokkosNN::") + to_string(op));
  const auto layout = normalise(to_string(op), op, tensors, options);
  if (!writes(op, layout)) return;
  const RowPlan plan = layout.rows > 0 ? plan_rows(op, exec, layout, tensors, options) : RowPlan{};
  if (is_verbose()) {
    report_plan(
        to_string(op), tensors[0], layout.rows, layout.cols, plan,
        reason_of_plan(problem_with(op, layout, tensors, options), device_traits(exec), planning_options(options)));
  }
  Call::run(exec, {plan, layout, tensors, options});
}

/// The body of a public function.
template <class Views, class Exec, class... V>
void call(const Exec& exec, const typename Views::Options& options, const V&... views) {
  Views::template check<Exec>();
  call_erased<Views::op, typename Views::template Call<Exec>>(exec, Views::tensors(views...), options);
}

/// A checked call on erased Views with its plan and workspace, for repeated calls.
template <RowOperator op, class Exec, class Call, class Options>
class PlannedCall {
 public:
  /// Enqueues the call on the Views of the constructor: no check, no planning, no allocation.
  void run() const { run_on(m_tensors, m_layout); }

  const RowPlan& row_plan() const { return m_plan; }

 protected:
  PlannedCall(const Exec& exec, const Tensors& tensors, const Options& options)
      : m_exec(exec),
        m_tensors(tensors),
        m_options(options),
        m_layout(normalise(to_string(op), op, tensors, options)),
        m_plan(plan_rows(op, exec, m_layout, tensors, options)) {
    require_kernels<Call>();
    Call::reserve(exec, m_plan, m_workspace);
  }

  void run_on(const Tensors& tensors) const {
    const Layout layout = normalise(to_string(op), op, tensors, m_options);
    require_same_layout(to_string(op), m_layout, layout);
    run_on(tensors, layout);
  }

 private:
  using Layout = decltype(normalise("", op, Tensors{}, Options{}));

  void run_on(const Tensors& tensors, const Layout& layout) const {
    if (!writes(op, layout)) return;
    if (is_verbose()) report_plan(to_string(op), tensors[0], layout.rows, layout.cols, m_plan, "a plan object's");
    Call::run(m_exec, {m_plan, layout, tensors, m_options, &m_workspace});
  }

  Exec m_exec;
  Tensors m_tensors;
  Options m_options;
  Layout m_layout;
  RowPlan m_plan;
  mutable WorkspaceView<Exec> m_workspace;
};

/// Planned call that keeps its Views.
template <class Exec, class Views, class... V>
class PlannedViews : public PlannedCall<Views::op, Exec, typename Views::template Call<Exec>, typename Views::Options> {
  using Base = typename PlannedViews::PlannedCall;

 public:
  PlannedViews(const Exec& exec, const V&... views, const typename Views::Options& options = {})
      : Base(exec, Views::tensors(views...), options), m_views(views...) {
    Views::template check<Exec>();
  }

  using Base::run;
  /// Enqueues the call on other Views with the same extents and strides; std::invalid_argument if they differ.
  void run(const V&... views) const { Base::run_on(Views::tensors(views...)); }

 private:
  std::tuple<V...> m_views;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_CALL_HPP
