// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_TEAM_EMULATION_HPP
#define KOKKOSNN_TEST_SUPPORT_TEAM_EMULATION_HPP

#include <KokkosNN/impl/gpu/device/matrix_instructions.hpp>

#include <Kokkos_Core.hpp>

#include <ucontext.h>

#if defined(__CUDACC__)
#pragma nv_diag_suppress 20014  // kernels, which run on the host alone here, call the host's functions
#endif

#if defined(__SANITIZE_ADDRESS__)
#define KOKKOSNN_TEST_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KOKKOSNN_TEST_ADDRESS_SANITIZER
#endif
#endif
#if defined(KOKKOSNN_TEST_ADDRESS_SANITIZER)
#include <sanitizer/common_interface_defs.h>
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

// A GPU's team on a CPU, for kernels that take their matrix instructions as a template argument: threads are fibers,
// warps run in random order, and the instructions of a warp follow the fragments of the PTX ISA, or of AMD's MFMA. What
// an asynchronous copy writes is NaN until the copying thread waits for it. Scratch begins as NaN. What a kernel must
// not do throws from run().

namespace KokkosNNTest {

class EmulatedTeam {
 public:
  EmulatedTeam(int threads, int lanes, std::size_t scratch_bytes, std::uint32_t seed = 1)
      : m_lanes(lanes), m_random(seed), m_fibers(threads), m_warps(threads / lanes) {
    m_store.assign(scratch_bytes + 2048, char(0xff));
    void* p           = m_store.data();
    std::size_t space = m_store.size();
    m_scratch         = static_cast<char*>(std::align(1024, scratch_bytes, p, space));
    m_scratch_bytes   = scratch_bytes;
    for (Warp& warp : m_warps) warp.slots.resize(lanes);
  }

  /// Calls body(rank) as each of the threads.
  void run(const std::function<void(int)>& body) {
    m_body    = body;
    s_running = this;
    for (std::size_t i = 0; i < m_fibers.size(); ++i) start(m_fibers[i]);
    while (run_some_warp()) {
    }
    s_running = nullptr;
    if (!m_error.empty()) throw std::logic_error(m_error);
    for (const Fiber& fiber : m_fibers) {
      if (!fiber.is_done) throw std::logic_error("threads of a team wait for each other");
    }
  }

  static EmulatedTeam& running() { return *s_running; }

  // --- what threads call ---
  int rank() const { return m_current; }
  int lane() const { return m_current % m_lanes; }
  int threads() const { return static_cast<int>(m_fibers.size()); }
  char* scratch(std::uint32_t address, std::size_t bytes) {
    if (address + bytes > m_scratch_bytes) fail("an access outside of team scratch");
    if (address % bytes != 0) fail("a misaligned access of team scratch");
    return m_scratch + address;
  }
  std::uint32_t address_of(const void* p) const {
    return static_cast<std::uint32_t>(static_cast<const char*>(p) - m_scratch);
  }
  void* scratch_begin() { return m_scratch; }
  std::size_t scratch_bytes() const { return m_scratch_bytes; }

  void barrier() {
    const int generation = m_generation;
    if (++m_arrived == int(m_fibers.size())) {
      m_arrived = 0;
      ++m_generation;
      return;
    }
    wait_until([this, generation] { return m_generation != generation; });
  }

  /// Lets other threads run until condition().
  template <class Condition>
  void wait_until(const Condition& condition) {
    me().may_go_on = condition;
    while (!condition()) leave();
  }
  [[noreturn]] void fail(const char* what) {
    if (m_error.empty()) m_error = what;
    throw Stopped{};
  }
  /// A random number below `end`.
  int random(int end) { return static_cast<int>(m_random() % static_cast<unsigned>(end)); }

