// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_QUANTIZED_CALL_HPP
#define KOKKOSNN_IMPL_CALL_QUANTIZED_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/float8.hpp>
#include <KokkosNN/impl/call/checks.hpp>
#include <KokkosNN/impl/call/compiled_quantized_calls.hpp>
#include <KokkosNN/impl/call/layout.hpp>
#include <KokkosNN/impl/call/optional_view.hpp>
#include <KokkosNN/instantiations/quantized.hpp>

#include <Kokkos_Core.hpp>
#include <Kokkos_Profiling_ScopedRegion.hpp>

#include <cstdint>
#include <string>
#include <type_traits>

// The body of a call whose results are quantised: check what the compiler can see, normalise, launch.

namespace KokkosNN::Impl {

/// Name of the public function.
template <RowOperator op>
inline constexpr const char* quantized_name = op == RowOperator::softmax    ? "quantized_softmax"
                                              : op == RowOperator::rms_norm ? "quantized_rms_norm"
                                                                            : "quantized_layer_norm";

template <class Exec, class XView, class YView>
constexpr void check_quantized_rows() {
  using Y = typename YView::non_const_value_type;
  static_assert(XView::rank() >= 1, "KokkosNN::quantized_*: x must have rank 1 to 8");
  static_assert(XView::rank() == YView::rank(), "KokkosNN::quantized_*: x and y must have the same rank");
  static_assert(hold_elements<XView>, "KokkosNN::quantized_*: x must hold double, float, half_t or bhalf_t");
  static_assert(std::is_same_v<Y, std::int8_t> || std::is_same_v<Y, float8_e4m3>,
                "KokkosNN::quantized_*: y must hold std::int8_t or float8_e4m3");
  static_assert(is_writable<YView>, "KokkosNN::quantized_*: y must not be const");
  static_assert(can_access<Exec, XView, YView>,
                "KokkosNN::quantized_*: the execution space must be able to access the memory of x and y");
}

template <class Exec, class XView, class YView, class ScalesView>
constexpr void check_quantized_scales() {
  if constexpr (is_given<ScalesView>) {
    static_assert(std::is_same_v<typename ScalesView::value_type, float>,
                  "KokkosNN::quantized_*: scales must hold float and not be const");
    static_assert(ScalesView::rank() < XView::rank(),
                  "KokkosNN::quantized_*: scales must have x's axes without those that are reduced");
    static_assert(can_access<Exec, ScalesView>,
                  "KokkosNN::quantized_*: the execution space must be able to access the memory of scales");
  } else {
    static_assert(std::is_same_v<typename YView::non_const_value_type, float8_e4m3>,
                  "KokkosNN::quantized_*: int8 needs a View of scales");
  }
}

template <class Exec, class XView, class ColumnView>
constexpr void check_quantized_column() {
  if constexpr (is_given<ColumnView>) {
    using X = typename XView::non_const_value_type;
    using E = typename ColumnView::non_const_value_type;
    static_assert(ColumnView::rank() == 1, "KokkosNN::quantized_*: weight and bias must have rank 1");
    static_assert(std::is_same_v<E, X> || std::is_same_v<E, accumulator_t<X>>,
                  "KokkosNN::quantized_*: weight and bias must hold x's type, or float if that has 16 bits");
    static_assert(can_access<Exec, ColumnView>,
                  "KokkosNN::quantized_*: the execution space must be able to access the memory of weight and bias");
  }
}

/// Checks and enqueues a call on erased Views.
template <class Call, class Exec, class Options>
void quantize_erased(const char* function, const Exec& exec, const Tensors& tensors, bool is_float8,
                     const Options& options) {
  const Kokkos::Profiling::ScopedRegion region(std::string("KokkosNN::") + function);
  const RowsLayout layout = normalise_quantized(function, tensors, options);
  if (layout.rows == 0 || layout.cols == 0) return;
  Call::run(exec, {function, layout, tensors, options, is_float8});
}

/// The body of a public function; Views of columns last.
template <RowOperator op, class Exec, class XView, class YView, class ScalesView, class... ColumnViews>
void quantized_call(const Exec& exec, const typename OptionsOf<op>::type& options, const XView& x, const YView& y,
                    const ScalesView& scales, const ColumnViews&... columns) {
  check_quantized_rows<Exec, XView, YView>();
  check_quantized_scales<Exec, XView, YView, ScalesView>();
  (check_quantized_column<Exec, XView, ColumnViews>(), ...);
  using Call = QuantizedCall<Exec, op, typename XView::non_const_value_type>;
  require_kernels<Call>();
  Tensors tensors;
  tensors[QuantizedTensors::x]      = tensor_of(x);
  tensors[QuantizedTensors::y]      = tensor_of(y);
  tensors[QuantizedTensors::scales] = tensor_of(scales);
  int next                          = QuantizedTensors::columns;
  ((tensors[next++] = tensor_of(columns)), ...);
  constexpr bool is_float8 = std::is_same_v<typename YView::non_const_value_type, float8_e4m3>;
  quantize_erased<Call>(quantized_name<op>, exec, tensors, is_float8, options);
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_QUANTIZED_CALL_HPP
