# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""gpu_settings as programs on simulated GPUs, a new process each time: change, check, idempotent, idempotent check.

The module runs under this Python; the program that applies the record at boot also under a real Python 3.6 where one is.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pynvml
import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.program import program_files
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording

COLLECTIONS = Path(__file__).resolve().parents[4] / ".collections"
CLOCKS = (
    ("application_clocks", "1215 1410"),
    ("default_application_clocks", "1215 1095"),
    ("memory_clocks", "1215"),
    ("graphics_clocks.1215", "1410 210 15"),
)
RUNNER = """\
import sys

from ansible_collections.allreduce.gpu.plugins.module_utils.settings.gpu_settings import LockedClocks
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.gpu_settings_program import apply_record

record, library, clocks = sys.argv[1:4]
sys.exit(apply_record(record, library, LockedClocks(clocks), "--check" in sys.argv))
"""
# {setting: (declared, its line in the simulated GPU's state, before → after as told)}
CASES = {
    "persistence_mode": (True, "persistence_mode 1", (False, True)),
    "power_limit_watts": (250, "power_limit 250000", (400, 250)),
    "compute_mode": ("exclusive_process", "compute_mode 3", ("default", "exclusive_process")),
    "ecc": (False, "ecc 1 0", (True, False)),
    "mig_mode": (True, "mig 0 1", (False, True)),
    "application_clocks": (
        {"memory": 1215, "graphics": 1005},
        "application_clocks 1215 1005",
        ({"memory": 1215, "graphics": 1410}, {"memory": 1215, "graphics": 1005}),
    ),
    "locked_clocks": (
        {"graphics": {"min": 210, "max": 1200}},
        "locked_graphics 210 1200",
        ({"graphics": None}, {"graphics": [210, 1200]}),
    ),
}


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("no gcc to build the simulated NVML with")
    return recording.build_library(tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1")


class Node:
    """A machine with four A100, and the two ways to set them."""

    def __init__(self, place: Path, library: Path):
        self.place, self.library = place, library
        machine = machines.a100_nvlink()
        for number in range(4):
            machine = machine.change(number, settings=CLOCKS)
        self.record_machine(machine)

    def record_machine(self, machine) -> None:
        shutil.rmtree(self.place / "machine", ignore_errors=True)
        recording.record(machine, self.place / "machine")

    @property
    def environment(self) -> dict:
        return {**os.environ, "SIMULATED_NVML": str(self.place / "machine" / "profile")}

    def state(self) -> list[str]:
        """What was set, as "<index> <key> <value>"."""
        path = self.place / "machine" / "profile.state"
        return sorted(path.read_text().splitlines()) if path.exists() else []

    def module(self, check: bool = False, **options) -> dict:
        arguments = self.place / "arguments.json"
        options = {"nvml_library": str(self.library), "locked_clocks_path": str(self.place / "clocks.json"), **options}
        given = {"_ansible_check_mode": check, "_ansible_diff": True, **options}
        arguments.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": given}))
        name = "ansible_collections.allreduce.gpu.plugins.modules.gpu_settings"
        environment = {**self.environment, "PYTHONPATH": os.pathsep.join([str(COLLECTIONS), *filter(None, sys.path)])}
        command = [sys.executable, "-m", name, str(arguments)]
        process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert process.stdout, process.stderr
        return json.loads(process.stdout)

    def program(self, interpreter: str, *options: str, **settings) -> subprocess.CompletedProcess:
        """The boot program, with its own places instead of the system's."""
        directory = self.place / "program"
        for file in program_files("settings.gpu_settings_program", str(directory)):
            Path(file["path"]).parent.mkdir(parents=True, exist_ok=True)
            Path(file["path"]).write_text(file["content"])
        shutil.copy(pynvml.__file__, directory)
        (directory / "__main__.py").write_text(RUNNER)
        record = self.place / "record.json"
        record.write_text(json.dumps([settings]))
        arguments = [str(record), str(self.library), str(self.place / "clocks.json"), *options]
        command = [interpreter, "-I", "-B", str(directory), *arguments]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)


