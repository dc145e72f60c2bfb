# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge a node's GPUs: pure functions of gpu_node, gpu_node_state and what health_reading gave."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import re

from ansible_collections.allreduce.gpu.plugins.module_utils.problems import link_problems, nvlink_problems
from ansible_collections.allreduce.gpu.plugins.module_utils.topology import gpu_label

# The worst finding is the verdict; what is unknown does not change it.
SEVERITIES = ("failed", "reboot_required", "degraded", "unknown")
# NVIDIA's "XID Errors": of these the GPU does not recover by itself …
FATAL_XIDS = (48, 62, 64, 74, 79, 95, 119, 120, 136, 140, 143)
# … and these tell of the application, not of the GPU.
APPLICATION_XIDS = (13, 31, 43, 45, 68, 69)
# Bits of nvmlClocksThrottleReason*: what an idle or power-capped GPU has is normal.
THROTTLING = {0x8: "hardware slowdown", 0x20: "software thermal", 0x40: "hardware thermal", 0x80: "power brake"}


def finding(check, expected, measured, severity, action, gpu=None):
    return {
        "check": check,
        "gpu": gpu,
        "expected": expected,
        "measured": measured,
        "severity": severity,
        "action": action,
    }


def judge(node, state, counters, xids, limits):
    """{``verdict``, ``findings``}. ``state`` may be empty, ``xids`` None; ``limits``: the module's options."""
    findings = coherence(node, state)
    if node["gpus"] or limits["gpu_count"]:
        findings += presence(node, limits) + links(node) + log(node, xids)
    for gpu in node["gpus"]:
        findings += memory(gpu, counters.get(gpu["pci_bus_id"], {}), limits) + clocks(
            gpu, counters.get(gpu["pci_bus_id"], {}), limits
        )
    present = {entry["severity"] for entry in findings}
    return {
        "verdict": next((severity for severity in SEVERITIES[:3] if severity in present), "ok"),
        "findings": findings,
    }


def coherence(node, state):
    """Loaded module, installed module, library, fabric manager, toolkit, and the kernel of the next boot."""
    driver, installed = node["driver"], (state.get("driver") or {}).get("installed")
    loaded, library = driver["loaded_version"], driver["library_version"]
    if not node["gpus"]:
        return []
    if loaded is None:
        severity = "reboot_required" if installed else "failed"
        action = "reboot to load %s" % installed if installed else "install the driver"
        return [finding("module_loaded", installed or "a driver", "not loaded", severity, action)]
    found = []
    if installed and installed != loaded:
        found.append(finding("module_installed", loaded, installed, "reboot_required", "reboot to load %s" % installed))
    if library != loaded:
        severity = "reboot_required" if library else "failed"
        action = "reboot, module and library differ" if library else "install the driver's libraries"
        found.append(finding("driver_library", loaded, library or "missing", severity, action))
    return found + fabric_manager(node, state, loaded) + toolkit(driver, state) + next_kernel(state)


def fabric_manager(node, state, loaded):
    if not node["fabric"]["manager_needed"]:
        return []
    packages = state.get("packages")
    if packages is None:
        return [finding("fabric_manager", loaded, None, "unknown", "measure packages with node_state")]
    versions = [version for name, version in packages.items() if re.match(r"nvidia-fabric-?manager(-\d+)?$", name)]
    if not versions:
        return [
            finding(
                "fabric_manager", loaded, "not installed", "failed", "install the fabric manager of version %s" % loaded
            )
        ]
    wrong = [version for version in versions if not re.match(r"(\d+:)?%s(\D|$)" % re.escape(loaded), version)]
    return [
        finding("fabric_manager", loaded, version, "failed", "install version %s: CUDA fails with error 802" % loaded)
        for version in wrong
    ]


def toolkit(driver, state):
    """A toolkit of a newer major version than the driver's CUDA does not run."""
    cuda = driver["cuda_driver_version"]
    names = [re.match(r"cuda-toolkit-(\d+)-(\d+)$", name) for name in state.get("packages") or {}]
    newest = max(
        [(int(found.group(1)), int(found.group(2))) for found in names if found] or [None], key=lambda pair: pair or ()
    )
    if cuda is None or newest is None or newest[0] <= int(cuda.split(".")[0]):
        return []
    return [
        finding(
            "cuda_toolkit",
            "at most CUDA %s" % cuda,
            "CUDA %d.%d" % newest,
            "degraded",
            "install a newer driver or an older toolkit",
        )
    ]


