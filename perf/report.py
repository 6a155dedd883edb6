#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the results.json that kokkosnn_perf wrote into a table, a CSV file and a self-contained report with plots.

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

TABLE_LINES_PER_GROUP = 12  # longer groups are thinned on the terminal; the CSV and the HTML hold every shape
BUSY = 0.1  # a quiet machine's middle half of the samples spreads over a few percent of the median
NOISE = 0.03  # a speed ratio within 1 +- this is no change, however tight the ranges are


class Shape(NamedTuple):
    """What was measured, whoever ran it."""

    sweep: str
    op: str
    type: str
    layout: str
    rows: int
    cols: int

    def text(self) -> str:
        layout = "" if self.layout == "right" else f" Layout{self.layout.capitalize()}"
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
        return list(dict.fromkeys(r.shape for r in self.records if sweep in (None, r.shape.sweep)))

    def sweeps(self) -> List[str]:
        return list(dict.fromkeys(record.shape.sweep for record in self.records))

    def providers(self, shapes: Iterable[Shape]) -> List[str]:
        """Those that have a result for one of the shapes: the main ones first, then as they ran."""
        wanted = set(shapes)
        present = dict.fromkeys(r.provider for r in self.records if r.shape in wanted)
        return [p for p in MAIN_PROVIDERS if p in present] + [p for p in present if p not in MAIN_PROVIDERS]


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


def best_forced(run: Run, shape: Shape) -> Optional[Record]:
    """The fastest of the strategies that the planner did not choose; there with --full."""
    others = [r for p in run.providers([shape]) if p not in MAIN_PROVIDERS for r in [run.find(shape, p)] if r]
    return min(others, key=lambda record: record.median_s, default=None)


def table_row(run: Run, shape: Shape, with_forced: bool) -> List[str]:
    row = [str(shape.rows), str(shape.cols)]
    for provider in MAIN_PROVIDERS:
        record = run.find(shape, provider)
        row.append(rate_text(record.rate() if record else None))
        if provider != YARDSTICK:
            row.append(share_text(run.share(shape, provider)))
    if with_forced:
        best = best_forced(run, shape)
        row += [best.provider if best else "-", share_text(run.share(shape, best.provider) if best else None)]
    return row


def aligned(rows: Sequence[Sequence[str]]) -> List[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]


def groups(run: Run) -> List[Tuple[str, List[Shape]]]:
    """The shapes under a heading each: sweep, operator, types, layout."""
    result: Dict[str, List[Shape]] = {}
    for shape in run.shapes():
        heading = f"{shape.sweep}: {shape.op}, {shape.type}, Layout{shape.layout.capitalize()}"
        result.setdefault(heading, []).append(shape)
    return list(result.items())


def table(run: Run, limit: int = TABLE_LINES_PER_GROUP) -> str:
    with_forced = any(best_forced(run, shape) for shape in run.shapes())
    header = ["rows", "N", YARDSTICK, SUBJECT, "of copy", NAIVE, "of copy"]
    header += ["best other", "of copy"] if with_forced else []
    headings, rows = [], [header]
    for heading, shapes in groups(run):
        shown = thinned(shapes, limit)
        left_out = f" ({len(shown)} of {len(shapes)} shapes, all in results.csv)" if len(shown) < len(shapes) else ""
        headings.append((len(rows), heading + left_out))
        rows += [table_row(run, shape, with_forced) for shape in shown]
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
        f"{against_naive}; worst {shares[worst]:.2f} at {worst.text()}.{wrong}"
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
}
VARIANT_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5E3C99")
VARIANT_STYLES = [dict(color=color, marker=marker) for color, marker in zip(VARIANT_COLORS, "os^DvPX")]
LINEAR_SWEEPS = {"fused"}  # columns in equal steps; all other sweeps double them
CATEGORY_SWEEPS = {"vocabulary"}  # a handful of sizes of no order worth a scale


@dataclass
class Line:
    """One line of both panels: its records in the order of x."""

    label: str
    style: Dict[str, object]
    xs: List[float]
    records: List[Record]
    has_band: bool = True


def nearest_power_of_two(cols: int) -> int:
    return min((1 << k for k in range(cols.bit_length() + 1)), key=lambda power: abs(power - cols))


def cliff_variant(shape: Shape) -> str:
    offset = shape.cols - nearest_power_of_two(shape.cols)
    return f"N = 2^k {'+' if offset > 0 else '−'} {abs(offset)}" if offset else "N = 2^k"


def variant_of(sweep: str) -> Callable[[Shape], str]:
    """What distinguishes the lines of a sweep that compares shapes rather than providers."""
    if sweep == "cliffs":
        return cliff_variant
    return lambda shape: shape.op if sweep == "operators" else shape.type


def positions(sweep: str, shapes: Sequence[Shape]) -> Dict[Shape, float]:
    """Where a shape stands on the x axis."""
    if sweep in CATEGORY_SWEEPS:
        order = sorted({shape.cols for shape in shapes})
        return {shape: order.index(shape.cols) for shape in shapes}
    if sweep == "cliffs":
        return {shape: nearest_power_of_two(shape.cols) for shape in shapes}
    return {shape: shape.cols for shape in shapes}


def line_of(run: Run, label: str, style: Dict[str, object], provider: str, xs: Dict[Shape, float], **more) -> Line:
    found = [(x, record) for shape, x in xs.items() for record in [run.find(shape, provider)] if record]
    found.sort(key=lambda pair: pair[0])
    return Line(label, style, [x for x, _ in found], [record for _, record in found], **more)


def plot_lines(run: Run, sweep: str) -> List[Line]:
    """A line a provider; where the sweep compares shapes, a line a kind of shape, with its own copy, unnamed, beside it."""
    xs = positions(sweep, run.shapes(sweep))
    variant = variant_of(sweep)
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


