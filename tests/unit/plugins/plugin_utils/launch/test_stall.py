# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why ranks waited, from dumps that PyTorch wrote with Gloo, and from the same with the states that NCCL's have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.training import flight
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.training import Stall
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch import outcome
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.stall import describe_stall, find_stall

DUMPS = Path(__file__).parents[2] / "module_utils" / "training" / "dumps"
NODES = ("gpu-1", "gpu-2", "gpu-3")


def recorded(name):
    return flight.groups(flight.load((DUMPS / name).read_bytes()))


def nodes(*dumps):
    """The outcomes of nodes with one rank each; None: it wrote no dump."""
    found = [
        {"node": node, "ranks": [rank], "flight": {str(rank): one} if one else {}}
        for rank, (node, one) in enumerate(zip(NODES, dumps, strict=True))
    ]
    return json.loads(json.dumps(found))  # they travel so


def collective(sequence, state="completed", operation="nccl:all_reduce", sizes=((8, 4),), created=0):
    return {"sequence": sequence, "operation": operation, "sizes": [list(one) for one in sizes], "state": state,
            "place": "train.py:9", "created": created or sequence}  # fmt: skip


def group(enqueued, completed, *collectives, ranks=(0, 1, 2), description="default_pg"):
    return {"description": description, "ranks": list(ranks) if ranks else None, "enqueued": enqueued, "completed": completed,
            "collectives": list(collectives)}  # fmt: skip


def test_the_rank_that_did_not_begin_what_the_others_waited_in():
    found = find_stall(nodes(*(recorded(f"absent-rank{rank}") for rank in range(3))))
    place = found.pop("place")
    assert place.startswith("train.py:")
    assert found == {
        "code": "absent", "ranks": [{"rank": 1, "node": "gpu-2"}], "operation": "gloo:all_reduce", "sequence": 4, "group": "default_pg",
        "sizes": [[8, 4]], "waiting": 2,
    }  # fmt: skip
    assert describe_stall(parse(Stall, {**found, "place": "train.py:19"})) == (
        "rank 1 on gpu-2 did not begin gloo:all_reduce (collective 4 of default_pg, train.py:19), in which 2 ranks waited"
    )


def nccl(name):
    """As NCCL's watchdog leaves it: what timed out is not completed."""
    found = recorded(name)
    found["0"]["completed"] = 3
    for one in found["0"]["collectives"]:
        one["state"] = "completed" if one["sequence"] < 4 else "started"
    return found


def test_a_rank_that_began_something_else():
    stall = find_stall(nodes(nccl("mismatch-rank0"), nccl("mismatch-rank0"), nccl("mismatch-rank2")))
    assert (stall["code"], stall["ranks"], stall["waiting"]) == ("different", [{"rank": 2, "node": "gpu-3"}], 2)
    assert "rank 2 on gpu-3 began another operation" in describe_stall(parse(Stall, stall))


WAITS = group(7, 6, collective(6), collective(7, "started"))
LEFT = group(6, 6, collective(6))


@pytest.mark.parametrize(
    ("groups", "code", "ranks", "sentence"),
    [
        ((WAITS, WAITS, LEFT), "absent", [2], "rank 2 on gpu-3 did not begin nccl:all_reduce (collective 7 of"),
        ((WAITS, LEFT, LEFT), "absent", [1, 2], "rank 1 on gpu-2 and rank 2 on gpu-3 did not begin"),
        ((WAITS, WAITS, None), "silent", [2], "rank 2 on gpu-3 left no record, and 2 ranks waited in nccl:all_reduce"),
        ((WAITS, WAITS, WAITS), "joined", [], "all ranks had begun nccl:all_reduce"),
        # Ranks run ahead of their GPUs: the last that was begun says nothing.
        (
            (group(9, 6, collective(7, "started"), collective(9, "scheduled")), WAITS, WAITS),
            "joined",
            [],
            "collective 7",
        ),
        # A rank whose part in it is done, as the sender's of a broadcast.
        ((group(9, 7, collective(7), collective(8, "started")), WAITS, WAITS), "joined", [], "collective 7"),
        # Only where the sizes have to be equal.
        (
            (group(7, 6, collective(7, "started", "nccl:all_gather", [(3,)])), *[group(7, 6, collective(7, "started", "nccl:all_gather"))] * 2),
            "joined",
            [],
            "all ranks had begun nccl:all_gather",
        ),
        ((group(7, 6, collective(7, "started", sizes=[(3,)])), WAITS, WAITS), "different", [0], "rank 0 on gpu-1 began"),
    ],
)  # fmt: skip
def test_why_ranks_waited(groups, code, ranks, sentence):
    stall = find_stall(nodes(*({"0": one} if one else None for one in groups)))
    assert (stall["code"], [one["rank"] for one in stall["ranks"]]) == (code, ranks)
    assert sentence in describe_stall(parse(Stall, stall))


@pytest.mark.parametrize("groups", [(None, None, None), (LEFT, LEFT, LEFT), (LEFT, None, None)])
def test_where_nobody_waited_nothing_stalled(groups):
    assert find_stall(nodes(*({"0": one} if one else None for one in groups))) is None


def test_of_several_groups_the_one_that_stalled_first_is_told():
    """Ranks that wait in one group keep those of others waiting."""
    late = group(7, 6, collective(7, "started", created=900))
    early = group(3, 2, collective(3, "started", created=500), ranks=(0, 2), description="tensor")
    left = group(2, 2, ranks=(0, 2), description="tensor")
    stall = find_stall(nodes({"0": late, "5": early}, {"0": late}, {"0": late, "5": left}))
    assert (stall["group"], stall["ranks"]) == ("tensor", [{"rank": 2, "node": "gpu-3"}])


