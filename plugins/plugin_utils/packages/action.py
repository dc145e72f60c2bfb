# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions that work with a node's package manager, or with what its packages build."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ..node.action import NodeAction, StepFailed
from .messages import compiler_log, explain, text_of

# Causes are recognized by the words of programs, and ansible.builtin.command leaves them the language of the node.
LANGUAGE = {"LC_ALL": "C.UTF-8", "LANGUAGE": "C.UTF-8"}
LOG_LINES, OUTPUT_LINES, LOG_BYTES = 15, 30, 1 << 16


class PackageAction(NodeAction):
    """Explains failures of package managers and of DKMS."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Run the modules of the action with programs that speak the language whose words are known."""
        self._task.environment = [*(self._task.environment or []), LANGUAGE]
        return super().run(tmp, task_vars)

    def explain(self, failed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the reason why a package manager or a build failed, with the last lines of the compiler's log where there is one."""
        log, holder = compiler_log(failed), None
        try:
            holder = self.measure().get("package_manager_holder")
            tail = self._last_lines(log) if log else ""
        except StepFailed:
            tail = ""
        output = text_of(failed).strip().splitlines()[-OUTPUT_LINES:]
        return {**explain(failed, holder), "tail": tail, "output": "\n".join(output)}

    def _last_lines(self, log: str) -> str:
        asked = {"path": log, "limit": LOG_BYTES, "end": True}
        content = self.execute("allreduce.gpu.read_file", asked, changes=False)["content"]
        lines = base64.b64decode(content).decode("utf-8", "replace").splitlines()
        return " It ends with\n" + "\n".join(lines[-LOG_LINES:])
