// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
/// The data of one case, and the check that a provider's result is a softmax before its time is believed.
#ifndef KOKKOSNN_PERF_PROBLEM_HPP
#define KOKKOSNN_PERF_PROBLEM_HPP

#include "shapes.hpp"
#include "timing.hpp"

#include <KokkosNN/half.hpp>
#include <KokkosNN/options.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace KokkosNN::Perf {

using Bytes = Kokkos::View<std::byte*, Exec>;

/// Device memory that nobody has written yet: whoever fills it first places its pages.
inline Bytes allocate(const Exec& exec, const std::string& label, std::int64_t bytes) {
  return Bytes(Kokkos::view_alloc(Kokkos::WithoutInitializing, exec, label), static_cast<std::size_t>(bytes));
}

/// Bytes without a pattern: a GPU draws less power, and so may run faster, on constant ones.
void fill_with_noise(const Exec& exec, const Bytes& bytes);

/// Bits that depend on nothing but the element's place in memory.
KOKKOS_INLINE_FUNCTION std::uint64_t noise(std::uint64_t place) {
  place = (place + 1) * 0x9e3779b97f4a7c15u;
  place = (place ^ (place >> 30)) * 0xbf58476d1ce4e5b9u;
  return place ^ (place >> 27);
}

/// Weight and bias of a norm's column: numbers that 16 bits hold.
KOKKOS_INLINE_FUNCTION double norm_weight(std::int64_t column) { return 1 + 0.125 * static_cast<double>(column % 8); }
KOKKOS_INLINE_FUNCTION double norm_bias(std::int64_t column) { return 0.25 * static_cast<double>(column % 4); }

/// Where row number `row` of ragged rows begins; of the last row plus one, where that ends. Two neighbours of `ragged`
/// have 2 N elements together.
KOKKOS_INLINE_FUNCTION std::int64_t row_begin(Layout layout, std::int64_t rows, std::int64_t cols, std::int64_t row) {
  const std::int64_t regular = row * cols;
  if (layout == Layout::skewed) return regular + (row > rows / 2 ? rows : 0);
  if (layout == Layout::even || row % 2 == 0 || row == rows) return regular;
  const auto length = static_cast<std::int64_t>(noise(static_cast<std::uint64_t>(row)) >> 33) % (2 * cols + 1);
  return regular - cols + length;
}

/// Calls `visit` with the std::type_identity of an element type.
template <class Visit>
void with_type(ElementType type, Visit&& visit) {
  switch (type) {
    case ElementType::f64:
      return visit(std::type_identity<double>{});
    case ElementType::f32:
      return visit(std::type_identity<float>{});
    case ElementType::f16:
      return visit(std::type_identity<half_t>{});
    case ElementType::bf16:
      return visit(std::type_identity<bhalf_t>{});
    case ElementType::other:
      break;
  }
  throw std::invalid_argument(std::string("KokkosNN::Perf: no element type ") + KokkosNN::to_string(type));
}

/// Tolerance for a benchmark's results: it catches a wrong kernel; the tests judge accuracy.
struct Tolerance {
  double relative;  ///< share of the expected value
  double absolute;
};

constexpr Tolerance tolerance(ElementType type) {
  switch (type) {
    case ElementType::f64:
      return {1e-12, 1e-300};
    case ElementType::f32:
      return {2e-5, 1e-30};
    case ElementType::f16:
      return {4e-3, 1e-6};  // a wide row's probabilities are subnormal
    case ElementType::bf16:
      return {2e-2, 1e-30};
    case ElementType::other:
      break;
  }
  return {0, 0};
}

/// x and y of a case in device memory; in a gradient x is the forward call's result, of a norm its input, y is dx, and
/// there is dy. In a
/// cross entropy there are labels; one with its gradient finds the logits in y and leaves the gradient there. The
/// element types are known to the providers only: each instantiates what it needs.
class Problem {
 public:
  /// Allocates, and fills the inputs with reproducible values: in [-4, 4); y of a gradient with what softmax and
  /// log-softmax give.
  Problem(const Exec& exec, const Case& shape);

  const Exec& exec() const { return m_exec; }
  const Case& shape() const { return m_case; }

  /// Allocates and fills the labels, and allocates the loss. Public as it holds a device lambda.
  void fill_labels();

