# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import base64
import io
import json
import os
import stat
import tarfile
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.training import run as training_run
from ansible_collections.allreduce.gpu.plugins.module_utils.training.run import RunError

LAUNCH = '{"script": "train.py", "variables": {"A": "1"}}'
UID, GID = os.getuid(), os.getgid()


@pytest.fixture(autouse=True)
def no_chown(monkeypatch):
    """Tests need not run as root."""
    monkeypatch.setattr(os, "chown", lambda *args: None)
    monkeypatch.setattr(os, "lchown", lambda *args: None)


@pytest.fixture
def pack(tmp_path):
    def make(**members):
        path = tmp_path / "run.tar.gz"
        with tarfile.open(path, "w:gz") as tar:
            for name, content in {
                "launch.json": LAUNCH,
                "agent.py": "",
                "rank.py": "",
                "work/train.py": "print()",
                **members,
            }.items():
                member = tarfile.TarInfo(name)
                if content is None:
                    member.type, member.linkname = tarfile.SYMTYPE, "/etc/shadow"
                data = (content or "").encode()
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        return str(path)

    return make


@pytest.fixture
def run(tmp_path, pack):
    path = tmp_path / "runs" / "r1"
    training_run.create(str(path), pack(), {"A": "0", "B": "2"}, UID, GID)
    return path


def log(run, name, text):
    (run / "logs" / name).write_text(text)


def test_a_run_directory_is_closed_to_others(run):
    assert json.loads((run / "launch.json").read_text()) == {"script": "train.py", "variables": {"A": "1", "B": "2"}}
    assert (run / "work" / "train.py").read_text() == "print()"
    for path in [run, run / "launch.json", run / "work" / "train.py", run / "logs"]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o027 == 0, path


def test_a_run_directory_has_the_same_modes_whatever_the_umask(tmp_path, pack, root_umask):
    """Its user gets to the directory through those above it, and into it by the group."""
    path = tmp_path / "runs" / "all" / "r"
    training_run.create(str(path), pack(), {}, UID, GID)
    modes = {
        str(one.relative_to(tmp_path)): one.stat().st_mode & 0o777
        for one in (tmp_path / "runs", path.parent, path, path / "work", path / "logs", path / "launch.json")
    }
    assert modes == {
        "runs": 0o755, "runs/all": 0o755, "runs/all/r": 0o750, "runs/all/r/work": 0o750, "runs/all/r/logs": 0o750,
        "runs/all/r/launch.json": 0o640,
    }  # fmt: skip


def test_a_run_directory_is_used_once(run, pack):
    with pytest.raises(RunError, match="exists already; give every run a run_id of its own"):
        training_run.create(str(run), pack(), {}, UID, GID)


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "work/../../evil"])
def test_names_that_lead_out_of_the_directory_are_refused(tmp_path, pack, name):
    with pytest.raises(RunError, match="not a plain file"):
        training_run.create(str(tmp_path / "r"), pack(**{name: "x"}), {}, UID, GID)


def test_links_in_the_archive_are_refused(tmp_path, pack):
    with pytest.raises(RunError, match="not a plain file"):
        training_run.create(str(tmp_path / "r"), pack(**{"work/link": None}), {}, UID, GID)


def test_ranks_are_read_with_their_last_output(run):
    for place, number in enumerate((10, 2)):
        note = {"rank": number, "local_rank": place, "world_size": 11, "started": 5.0}
        log(run, f"rank{number}.json", json.dumps(note))
    log(run, "rank2.out", "epoch 1\nepoch 2\r 50%\n}\n\n")
    log(run, "rank2.err", "warning")
    os.utime(str(run / "logs" / "rank2.out"), (100, 100))
    os.utime(str(run / "logs" / "rank2.err"), (200, 200))
    first, second = training_run.ranks(str(run), UID)
    assert (first["rank"], first["last_line"], first["last_output"]) == (2, "50%", 200)
    assert (second["rank"], second["last_line"], second["last_output"]) == (10, "", None)


def test_the_types_of_exceptions_are_those_of_ranks_since_they_started(run):
    for number in (0, 1, 2, 3, 4):
        note = {"rank": number, "local_rank": number, "world_size": 5, "started": 1000.0}
        log(run, f"rank{number}.json", json.dumps(note))
    log(run, "rank0.cause", "torch.OutOfMemoryError\nbuiltins.RuntimeError")
    log(run, "rank1.cause", "builtins.ValueError")  # of its former life
    os.utime(str(run / "logs" / "rank1.cause"), (900, 900))
    log(run, "rank2.cause", "x" * 10000)
    os.symlink("/etc/hostname", str(run / "logs" / "rank3.cause"))
    os.mkfifo(str(run / "logs" / "rank4.cause"))
    log(run, "rank9.cause", "torch.OutOfMemoryError")  # of a rank that never started here
    found = training_run.exceptions(str(run), UID, training_run.ranks(str(run), UID))
    assert found == {"0": ["torch.OutOfMemoryError", "builtins.RuntimeError"]}


