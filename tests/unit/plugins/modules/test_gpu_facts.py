# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as a program: what it documents for hosts where something is missing, on every Python, and what it costs."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jmespath
import pytest
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording

COLLECTIONS = Path(__file__).resolve().parents[4] / ".collections"
MODULE = "ansible_collections.allreduce.gpu.plugins.modules.gpu_facts"
OLD_PYTHON = next(Path.home().glob(".pyenv/versions/3.6.*/bin/python"), None)
A40 = machines.a40_pcie()
A100 = machines.a100_mig()

# machine; nvml, [(index, seen by)], problems
SITUATIONS = {
    "partitioned GPU": (A100, "ok", [(0, "pci nvml")], []),
    "GPU that a device cgroup hides": (
        A40.change(1, hidden=True),
        "ok",
        [(0, "pci nvml"), (1, "pci nvml"), (2, "pci nvml"), (None, "pci")],
        ["GPU 0000:31:00.0 is on the PCI bus but not visible to NVML"],
    ),
    "every GPU hidden": (
        A40.change(0, hidden=True).change(1, hidden=True).change(2, hidden=True).change(3, hidden=True),
        "ok",
        [(None, "pci")] * 4,
        [f"GPU {gpu.address} is on the PCI bus but not visible to NVML" for gpu in A40.gpus],
    ),
    "no driver": (A40.without_driver(), "library LIBRARY not found", [(None, "pci")] * 4, []),
    "driver without its library": (
        A40.with_library(None),
        "library LIBRARY not found",
        [(None, "pci")] * 4,
        ["Kernel module 535.309.01 is loaded but NVML is not available: library LIBRARY not found"],
    ),
    "library of another version": (
        A40.with_library("550.163.01"),
        "RM has detected an NVML/RM version mismatch.",
        [(None, "pci")] * 4,
        ["Driver version mismatch: kernel module 535.309.01, user-space library 550.163.01"],
    ),
    "GPU off the bus": (
        A40.change(2, lost=True),
        "ok",
        [(0, "pci nvml"), (1, "pci nvml"), (3, "pci nvml"), (None, "pci")],
        [
            "NVML cannot open GPU2: GPU is lost",
            "GPU 0000:98:00.0 is on the PCI bus but not visible to NVML",
        ],
    ),
    "no GPU": (machines.no_gpu(), "library LIBRARY not found", [], []),
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("no gcc to build the simulated NVML with")
    return recording.build_library(tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1")


def program(
    place: Path, library: Path, python: str = sys.executable, prelude: str = "", module: str = MODULE, **options: int
) -> str:
    """Standard output of the module on a recorded machine."""
    doors = {
        **options,
        "sysfs_root": str(place / "sys"),
        "procfs_root": str(place / "proc"),
        "nvml_library": str(library),
    }
    arguments = place / "arguments.json"
    arguments.write_text(json.dumps({"ANSIBLE_MODULE_ARGS": doors if module == MODULE else {}}))
    run = f"{prelude}\nimport runpy, sys; sys.argv = ['module', {str(arguments)!r}]; runpy.run_module({module!r}, run_name='__main__')"
    paths = [str(COLLECTIONS), str(place)] + (sys.path if python == sys.executable else [])
    environment = {
        **os.environ,
        "SIMULATED_NVML": str(place / "profile"),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
    }
    process = subprocess.run([python, "-c", run], env=environment, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return process.stdout


def measure(place: Path, library: Path, python: str) -> dict:
    """gpu_node; an old Python has no Ansible beside it and gets the module's work without its shell."""
    if python == sys.executable:
        return json.loads(program(place, library))["ansible_facts"]["gpu_node"]
    import pynvml

    shutil.copy(pynvml.__file__, place)
    (place / "measuring.py").write_text(
        "import json\n"
        "from ansible_collections.allreduce.gpu.plugins.module_utils.machine import files, gpu_node\n"
        f"roots = [files.FileTree(root) for root in {[str(place / 'sys'), str(place / 'proc')]!r}]\n"
        f"print(json.dumps(gpu_node.measure(*roots, nvml_library={str(library)!r})))\n"
    )
    return json.loads(program(place, library, python, module="measuring"))


@pytest.mark.parametrize("python", [sys.executable, OLD_PYTHON], ids=["this Python", "Python 3.6"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_is_missing_is_said(library, tmp_path, situation, python):
    if python is None:
        pytest.skip("no Python 3.6 here")
    machine, nvml, gpus, problems = SITUATIONS[situation]
    recording.record(machine, tmp_path)
    name = library if machine.library else tmp_path / "libnvidia-ml.so.1"
    node = measure(tmp_path, name, str(python))
    assert node["driver"]["nvml"] == nvml.replace("LIBRARY", str(name))
    assert [(gpu["index"], " ".join(gpu["seen_by"])) for gpu in node["gpus"]] == gpus
    assert node["problems"] == [problem.replace("LIBRARY", str(name)) for problem in problems]
    assert len(node["topology"]) == len(node["gpus"]) + len(node["nics"])


def test_the_query_of_the_examples(library, tmp_path):
    """With the library that json_query of community.general uses."""
    source = (COLLECTIONS / "ansible_collections/allreduce/gpu/plugins/modules/gpu_facts.py").read_text("utf-8")
    [query] = re.findall(r"json_query\('(.+)'\)", source)
    recording.record(A40.change(2, width=8), tmp_path)
    node = json.loads(program(tmp_path, library))["ansible_facts"]["gpu_node"]
    assert jmespath.search(query, node) == [{"name": "NVIDIA A40", "width": 8}]


def test_a_driver_that_hangs_is_said_and_the_machine_measured_without_it(library, tmp_path):
    recording.record(A40.change(1, settings=(("hanging", "30"),)), tmp_path)
    node = json.loads(program(tmp_path, library, seconds=1))["ansible_facts"]["gpu_node"]
    assert (node["driver"]["nvml_state"], node["driver"]["loaded_version"]) == ("nvml_hanging", "535.309.01")
    assert [" ".join(gpu["seen_by"]) for gpu in node["gpus"]] == ["pci"] * 4
    assert node["problems"] == [
        "Kernel module 535.309.01 is loaded but NVML is not available: the driver did not answer within 1 seconds"
    ]


def test_a_library_that_crashes_is_said(library, tmp_path):
    recording.record(A40, tmp_path)
    crashing = tmp_path / "libcrash.so.1"
    source = tmp_path / "crash.c"
    source.write_text(
        "#include <stdlib.h>\nint nvmlInit_v2(void) { abort(); }\nint nvmlInitWithFlags(unsigned f) { abort(); }\n"
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", crashing, source], check=True)
    node = json.loads(program(tmp_path, crashing))["ansible_facts"]["gpu_node"]
    assert node["driver"]["nvml_state"] == "nvml_crashed"
    assert node["driver"]["nvml"] == "asking it ended with signal 6"


@pytest.mark.parametrize("machine", machines.MACHINES, ids=lambda machine: machine.__name__)
def test_python_3_6_measures_the_same(library, tmp_path, machine):
    if OLD_PYTHON is None:
        pytest.skip("no Python 3.6 here")
    recording.record(machine(), tmp_path)
    assert measure(tmp_path, library, str(OLD_PYTHON)) == measure(tmp_path, library, sys.executable)


NO_PROGRAMS = """
import sys
def refuse(event, arguments):
    if event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.forkpty"):
        raise SystemExit("started a program: %s" % (arguments,))
sys.addaudithook(refuse)
"""


def test_it_starts_no_program(library, tmp_path):
    recording.record(machines.dgx_a100(), tmp_path)
    (tmp_path / "starting.py").write_text("import subprocess; subprocess.run(['true'])")
    with pytest.raises(AssertionError, match="started a program"):
        program(tmp_path, library, prelude=NO_PROGRAMS, module="starting")
    node = json.loads(program(tmp_path, library, prelude=NO_PROGRAMS))["ansible_facts"]["gpu_node"]
    assert len(node["gpus"]) == 8
