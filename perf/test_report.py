#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
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
        row = report.table_row(run, shape, report.extras_of(run))
        self.assertEqual(row, ["2000", "1024", "204.8", "163.8", "0.80", "41.0", "0.20"])

    def test_a_missing_provider_is_a_dash(self):
        run = run_of(entry("KokkosNN"), entry("five_pass", 7))
        row = report.table_row(run, run.shapes()[0], report.extras_of(run))
        self.assertEqual(row[2:], ["-", "163.8", "-", "-", "-"])

    def test_the_best_forced_strategy_is_named(self):
        forced = [entry("team_online", median_us=160), entry("split_row", median_us=90)]
        run = run_of(*three_providers(1024, 100.0), *forced)
        self.assertEqual(report.table_row(run, run.shapes()[0], report.extras_of(run))[-2:], ["split_row", "0.89"])
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


    def test_ragged_rows_are_no_layout(self):
        run = run_of(entry(), entry(sweep="segmented", layout="skewed"))
        self.assertEqual([heading for heading, _ in report.groups(run)],
                         ["fused: softmax, f32, LayoutRight", "segmented: softmax, f32, skewed rows"])


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


def cliff_sizes(shares, provider="KokkosNN"):
    """Sizes of the sweep "cliffs" by their share of copy; copy takes 10 us a column, so that rates differ."""
    pairs = [
        (entry("copy", n, n * 10.0, sweep="cliffs"), entry(provider, n, n * 10.0 / share, sweep="cliffs"))
        for n, share in shares.items()
    ]
    return [record for pair in pairs for record in pair]


class Cliffs(unittest.TestCase):
    def test_each_size_is_held_against_its_power_of_two_and_the_sizes_next_to_it(self):
        found = {c.shape.cols: c for c in report.cliffs(run_of(*cliff_sizes({127: 0.6, 128: 0.8, 129: 0.4, 255: 0.5})))}
        self.assertAlmostEqual(found[127].power, 0.6 / 0.8)
        self.assertIsNone(found[127].below)
        self.assertAlmostEqual(found[127].above, 0.6 / 0.8)
        self.assertIsNone(found[128].power)
        self.assertAlmostEqual(found[128].below, 0.8 / 0.6)
        self.assertAlmostEqual(found[128].above, 0.8 / 0.4)
        self.assertAlmostEqual(found[129].power, 0.4 / 0.8)
        self.assertAlmostEqual(found[129].above, 0.4 / 0.5)
        self.assertIsNone(found[255].power)  # 256 was not measured
        self.assertAlmostEqual(found[255].below, 0.5 / 0.4)
        self.assertIsNone(found[255].above)

    def test_the_deepest_comes_first_and_a_size_above_its_neighbours_is_none(self):
        found = report.cliffs(run_of(*cliff_sizes({63: 0.72, 64: 0.9, 65: 0.45})))
        self.assertEqual([c.shape.cols for c in found], [65, 63, 64])
        self.assertEqual([round(c.worst, 3) for c in found], [0.5, 0.8, 1.0])

    def test_eight_percent_is_the_threshold(self):
        found = {c.shape.cols: c for c in report.cliffs(run_of(*cliff_sizes({63: 0.921, 64: 1.0, 65: 0.919})))}
        self.assertFalse(found[63].deep)
        self.assertTrue(found[65].deep)
        text = report.cliffs_text(run_of(*cliff_sizes({63: 0.921, 64: 1.0, 65: 0.919})), limit=9)
        marked = [line.split()[2] for line in text.splitlines() if line.startswith("cliff ")]
        self.assertEqual(marked, ["65"])
        self.assertIn("KokkosNN 1 of 3", text)

    def test_shares_count_and_not_rates(self):
        # The same GB/s at 64 and 65, but copy is twice as fast at 65.
        shapes = [entry("copy", 64, 50.0, sweep="cliffs"), entry("KokkosNN", 64, 100.0, sweep="cliffs")]
        shapes += [entry("copy", 65, 25.0, sweep="cliffs"), entry("KokkosNN", 65, 100.0, sweep="cliffs")]
        found = report.cliffs(run_of(*shapes))
        self.assertEqual([(c.shape.cols, round(c.worst, 6)) for c in found], [(65, 0.5), (64, 1.0)])

    def test_kinds_do_not_mix_and_other_sweeps_do_not_count(self):
        halves = [dict(e, type="f16") for e in cliff_sizes({65: 0.1})]
        elsewhere = [entry("copy", 63, 10.0), entry("KokkosNN", 63, 10.0)]
        found = report.cliffs(run_of(*cliff_sizes({64: 1.0}), *halves, *elsewhere))
        self.assertEqual([(c.shape.cols, c.worst) for c in found], [(64, 1.0), (65, 1.0)])

    def test_the_html_marks_them(self):
        text = report.html_cliffs(run_of(*cliff_sizes({63: 0.95, 64: 1.0, 65: 0.5})))
        self.assertEqual(text.count("<tr class=marked>"), 1)
        self.assertIn("8% below", text)

    def test_no_cliffs_no_section(self):
        self.assertEqual(report.cliffs_text(run_of(entry()), 9) + report.html_cliffs(run_of(entry())), "")


def with_peers(cols, ours_us, **peers_us):
    more = [entry(name.replace("_dot_", "."), cols, us) for name, us in peers_us.items()]
    return [entry("copy", cols, 80.0), entry("KokkosNN", cols, ours_us), *more]


