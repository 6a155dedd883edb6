// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_SEGMENTED_ROWS_HPP
#define KOKKOSNN_IMPL_HOST_SEGMENTED_ROWS_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/host/pairs.hpp>
#include <KokkosNN/impl/host/row_writer.hpp>
#include <KokkosNN/impl/host/rows.hpp>
#include <KokkosNN/impl/host/sums.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/inputs/row_offsets.hpp>
#include <KokkosNN/impl/inputs/segments.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>
#include <KokkosNN/impl/tuned_shapes.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

// Operations of a host on ragged rows: the forward operators, and the gradients.
//
//   do_run        processes neighbouring rows, each up to `longest_in_run` elements, together up to `most_in_run`
//   do_row        processes a longer row, by the pieces and loops of HostRows
//   reduce_part   returns the state of a part of a row that several teams share
//   write_part    writes that part, which is read again
//
// Rows of a run are neighbours in memory, and most of them have few vectors. So loops over the run's elements convert,
// compute exponentials and write, whatever the rows are, and loops over rows between those sum elements and compute
// results. A vector that goes beyond its row's end is cut by a mask where elements are summed; where results are
// computed it reaches into the next row, whose own results come later.
// Exponentials of a run are relative to one reference, so far below the run's maximum that a row may be the 2^60th part
// of another: its results are right down to the least normal number. A row below that, or one of -inf alone, has its
// exponentials computed again (`redo_row`), as have all rows if the run has +inf, or logits too large for a power of
// two. Exponentials differ by powers of two then, so that a row's results hardly ever depend on its neighbours.

namespace KokkosNN::Impl {

/// Neighbouring rows that are processed at a time.
struct RowRun {
  static constexpr int most_rows  = host_run_rows;
  static constexpr int most_lanes = simd_width<float>;

  std::int64_t row;    ///< number of the first one
  std::int64_t begin;  ///< its first element
  int rows = 0;
  int at[most_rows + 1 + most_lanes];  ///< begin of each row from `begin` on, and the end, some times over

  /// Takes rows from number `first` up to `last`, as many as have `most` elements and do not go beyond element
  /// `farthest`. It stops before a row of more than `longest` elements, and where offsets do not ascend.
  RowRun(const RowOffsets& offsets, std::int64_t first, std::int64_t last, std::int64_t farthest, int most, int longest)
      : row(first), begin(offsets[first]) {
    const auto count           = static_cast<int>(std::min<std::int64_t>(most_rows, last - first));
    const std::int64_t run_end = farthest - begin > most ? begin + most : farthest;
    if (offsets.stride == 1 && offsets.bytes == 4 && offsets.is_signed) {
      take(static_cast<const std::int32_t*>(offsets.data) + first + 1, count, run_end, longest);
    } else if (offsets.stride == 1 && offsets.bytes == 8) {
      take(static_cast<const std::int64_t*>(offsets.data) + first + 1, count, run_end, longest);
    } else {
      std::int64_t ends[most_rows];
      for (int r = 0; r < count; ++r) ends[r] = offsets[first + 1 + r];
      take(ends, count, run_end, longest);
    }
    for (int l = 1; l <= most_lanes; ++l) at[rows + l] = at[rows];
  }

  int elements() const { return at[rows]; }
  int length(int r) const { return at[r + 1] - at[r]; }
  int longest() const {
    int most = 0;
    for (int r = 0; r < rows; ++r) most = std::max(most, length(r));
    return most;
  }

