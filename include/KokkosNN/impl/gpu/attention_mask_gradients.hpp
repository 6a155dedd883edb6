// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_GPU_ATTENTION_MASK_GRADIENTS_HPP
#define KOKKOSNN_IMPL_GPU_ATTENTION_MASK_GRADIENTS_HPP

#include <KokkosNN/impl/gpu/device/barriers.hpp>
#include <KokkosNN/impl/gpu/items.hpp>
#include <KokkosNN/impl/inputs/attention_tensors.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Gradients of attention by a bias and by sinks, on a GPU and on a host. Both need each row's sum of o dout first. All
// sums are in a fixed order.

namespace KokkosNN::Impl {

/// Output of X or of float.
template <class X>
struct TypedOutput {
  void* data    = nullptr;
  bool is_float = false;

  template <class A>
  KOKKOS_INLINE_FUNCTION void store(std::int64_t i, A value) const {
    if (is_float) {
      static_cast<float*>(data)[i] = static_cast<float>(value);
    } else {
      static_cast<X*>(data)[i] = static_cast<X>(value);
    }
  }
};

/// Sums of o dout of rows; where there are sinks, times -exp(sink - lse), a row's gradient by its sink.
template <class X>
struct AttentionRowTerms {
  using A = accumulator_t<X>;

  AttentionGradientData<X> data;

  KOKKOS_FUNCTION std::int64_t items() const { return data.shape.all_rows(); }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const AttentionShape& shape = data.shape;
    const std::int64_t head = item / shape.queries, batch = head / shape.heads;
    const ScoreRow row{batch, head % shape.heads, item % shape.queries, batch};
    const A delta    = strided_product<A>(data.o + row.in(data.o_strides), data.o_strides.dim,
                                          static_cast<const X*>(data.dout) + row.in(data.dout_strides),
                                          data.dout_strides.dim, shape.value_dim);
    data.delta[item] = data.sinks.exists() ? sink_term(row, delta) : delta;
  }

 private:
  KOKKOS_FUNCTION A sink_term(const ScoreRow& row, A delta) const {
    const A sink = data.sink(row);
    return sink == -Kokkos::Experimental::infinity_v<A>
               ? A(0)
               : -Kokkos::exp(sink - data.lse[row.in(data.lse_strides)]) * delta;
  }
};

/// Sums of a head's rows: every `parts`-th of them first, then those sums. An item is such a sum, then a head.
template <class X, bool of_parts>
struct AttentionSinkSums {
  using A                             = accumulator_t<X>;
  static constexpr std::int64_t parts = 256;

  AttentionGradientData<X> data;
  A* sums;  ///< (head, part)
  TypedOutput<X> dsinks;
  std::int64_t stride;

  KOKKOS_FUNCTION std::int64_t items() const { return data.shape.heads * (of_parts ? parts : 1); }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const AttentionShape& shape = data.shape;
    A sum                       = 0;
    if constexpr (of_parts) {
      const std::int64_t head = item / parts;
      for (std::int64_t r = item % parts; r < shape.batch * shape.queries; r += parts) {
        sum += data.delta[(r / shape.queries * shape.heads + head) * shape.queries + r % shape.queries];
      }
      sums[item] = sum;
    } else {
      for (std::int64_t p = 0; p < parts; ++p) sum += sums[item * parts + p];
      dsinks.store(item * stride, sum);
    }
  }
};

/// Sums of the logits' gradients over the axes that a bias is broadcast along. An item is an element of the bias.
template <class X>
struct AttentionBiasSums {
  using A = accumulator_t<X>;
  /// Wavefronts of a SIMD on HIP: for more the places of a row, its mask and both products would be spilled.
  static constexpr int hip_wavefronts = 2;

  AttentionGradientData<X> data;
  TypedOutput<X> dbias;
  AttentionStrides strides;
  AttentionScores kept;  ///< extents of the bias

  KOKKOS_FUNCTION std::int64_t items() const { return kept.batch * kept.heads * kept.queries * kept.keys; }

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const Range key   = range(item, kept.keys, data.shape.keys);
    const Range query = range(item, kept.queries, data.shape.queries);
    const Range head  = range(item, kept.heads, data.shape.heads);
    const Range batch = range(item, kept.batch, data.shape.batch);
    A sum             = 0;
    for (std::int64_t b = batch.begin; b < batch.end; ++b)
      for (std::int64_t h = head.begin; h < head.end; ++h)
        for (std::int64_t i = query.begin; i < query.end; ++i) sum += row_sum({b, h, i, b}, key.begin, key.end);
    dbias.store(batch.begin * strides.batch + head.begin * strides.head + query.begin * strides.sequence +
                    key.begin * strides.dim,
                sum);
  }

 private:
  struct Range {
    std::int64_t begin;
    std::int64_t end;
  };
  /// Index along an axis that the bias has, else all of it; takes the axis from the item.
  KOKKOS_FUNCTION static Range range(std::int64_t& item, std::int64_t extent, std::int64_t all) {
    const std::int64_t index = item % extent;
    item /= extent;
    return extent == all ? Range{index, index + 1} : Range{0, all};
  }

  KOKKOS_FUNCTION A row_sum(const ScoreRow& row, std::int64_t begin, std::int64_t end) const {
    const Sequence sequence   = data.sequence(row.batch);
    const ColumnRange allowed = data.ranges(row, sequence);
    const A lse               = data.lse[row.in(data.lse_strides)];
    if (lse == -Kokkos::Experimental::infinity_v<A>) return A(0);
    const auto mask = data.mask_of(row, sequence);
    A sum           = 0;
    for (std::int64_t key = Kokkos::max(begin, allowed.begin); key < Kokkos::min(end, allowed.end); ++key) {
      if (data.elements.keeps(mask, key)) sum += term(computed_again(row), mask, anew(key), lse);
    }
    return sum;
  }
  /// LLVM on HIP would compute all places of a row ahead of its keys, and spill them.
  KOKKOS_FUNCTION static ScoreRow computed_again(const ScoreRow& row) {
    return {anew(row.batch), anew(row.head), anew(row.query), anew(row.start)};
  }
  template <class Mask>
  KOKKOS_FUNCTION A term(const ScoreRow& row, const Mask& mask, std::int64_t key, A lse) const {
    const ScoreRow k{row.batch, row.head / data.shape.group(), key, row.start};
    const A score = strided_product<A>(data.q + row.in(data.q_strides), data.q_strides.dim,
                                       data.k + k.in(data.k_strides), data.k_strides.dim, data.shape.dim);
    const A p     = Kokkos::exp(data.elements.logit(score * data.scale, mask, key) - lse);
    if (p == A(0)) return A(0);  // nothing else is looked at
    const A factor = data.elements.weight_factor(mask, key);
    const A delta  = data.delta[row.in(data.delta_strides)];
    if (factor == A(0)) return -p * delta;
    const A dp = strided_product<A>(data.dout + row.in(data.dout_strides), data.dout_strides.dim,
                                    data.v + k.in(data.v_strides), data.v_strides.dim, data.shape.value_dim);
    return p * (factor * dp - delta);
  }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_GPU_ATTENTION_MASK_GRADIENTS_HPP
