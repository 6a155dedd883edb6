# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays of JAX, as of any library that speaks DLPack and whose arrays are not to be written; and kokkosnn.jax."""

import jax
import jax.numpy as jnp
import kokkosnn
import numpy as np
import pytest
from kokkosnn import Dropout, Mask, _core

jax.config.update("jax_enable_x64", True)

PLATFORM, HANDLERS = _core.jax_handlers()
on_host = pytest.mark.skipif(PLATFORM in ("CUDA", "ROCM"), reason="this build of kokkosnn is for a GPU's arrays")
by_xla = pytest.mark.skipif(not HANDLERS, reason="SKIPPED: this build of kokkosnn has no handlers for JAX (no jaxlib)")
if HANDLERS:
    import kokkosnn.jax as knn


# --- arrays ---


@on_host
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float16, jnp.bfloat16])
def test_results_are_arrays_of_jax(dtype):
    x = jax.random.normal(jax.random.key(0), (3, 5)).astype(dtype)
    y = kokkosnn.softmax(x)
    assert isinstance(y, jax.Array) and y.dtype == x.dtype
    tolerance = 1e-6 if dtype == jnp.float32 else 1e-2
    assert np.allclose(y.astype(jnp.float32), jax.nn.softmax(x.astype(jnp.float32)), atol=tolerance)
    loss, lse = kokkosnn.cross_entropy(x, jnp.array([0, 4, 1]))
    assert isinstance(loss, jax.Array) and lse.shape == (3,)


def test_arrays_of_jax_are_not_written():
    x = jnp.ones((2, 3))
    with pytest.raises(ValueError, match="cannot be written"):
        kokkosnn.softmax(x, out=x)
    with pytest.raises(ValueError, match="cannot be written"):
        kokkosnn.cross_entropy(x, jnp.array([0, 1]), predicted=jnp.array([0, 0]))


# --- kokkosnn.jax ---


def numbers(*shape, dtype=jnp.float64, seed=0):
    return jax.random.normal(jax.random.key(seed), shape, jnp.float64).astype(dtype)


LABELS = jnp.array([1, 4, -100, 0])
WEIGHTS = jnp.array([1, 2, 0.5, 1, 3])
POSITIONS = jnp.array([2, 0, 3])
SLOPES = jnp.array([0.5, 0.25, 0.125, 1])
TABLES = (numbers(5, 3, seed=8), numbers(5, 3, seed=9))


def parts(**changes):
    """What attention's mask can have."""
    given = {"causal": True, "causal_offset": 2, "window": (3, None), "window_offset": 1, "alibi_offset": 1}
    given["boolean"] = jnp.arange(25).reshape(5, 5) % 7 != 3
    given["lengths"], given["alibi_slopes"] = jnp.array([5, 4]), SLOPES
    return Mask(**{**given, **changes})


