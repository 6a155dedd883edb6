// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_PRIMITIVES_CROSS_ENTROPY_HPP
#define KOKKOSNN_IMPL_PRIMITIVES_CROSS_ENTROPY_HPP

#include <KokkosNN/impl/primitives/exp.hpp>
#include <KokkosNN/impl/primitives/finish.hpp>
#include <KokkosNN/impl/primitives/gradient.hpp>
#include <KokkosNN/impl/primitives/lanes.hpp>
#include <KokkosNN/impl/primitives/mailbox.hpp>
#include <KokkosNN/impl/primitives/rows.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

// The cross entropies' part of the primitives: labels, what all rows share, the state of a row, and what becomes of it.
// With z the logits, soft-capped if asked for, y the label, w the classes' weights, C their number and e the label
// smoothing, the loss of a row and its gradient are
//
//     loss   = (1 - e) w_y (lse - z_y) + e / C sum_c w_c (lse - z_c) + z_loss w_y lse^2
//     dloss/dz_c = p_c ((1 - e) w_y + e / C sum w + 2 z_loss w_y lse) - e / C w_c - (c == y ? (1 - e) w_y : 0)
//
// `extended` kernels can smooth and cap; the others, which are faster, cannot: there (max, sum) is all that a row's
// threads agree on, and all elements but the label's are a softmax times a factor.

namespace KokkosNN::Impl {

/// z = cap tanh(x / cap), or x itself if the cap is 0. A logit of -inf stays one: such a class is masked.
template <class A>
struct Softcap {
  A cap;
  A inverse;

  explicit Softcap(double c) : cap(A(c)), inverse(c != 0 ? A(1 / c) : A(0)) {}

  KOKKOS_INLINE_FUNCTION bool is_on() const { return cap != A(0); }

  KOKKOS_INLINE_FUNCTION A capped(A x) const {
    const A z = cap * bounded_tanh(x * inverse);
    return x == -Kokkos::Experimental::infinity_v<A> ? x : z;
  }

  /// dz/dx at a given z.
  KOKKOS_INLINE_FUNCTION A slope(A z) const {
    const A t = at_least(z * inverse, A(-1));
    return is_on() ? fused_multiply_add(-t, t, A(1)) : A(1);
  }
};

/// (max, sum) of a part of a row and the sum of w_c z_c. Its size is a multiple of 8, as that of RowSum.
template <class A, class W>
struct alignas(8) LossState {
  using Linear = std::conditional_t<std::is_same_v<A, W>, A, double>;

  A reference   = -Kokkos::Experimental::infinity_v<A>;
  W sum         = {};
  Linear linear = {};

  KOKKOS_INLINE_FUNCTION RowState<A, W> exponentials() const { return {reference, sum}; }
  KOKKOS_INLINE_FUNCTION static LossState of(const RowState<A, W>& exponentials, Linear linear) {
    return {exponentials.reference, exponentials.sum, linear};
  }
};

template <bool is_summed = false, class Math, class A, class W>
KOKKOS_INLINE_FUNCTION LossState<A, W> merge_warp(const Math& math, const LossState<A, W>& mine, int lanes) {
  return LossState<A, W>::of(merge_warp<is_summed>(math, mine.exponentials(), lanes),
                             reduce_lanes(mine.linear, 1, lanes, SumJoin{}));
}

template <bool repeated = false, class Math, class A, class W>
KOKKOS_INLINE_FUNCTION LossState<A, W> merge_lanes(const Math& math, const LossState<A, W>& mine, int lanes) {
  return LossState<A, W>::of(merge_lanes<repeated>(math, mine.exponentials(), lanes),
                             reduce_lanes(mine.linear, 1, lanes, SumJoin{}));
}

template <class Math, class A, class W>
KOKKOS_INLINE_FUNCTION LossState<A, W> merge_two(const Math& math, const LossState<A, W>& a, const LossState<A, W>& b) {
  return LossState<A, W>::of(merge_two(math, a.exponentials(), b.exponentials()), a.linear + b.linear);
}

template <class FinishRow, class Math, class A, class W>
KOKKOS_INLINE_FUNCTION FinishRow finish_row(const Math& math, const LossState<A, W>& own,
                                            const LossState<A, W>& total) {
  return FinishRow(math, own.reference, total);
}

/// Two letters, each with its own tag.
template <class A>
struct LossMailbox {
  struct Letter {
    typename Mailbox<A>::Letter exponentials;
    SumMailbox::Letter linear;
  };

  Mailbox<A> exponentials;
  SumMailbox linear;