  struct Copy {
    std::uint32_t to;
    const void* from;
    int bytes;
  };
  void copy_async(const Copy& copy) {
    if (copy.bytes > 0 && reinterpret_cast<std::uintptr_t>(copy.from) % 16 != 0) fail("a misaligned source of a copy");
    std::memset(scratch(copy.to, 16), 0xff, 16);
    me().open.push_back(copy);
  }
  void commit() {
    me().groups.push_back(me().open);
    me().open.clear();
  }
  void wait(int groups) {
    auto& pending = me().groups;
    while (int(pending.size()) > groups) {
      for (const Copy& copy : pending.front()) {
        std::memset(scratch(copy.to, 16), 0, 16);
        if (copy.bytes > 0) std::memcpy(scratch(copy.to, 16), copy.from, copy.bytes);
      }
      pending.erase(pending.begin());
    }
  }

  /// An instruction of all lanes of a warp: the last one to come calls compute(inputs, outputs), arrays of a value a
  /// lane. All lanes must be at the instruction of this number.
  template <class Out, class In, class Compute>
  Out together(int instruction, const In& in, const Compute& compute) {
    static_assert(sizeof(In) <= sizeof(Slot::in) && sizeof(Out) <= sizeof(Slot::out));
    Warp& warp = m_warps[m_current / m_lanes];
    if (warp.arrived > 0 && warp.instruction != instruction) fail("lanes of a warp at different instructions");
    warp.instruction = instruction;
    Slot& slot       = warp.slots[lane()];
    std::memcpy(slot.in, &in, sizeof(In));
    const int generation = warp.generation;
    if (++warp.arrived == m_lanes) {
      warp.arrived = 0;
      std::vector<In> inputs(m_lanes);
      std::vector<Out> outputs(m_lanes);
      for (int l = 0; l < m_lanes; ++l) std::memcpy(&inputs[l], warp.slots[l].in, sizeof(In));
      compute(inputs, outputs);
      for (int l = 0; l < m_lanes; ++l) std::memcpy(warp.slots[l].out, &outputs[l], sizeof(Out));
      ++warp.generation;
    } else {
      wait_until([&warp, generation] { return warp.generation != generation; });
    }
    Out out;
    std::memcpy(&out, slot.out, sizeof(Out));
    return out;
  }

 private:
  struct Slot {
    alignas(16) char in[128];
    alignas(16) char out[64];
  };
  struct Warp {
    int arrived = 0, generation = 0, instruction = 0;
    std::vector<Slot> slots;
  };
  struct Fiber {
    ucontext_t context;
    std::vector<char> stack;
    bool is_done = false;
    std::function<bool()> may_go_on;
    std::vector<Copy> open;
    std::vector<std::vector<Copy>> groups;
  };
  struct Stopped {};

  Fiber& me() { return m_fibers[m_current]; }

  void start(Fiber& fiber) {
    fiber.stack.resize(256 * 1024);
    fiber.may_go_on = [] { return true; };
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp   = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    fiber.context.uc_link          = nullptr;
    makecontext(&fiber.context, &EmulatedTeam::enter, 0);
  }

  static void enter() {
    EmulatedTeam& team = running();
    team.entered();
    try {
      team.m_body(team.m_current);
    } catch (const Stopped&) {
    }
    team.me().is_done = true;
    team.leave();
  }

  /// All threads of a random warp go on as far as they can. False if no thread of any warp could.
  bool run_some_warp() {
    const int warps = static_cast<int>(m_warps.size());
    const int first = static_cast<int>(m_random() % m_warps.size());
    for (int i = 0; i < warps && m_error.empty(); ++i) {
      bool has_moved  = false;
      const int begin = (first + i) % warps * m_lanes;
      for (int thread = begin; thread < begin + m_lanes && m_error.empty(); ++thread) {
        Fiber& fiber = m_fibers[thread];
        if (fiber.is_done || !fiber.may_go_on()) continue;
        has_moved = true;
        m_current = thread;
        go_into(fiber);
      }
      if (has_moved) return m_error.empty();
    }
    return false;
  }

