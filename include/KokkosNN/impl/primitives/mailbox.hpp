// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_PRIMITIVES_MAILBOX_HPP
#define KOKKOSNN_IMPL_PRIMITIVES_MAILBOX_HPP

#include <KokkosNN/impl/primitives/exp.hpp>

#include <Kokkos_Core.hpp>

#include <atomic>
#include <cstdint>
#include <thread>

// How co-resident teams tell each other (max, sum) through global memory. A letter is good for one turn, which its tag
// says; two letters are used in turn, so a stale one is recognised without ever being cleared: when a team writes turn
// i + 2 it has read all letters of turn i + 1, so every sibling has read turn i. Zeroed memory holds no letter.

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

/// (max, sum) in one 64-bit word, which carries its own tag: the sum is never negative, so its sign is free.
template <>
struct Mailbox<float> {
  std::uint64_t letter[2];

  KOKKOS_INLINE_FUNCTION void publish(std::int64_t turn, const RowState<float, float>& state) {
    const std::uint32_t sum = (Kokkos::bit_cast<std::uint32_t>(state.sum) & 0x7fffffffu) | tag(turn);
    write_fresh(&letter[turn & 1], (std::uint64_t(Kokkos::bit_cast<std::uint32_t>(state.reference)) << 32) | sum);
  }

  KOKKOS_INLINE_FUNCTION RowState<float, float> await(std::int64_t turn) const {
    for (;;) {
      const std::uint64_t word = read_fresh(&letter[turn & 1]);
      const auto sum           = static_cast<std::uint32_t>(word);
      if ((sum & 0x80000000u) == tag(turn)) {
        return {Kokkos::bit_cast<float>(static_cast<std::uint32_t>(word >> 32)),
                Kokkos::bit_cast<float>(sum & 0x7fffffffu)};
      }
      wait_a_little();
    }
  }

 private:
  KOKKOS_INLINE_FUNCTION static std::uint32_t tag(std::int64_t turn) { return (turn & 2) == 0 ? 0x80000000u : 0u; }
};

/// Two words do not travel together: the turn's number follows them after a fence.
template <>
struct Mailbox<double> {
  RowState<double, double> letter[2];
  std::int64_t number[2];

  KOKKOS_INLINE_FUNCTION void publish(std::int64_t turn, const RowState<double, double>& state) {
    write_fresh(&letter[turn & 1].reference, state.reference);
    write_fresh(&letter[turn & 1].sum, state.sum);
    Kokkos::memory_fence();
    write_fresh(&number[turn & 1], turn + 1);
  }

  KOKKOS_INLINE_FUNCTION RowState<double, double> await(std::int64_t turn) const {
    while (read_fresh(&number[turn & 1]) != turn + 1) wait_a_little();
    Kokkos::memory_fence();
    return {read_fresh(&letter[turn & 1].reference), read_fresh(&letter[turn & 1].sum)};
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
KOKKOS_INLINE_FUNCTION State await(const Mailbox<A>& mailbox, std::int64_t turn) {
  const auto letter = mailbox.await(turn);
  return {letter.reference, decltype(State::sum){letter.sum}};
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_PRIMITIVES_MAILBOX_HPP
