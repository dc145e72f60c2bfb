# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Limits of a plan that have not been verified: what the tables leave empty is unknown, and is said."""

from __future__ import annotations

from collections.abc import Iterator

from .components import FRAMEWORKS, component
from .model import Question, Solution
from .slots import environment_names
from .solution import inside, on_host
from .wording import listed

# Columns of a distribution's row that may be empty.
SYSTEM = {"gcc": "its g++"}


def unknowns(question: Question, chosen: Solution) -> list[str]:
    """Return every limit that could not be checked, in addition to what rules doubt."""
    found = [*_of_the_system(question, chosen)]
    host = on_host(chosen)
    for name, one in host.items():
        found += component(name).unknowns(question, one, host)
    for environment in environment_names(question):
        parts = inside(chosen, environment)
        for name in FRAMEWORKS:
            found += component(name).unknowns(question, parts[name], parts) if name in parts else []
    return found


def _of_the_system(question: Question, chosen: Solution) -> Iterator[str]:
    """Yield the properties of the distribution that are not known and matter to this plan."""
    planned = [component(slot.component) for slot, one in chosen.items() if not one.absent]
    columns = {column for one in planned for column in one.system if column not in question.constraints}
    texts = [text for column, text in SYSTEM.items() if column in columns and question.system.get(column) is None]
    if texts:
        yield f"{listed(texts)}, of {question.system['id']} {question.system['version']}"
