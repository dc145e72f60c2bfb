# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a candidate of the driver holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from ...model import Candidate
from ...rows import ArchiveRow, BranchRow, Flavour, Source, SuiteRow

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class Origin(TypedDict):
    """Where a version of a driver was seen; archive, suite and moves of one in a distribution's archive.

    moves: whether the archive replaces this version by the next. known: False for a version that no table has.
    """

    archive: NotRequired[ArchiveRow]
    suite: NotRequired[SuiteRow]
    moves: NotRequired[bool]
    known: NotRequired[bool]


class DriverRow(Origin):
    """A driver branch, from one source, with one kind of kernel modules."""

    branch: BranchRow
    source: Source
    kernel_modules: Flavour


Driver = Candidate[DriverRow]
