# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""The operators on arrays. Each is a few lines around the C function of its name, which says what holds."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import _core
from ._arrays import HOST, accumulator_name, are_numpy, as_kind, empty, is_result, place_of, plain, require_writable
from ._core import exchange_place

Array = Any
"""An array of NumPy, or any with __dlpack__."""

_MASKED_ROWS = {"nan": 0, "zero": 1}
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
_DIAGONALS = {"first": 0, "last": 1}
_ATTENTION_AXES = {"batch_head_sequence_dim": 0, "batch_sequence_head_dim": 1}
_PRECISIONS = {"exact": 0, "tensor_float32x3": 1, "tensor_float32": 2}
_MATMUL_PROVIDERS = {"automatic": 0, "own": 1, "vendor": 2}
_ROPE_FORMS = {"half_rotated": 0, "interleaved": 1}
_GELU_FORMS = {"none": 0, "tanh": 1}
_UNBOUNDED = 2**63 - 1


def _named(kind: str, values: dict[str, int], name: str) -> int:
    if name not in values:
        raise ValueError(f"kokkosnn: {kind} must be one of {', '.join(values)}, but is {name!r}")
    return values[name]


def _row_options(masked_row: str, batch_invariant: bool) -> dict[str, int]:
    return {"masked_row": _named("masked_row", _MASKED_ROWS, masked_row), "determinism": int(batch_invariant)}


def _run(function: Any, stream: Any, *arguments: Any) -> None:
    """Calls a C function; arrays among the arguments, and in their dictionaries, determine the device."""
    if stream is None:
        place = HOST if are_numpy(arguments) else exchange_place(arguments)
        if place is not None:
            return function(place, *arguments)
    inner = [value for given in arguments if isinstance(given, dict) for value in given.values()]
    arrays = [x for x in [*arguments, *inner] if hasattr(x, "dtype")]
    if any(is_result(x) for x in arrays):
        from ._jax import call

        return call(function.__name__, stream, arguments)
    arguments = tuple(
        {name: plain(value) for name, value in given.items()} if isinstance(given, dict) else plain(given)
        for given in arguments
    )
    function(place_of(arrays, stream), *arguments)


def _output(out: Array | None, like: Array, shape: Sequence[int], dtype: str | None = None) -> Array:
    if out is None:
        return empty(like, tuple(shape), dtype)
    require_writable(out)
    return out


def _without(x: Array, axis: int | tuple[int, ...]) -> tuple[int, ...]:
    """x's extents without an axis, or several; the library complains of one that is out of range."""
    axes = {k + len(x.shape) if k < 0 else k for k in (axis if isinstance(axis, tuple) else (axis,))}
    return tuple(extent for k, extent in enumerate(x.shape) if k not in axes)


def _reduced(x: Array, axis: int | tuple[int, ...]) -> dict[str, int]:
    """The options for an axis, or for a tuple of neighbouring ones."""
    if not isinstance(axis, tuple):
        return {"axis": axis}
    numbers = sorted(k + len(x.shape) if k < 0 else k for k in axis)
    if not numbers or numbers != list(range(numbers[0], numbers[0] + len(numbers))):
        raise ValueError(f"axes that are reduced together must be neighbours, but are {axis}")
    return {"axis": numbers[0], "axes": len(numbers)}


@functools.lru_cache(maxsize=256)
def _plain_options(axis: int, scale: float, masked_row: str, batch_invariant: bool) -> dict[str, Any]:
    return {"axis": axis, "scale": scale, **_row_options(masked_row, batch_invariant)}


def _softmax_options(x: Array, axis: Any, scale: Any, masked_row: str, batch_invariant: bool) -> dict[str, Any]:
    """The options of the softmax family; a dictionary that calls share is made once, and is not to be changed."""
    if type(axis) is int and type(scale) is float:
        return _plain_options(axis, scale, masked_row, batch_invariant)
    return {**_reduced(x, axis), "scale": scale, **_row_options(masked_row, batch_invariant)}


# --- softmax.hpp ---


def softmax(
    x: Array,
    axis: int | tuple[int, ...] = -1,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    masked_row: str = "nan",
    batch_invariant: bool = False,
    stream: Any = None,
) -> Array:
    """torch.softmax(scale * x, axis)

    out may be x, or an array of float32 for one of float16 or bfloat16, and the other way round. A row of nothing but
    -inf gives NaN, or with masked_row="zero" 0. axis may be a tuple of neighbouring axes at one stride. With
    batch_invariant a row's bits do not depend on the other rows.
    stream: of a GPU, a number or an object of a library; by default the current one of PyTorch, or of a library whose
    arrays have DLPack's exchange table, else the default stream.
    """
    y = _output(out, x, x.shape)
    _run(_core.softmax, stream, x, y, _softmax_options(x, axis, scale, masked_row, batch_invariant))
    return as_kind(x, y)


def log_softmax(
    x: Array,
    axis: int | tuple[int, ...] = -1,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    masked_row: str = "nan",
    batch_invariant: bool = False,
    stream: Any = None,
) -> Array:
    """torch.log_softmax(scale * x, axis); as softmax otherwise"""
    y = _output(out, x, x.shape)
    _run(_core.log_softmax, stream, x, y, _softmax_options(x, axis, scale, masked_row, batch_invariant))
    return as_kind(x, y)


def logsumexp(
    x: Array,
    axis: int | tuple[int, ...] = -1,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    batch_invariant: bool = False,
    stream: Any = None,
) -> Array:
    """torch.logsumexp(scale * x, axis)"""
    lse = _output(out, x, _without(x, axis))
    _run(_core.logsumexp, stream, x, lse, _softmax_options(x, axis, scale, "nan", batch_invariant))
    return as_kind(x, lse)


# --- gradients.hpp ---


def softmax_backward(
    y: Array,
    dy: Array,
    axis: int | tuple[int, ...] = -1,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    stream: Any = None,
) -> Array:
    """scale * y * (dy - (y * dy).sum(axis, keepdim=True)), the gradient of y = softmax(x, axis, scale=scale) by x

    out may be y or dy.
    """
    dx = _output(out, y, y.shape)
    _run(_core.softmax_backward, stream, y, dy, dx, _softmax_options(y, axis, scale, "nan", False))
    return as_kind(y, dx)


def log_softmax_backward(
    y: Array,
    dy: Array,
    axis: int | tuple[int, ...] = -1,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    stream: Any = None,
) -> Array:
    """scale * (dy - y.exp() * dy.sum(axis, keepdim=True)), the gradient of y = log_softmax(x, axis, scale=scale) by x

    out may be y or dy.
    """
    dx = _output(out, y, y.shape)
    _run(_core.log_softmax_backward, stream, y, dy, dx, _softmax_options(y, axis, scale, "nan", False))
    return as_kind(y, dx)


def logsumexp_backward(
    x: Array,
    lse: Array,
    dlse: Array,
    axis: int | tuple[int, ...] = -1,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    masked_row: str = "nan",
    stream: Any = None,
) -> Array:
    """scale * dlse.unsqueeze(axis) * (scale * x - lse.unsqueeze(axis)).exp(), the gradient of logsumexp by x

    lse and dlse have x's type, or float32 where x has 16 bits; out may be x.
    """
    dx = _output(out, x, x.shape)
    _run(_core.logsumexp_backward, stream, x, lse, dlse, dx, _softmax_options(x, axis, scale, masked_row, False))
    return as_kind(x, dx)


