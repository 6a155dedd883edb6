// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/segmented.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

// An upstream gradient that all elements share is one value in memory, seen through strides of 0: what comes of it must
// be what comes of a tensor that has it everywhere, but for the order of sums. (softmax_backward and
// log_softmax_backward along the last axis are compared with the reference in test_gradients.cpp.)

namespace KokkosNNTest {

namespace {

constexpr std::int64_t rows = 6;

/// A tensor in memory, of one type and of these extents.
template <int Rank>
class Tensor {
 public:
  explicit Tensor(const Placement& where, bool is_constant = false) : m_place(where), m_buffer(where.span()) {
    for (std::int64_t i = 0; i < m_buffer.count(); ++i) {
      m_buffer.host()[i] = is_constant ? 0.625f : static_cast<float>(i * 37 % 101) / 64;
    }
    m_buffer.upload();
  }

  auto view() { return strided_view<Rank>(m_buffer.device(), m_place); }
  auto const_view() const { return strided_view<Rank>(static_cast<const float*>(m_buffer.device()), m_place); }

  /// True if no element differs by more than the rounding of the largest one.
  bool is_close_to(Tensor& other) {
    Exec().fence();
    m_buffer.download();
    other.m_buffer.download();
    float largest = 0, difference = 0;
    for (std::int64_t i = 0; i < m_buffer.count(); ++i) {
      largest    = std::max(largest, std::fabs(m_buffer.host()[i]));
      difference = std::max(difference, std::fabs(m_buffer.host()[i] - other.m_buffer.host()[i]));
      if (!std::isfinite(other.m_buffer.host()[i])) return false;
    }
    return difference <= 1e-5f * largest;
  }

 private:
  Placement m_place;
  Buffer<float> m_buffer;
};

/// `call(dy, dx)` gives the same for a dy that is dense and for one that lies at strides of 0.
template <int Rank, int OutputRank, class Call>
void expect_same(const std::vector<std::int64_t>& dy_extents, const std::vector<std::int64_t>& dx_extents,
                 const char* what, const Call& call) {
  const Placement one_value{dy_extents, std::vector<std::int64_t>(dy_extents.size(), 0)};
  const Tensor<Rank> dense(right(dy_extents), true), broadcast(one_value, true);
  Tensor<OutputRank> from_dense(right(dx_extents)), from_broadcast(right(dx_extents));

  call(dense.const_view(), from_dense.view());
  call(broadcast.const_view(), from_broadcast.view());

  EXPECT_TRUE(from_dense.is_close_to(from_broadcast)) << what;
}

}  // namespace

TEST(BroadcastGradients, OfSoftmaxAlongEveryAxisAreThoseOfDenseOnes) {
  for (const int axis : {0, 1, 2}) {
    const std::vector<std::int64_t> extents{rows, 40, 70};
    const Tensor<3> y(right(extents));
    const KokkosNN::SoftmaxOptions options{.axis = axis};
    expect_same<3, 3>(extents, extents, "softmax", [&](const auto& dy, const auto& dx) {
      KokkosNN::softmax_backward(Exec(), y.const_view(), dy, dx, options);
    });
    expect_same<3, 3>(extents, extents, "log_softmax", [&](const auto& dy, const auto& dx) {
      KokkosNN::log_softmax_backward(Exec(), y.const_view(), dy, dx, options);
    });
  }
}

TEST(BroadcastGradients, OfALogSumExpAreThoseOfDenseOnes) {
  for (const std::int64_t cols : {10, 100, 5000}) {
    const Tensor<2> x(right({rows, cols}));
    const Tensor<1> lse(right({rows}));
    expect_same<1, 2>({rows}, {rows, cols}, "logsumexp", [&](const auto& dlse, const auto& dx) {
      KokkosNN::logsumexp_backward(Exec(), x.const_view(), lse.const_view(), dlse, dx);
    });
  }
}

TEST(BroadcastGradients, OfMaskedRowsAreThoseOfDenseOnes) {
  for (const std::int64_t cols : {9, 100, 1000}) {
    const std::vector<std::int64_t> extents{2, 3, rows, cols};
    const Tensor<4> x(right(extents)), y(right(extents));
    const KokkosNN::CausalMask mask{cols - rows};
    expect_same<4, 4>(extents, extents, "masked_softmax", [&](const auto& dy, const auto& dx) {
      KokkosNN::masked_softmax_backward(Exec(), x.const_view(), y.const_view(), dy, mask, dx);
    });
    expect_same<4, 4>(extents, {1, 3, 1, cols}, "masked_softmax by its bias", [&](const auto& dy, const auto& dbias) {
      KokkosNN::masked_softmax_bias_backward(Exec(), y.const_view(), dy, mask, dbias);
    });
    expect_same<4, 1>(extents, {3}, "masked_softmax by its sinks", [&](const auto& dy, const auto& dsinks) {
      KokkosNN::masked_softmax_sinks_backward(Exec(), y.const_view(), dy, mask, dsinks);
    });
  }
}

TEST(BroadcastGradients, OfLossesAreThoseOfDenseOnes) {
  const Kokkos::View<std::int64_t*, Memory> labels("labels", rows);
  for (const std::int64_t cols : {10, 1000, 20000}) {
    const Tensor<2> logits(right({rows, cols}));
    const Tensor<1> lse(right({rows}));
    expect_same<1, 2>({rows}, {rows, cols}, "cross_entropy", [&](const auto& dloss, const auto& dlogits) {
      KokkosNN::cross_entropy_backward(Exec(), logits.const_view(), labels, lse.const_view(), dloss, dlogits,
                                       {.reduction = KokkosNN::Reduction::none});
    });
  }
}

TEST(BroadcastGradients, OfRaggedRowsAreThoseOfDenseOnes) {
  for (const Lengths& lengths : {random_lengths(500, 0, 20), Lengths{7, 40000, 3, 9001}}) {
    const std::int64_t elements = total(lengths);
    const Tensor<1> y(right({elements}));
    const auto offsets = offsets_of(lengths);
    expect_same<1, 1>({elements}, {elements}, "segmented_softmax", [&](const auto& dy, const auto& dx) {
      KokkosNN::segmented_softmax_backward(Exec(), y.const_view(), dy, offsets, dx);
    });
    expect_same<1, 1>({elements}, {elements}, "segmented_log_softmax", [&](const auto& dy, const auto& dx) {
      KokkosNN::segmented_log_softmax_backward(Exec(), y.const_view(), dy, offsets, dx);
    });
  }
}

}  // namespace KokkosNNTest
