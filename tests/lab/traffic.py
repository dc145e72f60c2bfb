# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a host downloads: bytes that the lab's sources served it, that came from outside for it, and that came past them.

The sources write a line for each file: TIME|O|BYTES|CLIENT|PATH for what went out to a host, and the apt cache, the only one
that fetches anything, TIME|I|… for what came in because that host asked. Past them, packets are counted in the host's own
network namespace, so nothing that arrives can be missed.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import network, paths, services
from .podman import podman
from .progress import LabError

CHAIN = "lab-traffic"
OUTSIDE, CONTROLLER, CACHE, NEIGHBOURS = "outside", "controller", "cache", "neighbours"
# What can never change under its name: packages, and indexes that are named by their content.
ENVIRONMENT = 500 << 20  # bytes; what a node gets from another one is more
WHEELS = 50 << 20  # bytes of wheels; the installer itself is less, PyTorch's are more
UNCHANGING = re.compile(r"\.(deb|udeb|rpm|whl)$|/by-hash/")


@dataclass(frozen=True)
class Transfer:
    """One file that went out to a host, or (fetched) that came from outside because the host asked for it."""

    source: str
    fetched: bool
    size: int
    client: str
    path: str


@dataclass(frozen=True)
class Traffic:
    """What a host got in some time; ``packets``: bytes of TCP that arrived, by where they came from."""

    transfers: tuple[Transfer, ...]
    packets: dict[str, int]
    held: frozenset[str]  # what the apt cache had before

    def served(self, source: str) -> int:
        """Return the bytes that a source served the host."""
        return sum(one.size for one in self.transfers if one.source == source and not one.fetched)

    def fetched(self, source: str) -> int:
        """Return the bytes that a source fetched from outside for the host."""
        return sum(one.size for one in self.transfers if one.source == source and one.fetched)

    def fetched_again(self) -> list[str]:
        """Return the paths that were fetched from outside although the cache had them, and they cannot have changed."""
        return sorted(
            {
                one.path
                for one in self.transfers
                if one.fetched and one.path in self.held and UNCHANGING.search(one.path)
            }
        )

    @property
    def outside(self) -> int:
        """Return all bytes from outside, through a source or past it."""
        return self.packets[OUTSIDE] + sum(self.fetched(source) for source in services.LOGS)


def unshared(got: Traffic) -> Iterator[str]:
    """Yield the things that an added node got that it should have had from the cluster, or the lab's cache."""
    if got.served("wheels") >= WHEELS:
        yield f"the environment's wheels were served again ({got.served('wheels') >> 20} MiB)"
    if got.packets[NEIGHBOURS] <= ENVIRONMENT:
        yield f"the environment did not come from another node ({got.packets[NEIGHBOURS] >> 20} MiB)"
    if got.fetched_again():
        yield f"came from outside although the cache had it: {', '.join(got.fetched_again()[:3])}"
    if got.packets[OUTSIDE]:
        yield f"{got.packets[OUTSIDE]} bytes came past the lab's sources"


def parse(source: str, lines: Iterable[str], client: str) -> Iterator[Transfer]:
    """Yield the transfers of a host in a source's log; a line that is cut off, or another's, says nothing."""
    for line in lines:
        match = re.fullmatch(r"\d+\|([IO])\|(\d+)\|([^|]*)\|(.*)", line.strip())
        if match and match[3] == client:
            yield Transfer(source, match[1] == "I", int(match[2]), client, match[4])


def count_rules(services_address: str, gateway: str, subnet: str) -> list[tuple[str, list[str]]]:
    """Return [(where packets come from, what iptables knows them by)]; the first that fits counts."""
    return [
        (CACHE, ["-s", services_address]),
        (CONTROLLER, ["-s", gateway]),
        (NEIGHBOURS, ["-s", subnet]),
        (OUTSIDE, []),
    ]


def read_counters(listing: str, names: Iterable[str]) -> dict[str, int]:
    """Return {name: bytes} of a chain as `iptables -nvxL` lists it: two lines of heading, then packets, bytes, …"""
    rows = [line.split() for line in listing.splitlines()[2:]]
    return {name: int(row[1]) for name, row in zip(names, rows, strict=True)}


class Watch:
    """Counts what a host gets from the moment this is made."""

    def __init__(self, host: str, address: str) -> None:
        self._host, self._address = host, address
        subnet = network.ensure()
        self._rules = count_rules(network.services_address(), str(subnet[1]), str(subnet))
        self._chain()
        self._marks = {source: _size(log) for source, log in services.LOGS.items()}
        self._held = held(paths.APT_CACHE)

    def traffic(self) -> Traffic:
        """Return the traffic until now."""
        listing = self._iptables("-nvxL", CHAIN)
        transfers = [
            one
            for source, log in services.LOGS.items()
            for one in parse(source, _since(log, self._marks[source]), self._address)
        ]
        return Traffic(tuple(transfers), read_counters(listing, [name for name, _match in self._rules]), self._held)

    def _chain(self) -> None:
        """Make the counters, or set those of an earlier watch to zero."""
        if self._iptables("-nL", CHAIN, check=False):
            self._iptables("-Z", CHAIN)
            return
        self._iptables("-N", CHAIN)
        for _name, match in self._rules:
            self._iptables("-A", CHAIN, *match, "-j", "RETURN")
        self._iptables("-I", "INPUT", "!", "-i", "lo", "-p", "tcp", "-j", CHAIN)

    def _iptables(self, *args: str, check: bool = True) -> str:
        pid = podman("inspect", "--format", "{{.State.Pid}}", self._host).strip()
        argv = ["nsenter", f"--net=/proc/{pid}/ns/net", "iptables", "-w", *args]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode and check:
            raise LabError(f"packets of {self._host} cannot be counted (did it restart?): {done.stderr.strip()}")
        return done.stdout


def held(cache: Path) -> frozenset[str]:
    """Return the files that the apt cache has, by the paths of its log."""
    files = (path for path in cache.rglob("*") if path.is_file() and path.suffix != ".head")
    return frozenset(str(path.relative_to(cache)) for path in files)


def _size(log: str) -> int:
    return int(podman("exec", services.NAME, "sh", "-c", f"stat -c %s {log} || echo 0"))


def _since(log: str, mark: int) -> list[str]:
    return podman("exec", services.NAME, "tail", "-c", f"+{mark + 1}", log, check=False).splitlines()
