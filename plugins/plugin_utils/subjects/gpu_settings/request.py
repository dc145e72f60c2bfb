# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuse declarations of GPU settings that cannot be meant; what a GPU takes is known on its node alone. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....module_utils.settings.declaration import DeclarationError, parse
from ...documents.comparison import Comparison
from ...problems.problem import Problem
from ..subject import Node, Subject
from .compare import UNIT, compare_settings, compare_unwanted
from .sentences import SENTENCES

DECLARATION, STATE = "gpu_settings_declaration", "gpu_settings_state"


def refusal(declaration: Any) -> str:
    """Return the reason why a value of gpu_settings_declaration is not valid, without a full stop; empty for a valid one, and for none."""
    try:
        parse([declaration] if isinstance(declaration, Mapping) else declaration or [])
    except DeclarationError as error:
        return str(error).rstrip(".")
    return ""


def problems(variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the reason why a declaration is not valid; what a GPU takes is known on its node alone."""
    reason = refusal(variables.get(DECLARATION))
    if reason:
        yield Problem(DECLARATION, DECLARATION, {"reason": reason})


def comparisons(node: Node) -> list[Comparison]:
    """Return every comparison of a node's GPU settings; a node without GPUs gets none."""
    given, gpus = node.variables.get(DECLARATION) or [], (node.facts.get("gpu_node") or {}).get("gpus") or []
    unit = (node.state.get("services") or {}).get(UNIT) or {}
    if str(node.variables.get(STATE, "present")) != "present" or not given or not gpus:
        return compare_unwanted(unit)
    if refusal(given):  # preflight says so
        return []
    return compare_settings([given] if isinstance(given, Mapping) else given, gpus, unit)


SUBJECT = Subject(
    name="gpu_settings",
    defaults={DECLARATION: [], STATE: "present"},
    problems=problems,
    compare=comparisons,
    units=(UNIT,),
    sentences=SENTENCES,
)
