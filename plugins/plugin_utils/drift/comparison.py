# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what the plan asks for with what the node has."""

from __future__ import annotations

from typing import TypeAlias

from ..documents.comparison import Comparison, Remedy, Status

# A difference is a comparison that is not as planned.
Difference: TypeAlias = Comparison


def compared(
    component: str,
    subject: str,
    desired: str | None,
    observed: str | None,
    agrees: bool | None,
    remedy: Remedy,
    kind: str,
) -> Comparison:
    """Compare; ``agrees`` None: not measured. What is absent is missing, whatever ``agrees`` says."""
    if agrees is None:
        status, remedy = Status.UNKNOWN, Remedy.MEASURE
    elif agrees:
        status, remedy = Status.AS_PLANNED, Remedy.NONE
    else:
        status = Status.DIFFERS if observed else Status.MISSING
    return Comparison(component, subject, desired or "", observed or "", status, remedy, kind)
