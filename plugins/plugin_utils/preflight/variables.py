# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find misspelt role variables by name, before any host is touched. Pure: names in, findings out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

__all__ = ["GENERIC_ROLES", "Finding", "declared_options", "find_unknown"]

# Names of roles that are ordinary words, with which a site may begin variables of its own. In an inventory, such a
# name without a near match is only warned about; on the command line it is meant for this run, and refused.
GENERIC_ROLES = frozenset({"base", "frameworks", "report", "stack", "stage", "train", "verify"})

# How alike two names must be for one to be taken for the other misspelt (difflib's ratio).
NEAR = 0.8


class Finding(NamedTuple):
    """An undeclared variable: its name, the role it seems meant for, the nearest declared name or None."""

    name: str
    role: str | None
    nearest: str | None

    @property
    def is_certain(self) -> bool:
        """Return True if it can only be a mistake, wherever it is set."""
        return self.nearest is not None or self.role not in GENERIC_ROLES


def declared_options(specs: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Mapping[str, Any]]]:
    """Return the options of each role by name, over all its entry points.

    specs: role name -> content of its meta/argument_specs.yml
    """
    return {
        role: {
            name: option
            for entry_point in (spec.get("argument_specs") or {}).values()
            for name, option in ((entry_point or {}).get("options") or {}).items()
        }
        for role, spec in specs.items()
    }


def _nearest(name: str, candidates: Iterable[str], cutoff: float = NEAR) -> str | None:
    matches = difflib.get_close_matches(name, sorted(candidates), n=1, cutoff=cutoff)
    return matches[0] if matches else None


def _nearest_role_option(name: str, role: str, options: Iterable[str]) -> str | None:
    """Return the nearest option by its own part: a long prefix must not make everything look alike."""
    prefix = role + "_"
    tails = {option[len(prefix) :]: option for option in options if option.startswith(prefix)}
    nearest = _nearest(name[len(prefix) :], tails)
    return tails[nearest] if nearest else _nearest_word(name, options)


def _nearest_word(name: str, options: Iterable[str]) -> str | None:
    """Return an option of the same words in another order or number: base_timezones, base_server_ntp."""
    words = sorted(word.rstrip("s") for word in name.split("_"))
    return next((o for o in sorted(options) if sorted(w.rstrip("s") for w in o.split("_")) == words), None)


def _role_of(name: str, roles: Iterable[str]) -> str | None:
    """Return the role with the longest prefix of this name: nvidia_driver_x is nvidia_driver's, not nvidia's."""
    return max((role for role in roles if name.startswith(role + "_")), key=len, default=None)


def _judge(name: str, declared: Mapping[str, Iterable[str]], shared: set[str]) -> Finding | None:
    role = _role_of(name, declared)
    everything = set().union(*declared.values())
    if role is not None:
        # Also those that another role declares: report_remark is an option of role verify.
        options = {option for option in everything if option.startswith(role + "_")}
        return Finding(name, role, _nearest_role_option(name, role, options))
    prefixes = {option.split("_")[0] + "_" for option in shared}
    # A name outside every role counts only when it nearly is a declared one: gpu_stack_reqest, pyton_env_no_index.
    candidates = shared if any(name.startswith(prefix) for prefix in prefixes) else everything - shared
    nearest = _nearest(name, candidates, cutoff=0.9)
    return Finding(name, None, nearest) if nearest else None


def find_unknown(
    names: Iterable[str], declared: Mapping[str, Iterable[str]], ignore: Iterable[str] = ()
) -> list[Finding]:
    """Return every name that looks like a role's variable and is not one, sorted by name.

    names: distinct variable names of all hosts; declared: role -> names of its options; ignore: names or shell
    patterns that belong to other roles
    """
    known = set().union(*declared.values()) if declared else set()
    shared = {option for options in declared.values() for option in options if _role_of(option, declared) is None}
    patterns = list(ignore)
    findings = []
    for name in sorted(set(names) - known):
        if name.startswith(("_", "ansible_")) or any(fnmatchcase(name, pattern) for pattern in patterns):
            continue
        finding = _judge(name, declared, shared)
        if finding is not None:
            findings.append(finding)
    return findings
