// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/tensor.hpp"
#include "support/types.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// The tables of operators, element types, masks and backends in docs/support.md say what this build does: every cell is
// tried. What the results are worth is for the other tests; here a call has to be made, and to leave numbers.

namespace KokkosNNTest {
namespace {

using KokkosNN::AdditiveBias;
using KokkosNN::Alibi;
using KokkosNN::BooleanMask;
using KokkosNN::CausalMask;
using KokkosNN::CrossEntropyOptions;
using KokkosNN::MaskedSoftmaxOptions;
using KokkosNN::no_view;
using KokkosNN::Reduction;
using KokkosNN::RowLengths;
using KokkosNN::SlidingWindow;

constexpr int heads = 2, queries = 3, keys = 5;
constexpr float unwritten = std::numeric_limits<float>::quiet_NaN();

template <class T>
using Values = Kokkos::View<T*, Memory>;

/// `count` elements of one value.
template <class T>
Values<T> values(std::int64_t count, float value) {
  const Values<T> view("values", count);
  Kokkos::deep_copy(view, T(value));
  return view;
}

template <class T>
using Scores = Kokkos::View<T****, Kokkos::LayoutRight, Memory>;

template <class T>
Scores<T> scores(float value) {
  const Scores<T> view("scores", 1, heads, queries, keys);
  Kokkos::deep_copy(view, T(value));
  return view;
}

/// True if a call has left a finite number in each element, or, of logarithms, also -inf.
template <class V>
bool is_written(const V& view, bool are_logarithms = false) {
  Kokkos::fence();
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  for (std::size_t i = 0; i < host.size(); ++i) {
    const auto value = static_cast<float>(host.data()[i]);
    if (are_logarithms && value < 0 && std::isinf(value)) continue;
    if (!std::isfinite(value)) return false;
  }
  return true;
}

/// The offsets of rows of 0, 1, 2, ... values.
Kokkos::View<std::int64_t*, Memory> offsets_of(int rows) {
  const Kokkos::View<std::int64_t*, Memory> offsets("offsets", rows + 1);
  const auto host = Kokkos::create_mirror_view(offsets);
  for (int r = 0; r <= rows; ++r) host(r) = std::int64_t(r) * (r - 1) / 2;
  Kokkos::deep_copy(offsets, host);
  return offsets;
}
constexpr int ragged_rows = 5, ragged_values = ragged_rows * (ragged_rows - 1) / 2;

template <class T>
struct Calls {
  using Loss = std::conditional_t<std::is_same_v<T, double>, double, float>;

  Scores<T> x = scores<T>(0.5f), y = scores<T>(0.25f), dy = scores<T>(0.125f), out = scores<T>(unwritten);
  Kokkos::View<T***, Kokkos::LayoutRight, Memory> a_row{"a row", 1, heads, queries};
  Kokkos::View<T**, Memory> logits{"logits", queries, keys}, dlogits{"dlogits", queries, keys};
  Kokkos::View<std::int64_t*, Memory> labels{"labels", queries};
  Values<T> ragged_x = values<T>(ragged_values, 0.5f), ragged_y = values<T>(ragged_values, unwritten);
  Kokkos::View<std::int64_t*, Memory> offsets = offsets_of(ragged_rows);
  Exec exec;

  Calls() {
    Kokkos::deep_copy(a_row, T(unwritten));
    Kokkos::deep_copy(dlogits, T(unwritten));
  }

