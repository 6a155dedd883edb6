#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""What kokkosnn_mpi_perf measured, as a report, and a model of it that reaches as far as 16384 ranks.

model.py DIR   reads DIR/scaling.json, writes DIR/scaling.csv and DIR/scaling.html, prints the table and a verdict
"""

from __future__ import annotations

import argparse
import base64
import csv
import html
import io
import json
import math
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Sequence

MOST_RANKS = 16384
PAIR_BYTES = 16  # of a merge that is measured alone

MODES = {"allreduce": "tab:blue", "in_order": "tab:orange", "nccl": "tab:green"}  # with their colours

ELEMENT_BYTES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2}


class Work(NamedTuple):
    """How often an operator reads and writes each element of a rank, and what it exchanges of a row."""

    reads_before: int  # of the merge
    reads_after: int
    writes_after: int
    row_bytes: int


WORK = {
    "softmax": Work(1, 1, 1, 16),
    "log_softmax": Work(1, 1, 1, 16),
    "logsumexp": Work(1, 0, 0, 16),
    "cross_entropy": Work(1, 0, 0, 32),
    "cross_entropy_with_gradient": Work(1, 1, 1, 32),
    "rms_norm": Work(1, 1, 1, 32),
    "layer_norm": Work(1, 1, 1, 40),
}

ASSUMPTIONS = (
    "A rank's kernels take their bytes over a bandwidth: that of the measured copies times a share that each operator "
    "and type has on one rank. Caches, and a launch's own time, are in that share, so columns that get few take longer "
    "than is said.",
    "A merge in the order of the ranks is log2 P messages one after the other, or floor(log2 P) + 2 where P is no "
    "power of two, each of a latency and of 16 to 40 bytes a row over a bandwidth; those two are fitted to the "
    "measured merges (relative squares).",
    "By NCCL a merge is one gather: a latency, and the pairs of all other ranks over a bandwidth, fitted to its own "
    "merges. It hides behind nothing.",
    "MPI's own reduction is the cheaper one of ceil(log2 P) such messages and of a reduce-scatter with an allgather, "
    "2 ceil(log2 P) latencies and twice the bytes; latency and bandwidth of its own, from its own merges.",
    "All messages cost what they cost among the ranks that were measured: a network with slower links between nodes is "
    "not in it unless the measured ranks were on several nodes.",
    "Of several blocks of rows a merge hides behind the kernels that read the next block; the last one hides behind "
    "nothing.",
    "Every rank has ceil(N / P) columns and the same speed; nobody waits for a slower one.",
)


def doublings(ranks: int) -> int:
    return (ranks - 1).bit_length()


def messages(ranks: int) -> int:
    """Messages of a merge in the order of the ranks, one after the other: recursive doubling, two more beyond 2^k."""
    down = ranks.bit_length() - 1
    return down if ranks == 2**down else down + 2


@dataclass(frozen=True)
class Link:
    """A message's time: latency + bytes / bandwidth."""

    latency: float
    seconds_a_byte: float

    def message(self, size: float) -> float:
        return self.latency + size * self.seconds_a_byte

    def merge(self, mode: str, ranks: int, size: int) -> float:
        if mode == "nccl":
            return self.message((ranks - 1) * size)
        if mode == "in_order":
            return messages(ranks) * self.message(size)
        share = (ranks - 1) / ranks
        around = 2 * (doublings(ranks) * self.latency + share * size * self.seconds_a_byte)
        return min(doublings(ranks) * self.message(size), around)


def message_of(mode: str, merge: dict) -> tuple:
    """Bytes and seconds of one message of a measured merge."""
    size, ranks, seconds = PAIR_BYTES * merge["pairs"], merge["ranks"], max(merge["seconds"])
    if mode == "nccl":
        return (ranks - 1) * size, seconds
    return size, seconds / (messages if mode == "in_order" else doublings)(ranks)


def fit_line(points: Sequence[tuple]) -> Link:
    """Least relative squares of seconds = latency + bytes * slope, neither of them negative."""
    weights = [1 / (seconds * seconds) for _, seconds in points]
    total = sum(weights)
    mean_x = sum(w * x for w, (x, _) in zip(weights, points)) / total
    mean_y = sum(w * y for w, (_, y) in zip(weights, points)) / total
    spread = sum(w * (x - mean_x) ** 2 for w, (x, _) in zip(weights, points))
    slope = sum(w * (x - mean_x) * (y - mean_y) for w, (x, y) in zip(weights, points)) / spread if spread else 0.0
    slope = max(0.0, slope)
    return Link(max(0.0, mean_y - slope * mean_x), slope)


