// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_PLACEMENT_LABELLED_HPP
#define KOKKOSNN_IMPL_GPU_PLACEMENT_LABELLED_HPP

#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/operators/cross_entropy.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Placement of the cross entropies in RowInTeam and SplitRow: a placement of softmax or log-sum-exp, Held, whose
// threads know the row's label.
// No column is compared with the label: the thread that has the label's element reads its logit ahead of all writes,
// while the row's threads wait for each other (`prepare_write`), and in the end writes the element anew, with the loss
// and the log-sum-exp. The data for that waits in shared memory if a GPU's rows are of 16 bits (`LabelNote`), and is
// read again elsewhere. A row whose label is no class, or no class of this call's columns, is handled by its first
// element's thread.

namespace KokkosNN::Impl {

/// Factors of a row's gradient.
template <class A>
struct RowFactors {
  A weight  = 0;  ///< weight of the label
  A dloss   = 1;
  A inverse = 1;  ///< 1 / the mean's divisor

  template <bool has_dloss, class Row, class Params>
  KOKKOS_INLINE_FUNCTION void load(const Row& row, const Params& params, const Label& label) {
    weight = params.weights(label.number);
    if constexpr (has_dloss) dloss = row.rows.dloss.load(row.number);
    if (params.inverse_divisor != nullptr) inverse = *params.inverse_divisor;
  }
  template <class Params>
  KOKKOS_INLINE_FUNCTION A upstream(const Params& params) const {
    return dloss * params.upstream * inverse;
  }
};

/// Data of a row, besides the logit, that the thread with the label's element keeps until the end.
template <class A>
struct alignas(16) LabelNote {
  std::int64_t label;
  RowFactors<A> factors;
};

/// Data of a row that one warp of a team collects for the whole team.
template <class A>
struct alignas(16) LabelFacts : LabelNote<A> {
  std::int64_t column;  ///< column of the label if the team has its element, else -1
  A label_logit;        ///< only if the team has its element
  bool is_class;
  bool is_ignored;
};

/// Gradient with respect to a row's logits, from its totals. `has_loss`: those are of the row's logits, else they are
/// the log-sum-exp that the call was given.
template <bool has_loss, class Params, class Totals, class A>
KOKKOS_INLINE_FUNCTION LogitGradient<Params, A> logit_gradient(const Params& params, const Totals& totals,
                                                               const RowFactors<A>& of_row) {
  const A upstream = of_row.upstream(params);
  if constexpr (has_loss) {
    const A lse = params.z_loss != A(0) ? Epilogue<RowOperator::logsumexp>::value(params, totals.total) : A(0);
    return {params, totals.own_reference, totals.total, upstream * params.factor(of_row.weight, lse),
            upstream * params.spread};
  } else {
    const A lse = totals.total.lse;
    return {params, lse, upstream * params.factor(of_row.weight, lse), upstream * params.spread};
  }
}

/// Gradient with respect to the label's logit: from the logit itself, by a gradient that is relative to the total.
template <class Params, class A>
KOKKOS_INLINE_FUNCTION A label_gradient(const Params& params, const LogitGradient<Params, A>& of_total,
                                        const RowFactors<A>& of_row, A label_logit) {
  const A target = of_row.upstream(params) * params.kept * of_row.weight;
  return of_total.of_logit(params, label_logit, of_row.weight, target);
}

/// Stores the loss of a row, its log-sum-exp and its predicted class, or the state that an output takes in their place.
template <class Output, class Params, class A>
KOKKOS_INLINE_FUNCTION void store_row_loss(const Output& output, const Params& params,
                                           const typename Params::State& total, A label_logit, A weight,
                                           const Label& label, std::int64_t row) {
  if constexpr (Output::takes_label_states) {
    output.store_state(params, total, label_logit, label, row);
  } else {
    const A lse = Epilogue<RowOperator::logsumexp>::value(params, total);
    output.lse.store(lse, row);
    if constexpr (Params::is_extended) params.predicted.store(total.greatest.column, row);
    A value = label.is_ignored ? A(0) : Kokkos::Experimental::quiet_NaN_v<A>;
    if (label.is_class) value = row_loss(params, total, label_logit, weight, lse);
    output.loss.store(value, row);
  }
}

template <RowOperator op, class Held, class Source, class A, int V>
struct LabelledPlacement : Held {
  static constexpr bool extended          = Source::is_extended;
  static constexpr bool writes_gradient   = op != RowOperator::cross_entropy;
  static constexpr bool writes_loss       = op != RowOperator::cross_entropy_backward;
  static constexpr bool prepares_write    = true;
  static constexpr bool has_own_reference = writes_gradient && Held::has_own_reference && !extended;

