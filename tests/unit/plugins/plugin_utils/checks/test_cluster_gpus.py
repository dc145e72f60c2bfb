# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes with the same GPUs have the same driver, and GPUs that are set up alike."""

import copy

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.health.peers import COMPARED
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.cluster_gpus import SET, checks

GPU = {
    "index": 0, "seen_by": ["pci", "nvml"], "name": "NVIDIA H100 80GB HBM3", "compute_capability": "9.0",
    "power_limit_watts": {"current": 700}, "max_clocks_mhz": {"graphics": 1980, "sm": 1980, "memory": 2619},
    "vbios_version": "96.00", "inforom_version": "G520", "memory_total_mib": 81559, "mig": {"current": False},
    "ecc": {"current": True}, "compute_mode": "default",
}  # fmt: skip
# (check, what is other on a node, how that is named)
OTHERS = (
    ("peer_power_limit", {"power_limit_watts": {"current": 500}}, "500 W"),
    ("peer_clocks", {"max_clocks_mhz": {"graphics": 1755, "sm": 1755, "memory": 2619}}, "1755/1755/2619 MHz"),
    ("peer_vbios", {"vbios_version": "95.00"}, "95.00"),
    ("peer_inforom", {"inforom_version": "G500"}, "G500"),
    ("peer_memory", {"memory_total_mib": 65247}, "64 GiB"),
    ("peer_mig_mode", {"mig": {"current": True}}, "on"),
    ("peer_ecc_mode", {"ecc": {"current": False}}, "off"),
    ("peer_compute_mode", {"compute_mode": "exclusive_process"}, "exclusive_process"),
    ("peer_model", {"name": "NVIDIA H200"}, "NVIDIA H200"),
)


def node(change=None, count=2, driver="580.95.05"):
    gpus = [{**copy.deepcopy(GPU), **(change or {}), "index": number} for number in range(count)]
    return {"gpus": gpus, "driver": {"loaded_version": driver}}


def told(nodes, left_out=(), **variables):
    """{check: (status, reason)}"""
    found = checks(nodes, {name: variables.get(name, {}) for name in nodes}, left_out)
    return {one["name"]: (one["status"], one["reason"]) for one in found}


def problems(*arguments, **variables):
    return {name: reason for name, (status, reason) in told(*arguments, **variables).items() if status != "passed"}


def test_alike_nodes_pass_each_check_once():
    found = told({"a": node(), "b": node(), "c": node(count=8)})
    assert set(found) == {row[0] for row in OTHERS} | {"peer_driver"}
    assert set(found) == {row[0] for row in COMPARED} | {"peer_driver", "peer_model"}
    assert set(found.values()) == {("passed", "")}


@pytest.mark.parametrize(("check", "change", "text"), OTHERS)
def test_a_node_that_is_unlike_most_is_named(check, change, text):
    found = problems({"a": node(), "b": node(change), "c": node()})
    assert found.pop(check).endswith(f", but b has {text}")
    # Another model, or another mode of ECC or MIG, is not compared in the rest.
    assert not found


def test_another_driver_is_named():
    found = problems({"a": node(), "b": node(), "c": node(driver="570.1")})
    assert list(found) == ["peer_driver"]
    assert "most have 580.95.05, but c has 570.1" in found["peer_driver"]


@pytest.mark.parametrize(("check", "change", "text"), OTHERS)
def test_of_two_nodes_nobody_is_blamed(check, change, text):
    found = problems({"a": node(), "b": node(change)})
    if check == "peer_model":
        assert found == {}  # a cluster may have several
    else:
        assert f"b has {text}" in found[check] and "most" not in found[check]


def test_many_nodes_are_counted():
    nodes = {f"n{number:02}": node({"vbios_version": f"9.{number}"} if number > 20 else None) for number in range(40)}
    assert problems(nodes)["peer_vbios"].count(" has ") == 8
    assert "and 11 more" in problems(nodes)["peer_vbios"]


def test_gpus_of_other_generations_are_not_compared():
    a100 = {"name": "NVIDIA A100", "compute_capability": "8.0", "vbios_version": "92.00", "memory_total_mib": 40960}
    assert problems({"a": node(), "b": node(), "c": node(a100, driver="535.1")}) == {}


@pytest.mark.parametrize("check", SET)
def test_what_a_node_declares_otherwise_is_meant(check):
    change = next(row[1] for row in OTHERS if row[0] == check)
    meant = {"gpu_settings_declaration": [{"power_limit_watts": 500}]}
    assert problems({"a": node(), "b": node(change), "c": node()}, b=meant) == {}


def test_a_gpu_that_is_unlike_its_own_node_is_that_nodes_matter():
    odd = node(count=4)
    odd["gpus"][1]["vbios_version"] = "95.00"
    assert problems({"a": node(), "b": odd}) == {}


def test_what_is_not_known_is_not_compared():
    silent = node(dict.fromkeys(("vbios_version", "inforom_version", "max_clocks_mhz", "compute_mode")))
    hidden = node({"seen_by": ["pci"], "name": None}, driver=None)
    assert problems({"a": node(), "b": silent, "c": hidden, "d": {}}) == {}
    assert told({"a": node(), "d": {}}) == {}


def test_checks_are_left_out_by_their_codes():
    found = told({"a": node(), "b": node({"vbios_version": "95.00"})}, {"peer_vbios"})
    assert found["peer_vbios"] == ("skipped", "verify_health_skip_checks leaves it out")
