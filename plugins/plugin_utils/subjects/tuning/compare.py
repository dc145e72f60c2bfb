# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what a node is tuned to with what was decided for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ....module_utils.host.interrupts import strays
from ....module_utils.host.limits import rank
from ....module_utils.host.tuned import PROFILE
from ...documents.comparison import Comparison, Remedy, Status, compared
from ...documents.tuning import ProcessLimit, Switch, TunedNode
from .decide import Decision, logind_overriding, overriding
from .request import Request

COMPONENT = "tuning"
LIMIT = "limit"


def compare_tuning(decision: Decision, wanted: Request, node: TunedNode) -> list[Comparison]:
    """Return a comparison for everything that was decided; what a node does not have is not among it."""
    return [
        *(_value("sysctl", key, value, node.sysctl.get(key), node) for key, value in decision.of("sysctl").items()),
        *_switches(decision, node),
        *(_logind(subject, value, node) for subject, value in decision.of("logind").items()),
        *(_argument(argument, node) for argument in decision.of("argument")),
        *_interfaces(wanted, node),
        *_limits(decision, wanted, node),
        *_profile(node),
    ]


def compare_unmeasured() -> list[Comparison]:
    """Return the one comparison of a node that is to be tuned and was not looked at."""
    return [compared(COMPONENT, "tuning", "as declared", None, None, Remedy.MEASURE, "sysctl")]


def compare_untuned(recorded: bool) -> list[Comparison]:
    """Return the differences of a node that is not to be tuned: that it still is."""
    if not recorded:
        return []
    return [Comparison(COMPONENT, "tuning", "as it was", "tuned", Status.UNWANTED, Remedy.APPLY, "sysctl")]


def _value(kind: str, subject: str, value: str, known: Switch | None, node: TunedNode) -> Comparison:
    """Compare what runs, and what another file sets at the next boot."""
    running = known.running if known else None
    line = overriding(subject, value, node) if kind == "sysctl" else None
    if line:
        state = f"{running}, and {line.value} by line {line.line} of {line.file}"
        return compared(COMPONENT, subject, value, state, False, Remedy.OVERRIDE, kind)
    return compared(COMPONENT, subject, value, running, running == value, Remedy.APPLY, kind)


def _switches(decision: Decision, node: TunedNode) -> Iterator[Comparison]:
    for name, value in decision.of("switch").items():
        # tuned holds idle states off by itself, and says whether it does.
        if not (node.is_tuneds and name == "idle_latency"):
            yield _value("switch", name, value, node.switches.get(name), node)


def _logind(subject: str, value: str, node: TunedNode) -> Comparison:
    """Compare what the daemon does, and what a later drop-in says at its next start."""
    running, line = node.logind.running, logind_overriding(value, node)
    if line:
        state = f"{running}, and {line.value} by line {line.line} of {line.file}"
        return compared(COMPONENT, subject, value, state, False, Remedy.OVERRIDE, "logind")
    return compared(COMPONENT, subject, value, running, running == value, Remedy.APPLY, "logind")


def _argument(argument: str, node: TunedNode) -> Comparison:
    """Compare with the kernel's own arguments, and with those of the next boot where the boot loader tells."""
    known = node.arguments
    if argument in (known.running or ()) and known.configured is not None and argument not in known.configured:
        return compared(COMPONENT, argument, "set", "set until the next boot", False, Remedy.APPLY, "argument")
    if known.running is not None and argument in known.running:
        return compared(COMPONENT, argument, "set", "set", True, Remedy.NONE, "argument")
    if argument in (known.configured or ()):
        return compared(COMPONENT, argument, "set", "set at the next boot", False, Remedy.BOOT, "argument")
    return compared(COMPONENT, argument, "set", None, False, Remedy.APPLY, "argument")


def _interfaces(wanted: Request, node: TunedNode) -> Iterator[Comparison]:
    for name, known in node.interfaces.items() if not node.container else ():
        if name not in wanted.interfaces or known.cpus is None:
            continue
        outside = strays({"cpus": known.cpus, "irqs": known.irqs})
        state = f"interrupts {', '.join(outside)} elsewhere" if outside else f"processors {known.cpus}"
        yield compared(COMPONENT, name, f"processors {known.cpus}", state, not outside, Remedy.APPLY, "interrupts")


def _limits(decision: Decision, wanted: Request, node: TunedNode) -> Iterator[Comparison]:
    """Compare the limits of new processes and of running ones with what was decided and this machine can give."""
    fresh, services = node.limits.fresh, node.limits.services
    for name, value in decision.of("limit").items():
        desired: Any = int(value) if value.isdigit() else value
        ceiling = node.limits.ceiling.get(name, desired)
        desired = min(desired, ceiling, key=rank)
        for what, found in (("a login", fresh.login), ("a new service", fresh.unit)) if fresh else ():
            # A service gets a low limit of open files and may raise it.
            side = "hard" if (what, name) == ("a new service", "nofile") else "soft"
            yield _limit(f"{name} of {what}", desired, found.get(name), side, Remedy.APPLY)
        for service, running in services.items():
            side = "soft" if service in wanted.services or name != "nofile" else "hard"
            yield _limit(f"{name} of {service}", desired, running.get(name), side, Remedy.RESTART)


def _limit(subject: str, desired: Any, found: ProcessLimit | None, side: str, remedy: Remedy) -> Comparison:
    value = getattr(found, side) if found else None
    agrees = None if value is None else rank(value) >= rank(desired)
    # Numbers of processes that need no restart would only make equal nodes differ.
    pid = f" (process {found.pid})" if found and found.pid and agrees is False else ""
    return compared(COMPONENT, subject, str(desired), f"{value}{pid}", agrees, remedy, LIMIT)


def _profile(node: TunedNode) -> Iterator[Comparison]:
    known = node.tuned
    if not node.is_tuneds:
        return
    yield compared(
        COMPONENT, "tuned", PROFILE, known.profile or "no profile", known.profile == PROFILE, Remedy.APPLY, "profile"
    )
    if known.profile == PROFILE and known.verified is not None:
        state = "applied" if known.verified else "not applied as a whole"
        yield compared(COMPONENT, "tuned-adm verify", "applied", state, known.verified, Remedy.APPLY, "profile")
