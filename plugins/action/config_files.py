# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of allreduce.gpu.config_files: ask the node only where the measured state does not tell that all is as declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..module_utils.host.seen_files import expected, name
from ..plugin_utils.node.action import NodeAction

MODULE = "allreduce.gpu.config_files"


class ActionModule(NodeAction):
    """Runs the module, and adds what it saw to fact gpu_node_state, unless the fact shows all files as declared."""

    def act(self) -> dict[str, Any]:
        given = dict(self._task.args)
        wanted = self._expected(given)
        state = (self._vars.get("ansible_facts") or {}).get("gpu_node_state") or {}
        known, noted = state.get("files") or {}, state.get("files_changed") or {}
        # What is there by hand as it is asked for now is noted, or it would go on counting as changed.
        if wanted and all(known.get(one) == words and one not in noted for one, words in wanted.items()):
            return {"changed_paths": []}
        answer = self.execute(MODULE, {**given, "noted": wanted} if wanted else given)
        if state and answer.get("seen"):
            changed = {one: words for one, words in noted.items() if one not in answer["seen"]}
            self._facts["gpu_node_state"] = {**state, "files": {**known, **answer["seen"]}, "files_changed": changed}
        return {"changed_paths": answer.get("changed_paths", [])}

    def _expected(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Return {name: what is to be there}; nothing for files with secrets, whose digests are for no fact, and for those of another host."""
        files = given.get("files")
        only = set(given) <= {"files", "secrets"} and not self._task.delegate_to
        hidden = given.get("secrets") or self._task.no_log
        if not only or hidden or not isinstance(files, list):
            return {}
        if not all(isinstance(one, Mapping) and isinstance(one.get("path"), str) for one in files):
            return {}
        found = {name(one): expected(one) for one in files}
        return found if len(found) == len(files) else {}

    def _explained(self, failed: Mapping[str, Any]) -> dict[str, Any]:
        return dict(failed)
