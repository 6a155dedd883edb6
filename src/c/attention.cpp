// SPDX-FileCopyrightText: 2026 The KokkosNN authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "runtime.hpp"

#include "../argument_error.hpp"

#include <KokkosNN/attention.hpp>
#include <KokkosNN/attention_mask_gradients.hpp>
#include <KokkosNN/graph_attention.hpp>
#include <KokkosNN/kokkosnn.h>

#include <type_traits>

// Attention and its gradients in C, of batches, of packed sequences and of graphs.

namespace KokkosNN::C {
namespace {

using namespace KokkosNN::Impl;

/// Tensors of a call's heads have one rank, and the type of q.
struct Heads {
  const char* function;
  int rank;
  Tensor q;

  Heads(const char* function_, int rank_, const kokkosnn_tensor* given)
      : function(function_), rank(rank_), q(tensor_of(function, "q", given)) {
    require_rank(function, "q", q, rank, rank);
  }
  Tensor operator()(const char* name, const kokkosnn_tensor* given) const {
    const Tensor t = tensor_of(function, name, given);
    require_rank(function, name, t, rank, rank);
    require_type(function, name, t, q.type, q.type);
    return t;
  }
  /// Numbers of edges, which need not exist.
  Tensor of_edges(const char* name, const kokkosnn_tensor* given) const {
    const Tensor t = tensor_of(function, name, optional(given));
    if (!t.exists()) return t;
    require_rank(function, name, t, 2, 2);
    require_type(function, name, t, q.type, ElementType::f32);
    return t;
  }
  /// Log-sum-exps, which need not exist where they are optional.
  Tensor lse(const Argument& given) const {
    const Tensor t = tensor_of(function, "lse", given);
    if (!t.exists()) return t;
    require_rank(function, "lse", t, rank - 1, rank - 1);
    require_type(function, "lse", t, accumulator_of(q.type), accumulator_of(q.type));
    return t;
  }
};

/// The tensors of a merge.
AttentionMergeTensors merged_tensors(const char* function, const kokkosnn_tensor* o_parts,
                                     const kokkosnn_tensor* lse_parts, const kokkosnn_tensor* o_given,
                                     const kokkosnn_tensor* lse_given) {
  const Tensor o            = tensor_of(function, "o", o_given);
  const ElementType of_sums = accumulator_of(o.type);
  require_rank(function, "o", o, 3, 4);
  const AttentionMergeTensors tensors{tensor_of(function, "o_parts", o_parts),
                                      tensor_of(function, "lse_parts", lse_parts), o,
                                      tensor_of(function, "lse", optional(lse_given))};
  require_rank(function, "o_parts", tensors.o_parts, o.rank + 1, o.rank + 1);
  require_type(function, "o_parts", tensors.o_parts, o.type, of_sums);
  require_rank(function, "lse_parts", tensors.lse_parts, o.rank, o.rank);
  require_type(function, "lse_parts", tensors.lse_parts, of_sums, of_sums);
  if (tensors.lse.exists()) {
    require_rank(function, "lse", tensors.lse, o.rank - 1, o.rank - 1);
    require_type(function, "lse", tensors.lse, of_sums, of_sums);
  }
  return tensors;
}

/// A function of batches, or of packed sequences, which have offsets.
struct Given {
  const char* function;
  const kokkosnn_exec* where;
  const kokkosnn_tensor* query_offsets = nullptr;
  const kokkosnn_tensor* key_offsets   = nullptr;
  bool is_packed                       = false;

