// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "kinds.hpp"

#include "../support/cross_entropy.hpp"
#include "../support/soft_cross_entropy.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

// Random calls of cross entropies.

namespace KokkosNNTest {
namespace {

template <RowOperator Op, class T>
void soft_loss(Draw& draw) {
  const auto extents = draw.extents(3);
  const int axis     = static_cast<int>(draw.below(3));
  const Placement x = draw.placement(extents), dx = draw.placement(extents);
  const KokkosNN::SoftCrossEntropyOptions options{.reduction       = draw.of({Reduction::none, Reduction::sum}),
                                                  .label_smoothing = draw.of({0.0, 0.125}),
                                                  .determinism     = draw.determinism(),
                                                  .plan            = draw.plan()};
  // Logits without classes are refused.
  const bool may_be_refused = !(options.plan == KokkosNN::PlanRequest{}) || extents[axis] == 0;
  SoftLossTrial<Op, T, 3> trial(x, dx, axis, options, draw.yes());
  expect_right(std::string(to_string(Op)) + text_of(x) + text_of(dx) + " axis " + std::to_string(axis), may_be_refused,
               [&] { return trial.run_correct(); });
}

template <RowOperator Op, class T>
void loss(Draw& draw) {
  const auto extents = draw.extents(2);
  KokkosNN::CrossEntropyOptions options;
  options.reduction       = draw.of({KokkosNN::Reduction::none, KokkosNN::Reduction::mean, KokkosNN::Reduction::sum});
  options.label_smoothing = draw.of({0.0, 0.0, 0.1, 1.0});
  options.z_loss          = draw.of({0.0, 0.0, 1e-2});
  options.softcap         = draw.of({0.0, 0.0, 30.0});
  options.determinism     = draw.determinism();
  options.check_labels    = draw.yes();
  if (extents[1] == 0) return;  // no label is one of no classes
  LossTrial<Op, T> trial(draw.placement(extents), draw.placement(extents), options, draw.yes(), Recipe::uniform);
  if (!options.check_labels && extents[0] > 0) {
    for (std::int64_t wrong = draw.below(4); wrong > 0; --wrong) {
      trial.label(draw.below(extents[0])) =
          draw.of({std::int64_t(-1), extents[1], std::int64_t(1) << 40, std::numeric_limits<std::int64_t>::min()});
    }
    trial.upload();
  }
  expect_right(std::string(to_string(Op)) + ' ' + std::to_string(extents[0]) + " by " + std::to_string(extents[1]),
               false, [&] { return trial.run_correct(); });
}

}  // namespace

template <class T>
std::vector<Kind> loss_kinds() {
  return {Kind{{RowOperator::cross_entropy}, loss<RowOperator::cross_entropy, T>},
          Kind{{RowOperator::cross_entropy_backward}, loss<RowOperator::cross_entropy_backward, T>},
          Kind{{RowOperator::cross_entropy_with_gradient}, loss<RowOperator::cross_entropy_with_gradient, T>},
          Kind{{RowOperator::soft_cross_entropy}, soft_loss<RowOperator::soft_cross_entropy, T>},
          Kind{{RowOperator::soft_cross_entropy_with_gradient},
               soft_loss<RowOperator::soft_cross_entropy_with_gradient, T>}};
}

template std::vector<Kind> loss_kinds<float>();
template std::vector<Kind> loss_kinds<double>();
template std::vector<Kind> loss_kinds<Half>();
template std::vector<Kind> loss_kinds<BHalf>();

}  // namespace KokkosNNTest
