# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Do packets of full size get from each node to the others, by one way, and is it the same time there?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..documents.network import Clock, Link, NodeNetwork, Probe, Way
from ..network import findings
from ..problems.problem import Problem
from ..problems.sentence import Sentence
from .check import PLAY, Check, compared, skipped, told

CATEGORY = "network"
NAMES = {
    "own_name": "the node's own name resolves to its cluster address",
    "interface_ambiguity": "one interface of the network in the cluster's subnet, or ARP settings that keep several apart",
    "reachability": "the other nodes answer",
    "path_mtu": "packets as large as the interface sends arrive",
    "clock_offset": f"clocks differ by at most {findings.CLOCK:g} s",
}
ROUTES = "check cabling, routes and firewalls between the nodes"
MTU = "set one MTU on all interfaces and switches of the path"
OFF = ("the network is not checked (verify_network: false)", "leave out verify_network: false")
ALONE = ("the cluster has one node", "")
SSH = "look at check ssh_to_peers"
NO_PING = ("there is no ping on the node", "install iputils-ping (Debian, Ubuntu) or iputils")
NO_ADDRESS = ("no interface has the cluster address", "set gpu_cluster_address to an address of the node")
SENTENCES = {
    "own_name": Sentence(
        "{subject} resolves to {resolved} on the node itself instead of {address}",
        "correct the node's name in /etc/hosts, or run site",
    ),
    "loopback": Sentence(
        "the cluster address is on {subject}, on which no packet leaves the node", "put it on a dummy interface"
    ),
    "shared_subnet": Sentence(
        "{subject} has {settings}",
        "set tuning_state to present, with which role tuning sets arp_ignore 1, arp_announce 2 and rp_filter 2",
    ),
    "narrow_below": Sentence("{subject} below {interface} carries {mtu} bytes, {interface} sends {above}", MTU),
    "no_answer": Sentence(
        "{subject} does not answer ping: a firewall that drops ICMP also drops the messages that tell senders the path's MTU",
        ROUTES,
    ),
    "other_source": Sentence(
        "packets to {subject} leave from {source} instead of {address}: its address is reached by another interface",
        ROUTES,
    ),
    "packet_size": Sentence("{subject} gets no packet of {size} bytes", MTU),
    "packet_size_limit": Sentence("{subject} gets no packet of {size} bytes: the path carries {passes}", MTU),
    "clock_differs": Sentence("the clock of {subject} is {ahead}", "let all nodes follow the same time servers"),
}


def checks(node: str, address: str, probe: Probe, is_asked: bool, peers: int) -> Iterator[Check]:
    """Yield the checks of one node; peers: number of other nodes that were to be tried."""
    network = probe.network
    if not is_asked or not peers:
        yield from (skipped(name, CATEGORY, text, *(ALONE if is_asked else OFF)) for name, text in NAMES.items())
        return
    if network is None:
        yield from (_unknown(name, "the network was not examined", PLAY) for name in NAMES)
        return
    yield own_name(node, address, network)
    yield ambiguity(network.link)
    yield from paths(network, address)
    yield clocks(probe)


def own_name(node: str, address: str, network: NodeNetwork) -> Check:
    problems = findings.own_name_problems(node, address, network.own_name)
    measured = ", ".join(network.own_name) or "nothing"
    return compared("own_name", CATEGORY, address, measured, not problems, *_told(problems))


def ambiguity(link: Link) -> Check:
    if link.interface is None:
        return _unknown("interface_ambiguity", *NO_ADDRESS)
    measured = ", ".join(sorted(link.shared)) or link.interface
    problems = findings.link_problems(link)
    return compared(
        "interface_ambiguity", CATEGORY, NAMES["interface_ambiguity"], measured, not problems, *_told(problems)
    )


def paths(network: NodeNetwork, address: str) -> Iterator[Check]:
    """Yield whether others answer, and whether they do to packets of full size."""
    if network.paths is None:
        why = NO_PING if network.link.interface else NO_ADDRESS
        yield from (_unknown(name, *why) for name in ("reachability", "path_mtu"))
        return
    tried = network.paths
    yield _counted("reachability", "answer", len(tried), findings.reach_problems(tried, address))
    reached: dict[str, Way] = {peer: way for peer, way in tried.items() if way.reached}
    if not reached:
        yield _unknown("path_mtu", "no other node answers", ROUTES)
        return
    problems = [*findings.size_problems(reached), *findings.narrow_below(network.link)]
    yield _counted("path_mtu", f"get packets of {network.link.mtu} bytes", len(reached), problems)


def clocks(probe: Probe) -> Check:
    """Judge by what other nodes' clocks certainly are apart; SSH takes time that cannot be told from an offset."""
    known = {peer: found.clock for peer, found in probe.peers.items() if found.clock}
    if not known:
        return _unknown("clock_offset", "no other node's clock could be read over SSH", SSH)
    problems = findings.clock_problems(known)
    unsure = [peer for peer, clock in known.items() if findings.distance(clock)[1] > findings.CLOCK_UNKNOWN]
    if unsure and not problems:
        why = f"SSH to {', '.join(sorted(unsure))} took too long to compare the clocks"
        return _unknown("clock_offset", why, "run verify again when the nodes are idle")
    most = max(findings.distance(clock)[0] for clock in known.values())
    return compared(
        "clock_offset", CATEGORY, NAMES["clock_offset"], f"at least {most:g} s" if most else "no difference seen",
        not problems, *_told(problems),
    )  # fmt: skip


def _counted(name: str, what: str, total: int, problems: list[Problem]) -> Check:
    wrong = len({one.subject for one in problems})
    expected = f"{total} of {total} nodes {what}"
    measured = f"{max(total - wrong, 0)} of {total} nodes {what}"
    return compared(name, CATEGORY, expected, measured, not problems, *_told(problems))


def _unknown(name: str, reason: str, fix: str) -> Check:
    return compared(name, CATEGORY, NAMES[name], None, None, reason, fix)


def _told(problems: list[Problem]) -> tuple[str, str]:
    return told(map(sentence, problems))


def sentence(problem: Problem) -> Sentence:
    """Return the cause and the remedy of one problem."""
    detail = {key: _words(value) for key, value in problem.detail.items()}
    code = problem.code
    if code == "clock_differs":
        detail["ahead"] = _ahead(Clock(problem.detail["least"], problem.detail["most"]))
    if code == "packet_size" and (problem.detail["passes"] or problem.detail["size"]) < problem.detail["size"]:
        code = "packet_size_limit"
    return SENTENCES[code].filled(problem.subject, detail)


def _ahead(clock: Clock) -> str:
    near, far = sorted((abs(clock.least), abs(clock.most)))
    return f"{near:.1f} to {far:.1f} s {'ahead' if clock.least > 0 else 'behind'}"


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return " and ".join(f"{key} {'unset' if item is None else item}" for key, item in value.items())
    return (", ".join(map(str, value)) or "nothing") if isinstance(value, (list, tuple)) else str(value)
