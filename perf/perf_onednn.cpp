// SPDX-License-Identifier: Apache-2.0
/// oneDNN's softmax and log-softmax over the last axis as a peer, forward and backward; on a host, with its own
/// threads.
#include "provider.hpp"

#include <dnnl.hpp>

#include <memory>
#include <string>
#include <type_traits>
#include <unordered_map>

namespace KokkosNN::Perf {
namespace {

using Arguments = std::unordered_map<int, dnnl::memory>;

/// A primitive of one case, and what it works on.
struct Softmax {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::memory::desc tensor;
  dnnl::primitive primitive;
  std::string implementation;
  Arguments arguments;

  explicit Softmax(const Problem& problem)
      : tensor({problem.shape().rows, problem.shape().cols}, dnnl::memory::data_type::f32,
               dnnl::memory::format_tag::ab) {
    float* const x = problem.x<float>().data();
    float* const y = problem.y<float>().data();
    switch (problem.shape().op) {
      case RowOperator::softmax:
        forward<dnnl::softmax_forward>(x, y);
        break;
      case RowOperator::log_softmax:
        forward<dnnl::logsoftmax_forward>(x, y);
        break;
      case RowOperator::softmax_backward:
        backward<dnnl::softmax_forward, dnnl::softmax_backward>(x, problem.dy<float>().data(), y);
        break;
      default:
        backward<dnnl::logsoftmax_forward, dnnl::logsoftmax_backward>(x, problem.dy<float>().data(), y);
        break;
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
  void forward(float* x, float* y) {
    const auto description = forward_description<Forward>();
    primitive              = Forward(description);
    implementation         = description.impl_info_str();
    arguments              = {{DNNL_ARG_SRC, {tensor, engine, x}}, {DNNL_ARG_DST, {tensor, engine, y}}};
  }

  template <class Forward, class Backward>
  void backward(float* y, float* dy, float* dx) {
    const typename Backward::primitive_desc description({tensor, tensor, axis}, engine, forward_description<Forward>());
    primitive      = Backward(description);
    implementation = description.impl_info_str();
    arguments      = {{DNNL_ARG_DST, {tensor, engine, y}},
                      {DNNL_ARG_DIFF_DST, {tensor, engine, dy}},
                      {DNNL_ARG_DIFF_SRC, {tensor, engine, dx}}};
  }
};

}  // namespace

bool onednn_serves(const Case& shape) {
  const bool has_primitive = shape.op == RowOperator::softmax || shape.op == RowOperator::log_softmax ||
                             shape.op == RowOperator::softmax_backward || shape.op == RowOperator::log_softmax_backward;
  return has_primitive && shape.layout == Layout::right && shape.x_type == ElementType::f32 &&
         shape.y_type == ElementType::f32;
}

Contender make_onednn(const Problem& problem) {
  const auto softmax = std::make_shared<Softmax>(problem);
  return {.call  = [=] { softmax->run(); },
          .plan  = softmax->implementation,
          .slack = 2 + static_cast<double>(problem.shape().cols) / 65536};  // how it sums is not known
}

}  // namespace KokkosNN::Perf
