# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""ONNX' node tests of the operators that the library has, in NumPy: inputs, attributes and results are ONNX' own."""

import importlib
import pkgutil

import kokkosnn
import ml_dtypes
import numpy as np
import onnx
import pytest
from kokkosnn import Mask
from onnx.backend.test.case import node as nodes

if kokkosnn.configuration()["backend"] in ("Cuda", "HIP"):
    pytest.skip("SKIPPED: this build of kokkosnn is for a GPU's arrays", allow_module_level=True)

# --- each operator of ONNX by the library's functions: its inputs and attributes to its outputs, None for others ---


def heads(x, count):
    """(batch, sequence, head * dim) as (batch, head, sequence, dim), a view of x."""
    return x if x.ndim == 4 else x.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)


def padded(mask, keys):
    """A mask of fewer keys masks the others."""
    more = [(0, 0)] * (mask.ndim - 1) + [(0, keys - mask.shape[-1])]
    return np.pad(mask, more, constant_values=False if mask.dtype == bool else -np.inf)


def mask_of(queries, keys, attn_mask, past, lengths, is_causal, left, right):
    diagonal = past
    given = {"causal": bool(is_causal)}
    if left >= 0 or right >= 0:
        given["window"] = tuple(None if side < 0 else side for side in (left, right))
    if lengths is not None:
        given["lengths"] = lengths
        given["diagonal_offsets"] = lengths - queries
    else:
        given["causal_offset"] = given["window_offset"] = diagonal
    if attn_mask is not None:
        given["boolean" if attn_mask.dtype == bool else "bias"] = padded(attn_mask, keys)
    return Mask(**given)


def attention(
    q,
    k,
    v,
    attn_mask=None,
    past_key=None,
    past_value=None,
    nonpad_kv_seqlen=None,
    *,
    scale=None,
    softcap=0.0,
    is_causal=0,
    q_num_heads=0,
    kv_num_heads=0,
    left_window_size=-1,
    right_window_size=-1,
    qk_matmul_output_mode=0,  # of an output that the library does not have
    softmax_precision=0,  # the library's sums are of float32 and float64
):
    has_heads = q.ndim == 4
    q, k, v = heads(q, q_num_heads), heads(k, kv_num_heads), heads(v, kv_num_heads)
    past = 0 if past_key is None else past_key.shape[2]
    if past_key is not None:
        k, v = np.concatenate([past_key, k], 2), np.concatenate([past_value, v], 2)
    windows = (left_window_size, right_window_size)
    mask = mask_of(q.shape[2], k.shape[2], attn_mask, past, nonpad_kv_seqlen, is_causal, *windows)
    o, _ = kokkosnn.attention(q, k, v, mask, scale=scale, softcap=softcap, masked_row="zero")
    return o if has_heads else o.transpose(0, 2, 1, 3).reshape(o.shape[0], o.shape[2], -1), k, v


def rotary_embedding(x, cos, sin, position_ids=None, *, interleaved=0, rotary_embedding_dim=0, num_heads=0):
    if position_ids is None:  # a table a batch
        position_ids = np.arange(cos.shape[0] * cos.shape[1]).reshape(cos.shape[:2])
        cos, sin = (table.reshape(-1, table.shape[-1]) for table in (cos, sin))
    rows = x if x.ndim == 4 else x.reshape(*x.shape[:2], num_heads, -1)
    options = {"form": "interleaved" if interleaved else "half_rotated", "rotary_dims": rotary_embedding_dim}
    options["sequence_axis"] = -2 if x.ndim == 4 else -3
    return (kokkosnn.rope(rows, cos, sin, position_ids, **options).reshape(x.shape),)


def rows_of(x, axis):
    """x with the axes from `axis` on as one."""
    return x.reshape(*x.shape[: axis % x.ndim], -1)


def rms_normalization(x, scale, *, axis=-1, epsilon=1e-5, stash_type=1):
    scale = np.broadcast_to(scale, x.shape[axis % x.ndim :]).reshape(-1)
    return (kokkosnn.rms_norm(rows_of(x, axis), scale, epsilon)[0].reshape(x.shape),)


def layer_normalization(x, scale, bias=None, *, axis=-1, epsilon=1e-5, stash_type=1):
    weights = [None if w is None else w.reshape(-1) for w in (scale, bias)]
    y, mean, rstd = kokkosnn.layer_norm(rows_of(x, axis), *weights, epsilon)
    rows = (*x.shape[: axis % x.ndim], *(1,) * (x.ndim - axis % x.ndim))
    return y.reshape(x.shape), mean.reshape(rows), rstd.reshape(rows)


def softmax_cross_entropy_loss(logits, labels, weights=None, *, reduction=b"mean", ignore_index=-100):
    options = {"reduction": reduction.decode(), "ignore_index": ignore_index}
    loss, _ = kokkosnn.cross_entropy(logits, labels, weights, axis=1, **options)
    return loss, kokkosnn.log_softmax(logits, 1)


OPERATORS = {
    "Attention": attention,
    "Gelu": lambda x, *, approximate=b"none": (kokkosnn.gelu(x, approximate.decode()),),
    "LayerNormalization": layer_normalization,
    "LogSoftmax": lambda x, *, axis=-1: (kokkosnn.log_softmax(x, axis),),
    "RMSNormalization": rms_normalization,
    "RotaryEmbedding": rotary_embedding,
    "Softmax": lambda x, *, axis=-1: (kokkosnn.softmax(x, axis),),
    "SoftmaxCrossEntropyLoss": softmax_cross_entropy_loss,
}


def cases():
    """The cases of one node; ONNX has most of them a second time, as functions of many nodes."""
    modules = {module.name.replace("_", ""): module.name for module in pkgutil.iter_modules(nodes.__path__)}
    for operator in OPERATORS:  # each module adds its cases to a list; all modules of ONNX would take a minute
        importlib.import_module(f"{nodes.__name__}.{modules[operator.lower()]}")
    found = {}
    for case in nodes._NodeTestCases:
        if len(case.model.graph.node) == 1 and case.model.graph.node[0].op_type in OPERATORS:
            found.setdefault(case.name, case)
    return found


CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_node(name):
    case = CASES[name]
    node = case.model.graph.node[0]
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    for given, expected in case.data_sets:
        rest = iter(given)
        inputs = [next(rest) if input_name else None for input_name in node.input]
        outputs = OPERATORS[node.op_type](*inputs, **attributes)
        rest = iter(expected)
        for ours, output_name in zip(outputs, node.output):
            if output_name:
                theirs = next(rest)
                assert ours.shape == theirs.shape
                # ONNX rounds each step to bfloat16, the library the result alone.
                rtol = max(case.rtol, 2.0**-6 if theirs.dtype == ml_dtypes.bfloat16 else 0)
                np.testing.assert_allclose(ours.astype(float), theirs.astype(float), rtol=rtol, atol=case.atol)


def test_the_cases_are_there():
    operators = {case.model.graph.node[0].op_type for case in CASES.values()}
    assert operators == set(OPERATORS) and len(CASES) > 100
