# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as one HTML page that needs nothing else: no script, no font, no image from elsewhere."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ..problems import phrases as text
from . import chart, courses, curve, folding, losses, outcomes, trainings
from .model import Report

_TEMPLATES = Path(__file__).parent / "templates"
_SHOWN = 20  # rows of a table that stand on the page itself; the rest is one click away
_KINDS = 5  # kinds of nodes and of machines that do
_VALUES = 3  # values of a cell


def render(report: Report) -> str:
    """Return the page; everything from the inputs is escaped."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        quantity=text.quantity, plural=text.plural, hosts=folding.label, shortened=folding.shortened
    )
    environment.globals.update(most_values=_VALUES)
    return (
        environment.get_template("report.html.j2").render(
            report=report,
            attention=outcomes.attention(report),
            notes=folding.notes(report),
            kinds=folding.kinds(report),
            parts=folding.parts(report),
            machines=folding.machines(report),
            groups=outcomes.check_groups(report),
            shown=_SHOWN,
            most_kinds=_KINDS,
            categories=outcomes.by_category(report),
            trainings=trainings.lines(report.benchmark.training if report.benchmark else ()),
            plots=[one for one in map(curve.plot, report.benchmark.curves if report.benchmark else ()) if one],
            courses=courses.pictures(report.courses),
            losses=losses.pictures(report.runs),
            charts=[chart.chart(scaling) for scaling in report.scaling],
            bar=chart.BAR,
        )
        + "\n"
    )
