# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wheels for lab hosts: what is asked of pip, and when."""

from __future__ import annotations

import subprocess
import sys

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

from tests.lab import paths, reference, wheels
from tests.lab.progress import LabError


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


@pytest.mark.parametrize("made", [True, False])
def test_wheels_are_downloaded_with_a_python_that_has_pip(monkeypatch, tmp_path, made):
    python = tmp_path / ".venv" / "bin" / "python"
    if made:
        python.parent.mkdir(parents=True)
        python.touch()
    ran = []
    monkeypatch.setattr(paths, "CHECKOUT", tmp_path)
    monkeypatch.setattr(
        wheels.subprocess, "run", lambda argv, **_: ran.append(argv) or subprocess.CompletedProcess(argv, 0, "", "")
    )
    wheels._download(wheels.Wheels("some", "some", "3.11", []), "numpy")
    assert ran[0][:4] == [str(python) if made else sys.executable, "-m", "pip", "download"]


def test_what_pip_says_last_is_the_reason(asked, monkeypatch):
    monkeypatch.setattr(wheels, "_pip", lambda *args: subprocess.CompletedProcess(args, 1, "", "x\nERROR: no space"))
    with pytest.raises(LabError, match=r"^pip could not download the wheels a100-el8: ERROR: no space$"):
        wheels.ensure("a100-el8")
    assert not list(paths.WHEELS.glob("*/.a100-el8"))


def test_an_unknown_set_is_refused():
    with pytest.raises(LabError, match=r"^the lab has no wheels 'all': use one of demo, "):
        wheels.get("all")


@pytest.mark.parametrize("name", reference.names())
def test_reference_systems_get_builds_of_the_plain_index_for_their_python(name):
    group = reference.get(name).content["gpu_nodes"]
    variables = {**group["vars"], **(next(iter(group["hosts"].values())) or {})}
    question = {"ansible_core": "2.19", "profile": variables["gpu_stack_profile"], **variables["gpu_stack_host"]}
    stack = resolve({**question, "request": {**reference.REQUEST, **reference.REQUESTS.get(name, {})}})["stack"]
    (environment,) = stack["environments"]
    wanted = wheels.get(name)
    assert (wanted.view, wanted.python) == ("plain", environment["python"])
    assert set(environment["requirements"]) & set(wanted.requirements)


@pytest.mark.parametrize(
    "named",
    [wheels.get("horovod").requirements, (paths.CHECKOUT / "requirements-horovod.in").read_text("utf-8").splitlines()],
    ids=["lab", "examples"],
)
def test_horovod_is_built_with_the_tools_of_its_table(named):
    table = yaml.safe_load((paths.CHECKOUT / "data" / "stack" / "horovod.yml").read_text(encoding="utf-8"))
    tools = {line.split()[0] for line in table["tools"]}
    assert tools and tools <= set(named)
