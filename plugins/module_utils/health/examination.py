# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a node and judge it: what module gpu_health and the program of role health have in common."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from collections import namedtuple

from ..machine.gpu_node import measure
from ..machine.nvml import open_nvml
from ..machine.rails import rail_ports
from ..machine.topology import gpu_label
from . import kernel_log
from .host_reading import read_host
from .ports import read_ports
from .processes import read_processes
from .reading import read_gpus
from .samples import read_samples
from .verdict import judge

# ``sys``, ``proc`` and ``root``: FileTrees. ``library``: NVML's. ``log``: the kernel's.
Places = namedtuple("Places", "sys proc root library log")


def read(places, sampled=False):
    """Return (gpu_node, readings), see verdict.judge; ``sampled``: also what GPUs do at the moment."""
    node = measure(places.sys, places.proc, places.library)
    with open_nvml(places.library) as (nvml, dummy_state):
        counters, processes = read_processes(
            lambda: read_gpus(nvml, node["gpus"]) if nvml else {}, places.proc, places.root
        )
        samples = read_samples(nvml) if nvml and sampled else {}
    addresses = [gpu["pci_bus_id"] for gpu in node["gpus"]]
    return node, {
        "counters": counters,
        "processes": processes,
        "samples": samples,
        "log": kernel_log.read(places.log),
        "host": read_host(places.sys, places.proc, places.root, addresses),
    }


def history(places, node, readings):
    """Return what is compared with earlier runs, as plain values; see over_time."""
    samples = {gpu_label(gpu): readings["samples"].get(gpu["pci_bus_id"]) or {} for gpu in node["gpus"]}
    rails = rail_ports(node["gpus"], node["nics"], node["topology"])
    return {
        "uptime_seconds": readings["host"].get("uptime_seconds"),
        "ports": read_ports(places.sys, node["nics"]),
        "rails": ["%s/%d" % (nic["name"], port["port"]) for nic, port in rails],
        "gpus": {name: sample.get("thermal_slowdown_ns") for name, sample in samples.items()},
    }


def examine(places, options):
    """Return what judge gives of the node."""
    node, readings = read(places)
    return judge(node, readings, options)
