# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what is wrong with a measured machine: records ``{code, subject, detail}``, which describe.py puts into words."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from collections import Counter

from .nvlink_models import count_active, expected_links, is_part_of_a_board, speed_of
from .nvml_errors import UNUSABLE, worst
from .topology import gpu_label


def problem(code, subject=None, **detail):
    """Return one problem; ``subject`` is a GPU's label, a PCI address or None, ``detail`` has plain values."""
    return {"code": code, "subject": subject, "detail": detail}


def with_code(problems, code):
    return [one for one in problems if one["code"] == code]


def find_problems(node, lost, acs_bridges):
    """Return the problems of a gpu_node; ``lost``: [{index, problem, code}] of GPUs whose handle NVML refuses.

    ``acs_bridges``: addresses.
    """
    found = driver_problems(node["driver"]) + visibility_problems(node, lost)
    found += link_problems(node["gpus"]) + nvlink_problems(node) + fabric_problems(node)
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
    found = [
        problem("gpu_not_opened", "GPU%d" % gpu["index"], reason=gpu["problem"], error=gpu["code"]) for gpu in lost
    ]
    if node["driver"]["nvml_state"] != "ok":
        return found
    for gpu in node["gpus"]:
        error = worst(gpu.get("nvml_errors") or {})
        if "nvml" not in gpu["seen_by"]:
            found.append(hidden(gpu))
        elif error:
            found.append(problem("gpu_failing", gpu_label(gpu), error=error))
        elif "pci" not in gpu["seen_by"]:
            found.append(problem("gpu_not_on_bus", gpu_label(gpu), pci_bus_id=gpu["pci_bus_id"]))
    return found


def hidden(gpu):
    """Say that NVML does not show a GPU; one that another driver holds, such as for a guest, is not meant to be seen."""
    driver = gpu.get("kernel_driver")
    if driver in (None, "nvidia"):
        return problem("gpu_not_in_nvml", gpu["pci_bus_id"])
    return problem("gpu_held", gpu["pci_bus_id"], driver=driver)


def link_problems(gpus):
    """Find PCIe links narrower than the device supports. The generation is not a sign: idle GPUs lower it."""
    found = []
    for gpu in gpus:
        width, max_width = gpu["pcie"]["width"], gpu["pcie"]["max_width"]
        if width and max_width and width < max_width:
            found.append(problem("pcie_link_narrow", gpu_label(gpu), width=width, max_width=max_width))
    return found


def nvlink_problems(node):
    """Find GPUs with fewer active links than their model or, where that is not known, than others of the same name.

    Bridges between PCIe cards may join only some of them. A GPU that is cut into instances uses no links, whether they are trained
    off or not (NVIDIA Fabric Manager User Guide, Interoperability With Multi-Instance GPUs; NVML is told of none: open-gpu-kernel-modules
    common_nvlinkapi.c, subdeviceCtrlCmdBusGetNvlinkStatus).
    """
    gpus = [gpu for gpu in node["gpus"] if "nvml" in gpu["seen_by"] and not is_unusable(gpu)]
    gpus = [gpu for gpu in gpus if not (gpu.get("mig") or {}).get("current")]
    switches = node["nvswitches"]["count"]
    if is_part_of_a_board(node["gpus"], switches):
        return slow_links(gpus)
    switched = is_switched(node, gpus)
    expected, found = expected_links(gpus, switches), []
    for gpu in gpus:
        active = count_active(gpu)
        wanted = max(expected[gpu["index"]] or 0, usual(gpu, gpus, switched))
        if active < wanted:
            found.append(problem("nvlinks_inactive", gpu_label(gpu), active=active, expected=wanted))
    return found + slow_links(gpus)


def slow_links(gpus):
    """Find GPUs with links that are slower than their model's, or than the fastest of the same name."""
    found = []
    for gpu in gpus:
        peers = [link for one in gpus if one["name"] == gpu["name"] for link in one["nvlinks"]]
        best = max([link.get("speed_mbytes_per_second") or 0 for link in peers] + [speed_of(gpu["name"]) or 0])
        slow = [link["speed_mbytes_per_second"] for link in gpu["nvlinks"] if link.get("speed_mbytes_per_second")]
        slow = [speed for speed in slow if speed < best]
        if slow:
            found.append(problem("nvlinks_slow", gpu_label(gpu), links=len(slow), speed=min(slow), expected=best))
    return found


def is_unusable(gpu):
    return worst(gpu.get("nvml_errors") or {}) in UNUSABLE


def is_switched(node, gpus):
    """Return True if NVSwitches join the GPUs: they are on the bus, or elsewhere in the rack, or hidden from a virtual machine.

    That of one GPU alone has its links switched off (NVIDIA Fabric Manager User Guide, partitions).
    """
    seen = any(link["remote_type"] == "nvswitch" for gpu in gpus for link in gpu["nvlinks"] if link["active"])
    return seen or node["nvswitches"]["count"] > 0 or node["fabric"]["state"] is not None and len(gpus) > 1


def usual(gpu, gpus, switched):
    """Return the number of links that most GPUs of the same name have active; 0 where some need not have any."""
    peers = [count_active(one) for one in gpus if one["name"] == gpu["name"]]
    peers = [count for count in peers if count or switched]
    if gpu["name"] is None or not peers or not (switched or count_active(gpu)):
        return 0
    return max(Counter(peers).items(), key=lambda item: item[::-1])[0]


def domain_problems(pairs):
    """Find [(gpu, domain)] of a node that are in several: those that are not where most are or, without a majority, all."""
    counts = Counter(domain for dummy, domain in pairs)
    if len(counts) < 2:
        return []
    usual, count = counts.most_common(1)[0]
    if 2 * count <= len(pairs):
        return [problem("fabric_split", domains=", ".join(sorted(counts)))]
    return [
        problem("fabric_apart", gpu_label(gpu), domain=domain, expected=usual)
        for gpu, domain in pairs
        if domain != usual
    ]


def fabric_problems(node):
    """Find what is wrong with the NVLink fabric as its GPUs see it, whatever its manager's service does."""
    state = node["fabric"]["state"]
    found = [problem("fabric_not_ready", state=state)] if state in ("not_started", "in_progress") else []
    fabrics = [(gpu, gpu["fabric"]) for gpu in node["gpus"] if gpu.get("fabric")]
    return (
        found
        + domain_problems([(gpu, fabric["domain"]) for gpu, fabric in fabrics if fabric["domain"]])
        + [
            problem("fabric_unhealthy", gpu_label(gpu), health=code)
            for gpu, fabric in fabrics
            for code in fabric["health"]
        ]
    )
