# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.training import TrainingFailure
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch import outcome

RESET = "RuntimeError: [../third_party/gloo] Connection closed by peer [10.0.0.2]:41022"
GOOD = {"state": "succeeded", "result": "success", "exit_code": 0, "signal": None, "pid": 1}
BAD = {"state": "failed", "result": "exit-code", "exit_code": 1, "signal": None, "pid": 1}
RUNNING = {"state": "running", "result": "success", "exit_code": None, "signal": None, "pid": 7}


def rank(number, last_output=None):
    return {"rank": number, "local_rank": 0, "world_size": 2, "attempt": 0, "started": 90.0,
            "last_output": last_output, "last_line": ""}  # fmt: skip


def failed_rank(number, exit_code, time, message=""):
    return {"rank": number, "local_rank": 0, "exit_code": exit_code, "time": time, "message": message}


def stopped(service, ranks=(), failures=(), error=None, tails=None, now=100.0, **more):
    agent = {"failures": list(failures), "error": error, "finished": now}
    return {"service": service, "ranks": list(ranks), "agent": agent, "tails": tails or {}, "now": now, **more}


def ended(node, data, received=100.0, cause=None):
    return outcome.node_outcome(node, 80.0, data, received, cause)


def test_a_node_whose_agent_ended_well_has_succeeded():
    found = ended("gpu-1", stopped(GOOD, [rank(0)], metrics={"loss_last": 1}))
    assert (found["status"], found["failures"], found["world_size"], found["metrics"]) == (
        "succeeded", [], 2, {"loss_last": 1})  # fmt: skip


def test_a_rank_that_exits_is_the_failure_of_its_node():
    tails = {"1": ["Traceback", "ValueError: no"]}
    found = ended("gpu-2", stopped(BAD, [rank(1, 99.5)], [failed_rank(1, 3, 99)], tails=tails))
    assert found["status"] == "failed"
    assert found["failures"] == [
        {"rank": 1, "exit_code": 3, "time": 99.5, "reason": "rank 1 exited with code 3",
         "tail": ["Traceback", "ValueError: no"], "lost_peer": False}
    ]  # fmt: skip


def test_the_rank_that_lost_its_peer_is_not_the_cause_even_when_it_is_seen_first():
    first = ended("gpu-1", stopped(BAD, [rank(0, 99.1)], [failed_rank(0, 1, 99)], tails={"0": [RESET]}))
    second = ended("gpu-2", stopped(BAD, [rank(1, 99.4)], [failed_rank(1, 3, 99)]))
    assert outcome.first_failure([first, second])["node"] == "gpu-2"


JOB = {"id": 7, "state": "FAILED", "reason": "", "restarts": 2, "limit": "", "expired": False, "code": "", "node": ""}


@pytest.mark.parametrize(
    ("job", "agent", "reason", "is_shown"),
    [
        (JOB, {"error": "FAILED"}, "Slurm's job 7 failed", True),
        ({**JOB, "expired": True}, {"error": "FAILED"}, "Slurm's job 7 reached its time limit (unknown)", False),
        ({**JOB, "state": "CANCELLED"}, {"error": "CANCELLED"}, "Slurm's job 7 was cancelled from outside", False),
        (JOB, {"error": "RuntimeError: no GPU", "engine": "torchrun"}, "torchrun ended: RuntimeError: no GPU", True),
        ({**JOB, "state": "RUNNING"}, {"error": "signal 15"}, "slurm ended: signal 15", True),
    ],
)
def test_the_end_of_a_job_is_the_reason_unless_its_task_has_one(job, agent, reason, is_shown):
    data = stopped(BAD, job=job, tails={"agent": ["SignalException"]})
    data["agent"].update(agent)
    found = outcome.node_outcome("gpu-1", 80.0, data, 100.0, engine="slurm")
    assert found["failures"][0]["reason"] == reason
    assert found["failures"][0]["tail"] == (["SignalException"] if is_shown else [])
    assert outcome.run_result("r1", "train.py", ["gpu-1"], [found])["job"] == {"id": 7, "restarts": 2}


def test_a_job_that_was_never_submitted_has_no_number():
    data = stopped(BAD, job={**JOB, "id": None, "code": "refused", "reason": "invalid account"}, error="refused")
    found = ended("gpu-1", data)
    assert found["failures"][0]["reason"] == "sbatch refused the job: invalid account"
    assert "job" not in outcome.run_result("r1", "train.py", ["gpu-1"], [found])


