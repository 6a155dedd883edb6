// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "sharded.hpp"

#include <KokkosNN/attention.hpp>
#include <KokkosNN/mpi.hpp>

#include <Kokkos_Core.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

// Attention over parts of k and v on the ranks, against one rank's attention over all of them.

namespace KokkosNNTest {
namespace {

using KokkosNN::AttentionAxes;
using KokkosNN::AttentionDiagonal;
using KokkosNN::AttentionOptions;
using KokkosNN::MaskedRowPolicy;
using KokkosNN::masks;
using KokkosNN::mpi::KeyRange;

constexpr std::size_t batch = 2, heads = 4, kv_heads = 2, queries = 7, dim = 9, value_dim = 5;

template <class T>
using Tensor4 = Kokkos::View<T****, Kokkos::LayoutRight, Memory>;
template <class T>
using Tensor3 = Kokkos::View<T***, Kokkos::LayoutRight, Memory>;

/// Sines, the same on every rank.
template <class V>
V filled(const V& view, double phase) {
  const auto host = Kokkos::create_mirror_view(view);
  for (std::size_t i = 0; i < host.size(); ++i) {
    host.data()[i] = static_cast<typename V::value_type>(std::sin(0.7 * static_cast<double>(i) + phase));
  }
  Kokkos::deep_copy(view, host);
  return view;
}

/// Keys `begin` to `end` of a tensor whose axis 2 they are.
template <class V>
auto part_of(const V& view, const std::pair<std::int64_t, std::int64_t>& keys) {
  return Kokkos::subview(view, Kokkos::ALL, Kokkos::ALL, keys, Kokkos::ALL);
}

/// A call over all keys on one rank and over parts of them on all ranks.
template <class T>
struct Problem {
  using A = KokkosNN::accumulator_t<T>;

  std::int64_t keys;
  std::pair<std::int64_t, std::int64_t> mine;
  Tensor4<T> q, k, v, dout;
  Tensor4<T> o{"o", batch, heads, queries, value_dim}, one_o{"one o", batch, heads, queries, value_dim};
  Tensor3<A> lse{"lse", batch, heads, queries}, one_lse{"one lse", batch, heads, queries};
  Tensor4<T> dq{"dq", batch, heads, queries, dim}, one_dq{"one dq", batch, heads, queries, dim};
  Tensor4<T> dk, dv, one_dk, one_dv;

  Problem(std::int64_t all, Split split)
      : keys(all),
        q(filled(Tensor4<T>("q", batch, heads, queries, dim), 1)),
        k(filled(Tensor4<T>("k", batch, kv_heads, all, dim), 2)),
        v(filled(Tensor4<T>("v", batch, kv_heads, all, value_dim), 3)),
        dout(filled(Tensor4<T>("dout", batch, heads, queries, value_dim), 4)),
        one_dk("one dk", batch, kv_heads, all, dim),
        one_dv("one dv", batch, kv_heads, all, value_dim) {
    const auto first = first_columns(split, all);
    mine             = {first[world_rank()], first[world_rank() + 1]};
    dk               = Tensor4<T>("dk", batch, kv_heads, mine.second - mine.first, dim);
    dv               = Tensor4<T>("dv", batch, kv_heads, mine.second - mine.first, value_dim);
  }

  /// Calls with a mask of all keys, and with that of this rank's keys.
  template <class M, class N>
  void run(const Communicator<Exec>& comm, const M& whole, const N& part, const AttentionOptions& options) {
    const KeyRange range = comm.keys(mine.second - mine.first);
    EXPECT_EQ(range.first, mine.first);
    EXPECT_EQ(range.all, keys);
    KokkosNN::attention(Exec(), q, k, v, one_o, whole, options, one_lse);
    KokkosNN::mpi::attention(comm, q, part_of(k, mine), part_of(v, mine), range, o, part, options, lse);
    // Both from one rank's o and lse, so that rows without a key are what they are.
    KokkosNN::attention_backward(Exec(), q, k, v, one_o, dout, one_lse, whole, one_dq, one_dk, one_dv, options);
    KokkosNN::mpi::attention_backward(comm, q, part_of(k, mine), part_of(v, mine), range, one_o, dout, one_lse, part,
                                      dq, dk, dv, options);
    Exec().fence();
  }
  void expect_right() const {
    expect_near(o, one_o, "o");
    expect_near(lse, one_lse, "lse");
    expect_near(dq, one_dq, "dq");
    expect_near(dk, dense(part_of(one_dk, mine), dk), "dk");
    expect_near(dv, dense(part_of(one_dv, mine), dv), "dv");
  }

