# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The record of a settings subject: everything that planning, roles, checks and reports loop over."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..documents.comparison import Comparison, Remedy, compared
from ..problems import text
from ..problems.problem import Problem
from ..problems.sentence import Sentence
from ..problems.sentences import SENTENCES


@dataclass(frozen=True)
class Node:
    """A node, as far as subjects look at one.

    variables: its own, resolved; facts: as measured; others: of other nodes, what a subject reads of them, by name; groups: of the
    inventory; boot: files of a role that apply a setting again at boot.
    """

    name: str
    variables: Mapping[str, Any]
    facts: Mapping[str, Any] = field(default_factory=dict)
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    groups: Mapping[str, Iterable[str]] = field(default_factory=dict)
    boot: Sequence[Mapping[str, Any]] = ()

    @property
    def known(self) -> dict[str, Mapping[str, Any]]:
        """Return variables and facts of this node and of the others that are not left out, by name."""
        # A copy would template every variable of the host, no matter whose it is.
        own = ChainMap({"ansible_facts": self.facts}, self.variables)  # type: ignore[arg-type]
        return {**self.others, self.name: own}

    def has_record(self, name: str) -> bool:
        """Return True if what was there before the first change of a role is recorded on the node, to be put back."""
        return name in (self.state.get("records") or ())

    @property
    def state(self) -> Mapping[str, Any]:
        """Return the fact gpu_node_state."""
        return self.facts.get("gpu_node_state") or {}


@dataclass(frozen=True)
class Decision:
    """The state that a node is to be brought to.

    options: of the module that applies it; None where problems forbid it. packages: what it needs installed first. notes: sentences
    for the user. applies: whether there is anything for this subject on the node.
    """

    options: Mapping[str, Any] | None = None
    problems: tuple[Problem, ...] = ()
    packages: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    applies: bool = True


def no_problems(variables: Mapping[str, Any]) -> Iterable[Problem]:
    """Return no problems, for a subject all of whose values can be meant."""
    return ()


@dataclass(frozen=True, eq=False)
class Subject:
    """One thing that a role sets on a node; compared by identity.

    name: the role's, and the component of its comparisons. defaults: its variables with the role's defaults. on: states of the role in
    which there is something to measure. compare: what is asked for with what is there, for all states of the role.

    problems: what cannot be meant of the variables given, of which some may be missing; no fact is needed. misfits: what of a node's
    variables does not fit its facts, as far as Ansible has gathered them, or the inventory. members: groups whose hosts it is for.
    units: its services, which nodes tell the state of. reads: further variables that it reads; reads_of_others: paths of variables and
    facts that it reads of the hosts of its groups. sentences: by the codes of its problems.

    facts: the module that measures it; question: that module's options; probed: when it also tries what only a trial tells, before a
    change or in a verification; applied_by: the module that applies it; options: of that
    module, which name its record; decide: its other options; refusal: how the sentence begins that refuses.
    """

    name: str
    defaults: Mapping[str, Any]
    compare: Callable[[Node], list[Comparison]]
    on: tuple[str, ...] = ("present",)
    problems: Callable[[Mapping[str, Any]], Iterable[Problem]] = no_problems
    misfits: Callable[[Node], Iterable[Problem]] | None = None
    members: tuple[str, ...] = ("gpu_nodes",)
    units: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    reads_of_others: tuple[str, ...] = ()
    sentences: Mapping[str, Sentence] = field(default_factory=dict)
    facts: str = ""
    question: Callable[[Mapping[str, Any]], dict[str, Any]] = lambda variables: {}
    probed: Literal["apply", "verify", ""] = ""
    applied_by: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    decide: Callable[[Node], Decision] = lambda node: Decision()
    refusal: str = ""

    @property
    def switch(self) -> str:
        """Return the variable that says whether it is present."""
        return next(name for name in self.defaults if name.endswith("_state"))

    def comparisons(self, node: Node) -> list[Comparison]:
        """Return every comparison of a node. What the role refuses is not as planned, whatever is there."""
        found = self.compare(node)
        if not self.applied_by or node.variables.get(self.switch) not in self.on or any(one.differs for one in found):
            return found
        refused = self.decide(node).problems
        if not refused:
            return found
        reasons = "refused: " + text.describe_all(refused, {**SENTENCES, **self.sentences}).rstrip(".")
        return [*found, compared(self.name, self.name, "as declared", reasons, False, Remedy.APPLY, "request")]

    def asked(self, variables: Mapping[str, Any], purpose: str) -> dict[str, Any]:
        """Return the options of the module that measures it. purpose: apply or verify."""
        return {**self.question(variables), **({"probe": True} if self.probed == purpose else {})}

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the variables of a node that it reads."""
        of_others = (path for path in self.reads_of_others if "." not in path)
        return tuple(dict.fromkeys([*self.defaults, *self.reads, *of_others]))

    def hosts(self, groups: Mapping[str, Iterable[str]]) -> list[str]:
        """Return the hosts of the inventory that it is for."""
        return list(dict.fromkeys(host for group in self.members for host in groups.get(group) or ()))
