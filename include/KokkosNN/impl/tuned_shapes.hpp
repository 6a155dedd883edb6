// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_TUNED_SHAPES_HPP
#define KOKKOSNN_IMPL_TUNED_SHAPES_HPP

#include <KokkosNN/vocabulary.hpp>

#include <algorithm>
#include <array>
#include <cstdint>

// The numbers that kernels are compiled with, each with its measurement: the part of the policy (src/plan/policy) that
// must be known to the compiler. Another number is another kernel.

namespace KokkosNN::Impl {

// --- launch bounds ---

/// Threads that a team may have: of any kernel, of one whose threads loop over a row or over rows, and of one whose
/// threads hold many values. A kernel is compiled for the number that it is launched with, which on a GPU of 65536
/// registers gives a thread 64 of them, 80, or 128: what is spilled costs more than threads that are missing.
inline constexpr int max_threads_per_team     = 1024;
inline constexpr int max_threads_when_looping = 768;
inline constexpr int max_threads_when_wide    = 512;

/// Threads of a team whose kernel does with 56 registers: two teams are resident, or eleven of 96 threads.
/// 4096 x 1408 f32: 0.95 of copy, ten of them in 64 registers 0.94; 2048 columns by teams of 128: 0.96 and 0.95; what
/// more packs would spill costs more.
inline constexpr int max_threads_when_light = 576;

/// Columns from which on rows that no team holds are worth an exchange between teams. Shorter ones, of which a team of
/// some kernels holds less, are read twice.
inline constexpr int least_split_columns = 16384;

/// Teams of a cluster at most, threads of one at most, and teams that a multiprocessor is to have: 64 registers a
/// thread, and 64 KB of a row in flight for each team.
///   H200, a prototype, GB/s of 16384 x 131072 bf16 | 4 teams 4220 | 8 teams 4209 | 16 teams 4034
inline constexpr int most_teams_of_cluster  = 16;
inline constexpr int cluster_team_size      = 512;
inline constexpr int cluster_teams_resident = 2;

// --- rows in registers, on CUDA, of aligned floats ---

/// Packs a thread of kernels besides those of all rows: for widths at which the others leave threads idle, or that one
/// warp can hold. log_softmax 4096 x 1280: by 10 packs of one warp 0.89 of copy, by 6 of two 0.93; it keeps its row
/// while it sums.
struct PacksOfOperator {
  RowOperator op;
  int packs;

  bool operator==(const PacksOfOperator&) const = default;
};
inline constexpr std::array exact_packs{PacksOfOperator{RowOperator::softmax, 5},
                                        PacksOfOperator{RowOperator::softmax, 10},
                                        PacksOfOperator{RowOperator::log_softmax, 5}};

/// Packs a thread of the kernels of 56 registers.
inline constexpr std::array light_packs{4, 5};

// --- hosts ---

/// Bytes of accumulators of a row that a thread processes at a time, so that they, the input and the output share a
/// first-level cache.
inline constexpr int host_piece_bytes = 16384;

/// Ragged rows, neighbours of which a host's thread processes at a time: most bytes of accumulators, and most rows. The
/// run's elements, exponentials and results share a first-level cache. A gradient's row of more bytes is processed by
/// itself, as PairLoops needs no copies; a row's exponentials and their sum are in one loop where rows have more
/// vectors in the mean.
///   softmax_backward, one core of an EPYC, in a cache, ns an element, in runs | alone
///   f32 x 100 | 0.68 | 1.20, x 200 | 0.59 | 0.58, x 512 | 0.59 | 0.37; bf16 x 100 | 0.59 | 1.24, x 512 | 0.53 | 0.40
///   softmax, two loops | one: f32 x 100 0.77 | 0.79; bf16 x 100 0.66 | 0.60, lengths 0 to 64 0.94 | 1.12
inline constexpr int host_run_bytes          = 4096;
inline constexpr int host_run_rows           = 256;
inline constexpr int host_run_gradient_bytes = 1024;
inline constexpr int host_run_vectors        = 8;

/// Most elements of a host's chunk of ragged rows; a row may go by as many beyond its chunk's end.
inline constexpr int most_host_chunk = 8192;

/// Shape of inner_lanes: columns that a thread takes at a time; most bytes of accumulators side by side, and least
/// bytes where memory is waited for and there is enough work for all threads.
inline constexpr int host_inner_step       = 8;
inline constexpr int host_inner_bytes      = 2048;
inline constexpr int host_inner_good_bytes = 256;

/// Bytes of a last-level cache for one thread.
inline constexpr std::int64_t host_inner_share_bytes = std::int64_t(9) << 18;

/// Most pieces of a row that are made equally long: a short last piece would stall on memory.
///   softmax f32 x 12672, two cores, GB/s: 64 MiB a tensor | 32 | unequal 28; 4 MiB a tensor | 57.5 | unequal 53.7
inline constexpr int host_equal_pieces = 64;

/// Loops over rows of y and dy.
struct HostPairShapes {
  /// Least number of columns for HostProducts, which add products faster and are joined slower.
  static constexpr int least_by_products = 128;
  /// Distance of prefetching. Rows written by non-temporal stores wait for memory, which a Xeon does not prefetch early
  /// enough by itself: sums of products prefetch what they read next, other sums prefetch y, of which they read
  /// nothing.
  ///   64 MiB a tensor, two cores, GB/s | prefetched | without
  ///   softmax_backward x 64            | 24.6       | 19.1
  ///   softmax_backward x 784           | 25.4       | 21.9
  ///   softmax_backward x 1024          | 27.5       | 22.1
  ///   log_softmax_backward x 781       | 31         | 26.5
  ///   log_softmax_backward x 1024      | 32.4       | 28
  /// An EPYC is as fast either way; 2 KiB ahead it is slower by a fifth.
  static constexpr int ahead_bytes = 1024;
  /// Most columns for which y is prefetched.
  ///   log_softmax_backward x 2048, EPYC, GB/s: f32 | without 44 | with 38; bf16 | without 36 | with 24
  ///   log_softmax_backward x 4096, Xeon, GB/s: f32 | without 26 | with 28
  static constexpr int most_asked = 1024;

