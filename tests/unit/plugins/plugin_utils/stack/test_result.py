# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The shape and the package names of a stack."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.result import kind
from ansible_collections.allreduce.gpu.tests.support.frozen_tables import resolve

A40 = ("A40",)
B200 = ["B200"] * 8
A100 = ["A100 SXM4 80GB"] * 8


def stack(os="ubuntu 22.04", gpus=A40, **request):
    return resolve({"os": os, "gpus": gpus, "request": request})["stack"]


def names(part):
    return {one["name"]: one["version"] for one in part["packages"]}


def test_shape():
    assert set(stack()) == {
        "table_version", "os", "gpus", "driver", "fabric_manager", "repository", "cuda", "cudnn", "nccl", "python",
        "environments", "disk_mib", "inputs", "reasons", "warnings", "kind",
    }  # fmt: skip
    assert set(stack()["environments"][0]) == {
        "name",
        "python",
        "interpreter",
        "accelerator",
        "requirements",
        "index",
        "libraries",
        "conda",
        "frameworks",
        "build",
    }


def test_debian_driver_moves_with_its_branch():
    driver = stack("debian 12", driver="535")["driver"]
    assert names(driver)["nvidia-kernel-dkms"] == "535.*"
    assert names(driver)["nvidia-persistenced"] == "535.*"
    assert driver["components"] == ["contrib", "non-free", "non-free-firmware"]


def test_debian_driver_of_an_older_suite_is_pinned_exactly():
    driver = stack("debian 12", driver="535", driver_source="distribution", kernel_modules="open")["driver"]
    assert names(driver)["nvidia-open-kernel-dkms"] == "535.261.03-1"
    assert names(driver)["nvidia-modprobe"] == "535.161.07-1~deb12u1"


@pytest.mark.parametrize(
    ("os", "request_", "expected"),
    [
        ("ubuntu 22.04", {"driver": "535"}, {"nvidia-headless-535", "nvidia-utils-535", "nvidia-kernel-source-535"}),
        ("ubuntu 22.04", {"driver": "580"}, {"nvidia-headless-580-open", "nvidia-firmware-580", "nvidia-persistenced"}),
        ("ubuntu 22.04", {"driver": "595"}, {"nvidia-headless-open", "nvidia-utils", "nvidia-firmware"}),
        ("debian 12", {"driver": "580"}, {"nvidia-driver-cuda", "nvidia-kernel-open-dkms"}),
        ("rocky 9", {"driver": "580"}, {"nvidia-driver-cuda", "kmod-nvidia-open-dkms", "libnvidia-ml"}),
        ("rocky 8", {"driver": "535"}, {"nvidia-driver-cuda", "kmod-nvidia-latest-dkms", "nvidia-driver-NVML"}),
    ],
)
def test_driver_packages_change_their_names_by_branch(os, request_, expected):
    assert expected <= set(names(stack(os, **request_)["driver"]))


def test_pinning_packages_begin_with_580():
    assert stack(driver="570")["driver"]["pinning_packages"] == []
    assert stack(driver="580")["driver"]["pinning_packages"][0]["name"] == "nvidia-driver-pinning-580.178.04"


@pytest.mark.parametrize(
    ("os", "number", "name", "version"),
    [
        ("ubuntu 22.04", "570.172.08", "nvidia-fabricmanager-570", "570.172.08-1"),
        ("ubuntu 22.04", "580.178.04", "nvidia-fabricmanager", "580.178.04-1ubuntu1"),
        ("rocky 9", "570.172.08", "nvidia-fabric-manager", "570.172.08-*"),
        ("rocky 9", "580.178.04", "nvidia-fabricmanager", "580.178.04-*"),
    ],
)
def test_fabric_manager_has_the_drivers_version_and_the_branchs_name(os, number, name, version):
    found = stack(os, A100, driver=number)
    assert found["fabric_manager"]["version"] == found["driver"]["version"]
    assert names(found["fabric_manager"]) == {name: version}


def test_fabric_manager_of_the_distribution_moves_with_its_driver():
    found = stack("ubuntu 22.04", A100, driver="580", driver_source="distribution")
    assert names(found["fabric_manager"]) == {"nvidia-fabricmanager-580": "580.*"}


@pytest.mark.parametrize(
    ("number", "version"),
    [
        ("535.183.01", "535.183.01-0ubuntu1"),
        ("535.309.01", "535.309.01-[01]ubuntu1"),
        ("580.65.06", "580.65.06-0ubuntu1"),
        ("580.142.01", "580.142.01-[01]ubuntu1"),
        ("580.178.04", "580.178.04-1ubuntu1"),
        ("590.48.01", "590.48.01-0ubuntu1"),
    ],
)
def test_the_revision_nvidia_gives_its_packages_for_ubuntu(number, version):
    assert set(names(stack(driver=number)["driver"]).values()) == {version}


def test_a_toolkit_keeps_what_would_float_to_the_newest():
    assert names(stack(cuda="12.4.1")["cuda"]) == {
        "cuda-toolkit-12-4": "12.4.1-1",
        "cuda-toolkit-12-4-config-common": "12.4.127-1",
        "cuda-toolkit-12-config-common": "12.4.127-1",
        "cuda-toolkit-config-common": "12.4.127-1",
    }


def test_nvlink5_brings_nvlsm():
    assert {"nvlsm", "infiniband-diags"} <= set(names(stack(gpus=B200)["fabric_manager"]))


def test_library_packages():
    found = stack(cuda="12.2", cudnn="8.9", nccl="2.19")
    assert names(found["cudnn"])["libcudnn8"] == "8.9.6.50-1+cuda12.2"
    assert names(found["nccl"])["libnccl-dev"] == "2.19.3-1+cuda12.2"
    assert names(found["cuda"])["cuda-toolkit-12-2"] == "12.2.2-1"
    assert names(stack("rocky 9", cuda="12.4", cudnn="9.1")["cudnn"])["libcudnn9-devel-cuda-12"] == "9.1.0.70-1"


