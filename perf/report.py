#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Turns the results.json of kokkosnn_perf or peers.py into a table, a CSV file and a self-contained report with plots.

report.py DIR             writes DIR/results.csv, DIR/results.txt, DIR/report.html; prints table, path and verdict
report.py --compare A B   speed of run B over run A, shape by shape, regressions first
"""

from __future__ import annotations

import argparse
import base64
import csv
import html
import io
import json
import math
import re
import statistics
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

YARDSTICK = "copy"
SUBJECT = "KokkosNN"
NAIVE = "five_pass"
MAIN_PROVIDERS = (YARDSTICK, SUBJECT, NAIVE)
# KokkosNN's own strategies, which kokkosnn_perf --full forces. Whoever else is measured is a peer.
STRATEGIES = ("vector_lanes", "team_scratch", "team_registers", "team_online", "split_row", "inner_lanes")

# Sweeps of peers.py that are of microseconds a call, not of memory.
SMALL_CALLS = "small calls"
SMALL_CALLS_IN_GRAPH = "small calls, in a graph"
SMALL_SWEEPS = (SMALL_CALLS, SMALL_CALLS_IN_GRAPH)

TABLE_LINES_PER_GROUP = 12  # longer groups are thinned on the terminal; the CSV and the HTML hold every shape
BUSY = 0.1  # a quiet machine's middle half of the samples spreads over a few percent of the median
CLIFF = 0.08  # a size is a cliff if its share of copy is further than this below that of a size next to it
NOISE = 0.03  # a speed ratio within 1 +- this is no change, however tight the ranges are


def layout_name(layout: str) -> str:
    """A matrix has a Kokkos layout; `ragged`, `even` and `skewed` are kinds of ragged rows."""
    return f"Layout{layout.capitalize()}" if layout in ("right", "left") else f"{layout} rows"


class Shape(NamedTuple):
    """What was measured, whoever ran it."""

    sweep: str
    op: str
    type: str
    layout: str
    rows: int
    cols: int

    def text(self) -> str:
        layout = "" if self.layout == "right" else f" {layout_name(self.layout)}"
        return f"{self.sweep}: {self.op} {self.type}{layout} {self.rows} x {self.cols}"


@dataclass(frozen=True)
class Record:
    shape: Shape
    provider: str
    plan: str
    bytes: int
    samples: int
    nominal_rows: int
    median_s: float
    q1_s: float
    q3_s: float
    min_s: float
    max_s: float

    def rate(self, seconds: Optional[float] = None) -> float:
        """GB/s of the bytes that must move."""
        return 1e-9 * self.bytes / (self.median_s if seconds is None else seconds)


@dataclass
class Run:
    context: Dict[str, str]
    records: List[Record]
    failures: List[Dict[str, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._index = {(record.shape, record.provider): record for record in self.records}

    def find(self, shape: Shape, provider: str) -> Optional[Record]:
        return self._index.get((shape, provider))

    def share(self, shape: Shape, provider: str) -> Optional[float]:
        """Speed as a share of the yardstick's."""
        record, yardstick = self.find(shape, provider), self.find(shape, YARDSTICK)
        return yardstick.median_s / record.median_s if record and yardstick else None

    def shapes(self, sweep: Optional[str] = None) -> List[Shape]:
        """Those of a sweep; without one, all but the small calls, whose time is no matter of memory."""
        shapes = dict.fromkeys(record.shape for record in self.records)
        return [s for s in shapes if s.sweep == sweep or (sweep is None and s.sweep not in SMALL_SWEEPS)]

    def sweeps(self) -> List[str]:
        return list(dict.fromkeys(shape.sweep for shape in self.shapes()))

    def providers(self, shapes: Iterable[Shape]) -> List[str]:
        """Those that have a result for one of the shapes: the main ones first, then as they ran."""
        wanted = set(shapes)
        present = dict.fromkeys(r.provider for r in self.records if r.shape in wanted)
        return [p for p in MAIN_PROVIDERS if p in present] + [p for p in present if p not in MAIN_PROVIDERS]


def is_peer(provider: str) -> bool:
    """Neither KokkosNN in one of its forms, nor a yardstick of this suite."""
    return not provider.startswith(SUBJECT) and provider not in (YARDSTICK, NAIVE, *STRATEGIES)


def to_record(entry: Dict[str, object]) -> Record:
    shape = Shape(**{name: entry[name] for name in Shape._fields})
    rest = {name: entry[name] for name in Record.__dataclass_fields__ if name != "shape"}
    return Record(shape=shape, **rest)


def load(folder: Path) -> Run:
    path = folder / "results.json" if folder.is_dir() else folder
    data = json.loads(path.read_text(encoding="utf-8"))
    if data.get("schema") != 1:
        raise ValueError(f"{path}: schema {data.get('schema')} is not known to this report.py")
    return Run(data["context"], [to_record(entry) for entry in data["records"]], data.get("failures", []))


# --- the table -------------------------------------------------------------------------------------------------------


def thinned(items: Sequence, limit: int) -> List:
    """At most `limit` items, evenly spread, the first and the last among them."""
    if len(items) <= limit:
        return list(items)
    return [items[round(i * (len(items) - 1) / (limit - 1))] for i in range(limit)]


