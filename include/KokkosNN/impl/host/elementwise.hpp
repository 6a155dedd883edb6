// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_ELEMENTWISE_HPP
#define KOKKOSNN_IMPL_HOST_ELEMENTWISE_HPP

#include <KokkosNN/impl/elementwise_forms.hpp>
#include <KokkosNN/impl/host/vector_memory.hpp>
#include <KokkosNN/impl/inputs/elementwise.hpp>
#include <KokkosNN/impl/operators/elementwise.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

// Elementwise calls on a host. A functor of vectors runs from memory to memory where columns are contiguous. Otherwise
// a block of each input is converted or gathered first, the functor runs in a loop over blocks, which the compiler
// vectorises, and results are converted or scattered. Results that exceed the caches go past them by whole lines.

/// In front of a loop whose turns do not depend on each other.
#if defined(__clang__)
#define KOKKOSNN_IMPL_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define KOKKOSNN_IMPL_INDEPENDENT _Pragma("GCC ivdep")
#else
#define KOKKOSNN_IMPL_INDEPENDENT
#endif

namespace KokkosNN::Impl {

template <class F, class A, class Outputs, class Inputs>
struct HostElementwise {
  using Tensors = ElementwiseTensors<Outputs, Inputs>;

  F f;
  Tensors tensors;
  std::int64_t rows;
  std::int64_t cols;
  std::int64_t piece;  ///< columns that threads share rows by: a multiple of a line
  bool nontemporal_stores;

  template <class Member>
  KOKKOS_FUNCTION void operator()(const Member& team) const {
    KOKKOS_IF_ON_HOST((do_share(team.league_rank(), team.league_size(), AllOutputs{}, AllInputs{});))
  }

 private:
  using AllOutputs = std::make_index_sequence<Outputs::count>;
  using AllInputs  = std::make_index_sequence<Inputs::count>;
  template <std::size_t o>
  using Output = typename Tensors::template Output<o>;
  template <std::size_t i>
  using Input = typename Tensors::template Input<i>;

  static constexpr int lanes  = simd_width<A>;
  static constexpr int line   = host_line / sizeof(Output<0>);  ///< elements
  static constexpr int block  = elementwise_host_block;
  static constexpr int padded = block + lanes;
  static_assert(block % line == 0 && block % lanes == 0);

  template <class T>
  static constexpr bool is_loaded_as_a = Concepts::Element<T> && std::is_same_v<accumulator_t<T>, A>;
  template <class... T>
  static constexpr bool are_loaded_as_a(ElementTypes<T...>) {
    return (... && is_loaded_as_a<T>);
  }
  /// The functor takes vectors as they are loaded.
  static constexpr bool has_vector_loop = takes_vectors<F> && are_loaded_as_a(Outputs{}) && are_loaded_as_a(Inputs{});

  /// Where a row's columns from some column on are.
  template <class T>
  struct Columns {
    T* base;
    std::int64_t stride;

    T* at(std::int64_t c) const { return base + c * stride; }
  };

  /// Does the thread's share of all rows' pieces.
  template <std::size_t... o, std::size_t... i>
  void do_share(std::int64_t rank, std::int64_t size, std::index_sequence<o...> each_o,
                std::index_sequence<i...> each_i) const {
    const std::int64_t pieces = std::max<std::int64_t>(1, (cols + piece - 1) / piece);
    const std::int64_t all    = rows * pieces;
    const std::int64_t each = all / size, more = all % size;
    std::int64_t next       = rank * each + std::min(rank, more);
    const std::int64_t last = next + each + (rank < more ? 1 : 0);
    while (next < last) {
      const std::int64_t row = next / pieces, first = next - row * pieces;
      const std::int64_t end = std::min(pieces, first + (last - next));
      const Slots<Columns<Output<o>>...> to{{{tensors.template output_row<o>(row), tensors.stride[o]}}...};
      const Slots<Columns<const Input<i>>...> from{
          {{tensors.template input_row<i>(row), tensors.stride[Outputs::count + i]}}...};
      // Pieces begin at lines of the first output.
      const std::int64_t head = nontemporal_stores ? elements_to_boundary<vectors_in_line>(Impl::at<0>(to).base) : 0;
      const auto column       = [&](std::int64_t p) { return p == 0 ? 0 : std::min(cols, head + p * piece); };
      do_columns(to, from, column(first), end == pieces ? cols : column(end), each_o, each_i);
      next += end - first;
    }
    if (nontemporal_stores) fence_nontemporal_stores();
  }

  static constexpr int vectors_in_line = std::max(1, line / lanes_loaded<Output<0>>);

  template <class To, class From, std::size_t... o, std::size_t... i>
  void do_columns(const To& to, const From& from, std::int64_t begin, std::int64_t end,
                  std::index_sequence<o...> each_o, std::index_sequence<i...> each_i) const {
    const bool lines_agree = (... && (sizeof(Output<o>) == sizeof(Output<0>) && Impl::at<o>(to).stride == 1 &&
                                      (reinterpret_cast<std::uintptr_t>(Impl::at<o>(to).base) -
                                       reinterpret_cast<std::uintptr_t>(Impl::at<0>(to).base)) %
                                              host_line ==
                                          0));
    const bool past_caches = nontemporal_stores && lines_agree;
    if constexpr (has_vector_loop) {
      const bool is_contiguous = (... && (Impl::at<o>(to).stride == 1)) && (... && (Impl::at<i>(from).stride == 1));
      if (is_contiguous) {
        return do_vectors(f, end - begin, past_caches, Slots<Output<o>*...>{{Impl::at<o>(to).base + begin}...}, each_o,
                          Impl::at<i>(from).base + begin...);
      }
    }
    do_blocks(to, from, begin, end, past_caches, each_o, each_i);
  }

