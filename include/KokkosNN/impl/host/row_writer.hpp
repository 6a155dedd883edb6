// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_ROW_WRITER_HPP
#define KOKKOSNN_IMPL_HOST_ROW_WRITER_HPP

#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/backend.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>

// Writer of a host's rows: normal and non-temporal stores.

namespace KokkosNN::Impl {

/// Writer of a thread's rows to a host's memory, one after another; by non-temporal stores if `nontemporal_stores`. The
/// plan asks for those where the threads' share of the last-level cache does not hold what the call reads and writes.
/// They go by whole lines, as a line that is stored to in both ways goes to memory twice: where rows adjoin (`adjoins`:
/// a row ends where the next begins), a line that two rows share is assembled here. Very short rows that share lines,
/// and short rows that do not adjoin, are stored normally. A row's bits are equal either way. Another thread may read
/// the rows once the writer is destroyed.
template <class Y>
class RowWriter {
 public:
  static constexpr int lanes           = lanes_loaded<Y>;
  static constexpr int line            = host_line / sizeof(Y);  ///< elements
  static constexpr int vectors_in_line = std::max(1, line / lanes);

  [[gnu::always_inline]] RowWriter(bool nontemporal_stores, bool adjoins)
      : m_nontemporal_stores(nontemporal_stores), m_joins(nontemporal_stores && adjoins) {}
  RowWriter(const RowWriter&)            = delete;
  RowWriter& operator=(const RowWriter&) = delete;
  [[gnu::always_inline]] ~RowWriter() {
    if (m_joins) {
      for (int l = 0; l < lines; ++l) open(nullptr);
    }
    if (m_nontemporal_stores) fence_nontemporal_stores();
  }

  [[gnu::always_inline]] bool nontemporal_stores() const { return m_nontemporal_stores; }

  /// Writes value(i, n), with n valid lanes, for i = 0, lanes, 2 lanes, ... up to `count`. If `aligns`, or with
  /// non-temporal stores, whole vectors begin at a line.
  template <class Value>
  [[gnu::always_inline]] void write(Y* to, int count, const Value& value, bool aligns = false) {
    int i = begin(to, count, value, aligns);
    if (m_nontemporal_stores) {
      for (; i + line <= count; i += line) {
        for (int l = 0; l < line; l += lanes) store_vector_nontemporal(to + i + l, value(i + l, lanes));
      }
    }
    end(to, i, count, value);
  }

  /// Writes by two vectors at a time, values(i) for i and i + lanes, except at a row's ends.
  template <class Values, class Value>
  [[gnu::always_inline]] void write_by_two(Y* to, int count, const Values& values, const Value& value, bool aligns) {
    constexpr int both = 2 * lanes;
    int i              = begin(to, count, value, aligns);
    if (m_nontemporal_stores) {
      for (; i + line <= count; i += line) {
        for (int l = 0; l < line; l += both) store_two_vectors<true>(to + i + l, values(i + l));
      }
    } else {
      for (; i + both <= count; i += both) store_two_vectors<false>(to + i, values(i));
    }
    end(to, i, count, value);
  }

 private:
  /// Writes up to the begin of a line, if asked for, and returns the index reached.
  template <class Value>
  [[gnu::always_inline]] int begin(Y* to, int count, const Value& value, bool aligns) {
    if (!aligns && !m_nontemporal_stores) return 0;
    const int head = std::min(count, elements_to_boundary<vectors_in_line>(to));
    if (head == 0) return 0;
    Y* const place = place_of(to);
    for (int i = 0; i < head; i += lanes) {
      const int n = std::min(lanes, head - i);
      store_lanes(place + i, value(i, n), n);
    }
    took(head);
    return head;
  }

  /// Writes the rest of a row: with non-temporal stores less than a line.
  template <class Value>
  [[gnu::always_inline]] void end(Y* to, int i, int count, const Value& value) {
    if (i == count) return;
    Y* const place = place_of(to + i) - i;
    const int left = count - i;
    for (; i + lanes <= count; i += lanes) store_vector(place + i, value(i, lanes));
    if (i < count) store_lanes(place + i, value(i, count - i), count - i);
    took(left);
  }

  /// Returns the address to write elements to whose destination is `to`, in one line.
  [[gnu::always_inline]] Y* place_of(Y* to) {
    if (!m_joins) return to;
    if (to != m_next || m_end == line) open(to);
    return m_held[m_last] + m_end;
  }
  [[gnu::always_inline]] void took(int count) {
    if (!m_joins) return;
    m_end += count;
    m_next += count;
  }

  /// Begins a line that contains `to`.
  [[gnu::noinline]] void open(Y* to) {
    if (m_end == line && m_begin == 0) {
      m_to[m_last] = m_next - line;
    } else {
      for (int l = m_begin; l < m_end; ++l) m_next[l - m_end] = m_held[m_last][l];
    }
    m_last                = (m_last + 1) % lines;
    float* const oldest   = reinterpret_cast<float*>(m_to[m_last]);
    const float* const at = reinterpret_cast<const float*>(m_held[m_last]);
    if (oldest != nullptr) {
      constexpr int floats = host_line / sizeof(float);
      for (int l = 0; l < floats; l += simd_width<float>) store_vector_nontemporal(oldest + l, load_vector(at + l));
    }
    m_to[m_last] = nullptr;
    m_next       = to;
    m_begin = m_end = (line - elements_to_boundary<vectors_in_line>(to)) % line;
  }

  /// Number of lines that are held. A line is not read before its stores have left the processor's queue, behind others
  /// that wait for memory: if read at once, softmax f32 x 250, 64 MiB a tensor, two cores, has 20 GB/s.
  static constexpr int lines = 8;

  alignas(host_line) Y m_held[lines][line];
  Y* m_to[lines] = {};       ///< destinations of complete lines
  int m_last     = 0;        ///< line that is being filled
  int m_begin    = 0;        ///< from this element
  int m_end      = 0;        ///< to this one
  Y* m_next      = nullptr;  ///< destination of the next element
  const bool m_nontemporal_stores;
  const bool m_joins;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_ROW_WRITER_HPP
