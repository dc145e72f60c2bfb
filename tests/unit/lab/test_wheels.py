# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wheels for lab hosts: what is asked of pip, and when."""

from __future__ import annotations

import subprocess

import pytest
import yaml

from tests.lab import paths, wheels
from tests.lab.progress import LabError

PROFILES = yaml.safe_load((paths.CHECKOUT / "data/stack/profiles.yml").read_text(encoding="utf-8"))


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """What pip is asked for; nothing is downloaded."""
    calls = []

    def pip(wanted, *args):
        calls.append(list(args))
        return subprocess.CompletedProcess(args, 0, "", "")

    monkeypatch.setattr(paths, "WHEELS", tmp_path)
    monkeypatch.setattr(wheels, "_pip", pip)
    return calls


def test_the_plain_index_is_asked_for_one_python_once(asked):
    wheels.ensure("a100-el8")
    wheels.ensure("a100-el8")
    (call,) = asked
    assert [option for option in call if option.startswith(("--python-version", "--abi"))] == [
        "--python-version=3.8",
        "--abi=cp38",
        "--abi=abi3",
        "--abi=none",
    ]
    assert {"--only-binary=:all:", "torch==2.4.1"} <= set(call)
    assert "--no-index" not in call


def test_a_cpu_build_is_looked_for_first(asked, monkeypatch):
    monkeypatch.setenv("LAB_WHEELS", "/given")
    wheels.ensure("demo")
    first, second = asked
    assert first[-5:] == ["--no-deps", "--no-index", "--find-links", "/given", "torch==2.13.0"]
    assert second[-4:] == [str(paths.WHEELS / "cpu"), "torch==2.13.0", "numpy", "uv==0.13.9"]


def test_a_changed_set_is_collected_again(asked, monkeypatch):
    wheels.ensure("uv")
    other = wheels.Wheels("uv", "plain", "3.12", ["uv==0.13.9"], ["horovod==0.28.1"])
    monkeypatch.setattr(wheels, "get", lambda name: other)
    wheels.ensure("uv")
    assert len(asked) == 3
    assert asked[-1][-1] == "horovod==0.28.1"
    assert "--no-binary=:all:" in asked[-1]


def test_what_pip_says_last_is_the_reason(asked, monkeypatch):
    monkeypatch.setattr(wheels, "_pip", lambda *args: subprocess.CompletedProcess(args, 1, "", "x\nERROR: no space"))
    with pytest.raises(LabError, match=r"^pip could not download the wheels a100-el8: ERROR: no space$"):
        wheels.ensure("a100-el8")
    assert not list(paths.WHEELS.glob("*/.a100-el8"))


def test_an_unknown_set_is_refused():
    with pytest.raises(LabError, match=r"^the lab has no wheels 'all': use one of demo, "):
        wheels.get("all")


def _reference():
    profiles = PROFILES.get("rows", PROFILES.get("profiles"))
    return {
        name: row["request"]["python"]
        for name, row in profiles.items()
        if row.get("system") and "python" in row["request"]
    }


@pytest.mark.parametrize(("name", "python"), _reference().items())
def test_reference_systems_get_builds_for_their_python(name, python):
    assert (wheels.get(name).python, wheels.get(name).view) == (python, "plain")
