// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <KokkosNN/softmax.hpp>

// Softmax and log-sum-exp along the middle axis of a LayoutLeft View of rank 3, without a transposition.
//
//   x = np.asfortranarray(x)                                # (6, 50, 40)
//   y = np.exp(x - x.max(axis=1, keepdims=True))
//   y /= y.sum(axis=1, keepdims=True)
//   lse = np.log(np.exp(x).sum(axis=1))                     # (6, 40)

namespace {

int run() {
  const int n0 = 6, n1 = 50, n2 = 40;
  using Cube = Kokkos::View<double***, Kokkos::LayoutLeft>;
  const Cube x("x", n0, n1, n2), y("y", n0, n1, n2);
  const Kokkos::View<double**, Kokkos::LayoutLeft> lse("lse", n0, n2);
  const auto logits = Kokkos::create_mirror_view(x);
  for (int i = 0; i < n0; ++i)
    for (int j = 0; j < n1; ++j)
      for (int k = 0; k < n2; ++k) logits(i, j, k) = Examples::number((std::int64_t(i) * n1 + j) * n2 + k);
  Kokkos::deep_copy(x, logits);

  KokkosNN::softmax(x, y, {.axis = 1});
  KokkosNN::logsumexp(x, lse, {.axis = -2});  // negative axes count from the end

  Examples::Check check(1e-14);
  const auto result = Examples::on_host(y);
  const auto sums   = Examples::on_host(lse);
  for (int i = 0; i < n0; ++i)
    for (int k = 0; k < n2; ++k) {
      double sum = 0;
      for (int j = 0; j < n1; ++j) sum += std::exp(logits(i, j, k));
      for (int j = 0; j < n1; ++j) check.expect_near(result(i, j, k), std::exp(logits(i, j, k)) / sum);
      check.expect_near(sums(i, k), std::log(sum));
    }
  return check.status("any_axis");
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return run();
}
