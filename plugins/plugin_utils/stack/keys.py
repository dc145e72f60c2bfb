# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of a request for a component, and their documentation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .model import AnyCandidate
from .versions import version


def version_of(one: AnyCandidate) -> str:
    """Return the version of a candidate."""
    return one.version


def variant_of(one: AnyCandidate) -> str:
    """Return the variant of a candidate: a build, or an origin."""
    return one.variant


def by_version(one: AnyCandidate) -> tuple[Any, ...]:
    """Return where a candidate stands by its version."""
    return (version(one.version),)


@dataclass(frozen=True)
class Key:
    """A constraint about a component.

    docs: what it means, one item for each paragraph, in the markup of Ansible's documentation. sample, comment: a line of
    the example in docs/stack.md. choices: the words it can be, where it is not a version; free: any text at all.
    request: whether it is a key of gpu_stack_request, or a variable of its own.

    shown: how a candidate is asked for by it. order: where a candidate stands among others, None where none is nearer
    than another. exact: whether naming one release takes this constraint in addition to the version. permits: whether naming a build takes
    it although nothing would choose it unasked. declares: whether it says what the host has, so that nothing can be proposed
    in its place. label: what follows the plus sign of a version to name a build of it; None where there are no such builds.
    """

    name: str
    docs: tuple[str, ...] = ()
    sample: str = ""
    comment: str = ""
    choices: tuple[str, ...] = ()
    free: bool = False
    request: bool = True
    shown: Callable[[AnyCandidate], str] = version_of
    order: Callable[[AnyCandidate], tuple[Any, ...]] | None = by_version
    exact: bool = False
    permits: bool = False
    declares: bool = False
    label: Callable[[AnyCandidate], str] | None = None