  int rank() const { return is_packed ? 3 : 4; }
};

Tensor offsets_of(const char* function, const char* name, const kokkosnn_tensor* given) {
  const Tensor t = tensor_of(function, name, integers(given));
  require_rank(function, name, t, 1, 1);
  if (!t.is_signed || (t.element_bytes != 4 && t.element_bytes != 8)) {
    (ArgumentError(function) << name << " must hold i32 or i64").raise();
  }
  return t;
}

AttentionCallOptions options_of(const Given& call, const kokkosnn_mask* mask, const kokkosnn_attention_options* options,
                                const Tensor& q) {
  static_assert(static_cast<int>(AttentionAxes::batch_sequence_head_dim) == KOKKOSNN_BATCH_SEQUENCE_HEAD_DIM);
  static_assert(static_cast<int>(AttentionDiagonal::last) == KOKKOSNN_DIAGONAL_LAST);
  const char* const function = call.function;
  const auto given =
      read(function, "attention options", options, kokkosnn_attention_options KOKKOSNN_ATTENTION_OPTIONS_INIT);
  AttentionCallOptions result;
  result.scale              = given.scale;
  result.masked_row         = masked_row_of(function, given.masked_row);
  result.sequence_is_second = enumerator(function, "axes", given.axes, AttentionAxes::batch_sequence_head_dim) ==
                              AttentionAxes::batch_sequence_head_dim;
  result.mask               = mask_of(function, mask, q);
  result.precision          = precision_of(function, given.precision);
  result.mask.softcap       = given.softcap;
  result.mask.sinks         = sinks_of(function, given.sinks, q);
  result.ends_align =
      enumerator(function, "diagonal", given.diagonal, AttentionDiagonal::last) == AttentionDiagonal::last;
  result.dropout   = {given.dropout_probability, given.dropout_seed, given.dropout_offset};
  result.is_packed = call.is_packed;
  if (call.is_packed) {
    result.query_offsets = offsets_of(function, "query_offsets", call.query_offsets);
    result.key_offsets   = offsets_of(function, "key_offsets", call.key_offsets);
  }
  return result;
}

kokkosnn_status run_forward(const Given& given, const kokkosnn_tensor* q, const kokkosnn_tensor* k,
                            const kokkosnn_tensor* v, const kokkosnn_tensor* o, const kokkosnn_mask* mask,
                            const kokkosnn_tensor* lse, const kokkosnn_attention_options* options) {
  return guarded([&] {
    const Heads heads(given.function, given.rank(), q);
    const AttentionTensors tensors{heads.q, heads("k", k), heads("v", v), heads("o", o), heads.lse(optional(lse))};
    const auto converted = options_of(given, mask, options, heads.q);
    on_instance(given.function, given.where, [&](const Exec& exec) {
      const AttentionLayout layout = normalise_attention(given.function, tensors, converted);
      if (!layout.writes()) return;
      with_type(heads.q.type, [&]<class T>(std::type_identity<T>) {
        AttentionCall<Exec, T>::run(exec, {given.function, tensors, layout, converted});
      });
    });
  });
}

/// Tensors that the gradients have besides those of the forward call.
struct Gradients {
  const kokkosnn_tensor* dout;
  const kokkosnn_tensor* dq;
  const kokkosnn_tensor* dk;
  const kokkosnn_tensor* dv;
};

kokkosnn_status run_backward(const Given& given, const kokkosnn_tensor* q, const kokkosnn_tensor* k,
                             const kokkosnn_tensor* v, const kokkosnn_tensor* o, const kokkosnn_tensor* lse,
                             const kokkosnn_mask* mask, const Gradients& gradients,
                             const kokkosnn_attention_options* options) {
  return guarded([&] {
    const Heads heads(given.function, given.rank(), q);
    const AttentionTensors forward{heads.q, heads("k", k), heads("v", v), heads("o", o), heads.lse(lse)};
    const AttentionGradientTensors tensors{forward, heads("dout", gradients.dout), heads("dq", gradients.dq),
                                           heads("dk", gradients.dk), heads("dv", gradients.dv)};
    const auto converted = options_of(given, mask, options, heads.q);
    on_instance(given.function, given.where, [&](const Exec& exec) {
      const AttentionGradientLayout layout = normalise_attention_gradient(given.function, tensors, converted);
      with_type(heads.q.type, [&]<class T>(std::type_identity<T>) {
        AttentionGradientCall<Exec, T>::run(exec, {given.function, tensors, layout, converted});
      });
    });
  });
}

void run_mask_gradient(const Given& given, bool of_sinks, const AttentionGradientTensors& tensors, const Tensor& result,
                       const AttentionCallOptions& converted) {
  on_instance(given.function, given.where, [&](const Exec& exec) {
    const auto layout = normalise_attention_mask_gradient(given.function, of_sinks, tensors, result, converted);
    with_type(tensors.forward.o.type, [&]<class T>(std::type_identity<T>) {
      AttentionMaskGradientCall<Exec, T>::run(exec, {given.function, tensors, result, layout, converted});
    });
  });
}

Tensor graph_numbers(const char* function, const char* name, const kokkosnn_tensor* given) {
  const Tensor t = tensor_of(function, name, integers(given));
  require_rank(function, name, t, 1, 1);
  if (t.element_bytes < 4) (ArgumentError(function) << name << " must hold integers of 32 or 64 bits").raise();
  return t;
}

/// Tensors that a call over a graph and its gradients share.
GraphAttentionTensors graph_tensors(const Heads& heads, const kokkosnn_tensor* k, const kokkosnn_tensor* v,
                                    const kokkosnn_tensor* row_map, const kokkosnn_tensor* entries,
                                    const kokkosnn_tensor* bias, const kokkosnn_tensor* o, const Argument& lse) {
  GraphAttentionTensors tensors;
  tensors.q       = heads.q;
  tensors.k       = heads("k", k);
  tensors.v       = heads("v", v);
  tensors.row_map = graph_numbers(heads.function, "row_map", row_map);
  tensors.entries = graph_numbers(heads.function, "entries", entries);
  tensors.o       = heads("o", o);
  tensors.lse     = heads.lse(lse);
  tensors.bias    = heads.of_edges("bias", bias);
  return tensors;
}

void run_graph(const char* function, const kokkosnn_exec* where, bool is_gradient, const GraphAttentionTensors& tensors,
               const kokkosnn_attention_options* options) {
  const auto converted = options_of({function, where}, nullptr, options, tensors.q);
  on_instance(function, where, [&](const Exec& exec) {
    const GraphAttentionLayout layout = normalise_graph_attention(function, is_gradient, tensors, converted);
    with_type(tensors.q.type, [&]<class T>(std::type_identity<T>) {
      GraphAttentionCall<Exec, T>::run(exec, {function, is_gradient, tensors, layout, converted});
    });
  });
}

}  // namespace
}  // namespace KokkosNN::C

