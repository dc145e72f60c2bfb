# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.watching import Sample, Watching
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import courses
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.sources import watched
from ansible_collections.allreduce.gpu.tests.report import cluster

QUANTITIES = ("utilization_percent", "temperature_celsius")


def node(name, *series, begin=100.0):
    """A node: of each GPU its utilisation at every second; 40 degrees and a tenth of that."""
    samples = [
        Sample(begin + at, tuple((value, None if value is None else 40 + value / 10) for value in values))
        for at, values in enumerate(zip(*series, strict=True))
    ]
    return Watching(name, QUANTITIES, tuple(f"0000:{number:02x}:00.0" for number in range(len(series))), tuple(samples))


def test_the_median_and_the_range_of_all_gpus_over_the_time_of_the_run():
    found = courses.build("r1", "train.py", [node("a", [0, 90, 100], [0, 80, 100]), node("b", [10, 70, None])])
    assert (found.nodes, found.gpus, found.seconds, found.idle) == (("a", "b"), 3, 2.0, ())
    used, heat = found.courses
    assert (used.title, used.unit, used.least, used.most) == ("Utilisation", "%", 0, 100)
    assert [(one.least, one.median, one.most) for one in used.moments] == [(0, 0, 10), (70, 80, 90), (100, 100, 100)]
    assert (used.moments[0].at, used.moments[-1].at) == (0, 100)
    assert heat.title == "Temperature"


def test_a_long_run_is_drawn_in_spans():
    found = courses.build("r1", "train.py", [node("a", list(range(100)) * 100)])
    assert len(found.courses[0].moments) == courses.MOMENTS
    assert {one.least for one in found.courses[0].moments} <= set(range(100))


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([], None),
        ([node("a", [None, None])], None),
        ([Watching("a", ("fan_percent",), ("0000:00:00.0",), (Sample(1.0, ((30,),)),))], None),
    ],
)
def test_where_no_gpu_answered_there_is_nothing_to_draw(nodes, expected):
    assert courses.build("r1", "train.py", nodes) is expected


def test_gpus_that_waited_are_named():
    found = courses.build("r1", "train.py", [node("a", [90, 90], [95, 95], [20, 30]), node("b", [92, 92])])
    assert found.idle == ("a 0000:02:00.0: 25 % used on average, 91 % is usual here",)


def test_pictures_stay_in_their_box():
    found = courses.build("r1", "train.py", [node("a", [0, 90, 100], [0, 80, 100])])
    for picture in courses.pictures(found):
        points = [point.split(",") for point in f"{picture.band} {picture.line}".split()]
        assert all(0 <= float(number) <= 100 for point in points for number in point), picture
    assert courses.pictures(found)[0].text == "median 85, from 0 to 100 %"
    assert courses.pictures(None) == []


def test_values_that_never_change_are_a_line():
    (used, *_rest) = courses.pictures(courses.build("r1", "train.py", [node("a", [50, 50])]))
    assert used.line == "0,50.0 100,50.0"


def test_gpus_that_did_nothing_are_a_sentence_and_no_curves():
    found = courses.build("r1", "train.py", [node("a", [0, 0], [0, None])])
    assert (found.courses, found.gpus) == ((), 2)
    assert found.idle == ("None of these GPUs computed anything meanwhile.",)
    assert courses.build("r1", "train.py", [node("a", [0, 1])]).courses


@pytest.mark.parametrize(("device", "drawn"), [("cpu", False), ("cuda", True), ("NVIDIA A40", True), ("", True)])
def test_the_gpus_of_a_run_on_processors_are_not_drawn(device, drawn):
    run = cluster.run("r1", ["gpu-1"], "2026-11-21T15:00:00Z", "2026-11-21T15:01:00Z", 900.0)
    run["metrics"]["device"] = device
    report = cluster.build_report(cluster.verification(), [run], "Title", watched=cluster.watched)
    assert (report.courses is not None) is drawn


def test_the_newest_run_that_was_watched_is_shown(tmp_path):
    results = cluster.results()
    directory = cluster.write(tmp_path / "reports", cluster.verification(), results)
    for at, run in enumerate(sorted(one["run_id"] for one in results)[:2]):
        logs = directory / "training" / run / "logs" / "gpu-1"
        logs.mkdir(parents=True)
        lines = [{"quantities": QUANTITIES, "gpus": ["0000:00:00.0"]}, [1.0 + at, [[93, 50]]]]
        (logs / "gpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    report = cluster.build_report(cluster.verification(), results, "Title", watched=lambda run: watched(directory, run))
    expected = next(run.run_id for run in report.runs if watched(directory, run.run_id))
    assert report.courses.run_id == expected
    assert watched(directory, "../" + directory.name) == []
