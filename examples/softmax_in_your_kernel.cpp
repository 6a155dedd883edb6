// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <KokkosNN/team.hpp>

// Softmax as a step of your own TeamPolicy kernel: distances, their softmax in team scratch, and a weighted mean, with
// no trip of the weights through memory (soft k-means, attention of one query, kernel regression).
//
//   distance = ((points[:, None] - centres[None]) ** 2).sum(-1)     # (points, centres)
//   weights = torch.softmax(-3 * distance, -1)
//   nearest = weights @ centres

namespace {

constexpr int points = 100, centres = 64, width = 3;
using Matrix  = Kokkos::View<double**>;
using Policy  = Kokkos::TeamPolicy<>;
using Scratch = Kokkos::View<double*, Policy::execution_space::scratch_memory_space, Kokkos::MemoryUnmanaged>;

void find_nearest(const Matrix& p, const Matrix& c, const Matrix& nearest) {
  const auto bytes = Scratch::shmem_size(centres);
  Kokkos::parallel_for(
      "nearest", Policy(points, Kokkos::AUTO).set_scratch_size(0, Kokkos::PerTeam(bytes)),
      KOKKOS_LAMBDA(const Policy::member_type& member) {
        const int i = member.league_rank(), count = centres;
        const Scratch weights(member.team_scratch(0), count);
        Kokkos::parallel_for(Kokkos::TeamVectorRange(member, count), [&](int k) {
          double distance = 0;
          for (int d = 0; d < width; ++d) distance += (p(i, d) - c(k, d)) * (p(i, d) - c(k, d));
          weights(k) = distance;
        });
        member.team_barrier();

        KokkosNN::team_softmax(member, weights, weights, {.scale = -3});  // in place; all threads of the team call

        for (int d = 0; d < width; ++d) {
          double mean = 0;
          Kokkos::parallel_reduce(
              Kokkos::TeamVectorRange(member, count), [&](int k, double& sum) { sum += weights(k) * c(k, d); }, mean);
          Kokkos::single(Kokkos::PerTeam(member), [&] { nearest(i, d) = mean; });
        }
      });
}

int run() {
  const Matrix p = Examples::random_matrix<double>("points", points, width, 0);
  const Matrix c = Examples::random_matrix<double>("centres", centres, width, 1);
  const Matrix nearest("nearest", points, width);
  find_nearest(p, c, nearest);

  Examples::Check check(1e-13);
  const auto from = Examples::on_host(p), to = Examples::on_host(c), result = Examples::on_host(nearest);
  for (int i = 0; i < points; ++i) {
    double sum = 0, mean[width] = {};
    for (int k = 0; k < centres; ++k) {
      double distance = 0;
      for (int d = 0; d < width; ++d) distance += (from(i, d) - to(k, d)) * (from(i, d) - to(k, d));
      sum += std::exp(-3 * distance);
      for (int d = 0; d < width; ++d) mean[d] += std::exp(-3 * distance) * to(k, d);
    }
    for (int d = 0; d < width; ++d) check.expect_near(result(i, d), mean[d] / sum);
  }
  return check.status("softmax_in_your_kernel");
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return run();
}