# --- masked_softmax.hpp ---


@dataclass(frozen=True)
class Mask:
    """Which columns k of query q take part in a masked softmax, and what is added to their logits; all that is given.

    boolean         take part where true; broadcasts to x
    bias            is added to the logits, behind scale and softcap; broadcasts to x
    causal          k <= q + causal_offset
    window          (left, right): q + window_offset - left <= k <= q + window_offset + right; None is unbounded
    lengths         k < length: a length a row, or of rank 1 one for each index of x's first axis; int32 or int64
    alibi_slopes    -slope * abs(k - (q + alibi_offset)) is added; a slope a head
    diagonal_offsets  is added to the offsets of causal, window and alibi_slopes; shapes and types as lengths
    row_scales      a further factor of the row's logits, under a softcap; shapes as lengths; not in attention
    """

    boolean: Array | None = None
    bias: Array | None = None
    causal: bool = False
    causal_offset: int = 0
    window: tuple[int | None, int | None] | None = None
    window_offset: int = 0
    lengths: Array | None = None
    alibi_slopes: Array | None = None
    alibi_offset: int = 0
    diagonal_offsets: Array | None = None
    row_scales: Array | None = None

    def members(self) -> dict[str, Any]:
        """The C struct's members."""
        left, right = self.window or (None, None)
        parts = {
            "boolean": self.boolean,
            "bias": self.bias,
            "lengths": self.lengths,
            "alibi_slopes": self.alibi_slopes,
            "diagonal_offsets": self.diagonal_offsets,
            "row_scales": self.row_scales,
        }
        return {
            **{name: part for name, part in parts.items() if part is not None},
            "is_causal": int(self.causal),
            "causal_offset": self.causal_offset,
            "has_window": int(self.window is not None),
            "window_left": _UNBOUNDED if left is None else left,
            "window_right": _UNBOUNDED if right is None else right,
            "window_offset": self.window_offset,
            "alibi_offset": self.alibi_offset,
        }


def _members(mask: Mask | Array | None) -> dict[str, Any]:
    """A mask's members; an array is a boolean mask."""
    if mask is None:
        return {}
    return (mask if isinstance(mask, Mask) else Mask(boolean=mask)).members()


def _masked_options(scale: float, softcap: float, sinks: Array | None) -> dict[str, Any]:
    options = {"scale": scale, "softcap": softcap}
    return options if sinks is None else {**options, "sinks": sinks}


def masked_softmax(
    x: Array,
    mask: Mask | Array | None = None,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    softcap: float = 0.0,
    sinks: Array | None = None,
    masked_row: str = "nan",
    batch_invariant: bool = False,
    stream: Any = None,
) -> Array:
    """torch.softmax((scale * x + mask.bias).masked_fill(~mask.boolean, -torch.inf), -1), x: (..., head, query, key)

    mask: a Mask, or an array of bool. softcap c > 0 replaces scale * x by c * tanh(scale * x / c). sinks: one logit a
    head that joins the sum of each row. A row of which nothing takes part is NaN, or with masked_row="zero" 0.
    """
    y = _output(out, x, x.shape)
    options = {**_masked_options(scale, softcap, sinks), **_row_options(masked_row, batch_invariant)}
    _run(_core.masked_softmax, stream, x, _members(mask), y, options)
    return as_kind(x, y)


def masked_log_softmax(
    x: Array,
    mask: Mask | Array | None = None,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    softcap: float = 0.0,
    sinks: Array | None = None,
    masked_row: str = "nan",
    batch_invariant: bool = False,
    stream: Any = None,
) -> Array:
    """torch.log_softmax((scale * x + mask.bias).masked_fill(~mask.boolean, -torch.inf), -1), x: (..., head, query, key)

    Parameters as masked_softmax's. A row of which nothing takes part is NaN, or with masked_row="zero" -inf.
    """
    y = _output(out, x, x.shape)
    options = {**_masked_options(scale, softcap, sinks), **_row_options(masked_row, batch_invariant)}
    _run(_core.masked_log_softmax, stream, x, _members(mask), y, options)
    return as_kind(x, y)


def masked_logsumexp(
    x: Array,
    mask: Mask | Array | None = None,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    softcap: float = 0.0,
    sinks: Array | None = None,
    batch_invariant: bool = False,
    stream: Any = None,
) -> Array:
    """torch.logsumexp((scale * x + mask.bias).masked_fill(~mask.boolean, -torch.inf), -1), x: (..., head, query, key)

    Parameters as masked_softmax's.
    """
    lse = _output(out, x, _without(x, -1))
    options = {**_masked_options(scale, softcap, sinks), "determinism": int(batch_invariant)}
    _run(_core.masked_logsumexp, stream, x, _members(mask), lse, options)
    return as_kind(x, lse)


def masked_softmax_backward(
    y: Array,
    dy: Array,
    mask: Mask | Array | None = None,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    x: Array | None = None,
    softcap: float = 0.0,
    stream: Any = None,
) -> Array:
    """scale * y * (dy - (y * dy).sum(-1, keepdim=True)) where the mask allows, else 0: masked_softmax's gradient by x

    x, the forward call's, is needed with a softcap alone. out may be y or dy.
    """
    dx = _output(out, y, y.shape)
    _run(_core.masked_softmax_backward, stream, x, y, dy, _members(mask), dx, _masked_options(scale, softcap, None))
    return as_kind(y, dx)


def masked_log_softmax_backward(
    y: Array,
    dy: Array,
    mask: Mask | Array | None = None,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    x: Array | None = None,
    softcap: float = 0.0,
    stream: Any = None,
) -> Array:
    """scale * (dy - y.exp() * dy.sum(-1, keepdim=True)) where the mask allows, else 0: masked_log_softmax's gradient

    The sum is over what the mask allows. x, the forward call's, is needed with a softcap alone. out may be y or dy.
    """
    dx = _output(out, y, y.shape)
    _run(_core.masked_log_softmax_backward, stream, x, y, dy, _members(mask), dx, _masked_options(scale, softcap, None))
    return as_kind(y, dx)


def masked_softmax_bias_backward(
    y: Array,
    dy: Array,
    shape: Sequence[int],
    mask: Mask | Array | None = None,
    out: Array | None = None,
    *,
    stream: Any = None,
) -> Array:
    """(y * (dy - (y * dy).sum(-1, keepdim=True))).sum_to_size(shape): masked_softmax's gradient by a bias

    shape: the bias', which broadcasts to y.
    """
    dbias = _output(out, y, shape)
    _run(_core.masked_softmax_bias_backward, stream, y, dy, _members(mask), dbias)
    return as_kind(y, dbias)


def masked_softmax_sinks_backward(
    y: Array,
    dy: Array,
    mask: Mask | Array | None = None,
    out: Array | None = None,
    *,
    stream: Any = None,
) -> Array:
    """-((1 - y.sum(-1)) * (y * dy).sum(-1)), summed over all axes but that of the heads: the gradient by the sinks"""
    dsinks = _output(out, y, (y.shape[-3] if len(y.shape) > 2 else 1,))
    _run(_core.masked_softmax_sinks_backward, stream, y, dy, _members(mask), dsinks)
    return as_kind(y, dsinks)


