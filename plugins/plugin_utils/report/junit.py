# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report as JUnit XML, the form CI systems read: a suite per node, a case per check."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from ..documents.check import CLUSTER, Check
from .model import Report, Run


def render(report: Report) -> str:
    """Return XML text. Unknown is skipped with its reason: it is neither a success nor a failure."""
    root = Element("testsuites", name=report.title)
    for node in report.nodes:
        _suite(root, node.name, [_check(check) for check in node.checks], report.finished)
    if report.cluster_checks:
        _suite(root, CLUSTER, [_check(check) for check in report.cluster_checks], report.finished)
    if report.runs:
        _suite(root, "training", [_run(run) for run in report.runs], report.finished)
    for count in ("tests", "failures", "errors", "skipped"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(root: Element, name: str, cases: Iterable[Element], timestamp: str) -> None:
    suite = SubElement(root, "testsuite", name=name, timestamp=timestamp)
    suite.extend(cases)
    suite.set("tests", str(len(suite)))
    suite.set("failures", str(len(suite.findall("*/failure"))))
    suite.set("errors", "0")
    suite.set("skipped", str(len(suite.findall("*/skipped"))))


def _check(check: Check) -> Element:
    case = Element("testcase", name=check.name, classname=check.category)
    if check.status == "failed":
        message = f"expected {check.expected}, measured {check.measured}"
        SubElement(case, "failure", message=message, type=check.category).text = check.line or message
    elif check.status in ("unknown", "skipped"):
        SubElement(case, "skipped", message=f"{check.status}: {check.line}" if check.line else check.status)
    return case


def _run(run: Run) -> Element:
    case = Element("testcase", name=run.run_id, classname=run.script)
    if run.seconds is not None:
        case.set("time", f"{run.seconds:.3f}")
    if run.status == "failed":
        failure = run.failure
        message = f"{failure.node}: {failure.words}" if failure else "the run failed"
        SubElement(case, "failure", message=message, type="training").text = "\n".join(failure.tail if failure else ())
    return case
