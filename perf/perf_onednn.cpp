// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// oneDNN's softmax and log-softmax over the last axis as a peer, forward and backward; on a host, with its own
/// threads.
#include "provider.hpp"

#include <dnnl.hpp>

#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <unordered_map>

namespace KokkosNN::Perf {
namespace {

using Arguments = std::unordered_map<int, dnnl::memory>;

dnnl::memory::data_type data_type_of(ElementType type) {
  if (type == ElementType::f16) return dnnl::memory::data_type::f16;
  if (type == ElementType::bf16) return dnnl::memory::data_type::bf16;
  return dnnl::memory::data_type::f32;
}

/// A primitive of one case, and what it works on.
struct Softmax {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::memory::desc tensor;
  dnnl::primitive primitive;
  std::string implementation;
  Arguments arguments;

  /// A dnnl::error where there is none.
  explicit Softmax(const Case& shape)
      : tensor({shape.rows, shape.cols}, data_type_of(shape.x_type), dnnl::memory::format_tag::ab) {
    if (shape.op == RowOperator::softmax) {
      forward<dnnl::softmax_forward>();
    } else if (shape.op == RowOperator::log_softmax) {
      forward<dnnl::logsoftmax_forward>();
    } else if (shape.op == RowOperator::softmax_backward) {
      backward<dnnl::softmax_forward, dnnl::softmax_backward>();
    } else if (shape.op == RowOperator::log_softmax_backward) {
      backward<dnnl::logsoftmax_forward, dnnl::logsoftmax_backward>();
    } else {
      throw std::logic_error("KokkosNN::Perf: perf_onednn.cpp has no " + shape.name());
    }
  }

  template <class T>
  void work_on(const Problem& problem) {
    const auto memory = [&](const auto& view) { return dnnl::memory(tensor, engine, view.data()); };
    if (is_gradient(problem.shape().op)) {
      arguments = {{DNNL_ARG_DST, memory(problem.x<T>())},
                   {DNNL_ARG_DIFF_DST, memory(problem.dy<T>())},
                   {DNNL_ARG_DIFF_SRC, memory(problem.y<T>())}};
    } else {
      arguments = {{DNNL_ARG_SRC, memory(problem.x<T>())}, {DNNL_ARG_DST, memory(problem.y<T>())}};
    }
  }

  void run() {
    primitive.execute(stream, arguments);
    stream.wait();
  }

 private:
  static constexpr int axis = 1;

  template <class Forward>
  auto forward_description() const {
    return typename Forward::primitive_desc({dnnl::prop_kind::forward, tensor, axis}, engine);
  }

  template <class Forward>
  void forward() {
    const auto description = forward_description<Forward>();
    primitive              = Forward(description);
    implementation         = description.impl_info_str();
  }

  template <class Forward, class Backward>
  void backward() {
    const typename Backward::primitive_desc description({tensor, tensor, axis}, engine, forward_description<Forward>());
    primitive      = Backward(description);
    implementation = description.impl_info_str();
  }
};

/// True if this oneDNN has a primitive for the case on this machine.
bool has_primitive(const Case& shape) {
  try {
    const Softmax softmax(shape);
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

}  // namespace

bool onednn_serves(const Case& shape) {
  const bool has_operator = shape.op == RowOperator::softmax || shape.op == RowOperator::log_softmax ||
                            shape.op == RowOperator::softmax_backward || shape.op == RowOperator::log_softmax_backward;
  return shape.is_of_rows() && has_operator && shape.layout == Layout::right && shape.x_type != ElementType::f64 &&
         shape.y_type == shape.x_type && has_primitive(shape);
}

Contender make_onednn(const Problem& problem) {
  const auto softmax = std::make_shared<Softmax>(problem.shape());
  with_type(problem.shape().x_type, [&]<class T>(std::type_identity<T>) { softmax->work_on<T>(problem); });
  return {.call  = [=] { softmax->run(); },
          .plan  = softmax->implementation,
          .slack = 2 + static_cast<double>(problem.shape().cols) / 65536};  // how it sums is not known
}

}  // namespace KokkosNN::Perf
