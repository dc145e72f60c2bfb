# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""verify.json and what is said of it on the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from ..cluster.address import READS as ADDRESS
from ..cluster.address import cluster_address, neighbours
from ..documents.check import CLUSTER, STATUSES
from ..documents.check import verdict as verdict_of
from ..documents.comparison import Comparison
from ..documents.door import VALIDATORS, fitting
from ..documents.network import Network
from ..documents.parsing import DocumentError, parse
from ..documents.verification import NodeVerification
from ..drift.desired import DEFAULTS, desired_driver
from ..drift.record import node_comparisons, record
from ..network.record import asked, probe_of
from ..network.record import network as cluster_network_of
from ..network.record import record as network_record
from ..preflight.contact import READS as CONTACT
from ..problems.phrases import clean, hostlist
from ..problems.sentence import Sentence, lower_lines, wrapped
from ..problems.sentences import SENTENCES
from ..subjects import SUBJECTS
from ..subjects.monitoring.request import hosts_of
from ..subjects.pcie.answer import pairs as pcie_pairs
from ..subjects.rdma.answer import adapters as rdma_adapters
from ..subjects.sentences import told as problem_told
from ..subjects.subject import Node, Subject
from . import cluster_adapters, cluster_gpus, cluster_network, fapolicyd, paths, pcie, selinux, slurm, storage
from .check import Check, on_node
from .node import collective_checks, lost_node_checks, node_checks, unfit_node_checks
from .plan import gpu_compute, runs_without_gpus

FACTS = ("distribution", "distribution_version", "kernel", "architecture", "processor_vcpus", "memtotal_mb")
# What a node says that its part of the document is made of.
READS = (
    *ADDRESS,
    *CONTACT,
    *(f"ansible_facts.{name}" for name in FACTS),
    *(path for path in VALIDATORS if path.startswith("ansible_facts.gpu_") and path.count(".") == 1),
    *("__verify_gpu_compute", "__verify_health", "__verify_monitoring", "__verify_probe.node_probe", "__verify_speeds"),
)
# What comes of an answer that has the form of one, such as a name in the place of an address.
_UNJUDGED = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
FIND_OUT = SENTENCES["unfit_answer"].fix
# Characters of one level of a check on the terminal; verify.json and the report have all of them.
MOST_SHOWN = 2000
HEALTH = ("verdict", "findings", "notes", "judged", "skipped_checks", "counters")


def verification(
    hosts: Iterable[str],
    present: Iterable[str],
    hostvars: Mapping[str, Mapping],
    collectives: Mapping,
    finished: str,
    collection: str = "",
) -> dict[str, Any]:
    """Return the document.

    hosts: all that were to be verified; present: those that were still there at the end. What a node answered that cannot be is a
    failed check of that node, and of nothing else. collection: its version.
    """
    present, hosts = set(present), list(hosts)
    known, unfit = fitting({name: hostvars[name] for name in hosts}, READS)
    groups = next((one.get("groups") or {} for one in known.values()), {})
    others = neighbours(hostvars, hosts_of(groups), read_of_others(known)).values
    wrong: dict[str, Sentence] = {}
    for problem in unfit:
        wrong.setdefault(problem.subject, problem_told(problem))
    nodes: dict[str, dict[str, Any]] = {}
    for name in hosts:
        try:
            if name in known:
                nodes[name] = described(name, {**others, name: known[name]}, name in present)
        except DocumentError as error:
            wrong[name] = Sentence(str(error), FIND_OUT)
        except _UNJUDGED as error:
            wrong[name] = Sentence(f"What {name} answered cannot be judged: {clean(str(error))}", FIND_OUT)
        if name in wrong:
            nodes[name] = undescribed(wrong[name], name)
    there = [name for name in nodes if name in present and name not in wrong]
    without = [name for name in there if runs_without_gpus(known[name])]
    network = cluster_network_of(there, known)
    return {
        "format": 1,
        "finished": finished,
        "inventory": inventory_name(hostvars[name].get("inventory_file") for name in hosts),
        "collection": collection,
        "nodes": nodes,
        "network": network_record(network),
        "cluster_checks": collective_checks(collectives, without, [nodes[name]["gpu_node"] for name in there])
        + network_checks(network, there, known)
        + coherence_checks({name: nodes[name]["gpu_node"] for name in there}, known),
    }


def read_of_others(known: Mapping[str, Mapping]) -> tuple[str, ...]:
    """Return the paths read of the other nodes when one is compared with what is asked for; nothing for what no node is to have."""

    def is_asked(subject: Subject) -> bool:
        default = subject.defaults[subject.switch]
        return any(str(variables.get(subject.switch, default)) in subject.on for variables in known.values())

    return tuple(
        dict.fromkeys(path for one in SUBJECTS if one.reads_of_others and is_asked(one) for path in one.reads_of_others)
    )


