// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_QUANTIZED_PLAN_HPP
#define KOKKOSNN_IMPL_CALL_QUANTIZED_PLAN_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/plan.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <cstdint>
#include <string>

// The plan of a call whose results are quantised.

namespace KokkosNN::Impl {

/// Problem of a call, as the planner sees it.
struct QuantizedProblem {
  ElementType type  = ElementType::f32;
  int element_bytes = 4;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool is_aligned   = false;  ///< packs of rows and column operands begin at boundaries of 16 bytes
};

/// Plan of a call. It depends on a row's length and type alone but for the number of teams and the form, which decide
/// on no sum's order: so do a row's bits.
struct QuantizedPlan {
  ElementType type         = ElementType::f32;
  RowForm form             = RowForm::strided;  ///< aligned: all packs are whole and moved by one access
  int pack                 = 1;                 ///< elements that a thread loads at once
  int threads_per_row      = 1;
  int team_size            = 1;
  int rows_per_team        = 1;  ///< rows that a team takes at a time
  std::int64_t league_size = 1;
};

KOKKOSNN_EXPORT QuantizedPlan make_quantized_plan(const QuantizedProblem& problem, const DeviceTraits& traits);

/// Label of the kernel: `KokkosNN::quantized_rms_norm[bf16>int8,aligned,v8,l128,ts128]`.
KOKKOSNN_EXPORT std::string to_string(const char* function, const QuantizedPlan& plan, bool is_float8);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_QUANTIZED_PLAN_HPP
