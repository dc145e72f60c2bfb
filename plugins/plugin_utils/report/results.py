# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the observed state with the plan in the report's words."""

from __future__ import annotations

from ..documents.comparison import Status

AS_PLANNED, NOT_MEASURED = "as planned", "not measured"
# Differences first.
RESULTS = {
    Status.MISSING: "missing",
    Status.DIFFERS: "differs",
    Status.UNWANTED: "unwanted",
    Status.UNKNOWN: NOT_MEASURED,
    Status.AS_PLANNED: AS_PLANNED,
}
