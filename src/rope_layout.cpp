// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/call/rope_plan.hpp>
#include <KokkosNN/impl/host/shapes.hpp>

#include "argument_error.hpp"

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

// Checks of a rotary embedding, and its tensors as kernels see them.

namespace KokkosNN::Impl {
namespace {

/// A call, as its checks see it.
struct GivenRope {
  const char* function;
  const char* x_name;
  const char* y_name;
  const RopeTensors& tensors;
  const RopeOptions& options;
  int sequence = 0;  ///< the axis of positions

  const Tensor& x() const { return tensors.x; }
  int rank() const { return x().rank; }
  std::int64_t dim() const { return x().extent[rank() - 1]; }
  std::int64_t rotary_dims() const { return options.rotary_dims == 0 ? dim() : options.rotary_dims; }
  ArgumentError error() const { return ArgumentError(function); }

  /// The axis of batches, where positions have one: the first axis of x that is not the sequence's.
  int batch() const { return sequence == 0 ? 1 : 0; }
};

int sequence_axis(const GivenRope& given) {
  const int axis = given.options.sequence_axis, rank = given.rank();
  if (rank == 2 && axis == RopeOptions{}.sequence_axis) return 0;
  const int resolved = axis < 0 ? axis + rank : axis;
  if (resolved < 0 || resolved >= rank - 1) {
    (given.error() << "sequence_axis " << axis << " is none of the axes before the last one of rank " << rank).raise();
  }
  return resolved;
}

void validate_factor(const GivenRope& given, const char* name, double value, bool may_be_negative) {
  const double size = may_be_negative ? std::abs(value) : value;
  if (size >= 0x1p-100 && size <= 0x1p100) return;
  (given.error() << (may_be_negative ? "|" : "") << name << (may_be_negative ? "|" : "")
                 << " must be within 2^-100 to 2^100, but " << name << " is " << value)
      .raise();
}

void validate_offset(const GivenRope& given) {
  constexpr std::int64_t most = std::int64_t(1) << 53;
  const std::int64_t offset   = given.options.position_offset;
  if (offset >= -most && offset <= most) return;
  (given.error() << "position_offset must be within -2^53 to 2^53, but is " << offset).raise();
}

void validate_dims(const GivenRope& given) {
  constexpr std::int64_t most = std::int64_t(1) << 30;  // kernels count the packs of a row in 32 bits
  const std::int64_t rotary   = given.rotary_dims();
  if (given.dim() > most) {
    (given.error() << "rows must have at most 2^30 elements, but have " << given.dim()).raise();
  }
  if (rotary < 0 || rotary > given.dim() || rotary % 2 != 0) {
    (given.error() << "rotary_dims must be even and within 0 to " << given.dim() << ", the last extent of "
                   << given.x_name << ", but is " << rotary)
        .raise();
  }
}

void validate_extents(const GivenRope& given) {
  const Tensor& x = given.x();
  const Tensor& y = given.tensors.y;
  for (int k = 0; k < x.rank; ++k) {
    if (x.extent[k] == y.extent[k]) continue;
    (given.error() << given.x_name << " and " << given.y_name << " must have the same extents, but are " << shape_of(x)
                   << " and " << shape_of(y))
        .raise();
  }
}

void validate_tables(const GivenRope& given) {
  const Tensor& cos = given.tensors.cos;
  const Tensor& sin = given.tensors.sin;
  if (cos.extent[0] != sin.extent[0] || cos.extent[1] != sin.extent[1]) {
    (given.error() << "cos and sin must have the same extents, but are " << shape_of(cos) << " and " << shape_of(sin))
        .raise();
  }
  if (cos.extent[1] != given.rotary_dims() / 2) {
    (given.error() << "cos and sin must have rotary_dims / 2 = " << given.rotary_dims() / 2 << " columns, but have "
                   << cos.extent[1])
        .raise();
  }
  if (given.options.position_scale != 1) {
    (given.error() << "position_scale must be 1 with tables, but is " << given.options.position_scale).raise();
  }
}

/// Positions that the host knows must be rows of the tables.
void validate_known_positions(const GivenRope& given) {
  const std::int64_t length = given.x().extent[given.sequence], rows = given.tensors.cos.extent[0];
  const std::int64_t offset = given.options.position_offset;
  if (offset >= 0 && offset <= rows && length <= rows - offset) return;
  (given.error() << "positions " << offset << " to " << offset + (length - 1) << " (position_offset "
                 << given.options.position_offset << ", sequence " << length << ") are not all among the " << rows
                 << " rows of the tables")
      .raise();
}

void validate_positions_view(const GivenRope& given) {
  const Tensor& positions   = given.tensors.positions;
  const std::int64_t length = given.x().extent[given.sequence];
  const bool has_batch      = positions.rank == 2;
  if (positions.extent[positions.rank - 1] == length &&
      (!has_batch || positions.extent[0] == given.x().extent[given.batch()])) {
    return;
  }
  ArgumentError complaint = given.error();
  complaint << "positions must be (";
  if (has_batch) complaint << given.x().extent[given.batch()] << ", ";
  complaint << length << "), as " << given.x_name << " is " << shape_of(given.x()) << " with sequence_axis "
            << given.sequence << ", but are " << shape_of(positions);
  complaint.raise();
}

void validate_memory(const GivenRope& given) {
  const Tensor& y = given.tensors.y;
  validate_output(given.function, y);
  require_apart(given.function, given.x_name, given.x(), given.y_name, y, true);
  const auto apart = [&](const char* name, const Tensor& t) {
    require_apart(given.function, name, t, given.y_name, y, false);
  };
  apart("cos", given.tensors.cos);
  apart("sin", given.tensors.sin);
  apart("positions", given.tensors.positions);
}

RopeAxis axis_of(const GivenRope& given, int axis) {
  const Tensor& positions = given.tensors.positions;
  RopeAxis result{given.x().extent[axis], given.x().stride[axis], given.tensors.y.stride[axis]};
  if (axis == given.sequence) {
    if (positions.exists()) {
      result.positions = positions.stride[positions.rank - 1];
    } else {
      result.step = 1;
    }
  } else if (positions.rank == 2 && axis == given.batch()) {
    result.positions = positions.stride[0];
  }
  return result;
}

/// Gives x's axes their parts: of several besides the sequence's the first one lies along the positions, the last one
/// has the heads.
void set_axes(const GivenRope& given, RopeLayout& layout) {
  std::vector<int> others;
  for (int axis = 0; axis < given.rank() - 1; ++axis) {
    if (axis != given.sequence) others.push_back(axis);
  }
  const bool has_batch = given.tensors.positions.rank == 2;
  if (others.size() == 2) layout.heads = axis_of(given, others[1]);
  if (others.size() == 1 && !has_batch) layout.heads = axis_of(given, others[0]);
  layout.inner = axis_of(given, given.sequence);
  if (others.size() == 2 || has_batch) layout.outer = axis_of(given, others[0]);
  const auto reach = [](const RopeAxis& axis) { return std::llabs(axis.y_stride) + std::llabs(axis.x_stride); };
  if (layout.outer.extent > 1 && reach(layout.outer) < reach(layout.inner)) {
    std::swap(layout.outer, layout.inner);
    layout.sequence_is_outer = true;
  }
}

/// True if all rows of a tensor begin at a boundary of so many bytes, and `part` elements have a whole number of them.
bool has_boundaries(const Tensor& t, std::int64_t part, std::int64_t bytes) {
  const auto divides = [&](std::int64_t elements) { return elements * t.element_bytes % bytes == 0; };
  if (t.extent[t.rank - 1] > 1 && t.stride[t.rank - 1] != 1) return false;
  if (reinterpret_cast<std::uintptr_t>(t.data) % static_cast<std::uintptr_t>(bytes) != 0) return false;
  for (int k = 0; k < t.rank - 1; ++k) {
    if (t.extent[k] > 1 && !divides(t.stride[k])) return false;
  }
  return divides(part);
}

}  // namespace

RopeLayout normalise_rope(const char* function, const char* x_name, const char* y_name, const RopeTensors& tensors,
                          const RopeOptions& options) {
  GivenRope given{function, x_name, y_name, tensors, options};
  given.sequence = sequence_axis(given);
  validate_extents(given);
  validate_dims(given);
  validate_factor(given, "theta", options.theta, false);
  validate_factor(given, "position_scale", options.position_scale, true);
  validate_offset(given);
  if (tensors.cos.exists()) validate_tables(given);
  if (tensors.positions.exists()) validate_positions_view(given);

  RopeLayout layout;
  set_axes(given, layout);
  layout.dim          = given.dim();
  layout.pairs        = given.rotary_dims() / 2;
  layout.x_dim_stride = layout.dim == 1 ? 1 : tensors.x.stride[given.rank() - 1];
  layout.y_dim_stride = layout.dim == 1 ? 1 : tensors.y.stride[given.rank() - 1];
  layout.table_rows   = tensors.cos.exists() ? tensors.cos.extent[0] : 0;
  if (layout.elements() == 0) return layout;
  if (tensors.cos.exists() && !tensors.positions.exists()) validate_known_positions(given);
  validate_memory(given);
  layout.is_in_place                  = is_same_view(tensors.x, tensors.y);
  constexpr std::int64_t access_bytes = 16;
  const auto has_packs                = [&](const Tensor& t) { return has_boundaries(t, layout.pairs, access_bytes); };
  layout.has_packs                    = has_packs(tensors.x) && has_packs(tensors.y);
  layout.has_lines                    = has_boundaries(tensors.y, layout.dim, static_cast<std::int64_t>(host_line));
  return layout;
}

RopeLayout normalise_rms_norm_rope(const char* function, const RopeTensors& tensors, const Tensor& weight,
                                   const RmsNormRopeOptions& options) {
  validate_rms_norm(function, options.epsilon, options.weight_offset);
  const RopeLayout layout = normalise_rope(function, "x", "y", tensors, options.rope);
  if (!weight.exists()) return layout;
  const bool has_heads = weight.rank == 2;
  if (weight.extent[weight.rank - 1] != layout.dim || (has_heads && weight.extent[0] != layout.heads.extent)) {
    ArgumentError complaint(function);
    complaint << "weight must be (";
    if (has_heads) complaint << layout.heads.extent << ", ";
    complaint << layout.dim << "), as x is " << shape_of(tensors.x) << ", but is " << shape_of(weight);
    complaint.raise();
  }
  if (layout.elements() > 0) require_apart(function, "weight", weight, "y", tensors.y, false);
  return layout;
}

void raise_bad_position(const char* function, const RopeLayout& layout, std::int64_t index, std::int64_t position) {
  const std::int64_t outer = index / layout.inner.extent, inner = index % layout.inner.extent;
  (ArgumentError(function) << "position " << position << " of sequence index "
                           << (layout.sequence_is_outer ? outer : inner) << ", batch "
                           << (layout.sequence_is_outer ? inner : outer) << ", is none of the " << layout.table_rows
                           << " rows of the tables")
      .raise();
}

}  // namespace KokkosNN::Impl
