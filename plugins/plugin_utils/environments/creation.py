# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python environments that are to be made: those that drift finds missing, or made with another interpreter. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from ..documents.comparison import Status
from ..documents.parsing import parse
from ..documents.stack import Interpreter, Stack
from ..drift.environments import compare_interpreter
from ..drift.interpreters import executable
from ..drift.record import observe

__all__ = ["NewEnvironment", "environments_to_create"]


class NewEnvironment(TypedDict):
    """An environment that is to be made; executable: the path of its interpreter, or a version to search for."""

    name: str
    python: str
    source: str
    executable: str


def environments_to_create(stack: Mapping[str, Any], state: Mapping[str, Any] | None) -> list[NewEnvironment]:
    """Return the environments of fact gpu_stack that fact gpu_node_state lacks; what was not measured is left as it is."""
    planned, observed = parse(Stack, stack, "gpu_stack"), observe(state)
    known = observed.measured and observed.environments is not None
    return [
        {
            "name": one.name,
            "python": one.python,
            "source": (one.interpreter or Interpreter()).source,
            "executable": executable(one, planned.os),
        }
        for one in planned.environments
        if any(
            comparison.status in (Status.MISSING, Status.DIFFERS)
            for comparison in compare_interpreter(one.name, one, (observed.environments or {}).get(one.name), known)
        )
    ]