def inventory_name(files: Iterable[str | None]) -> str:
    """Return the inventory's file with its directory, or the directory of several; empty for hosts that no file names.

    >>> inventory_name(["/home/ada/cluster/hosts.yml"] * 2), inventory_name(["/etc/prod/a.yml", "/etc/prod/b.yml"])
    ('cluster/hosts.yml', 'prod')
    """
    # Ansible calls a list of hosts by itself, with its commas.
    found = sorted({PurePath(str(path)) for path in files if path and "," not in str(path)})
    if len(found) == 1:
        return str(PurePath(found[0].parent.name, found[0].name))
    return ", ".join(dict.fromkeys(path.parent.name or str(path.parent) for path in found))


def coherence_checks(nodes: Mapping[str, Mapping], known: Mapping[str, Mapping]) -> list[Check]:
    """Return the checks that compare the nodes with each other; what a node's verification leaves out is left out of them."""
    left_out = {code for name in nodes for code in known[name].get("verify_health_skip_checks") or ()}
    found = [*cluster_gpus.checks(nodes, known, left_out), *cluster_adapters.checks(nodes, left_out)]
    return on_node(CLUSTER, found)


def network_checks(network: Network, nodes: list[str], known: Mapping[str, Mapping]) -> list[Check]:
    options = next((asked(known[name]) for name in nodes), {})
    mtu, bandwidth = int(options.get("mtu") or 0), bool(options.get("bandwidth"))
    return on_node(
        CLUSTER, cluster_network.checks(network, bool(options), len(options.get("peers") or []), mtu, bandwidth)
    )


def undescribed(wrong: Sentence, name: str) -> dict[str, Any]:
    """Return a node of the document whose answers cannot be."""
    return {
        **dict.fromkeys(("address", "gpu_health", "gpu_qos")),
        **{key: {} for key in ("facts", "gpu_node", "gpu_stack", "gpu_node_state")},
        **{key: [] for key in ("comparisons", "pcie_pairs", "rdma_adapters")},
        "remark": "",
        "gpu_compute": True,
        "checks": unfit_node_checks(name, wrong),
    }


def described(name: str, known: Mapping[str, Mapping], present: bool) -> dict[str, Any]:
    """Return one node of the document, as the report can read it; raise DocumentError where a node says what cannot be."""
    found = describe(name, known, present)
    parse(NodeVerification, found, name)
    # What cannot be compared fails here, where it is this node's fault alone.
    coherence_checks({name: found["gpu_node"]}, known)
    return found


def describe(name: str, known: Mapping[str, Mapping], present: bool) -> dict[str, Any]:
    """Return one node of the document. known: its variables, and of the other nodes what read_of_others says."""
    variables = known[name]
    facts = variables.get("ansible_facts") or {}
    health = variables.get("__verify_health") or {}
    judged = {key: health.get(key) for key in HEALTH} if present and "verdict" in health else None
    compared = comparisons(name, known) if present else []
    return {
        "address": cluster_address(variables),
        "remark": str(variables.get("report_remark") or ""),
        "gpu_compute": gpu_compute(variables),
        "facts": {key: facts.get(key) for key in FACTS},
        "gpu_node": facts.get("gpu_node") or {},
        "gpu_stack": facts.get("gpu_stack") or {},
        "gpu_node_state": facts.get("gpu_node_state") or {},
        "gpu_health": judged,
        "gpu_qos": facts.get("gpu_qos"),
        "comparisons": [record(one) for one in compared],
        "pcie_pairs": pcie_pairs(facts) if present else [],
        "rdma_adapters": rdma_adapters(variables, facts) if present else [],
        "checks": _checks(name, variables, compared, judged) if present else _lost(name, variables),
    }


def comparisons(name: str, known: Mapping[str, Mapping]) -> list[Comparison]:
    """Return the comparisons of every component and subject on a node: what is asked for, with what is there."""
    variables, groups = known[name], known[name].get("groups") or {}
    facts = variables.get("ansible_facts") or {}
    chosen = {key: variables[key] for key in DEFAULTS if key in variables}
    node = Node(name, variables, facts, known, groups)
    return [
        *node_comparisons(facts.get("gpu_stack") or {}, node.state, chosen),
        *(found for subject in SUBJECTS for found in subject.comparisons(node)),
    ]


