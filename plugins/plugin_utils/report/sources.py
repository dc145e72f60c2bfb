# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what verification and training left in the report directory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ..preflight.problem import Problem, ProblemError

FORMAT = 1


class ReportError(ProblemError):
    """A report that cannot be made of what is there, or not be written."""


def read(directory: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The verification and the training results below the directory."""
    if not directory.is_dir():
        raise ReportError(Problem("no_report_directory", str(directory)))
    verification = directory / "verify.json"
    if not verification.is_file():
        raise ReportError(Problem("no_verification", str(directory)))
    results = [_load(path, "result") for path in sorted(directory.glob("training/*/result.json"))]
    return _load(verification, "verification"), results


def _load(path: Path, kind: str) -> dict[str, Any]:
    """Return a document; kind: verification | result, as the codes of its problems begin."""
    directory = str(path.parent)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        detail = {"error": _reason(error), "directory": directory}
        raise ReportError(Problem(f"{kind}_unreadable", str(path), detail)) from error
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        versions = {"found": found, "supported": FORMAT, "directory": directory}
        raise ReportError(Problem(f"{kind}_format", str(path), versions))
    return document


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON from line {error.lineno} column {error.colno} on"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return getattr(error, "strerror", None) or str(error)
