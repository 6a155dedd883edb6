// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_ELEMENTWISE_HPP
#define KOKKOSNN_TEST_SUPPORT_ELEMENTWISE_HPP

#include "check.hpp"

#include "../reference/elementwise.hpp"

#include <KokkosNN/elementwise.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace KokkosNNTest {

using KokkosNN::GeluForm;
using Reference::Element;

/// In ulp: of the result, of gradients by the gate of the larger term.
template <class T>
double elementwise_promise(Element op) {
  if (is_16_bit<T>) return 1;
  switch (op) {
    case Element::add:
    case Element::mul:
      return 0.5;
    case Element::silu:
      return 5;
    case Element::swiglu:
    case Element::silu_backward:
      return 6;
    case Element::swiglu_backward:
      return 8;
    case Element::gelu:
    case Element::gelu_tanh:
    case Element::gelu_backward:
    case Element::gelu_tanh_backward:
      return 10;
    default:
      return 12;
  }
}

/// f(multi-index) for all elements of these extents.
template <class F>
void for_each_element(const std::vector<std::int64_t>& extents, const F& f) {
  const Placement dense = right(extents);
  std::vector<std::int64_t> index(extents.size());
  for (std::int64_t n = 0; n < dense.count(); ++n) {
    std::int64_t rest = n;
    for (int d = dense.rank(); d-- > 0;) {
      index[d] = rest % extents[d];
      rest /= extents[d];
    }
    f(index);
  }
}

/// The element of a tensor that is broadcast to an index of more or longer axes.
inline std::int64_t offset_of(const Placement& place, const std::vector<std::int64_t>& index) {
  std::int64_t offset = place.origin;
  const auto missing  = index.size() - place.extents.size();
  for (int d = 0; d < place.rank(); ++d) {
    if (place.extents[d] != 1) offset += place.strides[d] * index[missing + static_cast<std::size_t>(d)];
  }
  return offset;
}

template <class T>
struct ElementTensor {
  Placement place;
  Buffer<T> buffer;

  explicit ElementTensor(const Placement& where, int misalignment = 0)
      : place(where), buffer(where.span(), misalignment) {}

  void fill(double range, std::uint64_t seed) {
    for (std::int64_t i = 0; i < buffer.count(); ++i) {
      buffer.host()[i] = static_cast<T>(range * noise_of(random_bits(seed, static_cast<std::uint64_t>(i))));
    }
    buffer.upload();
  }
  template <int Rank>
  auto view() const {
    return strided_view<Rank>(buffer.device(), place);
  }
  long double at(const std::vector<std::int64_t>& index) const { return exact(buffer.host()[offset_of(place, index)]); }
};

/// The public function of an operator; all Views of one rank.
template <class V, class W>
void apply_element(Element op, const Exec& exec, const std::array<W, 2>& out, const std::array<V, 3>& in) {
  constexpr KokkosNN::GeluOptions tanh{.form = GeluForm::tanh};
  switch (op) {
    case Element::add:
      return KokkosNN::add(exec, in[0], in[1], out[0]);
    case Element::mul:
      return KokkosNN::mul(exec, in[0], in[1], out[0]);
    case Element::silu:
      return KokkosNN::silu(exec, in[0], out[0]);
    case Element::gelu:
      return KokkosNN::gelu(exec, in[0], out[0]);
    case Element::gelu_tanh:
      return KokkosNN::gelu(exec, in[0], out[0], tanh);
    case Element::swiglu:
      return KokkosNN::swiglu(exec, in[0], in[1], out[0]);
    case Element::geglu:
      return KokkosNN::geglu(exec, in[0], in[1], out[0]);
    case Element::geglu_tanh:
      return KokkosNN::geglu(exec, in[0], in[1], out[0], tanh);
    case Element::silu_backward:
      return KokkosNN::silu_backward(exec, in[0], in[1], out[0]);
    case Element::gelu_backward:
      return KokkosNN::gelu_backward(exec, in[0], in[1], out[0]);
    case Element::gelu_tanh_backward:
      return KokkosNN::gelu_backward(exec, in[0], in[1], out[0], tanh);
    case Element::swiglu_backward:
      return KokkosNN::swiglu_backward(exec, in[0], in[1], in[2], out[0], out[1]);
    case Element::geglu_backward:
      return KokkosNN::geglu_backward(exec, in[0], in[1], in[2], out[0], out[1]);
    case Element::geglu_tanh_backward:
      return KokkosNN::geglu_backward(exec, in[0], in[1], in[2], out[0], out[1], tanh);
  }
}

