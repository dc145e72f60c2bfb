# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Show the plan next to the observed state, as verification compared them (plugin_utils/drift)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..documents.comparison import Comparison
from .model import Item
from .results import AS_PLANNED, NOT_MEASURED, RESULTS


def items(comparisons: Iterable[Comparison]) -> tuple[Item, ...]:
    """Return the comparisons of one node of verify.json as rows: differences first, otherwise in the order of the roles."""
    found = [_item(one) for one in comparisons]
    order = list(RESULTS.values())
    return tuple(sorted(found, key=lambda item: order.index(item.result)))


def counts(found: Iterable[Item]) -> tuple[int, int]:
    """Return the number of rows that are known to differ from the plan, and of those not measured. As planned is where both are 0."""
    results = Counter(item.result for item in found)
    return results.total() - results[AS_PLANNED] - results[NOT_MEASURED], results[NOT_MEASURED]


def _item(one: Comparison) -> Item:
    return Item(
        component=one.component.replace("_", " "),
        name=f"kernel module for {one.subject}" if one.kind == "module" else one.subject,
        planned=one.desired,
        installed=one.observed,
        result=RESULTS[one.status],
    )
