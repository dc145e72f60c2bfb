# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of allreduce.gpu.service: run systemd where the measured state is another one, and measure."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail

from ..plugin_utils.documents.observed import Service
from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.node.action import NodeAction
from ..plugin_utils.node.diffs import difference
from ..plugin_utils.node.units import UNITS

SPEC = {
    "name": {"type": "str", "required": True},
    "enabled": {"type": "bool"},
    "state": {"type": "str", "choices": ["started", "stopped"]},
    "daemon_reload": {"type": "bool", "default": False},
}


class ActionModule(NodeAction):
    """Brings a measured service to its state, and returns the node's new state."""

    def act(self) -> dict[str, Any]:
        _validation, options = self.validate_argument_spec(SPEC, required_one_of=[["enabled", "state"]])
        self._name = options["name"]
        if self._name not in UNITS:
            raise AnsibleActionFail(
                f"The service {self._name} is not measured, as no component and no settings subject has it in its units; "
                "set services of your own with ansible.builtin.systemd_service."
            )
        try:
            found = self.observed().services.get(self._name, Service())
        except DocumentError as error:
            raise AnsibleActionFail(f"The service {self._name} of {self.host}: {error}.") from None
        active = None if options["state"] is None else options["state"] == "started"
        # A service that is to be off is not read again: its unit may have gone, with a drop-in left.
        reload = options["daemon_reload"] or (bool(found.outdated) and active is not False)
        # What runs goes on as its unit was: only a restart brings a changed one into use.
        restart = reload and bool(active)
        before = {"enabled": bool(found.enabled), "active": bool(found.active), "unit in use": not reload}
        given = (("enabled", options["enabled"]), ("active", active), ("unit in use", restart or None))
        wanted = {key: value for key, value in given if value is not None}
        changed = differs = {**before, **wanted} != before
        if not self._task.check_mode and (differs or reload):
            arguments = {key: value for key, value in options.items() if value is not None}
            arguments.update({"daemon_reload": reload, **({"state": "restarted"} if restart else {})})
            changed = bool(self.execute("ansible.builtin.systemd_service", arguments, changes=False).get("changed"))
            if differs or found.outdated:
                self.measure()
        shown = difference(f"service {self._name}", _lines(before), _lines({**before, **wanted})) if changed else None
        self.note_change(changed, shown)
        return {}

    def what_failed(self) -> str:
        return f"The service {self._name} could not be set"


def _lines(state: dict[str, bool]) -> list[str]:
    return [f"{key}: {'yes' if value else 'no'}" for key, value in state.items()]
