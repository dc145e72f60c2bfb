# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge whether the frameworks of the Python environments start and see the GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .check import Check, compared, yes_no

CATEGORY = "environment"
MODULES = {"pytorch": "torch", "tensorflow": "tensorflow", "cupy": "cupy", "horovod": "horovod"}


def checks(stack: Mapping, gpu_node: Mapping, probe: Mapping) -> Iterator[Check]:
    for planned in stack.get("environments") or []:
        name = planned["name"]
        answer = (probe.get("environments") or {}).get(name)
        for framework in planned.get("frameworks") or {}:
            if framework in MODULES:
                yield imports(name, MODULES[framework], answer)
        if "pytorch" in (planned.get("frameworks") or {}):
            yield cuda(planned, len(gpu_node.get("gpus") or []), answer)


def imports(name: str, module: str, answer: Mapping | None) -> Check:
    """The framework starts in the environment's interpreter."""
    label, expected = f"{name}_{module}", f"{module} can be imported"
    found = (answer or {}).get(module)
    if found is None:
        return compared(
            label, CATEGORY, expected, None, None, (answer or {}).get("error") or "the environment was not asked"
        )
    if found.get("error"):
        return compared(label, CATEGORY, expected, "cannot be imported", False, found["error"])
    return compared(label, CATEGORY, expected, f"{module} {found['version']}", True)


def cuda(planned: Mapping, gpus: int, answer: Mapping | None) -> Check:
    """PyTorch sees the GPUs where the environment is built for them, and none elsewhere."""
    wanted = planned.get("accelerator") == "cuda"
    label, expected = f"{planned['name']}_cuda", f"yes, {gpus} GPUs" if wanted else "no"
    found = (answer or {}).get("torch") or {}
    available = found.get("cuda_available")
    if available is None:
        return compared(label, CATEGORY, expected, None, None, found.get("error") or "PyTorch could not be asked")
    count = found.get("device_count") or 0
    measured = f"yes, {count} GPUs" if available else yes_no(available)
    agrees = available == wanted and (not wanted or count == gpus)
    return compared(label, CATEGORY, expected, measured, agrees, "torch.cuda.is_available() does not match the plan")
