# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a training script on several nodes at once; documented in plugins/modules/torchrun.py.

Ansible runs this once per host, in one process each, at the same time. The processes of one run share a directory
on the controller (plugin_utils/launch/board.py) through which each learns that another node failed.
"""

from __future__ import annotations

import base64
import io
import tarfile
import time
from collections.abc import Mapping
from pathlib import Path

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure, AnsibleError
from ansible.plugins.action import ActionBase

from ..plugin_utils.documents.files import write_json
from ..plugin_utils.launch import request
from ..plugin_utils.launch.board import Board
from ..plugin_utils.launch.follow import Follower, Limits, UnitError, Unreachable
from ..plugin_utils.launch.interrupts import Interrupted, Interrupts
from ..plugin_utils.launch.outcome import message, run_result
from ..plugin_utils.preflight.problem import Problem, ProblemError
from ..plugin_utils.preflight.text import describe_all

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
    "nproc_per_node": {"type": "str", "default": "auto"},
    "max_restarts": {"type": "int", "default": 0},
    "port": {"type": "int", "default": 29500},
    "timeout": {"type": "int", "default": 0},
    "start_timeout": {"type": "int", "default": 120},
    "lease": {"type": "int", "default": 60},
    "tail_lines": {"type": "int", "default": 20},
    "keep": {"type": "bool", "default": True},
}
_RUNS = "/var/lib/allreduce/runs"
# Bytes per second that an upload has at least, before its node counts as lost.
_SLOWEST_UPLOAD = 1_000_000


class ActionModule(ActionBase):
    """Action plugin allreduce.gpu.torchrun."""

    TRANSFERS_FILES = True

    def run(self, tmp=None, task_vars=None):
        """Validate, run, return the same result on every node but for msg."""
        result = super().run(tmp, task_vars)
        dummy, args = self.validate_argument_spec(_OPTIONS)
        node = task_vars["inventory_hostname"]
        nodes = tuple(args["nodes"] or task_vars["ansible_play_hosts"])
        if node not in nodes:
            return {**result, "skipped": True, "msg": f"{node} is not one of the nodes of run {args['run_id']}."}
        try:
            request.check_play(nodes, task_vars["ansible_play_hosts"], int(task_vars["ansible_forks"]))
            request.check_numbers(args)
            place = request.Place(node, nodes, request.node_addresses(nodes, task_vars["hostvars"]), args["port"])
            script, files = self._find(args["script"]), [self._find(path) for path in args["files"]]
            archive = request.archive(script, files, _launch(args, place))
        except ProblemError as error:
            raise AnsibleActionFail(describe_all(error.problems), result={"cause": error.problems[0].code}) from None
        unit = _RemoteUnit(self, args, place, archive, task_vars)
        if self._task.check_mode:
            return {**result, **unit.rehearse()}
        try:
            return {**result, **self._launch(args, place, unit, len(archive))}
        except OSError as error:
            raise AnsibleActionFail(f"The results below {args['directory']} cannot be written: {error}.") from error

    def _launch(self, args: Mapping, place: request.Place, unit: _RemoteUnit, size: int) -> dict:
        """Run to the end, or stop the node's part when the task is ended from outside."""
        directory = Path(args["directory"]) / args["run_id"]
        board = Board(directory, place.node, place.nodes)
        follower = Follower(
            place,
            board,
            unit,
            Limits(args["timeout"], args["start_timeout"], 60 + size / _SLOWEST_UPLOAD),
            show=lambda line: self._display.display(f"  {line}"),
            sleep=unit.sleep,
        )
        try:
            with unit.interrupts:
                outcome, outcomes = self._follow(follower, directory / "logs" / place.node)
        except Interrupted:
            self._conclude(args, place, board.outcomes())
            unit.interrupts.deliver()
            raise AnsibleActionFail("The run was interrupted.") from None
        training = self._conclude(args, place, outcomes)
        text = message(training, place.node, str(directory))
        failure = training["failure"]
        result = {"changed": True, "failed": bool(failure), "msg": text}
        # One node's report of a failure is enough to read; the first node always has it, for programs.
        if failure is None or place.is_first or failure["node"] == place.node:
            result["training"] = training
        return {**result, "unreachable": True} if outcome.get("unreachable") else result

    @staticmethod
    def _conclude(args: Mapping, place: request.Place, outcomes: list[dict]) -> dict:
        training = run_result(args["run_id"], Path(args["script"]).name, place.nodes, outcomes)
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
            raise Unreachable(str(error).rstrip(": ")) from error
        if result.get("failed"):
            raise UnitError(result.get("msg") or "module training_unit failed without a message")
        return result

    def upload(self, data: bytes) -> str:
        """Put DATA into a file in the task's temporary directory on the node; returns its path."""
        shell = self._connection._shell
        try:
            if not shell.tmpdir:
                self._make_tmp_path()
            return self._transfer_data(shell.join_path(shell.tmpdir, "run.tar.gz"), data)
        except AnsibleConnectionFailure as error:
            raise Unreachable(str(error)) from error


