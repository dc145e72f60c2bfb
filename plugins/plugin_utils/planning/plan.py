# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a whole inventory: every kind of host is resolved once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from ..preflight.problem import ProblemError
from ..preflight.text import describe_all
from ..stack.explain import conflict_line
from ..stack.inputs import InputError
from .decide import decide
from .disk import disk_shortage
from .lock import plain
from .questions import question_from_facts


def plan(hosts: Mapping[str, Mapping], version: str, lock: str | None = None, renew: bool = False) -> dict:
    """hosts: variables by name; version: the running ansible-core.

    Returns stacks: [{hosts, stack}], refused: [{hosts, system, gpus, reasons: [text], instead: text or None}] and
    shortages: [text], each in an order that does not depend on that of the hosts.
    """
    asked: dict[str, list[str]] = {}
    for name in sorted(hosts):
        asked.setdefault(_key(host_question(hosts[name], version)), []).append(name)
    found: dict[str, list] = {"stacks": [], "refused": [], "shortages": []}
    for key, names in asked.items():
        question = json.loads(key)
        try:
            answer = decide(question, lock=lock, renew=renew)
        except ProblemError as error:
            found["refused"].append(_refused(names, question, [describe_all(error.problems)], None))
            continue
        if answer["stack"] is None:
            instead = answer["suggestion"]["text"] if answer["suggestion"] else None
            found["refused"].append(
                _refused(names, question, [conflict_line(one) for one in answer["conflicts"]], instead)
            )
            continue
        found["stacks"].append({"hosts": names, "stack": answer["stack"]})
        found["shortages"] += [f"{name}: {text}" for name in names for text in _shortage(hosts[name], answer["stack"])]
    return {**found, "stacks": _by_kind(found["stacks"])}


def host_question(variables: Mapping, version: str) -> dict:
    """What a host is: as measured, else as the inventory describes it."""
    facts = variables.get("ansible_facts") or {}
    declared = {} if facts.get("distribution") else variables.get("gpu_stack_host") or {}
    wishes = {
        "profile": variables.get("gpu_stack_profile") or None,
        "request": variables.get("gpu_stack_request") or {},
    }
    if not isinstance(wishes["request"], Mapping):
        raise InputError("wrong_request", "gpu_stack_request", value=wishes["request"])
    return question_from_facts({**declared, **wishes}, facts, version)


def _key(question: Mapping) -> str:
    return json.dumps(plain(question), sort_keys=True)


def _refused(hosts: list[str], question: Mapping, reasons: list[str], instead: str | None) -> dict:
    gpus = [one.get("name") if isinstance(one, Mapping) else str(one) for one in question["gpus"]]
    shown = {"system": question["os"] or "unknown", "gpus": gpus}
    return {"hosts": hosts, **shown, "reasons": reasons, "instead": instead}


def _shortage(variables: Mapping, stack: Mapping) -> list[str]:
    return disk_shortage(stack, (variables.get("ansible_facts") or {}).get("gpu_node_state") or {})


def _by_kind(stacks: Iterable[Mapping]) -> list[dict]:
    """Questions that differ may have one answer."""
    kinds: dict[str, dict] = {}
    for one in stacks:
        known = kinds.setdefault(one["stack"]["kind"], {"hosts": [], "stack": one["stack"]})
        known["hosts"] = sorted([*known["hosts"], *one["hosts"]])
    return sorted(kinds.values(), key=lambda one: (-len(one["hosts"]), one["hosts"]))
