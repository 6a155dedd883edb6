# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""The operators as their users write them in PyTorch: what peers.py runs eagerly and through torch.compile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Tuple

from peers_problems import CAUSAL, CROSS_ENTROPY, GRADIENTS, RAGGED, Problem


@dataclass
class Form:
    """A function of tensors, with its arguments."""

    text: str
    function: Callable
    arguments: Tuple
    by_autograd: bool = False  # the result is the gradient of the first argument, and the function's value

    def runner(self, torch, function: Callable) -> Callable[[], object]:
        """Calls the function, which may be what a compiler made of this form's."""
        if not self.by_autograd:
            return lambda: function(*self.arguments)
        leaf = self.arguments[0].detach().requires_grad_()

        def run():
            with torch.enable_grad():
                value = function(leaf, *self.arguments[1:])
                (gradient,) = torch.autograd.grad(value, leaf)
            return gradient, value.detach()

        return run


def forward(problem: Problem) -> Form:
    op, axis = problem.shape.op, problem.axis
    function = getattr(problem.torch, op)
    return Form(f"torch.{op}", lambda x: function(x, axis), (problem.x,))


def gradient(problem: Problem) -> Form:
    """The function that autograd calls."""
    name, axis, dtype = f"_{problem.shape.op}_data", problem.axis, problem.dtype
    function = getattr(problem.torch, name)
    return Form(f"torch.{name}", lambda y, dy: function(dy, y, axis, dtype), (problem.x, problem.dy))


def cross_entropy(problem: Problem) -> Form:
    function = problem.torch.nn.functional.cross_entropy
    arguments = (problem.x, problem.labels)
    return Form("F.cross_entropy and autograd", lambda x, labels: function(x, labels), arguments, by_autograd=True)


def causal(problem: Problem) -> Form:
    """The mask is made in the function, so that a compiler may look at row and column in its place."""
    torch, cols, scale = problem.torch, problem.shape.cols, problem.scale

    def function(x):
        mask = torch.ones((cols, cols), dtype=torch.bool, device=x.device).triu(1)
        return (x * scale).masked_fill(mask, float("-inf")).softmax(-1)

    heads = problem.x.view(-1, cols, cols)
    return Form("masked_fill of the upper triangle, softmax", lambda x: function(x).view(-1, cols), (heads,))


def ragged(problem: Problem) -> Form:
    """The scatter form of graph networks, where each element knows its row. Sums of 16-bit values are in float."""
    torch, rows = problem.torch, problem.shape.rows
    sums = torch.promote_types(problem.dtype, torch.float32)

    def function(x, index):
        wide = x.to(sums)
        top = wide.new_full((rows,), float("-inf")).scatter_reduce(0, index, wide, "amax", include_self=False)
        exps = (wide - top[index]).exp()
        total = wide.new_zeros(rows).scatter_add(0, index, exps)
        return (exps / total[index]).to(x.dtype)

    device = problem.x.device
    index = torch.arange(rows, device=device).repeat_interleave(problem.lengths.to(device))
    return Form("scatter_reduce amax, exp, scatter_add", function, (problem.x, index))


def form_of(problem: Problem) -> Form:
    shape = problem.shape
    if shape.layout in RAGGED:
        return ragged(problem)
    if shape.op in GRADIENTS:
        return gradient(problem)
    return {CROSS_ENTROPY: cross_entropy, CAUSAL: causal}.get(shape.op, forward)(problem)
