// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_PAIR_EXCHANGE_HPP
#define KOKKOSNN_IMPL_MPI_PAIR_EXCHANGE_HPP

#include <KokkosNN/mpi_export.hpp>
#include <KokkosNN/online.hpp>
#include <KokkosNN/plan.hpp>

#include <mpi.h>

#include <array>
#include <cstdint>
#include <exception>
#include <span>
#include <string>

// Communication of the ranks, without templates and without Kokkos: the merge of pairs, and the agreement on a call.

namespace KokkosNN::Impl {

using ShardPair = MaxSumExp<double>;

/// Value that must be equal on every rank.
struct SharedFact {
  const char* name;
  std::int64_t value;
};

/// Merger: sets into[i] to merge(into[i], from[i]) for n pairs, and returns when they are merged.
class PairMerger {
 public:
  virtual void merge(ShardPair* into, const ShardPair* from, std::int64_t n) const = 0;

 protected:
  ~PairMerger() = default;
};

/// True if the MPI says that it takes pointers to the memory of such a device.
KOKKOSNN_MPI_EXPORT bool mpi_takes_device_pointers(Backend backend);

/// Exchange of pairs: a duplicate of the MPI communicator, its type and its operation. An MPI error becomes a
/// std::runtime_error with MPI's text; after one, every further call throws it again.
class KOKKOSNN_MPI_EXPORT PairExchange {
 public:
  explicit PairExchange(MPI_Comm parent);
  ~PairExchange();
  PairExchange(const PairExchange&)            = delete;
  PairExchange& operator=(const PairExchange&) = delete;

  int rank() const { return m_rank; }
  int size() const { return m_size; }

  /// Replaces every rank's n pairs by their merge over all ranks, by MPI's own reduction.
  void reduce(const char* function, ShardPair* pairs, std::int64_t n) const;

  /// Replaces every rank's n pairs by their merge over all ranks, by messages between two ranks, in an order that
  /// depends only on the number of ranks. Merging commutes bit for bit, so all ranks get equal bits. `received` is
  /// memory for n pairs.
  void reduce_in_order(const char* function, ShardPair* pairs, ShardPair* received, std::int64_t n,
                       const PairMerger& merger) const;

  /// Throws on every rank, std::invalid_argument or the exception in `refusal`, unless no rank refuses and the facts,
  /// at most `max_facts`, are equal on all. It takes one reduction of a few words, and more if it throws.
  static constexpr int max_facts = 16;
  void agree(const char* function, std::span<const SharedFact> facts, const std::exception_ptr& refusal) const;

  /// Sums over the ranks before this one, and over all.
  std::array<std::int64_t, 2> sums_before_and_all(const char* function, std::int64_t value) const;

 private:
  void require_sound(const char* function) const;
  void require(const char* function, const char* call, int code) const;
  void send_pairs(const char* function, const ShardPair* pairs, std::int64_t n, int to) const;
  void receive_pairs(const char* function, ShardPair* pairs, std::int64_t n, int from) const;
  void swap_pairs(const char* function, const ShardPair* mine, ShardPair* theirs, std::int64_t n, int with) const;
  [[noreturn]] void throw_refusal(const char* function, int refusing, const std::exception_ptr& refusal) const;

  MPI_Comm m_comm     = MPI_COMM_NULL;
  MPI_Datatype m_pair = MPI_DATATYPE_NULL;
  MPI_Op m_merge      = MPI_OP_NULL;
  int m_rank          = 0;
  int m_size          = 1;
  mutable std::string m_failure;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MPI_PAIR_EXCHANGE_HPP
