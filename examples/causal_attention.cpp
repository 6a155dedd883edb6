// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <KokkosNN/masked_softmax.hpp>

#include <algorithm>

// The weights of causal attention and the gradient of the scores, for batches of sequences of different lengths.
//
//   s = (0.125 * scores).masked_fill(~torch.ones(Q, K, dtype=torch.bool).tril(), -torch.inf)
//   s = s.masked_fill(torch.arange(K) >= lengths[:, None, None, None], -torch.inf)
//   weights = torch.softmax(s, -1)
//   weights.backward(dweights)                              # scores.grad

namespace {

constexpr int batch = 2, heads = 3, queries = 40, keys = 40;
constexpr double scale = 0.125;
using Scores           = Kokkos::View<float****>;

Scores make_scores(const char* label, int seed) {
  const Scores view(label, batch, heads, queries, keys);
  const auto host = Kokkos::create_mirror_view(view);
  std::int64_t i  = std::int64_t(seed) * 1000003;
  for (int b = 0; b < batch; ++b)
    for (int h = 0; h < heads; ++h)
      for (int q = 0; q < queries; ++q)
        for (int k = 0; k < keys; ++k) host(b, h, q, k) = static_cast<float>(4 * Examples::number(i++));
  Kokkos::deep_copy(view, host);
  return view;
}

int run() {
  const Scores scores = make_scores("scores", 0), dweights = make_scores("dweights", 1);
  const Scores weights("weights", batch, heads, queries, keys), dscores("dscores", batch, heads, queries, keys);
  const Kokkos::View<int*> lengths("lengths", batch);
  const auto length = Kokkos::create_mirror_view(lengths);
  length(0)         = keys;
  length(1)         = 25;
  Kokkos::deep_copy(lengths, length);

  // Keys that the mask rules out are never read, only written: as 0.
  const auto mask = KokkosNN::masks(KokkosNN::CausalMask{}, KokkosNN::RowLengths{lengths});
  KokkosNN::masked_softmax(scores, mask, weights, {.scale = scale});
  KokkosNN::masked_softmax_backward(scores, weights, dweights, mask, dscores, {.scale = scale});

  Examples::Check check(1e-6);
  const auto s = Examples::on_host(scores), dw = Examples::on_host(dweights);
  const auto w = Examples::on_host(weights), ds = Examples::on_host(dscores);
  for (int b = 0; b < batch; ++b)
    for (int h = 0; h < heads; ++h)
      for (int q = 0; q < queries; ++q) {
        const int allowed = std::min(q + 1, length(b));
        double sum = 0, dot = 0;
        for (int k = 0; k < allowed; ++k) sum += std::exp(scale * s(b, h, q, k));
        for (int k = 0; k < allowed; ++k) dot += std::exp(scale * s(b, h, q, k)) / sum * dw(b, h, q, k);
        for (int k = 0; k < keys; ++k) {
          const double weight = k < allowed ? std::exp(scale * s(b, h, q, k)) / sum : 0;
          check.expect_near(w(b, h, q, k), weight);
          check.expect_near(ds(b, h, q, k), scale * weight * (dw(b, h, q, k) - dot));
        }
      }
  return check.status("causal_attention");
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return run();
}
