# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Actions that take several steps on a node, and return the state they left it in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible.plugins.action import ActionBase

from ..documents.observed import Observed
from ..drift.desired import DEFAULTS, desired
from ..drift.packaged import Desired
from ..drift.record import observe
from ..problems.phrases import clean
from .beat import Beat
from .diffs import merge
from .module_defaults import with_defaults
from .units import UNITS


class StepFailed(Exception):
    """A step of an action that failed, with its result."""

    def __init__(self, result: Mapping[str, Any]) -> None:
        super().__init__(result.get("msg"))
        self.result = result


class NodeAction(ActionBase):
    """Runs modules on the node of its task and collects what they return."""

    TRANSFERS_FILES = False
    _supports_async = False
    _supports_check_mode = True
    _supports_diff = True

    def run(self, tmp: Any = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the result of ``act``; what a step failed with is explained."""
        result = super().run(tmp, task_vars)
        self._vars, self._facts = task_vars or {}, {}  # type: dict[str, Any], dict[str, Any]
        self._changed, self._diffs, self._warnings = False, [], []  # type: bool, list[Any], list[Any]
        try:
            result.update(self.act())
        except StepFailed as failure:
            result.update(self._explained(failure.result))
        result.update(changed=self._changed, diff=merge(self._diffs))
        if self._facts and not result.get("failed"):  # Ansible takes none from a failure, and would print them all
            result["ansible_facts"] = self._facts
        if self._warnings:
            result["warnings"] = [*result.get("warnings", []), *self._warnings]
        return result

    def act(self) -> dict[str, Any]:
        """Do the action's work and return what is particular to its result."""
        raise NotImplementedError

    def what_failed(self) -> str:
        """Return the beginning of the sentence about a failure, such as "The driver packages could not be changed"."""
        raise NotImplementedError

    @property
    def host(self) -> str:
        """Return the name of the node."""
        return str(self._vars.get("inventory_hostname", "the host"))

    def execute(self, module: str, arguments: Mapping[str, Any], changes: bool = True) -> dict[str, Any]:
        """Run a module on the node; raise StepFailed. What changes nothing counts as no change, and shows no difference."""
        given = with_defaults(module, dict(arguments), self._task, self._templar)
        with Beat(self._display, self.host, self._task):
            answer: dict[str, Any] = self._execute_module(module_name=module, module_args=given, task_vars=self._vars)
        self._facts.update(answer.get("ansible_facts") or {})
        self._warnings += [clean(one) if isinstance(one, str) else one for one in answer.get("warnings") or []]
        if answer.get("failed"):
            raise StepFailed(answer)
        if changes:
            self.note_change(bool(answer.get("changed")), answer.get("diff"))
        return answer

    def note_change(self, changed: bool, diff: Any = None) -> None:
        """Count a change, and what it looks like."""
        self._changed = self._changed or changed
        self._diffs += [diff] if isinstance(diff, Mapping) else diff or []

    def state(self) -> Mapping[str, Any]:
        """Return fact gpu_node_state as it is now; it is measured where that has not been done yet."""
        known = self._facts.get("gpu_node_state") or (self._vars.get("ansible_facts") or {}).get("gpu_node_state")
        return known or self.measure()

    def observed(self) -> Observed:
        """Return the observed state of the node."""
        return observe(self.state())

    def measure(self) -> Mapping[str, Any]:
        """Measure the node again; the result has the new fact."""
        facts = self.execute("allreduce.gpu.node_state", {"services": list(UNITS)}, changes=False)["ansible_facts"]
        return facts["gpu_node_state"]

    def desired(self, **given: Any) -> Desired:
        """Return the desired state of the node: its stack, narrowed by its variables and what is given here."""
        variables = {name: self.variable(name) for name in DEFAULTS if name in self._vars}
        stack = (self._vars.get("ansible_facts") or {}).get("gpu_stack") or {}
        return desired(stack, {**variables, **given}, self.observed().secure_boot)

    def variable(self, name: str, default: Any = None) -> Any:
        """Return a variable of the node."""
        return self._templar.template(self._vars[name]) if name in self._vars else default

    def explain(self, failed: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``cause``, ``remedy`` and ``text`` of a failed step, ``tail`` to follow it, and more for the result."""
        message = " ".join(str(failed.get("msg") or "no message").split()).rstrip(".")
        return {"cause": failed.get("cause", "unknown"), "remedy": failed.get("remedy", ""), "text": message}

    def _explained(self, failed: Mapping[str, Any]) -> dict[str, Any]:
        known = self.explain(failed)
        text, tail = known.pop("text"), known.pop("tail", "")
        return {**known, "failed": True, "msg": clean(f"{self.what_failed()} on {self.host}: {text}.{tail}")}
