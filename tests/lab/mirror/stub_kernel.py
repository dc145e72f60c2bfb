# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stubs of kernels, of their headers, and of modules that were compiled for them."""

from __future__ import annotations

from .elf import kernel_module
from .model import Package
from .stub import SERVICE, Maker, Payload


def _kernel_release(package: Package) -> str:
    if package.architecture == "x86_64":
        return f"{package.version}.x86_64"
    return package.name.partition("-")[2].partition("-")[2]  # linux-image-RELEASE


# What kernel-install of an Enterprise Linux does: an entry of the boot loader, which is the default from then on.
KERNEL_INSTALL = """\
mkdir -p /boot/loader/entries /boot/grub2
id=$(cat /etc/machine-id)-{release}
printf 'title Linux ({release})\\nversion {release}\\nlinux /vmlinuz-{release}\\n' > /boot/loader/entries/$id.conf
printf '# GRUB Environment Block\\nsaved_entry=%s\\n' $id > /boot/grub2/grubenv
[ -e /boot/grub2/grub.cfg ] || printf 'set default="${{saved_entry}}"\\ninsmod blscfg\\nblscfg\\n' > /boot/grub2/grub.cfg
depmod {release}
[ ! -x /usr/sbin/dkms ] || dkms autoinstall -k {release} || :"""


def _kernel(maker: Maker, package: Package, payload: Payload) -> None:
    release = _kernel_release(package)
    payload.files[f"/boot/vmlinuz-{release}"] = b"stub\n"
    payload.files[f"/usr/lib/modules/{release}/modules.builtin"] = b""
    if maker.manager == "dnf":
        payload.scripts["posttrans"] = KERNEL_INSTALL.format(release=release)
        payload.scripts["postrm"] = f"rm -f /boot/loader/entries/*-{release}.conf"
    else:  # dkms and the boot loader have hooks there
        hooks = "/etc/kernel/postinst.d"
        payload.scripts["postinst"] = (
            f"depmod {release}\n[ ! -d {hooks} ] || run-parts --arg={release} --arg=/boot/vmlinuz-{release} {hooks}"
        )


def _kernel_modules(maker: Maker, package: Package, payload: Payload) -> None:
    release = package.name.removeprefix("linux-modules-") if maker.manager == "apt" else _kernel_release(package)
    if maker.manager == "apt":
        payload.files[f"/usr/lib/modules/{release}/modules.order"] = b""
    module = kernel_module("e1000e", "lab", "GPL v2")
    payload.files[f"/usr/lib/modules/{release}/kernel/drivers/net/e1000e.ko"] = module


def _kernel_build(_maker: Maker, package: Package, payload: Payload) -> None:
    """Return the directory that modules are compiled in: a link to what kernel-devel brings."""
    release = _kernel_release(package)
    payload.files[f"/usr/lib/modules/{release}/build"] = f"/usr/src/kernels/{release}"
    payload.files[f"/usr/lib/modules/{release}/modules.order"] = b""


def _headers(maker: Maker, package: Package, payload: Payload) -> None:
    release = _kernel_release(package)
    tree = f"/usr/src/linux-headers-{release}" if maker.manager == "apt" else f"/usr/src/kernels/{release}"
    payload.files[f"{tree}/Makefile"] = b"# stub\n"
    payload.files[f"{tree}/include/config/auto.conf"] = b""  # dkms takes a tree without include for missing
    payload.files[f"{tree}/.config"] = b'CONFIG_CC_VERSION_TEXT=""\n'
    if maker.manager == "apt":
        payload.files[f"/usr/lib/modules/{release}/build"] = tree
        # What came before the headers is compiled now: Ubuntu's packages call such hooks.
        hooks = "/etc/kernel/header_postinst.d"
        payload.scripts["postinst"] = f"[ ! -d {hooks} ] || run-parts --arg={release} {hooks}"


def _dkms_program(_maker: Maker, _package: Package, payload: Payload) -> None:
    payload.files["/usr/sbin/dkms"] = "/usr/libexec/lab/dkms"


def _chronyd(_maker: Maker, _package: Package, payload: Payload) -> None:
    unit = SERVICE.format(description="NTP client/server", program="/usr/bin/sleep infinity")
    payload.files["/usr/lib/systemd/system/chronyd.service"] = unit.encode()


# The real one takes a list of mirrors, and its key comes with it. $lab: see replicas/el.py.
EPEL = """\
[epel]
name=Extra Packages for Enterprise Linux $releasever - $basearch
baseurl=$lab/epel/Everything/$basearch
enabled=1
gpgcheck=1
gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-lab
"""


def _epel(_maker: Maker, _package: Package, payload: Payload) -> None:
    payload.files["/etc/yum.repos.d/epel.repo"] = EPEL.encode()


def _prebuilt(maker: Maker, package: Package, payload: Payload) -> None:
    """linux-modules-nvidia-580-server-open-KERNEL, whose version ends in +DRIVER; kmod-nvidia-DRIVER-KERNEL."""
    if maker.manager == "dnf":
        kernel = f"{package.name.split('-', 3)[3]}.{package.version.partition('-')[2].partition('.')[2]}.x86_64"
        _modules(payload, kernel, "extra/drivers/video/nvidia", package.upstream, "NVIDIA")
        return
    flavour, dummy, kernel = package.name.removeprefix("linux-modules-nvidia-").partition("-open-")
    is_open = bool(kernel)
    if not is_open:
        flavour, dummy, kernel = flavour.partition("-server-")
    branch = flavour.removesuffix("-server").partition("-")
    kernel = kernel or branch[2]
    folder = f"nvidia-{branch[0]}{'srv' if '-server' in package.name else ''}{'-open' if is_open else ''}"
    licence = "Dual MIT/GPL" if is_open else "NVIDIA"
    _modules(payload, kernel, f"kernel/{folder}", package.version.partition("+")[2], licence)


def _modules(payload: Payload, kernel: str, folder: str, version: str, licence: str) -> None:
    for name in ("nvidia", "nvidia-uvm"):
        content = kernel_module(name.replace("-", "_"), version, licence)
        payload.files[f"/usr/lib/modules/{kernel}/{folder}/{name}.ko"] = content
    payload.scripts["postinst"] = f"depmod {kernel}"


KINDS = {
    "kernel": _kernel,
    "kernel_modules": _kernel_modules,
    "kernel_build": _kernel_build,
    "headers": _headers,
    "prebuilt": _prebuilt,
    "dkms_program": _dkms_program,
    "chronyd": _chronyd,
    "epel": _epel,
}
