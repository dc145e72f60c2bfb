# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a task's options and a host's facts to a question: an option given wins over the fact."""

from __future__ import annotations

from collections.abc import Mapping

from ..documents.observed import Kernel
from ..documents.parsing import parse
from ..drift.kernels import kernels_built_for
from ..stack.interpreters import AUTO

# How setup names distributions, where that differs from os-release.
DISTRIBUTIONS = {"redhat": "rhel", "almalinux": "almalinux", "oraclelinux": "oraclelinux", "rocky": "rocky"}


def question_from_facts(options: Mapping, facts: Mapping, ansible_version: str) -> dict:
    node = facts.get("gpu_node") or {}
    return {
        "os": options.get("os") or _os(facts),
        "arch": options.get("arch") or facts.get("architecture"),
        "gpus": _gpus(options["gpus"]) if options.get("gpus") is not None else list(node.get("gpus") or []),
        "gpu_models": options.get("gpu_models") or {},
        "python": options.get("python"),
        # The role's default asks for nothing: what a plan without roles shows is then what a role asks for.
        "interpreter": options.get("interpreter") if options.get("interpreter") != AUTO else None,
        "profile": options.get("profile"),
        "request": options.get("request") or {},
        "environments": options.get("environments"),
        "ansible_core": options.get("ansible_core") or ".".join(ansible_version.split(".")[:2]),
        "suites": options.get("suites") or _suites(facts.get("gpu_node_state") or {}),
        "nvswitches": options["nvswitches"] if options.get("nvswitches") is not None else _nvswitches(node),
        "driver_owner": (facts.get("gpu_node_state") or {}).get("driver_owner"),
        "installed_driver": _installed_driver(facts),
        "take_charge": bool(options.get("take_charge")),
        "index": options.get("index"),
        "kernels": options["kernels"] if options.get("kernels") is not None else _kernels(facts),
    }


def _os(facts: Mapping) -> str | None:
    if not facts.get("distribution"):
        return None
    name = str(facts["distribution"]).lower().replace(" ", "")
    return f"{DISTRIBUTIONS.get(name, name)} {facts.get('distribution_version', '')}"


def _gpus(given: list | str) -> list:
    """Return the GPUs of an option; Ansible takes text with commas for a list, so this does."""
    return [one.strip() for one in given.split(",")] if isinstance(given, str) else given


def _installed_driver(facts: Mapping) -> dict | None:
    """The driver that is there, no matter who installed it: what the next boot loads, else what is loaded, else the library's."""
    known = (facts.get("gpu_node") or {}).get("driver") or {}
    state = (facts.get("gpu_node_state") or {}).get("driver") or {}
    versions = (state.get("installed"), state.get("loaded"), known.get("loaded_version"), known.get("library_version"))
    version = next(filter(None, versions), None)
    return {"version": version, "kernel_modules": known.get("kernel_modules")} if version else None


def _suites(state: Mapping) -> list[str] | None:
    """The suites apt takes packages from; None where that is not known."""
    suites = {mirror.get("suite") for mirror in state.get("apt_mirrors") or []}
    return sorted(suite for suite in suites if suite) or None


def _kernels(facts: Mapping) -> list[str]:
    """The kernels that the driver's module is built for; a container's are not the host's."""
    state = facts.get("gpu_node_state") or {}
    return kernels_built_for(parse(Kernel, state.get("kernel") or {}, "gpu_node_state.kernel"))


def _nvswitches(node: Mapping) -> int | None:
    switches = node.get("nvswitches")
    if isinstance(switches, Mapping):
        switches = switches.get("count")
    return len(switches) if isinstance(switches, list) else switches
