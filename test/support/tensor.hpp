// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_TENSOR_HPP
#define KOKKOSNN_TEST_SUPPORT_TENSOR_HPP

#include "types.hpp"

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace KokkosNNTest {

/// Where the elements of a tensor lie: (i0, i1, ...) at origin + i0 strides[0] + i1 strides[1] + ...
struct Placement {
  std::vector<std::int64_t> extents;
  std::vector<std::int64_t> strides;
  std::int64_t origin = 0;

  int rank() const { return static_cast<int>(extents.size()); }

  std::int64_t count() const {
    std::int64_t n = 1;
    for (std::int64_t extent : extents) n *= extent;
    return n;
  }

  /// Elements of the buffer that holds it, from offset 0 on.
  std::int64_t span() const {
    if (count() == 0) return 0;
    std::int64_t last = origin;
    for (int d = 0; d < rank(); ++d) last += std::max<std::int64_t>(strides[d], 0) * (extents[d] - 1);
    return last + 1;
  }

  /// Without one axis: where rows start, or where a logsumexp may go.
  Placement without(int axis) const {
    Placement rest = *this;
    rest.extents.erase(rest.extents.begin() + axis);
    rest.strides.erase(rest.strides.begin() + axis);
    return rest;
  }
};

/// Last axis contiguous; `padding` unused elements after each of its rows.
inline Placement right(std::vector<std::int64_t> extents, std::int64_t padding = 0) {
  Placement place{std::move(extents), {}, 0};
  place.strides.resize(place.extents.size());
  std::int64_t stride = 1;
  for (int d = place.rank(); d-- > 0;) {
    place.strides[d] = stride;
    stride *= place.extents[d];
    if (d == place.rank() - 1) stride += padding;
  }
  return place;
}

/// First axis contiguous; `padding` unused elements after each of its columns.
inline Placement left(std::vector<std::int64_t> extents, std::int64_t padding = 0) {
  Placement place{std::move(extents), {}, 0};
  place.strides.resize(place.extents.size());
  std::int64_t stride = 1;
  for (int d = 0; d < place.rank(); ++d) {
    place.strides[d] = stride;
    stride *= place.extents[d];
    if (d == 0) stride += padding;
  }
  return place;
}

/// Calls f(x_offset, y_offset, number) for all indices, y running along.
template <class F>
void for_each_index(const Placement& x, const Placement& y, F&& f) {
  if (x.count() == 0) return;
  std::vector<std::int64_t> index(x.extents.size(), 0);
  std::int64_t x_offset = x.origin, y_offset = y.origin, number = 0;
  for (;;) {
    f(x_offset, y_offset, number++);
    int d = x.rank() - 1;
    for (; d >= 0; --d) {
      x_offset += x.strides[d];
      y_offset += y.strides[d];
      if (++index[d] < x.extents[d]) break;
      x_offset -= x.strides[d] * x.extents[d];
      y_offset -= y.strides[d] * y.extents[d];
      index[d] = 0;
    }
    if (d < 0) return;
  }
}

/// The bit pattern that outputs are filled with before a call: a NaN that no arithmetic makes, or -128 as an int8.
template <class T>
T poison() {
  static_assert(sizeof(T) == 8 || sizeof(T) == 4 || sizeof(T) == 2 || sizeof(T) == 1);
  std::uint64_t bits = std::is_integral_v<T> ? 0x80 : 0xff;
  if constexpr (sizeof(T) == 8) bits = 0x7ffe5a5a5a5a5a5a;
  if constexpr (sizeof(T) == 4) bits = 0x7fe5a5a5;
  if constexpr (sizeof(T) == 2) bits = 0x7fe5;
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

template <class T>
bool same_bits(const T& a, const T& b) {
  static_assert(sizeof(T) <= 8);
  std::uint64_t of_a = 0, of_b = 0;
  std::memcpy(&of_a, &a, sizeof(T));
  std::memcpy(&of_b, &b, sizeof(T));
  return of_a == of_b;
}

/// `count` elements in the device's memory with a copy on the host and a guard band on either side, all poisoned.
/// `misalignment` elements push the first one off the alignment of the allocation.
template <class T, class Space = Memory>
class Buffer {
 public:
  explicit Buffer(std::int64_t count, int misalignment = 0)
      : m_count(static_cast<std::size_t>(count)),
        m_front(guard + static_cast<std::size_t>(misalignment)),
        m_device(Kokkos::view_alloc(Kokkos::WithoutInitializing, "Buffer"), m_count + 2 * guard + misalignment),
        m_host(Kokkos::create_mirror(m_device)) {
    std::fill_n(m_host.data(), m_host.size(), poison<T>());
    upload();
  }

  T* device() const { return m_device.data() + m_front; }
  T* host() const { return m_host.data() + m_front; }
  std::int64_t count() const { return static_cast<std::int64_t>(m_count); }

  void upload() { Kokkos::deep_copy(m_device, m_host); }
  void download() { Kokkos::deep_copy(m_host, m_device); }
  void poison_all() {
    std::fill_n(m_host.data(), m_host.size(), poison<T>());
    upload();
  }

  /// True if the guards of the host's copy still hold the poison.
  bool guards_intact() const {
    for (std::size_t i = 0; i < m_host.size(); ++i) {
      const bool in_guard = i < m_front || i >= m_front + m_count;
      if (in_guard && !same_bits(m_host.data()[i], poison<T>())) return false;
    }
    return true;
  }

  /// True if nothing was written to the host's copy, guards included.
  bool untouched() const {
    return std::all_of(m_host.data(), m_host.data() + m_host.size(),
                       [](const T& value) { return same_bits(value, poison<T>()); });
  }

 private:
  static constexpr std::size_t guard = 256 / sizeof(T);

  std::size_t m_count;
  std::size_t m_front;
  Kokkos::View<T*, Space> m_device;
  typename Kokkos::View<T*, Space>::host_mirror_type m_host;
};

template <class T, int Rank>
struct Pointers {
  using type = typename Pointers<T, Rank - 1>::type*;
};
template <class T>
struct Pointers<T, 0> {
  using type = T;
};

template <class T, int Rank, class Layout, class Space = Memory>
using UnmanagedView =
    Kokkos::View<typename Pointers<T, Rank>::type, Layout, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

/// A LayoutStride View of the elements that `place` describes in the buffer that starts at `data`.
template <int Rank, class Space = Memory, class T>
auto strided_view(T* data, const Placement& place) {
  if constexpr (Rank == 0) {
    return UnmanagedView<T, 0, Kokkos::LayoutStride, Space>(data + place.origin, Kokkos::LayoutStride());
  } else {
    Kokkos::LayoutStride layout;
    for (int d = 0; d < Rank; ++d) {
      layout.dimension[d] = static_cast<std::size_t>(place.extents[d]);
      layout.stride[d]    = static_cast<std::size_t>(place.strides[d]);
    }
    return UnmanagedView<T, Rank, Kokkos::LayoutStride, Space>(data + place.origin, layout);
  }
}

/// A dense View in LayoutRight or LayoutLeft.
template <int Rank, class Layout, class Space = Memory, class T>
auto dense_view(T* data, const Placement& place) {
  return [&]<std::size_t... D>(std::index_sequence<D...>) {
    return UnmanagedView<T, Rank, Layout, Space>(data + place.origin, static_cast<std::size_t>(place.extents[D])...);
  }(std::make_index_sequence<Rank>{});
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_TENSOR_HPP
