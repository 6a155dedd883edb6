// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_COLUMN_SUMS_HPP
#define KOKKOSNN_IMPL_HOST_COLUMN_SUMS_HPP

#include <KokkosNN/impl/gpu/column_sums.hpp>
#include <KokkosNN/impl/inputs/column_terms.hpp>
#include <KokkosNN/impl/math/double_double.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// A host's sums over rows. A thread has a chunk of rows and a tile of columns, whose sums stay in a first-level cache.
// It adds a column's rows in their order, so that a sum's order depends on the number of rows alone, as on a GPU; but
// where rows are neighbours in memory, lanes of rows are added beside each other.

namespace KokkosNN::Impl {

/// n sums side by side, double or double-double: words apart, so that loops over them are vectorised.
template <class W, int n>
struct HostColumnSums {
  static constexpr bool has_low = !std::is_same_v<W, double>;

  double high[n];
  double low[has_low ? n : 1];

  void clear() {
    for (double& word : high) word = 0;
    for (double& word : low) word = 0;
  }
  void add(std::int64_t i, double term) {
    if constexpr (has_low) {
      const double sum  = high[i] + term;
      const double back = sum - high[i];
      low[i] += (high[i] - (sum - back)) + (term - back);
      high[i] = sum;
    } else {
      high[i] += term;
    }
  }
  void add(std::int64_t i, const W& part)
    requires(has_low)
  {
    const W sum = (*this)[i] + part;
    high[i]     = sum.high;
    low[i]      = sum.low;
  }
  W operator[](std::int64_t i) const {
    if constexpr (has_low) return {high[i], low[i]};
    return W{high[i]};
  }
};

/// Shape of the loops: columns of a tile, rows that are looked up at a time, and lanes of rows.
struct HostColumnSumShape {
  static constexpr int tile  = 512;
  static constexpr int rows  = 64;
  static constexpr int lanes = 8;
};

/// Rows that a host reads of a source of terms.
template <class Source>
struct HostColumnTerms;

template <class Formula, class T, class A>
struct HostColumnTerms<TermRows<Formula, T, A>> {
  using Source                = TermRows<Formula, T, A>;
  using W                     = typename Source::W;
  using Shape                 = HostColumnSumShape;
  static constexpr int inputs = Formula::inputs;
  static constexpr int sums   = Formula::sums;

  const Source& source;

  /// Adds rows [begin, end) to the sums of the columns from `start` on, row by row.
  template <class Sums>
  void add_rows(Sums (&sum)[sums], std::int64_t begin, std::int64_t end, std::int64_t start, int columns) const {
    bool is_unit = true;
    for (const std::int64_t stride : source.col_stride) is_unit = is_unit && stride == 1;
    for (std::int64_t r = begin; r < end; ++r) {
      double value[Source::values];
      source.load_values(value, r);
      const T* x[inputs];
      for (int i = 0; i < inputs; ++i) x[i] = source.data[i] + source.map[i](r) + start * source.col_stride[i];
      const auto stride_of = [&](int i) { return source.col_stride[i]; };
      if (is_unit) {
        add_row(sum, x, value, columns, [](int) { return std::integral_constant<int, 1>{}; });
      } else {
        add_row(sum, x, value, columns, stride_of);
      }
    }
  }

  /// Adds them column by column, where a column's rows lie closer together than a row's columns.
  template <class Sums>
  void add_columns(Sums (&sum)[sums], std::int64_t begin, std::int64_t end, std::int64_t start, int columns) const {
    for (std::int64_t first = begin; first < end; first += Shape::rows) {
      const int count = end - first < Shape::rows ? static_cast<int>(end - first) : Shape::rows;
      Block block;
      look_up(block, first, count);
      for (int c = 0; c < columns; ++c) add_column(sum, block, start + c, c, count);
    }
  }

 private:
  template <class Sums, class StrideOf>
  static void add_row(Sums (&sum)[sums], const T* const (&x)[inputs], const double (&value)[Source::values],
                      int columns, const StrideOf& stride_of) {
    for (int c = 0; c < columns; ++c) {
      double element[inputs], term[sums];
      for (int i = 0; i < inputs; ++i) element[i] = static_cast<double>(static_cast<A>(x[i][c * stride_of(i)]));
      Formula::terms(term, element, value);
      for (int s = 0; s < sums; ++s) sum[s].add(c, term[s]);
    }
  }

