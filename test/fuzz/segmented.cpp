// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "kinds.hpp"

#include "../support/heads.hpp"
#include "../support/segmented.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

// Random calls of ragged rows and their gradients.

namespace KokkosNNTest {
namespace {

Lengths draw_lengths(Draw& draw) {
  std::int64_t room = draw.of({300, 300, 300, 300, 300, 300, 3000, 20000});
  Lengths lengths(draw.below(60));
  for (auto& length : lengths) {
    length = std::min<std::int64_t>(room, draw.below(draw.of({2, 10, 60, 700, 9000})));
    room -= length;
  }
  return lengths;
}

HeadLayout draw_output_layout(Draw& draw) { return output_layouts[draw.below(std::size(output_layouts))]; }
HeadLayout draw_input_layout(Draw& draw) {
  return draw.below(6) == 0 ? HeadLayout::one_head : draw_output_layout(draw);
}
std::int64_t draw_heads(Draw& draw) { return draw.of({1, 2, 3, 4, 4, 4, 5, 8, 17}); }

std::string name_of(RowOperator op, const Lengths& lengths, std::int64_t heads) {
  return "segmented_" + std::string(to_string(op)) + ", " + std::to_string(lengths.size()) + " rows of " +
         std::to_string(heads) + " heads";
}

template <RowOperator Op, class T>
void segmented_gradient(Draw& draw) {
  const Lengths lengths = draw_lengths(draw);
  if (draw.yes()) {
    const std::int64_t heads = draw_heads(draw);
    const HeadLayout y = draw_output_layout(draw), dy = draw_output_layout(draw), dx = draw_output_layout(draw);
    HeadsGradientTrial<Op, T> trial(lengths, heads, y, draw.yes() ? y : dy, draw.yes() ? y : dx,
                                    draw.of({1.0, 0.125, -1.0}));
    return expect_right(name_of(Op, lengths, heads), false, [&] { return trial.run_correct(); });
  }
  SegmentedGradientTrial<Op, T> trial(lengths, draw.of({1.0, 0.125, -1.0}), static_cast<int>(draw.below(4)));
  expect_right("segmented_" + std::string(to_string(Op)) + ", " + std::to_string(lengths.size()) + " rows", false,
               [&] { return trial.run_correct(); });
}

/// Offsets that are none, and that nobody checks. What comes of it is undefined; that nothing else is read or written
/// is for the sanitizer, and for the guards beside the outputs.
template <class T>
void bad_offsets(Draw& draw) {
  const std::int64_t n    = draw.below(draw.of({5, 200, 30000}));
  const std::int64_t rows = draw.below(40);
  std::vector<std::int64_t> drawn;
  for (std::int64_t r = 0; r <= rows; ++r)
    drawn.push_back(draw.of({std::int64_t(0), std::int64_t(1), n, n + 1, n / 2, draw.below(n + 1), -draw.below(9),
                             std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}));
#ifdef __SANITIZE_THREAD__
  // Where offsets descend, rows overlap, and each writes its own: a race that the caller asked for. Those that ascend
  // only leave the values.
  std::ranges::sort(drawn);
#endif
  const auto offsets = raw_offsets(drawn);
  Buffer<T> x(n), y(n), lse(rows);
  for (std::int64_t i = 0; i < n; ++i) x.host()[i] = T(0.5);
  x.upload();
  const auto view_of = [](Buffer<T>& b) { return strided_view<1>(b.device(), right({b.count()})); };
  expect_right("offsets that are none, of " + std::to_string(n) + " values", false, [&] {
    KokkosNN::segmented_softmax(view_of(x), offsets, view_of(y));
    KokkosNN::segmented_log_softmax(view_of(x), offsets, view_of(y));
    KokkosNN::segmented_logsumexp(view_of(x), offsets, view_of(lse));
    KokkosNN::segmented_softmax_backward(view_of(x), view_of(x), offsets, view_of(y));
    KokkosNN::segmented_log_softmax_backward(view_of(x), view_of(x), offsets, view_of(y));
    Kokkos::fence();
    y.download();
    lse.download();
    return y.guards_intact() && lse.guards_intact() ? ::testing::AssertionSuccess()
                                                    : ::testing::AssertionFailure() << "written outside of an output";
  });
}

template <RowOperator Op, class T>
void segmented(Draw& draw) {
  const Lengths lengths = draw_lengths(draw);
  const SegmentedOptions options{.scale = draw.scale(), .masked_row = draw.masked_row(), .check_offsets = draw.yes()};
  if (draw.yes()) {
    const std::int64_t heads = draw_heads(draw);
    const HeadLayout y = draw_output_layout(draw), x = draw_input_layout(draw);
    HeadsTrial<Op, T> trial(lengths, heads, draw.yes() ? y : x, y, draw.recipe(), draw.below(5));
    return expect_right(name_of(Op, lengths, heads), false, [&] { return trial.run_correct(options); });
  }
  SegmentedTrial<Op, T> trial(lengths, draw.recipe(), static_cast<int>(draw.below(4)), static_cast<int>(draw.below(4)),
                              draw.below(5), draw.below(5));
  expect_right("segmented_" + std::string(to_string(Op)) + ", " + std::to_string(lengths.size()) + " rows", false,
               [&] { return trial.run_correct(options); });
}

}  // namespace

template <class T>
std::vector<Kind> segmented_kinds() {
  return {Kind{{RowOperator::softmax}, segmented<RowOperator::softmax, T>},
          Kind{{RowOperator::log_softmax}, segmented<RowOperator::log_softmax, T>},
          Kind{{RowOperator::logsumexp}, segmented<RowOperator::logsumexp, T>},
          Kind{{RowOperator::softmax_backward}, segmented_gradient<RowOperator::softmax_backward, T>},
          Kind{{RowOperator::log_softmax_backward}, segmented_gradient<RowOperator::log_softmax_backward, T>},
          Kind{{}, bad_offsets<T>}};
}

template std::vector<Kind> segmented_kinds<float>();
template std::vector<Kind> segmented_kinds<double>();
template std::vector<Kind> segmented_kinds<Half>();
template std::vector<Kind> segmented_kinds<BHalf>();

}  // namespace KokkosNNTest
