# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What module training_unit answers goes on; anything else is refused before a worker computes with it."""

import contextlib
import math

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.unit import judge_answer
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.values import Unfit
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.outcome import message, node_outcome, run_result
from hypothesis import given, settings
from hypothesis import strategies as st

RANK = {
    "rank": 0,
    "local_rank": 0,
    "world_size": 2,
    "attempt": 0,
    "started": 1.0,
    "last_output": None,
    "last_line": "step 1",
}
GROUP = {
    "description": "default_pg", "ranks": [0, 1], "enqueued": 3, "completed": 2,
    "collectives": [{"sequence": 3, "operation": "nccl:all_reduce", "sizes": [[4]], "state": "scheduled", "place": None, "created": 5}],
}  # fmt: skip
FAILURE = {"rank": 0, "exit_code": 1, "time": 2.0, "message": "no"}
ANSWER = {
    "service": {"state": "failed", "result": "exit-code"}, "end": "exited", "ranks": [RANK], "now": 3.0, "disk_full": False,
    "agent": {"failures": [FAILURE], "error": None, "finished": 2.0}, "tails": {"0": ["a"], "agent": []},
    "metrics": {"loss_last": math.nan, "samples_per_second": 10**400}, "flight": {"0": {"0": GROUP}}, "logs": "QUJD",
}  # fmt: skip


def test_an_answer_goes_on_without_what_nobody_reads():
    assert judge_answer({**ANSWER, "changed": True, "ansible_facts": {"x": 1}}) == ANSWER


@pytest.mark.parametrize(
    "said",
    [
        {"ranks": [{**RANK, "world_size": 10**400}]}, {"ranks": [{**RANK, "world_size": "x"}]}, {"ranks": [{**RANK, "rank": -1}]},
        {"ranks": {}}, {"ranks": [1]}, {"ranks": [{**RANK, "started": math.nan}]}, {"now": math.inf}, {"now": "x"}, {"tails": {"0": "x"}},
        {"tails": {"0": [1]}}, {"agent": {"failures": [{**FAILURE, "time": None}]}}, {"agent": []}, {"service": {"state": 1}}, {"service": "x"},
        {"flight": {"x": {"0": GROUP}}}, {"flight": {"0": {"0": {**GROUP, "completed": None}}}}, {"flight": {"9" * 5000: {}}},
        {"metrics": []}, {"metrics": {"x": "y" * 10_000_000}}, {"logs": 1}, {"rendezvous_error": {}}, {"versions": {"torch": 2}},
    ],
)  # fmt: skip
def test_what_it_never_answers_is_refused(said):
    with pytest.raises(Unfit):
        judge_answer({**ANSWER, **said})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(ANSWER, JSON)))
def test_what_passes_can_be_told(said):
    with contextlib.suppress(Unfit):
        answer = judge_answer({**ANSWER, **said})
        if not answer.get("service"):
            return
        outcome = node_outcome("gpu-1", 0.0, answer, 9.0)
        other = node_outcome("gpu-2", 0.0, judge_answer(ANSWER), 9.0)
        for result in (
            run_result("r", "s.py", ["gpu-1", "gpu-2"], [outcome, other]),
            run_result("r", "s.py", ["gpu-1"], [outcome]),
        ):
            message(result, "gpu-1", "/tmp")


def test_escapes_do_not_reach_the_terminal():
    stopped = {**ANSWER, "tails": {"0": ["\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m", "\x9b31m\x08"]}}
    result = run_result("r", "s.py", ["gpu-1"], [node_outcome("gpu-1", 0.0, judge_answer(stopped), 9.0)])
    text = message(result, "gpu-1", "/tmp")
    assert "red" in text and all(
        char.isprintable() or char == "\n" for char in text.replace("\N{REPLACEMENT CHARACTER}", "")
    )
