# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The subjects of mutation tests: code, and the tests that have to notice a change in it."""

from __future__ import annotations

from dataclasses import dataclass

UTILS, TESTS = "plugins/plugin_utils", "tests/unit/plugins/plugin_utils"


@dataclass(frozen=True)
class Subject:
    """code and tests: folders; only, by: the files of them that count, all without; ignored: tests too slow to repeat for every mutant."""

    code: str
    tests: str
    only: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()


SUBJECTS = {
    "topology": Subject(f"{UTILS}/topology", f"{TESTS}/topology"),
    "drift": Subject(f"{UTILS}/drift", f"{TESTS}/drift", ignored=("test_properties.py",)),
    "stack": Subject(
        f"{UTILS}/stack",
        f"{TESTS}/stack",
        only=("blame.py", "clauses.py", "search.py", "versions.py"),
        # The others resolve whole requests: each reaches nearly every function, and says nothing of one.
        by=("test_blame.py", "test_clauses.py", "test_search.py", "test_versions.py"),
    ),
    "health": Subject(
        "plugins/module_utils/health",
        "tests/unit/plugins/module_utils/health",
        ignored=("test_recordings.py",),
    ),
}