  /// From memory to memory, by vectors. Whole lines of the outputs, if they go past the caches.
  template <class To, std::size_t... o, class... In>
  [[gnu::always_inline]] static void do_vectors(const F& of_elements, std::int64_t count, bool past_caches,
                                                const To& to, std::index_sequence<o...>, const In*... in) {
    const F function = of_elements;  // a copy: reads through a reference are repeated after every store
    std::int64_t c   = 0;
    const auto some  = [&](int n) KOKKOSNN_IMPL_INLINED {
      const auto results = function(load_up_to(in + c, n)...);
      (store_up_to(Impl::at<o>(to) + c, Vector<A>(result_at<o>(results)), n), ...);
      c += n;
    };
    if (past_caches) {
      const std::int64_t head = std::min<std::int64_t>(count, elements_to_boundary<vectors_in_line>(Impl::at<0>(to)));
      while (c < head) some(static_cast<int>(std::min<std::int64_t>(lanes, head - c)));
      for (; c + line <= count; c += line) {
        for (int l = 0; l < line; l += lanes) {
          const auto results = function(load_vector(in + c + l)...);
          (store_vector_nontemporal(Impl::at<o>(to) + c + l, Vector<A>(result_at<o>(results))), ...);
        }
      }
    }
    for (; c + lanes <= count; c += lanes) {
      const auto results = function(load_vector(in + c)...);
      (store_vector(Impl::at<o>(to) + c, Vector<A>(result_at<o>(results))), ...);
    }
    if (c < count) some(static_cast<int>(count - c));
  }

  struct Buffer {
    alignas(host_line) A value[padded];
  };

  template <class To, class From, std::size_t... o, std::size_t... i>
  void do_blocks(const To& to, const From& from, std::int64_t begin, std::int64_t end, bool past_caches,
                 std::index_sequence<o...> each_o, std::index_sequence<i...>) const {
    Buffer in[Inputs::count], out[Outputs::count];
    const std::int64_t head = past_caches ? elements_to_boundary<vectors_in_line>(Impl::at<0>(to).base + begin) : 0;
    int count               = 0;
    for (std::int64_t c = begin; c < end; c += count) {
      const std::int64_t most = c == begin && head > 0 ? head : block;  // the others begin at lines
      count                   = static_cast<int>(std::min(most, end - c));
      compute(count, out, each_o, gathered(Impl::at<i>(from), c, count, in[i].value)...);
      (scatter(out[o].value, Impl::at<o>(to), c, count, past_caches), ...);
    }
  }

  /// A block of an input as accumulators: where it is, or in the buffer.
  template <class T>
  static const A* gathered(const Columns<const T>& from, std::int64_t c, int count, A* buffer) {
    const T* const first = from.at(c);
    if constexpr (std::is_same_v<T, A>) {
      // Vectors of a buffer are whole ones.
      if (from.stride == 1 && (!takes_vectors<F> || count % lanes == 0)) return first;
    }
    int j = 0;
    if constexpr (is_loaded_as_a<T>) {
      if (from.stride == 1) {
        for (; j + lanes <= count; j += lanes) store_vector(buffer + j, load_vector(first + j));
      }
    }
    for (; j < count; ++j) buffer[j] = static_cast<A>(first[j * from.stride]);
    if constexpr (takes_vectors<F>) {
      for (; j % lanes != 0; ++j) buffer[j] = A(0);
    }
    return buffer;
  }

  template <std::size_t... o, class... In>
  void compute(int count, Buffer* out, std::index_sequence<o...>, const In*... in) const {
    const F function = f;
    if constexpr (takes_vectors<F>) {
      for (int j = 0; j < count; j += lanes) {
        const auto results = function(load_vector(in + j)...);
        (store_vector(out[o].value + j, Vector<A>(result_at<o>(results))), ...);
      }
    } else if (count == block) {
      KOKKOSNN_IMPL_INDEPENDENT
      for (int j = 0; j < block; ++j) {
        const auto results = function(in[j]...);
        ((out[o].value[j] = static_cast<A>(result_at<o>(results))), ...);
      }
    } else {
      for (int j = 0; j < count; ++j) {
        const auto results = function(in[j]...);
        ((out[o].value[j] = static_cast<A>(result_at<o>(results))), ...);
      }
    }
  }

  template <class T>
  static void scatter(const A* values, const Columns<T>& to, std::int64_t c, int count, bool past_caches) {
    T* const first = to.at(c);
    int j          = 0;
    if constexpr (is_loaded_as_a<T>) {
      if (past_caches) {
        for (const int whole = is_line(first) ? count / line * line : 0; j < whole; j += lanes) {
          store_vector_nontemporal(first + j, load_vector(values + j));
        }
      }
      if (to.stride == 1) {
        for (; j + lanes <= count; j += lanes) store_vector(first + j, load_vector(values + j));
      }
    }
    for (; j < count; ++j) first[j * to.stride] = static_cast<T>(values[j]);
  }
  static bool is_line(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % host_line == 0; }
};

}  // namespace KokkosNN::Impl

#undef KOKKOSNN_IMPL_INDEPENDENT

#endif  // KOKKOSNN_IMPL_HOST_ELEMENTWISE_HPP
