// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_TILE_PRODUCTS_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_TILE_PRODUCTS_HPP

#include <KokkosNN/impl/gpu/device/barriers.hpp>
#include <KokkosNN/impl/gpu/device/matrix_unit.hpp>
#include <KokkosNN/impl/gpu/device/memory.hpp>
#include <KokkosNN/impl/gpu/device/scratch_rows.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <utility>

// The two products of attention by a warp of a matrix unit: scores = rows columns^T, summed over the `dims` elements of
// a head, and sums += weights tile, whose weights are scores that stayed in the accumulators' registers.

namespace KokkosNN::Impl {

/// Products of `row_tiles` x 16 rows with `cols` rows of a tile.
template <class Unit, int dims, int row_tiles, int cols>
struct TileProducts {
  using A       = typename Unit::Accumulated;
  using Address = typename Unit::Address;
  using Scores  = typename Unit::C[row_tiles][cols / 16];
  using Sums    = typename Unit::C[row_tiles][dims / 16];

  static constexpr int row_bytes = dims * int(sizeof(typename Unit::Element));
  static constexpr int steps     = dims / Unit::K;

  /// Bit of a row among those that this thread shares.
  KOKKOS_FORCEINLINE_FUNCTION static std::uint32_t bit(int t, int r) { return 1u << (t * Unit::rows + r); }
  /// f(t, r) for the rows that this thread shares.
  template <class F>
  KOKKOS_FORCEINLINE_FUNCTION static void for_rows(const F& f) {
    KOKKOSNN_IMPL_UNROLL
    for (int t = 0; t < row_tiles; ++t) {
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < Unit::rows; ++r) f(t, r);
    }
  }
  /// f(score, column) for this thread's scores of a row.
  template <class F>
  KOKKOS_FORCEINLINE_FUNCTION static void for_columns(Scores& scores, int t, int r, int lane, const F& f) {
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < cols / 16; ++j) {
      KOKKOSNN_IMPL_UNROLL
      for (int c = 0; c < Unit::cols; ++c) f(scores[t][j].value[r][c], j * 16 + Unit::col_of(c, lane));
    }
  }
  /// f(score, other score) for this thread's scores of two tiles.
  template <class F>
  KOKKOS_FORCEINLINE_FUNCTION static void for_both(Scores& scores, Scores& others, const F& f) {
    for_rows([&](int t, int r) {
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < cols / 16; ++j) {
        KOKKOSNN_IMPL_UNROLL
        for (int c = 0; c < Unit::cols; ++c) f(scores[t][j].value[r][c], others[t][j].value[r][c]);
      }
    });
  }
  /// f(sum, element of the head) for this thread's sums of a row.
  template <class S, class F>
  KOKKOS_FORCEINLINE_FUNCTION static void for_sums(S& sums, int t, int r, int lane, const F& f) {
    KOKKOSNN_IMPL_UNROLL
    for (int d = 0; d < dims / 16; ++d) {
      KOKKOSNN_IMPL_UNROLL
      for (int c = 0; c < Unit::cols; ++c) f(sums[t][d].value[r][c], d * 16 + Unit::col_of(c, lane));
    }
  }
  /// True, in all threads that share a row, if one of its sums or the factor is NaN or infinite.
  KOKKOS_FORCEINLINE_FUNCTION static bool is_not_finite(const Sums& sums, int t, int r, A factor = A(1)) {
    A zero = A(0) * factor;
    for_sums(sums, t, r, 0, [&](const A& sum, int) { zero = fused_multiply_add(sum, A(0), zero); });
    return Unit::row_max(zero == A(0) ? A(0) : A(1)) != A(0);
  }
  KOKKOS_FORCEINLINE_FUNCTION static void clear(Sums& sums) {
    KOKKOSNN_IMPL_UNROLL
    for (int t = 0; t < row_tiles; ++t) {
      KOKKOSNN_IMPL_UNROLL
      for (int d = 0; d < dims / 16; ++d) Unit::zero(sums[t][d]);
    }
  }

  /// Scores of rows that row(t, i) gives elements i K to i K + K - 1 of, with the rows of a tile.
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION static void multiply(Scores& scores, const Row& row, Address tile, int lane) {
    KOKKOSNN_IMPL_UNROLL
    for (int t = 0; t < row_tiles; ++t) {
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < cols / 16; ++j) Unit::zero(scores[t][j]);
    }
    const auto step = [&](int i) {
      typename Unit::A own[row_tiles];
      KOKKOSNN_IMPL_UNROLL
      for (int t = 0; t < row_tiles; ++t) own[t] = row(t, i);
      KOKKOSNN_IMPL_UNROLL
      for (int j = 0; j < cols / 16; ++j) {
        const auto other = Unit::template load_b_columns<row_bytes>(tile, j * 16, i * Unit::K, lane);
        KOKKOSNN_IMPL_UNROLL
        for (int t = 0; t < row_tiles; ++t) Unit::multiply_add(scores[t][j], own[t], other);
      }
    };
    if constexpr (!Unit::uses_tensor_cores || products_of_unit<Unit> > 1) {
      KOKKOSNN_IMPL_NO_UNROLL  // compilers would load the fragments of many steps at once, and spill
      for (int i = 0; i < steps; ++i) step(i);
    } else {
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < steps; ++i) step(i);
    }
  }
  /// Scores of the rows of a tile from row `first` on.
  KOKKOS_FORCEINLINE_FUNCTION static void multiply(Scores& scores, Address rows, int first, Address tile, int lane) {
    multiply(
        scores, [&](int t, int i) { return Unit::template load_a<row_bytes>(rows, first + t * 16, i * Unit::K, lane); },
        tile, lane);
  }

  /// Adds the rows of a tile, each times its weight, to the sums.
  KOKKOS_FORCEINLINE_FUNCTION static void add(Sums& sums, const Scores& weights, Address tile, int lane) {
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < cols / 16; ++j) {
      add(sums, weights, j, tile, lane, std::make_integer_sequence<int, 16 / Unit::K>{});
    }
  }

 private:
  template <int... part>
  KOKKOS_FORCEINLINE_FUNCTION static void add(Sums& sums, const Scores& weights, int j, Address tile, int lane,
                                              std::integer_sequence<int, part...>) {
    (add_part<part>(sums, weights, j, tile, lane), ...);
  }
  template <int part>
  KOKKOS_FORCEINLINE_FUNCTION static void add_part(Sums& sums, const Scores& weights, int j, Address tile, int lane) {
    typename Unit::A weight[row_tiles];
    KOKKOSNN_IMPL_UNROLL
    for (int t = 0; t < row_tiles; ++t) weight[t] = Unit::template operand<part>(weights[t][j], lane);
    KOKKOSNN_IMPL_UNROLL
    for (int d = 0; d < dims / 16; ++d) {
      const auto other = Unit::template load_b_for<row_bytes, part>(tile, j * 16, d * 16, lane);
      KOKKOSNN_IMPL_UNROLL
      for (int t = 0; t < row_tiles; ++t) Unit::multiply_add(sums[t][d], weight[t], other);
    }
  }
};

