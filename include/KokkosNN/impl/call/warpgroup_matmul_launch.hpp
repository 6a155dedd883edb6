// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_WARPGROUP_MATMUL_LAUNCH_HPP
#define KOKKOSNN_IMPL_CALL_WARPGROUP_MATMUL_LAUNCH_HPP

#include <KokkosNN/impl/call/launch.hpp>
#include <KokkosNN/impl/call/matmul_plan.hpp>
#include <KokkosNN/impl/call/matmul_units.hpp>
#include <KokkosNN/impl/gpu/device/warpgroup.hpp>
#include <KokkosNN/impl/gpu/warpgroup_matmul.hpp>
#include <KokkosNN/impl/inputs/matmul_tensors.hpp>
#include <KokkosNN/impl/tensor_map.hpp>

#include <cstdint>
#include <type_traits>

// Launches of matrix products on Hopper's warpgroups (gpu/warpgroup_matmul.hpp), for a plan that says so.

namespace KokkosNN::Impl {

/// True if there can be such a kernel of these elements.
template <class T, class A, class C, MatmulRows rows>
inline constexpr bool has_warpgroup_products =
    sizeof(T) == 2 && std::is_same_v<A, float> && sizeof(C) <= 4 && rows == MatmulRows::own;

/// An operand and its tiles: `across` of its elements across the sums' axis, whose rows go along that axis or across.
inline BoxedTensor boxed_operand(const MatmulLayout& layout, int number, ElementType type, bool is_across, int across) {
  const bool is_a           = number == MatmulTensors::a;
  const std::int64_t others = is_a ? layout.rows : layout.cols;
  const std::int64_t along_stride =
      is_a ? layout.row_stride[number] : layout.col_stride[number];  // where rows go along the sums' axis
  const std::int64_t across_stride = is_a ? layout.col_stride[number] : layout.row_stride[number];
  BoxedTensor boxed;
  boxed.data      = layout.data[number];
  boxed.type      = type;
  boxed.extent[0] = is_across ? others : layout.inner;
  boxed.extent[1] = is_across ? layout.inner : others;
  boxed.stride[1] = is_across ? across_stride : along_stride;
  boxed.box[1]    = is_across ? warpgroup_tile_inner : across;
  for (int k = 0; k < layout.n; ++k) {
    const std::int64_t stride = layout.stride[number][layout.n - 1 - k];
    if (stride == 0) continue;  // its matrices repeat
    boxed.extent[2 + k] = layout.extent[layout.n - 1 - k];
    boxed.stride[2 + k] = stride;
  }
  return boxed;
}

/// Sets the arguments of a kernel, whose maps `map_of` makes.
template <class Kernel, class F, class A, class Results, class MapOf>
void set_warpgroup_kernel(Kernel& kernel, const MatmulLayout& layout, const MatmulData<typename Kernel::T>& data,
                          const MatmulEpilogue<F, A>& epilogue, const Results& results, const MapOf& map_of) {
  using Tile             = typename Kernel::Tile;
  const ElementType type = element_type<typename Kernel::T>();
  const BoxedTensor a    = boxed_operand(layout, MatmulTensors::a, type, Kernel::a_across, Tile::rows);
  const BoxedTensor b    = boxed_operand(layout, MatmulTensors::b, type, !Kernel::b_along, Tile::cols);
  kernel.a               = map_of(a);
  kernel.b               = map_of(b);
  kernel.data            = data;
  for (int k = 0; k < 3; ++k) {
    kernel.batch_extent[k] = k < layout.n ? layout.extent[layout.n - 1 - k] : 1;
    kernel.a_has_axis[k]   = a.extent[2 + k] > 1;
    kernel.b_has_axis[k]   = b.extent[2 + k] > 1;
  }
  kernel.epilogue  = epilogue;
  kernel.results   = results;
  kernel.has_units = has_units_of<Results>(layout);
}

/// Launches the form of the kernel that the plan names.
template <class T, class Exec, class F, class A, class Results>
void launch_on_warpgroups(const Exec& exec, const MatmulLayout& layout, const MatmulPlan& plan,
                          const MatmulData<T>& data, const MatmulEpilogue<F, A>& epilogue, const Results& results) {
  const auto run = [&]<bool a_across, bool b_along>(std::bool_constant<a_across>, std::bool_constant<b_along>) {
    MatmulInWarpgroups<T, a_across, b_along, F, A, Results> kernel{
        {epilogue, results, false}, {}, {}, data, {}, {}, {}};
    set_warpgroup_kernel(kernel, layout, data, epilogue, results,
                         [&](const BoxedTensor& tensor) { return tensor_map(plan.label, tensor); });
    launch_tiles(exec, plan.label, {plan.league_size, plan.team_size, plan.scratch_level, plan.scratch}, kernel);
  };
  constexpr std::true_type yes;
  constexpr std::false_type no;
  if (plan.a_across) return plan.b_along ? run(yes, yes) : run(yes, no);
  return plan.b_along ? run(no, yes) : run(no, no);
}

/// Products without an epilogue on tensors of one type, compiled in a file of the library that is for sm_90a.
template <class Exec, class T>
struct MatmulOnWarpgroups {
  /// False if the library was built without.
  static bool is_compiled();
  static void run(const Exec& exec, const MatmulLayout& layout, const MatmulPlan& plan, const MatmulData<T>& data,
                  const MatmulEpilogue<MatmulResult, float>& epilogue, const MatmulResults<T, ElementTypes<>>& results);
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_WARPGROUP_MATMUL_LAUNCH_HPP
