# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of the settings: measure, decide, refuse, apply, for any subject."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from ansible.errors import AnsibleActionFail

from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.node.action import NodeAction, StepFailed
from ..plugin_utils.node.screen import show_errors
from ..plugin_utils.subjects import BY_NAME
from ..plugin_utils.subjects.sentences import describe_all, told
from ..plugin_utils.subjects.subject import Node, Subject

NAMES = sorted(name for name, one in BY_NAME.items() if one.applied_by)
SPEC = {
    "name": {"type": "str", "required": True, "choices": NAMES},
    "state": {"type": "str", "default": "present"},
    "boot": {"type": "list", "elements": "dict", "default": []},
    "install_recommends": {"type": "bool"},
    "options": {"type": "dict", "default": {}},
    "others": {"type": "dict", "default": {}},
    "packages": {"type": "list", "elements": "raw", "default": []},
}
RETURNED = ("changes", "reboot", "findings", "sentences")


class ActionModule(NodeAction):
    """Brings a node to what a subject's variables ask for, and sends nothing that it has already."""

    def act(self) -> dict[str, Any]:
        _validation, given = self.validate_argument_spec(SPEC)
        subject = BY_NAME[given["name"]]
        fixed = {**subject.options, **given["options"]}
        if given["state"] != "present":
            return self._apply(subject, {"state": given["state"], **fixed}, {})
        try:
            self._refuse(subject, subject.problems(self._variables(subject)))
            measured = self.execute(subject.facts, subject.asked(self._variables(subject), "apply"), changes=False)
            node = self._node(subject, given)
            decision = subject.decide(node)
        except DocumentError as error:
            raise AnsibleActionFail(f"{subject.name} on {self.host}: {error}.") from None
        self._refuse(subject, decision.problems)
        told = {"applies": decision.applies, "notes": list(decision.notes)}
        if not decision.applies and not node.has_record(fixed.get("record", subject.name)):
            return {"changes": [], "findings": [], **told}
        if decision.applies:
            self._install([*decision.packages, *given["packages"]], given)
        found = self._apply(subject, {**(decision.options or {}), **fixed}, measured)
        return {**found, **told}

    def what_failed(self) -> str:
        return "The settings could not be applied"

    def _explained(self, failed: Mapping[str, Any]) -> dict[str, Any]:
        """A failure is told as the module or action tells it."""
        return dict(failed)

    def _variables(self, subject: Subject) -> dict[str, Any]:
        """Return the subject's variables, as the task's own play, role and host have them."""
        return {name: self.variable(name) for name in subject.variables if name in self._vars}

    def _node(self, subject: Subject, given: Mapping[str, Any]) -> Node:
        facts = {**(self._vars.get("ansible_facts") or {}), **self._facts}
        groups = self._vars.get("groups") or {}
        return Node(self.host, self._variables(subject), facts, given["others"], groups, given["boot"])

    def _refuse(self, subject: Subject, problems: Any) -> None:
        found = list(problems)
        if found:
            begun = subject.refusal.format(host=self.host)
            show_errors(self._display, (one._replace(what=begun + one.what) for one in map(told, found)))
            raise StepFailed({"failed": True, "msg": begun + describe_all(found)})

    def _install(self, names: list[Any], given: Mapping[str, Any]) -> None:
        """Install packages that what follows needs, as action packages does it: what is there costs nothing."""
        if not names:
            return
        task = self._task.copy()
        task.args = {"name": given["name"], "plan": {"packages": names}}
        if given["install_recommends"] is not None:
            task.args["install_recommends"] = given["install_recommends"]
        action = self._shared_loader_obj.action_loader.get(
            "allreduce.gpu.packages", task=task, connection=self._connection, play_context=self._play_context,
            loader=self._loader, templar=self._templar, shared_loader_obj=self._shared_loader_obj,
        )  # fmt: skip
        facts = {**(self._vars.get("ansible_facts") or {}), **self._facts}
        answer = action.run(task_vars={**self._vars, "ansible_facts": facts})
        if answer.get("failed"):
            raise StepFailed(answer)
        self._facts.update(answer.get("ansible_facts") or {})
        self.note_change(bool(answer.get("changed")), answer.get("diff"))

    def _apply(self, subject: Subject, options: dict[str, Any], measured: Mapping[str, Any]) -> dict[str, Any]:
        """Send the module, unless the measurement says that the same options were applied and still hold."""
        wanted = digest(options)
        if measured.get("applied") == wanted:
            return {"changes": [], "findings": []}
        answer = self.execute(
            subject.applied_by, {**options, "applied": wanted} if measured.keys() >= {"applied"} else options
        )
        return {key: answer[key] for key in RETURNED if key in answer}


def digest(options: Mapping[str, Any]) -> str:
    """Return a digest of these options: the same text for the same values."""
    return hashlib.sha256(json.dumps(options, sort_keys=True, default=str).encode()).hexdigest()
