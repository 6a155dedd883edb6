# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""KokkosNN's operators for PyTorch: functions with gradients, which torch.compile takes whole, and modules.

Each function is an operator torch.ops.kokkosnn.<name>, and its gradient is another one. Second derivatives are computed
by PyTorch's own operators, so they are right, not fast; third ones are not there. Tensors are of the device that this
build is for. Wrong arguments are a ValueError with the library's message.

A further operator: the operator and its gradient with register_fake and register_autograd, a function, and a module.
"""

# Without `from __future__ import annotations`: schemas are inferred from annotations.
from typing import Any, Callable, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from . import _operators
from ._arrays import accumulator_name
from ._operators import Dropout, Mask

_UNBOUNDED = 2**63 - 1
_MOST_VALUE_DIMS = 256  # of attention's v

# --- what operators have in common ---


_NO_TENSORS = frozenset((int, float, bool, str, type(None)))


def _is_watched() -> bool:
    """Something besides gradients follows what happens to tensors: a transformation, a mode, a trace."""
    return (
        torch._C._len_torch_dispatch_stack() > 0
        or torch._C._len_torch_function_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._get_tracing_state() is not None
        or torch.autograd.forward_ad._current_level >= 0
    )


class _Operator:
    """An operator of torch.library, which is called by way of PyTorch's dispatcher only where that has something to do.

    The dispatcher's way through Python takes 60 us a call, ten times a small kernel. Where nothing but gradients
    follows what happens to tensors, the function itself is called, or an autograd.Function of the same parts.
    """

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name = name
        self._function = function
        self._registered = torch.library.custom_op(f"kokkosnn::{name}", function, mutates_args=())
        self._recorded: Callable[..., Any] = self._registered
        self.register_fake = self._registered.register_fake

    def register_autograd(self, backward: Callable[..., Any], *, setup_context: Callable[..., None]) -> None:
        self._registered.register_autograd(backward, setup_context=setup_context)

        def forward(ctx: Any, *arguments: Any) -> Any:  # with a setup_context of its own a call takes 40 us longer
            output = self._function(*arguments)
            setup_context(ctx, arguments, output)
            return output

        members = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
        self._recorded = type(self._name, (torch.autograd.Function,), members).apply

    def __call__(self, *arguments: Any) -> Any:
        if torch.compiler.is_compiling():
            return self._registered(*arguments)
        is_recorded = False
        for x in arguments:
            kind = type(x)
            if kind is Tensor or kind is torch.nn.Parameter:
                is_recorded = is_recorded or x.requires_grad
            elif kind not in _NO_TENSORS:
                return self._registered(*arguments)
        if _is_watched():
            return self._registered(*arguments)
        return self._recorded(*arguments) if is_recorded and torch.is_grad_enabled() else self._function(*arguments)


def _operator(name: str) -> Callable[[Callable[..., Any]], _Operator]:
    return lambda function: _Operator(name, function)


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


@_operator("softmax")
def _softmax(x: Tensor, axis: int, scale: float) -> Tensor:
    return _operators.softmax(x, axis, scale=scale)


@_operator("softmax_backward")
def _softmax_backward(y: Tensor, dy: Tensor, axis: int, scale: float) -> Tensor:
    return _operators.softmax_backward(y, dy, axis, scale=scale)


@_operator("log_softmax")
def _log_softmax(x: Tensor, axis: int, scale: float) -> Tensor:
    return _operators.log_softmax(x, axis, scale=scale)


@_operator("log_softmax_backward")
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


@_operator("logsumexp")
def _logsumexp(x: Tensor, axis: int, scale: float) -> Tensor:
    return _operators.logsumexp(x, axis, scale=scale)


@_operator("logsumexp_backward")
def _logsumexp_backward(x: Tensor, lse: Tensor, dlse: Tensor, axis: int, scale: float) -> Tensor:
    return _operators.logsumexp_backward(x, lse, dlse, axis, scale=scale)


@_logsumexp.register_fake
def _(x, axis, scale):
    return _row_values(x, axis).to(x.dtype)


@_logsumexp_backward.register_fake
def _(x, lse, dlse, axis, scale):
    return _empty_like(x)


def _save_logsumexp(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], output)
    ctx.options = inputs[1:]


def _logsumexp_first(ctx: Any, dlse: Tensor) -> Any:
    return _logsumexp_backward(*ctx.saved_tensors, dlse, *ctx.options), None, None


def _save_logsumexp_backward(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], inputs[2])
    ctx.options = inputs[3:]


def _logsumexp_second(ctx: Any, g: Tensor) -> Any:
    axis, scale = ctx.options

    def gradient(x: Tensor, dlse: Tensor) -> Any:
        return (scale * dlse.unsqueeze(axis) * torch.softmax(scale * x, axis),)

    by_x, by_dlse = _vjp(gradient, ctx.saved_tensors, (g,))
    return by_x, None, by_dlse, None, None


_logsumexp.register_autograd(_logsumexp_first, setup_context=_save_logsumexp)
_logsumexp_backward.register_autograd(_logsumexp_second, setup_context=_save_logsumexp_backward)


def logsumexp(x: Tensor, axis: int = -1, scale: float = 1.0) -> Tensor:
    """torch.logsumexp(scale * x, axis)"""
    return _logsumexp(x, axis, scale)


# --- cross_entropy ---


@_operator("cross_entropy")
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


@_operator("cross_entropy_backward")
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


# --- soft_cross_entropy ---


@_operator("soft_cross_entropy")
def _soft_cross_entropy(
    logits: Tensor, targets: Tensor, weights: Optional[Tensor], reduction: str, label_smoothing: float
) -> Tensor:
    options = {"reduction": reduction, "label_smoothing": label_smoothing}
    return _operators.soft_cross_entropy(logits, targets, weights, **options)[0]


@_operator("soft_cross_entropy_with_gradient")
def _soft_cross_entropy_with_gradient(
    logits: Tensor, targets: Tensor, weights: Optional[Tensor], reduction: str, label_smoothing: float
) -> Tuple[Tensor, Tensor]:
    options = {"reduction": reduction, "label_smoothing": label_smoothing}
    return _operators.soft_cross_entropy_with_gradient(logits, targets, weights, **options)


def _empty_loss(logits: Tensor, reduction: str) -> Tensor:
    return logits.new_empty(logits.shape[:-1] if reduction == "none" else (), dtype=_accumulator(logits))


@_soft_cross_entropy.register_fake
def _(logits, targets, weights, reduction, label_smoothing):
    return _empty_loss(logits, reduction)


@_soft_cross_entropy_with_gradient.register_fake
def _(logits, targets, weights, reduction, label_smoothing):
    return _empty_loss(logits, reduction), _empty_like(logits)


def _soft_loss_of_torch(
    logits: Tensor, targets: Tensor, weights: Optional[Tensor], reduction: str, label_smoothing: float
) -> Tensor:
    """The loss by PyTorch's operators, for second derivatives."""
    dtype = _accumulator(logits)
    targets = (1 - label_smoothing) * targets.to(dtype) + label_smoothing / logits.shape[-1]
    targets = targets if weights is None else weights.to(dtype) * targets
    loss = -(targets * torch.log_softmax(logits.to(dtype), -1)).sum(-1)
    return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.mean()


