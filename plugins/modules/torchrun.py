#!/usr/bin/python
# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the action plugin of the same name, which does the work on the controller."""

DOCUMENTATION = r"""
module: torchrun
short_description: Run a training script on several nodes through torchrun, mpirun, horovodrun or Slurm
version_added: 0.1.0
author:
  - The allreduce.gpu authors (@allreduce)
description:
  - Copies a script to every node of a run, starts it there under C(torchrun) with the c10d rendezvous on the first
    node's cluster address, follows it, and brings the log of every rank back to the controller.
  - The first rank that fails ends the run on all nodes; the result names its node, rank, exit code and last lines.
  - Nothing outlives the task. On each node the run is one systemd unit with a lease that only a watching controller
    renews, so a run ends after at most O(lease) seconds even when the controller loses power; on an interrupt or a
    task timeout it is stopped at once.
  - The task must run on all nodes of the run at the same time, that is with the C(linear) strategy, without
    C(serial), C(throttle) or a loop, and with at least as many forks as nodes.
  - The script finds these variables in addition to those of torchrun itself. E(ALLREDUCE_METRICS) names a file into which
    rank 0 may write a JSON object; it comes back as RV(training.metrics). E(ALLREDUCE_RUN_DIR) is the script's working
    directory, which outlives the run. E(ALLREDUCE_RUN_ID) is O(run_id).
  - E(OMP_NUM_THREADS) is set to the processor's share of each rank, E(GLOO_SOCKET_IFNAME) and E(NCCL_SOCKET_IFNAME)
    to the interface which carries the cluster address. O(variables) takes precedence.
options:
  script:
    description:
      - Training script on the controller. A relative path is looked up like the O(ansible.builtin.copy#module:src) of
        M(ansible.builtin.copy), so a role finds it in its C(files/).
    type: path
    required: true
  args:
    description: Arguments of the script, as a list or as one string that is split like a shell command.
    type: raw
    default: []
  files:
    description: Files and directories on the controller to copy next to the script, for example modules it imports.
    type: list
    elements: path
    default: []
  run_id:
    description:
      - Name of this run, the same on all nodes and never used before, for example C(20261121T153000-2n).
    type: str
    required: true
  directory:
    description:
      - Directory on the controller that receives the results of runs. This one is written to C(<directory>/<run_id>/).
    type: path
    required: true
  nodes:
    description:
      - Inventory names of the nodes that train; the first one is the rendezvous. Other hosts of the play skip the task.
      - Defaults to all hosts of the play that have not failed.
    type: list
    elements: str
  environment:
    description:
      - Python environment on the nodes, a name below C(/opt/allreduce/envs) or an absolute path.
    type: str
    default: main
  user:
    description: Unprivileged user on the nodes who runs the script.
    type: str
    default: trainer
  variables:
    description: Environment variables for the script.
    type: dict
    default: {}
  launcher:
    description:
      - Launcher that starts the ranks. All but V(elastic) need all nodes for the whole run.
      - With V(elastic), torchrun continues without lost nodes, as long as O(min_nodes) are left. When the first node is lost,
        which holds the rendezvous, all others restart, in the same directory, with the rendezvous on the next one.
      - With V(mpirun), the node's Open MPI runs on the first node and reaches the others by SSH as O(user). Its daemons run in each
        node's unit. The script finds the variables of torchrun; every node has as many ranks as the first.
      - With V(horovodrun), the same holds for Horovod's program of that name in O(environment).
      - With V(slurm), the first node submits a job on all of O(nodes), each with all its GPUs, as O(user); the job runs C(torchrun) on each node.
        The job is cancelled where the run is stopped. Slurm may start it again, as after C(scontrol requeue), and the script in the same
        directory; when its time is up, it begins again O(max_restarts) times. Variables C(SBATCH_*) in O(variables) are for C(sbatch).
    type: str
    choices: [torchrun, elastic, mpirun, horovodrun, slurm]
    default: torchrun
  min_nodes:
    description: With O(launcher=elastic), minimum number of nodes; with fewer the run fails. V(0) requires all of O(nodes).
    type: int
    default: 0
  nproc_per_node:
    description:
      - Ranks per node. With V(auto) one per GPU when the environment's PyTorch is a CUDA build, otherwise one.
    type: str
    default: auto
  max_restarts:
    description:
      - Number of times that torchrun restarts all ranks after a failure. With O(launcher=elastic), at least 1.
    type: int
    default: 0
  port:
    description: TCP port of the rendezvous on the first node's cluster address.
    type: int
    default: 29500
  timeout:
    description: Seconds after which the run is stopped and counts as failed. V(0) sets no limit.
    type: int
    default: 0
  start_timeout:
    description:
      - Seconds within which every node must have started its ranks. A run that does not is stopped with a
        message that names the node which is missing or cannot reach the rendezvous.
      - With O(launcher=slurm), also the seconds within which the job must begin for the first time.
    type: int
    default: 120
  stall_timeout:
    description:
      - Seconds after which a run in which no rank has written anything, neither output nor metrics, shows which ranks are behind and where
        in their script, and again at doubling intervals. It is not stopped. V(0) disables this.
    type: int
    default: 600
  lease:
    description: Seconds after which a node ends its part of the run without a heartbeat from the controller.
    type: int
    default: 60
  watch_interval:
    description:
      - >-
          Seconds between two samples of the GPUs of each node, through NVML; doubled after every 500. Samples are written to
          C(logs/<node>/gpus.jsonl), and playbook report draws them. V(0) disables sampling.
    type: float
    default: 2.0
  tail_lines:
    description: Number of last lines of the failing rank that the result shows.
    type: int
    default: 20
  keep:
    description:
      - Keep the run's directory C(/var/lib/allreduce/runs/<run_id>) on the nodes. With V(false) it is removed after a
        run that succeeded.
    type: bool
    default: true
attributes:
  check_mode:
    description: Validates, reports what it would run, starts nothing.
    support: full
  diff_mode:
    description: Has nothing to show.
    support: none
seealso:
  - module: allreduce.gpu.training_unit
  - name: torchrun
    description: Manual of the launcher.
    link: https://docs.pytorch.org/docs/stable/elastic/run.html
notes:
  - The cluster address of a node is its variable C(gpu_cluster_address), or else the fact C(default_ipv4.address).
  - The task needs C(become=true).
  - c10d numbers the nodes by their sorted addresses, so rank 0 is not always on the first of O(nodes).
"""

