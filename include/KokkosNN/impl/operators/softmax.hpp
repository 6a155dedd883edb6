// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_OPERATORS_SOFTMAX_HPP
#define KOKKOSNN_IMPL_OPERATORS_SOFTMAX_HPP

#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/impl/protocol.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Operators of the softmax family: parameters of a call, and the Epilogue that turns a row's (max, sum) into results.
// Elements are numbers or, on a host, vectors T of numbers.
// A new operator needs a source of rows, a state with merge_warp, merge_lanes, merge_two and a status word, a placement
// that reduces a row to that state, and an Epilogue. RowInTeam and SplitRow take any; softmax_backward.hpp is the
// example.

namespace KokkosNN::Impl {

/// Parameters that all rows of a call share.
template <class A, ExpAccuracy exp_accuracy>
struct SoftmaxParams {
  using accumulator                     = A;
  static constexpr ExpAccuracy accuracy = exp_accuracy;
  static constexpr bool has_lse         = false;  ///< the sum of exponentials also gives a log-sum-exp
  static constexpr bool may_negate      = true;   ///< the scale may be negative
  static constexpr bool changes_logits = false;  ///< `logit(x)`, `make_logits(pack)`: after loading, as a soft cap does
  /// Type of sums over a row's parts: in `full`, roundings of float would be seen in the result.
  using wide_sum = std::conditional_t<exp_accuracy == ExpAccuracy::fast, A,
                                      std::conditional_t<std::is_same_v<A, float>, double, DoubleDouble<double>>>;
  using State    = RowState<A, wide_sum>;

  ScaledExp<A, accuracy> exp;  ///< exp(|scale| (x - reference))
  A sign;                      ///< sign of the scale; rows are multiplied by it when they are loaded
  A masked_value;              ///< NaN or 0: the quotient of a row without finite logits, and its logarithm

  SoftmaxParams(double scale, MaskedRowPolicy policy)
      : exp(scale < 0 ? -scale : scale),
        sign(scale < 0 ? A(-1) : A(1)),
        masked_value(policy == MaskedRowPolicy::zero ? A(0) : Kokkos::Experimental::quiet_NaN_v<A>) {}

  /// Padding of packs beyond their row: the value that, times the sign, is -inf.
  template <class T>
  KOKKOS_INLINE_FUNCTION T pad() const {
    return static_cast<T>(-sign * Kokkos::Experimental::infinity_v<A>);
  }
};

template <RowOperator op>
struct Epilogue;

/// Makes the epilogue of a row; the thread's kept values are relative to the state `own`.
template <class RowEpilogue, class Params, class A, class W>
KOKKOS_INLINE_FUNCTION RowEpilogue make_epilogue(const Params& params, const RowState<A, W>& own,
                                                 const RowState<A, W>& total) {
  return RowEpilogue(params, own.reference, total);
}

/// Returns an output's row, or the row's number if the operator has one value a row.
template <class OpEpilogue, class Output>
KOKKOS_INLINE_FUNCTION auto output_row(const Output& output, std::int64_t row) {
  if constexpr (OpEpilogue::one_value_a_row || Output::takes_states) {
    return row;
  } else {
    return output.row(row);
  }
}

/// Applies a row's epilogue to the exponential of x.
template <class RowEpilogue, class Params, class T>
KOKKOS_FORCEINLINE_FUNCTION T of_exponential(const RowEpilogue& epilogue, const Params& params, T x) {
  return epilogue(params, params.exp(x, splat_reference<T>(epilogue.reference)));
}

/// Tag for an epilogue that uses both words of the sum: in a row of few elements the low word can be seen.
struct WholeSum {};

/// Makes the epilogue of a short row, whose values are relative to the row's total.
template <class RowEpilogue, class Params>
KOKKOS_INLINE_FUNCTION RowEpilogue short_row_epilogue(const Params& params, const typename Params::State& total) {
  if constexpr (std::is_constructible_v<RowEpilogue, const Params&, const typename Params::State&, WholeSum>) {
    return RowEpilogue(params, total, WholeSum{});
  } else {
    return RowEpilogue(params, total);
  }
}

/// y = exp(scale (x - reference)) / sum. Exponentials relative to the thread's own reference are kept and rescaled.
template <>
struct Epilogue<RowOperator::softmax> : EpilogueDefaults {
  static constexpr bool keeps_exponentials = true;

  template <class Params, class A>
  struct Row {
    A factor;      ///< factor of the row's exponentials
    A factor_low;  ///< rounding error of `factor`: it makes a row of one element exactly 1
    ExpReference<A> reference;

