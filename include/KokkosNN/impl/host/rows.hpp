// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_ROWS_HPP
#define KOKKOSNN_IMPL_HOST_ROWS_HPP

#include <KokkosNN/impl/backend.hpp>
#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/host/row_per_lane.hpp>
#include <KokkosNN/impl/host/row_writer.hpp>
#include <KokkosNN/impl/host/sums.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/protocol.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// Kernel of vector_lanes, team_registers, team_scratch and team_online on a host.
// A row is cut into pieces of 16 KiB of accumulators, which stay in the first-level cache, and a thread processes a
// piece by few loops of vectors (`Vector<A>`: compilers' vector extensions, as wide as the machine's): the maximum,
// then the exponentials and their sum, then the results. Formulas (`ScaledExp`, `Epilogue`) are templates on a number
// or a vector of numbers. If a machine looks up a lane's index in a vector by one instruction (`has_lookup`: AVX2,
// AVX-512), 2^t takes a table and a short series, and the last bit of an exponential is not a single number's.
// The loop of the exponentials, which waits for arithmetic, also finds the maximum of the next piece or row
// (`NextPiece`), and leaves its results where the row's results go, so that memory is waited for there and nowhere
// else. Rows in memory are kept where their result goes. Rows that are not vectors in memory (functors, strides) are
// loaded by packs and computed by the same loops. 16-bit rows are converted while their maximum is found, and held as
// floats; a gradient converts them twice instead, bfloat16 by two vectors at a time (`TwoVectors`).
// Each piece has its own state, joined in the order of the columns: a row's bits do not depend on how many threads
// share it. Rows of up to 256 columns are processed as many at a time as a vector has lanes, so that the work once a
// row, one long chain of scalar instructions, is in vectors, too (`LaneRows`, `NarrowRows`). A gradient's rows are
// processed one after the other, by loops with nothing else in them (`ShortPairs`).
// Ragged rows have kernels of their own (segmented.hpp), which use these loops for long rows.
// The placement has the loops over a piece:
//
//   placement.load(row, piece, held, params) -> data for `reduce`: the largest logit, or nothing
//   placement.reduce(row, piece, held, params, loaded, next) -> the piece's state; it also prepares the next piece
//   placement.write(row, output, piece, held, params, epilogue, writer) writes the results
//
// A placement of rows with labels has besides, for the thread that has the label's element:
//
//   placement.facts_of(row, columns, params) -> `Facts`, from before the columns are loaded
//   placement.epilogue_of(params, own, total, facts) -> `RowEpilogue`
//   placement.store_values(output, params, total, facts, row) stores the row's values
//
// A masked row (`gives_packs`, see masked.hpp) is loaded from the columns that its mask allows, and the others are
// filled. A row that changes what is loaded (`makes_logits`) has `with_logits(params, begin, f)`.

namespace KokkosNN::Impl {

/// Columns of a row.
struct Piece {
  std::int64_t begin;
  int count;

  KOKKOS_FORCEINLINE_FUNCTION RowPart part() const { return {{begin, begin + count}, 0, false}; }
};

/// Elements to prefetch, if they lie in memory.
struct Ahead {
  const void* address;
  int element_bytes;

  /// Prefetches the cache lines of n elements.
  KOKKOS_FORCEINLINE_FUNCTION void ask(int first, int n) const {
    prefetch_elements<host_line>(static_cast<const char*>(address) + std::ptrdiff_t(first) * element_bytes,
                                 n * element_bytes);
  }
};

/// Next piece, which `reduce` prepares while it computes, so that it waits for memory: it finds the piece's largest
/// logit, or else prefetches its cache lines.
template <class A>
struct NextPiece {
  const A* logits = nullptr;  ///< used as they lie in memory
  int count       = 0;        ///< number of logits, at most this piece's
  A max           = {};       ///< largest of the logits
  Ahead ahead;                ///< address of the piece, if it has no logits

  /// Largest logit of a piece of `elements` elements; load(first) finds that of elements from `first` on, where `max`
  /// lacks them.
  template <class Load>
  KOKKOS_FORCEINLINE_FUNCTION A known_or(int elements, const Load& load) const {
    if (logits == nullptr) return load(0);
    return count < elements ? max_ignoring_nan(max, load(count)) : max;
  }
};

/// Row in memory from which vectors of A are loaded, if its elements are neighbours.
template <class Row, class A>
concept VectorsOf = simd_width<A> > 1 && requires(const Row& row) {
  row.base;
  row.stride;
  requires std::is_same_v<accumulator_t<typename Row::value_type>, A>;
};

/// Row in memory whose elements are of type A.
template <class Row, class A>
concept MemoryOf = VectorsOf<Row, A> && std::is_same_v<std::remove_const_t<typename Row::value_type>, A>;

/// Row whose logits are not the elements in memory: with_logits(params, begin, f) calls f(logit), and logit(x, i, n)
/// makes logits of the n elements at column begin + i, with -inf in the other lanes.
template <class Row>
concept MakesLogits = requires { requires Row::makes_logits; };

/// Source of rows as a host's loops read it, made of any source.
template <class Source>
struct HostSource {
  using type = Source;
};

/// True if elements lie in memory in the type of accumulators.
template <class X>
inline constexpr bool is_accumulator = std::is_same_v<accumulator_t<X>, std::remove_const_t<X>>;

/// Writes value(i, n), with n valid lanes, for i = 0, lanes, 2 lanes, ...
template <int V, class A, class OutputRow, class Writer, class Value>
KOKKOS_FORCEINLINE_FUNCTION void write_vectors(const OutputRow& output, const Piece& piece, Writer& writer,
                                               const Value& value) {
  if constexpr (VectorsOf<OutputRow, A>) {
    if (output.stride == 1) return writer.write(output.base + piece.begin, piece.count, value);
  }
  using Y                 = typename OutputRow::value_type;
  constexpr int lanes     = simd_width<A>;
  const auto columns_from = output.template from<V>(piece.begin);
  for (int c = 0; c < piece.count; c += V) {
    const int count = piece.count - c < V ? piece.count - c : V;
    A values[V + lanes];
    for (int v = 0; v < count; v += lanes) {
      store_vector(values + v, value(c + v, count - v < lanes ? count - v : lanes));
    }
    Pack<Y, V> result{};
    for (int v = 0; v < count; ++v) result[v] = static_cast<Y>(values[v]);
    columns_from.template store_pack<V>(result, c, TileBounds{piece.count});
  }
}

/// Placement of softmax, log_softmax and logsumexp. `keeps`: logits or exponentials stay until they are written;
/// otherwise they are loaded and computed again.
template <RowOperator op, int V, class Params, bool keeps>
struct HostLogits : HostPlacementDefaults {
  using A                                  = typename Params::accumulator;
  using T                                  = Vector<A>;
  static constexpr int lanes               = simd_width<A>;
  static constexpr bool keeps_rows         = keeps;
  static constexpr bool has_own_reference  = keeps;
  static constexpr bool holds_pieces       = true;
  static constexpr bool uses_memory        = true;
  static constexpr bool keeps_exponentials = keeps && Epilogue<op>::keeps_exponentials;

