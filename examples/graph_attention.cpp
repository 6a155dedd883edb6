// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <KokkosNN/segmented.hpp>

// A graph attention layer over a CRS matrix, several heads in one call: softmax over each node's edges, the sum of its
// neighbours' features, and the gradient of the logits.
//
//   attention = torch_geometric.utils.softmax(logits, ptr=row_map)            # (edges, heads), by target
//   out = torch_scatter.segment_csr(attention[:, :, None] * features[entries], row_map)
//   attention.backward(dattention)                                            # logits.grad

namespace {

constexpr int nodes = 50, heads = 4, width = 5;
using PerEdge = Kokkos::View<float**>;        // (edges, heads)
using PerNode = Kokkos::View<float***>;       // (nodes, heads, width)
using Indices = Kokkos::View<int*>;           // entries: the source of each edge
using Offsets = Kokkos::View<std::int64_t*>;  // row_map: the edges of each target

/// Node i has i % 7 edges, and the last one an edge from every node: rows of any length are balanced.
void make_graph(Offsets& row_map, Indices& entries) {
  row_map         = Offsets("row_map", nodes + 1);
  const auto rows = Kokkos::create_mirror_view(row_map);
  rows(0)         = 0;
  for (int i = 0; i < nodes; ++i) rows(i + 1) = rows(i) + (i == nodes - 1 ? nodes : i % 7);
  Kokkos::deep_copy(row_map, rows);
  entries          = Indices("entries", static_cast<std::size_t>(rows(nodes)));
  const auto edges = Kokkos::create_mirror_view(entries);
  for (int e = 0; e < static_cast<int>(rows(nodes)); ++e) edges(e) = (7 * e + 3) % nodes;
  Kokkos::deep_copy(entries, edges);
}

void aggregate(const Offsets& row_map, const Indices& entries, const PerEdge& attention, const PerNode& features,
               const PerNode& out) {
  Kokkos::parallel_for(
      "aggregate", Kokkos::MDRangePolicy({0, 0}, {nodes, heads}), KOKKOS_LAMBDA(int i, int h) {
        for (int f = 0; f < width; ++f) {
          float sum = 0;
          for (std::int64_t e = row_map(i); e < row_map(i + 1); ++e)
            sum += attention(e, h) * features(entries(e), h, f);
          out(i, h, f) = sum;
        }
      });
}

int run() {
  Offsets row_map;
  Indices entries;
  make_graph(row_map, entries);
  const int edges          = static_cast<int>(entries.extent(0));
  const PerEdge logits     = Examples::random_matrix<float>("logits", edges, heads, 0);
  const PerEdge dattention = Examples::random_matrix<float>("dattention", edges, heads, 1);
  const PerEdge attention("attention", edges, heads), dlogits("dlogits", edges, heads);
  const PerNode features("features", nodes, heads, width), out("out", nodes, heads, width);
  Kokkos::deep_copy(features, 1.0f);  // so that every node with an edge gets 1

  KokkosNN::segmented_softmax(logits, row_map, attention);
  aggregate(row_map, entries, attention, features, out);
  KokkosNN::segmented_softmax_backward(attention, dattention, row_map, dlogits);

  Examples::Check check(1e-5);
  const auto rows = Examples::on_host(row_map);
  const auto x = Examples::on_host(logits), da = Examples::on_host(dattention);
  const auto a = Examples::on_host(attention), dx = Examples::on_host(dlogits);
  const auto sums = Examples::on_host(out);
  for (int i = 0; i < nodes; ++i)
    for (int h = 0; h < heads; ++h) {
      double sum = 0, dot = 0;
      for (auto e = rows(i); e < rows(i + 1); ++e) sum += std::exp(double(x(e, h)));
      for (auto e = rows(i); e < rows(i + 1); ++e) dot += std::exp(double(x(e, h))) / sum * da(e, h);
      for (auto e = rows(i); e < rows(i + 1); ++e) {
        const double weight = std::exp(double(x(e, h))) / sum;
        check.expect_near(a(e, h), weight);
        check.expect_near(dx(e, h), weight * (da(e, h) - dot));
      }
      check.expect_near(sums(i, h, width - 1), rows(i) < rows(i + 1) ? 1 : 0);
    }
  return check.status("graph_attention");
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return run();
}
