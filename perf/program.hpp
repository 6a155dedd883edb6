// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_PERF_PROGRAM_HPP
#define KOKKOSNN_PERF_PROGRAM_HPP

#include "problem.hpp"
#include "timing.hpp"

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>

// Frame of a small program that measures: its flags, its element type, its inputs, and what it prints of an error.

namespace KokkosNN::Perf {

/// Calls take(flag, value) for the pairs of arguments; false: there is no such flag.
template <class Take>
void for_flags(int argc, char** argv, const Take& take) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!take(std::string(argv[i]), std::string(argv[i + 1]))) {
      throw std::invalid_argument(std::string("no such flag: ") + argv[i]);
    }
  }
}

/// Calls f(std::type_identity<type>) for an element type.
template <class F>
void with_type(ElementType type, const F& f) {
  switch (type) {
    case ElementType::f64:
      return f(std::type_identity<double>{});
    case ElementType::f32:
      return f(std::type_identity<float>{});
    case ElementType::f16:
      return f(std::type_identity<half_t>{});
    case ElementType::bf16:
      return f(std::type_identity<bhalf_t>{});
    case ElementType::other:
      break;
  }
  throw std::invalid_argument("no such type");
}

/// Fills a contiguous View with noise in [-1, 1), the numbers from `from` on.
template <class View>
void fill(const Exec& exec, const View& view, std::uint64_t from) {
  auto* const data = view.data();
  using T          = typename View::value_type;
  Kokkos::parallel_for(
      "KokkosNN::Perf::fill",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, static_cast<std::int64_t>(view.size())),
      KOKKOS_LAMBDA(const std::int64_t i) {
        const auto place = from + static_cast<std::uint64_t>(i);
        data[i]          = static_cast<T>(static_cast<float>(noise(place) >> 40) * 0x1p-23f - 1.0f);
      });
}

/// Time of a call whose inputs stay in the cache, if they fit: its products take longer than reading does.
inline Timing time(const Exec& exec, const std::function<void()>& call, double seconds) {
  constexpr std::size_t most = std::size_t(1) << 20;
  return summary(sample(exec, [] {}, call, {.seconds = seconds, .max_samples = most}));
}

/// The exit status of run(argc, argv) with Kokkos; what it throws is printed behind the program's name.
template <class Run>
int run_program(const char* name, int argc, char** argv, const Run& run) {
  try {
    const Kokkos::ScopeGuard kokkos(argc, argv);
    run(argc, argv);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

}  // namespace KokkosNN::Perf

#endif  // KOKKOSNN_PERF_PROGRAM_HPP