def rows_attended(q, k, v, bias=0.0, axes=(0, 1, 2, 3), sinks=None, softcap=None, scale=None, allowed=True, kept=1):
    """Attention by jax.numpy."""
    q, k, v = (jnp.transpose(x, axes) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    z = jnp.einsum("bhqd,bhkd->bhqk", q, jnp.repeat(k, group, 1)) * (scale or q.shape[-1] ** -0.5)
    z = z if softcap is None else softcap * jnp.tanh(z / softcap)
    z = jnp.where(allowed, z + bias, -jnp.inf)
    if sinks is not None:
        z = jnp.concatenate([z, jnp.broadcast_to(sinks[:, None, None], (*z.shape[:-1], 1))], -1)
    o = (jax.nn.softmax(z, -1)[..., : k.shape[2]] * kept) @ jnp.repeat(v, group, 1)
    return jnp.transpose(o, axes)


def all_of_a_mask(q, k, v, bias, sinks, kept=1):
    query, key = np.arange(5)[:, None], np.arange(5)
    allowed = ((query * 5 + key) % 7 != 3) & (key <= query + 2) & (key - query - 1 >= -3)
    allowed = allowed & (key < np.array([5, 4]).reshape(2, 1, 1, 1))
    bias = bias - SLOPES[:, None, None] * np.abs(key - query - 1)
    return rows_attended(q, k, v, bias=bias, sinks=sinks, softcap=5.0, scale=0.5, allowed=allowed, kept=kept)


def causal(q, k, v):
    return rows_attended(q, k, v, axes=(0, 2, 1, 3), allowed=np.tril(np.ones((5, 5), bool)))


def smoothed(logits):
    z = 5 * jnp.tanh(logits / 5)
    lse = jax.nn.logsumexp(z, -1)
    label, counts = np.maximum(LABELS, 0), LABELS != -100
    picked = jnp.take_along_axis(z, label[:, None], -1)[:, 0]
    loss = 0.875 * WEIGHTS[label] * (lse - picked) + 0.125 / 5 * (WEIGHTS * (lse[:, None] - z)).sum(-1)
    return ((loss + 0.25 * WEIGHTS[label] * lse**2) * counts).sum() / (WEIGHTS[label] * counts).sum()


def rms(x, axis=-1, epsilon=0.1):
    return x / jnp.sqrt((x * x).mean(axis, keepdims=True) + epsilon)


def rotated(x, cos, sin, is_interleaved=False):
    a, b = (x[..., ::2], x[..., 1::2]) if is_interleaved else jnp.split(x, 2, -1)
    y = (a * cos - b * sin, b * cos + a * sin)
    return jnp.stack(y, -1).reshape(x.shape) if is_interleaved else jnp.concatenate(y, -1)


def rotated_by_theta(x):
    """Of the first 4 elements."""
    angles = POSITIONS[:, None, None] * 50.0 ** (-np.arange(2) / 2)
    return jnp.concatenate([rotated(x[..., :4], jnp.cos(angles), jnp.sin(angles)), x[..., 4:]], -1)


QKV = (numbers(2, 4, 5, 3), numbers(2, 2, 5, 3, seed=1), numbers(2, 2, 5, 2, seed=2))
OPTIONS = {"label_smoothing": 0.125, "z_loss": 0.25, "softcap": 5.0}

# Each holds a function of kokkosnn.jax, the same by jax.numpy, and their arrays, of which the first one has a batch.
CALLS = {
    "softmax": (lambda x: knn.softmax(x, 1, 0.5), lambda x: jax.nn.softmax(0.5 * x, 1), (numbers(2, 3, 4),)),
    "softmax of two axes": (
        lambda x: knn.softmax(x, (0, 1)),
        lambda x: jax.nn.softmax(x, (0, 1)),
        (numbers(2, 3, 4),),
    ),
    "log_softmax": (lambda x: knn.log_softmax(x, 0), lambda x: jax.nn.log_softmax(x, 0), (numbers(2, 3, 4),)),
    "logsumexp": (lambda x: knn.logsumexp(x, 1, 2.0), lambda x: jax.nn.logsumexp(2.0 * x, 1), (numbers(2, 3, 4),)),
    "cross_entropy": (lambda x: knn.cross_entropy(x, LABELS, WEIGHTS, **OPTIONS), smoothed, (numbers(4, 5),)),
    "cross_entropy of each row": (
        lambda x: knn.cross_entropy(x, LABELS % 5, axis=0, reduction="none"),
        lambda x: -jnp.take_along_axis(jax.nn.log_softmax(x, 0), LABELS[None] % 5, 0)[0],
        (numbers(5, 4),),
    ),
    "rms_norm": (
        lambda x, w: knn.rms_norm(x, w, 0.1, weight_offset=1.0),
        lambda x, w: rms(x) * (w + 1),
        (numbers(2, 3, 4), numbers(4, seed=1)),
    ),
    "rms_norm without a weight": (
        lambda x: knn.rms_norm(x, None, 0.1, 1),
        lambda x: rms(x, axis=1),
        (numbers(2, 3, 4),),
    ),
    "layer_norm": (
        lambda x, w, b: knn.layer_norm(x, w, b, 0.1, 1),
        lambda x, w, b: jax.nn.standardize(x, 1, epsilon=0.1) * w[:, None] + b[:, None],
        (numbers(2, 3, 4), numbers(3, seed=1), numbers(3, seed=2)),
    ),
    "layer_norm without a weight": (
        lambda x: knn.layer_norm(x, epsilon=0.1),
        lambda x: jax.nn.standardize(x, -1, epsilon=0.1),
        (numbers(2, 3, 4),),
    ),
    "attention": (
        lambda q, k, v, bias, sinks: knn.attention(q, k, v, parts(bias=bias), 0.5, softcap=5.0, sinks=sinks),
        all_of_a_mask,
        (*QKV, numbers(4, 1, 5, seed=4), numbers(4, seed=5)),
    ),
    "causal attention": (
        lambda q, k, v: knn.attention(q, k, v, Mask(causal=True), axes="batch_sequence_head_dim"),
        causal,
        tuple(x.swapaxes(1, 2) for x in QKV),
    ),
    "attention with sinks": (
        lambda q, k, v, sinks: knn.attention(q, k, v, sinks=sinks),
        lambda q, k, v, sinks: rows_attended(q, k, v, sinks=sinks),
        (*QKV, numbers(4, seed=5)),
    ),
    "matmul": (
        lambda a, b: knn.matmul(a, b, 0.5),
        lambda a, b: 0.5 * jnp.matmul(a, b),
        (numbers(2, 3, 4), numbers(4, 5, seed=1)),
    ),
    "rope": (
        lambda x: knn.rope(x, positions=POSITIONS, rotary_dims=4, theta=50.0),
        rotated_by_theta,
        (numbers(3, 2, 6),),
    ),
    "interleaved rope": (
        lambda x: knn.rope(x, *TABLES, position_offset=1, form="interleaved", sequence_axis=-2),
        lambda x: rotated(x, *(table[1:4] for table in TABLES), is_interleaved=True),
        (numbers(2, 3, 6),),
    ),
}
calls = pytest.mark.parametrize("name", CALLS)


def close(ours, theirs, tolerance=1e-12):
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype
        np.testing.assert_allclose(x.astype(jnp.float64), y.astype(jnp.float64), rtol=tolerance, atol=tolerance)


def gradient(function):
    """Gradients by all arrays of a number that all of the result makes."""

    def number(*arrays):
        y = function(*arrays)
        return (y * jnp.linspace(-1, 1, y.size, dtype=y.dtype).reshape(y.shape)).sum()

    return lambda *arrays: jax.grad(number, tuple(range(len(arrays))))(*arrays)


@by_xla
@calls
def test_values_and_gradients_are_jaxs(name):
    ours, theirs, arrays = CALLS[name]
    close(ours(*arrays), theirs(*arrays))
    close(jax.jit(gradient(ours))(*arrays), gradient(theirs)(*arrays))


@by_xla
@calls
def test_second_derivatives_are_jaxs(name):
    ours, theirs, arrays = CALLS[name]
    close(jax.jit(second(ours))(*arrays), second(theirs)(*arrays), 1e-10)


@by_xla
@calls
def test_vmap_is_jaxs(name):
    ours, theirs, arrays = CALLS[name]
    first = jnp.stack([arrays[0], 2 * arrays[0], arrays[0] - 1])
    all_of_them = [jnp.stack([x, x + 1, -x]) for x in arrays]
    one_of_them = (0,) + (None,) * (len(arrays) - 1)
    for function in (lambda f: f, gradient):
        close(jax.vmap(function(ours))(*all_of_them), jax.vmap(function(theirs))(*all_of_them))
        mapped = [jax.vmap(function(f), one_of_them)(first, *arrays[1:]) for f in (ours, theirs)]
        close(*mapped)


DROPOUT = Dropout(0.25, 2**63 + 5, 3)


def weights_kept(batch, keys=5):
    """What DROPOUT multiplies weights (batch, 4, 5, keys) by, from equal scores, as v is the identity."""
    q, k = np.zeros((batch, 4, 5, 1)), np.zeros((batch, 2, keys, 1))
    v = np.broadcast_to(np.eye(keys), (batch, 2, keys, keys))
    return (kokkosnn.attention(q, k, v, dropout=DROPOUT)[0] > 0) / 0.75


def second(function):
    """The gradient of a function of its gradients."""
    return gradient(lambda *arrays: jnp.concatenate([g.ravel() ** 2 for g in gradient(function)(*arrays)]))


DROPPED = {
    "alone": (
        lambda q, k, v: knn.attention(q, k, v, dropout=DROPOUT),
        lambda q, k, v: rows_attended(q, k, v, kept=weights_kept(q.shape[0])),
        QKV,
    ),
    "in another order of axes": (
        lambda q, k, v: knn.attention(q, k, v, axes="batch_sequence_head_dim", dropout=DROPOUT),
        lambda q, k, v: rows_attended(q, k, v, axes=(0, 2, 1, 3), kept=weights_kept(q.shape[0])),
        tuple(x.swapaxes(1, 2) for x in QKV),
    ),
    "with a mask": (
        lambda q, k, v, b, s: knn.attention(q, k, v, parts(bias=b), 0.5, softcap=5.0, sinks=s, dropout=DROPOUT),
        lambda q, k, v, b, s: all_of_a_mask(q, k, v, b, s, kept=weights_kept(q.shape[0])),
        (*QKV, numbers(4, 1, 5, seed=4), numbers(4, seed=5)),
    ),
}


@on_host
@by_xla
@pytest.mark.parametrize("name", DROPPED)
def test_dropout_of_attention_has_gradients(name):
    ours, theirs, arrays = DROPPED[name]
    close(ours(*arrays), theirs(*arrays))
    close(jax.jit(gradient(ours))(*arrays), gradient(theirs)(*arrays))
    close(jax.jit(second(ours))(*arrays), second(theirs)(*arrays), 1e-10)


@on_host
@by_xla
def test_dropout_of_attention_drops_other_weights_at_each_index_of_vmap():
    ours, theirs, arrays = DROPPED["alone"]
    stacked = [jnp.stack([x, x + 1, -x]) for x in arrays]
    merged = [x.reshape(-1, *x.shape[2:]) for x in stacked]
    for function in (lambda f: f, gradient, second):
        result = function(jax.vmap(ours))(*stacked)
        close(result, jax.tree.map(lambda a, b: a.reshape(b.shape), function(theirs)(*merged), result), 1e-10)


@on_host
@by_xla
def test_dropout_of_attention_takes_seeds_as_arrays():
    traced = []

    @jax.jit
    def dropped(seed, offset):
        traced.append(seed)
        return knn.attention(*QKV, dropout=Dropout(0.25, seed, offset))

    expected = knn.attention(*QKV, dropout=Dropout(0.25, 7, 3))
    close(dropped(jnp.int64(7), jnp.int64(3)), expected)
    assert not jnp.array_equal(dropped(jnp.int64(8), jnp.int64(3)), expected)
    assert not jnp.array_equal(dropped(jnp.int64(7), jnp.int64(4)), expected)
    assert len(traced) == 1
    close(dropped(jnp.array([5, 2**31], jnp.uint32), 3), knn.attention(*QKV, dropout=DROPOUT))
    by_seed = jax.vmap(lambda seed: knn.attention(*QKV, dropout=Dropout(0.25, seed, 3)))(jnp.arange(7, 9))
    close(by_seed, jnp.stack([dropped(jnp.int64(seed), jnp.int64(3)) for seed in (7, 8)]))
    gradients = [
        jax.grad(lambda q: (knn.attention(q, *QKV[1:], dropout=Dropout(0.25, seed, 3)) ** 2).sum())(QKV[0])
        for seed in (jnp.uint32(7), 7)
    ]
    close(*gradients)


@on_host
@by_xla
def test_wrong_dropout_is_an_error():
    with pytest.raises(Exception, match="dropout"):
        knn.attention(*QKV, dropout=Dropout(1.0)).block_until_ready()
    with pytest.raises(Exception, match="dropout_seed must be a number, or on a host an array of one integer"):
        knn.attention(*QKV, dropout=Dropout(0.5, jnp.array([1, 2]))).block_until_ready()


@by_xla
def test_vmap_of_rows_is_one_call():
    x = numbers(3, 4, 5)
    for function in (knn.softmax, knn.rms_norm, lambda x: knn.matmul(x, x.T), lambda x: knn.rope(x[:, None, :4])):
        program = jax.jit(jax.vmap(function)).lower(x).as_text()
        assert program.count("custom_call @kokkosnn.") == 1 and "while" not in program


@by_xla
@pytest.mark.parametrize("dtype", [jnp.float64, jnp.float32, jnp.float16, jnp.bfloat16])
def test_types_are_the_inputs(dtype):
    tolerance = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 4e-2}[jnp.dtype(dtype).name]
    x, w = numbers(4, 6, dtype=dtype), numbers(6, dtype=dtype, seed=1)
    exact, weight = x.astype(jnp.float64), w.astype(jnp.float64)

    def of_type(ours, theirs, result=dtype):
        assert ours.dtype == result
        close(ours.astype(jnp.float64), theirs, tolerance)

    of_type(knn.softmax(x), jax.nn.softmax(exact))
    of_type(knn.logsumexp(x), jax.nn.logsumexp(exact, -1))
    sums = jnp.float64 if dtype == jnp.float64 else jnp.float32
    picked = jnp.take_along_axis(jax.nn.log_softmax(exact), LABELS[:, None] % 5, -1)
    of_type(knn.cross_entropy(x, LABELS % 5), -picked.mean(), sums)
    of_type(knn.rms_norm(x, w, 0.1), rms(exact) * weight)
    of_type(knn.layer_norm(x, w, w), jax.nn.standardize(exact, -1) * weight + weight)
    of_type(knn.matmul(x, x.T), exact @ exact.T)
    of_type(knn.attention(*(x.reshape(1, 1, 4, 6),) * 3), rows_attended(*(exact.reshape(1, 1, 4, 6),) * 3))
    angles = np.arange(4)[:, None] * 10000.0 ** (-np.arange(3) / 3)
    of_type(knn.rope(x), rotated(exact, jnp.cos(angles), jnp.sin(angles)))
    dx, dw = jax.grad(lambda x, w: (knn.rms_norm(x, w.astype(sums)) ** 2).sum(), (0, 1))(x, w)
    assert dx.dtype == x.dtype and dw.dtype == w.dtype


