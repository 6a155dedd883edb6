# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""kokkosnn.torch: against PyTorch's own operators, by opcheck, gradcheck and gradgradcheck, and under torch.compile."""

import pytest

torch = pytest.importorskip("torch", reason="PyTorch's operators need PyTorch: pip install torch")

import torch.fx.experimental.proxy_tensor  # noqa: E402
import torch.utils._python_dispatch  # noqa: E402

import kokkosnn  # noqa: E402
import kokkosnn.torch as knn  # noqa: E402
from kokkosnn import Dropout, Mask  # noqa: E402

DEVICE = {"Cuda": "cuda", "HIP": "cuda"}.get(kokkosnn.configuration()["backend"], "cpu")
F = torch.nn.functional


def numbers(*shape, dtype=torch.float64, seed=0, requires_grad=True):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=dtype).to(DEVICE).requires_grad_(requires_grad)


LABELS = torch.tensor([1, 4, -100, 0], device=DEVICE)
BOOLEAN = (torch.arange(25, device=DEVICE).reshape(5, 5) % 7 != 3).unsqueeze(0)
BIAS = numbers(4, 1, 5, seed=4, requires_grad=False)
SLOPES = torch.tensor([0.5, 0.25, 0.125, 1], dtype=torch.float64, device=DEVICE)
POSITIONS = torch.tensor([2, 0, 3], device=DEVICE)
PROBABILITIES = torch.softmax(numbers(4, 5, seed=7, requires_grad=False), -1)
OFFSETS = torch.tensor([0, 3, 3, 4, 9], device=DEVICE)  # the second row is empty
FILLED = torch.tensor([0, 3, 4, 9], device=DEVICE)
WEIGHTS = torch.tensor([1, 2, 0.5, 1, 3], dtype=torch.float64, device=DEVICE)


def parts(**changes):
    """What a masked softmax can have, as Mask has it."""
    given = {"boolean": BOOLEAN, "causal": True, "causal_offset": 2, "window": (3, None), "alibi_offset": 1}
    given["lengths"] = torch.tensor([5, 4], device=DEVICE)
    given["alibi_slopes"] = torch.tensor([0.5, 0.25, 0.125], dtype=torch.float64, device=DEVICE)
    return Mask(**{**given, **changes})


def masked(x, bias, sinks):
    return knn.masked_softmax(x, parts(bias=bias), 0.5, softcap=5.0, sinks=sinks)


def attend(q, k, v, bias, sinks, dropout=0.0):
    """With all of a mask, for grouped heads."""
    mask = parts(boolean=BOOLEAN[0], bias=bias, alibi_slopes=SLOPES)
    return knn.attention(q, k, v, mask, 0.5, softcap=5.0, sinks=sinks, dropout=dropout)


def attend_with_constants(q, k, v):
    return attend(q, k, v, BIAS, SLOPES)


def soft_loss(logits, reduction="mean", weights=None):
    return knn.soft_cross_entropy(logits, PROBABILITIES, weights, reduction=reduction, label_smoothing=0.125)


def loss(logits, reduction="mean", weights=WEIGHTS):
    options = {"reduction": reduction, "label_smoothing": 0.125, "z_loss": 0.25, "softcap": 5.0}
    return knn.cross_entropy(logits, LABELS, weights, **options)


ATTENDED = (
    *(numbers(2, 4, 5, 3), numbers(2, 2, 5, 3, seed=1), numbers(2, 2, 5, 2, seed=2)),
    *(numbers(4, 1, 5, seed=4), numbers(4, seed=5)),
)
DROPOUT = Dropout(0.25, seed=2**63 + 5, offset=3)

