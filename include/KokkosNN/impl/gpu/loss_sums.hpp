// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_LOSS_SUMS_HPP
#define KOKKOSNN_IMPL_GPU_LOSS_SUMS_HPP

#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/first_index.hpp>
#include <KokkosNN/impl/operators/cross_entropy.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>
#include <KokkosNN/impl/backend.hpp>
#include <KokkosNN/impl/tuned_shapes.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

// Sums of a cross entropy besides its rows: the sum of their losses, the divisor of a mean, the weight of all classes,
// and the check of labels.
// A reduced loss adds two kernels to the rows' kernel: the divisor ahead of the rows, and the sum of their losses
// behind (`SumInOrder`): the last team to finish adds the teams' sums, in the order of the teams. Sums are in double,
// in an order that depends only on their number of terms, so that their bits are reproducible: an atomic counts teams,
// none adds.

namespace KokkosNN::Impl {

/// Terms of a sum at one stride. A thread takes every `step`-th of them.
template <class T>
struct Strided {
  const T* data;
  std::int64_t stride = 1;

  struct Walk {
    const T* at;
    std::int64_t step;

    KOKKOS_INLINE_FUNCTION T load() const { return *at; }
    KOKKOS_INLINE_FUNCTION void next() { at += step; }
  };

  KOKKOS_INLINE_FUNCTION Walk positions(std::int64_t first, int step) const {
    return {data + first * stride, step * stride};
  }
};

/// Labels of any type along any axes. Most have one type and one stride, which with_labels finds out: to look for both
/// at each label would take a thread longer than the label.
struct AnyLabels {
  Labels labels;

  struct Walk {
    const Labels& labels;
    std::int64_t at;
    int step;

    KOKKOS_INLINE_FUNCTION std::int64_t load() const { return labels(at); }
    KOKKOS_INLINE_FUNCTION void next() { at += step; }
  };

  KOKKOS_INLINE_FUNCTION Walk positions(std::int64_t first, int step) const { return {labels, first, step}; }
};

/// Calls f(the labels, as Strided if they can be). f must only test for classes: a negative number is none, whatever
/// its meaning.
template <class F>
void with_labels(const Labels& labels, const F& f) {
  const bool has_stride = labels.map.n <= 1;
  if (has_stride && labels.bytes == 8) {
    f(Strided<std::int64_t>{static_cast<const std::int64_t*>(labels.data), labels.map.stride[0]});
  } else if (has_stride && labels.bytes == 4 && labels.is_signed) {
    f(Strided<std::int32_t>{static_cast<const std::int32_t*>(labels.data), labels.map.stride[0]});
  } else {
    f(AnyLabels{labels});
  }
}

// Terms: `positions` returns an iteration over the loaded values, `value` converts one to a term. `nothing` is a loaded
// value whose term is 0.

/// Terms that are numbers.
template <class A>
struct Numbers : Strided<A> {
  static constexpr A nothing = 0;
  KOKKOS_INLINE_FUNCTION static double value(A loaded) { return static_cast<double>(loaded); }
};

/// Terms that count the rows of a mean: 1 or 0.
template <class LabelsOfRows>
struct CountOfRow : LabelsOfRows {
  static constexpr int nothing = -1;

  std::int64_t ignore_index;
  ClassShard shard;

  KOKKOS_INLINE_FUNCTION int value(std::int64_t label) const {
    return Label::of(label, ignore_index, shard).is_class ? 1 : 0;
  }
};

/// Terms that weight the rows of a mean, where classes have weights.
template <class A>
struct WeightOfRow : AnyLabels {
  static constexpr int nothing = -1;

  ClassWeights<A> weights;
  std::int64_t ignore_index;
  ClassShard shard;

  KOKKOS_INLINE_FUNCTION double value(std::int64_t loaded) const {
    const Label label = Label::of(loaded, ignore_index, shard);
    return label.is_class ? static_cast<double>(weights(label.number)) : 0.0;
  }
};

/// Number of terms that a thread loads before it adds them: on a GPU each takes its time to arrive from memory.
inline constexpr int terms_at_a_time = 8;

/// Sum of terms in a fixed order: each team adds its range, and the last team to finish adds the teams' sums. Its code
/// is as short as possible: such a launch takes the time that its instructions take to arrive, one cache line after the
/// other.
template <class Term, class Result, int team_size>
struct SumInOrder {
  Term term;
  Result result;
  std::int64_t n;
  std::int64_t share;
  double* parts;  ///< one a team
  int* done;      ///< number of finished teams, zero between calls; null if there is one team

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const int rank           = team.team_rank();
    const std::int64_t begin = team.league_rank() * share;
    const std::int64_t end   = begin + share < n ? begin + share : n;
    double mine              = 0;
    KOKKOSNN_IMPL_NO_UNROLL
    for (std::int64_t first = begin; first < end; first += most_at_a_time) mine += sum_at_a_time(rank, first, end);
    double sum = sum_of_team(team, 0, mine);
    if (done != nullptr) {
      if (!is_last(team, sum)) return;
      Kokkos::memory_fence();  // other teams stored their sums before they counted themselves as done
      mine = 0;
      for (int i = rank; i < team.league_size(); i += team_size) mine += parts[i];
      sum = sum_of_team(team, 1, mine);
    }
    if (rank == 0) result(sum);
  }

