# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import boot
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

GA, HWE, OLD = "5.15.0-140-generic", "6.8.0-84-generic", "6.8.0-60-generic"
UUID = "6f0c2d1e-0000-4000-8000-000000000001"
HEAD = """\
set have_grubenv=true
if [ "${{next_entry}}" ] ; then
   set default="${{next_entry}}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="{default}"
fi
function savedefault {{
  if [ -z "${{boot_once}}" ]; then
    saved_entry="${{chosen}}"
  fi
}}
"""
ENTRY = """\
menuentry 'Ubuntu, with Linux {0}' --class ubuntu --class os $menuentry_id_option 'gnulinux-{0}-advanced-{1}' {{
\trecordfail
\tif [ x$feature_platform_search_hint = xy ]; then
\t  search --no-floppy --fs-uuid --set=root  {1}
\tfi
\tlinux\t/boot/vmlinuz-{0} root=UUID={1} ro  quiet
\tinitrd\t/boot/initrd.img-{0}
}}
"""


def ubuntu(default, *kernels):
    first = ENTRY.format(kernels[0], UUID).replace(f"Ubuntu, with Linux {kernels[0]}", "Ubuntu", 1)
    first = first.replace(f"gnulinux-{kernels[0]}-advanced-{UUID}", f"gnulinux-simple-{UUID}", 1)
    submenu = f"submenu 'Advanced options for Ubuntu' $menuentry_id_option 'gnulinux-advanced-{UUID}' {{\n"
    rest = "".join(ENTRY.format(kernel, UUID) for kernel in kernels)
    memtest = "menuentry 'Memory test' {\n\tlinux16\t/boot/memtest86+.bin\n}\n"
    return HEAD.format(default=default) + first + submenu + rest + "}\n" + memtest


def unasked(arguments):
    raise AssertionError(arguments)


@pytest.mark.parametrize(
    ("default", "environment", "expected"),
    [
        ("0", "", HWE),
        ("1>2", "", GA),
        ("1", "", HWE),  # a submenu starts its first entry
        ("Advanced options for Ubuntu>Ubuntu, with Linux " + GA, "", GA),
        (f"gnulinux-advanced-{UUID}>gnulinux-{OLD}-advanced-{UUID}", "", OLD),
        ("no such entry", "", HWE),
        ("9", "", HWE),
        ("${saved_entry}", "", HWE),
        ("${saved_entry}", "saved_entry=1>1\n", OLD),
        ("${saved_entry}", f"# GRUB Environment Block\nsaved_entry=gnulinux-advanced-{UUID}>gnulinux-{GA}-advanced-{UUID}\n###", GA),
        # grub-reboot: once.
        ("0", "next_entry=1>2\n", GA),
        ("0", "next_entry=\n", HWE),
        ("0", "saved_entry=1>2\n", HWE),
    ],
)  # fmt: skip
def test_ubuntu(tmp_path, default, environment, expected):
    files = {"/boot/grub/grub.cfg": ubuntu(default, HWE, OLD, GA), "/boot/grub/grubenv": environment}
    assert boot.next_boot(tree(tmp_path, files), unasked) == expected


ID = "0123456789abcdef0123456789abcdef"
EL_OLD, EL_NEW = "5.14.0-427.13.1.el9_4.x86_64", "5.14.0-570.12.1.el9_6.x86_64"
BLS = (
    HEAD.format(default="${saved_entry}")
    + "insmod blscfg\nblscfg\nmenuentry 'UEFI Firmware Settings' {\n\tfwsetup\n}\n"
)


def entries(*kernels):
    """Entries of the Boot Loader Specification, as kernel-install writes them, and the rescue kernel's."""
    found = {
        f"/boot/loader/entries/{ID}-{kernel}.conf": f"title Rocky Linux ({kernel}) 9.6 (Blue Onyx)\nversion {kernel}\n"
        f"linux /vmlinuz-{kernel}\ninitrd /initramfs-{kernel}.img $tuned_initrd\noptions root=/dev/sda1\n"
        for kernel in kernels
    }
    found[f"/boot/loader/entries/{ID}-0-rescue.conf"] = f"title Rescue\nlinux /vmlinuz-0-rescue-{ID}\n"
    return found


@pytest.mark.parametrize("place", ["/boot/grub2", "/boot/efi/EFI/rocky"])
@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        (f"saved_entry={ID}-{EL_OLD}\n", EL_OLD),
        (f"saved_entry={ID}-{EL_NEW}\nboot_success=0\n", EL_NEW),
        (f"saved_entry=Rocky Linux ({EL_OLD}) 9.6 (Blue Onyx)\n", EL_OLD),
        ("", EL_NEW),
        (f"saved_entry={ID}-removed\n", EL_NEW),
        ("saved_entry=1\n", EL_OLD),
    ],
)
def test_enterprise_linux(tmp_path, place, saved, expected):
    files = {place + "/grub.cfg": BLS, place + "/grubenv": saved, **entries(EL_OLD, EL_NEW)}
    assert boot.next_boot(tree(tmp_path, files), unasked) == expected


def test_the_environment_may_lie_elsewhere(tmp_path):
    files = {
        "/boot/grub2/grub.cfg": BLS, "/boot/grub2/grubenv": ("link", "/boot/efi/EFI/rocky/grubenv"),
        "/boot/efi/EFI/rocky/grubenv": f"saved_entry={ID}-{EL_OLD}\n", **entries(EL_OLD, EL_NEW),
    }  # fmt: skip
    assert boot.next_boot(tree(tmp_path, files), unasked) == EL_OLD


@pytest.mark.parametrize(
    ("said", "expected"), [(None, None), (f"/boot/vmlinuz-{EL_OLD}\n", EL_OLD), ("grubby fatal error\n", None)]
)
@pytest.mark.parametrize(
    "files",
    [
        {},
        # What an EFI partition has that leads to the configuration elsewhere.
        {"/boot/efi/EFI/rocky/grub.cfg": "search --fs-uuid --set=dev 1\nconfigfile $prefix/grub.cfg\n"},
        {"/boot/grub2/grub.cfg": BLS},  # no entries
    ],
)
def test_grubby_is_asked_where_the_files_do_not_tell(tmp_path, files, said, expected):
    asked = []

    def run(arguments):
        asked.append(arguments)
        return said

    assert boot.next_boot(tree(tmp_path, files), run) == expected
    assert asked == [["grubby", "--default-kernel"]]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("6.1.0-9-amd64", "6.1.0-40-amd64"),
        ("4.18.0-513.5.1.el8_9.x86_64", "4.18.0-553.el8_10.x86_64"),
        (f"{ID}-0-rescue", f"{ID}-{EL_OLD}"),
    ],
)
def test_order_of_kernels(older, newer):
    assert boot.version_key(older) < boot.version_key(newer)
