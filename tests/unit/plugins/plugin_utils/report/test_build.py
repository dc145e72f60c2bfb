# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import functools
import json

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.text import describe_all
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import document, html, junit
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.sources import ReportError
from ansible_collections.allreduce.gpu.tests.report import cluster, simulated
from hypothesis import given
from hypothesis import strategies as st

from tests.support.benchmark import whole


@pytest.fixture
def verification():
    """Two nodes on which all is well."""
    nodes = {name: cluster.node(name, f"10.0.0.{at}") for at, name in enumerate(("gpu-1", "gpu-2"))}
    return {"format": 1, "finished": "2026-11-21T15:30:00Z", "nodes": nodes, "cluster_checks": []}


@pytest.fixture
def results():
    return cluster.results()[1:3]


def test_all_well(verification, results):
    verdict = cluster.build_report(verification, results, "A").verdict

    assert verdict.status == "passed"
    assert verdict.sentences == (
        "2 nodes, 18 checks: 16 passed, 0 failed and 2 skipped.",
        "What was measured is installed as planned.",
        "train_ddp.py trained on 1 and 2 nodes: 1,212 and 2,255 samples/s, scaling efficiency 93%.",
    )


@pytest.mark.parametrize(
    ("said", "sentences"),
    [
        ((True, True), []),
        ((True, False), ["Whether GPUs compute was not checked on 1 node (verify_gpu_compute: false)."]),
        ((False, False), ["Whether GPUs compute was not checked on 2 nodes (verify_gpu_compute: false)."]),
    ],
)
def test_the_report_says_where_no_gpu_had_to_compute(verification, results, said, sentences):
    for node, compute in zip(verification["nodes"].values(), said, strict=True):
        node["gpu_compute"] = compute
    found = cluster.build_report(verification, results, "A").verdict.sentences
    assert [sentence for sentence in found if "compute" in sentence] == sentences


def test_a_failed_check_fails_the_report(verification, results):
    verification["nodes"]["gpu-2"]["checks"][0]["status"] = "failed"

    assert cluster.build_report(verification, results, "A").verdict.status == "failed"


@pytest.mark.parametrize("status", ["unknown", "fine", None])
def test_what_is_not_known_is_no_success(verification, results, status):
    verification["nodes"]["gpu-2"]["checks"][0]["status"] = status
    report = cluster.build_report(verification, results, "A")

    assert report.verdict.status == "incomplete"
    assert report.verdict.checks["unknown"] == 1


def test_a_difference_fails_the_report_as_it_fails_the_verification(verification, results):
    node = verification["nodes"]["gpu-2"]
    node["gpu_node_state"]["packages"].pop("nvidia-driver")
    cluster.verify_again(node, "gpu-2")
    verdict = cluster.build_report(verification, results, "A").verdict

    assert verdict.status == "failed"
    assert verdict.checks["failed"] == 1
    assert verdict.sentences[1] == "1 difference between plan and installation on 1 node."


def test_what_was_not_measured_is_no_difference(verification, results):
    node = verification["nodes"]["gpu-2"]
    node["comparisons"] = cluster.comparisons(node["gpu_stack"], {})
    sentences = cluster.build_report(verification, results, "A").verdict.sentences

    assert sentences[1:3] == (
        "What was measured is installed as planned.",
        f"{len(node['comparisons'])} parts of the plan could not be measured on 1 node.",
    )


def test_an_efficiency_on_shared_hardware_says_so_in_the_same_sentence(verification, results):
    for result in results:
        result["metrics"]["device"] = "cpu"
    for node in verification["nodes"].values():
        node["gpu_node_state"]["boot_id"] = "0f1e2d3c"
    report = cluster.build_report(verification, results, "A")
    caveat = "The nodes share the processors of one machine: this efficiency says nothing about GPUs or a network."

    assert report.verdict.sentences[-1].endswith(f"scaling efficiency 93%. {caveat}")
    assert report.scaling[0].caveat == caveat
    verification["nodes"]["gpu-2"]["gpu_node_state"]["boot_id"] = "4b5a6978"
    assert "share" not in cluster.build_report(verification, results, "A").verdict.sentences[-1]


