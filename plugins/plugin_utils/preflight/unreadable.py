# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the file that Ansible could not parse: since ansible-core 2.19 its message about variables of groups and hosts names none."""

from __future__ import annotations

from collections.abc import Iterator

from ..problems.problem import Problem


def unreadable(error: BaseException) -> Problem | None:
    """Return the problem with the file that an error, or one that led to it, comes from; None where none of them tells."""
    for one in _chain(error):
        origin = getattr(one, "obj", None)
        path, line = getattr(origin, "path", None), getattr(origin, "line_num", None)
        if path and line:
            where = {"line": line, "column": getattr(origin, "col_num", None) or 1}
            return Problem("unreadable_file", str(path), {**where, "error": _sentence(one)})
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _sentence(error: BaseException) -> str:
    return " ".join(str(getattr(error, "message", error)).split()).rstrip(".")
