// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include <KokkosNN/KokkosNN.hpp>

#ifdef KOKKOSNN_HAS_MPI
#include <KokkosNN/mpi.hpp>
#endif

#include <cstdint>
#include <tuple>

// A call of each family, mostly of types whose kernels are compiled here, in a file as users write them.

using namespace Kokkos;
using namespace KokkosNN;

using Exec = DefaultExecutionSpace;
template <class T>
using Values = View<T*, LayoutRight, Exec>;
template <class T>
using Rows = View<T**, LayoutRight, Exec>;
template <class T>
using Columns = View<T**, LayoutLeft, Exec>;
template <class T>
using Strided = View<T**, LayoutStride, Exec>;
template <class T>
using Cubes = View<T***, LayoutRight, Exec>;
template <class T>
using Scores = View<T****, LayoutRight, Exec>;

void views(const Exec& exec) {
  softmax(Rows<const double>(), Rows<float>(), {.axis = 0});
  log_softmax(exec, Columns<half_t>(), Strided<bhalf_t>());
  logsumexp(Rows<half_t>(), Values<double>());
  const SoftmaxPlan plan(exec, Rows<bhalf_t>(), Rows<double>());
  plan.run();
}

void gradients(const Exec& exec) {
  softmax_backward(Rows<bhalf_t>(), Rows<float>(), Rows<half_t>(), {.axis = 0});
  log_softmax_backward(exec, Columns<double>(), Strided<float>(), Columns<float>());
  logsumexp_backward(Rows<half_t>(), Values<double>(), Values<double>(), Rows<float>());
}

void masked(const Exec& exec) {
  const auto mask =
      masks(SlidingWindow{.left = 3}, RowLengths{Values<std::int32_t>()}, BooleanMask{Rows<std::uint8_t>()},
            AdditiveBias{Rows<float>()}, Alibi{Values<float>()}, DiagonalOffsets{Values<std::int64_t>()});
  masked_softmax(Scores<double>(), CausalMask{}, Scores<float>());
  masked_softmax(exec, Scores<const half_t>(), mask, Scores<bhalf_t>(), {.softcap = 30, .sinks = Values<float>()});
  masked_log_softmax(exec, Scores<const half_t>(), mask, Scores<float>(), {.softcap = 30});
  masked_logsumexp(Scores<bhalf_t>(), mask, Cubes<float>(), {.sinks = Values<float>()});
  masked_softmax_backward(Scores<half_t>(), Scores<half_t>(), Scores<float>(), mask, Scores<bhalf_t>(),
                          {.softcap = 30});
  masked_log_softmax_backward(Scores<half_t>(), Scores<half_t>(), Scores<float>(), mask, Scores<bhalf_t>());
  masked_softmax_bias_backward(Scores<half_t>(), Scores<float>(), mask, Rows<float>());
  masked_softmax_sinks_backward(Scores<half_t>(), Scores<float>(), mask, Values<float>());
}

void elementwise(const Exec& exec) {
  add(exec, Rows<const float>(), Values<float>(), Columns<float>());
  cast(exec, Strided<half_t>(), Rows<double>());
  gelu(exec, Rows<bhalf_t>(), Rows<float>(), {.form = GeluForm::tanh});
  swiglu_backward(exec, Rows<half_t>(), Rows<float>(), Rows<bhalf_t>(), Rows<half_t>(), Rows<float>());
  fused_elementwise(
      exec, std::tuple(Rows<float>(), Rows<bool>()),
      KOKKOS_LAMBDA(double a, double b) { return Kokkos::Array<double, 2>{a + b, a < b ? 1.0 : 0.0}; },
      Rows<const bhalf_t>(), View<double, Exec>());
}

/// Those of docs/masks.md, as they stand there.
void guide(const Scores<float>& x, const Scores<float>& y, const Scores<float>& dy, const Scores<float>& dx,
           const Values<int>& lengths, const Scores<float>& bias, const Values<float>& sinks,
           const Scores<float>& dbias, const Values<float>& dsinks, const Cubes<float>& lse) {
  masked_softmax(x, CausalMask{}, y, {.scale = 0.125});
  masked_softmax(x, masks(RowLengths{lengths}, AdditiveBias{bias}), y, {.softcap = 30, .sinks = sinks});
  masked_softmax_backward(x, y, dy, CausalMask{}, dx, {.scale = 0.125});
  const auto mask = masks(RowLengths{lengths}, AdditiveBias{bias});
  masked_softmax_bias_backward(y, dy, mask, dbias);
  masked_softmax_sinks_backward(y, dy, mask, dsinks);
  masked_log_softmax(x, CausalMask{}, y);
  masked_logsumexp(x, CausalMask{}, lse);
  masked_log_softmax_backward(x, y, dy, CausalMask{}, dx);
}

