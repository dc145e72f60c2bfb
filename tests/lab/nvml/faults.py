# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults by name, and machines that are well: what every check is tried on."""

from dataclasses import replace

from . import drive_faults, gpu_faults, host_faults, link_faults, log_faults, machines
from .fault import Fault, all_said, cut, said, xid


def faults() -> "list[Fault]":
    return [
        *gpu_faults.answers(), *gpu_faults.counters(), *gpu_faults.condition(), *gpu_faults.beyond_limits(), *gpu_faults.refused(),
        *host_faults.processes(), *host_faults.host(), *drive_faults.broken(),
        *link_faults.fabric(), *link_faults.peers(), *link_faults.access(), *link_faults.rails(), *log_faults.log(),
    ]  # fmt: skip


def healthy() -> "list[Fault]":
    """Machines that are well, in the quiet and with a log that tells nothing of this node now."""
    hgx, dgx, a40 = machines.hgx_h100(), machines.dgx_a100(), machines.a40_pcie()
    loaded = "NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
    demand = xid(154, hgx, 0, "GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")
    taken_back = xid(154, hgx, 0, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)")
    probing = f"nvidia-nvswitch: Probing device {hgx.nvswitches[0][-1]}, Vendor Id = 0x10de, Device Id = 0x22a3, Class = 0x68000\n"
    strangers = "NVRM: Xid (PCI:0000:99:00): 79, GPU has fallen off the bus.\nnvidia-nvswitch0: SXid (PCI:0000:99:00.0): 1, Fatal, x\n"
    return [
        *(Fault(make.__name__, make(), "ok") for make in machines.MACHINES),
        *(Fault(f"Xid {number} of an application", hgx, "ok", xid(number, hgx)) for number in (13, 31, 43, 45, 68, 94)),
        Fault("before the driver's load", hgx, "ok", xid(79, hgx) + demand + loaded),
        Fault("cured by a reset", hgx, "ok", xid(48, hgx) + demand + taken_back),
        Fault("cured by a reset of the switches", hgx, "ok", xid(48, hgx) + demand + probing),
        Fault("of other hosts", hgx, "ok", strangers),
        Fault("no bridges", cut(a40, 0), "ok"),
        Fault("part of a board", cut(replace(dgx, gpus=dgx.gpus[:4], nvswitches=dgx.nvswitches[:3]), 6), "ok"),
        Fault("an older driver", all_said(hgx, ("fabric_version", "0"), ("link_speed", "!3")), "ok"),
        Fault(
            "half of them set otherwise",
            said(said(a40, 0, ("power_limit", "200000")), 1, ("power_limit", "200000")),
            "ok",
        ),
        Fault("no firmware told", all_said(hgx, ("vbios", "!3"), ("inforom", "!3"), ("max_clocks", "!3")), "ok"),
        Fault("firmware told by some", said(hgx, 0, ("vbios", "!3"), ("inforom", "!13"), ("max_clocks", "!3")), "ok"),
        *gpu_faults.well(),
        *link_faults.well_connected(),
        *link_faults.well_reached(),
        *host_faults.working(),
        *host_faults.well_around(),
        *drive_faults.well(),
        Fault("power cap and idle", all_said(a40, ("throttle_reasons", "0x5")), "ok"),
    ]
