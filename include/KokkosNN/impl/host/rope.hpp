// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_ROPE_HPP
#define KOKKOSNN_IMPL_HOST_ROPE_HPP

#include <KokkosNN/impl/host/vector.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/inputs/rope_rows.hpp>
#include <KokkosNN/impl/tuned_shapes.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

// The rotary embedding on a host, by loops of vectors. A team is a thread. It has the angles of a block of positions
// and pairs in its first-level cache while it goes through their heads.

namespace KokkosNN::Impl {

/// Vectors of cosines and sines of columns, in order, of one position.
template <class Angles, class A>
class HostAngleReader;

template <class A>
class HostAngleReader<TableAngles<A>, A> {
 public:
  HostAngleReader(const TableAngles<A>& angles, std::int64_t position, std::int64_t first)
      : m_angles(angles), m_is_row(angles.has(position)) {
    if (!m_is_row) return;
    m_cos = angles.cos + position * angles.cos_row_stride + first * angles.cos_col_stride;
    m_sin = angles.sin + position * angles.sin_row_stride + first * angles.sin_col_stride;
  }

  /// The next `count` columns, at most a vector.
  CosSin<Vector<A>> next(int count) {
    if (!m_is_row) {
      const auto nan = splat<Vector<A>>(Kokkos::Experimental::quiet_NaN_v<A>);
      return {nan, nan};
    }
    return {take(m_cos, m_angles.cos_col_stride, count), take(m_sin, m_angles.sin_col_stride, count)};
  }

 private:
  static Vector<A> take(const A*& from, std::int64_t stride, int count) {
    const A* const begin = from;
    from += count * stride;
    if (stride == 1) return load_up_to(begin, count);
    A each[simd_width<A>] = {};
    for (int l = 0; l < count; ++l) each[l] = begin[l * stride];
    return load_vector(each);
  }

  const TableAngles<A>& m_angles;
  const bool m_is_row;
  const A* m_cos = nullptr;
  const A* m_sin = nullptr;
};

/// Frequencies of a vector of columns.
inline DoubleDouble<Vector<double>> frequencies_from(const RotaryFrequencies& frequencies, std::int64_t column) {
  constexpr int lanes = simd_width<double>;
  double high[lanes], low[lanes];
  DoubleDouble<double> each = frequencies.of(column);
  for (int l = 0; l < lanes; ++l, each = frequencies.next(each)) {
    high[l] = each.high;
    low[l]  = each.low;
  }
  return {load_vector(high), load_vector(low)};
}

/// Stores angles that were reduced in double as A computes with them.
template <class A>
KOKKOS_FORCEINLINE_FUNCTION void store_rounded(const ReducedAngle<Vector<double>>& angle, A* rest, BitsOf<A>* quarter) {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
  if constexpr (std::is_same_v<A, float>) {
    using Rest = typename VectorOf<float, vector_bytes / 2>::type;
    typedef std::uint32_t Quarter __attribute__((vector_size(vector_bytes / 2)));
    const auto narrow_rest    = __builtin_convertvector(angle.rest, Rest);
    const auto narrow_quarter = __builtin_convertvector(angle.quarter, Quarter);
    std::memcpy(rest, &narrow_rest, sizeof narrow_rest);
    std::memcpy(quarter, &narrow_quarter, sizeof narrow_quarter);
    return;
  }
#endif
  if constexpr (std::is_same_v<A, double>) {
    std::memcpy(rest, &angle.rest, sizeof angle.rest);
    std::memcpy(quarter, &angle.quarter, sizeof angle.quarter);
  } else if constexpr (simd_width<double> == 1) {
    *rest    = static_cast<A>(angle.rest);
    *quarter = static_cast<BitsOf<A>>(angle.quarter);
  }
}

template <class A>
class HostAngleReader<ComputedAngles<A>, A> {
 public:
  HostAngleReader(const ComputedAngles<A>& angles, std::int64_t position, const DoubleDouble<Vector<double>>& first)
      : m_position(splat<Vector<double>>(static_cast<double>(position))), m_frequency(first) {
    constexpr int log2_lanes = simd_width<double> == 8 ? 3 : simd_width<double> == 4 ? 2 : simd_width<double> == 2;
    static_assert(1 << log2_lanes == simd_width<double>);
    const DoubleDouble<double>& step = angles.frequencies.power[log2_lanes];
    m_step                           = {splat<Vector<double>>(step.high), splat<Vector<double>>(step.low)};
  }

