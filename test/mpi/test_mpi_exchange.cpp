// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "sharded.hpp"

#include "support/recorder.hpp"

#include <functional>
#include <stdexcept>

// Exchange of rows' states: the merge of gathered states, gathers instead of MPI's reductions, and the choice of one.

namespace KokkosNNTest {
namespace {

using KokkosNN::no_view;
using KokkosNN::Impl::RankStates;
using KokkosNN::Impl::ShardMoments;
using KokkosNN::Impl::ShardPair;

ShardMoments moments_of_rank(int rank, int i) {
  return {static_cast<double>((3 * rank + i) % 5), KokkosNN::Impl::WideOf<double>{pair_of_rank(rank, i).max},
          KokkosNN::Impl::WideOf<double>{pair_of_rank(rank, i).sum}};
}

constexpr std::array rank_counts{1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 33};

/// n states of each of `ranks` ranks, one rank's behind the other's.
template <class OfRank>
auto gathered(int ranks, int n, const OfRank& of_rank) {
  std::vector<decltype(of_rank(0, 0))> all;
  for (int r = 0; r < ranks; ++r) {
    for (int i = 0; i < n; ++i) all.push_back(of_rank(r, i));
  }
  return all;
}

TEST(MpiGatheredStates, ArePairsMergedInTheOrderOfTheDeterministicExchange) {
  constexpr int n = 50;
  for (const int ranks : rank_counts) {
    auto all = gathered(ranks, n, pair_of_rank);
    const RankStates<ShardPair> states{all.data(), n, ranks};
    for (int i = 0; i < n; ++i) {
      const ShardPair merged = states.merged(i);
      const auto expected    = merged_in_order(ranks, [&](int rank) { return pair_of_rank(rank, i); });
      EXPECT_EQ(merged.max, expected.max) << ranks << " ranks";
      EXPECT_EQ(merged.sum, expected.sum) << ranks << " ranks, pair " << i;
    }
  }
}

TEST(MpiGatheredStates, AreMomentsMergedInTheOrderOfTheDeterministicExchange) {
  constexpr int n = 50;
  for (const int ranks : rank_counts) {
    auto all = gathered(ranks, n, moments_of_rank);
    const RankStates<ShardMoments> states{all.data(), n, ranks};
    for (int i = 0; i < n; ++i) {
      const ShardMoments merged = states.merged(i);
      const auto expected       = merged_in_order(ranks, [&](int rank) { return moments_of_rank(rank, i); });
      EXPECT_EQ(merged.count, expected.count) << ranks << " ranks";
      EXPECT_EQ(rounded(merged.mean), rounded(expected.mean)) << ranks << " ranks, state " << i;
      EXPECT_EQ(rounded(merged.squares), rounded(expected.squares)) << ranks << " ranks, state " << i;
    }
  }
}

/// Bytes of a View's elements on the host, behind those of others.
template <class View>
void append_bits(std::vector<char>& bits, const View& view) {
  const auto host   = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), view);
  const auto* begin = reinterpret_cast<const char*>(host.data());
  bits.insert(bits.end(), begin, begin + host.size() * sizeof(typename View::value_type));
}

