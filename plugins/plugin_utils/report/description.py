# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node is, from the facts, the measured GPUs, the decided stack and the node's state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from .comparisons import items
from .model import Description, Stack
from .text import clean, mapping, mappings, number, texts, whole


def describe(node: Mapping[str, Any]) -> Description:
    """The description of one node of verify.json."""
    facts, gpu_node = mapping(node.get("facts")), mapping(node.get("gpu_node"))
    stack, state = mapping(node.get("gpu_stack")), mapping(node.get("gpu_node_state"))
    memory = number(facts.get("memtotal_mb"))
    distribution = " ".join(filter(None, [clean(facts.get("distribution")), clean(facts.get("distribution_version"))]))
    return Description(
        remark=clean(node.get("remark")),
        distribution=distribution or _os(mapping(stack.get("os"))),
        kernel=_kernel(facts, mapping(state.get("kernel"))),
        architecture=clean(facts.get("architecture")),
        processors=whole(facts.get("processor_vcpus")),
        # Equal machines differ by some MiB that firmware keeps for itself.
        memory_gib=None if memory is None else round(memory / 1024, 1 if memory < 16384 else 0),
        gpus=_gpus(gpu_node, stack),
        driver=_driver(mapping(gpu_node.get("driver")), mapping(state.get("driver"))),
        container=state.get("container") is True,
        reboot_pending=_reboot(state.get("reboot_pending")),
        gpu_health=clean(mapping(node.get("gpu_health")).get("verdict")),
        problems=texts(gpu_node.get("problems")),
        stack=_stack(stack),
        items=items(node.get("comparisons")),
    )


def _os(decided: Mapping[str, Any]) -> str:
    return " ".join(filter(None, [clean(decided.get("id")).capitalize(), clean(decided.get("version"))]))


def _kernel(facts: Mapping[str, Any], kernel: Mapping[str, Any]) -> str:
    running = clean(facts.get("kernel") or kernel.get("running"))
    newest = clean(kernel.get("newest"))
    return f"{running}, installed {newest}" if newest and newest != running else running


def _gpus(gpu_node: Mapping[str, Any], stack: Mapping[str, Any]) -> tuple[str, ...]:
    """Equal GPUs counted: measured ones, else those the stack was decided for."""
    measured = Counter(_gpu(gpu) for gpu in mappings(gpu_node.get("gpus")))
    if measured:
        return tuple(f"{count} × {name}" for name, count in measured.items())
    declared = mappings(stack.get("gpus"))
    return tuple(f"{clean(gpu.get('count') or 1)} × {clean(gpu.get('model'))}, not measured" for gpu in declared)


def _gpu(gpu: Mapping[str, Any]) -> str:
    memory = number(gpu.get("memory_total_mib"))
    details = [
        f"{memory / 1024:.0f} GiB" if memory else "",
        f"compute capability {clean(gpu['compute_capability'])}" if gpu.get("compute_capability") else "",
    ]
    shown = ", ".join(filter(None, details))
    name = clean(gpu.get("name") or gpu.get("pci_device_id") or "unknown GPU")
    return f"{name} ({shown})" if shown else name


def _driver(measured: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    loaded = clean(measured.get("loaded_version") or state.get("loaded"))
    installed = clean(state.get("installed") or measured.get("library_version"))
    if loaded and installed and loaded != installed:
        return f"{loaded} loaded, {installed} installed"
    if loaded:
        return f"{loaded} loaded"
    return f"{installed} installed, not loaded" if installed else "none"


def _reboot(pending: Any) -> str:
    """Why a reboot is due; empty where none is."""
    if not pending:
        return ""
    if not isinstance(pending, Mapping):
        return "yes" if pending is True else clean(pending)
    since = clean(pending.get("since"))
    reason = clean(pending.get("reason")) or "yes"
    return f"{reason} (since {since})" if since else reason


def _stack(stack: Mapping[str, Any]) -> Stack:
    reasons = mappings(stack.get("reasons"))
    return Stack(
        summary=tuple(_summary(stack)),
        reasons=tuple((clean(row.get("component")), clean(row.get("text"))) for row in reasons),
        warnings=texts(stack.get("warnings")),
        table_version=clean(stack.get("table_version")),
    )


def _summary(stack: Mapping[str, Any]) -> Iterator[str]:
    driver = mapping(stack.get("driver"))
    if driver:
        version = clean(driver.get("version") or driver.get("branch"))
        details = [f"from {clean(driver['source'])}" if driver.get("source") else ""]
        details += [f"{clean(driver['kernel_modules'])} kernel modules" if driver.get("kernel_modules") else ""]
        yield f"driver {version} ({', '.join(filter(None, details))})" if any(details) else f"driver {version}"
    for key, label in (("fabric_manager", "fabric manager"), ("cuda", "CUDA"), ("cudnn", "cuDNN"), ("nccl", "NCCL")):
        decided = stack.get(key)
        if decided:
            shown = decided.get("version") if isinstance(decided, Mapping) else decided
            yield f"{label} {clean(shown)}".strip()
    for environment in mappings(stack.get("environments")):
        yield _environment(environment)


def _environment(environment: Mapping[str, Any]) -> str:
    python = clean(environment.get("python"))
    frameworks = [f"{clean(name)} {clean(version)}" for name, version in mapping(environment.get("frameworks")).items()]
    parts = [f"Python {python}" if python else "", *frameworks]
    accelerator = clean(environment.get("accelerator")).upper()
    shown = ", ".join(filter(None, parts)) + (f", for {accelerator}" if accelerator else "")
    return f"environment {clean(environment.get('name'))}: {shown}"