  /// Loads a piece, and copies it to `held` unless it is read again from its place; the last vector is filled up with
  /// -inf.
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION A load(const Row& row, const Piece& piece, A* held, const Params& params) const {
    if constexpr (VectorsOf<Row, A>) {
      if (row.stride == 1) return fold_lanes(load_neighbours(row, piece, held, params), JoinMaxima{});
    }
    return load_packs(row, piece, held, params);
  }

  /// Loads a piece of neighbours in memory, and returns the largest logit of each lane.
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION static T load_neighbours(const Row& row, const Piece& piece, A* held,
                                                       const Params& params) {
    const auto* const from = row.base + piece.begin;
    if constexpr (MakesLogits<Row>) {
      T max;
      row.with_logits(params, piece.begin,
                      [&](const auto& logit) { max = load_vectors<true>(from, piece.count, held, A(0), logit); });
      return max;
    } else {
      return load_from(from, piece.count, held, params);
    }
  }

  /// Loads elements from memory as they are, or as the parameters change them; `copies`: to `held` in any case.
  template <bool copies = false, class X>
  KOKKOS_FORCEINLINE_FUNCTION static T load_from(const X* from, int count, A* held, const Params& params) {
    constexpr A infinity  = Kokkos::Experimental::infinity_v<A>;
    const auto as_it_is   = [](const T& x) KOKKOSNN_IMPL_INLINED { return x; };
    const auto negatively = [](const T& x) KOKKOSNN_IMPL_INLINED { return -x; };
    if constexpr (Params::changes_logits) {
      if (params.makes_logits()) return load_vectors<true>(from, count, held, -infinity, params.vector_logits());
    } else if constexpr (Params::may_negate) {
      if (params.sign < A(0)) return load_vectors<true>(from, count, held, infinity, negatively);
    }
    return load_vectors<(copies || !is_accumulator<X>)>(from, count, held, -infinity, as_it_is);
  }
  /// True if `load_from` copies nothing.
  template <class X>
  KOKKOS_FORCEINLINE_FUNCTION static bool stays(const Params& params) {
    if constexpr (Params::changes_logits) return is_accumulator<X> && !params.makes_logits();
    return is_accumulator<X> && !(params.sign < A(0));
  }

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION typename Params::State reduce(const Row& row, const Piece& piece, A* held,
                                                            const Params& params, A max, NextPiece<A>& next) const {
    const A reference   = params.exp.reference_of(max);
    const auto at       = params.exp.at(finite_reference(reference));
    const A* const from = loaded(row, piece, held, params);
    // Ahead of the exponentials, which may be kept in the logits' place.
    const bool is_one   = is_infinite<sum_for<op>, Params>(at);
    const W one         = is_one ? one_of_numbers(from, piece.count) : W{};
    const auto state_of = [&](const HostSums<Params>& sums) {
      return typename Params::State{reference, is_one ? one : sums.total()};
    };
    if (next.logits == nullptr) return state_of(sums_of(from, held, piece.count, params, at, next.ahead));
    T next_max;
    const auto sums = sums_of(from, held, piece.count, params, at, next.logits, next.count, next_max);
    next.max        = fold_lanes(next_max, JoinMaxima{});
    return state_of(sums);
  }

  template <class Row, class OutputRow, class RowEpilogue, class Writer>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Row& row, const OutputRow& output, const Piece& piece, A* held,
                                         const Params params, const RowEpilogue epilogue, Writer& writer) const {
    const A* const from = kept_or_loaded(row, piece, held, params);
    write_values(output, piece, writer, [&](int i, int n) KOKKOSNN_IMPL_INLINED {
      const T x = load_up_to(from + i, n);
      if constexpr (keeps) return epilogue(params, x);
      if constexpr (!keeps) return epilogue.from_input(params, x);
    });
  }

  /// Sums the exponentials of `count` logits, which go to `held` if they are kept. It prefetches as many elements.
  KOKKOS_FORCEINLINE_FUNCTION static HostSums<Params> sums_of(const A* from, A* held, int count, const Params& params,
                                                              const ExpReference<A>& reference, const Ahead& ahead) {
    return sums_beside(from, held, count, params, reference,
                       [&](int i, int, int n) KOKKOSNN_IMPL_INLINED { ahead.ask(i, n); });
  }

  /// Sums the exponentials of `count` logits, and finds the largest one in each lane of the `next_count` logits of the
  /// next piece, at most `count`. It prefetches those of the piece behind: a load that waits for memory delays the
  /// exponentials.
  ///   softmax 4096 x 4096, two cores, GB/s | 40 | without prefetching 25
  KOKKOS_FORCEINLINE_FUNCTION static HostSums<Params> sums_of(const A* from, A* held, int count, const Params& params,
                                                              const ExpReference<A>& reference, const A* next,
                                                              int next_count, T& next_max) {
    constexpr A infinity = Kokkos::Experimental::infinity_v<A>;
    T max[4];
    for (T& m : max) m = splat<T>(-infinity);
    const auto sums = sums_beside(from, held, count, params, reference, [&](int i, int k, int n) KOKKOSNN_IMPL_INLINED {
      prefetch_elements<host_line>(next + i + host_piece(sizeof(A)), n);
      if (const int left = next_count - i; left > 0) {
        max[k] = max_ignoring_nan(max[k], load_up_to(next + i, std::min(n, left), -infinity));
      }
    });
    next_max        = max_ignoring_nan(max_ignoring_nan(max[0], max[1]), max_ignoring_nan(max[2], max[3]));
    return sums;
  }

