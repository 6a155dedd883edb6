// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/plan.hpp>

#include <sstream>
#include <string>

// A plan's label, and the names in it.

namespace KokkosNN {

std::string to_string(const RowPlan& plan) {
  std::ostringstream text;
  text << "KokkosNN::" << to_string(plan.op) << '[' << to_string(plan.strategy) << ',' << to_string(plan.x_type);
  if (is_gradient(plan.op) && plan.dy_type != plan.x_type) text << '+' << to_string(plan.dy_type);
  if (plan.y_type != plan.x_type) text << '>' << to_string(plan.y_type);
  text << ",v" << plan.pack << ",k" << plan.packs_per_thread << ",l" << plan.threads_per_row << ",ts" << plan.team_size;
  text << ',' << to_string(plan.kernel);
  const bool is_on_host = plan.kernel == RowKernel::host_rows || plan.kernel == RowKernel::host_inner;
  if (!is_on_host) text << '/' << plan.max_threads;
  const bool is_shared = plan.strategy == RowStrategy::split_row || plan.strategy == RowStrategy::row_in_cluster;
  if (is_shared) text << ",s" << plan.teams_per_row;
  if (plan.form == RowForm::misaligned) text << ",misaligned";
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
    case RowStrategy::row_in_cluster:
      return "row_in_cluster";
    case RowStrategy::inner_lanes:
      return "inner_lanes";
    case RowStrategy::automatic:
      return "automatic";
  }
  return "unknown strategy";
}

const char* to_string(RowKernel kernel) {
  switch (kernel) {
    case RowKernel::row_in_team:
      return "row_in_team";
    case RowKernel::row_in_lanes:
      return "row_in_lanes";
    case RowKernel::few_rows:
      return "few_rows";
    case RowKernel::staged_rows:
      return "staged_rows";
    case RowKernel::split_row:
      return "split_row";
    case RowKernel::split_online:
      return "split_online";
    case RowKernel::split_twice:
      return "split_twice";
    case RowKernel::row_in_cluster:
      return "row_in_cluster";
    case RowKernel::inner_lanes:
      return "inner_lanes";
    case RowKernel::inner_online:
      return "inner_online";
    case RowKernel::host_rows:
      return "host_rows";
    case RowKernel::host_inner:
      return "host_inner";
  }
  return "unknown kernel";
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
