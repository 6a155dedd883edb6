#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs PyTorch's form of every operator on the CPU, against float64, and shows the check what is wrong."""

import ctypes
import unittest
from types import SimpleNamespace

try:
    import torch
except ImportError as error:
    print(f"SKIPPED: PyTorch's forms of the operators need PyTorch ({error})")
    raise SystemExit(0)

import peers
import peers_problems
import peers_providers
from report import Shape

TOLERANCES = {"f64": (1e-12, 1e-300), "f32": (2e-5, 1e-30), "bf16": (2e-2, 1e-30)}
BENCH = SimpleNamespace(torch=torch)


class FakeLibrary:
    """Rows of 0, 2 N, 0, 2 N, ... elements."""

    mask_scale = 0.125

    @staticmethod
    def offsets(shape, address):
        begins = (ctypes.c_int32 * (shape.rows + 1)).from_address(address)
        for row in range(shape.rows + 1):
            begins[row] = row // 2 * 2 * shape.cols


def problem_of(op, kind="f32", layout="right", rows=12, cols=6):
    return peers_problems.make_problem(torch, "cpu", Shape("", op, kind, layout, rows, cols), FakeLibrary())


def problems():
    for op in peers_problems.FORWARD + peers_problems.GRADIENTS:
        for layout in peers_problems.MATRICES:
            yield op, layout
    yield from ((peers_problems.CROSS_ENTROPY, "right"), (peers_problems.CAUSAL, "right"), ("softmax", "ragged"))


class Forms(unittest.TestCase):
    def setUp(self):
        torch.set_grad_enabled(False)  # as peers.py does
        self.addCleanup(torch.set_grad_enabled, True)

    def run_form(self, problem):
        problem.poison_y()
        call = peers_providers.Torch().prepare(problem, BENCH)
        return call.result(call.run()), call.slack

    def test_every_form_is_right(self):
        for kind, tolerance in TOLERANCES.items():
            for op, layout in problems():
                for rows, cols in ((12, 6), (64, 64), (200, 100)):
                    with self.subTest(op=op, type=kind, layout=layout, rows=rows, cols=cols):
                        problem = problem_of(op, kind, layout, rows, cols)
                        values, slack = self.run_form(problem)
                        self.assertEqual(problem.difference(values, tolerance, slack), "")

    def test_the_inputs_are_left_as_they_were(self):
        for op, layout in problems():
            problem = problem_of(op, layout=layout)
            before = problem.x.clone()
            self.run_form(problem)
            self.assertTrue(torch.equal(problem.x, before), op)


class Check(unittest.TestCase):
    def right(self, problem):
        with torch.no_grad():
            call = peers_providers.Torch().prepare(problem, BENCH)
            return call.result(call.run())

    def test_one_wrong_element_or_nothing_written_is_found(self):
        for op, layout in problems():
            with self.subTest(op=op, layout=layout):
                problem = problem_of(op, layout=layout)
                values = self.right(problem)
                for wrong in (lambda value: value * 1.5 + 1e-3, lambda value: float("nan")):
                    broken, loss = (
                        (values[0].clone(), values[1]) if isinstance(values, tuple) else (values.clone(), None)
                    )
                    element = broken.view(-1)[-1:]
                    element.fill_(wrong(float(element)))
                    given = (broken, loss) if loss is not None else broken
                    self.assertRegex(problem.difference(given, TOLERANCES["f32"], 2), "row .*, expected")
                problem.poison_y()
                self.assertNotEqual(problem.difference(problem.result, TOLERANCES["f32"], 2), "")

    def test_a_masked_element_must_be_zero(self):
        problem = problem_of(peers_problems.CAUSAL)
        values = self.right(problem)
        values[0, -1] = 0.5
        self.assertIn("row 0, column 5: 0.5, expected 0", problem.difference(values, TOLERANCES["f32"], 2))

    def test_a_wrong_loss_is_found(self):
        problem = problem_of(peers_problems.CROSS_ENTROPY)
        gradient, loss = self.right(problem)
        for wrong in (loss * 1.01, loss * float("nan")):
            self.assertIn("loss ", problem.difference((gradient, wrong), TOLERANCES["f32"], 2))

    def test_a_result_of_another_shape_or_type_is_named(self):
        problem = problem_of("softmax")
        for values in (problem.y[:5], problem.y.double()):
            self.assertIn("expected torch.float32 (12, 6)", problem.difference(values, TOLERANCES["f32"], 2))


class InPlace(unittest.TestCase):
    def test_liger_gets_logits_that_want_a_gradient_and_leaves_it_over_them(self):
        problem = problem_of(peers_problems.CROSS_ENTROPY)

        def over_the_logits(logits, labels):
            self.assertTrue(logits.requires_grad and torch.is_grad_enabled())
            loss = torch.nn.functional.cross_entropy(logits, labels)
            logits.data.copy_(torch.autograd.grad(loss, logits)[0])
            return loss

        liger = peers_providers.Liger()
        liger.cross_entropy = over_the_logits
        call = liger.prepare(problem, BENCH)
        for _ in range(2):
            call.restore()
            self.assertEqual(problem.difference(call.result(call.run()), TOLERANCES["f32"], call.slack), "")

    def test_logits_are_restored_before_each_timed_call(self):
        problem = problem_of(peers_problems.CROSS_ENTROPY)
        seen = []

        def overwrite():
            seen.append(torch.equal(problem.y, problem.x))
            problem.y.zero_()

        call = peers_providers.Call(overwrite, "", result=lambda _: problem.result, restore=problem.restore)
        bench = peers.Bench(torch, False, 0)
        for _ in range(3):
            bench.seconds(call)
        self.assertEqual(seen, [True] * 3)


class Bytes(unittest.TestCase):
    def test_they_are_those_of_the_benchmark(self):
        elements = 12 * 6
        for op, count in (
            ("softmax", 2 * elements),
            ("logsumexp", elements + 12),
            ("softmax_backward", 3 * elements),
            ("log_softmax_backward", 3 * elements),
            ("cross_entropy_with_gradient", 2 * elements),
            ("masked_softmax", 2 * elements),
        ):
            self.assertEqual(problem_of(op).bytes, 4 * count, op)
            self.assertEqual(problem_of(op, "bf16").bytes, 2 * count, op)
        self.assertEqual(problem_of("softmax", "bf16", "ragged").bytes, 2 * 2 * elements + 4 * 13)

    def test_addresses_are_those_of_the_tensors_that_there_are(self):
        problem = problem_of("softmax_backward")
        self.assertEqual(
            problem.addresses, dict(x=problem.x.data_ptr(), dy=problem.dy.data_ptr(), y=problem.y.data_ptr())
        )
        self.assertEqual(set(problem_of("cross_entropy_with_gradient").addresses), {"x", "labels", "y", "loss"})
        self.assertEqual(set(problem_of("softmax", layout="skewed").addresses), {"x", "offsets", "y"})


if __name__ == "__main__":
    unittest.main()
