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
  /// Sums that a thread will be given back, and the last group of its products that adds to them.
  struct Sums {
    std::vector<float> values;
    int group = 0;
  };

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
  struct Product {
    std::uint64_t a, b;
    bool a_across, b_across, adds;
    float (*value)(std::uint16_t) = nullptr;
    bool a_in_registers           = false;
    std::uint32_t words[4]        = {};
    Sums* sums                    = nullptr;  ///< of the thread
  };
  template <class T, int count>
  void product(float (&sums)[count], Product product) {
    Thread& thread = me();
    if (!thread.is_open) team().fail("a product of no open group");
    Sums& own = thread.sums[sums];
    if (own.values.empty()) own.values.assign(sums, sums + count);
    own.group = thread.closed;
    for (float& sum : sums) sum = NAN;
    product.value = &EmulatedWarpgroups::value<T>;
    product.sums  = &own;
    thread.open.push_back(product);
  }
  void open_products() { me().is_open = true; }
  void close_products() {
    Thread& thread = me();
    if (thread.open.empty()) team().fail("a group without products");
    thread.groups.push_back(std::exchange(thread.open, {}));
    ++thread.closed;
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
  /// Hands a thread sums if all products that they take part in have been waited for, and closes what is open.
  template <int count>
  void give_back(float (&sums)[count]) {
    Thread& thread = me();
    thread.is_open = false;
    const auto own = thread.sums.find(sums);
    if (own == thread.sums.end() || own->second.group >= thread.closed - thread.unawaited) return;
    std::copy(own->second.values.begin(), own->second.values.end(), sums);
    thread.sums.erase(own);
  }

  // --- some of a team's threads ---
  void pass(int number, int threads) {
    Meeting& meeting = m_meetings[number];
    if (++meeting.arrived < threads) return;
    meeting.arrived = 0;
    ++meeting.generation;
  }
  void meet(int number, int threads) {
    Meeting& meeting     = m_meetings[number];
    const int generation = meeting.generation;
    pass(number, threads);
    team().wait_until([&meeting, generation] { return meeting.generation != generation; });
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
  struct Thread {
    bool is_open = false;
    int closed = 0, unawaited = 0;  ///< groups
    std::map<const float*, Sums> sums;
    std::vector<Product> open;
    std::vector<std::vector<Product>> groups;
  };
  struct Meeting {
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
    Meeting& warpgroup   = m_warpgroups[number];
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
      std::vector<std::vector<Product>> of_threads;
      for (int t = first; t < first + 128; ++t) {
        auto& groups = m_threads[t].groups;
        if (groups.empty() || (t > first && groups.front().size() != of_threads[0].size())) {
          team().fail("threads with different products");
        }
        of_threads.push_back(groups.front());
        groups.erase(groups.begin());
      }
      for (std::size_t n = 0; n < of_threads[0].size(); ++n) run(of_threads, n);
    }
  }
  void run(const std::vector<std::vector<Product>>& of_threads, std::size_t number) {
    static float a[64][16], b[16][256];
    const Product& product = of_threads[0][number];
    const int count        = static_cast<int>(product.sums->values.size());
    for (int k = 0; k < 16; ++k) {
      for (int i = 0; i < 64 && !product.a_in_registers; ++i) {
        a[i][k] = element(product.a, i, k, product.a_across, product.value);
      }
      for (int j = 0; j < 2 * count; ++j) b[k][j] = element(product.b, j, k, product.b_across, product.value);
    }
    for (int t = 0; t < 128 && product.a_in_registers; ++t) {
      for (int i = 0; i < 8; ++i) {
        const std::uint32_t word = of_threads[t][number].words[i / 2];
        a[t / 32 * 16 + t % 32 / 4 + i / 2 % 2 * 8][i / 4 * 8 + t % 4 * 2 + i % 2] =
            product.value(static_cast<std::uint16_t>(word >> i % 2 * 16));
      }
    }
    for (int t = 0; t < 128; ++t) {
      std::vector<float>& sums = of_threads[t][number].sums->values;
      for (int n = 0; n < count; ++n) {
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
  std::map<int, Meeting> m_warpgroups;
  std::map<int, Meeting> m_meetings;
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
  template <class T, bool a_across, bool b_across, int count>
  static void product(float (&sums)[count], std::uint64_t a, std::uint64_t b, bool adds) {
    all().template product<T>(sums, {a, b, a_across, b_across, adds});
  }
  template <class T, bool b_across, int count>
  static void product(float (&sums)[count], const std::uint32_t* a, std::uint64_t b, bool adds) {
    EmulatedWarpgroups::Product product{0, b, false, b_across, adds};
    product.a_in_registers = true;
    std::copy(a, a + 4, product.words);
    all().template product<T>(sums, product);
  }
  static void meet(int number, int threads) { all().meet(number, threads); }
  static void pass(int number, int threads) { all().pass(number, threads); }
  static void meet_in_warp() { any(true); }
  static std::uint32_t transposed(std::uint32_t word) {
    return team().together<std::uint32_t>(6, word, [](const auto& in, auto& out) {
      for (std::size_t l = 0; l < in.size(); ++l) {
        const std::size_t row = l / 4, col = l % 4 * 2;
        const auto element = [&](std::size_t of_row) { return in[of_row * 4 + row / 2] >> (row % 2 * 16) & 0xffffu; };
        out[l]             = element(col) | element(col + 1) << 16;
      }
    });
  }
  static void publish_tile() {}
  template <int registers>
  static void keep_registers() {}
  template <int registers>
  static void take_registers() {}

 private:
  static EmulatedWarpgroups& all() { return EmulatedWarpgroups::running(); }
};

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_WARPGROUP_EMULATION_HPP
