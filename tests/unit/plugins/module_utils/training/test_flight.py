# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dumps that PyTorch 2.13 wrote (dumps/), three ranks with Gloo: rank 1 does not begin the fourth collective, or rank 2 another one.

NCCL has the same recorder and writer; a dump of NCCL itself was not at hand.
"""

import contextlib
import json
import os
import pickle
import pickletools
import resource
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.training import flight

DUMPS = os.path.join(os.path.dirname(__file__), "dumps")
UID = os.getuid()


def dump(name):
    with open(os.path.join(DUMPS, name), "rb") as stream:
        return stream.read()


def test_a_dump_is_read_as_its_writer_meant_it():
    assert flight.load(dump("absent-rank0")) == pickle.loads(dump("absent-rank0"))


@pytest.mark.parametrize(("name", "enqueued"), [("absent-rank0", 4), ("absent-rank1", 3)])
def test_the_collectives_of_a_rank(name, enqueued):
    found = flight.groups(flight.load(dump(name)))
    assert list(found) == ["0"]
    group = found["0"]
    assert (group["description"], group["enqueued"], group["completed"]) == ("default_pg", enqueued, enqueued)
    assert [one["sequence"] for one in group["collectives"]] == list(range(1, enqueued + 1))
    last = group["collectives"][-1]
    assert (last["operation"], last["state"]) == ("gloo:all_reduce", "scheduled")
    assert last["sizes"] == ([[8, 4]] if enqueued == 4 else [[3, 4]])
    assert last["place"].startswith("train.py:")


class Call:
    def __reduce__(self):
        return os.mkdir, ("made",)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (pickle.dumps({"entries": [Call()]}, 2), "it has the opcode GLOBAL"),
        (pickle.dumps({"entries": [Call()]}, 4), "it has the opcode STACK_GLOBAL"),
        (b"cos\nsystem\n(S'true'\ntR.", "it has the opcode GLOBAL"),
        (dump("absent-rank0")[:-200], "EOFError: "),
        (b"", "EOFError: "),
        (b"{}", "it has the opcode 123"),
        (pickle.dumps({(): 1}, 2), "it has a key that is no text"),
        (pickle.dumps({1: 1, 2: 2}, 2), "it has a key that is no text"),
    ],
)
def test_nothing_but_plain_values_is_read(data, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(flight.DumpError, match=reason):
        flight.load(data)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("opcode", [b"]", b"(", b"N"])
def test_the_steps_of_a_dump_have_an_end(opcode):
    """Memory too: each of them makes something."""
    assert flight.STEPS < flight.LIMIT
    with pytest.raises(flight.DumpError, match="it takes too many steps to read"):
        flight.load(b"\x80\x02" + opcode * 5000 + b".", flight.Steps(4000))


def test_a_place_that_is_far_away_costs_nothing():
    """The reader that is written in C makes room for all before it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert flight.load(b"\x80\x02}r\xff\xff\xff\x7f.") == {}
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10  # KiB


def doubled(levels, kind):
    """Return what is twice as long at each level, though it is small."""
    value = kind(["x"])
    for _dummy in range(levels):
        value = kind([value, value])
    return value


def nested(levels):
    value = []
    for _dummy in range(levels):
        value = [value]
    return value


def cycle():
    value = []
    value.append(value)
    return value


def deep_pickle(levels):
    """Return a dump with a list in a list in a list, which pickle itself does not write."""
    entry = dict(ENTRY, pg_id="HERE")
    data = pickle.dumps({"entries": [entry]}, 2)
    return data.replace(pickle.dumps("HERE", 2)[2:-3], b"]" * levels + b"a" * (levels - 1))


DOUBLED = [doubled(64, list), doubled(64, tuple), nested(500), cycle(), 10**600, -(10**600), b"x", 1.5, float("nan")]


@pytest.mark.parametrize("value", DOUBLED, ids=[f"{number}" for number in range(len(DOUBLED))])
@pytest.mark.parametrize(
    "name",
    ["process_group", "collective_seq_id", "profiling_name", "state", "frames", "time_created_ns", "pg_id", "is_p2p", "input_sizes"],
)  # fmt: skip
def test_values_without_an_end_take_no_time(name, value):
    """Those that pickle writes by plain opcodes are read as well."""
    dump = {"entries": [dict(ENTRY, **{name: value})], "pg_config": {"0": value}, "pg_status": {"0": value}}
    began = time.monotonic()
    found = flight.groups(dump)
    with contextlib.suppress(flight.DumpError, RecursionError):
        assert flight.groups(flight.load(pickle.dumps(dump, 2))) == found
    json.dumps(found)
    assert time.monotonic() - began < 60


def test_a_few_hundred_bytes_do_not_stall_a_node(logs):
    """Found in a review: the id of a group whose parts are lists of each other was made a text."""
    value = []
    for _dummy in range(26):
        value = [value, value]
    (logs / "flight-rank0").write_bytes(pickle.dumps({"entries": [dict(ENTRY, pg_id=value)]}, 2))
    began = time.monotonic()
    found, dummy = flight.collect(str(logs), UID, [rank(0)])
    assert time.monotonic() - began < 60
    assert set(found) == {"0"}


def test_lists_in_lists_are_read_to_any_depth():
    began = time.monotonic()
    assert list(flight.groups(flight.load(deep_pickle(100000)))) == ["0"]
    assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    "text", ["[" + "1, " * 100000 + "1]", "[%s]" % ("9" * 5000), "[1 2]", "[,]", "[1,,2]", "[-1]", "[١]"]
)
def test_ranks_of_a_group_that_nobody_wrote(text):
    assert flight.groups({"entries": [ENTRY], "pg_config": {"0": {"ranks": text}}})["0"]["ranks"] is None


