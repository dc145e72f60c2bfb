# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wheels between nodes, as nodes with Python 3.6 copy them, too: each is the one of the list, or none is there."""

import errno
import hashlib
import os
import time
from types import SimpleNamespace

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import environment_wheels as carry

CONTENT = {
    "alpha-1.0-py3-none-any.whl": b"alpha" * 50000,
    "beta-2.0+cpu-cp311-cp311-linux_x86_64.whl": bytes(range(256)) * 100,
}
WHEELS = [
    {"file": name, "sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    for name, content in sorted(CONTENT.items())
]
WHOLE = b"".join(CONTENT[one["file"]] for one in WHEELS)
# Waits for what it starts, as the real one does.
RUNUSER = '#!/bin/sh\nshift 3; "$@"; exit "$?"\n'
# Sends what is in the file, from where it is asked to.
SSH = '#!/bin/sh\nfor one; do :; done; exec tail -c "${{one##*tail -c }}" {place}/sends\n'


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    for name, text in (("ssh", SSH.format(place=tmp_path)), ("runuser", RUNUSER)):
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    return carry.Place("main", str(tmp_path / "wheels"))


def sent(place, tmp_path, content):
    """What is there, and the code of the problem, after a node sent this."""
    (tmp_path / "sends").write_bytes(content)
    code = None
    try:
        carry.copy(place, WHEELS, "10.0.0.1", "trainer")
    except carry.WheelsError as error:
        code = error.problem["code"]
    found = {name: (tmp_path / "wheels" / "main" / name).read_bytes() for name in os.listdir(place.directory)}
    return {name: content for name, content in found.items() if not name.endswith(".part")}, code


def test_the_wheels_of_the_list_arrive(place, tmp_path):
    assert sent(place, tmp_path, WHOLE) == (CONTENT, None)
    assert sent(place, tmp_path, b"") == (CONTENT, None)  # which nobody asks for


def test_more_than_the_wheels_is_not_read(place, tmp_path):
    assert sent(place, tmp_path, WHOLE + b"more" * 1000) == (CONTENT, None)


@pytest.mark.parametrize("number", range(9))
def test_a_byte_that_differs_is_found(place, tmp_path, number):
    at = number * len(WHOLE) // 9
    found, code = sent(place, tmp_path, WHOLE[:at] + bytes([WHOLE[at] ^ 1]) + WHOLE[at + 1 :])
    first = WHEELS[0]
    assert code == "wheels_changed"
    assert found == ({first["file"]: CONTENT[first["file"]]} if at >= first["bytes"] else {})


OTHERS = {
    "nothing": b"", "a byte": b"x", "the beginning": WHOLE[:100], "the end": WHOLE[1:], "zeros": b"\0" * 600000, "backwards": WHOLE[::-1],
    "another": CONTENT[WHEELS[1]["file"]],
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(OTHERS))
def test_anything_else_leaves_nothing(place, tmp_path, name):
    found, code = sent(place, tmp_path, OTHERS[name])
    assert (found, code in ("wheels_changed", "wheels_not_copied")) == ({}, True)


def test_lists_have_an_end():
    many = [dict(WHEELS[0], file=f"a{number}-1-py3-none-any.whl") for number in range(2001)]
    large = [dict(one, bytes=16 << 30) for one in many[:5]]
    for wheels in (many, large):
        with pytest.raises(carry.WheelsError) as refused:
            carry.check(wheels)
        assert refused.value.problem["code"] == "wheels_invalid"


@pytest.mark.parametrize(("silence", "pace", "seconds"), [(0.2, 1 << 18, 0), (60, 1 << 30, -1)])
def test_a_node_that_sends_nothing_or_too_little_does_not_hold_the_others(
    place, tmp_path, monkeypatch, silence, pace, seconds
):
    for name, value in (("SILENCE", silence), ("PACE", pace), ("PATIENCE", seconds), ("ATTEMPTS", 1)):
        monkeypatch.setattr(carry, name, value)
    (tmp_path / "bin" / "ssh").write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid; printf x; exec sleep 600\n")
    with pytest.raises(carry.WheelsError) as refused:
        carry.copy(place, WHEELS, "10.0.0.1", "trainer")
    assert refused.value.problem["detail"]["reason"] == "it sent too little"
    end = time.monotonic() + 10
    while _runs(tmp_path / "pid") and time.monotonic() < end:
        time.sleep(0.05)
    assert not _runs(tmp_path / "pid")


def _runs(file):
    """Return True if the process with the number in the file runs on; one that has ended may wait for whoever started it."""
    try:
        with open(f"/proc/{file.read_text().strip()}/stat") as stream:
            return stream.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://index.example/a/b.whl", "https://me:secret@index.example/a/b.whl"),
        ("https://index.example:8443/b.whl", "https://index.example:8443/b.whl"),
        ("http://index.example/b.whl", "http://index.example/b.whl"),
        ("https://evil.example/index.example/b.whl", "https://evil.example/index.example/b.whl"),
        ("https://index.example.evil/b.whl", "https://index.example.evil/b.whl"),
        ("file:///srv/b.whl", "file:///srv/b.whl"),
    ],
)
def test_a_password_goes_to_its_own_host_only(url, expected):
    sources = ["", "/srv/wheels", "https://open.example/simple", "https://me:secret@index.example/simple"]
    assert carry.with_password(url, sources) == expected


