// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_OPTIONS_HPP
#define KOKKOSNN_OPTIONS_HPP

#include <cstdint>

namespace KokkosNN {

/// Result of a row all of whose scaled logits are -inf (a fully masked row).
enum class MaskedRowPolicy {
  nan,  ///< NaN in every column, as PyTorch does
  zero  ///< softmax: 0 in every column; log_softmax: -inf in every column
};

/// How far equal input gives equal bits.
enum class Determinism {
  run_to_run,      ///< the same call on the same device gives the same bits every time
  batch_invariant  ///< moreover, a row's bits do not depend on how many rows there are or where in the tensor it stands
};

/// How rows are mapped to the machine, in Kokkos' hierarchy words (a "lane" is a hardware thread that can shuffle).
enum class RowStrategy {
  automatic,       ///< the planner chooses
  vector_lanes,    ///< a row belongs to a few neighbouring lanes, in registers; several rows a team
  team_scratch,    ///< a row belongs to a team and stays in team scratch (on a GPU of softmax, log_softmax, their
                   ///< gradients, logsumexp)
  team_registers,  ///< a row belongs to a team and stays in its threads' registers
  team_online,     ///< a row belongs to a team and is read twice; (max, sum) is computed online (on a GPU of softmax,
  ///< log_softmax, their gradients, and rows of which it is chosen for some of their operator and type)
  split_row,       ///< a row is split over co-resident teams that exchange (max, sum), on GPUs
  row_in_cluster,  ///< a row is split over a cluster of teams, which exchange it in shared memory (NVIDIA, from Hopper;
                   ///< aligned rows of softmax, log_softmax, softmax_backward and rms_norm, not of doubles; 16-bit rows
                   ///< of cross_entropy_with_gradient)
  inner_lanes      ///< lanes run over a contiguous axis, threads over the reduced one
};

/// Parts of a plan that a caller fixes; zero or `automatic` leaves the choice to the planner. A request that cannot be
/// served is an error that says why.
struct PlanRequest {
  RowStrategy strategy = RowStrategy::automatic;
  int packs_per_thread = 0;  ///< packs that a thread holds at a time: 1, 2, 4, 8; on a GPU what rows have a kernel of
  int threads_per_row  = 0;  ///< threads that share a row (inner_lanes: threads side by side on the inner axis)
  int team_size        = 0;  ///< threads a team
  int teams_per_row    = 0;  ///< teams that share a row (split_row, row_in_cluster: a power of two)
  int launches = 0;  ///< split_row: 1, a row's teams wait for each other; 2, a second kernel reads the row again

