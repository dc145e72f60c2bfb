# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wording of refusals: enumerations, sentences and advice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

# With these words sentences begin; names, such as cuDNN and those of distributions, stay as they are written.
ORDINARY = r"^(driver|environments|nothing|the|there)\b"


def advice_text(changes: Mapping[str, str | None]) -> str:
    """Return changes as an advice: what to set, and what to leave out."""
    said = [f"set {name} to {value}" for name, value in sorted(changes.items()) if value]
    gone = listed([name for name, value in sorted(changes.items()) if value is None])
    return listed([*said, f"leave out {gone}"] if gone else said)


def listed(texts: Sequence[str], word: str = "and") -> str:
    """Return texts as one enumeration."""
    return f" {word} ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else "".join(texts)


def sentences(texts: Sequence[str]) -> str:
    """Return texts as sentences, the first of which goes on from what stands before it."""
    begun = (re.sub(ORDINARY, lambda word: word[0].capitalize(), text) for text in texts[1:])
    return ". ".join([*texts[:1], *begun])
