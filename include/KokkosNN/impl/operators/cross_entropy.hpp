// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_OPERATORS_CROSS_ENTROPY_HPP
#define KOKKOSNN_IMPL_OPERATORS_CROSS_ENTROPY_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/status_word.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/inputs/labelled.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/impl/math/gates.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>
#include <KokkosNN/impl/reductions/loss_state.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Cross entropies: the parameters of a call, the epilogue of a row, its loss and its gradient.
// With z the logits, soft-capped if asked for, y the label, w the classes' weights, C their number and e the label
// smoothing, the loss of a row and its gradient are
//
//     loss   = (1 - e) w_y (lse - z_y) + e / C sum_c w_c (lse - z_c) + z_loss w_y lse^2
//     dloss/dz_c = p_c ((1 - e) w_y + e / C sum w + 2 z_loss w_y lse) - e / C w_c - (c == y ? (1 - e) w_y : 0)
//
// `extended` kernels smooth labels, cap logits, find the predicted class, and leave z_loss without weights. The other
// kernels are faster: their rows are reduced to (max, sum) as softmax's are, with its registers, and each element but
// the label's is a softmax times a factor.

namespace KokkosNN::Impl {

template <class A>
struct HostSoftcap;

/// Soft cap z = cap tanh(x / cap), or x itself if the cap is 0. A logit of -inf stays -inf: such a class is masked.
template <class A>
struct Softcap {
  A cap;
  A inverse;

  explicit Softcap(double c) : cap(A(c)), inverse(c != 0 ? A(1 / c) : A(0)) {}

  KOKKOS_INLINE_FUNCTION bool is_on() const { return cap != A(0); }

  /// On a host a number has the bits that it has in a vector.
  KOKKOS_INLINE_FUNCTION A capped(A x) const {
    KOKKOS_IF_ON_HOST(
        (A lanes[simd_width<A>]; store_vector(lanes, HostSoftcap<A>{*this}(splat<Vector<A>>(x))); return lanes[0];))
    KOKKOS_IF_ON_DEVICE(
        (const A z = cap * bounded_tanh(x * inverse); return x == -Kokkos::Experimental::infinity_v<A> ? x : z;))
  }

  /// Derivative dz/dx at a given z, of a number or a host's vector.
  template <class T>
  KOKKOS_INLINE_FUNCTION T slope(T z) const {
    const T one = splat<T>(A(1));
    const T t   = at_least(z * splat<T>(inverse), -one);
    return is_on() ? fused_multiply_add(-t, t, one) : one;
  }
};

/// Soft cap of a host's vectors: tanh(h) = (1 - e) / (1 + e), e = exp(-2 h), to a few ulps of 1.
template <class A>
struct HostSoftcap {
  using T = Vector<A>;

  Softcap<A> softcap;
  DecayingExp<A, ExpAccuracy::full> decay{2.0};

  KOKKOS_FORCEINLINE_FUNCTION T operator()(T x) const {
    const T e = decay(magnitude(x * splat<T>(softcap.inverse)));
    const T z = splat<T>(softcap.cap) * ((splat<T>(A(1)) - e) * inverse_of_normal(splat<T>(A(1)) + e));
    const T y = x < splat<T>(A(0)) ? -z : z;
    return x == splat<T>(-Kokkos::Experimental::infinity_v<A>) ? x : y;
  }
};

/// Parameters of extended kernels alone: a base, which takes no room among the arguments of others.
template <class A, bool extended>
struct ExtendedLossParams {
  explicit ExtendedLossParams(const CrossEntropyOptions&) {}
};
template <class A>
struct ExtendedLossParams<A, true> {
  PredictedClasses predicted = {};
  bool weights_z_loss;               ///< z_loss has the weight of the row's class
  const A* z_loss_weight = nullptr;  ///< weight of each row's z_loss else: a mean divides by weights. Null: 1

  explicit ExtendedLossParams(const CrossEntropyOptions& options) : weights_z_loss(options.weighted_z_loss) {}
};

/// Parameters that all rows of a cross entropy share.
template <RowOperator op, class A, ExpAccuracy exp_accuracy, bool extended>
struct CrossEntropyParams : SoftmaxParams<A, exp_accuracy>, ExtendedLossParams<A, extended> {
  using Base                           = SoftmaxParams<A, exp_accuracy>;
  static constexpr bool is_extended    = extended;
  static constexpr bool has_lse        = true;
  static constexpr bool may_negate     = false;
  static constexpr bool changes_logits = extended;
  using State                          = std::conditional_t<
      op == RowOperator::cross_entropy_backward, RowScalars<A>,
      std::conditional_t<extended, LossState<A, typename Base::wide_sum>, RowState<A, typename Base::wide_sum>>>;

