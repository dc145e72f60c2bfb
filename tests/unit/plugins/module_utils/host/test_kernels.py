# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import kernels
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

DKMS = "/var/lib/dkms/nvidia-current/535.309.01"
BUILT = f"{DKMS}/6.1.0-40-amd64/x86_64/module/nvidia-current.ko"


def nothing(arguments):
    """No program runs."""


def test_a_debian_server(tmp_path):
    files = tree(tmp_path, {
        "/proc/sys/kernel/osrelease": "6.1.0-39-amd64\n",
        "/boot/vmlinuz-6.1.0-39-amd64": "", "/boot/vmlinuz-6.1.0-40-amd64": "",
        "/lib/modules/6.1.0-39-amd64/modules.builtin": "",
        "/lib/modules/6.1.0-39-amd64/modules.dep": "updates/dkms/nvidia-uvm.ko: updates/dkms/nvidia.ko\n",
        "/lib/modules/6.1.0-9-amd64/updates/dkms/left.ko": "",
        "/lib/modules/6.1.0-40-amd64/build": ("link", "/usr/src/linux-headers-6.1.0-40-amd64"),
        "/usr/src/linux-headers-6.1.0-40-amd64/Makefile": "include /usr/src/linux-headers-6.1.0-40-common/Makefile\n",
    })  # fmt: skip
    assert kernels.read_kernels(files, nothing) == {
        "running": "6.1.0-39-amd64",
        "installed": ["6.1.0-39-amd64", "6.1.0-40-amd64"],
        "headers": ["6.1.0-40-amd64"],
        "newest": "6.1.0-40-amd64",
        "next_boot": None,
        "partial": [],
        "driver_modules": {"6.1.0-39-amd64": True, "6.1.0-40-amd64": None},
    }


EL = "4.18.0-553.el8_10.x86_64"
ROCKY = {"/proc/sys/kernel/osrelease": EL, f"/boot/vmlinuz-{EL}": "", "/boot/vmlinuz-0-rescue-abc": ""}
BUILD = {f"/lib/modules/{EL}/build": ("link", f"/usr/src/kernels/{EL}")}  # belongs to the kernel
DEVEL = {f"/usr/src/kernels/{EL}/Makefile": "", "/usr/src/kernels/4.18.0-555.el8_10.x86_64/Makefile": ""}


@pytest.mark.parametrize(
    ("files", "headers"),
    [
        ({**BUILD, **DEVEL}, [EL]),
        (BUILD, []),
        (DEVEL, []),
        ({**BUILD, f"/usr/src/kernels/{EL}/include/left.h": ""}, []),
    ],
    ids=["both", "kernel", "kernel-devel", "what a build left behind"],
)
def test_a_rocky_server_builds_for_a_kernel_with_its_directory_and_its_headers(tmp_path, files, headers):
    assert kernels.read_kernels(tree(tmp_path, {**ROCKY, **files}), nothing) == {
        "running": EL,
        "installed": [EL],
        "headers": headers,
        "newest": EL,
        "next_boot": None,
        "partial": [],
        "driver_modules": {EL: None},
    }


def test_a_container_has_no_kernel_and_no_boot_loader(tmp_path):
    files = tree(tmp_path, {"/proc/sys/kernel/osrelease": "6.18.44"})
    asked = []
    assert kernels.read_kernels(files, asked.append) == {
        "running": "6.18.44", "installed": [], "headers": [], "newest": None, "next_boot": None, "partial": [],
        "driver_modules": {},
    }  # fmt: skip
    assert asked == []


def test_the_next_boot_is_what_the_boot_loader_says(tmp_path):
    files = tree(tmp_path, {"/boot/vmlinuz-5.14.0-1.el9.x86_64": "", "/boot/vmlinuz-5.14.0-2.el9.x86_64": ""})
    found = kernels.read_kernels(files, _grubby)
    assert (found["newest"], found["next_boot"]) == ("5.14.0-2.el9.x86_64", "5.14.0-1.el9.x86_64")


def _grubby(arguments):
    return "/boot/vmlinuz-5.14.0-1.el9.x86_64\n" if arguments[0] == "grubby" else None


CORE, MODULES = "kernel-core 0:5.14.0-570.el9", "kernel-modules 0:5.14.0-570.el9"


@pytest.mark.parametrize(
    ("kernel", "lines", "expected"),
    [
        ("5.14.0-570.el9.x86_64", [CORE, MODULES], False),
        ("5.14.0-570.el9.x86_64", [CORE], True),
        ("5.14.0-570.el9.x86_64", [CORE, "kernel-modules 0:5.14.0-503.el9", "kernel-modules-core 0:5.14.0-570.el9"], True),
        ("5.14.0-570.el9.aarch64+64k", [CORE, MODULES], False),  # of another flavour
        ("5.14.0-570.el9.aarch64+64k", ["kernel-64k-core 0:5.14.0-570.el9", MODULES], True),
        ("5.14.0-570.el9.aarch64+64k", ["kernel-64k-core 0:5.14.0-570.el9", "kernel-64k-modules 0:5.14.0-570.el9"], False),
        ("5.15.0-300.el9uek.x86_64", ["kernel-uek 0:5.15.0-300.el9uek"], False),
        ("6.1.0-40-amd64", [], False),
    ],
)  # fmt: skip
def test_a_kernel_without_its_modules(kernel, lines, expected):
    assert kernels.is_partial(kernel, "\n".join(lines)) is expected