# --- cross_entropy.hpp ---


def _loss_options(
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    z_loss: float,
    softcap: float,
    weighted_z_loss: bool,
    **others: Any,
) -> dict[str, Any]:
    return {
        "reduction": _named("reduction", _REDUCTIONS, reduction),
        "ignore_index": ignore_index,
        "label_smoothing": label_smoothing,
        "z_loss": z_loss,
        "softcap": softcap,
        "weighted_z_loss": int(weighted_z_loss),
        **others,
    }


def _empty_loss(logits: Array, axis: int, reduction: str) -> Array:
    return empty(logits, _without(logits, axis) if reduction == "none" else (), accumulator_name(logits))


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
    check_labels: bool = False,
    predicted: Array | None = None,
    stream: Any = None,
) -> tuple[Array, Array]:
    """(loss, lse): torch.nn.functional.cross_entropy(logits, labels, weights), and torch.logsumexp(logits, axis)

    Classes lie along the axis, which of torch.nn.functional's is 1. loss, lse and weights are float64 if the logits
    are, else float32. z_loss * lse^2 is added to a row's loss, with the weight of its class unless weighted_z_loss is
    False. A label out of range gives NaN, or with check_labels a ValueError. predicted, an array of int32 or int64 with
    a value a row, gets torch.argmax(logits, axis) in the same pass.
    """
    if predicted is not None:
        require_writable(predicted)
    loss = _empty_loss(logits, axis, reduction)
    lse = empty(logits, _without(logits, axis), accumulator_name(logits))
    options = _loss_options(
        reduction,
        ignore_index,
        label_smoothing,
        z_loss,
        softcap,
        weighted_z_loss,
        axis=axis,
        check_labels=int(check_labels),
    )
    _run(_core.cross_entropy, stream, logits, labels, loss, lse, weights, predicted, options)
    return as_kind(logits, loss), as_kind(logits, lse)


def cross_entropy_backward(
    logits: Array,
    labels: Array,
    lse: Array,
    dloss: Array,
    weights: Array | None = None,
    out: Array | None = None,
    *,
    axis: int = -1,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    softcap: float = 0.0,
    weighted_z_loss: bool = True,
    first_class: int = 0,
    classes: int = 0,
    stream: Any = None,
) -> Array:
    """torch.autograd.grad(loss, logits, dloss)[0] of cross_entropy's loss, from its lse; out may be the logits

    The logits may be some of the classes, those from first_class on of `classes`, for which lse and weights are.
    """
    dlogits = _output(out, logits, logits.shape)
    options = _loss_options(
        reduction,
        ignore_index,
        label_smoothing,
        z_loss,
        softcap,
        weighted_z_loss,
        axis=axis,
        first_class=first_class,
        classes=classes,
    )
    _run(_core.cross_entropy_backward, stream, logits, labels, lse, dloss, dlogits, weights, options)
    return as_kind(logits, dlogits)


def cross_entropy_with_gradient(
    logits: Array,
    labels: Array,
    weights: Array | None = None,
    out: Array | None = None,
    *,
    axis: int = -1,
    gradient_scale: float = 1.0,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    softcap: float = 0.0,
    weighted_z_loss: bool = True,
    check_labels: bool = False,
    predicted: Array | None = None,
    stream: Any = None,
) -> tuple[Array, Array]:
    """(loss, dlogits) in one pass: loss as cross_entropy, dlogits as torch.autograd.grad(gradient_scale * loss, logits)

    out, where dlogits goes, may be the logits; predicted as cross_entropy has it.
    """
    if predicted is not None:
        require_writable(predicted)
    loss = _empty_loss(logits, axis, reduction)
    dlogits = _output(out, logits, logits.shape)
    options = _loss_options(
        reduction,
        ignore_index,
        label_smoothing,
        z_loss,
        softcap,
        weighted_z_loss,
        axis=axis,
        gradient_scale=gradient_scale,
        check_labels=int(check_labels),
    )
    _run(_core.cross_entropy_with_gradient, stream, logits, labels, loss, dlogits, None, weights, predicted, options)
    return as_kind(logits, loss), as_kind(logits, dlogits)


def cross_entropy_from_lse(
    lse: Array,
    label_logits: Array,
    labels: Array,
    weights: Array | None = None,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
    z_loss: float = 0.0,
    weighted_z_loss: bool = True,
    classes: int = 0,
    check_labels: bool = False,
    stream: Any = None,
) -> Array:
    """(lse - label_logits).mean(), cross_entropy's loss from rows' log-sum-exps and the logits of their labels

    All are of float32 or of float64. For classes in parts: logsumexp of each part, logsumexp(parts, axis=0) of these,
    this function, and for each part cross_entropy_backward with first_class and classes.
    """
    loss = empty(lse, lse.shape if reduction == "none" else (), accumulator_name(lse))
    options = _loss_options(
        reduction,
        ignore_index,
        0.0,
        z_loss,
        0.0,
        weighted_z_loss,
        classes=classes,
        check_labels=int(check_labels),
    )
    _run(_core.cross_entropy_from_lse, stream, lse, label_logits, labels, loss, weights, options)
    return as_kind(lse, loss)


def soft_cross_entropy(
    logits: Array,
    targets: Array,
    weights: Array | None = None,
    *,
    axis: int = -1,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    stream: Any = None,
) -> tuple[Array, Array]:
    """(loss, lse): torch.nn.functional.cross_entropy(logits, targets, weights) of targets that are probabilities

    targets have the logits' shape and type. Classes lie along the axis, which of torch.nn.functional's is 1. A class
    whose target is 0 adds nothing, also where its logit is -inf.
    """
    loss = _empty_loss(logits, axis, reduction)
    lse = empty(logits, _without(logits, axis), accumulator_name(logits))
    options = {
        "axis": axis,
        "reduction": _named("reduction", _REDUCTIONS, reduction),
        "label_smoothing": label_smoothing,
    }
    _run(_core.soft_cross_entropy, stream, logits, targets, loss, lse, weights, options)
    return as_kind(logits, loss), as_kind(logits, lse)


def soft_cross_entropy_with_gradient(
    logits: Array,
    targets: Array,
    weights: Array | None = None,
    out: Array | None = None,
    *,
    axis: int = -1,
    gradient_scale: float = 1.0,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    stream: Any = None,
) -> tuple[Array, Array]:
    """(loss, dlogits) in one pass: loss as soft_cross_entropy, dlogits the gradient of gradient_scale * loss by logits

    out, where dlogits goes, may be the logits or the targets.
    """
    loss = _empty_loss(logits, axis, reduction)
    dlogits = _output(out, logits, logits.shape)
    options = {
        "axis": axis,
        "gradient_scale": gradient_scale,
        "reduction": _named("reduction", _REDUCTIONS, reduction),
        "label_smoothing": label_smoothing,
    }
    _run(_core.soft_cross_entropy_with_gradient, stream, logits, targets, loss, dlogits, None, weights, options)
    return as_kind(logits, loss), as_kind(logits, dlogits)