 protected:
  using W = typename Params::wide_sum;

  /// Address of what `write` starts from: kept exponentials or logits, which are loaded once more unless they stayed.
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION const A* kept_or_loaded(const Row& row, const Piece& piece, A* held,
                                                      const Params& params) const {
    if constexpr (keeps_exponentials) return held;
    const A* const from = loaded(row, piece, held, params);
    if (!keeps && from == held) load(row, piece, held, params);
    return from;
  }

  /// Address of a piece's logits once it was loaded.
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION static const A* loaded(const Row& row, const Piece& piece, const A* held,
                                                     const Params& params) {
    if constexpr (MemoryOf<Row, A> && !MakesLogits<Row>) {
      if (row.stride == 1 && stays<A>(params)) return row.base + piece.begin;
    }
    return held;
  }

  template <class OutputRow, class Writer, class Value>
  KOKKOS_FORCEINLINE_FUNCTION static void write_values(const OutputRow& output, const Piece& piece, Writer& writer,
                                                       const Value& value) {
    write_vectors<V, A>(output, piece, writer, value);
  }

 private:
  /// Sum of logits with +inf: a number unless one of them is NaN.
  static W one_of_numbers(const A* logits, int count) {
    for (int i = 0; i < count; ++i) {
      if (logits[i] != logits[i]) return W{logits[i]};
    }
    return W{A(1)};
  }

  /// Sums exponentials, and calls beside(i, k, n) for each vector, at i, with n valid lanes; k is 0 to 3.
  template <class Beside>
  KOKKOS_FORCEINLINE_FUNCTION static HostSums<Params> sums_beside(const A* from, A* held, int count,
                                                                  const Params& params,
                                                                  const ExpReference<A>& reference,
                                                                  const Beside& beside) {
    HostSums<Params> sums;
    const auto exp         = params.exp;  // a copy: reads through a reference are repeated after every store
    const auto at          = splat_reference<T>(reference);
    const auto exponential = [&](int i, int k) KOKKOSNN_IMPL_INLINED {
      const T e = exp.template term_of_difference<sum_for<op>>(load_vector(from + i), at);
      if constexpr (keeps_exponentials) store_vector(held + i, e);
      beside(i, k, lanes);
      return e;
    };
    int i = 0;
    if (reference.base == A(0)) {  // nearly always
      for (; i + 4 * lanes <= count; i += 4 * lanes) {
        const T a = exponential(i, 0), b = exponential(i + lanes, 1);
        const T c = exponential(i + 2 * lanes, 2), d = exponential(i + 3 * lanes, 3);
        sums.add((a + b) + (c + d));
      }
    }
    for (; i < count; i += lanes) {
      const int n = count - i < lanes ? count - i : lanes;
      const T x   = load_up_to(from + i, n, -Kokkos::Experimental::infinity_v<A>);
      const T e   = exp.template term_of_difference<sum_for<op>>(x - at.base, at);
      if constexpr (keeps_exponentials) store_up_to(held + i, e, n);
      beside(i, 0, n);
      sums.add(e);
    }
    return sums;
  }

  /// Makes logits of what is loaded, logit(x) or logit(x, i, n), and finds the largest ones; it `copies` them or not.
  /// logit(pad) is -inf.
  template <bool copies, class X, class Logit>
  KOKKOS_FORCEINLINE_FUNCTION static T load_vectors(const X* from, int count, A* held, A pad, const Logit& logit) {
    T max[4];
    for (T& m : max) m = splat<T>(-Kokkos::Experimental::infinity_v<A>);
    const auto take = [&](int i, int k, const T& loaded, int n) KOKKOSNN_IMPL_INLINED {
      const T x = made_by(logit, loaded, i, n);
      if constexpr (copies) store_up_to(held + i, x, n);
      max[k] = max_ignoring_nan(max[k], x);
    };
    int i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      take(i, 0, load_vector(from + i), lanes);
      take(i + lanes, 1, load_vector(from + i + lanes), lanes);
      take(i + 2 * lanes, 2, load_vector(from + i + 2 * lanes), lanes);
      take(i + 3 * lanes, 3, load_vector(from + i + 3 * lanes), lanes);
    }
    for (; i + lanes <= count; i += lanes) take(i, 0, load_vector(from + i), lanes);
    if (i < count) take(i, 1, load_lanes(from + i, count - i, pad), count - i);
    return max_ignoring_nan(max_ignoring_nan(max[0], max[1]), max_ignoring_nan(max[2], max[3]));
  }

  template <class Logit>
  KOKKOS_FORCEINLINE_FUNCTION static T made_by(const Logit& logit, const T& x, [[maybe_unused]] int i,
                                               [[maybe_unused]] int n) {
    if constexpr (std::is_invocable_v<const Logit&, const T&>) {
      return logit(x);
    } else {
      return logit(x, i, n);
    }
  }

  /// Loads any row, by packs as all kernels do.
  template <class Row>
  KOKKOS_INLINE_FUNCTION static A load_packs(const Row& row, const Piece& piece, A* held, const Params& params) {
    const auto columns_from = row.template from<V>(piece.begin);
    const int end           = (piece.count + lanes - 1) / lanes * lanes;
    A max                   = -Kokkos::Experimental::infinity_v<A>;
    for (int c = 0; c < piece.count; c += V) {
      Tile<A, V, 1> tile;
      tile.load(columns_from, PackPositions{c, V, 0}, TileBounds{piece.count}, params);
      max             = max_ignoring_nan(max, tile.max());
      const int count = end - c < V ? end - c : V;
      for (int v = 0; v < count; ++v) held[c + v] = tile.pack[0][v];
    }
    return max;
  }
};

/// Rows of few columns, as many as there are lanes, transposed: one a lane. A row's bits do not depend on the number of
/// other rows.
template <RowOperator op, class Params>
struct NarrowRows {
  using A                        = typename Params::accumulator;
  using T                        = Vector<A>;
  using OpEpilogue               = Epilogue<op>;
  static constexpr int lanes     = simd_width<A>;
  static constexpr int most_cols = 2 * lanes;
  static constexpr bool keeps    = OpEpilogue::keeps_exponentials;

