// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_SEGMENT_INDEX_HPP
#define KOKKOSNN_IMPL_GPU_SEGMENT_INDEX_HPP

#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/inputs/row_offsets.hpp>
#include <KokkosNN/impl/inputs/segments.hpp>
#include <KokkosNN/impl/math/fixed_sum.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>
#include <KokkosNN/impl/reductions/row_sum.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Rows whose elements lie in any order, each with the number of its row. Nothing is sorted: a row has a cell of memory,
// into which elements put first their largest, then their sum, both by atomics whose order does not matter: a maximum
// of integers, and sums of integers (`FixedSum`). Results are written in a last pass. All passes read values and index
// in order, so that only cells are accessed at random.

namespace KokkosNN::Impl {

/// Memory of a row of one head: one sector of a GPU's cache.
struct alignas(32) SegmentCell {
  std::uint64_t largest;  ///< `ordered_key` of the largest logit; of a gradient the bits of the largest |term|
  std::int64_t words[3];  ///< of a FixedSum; of terms that are infinite word 0 has their signs
};

/// Values of a call, by the numbers of all their elements; heads or elements are neighbours, whichever are nearer.
template <class T>
struct IndexedRows {
  RowOffsets index;
  std::int64_t rows     = 0;
  std::int64_t elements = 0;  ///< of a head
  std::int64_t heads    = 1;
  bool heads_are_inner  = false;
  Divisor inner;  ///< extent of the inner axis
  double unit        = 1;
  SegmentCell* cells = nullptr;
  bool is_alone      = false;  ///< one thread runs a pass: atomics would cost it most of its time
  Values<const T> x;           ///< or y, of a gradient
  Values<const T> dy;
  Values<const T> lse;
  Values<const T> dlse;
  Values<T> out;
};

/// Element of a head.
struct IndexedElement {
  std::int64_t element;
  std::int64_t head;
};

/// Pass over all elements: a thread has `steps` of them, on a GPU those of every 32nd number, on a host neighbours. It
/// keeps what the Pass has of a row as long as its elements are of one. A host asks for cells ahead of their use.
template <class Pass, int lanes, int steps>
struct PassOverElements {
  static constexpr int steps_ahead = 16;

  Pass pass;

  KOKKOS_FUNCTION std::int64_t items() const {
    const std::int64_t numbers = pass.rows.elements * pass.rows.heads;
    return (numbers + lanes * steps - 1) / (lanes * steps) * lanes;
  }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const auto& rows           = pass.rows;
    const std::int64_t numbers = rows.elements * rows.heads;
    const std::int64_t first   = item / lanes * (lanes * steps) + item % lanes;
    std::int64_t cell          = -1;
    auto row                   = pass.no_row();
    for (int s = 0; s < steps; ++s) {
      const std::int64_t number = first + s * lanes;
      if (number >= numbers) break;
      KOKKOS_IF_ON_HOST((if (number + steps_ahead < numbers) ask_for(at_number(number + steps_ahead));))
      const Place place = at_number(number);
      if (place.row < 0) continue;
      const std::int64_t next = place.row * rows.heads + place.at.head;
      if (next != cell) {
        if (cell >= 0) pass.leave(cell, row);
        row  = pass.enter(next, place.row, place.at.head);
        cell = next;
      }
      pass.take(row, place.at);
    }
    if (cell >= 0) pass.leave(cell, row);
  }

 private:
  struct Place {
    IndexedElement at;
    std::int64_t row;  ///< -1 of an element in no row
  };

  KOKKOS_INLINE_FUNCTION Place at_number(std::int64_t number) const {
    const auto& rows = pass.rows;
    IndexedElement at{number, 0};
    if (rows.heads > 1) {
      const std::int64_t outer = rows.inner.quotient(number);
      const std::int64_t inner = number - outer * rows.inner.value;
      at                       = rows.heads_are_inner ? IndexedElement{outer, inner} : IndexedElement{inner, outer};
    }
    const std::int64_t row = rows.index[at.element];
    return {at, row < rows.rows ? row : -1};
  }

  void ask_for(const Place& place) const {
    if (place.row < 0 || pass.rows.cells == nullptr) return;
    prefetch_line(pass.rows.cells + place.row * pass.rows.heads + place.at.head);
  }
};

/// Makes cells empty.
struct ClearCells {
  SegmentCell* cells;
  std::int64_t count;

  KOKKOS_FUNCTION std::int64_t items() const { return count; }
  KOKKOS_FUNCTION void operator()(std::int64_t i) const { cells[i] = {0, {0, 0, 0}}; }
};

