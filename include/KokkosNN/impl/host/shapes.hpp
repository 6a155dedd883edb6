// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_SHAPES_HPP
#define KOKKOSNN_IMPL_HOST_SHAPES_HPP

#include <KokkosNN/impl/tuned_shapes.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <cstddef>
#include <cstdint>

// Sizes of a host's kernels: pieces of a row, blocks of rows side by side.

/// Compilers that have vector extensions on a host. Those of device code get vectors of one lane, which are numbers.
#if defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define KOKKOSNN_IMPL_HAS_VECTORS
#endif

namespace KokkosNN::Impl {

/// Loops of vectors are compiled for hosts, in kernels of their own.
#if defined(KOKKOSNN_IMPL_HAS_VECTORS)
inline constexpr bool has_host_vectors = true;
#else
inline constexpr bool has_host_vectors = false;
#endif

/// Number of a row's elements that a host's thread processes at a time.
constexpr int host_piece(int accumulator_bytes) { return host_piece_bytes / accumulator_bytes; }

/// Number of pieces that share a state: one, unless a row has very many.
constexpr std::int64_t host_pieces_a_state(std::int64_t pieces) { return (pieces + 1023) / 1024; }

/// Bytes of team scratch for a row's pieces: their states, and behind them, from a cache line on, the row if it is
/// kept. A vector may be read half of which lies behind that.
inline constexpr std::size_t host_line = 64;
constexpr std::size_t host_scratch_bytes(std::int64_t pieces, std::size_t state_bytes, std::size_t kept_bytes) {
  if (pieces < 2) return 0;
  const std::int64_t each = host_pieces_a_state(pieces);
  return static_cast<std::size_t>((pieces + each - 1) / each) * state_bytes + host_line + kept_bytes + host_line;
}
inline char* host_aligned(char* pointer) {
  return pointer + (host_line - reinterpret_cast<std::uintptr_t>(pointer) % host_line) % host_line;
}

/// Number of vectors that inner_lanes keeps of each vector of a block, for host_inner_step columns: exponentials and
/// their references, or logits. A gradient keeps none and reads twice.
///   LayoutLeft 16384 x 1024 softmax_backward, two cores, GB/s | 21 | both tensors kept 13, dy alone 20
constexpr int host_inner_kept(RowOperator op) {
  if (op == RowOperator::softmax) return host_inner_step + 1;
  return op == RowOperator::log_softmax ? host_inner_step : 0;
}
constexpr std::int64_t host_inner_kept_bytes(RowOperator op, std::int64_t cols, int width_bytes) {
  return (cols + host_inner_step - 1) / host_inner_step * host_inner_kept(op) * width_bytes;
}

/// True if all columns of a block are kept: they must fit in `host_inner_share_bytes`. It depends on the columns alone,
/// as the last bits of results depend on it.
constexpr bool host_inner_keeps(RowOperator op, std::int64_t cols) {
  return host_inner_kept(op) > 0 && host_inner_kept_bytes(op, cols, host_inner_good_bytes) <= host_inner_share_bytes;
}
}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_SHAPES_HPP
