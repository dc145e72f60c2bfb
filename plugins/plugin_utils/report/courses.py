# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The course of the GPUs during the newest run that was watched: for each quantity the median of all GPUs over time, and their range."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from ..documents.watching import Watching
from ..problems.phrases import clean, quantity
from .model import Course, Courses, Moment

TITLES = {
    "utilization_percent": ("Utilisation", "%"),
    "memory_used_mib": ("Memory", "MiB"),
    "power_watts": ("Power", "W"),
    "temperature_celsius": ("Temperature", "°C"),
    "clock_sm_mhz": ("Clock", "MHz"),
}
MOMENTS = 120  # of a picture
UNLIKE = 5  # GPUs that are named


def build(run_id: str, script: str, watched: Iterable[Watching]) -> Courses | None:
    """Return the courses of a run; None where no GPU answered anything."""
    found = list(watched)
    times = [sample.time for one in found for sample in one.samples]
    if not times:
        return None
    begin, end = min(times), max(times)
    courses = tuple(course for name in TITLES if (course := _course(name, found, begin, max(end - begin, 1.0))))
    if not courses:
        return None
    unused = courses[0].name == "utilization_percent" and courses[0].most == 0
    return Courses(
        run_id=clean(run_id),
        script=clean(script),
        nodes=tuple(one.node for one in found),
        gpus=sum(len(one.gpus) for one in found),
        seconds=end - begin,
        courses=() if unused else courses,
        idle=("None of these GPUs computed anything meanwhile.",) if unused else tuple(_idle(found)),
    )


@dataclass(frozen=True)
class Picture:
    """A course in a box of 100 by 100: the range of all GPUs as a polygon, if it has one, their median as a line."""

    title: str
    text: str  # the same in words, for who cannot see it
    top: str
    bottom: str
    band: str
    line: str


def pictures(courses: Courses | None) -> list[Picture]:
    """Draw each course; the lowest line is 0, or for temperatures and clocks somewhat below the least."""
    return [_picture(course) for course in courses.courses] if courses else []


def _picture(course: Course) -> Picture:
    top = 100.0 if course.unit == "%" else course.most or 1.0
    bottom = 0.9 * course.least if course.unit in ("°C", "MHz") else 0.0

    def points(values: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{at:g},{100 - 100 * (value - bottom) / ((top - bottom) or 1):.1f}" for at, value in values)

    upper = [(moment.at, moment.most) for moment in course.moments]
    lower = [(moment.at, moment.least) for moment in reversed(course.moments)]
    words = f"median {quantity(course.median)}, from {quantity(course.least)} to {quantity(course.most)} {course.unit}"
    return Picture(
        title=course.title,
        text=words,
        top=f"{quantity(top)} {course.unit}",
        bottom=f"{quantity(bottom)} {course.unit}",
        band=points(upper + lower),
        line=points((moment.at, moment.median) for moment in course.moments),
    )


def _course(name: str, found: Sequence[Watching], begin: float, length: float) -> Course | None:
    """Put the values of all GPUs into as many spans of time as the picture has; spans without a value are left out."""
    spans: dict[int, list[float]] = {}
    for one in found:
        if name in one.quantities:
            column = one.quantities.index(name)
            for sample in one.samples:
                span = min(MOMENTS - 1, int((sample.time - begin) / length * MOMENTS))
                spans.setdefault(span, []).extend(
                    value for values in sample.values if (value := values[column]) is not None
                )
    moments = tuple(
        Moment(round(100 * span / (MOMENTS - 1), 2), min(values), median(values), max(values))
        for span, values in sorted(spans.items())
        if values
    )
    if not moments:
        return None
    title, unit = TITLES[name]
    every = [value for values in spans.values() for value in values]
    return Course(name, title, unit, min(every), median(every), max(every), moments)


def _idle(found: Sequence[Watching]) -> Iterable[str]:
    """Name the GPUs that were used less than half as much as the median of all: the others waited for nothing, or for them."""
    used = _means(found)
    if len(used) < 3:
        return
    usual = median(used.values())
    low = sorted((value, name) for name, value in used.items() if value < usual / 2)
    for value, name in low[:UNLIKE]:
        yield f"{name}: {quantity(value, 3)} % used on average, {quantity(usual, 3)} % is usual here"


def _means(found: Sequence[Watching]) -> Mapping[str, float]:
    means = {}
    for one in found:
        if "utilization_percent" not in one.quantities:
            continue
        column = one.quantities.index("utilization_percent")
        for number, gpu in enumerate(one.gpus):
            values = [value for sample in one.samples if (value := sample.values[number][column]) is not None]
            if values:
                means[f"{one.node} {clean(gpu)}"] = sum(values) / len(values)
    return means
