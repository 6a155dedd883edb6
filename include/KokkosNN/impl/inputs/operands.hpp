// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_OPERANDS_HPP
#define KOKKOSNN_IMPL_INPUTS_OPERANDS_HPP

#include <KokkosNN/impl/inputs/masked.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/reductions/reduced_state.hpp>
#include <KokkosNN/pack.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

// The operands of a row operator. An operator is one struct, Operator:
//
//   accumulator                     A, the type of its arithmetic
//   row_inputs, column_inputs       tensors that it reads: rows; one element a column, as a weight
//   sums_inputs                     true: the row is the sum of the row inputs, rounded to their type, which is
//                                   written, too; all else sees one x
//   late_inputs                     row inputs, the last ones, that only the epilogue reads
//   row_scalars, row_outputs        values of each row that it reads, and that it writes beside the row
//   writes_no_rows                  true, where it is there: all results are values of a row
//   has_weight_gradients            true: the call also sums WeightTerms (column_terms.hpp) over all rows, ahead
//   Params                          shared by all rows; missing(i) stands for column operand i where a call has none
//   Reduction                       of reductions/: what it has to know of a whole row
//   add(sum, params, scalars, x..., columns...)   one element's terms, where the reduction is a sum
//   Epilogue(params, reduced, scalars, cols)      of one row: (x..., columns...) is an element's result, row_output(i)
//                                                 what the row has beside
//
// add and the epilogue's call are templates on N: A, or on a host a vector of A.
//
// No placement and no geometry knows more of it.

namespace KokkosNN::Impl {

/// The struct of an operator: specialised by the header of each.
template <RowOperator op, class A>
struct OperatorFor;

/// Rows that a thread has from the reduction to the epilogue.
template <class Operator>
inline constexpr int held_rows = Operator::sums_inputs ? 1 : Operator::row_inputs - Operator::late_inputs;

/// The operator writes a row of its own.
template <class Operator>
inline constexpr bool writes_rows = []() -> bool {
  if constexpr (requires { Operator::writes_no_rows; }) return !Operator::writes_no_rows;
  return true;
}();

/// Elements of a pack that lie in the row: all V, as the compiler knows, or so many.
template <int V>
struct WholePack {
  KOKKOS_INLINE_FUNCTION constexpr operator int() const { return V; }
};

/// One element a column, of T or of the accumulator's type; or none.
template <class T, class A>
struct ColumnOperand {
  TypedPointer<T> data = {};
  std::int64_t stride  = 1;
  A missing            = {};

  /// Elements of the columns from `column` on, of which `valid` lie in the row.
  template <int V, class Valid>
  KOKKOS_INLINE_FUNCTION void load(Pack<A, V>& pack, std::int64_t column, Valid valid) const {
    for (int v = 0; v < V; ++v) pack[v] = missing;
    if (!data.exists()) return;
    data.visit([&](const auto* elements) {
      using Element           = std::remove_cvref_t<decltype(*elements)>;
      const auto* const first = elements + column * stride;
      if constexpr (std::is_same_v<Valid, WholePack<V>>) {
        if (moves_whole_packs<Element, V>(first, stride)) {
          KOKKOS_IF_ON_DEVICE((widen(pack, *reinterpret_cast<const Pack<Element, V>*>(first));))
          KOKKOS_IF_ON_HOST((for (int v = 0; v < V; ++v) pack[v] = static_cast<A>(first[v]);))
          return;
        }
      } else if (valid >= V && stride == 1) {
        for (int v = 0; v < V; ++v) pack[v] = static_cast<A>(first[v]);
        return;
      }
      for (int v = 0; v < V; ++v) {
        if (v < valid) pack[v] = static_cast<A>(first[v * stride]);
      }
    });
  }
  static constexpr std::int64_t access_bytes = 16;  ///< from one boundary to the next, where load_aligned begins

