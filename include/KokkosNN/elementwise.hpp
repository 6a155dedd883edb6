// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#ifndef KOKKOSNN_ELEMENTWISE_HPP
#define KOKKOSNN_ELEMENTWISE_HPP

#include <KokkosNN/concepts.hpp>
#include <KokkosNN/impl/call/elementwise_call.hpp>

#include <Kokkos_Core.hpp>

#include <tuple>

// Elementwise operators: a user's functor on any Views, and the activations of networks with their gradients. With
// Phi the normal distribution function and s(x) = 1 / (1 + exp(-x)),
//
//     add, mul   y = a + b, y = a b
//     cast       y = x, in another type
//     silu       y = x s(x)
//     gelu       y = x Phi(x);  tanh form: y = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
//     swiglu     y = silu(gate) up
//     geglu      y = gelu(gate) up
//
// Common to all functions:
//
// Views      of rank 0 to 8, any layout, any strides, any alignment. Inputs hold double, float, half_t or bhalf_t, each
//            its own; so do outputs. Inputs broadcast to the extents of the outputs as in NumPy: axes line up from the
//            last one, and an axis that is missing, of extent 1, or of stride 0 repeats its elements. Calls on one type
//            are compiled in the library, others in the user's file. 64-bit offsets.
// In place   an output may be an input (the same View twice); any other overlap of what is written is an error, and so
//            is an output whose elements share memory.
// Ordering   asynchronous on `exec`: the call enqueues one kernel, fences nothing and allocates nothing.
// Arithmetic in double if any View holds double, else in float; each result is rounded once from there to its type, to
//            the nearest.
// Accuracy   results of 16 bits: the number nearest to the exact result, or its neighbour; float and double as each
//            function says. Derivatives are sums that cancel near their zeros, so bounds of gradients by x or by the
//            gate are of the larger of two terms, in 16 bits 1 ulp of that, too. Where the tail F(-|x|) is below the
//            normal range (of float |x| > 87, GELU 13, tanh form 10; of double 708, 37, 21) it counts as 0. A result
//            that is 0 has either sign.
// Values     NaN gives NaN. Activations of -inf are 0, of +inf they are +inf; their derivatives are 0 and 1. Products
//            with these follow IEEE 754: swiglu of a gate of -inf and an infinite up is NaN. Not for -ffast-math.
// Empty      outputs without elements: nothing is done.
// Errors     std::invalid_argument, with the function's name and the offending values and nothing written: extents that
//            do not broadcast, outputs of different extents, overlap.
// Cost       reads each input once (of a broadcast one what it has), writes each output once. Contiguous Views are one
//            long row, whatever their layout; on a GPU they move by packs of 16 bytes, also where all begin by the same
//            number of elements behind a pack's boundary. Other strides go element by element, neighbours in the first
//            output by neighbouring threads: inputs in another order of axes are read in pieces of a cache line. On a
//            host results that the caches do not hold go past them.

