// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <KokkosNN/fused.hpp>

// A softmax adds a bias a column as it reads, and quantises to 8 bits as it writes, in one pass.
//
//   y = torch.round(127 * torch.softmax(x + bias, -1)).to(torch.int8)
//
// fused_softmax compiles its kernels here, for these functors; all other examples use kernels that the library has.

namespace {

constexpr int rows = 50, cols = 300;

struct AddBias {
  using value_type = float;
  Kokkos::View<const float**> x;
  Kokkos::View<const float*> bias;

  /// N neighbouring elements of a row; what is added here costs no trip through memory.
  template <int N>
  KOKKOS_FUNCTION KokkosNN::Pack<float, N> load(std::int64_t row, std::int64_t col) const {
    KokkosNN::Pack<float, N> pack;
    for (int i = 0; i < N; ++i) pack[i] = x(row, col + i) + bias(col + i);
    return pack;
  }
};

struct StoreInt8 {
  using value_type = float;  // results come in float and are rounded once
  Kokkos::View<std::int8_t**> y;

  template <int N>
  KOKKOS_FUNCTION void store(const KokkosNN::Pack<float, N>& values, std::int64_t row, std::int64_t col) const {
    for (int i = 0; i < N; ++i) y(row, col + i) = static_cast<std::int8_t>(values[i] * 127.0f + 0.5f);
  }
};

int run() {
  const auto x = Examples::random_matrix<float>("x", rows, cols, 0);
  const Kokkos::View<float*> bias("bias", cols);
  const auto b = Kokkos::create_mirror_view(bias);
  for (int j = 0; j < cols; ++j) b(j) = j % 100 == 0 ? 6.0f : 0.0f;
  Kokkos::deep_copy(bias, b);
  const Kokkos::View<std::int8_t**> y("y", rows, cols);

  KokkosNN::fused_softmax(Kokkos::DefaultExecutionSpace(), rows, cols, AddBias{x, bias}, StoreInt8{y});

  Examples::Check check(0.501);  // rounded to the nearest, but for what float cannot tell
  const auto logits = Examples::on_host(x);
  const auto result = Examples::on_host(y);
  for (int i = 0; i < rows; ++i) {
    double sum = 0;
    for (int j = 0; j < cols; ++j) sum += std::exp(double(logits(i, j)) + b(j));
    for (int j = 0; j < cols; ++j) check.expect_near(result(i, j), 127 * std::exp(double(logits(i, j)) + b(j)) / sum);
  }
  return check.status("fused_load_store");
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return run();
}