  bool softmax() { return KokkosNN::softmax(exec, x, out), is_written(out); }
  bool log_softmax() { return KokkosNN::log_softmax(exec, x, out), is_written(out); }
  bool logsumexp() { return KokkosNN::logsumexp(exec, x, a_row), is_written(a_row); }
  bool softmax_backward() { return KokkosNN::softmax_backward(exec, y, dy, out), is_written(out); }
  bool log_softmax_backward() { return KokkosNN::log_softmax_backward(exec, y, dy, out), is_written(out); }
  bool logsumexp_backward() {
    Kokkos::deep_copy(a_row, T(2));
    return KokkosNN::logsumexp_backward(exec, x, a_row, a_row, out), is_written(out);
  }
  template <class M>
  bool masked_softmax(const M& mask, const MaskedSoftmaxOptions& options = {}) {
    return KokkosNN::masked_softmax(exec, x, mask, out, options), is_written(out);
  }
  template <class M>
  bool masked_softmax_backward(const M& mask, const MaskedSoftmaxOptions& options = {}) {
    return KokkosNN::masked_softmax_backward(exec, x, y, dy, mask, out, options), is_written(out);
  }
  template <class M>
  bool masked_log_softmax(const M& mask, const MaskedSoftmaxOptions& options = {}) {
    return KokkosNN::masked_log_softmax(exec, x, mask, out, options), is_written(out, true);
  }
  template <class M>
  bool masked_logsumexp(const M& mask, const MaskedSoftmaxOptions& options = {}) {
    const Kokkos::View<T***, Memory> lse("lse", 1, heads, queries);
    Kokkos::deep_copy(lse, T(unwritten));
    return KokkosNN::masked_logsumexp(exec, x, mask, lse, options), is_written(lse);
  }
  template <class M>
  bool masked_log_softmax_backward(const M& mask, const MaskedSoftmaxOptions& options = {}) {
    return KokkosNN::masked_log_softmax_backward(exec, x, y, dy, mask, out, options), is_written(out);
  }
  /// Calls forward with these options first: the gradient is that of its result.
  template <class M>
  bool masked_softmax_bias_backward(const M& mask, const MaskedSoftmaxOptions& options = {}) {
    KokkosNN::masked_softmax(exec, x, mask, y, options);
    return KokkosNN::masked_softmax_bias_backward(exec, y, dy, mask, out), is_written(out);
  }
  template <class M>
  bool masked_softmax_sinks_backward(const M& mask, const MaskedSoftmaxOptions& options = {}) {
    const auto dsinks = values<T>(heads, unwritten);
    KokkosNN::masked_softmax(exec, x, mask, y, options);
    return KokkosNN::masked_softmax_sinks_backward(exec, y, dy, mask, dsinks), is_written(dsinks);
  }
  bool cross_entropy(const CrossEntropyOptions& options = {.reduction = Reduction::none}) {
    const auto loss = values<Loss>(queries, unwritten);
    return KokkosNN::cross_entropy(exec, logits, labels, loss, options), is_written(loss);
  }
  bool cross_entropy_backward(const CrossEntropyOptions& options = {.reduction = Reduction::none}) {
    const auto lse = values<Loss>(queries, 2), dloss = values<Loss>(queries, 1);
    return KokkosNN::cross_entropy_backward(exec, logits, labels, lse, dloss, dlogits, options), is_written(dlogits);
  }
  bool cross_entropy_with_gradient(const CrossEntropyOptions& options = {.reduction = Reduction::none}) {
    const auto loss = values<Loss>(queries, unwritten);
    KokkosNN::cross_entropy_with_gradient(exec, logits, labels, loss, dlogits, options);
    return is_written(loss) && is_written(dlogits);
  }
  bool soft_cross_entropy() {
    const auto loss = values<Loss>(queries, unwritten);
    KokkosNN::soft_cross_entropy(exec, logits, logits, loss, {.reduction = Reduction::none});
    return is_written(loss);
  }
  bool soft_cross_entropy_with_gradient() {
    const auto loss = values<Loss>(queries, unwritten);
    KokkosNN::soft_cross_entropy_with_gradient(exec, logits, logits, loss, dlogits, {.reduction = Reduction::none});
    return is_written(loss) && is_written(dlogits);
  }
  bool cross_entropy_from_lse() {
    const auto loss = values<Loss>(queries, unwritten);
    const auto lse = values<Loss>(queries, 2), label_logits = values<Loss>(queries, 1);
    const CrossEntropyOptions options{.reduction = Reduction::none};
    return KokkosNN::cross_entropy_from_lse(exec, lse, label_logits, labels, loss, options), is_written(loss);
  }
  bool rms_norm() {
    const auto rstd = values<Loss>(queries, unwritten);
    KokkosNN::rms_norm(exec, logits, values<T>(keys, 2), dlogits, rstd);
    return is_written(dlogits) && is_written(rstd);
  }
  bool layer_norm() {
    const auto mean = values<Loss>(queries, unwritten), rstd = values<Loss>(queries, unwritten);
    KokkosNN::layer_norm(exec, logits, values<T>(keys, 2), values<T>(keys, 1), dlogits, mean, rstd);
    return is_written(dlogits) && is_written(mean) && is_written(rstd);
  }
  bool rms_norm_backward() {
    const auto rstd = values<Loss>(queries, 2), dweight = values<Loss>(keys, unwritten);
    KokkosNN::rms_norm_backward(exec, logits, values<T>(keys, 2), rstd, logits, dlogits, dweight);
    return is_written(dlogits) && is_written(dweight);
  }
  bool layer_norm_backward() {
    const auto mean = values<Loss>(queries, 1), rstd = values<Loss>(queries, 2);
    const auto dweight = values<T>(keys, unwritten), dbias = values<T>(keys, unwritten);
    KokkosNN::layer_norm_backward(exec, logits, values<T>(keys, 2), mean, rstd, logits, dlogits, dweight, dbias);
    return is_written(dlogits) && is_written(dweight) && is_written(dbias);
  }
  bool add_rms_norm() {
    const auto rstd = values<Loss>(queries, unwritten);
    const Kokkos::View<T**, Memory> sum("sum", queries, keys);
    Kokkos::deep_copy(sum, T(unwritten));
    KokkosNN::add_rms_norm(exec, logits, logits, values<T>(keys, 2), dlogits, sum, rstd);
    return is_written(dlogits) && is_written(sum) && is_written(rstd);
  }
  bool add_layer_norm() {
    const auto mean = values<Loss>(queries, unwritten), rstd = values<Loss>(queries, unwritten);
    const Kokkos::View<T**, Memory> sum("sum", queries, keys);
    Kokkos::deep_copy(sum, T(unwritten));
    KokkosNN::add_layer_norm(exec, logits, logits, values<T>(keys, 2), no_view, dlogits, sum, mean, rstd);
    return is_written(dlogits) && is_written(sum) && is_written(mean) && is_written(rstd);
  }
  bool add_rms_norm_backward() {
    const auto rstd = values<Loss>(queries, 2), dweight = values<Loss>(keys, unwritten);
    KokkosNN::add_rms_norm_backward(exec, logits, values<T>(keys, 2), rstd, logits, logits, dlogits, dweight);
    return is_written(dlogits) && is_written(dweight);
  }
  bool add_layer_norm_backward() {
    const auto mean = values<Loss>(queries, 1), rstd = values<Loss>(queries, 2);
    const auto dweight = values<T>(keys, unwritten), dbias = values<T>(keys, unwritten);
    KokkosNN::add_layer_norm_backward(exec, logits, values<T>(keys, 2), mean, rstd, logits, logits, dlogits, dweight,
                                      dbias);
    return is_written(dlogits) && is_written(dweight) && is_written(dbias);
  }
  /// f(int8 or float8, scales) of logits; each row's scale is a number then, and no element -128 or NaN.
  template <class F>
  bool quantized(const F& f) {
    const auto call = [&]<class Q>(Q nothing) {
      const Kokkos::View<Q**, Memory> codes("codes", queries, keys);
      const auto scales = values<float>(queries, unwritten);
      Kokkos::deep_copy(codes, nothing);
      f(codes, scales);
      const auto host  = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), codes);
      std::size_t left = 0;
      for (std::size_t i = 0; i < host.size(); ++i) left += same_bits(host.data()[i], nothing);
      return left == 0 && is_written(scales);
    };
    return call(std::int8_t(-128)) && call(KokkosNN::float8_e4m3::from_bits(0xff));
  }
  bool quantized_softmax() {
    return quantized([&](const auto& y, const auto& scales) { KokkosNN::quantized_softmax(exec, logits, y, scales); });
  }
  bool quantized_rms_norm() {
    return quantized([&](const auto& y, const auto& scales) {
      KokkosNN::quantized_rms_norm(exec, logits, values<T>(keys, 2), y, scales);
    });
  }
  bool quantized_layer_norm() {
    return quantized([&](const auto& y, const auto& scales) {
      KokkosNN::quantized_layer_norm(exec, logits, values<T>(keys, 2), values<T>(keys, 1), y, scales);
    });
  }
  bool column_sums() {
    const auto sums = values<T>(keys, unwritten);
    return KokkosNN::column_sums(exec, logits, sums), is_written(sums);
  }
  /// An elementwise operator's one output or two: f(first, second).
  template <class F>
  bool elementwise(const F& f, bool has_two = false) {
    const Scores<T> second = scores<T>(unwritten);
    f(out, second);
    return is_written(out) && (!has_two || is_written(second));
  }
  bool elementwise(const std::string& op) {
    using namespace KokkosNN;
    if (op == "silu") return elementwise([&](const auto& o, const auto&) { silu(exec, x, o); });
    if (op == "gelu") return elementwise([&](const auto& o, const auto&) { gelu(exec, x, o); });
    if (op == "add") return elementwise([&](const auto& o, const auto&) { add(exec, x, y, o); });
    if (op == "mul") return elementwise([&](const auto& o, const auto&) { mul(exec, x, y, o); });
    if (op == "cast") return elementwise([&](const auto& o, const auto&) { cast(exec, x, o); });
    if (op == "swiglu") return elementwise([&](const auto& o, const auto&) { swiglu(exec, x, y, o); });
    if (op == "geglu") return elementwise([&](const auto& o, const auto&) { geglu(exec, x, y, o); });
    if (op == "silu_backward") return elementwise([&](const auto& o, const auto&) { silu_backward(exec, x, dy, o); });
    if (op == "gelu_backward") return elementwise([&](const auto& o, const auto&) { gelu_backward(exec, x, dy, o); });
    if (op == "swiglu_backward")
      return elementwise([&](const auto& o, const auto& p) { swiglu_backward(exec, x, y, dy, o, p); }, true);
    if (op == "geglu_backward")
      return elementwise([&](const auto& o, const auto& p) { geglu_backward(exec, x, y, dy, o, p); }, true);
    return false;
  }
  bool rope() {
    const Kokkos::View<Loss**, Memory> cos("cos", heads, 2), sin("sin", heads, 2);
    Kokkos::deep_copy(cos, 0.5);
    Kokkos::deep_copy(sin, 0.5);
    const KokkosNN::RopeOptions options{.rotary_dims = keys - 1};  // by which a row's last element is copied
    KokkosNN::rope(exec, x, cos, sin, out, options);
    if (!is_written(out)) return false;
    Kokkos::deep_copy(out, T(unwritten));
    return KokkosNN::rope(exec, x, out, options), is_written(out);
  }
  bool rope_backward() {
    const KokkosNN::RopeOptions options{.rotary_dims = keys - 1};
    return KokkosNN::rope_backward(exec, dy, out, options), is_written(out);
  }
  bool rms_norm_rope() {
    const Kokkos::View<Loss**, Memory> cos("cos", heads, 2), sin("sin", heads, 2);
    Kokkos::deep_copy(cos, 0.5);
    const KokkosNN::RmsNormRopeOptions options{.rope = {.rotary_dims = keys - 1}};
    KokkosNN::rms_norm_rope(exec, x, values<T>(keys, 2), cos, sin, out, options);
    if (!is_written(out)) return false;
    Kokkos::deep_copy(out, T(unwritten));
    return KokkosNN::rms_norm_rope(exec, x, KokkosNN::no_view, out, options), is_written(out);
  }
  bool matmul() {
    const Kokkos::View<T**, Kokkos::LayoutRight, Memory> b("b", keys, keys);
    KokkosNN::matmul(exec, x, b, out);
    return is_written(out);
  }
  bool matmul_backward() {
    const Kokkos::View<T**, Kokkos::LayoutRight, Memory> b("b", keys, keys), db("db", keys, keys);
    Kokkos::deep_copy(db, T(unwritten));
    KokkosNN::matmul_backward(exec, x, x, b, out, db);
    return is_written(out) && is_written(db);
  }
  /// Scores take the parts of q and k, which have as many queries and keys as x.
  template <class M>
  bool attention(const M& mask, const KokkosNN::AttentionOptions& options = {}) {
    const Kokkos::View<T****, Kokkos::LayoutRight, Memory> k("k", 1, heads, keys, keys),
        o("o", 1, heads, queries, keys);
    Kokkos::deep_copy(o, T(unwritten));
    KokkosNN::attention(exec, x, k, k, o, mask, options);
    return is_written(o);
  }
  template <class M>
  bool attention_backward(const M& mask, const KokkosNN::AttentionOptions& options = {}) {
    using Heads = Kokkos::View<T****, Kokkos::LayoutRight, Memory>;
    const Heads k("k", 1, heads, keys, keys), o("o", 1, heads, queries, keys), dout("dout", 1, heads, queries, keys);
    const Heads dq("dq", 1, heads, queries, keys), dk("dk", 1, heads, keys, keys), dv("dv", 1, heads, keys, keys);
    const Kokkos::View<KokkosNN::accumulator_t<T>***, Memory> lse("lse", 1, heads, queries);
    for (const Heads& gradient : {dq, dk, dv}) Kokkos::deep_copy(gradient, T(unwritten));
    KokkosNN::attention_backward(exec, x, k, k, o, dout, lse, mask, dq, dk, dv, options);
    return is_written(dq) && is_written(dk) && is_written(dv);
  }
  /// Masks of keys by their Views are for rectangles of scores alone.
  template <class M>
  static constexpr bool suits_packed =
      !KokkosNN::Impl::is_mask_of<M, BooleanMask> && !KokkosNN::Impl::is_mask_of<M, AdditiveBias>;
  using Tokens = Kokkos::View<T***, Kokkos::LayoutRight, Memory>;