@pytest.fixture
def node(library, tmp_path):
    return Node(tmp_path, library)


@pytest.fixture(params=["this Python", "Python 3.6"])
def interpreter(request):
    if request.param == "this Python":
        return sys.executable
    candidates = [shutil.which("python3.6"), *sorted(Path.home().glob(".pyenv/versions/3.6.*/bin/python3.6"))]
    for candidate in filter(None, candidates):
        if subprocess.run([candidate, "-c", ""], check=False, capture_output=True).returncode == 0:
            return str(candidate)
    return pytest.skip("there is no Python 3.6")


@pytest.mark.parametrize("setting", CASES)
def test_check_change_idempotent_idempotent_check(node, setting):
    declared, line, (before, after) = CASES[setting]
    options = {setting: declared}

    predicted = node.module(check=True, **options)
    assert predicted["changed"] is True
    assert node.state() == []
    assert len(predicted["diff"]) == 4

    changed = node.module(**options)
    assert changed["changed"] is True
    assert changed["diff"] == predicted["diff"]
    assert [gpu["changes"] for gpu in changed["gpus"]] == [{setting: {"before": before, "after": after}}] * 4
    # Releasing what was never set leaves nothing behind.
    assert node.state() == [f"{index} {line}" for index in range(4)]

    for check in (False, True):
        again = node.module(check=check, **options)
        assert again["changed"] is False
        assert again["diff"] == []
        assert again["reset_required"] is (setting in ("ecc", "mig_mode"))
    assert node.state() == [f"{index} {line}" for index in range(4)]


@pytest.mark.parametrize("setting", CASES)
def test_the_boot_program_does_the_same(node, setting, interpreter):
    declared, line, dummy = CASES[setting]

    def run(*options) -> bool:
        process = node.program(interpreter, *options, **{setting: declared})
        assert process.returncode == 0, process.stderr
        return json.loads(process.stdout)["changed"]

    assert run("--check") is True
    assert node.state() == []
    assert run() is True
    assert node.state() == [f"{index} {line}" for index in range(4)]
    assert (run(), run("--check")) == (False, False)


def test_a_declaration_of_several_parts(node):
    answer = node.module(
        declaration=[
            {"persistence_mode": True, "power_limit_watts": 300},
            {"gpus": ["A100"], "compute_mode": "exclusive_process"},
            {"gpus": ["3"], "power_limit_watts": "default"},
        ]
    )
    assert [gpu["changes"].get("power_limit_watts", {}).get("after") for gpu in answer["gpus"]] == [300, 300, 300, None]
    assert all(gpu["changes"]["compute_mode"]["after"] == "exclusive_process" for gpu in answer["gpus"])
    assert "warnings" not in answer


def test_default_takes_settings_back(node):
    node.module(
        power_limit_watts=300,
        application_clocks={"memory": 1215, "graphics": 210},
        locked_clocks={"graphics": 210, "memory": 1215},
    )
    back = {"power_limit_watts": "default", "application_clocks": "default", "locked_clocks": "default"}
    assert node.module(**back)["changed"] is True
    assert [line for line in node.state() if line.startswith("0 ")] == [
        "0 application_clocks 1215 1095",
        "0 locked_graphics 0 0",
        "0 locked_memory 0 0",
        "0 power_limit 400000",
    ]
    assert node.module(**back)["changed"] is False


def test_nothing_is_changed_where_one_gpu_refuses(node):
    machine = machines.a100_nvlink().change(3, model=machines.RTX_3090)
    node.record_machine(machine)
    answer = node.module(persistence_mode=True, power_limit_watts=380)
    assert answer["failed"] is True
    assert answer["msg"] == ("GPU 3 (NVIDIA GeForce RTX 3090): power_limit_watts 380 is out of range; give 100 to 366.")
    assert node.state() == []


