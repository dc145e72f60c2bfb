# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock of a plan, which people edit and merge: the keys that everything reads have to be there.

field() takes away the default that the field of the same name has in a plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from . import stack


class DriverSource(Enum):
    """The origins of a driver."""

    NVIDIA, DISTRIBUTION, RUNFILE, VENDOR = "nvidia", "distribution", "runfile", "vendor"


class InterpreterSource(Enum):
    """The origins of an interpreter."""

    DISTRIBUTION, STANDALONE, CONDA, PATH = "distribution", "standalone", "conda", "path"


@dataclass(frozen=True, kw_only=True)
class System(stack.System):
    """The operating system of a locked stack."""

    id: str = field()
    version: str = field()
    arch: str = field()


@dataclass(frozen=True, kw_only=True)
class Gpus(stack.Gpus):
    """GPUs of one model of a locked stack."""

    model: str = field()
    count: int = field()


@dataclass(frozen=True, kw_only=True)
class Driver(stack.Driver):
    """The driver of a locked stack."""

    version: str | None = field()
    source: DriverSource = field()  # type: ignore[assignment]
    branch: str = field()
    kernel_modules: str = field()


@dataclass(frozen=True, kw_only=True)
class Toolkit(stack.Toolkit):
    """The CUDA toolkit of a locked stack."""

    version: str = field()


@dataclass(frozen=True, kw_only=True)
class Component(stack.Component):
    """A packaged component of a locked stack."""

    version: str = field()


@dataclass(frozen=True, kw_only=True)
class Interpreter(stack.Interpreter):
    """The interpreter of a locked environment."""

    source: InterpreterSource = field()  # type: ignore[assignment]
    path: str | None = field()


@dataclass(frozen=True, kw_only=True)
class Environment(stack.Environment):
    """An environment of a locked stack; a lock of an older collection has no interpreter."""

    python: str = field()
    requirements: tuple[str, ...] = field()
    index: stack.Index | None = field()
    frameworks: dict[str, str] = field()
    interpreter: Interpreter | None = None


@dataclass(frozen=True)
class Disk:
    """The room that a part of the stack takes on a file system."""

    directory: str
    part: str
    mib: int
    component: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Repository:
    """The repository of the driver's packages."""

    key_fingerprint: str | None = None
    retired_keys: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Stack(stack.Stack):
    """A locked stack."""

    kind: str
    os: System = field()
    gpus: tuple[Gpus, ...] = field()
    driver: Driver | None = field()
    cuda: Toolkit | None = None
    cudnn: Component | None = None
    nccl: Component | None = None
    dcgm: Component | None = None
    environments: tuple[Environment, ...] = field()
    reasons: tuple[stack.Reason, ...] = field()
    warnings: tuple[str, ...] = field()
    disk_mib: tuple[Disk, ...] = ()
    repository: Repository | None = None
    published: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Entry:
    """A kind of host: what was asked and of which host, and its stack."""

    inputs: dict[str, Any]
    stack: Stack


@dataclass(frozen=True)
class Lock:
    """The file's one variable."""

    entries: tuple[Entry, ...]
