// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/erased_rows.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/rows_call.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/loss_sums.hpp>
#include <KokkosNN/impl/gpu/placement/labelled.hpp>
#include <KokkosNN/impl/host/labelled.hpp>
#include <KokkosNN/impl/operators/cross_entropy.hpp>
#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/instantiations/loss_sums.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

// The cross entropies' way from a plan to launches: their sources, sinks and placements, in the kernels of the forward
// operators, between the sums that a reduced loss needs.

namespace KokkosNN::Impl {

/// Rows are kept as softmax keeps them, or log-sum-exp where no exponential can be kept. The backward reads them once;
/// and where packs would be kept as they were loaded, and their logits made again and again, rows are read twice.
constexpr RowOperator kept_as(RowOperator op, bool extended) {
  return op == RowOperator::cross_entropy_with_gradient && !extended ? RowOperator::softmax : RowOperator::logsumexp;
}

template <RowOperator op, class Source, class A, int V, Backend backend>
  requires(is_cross_entropy(op))
struct Placements<op, Source, A, V, backend> {
  static constexpr RowOperator kept = kept_as(op, Source::is_extended);
  static constexpr bool has_edges   = Source::form == RowForm::misaligned;
  using Kept                        = Placements<kept, Source, A, V, backend>;

  template <int K>
  struct Registers {
    using type = LabelledPlacement<op, typename Kept::template Registers<K>::type, Source, A, V>;
  };
  template <int K>
    requires(is_elementwise(op) ||
             (Source::is_extended && keeps_packed(backend, sizeof(typename Source::value_type), V, K)))
  struct Registers<K> {
    static constexpr int packs = std::min(K, packs_when_looping(backend, V, op, Source::form));
    using type = LabelledPlacement<op, OnlinePlacement<RowOperator::logsumexp, A, V, packs>, Source, A, V>;
  };
  static constexpr int scratch_packs = packs_from_scratch(backend, V, op, Source::form);
  static constexpr int looping_packs = packs_when_looping(backend, V, op, Source::form);
  using Scratch                      = LabelledPlacement<op, ScratchPlacement<kept, A, V, scratch_packs>, Source, A, V>;
  using Online                       = LabelledPlacement<op, OnlinePlacement<kept, A, V, looping_packs>, Source, A, V>;
  /// On a host with vectors.
  template <class Params, bool keeps>
  using OnHost = HostLabelled<op, HostLogits<kept, V, Params, keeps>, Params>;
};

/// The label of each row, whatever integers labels are.
template <class Map>
RowLabels<Map> labels_of(const Tensor& labels, const RowMap& map, std::int64_t ignore_index) {
  return {labels.data, labels.element_bytes, labels.is_signed, ignore_index == std::numeric_limits<std::int64_t>::min(),
          map};
}

/// Weights of classes that a call may have.
template <class A>
ClassWeights<A> weights_of(const Tensor& weights) {
  return {static_cast<const A*>(weights.data), weights.stride[0]};
}

template <class ExecutionSpace, RowOperator op, class X, class Y>
struct Launcher<CrossEntropyCall<ExecutionSpace, op, X, Y>> {
  static constexpr Backend backend      = backend_of<ExecutionSpace>();
  static constexpr bool writes_gradient = op != RowOperator::cross_entropy;
  static constexpr bool writes_loss     = op != RowOperator::cross_entropy_backward;
  using A                               = accumulator_t<X>;
  static constexpr int V                = pack_size(backend, sizeof(X), sizeof(Y), sizeof(A));
  using Arguments                       = CallArguments<ExecutionSpace, LabelledLayout, CrossEntropyOptions>;
  template <bool extended>
  using Params = CrossEntropyParams<op, A, writes_gradient ? exp_accuracy_for<Y> : exp_accuracy_for<A>, extended>;

  static void run(const ExecutionSpace& exec, const Arguments& call);

  static void check_labels(const ExecutionSpace& exec, const LabelledLayout& layout, const CrossEntropyOptions& options,
                           const Tensors& tensors);

