# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Are the GPUs all there, and well?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks.check import Check, compared, skipped

CATEGORY = "health"
NO_GPU = "no GPU on this host"


def checks(stack: Mapping, state: Mapping, gpu_node: Mapping) -> Iterator[Check]:
    yield count(stack, gpu_node)
    yield problems(gpu_node)
    yield persistence(stack, state, gpu_node)
    yield fabric(state, gpu_node)


def count(stack: Mapping, gpu_node: Mapping) -> Check:
    """As many GPUs answer through NVML as the plan counts."""
    planned = sum(int(gpu.get("count", 1)) for gpu in stack.get("gpus") or [])
    gpus = gpu_node.get("gpus") or []
    answering = len([gpu for gpu in gpus if "nvml" in gpu["seen_by"]])
    if not planned and not gpus:
        return compared("gpu_count", CATEGORY, 0, 0, True)
    nvml = (gpu_node.get("driver") or {}).get("nvml")
    reason = f"{len(gpus)} on the PCI bus, {answering} answer through NVML" + ("" if nvml == "ok" else f": {nvml}")
    return compared("gpu_count", CATEGORY, planned, answering, answering == planned, reason)


def problems(gpu_node: Mapping) -> Check:
    if not gpu_node.get("gpus"):
        return skipped("gpu_problems", CATEGORY, "none", NO_GPU)
    found = gpu_node.get("problems") or []
    return compared(
        "gpu_problems", CATEGORY, "none", f"{len(found)} found" if found else "none", not found, "; ".join(found)
    )


def persistence(stack: Mapping, state: Mapping, gpu_node: Mapping) -> Check:
    """Without the daemon the driver leaves idle GPUs, and the next job waits seconds for each."""
    if not gpu_node.get("gpus") or not stack.get("driver"):
        return skipped("persistence_daemon", CATEGORY, "enabled and active", NO_GPU)
    return service("persistence_daemon", CATEGORY, (state.get("services") or {}).get("nvidia-persistenced"))


def service(name: str, category: str, found: Mapping | None) -> Check:
    """A service that must be enabled and active."""
    if not found or None in (found.get("enabled"), found.get("active")):
        return compared(name, category, "enabled and active", None, None, "systemd could not be asked")
    words = [word if found[word] else f"not {word}" for word in ("enabled", "active")]
    return compared(name, category, "enabled and active", " and ".join(words), all(found.values()), "start the service")


def fabric(state: Mapping, gpu_node: Mapping) -> Check:
    """GPUs behind NVSwitches work only once the fabric manager has set the switches up."""
    needed = (gpu_node.get("fabric") or {}).get("manager_needed")
    if not gpu_node.get("gpus") or needed is False:
        reason = "no NVSwitch on this host" if gpu_node.get("gpus") else NO_GPU
        return skipped("fabric_manager", CATEGORY, "not needed", reason)
    if needed is None:
        return compared(
            "fabric_manager", CATEGORY, "active if needed", None, None, "NVML could not be asked whether it is needed"
        )
    return service("fabric_manager", CATEGORY, (state.get("services") or {}).get("nvidia-fabricmanager"))
