// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_KERNELS_HOST_ROWS_HPP
#define KOKKOSNN_IMPL_KERNELS_HOST_ROWS_HPP

#include <KokkosNN/impl/device_traits.hpp>
#include <KokkosNN/impl/primitives/finish.hpp>
#include <KokkosNN/impl/primitives/host_lanes.hpp>
#include <KokkosNN/impl/primitives/host_sums.hpp>
#include <KokkosNN/impl/primitives/lanes.hpp>
#include <KokkosNN/impl/primitives/tile.hpp>
#include <KokkosNN/impl/primitives/vector.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

// vector_lanes, team_registers, team_scratch and team_online on a host. A row is cut into pieces that stay in the
// first-level cache, and a thread goes through a piece by few loops of vectors; short rows are taken many at a time, so
// that what is done once a row, one long chain of scalar instructions, is in flight for several of them. Each piece has
// its own state, and they are joined in the order of the columns: no bit depends on which thread had which piece. What a
// piece's loops do is the storage's:
//
//   storage.load(row, piece, held, math)                    -> what `reduce` wants to know: the largest logit, or nothing
//   storage.reduce(row, piece, held, math, loaded, ahead)   -> the piece's state; asks for the cache lines from `ahead`
//                                                              on, which the next piece's load will want
//   storage.write(row, sink, piece, held, math, finish, streams)

namespace KokkosNN::Impl {

/// Columns of a row.
struct Piece {
  std::int64_t begin;
  int count;

  KOKKOS_FORCEINLINE_FUNCTION RowPart part() const { return {{begin, begin + count}, 0, false}; }
};

/// A row that lies in memory as the accumulator type, if its elements are neighbours.
template <class Row, class A>
concept MemoryOf = lanes_of<A> > 1 && requires(const Row& row) {
  row.base;
  row.stride;
  requires std::is_same_v<typename Row::value_type, A>;
};

/// Elements from `pointer` to the next one that a vector may be streamed to.
template <class A>
KOKKOS_FORCEINLINE_FUNCTION int elements_to_boundary(const A* pointer) {
  return (lanes_of<A> - pack_phase<A, lanes_of<A>>(pointer)) % lanes_of<A>;
}

/// Writes value(i, n), of which n lanes count, for i = 0, lanes, 2 lanes, ...; past the caches where `streams`.
template <class A, class Value>
KOKKOS_FORCEINLINE_FUNCTION void write_vectors(A* to, int count, bool streams, const Value& value) {
  constexpr int lanes = lanes_of<A>;
  int i               = 0;
  if (streams) {
    const int head = std::min(count, elements_to_boundary(to));
    if (head > 0) store_lanes(to, value(0, head), head);
    for (i = head; i + lanes <= count; i += lanes) stream_vector(to + i, value(i, lanes));
  } else {
    for (; i + lanes <= count; i += lanes) store_vector(to + i, value(i, lanes));
  }
  if (i < count) store_lanes(to + i, value(i, count - i), count - i);
}

struct JoinMaxima {
  template <class T>
  KOKKOS_FORCEINLINE_FUNCTION T operator()(const T& a, const T& b) const {
    return max_ignoring_nan(a, b);
  }
};

/// Softmax and its kin. `keeps`: what was loaded, or its exponentials, stays until it is written; otherwise it is loaded
/// and computed anew.
template <RowOperator op, int V, class Math, bool keeps>
struct HostLogits {
  using A                                  = typename Math::accumulator;
  using T                                  = Vector<A>;
  static constexpr int lanes               = lanes_of<A>;
  static constexpr bool keeps_rows         = keeps;
  static constexpr bool has_own_reference  = keeps;
  static constexpr bool holds_pieces       = true;
  static constexpr bool keeps_exponentials = keeps && Finish<op>::keeps_exponentials;

  /// Fills the last vector up with -inf.
  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION A load(const Row& row, const Piece& piece, A* held, const Math& math) const {
    if constexpr (MemoryOf<Row, A>) {
      if (row.stride == 1) {
        return fold_lanes(load_from(row.base + piece.begin, piece.count, held, math), JoinMaxima{});
      }
    }
    return load_packs(row, piece, held, math);
  }

