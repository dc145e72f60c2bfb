# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Open MPI's mpirun, of the host, on the first node; all nodes, or none.

Its daemons reach the other nodes with the training user's own keys (node/relay.py). Ranks find each other as under torchrun:
rank.py gives them the names that torchrun would, and the first node's address.
"""

from __future__ import annotations

import ipaddress
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ..job import Job, Launcher

# Debian and Ubuntu; Enterprise Linux, for what `module load mpi` finds; what comes with its own prefix.
PROGRAMS = ("/usr/bin/mpirun", "/usr/lib64/openmpi/bin/mpirun", "/opt/openmpi/bin/mpirun", "/usr/local/bin/mpirun")
# The same on every host that has them, whether or not facts tell: moby, daemon/libnetwork/ipamutils (172.17 to 172.31, 192.168 by /20);
# Podman and CRI-O, containers.conf(5), 100-crio-bridge.conflist; nerdctl; libvirt, virbr0; LXC, lxc-net; the first service of
# Kubernetes and of k3s, which kube-proxy in IPVS mode puts on each node (kube-ipvs0).
BRIDGES = (
    *(f"172.{second}.0.1" for second in range(17, 32)),
    *(f"192.168.{third}.1" for third in range(0, 256, 16)),
    "10.88.0.1",
    "10.85.0.1",
    "10.4.0.1",
    "10.96.0.1",
    "10.43.0.1",
    "192.168.122.1",
    "10.0.3.1",
)


def arguments(job: Job) -> list[str]:
    """Return mpirun's own arguments, without the number of ranks and the nodes, which are known when ranks are counted.

    --bind-to none: rank.py binds, by the kernel's numbers. Those of a rankfile are Open MPI's own, of which only each node knows
    the kernel's.
    """
    found = ",".join(networks((job.place.addresses[node] for node in job.place.nodes), job.place.others))
    # Without these, it takes the first interface that looks usable: a bridge of containers, or a management network.
    kept = ["--mca", "btl_tcp_if_include", found, "--mca", "oob_tcp_if_include", found] if found else []
    return ["--map-by", "slot", "--bind-to", "none", "--wdir", f"{job.directory}/work", *kept]


def variables(job: Job) -> dict[str, str]:
    """Return where the ranks of torch.distributed meet: rank 0 is on the first node."""
    place = job.place
    return {"MASTER_ADDR": place.addresses[place.nodes[0]], "MASTER_PORT": str(place.port)}


def more(job: Job) -> dict[str, Any]:
    """Return the further options of the agent."""
    addresses = [job.place.addresses[node] for node in job.place.nodes]
    return {"is_first": job.place.is_first, "addresses": addresses, "programs": list(PROGRAMS), "cpus": list(job.cpus)}


def networks(addresses: Iterable[str], others: Iterable[str] = ()) -> list[str]:
    """Return the fewest networks that have all of ADDRESSES, and none of OTHERS, which the nodes have besides, nor that of a bridge.

    Open MPI would use that interface, too: a bridge's has the same address on every node, so that a rank connects to its own. [] where
    an address is not IPv4, of which alone Open MPI takes networks.
    """
    try:
        parsed = sorted({int(ipaddress.IPv4Address(address)) for address in addresses})
    except ValueError:
        return []
    foreign = {int(ipaddress.IPv4Address(address)) for address in (*BRIDGES, *others)} - set(parsed)
    return [str(network) for network in _without(parsed, sorted(foreign))]


def _without(addresses: list[int], foreign: Sequence[int]) -> Iterator[ipaddress.IPv4Network]:
    """Yield networks of sorted addresses; one that has a foreign address, of sorted ones, is two."""
    bits = (addresses[0] ^ addresses[-1]).bit_length()
    first = addresses[0] >> bits << bits
    if bisect_left(foreign, first) == bisect_left(foreign, first + (1 << bits)):
        yield ipaddress.IPv4Network((first, 32 - bits))
        return
    middle = first + (1 << bits - 1)
    yield from _without([one for one in addresses if one < middle], foreign)
    yield from _without([one for one in addresses if one >= middle], foreign)


LAUNCHER = Launcher(
    "mpirun",
    arguments,
    variables,
    more=more,
    files=("agent.py", "rank.py", "sitecustomize.py", "watch.py", "mpi.py", "commands.py", "relay.py"),
    listens=False,
    programs=PROGRAMS,
)
