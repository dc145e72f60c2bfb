# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what is wrong with a measured machine: records ``{code, subject, detail}``, which describe.py puts into words."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from collections import Counter

from .topology import gpu_label


def problem(code, subject=None, **detail):
    """Return one problem; ``subject`` is a GPU's label, a PCI address or None, ``detail`` has plain values."""
    return {"code": code, "subject": subject, "detail": detail}


def with_code(problems, code):
    return [one for one in problems if one["code"] == code]


def find_problems(node, lost, acs_bridges):
    """Return the problems of a gpu_node; ``lost``: [{index, problem}] of GPUs whose handle NVML refuses.

    ``acs_bridges``: addresses.
    """
    found = driver_problems(node["driver"]) + visibility_problems(node, lost)
    found += link_problems(node["gpus"]) + nvlink_problems(node["gpus"]) + fabric_problems(node)
    return found + [problem("acs_redirect", address) for address in acs_bridges]


def driver_problems(driver):
    loaded, library = driver["loaded_version"], driver["library_version"]
    if loaded and library and loaded != library:
        return [problem("driver_mismatch", loaded=loaded, library=library)]
    if loaded and driver["nvml_state"] != "ok":
        return [problem("nvml_unavailable", loaded=loaded, state=driver["nvml_state"], reason=driver["nvml"])]
    return []


def visibility_problems(node, lost):
    """Find GPUs on the bus that NVML does not show, and the other way round; none while there is no driver to ask."""
    found = [problem("gpu_not_opened", "GPU%d" % gpu["index"], reason=gpu["problem"]) for gpu in lost]
    if node["driver"]["nvml_state"] != "ok":
        return found
    for gpu in node["gpus"]:
        if "nvml" not in gpu["seen_by"]:
            found.append(problem("gpu_not_in_nvml", gpu["pci_bus_id"]))
        elif "pci" not in gpu["seen_by"]:
            found.append(problem("gpu_not_on_bus", gpu_label(gpu), pci_bus_id=gpu["pci_bus_id"]))
    return found


def link_problems(gpus):
    """Find PCIe links narrower than the device supports. The generation is no sign: idle GPUs lower it."""
    found = []
    for gpu in gpus:
        width, max_width = gpu["pcie"]["width"], gpu["pcie"]["max_width"]
        if width and max_width and width < max_width:
            found.append(problem("pcie_link_narrow", gpu_label(gpu), width=width, max_width=max_width))
    return found


def nvlink_problems(gpus):
    """Find GPUs with fewer active links than others of their model.

    Bridges between PCIe cards may join only some of them.
    """
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
                found.append(problem("nvlinks_inactive", gpu_label(gpu), active=count, expected=usual))
    return found


def fabric_problems(node):
    state = node["fabric"]["state"]
    return [problem("fabric_not_ready", state=state)] if state in ("not_started", "in_progress") else []
