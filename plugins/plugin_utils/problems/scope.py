# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find where a variable is set: on the command line, in the play, for a group or for some hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Scope:
    """kind: command_line, play, group (names has one), hosts, or here for the one host that is asked about."""

    kind: str
    names: tuple[str, ...] = ()


COMMAND_LINE = Scope("command_line")
PLAY = Scope("play")
HERE = Scope("here")


def scope_of(hosts: Iterable[str], groups: Mapping[str, Iterable[str]]) -> Scope:
    """Return the group that has exactly these hosts, else the hosts; without hosts, the play."""
    wanted = set(hosts)
    if not wanted:
        return PLAY
    equal = [name for name, members in groups.items() if name != "ungrouped" and set(members) == wanted]
    if len(wanted) > 1 and equal:
        # A group the user named says more than "all".
        return Scope("group", (min(equal, key=lambda name: (name == "all", name)),))
    return Scope("hosts", tuple(sorted(wanted)))
