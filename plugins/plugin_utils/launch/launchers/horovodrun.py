# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Horovod's horovodrun, of the training environment, on the first node; all nodes, or none.

What it would start by ssh goes to the agents of the other nodes (node/relay.py). horovodrun itself never checks host keys.
"""

from __future__ import annotations

from typing import Any

from ...problems.problem import Problem, ProblemError
from ..job import Job, Launcher


def arguments(job: Job) -> list[str]:
    """Return horovodrun's own arguments, without the number of ranks, the nodes and the interface, which the first node knows.

    Raise ProblemError for an address of IPv6, which horovodrun cannot be told.
    """
    for node in job.place.nodes:
        if ":" in job.place.addresses[node]:
            raise ProblemError(Problem("horovod_ipv6", node, {"address": job.place.addresses[node]}))
    # Without the cache of former checks, and with time for the other nodes' agents to come up.
    return ["--gloo", "--disable-cache", "--start-timeout", "300"]


def more(job: Job) -> dict[str, Any]:
    """Return the further options of the agent."""
    addresses = [job.place.addresses[node] for node in job.place.nodes]
    return {"is_first": job.place.is_first, "addresses": addresses, "cpus": list(job.cpus)}


LAUNCHER = Launcher(
    "horovodrun",
    arguments,
    lambda job: {},
    more=more,
    files=("agent.py", "rank.py", "sitecustomize.py", "watch.py", "horovodrun.py", "commands.py", "relay.py"),
    listens=False,
    programs=("horovodrun",),
)
