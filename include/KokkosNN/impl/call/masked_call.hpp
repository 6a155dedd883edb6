// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_IMPL_CALL_MASKED_CALL_HPP
#define KOKKOSNN_IMPL_CALL_MASKED_CALL_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/call.hpp>
#include <KokkosNN/impl/call/gradient_call.hpp>
#include <KokkosNN/impl/call/mask_layout.hpp>
#include <KokkosNN/instantiations/masked.hpp>
#include <KokkosNN/instantiations/masked_gradients.hpp>
#include <KokkosNN/impl/traits.hpp>
#include <KokkosNN/mask.hpp>
#include <KokkosNN/options.hpp>
#include <KokkosNN/plan.hpp>

#include <Kokkos_Core.hpp>

#include <concepts>
#include <cstdint>
#include <tuple>
#include <type_traits>

// The body of a masked call: check what the compiler can see, erase the mask, normalise, plan, launch.

namespace KokkosNN::Impl {

/// f(part) for each single mask.
template <Concepts::Mask M, class F>
void for_parts(const M& mask, const F& f) {
  if constexpr (is_single_mask<M>) {
    f(mask);
  } else {
    std::apply([&](const auto&... parts) { (f(parts), ...); }, mask.parts);
  }
}

/// How many of a mask's parts are of each kind, and whether each can be used by `Exec` beside x of type X.
template <class Exec, class XView>
struct MaskChecks {
  template <class V>
  static constexpr bool is_accessible = Kokkos::SpaceAccessibility<Exec, typename V::memory_space>::accessible;
  /// A bias' or a slope's type.
  template <class V>
  static constexpr bool is_addable =
      std::same_as<typename V::non_const_value_type, float> ||
      std::same_as<typename V::non_const_value_type, typename XView::non_const_value_type>;

  template <class V>
  static constexpr void check(const BooleanMask<V>*) {
    static_assert(std::integral<typename V::value_type> && sizeof(typename V::value_type) == 1,
                  "KokkosNN::BooleanMask: the View must hold bool or integers of one byte");
    static_assert(V::rank() <= XView::rank(), "KokkosNN::BooleanMask: the View must not have more axes than x");
    static_assert(is_accessible<V>, "KokkosNN::BooleanMask: the execution space must be able to access its memory");
  }
  template <class V>
  static constexpr void check(const AdditiveBias<V>*) {
    static_assert(is_addable<V>, "KokkosNN::AdditiveBias: the View must hold x's type or float");
    static_assert(V::rank() <= XView::rank(), "KokkosNN::AdditiveBias: the View must not have more axes than x");
    static_assert(is_accessible<V>, "KokkosNN::AdditiveBias: the execution space must be able to access its memory");
  }
  template <class V>
  static constexpr void check(const RowLengths<V>*) {
    using Length = typename V::non_const_value_type;
    static_assert(std::integral<Length> && std::is_signed_v<Length> && (sizeof(Length) == 4 || sizeof(Length) == 8),
                  "KokkosNN::RowLengths: the View must hold signed integers of 32 or 64 bits");
    static_assert(V::rank() >= 1 && V::rank() < XView::rank(),
                  "KokkosNN::RowLengths: the View must have rank 1 or up to one axis less than x");
    static_assert(is_accessible<V>, "KokkosNN::RowLengths: the execution space must be able to access its memory");
  }
  template <class V>
  static constexpr void check(const Alibi<V>*) {
    static_assert(is_addable<V>, "KokkosNN::Alibi: slopes must hold x's type or float");
    static_assert(V::rank() == 1, "KokkosNN::Alibi: slopes must have rank 1, a slope a head");
    static_assert(is_accessible<V>, "KokkosNN::Alibi: the execution space must be able to access its memory");
  }
  static constexpr void check(const CausalMask*) {}
  static constexpr void check(const SlidingWindow*) {}

  template <template <class> class Kind, class... Parts>
  static constexpr int count = (0 + ... + int(is_mask_of<Parts, Kind>));

