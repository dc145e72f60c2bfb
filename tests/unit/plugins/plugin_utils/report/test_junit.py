# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import junit
from ansible_collections.allreduce.gpu.tests.report import cluster
from junitparser import Failure, JUnitXml, Skipped


def parsed(report):
    return {suite.name: suite for suite in JUnitXml.fromstring(junit.render(report).encode())}


def case(suite, name):
    return next(one for one in suite if one.name == name)


def test_a_suite_per_node_and_one_for_the_cluster_and_the_runs(report):
    suites = parsed(report)

    assert list(suites) == ["gpu-1", "gpu-2", "cluster", "training"]
    assert [(suite.tests, suite.failures, suite.skipped) for suite in suites.values()] == [
        (9, 0, 1),
        (9, 1, 2),
        (2, 0, 0),
        (4, 1, 0),
    ]


def test_totals(report):
    root = JUnitXml.fromstring(junit.render(report).encode())

    assert (root.tests, root.failures, root.errors, root.skipped) == (24, 2, 0, 3)


def test_a_failure_says_what_was_expected_and_measured(report):
    failed = case(parsed(report)["gpu-2"], "driver_version")

    (failure,) = failed.result
    assert failed.classname == "coherence"
    assert isinstance(failure, Failure)
    assert failure.message == "expected 535.261.03, measured 535.247.01"
    assert failure.text == "module and library differ; reboot the node"


def test_unknown_and_skipped_are_skipped_with_their_reason(report):
    suite = parsed(report)["gpu-2"]

    for name, message in (
        ("fabric_manager", "unknown: fabric manager state could not be read"),
        ("rdma_bandwidth", "skipped: no InfiniBand or RoCE port"),
    ):
        (found,) = case(suite, name).result
        assert isinstance(found, Skipped)
        assert found.message == message


def test_a_failed_run_brings_its_last_lines(report):
    failed = case(parsed(report)["training"], cluster.failed_run()["run_id"])

    assert failed.time == 9
    assert failed.result[0].message == "gpu-2: rank 1 ended with exit code 3"
    assert cluster.HOSTILE in failed.result[0].text
