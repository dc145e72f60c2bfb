# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find what of the controller does not do: Ansible's settings, and what it lacks for what a plan is to write."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..problems.problem import Problem

# The library that writes bills of materials, and its module.
SBOM_LIBRARY, SBOM_MODULE = "cyclonedx-python-lib", "cyclonedx"


def settings_problems(facts_become_variables: bool) -> list[Problem]:
    """Return why Ansible's own settings do not do: a fact that a node returns must not take the place of a user's variable.

    facts_become_variables: inject_facts_as_vars
    """
    return [Problem("facts_become_variables", "inject_facts_as_vars")] if facts_become_variables else []


def controller_problems(values: Mapping[str, Any]) -> list[Problem]:
    """Return why lock, bills of materials or pylock.toml files could not be written.

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
