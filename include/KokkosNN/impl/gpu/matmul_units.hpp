// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_MATMUL_UNITS_HPP
#define KOKKOSNN_IMPL_GPU_MATMUL_UNITS_HPP

#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/gpu/device/matrix_instructions.hpp>
#include <KokkosNN/impl/inputs/matmul_tensors.hpp>
#include <KokkosNN/pack.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

// Units of c, neighbouring elements of a row, of which one thread runs the epilogue. Kernels call `write_unit` and
// `run_unit` in a loop that stays a loop: a functor's code for each of a thread's sums would not fit in the cache of
// instructions.

namespace KokkosNN::Impl {

/// Instructions of a matrix unit, or the unit where it has none of its own.
template <class Unit>
struct InstructionsOf {
  using type = Unit;
};
template <class Unit>
  requires requires { typename Unit::Instructions; }
struct InstructionsOf<Unit> {
  using type = typename Unit::Instructions;
};

/// Epilogue of a kernel's sums, and its tensors. A base of kernels: nvcc keeps references to their parts in memory.
template <class F, class A, class Results_, int unit_, class Instructions>
struct MatmulUnits {
  using Results             = Results_;
  using C                   = typename Results::C;
  using Offsets             = Kokkos::Array<std::int64_t, Results::count>;  ///< into c and into the inputs
  static constexpr int unit = unit_;

  MatmulEpilogue<F, A> epilogue;
  Results results;
  bool has_units;  ///< a unit of c and of the inputs can be moved at once; see `has_units_of`

  /// Writes the results of a unit's sums. `left`: columns of c from the first element on.
  KOKKOS_FORCEINLINE_FUNCTION void write_unit(const Offsets& at, int left, const A (&sums)[unit]) const {
    if (has_units && left >= unit) {
      Unit<A> values;
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < unit; ++i) values.value[i] = epilogue.alpha * sums[i];
      if (epilogue.beta != A(0)) {
        const Unit<A> before = unit_at(0, c_data(), at);
        KOKKOSNN_IMPL_UNROLL
        for (int i = 0; i < unit; ++i) values.value[i] += epilogue.beta * before.value[i];
      }
      run_epilogue(values, at, AllInputs{});
      store(c_data() + at[0], values);
    } else {
      write_one_by_one(at, left, sums);
    }
  }

  /// Turns a unit's sums into results of a beta of 0, which the caller has in A.
  KOKKOS_FORCEINLINE_FUNCTION void run_unit(const Offsets& at, int left, A (&sums)[unit]) const {
    if (has_units && left >= unit) {
      Unit<A> values;
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < unit; ++i) values.value[i] = epilogue.alpha * sums[i];
      run_epilogue(values, at, AllInputs{});
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < unit; ++i) sums[i] = values.value[i];
    } else {
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < unit; ++i) {
        if (i < left) sums[i] = static_cast<A>(result_of(epilogue.alpha * sums[i], at, i, AllInputs{}));
      }
    }
  }

 private:
  using AllInputs = std::make_index_sequence<Results::Inputs::count>;

  template <class E>
  struct alignas(unit * sizeof(E) < 16 ? unit * sizeof(E) : 16) Unit {
    E value[unit];
  };

  KOKKOS_FORCEINLINE_FUNCTION static void store(C* to, const Unit<A>& values) {
    if constexpr (std::is_same_v<C, A>) {
      *reinterpret_cast<Unit<A>*>(to) = values;
    } else if constexpr (packs_pairs && unit == 8) {
      MatrixChunk chunk;
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < unit / 2; ++i) {
        chunk.word[i] = Instructions::template packed<C>(values.value[2 * i], values.value[2 * i + 1]);
      }
      *reinterpret_cast<MatrixChunk*>(to) = chunk;
    } else {
      Unit<C> rounded;
      KOKKOSNN_IMPL_UNROLL
      for (int i = 0; i < unit; ++i) rounded.value[i] = static_cast<C>(values.value[i]);
      *reinterpret_cast<Unit<C>*>(to) = rounded;
    }
  }
  /// True if an instruction rounds two sums to a word of two elements.
  static constexpr bool packs_pairs = std::is_same_v<A, float> &&
                                      (std::is_same_v<C, half_t> || std::is_same_v<C, bhalf_t>) &&
                                      requires { Instructions::template packed<C>(A(0), A(0)); };

  /// A tensor's elements in a unit.
  template <class E>
  KOKKOS_FORCEINLINE_FUNCTION Unit<A> unit_at(int t, const E* data_of, const Offsets& at) const {
    Unit<A> values;
    if (results.col_stride[t] == 0) {
      const A one = static_cast<A>(data_of[at[t]]);
      for (int i = 0; i < unit; ++i) values.value[i] = one;
    } else {
      const Unit<E> loaded = *reinterpret_cast<const Unit<E>*>(data_of + at[t]);
      for (int i = 0; i < unit; ++i) values.value[i] = static_cast<A>(loaded.value[i]);
    }
    return values;
  }
  template <std::size_t... i>
  KOKKOS_FORCEINLINE_FUNCTION void run_epilogue(Unit<A>& values, [[maybe_unused]] const Offsets& at,
                                                std::index_sequence<i...>) const {
    [[maybe_unused]] const Kokkos::Array<Unit<A>, sizeof...(i)> in{unit_at(1 + static_cast<int>(i), input<i>(), at)...};
    KOKKOSNN_IMPL_UNROLL
    for (int k = 0; k < unit; ++k) {
      values.value[k] = static_cast<A>(epilogue.f(values.value[k], in[i].value[k]...));
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION void write_one_by_one(const Offsets& at, int left, const A (&sums)[unit]) const {
    KOKKOSNN_IMPL_UNROLL
    for (int i = 0; i < unit; ++i) {
      if (i >= left) continue;
      C* const to = c_data() + at[0] + i * results.col_stride[0];
      A value     = epilogue.alpha * sums[i];
      if (epilogue.beta != A(0)) value += epilogue.beta * static_cast<A>(*to);
      *to = static_cast<C>(result_of(value, at, i, AllInputs{}));
    }
  }
  template <std::size_t... i>
  KOKKOS_FORCEINLINE_FUNCTION auto result_of(A value, [[maybe_unused]] const Offsets& at, [[maybe_unused]] int further,
                                             std::index_sequence<i...>) const {
    return epilogue.f(value, static_cast<A>(input<i>()[at[1 + i] + further * results.col_stride[1 + i]])...);
  }

  template <std::size_t i>
  KOKKOS_FORCEINLINE_FUNCTION const typename Results::template Input<i>* input() const {
    return static_cast<const typename Results::template Input<i>*>(results.data[1 + i]);
  }
  KOKKOS_FORCEINLINE_FUNCTION C* c_data() const { return static_cast<C*>(results.data[0]); }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_MATMUL_UNITS_HPP
