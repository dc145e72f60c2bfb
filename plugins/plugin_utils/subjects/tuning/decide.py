# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide what a node is tuned to: the table where its conditions hold, and over it what the user declares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ....module_utils.host.limits import rank
from ...documents.gpu_node import GpuNode
from ...documents.tuning import Line, Switch, TunedNode
from ...problems.problem import Problem
from .conditions import conditions
from .request import Request
from .tables import SettingRow, Tables

FILE = "/etc/sysctl.d/90-allreduce.conf"
LAST = "/etc/sysctl.conf"
# tuned sets these again after its own profile: tuned-main.conf(5), reapply_sysctl.
REAPPLIED = ("/etc/sysctl.d/", "/run/sysctl.d/")
# What of the kernel a container has for itself; all else belongs to its host.
NAMESPACED = ("net.ipv4.", "net.ipv6.", "kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
DECLARED = "declared in the inventory"
# Of systemd's words for a truth value, those that mean the same: systemd.syntax(7).
_SAME = {"no": ("no", "false", "off", "0")}
HUGE_PAGES = "vm.nr_hugepages"
# Of memory, what huge pages may take: the rest is what programs and the page cache live in.
LARGEST_SHARE = 0.1


@dataclass(frozen=True)
class Setting:
    """A setting that a node gets. kind: sysctl, switch, logind, limit or argument; source is empty for what the user declares."""

    kind: str
    subject: str
    value: str
    reason: str
    source: str = ""


@dataclass(frozen=True)
class Left:
    """A setting that a node does not get; why: container, absent, as_is, or ceiling for the limit it gets."""

    setting: Setting
    why: str


@dataclass(frozen=True)
class Decision:
    """The settings to apply, those left alone with the reasons, and the problems that prevent any."""

    settings: tuple[Setting, ...] = ()
    left: tuple[Left, ...] = ()
    problems: tuple[Problem, ...] = ()

    def of(self, kind: str) -> dict[str, str]:
        """Return {subject: value} of one kind."""
        return {one.subject: one.value for one in self.settings if one.kind == kind}


def decide(wanted: Request, node: TunedNode, gpu_node: GpuNode, tables: Tables) -> Decision:
    """Return the decision for a node."""
    holds = conditions(wanted, node, gpu_node)
    settings: list[Setting] = []
    left: list[Left] = []
    for one in [*_rows(wanted, node, holds, tables), *_declared(wanted, tables)]:
        why = _why_left(one, node)
        known = _capped(one, wanted, node)
        if why or known != one:
            left.append(Left(known, why or "ceiling"))
        if not why:
            settings.append(known)
    found = (*_overridden(settings, node), *_huge_pages(settings, node), *_arguments(settings, node))
    return Decision(tuple(settings), tuple(left), found)


def _rows(wanted: Request, node: TunedNode, holds: frozenset[str], tables: Tables) -> Iterator[Setting]:
    """Yield the rows of the table that no declaration stands for."""
    for row in tables.settings:
        if row.condition in holds and not row.variable and row.subject not in wanted.sysctl:
            known = node.sysctl.get(row.subject, Switch())
            yield Setting(row.kind, row.subject, _value(row, known.original), row.reason, row.source)
        elif row.condition in holds and row.kind == "limit" and row.subject not in wanted.limits:
            yield Setting(row.kind, row.subject, row.value, row.reason, row.source)


def _value(row: SettingRow, original: str | None) -> str:
    """Return the value that is set; where the row is a floor, what was higher before stays."""
    if row.floor and original is not None and original.isdigit() and int(original) > int(row.value):
        return original
    return row.value


def _declared(wanted: Request, tables: Tables) -> Iterator[Setting]:
    """Yield the settings of the variables; a switch that is as the table has it keeps the table's reason."""
    rows = {(row.kind, row.subject, row.value): row for row in tables.settings}
    declared: dict[str, Mapping[str, str | None]] = {
        "sysctl": wanted.sysctl, "switch": wanted.switches, "logind": wanted.logind, "limit": wanted.limits,
    }  # fmt: skip
    for kind, given in declared.items():
        for subject, value in given.items():
            if value is not None:
                row = rows.get((kind, subject, value))
                yield Setting(kind, subject, value, row.reason if row else DECLARED, row.source if row else "")
    known = {row.argument: row for row in tables.arguments}
    for argument in wanted.arguments:
        found = known.get(argument)
        yield Setting(
            "argument", argument, argument, found.reason if found else DECLARED, found.source if found else ""
        )


def _why_left(one: Setting, node: TunedNode) -> str:
    """Return the reason why a setting is left alone; empty where it is not."""
    if node.container and (one.kind in ("switch", "argument") or not _is_namespaced(one)):
        return "container"
    if one.kind == "switch" and node.switches.get(one.subject, Switch()).running is None:
        return "absent"
    if one.kind == "logind":
        running = node.logind.running
        return "absent" if running is None else "as_is" if running == one.value and not node.logind.ours else ""
    if one.kind != "sysctl":
        return ""
    known = node.sysctl.get(one.subject, Switch())
    if known.running is None:
        return "absent"
    lines = [line for line in node.sysctl_lines if line.key == one.subject and line.file != FILE]
    as_is = (
        known.original == one.value and known.running == one.value and all(line.value == one.value for line in lines)
    )
    return "as_is" if as_is and one.source else ""


def _capped(one: Setting, wanted: Request, node: TunedNode) -> Setting:
    """Return a limit that the machine can give; where PAM cannot set one, a login keeps what it had, and only the log says so."""
    if one.kind != "limit":
        return one
    ceiling = node.limits.ceiling.get(one.subject, "unlimited")
    files = wanted.sysctl.get("fs.nr_open") or ""
    if one.subject == "nofile" and files.isdigit() and not node.container:
        ceiling = int(files)
    value = min(int(one.value) if one.value.isdigit() else one.value, ceiling, key=rank)
    return replace(one, value=str(value))


def _is_namespaced(one: Setting) -> bool:
    return one.kind != "sysctl" or one.subject.startswith(NAMESPACED)


def overriding(key: str, value: str, node: TunedNode) -> Line | None:
    """Return the line of another file that sets the key after us, to another value."""
    later = [line for line in node.sysctl_lines if line.key == key and _is_later(line.file, node.is_tuneds)]
    return later[-1] if later and later[-1].value != value else None


def logind_overriding(value: str, node: TunedNode) -> Line | None:
    """Return the line of another drop-in of logind that is read after ours and says otherwise."""
    line = node.logind.overriding
    return line if line and line.value.lower() not in _SAME[value] else None


def _is_later(path: str, tuned: bool) -> bool:
    if path == FILE:
        return False
    if tuned:
        return path.startswith(REAPPLIED) or path == LAST
    return path == LAST or path.rpartition("/")[2] > FILE.rpartition("/")[2]


def _overridden(settings: list[Setting], node: TunedNode) -> Iterator[Problem]:
    for one in settings:
        if one.kind == "sysctl":
            yield from _stays("tuning_overridden", one, overriding(one.subject, one.value, node))
        elif one.kind == "logind":
            yield from _stays("tuning_logind_overridden", one, logind_overriding(one.value, node))


def _stays(code: str, one: Setting, line: Line | None) -> Iterator[Problem]:
    """Yield the problem of a setting that would not stay, because of a line that is read later."""
    if line:
        yield Problem(
            code, one.subject, {"value": one.value, "file": line.file, "line": line.line, "found": line.value}
        )


def _huge_pages(settings: list[Setting], node: TunedNode) -> Iterator[Problem]:
    for one in settings:
        if one.subject == HUGE_PAGES and one.value.isdigit() and node.memory_kib and node.huge_page_kib:
            share = int(one.value) * node.huge_page_kib / node.memory_kib
            if share > LARGEST_SHARE:
                most = int(node.memory_kib * LARGEST_SHARE // node.huge_page_kib)
                yield Problem(
                    "tuning_huge_pages", one.subject, {"value": one.value, "percent": round(share * 100), "most": most}
                )


def _arguments(settings: list[Setting], node: TunedNode) -> Iterator[Problem]:
    """Yield arguments that nothing can set, or that another tool has set to another value."""
    for one in settings:
        if one.kind != "argument":
            continue
        if node.arguments.tool is None or node.arguments.configured is None:
            yield Problem("tuning_no_boot_loader", one.subject)
            continue
        if node.arguments.tool == "update-grub" and node.arguments.overriding:
            yield Problem("tuning_argument_overridden", one.subject, {"file": node.arguments.overriding})
        name = one.subject.rpartition("=")[0]
        others = [word for word in node.arguments.configured if word.rpartition("=")[0] == name and word != one.subject]
        if others:
            yield Problem("tuning_argument_conflict", one.subject, {"found": ", ".join(others)})
