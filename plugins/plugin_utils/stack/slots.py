# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The slots of a question: what has to be chosen for the host, and for each of its environments."""

from __future__ import annotations

from .components import COMPONENTS, FRAMEWORKS, component, place
from .model import SHARED, Question, Slot


def environment_of(question: Question, framework: str) -> str:
    """Return the environment a framework lives in; what is made for others lives with one of them."""
    if question.environments == "one":
        return SHARED
    beside = component(framework).beside
    return next((name for name in beside if name in question.frameworks), beside[-1]) if beside else framework


def environment_names(question: Question) -> list[str]:
    """Return the names of the environments that the frameworks live in."""
    found = {environment_of(question, name) for name in question.frameworks}
    if not found and question.bare_environment:
        found = {SHARED}
    return sorted(found, key=(SHARED, *FRAMEWORKS).index)


def slots(question: Question) -> list[Slot]:
    """Return every slot of a question, in the order they are decided."""
    found = [Slot(name, environment_of(question, name)) for name in question.frameworks]
    for one in COMPONENTS:
        if one.place == "host" and (question.has_driver or one.name != "driver"):
            found.append(Slot(one.name))
        if one.place == "environment":
            found += [Slot(one.name, name) for name in environment_names(question)]
    return sorted(found, key=lambda slot: (place(slot.component), slot.environment))
