// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support/types.hpp"

#include <KokkosNN/packed_attention.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// Attention of packed sequences: in bits what `attention` gives for each sequence alone, and against long double.

namespace KokkosNNTest {
namespace {

using KokkosNN::AttentionDiagonal;
using KokkosNN::AttentionOptions;
using KokkosNN::MaskedRowPolicy;
using KokkosNN::masks;
using KokkosNN::packed_attention;
using KokkosNN::packed_attention_backward;

double value_at(std::size_t i, double phase) { return 1.5 * std::sin(0.7 * static_cast<double>(i) + phase); }

/// Packed rows (token, head, dim), and a copy on the host.
template <class T>
struct Tokens {
  Kokkos::View<T***, Kokkos::LayoutRight, Memory> view;
  typename Kokkos::View<T***, Kokkos::LayoutRight, Memory>::host_mirror_type host;

  Tokens(std::size_t tokens, std::size_t heads, std::size_t dim, double phase)
      : view("tokens", tokens, heads, dim), host(Kokkos::create_mirror(view)) {
    for (std::size_t i = 0; i < host.size(); ++i) host.data()[i] = static_cast<T>(value_at(i, phase));
    Kokkos::deep_copy(view, host);
  }
  /// Tokens of one sequence as a batch of one, (1, head, token, dim).
  auto sequence(std::size_t begin, std::size_t end) const {
    using Strided = Kokkos::View<T****, Kokkos::LayoutStride, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    const std::size_t heads = view.extent(1), dim = view.extent(2);
    return Strided(view.data() + begin * heads * dim,
                   Kokkos::LayoutStride(1, 1, heads, dim, end - begin, heads * dim, dim, 1));
  }
  void download() { Kokkos::deep_copy(host, view); }
};

template <class I>
Kokkos::View<I*, Memory> offsets_of(const std::vector<I>& numbers) {
  const Kokkos::View<I*, Memory> offsets("offsets", numbers.size());
  const auto host = Kokkos::create_mirror_view(offsets);
  std::copy(numbers.begin(), numbers.end(), host.data());
  Kokkos::deep_copy(offsets, host);
  return offsets;
}

constexpr std::size_t heads = 4, kv_heads = 2, dim = 24, value_dim = 17;

/// Sequences whose first two tokens and last three belong to none. Lengths are 0 and 1, those of blocks, and others.
const std::vector<std::int32_t> query_numbers{2, 2, 3, 68, 68, 205, 210};
const std::vector<std::int64_t> key_numbers{1, 4, 4, 80, 83, 233, 240};
constexpr std::size_t queries = 213, keys = 243, sequences = 6;

template <class T>
struct Call {
  using A = KokkosNN::accumulator_t<T>;

  Tokens<T> q{queries, heads, dim, 0.1}, k{keys, kv_heads, dim, 0.5}, v{keys, kv_heads, value_dim, 1.1};
  Tokens<T> o{queries, heads, value_dim, 3}, dout{queries, heads, value_dim, 2.3};
  Tokens<T> dq{queries, heads, dim, 3}, dk{keys, kv_heads, dim, 3}, dv{keys, kv_heads, value_dim, 3};
  Tokens<A> lse{1, queries, heads, 3};
  Kokkos::View<std::int32_t*, Memory> query_offsets = offsets_of(query_numbers);
  Kokkos::View<std::int64_t*, Memory> key_offsets   = offsets_of(key_numbers);
  Kokkos::View<A**, Kokkos::LayoutRight, Memory> lse_view{lse.view.data(), queries, heads};

  template <class M>
  void run(const M& mask, const AttentionOptions& options) {
    packed_attention(Exec(), q.view, k.view, v.view, query_offsets, key_offsets, o.view, mask, options, lse_view);
    packed_attention_backward(Exec(), q.view, k.view, v.view, query_offsets, key_offsets, o.view, dout.view, lse_view,
                              mask, dq.view, dk.view, dv.view, options);
    download();
  }
  /// Calls attention for each sequence; mask_of(s) is the mask of sequence s.
  template <class MaskOf>
  void run_alone(const MaskOf& mask_of, const AttentionOptions& options) {
    for (std::size_t s = 0; s < sequences; ++s) {
      const auto q0 = static_cast<std::size_t>(query_numbers[s]), q1 = static_cast<std::size_t>(query_numbers[s + 1]);
      const auto k0 = static_cast<std::size_t>(key_numbers[s]), k1 = static_cast<std::size_t>(key_numbers[s + 1]);
      const Kokkos::View<A***, Kokkos::LayoutStride, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>> lse_alone(
          lse.view.data() + q0 * heads, Kokkos::LayoutStride(1, 1, heads, 1, q1 - q0, heads));
      const auto queries_of = [&](const Tokens<T>& t) { return t.sequence(q0, q1); };
      const auto keys_of    = [&](const Tokens<T>& t) { return t.sequence(k0, k1); };
      KokkosNN::attention(Exec(), queries_of(q), keys_of(k), keys_of(v), queries_of(o), mask_of(s), options, lse_alone);
      KokkosNN::attention_backward(Exec(), queries_of(q), keys_of(k), keys_of(v), queries_of(o), queries_of(dout),
                                   lse_alone, mask_of(s), queries_of(dq), keys_of(dk), keys_of(dv), options);
    }
    download();
  }
  void download() {
    Exec().fence();
    for (Tokens<T>* t : {&o, &dq, &dk, &dv}) t->download();
    lse.download();
  }
};

template <class Host>
void expect_same_bits(const Host& got, const Host& want, const char* what) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    const auto a = static_cast<double>(got.data()[i]), b = static_cast<double>(want.data()[i]);
    ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << what << ' ' << i << ": " << a << " and " << b;
  }
}

