# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors of a shape, which peers.py gives to a provider, and the result that it wants back, by the plain formula."""

from __future__ import annotations

from functools import cached_property
from typing import Dict, List, Tuple

from report import Shape

TORCH_TYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16"}
FORWARD = ("softmax", "log_softmax", "logsumexp")
GRADIENTS = ("softmax_backward", "log_softmax_backward")
CROSS_ENTROPY = "cross_entropy_with_gradient"
CAUSAL = "masked_softmax"
OPERATORS = (*FORWARD, *GRADIENTS, CROSS_ENTROPY, CAUSAL)
# Operators of the library that no peer is measured on: each shares its kernels with one that is.
UNMEASURED = ("logsumexp_backward", "masked_softmax_backward", "cross_entropy", "cross_entropy_backward")
# Operators that run untuned, and that no peer is measured on yet.
UNTUNED = ("rms_norm", "layer_norm", "rms_norm_backward", "layer_norm_backward", "add_rms_norm", "add_layer_norm",
           "add_rms_norm_backward", "add_layer_norm_backward", "masked_log_softmax", "masked_logsumexp",
           "masked_log_softmax_backward", "soft_cross_entropy", "soft_cross_entropy_with_gradient")
MATRICES = ("right", "left")
RAGGED = ("ragged", "even", "skewed")

# Tensors by the names that the library has for them; an operator has those that it needs.
TENSORS = ("x", "dy", "labels", "offsets", "y", "loss")
UNCOUNTED = ("labels", "loss")  # among the bytes that must move, as in shapes.hpp
CHECKED_ROWS = 16