class _RemoteUnit:
    """The node's unit (follow.Unit) through module training_unit."""

    def __init__(self, action: ActionModule, args: Mapping, place: request.Place, archive: bytes, task_vars: Mapping):
        self._action, self._args, self._place, self._archive, self._vars = action, args, place, archive, task_vars
        self._succeeded = False
        self.interrupts = Interrupts()

    def start(self) -> dict:
        # An interrupt in the middle could leave the node starting after we had stopped it.
        with self.interrupts.deferred():
            return self._module("started", archive=self._action.upload(self._archive), **self._start_arguments())

    def poll(self, wait: float) -> dict:
        """Try again for half a lease when the node does not answer: a short outage costs no training."""
        until = time.monotonic() + self._args["lease"] / 2
        while True:
            self.interrupts.check()
            try:
                seen = self._module("polled", wait=wait, lease=self._args["lease"], rendezvous=self._place.rendezvous)
                self._succeeded = seen["service"]["state"] == "succeeded"
                return seen
            except Unreachable:
                if time.monotonic() > until:
                    raise
                time.sleep(2)

    def stop(self) -> dict:
        remove = self._succeeded and not self._args["keep"]
        return self._module("stopped", tail_lines=self._args["tail_lines"], remove=remove)

    def sleep(self, seconds: float) -> None:
        self.interrupts.check()
        time.sleep(seconds)

    def rehearse(self) -> dict:
        """Check mode: what would run, and as warnings what would stop it."""
        warnings = self._module("started", **self._start_arguments()).get("warnings", [])
        place, script = self._place, self._args["script"]
        text = f"Would run {script} on {', '.join(place.nodes)} with the rendezvous {place.rendezvous}."
        return {"changed": True, "msg": text, "warnings": [f"{place.node}: {warning}" for warning in warnings]}

    def _start_arguments(self) -> dict:
        args, place = self._args, self._place
        return {
            "user": args["user"],
            "python": request.environment_python(args["environment"]),
            "address": place.address,
            "rendezvous": place.rendezvous,
            "lease": args["lease"],
        }

    def _module(self, state: str, **arguments: object) -> dict:
        common = {"run_id": self._args["run_id"], "state": state, "directory": _RUNS}
        return self._action.execute({**common, **arguments}, self._vars)


def _launch(args: Mapping, place: request.Place) -> dict:
    run_directory = f"{_RUNS}/{args['run_id']}"
    return {
        "run_id": args["run_id"],
        "python": request.environment_python(args["environment"]),
        "torchrun": request.torchrun_arguments(place, args["run_id"], run_directory, args["max_restarts"]),
        "script": Path(args["script"]).name,
        "args": request.script_arguments(args["args"]),
        "variables": request.script_variables(args["variables"], args["max_restarts"]),
        "nproc_per_node": args["nproc_per_node"],
    }


def save_logs(stopped: Mapping, directory: Path) -> None:
    """Unpack the logs that module training_unit returned at the end of the run."""
    if not stopped.get("logs"):
        return
    directory.mkdir(parents=True, exist_ok=True)
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(stopped["logs"])), mode="r:gz") as tar:
        for member in tar:
            # The node chose these names.
            named = member.isfile() and Path(member.name).name == member.name
            if named and (content := tar.extractfile(member)):
                (directory / member.name).write_bytes(content.read())
