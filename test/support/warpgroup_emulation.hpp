// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_WARPGROUP_EMULATION_HPP
#define KOKKOSNN_TEST_SUPPORT_WARPGROUP_EMULATION_HPP

#include "team_emulation.hpp"

#include <KokkosNN/half.hpp>
#include <KokkosNN/impl/gpu/device/warpgroup.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

// Hopper's instructions for warpgroups in an EmulatedTeam, by the PTX ISA: descriptors of matrices, the order of 128
// bytes, barriers with phases, copies of boxes. What a box is copied to is NaN until a thread waits for the barrier,
// as late as can be. Products run when they are enqueued, or when they are waited for, as chance will have it; until
// then the threads' sums are NaN.

namespace KokkosNNTest {

/// A tensor of 16-bit elements in the program's memory, as KokkosNN::Impl::BoxedTensor describes it.
struct EmulatedMap {
  KokkosNN::Impl::BoxedTensor tensor;
};

class EmulatedWarpgroups {
 public:
  EmulatedWarpgroups() { s_running = this; }
  ~EmulatedWarpgroups() { s_running = nullptr; }
  EmulatedWarpgroups(const EmulatedWarpgroups&)            = delete;
  EmulatedWarpgroups& operator=(const EmulatedWarpgroups&) = delete;
  static EmulatedWarpgroups& running() { return *s_running; }

  // --- barriers ---
  void make_barrier(std::uint32_t address, int arrivals) { m_barriers[address] = {arrivals, arrivals, 0, 0, {}}; }
  void arrive(std::uint32_t address, int bytes) {
    Barrier& barrier = at(address);
    if (barrier.left == 0) team().fail("more arrivals at a barrier than it counts");
    barrier.bytes += bytes;
    --barrier.left;
    end_phase(barrier);
  }
  void await(std::uint32_t address, int parity) {
    Barrier& barrier = at(address);
    team().wait_until([this, &barrier, parity] {
      for (const Copy& copy : std::exchange(barrier.copies, {})) finish(barrier, copy);
      return barrier.phase % 2 != parity;
    });
  }

  // --- copies ---
  void fetch(std::uint32_t to, const EmulatedMap& map, const int (&place)[5], std::uint32_t address) {
    if (to % 1024 != 0) team().fail("a box that does not begin at a multiple of 1024 bytes");
    Copy copy{to, map.tensor, {}};
    for (int d = 0; d < 5; ++d) copy.at[d] = place[d];
    for (int i = 0; i < copy.bytes(); i += 16) std::memset(team().scratch(to + unsigned(i), 16), 0xff, 16);
    at(address).copies.push_back(copy);
  }

  // --- products ---
  template <class T>
  void product(float (&sums)[128], std::uint64_t a, std::uint64_t b, bool a_across, bool b_across, bool adds) {
    Thread& thread = me();
    if (!thread.is_open) team().fail("a product of no open group");
    if (!thread.has_sums) std::memcpy(thread.sums, sums, sizeof(sums));
    thread.has_sums = true;
    for (float& sum : sums) sum = NAN;
    thread.open.push_back({a, b, a_across, b_across, adds, &EmulatedWarpgroups::value<T>});
  }
  void open_products() { me().is_open = true; }
  void close_products() {
    Thread& thread = me();
    thread.groups.push_back(std::exchange(thread.open, {}));
    thread.is_open = false;
    ++thread.unawaited;
    // The last thread of the warpgroup lets all of a group's products run, or leaves them for the wait.
    together([&](int warpgroup) {
      if (team().random(2) == 0) run(warpgroup, 0);
    });
  }
  void await_products(int groups) {
    together([&](int warpgroup) { run(warpgroup, groups); });
    me().unawaited = std::min(me().unawaited, groups);
  }
  /// Hands a thread its sums if all of its products have been waited for.
  void give_back(float (&sums)[128]) {
    Thread& thread = me();
    if (!thread.has_sums || thread.is_open || thread.unawaited > 0) return;
    std::memcpy(sums, thread.sums, sizeof(sums));
    thread.has_sums = false;
  }

 private:
  struct Copy {
    std::uint32_t to;
    KokkosNN::Impl::BoxedTensor from;
    std::int64_t at[5];
    int bytes() const { return from.box[0] * from.box[1] * 2; }
  };
  struct Barrier {
    int arrivals = 0, left = 0, bytes = 0, phase = 0;
    std::vector<Copy> copies;
  };
  struct Product {
    std::uint64_t a, b;
    bool a_across, b_across, adds;
    float (*value)(std::uint16_t);
  };
  struct Thread {
    bool is_open = false, has_sums = false;
    int unawaited = 0;  ///< groups
    float sums[128];
    std::vector<Product> open;
    std::vector<std::vector<Product>> groups;
  };
  struct Warpgroup {
    int arrived = 0, generation = 0;
  };

  static EmulatedTeam& team() { return EmulatedTeam::running(); }
  Thread& me() { return m_threads[team().rank()]; }
  Barrier& at(std::uint32_t address) {
    if (m_barriers.count(address) == 0) team().fail("no barrier at this address");
    return m_barriers[address];
  }
  static void end_phase(Barrier& barrier) {
    if (barrier.left > 0 || barrier.bytes > 0) return;
    barrier.left = barrier.arrivals;
    ++barrier.phase;
  }

  /// The place of a byte in scratch: bits 4 to 6 of an address are XORed with bits 7 to 9.
  static std::uint32_t ordered(std::uint32_t address) { return address ^ ((address >> 7 & 7) << 4); }