def _save_soft_cross_entropy(ctx: Any, inputs: Any, output: Any) -> None:
    logits, targets, weights, *ctx.options = inputs
    ctx.save_for_backward(logits, targets, weights, output[1])
    ctx.set_materialize_grads(False)


def _soft_cross_entropy_first(ctx: Any, dloss: Optional[Tensor], ddlogits: Optional[Tensor]) -> Any:
    logits, targets, weights, dlogits = ctx.saved_tensors
    by_logits = None
    if dloss is not None:
        dloss = dloss.unsqueeze(-1) if ctx.options[0] == "none" else dloss
        by_logits = (dlogits * dloss).to(logits.dtype)
    if ddlogits is not None:  # of a second derivative

        def gradient(x: Tensor) -> Any:
            def loss(x: Tensor) -> Tensor:
                return _soft_loss_of_torch(x, targets, weights, *ctx.options).sum()

            return _gradient_of(loss, (x,), x.new_ones((), dtype=_accumulator(x)))

        second = _vjp(gradient, (logits,), (ddlogits,))[0]
        by_logits = second if by_logits is None else by_logits + second
    return by_logits, None, None, None, None


_soft_cross_entropy_with_gradient.register_autograd(_soft_cross_entropy_first, setup_context=_save_soft_cross_entropy)