 private:
  /// Offsets are any numbers: none is subtracted from before it is known to lie between begin and run_end.
  template <class Offset>
  KOKKOS_FORCEINLINE_FUNCTION void take(const Offset* ends, int count, std::int64_t run_end, int longest) {
    at[0]            = 0;
    std::int64_t end = begin;
    for (; rows < count; ++rows) {
      const std::int64_t next = static_cast<std::int64_t>(ends[rows]);
      if (next < end || next > run_end || next - end > longest) break;
      end          = next;
      at[rows + 1] = static_cast<int>(next - begin);
    }
  }
};

/// First n lanes of v, and zeros; if n is a constant, all.
template <class T, class N>
KOKKOS_FORCEINLINE_FUNCTION T lanes_of_row(const T& v, N n) {
  if constexpr (std::is_same_v<N, int>) return first_lanes(v, n);
  return v;
}

/// Element of T as vectors of A are loaded from: T itself, or A if a vector of T is another one.
template <class T, class A>
using VectorElement =
    std::conditional_t<std::is_same_v<accumulator_t<std::remove_const_t<T>>, A>, std::remove_const_t<T>, A>;

/// Elements of a run in one piece: in their place, or in `copy`.
template <class T, class X>
KOKKOS_FORCEINLINE_FUNCTION const X* in_one_piece(const Values<const T>& values, std::int64_t begin, int count,
                                                  X* copy) {
  if constexpr (std::is_same_v<T, X>) {
    if (values.stride == 1) return values.data + begin;
  }
  const T* const from = values.data + begin * values.stride;
  for (int i = 0; i < count; ++i) copy[i] = static_cast<X>(from[i * values.stride]);
  return copy;
}

/// Writes a run's results.
template <class T, class A, class Writer>
KOKKOS_FORCEINLINE_FUNCTION void write_run(const Values<T>& values, std::int64_t begin, int count, const A* results,
                                           Writer& writer) {
  if constexpr (std::is_same_v<VectorElement<T, A>, T>) {
    if (values.stride == 1) {
      return writer.write(values.data + begin, count,
                          [&](int i, int) KOKKOSNN_IMPL_INLINED { return load_vector(results + i); });
    }
  }
  T* const to = values.data + begin * values.stride;
  for (int i = 0; i < count; ++i) to[i * values.stride] = static_cast<T>(results[i]);
}

/// Vectors of each row that are processed at a time: a loop over few of them is mispredicted once a row.
template <int vectors_of_turn, bool has_loop, bool has_long_rows = false>
struct RunShape {
  static constexpr int vectors    = vectors_of_turn;
  static constexpr bool loops     = has_loop;       ///< some rows have more vectors
  static constexpr bool long_rows = has_long_rows;  ///< most rows have many vectors
};

/// Calls f with the shape of a run. Where no row has more vectors than one turn has, rows have no loop.
template <class F>
KOKKOS_FORCEINLINE_FUNCTION void with_shape(int lanes, const RowRun& run, const F& f) {
  const int longest = run.longest();
  if (longest <= lanes) return f(RunShape<1, false>{});
  if (longest <= 2 * lanes) return f(RunShape<2, false>{});
  if (longest <= 4 * lanes) return f(RunShape<4, false>{});
  if (run.elements() <= run.rows * host_run_vectors * lanes) return f(RunShape<4, true>{});
  f(RunShape<4, true, true>{});
}

/// Most vectors that are processed at a time; a loop may go beyond the end by as many.
inline constexpr int vectors_at_a_time = 4;

/// Number of vectors of A whose elements of X share a cache line.
template <class X, class A>
inline constexpr int vectors_of_line = std::max(1, int(host_line / (simd_width<A> * sizeof(X))));

/// Memory for a run: sums of rows, and the words of their epilogues.
template <class Params>
struct RunMemory {
  using A                       = typename Params::accumulator;
  using W                       = typename Params::wide_sum;
  static constexpr int elements = host_run_bytes / int(sizeof(A));
  static constexpr int lanes    = simd_width<A>;
  static constexpr int padded   = elements + vectors_at_a_time * lanes;
  static constexpr int rows     = RowRun::most_rows + lanes;

  alignas(vector_bytes) W sums[rows];
  alignas(vector_bytes) A high[rows];
  alignas(vector_bytes) A low[rows];

