// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_MASK_SUMS_HPP
#define KOKKOSNN_IMPL_GPU_MASK_SUMS_HPP

#include <KokkosNN/impl/call/mask_layout.hpp>
#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/inputs/masked.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Gradients of a bias and of sinks: the logits' gradients dz = y (dy - sum(y dy)) added up over rows, and over columns
// where the result has none.
// Three kernels: the sums of each row; dz, which is stored nowhere, added up in chunks of rows; the chunks added up.
// Chunks depend on the shapes alone, and every sum has one order: no atomics.

namespace KokkosNN::Impl {

/// y and dy of a call, masked; all sums are in double.
template <class Y, class D>
struct MaskTerms {
  const Y* y;
  const D* dy;
  const std::uint8_t* keep;
  ColumnLimits limits;
  MaskSums at;

  /// One row; masked columns have no gradient.
  struct Row {
    const Y* y;
    const D* dy;
    const std::uint8_t* keep;
    ColumnRange allowed;
    const MaskSums& at;

    KOKKOS_INLINE_FUNCTION bool allows(std::int64_t column) const {
      return column >= allowed.begin && column < allowed.end &&
             (keep == nullptr || keep[column * at.keep_col_stride] != 0);
    }
    KOKKOS_INLINE_FUNCTION double y_at(std::int64_t column) const {
      return static_cast<double>(y[column * at.y_col_stride]);
    }
    KOKKOS_INLINE_FUNCTION double dy_at(std::int64_t column) const {
      return static_cast<double>(dy[column * at.dy_col_stride]);
    }
  };

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t k, std::int64_t r) const {
    ColumnLimits::Counts counts = limits.no_counts();
    if (limits.lengths.exist()) counts.length = limits.lengths[at.lengths(k, r)];
    if (limits.offsets.exist()) counts.offset = limits.offsets[at.offsets(k, r)];
    const ColumnRange allowed = limits.allowed([&] { return at.query(k, r); }, counts);
    return {y + at.y(k, r), dy + at.dy(k, r), keep != nullptr ? keep + at.keep(k, r) : nullptr, allowed, at};
  }
};

/// Sum over the threads of a team, and its scratch.
template <int threads>
struct TeamSum {
  static constexpr int scratch_bytes = threads > 1 ? threads* int(sizeof(double)) + 16 : 0;

  /// Adds the threads' values in one order; every thread gets the sum.
  template <class Member>
  KOKKOS_INLINE_FUNCTION static double of(const Member& team, double* slots, double mine) {
    const RowGroup group{team.team_rank(), team.team_size(), 0};
    mine = reduce_lanes(mine, 1, group.lanes(), SumJoin{});
    if (group.warps() == 1) return mine;
    team.team_barrier();  // all threads have read the last sum
    if (group.rank % warp_width() == 0) slots[group.rank / warp_width()] = mine;
    team.team_barrier();
    double sum = 0;
    for (int w = 0; w < group.warps(); ++w) sum += slots[w];
    return sum;
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION static double* slots(const Member& team) {
    return static_cast<double*>(team_scratch(team, 0, threads > 1 ? threads * int(sizeof(double)) : 0));
  }
};

/// Sums of each row: of y dy, and of its dz, whose remainder is the sink's gradient.
template <int threads, class Terms>
struct SumRows {
  Terms terms;
  double* dots;
  double* totals;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    double* const slots = TeamSum<threads>::slots(team);
    for (std::int64_t r = team.league_rank(); r < terms.at.rows(); r += team.league_size()) {
      const auto row = terms.row(r, 0);
      double dot = 0, sum = 0;
      for (std::int64_t c = row.allowed.begin + team.team_rank(); c < row.allowed.end; c += team.team_size()) {
        if (!row.allows(c)) continue;
        const double y = row.y_at(c);
        dot += y * row.dy_at(c);
        sum += y;
      }
      dot = TeamSum<threads>::of(team, slots, dot);
      sum = TeamSum<threads>::of(team, slots, sum);
      if (team.team_rank() == 0) {
        const std::int64_t number = terms.at.row(r, 0);
        dots[number]              = dot;
        totals[number]            = dot * (1.0 - sum);
      }
    }
  }
};