  /// Offsets of one sequence of so many tokens.
  static Kokkos::View<int*, Memory> one_sequence(int tokens) {
    const Kokkos::View<int*, Memory> offsets("offsets", 2);
    Kokkos::deep_copy(Kokkos::subview(offsets, 1), tokens);
    return offsets;
  }
  /// The mask, with a bias.
  template <class M>
  static auto with_bias(const M& mask) {
    const KokkosNN::AdditiveBias bias{Kokkos::View<float**, Kokkos::LayoutRight, Memory>("bias", queries, keys)};
    if constexpr (KokkosNN::Impl::is_mask_of<M, AdditiveBias>) {
      return mask;
    } else if constexpr (std::is_same_v<M, KokkosNN::Masks<>>) {
      return KokkosNN::masks(bias);
    } else {
      return KokkosNN::masks(bias, mask);
    }
  }
  template <class M>
  bool attention_bias_backward(const M& mask, const KokkosNN::AttentionOptions& options = {}) {
    const Kokkos::View<T****, Kokkos::LayoutRight, Memory> k("k", 1, heads, keys, keys);
    const Kokkos::View<KokkosNN::accumulator_t<T>***, Memory> lse("lse", 1, heads, queries);
    const auto call = [&](const auto& dbias) {
      Kokkos::deep_copy(dbias, unwritten);
      KokkosNN::attention_bias_backward(exec, x, k, k, y, dy, lse, with_bias(mask), dbias, options);
      return is_written(dbias);
    };
    if constexpr (KokkosNN::Impl::is_mask_of<M, AdditiveBias>) {
      return call(Kokkos::View<float****, Kokkos::LayoutRight, Memory>("dbias", 1, 1, queries, keys));
    } else {
      return call(Kokkos::View<float**, Kokkos::LayoutRight, Memory>("dbias", queries, keys));
    }
  }
  bool attention_sinks_backward() {
    const auto dsinks = values<T>(heads, unwritten);
    const Kokkos::View<KokkosNN::accumulator_t<T>***, Memory> lse("lse", 1, heads, queries);
    KokkosNN::attention_sinks_backward(exec, y, dy, lse, dsinks, {.sinks = values<float>(heads, 0.5f)});
    return is_written(dsinks);
  }
  bool graph_attention(const KokkosNN::AttentionOptions& options = {}) {
    const Tokens q("q", queries, heads, keys), k("k", keys, heads, keys), o("o", queries, heads, keys);
    const Kokkos::View<int*, Memory> entries("entries", keys);
    Kokkos::deep_copy(o, T(unwritten));
    KokkosNN::graph_attention(exec, q, k, k, an_edge_each(), entries, o, options);
    return is_written(o);
  }
  bool graph_attention_backward(const KokkosNN::AttentionOptions& options = {}) {
    const Tokens q("q", queries, heads, keys), k("k", keys, heads, keys), dq("dq", queries, heads, keys);
    const Tokens dk("dk", keys, heads, keys), dv("dv", keys, heads, keys);
    const Kokkos::View<KokkosNN::accumulator_t<T>**, Memory> lse("lse", queries, heads);
    const Kokkos::View<int*, Memory> entries("entries", keys);
    for (const Tokens& gradient : {dq, dk, dv}) Kokkos::deep_copy(gradient, T(unwritten));
    KokkosNN::graph_attention_backward(exec, q, k, k, an_edge_each(), entries, q, q, lse, dq, dk, dv, options);
    return is_written(dq) && is_written(dk) && is_written(dv);
  }
  /// A row map of nodes with an edge each.
  static Kokkos::View<int*, Memory> an_edge_each() {
    const Kokkos::View<int*, Memory> row_map("row map", queries + 1);
    const auto host = Kokkos::create_mirror_view(row_map);
    for (int i = 0; i <= queries; ++i) host(i) = i;
    Kokkos::deep_copy(row_map, host);
    return row_map;
  }
  bool merge_attention(const KokkosNN::AttentionOptions& options = {}) {
    const Kokkos::View<T*****, Kokkos::LayoutRight, Memory> parts("parts", 2, 1, heads, queries, keys);
    const Kokkos::View<KokkosNN::accumulator_t<T>****, Memory> lse("lse", 2, 1, heads, queries);
    return KokkosNN::merge_attention(exec, parts, lse, out, options), is_written(out);
  }
  template <class M>
  bool packed_attention(const M& mask, const KokkosNN::AttentionOptions& options = {}) {
    const Tokens q("q", queries, heads, keys), k("k", keys, heads, keys), o("o", queries, heads, keys);
    Kokkos::deep_copy(o, T(unwritten));
    if constexpr (suits_packed<M>) {
      KokkosNN::packed_attention(exec, q, k, k, one_sequence(queries), one_sequence(keys), o, mask, options);
    }
    return is_written(o);
  }
  template <class M>
  bool packed_attention_backward(const M& mask, const KokkosNN::AttentionOptions& options = {}) {
    const Tokens q("q", queries, heads, keys), k("k", keys, heads, keys), dq("dq", queries, heads, keys);
    const Tokens dk("dk", keys, heads, keys), dv("dv", keys, heads, keys);
    const Kokkos::View<KokkosNN::accumulator_t<T>**, Memory> lse("lse", queries, heads);
    for (const Tokens& gradient : {dq, dk, dv}) Kokkos::deep_copy(gradient, T(unwritten));
    if constexpr (suits_packed<M>) {
      KokkosNN::packed_attention_backward(exec, q, k, k, one_sequence(queries), one_sequence(keys), q, q, lse, mask, dq,
                                          dk, dv, options);
    }
    return is_written(dq) && is_written(dk) && is_written(dv);
  }
  bool segmented_softmax() {
    return KokkosNN::segmented_softmax(exec, ragged_x, offsets, ragged_y), is_written(ragged_y);
  }
  bool segmented_log_softmax() {
    return KokkosNN::segmented_log_softmax(exec, ragged_x, offsets, ragged_y), is_written(ragged_y);
  }
  bool segmented_logsumexp() {
    const auto lse = values<T>(ragged_rows, unwritten);
    KokkosNN::segmented_logsumexp(exec, ragged_x, offsets, lse);
    return is_written(Kokkos::subview(lse, std::pair(2, ragged_rows)));  // rows 0 and 1 are empty
  }
  bool segmented_logsumexp_backward() {
    const auto lse = values<T>(ragged_rows, 2), dlse = values<T>(ragged_rows, 1);
    KokkosNN::segmented_logsumexp_backward(exec, ragged_x, lse, dlse, offsets, ragged_y);
    return is_written(ragged_y);
  }
  bool segmented_softmax_backward() {
    return KokkosNN::segmented_softmax_backward(exec, ragged_x, ragged_x, offsets, ragged_y), is_written(ragged_y);
  }
  bool segmented_log_softmax_backward() {
    return KokkosNN::segmented_log_softmax_backward(exec, ragged_x, ragged_x, offsets, ragged_y), is_written(ragged_y);
  }
};

