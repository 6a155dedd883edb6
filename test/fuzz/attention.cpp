// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "kinds.hpp"

#include "../support/attention.hpp"
#include "../support/masked.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// Random calls of attention, its gradients, packed, in parts and over graphs.

namespace KokkosNNTest {
namespace {

/// Heads in groups, and lengths and dims that are mostly short.
HeadExtents head_extents(Draw& draw, int batch) {
  const int kv_heads  = static_cast<int>(1 + draw.below(2));
  std::int64_t room   = 300;
  const int queries   = static_cast<int>(draw.extent(room));
  const int keys      = static_cast<int>(draw.extent(room));
  const auto draw_dim = [&] { return static_cast<int>(1 + draw.below(draw.of({4, 20, 20, 20, 70}))); };
  const int dim       = draw_dim();
  const int group     = static_cast<int>(1 + draw.below(3));
  return {batch, kv_heads * group, kv_heads, queries, keys, dim, draw.yes() ? dim : draw_dim()};
}

std::string text_of(const HeadExtents& n) {
  std::string text = " of batch, heads, heads of k, queries, keys, dims";
  for (const int extent : {n.batch, n.heads, n.kv_heads, n.queries, n.keys, n.dim, n.value_dim}) {
    text += ' ' + std::to_string(extent);
  }
  return text;
}

KokkosNN::AttentionOptions attention_options(Draw& draw) {
  KokkosNN::AttentionOptions options;
  options.scale      = draw.of({0.0, 0.0, 0.5, -0.3});
  options.softcap    = draw.of({0.0, 0.0, 3.0});
  options.masked_row = draw.masked_row();
  return options;
}

/// Every kind of mask at once, most of which rule nothing out, so that little is compiled.
template <class T>
struct DrawnMask {
  HeadExtents n;
  std::int64_t causal, left, right, window, alibi, diagonal;
  MaskData<int, 1> lengths, offsets;
  MaskData<std::uint8_t, 4> keep;
  MaskData<T, 4> bias;
  MaskData<float, 1> slopes;

  static constexpr std::int64_t far = 100000;

  DrawnMask(Draw& draw, const HeadExtents& extents, bool ends_align)
      : n(extents),
        causal(draw.of({far, far, draw.below(9) - 4, std::int64_t(n.keys) / 2})),
        left(draw.yes() ? KokkosNN::SlidingWindow::unbounded : draw.below(12)),
        right(draw.yes() ? KokkosNN::SlidingWindow::unbounded : draw.below(12)),
        window(draw.below(9) - 4),
        alibi(draw.below(9) - 4),
        diagonal(ends_align ? n.keys - n.queries : 0),
        lengths(test_right({n.batch}), numbers(draw.byte(), n.keys + 5, 2, n.keys)),
        offsets(test_right({n.batch}), numbers(draw.byte(), 9, 4, 0)),
        keep(draw.placement({n.batch, 1, n.queries, n.keys}), kept(draw.byte())),
        bias(draw.placement({1, n.heads, n.queries, n.keys}), biases(draw.yes())),
        slopes(test_right({n.heads}), [steepness = draw.of({0.0f, 0.0f, 0.125f})](const auto& index) {
          return steepness * static_cast<float>(index[0] + 1);
        }) {}

  auto mask() const {
    return KokkosNN::masks(KokkosNN::CausalMask{causal}, KokkosNN::SlidingWindow{left, right, window},
                           KokkosNN::RowLengths{lengths.view()}, KokkosNN::DiagonalOffsets{offsets.view()},
                           KokkosNN::BooleanMask{keep.view()}, KokkosNN::AdditiveBias{bias.view()},
                           KokkosNN::Alibi{slopes.view(), alibi});
  }
  long double operator()(int b, int h, int i, int j, long double s) const {
    const std::int64_t at = i + diagonal + offsets({b});
    const bool is_left_of = left != KokkosNN::SlidingWindow::unbounded && j < at + window - left;
    const bool is_right   = right != KokkosNN::SlidingWindow::unbounded && j > at + window + right;
    if (j > at + causal || is_left_of || is_right || j >= lengths({b}) || keep({b, 0, i, j}) == 0)
      return -infinite_logit;
    return s + Real(bias({0, h, i, j})) - slopes({h}) * static_cast<Real>(std::abs(j - (at + alibi)));
  }

