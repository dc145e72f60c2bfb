# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a run: each node's outcome, which failure came first, and the result of the whole run.

The outcome of a node is a dict, since it travels between the workers as JSON:
  node, status   succeeded | failed | stopped (because of another node)
  started, finished   seconds since the epoch, the controller's clock
  world_size     number of ranks of the run, None when none of this node's ever started
  failures       [{rank, exit_code, time, reason, tail, lost_peer}], rank and exit_code None where no rank failed;
                 with node when another node than this one is to blame, with code where memory was exhausted (memory.py)
  metrics        what this node's rank 0 wrote, or None
  ranks, waited, flight  the numbers of its ranks that started, and of those that gave up waiting; what their flight recorders left
                 (stall.py)
  job            {id, restarts} of a run that Slurm scheduled, on the node that submitted it
  unread         {what its ranks left: why it could not be read}
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from ..documents.parsing import parse
from ..documents.training import Metrics, Stall
from ..problems.phrases import clean
from . import queue
from .memory import PAGE, describe_exhausted, exhausted
from .stall import describe_stall, find_stall

# What a rank says that dies because another one did: Gloo, NCCL, the TCP store, torchrun's rendezvous, sockets, Horovod, Open MPI.
_LOST_PEER = re.compile(
    r"Connection (reset|closed|refused|aborted)|Broken pipe|remote process exited|ncclRemoteError|"
    r"RendezvousConnectionError|RendezvousClosedError|RendezvousTimeoutError|DistNetworkError|DistStoreError|"
    r"Watchdog caught collective operation timeout|Timed out waiting \d+ms for (recv|send)|Socket Timeout|"
    r"failed to (recv|send), got 0 bytes|NCCL communicator was aborted|Application timeout caused pair closure|wait timeout after \d+ms, keys|"
    r"errors while waiting for send/recv from rank|Got completion from peer \S+ with status=1[23]\b|Horovod has been shut down|"
    r"MPI_ERR_PROC_FAILED|has lost communication with a remote daemon",
    re.IGNORECASE,
)

# Of these, what a rank says that has waited for another one for as long as it may.
_GAVE_UP = re.compile(
    r"Watchdog caught collective operation timeout|Timed out waiting \d+ms for (recv|send)|Application timeout caused pair closure|"
    r"wait timeout after \d+ms, keys",
    re.IGNORECASE,
)


def node_outcome(
    node: str,
    started: float,
    stopped: Mapping,
    received: float,
    cause: str | None = None,
    culprit: str | None = None,
    engine: str = "torchrun",
) -> dict:
    """Return the outcome of one node from what module training_unit returned at its end.

    RECEIVED is the controller's time at that moment; with the node's own clock in STOPPED it puts the times of
    all nodes on one scale. CAUSE is why the controller stopped the node although it was running: a sentence of this
    node's own (timeout, stalled start), or "" when another node failed. CULPRIT is the node to look at then, if not this one.
    ENGINE is the program that starts the ranks.
    """
    offset = received - stopped.get("now", received)
    ranks = stopped.get("ranks") or []
    outcome: dict[str, Any] = {
        "node": node,
        "started": started,
        "finished": received,
        "world_size": max(ranks, key=lambda rank: rank.get("started", 0))["world_size"] if ranks else None,
        "metrics": stopped.get("metrics"),
        "failures": _rank_failures(stopped, ranks, offset),
        "ranks": [rank["rank"] for rank in ranks],
        "waited": [rank["rank"] for rank in ranks if _gave_up((stopped.get("tails") or {}).get(str(rank["rank"]), []))],
        "flight": stopped.get("flight") or {},
        "job": _job(stopped.get("job")),
        "unread": {
            **{f"the dump of rank {rank}": why for rank, why in (stopped.get("flight_errors") or {}).items()},
            **({"its metrics": stopped["metrics_error"]} if stopped.get("metrics_error") else {}),
        },
    }
    # A rank may have failed in the very moment in which the controller stopped the node for another reason.
    if not outcome["failures"] and (cause or (cause is None and not _succeeded(stopped))):
        outcome["failures"] = [{**_node_failure(stopped, cause, received, engine), "node": culprit or node}]
    if stopped.get("disk_full"):
        for failure in outcome["failures"]:
            failure["reason"] += " (the disk with /var/lib/allreduce is full)"
    for fault in stopped.get("mount_faults") or ():
        for failure in outcome["failures"]:
            failure["reason"] += f" ({fault})"
    outcome["status"] = "failed" if outcome["failures"] else "succeeded" if cause is None else "stopped"
    return outcome


