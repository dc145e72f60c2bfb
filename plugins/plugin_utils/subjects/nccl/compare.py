# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what NCCL is told on a node with what was decided for it."""

from __future__ import annotations

from ...documents.comparison import Comparison, Remedy, Status, compared
from ...documents.nccl import NcclNode
from .decide import Line
from .request import Request

COMPONENT = "nccl"
FILE = "/etc/nccl.conf"


def compare_nccl(lines: tuple[Line, ...], wanted: Request, node: NcclNode) -> list[Comparison]:
    """Return a comparison for each variable of the file, and for each that another tool sets."""
    desired = {one.name: one.value for one in lines}
    found = [
        compared(
            COMPONENT, name, value, node.variables.get(name), node.variables.get(name) == value, Remedy.APPLY, "conf"
        )
        for name, value in desired.items()
    ]
    found += [
        Comparison(COMPONENT, name, "not set", f"a line of {FILE}", Status.UNWANTED, Remedy.APPLY, "conf")
        for name in sorted(set(node.variables) - set(desired))
    ]
    foreign = [
        Comparison(
            COMPONENT, one.name, "not set", f"line {one.line} of {one.file}", Status.UNWANTED, Remedy.FOREIGN, "foreign"
        )
        for one in node.foreign
        if one.name not in wanted.elsewhere
    ]
    unset = Comparison(
        COMPONENT, "NCCL's variables", "set nowhere else", "set nowhere else", Status.AS_PLANNED, kind="foreign"
    )
    return found + (foreign or [unset])


def compare_unmeasured() -> list[Comparison]:
    """Return the one comparison of a node whose file is ours and that was not looked at."""
    return [compared(COMPONENT, FILE, "as decided", None, None, Remedy.MEASURE, "conf")]


def compare_unwanted(recorded: bool) -> list[Comparison]:
    """Return the differences of a node whose file is not to be ours: that it still is."""
    if not recorded:
        return []
    return [Comparison(COMPONENT, FILE, "as it was", "ours", Status.UNWANTED, Remedy.APPLY, "conf")]
