# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each slot could hold, best first. A wish narrows this; rules.py judges the rest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal

from .interpreters import INTERPRETER, choices
from .kinds import Cupy, Driver, DriverRow, Horovod, Library, Origin, Python, Tensorflow, Toolkit, Torch, TorchChoice
from .model import NONE, ORDER, PLAIN, AnyCandidate, Candidate, Component, Problem, Slot
from .owner import left_drivers
from .rows import Accelerator, ArchiveRow, BranchRow, DistroRow, Flavour, LibraryRow, Source, SuiteRow
from .subjects import Transition
from .tables import Tables
from .versions import major, matches, minor, starts_with, version

if TYPE_CHECKING:
    from typing_extensions import Unpack

STATUS = ("supported", "unknown", "eol")
LONG_LIVED = ("LTSB", "PB")
SOURCES: tuple[Source, ...] = ("nvidia", "distribution")


def candidates(tables: Tables, problem: Problem, slot: Slot) -> list[AnyCandidate]:
    """Return every candidate for a slot that the wishes allow, the preferred first."""
    return MAKERS[slot.component](tables, problem)


def _wish(problem: Problem, name: str) -> str:
    return problem.wishes.get(name, "latest")


def _drivers(tables: Tables, problem: Problem) -> list[Driver]:
    wish, source = _wish(problem, "driver"), _wish(problem, "driver_source")
    if problem.owner:
        return left_drivers(tables, problem.owner, problem.wishes)
    found = _distribution_drivers(tables, problem) + _branch_drivers(tables, problem)
    found = [one for one in found if matches(one.version, wish) and source in ("latest", one.row["source"])]
    flavour = _wish(problem, "kernel_modules")
    found = [one for one in found if flavour in ("latest", one.row["kernel_modules"])]
    order: list[Source] = [*(problem.os["drivers"] if problem.os else SOURCES), "distribution", "nvidia", "runfile"]
    return sorted(found, key=lambda one: _driver_preference(one, order))


def _driver_preference(one: Driver, sources: list[Source]) -> tuple[int, bool, int, int, tuple[int, ...], int]:
    """Supported branches first, then production branches, newest first, then the distribution's taste, newest version, default flavour."""
    branch = one.row["branch"]
    return (
        _standing(one, sources[0]),
        branch["type"] not in LONG_LIVED,
        -branch["branch"],
        sources.index(one.row["source"]),
        tuple(-part for part in version(one.version).release),
        branch["kernel_modules"].index(one.row["kernel_modules"]),
    )


def _standing(one: Driver, first: Source) -> int:
    """Return the branch's status at NVIDIA; a distribution keeps its own driver alive, but is left to only where it is the first choice."""
    if one.row["source"] == "distribution":
        return 0 if first == "distribution" else len(STATUS)
    return STATUS.index(one.row["branch"]["status"])


def _driver(branch: BranchRow, number: str, source: Source, flavour: Flavour, **more: Unpack[Origin]) -> Driver:
    row: DriverRow = {"branch": branch, "source": source, "kernel_modules": flavour, **more}
    return Candidate("driver", number, f"{source}, {flavour} modules", row)


def _distribution_drivers(tables: Tables, problem: Problem) -> list[Driver]:
    """Drivers in the archive of the host's distribution; where one is insisted on, in all of them: a rule says why not."""
    os, insisted = problem.os, _wish(problem, "driver_source") == "distribution"
    rows = [row for row in tables.rows("archives") if os is None or insisted or in_archive_of(row, os)]
    return [one for row in rows for one in _archive_drivers(tables.branch(row["branch"]), row, problem)]


def in_archive_of(row: ArchiveRow | Transition, os: DistroRow) -> bool:
    """Return whether a row of the archives is about this distribution."""
    return (row["id"], row["version"]) == (os["id"], os["version"])


