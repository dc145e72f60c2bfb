# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Shares as plain values: variables and facts in, what modules and checks need out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...documents.comparison import Comparison
from ...documents.parsing import parse
from ...documents.qos import QosNode
from ...problems.problem import Problem
from ...problems.text import describe_all
from ..subject import Decision, Node, Subject
from .compare import compare_absent, compare_shares, compare_unmeasured
from .decide import decide
from .nftables import table
from .plan import plan
from .request import DEFAULTS, GROUP, READS_OF_OTHERS, given, link_problems, problems, request
from .sentences import SENTENCES


def questions(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of module qos_facts: what has to be known for a decision."""
    return {"cgroups": [str(one).strip("/") for one in given(variables)["qos_cgroups"]]}


def decide_shares(node: Node) -> Decision:
    """Return the shares of each interface as options of module qos; raise DocumentError for facts of the wrong shape."""
    found = tuple(problems(node.variables))
    if found:
        return Decision(problems=found)
    wanted = request(node.name, node.known, node.groups.get(GROUP, ()))
    measured = parse(QosNode, node.facts.get("gpu_qos") or {}, "gpu_qos")
    shapings, misfits = decide(wanted, measured)
    if misfits:
        return Decision(problems=tuple(misfits))
    # A minimal system may come without the classifier.
    return Decision(plan(shapings, wanted, node.boot), packages=() if measured.nft else ("nftables",))


def comparisons(node: Node) -> list[Comparison]:
    """Return every comparison of a node's shares; raise DocumentError for facts of the wrong shape."""
    if str(node.variables.get("qos_state") or "absent") != "present":
        return compare_absent(node.has_record("qos"))
    if not node.facts.get("gpu_qos") or any(True for _one in problems(node.variables)):
        return compare_unmeasured()
    wanted = request(node.name, node.known, node.groups.get(GROUP, ()))
    measured = parse(QosNode, node.facts["gpu_qos"], "gpu_qos")
    shapings, found = decide(wanted, measured)
    if not shapings:
        return compare_unmeasured(describe_all(found, SENTENCES))
    digest = table(wanted, [one.name for one in shapings])[1]
    return compare_shares(shapings, digest, measured)


def misfits(node: Node) -> Iterator[Problem]:
    """Yield interfaces that a node lacks, or that are too fast, where it is to share its links."""
    if node.variables.get("qos_state") == "present":
        yield from link_problems(node.name, {**node.variables, "ansible_facts": node.facts})


SUBJECT = Subject(
    name="qos",
    defaults=DEFAULTS,
    problems=problems,
    misfits=misfits,
    compare=comparisons,
    reads_of_others=READS_OF_OTHERS,
    sentences=SENTENCES,
    facts="allreduce.gpu.qos_facts",
    question=questions,
    probed="apply",
    applied_by="allreduce.gpu.qos",
    decide=decide_shares,
    refusal="The traffic of {host} stays as it is: ",
)