def soft_cross_entropy(
    logits: Tensor,
    targets: Tensor,
    weights: Optional[Tensor] = None,
    *,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """torch.nn.functional.cross_entropy(logits, targets, weights, ...) of targets that are probabilities

    Classes lie along the last axis; targets have the logits' shape and type. The loss is float64 if the logits are,
    else float32. Where a gradient will be asked for, it is computed along with the loss; targets and weights get none.
    """
    for name, given in (("targets", targets), ("weights", weights)):
        if given is not None and given.requires_grad:
            raise NotImplementedError(f"kokkosnn.torch.soft_cross_entropy: there is no gradient by {name}")
    options = (logits, targets, weights, reduction, label_smoothing)
    if torch.is_grad_enabled() and logits.requires_grad:
        return _soft_cross_entropy_with_gradient(*options)[0]
    return _soft_cross_entropy(*options)


# --- rms_norm, layer_norm ---


def _along(axis: int, x: Tensor, column: Tensor) -> Tensor:
    """A value a column with x's rank."""
    return column.reshape([-1 if k == axis % x.dim() else 1 for k in range(x.dim())])


def _sum_of_rows(axis: int, values: Tensor, dtype: torch.dtype) -> Tensor:
    """A sum over all rows for each column."""
    return values.movedim(axis, -1).flatten(0, -2).sum(0).to(dtype) if values.dim() > 1 else values.to(dtype)


def _given(*tensors: Optional[Tensor]) -> Sequence[Tensor]:
    return [x for x in tensors if x is not None]


def _unpacked(is_there: Sequence[bool], given: Sequence[Any]) -> Sequence[Any]:
    """What `_given` left out is None again."""
    rest = iter(given)
    return [next(rest) if there else None for there in is_there]


def _rms_norm_of_torch(axis: int, epsilon: float, offset: float, x: Tensor, weight: Optional[Tensor] = None) -> Tensor:
    """By PyTorch's operators, for second derivatives."""
    y = x * torch.rsqrt((x * x).mean(axis, keepdim=True) + epsilon)
    return y if weight is None else y * (_along(axis, x, weight) + offset)


def _layer_norm_of_torch(axis: int, epsilon: float, x: Tensor, weight: Optional[Tensor] = None) -> Tensor:
    """By PyTorch's operators, for second derivatives; the bias has none."""
    distance = x - x.mean(axis, keepdim=True)
    y = distance * torch.rsqrt((distance * distance).mean(axis, keepdim=True) + epsilon)
    return y if weight is None else y * _along(axis, x, weight)


@_operator("rms_norm")
def _rms_norm(
    x: Tensor, weight: Optional[Tensor], epsilon: float, axis: int, weight_offset: float
) -> Tuple[Tensor, Tensor]:
    return _operators.rms_norm(x, weight, epsilon, axis, weight_offset=weight_offset)


@_operator("rms_norm_backward")
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


@_operator("layer_norm")
def _layer_norm(
    x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], epsilon: float, axis: int
) -> Tuple[Tensor, Tensor, Tensor]:
    return _operators.layer_norm(x, weight, bias, epsilon, axis)


@_operator("layer_norm_backward")
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


@_operator("masked_softmax")
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


@_operator("masked_softmax_backward")
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

    def gradient(dy: Tensor, *inputs: Tensor) -> Any:
        return _gradient_of(
            lambda *given: _masked_softmax_of_torch(mask, scale, softcap, *_unpacked(is_input, given)), inputs, dy
        )

    needed = (True, needs_dbias, needs_dsinks)
    of_inputs = [g if needs else None for g, there, needs in zip(gradients, is_input, needed) if there]
    by_dy, *by_inputs = _vjp(gradient, [dy, *_given(x, bias, sinks)], of_inputs)
    return *_unpacked(is_input, by_inputs), by_dy, *(None,) * 9


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


def _random_of(dropout: Union[float, Dropout]) -> Tuple[float, Optional[Tensor]]:
    """The probability, and seed and offset: a tensor, as torch.compile would take a drawn number for a constant."""
    if isinstance(dropout, Dropout):
        seed = dropout.seed - 2**64 if dropout.seed >= 2**63 else dropout.seed
        return dropout.probability, torch.tensor([seed, dropout.offset], dtype=torch.int64, device="cpu")
    if not dropout:
        return 0.0, None
    return dropout, torch.randint(2**32, (2,), dtype=torch.int64, device="cpu")


def _dropout(probability: float, random: Optional[Tensor]) -> Optional[Dropout]:
    if random is None:
        return None
    seed, offset = random.tolist()
    return Dropout(probability, seed % 2**64, offset)


def _kept(q: Tensor, k: Tensor, probability: float, random: Tensor) -> Tensor:
    """What the weights (batch, head, query, key) are multiplied by: 0, or 1 / (1 - probability)

    Found by attention itself: equal scores give each key a weight of 1 / keys, and v picks the keys.
    """
    keys = k.shape[-2]
    q = q.new_zeros((*q.shape[:-1], 1))
    k = q.new_zeros((*q.shape[:2], keys, 1))
    columns = torch.eye(keys, dtype=q.dtype, device=q.device).split(_MOST_VALUE_DIMS, 1)
    none = (None,) * 5
    weights = [
        _attention(q, k, v.expand(*q.shape[:2], -1, -1), *none, random, _numbers(Mask()), 1.0, 0.0, probability)[0]
        for v in columns
    ]
    return (torch.cat(weights, -1) > 0).to(q.dtype) / (1 - probability)


@_operator("attention")
def _attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Optional[Tensor],
    sinks: Optional[Tensor],
    boolean: Optional[Tensor],
    lengths: Optional[Tensor],
    alibi_slopes: Optional[Tensor],
    random: Optional[Tensor],
    numbers: Sequence[int],
    scale: Optional[float],
    softcap: float,
    dropout: float,
) -> Tuple[Tensor, Tensor]:
    mask = _mask(boolean, bias, lengths, alibi_slopes, numbers)
    options = {"scale": scale, "softcap": softcap, "sinks": sinks, "dropout": _dropout(dropout, random)}
    return _operators.attention(q, k, v, mask, **options)


