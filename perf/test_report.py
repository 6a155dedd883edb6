#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks report.py on made-up results: a wrong table, or a regression that goes unseen, is worse than none."""

import contextlib
import csv
import importlib.util
import io
import json
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

import report

US = 1e-6


def entry(provider="KokkosNN", cols=1024, median_us=100.0, spread=0.02, **more):
    """One record of results.json: 2000 rows of f32, 16 kB a column moved."""
    seconds = median_us * US
    times = dict(median_s=seconds, q1_s=seconds * (1 - spread), q3_s=seconds * (1 + spread))
    times.update(min_s=seconds * (1 - 2 * spread), max_s=seconds * (1 + 2 * spread))
    shape = dict(sweep="fused", op="softmax", type="f32", layout="right", rows=2000, nominal_rows=4096, cols=cols)
    return {**shape, "provider": provider, "plan": "plan", "bytes": 16000 * cols, "samples": 9, **times, **more}


def results(entries, failures=()):
    context = {"device": "a <fast> device", "backend": "Test", "date": "2026-01-01", "git": "abc"}
    return {"schema": 1, "context": context, "records": list(entries), "failures": list(failures)}


def run_of(*entries, failures=()):
    data = results(entries, failures)
    return report.Run(data["context"], [report.to_record(e) for e in data["records"]], data["failures"])


def three_providers(cols, ours_us):
    return [entry("copy", cols, 80.0), entry("KokkosNN", cols, ours_us), entry("five_pass", cols, 400.0)]


class Table(unittest.TestCase):
    def test_rates_count_the_bytes_that_must_move(self):
        run = run_of(*three_providers(1024, 100.0))
        shape = run.shapes()[0]
        row = report.table_row(run, shape, False)
        self.assertEqual(row, ["2000", "1024", "204.8", "163.8", "0.80", "41.0", "0.20"])

    def test_a_missing_provider_is_a_dash(self):
        run = run_of(entry("KokkosNN"))
        self.assertEqual(report.table_row(run, run.shapes()[0], False)[2:], ["-", "163.8", "-", "-", "-"])

    def test_the_best_forced_strategy_is_named(self):
        forced = [entry("team_online", median_us=160), entry("split_row", median_us=90)]
        run = run_of(*three_providers(1024, 100.0), *forced)
        self.assertEqual(report.table_row(run, run.shapes()[0], True)[-2:], ["split_row", "0.89"])
        self.assertIn("best other", report.table(run))

    def test_long_groups_are_thinned_to_their_ends_and_say_so(self):
        run = run_of(*(e for cols in range(1, 41) for e in three_providers(cols, 100.0)))
        text = report.table(run, limit=5)
        self.assertIn("5 of 40 shapes", text)
        shown = [line.split()[1] for line in text.splitlines() if line.split()[:1] == ["2000"]]
        self.assertEqual((len(shown), shown[0], shown[-1]), (5, "1", "40"))

    def test_columns_are_aligned(self):
        run = run_of(*three_providers(64, 100.0), *three_providers(131072, 100.0))
        widths = {len(line) for line in report.table(run).splitlines() if line.strip().startswith(("2000", "rows"))}
        self.assertEqual(len(widths), 1)


class Verdict(unittest.TestCase):
    def test_names_median_naive_and_worst(self):
        run = run_of(*three_providers(512, 100.0), *three_providers(1024, 160.0), *three_providers(2048, 80.0))
        text = report.verdict(run)
        self.assertIn("median of 0.80 of copy over 3 shapes", text)
        self.assertIn("4.0 times the five-pass", text)
        self.assertIn("worst 0.50 at fused: softmax f32 2000 x 1024", text)

    def test_wrong_results_are_shouted(self):
        self.assertIn("1 RESULTS", report.verdict(run_of(*three_providers(512, 100.0), failures=[{"what": "row 0"}])))

    def test_a_busy_machine_is_told_and_a_quiet_one_is_not(self):
        self.assertEqual(report.unrest(run_of(entry(spread=0.02))), "")
        self.assertIn("spreads over 60%", report.unrest(run_of(entry(spread=0.3))))

    def test_no_yardstick_no_judgement(self):
        self.assertIn("nothing to judge", report.verdict(run_of(entry("KokkosNN"))))


