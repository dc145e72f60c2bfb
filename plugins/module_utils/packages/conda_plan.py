# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare an environment of conda with its lock, and decide what is to be done. Pure."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

from ..machine.problems import problem
from . import conda_prefix

COMPARED = ("version", "build", "sha256")


def differences(found, locked):
    """Return [{name, found, locked}] of packages by their version, build and SHA-256, None for one that is not there."""
    names = sorted(set(found) | set(locked))
    pairs = [(name, _of(found.get(name)), _of(locked.get(name))) for name in names]
    return [{"name": name, "found": one, "locked": other} for name, one, other in pairs if one != other]


def _of(package):
    return package and {key: package.get(key) for key in COMPARED}


def plan(found, locked, state):
    """Return (step or None, problems); the step is ``create``, ``rebuild`` or ``remove``. locked: None with state absent."""
    if found["state"] == conda_prefix.FOREIGN:
        return None, [problem("conda_foreign")]
    if state == "absent":
        return (None if found["state"] == conda_prefix.ABSENT else "remove"), []
    if found["state"] == conda_prefix.ABSENT:
        return "create", []
    same = found["state"] == conda_prefix.COMPLETE and not found["changed_files"]
    return (None if same and not differences(found["packages"], locked) else "rebuild"), []


def shown(found):
    """Return an environment as text, for a difference."""
    lines = [_line(*one) for one in sorted(found["packages"].items())]
    lines += ["%s: %s is not as installed" % one for one in sorted(found["changed_files"].items())]
    if found["state"] == conda_prefix.INTERRUPTED:
        lines.append("the installation was interrupted")
    return "".join(line + "\n" for line in lines)


def shown_lock(locked):
    """Return an environment as it will be, as text."""
    return "".join(_line(*one) + "\n" for one in sorted(locked.items()))


def _line(name, package):
    return "%s %s %s %s" % (name, package["version"], package["build"], (package["sha256"] or "")[:12])
