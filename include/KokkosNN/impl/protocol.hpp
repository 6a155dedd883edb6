// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_PROTOCOL_HPP
#define KOKKOSNN_IMPL_PROTOCOL_HPP

#include <KokkosNN/impl/kernel_shapes.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <concepts>
#include <type_traits>

// The protocol between a kernel and its parts. A part states flags; a flag that is true promises members, which the
// kernel then uses without asking. Kernels assert the concepts below at their head, so a flag that is missing or
// misspelt does not compile, and neither does a member that a flag promises and the part lacks.

namespace KokkosNN::Impl {

/// Flag of type bool.
template <class Flag>
concept BoolFlag = std::same_as<std::remove_cvref_t<Flag>, bool>;

/// Flags of a placement; see row_in_team.hpp for the members that all placements have.
struct PlacementDefaults {
  /// `write` takes values that are relative to the state that `reduce` has returned, not to the row's.
  static constexpr bool has_own_reference = false;
  /// `reduce` gives every thread its warp's sum; its last argument may be a join of the team.
  static constexpr bool sums_warps = false;
  /// `prepare_write(row, part, params)` is called between `reduce` and the exchange.
  static constexpr bool prepares_write = false;
  /// `Facts`, `find_facts` and `take_facts`: in split_row a warp collects what writing needs besides the row's
  /// elements.
  static constexpr bool tells_facts = false;
};

template <class P>
concept RowPlacement = BoolFlag<decltype(P::has_own_reference)> && BoolFlag<decltype(P::sums_warps)> &&
                       BoolFlag<decltype(P::prepares_write)> && BoolFlag<decltype(P::tells_facts)>;

/// Flags of a host's placement; see host/rows.hpp for the members that all have.
struct HostPlacementDefaults {
  static constexpr bool has_own_reference = false;  ///< as PlacementDefaults has it
  static constexpr bool keeps_rows        = false;  ///< logits or exponentials stay until they are written
  static constexpr bool holds_pieces      = false;  ///< a piece has room in `held`
  static constexpr bool has_row_loops     = false;  ///< `write_rows`: short rows by loops of their own
  static constexpr bool uses_memory       = false;  ///< `stays<X>(params)`: elements can be used from where they lie
  static constexpr bool writes_rows       = true;   ///< otherwise values a row alone are stored
  static constexpr bool has_label = false;  ///< `Facts`, `RowEpilogue`, `facts_of`, `epilogue_of`, `store_values`
};

template <class P>
concept HostPlacement =
    BoolFlag<decltype(P::has_own_reference)> && BoolFlag<decltype(P::keeps_rows)> &&
    BoolFlag<decltype(P::holds_pieces)> && BoolFlag<decltype(P::has_row_loops)> && BoolFlag<decltype(P::uses_memory)> &&
    BoolFlag<decltype(P::writes_rows)> && BoolFlag<decltype(P::has_label)>;

/// Flags of an operator's epilogue.
struct EpilogueDefaults {
  /// `value(params, state)` is all that is written of a row; otherwise `Row<Params, A>` makes its elements.
  static constexpr bool one_value_a_row = false;
  /// Exponentials are kept in place of logits where a placement keeps rows.
  static constexpr bool keeps_exponentials = false;
};

template <class E>
concept RowsEpilogue = BoolFlag<decltype(E::one_value_a_row)> && BoolFlag<decltype(E::keeps_exponentials)>;

/// Source of rows. `looks_ahead`: `look_ahead(rows_ahead, rows, cols)` and `prefetch(row)`.
template <class S>
concept RowSource = std::same_as<std::remove_cvref_t<decltype(S::form)>, RowForm> && BoolFlag<decltype(S::looks_ahead)>;

/// One row of a source.
///   gives_packs      `packs<V>(cols)`: only this range is loaded, the other columns are written as masked elements
///   completes_state  `completed(params, state)`: adds what is no column of the row
///   masks_pairs      `mask`, `mask_gradient` and `chain`, of rows of y and dy
///   clear_policy()   takes back the eviction hint of its loads
template <class R>
concept InputRow =
    BoolFlag<decltype(R::has_edges)> && BoolFlag<decltype(R::gives_packs)> && BoolFlag<decltype(R::completes_state)> &&
    BoolFlag<decltype(R::masks_pairs)> && requires(R row) { row.clear_policy(); };

/// Output of rows. `takes_states`: `store_state(params, state, row)` in place of results.
template <class O>
concept RowOutput = BoolFlag<decltype(O::takes_states)>;

/// Parameters that all rows of a call share.
template <class P>
concept RowParams = requires {
  typename P::accumulator;
  typename P::State;
};

/// Rows that a kernel reads, with their parameters.
template <class Source, class Params>
concept RowsWithParams =
    RowSource<Source> && RowParams<Params> && InputRow<decltype(std::declval<const Source&>().row(0))>;

/// Parts of a kernel that reduces rows and writes them.
template <class Placement, class Params, class Source, class Output, class OpEpilogue>
concept KernelParts =
    RowPlacement<Placement> && RowsWithParams<Source, Params> && RowOutput<Output> && RowsEpilogue<OpEpilogue>;

/// Parts of a host's kernel.
template <class Placement, class Params, class Source, class Output, class OpEpilogue>
concept HostKernelParts =
    HostPlacement<Placement> && RowsWithParams<Source, Params> && RowOutput<Output> && RowsEpilogue<OpEpilogue>;

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_PROTOCOL_HPP
