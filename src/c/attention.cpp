// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "runtime.hpp"

#include <KokkosNN/attention.hpp>
#include <KokkosNN/kokkosnn.h>

#include <type_traits>

// Attention and its gradients in C.

namespace KokkosNN::C {
namespace {

using namespace KokkosNN::Impl;

/// Queries, whose type all other tensors of heads have.
Tensor queries_of(const char* function, const kokkosnn_tensor* q) {
  const Tensor t = tensor_of(function, "q", q);
  require_rank(function, "q", t, 4, 4);
  return t;
}

Tensor heads_of(const char* function, const char* name, const kokkosnn_tensor* given, const Tensor& q) {
  const Tensor t = tensor_of(function, name, given);
  require_rank(function, name, t, 4, 4);
  require_type(function, name, t, q.type, q.type);
  return t;
}

/// Log-sum-exps, which need not exist where they are optional.
Tensor lse_of(const char* function, const Argument& given, const Tensor& q) {
  const Tensor t = tensor_of(function, "lse", given);
  if (!t.exists()) return t;
  require_rank(function, "lse", t, 3, 3);
  require_type(function, "lse", t, accumulator_of(q.type), accumulator_of(q.type));
  return t;
}

AttentionTensors tensors_of(const char* function, const kokkosnn_tensor* q_given, const kokkosnn_tensor* k,
                            const kokkosnn_tensor* v, const kokkosnn_tensor* o, const Argument& lse) {
  const Tensor q = queries_of(function, q_given);
  return {q, heads_of(function, "k", k, q), heads_of(function, "v", v, q), heads_of(function, "o", o, q),
          lse_of(function, lse, q)};
}

AttentionCallOptions options_of(const char* function, const kokkosnn_mask* mask,
                                const kokkosnn_attention_options* options, const Tensor& q) {
  static_assert(static_cast<int>(AttentionAxes::batch_sequence_head_dim) == KOKKOSNN_BATCH_SEQUENCE_HEAD_DIM);
  const auto given =
      read(function, "attention options", options, kokkosnn_attention_options KOKKOSNN_ATTENTION_OPTIONS_INIT);
  const AttentionAxes axes = enumerator(function, "axes", given.axes, AttentionAxes::batch_sequence_head_dim);
  AttentionCallOptions result{given.scale, masked_row_of(function, given.masked_row),
                              axes == AttentionAxes::batch_sequence_head_dim, mask_of(function, mask, q),
                              precision_of(function, given.precision)};
  result.mask.softcap = given.softcap;
  result.mask.sinks   = sinks_of(function, given.sinks, q);
  return result;
}

}  // namespace
}  // namespace KokkosNN::C

using namespace KokkosNN::C;
using namespace KokkosNN::Impl;

extern "C" {

kokkosnn_status kokkosnn_attention(const kokkosnn_exec* where, const kokkosnn_tensor* q, const kokkosnn_tensor* k,
                                   const kokkosnn_tensor* v, const kokkosnn_tensor* o, const kokkosnn_mask* mask,
                                   const kokkosnn_tensor* lse, const kokkosnn_attention_options* options) {
  constexpr const char* function = "attention";
  return guarded([&] {
    const AttentionTensors tensors = tensors_of(function, q, k, v, o, optional(lse));
    const auto converted           = options_of(function, mask, options, tensors.q);
    on_instance(function, where, [&](const Exec& exec) {
      const AttentionLayout layout = normalise_attention(function, tensors, converted);
      if (!layout.writes()) return;
      with_type(tensors.q.type, [&]<class T>(std::type_identity<T>) {
        AttentionCall<Exec, T>::run(exec, {function, tensors, layout, converted});
      });
    });
  });
}

kokkosnn_status kokkosnn_attention_backward(const kokkosnn_exec* where, const kokkosnn_tensor* q,
                                            const kokkosnn_tensor* k, const kokkosnn_tensor* v,
                                            const kokkosnn_tensor* o, const kokkosnn_tensor* dout,
                                            const kokkosnn_tensor* lse, const kokkosnn_mask* mask,
                                            const kokkosnn_tensor* dq, const kokkosnn_tensor* dk,
                                            const kokkosnn_tensor* dv, const kokkosnn_attention_options* options) {
  constexpr const char* function = "attention_backward";
  return guarded([&] {
    const AttentionTensors forward = tensors_of(function, q, k, v, o, lse);
    const AttentionGradientTensors tensors{
        forward, heads_of(function, "dout", dout, forward.q), heads_of(function, "dq", dq, forward.q),
        heads_of(function, "dk", dk, forward.q), heads_of(function, "dv", dv, forward.q)};
    const auto converted = options_of(function, mask, options, forward.q);
    on_instance(function, where, [&](const Exec& exec) {
      const AttentionGradientLayout layout = normalise_attention_gradient(function, tensors, converted);
      with_type(forward.q.type, [&]<class T>(std::type_identity<T>) {
        AttentionGradientCall<Exec, T>::run(exec, {function, tensors, layout, converted});
      });
    });
  });
}
}
