# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections of allreduce-run to nodes that say anything, or nothing: real processes in place of serve.py."""

import json
import queue
import resource
import time

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.node import connection
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.phrases import clean
from hypothesis import example, given
from hypothesis import strategies as st

READY = {"kind": "ready", "now": 1.0, "versions": {"torch": "2.13.0"}}
END = {"kind": "end", "failures": [], "error": None, "log": []}
PROGRAM = f"""
import json, os, subprocess, sys, time
def say(text, end="\\n"):
    sys.stdout.write(text + end)
    sys.stdout.flush()
ready, end = {json.dumps(READY)!r}, {json.dumps(END)!r}
"""


@pytest.fixture
def hear(tmp_path, monkeypatch):
    """Return what is heard of a node whose serve.py is a script: messages until it is gone, and the connection."""
    monkeypatch.setattr(connection, "HERE", tmp_path)
    monkeypatch.setattr(connection, "SILENCE", 2.0)
    nodes = []

    def hear(script, hello=20.0):
        monkeypatch.setattr(connection, "HELLO", hello)
        (tmp_path / "serve.py").write_text(PROGRAM + script, encoding="utf-8")
        messages = queue.Queue(connection.WAITING)
        nodes.append(connection.Node("gpu-1", "127.0.0.1", b"first\n", messages))
        heard = []
        while not heard or heard[-1]["kind"] != "gone":
            heard.append(messages.get(timeout=20)[1])
        return heard, nodes[-1]

    yield hear
    for node in nodes:
        node.close(time.monotonic())


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("say('Welcome'); time.sleep(60)", "it has said nothing for 1 s; it has also printed 'Welcome'"),
        ("time.sleep(60)", "it has said nothing for 1 s"),
        ("say(ready); time.sleep(60)", "it has said nothing for 2 s"),
        ("say(ready)\nwhile True: say('', end=''); time.sleep(0.1)", "it has said nothing for 2 s"),
        ("while True: say('tick'); time.sleep(0.1)", "it has said nothing for 1 s; it has also printed 'tick'"),
        ("while True: say('{\"kind\": \"alive\"}'); time.sleep(0.1)", "it has said nothing for 1 s; it has also printed"),
        ("say(ready)\nwhile True: say('tick'); time.sleep(0.1)", "it has said nothing for 2 s; it has also printed 'tick'"),
        ("while True: say('x' * 4000)", "it prints more than 64 KiB that are no messages of allreduce-run; it has also"),
        ("say(ready)\nwhile True: say('')", "it prints more than 64 KiB that are no messages of allreduce-run"),
        ("while True: say('x' * 4000, end='')", "it prints a line of more than 1 MiB"),
        ("while True: os.write(1, os.urandom(65536))", "it prints more than 64 KiB that are no messages of allreduce-run"),
        ("while True: os.write(2, b'x' * 65536)", "it has said nothing for 1 s"),
        ("os.write(2, b'ssh: no\\x1b[31m route\\n\\n'); sys.exit(255)", "ssh: no route"),
        ("sys.exit(3)", "status 3"),
        ("say('say \\x1b]0;title\\x07when'); sys.exit(3)", "status 3; it has also printed 'say when': look at ~/.bashrc there"),
        ("say('[' * 100000); sys.exit(3)", "it prints more than 64 KiB that are no messages of allreduce-run"),
        ("say('{\"kind\": ' + '[' * 50000); sys.exit(3)", "status 3; it has also printed"),
        ("subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL)", "status 0"),
        ("say(ready); os.close(1); time.sleep(60)", "it closed its output"),
    ],
)  # fmt: skip
def test_a_node_is_given_up_in_bounded_time(hear, monkeypatch, script, why):
    monkeypatch.setattr(connection, "GRACE", 1.0)
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    heard, dummy = hear(script, 1.0 if "for 1 s" in why else 20.0)
    assert heard[-1]["why"].startswith(why)
    assert time.monotonic() - began < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB


