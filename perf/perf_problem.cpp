// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "problem.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <limits>
#include <set>
#include <sstream>
#include <vector>

namespace KokkosNN::Perf {
namespace {

/// A value in [-4, 4).
KOKKOS_INLINE_FUNCTION float scattered(std::uint64_t place) {
  return static_cast<float>(noise(place) >> 40) * 0x1p-21f - 4.0f;
}

template <class T>
void fill_scattered(const Exec& exec, T* data, std::int64_t count, std::int64_t from = 0) {
  Kokkos::parallel_for(
      "KokkosNN::Perf::fill", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, count),
      KOKKOS_LAMBDA(const std::int64_t i) {
        data[i] = static_cast<T>(scattered(static_cast<std::uint64_t>(from + i)));
      });
}

/// Values as a softmax of `cols` columns gives them, all of one size, or their logarithms.
template <class T>
void fill_probabilities(const Exec& exec, T* data, std::int64_t count, std::int64_t cols, bool logarithms) {
  const float mean = 1.0f / static_cast<float>(cols);
  Kokkos::parallel_for(
      "KokkosNN::Perf::fill", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, count),
      KOKKOS_LAMBDA(const std::int64_t i) {
        const float value = mean * (1.0f + 0.125f * scattered(static_cast<std::uint64_t>(i)));
        data[i]           = static_cast<T>(logarithms ? Kokkos::log(value) : value);
      });
}

void fill_offsets(const Exec& exec, const Kokkos::View<std::int32_t*, Exec>& offsets, const Case& shape) {
  const Layout layout     = shape.layout;
  const std::int64_t rows = shape.rows, cols = shape.cols;
  Kokkos::parallel_for(
      "KokkosNN::Perf::offsets",
      Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, static_cast<std::int64_t>(offsets.extent(0))),
      KOKKOS_LAMBDA(const std::int64_t row) {
        offsets(row) = static_cast<std::int32_t>(row_begin(layout, rows, cols, row));
      });
}

template <class T>
void fill_nan(const Exec& exec, T* data, std::int64_t count) {
  const T nan = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  Kokkos::parallel_for(
      "KokkosNN::Perf::poison", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, count),
      KOKKOS_LAMBDA(const std::int64_t i) { data[i] = nan; });
}

/// `count` elements, `stride` apart, on the host.
template <class T>
std::vector<double> gathered(const Exec& exec, const T* data, std::int64_t count, std::int64_t stride) {
  Kokkos::View<double*, Exec> picked(Kokkos::view_alloc(Kokkos::WithoutInitializing, exec, "KokkosNN::Perf::gather"),
                                     count);
  Kokkos::parallel_for(
      "KokkosNN::Perf::gather", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, count),
      KOKKOS_LAMBDA(const std::int64_t i) { picked(i) = static_cast<double>(static_cast<T>(data[i * stride])); });
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace{}, picked);
  return {host.data(), host.data() + count};
}

std::int64_t mask_bytes(const Case& shape) {
  switch (shape.mask) {
    case MaskKind::lengths:
      return shape.heads() * static_cast<std::int64_t>(sizeof(std::int32_t));
    case MaskKind::bias:
      return shape.cols * shape.cols * static_cast<std::int64_t>(sizeof(float));
    case MaskKind::none:
    case MaskKind::causal:
      break;
  }
  return 0;
}

KOKKOS_INLINE_FUNCTION std::int64_t length_of(std::int64_t head, std::int64_t cols) {
  return cols * (1 + head % 4) / 4;
}

void fill_lengths(const Exec& exec, std::int32_t* data, const Case& shape) {
  const std::int64_t cols = shape.cols;
  Kokkos::parallel_for(
      "KokkosNN::Perf::fill", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(exec, 0, shape.heads()),
      KOKKOS_LAMBDA(const std::int64_t h) { data[h] = static_cast<std::int32_t>(length_of(h, cols)); });
}

