# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""KokkosNN's operators for JAX: functions with gradients, under jit and vmap, on the host or a GPU.

Calls are XLA's, by its foreign function interface, on XLA's stream, and so are their gradients. Second derivatives are
computed by jax.numpy, so they are right, not fast. Derivatives are by reverse mode (grad, vjp, jacrev). vmap of rows
makes one call; where arrays without rows, such as weights or parts of a mask, are mapped, it makes a call an index. All
functions of kokkosnn take traced arrays, too, but have no gradients.

Arguments that are no arrays are static: another number compiles anew. Arrays that a GPU's build does not run on, and
wrong arguments, are errors of XLA's with the library's message.

A further operator: `_differentiable` of its forward and backward calls and of a formula, and a function.
"""

from __future__ import annotations

import functools
from typing import Any, Callable

import jax
from jax import numpy as jnp

from . import _operators
from ._arrays import accumulator_name, empty
from ._operators import Dropout, Mask

Array = Any

__all__ = [
    "attention",
    "cross_entropy",
    "layer_norm",
    "log_softmax",
    "logsumexp",
    "matmul",
    "rms_norm",
    "rope",
    "softmax",
]

# --- what operators have in common ---


def _differentiable(
    forward: Callable[..., Any], backward: Callable[..., Any], formula: Callable[..., Any]
) -> Callable[..., Any]:
    """A function f(arrays, others, options) with gradients by arrays, a tuple that may have None.

    forward(arrays, others, options) gives f's result and what backward(arrays, others, saved, dy, options), the
    gradients by arrays, needs besides; formula is f by jax.numpy, for second derivatives. options are static.
    """

    @functools.partial(jax.custom_vjp, nondiff_argnums=(4,))
    def gradients(arrays: Any, others: Any, saved: Any, dy: Any, options: Any) -> Any:
        return backward(arrays, others, saved, dy, options)

    def gradients_forward(arrays: Any, others: Any, saved: Any, dy: Any, options: Any) -> Any:
        return gradients(arrays, others, saved, dy, options), (arrays, others, dy)

    def gradients_backward(options: Any, given: Any, ddarrays: Any) -> Any:
        arrays, others, dy = given

        def gradients_of_formula(arrays: Any, dy: Any) -> Any:
            return jax.vjp(lambda arrays: formula(arrays, others, options), arrays)[1](dy)[0]

        by_arrays, by_dy = jax.vjp(gradients_of_formula, arrays, dy)[1](ddarrays)
        return by_arrays, None, None, by_dy  # what is saved depends on arrays, which the formula has seen

    gradients.defvjp(gradients_forward, gradients_backward)

    @functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
    def with_saved(arrays: Any, others: Any, options: Any) -> Any:
        return forward(arrays, others, options)

    def with_saved_forward(arrays: Any, others: Any, options: Any) -> Any:
        y, saved = with_saved(arrays, others, options)  # not forward, which has no derivative
        return (y, saved), (arrays, others, saved)

    def with_saved_backward(options: Any, given: Any, dresults: Any) -> Any:
        return gradients(*given, dresults[0], options), None  # nothing but gradients reads what is saved

    with_saved.defvjp(with_saved_forward, with_saved_backward)
    return jax.jit(lambda arrays, others, options: with_saved(arrays, others, options)[0], static_argnums=2)


def _over_rows(function: Callable[..., Any], rows: Any, shared: Any = ()) -> Any:
    """function(*rows, *shared) of arrays that may have further axes in front, as vmap gives them: one call for all.

    Where `shared` is mapped, too, vmap makes a call an index.
    """

    @jax.custom_batching.custom_vmap
    def call(rows: Any, shared: Any) -> Any:
        return function(*rows, *shared)

    @call.def_vmap
    def _(size: int, is_mapped: Any, rows: Any, shared: Any) -> Any:
        def all_mapped(results: Any) -> Any:
            return results, jax.tree.map(lambda _: True, results)

        if any(jax.tree.leaves(is_mapped[1])):
            axes = jax.tree.map(lambda mapped: 0 if mapped else None, is_mapped)
            return all_mapped(jax.vmap(lambda rows, shared: function(*rows, *shared), axes)(rows, shared))
        rows = [x if mapped else jnp.broadcast_to(x, (size, *x.shape)) for x, mapped in zip(rows, is_mapped[0])]
        return all_mapped(_over_rows(function, rows, shared))

    return call(tuple(rows), tuple(shared))


def _as_rank(rank: int, x: Array) -> Array:
    """x with its first axes merged."""
    return x if x.ndim <= rank else x.reshape(-1, *x.shape[x.ndim - rank + 1 :])


def _from_end(name: str, axis: Any, x: Array) -> Any:
    """An axis, or a tuple of axes, counted from the end, so that it holds with further axes in front."""
    if isinstance(axis, tuple):
        return tuple(_from_end(name, one, x) for one in axis)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"kokkosnn.jax.{name}: axis {axis} is out of range for rank {x.ndim}")
    return axis - x.ndim if axis >= 0 else axis


def _array(x: Any) -> Any:
    return None if x is None else jnp.asarray(x)


def _place_like(x: Any) -> Any:
    """The place of a gradient by x, and None for none."""
    return None if x is None else empty(x, x.shape)


def _filled(place: Any) -> Any:
    return None if place is None else place.array


def _accumulator(x: Array) -> Any:
    return jnp.dtype(accumulator_name(x))


# --- softmax, log_softmax, logsumexp ---


def _softmax_like(operator: Callable[..., Any], backward: Callable[..., Any], formula: Callable[..., Any]) -> Any:
    def forward(arrays: Any, others: Any, options: Any) -> Any:
        axis, scale = options
        y = _over_rows(lambda x: operator(x, axis, scale=scale), arrays)
        return y, y

    def gradient(arrays: Any, others: Any, y: Any, dy: Any, options: Any) -> Any:
        axis, scale = options
        return (_over_rows(lambda y, dy: backward(y, dy, axis, scale=scale), (y, dy)),)

    return _differentiable(forward, gradient, lambda arrays, _, options: formula(options[1] * arrays[0], options[0]))


_softmax = _softmax_like(_operators.softmax, _operators.softmax_backward, jax.nn.softmax)
_log_softmax = _softmax_like(_operators.log_softmax, _operators.log_softmax_backward, jax.nn.log_softmax)


def _logsumexp_forward(arrays: Any, others: Any, options: Any) -> Any:
    axis, scale = options
    lse = _over_rows(lambda x: _operators.logsumexp(x, axis, scale=scale), arrays)
    return lse, lse


def _logsumexp_backward(arrays: Any, others: Any, lse: Any, dlse: Any, options: Any) -> Any:
    axis, scale = options
    backward = functools.partial(_operators.logsumexp_backward, axis=axis, scale=scale)
    return (_over_rows(backward, (*arrays, lse, dlse)),)


_logsumexp = _differentiable(
    _logsumexp_forward,
    _logsumexp_backward,
    lambda arrays, _, options: jax.nn.logsumexp(options[1] * arrays[0], options[0]),
)


def softmax(x: Array, axis: int | tuple[int, ...] = -1, scale: float = 1.0) -> Array:
    """jax.nn.softmax(scale * x, axis)"""
    x = _array(x)
    return _softmax((x,), None, (_from_end("softmax", axis, x), float(scale)))


def log_softmax(x: Array, axis: int | tuple[int, ...] = -1, scale: float = 1.0) -> Array:
    """jax.nn.log_softmax(scale * x, axis)"""
    x = _array(x)
    return _log_softmax((x,), None, (_from_end("log_softmax", axis, x), float(scale)))


def logsumexp(x: Array, axis: int | tuple[int, ...] = -1, scale: float = 1.0) -> Array:
    """jax.nn.logsumexp(scale * x, axis)"""
    x = _array(x)
    return _logsumexp((x,), None, (_from_end("logsumexp", axis, x), float(scale)))


# --- cross_entropy ---


def _cross_entropy_forward(arrays: Any, others: Any, options: Any) -> Any:
    labels, weights = others
    call = functools.partial(_operators.cross_entropy, **dict(options))
    if dict(options)["reduction"] == "none":
        loss, lse = _over_rows(call, (*arrays, labels), (weights,))
    else:
        loss, lse = call(*arrays, labels, weights)
    return loss, lse


def _cross_entropy_backward(arrays: Any, others: Any, lse: Any, dloss: Any, options: Any) -> Any:
    labels, weights = others
    call = functools.partial(_operators.cross_entropy_backward, **dict(options))
    if dict(options)["reduction"] == "none":
        return (_over_rows(call, (*arrays, labels, lse, dloss), (weights,)),)
    return (call(*arrays, labels, lse, dloss, weights),)


def _cross_entropy_formula(arrays: Any, others: Any, options: Any) -> Any:
    given, (labels, weights) = dict(options), others
    z = jnp.moveaxis(arrays[0], given["axis"], -1).astype(_accumulator(arrays[0]))
    if given["softcap"]:
        z = given["softcap"] * jnp.tanh(z / given["softcap"])
    classes, smoothing = z.shape[-1], given["label_smoothing"]
    lse = jax.nn.logsumexp(z, -1)
    weights = jnp.ones(classes, z.dtype) if weights is None else weights
    counts = labels != given["ignore_index"]
    label = jnp.where(counts, labels, 0)
    weight = weights[label]
    loss = (1 - smoothing) * weight * (lse - jnp.take_along_axis(z, label[..., None], -1)[..., 0])
    loss = loss + smoothing / classes * (weights * (lse[..., None] - z)).sum(-1)
    loss = loss + given["z_loss"] * (weight if given["weighted_z_loss"] else 1) * lse**2
    loss = jnp.where(counts, loss, 0)
    if given["reduction"] == "none":
        return loss
    return loss.sum() if given["reduction"] == "sum" else loss.sum() / jnp.where(counts, weight, 0).sum()


_cross_entropy = _differentiable(_cross_entropy_forward, _cross_entropy_backward, _cross_entropy_formula)


def cross_entropy(
    logits: Array,
    labels: Array,
    weights: Array | None = None,
    *,
    axis: int = -1,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    softcap: float = 0.0,
    weighted_z_loss: bool = True,
) -> Array:
    """-jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1).mean(), and all of torch's cross_entropy

    labels: integers without the axis of the classes. The loss, and weights, one a class, are float64 if the logits are,
    else float32. Gradients are by the logits.
    """
    logits = _array(logits)
    options = {
        "axis": _from_end("cross_entropy", axis, logits),
        "reduction": reduction,
        "ignore_index": int(ignore_index),
        "label_smoothing": float(label_smoothing),
        "z_loss": float(z_loss),
        "softcap": float(softcap),
        "weighted_z_loss": bool(weighted_z_loss),
    }
    return _cross_entropy((logits,), (_array(labels), _array(weights)), tuple(options.items()))


# --- rms_norm, layer_norm ---


def _along(axis: int, x: Array, column: Array) -> Array:
    """A value a column with x's rank."""
    return column.reshape([-1 if k == axis % x.ndim else 1 for k in range(x.ndim)])


