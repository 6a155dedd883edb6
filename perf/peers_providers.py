# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Who peers.py measures: KokkosNN, also by its Python package, a copy, and the peers.

What is not installed is missing, with a reason.
"""

from __future__ import annotations

import ctypes
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Dict, List, Optional

import peers_torch
from peers_problems import CROSS_ENTROPY, FORWARD, MATRICES, OPERATORS, RAGGED, TENSORS, TORCH_TYPES, Problem
from report import SUBJECT, YARDSTICK, Shape


def nothing(*_arguments) -> None:
    pass


@dataclass
class Call:
    """One provider, ready to run on one problem."""

    run: Callable[[], object]  # enqueues the work
    plan: str  # how it runs, for the report
    result: Callable[[object], object]  # what run() gave -> the values as they lie in memory, as Problem.result
    computes: bool = True  # the result is to be checked; false for the yardstick
    slack: float = 1.0  # factor of the check's tolerance
    own_stream: bool = False  # no event of ours can stand around the work: timed by the wall clock of many calls
    restore: Callable[[], None] = nothing  # of inputs that the last call wrote over; before each one that is timed
    finish: Callable[[object], object] = nothing  # waits for what the last run() gave
    release: Callable[[], None] = nothing
    batch: int = 1  # calls in a row that one sample takes; set by Bench.adjust
    cold_writes: int = 1  # of the cold cache before each call; set by Bench.adjust


class Tensors(ctypes.Structure):
    """As peers_kokkosnn.cpp has it: an address each; null where there is none."""

    _fields_ = [(name, ctypes.c_void_p) for name in TENSORS]


class Library:
    """The C interface of peers_kokkosnn.cpp."""

    def __init__(self, path: Path, load: Callable = ctypes.CDLL):
        self.path = path
        self.mask_scale = math.nan  # of logits under a mask; known once initialize was called
        self._c = load(str(path))
        text, number, handle = ctypes.c_char_p, ctypes.c_int64, ctypes.c_void_p
        self._declare("backend", text)
        self._declare("initialize", text, ctypes.c_int)
        self._declare("finalize", None)
        self._declare("describe", text)
        self._declare("offsets", text, text, number, number, handle)
        tensors = ctypes.POINTER(Tensors)
        self._declare("prepare", text, *[text] * 3, number, number, tensors, handle, ctypes.POINTER(handle))
        for name in ("plan", "run_call", "run_plan"):
            self._declare(name, text, handle)
        self._declare("release", None, handle)

    def _declare(self, name: str, result, *arguments) -> None:
        function = getattr(self._c, f"kokkosnn_peers_{name}")
        function.restype, function.argtypes = result, list(arguments)
        setattr(self, f"_{name}", function)

    @staticmethod
    def _check(error: Optional[bytes]) -> None:
        if error is not None:
            raise RuntimeError(error.decode())

    @property
    def backend(self) -> str:
        return self._backend().decode()

    @property
    def on_gpu(self) -> bool:
        return self.backend in ("Cuda", "HIP")

    def initialize(self, device: int) -> Dict[str, object]:
        """Starts Kokkos; gives what the library knows of the machine, the tolerances and the shapes."""
        self._check(self._initialize(device))
        described = json.loads(self._describe().decode())
        self.mask_scale = described["mask_scale"]
        return described

    def finalize(self) -> None:
        self._finalize()

    def offsets(self, shape: Shape, address: int) -> None:
        """Writes where the ragged rows of `shape` begin: rows + 1 int32 in the host's memory."""
        self._check(self._offsets(shape.layout.encode(), shape.rows, shape.cols, address))

    def prepare(self, shape: Shape, addresses: Dict[str, int], stream: int) -> ctypes.c_void_p:
        """A handle for `shape` on tensors at these addresses; the other functions take it."""
        handle = ctypes.c_void_p()
        names = [name.encode() for name in (shape.op, shape.type, shape.layout)]
        tensors = Tensors(**addresses)
        self._check(self._prepare(*names, shape.rows, shape.cols, tensors, stream, ctypes.byref(handle)))
        return handle

    def plan(self, handle: ctypes.c_void_p) -> str:
        return self._plan(handle).decode()

    def runner(self, handle: ctypes.c_void_p, planned: bool) -> Callable[[], None]:
        """Enqueues the plan object's run, or the public function's call."""
        function = self._run_plan if planned else self._run_call

        def run() -> None:
            error = function(handle)
            if error is not None:
                raise RuntimeError(error.decode())

        return run

    def release(self, handle: ctypes.c_void_p) -> None:
        self._release(handle)


