# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the scratch of a node with what its variables ask for."""

from __future__ import annotations

from collections.abc import Iterator

from ...documents.comparison import Comparison, Remedy, Status, compared
from ...documents.scratch import Mounted, ScratchNode
from .request import Request
from .words import sentence, shown_options, why_left

COMPONENT = "scratch"


def compare_scratch(wanted: Request, node: ScratchNode) -> list[Comparison]:
    """Return a comparison for its members, its mount with options and owner, and the timer; one for a node that gets none."""
    point = wanted.mount_point
    if node.refused:
        seen = "; ".join(sentence(one) for one in node.refused)
        return [Comparison(COMPONENT, point, "a scratch", seen, Status.DIFFERS, Remedy.DISKS, "disks")]
    if node.left and not node.recorded:
        nothing = f"none: {why_left(node.left)}"
        return [Comparison(COMPONENT, point, nothing, nothing, Status.AS_PLANNED, kind="disks")]
    return [*_volume(wanted, node), *_mount(wanted, node.mounted), *_timer(wanted, node)]


def _volume(wanted: Request, node: ScratchNode) -> Iterator[Comparison]:
    expected = f"{node.expected} disks" if node.expected != 1 else "1 disk"
    found = ", ".join(node.members)
    whole = bool(node.members) and len(node.members) == node.expected
    yield compared(COMPONENT, node.array or "disk", expected, found, whole, Remedy.APPLY, "members")
    mounted = node.mounted
    seen = f"{mounted.type} of {mounted.source}" if mounted else None
    ours = bool(mounted and mounted.ours)
    remedy = Remedy.DISKS if mounted and not ours else Remedy.APPLY
    yield compared(COMPONENT, wanted.mount_point, "the recorded XFS", seen, ours, remedy, "mount")


def _mount(wanted: Request, mounted: Mounted | None) -> Iterator[Comparison]:
    if mounted is None or not mounted.ours:
        return
    point = wanted.mount_point
    options, there = shown_options(wanted.options), ",".join(mounted.options)
    has = set(options) <= set(mounted.options)
    yield compared(COMPONENT, f"options of {point}", ",".join(options), there, has, Remedy.APPLY, "options")
    user, _colon, group = (mounted.owner or "").partition(":")
    agrees = user == wanted.owner and mounted.mode == wanted.mode and wanted.group in ("", group)
    owner = f"{wanted.owner}:{wanted.group}" if wanted.group else wanted.owner
    yield compared(
        COMPONENT, f"owner of {point}", f"{owner} {wanted.mode}", f"{mounted.owner} {mounted.mode}", agrees,
        Remedy.APPLY, "owner",
    )  # fmt: skip


def _timer(wanted: Request, node: ScratchNode) -> Iterator[Comparison]:
    """Yield the timer where it is wanted and the node has one."""
    if wanted.trim and node.trim is not None:
        state = "enabled" if node.trim else "disabled"
        yield compared(COMPONENT, "fstrim.timer", "enabled", state, node.trim, Remedy.APPLY, "trim")


def compare_unmeasured(point: str) -> list[Comparison]:
    """Return the one comparison of a node whose disks were not looked at."""
    return [compared(COMPONENT, point, "mounted", None, None, Remedy.MEASURE, "mount")]


def compare_unwanted(recorded: bool, point: str) -> list[Comparison]:
    """Return the differences of a node that is to have no scratch: that it has."""
    if not recorded:
        return []
    return [Comparison(COMPONENT, point, "no scratch", "a scratch", Status.UNWANTED, Remedy.APPLY, "mount")]
