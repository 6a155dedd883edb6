// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ROPE_HPP
#define KOKKOSNN_IMPL_GPU_ROPE_HPP

#include <KokkosNN/impl/gpu/device/memory.hpp>
#include <KokkosNN/impl/inputs/rope_rows.hpp>
#include <KokkosNN/impl/tuned_shapes.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// The rotary embedding on a GPU.

namespace KokkosNN::Impl {

/// Shares of a call's teams and threads.
struct RopeShares {
  std::int64_t positions_per_team;
  std::int64_t heads_per_team;
  std::int64_t head_parts;
  int heads_side_by_side;
  bool positions_first;
};

/// Rotates V pairs of a row at a time, two packs of V elements, or copies as many behind the rotated ones. A thread has
/// the angles of its pairs in registers while it goes through heads of a position. With V = 1 rows have any strides.
template <class X, RopeForm form, int V, class Angles>
struct RopeInTeam {
  using A = accumulator_t<X>;

  RopeRows<X> rows;
  Angles angles;
  A direction;
  RopeShares shares;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& member) const {
    const std::int64_t team  = member.league_rank();
    const std::int64_t part  = team % shares.head_parts;
    const std::int64_t first = team / shares.head_parts * shares.positions_per_team;
    const std::int64_t left  = rows.outer.extent * rows.inner.extent - first;
    const int positions      = static_cast<int>(left < shares.positions_per_team ? left : shares.positions_per_team);
    const std::int64_t head  = part * shares.heads_per_team;
    const std::int64_t last  = head + shares.heads_per_team;
    const std::int64_t end   = last < rows.heads.extent ? last : rows.heads.extent;
    const int rotary         = static_cast<int>(rows.pairs / V);
    const int row            = rotary + static_cast<int>((rows.rest + 2 * V - 1) / (2 * V));
    const int position_work  = row * shares.heads_side_by_side;
    const int work           = positions * position_work;
    for (int i = member.team_rank(); i < work; i += member.team_size()) {
      const int item     = shares.positions_first ? i / positions : i % position_work;
      const int position = shares.positions_first ? i % positions : i / position_work;
      const int beside   = item / row;
      const int unit     = item % row;
      const RopePlace at = rows.place(first + position);
      if (unit < rotary) {
        rotate(at, unit, head + beside, end);
      } else {
        copy(at, unit - rotary, head + beside, end);
      }
    }
  }

 private:
  using P = Pack<X, V>;

  KOKKOS_INLINE_FUNCTION const X* x_row(const RopePlace& at, std::int64_t head) const {
    return rows.x + at.x + head * rows.heads.x_stride;
  }
  KOKKOS_INLINE_FUNCTION X* y_row(const RopePlace& at, std::int64_t head) const {
    return rows.y + at.y + head * rows.heads.y_stride;
  }
  KOKKOS_INLINE_FUNCTION P load(const X* row, std::int64_t column) const {
    if constexpr (V > 1) {
      return load_at_once(reinterpret_cast<const P*>(row + column), LinePolicy());
    } else {
      return P{row[column * rows.x_dim_stride]};
    }
  }
  KOKKOS_INLINE_FUNCTION void store(X* row, std::int64_t column, const P& pack) const {
    if constexpr (V > 1) {
      store_at_once(reinterpret_cast<P*>(row + column), pack);
    } else {
      row[column * rows.y_dim_stride] = pack[0];
    }
  }

  KOKKOS_INLINE_FUNCTION void rotate(const RopePlace& at, std::int64_t unit, std::int64_t head,
                                     std::int64_t end) const {
    constexpr int K           = rope_heads_at_once;
    constexpr bool is_halved  = form == RopeForm::half_rotated;
    const std::int64_t first  = (is_halved ? 1 : 2) * unit * V;
    const std::int64_t second = first + (is_halved ? rows.pairs : V);
    const int stride          = shares.heads_side_by_side;
    A c[V], s[V];
    angles.load(at.position, unit * V, c, s);
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < V; ++j) s[j] *= direction;
    KOKKOSNN_IMPL_NO_UNROLL
    for (; head < end; head += K * stride) {
      P a[K], b[K];
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) {
        if (head + k * stride >= end) continue;
        a[k] = load(x_row(at, head + k * stride), first);
        b[k] = load(x_row(at, head + k * stride), second);
      }
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < K; ++k) {
        if (head + k * stride >= end) continue;
        rotate_packs(a[k], b[k], c, s);
        store(y_row(at, head + k * stride), first, a[k]);
        store(y_row(at, head + k * stride), second, b[k]);
      }
    }
  }

  KOKKOS_INLINE_FUNCTION static void rotate_packs(P& a, P& b, const A (&c)[V], const A (&s)[V]) {
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < V; ++j) {
      // Neighbours are a pair where forms are interleaved, but for packs of one.
      if constexpr (form == RopeForm::half_rotated || V == 1) {
        rotate_elements(a[j], b[j], c[j], s[j]);
      } else {
        P& pack = j < V / 2 ? a : b;
        rotate_elements(pack[2 * j % V], pack[2 * j % V + 1], c[j], s[j]);
      }
    }
  }
  KOKKOS_INLINE_FUNCTION static void rotate_elements(X& x1, X& x2, A c, A s) {
    A a = static_cast<A>(x1), b = static_cast<A>(x2);
    rotate_pair(a, b, c, s);
    x1 = static_cast<X>(a);
    x2 = static_cast<X>(b);
  }

  /// Copies up to two packs of elements behind the rotated ones.
  KOKKOS_INLINE_FUNCTION void copy(const RopePlace& at, std::int64_t unit, std::int64_t head, std::int64_t end) const {
    const std::int64_t first = 2 * (rows.pairs + unit * V);
    const int count          = static_cast<int>(rows.dim - first < 2 * V ? rows.dim - first : 2 * V);
    for (; head < end; head += shares.heads_side_by_side) {
      const X* const from = x_row(at, head);
      X* const to         = y_row(at, head);
      for (int begin = 0; begin < count; begin += V) {
        if (begin + V <= count) {
          store(to, first + begin, load(from, first + begin));
        } else {
          for (int j = begin; j < count; ++j) to[first + j] = from[first + j];
        }
      }
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ROPE_HPP
