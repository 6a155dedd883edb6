// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_OPERATORS_RMS_NORM_HPP
#define KOKKOSNN_IMPL_OPERATORS_RMS_NORM_HPP

#include <KokkosNN/impl/inputs/operands.hpp>
#include <KokkosNN/impl/reductions/sums.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace KokkosNN::Impl {

/// The constants of an RMSNorm.
template <class A>
struct RmsNormParams {
  A epsilon;
  A weight_offset;  ///< added to each weight

  RmsNormParams() = default;
  explicit RmsNormParams(const RmsNormOptions& options)
      : epsilon(A(options.epsilon)), weight_offset(A(options.weight_offset)) {}

  /// Without weights x is not scaled, whatever the offset is.
  A missing(int) const { return A(1) - weight_offset; }
};

/// y = x rstd (weight + weight_offset), rstd = 1 / sqrt(mean of x^2 + epsilon)
template <class A>
struct RmsNorm {
  using accumulator                          = A;
  static constexpr int row_inputs            = 1;
  static constexpr int column_inputs         = 1;
  static constexpr int row_scalars           = 0;
  static constexpr int row_outputs           = 1;
  static constexpr bool has_weight_gradients = false;
  static constexpr bool sums_inputs          = false;
  static constexpr int late_inputs           = 0;
  using Params                               = RmsNormParams<A>;
  using Reduction                            = Sums<A, 1>;

  template <class N>
  KOKKOS_FORCEINLINE_FUNCTION static void add(N (&sum)[1], const Params&, const ScalarsOf<RmsNorm>&, const N& x,
                                              const N&) {
    sum[0] = multiply_add(x, x, sum[0]);
  }

  struct Epilogue {
    A rstd;
    A weight_offset;

    KOKKOS_DEFAULTED_FUNCTION Epilogue() = default;
    KOKKOS_INLINE_FUNCTION Epilogue(const Params& params, const Reduction& squares, const ScalarsOf<RmsNorm>&,
                                    std::int64_t cols)
        : rstd(A(1) / Kokkos::sqrt(squares[0] / static_cast<A>(cols) + params.epsilon)),
          weight_offset(params.weight_offset) {}

    template <class N>
    KOKKOS_FORCEINLINE_FUNCTION N operator()(const N& x, const N& weight) const {
      return x * rstd * (weight + weight_offset);
    }
    KOKKOS_INLINE_FUNCTION A row_output(int) const { return rstd; }
  };
};

template <class A>
struct OperatorFor<RowOperator::rms_norm, A> {
  using type = RmsNorm<A>;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_OPERATORS_RMS_NORM_HPP
