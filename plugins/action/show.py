# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints lines as text; documented in plugins/modules/show.py."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase

from ..plugin_utils.node.screen import show
from ..plugin_utils.problems.phrases import clean


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
            {"lines": {"type": "list", "elements": "str", "required": True}}
        )
        lines = [clean(line) for line in arguments["lines"]]
        show(self._display, lines)
        return {"changed": False, "lines": lines}
