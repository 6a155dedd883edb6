// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "kinds.hpp"

#include "../support/gradient.hpp"
#include "../support/norm.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <string>
#include <vector>

// Random calls of softmax, its kin, norms and their gradients.

namespace KokkosNNTest {
namespace {

template <RowOperator Op, class T, int Rank>
void forward(Draw& draw) {
  const auto extents = draw.extents(Rank);
  const int axis     = static_cast<int>(draw.below(Rank));
  const Placement x  = draw.placement(extents);
  const Placement y =
      Op == RowOperator::logsumexp ? draw.placement(right(extents).without(axis).extents) : draw.placement(extents);
  SoftmaxOptions options{
      .scale = draw.scale(), .masked_row = draw.masked_row(), .determinism = draw.determinism(), .plan = draw.plan()};
  // An axis of no elements has no largest one: refused for that reason too.
  const bool is_forced = !(options.plan == KokkosNN::PlanRequest{});
  Trial<Op, T, T, Rank> trial(x, y, draw.yes() ? axis : axis - Rank, draw.recipe());
  add_specials(draw, trial.x().host(), x, axis, 0);
  trial.x().upload();
  expect_right(std::string(to_string(Op)) + text_of(x) + text_of(y) + " axis " + std::to_string(axis), is_forced,
               [&] { return trial.run_correct(options); });
}

template <RowOperator Op, class T, int Rank>
void gradient(Draw& draw) {
  const auto extents = draw.extents(Rank);
  const int axis     = static_cast<int>(draw.below(Rank));
  const Placement x  = draw.placement(extents);
  const Placement dy = Op == RowOperator::logsumexp_backward ? draw.placement(right(extents).without(axis).extents)
                                                             : draw.placement(extents);
  const Placement dx = draw.placement(extents);
  // Not so large that exponentials fall below the normal range, where gradients promise nothing.
  const double scale  = draw.of({1.0, 0.125, -1.0, -0.37, 1e-3});
  const Recipe recipe = draw.of({Recipe::uniform, Recipe::one_dominant, Recipe::all_equal});
  GradientTrial<Op, T, Rank> trial(x, dy, dx, axis, scale, recipe);
  const SoftmaxOptions options{.masked_row = draw.masked_row(), .determinism = draw.determinism(), .plan = draw.plan()};
  expect_right(std::string(to_string(Op)) + text_of(x) + text_of(dx) + " axis " + std::to_string(axis),
               !(options.plan == KokkosNN::PlanRequest{}), [&] { return trial.run_correct(options); });
}

template <RowOperator Op, class T, int Rank>
void norm(Draw& draw) {
  const auto extents = draw.extents(Rank);
  const int axis     = static_cast<int>(draw.below(Rank));
  const Placement x = draw.placement(extents), y = draw.placement(extents);
  NormCase given;
  given.axis          = draw.yes() ? axis : axis - Rank;
  given.recipe        = draw.of({Recipe::uniform, Recipe::one_dominant, Recipe::all_equal});
  given.has_weights   = draw.yes();
  given.stride        = draw.of({1, 1, 2});
  given.weight_offset = draw.of({0.0, 1.0});
  given.determinism   = draw.determinism();
  given.plan          = draw.plan();
  NormTrial<Op, T, Rank> trial(x, y, given);
  expect_right(std::string(to_string(Op)) + text_of(x) + text_of(y) + " axis " + std::to_string(axis),
               !(given.plan == KokkosNN::PlanRequest{}), [&] { return trial.run_correct(); });
}

}  // namespace

template <class T>
std::vector<Kind> row_kinds() {
  return {Kind{{RowOperator::softmax}, forward<RowOperator::softmax, T, 1>},
          Kind{{RowOperator::softmax}, forward<RowOperator::softmax, T, 2>},
          Kind{{RowOperator::softmax}, forward<RowOperator::softmax, T, 3>},
          Kind{{RowOperator::log_softmax}, forward<RowOperator::log_softmax, T, 2>},
          Kind{{RowOperator::log_softmax}, forward<RowOperator::log_softmax, T, 4>},
          Kind{{RowOperator::logsumexp}, forward<RowOperator::logsumexp, T, 1>},
          Kind{{RowOperator::logsumexp}, forward<RowOperator::logsumexp, T, 3>},
          Kind{{RowOperator::softmax_backward}, gradient<RowOperator::softmax_backward, T, 3>},
          Kind{{RowOperator::log_softmax_backward}, gradient<RowOperator::log_softmax_backward, T, 2>},
          Kind{{RowOperator::logsumexp_backward}, gradient<RowOperator::logsumexp_backward, T, 3>},
          Kind{{RowOperator::rms_norm}, norm<RowOperator::rms_norm, T, 2>},
          Kind{{RowOperator::layer_norm}, norm<RowOperator::layer_norm, T, 3>},
          Kind{{RowOperator::rms_norm_backward}, norm<RowOperator::rms_norm_backward, T, 3>},
          Kind{{RowOperator::layer_norm_backward}, norm<RowOperator::layer_norm_backward, T, 2>},
          Kind{{RowOperator::add_rms_norm}, norm<RowOperator::add_rms_norm, T, 3>},
          Kind{{RowOperator::add_layer_norm}, norm<RowOperator::add_layer_norm, T, 2>},
          Kind{{RowOperator::add_rms_norm_backward}, norm<RowOperator::add_rms_norm_backward, T, 2>},
          Kind{{RowOperator::add_layer_norm_backward}, norm<RowOperator::add_layer_norm_backward, T, 3>}};
}

template std::vector<Kind> row_kinds<float>();
template std::vector<Kind> row_kinds<double>();
template std::vector<Kind> row_kinds<Half>();
template std::vector<Kind> row_kinds<BHalf>();

}  // namespace KokkosNNTest