@_operator("attention_backward")
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
    random: Optional[Tensor],
    numbers: Sequence[int],
    scale: Optional[float],
    softcap: float,
    dropout: float,
    needs_dbias: bool,
    needs_dsinks: bool,
) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """dq, dk, dv, dbias and dsinks; the last two are empty if they are not needed."""
    mask = _mask(boolean, bias, lengths, alibi_slopes, numbers)
    options = {"softcap": softcap, "sinks": sinks, "dropout": _dropout(dropout, random)}
    gradients = _operators.attention_backward(q, k, v, o, lse, dout, mask, scale, **options)
    dbias = dsinks = None
    if bias is not None and needs_dbias:
        dbias = _operators.attention_bias_backward(q, k, v, o, lse, dout, mask, scale, **options)
    if sinks is not None and needs_dsinks:
        dsinks = _operators.attention_sinks_backward(o, lse, dout, sinks)
    return *gradients, q.new_empty(0) if dbias is None else dbias, q.new_empty(0) if dsinks is None else dsinks


def _attention_of_torch(
    mask: Mask,
    scale: Optional[float],
    softcap: float,
    kept: Optional[Tensor],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    bias: Optional[Tensor],
    sinks: Optional[Tensor],
) -> Tensor:
    """By PyTorch's operators, for second derivatives."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    y = _masked_softmax_of_torch(mask, scale, softcap, q @ k.transpose(-1, -2), bias, sinks)
    return (y if kept is None else y * kept) @ v


@_attention.register_fake
def _(q, k, v, *others):
    return q.new_empty((*q.shape[:-1], v.shape[-1])), q.new_empty(q.shape[:-1], dtype=_accumulator(q))


@_attention_backward.register_fake
def _(q, k, v, dout, o, lse, bias, sinks, *others):
    needs_dbias, needs_dsinks = others[-2:]
    dbias = _empty_like(bias) if bias is not None and needs_dbias else q.new_empty(0)
    dsinks = _empty_like(sinks) if sinks is not None and needs_dsinks else q.new_empty(0)
    return _empty_like(q), _empty_like(k), _empty_like(v), dbias, dsinks


def _save_attention(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:3], *output, *inputs[3:9])
    ctx.options = inputs[9:]
    ctx.mark_non_differentiable(output[1])


def _attention_first(ctx: Any, dout: Tensor, dlse: Any) -> Any:
    q, k, v, o, lse, *mask = ctx.saved_tensors
    needs = [t is not None and needed for t, needed in zip(mask[:2], ctx.needs_input_grad[3:5])]
    dq, dk, dv, *others = _attention_backward(q, k, v, dout, o, lse, *mask, *ctx.options, *needs)
    return dq, dk, dv, *(other if needed else None for other, needed in zip(others, needs)), *(None,) * 8


def _save_attention_backward(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs[:4], *inputs[6:12])
    ctx.options = inputs[12:]


def _attention_second(ctx: Any, *gradients: Tensor) -> Any:
    q, k, v, dout, bias, sinks, boolean, lengths, alibi_slopes, random = ctx.saved_tensors
    numbers, scale, softcap, dropout, needs_dbias, needs_dsinks = ctx.options
    mask = _mask(boolean, bias, lengths, alibi_slopes, numbers)
    kept = None if random is None else _kept(q, k, dropout, random)
    is_input = (True, True, True, bias is not None, sinks is not None)

    def gradient(dout: Tensor, *inputs: Tensor) -> Any:
        return _gradient_of(
            lambda *given: _attention_of_torch(mask, scale, softcap, kept, *_unpacked(is_input, given)), inputs, dout
        )

    needed = (True, True, True, needs_dbias, needs_dsinks)
    of_inputs = [g if needs else None for g, there, needs in zip(gradients, is_input, needed) if there]
    by_dout, *by_inputs = _vjp(gradient, (dout, *_given(q, k, v, bias, sinks)), of_inputs)
    by_q, by_k, by_v, by_bias, by_sinks = _unpacked(is_input, by_inputs)
    return by_q, by_k, by_v, by_dout, None, None, by_bias, by_sinks, *(None,) * 10


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
    dropout: Union[float, Dropout] = 0.0,
) -> Tensor:
    """torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, dropout, scale=scale, enable_gqa=True)

    q, k, v: (batch, head, sequence, dim), of any strides; q has a multiple of k's heads. mask: a Mask without
    diagonal_offsets, or a tensor of bool. Gradients are by q, k, v, the bias and the sinks; slopes have none.
    dropout: a probability below 1, under a seed from torch's default generator of the host (torch.manual_seed); or a
    kokkosnn.Dropout, whose call can be repeated. Gradients find the same weights.
    """
    mask = mask if isinstance(mask, Mask) else Mask(boolean=mask)
    if mask.diagonal_offsets is not None:
        raise NotImplementedError("kokkosnn.torch.attention: it does not take diagonal_offsets")
    if mask.alibi_slopes is not None and mask.alibi_slopes.requires_grad:
        raise NotImplementedError("kokkosnn.torch.attention: there is no gradient by ALiBi's slopes")
    if mask.row_scales is not None:
        raise NotImplementedError("kokkosnn.torch.attention: it does not take row_scales")
    tensors = (mask.bias, sinks, mask.boolean, mask.lengths, mask.alibi_slopes)
    probability, random = _random_of(dropout)
    return _attention(q, k, v, *tensors, random, _numbers(mask), scale, softcap, probability)[0]


# --- matmul ---


@_operator("matmul")
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


@_operator("rope")
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


@_operator("rope_backward")
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


# --- add_rms_norm, add_layer_norm ---


@_operator("add_rms_norm")
def _add_rms_norm(
    x: Tensor, residual: Tensor, weight: Optional[Tensor], epsilon: float, axis: int, weight_offset: float
) -> Tuple[Tensor, Tensor, Tensor]:
    return _operators.add_rms_norm(x, residual, weight, epsilon, axis, weight_offset=weight_offset)


@_operator("add_rms_norm_backward")
def _add_rms_norm_backward(
    total: Tensor,
    weight: Optional[Tensor],
    dy: Tensor,
    dsum: Tensor,
    rstd: Tensor,
    epsilon: float,
    axis: int,
    weight_offset: float,
    needs_dweight: bool,
) -> Tuple[Tensor, Tensor]:
    """The gradient by both summands and dweight, which is empty if it is not needed."""
    is_needed = weight is not None and needs_dweight
    dweight = weight.new_empty(weight.shape) if is_needed else None
    options = {"dweight": dweight, "weight_offset": weight_offset}
    dx = _operators.add_rms_norm_backward(total, rstd, dy, dsum, weight, axis, **options)
    return dx, dweight if is_needed else total.new_empty(0)


@_operator("add_layer_norm")
def _add_layer_norm(
    x: Tensor, residual: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], epsilon: float, axis: int
) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return _operators.add_layer_norm(x, residual, weight, bias, epsilon, axis)


@_operator("add_layer_norm_backward")
def _add_layer_norm_backward(
    total: Tensor,
    weight: Optional[Tensor],
    bias: Optional[Tensor],
    dy: Tensor,
    dsum: Tensor,
    mean: Tensor,
    rstd: Tensor,
    epsilon: float,
    axis: int,
    needs_dweight: bool,
    needs_dbias: bool,
) -> Tuple[Tensor, Tensor, Tensor]:
    """The gradient by both summands, dweight and dbias; the last two are empty if they are not needed."""
    dweight = weight.new_empty(weight.shape) if weight is not None and needs_dweight else None
    dbias = bias.new_empty(bias.shape) if bias is not None and needs_dbias else None
    outputs = {"dweight": dweight, "dbias": dbias}
    dx = _operators.add_layer_norm_backward(total, mean, rstd, dy, dsum, weight, axis, **outputs)
    return dx, total.new_empty(0) if dweight is None else dweight, total.new_empty(0) if dbias is None else dbias


@_add_rms_norm.register_fake
def _(x, residual, weight, epsilon, axis, weight_offset):
    return _empty_like(x), _empty_like(x), _row_values(x, axis)


@_add_rms_norm_backward.register_fake
def _(total, weight, dy, dsum, rstd, epsilon, axis, weight_offset, needs_dweight):
    is_needed = weight is not None and needs_dweight
    return _empty_like(total), weight.new_empty(weight.shape) if is_needed else total.new_empty(0)


@_add_layer_norm.register_fake
def _(x, residual, weight, bias, epsilon, axis):
    return _empty_like(x), _empty_like(x), _row_values(x, axis), _row_values(x, axis)


@_add_layer_norm_backward.register_fake
def _(total, weight, bias, dy, dsum, mean, rstd, epsilon, axis, needs_dweight, needs_dbias):
    dweight = weight.new_empty(weight.shape) if weight is not None and needs_dweight else total.new_empty(0)
    dbias = bias.new_empty(bias.shape) if bias is not None and needs_dbias else total.new_empty(0)
    return _empty_like(total), dweight, dbias


def _save_add_rms_norm(ctx: Any, inputs: Any, output: Any) -> None:
    _, _, weight, *ctx.options = inputs
    ctx.save_for_backward(output[1], weight, output[2])
    ctx.mark_non_differentiable(output[2])


def _add_rms_norm_first(ctx: Any, dy: Tensor, dsum: Tensor, drstd: Any) -> Any:
    total, weight, rstd = ctx.saved_tensors
    needs = weight is not None and ctx.needs_input_grad[2]
    dx, dweight = _add_rms_norm_backward(total, weight, dy, dsum, rstd, *ctx.options, needs)
    return dx, dx, dweight if needs else None, None, None, None


def _save_add_rms_norm_backward(ctx: Any, inputs: Any, output: Any) -> None:
    total, weight, dy, _, _, *ctx.options = inputs
    ctx.save_for_backward(total, weight, dy)


def _add_rms_norm_second(ctx: Any, ddx: Tensor, ddweight: Tensor) -> Any:
    by_total, by_weight, by_dy, *_ = _rms_norm_second(ctx, ddx, ddweight)
    return by_total, by_weight, by_dy, ddx, *(None,) * 5


def _save_add_layer_norm(ctx: Any, inputs: Any, output: Any) -> None:
    _, _, weight, bias, *ctx.options = inputs
    ctx.save_for_backward(output[1], weight, bias, *output[2:])
    ctx.mark_non_differentiable(*output[2:])


def _add_layer_norm_first(ctx: Any, dy: Tensor, dsum: Tensor, dmean: Any, drstd: Any) -> Any:
    total, weight, bias, mean, rstd = ctx.saved_tensors
    needs = [t is not None and needed for t, needed in zip((weight, bias), ctx.needs_input_grad[2:4])]
    dx, *others = _add_layer_norm_backward(total, weight, bias, dy, dsum, mean, rstd, *ctx.options, *needs)
    return dx, dx, *(other if needed else None for other, needed in zip(others, needs)), None, None


def _save_add_layer_norm_backward(ctx: Any, inputs: Any, output: Any) -> None:
    total, weight, _, dy, _, _, _, epsilon, axis, needs_dweight, ctx.needs_dbias = inputs
    ctx.options = (epsilon, axis, needs_dweight)
    ctx.save_for_backward(total, weight, dy)


def _add_layer_norm_second(ctx: Any, ddx: Tensor, ddweight: Tensor, ddbias: Tensor) -> Any:
    by_total, by_weight, by_dy, *_ = _layer_norm_second(ctx, ddx, ddweight)
    if ctx.needs_dbias:  # dbias is the sum of dy's rows
        by_dy = by_dy + _along(ctx.options[1], by_dy, ddbias).to(by_dy.dtype)
    return by_total, by_weight, None, by_dy, ddx, *(None,) * 6


_add_rms_norm.register_autograd(_add_rms_norm_first, setup_context=_save_add_rms_norm)
_add_rms_norm_backward.register_autograd(_add_rms_norm_second, setup_context=_save_add_rms_norm_backward)
_add_layer_norm.register_autograd(_add_layer_norm_first, setup_context=_save_add_layer_norm)
_add_layer_norm_backward.register_autograd(_add_layer_norm_second, setup_context=_save_add_layer_norm_backward)


def add_rms_norm(
    x: Tensor,
    residual: Tensor,
    weight: Optional[Tensor] = None,
    epsilon: float = 1e-6,
    axis: int = -1,
    weight_offset: float = 0.0,
) -> Tuple[Tensor, Tensor]:
    """(torch.nn.functional.rms_norm(x + residual, x.shape[-1:], weight, epsilon), x + residual), in one pass"""
    return _add_rms_norm(x, residual, weight, epsilon, axis, weight_offset)[:2]


def add_layer_norm(
    x: Tensor,
    residual: Tensor,
    weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None,
    epsilon: float = 1e-5,
    axis: int = -1,
) -> Tuple[Tensor, Tensor]:
    """(torch.nn.functional.layer_norm(x + residual, x.shape[-1:], weight, bias, epsilon), x + residual), in one pass"""
    return _add_layer_norm(x, residual, weight, bias, epsilon, axis)[:2]


# --- swiglu, geglu ---


@_operator("swiglu")
def _swiglu(gate: Tensor, up: Tensor) -> Tensor:
    return _operators.swiglu(gate, up)


@_operator("swiglu_backward")
def _swiglu_backward(gate: Tensor, up: Tensor, dy: Tensor) -> Tuple[Tensor, Tensor]:
    return _operators.swiglu_backward(gate, up, dy)


@_operator("geglu")
def _geglu(gate: Tensor, up: Tensor, approximate: str) -> Tensor:
    return _operators.geglu(gate, up, approximate)


@_operator("geglu_backward")
def _geglu_backward(gate: Tensor, up: Tensor, dy: Tensor, approximate: str) -> Tuple[Tensor, Tensor]:
    return _operators.geglu_backward(gate, up, dy, approximate)


def _register_gated(forward: Any, backward: Any, activation: Callable[..., Tensor]) -> None:
    """activation(gate, *options): by PyTorch's operators."""
    forward.register_fake(lambda gate, up, *options: _empty_like(gate))
    backward.register_fake(lambda gate, up, dy, *options: (_empty_like(gate), _empty_like(gate)))

    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*(x for x in inputs if isinstance(x, Tensor)))
        ctx.options = [x for x in inputs if not isinstance(x, Tensor)]

    def first(ctx: Any, dy: Tensor) -> Any:
        return *backward(*ctx.saved_tensors, dy, *ctx.options), *(None for _ in ctx.options)

    def second(ctx: Any, ddgate: Tensor, ddup: Tensor) -> Any:
        def gradient(gate: Tensor, up: Tensor, dy: Tensor) -> Any:
            return _gradient_of(lambda gate, up: activation(gate, *ctx.options) * up, (gate, up), dy)

        return *_vjp(gradient, ctx.saved_tensors, (ddgate, ddup)), *(None for _ in ctx.options)

    forward.register_autograd(first, setup_context=save)
    backward.register_autograd(second, setup_context=save)


