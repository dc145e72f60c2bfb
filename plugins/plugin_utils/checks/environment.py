# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do the Python environments hold what was planned, and do their frameworks start?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .check import Check, compared, yes_no

CATEGORY = "environment"
MODULES = {"pytorch": "torch", "tensorflow": "tensorflow", "cupy": "cupy", "horovod": "horovod"}


def checks(stack: Mapping, state: Mapping, gpu_node: Mapping, probe: Mapping) -> Iterator[Check]:
    for planned in stack.get("environments") or []:
        name = planned["name"]
        yield from contents(planned, (state.get("environments") or {}).get(name))
        answer = (probe.get("environments") or {}).get(name)
        for framework in planned.get("frameworks") or {}:
            if framework in MODULES:
                yield imports(name, MODULES[framework], answer)
        if "pytorch" in (planned.get("frameworks") or {}):
            yield cuda(planned, len(gpu_node.get("gpus") or []), answer)


def contents(planned: Mapping, found: Mapping | None) -> Iterator[Check]:
    """Its Python, and every requirement, against what is installed."""
    name = planned["name"]
    if found is None:
        yield compared(
            f"{name}_python", CATEGORY, planned["python"], "missing", False, f"there is no environment {name}; run site"
        )
        return
    version = found.get("python")
    agrees = None if version is None else f"{version}.".startswith(f"{planned['python']}.")
    yield compared(
        f"{name}_python", CATEGORY, planned["python"], version, agrees, "environment of another Python; run site again"
    )
    requirements = planned.get("requirements") or []
    wrong = [text for text in (unmet(line, found.get("packages") or {}) for line in requirements) if text]
    expected = ", ".join(requirements) or "nothing"
    measured = f"{len(requirements) - len(wrong)} of {len(requirements)} met" if wrong else "all met"
    yield compared(f"{name}_packages", CATEGORY, expected, measured, not wrong, "; ".join(wrong))


def unmet(line: str, installed: Mapping[str, str]) -> str | None:
    """What is wrong with one requirement; None when it is met, or is no requirement (an option, a URL)."""
    # ansible-core brings packaging along, but its sanity tests import plugins without it.
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name
    from packaging.version import InvalidVersion

    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        return None
    found = installed.get(canonicalize_name(requirement.name))
    if found is None:
        return f"{requirement.name} is not installed"
    try:
        met = requirement.specifier.contains(found, prereleases=True)
    except InvalidVersion:
        met = False
    return None if met else f"{requirement.name} is {found} instead of {requirement.specifier}"


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
