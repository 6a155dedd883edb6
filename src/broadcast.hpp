// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_SRC_BROADCAST_HPP
#define KOKKOSNN_SRC_BROADCAST_HPP

#include "argument_error.hpp"

#include <cstdint>
#include <optional>

namespace KokkosNN::Impl {

/// t with the extents of `want`: its axes line up with the last ones, extent 1 and axes that it lacks get stride 0.
/// Nothing if t does not broadcast.
inline std::optional<Tensor> broadcast_to(const Tensor& want, const Tensor& t) {
  Tensor result     = t;
  result.rank       = want.rank;
  const int missing = want.rank - t.rank;
  if (missing < 0) return {};
  for (int k = 0; k < want.rank; ++k) {
    const std::int64_t extent = k < missing ? 1 : t.extent[k - missing];
    if (extent != want.extent[k] && extent != 1) return {};
    result.extent[k] = want.extent[k];
    result.stride[k] = extent == 1 ? 0 : t.stride[k - missing];
  }
  return result;
}

/// Tensor of broadcast_to; throws std::invalid_argument for a t that does not broadcast.
inline Tensor broadcast(const char* function, const char* name, const Tensor& t, const char* want_name,
                        const Tensor& want) {
  const auto result = broadcast_to(want, t);
  if (!result) {
    (ArgumentError(function) << name << " of extents " << shape_of(t) << " does not broadcast to " << want_name << ", "
                             << shape_of(want))
        .raise();
  }
  return *result;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_SRC_BROADCAST_HPP
