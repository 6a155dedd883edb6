// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_HOST_SHAPES_HPP
#define KOKKOSNN_IMPL_HOST_SHAPES_HPP

#include <KokkosNN/plan.hpp>

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

/// Number of a row's elements that a host's thread processes at a time: 16 KiB of accumulators, so that they, the input
/// and the output share a first-level cache.
constexpr int host_piece(int accumulator_bytes) { return 16384 / accumulator_bytes; }

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

/// Shape of inner_lanes on a host: columns that a thread takes at a time; bytes of accumulators side by side, at most
/// and at least; the same two where memory is waited for and there is enough work for all threads.
inline constexpr int host_inner_step         = 8;
inline constexpr int host_inner_bytes        = 2048;
inline constexpr int host_inner_least_bytes  = 64;
inline constexpr int host_inner_memory_bytes = 1024;
inline constexpr int host_inner_good_bytes   = 256;

/// Number of vectors kept of each vector of a block, for those columns: exponentials and their references, or logits. A
/// gradient keeps none and reads twice.
///   LayoutLeft 16384 x 1024 softmax_backward, two cores, GB/s | 21 | both tensors kept 13, dy alone 20
constexpr int host_inner_kept(RowOperator op) {
  if (op == RowOperator::softmax) return host_inner_step + 1;
  return op == RowOperator::log_softmax ? host_inner_step : 0;
}
constexpr std::int64_t host_inner_kept_bytes(RowOperator op, std::int64_t cols, int width_bytes) {
  return (cols + host_inner_step - 1) / host_inner_step * host_inner_kept(op) * width_bytes;
}

/// Bytes of a last-level cache for one thread.
inline constexpr std::int64_t host_inner_share_bytes = std::int64_t(9) << 18;
/// True if all columns of a block are kept: they must fit in `host_inner_share_bytes`. It depends on the columns alone,
/// as the last bits of results depend on it.
constexpr bool host_inner_keeps(RowOperator op, std::int64_t cols) {
  return host_inner_kept(op) > 0 && host_inner_kept_bytes(op, cols, host_inner_good_bytes) <= host_inner_share_bytes;
}
/// Most bytes that are kept, unless blocks are as narrow as they get. If all that a call moves stays in the caches it
/// is a third of a second-level cache of 1 MB, as results pass through that, too.
///   LayoutLeft f32 softmax, two cores, GB/s
///   1024 x 1024, in caches    | 295 kB kept 36.1           | 590 kB 32.7
///   256 x 4096, in caches     | 295 kB kept 32.3           | 1180 kB 29.7
///   4096 x 4096, from memory  | 2.4 MB kept 19.2           | 1.2 MB 17.0
///   65536 x 256, from memory  | 1024 bytes side by side 25.4 | 2048 bytes 23.1
constexpr std::int64_t host_inner_most_kept_bytes(bool in_caches) {
  return in_caches ? std::int64_t(320) << 10 : host_inner_share_bytes;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_HOST_SHAPES_HPP
