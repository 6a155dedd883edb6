// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_OPERATORS_SOFT_CROSS_ENTROPY_HPP
#define KOKKOSNN_IMPL_OPERATORS_SOFT_CROSS_ENTROPY_HPP

#include <KokkosNN/impl/gpu/device/pack_arithmetic.hpp>
#include <KokkosNN/impl/inputs/operands.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/impl/reductions/reduced_state.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Cross entropy against targets that are probabilities, one for each logit. With t_c = w_c ((1 - e) q_c + e / C):
//
//     loss = lse sum_c t_c - sum_c t_c x_c,    dloss/dx_c = exp(x_c - lse) sum_k t_k - t_c

namespace KokkosNN::Impl {

/// The constants of a call.
template <class A>
struct SoftLossParams {
  ScaledExp<A, ExpAccuracy::full> exp;
  A kept;      ///< weight of a target: 1 less the label smoothing
  A spread;    ///< label smoothing, then over the number of classes
  A upstream;  ///< factor of the gradient
  A of_loss;   ///< factor of a row's loss
  bool is_mean;

  SoftLossParams() = default;
  explicit SoftLossParams(const SoftCrossEntropyOptions& options)
      : exp(1),
        kept(A(1 - options.label_smoothing)),
        spread(A(options.label_smoothing)),
        upstream(A(options.gradient_scale)),
        of_loss(1),
        is_mean(options.reduction == Reduction::mean) {}

  /// Takes what a call's extents determine.
  void fit(std::int64_t rows, std::int64_t cols) {
    if (cols > 0) spread /= A(cols);
    if (!is_mean || rows == 0) return;
    of_loss = static_cast<A>(1.0 / static_cast<double>(rows));
    upstream *= of_loss;
  }

  A missing(int) const { return A(1); }

  template <class N>
  KOKKOS_FORCEINLINE_FUNCTION N target(const N& given, const N& weight) const {
    return weight * multiply_add(splat<N>(kept), given, splat<N>(spread));
  }
};

/// Sum of exponentials of a part of a row, relative to exp(base) 2^exponent, and the sums of t_c and t_c x_c.
template <class A>
struct SoftLossSums {
  double base     = -Kokkos::Experimental::infinity_v<double>;  ///< -inf: no logit above -inf; 0 or a logit else
  double exponent = 0;
  double sum      = 0;
  double targets  = 0;
  double products = 0;

  /// The reference as a logit.
  template <class Params>
  KOKKOS_INLINE_FUNCTION A reference(const Params& params) const {
    if (is_empty()) return A(0);
    return base != 0 ? static_cast<A>(base) : static_cast<A>(exponent) * params.exp.inverse;
  }
  KOKKOS_INLINE_FUNCTION bool has_infinity() const { return base == Kokkos::Experimental::infinity_v<double>; }

  /// Logarithm of the sum of exponentials; NaN beside +inf.
  KOKKOS_INLINE_FUNCTION double lse() const {
    constexpr double high = log_of_2<double>, low = log_of_2_low<double>;  // device code has no addresses of those
    return multiply_add(exponent, high, Kokkos::log(sum) + exponent * low) + base;
  }

  KOKKOS_INLINE_FUNCTION static SoftLossSums joined(const SoftLossSums& a, const SoftLossSums& b) {
    const bool is_a_empty = a.is_empty(), is_one_empty = is_a_empty || b.is_empty();
    const double lead  = is_one_empty ? 0 : a.lead_over(b);
    const bool a_leads = is_one_empty ? !is_a_empty : lead >= 0;
    const double of_a = a_leads ? 1 : Kokkos::exp2(lead), of_b = a_leads ? Kokkos::exp2(-lead) : 1;
    const SoftLossSums& leader = a_leads ? a : b;
    return {leader.base, leader.exponent, a.sum * of_a + b.sum * of_b, a.targets + b.targets, a.products + b.products};
  }