@pytest.mark.parametrize(
    "line",
    [
        "torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error",
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection reset by peer",
        "torch.distributed.DistBackendError: [3] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via c10d key-value "
        "store by key '0', but store->get('0') got error: wait timeout after 600000ms, keys: /default_pg/0//cuda//0",
        "RuntimeError: Rank 1 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0.",
        "NET/IB : Got completion from peer 10.0.0.2<43214> with status=12 opcode=129 len=0 vendor err 129 (Recv)",
        "horovod.common.exceptions.HorovodInternalError: Horovod has been shut down. This was caused by an exception on one of the ranks",
        "[gpu-2:1234] *** MPI_ERR_PROC_FAILED: Process Failure",
        "PRTE has lost communication with a remote daemon.",
        "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed.",
        "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=2)",
    ],
)
def test_words_of_a_lost_peer_are_known(line):
    found = ended("gpu-1", stopped(BAD, [rank(0)], [failed_rank(0, 1, 99)], tails={"0": [line]}))
    assert found["failures"][0]["lost_peer"]


def test_of_two_real_failures_the_earlier_one_on_one_clock_is_the_cause():
    # gpu-1's clock is 50 s ahead: its 145 is 95 on the controller's.
    ahead = ended("gpu-1", stopped(BAD, [rank(0)], [failed_rank(0, 2, 145)], now=150.0), received=100.0)
    exact = ended("gpu-2", stopped(BAD, [rank(1)], [failed_rank(1, 3, 99)]))
    assert outcome.first_failure([exact, ahead])["node"] == "gpu-1"


def test_a_rank_ended_by_torchrun_is_not_the_cause():
    failures = [failed_rank(0, -15, 98), failed_rank(1, -9, 99)]
    found = ended("gpu-1", stopped(BAD, [rank(0), rank(1)], failures))
    cause = outcome.first_failure([found])
    assert (cause["rank"], cause["reason"]) == (1, "rank 1 was killed by SIGKILL (often the out-of-memory killer)")


@pytest.mark.parametrize(
    ("names", "code", "words"),
    [
        (["torch.OutOfMemoryError", "builtins.RuntimeError"], "gpu_memory", "GPU memory (torch.OutOfMemoryError)"),
        (["torch.cuda.OutOfMemoryError"], "gpu_memory", "GPU memory (torch.cuda.OutOfMemoryError)"),
        # CuPy's is a MemoryError, too.
        (["cupy.cuda.memory.OutOfMemoryError", "builtins.MemoryError"], "gpu_memory", "GPU memory (cupy.cuda.memory.OutOfMemoryError)"),
        (["numpy._core._exceptions._ArrayMemoryError", "builtins.MemoryError"], "main_memory", "main memory (MemoryError)"),
        (["builtins.ValueError", "torch.OutOfMemoryError"], "gpu_memory", "GPU memory (torch.OutOfMemoryError)"),
        (["tensorflow.python.framework.errors_impl.ResourceExhaustedError"], "memory",
         "memory (tensorflow.python.framework.errors_impl.ResourceExhaustedError)"),
    ],
)  # fmt: skip
def test_a_rank_that_ran_out_of_memory_is_named_by_the_type_of_its_exception(names, code, words):
    # What it says besides is of another kind: it had begun an exchange with the others.
    data = stopped(BAD, [rank(1)], [failed_rank(1, 1, 99)], tails={"1": [RESET]}, exceptions={"1": names})
    found = outcome.run_result(
        "r1", "train.py", ["gpu-1", "gpu-2"], [ended("gpu-1", stopped(GOOD)), ended("gpu-2", data)]
    )
    assert not ended("gpu-2", data)["failures"][0]["lost_peer"]
    failure = found["failure"]
    assert (failure["node"], failure["rank"], failure["code"]) == ("gpu-2", 1, code)
    assert failure["reason"] == f"rank 1 ran out of {words}"
    text = outcome.message(found, "gpu-2", "/r")
    assert text.startswith(
        f"Training failed on gpu-2: rank 1 ran out of {words}; docs/training.md, 'Out of memory', says what to do; all logs"
    )
    assert outcome.message(found, "gpu-1", "/r") == f"Stopped on gpu-1 because gpu-2 failed: rank 1 ran out of {words}."
    assert parse(TrainingFailure, failure).code == code


