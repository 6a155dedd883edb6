// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/elementwise_plan.hpp>

#include "policy/elementwise.hpp"
#include "rounding.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <sstream>
#include <string>

// The plan of an elementwise call.

namespace KokkosNN::Impl {
namespace {

/// Elements in front of a tensor's first column since the last boundary of packs.
std::int64_t phase_of(const Tensor& t, int pack) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(t.data) /
                                   static_cast<std::uintptr_t>(t.element_bytes)) %
         pack;
}

/// The form of the tensors for packs of so many elements.
ElementwiseForm form_of(const ElementwiseOperands& operands, const ElementwiseLayout& layout, int pack) {
  ElementwiseForm form = ElementwiseForm::packs;
  for (int t = 0; t < operands.count; ++t) {
    const std::int64_t columns = layout.col_stride[t];
    if (t >= operands.outputs && columns == 0) {
      form = ElementwiseForm::one_or_packs;
      continue;
    }
    bool agrees = columns == 1 && phase_of(operands.tensor[t], pack) == phase_of(operands.tensor[0], pack);
    for (int k = 0; k < layout.n; ++k) agrees = agrees && (layout.stride[t][k] - layout.stride[0][k]) % pack == 0;
    if (!agrees) return ElementwiseForm::elements;
  }
  return form;
}

const char* to_string(ElementwiseForm form) {
  switch (form) {
    case ElementwiseForm::packs:
      return "packs";
    case ElementwiseForm::one_or_packs:
      return "one_or_packs";
    case ElementwiseForm::elements:
      return "elements";
  }
  return "unknown form";
}

/// `KokkosNN::add[packs,f32+f32>f32,v4,k2,l256,ts256]`; on a host `KokkosNN::add[host,f32+f32>f32,t2]`, t the teams.
std::string label_of(const ElementwiseOperands& operands, const ElementwisePlan& plan, int pack, int packs,
                     bool is_on_host) {
  std::ostringstream text;
  text << "KokkosNN::" << operands.function << '[' << (is_on_host ? "host" : to_string(plan.form));
  for (int t = operands.outputs; t < operands.count; ++t) {
    text << (t == operands.outputs ? ',' : '+') << KokkosNN::to_string(operands.tensor[t].type);
  }
  for (int t = 0; t < operands.outputs; ++t) {
    text << (t == 0 ? '>' : '+') << KokkosNN::to_string(operands.tensor[t].type);
  }
  if (is_on_host) {
    text << ",t" << plan.league_size;
  } else {
    text << ",v" << pack << ",k" << packs << ",l" << plan.threads_per_row << ",ts" << plan.team_size;
  }
  text << ']';
  return text.str();
}

/// Bytes that a call reads and writes; of an input that is broadcast what is read of it at least.
double moved_bytes(const ElementwiseOperands& operands) {
  double bytes = 0;
  for (int t = 0; t < operands.count; ++t) {
    bytes += static_cast<double>(element_count(operands.tensor[t])) * operands.tensor[t].element_bytes;
  }
  return bytes;
}

/// True if a host's results go past the caches, as the threads' share of those does not hold what the call moves. A
/// result that takes an input's place finds its line in a cache.
bool uses_nontemporal_stores(const ElementwiseOperands& operands, const ElementwiseLayout& layout,
                             const DeviceTraits& traits) {
  if (layout.in_place || traits.cache == 0) return false;
  for (int o = 0; o < operands.outputs; ++o) {
    const std::int64_t row_bytes = layout.cols * operands.tensor[o].element_bytes;
    if (layout.col_stride[o] != 1 || row_bytes < elementwise_policy.nontemporal_row_bytes) return false;
  }
  return moved_bytes(operands) >= static_cast<double>(traits.cache);
}

void plan_on_host(ElementwisePlan& plan, const ElementwiseOperands& operands, const ElementwiseLayout& layout,
                  const DeviceTraits& traits) {
  const std::int64_t shares = layout.rows * layout.cols / elementwise_policy.least_host_elements;
  plan.piece                = elementwise_policy.host_piece;
  plan.league_size          = std::clamp<std::int64_t>(shares, 1, traits.multiprocessors);
  plan.nontemporal_stores   = uses_nontemporal_stores(operands, layout, traits);
}

void plan_on_gpu(ElementwisePlan& plan, const ElementwiseLayout& layout, int pack, int packs) {
  const std::int64_t packs_of_row = ceil_div(layout.cols, pack);
  const auto threads              = static_cast<std::uint64_t>(ceil_div(packs_of_row, packs));
  plan.team_size                  = elementwise_team_size;
  plan.threads_per_row =
      static_cast<int>(std::bit_ceil(std::min<std::uint64_t>(threads, static_cast<std::uint64_t>(plan.team_size))));
  const std::int64_t tile          = std::int64_t(plan.threads_per_row) * packs;
  const std::int64_t rows_per_team = plan.team_size / plan.threads_per_row;
  plan.tiles_per_row               = ceil_div(packs_of_row, tile);
  plan.league_size                 = ceil_div(layout.rows, rows_per_team) * plan.tiles_per_row;
}

}  // namespace

ElementwisePlan make_elementwise_plan(const ElementwiseOperands& operands, const ElementwiseLayout& layout, int pack,
                                      const DeviceTraits& traits) {
  ElementwisePlan plan;
  const int inputs      = operands.count - operands.outputs;
  const bool is_on_host = traits.backend == Backend::host;
  plan.form             = form_of(operands, layout, pack);
  const bool elements   = plan.form == ElementwiseForm::elements;
  const int width       = elements ? 1 : pack;
  const int packs       = elements ? elementwise_elements(inputs) : elementwise_packs(inputs);
  if (is_on_host) {
    plan_on_host(plan, operands, layout, traits);
  } else {
    plan_on_gpu(plan, layout, width, packs);
  }
  plan.label = label_of(operands, plan, width, packs, is_on_host);
  return plan;
}

}  // namespace KokkosNN::Impl