/// f(the calls of that type) for a type by its name in the table.
template <class F>
bool with_type(const std::string& type, const F& f) {
  const auto run = [&]<class T>(TypeTag<T>) {
    Calls<T> calls;
    return f(calls);
  };
  if (type == "double") return run(TypeTag<double>{});
  if (type == "half_t") return run(TypeTag<Half>{});
  if (type == "bhalf_t") return run(TypeTag<BHalf>{});
  return run(TypeTag<float>{});
}

/// The call of an operator on elements of a type; false where there is no such operator.
bool runs_with_type(const std::string& op, const std::string& type) {
  return with_type(type, [&](auto& c) {
    const auto none = KokkosNN::masks();
    if (op == "softmax") return c.softmax();
    if (op == "log_softmax") return c.log_softmax();
    if (op == "logsumexp") return c.logsumexp();
    if (op == "softmax_backward") return c.softmax_backward();
    if (op == "log_softmax_backward") return c.log_softmax_backward();
    if (op == "logsumexp_backward") return c.logsumexp_backward();
    if (op == "masked_softmax") return c.masked_softmax(none);
    if (op == "masked_log_softmax") return c.masked_log_softmax(none);
    if (op == "masked_logsumexp") return c.masked_logsumexp(none);
    if (op == "masked_softmax_backward") return c.masked_softmax_backward(none);
    if (op == "masked_log_softmax_backward") return c.masked_log_softmax_backward(none);
    if (op == "masked_softmax_bias_backward") return c.masked_softmax_bias_backward(none);
    if (op == "masked_softmax_sinks_backward") return c.masked_softmax_sinks_backward(none);
    if (op == "cross_entropy") return c.cross_entropy();
    if (op == "cross_entropy_backward") return c.cross_entropy_backward();
    if (op == "cross_entropy_with_gradient") return c.cross_entropy_with_gradient();
    if (op == "cross_entropy_from_lse") return c.cross_entropy_from_lse();
    if (op == "soft_cross_entropy") return c.soft_cross_entropy();
    if (op == "soft_cross_entropy_with_gradient") return c.soft_cross_entropy_with_gradient();
    if (op == "rms_norm") return c.rms_norm();
    if (op == "layer_norm") return c.layer_norm();
    if (op == "rms_norm_backward") return c.rms_norm_backward();
    if (op == "layer_norm_backward") return c.layer_norm_backward();
    if (op == "add_rms_norm") return c.add_rms_norm();
    if (op == "add_layer_norm") return c.add_layer_norm();
    if (op == "add_rms_norm_backward") return c.add_rms_norm_backward();
    if (op == "add_layer_norm_backward") return c.add_layer_norm_backward();
    if (op == "quantized_softmax") return c.quantized_softmax();
    if (op == "quantized_rms_norm") return c.quantized_rms_norm();
    if (op == "quantized_layer_norm") return c.quantized_layer_norm();
    if (op == "column_sums") return c.column_sums();
    if (op == "attention") return c.attention(none);
    if (op == "attention_backward") return c.attention_backward(none);
    if (op == "attention_bias_backward") return c.attention_bias_backward(none);
    if (op == "attention_sinks_backward") return c.attention_sinks_backward();
    if (op == "graph_attention") return c.graph_attention();
    if (op == "graph_attention_backward") return c.graph_attention_backward();
    if (op == "merge_attention") return c.merge_attention();
    if (op == "packed_attention") return c.packed_attention(none);
    if (op == "packed_attention_backward") return c.packed_attention_backward(none);
    if (op == "matmul") return c.matmul();
    if (op == "matmul_backward") return c.matmul_backward();
    if (op == "rope") return c.rope();
    if (op == "rms_norm_rope") return c.rms_norm_rope();
    if (op == "rope_backward") return c.rope_backward();
    if (op == "segmented_softmax") return c.segmented_softmax();
    if (op == "segmented_log_softmax") return c.segmented_log_softmax();
    if (op == "segmented_logsumexp") return c.segmented_logsumexp();
    if (op == "segmented_logsumexp_backward") return c.segmented_logsumexp_backward();
    if (op == "segmented_softmax_backward") return c.segmented_softmax_backward();
    if (op == "segmented_log_softmax_backward") return c.segmented_log_softmax_backward();
    return c.elementwise(op);
  });
}