/// Destination of a sum: a part of it, one a chunk, or the result itself if there is only one chunk.
template <class Y>
struct SumResult {
  void* data;
  bool is_float;
  double sign;

  KOKKOS_INLINE_FUNCTION void store(std::int64_t offset, double value) const {
    if constexpr (!std::is_same_v<Y, float>) {
      if (!is_float) {
        static_cast<Y*>(data)[offset] = static_cast<Y>(sign * value);
        return;
      }
    }
    static_cast<float*>(data)[offset] = static_cast<float>(sign * value);
  }
};

/// Sum of chunk c of the reduced rows for each result; a thread has `columns` columns side by side.
template <int threads, int columns, class Terms, class Y>
struct SumChunks {
  static constexpr int tile = threads * columns;

  Terms terms;
  const double* dots;
  const double* totals;
  SumResult<Y> result;
  double* parts;
  std::int64_t chunks;
  std::int64_t tiles;  ///< number of column tiles

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    double* const slots      = TeamSum<threads>::slots(team);
    const std::int64_t total = terms.at.kept * tiles * chunks;
    for (std::int64_t unit = team.league_rank(); unit < total; unit += team.league_size()) {
      const std::int64_t chunk = unit % chunks;
      const std::int64_t place = unit / chunks;
      const std::int64_t kept  = place / tiles;
      const std::int64_t first = terms.at.reduced / chunks * chunk + lesser(chunk, terms.at.reduced % chunks);
      const std::int64_t last  = first + terms.at.reduced / chunks + (chunk < terms.at.reduced % chunks ? 1 : 0);
      if (terms.at.sums_columns) {
        add_totals(team, slots, kept, chunk, first, last);
      } else {
        add_columns(team, kept, place % tiles * tile, chunk, first, last);
      }
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION static std::int64_t lesser(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void add_totals(const Member& team, double* slots, std::int64_t kept, std::int64_t chunk,
                                         std::int64_t first, std::int64_t last) const {
    double sum = 0;
    for (std::int64_t r = first + team.team_rank(); r < last; r += team.team_size()) {
      sum += totals[terms.at.row(kept, r)];
    }
    sum = TeamSum<threads>::of(team, slots, sum);
    if (team.team_rank() == 0) put(kept, 0, chunk, sum);
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void add_columns(const Member& team, std::int64_t kept, std::int64_t start, std::int64_t chunk,
                                          std::int64_t first, std::int64_t last) const {
    double sum[columns]    = {};
    const std::int64_t own = start + team.team_rank();
    for (std::int64_t r = first; r < last; ++r) {
      const auto row   = terms.row(kept, r);
      const double dot = dots[terms.at.row(kept, r)];
      for (int i = 0; i < columns; ++i) {
        const std::int64_t c = own + i * team.team_size();
        if (row.allows(c)) sum[i] += row.y_at(c) * (row.dy_at(c) - dot);
      }
    }
    for (int i = 0; i < columns; ++i) {
      const std::int64_t c = own + i * team.team_size();
      if (c < terms.at.cols) put(kept, c, chunk, sum[i]);
    }
  }

  KOKKOS_INLINE_FUNCTION void put(std::int64_t kept, std::int64_t column, std::int64_t chunk, double sum) const {
    const MaskSums& at = terms.at;
    if (chunks == 1) {
      result.store(at.result(kept) + column * at.result_col_stride, sum);
    } else {
      const std::int64_t width                         = at.sums_columns ? 1 : at.cols;
      parts[(chunk * at.kept + kept) * width + column] = sum;
    }
  }
};

/// Sum of the chunks of each result.
template <class Y>
struct JoinChunks {
  MaskSums at;
  const double* parts;
  std::int64_t chunks;
  SumResult<Y> result;

  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t width = at.sums_columns ? 1 : at.cols;
    double sum               = 0;
    for (std::int64_t c = 0; c < chunks; ++c) sum += parts[c * at.kept * width + i];
    result.store(at.result(i / width) + i % width * at.result_col_stride, sum);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_MASK_SUMS_HPP