  template <class... Parts>
  static constexpr void check(const Masks<Parts...>*) {
    static_assert(count<BooleanMask, Parts...> <= 1 && count<AdditiveBias, Parts...> <= 1 &&
                      count<RowLengths, Parts...> <= 1 && count<Alibi, Parts...> <= 1 &&
                      (0 + ... + int(std::is_same_v<Parts, CausalMask>)) <= 1 &&
                      (0 + ... + int(std::is_same_v<Parts, SlidingWindow>)) <= 1,
                  "KokkosNN::masks: at most one mask of each kind can be joined");
    (check(static_cast<const Parts*>(nullptr)), ...);
  }
};

/// What the compiler can see of a call.
template <class Exec, class XView, class M, class YView>
constexpr void check_masked() {
  static_assert(XView::rank() >= 2, "KokkosNN::masked_softmax: x must have rank 2 to 8: (..., head, query, key)");
  static_assert(XView::rank() == YView::rank(), "KokkosNN::masked_softmax: x and y must have the same rank");
  static_assert(Concepts::Element<typename XView::non_const_value_type> &&
                    Concepts::Element<typename YView::non_const_value_type>,
                "KokkosNN::masked_softmax: x and y must hold double, float, half_t or bhalf_t");
  static_assert(!std::is_const_v<typename YView::value_type>, "KokkosNN::masked_softmax: y must not be const");
  static_assert(Kokkos::SpaceAccessibility<Exec, typename XView::memory_space>::accessible &&
                    Kokkos::SpaceAccessibility<Exec, typename YView::memory_space>::accessible,
                "KokkosNN::masked_softmax: the execution space must be able to access the memory of x and of y");
  MaskChecks<Exec, XView>::check(static_cast<const M*>(nullptr));
}

template <Concepts::View V>
MaskTensor mask_tensor(const V& view) {
  return {tensor_of(view), true, element_type<typename V::value_type>()};
}

inline void erase(MaskTensors& all, const CausalMask& mask) {
  all.is_causal     = true;
  all.causal_offset = mask.offset;
}
inline void erase(MaskTensors& all, const SlidingWindow& mask) {
  all.has_window    = true;
  all.left          = mask.left;
  all.right         = mask.right;
  all.window_offset = mask.offset;
}
template <class V>
void erase(MaskTensors& all, const BooleanMask<V>& mask) {
  all.keep = mask_tensor(mask.view);
}
template <class V>
void erase(MaskTensors& all, const AdditiveBias<V>& mask) {
  all.bias = mask_tensor(mask.view);
}
template <class V>
void erase(MaskTensors& all, const RowLengths<V>& mask) {
  all.lengths = mask_tensor(mask.view);
}
template <class V>
void erase(MaskTensors& all, const Alibi<V>& mask) {
  all.slopes       = mask_tensor(mask.slopes);
  all.alibi_offset = mask.offset;
}

inline void erase(MaskTensors& all, const Sinks& sinks) {
  if (!sinks.exist()) return;
  all.sinks               = {{}, true, sinks.type()};
  all.sinks.data          = sinks.data();
  all.sinks.element_bytes = sinks.element_bytes();
  all.sinks.rank          = 1;
  all.sinks.extent[0]     = sinks.extent();
  all.sinks.stride[0]     = sinks.stride();
}

template <Concepts::Mask M>
MaskTensors erased(const M& mask, const MaskedSoftmaxOptions& options) {
  MaskTensors all;
  for_parts(mask, [&](const auto& part) { erase(all, part); });
  erase(all, options.sinks);
  all.softcap = options.softcap;
  return all;
}

/// A masked call, checked and described, without the data.
template <class Exec, class XView, class YView>
class PreparedMask {
  using X = typename XView::non_const_value_type;
  using Y = typename YView::non_const_value_type;