/// Raises a cell's largest key.
KOKKOS_INLINE_FUNCTION void raise_largest(SegmentCell& cell, std::uint64_t key, bool is_alone) {
  if (is_alone) {
    if (cell.largest < key) cell.largest = key;
  } else if (Kokkos::atomic_load(&cell.largest) < key) {
    Kokkos::atomic_max(&cell.largest, key);
  }
}

template <int count>
KOKKOS_INLINE_FUNCTION void add_words(SegmentCell& cell, const FixedSum<count>& sum, bool is_alone) {
  for (int w = 0; w < count; ++w) {
    if (is_alone) {
      cell.words[w] += sum.words[w];
    } else if (sum.words[w] != 0) {
      Kokkos::atomic_add(&cell.words[w], sum.words[w]);
    }
  }
}

template <int count>
KOKKOS_INLINE_FUNCTION FixedSum<count> sum_in(const SegmentCell& cell) {
  FixedSum<count> sum;
  for (int w = 0; w < count; ++w) sum.words[w] = cell.words[w];
  return sum;
}

/// Words of sums of A: two are as good as a float's exponentials, three as a double's.
template <class A>
using FixedSumOf = FixedSum<sizeof(A) == 4 ? 2 : 3>;

/// Logits of rows as the forward passes read them.
template <class Params, class T>
struct IndexedLogits {
  using A = typename Params::accumulator;

  Params params;
  IndexedRows<T> rows;

  KOKKOS_INLINE_FUNCTION A logit(const IndexedElement& at) const {
    return params.sign * static_cast<A>(rows.x.of_head(at.head)[at.element]);
  }
};

/// First pass: the largest logit of each row.
template <class Params, class T>
struct LargestLogits : IndexedLogits<Params, T> {
  KOKKOS_INLINE_FUNCTION std::uint64_t no_row() const { return 0; }
  KOKKOS_INLINE_FUNCTION std::uint64_t enter(std::int64_t, std::int64_t, std::int64_t) const { return 0; }
  KOKKOS_INLINE_FUNCTION void take(std::uint64_t& largest, const IndexedElement& at) const {
    const std::uint64_t key = ordered_key(this->logit(at));
    if (key > largest) largest = key;
  }
  KOKKOS_INLINE_FUNCTION void leave(std::int64_t cell, std::uint64_t largest) const {
    raise_largest(this->rows.cells[cell], largest, this->rows.is_alone);
  }
};

/// Second pass: the sum of each row's exponentials, relative to the power of two at its largest.
template <class Params, class T>
struct SumsOfExponentials : IndexedLogits<Params, T> {
  using A = typename Params::accumulator;

  struct Row {
    ExpReference<A> reference;
    bool is_finite;
    FixedSumOf<A> sum;
  };

  KOKKOS_INLINE_FUNCTION Row no_row() const { return {{}, false, {}}; }
  KOKKOS_INLINE_FUNCTION Row enter(std::int64_t cell, std::int64_t, std::int64_t) const {
    const A largest = number_of_key<A>(this->rows.cells[cell].largest);
    if (!Kokkos::isfinite(largest)) return no_row();
    return {this->params.exp.at(this->params.exp.reference_of(largest)), true, {}};
  }
  KOKKOS_INLINE_FUNCTION void take(Row& row, const IndexedElement& at) const {
    if (row.is_finite) row.sum.add(this->params.exp(this->logit(at), row.reference), this->rows.unit);
  }
  KOKKOS_INLINE_FUNCTION void leave(std::int64_t cell, const Row& row) const {
    add_words(this->rows.cells[cell], row.sum, this->rows.is_alone);
  }
};

/// State of a row, as reductions of rows in one piece leave it. A sum of NaN stands for a row with NaN or +inf, but a
/// log-sum-exp of the latter is infinite.
template <class Params>
KOKKOS_INLINE_FUNCTION typename Params::State state_of_cell(const Params& params, const SegmentCell& cell, double unit,
                                                            bool is_lse) {
  using A         = typename Params::accumulator;
  using W         = typename Params::wide_sum;
  constexpr A inf = Kokkos::Experimental::infinity_v<A>;
  const A largest = number_of_key<A>(cell.largest);
  if (largest == -inf) return {-inf, W{A(0)}};
  if (largest == inf && is_lse) return {inf, W{A(1)}};
  if (!Kokkos::isfinite(largest)) return {-inf, W{Kokkos::Experimental::quiet_NaN_v<A>}};
  return {params.exp.reference_of(largest), sum_in<sizeof(A) == 4 ? 2 : 3>(cell).template value<W>(unit)};
}

