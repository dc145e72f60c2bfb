# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cases of DCGM, and what is wrong with a stack that has it: read from its table, without the resolver."""

from __future__ import annotations

import checker

ROWS = {row["version"]: row for row in checker.table("dcgm")["rows"]}
LOOSE = ["latest", "3", "4", "3.3", ">=4.5", "<4"]
CASES = """
- {name: DCGM where nobody asks, gets: {driver.branch: "595"}}
- {name: the newest DCGM, rule: dcgm-os, request: {dcgm: latest}, gets: {dcgm.version: 4.6.1, dcgm.cuda: ["13"],
   dcgm.packages: [{name: datacenter-gpu-manager-4-core, version: "1:4.6.1-1"}, {name: datacenter-gpu-manager-4-proprietary, version: "1:4.6.1-1"},
     {name: datacenter-gpu-manager-4-cuda13, version: "1:4.6.1-1"}, {name: datacenter-gpu-manager-4-proprietary-cuda13, version: "1:4.6.1-1"}]}}
- {name: the plugins are those of the driver's CUDA, rule: dcgm-driver-cuda, os: rocky 8.10, request: {dcgm: "4", driver: "535"},
   gets: {dcgm.cuda: ["12"], dcgm.packages.2: {name: datacenter-gpu-manager-4-cuda12, version: "4.6.1-1"}}}
- {name: Volta needs the plugins of the last CUDA that has code for it, too, gpus: [V100 PCIe],
   request: {dcgm: "4", driver: "580"}, gets: {dcgm.cuda: ["13", "12"]}}
- {name: DCGM that the host's repository has before a newer one, os: rhel 10, request: {dcgm: latest}, gets: {dcgm.version: 4.5.3}}
- {name: DCGM that NVIDIA documents, os: debian 12, request: {dcgm: latest}, gets: {dcgm.version: 4.6.1},
   warns: "DCGM 4.6.1 was not seen in the repository debian12, for which NVIDIA documents it; only in rhel8, ubuntu2204, ubuntu2604"}
- {name: DCGM that nobody saw for aarch64, arch: aarch64, gpus: [GH200], request: {dcgm: "4.6"}, gets: {dcgm.version: 4.6.1},
   warns: "DCGM 4.6.1 was seen in the repository ubuntu2204, but not for aarch64"}
- {name: DCGM 3 is one package, rule: dcgm-driver-cuda, request: {dcgm: "3", driver: "550"},
   gets: {dcgm.packages: [{name: datacenter-gpu-manager, version: "1:3.3.9"}]},
   warns: "not verified: the first driver for DCGM 3.3.9"}
- {name: DCGM 3 takes no driver of CUDA 13, rule: dcgm-driver-cuda, request: {dcgm: "3.3", driver: "580"},
   refused: {between: [dcgm, driver], rule: dcgm-driver-cuda, says: "has plugins for drivers of CUDA 11 and 12, and driver 580", works: "driver: 575"}}
- {name: DCGM on the first driver for it, rule: dcgm-driver-floor, os: ubuntu 20.04, gpus: [V100 PCIe], request: {dcgm: "3.3.3", driver: "450", pytorch: none},
   gets: {dcgm.version: 3.3.3, dcgm.cuda: ["11"]}}
- {name: DCGM on an older driver, rule: dcgm-driver-floor, os: ubuntu 20.04, gpus: [V100 PCIe], request: {dcgm: "3.3.3", driver: "440", pytorch: none},
   refused: {between: [dcgm, driver], rule: dcgm-driver-floor, says: "DCGM 3.3.3 needs driver 450.80.02 or newer, not 440"}}
- {name: DCGM on a distribution without it, rule: dcgm-os, os: debian 13, request: {dcgm: latest},
   refused: {between: [dcgm, os], rule: dcgm-os, says: "is not known to be in NVIDIA's repository for debian 13", advises: install debian 12}}
- {name: DCGM without GPUs, gpus: [], request: {dcgm: latest}, error: "The request has dcgm, but this host has no GPU"}
- {name: a DCGM that the table lacks, request: {dcgm: "4.1"}, error: "dcgm '4.1' is not known"}
"""
GPUS_ONLY = True
NEEDS = {}
FUTURES = {}


def published():
    return list(ROWS)


def check_host(stack):
    dcgm, driver, wrong = stack["dcgm"], stack["driver"], []
    row, slug = ROWS[dcgm["version"]], checker.DISTROS[stack["os"]["id"], stack["os"]["version"]]["repository"]
    if not stack["gpus"] or not stack["repository"] or not driver:
        return ["DCGM without GPUs, driver or repository"]
    if slug not in row["repositories"] + row["documented"]:
        wrong.append("DCGM is not in the distribution's repository")
    if checker.n(driver["version"]) < checker.n(row["min_driver"]):
        wrong.append("driver too old for DCGM")
    cuda = majors(driver, stack["gpus"])
    if not cuda <= set(row["cuda"]):
        wrong.append("DCGM has no plugins for the driver's CUDA")
    if {(one["name"], one["version"]) for one in dcgm["packages"]} != packages(row, cuda, slug):
        wrong.append("not the packages of DCGM")
    return wrong


def majors(driver, gpus):
    """The driver's CUDA major; with CUDA 13, of GPUs before Turing also 12."""
    own = checker.BRANCHES[int(driver["branch"])]["cuda"].split(".")[0]
    dropped = any(checker.n(gpu["compute_capability"]) < checker.n("7.5") for gpu in gpus)
    return {own, "12"} if own == "13" and dropped else {own}


def packages(row, cuda, slug):
    version = row["rpm"] if slug.startswith("rhel") else row["deb"]
    if row["version"].startswith("3."):
        return {("datacenter-gpu-manager", version)}
    ending = {"core", "proprietary"} | {f"{kind}{one}" for one in cuda for kind in ("cuda", "proprietary-cuda")}
    return {(f"datacenter-gpu-manager-4-{one}", version) for one in ending}
