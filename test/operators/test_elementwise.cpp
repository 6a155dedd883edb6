// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/elementwise.hpp"
#include "support/instances.hpp"
#include "support/large.hpp"
#include "support/recorder.hpp"

#include <KokkosNN/elementwise.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace KokkosNNTest {

/// Functors, as a test's body may hold no device lambda.
struct Sum {
  template <class A>
  KOKKOS_FUNCTION A operator()(A a, A b) const {
    return a + b;
  }
};
struct Twice {
  KOKKOS_FUNCTION float operator()(float value) const { return 2 * value; }
};
struct SumProductAndSign {
  KOKKOS_FUNCTION Kokkos::Array<float, 3> operator()(float a, float b, float c, float d, float e, float f) const {
    const float all = a + b + c + d + e + f;
    return {all, a * f, all > 0 ? 1.0f : 0.0f};
  }
};

std::string name_of(Element op) { return "operator " + std::to_string(static_cast<int>(op)); }

// --- values ---

template <class T>
class ElementwiseValues : public ::testing::Test {};
TYPED_TEST_SUITE(ElementwiseValues, ElementTypes, ElementNames);

TYPED_TEST(ElementwiseValues, AreWithinThePromisedErrorOverTheWholeRange) {
  for (const Element op : Reference::all_elements) {
    for (const double range : {1.0, 6.0, 14.0, 100.0, 800.0}) {
      ElementwiseTrial<TypeParam, 1> trial(op, {right({20003})}, {right({20003})}, range);
      EXPECT_TRUE(trial.run_correct()) << name_of(op) << ", +-" << range;
    }
  }
}

/// The first input of each operator, with 1 for the others.
TYPED_TEST(ElementwiseValues, OfInfinitiesAreTheLimitsAndOfNanNan) {
  using A            = KokkosNN::accumulator_t<TypeParam>;
  constexpr A inf    = std::numeric_limits<A>::infinity();
  const auto largest = static_cast<A>(KokkosNNTest::largest<TypeParam>());
  const std::vector<A> special{inf, -inf, largest, -largest, A(0), A(-0.0), std::numeric_limits<A>::quiet_NaN()};
  const auto count = static_cast<std::int64_t>(special.size());
  for (const Element op : Reference::all_elements) {
    if (op == Element::add || op == Element::mul) continue;
    ElementwiseTrial<TypeParam, 1> trial(op, {right({count})}, {right({count})});
    for (std::int64_t i = 0; i < count; ++i) {
      trial.in()[0].buffer.host()[i] = static_cast<TypeParam>(special[static_cast<std::size_t>(i)]);
      trial.in()[1].buffer.host()[i] = trial.in()[2].buffer.host()[i] = static_cast<TypeParam>(1);
    }
    for (auto& input : trial.in()) input.buffer.upload();

    trial.call();

    trial.out()[0].buffer.download();
    const auto is = [&](int i) { return exact(trial.out()[0].buffer.host()[i]); };
    const bool is_forward =
        Reference::inputs_of(op) == 1 || op == Element::swiglu || op == Element::geglu || op == Element::geglu_tanh;
    EXPECT_EQ(is(0), is_forward ? std::numeric_limits<long double>::infinity() : 1) << name_of(op);
    EXPECT_EQ(is(1), 0) << name_of(op);
    EXPECT_EQ(is(2), is_forward ? exact(static_cast<TypeParam>(largest)) : 1) << name_of(op);
    EXPECT_EQ(is(3), 0) << name_of(op);
    EXPECT_EQ(is(4), is_forward ? 0 : 0.5L) << name_of(op);
    EXPECT_EQ(is(5), is_forward ? 0 : 0.5L) << name_of(op);
    EXPECT_TRUE(std::isnan(is(6))) << name_of(op);
  }
}

