# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a decision to what module tuning gets: files, values, arguments and tuned's profile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ....module_utils.host import logind, tuned
from ....module_utils.host.sysctl import path_of
from ....module_utils.settings.tuning_facts import SWITCHES
from ...documents.tuning import TunedNode
from .decide import FILE, Decision, Setting
from .request import Request

HEAD = "# Written by role allreduce.gpu.tuning; tuning_state: absent puts back what was there before."
LIMITS = "/etc/security/limits.d/90-allreduce.conf"
MANAGERS = ("/etc/systemd/system.conf.d/90-allreduce.conf", "/etc/systemd/user.conf.d/90-allreduce.conf")
DECLARATION = "/etc/allreduce/tuning.json"
# What tuned calls the switches, and in which section of a profile.
TUNED = {
    "governor": ("cpu", "governor"),
    "idle_latency": ("cpu", "force_latency"),
    "transparent_hugepage": ("vm", "transparent_hugepages"),
}
# More open files than these make select(2) fail in programs that know nothing of it: systemd.exec(5).
SOFT_FILES = "1024"


def plan(decision: Decision, wanted: Request, node: TunedNode) -> dict[str, Any]:
    """Return the options of module tuning, and ``boot``: whether a unit of ours has to apply something at boot.

    One owner for each value: tuned where it is in charge, else sysctl.d and the unit.
    """
    owned = node.is_tuneds
    switches = decision.of("switch")
    # tuned holds idle states off by itself, without the files that we write.
    ours = {} if owned else switches
    watched = {name: value for name, value in switches.items() if not (owned and name == "idle_latency")}
    interfaces = [] if node.container else list(wanted.interfaces)
    files = [
        *(_profile(decision, node) if owned else _sysctl(decision)),
        *_logind(decision),
        *_limits(decision, wanted),
    ]
    if ours or interfaces:
        values = [{"path": SWITCHES[name], "value": value} for name, value in ours.items()]
        text = json.dumps({"values": values, "interfaces": interfaces}, indent=1, sort_keys=True) + "\n"
        files.append(_file(DECLARATION, text))
    return {
        "files": files,
        "values": [
            *({"path": path_of(key), "value": value} for key, value in decision.of("sysctl").items()),
            *({"path": SWITCHES[name], "value": value} for name, value in watched.items()),
        ],
        "interfaces": interfaces,
        "arguments": list(decision.of("argument")),
        "profile": tuned.PROFILE if owned else "",
        "boot": bool(ours or interfaces),
    }


def _file(path: str, *lines: str) -> dict[str, str]:
    return {"path": path, "content": "\n".join(lines), "mode": "0644"}


def _reason(one: Setting) -> str:
    return f"# {one.reason} ({one.source})" if one.source else f"# {one.reason}"


def _lines(settings: list[Setting], equals: str) -> Iterator[str]:
    for one in settings:
        yield from (_reason(one), f"{one.subject}{equals}{one.value}")


def _sysctl(decision: Decision) -> Iterator[dict[str, str]]:
    settings = [one for one in decision.settings if one.kind == "sysctl"]
    if settings:
        yield _file(FILE, HEAD, *_lines(settings, " = "), "")


def _logind(decision: Decision) -> Iterator[dict[str, str]]:
    settings = [one for one in decision.settings if one.kind == "logind"]
    if settings:
        yield _file(logind.DROP_IN, HEAD, "[Login]", *_lines(settings, "="), "")


def _profile(decision: Decision, node: TunedNode) -> Iterator[dict[str, str]]:
    """Return our profile, on a base that sets idle states only where they are wanted."""
    switches = decision.of("switch")
    bases = [name for name in node.tuned.bases if "idle_latency" in switches or name != tuned.BASES[0]]
    lines = [HEAD, "[main]", "summary=Training with several GPUs"]
    lines += [f"include={bases[0]}"] if bases else []
    settings = [one for one in decision.settings if one.kind == "sysctl"]
    lines += ["", "[sysctl]", *_lines(settings, "=")] if settings else []
    for section in ("cpu", "vm"):
        named = [(TUNED[name][1], value) for name, value in switches.items() if TUNED[name][0] == section]
        lines += ["", f"[{section}]", *(f"{name}={value}" for name, value in named)] if named else []
    yield _file(f"{node.tuned.directory}/tuned.conf", *lines, "")


def _limits(decision: Decision, wanted: Request) -> Iterator[dict[str, str]]:
    """Return the files for sessions, for the defaults of systemd's managers, and for services by name."""
    settings = [one for one in decision.settings if one.kind == "limit"]
    if not settings:
        return
    sessions = [
        line
        for one in settings
        for line in (_reason(one), *(f"{who} - {one.subject} {_session(one)}" for who in ("*", "root")))
    ]
    yield _file(LIMITS, HEAD, *sessions, "")
    for path in MANAGERS:
        defaults = [line for one in settings for line in (_reason(one), f"DefaultLimit{_systemd(one, SOFT_FILES)}")]
        yield _file(path, HEAD, "[Manager]", *defaults, "")
    for service in wanted.services:
        own = [line for one in settings for line in (_reason(one), f"Limit{_systemd(one)}")]
        yield _file(f"/etc/systemd/system/{service}.service.d/90-allreduce.conf", HEAD, "[Service]", *own, "")


def _session(one: Setting) -> str:
    """Return the value as limits.conf(5) has it: locked memory in KiB, no page less than asked for."""
    return str(-(-int(one.value) // 1024)) if one.subject == "memlock" and one.value.isdigit() else one.value


def _systemd(one: Setting, soft_files: str = "") -> str:
    value = "infinity" if one.value == "unlimited" else one.value
    return f"{one.subject.upper()}={soft_files + ':' if soft_files and one.subject == 'nofile' else ''}{value}"
