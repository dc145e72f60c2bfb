# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as Ansible runs it: four cases, a real web server, and what cannot be meant."""

import functools
import getpass
import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.modules import stage

COLLECTIONS = str(Path(stage.__file__).resolve().parents[2] / ".collections")
FILES = {"one.tar": b"1" * 5000, "train/two three.tar": b"2" * 7000}


@pytest.fixture
def place(tmp_path):
    (tmp_path / "scratch").mkdir()
    for name, content in FILES.items():
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "source" / name).write_bytes(content)
    names = ["./" + name for name in FILES]
    sums = subprocess.run(["sha256sum", *names], cwd=tmp_path / "source", capture_output=True, check=True).stdout
    (tmp_path / "source" / "SHA256SUMS").write_bytes(sums)
    return tmp_path


@pytest.fixture
def server(place):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_arguments):
            pass

    handler = functools.partial(Quiet, directory=str(place / "source"))
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}/"
    served.shutdown()


def run(place, check=False, **options):
    said = {
        "source": str(place / "source"), "directory": str(place / "scratch"), "name": "set", "user": getpass.getuser(),
        "needs_mount": False, "_ansible_check_mode": check, **options,
    }  # fmt: skip
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ansible_collections.allreduce.gpu.plugins.modules.stage",
            json.dumps({"ANSIBLE_MODULE_ARGS": said}),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": COLLECTIONS},
    )
    return json.loads(done.stdout)


def staged(place):
    return {name: (place / "scratch" / "set" / name).read_bytes() for name in FILES}


def test_change(place):
    found = run(place)
    assert (found["changed"], found["files"], found["copied"], found["bytes"]) == (True, 2, 2, 12000)
    assert staged(place) == FILES
    assert found["diff"]["before"] == "set is not there\n" and found["diff"]["after"].endswith(
        "\n2 of 2 files copied, 12000 bytes\n"
    )


def test_change_in_check_mode(place):
    assert run(place, check=True)["changed"] is True and os.listdir(place / "scratch") == []


@pytest.mark.parametrize("check", [False, True])
def test_nothing_to_do(place, check):
    run(place)
    found = run(place, check=check)
    assert found["changed"] is False and found["diff"]["before"] == found["diff"]["after"]


def test_there_and_back(place):
    run(place)
    found = run(place, state="absent")
    assert found["changed"] is True and found["diff"]["after"] == "set is not there\n"
    assert os.listdir(place / "scratch") == [] and run(place, state="absent")["changed"] is False


def test_from_a_web_server(place, server):
    checksum = "sha256:" + hashlib.sha256((place / "source" / "SHA256SUMS").read_bytes()).hexdigest()
    assert run(place, source=server, checksum=checksum)["copied"] == 2 and staged(place) == FILES
    assert run(place, source=server, checksum=checksum)["changed"] is False
    (place / "source" / "one.tar").unlink()
    run(place, state="absent")
    found = run(place, source=server, checksum=checksum)
    assert found["msg"] == "set is not staged: the source does not have one.tar, or does not report its size."
    (place / "source" / "SHA256SUMS").unlink()
    found = run(place, source=server, checksum=checksum)
    assert "the manifest SHA256SUMS cannot be read from the source: HTTP Error 404" in found["msg"]
    assert os.listdir(place / "scratch") == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"source": "relative/path"}, "source is 'relative/path'; write an absolute path"),
        ({"source": "http://data.example.org/set"}, "checksum is empty"),
        ({"checksum": "sha256:12"}, "checksum is '12'"),
        ({"name": "../set"}, "name and manifest are '../set' and 'SHA256SUMS'"),
        ({"name": ".hidden"}, "name and manifest are '.hidden'"),
        ({"manifest": "a/b"}, "name and manifest are 'set' and 'a/b'"),
        ({"jobs": 0}, "jobs is 0"),
        ({"user": "no-such-user"}, "no-such-user is not a user of this node"),
        ({"needs_mount": True}, "nothing is mounted at"),
    ],
)
def test_one_sentence_before_anything_is_touched(place, options, words):
    found = run(place, **options)
    assert found["failed"] is True and words in found["msg"] and os.listdir(place / "scratch") == []


def test_what_is_decided_by_has_a_code(place):
    found = run(place, needs_mount=True)
    assert [one["code"] for one in found["findings"]] == ["stage_not_mounted"]