  Softcap<A> softcap;
  A kept;      ///< weight of the label in the target: 1 less the label smoothing
  A spread;    ///< label smoothing over the number of classes
  A z_loss;    ///< factor of lse^2
  A upstream;  ///< factor of the gradient
  ClassShard shard;
  std::int64_t ignore_index;
  ClassWeights<A> weights    = {};       ///< weights of all classes
  const A* inverse_divisor   = nullptr;  ///< divisor of the mean; null: 1
  const A* weight_of_classes = nullptr;  ///< sum of all classes' weights; null: their number

  CrossEntropyParams(const CrossEntropyOptions& options, const ClassShard& columns)
      : Base(1, MaskedRowPolicy::nan),
        ExtendedLossParams<A, extended>(options),
        softcap(options.softcap),
        kept(A(1 - options.label_smoothing)),
        spread(A(options.label_smoothing / static_cast<double>(columns.classes))),
        z_loss(A(options.z_loss)),
        upstream(A(options.gradient_scale)),
        shard(columns),
        ignore_index(options.ignore_index) {}

  KOKKOS_INLINE_FUNCTION A logit(A x) const
    requires(extended)
  {
    return softcap.is_on() ? softcap.capped(x) : x;
  }

  /// True if logits are not what was loaded, and the function that makes vectors of them.
  KOKKOS_INLINE_FUNCTION bool makes_logits() const
    requires(extended)
  {
    return softcap.is_on();
  }
  HostSoftcap<A> vector_logits() const
    requires(extended)
  {
    return {softcap};
  }

  template <int V>
  KOKKOS_INLINE_FUNCTION void make_logits(Pack<A, V>& pack) const {
    if (!softcap.is_on()) return;
    for (int v = 0; v < V; ++v) pack[v] = softcap.capped(pack[v]);
  }

  /// True if rows' predicted classes are wanted.
  KOKKOS_INLINE_FUNCTION bool finds_class() const
    requires(extended)
  {
    return this->predicted.data != nullptr;
  }

  KOKKOS_INLINE_FUNCTION Label label_of(std::int64_t label) const { return Label::of(label, ignore_index, shard); }

  /// Weights of the columns that this call has.
  KOKKOS_INLINE_FUNCTION ClassWeights<A> column_weights() const {
    return {weights.data == nullptr ? nullptr : weights.data + shard.first * weights.stride, weights.stride};
  }

  /// Weight of a row's lse^2, where its class has such a weight.
  KOKKOS_INLINE_FUNCTION A weight_of_z_loss(A weight) const {
    if constexpr (extended) {
      if (!this->weights_z_loss) return this->z_loss_weight == nullptr ? A(1) : *this->z_loss_weight;
    }
    return weight;
  }

  /// Factor of a row's probabilities in its gradient.
  KOKKOS_INLINE_FUNCTION A factor(A weight, A lse) const {
    A by = kept * weight;
    if constexpr (extended) by += spread != A(0) ? spread * total_weight() : A(0);
    if (z_loss != A(0)) by += 2 * z_loss * weight_of_z_loss(weight) * lse;
    return by;
  }

  KOKKOS_INLINE_FUNCTION A total_weight() const {
    return weight_of_classes == nullptr ? A(shard.classes) : *weight_of_classes;
  }
};

/// Observer that adds up w_c z_c where labels are smoothed, and finds the greatest logit where its class is wanted.
template <class State, class A>
struct LogitObserver {
  ClassWeights<A> weights;
  bool adds_up;
  bool finds_class;
  typename State::Linear sum = {};
  GreatestLogit<A> greatest  = {};

  template <int V>
  KOKKOS_INLINE_FUNCTION void operator()(const Pack<A, V>& z, std::int64_t column, int in_row) {
    if (finds_class) {
      for (int v = 0; v < V; ++v) {
        const GreatestLogit<A> logit{z[v], column + v};
        if (v < in_row && logit.goes_before(greatest)) greatest = logit;
      }
    }
    if (!adds_up) return;
    A of_pack = 0;
    for (int v = 0; v < V; ++v) {
      if (v < in_row) of_pack += weights.data == nullptr ? z[v] : weights(column + v) * z[v];
    }
    sum += of_pack;
  }
};

/// Epilogue of a cross entropy: it carries a row's total to LabelledPlacement, which applies row_loss and
/// LogitGradient.
template <RowOperator op>
  requires(is_cross_entropy(op))
struct Epilogue<op> : EpilogueDefaults {
  template <class Params, class A>
  struct Row {
    A own_reference;  ///< reference of the kept exponentials
    typename Params::State total;