template <class X, class Y>
void check_cast() {
  using A               = KokkosNN::common_accumulator_t<X, Y>;
  constexpr int count   = 301;
  const Placement place = right({count});
  ElementTensor<X> x(place);
  ElementTensor<Y> y(place);
  x.fill(300, 1);
  x.buffer.host()[0] = static_cast<X>(std::numeric_limits<float>::infinity());
  x.buffer.host()[1] = static_cast<X>(std::numeric_limits<float>::quiet_NaN());
  x.buffer.host()[2] = static_cast<X>(1 + 1.0 / 256 + 1.0 / (1 << 30));  // of double: twice rounded it is 1
  x.buffer.upload();

  KokkosNN::cast(Exec(), x.template view<1>(), y.template view<1>());
  Exec().fence();

  y.buffer.download();
  ASSERT_TRUE(y.buffer.guards_intact());
  for (int i = 0; i < count; ++i) {
    const auto expected = static_cast<Y>(static_cast<A>(x.buffer.host()[i]));
    const bool is_nan   = std::isnan(exact(expected)) && std::isnan(exact(y.buffer.host()[i]));
    EXPECT_TRUE(is_nan || same_bits(y.buffer.host()[i], expected)) << i << ' ' << Format<X>::name << Format<Y>::name;
  }
}

TYPED_TEST(ElementwiseValues, ACastRoundsOnceFromAnyType) {
  for_each_type(Elements(), [](auto y) { check_cast<TypeParam, typename decltype(y)::type>(); });
}

// --- shapes, layouts, lengths ---

/// Axes in any order in memory, some with gaps.
Placement scattered_place(std::vector<std::int64_t> extents, std::uint64_t seed) {
  Placement place{std::move(extents), {}, 0};
  place.strides.assign(place.extents.size(), 0);
  std::vector<int> order(place.extents.size());
  for (int d = 0; d < place.rank(); ++d) order[static_cast<std::size_t>(d)] = d;
  for (int d = place.rank() - 1; d > 0; --d) {
    std::swap(order[static_cast<std::size_t>(d)],
              order[random_bits(seed, static_cast<std::uint64_t>(d)) % static_cast<unsigned>(d + 1)]);
  }
  std::int64_t stride = 1 + random_bits(seed, 20) % 2;
  for (const int d : order) {
    place.strides[static_cast<std::size_t>(d)] = stride;
    stride = stride * place.extents[static_cast<std::size_t>(d)] + random_bits(seed, 30 + static_cast<unsigned>(d)) % 3;
  }
  return place;
}

template <int Rank>
void check_rank() {
  constexpr std::int64_t lengths[] = {3, 2, 5, 1, 2, 3, 2, 4};
  const std::vector<std::int64_t> extents(lengths, lengths + Rank);
  const std::vector<Placement> places{right(extents), left(extents), right(extents, 3), scattered_place(extents, 1),
                                      scattered_place(extents, 2)};
  for (const Element op : {Element::add, Element::swiglu_backward}) {
    for (const Placement& in : places) {
      for (const Placement& out : places) {
        ElementwiseTrial<float, Rank> mixed(op, {in, out, places[1]}, {out, in});
        EXPECT_TRUE(mixed.run_correct()) << "rank " << Rank;
      }
    }
  }
}

TEST(ElementwiseShapes, OfRank0To8AndAnyLayoutAreRight) {
  check_rank<0>();
  check_rank<1>();
  check_rank<2>();
  check_rank<3>();
  check_rank<4>();
  check_rank<5>();
  check_rank<6>();
  check_rank<7>();
  check_rank<8>();
}

TYPED_TEST(ElementwiseValues, OfAnyLengthAndAlignmentTouchNothingElse) {
  for (const std::int64_t length : {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 127, 255, 257, 1031}) {
    for (const int in : {0, 1, 3}) {
      for (const int out : {0, 1}) {
        ElementwiseTrial<TypeParam, 1> trial(Element::swiglu_backward, {right({length})}, {right({length})}, 4, in,
                                             out);
        EXPECT_TRUE(trial.run_correct()) << length << " elements, misaligned by " << in << " and " << out;
      }
    }
  }
}

TYPED_TEST(ElementwiseValues, OfShortRowsWithGapsTouchNothingElse) {
  for (const std::int64_t cols : {1, 2, 5, 16, 33, 700}) {
    ElementwiseTrial<TypeParam, 2> trial(Element::geglu, {right({9, cols}, 3), right({9, cols}, 1)},
                                         {right({9, cols}, 2)}, 4, 1, 2);
    EXPECT_TRUE(trial.run_correct()) << cols;
  }
}

