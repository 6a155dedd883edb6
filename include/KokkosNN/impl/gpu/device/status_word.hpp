// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_DEVICE_STATUS_WORD_HPP
#define KOKKOSNN_IMPL_GPU_DEVICE_STATUS_WORD_HPP

#include <KokkosNN/impl/math/exp.hpp>

#include <Kokkos_Core.hpp>

#include <atomic>
#include <cstdint>
#include <thread>

// How co-resident teams tell each other (max, sum) through global memory. A letter is good for one turn, which its tag
// says, and is read ahead of the next but one being written. Four letters are used in turn, so a stale one is
// recognised without ever being cleared: when a team writes turn i + 4 it has read all letters of turn i + 2, whose
// writers had read those of turn i. Zeroed memory holds no letter.

namespace KokkosNN::Impl {

/// A read that other teams' writes reach; an atomic load would be a slow read-modify-write on some backends.
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

/// Gives the core away while waiting, where cores are shared.
KOKKOS_INLINE_FUNCTION void wait_a_little() { KOKKOS_IF_ON_HOST((std::this_thread::yield();)) }

/// One team's letters.
template <class A>
struct Mailbox;

/// A turn's place among a mailbox' letters.
KOKKOS_INLINE_FUNCTION constexpr int letter_of(std::int64_t turn) { return static_cast<int>(turn & 3); }
/// Whether the tag of a turn's letters is set: neither as in the turn before in the same place, nor, first, as in
/// zeroed memory.
KOKKOS_INLINE_FUNCTION constexpr bool tag_of(std::int64_t turn) { return (turn & 4) == 0; }

/// (max, sum) in one 64-bit word, which carries its own tag: the sum is never negative, so its sign is free.
template <>
struct Mailbox<float> {
  using Letter = std::uint64_t;

  Letter letters[4];

  KOKKOS_INLINE_FUNCTION void publish(std::int64_t turn, const RowState<float, float>& state) {
    const std::uint32_t tag = tag_of(turn) ? sign : 0u;
    const std::uint32_t sum = (Kokkos::bit_cast<std::uint32_t>(state.sum) & ~sign) | tag;
    write_fresh(&letters[letter_of(turn)], (Letter(Kokkos::bit_cast<std::uint32_t>(state.reference)) << 32) | sum);
  }
  KOKKOS_INLINE_FUNCTION Letter read(std::int64_t turn) const { return read_fresh(&letters[letter_of(turn)]); }
  KOKKOS_INLINE_FUNCTION static bool holds(Letter letter, std::int64_t turn) {
    return ((static_cast<std::uint32_t>(letter) & sign) != 0) == tag_of(turn);
  }
  KOKKOS_INLINE_FUNCTION static RowState<float, float> open(Letter letter) {
    return {Kokkos::bit_cast<float>(static_cast<std::uint32_t>(letter >> 32)),
            Kokkos::bit_cast<float>(static_cast<std::uint32_t>(letter) & ~sign)};
  }

 private:
  static constexpr std::uint32_t sign = 0x80000000u;
};

/// Two doubles in three words, each with a tag for its first bit: the third has what that leaves over, their last bits.
template <>
struct Mailbox<double> {
  struct Letter {
    std::uint64_t words[3];
  };

  Letter letters[4];

  KOKKOS_INLINE_FUNCTION void publish(std::int64_t turn, const RowState<double, double>& state) {
    const auto a   = Kokkos::bit_cast<std::uint64_t>(state.reference);
    const auto b   = Kokkos::bit_cast<std::uint64_t>(state.sum);
    const auto tag = std::uint64_t(tag_of(turn)) << 63;
    auto* words    = letters[letter_of(turn)].words;
    write_fresh(&words[0], tag | a >> 1);
    write_fresh(&words[1], tag | b >> 1);
    write_fresh(&words[2], tag | (a & 1) << 1 | (b & 1));
  }
  KOKKOS_INLINE_FUNCTION Letter read(std::int64_t turn) const {
    const auto* words = letters[letter_of(turn)].words;
    return {{read_fresh(&words[0]), read_fresh(&words[1]), read_fresh(&words[2])}};
  }
  KOKKOS_INLINE_FUNCTION static bool holds(const Letter& letter, std::int64_t turn) {
    const std::uint64_t all = letter.words[0] & letter.words[1] & letter.words[2];
    const std::uint64_t any = letter.words[0] | letter.words[1] | letter.words[2];
    return tag_of(turn) ? all >> 63 != 0 : any >> 63 == 0;
  }
  KOKKOS_INLINE_FUNCTION static RowState<double, double> open(const Letter& letter) {
    return {Kokkos::bit_cast<double>(letter.words[0] << 1 | (letter.words[2] >> 1 & 1)),
            Kokkos::bit_cast<double>(letter.words[1] << 1 | (letter.words[2] & 1))};
  }
};

/// The mailbox that carries a state; of all states the same size.
template <class State>
struct MailboxFor;

template <class A, class W>
struct MailboxFor<RowState<A, W>> {
  using type = Mailbox<A>;
};

template <class A, class W>
KOKKOS_INLINE_FUNCTION void publish(Mailbox<A>& mailbox, std::int64_t turn, const RowState<A, W>& state) {
  mailbox.publish(turn, {state.reference, static_cast<A>(state.sum)});
}

template <class State, class A>
KOKKOS_INLINE_FUNCTION State opened(const Mailbox<A>&, const typename Mailbox<A>::Letter& letter) {
  const auto state = Mailbox<A>::open(letter);
  return {state.reference, decltype(State::sum){state.sum}};
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_DEVICE_STATUS_WORD_HPP
