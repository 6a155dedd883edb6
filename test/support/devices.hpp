// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_DEVICES_HPP
#define KOKKOSNN_TEST_SUPPORT_DEVICES_HPP

#include <KokkosNN/plan.hpp>

namespace KokkosNNTest {

/// A GPU for the planner, which need not be there.
inline KokkosNN::DeviceTraits h200() {
  KokkosNN::DeviceTraits traits;
  traits.backend          = KokkosNN::Backend::cuda;
  traits.lanes            = 32;
  traits.multiprocessors  = 132;
  traits.max_team_size    = 1024;
  traits.resident_threads = 768;
  traits.scratch[0]       = 48 * 1024;
  traits.cache            = 50 * 1024 * 1024;
  traits.prefetches       = true;
  traits.evicts_as_told   = true;
  return traits;
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_DEVICES_HPP
