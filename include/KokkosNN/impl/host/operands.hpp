// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_OPERANDS_HPP
#define KOKKOSNN_IMPL_HOST_OPERANDS_HPP

#include <KokkosNN/impl/gpu/placement/operands.hpp>
#include <KokkosNN/impl/host/operand_reductions.hpp>
#include <KokkosNN/impl/host/row_writer.hpp>
#include <KokkosNN/impl/host/rows.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/inputs/operands.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

// Placement in HostRows of any operator that is a struct (inputs/operands.hpp). Nothing is kept of a row: a piece is in
// the first-level cache when it is read again.

namespace KokkosNN::Impl {

/// Vector as it is once it was stored as elements of T.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION Loaded<T> as_stored(const Loaded<T>& v) {
  if constexpr (!is_half<T>) {
    return v;
  } else {
    T each[lanes_loaded<T>];
    store_vector(each, v);
    return load_vector(each);
  }
}

/// A column operand from a piece's first column on. Of the pointers one is set at most, none if there is no operand.
template <class T, class A>
struct HostColumns {
  const A* accumulators              = nullptr;
  const T* elements                  = nullptr;
  A missing                          = {};
  const ColumnOperand<T, A>* strided = nullptr;  ///< columns that are not neighbours
  std::int64_t begin                 = 0;

  HostColumns() = default;
  KOKKOS_FORCEINLINE_FUNCTION HostColumns(const ColumnOperand<T, A>& operand, std::int64_t first)
      : missing(operand.missing), begin(first) {
    if (!operand.data.exists()) return;
    if (operand.stride != 1) {
      strided = &operand;
    } else if (std::is_same_v<T, A> || (std::is_same_v<A, float> && operand.data.is_float)) {
      accumulators = static_cast<const A*>(operand.data.data) + first;
    } else {
      elements = static_cast<const T*>(operand.data.data) + first;
    }
  }

  /// The n elements from number i on, at most a vector.
  KOKKOS_FORCEINLINE_FUNCTION Vector<A> load(int i, int n) const {
    if (accumulators != nullptr) return load_up_to(accumulators + i, n);
    if constexpr (!std::is_same_v<T, A>) {
      if (elements != nullptr) return load_up_to(elements + i, n);
    }
    return strided != nullptr ? load_one_by_one(i, n) : splat<Vector<A>>(missing);
  }

 private:
  [[gnu::noinline]] Vector<A> load_one_by_one(int i, int n) const {
    A each[simd_width<A>] = {};
    for (int l = 0; l < n; ++l) each[l] = strided->load_one(begin + i + l);
    return load_vector(each);
  }
};

/// Vectors of a piece of a row and of the column operands. `has_late`: of the rows that only the epilogue reads, too.
/// `is_loaded`: the row's elements are accumulators, and summed already if they have to be.
template <class Operator, class T, bool has_late, bool is_loaded = false>
struct HostOperandVectors {
  using A                      = typename Operator::accumulator;
  static constexpr int columns = Operator::column_inputs;
  static constexpr int held    = held_rows<Operator>;
  static constexpr int shown   = held + (has_late ? Operator::late_inputs : 0);

  using X = std::conditional_t<is_loaded, A, T>;

  const X* input[Operator::row_inputs];
  HostColumns<T, A> column[columns];

  template <class Row, class Params>
  KOKKOS_FORCEINLINE_FUNCTION HostOperandVectors(const Row& row, const Params& params, std::int64_t first)
    requires(!is_loaded)
  {
    for (int i = 0; i < columns; ++i) column[i] = HostColumns<T, A>(params.columns[i], first);
    for (int i = 0; i < Operator::row_inputs; ++i) input[i] = row.input[i].base + first;
  }

  /// Takes `shown` rows that were loaded.
  template <class Params>
  KOKKOS_FORCEINLINE_FUNCTION HostOperandVectors(const A* const* rows, const Params& params, std::int64_t first)
    requires(is_loaded)
  {
    for (int i = 0; i < columns; ++i) column[i] = HostColumns<T, A>(params.columns[i], first);
    for (int i = 0; i < shown; ++i) input[i] = rows[i];
  }

  /// f(x..., columns...) of the n elements from number i on.
  template <class F>
  KOKKOS_FORCEINLINE_FUNCTION auto apply(int i, int n, const F& f) const {
    return apply(i, n, f, std::make_index_sequence<shown>{}, std::make_index_sequence<columns>{});
  }

