# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Choose the kernels that need the driver's module."""

from __future__ import annotations

import re

from ..documents.observed import DkmsBuild, Kernel
from .versions import satisfies


def next_kernel(kernel: Kernel) -> str | None:
    """Return the release that the next boot takes; None where no kernel is installed, as in a container."""
    return next((release for release in (kernel.next_boot, kernel.newest) if release in kernel.installed), None)


def kernels_that_matter(kernel: Kernel) -> list[str]:
    """Return the releases that must have the module: what runs and what the next boot takes.

    A container runs its host's kernel and has none installed: there, it is the newest one with headers.
    """
    wanted = dict.fromkeys([kernel.running, next_kernel(kernel)])
    return [release for release in wanted if release in kernel.installed] or list(kernel.headers[-1:])


def kernels_built_for(kernel: Kernel) -> list[str]:
    """Return the releases that DKMS builds for when a driver is installed: those that must have it, and all with headers."""
    others = [release for release in kernel.installed if release in kernel.headers]
    return list(dict.fromkeys([*kernels_that_matter(kernel), *others]))


def module_version(builds: tuple[DkmsBuild, ...], module: str, planned: str) -> str | None:
    """Return the version of a DKMS module that its packages brought: the newest planned one DKMS knows; None: none.

    After an interrupted upgrade DKMS knows two; a kernel with the older one would load a module that does not fit the
    libraries.
    """
    versions = {build.version for build in builds if build.module == module and satisfies(build.version, planned)}
    return max(versions, key=_numbers, default=None)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", version)]


def built_for(builds: tuple[DkmsBuild, ...], module: str, kernel: str) -> str | None:
    """Return the version of the module that is installed for a kernel; None: none."""
    return next(
        (
            build.version
            for build in builds
            if build.module == module and build.kernel == kernel and build.status == "installed"
        ),
        None,
    )
