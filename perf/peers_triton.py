# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Softmax, log-softmax and log-sum-exp in Triton, in the three forms that people write: peers.py measures them.

A form turns operator, tensors and shape into candidates, each a label and a function that enqueues it; peers.py keeps
the fastest. Rows hold at least one finite element a tile: the kernels guard against nothing else.
"""

from __future__ import annotations

from typing import Callable, Iterator, List, NamedTuple, Tuple

import torch
import triton
import triton.language as tl

OPS = {"softmax": 0, "log_softmax": 1, "logsumexp": 2}
WIDEST_ROW = 1 << 16  # columns that one program holds at once; wider rows are for the tiled form


@triton.jit
def _finish(x, exps, top, total, OP: tl.constexpr):
    """What the operator makes of a row's elements, its maximum and its sum of exponentials."""
    if OP == 0:
        result = exps / total
    elif OP == 1:
        result = x - top - tl.log(total)
    else:
        result = top + tl.log(total)
    return result


@triton.jit
def row_kernel(x, y, cols, OP: tl.constexpr, ACC: tl.constexpr, BLOCK: tl.constexpr):
    """One row a program, the whole row at once."""
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    values = tl.load(x + row * cols + col, mask=col < cols, other=float("-inf")).to(ACC)
    top = tl.max(values, axis=0)
    exps = tl.exp(values - top)
    result = _finish(values, exps, top, tl.sum(exps, axis=0), OP).to(y.dtype.element_ty)
    if OP == 2:
        tl.store(y + row, result)
    else:
        tl.store(y + row * cols + col, result, mask=col < cols)


@triton.jit(do_not_specialize=["rows"])
def persistent_kernel(
    x, y, rows, cols, OP: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, STAGES: tl.constexpr
):
    """As many programs as the GPU holds at once, each takes every so many-th tile of ROWS whole rows."""
    col = tl.arange(0, BLOCK)
    for tile in tl.range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0), num_stages=STAGES):
        row = tile * ROWS + tl.arange(0, ROWS)
        start = row.to(tl.int64)[:, None] * cols
        mask = (row < rows)[:, None] & (col < cols)[None, :]
        values = tl.load(x + start + col[None, :], mask=mask, other=float("-inf")).to(ACC)
        top = tl.max(values, axis=1, keep_dims=True)
        exps = tl.exp(values - top)
        result = _finish(values, exps, top, tl.sum(exps, axis=1, keep_dims=True), OP).to(y.dtype.element_ty)
        if OP == 2:
            tl.store(y + row[:, None], result, mask=(row < rows)[:, None])
        else:
            tl.store(y + start + col[None, :], result, mask=mask)


