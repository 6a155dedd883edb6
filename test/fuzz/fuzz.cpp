// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// \file
/// Calls made of random bytes, against the reference. The bytes choose operator, types, rank, extents, strides, axis,
/// options, mask, plan and what values the input holds. A call must be right, or, where a plan is forced that cannot
/// serve it, refused. Built by the preset dev-fuzz it is a libFuzzer program; otherwise it runs so many cases from a
/// seed: kokkosnn_fuzz [cases [seed]].

#include "../support/attention.hpp"
#include "../support/check.hpp"
#include "../support/cross_entropy.hpp"
#include "../support/elementwise.hpp"
#include "../support/gradient.hpp"
#include "../support/masked.hpp"
#include "../support/matmul.hpp"
#include "../support/norm.hpp"
#include "../support/quantized.hpp"
#include "../support/rms_norm_rope.hpp"
#include "../support/heads.hpp"
#include "../support/rope.hpp"
#include "../support/soft_cross_entropy.hpp"
#include "../support/segmented.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace KokkosNNTest {
namespace {

/// Numbers from the input's bytes; zeros behind its end.
class Draw {
 public:
  Draw(const std::uint8_t* data, std::size_t size) : m_data(data), m_size(size) {}

  std::uint8_t byte() { return m_next < m_size ? m_data[m_next++] : 0; }
  std::int64_t below(std::int64_t n) { return (byte() + 256 * (n > 256 ? byte() : 0)) % n; }
  bool yes() { return (byte() & 1) != 0; }
  template <class T, std::size_t n>
  T of(const T (&choices)[n]) {
    return choices[below(n)];
  }

  /// Extent of an axis: mostly short, sometimes beyond what a pack, a tile or a team holds, at most `room`.
  std::int64_t extent(std::int64_t& room) {
    const std::int64_t most = std::min<std::int64_t>(room, of({4, 4, 4, 40, 40, 40, 300, 1200}));
    const std::int64_t n    = below(most + 1);
    room /= std::max<std::int64_t>(1, n);
    return n;
  }

  std::vector<std::int64_t> extents(int rank) {
    std::int64_t room = of({200, 200, 200, 1200});
    std::vector<std::int64_t> result(rank);
    for (auto& n : result) n = extent(room);
    return result;
  }

  /// Axes in any order in memory, with gaps between them.
  Placement placement(std::vector<std::int64_t> extents) {
    Placement place{std::move(extents), {}, of({0, 0, 1, 3})};
    place.strides.assign(place.extents.size(), 0);
    std::vector<int> order(place.extents.size());
    for (int d = 0; d < place.rank(); ++d) order[d] = place.rank() - 1 - d;
    if (yes()) {
      for (int d = place.rank() - 1; d > 0; --d) std::swap(order[d], order[below(d + 1)]);
    }
    std::int64_t stride = 1;
    for (const int d : order) {
      place.strides[d] = stride;
      stride           = stride * std::max<std::int64_t>(1, place.extents[d]) + of({0, 0, 0, 1, 5});
    }
    return place;
  }

  double scale() { return of({1.0, 1.0, 0.125, -1.0, -0.37, 7.5, 1e-3, 1e3}); }
  MaskedRowPolicy masked_row() { return yes() ? MaskedRowPolicy::zero : MaskedRowPolicy::nan; }
  Recipe recipe() { return all_recipes[below(all_recipes.size())]; }

  /// A plan request: about half of the time it forces one of six strategies.
  KokkosNN::PlanRequest plan() {
    KokkosNN::PlanRequest request;
    if (yes()) return request;
    request.strategy =
        of({RowStrategy::automatic, RowStrategy::vector_lanes, RowStrategy::team_scratch, RowStrategy::team_registers,
            RowStrategy::team_online, RowStrategy::split_row, RowStrategy::inner_lanes});
    request.packs_per_thread = of({0, 0, 0, 1, 2, 4, 8});
    request.team_size        = of({0, 0, 0, 1, 2, 64});
    return request;
  }

  Determinism determinism() { return yes() ? Determinism::batch_invariant : Determinism::run_to_run; }

