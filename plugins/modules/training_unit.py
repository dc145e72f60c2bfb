#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One node's part of a training run."""

DOCUMENTATION = r"""
module: training_unit
short_description: Run one node's part of a training run as a systemd unit with a lease
version_added: 0.1.0
author:
  - The allreduce.gpu authors (@allreduce)
description:
  - Starts, watches and stops the agent of one node, which runs C(torchrun), C(mpirun) or C(horovodrun), as the transient service
    C(allreduce-train-<run_id>.service). M(allreduce.gpu.torchrun) uses it on all nodes of a run; it is rarely called
    by hand, except to stop a run.
  - A timer stops the service, with all its processes, when the lease is not renewed by O(state=polled).
options:
  run_id:
    description: Name of the run; letters, digits, dots, dashes and underscores.
    type: str
    required: true
  state:
    description:
      - V(started) creates the run's directory and starts the service. A run is started once; a directory that exists
        is an error.
      - V(polled) renews the lease and returns the state of the run.
      - V(stopped) ends the service with all its processes, if it still runs, and returns the outcome and the logs.
    type: str
    choices: [started, polled, stopped]
    required: true
  directory:
    description: Parent of the run's directory on the node.
    type: path
    default: /var/lib/allreduce/runs
  user:
    description: Unprivileged user who runs the ranks. Required with O(state=started).
    type: str
  python:
    description:
      - Interpreter of the training environment. Required with O(state=started).
      - With O(state=polled), RV(versions) tells what that environment has.
    type: path
  archive:
    description:
      - File on the node, a tar.gz with C(launch.json), C(agent.py), C(rank.py) and C(work/). Required with
        O(state=started) except in check mode.
      - With O(again=true), it holds C(launch.json) only.
    type: path
  again:
    description:
      - With O(state=started), start in the directory of an existing run, after what still runs of it was stopped. What
        ranks wrote there stays, so that they find their checkpoints.
    type: bool
    default: false
  programs:
    description: With O(state=started), paths of which the node must have one, such as C(/usr/bin/mpirun).
    type: list
    elements: path
    default: []
  address:
    description: This node's cluster address. Required with O(state=started).
    type: str
  rendezvous:
    description: Address and port of the rendezvous, C(address:port). Required with O(state=started).
    type: str
  nodes:
    description: Number of nodes that take part. With more than one, a cluster address on the loopback interface is refused.
    type: int
    default: 1
  lease:
    description: Seconds without O(state=polled) after which the node ends the run.
    type: int
    default: 60
  wait:
    description: With O(state=polled), seconds to wait for the run's end before returning.
    type: float
    default: 0
  stacks:
    description: With O(state=polled), ask each rank for the stack of its main Python thread.
    type: bool
    default: false
  tail_lines:
    description: Lines of each log to return with O(state=stopped).
    type: int
    default: 20
  log_limit:
    description: Bytes of each log to return with O(state=stopped).
    type: int
    default: 10485760
  remove:
    description: With O(state=stopped), remove the run's directory.
    type: bool
    default: false
attributes:
  check_mode:
    description: Validates, changes nothing.
    support: full
  diff_mode:
    description: Has nothing to show.
    support: none
seealso:
  - module: allreduce.gpu.torchrun
"""

EXAMPLES = r"""
- name: Stop a run by hand on all nodes
  allreduce.gpu.training_unit:
    run_id: 20261121T153000-2n
    state: stopped
  become: true
"""

