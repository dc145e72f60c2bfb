# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes files on the controller; documented in plugins/modules/controller_files.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.plugins.action import ActionBase

from ..plugin_utils.documents.files import read_text, replace_text, unwritten
from ..plugin_utils.problems.text import describe

_FILE = {"path": {"type": "path", "required": True}, "content": {"type": "str", "required": True}}
_OPTIONS = {"files": {"type": "list", "elements": "dict", "options": _FILE, "required": True}}


class ActionModule(ActionBase):
    """Compare the files with their contents, and write those that differ."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Stop at the first one that cannot be written."""
        super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(_OPTIONS)
        diffs: list[dict[str, str]] = []
        for one in arguments["files"]:
            path = Path(one["path"])
            try:
                before = read_text(path)
                if before == one["content"]:
                    continue
                if not self._task.check_mode:
                    replace_text(path, one["content"])
            except OSError as error:
                problem = unwritten(path, error)
                told = {"code": problem.code, "subject": problem.subject}
                return {"failed": True, "changed": bool(diffs), "msg": describe(problem), "problem": told}
            diffs.append(
                {"before_header": str(path), "after_header": str(path), "before": before or "", "after": one["content"]}
            )
        return {"changed": bool(diffs), "diff": diffs}
