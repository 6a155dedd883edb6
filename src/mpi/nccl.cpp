// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "nccl.hpp"

#if defined(KOKKOSNN_HAS_NCCL)
#include <KokkosNN/impl/gpu/device/native_launch.hpp>

#include <nccl.h>
#elif defined(KOKKOSNN_HAS_RCCL)
#include "../vendor/current_hip_device.hpp"

#include <hip/hip_runtime.h>
#include <rccl/rccl.h>
#endif

#include <algorithm>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

namespace KokkosNN::Impl {

#if defined(KOKKOSNN_HAS_NCCL) || defined(KOKKOSNN_HAS_RCCL)

namespace {

#if defined(KOKKOSNN_HAS_NCCL)
constexpr Backend backend = Backend::cuda;
using DeviceGuard         = CurrentDevice;
using Stream              = cudaStream_t;
using DeviceProperties    = cudaDeviceProp;

void read_device(const std::string& label, int device, std::span<char> bus, DeviceProperties& properties) {
  require_success(label, cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device));
  require_success(label, cudaGetDeviceProperties(&properties, device));
}
#else
constexpr Backend backend = Backend::hip;
using DeviceGuard         = CurrentHipDevice;
using Stream              = hipStream_t;
using DeviceProperties    = hipDeviceProp_t;

void read_device(const std::string& label, int device, std::span<char> bus, DeviceProperties& properties) {
  require_success(label, hipDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device));
  require_success(label, hipGetDeviceProperties(&properties, device));
}
#endif

std::string label_of(const char* function) { return std::string("KokkosNN::") + function; }

std::int64_t number_of(std::string_view bytes) {
  return static_cast<std::int64_t>(std::hash<std::string_view>{}(bytes));
}

void require_mpi(const char* function, const char* call, int code) {
  if (code == MPI_SUCCESS) return;
  throw std::runtime_error(label_of(function) + ": " + call + " failed with the code " + std::to_string(code));
}

/// NCCL's communicators of one of MPI's that no gather has.
class IdleCommunicators {
 public:
  IdleCommunicators()                                    = default;
  IdleCommunicators(const IdleCommunicators&)            = delete;
  IdleCommunicators& operator=(const IdleCommunicators&) = delete;

  std::int64_t lowest(int device) const {
    const std::lock_guard lock(m_mutex);
    std::int64_t lowest = no_communicator;
    for (const Idle& idle : m_idle) {
      if (idle.device == device && (lowest == no_communicator || idle.number < lowest)) lowest = idle.number;
    }
    return lowest;
  }
  ncclComm_t take(std::int64_t number) {
    const std::lock_guard lock(m_mutex);
    const auto found = std::find_if(m_idle.begin(), m_idle.end(), [&](const Idle& i) { return i.number == number; });
    const ncclComm_t comm = found->comm;
    m_idle.erase(found);
    return comm;
  }
  /// Number of a new communicator: ranks make them together, so that they count alike.
  std::int64_t next_number() {
    const std::lock_guard lock(m_mutex);
    return m_made++;
  }
  void give_back(std::int64_t number, int device, ncclComm_t comm) {
    const std::lock_guard lock(m_mutex);
    if (m_is_closed) {
      static_cast<void>(ncclCommDestroy(comm));
    } else {
      m_idle.push_back({number, device, comm});
    }
  }
  /// Destroys all, and from now on those that are given back.
  void close() {
    const std::lock_guard lock(m_mutex);
    m_is_closed = true;
    for (const Idle& idle : std::exchange(m_idle, {})) static_cast<void>(ncclCommDestroy(idle.comm));
  }

 private:
  struct Idle {
    std::int64_t number;
    int device;
    ncclComm_t comm;
  };
  mutable std::mutex m_mutex;
  std::vector<Idle> m_idle;
  std::int64_t m_made = 0;
  bool m_is_closed    = false;
};

using Pool = std::shared_ptr<IdleCommunicators>;

/// MPI calls it when it frees the communicator; gathers may live on, and keep the pool.
int close_pool(MPI_Comm, int, void* value, void*) {
  const std::unique_ptr<Pool> pool(static_cast<Pool*>(value));
  (*pool)->close();
  return MPI_SUCCESS;
}

int pool_key() {
  static const int key = [] {
    int made = MPI_KEYVAL_INVALID;
    require_mpi("mpi::Communicator", "MPI_Comm_create_keyval",
                MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, close_pool, &made, nullptr));
    return made;
  }();
  return key;
}

/// The pool of a communicator of MPI, which has it as an attribute.
Pool pool_of(MPI_Comm parent) {
  constexpr const char* function = "mpi::Communicator";
  void* value                    = nullptr;
  int is_set                     = 0;
  require_mpi(function, "MPI_Comm_get_attr", MPI_Comm_get_attr(parent, pool_key(), &value, &is_set));
  if (is_set != 0) return *static_cast<Pool*>(value);
  auto pool = std::make_unique<Pool>(std::make_shared<IdleCommunicators>());
  require_mpi(function, "MPI_Comm_set_attr", MPI_Comm_set_attr(parent, pool_key(), pool.get()));
  return *pool.release();
}