 private:
  /// A subview's elements in a View of the layout of another of its extents.
  template <class Part>
  static Tensor4<T> dense(const Part& part, const Tensor4<T>& like) {
    const Tensor4<T> copy("copy", like.extent(0), like.extent(1), like.extent(2), like.extent(3));
    Kokkos::deep_copy(copy, part);
    return copy;
  }
  template <class V>
  static void expect_near(const V& values, const V& wanted, const char* name) {
    const auto mine = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), values);
    const auto one  = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), wanted);
    // Gradients of a key are sums over the queries of two heads.
    const double unit = std::is_same_v<A, double> ? 0x1p-48 : (is_16_bit<T> ? 0x1p-7 : 0x1p-19);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const auto got = static_cast<double>(mine.data()[i]), want = static_cast<double>(one.data()[i]);
      if (std::isfinite(want)) {
        ASSERT_NEAR(got, want, 8 * unit) << name << " " << i << " on rank " << world_rank();
      } else {
        ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << name << " " << i << " is " << got;
      }
    }
  }
};

template <class T>
class MpiAttention : public ::testing::Test {};
using AttentionTypes = ::testing::Types<float, double, BHalf>;
TYPED_TEST_SUITE(MpiAttention, AttentionTypes, ElementNames);

TYPED_TEST(MpiAttention, IsThatOfOneRankWhateverTheSplitAndTheTransport) {
  const auto expect_right = [](const CommunicatorOptions& options, Split split) {
    Problem<TypeParam> problem(41, split);
    problem.run(Communicator<Exec>(Exec(), MPI_COMM_WORLD, options), masks(), masks(), {.softcap = 3});
    problem.expect_right();
  };
  for (const Split split : all_splits) expect_right({}, split);
  for (const CommunicatorOptions& options : all_communicators()) expect_right(options, Split::uneven);
}

TEST(MpiAttentionMasks, CountTheKeysOfAllRanks) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  const Kokkos::View<std::int64_t*, Memory> lengths("lengths", batch), offsets("offsets", batch);
  const auto slopes = filled(Kokkos::View<float*, Memory>("slopes", heads), 0.5);
  const auto host   = Kokkos::create_mirror_view(lengths);
  host(0) = 23, host(1) = 38;
  Kokkos::deep_copy(lengths, host);
  host(0) = 5, host(1) = 30;
  Kokkos::deep_copy(offsets, host);
  for (const Split split : {Split::uneven, Split::some_empty}) {
    Problem<double> problem(41, split);
    const auto expect_right = [&](const auto& mask, const AttentionOptions& options) {
      problem.run(comm, mask, mask, options);
      problem.expect_right();
    };
    expect_right(KokkosNN::CausalMask{20}, {});
    expect_right(KokkosNN::CausalMask{}, {.diagonal = AttentionDiagonal::last});
    expect_right(KokkosNN::SlidingWindow{.left = 6, .right = 2, .offset = -1}, {.diagonal = AttentionDiagonal::last});
    expect_right(KokkosNN::SlidingWindow{.right = 2, .offset = 17}, {});
    expect_right(masks(KokkosNN::RowLengths{lengths}, KokkosNN::Alibi{slopes, 3}), {.scale = 0.4});
    expect_right(masks(KokkosNN::CausalMask{}, KokkosNN::DiagonalOffsets{offsets}, KokkosNN::RowLengths{lengths}), {});
  }
}

TEST(MpiAttentionMasks, ViewsHaveTheKeysOfTheRankAndSinksJoinOnce) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  Problem<float> problem(41, Split::uneven);
  const auto bias = filled(Tensor4<float>("bias", 1, heads, queries, problem.keys), 6);
  const Kokkos::View<bool**, Kokkos::LayoutRight, Memory> keep("keep", queries, problem.keys);
  const auto host = Kokkos::create_mirror_view(keep);
  for (std::size_t i = 0; i < host.size(); ++i) host.data()[i] = i % 7 != 2;
  for (std::int64_t key = 0; key < problem.keys; ++key) host(3, key) = false;  // a query that sees no key
  Kokkos::deep_copy(keep, host);
  const auto sinks        = filled(Kokkos::View<float*, Memory>("sinks", heads), 0.1);
  const auto own          = [&](const auto& all) { return Kokkos::subview(all, Kokkos::ALL, problem.mine); };
  const auto whole        = masks(KokkosNN::AdditiveBias{bias}, KokkosNN::BooleanMask{keep});
  const auto part_of_bias = Kokkos::subview(bias, Kokkos::ALL, Kokkos::ALL, Kokkos::ALL, problem.mine);
  const auto part         = masks(KokkosNN::AdditiveBias{part_of_bias}, KokkosNN::BooleanMask{own(keep)});
  for (const MaskedRowPolicy policy : {MaskedRowPolicy::nan, MaskedRowPolicy::zero}) {
    problem.run(comm, whole, part, {.masked_row = policy});
    problem.expect_right();
  }
  problem.run(comm, whole, part, {.sinks = sinks});
  problem.expect_right();
}

