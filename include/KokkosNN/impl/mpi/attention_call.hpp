// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_ATTENTION_CALL_HPP
#define KOKKOSNN_IMPL_MPI_ATTENTION_CALL_HPP

#include <KokkosNN/impl/call/attention_call.hpp>
#include <KokkosNN/impl/mpi/call.hpp>
#include <KokkosNN/impl/mpi/communicator.hpp>
#include <KokkosNN/impl/mpi/launch.hpp>
#include <KokkosNN/impl/mpi/row_blocks.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

// Bodies of attention over ranks that have parts of k and v. A rank computes all rows over its keys and sends each rank
// its share of them; that joins its share's rows in the order of the ranks and sends the results to all. So a row is
// joined once, and all ranks have the same bits.

namespace KokkosNN::Impl {

/// Rows of results on their way between ranks: a record has a row's elements and, where they are to be joined, its
/// log-sum-exp. Rows are in the order (batch, head, query).
template <class X>
struct RowRecords {
  using A = accumulator_t<X>;

  std::int64_t batch;
  std::int64_t heads;
  std::int64_t queries;
  std::int64_t dim;
  bool has_lse;

  std::int64_t rows() const { return batch * heads * queries; }
  std::size_t lse_place() const {
    return (static_cast<std::size_t>(dim) * sizeof(X) + sizeof(A) - 1) / sizeof(A) * sizeof(A);
  }
  std::size_t bytes() const { return has_lse ? lse_place() + sizeof(A) : static_cast<std::size_t>(dim) * sizeof(X); }
  /// Some of the rows as a batch of one.
  RowRecords some(std::int64_t count) const { return {1, 1, count, dim, has_lse}; }

  /// Elements of rows in memory as a tensor, (batch, head, query, dim) or (batch, query, head, dim).
  Tensor elements(const char* memory, bool sequence_is_second = false) const {
    Tensor t = tensor_of_type<X>();
    t.data   = memory;
    set_axes(t, 4, static_cast<std::int64_t>(bytes() / sizeof(X)));
    t.extent[3] = dim;
    t.stride[3] = 1;
    if (sequence_is_second) {
      std::swap(t.extent[1], t.extent[2]);
      std::swap(t.stride[1], t.stride[2]);
    }
    return t;
  }
  /// Log-sum-exps of rows as a tensor, (batch, head, query).
  Tensor sums(const char* memory) const {
    Tensor t = tensor_of_type<A>();
    t.data   = memory + lse_place();
    set_axes(t, 3, static_cast<std::int64_t>(bytes() / sizeof(A)));
    return t;
  }
  /// Several ranks' tensors, one behind the other.
  Tensor of_parts(Tensor t, std::int64_t parts) const {
    for (int axis = t.rank; axis > 0; --axis) {
      t.extent[axis] = t.extent[axis - 1];
      t.stride[axis] = t.stride[axis - 1];
    }
    ++t.rank;
    t.extent[0] = parts;
    t.stride[0] = rows() * static_cast<std::int64_t>(bytes()) / t.element_bytes;
    return t;
  }

 private:
  void set_axes(Tensor& t, int rank, std::int64_t record) const {
    t.rank      = rank;
    t.extent[0] = batch, t.extent[1] = heads, t.extent[2] = queries;
    t.stride[0] = heads * queries * record, t.stride[1] = queries * record, t.stride[2] = record;
  }
};

/// Adds up ranks' parts of an element, in the order of the ranks, and writes the sum where its tensor has it.
template <class X>
struct SumOfRanks {
  const X* parts;
  std::int64_t count;
  std::int64_t part_stride;
  AttentionMergeShape shape;
  X* sums;
  AttentionStrides strides;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    auto sum = static_cast<accumulator_t<X>>(parts[i]);
    for (std::int64_t p = 1; p < count; ++p) sum += static_cast<accumulator_t<X>>(parts[i + p * part_stride]);
    const std::int64_t row = i / shape.dim, head = row / shape.queries, batch = head / shape.heads;
    sums[batch * strides.batch + head % shape.heads * strides.head + row % shape.queries * strides.sequence +
         i % shape.dim * strides.dim] = static_cast<X>(sum);
  }
};

/// Exchange of a call's rows: `mine` has all rows as this rank computed them, `received` this rank's share of them from
/// every rank.
template <class X, class Exec>
struct RowExchange {
  const char* function;
  const mpi::Communicator<Exec>& comm;
  RowRecords<X> records;
  char* mine     = nullptr;
  char* received = nullptr;

  /// Makes room; throws std::invalid_argument for too many rows.
  void prepare() {
    const std::int64_t all = records.rows();
    require_records(function, all);
    const std::int64_t share = (all + comm.size() - 1) / comm.size();
    const auto bytes         = records.bytes();
    mine                     = comm.shared_memory(static_cast<std::size_t>(all + share * comm.size()) * bytes);
    received                 = mine + static_cast<std::size_t>(all) * bytes;
  }
  std::int64_t first_of_share() const { return comm.ranks().first_of_share(records.rows(), comm.rank()); }
  RowRecords<X> share() const {
    return records.some(comm.ranks().first_of_share(records.rows(), comm.rank() + 1) - first_of_share());
  }
  /// Place of this rank's share.
  char* share_place() const { return mine + static_cast<std::size_t>(first_of_share()) * records.bytes(); }

