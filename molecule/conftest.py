# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every distribution's tests look at: the host as root, its facts, and the plan worked out again from them."""

import os
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / ".collections")]


MEASURED = {}
SCENARIO = yaml.safe_load(Path(os.environ["MOLECULE_FILE"]).read_text(encoding="utf-8"))


def _variables():
    """Variables of the scenario's hosts."""
    return SCENARIO["provisioner"]["inventory"]["group_vars"]["gpu_nodes"]


@pytest.fixture
def host(host):
    """The host as root: a login user sees neither keys nor the package state of others."""
    with host.sudo():
        yield host


@pytest.fixture(scope="session")
def names():
    """The names of the scenario's hosts."""
    return [platform["name"] for platform in SCENARIO["platforms"]]


@pytest.fixture(scope="session")
def reports():
    """Where the scenario's playbooks leave their reports, see .config/molecule/config.yml."""
    return ROOT / "tests" / "output" / f"molecule-{SCENARIO['scenario']['name']}"


@pytest.fixture
def os_release(host):
    """/etc/os-release as a dictionary."""
    lines = host.file("/etc/os-release").content_string.splitlines()
    return {key: value.strip('"') for key, dummy, value in (line.partition("=") for line in lines if "=" in line)}


@pytest.fixture
def gpu_node(host):
    """What gpu_facts measures on the host, once: no test changes a host."""
    name = host.backend.get_hostname()
    if name not in MEASURED:
        MEASURED[name] = host.ansible("allreduce.gpu.gpu_facts", become=True)["ansible_facts"]["gpu_node"]
    return MEASURED[name]


@pytest.fixture
def stack(os_release, gpu_node):
    """The plan of this host."""
    from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

    answer = resolve(
        {
            "os": f"{os_release['ID']} {os_release['VERSION_ID']}",
            "arch": "x86_64",
            "gpus": [gpu["name"] for gpu in gpu_node["gpus"]],
            "request": _variables()["gpu_stack_request"],
        }
    )
    assert not answer["conflicts"]
    return answer["stack"]


@pytest.fixture
def planned(stack):
    """{package: version or pattern} of everything the plan names."""
    parts = [stack[name] for name in ("driver", "fabric_manager", "cuda", "cudnn", "nccl") if stack[name]]
    replaced = []
    if _variables().get("nvidia_driver_precompiled"):
        replaced = stack["driver"]["precompiled"]["replaces"]
        parts.append(stack["driver"]["precompiled"])
    return {
        package["name"]: package["version"]
        for part in parts
        for package in part["packages"]
        if package["name"] not in replaced
    }
