# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as one HTML page that needs nothing else: no script, no font, no image from elsewhere."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..problems import phrases as text
from . import chart, courses, curve, folding
from .model import Report

_TEMPLATES = Path(__file__).parent / "templates"
_OPEN_GROUPS = 3  # parts of a list that stand open
_SHOWN = 20  # parts of a list that stand on the page itself; the rest is one click away


def render(report: Report) -> str:
    """Return the page; everything from the inputs is escaped."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(quantity=text.quantity, plural=text.plural, hosts=folding.label)
    return (
        environment.get_template("report.html.j2").render(
            report=report,
            attention=folding.attention(report),
            kinds=folding.kinds(report),
            machines=folding.machines(report),
            groups=folding.check_groups(report),
            open_groups=_OPEN_GROUPS,
            shown=_SHOWN,
            categories=folding.by_category(report),
            plots=[one for one in map(curve.plot, report.benchmark.curves if report.benchmark else ()) if one],
            courses=courses.pictures(report.courses),
            charts=[chart.chart(scaling) for scaling in report.scaling],
            bar=chart.BAR,
        )
        + "\n"
    )
