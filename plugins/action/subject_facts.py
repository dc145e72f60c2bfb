# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of measuring settings: each subject that is present on the node."""

from __future__ import annotations

from typing import Any

from ..plugin_utils.node.action import NodeAction
from ..plugin_utils.subjects import SUBJECTS
from ..plugin_utils.subjects.subject import Subject


class ActionModule(NodeAction):
    """Measures the settings that are present; nothing runs on a node for those that are off."""

    def act(self) -> dict[str, Any]:
        _validation, given = self.validate_argument_spec({"user": {"type": "str", "required": True}})
        for subject in SUBJECTS:
            if subject.facts and self.variable(subject.switch, "absent") in subject.on:
                self.execute(subject.facts, self._options(subject, given["user"]), changes=False)
        return {}

    def _options(self, subject: Subject, user: str) -> dict[str, Any]:
        known = {name: self.variable(name) for name in subject.variables if name in self._vars}
        return subject.asked({**known, "cluster_ssh_user": user}, "verify")

    def what_failed(self) -> str:
        return "The settings could not be measured"