/// Rows of sums on their way from a team's registers to memory, through scratch, which takes fewer instructions and
/// accesses than a thread's elements one by one.
template <class Unit, int dims, int row_tiles, int warps>
struct SumsThroughScratch {
  using X                        = typename Unit::Element;
  using A                        = typename Unit::Accumulated;
  using Address                  = typename Unit::Address;
  using Sums                     = typename Unit::C[row_tiles][dims / 16];
  using Factors                  = A[row_tiles][Unit::rows];
  static constexpr int rows      = warps * row_tiles * 16;
  static constexpr int row_bytes = dims * int(sizeof(X));
  static constexpr int bytes     = rows * row_bytes;  ///< of scratch
  static constexpr int team_size = warps * Unit::lanes;
  static constexpr int per_chunk = chunk_bytes / int(sizeof(X));
  static constexpr int chunks    = row_bytes / chunk_bytes;
  using Chunk                    = Pack<X, per_chunk>;

  /// Writes `count` elements, `stride` apart, of the first `left` rows, each times its factor: row_of(r) points to the
  /// first element of row r. A barrier is ahead of the first access of scratch, none behind the last one.
  template <class Member, class RowOf>
  KOKKOS_FORCEINLINE_FUNCTION static void write(const Member& team, Address scratch, const Sums& sums,
                                                const Factors& factors, std::int64_t left, std::int64_t count,
                                                std::int64_t stride, const RowOf& row_of) {
    const int rank = anew(static_cast<int>(team.team_rank()));
    team.team_barrier();
    KOKKOSNN_IMPL_UNROLL
    for (int t = 0; t < row_tiles; ++t) {
      KOKKOSNN_IMPL_UNROLL
      for (int d = 0; d < dims / 16; ++d) {
        Unit::template store<row_bytes>(scratch, (rank / Unit::lanes * row_tiles + t) * 16, d * 16, rank % Unit::lanes,
                                        sums[t][d], factors[t]);
      }
    }
    team.team_barrier();
    KOKKOSNN_IMPL_NO_UNROLL
    for (int i = rank; i < rows * chunks; i += team_size) {
      const int r = i / chunks, first = i % chunks * per_chunk;
      if (r >= left || first >= count) continue;
      store(row_of(r) + first * stride, stride, count - first,
            Unit::Instructions::template load<Chunk>(scratch + Unit::template along_place<row_bytes>(r, i % chunks)));
    }
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static void store(X* to, std::int64_t stride, std::int64_t left, const Chunk& chunk) {
    if (stride == 1 && left >= per_chunk && reinterpret_cast<std::uintptr_t>(to) % chunk_bytes == 0) {
      store_at_once(reinterpret_cast<Chunk*>(to), chunk);
    } else {
      KOKKOSNN_IMPL_UNROLL
      for (int e = 0; e < per_chunk; ++e) {
        if (e < left) to[e * stride] = chunk[e];
      }
    }
  }
};

/// A team's own rows as left operands that stay in registers, `row_tiles` x 16 a warp. They pass through scratch in
/// pieces, which are no larger than the tiles that follow them there.
template <class Unit, int dims, int row_tiles, int warps, int most_rows>
struct KeptRows {
  using T                        = typename Unit::Element;
  using Address                  = typename Unit::Address;
  using Fragments                = typename Unit::A[row_tiles][dims / Unit::K];
  static constexpr int rows      = warps * row_tiles * 16;
  static constexpr int piece     = rows < most_rows ? rows : most_rows;
  static constexpr int row_bytes = dims * int(sizeof(T));
  static constexpr int team_size = warps * Unit::lanes;
  static_assert(rows % piece == 0 && piece % 16 == 0);

