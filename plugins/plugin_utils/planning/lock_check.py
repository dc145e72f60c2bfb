# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock against the inventory, without a host: whether what stands there is what the inventory asks for."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..problems.phrases import clean
from ..problems.problem import Problem, ProblemError
from ..stack.explain import conflict_line
from ..stack.resolve import choose, refuse
from ..stack.tables import Tables, load
from ..subjects.sentences import describe_all
from .lock import LockError, changes, differences, entry_for, nearest_entry, read
from .plan import question_of, questions_of
from .published import with_locked

Entry = Mapping
WIDTH = 72  # what is left of 80 columns without the indentation of Ansible's output


@dataclass(frozen=True)
class Verdict:
    """The state of a lock for some nodes: changed inputs, changed parts of the stack, and why no stack fits."""

    hosts: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Return True if the lock has what the inventory asks for."""
        return not (self.inputs or self.parts or self.refused)


def check_lock(
    hosts: Mapping[str, Mapping], version: str, path: str, renew: bool = False, tables: Tables | None = None
) -> list[Verdict]:
    """Return a verdict for each kind of host; raise LockError for a lock that is not there or cannot be read.

    hosts: variables by name, of which neither facts nor gpu_stack_host need to be there: what a host is then stands in the lock;
    version: the running ansible-core; renew: whether what the tables would choose by now counts, too
    """
    tables, entries = tables or load(), read(path)
    if entries is None:
        raise LockError(Problem("lock_missing", path))
    found = []
    for question, names in questions_of(hosts, version):
        try:
            told = _verdict(question, entries, renew, tables)
        except ProblemError as error:
            told = Verdict((), refused=(describe_all(error.problems),))
        found.append(Verdict(tuple(names), told.inputs, told.parts, told.refused))
    return sorted(found, key=lambda one: one.hosts)


def _verdict(question: Mapping, entries: Sequence[Entry], renew: bool, tables: Tables) -> Verdict:
    if question["os"]:
        return _against(question, entries, renew, tables)
    # Archives, kernels and switches of such a host are not in the lock: what the tables would choose by now is not known.
    verdicts = [_against(question_of(entry, question), [entry], False, tables) for entry in entries]
    return min(
        verdicts, key=lambda one: (len(one.refused), len(one.inputs)), default=Verdict((), ("it has no entries",))
    )


def _against(question: Mapping, entries: Sequence[Entry], renew: bool, tables: Tables) -> Verdict:
    """Return the verdict on an inventory that says what the host is, judged by these entries."""
    tables = with_locked(tables, entries)
    stack, inputs = choose(question, tables)
    entry = entry_for(entries, inputs)
    if entry is not None and not renew:
        return Verdict(())
    if stack is None:
        return Verdict((), refused=tuple(conflict_line(one) for one in refuse(question, tables)["conflicts"]))
    if not entries:
        return Verdict((), ("it has no entries",))
    nearest = entry or nearest_entry(entries, inputs)
    return Verdict((), tuple(changes(nearest, inputs)), tuple(differences(nearest, stack)))


def lines(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the lines of a changelog of what does not fit: what is asked for now, then what that changes."""
    told = []
    for one in verdicts:
        if not one.fits:
            told += _wrapped(f"{', '.join(one.hosts)}:", "")
            told += [line for text in (*one.inputs, *one.parts, *one.refused) for line in _wrapped(text, "- ")]
    return told


def _wrapped(text: str, bullet: str) -> list[str]:
    return textwrap.wrap(clean(text), WIDTH, initial_indent=bullet, subsequent_indent="  ", break_on_hyphens=False)