/// run(mask, options) with what a column of masks names; false where there is no such mask.
template <class Run>
bool with_mask(const std::string& mask, const Run& run) {
  const Kokkos::View<int*, Memory> lengths("lengths", 1);
  Kokkos::deep_copy(lengths, 3);
  const auto of_heads = values<float>(heads, 0.5f);
  const Kokkos::View<float****, Kokkos::LayoutRight, Memory> bias("bias", 1, 1, queries, keys);
  const Kokkos::View<bool****, Kokkos::LayoutRight, Memory> kept("kept", 1, 1, queries, keys);
  Kokkos::deep_copy(kept, true);
  if (mask == "boolean") return run(BooleanMask{kept}, MaskedSoftmaxOptions{});
  if (mask == "bias") return run(AdditiveBias{bias}, MaskedSoftmaxOptions{});
  if (mask == "causal") return run(CausalMask{}, MaskedSoftmaxOptions{});
  if (mask == "window") return run(SlidingWindow{1, 1}, MaskedSoftmaxOptions{});
  if (mask == "lengths") return run(RowLengths{lengths}, MaskedSoftmaxOptions{});
  if (mask == "ALiBi") return run(Alibi{of_heads}, MaskedSoftmaxOptions{});
  if (mask == "sinks") return run(KokkosNN::masks(), MaskedSoftmaxOptions{.sinks = of_heads});
  if (mask == "softcap") return run(KokkosNN::masks(), MaskedSoftmaxOptions{.softcap = 30});
  return false;
}

