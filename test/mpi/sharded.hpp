// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_MPI_SHARDED_HPP
#define KOKKOSNN_TEST_MPI_SHARDED_HPP

#include "support/check.hpp"
#include "support/inputs.hpp"
#include "support/types.hpp"
#include "support/ulp.hpp"

#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/mpi.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <mpi.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::mpi::Communicator;
using KokkosNN::mpi::CommunicatorOptions;
using KokkosNN::mpi::Transport;

inline int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

inline int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// How columns are spread over the ranks.
enum class Split {
  even,
  uneven,
  some_empty,  ///< every other rank has none
  one_has_all  ///< the last one
};

inline constexpr std::array all_splits{Split::even, Split::uneven, Split::some_empty, Split::one_has_all};

/// The first column of every rank, and behind the last one's.
inline std::vector<std::int64_t> first_columns(Split split, std::int64_t cols) {
  const int size = world_size();
  std::vector<std::int64_t> weight_before{0};
  for (int r = 0; r < size; ++r) {
    std::int64_t weight = 1;
    if (split == Split::uneven) weight = 1 + (5 * r) % 7;
    if (split == Split::some_empty) weight = size == 1 ? 1 : r % 2;
    if (split == Split::one_has_all) weight = r == size - 1;
    weight_before.push_back(weight_before.back() + weight);
  }
  for (std::int64_t& before : weight_before) before = before * cols / weight_before.back();
  return weight_before;
}

template <class T>
using Matrix = Kokkos::View<T**, Kokkos::LayoutRight, Memory>;
template <class T>
using Vector = Kokkos::View<T*, Memory>;
template <class T>
using HostMatrix = typename Matrix<T>::host_mirror_type;

/// A matrix of which every rank knows all of the elements, and has some of the columns on its device.
template <class T>
struct Spread {
  std::int64_t rows;
  std::int64_t cols;
  std::vector<std::int64_t> first;  ///< columns of the ranks
  Matrix<T> whole;
  HostMatrix<T> host;
  Matrix<T> shard;

  Spread(std::int64_t m, std::int64_t n, Split split)
      : rows(m), cols(n), first(first_columns(split, n)), whole("whole", m, n), host(Kokkos::create_mirror(whole)) {}

  std::int64_t begin() const { return first[world_rank()]; }
  std::int64_t end() const { return first[world_rank() + 1]; }

  /// Copies what was written to `host`.
  void upload() {
    Kokkos::deep_copy(whole, host);
    shard = Matrix<T>("shard", rows, end() - begin());
    Kokkos::deep_copy(shard, Kokkos::subview(whole, Kokkos::ALL, std::pair(begin(), end())));
  }

  void fill(Recipe recipe) {
    for (std::int64_t row = 0; row < rows; ++row) {
      InputRow values(recipe, row, cols);
      for (std::int64_t col = 0; col < cols; ++col) host(row, col) = static_cast<T>(values.next());
    }
    upload();
  }
};

/// The largest error of this rank's columns of a result against those of one rank's, `ulp` of two elements.
template <class T, class Ulp>
Errors errors_of(const Matrix<T>& shard, const Matrix<T>& whole, std::int64_t begin, const Ulp& ulp) {
  const auto mine = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), shard);
  const auto all  = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), whole);
  Errors errors;
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(mine.extent(0)); ++row) {
    for (std::int64_t col = 0; col < static_cast<std::int64_t>(mine.extent(1)); ++col) {
      const long double value = exact(mine(row, col)), expected = exact(all(row, begin + col));
      errors.add(ulp(value, expected, row), row, begin + col, value, expected);
    }
  }
  return errors;
}

/// The largest error of a result with a value a row, against one rank's.
template <class T, class Ulp>
Errors errors_of(const Vector<T>& values, const Vector<T>& of_one_rank, const Ulp& ulp) {
  const auto mine = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), values);
  const auto one  = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), of_one_rank);
  Errors errors;
  for (std::int64_t row = 0; row < static_cast<std::int64_t>(mine.extent(0)); ++row) {
    const long double value = exact(mine(row)), expected = exact(one(row));
    errors.add(ulp(value, expected, row), row, 0, value, expected);
  }
  return errors;
}

