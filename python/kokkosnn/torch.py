# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""KokkosNN's operators for PyTorch: functions with gradients, which torch.compile takes whole, and modules.

Each function is an operator torch.ops.kokkosnn.<name>, and its gradient is another one. Second derivatives are computed
by PyTorch's own operators, so they are right, not fast; third ones are not there. Tensors are of the device that this
build is for. Wrong arguments are a ValueError with the library's message.

A further operator: the operator and its gradient with register_fake and register_autograd, a function, and a module.
"""

# Without `from __future__ import annotations`: schemas are inferred from annotations.
from typing import Any, Callable, Optional, Sequence, Tuple

import torch
from torch import Tensor

from . import _operators
from ._arrays import accumulator_name
from ._operators import Mask

_UNBOUNDED = 2**63 - 1

# --- what operators have in common ---


def _accumulator(x: Tensor) -> torch.dtype:
    return getattr(torch, accumulator_name(x))


def _row_values(x: Tensor, axis: int) -> Tensor:
    """An empty tensor of one value a row."""
    shape = list(x.shape)
    del shape[axis]
    return x.new_empty(shape, dtype=_accumulator(x))


def _empty_like(x: Tensor) -> Tensor:
    """As the operators allocate results: the last axis fastest, whatever x's strides are."""
    return x.new_empty(x.shape)


def _vjp(
    function: Callable[..., Any], inputs: Sequence[Tensor], gradients: Sequence[Optional[Tensor]]
) -> Tuple[Optional[Tensor], ...]:
    """The gradients of a function of PyTorch's operators by its inputs."""
    with torch.enable_grad():
        leaves = [x.detach().requires_grad_() for x in inputs]
        outputs = function(*leaves)
        given = [(y, g) for y, g in zip(outputs, gradients) if g is not None]
        return torch.autograd.grad(
            [y for y, _ in given], leaves, [g for _, g in given], allow_unused=True
        )


def _gradient_of(forward: Callable[..., Tensor], inputs: Sequence[Tensor], dy: Tensor) -> Tuple[Tensor, ...]:
    """The gradients of a function, which can be differentiated themselves."""
    return torch.autograd.grad(forward(*inputs), inputs, dy, create_graph=True)


# --- softmax, log_softmax ---


@torch.library.custom_op("kokkosnn::softmax", mutates_args=())
def _softmax(x: Tensor, axis: int, scale: float) -> Tensor:
    return _operators.softmax(x, axis, scale=scale)


@torch.library.custom_op("kokkosnn::softmax_backward", mutates_args=())
def _softmax_backward(y: Tensor, dy: Tensor, axis: int, scale: float) -> Tensor:
    return _operators.softmax_backward(y, dy, axis, scale=scale)


@torch.library.custom_op("kokkosnn::log_softmax", mutates_args=())
def _log_softmax(x: Tensor, axis: int, scale: float) -> Tensor:
    return _operators.log_softmax(x, axis, scale=scale)


@torch.library.custom_op("kokkosnn::log_softmax_backward", mutates_args=())
def _log_softmax_backward(y: Tensor, dy: Tensor, axis: int, scale: float) -> Tensor:
    return _operators.log_softmax_backward(y, dy, axis, scale=scale)


def _register_softmax(forward: Any, backward: Any, gradient: Callable[..., Tensor]) -> None:
    """gradient(y, dy, axis, scale): the backward by PyTorch's operators."""
    forward.register_fake(lambda x, axis, scale: _empty_like(x))
    backward.register_fake(lambda y, dy, axis, scale: _empty_like(y))

    def save_output(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.save_for_backward(output)
        ctx.options = inputs[1:]

    def save_inputs(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])
        ctx.options = inputs[2:]

    def first(ctx: Any, dy: Tensor) -> Any:
        return backward(ctx.saved_tensors[0], dy, *ctx.options), None, None

    def second(ctx: Any, g: Tensor) -> Any:
        return (*_vjp(lambda y, dy: (gradient(y, dy, *ctx.options),), ctx.saved_tensors, (g,)), None, None)

    forward.register_autograd(first, setup_context=save_output)
    backward.register_autograd(second, setup_context=save_inputs)


_register_softmax(
    _softmax, _softmax_backward, lambda y, dy, axis, scale: scale * y * (dy - (y * dy).sum(axis, keepdim=True))
)
_register_softmax(
    _log_softmax,
    _log_softmax_backward,
    lambda y, dy, axis, scale: scale * (dy - y.exp() * dy.sum(axis, keepdim=True)),
)


def softmax(x: Tensor, axis: int = -1, scale: float = 1.0) -> Tensor:
    """torch.softmax(scale * x, axis)"""
    return _softmax(x, axis, scale)


