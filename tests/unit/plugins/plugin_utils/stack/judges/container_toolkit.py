# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases of the NVIDIA Container Toolkit, and what is wrong with a stack that has it: read from its table, without the resolver."""

from __future__ import annotations

import checker

TABLE = checker.table("container_toolkit")
ROWS = {row["version"]: row for row in TABLE["rows"]}
LOOSE = ["latest", "1.17", "<1.18", ">=1.18"]
CASES = """
- {name: the container toolkit that the host's repository has, rule: container-toolkit-os, request: {container_toolkit: latest},
   gets: {container_toolkit.version: 1.19.1, container_toolkit.cdi_refresh: true, container_toolkit.cdi: /var/run/cdi/nvidia.yaml}}
- {name: a container toolkit without a service for the CDI specification, os: debian 12, request: {container_toolkit: "1.17"},
   gets: {container_toolkit.version: 1.17.3, container_toolkit.cdi_refresh: false, container_toolkit.cdi: /etc/cdi/nvidia.yaml}}
- {name: a container toolkit whose service does not see every driver, request: {container_toolkit: "1.18.1"}, gets: {container_toolkit.cdi_refresh: false},
   warns: "container_toolkit 1.18.1 was not seen in the repository ubuntu2204"}
- {name: a container toolkit of which nobody says how old the driver may be, request: {container_toolkit: "1.19.1"}, gets: {container_toolkit.version: 1.19.1},
   warns: "not verified: the oldest driver that NVIDIA Container Toolkit 1.19.1 takes"}
- {name: the container toolkit on aarch64, arch: aarch64, gpus: [GH200], request: {container_toolkit: "1.19.1"}, gets: {container_toolkit.version: 1.19.1},
   warns: "whether the repository ubuntu2204 has NVIDIA Container Toolkit 1.19.1 for aarch64"}
- {name: the container toolkit where the repository does not have it, rule: container-toolkit-os, os: debian 13, request: {container_toolkit: latest},
   refused: {between: [container_toolkit, os], rule: container-toolkit-os, says: "NVIDIA's repository of debian 13 does not have"}}
- {name: the container toolkit and a driver that it takes, rule: container-toolkit-driver, gpus: [V100 PCIe],
   request: {container_toolkit: "1.13.5", driver: "450", pytorch: none}, gets: {container_toolkit.version: 1.13.5}}
- {name: the container toolkit and a driver that is too old, rule: container-toolkit-driver, gpus: [V100 PCIe],
   request: {container_toolkit: "1.13.5", driver: "410", pytorch: none},
   refused: {between: [container_toolkit, driver], rule: container-toolkit-driver, says: "needs driver 418.81.07 or newer", works: "driver: 580"}}
- {name: a newer container toolkit takes no older driver, rule: container-toolkit-driver, gpus: [V100 PCIe],
   request: {container_toolkit: "1.20.0", driver: "410", pytorch: none},
   refused: {between: [container_toolkit, driver], rule: container-toolkit-driver, says: "needs driver 418.81.07 or newer"}}
- {name: the container toolkit on processors, gpus: [], request: {container_toolkit: latest}, error: "has container_toolkit, but this host has no GPU"}
- {name: a container toolkit that nobody released, request: {container_toolkit: "1.99"}, error: "1.99"}
"""
GPUS_ONLY = True
NEEDS = {}
FUTURES = {}
PACKAGES = {
    "libnvidia-container1",
    "libnvidia-container-tools",
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
}


def published():
    return list(ROWS)


def check_host(stack):
    toolkit, driver, wrong = stack["container_toolkit"], stack["driver"], []
    row = ROWS[toolkit["version"]]
    if {(one["name"], one["version"]) for one in toolkit["packages"]} != {
        (name, f"{row['version']}-1") for name in PACKAGES
    }:
        wrong.append("not the packages of the container toolkit")
    if checker.DISTROS[stack["os"]["id"], stack["os"]["version"]]["repository"] in TABLE["absent"]:
        wrong.append("the repository does not have the container toolkit")
    if not stack["gpus"] or not stack["repository"]:
        wrong.append("a container toolkit without GPUs or repository")
    if driver and checker.n(driver["version"]) < checker.n("418.81.07"):
        wrong.append("driver too old for the container toolkit")
    if (toolkit["cdi_refresh"], toolkit["cdi"].startswith("/var/run/")) != (row["cdi_refresh"], row["cdi_refresh"]):
        wrong.append("somebody else writes the CDI specification")
    return wrong