  /// From memory; the largest logits by lanes.
  KOKKOS_FORCEINLINE_FUNCTION static T load_from(const A* from, int count, A* held, const Math& math) {
    return math.sign < A(0) ? load_vectors<true>(from, count, held) : load_vectors<false>(from, count, held);
  }

  template <class Row>
  KOKKOS_FORCEINLINE_FUNCTION typename Math::State reduce(const Row&, const Piece& piece, A* held, const Math& math, A max,
                                                     const void* ahead) const {
    const A reference = math.exp.reference_of(max);
    const auto at     = math.exp.at(finite_reference(reference));
    return {reference, sums_of(held, piece.count, math, splat_reference<T>(at), static_cast<const char*>(ahead)).total()};
  }

  template <class Row, class SinkRow, class FinishRow>
  KOKKOS_FORCEINLINE_FUNCTION void write(const Row& row, const SinkRow& sink, const Piece& piece, A* held, const Math math,
                                    const FinishRow finish, bool streams) const {
    if constexpr (keeps) {
      write_values(sink, piece, streams, held, [&](const auto& kept) KOKKOSNN_IMPL_INLINED { return finish(math, kept); });
    } else {
      load(row, piece, held, math);
      write_values(sink, piece, streams, held, [&](const auto& x) KOKKOSNN_IMPL_INLINED { return finish.from_input(math, x); });
    }
  }

  /// Of what was loaded, relative to `at`; the exponentials take its place if they are kept.
  KOKKOS_FORCEINLINE_FUNCTION static HostSums<Math> sums_of(A* held, int count, const Math& math,
                                                            const ExpReference<T>& at, const char* ahead) {
    constexpr int line = 64;
    HostSums<Math> sums;
    const auto exp         = math.exp;  // a copy: what is read through a reference is read again after every store
    const auto exponential = [&](int i) KOKKOSNN_IMPL_INLINED {
      const T e = exp(load_vector(held + i), at);
      if constexpr (keeps_exponentials) store_vector(held + i, e);
      return e;
    };
    const auto look_ahead = [&](int i, int elements) KOKKOSNN_IMPL_INLINED {
      for (int byte = 0; byte < elements * int(sizeof(A)); byte += line) prefetch_line(ahead + i * sizeof(A) + byte);
    };
    int i = 0;
    for (; i + 3 * lanes < count; i += 4 * lanes) {
      look_ahead(i, 4 * lanes);
      const T a = exponential(i), b = exponential(i + lanes);
      const T c = exponential(i + 2 * lanes), d = exponential(i + 3 * lanes);
      sums.add((a + b) + (c + d));
    }
    for (; i < count; i += lanes) {
      look_ahead(i, lanes);
      sums.add(exponential(i));
    }
    return sums;
  }

 private:
  template <bool negates>
  KOKKOS_FORCEINLINE_FUNCTION static T load_vectors(const A* from, int count, A* held) {
    constexpr A infinity = Kokkos::Experimental::infinity_v<A>;
    T max[4];
    for (T& m : max) m = splat<T>(-infinity);
    const auto take = [&](int i, int k, T x) KOKKOSNN_IMPL_INLINED {
      if constexpr (negates) x = -x;
      store_vector(held + i, x);
      max[k] = max_ignoring_nan(max[k], x);
    };
    int i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      take(i, 0, load_vector(from + i));
      take(i + lanes, 1, load_vector(from + i + lanes));
      take(i + 2 * lanes, 2, load_vector(from + i + 2 * lanes));
      take(i + 3 * lanes, 3, load_vector(from + i + 3 * lanes));
    }
    for (; i + lanes <= count; i += lanes) take(i, 0, load_vector(from + i));
    if (i < count) take(i, 1, load_lanes(from + i, count - i, negates ? infinity : -infinity));
    return max_ignoring_nan(max_ignoring_nan(max[0], max[1]), max_ignoring_nan(max[2], max[3]));
  }