def log_softmax(x: Tensor, axis: int = -1, scale: float = 1.0) -> Tensor:
    """torch.log_softmax(scale * x, axis)"""
    return _log_softmax(x, axis, scale)


# --- cross_entropy ---


@torch.library.custom_op("kokkosnn::cross_entropy", mutates_args=())
def _cross_entropy(
    logits: Tensor,
    labels: Tensor,
    weights: Optional[Tensor],
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    z_loss: float,
    softcap: float,
) -> Tuple[Tensor, Tensor]:
    return _operators.cross_entropy(
        logits,
        labels,
        weights,
        reduction=reduction,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        z_loss=z_loss,
        softcap=softcap,
    )


@torch.library.custom_op("kokkosnn::cross_entropy_backward", mutates_args=())
def _cross_entropy_backward(
    logits: Tensor,
    dloss: Tensor,
    lse: Tensor,
    labels: Tensor,
    weights: Optional[Tensor],
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    z_loss: float,
    softcap: float,
) -> Tensor:
    return _operators.cross_entropy_backward(
        logits,
        labels,
        lse,
        dloss,
        weights,
        reduction=reduction,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        z_loss=z_loss,
        softcap=softcap,
    )


def _loss_of_torch(
    logits: Tensor,
    labels: Tensor,
    weights: Optional[Tensor],
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    z_loss: float,
    softcap: float,
) -> Tensor:
    """The loss by PyTorch's operators, for second derivatives."""
    z = logits.to(_accumulator(logits))
    if softcap:
        z = softcap * torch.tanh(z / softcap)
    classes = z.shape[-1]
    lse = z.logsumexp(-1)
    weights = z.new_ones(classes) if weights is None else weights
    counts = labels != ignore_index
    label = torch.where(counts, labels, 0).long()
    weight = weights[label]
    loss = (1 - label_smoothing) * weight * (lse - z.gather(-1, label.unsqueeze(-1)).squeeze(-1))
    loss = loss + label_smoothing / classes * (weights * (lse.unsqueeze(-1) - z)).sum(-1) + z_loss * weight * lse**2
    loss = torch.where(counts, loss, 0)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.sum() / torch.where(counts, weight, 0).sum()


@_cross_entropy.register_fake
def _(logits, labels, weights, reduction, *options):
    shape = logits.shape[:-1]
    dtype = _accumulator(logits)
    return logits.new_empty(shape if reduction == "none" else (), dtype=dtype), logits.new_empty(shape, dtype=dtype)


@_cross_entropy_backward.register_fake
def _(logits, *others):
    return _empty_like(logits)


def _save_cross_entropy(ctx: Any, inputs: Any, output: Any) -> None:
    logits, labels, weights, *ctx.options = inputs
    ctx.save_for_backward(logits, output[1], labels, weights)
    ctx.mark_non_differentiable(output[1])


def _cross_entropy_first(ctx: Any, dloss: Tensor, dlse: Any) -> Any:
    logits, lse, labels, weights = ctx.saved_tensors
    return (_cross_entropy_backward(logits, dloss, lse, labels, weights, *ctx.options), *(None,) * 7)


def _save_cross_entropy_backward(ctx: Any, inputs: Any, output: Any) -> None:
    logits, dloss, lse, labels, weights, *ctx.options = inputs
    ctx.save_for_backward(logits, dloss, labels, weights)


def _cross_entropy_second(ctx: Any, g: Tensor) -> Any:
    logits, dloss, labels, weights = ctx.saved_tensors

    def gradient(logits: Tensor, dloss: Tensor) -> Any:
        return _gradient_of(lambda x: _loss_of_torch(x, labels, weights, *ctx.options), (logits,), dloss)

    return (*_vjp(gradient, (logits, dloss), (g,)), *(None,) * 8)


_cross_entropy.register_autograd(_cross_entropy_first, setup_context=_save_cross_entropy)
_cross_entropy_backward.register_autograd(_cross_entropy_second, setup_context=_save_cross_entropy_backward)


def cross_entropy(
    logits: Tensor,
    labels: Tensor,
    weights: Optional[Tensor] = None,
    *,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    z_loss: float = 0.0,
    softcap: float = 0.0,
) -> Tensor:
    """torch.nn.functional.cross_entropy(logits, labels, weights, ...) with the classes along the last axis

    The loss, and weights, are float64 if the logits are, else float32. Weights get no gradient.
    """
    return _cross_entropy(logits, labels, weights, reduction, ignore_index, label_smoothing, z_loss, softcap)[0]


# --- rms_norm, layer_norm ---


def _along(axis: int, x: Tensor, column: Tensor) -> Tensor:
    """A value a column with x's rank."""
    return column.reshape([-1 if k == axis % x.dim() else 1 for k in range(x.dim())])


