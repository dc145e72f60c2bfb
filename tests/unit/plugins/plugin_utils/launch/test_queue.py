# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch import queue


def job(state="PENDING", reason="None", **more):
    return {
        "id": 7, "state": state, "reason": reason, "restarts": 0, "limit": "08:00:00", "expired": False, "code": "", "node": "", **more,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("found", "waits"),
    [
        (None, False),
        (job(), True),
        (job("CONFIGURING"), True),
        (job("REQUEUED"), True),
        (job("RUNNING"), False),
        (job("COMPLETING"), False),
        (job("TIMEOUT"), False),
        (job("", code="out"), False),
    ],
)
def test_a_job_waits(found, waits):
    assert queue.is_waiting(found) is waits


@pytest.mark.parametrize(
    ("found", "seconds", "text"),
    [
        (job(), None, "job 7 is pending"),
        (job(reason="Resources"), None, "job 7 is pending (Resources)"),
        (job("REQUEUE_HOLD", "job_requeued_in_held_state"), None, "job 7 is requeue hold (job_requeued_in_held_state)"),
        (
            job(reason="ReqNodeNotAvail,_UnavailableNodes:gpu-2"),
            120,
            "Slurm's job 7 is still pending after 120 s (ReqNodeNotAvail,_UnavailableNodes:gpu-2); set train_start_timeout for a longer wait",
        ),
    ],
)
def test_what_a_job_waits_for(found, seconds, text):
    assert queue.describe_waiting(found, seconds) == text


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, None),
        (job("COMPLETED"), None),
        (job("RUNNING"), None),
        (job("FAILED", "NonZeroExitCode"), "Slurm's job 7 failed"),
        (job("CANCELLED"), "Slurm's job 7 was cancelled from outside"),
        (job("NODE_FAIL"), "Slurm's job 7 lost a node"),
        (job("PREEMPTED"), "Slurm's job 7 had to leave its nodes to another job"),
        (job("TIMEOUT", expired=True), "Slurm's job 7 reached its time limit (08:00:00)"),
        (job("FAILED", expired=True, limit=""), "Slurm's job 7 reached its time limit (unknown)"),
        (
            job("", "Unable to contact slurm controller (connect failure)", code="silent"),
            "Slurm's controller does not answer this node: Unable to contact slurm controller (connect failure); playbook verify.yml says what is "
            "wrong with it",
        ),
        (
            job("", "", code="foreign", node="gpu-2"),
            "gpu-2 is no node of the Slurm cluster; slurm_node_name is to be what slurm.conf calls it",
        ),
        (
            job("drained", "none", code="out", node="gpu-2"),
            "Slurm has gpu-2 as drained (without a reason); remove the cause, then 'scontrol update NodeName=gpu-2 State=RESUME'",
        ),
        (job("", "invalid partition.", code="refused"), "sbatch refused the job: invalid partition"),
        (job("", "{x}", code="refused"), "sbatch refused the job: {x}"),
        (job("", "", code="something"), None),
    ],
)
def test_how_a_job_ended_or_why_there_is_none(found, text):
    assert queue.describe_end(found) == text