  /// True if load_aligned may be called: columns are contiguous and begin at a boundary, or there are none.
  bool is_aligned() const {
    return !data.exists() || (stride == 1 && reinterpret_cast<std::uintptr_t>(data.data) % access_bytes == 0);
  }
  /// V elements of aligned columns; `column` is a multiple of V.
  template <int V>
  KOKKOS_INLINE_FUNCTION void load_aligned(Pack<A, V>& pack, std::int64_t column) const {
    if (!data.exists()) {
      for (int v = 0; v < V; ++v) pack[v] = missing;
      return;
    }
    data.visit([&](const auto* elements) {
      using Element = std::remove_cvref_t<decltype(*elements)>;
      widen(pack, load_by_words(reinterpret_cast<const Pack<Element, V>*>(elements + column)));
    });
  }
  KOKKOS_INLINE_FUNCTION A load_one(std::int64_t column) const {
    return data.exists() ? data.template load<A>(column * stride) : missing;
  }
};

/// Packs of the column operands, and the order in which an operator takes its operands.
template <class Operator, int V>
struct ColumnPacks {
  using A = typename Operator::accumulator;

  Pack<A, V> pack[Operator::column_inputs];

  /// f(x..., columns...) of the elements in lane v.
  template <class Rows, class F>
  KOKKOS_FORCEINLINE_FUNCTION auto apply(int v, const Rows& x, const F& f) const {
    return apply(v, x, f, std::make_index_sequence<std::extent_v<Rows>>{},
                 std::make_index_sequence<Operator::column_inputs>{});
  }

 private:
  template <class Rows, class F, std::size_t... i, std::size_t... j>
  KOKKOS_FORCEINLINE_FUNCTION auto apply(int v, const Rows& x, const F& f, std::index_sequence<i...>,
                                         std::index_sequence<j...>) const {
    return f(x[i][v]..., pack[j][v]...);
  }
};

/// An operator without column operands.
template <class Operator, int V>
  requires(Operator::column_inputs == 0)
struct ColumnPacks<Operator, V> {
  template <class Rows, class F>
  KOKKOS_FORCEINLINE_FUNCTION auto apply(int v, const Rows& x, const F& f) const {
    static_assert(Operator::row_inputs == 1);
    return f(x[0][v]);
  }
};

/// Parameters that all rows of a call share.
template <class OperatorT, class T>
struct OperandParams {
  using Operator    = OperatorT;
  using accumulator = typename Operator::accumulator;
  using State       = ReducedState<typename Operator::Reduction>;
  using Columns     = Kokkos::Array<ColumnOperand<T, accumulator>, Operator::column_inputs>;

  typename Operator::Params own;
  Columns columns;
  std::int64_t cols  = 0;
  std::uint32_t zero = 0;  ///< which compilers do not know to be one, see HeldPack
};

/// Values of a row that an operator reads.
template <class Operator>
using ScalarsOf = Kokkos::Array<typename Operator::accumulator, Operator::row_scalars>;

/// One value a row, which an operator reads (`A` const) or writes; of the latter there may be none.
template <class A, class Map>
struct RowValues {
  A* data = nullptr;
  Map map = {};
};

/// Reads the values of a row.
template <class A, std::size_t n, class Map>
KOKKOS_INLINE_FUNCTION Kokkos::Array<A, n> values_of_row(const Kokkos::Array<RowValues<const A, Map>, n>& values,
                                                         std::int64_t row) {
  Kokkos::Array<A, n> of_row;
  for (std::size_t i = 0; i < n; ++i) of_row[i] = values[i].data[values[i].map(row)];
  return of_row;
}

/// Stores what an epilogue has beside a row, where that goes anywhere.
template <class A, std::size_t n, class Map, class Epilogue>
KOKKOS_INLINE_FUNCTION void store_row_outputs(const Kokkos::Array<RowValues<A, Map>, n>& values, std::int64_t row,
                                              const Epilogue& epilogue) {
  for (std::size_t i = 0; i < n; ++i) {
    if (values[i].data != nullptr) values[i].data[values[i].map(row)] = epilogue.row_output(static_cast<int>(i));
  }
}

/// The rows that an operator reads, with their scalars.
template <class Operator, class T, RowForm row_form>
struct OperandRows {
  using value_type                  = T;
  using A                           = typename Operator::accumulator;
  static constexpr RowForm form     = row_form;
  static constexpr bool looks_ahead = false;

