# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of allreduce.gpu.download, and of the modules of meta/runtime.yml: minutes in which Ansible prints nothing."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action.normal import ActionModule as Normal

from ..plugin_utils.node.beat import Beat


class ActionModule(Normal):
    """Runs the module of its task on the node, as Ansible itself does, with a line every minute."""

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of the module."""
        host = str((task_vars or {}).get("inventory_hostname", "the host"))
        with Beat(self._display, host, self._task):
            result: dict[str, Any] = super().run(tmp, task_vars)
        return result