def rate_text(rate: Optional[float]) -> str:
    if rate is None:
        return "-"
    return f"{rate:.0f}" if rate >= 1000 else f"{rate:.1f}"


def share_text(share: Optional[float]) -> str:
    return "-" if share is None else f"{share:.2f}"


def best_of(run: Run, shape: Shape, among: Callable[[str], bool]) -> Optional[Record]:
    """The fastest record of a shape among some of the providers."""
    records = [run.find(shape, provider) for provider in run.providers([shape]) if among(provider)]
    return min(records, key=lambda record: record.median_s, default=None)


def best_forced(run: Run, shape: Shape) -> Optional[Record]:
    """The fastest of the strategies that the planner did not choose; there with --full."""
    return best_of(run, shape, lambda provider: provider in STRATEGIES)


def best_peer(run: Run, shape: Shape) -> Optional[Record]:
    return best_of(run, shape, is_peer)


class Extras(NamedTuple):
    """Which columns a table has besides copy and KokkosNN."""

    naive: bool
    forced: bool
    peers: bool


def extras_of(run: Run) -> Extras:
    providers = run.providers(run.shapes())
    return Extras(NAIVE in providers, any(p in STRATEGIES for p in providers), any(map(is_peer, providers)))


def table_header(extras: Extras) -> List[str]:
    return [
        *["rows", "N", YARDSTICK, SUBJECT, "of copy"],
        *([NAIVE, "of copy"] if extras.naive else []),
        *(["best other", "of copy"] if extras.forced else []),
        *(["best peer", "of copy", f"{SUBJECT} / peer"] if extras.peers else []),
    ]


def table_row(run: Run, shape: Shape, extras: Extras) -> List[str]:
    def rate_of(provider: str) -> str:
        record = run.find(shape, provider)
        return rate_text(record.rate() if record else None)

    def named(record: Optional[Record]) -> List[str]:
        return [record.provider, share_text(run.share(shape, record.provider))] if record else ["-", "-"]

    row = [
        str(shape.rows),
        str(shape.cols),
        rate_of(YARDSTICK),
        rate_of(SUBJECT),
        share_text(run.share(shape, SUBJECT)),
    ]
    if extras.naive:
        row += [rate_of(NAIVE), share_text(run.share(shape, NAIVE))]
    if extras.forced:
        row += named(best_forced(run, shape))
    if extras.peers:
        peer, ours = best_peer(run, shape), run.find(shape, SUBJECT)
        row += [*named(peer), share_text(peer.median_s / ours.median_s if peer and ours else None)]
    return row


def aligned(rows: Sequence[Sequence[str]]) -> List[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]


def aligned_left(rows: Sequence[Sequence[str]], left: Iterable[int]) -> List[str]:
    """As `aligned`, with some columns set to the left."""
    widths = {i: max(len(row[i]) for row in rows) for i in left}
    padded = [[cell.ljust(widths[i]) if i in widths else cell for i, cell in enumerate(row)] for row in rows]
    return [line.rstrip() for line in aligned(padded)]


def groups(run: Run) -> List[Tuple[str, List[Shape]]]:
    """The shapes under a heading each: sweep, operator, types, layout."""
    result: Dict[str, List[Shape]] = {}
    for shape in run.shapes():
        heading = f"{shape.sweep}: {shape.op}, {shape.type}, {layout_name(shape.layout)}"
        result.setdefault(heading, []).append(shape)
    return list(result.items())


def table(run: Run, limit: int = TABLE_LINES_PER_GROUP) -> str:
    extras = extras_of(run)
    headings, rows = [], [table_header(extras)]
    for heading, shapes in groups(run):
        shown = thinned(shapes, limit)
        left_out = f" ({len(shown)} of {len(shapes)} shapes, all in results.csv)" if len(shown) < len(shapes) else ""
        headings.append((len(rows), heading + left_out))
        rows += [table_row(run, shape, extras) for shape in shown]
    lines = aligned(rows)
    for position, heading in reversed(headings):
        lines[position:position] = ["", heading]
    return "\n".join(["GB/s of the bytes that must move, median; share of the copy's speed"] + lines)


def verdict(run: Run) -> str:
    """One line: how far from a copy, how far from naive, and where it is worst."""
    shares = {shape: share for shape in run.shapes() for share in [run.share(shape, SUBJECT)] if share is not None}
    wrong = f" {len(run.failures)} RESULTS WERE WRONG OR FAILED, see the end of the report." if run.failures else ""
    if not shares:
        return f"No shape has both {SUBJECT} and {YARDSTICK}: nothing to judge.{wrong}"
    pairs = [(run.find(shape, NAIVE), run.find(shape, SUBJECT)) for shape in run.shapes()]
    speedups = [naive.median_s / ours.median_s for naive, ours in pairs if naive and ours]
    against_naive = f", {statistics.median(speedups):.1f} times the five-pass softmax" if speedups else ""
    worst = min(shares, key=lambda shape: shares[shape])
    return (
        f"{SUBJECT} moves a median of {statistics.median(shares.values()):.2f} of copy over {len(shares)} shapes"
        f"{against_naive}; worst {shares[worst]:.2f} at {worst.text()}.{against_peers(run)}{wrong}"
    )


