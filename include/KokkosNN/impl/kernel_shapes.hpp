// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_KERNEL_SHAPES_HPP
#define KOKKOSNN_IMPL_KERNEL_SHAPES_HPP

#include <KokkosNN/impl/tuned_shapes.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <algorithm>
#include <cstdint>

// The shapes that kernels are compiled in: packs a thread and threads a team, for planner and kernels alike.

namespace KokkosNN::Impl {

/// The second number of a Kokkos::LaunchBounds. On CUDA it counts blocks a multiprocessor. On HIP it counts wavefronts
/// a SIMD, and a CU has 4 SIMDs of 512 registers a lane: at 4 wavefronts a thread has 128 registers, whatever the size
/// of its team, and 1024 threads are resident. On CUDA two teams of a kernel that does with 56 registers are resident,
/// or more smaller ones.
constexpr int least_residency(Backend backend, int max_threads = max_threads_per_team) {
  if (backend == Backend::hip) return 4;
  return backend == Backend::cuda && max_threads == max_threads_when_light ? 2 : 1;
}
inline constexpr int resident_threads_hip = 4 * 4 * 64;

/// Elements that a thread loads at once: 16 bytes of the wider type on a GPU; on a host a short loop that the compiler
/// vectorises, 128 bytes of accumulators.
constexpr int pack_size(Backend backend, int x_bytes, int y_bytes, int accumulator_bytes) {
  if (backend == Backend::host) return 128 / accumulator_bytes;
  return 16 / std::max(std::max(x_bytes, y_bytes), 2);
}

/// Packs that a thread can hold. On CUDA 32 words leave room in 64 registers, be they floats, 16 doubles, or 64
/// elements of 16 bits as they were loaded. On HIP 16 words: with 32 of them LLVM, whose addresses are of 64 bits a
/// lane and which computes all packs side by side, spills in 128 registers wherever there is a mask, a label or a
/// stride besides; and 64 bytes of each of 1024 threads are 64 KB in flight a CU, where 5.3 TB/s over the 304 CUs of an
/// MI300X at some 0.8 us take 14 KB. A host's stack is not the limit, the first-level cache is.
constexpr int max_packs_per_thread(Backend backend) { return backend == Backend::hip ? 4 : 8; }

/// Rows that have kernels for edges: of operators without masks or operands of columns, on HIP not of doubles. (On CUDA
/// cross_entropy_with_gradient of doubles 16768 x 1000 takes 94 us by them, by strided kernels 110.)
constexpr bool has_edge_kernels(Backend backend, RowOperator op, int x_bytes) {
  return !is_masked(op) && !is_norm(op) && (x_bytes < 8 || backend == Backend::cuda);
}

/// Masked operators that are logarithms. They are called less often than masked softmax and have a third of its
/// kernels: of rows in registers two numbers of packs a thread, none of team scratch on a GPU, and one of rows that
/// several teams share, which read them twice.
constexpr bool has_few_masked_kernels(RowOperator op) {
  return op == RowOperator::masked_log_softmax || op == RowOperator::masked_logsumexp ||
         op == RowOperator::masked_log_softmax_backward;
}

/// Long rows that two kernels may reduce and write, one after the other. Few rows that lie between pack boundaries or
/// are masked are long enough for that, a million elements on an H200: those are split by one kernel.
constexpr bool splits_twice(RowOperator op, RowForm form) {
  return form != RowForm::misaligned && !is_gradient(op) && !is_cross_entropy(op) && !is_norm(op) && !is_masked(op);
}

/// Operators that have a kernel of every strategy for strided rows, be it chosen or not: softmax and log_softmax, their
/// gradients, and logsumexp. Users' functors are rows of these.
constexpr bool has_plain_rows(RowOperator op) {
  const OperatorFamily family = traits_of(op).family;
  return family == OperatorFamily::forward || family == OperatorFamily::gradient;
}

/// Rows that have a kernel of team_scratch. On a GPU registers hold all rows that scratch would, so its kernel serves
/// who asks for it, and takes rows of any form as strided ones.
constexpr bool has_scratch_kernel(Backend backend, RowOperator op, RowForm form) {
  return !is_elementwise(op) && (backend == Backend::host || (form == RowForm::strided && has_plain_rows(op)));
}

/// Operators whose rows side by side are read twice, whatever a team could hold.
constexpr bool rereads_inner_rows(RowOperator op) { return is_gradient(op) || is_norm(op); }

/// A thread has packs of two tensors at a time: a gradient, which holds them as they were loaded, and a sum of two.
constexpr bool loads_two(RowOperator op) { return is_gradient(op) || row_tensors(op) > 1; }

/// Who loads two tensors holds half of the packs of each. On HIP a norm holds half as many too, because its operands of
/// columns take registers: layer_norm of 16-bit types would spill 9 at four packs.
constexpr int most_packs(Backend backend, RowOperator op) {
  const bool holds_half = loads_two(op) || (backend == Backend::hip && is_norm(op));
  return max_packs_per_thread(backend) / (holds_half ? 2 : 1);
}

/// Instead of all the packs that a thread can hold, where those would leave much of a team idle.
constexpr int fewer_packs(Backend backend, RowOperator op) { return most_packs(backend, op) * 3 / 4; }

/// Packs that a thread has in the accumulator type at a time.
constexpr int packs_at_a_time(Backend backend, int pack) {
  const int most = max_packs_per_thread(backend);
  return backend == Backend::host ? most : std::min(most, 4 * most / pack);
}

/// Packs of a thread that loops over a row. A mask's own reads take the room of half of them; on HIP of
/// three quarters, and what a label needs that of half, while the addresses of a row of any form leave room for one.
constexpr int packs_when_looping(Backend backend, int pack, RowOperator op, RowForm form) {
  const int packs = packs_at_a_time(backend, pack);
  if (backend == Backend::hip && form == RowForm::strided) return 1;
  if (loads_two(op)) return backend == Backend::hip ? std::max(1, 8 / pack) : most_packs(backend, op);
  if (backend == Backend::hip && is_masked(op)) return std::max(1, packs / 4);
  if (backend == Backend::hip && is_cross_entropy(op)) return std::max(1, packs / 2);
  return is_masked(op) && backend != Backend::host ? std::max(1, packs / 2) : packs;
}

/// Packs of a thread whose row is in team scratch.
constexpr int packs_from_scratch(Backend backend, int pack, RowOperator op, RowForm form) {
  if (backend == Backend::hip) return packs_when_looping(backend, pack, op, form);
  return (packs_at_a_time(backend, pack) + 1) / 2;
}

/// True if a thread keeps k packs as they were loaded, being too many for the accumulator type.
constexpr bool keeps_packed(Backend backend, int x_bytes, int pack, int k) {
  return x_bytes == 2 && k > packs_at_a_time(backend, pack);
}

/// True if team scratch keeps packs as they were loaded, for an operator that makes no other logits of what it loads.
constexpr bool keeps_packed_in_scratch(Backend backend, int x_bytes, RowOperator op) {
  return backend != Backend::host && x_bytes == 2 && is_forward(op);
}

/// True if a kernel is compiled for k packs a thread; of cross entropies and of masked rows a GPU has few. (Causal rows
/// of 1536 floats take 65 us by six packs, by eight 73; with one pack a thread instead of two no mask gains.)
constexpr bool is_packs_per_thread(Backend backend, int k, RowOperator op = RowOperator::softmax) {
  const bool is_gpu    = backend != Backend::host;
  const bool is_power  = k > 0 && (k & (k - 1)) == 0;
  const bool has_few   = is_cross_entropy(op) || (op == RowOperator::masked_softmax && backend == Backend::hip);
  const bool lacks_one = has_few || op == RowOperator::masked_softmax ||
                         (op == RowOperator::masked_softmax_backward && backend == Backend::cuda);
  if (is_gpu && ((lacks_one && k == 1) || (has_few && !is_power))) return false;
  if (has_few_masked_kernels(op) && is_gpu) return k == 2 || k == most_packs(backend, op);
  const bool has_fewer = is_gpu && !is_elementwise(op);  // in teams that have a row each
  return k <= most_packs(backend, op) && (is_power || (has_fewer && k == fewer_packs(backend, op)));
}

/// Aligned rows of floats on CUDA: their addresses take no registers, and there are kernels for them alone.
constexpr bool leaves_registers(Backend backend, RowForm form, int x_bytes, int y_bytes) {
  return backend == Backend::cuda && form == RowForm::aligned && x_bytes == 4 && y_bytes == 4;
}

/// True if CUDA has a kernel of k packs besides, for rows at which the others leave threads idle, or that one warp can
/// hold.
constexpr bool is_exact_packs(Backend backend, int k, RowOperator op, RowForm form, int x_bytes, int y_bytes) {
  if (!leaves_registers(backend, form, x_bytes, y_bytes)) return false;
  return std::ranges::find(exact_packs, PacksOfOperator{op, k}) != exact_packs.end();
}

/// True if teams of up to `max_threads_when_light` threads have a kernel of k packs in 56 registers.
constexpr bool is_light(Backend backend, int k, RowOperator op, RowForm form, int x_bytes, int y_bytes) {
  return leaves_registers(backend, form, x_bytes, y_bytes) && is_forward(op) && !is_reduction(op) &&
         std::ranges::find(light_packs, k) != light_packs.end();
}

/// True if a team of a cluster gets its part by copies to shared memory: by packs of 16 bytes.
constexpr bool is_staged(int bytes, int pack) { return bytes * pack == 16; }

/// Rows that a cluster of teams can have: those of which some are faster so, and aligned ones of softmax_backward, of
/// two tensors, to be measured on other devices. Rows that are only read, and masked ones, gain nothing by it, nor do
/// rows with edges. Those of cross_entropy_with_gradient gain with edges, too, in 16 bits, and in float not at all.
constexpr bool has_cluster_kernel(RowOperator op, RowForm form, int x_bytes) {
  if (op == RowOperator::cross_entropy_with_gradient) return form != RowForm::strided && x_bytes == 2;
  return form == RowForm::aligned && (op == RowOperator::softmax || op == RowOperator::log_softmax ||
                                      op == RowOperator::softmax_backward || op == RowOperator::rms_norm);
}

/// Bytes of a kernel's functor that a GPU has in one go with what Kokkos adds: 256 bytes of arguments. (Native launches
/// add nothing, and their functors may have a number of the launch more.) A second 256
/// take a call 0.1 us on an H200, of the 2 that a small one takes. Kernels for floats at one stride keep to it.
inline constexpr int most_argument_bytes = 112;

/// True if few rows have a kernel of k packs for them alone.
constexpr bool has_few_rows_kernel(Backend backend, int k, RowOperator op, RowForm form, int x_bytes, int y_bytes) {
  const bool is_power   = (k & (k - 1)) == 0;
  const int moved_bytes = is_reduction(op) ? x_bytes : y_bytes;  // there a row is not written
  return is_forward(op) && is_power && leaves_registers(backend, form, x_bytes, moved_bytes);
}

/// True if rows that a warp has alone or several of have a kernel of k packs for them alone: of packs that are held in
/// the accumulator type, and not of numbers that are for larger teams.
constexpr bool has_lanes_kernel(Backend backend, int k, RowOperator op, RowForm form, int x_bytes, int pack) {
  return backend == Backend::cuda && is_forward(op) && form != RowForm::strided && k != 5 &&
         k != fewer_packs(backend, op) && !keeps_packed(backend, x_bytes, pack, k);
}

/// Elements side by side that a thread of inner_lanes loads at once. On a GPU 4 bytes where it keeps its columns
/// (`keeps`), 8 where it goes through them twice: there it has fewer packs in flight. On HIP 4 always: a running sum
/// for each of several elements is spilled, and 32 lanes of 4 bytes are one line of its cache.
constexpr int inner_pack_size(Backend backend, int x_bytes, int y_bytes, int accumulator_bytes, bool keeps) {
  if (backend == Backend::host) return pack_size(backend, x_bytes, y_bytes, accumulator_bytes);
  return std::max(1, (keeps || backend == Backend::hip ? 4 : 8) / std::max(x_bytes, y_bytes));
}

/// Bytes of columns that a thread of inner_lanes holds in registers where it has all of them, on a GPU.
constexpr int inner_held_bytes(Backend backend) { return 16 * max_packs_per_thread(backend); }

/// True if a thread of inner_lanes can have its columns as they were loaded, two elements a word.
constexpr bool can_keep_packed_inner(int x_bytes, int pack) { return x_bytes == 2 && pack % 2 == 0; }

/// True if it has them so: so many packs that they would not fit otherwise, or packs that it loads again. (LayoutLeft
/// bf16 1048576 x 64, which fit: 79.9 us, as they were loaded 87.7; 65536 x 2048, which are loaded again: 265 and 209.)
constexpr bool keeps_packed_inner(Backend backend, int x_bytes, int accumulator_bytes, int pack, int packs,
                                  bool keeps) {
  const bool fits = pack * packs * accumulator_bytes <= inner_held_bytes(backend);
  return can_keep_packed_inner(x_bytes, pack) && !(keeps && fits);
}

/// Packs that a thread of inner_lanes holds: all of its columns, or some at a time.
constexpr int inner_packs(Backend backend, int pack, int x_bytes, int accumulator_bytes, bool keeps) {
  if (backend == Backend::host) return 8;
  const int most    = max_packs_per_thread(backend);
  const bool packed = can_keep_packed_inner(x_bytes, pack);
  if (keeps) return inner_held_bytes(backend) / (pack * (packed ? x_bytes : accumulator_bytes));
  return std::min(8, (packed ? 4 : 2) * most / pack);
}

/// Or half of them where that suffices, if they are so many that few threads would be at work (LayoutLeft 65536 x 64
/// bf16: 0.76 of copy, by 32 packs 0.72).
constexpr bool has_fewer_inner_packs(Backend backend, int x_bytes, int pack) {
  return backend == Backend::cuda && can_keep_packed_inner(x_bytes, pack);
}

/// Packs of a gradient, of each tensor; it needs a running sum for each element of a pack besides. Packs are those
/// of `pack_size`, on HIP of 4 bytes.
constexpr int gradient_inner_pack_size(Backend backend, int pack) {
  return backend == Backend::hip ? std::max(1, pack / 4) : pack;
}
constexpr int gradient_inner_packs(Backend backend, int pack) {
  if (backend == Backend::hip) return 2;
  return backend == Backend::host ? 8 : std::max(2, std::min(4, 16 / pack));
}

/// True if k packs a thread are too many for 64 registers.
constexpr bool is_wide(int pack, int packs_per_thread) { return pack * packs_per_thread > (pack == 2 ? 8 : 16); }

/// Threads that a team of that kernel may have.
constexpr int most_threads_in_lanes(int accumulator_bytes, int pack, int k) {
  return accumulator_bytes == 8 && is_wide(pack, k) ? max_threads_when_looping : max_threads_per_team;
}

/// Threads that a team may have whose threads loop over a row, or over rows. What a mask needs besides would be spilled
/// in 80 registers.
constexpr int most_threads_when_looping(RowOperator op) {
  return is_masked(op) ? max_threads_when_wide : max_threads_when_looping;
}

/// True if a backend has kernels for rows of that form at one distance, besides those that can follow several axes: f32
/// 4096 x 2049 takes 21.3 us by them, by the others 22.2, and split_row by two rows a thread, 1024 x 50257, 118 us and
/// 126; a cross entropy bf16 4096 x 50257 295 us and 320, f32 467 and 499.
constexpr bool has_kernels_at_one_stride(Backend backend, RowOperator op, int x_bytes, RowForm form) {
  return backend == Backend::cuda && form == RowForm::misaligned && (!is_cross_entropy(op) || x_bytes <= 4);
}

/// True if rows of a form that lie along several axes have few kernels: two numbers of packs a thread, and no loop over
/// a row. Most rows lie at one distance, and have kernels of their own. (Without these, as strided rows, H200: f32 64 x
/// 1024 x 1024 of a larger tensor 167 us for 131, bf16 240 for 72.)
constexpr bool has_few_kernels_along_axes(Backend backend, RowOperator op, int x_bytes, RowForm form) {
  return (is_forward(op) || is_cross_entropy(op)) && has_kernels_at_one_stride(backend, op, x_bytes, form);
}
constexpr bool is_packs_along_axes(Backend backend, int k, RowOperator op) {
  return k == 2 || k == most_packs(backend, op);
}
/// They count as strided beyond so many packs: longer rows are split or read twice (`few_rows_packs` and `online_packs`
/// of the policy begin there).
inline constexpr std::int64_t most_packs_along_axes = 2048;

/// True if a thread of split_row holds two rows, so that it has one to reduce while the status words of the other are
/// on their way (f32 1024 x 65536: 0.92 of copy, one at a time 0.86; 64 x 1048576: 0.83 and 0.65; softmax_backward 512
/// x 131072: 0.94 and 0.81; cross entropy f32 2048 x 128256: 0.88 and 0.80). Not with a mask, where a turn is long by
/// itself.
constexpr bool overlaps_rows(Backend backend, RowOperator op, RowForm form) {
  if (backend != Backend::cuda || is_masked(op) || is_elementwise(op)) return false;
  return form != RowForm::strided;
}

/// Threads that a team of split_row may have where it holds its part of a row.
constexpr int most_threads_when_holding(Backend backend, RowOperator op, RowForm form) {
  return overlaps_rows(backend, op, form) ? max_threads_when_wide : most_threads_when_looping(op);
}

/// Threads of a team of inner_lanes.
constexpr int most_threads_of_inner_lanes(Backend backend, RowOperator op) {
  return is_gradient(op) && backend != Backend::host ? max_threads_when_wide : max_threads_per_team;
}

/// A thread's state of a row in team scratch: a reference and a sum that may be wider than the accumulator.
inline constexpr int most_state_bytes = 24;
/// State of a norm at most, in team scratch: of a number of elements, a mean and a second moment up to two doubles
/// each.
inline constexpr int norm_state_bytes = 48;

/// Those that a team of a host's threads needs to join them: two rounds, so that one barrier a row is enough (a thread
/// can't write round i + 2 before all have read round i).
constexpr int exchanged_states(int threads) { return threads > 1 ? 2 * threads : 0; }

/// True if a warp can process rows as one range of memory, wherever rows begin and end. HIP's lanes process rows one by
/// one, as all GPUs' do if elements are not neighbours, not of one size, or doubles.
constexpr bool takes_rows_flat(Backend backend, int x_bytes, int y_bytes, int accumulator_bytes) {
  return backend == Backend::cuda && x_bytes == y_bytes && accumulator_bytes == 4;
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_KERNEL_SHAPES_HPP
