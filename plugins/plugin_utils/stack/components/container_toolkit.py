# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVIDIA Container Toolkit, with which containers get the GPUs of the host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypedDict

from ..component import Beside, Component, Overview
from ..facts import System
from ..input_error import InputError
from ..keys import Key
from ..model import NONE, Candidate, Part, Question
from ..package import Package
from ..repository_libraries import PackagedRow, is_in_repository, repository_warnings
from ..rule import Context, Rules
from ..tables import Subject, Tables
from ..versions import at_least, matches, version
from .driver.row import Driver

TITLE = "NVIDIA Container Toolkit"
PACKAGES = (
    "nvidia-container-toolkit",
    "nvidia-container-toolkit-base",
    "libnvidia-container-tools",
    "libnvidia-container1",
)
# Engines look into both directories, and what is in the second one goes first.
GENERATED, REFRESHED = "/etc/cdi/nvidia.yaml", "/var/run/cdi/nvidia.yaml"


class ToolkitRow(PackagedRow):
    """A release; min_driver: None where no source says which driver is too old."""

    released: str
    min_driver: str | None
    cdi_refresh: bool
    sources: list[str]


class ToolkitTable(TypedDict):
    """absent: NVIDIA's repositories that do not have the packages."""

    sources: dict[str, str]
    absent: list[str]


ContainerToolkit = Candidate[ToolkitRow]
ROWS = Subject("container_toolkit", ToolkitRow, ToolkitTable)
rule = Rules()


def _candidates(tables: Tables, question: Question) -> list[ContainerToolkit]:
    """Return nothing unless it is asked for; what was seen in the host's repository comes first, then what was seen in any."""
    constraint = question.constraints.get("container_toolkit")
    if constraint is None:
        return [Candidate("container_toolkit", NONE)]
    slug = question.os["repository"] if question.os else None
    rows = sorted(
        (row for row in tables.rows(ROWS) if matches(row["version"], constraint)),
        key=lambda row: (slug in row["repositories"], bool(row["repositories"]), version(row["version"])),
        reverse=True,
    )
    return [Candidate("container_toolkit", row["version"], row=row) for row in rows]


def _floor(tables: Tables, release: str) -> str | None:
    """Return the oldest driver that a release takes; where no source says, that of the releases before it, which is no newer."""
    known = [row["min_driver"] for row in tables.rows(ROWS) if row["min_driver"] and at_least(release, row["version"])]
    return known[-1] if known else None


@rule("container-toolkit-driver", "container_toolkit", "driver", sources=("T6",))
def container_toolkit_driver(context: Context, toolkit: ContainerToolkit, driver: Driver) -> str | None:
    """It reads the driver's libraries, and older drivers are not supported."""
    floor = None if toolkit.absent else _floor(context.tables, toolkit.version)
    if floor is None or at_least(driver.version, floor):
        return None
    return f"{TITLE} {toolkit.version} needs driver {floor} or newer, not {driver.version}"


@rule("container-toolkit-os", "container_toolkit", "os", sources=("T3", "T4"))
def container_toolkit_os(context: Context, toolkit: ContainerToolkit, os: System) -> str | None:
    """Its packages are in NVIDIA's repositories of most distributions."""
    if toolkit.absent or os.row["repository"] not in context.tables.beside(ROWS)["absent"]:
        return None
    return f"NVIDIA's repository of {os.version} does not have the {TITLE}"


KEY = Key(
    name="container_toolkit",
    docs=(
        "The NVIDIA Container Toolkit, on hosts with GPUs.",
        "Role allreduce.gpu.container_toolkit installs it and generates the CDI specification.",
    ),
    sample='"1.17"',
)


def _mistake(tables: Tables, question: Question) -> InputError | None:
    """Return the mistake that containers are to have GPUs of a host that has none."""
    asked = KEY.name in question.constraints and question.accelerator == "cpu"
    return InputError("key_without_gpu", KEY.name) if asked else None


def _unknowns(question: Question, one: ContainerToolkit, beside: Beside) -> Iterable[str]:
    if one.row["min_driver"] is None:
        yield f"the oldest driver that {TITLE} {one.version} takes"
    if question.arch == "aarch64":
        yield f"whether the repository {question.system['repository']} has {TITLE} {one.version} for aarch64"


def _result(tables: Tables, question: Question, host: Beside) -> Part:
    """Return its packages, and who writes which file for container engines; nothing where it is not planned."""
    one = host.get("container_toolkit")
    if one is None:
        return {}
    packages: list[Package] = [{"name": name, "version": f"{one.version}-1"} for name in PACKAGES]
    refresh = one.row["cdi_refresh"]
    found = {
        "version": one.version,
        "packages": packages,
        "cdi_refresh": refresh,
        "cdi": REFRESHED if refresh else GENERATED,
    }
    return {"container_toolkit": found}


def _lines(tables: Tables) -> Iterator[tuple[object, ...]]:
    for row in reversed(tables.rows(ROWS)):
        by = "nvidia-cdi-refresh" if row["cdi_refresh"] else "the role"
        yield row["version"], row["released"], row["min_driver"] or "?", by


CONTAINER_TOOLKIT = Component(
    name="container_toolkit",
    form=ContainerToolkit,
    keys=(KEY,),
    place="host",
    candidates=_candidates,
    rules=rule,
    tables=(ROWS,),
    warnings=repository_warnings,
    unknowns=_unknowns,
    result=_result,
    overview=Overview(TITLE, ("release", "published", "driver from", "CDI specification by"), _lines),
    mistake=_mistake,
    installable=lambda tables, question, one: is_in_repository(tables.rows(ROWS), question, one),
)
