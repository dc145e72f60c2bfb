# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one judge: states of DKMS about which role, verification, report and health check once disagreed."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import (
    DkmsBuild,
    DriverOwner,
    InstalledDriver,
    Kernel,
    Observed,
    Service,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import (
    Component,
    ContainerToolkit,
    Driver,
    Environment,
    FabricManager,
    Gpus,
    Package,
    Stack,
    Toolkit,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.builds import missing_builds
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.desired import desired
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.packaged import Desired
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.reconcile import compare, drift

THIRD, A, B = "6.1.0-37-amd64", "6.1.0-39-amd64", "6.1.0-40-amd64"
NEW, OLD = "535.309.01", "535.261.03"
NVIDIA = Driver(version=NEW, branch="535", dkms_module="nvidia", packages=(Package("nvidia-driver", f"{NEW}-*"),))
# The version of a distribution's archive is that of its packages, so that the older build is of the planned branch, too.
ARCHIVE = Driver(version=NEW, branch="535", source="distribution", dkms_module="nvidia",
                 packages=(Package("nvidia-driver", "535.*"),))  # fmt: skip


def observed(builds):
    return Observed(
        kernel=Kernel(running=A, installed=(THIRD, A, B), headers=(THIRD, A, B), newest=B),
        packages={"nvidia-driver": f"{NEW}-1"},
        package_manager_interrupted=False,
        dkms=tuple(DkmsBuild("nvidia", version, kernel, "x86_64", "installed") for kernel, version in builds.items()),
        driver=InstalledDriver(NEW, NEW),
        services={"chrony": Service(True, True)},
    )


@pytest.mark.parametrize("driver", [NVIDIA, ARCHIVE], ids=["nvidia", "distribution"])
@pytest.mark.parametrize(
    ("builds", "kernels"),
    [
        ({A: NEW}, [B]),
        ({B: NEW}, [A]),
        ({A: OLD, B: NEW}, [A]),
        ({THIRD: NEW}, [A, B]),
        ({A: NEW, B: NEW}, []),
    ],
    ids=["built for A", "built for B", "A has an older version", "built for a third kernel", "built for both"],
)
def test_one_answer_for_each_state_of_dkms(driver, builds, kernels):
    """What the role builds is what differs, and nothing else does."""
    state, stack = observed(builds), Stack(gpus=(Gpus("A40"),), driver=driver)
    differences = drift(Desired(stack), state)
    assert [(one.subject, one.remedy) for one in differences] == [(kernel, Remedy.BUILD) for kernel in kernels]
    assert list(missing_builds(driver, state).kernels) == kernels
    assert [one.status for one in differences] == [Status.DIFFERS if kernel in builds else Status.MISSING
                                                   for kernel in kernels]  # fmt: skip


EVERYTHING = Stack(
    gpus=(Gpus("A40"),),
    driver=NVIDIA,
    fabric_manager=FabricManager(packages=(Package("nvidia-fabricmanager"),)),
    imex=Component(packages=(Package("nvidia-imex"),)),
    container_toolkit=ContainerToolkit(packages=(Package("nvidia-container-toolkit"),)),
    cuda=Toolkit(packages=(Package("cuda-toolkit"),)),
    cudnn=Component(packages=(Package("libcudnn9"),)),
    nccl=Component(packages=(Package("libnccl2"),)),
    dcgm=Component(packages=(Package("datacenter-gpu-manager-4-core"),)),
    environments=(Environment("main", "3.11"), Environment("other", "3.12")),
)


def components(comparisons):
    return list(dict.fromkeys(one.component for one in comparisons))


def test_comparisons_are_in_the_order_in_which_roles_work():
    expected = [
        "node",
        "driver",
        "fabric_manager",
        "imex",
        "container_toolkit",
        "cuda",
        "cudnn",
        "nccl",
        "dcgm",
        "environment main",
        "environment other",
    ]
    assert components(compare(Desired(EVERYTHING), Observed())) == expected
    assert components(compare(Desired(Stack()), Observed())) == ["node"]


def test_of_a_node_that_was_not_measured_everything_is_unknown():
    differences = drift(Desired(EVERYTHING), Observed(measured=False))
    assert differences == compare(Desired(EVERYTHING), Observed(measured=False))
    assert {one.status for one in differences} == {Status.UNKNOWN}


PRESENT = {"nvidia-driver": "535.1", "libcudnn8": "8", "libcudnn9": "9", "bash": "5"}


@pytest.mark.parametrize(
    ("desired", "removed"),
    [
        (Desired(Stack()), []),
        (Desired(Stack(), frozenset({"cudnn"})), ["libcudnn8", "libcudnn9"]),
        (Desired(Stack(), frozenset({"driver"})), ["nvidia-driver"]),
        (Desired(Stack(), frozenset({"driver"}), ("nvidia-open*",)), []),
        (Desired(Stack(cudnn=EVERYTHING.cudnn)), ["libcudnn8"]),
    ],
)
def test_what_is_unwanted(desired, removed):
    found = drift(desired, Observed(packages=PRESENT))
    assert [one.subject for one in found if one.remedy is Remedy.REMOVE] == removed
    assert not any(one.kind == "package" for one in found if one.remedy is not Remedy.REMOVE)


@pytest.mark.parametrize(
    ("loaded", "owner", "expected"),
    [
        ("580.95.05", "dgx_os", []),
        ("580.105.08", "dgx_os", []),
        (None, "dgx_os", ["loaded module"]),
        (None, "wsl", []),
    ],
)
def test_a_driver_that_is_left_to_somebody_else_must_be_there_and_no_more(loaded, owner, expected):
    """Neither other packages, nor a fabric manager that runs, nor kernels without modules are anything to us."""
    plan = Stack(
        gpus=(Gpus("A100"),), driver=Driver(version="580.95.05", branch="580", source="vendor", owner="DGX OS")
    )
    observed = Observed(
        packages={"nvidia-driver-580": "580", "nvidia-fabricmanager-580": "580"},
        kernel=Kernel(running="a", installed=("a", "b"), newest="b", driver_modules={"a": True, "b": False}),
        driver=InstalledDriver(loaded, None),
        driver_owner=DriverOwner(owner, "DGX OS"),
        services={
            "nvidia-fabricmanager": Service(True, True),
            "nvidia-imex": Service(True, True),
            "chrony": Service(True, True),
        },
        package_manager_interrupted=False,
        dkms=(),
    )
    assert [one.subject for one in drift(Desired(plan), observed)] == expected


def test_a_driver_that_is_left_is_not_removed_either():
    plan = Stack(gpus=(Gpus("A100"),), driver=Driver(version="580.95.05", source="vendor", owner="DGX OS"))
    assert desired(plan, {"nvidia_driver_state": "absent"}).absent == frozenset()