# The calls under test: each holds a function of tensors, and the tensors.
CALLS = {
    "softmax": (lambda x: knn.softmax(x, 1, 0.5), (numbers(2, 3, 4),)),
    "log_softmax": (lambda x: knn.log_softmax(x, 0, 2.0), (numbers(2, 3, 4),)),
    "logsumexp": (lambda x: knn.logsumexp(x, 1, 0.5), (numbers(2, 3, 4),)),
    "soft_cross_entropy": (soft_loss, (numbers(4, 5),)),
    "soft_cross_entropy of each row": (lambda x: soft_loss(x, "none", WEIGHTS), (numbers(4, 5),)),
    "add_rms_norm": (
        lambda x, r, w: knn.add_rms_norm(x, r, w, 0.1, 1, 1.0),
        (numbers(2, 3, 4), numbers(2, 3, 4, seed=1), numbers(3, seed=2)),
    ),
    "add_rms_norm without a weight": (
        lambda x, r: knn.add_rms_norm(x, r)[0],  # its sum gets no gradient
        (numbers(3, 4), numbers(3, 4, seed=1)),
    ),
    "add_layer_norm": (
        lambda x, r, w, b: knn.add_layer_norm(x, r, w, b, 0.1),
        (numbers(3, 4), numbers(3, 4, seed=1), numbers(4, seed=2), numbers(4, seed=3)),
    ),
    "swiglu": (knn.swiglu, (numbers(3, 4), numbers(4, seed=1))),
    "geglu": (knn.geglu, (numbers(3, 4), numbers(3, 4, seed=1))),
    "geglu by tanh": (lambda gate, up: knn.geglu(gate, up, "tanh"), (numbers(3, 4), numbers(3, 4, seed=1))),
    "segmented_softmax": (lambda x: knn.segmented_softmax(x, OFFSETS, 0.5), (numbers(9),)),
    "segmented_log_softmax": (lambda x: knn.segmented_log_softmax(x, OFFSETS), (numbers(9, 2),)),
    "segmented_logsumexp": (lambda x: knn.segmented_logsumexp(x, FILLED, 0.5), (numbers(9, 2),)),
    "cross_entropy": (loss, (numbers(4, 5),)),
    "cross_entropy of each row": (lambda x: loss(x, "none", None), (numbers(4, 5),)),
    "rms_norm": (lambda x, w: knn.rms_norm(x, w, 0.1, 1, 1.0), (numbers(2, 3, 4), numbers(3, seed=1))),
    "rms_norm without a weight": (lambda x: knn.rms_norm(x, None, 0.1), (numbers(3, 4),)),
    "layer_norm": (
        lambda x, w, b: knn.layer_norm(x, w, b, 0.1),
        (numbers(2, 3, 4), numbers(4, seed=1), numbers(4, seed=2)),
    ),
    "layer_norm without a weight": (lambda x: knn.layer_norm(x, None, None, 0.1), (numbers(3, 4),)),
    "masked_softmax": (masked, (numbers(2, 3, 5, 5), numbers(3, 1, 5, seed=1), numbers(3, seed=2))),
    "causal masked_softmax": (lambda x: knn.masked_softmax(x, Mask(causal=True)), (numbers(2, 4, 4),)),
    "attention": (attend, ATTENDED),
    "attention with dropout": (lambda *given: attend(*given, dropout=DROPOUT), ATTENDED),
    "attention with constants": (
        attend_with_constants,
        (numbers(2, 4, 5, 3), numbers(2, 2, 5, 3, seed=1), numbers(2, 2, 5, 2, seed=2)),
    ),
    "attention without a mask": (knn.attention, tuple(numbers(1, 2, 3, 2, seed=seed) for seed in range(3))),
    "matmul": (lambda a, b: knn.matmul(a, b.transpose(-1, -2), 0.5), (numbers(2, 1, 3, 4), numbers(5, 2, 4, seed=1))),
    "rope": (lambda x: knn.rope(x, None, None, POSITIONS, rotary_dims=4, theta=50.0), (numbers(3, 2, 6),)),
    "interleaved rope": (
        lambda x: knn.rope(x, BIAS[:, 0, :3], BIAS[:, 0, 2:], form="interleaved", sequence_axis=-2),
        (numbers(2, 3, 6),),
    ),
}
both = pytest.mark.parametrize("name", CALLS)


@both
def test_gradients_are_right(name):
    function, inputs = CALLS[name]
    assert torch.autograd.gradcheck(function, inputs)