    KOKKOS_DEFAULTED_FUNCTION Row() = default;
    KOKKOS_INLINE_FUNCTION Row(const Params& params, A own_reference, const typename Params::State& total)
        : reference(params.exp.at(finite_reference(total.reference))) {
      // Rescaling is 0 where the thread's lanes saw only -inf: relative to a reference of 0 it could be infinite.
      const A rescaling = params.exp.rescaling(finite_reference(own_reference), finite_reference(total.reference));
      set_factors(params, rescaling, split_sum<A>(total.sum));
    }
    /// Takes a row whose values are relative to its total.
    KOKKOS_INLINE_FUNCTION Row(const Params& params, const typename Params::State& total)
        : Row(params, params.exp.at(finite_reference(total.reference)), split_sum<A>(total.sum)) {}
    KOKKOS_INLINE_FUNCTION Row(const Params& params, const typename Params::State& total, WholeSum)
        : reference(params.exp.at(finite_reference(total.reference))) {
      set_factors<true>(params, A(1), split_sum<A>(total.sum));
    }
    /// Takes rows side by side, one a lane of A, each relative to its own total.
    KOKKOS_INLINE_FUNCTION Row(const Params& params, const ExpReference<A>& reference_, const DoubleDouble<A>& sum)
        : reference(reference_) {
      set_factors(params, splat<A>(ScalarOf<A>(1)), sum);
    }
    /// Packs the row's factors into two words, for threads that did not compute them, and unpacks them.
    KOKKOS_INLINE_FUNCTION DoubleDouble<A> words() const { return {factor, factor_low}; }
    KOKKOS_INLINE_FUNCTION explicit Row(const DoubleDouble<A>& words) : factor(words.high), factor_low(words.low) {}
    /// Result from a kept exponential.
    template <class T>
    KOKKOS_FORCEINLINE_FUNCTION T operator()(const Params&, T kept) const {
      if constexpr (Params::accuracy == ExpAccuracy::fast) return kept * splat<T>(factor);
      return product_with_words(kept, splat<T>(factor), splat<T>(factor_low));
    }
    /// Result from the input itself, where own_reference was the total's.
    template <class T>
    KOKKOS_FORCEINLINE_FUNCTION T from_input(const Params& params, T x) const {
      return of_exponential(*this, params, x);
    }
    /// Function for many inputs of a row, less reference.base. (Doubles have none: their series would be spilled.)
    KOKKOS_INLINE_FUNCTION auto from_differences() const
      requires(Params::accuracy == ExpAccuracy::full && sizeof(A) == sizeof(float))
    {
      return MultipliedExp<A>(reference, factor);
    }

    /// Result of an element of -inf.
    KOKKOS_INLINE_FUNCTION A of_masked(const Params& params) const { return (*this)(params, A(0)); }

   private:
    /// Rounding a double sum to float loses less than half an ulp: on a GPU only `whole` corrects it.
    ///   ulp of short rows | with `whole` 3.7 | without 4.4
    template <bool whole = false>
    KOKKOS_INLINE_FUNCTION void set_factors(const Params& params, A rescaling, const DoubleDouble<A>& sum) {
      const A zero    = splat<A>(ScalarOf<A>(0));
      const A inverse = sum.high == zero ? splat<A>(params.masked_value) : inverse_of_normal(sum.high);
      A missing       = fused_multiply_add(-inverse, sum.high, splat<A>(ScalarOf<A>(1)));
      if constexpr (std::is_same_v<A, float> && !whole) {
        KOKKOS_IF_ON_HOST((missing = fused_multiply_add(-inverse, sum.low, missing);))
      } else {
        missing = fused_multiply_add(-inverse, sum.low, missing);
      }
      factor     = rescaling * inverse;
      factor_low = sum.high == zero ? zero : factor * missing;
    }
  };
};

/// Epilogue with one multiplication an element: rounding the factor then costs up to an ulp of every result.
template <class RowEpilogue>
struct RoundedFactor : RowEpilogue {
  template <class Params, class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const Params&, T kept) const {
    return kept * splat<T>(this->factor);
  }
  template <class Params, class T>
  KOKKOS_FORCEINLINE_FUNCTION T from_input(const Params& params, T x) const {
    return of_exponential(*this, params, x);
  }
};

/// Rounds the factor of split rows of floats: their teams have no register to spare, and the longer a row, the less its
/// ulps are seen.
///   1024 x 50257 | rounded factor 0.85 of copy | whole factor 0.77
template <class RowEpilogue>
KOKKOS_INLINE_FUNCTION auto with_rounded_factor(const RowEpilogue& epilogue) {
  if constexpr (requires { requires std::is_same_v<decltype(RowEpilogue::factor_low), float>; }) {
    return RoundedFactor<RowEpilogue>{epilogue};
  } else {
    return epilogue;
  }
}

