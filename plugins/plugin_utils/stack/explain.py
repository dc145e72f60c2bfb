# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why there is no stack: the smallest sets of wishes and facts that clash, and the nearest request that works."""

from __future__ import annotations

from collections.abc import Mapping


def conflict_message(answer: Mapping) -> str:
    """All conflicts in one message, with what to ask for instead."""
    lines = [conflict["reason"] for conflict in answer["conflicts"]] or ["no stack fits this host and this request"]
    return "; ".join(lines)
