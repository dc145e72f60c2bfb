# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes files whose content differs, each as a whole: a reader never sees half a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..documents.files import replace_file
from ..problems.problem import Problem
from .sources import ReportError


@dataclass(frozen=True)
class Change:
    """A file to write."""

    path: Path
    content: bytes
    verb: str  # created | updated


def plan(contents: Mapping[Path, str]) -> list[Change]:
    """Return the changes that make the files hold these contents."""
    changes = []
    for path, text in contents.items():
        content, present = text.encode("utf-8"), _content(path)
        if present != content:
            changes.append(Change(path, content, "created" if present is None else "updated"))
    return changes


def apply(changes: Iterable[Change]) -> None:
    """Write them."""
    for change in changes:
        try:
            replace_file(change.path, change.content)
        except OSError as error:
            raise _failed("report_not_written", change.path, error) from error


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failed("report_not_read", path, error) from error


def _failed(code: str, path: Path, error: OSError) -> ReportError:
    return ReportError(Problem(code, str(path), {"error": error.strerror}))