  KOKKOS_FORCEINLINE_FUNCTION DoubleDouble<A> words(int r) const { return {high[r], low[r]}; }
  KOKKOS_FORCEINLINE_FUNCTION void set_words(int r, const DoubleDouble<A>& words) {
    high[r] = words.high;
    low[r]  = words.low;
  }
};

/// Calls f(i, n, v) for each vector of a row: at i, the v-th one of a turn. The row has n lanes of it, all or an int,
/// which is 0 or less if there are none.
template <class Shape, int lanes, class F>
KOKKOS_FORCEINLINE_FUNCTION void for_vectors(int begin, int end, const F& f) {
  constexpr int last = Shape::long_rows ? 2 : Shape::vectors;
  int i              = begin;
  if constexpr (Shape::long_rows) {
    for (; i + Shape::vectors * lanes <= end; i += Shape::vectors * lanes) {
      KOKKOSNN_IMPL_UNROLL
      for (int v = 0; v < Shape::vectors; ++v) f(i + v * lanes, std::integral_constant<int, lanes>{}, v);
    }
  }
  do {
    KOKKOSNN_IMPL_UNROLL
    for (int v = 0; v < last; ++v) f(i + v * lanes, end - i - v * lanes, v);
    i += last * lanes;
  } while (Shape::loops && i < end);
}

/// Sums a run's rows: add(terms, i, n, v) adds n lanes, as for_vectors says it. The order of a row's additions does not
/// depend on the shape.
template <class Shape, class Params, class Terms, class Add>
KOKKOS_FORCEINLINE_FUNCTION void sum_rows(const RowRun& run, const Add& add, typename Params::wide_sum* sums) {
  constexpr int lanes   = simd_width<typename Params::accumulator>;
  constexpr int at_once = HostRowSums<Params>::rows;
  for (int first = 0; first < run.rows; first += at_once) {
    HostRowSums<Params> joined;
    KOKKOSNN_IMPL_UNROLL
    for (int l = 0; l < at_once; ++l) {
      Terms terms;
      for_vectors<Shape, lanes>(run.at[first + l], run.at[first + l + 1],
                                [&](int i, auto n, int v) KOKKOSNN_IMPL_INLINED { add(terms, i, n, v); });
      joined.set(l, terms);
    }
    joined.join_words(sums + first);
  }
}

/// Computes the results of a run's rows: row(r) is row r's function of the place of a vector. A vector that goes beyond
/// its row's end is overwritten by the next row.
template <class Shape, class A, class RowOf>
KOKKOS_FORCEINLINE_FUNCTION void compute_rows(const RowRun& run, A* results, const RowOf& row) {
  for (int r = 0; r < run.rows; ++r) {
    const auto value = row(r);
    for_vectors<Shape, simd_width<A>>(
        run.at[r], run.at[r + 1], [&](int i, auto, int) KOKKOSNN_IMPL_INLINED { store_vector(results + i, value(i)); });
  }
}

/// Whole rows, and parts of rows, that are longer than a run, by the pieces of a placement of HostRows.
template <class Placement, class RowEpilogue, class Params, class Row>
struct LongRow {
  using A                     = typename Params::accumulator;
  using State                 = typename Params::State;
  static constexpr int length = host_piece(sizeof(A));

  const Params& params;
  Row input;
  std::int64_t cols;
  A* held;  ///< room for the row, or for a piece of a row that is not kept

  int pieces() const { return static_cast<int>((cols + length - 1) / length); }

  State reduce(int p) const {
    NextPiece<A> next{};
    next.ahead     = ahead_of(p);
    const A loaded = Placement().load(input, piece(p), held_at(p), params);
    return Placement().reduce(input, piece(p), held_at(p), params, loaded, next);
  }

  template <class Output, class Writer>
  void write(int p, const Output& output, const State& own, const State& total, Writer& writer) const {
    const auto epilogue = make_epilogue<RowEpilogue>(params, Placement::has_own_reference ? own : total, total);
    Placement().write(input, output, piece(p), held_at(p), params, epilogue, writer);
  }

 private:
  Piece piece(int p) const {
    const std::int64_t begin = std::int64_t(p) * length;
    return {begin, static_cast<int>(std::min<std::int64_t>(length, cols - begin))};
  }
  A* held_at(int p) const { return Placement::keeps_rows ? held + p * length : held; }

  Ahead ahead_of(int p) const {
    if constexpr (requires { input.base; }) {
      if (input.stride == 1) return {input.base + std::int64_t(p + 1) * length, int(sizeof(*input.base))};
    }
    return {held, int(sizeof(A))};
  }
};

/// Rows that are longer than a run, and parts of rows, of an Operation. It has an input(begin), an output(begin), and
/// placements: `Kept` of whole rows, `Read` of parts, which are read twice.
template <class Operation, class Params>
struct LongRowsOnHost {
  using A     = typename Params::accumulator;
  using State = typename Params::State;

