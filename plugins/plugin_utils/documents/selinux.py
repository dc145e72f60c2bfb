# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SELinux's denials on a node, and labels of keys, as module node_probe read them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Denial:
    """Something denied to a command, a number of times; permissive: it was only written down, and went on."""

    command: str = ""
    operations: str = ""
    target: str = ""  # path, name or type
    kind: str = ""  # class: file, process, …
    permissive: bool = False
    count: int = 1


@dataclass(frozen=True)
class Denials:
    """problem: absent, unreadable or boot_unknown, None where the log was read; complete: whether back to the boot."""

    problem: str | None = None
    complete: bool = False
    denials: tuple[Denial, ...] = ()


@dataclass(frozen=True)
class Probed:
    """Of what module node_probe returned, the part about SELinux; None where the node has none. selinux_labels: type by path."""

    selinux_denials: Denials | None = None
    selinux_labels: dict[str, str] | None = None
