# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the sources and names of Prometheus' programs on a system: data/monitoring/programs.yml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ...documents.parsing import parse

TABLE = Path(__file__).resolve().parents[4] / "data" / "monitoring" / "programs.yml"
# The parts of the role and the ports at which they answer.
PORTS = {"prometheus": 9090, "alertmanager": 9093, "node": 9100, "dcgm": 9400}
# The user that the packages of all but dcgm-exporter make.
USER = "prometheus"


@dataclass(frozen=True)
class Program:
    """A program with its package and its service."""

    package: str
    service: str
    program: str


@dataclass(frozen=True)
class Source:
    """Return the source of a system's programs: distribution | declared | none."""

    origin: str
    family: str = ""
    id: str = ""
    version: str = ""
    reason: str = ""
    web: str = ""
    data: str = ""
    programs: dict[str, Program] = field(default_factory=dict)

    def fits(self, system: Mapping[str, str]) -> bool:
        """Return True if the row is about a system, {family, id, version}."""
        pairs = ((self.family, "family"), (self.id, "id"), (self.version, "version"))
        return all(wanted in ("", system[key]) for wanted, key in pairs)


@cache
def _table() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    return content


@cache
def sources() -> tuple[Source, ...]:
    """Return the rows in their order; raise DocumentError for one of the wrong shape."""
    rows = ({("origin" if key == "from" else key): value for key, value in row.items()} for row in _table()["rows"])
    return tuple(parse(Source, row, f"programs[{number}]") for number, row in enumerate(rows))


def source_of(system: Mapping[str, str]) -> Source | None:
    """Return where a system has its programs from; None for a system of no row."""
    return next((one for one in sources() if one.fits(system)), None)


def dcgm() -> Program:
    """Return dcgm-exporter of NVIDIA's repository."""
    return parse(Program, _table()["dcgm"], "dcgm")


def has_dcgm_packages(system: Mapping[str, str]) -> bool:
    """Return True if NVIDIA's repository has dcgm-exporter for a system, {family, id, version}."""
    return any(all(system[key] == wanted for key, wanted in row.items()) for row in _table()["dcgm_systems"])


def planned_dcgm(facts: Mapping[str, Any]) -> str | None:
    """Return the version of DCGM that a host's plan has; None where it has none."""
    planned = (facts.get("gpu_stack") or {}).get("dcgm") or {}
    return str(planned["version"]) if planned.get("version") else None


def system_of(facts: Mapping[str, Any]) -> dict[str, str]:
    """Return {family, id, version} of a host: of its plan, else of the facts that Ansible gathers."""
    planned = (facts.get("gpu_stack") or {}).get("os") or {}
    if planned.get("id"):
        return {key: str(planned.get(key) or "") for key in ("family", "id", "version")}
    family = {"redhat": "el"}.get(str(facts.get("os_family") or "").lower(), str(facts.get("os_family") or "").lower())
    version = str(facts.get("distribution_version") or "")
    return {"family": family, "id": str(facts.get("distribution") or "").lower(), "version": version}


def known_services() -> tuple[str, ...]:
    """Return the names of all services that the role may be in charge of."""
    found = [program.service for source in sources() for program in source.programs.values()]
    return tuple(dict.fromkeys([*found, dcgm().service]))
