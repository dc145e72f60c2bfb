# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Everything the resolver chooses. What comes first is decided first and gets its newest version first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..component import Component
from ..keys import Key
from ..rule import Rule
from ..versions import label_of
from .container_toolkit import CONTAINER_TOOLKIT
from .cuda import CUDA
from .cudnn import CUDNN
from .cupy import CUPY
from .dcgm import DCGM
from .deepspeed import DEEPSPEED
from .driver import DRIVER
from .flash_attn import FLASH_ATTN
from .horovod import HOROVOD
from .jax import JAX
from .lightning import LIGHTNING
from .nccl import NCCL
from .nvshmem import NVSHMEM
from .python import PYTHON
from .pytorch import PYTORCH
from .tensorflow import TENSORFLOW
from .transformer_engine import TRANSFORMER_ENGINE
from .triton import TRITON
from .vllm import VLLM

COMPONENTS: tuple[Component, ...] = (
    DRIVER, HOROVOD, TENSORFLOW, PYTORCH, VLLM, LIGHTNING, DEEPSPEED, TRITON, FLASH_ATTN,
    TRANSFORMER_ENGINE, CUPY, JAX, NVSHMEM, PYTHON, CUDA, CUDNN, NCCL, DCGM, CONTAINER_TOOLKIT,
)  # fmt: skip
_BY_NAME = {component.name: component for component in COMPONENTS}
_BY_KEY = {key.name: (component, key) for component in COMPONENTS for key in component.keys}
# The same, in the order they are told to people.
TOLD = sorted(COMPONENTS, key=lambda component: component.rank)
RULES: tuple[Rule, ...] = tuple(rule for component in TOLD for rule in component.rules)
# The names of the frameworks, the default first, and those of what lives in environments of its own.
FRAMEWORKS = tuple(component.name for component in TOLD if component.framework)
ALONE = tuple(component.name for component in TOLD if component.framework and not component.beside)
DEFAULT = FRAMEWORKS[0]
# What a stack can be without.
OPTIONAL = frozenset(component.name for component in COMPONENTS if not component.required)


def component(name: str) -> Component:
    """Return the component of this name; raise KeyError where there is none."""
    return _BY_NAME[name]


def key_of(name: str) -> tuple[Component, Key]:
    """Return the component and the key of a constraint, by its name; raise KeyError where there is none."""
    return _BY_KEY[name]


def homeless(frameworks: Iterable[str]) -> list[str]:
    """Return the frameworks without any of those that they are installed with."""
    planned = set(frameworks)
    return [
        name for name in FRAMEWORKS if name in planned and not planned.intersection(component(name).beside or planned)
    ]


def is_brought(constraints: Iterable[str]) -> bool:
    """Return True if these constraints have the default framework planned only where another one is installed with it."""
    return set(component(DEFAULT).reads).isdisjoint(constraints) and not set(ALONE).isdisjoint(constraints)


def permitted_build(constraints: Mapping[str, str]) -> str | None:
    """Return the build that these constraints name, which may be one that would not be taken unasked; None where they name none."""
    named = {name: value for name, value in constraints.items() if name in _BY_KEY}
    builds = [value for name, value in named.items() if key_of(name)[1].permits]
    labels = [
        label_of(value) for name, value in named.items() if key_of(name)[0].builds and name == key_of(name)[0].name
    ]
    return next(filter(None, [*builds, *labels]), None)


def place(name: str) -> int:
    """Return where a component stands in the order of deciding."""
    return COMPONENTS.index(_BY_NAME[name])
