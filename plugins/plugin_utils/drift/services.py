# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what runs on a node: the services of the NVLink fabric, the time service, the package manager, a reboot that is due."""

from __future__ import annotations

from collections.abc import Sequence

from ...module_utils.host.services import FABRIC_MANAGER, IMEX, TIME_SERVICES
from ..documents.comparison import Comparison, Remedy, Status, compared
from ..documents.observed import KernelModule, Observed, Service
from ..documents.stack import Component, FabricManager
from .kernels import next_kernel
from .names import FABRIC_MANAGER_PACKAGES, IMEX_PACKAGES
from .packages import compare_packages, compare_unwanted, others

NODE = "node"


def compare_fabric_manager(planned: FabricManager | None, observed: Observed) -> list[Comparison]:
    """Compare packages, kernel modules and service; without a plan the service must not run."""
    modules = planned.kernel_modules if planned else ()
    return [
        *_compare_service("fabric_manager", FABRIC_MANAGER, FABRIC_MANAGER_PACKAGES, planned, observed),
        *(_module(name, observed) for name in modules),
    ]


def compare_imex(planned: Component | None, observed: Observed) -> list[Comparison]:
    """Compare packages and service of IMEX; without a plan the service must not run."""
    return _compare_service("imex", IMEX, IMEX_PACKAGES, planned, observed)


def _compare_service(
    component: str, name: str, patterns: Sequence[str], planned: Component | None, observed: Observed
) -> list[Comparison]:
    service = observed.services.get(name, Service())
    if planned is None:
        return compare_disabled(component, name, service, or_active=True)
    return [
        *compare_packages(component, planned.packages, observed),
        *compare_unwanted(component, others(planned, patterns, observed), observed),
        compare_running(component, name, service, must_run=_runs_installed_driver(observed)),
    ]


def compare_disabled(component: str, name: str, service: Service, or_active: bool = False) -> list[Comparison]:
    """Return the differences of a service that is not to be started at boot, or not to run at all."""
    if not (service.enabled or (or_active and service.active)):
        return []
    desired = "disabled and stopped" if or_active else "disabled"
    return [Comparison(component, name, desired, _words(service), Status.UNWANTED, Remedy.SERVICE, "service")]


def _module(name: str, observed: Observed) -> Comparison:
    """Compare a kernel module, which must be loaded, and by the next boot, too."""
    known = observed.kernel_modules
    state = None if known is None else known.get(name, KernelModule())
    words = (
        None if state is None else f"{'' if state.loaded else 'not '}loaded, {'' if state.at_boot else 'not '}at boot"
    )
    agrees = None if state is None else state.loaded and state.at_boot
    return compared("fabric_manager", name, "loaded, at boot", words, agrees, Remedy.SERVICE, "state")


def compare_node(observed: Observed) -> list[Comparison]:
    """Compare what every node must have, whatever its stack."""
    interrupted, pending = observed.package_manager_interrupted, observed.reboot_pending
    found = [observed.services[name] for name in TIME_SERVICES if name in observed.services]
    service = next((one for one in found if one.enabled and one.active), found[0] if found else Service())
    # A container without an init of its own, as make gpu may find, has its host's clock.
    clock = (
        [] if observed.container and service == Service() else [compare_running(NODE, "time service", service, True)]
    )
    reboot = pending.reason or "yes" if pending else "none"
    return [
        compared(
            NODE, "package manager", "consistent",
            None if interrupted is None else "interrupted" if interrupted else "consistent",
            None if interrupted is None else not interrupted, Remedy.REPAIR, "state",
        ),
        *clock,
        compared(
            NODE, "reboot", "none", reboot, (pending is None or not pending.by_role) if observed.measured else None,
            Remedy.REBOOT, "state",
        ),
        *_kernel(observed),
    ]  # fmt: skip


def _kernel(observed: Observed) -> list[Comparison]:
    """Compare the kernel of the next boot: it has all its packages where they are several; a container has none."""
    release = next_kernel(observed.kernel)
    if release is None or observed.package_manager != "dnf":
        return []
    whole = release not in observed.kernel.partial
    state = f"{release} with its modules" if whole else f"{release} without its modules"
    return [compared(NODE, "kernel", f"{release} with its modules", state, whole, Remedy.KERNEL, "state")]


def _runs_installed_driver(observed: Observed) -> bool:
    """Return True if the driver that is installed is the one that is loaded; until a reboot does that, what needs it is only enabled."""
    driver = observed.driver
    return driver is not None and driver.loaded is not None and driver.loaded == driver.installed


def compare_running(component: str, name: str, service: Service, must_run: bool) -> Comparison:
    """Compare a service, which is to be enabled, and active where it must run."""
    known = None not in (service.enabled, service.active)
    desired = "enabled and active" if must_run else "enabled"
    agrees = bool(service.enabled and (service.active or not must_run)) if known else None
    return compared(component, name, desired, _words(service) if known else None, agrees, Remedy.SERVICE, "service")


def _words(service: Service) -> str:
    pairs = (("enabled", service.enabled), ("active", service.active))
    return " and ".join(word if value else f"not {word}" for word, value in pairs)
