# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of a whole inventory: every kind of host is resolved once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ..drift.selinux import refusals
from ..environments.extras import asked, with_packages
from ..problems.problem import ProblemError
from ..problems.sentence import Sentence
from ..stack.explain import conflict_line, conflict_sentence
from ..stack.input_error import InputError
from ..stack.interpreters import INTERPRETER, MANAGER, constraint_of
from ..stack.why import explanation
from ..subjects.monitoring.host import obstacle as monitoring_obstacle
from ..subjects.sentences import describe, describe_all, told
from ..subjects.slurm.installed import obstacle as slurm_obstacle
from .decide import decide
from .disk import disk_shortage
from .lock import plain
from .published import index_of, tables_for
from .questions import question_from_facts
from .repository_key import retired_key

# What a node says of itself that its plan depends on.
READS = tuple(
    f"ansible_facts.{name}"
    for name in ("architecture", "distribution", "distribution_version", "gpu_node", "gpu_node_state")
)


def plan(
    hosts: Mapping[str, Mapping], version: str, lock: str | None = None, renew: bool = False, explain: str = ""
) -> dict:
    """Return the plan of these hosts: stacks, refused, shortages, obstacles and warnings, in an order that does not depend on theirs.

    hosts: variables by name; version: the running ansible-core; explain: a component to explain, or nothing

    stacks: [{hosts, stack, answers, explanation}], one for each kind of host, with the answers that came to the same:
    [{hosts, measured, asked, stack, explanation}]; refused: [{hosts, system, gpus, reasons: [text], instead: text or None, levels}];
    shortages, obstacles: [text], of disks that are too small and of anything else that prevents a stack from working; levels: the same
    as [{what, why, fix}]; warnings: [text], further ones about single hosts
    """
    found: dict[str, list] = {
        "stacks": [],
        "refused": [],
        "shortages": [],
        "obstacles": [],
        "levels": [],
        "warnings": [],
    }
    for question, names in questions_of(hosts, version):
        try:
            tables = tables_for(question, lock, renew)
            answer = decide(question, lock=lock, renew=renew, tables=tables)
        except ProblemError as error:
            levels = [told(problem) for problem in error.problems]
            found["refused"].append(_refused(names, question, [describe_all(error.problems)], None, levels))
            continue
        if answer["stack"] is None:
            instead = answer["suggestion"]["text"] if answer["suggestion"] else None
            found["refused"].append(
                _refused(
                    names,
                    question,
                    [conflict_line(one) for one in answer["conflicts"]],
                    instead,
                    [conflict_sentence(one) for one in answer["conflicts"]],
                )
            )
            continue
        asked_for: dict[str, Any] = {
            "hosts": names,
            "measured": [name for name in names if _is_measured(hosts[name])],
            "asked": asked_of(question),
            "stack": answer["stack"],
            "explanation": explanation(tables, question, explain) if explain else None,
        }
        found["stacks"].append(asked_for)
        for kind, judge in (("shortages", _shortages), ("obstacles", _obstacles)):
            said = [
                one._replace(what=f"{name}: {one.what}")
                for name in names
                for one in judge(name, hosts[name], answer["stack"])
            ]
            found[kind] += [one.line for one in said]
            found["levels"] += [one._asdict() for one in said]
        found["warnings"] += [f"{name}: {text}" for name in names for text in _warnings(hosts[name], answer["stack"])]
    return {**found, "stacks": _by_kind(found["stacks"]), "refused": _refused_alike(found["refused"])}


def questions_of(hosts: Mapping[str, Mapping], version: str) -> list[tuple[dict, list[str]]]:
    """Return each question that hosts pose, once, with their names."""
    asked: dict[str, list[str]] = {}
    for name in sorted(hosts):
        asked.setdefault(_key(host_question(hosts[name], version)), []).append(name)
    return [(json.loads(key), names) for key, names in asked.items()]


def host_question(variables: Mapping, version: str) -> dict:
    """Return the question that a host poses: as measured, else as the inventory describes it."""
    facts = variables.get("ansible_facts") or {}
    declared = {} if _is_measured(variables) else variables.get("gpu_stack_host") or {}
    asked = {
        "profile": variables.get("gpu_stack_profile") or None,
        "interpreter": constraint_of(variables.get(MANAGER), variables.get(INTERPRETER)),
        "request": variables.get("gpu_stack_request") or {},
        "gpu_models": variables.get("gpu_stack_gpu_models") or {},
        "take_charge": str(variables.get("gpu_stack_take_charge")).lower() in ("true", "yes", "1"),
        "index": index_of(variables),
    }
    if not isinstance(asked["request"], Mapping):
        raise InputError("wrong_request", "gpu_stack_request", value=asked["request"])
    return question_from_facts({**declared, **asked}, facts, version)