def plain_number(value: float, _position: object = None) -> str:
    return f"{value:.0f}"


def set_x_axis(axes, sweep: str, shapes: Sequence[Shape]) -> None:
    from matplotlib import ticker

    axes.set_xlabel("N (columns), ±1 around 2^k" if sweep == "cliffs" else "N (columns)")
    if sweep in CATEGORY_SWEEPS:
        cols = sorted({shape.cols for shape in shapes})
        axes.set_xticks(range(len(cols)), [str(c) for c in cols])
        axes.set_xlim(-0.4, len(cols) - 0.6)
        return
    if sweep in LINEAR_SWEEPS:
        axes.set_xlim(left=0)
        return
    # A tick where something was measured, and nowhere else.
    ticks = sorted(set(positions(sweep, shapes).values()))
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_locator(ticker.FixedLocator(ticks))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(plain_number))
    if len(ticks) > 7:
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


def draw_sweep(run: Run, sweep: str) -> str:
    """Both panels of a sweep as SVG."""
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    lines = plot_lines(run, sweep)
    labels = [line.label for line in lines if line.label]
    by_variant = len(labels) < len(lines)
    legend_columns = 7
    legend_share = 0.02 + 0.055 * -(-(len(labels) + by_variant) // legend_columns)
    figure = Figure(figsize=(11, 4.8), constrained_layout=True)
    figure.get_layout_engine().set(rect=(0.005, legend_share, 0.99, 0.98 - legend_share), wspace=0.04)
    speed, share = figure.subplots(1, 2)
    draw_speed(speed, lines)
    draw_share(share, lines, run)
    for axes in (speed, share):
        set_x_axis(axes, sweep, run.shapes(sweep))
        axes.grid(True, color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title(run, sweep), fontsize=12)
    handles, names = speed.get_legend_handles_labels()
    if by_variant:
        handles += [Line2D([], [], **dict(STYLES[YARDSTICK], linewidth=1))]
        names += [f"{YARDSTICK}, in the same colour"]
    figure.legend(handles, names, loc="lower center", ncol=legend_columns, frameon=False)
    return svg_of(figure)


def spreads(records: Sequence[Record]) -> Tuple[List[float], List[float], List[float]]:
    """Seconds of the line and of the edges of its band."""
    return [r.median_s for r in records], [r.q3_s for r in records], [r.q1_s for r in records]


def title(run: Run, sweep: str) -> str:
    """The sweep and what all its shapes have in common."""
    shapes = run.shapes(sweep)
    kinds = [{s.op for s in shapes}, {s.type for s in shapes}, {f"Layout{s.layout.capitalize()}" for s in shapes}]
    if "rows" not in sweep:
        kinds += [{f"{s.rows} rows" for s in shapes}]
    common = [kind.pop() for kind in kinds if len(kind) == 1]
    return f"{sweep}: {', '.join(common)}  ({run.context.get('device', '')})"


def svg_of(figure) -> str:
    stream = io.StringIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()


def plots(run: Run) -> Tuple[Dict[str, str], str]:
    """SVG by sweep, and a line to print when there is none."""
    try:
        import matplotlib

        matplotlib.use("Agg")
    except ImportError:
        return {}, f"Plots left out: {sys.executable} has no matplotlib (Debian: python3-matplotlib)."
    return {sweep: draw_sweep(run, sweep) for sweep in run.sweeps()}, ""


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
.wrong { background: #fbeeee; border-color: #D55E00; }
details { margin: 1em 0; } pre { overflow-x: auto; background: #f4f4f4; padding: 1em; font-size: 12px; }
"""


def escaped(text: object) -> str:
    return html.escape(str(text))


def html_table(header: Sequence[str], rows: Sequence[Sequence[str]], text_columns: Iterable[int] = ()) -> str:
    left = set(text_columns)

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{' class=text' if i in left else ''}>{escaped(cell)}</{tag}>" for i, cell in enumerate(row)
        )

    body = "\n".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
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


def html_sweep(run: Run, sweep: str, svg: Optional[str]) -> str:
    shapes = run.shapes(sweep)
    providers = run.providers(shapes)
    header = ["operator", "rows", "N", *providers, f"{SUBJECT}, quartiles", "plan"]
    image = ""
    if svg:
        encoded = base64.b64encode(svg.encode()).decode()
        image = f'<img alt="plot of the sweep {escaped(sweep)}" src="data:image/svg+xml;base64,{encoded}">'
    rows = html_table(header, html_rows(run, shapes, providers), text_columns=(0, len(header) - 1))
    return f"<h2>{escaped(sweep)}</h2>\n{image}\n<details open><summary>Table</summary>{rows}</details>"


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
    sections = [html_sweep(run, sweep, svgs.get(sweep)) for sweep in run.sweeps()]
    explanation = (
        "GB/s counts the bytes that any implementation must move (x once, y once), so providers compare by time; "
        "<i>copy</i> moves the same bytes; its share stands in brackets. <i>five_pass</i> is the softmax of five plain kernels: "
        "max, subtract, exp, sum, divide. Lines are medians, bands quartiles."
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


def slug(sweep: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", sweep.lower()).strip("_")


def report(folder: Path) -> None:
    run = load(folder)
    write_csv(run, folder / "results.csv")
    (folder / "results.txt").write_text(table(run, limit=len(run.records) + 2) + "\n", encoding="utf-8")
    print(table(run), end="\n\n", flush=True)
    svgs, no_plots = plots(run)
    notes = [note for note in (no_plots, unrest(run)) if note]
    for sweep, svg in svgs.items():
        (folder / f"plot_{slug(sweep)}.svg").write_text(svg, encoding="utf-8")
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
