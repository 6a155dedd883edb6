// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/rows_call.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/loss_sums.hpp>
#include <KokkosNN/impl/gpu/placement/labelled.hpp>
#include <KokkosNN/impl/operators/cross_entropy.hpp>
#include <KokkosNN/impl/traits.hpp>
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
requires(is_cross_entropy(op)) struct Placements<op, Source, A, V, backend> {
  static constexpr RowOperator kept = kept_as(op, Source::is_extended);
  static constexpr bool has_edges    = Source::form == RowForm::misaligned;
  using Kept                        = Placements<kept, Source, A, V, backend>;

  template <int K>
  struct Registers {
    using type = LabelledPlacement<op, typename Kept::template Registers<K>::type, Source, A, V>;
  };
  template <int K>
  requires(is_elementwise(op) || (Source::is_extended && keeps_packed(backend, sizeof(typename Source::value_type), V,
                                                                      K))) struct Registers<K> {
    static constexpr int packs = std::min(K, packs_when_looping(backend, V, op, Source::form));
    using type                 = LabelledPlacement<op, OnlinePlacement<RowOperator::logsumexp, A, V, packs>, Source, A, V>;
  };
  static constexpr int scratch_packs = packs_from_scratch(backend, V, op, Source::form);
  static constexpr int looping_packs = packs_when_looping(backend, V, op, Source::form);
  using Scratch = LabelledPlacement<op, ScratchPlacement<kept, A, V, scratch_packs, has_edges>, Source, A, V>;
  using Online  = LabelledPlacement<op, OnlinePlacement<kept, A, V, looping_packs>, Source, A, V>;
};

/// What the kernels of a cross entropy work on, as pointers; null where a call has none.
template <class X, class Y, class A>
struct CrossEntropyPointers {
  const X* logits;
  const void* labels;
  int label_bytes;
  bool labels_are_signed;
  A* loss;
  A* lse_out;
  const A* lse_in;
  const A* dloss;
  Y* dlogits;
  ClassWeights<A> weights;
};

/// One cross entropy on Views, erased so that a kernel is compiled once for its element types.
template <class ExecutionSpace, RowOperator op, class X, class Y>
struct CrossEntropyCall {
  static constexpr Backend backend      = backend_of<ExecutionSpace>();
  static constexpr bool writes_gradient = op != RowOperator::cross_entropy;
  static constexpr bool writes_loss     = op != RowOperator::cross_entropy_backward;
  using A                               = accumulator_t<X>;
  static constexpr int V                = pack_size(backend, sizeof(X), sizeof(Y), sizeof(A));
  using Pointers                        = CrossEntropyPointers<X, Y, A>;
  template <bool extended>
  using Params = CrossEntropyParams<op, A, writes_gradient ? exp_accuracy_for<Y> : exp_accuracy_for<A>, extended>;

  /// Not inline, as ViewCall's.
  static void run(const ExecutionSpace& exec, const RowPlan& plan, const CrossEntropyLayout& layout,
                  const CrossEntropyOptions& options, const Pointers& data);

  /// Throws std::invalid_argument if a label is neither ignored nor a class.
  static void check_labels(const ExecutionSpace& exec, const CrossEntropyLayout& layout,
                           const CrossEntropyOptions& options, const Pointers& data);

 private:
  template <class Map>
  static RowLabels<Map> labels_of(const CrossEntropyLayout& layout, const Pointers& data, std::int64_t ignore_index) {
    return {data.labels, data.label_bytes, data.labels_are_signed,
            ignore_index == std::numeric_limits<std::int64_t>::min(), layout.map(CrossEntropyLayout::labels)};
  }

  template <bool extended>
  static void run_kernel(const ExecutionSpace& exec, const RowPlan& plan, const CrossEntropyLayout& layout,
                         const Params<extended>& params, const Pointers& data) {
    with_form<backend, true>(plan.form, [&](auto form) {
      with_map<backend, op, X, form()>(
          layout.n, [&]<class Map>(std::type_identity<Map>) { run_rows<form(), Map>(exec, plan, layout, params, data); });
    });
  }