  /// Any row, by packs as all kernels load them.
  template <class Row>
  KOKKOS_INLINE_FUNCTION static A load_packs(const Row& row, const Piece& piece, A* held, const Math& math) {
    const auto stretch = row.template from<V>(piece.begin);
    const int end      = (piece.count + lanes - 1) / lanes * lanes;
    A max              = -Kokkos::Experimental::infinity_v<A>;
    for (int c = 0; c < piece.count; c += V) {
      Tile<A, V, 1> tile;
      tile.load(stretch, PackWalk{c, V, 0}, Window{piece.count}, math);
      max             = max_ignoring_nan(max, tile.max());
      const int count = end - c < V ? end - c : V;
      for (int v = 0; v < count; ++v) held[c + v] = tile.pack[0][v];
    }
    return max;
  }

  template <class SinkRow, class Value>
  KOKKOS_FORCEINLINE_FUNCTION static void write_values(const SinkRow& sink, const Piece& piece, bool streams, const A* held,
                                                  const Value& value) {
    if constexpr (MemoryOf<SinkRow, A>) {
      if (sink.stride == 1) {
        return write_vectors(sink.base + piece.begin, piece.count, streams,
                             [&](int i, int) KOKKOSNN_IMPL_INLINED { return value(load_vector(held + i)); });
      }
    }
    using Y            = typename SinkRow::value_type;
    const auto stretch = sink.template from<V>(piece.begin);
    for (int c = 0; c < piece.count; c += V) {
      Pack<Y, V> result{};
      const int count = piece.count - c < V ? piece.count - c : V;
      for (int v = 0; v < count; ++v) result[v] = static_cast<Y>(value(held[c + v]));
      stretch.template store_pack<V>(result, c, Window{piece.count});
    }
  }
};

/// Rows of few columns, as many as there are lanes, turned: one a lane. A row's bits don't depend on how many of the
/// others exist.
template <RowOperator op, class Math>
struct NarrowRows {
  using A                          = typename Math::accumulator;
  using T                          = Vector<A>;
  using Finisher                   = Finish<op>;
  static constexpr int lanes       = lanes_of<A>;
  static constexpr int most_cols   = 2 * lanes;
  static constexpr bool keeps      = [] {
    if constexpr (requires { Finisher::keeps_exponentials; }) return Finisher::keeps_exponentials;
    return false;
  }();

  /// `in(l)`, `out(l)`: where a row begins.
  template <class In, class Out>
  KOKKOS_INLINE_FUNCTION static void softmax(const Math& math, int rows, int cols, bool streams, const In& in,
                                             const Out& out) {
    T held[most_cols];
    const auto finish = finish_own_lanes<Finisher>(math, reduce(math, rows, cols, held, in));
    for (int begin = 0; begin < cols; begin += lanes) {
      const int count = cols - begin < lanes ? cols - begin : lanes;
      T tile[lanes];
      for (int c = 0; c < lanes; ++c) tile[c] = finish(math, held[begin + c]);
      transpose<A>(tile);
      for (int l = 0; l < rows; ++l) {
        A* const to = out(l) + begin;
        if (count < lanes) {
          store_lanes(to, tile[l], count);
        } else if (streams && elements_to_boundary(to) == 0) {
          stream_vector(to, tile[l]);
        } else {
          store_vector(to, tile[l]);
        }
      }
    }
  }

  template <class In>
  KOKKOS_FORCEINLINE_FUNCTION static LaneState<Math> reduce(const Math& math, int rows, int cols, T (&held)[most_cols],
                                                            const In& in) {
    const A pad = math.template pad<A>();
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
        const T x       = tile[c] * splat<T>(math.sign);
        held[begin + c] = x;
        max             = max_ignoring_nan(max, x);
      }
    }
    return reduce_side_by_side<keeps>(math, reinterpret_cast<A*>(held), cols, lanes, max);
  }
};

/// Rows of not very many columns, as many as there are lanes. What is done once a row is done for all of them at once:
/// the last vectors of each row's maximum and sum are turned and joined lane by lane.
template <RowOperator op, class Storage, class Math>
struct LaneRows {
  using A                    = typename Math::accumulator;
  using T                    = Vector<A>;
  using Narrow               = typename Finish<op>::template Row<Math, A>;
  static constexpr int lanes = lanes_of<A>;

