# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what verification and training left in the report directory, or says in one sentence why it cannot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FORMAT = 1


class ReportError(Exception):
    """One sentence: what, the value, what to do instead."""


def read(directory: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The verification and the training results below the directory."""
    if not directory.is_dir():
        raise ReportError(
            f"the report directory {directory} does not exist: run the verify playbook first, which creates it,"
            " or set report_directory to where its verify.json lies"
        )
    verification = directory / "verify.json"
    if not verification.is_file():
        raise ReportError(
            f"{directory} holds no verify.json: run the verify playbook first,"
            " or set report_directory to where its verify.json lies"
        )
    results = [
        _load(path, f"run the train playbook again, or delete {path.parent} to report without that run")
        for path in sorted(directory.glob("training/*/result.json"))
    ]
    return _load(verification, "run the verify playbook again"), results


def _load(path: Path, remedy: str) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ReportError(f"{path} cannot be read ({_reason(error)}): {remedy}") from error
    found = document.get("format") if isinstance(document, dict) else None
    if found != FORMAT:
        raise ReportError(f"{path} has format {found!r} where this collection reads format {FORMAT}: {remedy}")
    return document


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"no JSON from line {error.lineno} column {error.colno} on"
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    return getattr(error, "strerror", None) or str(error)
