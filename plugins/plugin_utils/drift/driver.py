# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the NVIDIA driver: packages, kernel modules, what is loaded."""

from __future__ import annotations

from collections.abc import Iterable

from ..documents.comparison import Comparison, Remedy, Status, compared
from ..documents.observed import AptSource, Observed
from ..documents.stack import Component, Driver
from .kernels import built_for, kernels_that_matter, module_version
from .packages import compare_packages, compare_unwanted, named, superseded
from .versions import satisfies

COMPONENT = "driver"


def compare_driver(
    driver: Driver, observed: Observed, has_gpu: bool, fabric: Iterable[Component | None] = ()
) -> list[Comparison]:
    """Return every comparison of the planned driver, in the order in which a role works.

    fabric: what is planned for the NVLink fabric, whose packages stay although the driver's patterns name them.
    """
    if driver.is_left:
        return _left(observed) if has_gpu else []
    kept = {package.name for component in fabric if component for package in component.packages}
    unwanted = [name for name in unwanted_packages(driver, observed) if name not in kept]
    return [
        *_sources(driver, observed),
        *compare_packages(COMPONENT, [*driver.pinning_packages, *driver.packages], observed),
        *compare_unwanted(COMPONENT, unwanted, observed),
        *_version(driver, observed),
        *_modules(driver, observed),
        *(_trusted(driver, observed) if has_gpu else []),
        *(_loaded(driver, observed) if has_gpu else []),
    ]


def compare_absent(patterns: tuple[str, ...], observed: Observed) -> list[Comparison]:
    """Return one comparison for each package of a driver that is to be absent."""
    return compare_unwanted(COMPONENT, named(patterns, observed.packages or {}), observed)


def unwanted_packages(driver: Driver, observed: Observed) -> list[str]:
    """Return packages that must go; all of the driver's where NVIDIA's installer takes over."""
    if driver.source == "runfile":
        wanted = {package.name for package in driver.packages}
        return [name for name in named(driver.conflicting, observed.packages or {}) if name not in wanted]
    replaced = driver.precompiled.replaces if driver.precompiled else ()
    return superseded(driver, observed) + [name for name in replaced if name in (observed.packages or {})]


def _sources(driver: Driver, observed: Observed) -> list[Comparison]:
    """Compare the enabled components of the distribution's archive."""
    if not driver.components:
        return []
    desired, mirrors = ", ".join(driver.components), observed.apt_mirrors
    lacking = None if mirrors is None else _lacking(mirrors, driver.components)
    enabled = None if lacking is None else ", ".join(name for name in driver.components if name not in lacking)
    agrees = None if lacking is None else not lacking
    return [compared(COMPONENT, "archive components", desired, enabled, agrees, Remedy.SOURCES, "source")]


def _lacking(mirrors: tuple[AptSource, ...], components: tuple[str, ...]) -> list[str]:
    """Return the components that some suite of the archive is used without; what has main counts as the archive."""
    enabled: dict[tuple[str, str], set[str]] = {}
    for mirror in mirrors:
        enabled.setdefault((mirror.uri, mirror.suite), set()).update(mirror.components)
    suites = [have for have in enabled.values() if "main" in have]
    return [component for component in components if any(component not in have for have in suites)]


def _version(driver: Driver, observed: Observed) -> list[Comparison]:
    """Compare the version of the installed kernel module, where no package tells it."""
    if driver.source != "runfile":
        return []
    found = observed.driver.installed if observed.driver else None
    agrees = None if observed.driver is None else found == driver.version
    return [compared(COMPONENT, "version", driver.version, found, agrees, Remedy.INSTALL, "version")]


def _modules(driver: Driver, observed: Observed) -> list[Comparison]:
    """Compare the module of each kernel that must have one."""
    kernels = kernels_that_matter(observed.kernel)
    if driver.dkms_module and not driver.precompiled:
        return _dkms_modules(driver, driver.dkms_module, kernels, observed)
    listed = {
        kernel: observed.kernel.driver_modules.get(kernel) for kernel in kernels if kernel in observed.kernel.installed
    }
    if not listed and driver.source != "runfile":  # whose version is compared
        return [compared(COMPONENT, "kernel module", "a packaged module", None, None, Remedy.MEASURE, "module")]
    return [
        compared(
            COMPONENT,
            kernel,
            "a packaged module",
            "a packaged module" if there else None,
            there,
            Remedy.INSTALL,
            "module",
        )
        for kernel, there in listed.items()
    ]


def _dkms_modules(driver: Driver, module: str, kernels: list[str], observed: Observed) -> list[Comparison]:
    if observed.dkms is None or not kernels:
        desired = f"{module} {driver.version_pattern}"
        return [Comparison(COMPONENT, "kernel module", desired, "", Status.UNKNOWN, Remedy.BUILD, "module")]
    target = module_version(observed.dkms, module, driver.version_pattern)
    found = {kernel: built_for(observed.dkms, module, kernel) for kernel in kernels}
    desired = f"{module} {target or driver.version_pattern}"
    return [
        compared(
            COMPONENT, kernel, desired, version and f"{module} {version}", version == target and version is not None,
            Remedy.BUILD, "module",
        )
        for kernel, version in found.items()
    ]  # fmt: skip


def _left(observed: Observed) -> list[Comparison]:
    """Compare a driver that another owner is in charge of: it must be there, in any version; under WSL it is Windows'."""
    if observed.driver_owner and observed.driver_owner.code == "wsl":
        return []
    loaded = observed.driver.loaded if observed.driver else None
    agrees = None if observed.driver is None else loaded is not None
    return [compared(COMPONENT, "loaded module", "any", loaded, agrees, Remedy.REBOOT, "state")]


def _trusted(driver: Driver, observed: Observed) -> list[Comparison]:
    """Compare whether the kernel trusts the key of a module that is built on the node, where it demands signatures.

    A planned module that is loaded is proof enough: a site may sign with a key of its own.
    """
    boot, loaded = observed.secure_boot, observed.driver.loaded if observed.driver else None
    if loaded and satisfies(loaded, driver.version_pattern):
        return []
    if not boot.enforced or driver.precompiled or not (driver.dkms_module or driver.source == "runfile"):
        return []
    remedy = Remedy.CONFIRM if boot.key == "pending" else Remedy.ENROL
    return [compared(COMPONENT, "signing key", "enrolled", boot.key, boot.key == "enrolled", remedy, "key")]


def _loaded(driver: Driver, observed: Observed) -> list[Comparison]:
    """Compare the loaded module with the installed one; without an installed one other comparisons say enough."""
    if observed.driver is None:
        return [compared(COMPONENT, "loaded module", driver.version_pattern, None, None, Remedy.MEASURE, "state")]
    if observed.driver.installed is None:
        return []
    loaded, installed = observed.driver.loaded, observed.driver.installed
    distrusted = any(one.differs for one in _trusted(driver, observed))
    remedy = Remedy.LOAD if loaded is None and not distrusted else Remedy.REBOOT
    return [compared(COMPONENT, "loaded module", installed, loaded, loaded == installed, remedy, "state")]