  /// Some rows: where they begin, and their values.
  struct Block {
    const T* x[inputs][Shape::rows];
    double value[Source::values][Shape::rows];
    bool are_neighbours[inputs];  ///< elements of a column, in memory
  };

  void look_up(Block& block, std::int64_t first, int count) const {
    for (int r = 0; r < count; ++r) {
      double value[Source::values];
      source.load_values(value, first + r);
      for (int i = 0; i < Source::values; ++i) block.value[i][r] = value[i];
      for (int i = 0; i < inputs; ++i) block.x[i][r] = source.data[i] + source.map[i](first + r);
    }
    for (int i = 0; i < inputs; ++i) {
      block.are_neighbours[i] = true;
      for (int r = 0; r < count; ++r) block.are_neighbours[i] &= block.x[i][r] == block.x[i][0] + r;
    }
  }

  template <class Sums>
  void add_column(Sums (&sum)[sums], const Block& block, std::int64_t column, int c, int count) const {
    double x[inputs][Shape::rows];
    for (int i = 0; i < inputs; ++i) {
      const std::int64_t offset = column * source.col_stride[i];
      if (block.are_neighbours[i]) {
        const T* const from = block.x[i][0] + offset;
        for (int r = 0; r < count; ++r) x[i][r] = static_cast<double>(static_cast<A>(from[r]));
      } else {
        for (int r = 0; r < count; ++r) x[i][r] = static_cast<double>(static_cast<A>(block.x[i][r][offset]));
      }
      for (int r = count; r < Shape::rows; ++r) x[i][r] = 0;
    }
    HostColumnSums<W, Shape::lanes> lanes[sums];
    for (auto& lane : lanes) lane.clear();
    for (int first = 0; first < count; first += Shape::lanes) {
      for (int l = 0; l < Shape::lanes; ++l) {
        const int r = first + l;
        double element[inputs], value[Source::values], term[sums];
        for (int i = 0; i < inputs; ++i) element[i] = x[i][r];
        for (int i = 0; i < Source::values; ++i) value[i] = r < count ? block.value[i][r] : 0;
        Formula::terms(term, element, value);
        for (int s = 0; s < sums; ++s) lanes[s].add(l, term[s]);
      }
    }
    for (int s = 0; s < sums; ++s) {
      for (int l = 0; l < Shape::lanes; ++l) sum[s].add(c, lanes[s][l]);
    }
  }
};

template <class W>
struct HostColumnTerms<PartRows<W>> {
  const PartRows<W>& source;

  template <class Sums>
  void add_rows(Sums (&sum)[1], std::int64_t begin, std::int64_t end, std::int64_t start, int columns) const {
    for (std::int64_t r = begin; r < end; ++r) {
      const W* const part = source.parts + r * source.stride + start;
      for (int c = 0; c < columns; ++c) sum[0].add(c, part[c]);
    }
  }
  template <class Sums>
  void add_columns(Sums (&sum)[1], std::int64_t begin, std::int64_t end, std::int64_t start, int columns) const {
    add_rows(sum, begin, end, start, columns);
  }
};

template <class Source, class Output>
struct HostSumColumns {
  using W                   = typename Source::W;
  static constexpr int sums = Source::sums;
  static constexpr int tile = HostColumnSumShape::tile;

  Source source;
  Output output;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t chunks;
  bool rows_fastest;

  template <class Member>
  void operator()(const Member& team) const {
    const HostColumnTerms<Source> terms{source};
    const std::int64_t tiles = (cols + tile - 1) / tile;
    for (std::int64_t unit = team.league_rank(); unit < chunks * tiles; unit += team.league_size()) {
      const std::int64_t chunk = unit / tiles, start = unit % tiles * tile;
      const int columns  = cols - start < tile ? static_cast<int>(cols - start) : tile;
      const RowChunk has = RowChunk::of(chunk, chunks, rows);
      HostColumnSums<W, tile> sum[sums];
      for (auto& of_columns : sum) of_columns.clear();
      if (rows_fastest) {
        terms.add_columns(sum, has.begin, has.end, start, columns);
      } else {
        terms.add_rows(sum, has.begin, has.end, start, columns);
      }
      for (int s = 0; s < sums; ++s) {
        for (int c = 0; c < columns; ++c) output.store(chunk, s, start + c, sum[s][c]);
      }
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_COLUMN_SUMS_HPP
