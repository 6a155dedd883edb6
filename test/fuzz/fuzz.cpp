// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// \file
/// Calls made of random bytes, against the reference. The bytes choose operator, types, rank, extents, strides, axis,
/// options, mask, plan and what values the input holds. A call must be right, or, where a plan is forced that cannot
/// serve it, refused. Built by the preset dev-fuzz it is a libFuzzer program; otherwise it runs so many cases from a
/// seed: kokkosnn_fuzz [cases [seed]].

#include "kinds.hpp"

#include <KokkosNN/version.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <vector>

namespace KokkosNNTest {
namespace {

template <class T>
const std::vector<Kind>& all_kinds() {
  static const std::vector<Kind> kinds = [] {
    std::vector<Kind> all;
    for (const auto family : {row_kinds<T>, loss_kinds<T>, masked_kinds<T>, segmented_kinds<T>, element_kinds<T>,
                              attention_kinds<T>, product_kinds<T>}) {
      std::ranges::copy(family(), std::back_inserter(all));
    }
    return all;
  }();
  return kinds;
}

template <class T>
void one_case(Draw& draw) {
  all_kinds<T>()[draw.below(all_kinds<T>().size())].run(draw);
}

/// Ends the program where an operator of the table is in no kind of call.
void require_every_operator() {
  for (int op = 0; op < KokkosNN::operator_count; ++op) {
    const bool is_reached = std::ranges::any_of(all_kinds<float>(), [&](const Kind& kind) {
      return std::ranges::find(kind.operators, RowOperator(op)) != kind.operators.end();
    });
    if (is_reached) continue;
    std::fprintf(stderr, "no random call reaches the operator %s\n", to_string(RowOperator(op)));
    std::abort();
  }
}

void one_input(const std::uint8_t* data, std::size_t size) {
  Draw draw(data, size);
  switch (draw.below(6)) {
    case 0:
    case 1:
      return one_case<double>(draw);
    case 2:
      return one_case<Half>(draw);
    case 3:
      return one_case<BHalf>(draw);
    default:
      return one_case<float>(draw);
  }
}

}  // namespace
}  // namespace KokkosNNTest

#ifdef KOKKOSNN_FUZZER

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  setenv("KOKKOSNN_TUNING_FILE", "", 1);
  Kokkos::initialize(*argc, *argv);
  KokkosNNTest::require_every_operator();
  std::atexit([] { Kokkos::finalize(); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  KokkosNNTest::one_input(data, size);
  return 0;
}

#else

int main(int argc, char* argv[]) {
  setenv("KOKKOSNN_TUNING_FILE", "", 1);
  Kokkos::ScopeGuard kokkos(argc, argv);
  KokkosNNTest::require_every_operator();
  std::printf("%s\n", to_string(KokkosNN::configuration()).c_str());
  const long cases = argc > 1 ? std::atol(argv[1]) : 3000;
  std::mt19937 engine(argc > 2 ? static_cast<std::uint32_t>(std::atol(argv[2])) : 1);
  std::vector<std::uint8_t> bytes(96);
  for (long i = 0; i < cases; ++i) {
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(engine());
    KokkosNNTest::one_input(bytes.data(), bytes.size());
  }
  std::printf("%ld cases were right\n", cases);
  return 0;
}

#endif