/// True if the operator runs with a mask of that name on that type, and writes its results.
bool runs_with_mask(const std::string& op, const std::string& mask, const std::string& type) {
  const bool is_attention = op.find("attention") != std::string::npos;
  if (!op.starts_with("masked") && !is_attention && mask != "softcap") return false;
  return with_type(type, [&](auto& c) {
    const CrossEntropyOptions capped{.reduction = Reduction::none, .softcap = 30};
    if (op == "cross_entropy") return c.cross_entropy(capped);
    if (op == "cross_entropy_backward") return c.cross_entropy_backward(capped);
    if (op == "cross_entropy_with_gradient") return c.cross_entropy_with_gradient(capped);
    return with_mask(mask, [&](const auto& m, const MaskedSoftmaxOptions& options) {
      const KokkosNN::AttentionOptions of_attention{.softcap = options.softcap, .sinks = options.sinks};
      if (op == "attention") return c.attention(m, of_attention);
      if (op == "attention_backward") return c.attention_backward(m, of_attention);
      if (op == "attention_bias_backward") return c.attention_bias_backward(m, of_attention);
      if (op == "attention_sinks_backward") return options.sinks.exist() && c.attention_sinks_backward();
      if (op.starts_with("graph_attention")) {
        if (!options.sinks.exist() && options.softcap == 0) return false;
        return op == "graph_attention" ? c.graph_attention(of_attention) : c.graph_attention_backward(of_attention);
      }
      if (op == "merge_attention") return options.sinks.exist() && c.merge_attention(of_attention);
      if (op == "packed_attention") return c.packed_attention(m, of_attention);
      if (op == "packed_attention_backward") return c.packed_attention_backward(m, of_attention);
      if (op == "masked_softmax") return c.masked_softmax(m, options);
      if (op == "masked_log_softmax") return c.masked_log_softmax(m, options);
      if (op == "masked_logsumexp") return c.masked_logsumexp(m, options);
      if (op == "masked_softmax_backward") return c.masked_softmax_backward(m, options);
      if (op == "masked_log_softmax_backward") return c.masked_log_softmax_backward(m, options);
      if (op == "masked_softmax_bias_backward") return c.masked_softmax_bias_backward(m, options);
      if (op == "masked_softmax_sinks_backward") return c.masked_softmax_sinks_backward(m, options);
      return false;
    });
  });
}