 private:
  const std::uint8_t* m_data;
  std::size_t m_size;
  std::size_t m_next = 0;
};

[[noreturn]] void complain(const std::string& what, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", what.c_str(), why.c_str());
  std::abort();
}

/// run() must succeed; only where a plan is forced may it be refused.
template <class Run>
void expect_right(const std::string& what, bool may_be_refused, const Run& run) {
  try {
    const ::testing::AssertionResult result = run();
    if (!result) complain(what, result.message());
  } catch (const std::invalid_argument& refusal) {
    if (!may_be_refused) complain(what, refusal.what());
  }
}

std::string text_of(const Placement& place) {
  std::string text = " [";
  for (int d = 0; d < place.rank(); ++d) {
    text += std::to_string(place.extents[d]) + " by " + std::to_string(place.strides[d]) +
            (d + 1 < place.rank() ? ", " : "");
  }
  return text + "]";
}

/// Puts a few NaN, infinities, zeros and extreme numbers into a tensor, at times into a whole row. `headroom`: powers
/// of two between the largest of them and the end of T's range.
template <class T>
void add_specials(Draw& draw, T* data, const Placement& place, int axis, int headroom) {
  using A          = KokkosNN::accumulator_t<T>;
  const A infinity = std::numeric_limits<A>::infinity();
  const int digits = Format<T>::digits, min_exponent = Format<T>::min_exponent;
  const A smallest = std::ldexp(A(1), min_exponent - digits + 1);
  const A large    = std::ldexp(2 - std::ldexp(A(1), 1 - digits), 1 - min_exponent - headroom);
  if (place.count() == 0) return;
  for (std::int64_t n = draw.of({0, 0, 0, 1, 2, 5}); n > 0; --n) {
    const A value = draw.of(
        {std::numeric_limits<A>::quiet_NaN(), infinity, -infinity, -infinity, A(-0.0), smallest, large, -large});
    std::int64_t offset = place.origin;
    for (int d = 0; d < place.rank(); ++d) offset += place.strides[d] * draw.below(place.extents[d]);
    const bool whole_row = value == -infinity && draw.yes();
    if (!whole_row) {
      data[offset] = static_cast<T>(value);
      continue;
    }
    std::int64_t first = place.origin;
    for (int d = 0; d < place.rank(); ++d) {
      if (d != axis) first += place.strides[d] * draw.below(place.extents[d]);
    }
    for (std::int64_t i = 0; i < place.extents[axis]; ++i)
      data[first + i * place.strides[axis]] = static_cast<T>(value);
  }
}

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

MatmulOptions matmul_options(Draw& draw) {
  MatmulOptions options;
  options.alpha        = draw.of({1.0, 1.0, 0.5, -2.0, 0.0});
  options.beta         = draw.of({0.0, 0.0, 1.0, -0.5});
  options.determinism  = draw.determinism();
  options.tuning.parts = static_cast<int>(draw.of({0, 0, 1, 3}));
  options.provider     = draw.yes() ? KokkosNN::MatmulProvider::automatic : KokkosNN::MatmulProvider::own;
  options.tuning.group = static_cast<int>(draw.of({0, 0, 1, 3}));
  return options;
}

/// A batch of products, whose operands may broadcast. Few of them have sums of more than a part.
template <class T>
void product(Draw& draw) {
  std::int64_t room        = 3000;
  const std::int64_t batch = draw.below(4), m = draw.extent(room), n = draw.extent(room);
  const std::int64_t k = m * n <= 40 && draw.below(8) == 0 ? 2000 + draw.below(4000) : draw.extent(room);
  const auto batches   = [&] { return draw.yes() ? batch : 1; };
  const Matrix<T> a(draw.placement({batches(), m, k}), 1, static_cast<int>(draw.of({0, 0, 1})));
  const Matrix<T> b(draw.placement({batches(), k, n}), 2, static_cast<int>(draw.of({0, 0, 1})));
  Matrix<T> c(draw.placement({batch, m, n}), 3);
  const Matrix<T> before(c.place, 3);
  const MatmulOptions options = matmul_options(draw);
  expect_right("matmul" + text_of(a.place) + text_of(b.place) + text_of(c.place), false, [&] {
    KokkosNN::matmul(Exec(), a.template view<3>(), b.template view<3>(), c.template view<3>(), options);
    Exec().fence();
    c.buffer.download();
    const Worst worst = compare(a, b, c, before, options, [](long double sum, const auto&) { return sum; });
    return worst.share <= 1 && c.gaps_are_intact() ? ::testing::AssertionSuccess()
                                                   : ::testing::AssertionFailure() << worst.where;
  });
}

/// Rows of a by an index of which some are none, and sums of these, by offsets of which some are out of order: c's
/// content is undefined then, but what is around it is not.
template <class T>
void product_of_rows(Draw& draw) {
  std::int64_t room           = 2000;
  const std::int64_t products = draw.extent(room), n = draw.extent(room), k = draw.extent(room);
  const std::int64_t sums = draw.below(12), rows = 1 + draw.below(20);
  const bool has_bad_offsets = draw.below(4) == 0;
  const Kokkos::View<std::int32_t*, Exec> index("index", products);
  const Kokkos::View<std::int64_t*, Exec> offsets("offsets", sums + 1);
  const auto host_index   = Kokkos::create_mirror_view(index);
  const auto host_offsets = Kokkos::create_mirror_view(offsets);
  for (std::int64_t i = 0; i < products; ++i) host_index(i) = static_cast<std::int32_t>(draw.below(rows + 1) - 1);
  for (std::int64_t r = 0; r <= sums; ++r) host_offsets(r) = draw.below(products + 1);
  if (!has_bad_offsets) std::sort(host_offsets.data(), host_offsets.data() + sums + 1);
  Kokkos::deep_copy(index, host_index);
  Kokkos::deep_copy(offsets, host_offsets);
  const Matrix<T> a(draw.placement({rows, k}), 1), b(draw.placement({k, n}), 2);
  Matrix<T> c(draw.placement({sums, n}), 3);
  const Matrix<T> before(c.place, 3);
  const MatmulOptions options = matmul_options(draw);
  const auto is_right         = [&](std::int64_t r, std::int64_t j) {
    long double sum = options.beta == 0 ? 0 : options.beta * before.at({r, j}), size = std::fabs(sum);
    bool is_nan              = false;
    const std::int64_t count = host_offsets(r + 1) - host_offsets(r);
    for (std::int64_t i = host_offsets(r); options.alpha != 0 && i < host_offsets(r + 1); ++i) {
      is_nan = is_nan || host_index(i) < 0;
      for (std::int64_t q = 0; !is_nan && q < k; ++q) {
        const long double term = options.alpha * a.at({host_index(i), q}) * b.at({q, j});
        sum += term;
        size += std::fabs(term);
      }
    }
    const long double value = c.at({r, j});
    if (is_nan) return std::isnan(value);
    const long double u = unit_of<KokkosNN::accumulator_t<T>>() * (is_16_bit<T> ? 2 : 1);
    return std::fabs(value - sum) <= static_cast<long double>(k + count + 8) * u * (size + std::fabs(sum)) +
                                         unit_of<T>() * std::fabs(sum) +
                                         std::ldexp(1.0L, Format<T>::min_exponent - Format<T>::digits + 1);
  };
  expect_right("matmul of rows" + text_of(a.place) + text_of(b.place) + text_of(c.place), false, [&] {
    KokkosNN::matmul(Exec(), KokkosNN::GatheredRows{a.template view<2>(), index}, b.template view<2>(),
                     KokkosNN::SummedRows{c.template view<2>(), offsets}, options);
    Exec().fence();
    c.buffer.download();
    if (!c.gaps_are_intact()) return ::testing::AssertionFailure() << "written outside of c";
    for (std::int64_t r = 0; !has_bad_offsets && r < sums; ++r) {
      for (std::int64_t j = 0; j < n; ++j) {
        if (!is_right(r, j)) return ::testing::AssertionFailure() << "row " << r << ", column " << j;
      }
    }
    return ::testing::AssertionSuccess();
  });
}

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

/// Heads in groups, and lengths and dims that are mostly short.
HeadExtents head_extents(Draw& draw, int batch) {
  const int kv_heads  = static_cast<int>(1 + draw.below(2));
  std::int64_t room   = 300;
  const int queries   = static_cast<int>(draw.extent(room));
  const int keys      = static_cast<int>(draw.extent(room));
  const auto draw_dim = [&] { return static_cast<int>(1 + draw.below(draw.of({4, 20, 20, 20, 70}))); };
  const int dim       = draw_dim();
  const int group     = static_cast<int>(1 + draw.below(3));
  return {batch, kv_heads * group, kv_heads, queries, keys, dim, draw.yes() ? dim : draw_dim()};
}

std::string text_of(const HeadExtents& n) {
  std::string text = " of batch, heads, heads of k, queries, keys, dims";
  for (const int extent : {n.batch, n.heads, n.kv_heads, n.queries, n.keys, n.dim, n.value_dim}) {
    text += ' ' + std::to_string(extent);
  }
  return text;
}

KokkosNN::AttentionOptions attention_options(Draw& draw) {
  KokkosNN::AttentionOptions options;
  options.scale      = draw.of({0.0, 0.0, 0.5, -0.3});
  options.softcap    = draw.of({0.0, 0.0, 3.0});
  options.masked_row = draw.masked_row();
  return options;
}

/// Every kind of mask at once, most of which rule nothing out, so that little is compiled.
template <class T>
struct DrawnMask {
  HeadExtents n;
  std::int64_t causal, left, right, window, alibi, diagonal;
  MaskData<int, 1> lengths, offsets;
  MaskData<std::uint8_t, 4> keep;
  MaskData<T, 4> bias;
  MaskData<float, 1> slopes;