  // --- switches between the scheduler and a fiber ---
  void go_into(Fiber& fiber) {
#if defined(KOKKOSNN_TEST_ADDRESS_SANITIZER)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(&fake, fiber.stack.data(), fiber.stack.size());
#endif
    swapcontext(&m_scheduler, &fiber.context);
#if defined(KOKKOSNN_TEST_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(fake, nullptr, nullptr);
#endif
  }
  void leave() {
    const int thread = m_current;
#if defined(KOKKOSNN_TEST_ADDRESS_SANITIZER)
    void* fake = nullptr;
    __sanitizer_start_switch_fiber(m_fibers[thread].is_done ? nullptr : &fake, m_scheduler_stack, m_scheduler_bytes);
#endif
    swapcontext(&m_fibers[thread].context, &m_scheduler);
#if defined(KOKKOSNN_TEST_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(fake, &m_scheduler_stack, &m_scheduler_bytes);
#endif
  }
  void entered() {
#if defined(KOKKOSNN_TEST_ADDRESS_SANITIZER)
    __sanitizer_finish_switch_fiber(nullptr, &m_scheduler_stack, &m_scheduler_bytes);
#endif
  }

  static inline EmulatedTeam* s_running = nullptr;

  int m_lanes;
  std::mt19937 m_random;
  std::vector<Fiber> m_fibers;
  std::vector<Warp> m_warps;
  std::vector<char> m_store;
  char* m_scratch             = nullptr;
  std::size_t m_scratch_bytes = 0;
  std::function<void(int)> m_body;
  ucontext_t m_scheduler;
  [[maybe_unused]] const void* m_scheduler_stack = nullptr;
  [[maybe_unused]] std::size_t m_scheduler_bytes = 0;
  int m_current                                  = 0;
  int m_arrived = 0, m_generation = 0;
  std::string m_error;
};

/// Kokkos' handle of a team, of which a kernel calls these.
struct EmulatedMember {
  struct Scratch {
    void* get_shmem_aligned(std::size_t bytes, std::size_t) const {
      EmulatedTeam& team = EmulatedTeam::running();
      return bytes <= team.scratch_bytes() ? team.scratch_begin() : nullptr;
    }
  };
  int league;
  int teams;
  int rank;

  int league_rank() const { return league; }
  int league_size() const { return teams; }
  int team_rank() const { return rank; }
  int team_size() const { return EmulatedTeam::running().threads(); }
  void team_barrier() const { EmulatedTeam::running().barrier(); }
  Scratch team_scratch(int) const { return {}; }
};

/// Accesses, copies and exchanges in a running EmulatedTeam.
struct EmulatedMemory {
  using Address = std::uint32_t;

  static Address address(void* p) { return team().address_of(p); }
  template <class T>
  static T load(Address from) {
    T value;
    std::memcpy(static_cast<void*>(&value), team().scratch(from, sizeof(T)), sizeof(T));
    return value;
  }
  template <class T>
  static void store(Address to, const T& value) {
    std::memcpy(team().scratch(to, sizeof(T)), static_cast<const void*>(&value), sizeof(T));
  }
  static void copy_async(Address to, const void* from, int bytes) { team().copy_async({to, from, bytes}); }
  static void commit() { team().commit(); }
  template <int n>
  static void wait() {
    team().wait(n);
  }

  template <class T>
  static T exchange(T value, int mask) {
    return team().together<T>(1, value, [mask](const auto& in, auto& out) {
      for (std::size_t l = 0; l < in.size(); ++l) out[l] = in[l ^ static_cast<std::size_t>(mask)];
    });
  }
  template <class T>
  static T value_of(T value, int lane) {
    struct Input {
      T value;
      int lane;
    };
    return team().together<T>(2, Input{value, lane}, [](const auto& in, auto& out) {
      for (std::size_t l = 0; l < in.size(); ++l) out[l] = in[in[l].lane].value;
    });
  }
  static bool any(bool yes) {
    return team().together<int>(3, int(yes), [](const auto& in, auto& out) {
      int any = 0;
      for (const int one : in) any |= one;
      for (int& one : out) one = any;
    }) != 0;
  }