  /// Exchanges rows; join() enqueues the kernel that makes this rank's share from `received`.
  template <class Join>
  void run(const Join& join) const {
    const std::string fence = std::string("KokkosNN::") + function + ": rows for MPI";
    comm.exec().fence(fence);
    comm.ranks().spread_records(function, mine, received, records.rows(), records.bytes());
    join();
    comm.exec().fence(fence);
    comm.ranks().collect_records(function, mine, records.rows(), records.bytes());
  }
};

/// Joins this rank's share of the rows, then writes all rows where the call's tensors have them.
template <class X, class Exec>
void join_over_ranks(const RowExchange<X, Exec>& rows, const AttentionTensors& tensors,
                     const AttentionCallOptions& options) {
  const Exec& exec          = rows.comm.exec();
  const RowRecords<X> share = rows.share(), &all = rows.records;
  AttentionCallOptions joins;
  joins.masked_row = options.masked_row;
  rows.run([&] {
    merge_attention_call<X, X>(exec,
                               {share.of_parts(share.elements(rows.received), rows.comm.size()),
                                share.of_parts(share.sums(rows.received), rows.comm.size()),
                                share.elements(rows.share_place()), share.sums(rows.share_place())},
                               joins);
  });
  // One part stays as it is.
  joins.sequence_is_second = options.sequence_is_second;
  merge_attention_call<X, X>(exec,
                             {all.of_parts(all.elements(rows.mine, options.sequence_is_second), 1),
                              all.of_parts(all.sums(rows.mine), 1), tensors.o, tensors.lse},
                             joins);
}

template <class X, class Exec>
void sharded_attention(const mpi::Communicator<Exec>& comm, const AttentionTensors& tensors, const mpi::KeyRange& keys,
                       AttentionCallOptions options) {
  constexpr const char* function = "mpi::attention";
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::mpi::attention");
  RowExchange<X, Exec> rows{function, comm, {}};
  prepare_together(function, comm, comm.mpi_transport(), tensors.q, [&] {
    const AttentionShape shape = normalise_attention(function, tensors, options).shape;
    const SharedFacts facts(false, shape, keys.all, element_type<X>(), options);
    place_keys(function, shape, keys.first, keys.all, options);
    rows.records = {shape.batch, shape.heads, shape.queries, shape.value_dim, true};
    if (comm.size() > 1) rows.prepare();
    return facts;
  });
  if (comm.size() == 1) return attention_call<X>(comm.exec(), function, tensors, options);
  if (rows.records.rows() == 0) return;

  AttentionTensors of_rank     = tensors;
  AttentionCallOptions on_rank = options;
  of_rank.o                    = rows.records.elements(rows.mine, options.sequence_is_second);
  of_rank.lse                  = rows.records.sums(rows.mine);
  if (comm.rank() > 0) on_rank.mask.sinks = {};  // which join the sum once
  attention_call<X>(comm.exec(), function, of_rank, on_rank);
  join_over_ranks(rows, tensors, options);
}

template <class X, class Exec>
void sharded_attention_backward(const mpi::Communicator<Exec>& comm, const AttentionGradientTensors& tensors,
                                const mpi::KeyRange& keys, AttentionCallOptions options) {
  constexpr const char* function = "mpi::attention_backward";
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::mpi::attention_backward");
  RowExchange<X, Exec> rows{function, comm, {}};
  AttentionStrides dq_strides;
  prepare_together(function, comm, comm.mpi_transport(), tensors.forward.q, [&] {
    const AttentionGradientLayout layout = normalise_attention_gradient(function, tensors, options);
    const AttentionShape& shape          = layout.forward.shape;
    const SharedFacts facts(true, shape, keys.all, element_type<X>(), options);
    place_keys(function, shape, keys.first, keys.all, options);
    dq_strides   = layout.dq;
    rows.records = {shape.batch, shape.heads, shape.queries, shape.dim, false};
    if (comm.size() > 1) rows.prepare();
    return facts;
  });
  AttentionGradientTensors of_rank = tensors;
  if (comm.size() > 1) of_rank.dq = rows.records.elements(rows.mine, options.sequence_is_second);
  attention_backward_call<X>(comm.exec(), function, of_rank, options);
  if (comm.size() == 1 || rows.records.rows() == 0) return;

  const auto sum = [&](const RowRecords<X>& of, const char* parts, int count, X* sums,
                       const AttentionStrides& strides) {
    const std::int64_t elements = of.rows() * of.dim;
    for_each_row(comm.exec(), "KokkosNN::mpi::attention_backward[sum]", elements,
                 SumOfRanks<X>{reinterpret_cast<const X*>(parts),
                               count,
                               elements,
                               {count, of.batch, of.heads, of.queries, of.dim},
                               sums,
                               strides});
  };
  const RowRecords<X> share = rows.share();
  rows.run(
      [&] { sum(share, rows.received, comm.size(), reinterpret_cast<X*>(rows.share_place()), {0, 0, share.dim, 1}); });
  sum(rows.records, rows.mine, 1, elements_of<X>(tensors.dq), dq_strides);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MPI_ATTENTION_CALL_HPP
