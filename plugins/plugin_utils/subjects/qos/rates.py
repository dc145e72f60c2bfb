# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rates and shares as tc writes them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ....module_utils.host import tc

_PERCENT = re.compile(r"(\d{1,3}(?:\.\d+)?)\s*%")
# Python 3.6 on the nodes: they have no types of their own.
parse_rate: Callable[[object], int | None] = tc.parse_rate
rate_text: Callable[[int], str] = tc.rate_text


@dataclass(frozen=True)
class Share:
    """A rate in bit/s, or a part of the link's."""

    rate: int | None = None
    part: float | None = None

    def of(self, link: int) -> int:
        """Return bit/s."""
        return int(link * (self.part or 0)) if self.rate is None else self.rate


def parse_share(value: object) -> Share | None:
    """Return a share such as 80% or 8gbit; None for what is neither, or nothing."""
    match = _PERCENT.fullmatch(str(value).strip())
    if match:
        part = float(match[1]) / 100
        return Share(part=part) if 0 < part <= 1 else None
    rate = parse_rate(value)
    return Share(rate=rate) if rate else None
