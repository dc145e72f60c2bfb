# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

import os
import resource
import socket

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.machine import regular

READERS = [
    lambda path, **more: regular.open_regular(path, **more).close(),
    lambda path, **more: regular.read_regular(path, 10, **more),
    lambda path, **more: regular.read_end(path, 10, **more),
]


def bind(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def loop(path):
    path.symlink_to(path)


@pytest.mark.parametrize("follow", [False, True])
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "make",
    [
        lambda path: os.mkfifo(str(path)),
        lambda path: path.mkdir(),
        bind,
        lambda path: path.symlink_to("/dev/zero"),
        loop,
        lambda path: None,
    ],
)
def test_what_is_no_file_is_an_error_at_once(tmp_path, make, reader, follow):
    make(tmp_path / "x")
    with pytest.raises((OSError, regular.IrregularError)):
        reader(str(tmp_path / "x"), follow=follow)


@pytest.mark.parametrize("reader", READERS)
def test_links_are_followed_only_on_request(tmp_path, reader):
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    reader(str(tmp_path / "link"), follow=True)
    with pytest.raises(OSError, match="symbolic links"):
        reader(str(tmp_path / "link"))


@pytest.mark.parametrize("reader", READERS)
def test_files_of_others_are_not_read(tmp_path, reader):
    (tmp_path / "file").write_bytes(b"text")
    reader(str(tmp_path / "file"), uid=os.getuid())
    with pytest.raises(regular.IrregularError, match="file is not a regular file of the user: remove it"):
        reader(str(tmp_path / "file"), uid=os.getuid() + 1)


def test_limits(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    assert regular.read_regular(str(path), 10) == b"0123456789"
    with pytest.raises(regular.IrregularError, match="has more than 9 bytes"):
        regular.read_regular(str(path), 9)
    assert regular.read_end(str(path), 4) == (b"6789", 6)
    assert regular.read_end(str(path), 40) == (b"0123456789", 0)


def test_of_a_long_log_only_the_end_is_read(tmp_path):
    """200 MiB, as reported, and what no memory holds."""
    for size in (200 << 20, 1 << 40):
        with open(str(tmp_path / "log"), "wb") as stream:
            stream.truncate(size)
            stream.seek(0, 2)
            stream.write(b"the end")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert regular.read_end(str(tmp_path / "log"), 7) == (b"the end", size)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10  # KiB


def test_no_descriptor_is_left_open(tmp_path):
    os.mkfifo(str(tmp_path / "x"))
    before = len(os.listdir("/proc/self/fd"))
    for _dummy in range(10):
        with pytest.raises(regular.IrregularError):
            regular.open_regular(str(tmp_path / "x"))
    assert len(os.listdir("/proc/self/fd")) == before
