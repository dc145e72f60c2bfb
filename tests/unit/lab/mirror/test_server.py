# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a client of the mirror gets when it misbehaves."""

from __future__ import annotations

import http.client
import json
import threading
import time

import pytest

from tests.lab import traffic
from tests.lab.mirror import build, faults, server
from tests.lab.progress import LabError

RELEASE, DEB = "cuda/InRelease", "cuda/nvidia-driver_1_amd64.deb"
FILES = {
    RELEASE: b"Label: NVIDIA CUDA\n",
    DEB: b"0123456789",
    "cuda/Packages.gz": b"abcdefgh",
    "cuda/key.pub": b"good key",
    "cuda/.lab/expired/InRelease": b"Valid-Until: long ago\n",
    "cuda/.lab/sha1-key/key.pub": b"old key",
}


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A function that gets (status, content) of a path in the view gpu."""
    for path, content in FILES.items():
        target = tmp_path / "served" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    monkeypatch.setattr(build, "FAULTS", tmp_path / "faults")
    running = server.serve(tmp_path / "served", tmp_path / "faults", 0, "127.0.0.1")
    threading.Thread(target=running.serve_forever, daemon=True).start()

    def get(path, view="gpu"):
        connection = http.client.HTTPConnection(*running.server_address, timeout=10)
        connection.request("GET", f"/{view}/{path}")
        answer = connection.getresponse()
        try:
            return answer.status, answer.read()
        except http.client.IncompleteRead as error:
            return "broken", error.partial

    yield get
    running.shutdown()
    running.server_close()


@pytest.mark.parametrize(
    ("fault", "path", "expected"),
    [
        ("unavailable", RELEASE, (503, b"")),
        ("missing", RELEASE, (404, b"")),
        ("vanished", DEB, (404, b"")),
        ("vanished", RELEASE, (200, FILES[RELEASE])),
        ("vanished:*other*", DEB, (200, FILES[DEB])),
        ("truncated", "cuda/Packages.gz", (200, b"abcd")),
        ("broken-connection", DEB, ("broken", b"01234")),
        ("wrong-signature", RELEASE, (200, b"Label: NVIDIA CUDa\n")),
        ("expired", RELEASE, (200, FILES["cuda/.lab/expired/InRelease"])),
        ("expired", DEB, (200, FILES[DEB])),
        ("sha1-key", "cuda/key.pub", (200, b"old key")),
        ("unknown-key", RELEASE, (200, FILES[RELEASE])),  # no such variant: as it is
    ],
)
def test_faults(mirror, fault, path, expected):
    faults.set_faults("gpu", fault)
    assert mirror(path) == expected
    assert mirror(path, view="another") == (200, FILES[path])
    faults.set_faults("gpu")
    assert mirror(path) == (200, FILES[path])


def test_a_slow_link_takes_its_time(mirror):
    faults.set_faults("gpu", {"fault": "slow", "rate": 5})
    began = time.monotonic()
    assert mirror(DEB) == (200, FILES[DEB])
    assert time.monotonic() - began >= 1


@pytest.mark.parametrize("path", ["cuda/.lab/expired/InRelease", "cuda/nothing", "../faults/gpu.json", "cuda"])
def test_what_is_not_shown(mirror, path):
    assert mirror(path)[0] == 404


@pytest.mark.parametrize(
    ("faulty", "path", "size"), [(True, f"gpu/{DEB}", 10), (False, DEB, 10), (False, "cuda/", None), (False, "none", 0)]
)
def test_what_was_served_is_counted(mirror, tmp_path, faulty, path, size):
    log = tmp_path / "log"
    place = tmp_path / "faults" if faulty else None
    with server.serve(tmp_path / "served", place, 0, "127.0.0.1", log=log) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        connection = http.client.HTTPConnection(*running.server_address, timeout=10)
        connection.request("GET", f"/{path}")
        content = connection.getresponse().read()
        deadline = time.monotonic() + 10
        while size != 0 and not (log.exists() and log.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)  # the line follows the last byte, and the file is there before its line
        running.shutdown()
    found = list(traffic.parse("mirror", log.read_text().splitlines(), "127.0.0.1")) if log.exists() else []
    assert sum(one.size for one in found) == (len(content) if size is None else size)
    assert [one.path for one in found] == ([path.strip("/")] if size != 0 else [])


@pytest.mark.parametrize(
    ("fault", "sent"), [("broken-connection", 5), ("missing", None), ({"fault": "slow", "rate": 9}, 10)]
)
def test_of_what_misbehaves_what_went_out_is_counted(tmp_path, mirror, monkeypatch, fault, sent):
    noted = []
    monkeypatch.setattr(server.Counted, "note", lambda self, size, path: noted.append((size, path)))
    faults.set_faults("gpu", fault)
    mirror(DEB)
    assert noted == ([] if sent is None else [(sent, f"/gpu/{DEB}")])


def test_an_unknown_fault_is_refused(mirror):
    with pytest.raises(LabError, match="no fault 'tired'"):
        faults.set_faults("gpu", "tired")


def test_every_fault_says_what_it_does():
    assert all(patterns and text for patterns, text in server.FAULTS.values())
    assert set(server.VARIANTS) < set(json.loads(json.dumps(list(server.FAULTS))))
