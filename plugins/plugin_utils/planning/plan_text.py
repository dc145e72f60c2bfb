# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan as text for a terminal of 80 columns: hosts with equal stacks stand together."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Mapping

from ..drift.components import PACKAGED
from ..problems.phrases import clean
from ..stack.why import Explanation, explanation_lines

WIDTH = 72  # what is left of 80 columns without the indentation of Ansible's output
LABEL = 14


def plan_table(plan: Mapping) -> list[str]:
    """Return the lines of text for a plan (see plan.plan): what is refused, and what single hosts are warned of, stands last, where it is seen."""
    blocks = [_group(one["hosts"], one["stack"], one.get("explanation")) for one in plan["stacks"]]
    obstacles = _levels("obstacle", plan.get("levels") or ())
    warnings = [line for text in plan.get("warnings") or () for line in wrap("warning", text)]
    blocks += [_refused(one) for one in plan["refused"]] + [block for block in (warnings, obstacles) if block]
    return [clean(line) for block in blocks for line in [*block, ""]][:-1]


def _group(hosts: list[str], stack: Mapping, told: Explanation | None = None) -> list[str]:
    lines = _head(hosts, f"kind {stack['kind']}")
    lines += [line for label, text in _rows(stack) for line in wrap(label, text)]
    lines += [line for one in stack["reasons"] for line in wrap("why " + one["component"], one["text"])]
    lines += [line for label, text in (explanation_lines(told) if told else ()) for line in wrap(label, text)]
    lines += [line for text in stack["warnings"] for line in wrap("warning", text)]
    return lines + [line for text in stack.get("update") or () for line in wrap("update", text)]


def _refused(refused: Mapping) -> list[str]:
    lines = _head(refused["hosts"], "refused")
    lines += wrap("system", refused["system"]) + wrap("GPUs", _counted(refused["gpus"]))
    lines += _levels("conflict", refused["levels"])
    return lines + (wrap("suggestion", refused["instead"]) if refused["instead"] else [])


def _levels(label: str, found: Iterable[Mapping]) -> list[str]:
    """Return the lines of problems, what is wrong above why and what to do."""
    rows = ((name, one[level]) for one in found for name, level in ((label, "what"), ("why", "why"), ("fix", "fix")))
    return [line for name, text in rows if text for line in wrap(name, text)]


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{count} x {name}" for name, count in sorted(Counter(names).items())) or "none"


def _head(hosts: list[str], what: str) -> list[str]:
    noun = "host" if len(hosts) == 1 else "hosts"
    return textwrap.wrap(f"{len(hosts)} {noun}, {what}: {', '.join(hosts)}", WIDTH, subsequent_indent="  ")


def _rows(stack: Mapping) -> Iterable[tuple[str, str]]:
    os, gpus = stack["os"], stack["gpus"]
    yield "system", f"{os['id']} {os['version']} ({os['arch']})"
    yield "GPUs", ", ".join(f"{gpu['count']} x {gpu['model']}" for gpu in gpus) or "none"
    yield "driver", _driver(stack["driver"])
    for name in (one.name for one in PACKAGED):
        if name != "driver" and stack.get(name):
            yield name.replace("_", " "), stack[name]["version"]
    for one in stack["environments"]:
        yield f"env {one['name']}", f"{_python(one)}, {_frameworks(one)}"


def _driver(driver: Mapping | None) -> str:
    if driver is None:
        return "none"
    source = {
        "nvidia": "NVIDIA's repository",
        "distribution": "distribution",
        "runfile": "NVIDIA's installer",
        "vendor": f"left to {driver.get('owner')}",
    }
    return f"{driver['version']} ({source[driver['source']]}, {driver['kernel_modules']} kernel modules)"


def _python(environment: Mapping) -> str:
    number, interpreter = environment["python"], environment["interpreter"]
    return {
        "distribution": f"Python {number} from the distribution",
        "standalone": f"standalone build of CPython {number}, installed by uv",
        "conda": f"Python {number} from conda",
        "path": f"Python {number} at {interpreter['path']}",
    }[interpreter["source"]]


def _frameworks(environment: Mapping) -> str:
    index, libraries = environment["index"], environment.get("libraries") or {}
    named = [f"{name} {version}" for name, version in environment["frameworks"].items()]
    if index:
        return f"{', '.join(named)} ({index['name']} wheels)"
    plain = f" (CUDA {libraries['cuda']} wheels of the general package index)" if libraries.get("cuda") else ""
    return ", ".join(named) + plain


def wrap(label: str, text: str) -> list[str]:
    """Return a label and its text in a column of their own each; a label that is too long for its column has a line to itself."""
    indent = " " * (LABEL + 1)
    above, first = ([label], indent) if len(label) > LABEL else ([], f"{label:<{LABEL}} ")
    return above + textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False)