_register_gated(_swiglu, _swiglu_backward, torch.nn.functional.silu)
_register_gated(
    _geglu, _geglu_backward, lambda gate, approximate: torch.nn.functional.gelu(gate, approximate=approximate)
)


def swiglu(gate: Tensor, up: Tensor) -> Tensor:
    """torch.nn.functional.silu(gate) * up of tensors of one shape"""
    return _swiglu(*torch.broadcast_tensors(gate, up))


def geglu(gate: Tensor, up: Tensor, approximate: str = "none") -> Tensor:
    """torch.nn.functional.gelu(gate, approximate=approximate) * up of tensors of one shape"""
    return _geglu(*torch.broadcast_tensors(gate, up), approximate)


# --- segmented_softmax, segmented_log_softmax, segmented_logsumexp ---


@_operator("segmented_softmax")
def _segmented_softmax(values: Tensor, row_offsets: Tensor, scale: float) -> Tensor:
    return _operators.segmented_softmax(values, row_offsets, scale=scale)


@_operator("segmented_softmax_backward")
def _segmented_softmax_backward(y: Tensor, dy: Tensor, row_offsets: Tensor, scale: float) -> Tensor:
    return _operators.segmented_softmax_backward(y, dy, row_offsets, scale=scale)


@_operator("segmented_log_softmax")
def _segmented_log_softmax(values: Tensor, row_offsets: Tensor, scale: float) -> Tensor:
    return _operators.segmented_log_softmax(values, row_offsets, scale=scale)


