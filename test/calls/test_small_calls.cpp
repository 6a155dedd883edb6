// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/recorder.hpp"
#include "support/types.hpp"

#include <KokkosNN/KokkosNN.hpp>
#include <KokkosNN/impl/call/launch.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

// Calls of few elements, which a host's calling thread makes by itself where no tool of Kokkos' watches launches.

namespace KokkosNNTest {
namespace {

using Matrix = Kokkos::View<float**, Kokkos::LayoutRight, Memory>;
using Vector = Kokkos::View<float*, Memory>;

/// No tool watches while it lives.
class Unwatched {
 public:
  Unwatched() : m_previous(Kokkos::Tools::Experimental::get_callbacks()) {
    Kokkos::Tools::Experimental::set_callbacks({});
  }
  ~Unwatched() { Kokkos::Tools::Experimental::set_callbacks(m_previous); }
  Unwatched(const Unwatched&)            = delete;
  Unwatched& operator=(const Unwatched&) = delete;

 private:
  Kokkos::Tools::Experimental::EventSet m_previous;
};

Matrix filled(int rows, int cols, int seed) {
  const Matrix x("x", rows, cols);
  const auto host = Kokkos::create_mirror_view(x);
  for (int r = 0; r < rows; ++r) {
    for (int c = 0; c < cols; ++c) host(r, c) = 3 * std::sin(static_cast<float>(seed + 7 * r + 5 * c * c));
  }
  Kokkos::deep_copy(x, host);
  return x;
}

std::vector<std::uint32_t> bits_of(const Matrix& y) {
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), y);
  std::vector<std::uint32_t> bits;
  for (std::size_t k = 0; k < host.size(); ++k) bits.push_back(std::bit_cast<std::uint32_t>(host.data()[k]));
  return bits;
}

/// Expects the same bits of call(y) as a launch and, if it is small, by the calling thread.
template <class Call>
void expect_same_bits(int rows, int cols, const Call& call) {
  const Matrix launched("launched", rows, cols), unwatched("unwatched", rows, cols);
  {
    const Recorder recorder;
    call(launched);
    Kokkos::fence();
    EXPECT_FALSE(recorder.kernels.empty());
  }
  {
    const Unwatched tools;
    call(unwatched);
    Kokkos::fence();
  }
  EXPECT_EQ(bits_of(unwatched), bits_of(launched)) << rows << " x " << cols;
}

TEST(SmallCalls, HaveTheBitsOfALaunch) {
  constexpr int sizes[][2] = {{1, 1}, {4, 8}, {7, 3}, {5, 33}, {100, 20}, {16, 128}, {3, 600}, {1, 2048}, {9, 2048}};
  for (const auto& [rows, cols] : sizes) {
    const Matrix x = filled(rows, cols, 1), dy = filled(rows, cols, 2), labelled = filled(rows, cols, 3);
    const Vector weight("weight", cols), row("row", rows);
    const Kokkos::View<int*, Memory> labels("labels", rows);
    Kokkos::deep_copy(weight, 1.5f);
    expect_same_bits(rows, cols, [&](const Matrix& y) { KokkosNN::softmax(x, y); });
    expect_same_bits(rows, cols, [&](const Matrix& y) { KokkosNN::log_softmax(x, y, {.scale = 0.5}); });
    expect_same_bits(rows, cols, [&](const Matrix& y) { KokkosNN::softmax_backward(x, dy, y); });
    expect_same_bits(rows, cols, [&](const Matrix& y) { KokkosNN::rms_norm(x, weight, y); });
    expect_same_bits(rows, cols, [&](const Matrix& y) { KokkosNN::layer_norm(x, weight, weight, y); });
    expect_same_bits(rows, cols, [&](const Matrix& y) {
      KokkosNN::masked_softmax(x, KokkosNN::CausalMask{}, y, {.masked_row = KokkosNN::MaskedRowPolicy::zero});
    });
    expect_same_bits(rows, cols, [&](const Matrix& y) {
      KokkosNN::cross_entropy_with_gradient(x, labels, row, y, {.reduction = KokkosNN::Reduction::none});
    });
  }
}

/// Ones, which count how often another thread than the maker's asks.
struct Ones {
  using value_type = float;
  std::thread::id maker;
  Kokkos::View<int, Memory> others;

  template <int N>
  KOKKOS_FUNCTION KokkosNN::Pack<float, N> load(std::int64_t, std::int64_t) const {
    KOKKOS_IF_ON_HOST((if (std::this_thread::get_id() != maker) Kokkos::atomic_inc(&others());))
    KokkosNN::Pack<float, N> ones;
    for (int k = 0; k < N; ++k) ones[k] = 1;
    return ones;
  }
};

struct Nowhere {
  using value_type = float;
  template <int N>
  KOKKOS_FUNCTION void store(const KokkosNN::Pack<float, N>&, std::int64_t, std::int64_t) const {}
};

TEST(SmallCalls, StayOnAHostsCallingThread) {
  if constexpr (on_gpu) {
    GTEST_SKIP() << "a GPU's kernels are always launched";
  } else if constexpr (!std::is_constructible_v<Kokkos::TeamPolicy<Exec>::member_type,
                                                Kokkos::Impl::HostThreadTeamData&>) {
    GTEST_SKIP() << "kernels of this space are always launched";
  } else {
    const Unwatched tools;
    const Ones ones{std::this_thread::get_id(), Kokkos::View<int, Memory>("others")};
    constexpr int cols = 32, rows = static_cast<int>(KokkosNN::Impl::most_elements_in_caller) / cols;
    KokkosNN::fused_softmax(Exec(), rows, cols, ones, Nowhere{});
    EXPECT_EQ(ones.others(), 0);
    KokkosNN::fused_softmax(Exec(), 100 * rows, cols, ones, Nowhere{});
    EXPECT_EQ(ones.others() > 0, Exec().concurrency() > 1);
  }
}

}  // namespace
}  // namespace KokkosNNTest