  CosSin<Vector<A>> next(int) {
    A rest[simd_width<A>];
    BitsOf<A> quarter[simd_width<A>];
    for (int l = 0; l < simd_width<A>; l += simd_width<double>) {
      store_rounded<A>(reduced_angle(m_frequency, m_position), rest + l, quarter + l);
      m_frequency = product(m_frequency, m_step);
    }
    ReducedAngle<Vector<A>> angle;
    std::memcpy(&angle.rest, rest, sizeof rest);
    std::memcpy(&angle.quarter, quarter, sizeof quarter);
    return cos_sin<Vector<A>>(angle);
  }

 private:
  Vector<double> m_position;
  DoubleDouble<Vector<double>> m_frequency;
  DoubleDouble<Vector<double>> m_step;
};

/// Exchanges the elements of each pair of neighbouring lanes.
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
template <class T, int... lane>
KOKKOS_FORCEINLINE_FUNCTION T pairs_exchanged(const T& v, std::integer_sequence<int, lane...>) {
  return shuffled<T, T>(v, v, std::integer_sequence<int, (lane ^ 1)...>{});
}
#endif
template <class A>
KOKKOS_FORCEINLINE_FUNCTION Vector<A> pairs_exchanged(const Vector<A>& v) {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
  return pairs_exchanged<Vector<A>>(v, std::make_integer_sequence<int, simd_width<A>>{});
#else
  return v;  // not called
#endif
}

/// Rotates a call's rows; elements of a row are neighbours if `packed`, else anywhere.
template <class X, RopeForm form, bool packed, class Angles>
struct HostRope {
  using A                              = accumulator_t<X>;
  using V                              = Vector<A>;
  static constexpr int lanes           = simd_width<A>;
  static constexpr bool doubles_angles = packed && form == RopeForm::interleaved;

  RopeRows<X> rows;
  Angles angles;
  A direction;
  std::int64_t positions_per_team;
  std::int64_t heads_per_team;
  std::int64_t head_parts;
  bool nontemporal_stores;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& member) const {
    KOKKOS_IF_ON_HOST((run(member.league_rank());))
  }

 private:
  /// A block of positions and pairs, with their angles. Rows of angles are whole vectors; those of interleaved pairs
  /// have each angle twice, the first sine of each pair negated.
  struct Block {
    static constexpr int size = (rope_host_pairs + rope_host_positions * lanes) * (doubles_angles ? 2 : 1);

    std::int64_t first_pair;
    int pairs;
    int positions;
    RopePlace place[rope_host_positions];
    const A* cos_of[rope_host_positions];
    const A* sin_of[rope_host_positions];
    alignas(vector_bytes) A cos[size];
    alignas(vector_bytes) A sin[size];
  };

  /// Elements of the longest row that is stored through a buffer.
  static constexpr int row_buffer = 4096;

  /// How a row is stored: directly, or through a buffer of a row, which then is written in order.
  enum class Stores { ordinary, nontemporal, by_row };

  Stores stores() const {
    const bool has_room = rows.pairs <= rope_host_pairs && rows.dim <= row_buffer;
    if (!packed || !nontemporal_stores || !has_room) return Stores::ordinary;
    const bool has_lines = rows.pairs * std::int64_t(sizeof(X)) % std::int64_t(host_line) == 0 && rows.rest == 0;
    return has_lines ? Stores::nontemporal : Stores::by_row;
  }

  void run(std::int64_t team) const {
    const std::int64_t first = team / head_parts * positions_per_team;
    const std::int64_t end   = std::min(first + positions_per_team, rows.outer.extent * rows.inner.extent);
    const std::int64_t head  = team % head_parts * heads_per_team;
    const std::int64_t heads = std::min(head + heads_per_team, rows.heads.extent);
    Block block;
    for (std::int64_t pair = 0; pair < rows.pairs; pair += block.pairs) {
      const std::int64_t most = packed ? rope_host_pairs : rope_host_pairs / rope_host_positions;
      block.first_pair        = pair;
      block.pairs             = static_cast<int>(std::min(most, rows.pairs - pair));
      const auto frequencies  = first_frequencies(pair);
      for (std::int64_t position = first; position < end; position += block.positions) {
        const std::int64_t room =
            packed && !has_heads_outside() ? 1 : std::min(rope_host_pairs / block.pairs, rope_host_positions);
        block.positions = static_cast<int>(std::min(room, end - position));
        set_angles(position, frequencies, block);
        rotate(block, head, heads);
      }
    }
    if (rows.rest > 0 && !(packed && block.pairs == rows.pairs)) copy_rest(first, end, head, heads);
    if (stores() != Stores::ordinary) fence_nontemporal_stores();
  }

