# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Name what an environment's solution depends on."""

from __future__ import annotations

import hashlib
import json

from ..documents.stack import Environment, System


def request_digest(environment: Environment, system: System) -> str:
    """Return sixteen hexadecimal digits over everything a solution depends on.

    Where wheels are fetched from is left out: the lock's hashes say what they are, so a moved mirror solves nothing anew.
    """
    request = {
        "requirements": sorted(environment.requirements),
        "python": environment.python,
        "accelerator": environment.accelerator or None,
        "index": environment.index.name if environment.index else None,
        "platform": [system.id, system.version, system.arch],
    }
    return hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:16]
