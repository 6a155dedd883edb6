// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SEGMENT_INDEX_HPP
#define KOKKOSNN_SEGMENT_INDEX_HPP

#include <KokkosNN/concepts.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace KokkosNN {

/// Rows of elements in any order: view(i) is the number of element i's row, 0 to segments - 1, as in a list of edges by
/// their targets. It stands in place of row offsets in the functions of segmented.hpp; elements with other numbers are
/// in no row.
template <Concepts::View V>
struct SegmentIndex {
  V view;  ///< rank 1, of any integral type, an element for each of the values; read on the device only
  std::int64_t segments = 0;  ///< number of rows, those without an element included
};
template <Concepts::View V>
SegmentIndex(const V&, std::int64_t) -> SegmentIndex<V>;

namespace Impl {

template <class Rows>
inline constexpr bool is_segment_index = false;
template <class V>
inline constexpr bool is_segment_index<SegmentIndex<V>> = true;

/// The View of integers that ragged rows are given by.
template <class Rows>
struct ViewOfRows {
  using type = Rows;
};
template <class V>
struct ViewOfRows<SegmentIndex<V>> {
  using type = V;
};
template <class Rows>
using view_of_rows = typename ViewOfRows<Rows>::type;

}  // namespace Impl

namespace Concepts {

/// Ragged rows: a View of row offsets, or a SegmentIndex.
template <class Rows>
concept RaggedRows = View<Rows> || Impl::is_segment_index<Rows>;

}  // namespace Concepts

}  // namespace KokkosNN

#endif  // KOKKOSNN_SEGMENT_INDEX_HPP
