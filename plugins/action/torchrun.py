# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a training script on several nodes at once; documented in plugins/modules/torchrun.py.

Ansible runs this once per host, in one process each, at the same time. The processes of one run share a directory
on the controller (plugin_utils/launch/board.py) through which each learns that another node failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ..plugin_utils.documents.files import write_json
from ..plugin_utils.launch import request
from ..plugin_utils.launch.board import Board
from ..plugin_utils.launch.follow import Follower, Limits, UnitError, Unreachable
from ..plugin_utils.launch.interrupts import Interrupted
from ..plugin_utils.launch.job import Launcher, Place
from ..plugin_utils.launch.launchers.table import LAUNCHERS
from ..plugin_utils.launch.logs import save_logs
from ..plugin_utils.launch.outcome import message, run_result
from ..plugin_utils.launch.remote import RemoteUnit, outage, with_warnings
from ..plugin_utils.problems.phrases import clean
from ..plugin_utils.problems.problem import Problem, ProblemError
from ..plugin_utils.subjects.sentences import describe_all, told

_OPTIONS = {
    "script": {"type": "path", "required": True},
    "args": {"type": "raw", "default": []},
    "files": {"type": "list", "elements": "path", "default": []},
    "run_id": {"type": "str", "required": True},
    "directory": {"type": "path", "required": True},
    "nodes": {"type": "list", "elements": "str"},
    "environment": {"type": "str", "default": "main"},
    "user": {"type": "str", "default": "trainer"},
    "variables": {"type": "dict", "default": {}},
    "launcher": {"type": "str", "default": "torchrun"},
    "min_nodes": {"type": "int", "default": 0},
    "nproc_per_node": {"type": "str", "default": "auto"},
    "max_restarts": {"type": "int", "default": 0},
    "port": {"type": "int", "default": 29500},
    "timeout": {"type": "int", "default": 0},
    "start_timeout": {"type": "int", "default": 120},
    "stall_timeout": {"type": "int", "default": 600},
    "lease": {"type": "int", "default": 60},
    "watch_interval": {"type": "float", "default": 2.0},
    "tail_lines": {"type": "int", "default": 20},
    "keep": {"type": "bool", "default": True},
}
# Bytes per second that an upload has at least, before its node counts as lost.
_SLOWEST_UPLOAD = 1_000_000
# What comes of an answer such as lists in lists without an end: ansible-core catches only some of it, and differs between releases.
_UNREADABLE = (AnsibleError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


class ActionModule(ActionBase):
    """Action plugin allreduce.gpu.torchrun."""

    TRANSFERS_FILES = True

    def run(self, tmp=None, task_vars=None):
        """Validate, run, return the same result on every node, except for msg."""
        result = super().run(tmp, task_vars)
        dummy, args = self.validate_argument_spec(_OPTIONS)
        node = task_vars["inventory_hostname"]
        nodes = tuple(args["nodes"] or task_vars["ansible_play_hosts"])
        if node not in nodes:
            return {**result, "skipped": True, "msg": f"{node} is not one of the nodes of run {args['run_id']}."}
        try:
            request.check_play(nodes, task_vars["ansible_play_hosts"], int(task_vars["ansible_forks"]))
            request.check_run(args["run_id"], args["directory"], node)
            request.check_numbers(args)
            request.check_variables(args["variables"])
            args["min_nodes"] = request.least_nodes(args, len(nodes))
            launcher = LAUNCHERS[args["launcher"]]
            addresses = request.node_addresses(nodes, task_vars["hostvars"])
            others = request.other_addresses(nodes, task_vars["hostvars"])
            queue = request.scheduled(nodes, task_vars["hostvars"]) if launcher.queued else ((), 0)
            place = Place(node, nodes, addresses, args["port"], others, *queue)
            work = [self._find(path) for path in (args["script"], *args["files"])]
            unit = RemoteUnit(self, args, place, launcher, work, task_vars)
        except ProblemError as error:
            levels = [told(one)._asdict() for one in error.problems]
            more = {"cause": error.problems[0].code, "problems": levels}
            raise AnsibleActionFail(describe_all(error.problems), result=more) from None
        if self._task.check_mode:
            try:
                return {**result, **unit.rehearse()}
            except Unreachable as error:
                raise AnsibleConnectionFailure(str(error)) from None
            except UnitError as error:
                raise AnsibleActionFail(str(error)) from None
        try:
            return with_warnings({**result, **self._launch(args, place, unit, launcher)}, unit.warnings)
        except OSError as error:
            raise AnsibleActionFail(f"The results below {args['directory']} cannot be written: {error}.") from error

    def _launch(self, args: Mapping, place: Place, unit: RemoteUnit, launcher: Launcher) -> dict:
        """Run to the end, or stop the node's part when the task is ended from outside."""
        directory = Path(args["directory"]) / args["run_id"]
        board = Board(directory, place.node, place.nodes)
        follower = Follower(
            place,
            board,
            unit,
            Limits(
                args["timeout"],
                args["start_timeout"],
                60 + unit.size / _SLOWEST_UPLOAD,
                args["min_nodes"],
                args["stall_timeout"],
                outage(args),
            ),
            show=lambda line: self._display.display(f"  {line}"),
            launcher=launcher,
            sleep=unit.sleep,
        )
        try:
            with unit.interrupts:
                outcome, outcomes = self._follow(follower, directory / "logs" / place.node)
        except Interrupted:
            self._conclude(args, place, board.outcomes())
            unit.interrupts.deliver()
            raise AnsibleActionFail("The run was interrupted.") from None
        if outcome.get("unreachable"):
            # Ansible would remove it after the task, and fail a run that went on without this node.
            self._connection._shell.tmpdir = None
        training = self._conclude(args, place, outcomes)
        text = message(training, place.node, str(directory))
        failure = training["failure"]
        result = {"changed": True, "failed": bool(failure), "msg": text}
        # One node's report of a failure is enough to read; the first node always has it, for programs.
        if failure is None or place.is_first or failure["node"] == place.node:
            result["training"] = training
        warnings = [
            f"{place.node}: {what} cannot be read: {why}" for what, why in (outcome.get("unread") or {}).items()
        ]
        if failure is None and outcome["status"] == "failed":
            warnings.append(f"{place.node} was lost during run {args['run_id']}, which ended without it.")
        if warnings:
            result["warnings"] = warnings
        return {**result, "unreachable": True} if failure and outcome.get("unreachable") else result

    @staticmethod
    def _conclude(args: Mapping, place: Place, outcomes: list[dict]) -> dict:
        training = run_result(args["run_id"], Path(args["script"]).name, place.nodes, outcomes, args["min_nodes"])
        # Every worker writes the same; whichever is last leaves it complete.
        write_json(Path(args["directory"]) / args["run_id"] / "result.json", training)
        return training

    @staticmethod
    def _follow(follower: Follower, logs: Path) -> tuple[dict, list[dict]]:
        try:
            outcome = follower.run()
            save_logs(follower.stopped, logs)
            return outcome, follower.gather()
        except BaseException as error:  # whatever ends this task also ends the node's part of the run
            follower.abort("the run was interrupted" if isinstance(error, Interrupted) else f"the task ended: {error}")
            save_logs(follower.stopped, logs)
            raise

    def _find(self, path: str) -> Path:
        try:
            return Path(self._find_needle("files", path))
        except AnsibleError:
            raise ProblemError(Problem("file_absent", path)) from None

    def execute(self, arguments: Mapping, task_vars: Mapping) -> dict:
        """Run module training_unit on the node; raises Unreachable or UnitError."""
        try:
            result = self._execute_module("allreduce.gpu.training_unit", dict(arguments), task_vars=task_vars)
        except AnsibleConnectionFailure as error:
            raise Unreachable(clean(str(error)).rstrip(": ")) from error
        except _UNREADABLE as error:
            name = task_vars["inventory_hostname"]
            raise UnitError(f"{name} gives no answer that ansible-core can read: {clean(str(error))}") from error
        if result.get("failed"):
            raise UnitError(clean(str(result.get("msg") or "module training_unit failed without a message")))
        return result

    def upload(self, data: bytes) -> str:
        """Put DATA into a file in the task's temporary directory on the node; returns its path."""
        shell = self._connection._shell
        try:
            if not shell.tmpdir:
                self._make_tmp_path()
            return self._transfer_data(shell.join_path(shell.tmpdir, "run.tar.gz"), data)
        except AnsibleConnectionFailure as error:
            raise Unreachable(clean(str(error))) from error