EXAMPLES = r"""
- name: Name the run once for all nodes
  ansible.builtin.set_fact:
    my_run_id: "{{ now(utc=true, fmt='%Y%m%dT%H%M%S') }}-{{ ansible_play_hosts | length }}n"
  run_once: true

- name: Train on all nodes of the play
  allreduce.gpu.torchrun:
    script: train.py
    args: [--epochs, "10"]
    run_id: "{{ my_run_id }}"
    directory: "{{ inventory_dir }}/.reports/training"
    timeout: 86400
  become: true

# How role verify calls it: a failing collective is a failed check, not the end of the play. Where the task could not
# even start, `training` is absent and `msg` is the reason.
- name: Check the collectives over all nodes
  allreduce.gpu.torchrun:
    script: allreduce_check.py
    args: [--device, cuda]
    run_id: "{{ __verify_run_id }}"
    directory: "{{ report_directory }}/collectives"
    timeout: 300
    keep: false
  become: true
  register: __verify_collectives
  failed_when: false

- name: Train as long as three of the nodes are left; train.py continues from its last checkpoint
  allreduce.gpu.torchrun:
    script: train.py
    args: [--checkpoint-dir, checkpoints, --resume]
    launcher: elastic
    min_nodes: 3
    max_restarts: 3
    run_id: "{{ my_run_id }}"
    directory: "{{ report_directory }}/training"
  become: true

- name: Train one epoch on the first node only; the other hosts of the play skip the task
  allreduce.gpu.torchrun:
    script: train.py
    nodes: ["{{ groups['gpu_nodes'] | first }}"]
    run_id: "{{ my_run_id }}"
    directory: "{{ report_directory }}/training"
  become: true
"""

RETURN = r"""
training:
  description:
    - The run, the same as C(<directory>/<run_id>/result.json).
    - The logs are next to that file, in C(logs/<node>/rank<N>.out), C(rank<N>.err) and a log that has the name of the program
      that started the ranks, such as C(torchrun.log).
  returned: when the run was started; if it failed, on the first node and on the one that failed
  type: dict
  contains:
    format:
      description: Version of this shape.
      type: int
      sample: 1
    run_id:
      description: Name of the run.
      type: str
      sample: 20261121T153000-2n
    script:
      description: File name of the script.
      type: str
      sample: train_ddp.py
    nodes:
      description: Inventory names, the rendezvous first.
      type: list
      elements: str
      sample: [gpu-1, gpu-2]
    world_size:
      description: Number of ranks, V(null) when none ever started.
      type: int
      sample: 2
    started:
      description: Start in UTC, ISO 8601.
      type: str
      sample: "2026-11-21T15:30:00Z"
    finished:
      description: End in UTC, ISO 8601.
      type: str
      sample: "2026-11-21T15:30:41Z"
    status:
      description: V(succeeded) or V(failed).
      type: str
      sample: succeeded
    failure:
      description:
        - The first failure, the cause of the others, with C(node), C(rank), C(exit_code), C(reason) (one sentence) and
          C(tail) (list of lines). C(rank) and C(exit_code) are V(null) where no rank failed, for example on a timeout.
      type: dict
    job:
      description: Slurm's job, with C(id) and C(restarts), the number of times that Slurm started it again.
      returned: with O(launcher=slurm), when it was submitted
      type: dict
    lost:
      description: Nodes that were lost by a run that succeeded without them, each with C(node) and C(reason).
      returned: with O(launcher=elastic), when some were lost
      type: list
      elements: dict
    metrics:
      description: What rank 0 wrote to the file named in E(ALLREDUCE_METRICS), V(null) when it wrote nothing.
      type: dict
msg:
  description: One sentence that says how the run ended, followed by the failing rank's last lines.
  returned: always
  type: str
"""
