// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/attention_plan.hpp>
#include <KokkosNN/impl/attention_shapes.hpp>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>

// The plan of an attention call.

namespace KokkosNN::Impl {

AttentionPlan make_attention_plan(ElementType type, const AttentionLayout& layout, const DeviceTraits& traits) {
  constexpr std::int64_t most_teams = std::int64_t(1) << 30;  // a league's size is 32 bits; teams take rows in turn
  const AttentionShape& shape       = layout.shape;
  AttentionPlan plan;
  plan.type        = type;
  plan.tile        = attention_tile;
  plan.team_size   = traits.backend == Backend::host ? 1 : attention_team_size;
  plan.league_size = std::min(most_teams, shape.batch * shape.heads * shape.queries);
  plan.scratch     = type == ElementType::f64 ? attention_scratch<double>(shape.dim, shape.value_dim)
                                              : attention_scratch<float>(shape.dim, shape.value_dim);
  return plan;
}

std::string to_string(const char* function, const AttentionPlan& plan) {
  std::ostringstream text;
  text << "KokkosNN::" << function << '[' << to_string(plan.type) << ",k" << plan.tile << ",ts" << plan.team_size
       << ']';
  return text.str();
}

}  // namespace KokkosNN::Impl