# --- norm.hpp ---


def rms_norm(
    x: Array,
    weight: Array | None = None,
    epsilon: float = 1e-6,
    axis: int = -1,
    out: Array | None = None,
    *,
    weight_offset: float = 0.0,
    stream: Any = None,
) -> tuple[Array, Array]:
    """(y, rstd): torch.nn.functional.rms_norm(x, x.shape[-1:], weight, epsilon), and 1 / sqrt(mean(x^2) + epsilon)

    weight: one value a column, of x's type or float32, to which weight_offset is added. rstd, for the gradient, is
    float64 if x is, else float32. out may be x.
    """
    y = _output(out, x, x.shape)
    rstd = empty(x, _without(x, axis), accumulator_name(x))
    options = {"epsilon": epsilon, "axis": axis, "weight_offset": weight_offset}
    _run(_core.rms_norm, stream, x, weight, y, rstd, options)
    return as_kind(x, y), as_kind(x, rstd)


def layer_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    epsilon: float = 1e-5,
    axis: int = -1,
    out: Array | None = None,
    *,
    stream: Any = None,
) -> tuple[Array, Array, Array]:
    """(y, mean, rstd): torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, epsilon), and two values a row

    weight, bias: one value a column, of x's type or float32. mean and rstd, for the gradient, are float64 if x is, else
    float32. out may be x.
    """
    y = _output(out, x, x.shape)
    mean, rstd = (empty(x, _without(x, axis), accumulator_name(x)) for _ in range(2))
    _run(_core.layer_norm, stream, x, weight, bias, y, mean, rstd, {"epsilon": epsilon, "axis": axis})
    return as_kind(x, y), as_kind(x, mean), as_kind(x, rstd)


def rms_norm_backward(
    x: Array,
    rstd: Array,
    dy: Array,
    weight: Array | None = None,
    axis: int = -1,
    out: Array | None = None,
    *,
    dweight: Array | None = None,
    weight_offset: float = 0.0,
    stream: Any = None,
) -> Array:
    """torch.autograd.grad(y, x, dy)[0] of rms_norm, from its rstd; out may be x or dy

    dweight: where the gradient by the weight goes, of x's type or float32.
    """
    dx = _output(out, x, x.shape)
    options = {"axis": axis, "weight_offset": weight_offset}
    _run(_core.rms_norm_backward, stream, x, weight, rstd, dy, dx, dweight, options)
    return as_kind(x, dx)


def layer_norm_backward(
    x: Array,
    mean: Array,
    rstd: Array,
    dy: Array,
    weight: Array | None = None,
    axis: int = -1,
    out: Array | None = None,
    *,
    dweight: Array | None = None,
    dbias: Array | None = None,
    stream: Any = None,
) -> Array:
    """torch.autograd.grad(y, x, dy)[0] of layer_norm, from its mean and rstd; out may be x or dy

    dweight, dbias: where the gradients by weight and bias go, of x's type or float32.
    """
    dx = _output(out, x, x.shape)
    _run(_core.layer_norm_backward, stream, x, weight, mean, rstd, dy, dx, dweight, dbias, {"axis": axis})
    return as_kind(x, dx)


# --- quantized.hpp ---


def quantized_softmax(
    x: Array,
    axis: int | tuple[int, ...] = -1,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    dtype: str = "int8",
    has_scales: bool = True,
    masked_row: str = "nan",
    stream: Any = None,
) -> tuple[Array, Array | None]:
    """(y, scales): softmax(x, axis, scale=scale) in 8 bits, about y * scales, a float32 a row

    dtype: "int8" or "float8_e4m3fn" (of NumPy by ml_dtypes), or that of out. With has_scales=False, of float8 alone, y
    is the result itself and scales None.
    """
    y = _output(out, x, x.shape, dtype)
    scales = empty(x, _without(x, axis), "float32") if has_scales else None
    options = {**_reduced(x, axis), "scale": scale, "masked_row": _named("masked_row", _MASKED_ROWS, masked_row)}
    _run(_core.quantized_softmax, stream, x, y, scales, options)
    return as_kind(x, y), None if scales is None else as_kind(x, scales)


def quantized_rms_norm(
    x: Array,
    weight: Array | None = None,
    epsilon: float = 1e-6,
    axis: int = -1,
    out: Array | None = None,
    *,
    dtype: str = "int8",
    has_scales: bool = True,
    weight_offset: float = 0.0,
    stream: Any = None,
) -> tuple[Array, Array | None]:
    """(y, scales): rms_norm in 8 bits, about y * scales; arguments as of that and of quantized_softmax"""
    y = _output(out, x, x.shape, dtype)
    scales = empty(x, _without(x, axis), "float32") if has_scales else None
    options = {"epsilon": epsilon, "axis": axis, "weight_offset": weight_offset}
    _run(_core.quantized_rms_norm, stream, x, weight, y, scales, options)
    return as_kind(x, y), None if scales is None else as_kind(x, scales)


def quantized_layer_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    epsilon: float = 1e-5,
    axis: int = -1,
    out: Array | None = None,
    *,
    dtype: str = "int8",
    has_scales: bool = True,
    stream: Any = None,
) -> tuple[Array, Array | None]:
    """(y, scales): layer_norm in 8 bits, about y * scales; arguments as of that and of quantized_softmax"""
    y = _output(out, x, x.shape, dtype)
    scales = empty(x, _without(x, axis), "float32") if has_scales else None
    _run(_core.quantized_layer_norm, stream, x, weight, bias, y, scales, {"epsilon": epsilon, "axis": axis})
    return as_kind(x, y), None if scales is None else as_kind(x, scales)


# --- add_norm.hpp ---


def add_rms_norm(
    x: Array,
    residual: Array,
    weight: Array | None = None,
    epsilon: float = 1e-6,
    axis: int = -1,
    out: Array | None = None,
    *,
    out_sum: Array | None = None,
    weight_offset: float = 0.0,
    stream: Any = None,
) -> tuple[Array, Array, Array]:
    """(y, sum, rstd): sum = x + residual and rms_norm(sum) in one pass; out_sum, where sum goes, may be an input"""
    y, total = _output(out, x, x.shape), _output(out_sum, x, x.shape)
    rstd = empty(x, _without(x, axis), accumulator_name(x))
    options = {"epsilon": epsilon, "axis": axis, "weight_offset": weight_offset}
    _run(_core.add_rms_norm, stream, x, residual, weight, y, total, rstd, options)
    return as_kind(x, y), as_kind(x, total), as_kind(x, rstd)


def add_layer_norm(
    x: Array,
    residual: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    epsilon: float = 1e-5,
    axis: int = -1,
    out: Array | None = None,
    *,
    out_sum: Array | None = None,
    stream: Any = None,
) -> tuple[Array, Array, Array, Array]:
    """(y, sum, mean, rstd): sum = x + residual and layer_norm(sum) in one pass; out_sum may be an input"""
    y, total = _output(out, x, x.shape), _output(out_sum, x, x.shape)
    mean, rstd = (empty(x, _without(x, axis), accumulator_name(x)) for _ in range(2))
    options = {"epsilon": epsilon, "axis": axis}
    _run(_core.add_layer_norm, stream, x, residual, weight, bias, y, total, mean, rstd, options)
    return as_kind(x, y), as_kind(x, total), as_kind(x, mean), as_kind(x, rstd)