@both
def test_second_derivatives_are_right(name):
    function, inputs = CALLS[name]
    assert torch.autograd.gradgradcheck(function, inputs)


@both
def test_torch_compile_takes_it_whole(name):
    function, inputs = CALLS[name]
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    results = []
    for call in (function, compiled):
        given = [x.detach().clone().requires_grad_() for x in inputs]
        y = call(*given)
        outputs = y if isinstance(y, tuple) else (y,)
        gradients = [torch.linspace(-1, 1, y.numel(), dtype=y.dtype, device=DEVICE).reshape(y.shape) for y in outputs]
        torch.autograd.backward(outputs, gradients)
        results.append([*outputs, *(x.grad for x in given)])
    for eager, whole in zip(*results):
        assert torch.equal(eager, whole)


NUMBERS = [1, 2, 1, 3, 2**63 - 1, 0, 0]
ROWS = numbers(4, dtype=torch.float64, seed=3, requires_grad=False)
HEADS = [numbers(1, 2, 5, 4, seed=seed) for seed in range(6)]
RANDOM = torch.tensor([5, 3])  # a seed and an offset
ROTATION = (BIAS[:, 0, :2], BIAS[:, 0, 2:4], POSITIONS, "half_rotated", 0, -3, 0, 10000.0, 1.0)
OPERATORS = {
    "attention": (*HEADS[:3], BIAS[:2], None, None, None, None, RANDOM, NUMBERS, None, 0.0, 0.25),
    "attention_backward": (
        *(x.detach() for x in HEADS[:5]),
        numbers(1, 2, 5).detach(),
        *(BIAS[:2], SLOPES[:2], BOOLEAN[0], None, None, RANDOM, NUMBERS, 0.5, 5.0, 0.25, True, True),
    ),
    "add_layer_norm": (numbers(4, 5), numbers(4, 5, seed=1), numbers(5), None, 0.1, 1),
    "add_layer_norm_backward": (
        *(numbers(4, 5).detach(), WEIGHTS, WEIGHTS, numbers(4, 5).detach(), numbers(4, 5, seed=1).detach()),
        *(ROWS, ROWS, 0.1, -1, True, True),
    ),
    "add_rms_norm": (numbers(4, 5), numbers(4, 5, seed=1), numbers(5), 0.1, -1, 0.0),
    "add_rms_norm_backward": (
        *(numbers(4, 5).detach(), WEIGHTS, numbers(4, 5).detach(), numbers(4, 5, seed=1).detach()),
        *(ROWS, 0.1, -1, 0.0, True),
    ),
    "geglu": (numbers(3, 4), numbers(3, 4, seed=1), "none"),
    "geglu_backward": (numbers(3, 4), numbers(3, 4, seed=1), numbers(3, 4, seed=2), "tanh"),
    "logsumexp": (numbers(2, 3, 4), 1, 0.5),
    "logsumexp_backward": (numbers(3, 4).detach(), numbers(3).detach(), numbers(3, seed=1).detach(), -1, 0.5),
    "segmented_softmax": (numbers(9), OFFSETS, 0.5),
    "segmented_softmax_backward": (numbers(9), numbers(9, seed=1), OFFSETS, 0.5),
    "segmented_log_softmax": (numbers(9, 2), OFFSETS, 0.5),
    "segmented_log_softmax_backward": (numbers(9, 2), numbers(9, 2, seed=1), OFFSETS, 0.5),
    "segmented_logsumexp": (numbers(9, 2), OFFSETS, 0.5),
    "segmented_logsumexp_backward": (numbers(9), numbers(3, seed=1), numbers(3, seed=2), FILLED, 0.5),
    "soft_cross_entropy": (numbers(4, 5).detach(), PROBABILITIES, WEIGHTS, "mean", 0.125),
    "soft_cross_entropy_with_gradient": (numbers(4, 5), PROBABILITIES, None, "none", 0.0),
    "swiglu": (numbers(3, 4), numbers(3, 4, seed=1)),
    "swiglu_backward": (numbers(3, 4), numbers(3, 4, seed=1), numbers(3, 4, seed=2)),
    "matmul": (numbers(3, 4, 5), numbers(5, 2, seed=1), 0.5, "exact"),
    "rope": (numbers(3, 2, 4), *ROTATION),
    "rope_backward": (numbers(3, 2, 4), *ROTATION),
    "softmax": (numbers(2, 3, 4), 1, 0.5),
    "softmax_backward": (numbers(2, 3, 4), numbers(2, 3, 4, seed=1), 1, 0.5),
    "log_softmax": (numbers(2, 3, 4).detach().transpose(0, 2), 0, 0.5),
    "log_softmax_backward": (numbers(2, 3, 4), numbers(2, 3, 4, seed=1), 1, 0.5),
    "cross_entropy": (numbers(4, 5), LABELS, WEIGHTS, "mean", -100, 0.125, 0.0, 0.0),
    "cross_entropy_backward": (
        numbers(4, 5).detach(),
        torch.ones((), dtype=torch.float64, device=DEVICE),
        ROWS,
        LABELS,
        None,
        "sum",
        -100,
        0.0,
        0.0,
        0.0,
    ),
    "rms_norm": (numbers(4, 5), numbers(5), 0.1, -1, 0.0),
    "rms_norm_backward": (numbers(4, 5).detach(), WEIGHTS, numbers(4, 5).detach(), ROWS, 0.1, -1, 0.0, True),
    "layer_norm": (numbers(4, 5), numbers(5), None, 0.1, 1),
    "layer_norm_backward": (numbers(4, 5).detach(), WEIGHTS, numbers(4, 5).detach(), ROWS, ROWS, 0.1, -1, True),
    "masked_softmax": (numbers(2, 3, 5, 5), numbers(5, 5), None, None, None, None, NUMBERS, 0.5, 0.0),
    "masked_softmax_backward": (
        *(numbers(2, 3, 5, 5).detach(), numbers(5, 5).detach(), numbers(3).detach()),
        *(numbers(2, 3, 5, 5).detach(), numbers(2, 3, 5, 5).detach(), None, None, None),
        *(NUMBERS, 0.5, 0.0, True, True),
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_keep_pytorchs_contract(name):
    torch.library.opcheck(getattr(torch.ops.kokkosnn, name).default, OPERATORS[name])


def test_every_operator_is_checked():
    registered = {
        name.removeprefix("kokkosnn::")
        for name in torch._C._dispatch_get_all_op_names()
        if name.startswith("kokkosnn::")
    }
    assert {name.split(".")[0] for name in registered} == set(OPERATORS)


class Names(torch.utils._python_dispatch.TorchDispatchMode):
    """Notes the operators that PyTorch's dispatcher sees."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        self.seen.append(str(function))
        return function(*arguments, **(keywords or {}))


class Tagged(torch.Tensor):
    """A class of tensors of a user."""


def test_the_dispatcher_is_asked_where_something_watches():
    x = numbers(4, 5, requires_grad=False)
    with Names() as names:
        knn.softmax(x)
    assert "kokkosnn.softmax.default" in names.seen
    assert type(knn.softmax(x.as_subclass(Tagged))) is Tagged
    traced = torch.fx.experimental.proxy_tensor.make_fx(lambda x: knn.softmax(x))(x)
    assert "kokkosnn.softmax.default" in traced.code


def test_calls_past_the_dispatcher_have_history_where_it_is_wanted():
    x = numbers(4, 5)
    assert knn.softmax(x).requires_grad
    assert knn.softmax(torch.nn.Parameter(x.detach())).requires_grad
    assert not knn.softmax(x.detach()).requires_grad
    with torch.no_grad():
        assert not knn.softmax(x).requires_grad
    with torch.inference_mode():
        assert knn.softmax(x).is_inference()


@pytest.mark.skipif(not hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), reason="PyTorch 2.11 brought the table")
def test_the_exchange_table_tells_device_and_stream():
    x = numbers(4, 5)
    stream = torch.cuda.current_stream().cuda_stream if DEVICE == "cuda" else 0
    kind = {"cuda": 10 if torch.version.hip else 2, "cpu": 1}[DEVICE]
    assert kokkosnn._core.exchange_place((x, None, {"weights": x, "scale": 1.0})) == (kind, x.device.index or 0, stream)
    assert kokkosnn._core.exchange_place((x, object())) is None
    assert kokkosnn._core.exchange_place((None, 1)) is None


@pytest.mark.skipif(DEVICE != "cuda", reason="a host has no streams")
def test_calls_go_to_the_current_stream():
    x = numbers(64, 1000, dtype=torch.float32, requires_grad=False)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)
        y = knn.softmax(x * 2)
    stream.synchronize()
    torch.testing.assert_close(y, torch.softmax(x * 2, -1))


@pytest.mark.skipif(DEVICE != "cuda", reason="a host has no graphs")
def test_graphs_are_captured_on_a_stream_that_had_a_call():
    x = numbers(64, 1000, dtype=torch.float32, requires_grad=False)
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        knn.softmax(x)
    with torch.cuda.graph(graph, stream=stream):
        y = knn.softmax(x)
        z = knn.rms_norm(y)
    x.copy_(x.flip(0))
    graph.replay()
    torch.testing.assert_close(y, torch.softmax(x, -1))
    torch.testing.assert_close(z, F.rms_norm(y, (1000,), eps=1e-6))

    with pytest.raises(ValueError, match="before a graph is captured"):
        with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=torch.cuda.Stream()):
            knn.softmax(x)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_values_are_pytorchs(dtype):
    def close(ours, theirs):
        torch.testing.assert_close(ours.double(), theirs.double(), rtol=tolerance, atol=tolerance)

    tolerance = {torch.float64: 1e-12, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]
    x = numbers(4, 5, dtype=dtype)
    exact = x.detach().double()
    weight, bias = numbers(5, dtype=dtype, seed=1), numbers(5, dtype=dtype, seed=2)
    close(knn.softmax(x, 0), torch.softmax(exact, 0))
    close(knn.log_softmax(x), torch.log_softmax(exact, -1))
    close(knn.cross_entropy(x, LABELS), F.cross_entropy(exact, LABELS))
    smoothed = F.cross_entropy(exact, LABELS, WEIGHTS, reduction="sum", label_smoothing=0.25)
    weights = WEIGHTS.to(torch.float64 if dtype == torch.float64 else torch.float32)
    close(knn.cross_entropy(x, LABELS, weights, reduction="sum", label_smoothing=0.25), smoothed)
    close(knn.logsumexp(x, 0, 0.5), torch.logsumexp(0.5 * exact, 0))
    probabilities = PROBABILITIES.to(dtype)
    close(knn.soft_cross_entropy(x, probabilities), F.cross_entropy(exact, probabilities.double()))
    y, total = knn.add_rms_norm(x, x.flip(0), weight, 1e-6)
    close(total, (x + x.flip(0)).double())
    close(y, F.rms_norm(exact + exact.flip(0), (5,), weight.double(), 1e-6))
    theirs = F.layer_norm(exact + exact.flip(0), (5,), weight.double(), bias.double())
    close(knn.add_layer_norm(x, x.flip(0), weight, bias)[0], theirs)
    close(knn.swiglu(x, weight), F.silu(exact) * weight.double())
    close(knn.geglu(x, weight, "tanh"), F.gelu(exact, approximate="tanh") * weight.double())
    rows = [exact[:, 0][i:j] for i, j in ((0, 3), (3, 4))]
    close(knn.segmented_softmax(x[:, 0], OFFSETS[[0, 1, 3]]), torch.cat([row.softmax(0) for row in rows]))
    close(knn.segmented_log_softmax(x[:, 0], OFFSETS[[0, 1, 3]]), torch.cat([row.log_softmax(0) for row in rows]))
    close(knn.segmented_logsumexp(x[:, 0], OFFSETS[[0, 1, 3]]), torch.stack([row.logsumexp(0) for row in rows]))
    close(knn.rms_norm(x, weight, 1e-6), F.rms_norm(exact, (5,), weight.double(), 1e-6))
    close(knn.layer_norm(x, weight, bias), F.layer_norm(exact, (5,), weight.double(), bias.double()))
    tril = torch.ones(4, 5, dtype=torch.bool, device=DEVICE).tril()
    close(knn.masked_softmax(x, Mask(causal=True)), torch.softmax(exact.masked_fill(~tril, -torch.inf), -1))
    q, k, v = (numbers(2, 3, 4, 5, dtype=dtype, seed=seed) for seed in range(3))
    theirs = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), is_causal=True)
    close(knn.attention(q, k, v, Mask(causal=True)), theirs)
    close(knn.matmul(q, k.transpose(-1, -2)), q.double() @ k.double().transpose(-1, -2))
    close(knn.masked_softmax(x, tril), torch.softmax(exact.masked_fill(~tril, -torch.inf), -1))


def rotated(x):
    """rope of x, by PyTorch's operators."""
    half = x.shape[-1] // 2
    angles = torch.outer(torch.arange(x.shape[-2]), 50.0 ** (-torch.arange(half, dtype=torch.float64) / half))
    cos, sin = angles.cos().to(DEVICE), angles.sin().to(DEVICE)
    low, high = x[..., :half], x[..., half:]
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


def both_norms(x, residual, weight):
    return F.rms_norm(x + residual, x.shape[-1:], weight, 1e-6), x + residual


# Each holds our function, PyTorch's, and the shapes of the tensors that both take.
GRADIENTS = {
    "softmax": (lambda x: knn.softmax(x, 0, 0.5), lambda x: torch.softmax(0.5 * x, 0), [(4, 5)]),
    "log_softmax": (knn.log_softmax, lambda x: torch.log_softmax(x, -1), [(4, 5)]),
    "logsumexp": (knn.logsumexp, lambda x: torch.logsumexp(x, -1), [(4, 5)]),
    "masked_softmax": (
        lambda x, bias: knn.masked_softmax(x, Mask(bias=bias)),
        lambda x, bias: torch.softmax(x + bias, -1),
        [(2, 3, 5, 5), (5, 5)],
    ),
    "cross_entropy": (lambda x: knn.cross_entropy(x, LABELS), lambda x: F.cross_entropy(x, LABELS), [(4, 5)]),
    "rms_norm": (knn.rms_norm, lambda x, w: F.rms_norm(x, (5,), w, 1e-6), [(4, 5), (5,)]),
    "layer_norm": (knn.layer_norm, lambda x, w, b: F.layer_norm(x, (5,), w, b), [(4, 5), (5,), (5,)]),
    "add_rms_norm": (knn.add_rms_norm, both_norms, [(4, 5), (4, 5), (5,)]),
    "attention": (
        lambda q, k, v: knn.attention(q, k, v, Mask(causal=True)),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(2, 3, 6, 8)] * 3,
    ),
    "matmul": (knn.matmul, torch.matmul, [(2, 4, 5), (5, 3)]),
    "rope": (lambda x: knn.rope(x, sequence_axis=-2, theta=50.0), rotated, [(2, 3, 4)]),
    "swiglu": (knn.swiglu, lambda gate, up: F.silu(gate) * up, [(4, 5), (4, 5)]),
    "geglu": (knn.geglu, lambda gate, up: F.gelu(gate) * up, [(4, 5), (4, 5)]),
    "segmented_softmax": (
        lambda x: knn.segmented_softmax(x, FILLED),
        lambda x: torch.cat([x[i:j].softmax(0) for i, j in ((0, 3), (3, 4), (4, 9))]),
        [(9,)],
    ),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_are_those_of_doubles_in_the_tensors_type(name, dtype):
    function, reference, shapes = GRADIENTS[name]
    given = [numbers(*shape, dtype=dtype, seed=seed) for seed, shape in enumerate(shapes)]
    exact = [x.detach().double().requires_grad_() for x in given]
    ours, theirs = function(*given), reference(*exact)
    tolerance = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 4e-2}[dtype]
    for y, expected in zip(*((y if isinstance(y, tuple) else (y,)) for y in (ours, theirs))):
        assert y.dtype == (torch.float32 if name == "cross_entropy" else dtype)
        torch.testing.assert_close(y.double(), expected, rtol=tolerance, atol=tolerance)
        dy = numbers(*y.shape, dtype=y.dtype, seed=9, requires_grad=False)
        y.backward(dy, retain_graph=True)
        expected.backward(dy.double(), retain_graph=True)
    for x, expected in zip(given, exact):
        assert x.grad.dtype == dtype
        torch.testing.assert_close(x.grad.double(), expected.grad, rtol=tolerance, atol=2 * tolerance)


def test_dropout_of_attention_takes_its_seed_from_torch():
    q, k, v = (x.detach() for x in HEADS[:3])
    call = lambda: knn.attention(q, k, v, dropout=0.5)  # noqa: E731
    torch.manual_seed(1)
    first, second = call(), call()
    assert not torch.equal(first, second)
    torch.manual_seed(1)
    assert torch.equal(call(), first) and torch.equal(call(), second)
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    torch.manual_seed(1)
    assert torch.equal(compiled(), first) and torch.equal(compiled(), second)
    fixed = knn.attention(q, k, v, dropout=DROPOUT)
    assert torch.equal(knn.attention(q, k, v, dropout=DROPOUT), fixed)
    assert torch.equal(fixed, kokkosnn.attention(q, k, v, dropout=DROPOUT)[0])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_dropout_of_attention_keeps_the_mean(dtype):
    """Of 4096 independent calls: 16 seeds, and 256 equal batches, which drop different weights."""
    q, k, v = (numbers(1, 2, 5, 4, dtype=dtype, seed=seed).expand(256, -1, -1, -1) for seed in range(3))
    without = knn.attention(q[:1], k[:1], v[:1]).double()
    torch.manual_seed(2)
    dropped = [knn.attention(q, k, v, dropout=0.25).double() for _ in range(16)]
    assert all((o - without).abs().max() > 0.1 for o in dropped)
    # The mean of n has a deviation of at most max |v| sqrt(p / (1 - p) / n) = 0.009 max |v|.
    torch.testing.assert_close(torch.cat(dropped).mean(0, keepdim=True), without, rtol=0, atol=0.1)


def test_dropout_of_attention_is_for_training():
    q, k, v = (x.detach() for x in HEADS[:3])
    module = knn.Attention(causal=True, dropout=0.25)
    without = knn.attention(q, k, v, Mask(causal=True))
    torch.manual_seed(3)
    trained = module(q, k, v)
    torch.manual_seed(3)
    assert torch.equal(trained, knn.attention(q, k, v, Mask(causal=True), dropout=0.25))
    assert not torch.equal(trained, without)
    assert torch.equal(module.eval()(q, k, v), without)
    assert torch.equal(knn.Attention(causal=True)(q, k, v), without)


def test_second_derivatives_drop_the_same_weights_of_many_keys():
    """More keys than v may have dims."""
    q, k, v = (numbers(1, 1, 300, 2, seed=seed, requires_grad=False) for seed in range(3))
    random = torch.tensor([7, 8])
    kept = knn._kept(q[:, :, :3], k, 0.25, random)
    assert set(kept.unique().tolist()) == {0, 1 / 0.75}
    weights = torch.softmax(q[:, :, :3] @ k.transpose(-1, -2) / 2**0.5, -1) * kept
    ours = knn.attention(q[:, :, :3], k, v, dropout=Dropout(0.25, 7, 8))
    torch.testing.assert_close(ours, weights @ v, rtol=1e-12, atol=1e-12)


def test_gradients_may_be_broadcast():
    x = numbers(4, 5)
    knn.softmax(x).sum().backward()  # its gradient has strides 0
    torch.testing.assert_close(x.grad, torch.zeros_like(x), rtol=0, atol=1e-15)


def test_modules_are_pytorchs():
    x = numbers(4, 5, dtype=torch.float32, requires_grad=False)
    pairs = [
        (knn.Softmax(0), torch.nn.Softmax(0)),
        (knn.LogSoftmax(), torch.nn.LogSoftmax(-1)),
        (knn.RMSNorm(5, device=DEVICE), torch.nn.RMSNorm(5, 1e-6, device=DEVICE)),
        (knn.LayerNorm(5, device=DEVICE), torch.nn.LayerNorm(5, device=DEVICE)),
        (knn.LayerNorm(5, has_bias=False, device=DEVICE), torch.nn.LayerNorm(5, bias=False, device=DEVICE)),
    ]
    for ours, theirs in pairs:
        assert set(ours.state_dict()) == set(theirs.state_dict())
        torch.testing.assert_close(ours(x), theirs(x))
    criterion = knn.CrossEntropyLoss(WEIGHTS.float(), label_smoothing=0.25)
    theirs = torch.nn.CrossEntropyLoss(WEIGHTS.float(), label_smoothing=0.25)
    torch.testing.assert_close(criterion(x, LABELS), theirs(x, LABELS))
    soft = torch.softmax(x, -1)
    torch.testing.assert_close(criterion(x, soft), theirs(x, soft))
    y, total = knn.AddRMSNorm(5, device=DEVICE)(x, x)
    torch.testing.assert_close((y, total), (torch.nn.RMSNorm(5, 1e-6, device=DEVICE)(x + x), x + x))
    y, total = knn.AddLayerNorm(5, device=DEVICE)(x, x)
    torch.testing.assert_close((y, total), (torch.nn.LayerNorm(5, device=DEVICE)(x + x), x + x))
    torch.testing.assert_close(knn.SwiGLU()(x[:, :4]), F.silu(x[:, :2]) * x[:, 2:4])
    torch.testing.assert_close(knn.GEGLU("tanh")(x[:, :4]), F.gelu(x[:, :2], approximate="tanh") * x[:, 2:4])
    torch.testing.assert_close(knn.SegmentedSoftmax(0.5)(x[:, 0], FILLED[[0, 2]]), torch.softmax(0.5 * x[:, 0], 0))
    q, k, v = (numbers(1, 2, 3, 4, dtype=torch.float32, seed=seed, requires_grad=False) for seed in range(3))
    theirs = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(knn.Attention(causal=True)(q, k, v), theirs)
    rotary = knn.RotaryEmbedding(sequence_axis=-2, theta=50.0)
    assert not rotary.state_dict()
    torch.testing.assert_close(rotary(q, POSITIONS), knn.rope(q, None, None, POSITIONS, sequence_axis=-2, theta=50.0))
    causal = knn.MaskedSoftmax(causal=True)
    assert torch.equal(causal(x)[0], torch.tensor([1.0, 0, 0, 0, 0], device=DEVICE))


def test_wrong_arguments_have_the_librarys_message():
    with pytest.raises(ValueError, match=r"KokkosNN::softmax: axis 7 is out of range for rank 2"):
        knn.softmax(numbers(4, 5), 7)
    slopes = numbers(3)
    with pytest.raises(NotImplementedError, match="slopes"):
        knn.masked_softmax(numbers(2, 3, 5, 5), Mask(alibi_slopes=slopes))
    with pytest.raises(NotImplementedError, match="it does not take diagonal_offsets"):
        knn.masked_softmax(numbers(2, 3, 5, 5), Mask(causal=True, diagonal_offsets=torch.tensor([0, 1])))
    with pytest.raises(NotImplementedError, match="attention: it does not take diagonal_offsets"):
        knn.attention(*HEADS[:3], Mask(causal=True, diagonal_offsets=LABELS[:1]))
    with pytest.raises(NotImplementedError, match="attention: there is no gradient by ALiBi's slopes"):
        knn.attention(*HEADS[:3], Mask(alibi_slopes=numbers(2)))
    for probability in (1.0, -0.5):
        with pytest.raises(ValueError, match="KokkosNN::attention: .*probability"):
            knn.attention(*HEADS[:3], dropout=probability)
    with pytest.raises(NotImplementedError, match="soft_cross_entropy: there is no gradient by targets"):
        knn.soft_cross_entropy(numbers(4, 5), numbers(4, 5))
    with pytest.raises(NotImplementedError, match="by cos and sin"):
        knn.rope(numbers(3, 2, 4), numbers(3, 2), numbers(3, 2))
