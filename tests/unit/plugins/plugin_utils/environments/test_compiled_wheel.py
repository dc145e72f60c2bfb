# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A wheel that a node compiled has Horovod's package, its description and its program, and is read alike by everybody."""

import io
import stat
import struct
import zipfile

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.compiled_wheel import wheel_problem
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.plan import QUESTIONS
from hypothesis import given
from hypothesis import strategies as st

VERSION = "0.28.1"
INFO = f"horovod-{VERSION}.dist-info"
FILES = {
    "horovod/__init__.py": "",
    "horovod/torch/mpi_lib_v2.cpython-311-x86_64-linux-gnu.so": "ELF",
    f"{INFO}/METADATA": "Name: horovod\n",
    f"{INFO}/entry_points.txt": "[console_scripts]\nhorovodrun = horovod.runner.launch:run_commandline\n",
    f"{INFO}/RECORD": "",
}


def entry(name, mode=0o100644):
    one = zipfile.ZipInfo(name)
    one.external_attr = mode << 16
    return one


def archive(*more, files=None):
    """The bytes of a wheel with (entry, content) after these files."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as wheel:
        for name, text in (files or FILES).items():
            wheel.writestr(name, text)
        for one, text in more:
            wheel.writestr(one, text)
    return content.getvalue()


def judged(place, content):
    path = place / "a.whl"
    path.write_bytes(content)
    problem = wheel_problem(path, VERSION)
    return problem.code if problem else None


def test_what_setuptools_writes_passes(tmp_path):
    assert judged(tmp_path, archive((entry("horovod/data/", 0o040755), ""), (entry("horovod/x", 0), "x"))) is None


@pytest.mark.parametrize(
    "name",
    [
        "evil.pth",
        "sitecustomize.py",
        "evil/__init__.py",
        "Horovod/x",
        "horovod.pth",
        "horovod",
        "/etc/passwd",
        "../x",
        "horovod/../x.pth",
        "horovod//x",
        "horovod/./x",
        "./horovod/x",
        f"horovod-{VERSION}.data/scripts/python",
        f"horovod-{VERSION}.data/purelib/x.pth",
        "horovod-0.28.2.dist-info/x",
        f"{INFO}",
        "horovod\\..\\x",
        "horovod/a\nb",
        "horovod/ä",
        "",
        "horovod/\x1b[2J",
        "C:/x",
        "bin/python",
    ],
)
def test_what_could_run_as_root_is_refused(tmp_path, name):
    assert judged(tmp_path, archive((entry(name), "import os"))) == "wheel_foreign"


@pytest.mark.parametrize(
    "mode",
    [
        stat.S_IFLNK | 0o777,
        stat.S_IFIFO,
        stat.S_IFCHR,
        stat.S_IFBLK,
        stat.S_IFSOCK,
        0o104755,
        0o102755,
        stat.S_IFDIR | 0o755,
    ],
)
def test_what_is_not_a_plain_file_is_refused(tmp_path, mode):
    assert judged(tmp_path, archive((entry("horovod/x", mode), "/etc/passwd"))) == "wheel_foreign"


@pytest.mark.parametrize(
    "text",
    [
        "", "[console_scripts]\npython = horovod.evil:main\n", FILES[f"{INFO}/entry_points.txt"] + "python3 = horovod.evil:main\n",
        "[gui_scripts]\nhorovodrun = horovod.runner.launch:run_commandline\n", "[console_scripts]\n../../x = horovod.runner.launch:run_commandline\n",
    ],
)  # fmt: skip
def test_another_program_is_refused(tmp_path, text):
    assert judged(tmp_path, archive(files={**FILES, f"{INFO}/entry_points.txt": text})) == "wheel_foreign"


def test_files_that_two_readers_would_take_for_different_ones_are_refused(tmp_path):
    good, evil = archive(), archive((entry("evil.pth"), "import os"))
    assert judged(tmp_path, b"") == judged(tmp_path, b"PK") == judged(tmp_path, good[:-1]) == "wheel_unreadable"
    assert judged(tmp_path, good[:-2] + struct.pack("<H", len(evil)) + evil) in ("wheel_unreadable", "wheel_foreign")
    assert judged(tmp_path, good + b"\0" * 30) == "wheel_unreadable"
    renamed = good.replace(
        b"horovod/__init__.py", b"horovod/__evil__.py", 1
    )  # where the entry is, not where it is listed
    assert judged(tmp_path, renamed) == "wheel_unreadable"
    damaged = good.replace(b"ELF", b"EVL", 1)
    assert judged(tmp_path, damaged) == "wheel_unreadable"
    with pytest.warns(UserWarning, match="Duplicate"):
        twice = archive((entry("horovod/__init__.py"), "import os"))
    assert judged(tmp_path, twice) == "wheel_unreadable"


@pytest.mark.parametrize("wrong", ["LARGEST", "MOST", "LARGEST_CONTENT"])
def test_sizes_are_bounded(tmp_path, monkeypatch, wrong):
    monkeypatch.setattr(f"{wheel_problem.__module__}.{wrong}", 3)
    assert judged(tmp_path, archive()) in ("wheel_large", "wheel_unreadable")


NAMES = st.lists(
    st.sampled_from(
        ["horovod", INFO, "..", ".", "", "evil.pth", "x.py", "/", "\\", "\n", f"horovod-{VERSION}.data", "scripts"]
    ),
    min_size=1,
    max_size=4,
).map("/".join)


@given(st.lists(NAMES, max_size=3, unique=True))
def test_all_that_passes_is_below_the_package(tmp_path_factory, names):
    content = archive(*((entry(name), "x") for name in names if name not in FILES))
    if judged(tmp_path_factory.mktemp("wheel"), content) is None:
        for name in names:
            first, *rest = name.rstrip("/").split("/")
            assert first in ("horovod", INFO) and rest and not {"", ".", ".."} & set(rest)


def test_the_controller_compares_what_it_fetched(tmp_path):
    path = tmp_path / "d1"
    path.write_bytes(archive())
    own = {
        "item": "d1", "__horovod_fetched": str(path), "__horovod_plan": {"d1": {"version": VERSION}},
        "__horovod_wheels": {"d1": {"file": "h.whl", "sha256": "0" * 64}},
    }  # fmt: skip
    assert "has other content on the controller" in QUESTIONS["wheel_refused"].answer(own, {})
    path.write_bytes(archive((entry("evil.pth"), "import os")))
    assert "'evil.pth', which is not Horovod's" in QUESTIONS["wheel_refused"].answer(own, {})