  /// First column of a block, or its frequencies.
  auto first_frequencies(std::int64_t pair) const {
    if constexpr (Angles::are_computed) {
      return frequencies_from(angles.frequencies, pair);
    } else {
      return pair;
    }
  }

  template <class First>
  void set_angles(std::int64_t position, const First& first, Block& block) const {
    const int row = (block.pairs + lanes - 1) / lanes * lanes * (doubles_angles ? 2 : 1);
    for (int p = 0; p < block.positions; ++p) {
      block.place[p]  = rows.place(position + p);
      block.cos_of[p] = block.cos + p * row;
      block.sin_of[p] = block.sin + p * row;
      if (takes_table(block, p)) continue;
      HostAngleReader<Angles, A> reader(angles, block.place[p].position, first);
      A* const cos = block.cos + p * row;
      A* const sin = block.sin + p * row;
      for (int j = 0; j < block.pairs; j += lanes)
        store_angles(reader.next(std::min(lanes, block.pairs - j)), cos, sin, j);
    }
  }

  /// Points to a table's row where that is what the loops read.
  bool takes_table(Block& block, int p) const {
    if constexpr (!Angles::are_computed && !doubles_angles) {
      const std::int64_t position = block.place[p].position;
      if (angles.cos_col_stride != 1 || angles.sin_col_stride != 1 || !angles.has(position)) return false;
      block.cos_of[p] = angles.cos + position * angles.cos_row_stride + block.first_pair;
      block.sin_of[p] = angles.sin + position * angles.sin_row_stride + block.first_pair;
      return true;
    }
    return false;
  }

  static void store_angles(const CosSin<V>& angle, A* cos, A* sin, int j) {
    if constexpr (doubles_angles) {
      store_vector(cos + 2 * j, interleaved_half<0, A>(angle.cos, angle.cos));
      store_vector(cos + 2 * j + lanes, interleaved_half<1, A>(angle.cos, angle.cos));
      store_vector(sin + 2 * j, interleaved_half<0, A>(-angle.sin, angle.sin));
      store_vector(sin + 2 * j + lanes, interleaved_half<1, A>(-angle.sin, angle.sin));
    } else {
      store_vector(cos + j, angle.cos);
      store_vector(sin + j, angle.sin);
    }
  }

  /// Rows in the order of memory, as far as positions and heads go.
  void rotate(const Block& block, std::int64_t head, std::int64_t end) const {
    if constexpr (!packed) {
      for (; head < end; ++head) rotate_strided(block, head);
    } else {
      switch (stores()) {
        case Stores::ordinary:
          return rotate_rows<Stores::ordinary>(block, head, end);
        case Stores::nontemporal:
          return rotate_rows<Stores::nontemporal>(block, head, end);
        case Stores::by_row:
          return rotate_rows<Stores::by_row>(block, head, end);
      }
    }
  }

  template <Stores stores>
  void rotate_rows(const Block& block, std::int64_t head, std::int64_t end) const {
    alignas(host_line) X row[stores == Stores::by_row ? row_buffer : 1];
    const auto rotate_row = [&](int p, std::int64_t h) KOKKOSNN_IMPL_INLINED {
      const X* const x = rows.x + block.place[p].x + h * rows.heads.x_stride;
      X* const y       = rows.y + block.place[p].y + h * rows.heads.y_stride;
      if constexpr (stores == Stores::by_row) {
        rotate_into<false>(row, x, block, p);
        store_row(y, row);
      } else {
        rotate_into<stores == Stores::nontemporal>(y, x, block, p);
      }
    };
    if (has_heads_outside()) {
      for (; head < end; ++head) {
        for (int p = 0; p < block.positions; ++p) rotate_row(p, head);
      }
    } else {
      for (int p = 0; p < block.positions; ++p) {
        for (std::int64_t h = head; h < end; ++h) rotate_row(p, h);
      }
    }
  }
  bool has_heads_outside() const { return std::llabs(rows.heads.x_stride) > std::llabs(rows.inner.x_stride); }

  /// A row's pairs of a block; if these are all, what is behind them, too.
  template <bool nontemporal>
  KOKKOS_FORCEINLINE_FUNCTION void rotate_into(X* y, const X* x, const Block& block, int p) const {
    constexpr bool is_halved = form == RopeForm::half_rotated;
    const std::int64_t begin = (is_halved ? 1 : 2) * block.first_pair;
    if constexpr (is_halved) {
      rotate_halves<nontemporal>(x + begin, y + begin, block.cos_of[p], block.sin_of[p], block.pairs);
    } else {
      rotate_neighbours<nontemporal>(x + begin, y + begin, block.cos_of[p], block.sin_of[p], 2 * block.pairs);
    }
    if (rows.rest > 0 && block.pairs == rows.pairs) copy_neighbours(x, y);
  }
  void copy_neighbours(const X* x, X* y) const {
    const std::int64_t first = 2 * rows.pairs;
    std::memcpy(static_cast<void*>(y + first), x + first, static_cast<std::size_t>(rows.rest) * sizeof(X));
  }

