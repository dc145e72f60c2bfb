# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import Kernel, Observed
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Package, Stack, System
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.kernel_headers import (
    HeaderPackages,
    header_packages,
)

OLD, NEW = "5.14.0-427.13.1.el9_4.x86_64", "5.14.0-570.12.1.el9_6.x86_64"
EL8 = "4.18.0-553.el8_10.x86_64"
GA, HWE = "5.15.0-140-generic", "6.8.0-84-generic"


def wanted(system, kernel, packages=(), built=True, arch="x86_64"):
    name, version = system.split()
    family = "el" if name == "rocky" else "debian"
    observed = Observed(kernel=kernel, packages=dict.fromkeys(packages, "1"))
    return header_packages(Stack(os=System(name, version, arch, family)), observed, built)


def found(packages=(), required=(), optional=()):
    return HeaderPackages(tuple(Package(name) for name in packages), tuple(required), tuple(optional))


def one(release, **others):
    return Kernel(running=release, installed=(release,), newest=release, **others)


ALL = found(["kernel-headers"])


@pytest.mark.parametrize(
    ("system", "kernel", "packages", "expected"),
    [
        # dkms takes any version of kernel-devel-matched: the one of the kernel that is there.
        ("rocky 9", one(OLD), [], found(["kernel-headers"], [f"kernel-devel-{OLD}", f"kernel-devel-matched-{OLD}"])),
        ("rocky 9", one(OLD, headers=(OLD,)), [], found(["kernel-headers"], [f"kernel-devel-matched-{OLD}"])),
        ("rocky 9", one(OLD, headers=(OLD,)), ["kernel-devel-matched"], ALL),
        # The core alone is not a kernel to boot.
        ("rocky 9", one(OLD, headers=(OLD,), partial=(OLD,)), ["kernel-devel-matched"], found(["kernel-headers"], [f"kernel-{OLD}"])),
        ("rocky 9", Kernel(running=OLD, installed=(OLD, NEW), newest=NEW, headers=(OLD, NEW), partial=(NEW,)), ["kernel-devel-matched"],
         found(["kernel-headers"], [f"kernel-{NEW}"])),
        ("rocky 9", Kernel(running=NEW, installed=(OLD, NEW), newest=NEW, headers=(OLD, NEW), partial=(OLD,)), ["kernel-devel-matched"], ALL),
        # A reboot is due: what runs now may go without.
        ("rocky 9", Kernel(running=OLD, installed=(OLD, NEW), newest=NEW), [],
         found(["kernel-headers"], [f"kernel-devel-{NEW}", f"kernel-devel-matched-{NEW}"], [f"kernel-devel-{OLD}"])),
        ("rocky 9", Kernel(running=OLD, installed=(OLD, NEW), newest=NEW, next_boot=OLD), [],
         found(["kernel-headers"], [f"kernel-devel-{OLD}", f"kernel-devel-matched-{OLD}"])),
        ("rocky 8", one(EL8), [], found(["kernel-headers"], [f"kernel-devel-{EL8}"])),
        ("rocky 8", one(EL8, headers=(EL8,)), [], ALL),
        ("rocky 9", one("5.14.0-570.el9.aarch64+64k"), [],
         found(["kernel-headers"], ["kernel-64k-devel-5.14.0-570.el9.aarch64", "kernel-64k-devel-matched-5.14.0-570.el9.aarch64"])),
        ("rocky 9", one("5.14.0-570.el9.x86_64+rt"), [], found(["kernel-headers"], ["kernel-rt-devel-5.14.0-570.el9.x86_64"])),
        ("rocky 9", one("5.15.0-300.1.el9uek.x86_64"), [], found(["kernel-headers"], ["kernel-uek-devel-5.15.0-300.1.el9uek.x86_64"])),
        # A container, or an image that is being made: headers without a kernel have no directory to compile in.
        # All at once: a second run, which knows the kernel, has nothing to add.
        ("rocky 9", Kernel(running="6.18.44"), [], found(["kernel", "kernel-devel", "kernel-devel-matched", "kernel-headers"])),
        ("rocky 8", Kernel(running="6.18.44"), [], found(["kernel", "kernel-devel", "kernel-headers"])),
    ],
)  # fmt: skip
def test_enterprise_linux(system, kernel, packages, expected):
    assert wanted(system, kernel, packages) == expected


@pytest.mark.parametrize(
    ("system", "kernel", "packages", "expected"),
    [
        # Headers follow what the kernels follow, whatever the flavour that runs is called.
        ("ubuntu 22.04", one(HWE), ["linux-image-generic-hwe-22.04", f"linux-image-{HWE}", "linux-generic-hwe-22.04"],
         found(["linux-headers-generic-hwe-22.04"], [f"linux-headers-{HWE}"])),
        ("ubuntu 22.04", one(GA, headers=(GA,)), ["linux-image-generic", "linux-image-extra-virtual", f"linux-image-unsigned-{GA}"],
         found(["linux-headers-generic"])),
        ("ubuntu 22.04", Kernel(running=GA, installed=(GA, HWE), newest=HWE), ["linux-image-generic", "linux-image-generic-hwe-22.04"],
         found(["linux-headers-generic", "linux-headers-generic-hwe-22.04"], [f"linux-headers-{HWE}"], [f"linux-headers-{GA}"])),
        ("ubuntu 22.04", one("6.8.0-1030-aws", headers=("6.8.0-1030-aws",)), ["linux-image-aws"], found(["linux-headers-aws"])),
        ("ubuntu 22.04", one("6.8.0-1030-oracle", headers=("6.8.0-1030-oracle",)), ["linux-image-oracle"], found(["linux-headers-oracle"])),
        ("ubuntu 22.04", one("5.15.0-1080-nvidia", headers=("5.15.0-1080-nvidia",)), ["linux-image-nvidia"], found(["linux-headers-nvidia"])),
        ("ubuntu 22.04", one("6.8.0-84-lowlatency", headers=("6.8.0-84-lowlatency",)), ["linux-image-lowlatency-hwe-22.04"],
         found(["linux-headers-lowlatency-hwe-22.04"])),
        # A kernel that nothing upgrades needs no headers but its own.
        ("ubuntu 22.04", one(GA), [f"linux-image-{GA}"], found([], [f"linux-headers-{GA}"])),
        ("ubuntu 24.04", Kernel(running="host"), [], found(["linux-headers-generic"])),
        ("debian 12", one("6.1.0-40-cloud-amd64"), ["linux-image-cloud-amd64", "linux-image-amd64-dbg"],
         found(["linux-headers-cloud-amd64"], ["linux-headers-6.1.0-40-cloud-amd64"])),
        ("debian 12", Kernel(running="host"), [], found(["linux-headers-amd64"])),
    ],
)  # fmt: skip
def test_debian_and_ubuntu(system, kernel, packages, expected):
    assert wanted(system, kernel, packages) == expected


def test_a_machine_of_another_architecture():
    assert wanted("debian 12", Kernel(), arch="aarch64") == found(["linux-headers-arm64"])


@pytest.mark.parametrize(
    ("system", "kernel", "expected"),
    [
        ("rocky 9", one(OLD), found(["kernel-headers"], [], [f"kernel-devel-{OLD}"])),
        ("rocky 9", one(OLD, partial=(OLD,), headers=(OLD,)), ALL),
        ("rocky 9", Kernel(running="host"), ALL),
        ("ubuntu 22.04", one(GA), found([], [], [f"linux-headers-{GA}"])),
    ],
)
def test_nothing_is_indispensable_where_no_module_is_compiled(system, kernel, expected):
    assert wanted(system, kernel, built=False) == expected