def _sum_of_rows(axis: int, values: Tensor, dtype: torch.dtype) -> Tensor:
    """A sum over all rows for each column."""
    return values.movedim(axis, -1).flatten(0, -2).sum(0).to(dtype) if values.dim() > 1 else values.to(dtype)


def _given(*tensors: Optional[Tensor]) -> Sequence[Tensor]:
    return [x for x in tensors if x is not None]


def _rms_norm_of_torch(axis: int, epsilon: float, offset: float, x: Tensor, weight: Optional[Tensor] = None) -> Tensor:
    """By PyTorch's operators, for second derivatives."""
    y = x * torch.rsqrt((x * x).mean(axis, keepdim=True) + epsilon)
    return y if weight is None else y * (_along(axis, x, weight) + offset)


def _layer_norm_of_torch(axis: int, epsilon: float, x: Tensor, weight: Optional[Tensor] = None) -> Tensor:
    """By PyTorch's operators, for second derivatives; the bias has none."""
    distance = x - x.mean(axis, keepdim=True)
    y = distance * torch.rsqrt((distance * distance).mean(axis, keepdim=True) + epsilon)
    return y if weight is None else y * _along(axis, x, weight)


@torch.library.custom_op("kokkosnn::rms_norm", mutates_args=())
def _rms_norm(
    x: Tensor, weight: Optional[Tensor], epsilon: float, axis: int, weight_offset: float
) -> Tuple[Tensor, Tensor]:
    return _operators.rms_norm(x, weight, epsilon, axis, weight_offset=weight_offset)


@torch.library.custom_op("kokkosnn::rms_norm_backward", mutates_args=())
def _rms_norm_backward(
    x: Tensor,
    weight: Optional[Tensor],
    dy: Tensor,
    rstd: Tensor,
    epsilon: float,
    axis: int,
    weight_offset: float,
    needs_dweight: bool,
) -> Tuple[Tensor, Tensor]:
    """dx and dweight, which is empty if it is not needed."""
    is_needed = weight is not None and needs_dweight
    dweight = weight.new_empty(weight.shape) if is_needed else None
    dx = _operators.rms_norm_backward(x, rstd, dy, weight, axis, dweight=dweight, weight_offset=weight_offset)
    return dx, dweight if is_needed else x.new_empty(0)


@_rms_norm.register_fake
def _(x, weight, epsilon, axis, weight_offset):
    return _empty_like(x), _row_values(x, axis)


@_rms_norm_backward.register_fake
def _(x, weight, dy, rstd, epsilon, axis, weight_offset, needs_dweight):
    return _empty_like(x), weight.new_empty(weight.shape) if weight is not None and needs_dweight else x.new_empty(0)