@dataclass(frozen=True)
class Model:
    copy: float  # bytes a second of one rank
    share: Dict[tuple, float]  # of it, by operator and type, on one rank
    links: Dict[str, Link]  # by mode

    @staticmethod
    def of(data: dict) -> "Model":
        """From the copies, the merges, and the points of one rank; those of more ranks are left to check it with."""
        copies = [c["bytes"] / max(c["seconds"]) for c in data["copies"]]
        copy = statistics.median(copies)
        share = {}
        for point in data["points"]:
            if point["ranks"] == 1 and point["mode"] == "allreduce" and point["scaling"] == "strong":
                seconds = max(point["kernel_seconds"])
                share[point["operator"], point["type"]] = all_bytes(point) / seconds / copy
        links = {}
        for mode in MODES:
            merges = [m for m in data["merges"] if m["mode"] == mode and m["ranks"] > 1]
            if merges:
                links[mode] = fit_line([message_of(mode, m) for m in merges])
        return Model(copy, share, links)

    def seconds(self, operator: str, type_: str, mode: str, rows: int, cols: int, ranks: int, blocks: int) -> float:
        """Of one call on all ranks."""
        work = WORK[operator]
        columns = -(-cols // ranks)
        pass_ = rows * columns * ELEMENT_BYTES[type_] / (self.copy * self.share[operator, type_])
        before, after = work.reads_before * pass_, (work.reads_after + work.writes_after) * pass_
        if ranks == 1 or mode not in self.links:
            return before + after
        merge = self.links[mode].merge(mode, ranks, work.row_bytes * -(-rows // blocks))
        if mode == "nccl":
            return before + after + blocks * merge
        return before + after + merge + (blocks - 1) * max(0.0, merge - before / blocks)


def all_bytes(point: dict) -> int:
    """What one rank's kernels move in all."""
    work = WORK[point["operator"]]
    moves = work.reads_before + work.reads_after + work.writes_after
    return moves * point["rows"] * -(-point["cols"] // point["ranks"]) * ELEMENT_BYTES[point["type"]]


@dataclass(frozen=True)
class Line:
    """A point of the table."""

    point: dict
    efficiency: Optional[float]
    predicted: Optional[float]

    @property
    def slowest(self) -> float:
        return max(self.point["seconds"])

    @property
    def slowest_rank(self) -> int:
        return self.point["seconds"].index(self.slowest)

    @property
    def rate(self) -> float:
        """GB/s of all ranks together, of the bytes that must move."""
        return 1e-9 * self.point["bytes"] / self.slowest

    def cells(self) -> List[str]:
        p = self.point
        return [
            p["operator"],
            p["type"],
            p["scaling"],
            p["mode"],
            str(p["rows"]),
            str(p["cols"]),
            str(p["ranks"]),
            f"{1e6 * self.slowest:.1f}",
            str(self.slowest_rank),
            f"{1e6 * max(p['kernel_seconds']):.1f}",
            f"{1e6 * max(p['mpi_seconds']):.1f}",
            f"{self.rate:.1f}",
            "-" if self.efficiency is None else f"{self.efficiency:.2f}",
            "-" if self.predicted is None else f"{self.predicted / self.slowest:.2f}",
        ]


HEADER = [
    "operator",
    "type",
    "scaling",
    "merge",
    "rows",
    "cols",
    "ranks",
    "us of the slowest rank",
    "slowest rank",
    "us alone",
    "us in MPI",
    "GB/s of all",
    "efficiency",
    "model / measured",
]


def efficiency(data: dict, point: dict, scaling: str) -> Optional[float]:
    """Efficiency against one rank: a strong point's speed-up over the ranks, a weak one's time there over time here."""
    if point["ranks"] == 1:
        return None
    for one in data["points"]:
        same = all(one[key] == point[key] for key in ("operator", "type", "mode", "rows"))
        if same and one["ranks"] == 1 and one["scaling"] == scaling:
            ratio = max(one["seconds"]) / max(point["seconds"])
            return ratio / point["ranks"] if scaling == "strong" else ratio
    return None


def points_of(data: dict) -> List[dict]:
    """The measured points, the last one of a strong line also as the last of the weak one, which it is."""
    most = max((p["ranks"] for p in data["points"]), default=1)
    points = []
    for point in data["points"]:
        points.append(point)
        if point["ranks"] == most > 1 and point["scaling"] == "strong":
            points.append({**point, "scaling": "weak"})
    return points


def lines_of(data: dict, model: Model) -> List[Line]:
    lines = []
    for point in points_of(data):
        known = (point["operator"], point["type"]) in model.share
        keys = ("operator", "type", "mode", "rows", "cols", "ranks", "blocks")
        predicted = model.seconds(*(point[k] for k in keys)) if known and point["ranks"] > 1 else None
        lines.append(Line(point, efficiency(data, point, point["scaling"]), predicted))
    return lines


def table(lines: Sequence[Line]) -> str:
    rows = [HEADER] + [line.cells() for line in lines]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADER))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def verdict(lines: Sequence[Line], failures: Sequence[dict]) -> str:
    if failures:
        return f"{len(failures)} results were WRONG"
    ratios = [line.predicted / line.slowest for line in lines if line.predicted is not None]
    if not ratios:
        return "Only one rank was measured: nothing to check the model with"
    return (
        f"The model is within {min(ratios):.2f} to {max(ratios):.2f} of {len(ratios)} measured points "
        f"of more than one rank, median {statistics.median(ratios):.2f}"
    )


def rank_counts() -> List[int]:
    return [2**k for k in range(MOST_RANKS.bit_length())]


def figure(data: dict, model: Model, operator: str, type_: str) -> Optional[bytes]:
    """Time over ranks, strong and weak, as a PNG; None without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    fig, axes = pyplot.subplots(1, 2, figsize=(11, 4), sharey=True)
    mine = [p for p in points_of(data) if p["operator"] == operator and p["type"] == type_]
    for axis, scaling in zip(axes, ("strong", "weak")):
        for mode, colour in MODES.items():
            points = [p for p in mine if p["mode"] == mode and p["scaling"] == scaling]
            if not points:
                continue
            first = min(points, key=lambda p: p["ranks"])
            columns = [first["cols"] * (r if scaling == "weak" else 1) for r in rank_counts()]
            times = [
                1e6 * model.seconds(operator, type_, mode, first["rows"], cols, ranks, first["blocks"])
                for ranks, cols in zip(rank_counts(), columns)
            ]
            axis.plot(rank_counts(), times, color=colour, label=f"{mode}, model")
            axis.plot(
                [p["ranks"] for p in points],
                [1e6 * max(p["seconds"]) for p in points],
                "o",
                color=colour,
                label=f"{mode}, measured",
            )
        axis.set(xscale="log", yscale="log", xlabel="ranks", title=f"{operator} {type_}, {scaling}")
        axis.set_xscale("log", base=2)
        axis.grid(True, alpha=0.3)
        axis.legend(fontsize=8)
    axes[0].set_ylabel("us of a call")
    out = io.BytesIO()
    fig.savefig(out, format="png", dpi=110, bbox_inches="tight")
    pyplot.close(fig)
    return out.getvalue()


def page(data: dict, model: Model, lines: Sequence[Line]) -> str:
    def cells(tag: str, row: Sequence[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row) + "</tr>"

    context = "".join(cells("td", pair) for pair in data["context"].items())
    links = "".join(
        cells(
            "td",
            [
                mode,
                f"{1e6 * link.latency:.2f} us",
                f"{1e-9 / link.seconds_a_byte:.2f} GB/s" if link.seconds_a_byte else "-",
            ],
        )
        for mode, link in model.links.items()
    )
    plots = []
    for operator, type_ in model.share:
        image = figure(data, model, operator, type_)
        if image is not None:
            data_url = f"data:image/png;base64,{base64.b64encode(image).decode()}"
            plots.append(f'<p><img alt="{operator} {type_}" src="{data_url}"></p>')
    if not plots:
        plots = ["<p>No plots: this Python has no matplotlib.</p>"]
    return f"""<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>KokkosNN over ranks</title>
<style>body {{ font-family: sans-serif; margin: 2em }} td, th {{ padding: 0.2em 0.6em; text-align: right }}</style>
<h1>Columns over MPI ranks</h1>
<p>{html.escape(verdict(lines, data.get("failures", [])))}</p>
<table>{cells("th", HEADER)}{"".join(cells("td", line.cells()) for line in lines)}</table>
<p>Every rank is measured, the median of its calls; all begin together. "Alone" is the same kernels without other ranks;
GB/s are of all ranks, each element read once and, where there is a result for it, written once. Efficiency is against
one rank.</p>
<h2>The model, to {MOST_RANKS} ranks</h2>
<ul>{"".join(f"<li>{html.escape(text)}</li>" for text in ASSUMPTIONS)}</ul>
<p>Copy of a rank: {1e-9 * model.copy:.1f} GB/s</p>
<table>{cells("th", ["merge", "latency of a message", "bandwidth"])}{links}</table>
{"".join(plots)}
<h2>Machine</h2>
<table>{context}</table>
</html>
"""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    folder = parser.parse_args(arguments).folder
    data = json.loads((folder / "scaling.json").read_text())
    data.setdefault("points", [])
    model = Model.of(data)
    lines = lines_of(data, model)
    with (folder / "scaling.csv").open("w", newline="") as out:
        csv.writer(out).writerows([HEADER] + [line.cells() for line in lines])
    (folder / "scaling.html").write_text(page(data, model, lines))
    print(table(lines))
    print(f"Report: {folder / 'scaling.html'}")
    print(verdict(lines, data.get("failures", [])))
    return 1 if data.get("failures") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
