# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect a user's input: variables of hosts, of the play and of the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..problems.scope import COMMAND_LINE, Scope, scope_of

GROUP = "gpu_nodes"
# What a resolver of templates returns for a value that is not known yet.
UNRESOLVED = object()
Resolve = Callable[[str | None, Any], Any]


@dataclass(frozen=True)
class World:
    """A user's input. hosts: unresolved variables by host; command_line, play: those set there; sources: of the inventory."""

    hosts: Mapping[str, Mapping[str, Any]]
    groups: Mapping[str, Sequence[str]]
    playing: Sequence[str]
    limit: str | None = None
    sources: Sequence[str] = ()
    missing_sources: Sequence[str] = ()
    command_line: Mapping[str, Any] = field(default_factory=dict)
    play: Mapping[str, Any] = field(default_factory=dict)

    @property
    def nodes(self) -> Sequence[str]:
        return self.groups.get(GROUP) or ()

    def names(self) -> dict[str, set[str]]:
        """Return the hosts by name of variable; names that only the play has are of no host."""
        found: dict[str, set[str]] = {name: set() for name in [*self.command_line, *self.play]}
        for host, variables in self.hosts.items():
            for name in variables:
                found.setdefault(name, set()).add(host)
        return found

    def scope(self, name: str, hosts: Iterable[str]) -> Scope:
        return COMMAND_LINE if name in self.command_line else scope_of(hosts, self.groups)


class Setting(NamedTuple):
    """A distinct value of a variable and the hosts that have it; none where only the play has it."""

    name: str
    value: Any
    hosts: list[str]


def settings(world: World, names: Iterable[str]) -> Iterator[Setting]:
    """Yield each distinct value of these variables once, whatever the number of hosts."""
    for name in sorted(names):
        outside = {**world.play, **world.command_line}
        if name in outside:
            yield Setting(name, outside[name], [])
            continue
        found: dict[str, Setting] = {}
        for host, variables in world.hosts.items():
            if name in variables:
                found.setdefault(_key(variables[name]), Setting(name, variables[name], [])).hosts.append(host)
        yield from found.values()


def _key(value: Any) -> str:
    """Return one text for equal values; encrypted ones are not opened for it."""
    try:
        return json.dumps(value, default=id)
    except TypeError:  # keys that are not text
        return repr(value)