def against_peers(run: Run) -> str:
    """The verdict's sentence about the peers; nothing where none was measured."""
    found = ratios(run)
    if not found:
        return ""
    return (
        f" Against the best peer of each shape: {geometric_mean(ratio.value for ratio in found):.2f} times its speed "
        f"(geometric mean), worst {found[0].value:.2f} at {found[0].shape.text()} ({found[0].peer.provider})."
    )


def unrest(run: Run) -> str:
    """A line of warning where the machine was busy while it measured; otherwise nothing."""
    spreads = [(r.q3_s - r.q1_s) / r.median_s for r in run.records if r.provider in (YARDSTICK, SUBJECT)]
    spread = statistics.median(spreads) if spreads else 0.0
    if spread <= BUSY:
        return ""
    return f"The machine was busy: typically the middle half of the samples spreads over {spread:.0%} of their median."


def write_csv(run: Run, path: Path) -> None:
    measures = ["nominal_rows", "provider", "plan", "bytes", "samples", "median_s", "q1_s", "q3_s", "min_s", "max_s"]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*Shape._fields, *measures, "gb_per_s", "share_of_copy"])
        for record in run.records:
            share = run.share(record.shape, record.provider)
            values = [getattr(record, name) for name in measures]
            rounded = [f"{record.rate():.3f}", "" if share is None else f"{share:.4f}"]
            writer.writerow([*record.shape, *values, *rounded])


# --- KokkosNN against its peers --------------------------------------------------------------------------------------


class Ratio(NamedTuple):
    """KokkosNN and a peer on one shape."""

    ours: Record
    peer: Record

    @property
    def shape(self) -> Shape:
        return self.ours.shape

    @property
    def value(self) -> float:
        """KokkosNN's speed over the peer's: below 1 the peer is faster."""
        return self.peer.median_s / self.ours.median_s


def geometric_mean(values: Iterable[float]) -> float:
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def ratios(run: Run, peer: Optional[str] = None) -> List[Ratio]:
    """Against one peer, or else against the best one of each shape; the worst first."""
    pairs = [
        (run.find(shape, SUBJECT), run.find(shape, peer) if peer else best_peer(run, shape)) for shape in run.shapes()
    ]
    return sorted((Ratio(ours, other) for ours, other in pairs if ours and other), key=lambda ratio: ratio.value)


RATIO_HEADER = ("ratio", SUBJECT, "best peer", "", "shape")
PEER_HEADER = ("peer", "shapes", "geometric mean", "worst", "at")


def ratio_rows(run: Run) -> List[List[str]]:
    return [
        [f"{r.value:.2f}", rate_text(r.ours.rate()), rate_text(r.peer.rate()), r.peer.provider, r.shape.text()]
        for r in ratios(run)
    ]


def peer_rows(run: Run) -> List[List[str]]:
    """A row a peer, and one for the best of each shape."""
    rows = []
    for peer in [None, *filter(is_peer, run.providers(run.shapes()))]:
        found = ratios(run, peer)
        if found:
            mean = f"{geometric_mean(ratio.value for ratio in found):.2f}"
            rows.append(
                [peer or "best of each shape", str(len(found)), mean, f"{found[0].value:.2f}", found[0].shape.text()]
            )
    return rows


def peers_text(run: Run, limit: int) -> str:
    rows = ratio_rows(run)
    if not rows:
        return ""
    shown = rows[:limit]
    left_out = f" ({len(shown)} of {len(rows)} shapes)" if len(shown) < len(rows) else ""
    parts = [
        [f"Speed of {SUBJECT} over the peer's, all shapes of a peer"],
        aligned_left([PEER_HEADER, *peer_rows(run)], (0, 4)),
        ["", f"GB/s, and {SUBJECT} / best peer, the worst first{left_out}"],
        aligned_left([RATIO_HEADER, *shown], (3, 4)),
    ]
    return "\n".join(line for part in parts for line in part)


# --- small calls: microseconds ----------------------------------------------------------------------------------------


def small_table(run: Run) -> List[List[str]]:
    """A header and a row a shape and way to call; empty where none was measured."""
    shapes = [shape for sweep in SMALL_SWEEPS for shape in run.shapes(sweep)]
    if not shapes:
        return []
    providers = run.providers(shapes)
    rows = [["call", "rows", "N", *providers]]
    for shape in shapes:
        records = [run.find(shape, provider) for provider in providers]
        times = [f"{1e6 * record.median_s:.2f}" if record else "-" for record in records]
        rows.append(["plain" if shape.sweep == SMALL_CALLS else "in a graph", str(shape.rows), str(shape.cols), *times])
    return rows


def small_text(run: Run) -> str:
    rows = small_table(run)
    return "\n".join(["Small calls, softmax f32: microseconds a call, warm caches", *aligned(rows)]) if rows else ""


# --- cliffs ----------------------------------------------------------------------------------------------------------

CLIFF_SWEEP = "cliffs"


class Cliff(NamedTuple):
    """A size's share of copy over that of sizes next to it: its power of two, the sizes measured below and above."""

    shape: Shape
    share: float
    power: Optional[float]
    below: Optional[float]
    above: Optional[float]

    @property
    def worst(self) -> float:
        return min(ratio for ratio in (self.power, self.below, self.above, 1.0) if ratio is not None)

    @property
    def deep(self) -> bool:
        return self.worst < 1 - CLIFF


