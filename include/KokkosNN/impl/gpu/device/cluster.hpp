// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_CLUSTER_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_CLUSTER_HPP

#include <KokkosNN/impl/gpu/device/memory.hpp>
#include <KokkosNN/impl/tuned_shapes.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

// Clusters of teams (CUDA, from Hopper on): teams that run at once and write to each other's shared memory.

namespace KokkosNN::Impl {

/// Number of this team's cluster, and of the team in it: cheaper than divisions of the team's number.
KOKKOS_INLINE_FUNCTION int cluster_number() {
  unsigned number = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%clusterid.x;" : "=r"(number));
#endif
  return static_cast<int>(number);
}
KOKKOS_INLINE_FUNCTION int team_in_cluster() {
  unsigned number = 0;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(number));
#endif
  return static_cast<int>(number);
}

/// The states that the teams of a cluster tell each other, once: each team sends its state to all, and waits until it
/// has those of all. A team that has them may leave, since no other writes to it any more.
template <class State>
class ClusterExchange {
  static_assert(sizeof(State) % 4 == 0, "states are sent word by word");
  using Word                 = std::conditional_t<sizeof(State) % 8 == 0, std::uint64_t, std::uint32_t>;
  static constexpr int words = sizeof(State) / sizeof(Word);

  struct alignas(16) Mail {
    Word states[most_teams_of_cluster * words];  ///< of each team of the cluster
    std::uint64_t barrier;                       ///< mbarrier: counts the bytes that have come
  };

 public:
  /// Called by all threads of all teams, as early as can be: `open` waits for the others.
  KOKKOS_INLINE_FUNCTION ClusterExchange([[maybe_unused]] int rank, [[maybe_unused]] int teams) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    __shared__ Mail mail;
    m_mail    = &mail;
    m_address = shared_address(&mail);
    if (rank == 0) {
      const std::uint32_t bytes = static_cast<std::uint32_t>(teams) * sizeof(State);
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier()) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier()), "r"(bytes) : "memory");
    }
    __syncwarp();
    // Relaxed: the fence has released the mbarrier. A releasing arrival would wait for memory ahead of the loads.
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
  }

  /// Waits until all teams have been here: then they can be written to. Called by all threads.
  KOKKOS_INLINE_FUNCTION void open() const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    __syncwarp();
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
  }

  /// Sends the state of team `from` to team `to`.
  KOKKOS_INLINE_FUNCTION void send([[maybe_unused]] const State& state, [[maybe_unused]] int from,
                                   [[maybe_unused]] int to) const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    struct Words {
      Word word[words];
    };
    const auto sent              = Kokkos::bit_cast<Words>(state);
    const std::uint32_t arrivals = at_team(barrier(), to);
    const std::uint32_t place    = at_team(m_address + static_cast<std::uint32_t>(from * sizeof(State)), to);
    for (int w = 0; w < words; ++w) {
      if constexpr (sizeof(Word) == 8) {
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(place + 8 * w),
                     "l"(sent.word[w]), "r"(arrivals)
                     : "memory");
      } else {
        asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(place + 4 * w),
                     "r"(sent.word[w]), "r"(arrivals)
                     : "memory");
      }
    }
#endif
  }

  /// Waits for the states of all teams.
  KOKKOS_INLINE_FUNCTION void await() const {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    std::uint32_t has_come = 0;
    while (has_come == 0) {
      asm volatile(
          "{\n .reg .pred p;\n"
          " mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], 0;\n"
          " selp.u32 %0, 1, 0, p;\n}\n"
          : "=r"(has_come)
          : "r"(barrier())
          : "memory");
    }
#endif
  }

  /// The state of a team, once it has come.
  KOKKOS_INLINE_FUNCTION State state_of(int team) const { return reinterpret_cast<const State*>(m_mail->states)[team]; }

 private:
  KOKKOS_INLINE_FUNCTION std::uint32_t barrier() const {
    return m_address + static_cast<std::uint32_t>(offsetof(Mail, barrier));
  }

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  /// An address of this team's shared memory, in that of another team of the cluster.
  __device__ static std::uint32_t at_team(std::uint32_t address, int team) {
    std::uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(team));
    return there;
  }
#endif

  const Mail* m_mail      = nullptr;
  std::uint32_t m_address = 0;  ///< of the mail in shared memory
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_CLUSTER_HPP
