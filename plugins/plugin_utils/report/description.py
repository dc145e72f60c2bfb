# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describe a node by its facts, the measured GPUs, the resolved stack and the observed state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..documents.gpu_node import Gpu, GpuNode, MeasuredDriver
from ..documents.observed import InstalledDriver, Kernel, Reboot
from ..documents.stack import Environment, System
from ..documents.stack import Stack as DesiredStack
from ..documents.verification import Facts, NodeVerification
from ..drift.components import PACKAGED
from .comparisons import items
from .model import Description, Stack


def describe(node: NodeVerification) -> Description:
    """Return the description of one node of verify.json."""
    facts, stack, state = node.facts, node.gpu_stack, node.gpu_node_state
    memory = facts.memtotal_mb
    return Description(
        remark=node.remark,
        distribution=_joined(facts.distribution, facts.distribution_version) or _os(stack.os),
        kernel=_kernel(facts, state.kernel),
        architecture=facts.architecture or "",
        processors=facts.processor_vcpus,
        # Equal machines differ by some MiB that firmware keeps for itself.
        memory_gib=None if memory is None else round(memory / 1024, 1 if memory < 16384 else 0),
        gpus=_gpus(node.gpu_node, stack),
        driver=_driver(node.gpu_node.driver, state.driver or InstalledDriver()),
        container=state.container is True,
        reboot_pending=_reboot(state.reboot_pending),
        gpu_health=node.gpu_health.verdict if node.gpu_health else "",
        problems=node.gpu_node.problems,
        stack=_stack(stack),
        items=items(node.comparisons),
    )


def _joined(*words: str | None) -> str:
    return " ".join(filter(None, words))


def _os(decided: System) -> str:
    return _joined(decided.id.capitalize(), decided.version)


def _kernel(facts: Facts, kernel: Kernel) -> str:
    running, following = facts.kernel or kernel.running or "", kernel.next_boot or kernel.newest
    return f"{running}, next boot {following}" if following and following != running else running


def _gpus(gpu_node: GpuNode, stack: DesiredStack) -> tuple[str, ...]:
    """Equal GPUs counted: measured ones, else those the stack was decided for."""
    measured = Counter(_gpu(gpu) for gpu in gpu_node.gpus)
    if measured:
        return tuple(f"{count} × {name}" for name, count in measured.items())
    return tuple(f"{gpus.count or 1} × {gpus.model}, not measured" for gpus in stack.gpus)


def _gpu(gpu: Gpu) -> str:
    details = [
        f"{gpu.memory_total_mib / 1024:.0f} GiB" if gpu.memory_total_mib else "",
        f"compute capability {gpu.compute_capability}" if gpu.compute_capability else "",
    ]
    shown = ", ".join(filter(None, details))
    name = gpu.name or gpu.pci_name or gpu.pci_device_id or "unknown GPU"
    return f"{name} ({shown})" if shown else name


def _driver(measured: MeasuredDriver, state: InstalledDriver) -> str:
    loaded = measured.loaded_version or state.loaded
    installed = state.installed or measured.library_version
    if loaded and installed and loaded != installed:
        return f"{loaded} loaded, {installed} installed"
    if loaded:
        return f"{loaded} loaded"
    return f"{installed} installed, not loaded" if installed else "none"


def _reboot(pending: Reboot | None) -> str:
    """Return the reason why a reboot is due; empty where none is."""
    if pending is None:
        return ""
    reason = pending.reason or "yes"
    return reason if pending.since in (None, "") else f"{reason} (since {pending.since})"


def _stack(stack: DesiredStack) -> Stack:
    return Stack(
        summary=tuple(_summary(stack)),
        reasons=tuple((reason.component, reason.text) for reason in stack.reasons),
        warnings=stack.warnings,
        table_version=stack.table_version,
    )


def _summary(stack: DesiredStack) -> Iterator[str]:
    driver = stack.driver
    if driver:
        details = [f"from {driver.source}" if driver.source else ""]
        details += [f"{driver.kernel_modules} kernel modules" if driver.kernel_modules else ""]
        shown = ", ".join(filter(None, details))
        version = driver.version or driver.branch
        yield f"driver {version} ({shown})" if shown else f"driver {version}"
    for one in PACKAGED:
        component = None if one.name == "driver" else getattr(stack, one.name)
        if component:
            yield _joined(one.label, component.version)
    for environment in stack.environments:
        yield _environment(environment)


def _environment(environment: Environment) -> str:
    frameworks = [f"{name} {version}" for name, version in environment.frameworks.items()]
    parts = [f"Python {environment.python}" if environment.python else "", *frameworks]
    accelerator = environment.accelerator.upper()
    shown = ", ".join(filter(None, parts)) + (f", for {accelerator}" if accelerator else "")
    return f"environment {environment.name}: {shown}"
