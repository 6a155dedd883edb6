// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ATTENTION_MERGE_HPP
#define KOKKOSNN_IMPL_GPU_ATTENTION_MERGE_HPP

#include <KokkosNN/impl/attention_shapes.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/online.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Results of attention over disjoint keys, joined, on a GPU and on a host: a part's weight is exp(lse of the part - lse
// of all). A thread takes some neighbouring elements of a row, and the parts in their order. Of many parts a team takes
// a row: its threads share out the parts, too.

namespace KokkosNN::Impl {

/// Tensors of the parts, of P, and of the result, of X.
template <class P, class X>
struct AttentionMergeData {
  using A = accumulator_t<X>;

  AttentionMergeShape shape;
  const P* o_parts;
  const A* lse_parts;
  X* o;
  A* lse;  ///< null where it is not wanted
  AttentionStrides o_parts_strides;
  AttentionStrides lse_parts_strides;
  AttentionStrides o_strides;
  AttentionStrides lse_strides;
  std::int64_t o_part_stride;
  std::int64_t lse_part_stride;
  A of_masked_rows;
  TypedPointer<X> sinks;
  std::int64_t sink_stride;

  KOKKOS_FORCEINLINE_FUNCTION void store(const ScoreRow& row, std::int64_t d, A result) const {
    o[row.in(o_strides) + d * o_strides.dim] = static_cast<X>(result);
  }
};

/// Tensors of a merge whose results pass through an epilogue.
template <class P, class X, class Epilogue>
struct AttentionMergeDataWith : AttentionMergeData<P, X> {
  Epilogue epilogue;

  KOKKOS_FORCEINLINE_FUNCTION void store(const ScoreRow& row, std::int64_t d, accumulator_t<X> result) const {
    epilogue.store(row, d, result);
  }
};

/// `width` is the number of elements that a thread takes.
template <class P, class X, int width, class Data = AttentionMergeData<P, X>>
struct AttentionMerge {
  using A = accumulator_t<X>;

  Data data;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const AttentionMergeShape& shape = data.shape;
    const std::int64_t chunks        = (shape.dim + width - 1) / width;
    const std::int64_t all           = shape.batch * shape.heads * shape.queries * chunks;
    const auto size                  = static_cast<std::int64_t>(team.team_size());
    for (std::int64_t i = team.league_rank() * size + team.team_rank(); i < all; i += team.league_size() * size) {
      const std::int64_t row = i / chunks, head = row / shape.queries, batch = head / shape.heads;
      merge_row({batch, head % shape.heads, row % shape.queries, batch}, i % chunks * width);
    }
  }

 private:
  KOKKOS_FUNCTION void merge_row(const ScoreRow& row, std::int64_t first) const {
    const A* const lse = data.lse_parts + row.in(data.lse_parts_strides);
    MaxSumExp<A> state;
    for (std::int64_t p = 0; p < data.shape.parts; ++p) state.push(lse[p * data.lse_part_stride]);
    if (data.sinks.exists()) state.push(data.sinks.template load<A>(row.head * data.sink_stride));
    if (data.lse != nullptr && first == 0) data.lse[row.in(data.lse_strides)] = state.lse();

    const std::int64_t left = data.shape.dim - first;
    const int count         = left < width ? static_cast<int>(left) : width;
    A sum[width]            = {};
    for (std::int64_t p = 0; p < data.shape.parts; ++p) {
      const A weight = Kokkos::exp(lse[p * data.lse_part_stride] - finite_reference(state.max));
      if (weight != A(0)) add(weight, row, p, first, count, sum);  // a part without a weight is not looked at
    }
    const bool is_masked = state.sum == A(0);
    KOKKOSNN_IMPL_UNROLL
    for (int d = 0; d < width; ++d) {
      if (d < count) data.store(row, first + d, is_masked ? data.of_masked_rows : sum[d] / state.sum);
    }
  }

  KOKKOS_FUNCTION void add(A weight, const ScoreRow& row, std::int64_t part, std::int64_t first, int count,
                           A (&sum)[width]) const {
    const std::int64_t stride = data.o_parts_strides.dim;
    const P* const o = data.o_parts + row.in(data.o_parts_strides) + part * data.o_part_stride + first * stride;
    if (count == width && stride == 1) {
      KOKKOSNN_IMPL_UNROLL
      for (int d = 0; d < width; ++d) sum[d] = multiply_add(weight, static_cast<A>(o[d]), sum[d]);
    } else {
      KOKKOSNN_IMPL_UNROLL
      for (int d = 0; d < width; ++d) {
        if (d < count) sum[d] = multiply_add(weight, static_cast<A>(o[d * stride]), sum[d]);
      }
    }
  }
};

/// As AttentionMerge, a row a team. Groups of threads take every `groups`-th part each, `unroll` of them at a time;
/// their sums are added in order.
template <class P, class X, int width, int unroll, class Data = AttentionMergeData<P, X>>
struct AttentionMergeInTeam {
  using A     = accumulator_t<X>;
  using State = MaxSumExp<A>;