/// Masked softmax has softmax's epilogue: the source applies the mask.
template <>
struct Epilogue<RowOperator::masked_softmax> : Epilogue<RowOperator::softmax> {};

/// y = scale (x - reference) - log(sum), never above 0, whatever the roundings. It takes halves of x and the reference:
/// the difference of finite logits may leave A's range although its product with a small scale does not.
template <>
struct Epilogue<RowOperator::log_softmax> : EpilogueDefaults {
  template <class Params, class A>
  struct Row {
    A half_reference;
    A log_sum;  ///< log of the sum of exponentials relative to the reference

    KOKKOS_DEFAULTED_FUNCTION Row() = default;
    KOKKOS_INLINE_FUNCTION Row(const Params& params, A, const typename Params::State& total) : Row(params, total) {}
    KOKKOS_INLINE_FUNCTION Row(const Params& params, const typename Params::State& total)
        : half_reference(A(0.5) * finite_reference(total.reference)) {
      const A sum = static_cast<A>(total.sum);
      log_sum     = sum == A(0) ? params.masked_value
                                : Kokkos::log(sum) + params.exp.logarithm_less(finite_reference(total.reference));
    }
    /// Takes rows side by side, one a lane of A, by the logarithms of their sums.
    template <class Logarithm>
    KOKKOS_INLINE_FUNCTION explicit Row(const Logarithm& of_sum)
      requires requires { of_sum.rest; }
        : half_reference(splat<A>(ScalarOf<A>(0.5)) * of_sum.R), log_sum(of_sum.rest) {}
    /// Packs the row's two numbers into two words, for threads that did not compute them, and unpacks them.
    KOKKOS_INLINE_FUNCTION DoubleDouble<A> words() const { return {half_reference, log_sum}; }
    KOKKOS_INLINE_FUNCTION explicit Row(const DoubleDouble<A>& words)
        : half_reference(words.high), log_sum(words.low) {}
    template <class T>
    KOKKOS_FORCEINLINE_FUNCTION T operator()(const Params& params, T x) const {
      return at_most(splat<T>(params.exp.twice_scale) * half_difference(x) - splat<T>(log_sum),
                     splat<T>(ScalarOf<T>(0)));
    }
    /// Half the difference, (x - reference) / 2: one instruction on machines with a fused a * b + c, and no overflow.
    template <class T>
    KOKKOS_FORCEINLINE_FUNCTION T half_difference(T x) const {
      return x * splat<T>(ScalarOf<T>(0.5)) - splat<T>(half_reference);
    }
    template <class T>
    KOKKOS_FORCEINLINE_FUNCTION T from_input(const Params& params, T x) const {
      return (*this)(params, x);
    }
    /// Result of an element of -inf.
    KOKKOS_INLINE_FUNCTION A of_masked(const Params& params) const {
      return (*this)(params, -Kokkos::Experimental::infinity_v<A>);
    }
  };
};

/// lse = scale reference + log(sum), one value a row. With a reference of +inf it is +inf, or NaN if the sum is NaN.
template <>
struct Epilogue<RowOperator::logsumexp> : EpilogueDefaults {
  static constexpr bool one_value_a_row = true;

  template <class Params, class A = typename Params::accumulator>
  KOKKOS_INLINE_FUNCTION static A value(const Params& params, const typename Params::State& total) {
    const A sum = static_cast<A>(total.sum);
    if (sum == A(0)) return -Kokkos::Experimental::infinity_v<A>;
    const A reference = finite_reference(total.reference);
    return fused_multiply_add(params.exp.scale(), reference, Kokkos::log(sum) + params.exp.logarithm_less(reference));
  }
};

/// Under a mask the logarithms have these epilogues, too.
template <>
struct Epilogue<RowOperator::masked_log_softmax> : Epilogue<RowOperator::log_softmax> {};
template <>
struct Epilogue<RowOperator::masked_logsumexp> : Epilogue<RowOperator::logsumexp> {};

/// Use that an operator makes of its sum of exponentials.
template <RowOperator op>
inline constexpr SumFor sum_for = Epilogue<op>::keeps_exponentials ? SumFor::quotient
                                  : Epilogue<op>::one_value_a_row  ? SumFor::log_sum_exp
                                                                   : SumFor::logarithm;

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_OPERATORS_SOFTMAX_HPP
