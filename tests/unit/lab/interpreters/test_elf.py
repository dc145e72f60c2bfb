# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an interpreter needs from the machine it was built on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.interpreters import elf
from tests.lab.progress import LabError

LDD = """\
\tlinux-vdso.so.1 (0x00007f09bfa16000)
\tlibssl.so.3 => /lib/x86_64-linux-gnu/libssl.so.3 (0x00007f09bf600000)
\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f09bf33e000)
\tlibpthread.so.0 => /lib/x86_64-linux-gnu/libpthread.so.0 (0x00007f09bf33e000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f09bf41e000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f09bfa18000)
"""


def test_what_ldd_names_less_glibc():
    assert elf.parse_ldd(LDD) == {"libssl.so.3": Path("/lib/x86_64-linux-gnu/libssl.so.3")}


def test_a_missing_library_is_named():
    with pytest.raises(
        LabError, match=r"^libffi\.so\.8 not found: an interpreter of this machine needs it, install it$"
    ):
        elf.parse_ldd(LDD + "\tlibffi.so.8 => not found\n")


def test_a_missing_tool_is_named():
    with pytest.raises(LabError, match=r"^no-such-tool not found: .* install it with apt$"):
        elf.run("no-such-tool", "--version")


@pytest.mark.parametrize(
    ("content", "expected"), [(b"\x7fELF\x02", True), (b"#!/bin/sh\n", False), (b"", False)], ids=["elf", "sh", "empty"]
)
def test_elf_files_are_told_by_their_content(content, expected, tmp_path):
    (tmp_path / "file").write_bytes(content)
    (tmp_path / "link").symlink_to("file")
    assert (elf.is_elf(tmp_path / "file"), elf.is_elf(tmp_path / "link")) == (expected, False)