  /// Processes a whole row, which `kept` has room for.
  template <class Writer>
  void do_row(std::int64_t begin, std::int64_t end, std::int64_t row, A* kept, Writer& writer) const {
    const auto whole = long_row<typename Operation::Kept>(begin, end, kept);
    State states[2 * most_host_chunk / host_piece(sizeof(A))];
    State total = states[0] = whole.reduce(0);
    for (int p = 1; p < whole.pieces(); ++p) {
      states[p] = whole.reduce(p);
      total     = merge_two(self().params, total, states[p]);
    }
    if constexpr (Operation::one_value_a_row) {
      self().store_value(total, row);
    } else {
      for (int p = 0; p < whole.pieces(); ++p) whole.write(p, self().output(begin), states[p], total, writer);
    }
  }

  State reduce_part(std::int64_t begin, std::int64_t end) const {
    alignas(vector_bytes) A held[room_of_piece];
    const auto part = long_row<typename Operation::Read>(begin, end, held);
    State state     = part.reduce(0);
    for (int p = 1; p < part.pieces(); ++p) state = merge_two(self().params, state, part.reduce(p));
    return state;
  }

  template <class Writer>
  void write_part(std::int64_t begin, std::int64_t end, const State& total, Writer& writer) const {
    alignas(vector_bytes) A held[room_of_piece];
    const auto part = long_row<typename Operation::Read>(begin, end, held);
    for (int p = 0; p < part.pieces(); ++p) part.write(p, self().output(begin), total, total, writer);
  }

 private:
  static constexpr int room_of_piece = host_piece(sizeof(A)) + 128 / int(sizeof(A));

  const Operation& self() const { return static_cast<const Operation&>(*this); }

  template <class Placement>
  auto long_row(std::int64_t begin, std::int64_t end, A* held) const {
    const auto input = self().input(begin);
    using Row        = std::remove_const_t<decltype(input)>;
    return LongRow<Placement, typename Operation::RowEpilogue, Params, Row>{self().params, input, end - begin, held};
  }
};

/// Parameters of HostTerms for sums of exponentials.
template <class Params>
struct ExponentialTerms {
  using accumulator                     = typename Params::accumulator;
  using wide_sum                        = typename Params::wide_sum;
  static constexpr ExpAccuracy accuracy = Params::accuracy;
  static constexpr bool sums_products   = false;
};

/// Sum of a row's exponentials. Of floats in double the two halves of a vector are added first: half an ulp of a sum
/// of two.
template <class Params>
struct RowExponentials : HostTerms<ExponentialTerms<Params>> {
  using Terms = HostTerms<ExponentialTerms<Params>>;
  using A     = typename Terms::A;

  KOKKOS_FORCEINLINE_FUNCTION void add(const Vector<A>& e) {
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
    if constexpr (Terms::in_double) {
      constexpr auto upper = lanes_from<simd_width<A> / 2>(std::make_integer_sequence<int, simd_width<A>>{});
      this->sum += half_in_double<0>(e + shuffled<Vector<A>, Vector<A>>(e, e, upper));
      return;
    }
#endif
    Terms::add(e, e);
  }
};

/// softmax, log_softmax or logsumexp of rows of X; Y is the type of results, or of one value a row.
template <RowOperator operation, class ParamsOfRow, class X, class YOfRow>
struct HostSegmentedForward : LongRowsOnHost<HostSegmentedForward<operation, ParamsOfRow, X, YOfRow>, ParamsOfRow> {
  using Params     = ParamsOfRow;
  using A          = typename Params::accumulator;
  using State      = typename Params::State;
  using Y          = YOfRow;
  using OpEpilogue = Epilogue<operation>;

  static constexpr int tensors          = 1;
  static constexpr bool one_value_a_row = OpEpilogue::one_value_a_row;
  static constexpr int most_in_run      = RunMemory<Params>::elements;
  static constexpr int longest_in_run   = most_in_run;