TEST(MpiAttentionViews, OutputsMayHaveOtherAxesAndStrides) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  Problem<double> problem(41, Split::even);
  const auto moved = [](const auto& view) {  // (batch, sequence, head, dim) in a layout of its own
    const Kokkos::View<double****, Kokkos::LayoutLeft, Memory> t("moved", view.extent(0), view.extent(2),
                                                                 view.extent(1), view.extent(3));
    const auto in  = Kokkos::create_mirror(view);
    const auto out = Kokkos::create_mirror(t);
    Kokkos::deep_copy(in, view);
    for (std::size_t b = 0; b < view.extent(0); ++b)
      for (std::size_t h = 0; h < view.extent(1); ++h)
        for (std::size_t i = 0; i < view.extent(2); ++i)
          for (std::size_t d = 0; d < view.extent(3); ++d) out(b, i, h, d) = in(b, h, i, d);
    Kokkos::deep_copy(t, out);
    return t;
  };
  problem.run(comm, masks(), masks(), {});
  const auto of_rank = [&](const auto& view) {
    return Kokkos::subview(moved(view), Kokkos::ALL, problem.mine, Kokkos::ALL, Kokkos::ALL);
  };
  const auto o = moved(problem.o), want = moved(problem.o);
  Kokkos::deep_copy(o, 7.0);
  KokkosNN::mpi::attention(comm, moved(problem.q), of_rank(problem.k), of_rank(problem.v),
                           comm.keys(problem.mine.second - problem.mine.first), o, masks(),
                           {.axes = AttentionAxes::batch_sequence_head_dim});
  Exec().fence();
  const auto got = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), o);
  const auto all = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), want);
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got.data()[i], all.data()[i]) << i;
}

TEST(MpiAttentionBits, AreTheSameOnAllRanksAndEveryTime) {
  Problem<float> problem(300, Split::uneven);
  for (const bool deterministic : {false, true}) {
    const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, {.deterministic = deterministic});
    const Vector<float> first("first", problem.o.size());
    for (int turn = 0; turn < 3; ++turn) {
      problem.run(comm, masks(), masks(), {});
      const Vector<float> o(problem.o.data(), problem.o.size());
      const Vector<float> dq(problem.dq.data(), problem.dq.size());
      EXPECT_TRUE(are_bits_equal_on_all_ranks(o));
      EXPECT_TRUE(are_bits_equal_on_all_ranks(dq));
      if (turn == 0) Kokkos::deep_copy(first, o);
      EXPECT_EQ(
          errors_of(o, first,
                    [](long double a, long double b, std::int64_t) { return static_cast<double>(std::abs(a - b)); })
              .max_ulp,
          0);
    }
  }
}

TEST(MpiAttentionErrors, AreEveryRanksAndNothingIsWritten) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD);
  const bool is_last = world_rank() == world_size() - 1;
  const Tensor4<float> q("q", 1, 2, 3, 4), k("k", 1, 2, 5, 4), o("o", 1, 2, 3, 4);
  Kokkos::deep_copy(o, 3.0f);
  const std::int64_t all = 5 * world_size();
  const auto text_of     = [&](const KeyRange& range, const AttentionOptions& options) -> std::string {
    try {
      KokkosNN::mpi::attention(comm, q, k, k, range, o, masks(), options);
    } catch (const std::invalid_argument& e) {
      return e.what();
    }
    return {};
  };
  const std::string text = text_of({.first = is_last ? all : 0, .all = all}, {});
  const std::string want = "KokkosNN::mpi::attention: k has 5 keys from number " + std::to_string(all) +
                           " on, but there are only " + std::to_string(all);
  EXPECT_NE(text.find(is_last ? want : "cannot do this call"), std::string::npos) << text;
  if (world_size() > 1) {
    const std::string differ = text_of({.all = all}, {.softcap = is_last ? 2.0 : 3.0});
    EXPECT_NE(differ.find("all ranks must agree on softcap"), std::string::npos) << differ;
  }
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), o);
  EXPECT_EQ(host(0, 0, 0, 0), 3.0f);
}

}  // namespace
}  // namespace KokkosNNTest