RETURN = r"""
service:
  description:
    - C(state) (V(running), V(succeeded), V(failed), V(absent)), C(result), C(exit_code), C(signal), C(pid). With
      O(state=stopped) as it was before.
  returned: except in check mode
  type: dict
end:
  description: One phrase that says how the service ended.
  returned: when it does not run any more
  type: str
ranks:
  description:
    - The node's ranks that have started, each with C(rank), C(local_rank), C(world_size), C(attempt), C(started),
      C(last_output) and C(last_line), and with O(stacks=true) C(stack), the frames of its main thread, the innermost first.
  returned: with O(state=polled) and O(state=stopped)
  type: list
  elements: dict
agent:
  description: Outcome that the agent wrote, with C(failures) and C(error); V(null) while it runs or when it was killed.
  returned: with O(state=polled) and O(state=stopped)
  type: dict
rendezvous_error:
  description: Why this node cannot connect to O(rendezvous), V(null) when it can.
  returned: with O(state=polled) and O(rendezvous), while no rank has started
  type: str
versions:
  description: Versions of the packages in the environment of O(python), by name, and of V(python) itself.
  returned: with O(state=polled) and O(python)
  type: dict
metrics_written:
  description: When the file named in E(ALLREDUCE_METRICS) was written last, in seconds since the epoch.
  returned: with O(state=polled) and O(state=stopped)
  type: float
now:
  description: The node's clock, in seconds since the epoch.
  returned: with O(state=polled) and O(state=stopped)
  type: float
interface:
  description: Interface that carries O(address), V(null) if it is not known.
  returned: with O(state=started)
  type: str
cause:
  description: Code of what kept the run from starting, such as V(no_interpreter) or V(port_in_use).
  returned: failure
  type: str
warnings:
  description: What would stop the run, in check mode.
  returned: in check mode
  type: list
  elements: str
tails:
  description: Last lines of each rank's log by rank, and of the agent's log under C(agent).
  returned: with O(state=stopped)
  type: dict
metrics:
  description: Object that rank 0 wrote to the file named in E(ALLREDUCE_METRICS).
  returned: with O(state=stopped)
  type: dict
metrics_error:
  description: Why that file could not be used.
  returned: with O(state=stopped)
  type: str
exceptions:
  description:
    - Names of the types of the exception that ended a rank, by rank, such as C(torch.OutOfMemoryError), the most specific one first. Only of
      Python scripts, and of exceptions that the script did not catch.
  returned: with O(state=stopped)
  type: dict
flight:
  description:
    - What each rank's dump of PyTorch's flight recorder says, by rank and by process group, the collectives around the last that was
      completed. Only of ranks that wrote one since they started.
  returned: with O(state=stopped)
  type: dict
flight_errors:
  description: Why dumps of the flight recorder could not be read, by rank.
  returned: with O(state=stopped)
  type: dict
disk_full:
  description: Whether the disk that holds the run's directory is full.
  returned: with O(state=stopped)
  type: bool
mount_faults:
  description:
    - What is wrong with network file systems, such as one that does not answer. None is asked after a run that succeeded.
  returned: with O(state=stopped), and with O(stacks=true)
  type: list
  elements: str
logs:
  description: All logs, a tar.gz in base64.
  returned: with O(state=stopped)
  type: str
"""

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.host.systemd_unit import SystemdError
from ..module_utils.training.describe import describe
from ..module_utils.training.run import RunError
from ..module_utils.training.states import changes, poll, refusals, start, stop

OPTIONS = {
    "run_id": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["started", "polled", "stopped"], "required": True},
    "directory": {"type": "path", "default": "/var/lib/allreduce/runs"},
    "user": {"type": "str"},
    "python": {"type": "path"},
    "archive": {"type": "path"},
    "again": {"type": "bool", "default": False},
    "programs": {"type": "list", "elements": "path", "default": []},
    "address": {"type": "str"},
    "rendezvous": {"type": "str"},
    "nodes": {"type": "int", "default": 1},
    "lease": {"type": "int", "default": 60},
    "wait": {"type": "float", "default": 0},
    "stacks": {"type": "bool", "default": False},
    "tail_lines": {"type": "int", "default": 20},
    "log_limit": {"type": "int", "default": 10485760},
    "remove": {"type": "bool", "default": False},
}


def main():
    module = AnsibleModule(
        argument_spec=OPTIONS,
        required_if=[("state", "started", ["user", "python", "address", "rendezvous"])],
        supports_check_mode=True,
    )
    actions = {"started": start, "polled": poll, "stopped": stop}
    state, call = module.params["state"], (module.params, module.run_command)
    try:
        if module.check_mode:
            module.exit_json(changed=changes(*call), warnings=[describe(one) for one in refusals(*call)])
        module.exit_json(**actions[state](*call))
    except RunError as error:
        module.fail_json(msg=str(error), cause=error.problem["code"])
    except SystemdError as error:
        module.fail_json(msg=str(error), cause="systemd_failed")
    except OSError as error:
        text = "The run directory below %s cannot be used: %s."
        module.fail_json(msg=text % (module.params["directory"], error), cause="directory_unusable")


if __name__ == "__main__":
    main()