  using RowOf       = std::conditional_t<one_value_a_row, Epilogue<RowOperator::softmax>, OpEpilogue>;
  using RowEpilogue = typename RowOf::template Row<Params, A>;

  static constexpr int V = pack_size(Backend::host, sizeof(X), sizeof(Y), sizeof(A));
  using Kept             = HostLogits<operation, V, Params, !one_value_a_row>;
  using Read             = HostLogits<operation, V, Params, false>;

  Params params;
  Values<const X> x;
  Values<Y> y;

  HostSegmentedForward(const Params& p, const Values<const X>& in, const Values<Y>& out) : params(p), x(in), y(out) {}

  /// Operation on the rows of one of several heads.
  HostSegmentedForward of_head(std::int64_t head) const { return {params, x.of_head(head), y.of_head(head)}; }

  void store_value(const State& state, std::int64_t row) const {
    y[row] = static_cast<Y>(OpEpilogue::value(params, state));
  }

  auto input(std::int64_t begin) const { return x.row(begin); }
  auto output(std::int64_t begin) const { return y.row(begin); }
  RowWriter<Y> writer(bool nontemporal_stores) const { return {nontemporal_stores && y.stride == 1, true}; }

  template <class Writer>
  void do_run(const RowRun& run, Writer& writer) const {
    Memory memory;
    From copy[most_in_run];
    const From* const from = in_one_piece(x, run.begin, run.elements(), copy);
    const A max = fold_lanes(Kept::template load_from<true>(from, run.elements(), memory.logits, params), JoinMaxima{});
    with_shape(lanes, run, [&](auto shape) KOKKOSNN_IMPL_INLINED {
      if (params.exp.has_power(2 * max)) {
        const auto reference = params.exp.lowered(params.exp.at(params.exp.reference_of(max)), headroom);
        sum_exponentials<decltype(shape)>(run, splat_reference<T>(reference), from + run.elements(), memory);
        conclude_rows(run, reference, memory);
      } else {
        for (int r = 0; r < run.rows; ++r) redo_row(run, r, from, memory);
      }
      if (memory.has_far) redo_far_rows(run, from, memory);
      if constexpr (!one_value_a_row) {
        compute_rows<decltype(shape)>(run, memory.results(), [&](int r) KOKKOSNN_IMPL_INLINED {
          return [&, epilogue = RowEpilogue(memory.words(r))](int i)
                     KOKKOSNN_IMPL_INLINED { return epilogue(params, load_vector(memory.kept() + i)); };
        });
      }
    });
    if constexpr (!one_value_a_row) write_run(y, run.begin, run.elements(), memory.results(), writer);
  }

 private:
  using T    = Vector<A>;
  using Wide = typename RowOf::template Row<Params, T>;
  using From = VectorElement<X, A>;

  static constexpr int lanes  = simd_width<A>;
  static constexpr bool keeps = OpEpilogue::keeps_exponentials;
  /// Power of two of a run's largest exponential.
  static constexpr A headroom = 60;

  struct Memory : RunMemory<Params> {
    using RunMemory<Params>::padded;

    alignas(vector_bytes) A logits[padded];
    alignas(vector_bytes) A others[padded];  ///< exponentials; results, if those are computed from logits
    bool has_far = false;                    ///< there is a row that the run's reference does not suit

    KOKKOS_FORCEINLINE_FUNCTION A* kept() { return keeps ? others : logits; }
    KOKKOS_FORCEINLINE_FUNCTION A* results() { return keeps ? logits : others; }
  };

