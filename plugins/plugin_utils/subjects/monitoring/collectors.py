# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose the node exporter's collectors: those for the hardware that the node has, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# On every node. Those for hardware that may be missing (edac, nvme, mdadm, hwmon, rapl, thermal_zone) tell nothing without it.
# Left out of the exporter's defaults: what is of no interest on a GPU node and costs time or series (arp, bonding, entropy, fibrechannel,
# ipvs, nfs, schedstat, selinux, tapestats, udp_queues, zfs and others).
BASE = (
    "cpu", "cpufreq", "diskstats", "edac", "filesystem", "hwmon", "loadavg", "mdadm", "meminfo", "netclass", "netdev", "netstat",
    "nvme", "os", "pressure", "rapl", "sockstat", "softnet", "stat", "textfile", "thermal_zone", "time", "timex", "uname", "vmstat",
)  # fmt: skip


def collectors(gpu_node: Mapping[str, Any], shaped: bool = False) -> list[str]:
    """Return the names of the collectors of a node; gpu_node: its fact; shaped: whether role qos shapes its traffic."""
    found = list(BASE)
    devices = [*(gpu_node.get("gpus") or ()), *(gpu_node.get("nics") or ())]
    if len({one.get("numa_node") for one in devices} - {None, -1}) > 1:
        found.append("meminfo_numa")
    if gpu_node.get("nics"):
        found.append("infiniband")
    if shaped:
        found.append("qdisc")
    return sorted(found)