/// A communicator out of the pool, on an instance.
class NcclGather final : public StateGather {
 public:
  NcclGather(Pool pool, std::int64_t number, ncclComm_t comm, int rank, const VendorQueue& queue)
      : m_pool(std::move(pool)), m_number(number), m_comm(comm), m_rank(rank), m_queue(queue) {}

  ~NcclGather() override {
    if (m_failure.empty()) {
      m_pool->give_back(m_number, m_queue.device, m_comm);
    } else {
      static_cast<void>(ncclCommAbort(m_comm));
    }
  }

  void gather(const char* function, const void* mine, void* all, std::size_t bytes) const override {
    if (!m_failure.empty()) {
      throw std::runtime_error(label_of(function) + ": an earlier call on this communicator has failed: " + m_failure);
    }
    const DeviceGuard device(label_of(function), m_queue.device);
    ncclResult_t earlier = ncclSuccess;
    require(function, "ncclCommGetAsyncError", ncclCommGetAsyncError(m_comm, &earlier));
    require(function, "a gather before", earlier);
    require(function, "ncclAllGather",
            ncclAllGather(mine, all, bytes, ncclChar, m_comm, static_cast<Stream>(m_queue.stream)));
  }

 private:
  void require(const char* function, const char* call, ncclResult_t code) const {
    if (code == ncclSuccess) return;
    m_failure = std::string(call) + " failed on rank " + std::to_string(m_rank) + ": " + ncclGetErrorString(code);
    throw std::runtime_error(label_of(function) + ": " + m_failure);
  }

  Pool m_pool;
  std::int64_t m_number;
  ncclComm_t m_comm;
  int m_rank;
  VendorQueue m_queue;
  mutable std::string m_failure;
};

/// The lowest rank on which NCCL failed, and why; empty: on none.
std::string failure_among(const char* function, const PairExchange& ranks, const char* call, ncclResult_t mine) {
  const std::int64_t own = mine;
  const auto codes       = ranks.gathered(function, std::span(&own, 1));
  const auto failed = std::find_if(codes.begin(), codes.end(), [](std::int64_t code) { return code != ncclSuccess; });
  if (failed == codes.end()) return {};
  return std::string(call) + " failed on rank " + std::to_string(failed - codes.begin()) + ": " +
         ncclGetErrorString(static_cast<ncclResult_t>(*failed));
}

/// A new communicator of all ranks, or null on all where it fails on one.
ncclComm_t made(const char* function, const PairExchange& ranks, std::string& failure) {
  ncclUniqueId id{};
  const ncclResult_t named = ranks.rank() == 0 ? ncclGetUniqueId(&id) : ncclSuccess;
  failure                  = failure_among(function, ranks, "ncclGetUniqueId", named);
  if (!failure.empty()) return nullptr;
  ranks.broadcast(function, std::as_writable_bytes(std::span(&id, 1)));
  ncclComm_t comm              = nullptr;
  const ncclResult_t connected = ncclCommInitRank(&comm, ranks.size(), id, ranks.rank());
  failure                      = failure_among(function, ranks, "ncclCommInitRank", connected);
  if (failure.empty()) return comm;
  // Destroying could wait for a rank that has none.
  if (connected == ncclSuccess) static_cast<void>(ncclCommAbort(comm));
  return nullptr;
}

/// Gather of one rank, which has all states.
class NoGather final : public StateGather {
 public:
  void gather(const char*, const void*, void*, std::size_t) const override {}
};

}  // namespace

bool has_nccl(Backend of) { return of == backend; }

DeviceNumbers numbers_of_device(const char* function, const VendorQueue& queue) {
  char bus[64] = {};
  DeviceProperties properties;
  read_device(label_of(function), queue.device, bus, properties);
  return {number_of(bus), number_of({reinterpret_cast<const char*>(&properties.uuid), sizeof(properties.uuid)})};
}

std::int64_t idle_communicator(MPI_Comm parent, const VendorQueue& queue) {
  return pool_of(parent)->lowest(queue.device);
}

std::unique_ptr<StateGather> connected(const char* function, const PairExchange& ranks, MPI_Comm parent,
                                       const VendorQueue& queue, std::int64_t idle, std::string& failure) {
  if (ranks.size() == 1) return std::make_unique<NoGather>();
  const DeviceGuard device(label_of(function), queue.device);
  const Pool pool = pool_of(parent);
  if (idle != no_communicator) {
    return std::make_unique<NcclGather>(pool, idle, pool->take(idle), ranks.rank(), queue);
  }
  const ncclComm_t comm = made(function, ranks, failure);
  if (comm == nullptr) return nullptr;
  return std::make_unique<NcclGather>(pool, pool->next_number(), comm, ranks.rank(), queue);
}

#else

bool has_nccl(Backend) { return false; }
DeviceNumbers numbers_of_device(const char*, const VendorQueue&) { return {}; }
std::int64_t idle_communicator(MPI_Comm, const VendorQueue&) { return no_communicator; }
std::unique_ptr<StateGather> connected(const char*, const PairExchange&, MPI_Comm, const VendorQueue&, std::int64_t,
                                       std::string&) {
  return nullptr;
}

#endif

}  // namespace KokkosNN::Impl