  static constexpr std::int64_t far = 100000;

  DrawnMask(Draw& draw, const HeadExtents& extents, bool ends_align)
      : n(extents),
        causal(draw.of({far, far, draw.below(9) - 4, std::int64_t(n.keys) / 2})),
        left(draw.yes() ? KokkosNN::SlidingWindow::unbounded : draw.below(12)),
        right(draw.yes() ? KokkosNN::SlidingWindow::unbounded : draw.below(12)),
        window(draw.below(9) - 4),
        alibi(draw.below(9) - 4),
        diagonal(ends_align ? n.keys - n.queries : 0),
        lengths(test_right({n.batch}), numbers(draw.byte(), n.keys + 5, 2, n.keys)),
        offsets(test_right({n.batch}), numbers(draw.byte(), 9, 4, 0)),
        keep(draw.placement({n.batch, 1, n.queries, n.keys}), kept(draw.byte())),
        bias(draw.placement({1, n.heads, n.queries, n.keys}), biases(draw.yes())),
        slopes(test_right({n.heads}), [steepness = draw.of({0.0f, 0.0f, 0.125f})](const auto& index) {
          return steepness * static_cast<float>(index[0] + 1);
        }) {}

  auto mask() const {
    return KokkosNN::masks(KokkosNN::CausalMask{causal}, KokkosNN::SlidingWindow{left, right, window},
                           KokkosNN::RowLengths{lengths.view()}, KokkosNN::DiagonalOffsets{offsets.view()},
                           KokkosNN::BooleanMask{keep.view()}, KokkosNN::AdditiveBias{bias.view()},
                           KokkosNN::Alibi{slopes.view(), alibi});
  }
  long double operator()(int b, int h, int i, int j, long double s) const {
    const std::int64_t at = i + diagonal + offsets({b});
    const bool is_left_of = left != KokkosNN::SlidingWindow::unbounded && j < at + window - left;
    const bool is_right   = right != KokkosNN::SlidingWindow::unbounded && j > at + window + right;
    if (j > at + causal || is_left_of || is_right || j >= lengths({b}) || keep({b, 0, i, j}) == 0)
      return -infinite_logit;
    return s + Real(bias({0, h, i, j})) - slopes({h}) * static_cast<Real>(std::abs(j - (at + alibi)));
  }