def add_rms_norm_backward(
    sum: Array,
    rstd: Array,
    dy: Array,
    dsum: Array,
    weight: Array | None = None,
    axis: int = -1,
    out: Array | None = None,
    *,
    dweight: Array | None = None,
    weight_offset: float = 0.0,
    stream: Any = None,
) -> Array:
    """rms_norm_backward(sum, rstd, dy, weight) + dsum, the gradient by x and by the residual; out may be an input"""
    dx = _output(out, sum, sum.shape)
    options = {"axis": axis, "weight_offset": weight_offset}
    _run(_core.add_rms_norm_backward, stream, sum, weight, rstd, dy, dsum, dx, dweight, options)
    return as_kind(sum, dx)


def add_layer_norm_backward(
    sum: Array,
    mean: Array,
    rstd: Array,
    dy: Array,
    dsum: Array,
    weight: Array | None = None,
    axis: int = -1,
    out: Array | None = None,
    *,
    dweight: Array | None = None,
    dbias: Array | None = None,
    stream: Any = None,
) -> Array:
    """layer_norm_backward(sum, mean, rstd, dy, weight) + dsum, the gradient by x and by the residual"""
    dx = _output(out, sum, sum.shape)
    _run(_core.add_layer_norm_backward, stream, sum, weight, mean, rstd, dy, dsum, dx, dweight, dbias, {"axis": axis})
    return as_kind(sum, dx)


# --- column_sums.hpp ---


def column_sums(
    x: Array, axis: int = -1, out: Array | None = None, *, dtype: str | None = None, stream: Any = None
) -> Array:
    """x.movedim(axis, -1).flatten(0, -2).sum(0): sums over all axes but one, in a fixed order

    The gradient of a bias, of that of its layer's output. dtype: of the result; x's, or "float32" where x has 16 bits.
    """
    axis_from_0 = axis + len(x.shape) if axis < 0 else axis
    y = _output(out, x, tuple(x.shape)[axis_from_0 : axis_from_0 + 1], dtype)
    _run(_core.column_sums, stream, x, y, {"axis": axis})
    return as_kind(x, y)


# --- segmented.hpp ---


def _segmented_options(scale: float, masked_row: str, check_offsets: bool, segments: int) -> dict[str, Any]:
    masked_row_number = _named("masked_row", _MASKED_ROWS, masked_row)
    return {
        "scale": scale,
        "masked_row": masked_row_number,
        "check_offsets": int(check_offsets),
        "segments": segments,
    }


def segmented_softmax(
    values: Array,
    row_offsets: Array,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    masked_row: str = "nan",
    check_offsets: bool = False,
    segments: int = 0,
    stream: Any = None,
) -> Array:
    """torch.cat([torch.softmax(scale * row, 0) for row in rows]), row r being values[row_offsets[r]:row_offsets[r + 1]]

    values: (elements,) or (elements, heads). Elements in no row are not written. With check_offsets, offsets that do
    not ascend are a ValueError, for which the host waits; otherwise they give undefined values.
    With segments, row_offsets is an index instead: element i is of row row_offsets[i], in any order, of so many rows.
    """
    y = _output(out, values, values.shape)
    options = _segmented_options(scale, masked_row, check_offsets, segments)
    _run(_core.segmented_softmax, stream, values, row_offsets, y, options)
    return as_kind(values, y)


def segmented_log_softmax(
    values: Array,
    row_offsets: Array,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    masked_row: str = "nan",
    check_offsets: bool = False,
    segments: int = 0,
    stream: Any = None,
) -> Array:
    """torch.cat([torch.log_softmax(scale * row, 0) for row in rows]); as segmented_softmax otherwise"""
    y = _output(out, values, values.shape)
    options = _segmented_options(scale, masked_row, check_offsets, segments)
    _run(_core.segmented_log_softmax, stream, values, row_offsets, y, options)
    return as_kind(values, y)


def segmented_logsumexp(
    values: Array,
    row_offsets: Array,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    check_offsets: bool = False,
    segments: int = 0,
    stream: Any = None,
) -> Array:
    """torch.stack([torch.logsumexp(scale * row, 0) for row in rows]); an empty row's is not written"""
    lse = _output(out, values, (segments or max(row_offsets.shape[0] - 1, 0), *tuple(values.shape)[1:]))
    options = _segmented_options(scale, "nan", check_offsets, segments)
    _run(_core.segmented_logsumexp, stream, values, row_offsets, lse, options)
    return as_kind(values, lse)


def segmented_softmax_backward(
    y: Array,
    dy: Array,
    row_offsets: Array,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    segments: int = 0,
    stream: Any = None,
) -> Array:
    """torch.cat([scale * y * (dy - (y * dy).sum(0)) for y, dy in rows]); out may be y or dy"""
    dx = _output(out, y, y.shape)
    _run(_core.segmented_softmax_backward, stream, y, dy, row_offsets, dx, {"scale": scale, "segments": segments})
    return as_kind(y, dx)


def segmented_log_softmax_backward(
    y: Array,
    dy: Array,
    row_offsets: Array,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    segments: int = 0,
    stream: Any = None,
) -> Array:
    """torch.cat([scale * (dy - y.exp() * dy.sum(0)) for y, dy in rows]); out may be y or dy"""
    dx = _output(out, y, y.shape)
    _run(_core.segmented_log_softmax_backward, stream, y, dy, row_offsets, dx, {"scale": scale, "segments": segments})
    return as_kind(y, dx)


def segmented_logsumexp_backward(
    values: Array,
    lse: Array,
    dlse: Array,
    row_offsets: Array,
    out: Array | None = None,
    scale: float = 1.0,
    *,
    masked_row: str = "nan",
    check_offsets: bool = False,
    segments: int = 0,
    stream: Any = None,
) -> Array:
    """torch.cat([scale * dlse * (scale * row - lse).exp() for row, lse, dlse in rows]); out may be values"""
    dx = _output(out, values, values.shape)
    options = _segmented_options(scale, masked_row, check_offsets, segments)
    _run(_core.segmented_logsumexp_backward, stream, values, lse, dlse, row_offsets, dx, options)
    return as_kind(values, dx)


# --- attention.hpp ---


class Dropout(NamedTuple):
    """Dropout of attention's weights, in attention and, by the same values, in its gradients

    Each weight becomes 0 with this probability, the others are multiplied by 1 / (1 - probability). Weights that stay
    are a function of seed, offset, batch, head, query and key (Philox), so nothing is stored: give each call under a
    seed another offset.
    """

    probability: float
    seed: int = 0
    offset: int = 0


def _attention_options(
    scale: float | None,
    softcap: float,
    sinks: Array | None,
    diagonal: str,
    axes: str,
    masked_row: str = "nan",
    dropout: Dropout | None = None,
) -> dict[str, Any]:
    dropped = {} if dropout is None else {"dropout_" + name: value for name, value in dropout._asdict().items()}
    return {
        "diagonal": _named("diagonal", _DIAGONALS, diagonal),
        **_masked_options(0.0 if scale is None else scale, softcap, sinks),
        "axes": _named("axes", _ATTENTION_AXES, axes),
        "masked_row": _named("masked_row", _MASKED_ROWS, masked_row),
        **dropped,
    }


def attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Mask | Array | None = None,
    out: Array | None = None,
    scale: float | None = None,
    *,
    softcap: float = 0.0,
    sinks: Array | None = None,
    masked_row: str = "nan",
    axes: str = "batch_head_sequence_dim",
    precision: str = "exact",
    diagonal: str = "first",
    dropout: Dropout | None = None,
    stream: Any = None,
) -> tuple[Array, Array]:
    """(o, lse): torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=True)

    q, k, v, o: (batch, head, sequence, dim), or with axes="batch_sequence_head_dim" in that order; q has a multiple of
    k's heads. scale: 1 / sqrt(dim) if None. mask: a Mask, or an array of bool, of the scores (batch, head, query, key).
    lse: (batch, head, query), the log-sum-exps of the scores, of float64 if q is, else float32. softcap, sinks and
    masked_row are masked_softmax's, precision is matmul's. diagonal: place of causal masks, windows and ALiBi: "first",
    query i at key i, or "last", the last query at the last key. dropout: a Dropout of the weights.
    """
    options = _attention_options(scale, softcap, sinks, diagonal, axes, masked_row, dropout=dropout)
    options["precision"] = _named("precision", _PRECISIONS, precision)
    o = _output(out, q, (*tuple(q.shape)[:-1], *tuple(v.shape)[-1:]))
    rows = tuple(q.shape)[:-1]
    lse = empty(q, rows if options["axes"] == 0 else (*rows[:1], *rows[:0:-1]), accumulator_name(q))
    _run(_core.attention, stream, q, k, v, o, _members(mask), lse, options)
    return as_kind(q, o), as_kind(q, lse)


def attention_backward(
    q: Array,
    k: Array,
    v: Array,
    o: Array,
    lse: Array,
    dout: Array,
    mask: Mask | Array | None = None,
    scale: float | None = None,
    *,
    softcap: float = 0.0,
    sinks: Array | None = None,
    axes: str = "batch_head_sequence_dim",
    diagonal: str = "first",
    dropout: Dropout | None = None,
    stream: Any = None,
) -> tuple[Array, Array, Array]:
    """(dq, dk, dv): torch.autograd.grad(o, (q, k, v), dout) of attention, from its o and lse"""
    dq, dk, dv = (empty(x, tuple(x.shape)) for x in (q, k, v))
    options = _attention_options(scale, softcap, sinks, diagonal, axes, dropout=dropout)
    _run(_core.attention_backward, stream, q, k, v, o, dout, lse, _members(mask), dq, dk, dv, options)
    return as_kind(q, dq), as_kind(k, dk), as_kind(v, dv)


# --- attention_mask_gradients.hpp ---


def attention_bias_backward(
    q: Array,
    k: Array,
    v: Array,
    o: Array,
    lse: Array,
    dout: Array,
    mask: Mask,
    scale: float | None = None,
    *,
    softcap: float = 0.0,
    sinks: Array | None = None,
    axes: str = "batch_head_sequence_dim",
    diagonal: str = "first",
    dropout: Dropout | None = None,
    stream: Any = None,
) -> Array:
    """torch.autograd.grad(o, mask.bias, dout)[0] of attention, from its o and lse"""
    dbias = empty(mask.bias, tuple(mask.bias.shape))
    options = _attention_options(scale, softcap, sinks, diagonal, axes, dropout=dropout)
    _run(_core.attention_bias_backward, stream, q, k, v, o, dout, lse, _members(mask), dbias, options)
    return as_kind(mask.bias, dbias)


def attention_sinks_backward(
    o: Array, lse: Array, dout: Array, sinks: Array, axes: str = "batch_head_sequence_dim", *, stream: Any = None
) -> Array:
    """torch.autograd.grad(o, sinks, dout)[0] of attention, from its o and lse; sinks: one a head"""
    dsinks = empty(sinks, tuple(sinks.shape))
    options = _attention_options(None, 0.0, sinks, "first", axes)
    _run(_core.attention_sinks_backward, stream, o, dout, lse, dsinks, options)
    return as_kind(sinks, dsinks)


# --- graph_attention.hpp ---


def graph_attention(
    q: Array,
    k: Array,
    v: Array,
    row_map: Array,
    entries: Array,
    bias: Array | None = None,
    out: Array | None = None,
    scale: float | None = None,
    *,
    softcap: float = 0.0,
    sinks: Array | None = None,
    masked_row: str = "nan",
    stream: Any = None,
) -> tuple[Array, Array]:
    """(o, lse) of attention of nodes to the sources of their edges

    q, o: (node, head, dim); k, v: (source, head of k, dim). Node i has the edges row_map[i]:row_map[i + 1], whose
    sources are entries[...]; one outside of k is no edge. bias: (edge, head) of q's type or float32, added to the
    scores. lse: (node, head). scale, softcap, sinks and masked_row, o of a node without an edge, are attention's.
    """
    options = _attention_options(scale, softcap, sinks, "first", "batch_head_sequence_dim", masked_row)
    o = _output(out, q, (*tuple(q.shape)[:-1], *tuple(v.shape)[-1:]))
    lse = empty(q, tuple(q.shape)[:-1], accumulator_name(q))
    _run(_core.graph_attention, stream, q, k, v, row_map, entries, bias, o, lse, options)
    return as_kind(q, o), as_kind(q, lse)


def graph_attention_backward(
    q: Array,
    k: Array,
    v: Array,
    row_map: Array,
    entries: Array,
    o: Array,
    lse: Array,
    dout: Array,
    bias: Array | None = None,
    scale: float | None = None,
    *,
    softcap: float = 0.0,
    sinks: Array | None = None,
    stream: Any = None,
) -> tuple[Array, Array, Array, Array | None]:
    """(dq, dk, dv, dbias): gradients of graph_attention, from its o and lse; dbias is None without a bias"""
    dq, dk, dv = (empty(x, tuple(x.shape)) for x in (q, k, v))
    dbias = None if bias is None else empty(bias, tuple(bias.shape))
    options = _attention_options(scale, softcap, sinks, "first", "batch_head_sequence_dim")
    inputs = (q, k, v, row_map, entries, bias, o, dout, lse)
    _run(_core.graph_attention_backward, stream, *inputs, dq, dk, dv, dbias, options)
    return as_kind(q, dq), as_kind(k, dk), as_kind(v, dv), None if bias is None else as_kind(bias, dbias)


# --- merge_attention.hpp ---


def merge_attention(
    o_parts: Array,
    lse_parts: Array,
    out: Array | None = None,
    *,
    sinks: Array | None = None,
    masked_row: str = "nan",
    axes: str = "batch_head_sequence_dim",
    stream: Any = None,
) -> tuple[Array, Array]:
    """(o, lse) of attention over all keys from those over disjoint ones

    lse = torch.logsumexp(lse_parts, 0); o = ((lse_parts - lse).exp()[..., None] * o_parts).sum(0)

    o_parts: (part, batch, head, sequence, dim) in the order that axes says, or (part, token, head, dim). lse_parts:
    (part, batch, head, query) or (part, token, head), of float64 if o_parts are, else float32. out of float16 or
    bfloat16 takes parts of float32, too. sinks join the sum here, so parts must be without.
    """
    rows, options = tuple(o_parts.shape)[1:], _attention_options(None, 0.0, sinks, "first", axes, masked_row)
    o = _output(out, o_parts, rows)
    lse = empty(o_parts, tuple(lse_parts.shape)[1:], accumulator_name(o_parts))
    _run(_core.merge_attention, stream, o_parts, lse_parts, o, lse, options)
    return as_kind(o_parts, o), as_kind(o_parts, lse)


