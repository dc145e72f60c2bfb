# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lightning, which trains what is written for PyTorch."""

from __future__ import annotations

from typing import TypedDict

from ..component import Component, Overview
from ..extensions import COLUMNS, Extension, ExtensionRow, lines, python_reason, releases, torch_reason
from ..keys import Key
from ..rule import Context, Rules
from ..tables import Subject
from .python import Python
from .pytorch.row import Torch


class LightningTable(TypedDict):
    sources: dict[str, str]


LIGHTNING_ROWS = Subject("lightning", ExtensionRow, LightningTable)
rule = Rules()


@rule("lightning-python", "lightning", "python", sources=("L1",))
def lightning_python(context: Context, lightning: Extension, python: Python) -> str | None:
    return python_reason("Lightning", lightning, python)


@rule("lightning-pytorch", "lightning", "pytorch", sources=("L1",))
def lightning_pytorch(context: Context, lightning: Extension, torch: Torch) -> str | None:
    return torch_reason("Lightning", lightning, torch)


LIGHTNING = Component(
    name="lightning",
    form=Extension,
    keys=(Key(name="lightning", docs=("Lightning (PyTorch Lightning and Fabric).",), sample='"2.6"'),),
    place="framework",
    candidates=lambda tables, problem: releases("lightning", tables.rows(LIGHTNING_ROWS), problem),
    rules=rule,
    tables=(LIGHTNING_ROWS,),
    beside=("pytorch",),
    requirements=lambda tables, problem, one: [f"lightning=={one.version}"],
    module="lightning",
    size={"cuda": 100, "cpu": 100},
    overview=Overview("Lightning", COLUMNS, lambda tables: lines(tables, LIGHTNING_ROWS)),
)
