// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/types.hpp"

#include <KokkosNN/merge_attention.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

// Joined results of attention, against long double and against attention over all keys.

namespace KokkosNNTest {
namespace {

using KokkosNN::AttentionOptions;
using KokkosNN::MaskedRowPolicy;
using KokkosNN::merge_attention;

constexpr std::size_t batch = 2, heads = 3, queries = 5, dim = 70;
constexpr double infinity = std::numeric_limits<double>::infinity();

double value_at(std::size_t i, double phase) { return std::sin(0.7 * static_cast<double>(i) + phase); }

/// Parts of P, whose values are sines and log-sum-exps go from -9 to 9, and the result of X.
template <class P, class X>
struct Merge {
  using A = KokkosNN::accumulator_t<X>;

  Kokkos::View<P*****, Kokkos::LayoutRight, Memory> o_parts;
  Kokkos::View<A****, Kokkos::LayoutLeft, Memory> lse_parts;
  Kokkos::View<X****, Kokkos::LayoutRight, Memory> o{"o", batch, heads, queries, dim};
  Kokkos::View<A***, Memory> lse{"lse", batch, heads, queries};
  typename decltype(o_parts)::host_mirror_type o_parts_host;
  typename decltype(lse_parts)::host_mirror_type lse_parts_host;
  typename decltype(o)::host_mirror_type o_host     = Kokkos::create_mirror(o);
  typename decltype(lse)::host_mirror_type lse_host = Kokkos::create_mirror(lse);

  explicit Merge(std::size_t parts)
      : o_parts("o parts", parts, batch, heads, queries, dim),
        lse_parts("lse parts", parts, batch, heads, queries),
        o_parts_host(Kokkos::create_mirror(o_parts)),
        lse_parts_host(Kokkos::create_mirror(lse_parts)) {
    for (std::size_t i = 0; i < o_parts_host.size(); ++i) o_parts_host.data()[i] = static_cast<P>(value_at(i, 0.3));
    for (std::size_t i = 0; i < lse_parts_host.size(); ++i) {
      lse_parts_host.data()[i] = static_cast<A>(9 * value_at(i, 1.1));
    }
  }
  void run(const AttentionOptions& options = {}) {
    Kokkos::deep_copy(o_parts, o_parts_host);
    Kokkos::deep_copy(lse_parts, lse_parts_host);
    merge_attention(Exec(), o_parts, lse_parts, o, options, lse);
    Exec().fence();
    Kokkos::deep_copy(o_host, o);
    Kokkos::deep_copy(lse_host, lse);
  }
  void expect_right(double sink = -infinity) const {
    const double unit     = std::is_same_v<A, double> ? 0x1p-50 : 0x1p-21;
    const double rounding = unit + (is_16_bit<X> ? std::ldexp(1.0, -Format<X>::digits) : 0);
    for (std::size_t b = 0; b < batch; ++b)
      for (std::size_t h = 0; h < heads; ++h)
        for (std::size_t q = 0; q < queries; ++q) {
          long double sum = std::exp(static_cast<long double>(sink));
          for (std::size_t p = 0; p < o_parts.extent(0); ++p) sum += weight(p, b, h, q);
          ASSERT_NEAR(static_cast<double>(lse_host(b, h, q)), static_cast<double>(std::log(sum)), 16 * unit);
          for (std::size_t d = 0; d < dim; ++d) {
            long double result = 0;
            for (std::size_t p = 0; p < o_parts.extent(0); ++p) {
              result += weight(p, b, h, q) / sum * static_cast<double>(o_parts_host(p, b, h, q, d));
            }
            ASSERT_NEAR(static_cast<double>(o_host(b, h, q, d)), static_cast<double>(result), 16 * rounding)
                << b << ' ' << h << ' ' << q << ' ' << d;
          }
        }
  }

