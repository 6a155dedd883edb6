// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ELEMENTWISE_HPP
#define KOKKOSNN_IMPL_GPU_ELEMENTWISE_HPP

#include <KokkosNN/impl/elementwise_forms.hpp>
#include <KokkosNN/impl/gpu/device/memory.hpp>
#include <KokkosNN/impl/inputs/elementwise.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>

// Elementwise calls on a GPU. A team has a tile of some rows: each row has as many threads as keep K packs each, a long
// row several teams. A thread loads its packs of all inputs, computes, and stores.

namespace KokkosNN::Impl {

/// The kernel of a form: V neighbouring elements a pack, of which a thread has K. In the form `elements` a pack is an
/// element, so that neighbouring threads have neighbouring elements, whatever the strides are.
template <class F, class A, ElementwiseForm form, int V, int K, class Outputs, class Inputs>
struct ElementwiseKernel {
  static constexpr bool moves_packs = form != ElementwiseForm::elements;
  static constexpr int width        = moves_packs ? V : 1;
  using Tensors                     = ElementwiseTensors<Outputs, Inputs>;

  F f;
  Tensors tensors;
  std::int64_t rows;
  std::int64_t cols;
  int threads_per_row;
  std::int64_t tiles_per_row;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    const int rows_per_team   = team.team_size() / threads_per_row;
    const std::int64_t league = team.league_rank();
    const std::int64_t block  = tiles_per_row == 1 ? league : league / tiles_per_row;
    const std::int64_t tile   = tiles_per_row == 1 ? 0 : league - block * tiles_per_row;
    const std::int64_t row    = block * rows_per_team + team.team_rank() / threads_per_row;
    if (row >= rows) return;
    do_row(row, tile, team.team_rank() % threads_per_row, AllOutputs{}, AllInputs{});
  }

 private:
  using AllOutputs = std::make_index_sequence<Outputs::count>;
  using AllInputs  = std::make_index_sequence<Inputs::count>;

  template <class T>
  struct Packs {
    Pack<T, width> pack[K];
  };

  template <std::size_t... o, std::size_t... i>
  KOKKOS_FORCEINLINE_FUNCTION void do_row(std::int64_t row, std::int64_t tile, int lane, std::index_sequence<o...>,
                                          std::index_sequence<i...>) const {
    Slots<const typename Tensors::template Input<i>*...> from{{tensors.template input_row<i>(row)}...};
    Slots<typename Tensors::template Output<o>*...> to{{tensors.template output_row<o>(row)}...};
    std::int64_t head = 0, packs = cols;
    if constexpr (moves_packs) {
      head = (V - pack_phase<typename Tensors::template Output<0>, V>(at<0>(to))) % V;
      if (head > cols) head = cols;
      packs = (cols - head) / V;
      if (tile == 0)
        do_edges(from, to, head, head + packs * V, lane, std::index_sequence<o...>{}, std::index_sequence<i...>{});
    }
    const std::int64_t first = tile * threads_per_row * K + lane;
    Slots<Packs<typename Tensors::template Input<i>>...> in;
    (load<i>(at<i>(from) + head * unit<i>(), at<i>(in), first, packs), ...);
    Slots<Packs<typename Tensors::template Output<o>>...> out;
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      KOKKOSNN_IMPL_UNROLL
      for (int v = 0; v < width; ++v) {
        const auto results = f(static_cast<A>(at<i>(in).pack[k][v])...);
        ((at<o>(out).pack[k][v] =
              static_cast<typename Tensors::template Output<o>>(static_cast<A>(result_at<o>(results)))),
         ...);
      }
    }
    (store<o>(at<o>(to) + head, at<o>(out), first, packs), ...);
  }

  /// The elements in front of a row's first whole pack and behind its last, in its first tile.
  template <class From, class To, std::size_t... o, std::size_t... i>
  KOKKOS_FORCEINLINE_FUNCTION void do_edges(const From& from, const To& to, std::int64_t head, std::int64_t tail,
                                            int lane, std::index_sequence<o...>, std::index_sequence<i...>) const {
    const int edges = static_cast<int>(head + cols - tail);
    for (int e = lane; e < edges; e += threads_per_row) {
      const std::int64_t c = e < head ? e : tail + (e - head);
      const auto results   = f(static_cast<A>(at<i>(from)[c * unit<i>()])...);
      ((at<o>(to)[c] = static_cast<typename Tensors::template Output<o>>(static_cast<A>(result_at<o>(results)))), ...);
    }
  }

  /// Column stride of an input in the forms that move packs: 1, or 0 where a row has one element.
  template <std::size_t i>
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t unit() const {
    if constexpr (form == ElementwiseForm::packs) return 1;
    return tensors.template input_stride<i>();
  }

  template <std::size_t i, class T>
  KOKKOS_FORCEINLINE_FUNCTION void load(const T* from, Packs<T>& in, std::int64_t first, std::int64_t packs) const {
    const std::int64_t stride = unit<i>();
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const std::int64_t p = first + std::int64_t(k) * threads_per_row;
      in.pack[k]           = {};
      if (p >= packs) continue;
      if constexpr (!moves_packs) {
        in.pack[k][0] = from[p * stride];
      } else if (form == ElementwiseForm::one_or_packs && stride == 0) {
        for (int v = 0; v < width; ++v) in.pack[k][v] = from[0];
      } else {
        KOKKOS_IF_ON_DEVICE(
            (in.pack[k] = load_at_once(reinterpret_cast<const Pack<T, width>*>(from) + p, LinePolicy{});))
        KOKKOS_IF_ON_HOST((for (int v = 0; v < width; ++v) in.pack[k][v] = from[p * width + v];))
      }
    }
  }

  template <std::size_t o, class T>
  KOKKOS_FORCEINLINE_FUNCTION void store(T* to, const Packs<T>& out, std::int64_t first, std::int64_t packs) const {
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < K; ++k) {
      const std::int64_t p = first + std::int64_t(k) * threads_per_row;
      if (p >= packs) continue;
      if constexpr (!moves_packs) {
        to[p * tensors.template output_stride<o>()] = out.pack[k][0];
      } else {
        KOKKOS_IF_ON_DEVICE((store_at_once(reinterpret_cast<Pack<T, width>*>(to) + p, out.pack[k]);))
        KOKKOS_IF_ON_HOST((for (int v = 0; v < width; ++v) to[p * width + v] = out.pack[k][v];))
      }
    }
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ELEMENTWISE_HPP