/// Last pass of softmax and log_softmax.
template <RowOperator op, class Params, class T>
struct WriteIndexed : IndexedLogits<Params, T> {
  using A   = typename Params::accumulator;
  using Row = typename Epilogue<op>::template Row<Params, A>;

  KOKKOS_INLINE_FUNCTION Row no_row() const { return Row{}; }
  KOKKOS_INLINE_FUNCTION Row enter(std::int64_t cell, std::int64_t, std::int64_t) const {
    return short_row_epilogue<Row>(this->params,
                                   state_of_cell(this->params, this->rows.cells[cell], this->rows.unit, false));
  }
  KOKKOS_INLINE_FUNCTION void take(const Row& row, const IndexedElement& at) const {
    this->rows.out.of_head(at.head)[at.element] = static_cast<T>(row.from_input(this->params, this->logit(at)));
  }
  KOKKOS_INLINE_FUNCTION void leave(std::int64_t, const Row&) const {}
};

/// Last pass of a log-sum-exp: a value a cell.
template <class Params, class T>
struct WriteLogSumExps {
  Params params;
  IndexedRows<T> rows;

  KOKKOS_FUNCTION std::int64_t items() const { return rows.rows * rows.heads; }
  KOKKOS_FUNCTION void operator()(std::int64_t i) const {
    const std::int64_t row = i / rows.heads;
    const auto state       = state_of_cell(params, rows.cells[i], rows.unit, true);
    rows.out.of_head(i - row * rows.heads)[row] =
        static_cast<T>(Epilogue<RowOperator::logsumexp>::value(params, state));
  }
};

/// Terms of a gradient's sums: products y dy, or dy alone.
template <class T>
struct IndexedTerms {
  IndexedRows<T> rows;
  bool are_products;

  /// Both words of a term; the second is 0 but of products of doubles.
  KOKKOS_INLINE_FUNCTION DoubleDouble<double> term(const IndexedElement& at) const {
    const auto dy = static_cast<double>(rows.dy.of_head(at.head)[at.element]);
    if (!are_products) return {dy, 0};
    const auto y         = static_cast<double>(rows.x.of_head(at.head)[at.element]);
    const double product = y * dy;
    if constexpr (std::is_same_v<T, double>) {
      return {product, Kokkos::isfinite(product) ? Kokkos::fma(y, dy, -product) : 0.0};
    } else {
      return {product, 0};
    }
  }
};

inline constexpr std::uint64_t bits_of_infinity = 0x7ff0000000000000;

/// First pass of a gradient: the largest magnitude of each row's terms.
template <class T>
struct LargestTerms : IndexedTerms<T> {
  KOKKOS_INLINE_FUNCTION std::uint64_t no_row() const { return 0; }
  KOKKOS_INLINE_FUNCTION std::uint64_t enter(std::int64_t, std::int64_t, std::int64_t) const { return 0; }
  KOKKOS_INLINE_FUNCTION void take(std::uint64_t& largest, const IndexedElement& at) const {
    const auto bits = Kokkos::bit_cast<std::uint64_t>(Kokkos::abs(this->term(at).high));
    if (bits > largest) largest = bits;
  }
  KOKKOS_INLINE_FUNCTION void leave(std::int64_t cell, std::uint64_t largest) const {
    raise_largest(this->rows.cells[cell], largest, this->rows.is_alone);
  }
};

/// Two powers of two whose product brings terms up to a largest one below 1, each a normal number.
struct ToUnity {
  double first;
  double second;

  KOKKOS_INLINE_FUNCTION static ToUnity of(std::uint64_t largest, bool inverse) {
    const int exponent = 1022 - static_cast<int>(largest >> 52);
    const int half     = exponent / 2;
    const int sign     = inverse ? -1 : 1;
    return {normal_power_of_two(sign * half), normal_power_of_two(sign * (exponent - half))};
  }
};

/// Second pass of a gradient: the sum of each row's terms.
template <class T>
struct SumsOfTerms : IndexedTerms<T> {
  struct Row {
    bool is_finite;
    ToUnity scale;
    FixedSumOf<accumulator_t<T>> sum;
    std::int64_t infinities;
  };