@pytest.mark.parametrize(
    ("files", "status"),
    [
        ({BUILT: "", "/var/lib/dkms/nvidia-current/kernel-6.1.0-40-amd64-x86_64": ("link", "535.309.01/6.1.0-40-amd64/x86_64")}, "installed"),
        ({BUILT: "", "/var/lib/dkms/nvidia-current/kernel-6.1.0-40-amd64-x86_64": ("link", "535.1/6.1.0-40-amd64/x86_64")}, "built"),
        ({BUILT: ""}, "built"),
        ({}, "added"),
    ],
)  # fmt: skip
def test_dkms(tmp_path, files, status):
    found = kernels.read_dkms(
        tree(tmp_path, {f"{DKMS}/source": ("link", "/usr/src/nvidia-current-535.309.01"), **files})
    )
    kernel, arch = (None, None) if status == "added" else ("6.1.0-40-amd64", "x86_64")
    assert found == [
        {"module": "nvidia-current", "version": "535.309.01", "kernel": kernel, "arch": arch, "status": status}
    ]


KERNEL = {
    "running": "a", "installed": ["a", "b"], "headers": ["c"], "newest": "b", "next_boot": None, "driver_modules": {},
}  # fmt: skip


def _entry(kernel, version, module="nvidia-current"):
    return {"module": module, "version": version, "kernel": kernel, "arch": "x86_64", "status": "installed"}


@pytest.mark.parametrize(
    ("dkms", "next_boot", "installed"),
    [
        ([_entry("a", "535.1"), _entry("b", "550.1")], None, "535.1"),
        ([_entry("a", "535.1"), _entry("b", "550.1")], "a", "535.1"),
        ([_entry("a", "535.1"), _entry("b", "550.1")], "b", "550.1"),
        ([_entry("a", "535.1")], "b", "535.1"),
        ([_entry("b", "550.1")], None, "550.1"),
        ([_entry("c", "470.1")], None, "470.1"),
        ([_entry("a", "2.1", module="zfs")], None, None),
        ([], None, None),
    ],
)
def test_the_installed_driver_is_what_the_next_boot_loads(tmp_path, dkms, next_boot, installed):
    found = kernels.read_driver(tree(tmp_path, {}), nothing, {**KERNEL, "next_boot": next_boot}, dkms)
    assert found == {"loaded": None, "installed": installed}


def test_the_loaded_driver_and_a_module_from_a_package(tmp_path):
    files = tree(tmp_path, {
        "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.261.03  Thu Jul 10 2025\nGCC version: 12\n",
    })  # fmt: skip
    asked = []

    def run(arguments):
        asked.append(arguments)
        return "535.309.01\n"

    found = kernels.read_driver(files, run, {**KERNEL, "driver_modules": {"a": None, "b": True}}, [])
    assert found == {"loaded": "535.261.03", "installed": "535.309.01"}
    assert asked == [["modinfo", "-k", "b", "-F", "version", "nvidia"]]


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        ("updates/dkms/nvidia-uvm.ko: updates/dkms/nvidia.ko\nupdates/dkms/nvidia.ko:\n", True),
        ("updates/dkms/nvidia-current-uvm.ko.xz: updates/dkms/nvidia-current.ko.xz\n", True),
        ("kernel/nvidia-535srv/nvidia-uvm.ko.zst: kernel/nvidia-535srv/nvidia.ko.zst\n", True),
        ("kernel/drivers/platform/x86/nvidia-wmi-ec-backlight.ko:\n", False),
        ("kernel/other.ko: updates/nvidia-uvm.ko\n", False),
        ("", False),
        (None, None),
    ],
)
def test_modules_of_a_kernel_are_those_that_depmod_lists(tmp_path, modules, expected):
    place = tmp_path / "lib" / "modules" / "6.1.0-41"
    place.mkdir(parents=True)
    if modules is not None:
        (place / "modules.dep").write_text(modules)
    assert kernels.has_driver_module(FileTree(str(tmp_path)), "6.1.0-41") is expected


@pytest.mark.parametrize(
    ("files", "loaded", "at_boot"),
    [
        ({}, False, False),
        ({"/sys/module/ib_umad/refcnt": "0\n"}, True, False),
        ({"/etc/modules-load.d/allreduce-fabric.conf": "ib_umad\n"}, False, True),
        ({"/usr/lib/modules-load.d/rdma.conf": "# a comment\nib_core\n ib-umad\n"}, False, True),
        (
            {"/etc/modules-load.d/off.conf": "# ib_umad\nib_umadx\n", "/etc/modules-load.d/README": "ib_umad\n"},
            False,
            False,
        ),
    ],
)
def test_a_module_beside_the_drivers(tmp_path, files, loaded, at_boot):
    assert kernels.read_modules(tree(tmp_path, files)) == {"ib_umad": {"loaded": loaded, "at_boot": at_boot}}