def cliffs(run: Run, provider: str = SUBJECT) -> List[Cliff]:
    """Every size of the sweep, the deepest cliff first."""
    kinds: Dict[Tuple[str, ...], Dict[int, Tuple[Shape, float]]] = {}
    for shape in run.shapes(CLIFF_SWEEP):
        share = run.share(shape, provider)
        if share is not None:
            kinds.setdefault((shape.op, shape.type, shape.layout), {})[shape.cols] = (shape, share)
    return sorted((c for sizes in kinds.values() for c in cliffs_of(sizes)), key=lambda cliff: cliff.worst)


def cliffs_of(sizes: Dict[int, Tuple[Shape, float]]) -> List[Cliff]:
    """Those of one kind, its shapes and shares by columns."""
    order = sorted(sizes)

    def relative(cols: int, other: Optional[int]) -> Optional[float]:
        return sizes[cols][1] / sizes[other][1] if other in sizes and other != cols else None

    return [
        Cliff(*sizes[cols], relative(cols, nearest_power_of_two(cols)), relative(cols, below), relative(cols, above))
        for below, cols, above in zip([None, *order], order, [*order[1:], None])
    ]


CLIFF_HEADER = ("", "worst", "N", "of copy", "/ 2^k", "/ next below", "/ next above", "shape")


def cliff_rows(found: Sequence[Cliff]) -> List[List[str]]:
    return [
        [
            "cliff" if c.deep else "",
            share_text(c.worst),
            str(c.shape.cols),
            *map(share_text, (c.share, c.power, c.below, c.above)),
            c.shape.text(),
        ]
        for c in found
    ]


def cliff_summary(run: Run) -> str:
    """How many sizes of each provider are cliffs."""
    counts = []
    for provider in run.providers(run.shapes(CLIFF_SWEEP)):
        found = cliffs(run, provider) if provider != YARDSTICK else []
        if found:
            counts.append(f"{provider} {sum(cliff.deep for cliff in found)} of {len(found)}")
    return f"Sizes more than {CLIFF:.0%} below one next to them: {', '.join(counts)}."


def cliffs_text(run: Run, limit: int) -> str:
    found = cliffs(run)
    if not found:
        return ""
    shown = found[:limit]
    left_out = f" ({len(shown)} of {len(found)} sizes)" if len(shown) < len(found) else ""
    heading = f"Cliffs of {SUBJECT}: share of copy over that of the sizes next to it, the worst first{left_out}"
    return "\n".join([heading, *aligned_left([CLIFF_HEADER, *cliff_rows(shown)], (0, 7)), cliff_summary(run)])


# --- the plots -------------------------------------------------------------------------------------------------------

# Okabe and Ito's palette, told apart by colour-blind readers; markers and dashes repeat the distinction for print.
STYLES = {
    YARDSTICK: dict(color="#555555", linestyle="--", marker=""),
    SUBJECT: dict(color="#0072B2", linestyle="-", marker="o", linewidth=2.2, zorder=5),
    NAIVE: dict(color="#D55E00", linestyle="-", marker="s"),
    "vector_lanes": dict(color="#009E73", linestyle="-.", marker="^"),
    "team_scratch": dict(color="#E69F00", linestyle="-.", marker="v"),
    "team_registers": dict(color="#56B4E9", linestyle="-.", marker="D"),
    "team_online": dict(color="#CC79A7", linestyle=":", marker="P"),
    "split_row": dict(color="#8C6D1F", linestyle=":", marker="X"),
    "inner_lanes": dict(color="#5E3C99", linestyle=":", marker="*"),
    f"{SUBJECT}_plan": dict(color="#003F66", linestyle=":", marker="o"),
    "torch": dict(color="#D55E00", linestyle="-", marker="s"),
    "torch.compile": dict(color="#E69F00", linestyle="-", marker="D"),
    "triton_persistent": dict(color="#009E73", linestyle="-", marker="^"),
    "triton_row": dict(color="#56B4E9", linestyle="-.", marker="v"),
    "triton_tiled": dict(color="#3B6E22", linestyle="-.", marker="<"),
    "jax": dict(color="#CC79A7", linestyle="-", marker="P"),
    "quack": dict(color="#5E3C99", linestyle="-", marker="*"),
    "liger": dict(color="#8C6D1F", linestyle=":", marker="X"),
    "cudnn": dict(color="#882255", linestyle="-.", marker=">"),
}
VARIANT_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5E3C99")
VARIANT_STYLES = [dict(color=color, marker=marker) for color, marker in zip(VARIANT_COLORS, "os^DvPX")]
LINEAR_SWEEPS = {"fused"}  # columns in equal steps; all other sweeps double them
CATEGORY_SWEEPS = {"vocabulary"}  # a handful of sizes of no order worth a scale
LISTED_SWEEPS = {"marks"}  # shapes of all kinds: one place on the axis each, as they come
# With peers the same, all shapes of an operator in one plot.
OPERATOR_SWEEPS = {"gradients", "masked, causal", "segmented", "cross_entropy", "norms"}
MANY_PLACES = 14  # more of them need the width of the page


@dataclass
class Line:
    """One line of both panels: its records in the order of x."""

    label: str
    style: Dict[str, object]
    xs: List[float]
    records: List[Record]
    has_band: bool = True


