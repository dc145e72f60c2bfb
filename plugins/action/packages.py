# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Controller side of allreduce.gpu.packages: release, install, remove, hold, measure."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleActionFail

from ..plugin_utils.documents.observed import Observed
from ..plugin_utils.documents.parsing import DocumentError
from ..plugin_utils.documents.stack import Package
from ..plugin_utils.drift.components import BY_HOLD
from ..plugin_utils.node.action import StepFailed
from ..plugin_utils.node.diffs import difference
from ..plugin_utils.packages.action import PackageAction
from ..plugin_utils.packages.causes import UNKNOWN
from ..plugin_utils.packages.change import (
    happened,
    hold_arguments,
    is_held,
    not_installed,
    not_offered,
    predicted,
    release_arguments,
)
from ..plugin_utils.packages.managers import Apt, Call, Dnf, manager_of
from ..plugin_utils.packages.messages import is_for_damaged_lists, is_rpm_locked
from ..plugin_utils.packages.plan import (
    PackagePlan,
    Steps,
    absent_plan,
    component_plan,
    own_plan,
    steps,
    with_headers,
)

HOLD = "allreduce.gpu.package_hold"
LOCK_INTERVAL = 5  # seconds
NAMES = {"type": "list", "elements": "str"}
PACKAGES = {"type": "list", "elements": "raw"}
PLAN = {
    "packages": PACKAGES,
    "first": PACKAGES,
    **dict.fromkeys(["optional", "unwanted", "unpinning", "held", "excluded", "services"], NAMES),
    "version": {"type": "str"},
    "module_stream": {"type": "str"},
    **dict.fromkeys(["hold_kernel", "kernel_headers"], {"type": "bool"}),
}
SPEC = {
    "name": {"type": "str", "required": True},
    "plan": {"type": "dict", "options": PLAN},
    "state": {"type": "str", "choices": ["present", "absent", "repaired"], "default": "present"},
    "hold_kernel": {"type": "bool", "default": False},
    "install_recommends": {"type": "bool"},
    "lock_timeout": {"type": "int"},
}


