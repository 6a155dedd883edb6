// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_OPERATORS_LAYER_NORM_BACKWARD_HPP
#define KOKKOSNN_IMPL_OPERATORS_LAYER_NORM_BACKWARD_HPP

#include <KokkosNN/impl/inputs/column_terms.hpp>
#include <KokkosNN/impl/inputs/operands.hpp>
#include <KokkosNN/impl/operators/layer_norm.hpp>
#include <KokkosNN/impl/reductions/sums.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace KokkosNN::Impl {

/// dx = rstd (g - mean of g - h mean of g h), g = dy weight, h = (x - mean) rstd
template <class A>
struct LayerNormBackward {
  using accumulator                          = A;
  static constexpr int row_inputs            = 2;  // x, dy
  static constexpr int column_inputs         = 1;  // weight
  static constexpr int row_scalars           = 2;  // mean, rstd
  static constexpr int row_outputs           = 0;
  static constexpr bool has_weight_gradients = true;
  static constexpr bool sums_inputs          = false;
  static constexpr int late_inputs           = 0;
  using Params                               = LayerNormParams<A>;
  using Scalars                              = Kokkos::Array<A, row_scalars>;
  using Reduction                            = Sums<A, 2>;
  using WeightTerms                          = LayerNormWeightTerms;

  template <class N>
  KOKKOS_FORCEINLINE_FUNCTION static void add(N (&sum)[2], const Params&, const Scalars& scalars, const N& x,
                                              const N& dy, const N& weight) {
    sum[0] = multiply_add(dy, weight, sum[0]);
    sum[1] = multiply_add(dy * weight, x - scalars[0], sum[1]);
  }

  struct Epilogue {
    A mean;
    A rstd;
    A mean_of_g;
    A factor;  ///< of x - mean

    KOKKOS_DEFAULTED_FUNCTION Epilogue() = default;
    KOKKOS_INLINE_FUNCTION Epilogue(const Params&, const Reduction& sums, const Scalars& scalars, std::int64_t cols)
        : mean(scalars[0]),
          rstd(scalars[1]),
          mean_of_g(sums[0] / static_cast<A>(cols)),
          factor(sums[1] / static_cast<A>(cols) * rstd * rstd) {}

    template <class N>
    KOKKOS_FORCEINLINE_FUNCTION N operator()(const N& x, const N& dy, const N& weight) const {
      return rstd * multiply_add(mean - x, splat<N>(factor), multiply_add(dy, weight, splat<N>(-mean_of_g)));
    }
    KOKKOS_INLINE_FUNCTION A row_output(int) const { return rstd; }
  };
};

template <class A>
struct OperatorFor<RowOperator::layer_norm_backward, A> {
  using type = LayerNormBackward<A>;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_OPERATORS_LAYER_NORM_BACKWARD_HPP
