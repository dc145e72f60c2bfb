# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The choice of the node that compiles the driver's kernel module for others. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..documents.observed import Observed
from ..documents.parsing import parse
from ..documents.stack import Stack
from ..drift.kernels import built_for, kernels_that_matter, module_version
from ..drift.record import observe

# What is read of each node.
READS = ("ansible_facts.gpu_stack", "ansible_facts.gpu_node_state", "__nvidia_driver_asks")
FIRST = "first"  # the builder is the first node of each kind


@dataclass(frozen=True)
class Kind:
    """The properties that make the compiled modules of two nodes interchangeable."""

    module: str
    version: str  # or the pattern of a version that the node's archive decides
    arch: str
    kernels: tuple[str, ...]
    key: str | None  # the certificate, where the kernel demands signatures


def assign_builders(hosts: Mapping[str, Mapping[str, Any]], builder: str) -> dict[str, dict[str, Any]]:
    """Map each node that takes its kernel module from another one to {giver, name, arch, kernels}.

    hosts: name -> {stack, state, asks}, in the play's order; asks: whether role nvidia_driver is to compile there.
    builder: name of the node that compiles for all of its kind; FIRST: the first that has the module, else the first that asks.
    """
    kinds: dict[Kind, list[str]] = {}
    built = {}
    for host, given in hosts.items():
        stack, observed = parse(Stack, given["stack"]), observe(given["state"])
        kind = _kind(stack, observed)
        if kind is not None:
            built[host] = _has_built(kind, observed)
            if built[host] or given["asks"]:
                kinds.setdefault(kind, []).append(host)
    takes = {}
    for kind, members in kinds.items():
        giver = _giver(members, built, builder)
        if giver is not None:
            what = {"giver": giver, "name": kind.module, "arch": kind.arch, "kernels": list(kind.kernels)}
            takes.update({host: what for host in members if host != giver and not built[host]})
    return takes


def _giver(members: list[str], built: Mapping[str, bool], builder: str) -> str | None:
    if builder != FIRST:
        return builder if builder in members else None
    return next((host for host in members if built[host]), members[0])


def _kind(stack: Stack, observed: Observed) -> Kind | None:
    """Return the kind of a node; None where DKMS has no module, or must sign it with a key that is not there yet.

    NVIDIA's installer calls DKMS itself, and fails where that does not build.
    """
    driver, boot = stack.driver, observed.secure_boot
    if driver is None or not driver.dkms_module or driver.source == "runfile":
        return None
    kernels = tuple(sorted(kernels_that_matter(observed.kernel)))
    # Where the firmware could not be asked, the kernel may demand signatures.
    key = None if boot.enforced is False else boot.fingerprint
    if not kernels or not set(kernels) <= set(observed.kernel.headers) or (boot.enforced is not False and not key):
        return None
    return Kind(driver.dkms_module, driver.version_pattern, stack.os.arch, kernels, key)


def _has_built(kind: Kind, observed: Observed) -> bool:
    known = observed.dkms or ()
    version = module_version(known, kind.module, kind.version)
    return version is not None and all(built_for(known, kind.module, kernel) == version for kernel in kind.kernels)