def lost_outcome(node: str, started: float, now: float, reason: str) -> dict:
    """Return the outcome of a node of which nothing more is known than REASON."""
    failure: dict[str, Any] = {
        "rank": None, "exit_code": None, "time": now, "reason": reason, "tail": [], "lost_peer": False,
    }  # fmt: skip
    return {
        "node": node, "started": started, "finished": now, "world_size": None, "metrics": None,
        "failures": [failure], "status": "failed",
    }  # fmt: skip


def first_failure(outcomes: Sequence[Mapping]) -> dict | None:
    """Return the failure that caused the others, with its node: the earliest that is not about a lost peer."""
    failures = [{"node": outcome["node"], **failure} for outcome in outcomes for failure in outcome["failures"]]
    return min(failures, key=lambda failure: (failure["lost_peer"], failure["time"]), default=None)


def lost_nodes(outcomes: Sequence[Mapping], min_nodes: int) -> list[dict[str, str]]:
    """Return [{node, reason}] of the nodes without which the run succeeded; empty when it failed, or lost none."""
    if sum(outcome["status"] == "succeeded" for outcome in outcomes) < min_nodes:
        return []
    failed = (first_failure([outcome]) for outcome in outcomes)
    return [{"node": one["node"], "reason": one["reason"]} for one in failed if one]


def run_result(
    run_id: str, script: str, nodes: Sequence[str], outcomes: Sequence[Mapping], min_nodes: int | None = None
) -> dict:
    """Return the content of result.json; without MIN_NODES, all must succeed."""
    lost = lost_nodes(outcomes, len(nodes) if min_nodes is None else min_nodes)
    failure = None if lost else first_failure(outcomes)
    sizes = [o["world_size"] for o in outcomes if o["world_size"] and (not lost or o["status"] == "succeeded")]
    jobs = [outcome["job"] for outcome in outcomes if outcome.get("job")]
    metrics = [outcome["metrics"] for outcome in outcomes if outcome["metrics"]]
    shown = [key for key in ("node", "rank", "exit_code", "reason", "code", "tail") if failure and key in failure]
    stall = find_stall(outcomes) if failure else None
    return {
        "format": 1,
        "run_id": run_id,
        "script": script,
        "nodes": list(nodes),
        "world_size": max(sizes, default=None),
        "started": iso(min(outcome["started"] for outcome in outcomes)),
        "finished": iso(max(outcome["finished"] for outcome in outcomes)),
        "status": "failed" if failure else "succeeded",
        "failure": {key: failure[key] for key in shown} if failure else None,
        "metrics": metrics[0] if metrics else None,
        **({"job": jobs[0]} if jobs else {}),
        **({"lost": lost} if lost else {}),
        **({"stall": stall} if stall else {}),
    }


def message(result: Mapping, node: str, directory: str) -> str:
    """Return the task's message on NODE: one sentence, on the node of the cause with the failing rank's last lines."""
    return clean(_message(result, node, directory))


def _message(result: Mapping, node: str, directory: str) -> str:
    failure = result["failure"]
    if failure is None:
        lost = result.get("lost", [])
        size, count = result["world_size"], len(result["nodes"]) - len(lost)
        ranks, nodes = f"{size} rank{'s' * (size != 1)}", f"{count} node{'s' * (count != 1)}"
        return f"{result['script']} ran with {ranks} on {nodes}{_achieved(Metrics.read(result['metrics']))}{_losses(lost)}."
    if failure["node"] != node:
        return f"Stopped on {node} because {failure['node']} failed: {failure['reason']}."
    tail = "".join(f"\n  {line}" for line in failure["tail"])
    page = f"; {PAGE}" if failure.get("code") else ""
    stall = f"; {describe_stall(parse(Stall, result['stall']))}" if result.get("stall") else ""
    return f"Training failed on {node}: {failure['reason']}{page}{stall}; all logs are in {directory}/logs.{tail}"