@_operator("segmented_log_softmax_backward")
def _segmented_log_softmax_backward(y: Tensor, dy: Tensor, row_offsets: Tensor, scale: float) -> Tensor:
    return _operators.segmented_log_softmax_backward(y, dy, row_offsets, scale=scale)


@_operator("segmented_logsumexp")
def _segmented_logsumexp(values: Tensor, row_offsets: Tensor, scale: float) -> Tensor:
    lse = values.new_full((row_offsets.shape[0] - 1, *values.shape[1:]), -torch.inf)  # empty rows' are not written
    return _operators.segmented_logsumexp(values, row_offsets, lse, scale)


@_operator("segmented_logsumexp_backward")
def _segmented_logsumexp_backward(
    values: Tensor, lse: Tensor, dlse: Tensor, row_offsets: Tensor, scale: float
) -> Tensor:
    return _operators.segmented_logsumexp_backward(values, lse, dlse, row_offsets, scale=scale)


def _row_of(values: Tensor, row_offsets: Tensor) -> Tensor:
    """The row of each element."""
    return torch.bucketize(torch.arange(values.shape[0], device=values.device), row_offsets[1:], right=True)


def _sums(values: Tensor, row_offsets: Tensor) -> Tensor:
    """For each element, the sum of its row."""
    row = _row_of(values, row_offsets)
    sums = values.new_zeros((row_offsets.shape[0] - 1, *values.shape[1:])).index_add(0, row, values)
    return sums[row]


