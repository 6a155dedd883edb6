// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEAM_MATMUL_HPP
#define KOKKOSNN_TEAM_MATMUL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/gpu/device/view_products.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

// A matrix product inside a user's own TeamPolicy kernel.

namespace KokkosNN {
namespace Impl {

/// A matrix with rows and columns exchanged.
template <class M>
struct FlippedMatrix {
  using value_type = typename M::value_type;

  const M& matrix;

  KOKKOS_FORCEINLINE_FUNCTION auto extent(int axis) const { return matrix.extent(1 - axis); }
  KOKKOS_FORCEINLINE_FUNCTION decltype(auto) operator()(std::int64_t row, std::int64_t col) const {
    return matrix(col, row);
  }
};

template <class M, class Layout>
inline constexpr bool has_layout = false;
template <class M, class Layout>
  requires requires { typename M::array_layout; }
inline constexpr bool has_layout<M, Layout> = std::is_same_v<typename M::array_layout, Layout>;

/// True if the columns of a row are neighbours, which a host loads as a vector.
template <class M>
inline constexpr bool has_neighbouring_columns = has_layout<M, Kokkos::LayoutRight>;
template <class M>
inline constexpr bool has_neighbouring_columns<FlippedMatrix<M>> = has_layout<M, Kokkos::LayoutLeft>;

/// c = alpha a b + beta c by the threads of a team, each of which sums tiles of c in registers. A host has a tile's
/// columns in vectors. On a GPU neighbouring threads have neighbouring columns.
template <class A, class AMatrix, class BMatrix, class CMatrix>
struct TeamProduct {
  using V                      = Vector<A>;
  static constexpr int width   = simd_width<A>;
  static constexpr int vectors = width > 1 ? 2 : 4;
  static constexpr int rows_   = 4;
  static constexpr int cols_   = vectors * width;

  const AMatrix& a;
  const BMatrix& b;
  const CMatrix& c;
  A alpha;
  A beta;

  template <class Member>
  KOKKOS_FUNCTION void run(const Member& member) const {
    const auto rows = static_cast<std::int64_t>(c.extent(0)), cols = static_cast<std::int64_t>(c.extent(1));
    const std::int64_t across = (cols + cols_ - 1) / cols_, down = (rows + rows_ - 1) / rows_;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(member, across * down), [&](std::int64_t n) {
      const std::int64_t row = n / across * rows_, place = n % across;
      const Columns columns = width > 1 ? Columns{place * cols_, 1, cols} : Columns{place, across, cols};
      if (row + rows_ <= rows && columns[cols_ - 1] < cols) {
        sum_tile<true>(row, rows, columns);
      } else {
        sum_tile<false>(row, rows, columns);
      }
    });
  }

 private:
  /// Columns of a tile.
  struct Columns {
    std::int64_t first;
    std::int64_t step;
    std::int64_t end;

    KOKKOS_FORCEINLINE_FUNCTION std::int64_t operator[](int i) const { return first + i * step; }
  };

  template <bool is_whole>
  KOKKOS_FUNCTION void sum_tile(std::int64_t row, std::int64_t rows, const Columns& columns) const {
    V sums[rows_][vectors] = {};
    const auto inner       = static_cast<std::int64_t>(a.extent(1));
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t k = 0; k < inner; ++k) {
      V of_b[vectors];
      KOKKOSNN_IMPL_UNROLL
      for (int v = 0; v < vectors; ++v) of_b[v] = load_b<is_whole>(k, columns, v * width);
      KOKKOSNN_IMPL_UNROLL
      for (int r = 0; r < rows_; ++r) {
        const std::int64_t from = is_whole || row + r < rows ? row + r : rows - 1;
        const V of_a            = splat<V>(static_cast<A>(a(from, k)));
        KOKKOSNN_IMPL_UNROLL
        for (int v = 0; v < vectors; ++v) sums[r][v] = of_a * of_b[v] + sums[r][v];
      }
    }
    KOKKOSNN_IMPL_UNROLL
    for (int r = 0; r < rows_; ++r) {
      KOKKOSNN_IMPL_UNROLL
      for (int v = 0; v < vectors; ++v) {
        if (is_whole || row + r < rows) write<is_whole>(row + r, columns, v * width, sums[r][v]);
      }
    }
  }

  /// Columns behind the end are the last one again.
  template <bool is_whole>
  KOKKOS_FORCEINLINE_FUNCTION V load_b(std::int64_t k, const Columns& columns, int first) const {
    using T = std::remove_const_t<typename BMatrix::value_type>;
    if constexpr (width == 1) {
      return static_cast<A>(b(k, is_whole || columns[first] < columns.end ? columns[first] : columns.end - 1));
    } else if constexpr (is_whole && has_neighbouring_columns<BMatrix> && std::is_same_v<Loaded<T>, V>) {
      return load_vector<T>(&b(k, columns[first]));
    } else {
      A lanes[width];
      for (int l = 0; l < width; ++l) {
        const std::int64_t col = columns[first + l];
        lanes[l]               = static_cast<A>(b(k, is_whole || col < columns.end ? col : columns.end - 1));
      }
      V vector;
      std::memcpy(static_cast<void*>(&vector), lanes, sizeof(V));
      return vector;
    }
  }
  template <bool is_whole>
  KOKKOS_FORCEINLINE_FUNCTION void write(std::int64_t row, const Columns& columns, int first, const V& sums) const {
    A lanes[width];
    if constexpr (width == 1) {
      lanes[0] = sums;
    } else {
      std::memcpy(lanes, static_cast<const void*>(&sums), sizeof(V));
    }
    for (int l = 0; l < width; ++l) {
      const std::int64_t col = columns[first + l];
      if (!is_whole && col >= columns.end) return;
      auto& element = c(row, col);
      A value       = alpha * lanes[l];
      if (beta != A(0)) value += beta * static_cast<A>(element);
      element = static_cast<std::remove_reference_t<decltype(element)>>(value);
    }
  }
};

