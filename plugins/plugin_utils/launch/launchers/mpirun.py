# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Open MPI's mpirun, of the host, on the first node; all nodes, or none.

Its daemons reach the other nodes with the training user's own keys (node/relay.py). Ranks find each other as under torchrun:
rank.py gives them the names that torchrun would, and the first node's address.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Any

from ..job import Job, Launcher

# Debian and Ubuntu; Enterprise Linux, for what `module load mpi` finds; what comes with its own prefix.
PROGRAMS = ("/usr/bin/mpirun", "/usr/lib64/openmpi/bin/mpirun", "/opt/openmpi/bin/mpirun", "/usr/local/bin/mpirun")


def arguments(job: Job) -> list[str]:
    """Return mpirun's own arguments, without the number of ranks and the nodes, which are known when ranks are counted.

    --bind-to none: rank.py binds, by the kernel's numbers. Those of a rankfile are Open MPI's own, of which only each node knows
    the kernel's.
    """
    network = common_network(job.place.addresses[node] for node in job.place.nodes)
    # Without these, it takes the first interface that looks usable: a bridge of containers, or a management network.
    networks = ["--mca", "btl_tcp_if_include", network, "--mca", "oob_tcp_if_include", network] if network else []
    return ["--map-by", "slot", "--bind-to", "none", "--wdir", f"{job.directory}/work", *networks]


def variables(job: Job) -> dict[str, str]:
    """Return where the ranks of torch.distributed meet: rank 0 is on the first node."""
    place = job.place
    return {"MASTER_ADDR": place.addresses[place.nodes[0]], "MASTER_PORT": str(place.port)}


def more(job: Job) -> dict[str, Any]:
    """Return what the agent needs besides."""
    addresses = [job.place.addresses[node] for node in job.place.nodes]
    return {"is_first": job.place.is_first, "addresses": addresses, "programs": list(PROGRAMS), "cpus": list(job.cpus)}


def common_network(addresses: Iterable[str]) -> str | None:
    """Return the smallest network with all of ADDRESSES; None where one is not IPv4, of which alone Open MPI takes networks."""
    try:
        parsed = [int(ipaddress.IPv4Address(address)) for address in addresses]
    except ValueError:
        return None
    differing = max(parsed) ^ min(parsed)
    return str(ipaddress.IPv4Network((min(parsed), 32 - differing.bit_length()), strict=False))


LAUNCHER = Launcher(
    "mpirun",
    arguments,
    variables,
    more=more,
    files=("agent.py", "rank.py", "watch.py", "mpi.py", "commands.py", "relay.py"),
    listens=False,
    programs=PROGRAMS,
)
