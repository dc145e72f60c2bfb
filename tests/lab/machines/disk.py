# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disk that machines start from: an installed Debian with UEFI, shim and GRUB, made once without booting anything."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from .. import image, paths, replicas
from ..progress import LabError, say
from .qemu import MIB

# Beyond what containers have: what boots, and what scenarios would wait for when the emulated machine installed it.
PACKAGES = (
    "linux-image-amd64", "linux-headers-amd64", "initramfs-tools", "grub-efi-amd64", "grub-efi-amd64-signed", "shim-signed", "mokutil",
    "dkms", "chrony", "rdma-core", "ibverbs-providers", "ibverbs-utils", "rdmacm-utils", "infiniband-diags", "perftest", "iperf3",
    "nvme-cli", "mdadm", "xfsprogs", "nfs-common",
    "selinux-basics", "selinux-policy-default", "auditd", "python3-venv", "python3-apt",
)  # fmt: skip
SIZE, FIRMWARE_SIZE, ALIGNMENT = 12 * 1024 * MIB, 64 * MIB, MIB
ROOT_OFFSET = ALIGNMENT + FIRMWARE_SIZE
# Room for the second partition table at the end of the disk.
ROOT_SIZE = SIZE - ROOT_OFFSET - ALIGNMENT
# UUIDs of partition types: https://uapi-group.org/specifications/specs/discoverable_partitions_specification/
TABLE = f"""\
label: gpt
start={ALIGNMENT // 512}, size={FIRMWARE_SIZE // 512}, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B
start={ROOT_OFFSET // 512}, size={ROOT_SIZE // 512}, type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709
"""
# The first boot's; the machine's own update-grub writes the next ones.
GRUB = """\
search --no-floppy --label --set=root root
linux /vmlinuz root=LABEL=root ro console=ttyS0
initrd /initrd.img
boot
"""
# Where the signed GRUB looks, which has Debian's directory built in.
GRUB_FIRST = """\
search --no-floppy --label --set=root root
set prefix=($root)/boot/grub
configfile $prefix/grub.cfg
"""
CUSTOMIZE = r"""
# A machine has its own clock.
rm -r "$root/etc/systemd/system/chrony.service.d"
printf 'LABEL=root / ext4 errors=remount-ro 0 1\nLABEL=EFI /boot/efi vfat umask=0077 0 1\n' > "$root/etc/fstab"
sed -i -e 's/^GRUB_TIMEOUT=.*/GRUB_TIMEOUT=0/' -e 's/^GRUB_CMDLINE_LINUX_DEFAULT=.*/GRUB_CMDLINE_LINUX_DEFAULT="console=ttyS0"/' \
  "$root/etc/default/grub"
# Only the modules that the machine needs: to pack all of them takes a quarter of an hour under emulation.
echo MODULES=dep > "$root/etc/initramfs-tools/conf.d/modules"
mkdir -p "$root/boot/grub" "$root/boot/efi"
cp "$aside/grub.cfg" "$root/boot/grub/grub.cfg"
cp "$aside/lab-setup" "$root/usr/local/sbin/lab-setup"
cp "$aside/lab-setup.service" "$root/etc/systemd/system/lab-setup.service"
chroot "$root/" systemctl enable -q lab-setup.service systemd-networkd.service
chroot "$root/" systemctl mask -q systemd-networkd-wait-online.service man-db.timer e2scrub_all.timer fstrim.timer
"""
# What QEMU gives under a name of its own is run at each boot: the machine's name, address and keys.
SETUP = """\
#!/bin/sh
set -eu
modprobe qemu_fw_cfg
exec sh /sys/firmware/qemu_fw_cfg/by_name/opt/allreduce/setup/raw
"""
UNIT = """\
[Unit]
Description=Take name, address and keys from the lab
DefaultDependencies=no
After=local-fs.target systemd-sysctl.service
Before=network-pre.target systemd-networkd.service ssh.service sysinit.target
Wants=network-pre.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/lab-setup

[Install]
WantedBy=sysinit.target
"""


def ensure(name: str) -> Path:
    """Return the disk of a Debian, made when it is missing; machines lay their own changes over it."""
    if replicas.get(name).is_replica:
        raise LabError(f"no machine runs {name!r}, which the lab has as a replica: use a Debian")
    disk = paths.IMAGES / f"machine-{name}-{_recipe(name)}.raw"
    if not disk.exists():
        say(f"building the disk of {name} machines (usually four minutes)")
        _make(name, disk)
    return disk


