# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import lzma

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import kernels
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

DKMS = "/var/lib/dkms/nvidia-current/535.309.01"
BUILT = f"{DKMS}/6.1.0-40-amd64/x86_64/module/nvidia-current.ko"


def test_versions_sort_as_numbers():
    names = [
        "6.1.0-40-amd64",
        "6.1.0-9-amd64",
        "5.10.0-30-amd64",
        "4.18.0-553.el8_10.x86_64",
        "4.18.0-553.5.1.el8_10.x86_64",
    ]
    assert sorted(names, key=kernels.version_key) == [
        "4.18.0-553.el8_10.x86_64", "4.18.0-553.5.1.el8_10.x86_64", "5.10.0-30-amd64", "6.1.0-9-amd64", "6.1.0-40-amd64",
    ]  # fmt: skip


def test_a_debian_server(tmp_path):
    files = tree(tmp_path, {
        "/proc/sys/kernel/osrelease": "6.1.0-39-amd64\n",
        "/boot/vmlinuz-6.1.0-39-amd64": "", "/boot/vmlinuz-6.1.0-40-amd64": "",
        "/lib/modules/6.1.0-39-amd64/modules.builtin": "",
        "/lib/modules/6.1.0-39-amd64/modules.dep": "updates/dkms/nvidia-uvm.ko: updates/dkms/nvidia.ko\n",
        "/lib/modules/6.1.0-9-amd64/updates/dkms/left.ko": "",
        "/lib/modules/6.1.0-40-amd64/build": ("link", "/usr/src/linux-headers-6.1.0-40-amd64"),
        "/usr/src/linux-headers-6.1.0-40-amd64/.config": "", "/usr/src/linux-headers-6.1.0-40-common/Makefile": "",
    })  # fmt: skip
    assert kernels.read_kernels(files) == {
        "running": "6.1.0-39-amd64",
        "installed": ["6.1.0-39-amd64", "6.1.0-40-amd64"],
        "headers": ["6.1.0-40-amd64"],
        "newest": "6.1.0-40-amd64",
        "driver_modules": {"6.1.0-39-amd64": True, "6.1.0-40-amd64": None},
    }


def test_a_rocky_server_has_its_headers_elsewhere_and_no_rescue_kernel(tmp_path):
    kernel = "4.18.0-553.el8_10.x86_64"
    files = tree(tmp_path, {
        "/proc/sys/kernel/osrelease": kernel, f"/boot/vmlinuz-{kernel}": "", "/boot/vmlinuz-0-rescue-abc": "",
        f"/usr/src/kernels/{kernel}/Makefile": "",
    })  # fmt: skip
    assert kernels.read_kernels(files) == {
        "running": kernel,
        "installed": [kernel],
        "headers": [kernel],
        "newest": kernel,
        "driver_modules": {kernel: None},
    }


def test_a_container_has_no_kernel(tmp_path):
    files = tree(tmp_path, {"/proc/sys/kernel/osrelease": "6.18.44"})
    assert kernels.read_kernels(files) == {
        "running": "6.18.44", "installed": [], "headers": [], "newest": None, "driver_modules": {},
    }  # fmt: skip


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


KERNEL = {"running": "a", "installed": ["a", "b"], "headers": ["c"], "newest": "b"}


def _entry(kernel, version, module="nvidia-current"):
    return {"module": module, "version": version, "kernel": kernel, "arch": "x86_64", "status": "installed"}


@pytest.mark.parametrize(
    ("dkms", "installed"),
    [
        ([_entry("a", "535.1"), _entry("b", "550.1")], "535.1"),
        ([_entry("b", "550.1")], "550.1"),
        ([_entry("c", "470.1")], "470.1"),
        ([_entry("a", "2.1", module="zfs")], None),
        ([], None),
    ],
)
def test_the_installed_driver_is_what_the_next_boot_loads(tmp_path, dkms, installed):
    assert kernels.read_driver(tree(tmp_path, {}), KERNEL, dkms) == {"loaded": None, "installed": installed}


def test_the_loaded_driver_and_a_module_from_a_package(tmp_path):
    files = tree(tmp_path, {
        "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.261.03  Thu Jul 10 2025\nGCC version: 12\n",
    })  # fmt: skip
    module = tmp_path / "lib/modules/a/extra/nvidia.ko"
    module.parent.mkdir(parents=True)
    module.write_bytes(b"\x7fELF\0license=NVIDIA\0version=535.309.01\0supported=external\0")
    assert kernels.read_driver(files, KERNEL, []) == {"loaded": "535.261.03", "installed": "535.309.01"}


INFO = b"\x7fELF\0license=NVIDIA\0version=535.309.01\0supported=external\0"


@pytest.mark.parametrize(
    ("path", "content", "version"),
    [
        ("extra/nvidia.ko.xz", lzma.compress(INFO), "535.309.01"),
        ("extra/nvidia.ko.xz", b"cut off", None),
        ("kernel/nvidia-570-open/nvidia.ko", INFO, "535.309.01"),
        ("kernel/nvidia-570/nvidia.ko.zst", b"\x28\xb5\x2f\xfd", None),
        ("kernel/elsewhere/nvidia.ko", INFO, None),
    ],
)
def test_modules_of_packages_are_found_whatever_their_branch_and_packing(tmp_path, path, content, version):
    module = tmp_path / "lib/modules/a" / path
    module.parent.mkdir(parents=True)
    module.write_bytes(content)
    assert kernels.read_driver(tree(tmp_path, {}), KERNEL, []) == {"loaded": None, "installed": version}


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
