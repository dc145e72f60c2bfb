# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A job of Slurm's in words: what it waits for, why there is none, and how it ended. Pure.

A job is a mapping as launch/answers.py reads it of a node; launch/node/slurm.py writes it there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WAITING = (
    "CONFIGURING",
    "PENDING",
    "REQUEUED",
    "REQUEUE_FED",
    "REQUEUE_HOLD",
    "RESV_DEL_HOLD",
    "SPECIAL_EXIT",
    "SUSPENDED",
)
DONE = "COMPLETED"
# What Slurm writes where it has no reason.
_NO_REASON = ("", "none", "(null)")
_WHY_NONE = {
    "silent": "Slurm's controller does not answer this node: {reason}; playbook verify.yml says what is wrong with it",
    "foreign": "{node} is no node of the Slurm cluster; slurm_node_name is to be what slurm.conf calls it",
    "out": "Slurm has {node} as {state} ({reason}); remove the cause, then 'scontrol update NodeName={node} State=RESUME'",
    "refused": "sbatch refused the job: {reason}",
}
_ENDS = {
    "BOOT_FAIL": "ended because a node did not boot",
    "CANCELLED": "was cancelled from outside",
    "DEADLINE": "was ended by its deadline",
    "FAILED": "failed",
    "NODE_FAIL": "lost a node",
    "OUT_OF_MEMORY": "had not enough main memory",
    "PREEMPTED": "had to leave its nodes to another job",
}


def is_waiting(job: Mapping[str, Any] | None) -> bool:
    """Return True if a job waits for Slurm to let it begin, or begin again."""
    return job is not None and job["state"] in WAITING


def is_task_to_blame(job: Mapping[str, Any] | None) -> bool:
    """Return True if a job ended because a task did, whose log says more."""
    return job is not None and job["state"] == "FAILED" and not job["expired"]


def describe_waiting(job: Mapping[str, Any], seconds: float | None = None) -> str:
    """Return the phrase that a job waits, with Slurm's reason; where it has waited for too long, for how long."""
    told = f" ({job['reason']})" if job["reason"].lower() not in _NO_REASON else ""
    state = job["state"].lower().replace("_", " ")
    if seconds is None:
        return f"job {job['id']} is {state}{told}"
    return (
        f"Slurm's job {job['id']} is still {state} after {seconds:g} s{told}; set train_start_timeout for a longer wait"
    )


def describe_end(job: Mapping[str, Any] | None) -> str | None:
    """Return the phrase why there is no job, or how one ended; None for one that ended well or of which nothing is known."""
    if job is None or (not job["code"] and job["state"] == DONE):
        return None
    if job["code"] in _WHY_NONE:
        reason = job["reason"] if job["reason"].lower() not in _NO_REASON else "without a reason"
        return _WHY_NONE[job["code"]].format(**{**job, "reason": reason.rstrip(".")})
    if job["expired"]:
        return f"Slurm's job {job['id']} reached its time limit ({job['limit'] or 'unknown'})"
    end = _ENDS.get(job["state"])
    return f"Slurm's job {job['id']} {end}" if end else None
