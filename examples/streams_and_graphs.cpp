// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "support.hpp"

#include <KokkosNN/softmax.hpp>

#include <vector>

// Two softmaxes that may run side by side, each on an execution-space instance of its own; where there is CUDA, the
// first also by a CUDA graph.
//
//   streams = [torch.cuda.Stream(), torch.cuda.Stream()]
//   for stream, x, y in zip(streams, xs, ys):
//       with torch.cuda.stream(stream):
//           torch.softmax(x, -1, out=y)
//   graph = torch.cuda.CUDAGraph()
//   with torch.cuda.graph(graph):
//       torch.softmax(xs[0], -1, out=ys[0])
//   graph.replay()

namespace {

using Exec   = Kokkos::DefaultExecutionSpace;
using Matrix = Kokkos::View<float**, Exec>;

void compare(Examples::Check& check, const Matrix& x, const Matrix& y) {
  const auto logits = Examples::on_host(x), result = Examples::on_host(y);
  for (std::size_t i = 0; i < logits.extent(0); ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < logits.extent(1); ++j) sum += std::exp(double(logits(i, j)));
    for (std::size_t j = 0; j < logits.extent(1); ++j)
      check.expect_near(result(i, j), std::exp(double(logits(i, j))) / sum);
  }
}

#if defined(KOKKOS_ENABLE_CUDA)
/// Softmax by a graph that was recorded on a stream. A plan holds all that its run needs, so that it may be recorded.
bool replayed(const Matrix& x, const Matrix& y) {
  cudaStream_t stream = nullptr;
  if (cudaStreamCreate(&stream) != cudaSuccess) return false;
  bool is_launched = false;
  {
    const Kokkos::Cuda exec(stream);
    const KokkosNN::SoftmaxPlan plan(exec, x, y);
    plan.run();  // the first launch of a kernel loads it, which a recording may not
    exec.fence();
    Kokkos::deep_copy(y, 0.0f);

    cudaGraph_t graph          = nullptr;
    cudaGraphExec_t executable = nullptr;
    const bool is_recording    = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
    plan.run();
    is_launched = is_recording && cudaStreamEndCapture(stream, &graph) == cudaSuccess &&
                  cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess &&
                  cudaGraphLaunch(executable, stream) == cudaSuccess;
    exec.fence();
    if (executable != nullptr) cudaGraphExecDestroy(executable);
    if (graph != nullptr) cudaGraphDestroy(graph);
  }
  cudaStreamDestroy(stream);
  return is_launched;
}
#endif

int run() {
  // A GPU's instances are streams. On OpenMP they share out the threads where parallel regions may nest
  // (OMP_MAX_ACTIVE_LEVELS=2), and else are the default instance twice: right as well, but one after the other.
  const std::vector<Exec> instances = Kokkos::Experimental::partition_space(Exec(), std::vector<int>{1, 1});
  const std::vector<Matrix> x{Examples::random_matrix<float, Exec>("x0", 100, 512, 0),
                              Examples::random_matrix<float, Exec>("x1", 7, 30000, 1)};
  const std::vector<Matrix> y{Matrix("y0", 100, 512), Matrix("y1", 7, 30000)};

  for (std::size_t i = 0; i < instances.size(); ++i) KokkosNN::softmax(instances[i], x[i], y[i]);
  for (const Exec& exec : instances) exec.fence();

  Examples::Check check(1e-7);
  for (std::size_t i = 0; i < instances.size(); ++i) compare(check, x[i], y[i]);
#if defined(KOKKOS_ENABLE_CUDA)
  if (!replayed(x[0], y[0])) return 1;
  compare(check, x[0], y[0]);
#endif
  return check.status("streams_and_graphs");
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos(argc, argv);
  return run();
}
