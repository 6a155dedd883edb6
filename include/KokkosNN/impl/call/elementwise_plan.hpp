// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_ELEMENTWISE_PLAN_HPP
#define KOKKOSNN_IMPL_CALL_ELEMENTWISE_PLAN_HPP

#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/elementwise_forms.hpp>
#include <KokkosNN/impl/inputs/row_map.hpp>
#include <KokkosNN/plan.hpp>

#include <cstdint>
#include <string>

// An elementwise call on the host: its tensors as rows, and its plan.

namespace KokkosNN::Impl {

/// The tensors of a call by number: outputs, then inputs, with their names in messages.
struct ElementwiseOperands {
  const char* function;
  int outputs;
  int count;
  Tensor tensor[max_elementwise_tensors];
  const char* name[max_elementwise_tensors];
};

/// Tensors as rows of columns, all axes merged that are one in all tensors; the columns are the axis on which the first
/// output is densest.
struct ElementwiseLayout {
  std::int64_t rows                                          = 1;
  std::int64_t cols                                          = 1;
  int n                                                      = 0;  ///< axes of the rows
  std::int64_t extent[max_row_dims]                          = {};
  std::int64_t stride[max_elementwise_tensors][max_row_dims] = {};
  std::int64_t col_stride[max_elementwise_tensors]           = {};
  bool in_place                                              = false;  ///< an output is an input, too

  bool writes() const { return rows > 0 && cols > 0; }
  RowMap map(int tensor) const { return row_map(extent, stride[tensor], n); }
};

/// Checks a call and describes it as rows. Throws std::invalid_argument for extents that do not broadcast to those of
/// the outputs, outputs of different extents, an output whose elements share memory, and overlap with one, but for
/// inputs that are that output.
KOKKOSNN_EXPORT ElementwiseLayout normalise(const ElementwiseOperands& operands);

/// How a call will run.
struct ElementwisePlan {
  std::string label;
  ElementwiseForm form       = ElementwiseForm::elements;
  int team_size              = 1;
  int threads_per_row        = 1;
  std::int64_t tiles_per_row = 1;  ///< teams that share a row
  std::int64_t league_size   = 1;
  std::int64_t piece         = 0;  ///< columns that a host's threads share rows by
  bool nontemporal_stores    = false;
};

/// Chooses the plan: no launch, no allocation on a device. `pack`: elements that a thread moves at once.
KOKKOSNN_EXPORT ElementwisePlan make_elementwise_plan(const ElementwiseOperands& operands,
                                                      const ElementwiseLayout& layout, int pack,
                                                      const DeviceTraits& traits);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_ELEMENTWISE_PLAN_HPP