class Provider:
    """Base of all; `bench` is peers.py's Bench: the device, its stream, its clock."""

    name = ""
    capturable = True  # its calls may be captured in a graph
    by_default = True  # measured on the sweeps unless --providers says otherwise
    ops = FORWARD
    types = tuple(TORCH_TYPES)
    layouts = MATRICES

    def missing(self, bench) -> str:
        """Why it can't be measured here; empty where it can."""
        return ""

    def serves(self, shape: Shape) -> bool:
        return shape.op in self.ops and shape.type in self.types and shape.layout in self.layouts

    def prepare(self, problem: Problem, bench) -> Call:
        raise NotImplementedError


class OfAllShapes(Provider):
    """Serves whatever the library serves."""

    ops = OPERATORS
    layouts = (*MATRICES, *RAGGED)


class Copy(OfAllShapes):
    """The yardstick: reads half of the bytes that the operator must move and writes the other half."""

    name = YARDSTICK

    def prepare(self, problem: Problem, bench) -> Call:
        torch, device = problem.torch, problem.x.device
        source = torch.randint(0, 256, (problem.bytes // 2,), dtype=torch.uint8, device=device)
        target = torch.empty_like(source)
        plan = "device-to-device copy" if bench.gpu else "torch's copy_"
        return Call(lambda: target.copy_(source), plan, result=lambda _: target, computes=False)


class KokkosNN(OfAllShapes):
    """The public function, or with `planned` the plan object, on the stream that PyTorch works on."""

    def __init__(self, library: Library, planned: bool):
        self.library, self.planned = library, planned
        self.name = f"{SUBJECT}_plan" if planned else SUBJECT
        self.by_default = not planned  # an event's time on a GPU holds no host cost, so it is the same there
        if planned:  # what has a plan object
            self.ops, self.layouts = tuple(op for op in OPERATORS if op != CROSS_ENTROPY), MATRICES

    def prepare(self, problem: Problem, bench) -> Call:
        handle = self.library.prepare(problem.shape, problem.addresses, bench.stream_handle)
        return Call(
            self.library.runner(handle, self.planned),
            self.library.plan(handle),
            result=lambda _: problem.result,
            restore=problem.restore,
            release=lambda: self.library.release(handle),
        )


class Package(Provider):
    """The Python package's function, as its users call it: on arrays of NumPy, or on PyTorch's tensors."""

    by_default = False  # the kernels are KokkosNN's; what the package adds is time of the host
    capturable = False
    ops = ("softmax",)
    layouts = ("right",)

    def __init__(self, arrays: str):
        self.arrays = arrays
        self.name = f"{SUBJECT}_{arrays}"
        if arrays == "numpy":
            self.types = ("f64", "f32", "f16")

    def missing(self, bench) -> str:
        if bench.gpu and self.arrays == "numpy":
            return "NumPy's arrays are on the host"
        try:
            import kokkosnn
            import kokkosnn.torch
        except ImportError as error:
            return str(error)
        backend = kokkosnn.configuration()["backend"]
        if (backend in ("Cuda", "HIP")) != bench.gpu:
            return f"the package is for {backend}"
        self.function = kokkosnn.softmax if self.arrays == "numpy" else kokkosnn.torch.softmax
        return ""

    def prepare(self, problem: Problem, bench) -> Call:
        function, is_numpy = self.function, self.arrays == "numpy"
        x = problem.x.numpy() if is_numpy else problem.x
        name = "kokkosnn.softmax" if is_numpy else "kokkosnn.torch.softmax"
        return Call(
            lambda: function(x),
            f"{name}, a result allocated",
            result=bench.torch.from_numpy if is_numpy else (lambda y: y),
        )


class Torch(OfAllShapes):
    """PyTorch's own kernels, eager. Like everything of PyTorch's it allocates its result, from its cache."""

    name = "torch"

    def prepare(self, problem: Problem, bench) -> Call:
        form = peers_torch.form_of(problem)
        run = form.runner(bench.torch, form.function)
        return Call(run, f"{form.text}, eager", result=lambda y: y, slack=problem.peer_slack)


class TorchCompile(OfAllShapes):
    """torch.compile in its default mode, for this shape alone."""

    name = "torch.compile"

    def missing(self, bench) -> str:
        return "" if hasattr(bench.torch, "compile") else "this PyTorch has no torch.compile"

    def prepare(self, problem: Problem, bench) -> Call:
        bench.torch._dynamo.reset()  # or the cache's limit is reached after a few shapes and it stays eager
        form = peers_torch.form_of(problem)
        run = form.runner(bench.torch, bench.torch.compile(form.function, dynamic=False))
        plan = f"{form.text}, default mode, dynamic=False"
        return Call(run, plan, result=lambda y: y, slack=problem.peer_slack)


class Triton(Provider):
    """One of the forms of peers_triton.py, with the fastest of its candidates."""

    def __init__(self, name: str):
        self.name = name
        self.forms: Dict[str, object] = {}

    def missing(self, bench) -> str:
        if not bench.gpu:
            return "Triton runs on GPUs only"
        try:
            import peers_triton
        except ImportError as error:
            return str(error)
        self.triton = peers_triton
        return ""

    def serves(self, shape: Shape) -> bool:
        return super().serves(shape) and self.triton.FORMS[self.name].serves(shape.layout, shape.rows, shape.cols)

    def prepare(self, problem: Problem, bench) -> Call:
        shape = problem.shape
        task = self.triton.Task(shape.op, shape.layout, shape.rows, shape.cols, problem.x, problem.y)
        label, launch = bench.fastest(self.triton.FORMS[self.name].candidates(task))
        return Call(launch, label, result=lambda _: problem.y, slack=problem.peer_slack)


class Jax(Provider):
    """jax.jit of jax.nn's function. It works on a stream of its own, where no event of ours can be: the wall clock of
    many calls in a row is what there is, over so many inputs that none is still in the cache."""

    name = "jax"
    capturable = False

    def missing(self, bench) -> str:
        try:
            import jax
            import jax.dlpack
        except ImportError as error:
            return str(error)
        jax.config.update("jax_enable_x64", True)
        platform = jax.devices()[0].platform
        if (platform != "cpu") != bench.gpu:
            return f"jax works on {platform}, PyTorch on {bench.device}"
        self.jax = jax
        return ""

    def prepare(self, problem: Problem, bench) -> Call:
        jax, torch = self.jax, problem.torch
        bench.fence()
        # Row-major as jax has it: a LayoutLeft matrix is reduced along the first axis of its transpose.
        inputs = [jax.dlpack.from_dlpack(problem.x)]
        enough = -(-bench.cold_bytes // problem.bytes) + 1 if bench.gpu else 1
        inputs += [inputs[0] + 0 for _ in range(min(enough, 64) - 1)]
        function = getattr(jax.nn, problem.shape.op)
        compiled = jax.jit(lambda x: function(x, axis=problem.axis)).lower(inputs[0]).compile()
        turn = 0

        def run():
            nonlocal turn
            turn = (turn + 1) % len(inputs)
            return compiled(inputs[turn])

        return Call(
            run,
            f"jax.jit, by the wall clock over {len(inputs)} inputs",
            result=lambda y: torch.from_dlpack(y),
            slack=problem.peer_slack,
            own_stream=True,
            finish=lambda y: y.block_until_ready(),
        )


class FromPackage(Provider):
    """A function of a package that takes x, rows contiguous, and gives softmax over the last axis."""

    ops = ("softmax",)
    layouts = ("right",)
    types = ("f32", "f16", "bf16")

    def missing(self, bench) -> str:
        if not bench.gpu:
            return f"{self.name} runs on GPUs only"
        try:
            self.function = self.load()
        except Exception as error:  # these packages fail in many ways where a GPU or a package is not theirs
            return str(error) or type(error).__name__
        return ""

    def load(self) -> Callable:
        raise NotImplementedError

    def prepare(self, problem: Problem, bench) -> Call:
        function, x = self.function, problem.x
        return Call(lambda: function(x), self.name, result=lambda y: y, slack=problem.peer_slack)


class Quack(FromPackage):
    name = "quack"

    def load(self) -> Callable:
        from quack import softmax

        return softmax


class Liger(FromPackage):
    """Its cross entropy writes the gradient over the logits in the forward call, where they want one; its backward has
    nothing left to do for a mean. The forward call waits for the GPU, which is in its time."""

    name = "liger"
    ops = (*FromPackage.ops, CROSS_ENTROPY)

    def load(self) -> Callable:
        from liger_kernel.ops.softmax import LigerSoftmaxFunction
        from liger_kernel.transformers.functional import liger_cross_entropy

        self.cross_entropy = liger_cross_entropy
        return LigerSoftmaxFunction.apply

    def prepare(self, problem: Problem, bench) -> Call:
        if problem.shape.op != CROSS_ENTROPY:
            return super().prepare(problem, bench)
        logits = problem.y.detach().requires_grad_()

        def run():
            with bench.torch.enable_grad():
                return self.cross_entropy(logits, problem.labels).detach()

        plan = "liger_cross_entropy, the gradient over the logits"
        return Call(
            run,
            plan,
            result=lambda loss: (problem.y, loss),
            slack=problem.peer_slack,
            restore=problem.restore,
        )


def all_providers(library: Library) -> List[Provider]:
    triton = [Triton(name) for name in ("triton_persistent", "triton_row", "triton_tiled")]
    ours = [KokkosNN(library, planned) for planned in (False, True)]
    ours += [Package(arrays) for arrays in ("numpy", "torch")]
    return [Copy(), *ours, Torch(), TorchCompile(), *triton, Jax(), Quack(), Liger()]


def select(providers: List[Provider], wanted: Optional[List[str]]) -> List[Provider]:
    """Those that are wanted, in the order of the list; all by default.

    ValueError names what is not there.
    """
    if wanted is None:
        return list(providers)
    names = [provider.name for provider in providers]
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ValueError(f"no provider {', '.join(unknown)}; there are {', '.join(names)}")
    chosen = [provider for provider in providers if provider.name in wanted]
    for provider in chosen:
        provider.by_default = True
    return chosen


def library_candidates(root: Path) -> List[Path]:
    """Where a build leaves the library, the newest first."""
    names = ("libkokkosnn_peers.so", "libkokkosnn_peers.dylib")
    found = [
        path for name in names for pattern in ("build*", "build*/*") for path in root.glob(f"{pattern}/perf/{name}")
    ]
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def open_library(path: Optional[Path], root: Path, gpu: bool) -> Library:
    """The library that was named, or else the newest one for the device; FileNotFoundError tells how to build it."""
    if path is not None:
        return Library(path.resolve())
    fallback, reasons = None, []
    for candidate in library_candidates(root):
        try:
            library = Library(candidate)
        except OSError as error:
            reasons.append(f"{candidate}: {error}")
            continue
        if library.on_gpu == gpu:
            return library
        if not library.on_gpu:
            fallback = fallback or library
        else:
            reasons.append(f"{candidate}: it is for {library.backend}, but PyTorch sees no GPU")
    if fallback:
        print(f"No library for the GPU was found; {fallback.path} measures on the host.", file=sys.stderr)
        return fallback
    build = "-DKokkosNN_ENABLE_PERF=ON -DKokkosNN_FETCH_KOKKOS=ON "
    build += "-DKokkos_ENABLE_CUDA=ON -DKokkos_ARCH_HOPPER90=ON" if gpu else "-DKokkos_ENABLE_OPENMP=ON"
    raise FileNotFoundError(
        "\n".join(
            [
                *reasons,
                f"KokkosNN's library for Python is not built; in {root}:",
                f"  cmake -B build {build} && cmake --build build --parallel --target kokkosnn_peers",
                "or name it with --library (a Kokkos that is installed must have been built with",
                "-DCMAKE_POSITION_INDEPENDENT_CODE=ON).",
            ]
        )
    )
