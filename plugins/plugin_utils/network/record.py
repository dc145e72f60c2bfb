# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring together what all nodes saw of the network: verify.json's network."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..cluster.address import cluster_address
from ..documents.network import ClusterLink, Network, NodeNetwork, Pair, Probe, Speed, Way
from ..documents.parsing import parse
from .schedule import chosen_rounds, full_rounds, rounds

NOT_MEASURED = "not_measured"


def probe_of(variables: Mapping[str, Any]) -> Probe:
    """Return the probe of a node, from its variables; raise DocumentError where that has another shape."""
    answer = variables.get("__verify_probe") or {}
    return parse(Probe, answer.get("node_probe") or {}, "node_probe")


def asked(variables: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options that role verify noted: {peers, mtu, rounds, bandwidth}; empty where the network is left alone."""
    return variables.get("__verify_network") or {}


def network(nodes: Sequence[str], known: Mapping[str, Mapping[str, Any]]) -> Network:
    """Return the network of the nodes that were there until the end, as far as it is known."""
    probes = {node: probe_of(known[node]) for node in nodes}
    seen = {node: probe.network for node, probe in probes.items() if probe.network}
    options = next((asked(known[node]) for node in nodes if asked(known[node])), {})
    peers, most = list(options.get("peers") or []), int(options.get("rounds") or 0)
    links = [ClusterLink(node, cluster_address(known[node]) or "", found.link) for node, found in seen.items()]
    speeds: dict[tuple[str, str], Speed] = {}
    rails: list[Speed] = []
    if options.get("bandwidth"):
        # As they were scheduled, also with nodes that are lost since.
        answers = {node: (known.get(node) or {}).get("__verify_speeds") or [] for node in peers}
        schedule = rounds(peers, most)
        speeds = {pair: one for pair, one in measured(schedule, answers).items() if seen.keys() >= set(pair)}
        rails = [one for one in measured_rails(schedule, answers) if seen.keys() >= {one.source, one.target}]
    chosen = chosen_rounds(len(peers), most)
    return Network(tuple(links), tuple(_pairs(seen, speeds)), tuple(rails), full_rounds(len(peers)), len(chosen))


def measured(
    schedule: Sequence[Sequence[tuple[str, str]]], answers: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[tuple[str, str], Speed]:
    """Return the speed of each direction of each pair that was to be measured.

    schedule: the (client, server) of each round; answers: what module network_bandwidth returned to a node, round by round
    """
    found = {}
    for number, one in enumerate(schedule):
        for client, server in one:
            given = _directions(answers[client], number)
            wrong = _directions(answers[server], number)  # a server says only why it does not serve
            for way, (source, target) in {"forward": (client, server), "reverse": (server, client)}.items():
                known = {**given.get(way, {"port": 0, "code": NOT_MEASURED}), **wrong.get(way, {})}
                found[source, target] = parse(Speed, {**known, "source": source, "target": target}, "bandwidth")
    return found


def measured_rails(
    schedule: Sequence[Sequence[tuple[str, str]]], answers: Mapping[str, Sequence[Mapping[str, Any]]]
) -> Iterator[Speed]:
    """Yield the speed of each direction of each rail that the client of a pair answered for."""
    for number, one in enumerate(schedule):
        for client, server in one:
            for rail, ways in sorted((_answer(answers[client], number).get("rails") or {}).items()):
                for way, (source, target) in {"forward": (client, server), "reverse": (server, client)}.items():
                    if way not in ways:
                        continue
                    yield parse(Speed, {**ways[way], "source": source, "target": target, "rail": rail}, "rails")


def _answer(answers: Sequence[Mapping[str, Any]], number: int) -> Mapping[str, Any]:
    return answers[number] if number < len(answers) else {}


def _directions(answers: Sequence[Mapping[str, Any]], number: int) -> Mapping[str, Mapping[str, Any]]:
    return _answer(answers, number).get("bandwidth") or {}


def _pairs(seen: Mapping[str, NodeNetwork], speeds: Mapping[tuple[str, str], Speed]) -> Iterable[Pair]:
    ways: dict[tuple[str, str], Way] = {
        (node, peer): way for node, found in seen.items() for peer, way in (found.paths or {}).items()
    }
    for source, target in sorted({*ways, *speeds}):
        yield Pair(source, target, ways.get((source, target)), speeds.get((source, target)))


def record(found: Network) -> dict[str, Any]:
    """Return the network as verify.json has it: what is not known is left out."""
    lean: dict[str, Any] = _lean(asdict(found))
    return lean


def _lean(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _lean(item) for key, item in value.items() if item is not None and item != ""}
    return [_lean(item) for item in value] if isinstance(value, (list, tuple)) else value
