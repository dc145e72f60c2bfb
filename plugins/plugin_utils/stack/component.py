# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a component: all that the resolver has to know of one part of a stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from .input_error import InputError
from .keys import Key
from .model import AnyCandidate, Part, Question
from .rows import Accelerator
from .rule import Rules
from .tables import Subject, Tables

# The line among its requirements that tells that a framework was compiled for NumPy 1, and would be given NumPy 2.
NUMPY_1 = "numpy<2"
# What else is planned in the same place, by component.
Beside = Mapping[str, AnyCandidate]
# On the host; in an environment because it was asked for; in every environment.
Place = Literal["host", "framework", "environment"]


class Site(NamedTuple):
    """The place of an environment: the packages that bring its interpreter, and where the host's toolkit lies."""

    interpreter: list[str]
    cuda_home: str | None


class Conda(NamedTuple):
    """The packages of a framework in conda's own channels."""

    channels: list[str]
    specs: list[str]


class Overview(NamedTuple):
    """A table of docs/stack.md about what can be planned: its lines, the newest first."""

    title: str
    columns: tuple[str, ...]
    lines: Callable[[Tables], Iterable[tuple[object, ...]]]


def first_to_last(versions: Sequence[str]) -> str:
    """Return a range of versions as documentation writes it."""
    return f"{versions[0]} – {versions[-1]}"


@dataclass(frozen=True, eq=False)
class Component:
    """One part of a stack that is chosen; compared by identity.

    name: its slot, and the constraint on its version. keys: what can be asked for, its version first. place: where it goes.
    form: the type of its candidates, which rules name. candidates: what its slot could hold as far as the constraints allow, the
    preferred first. tables: its own. rules: those that it owns; a rule about two components belongs to the one that depends on the other.

    default: whether it is planned where no framework is asked for. beside: the frameworks it is made for, one of
    which it is installed with. required: whether it is never left out where there is a slot for it. uses: what it may ask for
    on the host.

    reason: why a candidate was chosen; without one, that it was asked for or who needs it. warnings: what to keep an eye
    on. unknowns: limits of a candidate that were not verified; system: columns of a distribution's row that its rules look
    at.

    result: the parts of the stack that the host's make; repository: whether they come from NVIDIA's repository.
    requirements: the wheels of a framework, with what else is in its environment and on the host; details: what else the environment has
    from it; conda: how conda has it, where it does; module: what is imported. size: MiB that it takes once installed, by accelerator, rounded up.
    overview: what documentation shows of its tables.

    published: whether all its versions are in the tables, so that a constraint that none fits is a mistake. mistake: what else
    of the constraints is one. missing: why nothing fits the constraints. installable: whether a candidate was seen where the host
    would get it from. verified: whether it may be chosen unasked. ended: how far past its support a candidate is, which is proposed only
    where nothing before it works. identity: what tells candidates of one version and
    variant apart.
    """

    name: str
    form: Any
    keys: tuple[Key, ...]
    place: Place
    candidates: Callable[[Tables, Question], list[AnyCandidate]]
    rules: Rules
    tables: tuple[Subject[Any, Any], ...] = ()
    default: bool = False
    beside: tuple[str, ...] = ()
    required: bool = False
    uses: tuple[str, ...] = ()
    reason: Callable[[Tables, Question, AnyCandidate], str] | None = None
    warnings: Callable[[Tables, Question, AnyCandidate, Beside], list[str]] = lambda tables, question, one, beside: []
    unknowns: Callable[[Question, AnyCandidate, Beside], Iterable[str]] = lambda question, one, beside: ()
    system: tuple[str, ...] = ()
    result: Callable[[Tables, Question, Beside], Part] = lambda tables, question, host: {}
    repository: Callable[[Question, AnyCandidate], bool] = lambda question, one: True
    requirements: Callable[[Tables, Question, AnyCandidate, Beside], list[str]] = lambda tables, question, one, beside: []
    details: Callable[[Tables, Question, Beside, Site], Part] = lambda tables, question, beside, site: {}
    conda: Callable[[Tables, Question, AnyCandidate], Conda | None] = lambda tables, question, one: None
    module: str = ""
    size: Mapping[Accelerator, int] | None = None
    overview: Overview | None = None
    published: bool = True
    mistake: Callable[[Tables, Question], InputError | None] = lambda tables, question: None
    missing: Callable[[Tables, Question], str | None] = lambda tables, question: None
    installable: Callable[[Tables, Question, AnyCandidate], bool] = lambda tables, question, one: True
    verified: Callable[[AnyCandidate], bool] = lambda one: True
    ended: Callable[[AnyCandidate], int] = lambda one: 0
    identity: Callable[[AnyCandidate], tuple[object, ...]] = lambda one: ()

    @property
    def framework(self) -> bool:
        """Return True if it is planned in the environments that ask for it."""
        return self.place == "framework"

    @property
    def rank(self) -> tuple[int, bool]:
        """Return the sort key for listings: frameworks first, then the host, then what lives next to a framework."""
        return (2 if self.beside else int(not self.framework), not self.default)

    @property
    def builds(self) -> bool:
        """Return True if a label of its version names what a key permits."""
        return self.keys[0].label is not None and any(key.permits for key in self.keys)

    @property
    def reads(self) -> tuple[str, ...]:
        """The constraints that its candidates depend on."""
        return tuple(key.name for key in self.keys)
