# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A few variables of many hosts, each host asked once."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.door import told

FACTS = {"default_ipv4": {"address": "10.0.0.1", "interface": "eth0"}, "gpu_stack": None}


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ((), {}),
        (("a",), {"a": 1}),
        (("a", "missing", "none"), {"a": 1}),
        (("ansible_facts.default_ipv4.address",), {"ansible_facts": {"default_ipv4": {"address": "10.0.0.1"}}}),
        (("ansible_facts.gpu_stack.gpus", "a.b", "empty"), {"empty": []}),
        (
            ("ansible_facts.default_ipv4.address", "ansible_facts.default_ipv4.interface"),
            {"ansible_facts": {"default_ipv4": {"address": "10.0.0.1", "interface": "eth0"}}},
        ),
    ],
)
def test_values_keep_their_place(paths, expected):
    variables = {"a": 1, "b": 2, "none": None, "empty": [], "ansible_facts": FACTS}
    assert told({"gpu-1": variables}, ["gpu-1"], paths).values == {"gpu-1": expected}


def test_the_variables_stay_as_they_were():
    variables = {"ansible_facts": {"x": {"y": 1, "z": 2}}}
    told({"gpu-1": variables}, ["gpu-1"], ["ansible_facts.x.y"])
    assert variables == {"ansible_facts": {"x": {"y": 1, "z": 2}}}


def test_each_host_is_asked_once():
    asked = []

    class Hosts(dict):
        def __getitem__(self, name):
            asked.append(name)
            return {"a": name}

    assert told(Hosts(), ["gpu-1", "gpu-2", "gpu-1"], ["a"]).values == {
        "gpu-1": {"a": "gpu-1"},
        "gpu-2": {"a": "gpu-2"},
    }
    assert asked == ["gpu-1", "gpu-2"]
