// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_TEST_SUPPORT_HEADS_HPP
#define KOKKOSNN_TEST_SUPPORT_HEADS_HPP

#include "segmented.hpp"

#include "../reference/gradients.hpp"

#include <KokkosNN/KokkosNN.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

// Ragged rows of several heads: values of rank 2, (elements, heads).

namespace KokkosNNTest {

/// Where the elements of (elements, heads) are.
enum class HeadLayout {
  right,         ///< the heads of an element side by side
  left,          ///< the elements of a head side by side
  padded_right,  ///< with gaps behind the heads of an element
  padded_left,   ///< with gaps behind a head
  spread,        ///< neither axis has stride 1
  one_head       ///< an input only: all heads are the same memory
};
inline constexpr HeadLayout output_layouts[] = {HeadLayout::right, HeadLayout::left, HeadLayout::padded_right,
                                                HeadLayout::padded_left, HeadLayout::spread};

inline Placement place_of_heads(HeadLayout layout, std::int64_t elements, std::int64_t heads) {
  switch (layout) {
    case HeadLayout::right:
      return {{elements, heads}, {heads, 1}, 0};
    case HeadLayout::left:
      return {{elements, heads}, {1, elements}, 0};
    case HeadLayout::padded_right:
      return {{elements, heads}, {heads + 3, 1}, 0};
    case HeadLayout::padded_left:
      return {{elements, heads}, {1, elements + 5}, 0};
    case HeadLayout::spread:
      return {{elements, heads}, {2 * heads + 1, 2}, 0};
    case HeadLayout::one_head:
      return {{elements, heads}, {1, 0}, 0};
  }
  return {};
}

/// One call on ragged rows of several heads: each head's values are other ones; the output poisoned and guarded.
template <RowOperator Op, class T, class Y = T>
class HeadsTrial {
 public:
  static constexpr bool is_lse = Op == RowOperator::logsumexp;

  HeadsTrial(Lengths lengths, std::int64_t heads, HeadLayout x_layout = HeadLayout::right,
             HeadLayout y_layout = HeadLayout::right, Recipe recipe = Recipe::uniform, std::int64_t before = 0)
      : m_lengths(std::move(lengths)),
        m_heads(heads),
        m_before(before),
        m_offsets(offsets_of<int>(m_lengths, before)),
        m_x_place(place_of_heads(x_layout, before + total(m_lengths), heads)),
        m_y_place(place_of_heads(y_layout, is_lse ? std::int64_t(m_lengths.size()) : before + total(m_lengths), heads)),
        m_x(m_x_place.span()),
        m_y(m_y_place.span()) {
    for_each_row([&](std::int64_t row, std::int64_t head, std::int64_t begin, std::int64_t length) {
      InputRow values(recipe, row + head * 7919, length);
      for (std::int64_t i = begin; i < begin + length; ++i) {
        m_x.host()[at(m_x_place, i, head)] = static_cast<T>(values.next());
      }
    });
    m_x.upload();
  }

  Buffer<T>& x() { return m_x; }
  Buffer<Y>& y() { return m_y; }
  const Placement& x_place() const { return m_x_place; }
  const Placement& y_place() const { return m_y_place; }
  const auto& offsets() const { return m_offsets; }

  auto x_view() const { return strided_view<2>(static_cast<const T*>(m_x.device()), m_x_place); }
  auto y_view() const { return strided_view<2>(m_y.device(), m_y_place); }

  void call(const SegmentedOptions& options = {}, const Exec& exec = Exec()) const {
    apply_segmented<Op>(exec, x_view(), m_offsets, y_view(), options);
  }

  ::testing::AssertionResult run_correct(const SegmentedOptions& options = {}) {
    m_y.poison_all();
    call(options);
    Exec().fence();
    m_y.download();
    return correct(m_x.host(), m_y, m_y_place, options);
  }

  ::testing::AssertionResult run_in_place_correct(const SegmentedOptions& options = {})
    requires(!is_lse)
  {
    const std::vector<T> before(m_x.host(), m_x.host() + m_x.count());
    const auto view = strided_view<2>(m_x.device(), m_x_place);
    apply_segmented<Op>(Exec(), view, m_offsets, view, options);
    Exec().fence();
    m_x.download();
    return correct(before.data(), m_x, m_x_place, options);
  }

  /// f(row, head, first element, elements)
  template <class F>
  void for_each_row(const F& f) const {
    for (std::int64_t head = 0; head < m_heads; ++head) {
      std::int64_t begin = m_before;
      for (std::size_t row = 0; row < m_lengths.size(); ++row) {
        f(static_cast<std::int64_t>(row), head, begin, m_lengths[row]);
        begin += m_lengths[row];
      }
    }
  }

  static std::int64_t at(const Placement& place, std::int64_t element, std::int64_t head) {
    return place.origin + element * place.strides[0] + head * place.strides[1];
  }