def _rms_norm_forward(arrays: Any, others: Any, options: Any) -> Any:
    epsilon, axis, offset = options
    x, weight = arrays
    call = functools.partial(_operators.rms_norm, epsilon=epsilon, axis=axis, weight_offset=offset)
    return _over_rows(call, (x,), (weight,))


def _rms_norm_backward(arrays: Any, others: Any, rstd: Any, dy: Any, options: Any) -> Any:
    _, axis, offset = options
    x, weight = arrays
    call = functools.partial(_operators.rms_norm_backward, axis=axis, weight_offset=offset)
    if weight is None:
        return _over_rows(call, (x, rstd, dy)), None
    dweight = _place_like(weight)
    return call(x, rstd, dy, weight, dweight=dweight), _filled(dweight)


def _rms_norm_formula(arrays: Any, others: Any, options: Any) -> Any:
    epsilon, axis, offset = options
    x, weight = arrays
    y = x * jax.lax.rsqrt((x * x).mean(axis, keepdims=True) + epsilon)
    return y if weight is None else (y * (_along(axis, x, weight) + offset)).astype(x.dtype)


_rms_norm = _differentiable(_rms_norm_forward, _rms_norm_backward, _rms_norm_formula)


def _layer_norm_forward(arrays: Any, others: Any, options: Any) -> Any:
    epsilon, axis = options
    x, weight, bias = arrays
    call = functools.partial(_operators.layer_norm, epsilon=epsilon, axis=axis)
    y, *values = _over_rows(call, (x,), (weight, bias))
    return y, tuple(values)