  KOKKOS_INLINE_FUNCTION Letter read(std::int64_t turn) const { return {exponentials.read(turn), linear.read(turn)}; }
  KOKKOS_INLINE_FUNCTION static bool holds(const Letter& letter, std::int64_t turn) {
    return Mailbox<A>::holds(letter.exponentials, turn) && SumMailbox::holds(letter.linear, turn);
  }
};

template <class A, class W>
struct MailboxFor<LossState<A, W>> {
  using type = LossMailbox<A>;
};

template <class A, class W>
KOKKOS_INLINE_FUNCTION void publish(LossMailbox<A>& mailbox, std::int64_t turn, const LossState<A, W>& state) {
  publish(mailbox.linear, turn, RowSum<float, double>{static_cast<double>(state.linear)});
  publish(mailbox.exponentials, turn, state.exponentials());
}

template <class State, class A>
KOKKOS_INLINE_FUNCTION State opened(const LossMailbox<A>& mailbox, const typename LossMailbox<A>::Letter& letter) {
  using Exponentials = decltype(State().exponentials());
  return State::of(opened<Exponentials>(mailbox.exponentials, letter.exponentials),
                   static_cast<typename State::Linear>(SumMailbox::open(letter.linear)));
}

/// One integer a row, of any integral type: erased, as a kernel loads one of them only.
template <class Map>
struct RowLabels {
  const void* data       = nullptr;
  int bytes              = 8;
  bool is_signed         = true;
  bool may_ignore_lowest = false;  ///< the index that is ignored is the lowest number of 64 bits
  Map map;

  /// A label; what has no sign and is beyond such numbers as one that is neither a class nor ignored.
  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t row) const {
    const std::int64_t label = bits(row);
    if (is_signed || bytes < 8 || label >= 0) return label;
    constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
    return may_ignore_lowest ? lowest + 1 : lowest;
  }

  /// The same, but what is beyond those numbers as the one with its bits.
  KOKKOS_INLINE_FUNCTION std::int64_t bits(std::int64_t row) const {
    const std::int64_t i = map(opaque(row));  // or a loop over rows would carry a pointer for each width, and spill
    if (bytes == 8) return static_cast<const std::int64_t*>(data)[i];
    if (bytes == 4) return is_signed ? at<std::int32_t>(i) : at<std::uint32_t>(i);
    if (bytes == 2) return is_signed ? at<std::int16_t>(i) : at<std::uint16_t>(i);
    return is_signed ? at<std::int8_t>(i) : at<std::uint8_t>(i);
  }

 private:
  template <class T>
  KOKKOS_INLINE_FUNCTION std::int64_t at(std::int64_t i) const {
    return static_cast<std::int64_t>(static_cast<const T*>(data)[i]);
  }
};

using Labels = RowLabels<RowMap>;

/// What a label says of its row.
struct Label {
  std::int64_t number;  ///< of the class; 0 if there is none
  std::int64_t column;  ///< of its logit; 0 if that is not among the columns at hand
  bool is_ignored;
  bool is_class;
  bool is_here;  ///< a class whose logit is among the columns at hand

  KOKKOS_INLINE_FUNCTION static Label of(std::int64_t label, std::int64_t ignore_index, const ClassShard& shard) {
    const bool is_ignored     = label == ignore_index;
    const bool is_class       = !is_ignored && label >= 0 && label < shard.classes;
    const std::int64_t number = is_class ? label : 0;
    const std::int64_t column = number - shard.first;
    const bool is_here        = is_class && column >= 0 && column < shard.columns;
    return {number, is_here ? column : 0, is_ignored, is_class, is_here};
  }
};

/// The classes' weights; 1 where there are none.
template <class A>
struct ClassWeights {
  const A* data       = nullptr;
  std::int64_t stride = 1;

  KOKKOS_INLINE_FUNCTION A operator()(std::int64_t c) const { return data == nullptr ? A(1) : data[c * stride]; }
};

/// What all rows of a cross entropy share.
template <RowOperator op, class A, ExpAccuracy exp_accuracy, bool extended>
struct CrossEntropyMath : RowMath<A, exp_accuracy> {
  using Base                        = RowMath<A, exp_accuracy>;
  static constexpr bool is_extended = extended;
  static constexpr bool has_lse     = true;  ///< beside what else is made of a sum
  using State                       = std::conditional_t<
      op == RowOperator::cross_entropy_backward, RowScalars<A>,
      std::conditional_t<extended, LossState<A, typename Base::wide_sum>, RowState<A, typename Base::wide_sum>>>;