def test_words_about_memory_alone_decide_nothing():
    tails = {"1": ["torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB"]}
    failures = [failed_rank(1, 1, 99, "torch.OutOfMemoryError: CUDA out of memory")]
    for names in ([], ["builtins.RuntimeError"], ["__main__.OutOfMemoryError"]):
        data = stopped(BAD, [rank(1)], failures, tails=tails, exceptions={"1": names})
        found = ended("gpu-2", data)["failures"][0]
        assert (found["reason"], found.get("code")) == ("rank 1 exited with code 1", None)


def test_the_page_about_memory_is_there():
    name, heading = outcome.PAGE.partition(", says")[0].split(", ")
    text = (Path(__file__).resolve().parents[5] / name).read_text(encoding="utf-8")
    assert "\n## " + heading.strip("'") + "\n" in text


def test_torchrun_itself_may_fail():
    tails = {"agent": ["PyTorch 2.13.0+cu130 is a GPU build but sees no GPU"]}
    found = ended("gpu-1", stopped(BAD, error="RuntimeError: no GPU", tails=tails))
    failure = found["failures"][0]
    assert failure["reason"] == "torchrun ended: RuntimeError: no GPU"
    assert failure["tail"] == tails["agent"]
    assert (failure["rank"], failure["exit_code"]) == (None, None)


def test_a_killed_agent_is_described_by_systemd():
    data = {"service": BAD, "ranks": [], "agent": None, "now": 100.0, "end": "was killed by signal 9"}
    assert ended("gpu-1", data)["failures"][0]["reason"] == "torchrun was killed by signal 9"


def test_a_full_disk_is_named_since_the_logs_cannot():
    data = {"service": BAD, "ranks": [], "agent": None, "now": 100.0, "end": "exited with code 120", "disk_full": True}
    assert ended("gpu-1", data)["failures"][0]["reason"] == (
        "torchrun exited with code 120 (the disk with /var/lib/allreduce is full)"
    )


def test_a_file_system_that_hangs_is_named():
    fault = "/data: nfs4 of nfs-1:/data does not answer within 5 s"
    data = {
        "service": BAD,
        "ranks": [],
        "agent": None,
        "now": 100.0,
        "end": "was killed by signal 9",
        "mount_faults": [fault],
    }
    assert ended("gpu-1", data)["failures"][0]["reason"] == f"torchrun was killed by signal 9 ({fault})"


def test_a_node_stopped_because_of_another_one_has_no_failure():
    found = ended("gpu-1", stopped(RUNNING, [rank(0)], error="SignalException: got 15"), cause="")
    assert (found["status"], found["failures"]) == ("stopped", [])


def test_a_node_stopped_for_its_own_sake_says_why():
    found = ended("gpu-1", stopped(RUNNING, [rank(0)]), cause="the run did not end within its timeout of 5 s")
    assert found["status"] == "failed"
    assert found["failures"][0]["reason"] == "the run did not end within its timeout of 5 s"


def test_a_result_has_the_shape_of_result_json():
    first = ended("gpu-1", stopped(RUNNING, [rank(0)]), cause="")
    second = ended("gpu-2", stopped(BAD, [rank(1)], [failed_rank(1, 3, 99)], tails={"1": ["boom"]}), received=101.0)
    assert outcome.run_result("r1", "train.py", ["gpu-1", "gpu-2"], [first, second]) == {
        "format": 1,
        "run_id": "r1",
        "script": "train.py",
        "nodes": ["gpu-1", "gpu-2"],
        "world_size": 2,
        "started": "1970-01-01T00:01:20Z",
        "finished": "1970-01-01T00:01:41Z",
        "status": "failed",
        "failure": {
            "node": "gpu-2",
            "rank": 1,
            "exit_code": 3,
            "reason": "rank 1 exited with code 3",
            "tail": ["boom"],
        },
        "metrics": None,
    }


def result(**changes):
    good = {"script": "train.py", "nodes": ["gpu-1", "gpu-2"], "world_size": 2, "failure": None, "metrics": None}
    return {**good, **changes}


