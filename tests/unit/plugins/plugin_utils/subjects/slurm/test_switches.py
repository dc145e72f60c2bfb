# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tree of switches: every node is in it once, and a way leads from each to each."""

import re

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm import installed, request, switches
from hypothesis import given
from hypothesis import strategies as st

from tests.support.slurm import cluster_hosts, cluster_node, unfolded

PLACES = st.lists(st.sampled_from(["a", "b", "c1"]), min_size=1, max_size=4).map("/".join)
TREES = st.dictionaries(st.integers(1, 99).map("gpu-{}".format), PLACES, min_size=1, max_size=12)


def tree(text):
    """{switch: (nodes, switches)} of a topology.conf."""
    found = {}
    for line in text.splitlines()[1:]:
        name, kind, members = re.fullmatch(r"SwitchName=(\S+) (Nodes|Switches)=(\S+)", line).groups()
        assert name not in found
        found[name] = (unfolded(members), []) if kind == "Nodes" else ([], unfolded(members))
    return found


def test_one_switch_needs_no_root():
    assert switches.content({"gpu-2": "leaf", "gpu-1": "leaf"}).splitlines()[1:] == ["SwitchName=leaf Nodes=gpu-[1-2]"]


def test_switches_are_joined_and_named_once():
    said = switches.content({"gpu-1": "row1/leaf1", "gpu-2": "row1/leaf2", "gpu-3": "row2/leaf1"})
    assert said.splitlines()[1:] == [
        "SwitchName=row1.leaf1 Nodes=gpu-1",
        "SwitchName=row1.leaf2 Nodes=gpu-2",
        "SwitchName=row2.leaf1 Nodes=gpu-3",
        "SwitchName=row1 Switches=row1.leaf[1-2]",
        "SwitchName=row2 Switches=row2.leaf1",
        "SwitchName=root Switches=row[1-2]",
    ]


@given(TREES)
def test_every_node_is_in_the_tree_once_and_one_switch_is_above_all(places):
    if switches.problems(places):
        return
    found = tree(switches.content(places))
    assert sorted(node for nodes, _below in found.values() for node in nodes) == sorted(places)
    below = [one for _nodes, switches_below in found.values() for one in switches_below]
    assert len(below) == len(set(below)) and set(below) <= set(found)
    assert len(set(found) - set(below)) == 1


@pytest.mark.parametrize(
    ("places", "words"),
    [
        ({"gpu-1": "leaf1", "gpu-2": ""}, "gpu-2: not at a switch"),
        ({"gpu-1": "row1", "gpu-2": "row1/leaf1"}, "slurm_switch is row1 for a node"),
        ({"gpu-1": "root/leaf1"}, "'root' is what the role calls"),
        ({"gpu-1": "", "gpu-2": ""}, ""),
    ],
)
def test_what_is_no_tree_is_refused(places, words):
    found = [describe(one) for one in switches.problems(places)]
    assert bool(found) == bool(words) and all(words in one for one in found)


@pytest.mark.parametrize(
    ("said", "fits"),
    [
        ("leaf-3", True),
        ("row1/leaf3", True),
        ("/leaf", False),
        ("a//b", False),
        ("a b", False),
        ("a/b/c/d/e", False),
        ("1", False),
    ],
)
def test_a_switch_is_a_way(said, fits):
    assert fits is not any(one.subject == "slurm_switch" for one in request.problems({"slurm_switch": said}))


def test_the_controller_has_the_tree_and_the_plugin_and_loses_both():
    known = cluster_hosts()
    for name, place in (("gpu-1", "leaf1"), ("gpu-2", "leaf2")):
        known[name]["slurm_switch"] = place
    found = installed.answer(cluster_node(known), installed.shared(cluster_node(known)))
    contents = {one["path"]: one for one in found["files"]}
    assert "SwitchName=root Switches=leaf[1-2]" in contents["/etc/slurm/topology.conf"]["content"]
    assert "\nTopologyPlugin=topology/tree\n" in contents["/etc/slurm/slurm.conf"]["content"]
    without = installed.answer(cluster_node(cluster_hosts()), installed.shared(cluster_node(cluster_hosts())))
    gone = [one for one in without["files"] if one["path"] == "/etc/slurm/topology.conf"]
    assert gone == [{"path": "/etc/slurm/topology.conf", "state": "absent", "then": ["touch", installed.DUE]}]
    assert not any("TopologyPlugin" in one.get("content", "") for one in without["files"])
    own = cluster_hosts(slurm_extra_lines=["TopologyPlugin=topology/tree"])
    kept = installed.answer(cluster_node(own), installed.shared(cluster_node(own)))
    assert not any(one["path"] == "/etc/slurm/topology.conf" for one in kept["files"])