@dataclass
class Plot:
    """What one figure shows: a sweep, or those of its shapes that are of one kind."""

    name: str
    sweep: str
    shapes: List[Shape]
    listed: bool  # every shape has a place of its own on the x axis

    @property
    def wide(self) -> bool:
        return self.listed and len(self.shapes) > MANY_PLACES


def plots_of(run: Run, sweep: str) -> List[Plot]:
    """One a sweep; one a kind of shapes where they would not go together or where the lines are to be the peers'."""
    shapes = run.shapes(sweep)
    has_peers = any(is_peer(provider) for provider in run.providers(shapes))
    if not has_peers and sweep not in LISTED_SWEEPS:
        return [Plot(sweep, sweep, shapes, False)]
    by_operator = sweep in OPERATOR_SWEEPS
    kinds: Dict[str, List[Shape]] = {}
    for shape in shapes:
        kind = shape.op if by_operator else f"{shape.op} {shape.type} {shape.layout}"
        kinds.setdefault(f"{sweep}, {kind}", []).append(shape)
    listed = by_operator or sweep in LISTED_SWEEPS or sweep == CLIFF_SWEEP
    return [Plot(name, sweep, among, listed) for name, among in kinds.items()]


def nearest_power_of_two(cols: int) -> int:
    return min((1 << k for k in range(cols.bit_length() + 1)), key=lambda power: abs(power - cols))


def cliff_variant(shape: Shape) -> str:
    offset = shape.cols - nearest_power_of_two(shape.cols)
    return f"N = 2^k {'+' if offset > 0 else '−'} {abs(offset)}" if offset else "N = 2^k"


def variant_of(sweep: str) -> Callable[[Shape], str]:
    """What distinguishes the lines of a sweep that compares shapes rather than providers."""
    if sweep == CLIFF_SWEEP:
        return cliff_variant
    if sweep in ("gradients", "cross_entropy", "norms"):
        return lambda shape: f"{shape.op} {shape.type}"
    return lambda shape: shape.op if sweep == "operators" else shape.type


def positions(plot: Plot) -> Dict[Shape, float]:
    """Where a shape stands on the x axis."""
    if plot.listed:
        return {shape: place for place, shape in enumerate(plot.shapes)}
    if plot.sweep in CATEGORY_SWEEPS:
        order = sorted({shape.cols for shape in plot.shapes})
        return {shape: order.index(shape.cols) for shape in plot.shapes}
    if plot.sweep == CLIFF_SWEEP:
        return {shape: nearest_power_of_two(shape.cols) for shape in plot.shapes}
    return {shape: shape.cols for shape in plot.shapes}


def line_of(run: Run, label: str, style: Dict[str, object], provider: str, xs: Dict[Shape, float], **more) -> Line:
    found = [(x, record) for shape, x in xs.items() for record in [run.find(shape, provider)] if record]
    found.sort(key=lambda pair: pair[0])
    return Line(label, style, [x for x, _ in found], [record for _, record in found], **more)


def plot_lines(run: Run, plot: Plot) -> List[Line]:
    """A line a provider; where the sweep compares shapes, one a kind of shape, with its own unnamed copy beside it."""
    xs = positions(plot)
    variant = variant_of(plot.sweep) if not plot.listed else lambda shape: ""
    variants = list(dict.fromkeys(variant(shape) for shape in xs))
    if len(variants) == 1:
        return [line_of(run, p, STYLES.get(p, {}), p, xs) for p in run.providers(xs)]
    lines = []
    for i, (name, style) in enumerate(zip(variants, VARIANT_STYLES)):
        among = {shape: x for shape, x in xs.items() if variant(shape) == name}
        # Each line is drawn over the ones before, and thinner: where two coincide both are seen.
        width = 1.2 + 0.3 * (len(variants) - 1 - i)
        ours_style = dict(style, linestyle="-", linewidth=width, markersize=2.5 + 2 * width)
        copy_style = dict(color=style["color"], linestyle="--", marker="", linewidth=1, alpha=0.7)
        lines.append(line_of(run, name, ours_style, SUBJECT, among))
        lines.append(line_of(run, "", copy_style, YARDSTICK, among, has_band=False))
    return [line for line in lines if line.records]


def place_names(shapes: Sequence[Shape]) -> List[str]:
    """Rows and columns of each, and before them what else tells the shapes apart."""
    telling = [name for name in ("type", "layout") if len({getattr(shape, name) for shape in shapes}) > 1]
    return [" ".join([*(getattr(s, name) for name in telling), f"{s.rows} x {s.cols}"]) for s in shapes]


def plain_number(value: float, _position: object = None) -> str:
    return f"{value:.0f}"