 protected:
  static EmulatedTeam& team() { return EmulatedTeam::running(); }
};

/// The instructions of NvidiaInstructions.
struct EmulatedInstructions : EmulatedMemory {
  template <bool transposed>
  static void load_blocks(std::uint32_t (&to)[4], Address row) {
    struct Words {
      std::uint32_t word[4];
    };
    EmulatedTeam& running = team();
    const Words words     = running.together<Words>(transposed ? 4 : 5, row, [&](const auto& in, auto& out) {
      for (int block = 0; block < 4; ++block) {
        std::uint16_t x[8][8];
        for (int r = 0; r < 8; ++r) std::memcpy(x[r], running.scratch(in[block * 8 + r], 16), 16);
        for (int l = 0; l < 32; ++l) {
          const int r = l / 4, c = 2 * (l % 4);
          const std::uint32_t low  = transposed ? x[c][r] : x[r][c];
          const std::uint32_t high = transposed ? x[c + 1][r] : x[r][c + 1];
          out[l].word[block]       = low | high << 16;
        }
      }
    });
    for (int i = 0; i < 4; ++i) to[i] = words.word[i];
  }

  template <class T>
  static std::uint32_t packed(float first, float second) {
    return Kokkos::bit_cast<std::uint16_t>(T(first)) |
           static_cast<std::uint32_t>(Kokkos::bit_cast<std::uint16_t>(T(second))) << 16;
  }

  template <class T>
  static void product16(float& d0, float& d1, float& d2, float& d3, const std::uint32_t (&a)[4], std::uint32_t b0,
                        std::uint32_t b1) {
    const auto value = [](std::uint32_t word, int half) {
      return float(Kokkos::bit_cast<T>(static_cast<std::uint16_t>(word >> 16 * half)));
    };
    product<16, float>(6, {&d0, &d1, &d2, &d3}, Operands<std::uint32_t>{{a[0], a[1], a[2], a[3], b0, b1}, {}},
                       [value](const auto& in, auto& A, auto& B) {
                         for (int l = 0; l < 32; ++l) {
                           const int g = l / 4, t = l % 4;
                           for (int i = 0; i < 8; ++i) {
                             A[g + i / 2 % 2 * 8][2 * t + i % 2 + i / 4 * 8] = value(in[l].value[i / 2], i % 2);
                           }
                           for (int i = 0; i < 4; ++i) {
                             B[2 * t + i % 2 + i / 2 * 8][g] = value(in[l].value[4 + i / 2], i % 2);
                           }
                         }
                       });
  }

  static void product_tf32(float& d0, float& d1, float& d2, float& d3, const std::uint32_t (&a)[4], std::uint32_t b0,
                           std::uint32_t b1) {
    product<8, float>(7, {&d0, &d1, &d2, &d3}, Operands<std::uint32_t>{{a[0], a[1], a[2], a[3], b0, b1}, {}},
                      [](const auto& in, auto& A, auto& B) {
                        const auto value = [](std::uint32_t word) {
                          return Kokkos::bit_cast<float>(word & 0xffffe000u);
                        };
                        for (int l = 0; l < 32; ++l) {
                          const int g = l / 4, t = l % 4;
                          for (int i = 0; i < 4; ++i) A[g + i % 2 * 8][t + i / 2 * 4] = value(in[l].value[i]);
                          for (int i = 0; i < 2; ++i) B[t + i * 4][g] = value(in[l].value[4 + i]);
                        }
                      });
  }

  template <int K>
  static void product64(double& d0, double& d1, double& d2, double& d3, const double (&a)[K / 2],
                        const double (&b)[K / 4]) {
    Operands<double> operands{};
    for (int i = 0; i < K / 2; ++i) operands.value[i] = a[i];
    for (int i = 0; i < K / 4; ++i) operands.value[K / 2 + i] = b[i];
    product<K, double>(8, {&d0, &d1, &d2, &d3}, operands, [](const auto& in, auto& A, auto& B) {
      for (int l = 0; l < 32; ++l) {
        const int g = l / 4, t = l % 4;
        for (int i = 0; i < K / 2; ++i) A[g + i % 2 * 8][t + i / 2 * 4] = in[l].value[i];
        for (int i = 0; i < K / 4; ++i) B[t + i * 4][g] = in[l].value[K / 2 + i];
      }
    });
  }

