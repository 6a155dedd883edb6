// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_CALL_HPP
#define KOKKOSNN_IMPL_MPI_CALL_HPP

#include <KokkosNN/impl/call/call.hpp>
#include <KokkosNN/impl/call/cross_entropy_call.hpp>
#include <KokkosNN/impl/call/gradient_call.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/mpi/communicator.hpp>
#include <KokkosNN/instantiations/sharded.hpp>
#include <KokkosNN/impl/mpi/launch.hpp>
#include <KokkosNN/impl/mpi/row_blocks.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <string>

// Bodies of the functions of mpi.hpp: check together with the other ranks, then reduce, merge and write block by block.

namespace KokkosNN::Impl {

/// Runs `prepare`, which checks arguments, makes room and returns the facts that all ranks must share. Throws on every
/// rank if one rank throws, or if facts differ, unless the communicator does not check.
template <class Exec, class Prepare>
void prepare_together(const char* function, const mpi::Communicator<Exec>& comm, const Prepare& prepare) {
  if (!comm.options().check) return void(prepare());
  SharedFacts facts;
  std::exception_ptr refusal;
  try {
    facts = prepare();
  } catch (...) {
    refusal = std::current_exception();
  }
  comm.exchange().agree(function, facts.all(), refusal);
}

/// Runs the blocks: reduce(block) enqueues the kernels that leave the block's pairs, epilogue(block) those that use the
/// merged pairs. While the host waits for MPI the device reads the next block.
template <class Exec, class Reduce, class Epilogue>
void in_blocks(const char* function, const mpi::Communicator<Exec>& comm, const RowBlocks& blocks, ShardPair* pairs,
               int pairs_a_row, const Reduce& reduce, const Epilogue& epilogue) {
  const std::string fence = std::string("KokkosNN::") + function + ": pairs for MPI";
  reduce(0);
  for (std::int64_t block = 0; block < blocks.count(); ++block) {
    comm.exec().fence(fence);
    if (block + 1 < blocks.count()) reduce(block + 1);
    comm.merge(function, pairs + blocks.first_row(block) * pairs_a_row, blocks.rows(block) * pairs_a_row);
    epilogue(block);
  }
}

template <class T>
T* elements_of(const Tensor& t) {
  return static_cast<T*>(const_cast<void*>(t.data));
}

/// Memory for one state a row.
template <class State, class Exec>
State* states_of(const mpi::Communicator<Exec>& comm, std::int64_t rows) {
  return reinterpret_cast<State*>(comm.workspace(static_cast<std::size_t>(rows) * sizeof(State)));
}

template <RowOperator op, class Exec, class XView, class YView>
void sharded_call(const char* function, const mpi::Communicator<Exec>& comm, const XView& x, const YView& y,
                  const SoftmaxOptions& options) {
  using X         = typename XView::non_const_value_type;
  using Y         = typename YView::non_const_value_type;
  using Reduction = ShardedReduction<Exec, X, common_accumulator_t<X, Y>, exp_accuracy_for<Y>>;
  using Epilogue    = ShardedFinish<Exec, op, X, Y>;

  const Tensor in = tensor_of(x), out = tensor_of(y);
  RowBlocks blocks;
  ShardPair* pairs               = nullptr;
  typename Epilogue::State* states = nullptr;
  prepare_together(function, comm, [&] {
    refuse_plan(function, options.plan);
    normalise(function, op, in, out, options);
    blocks = RowBlocks(in, options.axis);
    blocks.cut(comm.block_of(blocks.outer(), blocks.inner()));
    pairs  = comm.pairs(blocks.all_rows());
    states = states_of<typename Epilogue::State>(comm, blocks.all_rows());
    return SharedFacts(op, blocks, options);
  });
  if (blocks.all_rows() == 0) return;

  const Exec& exec   = comm.exec();
  constexpr bool lse = op == RowOperator::logsumexp;
  in_blocks(
      function, comm, blocks, pairs, 1,
      [&](std::int64_t block) {
        const Tensor part = blocks.of_rows(in, block);
        Reduction::run(exec, layout_of_shard(blocks.axis(), {part}, {}), options, elements_of<const X>(part),
                       pairs + blocks.first_row(block));
      },
      [&](std::int64_t block) {
        const Tensor part   = blocks.of_rows(in, block);
        const Tensor result = lse ? blocks.of_values(out, block) : blocks.of_rows(out, block);
        const ShardLayout layout =
            lse ? layout_of_shard(blocks.axis(), {part}, {result}) : layout_of_shard(blocks.axis(), {part, result}, {});
        const std::int64_t first = blocks.first_row(block);
        Epilogue::run(exec, layout, options, elements_of<const X>(part), elements_of<Y>(result), pairs + first,
                    states + first);
      });
}

template <RowOperator op, class Exec, class YView, class DyView, class DxView>
void sharded_gradient(const char* function, const mpi::Communicator<Exec>& comm, const YView& y, const DyView& dy,
                      const DxView& dx, const SoftmaxOptions& options) {
  using Views    = GradientViews<op, YView, DyView, DyView, DxView>;
  using Gradient = ShardedGradient<Exec, op, typename Views::X, typename Views::D, typename Views::Dx>;
  Views::template check<Exec>();

  const GradientTensors tensors = Views{y, dy, dy, dx}.tensors();
  RowBlocks blocks;
  ShardPair* pairs                 = nullptr;
  typename Gradient::State* states = nullptr;
  prepare_together(function, comm, [&] {
    refuse_plan(function, options.plan);
    normalise_gradient(function, op, tensors, options);
    blocks = RowBlocks(tensors.x, options.axis);
    blocks.cut(comm.block_of(blocks.outer(), blocks.inner()));
    pairs  = comm.pairs(blocks.all_rows());
    states = states_of<typename Gradient::State>(comm, blocks.all_rows());
    return SharedFacts(op, blocks, options);
  });
  if (blocks.all_rows() == 0) return;

  using Y  = const typename Views::X;
  using D  = const typename Views::D;
  using Dx = typename Views::Dx;
  in_blocks(
      function, comm, blocks, pairs, 1,
      [&](std::int64_t block) {
        const Tensor y_part = blocks.of_rows(tensors.x, block), dy_part = blocks.of_rows(tensors.dy, block);
        Gradient::reduce(comm.exec(), layout_of_shard(blocks.axis(), {y_part, dy_part}, {}), options,
                         elements_of<Y>(y_part), elements_of<D>(dy_part), pairs + blocks.first_row(block));
      },
      [&](std::int64_t block) {
        const Tensor y_part = blocks.of_rows(tensors.x, block), dy_part = blocks.of_rows(tensors.dy, block),
                     dx_part     = blocks.of_rows(tensors.dx, block);
        const std::int64_t first = blocks.first_row(block);
        Gradient::epilogue(comm.exec(), layout_of_shard(blocks.axis(), {y_part, dy_part, dx_part}, {}), options,
                         elements_of<Y>(y_part), elements_of<D>(dy_part), elements_of<Dx>(dx_part), pairs + first,
                         states + first);
      });
}

/// Runs a rank's part of a cross entropy's gradient, from the whole rows' log-sum-exps.
template <class Views, class Exec>
void run_shard_of_backward(const char* function, const Exec& exec, const ClassShard& shard,
                           const CrossEntropyTensors& tensors,
                           const CrossEntropyPointers<typename Views::X, typename Views::Y, typename Views::A>& data,
                           const CrossEntropyOptions& options) {
  constexpr RowOperator op        = RowOperator::cross_entropy_backward;
  using Call                      = CrossEntropyCall<Exec, op, typename Views::X, typename Views::Y>;
  const CrossEntropyLayout layout = normalise_cross_entropy(function, op, tensors, options, &shard);
  if (options.check_labels) Call::check_labels(exec, layout, options, data);
  if (layout.rows == 0 || layout.cols == 0) return;
  Call::run(exec, plan_cross_entropy<Views>(op, exec, layout, options), layout, options, data);
}

template <class Exec, class Views>
void shard_of_cross_entropy_backward(const char* function, const mpi::Communicator<Exec>& comm,
                                     const mpi::ClassRange& classes, const Views& views,
                                     const CrossEntropyOptions& options) {
  const ClassShard shard{classes.first, 0, classes.all};
  run_shard_of_backward<Views>(function, comm.exec(), shard, views.tensors(), views.pointers(), options);
}

/// Values of a cross entropy's rows, in the order in which ranks number rows: the caller may want none, or other ones.
template <class A>
struct OwnScalars {
  A* one;  ///< gradient of the loss
  A* lse;  ///< of every row
  static constexpr std::size_t offset = 16;