 private:
  long double weight(std::size_t p, std::size_t b, std::size_t h, std::size_t q) const {
    return std::exp(static_cast<long double>(lse_parts_host(p, b, h, q)));
  }
};

template <class T>
class MergeAttention : public ::testing::Test {};
TYPED_TEST_SUITE(MergeAttention, ElementTypes, ElementNames);

TYPED_TEST(MergeAttention, IsTheWeightedSumOfAnyNumberOfParts) {
  for (const std::size_t parts : {1, 2, 3, 33}) {
    Merge<TypeParam, TypeParam> merge(parts);
    merge.run();
    merge.expect_right();
    Merge<KokkosNN::accumulator_t<TypeParam>, TypeParam> of_sums(parts);
    of_sums.run();
    of_sums.expect_right();
  }
}

TYPED_TEST(MergeAttention, LeavesOnePartAsItIs) {
  Merge<TypeParam, TypeParam> merge(1);
  merge.run();
  for (std::size_t i = 0; i < merge.o_host.size(); ++i) {
    ASSERT_EQ(static_cast<double>(merge.o_host.data()[i]), static_cast<double>(merge.o_parts_host.data()[i]));
  }
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t q = 0; q < queries; ++q) ASSERT_EQ(merge.lse_host(b, h, q), merge.lse_parts_host(0, b, h, q));
}

TYPED_TEST(MergeAttention, GivesWhatAttentionGivesOverAllKeys) {
  using A                   = KokkosNN::accumulator_t<TypeParam>;
  using Heads               = Kokkos::View<TypeParam****, Kokkos::LayoutRight, Memory>;
  constexpr std::size_t cut = 11, keys = 29;
  const Heads q("q", batch, heads, queries, 8), k("k", batch, heads, keys, 8), v("v", batch, heads, keys, dim);
  double phase = 0;
  for (const Heads& t : {q, k, v}) {
    const auto host = Kokkos::create_mirror_view(t);
    for (std::size_t i = 0; i < host.size(); ++i) host.data()[i] = static_cast<TypeParam>(value_at(i, ++phase));
    Kokkos::deep_copy(t, host);
  }
  Merge<TypeParam, TypeParam> merge(2);
  const KokkosNN::AttentionOptions options{.softcap = 3};
  for (const std::size_t p : {0, 1}) {
    const auto part = std::pair(p == 0 ? std::size_t(0) : cut, p == 0 ? cut : keys);
    const auto all  = Kokkos::ALL;
    KokkosNN::attention(Exec(), q, Kokkos::subview(k, all, all, part, all), Kokkos::subview(v, all, all, part, all),
                        Kokkos::subview(merge.o_parts, p, all, all, all, all), KokkosNN::masks(), options,
                        Kokkos::subview(merge.lse_parts, p, all, all, all));
  }
  const Kokkos::View<A***, Memory> lse("lse", batch, heads, queries), whole_lse("whole", batch, heads, queries);
  const Heads whole("whole", batch, heads, queries, dim);
  merge_attention(Exec(), merge.o_parts, merge.lse_parts, merge.o, {}, lse);
  KokkosNN::attention(Exec(), q, k, v, whole, KokkosNN::masks(), options, whole_lse);
  Exec().fence();
  const auto host = [](const auto& t) { return Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), t); };
  const auto got = host(merge.o), want = host(whole);
  const auto got_lse = host(lse), want_lse = host(whole_lse);
  const double rounded = std::ldexp(8.0, -Format<TypeParam>::digits) + 1e-14;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(got.data()[i]), static_cast<double>(want.data()[i]), rounded);
  }
  for (std::size_t i = 0; i < got_lse.size(); ++i) {
    ASSERT_NEAR(got_lse.data()[i], want_lse.data()[i], (std::is_same_v<A, double> ? 1e-13 : 1e-5));
  }
}

TYPED_TEST(MergeAttention, NeverLooksAtAPartThatSawNoKey) {
  Merge<TypeParam, TypeParam> merge(3), others(2);
  for (std::size_t b = 0; b < batch; ++b)
    for (std::size_t h = 0; h < heads; ++h)
      for (std::size_t q = 0; q < queries; ++q) {
        merge.lse_parts_host(1, b, h, q) = static_cast<KokkosNN::accumulator_t<TypeParam>>(-infinity);
        for (std::size_t d = 0; d < dim; ++d) {
          merge.o_parts_host(1, b, h, q, d) = static_cast<TypeParam>(d % 2 == 0 ? NAN : INFINITY);
        }
        for (const std::size_t p : {0, 1}) {
          others.lse_parts_host(p, b, h, q) = merge.lse_parts_host(2 * p, b, h, q);
          for (std::size_t d = 0; d < dim; ++d) {
            others.o_parts_host(p, b, h, q, d) = merge.o_parts_host(2 * p, b, h, q, d);
          }
        }
      }
  merge.run();
  others.run();
  for (std::size_t i = 0; i < merge.o_host.size(); ++i) {
    ASSERT_EQ(static_cast<double>(merge.o_host.data()[i]), static_cast<double>(others.o_host.data()[i]));
  }
}

TYPED_TEST(MergeAttention, HasAResultForRowsWithoutAKeyAndForInfiniteLogits) {
  using A = KokkosNN::accumulator_t<TypeParam>;
  Merge<TypeParam, TypeParam> merge(2);
  const auto set = [&](std::size_t q, double first, double second) {
    for (const std::size_t p : {0, 1}) merge.lse_parts_host(p, 0, 0, q) = static_cast<A>(p == 0 ? first : second);
  };
  set(0, -infinity, -infinity);
  set(1, NAN, 1);
  set(2, infinity, 1);
  set(3, infinity, NAN);
  set(4, NAN, -infinity);
  merge.run();
  EXPECT_TRUE(std::isnan(static_cast<double>(merge.o_host(0, 0, 0, 7)))) << "no key";
  merge.run({.masked_row = MaskedRowPolicy::zero});
  EXPECT_EQ(static_cast<double>(merge.o_host(0, 0, 0, 7)), 0) << "no key";
  EXPECT_EQ(merge.lse_host(0, 0, 0), -infinity);
  EXPECT_EQ(merge.lse_host(0, 0, 2), infinity);
  for (const std::size_t q : {1, 2, 3, 4}) {
    EXPECT_TRUE(std::isnan(static_cast<double>(merge.o_host(0, 0, q, dim - 1)))) << q;
    if (q != 2) {
      EXPECT_TRUE(std::isnan(merge.lse_host(0, 0, q))) << q;
    }
  }
}

