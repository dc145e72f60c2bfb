# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.verification import NodeVerification
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.comparisons import counts
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report.comparisons import items as rows
from ansible_collections.allreduce.gpu.tests.report import cluster

ONE = {"component": "driver", "subject": "x", "desired": "1", "observed": "2", "status": "differs"}


def items(comparisons):
    return rows(parse(NodeVerification, {"comparisons": comparisons}).comparisons)


@pytest.fixture
def node():
    return cluster.node("gpu-1", "10.0.0.1")


def test_a_node_as_planned_has_no_difference(node):
    found = items(node["comparisons"])
    assert counts(found) == (0, 0)
    assert [item.name for item in found] == [
        "package manager", "time service", "reboot", "archive components", "nvidia-kernel-dkms", "nvidia-driver",
        "nvidia-persistenced", f"kernel module for {cluster.KERNEL}", "loaded module", "Python", "torch", "numpy", "files",
        *(one["subject"] for one in cluster.network_comparisons()),
    ]  # fmt: skip


def test_differences_stand_first(node):
    node["gpu_node_state"]["packages"]["nvidia-persistenced"] = None
    node["gpu_node_state"]["environments"]["main"]["packages"]["torch"] = "2.5.1"
    found = items(cluster.comparisons(node["gpu_stack"], node["gpu_node_state"]))
    assert [(item.name, item.result) for item in found][:2] == [
        ("nvidia-persistenced", "missing"),
        ("torch", "differs"),
    ]
    assert counts(found) == (3, 0)  # torch is neither what was asked for nor what its lock says


def test_what_was_not_measured_is_no_proof(node):
    found = items(cluster.comparisons(node["gpu_stack"], {}))
    assert {item.result for item in found} == {"not measured"}
    assert counts(found) == (0, len(found))


@pytest.mark.parametrize("status", list(Status))
def test_every_status_has_its_words(status):
    (found,) = items([ONE | {"status": status.value}])
    assert (found.result == "as planned") == (status is Status.AS_PLANNED)


def test_a_status_of_a_newer_writer_is_no_success():
    (found,) = items([ONE | {"status": "postponed", "remedy": "wait"}])
    assert found.result == "not measured"