  void finish(Barrier& barrier, const Copy& copy) {
    const auto& from = copy.from;
    for (int r = 0; r < from.box[1]; ++r) {
      for (int e = 0; e < from.box[0]; ++e) {
        const std::int64_t index[5] = {copy.at[0] + e, copy.at[1] + r, copy.at[2], copy.at[3], copy.at[4]};
        std::int64_t offset         = 0;
        bool is_inside              = true;
        for (int d = 0; d < 5; ++d) {
          is_inside = is_inside && 0 <= index[d] && index[d] < from.extent[d];
          offset += index[d] * from.stride[d];
        }
        std::uint16_t bits = 0;
        if (is_inside) std::memcpy(&bits, static_cast<const char*>(from.data) + 2 * offset, 2);
        std::memcpy(team().scratch(ordered(copy.to + static_cast<std::uint32_t>(r * 128 + 2 * e)), 2), &bits, 2);
      }
    }
    barrier.bytes -= copy.bytes();
    end_phase(barrier);
  }

  /// All threads of a warpgroup meet; the last one calls act(number of the warpgroup).
  template <class Act>
  void together(const Act& act) {
    const int number     = team().rank() / 128;
    Warpgroup& warpgroup = m_warpgroups[number];
    const int generation = warpgroup.generation;
    if (++warpgroup.arrived == 128) {
      warpgroup.arrived = 0;
      act(number);
      ++warpgroup.generation;
      return;
    }
    team().wait_until([&warpgroup, generation] { return warpgroup.generation != generation; });
  }
  /// Runs a warpgroup's groups of products but for the last ones.
  void run(int warpgroup, int left) {
    const int first = warpgroup * 128;
    while (int(m_threads[first].groups.size()) > left) {
      const auto group = m_threads[first].groups.front();
      for (int t = first; t < first + 128; ++t) {
        auto& groups = m_threads[t].groups;
        if (groups.empty() || groups.front().size() != group.size()) team().fail("threads with different products");
        groups.erase(groups.begin());
      }
      for (const Product& product : group) run(first, product);
    }
  }
  void run(int first, const Product& product) {
    static float a[64][16], b[16][256];
    for (int k = 0; k < 16; ++k) {
      for (int i = 0; i < 64; ++i) a[i][k] = element(product.a, i, k, product.a_across, product.value);
      for (int j = 0; j < 256; ++j) b[k][j] = element(product.b, j, k, product.b_across, product.value);
    }
    for (int t = 0; t < 128; ++t) {
      float (&sums)[128] = m_threads[first + t].sums;
      for (int n = 0; n < 128; ++n) {
        const int row = t / 32 * 16 + t % 32 / 4 + n / 2 % 2 * 8, col = n / 4 * 8 + t % 4 * 2 + n % 2;
        float sum = product.adds ? sums[n] : 0;
        for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][col];
        sums[n] = sum;
      }
    }
  }
  /// An element of a described matrix, `across` along its rows or columns and k along the sums' axis.
  static float element(std::uint64_t described, int across, int k, bool is_across, float (*value)(std::uint16_t)) {
    if (described >> 62 != 1 || (described >> 49 & 7) != 0) team().fail("a matrix in another order than of 128 bytes");
    const auto field          = [&](int shift) { return static_cast<std::uint32_t>(described >> shift & 0x3fff) << 4; };
    const std::uint32_t begin = field(0), leading = field(16), stride = field(32);
    const auto i = static_cast<std::uint32_t>(across), n = static_cast<std::uint32_t>(k);
    const std::uint32_t offset =
        is_across ? i / 64 * leading + n / 8 * stride + n % 8 * 128 + i % 64 * 2 : i / 8 * stride + i % 8 * 128 + n * 2;
    std::uint16_t bits;
    std::memcpy(&bits, team().scratch(ordered(begin + offset), 2), 2);
    return value(bits);
  }
  template <class T>
  static float value(std::uint16_t bits) {
    return static_cast<float>(Kokkos::bit_cast<T>(bits));
  }

  static inline EmulatedWarpgroups* s_running = nullptr;

  std::map<std::uint32_t, Barrier> m_barriers;
  std::map<int, Thread> m_threads;
  std::map<int, Warpgroup> m_warpgroups;
};

/// The instructions of HopperInstructions in a running EmulatedTeam with EmulatedWarpgroups.
struct EmulatedHopper : EmulatedInstructions {
  using Map                   = EmulatedMap;
  static constexpr bool exist = true;

  static int uniform(int value) { return value; }
  static void make_barrier(Address barrier, int arrivals) { all().make_barrier(barrier, arrivals); }
  static void publish_barriers() {}
  static void arrive(Address barrier) { all().arrive(barrier, 0); }
  static void expect(Address barrier, int bytes) { all().arrive(barrier, bytes); }
  static void await(Address barrier, int parity) { all().await(barrier, parity); }
  static void prefetch(const Map&) {}
  static void fetch(Address to, const Map& map, const int (&at)[5], Address barrier) {
    all().fetch(to, map, at, barrier);
  }
  static void open_products() { all().open_products(); }
  static void close_products() { all().close_products(); }
  template <int groups>
  static void await_products() {
    all().await_products(groups);
  }
  /// Behind a wait for all products the sums are there.
  template <int count>
  static void keep(float (&sums)[count]) {
    all().give_back(sums);
  }
  template <class T, bool a_across, bool b_across>
  static void product(float (&sums)[128], std::uint64_t a, std::uint64_t b, bool adds) {
    all().template product<T>(sums, a, b, a_across, b_across, adds);
  }

 private:
  static EmulatedWarpgroups& all() { return EmulatedWarpgroups::running(); }
};

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_WARPGROUP_EMULATION_HPP