def test_the_boot_program_sets_what_it_can(node, interpreter):
    node.record_machine(machines.a100_nvlink().change(1, lost=True))
    process = node.program(interpreter, persistence_mode=True)
    assert process.returncode == 1
    assert process.stderr.strip() == "GPU 1 does not answer: GPU is lost."
    assert node.state() == [f"{index} persistence_mode 1" for index in (0, 2, 3)]


def test_what_waits_for_a_reset_is_said(node):
    for check in (True, False, False):
        answer = node.module(check=check, gpus=["0"], ecc=False)
        assert answer["reset_required"] is True
        assert answer["gpus"][0]["reset_required"] == ["ecc"]
        # ansible-core 2.19 wraps them.
        warnings = [one if isinstance(one, str) else one["event"]["msg"] for one in answer["warnings"]]
        assert warnings == ["GPU 0 (NVIDIA A100-SXM4-40GB): ecc turns off only after a reset of the GPU or a reboot."]


def test_settings_lost_to_the_reset_for_mig_mode_are_made_again(node):
    machine = machines.a100_nvlink().change(0, settings=(("mig_activation", "0"),))
    node.record_machine(machine)
    assert node.module(gpus=["0"], persistence_mode=True, compute_mode="exclusive_process")["changed"] is True
    declared = {"gpus": ["0"], "persistence_mode": True, "compute_mode": "exclusive_process", "mig_mode": True}
    answer = node.module(**declared)
    assert (answer["changed"], answer["reset_required"]) == (True, False)
    assert node.state() == ["0 compute_mode 3", "0 mig 1 1", "0 persistence_mode 1"]
    assert node.module(**declared)["changed"] is False


def test_locked_clocks_are_set_anew_when_the_record_is_gone(node):
    node.module(locked_clocks={"graphics": 1200})
    (node.place / "clocks.json").unlink()  # as /run is after a boot
    assert node.module(locked_clocks={"graphics": 1200})["changed"] is True


@pytest.mark.parametrize(
    "machine, cause, told",
    [
        (replace(machines.a40_pcie(), driver=None), "driver_not_loaded", "Driver Not Loaded"),
        (machines.a40_pcie().with_library("550.54"), "version_mismatch", "RM has detected an NVML/RM version mismatch"),
    ],
)
def test_without_a_driver_there_is_one_sentence(node, machine, cause, told):
    node.record_machine(machine)
    answer = node.module(persistence_mode=True)
    assert answer["failed"] is True
    assert answer["msg"] == (
        f"The GPU settings cannot be applied: {told}; install and load the driver, as role allreduce.gpu.nvidia_driver does."
    )
    assert (answer["driver_installed"], answer["cause"]) == (True, cause)


def test_without_a_library_there_is_one_sentence(node):
    answer = node.module(persistence_mode=True, nvml_library="libno-such.so.1")
    assert answer["msg"].startswith("The GPU settings cannot be applied: library libno-such.so.1 not found; install")
    assert (answer["driver_installed"], answer["cause"]) == (False, "library_missing")


def test_a_wrong_declaration_is_one_sentence(node):
    answer = node.module(power_limit_watts="plenty")
    assert answer["msg"] == "power_limit_watts is 'plenty'; give a number of watts, or default."
    assert answer["cause"] == "not_watts"


def test_who_is_not_root_is_told_so(node):
    with (node.place / "machine" / "profile").open("a") as profile:
        profile.write("system unprivileged 1\n")
    answer = node.module(gpus=["0"], persistence_mode=True)
    assert answer["failed"] is True
    assert answer["msg"] == "GPU 0 (NVIDIA A100-SXM4-40GB): persistence_mode cannot be changed: this needs root."
    (finding,) = answer["findings"]
    assert (finding["code"], finding["subject"]) == ("not_changed", "GPU0")
    assert (finding["detail"]["setting"], finding["detail"]["cause"]) == ("persistence_mode", "no_permission")
