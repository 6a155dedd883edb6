#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Measures KokkosNN and its peers (PyTorch, torch.compile, Triton, JAX, QuACK, Liger) on one device in one process.

    peers.py [--out DIR]          the marks and the small calls; ends with report.py's table, report and ratios
    peers.py --list               providers and shapes, measures nothing
    peers.py --sweep cliffs types other sweeps of shapes.hpp; the operators beyond softmax and its kin are gradients,
                                  'masked, causal', cross_entropy, segmented

All providers of a shape take turns in rounds, so that a drift of the machine meets all of them alike. Each result is
checked against double before its time counts. DIR/results.json is written anew after every shape; report.py reads it.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import gc
import json
import math
import os
import re
import statistics
import sys
import time
from pathlib import Path
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Set, Tuple

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # the GPU's memory is for all

import report
from peers_problems import Problem, make_problem
from peers_providers import Call, Provider, all_providers, open_library, select
from report import SMALL_CALLS, SMALL_CALLS_IN_GRAPH, SUBJECT, YARDSTICK, Shape

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 5
MIN_SAMPLES_A_ROUND = 2
MAX_SAMPLES_A_ROUND = 80
TUNING_SAMPLES = 5
WAKING_SECONDS = 0.05
MOST_COLD_WRITES = 8
SMALL_SHAPES = ((4, 8), (64, 1024), (1, 4096))
WALL_SAMPLE_SECONDS = 0.005  # what a sample by the wall clock lasts, within MOST_CALLS_A_SAMPLE
MOST_CALLS_A_SAMPLE = 200
CALLS_IN_GRAPH = 100


class Case(NamedTuple):
    """A shape as it runs here, and the rows that the table of shapes has."""

    shape: Shape
    nominal_rows: int


# --- statistics and results ------------------------------------------------------------------------------------------


def quantile(ordered: Sequence[float], q: float) -> float:
    """Linear between neighbours, as timing.hpp has it."""
    position = q * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def summary(samples: Iterable[float]) -> Dict[str, float]:
    """The fields of results.json that tell a time."""
    ordered = sorted(samples)
    quartiles = {name: quantile(ordered, q) for name, q in (("median_s", 0.5), ("q1_s", 0.25), ("q3_s", 0.75))}
    return dict(samples=len(ordered), **quartiles, min_s=ordered[0], max_s=ordered[-1])


class Results:
    """What results.json holds, in the schema of perf_results.cpp."""

    def __init__(self, context: Dict[str, str]):
        self.context = context
        self.records: List[Dict[str, object]] = []
        self.failures: List[Dict[str, object]] = []

    @staticmethod
    def _named(case: Case, provider: str) -> Dict[str, object]:
        return dict(case.shape._asdict(), nominal_rows=case.nominal_rows, provider=provider)

    def add(self, case: Case, provider: str, plan: str, moved: int, samples: Sequence[float]) -> None:
        self.records.append(dict(self._named(case, provider), plan=plan, bytes=moved, **summary(samples)))

    def fail(self, case: Case, provider: str, what: str) -> None:
        self.failures.append(dict(self._named(case, provider), what=what))

    def resume(self, folder: Path) -> Set[Shape]:
        """Takes over what an earlier run left in the folder; gives the shapes that it measured."""
        path = folder / "results.json"
        if not path.exists():
            return set()
        earlier = json.loads(path.read_text(encoding="utf-8"))
        self.records, self.failures = earlier["records"], earlier["failures"]
        self.context["continues"] = f"{earlier['context'].get('date', '')} {earlier['context'].get('command', '')}"
        return {report.to_record(record).shape for record in self.records}

    def save(self, folder: Path) -> None:
        """Replaces the file as a whole: whoever reads it while this runs reads all of it."""
        text = json.dumps(dict(schema=1, context=self.context, records=self.records, failures=self.failures), indent=0)
        half_written = folder / "results.json.new"
        half_written.write_text(text + "\n", encoding="utf-8")
        os.replace(half_written, folder / "results.json")