 private:
  static Placement test_right(std::vector<std::int64_t> extents) { return KokkosNNTest::right(std::move(extents)); }
  /// A number for each batch entry, or the same for all.
  static auto numbers(std::uint8_t seed, int range, int below, int usual) {
    return [=](const auto& index) {
      return seed % 2 == 0 ? usual : static_cast<int>((index[0] * 31 + seed) % range) - below;
    };
  }
  static auto kept(std::uint8_t seed) {
    return [=](const auto& index) { return std::uint8_t(seed % 2 == 0 || noise_at(index, 1) * 128 < seed - 128); };
  }
  static auto biases(bool have_any) {
    return [=](const auto& index) { return static_cast<T>(have_any ? noise_at(index, 3) : 0.0); };
  }
};

/// Results and gradients have errors of 1 at most in their units, and nothing is written outside of outputs.
template <class T, class Options>
::testing::AssertionResult are_right(const AttentionTrial<T>& trial, AttentionGradientTrial<T>& gradients,
                                     const Logit& logit, const Options& options, long double sink = -infinite_logit) {
  gradients.download();
  const long double if_masked = options.masked_row == MaskedRowPolicy::zero ? 0 : NAN;
  const double error          = trial.error(logit, options.scale, sink, if_masked);
  if (!(error <= 1)) return ::testing::AssertionFailure() << "an error of " << error;
  const double of_gradients = gradients.error(logit, options.scale, options.softcap, sink);
  if (!(of_gradients <= 1)) return ::testing::AssertionFailure() << "an error of " << of_gradients << " of gradients";
  return trial.o.gaps_are_intact() && gradients.gaps_are_intact()
             ? ::testing::AssertionSuccess()
             : ::testing::AssertionFailure() << "written outside of an output";
}

/// A call of attention and its gradients.
template <class T>
void attention(Draw& draw) {
  const HeadExtents n                = head_extents(draw, static_cast<int>(draw.below(3)));
  KokkosNN::AttentionOptions options = attention_options(draw);
  const bool ends_align = draw.yes(), has_sinks = draw.yes(), is_plain = draw.below(4) == 0;
  if (ends_align) options.diagonal = KokkosNN::AttentionDiagonal::last;
  const Kokkos::View<float*, Memory> sinks("sinks", n.heads);
  Kokkos::deep_copy(sinks, 0.75f);
  if (has_sinks) options.sinks = sinks;
  const long double sink = has_sinks ? 0.75L : -infinite_logit;
  const DrawnMask<T> mask(draw, n, ends_align);
  const Logit logit = [&](int b, int h, int i, int j, long double s) {
    if (options.softcap != 0) s = options.softcap * std::tanh(s / options.softcap);
    return is_plain ? s : mask(b, h, i, j, s);
  };
  AttentionTrial<T> trial(n, draw.yes(), draw.yes());
  if (draw.below(3) == 0) {
    options.dropout = {0.3, static_cast<std::uint64_t>(draw.below(1000)), static_cast<std::uint32_t>(draw.below(3))};
    trial.factor_of = dropout_factors(options.dropout, n.heads);
  }
  AttentionGradientTrial<T> gradients(trial, draw.yes(), draw.yes());
  const auto call = [&](const auto& all) {
    trial.run(all, options);
    KokkosNN::attention_backward(Exec(), trial.q.view, trial.k.view, trial.v.view, trial.o.view, gradients.dout.view,
                                 trial.lse, all, gradients.dq.view, gradients.dk.view, gradients.dv.view, options);
  };
  expect_right("attention" + text_of(n), false, [&] {
    is_plain ? call(KokkosNN::masks()) : call(mask.mask());
    return are_right(trial, gradients, logit, options, sink);
  });
}

/// Some increasing numbers from 0 to `last`.
std::vector<std::int64_t> draw_offsets(Draw& draw, std::int64_t count, std::int64_t last) {
  std::vector<std::int64_t> offsets{0};
  for (std::int64_t i = 1; i < count; ++i) offsets.push_back(draw.below(last + 1));
  offsets.push_back(last);
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}
Kokkos::View<std::int64_t*, Memory> view_of(const std::vector<std::int64_t>& numbers) {
  const Kokkos::View<std::int64_t*, Memory> view("numbers", numbers.size());
  const auto host = Kokkos::create_mirror_view(view);
  std::copy(numbers.begin(), numbers.end(), host.data());
  Kokkos::deep_copy(view, host);
  return view;
}

/// Log-sum-exps of a batch of one with the axes (sequence, head).
template <class T>
auto lse_rows(const AttentionTrial<T>& t) {
  return Kokkos::View<KokkosNN::accumulator_t<T>**, Kokkos::LayoutStride, Memory>(
      t.lse.data(), Kokkos::LayoutStride(t.n.queries, t.lse.stride(2), t.n.heads, t.lse.stride(1)));
}

/// Packed sequences are blocks on a diagonal of the scores.
template <class T>
void packed(Draw& draw) {
  const HeadExtents n                      = head_extents(draw, 1);
  const KokkosNN::AttentionOptions options = attention_options(draw);
  const std::int64_t sequences = 1 + draw.below(5), offset = draw.of({std::int64_t(100000), draw.below(9) - 4});
  const auto queries = draw_offsets(draw, sequences, n.queries), keys = draw_offsets(draw, sequences, n.keys);
  const auto query_offsets = view_of(queries), key_offsets = view_of(keys);
  AttentionTrial<T> trial(n, draw.yes(), draw.yes());
  AttentionGradientTrial<T> gradients(trial, draw.yes(), draw.yes());
  const Logit logit = [&](int, int, int i, int j, long double s) {
    if (options.softcap != 0) s = options.softcap * std::tanh(s / options.softcap);
    const auto next = std::upper_bound(queries.begin(), queries.end(), i) - queries.begin();
    const bool sees = j >= keys[next - 1] && j < keys[next] && j - keys[next - 1] <= i - queries[next - 1] + offset;
    return sees ? s : -infinite_logit;
  };
  expect_right("packed_attention" + text_of(n), false, [&] {
    const KokkosNN::CausalMask mask{offset};
    KokkosNN::packed_attention(Exec(), trial.q.rows(), trial.k.rows(), trial.v.rows(), query_offsets, key_offsets,
                               trial.o.rows(), mask, options, lse_rows(trial));
    KokkosNN::packed_attention_backward(Exec(), trial.q.rows(), trial.k.rows(), trial.v.rows(), query_offsets,
                                        key_offsets, trial.o.rows(), gradients.dout.rows(), lse_rows(trial), mask,
                                        gradients.dq.rows(), gradients.dk.rows(), gradients.dv.rows(), options);
    trial.o.download();
    return are_right(trial, gradients, logit, options);
  });
}

/// Parts of the keys, joined. Parts of 16 bits would have errors of their own.
template <class T>
void merged(Draw& draw) {
  using A = KokkosNN::accumulator_t<T>;
  if constexpr (std::is_same_v<T, A>) {
    const HeadExtents n                      = head_extents(draw, static_cast<int>(draw.below(3)));
    const KokkosNN::AttentionOptions options = attention_options(draw);
    const std::int64_t parts                 = 1 + draw.below(5);
    const auto cuts                          = draw_offsets(draw, parts, n.keys);
    AttentionTrial<T> trial(n, draw.yes(), draw.yes());
    const Kokkos::View<T*****, Memory> o_parts("o parts", parts, n.batch, n.heads, n.queries, n.value_dim);
    const Kokkos::View<A****, Memory> lse_parts("lse parts", parts, n.batch, n.heads, n.queries);
    const Logit logit = [&](int, int, int, int, long double s) {
      return options.softcap == 0 ? s : options.softcap * std::tanh(s / options.softcap);
    };
    expect_right("merge_attention" + text_of(n), false, [&] {
      const auto all = Kokkos::ALL;
      for (std::int64_t p = 0; p < parts; ++p) {
        const auto keys = std::pair(cuts[p], cuts[p + 1]);
        KokkosNN::attention(Exec(), trial.q.view, Kokkos::subview(trial.k.view, all, all, keys, all),
                            Kokkos::subview(trial.v.view, all, all, keys, all),
                            Kokkos::subview(o_parts, p, all, all, all, all), KokkosNN::masks(), options,
                            Kokkos::subview(lse_parts, p, all, all, all));
      }
      KokkosNN::merge_attention(Exec(), o_parts, lse_parts, trial.o.view, options, trial.lse);
      Exec().fence();
      trial.o.download();
      const long double if_masked = options.masked_row == MaskedRowPolicy::zero ? 0 : NAN;
      const double error          = trial.error(logit, options.scale, -infinite_logit, if_masked);
      return error <= 2 && trial.o.gaps_are_intact()
                 ? ::testing::AssertionSuccess()
                 : ::testing::AssertionFailure() << "an error of " << error << ", or written outside of o";
    });
  }
}

/// A graph without two edges between the same nodes is a mask of the scores; some of its edges are none.
template <class T>
void graph(Draw& draw) {
  const HeadExtents n                      = head_extents(draw, 1);
  const KokkosNN::AttentionOptions options = attention_options(draw);
  const std::uint8_t density               = draw.byte();
  std::vector<std::int64_t> rows{0}, entries;
  std::vector<std::vector<std::int64_t>> edge_of(n.queries, std::vector<std::int64_t>(n.keys, -1));
  for (int i = 0; i < n.queries; ++i) {
    for (int j = 0; j < n.keys; ++j) {
      if ((i * 37 + j * 11) % 256 > density) continue;
      edge_of[i][j] = static_cast<std::int64_t>(entries.size());
      entries.push_back(j);
    }
    if (i % 3 == 1) entries.push_back(i % 2 == 0 ? -1 : n.keys);
    rows.push_back(static_cast<std::int64_t>(entries.size()));
  }
  const Kokkos::View<float**, Memory> bias("bias", entries.size(), n.heads), dbias("dbias", entries.size(), n.heads);
  const auto host_bias = Kokkos::create_mirror_view(bias);
  for (std::size_t e = 0; e < entries.size(); ++e)
    for (int h = 0; h < n.heads; ++h) host_bias(e, h) = static_cast<float>(value_at(std::int64_t(e) * 5 + h));
  Kokkos::deep_copy(bias, host_bias);
  const auto row_map = view_of(rows), columns = view_of(entries);
  AttentionTrial<T> trial(n, draw.yes(), draw.yes());
  AttentionGradientTrial<T> gradients(trial, draw.yes(), draw.yes());
  const Logit logit = [&](int, int h, int i, int j, long double s) {
    if (options.softcap != 0) s = options.softcap * std::tanh(s / options.softcap);
    return edge_of[i][j] < 0 ? -infinite_logit : s + host_bias(edge_of[i][j], h);
  };
  expect_right("graph_attention" + text_of(n), false, [&] {
    KokkosNN::graph_attention(Exec(), trial.q.rows(), trial.k.rows(), trial.v.rows(), row_map, columns, trial.o.rows(),
                              options, bias, lse_rows(trial));
    KokkosNN::graph_attention_backward(Exec(), trial.q.rows(), trial.k.rows(), trial.v.rows(), row_map, columns,
                                       trial.o.rows(), gradients.dout.rows(), lse_rows(trial), gradients.dq.rows(),
                                       gradients.dk.rows(), gradients.dv.rows(), options, bias, dbias);
    trial.o.download();
    return are_right(trial, gradients, logit, options);
  });
}

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

/// A kind of random call, and the operators that it reaches.
struct Kind {
  std::vector<RowOperator> operators;
  void (*run)(Draw&);
};

template <class T>
const std::array kinds_of{
    Kind{{RowOperator::softmax}, forward<RowOperator::softmax, T, 1>},
    Kind{{RowOperator::softmax}, forward<RowOperator::softmax, T, 2>},
    Kind{{RowOperator::softmax}, forward<RowOperator::softmax, T, 3>},
    Kind{{RowOperator::log_softmax}, forward<RowOperator::log_softmax, T, 2>},
    Kind{{RowOperator::log_softmax}, forward<RowOperator::log_softmax, T, 4>},
    Kind{{RowOperator::logsumexp}, forward<RowOperator::logsumexp, T, 1>},
    Kind{{RowOperator::logsumexp}, forward<RowOperator::logsumexp, T, 3>},
    Kind{{RowOperator::softmax_backward}, gradient<RowOperator::softmax_backward, T, 3>},
    Kind{{RowOperator::log_softmax_backward}, gradient<RowOperator::log_softmax_backward, T, 2>},
    Kind{{RowOperator::logsumexp_backward}, gradient<RowOperator::logsumexp_backward, T, 3>},
    Kind{{RowOperator::masked_softmax, RowOperator::masked_softmax_backward}, masked<RowOperator::masked_softmax, T>},
    Kind{{RowOperator::masked_log_softmax, RowOperator::masked_log_softmax_backward},
         masked<RowOperator::masked_log_softmax, T>},
    Kind{{RowOperator::masked_logsumexp}, masked<RowOperator::masked_logsumexp, T>},
    Kind{{RowOperator::softmax}, segmented<RowOperator::softmax, T>},
    Kind{{RowOperator::logsumexp}, segmented<RowOperator::logsumexp, T>},
    Kind{{RowOperator::cross_entropy}, loss<RowOperator::cross_entropy, T>},
    Kind{{RowOperator::cross_entropy_backward}, loss<RowOperator::cross_entropy_backward, T>},
    Kind{{RowOperator::log_softmax}, segmented<RowOperator::log_softmax, T>},
    Kind{{RowOperator::softmax_backward}, segmented_gradient<RowOperator::softmax_backward, T>},
    Kind{{RowOperator::log_softmax_backward}, segmented_gradient<RowOperator::log_softmax_backward, T>},
    Kind{{}, bad_offsets<T>},
    Kind{{RowOperator::cross_entropy_with_gradient}, loss<RowOperator::cross_entropy_with_gradient, T>},
    Kind{{RowOperator::soft_cross_entropy}, soft_loss<RowOperator::soft_cross_entropy, T>},
    Kind{{RowOperator::soft_cross_entropy_with_gradient}, soft_loss<RowOperator::soft_cross_entropy_with_gradient, T>},
    Kind{{RowOperator::rms_norm}, norm<RowOperator::rms_norm, T, 2>},
    Kind{{RowOperator::layer_norm}, norm<RowOperator::layer_norm, T, 3>},
    Kind{{RowOperator::rms_norm_backward}, norm<RowOperator::rms_norm_backward, T, 3>},
    Kind{{RowOperator::layer_norm_backward}, norm<RowOperator::layer_norm_backward, T, 2>},
    Kind{{RowOperator::add_rms_norm}, norm<RowOperator::add_rms_norm, T, 3>},
    Kind{{RowOperator::add_layer_norm}, norm<RowOperator::add_layer_norm, T, 2>},
    Kind{{RowOperator::add_rms_norm_backward}, norm<RowOperator::add_rms_norm_backward, T, 2>},
    Kind{{RowOperator::add_layer_norm_backward}, norm<RowOperator::add_layer_norm_backward, T, 3>},
    Kind{{}, elementwise<T, 1>},
    Kind{{}, elementwise<T, 3>},
    Kind{{}, attention<T>},
    Kind{{}, packed<T>},
    Kind{{}, merged<T>},
    Kind{{}, graph<T>},
    Kind{{}, product<T>},
    Kind{{}, product_of_rows<T>},
    Kind{{}, rope<T, 2>},
    Kind{{}, rope<T, 4>},
    Kind{{}, quantized<T, std::int8_t>},
    Kind{{}, quantized<T, float8_e4m3>},
    Kind{{}, normalised_rope<T>}};

template <class T>
void one_case(Draw& draw) {
  kinds_of<T>[draw.below(kinds_of<T>.size())].run(draw);
}

/// Ends the program where an operator of the table is in no kind of call.
void require_every_operator() {
  for (int op = 0; op < KokkosNN::operator_count; ++op) {
    const bool is_reached = std::ranges::any_of(kinds_of<float>, [&](const Kind& kind) {
      return std::ranges::find(kind.operators, RowOperator(op)) != kind.operators.end();
    });
    if (is_reached) continue;
    std::fprintf(stderr, "no random call reaches the operator %s\n", to_string(RowOperator(op)));
    std::abort();
  }
}

void one_input(const std::uint8_t* data, std::size_t size) {
  Draw draw(data, size);
  switch (draw.below(6)) {
    case 0:
    case 1:
      return one_case<double>(draw);
    case 2:
      return one_case<Half>(draw);
    case 3:
      return one_case<BHalf>(draw);
    default:
      return one_case<float>(draw);
  }
}

}  // namespace
}  // namespace KokkosNNTest

#ifdef KOKKOSNN_FUZZER

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  setenv("KOKKOSNN_TUNING_FILE", "", 1);
  Kokkos::initialize(*argc, *argv);
  KokkosNNTest::require_every_operator();
  std::atexit([] { Kokkos::finalize(); });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  KokkosNNTest::one_input(data, size);
  return 0;
}

#else

int main(int argc, char* argv[]) {
  setenv("KOKKOSNN_TUNING_FILE", "", 1);
  Kokkos::ScopeGuard kokkos(argc, argv);
  KokkosNNTest::require_every_operator();
  const long cases = argc > 1 ? std::atol(argv[1]) : 3000;
  std::mt19937 engine(argc > 2 ? static_cast<std::uint32_t>(std::atol(argv[2])) : 1);
  std::vector<std::uint8_t> bytes(96);
  for (long i = 0; i < cases; ++i) {
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(engine());
    KokkosNNTest::one_input(bytes.data(), bytes.size());
  }
  std::printf("%ld cases were right\n", cases);
  return 0;
}

#endif