std::vector<double> gathered(const Exec& exec, const Bytes& bytes, ElementType type, std::int64_t first,
                             std::int64_t count, std::int64_t stride) {
  std::vector<double> result;
  with_type(type, [&]<class T>(std::type_identity<T>) {
    result = gathered(exec, reinterpret_cast<const T*>(bytes.data()) + first, count, stride);
  });
  return result;
}

/// The formula, as it stands in a textbook; the sum is wider than any type that is checked.
std::vector<double> reference(RowOperator op, const std::vector<double>& x) {
  const double max = *std::ranges::max_element(x);
  std::vector<double> y;
  y.reserve(x.size());
  long double sum = 0;
  for (const double value : x) sum += y.emplace_back(std::exp(value - max));
  const double log_sum = static_cast<double>(std::log(sum));
  if (op == RowOperator::logsumexp) return {max + log_sum};
  for (std::size_t col = 0; col < x.size(); ++col)
    y[col] = op == RowOperator::softmax || op == RowOperator::masked_softmax ? static_cast<double>(y[col] / sum)
                                                                             : x[col] - max - log_sum;
  return y;
}

/// The gradients' formula, as in a textbook. Errors are measured against `size`: dy - sum cancels.
struct Gradient {
  double dx;
  double size;
};

std::vector<Gradient> reference_gradient(RowOperator op, const std::vector<double>& y, const std::vector<double>& dy) {
  const bool is_log = op == RowOperator::log_softmax_backward;
  long double sum   = 0;
  double sizes      = 0;
  for (std::size_t col = 0; col < y.size(); ++col) {
    const double term = is_log ? dy[col] : y[col] * dy[col];
    sum += term;
    sizes += std::abs(term);
  }
  std::vector<Gradient> result;
  for (std::size_t col = 0; col < y.size(); ++col) {
    const double factor = is_log ? 1 : y[col];
    const double share  = is_log ? std::exp(y[col]) : 1;
    result.push_back(
        {factor * (dy[col] - share * static_cast<double>(sum)), factor * (std::abs(dy[col]) + share * sizes)});
  }
  return result;
}

/// A norm's row, or its gradient by x with dy.
std::vector<Gradient> reference_norm(RowOperator op, const std::vector<double>& x, const std::vector<double>& dy) {
  const bool has_mean  = op == RowOperator::layer_norm || op == RowOperator::layer_norm_backward;
  const double epsilon = has_mean ? LayerNormOptions{}.epsilon : RmsNormOptions{}.epsilon;
  const double n       = static_cast<double>(x.size());
  double mean = 0, squares = 0, sum = 0, products = 0;
  for (const double value : x) mean += has_mean ? value / n : 0;
  for (const double value : x) squares += (value - mean) * (value - mean) / n;
  const double rstd = 1 / std::sqrt(squares + epsilon);
  const auto h      = [&](std::size_t col) { return (x[col] - mean) * rstd; };
  const auto g      = [&](std::size_t col) { return dy[col] * norm_weight(static_cast<std::int64_t>(col)); };
  for (std::size_t col = 0; col < dy.size(); ++col) {
    sum += has_mean ? g(col) / n : 0;
    products += g(col) * h(col) / n;
  }
  std::vector<Gradient> result;
  for (std::size_t col = 0; col < x.size(); ++col) {
    const auto column = static_cast<std::int64_t>(col);
    const double bias = has_mean ? norm_bias(column) : 0;
    const double value =
        is_gradient(op) ? rstd * (g(col) - sum - h(col) * products) : h(col) * norm_weight(column) + bias;
    const double size = is_gradient(op) ? rstd * (std::abs(g(col)) + std::abs(h(col)) + 1) : std::abs(h(col)) + 1;
    result.push_back({value, size});
  }
  return result;
}

/// The class of a row, scattered over all of them.
KOKKOS_INLINE_FUNCTION std::int64_t label_of(std::int64_t row, std::int64_t cols) { return row * 7919 % cols; }

