#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Runs every candidate of the Triton peers through Triton's interpreter, on the CPU, against float64; and compiles
them, for the interpreter takes more than the compiler does. No GPU is needed.

With the argument `compile` this file is the process that compiles: one process can't do both.
"""

import os
import subprocess
import sys
import unittest

COMPILING = sys.argv[1:] == ["compile"]
os.environ["TRITON_INTERPRET"] = "0" if COMPILING else "1"  # before Triton is imported

try:
    import numpy
    import torch
    import triton

    import peers_triton

    if not COMPILING:
        int(numpy.zeros(1))  # Triton 3.6's interpreter does this, newer versions of NumPy do not
except (ImportError, TypeError) as error:
    print(f"SKIPPED: the Triton peers need PyTorch, Triton and a NumPy that Triton's interpreter can use ({error})")
    raise SystemExit(0)

SHAPES = [(7, 5), (33, 100), (3, 1025), (2, 2048)]


def expected(op, x):
    x = x.double()
    top = x.amax(1, keepdim=True)
    total = (x - top).exp().sum(1, keepdim=True)
    if op == "softmax":
        return (x - top).exp() / total
    return x - top - total.log() if op == "log_softmax" else (top + total.log()).squeeze(1)


def task_of(op, layout, rows, cols, dtype=torch.float32):
    torch.manual_seed(rows * cols)
    x = (torch.rand((rows, cols) if layout == "right" else (cols, rows)) * 8 - 4).to(dtype)
    y = torch.full((rows,) if op == "logsumexp" else x.shape, float("nan"), dtype=dtype)
    return peers_triton.Task(op, layout, rows, cols, x, y)


class Kernels(unittest.TestCase):
    def check_candidates(self, form, task, tolerance=2e-6):
        matrix = (lambda t: t) if task.layout == "right" or task.op == "logsumexp" else torch.t
        want = expected(task.op, task.x if task.layout == "right" else task.x.t())
        labels = []
        for label, launch in form.candidates(task):
            task.y.fill_(float("nan"))
            launch()
            torch.testing.assert_close(matrix(task.y).double(), want, rtol=tolerance, atol=tolerance, msg=label)
            labels.append(label)
        self.assertTrue(labels)
        self.assertEqual(len(labels), len(set(labels)))

    def test_every_form_and_operator_is_right_along_rows(self):
        for name, form in peers_triton.FORMS.items():
            for op in peers_triton.OPS:
                for rows, cols in SHAPES:
                    with self.subTest(form=name, op=op, rows=rows, cols=cols):
                        self.check_candidates(form, task_of(op, "right", rows, cols))

    def test_the_tiled_form_is_right_across_rows(self):
        for op in peers_triton.OPS:
            for rows, cols in [(70, 40), (300, 17)]:
                with self.subTest(op=op, rows=rows, cols=cols):
                    self.check_candidates(peers_triton.FORMS["triton_tiled"], task_of(op, "left", rows, cols))

    def test_double_is_accumulated_in_double(self):
        for name, form in peers_triton.FORMS.items():
            with self.subTest(form=name):
                self.check_candidates(form, task_of("softmax", "right", 5, 300, torch.float64), tolerance=1e-13)

    def test_halves_are_accumulated_in_float(self):
        for dtype, tolerance in ((torch.float16, 1e-3), (torch.bfloat16, 8e-3)):
            with self.subTest(dtype=dtype):
                self.check_candidates(
                    peers_triton.FORMS["triton_tiled"], task_of("softmax", "right", 3, 1500, dtype), tolerance
                )


class Compiler:
    """In place of a kernel: compiles what would be launched, for one target."""

    TYPES = {torch.float32: "*fp32", torch.float64: "*fp64", torch.float16: "*fp16", torch.bfloat16: "*bf16"}

    def __init__(self, kernel, target):
        self.kernel, self.target = kernel, target
        self.compiled = 0

    def __getitem__(self, grid):
        return self.compile

    def compile(self, *arguments, num_warps, **constants):
        names = self.kernel.arg_names
        signature = {n: self.TYPES[a.dtype] if torch.is_tensor(a) else "i32" for n, a in zip(names, arguments)}
        signature.update({name: "constexpr" for name in constants})
        places = {(names.index(name),): value for name, value in constants.items()}
        source = triton.compiler.ASTSource(self.kernel, signature, places)
        triton.compile(source, target=self.target, options=dict(num_warps=num_warps))
        self.compiled += 1


def compile_all():
    """Every candidate of some tasks, for an H100 or H200; prints how many kernels that were."""
    from triton.backends.compiler import GPUTarget

    kernels = ("row_kernel", "persistent_kernel", "tiled_kernel")
    compilers = [Compiler(getattr(peers_triton, name), GPUTarget("cuda", 90, 32)) for name in kernels]
    for name, compiler in zip(kernels, compilers):
        setattr(peers_triton, name, compiler)
    peers_triton.resident_programs = lambda compiled, warps: 1
    tasks = [(op, layout, torch.float32) for op in peers_triton.OPS for layout in ("right", "left")]
    tasks += [("softmax", "right", dtype) for dtype in (torch.float64, torch.float16, torch.bfloat16)]
    for op, layout, dtype in tasks:
        for form in peers_triton.FORMS.values():
            if form.serves(layout, 4, 1500):
                for _, launch in form.candidates(task_of(op, layout, 4, 1500, dtype)):
                    launch()
    print(*(f"{name} {compiler.compiled}" for name, compiler in zip(kernels, compilers)))


class Compilation(unittest.TestCase):
    def test_every_form_operator_and_type_compiles(self):
        process = subprocess.run([sys.executable, "-B", __file__, "compile"], capture_output=True, text=True)
        self.assertEqual(process.returncode, 0, process.stderr[-2000:])
        counts = process.stdout.split()
        self.assertEqual(counts[0::2], ["row_kernel", "persistent_kernel", "tiled_kernel"])
        self.assertTrue(all(int(count) >= 9 for count in counts[1::2]), process.stdout)


class Selection(unittest.TestCase):
    def test_a_form_of_whole_rows_serves_neither_wide_nor_strided_ones(self):
        form = peers_triton.FORMS["triton_row"]
        self.assertTrue(form.serves("right", 10, peers_triton.WIDEST_ROW))
        self.assertFalse(form.serves("right", 10, peers_triton.WIDEST_ROW + 1))
        self.assertFalse(form.serves("left", 10, 64))
        self.assertTrue(peers_triton.FORMS["triton_tiled"].serves("left", 10, 1 << 20))

    def test_no_form_serves_beyond_32_bit_offsets(self):
        for form in peers_triton.FORMS.values():
            self.assertFalse(form.serves("right", 1 << 21, 1 << 10))

    def test_a_program_has_8_to_32_elements_a_thread_where_32_warps_allow_it(self):
        self.assertEqual(peers_triton.warps_for(1024), [1, 4])
        self.assertEqual(peers_triton.warps_for(8192), [8, 32])
        self.assertEqual(peers_triton.warps_for(65536), [32])
        self.assertEqual(peers_triton.warps_for(16), [1])


if __name__ == "__main__":
    compile_all() if COMPILING else unittest.main()
