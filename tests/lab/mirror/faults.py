# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell the mirror to misbehave for one view."""

from __future__ import annotations

import json

from ..progress import LabError
from . import build
from .server import FAULTS


def set_faults(view: str, *faults: str | dict) -> None:
    """Replace the faults of a view: names, NAME:PATTERN, or {fault, match, rate}; without any it behaves."""
    rules = []
    for fault in faults:
        name, dummy, match = fault.partition(":") if isinstance(fault, str) else (fault["fault"], "", "")
        if name not in FAULTS:
            raise LabError(f"the mirror knows no fault {name!r}: use one of {', '.join(sorted(FAULTS))}")
        rules.append(fault if isinstance(fault, dict) else {"fault": name, **({"match": match} if match else {})})
    build.FAULTS.mkdir(parents=True, exist_ok=True)
    file, part = build.FAULTS / f"{view}.json", build.FAULTS / f".{view}.part"
    part.write_text(json.dumps(rules), encoding="utf-8")
    part.rename(file)
