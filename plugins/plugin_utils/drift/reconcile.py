# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the desired state of a node with the observed one. The only judge of plan against node."""

from __future__ import annotations

from ..documents.comparison import Comparison
from ..documents.observed import Observed
from .components import PACKAGED
from .environments import compare_environments
from .packaged import Desired
from .services import compare_node
from .written import compare_written


def compare(desired: Desired, observed: Observed) -> list[Comparison]:
    """Return a comparison for everything the plan asks for, in the order in which roles work."""
    return [
        *compare_node(observed),
        *(found for one in PACKAGED for found in one.comparisons(desired, observed)),
        *compare_environments(desired.stack.environments, desired.stack.os, observed),
        *compare_written(desired, observed),
    ]


def drift(desired: Desired, observed: Observed) -> list[Comparison]:
    """Return the differences from the plan; what could not be measured is among them."""
    return [comparison for comparison in compare(desired, observed) if comparison.differs]
