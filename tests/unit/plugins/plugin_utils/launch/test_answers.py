# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a hostile node answers about a run: it is refused, or everything that is made of it can be made and shown."""

import contextlib
import json

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.answers import harmless, read_answer
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.follow import progress_line
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.job import Place
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.outcome import message, node_outcome, run_result
from hypothesis import given
from hypothesis import strategies as st

PLACE = Place("gpu-1", ("gpu-1",), {"gpu-1": "10.0.0.1"}, 29500)
RANK = {"rank": 0, "world_size": 2, "started": 5.0, "last_output": 6.0, "last_line": "epoch 1"}
FAILURE = {"rank": 0, "exit_code": 1, "time": 7, "message": "no"}
COLLECTIVE = {
    "sequence": 1,
    "operation": "nccl:all_reduce",
    "state": "scheduled",
    "created": 1,
    "sizes": [[1]],
    "place": "a.py:1",
}
GROUP = {"description": "default_pg", "enqueued": 1, "completed": 0, "ranks": [0], "collectives": [COLLECTIVE]}
ANSWER = {
    "service": {"state": "failed"}, "now": 8.0, "ranks": [RANK], "agent": {"failures": [FAILURE], "error": None}, "end": "ended",
    "tails": {"0": ["boom"]}, "metrics": {"loss_last": 1}, "flight": {"0": {"0": GROUP}}, "flight_errors": {"1": "damaged"},
    "exceptions": {"0": ["torch.OutOfMemoryError"]}, "job": {"id": 7, "state": "PENDING", "reason": "Resources", "restarts": 1},
    "metrics_error": None, "disk_full": False, "mount_faults": [], "logs": None, "versions": {}, "rendezvous_error": None,
}  # fmt: skip
ESCAPE = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x9b0m\u202e\x08"


def used(answer):
    """Return every text that is made of an answer."""
    seen = read_answer(answer)
    outcome = node_outcome("gpu-1", 1.0, seen, 9.0)
    result = run_result("r1", "train.py", ["gpu-1"], [outcome])
    json.dumps(result)
    return [message(result, "gpu-1", "/r"), progress_line(seen, PLACE, 9.0) or "", *outcome["unread"].values()]


def test_a_real_answer_is_used():
    text, line, *errors = used(ANSWER)
    assert text.startswith("Training failed on gpu-1: rank 0 ran out of GPU memory (torch.OutOfMemoryError);")
    assert "boom" in text
    assert line == "   9 s  job 7 is pending (Resources)"
    assert used({**ANSWER, "job": None})[1] == "   9 s  gpu-1 rank 0: epoch 1"
    assert errors == ["damaged"]


def places(value, path=()):
    """Yield the paths of all values."""
    yield path
    for key, one in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(one, (*path, key))


def changed(value, path, new):
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(copy[path[0]], path[1:], new)
    return copy


PATHS = [path for path in places(ANSWER) if path]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(ESCAPE) | st.sampled_from([10**400, -(10**400)]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(path=st.sampled_from(PATHS), value=JSON)
def test_an_answer_is_refused_or_used(path, value):
    with contextlib.suppress(DocumentError):
        for text in used(changed(ANSWER, path, value)):
            assert not any(one in text for one in "\x1b\x07\x08\x9b\u202e")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: ".".join(map(str, path)))
def test_no_text_of_a_node_commands_a_terminal(path):
    with contextlib.suppress(DocumentError):
        for text in used(changed(ANSWER, path, ESCAPE)):
            assert not any(one in text for one in "\x1b\x07\x08\x9b\u202e")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("ranks", 0, "world_size"), 10**400),
        (("ranks", 0, "world_size"), 10**7),
        (("ranks", 0, "rank"), -1),
        (("ranks", 0, "started"), float("nan")),
        (("ranks", 0, "last_output"), 1e300),
        (("ranks",), {"0": RANK}),
        (("now",), float("inf")),
        (("now",), "now"),
        (("agent", "failures", 0, "time"), -1),
        (("agent", "failures", 0, "exit_code"), "0"),
        (("service",), None),
        (("exceptions",), {"x": []}),
        (("exceptions", "0"), "torch.OutOfMemoryError"),
        (("exceptions", "0", 0), 7),
        (("flight",), {"x": {}}),
        (("flight",), {"9" * 5000: {}}),
        (("flight", "0", "0", "completed"), 10**30),
        (("metrics",), [1]),
        (("job", "id"), 1 << 40),
        (("job", "id"), "7"),
        (("job", "restarts"), -1),
        (("tails", "0"), "boom"),
    ],
)
def test_what_no_module_answers(path, value):
    with pytest.raises(DocumentError):
        read_answer(changed(ANSWER, path, value))


def test_lists_in_lists_end():
    value = []
    for _dummy in range(100000):
        value = [value]
    with pytest.raises(DocumentError, match="at most 40 levels"):
        harmless(value)


def test_texts_and_tails_are_short():
    found = read_answer({**ANSWER, "end": "x" * 100000, "tails": {"0": ["y" * 5000] * 5000}})
    assert len(found["end"]) == 1 << 16
    assert (len(found["tails"]["0"]), len(found["tails"]["0"][0])) == (1000, 2000)