  explicit OwnScalars(char* memory) : one(reinterpret_cast<A*>(memory)), lse(reinterpret_cast<A*>(memory + offset)) {}
  static std::size_t bytes(std::int64_t rows) { return offset + static_cast<std::size_t>(rows) * sizeof(A); }
};

/// Data of one cross entropy, which its parts share.
template <RowOperator op, class Exec, class Views>
class ShardedCrossEntropyCall {
  using X       = typename Views::X;
  using A       = typename Views::A;
  using Sharded = ShardedCrossEntropy<Exec, X>;
  using Sums    = LossSums<Exec, A>;

  static constexpr bool writes_gradient = op == RowOperator::cross_entropy_with_gradient;

 public:
  ShardedCrossEntropyCall(const char* function, const mpi::Communicator<Exec>& comm, const mpi::ClassRange& classes,
                          const Views& views, const CrossEntropyOptions& options)
      : m_function(function),
        m_comm(comm),
        m_tensors(views.tensors()),
        m_data(views.pointers()),
        m_shard{classes.first, m_tensors.logits.extent[m_tensors.logits.rank - 1], classes.all},
        m_options(options),
        m_pairs_a_row(Sharded::Shared::pairs_a_row(options)) {}

  void run() {
    prepare_together(m_function, m_comm, [&] { return prepare(); });
    const bool is_mean    = m_options.reduction == Reduction::mean;
    const bool is_reduced = m_options.reduction != Reduction::none;
    const WorkspaceLease<Exec, WorkspaceUse::sums> memory(exec(), LossWorkspace<A>::bytes(is_reduced ? rows() : 0));
    const LossWorkspace<A> sums(memory.data());
    start_sums(sums);
    const Tensor loss = is_reduced ? values_of_rows(sums.row_losses) : m_tensors.loss;
    if (rows() > 0) exchange(loss);
    if (is_reduced) Sums::of_losses(exec(), to_string(op), rows(), is_mean, sums, m_data.loss);
    if constexpr (writes_gradient) write_gradient();
  }