    KOKKOS_INLINE_FUNCTION Row(const Params&, A own, const typename Params::State& all)
        : own_reference(own), total(all) {}
    KOKKOS_INLINE_FUNCTION Row(const Params&, const typename Params::State& all) : own_reference(0), total(all) {
      if constexpr (is_joined<typename Params::State>) own_reference = all.reference;
    }
  };
};

/// Loss of a row that has a class, from the row's total and the class's logit. It is NaN where the log-sum-exp is +inf.
template <class Params, class A = typename Params::accumulator>
KOKKOS_INLINE_FUNCTION A row_loss(const Params& params, const typename Params::State& total, A label_logit, A weight,
                                  A lse) {
  if (total.reference == Kokkos::Experimental::infinity_v<A>) return Kokkos::Experimental::quiet_NaN_v<A>;
  const typename Epilogue<RowOperator::log_softmax>::template Row<Params, A> row(params, A(0), total);
  // Halves of logits, as in log_softmax: a weight may be as small as a scale.
  const A half = at_most(row.half_difference(label_logit) - A(0.5) * row.log_sum, A(0));
  A value      = 2 * (params.kept * weight * -half);
  if (params.z_loss != A(0)) value += params.z_loss * params.weight_of_z_loss(weight) * (lse * lse);
  if constexpr (Params::is_extended) {
    using Linear = typename Params::State::Linear;
    if (params.spread != A(0)) {
      const Linear of_all = Linear(params.total_weight()) * (2 * Linear(row.half_reference) + Linear(row.log_sum));
      value += static_cast<A>(Linear(params.spread) * (of_all - total.linear));
    }
  }
  return value;
}

/// Gradient with respect to a logit: softmax times a factor of the row, less the smoothing's term and the label's.
/// Elements are numbers or, on a host, vectors T of numbers.
template <class Params, class A>
struct LogitGradient {
  A factor;  ///< for exponentials relative to the total's reference, or to the thread's own
  ExpReference<A> reference;
  A spread;  ///< factor of the class's weight

  KOKKOS_DEFAULTED_FUNCTION LogitGradient() = default;
  /// Takes a row's state.
  KOKKOS_INLINE_FUNCTION LogitGradient(const Params& params, A own_reference, const typename Params::State& total, A by,
                                       A of_weight)
      : spread(of_weight) {
    const typename Epilogue<RowOperator::softmax>::template Row<Params, A> softmax(params, own_reference, total);
    reference = softmax.reference;
    factor    = softmax.factor * by;
    if (total.reference == Kokkos::Experimental::infinity_v<A>) factor = Kokkos::Experimental::quiet_NaN_v<A>;
  }

  /// Takes a row's log-sum-exp; exponentials are relative to the power of two below its exponential.
  KOKKOS_INLINE_FUNCTION LogitGradient(const Params& params, A lse, A by, A of_weight) : spread(of_weight) {
    const bool is_finite = Kokkos::isfinite(lse);
    reference            = params.exp.at(is_finite ? params.exp.reference_of(lse) : A(0));
    const A rest         = (reference.base + fused_multiply_add(reference.exponent, log_of_2<A>, -lse)) +
                           reference.exponent * log_of_2_low<A>;
    factor               = is_finite ? by * Kokkos::exp(rest) : Kokkos::Experimental::quiet_NaN_v<A>;
  }

  /// Gradient from a kept exponential.
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const Params&, T kept) const {
    return kept * splat<T>(factor);
  }
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T from_input(const Params& params, T x) const {
    return (*this)(params, params.exp.of_any(x, splat_reference<T>(reference)));
  }
  /// Gradient with all terms; `target` is the label's.
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T of_logit(const Params& params, T z, T weight, T target = T{}) const {
    const T dz = from_input(params, z) - (splat<T>(spread) * weight + target);
    if constexpr (Params::is_extended) {
      return dz * params.softcap.slope(z);
    } else {
      return dz;
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_OPERATORS_CROSS_ENTROPY_HPP
