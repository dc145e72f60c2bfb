# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare bridges and adapters with what was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...documents.comparison import Comparison, Remedy, Status, compared
from ...documents.pcie import PcieNode
from .judge import acs_text
from .request import Request

COMPONENT = "pcie"


def compare_pcie(wanted: Request, node: PcieNode, bridges: Iterable[str], names: Mapping[str, str]) -> list[Comparison]:
    """Return a comparison for each bridge between pairs, and for each adapter; what was not asked for is not among it."""
    found = []
    for address in bridges if wanted.clear_redirect else ():
        bits = acs_text(node.bridges[address].acs)
        found.append(
            compared(COMPONENT, address, "no redirection", bits or "no redirection", not bits, Remedy.APPLY, "acs")
        )
    for one in node.devices:
        if wanted.read_request and one.kind == "nic":
            size = None if one.read_request is None else f"{one.read_request} bytes"
            agrees = None if size is None else one.read_request == wanted.read_request
            desired = f"{wanted.read_request} bytes"
            found.append(compared(COMPONENT, names[one.address], desired, size, agrees, Remedy.APPLY, "read_request"))
    return found


def compare_unmeasured() -> list[Comparison]:
    """Return the one comparison of a node that something was asked of and that was not looked at."""
    return [compared(COMPONENT, "PCIe", "as declared", None, None, Remedy.MEASURE, "acs")]


def compare_unwanted(recorded: bool) -> list[Comparison]:
    """Return the differences of a node that nothing is asked of: that something still is changed."""
    if not recorded:
        return []
    return [Comparison(COMPONENT, "PCIe", "as it was", "changed", Status.UNWANTED, Remedy.APPLY, "acs")]
