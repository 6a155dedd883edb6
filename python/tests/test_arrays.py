# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""The operators on arrays of NumPy, beside their formulas in float64; the promises on arrays, errors and threads."""

import inspect
import math
import re
import threading
import time
from pathlib import Path

import kokkosnn
import ml_dtypes
import numpy as np
import pytest
from kokkosnn import Mask, _core

ROOT = Path(__file__).resolve().parent.parent.parent
if kokkosnn.configuration()["backend"] in ("Cuda", "HIP"):
    pytest.skip("NumPy's arrays are a host's", allow_module_level=True)

TYPES = {np.float64: 1e-13, np.float32: 2e-6, np.float16: 2e-3, ml_dtypes.bfloat16: 2e-2}
each_type = pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: np.dtype(dtype).name)


def numbers(*shape, dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def wide(x):
    return np.asarray(x, np.float64)


def close(y, expected, dtype=np.float32):
    assert y.shape == expected.shape
    assert np.allclose(wide(y), expected, rtol=TYPES[dtype], atol=TYPES[dtype])


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def logsumexp(x, axis=-1):
    return np.log(np.exp(x).sum(axis))


# --- values ---


@each_type
def test_the_softmax_family(dtype):
    x = numbers(2, 3, 4, dtype=dtype)
    exact = 0.5 * wide(x)
    y = kokkosnn.softmax(x, 1, scale=0.5)
    assert y.dtype == dtype
    close(y, softmax(exact, 1), dtype)
    log_y = kokkosnn.log_softmax(x, 1, scale=0.5)
    close(log_y, np.log(softmax(exact, 1)), dtype)
    lse = kokkosnn.logsumexp(x, 1, scale=0.5)
    close(lse, logsumexp(exact, 1), dtype)

    dy, dlse = numbers(2, 3, 4, dtype=dtype, seed=1), numbers(2, 4, dtype=dtype, seed=2)
    y64, dy64 = wide(y), wide(dy)
    close(
        kokkosnn.softmax_backward(y, dy, 1, scale=0.5), 0.5 * y64 * (dy64 - (y64 * dy64).sum(1, keepdims=True)), dtype
    )
    expected = 0.5 * (dy64 - np.exp(wide(log_y)) * dy64.sum(1, keepdims=True))
    close(kokkosnn.log_softmax_backward(log_y, dy, 1, scale=0.5), expected, dtype)
    expected = 0.5 * wide(dlse)[:, None] * np.exp(exact - wide(lse)[:, None])
    close(kokkosnn.logsumexp_backward(x, lse, dlse, 1, scale=0.5), expected, dtype)


@each_type
def test_masks(dtype):
    x, dy = numbers(2, 3, 5, 5, dtype=dtype), numbers(2, 3, 5, 5, dtype=dtype, seed=1)
    bias, sinks = numbers(3, 1, 5, dtype=dtype, seed=2), numbers(3, dtype=np.float32, seed=3)
    if dtype == np.float64:
        sinks = sinks.astype(dtype)
    query, key = np.arange(5)[:, None], np.arange(5)
    lengths = np.array([5, 4])
    mask = Mask(bias=bias, causal=True, causal_offset=2, window=(3, None), lengths=lengths)
    allowed = (key <= query + 2) & (key >= query - 3) & (key < lengths[:, None, None, None])
    z = np.where(allowed, 0.5 * wide(x) + wide(bias), -np.inf)
    z = np.concatenate([z, np.broadcast_to(wide(sinks)[:, None, None], (2, 3, 5, 1))], -1)
    y = kokkosnn.masked_softmax(x, mask, scale=0.5, sinks=sinks)
    close(y, softmax(z)[..., :-1], dtype)

    y64, dy64 = wide(y), np.where(allowed, wide(dy), 0)
    dot = (y64 * dy64).sum(-1, keepdims=True)
    close(kokkosnn.masked_softmax_backward(y, dy, mask, scale=0.5), 0.5 * y64 * (dy64 - dot), dtype)
    dz = (y64 * (dy64 - dot)).sum((0, 2), keepdims=True)[0]
    close(kokkosnn.masked_softmax_bias_backward(y, dy, (3, 1, 5), mask), dz, dtype)
    dsinks = -((1 - y64.sum(-1)) * dot[..., 0]).sum((0, 2))
    assert np.allclose(kokkosnn.masked_softmax_sinks_backward(y, dy, mask).astype(np.float64), dsinks, atol=0.1)

    log_y, lse = kokkosnn.masked_log_softmax(x, mask, scale=0.5, sinks=sinks), logsumexp(z)
    close(log_y, np.where(allowed, z[..., :-1] - lse[..., None], -np.inf), dtype)
    close(kokkosnn.masked_logsumexp(x, mask, scale=0.5, sinks=sinks), lse, dtype)
    expected = np.where(allowed, 0.5 * (dy64 - np.exp(wide(log_y)) * dy64.sum(-1, keepdims=True)), 0)
    close(kokkosnn.masked_log_softmax_backward(log_y, dy, mask, scale=0.5), expected, dtype)

    offsets = np.array([0, 2])
    moved = np.where(key <= query + offsets[:, None, None, None], wide(x), -np.inf)
    close(kokkosnn.masked_softmax(x, Mask(causal=True, diagonal_offsets=offsets)), softmax(moved), dtype)

    scales = np.array([0.5, -2], np.float32)
    scaled = wide(x) * scales[:, None, None, None]
    close(kokkosnn.masked_softmax(x, Mask(row_scales=scales)), softmax(scaled), dtype)

    boolean = np.tri(5, dtype=bool)
    close(kokkosnn.masked_softmax(x, boolean), softmax(np.where(boolean, wide(x), -np.inf)), dtype)


@each_type
def test_several_axes(dtype):
    x = numbers(3, 4, 5, dtype=dtype)
    flat = wide(x).reshape(3, 20)
    close(kokkosnn.softmax(x, (1, 2)), softmax(flat).reshape(3, 4, 5), dtype)
    close(kokkosnn.logsumexp(x, (-1, -2)), logsumexp(flat), dtype)
    with pytest.raises(ValueError, match="neighbours"):
        kokkosnn.softmax(x, (0, 2))


@each_type
def test_cross_entropy(dtype):
    logits, labels = numbers(4, 5, dtype=dtype), np.array([1, 4, -100, 0])
    exact, kept = wide(logits), labels >= 0
    losses = logsumexp(exact) - exact[np.arange(4), labels.clip(0)]
    loss, lse = kokkosnn.cross_entropy(logits, labels)
    assert loss.shape == () and loss.dtype == (np.float64 if dtype == np.float64 else np.float32)
    close(loss, losses[kept].mean(), dtype)
    close(lse, logsumexp(exact), dtype)
    close(kokkosnn.cross_entropy(logits, labels, reduction="none")[0], np.where(kept, losses, 0), dtype)
    classes_first = np.ascontiguousarray(logits.T)
    first_loss, first_lse = kokkosnn.cross_entropy(classes_first, labels, axis=0, reduction="none")
    close(first_loss, np.where(kept, losses, 0), dtype)
    close(first_lse, logsumexp(exact), dtype)

    predicted = np.full(4, -7, np.int32)
    kokkosnn.cross_entropy(logits, labels, predicted=predicted)
    assert (predicted == exact.argmax(-1)).all()
    accumulators = np.float64 if dtype == np.float64 else np.float32
    label_logits = exact[np.arange(4), labels.clip(0)].astype(accumulators)
    parts = np.stack([kokkosnn.logsumexp(np.ascontiguousarray(part)) for part in (logits[:, :2], logits[:, 2:])])
    merged = kokkosnn.logsumexp(parts.astype(accumulators), axis=0)
    close(kokkosnn.cross_entropy_from_lse(merged, label_logits, labels), losses[kept].mean(), dtype)

    targets = np.array([[0.5, 0.25, 0.25, 0, 0]] * 4).astype(dtype)
    soft = -(wide(targets) * (exact - logsumexp(exact)[:, None])).sum(-1)
    close(kokkosnn.soft_cross_entropy(logits, targets, reduction="none")[0], soft, dtype)
    both = kokkosnn.soft_cross_entropy_with_gradient(logits, targets, gradient_scale=2)
    close(both[0], soft.mean(), dtype)
    close(both[1], (softmax(exact) - wide(targets)) / 2, dtype)

    gradient = (softmax(exact) - np.eye(5)[labels.clip(0)]) * kept[:, None] / kept.sum()
    dloss = np.array(2, loss.dtype)
    close(kokkosnn.cross_entropy_backward(logits, labels, lse, dloss), 2 * gradient, dtype)
    both = kokkosnn.cross_entropy_with_gradient(logits, labels, gradient_scale=2)
    close(both[0], losses[kept].mean(), dtype)
    close(both[1], 2 * gradient, dtype)


@each_type
def test_norms(dtype):
    x, dy = numbers(3, 4, dtype=dtype), numbers(3, 4, dtype=dtype, seed=1)
    weight, bias = numbers(4, dtype=dtype, seed=2), numbers(4, dtype=dtype, seed=3)
    exact, w, g = wide(x), wide(weight), wide(dy) * wide(weight)

    rstd = 1 / np.sqrt((exact**2).mean(-1, keepdims=True) + 0.1)
    y, left = kokkosnn.rms_norm(x, weight, 0.1)
    close(y, exact * rstd * w, dtype)
    close(left, rstd[:, 0], dtype)
    dx = rstd * (g - exact * rstd**2 * (g * exact).mean(-1, keepdims=True))
    close(kokkosnn.rms_norm_backward(x, left, dy, weight), dx, dtype)

    mean = exact.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt(exact.var(-1, keepdims=True) + 0.1)
    h = (exact - mean) * rstd
    y, left_mean, left = kokkosnn.layer_norm(x, weight, bias, 0.1)
    close(y, h * w + wide(bias), dtype)
    close(left_mean, mean[:, 0], dtype)
    dx = rstd * (g - g.mean(-1, keepdims=True) - h * (g * h).mean(-1, keepdims=True))
    dweight, dbias = np.empty_like(weight), np.empty_like(bias)
    got = kokkosnn.layer_norm_backward(x, left_mean, left, dy, weight, dweight=dweight, dbias=dbias)
    close(got, dx, dtype)
    close(dweight, (wide(dy) * h).sum(0), dtype)
    close(dbias, wide(dy).sum(0), dtype)


@each_type
@pytest.mark.parametrize("codes", ["int8", "float8_e4m3fn"])
def test_results_in_8_bits(dtype, codes):
    x, weight, bias = (numbers(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate([(3, 40), (40,), (40,)]))
    plain = {
        "softmax": wide(softmax(wide(x))),
        "rms_norm": wide(x) / np.sqrt((wide(x) ** 2).mean(-1, keepdims=True) + 1e-6) * wide(weight),
        "layer_norm": wide(kokkosnn.layer_norm(wide(x), wide(weight), wide(bias))[0]),
    }
    columns = {"softmax": (), "rms_norm": (weight,), "layer_norm": (weight, bias)}
    for name, exact in plain.items():
        y, scales = getattr(kokkosnn, "quantized_" + name)(x, *columns[name], dtype=codes)
        assert y.dtype == np.dtype(codes) and scales.dtype == np.float32
        largest = 127 if codes == "int8" else 448
        assert np.allclose(scales, np.abs(exact).max(-1) / largest, rtol=1e-5)
        steps = 0.501 if codes == "int8" else 0.001 + np.maximum(np.abs(exact / scales[:, None]) / 16, 2.0**-10)
        assert (np.abs(wide(y) - exact / scales[:, None]) <= steps).all()
    y, scales = kokkosnn.quantized_rms_norm(x, weight, dtype="float8_e4m3fn", has_scales=False)
    assert scales is None
    assert np.allclose(wide(y), plain["rms_norm"], rtol=0.07, atol=2.0**-9)


@each_type
def test_norms_with_a_residual(dtype):
    x, residual, dy = (numbers(3, 4, dtype=dtype, seed=seed) for seed in range(3))
    weight, bias = numbers(4, dtype=dtype, seed=3), numbers(4, dtype=dtype, seed=4)

    y, total, rstd = kokkosnn.add_rms_norm(x, residual, weight, 0.1)
    close(total, wide(x) + wide(residual), dtype)
    close(y, wide(kokkosnn.rms_norm(total, weight, 0.1)[0]), dtype)
    dx = wide(kokkosnn.rms_norm_backward(total, rstd, dy, weight))
    close(kokkosnn.add_rms_norm_backward(total, rstd, dy, residual, weight), dx + wide(residual), dtype)

    y, total, mean, rstd = kokkosnn.add_layer_norm(x, residual, weight, bias, 0.1)
    close(y, wide(kokkosnn.layer_norm(total, weight, bias, 0.1)[0]), dtype)
    dx = wide(kokkosnn.layer_norm_backward(total, mean, rstd, dy, weight))
    close(kokkosnn.add_layer_norm_backward(total, mean, rstd, dy, residual, weight), dx + wide(residual), dtype)


@each_type
@pytest.mark.parametrize("heads", [(), (3,)])
def test_ragged_rows(dtype, heads):
    x, dy = numbers(9, *heads, dtype=dtype), numbers(9, *heads, dtype=dtype, seed=1)
    offsets = np.array([0, 4, 9], np.int32)

    def by_row(function, *arrays):
        rows = [slice(0, 4), slice(4, 9)]
        return np.concatenate([function(*(wide(a)[row] for a in arrays)) for row in rows])

    y, log_y = kokkosnn.segmented_softmax(x, offsets), kokkosnn.segmented_log_softmax(x, offsets)
    close(y, by_row(lambda x: softmax(x, 0), x), dtype)
    close(log_y, by_row(lambda x: np.log(softmax(x, 0)), x), dtype)
    close(kokkosnn.segmented_logsumexp(x, offsets), by_row(lambda x: logsumexp(x, 0)[None], x), dtype)
    close(
        kokkosnn.segmented_softmax_backward(y, dy, offsets),
        by_row(lambda y, dy: y * (dy - (y * dy).sum(0)), y, dy),
        dtype,
    )
    close(
        kokkosnn.segmented_log_softmax_backward(log_y, dy, offsets),
        by_row(lambda y, dy: dy - np.exp(y) * dy.sum(0), log_y, dy),
        dtype,
    )


    lse = kokkosnn.segmented_logsumexp(x, offsets)
    expected = np.repeat(wide(dy)[:2], [4, 5], 0) * np.exp(wide(x) - np.repeat(wide(lse), [4, 5], 0))
    close(kokkosnn.segmented_logsumexp_backward(x, lse, dy[:2], offsets), expected, dtype)

    order = np.array([5, 0, 7, 8, 1, 2, 6, 4, 3])  # the same rows by an index
    index = np.repeat(np.array([0, 1]), [4, 5])[order]
    close(kokkosnn.segmented_softmax(x[order], index, segments=2), wide(y)[order], dtype)
    close(kokkosnn.segmented_logsumexp(x[order], index, segments=2), wide(lse), dtype)
    dx = kokkosnn.segmented_softmax_backward(y, dy, offsets)
    close(kokkosnn.segmented_softmax_backward(y[order], dy[order], index, segments=2), wide(dx)[order], dtype)


def attend(q, k, v, scale, bias=0.0, allowed=True):
    """o and lse, for k and v of as many heads as q has."""
    z = np.where(allowed, scale * q @ np.swapaxes(k, -1, -2) + bias, -np.inf)
    return softmax(z) @ v, logsumexp(z)


@each_type
def test_attention(dtype):
    q, dout = numbers(2, 4, 5, 6, dtype=dtype), numbers(2, 4, 5, 3, dtype=dtype, seed=3)
    k, v = numbers(2, 2, 7, 6, dtype=dtype, seed=1), numbers(2, 2, 7, 3, dtype=dtype, seed=2)
    bias, lengths = numbers(4, 5, 7, dtype=dtype, seed=4), np.array([7, 4])
    query, key = np.arange(5)[:, None], np.arange(7)
    allowed = (key <= query + 2) & (key < lengths[:, None, None, None])
    q64, dout64 = wide(q), wide(dout)
    k64, v64 = (np.repeat(wide(x), 2, axis=1) for x in (k, v))
    mask = Mask(causal=True, causal_offset=2, lengths=lengths, bias=bias)
    o, lse = kokkosnn.attention(q, k, v, mask, scale=0.5)
    expected, expected_lse = attend(q64, k64, v64, 0.5, wide(bias), allowed)
    close(o, expected, dtype)
    close(lse, expected_lse, np.float64 if dtype == np.float64 else np.float32)
    by_offsets = Mask(causal=True, diagonal_offsets=np.array([2, 2]), lengths=lengths, bias=bias)
    assert np.array_equal(kokkosnn.attention(q, k, v, by_offsets, scale=0.5)[0], o)
    plain, _ = kokkosnn.attention(q, k, v)
    close(plain, attend(q64, k64, v64, 6**-0.5)[0], dtype)

    p = np.where(allowed, np.exp(0.5 * q64 @ np.swapaxes(k64, -1, -2) + wide(bias) - expected_lse[..., None]), 0)
    dz = p * (dout64 @ np.swapaxes(v64, -1, -2) - (expected * dout64).sum(-1, keepdims=True))
    dq, dk, dv = kokkosnn.attention_backward(q, k, v, o, lse, dout, mask, 0.5)
    tolerance = 20 * TYPES[dtype]  # sums of many terms, from an o of dtype
    dbias = kokkosnn.attention_bias_backward(q, k, v, o, lse, dout, mask, 0.5)
    assert np.allclose(wide(dbias), dz.sum(0), atol=tolerance)
    sinks = np.full(4, 0.5, dtype=np.float32)
    o_sinks, lse_sinks = kokkosnn.attention(q, k, v, mask, scale=0.5, sinks=sinks)
    dsinks = kokkosnn.attention_sinks_backward(o_sinks, lse_sinks, dout, sinks)
    expected_dsinks = -(np.exp(0.5 - wide(lse_sinks)) * (wide(o_sinks) * dout64).sum(-1)).sum((0, 2))
    assert np.allclose(dsinks, expected_dsinks, atol=tolerance + 1e-5)
    assert np.allclose(wide(dq), 0.5 * dz @ k64, atol=tolerance)
    for got, of_heads in ((dk, 0.5 * np.swapaxes(dz, -1, -2) @ q64), (dv, np.swapaxes(p, -1, -2) @ dout64)):
        assert np.allclose(wide(got), of_heads.reshape(2, 2, 2, 7, -1).sum(2), atol=tolerance)

    turned = [np.ascontiguousarray(np.swapaxes(x, 1, 2)) for x in (q, k, v)]
    o_turned, lse_turned = kokkosnn.attention(*turned, mask, scale=0.5, axes="batch_sequence_head_dim")
    assert np.array_equal(np.swapaxes(o_turned, 1, 2), o) and np.array_equal(lse_turned, lse)


@each_type
def test_graph_attention(dtype):
    row_map, entries = np.array([0, 2, 2, 5]), np.array([3, 1, 0, 1, 2], dtype=np.int32)
    q, dout = numbers(3, 4, 6, dtype=dtype), numbers(3, 4, 3, dtype=dtype, seed=3)
    k, v = numbers(4, 2, 6, dtype=dtype, seed=1), numbers(4, 2, 3, dtype=dtype, seed=2)
    bias = numbers(5, 4, dtype=dtype, seed=4)
    o, lse = kokkosnn.graph_attention(q, k, v, row_map, entries, bias, scale=0.5, masked_row="zero")
    dq, dk, dv, dbias = kokkosnn.graph_attention_backward(q, k, v, row_map, entries, o, lse, dout, bias, 0.5)
    assert not np.any(wide(o)[1]) and not np.any(wide(dq)[1]) and np.all(np.isneginf(wide(lse)[1]))
    k64, v64 = (np.repeat(wide(x), 2, axis=1) for x in (k, v))
    tolerance, dv64 = 20 * TYPES[dtype], np.zeros((4, 4, 3))
    for node in (0, 2):
        edges = slice(row_map[node], row_map[node + 1])
        keys, values = k64[entries[edges]], v64[entries[edges]]  # (edge, head, dim)
        z = 0.5 * np.einsum("hd,ehd->he", wide(q)[node], keys) + wide(bias)[edges].T
        p = softmax(z)
        close(o[node], np.einsum("he,ehd->hd", p, values), dtype)
        dp = np.einsum("hd,ehd->he", wide(dout)[node], values)
        dz = p * (dp - (wide(o)[node] * wide(dout)[node]).sum(-1, keepdims=True))
        assert np.allclose(wide(dbias)[edges], dz.T, atol=tolerance)
        assert np.allclose(wide(dq)[node], 0.5 * np.einsum("he,ehd->hd", dz, keys), atol=tolerance)
        np.add.at(dv64, entries[edges], p.T[..., None] * wide(dout)[node])
    assert np.allclose(wide(dv), dv64.reshape(4, 2, 2, 3).sum(2), atol=tolerance)
    assert wide(dk).shape == k.shape


@each_type
def test_merge_attention(dtype):
    parts, lse_parts = numbers(3, 2, 4, 5, 6, dtype=dtype), numbers(3, 2, 4, 5, seed=1)
    lse_parts = lse_parts.astype(np.float64 if dtype == np.float64 else np.float32)
    o, lse = kokkosnn.merge_attention(parts, lse_parts)
    expected = logsumexp(np.moveaxis(wide(lse_parts), 0, -1))
    close(lse, expected, lse_parts.dtype.type)
    close(o, (np.exp(wide(lse_parts) - expected)[..., None] * wide(parts)).sum(0), dtype)


@each_type
def test_attention_dropout(dtype):
    q, k = numbers(2, 4, 50, 6, dtype=dtype), numbers(2, 4, 40, 6, dtype=dtype, seed=1)
    v, dout = np.broadcast_to(np.eye(40, dtype=dtype), (2, 4, 40, 40)), numbers(2, 4, 50, 40, dtype=dtype, seed=3)
    dropout = kokkosnn.Dropout(0.25, seed=2**63 + 5, offset=3)
    weights, _ = kokkosnn.attention(q, k, v)
    dropped, lse = kokkosnn.attention(q, k, v, dropout=dropout)  # as v is the identity
    is_kept = wide(dropped) != 0
    assert abs(1 - is_kept.mean() - 0.25) < 0.02
    close(dropped, np.where(is_kept, wide(weights) / 0.75, 0), dtype)
    assert np.array_equal(kokkosnn.attention(q, k, v, dropout=dropout)[0], dropped)
    other, _ = kokkosnn.attention(q, k, v, dropout=dropout._replace(offset=4))
    assert not np.array_equal(wide(other) != 0, is_kept)
    _, _, dv = kokkosnn.attention_backward(q, k, v, dropped, lse, dout, dropout=dropout)
    assert np.allclose(wide(dv), np.swapaxes(wide(dropped), -1, -2) @ wide(dout), atol=50 * TYPES[dtype])
    with pytest.raises(ValueError, match="probability"):
        kokkosnn.attention(q, k, v, dropout=kokkosnn.Dropout(1.0))


@each_type
def test_packed_attention(dtype):
    offsets, starts = np.array([0, 4, 4, 9]), np.array([0, 4, 6, 11], dtype=np.int32)
    q, dout = numbers(9, 4, 6, dtype=dtype), numbers(9, 4, 3, dtype=dtype, seed=3)
    k, v = numbers(11, 2, 6, dtype=dtype, seed=1), numbers(11, 2, 3, dtype=dtype, seed=2)
    options = {"mask": Mask(causal=True), "scale": 0.5, "diagonal": "last"}
    o, lse = kokkosnn.packed_attention(q, k, v, offsets, starts, **options)
    gradients = kokkosnn.packed_attention_backward(q, k, v, offsets, starts, o, lse, dout, **options)

    def alone(x, begin, end):
        return np.ascontiguousarray(np.swapaxes(x[None, begin:end], 1, 2))

    for s in (0, 2):
        queries, keys = offsets[s : s + 2], starts[s : s + 2]
        qs, ks, vs, douts = alone(q, *queries), alone(k, *keys), alone(v, *keys), alone(dout, *queries)
        of_one, lse_of_one = kokkosnn.attention(qs, ks, vs, **options)
        assert np.array_equal(alone(o, *queries), of_one)
        assert np.array_equal(np.swapaxes(lse[None, slice(*queries)], 1, 2), lse_of_one)
        wanted = kokkosnn.attention_backward(qs, ks, vs, of_one, lse_of_one, douts, **options)
        for got, want, place in zip(gradients, wanted, (queries, keys, keys)):
            assert np.array_equal(alone(got, *place), want)
    assert not np.any(wide(gradients[1])[4:6]), "keys of a sequence without queries"


@each_type
def test_matrix_products(dtype):
    a, b = numbers(3, 4, 5, dtype=dtype), numbers(6, 5, dtype=dtype, seed=1)
    c = kokkosnn.matmul(a, b.T)
    product = wide(a) @ wide(b).T
    tolerance = 10 * TYPES[dtype]
    assert c.dtype == dtype and np.allclose(wide(c), product, rtol=tolerance, atol=tolerance)
    before = wide(c).copy()
    assert kokkosnn.matmul(a, b.T, c, alpha=0.5, beta=2) is c
    assert np.allclose(wide(c), 0.5 * product + 2 * before, rtol=tolerance, atol=tolerance)

    dc = numbers(3, 4, 6, dtype=dtype, seed=2)
    da, db = kokkosnn.matmul_backward(dc, a, b.T)
    assert np.allclose(wide(da), wide(dc) @ wide(b), rtol=tolerance, atol=tolerance)
    summed = np.einsum("smk,smn->kn", wide(a), wide(dc))
    assert db.shape == (5, 6) and np.allclose(wide(db), summed, rtol=tolerance, atol=4 * tolerance)

    x, sources, offsets = a[0], np.array([3, 0, 0, 2, 1]), np.array([0, 2, 2, 5], np.int32)
    messages = wide(x)[sources] @ wide(b).T
    assert np.allclose(wide(kokkosnn.matmul(x, b.T, rows=sources)), messages, rtol=tolerance, atol=tolerance)
    sums = [messages[:2].sum(0), messages[2:2].sum(0), messages[2:].sum(0)]
    got = kokkosnn.matmul(x, b.T, rows=sources, row_offsets=offsets)
    assert np.allclose(wide(got), sums, rtol=tolerance, atol=3 * tolerance)


@each_type
def test_the_rotary_embedding(dtype):
    x = numbers(2, 5, 3, 8, dtype=dtype)
    table_type = np.float64 if dtype == np.float64 else np.float32
    angles = (np.arange(5) + 3)[:, None] * 500.0 ** (-np.arange(4) / 4)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    a, b = wide(x)[..., :4], wide(x)[..., 4:]
    expected = np.concatenate([a * cos - b * sin, b * cos + a * sin], -1)
    close(kokkosnn.rope(x, theta=500.0, position_offset=3), expected, dtype)
    tables = [np.ascontiguousarray(table[:, 0], table_type) for table in (cos, sin)]
    close(kokkosnn.rope(x, *tables), expected, dtype)
    backwards = np.arange(4, -1, -1)
    close(kokkosnn.rope(x[:, ::-1], *tables, backwards), expected[:, ::-1], dtype)
    y = kokkosnn.rope(x, *tables)
    assert np.allclose(wide(kokkosnn.rope_backward(y, *tables)), wide(x), atol=4 * TYPES[dtype])
    a, b = wide(x)[..., 0::2], wide(x)[..., 1::2]
    pairs = np.stack([a * cos - b * sin, b * cos + a * sin], -1).reshape(x.shape)
    close(kokkosnn.rope(x, *tables, form="interleaved"), pairs, dtype)


@each_type
def test_rms_norm_rope(dtype):
    x, weight = numbers(2, 5, 3, 8, dtype=dtype), numbers(3, 8, dtype=dtype, seed=1)
    for each in (weight[0], weight):
        normed = wide(x) / np.sqrt((wide(x) ** 2).mean(-1, keepdims=True) + 0.1) * wide(each)
        expected = kokkosnn.rope(normed, rotary_dims=4, form="interleaved", position_offset=3)
        got = kokkosnn.rms_norm_rope(x, each, epsilon=0.1, rotary_dims=4, form="interleaved", position_offset=3)
        assert np.allclose(wide(got), expected, atol=4 * TYPES[dtype])


@each_type
def test_elementwise_operators(dtype):
    x, up, dy = (numbers(3, 4, dtype=dtype, seed=seed) for seed in range(3))
    row = numbers(4, dtype=dtype, seed=3)
    x64, up64, dy64 = wide(x), wide(up), wide(dy)
    close(kokkosnn.add(row, x), x64 + wide(row), dtype)
    close(kokkosnn.mul(x, row), x64 * wide(row), dtype)
    s = 1 / (1 + np.exp(-x64))
    silu_slope = s * (1 + x64 * (1 - s))
    close(kokkosnn.silu(x), x64 * s, dtype)
    close(kokkosnn.silu_backward(x, dy), dy64 * silu_slope, dtype)
    close(kokkosnn.swiglu(x, up), x64 * s * up64, dtype)
    dgate, dup = kokkosnn.swiglu_backward(x, up, dy)
    close(dgate, dy64 * up64 * silu_slope, dtype)
    close(dup, dy64 * x64 * s, dtype)

    normal = 0.5 * (1 + np.vectorize(math.erf)(x64 / 2**0.5))
    u = (2 / np.pi) ** 0.5 * (x64 + 0.044715 * x64**3)
    slope_of_u = (2 / np.pi) ** 0.5 * (1 + 3 * 0.044715 * x64**2)
    forms = {
        "none": (normal, np.exp(-(x64**2) / 2) / (2 * np.pi) ** 0.5),
        "tanh": (0.5 * (1 + np.tanh(u)), 0.5 * slope_of_u / np.cosh(u) ** 2),
    }
    for form, (f, derivative) in forms.items():
        slope = f + x64 * derivative
        close(kokkosnn.gelu(x, form), x64 * f, dtype)
        close(kokkosnn.gelu_backward(x, dy, form), dy64 * slope, dtype)
        close(kokkosnn.geglu(x, up, form), x64 * f * up64, dtype)
        dgate, dup = kokkosnn.geglu_backward(x, up, dy, form)
        close(dgate, dy64 * up64 * slope, dtype)
        close(dup, dy64 * x64 * f, dtype)
    with pytest.raises(ValueError, match="approximate must be one of none, tanh"):
        kokkosnn.gelu(x, "erf")


@each_type
def test_casts_are_numpys(dtype):
    x = numbers(3, 4, dtype=dtype)
    for to in TYPES:
        y = kokkosnn.cast(x, np.dtype(to).name)
        assert y.dtype == to and np.array_equal(wide(y), wide(x.astype(to)))


@each_type
def test_sums_over_rows(dtype):
    x = numbers(3, 4, 5, dtype=dtype)
    close(kokkosnn.column_sums(x, 1), wide(x).sum((0, 2)), dtype)
    if dtype not in (np.float64, np.float32):
        close(kokkosnn.column_sums(x, dtype="float32"), wide(x).sum((0, 1)), np.float32)


# --- arrays ---


def test_arrays_of_any_strides_are_taken_where_they_are():
    x = numbers(6, 8)
    for view in (x.T, x[::2, ::3], x[::-1, ::-1], np.broadcast_to(x[0], (3, 8)), np.asfortranarray(x)):
        close(kokkosnn.softmax(view), softmax(view), np.float64)
    out = np.zeros((6, 16))
    assert kokkosnn.softmax(x, out=out[:, ::2]).base is out
    close(out[:, ::2], softmax(x), np.float64)
    assert not out[:, 1::2].any()


def test_results_may_go_over_the_input_or_to_another_type():
    x = numbers(3, 4)
    expected = softmax(x)
    assert kokkosnn.softmax(x, out=x) is x
    close(x, expected, np.float64)
    half = numbers(3, 4, dtype=np.float16)
    close(kokkosnn.softmax(half, out=np.empty((3, 4), np.float32)), softmax(wide(half)), np.float32)


def test_options_may_be_numbers_of_any_kind():
    x = numbers(3, 4)
    expected = softmax(0.5 * x)
    for scale in (0.5, np.float32(0.5), np.array(0.5)):
        for axis in (-1, 1, np.int64(1), (1,)):
            for _ in range(2):  # options of plain numbers are kept
                close(kokkosnn.softmax(x, axis, scale=scale), expected, np.float64)
    close(kokkosnn.softmax(x, scale=2), softmax(2 * x), np.float64)
    close(kokkosnn.softmax(x, batch_invariant=True), softmax(x), np.float64)


def test_arrays_of_classes_made_from_numpys_are_taken():
    class Named(np.ndarray):
        pass

    x = numbers(3, 4)
    close(np.asarray(kokkosnn.softmax(x.view(Named))), softmax(x), np.float64)
    close(kokkosnn.softmax(x, out=x.copy().view(Named)).view(np.ndarray), softmax(x), np.float64)


def test_arrays_that_must_not_be_written_are_read():
    x = numbers(3, 4)
    x.flags.writeable = False
    close(kokkosnn.softmax(x), softmax(x), np.float64)
    with pytest.raises(ValueError, match="out must not be an array that cannot be written"):
        kokkosnn.softmax(x, out=x)


def test_empty_arrays_are_taken():
    assert kokkosnn.softmax(np.empty((0, 4))).shape == (0, 4)
    assert np.isneginf(kokkosnn.logsumexp(np.empty((2, 0)))).all()


# --- errors ---


def test_wrong_arguments_have_the_librarys_message_and_write_nothing():
    x, out = numbers(2, 3), np.full((2, 3), -1.0)
    for message, wrong in [
        (r"KokkosNN::softmax: axis 2 is out of range for rank 2", {"axis": 2}),
        (r"KokkosNN::softmax: \|scale\| must be within 2\^-100 to 2\^100, but scale is 0", {"scale": 0.0}),
    ]:
        with pytest.raises(ValueError, match=message):
            kokkosnn.softmax(x, out=out, **wrong)
    assert (out == -1).all()
    with pytest.raises(ValueError, match=r"x and y must have the same extents, but x is \(2, 3\) and y is \(3, 2\)"):
        kokkosnn.softmax(x, out=np.empty((3, 2)))
    with pytest.raises(ValueError, match="y must hold f64, but holds f32"):
        kokkosnn.softmax(x, out=np.empty((2, 3), np.float32))
    with pytest.raises(ValueError, match="the label of row 1 is 7"):
        kokkosnn.cross_entropy(x, np.array([0, 7]), check_labels=True)
    with pytest.raises(ValueError, match="masked_row must be one of nan, zero, but is 'one'"):
        kokkosnn.softmax(x, masked_row="one")
    with pytest.raises(ValueError, match="a host has no streams"):
        kokkosnn.softmax(x, stream=1)


def test_what_is_no_array_of_numbers_is_a_type_error():
    with pytest.raises((TypeError, AttributeError)):
        kokkosnn.softmax([1.0, 2.0])
    with pytest.raises(TypeError, match="other byte order"):
        kokkosnn.softmax(numbers(2, 3).astype(">f8"), out=np.empty((2, 3)))
    with pytest.raises(TypeError, match="arrays of complex128 are not supported"):
        kokkosnn.softmax(numbers(2, 3).astype(complex))
    with pytest.raises(TypeError, match="axis must be a number"):
        kokkosnn.softmax(numbers(2, 3), axis="rows")
    with pytest.raises(TypeError, match="there is no option spin"):
        _core.softmax(None, numbers(2, 3), numbers(2, 3), {"spin": 1})
    record = np.zeros((3, 2), dtype=[("flag", "i1"), ("value", "f4")])["value"]
    with pytest.raises(ValueError, match="multiples of its elements' size"):
        kokkosnn.softmax(record)


# --- threads ---


def test_other_threads_run_during_a_call():
    x = numbers(1 << 12, 1 << 12, dtype=np.float32)
    y = np.empty_like(x)
    for _ in range(50):
        times, done = [], threading.Event()

        def call(times=times, done=done):
            times.append(time.perf_counter())
            kokkosnn.log_softmax(x, out=y)
            times.append(time.perf_counter())
            done.set()

        seen = []
        thread = threading.Thread(target=call)
        thread.start()
        while not done.is_set():
            seen.append(time.perf_counter())
        thread.join()
        begin, end = times
        if any(begin + (end - begin) / 4 < t < end - (end - begin) / 4 for t in seen):
            return
    pytest.fail("no other thread ran in the middle of a call")


def test_threads_may_call_at_once():
    x = numbers(64, 64)
    results = [None] * 4

    def call(k):
        for _ in range(20):
            results[k] = kokkosnn.softmax(x)

    threads = [threading.Thread(target=call, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(result, results[0]) for result in results)


# --- the package ---


def functions_of_c():
    header = (ROOT / "include/KokkosNN/kokkosnn.h").read_text()
    names = set(re.findall(r"kokkosnn_status\s+kokkosnn_(\w+)\(\s*const kokkosnn_exec", header))
    return names - {"release_stream"}


def test_every_c_function_is_there_and_documented():
    names = functions_of_c()
    assert len(names) >= 43
    assert names <= set(kokkosnn.__all__)
    for name in names:
        function = getattr(kokkosnn, name)
        assert function.__doc__ and re.match(r"\(?\w*[.(]|-|scale", function.__doc__), name
        assert "stream" in inspect.signature(function).parameters, name


def test_stubs_name_what_the_extension_has():
    stubs = set(re.findall(r"^def (\w+)", (ROOT / "python/kokkosnn/_core.pyi").read_text(), re.M))
    assert stubs == {name for name in dir(_core) if not name.startswith("_")}


def test_configuration():
    configuration = kokkosnn.configuration()
    assert set(configuration) == {"version", "kokkos", "backend", "compiler", "cpu_level"}
    assert configuration["version"] == kokkosnn.__version__
