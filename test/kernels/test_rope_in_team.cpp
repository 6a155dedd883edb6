// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/rope.hpp"

#include <KokkosNN/impl/call/rope_plan.hpp>
#include <KokkosNN/impl/gpu/rope.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

// A GPU's kernel of the rotary embedding, thread by thread on the host, with the plans of GPUs.

namespace KokkosNNTest {
namespace {

using KokkosNN::Backend;
using KokkosNN::DeviceTraits;
namespace Impl = KokkosNN::Impl;

/// A thread of a team, as the kernel asks for it.
struct Thread {
  int league;
  int rank;
  int size;

  int league_rank() const { return league; }
  int team_rank() const { return rank; }
  int team_size() const { return size; }
};

DeviceTraits gpu_of(int warp_size, int multiprocessors) {
  DeviceTraits traits;
  traits.backend         = warp_size == 32 ? Backend::cuda : Backend::hip;
  traits.warp_size       = warp_size;
  traits.multiprocessors = multiprocessors;
  traits.max_team_size   = 1024;
  return traits;
}

/// A call on buffers of the host.
template <class T, RopeForm form>
class OnHost {
 public:
  using A = KokkosNN::accumulator_t<T>;

  OnHost(const Placement& x, const Placement& y, std::int64_t rotary_dims) : m_x_place(x), m_y_place(y) {
    m_x.resize(static_cast<std::size_t>(x.span()));
    m_y.assign(static_cast<std::size_t>(y.span()), poison<T>());
    fill(m_x.data(), x, 3, Recipe::uniform);
    m_options.form        = form;
    m_options.rotary_dims = rotary_dims;
  }

  /// Runs all threads of all teams. True if each element was written as the formula has it.
  ::testing::AssertionResult run_correct(const DeviceTraits& traits) {
    const Impl::RopeTensors tensors{Impl::tensor_of(strided_view<4, Kokkos::HostSpace>(m_x.data(), m_x_place)),
                                    Impl::tensor_of(strided_view<4, Kokkos::HostSpace>(m_y.data(), m_y_place)),
                                    {},
                                    {},
                                    {}};
    const Impl::RopeLayout layout = Impl::normalise_rope("rope", "x", "y", tensors, m_options);
    const Impl::RopePlan plan =
        Impl::make_rope_plan({KokkosNN::Impl::element_type<T>(), int(sizeof(T)), form, false}, layout, traits);
    if (plan.team_size % traits.warp_size != 0 || plan.team_size > Impl::rope_team_size) {
      return ::testing::AssertionFailure() << "a team of " << plan.team_size;
    }
    plan.moves_packs ? run<16 / int(sizeof(T))>(layout, plan) : run<1>(layout, plan);
    return correct(layout);
  }

 private:
  template <int V>
  void run(const Impl::RopeLayout& layout, const Impl::RopePlan& plan) {
    const Impl::RopeRows<T> rows{m_x.data(),
                                 m_y.data(),
                                 layout.outer,
                                 layout.inner,
                                 layout.heads,
                                 layout.dim,
                                 layout.pairs,
                                 layout.dim - 2 * layout.pairs,
                                 layout.x_dim_stride,
                                 layout.y_dim_stride,
                                 nullptr,
                                 0,
                                 0};
    const Impl::ComputedAngles<A> angles{Impl::rotary_frequencies(m_options.theta, 1, layout.pairs)};
    const Impl::RopeInTeam<T, form, V, Impl::ComputedAngles<A>> kernel{
        rows,
        angles,
        A(1),
        {plan.positions_per_team, plan.heads_per_team, plan.head_parts, plan.heads_side_by_side, plan.positions_first}};
    for (std::int64_t team = 0; team < plan.league_size; ++team) {
      for (int rank = 0; rank < plan.team_size; ++rank) kernel(Thread{static_cast<int>(team), rank, plan.team_size});
    }
  }

  ::testing::AssertionResult correct(const Impl::RopeLayout& layout) const {
    Errors errors;
    const std::int64_t rotary = 2 * layout.pairs, xs = m_x_place.strides[3], ys = m_y_place.strides[3];
    std::int64_t changed = 0;
    for_each_index(m_x_place.without(3), m_y_place.without(3), [&](std::int64_t x, std::int64_t y, std::int64_t row) {
      const std::int64_t position = row / m_x_place.extents[2] % m_x_place.extents[1];
      for (std::int64_t i = 0; i < layout.pairs; ++i) {
        const auto [first, second]  = Reference::pair_of(form, rotary, i);
        const Reference::Real angle = Reference::angle_of(m_options, rotary, i, position);
        const Reference::Real a = exact(m_x[x + first * xs]), b = exact(m_x[x + second * xs]);
        const auto add = [&](std::int64_t at, const Reference::Rotated& expected) {
          const auto value = exact(m_y[y + at * ys]);
          errors.add(ulp_error<T>(value, expected.value, expected.element), row, at, value, expected.value);
        };
        add(first, Reference::rotated(a, b, std::cos(angle), std::sin(angle)));
        add(second, Reference::rotated(b, a, std::cos(angle), -std::sin(angle)));
      }
      for (std::int64_t i = rotary; i < layout.dim; ++i) changed += !same_bits(m_x[x + i * xs], m_y[y + i * ys]);
    });
    if (changed > 0) return ::testing::AssertionFailure() << changed << " elements were not copied";
    if (errors.max_ulp <= rope_promise<T>(false)) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << errors.worst;
  }

  Placement m_x_place;
  Placement m_y_place;
  RopeOptions m_options;
  std::vector<T> m_x;
  std::vector<T> m_y;
};

template <class T>
class RopeInTeam : public ::testing::Test {};
TYPED_TEST_SUITE(RopeInTeam, ElementTypes, ElementNames);

template <class T, RopeForm form>
void rotate_all_shapes() {
  for (const int warp_size : {32, 64}) {
    for (const int multiprocessors : {1, 132}) {
      for (const auto& extents : {std::vector<std::int64_t>{2, 9, 3, 64},
                                  {1, 5, 32, 128},
                                  {2, 3, 9, 80},
                                  {3, 70, 1, 6},
                                  {1, 2, 700, 16},
                                  {1, 2, 3, 4096},
                                  {2, 3, 2, 73}}) {
        const std::int64_t dim = extents[3];
        for (const std::int64_t rotary : {dim / 2 * 2, dim / 4 * 2}) {
          const std::string name = std::to_string(extents[2]) + " heads of " + std::to_string(dim) + ", rotary " +
                                   std::to_string(rotary) + ", warps of " + std::to_string(warp_size);
          const auto gpu         = gpu_of(warp_size, multiprocessors);
          EXPECT_TRUE((OnHost<T, form>(right(extents), right(extents), rotary).run_correct(gpu))) << name;
          EXPECT_TRUE((OnHost<T, form>(left(extents), left(extents, 1), rotary).run_correct(gpu))) << name << ", left";
        }
      }
    }
  }
}

TYPED_TEST(RopeInTeam, RotatesEachPairOfHalvesOnce) { rotate_all_shapes<TypeParam, RopeForm::half_rotated>(); }
TYPED_TEST(RopeInTeam, RotatesEachPairOfNeighboursOnce) { rotate_all_shapes<TypeParam, RopeForm::interleaved>(); }

}  // namespace
}  // namespace KokkosNNTest
