#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Measures what a small call of the Python package costs on NumPy's arrays: microseconds, nothing but NumPy needed.

    python_call.py [--rows 4] [--cols 8]      with kokkosnn installed, or PYTHONPATH=<build>/python

Each line has the least and the median of many repetitions, of which the least is the call's own cost where other
programs share the machine. The lines below the first two are parts of them. peers.py measures the same call beside
PyTorch's (KokkosNN_numpy and KokkosNN_torch among the small calls).
"""

import argparse
import statistics
import timeit

import kokkosnn
import numpy
from kokkosnn import _core
from kokkosnn._arrays import HOST

REPETITIONS = 25
SECONDS = 0.02  # of a repetition


def microseconds(call):
    """The least and the median time of a call."""
    timer = timeit.Timer(call)
    number = max(1, round(SECONDS / (timer.timeit(100) / 100)))
    times = [1e6 * seconds / number for seconds in timer.repeat(REPETITIONS, number)]
    return min(times), statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4)
    parser.add_argument("--cols", type=int, default=8)
    options = parser.parse_args()
    x = numpy.random.default_rng(0).standard_normal((options.rows, options.cols), dtype=numpy.float32)
    out, none = numpy.empty_like(x), x[:0]
    weight = numpy.ones(options.cols, numpy.float32)
    members = {"axis": -1, "scale": 1.0, "masked_row": 0, "determinism": 0}
    calls = {
        "softmax(x)": lambda: kokkosnn.softmax(x),
        "softmax(x, out=out)": lambda: kokkosnn.softmax(x, out=out),
        "- the extension module's function": lambda: _core.softmax(HOST, x, out, members),
        "- the same without rows": lambda: _core.softmax(HOST, none, none, members),
        "- numpy.empty": lambda: numpy.empty(x.shape, x.dtype),
        "rms_norm(x, weight)": lambda: kokkosnn.rms_norm(x, weight),
        "masked_softmax(x, Mask(causal=True))": lambda: kokkosnn.masked_softmax(x, kokkosnn.Mask(causal=True)),
    }
    print(f"float32 {options.rows} x {options.cols}, {kokkosnn.configuration()}")
    print(f"{'call':<38} {'least':>7} {'median':>7} us")
    for name, call in calls.items():
        print(f"{name:<38} {'{:7.2f} {:7.2f}'.format(*microseconds(call))}", flush=True)


if __name__ == "__main__":
    main()