 private:
  ::testing::AssertionResult correct(const T* x, const Buffer<Y>& y, const Placement& place,
                                     const SegmentedOptions& options) const {
    if (!gaps_intact(y, place)) return ::testing::AssertionFailure() << "something outside the output was written";
    for (std::int64_t head = 0; !is_lse && head < m_heads; ++head) {
      for (std::int64_t i = 0; i < m_before; ++i) {
        if (!same_bits(y.host()[at(place, i, head)], poison<Y>())) {
          return ::testing::AssertionFailure() << "element " << i << " of no row was written, of head " << head;
        }
      }
    }
    const SoftmaxOptions plain{.scale = options.scale, .masked_row = options.masked_row};
    Errors errors;
    for_each_row([&](std::int64_t row, std::int64_t head, std::int64_t begin, std::int64_t length) {
      if (length == 0 && !is_lse) return;
      const Y* const result = y.host() + at(place, is_lse ? row : begin, head);
      const Reference::Row<T> input{x + at(m_x_place, begin, head), length, m_x_place.strides[0]};
      compare_row<Op>(input, result, is_lse ? 0 : place.strides[0], row, plain, errors);
    });
    if (errors.max_ulp <= ragged_promise<Op, Y>) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << errors.worst;
  }

  Lengths m_lengths;
  std::int64_t m_heads;
  std::int64_t m_before;
  OffsetsView<const int> m_offsets;
  Placement m_x_place;
  Placement m_y_place;
  Buffer<T> m_x;
  Buffer<Y> m_y;
};

/// One gradient on ragged rows of several heads: y rounded from the forward formula, dy noise.
template <RowOperator Op, class T>
class HeadsGradientTrial {
 public:
  HeadsGradientTrial(const Lengths& lengths, std::int64_t heads, HeadLayout y_layout, HeadLayout dy_layout,
                     HeadLayout dx_layout, double scale = 1)
      : m_scale(scale),
        m_forward(lengths, heads, HeadLayout::right),
        m_places{place_of_heads(y_layout, total(lengths), heads), place_of_heads(dy_layout, total(lengths), heads),
                 place_of_heads(dx_layout, total(lengths), heads)},
        m_buffers{Buffer<T>(m_places[0].span()), Buffer<T>(m_places[1].span()), Buffer<T>(m_places[2].span())} {
    std::vector<Reference::Real> y;
    m_forward.for_each_row([&](std::int64_t row, std::int64_t head, std::int64_t begin, std::int64_t length) {
      if (length == 0) return;
      InputRow gradient(Recipe::uniform, row + 100000 + head * 7919, length);
      const Reference::Row<T> logits{m_forward.x().host() + begin * heads + head, length, heads};
      if (Op == RowOperator::softmax_backward) Reference::softmax(logits, scale, MaskedRowPolicy::nan, y);
      if (Op == RowOperator::log_softmax_backward) Reference::log_softmax(logits, scale, MaskedRowPolicy::nan, y);
      for (std::int64_t i = 0; i < length; ++i) {
        value(0, begin + i, head) = static_cast<T>(static_cast<double>(y[i]));
        value(1, begin + i, head) = static_cast<T>(gradient.next());
      }
    });
    for (Buffer<T>& buffer : m_buffers) buffer.upload();
  }

  ::testing::AssertionResult run_correct(Output output = Output::own) {
    const int out = output == Output::own ? 2 : (output == Output::over_x ? 0 : 1);
    const std::vector<T> y(m_buffers[0].host(), m_buffers[0].host() + m_buffers[0].count());
    const std::vector<T> dy(m_buffers[1].host(), m_buffers[1].host() + m_buffers[1].count());
    const SegmentedOptions options{.scale = m_scale};
    if constexpr (Op == RowOperator::softmax_backward) {
      KokkosNN::segmented_softmax_backward(Exec(), view(0), view(1), m_forward.offsets(), view(out), options);
    } else {
      KokkosNN::segmented_log_softmax_backward(Exec(), view(0), view(1), m_forward.offsets(), view(out), options);
    }
    Exec().fence();
    m_buffers[out].download();
    if (!gaps_intact(m_buffers[out], m_places[out])) {
      return ::testing::AssertionFailure() << "something outside was written";
    }
    return close(y.data(), dy.data(), out);
  }

 private:
  auto view(int number) const { return strided_view<2>(m_buffers[number].device(), m_places[number]); }
  T& value(int number, std::int64_t element, std::int64_t head) {
    return m_buffers[number].host()[m_forward.at(m_places[number], element, head)];
  }

  ::testing::AssertionResult close(const T* y, const T* dy, int out) {
    Errors errors;
    m_forward.for_each_row([&](std::int64_t row, std::int64_t head, std::int64_t begin, std::int64_t length) {
      if (length == 0) return;
      const auto of = [&](const T* data, int number) {
        return Reference::Row<T>{data + m_forward.at(m_places[number], begin, head), length,
                                 m_places[number].strides[0]};
      };
      const auto expected = Op == RowOperator::softmax_backward
                                ? Reference::softmax_backward(of(y, 0), of(dy, 1), m_scale)
                                : Reference::log_softmax_backward(of(y, 0), of(dy, 1), m_scale);
      for (std::int64_t i = 0; i < length; ++i) {
        const auto& [want, magnitude, ill] = expected[i];
        const auto got                     = exact(value(out, begin + i, head));
        errors.add(ulp_error<T>(got, want, std::isfinite(magnitude) ? magnitude : 0), row, i, got, want);
      }
    });
    if (errors.max_ulp <= gradient_promise<Op, T>) return ::testing::AssertionSuccess();
    return ::testing::AssertionFailure() << errors.worst;
  }

  double m_scale;
  HeadsTrial<RowOperator::softmax, T> m_forward;  ///< of which the logits and the rows are
  Placement m_places[3];
  Buffer<T> m_buffers[3];
};

}  // namespace KokkosNNTest

#endif  // KOKKOSNN_TEST_SUPPORT_HEADS_HPP
