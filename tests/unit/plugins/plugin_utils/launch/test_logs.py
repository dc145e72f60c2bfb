# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Logs that a node returned: nothing outside their directory, in bounded space."""

import base64
import io
import tarfile
import tracemalloc

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch import logs
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.logs import LEFT_OUT, save_logs


def packed(*members):
    """An archive of (name, content), or of members."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for one in members:
            if isinstance(one, tarfile.TarInfo):
                tar.addfile(one)
            else:
                member = tarfile.TarInfo(one[0])
                member.size = len(one[1])
                tar.addfile(member, io.BytesIO(one[1]))
    return {"logs": base64.b64encode(out.getvalue()).decode()}


def link(name, to, kind):
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, to
    return member


def files(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()} if directory.exists() else {}


def test_logs_are_written(tmp_path):
    save_logs(packed(("rank0.out", b"a\n"), ("torchrun.log", b"")), tmp_path / "gpu-1")
    assert files(tmp_path / "gpu-1") == {"rank0.out": b"a\n", "torchrun.log": b""}


def test_names_stay_in_their_directory_and_links_are_none(tmp_path):
    (tmp_path / "secret").write_text("secret")
    evil = [("../x", b""), ("/tmp/evil-log", b""), ("a/b", b""), ("..", b""), ("x\n\x1b[2J", b"")]
    links = [
        link("l", "../secret", tarfile.SYMTYPE),
        link("h", "../secret", tarfile.LNKTYPE),
        link("d", "", tarfile.CHRTYPE),
    ]
    save_logs(packed(*evil, *links, ("rank0.out", b"a")), tmp_path / "logs" / "gpu-1")
    assert files(tmp_path / "logs" / "gpu-1") == {"rank0.out": b"a"}
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["gpu-1", "logs", "rank0.out", "secret"]


@pytest.mark.parametrize(("limit", "value"), [("MOST_BYTES", 10), ("MOST_FILES", 1)])
def test_more_than_logs_have_is_left_out(tmp_path, monkeypatch, limit, value):
    monkeypatch.setattr(logs, limit, value)
    save_logs(packed(("rank0.out", b"a"), ("rank0.err", b"x" * 1000)), tmp_path / "gpu-1")
    found = files(tmp_path / "gpu-1")
    assert found.pop("rank0.out") == b"a"
    assert found == {LEFT_OUT: b"what follows, which is more than logs have\n"}


@pytest.mark.parametrize("text", ["x", "!!!!", "QUJD", base64.b64encode(b"\x1f\x8b\x08" + bytes(20)).decode()])
def test_what_is_no_archive_ends_no_run(tmp_path, text):
    save_logs({"logs": text}, tmp_path / "gpu-1")
    assert set(files(tmp_path / "gpu-1")) == {LEFT_OUT}


def test_an_archive_that_is_cut_off(tmp_path):
    whole = base64.b64decode(packed(("rank0.out", bytes(range(256)) * 4000))["logs"])
    save_logs({"logs": base64.b64encode(whole[:-40]).decode()}, tmp_path / "gpu-1")
    assert LEFT_OUT in files(tmp_path / "gpu-1")


def extended(*headers):
    """An archive with these (type, bytes of zeros) before rank0.out."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for kind, size in headers:
            member = tarfile.TarInfo("x")
            member.type, member.size = kind, size
            tar.addfile(member, io.BytesIO(bytes(size)))
        tar.addfile(tarfile.TarInfo("rank0.out"))
    return {"logs": base64.b64encode(out.getvalue()).decode()}


@pytest.mark.parametrize(
    "headers",
    [[(tarfile.XHDTYPE, 1 << 26)], [(tarfile.GNUTYPE_LONGNAME, 1 << 26)], [(tarfile.GNUTYPE_LONGNAME, 1)] * 3000],
    ids=["extended", "long_name", "many"],
)
def test_headers_are_read_into_bounded_memory(tmp_path, headers):
    stopped = extended(*headers)
    tracemalloc.start()
    try:
        save_logs(stopped, tmp_path / "gpu-1")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 23
    assert set(files(tmp_path / "gpu-1")) == {LEFT_OUT}


@pytest.mark.parametrize("stopped", [{}, {"logs": ""}, {"logs": None}])
def test_without_logs_there_is_no_directory(tmp_path, stopped):
    save_logs(stopped, tmp_path / "gpu-1")
    assert files(tmp_path / "gpu-1") == {}
