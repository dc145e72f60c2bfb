# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find network problems that one node sees, or that only the whole cluster shows: records, no sentences."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterable, Mapping

from ..documents.network import Clock, ClusterLink, Link, Speed, Way
from ..problems.problem import Problem
from .population import Judgement, Sample, judge

# Interfaces that share a subnet answer for each other's addresses, and answers that leave by another one are dropped, unless these
# hold (kernel, Documentation/networking/ip-sysctl.rst; NVIDIA/skyhook-packages, nvidia-base). rp_filter 1 is the strict one.
ARP_LEAST = {"arp_announce": 2, "arp_ignore": 1}
STRICT = 1
LOOPBACK = "lo"  # as the kernel names it, drivers/net/loopback.c
# Seconds that clocks may differ: ours, below the 15 s at which torchrun's rendezvous leaves a node out (PyTorch 2.13.0,
# dynamic_rendezvous.py, keep-alive of 5 s times 3). What is not known better than that is not known.
CLOCK, CLOCK_UNKNOWN = 1.0, 15.0


def own_name_problems(name: str, address: str, resolved: Iterable[str]) -> list[Problem]:
    """A node must find itself where the others find it: a rank that takes its name for loopback waits there for ever."""
    found = sorted(resolved)
    loopback = [one for one in found if ipaddress.ip_address(one.partition("%")[0]).is_loopback]
    if address in found and not loopback:
        return []
    return [Problem("own_name", name, {"resolved": found, "address": address, "loopback": loopback})]


def link_problems(link: Link) -> list[Problem]:
    """Return settings of interfaces that share a subnet which do not keep them apart, and an address that no other node reaches."""
    found = [Problem("loopback", link.interface)] if link.interface == LOOPBACK else []
    for interface, settings in link.shared.items():
        wrong = {key: settings.get(key) for key, least in ARP_LEAST.items() if (settings.get(key) or 0) < least}
        if settings.get("rp_filter") == STRICT:
            wrong["rp_filter"] = STRICT
        if wrong:
            found.append(Problem("shared_subnet", interface, {"settings": wrong}))
    return found


def narrow_below(link: Link) -> list[Problem]:
    """Return devices below the interface that carry less than it sends."""
    return [
        Problem("narrow_below", name, {"mtu": mtu, "interface": link.interface, "above": link.mtu})
        for name, mtu in sorted(link.lower.items())
        if mtu is not None and link.mtu is not None and mtu < link.mtu
    ]


def reach_problems(paths: Mapping[str, Way], address: str) -> list[Problem]:
    """Return nodes that do not answer, and those that packets go to from another address than the node's own."""
    silent = [Problem("no_answer", peer) for peer, way in sorted(paths.items()) if not way.reached]
    return silent + [
        Problem("other_source", peer, {"source": way.source, "address": address})
        for peer, way in sorted(paths.items())
        if way.reached and way.source not in (address, None)
    ]


def size_problems(paths: Mapping[str, Way]) -> list[Problem]:
    """Return nodes that answer, but not to a packet as large as the interface sends."""
    return [
        Problem("packet_size", peer, {"size": way.size, "passes": way.path_mtu})
        for peer, way in sorted(paths.items())
        if way.reached and not way.full
    ]


def clock_problems(clocks: Mapping[str, Clock]) -> list[Problem]:
    """Return the nodes whose clocks certainly differ, where they are the majority: otherwise it is they who are wrong."""
    wrong = [
        Problem("clock_differs", peer, {"least": clock.least, "most": clock.most})
        for peer, clock in sorted(clocks.items())
        if distance(clock)[0] > CLOCK
    ]
    return wrong if 2 * len(wrong) > len(clocks) else []


def distance(clock: Clock) -> tuple[float, float]:
    """Return the distance of the clocks, at least and at most."""
    apart = sorted([abs(clock.least), abs(clock.most)])
    return (0.0 if clock.least <= 0 <= clock.most else apart[0]), apart[1]


def mtu_problems(links: Iterable[ClusterLink], declared: int) -> list[Problem]:
    """Return nodes whose interface has another MTU than declared (0: than most of them)."""
    known = [one for one in links if one.link.mtu is not None]
    if not known:
        return []
    # Of equally many, the larger one: what is too small does not take the packets of the others.
    usual = max(Counter(one.link.mtu for one in known).items(), key=lambda pair: (pair[1], pair[0] or 0))[0]
    return [
        Problem(
            "mtu_differs", one.node, {"mtu": one.link.mtu, "interface": one.link.interface, "wanted": declared or usual}
        )
        for one in known
        if one.link.mtu != (declared or usual)
    ]


def speed_problems(speeds: Iterable[Speed]) -> list[Problem]:
    """Return pairs and rails whose speed could not be measured, and why."""
    return [
        Problem(one.code, one.source, {"target": one.target, "port": one.port, "output": one.output, "rail": one.rail})
        for one in speeds
        if one.code
    ]


def judge_speeds(speeds: Iterable[Speed], of: str) -> tuple[list[Sample], Judgement | None]:
    """Return (samples, judgement) of ``bits_per_second`` or ``latency``; the ends of a rail are the adapters of the nodes."""
    samples = [
        Sample(_end(one.source, one.rail), _end(one.target, one.rail), value)
        for one in speeds
        if (value := getattr(one, of)) is not None
    ]
    return samples, judge(samples, higher_is_better=of == "bits_per_second")


def _end(node: str, rail: str) -> str:
    return f"{rail} of {node}" if rail else node