  /// Computes exponentials and the sum of each row. Short rows have so many loops' ends that a loop over the run's
  /// exponentials goes before.
  template <class Shape>
  KOKKOS_FORCEINLINE_FUNCTION void sum_exponentials(const RowRun& run, const ExpReference<T>& at, const From* next,
                                                    Memory& memory) const {
    constexpr bool is_at_once = Shape::long_rows;
    const auto exp            = params.exp;  // a copy: reads through a reference are repeated after every store
    const auto exponential    = [&](int i, int v) KOKKOSNN_IMPL_INLINED {
      const T e = exp.template term_of_difference<sum_for<operation>>(load_vector(memory.logits + i), at);
      if constexpr (keeps || !is_at_once) store_vector(memory.others + i, e);
      if (v % vectors_of_line<From, A> == 0) prefetch_line(next + i);
      return e;
    };
    if constexpr (!is_at_once) {
      for (int i = 0; i < run.elements(); i += vectors_at_a_time * lanes) {
        KOKKOSNN_IMPL_UNROLL
        for (int v = 0; v < vectors_at_a_time; ++v) exponential(i + v * lanes, v);
      }
    }
    const auto add = [&](auto& terms, int i, auto n, [[maybe_unused]] int v) KOKKOSNN_IMPL_INLINED {
      const T e = is_at_once ? exponential(i, v) : load_vector(memory.others + i);
      terms.add(lanes_of_row(e, n));
    };
    sum_rows<Shape, ExponentialTerms<Params>, RowExponentials<Params>>(run, add, memory.sums);
  }

  /// Makes of rows' sums what results need, side by side.
  KOKKOS_FORCEINLINE_FUNCTION void conclude_rows(const RowRun& run, const ExpReference<A>& reference,
                                                 Memory& memory) const {
    int far = 0;
    for (int r = 0; r < run.rows; ++r) {
      memory.set_words(r, split_sum<A>(memory.sums[r]));
      far |= int(!(memory.high[r] >= A(1))) & int(run.at[r + 1] > run.at[r]);
    }
    memory.has_far = far != 0;
    const auto at  = splat_reference<T>(reference);
    for (int r = 0; r < run.rows; r += lanes) {
      const DoubleDouble<T> sum{load_vector(memory.high + r), load_vector(memory.low + r)};
      const auto words = words_of_sums(sum, at);
      store_vector(memory.high + r, words.high);
      store_vector(memory.low + r, words.low);
    }
    if constexpr (one_value_a_row) {
      for (int r = 0; r < run.rows; ++r) {
        if (run.length(r) > 0) y[run.row + r] = static_cast<Y>(memory.high[r]);
      }
    }
  }

