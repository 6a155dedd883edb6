// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_WARPGROUPS_HPP
#define KOKKOSNN_TEST_SUPPORT_WARPGROUPS_HPP

#include "types.hpp"

#include <KokkosNN/impl/gpu/device/warpgroup.hpp>

#include <gtest/gtest.h>

// Tests of kernels on Hopper's warpgroups.

namespace KokkosNNTest {

/// Element types that these kernels take.
using WarpgroupTypes = testing::Types<BHalf, Half>;

/// A test that says so where the device has no warpgroups.
class OnWarpgroups : public testing::Test {
 protected:
  void SetUp() override {
    if (!KokkosNN::Impl::has_warpgroups(Exec())) GTEST_SKIP() << "this device has none";
  }
};

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_WARPGROUPS_HPP