/// The promised difference between ranks, in ulp: none for float and 16-bit types, 4 for double for every doubling.
template <class T>
double between_ranks() {
  return std::is_same_v<T, double> ? 4.0 * std::bit_width(static_cast<unsigned>(world_size() - 1)) : 0.0;
}

/// All of the test's communicators: both ways to merge, both transports by MPI and that which is chosen, rows in one
/// block and in several.
inline std::vector<CommunicatorOptions> all_communicators() {
  std::vector<CommunicatorOptions> all;
  for (const bool deterministic : {false, true}) {
    all.push_back({.deterministic = deterministic, .transport = Transport::staged});
    // On a device MPI may not take such pointers.
    const Transport other = on_gpu ? Transport::automatic : Transport::device;
    all.push_back({.deterministic = deterministic, .transport = other, .block_rows = 3});
  }
  return all;
}

/// Pair of a rank whose merges with those of others depend on the order in the last bits.
inline KokkosNN::MaxSumExp<double> pair_of_rank(int rank, int i) {
  // One rounding each: a compiler that computes some of them itself, and fuses the others, must not see two.
  return {0.1 * ((7 * rank + 3 * i) % 11), (100 + 37 * ((5 * rank + i) % 13)) / 100.0};
}

/// Merge of states of `size` ranks in the documented order, by one rank for all: recursive doubling.
template <class OfRank>
auto merged_in_order(int size, const OfRank& state_of_rank) {
  int doubling = 1;
  while (2 * doubling <= size) doubling *= 2;
  const int extra = size - doubling;
  std::vector<decltype(state_of_rank(0))> states;
  for (int r = 0; r < doubling; ++r) {
    states.push_back(r < extra ? merge(state_of_rank(2 * r), state_of_rank(2 * r + 1)) : state_of_rank(r + extra));
  }
  for (; states.size() > 1;) {
    for (std::size_t r = 0; r < states.size() / 2; ++r) states[r] = merge(states[2 * r], states[2 * r + 1]);
    states.resize(states.size() / 2);
  }
  return states[0];
}

/// Gather as NCCL's by MPI: it waits for the instance, and copies what a host cannot access.
class GatherByMpi final : public KokkosNN::Impl::StateGather {
 public:
  void gather(const char*, const void* mine, void* all, std::size_t bytes) const override {
    using Bytes              = Kokkos::View<char*, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    using HostBytes          = Kokkos::View<char*, Kokkos::HostSpace>;
    const std::size_t of_all = bytes * static_cast<std::size_t>(world_size());
    const HostBytes own("own", bytes), from_all("all", of_all);
    Kokkos::fence();
    Kokkos::deep_copy(own, Bytes(static_cast<char*>(const_cast<void*>(mine)), bytes));
    const auto count = static_cast<int>(bytes);
    MPI_Allgather(own.data(), count, MPI_CHAR, from_all.data(), count, MPI_CHAR, MPI_COMM_WORLD);
    Kokkos::deep_copy(Bytes(static_cast<char*>(all), of_all), from_all);
  }
};

/// The bits of a value a row, from every rank.
template <class T>
bool are_bits_equal_on_all_ranks(const Vector<T>& values) {
  const auto mine  = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), values);
  const auto bytes = static_cast<int>(mine.extent(0) * sizeof(T));
  std::vector<char> of_first(reinterpret_cast<const char*>(mine.data()),
                             reinterpret_cast<const char*>(mine.data()) + bytes);
  const std::vector<char> own = of_first;
  MPI_Bcast(of_first.data(), bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
  int are_equal = of_first == own;
  MPI_Allreduce(MPI_IN_PLACE, &are_equal, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
  return are_equal != 0;
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_MPI_SHARDED_HPP