# --- the device ------------------------------------------------------------------------------------------------------


class Bench:
    """The device that is measured on: its stream, its cold cache, its clock."""

    def __init__(self, torch, gpu: bool, cold_bytes: int):
        self.torch, self.gpu, self.cold_bytes = torch, gpu, cold_bytes
        self.device = torch.device("cuda", torch.cuda.current_device()) if gpu else torch.device("cpu")
        self.stream_handle = 0
        if gpu:
            # One stream for all, and not the default one: it can be captured in a graph.
            self.stream = torch.cuda.Stream()
            torch.cuda.set_stream(self.stream)
            self.stream_handle = self.stream.cuda_stream
            self._start, self._stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            self._driver = ctypes.CDLL("libcuda.so.1") if torch.version.cuda else None
            self._cold = torch.zeros(cold_bytes // 4, dtype=torch.int32, device=self.device)
            self._cold_seconds = min(self._by_events(self._write_cold_cache) for _ in range(5))

    def fence(self) -> None:
        if self.gpu:
            self.torch.cuda.synchronize()

    def wake(self) -> None:
        """Work until a GPU that idled while something was compiled has its clocks up again."""
        end = time.perf_counter() + WAKING_SECONDS
        while self.gpu and time.perf_counter() < end:
            self._write_cold_cache()
            self.fence()

    def _write_cold_cache(self) -> None:
        self._cold.add_(1)

    def _release_kept_lines(self) -> None:
        """Makes lines that the last call has told the cache to keep to the last like others: a cold cache has none."""
        if self._driver is not None:
            status = self._driver.cuCtxResetPersistingL2Cache()
            if status != 0:
                raise RuntimeError(f"peers.py: cuCtxResetPersistingL2Cache gave {status}")

    def _by_events(self, enqueue: Callable[[], object]) -> float:
        self._start.record()
        enqueue()
        self._stop.record()
        self._stop.synchronize()
        return 1e-3 * self._start.elapsed_time(self._stop)

    def adjust(self, call: Call) -> None:
        """Sets how a call is sampled: how many calls in a row the wall clock sees, or how often the cold cache is
        written before a call. The writes must last until the host has launched the call, or the time between the events
        would hold the host's."""
        if call.own_stream:
            call.batch = self.calls_within(call, WALL_SAMPLE_SECONDS)
        elif self.gpu:
            host = min(self._host_seconds(call) for _ in range(3))
            call.cold_writes = min(MOST_COLD_WRITES, math.ceil((2 * host + 30e-6) / self._cold_seconds))

    def _host_seconds(self, call: Call) -> float:
        call.restore()
        self.fence()
        begin = time.perf_counter()
        call.run()
        return time.perf_counter() - begin

    def seconds(self, call: Call) -> float:
        """One sample."""
        if call.own_stream:
            return self.wall_seconds(call, call.batch)
        if not self.gpu:
            return self._host_seconds(call)
        call.restore()
        self._release_kept_lines()
        for _ in range(call.cold_writes):
            self._write_cold_cache()
        return self._by_events(call.run)

    def calls_within(self, call: Call, seconds: float) -> int:
        """How many calls in a row last about so long; on a GPU enough that launching overlaps with running."""
        once = self.wall_seconds(call, 3)
        return max(10 if self.gpu else 1, min(MOST_CALLS_A_SAMPLE, round(seconds / once)))

    def wall_seconds(self, call: Call, count: int) -> float:
        """One call's share of `count` in a row, by the wall clock, caches as they are."""
        self.fence()
        begin = time.perf_counter()
        for _ in range(count):
            last = call.run()
        call.finish(last)
        self.fence()
        return (time.perf_counter() - begin) / count

    def fastest(self, candidates: Iterable[Tuple[str, Callable[[], object]]]) -> Tuple[str, Callable[[], object]]:
        """The candidate with the least median of a few samples; those that fail are left out."""
        best, failure = None, RuntimeError("no candidate")
        for label, launch in candidates:
            call = Call(launch, label, result=lambda value: value)
            try:
                call.run()
                self.adjust(call)
                seconds = statistics.median(self.seconds(call) for _ in range(TUNING_SAMPLES))
            except Exception as error:  # too large for the GPU's registers or shared memory
                failure = error
                continue
            if best is None or seconds < best[0]:
                best = (seconds, label, launch)
        if best is None:
            raise failure
        return best[1:]

    def graph_of(self, call: Call, count: int):
        """The call, `count` times in a row, captured."""
        self.fence()
        graph = self.torch.cuda.CUDAGraph()
        # thread_local: a runtime call of another thread (JAX has some) is none of this capture's business
        with self.torch.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            for _ in range(count):
                call.run()
        return graph

    def graph_seconds(self, graph, count: int) -> float:
        return self._by_events(graph.replay) / count


def in_rounds(
    samplers: Dict[str, Callable[[], float]],
    seconds: float,
    failed: Callable[[str, str], None],
    clock: Callable[[], float] = time.perf_counter,
) -> Dict[str, List[float]]:
    """Samples by name: in each round each sampler is called for its share of `seconds`, in an order that turns by one.

    The first sample of a turn is thrown away: whoever came before may have left caches, clocks and threads in its own
    way. A sampler that raises is reported to `failed` and has no samples.
    """
    samples: Dict[str, List[float]] = {name: [] for name in samplers}
    for turn in range(ROUNDS):
        names = list(samples)
        for name in names[turn % len(names) :] + names[: turn % len(names)] if names else []:
            try:
                samplers[name]()
                begin, taken = clock(), 0
                while taken < MIN_SAMPLES_A_ROUND or (
                    taken < MAX_SAMPLES_A_ROUND and clock() - begin < seconds / ROUNDS
                ):
                    samples[name].append(samplers[name]())
                    taken += 1
            except Exception as error:
                del samples[name]
                failed(name, text_of(error))
    return samples


def text_of(error: BaseException) -> str:
    """The first line of what went wrong."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


# --- the run ---------------------------------------------------------------------------------------------------------


class Deadline:
    def __init__(self, seconds: Optional[float]):
        self._end = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def passed(self) -> bool:
        return time.monotonic() >= self._end


class Suite:
    """The run: prepares, checks and times the providers, shape by shape."""

    def __init__(
        self,
        bench: Bench,
        providers: List[Provider],
        problem_of: Callable[[Shape], Problem],
        tolerances,
        results: Results,
        folder: Path,
    ):
        self.bench, self.providers, self.problem_of, self.tolerances = bench, providers, problem_of, tolerances
        self.results, self.folder = results, folder
        self.wrong = 0  # results of KokkosNN that failed

    def fail(self, case: Case, provider: str, what: str) -> None:
        self.results.fail(case, provider, what)
        self.wrong += provider.startswith(SUBJECT)
        self.notes.append(f"{provider} FAILED ({what})")

    def prepared(self, case: Case, problem: Problem, providers: Iterable[Provider]) -> Dict[str, Call]:
        """The calls whose results are right, by provider."""
        calls = {}
        for provider in providers:
            if not provider.serves(case.shape):
                continue
            try:
                call = provider.prepare(problem, self.bench)
                difference = self.difference(problem, call)
                self.bench.adjust(call)
            except Exception as error:
                self.fail(case, provider.name, text_of(error))
                continue
            if difference:
                call.release()
                self.fail(case, provider.name, f"wrong result: {difference}")
            else:
                calls[provider.name] = call
        return calls

    def difference(self, problem: Problem, call: Call) -> str:
        problem.poison_y()
        self.bench.fence()
        last = call.run()
        call.finish(last)
        self.bench.fence()
        if not call.computes:
            return ""
        return problem.difference(call.result(last), self.tolerances[problem.shape.type], call.slack)

    def measure(self, case: Case, seconds: float) -> None:
        """One shape of a sweep."""
        self.notes: List[str] = []
        problem = self.problem_of(case.shape)
        calls = self.prepared(case, problem, [p for p in self.providers if p.by_default])
        samplers = {name: (lambda call=call: self.bench.seconds(call)) for name, call in calls.items()}
        self.bench.wake()
        self.keep(case, calls, problem, in_rounds(samplers, seconds, lambda *what: self.fail(case, *what)))
        self.release(calls)

    def measure_small(self, case: Case, seconds: float) -> None:
        """Microseconds a call with warm caches: plain, and back to back in a graph."""
        self.notes = []
        problem = self.problem_of(case.shape)
        calls = self.prepared(case, problem, self.providers)
        plain = {name: self.wall_sampler(call) for name, call in calls.items()}
        self.bench.wake()
        self.keep(case, calls, problem, in_rounds(plain, seconds, lambda *what: self.fail(case, *what)))
        if self.bench.gpu:
            case = case._replace(shape=case.shape._replace(sweep=SMALL_CALLS_IN_GRAPH))
            graphs = self.graphs(case, calls)
            replays = {
                name: (lambda graph=graph: self.bench.graph_seconds(graph, CALLS_IN_GRAPH))
                for name, graph in graphs.items()
            }
            self.keep(case, calls, problem, in_rounds(replays, seconds, lambda *what: self.fail(case, *what)))
            graphs.clear()
        self.release(calls)

    def wall_sampler(self, call: Call) -> Callable[[], float]:
        count = 0

        def sample() -> float:
            nonlocal count
            count = count or self.bench.calls_within(call, WALL_SAMPLE_SECONDS)
            return self.bench.wall_seconds(call, count)

        return sample

    def graphs(self, case: Case, calls: Dict[str, Call]) -> Dict[str, object]:
        graphs = {}
        for provider in self.providers:
            if provider.capturable and provider.name in calls:
                try:
                    graphs[provider.name] = self.bench.graph_of(calls[provider.name], CALLS_IN_GRAPH)
                except Exception as error:
                    self.fail(case, provider.name, f"no graph: {text_of(error)}")
        return graphs

    def keep(self, case: Case, calls: Dict[str, Call], problem: Problem, samples: Dict[str, List[float]]) -> None:
        for name, seconds in samples.items():
            self.results.add(case, name, calls[name].plan, problem.bytes, seconds)
        medians = {name: statistics.median(seconds) for name, seconds in samples.items()}
        print(progress(case, problem.bytes, medians, self.notes), flush=True)
        self.notes = []
        self.results.save(self.folder)

    def release(self, calls: Dict[str, Call]) -> None:
        self.bench.fence()
        for call in calls.values():
            call.release()
        calls.clear()
        gc.collect()  # what a provider's closures hold is memory of the device
        if self.bench.gpu:
            self.bench.torch.cuda.empty_cache()  # JAX and Kokkos allocate from the device, too


def progress(case: Case, moved: int, medians: Dict[str, float], notes: Sequence[str]) -> str:
    """One line: GB/s and in brackets the share of copy, microseconds for small calls; what failed."""
    shape = case.shape
    small = shape.sweep in (SMALL_CALLS, SMALL_CALLS_IN_GRAPH)
    rows = str(shape.rows) if shape.rows == case.nominal_rows else f"{shape.rows} (of {case.nominal_rows})"
    parts = [f"{shape.sweep:<14} {shape.op:<20} {shape.type:<4} {shape.layout:<6} {rows:>18} x {shape.cols:<8}"]
    for name, seconds in medians.items():
        share = f" ({medians[YARDSTICK] / seconds:.2f})" if YARDSTICK in medians and name != YARDSTICK else ""
        parts.append(
            f"{name} {1e6 * seconds:.2f} us" if small else f"{name} {report.rate_text(1e-9 * moved / seconds)}{share}"
        )
    return "  ".join([*parts, *notes])


# --- selection and the command ---------------------------------------------------------------------------------------


def cases_of(shapes: Iterable[Dict[str, object]]) -> List[Case]:
    """The library's shapes; those whose x and y differ in type are left out, for hardly a peer has them."""
    return [
        Case(Shape(**{name: entry[name] for name in Shape._fields}), entry["nominal_rows"])
        for entry in shapes
        if ">" not in entry["type"]
    ]


def quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def select_cases(cases: Sequence[Case], sweeps: Sequence[str], match: str, quick: bool) -> List[Case]:
    """Those of the sweeps whose text matches; `quick` leaves three of a kind. ValueError where a sweep is unknown."""
    known = list(dict.fromkeys(case.shape.sweep for case in cases))
    unknown = [sweep for sweep in sweeps if sweep not in known and sweep != SMALL_CALLS]
    if unknown:
        raise ValueError(f"no sweep {quoted(unknown)}; there are {quoted([SMALL_CALLS, *known])}")
    chosen = [case for case in cases if case.shape.sweep in sweeps and re.search(match, case.shape.text())]
    if not quick:
        return chosen
    kinds: Dict[Tuple[str, ...], List[Case]] = {}
    for case in chosen:
        kinds.setdefault(case.shape[:4], []).append(case)
    return [case for kind in kinds.values() for case in report.thinned(kind, 3)]


def present(providers: Sequence[Provider], bench: Bench) -> Tuple[List[Provider], Dict[str, str]]:
    """Those that can be measured here, and why the others can't."""
    reasons = {}
    for provider in providers:
        try:
            reasons[provider.name] = provider.missing(bench)
        except Exception as error:
            reasons[provider.name] = text_of(error)
    there = [provider for provider in providers if not reasons[provider.name]]
    return there, {name: reason.splitlines()[0] for name, reason in reasons.items() if reason}


def context_of(described: Dict[str, str], bench: Bench, missing: Dict[str, str], options) -> Dict[str, str]:
    """What the library tells of machine and build, and what Python adds."""
    context = dict(described)
    if bench.gpu:
        context["timer"] = (
            "events around one call, lines that were to be kept released and the cold cache written before; jax by the "
            "wall clock of many calls in a row; all providers in turn, in rounds"
        )
    else:
        context["timer"] = (
            "clock around one call, caches as left; jax by many calls in a row; all providers in turn, in rounds"
        )
    context["torch"] = bench.torch.__version__
    for name in ("triton", "jax", "quack", "liger_kernel"):
        version = getattr(sys.modules.get(name), "__version__", None)
        if version:
            context[name] = version
    for name, reason in missing.items():
        context[f"without {name}"] = reason
    context["command"] = " ".join(["peers.py", *options.command])
    context["set"] = "quick" if options.quick else "full"
    return context


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default_out = Path("perf/out") / time.strftime("peers-%Y%m%d-%H%M%S")
    parser.add_argument("--out", type=Path, default=default_out, metavar="DIR", help="where results.json goes")
    parser.add_argument("--library", type=Path, help="libkokkosnn_peers.so; default: the newest in build*/")
    parser.add_argument(
        "--sweep", nargs="+", default=["marks", SMALL_CALLS], metavar="NAME", help="default: %(default)s"
    )
    parser.add_argument(
        "--match", default="", metavar="REGEX", help="only shapes such as 'marks: softmax f32 8 x 1024'"
    )
    parser.add_argument("--providers", metavar="A,B", help="only these (and copy); default: all that are there")
    parser.add_argument("--seconds", type=float, metavar="S", help="of sampling one provider on one shape (0.1)")
    parser.add_argument("--limit-seconds", type=float, metavar="S", help="no new shape is begun after so long")
    parser.add_argument("--continue", action="store_true", dest="resume", help="keep the shapes that DIR has already")
    parser.add_argument("--quick", action="store_true", help="three shapes of a kind, 0.04 seconds each")
    parser.add_argument("--list", action="store_true", help="providers and shapes; measures nothing")
    parser.add_argument("--no-report", action="store_true", help="leave report.py to later")
    options = parser.parse_args(arguments)
    options.command = list(arguments)
    options.seconds = options.seconds or (0.04 if options.quick else 0.1)
    if options.providers is not None:
        options.providers = list(dict.fromkeys([YARDSTICK, *options.providers.split(",")]))
    return options


def list_all(providers: Sequence[Provider], missing: Dict[str, str], cases: Sequence[Case]) -> None:
    for provider in providers:
        note = "" if provider.by_default else f"{SMALL_CALLS} only, unless it is named"
        if provider.name in missing:
            note = f"missing: {missing[provider.name]}"
        print(f"{provider.name:<18} {note}".rstrip())
    print(*(case.shape.text() for case in cases), sep="\n")


def small_cases(options) -> List[Case]:
    """The small calls, if they are among the sweeps that are asked for."""
    shapes = [Shape(SMALL_CALLS, "softmax", "f32", "right", rows, cols) for rows, cols in SMALL_SHAPES]
    return [Case(shape, shape.rows) for shape in shapes if SMALL_CALLS in options.sweep]


def run(suite: Suite, cases: Sequence[Case], seconds: float, deadline: Deadline) -> int:
    """Measures case by case; gives how many were left out for want of time."""
    for done, case in enumerate(cases):
        if deadline.passed:
            return len(cases) - done
        try:
            (suite.measure_small if case.shape.sweep == SMALL_CALLS else suite.measure)(case, seconds)
        except Exception as error:  # of the problem itself: no memory for it, say
            print(f"{case.shape.text()} was given up: {text_of(error)}", file=sys.stderr, flush=True)
    return 0


def measure_all(options, torch, library) -> Tuple[Suite, int]:
    """All between Kokkos' start and its end."""
    deadline = Deadline(options.limit_seconds)
    gpu = library.on_gpu
    described = library.initialize(torch.cuda.current_device() if gpu else -1)
    bench = Bench(torch, gpu, described["cold_bytes"])
    providers = select(all_providers(library), options.providers)
    there, missing = present(providers, bench)
    cases = small_cases(options)
    cases += select_cases(cases_of(described["shapes"]), options.sweep, options.match, options.quick)
    if options.list:
        list_all(providers, missing, cases)
        return None, 0
    options.out.mkdir(parents=True, exist_ok=True)
    results = Results(context_of(described["context"], bench, missing, options))
    measured = results.resume(options.out) if options.resume else set()
    cases = [case for case in cases if case.shape not in measured]
    suite = Suite(
        bench,
        there,
        lambda shape: make_problem(torch, bench.device, shape, library),
        described["tolerances"],
        results,
        options.out,
    )
    print(f"{results.context['device']}, {library.backend}, {library.path}: {len(cases)} shapes, into {options.out}")
    for name, reason in missing.items():
        print(f"without {name}: {reason}")
    print("GB/s of the bytes that must move, median; in brackets the share of copy\n", flush=True)
    left_out = run(suite, cases, options.seconds, deadline)
    if left_out:
        results.context["left out"] = f"{left_out} shapes, for want of time"
        print(f"\n{results.context['left out']}", flush=True)
    results.save(options.out)
    return suite, suite.wrong


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    try:
        import torch
    except ImportError as error:
        print(f"peers.py: {sys.executable} has no PyTorch ({error})", file=sys.stderr)
        return 2
    torch.set_grad_enabled(False)
    try:
        library = open_library(options.library, ROOT, torch.cuda.is_available())
        if library.on_gpu:
            torch.cuda.init()  # before Kokkos: one context, which PyTorch made, and which outlives Kokkos
        atexit.register(library.finalize)  # however this ends; twice does no harm
        suite, wrong = measure_all(options, torch, library)
    except (OSError, ValueError) as error:
        print(f"peers.py: {error}", file=sys.stderr)
        return 2
    if library.on_gpu:
        torch.cuda.synchronize()
    library.finalize()
    if suite and not options.no_report:
        report.report(options.out)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
