// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_ONLINE_HPP
#define KOKKOSNN_ONLINE_HPP

#include <Kokkos_Core.hpp>

#include <type_traits>

namespace KokkosNN {

/// The running state of a softmax over part of a row: the largest value so far and the sum of exp(value - max).
///
///     max = max_i x_i        sum = sum_i exp(x_i - max)        log-sum-exp = max + log(sum)
///
/// States of parts merge to the state of the whole (`merge`), in any order: a commutative monoid whose identity is the
/// default (-inf, 0). It is what blocks, teams and ranks exchange. -inf values add nothing and never make a NaN; a NaN
/// value makes `sum` NaN and `max` keeps the largest number. With +inf among the values `max` is +inf and `sum` how
/// many of them there are, so that the log-sum-exp is +inf, but NaN if there is a NaN, too; such a row has no softmax.
///
/// \tparam T  float or double
/// Source: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
template <class T>
struct MaxSumExp {
  static_assert(std::is_floating_point_v<T>, "KokkosNN::MaxSumExp: T must be float or double");

  T max = -Kokkos::Experimental::infinity_v<T>;
  T sum = 0;

  /// Adds one value; one exponential.
  KOKKOS_FUNCTION void push(T value);

  /// log(sum exp(x_i)), natural logarithm; -inf for the identity.
  KOKKOS_FUNCTION T lse() const { return sum == T(0) ? max : max + Kokkos::log(sum); }
};

/// The state of the union of two parts, one exponential: associative within rounding, commutative bit for bit, identity
/// (-inf, 0).
template <class T>
KOKKOS_FUNCTION MaxSumExp<T> merge(const MaxSumExp<T>& a, const MaxSumExp<T>& b) {
  const bool a_is_high     = a.max >= b.max;
  const MaxSumExp<T>& high = a_is_high ? a : b;
  const MaxSumExp<T>& low  = a_is_high ? b : a;
  // A difference of infinities must not be computed: nothing but -inf (and NaN, which sits in the sum) on the low side,
  // or +inf on both.
  const bool low_stays = low.max == -Kokkos::Experimental::infinity_v<T> || low.max == high.max;
  const T factor       = low_stays ? T(1) : Kokkos::exp(low.max - high.max);
  // One rounding, named: compilers fuse a product and a sum in one place and not in another.
  return {high.max, Kokkos::fma(low.sum, factor, high.sum)};
}

template <class T>
KOKKOS_FUNCTION void MaxSumExp<T>::push(T value) {
  // The part that holds one value: its sum is exp(0) = 1, but 0 for -inf and NaN for NaN.
  const T infinity     = Kokkos::Experimental::infinity_v<T>;
  const bool is_number = value == value;
  const T one          = value == -infinity ? T(0) : T(1);
  *this                = merge(*this, MaxSumExp{is_number ? value : -infinity, is_number ? one : value});
}

/// Kokkos reducer of `MaxSumExp`, for `parallel_reduce` at any level. On HIP within a team only: over a range or a
/// league Kokkos may get values of at most 16 bytes wrong (its issue 9511, open in 5.0.2).
template <class T, class Space = Kokkos::HostSpace>
class MaxSumExpReducer {
 public:
  using reducer          = MaxSumExpReducer;
  using value_type       = MaxSumExp<T>;
  using result_view_type = Kokkos::View<value_type, Space, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

  KOKKOS_FUNCTION explicit MaxSumExpReducer(value_type& result) : m_result(&result), m_references_scalar(true) {}
  KOKKOS_FUNCTION explicit MaxSumExpReducer(const Kokkos::View<value_type, Space>& result)
      : m_result(result), m_references_scalar(false) {}

  KOKKOS_FUNCTION void join(value_type& into, const value_type& from) const { into = merge(into, from); }
  KOKKOS_FUNCTION void init(value_type& value) const { value = value_type{}; }
  KOKKOS_FUNCTION value_type& reference() const { return *m_result.data(); }
  KOKKOS_FUNCTION result_view_type view() const { return m_result; }
  KOKKOS_FUNCTION bool references_scalar() const { return m_references_scalar; }

 private:
  result_view_type m_result;
  bool m_references_scalar;
};

template <class T>
MaxSumExpReducer(MaxSumExp<T>&) -> MaxSumExpReducer<T>;

}  // namespace KokkosNN

#endif  // KOKKOSNN_ONLINE_HPP
