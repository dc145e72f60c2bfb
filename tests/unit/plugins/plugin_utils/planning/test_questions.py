# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options and facts become a question."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.questions import question_from_facts

FACTS = {
    "distribution": "Debian",
    "distribution_version": "12.11",
    "architecture": "x86_64",
    "gpu_node": {
        "gpus": [{"name": "NVIDIA A40", "pci_device_id": "2235", "compute_capability": "8.6"}],
        "nvswitches": {"count": 0},
    },
    "gpu_node_state": {"apt_mirrors": [{"suite": "bookworm"}, {"suite": "bookworm-security"}, {"suite": None}]},
}


def ask(options=None, facts=None, version="2.19.14"):
    return question_from_facts(options or {}, FACTS if facts is None else facts, version)


def test_facts_are_the_default():
    question = ask()
    assert question["os"] == "debian 12.11"
    assert question["arch"] == "x86_64"
    assert question["gpus"][0]["name"] == "NVIDIA A40"
    assert question["suites"] == ["bookworm", "bookworm-security"]
    assert question["nvswitches"] == 0
    assert question["ansible_core"] == "2.19"


def test_options_win():
    question = ask({"os": "rocky 8", "gpus": [], "nvswitches": 6, "ansible_core": "2.16", "suites": ["x"]})
    assert ask({"interpreter": "standalone"})["interpreter"] == "standalone"
    assert ask({"interpreter": "auto"})["interpreter"] is None, "a role's default asks for nothing"
    assert (question["os"], question["gpus"], question["nvswitches"]) == ("rocky 8", [], 6)
    assert (question["ansible_core"], question["suites"]) == ("2.16", ["x"])


def test_nothing_known():
    question = ask(facts={})
    assert question["os"] is None and question["gpus"] == [] and question["suites"] is None


OWNER = {"code": "dgx_os", "name": "DGX OS"}


@pytest.mark.parametrize(
    ("state", "driver", "version"),
    [
        ({"loaded": "580.1", "installed": "580.2"}, {}, "580.2"),
        ({"loaded": "580.1", "installed": None}, {"library_version": "580.3"}, "580.1"),
        (None, {"loaded_version": "580.1", "library_version": "580.3"}, "580.1"),
        ({"loaded": None, "installed": None}, {"library_version": "580.3", "kernel_modules": None}, "580.3"),
        ({"loaded": None, "installed": None}, {}, None),
        (None, None, None),
    ],
)
def test_the_driver_that_is_there(state, driver, version):
    question = ask(facts={"gpu_node": {"driver": driver}, "gpu_node_state": {"driver": state, "driver_owner": OWNER}})
    assert question["driver_owner"] == OWNER
    assert (question["installed_driver"] or {}).get("version") == version


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("RedHat", "rhel 9.4"),
        ("Rocky", "rocky 9.4"),
        ("AlmaLinux", "almalinux 9.4"),
        ("OracleLinux", "oraclelinux 9.4"),
        ("Ubuntu", "ubuntu 9.4"),
    ],
)
def test_names_of_distributions(name, expected):
    assert ask(facts={"distribution": name, "distribution_version": "9.4"})["os"] == expected


@pytest.mark.parametrize(("switches", "expected"), [({"count": 6}, 6), (["0000:01:00.0"], 1), (None, None), (2, 2)])
def test_nvswitches_in_any_shape(switches, expected):
    assert ask(facts={"gpu_node": {"nvswitches": switches}})["nvswitches"] == expected


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        ({"running": "6.8.0-60", "installed": ["6.8.0-60", "6.8.0-84"], "newest": "6.8.0-84"}, ["6.8.0-60", "6.8.0-84"]),
        ({"running": "6.8.0-60", "installed": ["6.8.0-60", "6.8.0-84"], "newest": "6.8.0-84", "next_boot": "6.8.0-60"},
         ["6.8.0-60"]),
        # DKMS builds for what has headers, and one failure breaks the installation.
        ({"running": "b", "installed": ["a", "b", "c"], "newest": "c", "next_boot": "b", "headers": ["b", "c"]}, ["b", "c"]),
        ({"running": "host"}, []),
        ({}, []),
    ],
)  # fmt: skip
def test_kernels_that_the_module_is_built_for(kernel, expected):
    assert ask(facts={**FACTS, "gpu_node_state": {"kernel": kernel}})["kernels"] == expected
    assert ask({"kernels": ["x"]}, {**FACTS, "gpu_node_state": {"kernel": kernel}})["kernels"] == ["x"]


def test_a_host_that_was_not_measured_has_no_kernels():
    assert ask()["kernels"] == []


@pytest.mark.parametrize(
    ("given", "gpus"), [("A100 SXM4 80GB", ["A100 SXM4 80GB"]), ("A40, A40", ["A40", "A40"]), (["A40"], ["A40"])]
)
def test_gpus_as_text_are_a_list_with_commas(given, gpus):
    assert ask({"gpus": given})["gpus"] == gpus
