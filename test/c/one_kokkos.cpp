// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/kokkosnn.h>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <cstdio>
#include <cstring>

// A process that runs Kokkos itself, the one that the C functions have: they use it, and do not end it. It is linked
// with their objects, which is as if Kokkos were shared.

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  ++failures;
  std::printf("FAILED: %s (last error: %s)\n", what, kokkosnn_last_error());
}

}  // namespace

int main(int argc, char* argv[]) {
  using Memory = Kokkos::DefaultExecutionSpace::memory_space;
  Kokkos::initialize(argc, argv);
  {
    const Kokkos::View<float*, Memory> x("x", 4);
    const std::int64_t extents[] = {4};
    const kokkosnn_tensor t      = kokkosnn_row_major(x.data(), KOKKOSNN_F32, 1, extents);
    check(kokkosnn_softmax(nullptr, &t, &t, nullptr) == KOKKOSNN_SUCCESS, "a call uses the Kokkos that runs");
    Kokkos::fence();
    float first = 0;
    Kokkos::deep_copy(first, Kokkos::subview(x, 0));
    check(first == 0.25f, "its result is there");
    check(Kokkos::is_initialized() && !Kokkos::is_finalized(), "Kokkos is left running");
  }
  Kokkos::finalize();

  float x[1]                   = {1};
  const std::int64_t extents[] = {1};
  const kokkosnn_tensor t      = kokkosnn_row_major(x, KOKKOSNN_F32, 1, extents);
  check(kokkosnn_softmax(nullptr, &t, &t, nullptr) == KOKKOSNN_FAILURE, "a call after Kokkos' end fails");
  check(std::strcmp(kokkosnn_last_error(), "KokkosNN::softmax: Kokkos has been finalised") == 0, "and says why");
  return failures;
}
