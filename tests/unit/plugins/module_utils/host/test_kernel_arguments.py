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
    assert found == {"tool": None, "running": None, "configured": None, "overriding": None}


@pytest.mark.parametrize(
    ("name", "text", "overrides"),
    [
        ("99-site.cfg", 'GRUB_TIMEOUT=1\nGRUB_CMDLINE_LINUX="console=ttyS0"\n', True),
        ("99-site.cfg", 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX console=ttyS0"\n', False),
        ("99-site.cfg", 'GRUB_CMDLINE_LINUX="${GRUB_CMDLINE_LINUX} console=ttyS0"\n', False),
        ("99-site.cfg", 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\n# GRUB_CMDLINE_LINUX="x"\n', False),
        ("50-cloud.cfg", 'GRUB_CMDLINE_LINUX="console=ttyS0"\n', False),
        ("99-site.bak", 'GRUB_CMDLINE_LINUX="console=ttyS0"\n', False),
    ],
)
def test_a_drop_in_that_undoes_ours_is_named(tmp_path, name, text, overrides):
    path = "/etc/default/grub.d/" + name
    found = arguments.read(tree(tmp_path, {**DEBIAN, path: text}), container=False)
    assert found["overriding"] == (path if overrides else None)


def test_quotes_keep_spaces_together():
    assert arguments.words('ro dyndbg="file a.c +p" quiet') == ["ro", 'dyndbg="file a.c +p"', "quiet"]


ENTRY = "/boot/loader/entries/1.conf"


def test_an_entry_gets_its_arguments_and_nothing_else_changes():
    after = arguments.with_arguments(ENTRY, BLS[ENTRY], ["iommu=pt", "quiet"], [])
    assert after == BLS[ENTRY].replace("quiet\n", "quiet iommu=pt\n")
    assert arguments.with_arguments(ENTRY, after, [], ["iommu=pt"]) == BLS[ENTRY]


def test_only_the_whole_argument_goes():
    text = "ro iommu=pt,x iommu=pt\n"
    assert arguments.with_arguments("/etc/kernel/cmdline", text, [], ["iommu=pt"]) == "ro iommu=pt,x\n"


def test_what_has_no_arguments_gets_none():
    """Entries of other systems, and GRUB's environment where the arguments are in the entries."""
    other = "title Firmware\nefi /shellx64.efi\n"
    assert arguments.with_arguments(ENTRY, other, ["iommu=pt"], []) == other
    assert arguments.with_arguments("/boot/grub2/grubenv", "saved_entry=1\n###", ["iommu=pt"], []) == (
        "saved_entry=1\n###"
    )


def test_an_entry_without_a_kernel_does_not_count(tmp_path):
    found = tree(tmp_path, {**BLS, "/boot/loader/entries/3.conf": "title Firmware\nefi /shellx64.efi\n"})
    assert arguments.read(found, container=False)["configured"] == ["root=UUID=1", "ro", "quiet"]


def test_places_are_what_the_tool_edits(tmp_path):
    files = {
        **EL8, "/etc/default/grub": "GRUB_TIMEOUT=5\nGRUB_CMDLINE_LINUX='rhgb quiet'\n",
        "/boot/grub2/grubenv": ("link", "../efi/EFI/rocky/grubenv"),
        "/boot/efi/EFI/rocky/grubenv": EL8["/boot/grub2/grubenv"],
    }  # fmt: skip
    assert arguments.lines(tree(tmp_path, files), "grubby") == {
        "/boot/loader/entries/1.conf": "options $kernelopts $tuned_params",
        "/boot/efi/EFI/rocky/grubenv": "kernelopts=root=/dev/sda2 ro ",
        "/etc/default/grub": "GRUB_CMDLINE_LINUX='rhgb quiet'",
    }
    assert set(arguments.places(tree(tmp_path / "bls", {**BLS, "/etc/default/grub": ""}), "bls")) == set(BLS)


GRUBENV = "/boot/grub2/grubenv"


@pytest.mark.parametrize(
    ("path", "text", "stays", "recorded", "expected"),
    [
        # As it was, spaces and order and all, where only the argument differs.
        (ENTRY, "options ro quiet a=1\n", [], "options ro   quiet ", "options ro   quiet \n"),
        (ENTRY, "options ro quiet\n", ["a=1"], "options a=1 ro quiet", "options a=1 ro quiet\n"),
        # Somebody has added one, or taken one away.
        (ENTRY, "options ro nosmt a=1\n", [], "options ro  quiet", "options ro nosmt\n"),
        (ENTRY, "options ro nosmt\n", ["a=1"], "options a=1 ro", "options ro nosmt a=1\n"),
        # A new kernel's.
        (ENTRY, "options ro a=1\n", [], None, "options ro\n"),
        (GRUBENV, "kernelopts=ro a=1\nsaved_entry=2\n####", [], "kernelopts=ro ", "kernelopts=ro \nsaved_entry=2\n#######"),
    ],
    ids=["bytes", "order", "more", "more_and_had", "new", "environment"],
)  # fmt: skip
def test_a_place_is_restored(path, text, stays, recorded, expected):
    assert arguments.restored(path, text, stays, ["a=1"], recorded) == expected


def test_one_run_of_grubby():
    assert arguments.grubby_command(["a=1", "b"], []) == ["grubby", "--update-kernel=ALL", "--args=a=1 b"]
    assert arguments.grubby_command([], ["b"]) == ["grubby", "--update-kernel=ALL", "--remove-args=b"]