/// A row's loss, or its part of the gradient of the mean of so many rows' losses.
std::vector<Gradient> reference_cross_entropy(RowOperator op, const std::vector<double>& x, std::int64_t label,
                                              std::int64_t rows) {
  if (op == RowOperator::cross_entropy) {
    const double lse = reference(RowOperator::logsumexp, x)[0];
    return {{lse - x[label], std::abs(lse) + std::abs(x[label])}};
  }
  const double share = 1.0 / static_cast<double>(rows);
  std::vector<Gradient> result;
  for (const double p : reference(RowOperator::softmax, x)) result.push_back({share * p, share * p});
  result[label].dx -= share;
  result[label].size += share;
  return result;
}

/// Output o of an elementwise operator, as its formula stands in a textbook, and the size of its terms.
Gradient reference_elementwise(Elementwise op, int o, const std::vector<double>& in) {
  const double x = in[0], logistic = 1 / (1 + std::exp(-x));
  const auto plain = [](double value) { return Gradient{value, std::abs(value)}; };
  switch (op) {
    case Elementwise::none:
    case Elementwise::cast:
      return plain(x);
    case Elementwise::add:
      return {x + in[1], std::abs(x) + std::abs(in[1])};
    case Elementwise::silu:
      return plain(x * logistic);
    case Elementwise::gelu:
      return plain(x * std::erfc(-x / std::sqrt(2.0)) / 2);
    case Elementwise::swiglu:
      return plain(x * logistic * in[1]);
    case Elementwise::swiglu_backward: {
      if (o == 1) return plain(in[2] * x * logistic);
      const double slope = x * logistic * (1 - logistic);
      return {in[2] * in[1] * (logistic + slope), std::abs(in[2] * in[1]) * (logistic + std::abs(slope))};
    }
    case Elementwise::fused:
      return {x * in[1] + x, std::abs(x * in[1]) + std::abs(x)};
  }
  return {};
}

/// A position's heads, rotated.
std::vector<Gradient> reference_rope(RopeKind kind, const std::vector<double>& x, std::int64_t position) {
  const std::size_t dim = x.size() / rope_heads, pairs = dim / 2;
  std::vector<Gradient> result(x.size());
  for (std::size_t i = 0; i < x.size() / 2; ++i) {
    const std::size_t pair = i % pairs, head = i / pairs * dim;
    const bool is_halved = kind != RopeKind::interleaved;
    const std::size_t a = head + (is_halved ? pair : 2 * pair), b = a + (is_halved ? pairs : 1);
    const double angle = static_cast<double>(position) *
                         std::pow(RopeOptions().theta, -static_cast<double>(pair) / static_cast<double>(pairs));
    const double cos = std::cos(angle), sin = std::sin(angle), size = std::abs(x[a]) + std::abs(x[b]);
    result[a] = {x[a] * cos - x[b] * sin, size};
    result[b] = {x[b] * cos + x[a] * sin, size};
  }
  return result;
}

bool agrees(double got, const Gradient& want, const Tolerance& tolerance, double slack) {
  return std::abs(got - want.dx) <= slack * (tolerance.relative * want.size + tolerance.absolute);
}

bool agrees(double got, double want, const Tolerance& tolerance, double slack) {
  return agrees(got, Gradient{want, std::abs(want)}, tolerance, slack);
}

double value_of(double want) { return want; }
double value_of(const Gradient& want) { return want.dx; }

/// Nothing where the row agrees, else the first column that differs.
template <class Want>
std::string difference(std::int64_t row, const std::vector<double>& got, const std::vector<Want>& want,
                       const Tolerance& tolerance, double slack) {
  for (std::size_t col = 0; col < want.size(); ++col) {
    if (agrees(got[col], want[col], tolerance, slack)) continue;
    std::ostringstream text;
    text << "row " << row << ", column " << col << ": " << got[col] << ", expected " << value_of(want[col]);
    return text.str();
  }
  return {};
}

}  // namespace