  struct Row {
    static constexpr bool has_edges       = false;
    static constexpr bool gives_packs     = false;
    static constexpr bool completes_state = false;
    static constexpr bool masks_pairs     = false;
    static constexpr bool has_whole_packs = form == RowForm::aligned;  ///< or packs outside of the row

    MemoryRow<const T, form> input[Operator::row_inputs];
    ScalarsOf<Operator> scalars;

    KOKKOS_INLINE_FUNCTION void clear_policy() {
      for (int i = 0; i < Operator::row_inputs; ++i) input[i].clear_policy();
    }
  };

  MemoryRows<const T, form> input[Operator::row_inputs];
  Kokkos::Array<RowValues<const A, MapOf<form>>, Operator::row_scalars> scalars;

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t r) const {
    Row row;
    for (int i = 0; i < Operator::row_inputs; ++i) row.input[i] = input[i].row(r);
    // Not by values_of_row: nvcc orders the code of long rows otherwise.
    for (int i = 0; i < Operator::row_scalars; ++i) row.scalars[i] = scalars[i].data[scalars[i].map(r)];
    return row;
  }
};

/// Rows of the sum that an operator writes, too: a base, which takes no room among the arguments of others' kernels.
template <class Operator, class Rows>
struct SumOutput {};
template <class Operator, class Rows>
  requires(Operator::sums_inputs)
struct SumOutput<Operator, Rows> {
  Rows sum;
};

/// Where an operator writes rows, and what it has beside each.
template <class Operator, class T, RowForm row_form>
struct OperandOutput : SumOutput<Operator, MemoryRows<T, row_form>> {
  using value_type                   = T;
  using A                            = typename Operator::accumulator;
  static constexpr RowForm form      = row_form;
  static constexpr bool takes_states = false;

  struct Row : MemoryRow<T, form> {
    const OperandOutput& output;
    std::int64_t number;

    /// Stores the values of the row, by pointers that come from the kernel's arguments: LLVM knows these to be global.
    template <class RowEpilogue>
    KOKKOS_INLINE_FUNCTION void store_values(const RowEpilogue& epilogue) const {
      for (int i = 0; i < Operator::row_outputs; ++i) {
        const auto& to = output.values[i];
        if (to.data != nullptr) to.data[to.map(opaque(number))] = epilogue.row_output(i);
      }
    }
    /// The row of the sum, if the operator writes that.
    KOKKOS_INLINE_FUNCTION auto sum() const { return output.sum.row(number); }
  };

  MemoryRows<T, form> rows;
  Kokkos::Array<RowValues<A, MapOf<form>>, Operator::row_outputs> values;

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t r) const { return {rows.row(r), *this, r}; }
};

/// Epilogue that geometries make: it carries the row's state, from which a placement makes the operator's epilogue, as
/// that knows the row's operands.
template <RowOperator op>
  requires(is_norm(op))
struct Epilogue<op> : EpilogueDefaults {
  template <class Params, class A>
  struct Row {
    typename Params::State total;

    KOKKOS_DEFAULTED_FUNCTION Row() = default;
    KOKKOS_INLINE_FUNCTION Row(const Params&, const typename Params::State& state) : total(state) {}

    KOKKOS_INLINE_FUNCTION auto of(const Params& params, const ScalarsOf<typename Params::Operator>& scalars) const {
      return typename Params::Operator::Epilogue(params.own, total, scalars, params.cols);
    }
  };
};

/// Threads hold nothing that is relative to a state of their own.
template <class RowEpilogue, class Params, class Reduction>
KOKKOS_INLINE_FUNCTION RowEpilogue make_epilogue(const Params& params, const ReducedState<Reduction>&,
                                                 const ReducedState<Reduction>& total) {
  return RowEpilogue(params, total);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_OPERANDS_HPP