def _archive_drivers(branch: BranchRow, row: ArchiveRow, problem: Problem) -> list[Driver]:
    """Return what one archive has in the suites the host has enabled."""
    # A host that follows the release under another name (stable, a mirror's own) tells nothing.
    enabled = {suite["suite"] for suite in row["suites"]} & set(problem.suites or ())
    suites = [suite for suite in row["suites"] if not enabled or suite["suite"] in enabled]
    found = [
        # Only the newest version stays in an archive that is still updated: it is asked for by its branch.
        _driver(branch, suite["version"], "distribution", flavour, archive=row, suite=suite, moves=suite is suites[-1])
        for suite in suites
        for flavour in suite["kernel_modules"]
    ]
    return found + _unseen(problem, row, branch, found)


def _unseen(problem: Problem, row: ArchiveRow, branch: BranchRow, found: list[Driver]) -> list[Driver]:
    """A version of the archive's branch that the tables have not seen yet, when it is asked for by its full number."""
    wish = _wish(problem, "driver")
    if not wish[0].isdigit() or "." not in wish or not starts_with(wish, str(row["branch"])):
        return []
    if any(starts_with(one.version, wish) for one in found):
        return []
    suite: SuiteRow = {**row["suites"][-1], "version": wish, "revision": f"{wish}-*"}
    return [
        _driver(branch, wish, "distribution", flavour, archive=row, suite=suite, known=False, moves=False)
        for flavour in suite["kernel_modules"]
    ]


def _branch_drivers(tables: Tables, problem: Problem) -> list[Driver]:
    """Every branch NVIDIA publishes: at its newest known version that is wanted, or at the very version asked for."""
    wish = _wish(problem, "driver")
    source: Source = "runfile" if _wish(problem, "driver_source") == "runfile" else "nvidia"
    found = []
    for branch in tables.rows("drivers"):
        seen = known_versions(tables, branch)
        wanted = [number for number in seen if matches(number, wish)]
        if not wanted and wish[0].isdigit() and "." in wish and starts_with(wish, str(branch["branch"])):
            wanted = [wish]
        for number in wanted[-1:]:
            found += [
                _driver(branch, number, source, flavour, known=number in seen) for flavour in branch["kernel_modules"]
            ]
    return found


@cache
def _seen_versions(tables: Tables) -> dict[int, list[str]]:
    seen = {number for row in tables.rows("cuda") for number in row["updates"].values()}
    seen |= {row["latest"] for row in tables.rows("drivers") if row["latest"]}
    branches: dict[int, list[str]] = {}
    for number in sorted(seen, key=version):
        branches.setdefault(int(major(number)), []).append(number)
    return branches


def known_versions(tables: Tables, branch: BranchRow) -> list[str]:
    """Return the versions of a branch seen in any table, oldest first; the bare branch where none was."""
    return _seen_versions(tables).get(branch["branch"]) or [str(branch["branch"])]


def _torch(tables: Tables, problem: Problem) -> list[Torch]:
    """Builds for the host's accelerator; what the resolver may choose freely is best backed by verified values."""
    wish, tag = _wish(problem, "pytorch"), _wish(problem, "pytorch_index")
    found: list[Torch] = []
    for row in [row for row in reversed(tables.rows("torch")) if matches(row["version"], wish)]:
        for build in row["builds"]:
            names = (build["tag"], PLAIN) if build.get("default") else (build["tag"],)
            fits = (build["tag"] == "cpu") == (problem.accelerator == "cpu") or problem.permitted_build in names
            if tag in names or (tag == "latest" and fits):
                choice: TorchChoice = {**build, "release": row, "plain": tag == PLAIN}
                found.append(Candidate("pytorch", row["version"], build["tag"], choice))
    return sorted(found, key=_torch_preference)


def _torch_preference(one: Torch) -> tuple[bool, tuple[int, ...], bool, tuple[int, ...]]:
    """Verified first, then newest, then the build the release itself prefers, then the newest CUDA."""
    doubtful = bool({"tag", "sass", "cuda"} & set(one.row.get("unverified", ())))
    release = tuple(-part for part in version(one.version).release)
    cuda = tuple(-part for part in version(one.row.get("cuda") or "0").release)
    return (doubtful, release, not one.row.get("default", False), cuda)


