// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/elementwise_plan.hpp>

#include "argument_error.hpp"
#include "axes.hpp"
#include "broadcast.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace KokkosNN::Impl {
namespace {

using ElementAxis = Axis<max_elementwise_tensors>;

void require_one_shape(const ElementwiseOperands& operands) {
  const Tensor& first = operands.tensor[0];
  for (int o = 1; o < operands.outputs; ++o) {
    const Tensor& t = operands.tensor[o];
    if (t.rank == first.rank && std::equal(t.extent, t.extent + t.rank, first.extent)) continue;
    (ArgumentError(operands.function) << operands.name[0] << " and " << operands.name[o]
                                      << " must have the same extents, but are " << shape_of(first) << " and "
                                      << shape_of(t))
        .raise();
  }
}

/// Outputs share memory with nothing, but for inputs that are the very output. Returns true if one is.
bool validate_memory(const ElementwiseOperands& operands) {
  bool in_place = false;
  for (int o = 0; o < operands.outputs; ++o) {
    const Tensor& output = operands.tensor[o];
    validate_output(operands.function, output);
    for (int t = 0; t < operands.count; ++t) {
      if (t == o) continue;
      const bool is_output = t >= operands.outputs && is_same_view(operands.tensor[t], output);
      in_place             = in_place || is_output;
      if (is_output || !overlaps(operands.tensor[t], output)) continue;
      raise_overlap(operands.function, operands.name[t], operands.tensor[t], "the output", output, true);
    }
  }
  return in_place;
}

/// The axes of all tensors but those of one element, those on which the first output is densest last.
Axes<max_elementwise_tensors> axes_of(const ElementwiseOperands& operands) {
  const Tensor& want = operands.tensor[0];
  Axes<max_elementwise_tensors> axes;
  for (int k = 0; k < want.rank; ++k) {
    if (want.extent[k] != 1) axes.push_back({want.extent[k], {}, k});
  }
  for (int number = 0; number < operands.count; ++number) {
    const Tensor t =
        broadcast(operands.function, operands.name[number], operands.tensor[number], operands.name[0], want);
    for (ElementAxis& axis : axes) axis.stride[number] = t.stride[axis.number];
  }
  std::ranges::stable_sort(axes, [](const ElementAxis& a, const ElementAxis& b) {
    return std::llabs(a.stride[0]) > std::llabs(b.stride[0]);
  });
  return merged(axes);
}

}  // namespace

ElementwiseLayout normalise(const ElementwiseOperands& operands) {
  require_one_shape(operands);
  Axes<max_elementwise_tensors> axes = axes_of(operands);
  ElementwiseLayout layout;
  // One element is a row of contiguous ones.
  if (axes.empty()) axes.push_back({1, {}, 0});
  const ElementAxis& columns = axes.back();
  layout.cols                = columns.extent;
  layout.n                   = static_cast<int>(axes.size()) - 1;
  for (int k = 0; k < layout.n; ++k) {
    layout.extent[k] = axes[k].extent;
    layout.rows *= axes[k].extent;
  }
  if (!layout.writes()) return layout;
  layout.in_place = validate_memory(operands);
  for (int t = 0; t < operands.count; ++t) {
    layout.col_stride[t] = layout.cols == 1 ? 1 : columns.stride[t];
    for (int k = 0; k < layout.n; ++k) layout.stride[t][k] = axes[k].stride[t];
  }
  return layout;
}

}  // namespace KokkosNN::Impl
