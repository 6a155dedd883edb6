// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/check.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

// Chains of calls on one instance, each of which reads what the one before has written: without a wait for earlier
// kernels a dependent launch would read it too early. Each chain is run again with a fence behind every call, and must
// give the same bits.

namespace KokkosNNTest {
namespace {

using Matrix = Kokkos::View<float**, Kokkos::LayoutRight, Exec>;
using Vector = Kokkos::View<float*, Exec>;

struct Shape {
  std::int64_t rows;
  std::int64_t cols;
};
/// Short kernels of one wave, of several, and rows that teams share.
constexpr Shape shapes[] = {{1, 64},    {64, 1024},   {4096, 512},  {20000, 7},
                            {3000, 33}, {300, 20000}, {400, 66000}, {2, 300000}};

void fill_with_numbers(const Matrix& x) {
  const auto cols = static_cast<std::int64_t>(x.extent(1));
  Kokkos::parallel_for(
      "fill", Kokkos::RangePolicy<Exec>(0, static_cast<std::int64_t>(x.size())),
      KOKKOS_LAMBDA(std::int64_t i) { x(i / cols, i % cols) = static_cast<float>((i * 7919) % 1009) / 100.f - 5.f; });
}

struct Tensors {
  Matrix a, b, c;
  Vector lse, rstd, weight;

  explicit Tensors(const Shape& shape)
      : a("a", shape.rows, shape.cols),
        b("b", shape.rows, shape.cols),
        c("c", shape.rows, shape.cols),
        lse("lse", shape.rows),
        rstd("rstd", shape.rows),
        weight("weight", shape.cols) {
    fill_with_numbers(a);
    Kokkos::deep_copy(weight, 0.75f);
    Exec().fence();
  }
};

/// A kernel that is not the library's.
void double_elements(const Exec& exec, const Matrix& x) {
  const auto cols = static_cast<std::int64_t>(x.extent(1));
  Kokkos::parallel_for(
      "double", Kokkos::RangePolicy<Exec>(exec, 0, static_cast<std::int64_t>(x.size())),
      KOKKOS_LAMBDA(std::int64_t i) { x(i / cols, i % cols) *= 2; });
}

using Call  = std::function<void(const Exec&, const Tensors&)>;
using Chain = std::vector<Call>;

const Call softmax_in_place = [](const Exec& exec, const Tensors& t) { KokkosNN::softmax(exec, t.a, t.a); };
const Call a_to_b           = [](const Exec& exec, const Tensors& t) { KokkosNN::log_softmax(exec, t.a, t.b); };
const Call b_to_a           = [](const Exec& exec, const Tensors& t) { KokkosNN::softmax(exec, t.b, t.a); };
const Call scale_a          = [](const Exec& exec, const Tensors& t) { double_elements(exec, t.a); };
const Call copy_b_to_c      = [](const Exec& exec, const Tensors& t) { Kokkos::deep_copy(exec, t.c, t.b); };
const Call gradient_to_b = [](const Exec& exec, const Tensors& t) { KokkosNN::softmax_backward(exec, t.a, t.c, t.b); };
const Call norm_in_place = [](const Exec& exec, const Tensors& t) {
  KokkosNN::rms_norm(exec, t.a, t.weight, t.a, t.rstd);
};
const Call lse_of_a   = [](const Exec& exec, const Tensors& t) { KokkosNN::logsumexp(exec, t.a, t.lse); };
const Call add_b_to_a = [](const Exec& exec, const Tensors& t) { KokkosNN::add(exec, t.a, t.b, t.a); };

std::vector<float> elements_of(const Tensors& t) {
  std::vector<float> all;
  for (const Matrix& m : {t.a, t.b, t.c}) {
    const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), m);
    all.insert(all.end(), host.data(), host.data() + host.size());
  }
  const auto lse = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), t.lse);
  all.insert(all.end(), lse.data(), lse.data() + lse.size());
  return all;
}

std::vector<float> results_of(const Chain& chain, const Shape& shape, int turns, bool fences) {
  const Tensors t(shape);
  const Exec exec;
  for (int turn = 0; turn < turns; ++turn) {
    for (const Call& call : chain) {
      call(exec, t);
      if (fences) exec.fence();
    }
  }
  exec.fence();
  return elements_of(t);
}

void expect_order(const std::string& name, const Chain& chain) {
  for (const Shape& shape : shapes) {
    constexpr int turns = 8;
    const auto expected = results_of(chain, shape, turns, true);
    for (int run = 0; run < 3; ++run) {
      const auto results = results_of(chain, shape, turns, false);
      ASSERT_EQ(std::memcmp(results.data(), expected.data(), expected.size() * sizeof(float)), 0)
          << name << ", " << shape.rows << " x " << shape.cols;
    }
  }
}

TEST(Chains, InPlaceKeepTheirOrder) { expect_order("in place", {softmax_in_place, norm_in_place, softmax_in_place}); }

TEST(Chains, BetweenTwoTensorsKeepTheirOrder) { expect_order("to and fro", {a_to_b, b_to_a}); }

TEST(Chains, WithOtherKernelsAndCopiesBetweenThemKeepTheirOrder) {
  expect_order("with other kernels", {a_to_b, copy_b_to_c, gradient_to_b, scale_a, b_to_a, add_b_to_a, lse_of_a});
}

TEST(Chains, WhoseWorkspaceIsReusedKeepTheirOrder) {
  expect_order("reductions", {lse_of_a, softmax_in_place, lse_of_a, norm_in_place, a_to_b, lse_of_a});
}

}  // namespace
}  // namespace KokkosNNTest
