// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// Softmax as five operations of an array library, one pass over memory each: what fusion saves. Deliberately no
/// cleverness beyond access in the order of the layout.
#include "provider.hpp"

#if defined(KOKKOSNN_HAVE_KOKKOSKERNELS)
#include <KokkosBlas1_scal.hpp>
#include <KokkosBlas1_sum.hpp>
#endif

#include <type_traits>

namespace KokkosNN::Perf {
namespace {

#if defined(KOKKOSNN_HAVE_KOKKOSKERNELS)
inline constexpr bool have_blas = true;
#else
inline constexpr bool have_blas = false;
#endif

template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class X, class Result>
struct RowMax {
  X x;
  Result result;
  using value_type = typename Result::value_type;
  KOKKOS_FUNCTION static value_type identity() { return Kokkos::reduction_identity<value_type>::max(); }
  KOKKOS_FUNCTION static void join(value_type& into, value_type value) { into = into < value ? value : into; }
  using Reducer = Kokkos::Max<value_type>;
};

template <class X, class Result>
struct RowSum {
  X x;
  Result result;
  using value_type = typename Result::value_type;
  KOKKOS_FUNCTION static value_type identity() { return 0; }
  KOKKOS_FUNCTION static void join(value_type& into, value_type value) { into += value; }
  using Reducer = Kokkos::Sum<value_type>;
};

/// Pass 1 and 4, LayoutRight: a team a row.
template <class Row>
void reduce_by_team(const Exec& exec, const char* label, const Row& row) {
  using Policy = Kokkos::TeamPolicy<Exec>;
  Kokkos::parallel_for(
      label, Policy(exec, static_cast<int>(row.x.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(const typename Policy::member_type& team) {
        using value_type   = typename Row::value_type;
        const int r        = team.league_rank();
        const auto cols    = static_cast<std::int64_t>(row.x.extent(1));
        value_type reduced = Row::identity();
        Kokkos::parallel_reduce(
            Kokkos::TeamThreadRange(team, cols),
            [&](const std::int64_t c, value_type& into) { Row::join(into, static_cast<value_type>(row.x(r, c))); },
            typename Row::Reducer(reduced));
        Kokkos::single(Kokkos::PerTeam(team), [&] { row.result(r) = reduced; });
      });
}

/// Pass 1 and 4, LayoutLeft: a thread a row, neighbours read neighbours.
template <class Row>
void reduce_by_thread(const Exec& exec, const char* label, const Row& row) {
  Kokkos::parallel_for(
      label, Kokkos::RangePolicy<Exec>(exec, 0, row.x.extent(0)), KOKKOS_LAMBDA(const std::size_t r) {
        using value_type   = typename Row::value_type;
        value_type reduced = Row::identity();
        for (std::size_t c = 0; c < row.x.extent(1); ++c) Row::join(reduced, static_cast<value_type>(row.x(r, c)));
        row.result(r) = reduced;
      });
}

template <class Row>
void reduce(const Exec& exec, const char* label, const Row& row) {
  if constexpr (std::is_same_v<typename decltype(row.x)::array_layout, Kokkos::LayoutRight>)
    reduce_by_team(exec, label, row);
  else
    reduce_by_thread(exec, label, row);
}

template <class Matrix>
auto elementwise(const Exec& exec, const Matrix& y) {
  constexpr auto order = std::is_same_v<typename Matrix::array_layout, Kokkos::LayoutRight> ? Kokkos::Iterate::Right
                                                                                            : Kokkos::Iterate::Left;
  using Policy         = Kokkos::MDRangePolicy<Exec, Kokkos::Rank<2, order, order>, Kokkos::IndexType<std::int64_t>>;
  return Policy(exec, {0, 0}, {static_cast<std::int64_t>(y.extent(0)), static_cast<std::int64_t>(y.extent(1))});
}

template <class X, class Y, class Vector>
void subtract(const Exec& exec, const X& x, const Y& y, const Vector& maxima) {
  using T = typename Y::value_type;
  Kokkos::parallel_for(
      "KokkosNN::Perf::subtract", elementwise(exec, y), KOKKOS_LAMBDA(const std::int64_t r, const std::int64_t c) {
        y(r, c) = static_cast<T>(static_cast<typename Vector::value_type>(x(r, c)) - maxima(r));
      });
}

template <class Y, class Vector>
void exponentiate(const Exec& exec, const Y& y, const Vector&) {
  using T = typename Y::value_type;
  Kokkos::parallel_for(
      "KokkosNN::Perf::exp", elementwise(exec, y), KOKKOS_LAMBDA(const std::int64_t r, const std::int64_t c) {
        y(r, c) = static_cast<T>(Kokkos::exp(static_cast<typename Vector::value_type>(y(r, c))));
      });
}

template <class Y, class Vector>
void divide(const Exec& exec, const Y& y, const Vector& sums) {
  using T = typename Y::value_type;
  Kokkos::parallel_for(
      "KokkosNN::Perf::divide", elementwise(exec, y), KOKKOS_LAMBDA(const std::int64_t r, const std::int64_t c) {
        y(r, c) = static_cast<T>(static_cast<typename Vector::value_type>(y(r, c)) / sums(r));
      });
}

#if defined(KOKKOSNN_HAVE_KOKKOSKERNELS)
/// Pass 4 and 5 by BLAS. Its multivectors hold one vector a column, so the rows of a LayoutRight matrix are the columns
/// of the LayoutLeft one over the same memory; scal wants factors, so the sums are inverted (2 M elements more).
template <class T>
void sum_and_divide_by_blas(const Exec& exec, T* y, std::int64_t rows, std::int64_t cols,
                            const Kokkos::View<T*, Exec>& sums) {
  const Kokkos::View<T**, Kokkos::LayoutLeft, Exec, Kokkos::MemoryUnmanaged> vectors(y, cols, rows);
  KokkosBlas::sum(exec, sums, vectors);
  Kokkos::parallel_for(
      "KokkosNN::Perf::invert", Kokkos::RangePolicy<Exec>(exec, 0, sums.extent(0)),
      KOKKOS_LAMBDA(const std::size_t r) { sums(r) = T(1) / sums(r); });
  KokkosBlas::scal(exec, vectors, sums, vectors);
}
#endif

template <class X, class Y>
void sum_and_divide(const Exec& exec, const Y& y, const Kokkos::View<Sum<typename X::value_type>*, Exec>& sums) {
#if defined(KOKKOSNN_HAVE_KOKKOSKERNELS)
  using T = typename Y::value_type;
  if constexpr (std::is_same_v<T, Sum<T>> && std::is_same_v<typename Y::array_layout, Kokkos::LayoutRight>)
    return sum_and_divide_by_blas<T>(exec, y.data(), y.extent(0), y.extent(1), sums);
#endif
  reduce(exec, "KokkosNN::Perf::sum", RowSum<Y, std::decay_t<decltype(sums)>>{y, sums});
  divide(exec, y, sums);
}

/// It rounds to y's type after every pass, and on a host it adds a row's elements one after the other.
double rounding_slack(std::size_t element_bytes, std::size_t cols) {
  return (element_bytes == 2 ? 8.0 : 1.0) + static_cast<double>(cols) / 4096;
}

template <class X, class Y>
Contender five_pass(const Exec& exec, const X& x, const Y& y) {
  using Vector = Kokkos::View<Sum<typename X::non_const_value_type>*, Exec>;
  const Vector per_row(Kokkos::view_alloc(Kokkos::WithoutInitializing, exec, "KokkosNN::Perf::per_row"), x.extent(0));
  return {.call =
              [=] {
                reduce(exec, "KokkosNN::Perf::max", RowMax<X, Vector>{x, per_row});
                subtract(exec, x, y, per_row);
                exponentiate(exec, y, per_row);
                sum_and_divide<X>(exec, y, per_row);
              },
          .plan  = have_blas ? "five passes, sum and divide by KokkosBlas" : "five passes",
          .slack = rounding_slack(sizeof(typename Y::value_type), x.extent(1))};
}

template <class T>
Contender five_pass(const Problem& problem) {
  return five_pass(problem.exec(), problem.x<T>(), problem.y<T>());
}

}  // namespace

bool five_pass_serves(const Case& shape) {
  return shape.is_of_rows() && shape.op == RowOperator::softmax && shape.x_type == shape.y_type &&
         !is_ragged(shape.layout) && (shape.layout == Layout::right || shape.x_type == ElementType::f32);
}

Contender make_five_pass(const Problem& problem) {
  const Case& shape = problem.shape();
  if (shape.layout == Layout::left)
    return five_pass(problem.exec(), problem.x<float, Kokkos::LayoutLeft>(), problem.y<float, Kokkos::LayoutLeft>());
  Contender result;
  with_type(shape.x_type, [&]<class T>(std::type_identity<T>) { result = five_pass<T>(problem); });
  return result;
}

}  // namespace KokkosNN::Perf
