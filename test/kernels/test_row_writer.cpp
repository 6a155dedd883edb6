// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"

#include <KokkosNN/impl/host/row_writer.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

// The row writer of a host's kernels, on memory whose every byte is checked.

namespace KokkosNNTest {

namespace Impl = KokkosNN::Impl;

/// Rows in memory that begins with a cache line, between and around them poison.
template <class T>
class MarkedRows {
 public:
  static constexpr int line = Impl::RowWriter<T>::line;

  MarkedRows(int rows, int cols, int gap, int offset) : m_rows(rows), m_cols(cols), m_stride(cols + gap) {
    m_memory.assign(static_cast<std::size_t>(offset + rows * m_stride + 3 * line), poison<T>());
    m_first = static_cast<std::size_t>(Impl::elements_to_boundary<line / Impl::lanes_loaded<T>>(m_memory.data())) +
              line + offset;
  }

  T* row(int r) { return m_memory.data() + m_first + r * m_stride; }
  int cols() const { return m_cols; }
  bool adjoin() const { return m_stride == m_cols; }

  /// Different values, which all types have.
  void fill() {
    for (int r = 0; r < m_rows; ++r) {
      for (int c = 0; c < m_cols; ++c) row(r)[c] = static_cast<T>((r * 31 + c) % 251);
    }
  }
  bool operator==(const MarkedRows& other) const {
    return std::memcmp(m_memory.data() + m_first - line, other.m_memory.data() + other.m_first - line,
                       (m_rows * m_stride + 2 * line) * sizeof(T)) == 0;
  }

 private:
  int m_rows, m_cols, m_stride;
  std::size_t m_first;
  std::vector<T> m_memory;
};

/// Writes rows `begin` to `end` as a thread does.
template <class T>
void write_rows(Impl::RowWriter<T>& writer, MarkedRows<T>& to, MarkedRows<T>& from, int begin, int end, bool aligns) {
  for (int r = begin; r < end; ++r) {
    const T* const x = from.row(r);
    const auto value = [&](int i, int n) { return Impl::load_up_to(x + i, n); };
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
    if constexpr (Impl::moves_two_vectors<T>) {
      const auto two = [&](int i) { return Impl::load_two_vectors(x + i); };
      if (r % 3 != 0) {
        writer.write_by_two(to.row(r), to.cols(), two, value, aligns);
        continue;
      }
    }
#endif
    writer.write(to.row(r), to.cols(), value, aligns);
  }
}

/// By two threads that have rows of one cache line, the second one ending first.
template <class T>
bool are_written(int rows, int cols, int gap, int offset, bool nontemporal_stores, bool aligns) {
  MarkedRows<T> from(rows, cols, gap, offset), to(rows, cols, gap, offset);
  from.fill();
  {
    const int half = rows / 2;
    Impl::RowWriter<T> first(nontemporal_stores, to.adjoin()), second(nontemporal_stores, to.adjoin());
    write_rows(first, to, from, 0, half, aligns);
    write_rows(second, to, from, half, rows, aligns);
  }
  return from == to;
}

template <class T>
class RowWriter : public testing::Test {};
TYPED_TEST_SUITE(RowWriter, ElementTypes, ElementNames);

TYPED_TEST(RowWriter, WritesRowsAndNothingElse) {
  constexpr int line = Impl::RowWriter<TypeParam>::line;
  for (const int cols : {1, 3, line - 1, line, line + 1, 2 * line, 3 * line - 2, 5 * line + 5}) {
    for (const int gap : {0, 1, line}) {
      for (const int offset : {0, 1, line / 2, line - 1}) {
        for (const int mode : {0, 1, 2}) {
          EXPECT_TRUE(are_written<TypeParam>(27, cols, gap, offset, mode == 2, mode >= 1))
              << cols << " columns, " << gap << " between rows, " << offset << " behind a cache line, mode " << mode;
        }
      }
    }
  }
}

TYPED_TEST(RowWriter, WritesNothingOfNoRows) {
  EXPECT_TRUE(are_written<TypeParam>(0, 5, 0, 1, true, true));
  EXPECT_TRUE(are_written<TypeParam>(1, 0, 0, 1, true, true));
}

}  // namespace KokkosNNTest