def question_of(entry: Mapping, asked: Mapping) -> dict:
    """Return the question that asks for this about a host of the kind that an entry of a lock was planned for."""
    inputs, driver = entry["inputs"], entry["stack"].get("driver") or {}
    counted = [one.partition(" x ") for one in inputs["gpus"]]
    left = driver if inputs.get("driver_left") else {}
    return {
        **asked,
        "os": inputs["os"],
        "arch": inputs["arch"],
        "gpus": [model for number, _x, model in counted for _one in range(int(number))],
        "driver_owner": {"name": left["owner"]} if left else None,
        "installed_driver": {name: left.get(name) for name in ("version", "kernel_modules")} if left else None,
    }


def _is_measured(variables: Mapping) -> bool:
    return bool((variables.get("ansible_facts") or {}).get("distribution"))


def asked_of(question: Mapping) -> dict:
    """Return the part of a question that the user asks for, as plain values."""
    names = ("profile", "request", "environments", "interpreter", "gpu_models", "take_charge")
    return plain({name: question.get(name) for name in names})


def planned_stack(found: Mapping, host: str, question: Mapping) -> dict | None:
    """Return the stack that a plan has for a host; None where it was not measured or asks for something else now.

    found: what plan returned, also by way of Ansible's variables
    """
    answers = (answer for kind in found.get("stacks") or () for answer in kind["answers"])
    asked = asked_of(question)
    wanted = (answer for answer in answers if host in answer["measured"] and plain(answer["asked"]) == asked)
    return next((plain(answer["stack"]) for answer in wanted), None)


def _key(question: Mapping) -> str:
    return json.dumps(plain(question), sort_keys=True)


def _refused(
    hosts: list[str], question: Mapping, reasons: list[str], instead: str | None, levels: Iterable[Sentence]
) -> dict:
    gpus = [_gpu(one) if isinstance(one, Mapping) else str(one) for one in question["gpus"]]
    shown = {"system": question["os"] or "unknown", "gpus": gpus}
    return {
        "hosts": hosts,
        **shown,
        "reasons": reasons,
        "instead": instead,
        "levels": [one._asdict() for one in levels],
    }


def _refused_alike(refused: Iterable[dict]) -> list[dict]:
    """Questions that differ may be refused for the same reasons."""
    alike: dict[str, dict] = {}
    for one in refused:
        first = alike.setdefault(_key({**one, "hosts": []}), {**one, "hosts": []})
        first["hosts"] = sorted([*first["hosts"], *one["hosts"]])
    return list(alike.values())


def _gpu(gpu: Mapping) -> str:
    """Return the name of a measured GPU, with or without a driver."""
    return gpu.get("name") or gpu.get("pci_name") or f"PCI device id {gpu.get('pci_device_id')}"


def _shortages(_name: str, variables: Mapping, stack: Mapping) -> list[Sentence]:
    return disk_shortage(with_packages(stack, asked(variables)), _state(variables))


def _obstacles(name: str, variables: Mapping, stack: Mapping) -> list[Sentence]:
    without = (judge(name, variables, stack["os"]) for judge in (monitoring_obstacle, slurm_obstacle))
    found = [*refusals(stack, _state(variables), variables), *(one for one in without if one)]
    return [told(problem) for problem in found]


def _warnings(variables: Mapping, stack: Mapping) -> list[str]:
    return [describe(problem) for problem in retired_key(variables, stack)]


def _state(variables: Mapping) -> Mapping:
    return (variables.get("ansible_facts") or {}).get("gpu_node_state") or {}


def _by_kind(answers: Iterable[Mapping]) -> list[dict]:
    """Questions that differ may have one answer."""
    kinds: dict[str, dict] = {}
    for answer in answers:
        kind = kinds.setdefault(answer["stack"]["kind"], {"hosts": [], "stack": answer["stack"], "answers": []})
        kind["explanation"] = answer.get("explanation")
        kind["hosts"] = sorted([*kind["hosts"], *answer["hosts"]])
        kind["answers"].append(answer)
    return sorted(kinds.values(), key=lambda kind: (-len(kind["hosts"]), kind["hosts"]))