 public:
  template <Concepts::Mask M>
  PreparedMask(const char* function, const XView& x, const M& mask, const YView& y, const MaskedSoftmaxOptions& options)
      : m_mask(erased(mask, options)),
        m_options{-1, options.scale, options.masked_row, options.determinism, options.plan} {
    if (options.sinks.exist()) {
      require_sinks(function, options.sinks.template accessible_from<Exec>(), options.sinks.type(), element_type<X>());
    }
    m_rows = normalise_masked(function, tensor_of(x), tensor_of(y), m_mask, m_options, m_layout);
  }

  const RowLayout& rows() const { return m_rows; }
  bool is_empty() const { return m_rows.rows == 0 || m_rows.cols == 0; }

  RowPlan plan(const Exec& exec) const {
    RowProblem problem = problem_of<X, Y>(RowOperator::masked_softmax, m_rows);
    if (m_mask.has_element_mask()) problem.x_bytes = masked_x_bytes<X, Y, true>();
    return make_plan(problem, device_traits(exec), m_options);
  }

  void run(const Exec& exec, const RowPlan& plan, const X* x, Y* y, WorkspaceView<Exec>* workspace) const {
    m_mask.has_element_mask() ? run<true>(exec, plan, x, y, workspace) : run<false>(exec, plan, x, y, workspace);
  }

  void reserve_workspace(const Exec& exec, const RowPlan& plan, WorkspaceView<Exec>& workspace) const {
    using Params = typename MaskedCall<Exec, X, Y, false>::Params;  // the same with single elements
    reserve_split_workspace<Params>(exec, plan, workspace);
  }

 private:
  template <bool has_element_mask>
  void run(const Exec& exec, const RowPlan& plan, const X* x, Y* y, WorkspaceView<Exec>* workspace) const {
    MaskedCall<Exec, X, Y, has_element_mask>::run(exec, {plan, m_rows, m_layout, m_mask, m_options, x, y}, workspace);
  }

  MaskTensors m_mask;
  SoftmaxOptions m_options;
  MaskLayout m_layout;
  RowLayout m_rows;
};

/// The same for the gradient with respect to x.
template <class Exec, class XView, class YView, class DyView, class M, class DxView>
constexpr void check_masked_gradient() {
  static_assert(YView::rank() >= 2 && XView::rank() == YView::rank() && DyView::rank() == YView::rank() &&
                    DxView::rank() == YView::rank(),
                "KokkosNN::masked_softmax_backward: x, y, dy and dx must have the same rank, 2 to 8");
  static_assert(std::same_as<typename XView::non_const_value_type, typename YView::non_const_value_type>,
                "KokkosNN::masked_softmax_backward: x and y must hold the same type");
  static_assert(Concepts::Element<typename YView::non_const_value_type> &&
                    Concepts::Element<typename DyView::non_const_value_type> &&
                    Concepts::Element<typename DxView::non_const_value_type>,
                "KokkosNN::masked_softmax_backward: all Views must hold double, float, half_t or bhalf_t");
  static_assert(!std::is_const_v<typename DxView::value_type>,
                "KokkosNN::masked_softmax_backward: dx must not be const");
  static_assert(
      Kokkos::SpaceAccessibility<Exec, typename XView::memory_space>::accessible &&
          Kokkos::SpaceAccessibility<Exec, typename YView::memory_space>::accessible &&
          Kokkos::SpaceAccessibility<Exec, typename DyView::memory_space>::accessible &&
          Kokkos::SpaceAccessibility<Exec, typename DxView::memory_space>::accessible,
      "KokkosNN::masked_softmax_backward: the execution space must be able to access the memory of all Views");
  MaskChecks<Exec, YView>::check(static_cast<const M*>(nullptr));
}

/// And for those with respect to a bias and to sinks.
template <class Exec, class YView, class DyView, class M, class ResultView>
constexpr void check_mask_sums() {
  static_assert(YView::rank() >= 2 && DyView::rank() == YView::rank() && ResultView::rank() <= YView::rank(),
                "KokkosNN::masked_softmax_backward: y and dy must have the same rank, and a bias not more axes");
  static_assert(Concepts::Element<typename YView::non_const_value_type> &&
                    Concepts::Element<typename DyView::non_const_value_type>,
                "KokkosNN::masked_softmax_backward: y and dy must hold double, float, half_t or bhalf_t");
  static_assert(std::same_as<typename ResultView::value_type, float> ||
                    std::same_as<typename ResultView::value_type, typename YView::non_const_value_type>,
                "KokkosNN::masked_softmax_backward: dbias and dsinks must hold y's type or float");
  static_assert(
      Kokkos::SpaceAccessibility<Exec, typename YView::memory_space>::accessible &&
          Kokkos::SpaceAccessibility<Exec, typename DyView::memory_space>::accessible &&
          Kokkos::SpaceAccessibility<Exec, typename ResultView::memory_space>::accessible,
      "KokkosNN::masked_softmax_backward: the execution space must be able to access the memory of all Views");
  MaskChecks<Exec, YView>::check(static_cast<const M*>(nullptr));
}

template <class Exec, class XView, class YView, class DyView, Concepts::Mask M, class DxView>
class PreparedMaskGradient {
  using X  = typename YView::non_const_value_type;
  using D  = typename DyView::non_const_value_type;
  using Dx = typename DxView::non_const_value_type;

