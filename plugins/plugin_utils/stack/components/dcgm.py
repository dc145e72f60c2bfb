# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""DCGM, with which role monitoring's exporter and health tools of others read GPUs: planned where it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypedDict

from ..component import Beside, Component, Overview, first_to_last
from ..facts import System
from ..input_error import InputError
from ..keys import Key
from ..model import NONE, Candidate, Part, Question
from ..package import Package
from ..rule import Context, Rules
from ..tables import Nothing, Subject, Tables
from ..versions import at_least, major, matches, version
from .driver.row import Driver

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class DcgmRow(TypedDict):
    """released: None where it is not known; the columns are told at the head of the table."""

    version: str
    released: str | None
    cuda: list[str]
    min_driver: str
    repositories: list[str]
    aarch64: list[str]
    documented: list[str]
    deb: str
    rpm: str
    unverified: NotRequired[list[str]]
    sources: list[str]


Dcgm = Candidate[DcgmRow]
DCGM_ROWS = Subject("dcgm", DcgmRow, Nothing)
rule = Rules()


def _dcgm(tables: Tables, question: Question) -> list[Dcgm]:
    """Return no DCGM unless asked for, else releases: the newest major first, and of a major what was seen in the host's repository."""
    constraint = question.constraints.get("dcgm")
    if not constraint:
        return [Candidate("dcgm", NONE)]
    slug = question.os["repository"] if question.os else None
    rows = sorted(
        (row for row in tables.rows(DCGM_ROWS) if matches(row["version"], constraint)),
        key=lambda row: (int(major(row["version"])), slug in row["repositories"], version(row["version"])),
        reverse=True,
    )
    return [Candidate("dcgm", row["version"], row=row) for row in rows]


@rule("dcgm-driver-floor", "dcgm", "driver", sources=("G2", "G3"))
def dcgm_driver_floor(context: Context, dcgm: Dcgm, driver: Driver) -> str | None:
    """Refuse a driver that is older than the first one that DCGM runs on."""
    if dcgm.absent or at_least(driver.version, dcgm.row["min_driver"]):
        return None
    return f"DCGM {dcgm.version} needs driver {dcgm.row['min_driver']} or newer, not {driver.version}"


@rule("dcgm-driver-cuda", "dcgm", "driver", sources=("G1", "G9"))
def dcgm_driver_cuda(context: Context, dcgm: Dcgm, driver: Driver) -> str | None:
    """Refuse a DCGM without diagnostic plugins for the CUDA major of the driver."""
    if dcgm.absent or driver_cuda(driver) in dcgm.row["cuda"]:
        return None
    known = " and ".join(dcgm.row["cuda"])
    return f"DCGM {dcgm.version} has plugins for drivers of CUDA {known}, and driver {driver.version} is one of CUDA {driver_cuda(driver)}"


@rule("dcgm-os", "dcgm", "os", sources=("G2", "G5", "G6", "G7", "G8"))
def dcgm_os(context: Context, dcgm: Dcgm, os: System) -> str | None:
    """Refuse a DCGM that neither was seen in the distribution's repository nor is documented for it."""
    if dcgm.absent or os.row["repository"] in (*dcgm.row["repositories"], *dcgm.row["documented"]):
        return None
    return f"DCGM {dcgm.version} is not known to be in NVIDIA's repository for {os.version}"


def driver_cuda(driver: Driver) -> str:
    """Return the major of the CUDA whose user-mode driver a driver brings."""
    return major(driver.row["branch"]["cuda"])


def plugin_majors(tables: Tables, question: Question, driver: Driver) -> list[str]:
    """Return the CUDA majors whose plugins a host needs: the driver's, and the last that has code for each of its GPUs (G5, G9)."""
    floors = {major(row["version"]): row["min_cc"] for row in tables.rows("cuda")}
    own = driver_cuda(driver)
    last = {
        max((one for one, floor in floors.items() if at_least(gpu.row["compute_capability"], floor)), key=int)
        for gpu in question.gpus
    }
    return sorted({own, *(one for one in last if int(one) < int(own))}, key=int, reverse=True)


def _packages(question: Question, dcgm: Dcgm, majors: list[str]) -> list[Package]:
    """Return DCGM 3 in its one package; DCGM 4 with all that its guide installs, of which some packages only recommend others."""
    release = dcgm.row["rpm" if question.system["package_manager"] == "dnf" else "deb"]
    names = ["datacenter-gpu-manager"]
    if major(dcgm.version) != "3":
        ending = [f"{kind}{one}" for one in majors for kind in ("cuda", "proprietary-cuda")]
        names = [f"datacenter-gpu-manager-4-{one}" for one in ("core", "proprietary", *ending)]
    return [{"name": name, "version": release} for name in names]


def _result(tables: Tables, question: Question, host: Beside) -> Part:
    dcgm, driver = host.get("dcgm"), host.get("driver")
    if dcgm is None or driver is None:
        return {}
    majors = plugin_majors(tables, question, driver)
    return {"dcgm": {"version": dcgm.version, "cuda": majors, "packages": _packages(question, dcgm, majors)}}


def _warnings(tables: Tables, question: Question, dcgm: Dcgm, beside: Beside) -> list[str]:
    """Return the warning that no one saw the release in the host's repository, or not for its architecture."""
    slug, row = question.system["repository"], dcgm.row
    if slug not in row["repositories"]:
        return [
            f"DCGM {dcgm.version} was not seen in the repository {slug}, for which NVIDIA documents it; only in "
            f"{', '.join(row['repositories'])}"
        ]
    if question.arch == "aarch64" and slug not in row["aarch64"]:
        return [f"DCGM {dcgm.version} was seen in the repository {slug}, but not for aarch64"]
    return []


def _unknowns(question: Question, dcgm: Dcgm, beside: Beside) -> Iterator[str]:
    if "min_driver" in dcgm.row.get("unverified", ()):
        yield f"the first driver for DCGM {dcgm.version}; that of DCGM 3.1 was taken"


def _mistake(tables: Tables, question: Question) -> InputError | None:
    """Return the mistake that DCGM is asked for on a host without GPUs."""
    return InputError("key_without_gpu", "dcgm") if "dcgm" in question.constraints and not question.gpus else None


def _lines(tables: Tables) -> Iterator[tuple[object, ...]]:
    for row in reversed(tables.rows(DCGM_ROWS)):
        yield row["version"], row["released"] or "?", first_to_last(row["cuda"]), row["min_driver"]


KEY = Key(
    name="dcgm",
    docs=(
        "DCGM on the host, for its own tools and for role monitoring's exporter, which needs DCGM 4. For hosts with GPUs.",
        "Without it, role monitoring brings the exporter with the DCGM that NVIDIA's repository has.",
    ),
    sample='"4"',
    comment="role monitoring installs and holds it",
)

DCGM = Component(
    name="dcgm",
    form=Dcgm,
    keys=(KEY,),
    place="host",
    candidates=_dcgm,
    rules=rule,
    tables=(DCGM_ROWS,),
    warnings=_warnings,
    unknowns=_unknowns,
    result=_result,
    overview=Overview("DCGM", ("release", "its source since", "driver's CUDA", "first driver"), _lines),
    mistake=_mistake,
)
