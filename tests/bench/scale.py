# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each further host adds to a no-change `site` run, from one host to as many as there are, with Ansible's strategy and Mitogen's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import yaml

from . import mitogen
from .measure import Cost, playbook


class Pair(NamedTuple):
    """What the same run cost under Ansible's own strategy, and under Mitogen's."""

    linear: Cost
    mitogen: Cost


def counts(most: int) -> list[int]:
    """Return 1, 2, 4 … and the whole number of hosts."""
    return [one for one in (1, 2, 4, 8, 16) if one < most] + [most]


def measure(inventory, *options) -> dict[int, Pair]:
    """Return the cost of `site` on the first hosts of the inventory, by their number."""
    names = list(yaml.safe_load((inventory / "hosts.yml").read_text(encoding="utf-8"))["gpu_nodes"]["hosts"])
    limits = {count: ("--limit", ",".join(names[:count]), *options) for count in counts(len(names))}
    # In turn, so that what else the machine does meets both.
    return {
        count: Pair(playbook("site", inventory, *limit), mitogen.site(inventory, *limit))
        for count, limit in limits.items()
    }


def further(costs: Mapping[int, float]) -> float | None:
    """Return the cost of a further host: the slope from the fewest hosts to the most; None for one number of hosts."""
    least, most = min(costs), max(costs)
    return (costs[most] - costs[least]) / (most - least) if most > least else None


def table(costs: Mapping[int, Pair]) -> Sequence[str]:
    """Return the lines that show them."""
    lines = [
        f"  {'':7}{'linear':>24}{'mitogen_linear':>24}",
        f"  {'hosts':>7}" + f"{'seconds':>10}{'core-seconds':>14}" * len(Pair._fields),
    ]
    lines += [
        f"  {count:7d}" + "".join(f"{cost.wall:10.1f}{cost.cpu:14.1f}" for cost in pair)
        for count, pair in costs.items()
    ]
    slopes = [further({count: pair[one].cpu for count, pair in costs.items()}) for one in range(len(Pair._fields))]
    if None in slopes:
        return lines
    return [*lines, "  core-seconds of the controller for each further host: " + ", ".join(f"{s:.1f}" for s in slopes)]