 private:
  static constexpr int most_at_a_time = terms_at_a_time * team_size;

  /// Sum of this thread's terms among those that a team loads at a time, from `first` on.
  KOKKOS_INLINE_FUNCTION auto sum_at_a_time(int rank, std::int64_t first, std::int64_t end) const {
    const std::int64_t behind = end - first - rank;
    const int left            = behind < most_at_a_time ? static_cast<int>(behind) : most_at_a_time;
    auto positions            = term.positions(first + rank, team_size);
    decltype(positions.load()) loaded[terms_at_a_time];
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < terms_at_a_time; ++k) {
      loaded[k] = Term::nothing;
      if (k * team_size < left) loaded[k] = positions.load();
      positions.next();
    }
    decltype(term.value(loaded[0])) sum = 0;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < terms_at_a_time; ++k) sum += term.value(loaded[k]);
    return sum;
  }

  /// Sum over the team, for the threads of the first warp.
  template <class Member>
  KOKKOS_INLINE_FUNCTION static double sum_of_team(const Member& team, int round, double mine) {
    using Sum            = RowSum<double, double>;
    constexpr int nobody = 0;  // params of `exchange`, which sums of exponentials need
    const RowGroup group{team.team_rank(), team_size, 0};
    const Sum warp = merge_warp(nobody, Sum{mine}, group.lanes());
    return exchange<true>(nobody, team, group, static_cast<Sum*>(nullptr), round, warp).sum;
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
};

/// Result that is a sum, or a mean.
template <class A>
struct SumOrMean {
  A* value;
  const double* divisor = nullptr;

  KOKKOS_INLINE_FUNCTION void operator()(double sum) const {
    *value = static_cast<A>(divisor == nullptr ? sum : sum / *divisor);
  }
};

/// Result that is a mean's divisor: for the loss, and as the factor of the rows' gradients.
template <class A>
struct DivisorResult {
  double* divisor;
  A* inverse;

  KOKKOS_INLINE_FUNCTION void operator()(double sum) const {
    *divisor = sum;
    *inverse = static_cast<A>(1 / sum);
  }
};

/// Result that is the weight of each row's z_loss in a mean, which divides by the sum of weights: that over the number
/// of rows.
template <class A>
struct ZLossWeightResult {
  const double* divisor;
  A* weight;

  KOKKOS_INLINE_FUNCTION void operator()(double rows) const { *weight = static_cast<A>(*divisor / rows); }
};

/// Result that is a sum, or NaN where that has no terms and is a mean.
template <class A>
struct SumOfRows {
  A* value;
  bool is_nan;

  KOKKOS_INLINE_FUNCTION void operator()(double sum) const {
    *value = is_nan ? Kokkos::Experimental::quiet_NaN_v<A> : static_cast<A>(sum);
  }
};

/// True if a row's label is neither ignored nor a class.
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

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t) const { *label = labels.bits(wanted); }
};

/// Workspace of a call that sums: zero or more of each.
template <class A>
struct LossWorkspace {
  static constexpr int max_parts = loss_parts;

  double* divisor      = nullptr;
  A* inverse_divisor   = nullptr;
  A* weight_of_classes = nullptr;
  A* z_loss_weight     = nullptr;
  double* parts        = nullptr;
  A* row_losses        = nullptr;

  LossWorkspace() = default;

  static std::size_t bytes(std::int64_t row_losses) {
    return (4 + max_parts) * sizeof(double) + static_cast<std::size_t>(row_losses) * sizeof(A);
  }
  explicit LossWorkspace(char* memory)
      : divisor(reinterpret_cast<double*>(memory)),
        inverse_divisor(reinterpret_cast<A*>(memory + sizeof(double))),
        weight_of_classes(reinterpret_cast<A*>(memory + 2 * sizeof(double))),
        z_loss_weight(reinterpret_cast<A*>(memory + 3 * sizeof(double))),
        parts(reinterpret_cast<double*>(memory + 4 * sizeof(double))),
        row_losses(reinterpret_cast<A*>(memory + (4 + max_parts) * sizeof(double))) {}
};

/// Sums of rows whose values are of type A.
template <class ExecutionSpace, class A>
struct LossSums {
  static constexpr bool on_host               = backend_of<ExecutionSpace>() == Backend::host;
  static constexpr int team_size              = on_host ? 1 : max_threads_per_team;
  static constexpr std::int64_t terms_of_team = on_host ? loss_terms_on_host : loss_terms_of_thread * team_size;
  /// Up to this number of terms one team adds all of them, as it waits for no other.
  static constexpr std::int64_t terms_alone = on_host ? terms_of_team : loss_terms_of_thread_alone * team_size;