def _save_rms_norm(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, *ctx.options = inputs
    ctx.save_for_backward(x, weight, output[1])
    ctx.mark_non_differentiable(output[1])


def _rms_norm_first(ctx: Any, dy: Tensor, drstd: Any) -> Any:
    x, weight, rstd = ctx.saved_tensors
    needs = weight is not None and ctx.needs_input_grad[1]
    dx, dweight = _rms_norm_backward(x, weight, dy, rstd, *ctx.options, needs)
    return dx, dweight if needs else None, None, None, None


def _save_rms_norm_backward(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, dy, rstd, *ctx.options = inputs
    ctx.save_for_backward(x, weight, dy)


def _rms_norm_second(ctx: Any, ddx: Tensor, ddweight: Tensor) -> Any:
    x, weight, dy = ctx.saved_tensors
    epsilon, axis, offset, needs_dweight = ctx.options

    def gradient(dy: Tensor, *inputs: Tensor) -> Any:
        return _gradient_of(lambda *given: _rms_norm_of_torch(axis, epsilon, offset, *given), inputs, dy)

    inputs = [dy, *_given(x, weight)]
    by_dy, by_x, *by_weight = _vjp(gradient, inputs, (ddx, ddweight if needs_dweight else None))
    return by_x, by_weight[0] if by_weight else None, by_dy, *(None,) * 5


_rms_norm.register_autograd(_rms_norm_first, setup_context=_save_rms_norm)
_rms_norm_backward.register_autograd(_rms_norm_second, setup_context=_save_rms_norm_backward)


@torch.library.custom_op("kokkosnn::layer_norm", mutates_args=())
def _layer_norm(
    x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], epsilon: float, axis: int
) -> Tuple[Tensor, Tensor, Tensor]:
    return _operators.layer_norm(x, weight, bias, epsilon, axis)


@torch.library.custom_op("kokkosnn::layer_norm_backward", mutates_args=())
def _layer_norm_backward(
    x: Tensor,
    weight: Optional[Tensor],
    dy: Tensor,
    mean: Tensor,
    rstd: Tensor,
    epsilon: float,
    axis: int,
    needs_dweight: bool,
) -> Tuple[Tensor, Tensor]:
    """dx and dweight, which is empty if it is not needed."""
    is_needed = weight is not None and needs_dweight
    dweight = weight.new_empty(weight.shape) if is_needed else None
    dx = _operators.layer_norm_backward(x, mean, rstd, dy, weight, axis, dweight=dweight)
    return dx, dweight if is_needed else x.new_empty(0)


@_layer_norm.register_fake
def _(x, weight, bias, epsilon, axis):
    return _empty_like(x), _row_values(x, axis), _row_values(x, axis)


@_layer_norm_backward.register_fake
def _(x, weight, dy, mean, rstd, epsilon, axis, needs_dweight):
    return _empty_like(x), weight.new_empty(weight.shape) if weight is not None and needs_dweight else x.new_empty(0)


def _save_layer_norm(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, bias, *ctx.options = inputs
    ctx.bias_type = None if bias is None else bias.dtype
    ctx.save_for_backward(x, weight, *output[1:])
    ctx.mark_non_differentiable(*output[1:])


def _layer_norm_first(ctx: Any, dy: Tensor, dmean: Any, drstd: Any) -> Any:
    x, weight, mean, rstd = ctx.saved_tensors
    needs = weight is not None and ctx.needs_input_grad[1]
    dx, dweight = _layer_norm_backward(x, weight, dy, mean, rstd, *ctx.options, needs)
    dbias = None
    if ctx.bias_type is not None and ctx.needs_input_grad[2]:
        dbias = _sum_of_rows(ctx.options[1], dy.to(rstd.dtype), ctx.bias_type)
    return dx, dweight if needs else None, dbias, None, None


def _save_layer_norm_backward(ctx: Any, inputs: Any, output: Any) -> None:
    x, weight, dy, mean, rstd, *ctx.options = inputs
    ctx.save_for_backward(x, weight, dy)


def _layer_norm_second(ctx: Any, ddx: Tensor, ddweight: Tensor) -> Any:
    x, weight, dy = ctx.saved_tensors
    epsilon, axis, needs_dweight = ctx.options

    def gradient(dy: Tensor, *inputs: Tensor) -> Any:
        return _gradient_of(lambda *given: _layer_norm_of_torch(axis, epsilon, *given), inputs, dy)

    inputs = [dy, *_given(x, weight)]
    by_dy, by_x, *by_weight = _vjp(gradient, inputs, (ddx, ddweight if needs_dweight else None))
    return by_x, by_weight[0] if by_weight else None, by_dy, *(None,) * 5


_layer_norm.register_autograd(_layer_norm_first, setup_context=_save_layer_norm)
_layer_norm_backward.register_autograd(_layer_norm_second, setup_context=_save_layer_norm_backward)


def rms_norm(
    x: Tensor, weight: Optional[Tensor] = None, epsilon: float = 1e-6, axis: int = -1, weight_offset: float = 0.0
) -> Tensor:
    """torch.nn.functional.rms_norm(x, x.shape[-1:], weight, epsilon)

    weight has x's type or float32, and weight_offset is added to it.
    """
    return _rms_norm(x, weight, epsilon, axis, weight_offset)[0]


def layer_norm(
    x: Tensor,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    epsilon: float = 1e-5,
    axis: int = -1,
) -> Tensor:
    """torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, epsilon)

    weight and bias have x's type or float32.
    """
    return _layer_norm(x, weight, bias, epsilon, axis)[0]


# --- masked_softmax ---


def _mask(
    boolean: Optional[Tensor],
    bias: Optional[Tensor],
    lengths: Optional[Tensor],
    alibi_slopes: Optional[Tensor],
    numbers: Sequence[int],
) -> Mask:
    """A mask from what an operator can take; `_numbers` packs the numbers."""
    causal, causal_offset, has_window, left, right, window_offset, alibi_offset = numbers
    return Mask(
        boolean=boolean,
        bias=bias,
        causal=bool(causal),
        causal_offset=causal_offset,
        window=(left, right) if has_window else None,
        window_offset=window_offset,
        lengths=lengths,
        alibi_slopes=alibi_slopes,
        alibi_offset=alibi_offset,
    )


def _numbers(mask: Mask) -> Sequence[int]:
    left, right = (_UNBOUNDED if side is None else side for side in mask.window or (None, None))
    has_window = int(mask.window is not None)
    return [int(mask.causal), mask.causal_offset, has_window, left, right, mask.window_offset, mask.alibi_offset]


@torch.library.custom_op("kokkosnn::masked_softmax", mutates_args=())
def _masked_softmax(
    x: Tensor,
    bias: Optional[Tensor],
    sinks: Optional[Tensor],
    boolean: Optional[Tensor],
    lengths: Optional[Tensor],
    alibi_slopes: Optional[Tensor],
    numbers: Sequence[int],
    scale: float,
    softcap: float,
) -> Tensor:
    mask = _mask(boolean, bias, lengths, alibi_slopes, numbers)
    return _operators.masked_softmax(x, mask, scale=scale, softcap=softcap, sinks=sinks)


@torch.library.custom_op("kokkosnn::masked_softmax_backward", mutates_args=())
def _masked_softmax_backward(
    x: Tensor,
    bias: Optional[Tensor],
    sinks: Optional[Tensor],
    dy: Tensor,
    y: Tensor,
    boolean: Optional[Tensor],
    lengths: Optional[Tensor],
    alibi_slopes: Optional[Tensor],
    numbers: Sequence[int],
    scale: float,
    softcap: float,
    needs_dbias: bool,
    needs_dsinks: bool,
) -> Tuple[Tensor, Tensor, Tensor]:
    """dx, dbias and dsinks; the last two are empty if they are not needed."""
    mask = _mask(boolean, bias, lengths, alibi_slopes, numbers)
    dx = _operators.masked_softmax_backward(y, dy, mask, scale=scale, x=x, softcap=softcap)
    dbias = dsinks = None
    if bias is not None and needs_dbias:
        dbias = _operators.masked_softmax_bias_backward(y, dy, bias.shape, mask, out=_empty_like(bias))
    if sinks is not None and needs_dsinks:
        dsinks = _operators.masked_softmax_sinks_backward(y, dy, mask, out=_empty_like(sinks))
    return dx, x.new_empty(0) if dbias is None else dbias, x.new_empty(0) if dsinks is None else dsinks


def _masked_softmax_of_torch(
    mask: Mask, scale: float, softcap: float, x: Tensor, bias: Optional[Tensor], sinks: Optional[Tensor]
) -> Tensor:
    """By PyTorch's operators, for second derivatives."""
    queries, keys = x.shape[-2:]
    query = torch.arange(queries, device=x.device).unsqueeze(-1)
    key = torch.arange(keys, device=x.device)
    z = scale * x
    if softcap:
        z = softcap * torch.tanh(z / softcap)
    if bias is not None:
        z = z + bias
    if mask.alibi_slopes is not None:
        z = z - mask.alibi_slopes.view(-1, 1, 1) * (key - query - mask.alibi_offset).abs()
    takes_part = torch.ones_like(x, dtype=torch.bool)
    if mask.boolean is not None:
        takes_part = takes_part & mask.boolean.bool()
    if mask.causal:
        takes_part = takes_part & (key <= query + mask.causal_offset)
    if mask.window is not None:
        distance = key - query - mask.window_offset
        takes_part = takes_part & (distance >= -mask.window[0]) & (distance <= mask.window[1])
    if mask.lengths is not None:
        per_index = mask.lengths.dim() == 1 and x.dim() > 2
        lengths = mask.lengths.view(-1, *(1,) * (x.dim() - 1)) if per_index else mask.lengths.unsqueeze(-1)
        takes_part = takes_part & (key < lengths)
    z = z.masked_fill(~takes_part, -torch.inf)
    if sinks is None:
        return torch.softmax(z, -1)
    return torch.softmax(torch.cat([z, sinks.view(-1, 1, 1).expand(*z.shape[:-1], 1)], -1), -1)[..., :-1]


@_masked_softmax.register_fake
def _(x, *others):
    return _empty_like(x)


@_masked_softmax_backward.register_fake
def _(x, bias, sinks, dy, y, boolean, lengths, alibi_slopes, numbers, scale, softcap, needs_dbias, needs_dsinks):
    dbias = _empty_like(bias) if bias is not None and needs_dbias else x.new_empty(0)
    dsinks = _empty_like(sinks) if sinks is not None and needs_dsinks else x.new_empty(0)
    return _empty_like(x), dbias, dsinks


def _save_masked_softmax(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:6], output)
    ctx.options = inputs[6:]


def _masked_softmax_first(ctx: Any, dy: Tensor) -> Any:
    x, bias, sinks, boolean, lengths, alibi_slopes, y = ctx.saved_tensors
    needs = [t is not None and needed for t, needed in zip((bias, sinks), ctx.needs_input_grad[1:3])]
    dx, *others = _masked_softmax_backward(
        x, bias, sinks, dy, y, boolean, lengths, alibi_slopes, *ctx.options, *needs
    )
    return dx, *(other if needed else None for other, needed in zip(others, needs)), *(None,) * 6


def _save_masked_softmax_backward(ctx: Any, inputs: Any, output: Any) -> None:
    x, bias, sinks, dy, y, boolean, lengths, alibi_slopes, *ctx.options = inputs
    ctx.save_for_backward(x, bias, sinks, dy, boolean, lengths, alibi_slopes)


def _masked_softmax_second(ctx: Any, *gradients: Tensor) -> Any:
    x, bias, sinks, dy, boolean, lengths, alibi_slopes = ctx.saved_tensors
    numbers, scale, softcap, needs_dbias, needs_dsinks = ctx.options
    mask = _mask(boolean, bias, lengths, alibi_slopes, numbers)
    is_input = (True, bias is not None, sinks is not None)

    def unpacked(given: Sequence[Any]) -> Sequence[Any]:
        rest = iter(given)
        return [next(rest) if there else None for there in is_input]

    def gradient(dy: Tensor, *inputs: Tensor) -> Any:
        return _gradient_of(
            lambda *given: _masked_softmax_of_torch(mask, scale, softcap, *unpacked(given)), inputs, dy
        )

    needed = (True, needs_dbias, needs_dsinks)
    of_inputs = [g if needs else None for g, there, needs in zip(gradients, is_input, needed) if there]
    by_dy, *by_inputs = _vjp(gradient, [dy, *_given(x, bias, sinks)], of_inputs)
    return *unpacked(by_inputs), by_dy, *(None,) * 9


_masked_softmax.register_autograd(_masked_softmax_first, setup_context=_save_masked_softmax)
_masked_softmax_backward.register_autograd(_masked_softmax_second, setup_context=_save_masked_softmax_backward)


def masked_softmax(
    x: Tensor,
    mask: Any = None,
    scale: float = 1.0,
    *,
    softcap: float = 0.0,
    sinks: Optional[Tensor] = None,
) -> Tensor:
    """torch.softmax((scale * x + mask.bias).masked_fill(~mask.boolean, -torch.inf), -1), x: (..., head, query, key)

    mask: a Mask without diagonal_offsets and row_scales, or a tensor of bool. Gradients are by x, the bias and the
    sinks; slopes have none.
    """
    mask = mask if isinstance(mask, Mask) else Mask(boolean=mask)
    if mask.diagonal_offsets is not None:
        raise NotImplementedError("kokkosnn.torch.masked_softmax: it does not take diagonal_offsets")
    if mask.row_scales is not None:
        raise NotImplementedError("kokkosnn.torch.masked_softmax: it does not take row_scales")
    if mask.alibi_slopes is not None and mask.alibi_slopes.requires_grad:
        raise NotImplementedError("kokkosnn.torch.masked_softmax: there is no gradient by ALiBi's slopes")
    tensors = (mask.bias, sinks, mask.boolean, mask.lengths, mask.alibi_slopes)
    return _masked_softmax(x, *tensors, _numbers(mask), scale, softcap)


# --- attention ---


@torch.library.custom_op("kokkosnn::attention", mutates_args=())
def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Optional[Tensor],
    sinks: Optional[Tensor],
    boolean: Optional[Tensor],
    lengths: Optional[Tensor],
    alibi_slopes: Optional[Tensor],
    numbers: Sequence[int],
    scale: Optional[float],
    softcap: float,
) -> Tuple[Tensor, Tensor]:
    mask = _mask(boolean, bias, lengths, alibi_slopes, numbers)
    return _operators.attention(q, k, v, mask, scale=scale, softcap=softcap, sinks=sinks)


