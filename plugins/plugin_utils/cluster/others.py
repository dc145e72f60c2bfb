# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the decision for one node reads of the other nodes: a few variables, which are read once for all of them.

Ansible takes milliseconds to give the variables of a host. If each of n nodes asked for those of all others, a run would need n * n times
as many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def of_others(
    hostvars: Mapping[str, Mapping[str, Any]], names: Iterable[str], paths: Iterable[str]
) -> dict[str, dict[str, Any]]:
    """Return {node: the values at these paths, in the shape of its variables}; paths: such as ansible_facts.gpu_node.nics."""
    wanted = [path.split(".") for path in paths]
    return {name: _values(hostvars[name], wanted) for name in dict.fromkeys(names)}


def _values(variables: Mapping[str, Any], paths: list[list[str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in paths:
        value: Any = variables
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None:
            _put(found, path, value)
    return found


def _put(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = value
