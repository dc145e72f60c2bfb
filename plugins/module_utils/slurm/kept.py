# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Records of the programs on a node next to the state of role health: what was decided, and what prolog and epilog refused."""

from __future__ import absolute_import, division, print_function

__metaclass__ = type

import fcntl
import json
import os
from contextlib import contextmanager

from ..health.state import keep

EMPTY: dict = {"outcome": "", "reason": "", "time": 0, "drains": []}
DECIDED, REFUSED, DOCUMENT = "slurm.json", "slurm_refused.json", "health.json"


def load(directory, name, otherwise):
    """Return the content of a file; something else where it is not there, or is broken."""
    try:
        with open(os.path.join(directory, name)) as stream:
            found = json.load(stream)
    except (EnvironmentError, ValueError):
        return otherwise
    return found if isinstance(found, type(otherwise)) else otherwise


@contextmanager
def locked(directory, name, waits=True):
    """Hold the lock of a file while its reader decides; give False where it does not wait and another holds it."""
    with open(os.path.join(directory, name + ".lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True


def decided(directory):
    """Return the decision of the last run."""
    return dict(EMPTY, **load(directory, DECIDED, {}))


def decide(directory, known):
    keep(os.path.join(directory, DECIDED), known)


def refused(directory):
    """Return [{what, time, …}] of what was refused, the first one first."""
    return load(directory, REFUSED, [])


def refuse(directory, note):
    """Add what was refused."""
    with locked(directory, REFUSED):
        keep(os.path.join(directory, REFUSED), refused(directory) + [note])


def forget(directory, is_over):
    """Remove what was refused and is over."""
    with locked(directory, REFUSED):
        found = refused(directory)
        left = [one for one in found if not is_over(one)]
        if left != found:
            keep(os.path.join(directory, REFUSED), left)
