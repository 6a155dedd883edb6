// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "large.hpp"
#include "types.hpp"

#include <KokkosNN/version.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

/// Names what this build cannot test on this machine, so that nobody takes silence for a pass.
std::vector<std::string> untested() {
  using namespace KokkosNNTest;
  std::vector<std::string> reasons;
  if (!on_gpu) reasons.emplace_back("no GPU backend: graph capture and asynchrony are not tested");
  if (!has_room_for_large_output()) {
    reasons.emplace_back("not enough GPU memory: outputs of more than 2^31 elements are not tested");
  }
  return reasons;
}

/// With several threads all calls are launches, also those of few elements, which the calling thread would process by
/// itself if no tool watched. One thread tests that.
void watch_launches() {
  if (KokkosNNTest::on_gpu || KokkosNNTest::Exec().concurrency() == 1) return;
  Kokkos::Tools::Experimental::set_begin_parallel_for_callback([](const char*, std::uint32_t, std::uint64_t*) {});
}

}  // namespace

int main(int argc, char* argv[]) {
  setenv("KOKKOSNN_TUNING_FILE", "", 1);  // plans are to be the library's own, whoever has tuned this machine
  ::testing::InitGoogleTest(&argc, argv);
  Kokkos::ScopeGuard kokkos(argc, argv);
  std::printf("KokkosNN %s on Kokkos %d, backend %s, %d threads\n", std::string(KokkosNN::version()).c_str(),
              KOKKOS_VERSION, KokkosNNTest::Exec::name(), KokkosNNTest::Exec().concurrency());
  std::string line;
  for (const std::string& reason : untested()) line += (line.empty() ? "" : "; ") + reason;
  if (!line.empty()) std::printf("Not tested here: %s\n", line.c_str());
  std::fflush(stdout);
  watch_launches();
  return RUN_ALL_TESTS();
}
