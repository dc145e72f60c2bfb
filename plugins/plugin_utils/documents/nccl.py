# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NCCL's configuration on a node: fact gpu_nccl (module nccl_facts) as a value."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Foreign:
    """A line of a file that sets one of NCCL's variables."""

    file: str
    line: int
    name: str


@dataclass(frozen=True)
class Subnet:
    """A subnet that a network interface is in."""

    name: str
    subnet: str


@dataclass(frozen=True)
class NcclNode:
    """The whole fact. original: there was a file before ours; variables: those of the file that is there now."""

    recorded: bool = False
    exists: bool = False
    original: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    foreign: tuple[Foreign, ...] = ()
    interfaces: tuple[Subnet, ...] = ()
