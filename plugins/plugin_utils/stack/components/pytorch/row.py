# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a candidate of PyTorch: a build of a release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypedDict

from ...libraries import SpecifierSet
from ...model import Candidate
from ...rows import Arch
from ...rule import Doubt
from ...tables import Subject, Tables
from ...versions import at_least, meet
from ...wording import listed

if TYPE_CHECKING:
    from typing_extensions import NotRequired


class TorchBuild(TypedDict):
    """A wheel of a PyTorch release; the one for CPUs has its tag only.

    nvshmem: None where it is not known, absent where PyTorch does not require it.
    """

    tag: str
    cuda: NotRequired[str]
    cudnn: NotRequired[str | None]
    nccl: NotRequired[str | None]
    nvshmem: NotRequired[str | None]
    sass: NotRequired[list[str] | None]
    ptx: NotRequired[str | None]
    default: NotRequired[bool]
    unverified: NotRequired[list[str]]


class TorchRow(TypedDict):
    """glibc: None where the wheels' tag does not tell it; torchvision and torchaudio: the newest that take this very release."""

    version: str
    released: NotRequired[str]
    python: list[str]
    glibc: str | None
    platforms: NotRequired[dict[Arch, str]]
    torchvision: NotRequired[str]
    torchaudio: NotRequired[str]
    builds: list[TorchBuild]


class TorchTable(TypedDict):
    index_url: str
    never_existing_tags: list[str]
    aarch64_sass: dict[str, list[str]]
    plain_aarch64_first: str
    numpy_2_first: str


TORCH = Subject("torch", TorchRow, TorchTable)


class TorchChoice(TorchBuild):
    """A build of PyTorch, with the release it belongs to; plain: taken from the general package index."""

    release: TorchRow
    plain: bool


Torch = Candidate[TorchChoice]


Library = Literal["cudnn", "nccl"]
# What PyTorch's wheels pin of NVIDIA's, as far as others require it, too.
LIBRARIES: dict[Library, str] = {"cudnn": "cuDNN", "nccl": "NCCL"}


def pins_reason(torch: Torch, wanted: Mapping[Library, str], name: str) -> str | None:
    """Return the reason why a build's pins differ from these ranges, by library, of a package next to it; a pin no one saw is doubted."""
    build, unknown = f"PyTorch {torch.version}+{torch.variant}", []
    for library, limits in wanted.items():
        have = torch.row.get(library)
        if have is None:
            unknown.append(LIBRARIES[library])
        elif not SpecifierSet(limits).contains(have):
            return f"{build} pins {library} {have}, {name} needs {limits}"
    return Doubt(f"the {listed(unknown)} of {build}, which {name} limits") if unknown else None


def takes_numpy_2(tables: Tables, torch: Torch) -> bool:
    """Return True if the wheels of a release are compiled for NumPy 2; what its metadata says of NumPy is nothing."""
    return at_least(torch.version, tables.beside(TORCH)["numpy_2_first"])


def numpy_reason(tables: Tables, torch: Torch, wanted: str, name: str) -> str | None:
    """Return the reason why what needs this range of NumPy does not go with a PyTorch."""
    if takes_numpy_2(tables, torch) or meet("<2", wanted):
        return None
    return f"PyTorch {torch.version} is compiled for NumPy 1, {name} needs NumPy {wanted}"


def bundled(torch: Torch) -> bool:
    """Return True if the wheel carries its CUDA libraries inside instead of depending on nvidia-* wheels."""
    return torch.variant == "cu118" and not at_least(torch.version, "2.1") or not at_least(torch.version, "1.13")
