# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel's arguments on recorded machines of each kind of boot loader."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import kernel_arguments as arguments
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

GRUB = """\
set default="0"
menuentry 'Debian' --class debian $menuentry_id_option 'a' {
\tlinux\t/vmlinuz-6.1.0-40-amd64 root=/dev/sda2 ro iommu=pt quiet
}
menuentry 'Debian (recovery mode)' $menuentry_id_option 'b' {
\tlinux\t/vmlinuz-6.1.0-40-amd64 root=/dev/sda2 ro single iommu=pt
}
menuentry 'memtest' {
\tlinux16\t/boot/memtest86+.bin
}
"""
DEBIAN = {"/usr/sbin/update-grub": "", "/boot/grub/grub.cfg": GRUB, "/proc/cmdline": "root=/dev/sda2 ro quiet\n"}
EL8 = {
    "/usr/sbin/grubby": "",
    "/boot/loader/entries/1.conf": "title Rocky\nlinux /vmlinuz-4.18.0\noptions $kernelopts $tuned_params\n",
    "/boot/grub2/grubenv": "# GRUB Environment Block\nkernelopts=root=/dev/sda2 ro \nsaved_entry=1\n####",
    "/proc/cmdline": "BOOT_IMAGE=(hd0)/vmlinuz-4.18.0 root=/dev/sda2 ro",
}
BLS = {
    "/boot/loader/entries/1.conf": "title Debian\nlinux /1/linux\noptions root=UUID=1 ro quiet\n",
    "/boot/loader/entries/2.conf": "title Debian\nlinux /2/linux\noptions root=UUID=1 ro quiet iommu=pt\n",
    "/etc/kernel/cmdline": "root=UUID=1 ro quiet\n",
}


@pytest.mark.parametrize(
    ("files", "tool", "configured"),
    [
        (DEBIAN, "update-grub", ["root=/dev/sda2", "ro", "iommu=pt"]),
        (EL8, "grubby", ["root=/dev/sda2", "ro"]),
        (BLS, "bls", ["root=UUID=1", "ro", "quiet"]),
        ({}, None, None),
    ],
    ids=["debian", "el8", "bls", "nothing"],
)
def test_the_tool_and_what_every_entry_has(tmp_path, files, tool, configured):
    found = arguments.read(tree(tmp_path, files), container=False)
    assert (found["tool"], found["configured"]) == (tool, configured)


def test_a_container_has_no_kernel(tmp_path):
    found = arguments.read(tree(tmp_path, DEBIAN), container=True)
    assert found == {"tool": None, "running": None, "configured": None}


def test_quotes_keep_spaces_together():
    assert arguments.words('ro dyndbg="file a.c +p" quiet') == ["ro", 'dyndbg="file a.c +p"', "quiet"]


def test_an_entry_gets_its_arguments_and_nothing_else_changes():
    text = BLS["/boot/loader/entries/1.conf"]
    after = arguments.with_arguments(text, ["iommu=pt", "quiet"], [])
    assert after == text.replace("quiet\n", "quiet iommu=pt\n")
    assert arguments.with_arguments(after, [], ["iommu=pt"]) == text


def test_only_the_whole_argument_goes():
    assert arguments.with_arguments("ro iommu=pt,x iommu=pt\n", [], ["iommu=pt"]) == "ro iommu=pt,x\n"


def test_one_run_of_grubby():
    assert arguments.grubby_command(["a=1", "b"], []) == ["grubby", "--update-kernel=ALL", "--args=a=1 b"]
    assert arguments.grubby_command([], ["b"]) == ["grubby", "--update-kernel=ALL", "--remove-args=b"]
