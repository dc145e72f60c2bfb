# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences of several steps as one: what was before the first of them, and what is after the last."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def difference(header: str, before: Iterable[str], after: Iterable[str]) -> dict[str, str]:
    """Return a difference of lines as ``--diff`` shows it."""
    texts = ["".join(f"{line}\n" for line in lines) for lines in (before, after)]
    return {"before_header": header, "after_header": header, "before": texts[0], "after": texts[1]}


def merge(diffs: Iterable[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return one difference for each header; what ends as it began is left out, what is not of this form stays."""
    merged: dict[str, dict[str, str]] = {}
    others = []
    for diff in diffs:
        header = diff.get("before_header")
        if header is None or not {"before", "after"} <= set(diff):
            others.append(dict(diff))
        elif header in merged:
            merged[header]["after"] = diff["after"]
        else:
            merged[header] = dict(diff)
    return [diff for diff in merged.values() if diff["before"] != diff["after"]] + others