  Data data;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const AttentionMergeShape& shape = data.shape;
    const std::int64_t rows          = shape.batch * shape.heads * shape.queries;
    constexpr int bytes              = attention_merge_scratch<A>;  // taken by reference
    auto* const scratch              = static_cast<A*>(team.team_scratch(0).get_shmem_aligned(bytes, alignof(A)));
    for (std::int64_t row = team.league_rank(); row < rows; row += team.league_size()) {
      const std::int64_t head = row / shape.queries, batch = head / shape.heads;
      merge_row(team, {batch, head % shape.heads, row % shape.queries, batch}, scratch);
    }
  }

 private:
  template <class Member>
  KOKKOS_FUNCTION void merge_row(const Member& team, const ScoreRow& row, A* scratch) const {
    const int rank    = static_cast<int>(team.team_rank());
    const State state = state_of(team, row, scratch);
    const int threads = threads_of_chunks(), groups = attention_team_size / threads;
    const A reference  = finite_reference(state.max);
    const bool is_none = state.sum == A(0);
    if (data.lse != nullptr && rank == 0) data.lse[row.in(data.lse_strides)] = state.lse();
    for (std::int64_t first = 0; first < data.shape.dim; first += std::int64_t(threads) * width) {
      A sum[width]         = {};
      const std::int64_t d = first + rank % threads * width;
      if (rank < groups * threads) add_parts(row, rank / threads, groups, d, reference, sum);
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < width; ++i) scratch[rank * width + i] = sum[i];
      team.team_barrier();
      for (int i = rank; i < threads * width && first + i < data.shape.dim; i += attention_team_size) {
        A all = 0;
        for (int g = 0; g < groups; ++g) all += scratch[g * threads * width + i];
        data.store(row, first + i, is_none ? data.of_masked_rows : all / state.sum);
      }
      team.team_barrier();
    }
  }
  /// Threads that a row's elements take, a divisor of the team.
  KOKKOS_FUNCTION int threads_of_chunks() const {
    int threads = 1;
    while (threads < attention_team_size && threads * width < data.shape.dim) threads *= 2;
    return threads;
  }

  template <class Member>
  KOKKOS_FUNCTION State state_of(const Member& team, const ScoreRow& row, A* scratch) const {
    const int rank     = static_cast<int>(team.team_rank());
    const A* const lse = data.lse_parts + row.in(data.lse_parts_strides);
    State state;
    for (std::int64_t p = rank; p < data.shape.parts; p += attention_team_size) {
      state.push(lse[p * data.lse_part_stride]);
    }
    int most = 1;
    while (2 * most < attention_team_size && 2 * most < data.shape.parts) most *= 2;
    for (int other = most; other > 0; other /= 2) {
      if (rank >= other && rank < 2 * other) {
        scratch[2 * rank]     = state.max;
        scratch[2 * rank + 1] = state.sum;
      }
      team.team_barrier();
      if (rank < other) {
        State of_other;
        of_other.max = scratch[2 * (rank + other)];
        of_other.sum = scratch[2 * (rank + other) + 1];
        state        = merge(state, of_other);
      }
    }
    if (rank == 0) {
      if (data.sinks.exists()) state.push(data.sinks.template load<A>(row.head * data.sink_stride));
      scratch[0] = state.max;
      scratch[1] = state.sum;
    }
    team.team_barrier();
    state.max = scratch[0];
    state.sum = scratch[1];
    team.team_barrier();
    return state;
  }

  KOKKOS_FUNCTION void add_parts(const ScoreRow& row, int group, int groups, std::int64_t first, A reference,
                                 A (&sum)[width]) const {
    const std::int64_t left = data.shape.dim - first;
    if (left <= 0) return;
    const int count         = left < width ? static_cast<int>(left) : width;
    const std::int64_t step = data.o_parts_strides.dim;
    const A* const lse      = data.lse_parts + row.in(data.lse_parts_strides);
    const P* const o        = data.o_parts + row.in(data.o_parts_strides) + first * step;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t part = group; part < data.shape.parts; part += std::int64_t(groups) * unroll) {
      A weight[unroll], values[unroll][width];
      KOKKOSNN_IMPL_UNROLL
      for (int n = 0; n < unroll; ++n) {
        const std::int64_t p = part + n * groups;
        weight[n]            = p < data.shape.parts ? Kokkos::exp(lse[p * data.lse_part_stride] - reference) : A(0);
        KOKKOSNN_IMPL_UNROLL
        for (int i = 0; i < width; ++i) {  // a part without a weight is not looked at
          values[n][i] = weight[n] != A(0) && i < count ? static_cast<A>(o[p * data.o_part_stride + i * step]) : A(0);
        }
      }
      KOKKOSNN_IMPL_UNROLL
      for (int n = 0; n < unroll; ++n) {
        KOKKOSNN_IMPL_UNROLL
        for (int i = 0; i < width; ++i) sum[i] = multiply_add(weight[n], values[n][i], sum[i]);
      }
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ATTENTION_MERGE_HPP