void norms(const Exec& exec) {
  rms_norm(Rows<half_t>(), Values<float>(), Rows<half_t>());
  rms_norm(exec, Columns<double>(), no_view, Strided<double>(), Values<double>(), {.axis = 0, .epsilon = 1e-9});
  layer_norm(exec, Rows<bhalf_t>(), Values<bhalf_t>(), no_view, Rows<bhalf_t>(), Values<float>(), Values<float>());
  rms_norm_backward(Rows<float>(), Values<float>(), Values<float>(), Rows<float>(), Rows<float>());
  layer_norm_backward(exec, Rows<half_t>(), Values<half_t>(), Values<float>(), Values<float>(), Rows<half_t>(),
                      Rows<half_t>());
  rms_norm_backward(Rows<half_t>(), no_view, Values<float>(), Rows<half_t>(), Rows<half_t>(), Values<float>());
  layer_norm_backward(exec, Rows<double>(), no_view, Values<double>(), Values<double>(), Rows<double>(), Rows<double>(),
                      no_view, Values<double>());
  column_sums(Columns<bhalf_t>(), Values<float>(), {.axis = 0});
}

void results_in_8_bits(const Exec& exec) {
  quantized_softmax(Rows<half_t>(), Rows<std::int8_t>(), Values<float>(), {.scale = 0.5});
  quantized_rms_norm(exec, Rows<double>(), Values<double>(), Rows<float8_e4m3>(), no_view, {.epsilon = 1e-9});
  quantized_layer_norm(Columns<bhalf_t>(), no_view, Values<float>(), Rows<float8_e4m3>(), Values<float>());
}

void normalised_and_rotated(const Exec& exec) {
  using Tables = View<const float**, Exec>;
  rms_norm_rope(exec, Rows<half_t>(), Values<float>(), Tables(), Tables(), Rows<half_t>());
  rms_norm_rope(Rows<double>(), no_view, Rows<double>(), {.epsilon = 1e-9, .rope = {.rotary_dims = 4}});
}

void norms_with_residual(const Exec& exec) {
  add_rms_norm(Rows<half_t>(), Rows<half_t>(), Values<float>(), Rows<half_t>(), Rows<half_t>());
  add_layer_norm(exec, Rows<double>(), Columns<double>(), no_view, no_view, Rows<double>(), Rows<double>(),
                 Values<double>(), Values<double>(), {.axis = 0});
  add_rms_norm_backward(Rows<float>(), no_view, Values<float>(), Rows<float>(), Rows<float>(), Rows<float>(), no_view);
  add_layer_norm_backward(exec, Rows<bhalf_t>(), no_view, Values<float>(), Values<float>(), Rows<bhalf_t>(), no_view,
                          Rows<bhalf_t>(), Values<bhalf_t>(), Values<float>());
}

void cross_entropies(const Exec& exec) {
  cross_entropy(Rows<half_t>(), Values<std::uint8_t>(), View<float, Exec>(), {.label_smoothing = 0.1});
  cross_entropy_backward(Rows<float>(), Values<std::int64_t>(), Values<float>(), View<float, Exec>(), Rows<half_t>());
  cross_entropy_with_gradient(exec, Columns<bhalf_t>(), Values<int>(), Values<float>(), Columns<float>(),
                              {.reduction = Reduction::none}, Values<float>(), Values<float>());
  cross_entropy(Rows<float>(), Values<int>(), View<float, Exec>(), {}, no_view, no_view, Values<std::int64_t>());
  cross_entropy_from_lse(Values<double>(), Values<double>(), Values<int>(), View<double, Exec>());
  soft_cross_entropy(Rows<half_t>(), Rows<half_t>(), View<float, Exec>(), {.label_smoothing = 0.1});
  soft_cross_entropy_with_gradient(exec, Columns<float>(), Columns<float>(), Values<float>(), Columns<float>(),
                                   {.reduction = Reduction::none}, Values<float>(), Values<float>());
}

void segmented(const Exec& exec) {
  segmented_softmax(Values<double>(), Values<int>(), Values<float>());
  segmented_log_softmax(exec, Values<float>(), Values<std::uint16_t>(), Values<half_t>());
  segmented_logsumexp(Values<bhalf_t>(), Values<std::int64_t>(), Values<float>());
  segmented_softmax_backward(Values<half_t>(), Values<half_t>(), Values<std::uint64_t>(), Values<half_t>());
}

