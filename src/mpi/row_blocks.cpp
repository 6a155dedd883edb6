// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/mpi/row_blocks.hpp>

#include "../argument_error.hpp"

#include <algorithm>
#include <bit>

namespace KokkosNN::Impl {

RowBlocks::RowBlocks(const Tensor& with_columns, int axis) : m_axis(axis < 0 ? axis + with_columns.rank : axis) {
  m_outer = 1;
  for (int k = 0; k < with_columns.rank; ++k) {
    if (k == m_axis) continue;
    const std::int64_t extent = with_columns.extent[k];
    if (m_sliced == none && extent != 1) {
      m_sliced = k;
      m_outer  = extent;
    } else {
      m_inner *= extent;
    }
  }
}

std::int64_t RowBlocks::size_of(std::int64_t block) const { return std::min(m_step, m_outer - block * m_step); }

Tensor RowBlocks::slice(const Tensor& t, int axis, std::int64_t block) const {
  return m_sliced == none ? t : slice_of(t, axis, block * m_step, size_of(block));
}

void SharedFacts::add(const char* name, double value) { add(name, std::bit_cast<std::int64_t>(value)); }

void SharedFacts::add_rows(RowOperator op, const RowBlocks& blocks) {
  add("the operator", static_cast<std::int64_t>(op));
  add("the number of rows", blocks.all_rows());
  add("the number of rows a block", blocks.rows_a_block());
}

SharedFacts::SharedFacts(RowOperator op, const RowBlocks& blocks, const SoftmaxOptions& options) {
  add_rows(op, blocks);
  add("scale (its bits)", options.scale);
  add("masked_row", static_cast<std::int64_t>(options.masked_row));
  add("determinism", static_cast<std::int64_t>(options.determinism));
}

SharedFacts::SharedFacts(RowOperator op, const RowBlocks& blocks, const RmsNormOptions& options) {
  add_rows(op, blocks);
  add("epsilon (its bits)", options.epsilon);
  add("weight_offset (its bits)", options.weight_offset);
  add("determinism", static_cast<std::int64_t>(options.determinism));
}

SharedFacts::SharedFacts(RowOperator op, const RowBlocks& blocks, const LayerNormOptions& options) {
  add_rows(op, blocks);
  add("epsilon (its bits)", options.epsilon);
  add("determinism", static_cast<std::int64_t>(options.determinism));
}

SharedFacts::SharedFacts(RowOperator op, const RowBlocks& blocks, std::int64_t classes, bool has_weights,
                         const CrossEntropyOptions& options) {
  add_rows(op, blocks);
  add("the number of classes", classes);
  add("whether there are weights", static_cast<std::int64_t>(has_weights));
  add("ignore_index", options.ignore_index);
  add("reduction", static_cast<std::int64_t>(options.reduction));
  add("label_smoothing (its bits)", options.label_smoothing);
  add("z_loss (its bits)", options.z_loss);
  add("weighted_z_loss", static_cast<std::int64_t>(options.weighted_z_loss));
  add("softcap (its bits)", options.softcap);
  add("gradient_scale (its bits)", options.gradient_scale);
  add("check_labels", static_cast<std::int64_t>(options.check_labels));
  add("determinism", static_cast<std::int64_t>(options.determinism));
}

SharedFacts::SharedFacts(bool is_gradient, const AttentionShape& shape, std::int64_t all_keys, ElementType type,
                         const AttentionCallOptions& options) {
  // Attention is no operator of rows.
  add("the operator", is_gradient ? std::int64_t(-2) : std::int64_t(-1));
  add("the element type", static_cast<std::int64_t>(type));
  add("the batch of q", shape.batch);
  add("the heads of q", shape.heads);
  add("the number of queries", shape.queries);
  add("the dim of q", shape.dim);
  add("the dim of v", shape.value_dim);
  add("the number of all keys", all_keys);
  add("scale (its bits)", options.scale);
  add("softcap (its bits)", options.mask.softcap);
  add("whether there are sinks", static_cast<std::int64_t>(options.mask.sinks.exists()));
  add("masked_row", static_cast<std::int64_t>(options.masked_row));
  add("diagonal", static_cast<std::int64_t>(options.ends_align));
}

void place_keys(const char* function, const AttentionShape& shape, std::int64_t first, std::int64_t all,
                AttentionCallOptions& options) {
  if (first < 0 || all < 0 || first > all - shape.keys) {
    (ArgumentError(function) << "k has " << shape.keys << " keys from number " << first << " on, but there are only "
                             << all)
        .raise();
  }
  refuse_dropout(function, options.dropout);
  options.first_key = first;
  // Diagonals that end at the last key of all: this rank's last query is so many keys ahead of the rank's last key.
  options.diagonal_shift = options.ends_align ? all - first - shape.keys : -first;
}

void require_records(const char* function, std::int64_t rows) {
  if (rows <= PairExchange::max_records) return;
  (ArgumentError(function) << "batch * heads * queries must be at most " << PairExchange::max_records << ", but is "
                           << rows)
      .raise();
}

void refuse_axes(const char* function, int axes) {
  if (axes != 1) (ArgumentError(function) << "axes must be 1: ranks share one axis, but is " << axes).raise();
}

void refuse_plan(const char* function, const PlanRequest& request) {
  if (request == PlanRequest{}) return;
  (ArgumentError(function) << "options.plan must be left alone: rows that ranks share have one strategy").raise();
}

}  // namespace KokkosNN::Impl