TEST(ElementwiseShapes, ReversedAxesAreRight) {
  const Placement reversed{{7, 5}, {-5, -1}, 34};
  ElementwiseTrial<float, 2> input(Element::add, {reversed, right({7, 5})}, {right({7, 5})});
  ElementwiseTrial<float, 2> output(Element::add, {right({7, 5})}, {reversed});
  EXPECT_TRUE(input.run_correct());
  EXPECT_TRUE(output.run_correct());
}

TEST(ElementwiseShapes, InputsBroadcastByExtents1AndStrides0) {
  const Placement full = right({4, 3, 37});
  const std::vector<Placement> narrow{right({1, 3, 37}), right({4, 1, 37}),           right({4, 3, 1}),
                                      right({1, 1, 1}),  {{4, 3, 37}, {0, 37, 1}, 0}, {{4, 3, 37}, {3, 1, 0}, 0},
                                      left({4, 1, 37})};
  for (const Placement& input : narrow) {
    for (const Placement& output : {full, left({4, 3, 37})}) {
      ElementwiseTrial<float, 3> add(Element::add, {full, input}, {output});
      ElementwiseTrial<float, 3> swiglu(Element::swiglu_backward, {input, full, input}, {output, full});
      EXPECT_TRUE(add.run_correct());
      EXPECT_TRUE(swiglu.run_correct());
    }
  }
}

TEST(ElementwiseShapes, InputsOfFewerAxesLineUpFromTheLastOne) {
  ElementTensor<float> a(right({5, 6})), bias(right({6})), one(right({})), y(right({5, 6}));
  a.fill(4, 1);
  bias.fill(4, 2);
  one.fill(4, 3);

  KokkosNN::add(Exec(), a.view<2>(), bias.view<1>(), y.view<2>());
  Exec().fence();
  y.buffer.download();
  for_each_element({5, 6}, [&](const auto& at) {
    const std::vector<std::int64_t> column{at[1]};
    EXPECT_EQ(y.at(at), float(a.at(at) + bias.at(column)));
  });

  KokkosNN::mul(Exec(), one.view<0>(), a.view<2>(), y.view<2>());
  Exec().fence();
  y.buffer.download();
  for_each_element({5, 6}, [&](const auto& at) { EXPECT_EQ(y.at(at), float(a.at(at) * one.at({}))); });
}

/// Large results, that a host stores past its caches: from any alignment, of two outputs whose lines differ too.
TEST(ElementwiseShapes, LargeResultsAreWrittenToTheirEnds) {
  const std::int64_t rows = rows_beyond_the_cache(4099) / 3 + 1;
  if (rows == 1) GTEST_SKIP() << "the caches of this machine are too large to exceed, or not known";
  const Placement place = right({rows, 4099}, 1);
  ElementTensor<float> a(place, 1), y(place, 3), z(place, 2);
  a.fill(4, 1);

  KokkosNN::add(Exec(), a.view<2>(), a.view<2>(), y.view<2>());
  KokkosNN::fused_elementwise(Exec(), std::tuple(z.view<2>()), Twice{}, a.view<2>());
  Exec().fence();

  y.buffer.download();
  z.buffer.download();
  ASSERT_TRUE(gaps_intact(y.buffer, place));
  ASSERT_TRUE(gaps_intact(z.buffer, place));
  std::int64_t wrong = 0;
  for_each_index(place, place, [&](std::int64_t i, std::int64_t, std::int64_t) {
    wrong += y.buffer.host()[i] != 2 * a.buffer.host()[i] || z.buffer.host()[i] != 2 * a.buffer.host()[i];
  });
  EXPECT_EQ(wrong, 0);
}