  /// Elements of a row that is shown: of the first one they are the sum of two if the operator takes that.
  KOKKOS_FORCEINLINE_FUNCTION Vector<A> row(int number, int i, int n) const {
    const Vector<A> x = load_up_to(input[number] + i, n);
    if constexpr (Operator::sums_inputs && !is_loaded) {
      return as_stored<T>(x + load_up_to(input[1] + i, n));
    } else {
      return x;
    }
  }

 private:
  template <class F, std::size_t... r, std::size_t... c>
  KOKKOS_FORCEINLINE_FUNCTION auto apply(int i, int n, const F& f, std::index_sequence<r...>,
                                         std::index_sequence<c...>) const {
    return f(row(static_cast<int>(r), i, n)..., column[c].load(i, n)...);
  }
};

/// Placement of an operator's rows.
template <class Operator, class T, int V>
struct HostOperands : HostPlacementDefaults {
  using A      = typename Operator::accumulator;
  using AnyRow = OperandOnlinePlacement<Operator, T, V, 2>;

  template <class Row, class Params>
  KOKKOS_FORCEINLINE_FUNCTION A load(const Row&, const Piece&, A*, const Params&) const {
    return A(0);
  }

  template <class Row, class Params>
  KOKKOS_FORCEINLINE_FUNCTION typename Params::State reduce(const Row& row, const Piece& piece, A*,
                                                            const Params& params, A, NextPiece<A>&) const {
    if (!are_neighbours(row)) return AnyRow(nullptr, RowGroup::alone()).reduce(row, piece.part(), params, 1);
    const HostOperandVectors<Operator, T, false> vectors(row, params, piece.begin);
    return {HostReduction<typename Operator::Reduction>::template of<Operator>(vectors, piece.count, params.own,
                                                                               row.scalars)};
  }

  /// Writes what the row has beside its elements with its first piece.
  template <class Row, class OutputRow, class Params, class RowEpilogue, class Writer>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Row& row, const OutputRow& output, const Piece& piece, A*,
                                         const Params& params, const RowEpilogue& total, Writer& writer) const {
    if (!are_neighbours(row) || !are_neighbours_in(output)) {
      return AnyRow(nullptr, RowGroup::alone()).write(row, output, piece.part(), params, total);
    }
    const auto epilogue = total.of(params, row.scalars);
    if (piece.begin == 0) output.store_values(epilogue);
    if constexpr (writes_rows_of_its_own) {
      const HostOperandVectors<Operator, T, true> vectors(row, params, piece.begin);
      const SumRow sum(output, piece.begin, writer.nontemporal_stores());
      writer.write(output.base + piece.begin, piece.count, [&](int i, int n) KOKKOSNN_IMPL_INLINED {
        return vectors.apply(i, n, [&](const auto& x, const auto&... others) KOKKOSNN_IMPL_INLINED {
          sum.store(i, x, n);
          return epilogue(x, others...);
        });
      });
    }
  }

 private:
  static constexpr bool writes_rows_of_its_own = Impl::writes_rows<Operator>;

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION static bool are_neighbours(const Row& row) {
    for (const auto& input : row.input) {
      if (input.stride != 1) return false;
    }
    return true;
  }
  template <class OutputRow>
  KOKKOS_FORCEINLINE_FUNCTION static bool are_neighbours_in(const OutputRow& output) {
    if constexpr (Operator::sums_inputs) {
      if (output.sum().stride != 1) return false;
    }
    return output.stride == 1;
  }

  /// Where the sum of the row inputs goes, if the operator writes that. The writer of the rows has a fence behind the
  /// stores past the caches.
  struct SumRow {
    T* base                 = nullptr;
    bool nontemporal_stores = false;

    template <class OutputRow>
    KOKKOS_FORCEINLINE_FUNCTION SumRow(const OutputRow& output, std::int64_t begin, bool streams) {
      if constexpr (Operator::sums_inputs) {
        base               = output.sum().base + begin;
        nontemporal_stores = streams;
      }
    }
    KOKKOS_FORCEINLINE_FUNCTION void store(int i, const Vector<A>& sum, int n) const {
      if constexpr (Operator::sums_inputs) {
        if (nontemporal_stores && n == simd_width<A> && elements_to_boundary(base + i) == 0) {
          store_vector_nontemporal(base + i, sum);
        } else {
          store_up_to(base + i, sum, n);
        }
      }
    }
  };
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_OPERANDS_HPP