/// Bits of the results of operators with every number of states a row, on this rank's columns.
template <class T>
std::vector<char> bits_of_all(const Communicator<Exec>& comm, const Spread<T>& x, const Spread<T>& dy) {
  using A                 = KokkosNN::accumulator_t<T>;
  const std::int64_t rows = x.rows, own = x.end() - x.begin();
  const Matrix<T> y("y", rows, own), dx("dx", rows, own);
  const Vector<A> lse("lse", rows), loss("loss", rows), mean("mean", rows), rstd("rstd", rows);
  const Vector<int> labels("labels", rows);
  Kokkos::parallel_for(Kokkos::RangePolicy<Exec>(0, rows), KOKKOS_LAMBDA(int row) { labels(row) = 7 * row % 90; });
  const KokkosNN::mpi::ClassRange classes{x.begin(), x.cols};
  std::vector<char> bits;
  const auto add = [&](const auto&... views) { (append_bits(bits, views), ...); };

  KokkosNN::mpi::log_softmax(comm, x.shard, y);
  add(y);
  KokkosNN::mpi::softmax(comm, x.shard, y);
  KokkosNN::mpi::softmax_backward(comm, y, dy.shard, dx);
  KokkosNN::mpi::logsumexp(comm, x.shard, lse);
  add(y, dx, lse);
  for (const double smoothing : {0.0, 0.1}) {
    const KokkosNN::CrossEntropyOptions options{.reduction = KokkosNN::Reduction::none, .label_smoothing = smoothing};
    KokkosNN::mpi::cross_entropy_with_gradient(comm, x.shard, classes, labels, loss, dx, options);
    add(loss, dx);
  }
  KokkosNN::mpi::rms_norm(comm, x.shard, no_view, y, rstd);
  KokkosNN::mpi::rms_norm_backward(comm, x.shard, no_view, rstd, dy.shard, dx);
  add(y, rstd, dx);
  KokkosNN::mpi::layer_norm(comm, x.shard, no_view, no_view, y, mean, rstd);
  KokkosNN::mpi::layer_norm_backward(comm, x.shard, no_view, mean, rstd, dy.shard, dx);
  add(y, mean, rstd, dx);
  return bits;
}

template <class T>
struct MpiGather : ::testing::Test {};
TYPED_TEST_SUITE(MpiGather, ElementTypes, ElementNames);

TYPED_TEST(MpiGather, GivesTheBitsOfTheDeterministicExchangeOnAHostAndOfNcclOnAGpu) {
  // Where a GPU's pairs are merged by MPI, a host merges them, and by other exponentials.
  const CommunicatorOptions other{.deterministic = !on_gpu,
                                  .transport     = on_gpu ? Transport::automatic : Transport::staged};
  const Communicator<Exec> expected(Exec(), MPI_COMM_WORLD, other);
  if (on_gpu && expected.transport() != Transport::nccl) GTEST_SKIP() << "the ranks do not use NCCL";
  for (const std::int64_t block_rows : {0, 3}) {
    const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, {.block_rows = block_rows}, std::make_unique<GatherByMpi>());
    for (const Split split : all_splits) {
      Spread<TypeParam> x(7, 203, split), dy(7, 203, split);
      x.fill(Recipe::wide);
      dy.fill(Recipe::uniform);
      EXPECT_EQ(bits_of_all(comm, x, dy), bits_of_all(expected, x, dy)) << "blocks of " << block_rows;
    }
  }
}

/// Gather that takes all ranks' states to be this one's, and enqueues that.
class Echo final : public KokkosNN::Impl::StateGather {
 public:
  void gather(const char*, const void* mine, void* all, std::size_t bytes) const override {
    using Bytes = Kokkos::View<char*, Memory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    const Bytes own(static_cast<char*>(const_cast<void*>(mine)), bytes);
    for (int r = 0; r < world_size(); ++r) {
      const Bytes of_rank(static_cast<char*>(all) + static_cast<std::size_t>(r) * bytes, bytes);
      Kokkos::parallel_for(
          "echo", Kokkos::RangePolicy<Exec>(0, static_cast<std::int64_t>(bytes)),
          KOKKOS_LAMBDA(std::int64_t i) { of_rank(i) = own(i); });
    }
  }
};

TEST(MpiGatherCalls, NeitherFenceNorAllocateOnceTheSizeIsKnown) {
  const Communicator<Exec> comm(Exec(), MPI_COMM_WORLD, {.check = false}, std::make_unique<Echo>());
  Spread<float> x(12, 64, Split::even);
  x.fill(Recipe::uniform);
  const Matrix<float> y("y", 12, x.end() - x.begin());
  const Vector<float> lse("lse", 12);
  const auto calls = [&] {
    KokkosNN::mpi::softmax(comm, x.shard, y);
    KokkosNN::mpi::logsumexp(comm, x.shard, lse);
    KokkosNN::mpi::log_softmax_backward(comm, y, x.shard, y);
    KokkosNN::mpi::rms_norm(comm, x.shard, no_view, y);
    KokkosNN::mpi::layer_norm(comm, x.shard, no_view, no_view, y);
  };
  calls();
  Recorder recorder;
  calls();
  EXPECT_TRUE(recorder.neither_fenced_nor_allocated());
}

