// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_TYPES_HPP
#define KOKKOSNN_TEST_SUPPORT_TYPES_HPP

#include <KokkosNN/half.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <string>
#include <type_traits>

namespace KokkosNNTest {

using Exec   = Kokkos::DefaultExecutionSpace;
using Memory = Exec::memory_space;
using Half   = KokkosNN::half_t;
using BHalf  = KokkosNN::bhalf_t;

inline constexpr bool on_gpu = !Kokkos::SpaceAccessibility<Kokkos::HostSpace, Memory>::accessible;

/// Number formats: binary digits with the hidden one, and the exponent of the smallest normal number. This one is for
/// the two 16-bit types.
template <class T>
struct Format {
  static_assert(sizeof(T) == 2);
  static constexpr bool is_half     = std::is_same_v<T, Half>;
  static constexpr const char* name = is_half ? "f16" : "bf16";
  static constexpr int digits       = is_half ? 11 : 8;
  static constexpr int min_exponent = is_half ? -14 : -126;
};

template <>
struct Format<float> {
  static constexpr const char* name = "f32";
  static constexpr int digits       = 24;
  static constexpr int min_exponent = -126;
};

template <>
struct Format<double> {
  static constexpr const char* name = "f64";
  static constexpr int digits       = 53;
  static constexpr int min_exponent = -1022;
};

template <class T>
inline constexpr bool is_16_bit = Format<T>::digits < 24;

/// The element types.
template <class...>
struct TypeList {};

using Elements = TypeList<float, double, Half, BHalf>;

template <class List>
struct AsGoogleTest;
template <class... Ts>
struct AsGoogleTest<TypeList<Ts...>> {
  using type = ::testing::Types<Ts...>;
};

/// For TYPED_TEST_SUITE(Suite, ElementTypes, ElementNames).
using ElementTypes = AsGoogleTest<Elements>::type;

struct ElementNames {
  template <class T>
  static std::string GetName(int) {
    return Format<T>::name;
  }
};

/// Calls f(TypeTag<T>{}) for every element type.
template <class T>
struct TypeTag {
  using type = T;
};

template <class F, class... Ts>
void for_each_type(TypeList<Ts...>, F&& f) {
  (f(TypeTag<Ts>{}), ...);
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_TYPES_HPP