 private:
  using Tensor = CrossEntropyTensors;

  static auto labels_with_map(const LabelledLayout& layout, const CrossEntropyOptions& options,
                              const Tensors& tensors) {
    return labels_of<RowMap>(tensors[Tensor::labels], layout.map(Tensor::labels), options.ignore_index);
  }

  template <bool extended>
  static void run_kernel(const ExecutionSpace& exec, const Arguments& call, const Params<extended>& params) {
    with_form<backend, true>(call.plan.form, [&](auto form) {
      with_map<backend, op, X, form()>(
          call.layout.n, [&]<class Map>(std::type_identity<Map>) { run_rows<form(), Map>(exec, call, params); });
    });
  }

  template <RowForm form, class Map, class RowsParams>
  static void run_rows(const ExecutionSpace& exec, const Arguments& call, const RowsParams& params) {
    using Source = LabelledRows<X, form, A, RowsParams::is_extended, Map>;
    using Output =
        std::conditional_t<writes_gradient, LossOutput<Y, form, A, Map>, LossOutput<void, RowForm::strided, A, Map>>;
    const auto read    = [&](int tensor) { return scalars_of<const A, Map>(call, tensor, !writes_loss); };
    const auto written = [&](int tensor) { return scalars_of<A, Map>(call, tensor, writes_loss); };
    const Source source{
        rows_of<const X, form, Map>(call, Tensor::logits),
        labels_of<Map>(call.tensors[Tensor::labels], call.layout.map(Tensor::labels), params.ignore_index),
        read(Tensor::lse), read(Tensor::loss)};
    Output output;
    output.loss = written(Tensor::loss);
    output.lse  = written(Tensor::lse);
    if constexpr (writes_gradient) output.dlogits = rows_of<Y, form, Map>(call, Tensor::dlogits);
    run_on_rows<op, V>(exec, call, params, source, output);
  }

