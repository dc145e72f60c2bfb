# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stubs of kernels, of their headers, and of modules that somebody compiled for them."""

from __future__ import annotations

from .elf import kernel_module
from .model import Package
from .stub import SERVICE, Maker, Payload


def _kernel_release(package: Package) -> str:
    if package.architecture == "x86_64":
        return f"{package.version}.x86_64"
    return package.name.partition("-")[2].partition("-")[2]  # linux-image-RELEASE


def _kernel(_maker: Maker, package: Package, payload: Payload) -> None:
    release = _kernel_release(package)
    payload.files[f"/boot/vmlinuz-{release}"] = b"stub\n"
    for name in ("modules.builtin", "modules.order"):
        payload.files[f"/usr/lib/modules/{release}/{name}"] = b""


def _headers(maker: Maker, package: Package, payload: Payload) -> None:
    release = _kernel_release(package)
    tree = f"/usr/src/linux-headers-{release}" if maker.manager == "apt" else f"/usr/src/kernels/{release}"
    payload.files[f"{tree}/Makefile"] = b"# stub\n"
    payload.files[f"{tree}/include/config/auto.conf"] = b""  # dkms takes a tree without include for missing
    payload.files[f"{tree}/.config"] = b'CONFIG_CC_VERSION_TEXT=""\n'
    payload.files[f"/usr/lib/modules/{release}/build"] = tree
    # What came before the headers is compiled now: Ubuntu's packages call such hooks, dkms of EPEL brings one.
    if maker.manager == "apt":
        hooks = "/etc/kernel/header_postinst.d"
        payload.scripts["postinst"] = f"[ ! -d {hooks} ] || run-parts --arg={release} {hooks}"
    else:
        payload.scripts["postinst"] = f"[ ! -x /usr/sbin/dkms ] || dkms autoinstall -k {release} || :"


def _dkms_program(_maker: Maker, _package: Package, payload: Payload) -> None:
    payload.files["/usr/sbin/dkms"] = "/usr/libexec/lab/dkms"


def _chronyd(_maker: Maker, _package: Package, payload: Payload) -> None:
    unit = SERVICE.format(description="NTP client/server", program="/usr/bin/sleep infinity")
    payload.files["/usr/lib/systemd/system/chronyd.service"] = unit.encode()


def _prebuilt(maker: Maker, package: Package, payload: Payload) -> None:
    """linux-modules-nvidia-580-server-open-KERNEL, whose version ends in +DRIVER; kmod-nvidia-DRIVER-KERNEL."""
    if maker.manager == "dnf":
        kernel = f"{package.name.split('-', 3)[3]}.{package.version.partition('-')[2].partition('.')[2]}.x86_64"
        place = f"/usr/lib/modules/{kernel}/extra/drivers/video/nvidia/nvidia.ko"
        payload.files[place] = kernel_module("nvidia", package.upstream, "NVIDIA")
        return
    flavour, dummy, kernel = package.name.removeprefix("linux-modules-nvidia-").partition("-open-")
    is_open = bool(kernel)
    if not is_open:
        flavour, dummy, kernel = flavour.partition("-server-")
    branch = flavour.removesuffix("-server").partition("-")
    kernel = kernel or branch[2]
    folder = f"nvidia-{branch[0]}{'srv' if '-server' in package.name else ''}{'-open' if is_open else ''}"
    content = kernel_module("nvidia", package.version.partition("+")[2], "Dual MIT/GPL" if is_open else "NVIDIA")
    payload.files[f"/usr/lib/modules/{kernel}/kernel/{folder}/nvidia.ko"] = content


KINDS = {
    "kernel": _kernel,
    "headers": _headers,
    "prebuilt": _prebuilt,
    "dkms_program": _dkms_program,
    "chronyd": _chronyd,
}