TYPED_TEST(MergeAttention, LetsASinkJoinTheSumOnce) {
  const Kokkos::View<float*, Memory> sinks("sinks", heads);
  Kokkos::deep_copy(sinks, 2.5f);
  Merge<TypeParam, TypeParam> merge(4);
  merge.run({.sinks = sinks});
  merge.expect_right(2.5);
  Merge<TypeParam, TypeParam> none(0);
  none.run({.sinks = sinks});
  EXPECT_EQ(static_cast<double>(none.o_host(1, 2, 4, 3)), 0);
  EXPECT_EQ(none.lse_host(1, 2, 4), 2.5);
}

TEST(MergeAttentionCalls, TakePackedTokensAndTheSequenceAsSecondAxis) {
  Merge<float, float> merge(3);
  merge.run();
  // (part, token, head, dim): the queries of one batch entry.
  using Strided3            = Kokkos::View<float***, Kokkos::LayoutStride, Memory>;
  using Strided4            = Kokkos::View<float****, Kokkos::LayoutStride, Memory>;
  constexpr std::size_t row = dim, head = queries * dim, entry = heads * head;
  const Strided4 parts(merge.o_parts.data(), Kokkos::LayoutStride(3, batch * entry, queries, row, heads, head, dim, 1));
  const Kokkos::View<float***, Kokkos::LayoutStride, Memory> lse_parts(
      merge.lse_parts.data(), Kokkos::LayoutStride(3, 1, queries, 3 * batch * heads, heads, 3 * batch));
  const Kokkos::View<float*, Memory> memory("memory", batch * entry);
  const Strided3 tokens(memory.data(), Kokkos::LayoutStride(queries, row, heads, head, dim, 1));
  merge_attention(Exec(), parts, lse_parts, tokens);
  Exec().fence();
  const auto of_tokens = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), memory);
  for (std::size_t i = 0; i < entry; ++i) ASSERT_EQ(of_tokens(i), merge.o_host.data()[i]) << i;
  // (part, batch, sequence, head, dim)
  const Kokkos::View<float*****, Kokkos::LayoutStride, Memory> second(
      merge.o_parts.data(), Kokkos::LayoutStride(3, batch * entry, batch, entry, queries, row, heads, head, dim, 1));
  const Strided4 o(memory.data(), Kokkos::LayoutStride(batch, entry, queries, row, heads, head, dim, 1));
  merge_attention(Exec(), second, merge.lse_parts, o, {.axes = KokkosNN::AttentionAxes::batch_sequence_head_dim});
  Exec().fence();
  const auto of_second = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), memory);
  for (std::size_t i = 0; i < batch * entry; ++i) ASSERT_EQ(of_second(i), merge.o_host.data()[i]) << i;
}

TEST(MergeAttentionCalls, NameTheFunctionAndWhatIsWrong) {
  const auto complaint = [](const auto&... arguments) -> std::string {
    try {
      merge_attention(Exec(), arguments...);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find("KokkosNN::merge_attention: ") == 0 && text.find(part) != std::string::npos;
  };
  const Merge<float, float> two(2), three(3);
  EXPECT_TRUE(has(complaint(two.o_parts, three.lse_parts, two.o), "o has 2 parts, but lse 3"));
  const Kokkos::View<float****, Memory> longer("longer", batch, heads, queries, dim + 1);
  EXPECT_TRUE(
      has(complaint(two.o_parts, two.lse_parts, longer), "each part of o must be (2, 3, 5, 71), but is (2, 3, 5, 70)"));
  const Kokkos::View<float***, Memory> lse("lse", batch, heads, queries - 1);
  EXPECT_TRUE(has(complaint(two.o_parts, two.lse_parts, two.o, AttentionOptions{}, lse),
                  "lse must be (2, 3, 5), but is (2, 3, 4)"));
  const auto first = Kokkos::subview(two.o_parts, 0, Kokkos::ALL, Kokkos::ALL, Kokkos::ALL, Kokkos::ALL);
  EXPECT_TRUE(has(complaint(two.o_parts, two.lse_parts, first), "overlap"));
}

}  // namespace
}  // namespace KokkosNNTest
