# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A few variables of many hosts, each host asked once, and what does not fit left out."""

from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.door import fitting, told
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.problem import Problem
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.text import describe

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


ADDRESS, NAME = "ansible_facts.default_ipv4.address", "ansible_facts.nodename"


def facts(**said):
    return {"ansible_facts": said}


@pytest.mark.parametrize(
    ("variables", "place", "shown", "expected"),
    [
        ({"ansible_facts": [1]}, "ansible_facts", "a list", "a mapping"),
        (facts(default_ipv4="10.0.0.1"), "ansible_facts.default_ipv4", "'10.0.0.1'", "a mapping"),
        (facts(default_ipv4={"address": "0.0.0.0/0"}), ADDRESS, "'0.0.0.0/0'", "the IP address of one host"),
        (facts(default_ipv4={"address": 10**400}), ADDRESS, "a huge number", "the IP address of one host"),
        (facts(nodename="a\x1b[2J\n"), NAME, r"'a\x1b[2J\n'", "a line of text of at most 128 characters"),
        (facts(nodename="x" * 10_000_000), NAME, f"'{'x' * 60}…'", "a line of text of at most 128 characters"),
        (facts(nodename={"a": 1}), NAME, "a mapping", "a line of text of at most 128 characters"),
        (facts(nodename=True), NAME, "True", "a line of text of at most 128 characters"),
    ],
)
def test_what_does_not_fit_is_a_problem_of_that_node(variables, place, shown, expected):
    hosts = {"gpu-1": facts(nodename="gpu-1"), "gpu-9": variables}
    found = told(hosts, hosts, [ADDRESS, NAME])
    assert found.values == {"gpu-1": facts(nodename="gpu-1")}
    assert found.problems == (Problem("unfit_answer", "gpu-9", {"place": place, "shown": shown, "expected": expected}),)
    assert describe(found.problems[0]).startswith(
        f"gpu-9 is left out: its {place} is {shown}, but it must be {expected};"
    )


def test_keys_are_not_shown():
    (problem,) = told(
        {"a": {"__cluster_ssh_keys": {"public_key": ["root:$6$"]}}}, ["a"], ["__cluster_ssh_keys.public_key"]
    ).problems
    assert problem.detail["shown"] == "not shown here"


def test_a_users_variables_are_not_judged_here():
    variables = {"firewall_ports": object(), "gpu_cluster_address": "node-a"}
    assert told({"a": variables}, ["a"], variables).values == {"a": variables}


def test_an_address_that_a_user_replaces_may_be_of_any_kind():
    said = facts(default_ipv4={"address": "169.254.0.1"})
    assert told({"a": said}, ["a"], [ADDRESS]).problems
    assert told({"a": {**said, "gpu_cluster_address": "10.0.0.1"}}, ["a"], [ADDRESS]).values == {"a": {}}
    evil = facts(default_ipv4={"address": "10.0.0.1\n"})
    assert told({"a": {**evil, "gpu_cluster_address": "10.0.0.1"}}, ["a"], [ADDRESS]).problems


def test_whole_variables_are_those_of_the_nodes_that_fit():
    hosts = {"a": {**facts(nodename="a"), "x": 1}, "b": facts(nodename=1)}
    fit, problems = fitting(hosts, [NAME])
    assert fit == {"a": hosts["a"]} and [one.subject for one in problems] == ["b"]


SPEED = {"port": 5203, "latency": 0.0015, "bits_per_second": 197e9}
SILENT = {"port": 5204, "code": "no_report", "output": "Couldn't connect"}


@pytest.mark.parametrize(
    ("answer", "fits"),
    [
        ({"skipped": True}, True),
        ({"bandwidth": {}, "rails": {}}, True),
        (
            {
                "bandwidth": {"forward": SPEED, "reverse": SILENT},
                "rails": {"mlx5_0": {"forward": SPEED, "reverse": SILENT}},
            },
            True,
        ),
        ({"bandwidth": {}, "rails": {"mlx5_0": {"port": 5203}}}, True),  # of a server
        ({"bandwidth": {}, "rails": {"mlx5_0": {"port": 5203, "code": "no_program", "output": ""}}}, True),
        (
            {
                "rails": {
                    "mlx5_0": {"forward": {"port": 0, "code": "no_rail"}, "reverse": {"port": 0, "code": "no_rail"}}
                }
            },
            True,
        ),
        ({"rails": {"mlx5_0": {"forward": {**SPEED, "bits_per_second": float("nan")}}}}, False),
        ({"rails": {"mlx5_0": {"forward": 5203}}}, False),
        ({"rails": {"mlx5_0": {"port": "5203; true"}}}, False),
        ({"rails": {"mlx5_0": 5}}, False),
        ({"rails": 5}, False),
        ({"bandwidth": {"forward": 5}}, False),
    ],
)
def test_what_both_ends_of_a_measurement_return(answer, fits):
    found, unfit = fitting({"gpu-1": {"__verify_speeds": [answer]}}, ["__verify_speeds"])
    assert ("gpu-1" in found, not unfit) == (fits, fits)


@pytest.mark.parametrize(
    ("rails", "fits"),
    [
        ({"mlx5_0": {"port": 5203}}, True),
        ({"mlx5_0": {"port": 0, "code": "no_rail"}}, True),
        ({"mlx5_0": {"port": [5203]}}, False),
    ],
)
def test_where_a_server_listens(rails, fits):
    unfit = fitting({"gpu-1": {"__verify_server": {"rails": rails}}}, ["__verify_server.rails"])[1]
    assert (not unfit) == fits


MODULES = Path(__file__).parents[5] / "plugins" / "modules"


@pytest.mark.parametrize(
    ("module", "key", "place"),
    [
        ("nccl_facts", "gpu_nccl", "ansible_facts"),
        ("network_bandwidth", "rails", "__verify_server"),
        ("node_probe", "node_probe", "__verify_probe"),
        ("node_state", "gpu_node_state", "ansible_facts"),
        ("pcie_facts", "gpu_pcie", "ansible_facts"),
        ("rdma_facts", "gpu_rdma", "ansible_facts"),
        ("scratch_facts", "gpu_scratch", "ansible_facts"),
        ("tuning_facts", "gpu_tuning", "ansible_facts"),
    ],
)
def test_what_a_module_documents_fits(module, key, place):
    text = (MODULES / f"{module}.py").read_text(encoding="utf-8")
    returned = yaml.safe_load(text.partition('RETURN = r"""')[2].partition('"""')[0])
    documented = (returned[place]["contains"] if place in returned else returned)[key]["sample"]
    assert fitting({"gpu-1": {place: {key: documented}}}, [f"{place}.{key}"])[1] == []