TEST(MpiGatherCalls, HaveOneBlockUnlessTheyAreAskedForMoreOrGatherMuch) {
  const Communicator<Exec> all(Exec(), MPI_COMM_WORLD, {}, std::make_unique<Echo>());
  const Communicator<Exec> some(Exec(), MPI_COMM_WORLD, {.block_rows = 6}, std::make_unique<Echo>());
  EXPECT_EQ(all.block_of(5000, 2), 5000);
  EXPECT_EQ(some.block_of(5000, 2), 3);
  EXPECT_LE(all.block_of(std::int64_t(1) << 40, 1) * world_size() * 48, 1 << 26);
}

/// True if the ranks are on GPUs, each on one of its own.
bool has_each_rank_a_gpu() {
  char own[MPI_MAX_PROCESSOR_NAME + 64] = {};
#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP)
  int length = 0;
  MPI_Get_processor_name(own, &length);
#endif
#if defined(KOKKOS_ENABLE_CUDA)
  EXPECT_EQ(cudaDeviceGetPCIBusId(own + length, 64, Kokkos::Cuda().cuda_device()), cudaSuccess);
#elif defined(KOKKOS_ENABLE_HIP)
  EXPECT_EQ(hipDeviceGetPCIBusId(own + length, 64, Kokkos::HIP().hip_device()), hipSuccess);
#endif
  std::vector<char> all(sizeof(own) * static_cast<std::size_t>(world_size()));
  MPI_Allgather(own, sizeof(own), MPI_CHAR, all.data(), sizeof(own), MPI_CHAR, MPI_COMM_WORLD);
  std::vector<std::string> names;
  for (int r = 0; r < world_size(); ++r) names.emplace_back(&all[sizeof(own) * static_cast<std::size_t>(r)]);
  std::ranges::sort(names);
  return on_gpu && std::ranges::adjacent_find(names) == names.end();
}

bool can_use_nccl() { return KokkosNN::Impl::has_nccl(KokkosNN::Impl::backend_of<Exec>()) && has_each_rank_a_gpu(); }

Transport transport_of(Transport asked) {
  return Communicator<Exec>(Exec(), MPI_COMM_WORLD, {.transport = asked}).transport();
}

