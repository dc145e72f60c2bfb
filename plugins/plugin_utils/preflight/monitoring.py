# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role monitoring lacks of values that only together make sense; it is the last of the roles, so it must be told before the first."""

from __future__ import annotations

from ..problems.problem import Problem
from ..subjects.monitoring.request import CONTROLLERS, DEFAULTS, NODES, lacking, problems, request
from .world import UNRESOLVED, Resolve, World


def combined_problems(world: World, resolve: Resolve) -> list[Problem]:
    """Return each problem of the hosts that are to be watched once, for all of them; values that cannot be meant are told one by one."""
    found: list[Problem] = []
    watched = [host for group in (NODES, CONTROLLERS) for host in world.groups.get(group) or () if host in world.hosts]
    for host in dict.fromkeys(watched):
        given = {**world.hosts[host], **world.play, **world.command_line}
        values = {name: resolve(host, given[name]) for name in DEFAULTS if name in given}
        values = {name: value for name, value in values.items() if value is not None}
        if UNRESOLVED in values.values() or values.get("monitoring_state") != "present" or any(problems(values)):
            continue
        found += lacking(request(values))
        if not world.groups.get(CONTROLLERS):
            found.append(Problem("monitoring_no_controller", CONTROLLERS))
    return [one for number, one in enumerate(found) if one not in found[:number]]
