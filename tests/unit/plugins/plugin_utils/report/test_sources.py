# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.text import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.sources import ReportError, read
from ansible_collections.allreduce.gpu.tests.report import cluster

from tests.support.benchmark import whole


@pytest.fixture
def directory(tmp_path):
    return cluster.write(tmp_path / "reports", cluster.verification(), cluster.results())


def refused(directory):
    """The code of the problem and its sentence."""
    with pytest.raises(ReportError) as error:
        read(directory)
    (problem,) = error.value.problems
    return problem.code, describe(problem)


def test_verification_and_every_run_are_read(directory):
    verification, results, benchmark = read(directory)

    assert set(verification.nodes) == {"gpu-1", "gpu-2"}
    assert len(results) == 4
    assert benchmark is None


def test_a_run_still_going_has_no_result_yet(directory):
    (directory / "training" / "20261121T170000-2n" / "logs").mkdir(parents=True)

    assert len(read(directory)[1]) == 4


def test_no_directory(tmp_path):
    assert refused(tmp_path / "no") == (
        "no_report_directory",
        f"The report directory {tmp_path / 'no'} does not exist; run the verify playbook, which creates it, or set "
        "report_directory to the directory of its verify.json.",
    )


def test_no_verification(tmp_path):
    code, sentence = refused(tmp_path)
    assert code == "no_verification"
    assert sentence.startswith(f"{tmp_path} has no verify.json; run the verify playbook")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'{"format": 1, "nodes": {', "not JSON from line 1 column 25 on"),
        (b"", "not JSON from line 1 column 1 on"),
        (b"\xff\xfe", "it is not UTF-8 text"),
        (b"[" * 100_000, "maximum recursion depth"),
    ],
)
def test_a_broken_file_is_named_with_what_to_do(directory, content, reason):
    (directory / "verify.json").write_bytes(content)
    code, sentence = refused(directory)

    assert code == "verification_unreadable"
    assert f"{directory}/verify.json cannot be read ({reason}" in sentence
    assert sentence.endswith("run the verify playbook again.")


def test_a_broken_run_can_be_left_out(directory):
    broken = directory / "training" / "20261121T150000-1n" / "result.json"
    broken.write_text("{")

    code, sentence = refused(directory)
    assert code == "result_unreadable"
    assert sentence.endswith(f"run the train playbook again, or delete {broken.parent} to report without that run.")


def test_a_run_of_another_format_can_be_left_out(directory):
    other = directory / "training" / "20261121T150000-1n" / "result.json"
    other.write_text('{"format": 7}')

    code, sentence = refused(directory)
    assert code == "result_format"
    assert (
        f"has format 7, but this collection reads format 1; run the train playbook again, or delete {other.parent}"
        in sentence
    )


@pytest.mark.parametrize(("content", "found"), [("[]", "None"), ("{}", "None"), ('{"format": 2}', "2")])
def test_another_format_is_refused(directory, content, found):
    (directory / "verify.json").write_text(content)

    code, sentence = refused(directory)
    assert code == "verification_format"
    assert f"has format {found}, but this collection reads format 1" in sentence


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"nodes": []}, "nodes is [], but it must be a mapping"),
        ({"nodes": {"gpu-1": {"checks": [{"status": 3}]}}}, "nodes.gpu-1.checks[0].status is 3, but it must be text"),
        ({"nodes": {"gpu-1": {"gpu_node": {"gpus": [{"index": "\x1b[31mone\x1b[0m"}]}}}},
         "nodes.gpu-1.gpu_node.gpus[0].index is 'one', but it must be a whole number"),
        ({"nodes": {"gpu-1": {"gpu_node_state": {"reboot_pending": True}}}},
         "nodes.gpu-1.gpu_node_state.reboot_pending is true, but it must be a mapping"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_named_with_its_place(directory, change, told):
    (directory / "verify.json").write_text(json.dumps({"format": 1, **change}))

    assert refused(directory) == (
        "verification_wrong_value",
        f"In {directory / 'verify.json'}, {told}; run the verify playbook again.",
    )


def test_a_run_with_a_value_of_the_wrong_type_can_be_left_out(directory):
    wrong = directory / "training" / "20261121T150000-1n" / "result.json"
    wrong.write_text('{"format": 1, "nodes": "gpu-1"}')

    assert refused(directory) == (
        "result_wrong_value",
        f"In {wrong}, nodes is 'gpu-1', but it must be a list; run the train playbook again, or delete {wrong.parent} "
        "to report without that run.",
    )


def test_metrics_are_the_users_and_refuse_nothing(directory):
    changed = cluster.run("20261121T150000-1n", ["gpu-1"], "2026-11-21T15:00:00Z", "2026-11-21T15:01:30Z", 900.0)
    cluster.write(directory, cluster.verification(), [changed | {"metrics": {"epochs": "many", "mine": [None, {}]}}])

    assert {"epochs": "many", "mine": [None, {}]} in [result.metrics for result in read(directory)[1]]


def test_every_text_is_made_harmless_at_the_door(directory):
    document = cluster.verification()
    document["nodes"]["gpu-1"].update(remark="\x1b[31mred\x1b[0m", address="10.0.0.1\x00")
    document["nodes"]["\x1b[1mgpu-3"] = {"gpu_node": {"problems": ["a\r\nb"]}}
    cluster.write(directory, document, [])
    nodes = read(directory)[0].nodes

    assert (nodes["gpu-1"].remark, nodes["gpu-1"].address) == ("red", "10.0.0.1\ufffd")
    assert nodes["gpu-3"].gpu_node.problems == ("a\nb",)


def benchmark(directory, name, content):
    place = directory / "benchmarks" / name
    place.mkdir(parents=True)
    (place / "benchmark.json").write_text(content)
    return place / "benchmark.json"


def test_the_newest_benchmark_is_read(directory):
    benchmark(directory, "20261122T100000", '{"format": 7}')
    benchmark(directory, "20261123T150000", json.dumps(whole()))
    (directory / "benchmarks" / "20261124T100000").mkdir()  # still going

    found = read(directory)[2]
    assert (found.run_id, len(found.runs)) == ("20261123T150000", 4)


@pytest.mark.parametrize(
    ("content", "code", "told"),
    [
        (
            "{",
            "benchmark_unreadable",
            "cannot be read (not JSON from line 1 column 2 on); run the benchmark playbook again",
        ),
        (
            '{"format": 7}',
            "benchmark_format",
            "has format 7, but this collection reads format 1; run the benchmark playbook again",
        ),
        (
            '{"format": 1, "runs": {}}',
            "benchmark_wrong_value",
            "runs is {}, but it must be a list; run the benchmark playbook again",
        ),
    ],
)
def test_a_benchmark_that_cannot_be_read_can_be_left_out(directory, content, code, told):
    path = benchmark(directory, "20261123T150000", content)

    found, sentence = refused(directory)
    assert found == code
    assert told in sentence
    assert f"delete {path.parent} to report without that run." in sentence