  /// Processes the rows; `in(l)`, `out(l)`: begin of a row.
  template <class In, class Out>
  KOKKOS_INLINE_FUNCTION static void softmax(const Params& params, int rows, int cols, bool nontemporal_stores,
                                             const In& in, const Out& out) {
    T held[most_cols];
    const auto epilogue = own_lanes_epilogue<OpEpilogue>(params, reduce(params, rows, cols, held, in));
    for (int begin = 0; begin < cols; begin += lanes) {
      const int count = cols - begin < lanes ? cols - begin : lanes;
      T tile[lanes];
      for (int c = 0; c < lanes; ++c) tile[c] = epilogue(params, held[begin + c]);
      transpose<A>(tile);
      for (int l = 0; l < rows; ++l) {
        auto* const to = out(l) + begin;
        if (count < lanes) {
          store_lanes(to, tile[l], count);
        } else if (nontemporal_stores && elements_to_boundary(to) == 0) {
          store_vector_nontemporal(to, tile[l]);
        } else {
          store_vector(to, tile[l]);
        }
      }
    }
  }

  template <class In>
  KOKKOS_FORCEINLINE_FUNCTION static LaneState<Params> reduce(const Params& params, int rows, int cols,
                                                              T (&held)[most_cols], const In& in) {
    const A pad = params.template pad<A>();
    T max       = splat<T>(-Kokkos::Experimental::infinity_v<A>);
    for (int begin = 0; begin < cols; begin += lanes) {
      const int count = cols - begin < lanes ? cols - begin : lanes;
      T tile[lanes];
      if (count == lanes && rows == lanes) {
        for (int l = 0; l < lanes; ++l) tile[l] = load_vector(in(l) + begin);
      } else {
        for (int l = 0; l < lanes; ++l) {
          tile[l] = l < rows ? load_lanes(in(l) + begin, count, pad) : splat<T>(pad);
        }
      }
      transpose<A>(tile);
      for (int c = 0; c < lanes; ++c) {
        const T x       = tile[c] * splat<T>(params.sign);
        held[begin + c] = x;
        max             = max_ignoring_nan(max, x);
      }
    }
    return reduce_side_by_side<keeps, sum_for<op>>(params, reinterpret_cast<A*>(held), cols, lanes, max);
  }
};

/// Rows of not very many columns, as many as there are lanes. The work once a row is done for all of them at once: the
/// last vectors of each row's maximum and sum are transposed and joined lane by lane.
template <RowOperator op, class Placement, class Params>
struct LaneRows {
  using A                    = typename Params::accumulator;
  using T                    = Vector<A>;
  using Narrow               = typename Epilogue<op>::template Row<Params, A>;
  static constexpr int lanes = simd_width<A>;

  /// Largest logit of each row and lane among the first `count` columns, if known yet.
  struct Maxima {
    T of_row[lanes];
    int count[lanes];
    bool are_known = false;
  };

  /// Processes the rows. `held` has room for them, each up to a whole vector, and for a vector ahead and behind. It
  /// finds the `maxima` of the next rows, `next`, if there are as many. Rows in(l) begin with the first column that is
  /// loaded, rows out(l) with column 0.
  template <class In, class Out, class Writer>
  KOKKOS_INLINE_FUNCTION static void softmax(const Params& params, int rows, int cols, Writer& writer, const In& in,
                                             const Out& out, A* held, Maxima& maxima, const In& next, bool has_next) {
    constexpr A infinity = Kokkos::Experimental::infinity_v<A>;
    using X              = std::remove_cvref_t<decltype(*in(0))>;
    using Y              = std::remove_cvref_t<decltype(*out(0))>;
    const int padded     = (cols + lanes - 1) / lanes * lanes;
    const bool stays     = !In::makes_logits && Placement::template stays<X>(params);
    // In place of their results, as `memory_of_result`; rows of 64 columns would take 3 % longer.
    const bool in_place = is_accumulator<Y> && !writer.nontemporal_stores() && cols == padded && cols >= 8 * lanes;
    const auto held_row = [&](int l) {
      if constexpr (is_accumulator<Y>) {
        if (in_place) return out(l) + in.columns(l).begin;
      }
      return held + lanes + l * padded;
    };
    T high[lanes], low[lanes];
    for (int l = 0; l < lanes; ++l) {
      const int known = maxima.are_known ? maxima.count[l] : 0;
      high[l]         = maxima.are_known ? maxima.of_row[l] : splat<T>(-infinity);
      if (l < rows && (!maxima.are_known || (In::is_masked && known < in.count(l)))) {
        high[l] = max_ignoring_nan(high[l], in.load(l, known, held_row(l) + known, params));
      }
    }
    transpose<A>(high);
    for (int l = 1; l < lanes; ++l) high[0] = max_ignoring_nan(high[0], high[l]);
    maxima.are_known = has_next && stays;

    LaneState<Params> state(params, high[0]);
    RawArray<ExpReference<A>, lanes> at;
    take_apart<A>(state.at, at);
    for (int l = 0; l < lanes; ++l) {
      HostSums<Params> sums;
      if (l < rows) {
        const A* const from = logits_of<X>(stays, in, held_row, l);
        const int count     = in.count(l);
        const Ahead ahead{has_next ? static_cast<const void*>(next(l)) : from, int(sizeof(X))};
        if constexpr (is_accumulator<X> && !In::makes_logits) {
          maxima.count[l] = std::min(count, next.count(l));
          sums            = maxima.are_known ? Placement::sums_of(from, held_row(l), count, params, at[l], next(l),
                                                                  maxima.count[l], maxima.of_row[l])
                                             : Placement::sums_of(from, held_row(l), count, params, at[l], ahead);
        } else {
          sums = Placement::sums_of(from, held_row(l), count, params, at[l], ahead);
        }
      }
      const DoubleDouble<T> words = sums.words();
      high[l]                     = words.high;
      low[l]                      = words.low;
    }
    transpose<A>(high);
    transpose<A>(low);
    state.sum = {high[0], low[0]};
    for (int l = 1; l < lanes; ++l) state.sum = state.sum + DoubleDouble<T>{high[l], low[l]};

    RawArray<Narrow, lanes> epilogue;
    take_apart<A>(own_lanes_epilogue<Epilogue<op>>(params, state), epilogue);
    for (int l = 0; l < rows; ++l) {
      const A* const kept = logits_of<X>(stays && !Placement::keeps_exponentials, in, held_row, l);
      if constexpr (In::is_masked) {
        write_masked(out(l), cols, in.columns(l), kept, params, epilogue[l], writer);
      } else {
        writer.write(out(l), cols,
                     [&](int i, int n) KOKKOSNN_IMPL_INLINED { return epilogue[l](params, load_up_to(kept + i, n)); });
      }
    }
  }

