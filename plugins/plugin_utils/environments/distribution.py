# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose the node that installs an environment from the package index, and the sources of all others. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# Nodes that fetch from one node at a time; each that has the archive then gives it to as many more.
FANOUT = 4


def distribution(
    hosts: Mapping[str, Mapping[str, Mapping[str, Any]]], addresses: Mapping[str, str | None], fanout: int = FANOUT
) -> dict[str, dict[str, Any]]:
    """Map the name of each environment to {downloaders, rounds: [{receiver: {source, address, downloader}}]}.

    The first host on which it is installed as its lock says downloads its wheels, or else the first that asks for it. Hosts of one
    request get the same wheels. A host without an address gives nothing.

    hosts: name -> its described environments (locks.describe_environments), in the play's order
    """
    found: dict[str, dict[str, Any]] = {}
    for name in dict.fromkeys(name for described in hosts.values() for name in described):
        downloaders, rounds = [], []
        for asking in _requests(hosts, name).values():
            downloader = next((host for host in asking if hosts[host][name]["installed"]), next(iter(asking)))
            receivers = [host for host in asking if host != downloader and not hosts[host][name]["installed"]]
            if receivers and addresses.get(downloader):
                downloaders.append(downloader)
                rounds.append(_rounds(downloader, receivers, addresses, fanout))
        found[name] = {"downloaders": downloaders, "rounds": _merged(rounds)}
    return found


def _requests(hosts: Mapping[str, Mapping[str, Mapping[str, Any]]], name: str) -> dict[str, list[str]]:
    """Return the hosts that ask for an environment, by the digests of their requests."""
    asking: dict[str, list[str]] = {}
    for host, described in hosts.items():
        if name in described:
            asking.setdefault(described[name]["digest"], []).append(host)
    return asking


def _rounds(
    downloader: str, receivers: Sequence[str], addresses: Mapping[str, str | None], fanout: int
) -> list[dict[str, dict[str, Any]]]:
    sources, waiting, rounds = [downloader], list(receivers), []
    while waiting:
        pairs = [
            (receiver, sources[index // fanout]) for index, receiver in enumerate(waiting[: fanout * len(sources)])
        ]
        waiting = waiting[len(pairs) :]
        rounds.append({receiver: {"source": source, "downloader": downloader} for receiver, source in pairs})
        sources += [receiver for receiver, _source in pairs if addresses.get(receiver)]
    return [
        {receiver: {**one, "address": addresses[one["source"]]} for receiver, one in round_.items()}
        for round_ in rounds
    ]


def _merged(rounds: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return the rounds of several requests as one sequence: their hosts are different ones."""
    merged: list[dict[str, Any]] = [{} for unused in range(max(map(len, rounds), default=0))]
    for one in rounds:
        for index, round_ in enumerate(one):
            merged[index].update(round_)
    return merged