# --- packed_attention.hpp ---


def packed_attention(
    q: Array,
    k: Array,
    v: Array,
    query_offsets: Array,
    key_offsets: Array,
    mask: Mask | None = None,
    out: Array | None = None,
    scale: float | None = None,
    *,
    softcap: float = 0.0,
    sinks: Array | None = None,
    masked_row: str = "nan",
    precision: str = "exact",
    diagonal: str = "first",
    dropout: Dropout | None = None,
    stream: Any = None,
) -> tuple[Array, Array]:
    """(o, lse) of attention within each of a batch of packed sequences

    q, k, v, o: (token, head, dim); sequence s has the queries query_offsets[s]:query_offsets[s + 1] and the keys
    key_offsets[s]:key_offsets[s + 1], and a mask numbers both within it. Offsets are int32 or int64.
    lse: (token, head). Tokens of no sequence are not written. The rest is attention's.
    """
    axes = "batch_head_sequence_dim"
    options = _attention_options(scale, softcap, sinks, diagonal, axes, masked_row, dropout=dropout)
    options["precision"] = _named("precision", _PRECISIONS, precision)
    o = _output(out, q, (*tuple(q.shape)[:-1], *tuple(v.shape)[-1:]))
    lse = empty(q, tuple(q.shape)[:-1], accumulator_name(q))
    _run(_core.packed_attention, stream, q, k, v, query_offsets, key_offsets, o, _members(mask), lse, options)
    return as_kind(q, o), as_kind(q, lse)


def packed_attention_backward(
    q: Array,
    k: Array,
    v: Array,
    query_offsets: Array,
    key_offsets: Array,
    o: Array,
    lse: Array,
    dout: Array,
    mask: Mask | None = None,
    scale: float | None = None,
    *,
    softcap: float = 0.0,
    sinks: Array | None = None,
    diagonal: str = "first",
    dropout: Dropout | None = None,
    stream: Any = None,
) -> tuple[Array, Array, Array]:
    """(dq, dk, dv): gradients of packed_attention, from its o and lse"""
    dq, dk, dv = (empty(x, tuple(x.shape)) for x in (q, k, v))
    options = _attention_options(scale, softcap, sinks, diagonal, "batch_head_sequence_dim", dropout=dropout)
    offsets = (query_offsets, key_offsets)
    _run(_core.packed_attention_backward, stream, q, k, v, *offsets, o, dout, lse, _members(mask), dq, dk, dv, options)
    return as_kind(q, dq), as_kind(k, dk), as_kind(v, dv)


# --- matmul.hpp ---


