// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_GRAPH_ATTENTION_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_GRAPH_ATTENTION_LAUNCH_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/cpu_levels.hpp>
#include <KokkosNN/impl/call/compiled_calls.hpp>
#include <KokkosNN/impl/call/graph_attention_layout.hpp>
#include <KokkosNN/impl/call/items_launch.hpp>
#include <KokkosNN/impl/call/mask_data.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/graph_attention.hpp>
#include <KokkosNN/impl/gpu/graph_attention_lanes.hpp>
#include <KokkosNN/impl/traits.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

// A call of attention over a graph on its way to a launch.

namespace KokkosNN::Impl {

template <class ExecutionSpace, class X>
struct Launcher<GraphAttentionCall<ExecutionSpace, X>> {
  using A                       = accumulator_t<X>;
  static constexpr bool on_host = backend_of<ExecutionSpace>() == Backend::host;
  static constexpr int width    = on_host ? 16 : 4;  ///< elements of a sum that a thread has. Not measured
  static constexpr int lanes    = on_host ? 1 : 8;   ///< threads that share a node's edges. Not measured

  static void run(const ExecutionSpace& exec, const GraphAttentionArguments& call) {
    const GraphAttentionLayout& l    = call.layout;
    const std::int64_t numbers       = l.edges * l.heads;
    const std::int64_t sums          = (call.is_gradient ? 2 : 1) * numbers;
    const std::int64_t words         = call.is_gradient ? 2 * l.edges + 2 * l.sources + 1 : 0;
    const std::size_t bytes_of_words = static_cast<std::size_t>(words) * sizeof(std::int64_t);
    const WorkspaceLease<ExecutionSpace, WorkspaceUse::sums> workspace(
        exec, bytes_of_words + static_cast<std::size_t>(sums) * sizeof(A));
    GraphAttentionData<X> data = data_of(call);
    data.probabilities         = reinterpret_cast<A*>(workspace.data() + bytes_of_words);
    if (call.is_gradient) {
      data.edge_nodes   = reinterpret_cast<std::int64_t*>(workspace.data());
      data.source_edges = data.edge_nodes + l.edges;
      data.source_map   = data.source_edges + l.edges;
      data.cursors      = data.source_map + l.sources + 1;
      data.gradients    = data.probabilities + numbers;
      run_gradients(exec, call, data);
    } else if (!with_packs(call, [&]<int packs>(int its_lanes) {
                 launch_step(exec, call, "[warps]", GraphWarps<GraphForwardInWarp<X, packs>>{{{data}}, its_lanes});
               })) {
      launch_step(exec, call, "[logits]", GraphLogits<X, lanes>{data});
      launch_step(exec, call, "[probabilities]", GraphProbabilities<X>{data});
      launch_step(exec, call, "[o]", GraphNodeSums<X, width, false>{data});
    }
  }

 private:
  static void run_gradients(const ExecutionSpace& exec, const GraphAttentionArguments& call,
                            const GraphAttentionData<X>& data) {
    launch_step(exec, call, "[clear]", GraphClearCounts<X>{data});
    const bool has_warps = with_packs(call, [&]<int packs>(int its_lanes) {
      launch_step(exec, call, "[edges,warps]", GraphWarps<GraphEdgeGradientsInWarp<X, packs>>{{{{data}}}, its_lanes});
    });
    if (!has_warps) {
      launch_step(exec, call, "[edges]", GraphEdgeGradients<X, lanes>{{data}});
      launch_step(exec, call, "[dq]", GraphNodeSums<X, width, true>{data});
    }
    Kokkos::parallel_scan(
        label(call, "[scan]"),
        Kokkos::RangePolicy<ExecutionSpace, Kokkos::IndexType<std::int64_t>>(exec, 0, call.layout.sources + 1),
        GraphScanCounts<X>{data});
    launch_step(exec, call, "[fill]", GraphFillSources<X>{data});
    launch_step(exec, call, "[sort]", GraphSortSources<X>{data});
    if (has_warps) {
      with_packs(call, [&]<int packs>(int its_lanes) {
        launch_step(exec, call, "[dk,dv,warps]", GraphWarps<GraphSourceSumsInWarp<X, packs>>{{data}, its_lanes});
      });
      return;
    }
    launch_step(exec, call, "[dk]", GraphSourceSums<X, width, true>{data});
    launch_step(exec, call, "[dv]", GraphSourceSums<X, width, false>{data});
  }

