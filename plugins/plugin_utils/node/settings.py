# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of the modules that apply settings: send them only where the node does not have what they declare."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from .action import NodeAction
from .module_defaults import with_defaults

RETURNED = ("changes", "reboot", "findings")


class SettingsAction(NodeAction):
    """Runs ``MODULE``, unless what was measured just before says that the same options were applied and still hold."""

    MODULE: str

    def act(self) -> dict[str, Any]:
        given = with_defaults(self.MODULE, dict(self._task.args), self._task, self._templar)
        measured = given.pop("applied", None)
        wanted = digest(given)
        if measured == wanted:
            return {"changes": [], "findings": []}
        answer = self.execute(self.MODULE, {**given, "applied": wanted})
        return {key: answer[key] for key in RETURNED if key in answer}

    def _explained(self, failed: Mapping[str, Any]) -> dict[str, Any]:
        return dict(failed)


def digest(options: Mapping[str, Any]) -> str:
    """Return what names these options: the same text for the same values."""
    return hashlib.sha256(json.dumps(options, sort_keys=True, default=str).encode()).hexdigest()
