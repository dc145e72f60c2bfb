# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a version was chosen, and why not the next."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.input_error import InputError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.why import explanation, explanation_lines
from ansible_collections.allreduce.gpu.tests.support.frozen_tables import TABLES, resolve

V100 = {"os": "ubuntu 22.04", "gpus": ["Tesla V100 PCIe"]}
OLD = {"os": "ubuntu 20.04", "gpus": ["A40"]}


@pytest.mark.parametrize(
    ("question", "component", "version", "rules", "says"),
    [
        (V100, "driver", "595", ["driver-gpu-last-branch"], "its last branch is 580"),
        (OLD, "driver", "590", ["driver-os"], "ends with driver branch 575"),
        (V100, "pytorch", "2.14.1 (cu130)", ["pytorch-gpu"], "holds no code for Tesla V100 PCIe"),
        (V100, "pytorch", "2.15.0 (cu130)", ["pytorch-gpu"], "PyTorch 2.15.0+cu130 holds no code"),
        (OLD, "python", "3.8", [], "it fits with pytorch 2.4.1 (cu121), but pytorch 2.14.1 (cu130) is preferred"),
        (
            {"os": "rocky 9", "gpus": ["A40"], "request": {"driver": "550"}},
            "pytorch",
            "2.14.1 (cu130)",
            ["pytorch-driver-floor"],
            "needs driver 580.65.06",
        ),
        ({**V100, "request": {"pytorch": "<2.5"}}, "pytorch", "2.5.0 (cu124)", [], "pytorch <2.5 was asked for"),
        ({"os": "ubuntu 22.04", "gpus": ["A40"]}, "pytorch", "2.15.0 (cu132)", [], "its wheels have not been verified"),
        (
            {**V100, "request": {"pytorch": "<2.5", "pytorch_index": "cu118"}},
            "pytorch",
            "2.5.0 (cu118)",
            [],
            "pytorch <2.5 and pytorch_index cu118 were asked for",
        ),
    ],
)
def test_why_not_the_next(question, component, version, rules, says):
    told = explanation(TABLES, question, component)
    rejected = {one["version"]: one for one in told["rejected"]}
    assert version in rejected, list(rejected)
    assert set(rules) <= set(rejected[version]["rules"])
    assert bool(rules) is bool(rejected[version]["rules"])
    assert any(says in text for text in rejected[version]["reasons"]), rejected[version]["reasons"]


@pytest.mark.parametrize("component", ["driver", "pytorch", "python", "cuda"])
def test_the_version_is_the_one_of_the_stack(component):
    question = {**OLD, "request": {"cuda": "12.4"}}
    stack = resolve(question)["stack"]
    versions = {name: stack[name]["version"] for name in ("driver", "cuda")}
    versions |= {"pytorch": stack["environments"][0]["frameworks"]["pytorch"], "python": stack["python"]}
    told = explanation(TABLES, question, component)
    assert told["version"].startswith(versions[component])
    assert told["because"] == next(one["text"] for one in stack["reasons"] if one["component"] == component)


def test_what_nothing_asks_for_and_what_is_refused():
    assert explanation(TABLES, OLD, "cudnn")["version"] is None
    assert explanation(TABLES, {**OLD, "request": {"driver": "595"}}, "driver") is None


def test_a_component_that_no_stack_has():
    with pytest.raises(InputError):
        explanation(TABLES, OLD, "mxnet")


def test_lines_name_the_version_and_every_rejected_one():
    told = explanation(TABLES, V100, "driver")
    lines = explanation_lines(told)
    assert lines[0][1].startswith("driver 580.")
    assert len(lines) == 1 + len(told["rejected"])
