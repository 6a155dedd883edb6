// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_OPERATORS_LAYER_NORM_HPP
#define KOKKOSNN_IMPL_OPERATORS_LAYER_NORM_HPP

#include <KokkosNN/impl/inputs/operands.hpp>
#include <KokkosNN/impl/reductions/moments.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace KokkosNN::Impl {

/// The constants of a LayerNorm.
template <class A>
struct LayerNormParams {
  A epsilon;

  LayerNormParams() = default;
  explicit LayerNormParams(const LayerNormOptions& options) : epsilon(A(options.epsilon)) {}

  /// A weight is 1 where there is none, a bias 0.
  A missing(int column_input) const { return column_input == 0 ? A(1) : A(0); }
};

/// y = (x - mean) rstd weight + bias, rstd = 1 / sqrt(variance + epsilon)
template <class A>
struct LayerNorm {
  using accumulator                          = A;
  static constexpr int row_inputs            = 1;
  static constexpr int column_inputs         = 2;  // weight, bias
  static constexpr int row_scalars           = 0;
  static constexpr int row_outputs           = 2;  // mean, rstd
  static constexpr bool has_weight_gradients = false;
  static constexpr bool sums_inputs          = false;
  static constexpr int late_inputs           = 0;
  using Params                               = LayerNormParams<A>;
  using Reduction                            = Moments<A>;

  struct Epilogue {
    DoubleDouble<A> mean;
    A rstd;

    KOKKOS_DEFAULTED_FUNCTION Epilogue() = default;
    KOKKOS_INLINE_FUNCTION Epilogue(const Params& params, const Reduction& moments, const ScalarsOf<LayerNorm>&,
                                    std::int64_t)
        : mean(moments.mean_words()), rstd(A(1) / Kokkos::sqrt(moments.variance() + params.epsilon)) {}

    template <class N>
    KOKKOS_FORCEINLINE_FUNCTION N operator()(const N& x, const N& weight, const N& bias) const {
      return multiply_add(((x - mean.high) - mean.low) * rstd, weight, bias);
    }
    KOKKOS_INLINE_FUNCTION A row_output(int i) const { return i == 0 ? mean.high : rstd; }
  };
};

template <class A>
struct OperatorFor<RowOperator::layer_norm, A> {
  using type = LayerNorm<A>;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_OPERATORS_LAYER_NORM_HPP