def _layer_norm_backward(arrays: Any, others: Any, values: Any, dy: Any, options: Any) -> Any:
    _, axis = options
    x, weight, bias = arrays
    call = functools.partial(_operators.layer_norm_backward, axis=axis)
    if weight is None and bias is None:
        return _over_rows(call, (x, *values, dy)), None, None
    dweight, dbias = _place_like(weight), _place_like(bias)
    dx = call(x, *values, dy, weight, dweight=dweight, dbias=dbias)
    return dx, _filled(dweight), _filled(dbias)


def _layer_norm_formula(arrays: Any, others: Any, options: Any) -> Any:
    epsilon, axis = options
    x, weight, bias = arrays
    distance = x - x.mean(axis, keepdims=True)
    y = distance * jax.lax.rsqrt((distance * distance).mean(axis, keepdims=True) + epsilon)
    y = y if weight is None else y * _along(axis, x, weight)
    return (y if bias is None else y + _along(axis, x, bias)).astype(x.dtype)


_layer_norm = _differentiable(_layer_norm_forward, _layer_norm_backward, _layer_norm_formula)


def rms_norm(
    x: Array, weight: Array | None = None, epsilon: float = 1e-6, axis: int = -1, weight_offset: float = 0.0
) -> Array:
    """x * jax.lax.rsqrt((x * x).mean(axis, keepdims=True) + epsilon) * (weight + weight_offset)

    weight: one value a column, of x's type, or of float32 where x has 16 bits.
    """
    x = _array(x)
    options = (float(epsilon), _from_end("rms_norm", axis, x), float(weight_offset))
    return _rms_norm((x, _array(weight)), None, options)