 private:
  static Placement test_right(std::vector<std::int64_t> extents) { return KokkosNNTest::right(std::move(extents)); }
  /// A number for each batch entry, or the same for all.
  static auto numbers(std::uint8_t seed, int range, int below, int usual) {
    return [=](const auto& index) {
      return seed % 2 == 0 ? usual : static_cast<int>((index[0] * 31 + seed) % range) - below;
    };
  }
  static auto kept(std::uint8_t seed) {
    return [=](const auto& index) { return std::uint8_t(seed % 2 == 0 || noise_at(index, 1) * 128 < seed - 128); };
  }
  static auto biases(bool have_any) {
    return [=](const auto& index) { return static_cast<T>(have_any ? noise_at(index, 3) : 0.0); };
  }
};

/// Results and gradients have errors of 1 at most in their units, and nothing is written outside of outputs.
template <class T, class Options>
::testing::AssertionResult are_right(const AttentionTrial<T>& trial, AttentionGradientTrial<T>& gradients,
                                     const Logit& logit, const Options& options, long double sink = -infinite_logit) {
  gradients.download();
  const long double if_masked = options.masked_row == MaskedRowPolicy::zero ? 0 : NAN;
  const double error          = trial.error(logit, options.scale, sink, if_masked);
  if (!(error <= 1)) return ::testing::AssertionFailure() << "an error of " << error;
  const double of_gradients = gradients.error(logit, options.scale, options.softcap, sink);
  if (!(of_gradients <= 1)) return ::testing::AssertionFailure() << "an error of " << of_gradients << " of gradients";
  return trial.o.gaps_are_intact() && gradients.gaps_are_intact()
             ? ::testing::AssertionSuccess()
             : ::testing::AssertionFailure() << "written outside of an output";
}

/// A call of attention and its gradients.
template <class T>
void attention(Draw& draw) {
  const HeadExtents n                = head_extents(draw, static_cast<int>(draw.below(3)));
  KokkosNN::AttentionOptions options = attention_options(draw);
  const bool ends_align = draw.yes(), has_sinks = draw.yes(), is_plain = draw.below(4) == 0;
  if (ends_align) options.diagonal = KokkosNN::AttentionDiagonal::last;
  const Kokkos::View<float*, Memory> sinks("sinks", n.heads);
  Kokkos::deep_copy(sinks, 0.75f);
  if (has_sinks) options.sinks = sinks;
  const long double sink = has_sinks ? 0.75L : -infinite_logit;
  const DrawnMask<T> mask(draw, n, ends_align);
  const Logit logit = [&](int b, int h, int i, int j, long double s) {
    if (options.softcap != 0) s = options.softcap * std::tanh(s / options.softcap);
    return is_plain ? s : mask(b, h, i, j, s);
  };
  AttentionTrial<T> trial(n, draw.yes(), draw.yes());
  if (draw.below(3) == 0) {
    options.dropout = {0.3, static_cast<std::uint64_t>(draw.below(1000)), static_cast<std::uint32_t>(draw.below(3))};
    trial.factor_of = dropout_factors(options.dropout, n.heads);
  }
  AttentionGradientTrial<T> gradients(trial, draw.yes(), draw.yes());
  const auto call = [&](const auto& all) {
    trial.run(all, options);
    KokkosNN::attention_backward(Exec(), trial.q.view, trial.k.view, trial.v.view, trial.o.view, gradients.dout.view,
                                 trial.lse, all, gradients.dq.view, gradients.dk.view, gradients.dv.view, options);
  };
  expect_right("attention" + text_of(n), false, [&] {
    is_plain ? call(KokkosNN::masks()) : call(mask.mask());
    return are_right(trial, gradients, logit, options, sink);
  });
}

/// Some increasing numbers from 0 to `last`.
std::vector<std::int64_t> draw_offsets(Draw& draw, std::int64_t count, std::int64_t last) {
  std::vector<std::int64_t> offsets{0};
  for (std::int64_t i = 1; i < count; ++i) offsets.push_back(draw.below(last + 1));
  offsets.push_back(last);
  std::sort(offsets.begin(), offsets.end());
  return offsets;
}
Kokkos::View<std::int64_t*, Memory> view_of(const std::vector<std::int64_t>& numbers) {
  const Kokkos::View<std::int64_t*, Memory> view("numbers", numbers.size());
  const auto host = Kokkos::create_mirror_view(view);
  std::copy(numbers.begin(), numbers.end(), host.data());
  Kokkos::deep_copy(view, host);
  return view;
}

/// Log-sum-exps of a batch of one with the axes (sequence, head).
template <class T>
auto lse_rows(const AttentionTrial<T>& t) {
  return Kokkos::View<KokkosNN::accumulator_t<T>**, Kokkos::LayoutStride, Memory>(
      t.lse.data(), Kokkos::LayoutStride(t.n.queries, t.lse.stride(2), t.n.heads, t.lse.stride(1)));
}

/// Packed sequences are blocks on a diagonal of the scores.
template <class T>
void packed(Draw& draw) {
  const HeadExtents n                      = head_extents(draw, 1);
  const KokkosNN::AttentionOptions options = attention_options(draw);
  const std::int64_t sequences = 1 + draw.below(5), offset = draw.of({std::int64_t(100000), draw.below(9) - 4});
  const auto queries = draw_offsets(draw, sequences, n.queries), keys = draw_offsets(draw, sequences, n.keys);
  const auto query_offsets = view_of(queries), key_offsets = view_of(keys);
  AttentionTrial<T> trial(n, draw.yes(), draw.yes());
  AttentionGradientTrial<T> gradients(trial, draw.yes(), draw.yes());
  const Logit logit = [&](int, int, int i, int j, long double s) {
    if (options.softcap != 0) s = options.softcap * std::tanh(s / options.softcap);
    const auto next = std::upper_bound(queries.begin(), queries.end(), i) - queries.begin();
    const bool sees = j >= keys[next - 1] && j < keys[next] && j - keys[next - 1] <= i - queries[next - 1] + offset;
    return sees ? s : -infinite_logit;
  };
  expect_right("packed_attention" + text_of(n), false, [&] {
    const KokkosNN::CausalMask mask{offset};
    KokkosNN::packed_attention(Exec(), trial.q.rows(), trial.k.rows(), trial.v.rows(), query_offsets, key_offsets,
                               trial.o.rows(), mask, options, lse_rows(trial));
    KokkosNN::packed_attention_backward(Exec(), trial.q.rows(), trial.k.rows(), trial.v.rows(), query_offsets,
                                        key_offsets, trial.o.rows(), gradients.dout.rows(), lse_rows(trial), mask,
                                        gradients.dq.rows(), gradients.dk.rows(), gradients.dv.rows(), options);
    trial.o.download();
    return are_right(trial, gradients, logit, options);
  });
}

/// Parts of the keys, joined. Parts of 16 bits would have errors of their own.
template <class T>
void merged(Draw& draw) {
  using A = KokkosNN::accumulator_t<T>;
  if constexpr (std::is_same_v<T, A>) {
    const HeadExtents n                      = head_extents(draw, static_cast<int>(draw.below(3)));
    const KokkosNN::AttentionOptions options = attention_options(draw);
    const std::int64_t parts                 = 1 + draw.below(5);
    const auto cuts                          = draw_offsets(draw, parts, n.keys);
    AttentionTrial<T> trial(n, draw.yes(), draw.yes());
    const Kokkos::View<T*****, Memory> o_parts("o parts", parts, n.batch, n.heads, n.queries, n.value_dim);
    const Kokkos::View<A****, Memory> lse_parts("lse parts", parts, n.batch, n.heads, n.queries);
    const Logit logit = [&](int, int, int, int, long double s) {
      return options.softcap == 0 ? s : options.softcap * std::tanh(s / options.softcap);
    };
    expect_right("merge_attention" + text_of(n), false, [&] {
      const auto all = Kokkos::ALL;
      for (std::int64_t p = 0; p < parts; ++p) {
        const auto keys = std::pair(cuts[p], cuts[p + 1]);
        KokkosNN::attention(Exec(), trial.q.view, Kokkos::subview(trial.k.view, all, all, keys, all),
                            Kokkos::subview(trial.v.view, all, all, keys, all),
                            Kokkos::subview(o_parts, p, all, all, all, all), KokkosNN::masks(), options,
                            Kokkos::subview(lse_parts, p, all, all, all));
      }
      KokkosNN::merge_attention(Exec(), o_parts, lse_parts, trial.o.view, options, trial.lse);
      Exec().fence();
      trial.o.download();
      const long double if_masked = options.masked_row == MaskedRowPolicy::zero ? 0 : NAN;
      const double error          = trial.error(logit, options.scale, -infinite_logit, if_masked);
      return error <= 2 && trial.o.gaps_are_intact()
                 ? ::testing::AssertionSuccess()
                 : ::testing::AssertionFailure() << "an error of " << error << ", or written outside of o";
    });
  }
}

/// A graph without two edges between the same nodes is a mask of the scores; some of its edges are none.
template <class T>
void graph(Draw& draw) {
  const HeadExtents n                      = head_extents(draw, 1);
  const KokkosNN::AttentionOptions options = attention_options(draw);
  const std::uint8_t density               = draw.byte();
  std::vector<std::int64_t> rows{0}, entries;
  std::vector<std::vector<std::int64_t>> edge_of(n.queries, std::vector<std::int64_t>(n.keys, -1));
  for (int i = 0; i < n.queries; ++i) {
    for (int j = 0; j < n.keys; ++j) {
      if ((i * 37 + j * 11) % 256 > density) continue;
      edge_of[i][j] = static_cast<std::int64_t>(entries.size());
      entries.push_back(j);
    }
    if (i % 3 == 1) entries.push_back(i % 2 == 0 ? -1 : n.keys);
    rows.push_back(static_cast<std::int64_t>(entries.size()));
  }
  const Kokkos::View<float**, Memory> bias("bias", entries.size(), n.heads), dbias("dbias", entries.size(), n.heads);
  const auto host_bias = Kokkos::create_mirror_view(bias);
  for (std::size_t e = 0; e < entries.size(); ++e)
    for (int h = 0; h < n.heads; ++h) host_bias(e, h) = static_cast<float>(value_at(std::int64_t(e) * 5 + h));
  Kokkos::deep_copy(bias, host_bias);
  const auto row_map = view_of(rows), columns = view_of(entries);
  AttentionTrial<T> trial(n, draw.yes(), draw.yes());
  AttentionGradientTrial<T> gradients(trial, draw.yes(), draw.yes());
  const Logit logit = [&](int, int h, int i, int j, long double s) {
    if (options.softcap != 0) s = options.softcap * std::tanh(s / options.softcap);
    return edge_of[i][j] < 0 ? -infinite_logit : s + host_bias(edge_of[i][j], h);
  };
  expect_right("graph_attention" + text_of(n), false, [&] {
    KokkosNN::graph_attention(Exec(), trial.q.rows(), trial.k.rows(), trial.v.rows(), row_map, columns, trial.o.rows(),
                              options, bias, lse_rows(trial));
    KokkosNN::graph_attention_backward(Exec(), trial.q.rows(), trial.k.rows(), trial.v.rows(), row_map, columns,
                                       trial.o.rows(), gradients.dout.rows(), lse_rows(trial), gradients.dq.rows(),
                                       gradients.dk.rows(), gradients.dv.rows(), options, bias, dbias);
    trial.o.download();
    return are_right(trial, gradients, logit, options);
  });
}

}  // namespace

template <class T>
std::vector<Kind> attention_kinds() {
  return {Kind{{}, attention<T>}, Kind{{}, packed<T>}, Kind{{}, merged<T>}, Kind{{}, graph<T>}};
}

template std::vector<Kind> attention_kinds<float>();
template std::vector<Kind> attention_kinds<double>();
template std::vector<Kind> attention_kinds<Half>();
template std::vector<Kind> attention_kinds<BHalf>();

}  // namespace KokkosNNTest
