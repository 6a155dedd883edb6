// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/attention.hpp"
#include "support/recorder.hpp"
#include "support/types.hpp"
#include "support/warpgroups.hpp"

#include <KokkosNN/fused_attention.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <string>

// Attention with an epilogue on Hopper's warpgroups: the functor makes of the results what it makes of those that
// attention writes there, which were rounded to 16 bits.

namespace KokkosNNTest {

/// A gate; a product alone is rounded alike everywhere.
struct GateOnWarpgroups {
  KOKKOS_FUNCTION float operator()(float result, float gate) const { return gate > 0 ? result * 2 : 3; }
};

namespace {

template <class T>
class FusedAttentionOnWarpgroups : public OnWarpgroups {};
TYPED_TEST_SUITE(FusedAttentionOnWarpgroups, WarpgroupTypes, ElementNames);

TYPED_TEST(FusedAttentionOnWarpgroups, AppliesTheFunctorToResultsInFloat) {
  for (const int dim : {40, 128}) {
    AttentionTrial<TypeParam> t({2, 4, 2, 150, 300, dim, dim - 8}, true);
    t.run(KokkosNN::CausalMask{-20}, {.tier = KokkosNN::MatmulTier::warpgroups});
    const auto at = [](int n) { return static_cast<std::size_t>(n); };
    const HeadsOperand<TypeParam> gate(2, 4, 150, dim - 8, true, false);
    const Kokkos::View<float****, Kokkos::LayoutRight, Memory> o("o", 2, 4, 150, at(dim - 8));
    const auto labels = kernels_of([&] {
      KokkosNN::fused_attention(Exec(), t.q.view, t.k.view, t.v.view, o, KokkosNN::CausalMask{-20}, {},
                                KokkosNN::no_view, GateOnWarpgroups{}, gate.view);
    });
    ASSERT_EQ(labels.size(), 1U);
    EXPECT_NE(labels[0].find("fused_attention[warpgroups,"), std::string::npos) << labels[0];
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), o);
    for (int b = 0; b < 2; ++b)
      for (int h = 0; h < 4; ++h)
        for (int i = 0; i < 150; ++i)
          for (int d = 0; d < dim - 8; ++d) {
            const float got = host(at(b), at(h), at(i), at(d));
            if (static_cast<float>(gate(b, h, i, d)) <= 0) {
              ASSERT_EQ(got, 3);
            } else if (i < 20) {
              ASSERT_TRUE(std::isnan(got));
            } else {
              ASSERT_EQ(static_cast<float>(static_cast<TypeParam>(got / 2)), static_cast<float>(t.o(b, h, i, d)));
            }
          }
  }
}

}  // namespace
}  // namespace KokkosNNTest
