# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A gpu_node from the output of another machine's "nvidia-smi topo -m", as far as that goes: pure functions of the text.

All vintages: with and without NUMA columns, NICs by their name or as NIC<n> with a legend, SOC for what is SYS since,
tabs or spaces, an underlined header. Pasted text has lost lines and ends of lines: what is not there is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...module_utils.machine.describe import describe
from ...module_utils.machine.nic_order import build_affinity
from ...module_utils.machine.rails import rail_problems
from .matrix import COLUMNS, read_matrix

PORT: dict[str, Any] = {"state": None, "link_layer": None, "rate_gbps": None, "netdevs": [], "rocev2_gid_index": None}


def parse_topology(text: str) -> dict[str, Any]:
    """Return {``gpus``: {GPU: {``cpu_affinity``, ``numa_affinity``, ``gpu_numa_id``}}, ``nics``: [name], ``topology``}.

    The topology has every device in each row; a code that the text does not show is None. A code that is shown for
    one direction only holds for both. Raise ValueError, with the line, where the matrix is torn.
    """
    matrix = read_matrix(text)
    devices, names = matrix.devices, matrix.names
    gpus: dict[str, dict] = {device: dict.fromkeys(COLUMNS) for device in devices if device.startswith("GPU")}
    codes: dict[tuple[str, str], str] = {}
    for row in matrix.rows:
        codes.update(((row.device, other), code) for other, code in zip(devices, row.codes, strict=False))
        if row.device in gpus:
            gpus[row.device].update(_affinities(row.rest, matrix.columns))
    label = {device: names.get(device, device) for device in devices}
    return {
        "gpus": {gpu: {key.lower().replace(" ", "_"): value[key] for key in COLUMNS} for gpu, value in gpus.items()},
        "nics": [label[device] for device in devices if device not in gpus],
        "topology": {
            label[one]: {label[two]: codes.get((one, two), codes.get((two, one))) for two in devices} for one in devices
        },
    }


def _affinities(fields: list[str], columns: list[str]) -> dict[str, str | None]:
    """Read the last columns of a row. Empty fields leave no trace between spaces, and N/A is unknown."""
    fields = list(fields)
    last = {columns[-1]: fields.pop()} if len(columns) == len(COLUMNS) and fields[-1:] == ["N/A"] else {}
    found = {**dict(zip(columns, fields, strict=False)), **last}
    return {key: None if value == "N/A" else value for key, value in found.items()}


def recorded_node(text: str, ports: Mapping[str, Mapping] | None = None) -> dict[str, Any]:
    """Return a gpu_node with what the text tells.

    ``ports`` {adapter: {``state``, ``link_layer``, ``rate_gbps`` …}} adds what it cannot tell. Everything else is None.
    """
    parsed = parse_topology(text)
    gpus = [_gpu(int(name[3:]), place) for name, place in parsed["gpus"].items()]
    given = ports or {}
    nics = [
        {
            "name": name,
            "pci_bus_id": None,
            "pci_device_id": None,
            "numa_node": None,
            "ports": [{**PORT, "port": 1, **given[name]}] if name in given else [],
        }
        for name in parsed["nics"]
    ]
    findings = rail_problems(gpus, nics, parsed["topology"])
    return {
        "driver": {
            **dict.fromkeys(("loaded_version", "library_version", "cuda_driver_version", "kernel_modules")),
            "nvml": "not asked; this is a recording",
            "nvml_state": "not_asked",
        },
        "gpus": gpus,
        "nvswitches": {"count": None, "pci_bus_ids": []},
        "fabric": {"manager_needed": None, "state": None},
        "nics": nics,
        "topology": parsed["topology"],
        "numa_distances": {},
        "affinity": build_affinity(gpus, nics, parsed["topology"]),
        "findings": findings,
        "problems": [describe(one) for one in findings],
    }


def _gpu(index: int, place: Mapping) -> dict[str, Any]:
    """One of ``gpus`` of gpu_node. Several NUMA nodes (``0,3-9``) begin with the one that has the CPUs."""
    unknown = (
        "minor_number", "uuid", "name", "pci_bus_id", "pci_device_id", "architecture", "compute_capability",
        "memory_total_mib", "persistence_mode", "compute_mode", "max_clocks_mhz", "vbios_version", "inforom_version",
    )  # fmt: skip
    node = re.match(r"\d+", place["numa_affinity"] or "")
    return {
        **dict.fromkeys(unknown),
        "index": index,
        "numa_node": int(node.group()) if node else None,
        "cpu_affinity": place["cpu_affinity"],
        "nvlinks": [],
        "pcie": dict.fromkeys(("generation", "max_generation", "width", "max_width")),
        "ecc": {"current": None, "pending": None},
        "mig": {"current": None, "pending": None, "instances": []},
        "power_limit_watts": dict.fromkeys(("current", "default", "min", "max")),
        "seen_by": [],
    }
