# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What looks wrong on a measured machine: one sentence each, in the order of the GPUs."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from collections import Counter

from .topology import gpu_label


def find_problems(node, lost, acs_bridges):
    """``node`` is a gpu_node; ``lost`` [{index, problem}] GPUs whose handle NVML refuses; ``acs_bridges`` addresses."""
    found = driver_problems(node["driver"]) + visibility_problems(node, lost)
    found += link_problems(node["gpus"]) + nvlink_problems(node["gpus"]) + fabric_problems(node)
    found += ["PCIe ACS redirects peer-to-peer traffic at bridge %s" % address for address in acs_bridges]
    return found


def driver_problems(driver):
    loaded, library = driver["loaded_version"], driver["library_version"]
    if loaded and library and loaded != library:
        return ["The loaded kernel module is %s but the driver library is %s" % (loaded, library)]
    if loaded and driver["nvml"] != "ok":
        return ["The kernel module %s is loaded but NVML does not work: %s" % (loaded, driver["nvml"])]
    return []


def visibility_problems(node, lost):
    """GPUs on the bus that NVML does not show, and the other way round; silent while there is no driver to ask."""
    found = ["NVML cannot open GPU %d: %s" % (gpu["index"], gpu["problem"]) for gpu in lost]
    if node["driver"]["nvml"] != "ok":
        return found
    for gpu in node["gpus"]:
        if "nvml" not in gpu["seen_by"]:
            found.append("GPU %s is on the PCI bus but NVML does not show it" % gpu["pci_bus_id"])
        elif "pci" not in gpu["seen_by"]:
            found.append("%s (%s) is known to NVML but not on the PCI bus" % (gpu_label(gpu), gpu["pci_bus_id"]))
    return found


def link_problems(gpus):
    """PCIe links narrower than the device can do. The generation is no sign: idle GPUs lower it."""
    found = []
    for gpu in gpus:
        width, max_width = gpu["pcie"]["width"], gpu["pcie"]["max_width"]
        if width and max_width and width < max_width:
            found.append("%s has a PCIe link of %d lanes where it can have %d" % (gpu_label(gpu), width, max_width))
    return found


def nvlink_problems(gpus):
    """GPUs of one model should have equally many active links; bridges between PCIe cards may join only some of them."""
    found = []
    for name in sorted({gpu["name"] for gpu in gpus if gpu["name"]}):
        peers = [gpu for gpu in gpus if gpu["name"] == name and "nvml" in gpu["seen_by"]]
        switched = any(link["remote_type"] == "nvswitch" for gpu in peers for link in gpu["nvlinks"])
        counts = [len([link for link in gpu["nvlinks"] if link["active"]]) for gpu in peers]
        compared = [(gpu, count) for gpu, count in zip(peers, counts) if count or switched]
        usual = (
            max(Counter(count for dummy, count in compared).items(), key=lambda item: item[::-1])[0] if compared else 0
        )
        for gpu, count in compared:
            if count < usual:
                found.append("%s has %d active NVLinks where its peers have %d" % (gpu_label(gpu), count, usual))
    return found


def fabric_problems(node):
    fabric = node["fabric"]
    if fabric["state"] not in ("not_started", "in_progress"):
        return []
    return ["The NVLink fabric is %s: CUDA will not start until the fabric manager has set it up" % fabric["state"]]