  /// Stores a row of whole lines past the caches; as floats, which a move does not change.
  void store_row(X* y, const X* row) const {
    const auto* const from = reinterpret_cast<const float*>(row);
    auto* const to         = reinterpret_cast<float*>(y);
    const int floats       = static_cast<int>(rows.dim * sizeof(X) / sizeof(float));
    for (int i = 0; i < floats; i += simd_width<float>) store_vector_nontemporal(to + i, load_vector(from + i));
  }

  template <bool nontemporal>
  KOKKOS_FORCEINLINE_FUNCTION static void store(X* to, const V& v) {
    if constexpr (nontemporal) {
      store_vector_nontemporal(to, v);
    } else {
      store_vector(to, v);
    }
  }

  template <bool nontemporal>
  KOKKOS_FORCEINLINE_FUNCTION void rotate_halves(const X* x, X* y, const A* cos, const A* sin, int n) const {
    const V sign             = splat<V>(direction);
    const std::int64_t apart = rows.pairs;  // stores might change what `this` points to
    int j                    = 0;
    for (; j + lanes <= n; j += lanes) {
      V a = load_vector(x + j), b = load_vector(x + apart + j);
      rotate_pair(a, b, load_vector(cos + j), sign * load_vector(sin + j));
      store<nontemporal>(y + j, a);
      store<nontemporal>(y + apart + j, b);
    }
    if (j < n) {
      V a = load_lanes(x + j, n - j, A(0)), b = load_lanes(x + apart + j, n - j, A(0));
      rotate_pair(a, b, load_lanes(cos + j, n - j, A(0)), sign * load_lanes(sin + j, n - j, A(0)));
      store_lanes(y + j, a, n - j);
      store_lanes(y + apart + j, b, n - j);
    }
  }

  template <bool nontemporal>
  KOKKOS_FORCEINLINE_FUNCTION void rotate_neighbours(const X* x, X* y, const A* cos, const A* sin, int n) const {
    const V sign       = splat<V>(direction);
    const auto rotated = [&](const V& v, int j) KOKKOSNN_IMPL_INLINED {
      return multiply_add(v, load_vector(cos + j), pairs_exchanged<A>(v) * (sign * load_vector(sin + j)));
    };
    int j = 0;
    for (; j + lanes <= n; j += lanes) store<nontemporal>(y + j, rotated(load_vector(x + j), j));
    if (j < n) store_lanes(y + j, rotated(load_lanes(x + j, n - j, A(0)), j), n - j);
  }

  /// Element by element, neighbouring positions in turn.
  void rotate_strided(const Block& block, std::int64_t head) const {
    constexpr bool is_halved = form == RopeForm::half_rotated;
    const std::int64_t apart = is_halved ? rows.pairs : 1;
    const X* const x         = rows.x + head * rows.heads.x_stride;
    X* const y               = rows.y + head * rows.heads.y_stride;
    for (int j = 0; j < block.pairs; ++j) {
      const std::int64_t column = (is_halved ? 1 : 2) * (block.first_pair + j);
      for (int p = 0; p < block.positions; ++p) {
        const X* const from = x + block.place[p].x + column * rows.x_dim_stride;
        X* const to         = y + block.place[p].y + column * rows.y_dim_stride;
        A a = static_cast<A>(from[0]), b = static_cast<A>(from[apart * rows.x_dim_stride]);
        rotate_pair(a, b, block.cos_of[p][j], direction * block.sin_of[p][j]);
        to[0]                         = static_cast<X>(a);
        to[apart * rows.y_dim_stride] = static_cast<X>(b);
      }
    }
  }

  void copy_rest(std::int64_t position, std::int64_t end, std::int64_t head, std::int64_t last_head) const {
    for (; position < end; ++position) {
      const RopePlace at = rows.place(position);
      for (std::int64_t h = head; h < last_head; ++h) {
        const X* const x = rows.x + at.x + h * rows.heads.x_stride + 2 * rows.pairs * rows.x_dim_stride;
        X* const y       = rows.y + at.y + h * rows.heads.y_stride + 2 * rows.pairs * rows.y_dim_stride;
        for (std::int64_t i = 0; i < rows.rest; ++i) y[i * rows.y_dim_stride] = x[i * rows.x_dim_stride];
      }
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_ROPE_HPP