  /// Calls f.operator()<packs>(lanes) of the kernels whose warps gather rows by packs of 16 bytes, `packs` a lane and
  /// `lanes` lanes a row, where a call on CUDA has such rows; tells if. On AMD's GPUs their registers leave up to three
  /// wavefronts a SIMD, and nothing was measured.
  template <class F>
  static bool with_packs(const GraphAttentionArguments& call, const F& f) {
    if constexpr (backend_of<ExecutionSpace>() == Backend::cuda) {
      constexpr int pack = 16 / int(sizeof(X)), most_lanes = 32;
      const GraphAttentionLayout& l = call.layout;
      const std::int64_t dims       = std::max(l.dim, l.value_dim);
      if (!has_packs(call) || dims > 4 * most_lanes * pack) return false;
      int its_lanes = least_graph_lanes;
      while (its_lanes < most_lanes && its_lanes * pack < dims) its_lanes *= 2;
      const std::int64_t packs = (dims + its_lanes * pack - 1) / (its_lanes * pack);
      packs == 1   ? f.template operator()<1>(its_lanes)
      : packs == 2 ? f.template operator()<2>(its_lanes)
                   : f.template operator()<4>(its_lanes);
      return true;
    }
    return false;
  }
  /// True if all rows of a call are whole packs of 16 bytes, which begin at multiples of that.
  static bool has_packs(const GraphAttentionArguments& call) {
    constexpr std::int64_t pack    = 16 / sizeof(X);
    const GraphAttentionTensors& t = call.tensors;
    const GraphAttentionLayout& l  = call.layout;
    const auto are_packs           = [](const Tensor& tensor, const GraphAttentionRows& rows) {
      return reinterpret_cast<std::uintptr_t>(tensor.data) % 16 == 0 && rows.dim == 1 && rows.row % pack == 0 &&
             rows.head % pack == 0;
    };
    const bool of_forward = l.dim % pack == 0 && l.value_dim % pack == 0 && are_packs(t.q, l.q) &&
                            are_packs(t.k, l.k) && are_packs(t.v, l.v) && are_packs(t.o, l.o);
    return of_forward && (!call.is_gradient || (are_packs(t.dout, l.dout) && are_packs(t.dq, l.dq) &&
                                                are_packs(t.dk, l.dk) && are_packs(t.dv, l.dv)));
  }

  static std::string label(const GraphAttentionArguments& call, const char* step) {
    return items_label<X>(call.function, step);
  }
  template <class Step>
  static void launch_step(const ExecutionSpace& exec, const GraphAttentionArguments& call, const char* name,
                          const Step& step) {
    launch_items<X>(exec, call.function, call.tensors.q, name, step);
  }

  static GraphAttentionData<X> data_of(const GraphAttentionArguments& call) {
    const GraphAttentionTensors& t = call.tensors;
    const MaskTensors& mask        = call.options.mask;
    const auto input               = [](const Tensor& x) { return static_cast<const X*>(x.data); };
    const auto output              = [](const Tensor& x) { return static_cast<X*>(const_cast<void*>(x.data)); };
    const bool gives_nan           = call.options.masked_row == MaskedRowPolicy::nan;
    GraphAttentionData<X> data{};
    data.layout          = call.layout;
    data.row_map         = counts_of(t.row_map);
    data.entries         = counts_of(t.entries);
    data.q               = input(t.q);
    data.k               = input(t.k);
    data.v               = input(t.v);
    data.dout            = input(t.dout);
    data.o               = output(t.o);
    data.lse             = static_cast<A*>(const_cast<void*>(t.lse.data));
    data.dq              = output(t.dq);
    data.dk              = output(t.dk);
    data.dv              = output(t.dv);
    data.dbias           = const_cast<void*>(t.dbias.data);
    data.dbias_is_float  = t.dbias.type == ElementType::f32;
    data.bias            = pointer_to<X>(t.bias);
    data.sinks           = pointer_to<X>(mask.sinks);
    data.scale           = static_cast<A>(call.layout.scale);
    data.softcap         = static_cast<A>(mask.softcap);
    data.inverse_softcap = mask.softcap != 0 ? static_cast<A>(1 / mask.softcap) : A(0);
    data.of_masked_rows  = gives_nan ? Kokkos::Experimental::quiet_NaN_v<A> : A(0);
    return data;
  }
};

template <class ExecutionSpace, class X>
void GraphAttentionCall<ExecutionSpace, X>::run(const ExecutionSpace& exec, const GraphAttentionArguments& call) {
  run_compiled<GraphAttentionCall>(exec, call);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_GRAPH_ATTENTION_LAUNCH_HPP
