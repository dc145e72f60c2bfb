# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints lines as text, and refuses; documented in plugins/modules/show.py."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ..plugin_utils.node.screen import is_for_programs, show, show_errors
from ..plugin_utils.problems.phrases import clean
from ..plugin_utils.problems.sentence import Sentence

ERROR = {"what": {"type": "str", "required": True}, **dict.fromkeys(["fix", "why"], {"type": "str", "default": ""})}


class ActionModule(ActionBase):
    """Print past the callback that formats results."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True
    _supports_async = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Print the lines, and return them."""
        super().run(tmp, task_vars)
        _validation, arguments = self.validate_argument_spec(
            {
                "lines": {"type": "list", "elements": "str", "default": []},
                "errors": {"type": "list", "elements": "dict", "options": ERROR, "default": []},
            }
        )
        lines = [clean(line) for line in arguments["lines"]]
        show(self._display, lines)
        if not arguments["errors"]:
            return {"changed": False, "lines": lines}
        errors = [Sentence(*(clean(one[level]) for level in Sentence._fields)) for one in arguments["errors"]]
        show_errors(self._display, errors)
        # What was printed would be printed again with the failed result.
        told = {"lines": lines} if is_for_programs() else {}
        return {"changed": False, "failed": True, "msg": " ".join(one.line for one in errors), **told}