template <class T, class MaskOf, class M>
void expect_each_sequences_bits(const M& mask, const MaskOf& mask_of, const AttentionOptions& options = {}) {
  Call<T> packed, alone;
  packed.run(mask, options);
  alone.run_alone(mask_of, options);
  expect_same_bits(packed.o.host, alone.o.host, "o");
  expect_same_bits(packed.lse.host, alone.lse.host, "lse");
  expect_same_bits(packed.dq.host, alone.dq.host, "dq");
  expect_same_bits(packed.dk.host, alone.dk.host, "dk");
  expect_same_bits(packed.dv.host, alone.dv.host, "dv");
}

template <class T>
class PackedAttention : public ::testing::Test {};
TYPED_TEST_SUITE(PackedAttention, ElementTypes, ElementNames);

TYPED_TEST(PackedAttention, GivesTheBitsOfEachSequenceAlone) {
  const auto nothing = [](std::size_t) { return masks(); };
  expect_each_sequences_bits<TypeParam>(masks(), nothing);
  expect_each_sequences_bits<TypeParam>(masks(), nothing, {.masked_row = MaskedRowPolicy::zero});
}

TYPED_TEST(PackedAttention, NumbersQueriesAndKeysOfMasksWithinASequence) {
  const Kokkos::View<float*, Memory> slopes("slopes", heads), sinks("sinks", heads);
  Kokkos::deep_copy(slopes, 0.125f);
  Kokkos::deep_copy(sinks, 0.5f);
  const auto mask = masks(KokkosNN::CausalMask{1}, KokkosNN::SlidingWindow{40, 9, 0}, KokkosNN::Alibi{slopes, 2});
  for (const auto diagonal : {AttentionDiagonal::first, AttentionDiagonal::last}) {
    expect_each_sequences_bits<TypeParam>(mask, [&](std::size_t) { return mask; },
                                          {.softcap = 3, .sinks = sinks, .diagonal = diagonal});
  }
}

TYPED_TEST(PackedAttention, TakesALengthAndAnOffsetASequence) {
  const auto lengths  = offsets_of<std::int32_t>({2, 1, 50, 0, 149, 400});
  const auto offsets  = offsets_of<std::int64_t>({0, 3, 11, -1, 20, 2});
  const auto mask_for = [&](std::size_t begin, std::size_t end) {
    return masks(KokkosNN::RowLengths{Kokkos::subview(lengths, std::pair(begin, end))}, KokkosNN::CausalMask{},
                 KokkosNN::DiagonalOffsets{Kokkos::subview(offsets, std::pair(begin, end))});
  };
  expect_each_sequences_bits<TypeParam>(mask_for(0, sequences), [&](std::size_t s) { return mask_for(s, s + 1); },
                                        {.masked_row = MaskedRowPolicy::zero});
}

/// o of a query and head in long double: causal, the last query at the last key.
template <class T>
std::vector<long double> result_of(const Call<T>& call, std::size_t s, std::size_t query, std::size_t head) {
  const auto first_key = static_cast<std::size_t>(key_numbers[s]);
  const auto count     = static_cast<std::int64_t>(key_numbers[s + 1] - key_numbers[s]);
  const auto at        = [](const Tokens<T>& t, std::size_t i, std::size_t h, std::size_t d) {
    return static_cast<long double>(static_cast<double>(t.host(i, h, d)));
  };
  const std::int64_t last = count - (query_numbers[s + 1] - static_cast<std::int64_t>(query));
  std::vector<long double> result(value_dim);
  long double sum = 0;
  for (std::int64_t j = 0; j <= std::min(last, count - 1); ++j) {
    const std::size_t key = first_key + static_cast<std::size_t>(j), kv_head = head / (heads / kv_heads);
    long double score = 0;
    for (std::size_t d = 0; d < dim; ++d) score += at(call.q, query, head, d) * at(call.k, key, kv_head, d);
    const long double weight = std::exp(score / std::sqrt(static_cast<long double>(dim)));
    sum += weight;
    for (std::size_t d = 0; d < value_dim; ++d) result[d] += weight * at(call.v, key, kv_head, d);
  }
  for (long double& each : result) each = sum == 0 ? 0 : each / sum;
  return result;
}