class ActionModule(PackageAction):
    """Brings packages to a plan, holds them there, and returns the node's new state."""

    def act(self) -> dict[str, Any]:
        _validation, options = self.validate_argument_spec(SPEC)
        self._name, self._verb, self._unavailable = options["name"], "changed", []  # type: str, str, list[str]
        self._forgot = False
        try:
            plan = PackagePlan(self._name) if options["state"] == "repaired" else self._plan(options)
            if plan is None:
                return {"skipped": True, "skip_reason": f"The stack of {self.host} has no {self._name}."}
            observed = self.observed()
            if (options["plan"] or {}).get("kernel_headers"):
                plan = with_headers(plan, self.desired(), observed)
            self._manager = self._manager_of(observed, options)
        except (DocumentError, ValueError) as error:
            raise AnsibleActionFail(f"The {self._name} packages of {self.host}: {error}.") from None
        return self._repair(observed) if options["state"] == "repaired" else self._bring(plan, observed)

    def explain(self, failed: Mapping[str, Any]) -> dict[str, Any]:
        """Return the explanation of a failure; where the cause is not known, the package manager itself is asked."""
        known = super().explain(failed)
        calls = self._manager.ask_why() if known["cause"] == UNKNOWN else []
        said = "\n".join(str(self._answer(call).get("stderr") or "") for call in calls)
        return super().explain({**failed, "module_stderr": said}) if said.strip() else known

    def _answer(self, call: Call) -> Mapping[str, Any]:
        """Return the answer of a module, also where it fails."""
        try:
            return self.execute(call.module, call.arguments, changes=False)
        except StepFailed as failure:
            return failure.result

    def what_failed(self) -> str:
        if self._verb == "repaired":
            return "An interrupted package installation could not be finished"
        return f"The {self._name.replace('-', ' ')} packages could not be {self._verb}"

    def _plan(self, options: dict[str, Any]) -> PackagePlan | None:
        if options["plan"] is not None:
            return own_plan(self._name, options["plan"], absent=options["state"] == "absent")
        if self._name not in BY_HOLD:
            raise ValueError(f"without a plan, the name must be one of {', '.join(BY_HOLD)}")
        if options["state"] == "absent":
            return absent_plan(self._name, self.desired())
        return component_plan(self._name, self.desired(), options["hold_kernel"])

    def _manager_of(self, observed: Observed, options: dict[str, Any]) -> Apt | Dnf:
        seconds = options["lock_timeout"]
        if seconds is None:
            seconds = self.variable("gpu_package_lock_timeout", 600)
        recommends = options["install_recommends"]
        if recommends is None and options["plan"] is None:
            recommends = False
        backend = (self._vars.get("ansible_facts") or {}).get("pkg_mgr")
        return manager_of(observed.package_manager, int(seconds), recommends, backend)

    def _repair(self, observed: Observed) -> dict[str, Any]:
        """Finish what the package manager was interrupted in."""
        if not observed.package_manager_interrupted:
            return {"skipped": True, "skip_reason": "No package installation was interrupted."}
        self._verb = "repaired"
        if self._task.check_mode:
            self.note_change(True, difference("package manager", ["interrupted"], ["consistent"]))
        else:
            self._run(self._manager.repair())
            self.measure()
        return {}

    def _bring(self, plan: PackagePlan, observed: Observed) -> dict[str, Any]:
        """Bring the packages to the plan, and hold them: also after a failure, so that what is there stays together."""
        todo = steps(plan, observed)
        if self._task.check_mode:  # the lists of a fresh host are empty or stale, and must not be refreshed
            change = predicted(todo, observed)
        else:
            try:
                change = happened(observed, self._change(plan, todo, observed))
            except StepFailed:
                self._hold_anyway(plan)
                raise
        self.note_change(bool(change), difference(f"packages of {self._name}", *change.lines()))
        self._hold(plan)
        return {**change.result(), "unavailable": self._unavailable}

    def _change(self, plan: PackagePlan, todo: Steps, observed: Observed) -> Observed:
        """Take the steps and return what is there then. What goes, goes after an installation that succeeded."""
        manager, offered = self._manager, self._offered((*todo.required, *todo.optional))
        missing = [name for name in todo.required if name in self._unavailable]
        if missing:
            raise StepFailed(not_offered(missing, self.host))
        if not (todo or offered):
            return observed
        if plan.held is not None:
            self._run([Call(HOLD, release_arguments(plan, self._manager.lock_timeout))])
        self._run(manager.remove(todo.unpin) if todo.unpin else [])
        self._run(manager.install(todo.first) if todo.first else [])
        if todo.install or offered:
            self._run(manager.pin(plan.name, plan.held or (), plan.version) if plan.version else [])
            self._run(manager.install([*todo.install, *offered]))
        left = steps(plan, self._measured())
        if left.remove:
            self._run(manager.remove(left.remove))
            left = steps(plan, self._measured())
        if left.first or left.install:
            raise StepFailed(not_installed(left, self.host))
        return self.observed()

    def _measured(self) -> Observed:
        self.measure()
        return self.observed()

    def _offered(self, names: tuple[str, ...]) -> list[Package]:
        """Return those of these packages that a repository of the node has."""
        if not names:
            return []
        self._run(self._manager.refresh())
        answer = self.execute(*self._manager.offered(names)[:2], changes=False)
        there = self._manager.parse_offered(answer["stdout"])
        self._unavailable = [name for name in names if name not in there]
        return [Package(name) for name in names if name in there]

    def _run(self, calls: Iterable[Call]) -> None:
        for call in calls:
            try:
                answer = self._execute_with_lists(call)
            except StepFailed:
                if not call.may_fail:
                    raise
            else:
                shown = answer.get("diff") if call.module == HOLD else None
                self.note_change(call.changes and bool(answer.get("changed")), shown)

    def _execute_with_lists(self, call: Call) -> dict[str, Any]:
        """Run a module; once more, with lists of the repositories fetched from the beginning, where damaged ones may be why it fails."""
        try:
            return self._execute_unlocked(call)
        except StepFailed as failure:
            remedy = [] if self._forgot else self._manager.forget()
            if not remedy or not is_for_damaged_lists(failure.result):
                raise
            self._forgot = True
            for step in [*remedy, *self._manager.refresh()]:
                self._execute_unlocked(step)
            return self._execute_unlocked(call)

    def _execute_unlocked(self, call: Call) -> dict[str, Any]:
        """Run a module; again, until the time for it is over, where it fails as another process has rpm's lock."""
        end = time.monotonic() + self._manager.lock_timeout
        while True:
            try:
                return self.execute(call.module, call.arguments, changes=False)
            except StepFailed as failure:
                if not is_rpm_locked(failure.result) or time.monotonic() > end:
                    raise
            time.sleep(LOCK_INTERVAL)

    def _hold(self, plan: PackagePlan) -> None:
        if plan.held is not None and not is_held(plan, self.observed()):
            self._verb = "released" if plan.absent else "held"
            arguments = release_arguments if plan.absent else hold_arguments
            self._run([Call(HOLD, arguments(plan, self._manager.lock_timeout))])

    def _hold_anyway(self, plan: PackagePlan) -> None:
        if plan.held is None:
            return
        self._verb = "held"
        try:  # whatever was measured: it may have changed
            self._run([Call(HOLD, hold_arguments(plan, self._manager.lock_timeout))])
        except StepFailed as failure:
            self._warnings.append(f"What is installed could not be held, either: {failure}")
        self._verb = "changed"
