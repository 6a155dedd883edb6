// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <KokkosNN/norm.hpp>

// The norms of a transformer block, forward and backward: LayerNorm in front of the attention, RMSNorm in front of the
// feed-forward network, with a residual between them.
//
//   a = F.layer_norm(x, (width,), weight, bias)             # what attention gets; here it gives a back
//   r = x + a
//   y = F.rms_norm(r, (width,), scale, eps=1e-6)
//   y.backward(dy)                                          # x.grad

namespace {

constexpr int tokens = 30, width = 96;
constexpr double layer_epsilon = 1e-5, rms_epsilon = 1e-6;
using Matrix = Kokkos::View<float**>;
using Vector = Kokkos::View<float*>;

void add(const Matrix& a, const Matrix& b, const Matrix& sum) {
  Kokkos::parallel_for(
      "add", Kokkos::MDRangePolicy({0, 0}, {tokens, width}),
      KOKKOS_LAMBDA(int i, int j) { sum(i, j) = a(i, j) + b(i, j); });
}

struct Block {
  Vector weight{"weight", width}, bias{"bias", width}, scale{"scale", width};
  Vector mean{"mean", tokens}, layer_rstd{"layer_rstd", tokens}, rms_rstd{"rms_rstd", tokens};
  Matrix a{"a", tokens, width}, r{"r", tokens, width};

  /// The norms leave mean and rstd of each row for the backward.
  void forward(const Matrix& x, const Matrix& y) const {
    KokkosNN::layer_norm(x, weight, bias, a, mean, layer_rstd, {.epsilon = layer_epsilon});
    add(x, a, r);
    KokkosNN::rms_norm(r, scale, y, rms_rstd, {.epsilon = rms_epsilon});
  }

  /// Overwrites a and r by their gradients, a's being r's too.
  void backward(const Matrix& x, const Matrix& dy, const Matrix& dx) const {
    KokkosNN::rms_norm_backward(r, scale, rms_rstd, dy, r);  // in place: dr
    KokkosNN::layer_norm_backward(x, weight, mean, layer_rstd, r, a);
    add(a, r, dx);
  }
};

/// One row of the block by its formulas, in double.
void row_of(const double (&x)[width], double (&y)[width]) {
  double mean = 0, variance = 0, squares = 0;
  for (const double v : x) mean += v / width;
  for (const double v : x) variance += (v - mean) * (v - mean) / width;
  for (int j = 0; j < width; ++j) {
    const double weight = 1 + 0.01 * j, bias = -0.02 * j;
    y[j] = x[j] + (x[j] - mean) / std::sqrt(variance + layer_epsilon) * weight + bias;
    squares += y[j] * y[j] / width;
  }
  for (int j = 0; j < width; ++j) y[j] *= (2 - 0.01 * j) / std::sqrt(squares + rms_epsilon);
}

void fill(const Block& block) {
  const auto weight = Kokkos::create_mirror_view(block.weight), bias = Kokkos::create_mirror_view(block.bias),
             scale = Kokkos::create_mirror_view(block.scale);
  for (int j = 0; j < width; ++j) {
    weight(j) = static_cast<float>(1 + 0.01 * j);
    bias(j)   = static_cast<float>(-0.02 * j);
    scale(j)  = static_cast<float>(2 - 0.01 * j);
  }
  Kokkos::deep_copy(block.weight, weight);
  Kokkos::deep_copy(block.bias, bias);
  Kokkos::deep_copy(block.scale, scale);
}

int run() {
  const Matrix x  = Examples::random_matrix<float>("x", tokens, width, 0);
  const Matrix dy = Examples::random_matrix<float>("dy", tokens, width, 1);
  const Matrix y("y", tokens, width), dx("dx", tokens, width);
  const Block block;
  fill(block);
  block.forward(x, y);
  block.backward(x, dy, dx);

  Examples::Check check(2e-5);
  const auto input = Examples::on_host(x), result = Examples::on_host(y);
  const auto upper = Examples::on_host(dy), gradient = Examples::on_host(dx);
  for (int i = 0; i < tokens; ++i) {
    double row[width], expected[width], above[width], below[width];
    for (int j = 0; j < width; ++j) row[j] = input(i, j);
    row_of(row, expected);
    for (int j = 0; j < width; ++j) check.expect_near(result(i, j), expected[j]);

    // The gradient of element i % width by a difference of the formulas.
    const int k       = i % width;
    const double step = 1e-5;
    row[k] += step;
    row_of(row, above);
    row[k] -= 2 * step;
    row_of(row, below);
    double slope = 0;
    for (int j = 0; j < width; ++j) slope += upper(i, j) * (above[j] - below[j]) / (2 * step);
    check.expect_near(gradient(i, k), slope);
  }
  return check.status("transformer_norms");
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return run();
}