  bool has_label  = false;  ///< this thread has its element
  bool is_class   = false;
  bool is_ignored = false;
  A label_logit   = 0;  ///< only if this thread has the label's element
  RowFactors<A> factors;
  const LabelFacts<A>* facts = nullptr;  ///< only if a warp of the team has collected them

  using Held::Held, Held::positions;

  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION typename Params::State reduce(const Row& row, const RowPart& part, const Params& params,
                                                       int lanes) {
    if constexpr (!writes_loss) {
      return {row.rows.lse.load(row.number), A(0)};
    } else if constexpr (extended) {
      LogitObserver<typename Params::State, A> observer{params.column_weights(), params.spread != A(0),
                                                        params.finds_class()};
      auto state     = Held::reduce(row, part, params, lanes, observer);
      state.linear   = observer.sum;
      state.greatest = observer.greatest;
      return state;
    } else {
      return Held::reduce(row, part, params, lanes);
    }
  }

  /// Loads the data that `write` needs besides the row's elements, while the row's threads wait for each other.
  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION void prepare_write(const Row& row, const RowPart& part, const Params& params) {
    const Label label = params.label_of(row.label);
    has_label         = has_column(part, label.column);
    is_class          = label.is_class;
    is_ignored        = label.is_ignored;
    if (has_label) label_logit = logit_of(params, static_cast<A>(row.load_one(label.column)));
    factors.template load<!writes_loss>(row, params, label);
    if (has_label && keeps_note()) *warp_note() = {row.label, factors};
  }

  using Facts = LabelFacts<A>;
  /// True if one warp collects the facts. Floats with edges have no register for their address.
  ///   f32 4096 x 50257 | without facts 455 us | with 457
  ///   bf16 4096 x 128256 | with facts 571 us | without 590
  ///   f32 2048 x 128256 | with facts 558 us | without 564
  static constexpr bool tells_facts = sizeof(typename Source::value_type) == 2 || Source::form != RowForm::misaligned;

  /// Loads the data of `prepare_write` for a team that has a part of the row, by the threads of one warp, one of which
  /// `writes` it: other warps read it behind a barrier. The team may have the row's edges, too.
  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION static void find_facts(const Row& row, const ColumnRange& all_packs, const ColumnRange& packs,
                                                bool has_edges, const Params& params, bool writes, Facts& facts) {
    const Label label  = params.label_of(row.label);
    const bool is_ours = packs.has(label.column) || (has_edges && !all_packs.has(label.column));
    Facts found{};
    found.label      = row.label;
    found.column     = is_ours ? label.column : -1;
    found.is_class   = label.is_class;
    found.is_ignored = label.is_ignored;
    found.factors.template load<false>(row, params, label);
    if (is_ours) found.label_logit = logit_of(params, static_cast<A>(row.load_one(label.column)));
    if (writes) facts = found;
  }

  KOKKOS_INLINE_FUNCTION void take_facts(const RowPart& part, const Facts& found) {
    facts      = &found;
    has_label  = found.column >= 0 && has_column(part, found.column);
    is_class   = found.is_class;
    is_ignored = found.is_ignored;
    factors    = found.factors;
  }

