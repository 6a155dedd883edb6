#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Attention of PyTorch, by each of its backends: TFLOP/s forward and backward of the shapes of kokkosnn_attention.

Operations count as there: 4 a query, key and element of a head forward, 10 backward, half of them under a causal mask.
"""

import argparse
import statistics
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

TOKENS = 16384  # of all batch entries on a GPU
SHAPES = ((16, 16, 64), (16, 16, 128), (32, 8, 128))  # heads of q, of k, elements of a head


def milliseconds(call, device, samples=9):
    """The median of some calls."""
    times = []
    for sample in range(samples + 2):
        if device == "cuda":
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            torch.cuda.synchronize()
            taken = begin.elapsed_time(end)
        else:
            start = time.perf_counter()
            call()
            taken = 1e3 * (time.perf_counter() - start)
        if sample >= 2:
            times.append(taken)
    return statistics.median(times)


def batch_of(queries, device):
    return max(1, TOKENS // queries) if device == "cuda" else 1


def tensors(dtype, queries, shape, device):
    heads, kv_heads, dim = shape
    batch = batch_of(queries, device)
    make = lambda count: torch.randn(batch, count, queries, dim, device=device, dtype=dtype, requires_grad=True)
    q, k, v = make(heads), make(kv_heads), make(kv_heads)
    return q, k, v, torch.randn_like(q)


def rates(backend, inputs, shape, causal, device):
    """TFLOP/s forward and backward; None where the backend does not serve."""
    q, k, v, dout = inputs
    heads, kv_heads, dim = shape
    operations = 4.0 * q.shape[0] * heads * dim * q.shape[2] ** 2 / (2 if causal else 1)
    call = lambda: scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=heads != kv_heads)
    try:
        with sdpa_kernel([backend]):
            with torch.no_grad():
                forward = milliseconds(call, device)
            o = call()
            backward = milliseconds(lambda: torch.autograd.grad(o, (q, k, v), dout, retain_graph=True), device)
    except RuntimeError:
        return None
    return 1e-9 * operations / forward, 2.5e-9 * operations / backward


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--type", default="bfloat16", choices=("float64", "float32", "float16", "bfloat16"))
    parser.add_argument("--queries", type=int, default=4096)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    arguments = parser.parse_args()
    backends = [SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
    if arguments.device == "cuda":
        backends[1:1] = [SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]
    batch = batch_of(arguments.queries, arguments.device)
    print(f"PyTorch {torch.__version__}, batch {batch}, {arguments.queries} queries and keys of {arguments.type}")
    print(f"{'backend':20} {'mask':6} {'q':>3} {'kv':>3} {'dim':>4} {'forward':>8} {'backward':>8}  TFLOP/s")
    for shape in SHAPES:
        inputs = tensors(getattr(torch, arguments.type), arguments.queries, shape, arguments.device)
        for causal in (False, True):
            for backend in backends:
                got = rates(backend, inputs, shape, causal, arguments.device)
                numbers = "       -        -" if got is None else f"{got[0]:8.1f} {got[1]:8.1f}"
                mask = "causal" if causal else "none"
                print(f"{backend.name:20} {mask:6} {shape[0]:3} {shape[1]:3} {shape[2]:4} {numbers}", flush=True)


if __name__ == "__main__":
    main()