def _tensorflow(tables: Tables, problem: Problem) -> list[Tensorflow]:
    wish = _wish(problem, "tensorflow")
    return [
        Candidate("tensorflow", release, row=row)
        for row in reversed(tables.rows("tensorflow"))
        for release in reversed(row["releases"])
        if matches(release, wish)
    ]


def _cupy(tables: Tables, problem: Problem) -> list[Cupy]:
    wish = _wish(problem, "cupy")
    found: list[Cupy] = [
        Candidate("cupy", release, package, {**row, "cuda": package[len("cupy-cuda") : -1]})
        for row in tables.rows("cupy")
        for package, releases in row["wheels"].items()
        for release in releases
        if matches(release, wish)
    ]
    return sorted(found, key=lambda one: (version(one.version), one.variant), reverse=True)


def _horovod(tables: Tables, problem: Problem) -> list[Horovod]:
    """Compiled for what the host computes on, or for processors where the user has PyTorch's build for them."""
    wish = _wish(problem, "horovod")
    targets: tuple[Accelerator, ...] = ("cuda",) if problem.accelerator == "cuda" else ("cpu",)
    targets = targets if problem.permitted_build != "cpu" else tuple(dict.fromkeys((*targets, "cpu")))
    return [
        Candidate("horovod", row["version"], target, {**row, "target": target})
        for target in targets
        for row in tables.rows("horovod")
        if matches(row["version"], wish)
    ]


def _pythons(tables: Tables, problem: Problem) -> list[Python]:
    wish = _wish(problem, "python")
    wish = minor(wish) if wish[0].isdigit() else wish
    found = choices(problem.os, _wish(problem, INTERPRETER))
    return [Candidate("python", number, row["source"], row) for number, row in found if matches(number, wish)]


def _cuda(tables: Tables, problem: Problem) -> list[Toolkit]:
    """Toolkits at their newest update, older updates only when asked for; no toolkit at all when nobody asks."""
    wish = problem.wishes.get("cuda")
    found: list[Toolkit] = [] if wish else [Candidate("cuda", NONE)]
    for row in reversed(tables.rows("cuda")):
        updates = list(row["updates"]) or [row["version"] + ".0"]
        allowed = [update for update in reversed(updates) if matches(update, wish or "latest")]
        found += [Candidate("cuda", update, row=row) for update in allowed[:1]]
    return found


def _cudnn(tables: Tables, problem: Problem) -> list[Library]:
    return _packaged("cudnn", tables.rows("cudnn"), problem)


def _nccl(tables: Tables, problem: Problem) -> list[Library]:
    return _packaged("nccl", tables.rows("nccl"), problem)


def _packaged(name: Literal["cudnn", "nccl"], rows: Sequence[LibraryRow], problem: Problem) -> list[Library]:
    """Candidates of a library that stands in the CUDA repository, what was seen in the host's own before the rest."""
    wish = problem.wishes.get(name)
    found: list[Library] = [] if wish else [Candidate(name, NONE)]
    slug = problem.os["repository"] if problem.os else None
    ordered = sorted(
        rows,
        key=lambda row: (slug in row["repositories"], version(row["version"]), version(row["cuda"])),
        reverse=True,
    )
    return found + [
        Candidate(name, row["version"], f"CUDA {row['cuda']}", row)
        for row in ordered
        if matches(row["version"], wish or "latest")
    ]


# The wishes each component looks at.
READS: dict[Component, tuple[str, ...]] = {
    **{name: (name,) for name in ORDER},
    "driver": ("driver", "driver_source", "kernel_modules"),
    "pytorch": ("pytorch", "pytorch_index"),
    "python": ("python", INTERPRETER),
}
MAKERS: dict[Component, Callable[[Tables, Problem], list[AnyCandidate]]] = {
    "driver": _drivers, "pytorch": _torch, "tensorflow": _tensorflow, "cupy": _cupy, "horovod": _horovod,
    "python": _pythons, "cuda": _cuda, "cudnn": _cudnn, "nccl": _nccl,
}  # fmt: skip
