# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Name what an environment's solution depends on, and what a wheel that is compiled for it depends on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict

from ..documents.stack import Build, Environment, System


def request_digest(environment: Environment, system: System) -> str:
    """Return sixteen hexadecimal digits over everything a solution depends on.

    Where wheels are fetched from is left out: the lock's hashes say what they are, so a moved mirror needs no new solution.
    """
    request = {
        "requirements": sorted(environment.requirements),
        "python": environment.python,
        "accelerator": environment.accelerator or None,
        "index": environment.index.name if environment.index else None,
        "platform": [system.id, system.version, system.arch],
    }
    if environment.interpreter and environment.interpreter.source == "conda":  # whose packages constrain the wheels
        request["interpreter"] = "conda"
    return _digest(request)


# Distributions of the frameworks that Horovod is compiled against.
COMPILED_AGAINST = {"pytorch": "torch", "tensorflow": "tensorflow"}


def build_digest(environment: Environment, system: System, locked: Mapping[str, str | None]) -> str:
    """Return sixteen hexadecimal digits over everything that a compiled Horovod depends on; locked: versions of the lock.

    Packages of the distribution are not in it: their updates recompile nothing.
    """
    build = environment.build or Build()
    return _digest({
        "build": asdict(build),
        "frameworks": {name: locked.get(COMPILED_AGAINST[name]) for name in build.frameworks},
        "python": environment.python,
        "interpreter": environment.interpreter.source if environment.interpreter else None,
        "index": environment.index.name if environment.index else None,
        "platform": [system.id, system.version, system.arch],
    })  # fmt: skip


def _digest(value: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
