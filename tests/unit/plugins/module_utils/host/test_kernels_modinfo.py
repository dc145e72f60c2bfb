# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's version out of real module files; on the controller's Python, which makes them."""

import shutil
import subprocess

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import kernels
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree

from tests.lab.mirror.elf import kernel_module

PACKERS = {"": None, ".xz": ["xz", "--check=crc32"], ".zst": ["zstd", "-q", "--rm"], ".gz": ["gzip"]}


@pytest.mark.parametrize("folder", ["extra", "updates/dkms", "kernel/nvidia-570-open", "extra/drivers/video/nvidia"])
@pytest.mark.parametrize("suffix", PACKERS)
def test_modules_of_packages_are_read_whatever_their_branch_and_packing(tmp_path, folder, suffix):
    """As the distribution's own modinfo reads them, which knows what the distribution compresses its modules with."""
    missing = [tool for tool in ("depmod", "modinfo", *(PACKERS[suffix] or [])[:1]) if not shutil.which(tool)]
    able = suffix in ("", ".xz") or {".zst": "+ZSTD", ".gz": "+ZLIB"}[suffix] in _run(["modinfo", "--version"])
    if missing or not able:
        pytest.skip(f"needs {', '.join(missing) or 'a modinfo that reads ' + suffix}")
    place = tmp_path / "lib" / "modules" / "6.1" / folder
    place.mkdir(parents=True)
    for name in ("nvidia", "nvidia-uvm"):
        (place / f"{name}.ko").write_bytes(kernel_module(name, "535.309.01", "NVIDIA"))
        if PACKERS[suffix]:
            _run([*PACKERS[suffix], str(place / f"{name}.ko")])
    _run(["depmod", "-b", str(tmp_path), "6.1"])
    files = FileTree(str(tmp_path))
    there = {
        "running": "6.0", "installed": ["6.1"], "headers": [], "newest": "6.1", "next_boot": None,
        "driver_modules": {"6.1": kernels.has_driver_module(files, "6.1")},
    }  # fmt: skip

    def run(arguments):
        return _run([arguments[0], "-b", str(tmp_path), *arguments[1:]])

    assert kernels.read_driver(files, run, there, []) == {"loaded": None, "installed": "535.309.01"}


def _run(argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout
