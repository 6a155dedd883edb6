// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_KERNELS_LOSS_SUMS_HPP
#define KOKKOSNN_IMPL_KERNELS_LOSS_SUMS_HPP

#include <KokkosNN/impl/device_traits.hpp>
#include <KokkosNN/impl/kernels/first_index.hpp>
#include <KokkosNN/impl/primitives/cross_entropy.hpp>
#include <KokkosNN/impl/primitives/gradient.hpp>
#include <KokkosNN/impl/primitives/lanes.hpp>
#include <KokkosNN/impl/workspace.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

// What a cross entropy needs besides its rows: the sum of their losses, what a mean divides by, the weight of all
// classes, and whether labels are in range. Sums are in double, in an order that only their number of terms sets, so
// that they are the same bits every time: an atomic counts teams, none adds.

namespace KokkosNN::Impl {

/// Values that lie side by side.
template <class A>
struct Listed {
  const A* values;

  KOKKOS_INLINE_FUNCTION A load(std::int64_t i) const { return values[i]; }
  KOKKOS_INLINE_FUNCTION static double value(A loaded) { return static_cast<double>(loaded); }
};

/// Terms that a thread loads before it adds them: on a GPU each takes its time to arrive from memory.
inline constexpr int terms_at_a_time = 4;

/// Sums terms in one order: each team those of its share, and the team that is done last the teams' sums. A term is
/// `value` of what `load` gives for its number.
template <class Term, class Result>
struct SumInOrder {
  Term term;
  Result result;
  std::int64_t n;
  std::int64_t share;
  double* parts;  ///< one a team
  int* done;      ///< how many teams are; zero between calls. None: there is one team

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const std::int64_t begin = team.league_rank() * share;
    const double sum         = sum_of(team, 0, begin, begin + share < n ? begin + share : n, term);
    if (done == nullptr) return finish(team, sum);
    if (!is_last(team, sum)) return;
    Kokkos::memory_fence();  // what this team loads next was stored before the others said that they are done
    finish(team, sum_of(team, 1, 0, team.league_size(), Listed<double>{parts}));
  }

 private:
  template <class Member, class Of>
  KOKKOS_INLINE_FUNCTION static double sum_of(const Member& team, int round, std::int64_t begin, std::int64_t end,
                                              const Of& of) {
    using Sum            = RowSum<double, double>;
    constexpr int nobody = 0;  // in the place of what sums of exponentials need to be joined
    const RowGroup group{team.team_rank(), team.team_size(), 0};
    Sum mine;
    for (std::int64_t i = begin + group.rank; i < end; i += terms_at_a_time * std::int64_t(group.size)) {
      decltype(of.load(i)) loaded[terms_at_a_time];
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < terms_at_a_time; ++k) {
        const std::int64_t at = i + k * std::int64_t(group.size);
        loaded[k]             = of.load(at < end ? at : i);
      }
      KOKKOSNN_IMPL_UNROLL
      for (int k = 0; k < terms_at_a_time; ++k) {
        if (i + k * std::int64_t(group.size) < end) mine.sum += of.value(loaded[k]);
      }
    }
    return exchange(nobody, team, group, static_cast<Sum*>(nullptr), round, merge_warp(nobody, mine, group.lanes()))
        .sum;
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION bool is_last(const Member& team, double sum) const {
    int last = 0;
    Kokkos::single(
        Kokkos::PerTeam(team),
        [&](int& of_team) {
          parts[team.league_rank()] = sum;
          Kokkos::memory_fence();
          of_team = Kokkos::atomic_fetch_add(done, 1) == team.league_size() - 1 ? 1 : 0;
          if (of_team != 0) *done = 0;
        },
        last);
    return last != 0;
  }

  template <class Member>
  KOKKOS_INLINE_FUNCTION void finish(const Member& team, double sum) const {
    if (team.team_rank() == 0) result(sum);
  }
};

/// The weight of a row in a mean.
template <class A>
struct WeightOfRow {
  Labels labels;
  ClassWeights<A> weights;
  std::int64_t ignore_index;
  ClassShard shard;

  KOKKOS_INLINE_FUNCTION std::int64_t load(std::int64_t row) const { return labels(row); }
  KOKKOS_INLINE_FUNCTION double value(std::int64_t loaded) const {
    const Label label = Label::of(loaded, ignore_index, shard);
    return label.is_class ? static_cast<double>(weights(label.number)) : 0.0;
  }
};

/// The classes' weights.
template <class A>
struct WeightOfClass {
  ClassWeights<A> weights;

  KOKKOS_INLINE_FUNCTION A load(std::int64_t c) const { return weights(c); }
  KOKKOS_INLINE_FUNCTION static double value(A loaded) { return static_cast<double>(loaded); }
};

/// Where a sum goes, or a mean.
template <class A>
struct SumOrMean {
  A* value;
  const double* divisor = nullptr;

  KOKKOS_INLINE_FUNCTION void operator()(double sum) const {
    *value = static_cast<A>(divisor == nullptr ? sum : sum / *divisor);
  }
};

/// A mean's divisor: for the loss, and what rows multiply their gradients by.
template <class A>
struct DivisorResult {
  double* divisor;
  A* inverse;

  KOKKOS_INLINE_FUNCTION void operator()(double sum) const {
    *divisor = sum;
    *inverse = static_cast<A>(1 / sum);
  }
};

/// Whether a row's label is neither ignored nor a class.
struct IsBadLabel {
  Labels labels;
  std::int64_t ignore_index;
  ClassShard shard;

  KOKKOS_INLINE_FUNCTION bool operator()(std::int64_t row) const {
    const Label label = Label::of(labels(row), ignore_index, shard);
    return !label.is_ignored && !label.is_class;
  }
};

struct OneLabel {
  Labels labels;
  std::int64_t wanted;
  std::int64_t* label;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t) const { *label = labels(wanted); }
};

/// Memory of a call that sums: zero or more of each.
template <class A>
struct LossWorkspace {
  static constexpr int max_parts = 256;  ///< 10^6 rows of 64 f32: 176 us, with 1024 198

  double* divisor      = nullptr;
  A* inverse_divisor   = nullptr;
  A* weight_of_classes = nullptr;
  double* parts        = nullptr;
  A* row_losses        = nullptr;

  LossWorkspace() = default;

  static std::size_t bytes(std::int64_t row_losses) {
    return (3 + max_parts) * sizeof(double) + static_cast<std::size_t>(row_losses) * sizeof(A);
  }
  explicit LossWorkspace(char* memory)
      : divisor(reinterpret_cast<double*>(memory)),
        inverse_divisor(reinterpret_cast<A*>(memory + sizeof(double))),
        weight_of_classes(reinterpret_cast<A*>(memory + 2 * sizeof(double))),
        parts(reinterpret_cast<double*>(memory + 3 * sizeof(double))),
        row_losses(reinterpret_cast<A*>(memory + (3 + max_parts) * sizeof(double))) {}
};

/// The sums of rows whose values are of type A.
template <class ExecutionSpace, class A>
struct LossSums {
  static constexpr bool on_host  = backend_of<ExecutionSpace>() == Backend::host;
  static constexpr int team_size = on_host ? 1 : max_threads_per_team;
  /// On a GPU a term a thread: with eight, bf16 16384 x 4096 takes 88 us instead of 83.
  static constexpr std::int64_t terms_of_team = on_host ? 4096 : team_size;

  /// Not inline, as ViewCall's.
  static void of_classes(const ExecutionSpace& exec, const char* function, const ClassWeights<A>& weights,
                         std::int64_t classes, const LossWorkspace<A>& workspace);
  static void of_rows(const ExecutionSpace& exec, const char* function, const WeightOfRow<A>& weight, std::int64_t rows,
                      const LossWorkspace<A>& workspace);
  static void of_losses(const ExecutionSpace& exec, const char* function, std::int64_t rows, bool is_mean,
                        const LossWorkspace<A>& workspace, A* loss);
  /// The row with the first label out of range, -1 if there is none, and that label. Waits for `exec`.
  static std::int64_t find_bad_label(const ExecutionSpace& exec, const char* function, std::int64_t rows,
                                     const IsBadLabel& search, std::int64_t& label);

