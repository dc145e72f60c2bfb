# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes report.html, report.json and junit.xml on the controller; documented in plugins/modules/report.py."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase

from ..plugin_utils.node.screen import show_errors
from ..plugin_utils.report import document, html, junit
from ..plugin_utils.report.build import build
from ..plugin_utils.report.sources import ReportError, read, watched
from ..plugin_utils.report.writing import apply, plan
from ..plugin_utils.subjects.sentences import describe_all, told

_ARGUMENTS = {
    "directory": {"type": "path", "required": True},
    "title": {"type": "str", "default": "GPU cluster report"},
}
_RENDERERS = {"report.html": html.render, "report.json": document.render, "junit.xml": junit.render}


class ActionModule(ActionBase):
    """Read, build, render, write what differs."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Render the report, write what changed, and return the task's result."""
        result = super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(argument_spec=_ARGUMENTS)
        directory = Path(self._loader.path_dwim(arguments["directory"]))
        try:
            verification, results, benchmark = read(directory)
            report = build(verification, results, arguments["title"], benchmark, partial(watched, directory))
            changes = plan({directory / name: render(report) for name, render in _RENDERERS.items()})
            if not self._task.check_mode:
                apply(changes)
        except ReportError as error:
            show_errors(self._display, map(told, error.problems))
            raise AnsibleActionFail(describe_all(error.problems), result={"cause": error.problems[0].code}) from None
        result.update(
            changed=bool(changes),
            directory=str(directory),
            files=[str(directory / name) for name in _RENDERERS],
            verdict={"status": report.verdict.status, "sentences": list(report.verdict.sentences)},
            diff=[{"prepared": f"{change.path} would be {change.verb}\n"} for change in changes],
        )
        return result