def _losses(lost: Sequence[Mapping]) -> str:
    return "".join(f"; it lost {one['node']}: {one['reason']}" for one in lost)


def _achieved(metrics: Metrics) -> str:
    rate, first, last = metrics.samples_per_second, metrics.loss_first, metrics.loss_last
    text = f": {rate:.0f} samples/s" if rate is not None else ""
    if first is not None and last is not None:
        text += f"{', ' if text else ': '}loss {first:.4g} -> {last:.4g}"
    return text


def end_phrase(exit_code: int) -> str:
    """Return 'exited with code 3', or 'was killed by SIGKILL (often the out-of-memory killer)'."""
    if exit_code >= 0:
        return f"exited with code {exit_code}"
    try:
        name = signal.Signals(-exit_code).name
    except ValueError:
        name = f"signal {-exit_code}"
    return f"was killed by {name}" + (" (often the out-of-memory killer)" if name == "SIGKILL" else "")


def iso(seconds: float) -> str:
    """Return seconds since the epoch as ISO 8601: 2026-11-21T15:30:00Z."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _succeeded(stopped: Mapping) -> bool:
    agent = stopped.get("agent") or {}
    # A unit that has ended is forgotten with its lease, or by a call whose answer was lost.
    return (
        stopped["service"]["state"] in ("succeeded", "absent")
        and bool(agent)
        and not agent["error"]
        and not agent["failures"]
    )


def _rank_failures(stopped: Mapping, ranks: Sequence[Mapping], offset: float) -> list[dict]:
    """Failures that torchrun reported, without those of ranks which it ended itself because of another one."""
    last_output = {rank["rank"]: rank.get("last_output") for rank in ranks}
    failures = []
    for failure in (stopped.get("agent") or {}).get("failures", []):
        tail = (stopped.get("tails") or {}).get(str(failure["rank"]), [])
        memory = exhausted((stopped.get("exceptions") or {}).get(str(failure["rank"]), []))
        end = describe_exhausted(*memory) if memory else end_phrase(failure["exit_code"])
        # torchrun gives whole seconds; a rank's last output is finer, and not later than its end.
        when = min(failure["time"] + 1, last_output.get(failure["rank"]) or failure["time"])
        failures.append({
            "rank": failure["rank"],
            "exit_code": failure["exit_code"],
            "time": when + offset,
            "reason": f"rank {failure['rank']} {end}",
            **({"code": memory[0]} if memory else {}),
            "tail": tail,
            "lost_peer": not memory and (failure["exit_code"] == -signal.SIGTERM or _lost_peer([failure["message"], *tail])),
        })  # fmt: skip
    return failures


def _node_failure(stopped: Mapping, cause: str | None, received: float, engine: str) -> dict:
    agent = stopped.get("agent") or {}
    tail = (stopped.get("tails") or {}).get("agent", [])
    error = agent.get("error")
    job = None if agent.get("engine") else stopped.get("job")
    job_end = queue.describe_end(job)
    says_all = cause or (job_end and not queue.is_task_to_blame(job))
    engine = agent.get("engine") or engine
    reason = cause or job_end or (f"{engine} ended: {error}" if error else f"{engine} {stopped.get('end', 'ended')}")
    lost = not says_all and _lost_peer([error or "", *tail])
    return {
        "rank": None, "exit_code": None, "time": agent.get("finished") or received, "reason": reason.rstrip("."),
        "tail": [] if says_all else tail, "lost_peer": lost,
    }  # fmt: skip


def _job(job: Mapping | None) -> dict | None:
    return {"id": job["id"], "restarts": job["restarts"]} if job and job["id"] is not None else None


def _gave_up(lines: Sequence[str]) -> bool:
    return any(_GAVE_UP.search(line) for line in lines)


def _lost_peer(lines: Sequence[str]) -> bool:
    return any(_LOST_PEER.search(line) for line in lines)