 private:
  /// One where that is enough, as it waits for no other (f32 4096 x 49152: 422 us, by four teams 426).
  static std::int64_t teams_for(std::int64_t n) {
    if (!on_host && n <= terms_at_a_time * team_size) return 1;
    return std::clamp<std::int64_t>((n + terms_of_team - 1) / terms_of_team, 1, LossWorkspace<A>::max_parts);
  }

  template <class Term, class Result>
  static void sum(const ExecutionSpace& exec, const char* function, const char* what, const Term& term, std::int64_t n,
                  double* parts, const Result& result) {
    const std::int64_t teams = teams_for(n);
    int* done = nullptr;
    if (teams > 1) {
      using Pool = WorkspacePool<ExecutionSpace, WorkspaceUse::mailboxes>;
      done       = reinterpret_cast<int*>(Pool::get(exec, sizeof(std::int64_t)).data());
    }
    using Bounds = Kokkos::LaunchBounds<max_threads_per_team, 1>;
    const Kokkos::TeamPolicy<ExecutionSpace, Bounds> policy(exec, static_cast<int>(teams), team_size, 1);
    // As the rows' kernels: nothing waits for a copy of the functor.
    Kokkos::parallel_for(std::string("KokkosNN::") + function + '[' + what + ']',
                         Kokkos::Experimental::require(policy, Kokkos::Experimental::WorkItemProperty::HintLightWeight),
                         SumInOrder<Term, Result>{term, result, n, (n + teams - 1) / teams, parts, done});
  }
};

template <class ExecutionSpace, class A>
void LossSums<ExecutionSpace, A>::of_classes(const ExecutionSpace& exec, const char* function,
                                             const ClassWeights<A>& weights, std::int64_t classes,
                                             const LossWorkspace<A>& workspace) {
  sum(exec, function, "weight_of_classes", WeightOfClass<A>{weights}, classes, workspace.parts,
      SumOrMean<A>{workspace.weight_of_classes});
}

template <class ExecutionSpace, class A>
void LossSums<ExecutionSpace, A>::of_rows(const ExecutionSpace& exec, const char* function,
                                          const WeightOfRow<A>& weight, std::int64_t rows,
                                          const LossWorkspace<A>& workspace) {
  sum(exec, function, "divisor", weight, rows, workspace.parts,
      DivisorResult<A>{workspace.divisor, workspace.inverse_divisor});
}

template <class ExecutionSpace, class A>
void LossSums<ExecutionSpace, A>::of_losses(const ExecutionSpace& exec, const char* function, std::int64_t rows,
                                            bool is_mean, const LossWorkspace<A>& workspace, A* loss) {
  sum(exec, function, "loss", Listed<A>{workspace.row_losses}, rows, workspace.parts,
      SumOrMean<A>{loss, is_mean ? workspace.divisor : nullptr});
}

template <class ExecutionSpace, class A>
std::int64_t LossSums<ExecutionSpace, A>::find_bad_label(const ExecutionSpace& exec, const char* function,
                                                         std::int64_t rows, const IsBadLabel& search,
                                                         std::int64_t& label) {
  using Range              = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
  const std::string check  = std::string("KokkosNN::") + function + "[check_labels]";
  const std::int64_t first = first_index(exec, check, rows, search);
  if (first >= rows) return -1;
  const Kokkos::View<std::int64_t, ExecutionSpace> found("KokkosNN::label");
  Kokkos::parallel_for(check, Range(exec, 0, 1), OneLabel{search.labels, first, found.data()});
  exec.fence(check);
  Kokkos::deep_copy(label, found);
  return first;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNELS_LOSS_SUMS_HPP
