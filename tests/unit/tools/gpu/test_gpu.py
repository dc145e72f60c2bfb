# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""make gpu refuses with one sentence what it cannot accept, and runs its steps in their order."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.torch_python import torch_python
from tools.gpu import __main__ as main_of_gpu
from tools.gpu.__main__ import inventory, request, run, steps
from tools.gpu.check import Seen, ask, from_packages, gpus, refusal

CHECKOUT = Path(__file__).resolve().parents[4]


def prefix(place, program):
    """Return the prefix of an environment whose interpreter is this shell script."""
    python = place / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{program}\n", encoding="utf-8")
    python.chmod(0o755)
    return str(place / "env")


def answering(place, **seen):
    return prefix(place, f"echo '{json.dumps({'torch': '2.13.0', 'cuda': '12.6', 'gpus': 0, 'error': '', **seen})}'")


def pci(place, *devices):
    """Write a sysfs tree with devices of (vendor, class)."""
    for number, (vendor, kind) in enumerate(devices):
        device = place / "sys" / "bus" / "pci" / "devices" / f"0000:0{number}:00.0"
        device.mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n", encoding="ascii")
        (device / "class").write_text(f"{kind}\n", encoding="ascii")
    return place / "sys"


TWO = (("0x10de", "0x030200"), ("0x10de", "0x030000"))


@pytest.mark.parametrize(
    ("seen", "devices", "sentence"),
    [
        ({}, (), "This machine has no NVIDIA GPU on its PCI bus; run make gpu on one that has."),
        ({}, (("0x1234", "0x030000"), ("0x10de", "0x068000")), "This machine has no NVIDIA GPU on its PCI bus;"),
        ({"cuda": None, "torch": "2.13.0+cpu"}, TWO, "There are 2 NVIDIA GPUs on the PCI bus, but PyTorch 2.13.0+cpu in ENV is a build for processors;"),
        ({"cuda": None}, TWO[:1], "There is 1 NVIDIA GPU on the PCI bus, but PyTorch 2.13.0 in ENV is a build for processors;"),
        ({}, TWO, "PyTorch 2.13.0 in ENV sees none of the 2 NVIDIA GPUs on the PCI bus; look at nvidia-smi."),
        ({"torch": None, "error": "OSError: libcudart.so.12"}, TWO, "ENV/bin/python cannot import PyTorch (OSError: libcudart.so.12); set ENV to"),
    ],
)  # fmt: skip
def test_what_cannot_be_accepted_is_one_sentence(tmp_path, seen, devices, sentence):
    env = answering(tmp_path, **seen)
    assert refusal(env, sys=pci(tmp_path, *devices)).startswith(
        sentence.replace("ENV/", f"{env}/").replace("in ENV", f"in {env}")
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [("", "name its prefix"), ("/nowhere", "there is no /nowhere/bin/python"), ("env", "absolute prefix")],
)
def test_without_an_environment_it_says_what_to_name(given, words):
    assert words in refusal(given)


def test_a_gpu_that_pytorch_sees_is_accepted_wherever_it_is(tmp_path):
    assert refusal(answering(tmp_path, gpus=1), sys=tmp_path / "sys") is None


def test_the_way_can_be_tried_without_a_gpu(tmp_path):
    assert refusal(answering(tmp_path), without_gpu=True, sys=tmp_path / "sys") is None


def test_a_real_interpreter_is_asked(tmp_path):
    bare = prefix(tmp_path, f'exec {sys.executable} -I -S "$@"')
    assert ask(Path(bare) / "bin" / "python") == Seen(error="ModuleNotFoundError: No module named 'torch'")
    assert ask(Path(torch_python())).torch


def test_an_interpreter_that_dies_is_no_environment(tmp_path):
    broken = prefix(tmp_path, "kill -SEGV $$")
    assert ask(Path(broken) / "bin" / "python").error.startswith("it ended with status -")


def test_addresses_of_gpus_are_those_of_nvidias_displays(tmp_path):
    assert gpus(pci(tmp_path, ("0x10de", "0x030200"), ("0x10de", "0x040300"), ("0x8086", "0x030000"))) == [
        "0000:00:00.0"
    ]


@pytest.mark.parametrize(
    ("text", "packaged", "found"),
    [
        ("570.86.15\n", True, {"driver": "570", "pytorch": "none"}),
        ("570.86.15\n", False, {"driver_source": "vendor", "pytorch": "none"}),
        ("", True, {"pytorch": "none"}),
        (None, False, {"pytorch": "none"}),
    ],
)
def test_the_plan_is_for_the_driver_that_is_loaded(monkeypatch, tmp_path, capsys, text, packaged, found):
    module = tmp_path / "version"
    if text is not None:
        module.write_text(text, encoding="ascii")
    monkeypatch.setattr(main_of_gpu, "from_packages", lambda: packaged)
    assert request(module) == found
    assert ("Driver 570.86.15 is not from packages" in capsys.readouterr().out) is ("driver_source" in found)


@pytest.mark.parametrize(
    ("name", "status", "found"),
    [("dpkg-query", 0, True), ("dpkg-query", 1, False), ("rpm", 0, True), ("rpm", 1, False), ("none", 0, False)],
)
def test_either_package_manager_knows_whether_the_driver_is_from_a_package(monkeypatch, tmp_path, name, status, found):
    program = tmp_path / name
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *libnvidia-ml.so.1*) exit {status};; *) exit 2;; esac\n', encoding="ascii"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}")
    assert from_packages() is found


def test_nobody_becomes_root_and_no_unit_is_started():
    [host] = inventory("/opt/env", {"pytorch": "none"}, ["--repeats", "9"])["gpu_nodes"]["hosts"].values()
    assert (host["ansible_connection"], host["ansible_become"], host["benchmark_supervised"]) == ("local", False, False)
    assert (host["benchmark_env"], host["benchmark_args"]) == ("/opt/env", ["--repeats", "9"])


def test_the_steps_are_in_order_and_their_playbooks_exist():
    found = steps()
    assert list(found) == ["plan", "facts and health", "verify", "benchmark", "report"]
    assert all(Path(command[3]).is_file() for command in found.values())


@pytest.mark.parametrize(
    ("failing", "ran", "status"),
    [
        (None, ["plan", "verify", "report"], 0),
        ("plan", ["plan"], 1),
        ("verify", ["plan", "verify", "report"], 0),
        ("report", ["plan", "verify", "report"], 1),
    ],
)
def test_a_verification_that_fails_is_a_result_and_another_step_that_fails_is_the_end(
    tmp_path, monkeypatch, failing, ran, status
):
    monkeypatch.setattr("tools.gpu.__main__.PLACE", tmp_path)
    commands = {
        name: ["/bin/sh", "-c", f"echo {name} >> ran; test {name} != {failing}"]
        for name in ("plan", "verify", "report")
    }
    assert run(commands, {}) == status
    assert (tmp_path / "ran").read_text("utf-8").split() == ran


def test_make_says_it_in_one_line():
    # `make test` hands its own flags down, and a make that inherits them speaks of them first.
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL")}
    done = subprocess.run(
        ["make", "-s", "gpu"], cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert (
        done.stderr.splitlines()[0]
        == "make gpu needs an environment with PyTorch; name its prefix: make gpu ENV=/path/to/environment."
    )
