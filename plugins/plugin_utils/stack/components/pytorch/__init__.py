# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""PyTorch: its releases, and the builds of each."""

from __future__ import annotations

from collections.abc import Iterator

from ...component import NUMPY_1, Beside, Component, Conda, Overview, Site, first_to_last
from ...input_error import InputError, nearest
from ...keys import Key, variant_of
from ...model import PLAIN, Candidate, Part, Question
from ...tables import Tables
from ...versions import at_least, label_of, matches, version
from .row import TORCH, Torch, TorchChoice, takes_numpy_2
from .rules import rule

# Columns of a build without which it is not known that it can be installed and runs.
NEEDED = {"tag", "sass", "cuda"}


def _torch(tables: Tables, question: Question) -> list[Torch]:
    """Builds for the host's accelerator; what the resolver may choose freely is best backed by verified values."""
    constraint, tag = question.constraint("pytorch"), question.constraint("pytorch_index")
    found: list[Torch] = []
    for row in reversed(tables.rows(TORCH)):
        for build in [one for one in row["builds"] if matches(f"{row['version']}+{one['tag']}", constraint)]:
            names = (build["tag"], PLAIN) if build.get("default") else (build["tag"],)
            fits = (build["tag"] == "cpu") == (question.accelerator == "cpu") or question.permitted_build in names
            if tag in names or (tag == "latest" and fits):
                choice: TorchChoice = {**build, "release": row, "plain": tag == PLAIN}
                found.append(Candidate("pytorch", row["version"], build["tag"], choice))
    return sorted(found, key=_torch_preference)


def _torch_preference(one: Torch) -> tuple[bool, tuple[int, ...], bool, tuple[int, ...]]:
    """Verified first, then newest, then the build the release itself prefers, then the newest CUDA."""
    doubtful = not _is_verified(one)
    release = tuple(-part for part in version(one.version).release)
    cuda = tuple(-part for part in version(one.row.get("cuda") or "0").release)
    return (doubtful, release, not one.row.get("default", False), cuda)


def _reason(tables: Tables, question: Question, one: Torch) -> str:
    why = question.asked("pytorch") or "newest release with verified wheels that fits"
    if one.variant == "cpu":
        return f"{why}; CPU build" + (", as the host has no GPU" if question.accelerator == "cpu" else "")
    build = f"build {one.variant}" + (", which the general package index has," if one.row["plain"] else "")
    return f"{why}; {build} runs from driver {tables.driver_floor(one.row['cuda'])} on"


KEYS = (
    Key(
        name="pytorch",
        docs=(
            "PyTorch; V(none) leaves it out.",
            "A build can be named with its release, as in V(2.7.1+cu118).",
        ),
        sample='">=2.4,<2.9"',
        comment="none leaves it out; 2.7.1+cu118 names a build, too",
        label=variant_of,
    ),
    Key(
        name="pytorch_index",
        docs=(
            "Build of PyTorch by the name of its wheel index, such as V(cu126) or V(cpu).",
            "V(pypi) is the build that the general package index itself has, for sites with a mirror of that index only.",
        ),
        sample="cu126",
        comment="cpu; pypi for the build that the general package index has",
        free=True,
        shown=variant_of,
        order=lambda one: (version(one.row.get("cuda") or "0"),),
        exact=True,
        permits=True,
    ),
)


def _is_verified(one: Torch) -> bool:
    return not NEEDED & set(one.row.get("unverified", ()))


def _mistake(tables: Tables, question: Question) -> InputError | None:
    """Return the mistake that there is no such build."""
    tag, never = question.constraints.get("pytorch_index"), tables.beside(TORCH)["never_existing_tags"]
    known = dict.fromkeys(build["tag"] for row in tables.rows(TORCH) for build in row["builds"])
    if tag and tag != PLAIN and tag not in known and tag not in never:
        return InputError("unknown_version", "pytorch_index", value=tag, nearest=nearest(tag, [*known, PLAIN]))
    return None


def _missing(tables: Tables, question: Question) -> str | None:
    """Return the sentence about the builds that there are instead."""
    tag, never = question.constraints.get("pytorch_index"), tables.beside(TORCH)["never_existing_tags"]
    if not tag:
        return None
    free = _torch(tables, question.without_constraints("pytorch_index"))
    have = ", ".join(dict.fromkeys(one.variant for one in free)) or "none"
    label = label_of(question.constraints.get("pytorch", ""))
    if label:
        return f"pytorch {question.constraints['pytorch']} names the build {label}, and pytorch_index the build {tag}"
    if tag in never:
        return f"PyTorch never had an index {tag}; the builds are {have}"
    return f"PyTorch {question.constraints.get('pytorch', '')} has no build {tag}; its builds are {have}"


def _details(tables: Tables, question: Question, beside: Beside, site: Site) -> Part:
    torch = beside["pytorch"]
    computes = {"accelerator": "cpu"} if torch.variant == "cpu" else {}
    return {"index": _index(tables, torch), "libraries": _libraries(torch), **computes}


def _index(tables: Tables, torch: Torch) -> Part | None:
    if torch.row["plain"]:
        return None
    return {"name": torch.variant, "url": tables.beside(TORCH)["index_url"] + torch.variant}


def _libraries(torch: Torch) -> Part | None:
    """The CUDA, cuDNN and NCCL that PyTorch's build brings, as far as they were verified."""
    if torch.variant == "cpu":
        return None
    row, doubtful = torch.row, torch.row.get("unverified", ())
    known = {"cuda": row.get("cuda"), "cudnn": row.get("cudnn"), "nccl": row.get("nccl")}
    return {name: None if name in doubtful else value for name, value in known.items()}


def _conda(tables: Tables, question: Question, torch: Torch) -> Conda | None:
    """Return the channels and specifications of a build in conda; None where conda's channels do not carry it."""
    for row in () if torch.row["plain"] else tables.rows("conda"):
        between = at_least(torch.version, row["first"]) and at_least(row["last"], torch.version)
        if between and torch.variant in row["builds"] and question.arch in row["arch"]:
            return Conda(list(row["channels"]), [f"{row['package']}={torch.version}", row["builds"][torch.variant]])
    return None


def _lines(tables: Tables) -> Iterator[tuple[object, ...]]:
    for row in reversed(tables.rows(TORCH)):
        builds = ", ".join(build["tag"] for build in row["builds"])
        beside = (row.get("torchvision", "?"), row.get("torchaudio", "?"))
        yield row["version"], row.get("released", "?"), first_to_last(row["python"]), builds, *beside


PYTORCH = Component(
    name="pytorch",
    form=Torch,
    keys=KEYS,
    place="framework",
    candidates=_torch,
    rules=rule,
    tables=(TORCH,),
    default=True,
    reason=_reason,
    system=("glibc",),
    requirements=lambda tables, question, one, beside: [
        f"torch=={one.version}",
        *([] if takes_numpy_2(tables, one) else [NUMPY_1]),
    ],
    details=_details,
    conda=_conda,
    module="torch",
    size={"cuda": 8000, "cpu": 1500},
    overview=Overview("PyTorch", ("release", "released", "Python", "builds", "torchvision", "torchaudio"), _lines),
    mistake=_mistake,
    missing=_missing,
    installable=lambda tables, question, one: _is_verified(one),
    verified=_is_verified,
    identity=lambda one: (one.row.get("plain"),),
)