  /// Size of a block of short rows, which are first summed and then written, so that no row waits for the end of its
  /// sum. Rows that are read twice fill a quarter of the first-level cache. Longer rows are summed one ahead.
  ///   softmax_backward f32, 4 MiB a tensor, two cores, GB/s | in blocks | a row summed while the last one is written
  ///   x 32 | 89 | 75
  ///   x 64 | 103 | 87
  ///   x 256 | 119 | 113; by 16 KiB 83 instead of 90
  ///   x 400 | 123 | 117; by 4 KiB 93 instead of 104
  static constexpr int block_bytes   = 8192;
  static constexpr int most_in_block = 32;
  /// From this many columns on, a plain sum of dy is computed for the next row while the current row is written.
  ///   log_softmax_backward, GB/s: x 512 | 82 | in blocks 79; x 256 | in blocks 79 | 71
  static constexpr int least_at_once = 512;
};

// --- losses ---

/// Most parts of the sum of all rows' losses.
///   10^6 rows of 64 f32, us | 256 parts 176 | 1024 parts 198
inline constexpr int loss_parts = 256;

/// Terms that a team adds for each of its threads on a GPU, and in all on a host; and most terms a thread for one team
/// to add all of them, as it waits for no other.
inline constexpr int loss_terms_of_thread       = 4;
inline constexpr int loss_terms_of_thread_alone = 32;
inline constexpr int loss_terms_on_host         = 4096;

// --- ragged rows on GPUs ---

/// Number of packs of 4 elements of each tensor that a GPU's thread holds: of one tensor 16 floats, for which 48
/// registers suffice.
constexpr int segment_packs(int tensors, int accumulator_bytes) {
  return std::max(1, 64 / (16 * tensors * (accumulator_bytes / 4)));
}

/// Number of lanes that share a short row: they hold 64 elements. With more lanes, fewer rows would share a warp's work
/// once a row; with fewer, neighbouring lanes would load elements that lie far apart. Rows of a low mean length take
/// half as many if they are neighbours in memory.
///   10^6 rows of 10 f32, share of copy | two lanes 0.51 | four lanes 0.38 (when that was chosen)
constexpr int segment_row_lanes(int packs) { return 16 / packs; }
constexpr int segment_low_lanes(int packs) { return segment_row_lanes(packs) / 2; }

/// Rows of up to this number of tiles of a warp are processed by one warp, which reads those that it does not hold
/// twice.
inline constexpr int warp_tiles = 4;

/// Threads of a team of FlatRows, and teams that a multiprocessor is to have: with 72 registers a thread and 7 KB of
/// shared memory a warp. A warp waits for its copies.
///   instructions of 2^20 rows of 32 f32, millions | 55 | by lanes 82
inline constexpr int flat_team_size      = 128;
inline constexpr int flat_teams_resident = 7;

/// Threads of a GPU's team, and teams that a multiprocessor is to have, which their registers allow: 48 a thread of the
/// kernel for short rows, 64 of those for long ones, and 128 for doubles, whose exponential has many constants.
///   2^20 rows of 32 f32 in the mean, share of copy | 48 registers 0.59 | 64 registers and four teams 0.57
inline constexpr int segment_team_size = 256;
constexpr int segment_teams_resident(int accumulator_bytes, bool has_short_rows) {
  return accumulator_bytes == 8 ? 2 : has_short_rows ? 5 : 4;
}

/// Most parts of a row that takes a GPU many teams: each team that writes one joins the states of all.
inline constexpr int most_parts_of_row = 1024;

/// Number of heads side by side that has kernels of its own: a warp that processes a row does so for all heads at once,
/// as long as its lanes hold that.
///
///   H200, f32, us, 2^20 rows of all heads together | rank 1 | LayoutRight | LayoutLeft
///   softmax, 32 in the mean                        | 92     | 105         | 95
///   softmax, 10 in the mean                        | 51     | 50          | 56
///   softmax, 32 each                               | 90     | 83          | 93
///   softmax, 300000 of 100 in the mean             | 85     | 96          | 89
///   softmax, 10^6 of 10 and a long one             | 46     | 53          | 50
///   softmax_backward, 32 in the mean               | 126    | 119         | 134
///   softmax_backward, 10 in the mean               | 59     | 60          | 65
///   softmax_backward, 32 each                      | 115    | 113         | 121
///   softmax_backward, 300000 of 100 in the mean    | 111    | 167         | 111
///   softmax_backward, 10^6 of 10 and a long one    | 60     | 70          | 65
///
/// (2026-11-26.) Rank 1 processes rows of 32 and 100 by FlatRows, which heads side by side have no kernel for. Of
/// gradients of 100 elements a warp holds two heads at a time, and so reads each line twice; a long row of several
/// heads is read once a head.
inline constexpr int heads_side_by_side = 4;

// --- rotary embeddings ---

/// Threads of a GPU's team at most, teams that a multiprocessor is to have, and heads whose packs a thread loads before
/// it rotates the first. Not measured; three teams leave a thread 80 registers, of which 16-bit packs spill some.
inline constexpr int rope_team_size      = 256;
inline constexpr int rope_teams_resident = 2;
inline constexpr int rope_heads_at_once  = 2;

/// Pairs whose angles a host's thread has in buffers at a time, and positions that these are of at most, in a second-
/// level cache: neighbouring positions of a head are processed together where heads are farther apart.
inline constexpr int rope_host_pairs     = 2048;
inline constexpr int rope_host_positions = 32;

/// Kernels of rows that serve all layouts and hosts, too: bytes that a GPU's thread loads at once, and elements that a
/// host's loops take at once. With 16 bytes on HIP kernels spilled, with 8 those of 16-bit elements left a SIMD two
/// wavefronts. Not measured.
inline constexpr int row_pack_bytes = 16;
inline constexpr int row_hip_pack   = 2;  ///< elements; of 8 bytes one
inline constexpr int row_host_pack  = 16;

constexpr int row_pack(Backend backend, int element_bytes) {
  if (backend == Backend::host) return row_host_pack;
  if (backend == Backend::hip) return element_bytes == 8 ? 1 : row_hip_pack;
  return row_pack_bytes / element_bytes;
}

/// Packs that a thread keeps of rows whose results are stored in 8 bits, and packs of pairs that it keeps of rows that
/// are normalised and rotated. Of 16-bit rows of 1024 elements two packs instead of four took 1.2 to 1.5 times as long
/// (norms, H200).
constexpr int quantized_packs(Backend backend) {
  return backend == Backend::host ? 8 : backend == Backend::hip ? 2 : 4;
}
inline constexpr int rms_norm_rope_units      = 1;
inline constexpr int rms_norm_rope_host_units = 8;

/// Packs of a longer row that a thread reads again at a time. H200, 1024 rows of 65536, microseconds for 1; 2; 4:
///   rms_norm | bf16 193; 185; 177    | f32 265; 257; 273
///   softmax  | bf16 119; 118; 140, but shorter rows of bf16 86; 100; 184, as registers are spilled
constexpr int quantized_packs_again(Backend backend, RowForm form, bool is_softmax, int element_bytes) {
  if (backend == Backend::host) return quantized_packs(backend);
  return form != RowForm::aligned || (is_softmax && element_bytes == 2) ? 1 : 2;
}

/// Threads that a team may have whose rows' results are stored in 8 bits: a thread's registers are enough then.
inline constexpr int quantized_threads = max_threads_when_wide;

/// Teams of so many threads that a multiprocessor is to hold, 0 for any number. H200, microseconds for 0; 2:
///   softmax bf16, 65536 x 1024 | 105; 86   | f32, 8192 x 8192 | 203; 127
///   rms_norm bf16, 65536 x 1024 | 101; 141  | f32, 8192 x 8192 | 197; 122
constexpr int quantized_teams(RowForm form, bool is_softmax, int element_bytes) {
  return form == RowForm::aligned && (element_bytes == 4 || (is_softmax && element_bytes == 2)) ? 2 : 0;
}

/// Teams that a multiprocessor is to hold of rows that are normalised and rotated. H200, microseconds of
/// 4 x 4096 x 32 x 128 for 2; 3; 4: bf16 144; 153; 186, f32 218; 180; 191.
constexpr int rms_norm_rope_teams(RowForm form, int element_bytes) {
  return form == RowForm::aligned && element_bytes == 4 ? 3 : rope_teams_resident;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_TUNED_SHAPES_HPP