 private:
  /// Writes a whole row, of which the allowed columns are at `kept`, before and behind which a vector may be read.
  template <class Y, class Writer>
  KOKKOS_FORCEINLINE_FUNCTION static void write_masked(Y* out, int cols, const ColumnRange& columns, const A* kept,
                                                       const Params& params, const Narrow& epilogue, Writer& writer) {
    const int begin = static_cast<int>(columns.begin), end = static_cast<int>(columns.end);
    const T masked      = splat<T>(epilogue.of_masked(params));
    const A* const from = kept - begin;
    writer.write(out, cols, [&](int i, int n) KOKKOSNN_IMPL_INLINED {
      if (i >= end || i + n <= begin) return masked;
      const T value = epilogue(params, load_up_to(from + i, n));
      if (i >= begin && i + n <= end) return value;
      const T column = lane_numbers<T>() + splat<T>(A(i));
      return column >= splat<T>(A(begin)) ? column < splat<T>(A(end)) ? value : masked : masked;
    });
  }

  /// Logits of a row, in its place or where it is held.
  template <class X, class In, class Held>
  KOKKOS_FORCEINLINE_FUNCTION static const A* logits_of([[maybe_unused]] bool stays, [[maybe_unused]] const In& in,
                                                        const Held& held_row, int l) {
    if constexpr (is_accumulator<X>) {
      if (stays) return in(l);
    }
    return held_row(l);
  }
};

/// TeamPolicy functor.
template <RowOperator op, int V, class Placement, class Params, class Source, class Output>
struct HostRows {
  using A          = typename Params::accumulator;
  using State      = typename Params::State;
  using OpEpilogue = Epilogue<op>;
  static_assert(HostKernelParts<Placement, Params, Source, Output, OpEpilogue>);
  static constexpr int length = host_piece(sizeof(A));  // of a piece

