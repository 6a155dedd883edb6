// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_VIEW_PRODUCTS_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_VIEW_PRODUCTS_HPP

#include <KokkosNN/impl/gpu/device/matrix_unit.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Products by a matrix unit of matrices that are wherever their Views have them, in any layout: fragments are collected
// element by element, so no tile goes through scratch.

namespace KokkosNN::Impl {

/// A thread among all of its team, vector lanes included.
struct ThreadOfTeam {
  int number;
  int count;
};
template <class Member>
KOKKOS_FORCEINLINE_FUNCTION ThreadOfTeam thread_of(const Member& team) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return {static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x), static_cast<int>(blockDim.x * blockDim.y)};
#else
  return {static_cast<int>(team.team_rank()), static_cast<int>(team.team_size())};
#endif
}

/// Fragments of a unit from a(row, k) and b(k, col), elements of 16 x K and K x 16.
template <class Unit>
struct ViewFragments;

template <class T, class Instructions>
struct ViewFragments<MmaUnit16<T, Instructions>> {
  using Unit = MmaUnit16<T, Instructions>;

  template <class Elements>
  KOKKOS_FORCEINLINE_FUNCTION static typename Unit::A a_of(const Elements& a, int lane) {
    typename Unit::A fragment;
    KOKKOSNN_IMPL_UNROLL
    for (int w = 0; w < 4; ++w) {
      const int row = (lane >> 2) + 8 * (w & 1), k = 2 * (lane & 3) + 8 * (w >> 1);
      fragment.word[w] = joined(a(row, k), a(row, k + 1));
    }
    return fragment;
  }
  template <class Elements>
  KOKKOS_FORCEINLINE_FUNCTION static typename Unit::B b_of(const Elements& b, int lane) {
    typename Unit::B fragment;
    KOKKOSNN_IMPL_UNROLL
    for (int w = 0; w < 4; ++w) {
      const int k = 2 * (lane & 3) + 8 * (w & 1), col = (lane >> 2) + 8 * (w >> 1);
      fragment.word[w] = joined(b(k, col), b(k + 1, col));
    }
    return fragment;
  }

 private:
  KOKKOS_FORCEINLINE_FUNCTION static std::uint32_t joined(const T& first, const T& second) {
    return static_cast<std::uint32_t>(Kokkos::bit_cast<std::uint16_t>(first)) |
           static_cast<std::uint32_t>(Kokkos::bit_cast<std::uint16_t>(second)) << 16;
  }
};

template <class Instructions>
struct ViewFragments<MmaUnitDouble<Instructions>> {
  using Unit = MmaUnitDouble<Instructions>;

  template <class Elements>
  KOKKOS_FORCEINLINE_FUNCTION static typename Unit::A a_of(const Elements& a, int lane) {
    return {{a(lane >> 2, lane & 3), a((lane >> 2) + 8, lane & 3)}};
  }
  template <class Elements>
  KOKKOS_FORCEINLINE_FUNCTION static typename Unit::B b_of(const Elements& b, int lane) {
    return {{{b(lane & 3, lane >> 2)}, {b(lane & 3, (lane >> 2) + 8)}}};
  }
};

template <class T, class Instructions>
struct ViewFragments<MfmaUnit<T, Instructions>> {
  using Unit = MfmaUnit<T, Instructions>;

  template <class Elements>
  KOKKOS_FORCEINLINE_FUNCTION static typename Unit::A a_of(const Elements& a, int lane) {
    return fragment_of([&](int k) { return a(lane & 15, k); }, lane);
  }
  template <class Elements>
  KOKKOS_FORCEINLINE_FUNCTION static typename Unit::B b_of(const Elements& b, int lane) {
    return fragment_of([&](int k) { return b(k, lane & 15); }, lane);
  }

 private:
  template <class Elements>
  KOKKOS_FORCEINLINE_FUNCTION static typename Unit::Fragment fragment_of(const Elements& of_k, int lane) {
    typename Unit::Fragment fragment;
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < Unit::own; ++i) fragment.value[i] = of_k(Unit::own * (lane >> 4) + i);
    return fragment;
  }
};

/// Shape of the part of c that a warp computes at a time, 16 x 32: fragments of a serve two products.
inline constexpr int view_product_rows = 16;
inline constexpr int view_product_cols = 32;

/// c = alpha a b + beta c by some warps, of which this thread is in number `warp`. Elements behind the ends count as 0.
template <class Unit, class A, class AMatrix, class BMatrix, class CMatrix>
struct ViewProduct {
  using T = typename Unit::Element;

  const AMatrix& a;
  const BMatrix& b;
  const CMatrix& c;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t inner;
  A alpha;
  A beta;

  KOKKOS_FORCEINLINE_FUNCTION void run(int warp, int warps, int lane) const {
    const std::int64_t across = (cols + view_product_cols - 1) / view_product_cols;
    const std::int64_t tiles  = (rows + view_product_rows - 1) / view_product_rows * across;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t n = warp; n < tiles; n += warps) {
      const std::int64_t row = n / across * view_product_rows, col = n % across * view_product_cols;
      Sums sums;
      add_products(row, col, lane, sums);
      write(row, col, lane, sums);
    }
  }

 private:
  static constexpr int col_tiles = view_product_cols / 16;
  struct Sums {
    typename Unit::C tile[col_tiles];
  };

  KOKKOS_FORCEINLINE_FUNCTION void add_products(std::int64_t row, std::int64_t col, int lane, Sums& sums) const {
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < col_tiles; ++j) Unit::zero(sums.tile[j]);
    std::int64_t k = 0;
    if (row + view_product_rows <= rows && col + view_product_cols <= cols) {
      KOKKOSNN_IMPL_NO_UNROLL
      for (; k + Unit::K <= inner; k += Unit::K) {
        step([&](int r, int i) { return T(a(row + r, k + i)); }, [&](int i, int j) { return T(b(k + i, col + j)); },
             lane, sums);
      }
    }
    KOKKOSNN_IMPL_NO_UNROLL
    for (; k < inner; k += Unit::K) {
      step([&](int r, int i) { return row + r < rows && k + i < inner ? T(a(row + r, k + i)) : T(0.0f); },
           [&](int i, int j) { return k + i < inner && col + j < cols ? T(b(k + i, col + j)) : T(0.0f); }, lane, sums);
    }
  }
  template <class OfA, class OfB>
  KOKKOS_FORCEINLINE_FUNCTION static void step(const OfA& of_a, const OfB& of_b, int lane, Sums& sums) {
    const auto left = ViewFragments<Unit>::a_of(of_a, lane);
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < col_tiles; ++j) {
      const auto right = ViewFragments<Unit>::b_of([&](int i, int col) { return of_b(i, j * 16 + col); }, lane);
      Unit::multiply_add(sums.tile[j], left, right);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void write(std::int64_t row, std::int64_t col, int lane, const Sums& sums) const {
    KOKKOSNN_IMPL_UNROLL
    for (int j = 0; j < col_tiles; ++j) {
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < Unit::rows; ++r) {
        KOKKOSNN_IMPL_UNROLL
        for (int i = 0; i < Unit::cols; ++i) {
          const std::int64_t to_row = row + Unit::row_of(r, lane), to_col = col + j * 16 + Unit::col_of(i, lane);
          if (to_row < rows && to_col < cols) {
            auto& element = c(to_row, to_col);
            A value       = alpha * static_cast<A>(sums.tile[j].value[r][i]);
            if (beta != A(0)) value += beta * static_cast<A>(element);
            element = static_cast<std::remove_reference_t<decltype(element)>>(value);
          }
        }
      }
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_VIEW_PRODUCTS_HPP
