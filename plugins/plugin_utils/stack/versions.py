# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions and what a user may ask of them: a version, a prefix, a range, or latest."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable
from functools import cache
from os.path import commonprefix

from .libraries import InvalidSpecifier, InvalidVersion, SpecifierSet, Version

LATEST = ("latest", "auto", "any", "")
# Python reads no number of more than 4,300 digits.
LONGEST = 200


class ConstraintError(ValueError):
    """A constraint that is not a version, a range or latest."""


@cache
def version(text: str) -> Version:
    """Return the comparable form of a version; raise ConstraintError when it is not valid."""
    try:
        return Version(str(text))
    except InvalidVersion as error:
        raise ConstraintError(f"'{text}' is not a version") from error


@cache
def at_least(text: str, floor: str) -> bool:
    """Return True if a version is not older than another."""
    return version(text) >= version(floor)


@cache
def segments(text: str) -> tuple[str, ...]:
    """Return the dotted parts without leading zeros: '535.54.03' and '535.54.3' are one version."""
    return tuple(part.lstrip("0") or "0" for part in text.split("+")[0].split("."))


def neighbours(text: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Return the known versions next to one that is not among them: those that share most of its parts, then the closest."""
    ordered = sorted(set(known), key=version)
    here = bisect(ordered, version(text), key=version)
    steps = {one: step for side in (ordered[:here][::-1], ordered[here:]) for step, one in enumerate(side)}
    return sorted(steps, key=lambda one: (-_shared(one, text), steps[one]))[:count]


def _shared(one: str, other: str) -> int:
    """Return the number of leading parts that two versions have in common."""
    return len(commonprefix([segments(one), segments(other)]))


def major(text: str) -> str:
    """Return the major: '12' of '12.8.1'."""
    return str(text).partition(".")[0]


def minor(text: str) -> str:
    """Return major and minor: '12.8' of '12.8.1'."""
    return ".".join(str(text).split(".")[:2])


def label_of(text: str) -> str | None:
    """Return the local label of a version, or of one in a range: cu118 of ==2.1.2+cu118."""
    found = re.search(r"\+([^,\s]+)", text)
    return found[1].lower() if found else None


def without_label(text: str) -> str:
    """Return a version or a range without local labels."""
    return re.sub(r"\+[^,\s]+", "", text)


@cache
def starts_with(text: str, prefix: str) -> bool:
    """Return True if a version lies under a prefix: 535.54.03 under 535, but 5.35 not under 5.3; a label has to be the same."""
    wanted = segments(prefix)
    return segments(text)[: len(wanted)] == wanted and label_of(prefix) in (None, label_of(text))


@cache
def check_constraint(text: str) -> str:
    """Return the constraint in its plain form; raise ConstraintError when its meaning is not clear."""
    text = str(text).strip()
    if len(text) > LONGEST:
        raise ConstraintError(f"a text of {len(text)} characters is not a version")
    if text.lower() in LATEST:
        return "latest"
    if text[0] in "<>=!~":
        try:
            return str(SpecifierSet(text))
        except InvalidSpecifier as error:
            raise ConstraintError(f"'{text}' is not a version range") from error
    plain = text[:-2] if text.endswith((".*", ".x")) else text
    version(plain)
    return plain


@cache
def matches(text: str, spec: str) -> bool:
    """Return True if a version is one the constraint (as check_constraint returns it) allows; its label tells builds of it apart."""
    if spec == "latest":
        return True
    if spec[0] in "<>=!~":
        return SpecifierSet(spec).contains(text if label_of(spec) else without_label(text), prereleases=True)
    return starts_with(text, spec)


@cache
def meet(one: str, other: str) -> bool:
    """Return True if some version lies in both ranges: if any does, then a lower end of one of them, or an exact version."""
    ends = [part.version for text in (one, other) for part in SpecifierSet(text) if part.operator[0] != "<"]
    return any(SpecifierSet(one).contains(end) and SpecifierSet(other).contains(end) for end in ends)
