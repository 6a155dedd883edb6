// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/impl/mpi/pair_exchange.hpp>

#include "../argument_error.hpp"

#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>
#endif

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace KokkosNN::Impl {
namespace {

/// States of one message: their number is an int to MPI, and messages of many GB gain nothing.
constexpr std::int64_t most_states = std::int64_t(1) << 26;

constexpr int text_length = 512;

/// The MPI_Op of a kind of state.
template <class State>
void merge_states(void* from, void* into, int* n, MPI_Datatype*) {
  const auto* a = static_cast<const State*>(from);
  auto* b       = static_cast<State*>(into);
  for (int i = 0; i < *n; ++i) b[i] = merge(b[i], a[i]);
}

/// f(offset, number) for messages of states.
template <class F>
void for_messages(std::int64_t n, const F& f) {
  for (std::int64_t begin = 0; begin < n; begin += most_states)
    f(begin, static_cast<int>(std::min(most_states, n - begin)));
}

std::string text_of(const std::exception_ptr& refusal) {
  try {
    std::rethrow_exception(refusal);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

bool is_mpi_running() {
  int is_initialized = 0, is_finalized = 0;
  MPI_Initialized(&is_initialized);
  if (is_initialized != 0) MPI_Finalized(&is_finalized);
  return is_initialized != 0 && is_finalized == 0;
}

/// Records of some bytes as a type of MPI.
struct RecordType {
  MPI_Datatype type = MPI_DATATYPE_NULL;

  RecordType() = default;
  ~RecordType() {
    if (type != MPI_DATATYPE_NULL) MPI_Type_free(&type);
  }
  RecordType(const RecordType&)            = delete;
  RecordType& operator=(const RecordType&) = delete;

  int make(std::size_t bytes) {
    const int code = MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &type);
    return code != MPI_SUCCESS ? code : MPI_Type_commit(&type);
  }
};

}  // namespace

bool mpi_takes_device_pointers([[maybe_unused]] Backend backend) {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  if (backend == Backend::cuda) return MPIX_Query_cuda_support() == 1;
#endif
#if defined(OMPI_HAVE_MPI_EXT_ROCM)
  if (backend == Backend::hip) return MPIX_Query_rocm_support() == 1;
#endif
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION >= 40000000
  int is_supported = 0;
  if (backend != Backend::host &&
      MPIX_GPU_query_support(backend == Backend::cuda ? MPIX_GPU_SUPPORT_CUDA : MPIX_GPU_SUPPORT_HIP, &is_supported) ==
          MPI_SUCCESS) {
    return is_supported != 0;
  }
#endif
  return false;
}

PairExchange::PairExchange(MPI_Comm parent) {
  constexpr const char* function = "mpi::Communicator";
  if (!is_mpi_running()) {
    throw std::runtime_error("KokkosNN::mpi::Communicator: MPI is not initialised, or finalised already");
  }
  if (parent == MPI_COMM_NULL) (ArgumentError(function) << "the communicator is MPI_COMM_NULL").raise();
  require(function, "MPI_Comm_dup", MPI_Comm_dup(parent, &m_comm));
  require(function, "MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(m_comm, MPI_ERRORS_RETURN));
  require(function, "MPI_Comm_rank", MPI_Comm_rank(m_comm, &m_rank));
  require(function, "MPI_Comm_size", MPI_Comm_size(m_comm, &m_size));
  m_pairs   = made_kind<ShardPair>();
  m_moments = made_kind<ShardMoments>();
}

PairExchange::~PairExchange() {
  if (!is_mpi_running()) return;
  for (Kind* kind : {&m_pairs, &m_moments}) {
    MPI_Op_free(&kind->merge);
    MPI_Type_free(&kind->type);
  }
  MPI_Comm_free(&m_comm);
}

template <class State>
PairExchange::Kind PairExchange::made_kind() const {
  constexpr const char* function = "mpi::Communicator";
  constexpr int words            = sizeof(State) / sizeof(double);
  Kind kind;
  require(function, "MPI_Type_contiguous", MPI_Type_contiguous(words, MPI_DOUBLE, &kind.type));
  require(function, "MPI_Type_commit", MPI_Type_commit(&kind.type));
  require(function, "MPI_Op_create", MPI_Op_create(merge_states<State>, 1, &kind.merge));
  return kind;
}

template <>
const PairExchange::Kind& PairExchange::kind<ShardPair>() const {
  return m_pairs;
}
template <>
const PairExchange::Kind& PairExchange::kind<ShardMoments>() const {
  return m_moments;
}

void PairExchange::require(const char* function, const char* call, int code) const {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length                      = 0;
  MPI_Error_string(code, text, &length);
  m_failure = std::string(call) + " failed on rank " + std::to_string(m_rank) + ": " +
              std::string(text, static_cast<std::size_t>(length));
  throw std::runtime_error(std::string("KokkosNN::") + function + ": " + m_failure);
}

void PairExchange::require_sound(const char* function) const {
  if (m_failure.empty()) return;
  throw std::runtime_error(std::string("KokkosNN::") + function +
                           ": an earlier call on this communicator has failed: " + m_failure);
}

template <class State>
void PairExchange::reduce_states(const char* function, State* states, std::int64_t n) const {
  require_sound(function);
  for_messages(n, [&](std::int64_t begin, int count) {
    require(function, "MPI_Allreduce",
            MPI_Allreduce(MPI_IN_PLACE, states + begin, count, kind<State>().type, kind<State>().merge, m_comm));
  });
}

// Recursive doubling: with 2^k ranks each swaps with the one whose number differs in bit 0, 1, ..., k - 1. Of other
// numbers of ranks the first few have a partner that hands over its states before and gets the result behind.
template <class State>
void PairExchange::reduce_states_in_order(const char* function, State* states, State* received, std::int64_t n,
                                          const StateMerger<State>& merger) const {
  require_sound(function);
  const int doubling = static_cast<int>(std::bit_floor(static_cast<unsigned>(m_size)));
  const int extra    = m_size - doubling;
  const bool is_pair = m_rank < 2 * extra;
  if (is_pair && m_rank % 2 == 1) {
    send(function, states, n, m_rank - 1);
    receive(function, states, n, m_rank - 1);
    return;
  }
  if (is_pair) {
    receive(function, received, n, m_rank + 1);
    merger.merge(states, received, n);
  }
  const int number   = is_pair ? m_rank / 2 : m_rank - extra;
  const auto rank_of = [&](int other) { return other < extra ? 2 * other : other + extra; };
  for (int bit = 1; bit < doubling; bit *= 2) {
    swap(function, states, received, n, rank_of(number ^ bit));
    merger.merge(states, received, n);
  }
  if (is_pair) send(function, states, n, m_rank + 1);
}

template <class State>
void PairExchange::send(const char* function, const State* states, std::int64_t n, int to) const {
  for_messages(n, [&](std::int64_t begin, int count) {
    require(function, "MPI_Send", MPI_Send(states + begin, count, kind<State>().type, to, 0, m_comm));
  });
}

template <class State>
void PairExchange::receive(const char* function, State* states, std::int64_t n, int from) const {
  for_messages(n, [&](std::int64_t begin, int count) {
    require(function, "MPI_Recv",
            MPI_Recv(states + begin, count, kind<State>().type, from, 0, m_comm, MPI_STATUS_IGNORE));
  });
}

template <class State>
void PairExchange::swap(const char* function, const State* mine, State* theirs, std::int64_t n, int with) const {
  for_messages(n, [&](std::int64_t begin, int count) {
    require(function, "MPI_Sendrecv",
            MPI_Sendrecv(mine + begin, count, kind<State>().type, with, 0, theirs + begin, count, kind<State>().type,
                         with, 0, m_comm, MPI_STATUS_IGNORE));
  });
}

void PairExchange::reduce(const char* function, ShardPair* states, std::int64_t n) const {
  reduce_states(function, states, n);
}
void PairExchange::reduce(const char* function, ShardMoments* states, std::int64_t n) const {
  reduce_states(function, states, n);
}
void PairExchange::reduce_in_order(const char* function, ShardPair* states, ShardPair* received, std::int64_t n,
                                   const StateMerger<ShardPair>& merger) const {
  reduce_states_in_order(function, states, received, n, merger);
}
void PairExchange::reduce_in_order(const char* function, ShardMoments* states, ShardMoments* received, std::int64_t n,
                                   const StateMerger<ShardMoments>& merger) const {
  reduce_states_in_order(function, states, received, n, merger);
}

std::array<std::vector<int>, 2> PairExchange::shares(std::int64_t n) const {
  std::array<std::vector<int>, 2> shares;
  auto& [counts, places] = shares;
  for (int r = 0; r < m_size; ++r) {
    const std::int64_t first = first_of_share(n, r);
    places.push_back(static_cast<int>(first));
    counts.push_back(static_cast<int>(first_of_share(n, r + 1) - first));
  }
  return shares;
}

void PairExchange::spread_records(const char* function, const char* records, char* received, std::int64_t n,
                                  std::size_t bytes) const {
  require_sound(function);
  RecordType record;
  require(function, "MPI_Type_contiguous", record.make(bytes));
  const auto [counts, places] = shares(n);
  const int mine              = counts[static_cast<std::size_t>(m_rank)];
  std::vector<int> received_counts(counts.size(), mine), received_places;
  for (int r = 0; r < m_size; ++r) received_places.push_back(r * mine);
  require(function, "MPI_Alltoallv",
          MPI_Alltoallv(records, counts.data(), places.data(), record.type, received, received_counts.data(),
                        received_places.data(), record.type, m_comm));
}

void PairExchange::collect_records(const char* function, char* records, std::int64_t n, std::size_t bytes) const {
  require_sound(function);
  RecordType record;
  require(function, "MPI_Type_contiguous", record.make(bytes));
  const auto [counts, places] = shares(n);
  require(
      function, "MPI_Allgatherv",
      MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, records, counts.data(), places.data(), record.type, m_comm));
}

void PairExchange::agree(const char* function, std::span<const SharedFact> facts,
                         const std::exception_ptr& refusal) const {
  require_sound(function);
  // The least of every value and of its complement, which is the largest; first the lowest rank that refuses, and how
  // many facts there are. A rank that refuses has no facts.
  constexpr int words = 2 + 2 * max_facts;
  std::array<std::int64_t, words> least;
  least.fill(INT64_MAX);
  if (refusal != nullptr) {
    least[0] = m_rank;
  } else {
    for (std::size_t i = 0; i < facts.size(); ++i) {
      least[2 + 2 * i] = facts[i].value;
      least[3 + 2 * i] = ~facts[i].value;
    }
  }
  require(function, "MPI_Allreduce", MPI_Allreduce(MPI_IN_PLACE, least.data(), words, MPI_INT64_T, MPI_MIN, m_comm));
  if (least[0] != INT64_MAX) throw_refusal(function, static_cast<int>(least[0]), refusal);
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const std::int64_t low = least[2 + 2 * i], high = ~least[3 + 2 * i];
    if (low == high) continue;
    (ArgumentError(function) << "all ranks must agree on " << facts[i].name << ", which is " << facts[i].value
                             << " on rank " << m_rank << " and from " << low << " to " << high << " on all")
        .raise();
  }
}

void PairExchange::throw_refusal(const char* function, int refusing, const std::exception_ptr& refusal) const {
  char text[text_length] = {};
  if (refusing == m_rank) std::snprintf(text, text_length, "%s", text_of(refusal).c_str());
  require(function, "MPI_Bcast", MPI_Bcast(text, text_length, MPI_CHAR, refusing, m_comm));
  if (refusal != nullptr) std::rethrow_exception(refusal);
  (ArgumentError(function) << "rank " << refusing << " cannot do this call: " << text).raise();
}

std::vector<std::int64_t> PairExchange::gathered(const char* function, std::span<const std::int64_t> words) const {
  require_sound(function);
  std::vector<std::int64_t> all(words.size() * static_cast<std::size_t>(m_size));
  const int count = static_cast<int>(words.size());
  require(function, "MPI_Allgather",
          MPI_Allgather(words.data(), count, MPI_INT64_T, all.data(), count, MPI_INT64_T, m_comm));
  return all;
}

void PairExchange::broadcast(const char* function, std::span<std::byte> bytes) const {
  require_sound(function);
  require(function, "MPI_Bcast", MPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, m_comm));
}

std::array<std::int64_t, 2> PairExchange::sums_before_and_all(const char* function, std::int64_t value) const {
  require_sound(function);
  std::array<std::int64_t, 2> sums = {0, 0};
  require(function, "MPI_Exscan", MPI_Exscan(&value, &sums[0], 1, MPI_INT64_T, MPI_SUM, m_comm));
  require(function, "MPI_Allreduce", MPI_Allreduce(&value, &sums[1], 1, MPI_INT64_T, MPI_SUM, m_comm));
  if (m_rank == 0) sums[0] = 0;  // which MPI leaves undefined
  return sums;
}

}  // namespace KokkosNN::Impl
