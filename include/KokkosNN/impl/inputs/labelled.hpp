// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_INPUTS_LABELLED_HPP
#define KOKKOSNN_IMPL_INPUTS_LABELLED_HPP

#include <KokkosNN/impl/gpu/device/exchange.hpp>
#include <KokkosNN/impl/gpu/device/status_word.hpp>
#include <KokkosNN/impl/inputs/rows.hpp>
#include <KokkosNN/impl/math/exp.hpp>
#include <KokkosNN/impl/operators/softmax.hpp>
#include <KokkosNN/impl/operators/softmax_backward.hpp>
#include <KokkosNN/impl/reductions/loss_state.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/vocabulary.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

// Rows of logits with a label each, and the outputs of their losses.

namespace KokkosNN::Impl {

/// Labels, one integer a row, of any integral type: erased, as a kernel loads only one of them a row.
template <class Map>
struct RowLabels {
  const void* data       = nullptr;
  int bytes              = 8;
  bool is_signed         = true;
  bool may_ignore_lowest = false;  ///< ignore_index is the lowest number of 64 bits
  Map map;

  /// Label of a row. An unsigned label above the signed 64-bit range becomes a number that is neither a class nor
  /// ignored.
  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t row) const {
    const std::int64_t label = bits(row);
    if (is_signed || bytes < 8 || label >= 0) return label;
    constexpr std::int64_t lowest = INT64_MIN;  // numeric_limits has functions of the host
    return may_ignore_lowest ? lowest + 1 : lowest;
  }

  /// Bits of a row's label as a signed number, also those of an unsigned label above that range.
  KOKKOS_INLINE_FUNCTION std::int64_t bits(std::int64_t row) const {
    // opaque, or a loop over rows would carry a pointer for each width, and spill
    const std::int64_t i = map(opaque(row));
    if (bytes == 8) return static_cast<const std::int64_t*>(data)[i];
    if (bytes == 4) return is_signed ? at<std::int32_t>(i) : at<std::uint32_t>(i);
    if (bytes == 2) return is_signed ? at<std::int16_t>(i) : at<std::uint16_t>(i);
    return is_signed ? at<std::int8_t>(i) : at<std::uint8_t>(i);
  }

 private:
  template <class T>
  KOKKOS_INLINE_FUNCTION std::int64_t at(std::int64_t i) const {
    return static_cast<std::int64_t>(static_cast<const T*>(data)[i]);
  }
};

using Labels = RowLabels<RowMap>;

/// Label of a row, checked: its class, and its column among those of this call.
struct Label {
  std::int64_t number;  ///< class; 0 if there is none
  std::int64_t column;  ///< column of its logit; 0 if this call does not have it
  bool is_ignored;
  bool is_class;
  bool is_here;  ///< a class whose logit this call has

  KOKKOS_INLINE_FUNCTION static Label of(std::int64_t label, std::int64_t ignore_index, const ClassShard& shard) {
    const bool is_ignored     = label == ignore_index;
    const bool is_class       = !is_ignored && label >= 0 && label < shard.classes;
    const std::int64_t number = is_class ? label : 0;
    const std::int64_t column = number - shard.first;
    const bool is_here        = is_class && column >= 0 && column < shard.columns;
    return {number, is_here ? column : 0, is_ignored, is_class, is_here};
  }
};

/// Weights of the classes; 1 without weights.
template <class A>
struct ClassWeights {
  const A* data       = nullptr;
  std::int64_t stride = 1;

  KOKKOS_INLINE_FUNCTION A operator()(std::int64_t c) const { return data == nullptr ? A(1) : data[c * stride]; }
};

/// Output of one value a row, a loss or a log-sum-exp, or input of one. Nothing is stored without a View.
template <class A, class Map = RowMap>
struct OptionalScalars {
  A* data = nullptr;
  Map map;

  KOKKOS_INLINE_FUNCTION void store(A value, std::int64_t row) const {
    if (data != nullptr) data[map(opaque(row))] = value;
  }
  KOKKOS_INLINE_FUNCTION A load(std::int64_t row) const { return data[map(opaque(row))]; }
};

/// Output of a class a row, an integer of 32 or 64 bits, which is erased. Nothing is stored without a View.
struct PredictedClasses {
  void* data = nullptr;
  int bytes  = 8;
  RowMap map = {};

  KOKKOS_INLINE_FUNCTION void store(std::int64_t number, std::int64_t row) const {
    if (data == nullptr) return;
    const std::int64_t i = map(opaque(row));
    if (bytes == 8) {
      static_cast<std::int64_t*>(data)[i] = number;
    } else {
      static_cast<std::int32_t*>(data)[i] = static_cast<std::int32_t>(number);
    }
  }
};

/// Rows of logits, each with its label; those of the backward also with a log-sum-exp and the gradient of its loss. One
/// kind of map finds all of them.
template <class X, RowForm row_form, class A, bool extended, class Map = MapOf<row_form>>
struct LabelledRows {
  using value_type                       = X;
  static constexpr RowForm form          = row_form;
  static constexpr bool is_extended      = extended;
  static constexpr bool looks_ahead      = MemoryRows<const X, row_form, Map>::looks_ahead;
  static constexpr bool is_at_one_stride = MemoryRows<const X, row_form, Map>::is_at_one_stride;

  struct Row : MemoryRow<const X, form> {
    const LabelledRows& rows;
    std::int64_t number;
    std::int64_t label;
  };

  MemoryRows<const X, form, Map> logits;
  RowLabels<Map> labels;
  OptionalScalars<const A, Map> lse;
  OptionalScalars<const A, Map> dloss;

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t r) const { return {logits.row(r), *this, r, labels(r)}; }

  /// Prefetches the logits' rows, as rows without labels do.
  bool look_ahead(std::int64_t rows_ahead, int rows, std::int64_t cols)
    requires(looks_ahead)
  {
    return logits.look_ahead(rows_ahead, rows, cols);
  }
  KOKKOS_INLINE_FUNCTION void prefetch(std::int64_t row) const
    requires(looks_ahead)
  {
    logits.prefetch(row);
  }
};

/// Output of a row's gradient, loss and log-sum-exp.
template <class Y, RowForm form, class A, class Map = MapOf<form>>
struct LossOutput {
  using value_type                   = Y;
  static constexpr bool takes_states = false;
  static constexpr bool takes_label_states =
      false;  ///< `store_state(params, state, label_logit, label, row)`, no results

  struct Row : MemoryRow<Y, form> {
    const LossOutput& output;
  };

  MemoryRows<Y, form, Map> dlogits;
  OptionalScalars<A, Map> loss;
  OptionalScalars<A, Map> lse;

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t r) const { return {dlogits.row(r), *this}; }
};

/// Output of a row's loss and log-sum-exp, without a gradient.
template <class A, class Map>
struct LossOutput<void, RowForm::strided, A, Map> {
  static constexpr bool takes_states       = false;
  static constexpr bool takes_label_states = false;

  struct Row {
    const LossOutput& output;
  };

  OptionalScalars<A, Map> loss;
  OptionalScalars<A, Map> lse;

  KOKKOS_INLINE_FUNCTION Row row(std::int64_t) const { return {*this}; }
};

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_INPUTS_LABELLED_HPP