def test_forward_compatibility_brings_its_package():
    assert "cuda-compat-13-0" in names(stack(gpus=["A100 PCIe 80GB"], driver="535", cuda="13.0")["cuda"])


def test_horovods_build():
    build = stack(gpus=["A40", "A100 PCIe 80GB"], horovod="0.28.1", pytorch_index="cu118")["environments"][0]["build"]
    assert build["requirement"] == "horovod==0.28.1"
    assert build["build_isolation"] is False
    assert build["environment"] == {
        "HOROVOD_BUILD_CUDA_CC_LIST": "80,86",
        "HOROVOD_CUDA_HOME": "/usr/local/cuda-11.8",
        "HOROVOD_GPU": "CUDA",
        "HOROVOD_GPU_OPERATIONS": "NCCL",
        "HOROVOD_NCCL_LINK": "SHARED",
        "HOROVOD_WITHOUT_MPI": "1",
        "HOROVOD_WITHOUT_MXNET": "1",
        "HOROVOD_WITHOUT_TENSORFLOW": "1",
        "HOROVOD_WITH_GLOO": "1",
        "HOROVOD_WITH_PYTORCH": "1",
    }


@pytest.mark.parametrize(
    ("os", "gpus", "expected"),
    [
        ("ubuntu 22.04", ["A40"], (["nccl"], ["pytorch"], ["g++", "make", "cmake", "python3.10-dev"])),
        ("ubuntu 22.04", [], (["gloo"], ["pytorch"], ["g++", "make", "cmake", "python3.10-dev"])),
        ("rocky 8", [], (["gloo"], ["pytorch"], ["gcc-c++", "make", "cmake", "python3.11-devel"])),
        ("rocky 9", [], (["gloo"], ["pytorch"], ["gcc-c++", "make", "cmake", "python3.11-devel"])),
    ],
    ids=str,
)
def test_what_horovod_has_and_what_compiles_it(os, gpus, expected):
    build = stack(os, gpus=gpus, horovod="0.28.1")["environments"][0]["build"]
    assert build["controllers"] == ["gloo"]
    assert (build["operations"], build["frameworks"], build["packages"]) == expected
    assert build["source"]["sha256"] and build["source"]["standard"] == 14
    assert all("--hash=sha256:" in one for one in build["tools"])


def test_a_standalone_interpreter_has_its_headers():
    build = resolve({"os": "debian 12", "gpus": [], "interpreter": "standalone", "request": {"horovod": "0.28.1"}})
    assert build["stack"]["environments"][0]["build"]["packages"] == ["g++", "make", "cmake"]


def test_what_horovod_needs_beside_the_frameworks_is_in_its_environment():
    needed = {"cloudpickle", "psutil", "pyyaml", "packaging", "cffi>=1.4.0"}
    assert needed <= set(stack(gpus=[], horovod="0.28.1")["environments"][0]["requirements"])
    assert not needed & set(stack(gpus=[])["environments"][0]["requirements"])


def test_horovod_without_a_gpu_speaks_gloo():
    flags = stack(gpus=[], horovod="0.28.1")["environments"][0]["build"]["environment"]
    assert flags["HOROVOD_CPU_OPERATIONS"] == "GLOO"
    assert not [name for name in flags if "CUDA" in name or "NCCL" in name or "GPU" in name]


@pytest.mark.parametrize(
    ("question", "channels", "specs", "wheels"),
    [
        (
            {"pytorch": "2.1.2", "pytorch_index": "cu121", "python": "3.10", "cupy": "13.6"},
            ["pytorch", "nvidia", "conda-forge"],
            ["python=3.10", "pytorch=2.1.2", "pytorch-cuda=12.1", "numpy<2", "pip"],
            ["cupy-cuda12x==13.6.0"],
        ),
        (
            {"pytorch": "2.5.1", "pytorch_index": "cpu", "python": "3.10"},
            ["pytorch", "nvidia", "conda-forge"],
            ["python=3.10", "pytorch=2.5.1", "cpuonly", "numpy", "pip"],
            [],
        ),
        (
            {"pytorch": "2.8.0", "python": "3.10"},
            ["conda-forge"],
            ["python=3.10", "numpy", "pip"],
            ["torch==2.8.0"],
        ),
        (
            {"pytorch": "2.0.1", "pytorch_index": "cu117", "python": "3.10"},
            ["conda-forge"],
            ["python=3.10", "numpy<2", "pip"],
            ["torch==2.0.1"],
        ),
        (
            {"tensorflow": "2.20.0", "pytorch": "none", "python": "3.10"},
            ["conda-forge"],
            ["python=3.10", "numpy", "pip"],
            ["tensorflow[and-cuda]==2.20.0"],
        ),
    ],
)
def test_an_environment_for_conda(question, channels, specs, wheels):
    (environment,) = stack(**question)["environments"]
    assert environment["conda"] == {"channels": channels, "specs": specs, "wheels": wheels}


def test_conda_has_no_build_of_pytorch_for_aarch64():
    answer = resolve({"os": "ubuntu 22.04", "arch": "aarch64", "gpus": [], "request": {"pytorch": "2.5.1"}})
    assert answer["stack"]["environments"][0]["conda"]["wheels"] == ["torch==2.5.1"]


def test_kind_is_the_same_for_equal_stacks_only():
    assert stack()["kind"] == stack()["kind"]
    assert stack()["kind"] != stack(gpus=["A40", "A40"])["kind"]
    assert kind({**stack(), "warnings": ["another"]}) == stack()["kind"]
