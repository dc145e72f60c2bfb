# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a node and judge it: what module gpu_health and the program of role health have in common."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import json
import re
from collections import namedtuple

from ..machine.gpu_node import read_machine
from ..machine.nvml import open_nvml
from ..machine.rails import rail_ports
from ..machine.topology import gpu_label
from . import kernel_log
from .clock import RECORDED as CLOCK
from .host_reading import MODPROBE, RIVALS, read_host
from .host_reading import RECORDED_MOUNTS as MOUNTS
from .p2p_access import read_p2p_access
from .processes import SESSIONS, read_processes
from .reading import read_gpus
from .verdict import judge

HEADING = r"\[\w+\]$"  # of a unit
# What lines of the kernel's log have that some check reads.
KNOWN = ("NVRM", "SXid", "nvidia", "[10de:", "Loading of", "Lockdown", "mlx5_core", "emory", "[Hardware Error]", "EDAC")
# ``sys``, ``proc`` and ``root``: FileTrees. ``library``: NVML's. ``log``: the kernel's.
# ``opener``: nvml.open_nvml, or a recording's.
Places = namedtuple("Places", "sys proc root library log opener")
Places.__new__.__defaults__ = (open_nvml,)


def read(places, sampled=False):
    """Return (gpu_node, readings), see verdict.judge; ``sampled``: also what GPUs do at the moment."""
    with places.opener(places.library) as (nvml, unavailable):
        node = read_machine((nvml, unavailable), places.sys, places.proc, places.library)
        counters, processes = read_processes(
            lambda: read_gpus(nvml, node["gpus"]) if nvml else {}, places.proc, places.root
        )
        pairs, errors = read_p2p_access(nvml, node["gpus"]) if nvml else ({}, {})
        samples = sample(nvml) if nvml and sampled else {}
    addresses = [gpu["pci_bus_id"] for gpu in node["gpus"]]
    return node, {
        "counters": with_errors(counters, errors),
        "p2p_access": pairs,
        "processes": processes,
        "samples": samples,
        "log": kernel_log.read(places.log),
        "host": read_host(places.sys, places.proc, places.root, addresses),
    }


def sample(nvml):
    """Return the momentary values of the GPUs, see samples; imported here as Recording is below."""
    from .samples import read_samples

    return read_samples(nvml)


def with_errors(counters, errors):
    """Return the counters, with errors that came later next to those of their GPUs."""
    merged = dict(counters)
    for address, found in errors.items():
        if address in merged:
            merged[address] = dict(merged[address], nvml_errors=dict(merged[address]["nvml_errors"], **found))
    return merged


def history(places, node, readings):
    """Return the values that are compared with earlier runs, as plain values; see over_time."""
    from .ports import read_ports

    samples = {gpu_label(gpu): readings["samples"].get(gpu["pci_bus_id"]) or {} for gpu in node["gpus"]}
    rails = rail_ports(node["gpus"], node["nics"], node["topology"])
    return {
        "uptime_seconds": readings["host"].get("uptime_seconds"),
        "ports": read_ports(places.sys, node["nics"]),
        "rails": ["%s/%d" % (nic["name"], port["port"]) for nic, port in rails],
        "gpus": {name: sample.get("thermal_slowdown_ns") for name, sample in samples.items()},
    }


def examine_and_record(places, options, place):
    """Return the answer of judge, and write all that was read into a directory; see machine.recording."""
    # Here and not above: on nodes all that is imported is compiled on each run, twice since Python 3.10.
    from ..machine.recording import Recording

    recording = Recording(place)
    recorded = places._replace(
        sys=recording.tree("sys", places.sys.root),
        proc=recording.tree("proc", places.proc.root),
        root=recording.tree("root", places.root.root, reduce_file),
        opener=recording.opener,
    )
    node, readings = read(recorded)
    write_answers(recording, readings["host"])
    recording.finish(node, reduce_log(readings["log"]))
    return judge(node, readings, options)


def write_answers(recording, host):
    """Write what the kernel, NVMe drives and network file systems answered, which is in no file on the node."""
    from . import nvme_log

    drives = {one["name"]: {"page": one["page"], "refused": one["refused"]} for one in host.get("nvme") or ()}
    clock = host.get("clock") or {}
    for tree, path, said in (
        ("proc", CLOCK, clock.get("asked")),
        ("sys", nvme_log.RECORDED, drives or None),
        ("proc", MOUNTS, host.get("network_mounts") or None),
    ):
        if said is not None:
            recording.tree(tree, "/").write(path, json.dumps(said, sort_keys=True).encode("utf-8"))


def reduce_file(path, text):
    """Return the lines of a file of the host that the checks read: others' secrets stay there."""
    wanted = ("STATE=",) if path.startswith(SESSIONS) else RIVALS if path.startswith(MODPROBE) else ("NCCL_",)
    kept = [
        line
        for line in text.split("\n")
        if any(word in line.replace("-", "_") for word in wanted) or re.match(HEADING, line)
    ]
    return "\n".join(kept)


def reduce_log(log):
    """Return the lines of the log that the checks know, and of the first only which one it is; None stays None."""
    if log is None:
        return None
    lines = log.split("\n")
    first = lines[0].partition(";")[0] + ";" if kernel_log.is_record(lines[0]) else ""
    kept = [line for line in lines if any(word in line for word in KNOWN)]
    return "\n".join(([first] if first and lines[0] not in kept else []) + kept) + "\n"


def examine(places, options):
    """Return the answer of judge for the node."""
    node, readings = read(places)
    return judge(node, readings, options)
