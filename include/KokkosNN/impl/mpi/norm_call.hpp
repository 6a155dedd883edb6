// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_NORM_CALL_HPP
#define KOKKOSNN_IMPL_MPI_NORM_CALL_HPP

#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/operand_call.hpp>
#include <KokkosNN/impl/mpi/call.hpp>
#include <KokkosNN/impl/mpi/communicator.hpp>
#include <KokkosNN/impl/mpi/norm_launch.hpp>
#include <KokkosNN/impl/mpi/row_blocks.hpp>
#include <KokkosNN/instantiations/sharded_norm.hpp>

#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cstdint>
#include <string>
#include <tuple>

// The body of a norm of mpi.hpp.

namespace KokkosNN::Impl {

/// The tensors of a block of rows.
inline Tensors block_of(RowOperator op, const RowBlocks& blocks, const Tensors& tensors, std::int64_t block) {
  const Operands operands = operands_of(op);
  Tensors part            = tensors;
  for (int t = 0; t < operands.count; ++t) {
    if (!tensors[t].exists()) continue;
    if (operands.of[t].extents == Extents::rows) part[t] = blocks.of_rows(tensors[t], block);
    if (operands.of[t].extents == Extents::row_values) part[t] = blocks.of_values(tensors[t], block);
  }
  return part;
}

template <class Views, class Exec>
void sharded_norm_of(const mpi::Communicator<Exec>& comm, const Tensors& tensors,
                     const typename Views::Options& options) {
  constexpr RowOperator op   = Views::op;
  using Sharded              = ShardedNorm<Exec, op, typename Views::T>;
  const std::string name     = std::string("mpi::") + to_string(op);
  const char* const function = name.c_str();
  const Kokkos::Profiling::ScopedRegion region("KokkosNN::" + name);

  RowsLayout whole;
  RowBlocks blocks;
  typename Sharded::State* states = nullptr;
  typename Sharded::Made* made    = nullptr;
  prepare_together(function, comm, comm.transport(), tensors[0], [&] {
    refuse_plan(function, options.plan);
    whole  = normalise(function, op, tensors, options);
    blocks = RowBlocks(tensors[0], options.axis);
    blocks.cut(comm.block_of(blocks.outer(), blocks.inner()));
    states = comm.template pairs<typename Sharded::State>(blocks.all_rows() * Sharded::Shard::a_row);
    made   = states_of<typename Sharded::Made>(comm, blocks.all_rows());
    return SharedFacts(op, blocks, options);
  });
  // Ahead of the rows: dx may be written where x or dy is read.
  Sharded::sum_weight_gradients(comm.exec(), whole, tensors);
  if (blocks.all_rows() == 0) return;

  in_blocks(
      function, comm, blocks, states, Sharded::Shard::a_row,
      [&](std::int64_t block) {
        const Tensors part = block_of(op, blocks, tensors, block);
        Sharded::reduce(comm.exec(), layout_of_shard(op, blocks.axis(), part), part, options,
                        states + blocks.first_row(block) * Sharded::Shard::a_row);
      },
      [&](std::int64_t block, const RankStates<typename Sharded::State>& merged) {
        const Tensors part = block_of(op, blocks, tensors, block);
        Sharded::epilogue(comm.exec(), layout_of_shard(op, blocks.axis(), part), part, options, merged,
                          made + blocks.first_row(block));
      });
}

/// As operand_call, of rows that ranks share.
template <RowOperator op, class Exec, class Options, class Rows, class Output, class Columns, class Values,
          class Results = std::tuple<>>
void sharded_norm(const mpi::Communicator<Exec>& comm, const Options& options, const Rows& rows, const Output& output,
                  const Columns& columns, const Values& values, const Results& results = {}) {
  using Views = OperandViews<op, Rows, Output, Columns, Values, Results>;
  Views::template check<Exec>();
  sharded_norm_of<Views>(comm, Views::tensors(rows, output, columns, values, results), options);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MPI_NORM_CALL_HPP
