// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_PLACEMENTS_HPP
#define KOKKOSNN_IMPL_CALL_PLACEMENTS_HPP

#include <KokkosNN/impl/gpu/placement/online.hpp>
#include <KokkosNN/impl/gpu/placement/packed.hpp>
#include <KokkosNN/impl/gpu/placement/registers.hpp>
#include <KokkosNN/impl/gpu/placement/scratch.hpp>
#include <KokkosNN/impl/host/rows.hpp>
#include <KokkosNN/impl/kernel_shapes.hpp>

#include <Kokkos_Core.hpp>

#include <type_traits>

// Where the kernels of an operator keep rows.

namespace KokkosNN::Impl {

/// Where an operator keeps rows.
template <RowOperator op, class Source, class A, int V, Backend backend>
struct Placements {
  static constexpr bool has_edges = Source::form == RowForm::misaligned;

  /// K packs a thread, in registers.
  template <int K>
  struct Registers {
    using type = RegisterPlacement<op, A, V, K, has_edges>;
  };
  template <int K>
    requires(keeps_packed(backend, sizeof(typename Source::value_type), V, K))
  struct Registers<K> {
    using type = PackedPlacement<op, typename Source::value_type, A, V, K, has_edges>;
  };
  using T = typename Source::value_type;
  using Scratch =
      std::conditional_t<keeps_packed_in_scratch(backend, sizeof(T), op),
                         PackedScratchPlacement<op, T, A, V, packs_when_looping(backend, V, op, Source::form)>,
                         ScratchPlacement<op, A, V, packs_from_scratch(backend, V, op, Source::form)>>;
  using Online = OnlinePlacement<op, A, V, packs_when_looping(backend, V, op, Source::form), backend == Backend::cuda>;
  /// On a host with vectors.
  template <class Params, bool keeps>
  using OnHost = HostLogits<op, V, Params, keeps>;
};

/// True if an operator's rows can be worked on in pieces, on a host.
template <class Kept, class Params>
concept HasHostPlacement = requires { typename Kept::template OnHost<Params, false>; };

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_PLACEMENTS_HPP
