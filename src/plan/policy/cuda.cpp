// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda_evictions.hpp"
#include "cuda_gradients.hpp"
#include "cuda_labels.hpp"
#include "cuda_masks.hpp"
#include "cuda_rows.hpp"
#include "policy.hpp"

#include <KokkosNN/impl/tuned_shapes.hpp>

#include <cstdint>

// Measured on one NVIDIA H200, 2026-11-21 to 25, cold L2: share of a device copy of the same bytes in the same run, or
// microseconds.
//
// Shapes that fall short of the copy, and what ncu says of them:
// - short rows that begin between packs: floats of 7 columns 0.73, of 33 0.93, bf16 0.56 and 0.78, of 99 0.68. A thread
//   takes its row's elements from team scratch, in some 15 instructions each, floats 27. 16-bit rows of 121 to 255
//   columns, of 197 0.87: a row must have as many threads as its edges can have elements, so each has few packs.
// - 4096 rows of 1408 to 2560 columns: 0.94 to 0.97. Few waves of teams, in which a warp waits for memory an eighth of
//   its time: what the kernel takes is what lies between a row's load and its store, one instruction after the other.
// - doubles beyond 8192 columns: 0.72 to 0.85. One team of up to 1024 threads fills a multiprocessor, so nothing runs
//   while it waits, and 64 registers a thread are some too few.
// - split_row, 0.92 of aligned rows, where a team has another row to reduce while it waits, 0.87 of odd ones: a turn
//   lasts as long as its status words take, 5 of 7.5 us; warps wait for them a fifth of their time, for their loads
//   another. With more teams resident, in 64 or 72 registers, the few words that are spilled cost 0.02 to 0.1.
// - one row of 16777216: 0.58. 111 MB are read for 67: the cache does not keep them until the second read, nor if it is
//   told so of the last 24 or 32 MB alone, or to give up what was read again, or results. One kernel by all of the
//   device, of which registers and scratch hold 35 to 46 MB until teams have told each other, copies so in 46 to 49 us
//   (two kernels do all in 61), and with exponentials takes 51: 0.70.
// - LayoutLeft with 1024 columns: 0.79 (16-bit types 0.72). A team moves a slab, 64 bytes of each column, and memory is
//   slow at that: a kernel that only copies so has 0.82, by slabs of 128 bytes, which need a team of 1024 threads, 0.86
//   (32 bytes: 0.70; 8192 columns by slabs of 32 bytes, which is all that a multiprocessor can hold: 0.66). Asking for
//   later slabs ahead, or keeping them in shared memory, makes it worse: 0.77 to 0.20, the less teams are in step.
//   Teams that share columns, 128 bytes wide, and tell each other each row's (max, sum) as split_row's do, are better
//   with floats of 2048 and 4096 columns (0.70 to 0.72, 0.67) and with nothing else (1024: 0.71, 8192: 0.62; bf16 0.42
//   to 0.58): joining the states of so many rows is a third of their 1200 to 1400 instructions a turn.
// - One long row and LayoutLeft, by teams that take tickets: each reduces a tile of 32 KB and writes one 11 MB before
// it,
//   whose rows are complete, from the last-level cache; nobody waits for who has not begun. A bare kernel, f32: 4096 x
//   8192 93 us (here 110), bf16 57 (63), 65536 x 1024 182 (163), one row of 16777216 56 (61), 8 x 1048576 26.7 (27.7).
//   It reads each byte from memory once, but then the cache itself is busy, 82 % of its peak, with 1.4 times as many
//   sectors as threads ask for. By kernels in turn, each of which reduces some rows and writes those before, 115.