def set_x_axis(axes, plot: Plot) -> None:
    from matplotlib import ticker

    axes.set_xlabel("N (columns), ±1 around 2^k" if plot.sweep == CLIFF_SWEEP else "N (columns)")
    if plot.listed:
        axes.set_xlabel("rows x N")
        axes.set_xticks(range(len(plot.shapes)), place_names(plot.shapes), fontsize=8)
        axes.set_xlim(-0.6, len(plot.shapes) - 0.4)
        slant(axes)
        return
    if plot.sweep in CATEGORY_SWEEPS:
        cols = sorted({shape.cols for shape in plot.shapes})
        axes.set_xticks(range(len(cols)), [str(c) for c in cols])
        axes.set_xlim(-0.4, len(cols) - 0.6)
        return
    if plot.sweep in LINEAR_SWEEPS:
        axes.set_xlim(left=0)
        return
    # A tick where something was measured, and nowhere else.
    ticks = sorted(set(positions(plot).values()))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(ticker.FixedLocator(ticks))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(plain_number))
    if len(ticks) > 7:
        slant(axes)


def slant(axes) -> None:
    for label in axes.get_xticklabels():
        label.set(rotation=35, ha="right", rotation_mode="anchor")


def draw_line(axes, line: Line, ys: List[float], low: List[float], high: List[float]) -> None:
    style = dict(linewidth=1.5, markersize=4.5 if len(ys) <= 30 else 2.5)
    axes.plot(line.xs, ys, label=line.label, **{**style, **line.style})
    if line.has_band:
        axes.fill_between(line.xs, low, high, color=line.style.get("color"), alpha=0.15, linewidth=0)


def draw_speed(axes, lines: Sequence[Line]) -> None:
    for line in lines:
        draw_line(axes, line, *([r.rate(s) for r, s in zip(line.records, edge)] for edge in spreads(line.records)))
    axes.set_ylabel("GB/s of the bytes that must move")
    axes.set_ylim(bottom=0)


def draw_share(axes, lines: Sequence[Line], run: Run) -> None:
    top = 1.0
    for line in lines:
        copies = [run.find(record.shape, YARDSTICK) for record in line.records]
        if line.records[0].provider == YARDSTICK or not all(copies):
            continue
        shares = [[c.median_s / s for c, s in zip(copies, edge)] for edge in spreads(line.records)]
        draw_line(axes, line, *shares)
        top = max(top, *shares[0])
    axes.axhline(1.0, color=STYLES[YARDSTICK]["color"], linewidth=1.2, linestyle="--")
    axes.set_ylabel("share of copy")
    axes.set_ylim(0, 1.08 * top)


def draw(run: Run, plot: Plot) -> str:
    """Both panels of a plot as SVG: side by side, or one above the other where it has many places."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    lines = plot_lines(run, plot)
    labels = [line.label for line in lines if line.label]
    by_variant = len(labels) < len(lines)
    legend_columns = 7
    height = 9.6 if plot.wide else 4.8
    legend_share = (0.1 + 0.26 * -(-(len(labels) + by_variant) // legend_columns)) / height
    figure = Figure(figsize=(11, height), constrained_layout=True)
    figure.get_layout_engine().set(rect=(0.005, legend_share, 0.99, 0.98 - legend_share), wspace=0.04)
    speed, share = figure.subplots(2, 1) if plot.wide else figure.subplots(1, 2)
    draw_speed(speed, lines)
    draw_share(share, lines, run)
    for axes in (speed, share):
        set_x_axis(axes, plot)
        axes.grid(True, color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title(run, plot), fontsize=12)
    handles, names = speed.get_legend_handles_labels()
    if by_variant:
        handles += [Line2D([], [], **dict(STYLES[YARDSTICK], linewidth=1))]
        names += [f"{YARDSTICK}, in the same colour"]
    figure.legend(handles, names, loc="lower center", ncol=legend_columns, frameon=False)
    return svg_of(figure)


def spreads(records: Sequence[Record]) -> Tuple[List[float], List[float], List[float]]:
    """Seconds of the line and of the edges of its band."""
    return [r.median_s for r in records], [r.q3_s for r in records], [r.q1_s for r in records]


def title(run: Run, plot: Plot) -> str:
    """The sweep and what all its shapes have in common."""
    sweep, shapes = plot.sweep, plot.shapes
    kinds = [{s.op for s in shapes}, {s.type for s in shapes}, {layout_name(s.layout) for s in shapes}]
    if "rows" not in sweep:
        kinds += [{f"{s.rows} rows" for s in shapes}]
    common = [kind.pop() for kind in kinds if len(kind) == 1]
    return f"{sweep}: {', '.join(common)}  ({run.context.get('device', '')})"


def svg_of(figure) -> str:
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def plots(run: Run) -> Tuple[Dict[str, str], str]:
    """SVG by the plot's name, and a line to print when there is none."""
    try:
        import matplotlib

        matplotlib.use("Agg")
    except ImportError:
        return {}, f"Plots left out: {sys.executable} has no matplotlib (Debian: python3-matplotlib)."
    return {plot.name: draw(run, plot) for sweep in run.sweeps() for plot in plots_of(run, sweep)}, ""


# --- the report ------------------------------------------------------------------------------------------------------

