# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The scratch of a node: fact gpu_scratch (module scratch_facts) as a value."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sighting:
    """An observation on a disk, or an obstacle to a scratch; words in module_utils/storage/describe.py."""

    code: str
    subject: str = ""
    detail: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Mounted:
    """The mount point's content; ours: the recorded file system on its device."""

    source: str = ""
    type: str = ""
    options: tuple[str, ...] = ()
    ours: bool = False
    owner: str | None = None
    mode: str | None = None


@dataclass(frozen=True)
class ScratchNode:
    """The whole fact. left: why the node gets no scratch; refused: what keeps it from one."""

    container: bool = False
    recorded: bool = False
    left: str | None = None
    refused: tuple[Sighting, ...] = ()
    expected: int = 0
    members: tuple[str, ...] = ()
    array: str | None = None
    device: str | None = None
    mounted: Mounted | None = None
    trim: bool | None = None