@torch.library.custom_op("kokkosnn::attention_backward", mutates_args=())
def _attention_backward(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    dout: Tensor,
    o: Tensor,
    lse: Tensor,
    bias: Optional[Tensor],
    sinks: Optional[Tensor],
    boolean: Optional[Tensor],
    lengths: Optional[Tensor],
    alibi_slopes: Optional[Tensor],
    numbers: Sequence[int],
    scale: Optional[float],
    softcap: float,
) -> Tuple[Tensor, Tensor, Tensor]:
    mask = _mask(boolean, bias, lengths, alibi_slopes, numbers)
    return _operators.attention_backward(q, k, v, o, lse, dout, mask, scale, softcap=softcap, sinks=sinks)


def _attention_of_torch(
    mask: Mask, scale: Optional[float], softcap: float, sinks: Optional[Tensor], q: Tensor, k: Tensor, v: Tensor
) -> Tensor:
    """By PyTorch's operators, for second derivatives."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    return _masked_softmax_of_torch(mask, scale, softcap, q @ k.transpose(-1, -2), mask.bias, sinks) @ v


@_attention.register_fake
def _(q, k, v, *others):
    return q.new_empty((*q.shape[:-1], v.shape[-1])), q.new_empty(q.shape[:-1], dtype=_accumulator(q))


@_attention_backward.register_fake
def _(q, k, v, *others):
    return _empty_like(q), _empty_like(k), _empty_like(v)


def _save_attention(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:3], *output, *inputs[3:8])
    ctx.options = inputs[8:]
    ctx.mark_non_differentiable(output[1])


def _attention_first(ctx: Any, dout: Tensor, dlse: Any) -> Any:
    q, k, v, o, lse, *mask = ctx.saved_tensors
    return *_attention_backward(q, k, v, dout, o, lse, *mask, *ctx.options), *(None,) * 8


def _save_attention_backward(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:4], *inputs[6:11])
    ctx.options = inputs[11:]


def _attention_second(ctx: Any, *gradients: Tensor) -> Any:
    q, k, v, dout, bias, sinks, boolean, lengths, alibi_slopes = ctx.saved_tensors
    numbers, scale, softcap = ctx.options
    mask = _mask(boolean, bias, lengths, alibi_slopes, numbers)

    def gradient(dout: Tensor, *inputs: Tensor) -> Any:
        return _gradient_of(lambda *given: _attention_of_torch(mask, scale, softcap, sinks, *given), inputs, dout)

    by_dout, *by_inputs = _vjp(gradient, (dout, q, k, v), gradients)
    return *by_inputs, by_dout, *(None,) * 10


_attention.register_autograd(_attention_first, setup_context=_save_attention)
_attention_backward.register_autograd(_attention_second, setup_context=_save_attention_backward)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Any = None,
    scale: Optional[float] = None,
    *,
    softcap: float = 0.0,
    sinks: Optional[Tensor] = None,
) -> Tensor:
    """torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, scale=scale, enable_gqa=True)

    q, k, v: (batch, head, sequence, dim), of any strides; q has a multiple of k's heads. mask: a Mask without
    diagonal_offsets, or a tensor of bool. Gradients are by q, k and v: a bias, slopes and sinks have none.
    """
    mask = mask if isinstance(mask, Mask) else Mask(boolean=mask)
    if mask.diagonal_offsets is not None:
        raise NotImplementedError("kokkosnn.torch.attention: it does not take diagonal_offsets")
    if mask.row_scales is not None:
        raise NotImplementedError("kokkosnn.torch.attention: it does not take row_scales")
    for name, given in (("a bias", mask.bias), ("ALiBi's slopes", mask.alibi_slopes), ("sinks", sinks)):
        if given is not None and given.requires_grad:
            raise NotImplementedError(f"kokkosnn.torch.attention: there is no gradient by {name}")
    tensors = (mask.bias, sinks, mask.boolean, mask.lengths, mask.alibi_slopes)
    return _attention(q, k, v, *tensors, _numbers(mask), scale, softcap)[0]


# --- matmul ---


@torch.library.custom_op("kokkosnn::matmul", mutates_args=())
def _matmul(a: Tensor, b: Tensor, alpha: float, precision: str) -> Tensor:
    return _operators.matmul(a, b, alpha=alpha, precision=precision)


@_matmul.register_fake
def _(a, b, alpha, precision):
    return a.new_empty((*torch.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1]))


def _save_matmul(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:2])
    ctx.options = inputs[2:]


def _matmul_gradients(ctx: Any, dc: Tensor) -> Any:
    """Products, too, so that these have gradients of any order."""
    a, b = ctx.saved_tensors
    da = db = None
    if ctx.needs_input_grad[0]:
        da = _matmul(dc, b.transpose(-1, -2), *ctx.options).sum_to_size(a.shape)
    if ctx.needs_input_grad[1]:
        db = _matmul(a.transpose(-1, -2), dc, *ctx.options).sum_to_size(b.shape)
    return da, db, None, None


_matmul.register_autograd(_matmul_gradients, setup_context=_save_matmul)


def matmul(a: Tensor, b: Tensor, alpha: float = 1.0, precision: str = "exact") -> Tensor:
    """alpha * torch.matmul(a, b) of matrices (..., m, k) and (..., k, n) of any strides

    precision: "exact", "tensor_float32x3" or "tensor_float32", of float32 on GPUs with TF32; also of the gradients.
    """
    return _matmul(a, b, alpha, precision)


# --- rope ---


@torch.library.custom_op("kokkosnn::rope", mutates_args=())
def _rope(
    x: Tensor,
    cos: Optional[Tensor],
    sin: Optional[Tensor],
    positions: Optional[Tensor],
    form: str,
    rotary_dims: int,
    sequence_axis: int,
    position_offset: int,
    theta: float,
    position_scale: float,
) -> Tensor:
    return _operators.rope(
        x,
        cos,
        sin,
        positions,
        form=form,
        rotary_dims=rotary_dims,
        sequence_axis=sequence_axis,
        position_offset=position_offset,
        theta=theta,
        position_scale=position_scale,
    )


@torch.library.custom_op("kokkosnn::rope_backward", mutates_args=())
def _rope_backward(
    dy: Tensor,
    cos: Optional[Tensor],
    sin: Optional[Tensor],
    positions: Optional[Tensor],
    form: str,
    rotary_dims: int,
    sequence_axis: int,
    position_offset: int,
    theta: float,
    position_scale: float,
) -> Tensor:
    return _operators.rope_backward(
        dy,
        cos,
        sin,
        positions,
        form=form,
        rotary_dims=rotary_dims,
        sequence_axis=sequence_axis,
        position_offset=position_offset,
        theta=theta,
        position_scale=position_scale,
    )


def _register_rope(rotation: Any, back: Any) -> None:
    """The gradient of a rotation is the rotation back, and the other way round."""
    rotation.register_fake(lambda x, *others: _empty_like(x))

    def save(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.save_for_backward(*inputs[1:4])
        ctx.options = inputs[4:]

    def gradient(ctx: Any, dy: Tensor) -> Any:
        return back(dy, *ctx.saved_tensors, *ctx.options), *(None,) * 9

    rotation.register_autograd(gradient, setup_context=save)


_register_rope(_rope, _rope_backward)
_register_rope(_rope_backward, _rope)


def rope(
    x: Tensor,
    cos: Optional[Tensor] = None,
    sin: Optional[Tensor] = None,
    positions: Optional[Tensor] = None,
    *,
    form: str = "half_rotated",
    rotary_dims: int = 0,
    sequence_axis: int = -3,
    position_offset: int = 0,
    theta: float = 10000.0,
    position_scale: float = 1.0,
) -> Tensor:
    """torch.cat((a * cos - b * sin, b * cos + a * sin), -1), (a, b) being x.chunk(2, -1): rotary position embedding

    Arguments are kokkosnn.rope's. The gradient is by x: tables have none.
    """
    if any(table is not None and table.requires_grad for table in (cos, sin)):
        raise NotImplementedError("kokkosnn.torch.rope: there is no gradient by cos and sin")
    return _rope(
        x, cos, sin, positions, form, rotary_dims, sequence_axis, position_offset, theta, position_scale
    )


# --- modules ---


class Softmax(torch.nn.Module):
    """torch.nn.Softmax(axis) of scale * x"""

    def __init__(self, axis: int = -1, scale: float = 1.0):
        super().__init__()
        self.axis, self.scale = axis, scale

    def forward(self, x: Tensor) -> Tensor:
        return softmax(x, self.axis, self.scale)


class LogSoftmax(Softmax):
    """torch.nn.LogSoftmax(axis) of scale * x"""

    def forward(self, x: Tensor) -> Tensor:
        return log_softmax(x, self.axis, self.scale)


class MaskedSoftmax(torch.nn.Module):
    """masked_softmax with options that do not change; causal is for calls without a mask of their own"""

    def __init__(self, scale: float = 1.0, softcap: float = 0.0, causal: bool = False):
        super().__init__()
        self.scale, self.softcap, self.causal = scale, softcap, causal

    def forward(self, x: Tensor, mask: Any = None, sinks: Optional[Tensor] = None) -> Tensor:
        mask = Mask(causal=self.causal) if mask is None else mask
        return masked_softmax(x, mask, self.scale, softcap=self.softcap, sinks=sinks)


class CrossEntropyLoss(torch.nn.Module):
    """torch.nn.CrossEntropyLoss(weights, ...) with the classes along the last axis; options as cross_entropy's"""

    def __init__(self, weights: Optional[Tensor] = None, **options: Any):
        super().__init__()
        self.register_buffer("weights", weights)
        self.options = options

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(logits, labels, self.weights, **self.options)


class RMSNorm(torch.nn.Module):
    """torch.nn.RMSNorm(features, epsilon)"""

    def __init__(self, features: int, epsilon: float = 1e-6, has_weight: bool = True, **factory: Any):
        super().__init__()
        self.epsilon = epsilon
        self.weight = torch.nn.Parameter(torch.ones(features, **factory)) if has_weight else None

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight, self.epsilon)


class LayerNorm(torch.nn.Module):
    """torch.nn.LayerNorm(features, epsilon)"""

    def __init__(
        self, features: int, epsilon: float = 1e-5, has_weight: bool = True, has_bias: bool = True, **factory: Any
    ):
        super().__init__()
        self.epsilon = epsilon
        self.weight = torch.nn.Parameter(torch.ones(features, **factory)) if has_weight else None
        self.bias = torch.nn.Parameter(torch.zeros(features, **factory)) if has_bias else None

    def forward(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.weight, self.bias, self.epsilon)