STYLE_SHEET = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; font-size: 13px; font-variant-numeric: tabular-nums; }
td, th { padding: .15em .7em; text-align: right; border-bottom: 1px solid #ddd; }
th { background: #f4f4f4; }
td { white-space: nowrap; }
div { overflow-x: auto; }
td.text, th.text { text-align: left; }
img { width: 100%; }
.verdict { font-size: 17px; background: #eef5fb; padding: .6em 1em; border-left: 4px solid #0072B2; }
tr.marked { background: #fbeeee; }
.wrong { background: #fbeeee; border-color: #D55E00; }
details { margin: 1em 0; } pre { overflow-x: auto; background: #f4f4f4; padding: 1em; font-size: 12px; }
"""


def escaped(text: object) -> str:
    return html.escape(str(text))


def html_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    text_columns: Iterable[int] = (),
    marked: Optional[Sequence[bool]] = None,
) -> str:
    left = set(text_columns)

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=text' if i in left else ''}>{escaped(cell)}</{tag}>" for i, cell in enumerate(row)
        )

    marks = marked or [False] * len(rows)
    body = "\n".join(f"<tr{' class=marked' if mark else ''}>{cells('td', row)}</tr>" for row, mark in zip(rows, marks))
    return f"<div><table><thead><tr>{cells('th', header)}</tr></thead><tbody>\n{body}\n</tbody></table></div>"


def html_rows(run: Run, shapes: Sequence[Shape], providers: Sequence[str]) -> List[List[str]]:
    rows = []
    for shape in shapes:
        row = [f"{shape.op} {shape.type}", str(shape.rows), str(shape.cols)]
        for provider in providers:
            record = run.find(shape, provider)
            share = "" if provider == YARDSTICK or not record else f" ({share_text(run.share(shape, provider))})"
            row.append(rate_text(record.rate() if record else None) + share)
        ours = run.find(shape, SUBJECT)
        spread = f"{rate_text(ours.rate(ours.q3_s))} to {rate_text(ours.rate(ours.q1_s))}" if ours else "-"
        rows.append(row + [spread, ours.plan if ours else "-"])
    return rows


def html_sweep(run: Run, sweep: str, svgs: Dict[str, str]) -> str:
    shapes = run.shapes(sweep)
    providers = run.providers(shapes)
    header = ["operator", "rows", "N", *providers, f"{SUBJECT}, quartiles", "plan"]
    images = []
    for plot in plots_of(run, sweep):
        if plot.name in svgs:
            encoded = base64.b64encode(svgs[plot.name].encode()).decode()
            images.append(f'<img alt="plot of {escaped(plot.name)}" src="data:image/svg+xml;base64,{encoded}">')
    image = "\n".join(images)
    rows = html_table(header, html_rows(run, shapes, providers), text_columns=(0, len(header) - 1))
    return f"<h2>{escaped(sweep)}</h2>\n{image}\n<details open><summary>Table</summary>{rows}</details>"


def html_peers(run: Run) -> str:
    rows = ratio_rows(run)
    if not rows:
        return ""
    summary = html_table(PEER_HEADER, peer_rows(run), text_columns=(0, 4))
    table = html_table(RATIO_HEADER, rows, text_columns=(3, 4))
    return (
        f"<h2>Against the peers</h2>\n<p>{SUBJECT}'s speed over the peer's; below 1 the peer is faster.</p>{summary}"
        f"<details open><summary>{SUBJECT} / best peer of each shape, the worst first; GB/s</summary>{table}</details>"
    )


def html_small(run: Run) -> str:
    rows = small_table(run)
    if not rows:
        return ""
    explanation = (
        "Softmax of float: microseconds a call with warm caches. <i>plain</i>: the wall clock of many calls in a row, "
        "the host's work in it; <i>in a graph</i>: a captured graph of as many."
    )
    return f"<h2>Small calls</h2>\n<p>{explanation}</p>{html_table(rows[0], rows[1:], text_columns=(0,))}"


def html_cliffs(run: Run) -> str:
    found = cliffs(run)
    if not found:
        return ""
    table = html_table(CLIFF_HEADER, cliff_rows(found), text_columns=(0, 7), marked=[c.deep for c in found])
    return (
        f"<h2>Cliffs</h2>\n<p>{SUBJECT}'s share of copy at a size, over its share at the nearest power of two and at "
        f"the sizes measured next below and above; the worst first, cliffs marked. {escaped(cliff_summary(run))}</p>"
        f"<details open><summary>Table</summary>{table}</details>"
    )


def html_failures(run: Run) -> str:
    if not run.failures:
        return ""
    names = ("sweep", "op", "type", "layout", "rows", "cols", "provider", "what")
    rows = [[str(failure.get(name, "")) for name in names] for failure in run.failures]
    return f"<h2>Wrong or failed</h2>\n{html_table(names, rows, text_columns=range(len(names)))}"


def html_context(run: Run) -> str:
    facts = [[key, value] for key, value in run.context.items() if key != "kokkos_configuration"]
    configuration = escaped(run.context.get("kokkos_configuration", ""))
    return (
        f"<h2>Machine and build</h2>\n{html_table(['fact', 'value'], facts, text_columns=(0, 1))}"
        f"<details><summary>Kokkos configuration</summary><pre>{configuration}</pre></details>"
    )


def html_report(run: Run, svgs: Dict[str, str], notes: Sequence[str]) -> str:
    sections = [html_peers(run), html_small(run), html_cliffs(run)]
    sections += [html_sweep(run, sweep, svgs) for sweep in run.sweeps()]
    explanation = (
        "GB/s counts the bytes that any implementation must move (x once, y once), so providers compare by time; "
        "<i>copy</i> moves the same bytes; its share stands in brackets. <i>five_pass</i> is the softmax of five plain "
        "kernels: max, subtract, exp, sum, divide. Lines are medians, bands quartiles."
    )
    mark = " wrong" if run.failures else ""
    parts = [
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>KokkosNN performance</title>',
        f"<style>{STYLE_SHEET}</style></head><body>",
        f"<h1>KokkosNN on {escaped(run.context.get('device', 'an unknown device'))}</h1>",
        f"<p>{escaped(run.context.get('backend', ''))}, {escaped(run.context.get('date', ''))}, "
        f"commit {escaped(run.context.get('git', ''))}</p>",
        f'<p class="verdict{mark}">{escaped(verdict(run))}</p>',
        f"<p>{explanation}</p>",
        *(f"<p>{escaped(note)}</p>" for note in notes),
        *sections,
        html_failures(run),
        html_context(run),
        "</body></html>\n",
    ]
    return "\n".join(part for part in parts if part)


def tables(run: Run, limit: int = TABLE_LINES_PER_GROUP) -> str:
    """All that is printed before the verdict."""
    parts = [table(run, limit), cliffs_text(run, limit), small_text(run), peers_text(run, limit)]
    return "\n\n".join(part for part in parts if part)


def slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def report(folder: Path) -> None:
    run = load(folder)
    write_csv(run, folder / "results.csv")
    (folder / "results.txt").write_text(tables(run, limit=len(run.records) + 2) + "\n", encoding="utf-8")
    print(tables(run), end="\n\n", flush=True)
    svgs, no_plots = plots(run)
    notes = [note for note in (no_plots, unrest(run)) if note]
    for name, svg in svgs.items():
        (folder / f"plot_{slug(name)}.svg").write_text(svg, encoding="utf-8")
    (folder / "report.html").write_text(html_report(run, svgs, notes), encoding="utf-8")
    print("\n".join([*notes, f"Report: {(folder / 'report.html').resolve()}", verdict(run)]))


# --- the comparison --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """One shape and provider in two runs."""

    before: Record
    after: Record

    @property
    def ratio(self) -> float:
        """Speed after over speed before: below 1 is a regression."""
        return self.before.median_s / self.after.median_s

    @property
    def overlap(self) -> bool:
        """Whether the middle halves of the samples have a time in common."""
        return self.before.q1_s <= self.after.q3_s and self.after.q1_s <= self.before.q3_s

    @property
    def verdict(self) -> str:
        if self.overlap or abs(self.ratio - 1) <= NOISE:
            return ""
        return "slower" if self.ratio < 1 else "faster"


def changes(before: Run, after: Run, provider: str) -> List[Change]:
    """Regressions first."""
    pairs = [(before.find(shape, provider), after.find(shape, provider)) for shape in before.shapes()]
    return sorted((Change(b, a) for b, a in pairs if b and a), key=lambda change: change.ratio)


def change_row(before: Run, after: Run, change: Change) -> List[str]:
    shape, provider = change.before.shape, change.before.provider
    plan = f"  {change.before.plan} -> {change.after.plan}" if change.before.plan != change.after.plan else ""
    return [
        f"{change.ratio:.2f}",
        change.verdict,
        rate_text(change.before.rate()),
        rate_text(change.after.rate()),
        share_text(before.share(shape, provider)),
        share_text(after.share(shape, provider)),
        "overlap" if change.overlap else "apart",
        shape.text() + plan,
    ]


def comparison(before: Run, after: Run, provider: str = SUBJECT) -> str:
    found = changes(before, after, provider)
    if not found:
        return f"The runs have no shape of {provider} in common."
    header = ["B/A", "", "A GB/s", "B GB/s", "A of copy", "B of copy", "ranges", "shape"]
    rows = [header] + [change_row(before, after, change) for change in found]
    width = max(len(row[-1]) for row in rows)
    lines = [line.rstrip() for line in aligned([[*row[:-1], row[-1].ljust(width)] for row in rows])]
    return "\n".join([*lines, "", comparison_verdict(before, after, provider, found)])


def comparison_verdict(before: Run, after: Run, provider: str, found: Sequence[Change]) -> str:
    median = statistics.median(change.ratio for change in found)
    drift = [change.ratio for change in changes(before, after, YARDSTICK)]
    copy = f", copy itself {statistics.median(drift):.2f}" if drift else ""
    slower, faster = (sum(change.verdict == word for change in found) for word in ("slower", "faster"))
    only_one = len(set(before.shapes()) ^ set(after.shapes()))
    unmatched = f" {only_one} shapes are in one run only." if only_one else ""
    return (
        f"{provider}: B runs at a median of {median:.2f} of A's speed{copy}; beyond spread and noise {slower} slower, "
        f"{faster} faster, of {len(found)} shapes.{unmatched}"
    )


def main(arguments: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="folder with results.json")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("A", "B"), help="two such folders")
    parser.add_argument("--provider", default=SUBJECT, help=f"whose times --compare compares (default {SUBJECT})")
    options = parser.parse_args(arguments)
    if (options.folder is None) == (options.compare is None):
        parser.error("give either DIR or --compare A B")
    try:
        if options.compare:
            print(comparison(*(load(folder) for folder in options.compare), options.provider))
        else:
            report(options.folder)
    except (OSError, ValueError, KeyError) as error:
        print(f"report.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
