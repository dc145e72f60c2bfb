# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""List the packages that bring the headers for compiling the driver's module."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..documents.observed import Kernel, Observed
from ..documents.stack import Package, Stack
from ..drift.kernels import kernels_that_matter, next_kernel

# Metapackages of a series of kernels, such as linux-image-generic-hwe-22.04, linux-image-aws and linux-image-cloud-amd64.
_IMAGE = re.compile(r"linux-image-(?!unsigned-|extra-|uc-)([a-z].*)(?<!-dbg)")
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class HeaderPackages:
    """packages: any version will do; required, optional: of one kernel each, by their full names.

    Without the required ones the kernel of the next boot would lack the driver's module, or other drivers.
    """

    packages: tuple[Package, ...] = ()
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()


def header_packages(stack: Stack, observed: Observed, built: bool) -> HeaderPackages:
    """Return the packages with the headers of the kernels that must have the driver's module.

    built: whether the module is compiled on the node; if not, headers are no more than a convenience.
    """
    kernel = observed.kernel
    lacking = [one for one in kernels_that_matter(kernel) if one in kernel.installed and one not in kernel.headers]
    following = next_kernel(kernel)
    if stack.os.family == "el":
        names = [(one, f"{_el_name(one, 'devel')}-{_version(one)}") for one in lacking]
        packages = _el_packages(stack, kernel, built)
        needed = _el_companions(stack, observed, following) if built else ()
    else:
        names = [(one, f"linux-headers-{one}") for one in lacking]
        packages, needed = _metapackages(stack, observed), ()
    required = tuple(name for one, name in names if built and one == following)
    return HeaderPackages(
        tuple(Package(name) for name in packages),
        (*required, *needed),
        tuple(name for _one, name in names if name not in required),
    )


def _metapackages(stack: Stack, observed: Observed) -> tuple[str, ...]:
    """Return metapackages that follow what the kernel follows: else the next kernel would come without headers."""
    images = (_IMAGE.fullmatch(name) for name in sorted(observed.packages or {}))
    followed = tuple(f"linux-headers-{image[1]}" for image in images if image)
    if followed or observed.kernel.installed:
        return followed
    return (f"linux-headers-{'generic' if stack.os.id == 'ubuntu' else _MACHINES[stack.os.arch]}",)


def _el_packages(stack: Stack, kernel: Kernel, built: bool) -> tuple[str, ...]:
    """Return the packages that are installed in any version.

    A container gets a kernel, too: kernel-devel alone has no directory that a module can be compiled in.
    """
    if kernel.installed or not built:
        return ("kernel-headers",)
    matched = ("kernel-devel-matched",) if _is_matched(stack, "") else ()
    return ("kernel", "kernel-devel", *matched, "kernel-headers")


def _el_companions(stack: Stack, observed: Observed, kernel: str | None) -> tuple[str, ...]:
    """Return the packages that the kernel of the next boot needs in addition to its headers.

    EPEL's dkms asks for kernel-devel-matched from EL 9 on, in any version; left to dnf, it is the newest one, which brings
    the core of the newest kernel without its modules.
    """
    if kernel is None:
        return ()
    matched = _el_name(kernel, "devel-matched")
    wanted = [matched] if _is_matched(stack, kernel) and matched not in (observed.packages or {}) else []
    wanted += [_el_name(kernel, "")] if kernel in observed.kernel.partial else []
    return tuple(f"{name}-{_version(kernel)}" for name in wanted)


def _is_matched(stack: Stack, kernel: str) -> bool:
    """Return True if dkms asks for kernel-devel-matched: the real-time kernel and Oracle's have none."""
    return int(stack.os.version.partition(".")[0]) >= 9 and "uek" not in kernel and not kernel.endswith("+rt")


def _el_name(kernel: str, part: str) -> str:
    """Return the name of one of a kernel's packages; the release tells its flavour: 5.14.0-570.el9.aarch64+64k."""
    flavour = "uek" if "uek." in kernel else kernel.partition("+")[2]
    return "-".join(word for word in ("kernel", flavour, part) if word)


def _version(kernel: str) -> str:
    return kernel.partition("+")[0]
