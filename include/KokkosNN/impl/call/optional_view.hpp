// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_OPTIONAL_VIEW_HPP
#define KOKKOSNN_IMPL_CALL_OPTIONAL_VIEW_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/layout.hpp>

#include <concepts>
#include <type_traits>

namespace KokkosNN {

/// In place of a View that a call does without.
struct NoView {};
inline constexpr NoView no_view;

namespace Concepts {

/// A View, or NoView.
template <class T>
concept OptionalView = View<T> || std::same_as<T, NoView>;

}  // namespace Concepts

namespace Impl {

template <class V>
inline constexpr bool is_given = !std::is_same_v<V, NoView>;

/// The element type of a View, or a fallback.
template <class V, class T>
struct ValueIfGiven {
  using type = typename V::non_const_value_type;
};
template <class T>
struct ValueIfGiven<NoView, T> {
  using type = T;
};

inline Tensor tensor_of(const NoView&) { return {}; }

}  // namespace Impl
}  // namespace KokkosNN

#endif  // KOKKOSNN_IMPL_CALL_OPTIONAL_VIEW_HPP
