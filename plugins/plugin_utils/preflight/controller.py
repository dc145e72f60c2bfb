# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what the controller lacks: a safe ansible-core, safe settings of it, and what a plan is to be written with, before it is made."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

with suppress(ImportError):  # ansible-core depends on it; only ansible-test's import check runs without it
    from packaging.version import Version

from ..problems.problem import Problem

# The library that writes bills of materials, and its module.
SBOM_LIBRARY, SBOM_MODULE = "cyclonedx-python-lib", "cyclonedx"


# The first release of each branch that runs no template in what a node says (CVE-2024-11079), by the changelogs of ansible-core; the
# oldest is the oldest that this collection runs on. Branches after the newest have the fix.
SAFE_CORES = ("2.16.14", "2.17.7", "2.18.1")


def core_problems(version: str) -> list[Problem]:
    """Return the problem that this ansible-core is not safe to run against nodes that may be hostile."""
    found = Version(version)
    for safe in map(Version, SAFE_CORES):
        if found < safe and (found.release[:2] == safe.release[:2] or safe == Version(SAFE_CORES[0])):
            return [Problem("unsafe_core", version, {"safe": str(safe)})]
    return []


def settings_problems(facts_become_variables: bool) -> list[Problem]:
    """Return the problems of Ansible's own settings: a fact that a node returns must not take the place of a user's variable.

    facts_become_variables: inject_facts_as_vars
    """
    return [Problem("facts_become_variables", "inject_facts_as_vars")] if facts_become_variables else []


def controller_problems(values: Mapping[str, Any]) -> list[Problem]:
    """Return the reasons why lock, bills of materials or pylock.toml files could not be written.

    values: stack_lock, stack_sbom, stack_pylock and stack_uv; those that are not text are not looked at
    """
    given = {name: value for name, value in values.items() if isinstance(value, str)}
    problems = []
    lock = Path(given.get("stack_lock", "")).expanduser()
    if lock.is_absolute() and not lock.parent.is_dir():
        problems.append(Problem("no_lock_directory", str(lock), {"directory": str(lock.parent)}))
    if given.get("stack_sbom") and importlib.util.find_spec(SBOM_MODULE) is None:
        problems.append(Problem("sbom_no_library", SBOM_LIBRARY))
    uv = given.get("stack_uv", "")
    if given.get("stack_pylock") and shutil.which(Path(uv).expanduser()) is None:
        problems.append(Problem("pylock_no_uv", uv))
    return problems
