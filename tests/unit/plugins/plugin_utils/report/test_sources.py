# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.text import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.sources import ReportError, read
from ansible_collections.allreduce.gpu.tests.report import cluster


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
    verification, results = read(directory)

    assert set(verification["nodes"]) == {"gpu-1", "gpu-2"}
    assert len(results) == 4


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
        (b'{"format": 1, "nodes": {', "no JSON from line 1 column 25 on"),
        (b"", "no JSON from line 1 column 1 on"),
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
