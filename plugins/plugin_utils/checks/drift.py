# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Render comparisons of plan and node as checks: one check for each kind of thing of a component."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..documents.comparison import Comparison, Remedy, Status
from .check import PLAY, Check, check, joined

# What site is to a node: whether a role has ever worked there.
SITE = {True: "run site again", False: "run site, which has not set up this node yet"}
ADVICE = {
    Remedy.REPAIR: "{site}",
    Remedy.KERNEL: "install package kernel in that version, or {site} (base_kernel_headers: true)",
    Remedy.SOURCES: "{site}",
    Remedy.INSTALL: "{site}",
    Remedy.REMOVE: "{site}",
    Remedy.BUILD: "install the kernel's headers where they are missing, and {site}",
    Remedy.GENERATE: "{site}",
    Remedy.SERVICE: "bring the service to that state, or {site}",
    Remedy.ENROL: "{site} with nvidia_driver_signing_key_password, and confirm the key at the console",
    Remedy.CONFIRM: "reboot the node and choose Enroll MOK at its console",
    Remedy.LOAD: "load the kernel module, or reboot the node",
    Remedy.REBOOT: "reboot the node, or let the roles do it (nvidia_driver_reboot_allowed: true)",
    Remedy.ENVIRONMENT: "{site}",
    Remedy.APPLY: "{site}",
    Remedy.DECLARE: "declare what this node can have",
    Remedy.FOREIGN: "remove that line, or name the variable in nccl_conf_elsewhere",
    Remedy.DISKS: "free the disks and the mount point by hand, or declare others; nothing is wiped",
    Remedy.LINE: "remove that line",
    Remedy.RESTART: "restart the service, or end the session, and start it again",
    Remedy.OVERRIDE: "remove that line, or do not declare the value",
    Remedy.BOOT: "reboot the node",
    Remedy.LIBRARY: "look up in docs/rdma.md what each reason needs",
    Remedy.RECONFIGURE: "{site}, and 'scontrol reconfigure'; docs/slurm.md says which lines include the files",
    Remedy.RESUME: "see to the reason, then 'scontrol update NodeName=... State=RESUME'; docs/slurm.md says more",
    Remedy.OTHERS: "ask those who run that cluster to see to it",
    Remedy.MEASURE: PLAY,
    Remedy.NONE: "",
}
_NAMES = {
    ("driver", "module"): "dkms_module",
    ("driver", "source"): "driver_sources",
    ("driver", "version"): "driver_version",
    ("driver", "state"): "driver_loaded",
    ("driver", "key"): "driver_signing_key",
    ("node", "service"): "clock_service",
    ("node", "hold"): "package_holds",
    ("node", "file"): "written_files",
    ("node", "modprobe"): "module_parameters",
}
_NODE_STATES = {"package manager": "package_manager", "reboot": "reboot", "kernel": "next_kernel"}


def checks(comparisons: Iterable[Comparison], has_run: bool = True) -> Iterator[Check]:
    """Yield the checks, in the order of their first comparisons; has_run: whether a role has ever recorded anything on the node."""
    groups: dict[str, list[Comparison]] = {}
    for comparison in _without_repetition(list(comparisons)):
        groups.setdefault(name(comparison), []).append(comparison)
    for label, found in groups.items():
        yield _check(label, found, SITE[has_run])


def _without_repetition(found: list[Comparison]) -> Iterator[Comparison]:
    """Leave out what the lock says of a package about which the request says it already."""
    said = {(one.component, one.subject) for one in found if one.kind == "requirement" and one.differs}
    return (one for one in found if one.kind != "locked" or (one.component, one.subject) not in said)


def name(comparison: Comparison) -> str:
    """Return the name of the check that a comparison belongs to."""
    component, kind = comparison.component, comparison.kind
    if component == "node" and kind == "state":
        return _NODE_STATES[comparison.subject]
    if (component, kind) in _NAMES:
        return _NAMES[component, kind]
    part = {"package": "packages", "requirement": "packages", "locked": "lock"}.get(kind, kind)
    return f"{component.removeprefix('environment ')}_{part}"


def _check(label: str, found: list[Comparison], site: str) -> Check:
    differing = [one for one in found if one.differs]
    unknown = bool(differing) and all(one.status is Status.UNKNOWN for one in differing)
    status = "unknown" if unknown else "failed" if differing else "passed"
    causes, advice = map(sentence, differing), (ADVICE[one.remedy].format(site=site) for one in differing)
    return check(
        label,
        _category(found[0]),
        _expected(found),
        _measured(found, differing),
        status,
        joined(causes),
        joined(advice),
    )


def _category(one: Comparison) -> str:
    if one.component.startswith("environment "):
        return "environment"
    return "network" if (one.component, one.kind) == ("node", "service") else "coherence"


def _expected(found: list[Comparison]) -> str:
    planned = [one for one in found if one.status is not Status.UNWANTED]
    if len(found) == 1:
        return found[0].desired
    if found[0].kind == "module":
        return ", ".join(f"{one.desired} for {one.subject}" for one in planned)
    return f"{len(planned)} as planned" if planned else "nothing in the way of the plan"


def _measured(found: list[Comparison], differing: list[Comparison]) -> str:
    if any(one.status is Status.UNKNOWN for one in differing):
        return "not known"
    if len(found) == 1:
        return found[0].observed or "missing"
    if found[0].kind == "module":
        return ", ".join(f"{one.observed or 'none'} for {one.subject}" for one in found)
    return f"{len(found) - len(differing)} as planned, {len(differing)} not" if differing else _expected(found)


def sentence(one: Comparison) -> str:
    """Return a difference in words."""
    if one.status is Status.MISSING:
        return f"{one.subject}: {one.desired} is missing" if one.kind == "module" else f"{one.subject} is missing"
    if one.status is Status.UNWANTED:
        return f"{one.subject} ({one.observed}) is in the way of the plan"
    if one.status is Status.DIFFERS:
        return f"{one.subject} is {one.observed} instead of {one.desired}"
    if one.remedy is Remedy.NONE:
        return f"{one.subject} could not be judged: {one.observed}"
    return f"{one.subject} could not be measured"
