// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_LAYOUT_HPP
#define KOKKOSNN_IMPL_CALL_LAYOUT_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/export.hpp>
#include <KokkosNN/impl/inputs/row_map.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

// From a View of any rank, layout and axis to rows: validation and normalisation, on the host, without a template.

namespace KokkosNN::Impl {

inline constexpr int max_rank = 8;

/// A View, erased. Strides are in elements and signed: Kokkos keeps them unsigned, and a reversed axis wraps around.
struct Tensor {
  const void* data              = nullptr;
  int element_bytes             = 0;
  int rank                      = 0;
  std::int64_t extent[max_rank] = {};
  std::int64_t stride[max_rank] = {};
};

template <Concepts::View V>
Tensor tensor_of(const V& view) {
  Tensor t;
  t.data          = view.data();
  t.element_bytes = sizeof(typename V::value_type);
  t.rank          = static_cast<int>(V::rank());
  for (int k = 0; k < t.rank; ++k) {
    t.extent[k] = static_cast<std::int64_t>(view.extent(static_cast<std::size_t>(k)));
    t.stride[k] = static_cast<std::int64_t>(view.stride(k));
  }
  return t;
}

/// x and y as rows: the reduced axis apart, all other axes ordered (the last runs fastest) and merged where they can
/// be.
struct RowLayout {
  std::int64_t rows                   = 0;
  std::int64_t cols                   = 0;
  std::int64_t x_col_stride           = 1;
  std::int64_t y_col_stride           = 1;
  int n                               = 0;  ///< axes left in extent and strides
  std::int64_t extent[max_row_dims]   = {};
  std::int64_t x_stride[max_row_dims] = {};
  std::int64_t y_stride[max_row_dims] = {};
  RowForm form                        = RowForm::strided;
  bool one_piece                      = false;  ///< as RowProblem has it

  /// The axis that inner_lanes runs its lanes over: the last one.
  std::int64_t inner() const { return n > 0 ? extent[n - 1] : 1; }
  bool inner_contiguous() const { return n > 0 && x_stride[n - 1] == 1; }

  RowMap x_map() const { return map(x_stride, n); }
  RowMap y_map() const { return map(y_stride, n); }
  RowMap x_outer_map() const { return map(x_stride, n - 1); }
  RowMap y_outer_map() const { return map(y_stride, n - 1); }

 private:
  KOKKOSNN_EXPORT RowMap map(const std::int64_t (&stride)[max_row_dims], int dims) const;
};

/// The tensors of a gradient: what the forward call left (y; of logsumexp its input x), dx, and dy; of logsumexp dlse
/// and lse, without the reduced axis.
struct GradientTensors {
  Tensor x;
  Tensor dx;
  Tensor dy;
  Tensor lse = {};
};

/// The tensors of a gradient as rows, as RowLayout; those of one value a row have stride 0 along the reduced axis.
struct GradientLayout {
  enum Number { x, dx, dy, lse };
  static constexpr int tensors = 4;

  std::int64_t rows                          = 0;
  std::int64_t cols                          = 0;
  std::int64_t col_stride[tensors]           = {};
  int n                                      = 0;
  std::int64_t extent[max_row_dims]          = {};
  std::int64_t stride[tensors][max_row_dims] = {};
  RowForm form                               = RowForm::strided;  ///< of all of its tensors with columns
  bool one_piece                             = false;         ///< as RowProblem has it, of dy too

  std::int64_t inner() const { return n > 0 ? extent[n - 1] : 1; }
  bool inner_contiguous() const { return n > 0 && stride[x][n - 1] == 1; }

  KOKKOSNN_EXPORT RowMap map(int tensor) const;
  KOKKOSNN_EXPORT RowMap outer_map(int tensor) const;

  bool operator==(const GradientLayout&) const = default;
};

/// The tensors of a cross entropy; those that a call does not have are of no bytes. All but the logits, their gradient
/// and the weights lack the classes' axis.
struct CrossEntropyTensors {
  Tensor logits;
  Tensor dlogits = {};
  Tensor labels;
  Tensor loss    = {};  ///< or its gradient
  Tensor lse     = {};
  Tensor weights = {};
};

/// The tensors of a cross entropy as rows, as RowLayout.
struct CrossEntropyLayout {
  enum Number { logits, dlogits, labels, loss, lse };
  static constexpr int tensors = 5;

  std::int64_t rows                          = 0;
  std::int64_t cols                          = 0;
  ClassShard shard                           = {};
  std::int64_t col_stride[2]                 = {1, 1};  ///< of the logits and of their gradient
  int n                                      = 0;
  std::int64_t extent[max_row_dims]          = {};
  std::int64_t stride[tensors][max_row_dims] = {};
  RowForm form                               = RowForm::strided;