def layer_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    epsilon: float = 1e-5,
    axis: int = -1,
) -> Array:
    """jax.nn.standardize(x, axis, epsilon=epsilon) * weight + bias

    weight, bias: one value a column, of x's type, or of float32 where x has 16 bits.
    """
    x = _array(x)
    options = (float(epsilon), _from_end("layer_norm", axis, x))
    return _layer_norm((x, _array(weight), _array(bias)), None, options)


# --- attention ---

_MASK_ARRAYS = ("boolean", "lengths", "alibi_slopes", "diagonal_offsets")
_DROPOUT_ARRAYS = ("seed", "offset")
_MOST_VALUE_DIMS = 256  # of attention's v


def _mask_of(bias: Any, others: Any, options: Any) -> Mask:
    return Mask(bias=bias, **{name: others[name] for name in _MASK_ARRAYS}, **dict(options[0]))


def _attention_options(others: Any, options: Any) -> dict[str, Any]:
    """The options of a call: static ones, and what of a dropout is an array."""
    given = dict(options[1])
    if given["dropout"] is not None:
        arrays = {name: others[name] for name in _DROPOUT_ARRAYS if others[name] is not None}
        given["dropout"] = given["dropout"]._replace(**arrays)
    return given


def _attention_call(function: Callable[..., Any], rows: Any, arrays: Any, others: Any, options: Any) -> Any:
    """function(*rows, mask=, scale=, ...) of rows whose first axis is the batch."""
    parts, sinks = {**others, "bias": arrays[3]}, arrays[4]

    def call(*given: Any) -> Any:
        rows, sinks = given[:-1], given[-1]
        merged = [_as_rank(4 if x.ndim == rows[0].ndim else 3, x) for x in rows]
        mask = _mask_of(parts["bias"], parts, options)
        results = function(*merged, mask=mask, sinks=sinks, **_attention_options(parts, options))
        return jax.tree.map(lambda y: y.reshape(*rows[0].shape[:-3], *y.shape[1:]), results)

    if jax.tree.leaves(parts):  # they have axes of the batch themselves
        return call(*rows, sinks)
    return _over_rows(call, rows, (sinks,))


