// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_STATUS_WORD_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_STATUS_WORD_HPP

#include <KokkosNN/impl/math/exp.hpp>

#include <Kokkos_Core.hpp>

#include <atomic>
#include <cstdint>
#include <thread>

// Status words, through which co-resident teams exchange (max, sum) in global memory.
// A slot is valid for one epoch, which its tag identifies, and is read before the next epoch but one is written. Four
// slots are used in rotation, so a stale slot is recognised without ever being cleared: a team that writes epoch i + 4
// has read all slots of epoch i + 2, whose writers had read those of epoch i. Zeroed memory holds no epoch. Tags are
// inside the words, so that no fence orders them behind other writes.

namespace KokkosNN::Impl {

/// Reads a word that other teams write; an atomic load would be a slow read-modify-write on some backends.
template <class T>
KOKKOS_INLINE_FUNCTION T read_fresh(const T* word) {
  KOKKOS_IF_ON_DEVICE((return *static_cast<const volatile T*>(word);))
  KOKKOS_IF_ON_HOST((return std::atomic_ref<T>(*const_cast<T*>(word)).load(std::memory_order_acquire);))
}

template <class T>
KOKKOS_INLINE_FUNCTION void write_fresh(T* word, T value) {
  KOKKOS_IF_ON_DEVICE((*static_cast<volatile T*>(word) = value;))
  KOKKOS_IF_ON_HOST((std::atomic_ref<T>(*word).store(value, std::memory_order_release);))
}

/// Yields the core while waiting, where cores are shared.
KOKKOS_INLINE_FUNCTION void wait_a_little() { KOKKOS_IF_ON_HOST((std::this_thread::yield();)) }

/// Status word of one team.
template <class A>
struct StatusWord;

/// Slot of an epoch among the four of a status word.
KOKKOS_INLINE_FUNCTION constexpr int slot_of(std::int64_t epoch) { return static_cast<int>(epoch & 3); }
/// Tag of an epoch: it differs from that of the previous epoch in the same slot and, at first, from zeroed memory.
KOKKOS_INLINE_FUNCTION constexpr bool tag_of(std::int64_t epoch) { return (epoch & 4) == 0; }

/// Status word of (max, sum) in 64 bits, with its own tag: the sum is never negative, so its sign bit is free.
template <>
struct StatusWord<float> {
  using Word = std::uint64_t;

  Word slots[4];

  KOKKOS_INLINE_FUNCTION void publish(std::int64_t epoch, const RowState<float, float>& state) {
    const std::uint32_t tag = tag_of(epoch) ? sign : 0u;
    const std::uint32_t sum = (Kokkos::bit_cast<std::uint32_t>(state.sum) & ~sign) | tag;
    write_fresh(&slots[slot_of(epoch)], (Word(Kokkos::bit_cast<std::uint32_t>(state.reference)) << 32) | sum);
  }
  KOKKOS_INLINE_FUNCTION Word read(std::int64_t epoch) const { return read_fresh(&slots[slot_of(epoch)]); }
  KOKKOS_INLINE_FUNCTION static bool holds(Word word, std::int64_t epoch) {
    return ((static_cast<std::uint32_t>(word) & sign) != 0) == tag_of(epoch);
  }
  KOKKOS_INLINE_FUNCTION static RowState<float, float> open(Word word) {
    return {Kokkos::bit_cast<float>(static_cast<std::uint32_t>(word >> 32)),
            Kokkos::bit_cast<float>(static_cast<std::uint32_t>(word) & ~sign)};
  }

 private:
  static constexpr std::uint32_t sign = 0x80000000u;
};

/// Status word of two doubles in three words, each with a tag in its first bit: the third has the doubles' last bits,
/// which the first two lack.
template <>
struct StatusWord<double> {
  struct Word {
    std::uint64_t parts[3];
  };

  Word slots[4];

  KOKKOS_INLINE_FUNCTION void publish(std::int64_t epoch, const RowState<double, double>& state) {
    const auto a   = Kokkos::bit_cast<std::uint64_t>(state.reference);
    const auto b   = Kokkos::bit_cast<std::uint64_t>(state.sum);
    const auto tag = std::uint64_t(tag_of(epoch)) << 63;
    auto* parts    = slots[slot_of(epoch)].parts;
    write_fresh(&parts[0], tag | a >> 1);
    write_fresh(&parts[1], tag | b >> 1);
    write_fresh(&parts[2], tag | (a & 1) << 1 | (b & 1));
  }
  KOKKOS_INLINE_FUNCTION Word read(std::int64_t epoch) const {
    const auto* parts = slots[slot_of(epoch)].parts;
    return {{read_fresh(&parts[0]), read_fresh(&parts[1]), read_fresh(&parts[2])}};
  }
  KOKKOS_INLINE_FUNCTION static bool holds(const Word& word, std::int64_t epoch) {
    const std::uint64_t all = word.parts[0] & word.parts[1] & word.parts[2];
    const std::uint64_t any = word.parts[0] | word.parts[1] | word.parts[2];
    return tag_of(epoch) ? all >> 63 != 0 : any >> 63 == 0;
  }
  KOKKOS_INLINE_FUNCTION static RowState<double, double> open(const Word& word) {
    return {Kokkos::bit_cast<double>(word.parts[0] << 1 | (word.parts[2] >> 1 & 1)),
            Kokkos::bit_cast<double>(word.parts[1] << 1 | (word.parts[2] & 1))};
  }
};

/// Status word of a state's type; all states of a call have the same size.
template <class State>
struct StatusWordFor;

template <class A, class W>
struct StatusWordFor<RowState<A, W>> {
  using type = StatusWord<A>;
};

template <class A, class W>
KOKKOS_INLINE_FUNCTION void publish(StatusWord<A>& status, std::int64_t epoch, const RowState<A, W>& state) {
  status.publish(epoch, {state.reference, static_cast<A>(state.sum)});
}

template <class State, class A>
KOKKOS_INLINE_FUNCTION State opened(const StatusWord<A>&, const typename StatusWord<A>::Word& word) {
  const auto state = StatusWord<A>::open(word);
  return {state.reference, decltype(State::sum){state.sum}};
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_STATUS_WORD_HPP
