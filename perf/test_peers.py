#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Checks what of peers.py needs neither PyTorch nor a GPU: statistics, results, turns, selection, the C interface.

With the library in the environment variable KOKKOSNN_PEERS_LIBRARY (one that computes on the host) it is called, too.
"""

import contextlib
import ctypes
import io
import json
import math
import os
import random
import re
import statistics
import tempfile
import unittest
import unittest.mock
from array import array
from pathlib import Path
from types import SimpleNamespace

import peers
import peers_problems
import peers_providers
import report
from report import Shape

SHAPE = Shape("marks", "softmax", "f32", "right", 4096, 1024)
CASE = peers.Case(SHAPE, 8192)


class Operators(unittest.TestCase):
    def test_each_of_the_library_is_measured_or_said_not_to_be(self):
        table = (Path(__file__).parent.parent / "include/KokkosNN/impl/operators.def").read_text()
        registered = re.findall(r"^KOKKOSNN_OPERATOR\((\w+),", table, re.MULTILINE)
        listed = peers_problems.OPERATORS + peers_problems.UNMEASURED + peers_problems.UNTUNED
        self.assertEqual(sorted(registered), sorted(listed))


class Statistics(unittest.TestCase):
    def test_quantiles_are_those_of_the_standard_library(self):
        random.seed(1)
        for count in (2, 5, 8, 101):
            samples = [random.random() for _ in range(count)]
            q1, median, q3 = statistics.quantiles(samples, n=4, method="inclusive")
            found = peers.summary(samples)
            self.assertAlmostEqual(found["q1_s"], q1)
            self.assertAlmostEqual(found["median_s"], median)
            self.assertAlmostEqual(found["q3_s"], q3)
            self.assertEqual((found["samples"], found["min_s"], found["max_s"]), (count, min(samples), max(samples)))

    def test_one_sample_is_all_of_them(self):
        self.assertEqual({v for k, v in peers.summary([2.5]).items() if k != "samples"}, {2.5})


class ResultsFile(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def test_report_reads_what_is_written(self):
        results = peers.Results({"device": "a device"})
        results.add(CASE, "torch", "eager", 123, [3.0, 1.0, 2.0])
        results.fail(CASE, "jax", "wrong result: row 0")
        results.save(self.folder)
        run = report.load(self.folder)
        (record,) = run.records
        self.assertEqual((record.shape, record.provider, record.plan, record.bytes), (SHAPE, "torch", "eager", 123))
        self.assertEqual((record.nominal_rows, record.samples, record.median_s), (8192, 3, 2.0))
        self.assertEqual((run.failures[0]["provider"], run.failures[0]["what"]), ("jax", "wrong result: row 0"))
        self.assertEqual(run.context, {"device": "a device"})

    def test_the_fields_are_those_of_kokkosnn_perf(self):
        # As perf_results.cpp writes them; results of an H200 are kept beside this file.
        (kept,) = (Path(__file__).parent / "results").glob("h200-2026-11-21/results.json")
        results = peers.Results({})
        results.add(CASE, "torch", "eager", 123, [1.0])
        written = json.loads(kept.read_text(encoding="utf-8"))
        self.assertEqual(set(results.records[0]), set(written["records"][0]))

    def test_saving_replaces_the_file_and_leaves_nothing_else(self):
        for provider in ("torch", "jax"):
            results = peers.Results({})
            results.add(CASE, provider, "", 1, [1.0])
            results.save(self.folder)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["results.json"])
        self.assertEqual(report.load(self.folder).records[0].provider, "jax")

    def test_a_run_is_continued(self):
        first = peers.Results({"command": "one"})
        first.add(CASE, "torch", "", 1, [1.0])
        first.save(self.folder)
        second = peers.Results({"command": "two"})
        self.assertEqual(second.resume(self.folder), {SHAPE})
        self.assertEqual(len(second.records), 1)
        self.assertIn("one", second.context["continues"])
        self.assertEqual(peers.Results({}).resume(self.folder / "elsewhere"), set())


class Clock:
    """A second passes at each sample."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Rounds(unittest.TestCase):
    def setUp(self):
        self.order, self.failures, self.clock = [], [], Clock()

    def sampler(self, name, fails_at=None):
        def sample():
            self.order.append(name)
            self.clock.now += 1
            if fails_at is not None and self.order.count(name) > fails_at:
                raise RuntimeError("broke\nin two lines")
            return float(self.order.count(name))

        return sample

    def measure(self, samplers, seconds):
        return peers.in_rounds(samplers, seconds, lambda *what: self.failures.append(what), self.clock)

    def turns(self):
        return [name for i, name in enumerate(self.order) if i == 0 or self.order[i - 1] != name]

    def test_all_take_turns_and_each_is_the_first_of_a_round_once(self):
        self.measure({name: self.sampler(name) for name in "abc"}, 0)
        self.assertEqual("".join(self.turns()), "abc" "bca" "cab" "abc" "bca")

    def test_the_first_sample_of_a_turn_is_thrown_away(self):
        samples = self.measure({"a": self.sampler("a"), "b": self.sampler("b")}, 0)
        each = 1 + peers.MIN_SAMPLES_A_ROUND
        self.assertEqual(self.order.count("a"), peers.ROUNDS * each)
        self.assertEqual(samples["a"], [float(i + 1) for i in range(peers.ROUNDS * each) if i % each])

    def test_the_time_is_shared_among_the_rounds(self):
        samples = self.measure({"a": self.sampler("a"), "b": self.sampler("b")}, 8.0 * peers.ROUNDS)
        self.assertEqual({len(taken) for taken in samples.values()}, {8 * peers.ROUNDS})

    def test_one_that_fails_is_reported_once_and_the_others_go_on(self):
        samples = self.measure({"a": self.sampler("a"), "b": self.sampler("b", 4), "c": self.sampler("c")}, 0)
        self.assertEqual(sorted(samples), ["a", "c"])
        self.assertEqual({len(taken) for taken in samples.values()}, {peers.ROUNDS * peers.MIN_SAMPLES_A_ROUND})
        self.assertEqual(self.failures, [("b", "RuntimeError: broke")])

    def test_none_is_no_error(self):
        self.assertEqual(self.measure({}, 1), {})


