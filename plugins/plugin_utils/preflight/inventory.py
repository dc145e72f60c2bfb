# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find faults in an inventory, a limit or tags before a node is contacted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from ..cluster.address import READS, address_problems, cluster_address
from ..documents.door import fitting
from ..problems.problem import Problem

# Tags that Ansible itself gives a meaning.
SPECIAL_TAGS = frozenset({"all", "always", "never", "tagged", "untagged"})
# Molecule skips these in every playbook, whether it has them or not.
MOLECULE_TAGS = frozenset({"notest", "molecule-notest", "molecule-idempotence-notest"})


def group_problems(
    nodes: Collection[str],
    playing: Collection[str],
    limit: str | None,
    sources: Sequence[str],
    missing: Sequence[str] = (),
    any_host: bool = True,
) -> list[Problem]:
    """Return the reasons why no GPU node would be worked on.

    nodes: members of group gpu_nodes; playing: hosts of the play; sources: paths of the inventory; missing: those that do not
    exist; any_host: whether the inventory has one
    """
    if not nodes and missing:
        return [Problem("no_inventory", path) for path in missing]
    if not nodes:
        code = "no_gpu_nodes" if any_host else "empty_inventory"
        return [Problem(code, "gpu_nodes", {"sources": list(sources)})]
    if limit and not set(nodes) & set(playing):
        return [Problem("limit_without_gpu_nodes", limit, {"nodes": list(nodes)})]
    return []


def known_address_problems(nodes: Mapping[str, Mapping[str, Any]]) -> list[Problem]:
    """Return the problems of the cluster addresses that are known before a node is contacted.

    nodes: variables of the nodes, with facts where a cache has them
    """
    nodes, _others = fitting(nodes, READS)  # what does not fit of what a cache has is told when it is measured
    addresses = {name: cluster_address(variables) for name, variables in nodes.items()}
    return address_problems({name: one for name, one in addresses.items() if one or _is_measured(nodes[name])})


def _is_measured(variables: Mapping[str, Any]) -> bool:
    """Return True if the facts would name an address if there were one."""
    return "interfaces" in (variables.get("ansible_facts") or {})


def tag_problems(requested: Collection[str], available: Collection[str]) -> list[Problem]:
    """Find the tags, to run or to skip, that no task has."""
    choices = sorted(set(available) - SPECIAL_TAGS)
    unknown = [tag for tag in requested if tag not in SPECIAL_TAGS and tag not in choices]
    return [_unknown_tag(tag, choices) for tag in unknown]


def _unknown_tag(tag: str, choices: Sequence[str]) -> Problem:
    nearest = get_close_matches(tag, choices, n=1)
    return (
        Problem("misspelt_tag", tag, {"nearest": nearest[0]})
        if nearest
        else Problem("unknown_tag", tag, {"tags": choices})
    )
