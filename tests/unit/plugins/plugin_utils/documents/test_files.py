# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import json
import os
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents import files
from hypothesis import given
from hypothesis import strategies as st


def names(directory):
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("before", [None, b"old and longer than the new content"])
def test_the_content_is_replaced_and_nothing_else_is_left(tmp_path, before):
    path = tmp_path / "result.json"
    if before is not None:
        path.write_bytes(before)
    files.write_json(path, {"é": [1, None]})
    assert json.loads(path.read_text(encoding="utf-8")) == {"é": [1, None]}
    assert names(tmp_path) == ["result.json"]


def test_a_number_that_json_does_not_have_is_written_as_its_name(tmp_path):
    """A loss that diverged; other languages refuse the file otherwise."""
    path = tmp_path / "result.json"
    files.write_json(path, {"loss": float("nan"), "seen": [1.5, (float("-inf"), {"most": float("inf")})]})

    def refuse(word):
        raise AssertionError(word)

    found = json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert found == {"loss": "nan", "seen": [1.5, ["-inf", {"most": "inf"}]]}


def test_a_failure_leaves_the_old_content_and_no_other_file(tmp_path, monkeypatch):
    path = tmp_path / "page"
    path.write_bytes(b"old")

    def fail(_self, _target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        files.replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["page"]


def test_what_a_killed_run_left_goes_and_what_is_on_its_way_stays(tmp_path):
    (tmp_path / ".page.123").write_bytes(b"ha")
    os.utime(tmp_path / ".page.123", (1, 1))
    (tmp_path / ".page.old").write_bytes(b"not ours")
    os.utime(tmp_path / ".page.old", (1, 1))
    (tmp_path / ".page.456").write_bytes(b"another run, just now")
    files.replace_file(tmp_path / "page", b"new")
    assert names(tmp_path) == [".page.456", ".page.old", "page"]


def test_a_power_cut_leaves_the_old_or_the_new_content(tmp_path, monkeypatch):
    """What has the name was on the disk before."""
    synced = []
    monkeypatch.setattr(files.os, "fsync", lambda number: synced.append(os.readlink(f"/proc/self/fd/{number}")))
    files.replace_file(tmp_path / "page", b"new")
    assert synced == [str(tmp_path / f".page.{os.getpid()}")]


def test_a_reader_never_sees_a_part(tmp_path, monkeypatch):
    """While the new content is being written, the path still holds the old one."""
    path, seen = tmp_path / "page", []
    path.write_bytes(b"old")
    write = Path.write_bytes

    def watched(self, content):
        write(self, content[:1])
        seen.append(path.read_bytes())
        return write(self, content)

    monkeypatch.setattr(Path, "write_bytes", watched)
    files.replace_file(path, b"new")
    assert (seen, path.read_bytes()) == ([b"old"], b"new")


@pytest.mark.parametrize(
    "file",
    [
        "horovod-0.28.1-cp311-cp311-linux_x86_64.whl",
        "Horovod-0.28.1-1build-py2.py3-none-manylinux_2_28_x86_64.manylinux2014_x86_64.whl",
        "horovod-0.28.1.0-cp311-abi3-any.whl",
    ],
)
def test_the_wheel_of_a_package(file):
    assert files.is_wheel_of(file, "horovod", "0.28.1")


WHEEL = "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"


@pytest.mark.parametrize(
    "file",
    [
        *(f"{prefix}{WHEEL}" for prefix in ("/", "../", "./", "a/", "..", ".", "-", " ", "\n", "~/", "$HOME", "\\", "C:", "\0", "｡")),
        *(f"{WHEEL}{suffix}" for suffix in ("/", "/x", "\n", "\0", " ", ".", "\\", ";id", ".pth", "\u2028")),
        *(WHEEL.replace("cp311-cp311", tags) for tags in ("cp311/../cp311", "cp311", "cp311--cp311", "cp311-cp 311", "-", "a-b-c-d", "${X}-cp311")),
        *(WHEEL.replace("0.28.1", version) for version in (
            "0.28.2", "0.28", "", "0.28.1+cpu", "0.28.1/..", "x", "1!0.28.1", "0.28.*", "٠.28.1", "0.28.1" + "0" * 300)),
        *(WHEEL.replace("horovod", name) for name in ("evil", "", "horovod-evil", "h/o", "horov‐od", "ｈorovod", "horovod_")),
        WHEEL.replace(".whl", ".WHL"), WHEEL.replace(".whl", ".zip"), WHEEL.replace(".whl", ""), "", ".", "..", ".whl", "/etc/passwd", "------.whl",
        WHEEL.encode(), None, 3, [WHEEL], {"file": WHEEL}, WHEEL * 1000,
    ],
)  # fmt: skip
def test_everything_else_is_none(file):
    assert not files.is_wheel_of(file, "horovod", "0.28.1")


PARTS = st.sampled_from(
    [
        *WHEEL.removesuffix(".whl").split("-"),
        "-",
        ".whl",
        "/",
        "..",
        "\\",
        "\n",
        "\0",
        "$",
        "ä",
        " ",
        "~",
        "0.28.1",
        "+",
        "!",
    ]
)


@given(
    st.one_of(
        st.text(max_size=60), st.lists(PARTS, max_size=12).map("".join), st.lists(PARTS, max_size=7).map("-".join)
    )
)
def test_no_name_of_a_wheel_is_a_path(file):
    if files.is_wheel_of(file, "horovod", "0.28.1"):
        assert Path("/cache", file).resolve() == Path("/cache") / file
        assert file.isascii() and file.isprintable() and not set("/\\$ ~!'\"&;|<>*?") & set(file)
