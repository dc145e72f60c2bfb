# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Name where an environment's interpreter lies: the distribution's, a standalone build below a directory of ours, or a path."""

from __future__ import annotations

import posixpath

from ..documents.stack import Environment, Interpreter, System

STANDALONE = "/opt/allreduce/python"
CONDA = "conda"


def executable(environment: Environment, system: System) -> str:
    """Return the path of the interpreter, or a version to search for where the plan names no path."""
    interpreter = environment.interpreter or Interpreter()
    if interpreter.source == "standalone":
        # uv's link to the newest patch release of a minor version, so that a security update needs no new environment.
        name = f"cpython-{environment.python}-linux-{system.arch}-gnu"
        return f"{STANDALONE}/{name}/bin/python{environment.python}"
    return interpreter.path or environment.python


def planned_home(interpreter: Interpreter) -> str:
    """Return the directory that a virtual environment names as its home, as text for people."""
    if interpreter.source == CONDA:
        return CONDA
    if interpreter.source == "standalone":
        return STANDALONE
    return posixpath.dirname(interpreter.path or "") or "any but " + STANDALONE


def home_satisfies(home: str | None, interpreter: Interpreter) -> bool:
    """Return True if an environment with this home was made with the planned interpreter.

    An interpreter that the user named may lie in a virtual environment itself, whose home is another directory: there,
    and where no path is planned, it must only not be ours.
    """
    if interpreter.source == CONDA:
        return home is None
    ours = f"{home or ''}/".startswith(f"{STANDALONE}/")
    if interpreter.source == "standalone":
        return ours
    if interpreter.source == "distribution" and interpreter.path:
        return _merged(home or "") == _merged(posixpath.dirname(interpreter.path))
    return home is not None and not ours


def _merged(directory: str) -> str:
    """Return /usr/bin for /bin, which is a link to it."""
    return "/usr" + directory if directory == "/bin" else directory