  /// One value a row, or none: the backward reads what the others write.
  template <class T, class Map>
  static OptionalScalars<T, Map> scalars_of(const Arguments& call, int tensor, bool has_it) {
    return {has_it ? call.template data<T>(tensor) : nullptr, call.layout.map(tensor)};
  }
};

template <class ExecutionSpace, RowOperator op, class X, class Y>
void Launcher<CrossEntropyCall<ExecutionSpace, op, X, Y>>::check_labels(const ExecutionSpace& exec,
                                                                        const LabelledLayout& layout,
                                                                        const CrossEntropyOptions& options,
                                                                        const Tensors& tensors) {
  std::int64_t label     = 0;
  const std::int64_t row = LossSums<ExecutionSpace, A>::find_bad_label(
      exec, to_string(op), layout.rows, {labels_with_map(layout, options, tensors), options.ignore_index, layout.shard},
      label);
  if (row < 0) return;
  complain_of_label(to_string(op), row, decimal(label, tensors[Tensor::labels].is_signed), layout.shard.classes,
                    options.ignore_index);
}

template <class ExecutionSpace, RowOperator op, class X, class Y>
void Launcher<CrossEntropyCall<ExecutionSpace, op, X, Y>>::run(const ExecutionSpace& exec, const Arguments& call) {
  using Sums                         = LossSums<ExecutionSpace, A>;
  const char* function               = to_string(op);
  const CrossEntropyOptions& options = call.options;
  const LabelledLayout& layout       = call.layout;
  if (options.check_labels) check_labels(exec, layout, options, call.tensors);
  const ClassWeights<A> weights = weights_of<A>(call.tensors[Tensor::weights]);
  const bool smooths            = options.label_smoothing != 0;
  const bool is_mean            = options.reduction == Reduction::mean;
  const bool is_reduced         = options.reduction != Reduction::none && writes_loss;

  const bool sums_weights = smooths && weights.data != nullptr;
  const bool counts_rows  = is_mean && options.z_loss != 0 && !options.weighted_z_loss && weights.data != nullptr;
  const bool has_sums     = is_mean || is_reduced || sums_weights;
  require_launching_thread(exec, function);
  const WorkspaceLease<ExecutionSpace, WorkspaceUse::sums> memory(
      exec, has_sums ? LossWorkspace<A>::bytes(is_reduced ? layout.rows : 0) : 0);
  LossWorkspace<A> workspace;
  if (has_sums) workspace = LossWorkspace<A>(memory.data());
  if (sums_weights) Sums::of_classes(exec, function, weights, layout.shard.classes, workspace);
  const WeightOfRow<A> of_row{
      {labels_with_map(layout, options, call.tensors)}, weights, options.ignore_index, layout.shard};
  if (is_mean) Sums::of_rows(exec, function, of_row, layout.rows, workspace);
  if (counts_rows) Sums::of_z_losses(exec, function, of_row, layout.rows, workspace);
  Tensors tensors = call.tensors;
  if (is_reduced) tensors[Tensor::loss].data = workspace.row_losses;

  const auto run_with = [&](auto params) {
    params.weights = weights;
    if (is_mean) params.inverse_divisor = workspace.inverse_divisor;
    if (sums_weights) params.weight_of_classes = workspace.weight_of_classes;
    if constexpr (decltype(params)::is_extended) {
      const auto& predicted = tensors[Tensor::predicted];
      params.predicted      = {call.template data<void>(Tensor::predicted), predicted.element_bytes,
                               layout.map(Tensor::predicted)};
      if (counts_rows) params.z_loss_weight = workspace.z_loss_weight;
    }
    run_kernel<decltype(params)::is_extended>(exec, {call.plan, layout, tensors, options}, params);
  };
  if (layout.rows > 0) {
    if (is_extended(options, tensors)) {
      run_with(Params<true>(options, layout.shard));
    } else {
      run_with(Params<false>(options, layout.shard));
    }
  }
  if (is_reduced) Sums::of_losses(exec, function, layout.rows, is_mean, workspace, call.template data<A>(Tensor::loss));
}

/// Loss of a row from its log-sum-exp and the logit of its label.
template <class A>
struct LossOfLse {
  OptionalScalars<const A> lse, label_logits;
  Labels labels;
  OptionalScalars<A> loss;
  ClassWeights<A> weights;
  ClassShard classes;
  std::int64_t ignore_index;
  A z_loss;
  bool weights_z_loss;
  const A* z_loss_weight = nullptr;  ///< null: 1

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t row) const {
    const Label label = Label::of(labels(row), ignore_index, classes);
    A value           = label.is_ignored ? A(0) : Kokkos::Experimental::quiet_NaN_v<A>;
    if (label.is_class) value = of_class(lse.load(row), label_logits.load(row), weights(label.number));
    loss.store(value, row);
  }

 private:
  /// Not negative but for the rest, as no probability is above 1; NaN stays.
  KOKKOS_INLINE_FUNCTION A of_class(A of_row, A logit, A weight) const {
    if (of_row == Kokkos::Experimental::infinity_v<A>) return Kokkos::Experimental::quiet_NaN_v<A>;
    const A difference = of_row - logit;
    A value            = weight * (difference < A(0) ? A(0) : difference);
    if (z_loss == A(0)) return value;
    const A own = z_loss_weight == nullptr ? A(1) : *z_loss_weight;
    return value + z_loss * (weights_z_loss ? weight : own) * (of_row * of_row);
  }
};

