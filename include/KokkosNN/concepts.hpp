// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_CONCEPTS_HPP
#define KOKKOSNN_CONCEPTS_HPP

#include <KokkosNN/half.hpp>
#include <KokkosNN/pack.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <Kokkos_Core.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace KokkosNN {

namespace Impl {

template <class T>
inline constexpr bool is_half = std::is_same_v<T, half_t> || std::is_same_v<T, bhalf_t>;

}  // namespace Impl

/// The concepts have their own namespace: a file with `using namespace KokkosNN` and `using namespace Kokkos` means
/// Kokkos::View by `View`.
namespace Concepts {

/// A Kokkos execution space type.
template <class T>
concept ExecutionSpace = Kokkos::is_execution_space_v<T>;

/// A Kokkos View of any rank.
template <class T>
concept View = Kokkos::is_view_v<T>;

/// A Kokkos TeamPolicy member.
template <class T>
concept TeamMember = Kokkos::is_team_handle_v<T>;

/// An element type of the library: double, float, half_t or bhalf_t.
template <class T>
concept Element = std::same_as<T, double> || std::same_as<T, float> || Impl::is_half<T>;

/// A user's source of rows: `load<N>(row, col)` gives the N elements from column `col` on (`col` is a multiple of N and
/// the pack ends inside the row).
template <class L>
concept RowLoad = requires(const L& load, std::int64_t i) {
  typename L::value_type;
  { load.template load<1>(i, i) } -> std::same_as<Pack<typename L::value_type, 1>>;
};

/// A user's output of rows: `store<N>(values, row, col)` takes N results in the accumulator type.
template <class S, class A>
concept RowStore = requires(const S& store, const Pack<A, 1>& values, std::int64_t i) {
  typename S::value_type;
  store.template store<1>(values, i, i);
};

/// A user's output of one value a row: `store(value, row)`.
template <class S, class A>
concept ScalarRowStore = requires(const S& store, A value, std::int64_t row) {
  typename S::value_type;
  store.store(value, row);
};

}  // namespace Concepts

namespace Impl {

template <class T>
struct AccumulatorOf {
  using type = float;
};
template <>
struct AccumulatorOf<double> {
  using type = double;
};

}  // namespace Impl

/// The type in which elements of type T are accumulated: double for double, float for everything else.
template <class T>
using accumulator_t = typename Impl::AccumulatorOf<std::remove_const_t<T>>::type;

/// The accumulator of an operator from X to Y: the wider of the two types' accumulators.
template <class X, class Y>
using common_accumulator_t =
    std::conditional_t<(sizeof(accumulator_t<X>) > sizeof(accumulator_t<Y>)), accumulator_t<X>, accumulator_t<Y>>;

namespace Impl {

template <class T>
constexpr ElementType element_type() {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, double>) {
    return ElementType::f64;
  } else if constexpr (std::is_same_v<U, float>) {
    return ElementType::f32;
  } else if constexpr (std::is_same_v<U, half_t>) {
    return ElementType::f16;
  } else if constexpr (is_half<U>) {
    return ElementType::bf16;
  } else {
    return ElementType::other;
  }
}

}  // namespace Impl
}  // namespace KokkosNN

#endif  // KOKKOSNN_CONCEPTS_HPP