  /// Not inline, as ViewCall::run: users compile no kernels.
  static void of_classes(const ExecutionSpace& exec, const char* function, const ClassWeights<A>& weights,
                         std::int64_t classes, const LossWorkspace<A>& workspace);
  static void of_rows(const ExecutionSpace& exec, const char* function, const WeightOfRow<A>& weight, std::int64_t rows,
                      const LossWorkspace<A>& workspace);
  /// Behind `of_rows`.
  static void of_z_losses(const ExecutionSpace& exec, const char* function, const WeightOfRow<A>& row,
                          std::int64_t rows, const LossWorkspace<A>& workspace);
  static void of_losses(const ExecutionSpace& exec, const char* function, std::int64_t rows, bool is_mean,
                        const LossWorkspace<A>& workspace, A* loss);
  /// Sum of rows' losses that are parts of a mean or a sum already.
  static void of_parts(const ExecutionSpace& exec, const char* function, std::int64_t rows, bool is_mean,
                       const LossWorkspace<A>& workspace, A* loss);
  /// Finds the row with the first label out of range, -1 if there is none, and the bits of that label. Waits for
  /// `exec`.
  static std::int64_t find_bad_label(const ExecutionSpace& exec, const char* function, std::int64_t rows,
                                     const IsBadLabel& search, std::int64_t& label);

 private:
  static std::int64_t teams_for(std::int64_t n) {
    if (n <= terms_alone) return 1;
    return std::clamp<std::int64_t>((n + terms_of_team - 1) / terms_of_team, 1, LossWorkspace<A>::max_parts);
  }

  template <class Term, class Result>
  static void sum(const ExecutionSpace& exec, const char* function, const char* what, const Term& term, std::int64_t n,
                  double* parts, const Result& result) {
    const std::int64_t teams = teams_for(n);
    const WorkspaceLease<ExecutionSpace, WorkspaceUse::status_words> counter(exec,
                                                                             teams > 1 ? sizeof(std::int64_t) : 0);
    int* const done = reinterpret_cast<int*>(counter.data());
    using Bounds    = Kokkos::LaunchBounds<max_threads_per_team, 1>;
    const Kokkos::TeamPolicy<ExecutionSpace, Bounds> policy(exec, static_cast<int>(teams), team_size, 1);
    // Light-weight, as the rows' kernels are: the launch waits for no copy of the functor.
    Kokkos::parallel_for(std::string("KokkosNN::") + function + '[' + what + ']',
                         Kokkos::Experimental::require(policy, Kokkos::Experimental::WorkItemProperty::HintLightWeight),
                         SumInOrder<Term, Result, team_size>{term, result, n, (n + teams - 1) / teams, parts, done});
  }
};

template <class ExecutionSpace, class A>
void LossSums<ExecutionSpace, A>::of_classes(const ExecutionSpace& exec, const char* function,
                                             const ClassWeights<A>& weights, std::int64_t classes,
                                             const LossWorkspace<A>& workspace) {
  sum(exec, function, "weight_of_classes", Numbers<A>{{weights.data, weights.stride}}, classes, workspace.parts,
      SumOrMean<A>{workspace.weight_of_classes});
}

template <class ExecutionSpace, class A>
void LossSums<ExecutionSpace, A>::of_rows(const ExecutionSpace& exec, const char* function,
                                          const WeightOfRow<A>& weight, std::int64_t rows,
                                          const LossWorkspace<A>& workspace) {
  const DivisorResult<A> result{workspace.divisor, workspace.inverse_divisor};
  const auto sum_terms = [&](const auto& term) { sum(exec, function, "divisor", term, rows, workspace.parts, result); };
  if (weight.weights.data != nullptr) return sum_terms(weight);
  with_labels(weight.labels, [&]<class LabelsOfRows>(const LabelsOfRows& labels) {
    sum_terms(CountOfRow<LabelsOfRows>{{labels}, weight.ignore_index, weight.shard});
  });
}

template <class ExecutionSpace, class A>
void LossSums<ExecutionSpace, A>::of_z_losses(const ExecutionSpace& exec, const char* function,
                                              const WeightOfRow<A>& row, std::int64_t rows,
                                              const LossWorkspace<A>& workspace) {
  sum(exec, function, "z_loss_weight", CountOfRow<AnyLabels>{{row.labels}, row.ignore_index, row.shard}, rows,
      workspace.parts, ZLossWeightResult<A>{workspace.divisor, workspace.z_loss_weight});
}

template <class ExecutionSpace, class A>
void LossSums<ExecutionSpace, A>::of_losses(const ExecutionSpace& exec, const char* function, std::int64_t rows,
                                            bool is_mean, const LossWorkspace<A>& workspace, A* loss) {
  sum(exec, function, "loss", Numbers<A>{{workspace.row_losses}}, rows, workspace.parts,
      SumOrMean<A>{loss, is_mean ? workspace.divisor : nullptr});
}

template <class ExecutionSpace, class A>
void LossSums<ExecutionSpace, A>::of_parts(const ExecutionSpace& exec, const char* function, std::int64_t rows,
                                           bool is_mean, const LossWorkspace<A>& workspace, A* loss) {
  sum(exec, function, "loss", Numbers<A>{{workspace.row_losses}}, rows, workspace.parts,
      SumOfRows<A>{loss, is_mean && rows == 0});
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

#endif  // KOKKOSNN_IMPL_GPU_LOSS_SUMS_HPP