def _attention_forward(arrays: Any, others: Any, options: Any) -> Any:
    o, lse = _attention_call(_operators.attention, arrays[:3], arrays, others, options)
    return o, (o, lse)


def _attention_backward(arrays: Any, others: Any, saved: Any, do: Any, options: Any) -> Any:
    q, k, v, bias, sinks = arrays
    o, lse = saved
    given = _attention_options(others, options)
    del given["masked_row"], given["precision"]

    def backward(q: Any, k: Any, v: Any, o: Any, do: Any, lse: Any, *, mask: Any, sinks: Any, **_: Any) -> Any:
        return _operators.attention_backward(q, k, v, o, lse, do, mask, sinks=sinks, **given)

    dq, dk, dv = _attention_call(backward, (q, k, v, o, do, lse), arrays, others, options)
    mask = _mask_of(bias, others, options)
    dbias = dsinks = None
    if bias is not None:
        dbias = _operators.attention_bias_backward(q, k, v, o, lse, do, mask, sinks=sinks, **given)
    if sinks is not None:
        dsinks = _operators.attention_sinks_backward(o, lse, do, sinks, given["axes"])
    return dq, dk, dv, dbias, dsinks


def _takes_part(others: Any, numbers: Any, queries: Array, keys: Array, shape: Any) -> Array:
    """Which scores (batch, head, query, key) a mask allows; queries are numbered as the mask counts them."""
    allowed = jnp.ones(shape, bool)
    if others["boolean"] is not None:
        allowed &= others["boolean"].astype(bool)
    if numbers["causal"]:
        allowed &= keys <= queries + numbers["causal_offset"]
    if numbers["window"] is not None:
        left, right = numbers["window"]
        distance = keys - queries - numbers["window_offset"]
        allowed &= (left is None or distance >= -left) & (right is None or distance <= right)
    if others["lengths"] is not None:
        allowed &= keys < _for_scores(others["lengths"])
    return allowed


def _for_scores(values: Array) -> Array:
    """A value a batch, or a row, with the rank of scores."""
    return values.reshape(-1, 1, 1, 1) if values.ndim == 1 else values[..., None]


def _kept(q: Array, k: Array, bias: Any, others: Any, options: Any) -> Array:
    """What the weights (batch, head, query, key) of a dropout are multiplied by: 0, or 1 / (1 - probability)

    Found by attention itself: equal scores give each key a weight of 1 / keys, and v picks the keys. Under vmap the
    call is made as the one of the weights is, since weights that stay depend on the batch's index.
    """
    dropout = _attention_options(others, options)["dropout"]
    zero_q, zero_k = (jnp.zeros_like(x, x.dtype, x[..., :1].shape) * jnp.isnan(x[..., :1]) for x in (q, k))
    keys = k.shape[-2]
    columns = jnp.eye(keys, dtype=q.dtype)

    def call(q: Any, k: Any, v: Any) -> Any:
        o, _ = _operators.attention(_as_rank(4, q), _as_rank(4, k), _as_rank(4, v), scale=1.0, dropout=dropout)
        return o.reshape(*q.shape[:-3], *o.shape[1:])

    weights = []
    for first in range(0, keys, _MOST_VALUE_DIMS):
        v = columns[:, first : first + _MOST_VALUE_DIMS]
        rows = (zero_q, zero_k, jnp.broadcast_to(v, (*k.shape[:-2], *v.shape)))
        is_by_index = jax.tree.leaves((others, bias))
        weights.append(call(*rows) if is_by_index else _over_rows(call, rows))
    return (jnp.concatenate(weights, -1) > 0).astype(q.dtype) / (1 - dropout.probability)


