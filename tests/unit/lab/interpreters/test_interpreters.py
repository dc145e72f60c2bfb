# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packed interpreters and the list of them, as uv reads both."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import interpreters
from tests.lab.progress import LabError

UV = Path(sys.executable).with_name("uv")


@pytest.fixture
def archive(tmp_path):
    """A packed interpreter that is none, but has what uv looks for."""
    root = tmp_path / "python"
    for path, mode in {
        "bin/python3.10": 0o755,
        "lib/python3.10/_sysconfigdata__linux_x86_64-linux-gnu.py": 0o644,
    }.items():
        (root / path).parent.mkdir(parents=True)
        (root / path).write_text(
            "# system configuration generated and used by the sysconfig module\nbuild_time_vars = {}\n",
            encoding="utf-8",
        )
        (root / path).chmod(mode)
    path = tmp_path / "cpython-3.10.13-0-x86_64-unknown-linux-gnu-install_only.tar.gz"
    interpreters.write_archive(root, path)
    return interpreters.Archive("3.10.13", path)


def _install(rows, folder):
    """Let uv install from a list."""
    (folder / "list.json").write_text(json.dumps(rows), encoding="utf-8")
    argv = [UV, "python", "install", "--no-config", "--no-bin", "--install-dir", folder / "installed", "3.10"]
    environment = {"UV_PYTHON_DOWNLOADS_JSON_URL": str(folder / "list.json"), "UV_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        argv, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin", **environment}
    )
    return done, folder / "installed/cpython-3.10.13-linux-x86_64-gnu/bin/python3.10"


@pytest.mark.skipif(not UV.exists(), reason="needs uv")
def test_uv_installs_from_the_list(archive, tmp_path):
    done, program = _install(interpreters.download_list([archive], f"file://{tmp_path}"), tmp_path)
    assert (done.returncode, program.exists()) == (0, True), done.stderr


@pytest.mark.skipif(not UV.exists(), reason="needs uv")
def test_uv_refuses_an_archive_with_another_checksum(archive, tmp_path):
    rows = interpreters.download_list([archive], f"file://{tmp_path}")
    next(iter(rows.values()))["sha256"] = "0" * 64
    done, program = _install(rows, tmp_path)
    assert (done.returncode != 0, program.exists(), archive.sha256 in done.stderr) == (True, False, True)


def test_the_list_names_place_and_checksum(archive):
    (row,) = interpreters.download_list([archive], "http://192.0.2.1/interpreters").values()
    assert row["url"] == f"http://192.0.2.1/interpreters/{archive.path.name}"
    assert row["sha256"] == hashlib.sha256(archive.path.read_bytes()).hexdigest()
    assert (row["major"], row["minor"], row["patch"]) == (3, 10, 13)


def test_an_archive_is_the_same_for_the_same_content(archive, tmp_path):
    again = tmp_path / "again.tar.gz"
    (tmp_path / "python/bin/python3.10").touch()
    interpreters.write_archive(tmp_path / "python", again)
    assert again.read_bytes() == archive.path.read_bytes()


def test_only_what_is_in_the_list_is_published(archive, tmp_path, monkeypatch):
    monkeypatch.setattr(interpreters, "ensure", lambda version: archive)
    served = tmp_path / "served"
    served.mkdir()
    (served / "cpython-3.9.1-old.tar.gz").touch()
    interpreters.publish(served, "http://192.0.2.1/i", "demo.json", ("3.10",))
    assert {path.name for path in served.iterdir()} == {"demo.json", archive.path.name}
    assert list(json.loads((served / "demo.json").read_text())) == ["cpython-3.10.13-linux-x86_64-gnu"]


def test_a_python_of_this_machine_is_the_newest_of_its_minor_version(tmp_path, monkeypatch):
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    for name in ("3.1.9", "3.10.9", "3.10.13", "3.10-dev", "3.11.1"):
        (tmp_path / "versions" / name).mkdir(parents=True)
    found = interpreters._installed("3.10")
    assert (found and found.name, interpreters._installed("3.12")) == ("3.10.13", None)


def test_without_one_uv_is_asked_and_its_answer_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS_JSON_URL", str(tmp_path / "missing.json"))
    with pytest.raises(LabError, match=r"^this machine has no Python 3\.10 and uv cannot download one .* with pyenv$"):
        interpreters._download("3.10", tmp_path)


def test_an_unknown_version_is_refused():
    with pytest.raises(LabError, match=r"^the lab has no Python 3\.7: use one of 3\.8, "):
        interpreters.ensure("3.7")
