# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of nodes as filters and lookups read them: through the door, with a warning for each node that is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible.utils.display import Display

from ..cluster.address import neighbours
from ..documents.door import fitting, told
from ..problems.problem import Problem
from ..subjects.sentences import describe


def admitted(
    hostvars: Mapping[str, Mapping[str, Any]], names: Iterable[str], paths: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Return the values of these nodes at these paths, see documents/door.py; hosts that Ansible does not know have none."""
    found = told(hostvars, [name for name in names if name in hostvars], paths)
    warn(found.problems)
    return found.values


def admitted_neighbours(
    hostvars: Mapping[str, Mapping[str, Any]], names: Iterable[str], paths: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Return the same of those nodes whose addresses are their own."""
    found = neighbours(hostvars, [name for name in names if name in hostvars], paths)
    warn(found.problems)
    return found.values


def whole(
    hostvars: Mapping[str, Mapping[str, Any]], names: Iterable[str], paths: Iterable[str]
) -> dict[str, Mapping[str, Any]]:
    """Return all variables of those nodes that say at these paths what they may."""
    found, problems = fitting({name: hostvars[name] for name in names}, paths)
    warn(problems)
    return found


def warn(problems: Iterable[Problem]) -> None:
    """Show a warning for each problem."""
    for problem in problems:
        Display().warning(describe(problem))