@pytest.mark.parametrize(
    ("metrics", "end"),
    [
        (None, "."),
        (
            {"samples_per_second": 1234.5, "loss_first": 2.302, "loss_last": 0.0017},
            ": 1234 samples/s, loss 2.302 -> 0.0017.",
        ),
        ({"loss_first": 2.302, "loss_last": 0.0017}, ": loss 2.302 -> 0.0017."),
        ({"samples_per_second": "many"}, "."),
        ({"samples_per_second": 10**400, "loss_first": True, "loss_last": 1}, ": inf samples/s."),
        ({"loss_first": "2.5", "loss_last": float("nan")}, ": loss 2.5 -> nan."),
    ],
)
def test_success_is_told_with_the_usual_numbers(metrics, end):
    text = outcome.message(result(metrics=metrics), "gpu-1", "/r")
    assert text == "train.py ran with 2 ranks on 2 nodes" + end


def test_one_is_not_plural():
    assert outcome.message(result(nodes=["a"], world_size=1), "a", "/r") == "train.py ran with 1 rank on 1 node."


def test_the_failing_node_shows_the_tail_and_the_others_name_it():
    failure = {"node": "gpu-2", "rank": 1, "exit_code": 3, "reason": "rank 1 exited with code 3", "tail": ["a", "b"]}
    failed = result(failure=failure)
    assert outcome.message(failed, "gpu-2", "/r") == (
        "Training failed on gpu-2: rank 1 exited with code 3; all logs are in /r/logs.\n  a\n  b"
    )
    assert outcome.message(failed, "gpu-1", "/r") == (
        "Stopped on gpu-1 because gpu-2 failed: rank 1 exited with code 3."
    )


def part(node, status, size=None, **failure):
    shown = {"rank": None, "exit_code": None, "time": 9.0, "reason": "it went", "tail": [], "lost_peer": False}
    failures = [{**shown, **failure}] if status == "failed" else []
    return {
        "node": node, "status": status, "started": 0.0, "finished": 10.0, "world_size": size, "failures": failures,
        "metrics": {"loss_last": 1} if status == "succeeded" else None,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("outcomes", "least", "status", "lost"),
    [
        ([part("gpu-1", "failed", 2), part("gpu-2", "succeeded", 1)], 1, "succeeded", ["gpu-1"]),
        ([part("gpu-1", "failed", 2), part("gpu-2", "succeeded", 1)], 2, "failed", None),
        ([part("gpu-1", "failed", 2), part("gpu-2", "succeeded", 1)], None, "failed", None),
        ([part("gpu-1", "failed", 2), part("gpu-2", "failed", 2, lost_peer=True)], 1, "failed", None),
        ([part("gpu-1", "succeeded", 2), part("gpu-2", "succeeded", 2)], 1, "succeeded", None),
    ],
)
def test_a_run_that_may_lose_nodes_succeeds_with_those_it_needs(outcomes, least, status, lost):
    result = outcome.run_result("r1", "train.py", ["gpu-1", "gpu-2"], outcomes, least)
    assert result["status"] == status
    assert result.get("lost") == (lost and [{"node": node, "reason": "it went"} for node in lost])
    if lost:
        assert (result["world_size"], result["failure"]) == (1, None)
        assert outcome.message(result, "gpu-2", "/x").endswith("; it lost gpu-1: it went.")
        assert "ran with 1 rank on 1 node" in outcome.message(result, "gpu-2", "/x")


def test_the_size_of_a_run_is_that_of_the_ranks_that_began_last():
    notes = [{"rank": 0, "world_size": 1, "started": 5.0}, {"rank": 1, "world_size": 2, "started": 1.0}]
    stopped = {"ranks": notes, "service": {"state": "succeeded"}, "agent": {"failures": [], "error": None}}
    assert outcome.node_outcome("gpu-2", 0.0, stopped, 9.0)["world_size"] == 1


def test_a_failure_names_the_program_that_started_the_ranks():
    stopped = {"service": {"state": "failed"}, "agent": {"failures": [], "error": "exit code 1"}}
    (failure,) = outcome.node_outcome("gpu-1", 0.0, stopped, 9.0, engine="mpirun")["failures"]
    assert failure["reason"] == "mpirun ended: exit code 1"