class Compare(unittest.TestCase):
    def setUp(self):
        self.before = run_of(*(e for cols in (256, 512, 1024, 2048) for e in three_providers(cols, 100.0)))
        times = {256: 101.0, 512: 60.0, 1024: 200.0, 2048: 100.0}
        self.after = run_of(*(e for cols, ours in times.items() for e in three_providers(cols, ours)))

    def test_an_injected_regression_comes_first(self):
        found = report.changes(self.before, self.after, "KokkosNN")
        self.assertEqual([change.before.shape.cols for change in found], [1024, 256, 2048, 512])
        self.assertAlmostEqual(found[0].ratio, 0.5)
        self.assertEqual([change.verdict for change in found], ["slower", "", "", "faster"])

    def test_the_text_counts_and_marks_it(self):
        text = report.comparison(self.before, self.after)
        first = text.splitlines()[1]
        self.assertTrue(first.strip().startswith("0.50  slower"), first)
        self.assertIn("2000 x 1024", first)
        self.assertIn("1 slower, 1 faster, of 4 shapes", text)
        self.assertIn("copy itself 1.00", text)

    def test_wide_ranges_are_no_regression(self):
        before, after = run_of(entry(median_us=100, spread=0.2)), run_of(entry(median_us=120, spread=0.2))
        (change,) = report.changes(before, after, "KokkosNN")
        self.assertTrue(change.overlap)
        self.assertEqual(change.verdict, "")

    def test_a_tight_but_tiny_change_is_noise(self):
        (change,) = report.changes(run_of(entry(spread=0.001)), run_of(entry(median_us=102, spread=0.001)), "KokkosNN")
        self.assertFalse(change.overlap)
        self.assertEqual(change.verdict, "")

    def test_a_changed_plan_and_unmatched_shapes_are_told(self):
        text = report.comparison(run_of(entry(plan="lanes")), run_of(entry(plan="team"), entry(cols=7)))
        self.assertIn("lanes -> team", text)
        self.assertIn("1 shapes are in one run only", text)

    def test_nothing_in_common(self):
        self.assertIn("no shape", report.comparison(run_of(entry(cols=7)), run_of(entry(cols=8))))


class TagBalance(HTMLParser):
    VOID = {"meta", "img"}

    def __init__(self):
        super().__init__()
        self.open, self.rows = [], 0

    def handle_starttag(self, tag, attrs):
        self.rows += tag == "tr"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, tag


class Folder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def write(self, *entries, failures=()):
        (self.folder / "results.json").write_text(json.dumps(results(entries, failures)), encoding="utf-8")

    def run_main(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = report.main([str(argument) for argument in arguments])
        return status, out.getvalue(), err.getvalue()

    def test_every_file_is_written_and_the_verdict_comes_last(self):
        cliffs = [entry(p, n, 90.0, sweep="cliffs") for n in (127, 128, 129) for p in ("copy", "KokkosNN")]
        sizes = [entry(p, n, 90.0, sweep="vocabulary") for n in (32000, 50257) for p in ("copy", "KokkosNN")]
        self.write(*three_providers(1024, 100.0), *cliffs, *sizes)
        status, out, _ = self.run_main(self.folder)
        self.assertEqual(status, 0)
        self.assertTrue(out.splitlines()[-1].startswith("KokkosNN moves a median of"))
        self.assertIn("report.html", out.splitlines()[-2])
        with (self.folder / "results.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 3 + 6 + 4)
        self.assertAlmostEqual(float(rows[1]["share_of_copy"]), 0.8)
        lines = (self.folder / "results.txt").read_text(encoding="utf-8").splitlines()
        self.assertEqual(sum(line.split()[:1] == ["2000"] for line in lines), 1 + 3 + 2)

    @unittest.skipUnless(importlib.util.find_spec("matplotlib"), "no matplotlib")
    def test_a_plot_a_sweep_and_each_line_in_its_legend(self):
        types = [entry(p, 256, 90.0, sweep="types", type=t) for t in ("f32", "f64") for p in ("copy", "KokkosNN")]
        run = run_of(*three_providers(1024, 100.0), *types)
        with mock.patch("matplotlib.figure.Figure.legend", autospec=True) as legend:
            svgs, _ = report.plots(run)
        self.assertEqual(list(svgs), ["fused", "types"])
        names = [call.args[2] for call in legend.call_args_list]
        self.assertEqual(names, [["copy", "KokkosNN", "five_pass"], ["f32", "f64", "copy, in the same colour"]])

    def test_the_report_is_well_formed_and_escapes(self):
        wrong = dict(sweep="fused", op="softmax", provider="KokkosNN", rows=1, cols=1, what="row 0: 1 < 2")
        self.write(*three_providers(1024, 100.0), failures=[wrong])
        self.run_main(self.folder)
        text = (self.folder / "report.html").read_text(encoding="utf-8")
        parser = TagBalance()
        parser.feed(text)
        self.assertEqual(parser.open, [])
        self.assertGreaterEqual(parser.rows, 3)
        self.assertIn("a &lt;fast&gt; device", text)
        self.assertIn("1 &lt; 2", text)
        self.assertNotIn('src="http', text)

    def test_a_folder_without_results_is_an_error_and_not_a_traceback(self):
        status, _, err = self.run_main(self.folder)
        self.assertEqual(status, 2)
        self.assertIn("results.json", err)

    def test_compare_reads_two_folders(self):
        self.write(*three_providers(1024, 100.0))
        status, out, _ = self.run_main("--compare", self.folder, self.folder)
        self.assertEqual(status, 0)
        self.assertIn("0 slower, 0 faster, of 1 shapes", out)


if __name__ == "__main__":
    unittest.main()
