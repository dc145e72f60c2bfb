# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keyword module_defaults for modules that an action runs by itself."""

from __future__ import annotations

from typing import Any

from ansible.executor import module_common


def with_defaults(module: str, arguments: dict[str, Any], task: Any, templar: Any) -> dict[str, Any]:
    """Return the arguments with the play's defaults for the module, as action ansible.builtin.package takes them."""
    if not task.module_defaults:
        return arguments
    if hasattr(module_common, "get_action_args_with_defaults"):  # up to ansible-core 2.18
        found = module_common.get_action_args_with_defaults(
            module, arguments, task.module_defaults, templar, task._parent._play._action_groups
        )
    else:
        found = module_common._apply_action_arg_defaults(module, task, arguments, templar)
    return dict(found)