def _register_segmented(forward: Any, backward: Any, gradient: Callable[..., Tensor]) -> None:
    """gradient(y, dy, row_offsets, scale): the backward by PyTorch's operators."""
    forward.register_fake(lambda values, row_offsets, scale: _empty_like(values))
    backward.register_fake(lambda y, dy, row_offsets, scale: _empty_like(y))

    def save_output(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.save_for_backward(output, inputs[1])
        ctx.scale = inputs[2]

    def save_inputs(ctx: Any, inputs: Any, output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:3])
        ctx.scale = inputs[3]

    def first(ctx: Any, dy: Tensor) -> Any:
        y, row_offsets = ctx.saved_tensors
        return backward(y, dy, row_offsets, ctx.scale), None, None

    def second(ctx: Any, g: Tensor) -> Any:
        y, dy, row_offsets = ctx.saved_tensors
        return (*_vjp(lambda y, dy: (gradient(y, dy, row_offsets, ctx.scale),), (y, dy), (g,)), None, None)

    forward.register_autograd(first, setup_context=save_output)
    backward.register_autograd(second, setup_context=save_inputs)


_register_segmented(
    _segmented_softmax,
    _segmented_softmax_backward,
    lambda y, dy, row_offsets, scale: scale * y * (dy - _sums(y * dy, row_offsets)),
)
_register_segmented(
    _segmented_log_softmax,
    _segmented_log_softmax_backward,
    lambda y, dy, row_offsets, scale: scale * (dy - y.exp() * _sums(dy, row_offsets)),
)


@_segmented_logsumexp.register_fake
def _(values, row_offsets, scale):
    return values.new_empty((row_offsets.shape[0] - 1, *values.shape[1:]))


@_segmented_logsumexp_backward.register_fake
def _(values, lse, dlse, row_offsets, scale):
    return _empty_like(values)