class Peers(unittest.TestCase):
    def setUp(self):
        shapes = [with_peers(512, 100.0, torch=200.0, jax=50.0), with_peers(1024, 100.0, torch=200.0, jax=400.0)]
        self.run_ = run_of(*(record for records in shapes for record in records))

    def test_the_best_peer_of_each_shape_counts_and_the_worst_ratio_comes_first(self):
        found = report.ratios(self.run_)
        self.assertEqual(
            [(r.shape.cols, r.peer.provider, r.value) for r in found], [(512, "jax", 0.5), (1024, "torch", 2.0)]
        )
        self.assertAlmostEqual(report.geometric_mean(r.value for r in found), 1.0)

    def test_every_peer_has_its_own_mean_and_worst(self):
        rows = {row[0]: row[1:4] for row in report.peer_rows(self.run_)}
        self.assertEqual(rows["best of each shape"], ["2", "1.00", "0.50"])
        self.assertEqual(rows["torch"], ["2", "2.00", "2.00"])
        self.assertEqual(rows["jax"], ["2", "1.41", "0.50"])

    def test_neither_copy_nor_a_form_of_ours_is_a_peer(self):
        ours = [entry(name, median_us=10.0) for name in ("KokkosNN_plan", "five_pass", "split_row")]
        run = run_of(*three_providers(1024, 100.0), *ours)
        self.assertEqual(report.ratios(run), [])
        self.assertEqual(report.peers_text(run, 9) + report.html_peers(run), "")
        self.assertNotIn("peer", report.verdict(run))

    def test_the_table_the_verdict_and_the_html_name_the_best_peer(self):
        self.assertEqual(
            report.table_header(report.extras_of(self.run_))[-3:], ["best peer", "of copy", "KokkosNN / peer"]
        )
        row = report.table_row(self.run_, self.run_.shapes()[0], report.extras_of(self.run_))
        self.assertEqual(row[-3:], ["jax", "1.60", "0.50"])
        self.assertIn("1.00 times its speed (geometric mean), worst 0.50", report.verdict(self.run_))
        self.assertIn("worst first", report.html_peers(self.run_))

    def test_a_forced_strategy_is_not_taken_for_a_peer_nor_the_other_way_round(self):
        run = run_of(*with_peers(512, 100.0, torch=50.0), entry("team_online", 512, 70.0))
        self.assertEqual(report.best_forced(run, run.shapes()[0]).provider, "team_online")
        self.assertEqual(report.best_peer(run, run.shapes()[0]).provider, "torch")


class SmallCalls(unittest.TestCase):
    def test_they_are_a_table_of_microseconds_and_nothing_else(self):
        small = [entry(p, 1024, us, sweep=report.SMALL_CALLS) for p, us in (("KokkosNN", 5.25), ("torch", 7.5))]
        graph = [entry("KokkosNN", 1024, 2.5, sweep=report.SMALL_CALLS_IN_GRAPH)]
        run = run_of(*three_providers(512, 100.0), *small, *graph)
        header, plain, in_graph = report.small_table(run)
        self.assertEqual(plain, ["plain", "2000", "1024", "5.25", "7.50"])
        self.assertEqual(in_graph, ["in a graph", "2000", "1024", "2.50", "-"])
        self.assertEqual(run.sweeps(), ["fused"])
        self.assertEqual(report.ratios(run), [])
        self.assertIn("over 1 shapes", report.verdict(run))


class Plots(unittest.TestCase):
    def test_peers_split_a_sweep_into_kinds_with_a_line_a_provider(self):
        records = [
            entry(p, 256, 90.0, sweep="types", type=t) for t in ("f32", "f64") for p in ("copy", "KokkosNN", "torch")
        ]
        run = run_of(*records)
        plots = report.plots_of(run, "types")
        self.assertEqual([plot.name for plot in plots], ["types, softmax f32 right", "types, softmax f64 right"])
        self.assertEqual([line.label for line in report.plot_lines(run, plots[0])], ["copy", "KokkosNN", "torch"])

    def test_with_peers_an_operator_has_one_plot_that_names_what_tells_its_shapes_apart(self):
        def records(op, kind, layout):
            shape = dict(sweep="segmented", op=op, type=kind, layout=layout)
            return [entry(provider, 32, 90.0, **shape) for provider in ("copy", "KokkosNN", "torch")]

        kinds = [("softmax", "f32", "ragged"), ("softmax", "f32", "skewed"), ("softmax_backward", "f32", "ragged")]
        plots = report.plots_of(run_of(*(record for kind in kinds for record in records(*kind))), "segmented")
        self.assertEqual([plot.name for plot in plots], ["segmented, softmax", "segmented, softmax_backward"])
        self.assertEqual(report.place_names(plots[0].shapes), ["ragged 2000 x 32", "skewed 2000 x 32"])
        self.assertEqual(report.place_names(plots[1].shapes), ["2000 x 32"])

    def test_marks_have_a_place_each_even_where_columns_repeat(self):
        records = [entry("KokkosNN", 1024, 90.0, sweep="marks", rows=rows) for rows in (8, 64)]
        (plot,) = report.plots_of(run_of(*records), "marks")
        self.assertEqual(sorted(report.positions(plot).values()), [0, 1])


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
        small = [entry("KokkosNN", sweep=report.SMALL_CALLS)]
        everything = [*with_peers(512, 90.0, torch=100.0), *cliff_sizes({63: 0.5, 64: 1.0}), *small]
        self.write(*three_providers(1024, 100.0), *everything, failures=[wrong])
        self.run_main(self.folder)
        text = (self.folder / "report.html").read_text(encoding="utf-8")
        parser = TagBalance()
        parser.feed(text)
        self.assertEqual(parser.open, [])
        self.assertGreaterEqual(parser.rows, 3)
        for heading in ("Against the peers", "Small calls", "Cliffs", "fused", "Wrong or failed"):
            self.assertIn(f"<h2>{heading}</h2>", text)
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
