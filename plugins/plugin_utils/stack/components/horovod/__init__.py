# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Horovod, which is compiled for the frameworks next to it."""

from __future__ import annotations

from ...component import Beside, Component, Site
from ...keys import Key
from ...model import Candidate, Part, Question
from ...rows import Accelerator
from ...tables import Tables
from ...versions import matches
from .build import build
from .row import HOROVOD_ROWS, Horovod
from .rules import rule


def _horovod(tables: Tables, question: Question) -> list[Horovod]:
    """Compiled for what the host computes on, or for processors where the user has PyTorch's build for them."""
    constraint = question.constraint("horovod")
    targets: tuple[Accelerator, ...] = ("cuda",) if question.accelerator == "cuda" else ("cpu",)
    targets = targets if question.permitted_build != "cpu" else tuple(dict.fromkeys((*targets, "cpu")))
    return [
        Candidate("horovod", row["version"], target, {**row, "target": target})
        for target in targets
        for row in tables.rows(HOROVOD_ROWS)
        if matches(row["version"], constraint)
    ]


KEY = Key(name="horovod", docs=("Horovod.",), sample='"0.28.1"')


def _requirements(tables: Tables, question: Question, one: Horovod, beside: Beside) -> list[str]:
    """Return the requirements in addition to its frameworks; it has no wheels of its own."""
    return list(tables.beside(HOROVOD_ROWS)["requirements"])


def _details(tables: Tables, question: Question, beside: Beside, site: Site) -> Part:
    return {"build": build(tables, question, beside, site.interpreter, site.cuda_home)}


HOROVOD = Component(
    name="horovod",
    form=Horovod,
    keys=(KEY,),
    place="framework",
    candidates=_horovod,
    rules=rule,
    tables=(HOROVOD_ROWS,),
    beside=("pytorch", "tensorflow"),
    uses=("cuda", "nccl"),
    system=("gcc",),
    requirements=_requirements,
    details=_details,
    module="horovod",
    size={"cuda": 500, "cpu": 500},
)