  KOKKOS_INLINE_FUNCTION Row no_row() const { return {false, {}, {}, 0}; }
  KOKKOS_INLINE_FUNCTION Row enter(std::int64_t cell, std::int64_t, std::int64_t) const {
    const std::uint64_t largest = this->rows.cells[cell].largest;
    if (largest >= bits_of_infinity) return no_row();
    return {true, ToUnity::of(largest, false), {}, 0};
  }
  KOKKOS_INLINE_FUNCTION void take(Row& row, const IndexedElement& at) const {
    const DoubleDouble<double> term = this->term(at);
    if (row.is_finite) {
      row.sum.add(term.high * row.scale.first * row.scale.second, this->rows.unit);
      if constexpr (std::is_same_v<T, double>) {
        row.sum.add(term.low * row.scale.first * row.scale.second, this->rows.unit);
      }
    } else if (Kokkos::isinf(term.high)) {
      row.infinities |= term.high > 0 ? 1 : 2;
    }
  }
  KOKKOS_INLINE_FUNCTION void leave(std::int64_t cell, const Row& row) const {
    add_words(this->rows.cells[cell], row.sum, this->rows.is_alone);
    if (row.infinities != 0) Kokkos::atomic_or(&this->rows.cells[cell].words[0], row.infinities);
  }
};

/// Sum of a row's terms.
template <class Params>
KOKKOS_INLINE_FUNCTION typename Params::State sum_of_cell(const SegmentCell& cell, double unit) {
  using A             = typename Params::accumulator;
  using W             = typename Params::wide_sum;
  constexpr A inf     = Kokkos::Experimental::infinity_v<A>;
  constexpr A nan     = Kokkos::Experimental::quiet_NaN_v<A>;
  const auto in_words = sum_in<sizeof(A) == 4 ? 2 : 3>(cell);
  const ToUnity scale = ToUnity::of(cell.largest, true);
  W sum;
  if (cell.largest >= bits_of_infinity) {
    const bool has_one_sign = cell.largest == bits_of_infinity && cell.words[0] != 3;
    sum                     = W{has_one_sign ? (cell.words[0] == 1 ? inf : -inf) : nan};
  } else if constexpr (std::is_floating_point_v<W>) {
    sum = static_cast<W>(in_words.template value<double>(unit) * scale.first * scale.second);
  } else {
    sum = in_words.template value<W>(unit) * scale.first * scale.second;
  }
  if constexpr (!std::is_floating_point_v<W>) {
    if (!Kokkos::isfinite(sum.high)) sum.low = nan;  // as a sum of infinities has it: `words_of`
  }
  return {sum};
}

/// Last pass of the gradients of softmax and log_softmax.
template <RowOperator op, class Params, class T>
struct WriteIndexedGradient {
  using A   = typename Params::accumulator;
  using Row = typename Epilogue<op>::template Row<Params, A>;

  Params params;
  IndexedRows<T> rows;

  KOKKOS_INLINE_FUNCTION Row no_row() const { return Row{}; }
  KOKKOS_INLINE_FUNCTION Row enter(std::int64_t cell, std::int64_t, std::int64_t) const {
    return Row(params, sum_of_cell<Params>(rows.cells[cell], rows.unit));
  }
  KOKKOS_INLINE_FUNCTION void take(const Row& row, const IndexedElement& at) const {
    const A y                             = static_cast<A>(rows.x.of_head(at.head)[at.element]);
    const A dy                            = static_cast<A>(rows.dy.of_head(at.head)[at.element]);
    rows.out.of_head(at.head)[at.element] = static_cast<T>(row(params, y, dy));
  }
  KOKKOS_INLINE_FUNCTION void leave(std::int64_t, const Row&) const {}
};

/// Only pass of a log-sum-exp's gradient.
template <class Params, class T>
struct WriteLseGradient {
  using A   = typename Params::accumulator;
  using Row = typename Epilogue<RowOperator::logsumexp_backward>::template Row<Params, A>;

  Params params;
  IndexedRows<T> rows;

  KOKKOS_INLINE_FUNCTION Row no_row() const { return Row{}; }
  KOKKOS_INLINE_FUNCTION Row enter(std::int64_t, std::int64_t r, std::int64_t head) const {
    return Row(params,
               RowScalars<A>{static_cast<A>(rows.lse.of_head(head)[r]), static_cast<A>(rows.dlse.of_head(head)[r])});
  }
  KOKKOS_INLINE_FUNCTION void take(const Row& row, const IndexedElement& at) const {
    const A x                             = static_cast<A>(rows.x.of_head(at.head)[at.element]);
    rows.out.of_head(at.head)[at.element] = static_cast<T>(row(params, x));
  }
  KOKKOS_INLINE_FUNCTION void leave(std::int64_t, const Row&) const {}
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_SEGMENT_INDEX_HPP