@triton.jit
def tiled_kernel(
    x,
    y,
    rows,
    cols,
    row_stride,
    col_stride,
    OP: tl.constexpr,
    ACC: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """ROWS rows a program, in tiles of BLOCK columns: a pass for the running maximum and sum, a pass for the result."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    start = (row * row_stride)[:, None]
    top = tl.full((ROWS, 1), float("-inf"), ACC)
    total = tl.zeros((ROWS, 1), ACC)
    for first in range(0, cols, BLOCK):
        col = first + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (col < cols)[None, :]
        place = x + start + (col * col_stride)[None, :]
        values = tl.load(place, mask=mask, other=float("-inf"), eviction_policy="evict_last").to(ACC)
        higher = tl.maximum(top, tl.max(values, axis=1, keep_dims=True))
        total = total * tl.exp(top - higher) + tl.sum(tl.exp(values - higher), axis=1, keep_dims=True)
        top = higher
    if OP == 2:
        result = top + tl.log(total)
        tl.store(y + row[:, None], result.to(y.dtype.element_ty), mask=(row < rows)[:, None])
    else:
        for first in range(0, cols, BLOCK):
            col = first + tl.arange(0, BLOCK)
            mask = (row < rows)[:, None] & (col < cols)[None, :]
            offset = start + (col * col_stride)[None, :]
            values = tl.load(x + offset, mask=mask, other=float("-inf"), eviction_policy="evict_first").to(ACC)
            result = _finish(values, tl.exp(values - top), top, total, OP)
            tl.store(y + offset, result.to(y.dtype.element_ty), mask=mask)


class Task(NamedTuple):
    """x and y as they lie in memory; y holds one value a row for logsumexp."""

    op: str
    layout: str
    rows: int
    cols: int
    x: torch.Tensor
    y: torch.Tensor

    @property
    def constants(self) -> dict:
        return dict(OP=OPS[self.op], ACC=tl.float64 if self.x.dtype == torch.float64 else tl.float32)


Candidate = Tuple[str, Callable[[], None]]


def power_of_two(number: int) -> int:
    """The smallest one that is not below the number."""
    return 1 << max(0, number - 1).bit_length()


def warps_for(elements: int) -> List[int]:
    """Two sizes of a program for so many elements at a time: about 8 and about 32 elements a thread."""
    return sorted({min(32, max(1, elements // (32 * each))) for each in (8, 32)})


def row_candidates(task: Task) -> Iterator[Candidate]:
    block = power_of_two(task.cols)
    for warps in warps_for(block):

        def launch(warps=warps):
            row_kernel[(task.rows,)](task.x, task.y, task.cols, **task.constants, BLOCK=block, num_warps=warps)

        yield f"a row a program, w{warps}", launch


def resident_programs(compiled, warps: int) -> int:
    """How many programs of a compiled kernel the GPU holds at once, by registers, threads and shared memory."""
    if compiled is None:  # Triton's interpreter: any number will do
        return 3
    gpu = torch.cuda.get_device_properties(torch.cuda.current_device())
    threads = gpu.warp_size * warps
    limits = [gpu.max_threads_per_multi_processor // threads, 32]
    if compiled.n_regs:
        limits.append(gpu.regs_per_multiprocessor // (compiled.n_regs * threads))
    if compiled.metadata.shared:
        limits.append(gpu.shared_memory_per_multiprocessor // compiled.metadata.shared)
    return gpu.multi_processor_count * max(1, min(limits))


def persistent_launch(task: Task, warps: int, sizes: dict) -> Callable[[], None]:
    """Sized on the first call: how many programs are resident is known once the kernel is compiled."""
    programs = 0

    def launch():
        nonlocal programs
        if not programs:
            compiled = persistent_kernel[(1,)](task.x, task.y, 0, task.cols, **sizes)
            programs = min(resident_programs(compiled, warps), triton.cdiv(task.rows, sizes["ROWS"]))
        persistent_kernel[(programs,)](task.x, task.y, task.rows, task.cols, **sizes)

    return launch


def stages_for(tile_bytes: int) -> List[int]:
    """How many tiles ahead loads may run: all but one of them wait in shared memory."""
    return [stages for stages in (2, 4) if (stages - 1) * tile_bytes <= 1 << 16] or [1]


def persistent_candidates(task: Task) -> Iterator[Candidate]:
    block = power_of_two(task.cols)
    for tile in (1024, 4096) if block < 1024 else (block,):
        rows = tile // block
        for warps in [4] if block < 1024 else warps_for(block):
            for stages in stages_for(tile * task.x.element_size()):
                sizes = dict(task.constants, ROWS=rows, BLOCK=block, STAGES=stages, num_warps=warps)
                yield f"persistent, r{rows}, w{warps}, s{stages}", persistent_launch(task, warps, sizes)


TILES_ALONG_ROWS = [(1, 1024, 4), (1, 2048, 8), (1, 4096, 8), (1, 4096, 16), (1, 8192, 16), (1, 16384, 32)]
TILES_ACROSS_ROWS = [(32, 32, 4), (64, 16, 4), (64, 64, 8), (128, 32, 8), (256, 16, 8)]


def tile_sizes(task: Task) -> List[Tuple[int, int, int]]:
    """Rows, columns and warps of the tiles that are worth a try."""
    if task.layout == "left":
        return TILES_ACROSS_ROWS
    block = power_of_two(task.cols)
    if block < 1024:
        return [(tile // block, block, 4) for tile in (1024, 4096)]
    return [sizes for sizes in TILES_ALONG_ROWS if sizes[1] <= block]


def tiled_candidates(task: Task) -> Iterator[Candidate]:
    strides = (1, task.rows) if task.layout == "left" else (task.cols, 1)
    for rows, block, warps in tile_sizes(task):

        def launch(rows=rows, block=block, warps=warps):
            sizes = dict(task.constants, ROWS=rows, BLOCK=block, num_warps=warps)
            grid = (triton.cdiv(task.rows, rows),)
            tiled_kernel[grid](task.x, task.y, task.rows, task.cols, *strides, **sizes)

        yield f"tiled, {rows} x {block}, w{warps}", launch


class Form(NamedTuple):
    candidates: Callable[[Task], Iterator[Candidate]]
    whole_rows: bool  # a program holds a whole row, which must be contiguous

    def serves(self, layout: str, rows: int, cols: int) -> bool:
        fits = rows * cols < 1 << 31  # offsets inside a tile are 32-bit
        return fits and (not self.whole_rows or (layout == "right" and cols <= WIDEST_ROW))


FORMS = {
    "triton_persistent": Form(persistent_candidates, True),
    "triton_row": Form(row_candidates, True),
    "triton_tiled": Form(tiled_candidates, False),
}