  Softcap<A> softcap;
  A kept;      ///< of the target by the label: 1 less the label smoothing
  A spread;    ///< the label smoothing over the number of classes
  A z_loss;    ///< factor of lse^2
  A upstream;  ///< factor of the gradient
  ClassShard shard;
  std::int64_t ignore_index;
  ClassWeights<A> weights    = {};       ///< of all classes
  const A* inverse_divisor   = nullptr;  ///< of the mean; none: 1
  const A* weight_of_classes = nullptr;  ///< of all of them; none: their number

  CrossEntropyMath(const CrossEntropyOptions& options, const ClassShard& columns)
      : Base(1, MaskedRowPolicy::nan),
        softcap(options.softcap),
        kept(A(1 - options.label_smoothing)),
        spread(A(options.label_smoothing / static_cast<double>(columns.classes))),
        z_loss(A(options.z_loss)),
        upstream(A(options.gradient_scale)),
        shard(columns),
        ignore_index(options.ignore_index) {}

  KOKKOS_INLINE_FUNCTION A logit(A x) const requires(extended) { return softcap.is_on() ? softcap.capped(x) : x; }

  template <int V>
  KOKKOS_INLINE_FUNCTION void make_logits(Pack<A, V>& pack) const {
    if (!softcap.is_on()) return;
    for (int v = 0; v < V; ++v) pack[v] = softcap.capped(pack[v]);
  }

  KOKKOS_INLINE_FUNCTION Label label_of(std::int64_t label) const { return Label::of(label, ignore_index, shard); }

  /// Of the columns at hand.
  KOKKOS_INLINE_FUNCTION ClassWeights<A> column_weights() const {
    return {weights.data == nullptr ? nullptr : weights.data + shard.first * weights.stride, weights.stride};
  }

  /// What the gradient has of a row's probabilities.
  KOKKOS_INLINE_FUNCTION A factor(A weight, A lse) const {
    A by = kept * weight;
    if constexpr (extended) by += spread != A(0) ? spread * total_weight() : A(0);
    if (z_loss != A(0)) by += 2 * z_loss * weight * lse;
    return by;
  }

  KOKKOS_INLINE_FUNCTION A total_weight() const {
    return weight_of_classes == nullptr ? A(shard.classes) : *weight_of_classes;
  }
};

/// Adds up w_c z_c where labels are smoothed.
template <class State, class A>
struct LinearSum {
  ClassWeights<A> weights;
  bool is_wanted;
  typename State::Linear sum = {};

  template <int V>
  KOKKOS_INLINE_FUNCTION void operator()(const Pack<A, V>& z, std::int64_t column, int in_row) {
    if (!is_wanted) return;
    A of_pack = 0;
    for (int v = 0; v < V; ++v) {
      if (v < in_row) of_pack += weights.data == nullptr ? z[v] : weights(column + v) * z[v];
    }
    sum += of_pack;
  }
};

/// One value a row: where losses and log-sum-exps go. Nothing is stored where there is no View.
template <class A, class Map = RowMap>
struct OptionalScalars {
  A* data = nullptr;
  Map map;

  KOKKOS_INLINE_FUNCTION void store(A value, std::int64_t row) const {
    if (data != nullptr) data[map(opaque(row))] = value;
  }
  KOKKOS_INLINE_FUNCTION A load(std::int64_t row) const { return data[map(opaque(row))]; }
};

/// Rows of logits, each with its label; the backward's also with a log-sum-exp and the gradient of its loss. All of
/// them are found by one kind of map.
template <class X, RowForm row_form, class A, bool extended, class Map = MapOf<row_form>>
struct LabelledRows {
  using value_type                  = X;
  static constexpr RowForm form     = row_form;
  static constexpr bool is_extended = extended;

  struct Row : MemoryRow<const X, form> {
    const LabelledRows& rows;
    std::int64_t number;
    std::int64_t label;
  };

  MemoryRows<const X, form, Map> logits;
  RowLabels<Map> labels;
  OptionalScalars<const A, Map> lse;
  OptionalScalars<const A, Map> dloss;

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t r) const { return {logits.row(r), *this, r, labels(r)}; }

  /// As rows without labels do.
  bool look_ahead(std::int64_t rows_ahead, int rows, std::int64_t cols) requires(decltype(logits)::looks_ahead) {
    return logits.look_ahead(rows_ahead, rows, cols);
  }
  KOKKOS_INLINE_FUNCTION void prefetch(std::int64_t row) const requires(decltype(logits)::looks_ahead) {
    logits.prefetch(row);
  }
};

/// Where a row's gradient, loss and log-sum-exp go.
template <class Y, RowForm form, class A, class Map = MapOf<form>>
struct LossSink {
  using value_type = Y;