TYPED_TEST(PackedAttention, IsTheSumOverASequencesKeysInLongDouble) {
  Call<TypeParam> call;
  call.run(KokkosNN::CausalMask{}, {.masked_row = MaskedRowPolicy::zero, .diagonal = AttentionDiagonal::last});
  const double bound = is_16_bit<TypeParam>                ? std::ldexp(4.0, -Format<TypeParam>::digits)
                       : std::is_same_v<TypeParam, double> ? 1e-14
                                                           : 1e-5;
  for (std::size_t s = 0; s < sequences; ++s) {
    for (auto query = static_cast<std::size_t>(query_numbers[s]); std::cmp_less(query, query_numbers[s + 1]); ++query) {
      for (std::size_t head = 0; head < heads; ++head) {
        const auto want = result_of(call, s, query, head);
        for (std::size_t d = 0; d < value_dim; ++d) {
          ASSERT_NEAR(static_cast<double>(call.o.host(query, head, d)), static_cast<double>(want[d]), bound)
              << "sequence " << s << ", query " << query << ", head " << head;
        }
      }
    }
  }
}

TEST(PackedAttentionCalls, WriteNothingOutsideTheirSequences) {
  Call<float> call;
  const Call<float> before;
  call.run(masks(), {.masked_row = MaskedRowPolicy::zero});
  const auto expect_unchanged = [](const Tokens<float>& got, const Tokens<float>& want, std::size_t begin,
                                   std::size_t end) {
    const std::size_t row = got.host.extent(1) * got.host.extent(2);
    for (std::size_t i = 0; i < got.host.size(); ++i) {
      if (i / row < begin || i / row >= end) {
        ASSERT_EQ(got.host.data()[i], want.host.data()[i]) << i / row;
      }
    }
  };
  expect_unchanged(call.o, before.o, 2, 210);
  expect_unchanged(call.dq, before.dq, 2, 210);
  expect_unchanged(call.dk, before.dk, 1, 240);
  expect_unchanged(call.dv, before.dv, 1, 240);
  for (std::size_t d = 0; d < dim; ++d) EXPECT_EQ(call.dk.host(2, 0, d), 0) << "keys of a sequence without queries";
}

TEST(PackedAttentionCalls, StayInTheirTensorsWhereOffsetsDoNot) {
  Call<float> call;
  call.query_offsets = offsets_of<std::int32_t>({-7, 100, 40, 5000});
  call.key_offsets   = offsets_of<std::int64_t>({300, 2, -1, std::int64_t(1) << 40});
  call.run(KokkosNN::CausalMask{}, {});  // for sanitizers; what is written is of no matter
  call.query_offsets = offsets_of<std::int32_t>({5});
  call.key_offsets   = offsets_of<std::int64_t>({0});
  const Call<float> before;
  Call<float> none;
  none.query_offsets = call.query_offsets;
  none.key_offsets   = call.key_offsets;
  none.run(masks(), {});
  expect_same_bits(none.o.host, before.o.host, "o of no sequences");
  expect_same_bits(none.dk.host, before.dk.host, "dk of no sequences");
}

TEST(PackedAttentionCalls, NameTheFunctionAndWhatIsWrong) {
  const auto complaint = [](Call<float>& call, const auto& mask, const AttentionOptions& options) -> std::string {
    try {
      packed_attention(Exec(), call.q.view, call.k.view, call.v.view, call.query_offsets, call.key_offsets, call.o.view,
                       mask, options, call.lse_view);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find("KokkosNN::packed_attention: ") == 0 && text.find(part) != std::string::npos;
  };
  Call<float> call;
  call.key_offsets = offsets_of<std::int64_t>({0, 4});
  EXPECT_TRUE(has(complaint(call, masks(), {}), "have 7 and 2"));
  call.query_offsets = Kokkos::View<std::int32_t*, Memory>("none", 0);
  EXPECT_TRUE(has(complaint(call, masks(), {}), "have 0 and 2"));
  Call<float> biased;
  const Kokkos::View<float**, Memory> bias("bias", 5, 7);
  EXPECT_TRUE(has(complaint(biased, KokkosNN::AdditiveBias{bias}, {}), "(5, 7) does not broadcast to (6, 4, 1, 1)"));
  biased.v = Tokens<float>(keys + 1, kv_heads, value_dim, 0);
  EXPECT_TRUE(has(complaint(biased, masks(), {}), "must have 243 along sequence"));
}

}  // namespace
}  // namespace KokkosNNTest
