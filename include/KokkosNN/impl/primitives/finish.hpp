// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_PRIMITIVES_FINISH_HPP
#define KOKKOSNN_IMPL_PRIMITIVES_FINISH_HPP

#include <KokkosNN/impl/primitives/exp.hpp>
#include <KokkosNN/online.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

// What an operator makes of a row once (max, sum) is known. A new operator of the family is a new Finish.

namespace KokkosNN::Impl {

/// What all rows of a call share.
template <class A, ExpAccuracy exp_accuracy>
struct RowMath {
  using accumulator                     = A;
  static constexpr ExpAccuracy accuracy = exp_accuracy;

  ScaledExp<A, accuracy> exp;  ///< exp(|scale| (x - max))
  A sign;                      ///< of the scale; rows are multiplied by it when they are loaded
  A masked_value;              ///< NaN or 0: the quotient of a row without finite logits, and its logarithm

  RowMath(RowOperator op, double scale, MaskedRowPolicy policy)
      : exp(scale < 0 ? -scale : scale,
            op == RowOperator::softmax ? log2_reference_range_softmax : log2_reference_range_log),
        sign(scale < 0 ? A(-1) : A(1)),
        masked_value(policy == MaskedRowPolicy::zero ? A(0) : Kokkos::Experimental::quiet_NaN_v<A>) {}

  /// What fills a pack outside of its row: the value that, times the sign, is -inf.
  template <class T>
  KOKKOS_INLINE_FUNCTION T pad() const {
    return static_cast<T>(-sign * Kokkos::Experimental::infinity_v<A>);
  }
};

/// A reference that x - reference can be computed with: 0 in place of -inf.
template <class A>
KOKKOS_INLINE_FUNCTION A finite_reference(A max) {
  return max == -Kokkos::Experimental::infinity_v<A> ? A(0) : max;
}

template <RowOperator op>
struct Finish;

/// y = exp(scale (x - max)) / sum; the exponentials relative to the thread's own reference are kept and rescaled.
template <>
struct Finish<RowOperator::softmax> {
  static constexpr bool keeps_exponentials = true;
  static constexpr bool one_value_a_row    = false;

  template <class Math, class A>
  struct Row {
    A reference;
    A factor;  ///< of the row, and what rounding it lost: half an ulp of every result
    A factor_low;
    A prescale;  ///< of kept exponentials, nearly always 1; see ScaledExp::factor

    KOKKOS_DEFAULTED_FUNCTION Row() = default;
    KOKKOS_INLINE_FUNCTION Row(const Math& math, A own_reference, const MaxSumExp<A>& total)
        : reference(finite_reference(total.max)), prescale(1) {
      // Where the thread's lanes saw nothing but -inf, the kept exponentials are 0 and any finite factor will do.
      const bool is_same = own_reference == total.max || own_reference == -Kokkos::Experimental::infinity_v<A>;
      const A rescaling  = is_same ? A(1) : math.exp.factor(own_reference, reference, prescale);
      factor             = total.sum == A(0) ? math.masked_value : rescaling / total.sum;
      factor_low         = total.sum == A(0) ? A(0) : fused_multiply_add(-factor, total.sum, rescaling) / total.sum;
    }
    /// From a kept exponential.
    KOKKOS_INLINE_FUNCTION A operator()(const Math& math, A kept) const { return prescaled(math, kept * prescale); }
    /// From a kept exponential times prescale.
    KOKKOS_INLINE_FUNCTION A prescaled(const Math&, A kept) const {
      if constexpr (Math::accuracy == ExpAccuracy::fast) return kept * factor;
      return fused_multiply_add(kept, factor, kept * factor_low);
    }
    /// From the input itself, where own_reference was the total's.
    KOKKOS_INLINE_FUNCTION A from_input(const Math& math, A x) const { return prescaled(math, math.exp(x, reference)); }
  };
};

/// y = scale (x - max) - log(sum)
template <>
struct Finish<RowOperator::log_softmax> {
  static constexpr bool keeps_exponentials = false;
  static constexpr bool one_value_a_row    = false;

  template <class Math, class A>
  struct Row {
    static constexpr A prescale = 1;

    A reference;
    A log_sum;

    KOKKOS_DEFAULTED_FUNCTION Row() = default;
    KOKKOS_INLINE_FUNCTION Row(const Math& math, A, const MaxSumExp<A>& total)
        : reference(finite_reference(total.max)),
          log_sum(total.sum == A(0) ? math.masked_value : Kokkos::log(total.sum)) {}
    KOKKOS_INLINE_FUNCTION A operator()(const Math& math, A x) const {
      return math.exp.scale * (x - reference) - log_sum;
    }
    KOKKOS_INLINE_FUNCTION A prescaled(const Math& math, A x) const { return (*this)(math, x); }
    KOKKOS_INLINE_FUNCTION A from_input(const Math& math, A x) const { return (*this)(math, x); }
  };
};

/// lse = scale max + log(sum), one value a row
template <>
struct Finish<RowOperator::logsumexp> {
  static constexpr bool keeps_exponentials = false;
  static constexpr bool one_value_a_row    = true;

  template <class Math, class A>
  KOKKOS_INLINE_FUNCTION static A value(const Math& math, const MaxSumExp<A>& total) {
    if (total.sum == A(0)) return -Kokkos::Experimental::infinity_v<A>;
    return fused_multiply_add(math.exp.scale, finite_reference(total.max), Kokkos::log(total.sum));
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_PRIMITIVES_FINISH_HPP
