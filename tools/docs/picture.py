# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The picture of docs/compatibility.md: CUDA releases across, GPU generations and PyTorch releases down.

As wide as a phone, so that its text can be read there without zooming: every length is a CSS pixel at 390 of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import Tables
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.versions import major, minor

from .compatibility import generations, majors, newest_patches

WIDTH, MARGIN, LABELS, ROW, TEXT = 390, 6, 98, 17, 11
HEADER = 62  # of a panel: its title and the CUDA releases
INK, PALE, BAR, DOT = "#1b1f24", "#eceff2", "#4c7d00", "#0b5cad"


def picture(tables: Tables) -> str:
    """Return the SVG; the same tables give the same text."""
    columns = [row["version"] for row in tables.rows("cuda")]
    compiled = [(f"{one.name} {one.capability}", set(one.cuda)) for one in reversed(generations(tables))]
    wheels = [
        (f"PyTorch {release}", {minor(one["cuda"]) for one in builds}) for release, builds in newest_patches(tables)
    ]
    second = HEADER + ROW * (len(compiled) + 1) + MARGIN
    drivers = second + HEADER + ROW * len(wheels) + MARGIN
    height = drivers + 2 * ROW
    parts = [
        *_panel("CUDA that compiles for a generation", columns, compiled, 0, _bar),
        *_panel("CUDA of PyTorch's wheels", columns, wheels, second, _dot),
        *_floors(majors(tables), columns, drivers),
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="{TEXT}" fill="{INK}" role="img">'
    )
    title = "<title>Which CUDA compiles for which GPU generation, and which CUDA PyTorch's wheels have</title>"
    return "\n".join([head, title, f'<rect width="{WIDTH}" height="{height}" fill="white"/>', *parts, "</svg>"]) + "\n"


def _panel(title: str, columns: Sequence[str], rows: Sequence[tuple[str, set[str]]], top: int, mark) -> Iterator[str]:
    """Yield one grid: its title, the CUDA releases across, and a mark where a row has one."""
    yield _text(MARGIN, top + 14, title, 'font-weight="bold"')
    for place, column in enumerate(columns):
        x, y = _x(place, columns) + _step(columns) / 2 + 4, top + HEADER - 6
        yield _text(x, y, column, f'transform="rotate(-90 {x:g} {y})"')
    for number, (name, has) in enumerate(rows):
        y = top + HEADER + ROW * number
        if number % 2 == 0:
            yield f'<rect x="0" y="{y}" width="{WIDTH}" height="{ROW}" fill="{PALE}"/>'
        yield _text(MARGIN, y + ROW - 5, name)
        yield from (mark(_x(place, columns), y, columns) for place, column in enumerate(columns) if column in has)


def _bar(x: float, y: int, columns: Sequence[str]) -> str:
    return f'<rect x="{x:g}" y="{y + 4}" width="{_step(columns):g}" height="{ROW - 8}" fill="{BAR}"/>'


def _dot(x: float, y: int, columns: Sequence[str]) -> str:
    return f'<circle cx="{x + _step(columns) / 2:g}" cy="{y + ROW / 2:g}" r="4.5" fill="{DOT}"/>'


def _floors(floors: dict[str, str], columns: Sequence[str], top: int) -> Iterator[str]:
    """Yield under each major of CUDA the driver its programs need."""
    yield _text(MARGIN, top + 11, "driver from")
    for number, floor in floors.items():
        places = [place for place, column in enumerate(columns) if major(column) == number]
        start, end = _x(places[0], columns), _x(places[-1], columns) + _step(columns)
        yield f'<path d="M{start + 1:g} {top - 4}H{end - 1:g}" stroke="{INK}" stroke-width="2"/>'
        middle = 'text-anchor="middle"'
        yield _text((start + end) / 2, top + 11, f"CUDA {number}:", middle)
        yield _text((start + end) / 2, top + 25, floor, middle)


def _x(place: int, columns: Sequence[str]) -> float:
    return round(LABELS + place * _step(columns), 2)


def _step(columns: Sequence[str]) -> float:
    return round((WIDTH - LABELS - MARGIN) / len(columns), 2)


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"{" " + more if more else ""}>{escape(text)}</text>'
