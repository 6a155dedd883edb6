// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_OPERATORS_ADD_NORM_HPP
#define KOKKOSNN_IMPL_OPERATORS_ADD_NORM_HPP

#include <KokkosNN/impl/inputs/operands.hpp>
#include <KokkosNN/impl/operators/layer_norm.hpp>
#include <KokkosNN/impl/operators/layer_norm_backward.hpp>
#include <KokkosNN/impl/operators/rms_norm.hpp>
#include <KokkosNN/impl/operators/rms_norm_backward.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace KokkosNN::Impl {

/// A norm of x + residual, which is written, too.
template <class Norm>
struct AddNorm : Norm {
  static constexpr int row_inputs   = 2;  // x, residual
  static constexpr bool sums_inputs = true;
};

/// dx of a norm, plus the gradient that reaches its input by other ways.
template <class Gradient>
struct AddNormBackward : Gradient {
  static constexpr int row_inputs  = 3;  // x, dy, dsum
  static constexpr int late_inputs = 1;

  struct Epilogue : Gradient::Epilogue {
    using Base = typename Gradient::Epilogue;

    KOKKOS_DEFAULTED_FUNCTION Epilogue() = default;
    KOKKOS_INLINE_FUNCTION Epilogue(const typename Gradient::Params& params, const typename Gradient::Reduction& sums,
                                    const typename Gradient::Scalars& scalars, std::int64_t cols)
        : Base(params, sums, scalars, cols) {}

    template <class N>
    KOKKOS_FORCEINLINE_FUNCTION N operator()(const N& x, const N& dy, const N& dsum, const N& weight) const {
      return Base::operator()(x, dy, weight) + dsum;
    }
  };
};

template <class A>
struct OperatorFor<RowOperator::add_rms_norm, A> {
  using type = AddNorm<RmsNorm<A>>;
};
template <class A>
struct OperatorFor<RowOperator::add_layer_norm, A> {
  using type = AddNorm<LayerNorm<A>>;
};
template <class A>
struct OperatorFor<RowOperator::add_rms_norm_backward, A> {
  using type = AddNormBackward<RmsNormBackward<A>>;
};
template <class A>
struct OperatorFor<RowOperator::add_layer_norm_backward, A> {
  using type = AddNormBackward<LayerNormBackward<A>>;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_OPERATORS_ADD_NORM_HPP
