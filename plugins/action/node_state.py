# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of allreduce.gpu.node_state: ask for the services that components and subjects declare."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action.normal import ActionModule as RunsItsModule

from ..plugin_utils.node.units import UNITS


class ActionModule(RunsItsModule):
    """Runs the module, with a list of services where the task names none."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        self._task.args = {"services": list(UNITS), **self._task.args}
        result: dict[str, Any] = super().run(tmp, task_vars)
        return result
