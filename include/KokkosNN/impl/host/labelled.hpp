// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_LABELLED_HPP
#define KOKKOSNN_IMPL_HOST_LABELLED_HPP

#include <KokkosNN/impl/gpu/device/row_part.hpp>
#include <KokkosNN/impl/gpu/placement/labelled.hpp>
#include <KokkosNN/impl/host/rows.hpp>
#include <KokkosNN/impl/host/sums.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/operators/cross_entropy.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

// Placement of the cross entropies in HostRows: a placement of softmax or log-sum-exp, Held, whose rows have a label.
// The thread that has the label's element reads its logit ahead of all that is written to the row, and makes the row's
// loss and that element's gradient of it. The loops know the element's place and put its gradient into the vector that
// has it, so that all of a line is stored at once.

namespace KokkosNN::Impl {

/// Weights of n columns from c on.
template <class A>
KOKKOS_FORCEINLINE_FUNCTION Vector<A> load_weights(const ClassWeights<A>& weights, std::int64_t c, int n) {
  if (weights.data == nullptr) return splat<Vector<A>>(A(1));
  if (weights.stride == 1) return load_up_to(weights.data + c, n);
  A each[simd_width<A>] = {};
  for (int l = 0; l < n; ++l) each[l] = weights(c + l);
  return load_vector(each);
}

/// Sum of w_c z_c over `count` logits, the first of which is of column `begin`.
template <class A>
KOKKOS_INLINE_FUNCTION double sum_of_logits(const A* z, int count, const ClassWeights<A>& weights, std::int64_t begin) {
  constexpr int lanes    = simd_width<A>;
  Vector<double> sums[2] = {};
  for (int i = 0; i < count; i += lanes) {
    const int n        = std::min(count - i, lanes);
    const Vector<A> wz = load_weights(weights, begin + i, n) * load_up_to(z + i, n);
    if constexpr (std::is_same_v<A, double>) {
      sums[i / lanes % 2] += wz;
    } else {
      const InDouble in_double(wz);
      sums[0] += in_double.half[0];
      if constexpr (lanes > 1) sums[1] += in_double.half[1];
    }
  }
  return fold_lanes(sums[0] + sums[1], JoinSums{});
}

/// The first of the greatest logits of `count`, which are of columns from `begin` on; `max` is the largest number.
template <class A>
KOKKOS_INLINE_FUNCTION GreatestLogit<A> greatest_of(const A* z, int count, A max, std::int64_t begin) {
  using T              = Vector<A>;
  constexpr int lanes  = simd_width<A>;
  constexpr A infinity = Kokkos::Experimental::infinity_v<A>;
  const T one = splat<T>(A(1)), zero = T{};
  T nans = zero;
  for (int i = 0; i < count; i += lanes) {
    const T x = load_up_to(z + i, std::min(count - i, lanes));
    nans      = x == x ? nans : one;
  }
  const bool has_nan = is_any_above(nans, zero);
  for (int i = 0; i < count; i += lanes) {
    const int n    = std::min(count - i, lanes);
    const T x      = load_up_to(z + i, n, -infinity);
    const T is_hit = x < splat<T>(max) ? zero : one;  // or a NaN
    if (!is_any_above(is_hit, zero)) continue;
    for (int l = 0; l < n; ++l) {
      const A value = z[i + l];
      if (has_nan ? value != value : value == max) return {value, begin + i + l};
    }
  }
  return {};
}

/// A vector with another number in lane l.
template <class T, class A>
KOKKOS_FORCEINLINE_FUNCTION T with_lane(const T& v, int l, A value) {
  A each[simd_width<A>];
  store_vector(each, v);
  each[l] = value;
  return load_vector(each);
}

template <RowOperator op, class Held, class Params>
struct HostLabelled : Held {
  using A = typename Params::accumulator;
  using T = Vector<A>;

  static constexpr bool extended          = Params::is_extended;
  static constexpr bool writes_loss       = op != RowOperator::cross_entropy_backward;
  static constexpr bool writes_rows       = op != RowOperator::cross_entropy;
  static constexpr bool has_label         = true;
  static constexpr bool has_own_reference = Held::keeps_exponentials;
  static constexpr bool keeps_rows        = writes_loss && writes_rows && Held::keeps_rows;
  static constexpr bool uses_memory       = writes_loss;

  /// A row's label, as a thread knows it.
  struct Facts {
    Label label;
    bool is_mine;  ///< the thread has the label's column, or the first one of a row that lacks that
    A logit;       ///< only if the thread has the label's element
    RowFactors<A> factors;

    KOKKOS_FORCEINLINE_FUNCTION bool has_element() const { return is_mine && label.is_here; }
  };