void fill_with_noise(const Exec& exec, const Bytes& bytes) {
  Kokkos::parallel_for(
      "KokkosNN::Perf::noise", Kokkos::RangePolicy<Exec>(exec, 0, bytes.extent(0)),
      KOKKOS_LAMBDA(const std::size_t i) { bytes(i) = static_cast<std::byte>(noise(i) >> 56); });
}

Problem::Problem(const Exec& exec, const Case& shape)
    : m_exec(exec),
      m_case(shape),
      m_x(allocate(exec, "KokkosNN::Perf::x", shape.x_elements() * size_of(shape.x_type))),
      m_dy(allocate(exec, "KokkosNN::Perf::dy", shape.dy_elements() * size_of(shape.x_type))),
      m_y(allocate(exec, "KokkosNN::Perf::y", shape.y_elements() * size_of(shape.y_type))),
      m_mask(allocate(exec, "KokkosNN::Perf::mask", mask_bytes(shape))),
      m_offsets(Kokkos::view_alloc(Kokkos::WithoutInitializing, exec, "KokkosNN::Perf::offsets"), shape.offsets()) {
  fill_offsets(exec, m_offsets, shape);
  if (shape.mask == MaskKind::lengths) fill_lengths(m_exec, reinterpret_cast<std::int32_t*>(m_mask.data()), shape);
  if (shape.mask == MaskKind::bias) {
    fill_scattered(m_exec, reinterpret_cast<float*>(m_mask.data()), shape.cols * shape.cols, shape.x_elements());
  }
  with_type(shape.x_type, [&]<class T>(std::type_identity<T>) {
    auto* const x = reinterpret_cast<T*>(m_x.data());
    if (is_cross_entropy(shape.op)) fill_labels();
    const bool is_result = is_gradient(shape.op) && !is_norm(shape.op);
    if (!is_result) fill_scattered(m_exec, x, shape.x_elements());
    if (!is_gradient(shape.op)) return;
    const bool is_log = shape.op == RowOperator::log_softmax_backward;
    if (is_result) fill_probabilities(m_exec, x, shape.x_elements(), shape.cols, is_log);
    fill_scattered(m_exec, reinterpret_cast<T*>(m_dy.data()), shape.dy_elements(), shape.x_elements());
  });
}

void Problem::fill_labels() {
  m_labels = Kokkos::View<std::int32_t*, Exec>(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, m_exec, "KokkosNN::Perf::labels"), m_case.rows);
  m_loss                  = Kokkos::View<float, Exec>(Kokkos::view_alloc(m_exec, "KokkosNN::Perf::loss"));
  const auto labels       = m_labels;
  const std::int64_t cols = m_case.cols;
  Kokkos::parallel_for(
      "KokkosNN::Perf::fill", Kokkos::RangePolicy<Exec, Kokkos::IndexType<std::int64_t>>(m_exec, 0, m_case.rows),
      KOKKOS_LAMBDA(const std::int64_t row) { labels(row) = static_cast<std::int32_t>(label_of(row, cols)); });
}

void Problem::poison_y() const {
  if (m_case.op == RowOperator::cross_entropy_with_gradient) return Kokkos::deep_copy(m_exec, m_y, m_x);
  with_type(m_case.y_type, [&]<class T>(std::type_identity<T>) {
    fill_nan(m_exec, reinterpret_cast<T*>(m_y.data()), m_case.y_elements());
  });
}

