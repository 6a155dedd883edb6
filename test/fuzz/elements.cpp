// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "kinds.hpp"

#include "../support/elementwise.hpp"
#include "../support/quantized.hpp"
#include "../support/rms_norm_rope.hpp"
#include "../support/rope.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

// Random calls of elementwise operators, rotary embeddings and quantised rows.

namespace KokkosNNTest {
namespace {

/// Any elementwise operator; inputs have some axes of extent 1 or stride 0.
template <class T, int Rank>
void elementwise(Draw& draw) {
  const Element op   = Reference::all_elements[draw.below(Reference::all_elements.size())];
  const auto extents = draw.extents(Rank);
  std::vector<Placement> in, out;
  for (int i = 0; i < Reference::inputs_of(op); ++i) {
    auto narrow = extents;
    for (auto& extent : narrow) extent = draw.below(6) == 0 ? 1 : extent;
    in.push_back(draw.placement(narrow));
    if (draw.below(6) == 0) in.back() = {extents, std::vector<std::int64_t>(Rank, 0), 0};
  }
  for (int o = 0; o < Reference::outputs_of(op); ++o) out.push_back(draw.placement(extents));
  ElementwiseTrial<T, Rank> trial(op, in, out, draw.of({1.0, 14.0, 100.0}), static_cast<int>(draw.below(4)),
                                  static_cast<int>(draw.below(4)));
  expect_right("elementwise operator " + std::to_string(static_cast<int>(op)) + text_of(in[0]) + text_of(out[0]), false,
               [&] { return trial.run_correct(); });
}

template <class T, int Rank>
void rope(Draw& draw) {
  auto extents      = draw.extents(Rank);
  const Placement x = draw.placement(extents), y = draw.placement(extents);
  const std::int64_t dim = extents[Rank - 1];
  RopeCase given;
  given.options.form            = all_rope_forms[draw.below(2)];
  given.options.rotary_dims     = dim % 2 != 0 || draw.yes() ? 2 * draw.below(dim / 2 + 1) : 0;
  given.options.sequence_axis   = static_cast<int>(draw.below(Rank - 1));
  given.options.position_offset = draw.of({0, 0, 1, 300});
  given.options.theta           = draw.of({10000.0, 500000.0, 3.0});
  given.has_tables              = draw.yes();
  given.is_backward             = draw.yes();
  given.is_in_place             = draw.yes();
  given.positions =
      draw.of({PositionsOf::index, PositionsOf::sequence, Rank > 2 ? PositionsOf::batch : PositionsOf::index});
  given.has_32_bits  = draw.yes();
  given.table_stride = draw.of({1, 1, 2});
  given.misalignment = draw.of({0, 0, 1, 4});
  if (!given.has_tables) given.options.position_scale = draw.of({1.0, 0.25, -1.0});
  if (dim % 2 != 0 && given.options.rotary_dims == 0) return;  // 0 is for all, which are odd
  RopeTrial<T, Rank> trial(x, y, given, draw.recipe());
  if (given.has_tables && given.positions != PositionsOf::index && x.count() > 0 && draw.yes()) {
    trial.position(0) = draw.of({std::int64_t(-400), trial.table_rows(), std::numeric_limits<std::int64_t>::min(),
                                 std::numeric_limits<std::int64_t>::max()});
    if (given.has_32_bits) trial.position(0) = -400;
    trial.upload_positions();
  }
  add_specials(draw, trial.x().host(), x, Rank - 1, 2);
  trial.x().upload();
  expect_right("rope" + text_of(x) + text_of(y), false, [&] { return trial.run_correct(); });
}

template <class T, class Q>
void quantized(Draw& draw) {
  auto extents   = draw.extents(3);
  const int axis = static_cast<int>(draw.below(3));
  if (extents[axis] == 0) extents[axis] = 1;  // without columns no scales are written
  const Placement x = draw.placement(extents), y = draw.placement(extents);
  QuantizedCase given;
  given.op                = quantized_operators[draw.below(3)];
  given.axis              = draw.yes() ? axis : axis - 3;
  given.scale             = draw.of({1.0, 1.0, -0.5, 3.0});
  given.masked_row        = draw.masked_row();
  given.weight_offset     = draw.of({0.0, 1.0});
  given.has_columns       = draw.yes();
  given.has_float_columns = draw.yes();
  given.has_scales        = std::is_same_v<Q, std::int8_t> || draw.yes();
  given.misalignment      = draw.of({0, 0, 1, 4});
  given.recipe            = draw.of({Recipe::uniform, Recipe::one_dominant, Recipe::all_equal});
  QuantizedTrial<T, Q, 3> trial(x, y, given);
  expect_right(
      "quantized " + std::string(to_string(given.op)) + text_of(x) + text_of(y) + " axis " + std::to_string(axis),
      false, [&] { return trial.run_correct(); });
}

template <class T>
void normalised_rope(Draw& draw) {
  auto extents      = draw.extents(4);
  const Placement x = draw.placement(extents), y = draw.placement(extents);
  const std::int64_t dim = extents[3];
  RmsNormRopeCase given;
  given.options.weight_offset        = draw.of({0.0, 1.0});
  given.options.rope.form            = both_rope_forms[draw.below(2)];
  given.options.rope.rotary_dims     = dim % 2 != 0 || draw.yes() ? 2 * draw.below(dim / 2 + 1) : 0;
  given.options.rope.sequence_axis   = static_cast<int>(draw.below(3));
  given.options.rope.position_offset = draw.of({0, 0, 1, 300});
  given.has_tables                   = draw.yes();
  given.weight       = draw.of({WeightOf::none, WeightOf::columns, WeightOf::heads, WeightOf::columns_in_float});
  given.is_in_place  = draw.yes();
  given.misalignment = draw.of({0, 0, 1, 4});
  if (dim % 2 != 0 && given.options.rope.rotary_dims == 0) return;  // 0 is for all, which are odd
  RmsNormRopeTrial<T> trial(x, y, given);
  expect_right("rms_norm_rope" + text_of(x) + text_of(y), false, [&] { return trial.run_correct(); });
}

}  // namespace

template <class T>
std::vector<Kind> element_kinds() {
  return {
      Kind{{}, elementwise<T, 1>}, Kind{{}, elementwise<T, 3>},         Kind{{}, rope<T, 2>},
      Kind{{}, rope<T, 4>},        Kind{{}, quantized<T, std::int8_t>}, Kind{{}, quantized<T, KokkosNN::float8_e4m3>},
      Kind{{}, normalised_rope<T>}};
}

template std::vector<Kind> element_kinds<float>();
template std::vector<Kind> element_kinds<double>();
template std::vector<Kind> element_kinds<Half>();
template std::vector<Kind> element_kinds<BHalf>();

}  // namespace KokkosNNTest
