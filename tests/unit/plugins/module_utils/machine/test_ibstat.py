# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real ibstat and our reader say the same of one tree: it is bound over /sys in a namespace of its own."""

import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines

PRIVATE = ("unshare", "--user", "--map-root-user", "--mount")
TEXT = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "universal_newlines": True}
# ibstat's words for the states of a port (linux-rdma/rdma-core, infiniband-diags/ibstat.c).
STATES = {"Down": "DOWN", "Initializing": "INIT", "Armed": "ARMED", "Active": "ACTIVE"}


@pytest.fixture(scope="module")
def program():
    found = shutil.which("ibstat")
    if not found:
        pytest.skip("no ibstat (infiniband-diags)")
    if not shutil.which("unshare") or subprocess.run([*PRIVATE, "true"], check=False, **TEXT).returncode:
        pytest.skip("no namespace of users and mounts")
    return found


def ask(program, sys):
    """{adapter: {what ibstat says}}"""
    command = 'mount --bind "$1" /sys && exec "$2"'
    done = subprocess.run([*PRIVATE, "sh", "-c", command, "sh", str(sys), program], check=False, **TEXT)
    assert done.returncode == 0, done.stderr
    found = {}
    for part in re.split(r"^CA ", done.stdout, flags=re.M)[1:]:
        name = part.partition("\n")[0].strip("'")
        found[name] = dict(re.findall(r"^\s+([A-Z][\w ]+): ?(.*)$", part, re.M))
    return found


def hgx_h100():
    """Rails in all states, at several rates, and with firmware."""
    machine = machines.hgx_h100()
    changes = ({"state": "DOWN"}, {"state": "INIT"}, {"state": "ARMED"}, {"rate_gbps": 400}, {"rate_gbps": 2.5})
    nics = [replace(nic, firmware="28.39.1002", board="MT_0000000838") for nic in machine.nics]
    nics = [replace(nic, **change) for nic, change in zip(nics, changes + ({}, {}, {}))]  # noqa: B905 (Python 3.6)
    return replace(machine, nics=tuple(nics))


MACHINES = [make() for make in machines.MACHINES if make().nics] + [replace(hgx_h100(), name="hgx-h100, several")]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_ibstat_says_what_the_reader_says(program, measure, tmp_path, machine):
    read = {nic["name"]: nic for nic in measure(machine)["nics"]}
    said = ask(program, tmp_path / "sys")
    assert set(said) == set(read) == {nic.name for nic in machine.nics}
    for name, told in said.items():
        (port,) = read[name]["ports"]
        assert STATES[told["State"]] == port["state"]
        assert float(told["Rate"]) == port["rate_gbps"]
        assert told["Link layer"] == port["link_layer"]
        assert told["Firmware version"] == (read[name]["firmware_version"] or "")
        lid = tmp_path / "sys/class/infiniband" / name / "ports/1/lid"
        assert int(told["Base lid"]) == int(lid.read_text(), 16)
        assert (told["Base lid"] != "0") == (
            port["state"] in ("ARMED", "ACTIVE") and port["link_layer"] == "InfiniBand"
        )