  /// Words of rows side by side; of a log-sum-exp the value.
  KOKKOS_FORCEINLINE_FUNCTION DoubleDouble<T> words_of_sums(const DoubleDouble<T>& sum,
                                                            const ExpReference<T>& at) const {
    if constexpr (keeps) {
      return Wide(params, at, sum).words();
    } else {
      const auto of_sum = params.exp.logarithm(sum.high, at.exponent);
      if constexpr (!one_value_a_row) return Wide(of_sum).words();
      if constexpr (one_value_a_row) {
        return {fused_multiply_add(splat<T>(params.exp.scale()), of_sum.R, of_sum.rest), T{}};
      }
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION static bool is_far(const RowRun& run, int r, const Memory& memory) {
    return run.length(r) > 0 && !(static_cast<A>(memory.sums[r]) >= A(1));
  }

  /// Makes of a row's state what its results need.
  KOKKOS_FORCEINLINE_FUNCTION void take_state(const RowRun& run, int r, const State& state,
                                              [[maybe_unused]] Memory& memory) const {
    if constexpr (one_value_a_row) {
      store_value(state, run.row + r);
    } else {
      memory.set_words(r, RowEpilogue(params, state).words());
    }
  }

  __attribute__((noinline)) void redo_far_rows(const RowRun& run, const From* from, Memory& memory) const {
    for (int r = 0; r < run.rows; ++r) {
      if (is_far(run, r, memory)) redo_row(run, r, from, memory);
    }
  }

  /// Computes a row's exponentials relative to its own maximum.
  __attribute__((noinline)) void redo_row(const RowRun& run, int r, const From* from, Memory& memory) const {
    const Piece piece{0, run.length(r)};
    if (piece.count == 0) return;
    A* const kept = memory.kept() + run.at[r];
    const MemoryRow<const From, RowForm::strided> row{from + run.at[r], 1};
    NextPiece<A> next{};
    next.ahead  = {from, int(sizeof(From))};
    const A max = Kept().load(row, piece, kept, params);
    take_state(run, r, Kept().reduce(row, piece, kept, params, max, next), memory);
  }
};

/// softmax_backward or log_softmax_backward of rows of y and dy, both of T.
template <RowOperator operation, class ParamsOfRow, class Element>
struct HostSegmentedBackward : LongRowsOnHost<HostSegmentedBackward<operation, ParamsOfRow, Element>, ParamsOfRow> {
  using Params      = ParamsOfRow;
  using A           = typename Params::accumulator;
  using State       = typename Params::State;
  using RowEpilogue = typename Epilogue<operation>::template Row<Params, A>;

  static constexpr int tensors          = 2;
  static constexpr bool one_value_a_row = false;
  static constexpr int most_in_run      = RunMemory<Params>::elements;
  static constexpr int longest_in_run   = host_run_gradient_bytes / int(sizeof(A));

  struct Inputs {
    Values<const Element> y;
    Values<const Element> dy;
  };
  static constexpr int V = pack_size(Backend::host, sizeof(Element), sizeof(Element), sizeof(A));
  using Kept             = HostPairs<V, Params, Inputs>;
  using Read             = Kept;

  Params params;
  Inputs in;
  Values<Element> dx;

  HostSegmentedBackward(const Params& p, const Values<const Element>& y, const Values<const Element>& dy,
                        const Values<Element>& output)
      : params(p), in{y, dy}, dx(output) {}

  HostSegmentedBackward of_head(std::int64_t head) const {
    return {params, in.y.of_head(head), in.dy.of_head(head), dx.of_head(head)};
  }

  auto input(std::int64_t begin) const {
    using Row = typename Values<const Element>::Row;
    return PairRow<Row, Row>{in.y.row(begin), in.dy.row(begin)};
  }
  auto output(std::int64_t begin) const { return dx.row(begin); }
  RowWriter<Element> writer(bool nontemporal_stores) const { return {nontemporal_stores && dx.stride == 1, true}; }

  template <class Writer>
  void do_run(const RowRun& run, Writer& writer) const {
    Memory memory;
    load(in.y, run, memory.y);
    load(in.dy, run, memory.dy);
    with_shape(lanes, run, [&](auto shape) KOKKOSNN_IMPL_INLINED {
      sum_terms<decltype(shape)>(run, memory);
      compute_rows<decltype(shape)>(run, memory.results, [&](int r) KOKKOSNN_IMPL_INLINED {
        return [&, epilogue = RowEpilogue(params, memory.words(r))](int i) KOKKOSNN_IMPL_INLINED {
          return epilogue(params, load_vector(memory.y + i), load_vector(memory.dy + i));
        };
      });
    });
    write_run(dx, run.begin, run.elements(), memory.results, writer);
  }

 private:
  using T = Vector<A>;

  static constexpr int lanes = simd_width<A>;

  struct Memory : RunMemory<Params> {
    using RunMemory<Params>::padded;

    alignas(vector_bytes) A y[padded];
    alignas(vector_bytes) A dy[padded];
    alignas(vector_bytes) A results[padded];
  };

  /// Loads a run's elements, and prefetches as many behind them.
  static void load(const Values<const Element>& values, const RowRun& run, A* to) {
    Element copy[most_in_run];
    const int count           = run.elements();
    const Element* const from = in_one_piece(values, run.begin, count, copy);
    for (int i = 0; i < count; i += lanes) {
      prefetch_line(from + count + i);
      store_vector(to + i, load_up_to(from + i, std::min(lanes, count - i)));
    }
  }

  template <class Shape>
  KOKKOS_FORCEINLINE_FUNCTION void sum_terms(const RowRun& run, Memory& memory) const {
    const auto add = [&](auto& terms, int i, auto n, int) KOKKOSNN_IMPL_INLINED {
      const T y = Params::sums_products ? lanes_of_row(load_vector(memory.y + i), n) : T{};
      terms.add(y, lanes_of_row(load_vector(memory.dy + i), n));
    };
    sum_rows<Shape, Params, HostTerms<Params>>(run, add, memory.sums);
    for (int r = 0; r < run.rows; ++r) memory.set_words(r, words_of(State{memory.sums[r]}));
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_SEGMENTED_ROWS_HPP