  /// `held` has room for the rows, each up to a whole vector.
  template <class In, class Out>
  KOKKOS_INLINE_FUNCTION static void softmax(const Math& math, int rows, int cols, bool streams, const In& in,
                                             const Out& out, A* held, const A* ahead) {
    const int padded = (cols + lanes - 1) / lanes * lanes;
    T high[lanes], low[lanes];
    for (int l = 0; l < lanes; ++l) {
      high[l] = l < rows ? Storage::load_from(in(l), cols, held + l * padded, math)
                         : splat<T>(-Kokkos::Experimental::infinity_v<A>);
    }
    transpose<A>(high);
    for (int l = 1; l < lanes; ++l) high[0] = max_ignoring_nan(high[0], high[l]);

    LaneState<Math> state(math, high[0]);
    RawArray<ExpReference<A>, lanes> at;
    take_apart<A>(state.at, at);
    for (int l = 0; l < lanes; ++l) {
      HostSums<Math> sums;
      if (l < rows) {
        sums = Storage::sums_of(held + l * padded, cols, math, splat_reference<T>(at[l]),
                                reinterpret_cast<const char*>(ahead + l * padded));
      }
      const TwoWords<T> words = sums.words();
      high[l]                 = words.high;
      low[l]                  = words.low;
    }
    transpose<A>(high);
    transpose<A>(low);
    state.sum = {high[0], low[0]};
    for (int l = 1; l < lanes; ++l) state.sum = state.sum + TwoWords<T>{high[l], low[l]};

    RawArray<Narrow, lanes> finish;
    take_apart<A>(finish_own_lanes<Finish<op>>(math, state), finish);
    for (int l = 0; l < rows; ++l) {
      write_vectors(out(l), cols, streams,
                    [&](int i, int) KOKKOSNN_IMPL_INLINED { return finish[l](math, load_vector(held + l * padded + i)); });
    }
  }
};

/// The TeamPolicy functor.
template <RowOperator op, int V, class Storage, class Math, class Source, class Sink>
struct HostRows {
  using A                     = typename Math::accumulator;
  using State                 = typename Math::State;
  using Finisher              = Finish<op>;
  static constexpr int length = host_piece(sizeof(A));  // of a piece