def _broadcast(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The extents that several broadcast to; the library complains of those that do not fit."""
    rank = max(len(shape) for shape in shapes)
    columns = zip(*((1,) * (rank - len(shape)) + tuple(shape) for shape in shapes))
    return tuple(next((extent for extent in extents if extent != 1), 1) for extents in columns)


def matmul(
    a: Array,
    b: Array,
    out: Array | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    precision: str = "exact",
    batch_invariant: bool = False,
    provider: str = "automatic",
    rows: Array | None = None,
    row_offsets: Array | None = None,
    stream: Any = None,
) -> Array:
    """torch.matmul(a, b) of matrices (..., m, k) and (..., k, n); alpha * torch.matmul(a, b) + beta * out

    Transposed arrays are taken where they are. precision, of float32 on GPUs with TF32: "exact", "tensor_float32x3",
    whose errors are about twice float32's, or "tensor_float32", which rounds elements to 11 bits.

    batch_invariant: on a GPU, too, an element's bits depend on its terms alone; long sums of few elements take longer.
    provider: "own" kernels, "vendor", BLAS, cuBLAS or rocBLAS where the library was built with them, or "automatic".
    rows: integers; the product is torch.matmul(a[rows], b), whose rows are read where they are, NaN where an integer is
    no row of a. row_offsets: the result's row r is the sum of the product's rows row_offsets[r] to
    row_offsets[r + 1] - 1. Both of matrices of two axes: together, the messages of a graph's edges, summed by target,
    in one kernel.
    """
    batch = _broadcast(tuple(a.shape)[:-2], tuple(b.shape)[:-2])
    options = {"alpha": alpha, "beta": beta, "precision": _named("precision", _PRECISIONS, precision)}
    options["determinism"] = int(batch_invariant)
    options["provider"] = _named("provider", _MATMUL_PROVIDERS, provider)
    count = tuple(a.shape)[-2:-1]
    if rows is not None:
        options["rows"], count = rows, tuple(rows.shape)
    if row_offsets is not None:
        options["row_offsets"], count = row_offsets, (row_offsets.shape[0] - 1,)
    c = _output(out, a, (*batch, *count, *tuple(b.shape)[-1:]))
    _run(_core.matmul, stream, a, b, c, options)
    return as_kind(a, c)


def matmul_backward(
    dc: Array,
    a: Array,
    b: Array,
    *,
    alpha: float = 1.0,
    precision: str = "exact",
    batch_invariant: bool = False,
    provider: str = "automatic",
    stream: Any = None,
) -> tuple[Array, Array]:
    """(da, db): gradients of matmul, alpha * dc b^T and alpha * a^T dc, summed over the batches that a or b has not"""
    options = {"alpha": alpha, "precision": _named("precision", _PRECISIONS, precision)}
    options["determinism"] = int(batch_invariant)
    options["provider"] = _named("provider", _MATMUL_PROVIDERS, provider)
    da, db = (empty(x, tuple(x.shape)) for x in (a, b))
    _run(_core.matmul_backward, stream, dc, a, b, da, db, options)
    return as_kind(a, da), as_kind(b, db)


# --- rope.hpp ---


def _rope_options(
    form: str,
    rotary_dims: int,
    sequence_axis: int,
    position_offset: int,
    theta: float,
    position_scale: float,
    check_positions: bool,
) -> dict[str, Any]:
    return {
        "form": _named("form", _ROPE_FORMS, form),
        "rotary_dims": rotary_dims,
        "sequence_axis": sequence_axis,
        "position_offset": position_offset,
        "theta": theta,
        "position_scale": position_scale,
        "check_positions": int(check_positions),
    }


def rope(
    x: Array,
    cos: Array | None = None,
    sin: Array | None = None,
    positions: Array | None = None,
    out: Array | None = None,
    *,
    form: str = "half_rotated",
    rotary_dims: int = 0,
    sequence_axis: int = -3,
    position_offset: int = 0,
    theta: float = 10000.0,
    position_scale: float = 1.0,
    check_positions: bool = False,
    stream: Any = None,
) -> Array:
    """torch.cat((a * cos - b * sin, b * cos + a * sin), -1), (a, b) being x.chunk(2, -1): rotary position embedding

    x: (batch, sequence, head, dim), (sequence, head, dim) or (sequence, dim); for (batch, head, sequence, dim)
    sequence_axis is -2. cos, sin: tables (positions, rotary_dims / 2), of float64 if x is, else float32; without them
    pair i turns by position * position_scale * theta^(-2 i / rotary_dims). positions: (sequence) or (batch, sequence),
    of int32 or int64; without them a row's is its index, plus position_offset. form="interleaved" has the pairs
    (x[2 i], x[2 i + 1]). rotary_dims: how many of the first elements rotate; 0 is all. out may be x.
    """
    y = _output(out, x, x.shape)
    options = _rope_options(form, rotary_dims, sequence_axis, position_offset, theta, position_scale, check_positions)
    _run(_core.rope, stream, x, cos, sin, y, positions, options)
    return as_kind(x, y)


def rope_backward(
    dy: Array,
    cos: Array | None = None,
    sin: Array | None = None,
    positions: Array | None = None,
    out: Array | None = None,
    *,
    form: str = "half_rotated",
    rotary_dims: int = 0,
    sequence_axis: int = -3,
    position_offset: int = 0,
    theta: float = 10000.0,
    position_scale: float = 1.0,
    check_positions: bool = False,
    stream: Any = None,
) -> Array:
    """torch.autograd.grad(y, x, dy)[0] of rope: dy rotated back; out may be dy"""
    dx = _output(out, dy, dy.shape)
    options = _rope_options(form, rotary_dims, sequence_axis, position_offset, theta, position_scale, check_positions)
    _run(_core.rope_backward, stream, dy, cos, sin, dx, positions, options)
    return as_kind(dy, dx)


# --- rms_norm_rope.hpp ---


def rms_norm_rope(
    x: Array,
    weight: Array | None = None,
    cos: Array | None = None,
    sin: Array | None = None,
    positions: Array | None = None,
    epsilon: float = 1e-6,
    out: Array | None = None,
    *,
    weight_offset: float = 0.0,
    form: str = "half_rotated",
    rotary_dims: int = 0,
    sequence_axis: int = -3,
    position_offset: int = 0,
    theta: float = 10000.0,
    position_scale: float = 1.0,
    check_positions: bool = False,
    stream: Any = None,
) -> Array:
    """rope(rms_norm(x, weight, epsilon)[0], cos, sin, positions) in one pass

    weight: (dim), or (head, dim) for one a head, so that queries and keys in one array are one call. out may be x.
    """
    y = _output(out, x, x.shape)
    options = _rope_options(form, rotary_dims, sequence_axis, position_offset, theta, position_scale, check_positions)
    options |= {"epsilon": epsilon, "weight_offset": weight_offset}
    _run(_core.rms_norm_rope, stream, x, weight, cos, sin, y, positions, options)
    return as_kind(x, y)


# --- elementwise.hpp ---


def add(a: Array, b: Array, out: Array | None = None, *, stream: Any = None) -> Array:
    """torch.add(a, b) of one type; out may be a or b"""
    y = _output(out, a, _broadcast(a.shape, b.shape))
    _run(_core.add, stream, a, b, y)
    return as_kind(a, y)


def mul(a: Array, b: Array, out: Array | None = None, *, stream: Any = None) -> Array:
    """torch.mul(a, b) of one type; out may be a or b"""
    y = _output(out, a, _broadcast(a.shape, b.shape))
    _run(_core.mul, stream, a, b, y)
    return as_kind(a, y)


def cast(x: Array, dtype: str | None = None, out: Array | None = None, *, stream: Any = None) -> Array:
    """x.to(dtype), rounded once to the nearest; dtype: "float64", "float32", "float16" or "bfloat16", or that of out"""
    y = _output(out, x, x.shape, dtype)
    _run(_core.cast, stream, x, y)
    return as_kind(x, y)


def silu(x: Array, out: Array | None = None, *, stream: Any = None) -> Array:
    """torch.nn.functional.silu(x); out may be x"""
    y = _output(out, x, x.shape)
    _run(_core.silu, stream, x, y)
    return as_kind(x, y)


def silu_backward(x: Array, dy: Array, out: Array | None = None, *, stream: Any = None) -> Array:
    """torch.autograd.grad(y, x, dy)[0] of silu; out may be x or dy"""
    dx = _output(out, x, x.shape)
    _run(_core.silu_backward, stream, x, dy, dx)
    return as_kind(x, dx)


def _gelu_options(approximate: str) -> dict[str, int]:
    return {"form": _named("approximate", _GELU_FORMS, approximate)}


def gelu(x: Array, approximate: str = "none", out: Array | None = None, *, stream: Any = None) -> Array:
    """torch.nn.functional.gelu(x, approximate=approximate); approximate: "none" or "tanh"; out may be x"""
    y = _output(out, x, x.shape)
    _run(_core.gelu, stream, x, y, _gelu_options(approximate))
    return as_kind(x, y)


def gelu_backward(
    x: Array, dy: Array, approximate: str = "none", out: Array | None = None, *, stream: Any = None
) -> Array:
    """torch.autograd.grad(y, x, dy)[0] of gelu; out may be x or dy"""
    dx = _output(out, x, x.shape)
    _run(_core.gelu_backward, stream, x, dy, dx, _gelu_options(approximate))
    return as_kind(x, dx)


def swiglu(gate: Array, up: Array, out: Array | None = None, *, stream: Any = None) -> Array:
    """torch.nn.functional.silu(gate) * up; out may be gate or up"""
    y = _output(out, gate, _broadcast(gate.shape, up.shape))
    _run(_core.swiglu, stream, gate, up, y)
    return as_kind(gate, y)


def swiglu_backward(gate: Array, up: Array, dy: Array, *, stream: Any = None) -> tuple[Array, Array]:
    """(dgate, dup): torch.autograd.grad(y, (gate, up), dy) of swiglu, for a gate and an up of one shape"""
    dgate, dup = (empty(gate, tuple(dy.shape)) for _ in range(2))
    _run(_core.swiglu_backward, stream, gate, up, dy, dgate, dup)
    return as_kind(gate, dgate), as_kind(gate, dup)


def geglu(
    gate: Array, up: Array, approximate: str = "none", out: Array | None = None, *, stream: Any = None
) -> Array:
    """torch.nn.functional.gelu(gate, approximate=approximate) * up; out may be gate or up"""
    y = _output(out, gate, _broadcast(gate.shape, up.shape))
    _run(_core.geglu, stream, gate, up, y, _gelu_options(approximate))
    return as_kind(gate, y)


def geglu_backward(
    gate: Array, up: Array, dy: Array, approximate: str = "none", *, stream: Any = None
) -> tuple[Array, Array]:
    """(dgate, dup): torch.autograd.grad(y, (gate, up), dy) of geglu, for a gate and an up of one shape"""
    dgate, dup = (empty(gate, tuple(dy.shape)) for _ in range(2))
    _run(_core.geglu_backward, stream, gate, up, dy, dgate, dup, _gelu_options(approximate))
    return as_kind(gate, dgate), as_kind(gate, dup)
