// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_SEGMENTED_LSE_BACKWARD_HPP
#define KOKKOSNN_IMPL_GPU_SEGMENTED_LSE_BACKWARD_HPP

#include <KokkosNN/impl/gpu/device/warp.hpp>
#include <KokkosNN/impl/inputs/row_offsets.hpp>
#include <KokkosNN/impl/inputs/segments.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>
#include <KokkosNN/impl/reductions/row_sum.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace KokkosNN::Impl {

/// Elements of a head that a team takes: few rows to look up, and many teams. Untuned.
inline constexpr int lse_gradient_share         = 2048;
inline constexpr int lse_gradient_share_on_host = 4096;

/// Gradient of a log-sum-exp of ragged rows. Each element depends on itself and on two values of its row, so teams
/// share the elements evenly, however long rows are, and look up which rows these belong to.
template <class Params, class T>
struct SegmentedLseBackward {
  using A           = typename Params::accumulator;
  using RowEpilogue = typename Epilogue<RowOperator::logsumexp_backward>::template Row<Params, A>;

  Params params;
  RowOffsets offsets;
  std::int64_t rows;
  std::int64_t elements;  ///< of a head
  std::int64_t share;     ///< elements that a team takes, of one head
  Divisor shares;         ///< teams a head
  Values<const T> x;
  Values<const T> lse;
  Values<const T> dlse;
  Values<T> dx;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const std::int64_t head  = shares.quotient(team.league_rank());
    const std::int64_t begin = (team.league_rank() - head * shares.value) * share;
    const std::int64_t end   = begin + share < elements ? begin + share : elements;
    const OfHead of{x.of_head(head), lse.of_head(head), dlse.of_head(head), dx.of_head(head)};
    // The last row that begins at or before an element has it, if it reaches so far: others before it are empty.
    const std::int64_t first = rows_before(offsets, rows, begin + 1) - 1;
    if constexpr (warp_width() > 1) {
      const std::int64_t last = rows_before(offsets, rows, end) - 1;
      for (std::int64_t i = begin + team.team_rank(); i < end; i += team.team_size()) {
        const std::int64_t row = row_of(i, first, last);
        if (row >= 0 && i < offsets[row + 1]) of.store(i, epilogue_of(of, row), params);
      }
    } else if (team.team_rank() == 0) {
      store_rows(of, begin, end, first);
    }
  }

 private:
  /// Values of one head.
  struct OfHead {
    Values<const T> x, lse, dlse;
    Values<T> dx;

    KOKKOS_INLINE_FUNCTION void store(std::int64_t i, const RowEpilogue& epilogue, const Params& of_call) const {
      dx[i] = static_cast<T>(epilogue(of_call, static_cast<A>(x[i])));
    }
  };

  KOKKOS_INLINE_FUNCTION RowEpilogue epilogue_of(const OfHead& of, std::int64_t row) const {
    return RowEpilogue(params, RowScalars<A>{static_cast<A>(of.lse[row]), static_cast<A>(of.dlse[row])});
  }

  /// The last of the rows `first` to `last` that begins at or before element i; `first` does, or is -1.
  KOKKOS_INLINE_FUNCTION std::int64_t row_of(std::int64_t i, std::int64_t first, std::int64_t last) const {
    while (first < last) {
      const std::int64_t middle = first + (last - first + 1) / 2;
      const bool is_before      = offsets[middle] <= i;
      first                     = is_before ? middle : first;
      last                      = is_before ? last : middle - 1;
    }
    return first;
  }

  /// Row by row, for one thread.
  KOKKOS_INLINE_FUNCTION void store_rows(const OfHead& of, std::int64_t begin, std::int64_t end,
                                         std::int64_t first) const {
    for (std::int64_t row = first < 0 ? 0 : first; row < rows; ++row) {
      const std::int64_t row_begin = offset_inside(offsets[row], elements);
      if (row_begin >= end) return;
      const std::int64_t row_end = offset_inside(offsets[row + 1], elements);
      const std::int64_t from = row_begin > begin ? row_begin : begin, to = row_end < end ? row_end : end;
      if (from >= to) continue;
      const RowEpilogue epilogue = epilogue_of(of, row);
      for (std::int64_t i = from; i < to; ++i) of.store(i, epilogue, params);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_SEGMENTED_LSE_BACKWARD_HPP