def _checks(name: str, variables: Mapping, compared: list[Comparison], judged: Mapping | None) -> list[Check]:
    facts = variables.get("ansible_facts") or {}
    stack, state, gpu_node = (facts.get(key) or {} for key in ("gpu_stack", "gpu_node_state", "gpu_node"))
    probe, driver = _probe(variables), desired_driver(stack, variables) is not None
    return [
        *node_checks(compared, stack, state, gpu_node, name, probe, judged, gpu_compute(variables), driver),
        *on_node(name, pcie.checks(facts.get("gpu_pcie"), gpu_node)),
        *on_node(name, selinux.checks(stack, state, variables, probe or {})),
        *on_node(name, fapolicyd.checks(state)),
        *on_node(name, slurm.checks(variables, facts.get("gpu_slurm"))),
        *on_node(name, storage.checks(variables.get("__verify_storage_mounts") or (), probe)),
        *path_checks(name, variables),
    ]


def _lost(name: str, variables: Mapping) -> list[Check]:
    return lost_node_checks(name, variables.get("__stack_reached") or {}, variables.get("__stack_root") or {})


def _probe(variables: Mapping) -> Mapping | None:
    return (variables.get("__verify_probe") or {}).get("node_probe")


def path_checks(name: str, variables: Mapping) -> list[Check]:
    options = asked(variables)
    others = set(options.get("peers") or []) - {name}
    return on_node(
        name, paths.checks(name, cluster_address(variables) or "", probe_of(variables), bool(options), len(others))
    )


def all_checks(document: Mapping) -> list[Check]:
    found = [entry for node in document["nodes"].values() for entry in node["checks"]]
    return found + list(document["cluster_checks"])


def summary(document: Mapping, accept_unknown: bool = False) -> dict[str, Any]:
    """Return {``lines`` to show, ``verdict``: a sentence that names what did not pass, empty without any}."""
    return {"lines": summary_lines(document), "verdict": verdict(document, accept_unknown)}


def summary_lines(document: Mapping) -> list[str]:
    """Return a line with its verdict for each node and for the cluster, with the checks that did not pass below it."""
    lines = []
    for name, node in [*document["nodes"].items(), ("cluster", {"checks": document["cluster_checks"]})]:
        found, health = node["checks"], node.get("gpu_health")
        gpus = f", GPUs {health['verdict'].replace('_', ' ')}" if health else ""
        lines.append(f"{name}: {verdict_of(one['status'] for one in found)}{gpus} ({counted(found)})")
        if not node.get("gpu_compute", True):
            lines.append("  not checked: whether GPUs compute (verify_gpu_compute: false)")
        for entry in found:
            if entry["status"] in ("failed", "unknown"):
                lines += _told(entry)
        for note in (health or {}).get("notes") or []:
            lines += _noted(note)
    return lines


def _told(entry: Check) -> list[str]:
    """Return the levels of a check that did not pass: its measured and expected value, why, and what to do."""
    seen = "" if entry["status"] == "unknown" else f": {entry['measured']}; expected: {entry['expected']}"
    what = wrapped(_shown(f"  {entry['status']}: {entry['name']}{seen}"), "    ")
    return [*what, *lower_lines(_shown(entry["reason"]), _shown(entry["fix"]), indent="    ")]


def _shown(text: str) -> str:
    """Return a harmless text of a length that people read: what is in it, a node may have said."""
    return clean(text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}… ({len(text)} characters)")


def _noted(note: Mapping) -> list[str]:
    """Return the levels of an event that is no fault of the node."""
    seen = f"{note['measured']}{' on ' + note['gpu'] if note['gpu'] else ''}"
    what = wrapped(_shown(f"  note: {note['check']}: {seen}"), "    ")
    return [*what, *lower_lines("", _shown(note["action"]), indent="    ")]


def counted(found: Iterable[Check]) -> str:
    counts = Counter(entry["status"] for entry in found)
    return ", ".join(f"{counts[status]} {status}" for status in STATUSES if counts[status]) or "no checks"


def verdict(document: Mapping, accept_unknown: bool = False) -> str:
    """Return a sentence about the checks that failed, and unless they are accepted those that could not be decided."""
    found = all_checks(document)
    words = {"failed": "failed"} if accept_unknown else {"failed": "failed", "unknown": "could not be decided"}
    parts = []
    for status, word in words.items():
        nodes: dict[str, list[str]] = {}
        for entry in found:
            if entry["status"] == status:
                nodes.setdefault(entry["name"], []).append(entry["node"])
        if nodes:
            names = "; ".join(clean(f"{name} on {hostlist(where)}") for name, where in nodes.items())
            parts.append(f"{sum(map(len, nodes.values()))} of {len(found)} checks {word}: {names}.")
    return " ".join(parts)