  /// As Sums::add, of the first row input with the second one as its targets.
  template <class, int V, int L, class Params, class Scalars, class ForPacks>
  KOKKOS_INLINE_FUNCTION static void add(ReducedState<SoftLossSums> (&states)[L], const Params& params,
                                         const Scalars (&)[L], std::int64_t count, const ForPacks& for_packs) {
    if (count == 0) return;
    auto highest = filled<A, V>(-Kokkos::Experimental::infinity_v<A>);
    for_packs([&](const auto& x, const auto&, auto valid) {
      for (int v = 0; v < V; ++v) highest[v] = v < valid && x[0][v] > highest[v] ? x[0][v] : highest[v];
    });
    ExpReference<A> reference[L];
    bool is_empty[L];
    for (int l = 0; l < L; ++l) {
      A most = highest[l];
      for (int v = l + L; v < V; v += L) most = highest[v] > most ? highest[v] : most;
      is_empty[l]  = most == -Kokkos::Experimental::infinity_v<A>;
      reference[l] = params.exp.at(finite_reference(params.exp.reference_of(most)));
    }

    auto sums = filled<A, V>(A(0)), targets = sums, products = sums;
    for_packs([&](const auto& x, const auto& columns, auto valid) {
      for (int v = 0; v < V; ++v) {
        columns.apply(v, x, [&](A logit, A given, A weight) {
          const A exponential = params.exp(logit, reference[v % L]);
          const A target      = v < valid ? params.target(given, weight) : A(0);
          sums[v] += v < valid ? exponential : A(0);
          targets[v] += target;
          products[v] += target == A(0) ? A(0) : target * logit;
        });
      }
    });
    const Pack<A, L> all_sums = folded<L>(sums), all_targets = folded<L>(targets), all_products = folded<L>(products);
    for (int l = 0; l < L; ++l) {
      const double base = is_empty[l] ? -Kokkos::Experimental::infinity_v<double> : double(reference[l].base);
      const SoftLossSums own{base, double(reference[l].exponent), double(all_sums[l]), double(all_targets[l]),
                             double(all_products[l])};
      states[l] = {joined(states[l], own)};
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION bool is_empty() const { return base == -Kokkos::Experimental::infinity_v<double>; }
  /// Binary logarithm of the quotient of the references.
  KOKKOS_INLINE_FUNCTION double lead_over(const SoftLossSums& other) const {
    constexpr double log2_of_e = log2_of_e_high;
    return multiply_add(base - other.base, log2_of_e, exponent - other.exponent);
  }
};

/// Loss and log-sum-exp of a row of logits with targets, and with `has_gradient` the gradient as the row that is
/// written.
template <class A, bool has_gradient>
struct SoftCrossEntropy {
  using accumulator                          = A;
  static constexpr int row_inputs            = 2;  // logits, targets
  static constexpr int column_inputs         = 1;  // weights
  static constexpr int row_scalars           = 0;
  static constexpr int row_outputs           = 2;  // loss, lse
  static constexpr bool has_weight_gradients = false;
  static constexpr bool sums_inputs          = false;
  static constexpr bool writes_no_rows       = !has_gradient;
  static constexpr int late_inputs           = 0;
  using Params                               = SoftLossParams<A>;
  using Reduction                            = SoftLossSums<A>;

  struct Epilogue {
    const Params* params;
    ExpReference<A> reference;
    A factor;  ///< of exponentials in the gradient
    A loss;
    A lse;

    KOKKOS_DEFAULTED_FUNCTION Epilogue() = default;
    KOKKOS_INLINE_FUNCTION Epilogue(const Params& of_call, const Reduction& of_row, const ScalarsOf<SoftCrossEntropy>&,
                                    std::int64_t)
        : params(&of_call),
          reference(of_call.exp.at(of_row.reference(of_call))),
          factor(of_call.upstream * static_cast<A>(of_row.targets / of_row.sum)),
          loss(of_call.of_loss * static_cast<A>(of_row.targets * of_row.lse() - of_row.products)),
          lse(of_row.has_infinity() ? Kokkos::Experimental::infinity_v<A> : static_cast<A>(of_row.lse())) {}

    template <class N>
    KOKKOS_FORCEINLINE_FUNCTION N operator()(const N& logit, const N& given, const N& weight) const {
      return multiply_add(params->exp(logit, splat_reference<N>(reference)), splat<N>(factor),
                          -params->upstream * params->target(given, weight));
    }
    KOKKOS_INLINE_FUNCTION A row_output(int i) const { return i == 0 ? loss : lse; }
  };
};

template <class A>
struct OperatorFor<RowOperator::soft_cross_entropy, A> {
  using type = SoftCrossEntropy<A, false>;
};
template <class A>
struct OperatorFor<RowOperator::soft_cross_entropy_with_gradient, A> {
  using type = SoftCrossEntropy<A, true>;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_OPERATORS_SOFT_CROSS_ENTROPY_HPP