  template <class T, class ViewLayout = Kokkos::LayoutRight>
  auto x() const {
    return matrix<T, ViewLayout>(m_x);
  }
  template <class T, class ViewLayout = Kokkos::LayoutRight>
  auto y() const {
    return matrix<T, ViewLayout>(m_y);
  }
  /// x or y as (heads, queries, keys).
  template <class View>
  auto by_head(const View& matrix) const {
    using Heads = Kokkos::View<typename View::value_type***, Kokkos::LayoutRight, Exec, Kokkos::MemoryUnmanaged>;
    return Heads(matrix.data(), m_case.heads(), m_case.cols, m_case.cols);
  }
  /// A length a head: one to four quarters of the keys.
  auto lengths() const {
    return Kokkos::View<const std::int32_t*, Exec, Kokkos::MemoryUnmanaged>(
        reinterpret_cast<const std::int32_t*>(m_mask.data()), m_case.heads());
  }
  /// A bias for each query and key, the same for all heads.
  auto bias() const {
    return Kokkos::View<const float**, Kokkos::LayoutRight, Exec, Kokkos::MemoryUnmanaged>(
        reinterpret_cast<const float*>(m_mask.data()), m_case.cols, m_case.cols);
  }
  template <class T, class ViewLayout = Kokkos::LayoutRight>
  auto dy() const {
    return matrix<T, ViewLayout>(m_dy);
  }
  /// Ragged rows: the elements of all, as one vector, and where rows begin.
  template <class T>
  auto x_values() const {
    return vector<T>(m_x, m_case.x_elements());
  }
  template <class T>
  auto dy_values() const {
    return vector<T>(m_dy, m_case.dy_elements());
  }
  template <class T>
  auto y_values() const {
    return vector<T>(m_y, m_case.y_elements());
  }
  Kokkos::View<const std::int32_t*, Exec> offsets() const { return m_offsets; }

  /// y of an operator that gives one value a row.
  template <class T>
  auto y_vector() const {
    return vector<T>(m_y, m_case.rows);
  }

  /// Input or output number i of an elementwise operator.
  template <class T>
  auto input(int i) const {
    return numbered<const T>(m_x, i);
  }
  template <class T>
  auto output(int i) const {
    return numbered<T>(m_y, i);
  }

  auto labels() const { return m_labels; }
  auto loss() const { return m_loss; }

  /// Overwrites y with NaN, or with the logits where it is an input too: a kernel that writes nothing must not inherit
  /// the result of the one before.
  void poison_y() const;

  /// Compares a few rows of y with the plain formula in long double.
  ///
  /// \param slack  factor of the tolerance, for providers that round between passes
  /// \return nothing where they agree, else what differs
  std::string check(double slack) const;

 private:
  /// The check of an elementwise operator.
  std::string check_elementwise(double slack) const;

  /// A row's x under its mask: -inf where it is masked.
  std::vector<double> masked(std::vector<double> x, std::int64_t row) const;

  template <class T>
  static auto vector(const Bytes& bytes, std::int64_t elements) {
    return Kokkos::View<T*, Exec, Kokkos::MemoryUnmanaged>(reinterpret_cast<T*>(bytes.data()), elements);
  }
  template <class T>
  auto numbered(const Bytes& bytes, int i) const {
    T* const first = reinterpret_cast<T*>(bytes.data()) + i * m_case.rows * m_case.cols;
    return Kokkos::View<T**, Kokkos::LayoutRight, Exec, Kokkos::MemoryUnmanaged>(first, m_case.rows, m_case.cols);
  }
  template <class T, class ViewLayout>
  auto matrix(const Bytes& bytes) const {
    return Kokkos::View<T**, ViewLayout, Exec, Kokkos::MemoryUnmanaged>(reinterpret_cast<T*>(bytes.data()), m_case.rows,
                                                                        m_case.cols);
  }

  Exec m_exec;
  Case m_case;
  Bytes m_x;
  Bytes m_dy;
  Bytes m_y;
  Bytes m_mask;
  Kokkos::View<std::int32_t*, Exec> m_offsets;
  Kokkos::View<std::int32_t*, Exec> m_labels;
  Kokkos::View<float, Exec> m_loss;
};

}  // namespace KokkosNN::Perf

#endif  // KOKKOSNN_PERF_PROBLEM_HPP
