// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "kinds.hpp"

#include "../support/masked.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <string>
#include <vector>

// Random calls of masked rows and their gradients.

namespace KokkosNNTest {
namespace {

/// A mask of the kinds that the bytes choose, all of them data of one type, so that little is compiled.
template <RowOperator Op, class T>
void masked(Draw& draw) {
  using Trial        = MaskedTrial<T, T, 4, Op>;
  const auto extents = draw.extents(4);
  const Placement x = draw.placement(extents), y = draw.placement(Trial::results_of(right(extents)).extents);
  Trial trial(x, y, draw.of({Recipe::uniform, Recipe::wide, Recipe::all_equal}));
  add_specials(draw, trial.x().host(), x, 3, 11);  // a bias is added to scaled numbers
  trial.x().upload();
  MaskedSoftmaxOptions options;
  options.scale          = draw.of({1.0, 0.125, 2.5});
  options.softcap        = draw.of({0.0, 0.0, 20.0});
  options.masked_row     = draw.masked_row();
  options.determinism    = draw.determinism();
  options.plan           = draw.plan();
  const bool is_forced   = !(options.plan == KokkosNN::PlanRequest{});
  const std::string what = to_string(Op) + text_of(x) + text_of(y) + " scale " + std::to_string(options.scale) +
                           " softcap " + std::to_string(options.softcap);
  const auto run         = [&](const auto& mask, const Meaning& meaning) {
    expect_right(what, is_forced, [&] { return trial.run_correct(mask, meaning, options); });
  };

  const std::int64_t offset = draw.below(9) - 4;
  const std::int64_t kind   = draw.below(6);
  const std::uint8_t seed   = draw.byte();
  if (kind == 0) {
    run(KokkosNN::CausalMask{offset}, Meaning{.allows = [=](const At& at) { return at.key <= at.query + offset; }});
  } else if (kind == 1) {
    const std::int64_t left = draw.below(6), reach = draw.below(6);
    run(KokkosNN::SlidingWindow{left, reach, offset}, Meaning{.allows = [=](const At& at) {
          return at.key >= at.query + offset - left && at.key <= at.query + offset + reach;
        }});
  } else if (kind == 2) {
    const MaskData<int, 1> lengths(right({extents[0]}), [&](const auto& index) {
      return static_cast<int>((index[0] * 31 + seed) % (extents[3] + 4)) - 2;
    });
    run(KokkosNN::RowLengths{lengths.view()},
        Meaning{.allows = [&](const At& at) { return at.key < lengths({at.batch}); }});
  } else if (kind == 3) {
    const MaskData<int, 1> offsets(right({extents[0]}),
                                   [&](const auto& index) { return static_cast<int>((index[0] * 5 + seed) % 11) - 5; });
    run(KokkosNN::masks(KokkosNN::CausalMask{offset}, KokkosNN::DiagonalOffsets{offsets.view()}),
        Meaning{.allows = [&](const At& at) { return at.key <= at.query + offset + offsets({at.batch}); }});
  } else if (kind == 4) {
    // Broadcast over heads.
    const MaskData<std::uint8_t, 4> keep(
        draw.placement({extents[0], 1, extents[2], extents[3]}),
        [&](const auto& index) { return std::uint8_t(noise_at(index, 1) * 128 < seed - 128 ? 1 : 0); });
    run(KokkosNN::BooleanMask{keep.view()},
        Meaning{.allows = [&](const At& at) { return keep({at.batch, 0, at.query, at.key}) != 0; }});
  } else {
    const MaskData<T, 4> bias(draw.placement({1, extents[1], extents[2], extents[3]}),
                              [&](const auto& index) { return static_cast<T>(noise_at(index, 3)); });
    Meaning meaning;
    meaning.adds = [&](const At& at) { return Real(bias({0, at.head, at.query, at.key})); };
    run(KokkosNN::masks(KokkosNN::AdditiveBias{bias.view()}), meaning);
  }
}

}  // namespace

template <class T>
std::vector<Kind> masked_kinds() {
  return {
      Kind{{RowOperator::masked_softmax, RowOperator::masked_softmax_backward}, masked<RowOperator::masked_softmax, T>},
      Kind{{RowOperator::masked_log_softmax, RowOperator::masked_log_softmax_backward},
           masked<RowOperator::masked_log_softmax, T>},
      Kind{{RowOperator::masked_logsumexp}, masked<RowOperator::masked_logsumexp, T>}};
}

template std::vector<Kind> masked_kinds<float>();
template std::vector<Kind> masked_kinds<double>();
template std::vector<Kind> masked_kinds<Half>();
template std::vector<Kind> masked_kinds<BHalf>();

}  // namespace KokkosNNTest
