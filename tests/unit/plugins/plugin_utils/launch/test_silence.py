# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch import silence
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.silence import Rank
from hypothesis import given
from hypothesis import strategies as st

WAIT = (
    "/e/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py:9 all_reduce",
    "/r/work/train.py:40 step",
    "/r/work/train.py:3 main",
)
LOAD = ("/e/lib/python3.11/socket.py:7 read", "/r/work/data.py:5 load", "/r/work/train.py:30 main")


def ranks(*stacks, written=None):
    written = written or [1000.0] * len(stacks)
    return [
        Rank(number, f"gpu-{number}", when, stack)
        for number, (stack, when) in enumerate(zip(stacks, written, strict=True))
    ]


@pytest.mark.parametrize(
    ("found", "late"),
    [
        (ranks(WAIT, WAIT, LOAD, WAIT), [2]),
        (ranks(LOAD, WAIT, WAIT, LOAD, WAIT), [0, 3]),
        (ranks(WAIT, LOAD), [0]),  # one of two: which of them, nobody knows, so both are shown
        (ranks(WAIT, WAIT), []),
        (ranks(WAIT, WAIT, (), written=[1000.0, 1000.0, 900.0]), [2]),
        (ranks(WAIT, WAIT, written=[1000.0, 980.0]), []),
        (ranks((), (), (), written=[1000.0, 900.0, 1000.0]), [1]),
        (ranks(()), []),
    ],
)
def test_who_is_behind(found, late):
    assert [one.rank for one in silence.behind(found)] == late


def test_lines():
    assert silence.explain(ranks(WAIT, WAIT, LOAD), 612.3) == [
        "no rank has written anything for 612 s; behind: rank 2 on gpu-2",
        "  in work/data.py:5 load: rank 2 on gpu-2",
        "      python3.11/socket.py:7 read",
        "      work/data.py:5 load",
        "      work/train.py:30 main",
        "  in work/train.py:40 step: rank 0 on gpu-0 and rank 1 on gpu-1",
    ]


def test_lines_without_a_stack(monkeypatch):
    monkeypatch.setattr(silence, "clock", lambda seconds: f"{seconds:.0f}")
    found = ranks((), (), (), (), (), written=[1000.0, 900.0, 1000.0, 950.0, 1000.0])
    assert silence.explain(found, 600) == [
        "no rank has written anything for 600 s; behind: rank 1 on gpu-1",
        "  without a stack, wrote last: rank 1 on gpu-1 at 900, rank 3 on gpu-3 at 950, rank 0 on gpu-0 at 1000 and 2 later ones",
    ]


@pytest.mark.parametrize(("mounts", "lines"), [
    ({}, []),
    ({"gpu-1": [], "gpu-2": ["/data: silent"]}, ["  /data: silent, on gpu-2"]),
    ({f"gpu-{number}": ["/data: silent"] for number in range(5)}, ["  /data: silent, on gpu-0, gpu-1, gpu-2 and 2 more"]),
    ({"gpu-1": ["a", "b"], "gpu-2": ["b"]}, ["  a, on gpu-1", "  b, on gpu-1, gpu-2"]),
    ({"gpu-1": list("abcd")}, ["  a, on gpu-1", "  b, on gpu-1", "  c, on gpu-1"]),
])  # fmt: skip
def test_file_systems_that_hang_are_told_once_for_all_nodes(mounts, lines):
    assert silence.explain_mounts(mounts) == lines


STACKS = st.lists(st.sampled_from([*WAIT, *LOAD, "<frozen importlib>:1 x", ""]), max_size=4).map(tuple)


@given(st.lists(st.tuples(STACKS, st.floats(0, 1e10)), min_size=1, max_size=300), st.floats(0, 1e9))
def test_few_lines_however_many_ranks(found, seconds):
    lines = silence.explain(ranks(*(stack for stack, dummy in found), written=[when for dummy, when in found]), seconds)
    assert len(lines) <= 2 + silence.SHOWN * (silence.FRAMES + 1) + 1
    assert max(map(len, lines)) < 500