  template <class Row, class OutputRow, class Params, class Totals>
  KOKKOS_INLINE_FUNCTION void write(const Row& row, const OutputRow& output, const RowPart& part, const Params& params,
                                    const Totals& totals) {
    if constexpr (writes_gradient) {
      if (is_class) {
        write_row(row, output, part, params, logit_gradient<writes_loss>(params, totals, factors));
      } else {
        const A constant = is_ignored ? A(0) : Kokkos::Experimental::quiet_NaN_v<A>;
        Held::write_columns(row, output, part, params, [&](A, std::int64_t) { return constant; });
      }
    }
    if (has_label) {
      const LabelNote<A> note = noted(row, params);
      // Ahead of the label: in this order nvcc spills 8 bytes of 8 packs of floats, in the other order 24.
      if (facts != nullptr) label_logit = facts->label_logit;
      const Label label = params.label_of(note.label);
      if constexpr (writes_gradient) {
        if (label.is_here) store_label(output, params, totals.total, note.factors, label.column);
      }
      if constexpr (writes_loss) {
        store_row_loss(output.output, params, totals.total, label_logit, note.factors.weight, label, row.number);
      }
    }
  }

 private:
  /// True if the note stays in shared memory. A thread has no register for it besides its elements; a GPU's warp has
  /// room for one note, and all others, and those of floats, are read again.
  ///   bf16 8192 x 32000, share of copy | kept 0.95 | read again 0.93
  ///   f32 4096 x 50257, share of copy | read again 0.73 | kept 0.71
  KOKKOS_INLINE_FUNCTION bool keeps_note() const {
    return warp_width() > 1 && sizeof(typename Source::value_type) == 2 && positions.step >= warp_width() * V;
  }

  KOKKOS_INLINE_FUNCTION static LabelNote<A>* warp_note() { return warp_shared<LabelNote<A>, max_threads_per_team>(); }

  template <class Row, class Params>
  KOKKOS_INLINE_FUNCTION LabelNote<A> noted(const Row& row, const Params& params) const {
    if (facts != nullptr) return *facts;
    if (keeps_note()) return *warp_note();
    LabelNote<A> note{row.rows.labels(row.number), {}};
    note.factors.template load<!writes_loss>(row, params, params.label_of(note.label));
    return note;
  }

  /// True if this thread has that column's element.
  KOKKOS_INLINE_FUNCTION bool has_column(const RowPart& part, std::int64_t column) const {
    const std::int64_t place = column - part.packs.begin;
    if (place >= 0 && column < part.packs.end) return positions.template has<V>(place);
    return part.has_edge && part.edge == column;
  }

  /// Writes the label's element over the result of the row's factor: from the logit, and so relative to the total
  /// alone.
  template <class OutputRow, class Params>
  KOKKOS_INLINE_FUNCTION void store_label(const OutputRow& output, const Params& params,
                                          const typename Params::State& total, const RowFactors<A>& of_row,
                                          std::int64_t column) const {
    using T = typename OutputRow::value_type;
    const typename Epilogue<op>::template Row<Params, A> of_total(params, total);
    const auto gradient = logit_gradient<writes_loss>(params, of_total, of_row);
    output.store_one(static_cast<T>(label_gradient(params, gradient, of_row, label_logit)), column);
  }

  /// Writes all elements of the row, as if it had no label.
  template <class Row, class OutputRow, class Params>
  KOKKOS_INLINE_FUNCTION void write_row(const Row& row, const OutputRow& output, const RowPart& part,
                                        const Params& params, const LogitGradient<Params, A>& gradient) {
    if constexpr (extended) {
      const auto weights = params.column_weights();
      Held::write_columns(row, output, part, params, [&](A z, std::int64_t column) {
        // The last pack may extend beyond the row; weights do not.
        const bool has_weight = gradient.spread != A(0) && column < params.shard.columns;
        return gradient.of_logit(params, z, has_weight ? weights(column) : A(0));
      });
    } else {
      Held::write(row, output, part, params, gradient);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_PLACEMENT_LABELLED_HPP
