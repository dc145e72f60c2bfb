# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each further host adds to a no-change `site` run, from one host to as many as there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from .measure import Cost, playbook


def counts(most: int) -> list[int]:
    """Return 1, 2, 4 … and the whole number of hosts."""
    return [one for one in (1, 2, 4, 8, 16) if one < most] + [most]


def measure(inventory, *options) -> dict[int, Cost]:
    """Return the cost of `site` on the first hosts of the inventory, by their number."""
    names = list(yaml.safe_load((inventory / "hosts.yml").read_text(encoding="utf-8"))["gpu_nodes"]["hosts"])
    return {
        count: playbook("site", inventory, "--limit", ",".join(names[:count]), *options) for count in counts(len(names))
    }


def further(costs: Mapping[int, float]) -> float | None:
    """Return what a further host adds: the slope from the fewest hosts to the most; None for one number of hosts."""
    least, most = min(costs), max(costs)
    return (costs[most] - costs[least]) / (most - least) if most > least else None


def table(costs: Mapping[int, Cost]) -> Sequence[str]:
    """Return the lines that show them."""
    lines = [f"  {'hosts':>7}{'seconds':>10}{'core-seconds':>14}"]
    lines += [f"  {count:7d}{cost.wall:10.1f}{cost.cpu:14.1f}" for count, cost in costs.items()]
    slope = further({count: cost.cpu for count, cost in costs.items()})
    return lines if slope is None else [*lines, f"  core-seconds of the controller for each further host: {slope:.1f}"]
