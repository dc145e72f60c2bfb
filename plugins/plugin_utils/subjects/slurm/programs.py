# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Slurm that a distribution has: data/slurm/packages.yml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ...documents.parsing import parse
from ...problems.problem import Problem

TABLE = Path(__file__).resolve().parents[4] / "data" / "slurm" / "packages.yml"
# Ports of slurmctld and slurmd (slurm.conf(5)), and those at which srun waits for its tasks.
CONTROLLER_PORT, NODE_PORT = 6817, 6818
# Above those that the kernel gives to connections of its own choice.
SRUN_PORTS = (61001, 64000)
ON_CONTROLLER, ON_NODE = ("munge", "mariadb", "slurmdbd", "slurmctld"), ("munge", "slurmd")


@dataclass(frozen=True)
class Distribution:
    """A row of the table. slurm: its release; joins: releases of slurmd that its slurmctld takes; controller, node, login: packages."""

    id: str
    version: str
    slurm: str
    source: str
    joins: tuple[str, ...] = ()
    controller: tuple[str, ...] = ()
    node: tuple[str, ...] = ()
    login: tuple[str, ...] = ()
    pids: dict[str, str] = field(default_factory=dict)


@cache
def load() -> tuple[Distribution, ...]:
    """Return the rows; raise DocumentError for one of the wrong shape."""
    rows: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))["rows"]
    return tuple(parse(Distribution, row, f"packages[{number}]") for number, row in enumerate(rows))


def distribution_of(host: str, system: Mapping[str, str]) -> Distribution | Problem:
    """Return the Slurm of a host's system, {id, version}; or why there is none."""
    found = next((one for one in load() if (one.id, one.version) == (system["id"], _major(system["version"]))), None)
    known = [f"{one.id.capitalize()} {one.version}" for one in load()]
    words = f"{system['id'] or 'an unknown system'} {system['version']}".strip()
    return found or Problem("slurm_no_packages", host, {"system": words, "known": known})


def _major(version: str) -> str:
    """Return 12 of Debian's 12.9."""
    return version.partition(".")[0]