/// The operators that the public headers declare, each by its overload that takes an instance first. The fused forms
/// are softmax, log_softmax and logsumexp, and those on ranks have the same names.
std::set<std::string> declared_operators() {
  const std::regex declaration("void ([a-z_]+)\\(const Exec& exec, .*");
  std::set<std::string> names;
  for (const auto& header : std::filesystem::directory_iterator(KOKKOSNN_HEADERS)) {
    if (!header.is_regular_file()) continue;
    std::ifstream lines(header.path());
    for (std::string line; std::getline(lines, line);) {
      std::smatch match;
      if (std::regex_match(line, match, declaration) && !match[1].str().starts_with("fused_")) names.insert(match[1]);
    }
  }
  return names;
}

/// A table of that page: its header, and its rows by the name in the first column.
struct Table {
  std::vector<std::string> columns;
  std::map<std::string, std::vector<std::string>> rows;
};

/// The cells of a line "| a | `b` |", without spaces and backticks.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream parts(line.substr(1));
  for (std::string cell; std::getline(parts, cell, '|');) {
    std::erase_if(cell, [](char c) { return c == ' ' || c == '`'; });
    cells.push_back(cell);
  }
  return cells;
}

Table table_of_page(const std::string& first_column) {
  std::ifstream page(KOKKOSNN_SUPPORT);
  Table table;
  for (std::string line; std::getline(page, line);) {
    if (line.empty() || line[0] != '|') {
      if (!table.columns.empty()) break;
      continue;
    }
    const auto cells = cells_of(line);
    if (table.columns.empty()) {
      if (cells[0] == first_column) table.columns = cells;
    } else if (cells[0].rfind("---", 0) != 0) {
      table.rows[cells[0]] = cells;
    }
  }
  return table;
}

