# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One healthy node with one GPU, and what is said of it when something is changed."""

from ansible_collections.allreduce.gpu.plugins.module_utils.health.check_table import OPTIONS
from ansible_collections.allreduce.gpu.plugins.module_utils.health.verdict import judge

LIMITS = {"skip_checks": [], **{name: option.get("default") for name, option in OPTIONS.items()}}
WELL = {
    "uncorrected_errors": 0,
    "remapped_rows": {"correctable": 0, "uncorrectable": 0, "pending": 0, "failed": 0},
    "retired_pages_pending": None,
    "clock_reasons": ["idle"],
    "performance_state": 0,
}
ADDRESS = "0000:07:00.0"


def node(gpu=None, fabric=None, findings=(), **driver):
    one = {
        "index": 0, "pci_bus_id": ADDRESS, "name": "NVIDIA A100", "nvlinks": [], "seen_by": ["pci", "nvml"],
        "pcie": {"generation": 1, "max_generation": 4, "width": 16, "max_width": 16},
        "ecc": {"current": True, "pending": True}, "mig": {"current": False, "pending": False}, "persistence_mode": True,
    }  # fmt: skip
    return {
        "driver": {
            "loaded_version": "535.1.1",
            "library_version": "535.1.1",
            "cuda_driver_version": "12.2",
            "nvml": "ok",
            "nvml_state": "ok",
            **driver,
        },
        "fabric": {"manager_needed": True, "state": None, **(fabric or {})},
        "nvswitches": {"count": 0, "pci_bus_ids": []},
        "gpus": [{**one, **(gpu or {})}],
        "nics": [],
        "topology": {},
        "findings": list(findings),
    }


def log_of(xids):
    """A kernel log with [(address without function, Xid)]; None stays None."""
    return None if xids is None else "".join(f"NVRM: Xid (PCI:{address}): {xid}, pid=1\n" for address, xid in xids)


def answer(machine=None, counters=None, xids=(), **limits):
    """All that judge says."""
    readings = {"counters": {ADDRESS: {**WELL, **(counters or {})}}, "log": log_of(xids)}
    return judge(machine or node(), readings, {**LIMITS, **limits})


def result(machine=None, **more):
    """(verdict, [(check, severity) …])."""
    found = answer(machine, **more)
    return found["verdict"], [(entry["check"], entry["severity"]) for entry in found["findings"]]


def persistent(machine):
    """The same simulated machine with its persistence daemon."""
    for number, gpu in enumerate(machine.gpus):
        machine = machine.change(number, settings=(*gpu.settings, ("persistence_mode", "1")))
    return machine
