# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Are packages and kernel modules those of the plan? Whether they fit each other, module gpu_health judges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase

from .check import Check, compared, skipped

COMPONENTS = ("driver", "fabric_manager", "cuda", "cudnn", "nccl")
CATEGORY = "coherence"


def checks(stack: Mapping, state: Mapping, gpu_node: Mapping, probe: Mapping) -> Iterator[Check]:
    for component in COMPONENTS:
        planned = (stack.get(component) or {}).get("packages") or []
        if planned:
            yield packages(component, planned, state.get("packages"))
    yield package_manager(state)
    driver = stack.get("driver")
    if driver:
        yield dkms(driver, state)
        yield nvidia_smi(gpu_node, probe.get("nvidia_smi"))
    yield reboot(state)


def version_matches(installed: str, planned: str | None) -> bool:
    """The plan may say nothing, a pattern (``535.*``) or an exact version; a Debian epoch may stand before it."""
    return planned is None or any(fnmatchcase(text, planned) for text in (installed, installed.partition(":")[2]))


def packages(component: str, planned: list[Mapping], installed: Mapping[str, str] | None) -> Check:
    """All of a component's packages at their planned versions; the reason names each one that is not."""
    name, expected = f"{component}_packages", f"{len(planned)} packages as planned"
    if installed is None:
        return compared(name, CATEGORY, expected, None, None, "installed packages could not be read")
    wrong = []
    for package in planned:
        found = installed.get(package["name"])
        if found is None:
            wrong.append(f"{package['name']} is not installed")
        elif not version_matches(found, package.get("version")):
            wrong.append(f"{package['name']} is {found} instead of {package['version']}")
    measured = f"{len(planned) - len(wrong)} of {len(planned)} packages as planned" if wrong else expected
    return compared(name, CATEGORY, expected, measured, not wrong, "; ".join(wrong))


def package_manager(state: Mapping) -> Check:
    interrupted = state.get("package_manager_interrupted")
    measured = None if interrupted is None else "interrupted" if interrupted else "consistent"
    return compared(
        "package_manager", CATEGORY, "consistent", measured, None if interrupted is None else not interrupted,
        "a package installation was interrupted; run site again",
    )  # fmt: skip


def kernels_that_matter(kernel: Mapping) -> list[str]:
    """The running kernel (the next one is judged by gpu_health). A container has none: there, those with headers."""
    return (
        [kernel["running"]] if kernel.get("running") in (kernel.get("installed") or []) else kernel.get("headers") or []
    )


def dkms(driver: Mapping, state: Mapping) -> Check:
    """The planned DKMS module is installed, in the planned branch."""
    module, branch = driver.get("dkms_module"), driver.get("branch")
    if not module:
        return skipped("dkms_module", CATEGORY, "built for every kernel", "the plan has no DKMS module")
    kernels = kernels_that_matter(state.get("kernel") or {})
    expected = f"{module} {branch} for {', '.join(kernels) or 'a kernel'}"
    if state.get("dkms") is None or not kernels:
        reason = "neither an installed kernel nor kernel headers were found"
        return compared("dkms_module", CATEGORY, expected, None, None, reason)
    built = {
        entry["kernel"]: entry["version"]
        for entry in state["dkms"]
        if entry["module"] == module and entry["status"] == "installed"
    }
    missing = [kernel for kernel in kernels if not str(built.get(kernel, "")).startswith(f"{branch}.")]
    measured = ", ".join(f"{version} for {kernel}" for kernel, version in sorted(built.items())) or "not built"
    reason = f"not built for {', '.join(missing)}; install the kernel's headers and run site again"
    return compared("dkms_module", CATEGORY, expected, measured, not missing, reason)


def nvidia_smi(gpu_node: Mapping, answer: Mapping | None) -> Check:
    """With GPUs it lists as many as NVML; without, it must start and say that there is no device."""
    count = len(gpu_node.get("gpus") or [])
    expected = f"lists {count} GPUs" if count else "runs and finds no device"
    if answer is None:
        return compared("nvidia_smi", CATEGORY, expected, None, None, "nvidia-smi was not asked")
    text, state, listed = " ".join(answer["lines"]), answer["state"], answer["count"]
    measured = {"listed": f"lists {listed} GPUs", "no_device": "no device", "no_driver": "no driver"}.get(state)
    if measured is None:
        measured = "does not run" if state == "not_started" else f"exit code {answer['exit_code']}"
    agrees = state == "listed" and listed == count if count else state in ("no_device", "no_driver")
    return compared("nvidia_smi", CATEGORY, expected, measured, agrees, text)


def reboot(state: Mapping) -> Check:
    """A pending reboot leaves the node in two minds."""
    if "reboot_pending" not in state:
        return compared("reboot", CATEGORY, "none pending", None, None, "the node was not measured")
    pending = state["reboot_pending"]
    measured = f"pending: {pending.get('reason')}" if pending else "none pending"
    reason = "reboot the node, or let the roles do it (nvidia_driver_reboot_allowed: true)"
    return compared("reboot", CATEGORY, "none pending", measured, not pending, reason)
