# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sentences for what keeps a training run from starting on a node; nothing is decided by them."""

SENTENCES = {
    "run_exists": "The run directory {subject} exists already; give every run a run_id of its own.",
    "run_absent": "The run directory {subject} does not exist, so the run cannot restart in it.",
    "no_mpirun": "This node has no {subject}; set train_install_mpi to true, or install Open MPI there.",
    "no_horovodrun": (
        "The training environment on this node has no {subject}; set horovod in gpu_stack_request and run playbook site.yml, or "
        "name another environment."
    ),
    "no_sbatch": (
        "This node has no {subject}, so no job of Slurm's can be submitted; run playbook site.yml with slurm_state: present, or install the "
        "programs of your cluster's Slurm there."
    ),
    "wrong_member": "The archive of the run holds {subject!r}, which is not a plain file or directory.",
    "wrong_run_id": "The run_id {subject!r} is not valid; use letters, digits, dots, dashes and underscores.",
    "not_root": "Starting a run needs root on the node; set become: true.",
    "no_interpreter": (
        "The training environment's interpreter {subject} does not exist on this node; run playbook site.yml, or name "
        "another environment."
    ),
    "environment_silent": (
        "The training environment's interpreter {subject} cannot be reached on this node ({mounts}); see to the "
        "server of that file system, or leave this node out of train_nodes."
    ),
    "fapolicyd_denies": (
        "fapolicyd on this node would deny the training environment's interpreter {subject}, as its rules lack those of "
        "/etc/fapolicyd/rules.d/38-allreduce.rules; run playbook site.yml, or 'systemctl restart fapolicyd' where the file is there."
    ),
    "no_user": "The training user {subject!r} does not exist on this node; run playbook site.yml, or name another user.",
    "no_address": (
        "No interface of this node has the cluster address {subject}; set gpu_cluster_address to one that it has."
    ),
    "loopback_interface": (
        "The cluster address {subject} of this node is on the loopback interface, on which no packet leaves the node. Put it on a dummy interface (ip "
        "link add dummy0 type dummy), which routing to the host serves as well, or set gpu_cluster_address to an address of the network."
    ),
    "port_in_use": "The rendezvous port {subject} of this node is in use, perhaps by another run; choose another.",
}


def describe(problem):
    """Return the sentence for a problem."""
    return SENTENCES[problem["code"]].format(subject=problem["subject"], **problem["detail"])