def test_a_dump_that_grows_is_read_to_the_limit(logs, monkeypatch):
    """As fstat saw less."""
    size = os.path.getsize(str(logs / "flight-rank0"))
    assert flight.read_whole(str(logs / "flight-rank0"), UID, size)[0] == dump("absent-rank0")
    assert flight.read_whole(str(logs / "flight-rank0"), UID, size - 1) == (None, 0)


def test_all_dumps_of_a_node_have_their_steps_in_common(logs, monkeypatch):
    steps = flight.Steps(flight.STEPS)
    flight.load(dump("absent-rank0"), steps)
    monkeypatch.setattr(flight, "ALL_STEPS", flight.STEPS - steps.left + 10)
    found, errors = flight.collect(str(logs), UID, [rank(0), rank(1)])
    assert (list(found), errors) == (["0"], {"1": "it takes too many steps to read"})


def test_the_reader_itself_imports_nothing(tmp_path, monkeypatch):
    """Should an opcode be missed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(flight, "PLAIN", {opcode.name for opcode in pickletools.opcodes})
    with pytest.raises(flight.DumpError, match=r"it names (posix|nt)\.mkdir"):
        flight.load(pickle.dumps(Call(), 2))
    assert not (tmp_path / "made").exists()


ENTRY = {"process_group": ("0", "default_pg"), "collective_seq_id": 1, "profiling_name": "nccl:all_reduce"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([], {}),
        ({"entries": 3}, {}),
        ({"entries": [None, {"process_group": "0"}, {"process_group": (1, 2, 3)}]}, {}),
        ({"entries": [dict(ENTRY, is_p2p=True)]}, {}),  # pairs have numbers of their own
        ({"entries": [ENTRY], "pg_config": {"0": {"ranks": "[0, 1]"}}}, {"ranks": [0, 1], "enqueued": 1, "completed": 0}),
        ({"entries": [ENTRY], "pg_config": {"0": {"ranks": "__import__"}}}, {"ranks": None}),
        ({"entries": [ENTRY], "pg_status": {"None": {"last_completed_collective": -1}}}, {"completed": 0}),
        ({"entries": [dict(ENTRY, state="completed")]}, {"completed": 1}),
        ({"entries": [dict(ENTRY, collective_seq_id=True)]}, {"enqueued": 0}),
    ],
)  # fmt: skip
def test_what_a_user_may_have_written(value, expected):
    found = flight.groups(value)
    group = found.get("0", {})
    assert {key: group[key] for key in expected} == expected
    assert bool(found) == bool(expected)


def test_no_control_characters_leave_a_dump():
    entry = dict(ENTRY, profiling_name="nccl:\x1b[2J", frames=[{"filename": "/home/x/\x07train.py", "line": 3}])
    group = flight.groups({"entries": [entry]})["0"]
    assert group["collectives"][0]["operation"] == "nccl:?[2J"
    assert group["collectives"][0]["place"] == "?train.py:3"


def test_of_many_collectives_those_around_the_last_completed_one_are_told():
    entries = [
        dict(ENTRY, collective_seq_id=n, state="completed" if n <= 1000 else "scheduled") for n in range(1, 2001)
    ]
    group = flight.groups({"entries": entries})["0"]
    assert [one["sequence"] for one in group["collectives"]] == list(range(993, 1025))
    assert (group["completed"], group["enqueued"]) == (1000, 2000)


@pytest.fixture
def logs(tmp_path):
    for rank in (0, 1):
        (tmp_path / f"flight-rank{rank}").write_bytes(dump(f"absent-rank{rank}"))
    return tmp_path


def rank(number, started=0):
    return {"rank": number, "started": started}


def test_dumps_of_ranks_that_started_are_collected(logs):
    found, dummy = flight.collect(str(logs), UID, [rank(0), rank(1)])
    assert {number: group["0"]["enqueued"] for number, group in found.items()} == {"0": 4, "1": 3}
    assert set(flight.collect(str(logs), UID, [rank(1)])[0]) == {"1"}
    assert flight.collect(str(logs / "absent"), UID, [rank(1)]) == ({}, {})


def test_the_dump_of_a_former_life_does_not_count(logs):
    os.utime(str(logs / "flight-rank0"), (1000, 1000))
    assert set(flight.collect(str(logs), UID, [rank(0, 2000), rank(1, 2000)])[0]) == {"1"}


def test_only_regular_files_of_the_training_user_are_read(logs, tmp_path):
    os.rename(str(logs / "flight-rank1"), str(logs / "other"))
    os.symlink(str(logs / "other"), str(logs / "flight-rank1"))
    os.mkfifo(str(logs / "flight-rank2"))
    ranks = [rank(0), rank(1), rank(2)]
    assert set(flight.collect(str(logs), UID, ranks)[0]) == {"0"}
    assert flight.collect(str(logs), UID + 1, ranks) == ({}, {})
    assert flight.read_whole(str(logs / "flight-rank0"), UID, 10) == (None, 0)


def test_a_damaged_dump_is_left_out(logs):
    (logs / "flight-rank0").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    found, errors = flight.collect(str(logs), UID, [rank(0), rank(1)])
    assert (set(found), errors) == ({"1"}, {"0": "it has the opcode GLOBAL"})
