# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refuse declarations of GPU settings that cannot be meant; what a GPU takes is known on its node alone. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....module_utils.settings.declaration import DeclarationError, parse
from ...problems.problem import Problem
from ..subject import Subject
from .sentences import SENTENCES

DECLARATION = "gpu_settings_declaration"


def refusal(declaration: Any) -> str:
    """Return why a value of gpu_settings_declaration is none, without a full stop; empty for one that can be meant, and for none at all."""
    try:
        parse([declaration] if isinstance(declaration, Mapping) else declaration or [])
    except DeclarationError as error:
        return str(error).rstrip(".")
    return ""


def problems(variables: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield why a declaration cannot be meant; what a GPU takes is known on its node alone."""
    reason = refusal(variables.get(DECLARATION))
    if reason:
        yield Problem(DECLARATION, DECLARATION, {"reason": reason})


SUBJECT = Subject(
    name="gpu_settings",
    defaults={DECLARATION: []},
    problems=problems,
    compare=lambda node: [],
    units=("allreduce-gpu-settings",),
    sentences=SENTENCES,
)