  KOKKOSNN_EXPORT RowMap map(int tensor) const;
};

/// Checks a call and describes it as rows. `function` is the public function's name, for messages.
///
/// y has x's extents; for logsumexp it lacks the reduced axis. Throws std::invalid_argument for an axis out of range,
/// extents that differ, a scale that is zero or not finite, overlap other than x and y being the same, and an output
/// whose elements share memory.
KOKKOSNN_EXPORT RowLayout normalise(const char* function, RowOperator op, const Tensor& x, const Tensor& y,
                                    const SoftmaxOptions& options);

/// The same for a gradient: all of x's extents, but for the tensors of one value a row, which lack the axis. dx may be
/// x or dy.
KOKKOSNN_EXPORT GradientLayout normalise_gradient(const char* function, RowOperator op, const GradientTensors& tensors,
                                                  const SoftmaxOptions& options);

/// The same for a cross entropy: dlogits may be the logits. A loss that is reduced, or the gradient of one, is a
/// scalar; the rows' own are one after the other then. Where ranks share rows, `shared` says of which classes the
/// columns are; its number of columns does not matter.
KOKKOSNN_EXPORT CrossEntropyLayout normalise_cross_entropy(const char* function, RowOperator op,
                                                           const CrossEntropyTensors& tensors,
                                                           const CrossEntropyOptions& options,
                                                           const ClassShard* shared = nullptr);

/// Tensors of the same extents as rows that are numbered in the order of the tensors' axes, whatever their strides are:
/// a row has the same number on every rank.
struct ShardLayout {
  static constexpr int max_tensors = 5;

  std::int64_t rows                              = 0;
  std::int64_t cols                              = 0;
  std::int64_t col_stride[max_tensors]           = {};  ///< of the tensors that have columns
  int n                                          = 0;
  std::int64_t extent[max_row_dims]              = {};
  std::int64_t stride[max_tensors][max_row_dims] = {};
  RowForm form                                   = RowForm::strided;

  KOKKOSNN_EXPORT RowMap map(int tensor) const;
};

/// The tensors that have the axis come first, then those that lack it. Nothing is checked.
KOKKOSNN_EXPORT ShardLayout layout_of_shard(int axis, std::initializer_list<Tensor> with_columns,
                                            std::initializer_list<Tensor> a_value_a_row);

/// A tensor's part along one axis.
KOKKOSNN_EXPORT Tensor slice_of(const Tensor& t, int axis, std::int64_t begin, std::int64_t count);

/// The tensor without one axis.
KOKKOSNN_EXPORT Tensor without_axis(const Tensor& t, int axis);

KOKKOSNN_EXPORT std::int64_t element_count(const Tensor& t);

/// An integer of 64 bits, with or without a sign.
inline std::string decimal(std::int64_t bits, bool is_signed) {
  return is_signed ? std::to_string(bits) : std::to_string(static_cast<std::uint64_t>(bits));
}

/// Throws std::invalid_argument for a label that is out of range.
[[noreturn]] KOKKOSNN_EXPORT void complain_of_label(const char* function, std::int64_t row, const std::string& label,
                                                    std::int64_t classes, std::int64_t ignore_index);

/// The axes of tensors of the same extents, without the reduced one, in the order in which rows are numbered: slowest
/// first, those of one element left out.
KOKKOSNN_EXPORT std::vector<int> row_axes(std::initializer_list<Tensor> all);

/// Rows of these extents, the last fastest, as a map to a tensor of these strides.
KOKKOSNN_EXPORT RowMap row_map(const std::int64_t* extent, const std::int64_t* stride, int dims);

/// Throws std::invalid_argument unless the operator is one of those with so many Views.
KOKKOSNN_EXPORT void require_operator(const char* function, RowOperator op, bool is_served);

/// Throws std::invalid_argument if the scale is zero or not finite.
KOKKOSNN_EXPORT void validate_scale(const char* function, double scale);

/// Throws std::invalid_argument, with the function's name in front, unless rows and cols are not negative.
KOKKOSNN_EXPORT void validate_extents(const char* function, std::int64_t rows, std::int64_t cols);

/// Throws std::invalid_argument unless the axis is -1, the only one that rows from functors have.
KOKKOSNN_EXPORT void validate_fused_axis(const char* function, int axis);

/// Throws std::invalid_argument unless a plan made for `planned` serves `layout`.
KOKKOSNN_EXPORT void require_same_layout(const char* function, const RowLayout& planned, const RowLayout& layout);

KOKKOSNN_EXPORT void require_same_layout(const char* function, const GradientLayout& planned,
                                         const GradientLayout& layout);

/// Throws std::invalid_argument if elements of an output share memory.
KOKKOSNN_EXPORT void validate_output(const char* function, const Tensor& y);

/// Whether x and y are the same elements of the same memory.
bool is_same_view(const Tensor& x, const Tensor& y);

/// Whether any element of x shares a byte with an element of y.
KOKKOSNN_EXPORT bool overlaps(const Tensor& x, const Tensor& y);

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_LAYOUT_HPP