  /// Gradient of a row, or of a piece of one.
  struct RowEpilogue {
    LogitGradient<Params, A> gradient;
    A of_label;           ///< gradient of the label's element
    std::int64_t column;  ///< that element's; -1 if the thread does not have it
    bool is_class;
    A of_others;  ///< gradient of all elements of a row that has no class
  };

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION static Facts facts_of(const Row& row, const ColumnRange& columns, const Params& params) {
    Facts facts{params.label_of(row.label), false, A(0), {}};
    facts.is_mine = columns.has(facts.label.column);
    facts.factors.template load<!writes_loss>(row, params, facts.label);
    if (facts.has_element()) facts.logit = logit_of(params, static_cast<A>(row.load_one(facts.label.column)));
    return facts;
  }

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION A load(const Row& row, const Piece& piece, A* held, const Params& params) const {
    if constexpr (!writes_loss) return A(0);
    return Held::load(row, piece, held, params);
  }

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION typename Params::State reduce(const Row& row, const Piece& piece, A* held,
                                                            const Params& params, A max, NextPiece<A>& next) const {
    if constexpr (!writes_loss) {
      return {row.rows.lse.load(row.number), A(0)};
    } else if constexpr (extended) {
      using Linear        = typename Params::State::Linear;
      const A* const from = Held::loaded(row, piece, held, params);
      auto state          = Held::reduce(row, piece, held, params, max, next);
      if (params.spread != A(0)) {
        state.linear = static_cast<Linear>(sum_of_logits(from, piece.count, params.column_weights(), piece.begin));
      }
      if (params.finds_class()) state.greatest = greatest_of(from, piece.count, max, piece.begin);
      return state;
    } else {
      return Held::reduce(row, piece, held, params, max, next);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION static RowEpilogue epilogue_of(const Params& params, const typename Params::State& own,
                                                             const typename Params::State& total, const Facts& facts) {
    using Totals = typename Epilogue<op>::template Row<Params, A>;
    RowEpilogue row;
    row.gradient = logit_gradient<writes_loss>(params, make_epilogue<Totals>(params, own, total), facts.factors);
    row.is_class = facts.label.is_class;
    row.column   = -1;
    if (facts.has_element()) {
      auto of_total = row.gradient;
      if constexpr (has_own_reference) {
        if (own.reference != total.reference) {
          of_total = logit_gradient<writes_loss>(params, Totals(params, total), facts.factors);
        }
      }
      row.column   = facts.label.column;
      row.of_label = label_gradient(params, of_total, facts.factors, facts.logit);
    }
    row.of_others = facts.label.is_ignored ? A(0) : Kokkos::Experimental::quiet_NaN_v<A>;
    return row;
  }

  template <class Output>
  KOKKOS_FORCEINLINE_FUNCTION static void store_values(const Output& output, const Params& params,
                                                       const typename Params::State& total, const Facts& facts,
                                                       std::int64_t row) {
    if constexpr (writes_loss) {
      store_row_loss(output, params, total, facts.logit, facts.factors.weight, facts.label, row);
    }
  }

  template <class Row, class OutputRow, class Writer>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Row& row, const OutputRow& output, const Piece& piece, A* held,
                                         const Params params, const RowEpilogue epilogue, Writer& writer) const {
    if (!epilogue.is_class) {
      const T constant = splat<T>(epilogue.of_others);
      return Held::write_values(output, piece, writer, [&](int, int) KOKKOSNN_IMPL_INLINED { return constant; });
    }
    if constexpr (!writes_loss && VectorsOf<Row, A>) {
      if (row.stride == 1 && Held::template stays<A>(params)) {
        return write_gradient(output, piece, params, epilogue, writer, row.base + piece.begin);
      }
    }
    write_gradient(output, piece, params, epilogue, writer, Held::kept_or_loaded(row, piece, held, params));
  }

 private:
  /// Writes a piece's gradient from its kept exponentials, or its logits.
  template <class OutputRow, class Writer, class X>
  KOKKOS_FORCEINLINE_FUNCTION static void write_gradient(const OutputRow& output, const Piece& piece,
                                                         const Params& params, const RowEpilogue& epilogue,
                                                         Writer& writer, const X* from) {
    const std::int64_t at = epilogue.column - piece.begin;
    const int place       = at >= 0 && at < piece.count ? static_cast<int>(at) : -1;
    const auto weights    = params.column_weights();
    Held::write_values(output, piece, writer, [&](int i, int n) KOKKOSNN_IMPL_INLINED {
      T dz = gradient_of(params, epilogue.gradient, load_up_to(from + i, n), weights, piece.begin + i, n);
      if (static_cast<unsigned>(place - i) < static_cast<unsigned>(n)) [[unlikely]] {
        dz = with_lane(dz, place - i, epilogue.of_label);
      }
      return dz;
    });
  }

  KOKKOS_FORCEINLINE_FUNCTION static T gradient_of(const Params& params, const LogitGradient<Params, A>& gradient, T x,
                                                   const ClassWeights<A>& weights, std::int64_t column, int n) {
    if constexpr (extended) {
      const T w = gradient.spread != A(0) ? load_weights(weights, column, n) : T{};
      return gradient.of_logit(params, x, w);
    } else if constexpr (Held::keeps_exponentials) {
      return gradient(params, x);
    } else {
      return gradient.from_input(params, x);
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_LABELLED_HPP