def _attention_formula(arrays: Any, others: Any, options: Any) -> Any:
    q, k, v, bias, sinks = arrays
    numbers, given = dict(options[0]), dict(options[1])
    if given["axes"] == "batch_sequence_head_dim":
        q, k, v = (jnp.swapaxes(x, 1, 2) for x in (q, k, v))
    kept = 1 if given["dropout"] is None else jax.lax.stop_gradient(_kept(q, k, bias, others, options))
    group = q.shape[1] // k.shape[1]
    k, v = jnp.repeat(k, group, 1), jnp.repeat(v, group, 1)
    z = q @ jnp.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if given["scale"] is None else given["scale"])
    if given["softcap"]:
        z = given["softcap"] * jnp.tanh(z / given["softcap"])
    first = z.shape[-1] - z.shape[-2] if given["diagonal"] == "last" else 0
    queries, keys = jnp.arange(z.shape[-2])[:, None] + first, jnp.arange(z.shape[-1])
    if others["diagonal_offsets"] is not None:
        queries = queries + _for_scores(others["diagonal_offsets"])
    if bias is not None:
        z = z + bias
    if others["alibi_slopes"] is not None:
        slopes = others["alibi_slopes"].reshape(-1, 1, 1)
        z = z - slopes * jnp.abs(keys - queries - numbers["alibi_offset"])
    z = jnp.where(_takes_part(others, numbers, queries, keys, z.shape), z, -jnp.inf)
    if sinks is not None:
        z = jnp.concatenate([z, jnp.broadcast_to(sinks.reshape(-1, 1, 1), (*z.shape[:-1], 1))], -1)
    o = (jax.nn.softmax(z, -1)[..., : keys.size] * kept) @ v
    return jnp.swapaxes(o, 1, 2) if given["axes"] == "batch_sequence_head_dim" else o


_attention = _differentiable(_attention_forward, _attention_backward, _attention_formula)


def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Mask | Array | None = None,
    scale: float | None = None,
    *,
    softcap: float = 0.0,
    sinks: Array | None = None,
    masked_row: str = "nan",
    axes: str = "batch_head_sequence_dim",
    precision: str = "exact",
    diagonal: str = "first",
    dropout: Dropout | None = None,
) -> Array:
    """jax.nn.dot_product_attention(q, k, v, bias, mask), with axes="batch_sequence_head_dim" of its order of axes

    Arguments are kokkosnn.attention's; mask: a Mask, or an array of bool. Gradients are by q, k, v, the mask's bias and
    the sinks. dropout: a kokkosnn.Dropout, whose weights the gradients find again. On a host its seed and its offset
    may be arrays of one integer, which jit does not take for constants, and the seed two words of uint32, as
    jax.random.bits(key, (2,), "uint32"). Under vmap each index drops weights of its own, unless the seed, the offset or
    a part of the mask is an array: then a call an index is made, and equal seeds drop equal weights.
    """
    mask = mask if isinstance(mask, Mask) else Mask(boolean=mask)
    others = {name: _array(getattr(mask, name)) for name in _MASK_ARRAYS}
    for name in _DROPOUT_ARRAYS:
        value = getattr(dropout, name, 0)
        others[name] = None if isinstance(value, int) else jnp.asarray(value)
    if dropout is not None:
        zeros = {name: 0 for name in _DROPOUT_ARRAYS if others[name] is not None}
        dropout = dropout._replace(probability=float(dropout.probability), **zeros)
    numbers = ("causal", "causal_offset", "window", "window_offset", "alibi_offset")
    options = {
        "scale": None if scale is None else float(scale),
        "softcap": float(softcap),
        "masked_row": masked_row,
        "axes": axes,
        "precision": precision,
        "diagonal": diagonal,
        "dropout": dropout,
    }
    arrays = tuple(_array(x) for x in (q, k, v, mask.bias, sinks))
    return _attention(arrays, others, (tuple((n, getattr(mask, n)) for n in numbers), tuple(options.items())))


# --- matmul ---


def _matmul_forward(arrays: Any, others: Any, options: Any) -> Any:
    return _over_rows(functools.partial(_operators.matmul, **dict(options)), arrays), None


def _matmul_backward(arrays: Any, others: Any, saved: Any, dc: Any, options: Any) -> Any:
    return _over_rows(functools.partial(_operators.matmul_backward, **dict(options)), (dc, *arrays))


def _matmul_formula(arrays: Any, others: Any, options: Any) -> Any:
    return dict(options)["alpha"] * jnp.matmul(*arrays)


