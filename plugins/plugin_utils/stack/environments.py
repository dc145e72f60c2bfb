# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The environments of a stack: what is installed in each, as wheels or with conda."""

from __future__ import annotations

from .component import NUMPY_1, Beside, Site
from .components import FRAMEWORKS, component
from .interpreters import interpreter
from .model import SHARED, Part, Question, Solution
from .solution import inside, on_host
from .tables import Tables


def environment(tables: Tables, question: Question, chosen: Solution, name: str, cuda_home: str | None) -> Part:
    """Return one environment; cuda_home: where the host's toolkit lies, if it has one."""
    parts, host = inside(chosen, name), on_host(chosen)
    frameworks = [one for one in FRAMEWORKS if one in parts]
    python = parts["python"]
    lines = _requirements(tables, question, parts, host, frameworks)
    numpy = NUMPY_1 if NUMPY_1 in lines else "numpy"
    origin = interpreter(question.system, python.version, python.row)
    found = {
        "name": question.environment_name if name == SHARED else name,
        "python": python.version,
        "interpreter": origin,
        "accelerator": question.accelerator,
        "requirements": [*(line for line in lines if line != NUMPY_1), numpy],
        "index": None,
        "libraries": None,
        "conda": _conda(tables, question, parts, host, frameworks, numpy),
        "frameworks": {one: parts[one].version for one in sorted(frameworks)},
        "build": None,
    }
    site = Site(origin["packages"], cuda_home)
    for one in frameworks:
        found.update(component(one).details(tables, question, parts, site))
    return found


def _requirements(tables: Tables, question: Question, parts: Beside, host: Beside, names: list[str]) -> list[str]:
    beside = {**host, **parts}
    return [line for name in names for line in component(name).requirements(tables, question, parts[name], beside)]


def _conda(tables: Tables, question: Question, parts: Beside, host: Beside, frameworks: list[str], numpy: str) -> Part:
    """Return the same environment for conda: its channels and specs, and the wheels that go on top (the index is the same)."""
    channels, specs = [tables.subjects["conda"]["base_channel"]], [f"python={parts['python'].version}"]
    wheels = []
    for name in frameworks:
        found = component(name).conda(tables, question, parts[name])
        channels = found.channels if found else channels
        specs += found.specs if found else []
        wheels += [] if found else [name]
    lines = [line for line in _requirements(tables, question, parts, host, wheels) if line != NUMPY_1]
    return {"channels": channels, "specs": [*specs, numpy, "pip"], "wheels": lines}