def test_a_curve_over_nodes_of_one_machine_says_so(verification):
    measured = whole()
    names = next(run["nodes"] for run in measured["runs"] if run["name"] == "nodes")
    verification["nodes"] = {name: cluster.node(name, "10.0.0.1") for name in names}
    assert cluster.build_report(verification, [], "A", measured).benchmark.caveat == ""
    for node in verification["nodes"].values():
        node["gpu_node_state"]["boot_id"] = "0f1e2d3c"
    found = cluster.build_report(verification, [], "A", measured).benchmark.caveat
    assert found == "The nodes share one machine: this efficiency says nothing about a network."


def test_the_report_says_what_it_is_of_and_by_what(verification):
    verification |= {"inventory": "cluster/hosts.yml", "collection": "1.2.3"}
    report = cluster.build_report(verification, [], "A")
    assert (report.inventory, report.collection) == ("cluster/hosts.yml", "1.2.3")


def test_a_failed_run_fails_the_report_until_a_newer_one_succeeds(verification, results):
    failed = cluster.failed_run()
    newer = cluster.run("20261121T160000-2n", ["gpu-1", "gpu-2"], "2026-11-21T16:00:00Z", "2026-11-21T16:01:00Z", 10)

    assert cluster.build_report(verification, [*results, failed], "A").verdict.status == "failed"
    assert (
        cluster.build_report(verification, [*results, failed, newer | {"script": "finetune.py"}], "A").verdict.status
        == "passed"
    )


def test_without_training_the_report_is_incomplete(verification):
    verdict = cluster.build_report(verification, [], "A").verdict

    assert verdict.status == "incomplete"
    assert verdict.sentences[-1] == "No training run was found."


def test_a_run_without_throughput_is_told(verification, results):
    results[0]["metrics"] = None

    sentences = cluster.build_report(verification, results[:1], "A").verdict.sentences
    assert sentences[-1] == "train_ddp.py trained on 1 node, without reporting its throughput."


def test_checks_stand_by_category_and_failed_first(verification):
    checks = verification["nodes"]["gpu-1"]["checks"]
    checks.reverse()
    checks[-2]["status"] = "failed"
    found = cluster.build_report(verification, [], "A").nodes[0].checks

    assert [check.category for check in found[:4]] == ["coherence", "coherence", "health", "health"]
    assert [check.status for check in found[:2]] == ["failed", "passed"]


def test_the_time_is_the_newest_of_the_inputs(verification):
    late = cluster.failed_run()

    assert cluster.build_report(verification, [], "A").finished == "2026-11-21T15:30:00Z"
    assert cluster.build_report(verification, [late], "A").finished == late["finished"]


def test_nodes_stand_in_natural_order(verification):
    verification["nodes"] = {name: {} for name in ("gpu-10", "gpu-9", "gpu-1")}

    assert [node.name for node in cluster.build_report(verification, [], "A").nodes] == ["gpu-1", "gpu-9", "gpu-10"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def _paths(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from _paths(inner, (*path, key))


@functools.cache
def valid():
    """Documents of a cluster that was set up, and of a simulated machine with findings of every kind."""
    simulated_machines = simulated.verification(**{"gpu-1": "broken"})
    return tuple(
        {"verification": verification, "results": cluster.results()}
        for verification in (cluster.verification(), simulated_machines)
    )


@functools.cache
def places():
    """[(number of the document, path)]; not the whole list of results, which is not a document."""
    found = ((number, path) for number, one in enumerate(valid()) for path in _paths(one))
    return [(number, path) for number, path in found if path not in ((), ("results",))]


@given(st.deferred(lambda: st.sampled_from(places())), _JSON)
def test_nothing_in_the_inputs_can_break_the_report(place, value):
    """Any input gives a report, or one sentence that says what to do."""
    number, path = place
    inputs = json.loads(json.dumps(valid()[number]))
    around = inputs
    for key in path[:-1]:
        around = around[key]
    around[path[-1]] = value

    try:
        report = cluster.build_report(inputs["verification"], inputs["results"], "A")
    except ReportError as error:
        assert describe_all(error.problems).endswith(("again.", "without that run."))
        return
    for render in (html.render, document.render, junit.render):
        assert render(report).encode("utf-8")


@pytest.mark.parametrize("number", range(2))
def test_inputs_as_they_are_written_give_a_report(number):
    """Otherwise the test above could pass by refusing everything."""
    report = cluster.build_report(**valid()[number], title="A")
    assert report.checks
    assert len(report.runs) == len(cluster.results())
