# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text in pictures: how wide it is at most, broken and cut so that it never leaves its box."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, takewhile

SIZES = {"name": 13}  # of letters, in pixels as in report.css; others are smaller
SMALL = 11
# Upper bounds of widths in em, with a wide font such as DejaVu Sans: the page takes the reader's own.
NARROW, BROAD = frozenset(" .,:;'|!ijlftr-()[]/·"), frozenset("mwMW@%…—")
BOLD = frozenset({"name", "fault"})


@dataclass(frozen=True)
class Text:
    """``whole`` is what was written before it was cut to its box; empty where nothing was."""

    kind: str  # name | detail | fault | tag | links
    x: float
    y: float
    text: str
    anchor: str = "start"
    whole: str = ""
    turned: bool = False


def width(kind: str, text: str) -> float:
    """Return the pixels that a text takes at most."""
    return sum(map(_ems, text)) * SIZES.get(kind, SMALL) * (1.12 if kind in BOLD else 1)


def _ems(letter: str) -> float:
    return 0.42 if letter in NARROW else 1.02 if letter in BROAD or ord(letter) > 0x2FF else 0.69


def _most(kind: str, text: str, room: float) -> int:
    """This number of the text's letters fits. A node may say a name of any length, so no letter is looked at twice."""
    widths = accumulate(width(kind, letter) for letter in text)
    return max(sum(1 for _taken in takewhile(lambda taken: taken <= room, widths)), 1)


def wrapped(kind: str, text: str, room: float) -> list[str]:
    """Return the text in one line, else in two, broken at a blank or behind a hyphen; the second may be cut."""
    most = _most(kind, text, room)
    at = max(text.rfind(" ", 0, most + 1), text.rfind("-", 0, most) + 1)
    return [text] if len(text) <= most or at <= 0 else [text[:at].rstrip(" ·"), text[at:].lstrip(" ·")]


def cut(kind: str, x: float, y: float, text: str, room: float) -> Text:
    """Return the text at this place, with an ellipsis where it does not fit."""
    if width(kind, text) <= room:
        return Text(kind, x, y, text)
    most = _most(kind, text, room - width(kind, "…"))
    return Text(kind, x, y, text[:most] + "…", whole=text)
