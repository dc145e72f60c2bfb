# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge SELinux of a node: whether it enforces as configured, and whether a boolean keeps the driver or training from working."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..documents.observed import Selinux
from ..documents.parsing import parse
from ..problems.problem import Problem
from .desired import desired_driver

# What each does, and the sources, are in docs/selinux.md.
MODULES, EXECMEM = "secure_mode_insmod", "deny_execmem"
# Debian's policy, which is the reference policy, says it the other way round: this one hinders where it is off.
ALLOWED_EXECMEM = "allow_execmem"


def mode_problems(selinux: Selinux) -> list[Problem]:
    """Return the one problem of a mode that is not what the configuration asks for; only enforcing can be missed."""
    if selinux.configured != "enforcing" or selinux.mode in ("enforcing", None):
        return []
    return [Problem("selinux_not_enforcing", str(selinux.mode), {"configured": selinux.configured})]


def boolean_problems(selinux: Selinux, loads_driver: bool) -> list[Problem]:
    """Return the booleans that keep a node from its work now; loads_driver: whether the driver's module has to be loaded yet."""
    enforced = _enforced(selinux)
    stops = ([MODULES] if loads_driver else []) + [EXECMEM, ALLOWED_EXECMEM]
    return [Problem("selinux_boolean", name) for name in stops if name in enforced]


def boolean_notes(selinux: Selinux, loads_driver: bool) -> list[Problem]:
    """Return the other notes on booleans: those that hinder only some, would stop a node once it enforces, or are to change."""
    judged = {problem.subject for problem in boolean_problems(selinux, loads_driver)}
    others = sorted(hindering(selinux) - judged)
    waiting = [name for name, one in sorted(selinux.booleans.items()) if one.active != one.pending]
    return [
        *(Problem("selinux_boolean", name) for name in others),
        *(Problem("selinux_pending", name, {"pending": selinux.booleans[name].pending}) for name in waiting),
    ]


def loads_driver(stack: Mapping[str, Any], state: Mapping[str, Any], variables: Mapping[str, Any]) -> bool:
    """Return True if a module of the driver has to be loaded yet: it is planned, ours to install, and not there."""
    if (state.get("driver") or {}).get("loaded") or not stack.get("driver"):
        return False
    driver = desired_driver(stack, variables)
    return driver is not None and not driver.is_left


def refusals(stack: Mapping[str, Any], state: Mapping[str, Any], variables: Mapping[str, Any]) -> list[Problem]:
    """Return the problems that would let an installation fail after hours: no module of the driver could be loaded.

    stack, state: facts gpu_stack and gpu_node_state, which may be empty; variables: the node's
    """
    found = (state.get("selinux") or {}).get("booleans") or {}
    if not (found.get(MODULES) or {}).get("active") or not loads_driver(stack, state, variables):
        return []
    selinux = parse(Selinux, state["selinux"], "gpu_node_state.selinux")
    return [Problem("selinux_no_modules", MODULES)] if MODULES in _enforced(selinux) else []


def hindering(selinux: Selinux) -> set[str]:
    """Return the booleans whose value hinders something, whether or not the node enforces."""
    return {name for name, one in selinux.booleans.items() if one.active is not (name == ALLOWED_EXECMEM)}


def _enforced(selinux: Selinux) -> set[str]:
    return hindering(selinux) if selinux.mode == "enforcing" else set()
