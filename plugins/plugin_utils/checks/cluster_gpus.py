# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs of the whole cluster: those of one model are set up alike on all nodes, and so are their drivers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from ...module_utils.health.check_table import FAULTS
from ...module_utils.health.peers import COMPARED
from .check import LEFT_OUT, Check, compared, joined, skipped

CATEGORY, EXPECTED = "coherence", "alike on nodes with the same GPUs"
MODEL = "peer_model"  # where none is on most nodes, several are meant
SHOWN = 8  # nodes named in one sentence
# What role gpu_settings sets: nodes that declare other settings are meant to differ.
SET = ("peer_power_limit", "peer_mig_mode", "peer_ecc_mode", "peer_compute_mode")

Gpu = Mapping[str, Any]
# {what must be alike to be compared: {node: what is compared}}
Groups = dict[tuple, dict[str, str]]


def checks(
    nodes: Mapping[str, Mapping], variables: Mapping[str, Mapping], left_out: Collection[str] = ()
) -> Iterator[Check]:
    """Yield a check for each thing of which at least two nodes with the same GPUs tell.

    nodes: {name: gpu_node}; variables: {name: its host's variables}; left_out: codes.
    """
    for code, groups in _compared(nodes, variables):
        found = {group: values for group, values in groups.items() if len(values) > 1}
        if found and code in left_out:
            yield skipped(code, CATEGORY, EXPECTED, LEFT_OUT)
        elif found:
            yield _judged(code, found)


def _compared(nodes: Mapping[str, Mapping], variables: Mapping[str, Mapping]) -> Iterator[tuple[str, Groups]]:
    alike = dict.fromkeys(nodes, "")
    declared = {name: _declared(variables[name]) for name in nodes}
    yield "peer_driver", _drivers(nodes)
    yield MODEL, _of_gpus(nodes, alike, lambda gpu: gpu.get("compute_capability"), lambda gpu: gpu["name"])
    for code, value, among, _function in COMPARED:
        yield code, _of_gpus(nodes, declared if code in SET else alike, among, value)


def _declared(variables: Mapping) -> str:
    return json.dumps(variables.get("gpu_settings_declaration") or [], sort_keys=True, default=str)


def _drivers(nodes: Mapping[str, Mapping]) -> Groups:
    groups: Groups = {}
    for name, node in nodes.items():
        models = tuple(sorted({gpu["name"] for gpu in node.get("gpus") or () if gpu.get("name")}))
        version = (node.get("driver") or {}).get("loaded_version")
        if models and version:
            groups.setdefault(models, {})[name] = version
    return groups


def _of_gpus(
    nodes: Mapping[str, Mapping],
    declared: Mapping[str, str],
    among: Callable[[Gpu], Any],
    value: Callable[[Gpu], str | None],
) -> Groups:
    """Return the nodes' values; of one whose GPUs differ the value of most of them, since the node's own checks name the others.

    declared: what nodes must have in common, and among: what their GPUs must, to be compared.
    """
    groups: Groups = {}
    for name, node in nodes.items():
        told: dict[tuple, list[str]] = {}
        for gpu in node.get("gpus") or ():
            if "nvml" in gpu["seen_by"] and gpu["name"] and value(gpu) is not None:
                told.setdefault((declared[name], among(gpu)), []).append(str(value(gpu)))
        for group, texts in told.items():
            usual, count = Counter(texts).most_common(1)[0]
            groups.setdefault(group, {})[name] = usual if 2 * count > len(texts) else " and ".join(sorted(set(texts)))
    return groups


def _judged(code: str, groups: Groups) -> Check:
    fault = FAULTS[code, "unlike"]
    sentences = [sentence for values in groups.values() for sentence in _differing(values, code == MODEL)]
    measured = "; ".join(sorted(", ".join(sorted(set(values.values()))) for values in groups.values()))
    reason = f"{fault.severity}: {joined(sentences)}"
    return compared(code, CATEGORY, EXPECTED, measured, not sentences, reason, fault.action)


def _differing(values: Mapping[str, str], majority: bool) -> Iterator[str]:
    """Yield the nodes without the usual value; where no value has a majority none are named, and nothing is said with ``majority``."""
    usual, count = Counter(values.values()).most_common(1)[0]
    is_usual = 2 * count > len(values)
    others = [f"{name} has {text}" for name, text in sorted(values.items()) if not is_usual or text != usual]
    shown = ", ".join(others[:SHOWN]) + (f" and {len(others) - SHOWN} more" if len(others) > SHOWN else "")
    if others and is_usual:
        yield f"most have {usual}, but {shown}"
    elif others and not majority:
        yield shown
