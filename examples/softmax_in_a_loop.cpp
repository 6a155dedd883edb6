// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <KokkosNN/softmax.hpp>

#include <cstdio>

// Softmax of new logits in every step of a loop, planned once.
//
//   for step in range(10):
//       x = torch.tanh(x + 0.1)
//       y = torch.softmax(2 * x, dim=-1)

namespace {

int run() {
  const int rows = 64, cols = 1000;
  const auto x = Examples::random_matrix<float>("x", rows, cols);
  const Kokkos::View<float**> y("y", rows, cols);
  const Kokkos::DefaultExecutionSpace exec;

  // Checks, the choice of a kernel and memory for it happen here; run() only enqueues. A call of KokkosNN::softmax does
  // both each time, which costs some microseconds.
  const KokkosNN::SoftmaxPlan plan(exec, x, y, {.scale = 2});
  std::printf("%s\n", to_string(plan.row_plan()).c_str());

  for (int step = 0; step < 10; ++step) {
    Kokkos::parallel_for(
        "step", Kokkos::MDRangePolicy(exec, {0, 0}, {rows, cols}),
        KOKKOS_LAMBDA(int i, int j) { x(i, j) = Kokkos::tanh(x(i, j) + 0.1f); });
    plan.run();
  }
  exec.fence();

  Examples::Check check(1e-9);
  const auto logits = Examples::on_host(x), result = Examples::on_host(y);
  for (int i = 0; i < rows; ++i) {
    double sum = 0;
    for (int j = 0; j < cols; ++j) sum += std::exp(2.0 * logits(i, j));
    for (int j = 0; j < cols; ++j) check.expect_near(result(i, j), std::exp(2.0 * logits(i, j)) / sum);
  }
  return check.status("softmax_in_a_loop");
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return run();
}