def next_kernel(state):
    """With DKMS, the newest kernel must have the module too, or the next boot has no GPU."""
    newest = (state.get("kernel") or {}).get("newest")
    modules = [
        entry
        for entry in state.get("dkms") or []
        if entry["module"].startswith("nvidia") and entry["status"] == "installed"
    ]
    if not newest or not modules or newest in [entry["kernel"] for entry in modules]:
        return []
    return [
        finding("next_kernel", "a module for %s" % newest, "none", "degraded", "install the headers of %s" % newest)
    ]


def presence(node, limits):
    answering = [gpu for gpu in node["gpus"] if "nvml" in gpu["seen_by"]]
    found = []
    if limits["gpu_count"] and len(answering) < limits["gpu_count"]:
        found.append(
            finding(
                "gpu_count",
                limits["gpu_count"],
                len(answering),
                "failed",
                "look for lost GPUs on the bus and in the kernel log",
            )
        )
    for gpu in node["gpus"]:
        if node["driver"]["nvml"] == "ok" and "nvml" not in gpu["seen_by"]:
            action = "reset or reboot; unless a job's device cgroup hides it"
            found.append(finding("gpu_answers", "an answer", "none", "degraded", action, gpu_label(gpu)))
    return found


def links(node):
    """The sentences of gpu_node's problems about PCIe and NVLink."""
    found = [
        finding("pcie_width", "the full width", text, "degraded", "reseat the GPU or its riser")
        for text in link_problems(node["gpus"])
    ]
    return found + [
        finding("nvlinks", "as many as its peers", text, "degraded", "reset the GPU")
        for text in nvlink_problems(node["gpus"])
    ]


def log(node, xids):
    """Xid events since boot, but not those that tell of an application."""
    if xids is None:
        return [finding("xid", "no events", None, "unknown", "run with become to read the kernel log")]
    names = {gpu["pci_bus_id"].rpartition(".")[0]: gpu_label(gpu) for gpu in node["gpus"]}
    found = []
    for address, xid in xids:
        if xid not in APPLICATION_XIDS:
            severity = "failed" if xid in FATAL_XIDS else "degraded"
            found.append(
                finding(
                    "xid",
                    "no events",
                    "Xid %d" % xid,
                    severity,
                    "look up the Xid; reset the GPU",
                    names.get(address, address),
                )
            )
    return found


def memory(gpu, counters, limits):
    """Uncorrected errors, row remapping and page retirement; only where the GPU has ECC."""
    name, found = gpu_label(gpu), []
    errors, rows = counters.get("uncorrected_errors"), counters.get("remapped_rows") or {}
    if gpu["ecc"]["current"] and errors is None:
        found.append(finding("ecc_errors", "a count", None, "unknown", "NVML did not tell", name))
    if errors is not None and errors > limits["max_uncorrected_errors"]:
        action = "drain and reset the GPU"
        found.append(
            finding("ecc_errors", "at most %d" % limits["max_uncorrected_errors"], errors, "failed", action, name)
        )
    if rows.get("failed"):
        found.append(finding("row_remapping", "spare rows", "remapping failed", "failed", "replace the GPU", name))
    if rows.get("pending"):
        found.append(finding("row_remapping", "nothing pending", "pending", "reboot_required", "reset the GPU", name))
    if counters.get("retired_pages_pending"):
        found.append(finding("page_retirement", "nothing pending", "pending", "reboot_required", "reset the GPU", name))
    return found


def clocks(gpu, counters, limits):
    name, found = gpu_label(gpu), []
    reasons = counters.get("throttle_reasons")
    if "nvml" in gpu["seen_by"] and reasons is None:
        found.append(finding("throttling", "none", None, "unknown", "NVML did not tell", name))
    for bit, text in sorted(THROTTLING.items()):
        if (reasons or 0) & bit:
            found.append(finding("throttling", "none", text, "degraded", "check cooling and power supply", name))
    if limits["persistence"] and gpu["persistence_mode"] is False:
        action = "start nvidia-persistenced"
        found.append(finding("persistence_mode", "on", "off", "degraded", action, name))
    return found
