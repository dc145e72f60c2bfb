# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lightning, which trains what is written for PyTorch."""

from __future__ import annotations

from typing import TypedDict

from ..extensions import ExtensionRow
from ..keys import Key
from ..rule import Rules
from ..tables import Subject
from .pytorch.beside import Made, on_pytorch, python_rule, pytorch_rule


class LightningTable(TypedDict):
    sources: dict[str, str]


LIGHTNING_ROWS = Subject("lightning", ExtensionRow, LightningTable)
MADE = Made("lightning", "Lightning", LIGHTNING_ROWS, "L1")
rule = Rules()
python_rule(rule, MADE)
pytorch_rule(rule, MADE)

LIGHTNING = on_pytorch(
    MADE,
    rule,
    Key(name="lightning", docs=("Lightning (PyTorch Lightning and Fabric).",), sample='"2.6"'),
    size={"cuda": 100, "cpu": 100},
)
