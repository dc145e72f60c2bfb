# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What schedulers and DCGM ask of NVML, the simulated library answers."""

import contextlib
import ctypes
import re
import shutil
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.nvml import open_nvml
from ansible_collections.allreduce.gpu.tests.lab.nvml import machines, recording
from ansible_collections.allreduce.gpu.tests.lab.nvml.fault import said

QUESTIONS = yaml.safe_load(Path(__file__).with_name("nvml_questions.yml").read_text(encoding="utf-8"))
NOT_SUPPORTED, INSUFFICIENT_SIZE = 3, 7
WORDS = 4  # of 64 processors


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("no gcc to build the simulated NVML with")
    return recording.build_library(tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1")


@pytest.fixture
def opened(library, tmp_path, monkeypatch):
    """A function that records a machine and gives its NVML: the real pynvml, and its handles."""
    kept = contextlib.ExitStack()

    def of(machine):
        recording.record(machine, tmp_path)
        monkeypatch.setenv("SIMULATED_NVML", str(tmp_path / "profile"))
        nvml, unavailable = kept.enter_context(open_nvml(str(library)))
        assert unavailable is None
        pynvml = nvml.pynvml
        return pynvml, [pynvml.nvmlDeviceGetHandleByIndex(number) for number in range(len(machine.gpus))]

    with kept:
        yield of


@pytest.mark.parametrize("name", sorted({*QUESTIONS["slurm"], *QUESTIONS["dcgm"]}))
def test_a_function_that_others_call_is_there(library, name):
    assert hasattr(ctypes.CDLL(str(library)), f"nvml{name}")


@pytest.mark.parametrize("name", QUESTIONS["dcgm_unsupported"])
def test_what_no_machine_has_is_answered_as_by_a_gpu_without_it(opened, library, name):
    dummy, handles = opened(machines.a40_pcie())
    assert getattr(ctypes.CDLL(str(library)), f"nvmlDeviceGet{name}")(handles[0]) == NOT_SUPPORTED


def test_a_name_that_the_library_lacks_is_said_to_be_missing(opened):
    """DCGM's loader answers so itself (sdk/nvidia/nvml/nvml_loader.cpp), and so does pynvml."""
    pynvml, dummy = opened(machines.a40_pcie())
    with pytest.raises(pynvml.NVMLError_FunctionNotFound):
        pynvml.nvmlEventSetCreate()


def processors(text):
    found = set()
    for part in text.split(","):
        first, dummy, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize("make", [make for make in machines.MACHINES if make().gpus], ids=lambda make: make.__name__)
def test_the_affinity_of_a_gpu_is_that_of_sysfs(opened, make):
    machine = make()
    pynvml, handles = opened(machine)
    for gpu, handle in zip(machine.gpus, handles, strict=True):
        words = pynvml.nvmlDeviceGetCpuAffinity(handle, WORDS)
        found = {64 * word + bit for word in range(WORDS) for bit in range(64) if words[word] >> bit & 1}
        assert found == processors(machine.numa[gpu.numa])
        (nodes,) = pynvml.nvmlDeviceGetMemoryAffinity(handle, 1, pynvml.NVML_AFFINITY_SCOPE_NODE)
        assert nodes == 1 << gpu.numa


def test_a_mask_without_room_is_refused(opened):
    pynvml, handles = opened(machines.a40_pcie())
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceGetCpuAffinity(handles[0], 0)


def test_the_profile_of_a_mig_device_is_that_of_its_name(opened):
    """Slurm makes "3g.20gb" of it, where the name does not say so (_handle_mig)."""
    pynvml, (gpu,) = opened(machines.a100_mig())
    mig = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, 0)
    found = pynvml.nvmlDeviceGetAttributes_v2(mig)
    assert (found.gpuInstanceSliceCount, found.computeInstanceSliceCount, found.multiprocessorCount) == (3, 3, 42)
    assert (found.memorySizeMB + 1023) // 1024 == 20
    assert pynvml.nvmlDeviceIsMigDeviceHandle(mig).value == 1
    assert pynvml.nvmlDeviceGetUUID(
        pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)
    ) == pynvml.nvmlDeviceGetUUID(gpu)
    for question in (pynvml.nvmlDeviceGetAttributes_v2, lambda one: pynvml.nvmlDeviceGetProcessUtilization(one, 0)):
        with pytest.raises(pynvml.NVMLError_NotSupported):  # of the whole GPU, which is cut up
            question(gpu)


