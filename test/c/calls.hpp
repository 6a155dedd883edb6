// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_C_CALLS_HPP
#define KOKKOSNN_TEST_C_CALLS_HPP

#include "support/types.hpp"

#include <KokkosNN/float8.hpp>
#include <KokkosNN/kokkosnn.h>
#include <KokkosNN/mask.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

// The C functions beside the C++ functions of their names: the same bits. The C library has its own Kokkos, so a
// program of these tests runs two; memory and device are the same.

namespace KokkosNNTest {

inline constexpr kokkosnn_exec here{nullptr, KOKKOSNN_DEVICE_DEFAULT, -1};

template <class T>
constexpr int dtype_of() {
  if (std::is_same_v<T, double>) return KOKKOSNN_F64;
  if (std::is_same_v<T, float>) return KOKKOSNN_F32;
  if (std::is_same_v<T, Half>) return KOKKOSNN_F16;
  if (std::is_same_v<T, BHalf>) return KOKKOSNN_BF16;
  if (std::is_same_v<T, bool>) return KOKKOSNN_BOOL;
  if (std::is_same_v<T, std::int8_t>) return KOKKOSNN_I8;
  if (std::is_same_v<T, KokkosNN::float8_e4m3>) return KOKKOSNN_F8E4M3;
  if (std::is_same_v<T, std::uint32_t>) return KOKKOSNN_U32;
  return sizeof(T) == 4 ? KOKKOSNN_I32 : KOKKOSNN_I64;
}

/// A View as C has it.
template <class V>
kokkosnn_tensor tensor(const V& view) {
  kokkosnn_tensor t{};
  t.data  = const_cast<void*>(static_cast<const void*>(view.data()));
  t.dtype = dtype_of<typename V::non_const_value_type>();
  t.rank  = V::rank();
  for (int k = 0; k < t.rank; ++k) {
    t.extents[k] = static_cast<std::int64_t>(view.extent(static_cast<std::size_t>(k)));
    t.strides[k] = static_cast<std::int64_t>(view.stride(static_cast<std::size_t>(k)));
  }
  return t;
}

template <class T, int rank>
struct DataOf : DataOf<T*, rank - 1> {};
template <class T>
struct DataOf<T, 0> {
  using type = T;
};

template <class T, class... Extents>
auto empty(Extents... extents) {
  const Kokkos::View<typename DataOf<T, sizeof...(extents)>::type, Kokkos::LayoutRight, Memory> view("view",
                                                                                                     extents...);
  return view;
}

/// Numbers from -2 to 2 that do not repeat soon.
template <class T, class... Extents>
auto filled(int seed, Extents... extents) {
  const auto view = empty<T>(extents...);
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < host.size(); ++i) {
    host.data()[i] = static_cast<T>(static_cast<float>((i * 37 + static_cast<std::size_t>(seed) * 11) % 101) / 25 - 2);
  }
  Kokkos::deep_copy(view, host);
  return view;
}

template <class T>
auto listed(const std::vector<T>& values) {
  const auto view = empty<T>(values.size());
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < values.size(); ++i) host(i) = values[i];
  Kokkos::deep_copy(view, host);
  return view;
}

template <class V>
std::string bytes_of(const V& view) {
  Kokkos::fence();
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  return {reinterpret_cast<const char*>(host.data()), host.size() * sizeof(typename V::value_type)};
}

/// Runs both functions, each on an output that holds zeros, and compares what they leave there.
template <class Output, class Cpp, class C>
void expect_same(const char* name, const Output& output, const Cpp& cpp, const C& c) {
  using T = typename Output::value_type;
  Kokkos::deep_copy(output, T(0));
  cpp();
  const std::string expected = bytes_of(output);
  Kokkos::deep_copy(output, T(0));
  Kokkos::fence();
  const kokkosnn_status status = c();
  EXPECT_EQ(status, KOKKOSNN_SUCCESS) << name << ": " << kokkosnn_last_error();
  EXPECT_TRUE(bytes_of(output) == expected) << name << " leaves other bits in C";
  EXPECT_NE(expected.find_first_not_of('\0'), std::string::npos) << name << " writes nothing";
}

/// A mask of all parts but offsets of diagonals, in C++, to which more parts may be joined, and the same in C.
template <class Kept, class Bias, class Lengths, class Slopes, class... More>
auto all_masks(const Kept& kept, const Bias& bias, const Lengths& lengths, const Slopes& slopes, const More&... more) {
  using namespace KokkosNN;
  return masks(CausalMask{2}, SlidingWindow{3, 2, 1}, BooleanMask{kept}, AdditiveBias{bias}, RowLengths{lengths},
               Alibi{slopes, 1}, more...);
}
inline kokkosnn_mask all_masks(const kokkosnn_tensor* kept, const kokkosnn_tensor* bias, const kokkosnn_tensor* lengths,
                               const kokkosnn_tensor* slopes) {
  kokkosnn_mask mask = KOKKOSNN_MASK_INIT;
  mask.boolean       = kept;
  mask.bias          = bias;
  mask.lengths       = lengths;
  mask.alibi_slopes  = slopes;
  mask.alibi_offset  = 1;
  mask.is_causal     = 1;
  mask.causal_offset = 2;
  mask.has_window    = 1;
  mask.window_left   = 3;
  mask.window_right  = 2;
  mask.window_offset = 1;
  return mask;
}

/// A call that must fail with a message.
inline void expect_error(kokkosnn_status status, const std::string& message) {
  EXPECT_EQ(status, KOKKOSNN_INVALID_ARGUMENT);
  EXPECT_EQ(kokkosnn_last_error(), message);
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_C_CALLS_HPP