/// The text of the std::invalid_argument with which a transport is refused.
std::string refusal_of(Transport asked) {
  try {
    static_cast<void>(transport_of(asked));
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "nothing was thrown";
}

TEST(MpiTransport, IsNcclWhereItIsBuiltInAndEachRankHasAGpuOfItsOwn) {
  EXPECT_EQ(KokkosNN::configuration().has_nccl, KokkosNN::Impl::has_nccl(KokkosNN::Impl::backend_of<Exec>()));
  EXPECT_EQ(transport_of(Transport::automatic) == Transport::nccl, can_use_nccl());
  EXPECT_EQ(transport_of(Transport::staged), Transport::staged);
  if (can_use_nccl()) {
    EXPECT_EQ(transport_of(Transport::nccl), Transport::nccl);
    return;
  }
  const std::string text = refusal_of(Transport::nccl);
  EXPECT_NE(text.find("KokkosNN::mpi::Communicator: rank 0 asks for the transport nccl, but "), std::string::npos);
  const bool is_built = KokkosNN::Impl::has_nccl(KokkosNN::Impl::backend_of<Exec>());
  EXPECT_NE(text.find(is_built ? "are on one GPU" : "rank 0's library was built without NCCL"), std::string::npos)
      << text;
}

TEST(MpiTransport, IsMpiOnAllRanksWhereOneAsksForIt) {
  if (world_size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  const bool is_last = world_rank() == world_size() - 1;
  EXPECT_NE(transport_of(is_last ? Transport::staged : Transport::automatic), Transport::nccl);
  const std::string text = refusal_of(is_last ? Transport::nccl : Transport::staged);
  EXPECT_NE(text.find("rank " + std::to_string(world_size() - 1) +
                      " asks for the transport nccl, but rank 0 asks for "
                      "another transport"),
            std::string::npos)
      << text;
}

/// A call on a communicator and what it must give.
struct SoundCall {
  Spread<float> x{5, 64, Split::uneven};
  Matrix<float> one{"one", 5, 64};

  SoundCall() {
    x.fill(Recipe::uniform);
    KokkosNN::softmax(Exec(), x.whole, one);
  }
  void expect_on(const Communicator<Exec>& comm) const {
    const Matrix<float> y("y", 5, x.end() - x.begin());
    KokkosNN::mpi::softmax(comm, x.shard, y);
    const auto error    = [](long double a, long double b, std::int64_t) { return probability_error<float>(a, b); };
    const Errors errors = errors_of(y, one, x.begin(), error);
    EXPECT_LE(errors.max_ulp, 2 * promised_ulp<float>) << errors.worst;
  }
};

TEST(MpiCommunicators, OfOneMpiCommunicatorTakeTurnsAndFollowEachOther) {
  const SoundCall call;
  for (int turn = 0; turn < 3; ++turn) {
    const Communicator<Exec> a(Exec(), MPI_COMM_WORLD), b(Exec(), MPI_COMM_WORLD);
    call.expect_on(a);
    call.expect_on(b);
    call.expect_on(a);
  }
}

TEST(MpiCommunicators, MayOutliveTheMpiCommunicatorThatTheyAreOf) {
  const SoundCall call;
  MPI_Comm parent = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &parent);
  const Communicator<Exec> longer(Exec(), parent);
  {
    call.expect_on(Communicator<Exec>(Exec(), parent));
  }
  MPI_Comm_free(&parent);
  call.expect_on(longer);
}

#if defined(KOKKOS_ENABLE_CUDA)
TEST(MpiGraphs, ACallByNcclCanBeCapturedAndGivesTheResultForNewInputAtEveryLaunch) {
  if (!can_use_nccl()) GTEST_SKIP() << "the ranks do not use NCCL";
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreate(&stream), cudaSuccess);
  {
    const Kokkos::Cuda exec(stream);
    const Communicator<Kokkos::Cuda> comm(exec, MPI_COMM_WORLD, {.check = false});
    Spread<float> x(50, 600, Split::even);
    x.fill(Recipe::uniform);
    const std::int64_t own = x.end() - x.begin();
    const Matrix<float> y("y", 50, own), norm("norm", 50, own), y_now("now", 50, own), norm_now("now", 50, own);
    const auto calls = [&](const Matrix<float>& of_softmax, const Matrix<float>& of_norm) {
      KokkosNN::mpi::softmax(comm, x.shard, of_softmax);
      KokkosNN::mpi::rms_norm(comm, x.shard, no_view, of_norm);
    };
    calls(y, norm);
    exec.fence();
    cudaGraph_t graph          = nullptr;
    cudaGraphExec_t executable = nullptr;
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    calls(y, norm);
    ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
    ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    for (const Recipe recipe : {Recipe::wide, Recipe::uniform}) {
      Spread<float> next(50, 600, Split::even);
      next.fill(recipe);
      Kokkos::deep_copy(x.shard, next.shard);
      Kokkos::deep_copy(y, 0.0f);
      Kokkos::deep_copy(norm, 0.0f);
      ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
      exec.fence();
      calls(y_now, norm_now);
      exec.fence();
      const auto zero = [](long double a, long double b, std::int64_t) { return a == b ? 0.0 : 1.0; };
      EXPECT_EQ(errors_of(y, y_now, 0, zero).max_ulp, 0) << to_string(recipe);
      EXPECT_EQ(errors_of(norm, norm_now, 0, zero).max_ulp, 0) << to_string(recipe);
    }
    cudaGraphExecDestroy(executable);
    cudaGraphDestroy(graph);
  }
  cudaStreamDestroy(stream);
}
#endif

}  // namespace
}  // namespace KokkosNNTest
