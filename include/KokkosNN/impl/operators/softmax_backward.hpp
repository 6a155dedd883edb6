// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_OPERATORS_SOFTMAX_BACKWARD_HPP
#define KOKKOSNN_IMPL_OPERATORS_SOFTMAX_BACKWARD_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/status_word.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/protocol.hpp>
#include <KokkosNN/impl/reductions/row_sum.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <Kokkos_Core.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

// Gradients of the softmax family: the parameters of a call and each gradient's epilogue.

namespace KokkosNN::Impl {
template <RowOperator op, class A, ExpAccuracy exp_accuracy>
/// Parameters that all rows of a gradient share.
struct GradientParams {
  using accumulator                     = A;
  static constexpr ExpAccuracy accuracy = exp_accuracy;
  using wide_sum                        = typename SoftmaxParams<A, exp_accuracy>::wide_sum;
  using State = std::conditional_t<op == RowOperator::logsumexp_backward, RowScalars<A>, RowSum<A, wide_sum>>;
  /// Terms of the sum: products y dy, or else dy alone.
  static constexpr bool sums_products =
      op == RowOperator::softmax_backward || op == RowOperator::masked_softmax_backward;

  ScaledExp<A, accuracy> exp;  ///< exponential of |scale| x, or of y, which is scaled already
  A scale;
  A sign;                  ///< sign of the scale
  A masked_value;          ///< NaN or 0: the gradient of a row whose log-sum-exp is -inf
  std::uint32_t zero = 0;  ///< zero that compilers do not know to be one, see HeldPack

  GradientParams(double s, MaskedRowPolicy policy)
      : exp(op != RowOperator::logsumexp_backward ? 1 : (s < 0 ? -s : s)),
        scale(A(s)),
        sign(s < 0 ? A(-1) : A(1)),
        masked_value(policy == MaskedRowPolicy::zero ? A(0) : Kokkos::Experimental::quiet_NaN_v<A>) {}
};

/// Makes the epilogue of a gradient's row, whose kept values are not relative to any state.
template <class RowEpilogue, class Params, class State>
KOKKOS_INLINE_FUNCTION RowEpilogue make_epilogue(const Params& params, const State&, const State& total) {
  return RowEpilogue(params, total);
}

/// dx = scale y (dy - sum), sum = sum of y dy. It subtracts both words of the sum: where dy is near the sum, the second
/// word is all that is left.
template <>
struct Epilogue<RowOperator::softmax_backward> : EpilogueDefaults {
  template <class Params, class A>
  struct Row {
    DoubleDouble<A> sum;

    KOKKOS_DEFAULTED_FUNCTION Row() = default;
    KOKKOS_INLINE_FUNCTION Row(const Params&, const typename Params::State& total) : sum(words_of(total)) {}
    /// Takes the sum's words: of a row, or of rows side by side, one a lane of A.
    template <std::same_as<DoubleDouble<A>> Words>
    KOKKOS_INLINE_FUNCTION Row(const Params&, const Words& words) : sum(words) {}
    template <class T>
    KOKKOS_FORCEINLINE_FUNCTION T operator()(const Params& params, T y, T dy) const {
      const T difference = dy - splat<T>(sum.high);
      const T exact      = Params::accuracy == ExpAccuracy::fast ? difference : difference - splat<T>(sum.low);
      return splat<T>(params.scale) * (y * exact);
    }
    /// Result of a masked element.
    KOKKOS_INLINE_FUNCTION A of_masked(const Params& params) const { return (*this)(params, A(0), A(0)); }
  };
};

/// Masked softmax's gradient has softmax's epilogue: the source applies the mask.
template <>
struct Epilogue<RowOperator::masked_softmax_backward> : Epilogue<RowOperator::softmax_backward> {};

/// dx = scale (dy - exp(y) sum), sum = sum of dy.
template <>
struct Epilogue<RowOperator::log_softmax_backward> : EpilogueDefaults {
  template <class Params, class A>
  struct Row {
    DoubleDouble<A> sum;
    ExpReference<A> reference;

    KOKKOS_DEFAULTED_FUNCTION Row() = default;
    KOKKOS_INLINE_FUNCTION Row(const Params& params, const typename Params::State& total)
        : sum(words_of(total)), reference(params.exp.at(A(0))) {}
    template <std::same_as<DoubleDouble<A>> Words>
    KOKKOS_INLINE_FUNCTION Row(const Params& params, const Words& words)
        : sum(words), reference(params.exp.at(splat<A>(ScalarOf<A>(0)))) {}
    template <class T>
    KOKKOS_FORCEINLINE_FUNCTION T operator()(const Params& params, T y, T dy) const {
      const T e    = params.exp.of_any(y, splat_reference<T>(reference));
      const T high = dy - e * splat<T>(sum.high);
      return splat<T>(params.scale) * (Params::accuracy == ExpAccuracy::fast ? high : high - e * splat<T>(sum.low));
    }
    /// Result of a masked element.
    KOKKOS_INLINE_FUNCTION A of_masked(const Params& params) const {
      return (*this)(params, -Kokkos::Experimental::infinity_v<A>, A(0));
    }
  };
};

/// Masked log-softmax's gradient has log-softmax's epilogue.
template <>
struct Epilogue<RowOperator::masked_log_softmax_backward> : Epilogue<RowOperator::log_softmax_backward> {};

/// dx = scale dlse exp(scale x - lse): the exponential relative to the power of two below exp(lse), times a factor.
template <>
struct Epilogue<RowOperator::logsumexp_backward> : EpilogueDefaults {
  template <class Params, class A>
  struct Row {
    A factor;
    ExpReference<A> reference;

    KOKKOS_DEFAULTED_FUNCTION Row() = default;
    KOKKOS_INLINE_FUNCTION Row(const Params& params, const typename Params::State& row) {
      const bool is_finite = Kokkos::isfinite(row.lse);
      reference = params.exp.at(is_finite ? params.exp.reference_of(unscaled(row.lse, params.exp.scale())) : A(0));
      // One of the first two terms is 0; the other is so near lse that the difference is all but exact. Where
      // neighbouring logits are far apart the difference may be large: the bound keeps infinity from being multiplied
      // by 0.
      const A base = fused_multiply_add(params.exp.scale(), reference.base,
                                        fused_multiply_add(reference.exponent, log_of_2<A>, -row.lse));
      const A rest = base + (params.exp.scale_low * reference.base + reference.exponent * log_of_2_low<A>);
      factor       = is_finite ? params.scale * row.dlse * Kokkos::exp(at_most(rest, Exp2Constants<A>::log_of_most))
                               : (row.lse < A(0) ? params.masked_value : Kokkos::Experimental::quiet_NaN_v<A>);
    }
    template <class T>
    KOKKOS_FORCEINLINE_FUNCTION T operator()(const Params& params, T x) const {
      return params.exp.of_any(splat<T>(params.sign) * x, splat_reference<T>(reference)) * splat<T>(factor);
    }
  };
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_OPERATORS_SOFTMAX_BACKWARD_HPP
