// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <KokkosNN/cross_entropy.hpp>

#include <cstdio>

// Training of a linear classifier: loss and gradient in one pass over the logits, which the gradient overwrites.
//
//   for step in range(20):
//       logits = x @ w
//       loss = F.cross_entropy(logits, labels, ignore_index=-100, label_smoothing=0.1)
//       loss.backward()                                    # logits.grad
//       w = w - 2.0 * x.T @ logits.grad

namespace {

constexpr int samples = 200, features = 8, classes = 37;
using Matrix = Kokkos::View<float**>;
using Labels = Kokkos::View<int*>;

void multiply(const Matrix& x, const Matrix& w, const Matrix& logits) {
  Kokkos::parallel_for(
      "x w", Kokkos::MDRangePolicy({0, 0}, {samples, classes}), KOKKOS_LAMBDA(int i, int c) {
        float sum = 0;
        for (int k = 0; k < features; ++k) sum += x(i, k) * w(k, c);
        logits(i, c) = sum;
      });
}

void descend(const Matrix& x, const Matrix& dlogits, const Matrix& w, float rate) {
  Kokkos::parallel_for(
      "w - rate x^T dlogits", Kokkos::MDRangePolicy({0, 0}, {features, classes}), KOKKOS_LAMBDA(int k, int c) {
        float sum = 0;
        for (int i = 0; i < samples; ++i) sum += x(i, k) * dlogits(i, c);
        w(k, c) -= rate * sum;
      });
}

/// Each sample belongs to the class that one of its features points at; every tenth has no label.
Labels make_labels(const Matrix& x) {
  const Labels labels("labels", samples);
  const auto host  = Kokkos::create_mirror_view(labels);
  const auto input = Examples::on_host(x);
  for (int i = 0; i < samples; ++i)
    host(i) = i % 10 == 0 ? -100 : static_cast<int>((input(i, 0) + 2) / 4 * classes) % classes;
  Kokkos::deep_copy(labels, host);
  return labels;
}

/// The loss by its definition, in double.
double loss_of(const Matrix& logits, const Labels& labels, double smoothing) {
  const auto z     = Examples::on_host(logits);
  const auto label = Examples::on_host(labels);
  double total     = 0;
  int counted      = 0;
  for (int i = 0; i < samples; ++i) {
    if (label(i) < 0) continue;
    double sum = 0, all = 0;
    for (int c = 0; c < classes; ++c) sum += std::exp(double(z(i, c)));
    for (int c = 0; c < classes; ++c) all += std::log(sum) - z(i, c);
    total += (1 - smoothing) * (std::log(sum) - z(i, label(i))) + smoothing / classes * all;
    ++counted;
  }
  return total / counted;
}

int run() {
  const Matrix x = Examples::random_matrix<float>("x", samples, features), w("w", features, classes);
  const Matrix logits("logits", samples, classes);
  const Labels labels = make_labels(x);
  const Kokkos::View<float> loss("loss");

  Examples::Check check(1e-5);
  float first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    multiply(x, w, logits);
    const double expected = loss_of(logits, labels, 0.1);
    KokkosNN::cross_entropy_with_gradient(logits, labels, loss, logits, {.label_smoothing = 0.1});
    descend(x, logits, w, 2.0f);
    Kokkos::deep_copy(last, loss);
    check.expect_near(last, expected);
    if (step == 0) first = last;
  }
  std::printf("loss %.4f, after 20 steps %.4f\n", first, last);
  // The zero weights of the first step make all classes alike.
  check.expect_near(first, std::log(double(classes)));
  return last < 0.8f * first ? check.status("cross_entropy_training") : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return run();
}