 public:
  PreparedMaskGradient(const char* function, const XView& x, const YView& y, const DyView& dy, const M& mask,
                       const DxView& dx, const MaskedSoftmaxOptions& options)
      : m_mask(erased(mask, options)),
        m_options{-1, options.scale, options.masked_row, options.determinism, options.plan},
        m_rows(normalise_masked_gradient(function, tensor_of(x), {tensor_of(y), tensor_of(dx), tensor_of(dy)}, m_mask,
                                         m_options, m_layout)) {}

  bool is_empty() const { return m_rows.rows == 0 || m_rows.cols == 0; }

  RowPlan plan(const Exec& exec) const {
    using Views = GradientViews<RowOperator::softmax_backward, YView, DyView, DyView, DxView>;
    return plan_gradient<Views>(RowOperator::masked_softmax_backward, exec, m_rows, m_options);
  }

  void run(const Exec& exec, const RowPlan& plan, const X* x, const X* y, const D* dy, Dx* dx) const {
    const bool looks_at_elements = m_mask.keep.is_given || m_mask.softcap != 0;
    looks_at_elements ? run<true>(exec, plan, x, y, dy, dx) : run<false>(exec, plan, x, y, dy, dx);
  }

 private:
  template <bool has_element_mask>
  void run(const Exec& exec, const RowPlan& plan, const X* x, const X* y, const D* dy, Dx* dx) const {
    MaskedGradientCall<Exec, X, D, Dx, has_element_mask>::run(
        exec, {plan, m_rows, m_layout, m_mask, m_options, x, y, dy, dx}, nullptr);
  }

  MaskTensors m_mask;
  SoftmaxOptions m_options;
  MaskLayout m_layout;
  GradientLayout m_rows;
};

/// The gradient with respect to a bias, or, `to_heads`, to sinks.
template <class Exec, class YView, class DyView, Concepts::Mask M, class ResultView>
void mask_sums_call(const char* function, const Exec& exec, const YView& y, const DyView& dy, const M& mask,
                    const ResultView& result, bool to_heads) {
  using Y                  = typename YView::non_const_value_type;
  using D                  = typename DyView::non_const_value_type;
  const MaskTensors erased = Impl::erased(mask, {});
  MaskSums whole;
  const MaskSums sums =
      normalise_mask_sums(function, tensor_of(y), tensor_of(dy), erased, mask_tensor(result), to_heads, whole);
  const bool is_float = std::is_same_v<typename ResultView::value_type, float>;
  MaskSumsCall<Exec, Y, D>::run(
      exec, {sums, whole, erased, y.data(), dy.data(), result.data(), is_float, to_heads ? -1.0 : 1.0});
}

}  // namespace KokkosNN::Impl

#endif  // KOKKOSNN_IMPL_CALL_MASKED_CALL_HPP