@by_xla
def test_all_functions_of_kokkosnn_take_traced_arrays():
    x, offsets = numbers(9), jnp.array([0, 3, 9])
    y = jax.jit(kokkosnn.segmented_softmax)(x, offsets)
    close(y, jnp.concatenate([jax.nn.softmax(x[:3]), jax.nn.softmax(x[3:])]))
    gate, up = numbers(3, 4), numbers(3, 4, seed=1)
    close(jax.jit(kokkosnn.swiglu)(gate, up), jax.nn.silu(gate) * up)
    mapped = jax.vmap(kokkosnn.geglu)(gate, up)
    close(mapped, jax.nn.gelu(gate, approximate=False) * up)
    dgate, dup = jax.jit(kokkosnn.swiglu_backward)(gate, up, gate)
    close(dup, jax.nn.silu(gate) * gate)
    assert jax.jit(kokkosnn.softmax)(jnp.zeros((0, 3))).shape == (0, 3)


@by_xla
def test_a_step_of_training_is_jaxs():
    """A layer of norms, attention and a loss, compiled as a whole."""

    def layer(norm, attend, loss):
        def of(weights, x, labels):
            h = norm(x, weights["norm"])
            q, k, v = ((h @ weights[name]).reshape(2, 5, 2, 3) for name in "qkv")
            return loss((x + attend(q, k, v).reshape(2, 5, 6)) @ weights["out"], labels)

        return jax.jit(jax.value_and_grad(of))

    weights = {name: numbers(6, 6, seed=k) / 3 for k, name in enumerate("qkv")}
    weights |= {"norm": numbers(6, seed=4), "out": numbers(6, 7, seed=5)}
    labels = jnp.arange(10).reshape(2, 5) % 7
    ours = layer(
        knn.rms_norm,
        lambda q, k, v: knn.attention(q, k, v, Mask(causal=True), axes="batch_sequence_head_dim"),
        knn.cross_entropy,
    )
    theirs = layer(
        lambda x, w: rms(x, epsilon=1e-6) * w,
        causal,
        lambda z, labels: -jnp.take_along_axis(jax.nn.log_softmax(z), labels[..., None], -1).mean(),
    )
    x = numbers(2, 5, 6, seed=6)
    close(ours(weights, x, labels), theirs(weights, x, labels), 1e-10)


@by_xla
def test_wrong_arguments_have_the_librarys_message():
    x = numbers(4, 5)
    with pytest.raises(ValueError, match="softmax: axis 7 is out of range for rank 2"):
        knn.softmax(x, 7)
    with pytest.raises(Exception, match=r"KokkosNN::matmul"):
        jax.block_until_ready(knn.matmul(x, x))
    with pytest.raises(ValueError, match="reduction must be one of"):
        knn.cross_entropy(x, LABELS, reduction="max")
    with pytest.raises(ValueError, match="XLA chooses the stream"):
        jax.jit(lambda x: kokkosnn.softmax(x, stream=1))(x)
    with pytest.raises(Exception, match="an option is not known, or is an array"):
        jax.block_until_ready(jax.jit(lambda x, scale: kokkosnn.softmax(x, scale=scale))(x, 0.5))
