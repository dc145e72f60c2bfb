# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver: its branches, where it comes from, and its kernel modules."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...component import Beside, Component, Overview
from ...input_error import InputError
from ...keys import Key
from ...model import Part, Question
from ...rows import Source
from ...tables import Tables
from ...wording import listed
from .candidates import drivers, ended
from .mig import KEY as MIG_KEY
from .mig import MIG, mig_mistake, mig_warnings
from .packages import driver_result, fabric_manager_result, imex_result
from .row import ARCHIVES, KERNELS, PACKAGES, Driver
from .rules import rule


def _reason(tables: Tables, question: Question, one: Driver) -> str:
    source: dict[Source, str] = {
        "vendor": "its vendor",
        "nvidia": "NVIDIA's repository",
        "distribution": "the distribution's own archive",
        "runfile": "NVIDIA's installer",
    }
    branch = one.row["branch"]
    if question.owner:
        return f"installed, and left to {question.owner.name}; runs CUDA {branch['cuda']} and older"
    why = question.asked("driver") or f"newest {branch['status']} branch that fits"
    return f"{why}; from {source[one.row['source']]}, runs CUDA {branch['cuda']} and older"


def _warnings(tables: Tables, question: Question, one: Driver, beside: Beside) -> list[str]:
    branch, found = one.row["branch"], mig_warnings(question)
    if question.owner:
        return [
            *found,
            f"the driver is left to {question.owner.name}: neither it nor its repository, kernel modules and services "
            f"are touched; gpu_stack_take_charge: true changes that",
        ]
    if branch["status"] == "eol":
        when = f" ({branch.get('eol')})" if branch.get("eol") else ""
        keeper = (
            "; the distribution's security support still updates its packages"
            if one.row["source"] == "distribution"
            else ""
        )
        found.append(f"driver branch {branch['branch']} has reached its end of life at NVIDIA{when}{keeper}")
    if one.row["source"] == "distribution" and "advice" in one.row["archive"]:
        found.append(
            f"driver {one.version} comes from the archive of {question.system['id']} {question.system['version']}: {one.row['archive']['advice']}"
        )
    vgpus = [gpu.model for gpu in question.gpus if gpu.row.get("vgpu")]
    if vgpus:
        found.append(
            f"{listed(vgpus)}: nvidia_driver_runfile has to be the guest driver of NVIDIA's vGPU software, in version {one.version}, "
            "which has to fit the hypervisor's"
        )
    if one.row.get("known") is False:
        found.append(
            f"driver {one.version} is not in the tables; it was treated as a release of the known branch {branch['branch']}"
        )
    return found


def _unknowns(question: Question, driver: Driver, beside: Beside) -> Iterator[str]:
    branch = driver.row["branch"]
    if branch["status"] == "unknown":
        yield f"how long NVIDIA supports driver branch {branch['branch']}"


def _branch(one: Driver) -> str:
    return str(one.row["branch"]["branch"])


KEYS = (
    Key(
        name="driver",
        docs=("Branch or version of the driver, such as V(535) or V(535.309.01).",),
        sample='"580"',
        comment="branch or full version",
        shown=_branch,
        order=lambda one: (one.row["branch"]["branch"],),
    ),
    Key(
        name="driver_source",
        docs=("Where the driver comes from. V(vendor) leaves it to its installer.",),
        sample="auto",
        comment="nvidia | distribution | runfile",
        choices=("auto", "nvidia", "distribution", "runfile", "vendor"),
        shown=lambda one: str(one.row["source"]),
        order=None,
    ),
    Key(
        name="kernel_modules",
        docs=("Flavour of the kernel modules.",),
        sample="auto",
        comment="open | proprietary",
        choices=("auto", "open", "proprietary"),
        shown=lambda one: str(one.row["kernel_modules"]),
        order=None,
    ),
    Key(
        name="kernel",
        docs=(
            "Kernel that the host will run, as C(uname -r) prints it, or the beginning of that, such as V(6.8).",
            "The driver has to build on it as well as on those that the host has. It is not installed.",
        ),
        sample='"6.8"',
        comment="that the driver has to build on, too; it is not installed",
        free=True,
        order=None,
        declares=True,
    ),
    MIG_KEY,
)


def _is_known(tables: Tables, question: Question, one: Driver) -> bool:
    return one.row.get("known") is not False and "." in one.version


def _mistake(tables: Tables, question: Question) -> InputError | None:
    """Return the mistake in the kernel, which is not a release of one, or in how the GPUs are to be partitioned."""
    kernel = question.constraints.get("kernel")
    wrong = InputError("wrong_kernel", kernel) if kernel and not re.match(r"\d+\.\d", kernel) else None
    return wrong or mig_mistake(question)


def _missing(tables: Tables, question: Question) -> str | None:
    return (
        f"{question.owner.name} is in charge of the driver, which is {question.owner.version}"
        if question.owner
        else None
    )


def _identity(one: Driver) -> tuple[object, ...]:
    row, told = one.row, (one.row.get("moves"), one.row.get("known"))
    if "archive" not in row:
        return told
    return (row["archive"]["id"], row["archive"]["version"], row["suite"]["suite"], *told)


def _result(tables: Tables, question: Question, host: Beside) -> Part:
    """Return the driver and the services of GPUs behind NVSwitches, which are of its version."""
    one = host.get("driver")
    if one is None:
        return {"driver": None, "fabric_manager": None}
    found: Part = {
        "driver": driver_result(tables, question, one),
        "fabric_manager": fabric_manager_result(tables, question, one),
    }
    return {**found, "imex": imex_result(tables, question, one)} if "imex" in question.fabric else found


def _repository(question: Question, one: Driver) -> bool:
    """Return True if something comes from NVIDIA's repository; its installer brings the driver alone."""
    source = one.row["source"]
    return source == "nvidia" or (source == "runfile" and bool(question.fabric))


def _lines(tables: Tables) -> Iterator[tuple[object, ...]]:
    for row in reversed(tables.rows("drivers")):
        yield row["branch"], row["type"] or "?", row.get("eol") or row["status"], row["latest"] or "?", row["cuda"]


DRIVER = Component(
    name="driver",
    form=Driver,
    keys=KEYS,
    place="host",
    candidates=drivers,
    rules=rule,
    tables=(
        KERNELS,
        ARCHIVES,
        PACKAGES,
        MIG,
    ),
    required=True,
    reason=_reason,
    warnings=_warnings,
    unknowns=_unknowns,
    result=_result,
    repository=_repository,
    size={"cuda": 1500, "cpu": 1500},
    overview=Overview("Driver branches", ("branch", "type", "end of life", "newest seen", "CUDA"), _lines),
    mistake=_mistake,
    missing=_missing,
    installable=_is_known,
    ended=ended,
    identity=_identity,
)
