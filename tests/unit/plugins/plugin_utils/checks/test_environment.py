# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import probes
from ansible_collections.allreduce.gpu.plugins.plugin_utils.checks import environment
from ansible_collections.allreduce.gpu.plugins.plugin_utils.launch.launchers.mpirun import PROGRAMS

PLANNED = {
    "name": "main",
    "python": "3.11",
    "accelerator": "cpu",
    "requirements": ["torch==2.13.0", "numpy"],
    "frameworks": {"pytorch": "2.13.0"},
}


@pytest.mark.parametrize(
    ("accelerator", "gpus", "torch", "status"),
    [
        ("cpu", 0, {"cuda_available": False, "device_count": 0}, "passed"),
        ("cuda", 2, {"cuda_available": True, "device_count": 2}, "passed"),
        ("cuda", 2, {"cuda_available": True, "device_count": 1}, "failed"),
        ("cuda", 2, {"cuda_available": False, "device_count": 0}, "failed"),
        ("cpu", 1, {"cuda_available": True, "device_count": 1}, "failed"),
        ("cuda", 2, {"error": "ImportError: libcudart"}, "unknown"),
        ("cuda", 2, None, "unknown"),
    ],
)
def test_cuda_matches_the_accelerator(accelerator, gpus, torch, status):
    answer = {"torch": torch} if torch else None
    assert environment.cuda(dict(PLANNED, accelerator=accelerator), gpus, answer)["status"] == status


@pytest.mark.parametrize(
    ("accelerator", "torch", "status"),
    [
        ("cuda", {"cuda_available": False, "device_count": 0}, "skipped"),
        ("cuda", {"error": "ImportError: libcudart"}, "skipped"),
        ("cuda", None, "skipped"),
        ("cuda", {"cuda_available": True, "device_count": 2}, "failed"),
        ("cpu", {"cuda_available": False, "device_count": 0}, "passed"),
        ("cpu", {"cuda_available": True, "device_count": 2}, "failed"),
        ("cpu", None, "unknown"),
    ],
)
def test_without_gpus_that_compute_cuda_is_skipped_and_never_passed(accelerator, torch, status):
    stack = {"environments": [dict(PLANNED, accelerator=accelerator)]}
    probe = {"environments": {"main": {"torch": {"version": "2", **torch}} if torch else {}}}
    found = {one["name"]: one for one in environment.checks(stack, {"gpus": [{}, {}]}, probe, gpu_compute=False)}
    assert found["main_cuda"]["status"] == status
    told = found["main_cuda"]["reason"] + found["main_cuda"]["fix"]
    assert ("verify_gpu_compute: false" in told) == (accelerator == "cuda")


def test_gpus_compute_unless_it_is_said_that_they_do_not():
    stack = {"environments": [dict(PLANNED, accelerator="cuda")]}
    probe = {"environments": {"main": {"torch": {"version": "2", "cuda_available": False, "device_count": 0}}}}
    statuses = {one["name"]: one["status"] for one in environment.checks(stack, {"gpus": [{}]}, probe)}
    assert statuses == {"main_torch": "passed", "main_cuda": "failed"}


MPI = {"version": "4.1.2", "library": "Open MPI v4.1.4", "launcher": "mpirun (Open MPI) 4.1.4"}


@pytest.mark.parametrize(
    ("answer", "statuses"),
    [
        (MPI, ("passed", "passed")),
        ({**MPI, "launcher": "mpirun (Open MPI) 5.0.7"}, ("passed", "failed")),
        ({**MPI, "launcher": None}, ("passed", "skipped")),
        ({"error": "RuntimeError: cannot load MPI library"}, ("failed", "unknown")),
        (None, ("unknown", "unknown")),
    ],
)
def test_packages_are_imported_and_mpi4py_loads_the_mpi_of_the_host(answer, statuses):
    planned = {**PLANNED, "requirements": [*PLANNED["requirements"], "mpi4py>=4.1", "scikit-learn"]}
    probe = {"environments": {"main": {"mpi4py": answer} if answer else {}}}
    found = {one["name"]: one["status"] for one in environment.checks({"environments": [planned]}, {}, probe)}
    assert (found["main_mpi4py"], found["main_mpi"]) == statuses
    assert "main_scikit-learn" not in found  # nobody knows the name of its module


def test_the_probe_looks_for_mpirun_where_the_launcher_does():
    assert str(PROGRAMS).replace("'", '"') in probes.IMPORTS


# What the wheels of the general package index say on a machine without a driver; 2.0.1 and 2.4.1 were recorded.
OF_2_0_1 = {"cuda": "11.7", "cudnn": 8500, "nccl": [2, 14, 3]}
OF_2_3_1 = {"cuda": "12.1", "cudnn": 8902, "nccl": [2, 20, 5]}
OF_2_4_1 = {"cuda": "12.1", "cudnn": 90100, "nccl": [2, 20, 5]}


