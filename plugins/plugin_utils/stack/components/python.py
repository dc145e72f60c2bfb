# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python of an environment."""

from __future__ import annotations

import re

from ..component import Beside, Component
from ..facts import AnsibleCore, System
from ..interpreters import INTERPRETER, PYTHONS, PythonChoice, choices, offered
from ..keys import Key, variant_of
from ..model import Candidate, Question
from ..rule import Context, Rules
from ..tables import Tables
from ..versions import at_least, matches, minor, version

Python = Candidate[PythonChoice]
rule = Rules()


def _pythons(tables: Tables, question: Question) -> list[Python]:
    constraint = _of_minors(question.constraint("python"))
    found = choices(question.os, question.constraint(INTERPRETER))
    return [Candidate("python", number, row["source"], row) for number, row in found if matches(number, constraint)]


def _of_minors(constraint: str) -> str:
    """Return the minor versions that a constraint, maybe with patch releases, asks for."""
    if constraint[0].isdigit():
        return minor(constraint)
    return re.sub(r"(==|~=)(\d+\.\d+)\.[\d.]*\d", r"==\2", constraint)


@rule("python-os", "python", "os", sources=("S30", "E1", "U3", "D1"))
def python_os(context: Context, python: Python, os: System) -> str | None:
    """A distribution has some Pythons only; what it lacks is a standalone build."""
    if python.row["source"] != "distribution" or python.version in os.row["pythons"]:
        return None
    return f"{os.version} has Python {offered(os.row)} for environments, not {python.version}"


@rule(
    "ansible-core-python", "ansible_core", "os", sources=("S21",),
    hint="run the playbooks from a controller with ansible-core 2.16",
)  # fmt: skip
def ansible_core_python(context: Context, ansible_core: AnsibleCore, os: System) -> str | None:
    """Modules must run on the system's own Python: on EL 8 that ends with ansible-core 2.16."""
    row = context.tables.find("ansible_core", version=minor(ansible_core.version))
    if row is None or at_least(os.row["python"], row["target_python"][0]):
        return None
    return (
        f"ansible-core {minor(ansible_core.version)} does not run modules on Python {os.row['python']}, "
        f"the platform Python of {os.version}; ansible-core 2.16 is the last that does"
    )


def _reason(tables: Tables, question: Question, one: Python) -> str:
    os, origin = question.system, one.row["source"]
    where = {
        "distribution": "from the distribution",
        "standalone": "a standalone build, installed by uv",
        "conda": "a package of conda, as python_env_manager says; rattler installs it, unless another program is named",
        "path": f"the interpreter {one.row['path']}",
    }[origin]
    if question.asked("python"):
        return f"{question.asked('python')}; {where}"
    if origin == "distribution":
        own = os["python"] == one.version
        return "the system's own interpreter" if own else f"no wheels for the system's Python {os['python']}; {where}"
    short = origin == "standalone" and one.version not in os["pythons"]
    return f"no wheels for the distribution's Python {offered(os)}; {where}" if short else where


def _warnings(tables: Tables, question: Question, one: Python, beside: Beside) -> list[str]:
    """Return the warning who decides on the patch release, where one is asked for: plans and wheels are about minor versions."""
    constraint = question.constraints.get("python", "")
    if not re.search(r"\d+\.\d+\.\d", constraint):
        return []
    which = {
        "distribution": "the one that the distribution's packages have",
        "standalone": "the newest that uv knows",
        "conda": "the newest that conda's channels have",
        "path": f"that of {one.row['path']}",
    }[one.row["source"]]
    return [
        f"Python {constraint} was asked for; a plan chooses the minor version, and the patch release of {one.version} is {which}"
    ]


KEYS = (
    Key(name="python", docs=("Python of the environments.",), sample='"3.10"'),
    Key(
        name="wheels",
        docs=(
            "Source of wheels that the package index does not have.",
            "With V(site) an index or directory of the site (C(python_env_find_links)) has them, and they are planned.",
        ),
        sample="index",
        comment="site: python_env_find_links has wheels of what the package index has as source only",
        choices=("index", "site"),
        order=None,
        declares=True,
    ),
    Key(name=INTERPRETER, request=False, shown=variant_of, order=None),
)


def _missing(tables: Tables, question: Question) -> str | None:
    constraint, path = question.constraints.get("python"), question.constraints.get(INTERPRETER, "")
    if path.startswith("/"):
        return (
            f"{path} is not Python {constraint}"
            if constraint
            else f"{path} is not a Python that environments are made with"
        )
    have = sorted(PYTHONS, key=version)
    return f"environments are made with Python {have[0]} to {have[-1]}, not with {constraint}"


PYTHON = Component(
    name="python",
    form=Python,
    keys=KEYS,
    place="environment",
    candidates=_pythons,
    rules=rule,
    required=True,
    reason=_reason,
    warnings=_warnings,
    published=False,
    missing=_missing,
    identity=lambda one: (one.row.get("path"),),
)
