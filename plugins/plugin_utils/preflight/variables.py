# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find misspelt role variables by name, before any host is touched. Pure: names in, findings out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

__all__ = ["Finding", "declared_options", "describe", "find_unknown", "summarize_hosts"]

# Ordinary words a site may well use for variables of its own: without a near match they are only warned about.
GENERIC_ROLES = frozenset({"base", "firewall", "qos", "scratch", "stack", "tuning", "verify"})

# How alike two names must be for one to be taken for the other misspelt (difflib's ratio).
NEAR = 0.8


class Finding(NamedTuple):
    """An undeclared variable: its name, the role it seems meant for, the nearest declared name or None."""

    name: str
    role: str | None
    nearest: str | None
    fatal: bool


def declared_options(specs: Mapping[str, Mapping]) -> dict[str, set[str]]:
    """Options of each role, over all its entry points.

    specs: role name -> content of its meta/argument_specs.yml
    """
    return {
        role: {
            option
            for entry_point in (spec.get("argument_specs") or {}).values()
            for option in ((entry_point or {}).get("options") or {})
        }
        for role, spec in specs.items()
    }


def _nearest(name: str, candidates: Iterable[str]) -> str | None:
    matches = difflib.get_close_matches(name, sorted(candidates), n=1, cutoff=NEAR)
    return matches[0] if matches else None


def _nearest_role_option(name: str, role: str, options: Iterable[str]) -> str | None:
    """The nearest option by its own part: a long prefix must not make everything look alike."""
    prefix = role + "_"
    tails = {option[len(prefix) :]: option for option in options if option.startswith(prefix)}
    tail = _nearest(name[len(prefix) :], tails)
    return tails[tail] if tail else _nearest_word(name, options)


def _nearest_word(name: str, options: Iterable[str]) -> str | None:
    """An option of the same words in another order or number: base_timezones, base_server_ntp."""
    words = sorted(word.rstrip("s") for word in name.split("_"))
    return next((o for o in sorted(options) if sorted(w.rstrip("s") for w in o.split("_")) == words), None)


def _role_of(name: str, roles: Iterable[str]) -> str | None:
    """The role with the longest prefix of this name: nvidia_driver_x is nvidia_driver's, not nvidia's."""
    return max((role for role in roles if name.startswith(role + "_")), key=len, default=None)


def _judge(name: str, declared: Mapping[str, set[str]], shared: set[str]) -> Finding | None:
    role = _role_of(name, declared)
    if role is not None:
        nearest = _nearest_role_option(name, role, declared[role])
        return Finding(name, role, nearest, fatal=nearest is not None or role not in GENERIC_ROLES)
    prefixes = {"_".join(option.split("_")[:1]) + "_" for option in shared}
    everything = set().union(*declared.values()) | shared
    # A name outside every role counts only when it nearly is a declared one: gpu_stack_reqest, pyton_env_no_index.
    candidates = shared if any(name.startswith(prefix) for prefix in prefixes) else everything - shared
    matches = difflib.get_close_matches(name, sorted(candidates), n=1, cutoff=0.9)
    return Finding(name, None, matches[0], fatal=True) if matches else None


def find_unknown(names: Iterable[str], declared: Mapping[str, set[str]], ignore: Iterable[str] = ()) -> list[Finding]:
    """Every name that looks like a role's variable and is none, sorted by name.

    names: distinct variable names of all hosts; ignore: names or shell patterns that belong to somebody else
    """
    known = set().union(*declared.values()) if declared else set()
    shared = {option for role, options in declared.items() for option in options if _role_of(option, declared) is None}
    patterns = list(ignore)
    findings = []
    for name in sorted(set(names) - known):
        if name.startswith(("_", "ansible_")) or any(fnmatchcase(name, pattern) for pattern in patterns):
            continue
        finding = _judge(name, declared, shared)
        if finding is not None:
            findings.append(finding)
    return findings


def summarize_hosts(hosts: Iterable[str], groups: Mapping[str, Iterable[str]], limit: int = 3) -> str:
    """The smallest words for a set of hosts: a group that has exactly these, or the first few names."""
    wanted = set(hosts)
    if len(wanted) > 1:
        equal = sorted(name for name, members in groups.items() if set(members) == wanted and name != "ungrouped")
        if equal:
            # A group the user named says more than "all".
            return "group " + next((name for name in equal if name != "all"), "all")
    first = sorted(wanted)[:limit]
    more = len(wanted) - len(first)
    names = ", ".join(first) + (f" and {more} more" if more else "")
    return ("hosts " if len(wanted) > 1 else "host ") + names


def describe(finding: Finding, where: str) -> str:
    """One sentence: what is wrong, where it is set, what to write instead."""
    if finding.nearest:
        return f"Unknown variable {finding.name} ({where}): did you mean {finding.nearest}?"
    return (
        f"Unknown variable {finding.name} ({where}): role {finding.role} has no such option; "
        f"see its README or 'ansible-doc -t role allreduce.gpu.{finding.role}'."
    )