/// One call of an operator on tensors of its own: inputs filled, outputs poisoned and guarded, results against the
/// reference.
template <class T, int Rank>
class ElementwiseTrial {
 public:
  using Places = std::vector<Placement>;

  /// Places of three inputs and two outputs, or of one for all; the operator takes as many as it has.
  ElementwiseTrial(Element op, const Places& in, const Places& out, double range = 4, int in_misalignment = 0,
                   int out_misalignment = 0)
      : m_op(op) {
    for (std::size_t i = 0; i < 3; ++i) {
      m_in.emplace_back(in[i % in.size()], in_misalignment);
      m_in.back().fill(i == 0 ? range : 4, i + 1);
    }
    for (std::size_t o = 0; o < 2; ++o) m_out.emplace_back(out[o % out.size()], out_misalignment);
  }

  std::vector<ElementTensor<T>>& in() { return m_in; }
  std::vector<ElementTensor<T>>& out() { return m_out; }

  void call(const Exec& exec = Exec()) const {
    const auto in  = [&](int i) { return m_in[i].template view<Rank>(); };
    const auto out = [&](int o) { return m_out[o].template view<Rank>(); };
    apply_element(m_op, exec, std::array{out(0), out(1)}, std::array{in(0), in(1), in(2)});
    exec.fence("ElementwiseTrial::call");
  }

  ::testing::AssertionResult run_correct() {
    for (auto& output : m_out) output.buffer.poison_all();
    call();
    for (auto& output : m_out) output.buffer.download();
    return correct();
  }

  ::testing::AssertionResult correct() const {
    const int outputs = Reference::outputs_of(m_op);
    for (int o = 0; o < 2; ++o) {
      if (o >= outputs && !m_out[o].buffer.untouched()) return ::testing::AssertionFailure() << "a second output";
      if (!gaps_intact(m_out[o].buffer, m_out[o].place)) {
        return ::testing::AssertionFailure() << "something outside output " << o << " was written";
      }
    }
    Errors errors[2];
    std::int64_t number = 0;
    for_each_element(m_out[0].place.extents, [&](const auto& index) {
      const std::array<Reference::Real, 3> in{m_in[0].at(index), m_in[1].at(index), m_in[2].at(index)};
      const auto expected = Reference::element(m_op, in);
      for (int o = 0; o < outputs; ++o) {
        const long double value = m_out[o].at(index);
        errors[o].add(error_of(value, expected[o], in), 0, number, value, expected[o].value);
      }
      ++number;
    });
    for (int o = 0; o < outputs; ++o) {
      if (!(errors[o].max_ulp <= elementwise_promise<T>(m_op))) {
        return ::testing::AssertionFailure() << "output " << o << ", " << errors[o].worst;
      }
    }
    return ::testing::AssertionSuccess();
  }

 private:
  static double error_of(long double value, const Reference::Result& expected,
                         const std::array<Reference::Real, 3>& in) {
    // A tail below the normal range may count as 0: it is worth this much, with the slope of the tanh form.
    using A                = KokkosNN::accumulator_t<T>;
    const long double tail = 2 * smallest_normal<A>() * std::pow(1 + std::fabs(in[0]), 3.0L);
    if (std::fabs(value - expected.value) <= tail * (1 + std::fabs(in[1])) * (1 + std::fabs(in[2]))) return 0;
    const long double target = is_16_bit<T> ? correctly_rounded<T>(expected.value) : expected.value;
    return ulp_error<T>(value, target, expected.size);
  }

  Element m_op;
  std::vector<ElementTensor<T>> m_in, m_out;
};

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_ELEMENTWISE_HPP
