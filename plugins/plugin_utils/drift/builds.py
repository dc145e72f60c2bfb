# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find missing builds of the driver's kernel module."""

from __future__ import annotations

from dataclasses import dataclass

from ..documents.observed import Observed
from ..documents.stack import Driver
from .kernels import built_for, kernels_that_matter, module_version


@dataclass(frozen=True)
class Builds:
    """The module to build, and for which kernels; ``version`` None: DKMS does not know the planned one.

    ``possible`` False: a build lacks, and no kernel that must have the module has headers.
    """

    module: str
    version: str | None
    kernels: tuple[str, ...]  # that have headers
    without_headers: tuple[str, ...]
    possible: bool


def is_built(driver: Driver | None) -> bool:
    """Return True if DKMS builds the driver's module on the node."""
    return driver is not None and bool(driver.dkms_module) and not driver.precompiled


def missing_builds(driver: Driver, observed: Observed) -> Builds | None:
    """Return the builds that lack, or have another version than DKMS was given last; None where DKMS builds nothing.

    A kernel without headers cannot have one.
    """
    if not is_built(driver):
        return None
    module, known, kernel = driver.dkms_module or "", observed.dkms or (), observed.kernel
    version = module_version(known, module, driver.version_pattern)
    matter = kernels_that_matter(kernel) or [kernel.running or "unknown"]
    lacking = [one for one in matter if version is None or built_for(known, module, one) != version]
    return Builds(
        module,
        version,
        tuple(one for one in lacking if one in kernel.headers),
        tuple(one for one in lacking if one not in kernel.headers),
        not lacking or any(one in kernel.headers for one in matter),
    )