namespace KokkosNN {

/// out_i = f(in0_i, in1_i, ...), for each element i of several outputs at once.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param outputs  std::tuple of Views of the same extents; they may also hold bool or another arithmetic type, which
///                 results are converted to
/// \param f        functor (KOKKOS_LAMBDA or struct) of one number an input, all double if any View holds double, else
///                 float; it returns a number, or for several outputs a Kokkos::Array with one for each. It is
///                 copied, called as const, once for each element, in any order, also at the same time
/// \param inputs   1 or more Views of rank up to that of the outputs; with the outputs up to 10
///
/// On a host the call is in a loop that compilers vectorise if they can vectorise f.
///
///     fused_elementwise(exec, std::tuple(sum, product), KOKKOS_LAMBDA(float a, float b) {
///       return Kokkos::Array<float, 2>{a + b, a * b};
///     }, a, b);
template <Concepts::ExecutionSpace Exec, Concepts::View... OutViews, class F, Concepts::View... InViews>
void fused_elementwise(const Exec& exec, const std::tuple<OutViews...>& outputs, const F& f, const InViews&... inputs) {
  Impl::call_functor(exec, outputs, f, inputs...);
}

/// out_i = f(in0_i, in1_i, ...) for one output.
///
///     fused_elementwise(exec, y, KOKKOS_LAMBDA(float x, float b) { return Kokkos::fmax(x + b, 0.0f); }, x, bias);
template <Concepts::ExecutionSpace Exec, Concepts::View OutView, class F, Concepts::View... InViews>
void fused_elementwise(const Exec& exec, const OutView& out, const F& f, const InViews&... inputs) {
  Impl::call_functor(exec, std::tuple<OutView>(out), f, inputs...);
}

/// Sum: y = a + b. Float and double: exactly rounded.
///
/// \param exec  execution-space instance; the call is asynchronous on it
/// \param a     input
/// \param b     input
/// \param y     output; may be a or b
template <Concepts::ExecutionSpace Exec, Concepts::View AView, Concepts::View BView, Concepts::View YView>
void add(const Exec& exec, const AView& a, const BView& b, const YView& y) {
  Impl::call_operator<Impl::Add>(exec, std::tuple<YView>(y), a, b);
}

/// Product: y = a b. Float and double: exactly rounded.
///
/// \param exec  execution-space instance; the call is asynchronous on it
/// \param a     input
/// \param b     input
/// \param y     output; may be a or b
template <Concepts::ExecutionSpace Exec, Concepts::View AView, Concepts::View BView, Concepts::View YView>
void mul(const Exec& exec, const AView& a, const BView& b, const YView& y) {
  Impl::call_operator<Impl::Mul>(exec, std::tuple<YView>(y), a, b);
}

/// Conversion: y = x, rounded once to the nearest, ties to even. What leaves the range of y's type is infinite.
///
/// \param exec  execution-space instance; the call is asynchronous on it
/// \param x     input
/// \param y     output; may be x
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView>
void cast(const Exec& exec, const XView& x, const YView& y) {
  Impl::call_operator<Impl::Cast>(exec, std::tuple<YView>(y), x);
}

/// SiLU (swish): y = x / (1 + exp(-x)). Float and double: within 5 ulp of the result.
///
/// \param exec  execution-space instance; the call is asynchronous on it
/// \param x     input
/// \param y     output; may be x
///
/// Source: Elfwing, Uchibe and Doya, "Sigmoid-weighted linear units for neural network function approximation in
/// reinforcement learning", 2018.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView>
void silu(const Exec& exec, const XView& x, const YView& y) {
  Impl::call_operator<Impl::Silu>(exec, std::tuple<YView>(y), x);
}

/// Gradient of SiLU: dx = dy s(x) (1 + x (1 - s(x))). Float and double: within 6 ulp of the larger of |dy s(x)| and |dy
/// x s(x) (1 - s(x))|.
///
/// \param exec  execution-space instance; the call is asynchronous on it
/// \param x     silu's input
/// \param dy    gradient with respect to y
/// \param dx    output; may be x or dy
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View DyView, Concepts::View DxView>
void silu_backward(const Exec& exec, const XView& x, const DyView& dy, const DxView& dx) {
  Impl::call_operator<Impl::SiluBackward>(exec, std::tuple<DxView>(dx), x, dy);
}

/// Forms of GELU.
enum class GeluForm {
  erf,  ///< x Phi(x), the definition
  tanh  ///< x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), within 5e-4 of it
};

/// Options of GELU, GEGLU and their gradients; an aggregate for designated initialisers: `{.form = GeluForm::tanh}`.
struct GeluOptions {
  GeluForm form = GeluForm::erf;
};

/// GELU: y = x Phi(x), or its tanh form. Float and double: within 10 ulp of the result, in the tail too.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        input
/// \param y        output; may be x
/// \param options  the form; see GeluOptions
///
/// Source: Hendrycks and Gimpel, "Gaussian error linear units", 2016.
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View YView>
void gelu(const Exec& exec, const XView& x, const YView& y, const GeluOptions& options = {}) {
  if (options.form == GeluForm::tanh) return Impl::call_operator<Impl::GeluTanh>(exec, std::tuple<YView>(y), x);
  Impl::call_operator<Impl::Gelu>(exec, std::tuple<YView>(y), x);
}

/// Gradient of GELU: dx = dy (F(x) + x F'(x)), with y = x F(x); F = Phi but for the tanh form. Float and double: within
/// 10 ulp of the larger of |dy F(x)| and |dy x F'(x)|.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param x        gelu's input
/// \param dy       gradient with respect to y
/// \param dx       output; may be x or dy
/// \param options  as in the forward call
template <Concepts::ExecutionSpace Exec, Concepts::View XView, Concepts::View DyView, Concepts::View DxView>
void gelu_backward(const Exec& exec, const XView& x, const DyView& dy, const DxView& dx,
                   const GeluOptions& options = {}) {
  if (options.form == GeluForm::tanh) {
    return Impl::call_operator<Impl::GeluTanhBackward>(exec, std::tuple<DxView>(dx), x, dy);
  }
  Impl::call_operator<Impl::GeluBackward>(exec, std::tuple<DxView>(dx), x, dy);
}

/// SwiGLU: y = silu(gate) up. Float and double: within 6 ulp of the result.
///
/// \param exec  execution-space instance; the call is asynchronous on it
/// \param gate  input
/// \param up    input
/// \param y     output; may be gate or up
///
/// Source: Shazeer, "GLU variants improve transformer", 2020.
template <Concepts::ExecutionSpace Exec, Concepts::View GateView, Concepts::View UpView, Concepts::View YView>
void swiglu(const Exec& exec, const GateView& gate, const UpView& up, const YView& y) {
  Impl::call_operator<Impl::Swiglu>(exec, std::tuple<YView>(y), gate, up);
}

/// Gradients of SwiGLU in one pass: dgate = dy up silu'(gate), dup = dy silu(gate). Float and double: dup within 6 ulp
/// of itself, dgate within 8 ulp of |dy up| times the larger term of silu' (silu_backward has them).
///
/// \param exec   execution-space instance; the call is asynchronous on it
/// \param gate   swiglu's input
/// \param up     swiglu's input
/// \param dy     gradient with respect to y
/// \param dgate  output; may be gate, up or dy
/// \param dup    output; may be another one of these
template <Concepts::ExecutionSpace Exec, Concepts::View GateView, Concepts::View UpView, Concepts::View DyView,
          Concepts::View DgateView, Concepts::View DupView>
void swiglu_backward(const Exec& exec, const GateView& gate, const UpView& up, const DyView& dy, const DgateView& dgate,
                     const DupView& dup) {
  Impl::call_operator<Impl::SwigluBackward>(exec, std::tuple<DgateView, DupView>(dgate, dup), gate, up, dy);
}

/// GEGLU: y = gelu(gate) up. Float and double: within 12 ulp of the result.
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param gate     input
/// \param up       input
/// \param y        output; may be gate or up
/// \param options  the form of GELU; see GeluOptions
///
/// Source: as swiglu.
template <Concepts::ExecutionSpace Exec, Concepts::View GateView, Concepts::View UpView, Concepts::View YView>
void geglu(const Exec& exec, const GateView& gate, const UpView& up, const YView& y, const GeluOptions& options = {}) {
  if (options.form == GeluForm::tanh) {
    return Impl::call_operator<Impl::GegluTanh>(exec, std::tuple<YView>(y), gate, up);
  }
  Impl::call_operator<Impl::Geglu>(exec, std::tuple<YView>(y), gate, up);
}

/// Gradients of GEGLU in one pass: dgate = dy up gelu'(gate), dup = dy gelu(gate). Float and double: each within 12
/// ulp, dup of itself, dgate of |dy up| times the larger term of gelu' (gelu_backward has them).
///
/// \param exec     execution-space instance; the call is asynchronous on it
/// \param gate     geglu's input
/// \param up       geglu's input
/// \param dy       gradient with respect to y
/// \param dgate    output; may be gate, up or dy
/// \param dup      output; may be another one of these
/// \param options  as in the forward call
template <Concepts::ExecutionSpace Exec, Concepts::View GateView, Concepts::View UpView, Concepts::View DyView,
          Concepts::View DgateView, Concepts::View DupView>
void geglu_backward(const Exec& exec, const GateView& gate, const UpView& up, const DyView& dy, const DgateView& dgate,
                    const DupView& dup, const GeluOptions& options = {}) {
  const std::tuple<DgateView, DupView> outputs(dgate, dup);
  if (options.form == GeluForm::tanh) return Impl::call_operator<Impl::GegluTanhBackward>(exec, outputs, gate, up, dy);
  Impl::call_operator<Impl::GegluBackward>(exec, outputs, gate, up, dy);
}

}  // namespace KokkosNN

#endif  // KOKKOSNN_ELEMENTWISE_HPP
