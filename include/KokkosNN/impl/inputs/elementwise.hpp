// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_ELEMENTWISE_HPP
#define KOKKOSNN_IMPL_INPUTS_ELEMENTWISE_HPP

#include <KokkosNN/impl/inputs/row_map.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

// The tensors of an elementwise call in memory, and what its functor gives.

namespace KokkosNN::Impl {

/// Element types of tensors, in their order.
template <class... T>
struct ElementTypes {
  static constexpr int count = sizeof...(T);
  static constexpr int most_bytes() {
    int most = 0;
    ((most = int(sizeof(T)) > most ? int(sizeof(T)) : most), ...);
    return most;
  }
};

template <std::size_t i, class List>
struct ElementTypeAt;
template <std::size_t i, class First, class... Rest>
struct ElementTypeAt<i, ElementTypes<First, Rest...>> : ElementTypeAt<i - 1, ElementTypes<Rest...>> {};
template <class First, class... Rest>
struct ElementTypeAt<0, ElementTypes<First, Rest...>> : std::type_identity<First> {};

/// Tensors as rows of columns: outputs, then inputs. A column stride of 0 is an input's single element of each row.
template <class Outputs, class Inputs>
struct ElementwiseTensors {
  static constexpr int outputs = Outputs::count;
  static constexpr int inputs  = Inputs::count;

  void* data[outputs + inputs];
  std::int64_t stride[outputs + inputs];  ///< of columns
  RowMap map[outputs + inputs];

  template <std::size_t o>
  using Output = typename ElementTypeAt<o, Outputs>::type;
  template <std::size_t i>
  using Input = typename ElementTypeAt<i, Inputs>::type;

  template <std::size_t o>
  KOKKOS_FORCEINLINE_FUNCTION Output<o>* output_row(std::int64_t row) const {
    return static_cast<Output<o>*>(data[o]) + map[o](row);
  }
  template <std::size_t i>
  KOKKOS_FORCEINLINE_FUNCTION const Input<i>* input_row(std::int64_t row) const {
    return static_cast<const Input<i>*>(data[outputs + i]) + map[outputs + i](row);
  }
  template <std::size_t o>
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t output_stride() const {
    return stride[o];
  }
  template <std::size_t i>
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t input_stride() const {
    return stride[outputs + i];
  }
};

/// Number of results that a functor returns: one is a number, several are a Kokkos::Array; 0 for no array.
template <class R>
inline constexpr std::size_t array_size = 0;
template <class T, std::size_t n>
inline constexpr std::size_t array_size<Kokkos::Array<T, n>> = n;

template <std::size_t o, class R>
KOKKOS_FORCEINLINE_FUNCTION const auto& result_at(const R& results) {
  if constexpr (array_size<R> > 0) {
    return results[o];
  } else {
    return results;
  }
}

template <std::size_t, class A>
using Repeated = A;

/// Values of several types, one for each tensor: a tuple for device code.
template <std::size_t i, class T>
struct Slot {
  T value;
};
template <class Each, class... T>
struct SlotsOf;
template <std::size_t... i, class... T>
struct SlotsOf<std::index_sequence<i...>, T...> : Slot<i, T>... {};
template <class... T>
using Slots = SlotsOf<std::index_sequence_for<T...>, T...>;

template <std::size_t i, class T>
KOKKOS_FORCEINLINE_FUNCTION T& at(Slot<i, T>& slot) {
  return slot.value;
}
template <std::size_t i, class T>
KOKKOS_FORCEINLINE_FUNCTION const T& at(const Slot<i, T>& slot) {
  return slot.value;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_ELEMENTWISE_HPP
