// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_FUSED_ATTENTION_HPP
#define KOKKOSNN_FUSED_ATTENTION_HPP

#include <KokkosNN/attention.hpp>
#include <KokkosNN/concepts.hpp>
#include <KokkosNN/float8.hpp>
#include <KokkosNN/impl/call/elementwise_call.hpp>
#include <KokkosNN/impl/call/fused_attention_launch.hpp>
#include <KokkosNN/packed_attention.hpp>

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <type_traits>

// Attention with a functor of the user behind it: a gate, a scale and a type of 8 bits, a residual. The results pass
// through it while they are in registers.

namespace KokkosNN {
namespace Impl {

template <class V>
inline constexpr bool holds_attention_results = holds_results<V> || std::is_same_v<ElementOf<V>, float8_e4m3>;

template <int rank, class Exec, class QView, class KView, class VView, class OView, class M, class LseView, class F,
          class... In>
constexpr void check_fused_attention() {
  static_assert(hold_one_type<QView, KView, VView>, "KokkosNN::fused_attention: q, k and v must hold the same type");
  static_assert(holds_attention_results<OView>,
                "KokkosNN::fused_attention: o must hold double, float, half_t, bhalf_t, float8_e4m3 or an arithmetic "
                "type");
  check_attention_to_any<rank, Exec, QView, KView, VView, OView, M, LseView>();
  static_assert(sizeof...(In) <= max_attention_inputs,
                "KokkosNN::fused_attention: an epilogue may have up to five inputs");
  static_assert(hold_elements<In...>, "KokkosNN::fused_attention: inputs must hold double, float, half_t or bhalf_t");
  static_assert((... && (In::rank() <= OView::rank())),
                "KokkosNN::fused_attention: an input must not have more axes than o");
  static_assert(can_access<Exec, In...>,
                "KokkosNN::fused_attention: the execution space must be able to access the memory of all inputs");
  using N = elementwise_accumulator<QView, OView, In...>;
  static_assert(std::is_invocable_v<const F&, N, Repeated<sizeof(In), N>...>,
                "KokkosNN::fused_attention: the epilogue must be callable, as const, with a number and one for each "
                "input");
}

/// Calls attention of Views that are checked, with an epilogue.
template <class QView, class OView, class Exec, class F, class... In>
void fused_attention_call(const Exec& exec, const char* function, const AttentionTensors& tensors,
                          const AttentionCallOptions& options, const F& f, const In&... views) {
  using N = elementwise_accumulator<QView, OView, In...>;
  AttentionInputs inputs;
  const auto add = [&](const Tensor& tensor) {
    inputs.name[inputs.count]     = input_names[inputs.count];
    inputs.tensor[inputs.count++] = tensor;
  };
  (add(tensor_of(views)), ...);
  checked_attention_call(function, tensors, options, [&](const AttentionArguments& call) {
    FusedAttentionLaunch<Exec, ElementOf<QView>, F, N, ElementOf<OView>, ElementTypes<ElementOf<In>...>>::run(
        exec, call, inputs, f);
  });
}

}  // namespace Impl

/// Attention with an epilogue: o = epilogue(r, in0, in1, ...) of each element of the results r = softmax(scale q k^T +
/// mask) v of `attention`, while they are in registers.
///
/// \param exec       execution-space instance; the call is asynchronous on it
/// \param q, k, v    as in `attention`: one type, double, float, half_t or bhalf_t
/// \param o          output (batch, head, query, value dim) of double, float, half_t, bhalf_t, float8_e4m3 or an
///                   arithmetic type
/// \param mask       as in `attention`
/// \param options    as in `attention`
/// \param lse        as in `attention`, or no_view; the epilogue does not change it
/// \param epilogue   functor (KOKKOS_LAMBDA or struct) of a result and one number an input, all double if any of q, o
///                   and the inputs holds double, else float; it returns a number, which is converted to o's type as
///                   C++ does: to float8_e4m3 rounded and saturated, to integers as they are cut off, so a functor for
///                   those rounds and bounds by itself. It is copied, called as const, once for each element, in any
///                   order, also at the same time. Its kernels are compiled in the user's file
/// \param inputs     up to five Views of rank up to that of o, which broadcast to it as in NumPy: a gate has its
///                   extents, a scale a head (head, 1, 1), where axes are those of batch_head_sequence_dim. An input
///                   may be o itself (the same View)
///
/// Views, values and ordering as in `attention`; a query that sees no key has r = NaN or 0 by options.masked_row. Few
///            queries and many keys: the kernel that joins parts runs the epilogue.
/// In place   o and lse overlap neither each other nor q, k and v; an input is o itself or apart from it.
/// Arithmetic that of `attention`, whose results are not rounded to q's type ahead of the functor.
/// Errors     std::invalid_argument as of `attention`, and for an input that does not broadcast to o or overlaps it;
///            nothing is written then.
/// Cost       that of `attention`, and a read of each input. On Hopper 16-bit calls that `attention` runs on
///            warpgroups, but for dims beyond 128, masks of single scores and scales that are not positive, have a
///            kernel there where the file is compiled for sm_90a, with KOKKOSNN_FOR_SM_90A defined. Elsewhere they run
///            the kernel for all GPUs, and two calls, `attention` and `fused_elementwise`, are the faster way from 1000
///            keys on. A GPU's compiler takes minutes for a functor of float, which has three precisions.
///
///     fused_attention(exec, q, k, v, o, masks(CausalMask{}), {}, no_view,   // gated: o = r sigmoid(g)
///                     KOKKOS_LAMBDA(float r, float g) { return r / (1 + Kokkos::exp(-g)); }, gate);
///     fused_attention(exec, q, k, v, o8, masks(), {}, no_view,              // o8 holds float8_e4m3
///                     KOKKOS_LAMBDA(float r, float scale) { return r / scale; }, scales);
template <Concepts::ExecutionSpace Exec, Concepts::View QView, Concepts::View KView, Concepts::View VView,
          Concepts::View OView, Concepts::Mask M, Concepts::OptionalView LseView, class F, Concepts::View... InViews>
void fused_attention(const Exec& exec, const QView& q, const KView& k, const VView& v, const OView& o, const M& mask,
                     const AttentionOptions& options, const LseView& lse, const F& epilogue, const InViews&... inputs) {
  using namespace Impl;
  check_fused_attention<4, Exec, QView, KView, VView, OView, M, LseView, F, InViews...>();
  constexpr const char* function = "fused_attention";
  fused_attention_call<QView, OView>(exec, function,
                                     {tensor_of(q), tensor_of(k), tensor_of(v), tensor_of(o), tensor_of(lse)},
                                     erased_options<Exec, QView>(function, mask, options), epilogue, inputs...);
}

/// `fused_attention` within each of a batch of packed sequences, as `packed_attention` is `attention` of them: Views
/// and inputs have the axes (token, head, dim), so a gate has o's extents, a scale a head (head, 1).
template <Concepts::ExecutionSpace Exec, Concepts::View QView, Concepts::View KView, Concepts::View VView,
          Concepts::View QueryOffsets, Concepts::View KeyOffsets, Concepts::View OView, Concepts::Mask M,
          Concepts::OptionalView LseView, class F, Concepts::View... InViews>
void fused_packed_attention(const Exec& exec, const QView& q, const KView& k, const VView& v,
                            const QueryOffsets& query_offsets, const KeyOffsets& key_offsets, const OView& o,
                            const M& mask, const AttentionOptions& options, const LseView& lse, const F& epilogue,
                            const InViews&... inputs) {
  using namespace Impl;
  check_fused_attention<3, Exec, QView, KView, VView, OView, M, LseView, F, InViews...>();
  constexpr const char* function = "fused_packed_attention";
  fused_attention_call<QView, OView>(
      exec, function, {tensor_of(q), tensor_of(k), tensor_of(v), tensor_of(o), tensor_of(lse)},
      packed_options<Exec, QView>(function, query_offsets, key_offsets, mask, options), epilogue, inputs...);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_FUSED_ATTENTION_HPP
