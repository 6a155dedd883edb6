// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_FIXED_VECTOR_HPP
#define KOKKOSNN_SRC_FIXED_VECTOR_HPP

#include <cstddef>

namespace KokkosNN::Impl {

/// A vector whose elements lie in itself, at most `capacity` of them: a call's axes need no allocation.
template <class T, int capacity>
class FixedVector {
 public:
  /// There must be room.
  void push_back(const T& item) { m_items[m_size++] = item; }
  void pop_back() { --m_size; }

  bool empty() const { return m_size == 0; }
  std::size_t size() const { return m_size; }
  T& operator[](std::size_t k) { return m_items[k]; }
  const T& operator[](std::size_t k) const { return m_items[k]; }
  T& back() { return m_items[m_size - 1]; }
  const T& back() const { return m_items[m_size - 1]; }
  T* begin() { return m_items; }
  T* end() { return m_items + m_size; }
  const T* begin() const { return m_items; }
  const T* end() const { return m_items + m_size; }

 private:
  T m_items[capacity] = {};
  std::size_t m_size  = 0;
};

/// Sorts a range of few elements, equal ones as they come; allocates nothing.
template <class Iterator, class Less>
void sort_few(Iterator begin, Iterator end, const Less& less) {
  for (Iterator next = begin; next != end; ++next) {
    const auto item = *next;
    Iterator place  = next;
    for (; place != begin && less(item, *(place - 1)); --place) *place = *(place - 1);
    *place = item;
  }
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_FIXED_VECTOR_HPP