/// The unit of tensor or matrix cores for elements of a and b on a member's execution space; void: there is none.
template <class Member, class A, class AMatrix, class BMatrix>
constexpr auto select_team_unit() {
  using T = std::remove_const_t<typename AMatrix::value_type>;
  if constexpr (!std::is_same_v<T, std::remove_const_t<typename BMatrix::value_type>> || !Concepts::Element<T>) {
    return std::type_identity<void>{};
  } else {
    using Unit = MatrixUnit<typename Member::execution_space, T>;
    if constexpr (Unit::uses_tensor_cores && std::is_same_v<typename Unit::Accumulated, A>) {
      return std::type_identity<Unit>{};
    } else {
      return std::type_identity<void>{};
    }
  }
}

template <class A, class Member, class AMatrix, class BMatrix, class CMatrix>
KOKKOS_FUNCTION void multiply_in_team(const Member& member, A alpha, const AMatrix& a, const BMatrix& b, A beta,
                                      const CMatrix& c) {
  using Unit = typename decltype(select_team_unit<Member, A, AMatrix, BMatrix>())::type;
  if constexpr (!std::is_void_v<Unit>) {
    const ThreadOfTeam thread = thread_of(member);
    if (thread.count % Unit::lanes == 0) {
      const ViewProduct<Unit, A, AMatrix, BMatrix, CMatrix> product{a,
                                                                    b,
                                                                    c,
                                                                    static_cast<std::int64_t>(c.extent(0)),
                                                                    static_cast<std::int64_t>(c.extent(1)),
                                                                    static_cast<std::int64_t>(a.extent(1)),
                                                                    alpha,
                                                                    beta};
      product.run(thread.number / Unit::lanes, thread.count / Unit::lanes, thread.number % Unit::lanes);
      return;
    }
  }
  TeamProduct<A, AMatrix, BMatrix, CMatrix>{a, b, c, alpha, beta}.run(member);
}

template <class AMatrix, class BMatrix, class CMatrix>
using product_accumulator_t =
    common_accumulator_t<common_accumulator_t<typename AMatrix::value_type, typename BMatrix::value_type>,
                         accumulator_t<typename CMatrix::value_type>>;

}  // namespace Impl

/// c = alpha a b + beta c inside a kernel, by a whole team; all its threads call, with the same arguments.
///
/// \param member  the team
/// \param alpha   factor of the product
/// \param a       matrix (m, k) of double, float, half_t or bhalf_t: a View of rank 2 in any memory that the team can
///                reach, such as team scratch, or anything with value_type, extent(axis) and operator()(row, column)
/// \param b       matrix (k, n); a and b may be of different types
/// \param beta    factor of what c holds; with 0 c is not read
/// \param c       matrix (m, n) of any of the types; its operator() gives a reference
///
/// Views      of any layout and strides, so that a transposed matrix is a View with exchanged strides. Extents must
///            fit, which is not checked; any may be 0: with k = 0 c = beta c.
/// In place   c must overlap neither a nor b.
/// Ordering   a team barrier ahead and one behind: what the team's threads wrote before is seen, and c may be read
///            afterwards.
/// Arithmetic in double if one of the types is double, else in float; alpha and beta in that type, c rounded once.
///            Terms are added in the order of k, but by tensor cores, whose sums of 16-bit elements truncate, and
///            matrix cores. The same bits each time, whatever the size of the team; only that on a GPU a team of whole
///            warps has others.
/// Values     NaN and infinities as products and sums have them, also with alpha = 0.
/// Cost       2 m n k operations. A host sums 4 rows of two vectors of c at a time; b is loaded in vectors where its
///            layout is c's, LayoutRight or LayoutLeft. On a GPU a thread sums 4 x 4 elements in registers. On CUDA
///            (sm_80 and newer) warps multiply half_t, bhalf_t and double by tensor cores, on HIP (MI200, MI300) all
///            types by matrix cores, where a and b are of one type, c is no wider than its accumulator, and the team's
///            threads are whole warps; fragments are collected
///            element by element, so a and b should be in scratch or in cache. It takes no scratch, and was not tuned.
template <Concepts::TeamMember Member, class AMatrix, class BMatrix, class CMatrix>
KOKKOS_FUNCTION void team_matmul(const Member& member, Impl::product_accumulator_t<AMatrix, BMatrix, CMatrix> alpha,
                                 const AMatrix& a, const BMatrix& b,
                                 Impl::product_accumulator_t<AMatrix, BMatrix, CMatrix> beta, const CMatrix& c) {
  member.team_barrier();
  if constexpr (Impl::has_layout<CMatrix, Kokkos::LayoutLeft>) {  // c^T = b^T a^T, whose rows are neighbours
    Impl::multiply_in_team(member, alpha, Impl::FlippedMatrix<BMatrix>{b}, Impl::FlippedMatrix<AMatrix>{a}, beta,
                           Impl::FlippedMatrix<CMatrix>{c});
  } else {
    Impl::multiply_in_team(member, alpha, a, b, beta, c);
  }
  member.team_barrier();
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_TEAM_MATMUL_HPP
