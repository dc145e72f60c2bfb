# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.verification import NodeVerification
from ansible_collections.allreduce.gpu.plugins.plugin_utils.report import description
from ansible_collections.allreduce.gpu.tests.report import cluster


def describe(node):
    return description.describe(parse(NodeVerification, node))


@pytest.fixture
def node():
    return cluster.node("gpu-1", "10.0.0.1")


def test_a_gpu_node(node):
    described = describe(node)

    assert described.distribution == "Debian 12.11"
    assert described.kernel == "6.1.0-40-amd64"
    assert (described.processors, described.memory_gib) == (64, 503)
    assert described.gpus == ("2 × NVIDIA A40 (45 GiB, compute capability 8.6)",)
    assert described.driver == "535.261.03 loaded"
    assert described.stack.summary == (
        "driver 535.261.03 (from distribution, proprietary kernel modules)",
        "environment main: Python 3.11, pytorch 2.6.0, for CUDA",
    )
    assert described.stack.reasons[0][0] == "driver"


def test_the_users_remark(node):
    assert describe(node).remark == ""
    assert describe({**node, "remark": "borrowed until May"}).remark == "borrowed until May"


def test_equal_machines_have_equal_descriptions(node):
    other = cluster.node("gpu-2", "10.0.0.2")
    other["facts"]["memtotal_mb"] -= 7

    assert describe(node) == describe(other)
    assert hash(describe(node)) == hash(describe(other))


def test_a_node_of_which_nothing_is_known():
    described = describe({})

    assert described.gpus == described.items == described.problems == ()
    assert described.driver == "none"
    assert described.memory_gib is None


def test_a_node_without_gpu_in_a_container(node):
    node.update(gpu_node={"gpus": []})
    node["gpu_stack"]["gpus"] = []
    node["gpu_node_state"].update(container=True, driver={"loaded": None, "installed": "535.261.03"})

    described = describe(node)
    assert described.gpus == ()
    assert described.container
    assert described.driver == "535.261.03 installed, not loaded"


@pytest.mark.parametrize(
    ("loaded", "installed", "expected"),
    [("535.1", "535.2", "535.1 loaded, 535.2 installed"), ("535.1", None, "535.1 loaded"), (None, None, "none")],
)
def test_driver_in_words(node, loaded, installed, expected):
    node["gpu_node"]["driver"] = {}
    node["gpu_node_state"]["driver"] = {"loaded": loaded, "installed": installed}

    assert describe(node).driver == expected


@pytest.mark.parametrize(
    ("next_boot", "expected"),
    [
        (None, "6.1.0-40-amd64, next boot 6.1.0-41-amd64"),
        ("6.1.0-9-amd64", "6.1.0-40-amd64, next boot 6.1.0-9-amd64"),
        ("6.1.0-40-amd64", "6.1.0-40-amd64"),
    ],
)
def test_another_kernel_that_the_next_boot_takes_is_named(node, next_boot, expected):
    node["gpu_node_state"]["kernel"].update(newest="6.1.0-41-amd64", next_boot=next_boot)

    assert describe(node).kernel == expected


@pytest.mark.parametrize(
    ("pending", "expected"),
    [
        (None, ""),
        ({"reason": None}, "yes"),
        ({"reason": "kernel", "since": 1763740860}, "kernel (since 1763740860)"),
        ({"reason": "kernel"}, "kernel"),
        ({"reason": "kernel", "since": "now"}, "kernel (since now)"),
    ],
)
def test_reboot_pending(node, pending, expected):
    node["gpu_node_state"]["reboot_pending"] = pending

    assert describe(node).reboot_pending == expected


def test_gpus_nobody_measured_are_named_as_such(node):
    node["gpu_node"] = None

    assert describe(node).gpus == ("2 × A40, not measured",)
