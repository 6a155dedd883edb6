// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_PAIR_EXCHANGE_HPP
#define KOKKOSNN_IMPL_MPI_PAIR_EXCHANGE_HPP

#include <KokkosNN/impl/reductions/moments.hpp>
#include <KokkosNN/mpi_export.hpp>
#include <KokkosNN/online.hpp>
#include <KokkosNN/plan.hpp>

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

// Communication of the ranks: the merge of rows' states, which are pairs or moments, rows that
// change hands, and the agreement on a call.

namespace KokkosNN::Impl {

using ShardPair    = MaxSumExp<double>;
using ShardMoments = Moments<double>;

/// The union of two parts of a row, bitwise commutative: as `merge` of pairs.
KOKKOS_INLINE_FUNCTION ShardMoments merge(const ShardMoments& a, const ShardMoments& b) {
  return ShardMoments::joined(a, b);
}

/// Value that must be equal on every rank.
struct SharedFact {
  const char* name;
  std::int64_t value;
};

/// Merger: sets into[i] to merge(into[i], from[i]) for n states, and returns when they are merged.
template <class State>
class StateMerger {
 public:
  virtual void merge(State* into, const State* from, std::int64_t n) const = 0;

 protected:
  ~StateMerger() = default;
};

/// True if the MPI says that it takes pointers to the memory of such a device.
KOKKOSNN_MPI_EXPORT bool mpi_takes_device_pointers(Backend backend);

/// Exchange of states: a duplicate of the MPI communicator, and a type and an operation a kind of state. An MPI error
/// becomes a std::runtime_error with MPI's text; after one, every further call throws it again.
class KOKKOSNN_MPI_EXPORT PairExchange {
 public:
  explicit PairExchange(MPI_Comm parent);
  ~PairExchange();
  PairExchange(const PairExchange&)            = delete;
  PairExchange& operator=(const PairExchange&) = delete;

  int rank() const { return m_rank; }
  int size() const { return m_size; }

  /// Replaces every rank's n states by their merge over all ranks, by MPI's own reduction.
  void reduce(const char* function, ShardPair* states, std::int64_t n) const;
  void reduce(const char* function, ShardMoments* states, std::int64_t n) const;

  /// Replaces every rank's n states by their merge over all ranks, by messages between two ranks, in an order that
  /// depends only on the number of ranks. Merging commutes bit for bit, so all ranks get equal bits. `received` is
  /// memory for n states.
  void reduce_in_order(const char* function, ShardPair* states, ShardPair* received, std::int64_t n,
                       const StateMerger<ShardPair>& merger) const;
  void reduce_in_order(const char* function, ShardMoments* states, ShardMoments* received, std::int64_t n,
                       const StateMerger<ShardMoments>& merger) const;

  /// Records of rows that ranks share out: rank r has those from first_of_share(n, r) on.
  std::int64_t first_of_share(std::int64_t n, int rank) const { return n * rank / m_size; }
  /// Sends every rank its share of this rank's n records of some bytes each. `received` gets those of this rank's
  /// share: first rank 0's, then rank 1's, and so on.
  void spread_records(const char* function, const char* records, char* received, std::int64_t n,
                      std::size_t bytes) const;
  /// Sends every rank this rank's share of n records, so that all have all of them.
  void collect_records(const char* function, char* records, std::int64_t n, std::size_t bytes) const;
  /// Most records of a call: their places are an int to MPI.
  static constexpr std::int64_t max_records = std::int64_t(1) << 30;

  /// Throws on every rank, std::invalid_argument or the exception in `refusal`, unless no rank refuses and the facts,
  /// at most `max_facts`, are equal on all. It takes one reduction of a few words, and more if it throws.
  static constexpr int max_facts = 16;
  void agree(const char* function, std::span<const SharedFact> facts, const std::exception_ptr& refusal) const;

  /// Every rank's words, as many on each: rank r's from r * words.size() on.
  std::vector<std::int64_t> gathered(const char* function, std::span<const std::int64_t> words) const;
  /// Replaces the bytes by those of rank 0.
  void broadcast(const char* function, std::span<std::byte> bytes) const;

  /// Sums over the ranks before this one, and over all.
  std::array<std::int64_t, 2> sums_before_and_all(const char* function, std::int64_t value) const;

 private:
  void require_sound(const char* function) const;
  void require(const char* function, const char* call, int code) const;
  /// How MPI knows a kind of state.
  struct Kind {
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_Op merge      = MPI_OP_NULL;
  };
  template <class State>
  KOKKOSNN_MPI_NO_EXPORT Kind made_kind() const;
  template <class State>
  KOKKOSNN_MPI_NO_EXPORT const Kind& kind() const;
  template <class State>
  KOKKOSNN_MPI_NO_EXPORT void reduce_states(const char* function, State* states, std::int64_t n) const;
  template <class State>
  KOKKOSNN_MPI_NO_EXPORT void reduce_states_in_order(const char* function, State* states, State* received,
                                                     std::int64_t n, const StateMerger<State>& merger) const;
  template <class State>
  KOKKOSNN_MPI_NO_EXPORT void send(const char* function, const State* states, std::int64_t n, int to) const;
  template <class State>
  KOKKOSNN_MPI_NO_EXPORT void receive(const char* function, State* states, std::int64_t n, int from) const;
  template <class State>
  KOKKOSNN_MPI_NO_EXPORT void swap(const char* function, const State* mine, State* theirs, std::int64_t n,
                                   int with) const;
  /// Numbers and places of every rank's share of n records.
  KOKKOSNN_MPI_NO_EXPORT std::array<std::vector<int>, 2> shares(std::int64_t n) const;
  [[noreturn]] void throw_refusal(const char* function, int refusing, const std::exception_ptr& refusal) const;

  MPI_Comm m_comm = MPI_COMM_NULL;
  Kind m_pairs    = {};
  Kind m_moments  = {};
  int m_rank      = 0;
  int m_size      = 1;
  mutable std::string m_failure;
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MPI_PAIR_EXCHANGE_HPP
