// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_WARPGROUP_ATTENTION_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_WARPGROUP_ATTENTION_LAUNCH_HPP

#include <KokkosNN/impl/call/attention_plan.hpp>
#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/workspace.hpp>
#include <KokkosNN/impl/gpu/attention_row_table.hpp>
#include <KokkosNN/impl/gpu/warpgroup_attention.hpp>
#include <KokkosNN/impl/gpu/warpgroup_attention_gradients.hpp>
#include <KokkosNN/impl/gpu/warpgroup_heads.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>
#include <KokkosNN/impl/tensor_map.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

// Launches of attention on Hopper's warpgroups (gpu/warpgroup_attention.hpp), for a plan that says so.

namespace KokkosNN::Impl {

/// Teams of the kernel that makes the table of rows, which take blocks in turn.
inline constexpr std::int64_t most_table_teams = std::int64_t(1) << 30;

/// A tensor of `heads` heads, whose boxes have `rows` rows.
template <class X>
BoxedTensor boxed_heads(const X* data, const AttentionShape& shape, const AttentionStrides& strides, bool of_keys,
                        int rows) {
  const std::int64_t heads = of_keys ? shape.kv_heads : shape.heads;
  BoxedTensor boxed;
  boxed.data      = data;
  boxed.type      = element_type<X>();
  boxed.extent[1] = of_keys ? shape.keys : shape.queries;
  boxed.stride[1] = strides.sequence;
  boxed.extent[2] = strides.head == 0 ? 1 : heads;
  boxed.stride[2] = strides.head;
  boxed.extent[3] = shape.is_packed || strides.batch == 0 ? 1 : shape.batch;
  boxed.stride[3] = strides.batch;
  boxed.box[1]    = rows;
  return boxed;
}

/// A tensor as a kernel has it, whose map `map_of` makes.
template <class Heads, class X, class MapOf>
Heads heads_of(const X* data, const AttentionShape& shape, const AttentionStrides& strides, bool of_keys,
               std::int64_t dim, int rows, const MapOf& map_of) {
  BoxedTensor boxed = boxed_heads(data, shape, strides, of_keys, rows);
  boxed.extent[0]   = dim;
  return {map_of(boxed), boxed.extent[3] > 1, boxed.extent[2] > 1, shape.is_packed};
}

template <class Kernel, class Data, class MapOf>
Kernel warpgroup_attention(const Data& data, const AttentionPlan& plan, const MapOf& map_of) {
  using Heads                 = typename Kernel::Heads;
  const AttentionShape& shape = data.shape;
  return {data,
          heads_of<Heads>(data.q, shape, data.q_strides, false, shape.dim, Kernel::rows, map_of),
          heads_of<Heads>(data.k, shape, data.k_strides, true, shape.dim, Kernel::keys, map_of),
          heads_of<Heads>(data.v, shape, data.v_strides, true, shape.value_dim, Kernel::keys, map_of),
          plan.bundle,
          plan.writes_units};
}

template <class Kernel>
constexpr AttentionKernelShape kernel_shape_of() {
  return {Kernel::rows, Kernel::keys, Kernel::team_size, Kernel::scratch};
}
template <class Kernel, class Exec, class Data>
void launch_attention_in_warpgroups(const Exec& exec, const std::string& label, const AttentionPlan& plan,
                                    const Data& data) {
  launch_tiles(
      exec, label, {plan.league_size, plan.team_size, plan.scratch_level, plan.scratch},
      warpgroup_attention<Kernel>(data, plan, [&](const BoxedTensor& tensor) { return tensor_map(label, tensor); }));
}

/// Calls f.operator()<Kernel>() of the kernel for a call, whose heads of at most 256 elements it pads. Kernels with an
/// epilogue, which users compile, are those without elements of up to 128.
template <class X, class Data, class F>
void with_attention_in_warpgroups(const Data& data, const F& f) {
  const std::int64_t dims = std::max(data.shape.dim, data.shape.value_dim);
  const auto with_dims    = [&]<bool has_elements>() {
    if (dims <= 64)
      return f.template operator()<AttentionInWarpgroups<X, 64, has_elements, HopperInstructions, Data>>();
    if constexpr (!Data::has_epilogue) {
      if (dims > 192) return f.template operator()<AttentionInWarpgroups<X, 256, has_elements>>();
      if (dims > 128) return f.template operator()<AttentionInWarpgroups<X, 192, has_elements>>();
    }
    return f.template operator()<AttentionInWarpgroups<X, 128, has_elements, HopperInstructions, Data>>();
  };
  if constexpr (!Data::has_epilogue) {
    if (data.changes_scores()) return with_dims.template operator()<true>();
  }
  with_dims.template operator()<false>();
}

/// Shape of that kernel; no rows: there is none.
template <class X, class Data>
AttentionKernelShape warpgroup_attention_shape(const Data& data) {
  if (std::max(data.shape.dim, data.shape.value_dim) > (Data::has_epilogue ? 128 : 256)) return {};
  if (Data::has_epilogue && data.changes_scores()) return {};
  AttentionKernelShape shape;
  with_attention_in_warpgroups<X>(data, [&]<class Kernel>() { shape = kernel_shape_of<Kernel>(); });
  return shape;
}

template <class X, class Exec, class Data>
void launch_attention_on_warpgroups(const Exec& exec, const std::string& label, const AttentionPlan& plan,
                                    const Data& data) {
  with_attention_in_warpgroups<X>(
      data, [&]<class Kernel>() { launch_attention_in_warpgroups<Kernel>(exec, label, plan, data); });
}

/// A kernel of the gradients, whose tiles have rows of `of_tiles` and blocks those of the other two tensors.
template <class Kernel, class MapOf>
Kernel warpgroup_gradients(const AttentionGradientData<typename Kernel::X>& data, const typename Kernel::Row* table,
                           const AttentionPlan& plan, bool of_keys, const MapOf& map_of) {
  using Heads                 = typename Kernel::Heads;
  const AttentionShape& shape = data.shape;
  const int of_rows           = of_keys ? Kernel::tile_rows : Kernel::rows;  // of queries
  const int of_cols           = of_keys ? Kernel::rows : Kernel::tile_rows;
  Kernel kernel;
  kernel.data         = data;
  kernel.q            = heads_of<Heads>(data.q, shape, data.q_strides, false, shape.dim, of_rows, map_of);
  kernel.k            = heads_of<Heads>(data.k, shape, data.k_strides, true, shape.dim, of_cols, map_of);
  kernel.v            = heads_of<Heads>(data.v, shape, data.v_strides, true, shape.value_dim, of_cols, map_of);
  kernel.dout         = heads_of<Heads>(data.dout, shape, data.dout_strides, false, shape.value_dim, of_rows, map_of);
  kernel.table        = table;
  kernel.bundle       = plan.bundle;
  kernel.writes_units = plan.writes_units;
  return kernel;
}

template <class Kernel, class Exec, class X>
void launch_gradients_on_warpgroups(const Exec& exec, const std::string& label, const AttentionPlan& plan, bool of_keys,
                                    const AttentionGradientData<X>& data, const typename Kernel::Row* table) {
  if (plan.league_size == 0) return;
  launch_tiles(exec, label, {plan.league_size, plan.team_size, plan.scratch_level, plan.scratch},
               warpgroup_gradients<Kernel>(data, table, plan, of_keys,
                                           [&](const BoxedTensor& tensor) { return tensor_map(label, tensor); }));
}

/// Makes the table of rows, then adds up dq, then dk and dv.
template <int dims, bool has_elements, class X, class Exec>
void launch_gradients_on_warpgroups(const Exec& exec, const char* function, const AttentionPlan& of_queries,
                                    const AttentionPlan& of_keys, AttentionGradientData<X> data) {
  using Table             = AttentionRowTable<X, has_elements>;
  using Row               = typename Table::Row;
  const std::int64_t rows = data.shape.all_rows();
  const WorkspaceLease<Exec, WorkspaceUse::sums> workspace(
      exec, static_cast<std::size_t>(rows) * (sizeof(Row) + sizeof(float)));
  auto* const table         = reinterpret_cast<Row*>(workspace.data());
  data.delta                = reinterpret_cast<float*>(table + rows);
  const std::int64_t blocks = data.shape.head_blocks(Table::rows);
  if (blocks > 0) {
    launch_tiles(exec, to_string(function, of_queries) + "[rows]",
                 {std::min<std::int64_t>(blocks, most_table_teams), Table::team_size, 0, Table::scratch},
                 Table{data, table});
  }
  launch_gradients_on_warpgroups<AttentionQueryGradientsInWarpgroups<X, dims, has_elements>>(
      exec, to_string(function, of_queries) + "[queries]", of_queries, false, data, table);
  launch_gradients_on_warpgroups<AttentionKeyGradientsInWarpgroups<X, dims, has_elements>>(
      exec, to_string(function, of_keys) + "[keys]", of_keys, true, data, table);
}

/// Calls f.operator()<dims, has_elements>() of the kernels for a call, whose heads of at most 128 elements they pad.
template <class X, class F>
void with_gradients_in_warpgroups(const AttentionGradientData<X>& data, const F& f) {
  const auto with_dims = [&]<bool has_elements>() {
    if (std::max(data.shape.dim, data.shape.value_dim) <= 64) return f.template operator()<64, has_elements>();
    f.template operator()<128, has_elements>();
  };
  if (data.changes_scores()) return with_dims.template operator()<true>();
  with_dims.template operator()<false>();
}

template <class Kernel>
constexpr AttentionKernelShape gradient_shape_of() {
  return {Kernel::rows, Kernel::tile_rows, Kernel::team_size, Kernel::scratch};
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_WARPGROUP_ATTENTION_LAUNCH_HPP