def test_processes_are_sampled_and_counted_in_all_versions(opened, library):
    pynvml, handles = opened(
        said(machines.a40_pcie(), 0, ("processes", "4711:512 4712:1024"), ("utilization", "87 12"))
    )
    samples = pynvml.nvmlDeviceGetProcessUtilization(handles[0], 0)
    assert [(one.pid, one.smUtil, one.memUtil) for one in samples] == [(4711, 87, 12), (4712, 87, 12)]
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetProcessUtilization(handles[1], 0)
    found = pynvml.nvmlDeviceGetComputeRunningProcesses_v2(handles[0])
    assert [(one.pid, one.usedGpuMemory >> 20) for one in found] == [(4711, 512), (4712, 1024)]
    assert pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3(handles[0]) == []
    old = (ctypes.c_ulonglong * 4)()
    count = ctypes.c_uint(0)
    ask = ctypes.CDLL(str(library)).nvmlDeviceGetComputeRunningProcesses
    assert ask(handles[0], ctypes.byref(count), old) == INSUFFICIENT_SIZE and count.value == 2
    assert ask(handles[0], ctypes.byref(count), old) == 0
    assert list(old) == [4711, 512 << 20, 4712, 1024 << 20]


def test_old_names_give_old_structures(opened, library):
    pynvml, handles = opened(machines.a40_pcie())
    plain, count, old = ctypes.CDLL(str(library)), ctypes.c_uint(), ctypes.create_string_buffer(64)
    assert plain.nvmlInit() == 0
    assert plain.nvmlDeviceGetCount(ctypes.byref(count)) == 0 and count.value == len(handles)
    assert plain.nvmlDeviceGetPciInfo(handles[0], old) == 0
    assert old.value == b"0000:17:00.0" and old.raw[36:] == bytes(28)
    assert plain.nvmlDeviceGetNvLinkRemotePciInfo(handles[0], 0, old) == 0 and old.value == b"0000:31:00.0"
    plain.nvmlShutdown()


def test_a_gpu_is_found_by_its_address_and_its_uuid(opened):
    pynvml, handles = opened(machines.a40_pcie())
    uuid = pynvml.nvmlDeviceGetUUID(handles[2])
    for handle in (
        pynvml.nvmlDeviceGetHandleByPciBusId(b"00000000:98:00.0"),
        pynvml.nvmlDeviceGetHandleByPciBusId(b"98:00.0"),
        pynvml.nvmlDeviceGetHandleByUUID(uuid.encode()),
    ):
        assert pynvml.nvmlDeviceGetIndex(handle) == 2
    with pytest.raises(pynvml.NVMLError_NotFound):
        pynvml.nvmlDeviceGetHandleByPciBusId(b"0000:99:00.0")


def test_a_lost_gpu_answers_nobody(opened):
    pynvml, handles = opened(machines.a40_pcie().change(1, failing=(15, 1)))
    for question in (pynvml.nvmlDeviceGetIndex, pynvml.nvmlDeviceGetEnforcedPowerLimit):
        with pytest.raises(pynvml.NVMLError_GpuIsLost):
            question(handles[1])


def test_the_oldest_replica_can_load_it(library):
    """Debian 11 lends its userland to Ubuntu 20.04; a symbol of a newer glibc would leave such hosts without NVML."""
    needed = {int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", library.read_bytes())}
    assert max(needed) <= 31
