# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The resolver's model: a question (facts and constraints), slots to fill, and candidates for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from .rows import Accelerator, Arch, DistroRow, GpuRow, Service
from .versions import major

# What is not chosen, and is judged like what is.
FACTS = ("os", "arch", "gpus", "ansible_core", "kernels", "compiler", "mig")
# The name of a component, or of a fact.
Kind = str
Environments = Literal["one", "split"]
NONE = "none"

RowT_co = TypeVar("RowT_co", covariant=True)


@dataclass(frozen=True, eq=False)
class Candidate(Generic[RowT_co]):
    """One possible value of a component. Compared by identity, for speed.

    row: the row of the tables behind it, in the form that its component names; nothing stands behind
    a component that is absent, nor behind those whose version says everything.
    """

    component: Kind
    version: str
    variant: str = ""
    row: RowT_co = field(default=None, repr=False)  # type: ignore[assignment]

    def __str__(self) -> str:
        return f"{self.component} {self.version}" + (f" ({self.variant})" if self.variant else "")

    @property
    def absent(self) -> bool:
        return self.version == NONE


AnyCandidate = Candidate[Any]


class Slot(NamedTuple):
    """A component to decide, in one environment or (empty) for the whole host."""

    component: str
    environment: str = ""


# The word for the build that the general package index serves, where a wheel index is named.
PLAIN = "pypi"

# What fills each slot, and what is made of it for the stack, whose shape documents/stack.py says.
Solution = Mapping[Slot, AnyCandidate]
Part = dict[str, Any]
# The slots' own word for the environment that all frameworks share, whatever it is called.
SHARED = "main"


@dataclass(frozen=True)
class Gpu:
    """The GPUs of one model in a host."""

    row: GpuRow = field(compare=False)
    model: str
    count: int


class Owner(NamedTuple):
    """The owner of a host's driver, if that is another one, and the installed version."""

    name: str
    version: str | None = None
    kernel_modules: str | None = None


@dataclass(frozen=True)
class Question:
    """Facts of a host and the constraints of its user; explain.py takes parts of both away.

    Six things are decided once from the whole question, so that taking a fact away while looking for the smallest
    conflict leaves the rest of the question as it was: accelerator, has_driver, own_compiler (whether what is compiled is
    compiled by the distribution's g++), forward_compat (whether every GPU may
    run the cuda-compat package), permitted_build (the build of
    PyTorch that is asked for: it may be one that would not be taken unasked, such as the CPU's on a host with GPUs) and
    fabric (the services that GPUs behind NVSwitches need); owner is a fact that is never taken away. wheels: the
    architecture wheels are looked at for, None where any would do; bare_environment: whether there is an environment
    when no framework asks for one; environment_name: what the one environment for all frameworks is called.
    """

    os: DistroRow | None
    arch: Arch | None
    gpus: tuple[Gpu, ...]
    constraints: Mapping[str, str]
    frameworks: tuple[str, ...]
    environments: Environments
    accelerator: Accelerator
    has_driver: bool
    forward_compat: bool = False
    wheels: Arch | None = "x86_64"
    permitted_build: str | None = None
    ansible_core: str | None = None
    suites: tuple[str, ...] | None = None
    fabric: frozenset[Service] = frozenset()
    owner: Owner | None = None
    bare_environment: bool = False
    own_compiler: bool = True
    environment_name: str = SHARED
    kernels: tuple[str, ...] = ()  # that the module is built for, as far as some driver does not build on them

    def constraint(self, name: str) -> str:
        """Return the constraint that is asked for; latest where nothing is."""
        return self.constraints.get(name, "latest")

    def asked(self, name: str) -> str:
        """Return the constraint that was asked for as words; nothing where it was not."""
        return f"asked for as {self.constraints[name]}" if name in self.constraints else ""

    def without_constraints(self, *names: str) -> Question:
        """Return the question without some of its constraints."""
        return replace(self, constraints={k: v for k, v in self.constraints.items() if k not in names})

    @property
    def system(self) -> DistroRow:
        """The operating system of a question that is a user's own, not a part of one."""
        if self.os is None:
            raise ValueError("the operating system has been taken away from this question")
        return self.os

    @property
    def machine(self) -> Arch:
        """Return the architecture of a question that is a user's own, not a part of one."""
        if self.arch is None:
            raise ValueError("the architecture has been taken away from this question")
        return self.arch

    def facts(self) -> dict[Kind, list[AnyCandidate]]:
        """Return the facts as candidates of their own kind, so that rules treat facts and choices alike."""
        facts: dict[Kind, list[AnyCandidate]] = {}
        facts["gpus"] = [Candidate("gpus", gpu.model, row=gpu.row) for gpu in self.gpus]
        if self.os:
            facts["os"] = [Candidate("os", f"{self.os['id']} {self.os['version']}", row=self.os)]
        if self.arch:
            facts["arch"] = [Candidate("arch", self.arch)]
        if self.ansible_core:
            facts["ansible_core"] = [Candidate("ansible_core", self.ansible_core)]
        declared = [self.constraints["kernel"]] if "kernel" in self.constraints else []
        facts["kernels"] = [Candidate("kernels", release) for release in dict.fromkeys((*self.kernels, *declared))]
        facts["mig"] = [Candidate("mig", self.constraints["mig"])] if "mig" in self.constraints else []
        facts["compiler"] = [self.compiler] if self.compiler else []
        return facts

    @property
    def compiler(self) -> AnyCandidate | None:
        """The g++ that the host compiles with: what is declared, else the distribution's, which its variant names."""
        if "gcc" in self.constraints:
            return Candidate("compiler", major(self.constraints["gcc"]))
        if not self.own_compiler or self.os is None or self.os["gcc"] is None:
            return None
        return Candidate("compiler", self.os["gcc"], f"{self.os['id']} {self.os['version']}")
