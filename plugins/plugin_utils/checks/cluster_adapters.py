# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The adapters of the whole cluster: boards of one kind have one firmware."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from ...module_utils.health.check_table import FAULTS
from .check import LEFT_OUT, Check, compared, joined, skipped

NAME, CATEGORY = "nic_firmware", "coherence"
EXPECTED = "one version for each board"
FAULT = FAULTS[NAME, "unlike"]


def checks(nodes: Mapping[str, Mapping], left_out: Collection[str] = ()) -> Iterator[Check]:
    """Yield the check where two adapters are known; nodes: {name: gpu_node}. Boards are known by the vendor's ID, such as MT_0000000223."""
    versions: dict[str, dict[tuple[str, str], str]] = {}
    for name, node in nodes.items():
        for nic in node.get("nics") or ():
            if nic.get("board_id") and nic.get("firmware_version"):
                versions.setdefault(nic["board_id"], {})[name, nic["name"]] = nic["firmware_version"]
    if sum(map(len, versions.values())) < 2:
        return
    if NAME in left_out:
        yield skipped(NAME, CATEGORY, EXPECTED, LEFT_OUT)
        return
    sentences = [sentence for board in sorted(versions) for sentence in _differing(board, versions[board])]
    measured = "; ".join(
        f"{board}: {', '.join(sorted(set(found.values())))}" for board, found in sorted(versions.items())
    )
    yield compared(NAME, CATEGORY, EXPECTED, measured, not sentences, joined(sentences), FAULT.action)


def _differing(board: str, found: Mapping[tuple[str, str], str]) -> Iterator[str]:
    """Yield the adapters with another version than most; none are named where no version has a majority."""
    usual, count = Counter(found.values()).most_common(1)[0]
    others = [
        f"{adapter} of {node} has {version}" for (node, adapter), version in sorted(found.items()) if version != usual
    ]
    if others and 2 * count > len(found):
        yield f"most of {board} have {usual}, but {', '.join(others)}"
    elif others:
        yield f"{board} has several versions, none of them on most adapters"
