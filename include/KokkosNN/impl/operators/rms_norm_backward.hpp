// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_OPERATORS_RMS_NORM_BACKWARD_HPP
#define KOKKOSNN_IMPL_OPERATORS_RMS_NORM_BACKWARD_HPP

#include <KokkosNN/impl/inputs/column_terms.hpp>
#include <KokkosNN/impl/inputs/operands.hpp>
#include <KokkosNN/impl/operators/rms_norm.hpp>
#include <KokkosNN/impl/reductions/sums.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace KokkosNN::Impl {

/// dx = rstd (g - x rstd^2 mean of g x), g = dy (weight + weight_offset)
template <class A>
struct RmsNormBackward {
  using accumulator                          = A;
  static constexpr int row_inputs            = 2;  // x, dy
  static constexpr int column_inputs         = 1;
  static constexpr int row_scalars           = 1;  // rstd
  static constexpr int row_outputs           = 0;
  static constexpr bool has_weight_gradients = true;
  static constexpr bool sums_inputs          = false;
  static constexpr int late_inputs           = 0;
  using Params                               = RmsNormParams<A>;
  using Scalars                              = Kokkos::Array<A, row_scalars>;
  using Reduction                            = Sums<A, 1>;
  using WeightTerms                          = RmsNormWeightTerms;

  template <class N>
  KOKKOS_FORCEINLINE_FUNCTION static void add(N (&sum)[1], const Params& params, const Scalars&, const N& x,
                                              const N& dy, const N& weight) {
    sum[0] = multiply_add(dy * (weight + params.weight_offset), x, sum[0]);
  }

  struct Epilogue {
    A rstd;
    A factor;  ///< of x
    A weight_offset;

    KOKKOS_DEFAULTED_FUNCTION Epilogue() = default;
    KOKKOS_INLINE_FUNCTION Epilogue(const Params& params, const Reduction& products, const Scalars& scalars,
                                    std::int64_t cols)
        : rstd(scalars[0]),
          factor(products[0] / static_cast<A>(cols) * rstd * rstd),
          weight_offset(params.weight_offset) {}

    template <class N>
    KOKKOS_FORCEINLINE_FUNCTION N operator()(const N& x, const N& dy, const N& weight) const {
      return rstd * multiply_add(-x, splat<N>(factor), dy * (weight + weight_offset));
    }
    KOKKOS_INLINE_FUNCTION A row_output(int) const { return rstd; }
  };
};

template <class A>
struct OperatorFor<RowOperator::rms_norm_backward, A> {
  using type = RmsNormBackward<A>;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_OPERATORS_RMS_NORM_BACKWARD_HPP
