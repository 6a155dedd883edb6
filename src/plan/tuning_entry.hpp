// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_PLAN_TUNING_ENTRY_HPP
#define KOKKOSNN_SRC_PLAN_TUNING_ENTRY_HPP

#include <KokkosNN/tuning.hpp>

#include "tuning_json.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

// An entry of a tuning file, as JSON has it.

namespace KokkosNN::Impl {

/// The value of an enumeration by its name.
template <class Enum, std::size_t n>
Enum named(const std::string& name, const std::array<Enum, n>& all) {
  for (const Enum value : all) {
    if (name == to_string(value)) return value;
  }
  throw std::runtime_error("'" + name + "' is not known");
}

inline constexpr std::array tuned_operators{RowOperator::softmax, RowOperator::log_softmax, RowOperator::logsumexp};
inline constexpr std::array tuned_types{ElementType::f64, ElementType::f32, ElementType::f16, ElementType::bf16};
inline constexpr std::array tuned_strategies{RowStrategy::vector_lanes, RowStrategy::team_scratch,
                                             RowStrategy::team_registers, RowStrategy::team_online,
                                             RowStrategy::split_row};

inline TuningEntry entry_of(const Json& json) {
  TuningEntry entry;
  entry.op                    = named(json["op"].text(), tuned_operators);
  entry.x_type                = named(json["x"].text(), tuned_types);
  entry.y_type                = named(json["y"].text(), tuned_types);
  entry.min_rows              = json["min_rows"].number();
  entry.min_cols              = json["min_cols"].number();
  entry.max_cols              = json["max_cols"].number();
  entry.plan.strategy         = named(json["strategy"].text(), tuned_strategies);
  entry.plan.packs_per_thread = static_cast<int>(json["packs_per_thread"].number());
  entry.plan.team_size        = static_cast<int>(json["team_size"].number());
  return entry;
}

inline Json json_of(const TuningEntry& entry) {
  return Json::object({{"op", Json(to_string(entry.op))},
                       {"x", Json(to_string(entry.x_type))},
                       {"y", Json(to_string(entry.y_type))},
                       {"min_rows", Json(entry.min_rows)},
                       {"min_cols", Json(entry.min_cols)},
                       {"max_cols", Json(entry.max_cols)},
                       {"strategy", Json(to_string(entry.plan.strategy))},
                       {"packs_per_thread", Json(std::int64_t(entry.plan.packs_per_thread))},
                       {"team_size", Json(std::int64_t(entry.plan.team_size))}});
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_PLAN_TUNING_ENTRY_HPP