def test_ranks_that_have_other_numbers_since_a_node_was_lost_are_told_once(run):
    for number, place, size, started in ((2, 0, 4, 5.0), (3, 1, 4, 5.1), (0, 0, 2, 60.0), (1, 1, 2, 60.1)):
        note = {"rank": number, "local_rank": place, "world_size": size, "started": started}
        log(run, f"rank{number}.json", json.dumps(note))
    assert [rank["rank"] for rank in training_run.ranks(str(run), UID)] == [0, 1]


def test_a_note_that_is_half_written_is_left_for_the_next_look(run):
    log(run, "rank0.json", '{"rank": 0, "wor')
    assert training_run.ranks(str(run), UID) == []


@pytest.mark.parametrize(
    "change",
    [
        {"rank": -1},
        {"rank": True},
        {"rank": "0"},
        {"rank": 1},  # the file is another rank's
        {"world_size": 10**400},
        {"world_size": 0},
        {"world_size": None},
        {"world_size": 1.5},
        {"attempt": [1]},
        {"started": float("nan")},
        {"started": float("inf")},
        {"started": 10**400},
        {"started": "now"},
        {"local_rank": {}},
    ],
)
def test_a_note_that_rank_py_did_not_write_is_none(run, change):
    note = {"rank": 0, "local_rank": 0, "world_size": 2, "attempt": 0, "started": 5.0}
    log(run, "rank0.json", json.dumps({**note, "more": "x" * 1000}))
    (found,) = training_run.ranks(str(run), UID)
    assert found == {**note, "last_output": None, "last_line": ""}
    log(run, "rank0.json", json.dumps({**note, **change}))
    assert training_run.ranks(str(run), UID) == []


def test_no_more_ranks_are_told_than_a_node_has(run, monkeypatch):
    monkeypatch.setattr(training_run, "MOST_RANKS", 3)
    for number in range(9):
        note = {"rank": number, "local_rank": number, "world_size": 9, "started": 5.0}
        log(run, f"rank{number}.json", json.dumps(note))
    assert len(training_run.ranks(str(run), UID)) == 3


def nested(levels):
    return "[" * levels + "]" * levels


@pytest.mark.parametrize(
    "text",
    [
        nested(100000), '{"a": ' * 100000 + "1" + "}" * 100000, nested(999), nested(40), "[" * 100000, "x", "{}" + " " * (1 << 20),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["metrics.json", "agent.json", "rank0.json"])
def test_json_without_an_end_is_refused(run, name, text):
    log(run, name, text if name != "metrics.json" else f'{{"a": {text}}}')
    began = time.monotonic()
    found, error = training_run.metrics(str(run), UID)
    assert (found, bool(error)) == (None, name == "metrics.json")
    if name == "agent.json":
        assert training_run.agent(str(run), UID) in (None, {})
    assert training_run.ranks(str(run), UID) == []
    assert time.monotonic() - began < 5


def test_numbers_of_metrics_may_be_anything(run):
    log(run, "metrics.json", '{"loss": NaN, "rate": 1%s, "steps": 12345678901234567890}' % ("0" * 400))
    found, error = training_run.metrics(str(run), UID)
    assert error is None
    assert (found["rate"], found["steps"]) == (float("inf"), 12345678901234567890)
    assert found["loss"] != found["loss"]
    log(run, "metrics.json", '{"rate": %s}' % ("9" * 1000000))
    began = time.monotonic()
    assert training_run.metrics(str(run), UID) == ({"rate": float("inf")}, None)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "directory"])
def test_what_is_no_file_in_the_place_of_metrics_is_told(run, make):
    make(str(run / "logs" / "metrics.json"))
    assert training_run.metrics(str(run), UID)[1].startswith("The file named in ALLREDUCE_METRICS")


def test_pipes_and_directories_in_the_place_of_logs_are_left_out(run):
    for number, name in enumerate(
        ("rank0.out", "rank0.err", "torchrun.log", "agent.json", "flight-rank0", "rank1.json")
    ):
        (os.mkdir if number % 2 else os.mkfifo)(str(run / "logs" / name))
    log(run, "rank0.json", json.dumps({"rank": 0, "world_size": 1, "started": 5.0}))
    assert [one["last_line"] for one in training_run.ranks(str(run), UID)] == [""]
    assert training_run.tail(str(run), 0, 9, UID) == training_run.agent_tail(str(run), 9, UID) == []
    assert training_run.agent(str(run), UID) is None


def test_a_long_line_is_told_by_its_end(run):
    log(run, "rank0.err", "x" * 5000 + "end")
    (line,) = training_run.tail(str(run), 0, 9, UID)
    assert (len(line), line[-4:]) == (1000, "xend")