def test_what_a_shell_prints_around_the_messages_is_left_out(hear):
    heard, node = hear(
        "say('Welcome'); say('no end', end=''); say('\\n' + ready); say('between'); say(end); say('Bye', end='')"
    )
    assert heard[:-1] == [READY, END]
    assert node.sample == "Welcome"


def test_signs_of_life_keep_the_connection(hear):
    heard, dummy = hear('say(ready)\nfor _ in range(12): time.sleep(0.3); say(\'{"kind": "alive"}\')\nsay(end)')
    assert [one["kind"] for one in heard] == ["ready", "end", "gone"]


def test_a_node_that_takes_nothing_stops_nobody(hear, monkeypatch, tmp_path):
    monkeypatch.setattr(connection, "SLOWEST", 1 << 40)
    (tmp_path / "serve.py").write_text("import time; time.sleep(60)", encoding="utf-8")
    node = connection.Node("gpu-1", "127.0.0.1", b"x" * (4 << 20), queue.Queue())
    began = time.monotonic()
    node.stop()
    node.close(began + 1)
    assert time.monotonic() - began < 5
    assert node.process.returncode == -9


def test_the_group_of_the_process_is_ended(hear, tmp_path):
    dummy, node = hear("child = subprocess.Popen(['sleep', '60']); say(f'{child.pid}'); time.sleep(60)", 5.0)
    node.close(time.monotonic())
    status = f"/proc/{node.sample}/stat"
    deadline = time.monotonic() + 5
    while is_alive(status) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(status)


def is_alive(status):
    try:
        with open(status, encoding="utf-8") as stream:
            return stream.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize(
    "message",
    [
        {"kind": "ready", "now": float("nan"), "versions": {}},
        {"kind": "ready", "now": 10**400, "versions": {}},
        {"kind": "ready", "now": 1, "versions": {"torch": 2}},
        {"kind": "ready", "now": 1, "versions": []},
        {"kind": "output", "text": 1},
        {"kind": "end", "failures": {}, "error": None, "log": []},
        {"kind": "end", "failures": [{"rank": 1}], "error": None, "log": []},
        {"kind": "end", "failures": [{"rank": 1, "exit_code": "x", "time": 1, "tail": []}], "error": None, "log": []},
        {"kind": "end", "failures": [], "error": 3, "log": []},
        {"kind": "gone", "why": "says who"},
        {"kind": ["ready"]},
    ],
)
def test_what_is_no_message(message):
    assert connection.read_message(json.dumps(message).encode()) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
KINDS = st.sampled_from([*connection.SHAPES, "gone"])
FIELDS = st.sampled_from(["now", "versions", "text", "failures", "error", "log"])


@given(kind=KINDS, fields=st.dictionaries(FIELDS, JSON))
@example(kind="end", fields={"failures": [[]], "error": None, "log": []})
def test_a_message_has_its_shape_or_is_none(kind, fields):
    message = connection.read_message(json.dumps({"kind": kind, **fields}).encode())
    if message and kind == "end":
        assert all(abs(one["time"] - one["rank"]) < 1e13 for one in message["failures"])
        assert all(connection.plain(line) == line for line in message["log"])
    if message and kind == "ready":
        assert abs(message["now"] - 1.0) < 1e13


@given(st.binary(max_size=2000), st.integers(1, 64))
def test_lines_do_not_depend_on_how_they_arrive(data, size):
    chunks = (data[place : place + size] for place in range(0, len(data), size))
    whole = data.split(b"\n")
    assert list(connection.lines(chunks)) == (whole if whole[-1] else whole[:-1])


@given(st.text(alphabet=st.characters() | st.sampled_from("\x1b[]0;m\x07\\\r\n\t\x9b")))
def test_texts_are_as_harmless_as_those_of_the_report(text):
    plain = connection.plain(text)
    assert plain.replace("\r\n", "\n").replace("\r", "\n") == clean(text)
    assert "\x1b" not in plain
    assert connection.plain(plain) == plain
