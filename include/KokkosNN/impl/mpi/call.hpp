// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_MPI_CALL_HPP
#define KOKKOSNN_IMPL_MPI_CALL_HPP

#include <KokkosNN/impl/call/call.hpp>
#include <KokkosNN/impl/call/cross_entropy_call.hpp>
#include <KokkosNN/impl/call/gradient_call.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/softmax_call.hpp>
#include <KokkosNN/impl/call/verbose.hpp>
#include <KokkosNN/impl/mpi/communicator.hpp>
#include <KokkosNN/instantiations/sharded.hpp>
#include <KokkosNN/impl/mpi/launch.hpp>
#include <KokkosNN/impl/mpi/rank_states.hpp>
#include <KokkosNN/impl/mpi/row_blocks.hpp>
#include <KokkosNN/impl/mpi/state_exchange.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

// Bodies of the functions of mpi.hpp: check together with the other ranks, then reduce, merge and write block by block.

namespace KokkosNN::Impl {

/// Prints the line that KOKKOSNN_VERBOSE asks for; `x` has this rank's columns.
template <class Exec>
void report_shard(const char* function, const mpi::Communicator<Exec>& comm, const Tensor& x,
                  const std::string& exchange) {
  report_call(
      function, x,
      "columns of rank " + std::to_string(comm.rank()) + " of " + std::to_string(comm.size()) + ", " + exchange);
}

/// Runs `prepare`, which checks arguments, makes room and returns the facts that all ranks must share. Throws on every
/// rank if one rank throws, or if facts differ, unless the communicator does not check. `transport` is the call's.
template <class Exec, class Prepare>
void prepare_together(const char* function, const mpi::Communicator<Exec>& comm, mpi::Transport transport,
                      const Tensor& x, const Prepare& prepare) {
  SharedFacts facts;
  std::exception_ptr refusal;
  try {
    facts = prepare();
  } catch (...) {
    if (!comm.options().check) throw;
    refusal = std::current_exception();
  }
  if (comm.options().check) comm.ranks().agree(function, facts.all(), refusal);
  if (is_verbose()) report_shard(function, comm, x, std::string("transport ") + to_string(transport));
}

/// Runs the blocks: reduce(block) enqueues the kernels that leave the block's pairs, epilogue(block, states) those that
/// use the states of the whole rows. While a host waits for MPI the device reads the next block.
template <class Exec, class State, class Reduce, class Epilogue>
void in_blocks(const char* function, const mpi::Communicator<Exec>& comm, const RowBlocks& blocks, State* pairs,
               int pairs_a_row, const Reduce& reduce, const Epilogue& epilogue) {
  const StateExchange<Exec>& states = comm.states();
  reduce(0);
  for (std::int64_t block = 0; block < blocks.count(); ++block) {
    states.await(function);
    if (block + 1 < blocks.count()) reduce(block + 1);
    epilogue(block, states.exchanged(function, pairs + blocks.first_row(block) * pairs_a_row,
                                     blocks.rows(block) * pairs_a_row));
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
  using Epilogue  = ShardedFinish<Exec, op, X, Y>;

  const Tensor in = tensor_of(x), out = tensor_of(y);
  RowBlocks blocks;
  ShardPair* pairs                 = nullptr;
  typename Epilogue::State* states = nullptr;
  prepare_together(function, comm, comm.transport(), in, [&] {
    refuse_plan(function, options.plan);
    refuse_axes(function, options.axes);
    normalise(function, op, {in, out}, options);
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
        Reduction::run(exec, layout_of_shard(op, blocks.axis(), {part}), options, elements_of<const X>(part),
                       pairs + blocks.first_row(block));
      },
      [&](std::int64_t block, const RankStates<ShardPair>& merged) {
        const Tensor part   = blocks.of_rows(in, block);
        const Tensor result = lse ? blocks.of_values(out, block) : blocks.of_rows(out, block);
        Epilogue::run(exec, layout_of_shard(op, blocks.axis(), {part, result}), options, elements_of<const X>(part),
                      elements_of<Y>(result), merged, states + blocks.first_row(block));
      });
}

template <RowOperator op, class Exec, class YView, class DyView, class DxView>
void sharded_gradient(const char* function, const mpi::Communicator<Exec>& comm, const YView& y, const DyView& dy,
                      const DxView& dx, const SoftmaxOptions& options) {
  using Views    = GradientViews<op, YView, DyView, DyView, DxView>;
  using Gradient = ShardedGradient<Exec, op, typename Views::X, typename Views::D, typename Views::Dx>;
  Views::template check<Exec>();

  const Tensors tensors = Views::tensors(y, dy, dx);
  RowBlocks blocks;
  ShardPair* pairs                 = nullptr;
  typename Gradient::State* states = nullptr;
  prepare_together(function, comm, comm.transport(), tensors[GradientTensors::x], [&] {
    refuse_plan(function, options.plan);
    refuse_axes(function, options.axes);
    normalise(function, op, tensors, options);
    blocks = RowBlocks(tensors[GradientTensors::x], options.axis);
    blocks.cut(comm.block_of(blocks.outer(), blocks.inner()));
    pairs  = comm.pairs(blocks.all_rows());
    states = states_of<typename Gradient::State>(comm, blocks.all_rows());
    return SharedFacts(op, blocks, options);
  });
  if (blocks.all_rows() == 0) return;

  using Y         = const typename Views::X;
  using D         = const typename Views::D;
  using Dx        = typename Views::Dx;
  const auto part = [&](GradientTensors::Number tensor, std::int64_t block) {
    return blocks.of_rows(tensors[tensor], block);
  };
  in_blocks(
      function, comm, blocks, pairs, 1,
      [&](std::int64_t block) {
        const Tensor y_part = part(GradientTensors::x, block), dy_part = part(GradientTensors::dy, block);
        Gradient::reduce(comm.exec(), layout_of_shard(op, blocks.axis(), {y_part, {}, dy_part}), options,
                         elements_of<Y>(y_part), elements_of<D>(dy_part), pairs + blocks.first_row(block));
      },
      [&](std::int64_t block, const RankStates<ShardPair>& merged) {
        const Tensor y_part = part(GradientTensors::x, block), dy_part = part(GradientTensors::dy, block),
                     dx_part = part(GradientTensors::dx, block);
        Gradient::epilogue(comm.exec(), layout_of_shard(op, blocks.axis(), {y_part, dx_part, dy_part}), options,
                           elements_of<Y>(y_part), elements_of<D>(dy_part), elements_of<Dx>(dx_part), merged,
                           states + blocks.first_row(block));
      });
}

/// Runs a rank's part of a cross entropy's gradient, from the whole rows' log-sum-exps.
template <class X, class Y, class Exec>
void run_shard_of_backward(const char* function, const Exec& exec, const ClassShard& shard, const Tensors& tensors,
                           const CrossEntropyOptions& options) {
  constexpr RowOperator op    = RowOperator::cross_entropy_backward;
  using Call                  = CrossEntropyCall<Exec, op, X, Y>;
  const LabelledLayout layout = normalise(function, op, tensors, options, &shard);
  if (layout.rows == 0 || layout.cols == 0) {
    if (options.check_labels) Call::check_labels(exec, layout, options, tensors);
    return;
  }
  Call::run(exec, {plan_rows(op, exec, layout, tensors, options), layout, tensors, options});
}

template <class Views, class Exec>
void shard_of_cross_entropy_backward(const char* function, const mpi::Communicator<Exec>& comm,
                                     const mpi::ClassRange& classes, const Tensors& tensors,
                                     const CrossEntropyOptions& options) {
  const ClassShard shard{classes.first, 0, classes.all};
  if (is_verbose()) report_shard(function, comm, tensors[CrossEntropyTensors::logits], "no exchange");
  run_shard_of_backward<typename Views::X, typename Views::Y>(function, comm.exec(), shard, tensors, options);
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
template <class Exec, class Views>
class ShardedCrossEntropyCall {
  using Number  = CrossEntropyTensors;
  using X       = typename Views::X;
  using A       = typename Views::A;
  using Sharded = ShardedCrossEntropy<Exec, X>;
  using Sums    = LossSums<Exec, A>;

  static constexpr RowOperator op       = Views::op;
  static constexpr bool writes_gradient = op == RowOperator::cross_entropy_with_gradient;

 public:
  ShardedCrossEntropyCall(const char* function, const mpi::Communicator<Exec>& comm, const mpi::ClassRange& classes,
                          const Tensors& tensors, const CrossEntropyOptions& options)
      : m_function(function),
        m_comm(comm),
        m_tensors(tensors),
        m_weights(weights_of<A>(tensors[Number::weights])),
        m_shard{classes.first, tensors[Number::logits].extent[tensors[Number::logits].rank - 1], classes.all},
        m_options(options),
        m_pairs_a_row(Sharded::Shared::pairs_a_row(options)) {}

  void run() {
    prepare_together(m_function, m_comm, m_comm.transport(), m_tensors[Number::logits], [&] { return prepare(); });
    const bool is_mean    = m_options.reduction == Reduction::mean;
    const bool is_reduced = m_options.reduction != Reduction::none;
    const WorkspaceLease<Exec, WorkspaceUse::sums> memory(exec(), LossWorkspace<A>::bytes(is_reduced ? rows() : 0));
    const LossWorkspace<A> sums(memory.data());
    start_sums(sums);
    const Tensor loss = is_reduced ? values_of_rows(sums.row_losses) : m_tensors[Number::loss];
    if (rows() > 0) exchange(loss);
    if (is_reduced) {
      Sums::of_losses(exec(), to_string(op), rows(), is_mean, sums, elements_of<A>(m_tensors[Number::loss]));
    }
    if constexpr (writes_gradient) write_gradient();
  }

 private:
  const Exec& exec() const { return m_comm.exec(); }
  std::int64_t rows() const { return m_blocks.all_rows(); }

  SharedFacts prepare() {
    refuse_plan(m_function, m_options.plan);
    const LabelledLayout layout = normalise(m_function, op, m_tensors, m_options, &m_shard);
    if (m_options.check_labels) {
      CrossEntropyCall<Exec, op, X, typename Views::Y>::check_labels(exec(), layout, m_options, m_tensors);
    }
    m_blocks = RowBlocks(m_tensors[Number::logits], -1);
    m_blocks.cut(m_comm.block_of(m_blocks.outer(), m_blocks.inner()));
    m_pairs = m_comm.pairs(rows() * m_pairs_a_row);
    m_lse   = m_tensors[Number::lse];
    if (writes_gradient) {
      const OwnScalars<A> own(m_comm.workspace(OwnScalars<A>::bytes(rows())));
      m_one = own.one;
      if (!m_lse.exists()) m_lse = values_of_rows(own.lse);
    }
    return SharedFacts(op, m_blocks, m_shard.classes, m_weights.data != nullptr, m_options);
  }

  /// One value a row, in the order in which rows are numbered.
  Tensor values_of_rows(A* values) const {
    Tensor t            = without_axis(m_tensors[Number::logits], m_tensors[Number::logits].rank - 1);
    t.data              = values;
    t.element_bytes     = sizeof(A);
    t.type              = element_type<A>();
    std::int64_t stride = 1;
    for (int k = t.rank - 1; k >= 0; --k) {
      t.stride[k] = stride;
      stride *= t.extent[k];
    }
    return t;
  }

  Labels labels_along(const Tensor& labels, const RowsLayout& layout) const {
    return labels_of<RowMap>(labels, layout.map(Number::labels), m_options.ignore_index);
  }

  void start_sums(const LossWorkspace<A>& sums) {
    m_shared = {m_shard, m_weights, nullptr, nullptr};
    if (m_options.label_smoothing != 0 && m_weights.data != nullptr) {
      Sums::of_classes(exec(), to_string(op), m_weights, m_shard.classes, sums);
      m_shared.weight_of_classes = sums.weight_of_classes;
    }
    if (m_options.reduction != Reduction::mean) return;
    const Tensor& labels    = m_tensors[Number::labels];
    const RowsLayout layout = layout_of_shard(op, m_blocks.axis(), {m_tensors[Number::logits], {}, labels});
    const WeightOfRow<A> of_row{{labels_along(labels, layout)}, m_weights, m_options.ignore_index, m_shard};
    Sums::of_rows(exec(), to_string(op), of_row, rows(), sums);
    if (m_options.z_loss == 0 || m_options.weighted_z_loss || m_weights.data == nullptr) return;
    Sums::of_z_losses(exec(), to_string(op), of_row, rows(), sums);
    m_shared.z_loss_weight = sums.z_loss_weight;
  }

  /// Computes every row's loss, and its log-sum-exp if it is needed.
  void exchange(const Tensor& loss) const {
    in_blocks(
        m_function, m_comm, m_blocks, m_pairs, m_pairs_a_row,
        [&](std::int64_t block) {
          const Tensor logits = m_blocks.of_rows(m_tensors[Number::logits], block);
          const Tensor labels = m_blocks.of_values(m_tensors[Number::labels], block);
          const auto layout   = layout_of_shard(op, m_blocks.axis(), {logits, {}, labels});
          Sharded::reduce(exec(), layout, m_options, m_shared, elements_of<const X>(logits),
                          labels_along(labels, layout), m_pairs + m_blocks.first_row(block) * m_pairs_a_row);
        },
        [&](std::int64_t block, const RankStates<ShardPair>& merged) {
          const Tensor logits = m_blocks.of_rows(m_tensors[Number::logits], block);
          const Tensor labels = m_blocks.of_values(m_tensors[Number::labels], block);
          const Tensor losses = m_blocks.of_values(loss, block);
          const Tensor lses   = m_lse.exists() ? m_blocks.of_values(m_lse, block) : Tensor{};
          const auto layout   = layout_of_shard(op, m_blocks.axis(), {logits, {}, labels, losses, lses});
          Sharded::epilogue(exec(), layout.rows, m_options, m_shared, labels_along(labels, layout), merged,
                            OptionalScalars<A>{elements_of<A>(losses), layout.map(Number::loss)},
                            OptionalScalars<A>{elements_of<A>(lses), layout.map(Number::lse)});
        });
  }

  /// Writes the local gradient of a loss whose gradient is options.gradient_scale.
  void write_gradient() const {
    const Kokkos::View<A, typename Exec::memory_space, Kokkos::MemoryTraits<Kokkos::Unmanaged>> one(m_one);
    Kokkos::deep_copy(exec(), one, A(1));
    Tensors tensors      = m_tensors;
    Tensor& dloss        = tensors[Number::loss];
    tensors[Number::lse] = m_lse;
    dloss                = values_of_rows(m_one);
    for (std::int64_t& stride : dloss.stride) stride = 0;
    if (m_options.reduction != Reduction::none) dloss.rank = 0;
    auto options         = m_options;
    options.check_labels = false;
    run_shard_of_backward<X, typename Views::Y>(m_function, exec(), m_shard, tensors, options);
  }

  const char* m_function;
  const mpi::Communicator<Exec>& m_comm;
  Tensors m_tensors;
  ClassWeights<A> m_weights;
  ClassShard m_shard;
  const CrossEntropyOptions& m_options;
  int m_pairs_a_row;
  RowBlocks m_blocks;
  ShardPair* m_pairs = nullptr;
  Tensor m_lse       = {};
  A* m_one           = nullptr;
  typename Sharded::Shared m_shared{};
};

template <class Views, class Exec>
void sharded_cross_entropy(const char* function, const mpi::Communicator<Exec>& comm, const mpi::ClassRange& classes,
                           const Tensors& tensors, const CrossEntropyOptions& options) {
  ShardedCrossEntropyCall<Exec, Views>(function, comm, classes, tensors, options).run();
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_MPI_CALL_HPP
