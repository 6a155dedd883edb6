// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_OPERATORS_QUANTIZED_SOFTMAX_HPP
#define KOKKOSNN_IMPL_OPERATORS_QUANTIZED_SOFTMAX_HPP

#include <KokkosNN/impl/inputs/operands.hpp>
#include <KokkosNN/impl/reductions/largest_and_sum.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace KokkosNN::Impl {

/// The constants of a softmax whose results are quantised.
template <class A, ExpAccuracy accuracy>
struct QuantizedSoftmaxParams {
  ScaledExp<A, accuracy> exp;
  A sign;          ///< of the scale
  A masked_value;  ///< NaN or 0: the factor of a row without finite logits

  explicit QuantizedSoftmaxParams(const SoftmaxOptions& options)
      : exp(options.scale < 0 ? -options.scale : options.scale),
        sign(options.scale < 0 ? A(-1) : A(1)),
        masked_value(options.masked_row == MaskedRowPolicy::zero ? A(0) : Kokkos::Experimental::quiet_NaN_v<A>) {}
};

/// Softmax as one struct, relative to the row's largest element: the largest result is then 1 / sum.
template <class A, ExpAccuracy accuracy>
struct QuantizedSoftmax {
  using accumulator                  = A;
  static constexpr int row_inputs    = 1;
  static constexpr int column_inputs = 0;
  static constexpr int row_scalars   = 0;
  static constexpr int row_outputs   = 0;
  static constexpr bool sums_inputs  = false;
  static constexpr int late_inputs   = 0;
  using Params                       = QuantizedSoftmaxParams<A, accuracy>;
  using Reduction                    = LargestAndSum<A>;

  struct Epilogue {
    ScaledExp<A, accuracy> exp;
    A sign;
    A base;
    A factor;

    KOKKOS_INLINE_FUNCTION Epilogue(const Params& params, const Reduction& row, const ScalarsOf<QuantizedSoftmax>&,
                                    std::int64_t)
        : exp(params.exp), sign(params.sign), base(finite_reference(row.largest)) {
      const A sum = static_cast<A>(rounded(row.sum));
      factor      = sum == A(0) ? params.masked_value : A(1) / sum;
    }

    KOKKOS_FORCEINLINE_FUNCTION A operator()(A x) const { return Reduction::exponential(exp, sign * x, base) * factor; }
    KOKKOS_INLINE_FUNCTION A largest() const { return factor; }
  };
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_OPERATORS_QUANTIZED_SOFTMAX_HPP