def test_a_group_without_its_ranks_is_of_those_that_have_it():
    """That of all ranks is of the whole run."""
    waits = group(7, 6, collective(7, "started"), ranks=())
    assert find_stall(nodes({"0": waits}, {"0": waits}, None))["ranks"] == [{"rank": 2, "node": "gpu-3"}]
    pair = {**waits, "description": "pipeline"}
    assert find_stall(nodes({"4": pair}, {"4": pair}, None))["code"] == "joined"


def test_a_rank_that_never_started_has_no_node():
    waits = group(7, 6, collective(7, "started"), ranks=(0, 1, 2, 3))
    stall = find_stall(nodes({"0": waits}, {"0": waits}, {"0": waits}))
    assert stall["ranks"] == [{"rank": 3, "node": None}]
    assert describe_stall(parse(Stall, stall)).startswith("rank 3 left no record")


def test_many_ranks_are_counted():
    waits = group(7, 6, collective(7, "started"), ranks=range(9))
    stall = find_stall(nodes({"0": waits}, None, None))
    assert "rank 1 on gpu-2 and rank 2 on gpu-3 and rank 3 and 5 more left no record" in describe_stall(
        parse(Stall, stall)
    )


def test_the_result_and_its_message_name_the_stall_where_the_run_failed():
    """The rank that timed out is what torchrun reports; whom it waited for is in the dumps."""
    bad = {"state": "failed", "result": "exit-code", "exit_code": 1, "signal": None, "pid": 1}
    lines = ["[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)"]
    ends = []
    for rank, one in enumerate((WAITS, WAITS, LEFT)):
        failure = {"rank": rank, "local_rank": 0, "exit_code": -6, "time": 90 + rank, "message": ""}
        stopped = {
            "service": bad, "ranks": [{"rank": rank, "world_size": 3, "started": 1.0, "last_output": None}], "now": 100.0,
            "agent": {"failures": [failure], "error": None}, "tails": {str(rank): lines}, "flight": {str(rank): {"0": one}},
        }  # fmt: skip
        ends.append(outcome.node_outcome(NODES[rank], 80.0, stopped, 100.0))
    result = outcome.run_result("r1", "train.py", NODES, ends)
    assert result["stall"]["ranks"] == [{"rank": 2, "node": "gpu-3"}]
    assert "rank 0 was killed by SIGABRT; rank 2 on gpu-3 did not begin nccl:all_reduce" in outcome.message(
        result, "gpu-1", "/r"
    )


GAVE_UP = "RuntimeError: [../gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 300000ms for recv operation to complete"
RESET = "RuntimeError: [../gloo/transport/tcp/pair.cc:547] Connection reset by peer [10.0.0.1]:41022"


def ended(node, tails, failures=(), state="failed"):
    """The outcome of a node whose ranks said this last, and ended so: {rank: exit code}."""
    service = {"state": state, "result": "exit-code", "exit_code": 1, "signal": None, "pid": 1}
    stopped = {
        "service": service, "ranks": [{"rank": rank, "world_size": 4, "started": 1.0} for rank in tails], "now": 100.0,
        "agent": {"failures": [{"rank": rank, "local_rank": 0, "exit_code": code, "time": 90, "message": ""} for rank, code in failures],
                  "error": None},
        "tails": {str(rank): [line] for rank, line in tails.items()},
    }  # fmt: skip
    return outcome.node_outcome(node, 80.0, stopped, 100.0, cause="" if state == "running" else None)


@pytest.mark.parametrize(
    ("first", "second", "ranks"),
    [
        # Gloo leaves no dumps. The other node was stopped when rank 0 had given up.
        (({0: GAVE_UP}, [(0, 1)]), ({1: "epoch 3"}, [], "running"), [1]),
        # torchrun ended rank 1 before it gave up, too.
        (({0: GAVE_UP, 1: "epoch 3"}, [(0, 1)]), ({2: "epoch 3"}, [], "running"), [2]),
        (({0: GAVE_UP, 1: "epoch 3"}, [(0, 1)]), ({2: GAVE_UP}, [(2, 1)]), [1]),
        (({0: GAVE_UP, 1: GAVE_UP}, [(0, 1)]), ({2: "", 3: ""}, [], "running"), [2, 3]),
        # What failed by itself is the cause, and what the others waited for.
        (({0: GAVE_UP}, [(0, 1)]), ({1: "ValueError: no"}, [(1, 3)]), None),
        (({0: GAVE_UP}, [(0, 1)]), ({1: GAVE_UP}, [(1, 1)]), None),
        (({0: RESET}, [(0, 1)]), ({1: "epoch 3"}, [], "running"), None),
    ],
)
def test_without_dumps_those_that_had_not_given_up_are_told(first, second, ranks):
    result = outcome.run_result("r1", "train.py", NODES[:2], [ended("gpu-1", *first), ended("gpu-2", *second)])
    found = result.get("stall")
    assert ([one["rank"] for one in found["ranks"]] if found else None) == ranks


def test_who_had_not_given_up_in_words():
    ends = [ended("gpu-1", {0: GAVE_UP}, [(0, 1)]), ended("gpu-2", {1: ""}, [], "running")]
    result = outcome.run_result("r1", "train.py", NODES[:2], ends)
    said = outcome.message(result, "gpu-1", "/r")
    assert "rank 0 exited with code 1; 1 rank gave up waiting, and rank 1 on gpu-2 had not; all logs" in said


def test_a_run_that_succeeded_has_no_stall():
    ends = [{**one, "status": "succeeded", "failures": [], "world_size": 3, "started": 1.0, "finished": 2.0, "metrics": None}
            for one in nodes({"0": WAITS}, {"0": WAITS}, {"0": LEFT})]  # fmt: skip
    assert "stall" not in outcome.run_result("r1", "train.py", NODES, ends)
