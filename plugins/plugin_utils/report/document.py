# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as JSON: the whole model, field by field as model.py names them."""

from __future__ import annotations

import json
from dataclasses import asdict

from .model import Report


def render(report: Report) -> str:
    """Return JSON text; "format" is raised when a field changes its meaning or goes, not when one is added."""
    document = asdict(report)
    for node in document["nodes"]:
        del node["machine"]  # verify.json has the whole gpu_node
    return json.dumps({"format": report.format, **document}, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