class Problem:
    """Base of all. A LayoutLeft matrix is the transpose of a contiguous tensor."""

    dy = labels = offsets = loss = None

    def __init__(self, torch, device, shape: Shape):
        self.torch, self.device, self.shape = torch, device, shape
        self.axis = 0 if shape.layout == "left" else 1  # the reduced axis of the tensor
        self.dtype = getattr(torch, TORCH_TYPES[shape.type])
        torch.manual_seed(shape.rows + shape.cols)

    def empty(self, *extents: int):
        return self.torch.empty(extents, dtype=self.dtype, device=self.device)

    def noise(self, *extents: int):
        return self.empty(*extents).uniform_(-4, 4)

    @property
    def extents(self) -> Tuple[int, int]:
        """Of the tensor of a matrix."""
        rows, cols = self.shape.rows, self.shape.cols
        return (rows, cols) if self.axis == 1 else (cols, rows)

    def _tensors(self) -> Dict[str, object]:
        return {name: getattr(self, name) for name in TENSORS if getattr(self, name) is not None}

    @property
    def addresses(self) -> Dict[str, int]:
        return {name: tensor.data_ptr() for name, tensor in self._tensors().items()}

    @property
    def bytes(self) -> int:
        """That any implementation must move."""
        counted = [tensor for name, tensor in self._tensors().items() if name not in UNCOUNTED]
        return sum(tensor.numel() * tensor.element_size() for tensor in counted)

    @property
    def result(self):
        """What a provider leaves that works on the tensors of the problem; `difference` takes it."""
        return self.y

    @property
    def longest(self) -> int:
        """Elements of the longest row."""
        return self.shape.cols

    @property
    def peer_slack(self) -> float:
        """Factor of the tolerance for those who may add up long rows in float one after the other."""
        return 2 + self.longest / 65536

    def restore(self) -> None:
        """Makes inputs what they were before a provider wrote its result over them."""

    def poison_y(self) -> None:
        """A kernel that writes nothing must not inherit the result of the one before."""
        self.y.fill_(float("nan"))

    def row(self, tensor, row: int):
        """The elements of a row, or its one value."""
        if tensor.dim() == 1:
            return tensor[row : row + 1]
        return tensor[row] if self.axis == 1 else tensor[:, row]

    def expected(self, row: int) -> Tuple[object, object]:
        """A row of the result in double by the plain formula, and the sizes that errors are measured against."""
        raise NotImplementedError

    def checked_rows(self) -> List[int]:
        """So many, evenly spread, and the one in the middle, which may be the longest."""
        rows = self.shape.rows
        count = min(CHECKED_ROWS, rows)
        return sorted({rows // 2, *(round(i * (rows - 1) / max(1, count - 1)) for i in range(count))})

    def difference(self, values, tolerance, slack: float) -> str:
        """Where a few rows of the result leave the tolerance (relative, absolute); nothing where they agree."""
        if values.shape != self.y.shape or values.dtype != self.y.dtype:
            return f"{values.dtype} {tuple(values.shape)}, expected {self.y.dtype} {tuple(self.y.shape)}"
        for row in self.checked_rows():
            got = self.row(values, row).double()
            want, size = self.expected(row)
            wrong = ~((got - want).abs() <= slack * (tolerance[0] * size + tolerance[1]))  # a NaN is wrong, too
            if wrong.any():
                col = int(wrong.nonzero()[0])
                return f"row {row}, column {col}: {got[col]:.9g}, expected {want[col]:.9g}"
        return ""


class Forward(Problem):
    """softmax, log_softmax or logsumexp of a matrix."""

    def __init__(self, torch, device, shape: Shape):
        super().__init__(torch, device, shape)
        self.x = self.noise(*self.extents)
        self.y = self.empty(shape.rows) if shape.op == "logsumexp" else self.empty(*self.extents)

    def expected(self, row: int):
        x = self.row(self.x, row).double()
        if self.shape.op == "softmax":
            y = x.softmax(0)
            return y, y.abs()
        lse = x.logsumexp(0, keepdim=True)
        y = x - lse if self.shape.op == "log_softmax" else lse
        return y, y.abs().clamp(min=1.0)  # logarithms may be near 0


class Gradient(Problem):
    """Of softmax or log_softmax: x is what that gave, y is dx."""

    def __init__(self, torch, device, shape: Shape):
        super().__init__(torch, device, shape)
        forward = torch.softmax if shape.op == "softmax_backward" else torch.log_softmax
        self.x = forward(self.noise(*self.extents), self.axis)
        self.dy = self.noise(*self.extents)
        self.y = self.empty(*self.extents)

    def expected(self, row: int):
        y, dy = self.row(self.x, row).double(), self.row(self.dy, row).double()
        if self.shape.op == "softmax_backward":
            terms = y * dy
            return y * (dy - terms.sum()), y * (dy.abs() + terms.abs().sum())
        return dy - y.exp() * dy.sum(), dy.abs() + y.exp() * dy.abs().sum()


class CrossEntropy(Problem):
    """The mean of the rows' losses, and its gradient. y is the logits, over which the gradient may be written; x keeps
    what they were."""

    def __init__(self, torch, device, shape: Shape):
        super().__init__(torch, device, shape)
        self.x = self.noise(shape.rows, shape.cols)
        self.y = torch.empty_like(self.x)
        self.labels = torch.randint(0, shape.cols, (shape.rows,), dtype=torch.int64, device=self.device)
        self.loss = torch.empty((), dtype=torch.float64 if shape.type == "f64" else torch.float32, device=self.device)

    @property
    def result(self):
        return self.y, self.loss

    @property
    def peer_slack(self) -> float:
        # PyTorch keeps logarithms of probabilities, down to -18 here, in the logits' type: bf16 rounds them by 2^-4.
        return super().peer_slack + (4 if self.x.element_size() == 2 else 0)

    def restore(self) -> None:
        self.y.copy_(self.x)

    def poison_y(self) -> None:
        self.restore()
        self.loss.fill_(float("nan"))

    def expected(self, row: int):
        share = self.x[row].double().softmax(0) / self.shape.rows
        gradient, size = share.clone(), share
        label = int(self.labels[row])
        gradient[label] -= 1 / self.shape.rows
        size[label] += 1 / self.shape.rows
        return gradient, size

    @cached_property
    def expected_loss(self) -> float:
        """In parts, for double takes four times the memory of bf16."""
        total = 0.0
        for x, labels in zip(self.x.split(256), self.labels.split(256)):
            logits = x.double()
            total += float((logits.logsumexp(1) - logits.gather(1, labels.unsqueeze(1)).squeeze(1)).sum())
        return total / self.shape.rows

    def difference(self, values, tolerance, slack: float) -> str:
        gradient, loss = values
        want = self.expected_loss
        if not abs(float(loss) - want) <= slack * tolerance[0] * abs(want):
            return f"loss {float(loss):.9g}, expected {want:.9g}"
        return super().difference(gradient, tolerance, slack)


class Causal(Problem):
    """softmax(scale x) under a causal mask, on heads of as many queries as columns."""

    def __init__(self, torch, device, shape: Shape, library):
        super().__init__(torch, device, shape)
        self.scale = library.mask_scale
        self.x = self.noise(shape.rows, shape.cols)
        self.y = torch.empty_like(self.x)

    def expected(self, row: int):
        y = self.torch.zeros(self.shape.cols, dtype=self.torch.float64, device=self.device)
        seen = row % self.shape.cols + 1
        y[:seen] = (self.scale * self.x[row, :seen].double()).softmax(0)
        return y, y


class Ragged(Problem):
    """softmax of rows of different lengths, one after the other."""

    def __init__(self, torch, device, shape: Shape, library):
        super().__init__(torch, device, shape)
        begins = torch.empty(shape.rows + 1, dtype=torch.int32)
        library.offsets(shape, begins.data_ptr())
        self.lengths = begins.diff()
        self._longest = int(self.lengths.max())
        self.begins = begins.tolist()
        self.offsets = begins.to(device)
        self.x = self.noise(self.begins[-1])
        self.y = torch.empty_like(self.x)

    @property
    def longest(self) -> int:
        return self._longest

    @property
    def peer_slack(self) -> float:
        # scatter_add adds up a row one element after the other, in float; 16-bit results have room for what that loses.
        return 2 + (self.longest / 4096 if self.x.element_size() > 2 else 0)

    def row(self, tensor, row: int):
        return tensor[self.begins[row] : self.begins[row + 1]]

    def expected(self, row: int):
        y = self.row(self.x, row).double().softmax(0)
        return y, y


def make_problem(torch, device, shape: Shape, library) -> Problem:
    """`library` has the data that the benchmark has, too: mask_scale, offsets(shape, address)."""
    if shape.layout in RAGGED:
        return Ragged(torch, device, shape, library)
    if shape.op == CAUSAL:
        return Causal(torch, device, shape, library)
    if shape.op == CROSS_ENTROPY:
        return CrossEntropy(torch, device, shape)
    return (Gradient if shape.op in GRADIENTS else Forward)(torch, device, shape)