template <class ExecutionSpace, class A>
struct Launcher<LossOfLseCall<ExecutionSpace, A>> {
  static void run(const ExecutionSpace& exec, const Tensors& tensors, const CrossEntropyOptions& options) {
    using Is                 = LossOfLseTensors;
    using Sums               = LossSums<ExecutionSpace, A>;
    constexpr auto* function = "cross_entropy_from_lse";
    const ClassShard classes{0, 0, validate_loss_of_lse(function, tensors, options)};
    const Tensor& lse       = tensors[Is::lse];
    const std::int64_t rows = element_count(lse);
    const auto map          = [&](int tensor) { return row_map(lse.extent, tensors[tensor].stride, lse.rank); };
    const auto data         = [&](int tensor) { return static_cast<const A*>(tensors[tensor].data); };
    const WeightOfRow<A> of_row{{labels_of<RowMap>(tensors[Is::labels], map(Is::labels), options.ignore_index)},
                                weights_of<A>(tensors[Is::weights]),
                                options.ignore_index,
                                classes};
    if (options.check_labels) require_labels(exec, function, rows, of_row, tensors[Is::labels].is_signed);
    const bool is_mean    = options.reduction == Reduction::mean;
    const bool is_reduced = options.reduction != Reduction::none;
    const bool counts     = is_mean && options.z_loss != 0 && !options.weighted_z_loss;
    require_launching_thread(exec, function);
    const WorkspaceLease<ExecutionSpace, WorkspaceUse::sums> memory(exec,
                                                                    is_reduced ? LossWorkspace<A>::bytes(rows) : 0);
    const LossWorkspace<A> workspace = is_reduced ? LossWorkspace<A>(memory.data()) : LossWorkspace<A>();
    if (is_mean) Sums::of_rows(exec, function, of_row, rows, workspace);
    if (counts) Sums::of_z_losses(exec, function, of_row, rows, workspace);

    A* const loss = const_cast<A*>(data(Is::loss));
    const LossOfLse<A> of_lse{
        {data(Is::lse), map(Is::lse)},
        {data(Is::label_logits), map(Is::label_logits)},
        of_row.labels,
        is_reduced ? OptionalScalars<A>{workspace.row_losses, dense_map(lse)} : OptionalScalars<A>{loss, map(Is::loss)},
        of_row.weights,
        classes,
        options.ignore_index,
        A(options.z_loss),
        options.weighted_z_loss,
        counts ? workspace.z_loss_weight : nullptr};
    using Range = Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>;
    if (rows > 0) Kokkos::parallel_for("KokkosNN::cross_entropy_from_lse", Range(exec, 0, rows), of_lse);
    if (is_reduced) Sums::of_losses(exec, function, rows, is_mean, workspace, loss);
  }

 private:
  static RowMap dense_map(const Tensor& t) {
    std::int64_t stride[max_rank] = {};
    std::int64_t next             = 1;
    for (int k = t.rank - 1; k >= 0; --k) {
      stride[k] = next;
      next *= t.extent[k];
    }
    return row_map(t.extent, stride, t.rank);
  }

  static void require_labels(const ExecutionSpace& exec, const char* function, std::int64_t rows,
                             const WeightOfRow<A>& of_row, bool is_signed) {
    std::int64_t label     = 0;
    const std::int64_t row = LossSums<ExecutionSpace, A>::find_bad_label(
        exec, function, rows, {of_row.labels, of_row.ignore_index, of_row.shard}, label);
    if (row < 0) return;
    complain_of_label(function, row, decimal(label, is_signed), of_row.shard.classes, of_row.ignore_index);
  }
};

template <class ExecutionSpace, class A>
void LossOfLseCall<ExecutionSpace, A>::run(const ExecutionSpace& exec, const Tensors& tensors,
                                           const CrossEntropyOptions& options) {
  run_compiled<LossOfLseCall>(exec, tensors, options);
}

template <class ExecutionSpace, RowOperator op, class X, class Y>
void CrossEntropyCall<ExecutionSpace, op, X, Y>::run(const ExecutionSpace& exec, const Arguments& call) {
  run_compiled<CrossEntropyCall>(exec, call);
}
template <class ExecutionSpace, RowOperator op, class X, class Y>
void CrossEntropyCall<ExecutionSpace, op, X, Y>::check_labels(const ExecutionSpace& exec, const LabelledLayout& layout,
                                                              const CrossEntropyOptions& options,
                                                              const Tensors& tensors) {
  Launcher<CrossEntropyCall>::check_labels(exec, layout, options, tensors);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_LAUNCH_HPP
