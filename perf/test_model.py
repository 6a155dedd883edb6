#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The KokkosNN authors
# SPDX-License-Identifier: Apache-2.0
"""Checks model.py on made-up measurements: it finds what they were made of, and says so where they were not."""

import contextlib
import csv
import io
import json
import tempfile
import unittest
from pathlib import Path

import model
from model import Link, Model

COPY = 1e12
SHARE = 0.5
LATENCY = 2e-6
SLOPE = 1e-10


def point(operator="softmax", ranks=1, cols=8192, scaling="strong", mode="in_order", seconds=None, rows=1000, **more):
    link = Link(LATENCY, SLOPE)
    truth = Model(COPY, {(operator, "f32"): SHARE}, {"in_order": link, "allreduce": link})
    exact = truth.seconds(operator, "f32", mode, rows, cols, ranks, 1)
    alone = truth.seconds(operator, "f32", mode, rows, -(-cols // ranks), 1, 1)
    times = [seconds or exact] * ranks
    entry = dict(operator=operator, type="f32", scaling=scaling, mode=mode, rows=rows, cols=cols, ranks=ranks, blocks=1)
    entry.update(bytes=2 * rows * cols * 4, seconds=times, mpi_seconds=[1e-6] * ranks, kernel_seconds=[alone] * ranks)
    return {**entry, **more}


def measured(points):
    merges = [
        dict(ranks=r, mode=mode, pairs=n, seconds=[model.doublings(r) * (LATENCY + 16 * n * SLOPE)] * r)
        for r in (2, 4)
        for mode in ("in_order", "allreduce")
        for n in (1, 256, 65536)
    ]
    copies = [dict(ranks=r, bytes=10**9, seconds=[1e-3] * r) for r in (1, 2, 4)]
    context = {"device": "a <fast> device", "ranks": "4"}
    return {"context": context, "points": list(points), "merges": merges, "copies": copies}


def both_scalings():
    points = [point(mode=mode) for mode in ("allreduce", "in_order")]
    points += [point(ranks=r) for r in (2, 4)]
    return points + [point(ranks=r, cols=2048 * r, scaling="weak") for r in (1, 2)]


class Fit(unittest.TestCase):
    def test_it_finds_what_the_measurements_were_made_of(self):
        found = Model.of(measured(both_scalings()))
        self.assertAlmostEqual(found.copy / COPY, 1)
        self.assertAlmostEqual(found.share["softmax", "f32"], SHARE)
        for mode in ("in_order", "allreduce"):
            self.assertAlmostEqual(found.links[mode].latency / LATENCY, 1, places=6)
            self.assertAlmostEqual(found.links[mode].seconds_a_byte / SLOPE, 1, places=6)

    def test_more_ranks_are_not_used_to_fit(self):
        points = both_scalings()
        points[-1] = {**points[-1], "seconds": [1.0, 1.0], "kernel_seconds": [1.0, 1.0]}
        self.assertEqual(Model.of(measured(points)), Model.of(measured(both_scalings())))

    def test_neither_latency_nor_slope_is_negative(self):
        self.assertEqual(model.fit_line([(16, 2e-6), (1600, 1e-6)]).seconds_a_byte, 0)
        self.assertEqual(model.fit_line([(16, 1e-9), (1600, 2e-6)]).latency, 0)


class Prediction(unittest.TestCase):
    def setUp(self):
        self.model = Model.of(measured(both_scalings()))

    def seconds(self, ranks, rows=1000, cols=8192, blocks=1, operator="softmax"):
        return self.model.seconds(operator, "f32", "in_order", rows, cols, ranks, blocks)

    def test_one_rank_moves_its_bytes_and_merges_nothing(self):
        self.assertAlmostEqual(self.seconds(1), 3 * 1000 * 8192 * 4 / (COPY * SHARE))

    def test_a_merge_takes_a_message_for_every_doubling(self):
        kernels = 3 * 1000 * 1024 * 4 / (COPY * SHARE)
        self.assertAlmostEqual(self.seconds(8), kernels + 3 * (LATENCY + 16000 * SLOPE))
        # 7 ranks: three hand over, four double twice, three get the result
        self.assertAlmostEqual(self.seconds(7), 3 * 1000 * 1171 * 4 / (COPY * SHARE) + 4 * (LATENCY + 16000 * SLOPE))

    def test_blocks_hide_all_merges_but_the_last_behind_enough_kernels(self):
        whole, blocks = self.seconds(2, cols=2**20), self.seconds(2, cols=2**20, blocks=4)
        self.assertAlmostEqual(whole - blocks, 16000 * SLOPE * 3 / 4)
        self.assertGreater(self.seconds(2, cols=2, blocks=4), self.seconds(2, cols=2))  # nothing to hide behind

    def test_a_large_reduction_goes_round_instead(self):
        link = Link(1e-6, 1e-9)
        self.assertEqual(link.merge("allreduce", 1024, 16), link.merge("in_order", 1024, 16))
        self.assertLess(link.merge("allreduce", 1024, 10**6), link.merge("in_order", 1024, 10**6))
        self.assertEqual(link.merge("in_order", 1024, 10**6), 10 * link.message(10**6))

    def test_by_nccl_a_merge_is_one_gather_that_hides_behind_nothing(self):
        data = measured(both_scalings())
        for r in (2, 4):
            for n in (1, 256, 65536):
                seconds = LATENCY + (r - 1) * 16 * n * SLOPE
                data["merges"].append(dict(ranks=r, mode="nccl", pairs=n, seconds=[seconds] * r))
        found = Model.of(data)
        self.assertAlmostEqual(found.links["nccl"].latency / LATENCY, 1, places=6)
        self.assertAlmostEqual(found.links["nccl"].seconds_a_byte / SLOPE, 1, places=6)
        kernels = 3 * 1000 * 2**18 * 4 / (COPY * SHARE)
        for blocks in (1, 4):
            predicted = found.seconds("softmax", "f32", "nccl", 1000, 2**20, 4, blocks)
            self.assertAlmostEqual(predicted, kernels + blocks * LATENCY + 3 * 16000 * SLOPE)


class Report(unittest.TestCase):
    def report(self, data):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "scaling.json").write_text(json.dumps(data))
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                status = model.main([folder])
            rows = list(csv.DictReader((Path(folder) / "scaling.csv").read_text().splitlines()))
            return status, out.getvalue(), rows, (Path(folder) / "scaling.html").read_text()

    def test_points_of_more_ranks_are_compared_with_the_model(self):
        status, text, rows, page = self.report(measured(both_scalings()))
        self.assertEqual(status, 0)
        self.assertIn("within 1.00 to 1.00 of 4 measured points", text)
        self.assertEqual([r["model / measured"] for r in rows if r["ranks"] == "1"], ["-"] * 3)
        self.assertIn("a &lt;fast&gt; device", page)
        self.assertIn("to 16384 ranks", page)

    def test_the_slowest_rank_counts_and_is_named(self):
        slow = point(ranks=4)
        slow["seconds"] = [1e-3, 1e-3, 4e-3, 1e-3]
        rows = self.report(measured([point(mode="allreduce"), slow]))[2]
        self.assertEqual(rows[1]["slowest rank"], "2")
        self.assertEqual(rows[1]["us of the slowest rank"], "4000.0")
        self.assertEqual(rows[1]["GB/s of all"], f"{1e-9 * 2 * 1000 * 8192 * 4 / 4e-3:.1f}")

    def test_efficiency_is_strong_and_weak_against_one_rank(self):
        points = [point(seconds=8.0), point(ranks=4, seconds=4.0), point(cols=2048, scaling="weak", seconds=3.0)]
        rows = self.report(measured([point(mode="allreduce"), *points]))[2]
        found = {(r["scaling"], r["ranks"]): r["efficiency"] for r in rows if r["merge"] == "in_order"}
        self.assertEqual(found["strong", "4"], "0.50")
        self.assertEqual(found["weak", "4"], "0.75")

    def test_a_wrong_result_is_the_verdict(self):
        data = measured(both_scalings())
        data["failures"] = [dict(operator="softmax")]
        status, text = self.report(data)[:2]
        self.assertEqual(status, 1)
        self.assertIn("1 results were WRONG", text)

    def test_one_rank_alone_is_said_to_check_nothing(self):
        data = measured([point(mode="allreduce")])
        data["merges"] = []
        self.assertIn("nothing to check the model with", self.report(data)[1])


if __name__ == "__main__":
    unittest.main()
