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
from ...documents.tuning import Line, ProcessLimit, TunedNode
from .decide import Decision, logind_overriding, overriding
from .request import Request

COMPONENT = "tuning"
LIMIT = "limit"


def compare_tuning(decision: Decision, wanted: Request, node: TunedNode) -> list[Comparison]:
    """Return a comparison for everything that was decided; what a node does not have is not among it."""
    return [
        *_sysctl(decision, node),
        *_switches(decision, node),
        *_logind(decision, node),
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


def _value(kind: str, subject: str, value: str, running: str | None, line: Line | None = None) -> Comparison:
    """Compare what runs, and the line of another file that sets something else at the next start."""
    if line:
        state = f"{running}, and {line.value} by line {line.line} of {line.file}"
        return compared(COMPONENT, subject, value, state, False, Remedy.OVERRIDE, kind)
    return compared(COMPONENT, subject, value, running, running == value, Remedy.APPLY, kind)


def _sysctl(decision: Decision, node: TunedNode) -> Iterator[Comparison]:
    for key, value in decision.of("sysctl").items():
        yield _value("sysctl", key, value, node.sysctl[key].running, overriding(key, value, node))


def _switches(decision: Decision, node: TunedNode) -> Iterator[Comparison]:
    for name, value in decision.of("switch").items():
        # tuned holds idle states off by itself, and says whether it does.
        if not (node.is_tuneds and name == "idle_latency"):
            yield _value("switch", name, value, node.switches[name].running)


def _logind(decision: Decision, node: TunedNode) -> Iterator[Comparison]:
    for subject, value in decision.of("logind").items():
        yield _value("logind", subject, value, node.logind.running, logind_overriding(value, node))


def _argument(argument: str, node: TunedNode) -> Comparison:
    """Compare with the kernel's own arguments, and with those of the next boot where the boot loader tells."""
    running, configured = node.arguments.running or (), node.arguments.configured
    state, remedy = None, Remedy.APPLY
    if argument in running:
        state = "set" if configured is None or argument in configured else "set until the next boot"
    elif argument in (configured or ()):
        state, remedy = "set at the next boot", Remedy.BOOT
    return compared(COMPONENT, argument, "set", state, state == "set", remedy, "argument")


def _interfaces(wanted: Request, node: TunedNode) -> Iterator[Comparison]:
    for name, known in node.interfaces.items() if not node.container else ():
        if name in wanted.interfaces and known.cpus is not None:
            outside = strays({"cpus": known.cpus, "irqs": known.irqs})
            state = f"interrupts {', '.join(outside)} elsewhere" if outside else f"processors {known.cpus}"
            yield compared(COMPONENT, name, f"processors {known.cpus}", state, not outside, Remedy.APPLY, "interrupts")


def _limits(decision: Decision, wanted: Request, node: TunedNode) -> Iterator[Comparison]:
    """Compare the limits of new processes and of running ones with what was decided."""
    fresh, services = node.limits.fresh, node.limits.services
    for name, value in decision.of("limit").items():
        desired: Any = int(value) if value.isdigit() else value
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
    state = None if value is None else f"{value}{pid}"
    return compared(COMPONENT, subject, str(desired), state, agrees, remedy, LIMIT)


def _profile(node: TunedNode) -> Iterator[Comparison]:
    known = node.tuned
    if node.is_tuneds:
        ours, profile = known.profile == PROFILE, known.profile or "no profile"
        yield compared(COMPONENT, "tuned", PROFILE, profile, ours, Remedy.APPLY, "profile")
        if ours and known.verified is not None:
            state = "applied" if known.verified else "not applied as a whole"
            yield compared(COMPONENT, "tuned-adm verify", "applied", state, known.verified, Remedy.APPLY, "profile")
