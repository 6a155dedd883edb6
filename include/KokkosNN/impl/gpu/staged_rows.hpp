// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_STAGED_ROWS_HPP
#define KOKKOSNN_IMPL_GPU_STAGED_ROWS_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/pair_tile.hpp>
#include <KokkosNN/impl/gpu/device/staging.hpp>
#include <KokkosNN/impl/gpu/device/tile.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

// Kernel vector_lanes of a GPU for many short rows that lie one behind another in one range of memory (`one_piece`) but
// begin between packs: a row a thread, through team scratch (`RowKernel::staged_rows`). Memory sees whole packs, and no
// thread waits for another except at two barriers. Gradients have a functor, too.
//   softmax 1048576 x 7 f32, H200 | 26 us | lanes that load packs, and edges, from memory 100

namespace KokkosNN::Impl {

/// Rows of a team: those from `first` on, one a thread.
struct RowsOfTeam {
  std::int64_t first;
  int count;
  int thread;
  int threads;

  template <class Member>
  KOKKOS_INLINE_FUNCTION RowsOfTeam(const Member& team, std::int64_t rows)
      : first(std::int64_t(team.league_rank()) * team.team_size()),
        thread(team.team_rank()),
        threads(team.team_size()) {
    count = rows - first < threads ? static_cast<int>(rows - first) : threads;
  }
  template <class T, int V>
  KOKKOS_INLINE_FUNCTION Staging<T, V> staging(int cols) const {
    return {count * cols, thread, threads};
  }
};

/// TeamPolicy functor of softmax, log-softmax and log-sum-exp.
template <RowOperator op, int V, class Params, class Source, class Output>
struct StagedRows {
  using A          = typename Params::accumulator;
  using T          = typename Source::value_type;
  using State      = typename Params::State;
  using OpEpilogue = Epilogue<op>;

  static constexpr bool writes_rows = !OpEpilogue::one_value_a_row;
  static constexpr bool keeps       = OpEpilogue::keeps_exponentials && std::is_same_v<T, A>;  // in scratch

  // Small, see `most_argument_bytes`.
  Source source;
  Output output;
  std::int64_t rows;
  Params params;
  int cols;
  int prefetching_teams;  // number of teams, the first ones, that prefetch the rows of later ones

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const RowsOfTeam mine(team, rows);
    const auto staging = mine.template staging<T, V>(cols);
    T* const held      = static_cast<T*>(team_scratch(team, 0, mine.threads * cols * int(sizeof(T))));

    staging.fetch(source.data + mine.first * cols, held, source.line_policy(), params.sign < 0);
    prefetch_later_rows(team, source, mine.first, prefetching_teams);
    team.team_barrier();
    if (mine.thread < mine.count) work(held + mine.thread * cols, mine.first + mine.thread);
    if constexpr (writes_rows) {
      team.team_barrier();
      staging.put(output.data + mine.first * cols, held);
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION void work(T* row, std::int64_t number) const {
    constexpr A none = -Kokkos::Experimental::infinity_v<A>;
    A max            = none;
    for_staged(cols, [&](int c, auto n) { max = max_ignoring_nan(max, largest(staged_elements(row + c, n, none))); });
    const auto reference = params.exp.refer(max);
    PackSums<Params, staged_at_once> sums;
    if (is_infinite<sum_for<op>, Params>(reference.at)) {
      bool any_nan = false;
      for_staged(cols, [&](int c, auto n) { any_nan |= has_nan(staged_elements(row + c, n, none)); });
      sums.add(0, one_or_nan<A>(any_nan));
    } else {
      add_staged(row, reference.at, sums);
    }
    const State all{reference.R, sums.all_lanes()};
    if constexpr (writes_rows) {
      const auto epilogue = short_row_epilogue<typename OpEpilogue::template Row<Params, A>>(params, all);
      const auto value    = [&](A x) { return keeps ? epilogue(params, x) : epilogue.from_input(params, x); };
      for_staged(cols, [&](int c, auto n) {
        leave_staged(row + c, narrowed<T>(staged_elements(row + c, n, none), value), n);
      });
    } else {
      output.store(OpEpilogue::value(params, all), number);
    }
  }

  /// Adds a row's exponentials, and leaves them in its place if they are kept.
  KOKKOS_INLINE_FUNCTION void add_staged(T* row, const ExpReference<A>& reference,
                                         PackSums<Params, staged_at_once>& sums) const {
    for_staged(cols, [&](int c, auto n) {
      auto pack = staged_elements(row + c, n, -Kokkos::Experimental::infinity_v<A>);
      if constexpr (keeps) {
        if (reference.base != A(0)) subtract(pack, reference.base);
        add_exponentials<true>(params, pack, reference, sums);
        leave_staged(row + c, pack, n);
      } else {
        sums.add(exponentials<Leaves::logits, sum_for<op>>(params, pack, reference));
      }
    });
  }
};

/// TeamPolicy functor of softmax_backward and log_softmax_backward: rows of y and of dy; dx replaces dy in scratch.
template <RowOperator op, int V, class Params, class T>
struct StagedGradients {
  using A = typename Params::accumulator;

  const T* y;
  const T* dy;
  T* dx;
  std::int64_t rows;
  Params params;
  int cols;
  LinePolicy lines;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const RowsOfTeam mine(team, rows);
    const auto staging       = mine.template staging<T, V>(cols);
    const int held           = mine.threads * cols;
    T* const held_y          = static_cast<T*>(team_scratch(team, 0, 2 * held * int(sizeof(T))));
    T* const held_dy         = held_y + held;
    const std::int64_t begin = mine.first * cols;

    staging.fetch(y + begin, held_y, lines);
    staging.fetch(dy + begin, held_dy, lines);
    team.team_barrier();
    if (mine.thread < mine.count) work(held_y + mine.thread * cols, held_dy + mine.thread * cols);
    team.team_barrier();
    staging.put(dx + begin, held_dy);
  }

 private:
  /// Number of a thread's sums, each of at most `most_terms` terms.
  static constexpr int sum_lanes = 2;

  KOKKOS_INLINE_FUNCTION void work(const T* of_y, T* of_dy) const {
    const auto elements = [](const T* from, int n) { return staged_elements(from, n, A(0)); };
    const auto sums     = sums_of_packs<Params, sum_lanes>([&](const auto& f) {
      for_staged(cols, [&](int c, auto n) {
        const auto gradient = elements(of_dy + c, n);
        if constexpr (Params::sums_products) {
          f(elements(of_y + c, n), gradient);
        } else {
          f(gradient, gradient);
        }
      });
    });
    const typename Epilogue<op>::template Row<Params, A> epilogue(params, {sums.all_lanes()});
    for_staged(cols, [&](int c, auto n) {
      const auto value    = elements(of_y + c, n);
      const auto gradient = elements(of_dy + c, n);
      Pack<T, staged_at_once> result;
      for (int i = 0; i < staged_at_once; ++i) result[i] = static_cast<T>(epilogue(params, value[i], gradient[i]));
      leave_staged(of_dy + c, result, n);
    });
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_STAGED_ROWS_HPP