 private:
  template <class Word>
  struct Operands {
    Word value[6];
    double c[4];
  };

  /// D = A B + D of 16 x K by K x 8 elements; unpack(in, A, B) makes the matrices from the lanes' registers.
  template <int K, class R, class Word, class Unpack>
  static void product(int instruction, const Kokkos::Array<R*, 4>& d, Operands<Word> operands, const Unpack& unpack) {
    struct Result {
      R d[4];
    };
    for (int i = 0; i < 4; ++i) operands.c[i] = *d[i];
    const Result result = team().template together<Result>(instruction, operands, [&](const auto& in, auto& out) {
      R A[16][K], B[K][8];
      unpack(in, A, B);
      for (int l = 0; l < 32; ++l) {
        for (int i = 0; i < 4; ++i) {
          const int row = l / 4 + i / 2 * 8, col = l % 4 * 2 + i % 2;
          R sum = static_cast<R>(in[l].c[i]);
          for (int k = 0; k < K; ++k) sum += A[row][k] * B[k][col];
          out[l].d[i] = sum;
        }
      }
    });
    for (int i = 0; i < 4; ++i) *d[i] = result.d[i];
  }
};

/// The instructions of AmdInstructions: matrices' elements are in the registers of lanes where AMD's calculator of
/// matrix instructions says.
struct EmulatedAmdInstructions : EmulatedMemory {
  template <class T>
  static void product16(float (&d)[4], const T (&a)[4], const T (&b)[4]) {
    Operands<T, 4, float> operands;
    for (int i = 0; i < 4; ++i) {
      operands.a[i] = a[i];
      operands.b[i] = b[i];
    }
    const auto row_of_d = [](int row) { return Place{16 * (row / 4), row % 4}; };
    product<16>(9, d, operands, [](int k) { return Place{16 * (k / 4), k % 4}; }, row_of_d);
  }
  static void product32(float (&d)[4], float a, float b) {
    const auto row_of_d = [](int row) { return Place{16 * (row / 4), row % 4}; };
    product<4>(10, d, Operands<float, 1, float>{{a}, {b}, {}}, [](int k) { return Place{16 * k, 0}; }, row_of_d);
  }
  static void product64(double (&d)[4], double a, double b) {
    const auto row_of_d = [](int row) { return Place{16 * (row % 4), row / 4}; };
    product<4>(11, d, Operands<double, 1, double>{{a}, {b}, {}}, [](int k) { return Place{16 * k, 0}; }, row_of_d);
  }

 private:
  /// A register, and the lane of the other index 0.
  struct Place {
    int lane;
    int number;
  };
  template <class T, int n, class R>
  struct Operands {
    T a[n];
    T b[n];
    R d[4];
  };

  /// D += A B. Row i of A and column i of B have element k at place_of_k(k), column j of D has row i at
  /// place_of_row(i), each in lane i or j behind the place's.
  template <int K, class T, int n, class R, class OfK, class OfRow>
  static void product(int instruction, R (&d)[4], Operands<T, n, R> operands, const OfK& place_of_k,
                      const OfRow& place_of_row) {
    struct Result {
      R d[4];
    };
    for (int i = 0; i < 4; ++i) operands.d[i] = d[i];
    const Result result = team().template together<Result>(instruction, operands, [&](const auto& in, auto& out) {
      for (int i = 0; i < 16; ++i) {
        for (int j = 0; j < 16; ++j) {
          const Place to = place_of_row(i);
          R sum          = in[to.lane + j].d[to.number];
          for (int k = 0; k < K; ++k) {
            const Place at = place_of_k(k);
            sum += static_cast<R>(in[at.lane + i].a[at.number]) * static_cast<R>(in[at.lane + j].b[at.number]);
          }
          out[to.lane + j].d[to.number] = sum;
        }
      }
    });
    for (int i = 0; i < 4; ++i) d[i] = result.d[i];
  }
};

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_TEAM_EMULATION_HPP
