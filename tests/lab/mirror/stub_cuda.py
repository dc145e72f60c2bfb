# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stubs of the toolkit and of the libraries next to it."""

from __future__ import annotations

from .model import Package
from .stub import Maker, Payload


def _toolkit(package: Package) -> str:
    """12.4 of cuda-nvcc-12-4, cuda-toolkit-12-4-config-common."""
    return ".".join([part for part in package.name.split("-") if part.isdigit()][:2])


def _nvcc(_maker: Maker, package: Package, payload: Payload) -> None:
    release = _toolkit(package)
    text = f"Cuda compilation tools, release {release}, V{package.upstream}"
    payload.program(f"/usr/local/cuda-{release}/bin/nvcc", f'#!/bin/sh\necho "{text}"\n')


def _cudart(maker: Maker, package: Package, payload: Payload) -> None:
    place = f"/usr/local/cuda-{_toolkit(package)}"
    major = package.upstream.partition(".")[0]
    payload.files[f"{place}/targets/x86_64-linux/lib/libcudart.so.{package.upstream}"] = maker.libraries["empty"]
    payload.files[f"{place}/targets/x86_64-linux/lib/libcudart.so.{major}"] = f"libcudart.so.{package.upstream}"
    payload.files[f"{place}/lib64"] = "targets/x86_64-linux/lib"


def _cuda_config(maker: Maker, package: Package, payload: Payload) -> None:
    """Return the package behind the `cuda` alternative: a newer toolkit takes /usr/local/cuda over in automatic mode."""
    release = _toolkit(package)
    major, minor = release.split(".")
    place = f"/usr/local/cuda-{release}"
    libraries = f"{place}/targets/x86_64-linux/lib\n"
    payload.files[f"/etc/ld.so.conf.d/{major}88_cuda-{major}.conf"] = (
        f"/usr/local/cuda-{major}/targets/x86_64-linux/lib\n".encode()
    )
    payload.files[f"{place}/.config-common"] = libraries.encode()
    install, remove = [], []
    for name, link in (("cuda", "/usr/local/cuda"), (f"cuda-{major}", f"/usr/local/cuda-{major}")):
        install.append(f"update-alternatives --install {link} {name} {place} {int(major) * 10 + int(minor)}")
        remove.append(f"update-alternatives --remove {name} {place}")
    payload.scripts["postinst"] = "\n".join(install)
    condition = '[ "$1" = remove ]' if maker.manager == "apt" else '[ "$1" = 0 ]'
    payload.scripts["prerm"] = f"if {condition}; then\n" + "\n".join(remove) + "\nfi"


def _cudnn(maker: Maker, package: Package, payload: Payload) -> None:
    version = ".".join(package.upstream.split(".")[:3])
    maker.library(payload, "libcudnn", version, maker.libraries["empty"], soname=version.partition(".")[0])


def _cudnn_dev(_maker: Maker, package: Package, payload: Payload) -> None:
    parts = zip(("MAJOR", "MINOR", "PATCHLEVEL"), package.upstream.split("."), strict=False)
    text = "".join(f"#define CUDNN_{name} {number}\n" for name, number in parts)
    payload.files["/usr/include/cudnn_version.h"] = text.encode()


def _nccl(maker: Maker, package: Package, payload: Payload) -> None:
    maker.library(payload, "libnccl", package.upstream, maker.libraries["empty"], soname="2")


def _nccl_dev(_maker: Maker, package: Package, payload: Payload) -> None:
    parts = zip(("MAJOR", "MINOR", "PATCH"), package.upstream.split("."), strict=True)
    payload.files["/usr/include/nccl.h"] = "".join(f"#define NCCL_{name} {number}\n" for name, number in parts).encode()


KINDS = {
    "nvcc": _nvcc,
    "cudart": _cudart,
    "cuda_config": _cuda_config,
    "cudnn": _cudnn,
    "cudnn_dev": _cudnn_dev,
    "nccl": _nccl,
    "nccl_dev": _nccl_dev,
}