std::vector<double> Problem::masked(std::vector<double> x, std::int64_t row) const {
  if (m_case.mask == MaskKind::none) return x;
  const std::int64_t query = row % m_case.cols;
  const std::int64_t end   = m_case.mask == MaskKind::causal    ? query + 1
                             : m_case.mask == MaskKind::lengths ? length_of(row / m_case.cols, m_case.cols)
                                                                : m_case.cols;
  for (double& value : x) value *= mask_scale;
  std::fill(x.begin() + end, x.end(), -std::numeric_limits<double>::infinity());
  if (m_case.mask == MaskKind::bias) {
    const auto bias = gathered(m_exec, m_mask, ElementType::f32, query * m_case.cols, m_case.cols, 1);
    std::transform(x.begin(), x.end(), bias.begin(), x.begin(), std::plus<>());
  }
  return x;
}

std::string Problem::check_elementwise(double slack) const {
  const auto [name, inputs, outputs] = traits_of(m_case.elementwise);
  const std::int64_t size            = m_case.rows * m_case.cols;
  for (const std::int64_t row : std::set<std::int64_t>{0, m_case.rows / 2, m_case.rows - 1}) {
    std::vector<std::vector<double>> in;
    for (int i = 0; i < inputs; ++i)
      in.push_back(gathered(m_exec, m_x, m_case.x_type, i * size + row * m_case.cols, m_case.cols, 1));
    for (int o = 0; o < outputs; ++o) {
      const auto got = gathered(m_exec, m_y, m_case.y_type, o * size + row * m_case.cols, m_case.cols, 1);
      std::vector<Gradient> want;
      for (std::size_t c = 0; c < got.size(); ++c) {
        std::vector<double> at;
        for (const auto& values : in) at.push_back(values[c]);
        want.push_back(reference_elementwise(m_case.elementwise, o, at));
      }
      const std::string text = difference(row, got, want, tolerance(m_case.y_type), slack);
      if (!text.empty()) return std::string(name) + ", output " + std::to_string(o) + ", " + text;
    }
  }
  return {};
}

std::string Problem::check(double slack) const {
  if (m_case.elementwise != Elementwise::none) return check_elementwise(slack);
  const bool one_value_a_row    = is_reduction(m_case.op);
  const bool right              = m_case.layout != Layout::left;
  const std::int64_t col_stride = right ? 1 : m_case.rows;
  const std::int64_t row_stride = right ? m_case.cols : 1;
  for (const std::int64_t row : std::set<std::int64_t>{0, m_case.rows / 2, m_case.rows - 1}) {
    std::int64_t first = row * row_stride;
    std::int64_t cols  = m_case.cols;
    if (is_ragged(m_case.layout)) {
      first = row_begin(m_case.layout, m_case.rows, m_case.cols, row);
      cols  = row_begin(m_case.layout, m_case.rows, m_case.cols, row + 1) - first;
      if (cols == 0) continue;
    }
    const auto x       = gathered(m_exec, m_x, m_case.x_type, first, cols, col_stride);
    const auto got     = one_value_a_row ? gathered(m_exec, m_y, m_case.y_type, row, 1, 1)
                                         : gathered(m_exec, m_y, m_case.y_type, first, cols, col_stride);
    const auto differs = [&](const auto& want) { return difference(row, got, want, tolerance(m_case.y_type), slack); };
    std::string text;
    if (m_case.rope != RopeKind::none) {
      text = differs(reference_rope(m_case.rope, x, row));
    } else if (is_norm(m_case.op)) {
      const auto dy = gathered(m_exec, m_dy, m_case.x_type, first, is_gradient(m_case.op) ? cols : 0, col_stride);
      text          = differs(reference_norm(m_case.op, x, dy));
    } else if (is_gradient(m_case.op)) {
      const auto dy = gathered(m_exec, m_dy, m_case.x_type, first, cols, col_stride);
      text          = differs(reference_gradient(m_case.op, x, dy));
    } else if (is_cross_entropy(m_case.op)) {
      text = differs(reference_cross_entropy(m_case.op, x, label_of(row, m_case.cols), m_case.rows));
    } else {
      text = differs(reference(m_case.op, masked(x, row)));
    }
    if (!text.empty()) return text;
  }
  return {};
}

}  // namespace KokkosNN::Perf