  struct Row : MemoryRow<Y, form> {
    const LossSink& sink;
  };

  MemoryRows<Y, form, Map> dlogits;
  OptionalScalars<A, Map> loss;
  OptionalScalars<A, Map> lse;

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t r) const { return {dlogits.row(r), *this}; }
};

/// The same without a gradient.
template <class A, class Map>
struct LossSink<void, RowForm::any, A, Map> {
  struct Row {
    const LossSink& sink;
  };

  OptionalScalars<A, Map> loss;
  OptionalScalars<A, Map> lse;

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t) const { return {*this}; }
};

/// A row's total, for the storage that knows its label.
template <RowOperator op>
requires(is_cross_entropy(op)) struct Finish<op> {
  static constexpr bool one_value_a_row = false;

  template <class Math, class A>
  struct Row {
    A own_reference;  ///< what kept exponentials are relative to
    typename Math::State total;

    KOKKOS_INLINE_FUNCTION Row(const Math&, A own, const typename Math::State& all) : own_reference(own), total(all) {}
    KOKKOS_INLINE_FUNCTION Row(const Math&, const typename Math::State& all) : own_reference(0), total(all) {
      if constexpr (requires { all.reference; }) own_reference = all.reference;
    }
  };
};

/// The loss of a row that has a class, from the row's total and the class's logit: NaN where the log-sum-exp is +inf.
template <class Math, class A = typename Math::accumulator>
KOKKOS_INLINE_FUNCTION A row_loss(const Math& math, const typename Math::State& total, A label_logit, A weight, A lse) {
  if (total.reference == Kokkos::Experimental::infinity_v<A>) return Kokkos::Experimental::quiet_NaN_v<A>;
  const typename Finish<RowOperator::log_softmax>::template Row<Math, A> row(math, A(0), total);
  // Halves, as in log_softmax: a weight may be as small as a scale.
  const A half = at_most(row.half_difference(label_logit) - A(0.5) * row.log_sum, A(0));
  A value      = 2 * (math.kept * weight * -half);
  if (math.z_loss != A(0)) value += math.z_loss * weight * (lse * lse);
  if constexpr (Math::is_extended) {
    using Linear = typename Math::State::Linear;
    if (math.spread != A(0)) {
      const Linear of_all = Linear(math.total_weight()) * (2 * Linear(row.half_reference) + Linear(row.log_sum));
      value += static_cast<A>(Linear(math.spread) * (of_all - total.linear));
    }
  }
  return value;
}

/// The gradient by a logit, before the label's part: softmax times a factor of the row, less what smoothing asks for.
template <class Math, class A>
struct LogitGradient {
  A factor;  ///< of exponentials relative to the total's reference, or to the thread's own
  ExpReference<A> reference;
  A spread;  ///< of the class's weight

  /// From a row's state.
  KOKKOS_INLINE_FUNCTION LogitGradient(const Math& math, A own_reference, const typename Math::State& total, A by,
                                       A of_weight)
      : spread(of_weight) {
    const typename Finish<RowOperator::softmax>::template Row<Math, A> softmax(math, own_reference, total);
    reference = softmax.reference;
    factor    = softmax.factor * by;
    if (total.reference == Kokkos::Experimental::infinity_v<A>) factor = Kokkos::Experimental::quiet_NaN_v<A>;
  }

  /// From a row's log-sum-exp: relative to the power of two below its exponential.
  KOKKOS_INLINE_FUNCTION LogitGradient(const Math& math, A lse, A by, A of_weight) : spread(of_weight) {
    const bool is_finite = Kokkos::isfinite(lse);
    reference            = math.exp.at(is_finite ? math.exp.reference_of(lse) : A(0));
    const A rest         = (reference.base + fused_multiply_add(reference.exponent, log_of_2<A>, -lse)) +
                   reference.exponent * log_of_2_low<A>;
    factor = is_finite ? by * Kokkos::exp(rest) : Kokkos::Experimental::quiet_NaN_v<A>;
  }

  /// From a kept exponential.
  KOKKOS_INLINE_FUNCTION A operator()(const Math&, A kept) const { return kept * factor; }
  KOKKOS_INLINE_FUNCTION A from_input(const Math& math, A x) const {
    return (*this)(math, math.exp.of_any(x, reference));
  }
  /// With all that there may be; `target` is the label's part.
  KOKKOS_INLINE_FUNCTION A of_logit(const Math& math, A z, A weight, A target = A(0)) const {
    const A dz = from_input(math, z) - (spread * weight + target);
    return Math::is_extended ? dz * math.softcap.slope(z) : dz;
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_PRIMITIVES_CROSS_ENTROPY_HPP
