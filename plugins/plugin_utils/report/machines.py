# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that are no machines of their own: what is measured between them says nothing about a network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def share_a_machine(nodes: Iterable[str], machines: Mapping[str, str]) -> bool:
    """Return True if two of the nodes are known to be one machine, as containers on it are."""
    known = [machines[node] for node in nodes if node in machines]
    return len(set(known)) < len(known)
