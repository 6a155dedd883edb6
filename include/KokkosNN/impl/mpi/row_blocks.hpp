// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_ROW_BLOCKS_HPP
#define KOKKOSNN_IMPL_MPI_ROW_BLOCKS_HPP

#include <KokkosNN/impl/call/attention_plan.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/mpi/pair_exchange.hpp>
#include <KokkosNN/mpi_export.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

// Blocks of rows that ranks exchange at a time, and the facts that they check ahead.
// Ranks number rows by the order of the tensors' axes (`layout_of_shard`), as their memory may differ; local calls
// number rows by strides.

namespace KokkosNN::Impl {

/// Rows of a tensor in blocks: slices along its first axis that is not reduced and has more than one element.
class KOKKOSNN_MPI_EXPORT RowBlocks {
 public:
  RowBlocks() = default;
  /// Takes a tensor with the reduced axis, which may count from the end and is in range.
  RowBlocks(const Tensor& with_columns, int axis);

  /// Number of elements of the sliced axis, and of rows for each of them.
  std::int64_t outer() const { return m_outer; }
  std::int64_t inner() const { return m_inner; }
  void cut(std::int64_t outer_a_block) { m_step = outer_a_block; }

  int axis() const { return m_axis; }
  std::int64_t all_rows() const { return m_outer * m_inner; }
  std::int64_t rows_a_block() const { return m_step * m_inner; }
  std::int64_t count() const { return (m_outer + m_step - 1) / m_step; }
  std::int64_t first_row(std::int64_t block) const { return block * m_step * m_inner; }
  std::int64_t rows(std::int64_t block) const { return size_of(block) * m_inner; }

  /// Block of a tensor that has the reduced axis, and of one that lacks it.
  Tensor of_rows(const Tensor& t, std::int64_t block) const { return slice(t, m_sliced, block); }
  Tensor of_values(const Tensor& t, std::int64_t block) const {
    return slice(t, m_sliced > m_axis ? m_sliced - 1 : m_sliced, block);
  }

 private:
  static constexpr int none = -1;

  std::int64_t size_of(std::int64_t block) const;
  Tensor slice(const Tensor& t, int axis, std::int64_t block) const;

  int m_axis           = 0;
  int m_sliced         = none;
  std::int64_t m_outer = 0;
  std::int64_t m_inner = 1;
  std::int64_t m_step  = 1;
};

/// Facts that must be equal on all ranks of a call.
class KOKKOSNN_MPI_EXPORT SharedFacts {
 public:
  SharedFacts() = default;
  SharedFacts(RowOperator op, const RowBlocks& blocks, const SoftmaxOptions& options);
  SharedFacts(RowOperator op, const RowBlocks& blocks, const RmsNormOptions& options);
  SharedFacts(RowOperator op, const RowBlocks& blocks, const LayerNormOptions& options);
  SharedFacts(RowOperator op, const RowBlocks& blocks, std::int64_t classes, bool has_weights,
              const CrossEntropyOptions& options);

  SharedFacts(bool is_gradient, const AttentionShape& shape, std::int64_t all_keys, ElementType type,
              const AttentionCallOptions& options);

  std::span<const SharedFact> all() const { return {m_facts.data(), m_count}; }

 private:
  void add(const char* name, std::int64_t value) { m_facts[m_count++] = {name, value}; }
  void add(const char* name, double value);
  void add_rows(RowOperator op, const RowBlocks& blocks);

  std::array<SharedFact, PairExchange::max_facts> m_facts = {};
  std::size_t m_count                                     = 0;
};

/// Throws std::invalid_argument if parts of the plan are forced: the kernels of shards have one strategy.
KOKKOSNN_MPI_EXPORT void refuse_plan(const char* function, const PlanRequest& request);
/// Tells the masks of a call that its keys are those from number `first` on of `all`. Throws std::invalid_argument
/// where there are too few.
KOKKOSNN_MPI_EXPORT void place_keys(const char* function, const AttentionShape& shape, std::int64_t first,
                                    std::int64_t all, AttentionCallOptions& options);
/// Throws std::invalid_argument for more rows than an exchange can have.
KOKKOSNN_MPI_EXPORT void require_records(const char* function, std::int64_t rows);
/// Throws std::invalid_argument unless one axis is reduced.
KOKKOSNN_MPI_EXPORT void refuse_axes(const char* function, int axes);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MPI_ROW_BLOCKS_HPP