 private:
  const Exec& exec() const { return m_comm.exec(); }
  std::int64_t rows() const { return m_blocks.all_rows(); }

  SharedFacts prepare() {
    refuse_plan(m_function, m_options.plan);
    const CrossEntropyLayout layout = normalise_cross_entropy(m_function, op, m_tensors, m_options, &m_shard);
    if (m_options.check_labels) {
      CrossEntropyCall<Exec, op, X, typename Views::Y>::check_labels(exec(), layout, m_options, m_data);
    }
    m_blocks = RowBlocks(m_tensors.logits, -1);
    m_blocks.cut(m_comm.block_of(m_blocks.outer(), m_blocks.inner()));
    m_pairs = m_comm.pairs(rows() * m_pairs_a_row);
    m_lse   = m_tensors.lse;
    if (writes_gradient) {
      const OwnScalars<A> own(m_comm.workspace(OwnScalars<A>::bytes(rows())));
      m_one = own.one;
      if (m_lse.element_bytes == 0) m_lse = values_of_rows(own.lse);
    }
    return SharedFacts(op, m_blocks, m_shard.classes, m_data.weights.data != nullptr, m_options);
  }

  /// One value a row, in the order in which rows are numbered.
  Tensor values_of_rows(A* values) const {
    Tensor t            = without_axis(m_tensors.logits, m_tensors.logits.rank - 1);
    t.data              = values;
    t.element_bytes     = sizeof(A);
    std::int64_t stride = 1;
    for (int k = t.rank - 1; k >= 0; --k) {
      t.stride[k] = stride;
      stride *= t.extent[k];
    }
    return t;
  }

  Labels labels_of(const Tensor& labels, const RowMap& map) const {
    return {labels.data, m_data.label_bytes, m_data.labels_are_signed,
            m_options.ignore_index == std::numeric_limits<std::int64_t>::min(), map};
  }