struct Load {
  using value_type = double;
  Rows<const double> x;

  template <int N>
  KOKKOS_FUNCTION Pack<double, N> load(std::int64_t row, std::int64_t col) const {
    Pack<double, N> pack;
    for (int i = 0; i < N; ++i) pack[i] = x(row, col + i);
    return pack;
  }
};

void ropes(const Exec& exec) {
  rope(exec, Rows<half_t>(), Rows<float>(), Columns<float>(), Rows<half_t>(), {.position_offset = 3});
  rope(Columns<double>(), Strided<double>(), {.form = RopeForm::interleaved, .theta = 500000}, Values<std::int32_t>());
  rope_backward(exec, Rows<bhalf_t>(), Rows<bhalf_t>(), {.rotary_dims = 2}, Values<std::int64_t>());
  rope_backward(Rows<float>(), Rows<float>(), Rows<float>(), Rows<float>());
}

void attentions(const Exec& exec) {
  using Heads = View<half_t****, Exec>;
  attention(exec, Heads(), Heads(), Heads(), Heads(), CausalMask{}, {.scale = 0.5}, View<float***, Exec>());
  attention(Heads(), Heads(), Heads(), Heads(), masks());
  attention_backward(exec, Heads(), Heads(), Heads(), Heads(), Heads(), View<float***, Exec>(), CausalMask{}, Heads(),
                     Heads(), Heads(), {.softcap = 30});
}

struct AddBias {
  template <class A>
  KOKKOS_FUNCTION A operator()(A sum, A bias) const {
    return sum + bias;
  }
};

void products(const Exec& exec) {
  matmul(exec, Rows<half_t>(), Columns<half_t>(), Strided<half_t>());
  matmul(exec, Rows<float>(), Rows<float>(), Rows<double>(), {.beta = 1, .precision = Precision::tensor_float32});
  matmul(exec, Rows<bhalf_t>(), Rows<bhalf_t>(), View<float***, Exec>(), {}, AddBias{}, Values<bhalf_t>());
}

struct Store {
  using value_type = float;
  Rows<float> y;
  Values<float> lse;

  template <int N>
  KOKKOS_FUNCTION void store(const Pack<double, N>& values, std::int64_t row, std::int64_t col) const {
    for (int i = 0; i < N; ++i) y(row, col + i) = static_cast<float>(values[i]);
  }
  KOKKOS_FUNCTION void store(double value, std::int64_t row) const { lse(row) = static_cast<float>(value); }
};

void fused(const Exec& exec) {
  fused_softmax(exec, 3, 40, Load{}, Store{});
  fused_log_softmax(exec, 3, 40, Load{}, Store{});
  fused_logsumexp(exec, 3, 40, Load{}, Store{});
}

struct InTeam {
  Values<double> x;
  Values<half_t> y;
  Values<double> lse;
  Values<MaxSumExp<float>> state;

  KOKKOS_FUNCTION void operator()(const TeamPolicy<Exec>::member_type& team) const {
    team_softmax(team, x, y);
    team_log_softmax(team, x, y, {.scale = 0.5});
    lse(0) = team_logsumexp(team, x);
    thread_softmax(team, x, y);
    thread_log_softmax(team, x, y);
    lse(1) = thread_logsumexp(team, x);
    MaxSumExp<float> all;
    parallel_reduce(
        TeamThreadRange(team, 3), [&](int i, MaxSumExp<float>& part) { part = merge(part, state(i)); },
        MaxSumExpReducer(all));
    lse(2) = static_cast<double>(all.lse());
  }
};

void in_team(const Exec& exec) { parallel_for(TeamPolicy<Exec>(exec, 3, 1), InTeam{}); }

#ifdef KOKKOSNN_HAS_MPI
void over_ranks(const mpi::Communicator<Exec>& comm) {
  mpi::softmax(comm, Rows<double>(), Rows<float>(), {.axis = 0});
  mpi::logsumexp(comm, Columns<half_t>(), Values<float>());
  mpi::log_softmax_backward(comm, Rows<bhalf_t>(), Rows<float>(), Rows<half_t>());
  mpi::cross_entropy_with_gradient(comm, Rows<float>(), comm.classes(40), Values<std::uint8_t>(), View<float, Exec>(),
                                   Rows<half_t>(), {.label_smoothing = 0.1});
}
#endif
