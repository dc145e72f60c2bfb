# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The activity of a node's GPUs during a run, as gpus.jsonl holds it (written by launch/node/watch.py)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .benchmark import MOST


@dataclass(frozen=True)
class Sample:
    """One look: seconds since the epoch, and for each GPU its values in the order of the quantities, None for no answer."""

    time: float
    values: tuple[tuple[float | None, ...], ...]


@dataclass(frozen=True)
class Watching:
    """One node's file. A node that started again has looked at the same GPUs in the same order."""

    node: str
    quantities: tuple[str, ...]
    gpus: tuple[str, ...]  # PCI addresses
    samples: tuple[Sample, ...]


def read(node: str, text: str) -> Watching | None:
    """Return the samples of a file; None where it has none. The training user could write it: what is not of its form is left out."""
    lines = list(_lines(text))
    heads = [line for line in lines if isinstance(line, dict)]
    if not heads or not _names(heads[0].get("quantities")) or not _names(heads[0].get("gpus")):
        return None
    quantities, gpus = tuple(heads[0]["quantities"]), tuple(heads[0]["gpus"])
    samples = tuple(one for line in lines if (one := _sample(line, len(gpus), len(quantities))))
    return Watching(node, quantities, gpus, samples) if samples else None


def _lines(text: str) -> Iterator[Any]:
    for line in text.splitlines():
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):  # the last line of a process that was killed, or another writer's
            continue


def _names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _sample(line: Any, gpus: int, quantities: int) -> Sample | None:
    if not (isinstance(line, list) and len(line) == 2 and _number(line[0]) and _lists(line[1], gpus, quantities)):
        return None
    return Sample(float(line[0]), tuple(tuple(line) for line in line[1]))


def _lists(value: Any, gpus: int, quantities: int) -> bool:
    if not (isinstance(value, list) and len(value) == gpus):
        return False
    return all(isinstance(one, list) and len(one) == quantities and _numbers(one) for one in value)


def _numbers(values: Iterable[Any]) -> bool:
    return all(value is None or _number(value) for value in values)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= MOST
