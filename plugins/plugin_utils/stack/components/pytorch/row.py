# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a candidate of PyTorch holds: a build of a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from ...model import Candidate
from ...rows import Arch
from ...tables import Subject
from ...versions import at_least

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


TORCH = Subject("torch", TorchRow, TorchTable)


class TorchChoice(TorchBuild):
    """A build of PyTorch, with the release it belongs to; plain: taken from the general package index."""

    release: TorchRow
    plain: bool


Torch = Candidate[TorchChoice]


def bundled(torch: Torch) -> bool:
    """Return whether the wheel carries its CUDA libraries inside instead of depending on nvidia-* wheels."""
    return torch.variant == "cu118" and not at_least(torch.version, "2.1") or not at_least(torch.version, "1.13")
