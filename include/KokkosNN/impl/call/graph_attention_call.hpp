// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_GRAPH_ATTENTION_CALL_HPP
#define KOKKOSNN_IMPL_CALL_GRAPH_ATTENTION_CALL_HPP

#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/impl/call/graph_attention_layout.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/instantiations/graph_attention.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <string>
#include <type_traits>

// The body of attention over a graph: check what the compiler can see, then the arguments, launch.

namespace KokkosNN::Impl {

/// A View of edges and heads that need not exist.
template <class Exec, class QView, class EdgesView>
constexpr void check_edges() {
  if constexpr (is_given<EdgesView>) {
    using T = typename EdgesView::non_const_value_type;
    static_assert(EdgesView::rank() == 2, "KokkosNN::graph_attention: bias must have rank 2: edge, head");
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, typename QView::non_const_value_type>,
                  "KokkosNN::graph_attention: bias must hold q's type or float");
    static_assert(can_access<Exec, EdgesView>,
                  "KokkosNN::graph_attention: the execution space must be able to access the memory of bias");
  }
}

template <class Exec, class RowMapView, class EntriesView, class BiasView, class LseView, class QView, class... Others>
constexpr void check_graph_attention() {
  static_assert(QView::rank() == 3 && ((Others::rank() == 3) && ...),
                "KokkosNN::graph_attention: q, k, v, o and their gradients must have rank 3: node, head, dim");
  static_assert(hold_elements<QView>, "KokkosNN::graph_attention: q must hold double, float, half_t or bhalf_t");
  static_assert(hold_one_type<QView, Others...>,
                "KokkosNN::graph_attention: q, k, v, o and their gradients must hold the same type");
  static_assert(can_access<Exec, QView, Others...> && can_access<Exec, RowMapView, EntriesView>,
                "KokkosNN::graph_attention: the execution space must be able to access the memory of all Views");
  static_assert(RowMapView::rank() == 1 && EntriesView::rank() == 1,
                "KokkosNN::graph_attention: row_map and entries must have rank 1");
  static_assert(holds_integers<RowMapView> && holds_integers<EntriesView> &&
                    sizeof(typename RowMapView::value_type) >= 4 && sizeof(typename EntriesView::value_type) >= 4,
                "KokkosNN::graph_attention: row_map and entries must hold integers of 32 or 64 bits");
  check_edges<Exec, QView, BiasView>();
  if constexpr (is_given<LseView>) {
    static_assert(LseView::rank() == 2, "KokkosNN::graph_attention: lse must have rank 2: node, head");
    static_assert(
        std::is_same_v<typename LseView::non_const_value_type, accumulator_t<typename QView::non_const_value_type>>,
        "KokkosNN::graph_attention: lse must hold double if q does, else float");
    static_assert(can_access<Exec, LseView>,
                  "KokkosNN::graph_attention: the execution space must be able to access the memory of lse");
  }
}

/// Calls attention over a graph, or its gradients, on elements of X.
template <class X, class Exec>
void graph_attention_call(const Exec& exec, const char* function, bool is_gradient,
                          const GraphAttentionTensors& tensors, const AttentionCallOptions& options) {
  using Call = GraphAttentionCall<Exec, X>;
  require_kernels<Call>();
  const Kokkos::Profiling::ScopedRegion region(std::string("KokkosNN::") + function);
  const GraphAttentionLayout layout = normalise_graph_attention(function, is_gradient, tensors, options);
  Call::run(exec, {function, is_gradient, tensors, layout, options});
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_GRAPH_ATTENTION_CALL_HPP