def test_all_logs_together_have_a_limit(run):
    for number in range(40):
        log(run, f"rank{number}.out", "x" * 20)
    log(run, "torchrun.log", "first")
    packed = base64.b64decode(training_run.collect_logs(str(run), UID, 10))
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        texts = {member.name: tar.extractfile(member).read().decode() for member in tar}
    assert texts["torchrun.log"] == "first"
    assert len(texts) == 41
    assert texts["rank9.out"].startswith("[20 bytes left out here; the whole file is ")
    assert sum(text.count("x") for text in texts.values()) <= 320


def test_a_tail_is_that_of_stderr_or_else_of_stdout(run):
    log(run, "rank0.out", "a\nb\nc\n")
    log(run, "rank0.err", "")
    assert training_run.tail(str(run), 0, 2, UID) == ["b", "c"]
    log(run, "rank0.err", "Traceback\n\nValueError\n")
    assert training_run.tail(str(run), 0, 9, UID) == ["Traceback", "ValueError"]
    assert training_run.tail(str(run), 7, 9, UID) == []
    assert training_run.tail(str(run), 0, 0, UID) == []


def test_metrics_must_be_an_object(run):
    assert training_run.metrics(str(run), UID) == (None, None)
    log(run, "metrics.json", '{"loss": 1}')
    assert training_run.metrics(str(run), UID) == ({"loss": 1}, None)
    log(run, "metrics.json", "[1")
    found, error = training_run.metrics(str(run), UID)
    assert found is None
    assert error.startswith("The file named in ALLREDUCE_METRICS")


def test_only_regular_files_of_the_training_user_are_read(run, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("root's")
    os.symlink(str(secret), str(run / "logs" / "rank0.out"))
    os.mkfifo(str(run / "logs" / "rank1.out"))
    log(run, "rank2.out", "mine")
    assert training_run.read_tail(str(run / "logs" / "rank0.out"), UID, 99) == ("", 0)
    assert training_run.read_tail(str(run / "logs" / "rank1.out"), UID, 99) == ("", 0)
    assert training_run.read_tail(str(run / "logs" / "rank2.out"), UID + 1, 99) == ("", 0)
    assert training_run.read_tail(str(run / "logs" / "rank2.out"), UID, 99) == ("mine", 0)


def test_logs_are_collected_and_long_ones_cut_at_their_beginning(run):
    log(run, "rank0.out", "x" * 100 + "end")
    log(run, "rank0.json", "{}")
    log(run, "torchrun.log", "short")
    packed = base64.b64decode(training_run.collect_logs(str(run), UID, 10))
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        texts = {member.name: tar.extractfile(member).read().decode() for member in tar}
    assert sorted(texts) == ["rank0.out", "torchrun.log"]
    assert texts["torchrun.log"] == "short"
    assert texts["rank0.out"].endswith("]\nxxxxxxxend")
    assert texts["rank0.out"].startswith("[93 bytes left out here; the whole file is ")


def test_dumps_are_collected_whole_or_not_at_all(run):
    for name, data in {
        "flight-rank0": b"\x80\x02}.",
        "flight-rank1": b"\x80\x02" + b"x" * 99,
        "flight-rankx": b"",
    }.items():
        (run / "logs" / name).write_bytes(data)
    packed = base64.b64decode(training_run.collect_logs(str(run), UID, 10))
    with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
        assert {member.name: tar.extractfile(member).read() for member in tar} == {"flight-rank0": b"\x80\x02}."}


def packed(path, **files):
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(name.replace("__", "/").replace("_json", ".json"))
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    return str(path)


@pytest.fixture
def there(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "chown", lambda *args: None)
    for name in (
        "logs/rank0.json",
        "logs/rank0.end.json",
        "logs/agent.json",
        "logs/rank0.out",
        "work/checkpoint.pt",
        "launch.json",
    ):
        (tmp_path / "r1" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "r1" / name).write_text("old")
    return tmp_path / "r1"


def test_a_run_that_starts_again_keeps_what_its_ranks_wrote(there, tmp_path):
    archive = packed(tmp_path / "a.tar.gz", launch_json='{"variables": {"A": "1"}}')
    training_run.renew(str(there), archive, {"A": "0", "B": "2"}, 0)
    assert json.loads((there / "launch.json").read_text()) == {"variables": {"A": "1", "B": "2"}}
    assert sorted(path.name for path in there.rglob("*.*")) == ["checkpoint.pt", "launch.json", "rank0.out"]


@pytest.mark.parametrize("run_id", ["r1", "r2"])
def test_a_run_that_starts_again_is_there_and_brings_nothing_else(there, tmp_path, run_id):
    files = {"launch_json": "{}", **({"work__train": "x"} if run_id == "r1" else {})}
    with pytest.raises(RunError) as refused:
        training_run.renew(str(tmp_path / run_id), packed(tmp_path / "a.tar.gz", **files), {}, 0)
    assert refused.value.problem["code"] == {"r1": "wrong_member", "r2": "run_absent"}[run_id]
    assert (there / "launch.json").read_text() == "old"