TEST(ElementwiseShapes, StridesBeyond2To31ElementsAreRight) {
  const std::int64_t stride = (std::int64_t(1) << 31) + 21;
  if (on_gpu && free_gpu_memory() < (std::size_t(10) << 30)) GTEST_SKIP() << "not enough GPU memory";
  // On a host only the pages that are touched take memory.
  const Kokkos::View<float*, Memory> memory(Kokkos::view_alloc(Kokkos::WithoutInitializing, "far apart"), stride + 7);
  ElementTensor<float> y(right({2, 7}));
  for (const auto& place : {Placement{{2, 7}, {stride, 1}, 0}, Placement{{2, 2}, {1, stride}, 0}}) {
    for_each_index(place, place, [&](std::int64_t offset, std::int64_t, std::int64_t n) {
      Kokkos::deep_copy(Kokkos::subview(memory, offset), static_cast<float>(n + 1));
    });
    const auto view = strided_view<2>(memory.data(), place);

    KokkosNN::add(Exec(), view, view, view);
    Exec().fence();

    for_each_index(place, place, [&](std::int64_t offset, std::int64_t, std::int64_t n) {
      float value = 0;
      Kokkos::deep_copy(value, Kokkos::subview(memory, offset));
      EXPECT_EQ(value, static_cast<float>(2 * (n + 1)));
    });
  }
}

// --- users' functors ---

/// Has state, and takes numbers of any type.
struct Scaled {
  double factor;
  template <class A>
  KOKKOS_FUNCTION A operator()(A a, A b, A c, A d) const {
    return static_cast<A>(factor) * a + b * c - d;
  }
};

template <class Y>
void check_mixed() {
  const Placement place = right({11, 67});
  ElementTensor<double> a(place);
  ElementTensor<float> b(left({11, 67}));
  ElementTensor<Half> c(place);
  ElementTensor<BHalf> d(right({1, 67}));
  ElementTensor<Y> y(place);
  a.fill(4, 1);
  b.fill(4, 2);
  c.fill(4, 3);
  d.fill(4, 4);

  KokkosNN::fused_elementwise(Exec(), y.template view<2>(), Scaled{3}, a.view<2>(), b.view<2>(), c.view<2>(),
                              d.view<2>());
  Exec().fence();

  y.buffer.download();
  ASSERT_TRUE(y.buffer.guards_intact());
  for_each_element(place.extents, [&](const auto& at) {
    const double expected = 3 * static_cast<double>(a.at(at)) +
                            static_cast<double>(b.at(at)) * static_cast<double>(c.at(at)) -
                            static_cast<double>(d.at(at));
    EXPECT_LE(ulp_error<Y>(y.at(at), expected, 28), is_16_bit<Y> ? 0.5 : 1.0);
  });
}

TEST(FusedElementwise, MixesAllElementTypesInDouble) {
  check_mixed<double>();
  check_mixed<float>();
  check_mixed<Half>();
  check_mixed<BHalf>();
}

TEST(FusedElementwise, TakesSixInputsAndGivesThreeOutputsOfOtherTypes) {
  const Placement place = right({3, 129});
  std::vector<ElementTensor<float>> in;
  for (std::uint64_t i = 0; i < 6; ++i) {
    in.emplace_back(i == 2 ? right({3, 1}) : place);
    in.back().fill(4, i);
  }
  ElementTensor<float> sum(place);
  ElementTensor<BHalf> product(left({3, 129}));
  const Kokkos::View<bool**, Kokkos::LayoutRight, Memory> positive("positive", 3, 129);

  KokkosNN::fused_elementwise(Exec(), std::tuple(sum.view<2>(), product.view<2>(), positive), SumProductAndSign{},
                              in[0].view<2>(), in[1].view<2>(), in[2].view<2>(), in[3].view<2>(), in[4].view<2>(),
                              in[5].view<2>());
  Exec().fence();

  sum.buffer.download();
  product.buffer.download();
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), positive);
  for_each_element(place.extents, [&](const auto& at) {
    long double all = 0;
    for (const auto& input : in) all += input.at(at);
    EXPECT_NEAR(static_cast<double>(sum.at(at)), static_cast<double>(all), 1e-5);
    EXPECT_LE(ulp_error<BHalf>(product.at(at), in[0].at(at) * in[5].at(at)), 0.51);
    EXPECT_EQ(host(at[0], at[1]), sum.at(at) > 0);
  });
}

// --- in place, overlap, errors ---