  Source source;
  Output output;
  Params params;
  std::int64_t rows;
  std::int64_t cols;
  int rows_per_team;
  bool nontemporal_stores;
  bool batch_invariant;
  int scratch_level;
  int scratch_bytes;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    KOKKOS_IF_ON_HOST((do_rows(team);))
  }

 private:
  struct Nothing {};
  using Row                         = std::decay_t<decltype(std::declval<const Source&>().row(0))>;
  static constexpr bool is_masked   = Row::gives_packs;
  static constexpr bool has_label   = Placement::has_label;
  static constexpr bool writes_rows = Placement::writes_rows && !OpEpilogue::one_value_a_row;

  template <class P, class M>
  static auto types_of_row() {
    if constexpr (P::has_label) {
      return RowTypes<typename P::RowEpilogue, typename P::Facts>{};
    } else if constexpr (writes_rows) {
      return RowTypes<typename OpEpilogue::template Row<M, A>, Nothing>{};
    } else {
      return RowTypes<Nothing, Nothing>{};
    }
  }
  template <class E, class F>
  struct RowTypes {
    using RowEpilogue = E;
    using Facts       = F;
  };
  using RowEpilogue = typename decltype(types_of_row<Placement, Params>())::RowEpilogue;
  using Facts       = typename decltype(types_of_row<Placement, Params>())::Facts;

  template <class Member>
  void do_rows(const Member& team) const {
    alignas(vector_bytes) A held[Placement::holds_pieces ? length + std::max(V, 2 * simd_width<A>) : 1];
    auto writer = make_writer();
    for (std::int64_t block = std::int64_t(number_of(team)) * rows_per_team; block < rows;
         block += std::int64_t(team.league_size()) * rows_per_team) {
      const std::int64_t end = std::min(rows, block + rows_per_team);
      cols <= length ? do_short_rows(team, block, end, held, writer) : do_long_rows(team, block, end, held, writer);
    }
  }

  /// Number of a team among those that share the rows. A thread runs neighbouring teams: under a mask they have rows
  /// from both ends in turn, since those of later queries are longer.
  template <class Member>
  static int number_of(const Member& team) {
    const int rank = team.league_rank();
    if constexpr (!is_masked) return rank;
    return rank % 2 == 0 ? rank / 2 : team.league_size() - 1 - rank / 2;
  }

  bool results_adjoin() const {
    if constexpr (requires { output.map.only_stride(), output.row(0).stride; }) {
      return output.map.only_stride() == cols && output.row(0).stride == 1;
    } else if constexpr (requires { output.dlogits.map.only_stride(); }) {
      return output.dlogits.map.only_stride() == cols && output.row(0).stride == 1;
    } else if constexpr (requires { output.rows.map.only_stride(); }) {
      return output.rows.map.only_stride() == cols && output.row(0).stride == 1;
    } else {
      return false;
    }
  }

  auto make_writer() const {
    if constexpr (!writes_rows) {
      return Nothing{};
    } else {
      return RowWriter<typename decltype(output.row(0))::value_type>(nontemporal_stores, results_adjoin());
    }
  }

  /// Length of a row's pieces (each starts at a pack boundary). Up to `host_equal_pieces` are made equally long.
  static KOKKOS_INLINE_FUNCTION int piece_length(const ColumnRange& span) {
    constexpr std::int64_t few = host_equal_pieces, unit = std::max(V, simd_width<A>);
    const std::int64_t count  = span.end - span.begin;
    const std::int64_t pieces = (count + length - 1) / length;
    if (pieces < 2 || pieces > few) return length;
    return static_cast<int>(((count + pieces - 1) / pieces + unit - 1) / unit * unit);
  }
  static KOKKOS_FORCEINLINE_FUNCTION Piece piece_of(const ColumnRange& span, int each, std::int64_t number) {
    const std::int64_t begin = span.begin + number * each;
    return {begin, static_cast<int>(std::min<std::int64_t>(each, span.end - begin))};
  }

  /// Columns of a row that is loaded later, if they lie in memory. Those that its mask allows are not looked for.
  Ahead ahead_of(std::int64_t number, std::int64_t begin, const void* otherwise) const {
    number = std::min(number, rows - 1);
    if constexpr (requires { source.memory_row(number); }) {
      return ahead_in(source.memory_row(number), begin, otherwise);
    } else if constexpr (requires(const Row& row) { row.base; }) {
      return ahead_in(source.row(number), begin, otherwise);
    } else {
      return {otherwise, int(sizeof(A))};
    }
  }
  template <class AnyRow>
  static Ahead ahead_in(const AnyRow& row, std::int64_t begin, const void* otherwise) {
    if constexpr (requires { row.base; }) {
      return {row.base + begin, int(sizeof(*row.base))};
    } else {
      return {otherwise, int(sizeof(A))};
    }
  }

  /// Logits of a row that are used as they lie in memory, all of them; nullptr otherwise.
  const A* logits_of([[maybe_unused]] std::int64_t number) const {
    if constexpr (Placement::uses_memory) {
      if constexpr (MemoryOf<Row, A> && !MakesLogits<Row>) {
        const Row row = source.row(number);
        if (row.stride == 1 && Placement::template stays<A>(params)) return row.base;
      }
    }
    return nullptr;
  }

  /// Address of a row's result, if the row is kept there until it is written: caches then hold it once, and memory is
  /// waited for while exponentials are computed. It serves rows in memory only: another source might still read that
  /// place.
  A* memory_of_result([[maybe_unused]] const Row& row, [[maybe_unused]] std::int64_t number) const {
    if constexpr (writes_rows && Placement::keeps_rows && MemoryOf<Row, A>) {
      const auto out = output.row(number);
      if constexpr (MemoryOf<std::decay_t<decltype(out)>, A>) {
        if (!nontemporal_stores && row.stride == 1 && out.stride == 1) return out.base;
      }
    }
    return nullptr;
  }

  /// True if rows of few columns are transposed: their vectors must lie in memory.
  template <class OutputRow>
  static constexpr bool has_narrow_rows =
      Placement::keeps_rows && !has_label && writes_rows && VectorsOf<Row, A> && VectorsOf<OutputRow, A>;

  /// True if rows have a term beside their columns, which is added row by row.
  bool completes_rows() const {
    if constexpr (requires { source.has_sinks(); }) return source.has_sinks();
    return false;
  }

  /// Most columns of rows that are processed by lanes.
  static constexpr int most_by_lanes = length / simd_width<A>;

  /// Processes rows of one piece, several at a time.
  template <class Member, class Writer>
  void do_short_rows(const Member& team, std::int64_t begin, std::int64_t end, A* held, Writer& writer) const {
    if constexpr (writes_rows) {
      if constexpr (has_narrow_rows<decltype(output.row(0))>) {
        const bool are_neighbours = source.row(begin).stride == 1 && output.row(begin).stride == 1;
        if (cols <= most_by_lanes && are_neighbours && !completes_rows())
          return do_rows_by_lanes(team, begin, end, held, writer);
      }
      if constexpr (Placement::has_row_loops && !is_masked) {
        const std::int64_t size = team.team_size(), count = end - begin;
        const std::int64_t first = begin + count * team.team_rank() / size;
        const std::int64_t last  = begin + count * (team.team_rank() + 1) / size;
        if (Placement::template write_rows<RowEpilogue>(params, source, output, first, last, static_cast<int>(cols),
                                                        writer)) {
          return;
        }
      }
    }
    do_several_rows(team, begin, end, held, writer);
  }

  /// Addresses of rows from some row on: one addition each, if the rows allow it.
  template <class Rows>
  struct RowBases {
    const Rows& rows;
    std::int64_t first;
    std::int64_t stride;
    decltype(rows.row(0).base) base;

    RowBases(const Rows& all, std::int64_t number)
        : rows(all), first(number), stride(rows.map.only_stride()), base(rows.row(number).base) {}
    KOKKOS_FORCEINLINE_FUNCTION auto operator()(int l) const {
      return stride != 0 ? base + l * stride : rows.row(first + l).base;
    }
  };

  /// Rows side by side that are loaded: all of their columns.
  struct WholeRows : RowBases<Source> {
    static constexpr bool is_masked    = false;
    static constexpr bool makes_logits = false;

    int of_each;

    WholeRows(const HostRows& all, std::int64_t number, int)
        : RowBases<Source>(all.source, number), of_each(static_cast<int>(all.cols)) {}
    KOKKOS_FORCEINLINE_FUNCTION ColumnRange columns(int) const { return {0, of_each}; }
    KOKKOS_FORCEINLINE_FUNCTION int count(int) const { return of_each; }
    KOKKOS_FORCEINLINE_FUNCTION Vector<A> load(int l, int, A* held, const Params& of_call) const {
      return Placement::load_from((*this)(l), of_each, held, of_call);
    }
  };

  /// Rows side by side that are loaded under a mask.
  struct MaskedRowsInLanes {
    static constexpr bool is_masked    = true;
    static constexpr bool makes_logits = MakesLogits<Row>;

    RawArray<Row, simd_width<A>> row;

    MaskedRowsInLanes(const HostRows& all, std::int64_t number, int n) {
      for (int l = 0; l < simd_width<A>; ++l) new (row.at(l)) Row(all.source.row(number + std::min(l, n - 1)));
    }
    KOKKOS_FORCEINLINE_FUNCTION auto operator()(int l) const { return row[l].base + row[l].allowed.begin; }
    KOKKOS_FORCEINLINE_FUNCTION ColumnRange columns(int l) const { return row[l].allowed; }
    KOKKOS_FORCEINLINE_FUNCTION int count(int l) const {
      return static_cast<int>(row[l].allowed.end - row[l].allowed.begin);
    }
    KOKKOS_FORCEINLINE_FUNCTION Vector<A> load(int l, int from, A* held, const Params& of_call) const {
      return Placement::load_neighbours(row[l], {row[l].allowed.begin + from, count(l) - from}, held, of_call);
    }
  };
  using RowsInLanes = std::conditional_t<is_masked, MaskedRowsInLanes, WholeRows>;

  template <class Member, class Writer>
  void do_rows_by_lanes(const Member& team, std::int64_t begin, std::int64_t end, A* held, Writer& writer) const {
    constexpr int lanes = simd_width<A>;
    // Narrow rows are summed column by column; rows that do not lie side by side in memory cannot be, so
    // batch-invariant rows are not narrow.
    const bool is_narrow    = !is_masked && cols <= NarrowRows<op, Params>::most_cols && !batch_invariant;
    const std::int64_t step = std::int64_t(team.team_size()) * lanes;
    typename LaneRows<op, Placement, Params>::Maxima maxima;
    RawArray<RowsInLanes, 2> known;  // these rows, and the next ones
    bool has_next = false;
    int mine      = 0;
    for (std::int64_t first = begin + std::int64_t(team.team_rank()) * lanes; first < end;
         first += step, mine = 1 - mine) {
      const int n = static_cast<int>(std::min<std::int64_t>(lanes, end - first));
      if (!has_next) new (known.at(mine)) RowsInLanes(*this, first, n);
      const RowsInLanes& in = known[mine];
      const RowBases<Output> out(output, first);
      if constexpr (!is_masked) {
        if (is_narrow) {
          NarrowRows<op, Params>::softmax(params, n, static_cast<int>(cols), nontemporal_stores, in, out);
          continue;
        }
      }
      has_next = first + step + lanes <= end;
      if (has_next) new (known.at(1 - mine)) RowsInLanes(*this, first + step, lanes);
      LaneRows<op, Placement, Params>::softmax(params, n, static_cast<int>(cols), writer, in, out, held, maxima,
                                               has_next ? known[1 - mine] : in, has_next);
    }
  }

  template <class Member, class Writer>
  void do_several_rows(const Member& team, std::int64_t begin, std::int64_t end, A* held, Writer& writer) const {
    constexpr int most      = 64;
    const int padded        = static_cast<int>((cols + simd_width<A> - 1) / simd_width<A> * simd_width<A>);
    const int at_once       = std::clamp(length / 2 / std::max(1, padded), 1, most);  // with room for their results
    const std::int64_t step = std::int64_t(team.team_size()) * at_once;
    const Placement placement;
    NextPiece<A> next{};
    for (std::int64_t first = begin + std::int64_t(team.team_rank()) * at_once; first < end; first += step) {
      const int n = static_cast<int>(std::min<std::int64_t>(at_once, end - first));
      RawArray<Row, most> row;
      Piece piece[most];
      for (int i = 0; i < n; ++i) {
        new (row.at(i)) Row(source.row(first + i));
        piece[i] = only_piece(row[i]);
      }
      const auto held_row = [&](int i) {
        A* const result = padded == cols ? memory_of_result(row[i], first + i) : nullptr;
        if (result != nullptr) return result + piece[i].begin;
        return Placement::holds_pieces ? held + i * padded : held;
      };
      A loaded[most];
      RawArray<State, most> state;
      RawArray<Facts, most> facts;
      RowEpilogue epilogue[most];
      for (int i = 0; i < n; ++i) facts[i] = facts_of(row[i], {0, cols});
      if (logits_of(first) == nullptr) {
        for (int i = 0; i < n; ++i) loaded[i] = placement.load(row[i], piece[i], held_row(i), params);
      }
      for (int i = 0; i < n; ++i) {
        const std::int64_t behind = i + 1 < n ? first + i + 1 : first + step;
        if (logits_of(first) != nullptr) {
          loaded[i]   = next.known_or(piece[i].count, [&](int done) {
            return placement.load(row[i], behind_some(piece[i], done), held_row(i) + done, params);
          });
          next.logits = behind < end ? logits_of(behind) : nullptr;
          next.count  = piece[i].count;
          if constexpr (is_masked) {
            if (next.logits != nullptr) {
              const Piece after = i + 1 < n ? piece[i + 1] : only_piece(source.row(behind));
              next.logits += after.begin;
              next.count = std::min(next.count, after.count);
            }
          }
        }
        next.ahead = ahead_of(first + i + n, piece[i].begin, held);
        state[i]   = placement.reduce(row[i], piece[i], held_row(i), params, loaded[i], next);
      }
      for (int i = 0; i < n; ++i) {
        const State total = completed(params, row[i], state[i]);
        conclude(total, state[i], facts[i], epilogue[i]);
        store_values(total, facts[i], first + i);
      }
      if constexpr (writes_rows) {
        for (int i = 0; i < n; ++i) {
          const auto out         = output.row(first + i);
          const ColumnRange span = {piece[i].begin, piece[i].begin + piece[i].count};
          fill_masked(out, {0, span.begin}, epilogue[i], writer);
          placement.write(row[i], out, piece[i], held_row(i), params, epilogue[i], writer);
          fill_masked(out, {span.end, cols}, epilogue[i], writer);
        }
      }
    }
  }

  /// All columns of a short row that are loaded.
  Piece only_piece(const Row& row) const { return piece_of(RowPart::whole<V>(row, cols, 0).packs, length, 0); }
  static Piece behind_some(const Piece& piece, int done) { return {piece.begin + done, piece.count - done}; }

  /// Writes columns that a mask rules out.
  template <class OutputRow, class Writer>
  void fill_masked([[maybe_unused]] const OutputRow& out, [[maybe_unused]] const ColumnRange& columns,
                   [[maybe_unused]] const RowEpilogue& epilogue, [[maybe_unused]] Writer& writer) const {
    if constexpr (is_masked) {
      constexpr std::int64_t most = std::int64_t(1) << 30;
      const auto value            = splat<Vector<A>>(epilogue.of_masked(params));
      for (std::int64_t begin = columns.begin; begin < columns.end; begin += most) {
        const Piece piece{begin, static_cast<int>(std::min(most, columns.end - begin))};
        write_vectors<V, A>(out, piece, writer, [&](int, int) KOKKOSNN_IMPL_INLINED { return value; });
      }
    }
  }

  /// Asks for what a thread with these columns of a row knows of its label, before anything is written.
  template <class Row>
  Facts facts_of([[maybe_unused]] const Row& row, [[maybe_unused]] const ColumnRange& columns) const {
    if constexpr (has_label) {
      return Placement::facts_of(row, columns, params);
    } else {
      return {};
    }
  }

  /// Makes the epilogue of a row that is written.
  void conclude(const State& total, const State& own, [[maybe_unused]] const Facts& facts,
                RowEpilogue& epilogue) const {
    [[maybe_unused]] const State& reference = Placement::has_own_reference ? own : total;
    if constexpr (has_label && writes_rows) {
      epilogue = Placement::epilogue_of(params, reference, total, facts);
    } else if constexpr (writes_rows) {
      epilogue = make_epilogue<RowEpilogue>(params, reference, total);
    }
  }

  /// Stores what is one value a row.
  void store_values(const State& total, [[maybe_unused]] const Facts& facts, std::int64_t row) const {
    if constexpr (has_label) {
      Placement::store_values(output, params, total, facts, row);
    } else if constexpr (!writes_rows) {
      output.store(OpEpilogue::value(params, total), row);
    }
  }

  /// Processes rows of several pieces, which the threads of a team share.
  template <class Member, class Writer>
  void do_long_rows(const Member& team, std::int64_t begin, std::int64_t end, A* own, Writer& writer) const {
    auto* const states = static_cast<State*>(team_scratch(team, scratch_level, scratch_bytes));
    auto* const kept   = reinterpret_cast<A*>(host_aligned(reinterpret_cast<char*>(states + states_of({0, cols}))));
    NextPiece<A> next{};
    for (std::int64_t row = begin; row < end; ++row) {
      if (row > begin && team.team_size() > 1) team.team_barrier();  // other threads may still read the states
      const bool has_next = row + 1 < end && team.team_size() == 1;
      do_long_row(team, row, states, Placement::keeps_rows ? kept : nullptr, own, next, has_next, writer);
    }
    if (team.team_size() > 1) team.team_barrier();
  }

  static KOKKOS_INLINE_FUNCTION std::int64_t pieces_of(const ColumnRange& span) {
    return (span.end - span.begin + length - 1) / length;
  }
  static KOKKOS_INLINE_FUNCTION std::int64_t states_of(const ColumnRange& span) {
    const std::int64_t pieces = pieces_of(span);
    const std::int64_t each   = std::max<std::int64_t>(1, host_pieces_a_state(pieces));
    return (pieces + each - 1) / each;
  }

  template <class Member, class Writer>
  void do_long_row(const Member& team, std::int64_t number, State* states, A* kept, A* own, NextPiece<A>& next,
                   bool has_next, Writer& writer) const {
    const Placement placement;
    const auto row            = source.row(number);
    const ColumnRange span    = RowPart::whole<V>(row, cols, 0).packs;
    const int size            = piece_length(span);
    const std::int64_t pieces = pieces_of(span);
    const std::int64_t all    = states_of(span);
    const std::int64_t each   = host_pieces_a_state(pieces);  // one if rows are kept, as those are shorter
    const std::int64_t first  = all * team.team_rank() / team.team_size();
    const std::int64_t last   = all * (team.team_rank() + 1) / team.team_size();
    A* const result           = memory_of_result(row, number);
    const ColumnRange columns = {span.begin + std::min(pieces, first * each) * size,
                                 last == all ? span.end : span.begin + last * each * size};
    const Facts facts         = facts_of(row, columns);
    const auto held           = [&](std::int64_t p) {
      if (result != nullptr) return result + span.begin + p * size;
      return kept != nullptr ? kept + p * size : own;
    };
    const A* const logits = logits_of(number);
    const auto reduced    = [&](std::int64_t p) {
      const Piece piece = piece_of(span, size, p);
      const A loaded    = next.known_or(
          piece.count, [&](int done) { return placement.load(row, behind_some(piece, done), held(p) + done, params); });
      const bool behind = p + 1 < std::min(pieces, last * each);
      const A* const of = behind ? logits : has_next ? logits_of(number + 1) : nullptr;
      const Piece after = behind ? piece_of(span, size, p + 1) : first_piece(has_next ? number + 1 : number);
      next.logits       = of != nullptr ? of + after.begin : nullptr;
      next.count        = std::min(piece.count, after.count);
      next.ahead        = ahead_in(row, piece.begin + size, own);
      return placement.reduce(row, piece, held(p), params, loaded, next);
    };
    for (std::int64_t s = first; s < last; ++s) {
      states[s] = reduced(s * each);
      if constexpr (is_joined<State>) {
        for (std::int64_t p = s * each + 1; p < std::min(pieces, (s + 1) * each); ++p) {
          states[s] = merge_two(params, states[s], reduced(p));
        }
      }
    }
    if (team.team_size() > 1) team.team_barrier();
    const State total = completed(params, row, joined(states, all));
    if constexpr (has_label) {
      if (facts.is_mine) store_values(total, facts, number);
    } else if (team.team_rank() == 0) {
      store_values(total, facts, number);
    }
    if constexpr (writes_rows) {
      const auto out      = output.row(number);
      const auto fill_own = [&](const ColumnRange& masked) {
        if constexpr (is_masked) {
          RowEpilogue epilogue;
          conclude(total, total, facts, epilogue);
          fill_masked(out, share_of(masked, team.team_rank(), team.team_size()), epilogue, writer);
        }
      };
      fill_own({0, span.begin});
      RowEpilogue epilogue;
      for (std::int64_t p = first * each; p < std::min(pieces, last * each); ++p) {
        conclude(total, states[p / each], facts, epilogue);
        placement.write(row, out, piece_of(span, size, p), held(p), params, epilogue, writer);
      }
      fill_own({span.end, cols});
    }
  }

  /// First piece of a row that has several.
  Piece first_piece(std::int64_t number) const {
    const ColumnRange span = RowPart::whole<V>(source.row(number), cols, 0).packs;
    return piece_of(span, piece_length(span), 0);
  }

  /// Part of the columns that a thread fills: whole cache lines, but at the ends.
  static ColumnRange share_of(const ColumnRange& columns, int rank, int threads) {
    constexpr std::int64_t line = host_line;
    const std::int64_t count    = columns.end - columns.begin;
    const std::int64_t each     = ((count + threads - 1) / threads + line - 1) / line * line;
    return {columns.begin + std::min(count, rank * each), columns.begin + std::min(count, (rank + 1) * each)};
  }

  /// Joins the states in the order of the columns.
  State joined(const State* states, std::int64_t count) const {
    State total;
    if constexpr (is_joined<State>) {
      for (std::int64_t s = 0; s < count; ++s) total = merge_two(params, total, states[s]);
    } else {
      total = states[0];
    }
    return total;
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_ROWS_HPP