  void start_sums(const LossWorkspace<A>& sums) {
    m_shared = {m_shard, m_data.weights, nullptr};
    if (m_options.label_smoothing != 0 && m_data.weights.data != nullptr) {
      Sums::of_classes(exec(), to_string(op), m_data.weights, m_shard.classes, sums);
      m_shared.weight_of_classes = sums.weight_of_classes;
    }
    if (m_options.reduction != Reduction::mean) return;
    const RowMap map = layout_of_shard(m_blocks.axis(), {m_tensors.logits}, {m_tensors.labels}).map(1);
    Sums::of_rows(exec(), to_string(op),
                  {{labels_of(m_tensors.labels, map)}, m_data.weights, m_options.ignore_index, m_shard}, rows(), sums);
  }

  /// Computes every row's loss, and its log-sum-exp if it is needed.
  void exchange(const Tensor& loss) const {
    in_blocks(
        m_function, m_comm, m_blocks, m_pairs, m_pairs_a_row,
        [&](std::int64_t block) {
          const Tensor logits = m_blocks.of_rows(m_tensors.logits, block);
          const Tensor labels = m_blocks.of_values(m_tensors.labels, block);
          const auto layout   = layout_of_shard(m_blocks.axis(), {logits}, {labels});
          Sharded::reduce(exec(), layout, m_options, m_shared, elements_of<const X>(logits),
                          labels_of(labels, layout.map(1)), m_pairs + m_blocks.first_row(block) * m_pairs_a_row);
        },
        [&](std::int64_t block) {
          const Tensor logits = m_blocks.of_rows(m_tensors.logits, block);
          const Tensor labels = m_blocks.of_values(m_tensors.labels, block);
          const bool has_lse  = m_lse.element_bytes != 0;
          const Tensor losses = m_blocks.of_values(loss, block);
          const Tensor lses   = has_lse ? m_blocks.of_values(m_lse, block) : losses;
          const auto layout   = layout_of_shard(m_blocks.axis(), {logits}, {labels, losses, lses});
          Sharded::epilogue(exec(), layout.rows, m_options, m_shared, labels_of(labels, layout.map(1)),
                          m_pairs + m_blocks.first_row(block) * m_pairs_a_row,
                          OptionalScalars<A>{elements_of<A>(losses), layout.map(2)},
                          OptionalScalars<A>{has_lse ? elements_of<A>(lses) : nullptr, layout.map(3)});
        });
  }

  /// Writes the local gradient of a loss whose gradient is options.gradient_scale.
  void write_gradient() const {
    const Kokkos::View<A, typename Exec::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>> one(m_one);
    Kokkos::deep_copy(exec(), one, A(1));
    CrossEntropyTensors tensors = m_tensors;
    tensors.lse                 = m_lse;
    tensors.loss                = values_of_rows(m_one);
    for (std::int64_t& stride : tensors.loss.stride) stride = 0;
    if (m_options.reduction != Reduction::none) tensors.loss.rank = 0;
    auto data            = m_data;
    data.loss            = nullptr;
    data.lse_out         = nullptr;
    data.lse_in          = elements_of<const A>(m_lse);
    data.dloss           = m_one;
    auto options         = m_options;
    options.check_labels = false;
    run_shard_of_backward<Views>(m_function, exec(), m_shard, tensors, data, options);
  }

  const char* m_function;
  const mpi::Communicator<Exec>& m_comm;
  CrossEntropyTensors m_tensors;
  CrossEntropyPointers<X, typename Views::Y, A> m_data;
  ClassShard m_shard;
  const CrossEntropyOptions& m_options;
  int m_pairs_a_row;
  RowBlocks m_blocks;
  ShardPair* m_pairs = nullptr;
  Tensor m_lse       = {};
  A* m_one           = nullptr;
  typename Sharded::Shared m_shared{};
};

template <RowOperator op, class Exec, class Views>
void sharded_cross_entropy(const char* function, const mpi::Communicator<Exec>& comm, const mpi::ClassRange& classes,
                           const Views& views, const CrossEntropyOptions& options) {
  ShardedCrossEntropyCall<op, Exec, Views>(function, comm, classes, views, options).run();
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MPI_CALL_HPP