def _save_segmented_logsumexp(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.save_for_backward(inputs[0], output, inputs[1])
    ctx.scale = inputs[2]


def _segmented_logsumexp_first(ctx: Any, dlse: Tensor) -> Any:
    values, lse, row_offsets = ctx.saved_tensors
    return _segmented_logsumexp_backward(values, lse, dlse, row_offsets, ctx.scale), None, None


def _save_segmented_logsumexp_backward(ctx: Any, inputs: Any, output: Tensor) -> None:
    ctx.save_for_backward(*inputs[:4])
    ctx.scale = inputs[4]


def _segmented_logsumexp_second(ctx: Any, g: Tensor) -> Any:
    """By lse, too: it comes of the forward call."""
    values, lse, dlse, row_offsets = ctx.saved_tensors
    row = _row_of(values, row_offsets)

    def gradient(values: Tensor, lse: Tensor, dlse: Tensor) -> Any:
        return (ctx.scale * dlse[row] * (ctx.scale * values - lse[row]).exp(),)

    return *_vjp(gradient, (values, lse, dlse), (g,)), None, None


_segmented_logsumexp.register_autograd(_segmented_logsumexp_first, setup_context=_save_segmented_logsumexp)
_segmented_logsumexp_backward.register_autograd(
    _segmented_logsumexp_second, setup_context=_save_segmented_logsumexp_backward
)


def segmented_softmax(values: Tensor, row_offsets: Tensor, scale: float = 1.0) -> Tensor:
    """torch.cat([torch.softmax(scale * row, 0) for row in rows]), row r being values[row_offsets[r]:row_offsets[r + 1]]

    values: (elements,) or (elements, heads). Each element is in a row: row_offsets begin with 0 and end with elements.
    """
    return _segmented_softmax(values, row_offsets, scale)


def segmented_log_softmax(values: Tensor, row_offsets: Tensor, scale: float = 1.0) -> Tensor:
    """torch.cat([torch.log_softmax(scale * row, 0) for row in rows]); as segmented_softmax otherwise"""
    return _segmented_log_softmax(values, row_offsets, scale)


def segmented_logsumexp(values: Tensor, row_offsets: Tensor, scale: float = 1.0) -> Tensor:
    """torch.stack([torch.logsumexp(scale * row, 0) for row in rows]), -inf of an empty row"""
    return _segmented_logsumexp(values, row_offsets, scale)


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
    """torch.nn.CrossEntropyLoss(weights, ...) with the classes along the last axis; options as cross_entropy's

    As there, labels of the logits' shape and a floating type are probabilities.
    """

    def __init__(self, weights: Optional[Tensor] = None, **options: Any):
        super().__init__()
        self.register_buffer("weights", weights)
        self.options = options

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        function = soft_cross_entropy if labels.is_floating_point() else cross_entropy
        return function(logits, labels, self.weights, **self.options)


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


class AddRMSNorm(RMSNorm):
    """(torch.nn.RMSNorm(features, epsilon)(x + residual), x + residual), in one pass"""

    def forward(self, x: Tensor, residual: Tensor) -> Tuple[Tensor, Tensor]:
        return add_rms_norm(x, residual, self.weight, self.epsilon)


class AddLayerNorm(LayerNorm):
    """(torch.nn.LayerNorm(features, epsilon)(x + residual), x + residual), in one pass"""

    def forward(self, x: Tensor, residual: Tensor) -> Tuple[Tensor, Tensor]:
        return add_layer_norm(x, residual, self.weight, self.bias, self.epsilon)


class SegmentedSoftmax(torch.nn.Module):
    """segmented_softmax with a scale that does not change"""

    def __init__(self, scale: float = 1.0):
        super().__init__()
        self.scale = scale

    def forward(self, values: Tensor, row_offsets: Tensor) -> Tensor:
        return segmented_softmax(values, row_offsets, self.scale)


class RotaryEmbedding(torch.nn.Module):
    """rope with options that do not change; it has no parameters, as angles are computed"""

    def __init__(self, **options: Any):
        super().__init__()
        self.options = options

    def forward(self, x: Tensor, positions: Optional[Tensor] = None) -> Tensor:
        return rope(x, positions=positions, **self.options)


class Attention(torch.nn.Module):
    """attention with options that do not change; causal is for calls without a mask of their own

    dropout is a probability, of training: eval() drops nothing.
    """

    def __init__(
        self, scale: Optional[float] = None, softcap: float = 0.0, causal: bool = False, dropout: float = 0.0
    ):
        super().__init__()
        self.scale, self.softcap, self.causal, self.dropout = scale, softcap, causal, dropout

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Any = None, sinks: Optional[Tensor] = None) -> Tensor:
        mask = Mask(causal=self.causal) if mask is None else mask
        dropout = self.dropout if self.training else 0.0
        return attention(q, k, v, mask, self.scale, softcap=self.softcap, sinks=sinks, dropout=dropout)


class SwiGLU(torch.nn.Module):
    """torch.nn.functional.silu(gate) * up, the halves of x's last axis"""

    def forward(self, x: Tensor) -> Tensor:
        return swiglu(*x.chunk(2, -1))


class GEGLU(torch.nn.Module):
    """torch.nn.functional.gelu(gate, approximate=approximate) * up, the halves of x's last axis"""

    def __init__(self, approximate: str = "none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return geglu(*x.chunk(2, -1), self.approximate)