namespace KokkosNN::Impl {
namespace {

using namespace CudaTables;

constexpr auto is_log_softmax          = is_one_of<RowOperator::log_softmax>;
constexpr auto is_logsumexp            = is_one_of<RowOperator::logsumexp>;
constexpr auto is_any_logsumexp        = is_one_of<RowOperator::logsumexp, RowOperator::masked_logsumexp>;
constexpr auto is_masked_softmax       = is_one_of<RowOperator::masked_softmax>;
constexpr auto is_softmax_gradient     = is_one_of<RowOperator::softmax_backward>;
constexpr auto is_log_softmax_gradient = is_one_of<RowOperator::log_softmax_backward>;
constexpr auto is_logsumexp_gradient   = is_one_of<RowOperator::logsumexp_backward>;
constexpr auto is_masked_logarithm     = is_one_of<RowOperator::masked_log_softmax, RowOperator::masked_logsumexp>;
constexpr auto is_masked_gradient      = is_one_of<RowOperator::masked_softmax_backward>;
constexpr auto is_masked_log_gradient  = is_one_of<RowOperator::masked_log_softmax_backward>;
constexpr auto is_loss                 = is_one_of<RowOperator::cross_entropy>;
constexpr auto is_loss_gradient        = is_one_of<RowOperator::cross_entropy_backward>;
constexpr auto is_loss_with_gradient   = is_one_of<RowOperator::cross_entropy_with_gradient>;
constexpr auto is_either_softmax       = is_one_of<RowOperator::softmax, RowOperator::log_softmax>;
constexpr auto is_either_gradient      = is_one_of<RowOperator::softmax_backward, RowOperator::log_softmax_backward>;

constexpr Keyed<RegisterTable> register_tables[] = {
    {{.op = is_masked_log_gradient}, masked_logarithm_gradient},
    {{.op = is_gradient, .moves = Moves::elements}, gradient_by_rule},
    {{.op = is_either_gradient, .pack = 2}, gradient_v2},
    {{.op = is_softmax_gradient, .pack = 4}, softmax_gradient_v4},
    {{.op = is_log_softmax_gradient, .pack = 4}, log_softmax_gradient_v4},
    {{.op = is_either_gradient, .pack = 8}, gradient_v8},
    {{.op = is_logsumexp_gradient}, logsumexp_gradient},
    {{.op = is_masked_gradient, .pack = 4}, masked_gradient_v4},
    {{.op = is_masked_gradient, .pack = 8}, masked_gradient_v8},
    {{.op = is_gradient}, gradient_by_rule},
    {{.op = is_cross_entropy, .pack = 4, .moves = Moves::elements}, label_elements_v4},
    {{.op = is_cross_entropy, .pack = 8, .moves = Moves::elements}, label_elements_v8},
    {{.op = is_loss_gradient, .pack = 2, .moves = Moves::packs}, label_gradient_v2},
    {{.op = is_loss_gradient, .moves = Moves::packs}, label_gradient},
    {{.op = is_loss, .pack = 2, .moves = Moves::packs}, reduction_v2},
    {{.op = is_loss, .pack = 4, .moves = Moves::packs}, loss_v4},
    {{.op = is_loss, .pack = 8, .moves = Moves::packs}, loss_v8},
    {{.op = is_loss_with_gradient, .pack = 2, .moves = Moves::packs}, labelled_v2},
    {{.op = is_loss_with_gradient, .pack = 4, .moves = Moves::packs}, labelled_v4},
    {{.op = is_loss_with_gradient, .pack = 8, .moves = Moves::packs}, labelled_v8},
    {{.op = is_masked_softmax, .pack = 4}, masked_v4},
    {{.op = is_masked_softmax, .pack = 8, .moves = Moves::packs}, masked_v8},
    {{.op = is_masked_softmax, .pack = 8}, masked_elements_v8},
    {{.op = is_masked_logarithm}, masked_logarithm},
    {{.op = is_logsumexp, .pack = 2}, reduction_v2},
    {{.op = is_logsumexp, .pack = 4}, reduction_v4},
    {{.op = is_logsumexp, .pack = 8, .moves = Moves::packs}, reduction_v8},
    {{.op = is_log_softmax, .pack = 8, .moves = Moves::packs}, log_rows_v8},
    {{.pack = 2}, rows_v2},
    {{.pack = 4}, rows_v4},
    {{}, rows_v8},
};

constexpr Keyed<RegisterPolicy> registers[] = {
    {{},
     {
         .large_caches = 2,  // f32 302921 x 197, 2.6 caches: 0.98 of the time with 4 packs, 1.7 caches 1.02
         // 4096 x 1280 f32: 0.91 of copy, with 8 packs 0.86; 4096 x 2304: 0.94 and 0.93; where the gain in filling is
         // small a larger team is the slower one.
         .fewer_packs_percent   = 90,
         .few_rows_team_size    = 256,  // 1 x 4096 f32 in a graph: 2.9 us, of 128 threads 3.2, of 512 3.1
         .few_rows_largest_team = 512,  // 8 x 8192 f32 in a graph: 3.2 us by 512 threads of 4 packs, 3.4 by 256 of 8
         // 264 x 1024 f32 in a graph: 2.36 us, by other kernels 2.93; 528 x 4096 4.8 and 5.65, 1584 x 1024 4.0 and 4.8.
         // Twice as many: 1056 x 4096 14.1 us instead of 12.7, half as many: 13.0.
         .few_rows_threads = 1024,
     }},
};

// Bytes: f32 1048576 x 63: 138 us, by lanes 140, x 49: 113 and 130, x 33: 80 and 103, x 7: 26 and 100; bf16 x 100: 152
// and 182, x 33: 50 and 182, x 7: 21 and 169; f64 x 25: 109 and 119, x 7: 37 and 43. softmax_backward f32 1048576 x 17:
// 63.5 us, by lanes 93, x 33: 117 and 108; bf16 x 81: 179 and 206, x 99: 250 and 211; 16896 x 33 7.9 and 7.9.
// Threads: bf16 1048576 x 33: 50.5 us, with 64 threads 52.1, with 256 53.1.
// Rows: the longer a row, the longer takes the one wave that few of them are. f32 33792 x 7: 5.7 us, by lanes 7.3;
// 67584 x 33: 11.4 and 11.1; 135168 x 55: 26.9 and 21.9; bf16 8192 x 7: 2.3 and 2.9; 16896 x 33: 7.3 and 7.2; 33792 x
// 55: 9.3 and 10.
constexpr Keyed<StagedPolicy> staged[] = {
    {{.op = is_gradient, .pack = 8}, {.row_bytes = 160, .team_size = 64, .rows_per_byte = 2}},
    {{.op = is_gradient}, {.row_bytes = 100, .team_size = 64, .rows_per_byte = 8}},
    {{.pack = 8}, {.row_bytes = 240, .team_size = 128, .rows_per_byte = 2}},
    {{}, {.row_bytes = 240, .team_size = 128, .rows_per_byte = 8}},
};

// 4096 x 8192 f32: 0.82, with 128 threads 0.74; 16384 x 8192 bf16: 0.94, with 4 packs 0.83. Never faster than
// registers.
constexpr Keyed<ScratchPolicy> scratch[] = {
    {{.op = is_gradient}, {.packs_per_thread = 2, .team_size = 256, .max_row_bytes = 0}},
    {{.pack = 8}, {.packs_per_thread = 8, .team_size = 256, .max_row_bytes = 0}},
    {{}, {.packs_per_thread = 4, .team_size = 256, .max_row_bytes = 0}},
};

// Two teams a multiprocessor; 4096 x 32768 f32: 0.77, with 768 0.72. 2048 x 65536 f32 by 768 threads: 0.72, by 384
// 0.69.
constexpr Keyed<OnlinePolicy> online[] = {
    {{.op = is_gradient}, {.team_size = 384, .long_cols = never}},
    {{}, {.team_size = 384, .long_cols = 49152}},
};

constexpr ReductionPolicy reduction = {
    .online_packs     = 2049,  // logsumexp of 16384 x 12672 f32: 0.98, in registers 0.79
    .packs_per_thread = 64,    // that by 32 threads, with 64 0.96, with 128 0.90
    .team_size        = 128,   // 8192 x 32768: 1.02, with 32 0.98
    .largest_team     = 256,
    .fill             = 0.8,  // 4096 x 12672: 64 threads, 2.6 waves, 0.80; 32 threads, 1.3 waves, 0.71
    .full_packs       = 256,  // 16384 x 4096 bf16: 0.82, with 4 packs 0.74
};
constexpr ReductionPolicy reduction_by_table = [] {
  ReductionPolicy policy = reduction;
  policy.full_packs      = never;
  return policy;
}();
constexpr Keyed<ReductionPolicy> reductions[] = {
    {{.op = is_logsumexp, .pack = 4}, reduction_by_table},
    {{}, reduction},
};

constexpr SplitPolicy split_rows = {
    .team_size = 256,  // 8 x 1048576 f32: 0.85, with 128 0.73; 64 x 1048576: 0.84 and 0.86
    // Or half of it, if rows fill that better: cross entropy f32 4096 x 50257: 0.84, with 128 0.81.
    .small_team_size   = 128,  // 2048 x 128256 bf16: 0.91, with 256 0.87
    .small_teams       = 48,   // 1024 x 262144 f32 takes 64: 0.91, by 32 teams of 256 0.94
    .small_teams_alone = 16,   // 1024 x 262144 f32 one row at a time: with 256 0.82, with 128 0.77
    .smallest_team     = 64,
    .less_idle_percent = 97,
    .twice_caches      = 3,  // 1 x 16777216 f32: 0.57, by one kernel 0.49
};
// f32 512 x 131072: by 32 teams of 256 threads 0.94, by 64 of 128 0.90
constexpr SplitPolicy split_gradients = [] {
  SplitPolicy policy = split_rows;
  policy.small_teams = policy.small_teams_alone;
  return policy;
}();
// bf16 64 x 1048576, 128 of them: 0.81, by 64 of 256 threads 0.76; 96 x 700000, 86: 0.85 and 0.81; 32 x 2097152, 256:
// 0.69 and 0.78; 16 x 1048576: 0.71 and 0.72. f32 64 x 1048576, 256 of them: 0.79, by 128 of 256 threads 0.87.
constexpr SplitPolicy split_rows_v8 = [] {
  SplitPolicy policy      = split_rows;
  policy.many_small_teams = 128;
  policy.many_rows        = 32;
  return policy;
}();
// There is no second read to save, so teams wait for each other once: 64 x 1048576 f32 by 4 teams 78 us, by 128 134 us.
constexpr SplitPolicy split_logsumexp = [] {
  SplitPolicy policy = split_rows;
  policy.teams_loop  = true;
  return policy;
}();
constexpr Keyed<SplitPolicy> split[] = {
    {{.op = is_gradient}, split_gradients},
    {{.op = is_any_logsumexp}, split_logsumexp},
    {{.op = is_either_softmax, .pack = 8}, split_rows_v8},
    {{}, split_rows},
};

// 8 x 16384 f32 in registers: 0.54, by split_row 0.40; gradients hold half as much. Cross entropy with its gradient,
// bf16 4096 x 50257: 0.69, by a team of 800 threads to a multiprocessor 0.65.
constexpr Keyed<SplitChoice> split_choice[] = {
    {{.op = is_gradient}, {.min_cols = least_split_columns, .few_rows_packs = 2048}},
    {{.op = is_loss_with_gradient, .pack = 8},
     {.min_cols = least_split_columns, .few_rows_packs = 4096, .edges_max_packs = 4096}},
    {{}, {.min_cols = least_split_columns, .few_rows_packs = 4096}},
};

// Us by clusters of teams of 256 threads and by split_row, H200, one run, 2026-11-28: softmax f32 16384 x 65536 2117,
// 2190, 8192 x 131072 2250, 2227, with edges 1024 x 50257 114, 110; bf16 16384 x 131072 2118, 2155, 8192 x 262144 2229,
// 2173; log_softmax f32 16384 x 65536 2113, 2165. softmax_backward gains 0.8 % at f32 x 32768 and loses 2 % at x 65536.
// Cross entropy with its gradient bf16 4096 x 50257 253, 257, x 128256 548, 573; f32 4096 x 128256 1157, 1081.
// rms_norm f32 8192 x 65536 1191, 1450; bf16 8192 x 131072 1307, 1619. So where eight teams are nearly full.
constexpr PackRange of_eight_teams{7 * 2048 + 1, 8 * 2048};
constexpr Keyed<ClusterPolicy> clusters[] = {
    {{.op = is_either_softmax}, {.packs = of_eight_teams}},
    {{.op = is_loss_with_gradient, .pack = 8}, {.packs = of_eight_teams, .packs_with_edges = {4097, 8192}}},
    {{.op = is_one_of<RowOperator::rms_norm>}, {.packs = of_eight_teams}},
    {{}, {}},
};

constexpr InnerPolicy inner_rows = {
    .lanes               = 32,   // LayoutLeft 65536 x 64 f32: 0.89, with 16 0.82
    .least_lanes         = 16,   // 65536 x 1024 f32: 0.78, with 32 0.59, with 8 0.67
    .few_columns         = 64,   // x 32 bf16: 0.73 and 0.69; x 128: 0.70 and 0.76
    .team_size           = 256,  // x 512: 0.83, by 32 lanes of 512 threads 0.79; x 384: 0.85 and 0.79
    .max_team_size       = 512,
    .lanes_looping       = 16,  // 65536 x 2048 f32: 0.62, with 32 0.60; 32768 x 1536: 0.63 and 0.61
    .least_lanes_looping = 8,
    .idle_percent        = 90,
    .looping_team_size   = 512,  // 65536 x 2048 f32: 416 us, of 256 threads 424; 131072 x 1100: 441 and 449
};
// A log-sum-exp, which reads no column again, is worth neither fewer lanes nor larger teams. LayoutLeft 65536 x 2048
// f32: 141 us, with 16 lanes of 512 threads 163.
constexpr InnerPolicy inner_logsumexp = [] {
  InnerPolicy policy       = inner_rows;
  policy.least_lanes       = policy.lanes;
  policy.max_team_size     = policy.team_size;
  policy.lanes_looping     = 32;
  policy.looping_team_size = 256;
  return policy;
}();
constexpr Keyed<InnerPolicy> inner[] = {{{.op = is_logsumexp}, inner_logsumexp}, {{}, inner_rows}};

constexpr Keyed<EvictionTable> evictions[] = {
    {{.pack = 8, .strategy = RowStrategy::split_row}, evictions_split},
    {{.strategy = RowStrategy::split_row}, {}},  // floats leave no register for it (SplitRow)
    {{.op = is_gradient, .strategy = RowStrategy::inner_lanes}, evictions_inner_gradient},
    {{.op = is_gradient}, evictions_gradient},
    {{.op = is_logsumexp}, evictions_reduction},
    {{.strategy = RowStrategy::inner_lanes}, evictions_inner},
    {{}, evictions_forward},
};

constexpr PrefetchPolicy prefetch_rows = {
    .caches      = 0.2,  // 4096 x 8192 f32: 0.97, without 0.95, with 0.25 0.93
    .kept_caches = 3,    // 4096 x 32000 f32: 253 us, kept to the last 254; 1048576 x 33: 75 and 77
    // Small calls, with and without: f32 16384 x 512 by 4 packs 20.7 us and 21.3, by 8 packs 8576 x 1024 22.4 and 21.9,
    // by 2 packs 137216 x 64 22.3 and 22.0; bf16 4096 x 4096 by 4 packs 20.6 and 21.3, 1048576 x 16 by 1, twice as far
    // ahead, 20.6 and 21.5. Large ones, kept to the last: f32 by 8 packs 16384 x 781 30.7 and 29.4, by 4 1048576 x 128
    // 257 and 252, but with a quarter of them empty x 96 191 and 206, 262144 x 197 107 and 113, by 2 1048576 x 64 128.3
    // and 129.7, log_softmax 130 and 138; by teams of 1024 4096 x 32000 254 and 256, through team scratch 1048576 x 33
    // 77 and 84. Doubles in turn, by 8 packs: 4096 x 1024 21.5 and 22.6, x 8192 136 and 140.
    .packs           = 4,
    .few_packs       = 2,
    .empty_percent   = 90,
    .reduction_packs = 4,
    .online_caches   = 0.7,  // before tiles were held, 4096 x 8192 f32: 0.82, without 0.77
    .online_tensors  = 2,
};
// Elements of 16 bits: few packs are few bytes in flight.
constexpr PrefetchPolicy prefetch_rows_v8 = [] {
  PrefetchPolicy policy = prefetch_rows;
  policy.asks_with_few  = true;
  return policy;
}();
// Doubles take long to compute: only short rows of them were measured.
constexpr PrefetchPolicy prefetch_rows_v2 = [] {
  PrefetchPolicy policy   = prefetch_rows;
  policy.chooses_in_teams = false;
  return policy;
}();
constexpr Keyed<PrefetchPolicy> prefetch[] = {
    {{.pack = 2}, prefetch_rows_v2}, {{.pack = 8}, prefetch_rows_v8}, {{}, prefetch_rows}};

constexpr Keyed<HostPolicy> host[] = {{{}, {}}};

constexpr BackendPolicy policy{register_tables,
                               registers,
                               staged,
                               scratch,
                               online,
                               reductions,
                               split,
                               split_choice,
                               clusters,
                               inner,
                               evictions,
                               prefetch,
                               host};
static_assert(is_complete(policy));

}  // namespace

const BackendPolicy& cuda_policy() { return policy; }

}  // namespace KokkosNN::Impl