  bool operator==(const PlanRequest&) const = default;
};

/// Options of the softmax family; an aggregate for designated initialisers: `{.axis = 1, .scale = 0.125}`.
struct SoftmaxOptions {
  int axis                   = -1;   ///< the reduced axis; negative counts from the end
  double scale               = 1.0;  ///< factor of the logits: exp(scale * (x - max)); 2^-100 to 2^100, or negative
  MaskedRowPolicy masked_row = MaskedRowPolicy::nan;
  int axes                   = 1;  ///< neighbouring axes that are reduced together, from `axis` on
  Determinism determinism    = Determinism::run_to_run;
  PlanRequest plan           = {};  ///< forces parts of the plan, for experiments and tuning
};

/// Reduction of the rows' losses.
enum class Reduction {
  none,  ///< each row's is written
  mean,  ///< their sum over the sum of their labels' weights, rows that are ignored left out
  sum    ///< their sum
};

/// Options of the cross entropies; an aggregate for designated initialisers: `{.label_smoothing = 0.1}`.
struct CrossEntropyOptions {
  int axis                  = -1;    ///< the axis of the classes; negative counts from the end
  std::int64_t ignore_index = -100;  ///< rows with this label give loss 0 and gradient 0
  Reduction reduction       = Reduction::mean;
  double label_smoothing    = 0;      ///< share of the target that goes to all classes alike: 0 to 1
  double z_loss             = 0;      ///< factor of lse^2, which is added to a row's loss
  bool weighted_z_loss      = true;   ///< lse^2 has the weight of the row's class; false: 1, whatever the weights are
  double softcap            = 0;      ///< logits z = softcap tanh(x / softcap); 0: z = x; else 2^-100 to 2^100
  double gradient_scale     = 1;      ///< cross_entropy_with_gradient: dL/dloss, of the loss that it computes
  std::int64_t first_class  = 0;      ///< cross_entropy_backward: the class of the first column
  std::int64_t classes      = 0;      ///< cross_entropy_backward, from_lse: all classes, of which columns are some
  bool check_labels         = false;  ///< throw where a label is out of range; waits for `exec`
  Determinism determinism   = Determinism::run_to_run;
  PlanRequest plan          = {};  ///< forces parts of the plan, for experiments and tuning
};

/// Options of the cross entropies whose targets are probabilities: `{.label_smoothing = 0.1}`.
struct SoftCrossEntropyOptions {
  int axis                = -1;               ///< the axis of the classes; negative counts from the end
  Reduction reduction     = Reduction::mean;  ///< the mean divides by the number of rows
  double label_smoothing  = 0;                ///< share of the target that goes to all classes alike: 0 to 1
  double gradient_scale   = 1;                ///< dL/dloss, of the loss that the call computes
  Determinism determinism = Determinism::run_to_run;
  PlanRequest plan        = {};  ///< forces parts of the plan, for experiments and tuning
};

/// Options of sums over rows; an aggregate for designated initialisers: `{.axis = 0}`.
struct ColumnSumsOptions {
  int axis = -1;  ///< the axis that stays; negative counts from the end
};

/// Options of RMSNorm and its gradient; an aggregate for designated initialisers: `{.epsilon = 1e-5}`.
struct RmsNormOptions {
  int axis                = -1;    ///< the normalised axis; negative counts from the end
  double epsilon          = 1e-6;  ///< added to the mean of squares; not negative. The gradient has it in rstd
  double weight_offset    = 0;     ///< added to each weight: 1 for weights that are kept as their distance from 1
  Determinism determinism = Determinism::run_to_run;
  PlanRequest plan        = {};  ///< forces parts of the plan, for experiments and tuning
};

/// Options of LayerNorm and its gradient; an aggregate for designated initialisers: `{.axis = 1}`.
struct LayerNormOptions {
  int axis                = -1;    ///< the normalised axis; negative counts from the end
  double epsilon          = 1e-5;  ///< added to the variance; not negative. The gradient has it in rstd
  Determinism determinism = Determinism::run_to_run;
  PlanRequest plan        = {};  ///< forces parts of the plan, for experiments and tuning
};

/// Which elements of a row a rotary embedding rotates as pairs.
enum class RopeForm {
  half_rotated,  ///< i and i + rotary_dims / 2, as GPT-NeoX and Llama do
  interleaved    ///< 2 i and 2 i + 1, as GPT-J and the paper do
};

/// Options of the rotary position embedding and its gradient; an aggregate for designated initialisers:
/// `{.form = RopeForm::interleaved, .rotary_dims = 64}`.
struct RopeOptions {
  RopeForm form                = RopeForm::half_rotated;
  std::int64_t rotary_dims     = 0;   ///< elements of a row that are rotated, the first ones; even. 0: all
  int sequence_axis            = -3;  ///< the axis of positions; negative counts from the end. Of rank 2 -3 is axis 0
  std::int64_t position_offset = 0;   ///< added to each position: the length of a cache that a sequence continues
  double theta                 = 10000;  ///< without tables: base of the frequencies; 2^-100 to 2^100
  double position_scale        = 1;      ///< without tables: factor of positions; 2^-100 to 2^100, or negative
  bool check_positions         = false;  ///< throw where a View's position is outside of the tables; waits for `exec`
};

/// Options of RMSNorm and a rotary position embedding in one pass; an aggregate for designated initialisers:
/// `{.epsilon = 1e-5, .rope = {.rotary_dims = 64}}`.
struct RmsNormRopeOptions {
  double epsilon       = 1e-6;  ///< added to the mean of squares; not negative
  double weight_offset = 0;     ///< added to each weight: 1 for weights that are kept as their distance from 1
  RopeOptions rope     = {};
};

}  // namespace KokkosNN

#endif  // KOKKOSNN_OPTIONS_HPP