using namespace KokkosNN::C;

extern "C" {

kokkosnn_status kokkosnn_attention(const kokkosnn_exec* where, const kokkosnn_tensor* q, const kokkosnn_tensor* k,
                                   const kokkosnn_tensor* v, const kokkosnn_tensor* o, const kokkosnn_mask* mask,
                                   const kokkosnn_tensor* lse, const kokkosnn_attention_options* options) {
  return run_forward({"attention", where}, q, k, v, o, mask, lse, options);
}

kokkosnn_status kokkosnn_attention_backward(const kokkosnn_exec* where, const kokkosnn_tensor* q,
                                            const kokkosnn_tensor* k, const kokkosnn_tensor* v,
                                            const kokkosnn_tensor* o, const kokkosnn_tensor* dout,
                                            const kokkosnn_tensor* lse, const kokkosnn_mask* mask,
                                            const kokkosnn_tensor* dq, const kokkosnn_tensor* dk,
                                            const kokkosnn_tensor* dv, const kokkosnn_attention_options* options) {
  return run_backward({"attention_backward", where}, q, k, v, o, lse, mask, {dout, dq, dk, dv}, options);
}

kokkosnn_status kokkosnn_graph_attention(const kokkosnn_exec* where, const kokkosnn_tensor* q, const kokkosnn_tensor* k,
                                         const kokkosnn_tensor* v, const kokkosnn_tensor* row_map,
                                         const kokkosnn_tensor* entries, const kokkosnn_tensor* bias,
                                         const kokkosnn_tensor* o, const kokkosnn_tensor* lse,
                                         const kokkosnn_attention_options* options) {
  return guarded([&] {
    const Heads heads("graph_attention", 3, q);
    const auto tensors = graph_tensors(heads, k, v, row_map, entries, bias, o, optional(lse));
    run_graph(heads.function, where, false, tensors, options);
  });
}

kokkosnn_status kokkosnn_graph_attention_backward(const kokkosnn_exec* where, const kokkosnn_tensor* q,
                                                  const kokkosnn_tensor* k, const kokkosnn_tensor* v,
                                                  const kokkosnn_tensor* row_map, const kokkosnn_tensor* entries,
                                                  const kokkosnn_tensor* bias, const kokkosnn_tensor* o,
                                                  const kokkosnn_tensor* dout, const kokkosnn_tensor* lse,
                                                  const kokkosnn_tensor* dq, const kokkosnn_tensor* dk,
                                                  const kokkosnn_tensor* dv, const kokkosnn_tensor* dbias,
                                                  const kokkosnn_attention_options* options) {
  return guarded([&] {
    const Heads heads("graph_attention_backward", 3, q);
    auto tensors  = graph_tensors(heads, k, v, row_map, entries, bias, o, lse);
    tensors.dout  = heads("dout", dout);
    tensors.dq    = heads("dq", dq);
    tensors.dk    = heads("dk", dk);
    tensors.dv    = heads("dv", dv);
    tensors.dbias = heads.of_edges("dbias", dbias);
    run_graph(heads.function, where, true, tensors, options);
  });
}

kokkosnn_status kokkosnn_merge_attention(const kokkosnn_exec* where, const kokkosnn_tensor* o_parts,
                                         const kokkosnn_tensor* lse_parts, const kokkosnn_tensor* o,
                                         const kokkosnn_tensor* lse, const kokkosnn_attention_options* options) {
  constexpr const char* function = "merge_attention";
  return guarded([&] {
    const AttentionMergeTensors tensors = merged_tensors(function, o_parts, lse_parts, o, lse);
    auto converted                      = options_of({function, where}, nullptr, options, tensors.o);
    converted.is_packed                 = tensors.o.rank == 3;
    on_instance(function, where, [&](const Exec& exec) {
      const AttentionMergeLayout layout = normalise_attention_merge(function, tensors, converted);
      if (!layout.writes()) return;
      with_type(tensors.o.type, [&]<class T>(std::type_identity<T>) {
        const AttentionMergeArguments arguments{function, tensors, layout, converted};
        if (tensors.o_parts.type == tensors.o.type) {
          AttentionMergeCall<Exec, T, T>::run(exec, arguments);
        } else if constexpr (!std::is_same_v<KokkosNN::accumulator_t<T>, T>) {
          AttentionMergeCall<Exec, KokkosNN::accumulator_t<T>, T>::run(exec, arguments);
        }
      });
    });
  });
}

kokkosnn_status kokkosnn_attention_bias_backward(const kokkosnn_exec* where, const kokkosnn_tensor* q,
                                                 const kokkosnn_tensor* k, const kokkosnn_tensor* v,
                                                 const kokkosnn_tensor* o, const kokkosnn_tensor* dout,
                                                 const kokkosnn_tensor* lse, const kokkosnn_mask* mask,
                                                 const kokkosnn_tensor* dbias,
                                                 const kokkosnn_attention_options* options) {
  const Given given{"attention_bias_backward", where};
  return guarded([&] {
    const Heads heads(given.function, 4, q);
    const AttentionGradientTensors tensors{
        {heads.q, heads("k", k), heads("v", v), heads("o", o), heads.lse(lse)}, heads("dout", dout), {}, {}, {}};
    const Tensor result = tensor_of(given.function, "dbias", dbias);
    require_type(given.function, "dbias", result, heads.q.type, KokkosNN::ElementType::f32);
    run_mask_gradient(given, false, tensors, result, options_of(given, mask, options, heads.q));
  });
}

kokkosnn_status kokkosnn_attention_sinks_backward(const kokkosnn_exec* where, const kokkosnn_tensor* o,
                                                  const kokkosnn_tensor* dout, const kokkosnn_tensor* lse,
                                                  const kokkosnn_tensor* dsinks,
                                                  const kokkosnn_attention_options* options) {
  const Given given{"attention_sinks_backward", where};
  return guarded([&] {
    const Heads heads(given.function, 4, o);
    const AttentionGradientTensors tensors{{{}, {}, {}, heads.q, heads.lse(lse)}, heads("dout", dout), {}, {}, {}};
    const Tensor result = tensor_of(given.function, "dsinks", dsinks);
    require_rank(given.function, "dsinks", result, 1, 1);
    require_type(given.function, "dsinks", result, heads.q.type, KokkosNN::ElementType::f32);
    run_mask_gradient(given, true, tensors, result, options_of(given, nullptr, options, heads.q));
  });
}

kokkosnn_status kokkosnn_packed_attention(const kokkosnn_exec* where, const kokkosnn_tensor* q,
                                          const kokkosnn_tensor* k, const kokkosnn_tensor* v,
                                          const kokkosnn_tensor* query_offsets, const kokkosnn_tensor* key_offsets,
                                          const kokkosnn_tensor* o, const kokkosnn_mask* mask,
                                          const kokkosnn_tensor* lse, const kokkosnn_attention_options* options) {
  return run_forward({"packed_attention", where, query_offsets, key_offsets, true}, q, k, v, o, mask, lse, options);
}

kokkosnn_status kokkosnn_packed_attention_backward(
    const kokkosnn_exec* where, const kokkosnn_tensor* q, const kokkosnn_tensor* k, const kokkosnn_tensor* v,
    const kokkosnn_tensor* query_offsets, const kokkosnn_tensor* key_offsets, const kokkosnn_tensor* o,
    const kokkosnn_tensor* dout, const kokkosnn_tensor* lse, const kokkosnn_mask* mask, const kokkosnn_tensor* dq,
    const kokkosnn_tensor* dk, const kokkosnn_tensor* dv, const kokkosnn_attention_options* options) {
  return run_backward({"packed_attention_backward", where, query_offsets, key_offsets, true}, q, k, v, o, lse, mask,
                      {dout, dq, dk, dv}, options);
}
}