  Source source;
  Sink sink;
  Math math;
  std::int64_t rows;
  std::int64_t cols;
  int rows_per_team;
  bool streams;
  bool batch_invariant;
  int scratch_level;
  int scratch_bytes;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    KOKKOS_IF_ON_HOST((do_rows(team);))
  }

 private:
  struct NoResult {};
  template <class M, bool>
  struct FinishOf {
    using type = NoResult;
  };
  template <class M>
  struct FinishOf<M, false> {
    using type = typename Finisher::template Row<M, A>;
  };
  using FinishRow = typename FinishOf<Math, Finisher::one_value_a_row>::type;

  template <class Member>
  void do_rows(const Member& team) const {
    alignas(vector_bytes) A held[Storage::holds_pieces ? length + V : 1];
    for (std::int64_t block = std::int64_t(team.league_rank()) * rows_per_team; block < rows;
         block += std::int64_t(team.league_size()) * rows_per_team) {
      const std::int64_t end = std::min(rows, block + rows_per_team);
      cols <= length ? do_short_rows(team, block, end, held) : do_long_rows(team, block, end, held);
    }
    if (streams) end_streaming();
  }

  static KOKKOS_FORCEINLINE_FUNCTION Piece piece_of(const Span& span, std::int64_t number) {
    const std::int64_t begin = span.begin + number * length;
    return {begin, static_cast<int>(std::min<std::int64_t>(length, span.end - begin))};
  }

  /// Where a row that is loaded later lies, if that is memory.
  const void* address_of(std::int64_t row, const void* otherwise) const {
    if constexpr (requires { source.row(row).base; }) {
      return source.row(std::min(row, rows - 1)).base;
    } else {
      return otherwise;
    }
  }

  /// Where a row's result goes, if whole pieces of the row are kept there until it is written, so that the second-level
  /// cache has them once: rows in memory, as another source might still read what lies there.
  template <class Row>
  A* memory_of_result([[maybe_unused]] const Row& row, [[maybe_unused]] std::int64_t number) const {
    if constexpr (!Finisher::one_value_a_row && Storage::keeps_rows && !GivesItsPacks<Row, V> && MemoryOf<Row, A>) {
      const auto output = sink.row(number);
      if constexpr (MemoryOf<std::decay_t<decltype(output)>, A>) {
        if (!streams && row.stride == 1 && output.stride == 1) return output.base;
      }
    }
    return nullptr;
  }

  /// Whether rows of few columns are turned: where they lie in memory as they are computed with.
  template <class Row, class SinkRow>
  static constexpr bool has_narrow_rows =
      Storage::keeps_rows && !Finisher::one_value_a_row && MemoryOf<Row, A> && MemoryOf<SinkRow, A>;

  /// Rows of one piece, several at a time.
  template <class Member>
  void do_short_rows(const Member& team, std::int64_t begin, std::int64_t end, A* held) const {
    if constexpr (!Finisher::one_value_a_row) {
      using Row     = decltype(source.row(0));
      using SinkRow = decltype(sink.row(0));
      if constexpr (has_narrow_rows<Row, SinkRow>) {
        const bool are_neighbours = source.row(begin).stride == 1 && sink.row(begin).stride == 1;
        if (cols <= length / lanes_of<A> && are_neighbours) return do_rows_by_lanes(team, begin, end, held);
      }
      if constexpr (requires { Storage::has_row_loops; }) {
        const std::int64_t size = team.team_size(), count = end - begin;
        const std::int64_t first = begin + count * team.team_rank() / size;
        const std::int64_t last  = begin + count * (team.team_rank() + 1) / size;
        if (Storage::template write_rows<FinishRow>(math, source, sink, first, last, static_cast<int>(cols), streams)) return;
      }
    }
    do_several_rows(team, begin, end, held);
  }

  /// Where rows from some row on begin: found by one addition each, where that is so.
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

  template <class Member>
  void do_rows_by_lanes(const Member& team, std::int64_t begin, std::int64_t end, A* held) const {
    constexpr int lanes  = lanes_of<A>;
    // A row that is turned is summed column by column; rows that do not lie side by side in memory cannot be.
    const bool is_narrow = cols <= NarrowRows<op, Math>::most_cols && !batch_invariant;
    for (std::int64_t first = begin + std::int64_t(team.team_rank()) * lanes; first < end;
         first += std::int64_t(team.team_size()) * lanes) {
      const int n = static_cast<int>(std::min<std::int64_t>(lanes, end - first));
      const RowBases<Source> in(source, first);
      const RowBases<Sink> out(sink, first);
      if (is_narrow) {
        NarrowRows<op, Math>::softmax(math, n, static_cast<int>(cols), streams, in, out);
      } else {
        LaneRows<op, Storage, Math>::softmax(math, n, static_cast<int>(cols), streams, in, out, held, in(lanes));
      }
    }
  }

  template <class Member>
  void do_several_rows(const Member& team, std::int64_t begin, std::int64_t end, A* held) const {
    constexpr int most = 64;
    const int padded   = static_cast<int>((cols + lanes_of<A> - 1) / lanes_of<A> * lanes_of<A>);
    const int at_once  = std::clamp(length / std::max(1, padded), 1, most);
    const Storage storage;
    for (std::int64_t first = begin + std::int64_t(team.team_rank()) * at_once; first < end;
         first += std::int64_t(team.team_size()) * at_once) {
      const int n         = static_cast<int>(std::min<std::int64_t>(at_once, end - first));
      const auto piece    = [&](const auto& row) { return piece_of(RowPart::whole<V>(row, cols, 0).packs, 0); };
      const auto held_row = [&](int i) { return Storage::holds_pieces ? held + i * padded : held; };
      A loaded[most];
      RawArray<State, most> state;
      FinishRow finish[most];
      for (int i = 0; i < n; ++i) {
        const auto row = source.row(first + i);
        loaded[i]      = storage.load(row, piece(row), held_row(i), math);
      }
      for (int i = 0; i < n; ++i) {
        const auto row = source.row(first + i);
        state[i] = storage.reduce(row, piece(row), held_row(i), math, loaded[i], address_of(first + i + n, held));
      }
      for (int i = 0; i < n; ++i) {
        conclude(completed(math, source.row(first + i), state[i]), state[i], first + i, finish[i]);
      }
      if constexpr (!Finisher::one_value_a_row) {
        for (int i = 0; i < n; ++i) {
          const auto row    = source.row(first + i);
          const auto output = sink.row(first + i);
          storage.write(row, output, piece(row), held_row(i), math, finish[i], streams);
          write_others<V>(row, output, cols, 0, 1, math, finish[i]);
        }
      }
    }
  }

  /// A row's one value is stored; otherwise its finish is made.
  void conclude(const State& total, const State& own, std::int64_t row, FinishRow& finish) const {
    if constexpr (Finisher::one_value_a_row) {
      sink.store(Finisher::value(math, total), row);
    } else {
      finish = finish_row<FinishRow>(math, Storage::has_own_reference ? own : total, total);
    }
  }

  /// Rows of several pieces, which the threads of a team share.
  template <class Member>
  void do_long_rows(const Member& team, std::int64_t begin, std::int64_t end, A* own) const {
    auto* const states = static_cast<State*>(team_scratch(team, scratch_level, scratch_bytes));
    auto* const kept   = reinterpret_cast<A*>(host_aligned(reinterpret_cast<char*>(states + states_of({0, cols}))));
    for (std::int64_t row = begin; row < end; ++row) {
      if (row > begin && team.team_size() > 1) team.team_barrier();  // the states may still be read
      do_long_row(team, row, states, Storage::keeps_rows ? kept : nullptr, own);
    }
    if (team.team_size() > 1) team.team_barrier();
  }

  static KOKKOS_INLINE_FUNCTION std::int64_t pieces_of(const Span& span) {
    return (span.end - span.begin + length - 1) / length;
  }
  static KOKKOS_INLINE_FUNCTION std::int64_t states_of(const Span& span) {
    const std::int64_t pieces = pieces_of(span);
    const std::int64_t each   = std::max<std::int64_t>(1, host_pieces_a_state(pieces));
    return (pieces + each - 1) / each;
  }

  template <class Member>
  void do_long_row(const Member& team, std::int64_t number, State* states, A* kept, A* own) const {
    const Storage storage;
    const auto row            = source.row(number);
    const Span span           = RowPart::whole<V>(row, cols, 0).packs;
    const std::int64_t pieces = pieces_of(span);
    const std::int64_t all    = states_of(span);
    const std::int64_t each   = host_pieces_a_state(pieces);  // one where rows are kept, as those are not so long
    const std::int64_t first  = all * team.team_rank() / team.team_size();
    const std::int64_t last   = all * (team.team_rank() + 1) / team.team_size();
    A* const result           = memory_of_result(row, number);
    const auto held           = [&](std::int64_t p) {
      if (result != nullptr && (p + 1) * length <= cols) return result + p * length;  // nothing lies behind its vectors
      return kept != nullptr ? kept + p * length : own;
    };
    const auto reduced = [&](std::int64_t p) {
      const Piece piece = piece_of(span, p);
      const A loaded    = storage.load(row, piece, held(p), math);
      const void* ahead = static_cast<const char*>(address_of(number, own)) + (piece.begin + length) * sizeof(A);
      return storage.reduce(row, piece, held(p), math, loaded, ahead);
    };
    for (std::int64_t s = first; s < last; ++s) {
      states[s] = reduced(s * each);
      if constexpr (is_joined<State>) {
        for (std::int64_t p = s * each + 1; p < std::min(pieces, (s + 1) * each); ++p) {
          states[s] = merge_two(math, states[s], reduced(p));
        }
      }
    }
    if (team.team_size() > 1) team.team_barrier();
    const State total = completed(math, row, joined(states, all));
    if constexpr (Finisher::one_value_a_row) {
      if (team.team_rank() == 0) sink.store(Finisher::value(math, total), number);
    } else {
      const auto output = sink.row(number);
      FinishRow finish;
      for (std::int64_t p = first * each; p < std::min(pieces, last * each); ++p) {
        conclude(total, states[p / each], number, finish);
        storage.write(row, output, piece_of(span, p), held(p), math, finish, streams);
      }
      conclude(total, total, number, finish);
      write_others<V>(row, output, cols, team.team_rank(), team.team_size(), math, finish);
    }
  }

  /// In the order of the columns.
  State joined(const State* states, std::int64_t count) const {
    State total;
    if constexpr (is_joined<State>) {
      for (std::int64_t s = 0; s < count; ++s) total = merge_two(math, total, states[s]);
    } else {
      total = states[0];
    }
    return total;
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNELS_HOST_ROWS_HPP