TYPED_TEST(ElementwiseValues, OutputsMayBeInputs) {
  for (const Placement& place : {right({300}), Placement{{300}, {2}, 0}}) {
    const auto fresh = [&] { return ElementwiseTrial<TypeParam, 1>(Element::swiglu_backward, {place}, {place}); };
    auto apart = fresh(), over = fresh();
    ASSERT_TRUE(apart.run_correct());
    const auto gate = over.in()[0].template view<1>(), up = over.in()[1].template view<1>();

    KokkosNN::swiglu_backward(Exec(), gate, up, over.in()[2].template view<1>(), gate, up);
    Exec().fence();

    for (int i = 0; i < 2; ++i) {
      over.in()[i].buffer.download();
      for (std::int64_t n = 0; n < 300; ++n) {
        EXPECT_TRUE(same_bits(over.in()[i].buffer.host()[n * place.strides[0]],
                              apart.out()[i].buffer.host()[n * place.strides[0]]));
      }
    }
  }
}

/// The message of the std::invalid_argument that f throws.
template <class F>
std::string refusal_of(const F& f) {
  try {
    f();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "nothing";
}

TEST(ElementwiseErrors, NameTheFunctionAndTheExtentsThatDoNotFit) {
  ElementTensor<float> a(right({4, 6})), b(right({4, 5})), y(right({4, 6})), z(right({6, 4}));

  const std::string mismatch = refusal_of([&] { KokkosNN::swiglu(Exec(), a.view<2>(), b.view<2>(), y.view<2>()); });
  const std::string outputs  = refusal_of(
      [&] { KokkosNN::swiglu_backward(Exec(), a.view<2>(), a.view<2>(), a.view<2>(), y.view<2>(), z.view<2>()); });
  const std::string fused =
      refusal_of([&] { KokkosNN::fused_elementwise(Exec(), y.view<2>(), Sum{}, a.view<2>(), b.view<2>()); });

  EXPECT_EQ(mismatch, "KokkosNN::swiglu: up of extents (4, 5) does not broadcast to y, (4, 6)");
  EXPECT_EQ(outputs, "KokkosNN::swiglu_backward: dgate and dup must have the same extents, but are (4, 6) and (6, 4)");
  EXPECT_EQ(fused, "KokkosNN::fused_elementwise: input 1 of extents (4, 5) does not broadcast to output 0, (4, 6)");
  Exec().fence();
  y.buffer.download();
  EXPECT_TRUE(y.buffer.untouched());
}

TEST(ElementwiseErrors, RefuseOverlapButForTheSameView) {
  ElementTensor<float> all(right({64})), y(right({32}));
  all.fill(4, 1);
  const auto view = [&](std::int64_t begin, std::int64_t stride) {
    return strided_view<1>(all.buffer.device(), Placement{{16}, {stride}, begin});
  };
  const auto calls = {std::function([&] { KokkosNN::silu(Exec(), view(0, 1), view(1, 1)); }),
                      std::function([&] { KokkosNN::silu(Exec(), view(0, 2), view(0, 1)); }),
                      std::function([&] { KokkosNN::silu(Exec(), view(0, 0), view(0, 1)); }),
                      std::function([&] { KokkosNN::silu(Exec(), view(32, 1), view(0, 0)); }), std::function([&] {
                        KokkosNN::swiglu_backward(Exec(), view(32, 1), view(32, 1), view(32, 1), view(0, 1),
                                                  view(0, 1));
                      })};
  for (const auto& call : calls) {
    const std::string message = refusal_of(call);
    EXPECT_NE(message.find("KokkosNN::s"), std::string::npos) << message;
    EXPECT_TRUE(message.find("overlap") != std::string::npos || message.find("share memory") != std::string::npos)
        << message;
  }
  EXPECT_EQ(refusal_of([&] { KokkosNN::silu(Exec(), view(0, 2), view(1, 2)); }), "nothing");
  EXPECT_EQ(refusal_of([&] { KokkosNN::silu(Exec(), view(0, 2), view(0, 2)); }), "nothing");
  Exec().fence();
}

// --- as a Kokkos call ---

TEST(ElementwiseBehaviour, IsOneLabelledKernelThatNeitherFencesNorAllocates) {
  ElementwiseTrial<float, 2> trial(Element::swiglu, {right({20, 60})}, {right({20, 60})});
  const auto gate = trial.in()[0].view<2>(), up = trial.in()[1].view<2>(), y = trial.out()[0].view<2>();
  const Exec exec = other_instance();
  KokkosNN::swiglu(exec, gate, up, y);  // Kokkos grows its scratch memory for the first kernel
  exec.fence();
  trial.out()[0].buffer.poison_all();
  Recorder recorder;

  KokkosNN::swiglu(exec, gate, up, y);

  EXPECT_TRUE(recorder.neither_fenced_nor_allocated());
  EXPECT_EQ(recorder.regions, std::vector<std::string>{"KokkosNN::swiglu"});
  ASSERT_EQ(recorder.kernels.size(), 1u);
  EXPECT_TRUE(recorder.kernels[0].label.starts_with("KokkosNN::swiglu[")) << recorder.kernels[0].label;
  EXPECT_NE(recorder.kernels[0].label.find("f32+f32>f32"), std::string::npos) << recorder.kernels[0].label;
  if (tools_tell_instances_apart()) EXPECT_EQ(recorder.kernels[0].device, tools_id(exec));
  exec.fence();
  trial.out()[0].buffer.download();
  EXPECT_TRUE(trial.correct());
}

TEST(ElementwiseBehaviour, OutputsWithoutElementsLaunchNothing) {
  ElementwiseTrial<float, 2> trial(Element::add, {right({0, 5})}, {right({0, 5})});

  EXPECT_TRUE(kernels_of([&] { trial.call(); }).empty());
}

// --- the plan, and a GPU's kernel, which a host can run thread by thread ---

using KokkosNN::Impl::ElementwiseForm;
using KokkosNN::Impl::ElementwiseOperands;

template <class... V>
ElementwiseOperands operands_of_one_output(const V&... view) {
  ElementwiseOperands operands{"add", 1, 0, {}, {}};
  for (const char*& name : operands.name) name = "a tensor";
  ((operands.tensor[operands.count++] = KokkosNN::Impl::tensor_of(view)), ...);
  return operands;
}

struct OneThread {
  int rank;
  int size;
  int league;

  KOKKOS_FUNCTION int team_rank() const { return rank; }
  KOKKOS_FUNCTION int team_size() const { return size; }
  KOKKOS_FUNCTION int league_rank() const { return league; }
};

KokkosNN::DeviceTraits of_a_gpu() {
  KokkosNN::DeviceTraits traits;
  traits.backend         = KokkosNN::Backend::cuda;
  traits.warp_size       = 32;
  traits.multiprocessors = 132;
  return traits;
}

/// y = a + b by the GPU's kernel of the form that the plan has; y's elements and guards checked.
template <class T, int Rank, ElementwiseForm form>
void check_gpu_kernel(const Placement& a_place, const Placement& b_place, const Placement& y_place, int misalignment) {
  namespace Impl  = KokkosNN::Impl;
  constexpr int V = 16 / sizeof(T);
  constexpr int K = form == ElementwiseForm::elements ? Impl::elementwise_elements(2) : Impl::elementwise_packs(2);
  using A         = KokkosNN::accumulator_t<T>;
  Buffer<T, Kokkos::HostSpace> a(a_place.span(), misalignment), b(b_place.span(), misalignment),
      y(y_place.span(), misalignment);
  for (std::int64_t i = 0; i < a.count(); ++i) a.host()[i] = static_cast<T>(noise_of(random_bits(1, i)));
  for (std::int64_t i = 0; i < b.count(); ++i) b.host()[i] = static_cast<T>(noise_of(random_bits(2, i)));
  a.upload();
  b.upload();
  const auto operands = operands_of_one_output(strided_view<Rank, Kokkos::HostSpace>(y.device(), y_place),
                                               strided_view<Rank, Kokkos::HostSpace>(a.device(), a_place),
                                               strided_view<Rank, Kokkos::HostSpace>(b.device(), b_place));
  const auto layout   = Impl::normalise(operands);
  const auto plan     = Impl::make_elementwise_plan(operands, layout, V, of_a_gpu());
  ASSERT_EQ(plan.form, form) << plan.label;
  using Inputs = Impl::ElementTypes<T, T>;
  Impl::ElementwiseKernel<Sum, A, form, V, K, Impl::ElementTypes<T>, Inputs> kernel{
      {}, {}, layout.rows, layout.cols, plan.threads_per_row, plan.tiles_per_row};
  for (int t = 0; t < 3; ++t) {
    kernel.tensors.data[t]   = const_cast<void*>(operands.tensor[t].data);
    kernel.tensors.stride[t] = layout.col_stride[t];
    kernel.tensors.map[t]    = layout.map(t);
  }

  for (int league = 0; league < plan.league_size; ++league) {
    for (int rank = 0; rank < plan.team_size; ++rank) kernel(OneThread{rank, plan.team_size, league});
  }

  y.download();
  EXPECT_TRUE(gaps_intact(y, y_place)) << plan.label;
  for_each_element(y_place.extents, [&](const auto& at) {
    const A sum = static_cast<A>(a.host()[offset_of(a_place, at)]) + static_cast<A>(b.host()[offset_of(b_place, at)]);
    EXPECT_TRUE(same_bits(y.host()[offset_of(y_place, at)], static_cast<T>(sum))) << plan.label;
  });
}

TEST(ElementwisePlan, TensorsOfOneLayoutAreOneRow) {
  const std::vector<std::int64_t> extents{3, 4, 5, 6};
  ElementTensor<float> a(left(extents)), b(left(extents)), y(left(extents));

  const auto layout = KokkosNN::Impl::normalise(operands_of_one_output(y.view<4>(), a.view<4>(), b.view<4>()));

  EXPECT_EQ(layout.rows, 1);
  EXPECT_EQ(layout.cols, 360);
}

TYPED_TEST(ElementwiseValues, AGpuMovesPacksWhereTensorsAreContiguousAndEquallyMisaligned) {
  constexpr auto packs = ElementwiseForm::packs;
  for (const int misalignment : {0, 1}) {
    for (const std::int64_t length : {1, 2, 3, 9, 64, 257, 5003}) {
      const Placement row = right({length});
      check_gpu_kernel<TypeParam, 1, packs>(row, row, row, misalignment);
    }
    const Placement rows = right({7, 65}, 2), one = {{7, 65}, {0, 1}, 0};
    check_gpu_kernel<TypeParam, 2, packs>(rows, rows, rows, misalignment);
    check_gpu_kernel<TypeParam, 2, packs>(left({9, 5}), left({9, 5}), left({9, 5}), misalignment);
    check_gpu_kernel<TypeParam, 2, packs>(right({7, 64}), {{7, 64}, {0, 1}, 0}, right({7, 64}), misalignment);
    if (sizeof(TypeParam) > 2) check_gpu_kernel<TypeParam, 2, ElementwiseForm::elements>(rows, one, rows, misalignment);
  }
}

TYPED_TEST(ElementwiseValues, AGpuMovesPacksWhereAnInputHasOneElementARow) {
  constexpr auto packs = ElementwiseForm::one_or_packs;
  for (const int misalignment : {0, 1}) {
    check_gpu_kernel<TypeParam, 2, packs>(right({7, 130}), right({7, 1}), right({7, 130}), misalignment);
    check_gpu_kernel<TypeParam, 2, packs>(right({1, 1}), right({7, 130}), right({7, 130}), misalignment);
    check_gpu_kernel<TypeParam, 2, packs>(left({40, 3}), left({1, 3}), left({40, 3}), misalignment);
  }
}

TYPED_TEST(ElementwiseValues, AGpuMovesElementsOfOtherTensors) {
  constexpr auto elements = ElementwiseForm::elements;
  check_gpu_kernel<TypeParam, 2, elements>(left({30, 20}), right({30, 20}), right({30, 20}), 0);
  check_gpu_kernel<TypeParam, 1, elements>({{3000}, {2}, 0}, right({3000}), right({3000}), 0);
  check_gpu_kernel<TypeParam, 1, elements>(right({300}), right({300}), {{300}, {3}, 1}, 0);
  check_gpu_kernel<TypeParam, 3, elements>(scattered_place({5, 6, 7}, 4), left({5, 6, 7}),
                                           scattered_place({5, 6, 7}, 5), 1);
}

}  // namespace KokkosNNTest