@pytest.fixture
def disks(place, tmp_path, monkeypatch):
    """Function that has the file system of the wheels and that of the environments so much room, in bytes; one where both are the same."""

    def having(wheels, environments=None):
        def stat(path, **options):
            other = environments is not None and str(path).startswith(str(tmp_path / "envs"))
            return os.stat_result((0, 0, int(other), 0, 0, 0, 0, 0, 0, 0)) if not options else os_stat(path, **options)

        def statvfs(path):
            other = environments is not None and str(path).startswith(str(tmp_path / "envs"))
            return SimpleNamespace(f_bavail=environments if other else wheels, f_frsize=1)

        os_stat = os.stat
        monkeypatch.setattr(carry, "os", SimpleNamespace(**{**vars(os), "stat": stat, "statvfs": statvfs}))

    (tmp_path / "envs").mkdir()
    (tmp_path / "sends").write_bytes(WHOLE)
    return having


SUM = len(WHOLE)


@pytest.mark.parametrize(
    ("wheels", "environments", "subject"),
    [
        (3 * SUM, None, None),
        (3 * SUM - 1, None, "wheels/main"),
        (3 * SUM, 2 * SUM, None),
        (3 * SUM, 2 * SUM - 1, "envs/of/nodes"),
        (3 * SUM - 1, 9 * SUM, "wheels/main"),
    ],
)
def test_each_file_system_has_room_before_anything_is_asked(place, tmp_path, disks, wheels, environments, subject):
    disks(wheels, environments)
    indexed = [{**one, "url": f"file://{tmp_path}/index/{one['file']}"} for one in WHEELS]
    (tmp_path / "index").mkdir()
    for name, content in CONTENT.items():
        (tmp_path / "index" / name).write_bytes(content)
    for act in (
        lambda: carry.fetch(place, indexed, [], {}, str(tmp_path / "envs" / "of" / "nodes")),
        lambda: carry.copy(place, WHEELS, "10.0.0.1", "trainer", str(tmp_path / "envs" / "of" / "nodes")),
    ):
        carry.remove(place)
        if subject is None:
            act()
            assert set(os.listdir(place.directory)) == set(CONTENT)
        else:
            with pytest.raises(carry.WheelsError) as refused:
                act()
            assert (refused.value.problem["code"], refused.value.problem["subject"]) == (
                "wheels_no_space",
                f"{tmp_path}/{subject}",
            )
            assert os.listdir(place.directory) == []


def test_room_is_told_in_units_that_people_read():
    error = carry.WheelsError("wheels_no_space", "/opt/allreduce", free=60289024, needed=2106818560)
    assert (
        str(error)
        == "/opt/allreduce has 57 MiB free, and 2.0 GiB are needed: free some space or put a larger disk there"
    )
    assert error.problem["detail"] == {"free": 60289024, "needed": 2106818560}


def test_a_disk_that_is_full_on_the_way_is_told_and_keeps_nothing(place, tmp_path, monkeypatch):
    monkeypatch.setattr(
        carry.download, "fetch", lambda *_rest: {"code": "disk", "detail": "[Errno 28] No space left on device"}
    )
    with pytest.raises(carry.WheelsError) as refused:
        carry.fetch(place, [{**one, "url": "file:///x"} for one in WHEELS], [], {})
    assert (refused.value.problem["code"], os.path.exists(place.directory)) == ("wheels_disk", False)

    def full(*_rest):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(carry, "_read", full)
    (tmp_path / "sends").write_bytes(WHOLE)
    with pytest.raises(carry.WheelsError) as refused:
        carry.copy(place, WHEELS, "10.0.0.1", "trainer")
    assert refused.value.problem["code"] == "wheels_disk"