def _recipe(name: str) -> str:
    parts = [name, *image.PACKAGES, *PACKAGES, _hook(name), GRUB, GRUB_FIRST, SETUP, UNIT, TABLE]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _hook(name: str) -> str:
    return image.customization(replicas.get(name)) + CUSTOMIZE


def _make(name: str, disk: Path) -> None:
    disk.parent.mkdir(parents=True, exist_ok=True)
    # Next to the disk: the directory for temporary files may be small.
    with tempfile.TemporaryDirectory(dir=disk.parent, prefix="machine-") as directory:
        place = Path(directory)
        root, aside = place / "root", image.prepare(replicas.get(name))
        for file, text, mode in (
            ("grub.cfg", GRUB, 0o644),
            ("lab-setup", SETUP, 0o755),
            ("lab-setup.service", UNIT, 0o644),
        ):
            (aside / file).write_text(text, encoding="utf-8")
            (aside / file).chmod(mode)
        hook = place / "customize.sh"
        hook.write_text(_hook(name), encoding="utf-8")
        _run(
            "mmdebstrap", "--quiet", "--variant=apt", "--dpkgopt=force-unsafe-io", "--components=main,contrib,non-free,non-free-firmware",
            f"--include={','.join((*image.PACKAGES, *PACKAGES))}", f"--customize-hook=sh {hook} \"$1\" {aside}", replicas.get(name).suite, root,
            *([os.environ["LAB_DEBIAN_MIRROR"]] if os.environ.get("LAB_DEBIAN_MIRROR") else []),
        )  # fmt: skip
        part = place / "disk.raw"
        _lay_out(root, part, place)
        part.rename(disk)


def _lay_out(root: Path, disk: Path, place: Path) -> None:
    """Write the partitions of a disk without mounting anything, as not every machine that builds one may."""
    with disk.open("wb") as file:
        file.truncate(SIZE)
    _run("sfdisk", "--quiet", disk, text=TABLE)
    _run(
        "mkfs.vfat",
        "-F",
        "32",
        "-s",
        "1",
        "-n",
        "EFI",
        f"--offset={ALIGNMENT // 512}",
        disk,
        str(FIRMWARE_SIZE // 1024),
    )
    first = place / "first.cfg"
    first.write_text(GRUB_FIRST, encoding="utf-8")
    shim, grub = root / "usr/lib/shim", root / "usr/lib/grub/x86_64-efi-signed"
    files = {
        "EFI/BOOT/BOOTX64.EFI": shim / "shimx64.efi.signed",
        "EFI/debian/shimx64.efi": shim / "shimx64.efi.signed",
        "EFI/BOOT/mmx64.efi": _manager(shim),
        "EFI/debian/mmx64.efi": _manager(shim),
        "EFI/BOOT/grubx64.efi": grub / "grubx64.efi.signed",
        "EFI/debian/grubx64.efi": grub / "grubx64.efi.signed",
        "EFI/debian/grub.cfg": first,
    }
    partition = f"{disk}@@{ALIGNMENT}"
    _run("mmd", "-i", partition, "::EFI", "::EFI/BOOT", "::EFI/debian")
    for target, source in files.items():
        _run("mcopy", "-i", partition, source, f"::{target}")
    _run(
        "mke2fs",
        "-q",
        "-t",
        "ext4",
        "-L",
        "root",
        "-d",
        root,
        "-E",
        f"offset={ROOT_OFFSET}",
        disk,
        f"{ROOT_SIZE // 1024}k",
    )
    shutil.rmtree(root)


def _manager(shim: Path) -> Path:
    """Return the program that enrols keys, which shim starts; it is signed by Debian where the archive has that."""
    signed = shim / "mmx64.efi.signed"
    return signed if signed.exists() else shim / "mmx64.efi"


def _run(program: str, *arguments: str | Path, text: str | None = None) -> None:
    done = subprocess.run([program, *arguments], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-3:]
        raise LabError(
            f"{program} could not make the disk of a machine: {' '.join(said) or f'status {done.returncode}'}"
        )