  template <RowForm form, class Map, class RowsParams>
  static void run_rows(const ExecutionSpace& exec, const RowPlan& plan, const CrossEntropyLayout& layout,
                       const RowsParams& params, const Pointers& data) {
    using Layout  = CrossEntropyLayout;
    using Source  = LabelledRows<X, form, A, RowsParams::is_extended, Map>;
    using Output = std::conditional_t<writes_gradient, LossOutput<Y, form, A, Map>, LossOutput<void, RowForm::strided, A, Map>>;
    const auto of = [&](auto* values, int tensor) {
      return OptionalScalars<std::remove_pointer_t<decltype(values)>, Map>{values, layout.map(tensor)};
    };
    const Source source{{data.logits, layout.col_stride[Layout::logits], layout.map(Layout::logits)},
                        labels_of<Map>(layout, data, params.ignore_index),
                        of(data.lse_in, Layout::lse),
                        of(data.dloss, Layout::loss)};
    Output output;
    output.loss = of(data.loss, Layout::loss);
    output.lse  = of(data.lse_out, Layout::lse);
    if constexpr (writes_gradient) {
      output.dlogits = {data.dlogits, layout.col_stride[Layout::dlogits], layout.map(Layout::dlogits)};
    }
    RowsCall<ExecutionSpace, op, RowsParams, Source, Output, V>{exec, plan, params, source, output, layout.rows, layout.cols}
        .run(nullptr);
  }
};

template <class ExecutionSpace, RowOperator op, class X, class Y>
void CrossEntropyCall<ExecutionSpace, op, X, Y>::check_labels(const ExecutionSpace& exec,
                                                              const CrossEntropyLayout& layout,
                                                              const CrossEntropyOptions& options,
                                                              const Pointers& data) {
  std::int64_t label     = 0;
  const std::int64_t row = LossSums<ExecutionSpace, A>::find_bad_label(
      exec, to_string(op), layout.rows,
      {labels_of<RowMap>(layout, data, options.ignore_index), options.ignore_index, layout.shard}, label);
  if (row < 0) return;
  complain_of_label(to_string(op), row, decimal(label, data.labels_are_signed), layout.shard.classes,
                    options.ignore_index);
}

template <class ExecutionSpace, RowOperator op, class X, class Y>
void CrossEntropyCall<ExecutionSpace, op, X, Y>::run(const ExecutionSpace& exec, const RowPlan& plan,
                                                     const CrossEntropyLayout& layout,
                                                     const CrossEntropyOptions& options, const Pointers& given) {
  using Sums            = LossSums<ExecutionSpace, A>;
  const char* function  = to_string(op);
  const bool smooths    = options.label_smoothing != 0;
  const bool is_mean    = options.reduction == Reduction::mean;
  const bool is_reduced = options.reduction != Reduction::none && writes_loss;
  Pointers data         = given;

  const bool sums_weights = smooths && data.weights.data != nullptr;
  const bool has_sums     = is_mean || is_reduced || sums_weights;
  require_launching_thread(exec, function);
  const WorkspaceLease<ExecutionSpace, WorkspaceUse::sums> memory(
      exec, has_sums ? LossWorkspace<A>::bytes(is_reduced ? layout.rows : 0) : 0);
  LossWorkspace<A> workspace;
  if (has_sums) workspace = LossWorkspace<A>(memory.data());
  if (sums_weights) Sums::of_classes(exec, function, data.weights, layout.shard.classes, workspace);
  if (is_mean) {
    Sums::of_rows(
        exec, function,
        {{labels_of<RowMap>(layout, data, options.ignore_index)}, data.weights, options.ignore_index, layout.shard},
        layout.rows, workspace);
  }
  if (is_reduced) data.loss = workspace.row_losses;

  const auto run_with = [&](auto params) {
    params.weights = data.weights;
    if (is_mean) params.inverse_divisor = workspace.inverse_divisor;
    if (sums_weights) params.weight_of_classes = workspace.weight_of_classes;
    run_kernel<decltype(params)::is_extended>(exec, plan, layout, params, data);
  };
  if (layout.rows > 0) {
    if (smooths || options.softcap != 0) {
      run_with(Params<true>(options, layout.shard));
    } else {
      run_with(Params<false>(options, layout.shard));
    }
  }
  if (is_reduced) Sums::of_losses(exec, function, layout.rows, is_mean, workspace, given.loss);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_CROSS_ENTROPY_LAUNCH_HPP