class FakeProblem:
    """Right results are the string "right"."""

    bytes, shape = 1000, SHAPE

    def __init__(self, *_arguments):
        pass

    def poison_y(self):
        pass

    def difference(self, values, tolerance, slack):
        return "" if values == "right" else f"row 0: {values}"


class FakeBench:
    gpu, torch, device = False, None, "cpu"

    def fence(self):
        pass

    def wake(self):
        pass

    def adjust(self, call):
        pass

    def seconds(self, call):
        call.run()
        return 1e-3


class FakeProvider(peers_providers.Provider):
    def __init__(self, name, values="right", error=None):
        self.name, self.values, self.error, self.runs, self.released = name, values, error, 0, 0

    def prepare(self, problem, bench):
        if self.error:
            raise self.error
        return peers_providers.Call(self.run, "plan", result=lambda given: given, release=self.release)

    def run(self):
        self.runs += 1
        return self.values

    def release(self):
        self.released += 1


class Run(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def suite(self, *providers, problem_of=FakeProblem):
        return peers.Suite(FakeBench(), list(providers), problem_of, {"f32": [1e-5, 0]}, peers.Results({}), self.folder)

    def run_quietly(self, function, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            return function(*arguments), out.getvalue(), err.getvalue()

    def test_wrong_results_and_errors_have_no_time_and_stop_nobody(self):
        good, wrong = FakeProvider("KokkosNN"), FakeProvider("torch", "wrong")
        suite = self.suite(wrong, FakeProvider("jax", error=RuntimeError("no memory")), good)
        _, line, _ = self.run_quietly(suite.measure, CASE, 0)
        run = report.load(self.folder)
        self.assertEqual([record.provider for record in run.records], ["KokkosNN"])
        self.assertEqual({f["provider"]: f["what"] for f in run.failures}["torch"], "wrong result: row 0: wrong")
        self.assertEqual({f["provider"]: f["what"] for f in run.failures}["jax"], "RuntimeError: no memory")
        self.assertEqual((wrong.runs, wrong.released, good.released, suite.wrong), (1, 1, 1, 0))
        self.assertIn("torch FAILED (wrong result: row 0: wrong)", line)
        self.assertEqual(line.count("\n"), 1)

    def test_a_wrong_result_of_ours_counts(self):
        suite = self.suite(FakeProvider("KokkosNN", "wrong"))
        self.run_quietly(suite.measure, CASE, 0)
        self.assertEqual(suite.wrong, 1)

    def test_results_are_saved_after_every_shape_and_the_deadline_stops_before_the_next(self):
        deadline = SimpleNamespace(passed=False)
        suite = self.suite(FakeProvider("KokkosNN"))
        cases = [peers.Case(SHAPE._replace(cols=cols), 4096) for cols in (1, 2, 3)]
        saved = []

        def measure(case, seconds):
            suite.__class__.measure(suite, case, seconds)
            saved.append(len(report.load(self.folder).records))
            deadline.passed = len(saved) == 2

        suite.measure = measure
        left_out, _, _ = self.run_quietly(peers.run, suite, cases, 0, deadline)
        self.assertEqual((saved, left_out), ([1, 2], 1))

    def test_a_shape_that_cannot_be_made_is_told_and_passed_over(self):
        def too_large(_shape):
            raise MemoryError("too large")

        suite = self.suite(FakeProvider("KokkosNN"), problem_of=too_large)
        left_out, _, err = self.run_quietly(peers.run, suite, [CASE], 0, peers.Deadline(None))
        self.assertEqual(left_out, 0)
        self.assertIn("4096 x 1024 was given up: MemoryError: too large", err)

    def test_progress_is_a_share_of_copy_or_microseconds(self):
        medians = {"copy": 1e-3, "torch": 2e-3}
        line = peers.progress(CASE, 10**9, medians, [])
        self.assertIn("4096 (of 8192) x 1024", line)
        self.assertIn("copy 1000  torch 500.0 (0.50)", line)
        small = peers.Case(SHAPE._replace(sweep=report.SMALL_CALLS), 4096)
        self.assertIn("torch 2000.00 us", peers.progress(small, 10**9, medians, []))


class Selection(unittest.TestCase):
    def providers(self):
        return [FakeProvider(name) for name in ("copy", "KokkosNN", "torch", "jax")]

    def names(self, chosen):
        return [provider.name for provider in chosen]

    def test_providers_come_in_their_own_order(self):
        self.assertEqual(self.names(peers_providers.select(self.providers(), ["torch", "copy"])), ["copy", "torch"])
        self.assertEqual(len(peers_providers.select(self.providers(), None)), 4)

    def test_an_unknown_one_is_an_error_that_names_all(self):
        with self.assertRaisesRegex(ValueError, "no provider tensorflow; there are copy, KokkosNN, torch, jax"):
            peers_providers.select(self.providers(), ["tensorflow", "torch"])

    def test_whoever_is_named_is_measured_on_the_sweeps_too(self):
        providers = self.providers()
        providers[1].by_default = False
        self.assertTrue(peers_providers.select(providers, ["KokkosNN"])[0].by_default)

    def test_the_package_is_measured_on_small_calls_where_it_can_be_imported(self):
        package = peers_providers.Package("numpy")
        self.assertEqual((package.name, package.by_default), ("KokkosNN_numpy", False))
        self.assertTrue(package.serves(SHAPE) and not package.serves(SHAPE._replace(layout="left")))
        self.assertFalse(package.serves(SHAPE._replace(type="bf16")))
        self.assertEqual(package.missing(SimpleNamespace(gpu=True)), "NumPy's arrays are on the host")
        absent = {"kokkosnn": None}
        with unittest.mock.patch.dict("sys.modules", absent):
            self.assertIn("kokkosnn", package.missing(SimpleNamespace(gpu=False)))

    def test_copy_is_always_there(self):
        self.assertEqual(peers.parse(["--providers", "torch,jax"]).providers, ["copy", "torch", "jax"])
        self.assertIsNone(peers.parse([]).providers)

    def test_one_that_is_missing_or_breaks_on_import_is_named_with_its_reason(self):
        good, missing, broken = self.providers()[:3]
        missing.missing = lambda bench: "not installed\nand more"
        broken.missing = lambda bench: 1 / 0
        there, reasons = peers.present([good, missing, broken], None)
        self.assertEqual(self.names(there), ["copy"])
        self.assertEqual(reasons["KokkosNN"], "not installed")
        self.assertIn("ZeroDivisionError", reasons["torch"])

    def test_cases_by_sweep_pattern_and_kind(self):
        entries = [
            dict(sweep=sweep, op="softmax", type=kind, layout="right", rows=8, nominal_rows=9, cols=cols)
            for sweep in ("marks", "types")
            for kind in ("f32", "f16", "f32>bf16")
            for cols in (1, 2, 3, 4, 5)
        ]
        cases = peers.cases_of(entries)
        self.assertEqual({case.shape.type for case in cases}, {"f32", "f16"})
        self.assertEqual(cases[0], peers.Case(Shape("marks", "softmax", "f32", "right", 8, 1), 9))
        marks = peers.select_cases(cases, ["marks"], "", False)
        self.assertEqual((len(marks), {case.shape.sweep for case in marks}), (10, {"marks"}))
        self.assertEqual(len(peers.select_cases(cases, ["marks", "types"], "f16 8 x [45]", False)), 4)
        quick = peers.select_cases(cases, ["marks"], "", True)
        self.assertEqual([case.shape.cols for case in quick], [1, 3, 5, 1, 3, 5])
        with self.assertRaisesRegex(ValueError, "no sweep 'mark'; there are 'small calls', 'marks', 'types'"):
            peers.select_cases(cases, ["mark"], "", False)

    def test_small_calls_are_cases_where_they_are_asked_for(self):
        self.assertEqual(len(peers.small_cases(peers.parse([]))), len(peers.SMALL_SHAPES))
        self.assertEqual(peers.small_cases(peers.parse(["--sweep", "cliffs"])), [])

    def test_without_a_library_the_command_that_builds_it_is_told(self):
        with tempfile.TemporaryDirectory() as folder:
            for gpu, option in ((True, "Kokkos_ENABLE_CUDA=ON"), (False, "Kokkos_ENABLE_OPENMP=ON")):
                command = f"KokkosNN_ENABLE_PERF=ON .*{option}.*--target kokkosnn_peers"
                with self.assertRaisesRegex(FileNotFoundError, command):
                    peers_providers.open_library(None, Path(folder), gpu)

    def test_the_newest_library_of_the_usual_places_comes_first(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [
                Path(folder) / place / "perf/libkokkosnn_peers.so" for place in ("build/omp", "build", "build-cuda")
            ]
            for age, path in enumerate(paths):
                path.parent.mkdir(parents=True)
                path.touch()
                os.utime(path, (1000 - age, 1000 - age))
            self.assertEqual(peers_providers.library_candidates(Path(folder)), paths)


class FakeFunction:
    def __init__(self, name, calls):
        self.name, self.calls, self.gives = name, calls, None

    def __call__(self, *arguments):
        # What ctypes would do with the types that were declared; it refuses what does not fit.
        converted = [kind.from_param(value) for kind, value in zip(self.argtypes, arguments)]
        assert len(converted) == len(arguments) == len(self.argtypes), self.name
        self.calls.append((self.name, arguments))
        return self.gives


class Marshalling(unittest.TestCase):
    def setUp(self):
        self.calls, self.functions = [], {}
        self.library = peers_providers.Library(Path("lib.so"), load=lambda path: self)

    def __getattr__(self, name):
        if not name.startswith("kokkosnn_peers_"):
            raise AttributeError(name)
        return self.functions.setdefault(name, FakeFunction(name, self.calls))

    def test_names_sizes_and_addresses_arrive_in_order(self):
        shape = Shape("marks", "log_softmax", "bf16", "left", 1 << 33, 7)
        handle = self.library.prepare(shape, dict(y=0x7F00_0000_2000, x=0x7F00_0000_1000), 0x55)
        name, arguments = self.calls[-1]
        self.assertEqual(name, "kokkosnn_peers_prepare")
        self.assertEqual(arguments[:5], (b"log_softmax", b"bf16", b"left", 1 << 33, 7))
        tensors = {name: getattr(arguments[5], name) for name in peers_problems.TENSORS}
        given = {name: address for name, address in tensors.items() if address is not None}
        self.assertEqual(given, dict(x=0x7F00_0000_1000, y=0x7F00_0000_2000))
        self.assertEqual(arguments[6], 0x55)
        self.assertIsInstance(handle, ctypes.c_void_p)

    def test_addresses_are_not_cut_to_an_int(self):
        # Without argtypes ctypes passes a Python int as a C int.
        number, address = ctypes.c_int64, ctypes.c_void_p
        prepare, offsets = (self.functions[f"kokkosnn_peers_{name}"].argtypes for name in ("prepare", "offsets"))
        self.assertEqual(prepare[3:7], [number, number, ctypes.POINTER(peers_providers.Tensors), address])
        self.assertEqual(offsets[1:], [number, number, address])
        self.assertEqual({kind for _, kind in peers_providers.Tensors._fields_}, {address})
        for name in ("plan", "run_call", "run_plan", "release"):
            self.assertEqual(self.functions[f"kokkosnn_peers_{name}"].argtypes, [ctypes.c_void_p])

    def test_an_error_text_is_raised(self):
        self.functions["kokkosnn_peers_prepare"].gives = b"softmax: no such thing"
        with self.assertRaisesRegex(RuntimeError, "softmax: no such thing"):
            self.library.prepare(SHAPE, {}, 0)
        self.functions["kokkosnn_peers_run_plan"].gives = b"it broke"
        with self.assertRaisesRegex(RuntimeError, "it broke"):
            self.library.runner(ctypes.c_void_p(1), planned=True)()

    def test_plan_and_call_are_two_functions(self):
        for planned, name in ((True, "run_plan"), (False, "run_call")):
            self.library.runner(ctypes.c_void_p(1), planned)()
            self.assertEqual(self.calls[-1][0], f"kokkosnn_peers_{name}")

    def test_the_description_is_json(self):
        self.functions["kokkosnn_peers_describe"].gives = b'{"mask_scale": 0.5}'
        self.assertEqual(self.library.initialize(2), {"mask_scale": 0.5})
        self.assertEqual(self.library.mask_scale, 0.5)
        self.assertEqual(self.calls[0], ("kokkosnn_peers_initialize", (2,)))


class Operators(unittest.TestCase):
    def served(self, provider, **differs):
        return provider.serves(SHAPE._replace(**differs))

    def test_the_copy_the_public_functions_and_pytorch_serve_all(self):
        for provider in (peers_providers.Copy(), peers_providers.KokkosNN(None, False), peers_providers.Torch()):
            for op in peers_problems.OPERATORS:
                self.assertTrue(self.served(provider, op=op), (provider.name, op))
            for layout in peers_problems.RAGGED:
                self.assertTrue(self.served(provider, layout=layout), (provider.name, layout))
            self.assertFalse(self.served(provider, op="masked_softmax_backward"))

    def test_others_serve_what_they_have(self):
        planned, jax, liger = peers_providers.KokkosNN(None, True), peers_providers.Jax(), peers_providers.Liger()
        cross_entropy = "cross_entropy_with_gradient"
        self.assertEqual([self.served(p, op="softmax_backward") for p in (planned, jax, liger)], [True, False, False])
        self.assertEqual([self.served(p, op=cross_entropy) for p in (planned, jax, liger)], [False, False, True])
        self.assertEqual([self.served(p, layout="ragged") for p in (planned, jax, liger)], [False] * 3)


LIBRARY = os.environ.get("KOKKOSNN_PEERS_LIBRARY")


def load_tests(loader, standard, _pattern):
    """Without a library its test is left out, not skipped: ctest has it as an entry of its own."""
    if LIBRARY:
        return loader.loadTestsFromTestCase(RealLibrary)
    return unittest.TestSuite(t for t in standard if "RealLibrary" not in str(t))


class RealLibrary(unittest.TestCase):
    """One process starts Kokkos once, so this is one test."""

    def prepared(self, op, layout, rows, cols, **arrays):
        """A handle on arrays, which must outlive it."""
        self.kept = arrays
        addresses = {name: values.buffer_info()[0] for name, values in arrays.items()}
        handle = self.library.prepare(Shape("", op, "f64", layout, rows, cols), addresses, 0)
        self.addCleanup(self.library.release, handle)
        return handle

    def run_both(self, handle, y, start, check):
        """The public function and the plan object, each on what y was at the start."""
        for planned in (False, True):
            y[:] = start
            self.library.runner(handle, planned)()
            check()

    def check_forward(self, op, layout, rows, cols):
        values = noise(rows, cols)
        flat = values if layout == "right" else zip(*values)
        x = array("d", (value for line in flat for value in line))
        y = array("d", [math.nan] * (rows if op == "logsumexp" else rows * cols))
        handle = self.prepared(op, layout, rows, cols, x=x, y=y)
        self.assertIn(f"KokkosNN::{op}[", self.library.plan(handle))

        def check():
            for r, row in enumerate(values):
                total = math.fsum(math.exp(value) for value in row)
                if op == "logsumexp":
                    self.assertAlmostEqual(y[r], math.log(total), delta=1e-13)
                for c, value in enumerate(row if op != "logsumexp" else []):
                    got = y[r * cols + c if layout == "right" else c * rows + r]
                    want = math.exp(value) / total if op == "softmax" else value - math.log(total)
                    self.assertAlmostEqual(got, want, delta=1e-13)

        self.run_both(handle, y, y[:], check)

    def check_gradient(self, op, rows, cols):
        x, dy = noise(rows, cols), noise(rows, cols)
        y, dx = joined(map(softmax, x)), array("d", [math.nan] * (rows * cols))
        if op == "log_softmax_backward":
            y = array("d", map(math.log, y))
        handle = self.prepared(op, "right", rows, cols, x=y, dy=joined(dy), y=dx)

        def check():
            for r in range(rows):
                y_row = y[r * cols : (r + 1) * cols]
                if op == "softmax_backward":
                    total = math.fsum(a * b for a, b in zip(y_row, dy[r]))
                    want = [a * (b - total) for a, b in zip(y_row, dy[r])]
                else:
                    want = [b - math.exp(a) * math.fsum(dy[r]) for a, b in zip(y_row, dy[r])]
                self.assert_close(dx[r * cols : (r + 1) * cols], want)

        self.run_both(handle, dx, dx[:], check)

    def check_cross_entropy(self, rows, cols):
        logits, labels = noise(rows, cols), array("q", [r * 7 % cols for r in range(rows)])
        y, loss = joined(logits), array("d", [math.nan])
        handle = self.prepared("cross_entropy_with_gradient", "right", rows, cols, labels=labels, y=y, loss=loss)
        self.library.runner(handle, False)()
        losses = [-math.log(softmax(row)[label]) for row, label in zip(logits, labels)]
        self.assertAlmostEqual(loss[0], math.fsum(losses) / rows, delta=1e-13)
        want = [[(p - (c == label)) / rows for c, p in enumerate(softmax(x))] for x, label in zip(logits, labels)]
        self.assert_close(y, joined(want))
        with self.assertRaisesRegex(RuntimeError, "there is no plan object of KokkosNN::cross_entropy"):
            self.library.runner(handle, True)()

    def check_causal(self, heads, cols):
        x, rows, scale = noise(heads * cols, cols), heads * cols, self.library.mask_scale
        y = array("d", [math.nan] * (rows * cols))
        handle = self.prepared("masked_softmax", "right", rows, cols, x=joined(x), y=y)
        seen = [[scale * value for value in row[: r % cols + 1]] for r, row in enumerate(x)]
        want = joined(softmax(row) + [0.0] * (cols - len(row)) for row in seen)
        self.run_both(handle, y, y[:], lambda: self.assert_close(y, want))

    def check_ragged(self, layout, rows, cols):
        offsets = array("i", [-1] * (rows + 1))
        self.library.offsets(Shape("", "softmax", "f64", layout, rows, cols), offsets.buffer_info()[0])
        lengths = [end - begin for begin, end in zip(offsets, offsets[1:])]
        self.assertEqual(offsets[0], 0)
        self.assertEqual(sum(lengths), rows * cols + (rows if layout == "skewed" else 0))
        longest = dict(ragged=2 * cols, even=cols, skewed=cols + rows)[layout]
        self.assertTrue(all(0 <= length <= longest for length in lengths), lengths)
        if layout == "skewed":
            self.assertEqual(lengths.count(longest), 1)
        x = [noise(1, length)[0] for length in lengths]
        y = array("d", [math.nan] * sum(lengths))
        handle = self.prepared("softmax", layout, rows, cols, x=joined(x), offsets=offsets, y=y)
        self.library.runner(handle, False)()
        self.assert_close(y, joined(map(softmax, x)))

    def assert_close(self, got, want):
        self.assertEqual(len(got), len(want))
        self.assertTrue(all(abs(a - b) <= 1e-13 for a, b in zip(got, want)))

    def check_errors(self):
        even = SHAPE._replace(layout="even")
        for shape, message in (
            (SHAPE._replace(op="argmax"), "no operator argmax"),
            (SHAPE._replace(type="i8"), "no element type i8"),
            (SHAPE._replace(layout="up"), "no layout up"),
            (SHAPE._replace(op="softmax_backward", layout="left"), "no softmax_backward for layout left"),
            (even._replace(op="log_softmax"), "no log_softmax for layout even"),
            (SHAPE._replace(op="masked_softmax", rows=5), "5 rows are no heads of 1024"),
        ):
            with self.assertRaisesRegex(RuntimeError, message):
                self.library.prepare(shape, {}, 0)
        with self.assertRaisesRegex(RuntimeError, "layout right has no offsets"):
            self.library.offsets(SHAPE, 0)
        with self.assertRaisesRegex(RuntimeError, "once in a process"):
            self.library.initialize(-1)

    def check_description(self, described):
        cases = peers.cases_of(described["shapes"])
        marks = [case for case in cases if case.shape.sweep == "marks"]
        self.assertIn(("f64", 16384), [(case.shape.type, case.shape.cols) for case in marks])
        self.assertEqual({case.shape.op for case in cases}, set(peers_problems.OPERATORS))
        self.assertTrue(all(peers_providers.Torch().serves(case.shape) for case in cases))
        self.assertIn("f32", described["tolerances"])
        self.assertIn("kokkos_configuration", described["context"])
        self.assertGreaterEqual(described["cold_bytes"], 1 << 28)
        self.assertGreater(self.library.mask_scale, 0)

    def test_it_computes_on_memory_of_python(self):
        self.library = peers_providers.Library(Path(LIBRARY))
        self.assertFalse(self.library.on_gpu)
        with self.assertRaisesRegex(RuntimeError, "call kokkosnn_peers_initialize first"):
            self.library.prepare(SHAPE, {}, 0)
        described = self.library.initialize(-1)
        self.addCleanup(self.library.finalize)
        sizes = ((1, 1), (3, 50), (7, 1025))
        checks = [
            *(
                (self.check_forward, op, layout, *size)
                for op in peers_problems.FORWARD
                for layout in ("right", "left")
                for size in sizes
            ),
            *((self.check_gradient, op, *size) for op in peers_problems.GRADIENTS for size in sizes),
            *((self.check_cross_entropy, *size) for size in sizes),
            *((self.check_causal, *size) for size in ((1, 1), (3, 50))),
            *((self.check_ragged, layout, *size) for layout in peers_problems.RAGGED for size in ((7, 3), (100, 32))),
        ]
        for check, *arguments in checks:
            with self.subTest(check=check.__name__, arguments=arguments):
                check(*arguments)
        self.check_errors()
        self.check_description(described)


def noise(rows, cols):
    random.seed(cols)
    return [[random.uniform(-4, 4) for _ in range(cols)] for _ in range(rows)]


def softmax(row):
    exps = [math.exp(value) for value in row]
    return [value / math.fsum(exps) for value in exps]


def joined(rows):
    return array("d", (value for row in rows for value in row))


if __name__ == "__main__":
    unittest.main()
