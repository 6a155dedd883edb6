// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <KokkosNN/team_matmul.hpp>

// Matrix products as steps of your own TeamPolicy kernel: stiffness matrices K = B^T (D B) of finite elements, a team
// each, with D B in team scratch and a transpose that is a View with exchanged strides.
//
//   K = np.einsum("eqi,qr,erj->eij", B, D, B)     # (element, function, function)

namespace {

constexpr int elements = 50, strains = 6, functions = 24;
using Policy   = Kokkos::TeamPolicy<>;
using Matrix   = Kokkos::View<double**>;
using Matrices = Kokkos::View<double***, Kokkos::LayoutRight>;
using Scratch =
    Kokkos::View<double**, Kokkos::LayoutRight, Policy::execution_space::scratch_memory_space, Kokkos::MemoryUnmanaged>;

template <class V>
KOKKOS_FUNCTION auto transposed(const V& v) {
  using Strided = Kokkos::View<const double**, Kokkos::LayoutStride, typename V::memory_space, Kokkos::MemoryUnmanaged>;
  return Strided(v.data(), Kokkos::LayoutStride(v.extent(1), v.stride(1), v.extent(0), v.stride(0)));
}

void assemble(const Matrices& b, const Matrix& d, const Matrices& k) {
  const auto bytes = Scratch::shmem_size(strains, functions);
  Kokkos::parallel_for(
      "stiffness", Policy(elements, Kokkos::AUTO).set_scratch_size(0, Kokkos::PerTeam(bytes)),
      KOKKOS_LAMBDA(const Policy::member_type& member) {
        const int e          = member.league_rank();
        const auto b_of_e    = Kokkos::subview(b, e, Kokkos::ALL, Kokkos::ALL);
        const auto stiffness = Kokkos::subview(k, e, Kokkos::ALL, Kokkos::ALL);
        const Scratch stress(member.team_scratch(0), int(strains), int(functions));
        KokkosNN::team_matmul(member, 1.0, d, b_of_e, 0.0, stress);  // all threads of the team call
        KokkosNN::team_matmul(member, 1.0, transposed(b_of_e), stress, 0.0, stiffness);
      });
}

int run() {
  const auto d = Examples::random_matrix<double>("D", strains, strains);
  const Matrices b("B", elements, strains, functions), k("K", elements, functions, functions);
  const auto from = Kokkos::create_mirror_view(b);
  for (std::size_t i = 0; i < from.size(); ++i) from.data()[i] = Examples::number(static_cast<std::int64_t>(i));
  Kokkos::deep_copy(b, from);
  assemble(b, d, k);

  Examples::Check check(1e-12);
  const auto law    = Examples::on_host(d);
  const auto result = Examples::on_host(k);
  for (int e = 0; e < elements; ++e)
    for (int i = 0; i < functions; ++i)
      for (int j = 0; j < functions; ++j) {
        double sum = 0;
        for (int q = 0; q < strains; ++q)
          for (int r = 0; r < strains; ++r) sum += from(e, q, i) * law(q, r) * from(e, r, j);
        check.expect_near(result(e, i, j), sum);
      }
  return check.status("matmul_in_your_kernel");
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return run();
}
