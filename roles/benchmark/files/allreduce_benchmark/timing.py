# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time work on a device: warmed up, with CUDA events, several repetitions of which the median counts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch

from .place import Place
from .records import Record, Subject, first_line

MOST_TURNS = 10_000


def elapsed(place: Place, work: Callable[[], object], turns: int = 1) -> float:
    """Return the seconds that the device takes for the given number of turns."""
    place.synchronize()
    if not place.is_cuda:
        began = time.perf_counter()
        for _turn in range(turns):
            work()
        return time.perf_counter() - began
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    first.record()
    for _turn in range(turns):
        work()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1000


def repetitions(
    place: Place, work: Callable[[], object], repeats: int, seconds: float, together: bool = False
) -> list[float]:
    """Return seconds per turn, one figure for each repetition of about SECONDS.

    The first turns, in which libraries choose kernels and open connections, and one whole repetition, in which clocks rise,
    do not count. together: every rank does the same work at the same time, and the slowest rank's time counts.
    """

    def timed(turns: int) -> float:
        if together:
            place.meet()
        took = elapsed(place, work, turns)
        return place.slowest(took) if together else took

    timed(2)
    turns = max(1, min(MOST_TURNS, math.ceil(seconds / max(timed(1), 1e-9))))
    timed(turns)
    return [timed(turns) / turns for _repeat in range(repeats)]


def attempt(subject: Subject, work: Callable[[], Record]) -> Record:
    """Return the record that WORK measured, or the reason why it could not: only for what one rank does alone."""
    try:
        return work()
    except torch.cuda.OutOfMemoryError as error:
        return subject.not_measured("out_of_memory", first_line(error))
    except RuntimeError as error:
        return subject.not_measured("failed", first_line(error))
    finally:
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
