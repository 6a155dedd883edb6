// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_DEVICES_HPP
#define KOKKOSNN_TEST_SUPPORT_DEVICES_HPP

#include <KokkosNN/plan.hpp>

#include <cstdint>

namespace KokkosNNTest {

using KokkosNN::Backend;
using KokkosNN::DeviceTraits;
using KokkosNN::ElementType;
using KokkosNN::RowProblem;

/// A GPU for the planner, which need not be there.
inline KokkosNN::DeviceTraits h200() {
  KokkosNN::DeviceTraits traits;
  traits.backend          = KokkosNN::Backend::cuda;
  traits.warp_size        = 32;
  traits.multiprocessors  = 132;
  traits.max_team_size    = 1024;
  traits.resident_threads = 768;
  traits.scratch[0]       = 48 * 1024;
  traits.cache            = 50 * 1024 * 1024;
  traits.prefetches       = true;
  traits.evicts_as_told   = true;
  return traits;
}

/// That one where kernels are launched with attributes.
inline KokkosNN::DeviceTraits h200_with_clusters() {
  KokkosNN::DeviceTraits traits = h200();
  traits.large_scratch          = 227 * 1024;
  traits.largest_cluster        = 16;
  return traits;
}

/// One of another kind.
inline DeviceTraits wave64() {
  DeviceTraits traits;
  traits.backend          = Backend::hip;
  traits.warp_size        = 64;
  traits.multiprocessors  = 104;
  traits.max_team_size    = 1024;
  traits.resident_threads = 1024;
  traits.scratch[0]       = 64 * 1024;
  return traits;
}

inline DeviceTraits host(int threads) {
  DeviceTraits traits;
  traits.backend          = Backend::host;
  traits.warp_size        = 1;
  traits.multiprocessors  = threads;
  traits.max_team_size    = threads;
  traits.resident_threads = 1;
  traits.scratch[0]       = 32 * 1024;
  traits.scratch[1]       = 20 * 1024 * 1024;
  return traits;
}

inline RowProblem problem(std::int64_t rows, std::int64_t cols, ElementType x = ElementType::f32,
                          ElementType y = ElementType::f32) {
  const auto bytes = [](ElementType type) { return type == ElementType::f64 ? 8 : type == ElementType::f32 ? 4 : 2; };
  RowProblem p;
  p.x_type            = x;
  p.y_type            = y;
  p.x_bytes           = bytes(x);
  p.y_bytes           = bytes(y);
  p.accumulator_bytes = x == ElementType::f64 || y == ElementType::f64 ? 8 : 4;
  p.rows              = rows;
  p.cols              = cols;
  return p;
}

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_DEVICES_HPP