_matmul = _differentiable(_matmul_forward, _matmul_backward, _matmul_formula)


def matmul(a: Array, b: Array, alpha: float = 1.0, precision: str = "exact") -> Array:
    """alpha * jnp.matmul(a, b) of matrices (..., m, k) and (..., k, n)

    precision: "exact", "tensor_float32x3" or "tensor_float32", of float32 on GPUs with TF32; also of the gradients.
    """
    a, b = _array(a), _array(b)
    rank = max(a.ndim, b.ndim)  # of both, so that further axes in front are of both
    arrays = tuple(x.reshape((1,) * (rank - x.ndim) + x.shape) for x in (a, b))
    return _matmul(arrays, None, (("alpha", float(alpha)), ("precision", precision)))


# --- rope ---


def _rope_call(function: Callable[..., Any], x: Any, others: Any, options: Any) -> Any:
    cos, sin, positions = others

    def call(x: Any, cos: Any, sin: Any, positions: Any) -> Any:
        return function(_as_rank(4, x), cos, sin, positions, **dict(options)).reshape(x.shape)

    if positions is not None and positions.ndim > 1:  # they have the axis of the batch themselves
        return call(x, *others)
    return _over_rows(call, (x,), others)


def _rope_forward(arrays: Any, others: Any, options: Any) -> Any:
    return _rope_call(_operators.rope, *arrays, others, options), None


def _rope_backward(arrays: Any, others: Any, saved: Any, dy: Any, options: Any) -> Any:
    return (_rope_call(_operators.rope_backward, dy, others, options),)


def _rope_formula(arrays: Any, others: Any, options: Any) -> Any:
    (x,), (cos, sin, positions), given = arrays, others, dict(options)
    axis = given["sequence_axis"] % x.ndim
    dims = given["rotary_dims"] or x.shape[-1]
    if positions is None:
        positions = jnp.arange(x.shape[axis])
    positions = positions + given["position_offset"]
    if cos is None:
        frequencies = given["position_scale"] * given["theta"] ** (-2.0 * jnp.arange(dims // 2) / dims)
        angles = positions[..., None] * frequencies
        cos, sin = jnp.cos(angles), jnp.sin(angles)
    else:
        cos, sin = cos[positions], sin[positions]
    shape = [x.shape[axis] if k == axis else -1 if k == x.ndim - 1 else 1 for k in range(x.ndim)]
    if positions.ndim == 2:
        shape[0] = x.shape[0]
    cos, sin = (table.reshape(shape).astype(_accumulator(x)) for table in (cos, sin))
    turned, rest = x[..., :dims], x[..., dims:]
    is_interleaved = given["form"] == "interleaved"
    a, b = (turned[..., 0::2], turned[..., 1::2]) if is_interleaved else jnp.split(turned, 2, -1)
    pair = (a * cos - b * sin, b * cos + a * sin)
    turned = jnp.stack(pair, -1).reshape(turned.shape) if is_interleaved else jnp.concatenate(pair, -1)
    return jnp.concatenate([turned.astype(x.dtype), rest], -1)


_rope = _differentiable(_rope_forward, _rope_backward, _rope_formula)


def rope(
    x: Array,
    cos: Array | None = None,
    sin: Array | None = None,
    positions: Array | None = None,
    *,
    form: str = "half_rotated",
    rotary_dims: int = 0,
    sequence_axis: int = -3,
    position_offset: int = 0,
    theta: float = 10000.0,
    position_scale: float = 1.0,
) -> Array:
    """jnp.concatenate((a * cos - b * sin, b * cos + a * sin), -1), (a, b) being jnp.split(x, 2, -1): rotary embedding

    Arguments are kokkosnn.rope's. The gradient is by x.
    """
    x = _array(x)
    options = {
        "form": form,
        "rotary_dims": int(rotary_dims),
        "sequence_axis": _from_end("rope", -2 if x.ndim == 2 and sequence_axis == -3 else sequence_axis, x),
        "position_offset": int(position_offset),
        "theta": float(theta),
        "position_scale": float(position_scale),
    }
    return _rope((x,), (_array(cos), _array(sin), _array(positions)), tuple(options.items()))
