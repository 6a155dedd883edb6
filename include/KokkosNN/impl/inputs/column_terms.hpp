// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_COLUMN_TERMS_HPP
#define KOKKOSNN_IMPL_INPUTS_COLUMN_TERMS_HPP

#include <KokkosNN/impl/gpu/device/memory.hpp>
#include <KokkosNN/impl/gpu/device/pair_tile.hpp>
#include <KokkosNN/impl/inputs/row_map.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/reductions/reduced_state.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// The terms of sums over rows, one sum or several a column. A formula is one struct:
//
//   inputs, row_values   tensors whose rows it reads; values of each row
//   sums                 results a column
//   terms(term, x, value)   the terms of one element: term[sums] of x[inputs] and value[row_values], all in double

namespace KokkosNN::Impl {

/// The elements themselves.
struct ElementTerms {
  static constexpr int inputs     = 1;
  static constexpr int row_values = 0;
  static constexpr int sums       = 1;

  KOKKOS_FORCEINLINE_FUNCTION static void terms(double (&term)[1], const double (&x)[1], const double (&)[1]) {
    term[0] = x[0];
  }
};

/// RMSNorm's gradient by its weight: dy x rstd.
struct RmsNormWeightTerms {
  static constexpr int inputs     = 2;  // x, dy
  static constexpr int row_values = 1;  // rstd
  static constexpr int sums       = 1;

  KOKKOS_FORCEINLINE_FUNCTION static void terms(double (&term)[1], const double (&x)[2], const double (&value)[1]) {
    term[0] = x[1] * (x[0] * value[0]);
  }
};

/// LayerNorm's gradients by its weight, dy (x - mean) rstd, and by its bias, dy.
struct LayerNormWeightTerms {
  static constexpr int inputs     = 2;  // x, dy
  static constexpr int row_values = 2;  // mean, rstd
  static constexpr int sums       = 2;

  KOKKOS_FORCEINLINE_FUNCTION static void terms(double (&term)[2], const double (&x)[2], const double (&value)[2]) {
    term[0] = x[1] * ((x[0] - value[0]) * value[1]);
    term[1] = x[1];
  }
};

/// Rows of T that a formula makes terms of, and the values of each.
template <class FormulaT, class T, class A>
struct TermRows {
  using Formula             = FormulaT;
  using W                   = WideOf<A>;
  static constexpr int sums = Formula::sums;
  /// An array has an element where it has no use.
  static constexpr int values = Formula::row_values > 0 ? Formula::row_values : 1;

  const T* data[Formula::inputs];
  std::int64_t col_stride[Formula::inputs];
  RowMap map[Formula::inputs];
  const A* value[values];
  RowMap value_map[values];

  KOKKOS_INLINE_FUNCTION void load_values(double (&of_row)[values], std::int64_t row) const {
    for (int i = 0; i < values; ++i) of_row[i] = 0;
    for (int i = 0; i < Formula::row_values; ++i) of_row[i] = static_cast<double>(value[i][value_map[i](row)]);
  }

  /// V neighbouring columns of one row, as they were loaded. Without a row all terms are 0.
  template <int V>
  struct Held {
    HeldPack<T, V> pack[Formula::inputs];
    double value[values] = {};

    KOKKOS_INLINE_FUNCTION void clear() {
      for (int i = 0; i < Formula::inputs; ++i) pack[i].clear();
    }

    KOKKOS_INLINE_FUNCTION void load(const TermRows& rows, std::int64_t row, std::int64_t column,
                                     const TileBounds& window) {
      for (int i = 0; i < Formula::inputs; ++i) {
        const MemoryRow<const T, RowForm::strided> memory{rows.data[i] + rows.map[i](row), rows.col_stride[i]};
        const auto columns = memory.template from<V>(column);
        if (columns.whole_packs && window.has_pack<V>(0)) {
          pack[i].load(columns.base, columns.policy);
        } else {
          pack[i].hold(columns.template load_pack<V>(0, window, T(0)));
        }
      }
      rows.load_values(value, row);
    }

    KOKKOS_INLINE_FUNCTION void add_to(Pack<W, V> (&sum)[sums]) const {
      Pack<T, V> raw[Formula::inputs];
      for (int i = 0; i < Formula::inputs; ++i) pack[i].show([&](const Pack<T, V>& elements) { raw[i] = elements; });
      for (int v = 0; v < V; ++v) {
        double x[Formula::inputs], term[sums];
        for (int i = 0; i < Formula::inputs; ++i) x[i] = static_cast<double>(static_cast<A>(raw[i][v]));
        Formula::terms(term, x, value);
        for (int s = 0; s < sums; ++s) sum[s][v] = sum[s][v] + W{term[s]};
      }
    }
  };
};

/// Sums of the chunks of rows, one chunk a row.
template <class WT>
struct PartRows {
  using W                   = WT;
  static constexpr int sums = 1;

  const W* parts;
  std::int64_t stride;  ///< between the chunks

  template <int V>
  struct Held {
    Pack<W, V> part;

    KOKKOS_INLINE_FUNCTION void clear() { part = filled<W, V>(W{}); }
    KOKKOS_INLINE_FUNCTION void load(const PartRows& rows, std::int64_t row, std::int64_t column,
                                     const TileBounds& window) {
      clear();
      const W* const first = rows.parts + row * rows.stride + column;
      for (int v = 0; v < V; ++v) {
        if (v < window.end) part[v] = first[v];
      }
    }
    KOKKOS_INLINE_FUNCTION void add_to(Pack<W, V> (&sum)[1]) const {
      for (int v = 0; v < V; ++v) sum[0][v] = sum[0][v] + part[v];
    }
  };
};

/// Destination of a sum: results of T or of the accumulator's type, or null; while there are several chunks, the sum of
/// each, W.
template <class T, class A, int sums>
struct ColumnResults {
  using W = WideOf<A>;

  struct Result {
    void* data          = nullptr;
    bool is_accumulator = false;
    std::int64_t stride = 1;
  };

  Result result[sums];
  W* parts;  ///< [chunk][sum][column]; null: these are results
  std::int64_t cols;

  KOKKOS_INLINE_FUNCTION void store(std::int64_t chunk, int s, std::int64_t column, const W& sum) const {
    if (parts != nullptr) {
      parts[(chunk * sums + s) * cols + column] = sum;
    } else {
      for (int i = 0; i < sums; ++i) {
        if (i == s) store_result(result[i], column, static_cast<A>(rounded(sum)));
      }
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION static void store_result(const Result& to, std::int64_t column, A sum) {
    if (to.data == nullptr) return;
    if constexpr (!std::is_same_v<T, A>) {
      if (!to.is_accumulator) {
        static_cast<T*>(to.data)[column * to.stride] = static_cast<T>(sum);
        return;
      }
    }
    static_cast<A*>(to.data)[column * to.stride] = sum;
  }
};

/// Results of the sums of chunks: the columns of all sums are one row of them.
template <class Results>
struct JoinedResults {
  using W = typename Results::W;

  Results results;

  KOKKOS_INLINE_FUNCTION void store(std::int64_t, int, std::int64_t column, const W& sum) const {
    const std::int64_t s = column / results.cols;
    results.store(0, static_cast<int>(s), column - s * results.cols, sum);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_COLUMN_TERMS_HPP
