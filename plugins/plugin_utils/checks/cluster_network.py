# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of the whole cluster: the same MTU everywhere, and no pair or node slower than the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..documents.network import ClusterLink, Network, Speed
from ..network import findings
from ..network.population import NODES, Judgement, Sample
from ..problems.problem import Problem
from ..problems.sentence import Sentence
from .check import PLAY, Check, check, compared, joined, skipped, told
from .paths import ALONE, CATEGORY, NO_ADDRESS, OFF

SHOWN = 8  # pairs named in one sentence
NO_SPEED = ("speeds are measured on request only", "set verify_network_bandwidth to true")
UNEXAMINED = ("no node was examined", PLAY)
FEW = f"fewer than {NODES} nodes with two measured pairs each have no majority to compare one with"
AGAIN = "run verify again"
IPERF, PERFTEST = (f"run verify again, and {name} by hand where it stays so" for name in ("iperf3", "ib_write_bw"))
SENTENCES = {
    "mtu_differs": Sentence(
        "{interface} of {subject} has {mtu} instead of {wanted}",
        "set the same MTU on these interfaces and on the switches between them",
    ),
    "not_measured": Sentence("{subject} to {target} was not measured", AGAIN),
    "no_connection": Sentence(
        "{subject} to {target}: cannot connect to port {port}", "open port {port} in the firewalls between the nodes"
    ),
    "port_in_use": Sentence(
        "{subject} to {target}: port {port} is in use by another program", "choose another verify_network_port"
    ),
    "no_server": Sentence("{subject} to {target}: iperf3 does not listen on port {port}: {output}", IPERF),
    "interrupted": Sentence("{subject} to {target}: the measurement on port {port} was cut off: {output}", AGAIN),
    "no_report": Sentence("{subject} to {target}: iperf3 gave no result: {output}", IPERF),
}
RAIL_SENTENCES = SENTENCES | {
    "no_rail": Sentence(
        "{subject} to {target}: {rail} is active on one of them only", "check the cable and the port of that adapter"
    ),
    "no_program": Sentence(
        "{subject} to {target}: perftest is not installed", "set rdma_stack to inbox, with which role rdma installs it"
    ),
    "no_server": Sentence(
        "{subject} to {target}: perftest does not listen for {rail} on port {port}: {output}", PERFTEST
    ),
    "no_report": Sentence(
        "{subject} to {target}: perftest gave no result for {rail} on port {port}: {output}", PERFTEST
    ),
}
SLOW = "check cabling, speed of the links and load of what is named"
FIGURES = {"bits_per_second": ("bandwidth", 1e9, "Gbit/s"), "latency": ("latency", 1.0, "ms")}


def checks(network: Network, is_asked: bool, nodes: int, mtu: int, bandwidth: bool) -> Iterator[Check]:
    """Yield the checks of the cluster; mtu: as declared, 0 without; bandwidth: whether speeds were to be measured."""
    why = OFF if not is_asked else ALONE if nodes < 2 else ()
    yield skipped("interface_mtu", CATEGORY, "the same", *why) if why else interface_mtu(network.links, mtu)
    why = why or (() if bandwidth else NO_SPEED)
    for of, (name, _unit, _word) in FIGURES.items():
        pairs = [one.speed for one in network.pairs if one.speed]
        yield skipped(f"pair_{name}", CATEGORY, "as fast as the others", *why) if why else speed("pair", pairs, of)
    for of in FIGURES if network.rails and not why else ():
        yield speed("rail", network.rails, of)


def interface_mtu(links: Iterable[ClusterLink], declared: int) -> Check:
    found = list(links)
    known = sorted({one.link.mtu for one in found if one.link.mtu is not None})
    expected = f"{declared} bytes" if declared else "the same on all nodes"
    unknown = [one.node for one in found if one.link.mtu is None]
    problems = findings.mtu_problems(found, declared)
    if unknown and not problems or not found:
        why = f"no interface of {', '.join(unknown)} has the cluster address", NO_ADDRESS[1]
        return compared("interface_mtu", CATEGORY, expected, None, None, *(why if unknown else UNEXAMINED))
    measured = f"{', '.join(map(str, known))} bytes"
    return compared("interface_mtu", CATEGORY, expected, measured, not problems, *named(problems, SENTENCES))


def speed(ways: str, speeds: Iterable[Speed], of: str) -> Check:
    """Judge one figure of all pairs, or of all rails (ways); what could not be measured fails with the bandwidth, once."""
    found = list(speeds)
    figure, unit, word = FIGURES[of]
    name, sentences = f"{ways}_{figure}", SENTENCES if ways == "pair" else RAIL_SENTENCES
    samples, judgement = findings.judge_speeds(found, of)
    problems = findings.speed_problems(found)
    expected = "as fast as the others"
    measured = _range([one.value / unit for one in samples], word, ways)
    if problems and (of == "bits_per_second" or not samples):
        hard = [one for one in problems if one.code != "not_measured"]
        return compared(
            name, CATEGORY, expected, measured, False if hard else None, *named(hard or problems, sentences)
        )
    if not samples:
        return compared(name, CATEGORY, expected, None, None, "nothing was measured", PLAY)
    if judgement is None:
        return check(name, CATEGORY, expected, measured, "skipped", FEW)
    slow = [*judgement.nodes, *judgement.pairs]
    return compared(name, CATEGORY, expected, measured, not slow, joined(slow_words(judgement, unit, word)), SLOW)


def slow_words(judgement: Judgement, unit: float, word: str) -> Iterator[str]:
    """Name nodes first: their pairs are slow for their sake."""
    middle = f"{judgement.population.median / unit:.3g} {word}"
    for node in judgement.nodes:
        ways = {True: "in both directions", False: "as a sender" if node in judgement.sources else "as a receiver"}
        yield f"{node} is slow {ways[node in judgement.sources and node in judgement.targets]}, even in its best pair"
    shown = [_pair_words(one, unit, word) for one in judgement.pairs[:SHOWN]]
    more = len(judgement.pairs) - len(shown)
    if shown:
        yield f"{', '.join(shown)}{f' and {more} more' if more else ''}, where the median is {middle}"


def _pair_words(one: Sample, unit: float, word: str) -> str:
    return f"{one.source} to {one.target} {one.value / unit:.3g} {word}"


def _range(values: list[float], word: str, ways: str) -> str | None:
    if not values:
        return None
    return f"{min(values):.3g} to {max(values):.3g} {word} in {len(values)} directions of {ways}s"


def named(problems: list[Problem], sentences: Mapping[str, Sentence]) -> tuple[str, str]:
    """Return the causes of the first problems and how many more there are, and the remedies."""
    shown = [sentences[one.code].filled(one.subject, one.detail) for one in problems[:SHOWN]]
    more = [Sentence(f"and {len(problems) - SHOWN} more")] if len(problems) > SHOWN else []
    return told([*shown, *more])