  /// Loads rows, row(r) as of ScratchRows. Scratch is free ahead and behind.
  template <class Member, class Row>
  KOKKOS_FORCEINLINE_FUNCTION static void load(const Member& team, Address scratch, const Row& row,
                                               const RowElements& elements, const T* any_element, Fragments& to) {
    KOKKOSNN_IMPL_NO_UNROLL
    for (int first = 0; first < rows; first += piece) {
      const int rank = anew(static_cast<int>(team.team_rank()));
      ScratchRows<Unit, TileUse::along, piece, row_bytes, team_size>::fetch(
          scratch, [&](int r) -> const T* { return row(first + r); }, elements, any_element, rank);
      Unit::commit();
      Unit::template wait<0>();
      team.team_barrier();
      KOKKOSNN_IMPL_UNROLL
      for (int t = 0; t < row_tiles; ++t) {
        const int place = (rank / Unit::lanes * row_tiles + t) * 16 - first;
        if (place < 0 || place >= piece) continue;
        KOKKOSNN_IMPL_UNROLL
        for (int i = 0; i < dims / Unit::K; ++i) {
          to[t][i] = Unit::template load_a<row_bytes>(scratch, place, i * Unit::K, rank % Unit::lanes);
        }
      }
      team.team_barrier();
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_TILE_PRODUCTS_HPP