const std::vector<std::string> types{"double", "float", "half_t", "bhalf_t"};

TEST(OperatorTable, OfSupportHasEveryPublicOperator) {
  const std::set<std::string> declared = declared_operators();
  std::set<std::string> listed;
  for (const auto& [op, cells] : table_of_page("operator").rows) listed.insert(op);

  EXPECT_GE(declared.size(), 27U) << "in " KOKKOSNN_HEADERS;
  EXPECT_EQ(listed, declared);
}

TEST(OperatorTable, HasNoOperatorThatIsNotPublic) {
  const std::set<std::string> declared = declared_operators();
  for (int op = 0; op < KokkosNN::operator_count; ++op) {
    const KokkosNN::OperatorTraits& traits = KokkosNN::traits_of(KokkosNN::RowOperator(op));
    EXPECT_TRUE(declared.contains(traits.name)) << traits.name;
    EXPECT_EQ(declared.contains("segmented_" + std::string(traits.name)),
              traits.ragged == KokkosNN::OperatorTraits::Ragged::ragged)
        << traits.name;
  }
}

TEST(OperatorTable, HasAllOperatorsInTheHeaderForC) {
  std::ifstream header(KOKKOSNN_HEADERS "/kokkosnn.h");
  std::ostringstream text;
  text << header.rdbuf();
  for (const std::string& op : declared_operators()) {
    const bool has_function = text.str().find("kokkosnn_status kokkosnn_" + op + "(") != std::string::npos;
    EXPECT_TRUE(has_function) << op;
  }
}

TEST(OperatorTable, OfSupportSaysWhatRuns) {
  const Table table = table_of_page("operator");
  ASSERT_FALSE(table.rows.empty()) << "in " KOKKOSNN_SUPPORT;
  for (const auto& [op, cells] : table.rows) {
    ASSERT_EQ(cells.size(), table.columns.size()) << op;
    for (std::size_t i = 1; i < cells.size(); ++i) {
      const std::string& column = table.columns[i];
      const bool is_type        = std::ranges::find(types, column) != types.end();
      for (const std::string& type : types) {
        if (is_type && type != column) continue;
        const bool runs = is_type ? runs_with_type(op, type) : runs_with_mask(op, column, type);
        EXPECT_EQ(cells[i], runs ? "yes" : "") << op << ", " << column << ", " << type;
      }
    }
  }
}

/// Every output holds NaN before the call, which stays where it is read and multiplied by 0.
TEST(Outputs, AreNeverReadByAnyOperator) {
  for (const std::string& op : declared_operators()) {
    for (const std::string& type : types) EXPECT_TRUE(runs_with_type(op, type)) << op << ", " << type;
  }
}

TEST(OperatorTable, OfSupportNamesThisBackendAsTested) {
  const Table table = table_of_page("backend");
  ASSERT_TRUE(table.rows.contains(Exec::name())) << Exec::name();
  const std::string& tests = table.rows.at(Exec::name())[1];
  // Whoever first runs them with HIP has news for that table, but nothing is wrong.
  EXPECT_TRUE(tests == "run" || Exec::name() == std::string("HIP")) << Exec::name() << ": " << tests;
}

}  // namespace
}  // namespace KokkosNNTest