@pytest.mark.parametrize(
    ("planned", "found", "status"),
    [
        ({"cuda": "11.7", "cudnn": "8.5.0.96", "nccl": "2.14.3"}, OF_2_0_1, "passed"),
        ({"cuda": "12.1", "cudnn": "8.9.2.26", "nccl": "2.20.5"}, OF_2_3_1, "passed"),
        ({"cuda": "12.1", "cudnn": "9.1.0.70", "nccl": "2.20.5"}, OF_2_4_1, "passed"),
        (
            {"cuda": "12.8", "cudnn": "9.10.2.21", "nccl": None},
            {"cuda": "12.8", "cudnn": 91002, "nccl": None},
            "passed",
        ),
        ({"cuda": "13.0.2", "cudnn": None, "nccl": None}, {"cuda": "13.0", "cudnn": None, "nccl": None}, "passed"),
        ({"cuda": "11.8", "cudnn": None, "nccl": None}, OF_2_3_1, "failed"),
        ({"cuda": "12.1", "cudnn": "9.1.0.70", "nccl": "2.20.5"}, OF_2_3_1, "failed"),
        ({"cuda": "12.1", "cudnn": None, "nccl": "2.21.5"}, OF_2_3_1, "failed"),
        ({"cuda": "12.1", "cudnn": None, "nccl": None}, {"cuda": None, "cudnn": None, "nccl": None}, "failed"),
        ({"cuda": "12.1", "cudnn": None, "nccl": None}, None, "unknown"),
    ],
)
def test_what_pytorch_brings_is_what_is_planned(planned, found, status):
    answer = {"torch": {"version": "2.3.1", "libraries": found} if found else {"error": "ImportError: libc10"}}
    check = environment.libraries(dict(PLANNED, libraries=planned), answer)
    assert (check["name"], check["status"]) == ("main_libraries", status)


def test_what_pytorch_brings_is_named():
    planned = dict(PLANNED, libraries={"cuda": "12.1", "cudnn": "9.1.0.70", "nccl": None})
    check = environment.libraries(planned, {"torch": {"libraries": OF_2_3_1}})
    assert (check["expected"], check["measured"]) == ("CUDA 12.1, cuDNN 9.1.0", "CUDA 12.1, cuDNN 8.9.2")


@pytest.mark.parametrize("libraries", [None, {}, {"cuda": None, "cudnn": None, "nccl": None}])
def test_what_the_plan_does_not_know_is_not_compared(libraries):
    stack = {"environments": [dict(PLANNED, libraries=libraries)]}
    answer = {"environments": {"main": {"torch": {"version": "2.13.0", "libraries": OF_2_3_1}}}}
    assert [one["name"] for one in environment.checks(stack, {}, answer)] == ["main_torch", "main_cuda"]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ({"torch": {"version": "2.13.0+cpu"}}, "passed"),
        ({"torch": {"error": "ModuleNotFoundError: torch"}}, "failed"),
        ({"error": "python took longer than 240 seconds"}, "unknown"),
        (None, "unknown"),
    ],
)
def test_imports(answer, status):
    assert environment.imports("main", "torch", answer)["status"] == status


CPU = {"frameworks": ["pytorch"], "controllers": ["gloo"], "operations": ["gloo"]}
CUDA = {"frameworks": ["pytorch", "tensorflow"], "controllers": ["gloo"], "operations": ["nccl"]}


@pytest.mark.parametrize(
    ("planned", "frameworks", "controllers", "operations", "status"),
    [
        (CPU, ["torch"], ["gloo"], ["gloo"], "passed"),
        (CPU, [], ["gloo"], ["gloo"], "failed"),
        (CPU, ["torch", "tensorflow"], ["gloo"], ["gloo"], "failed"),
        (CPU, ["torch"], ["mpi", "gloo"], ["mpi", "gloo"], "failed"),
        (CPU, ["torch"], [], ["gloo"], "failed"),
        (CUDA, ["torch", "tensorflow"], ["gloo"], ["nccl", "gloo"], "passed"),
        (CUDA, ["torch", "tensorflow"], ["gloo"], ["gloo"], "failed"),
    ],
)
def test_horovod_was_compiled_as_planned(planned, frameworks, controllers, operations, status):
    found = {"frameworks": frameworks, "controllers": controllers, "operations": operations}
    check = environment.build(dict(PLANNED, build=planned), {"horovod": {"version": "0.28.1", "build": found}})
    assert (check["name"], check["status"]) == ("main_horovod_build", status)


@pytest.mark.parametrize("answer", [None, {}, {"horovod": {"error": "ImportError: no horovod"}}])
def test_a_horovod_that_cannot_be_asked_is_not_known(answer):
    check = environment.build(dict(PLANNED, build=CPU), answer)
    assert (check["status"], check["expected"]) == ("unknown", "frameworks torch; controllers gloo; operations gloo")


def test_the_build_is_checked_where_one_is_planned():
    stack = {"environments": [dict(PLANNED, build=CPU), dict(PLANNED, name="other", build=None)]}
    names = [one["name"] for one in environment.checks(stack, {}, {})]
    assert [name for name in names if "horovod" in name] == ["main_horovod_build"]
