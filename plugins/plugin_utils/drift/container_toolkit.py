# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the NVIDIA Container Toolkit: packages, the CDI specification and who writes it."""

from __future__ import annotations

from collections.abc import Iterator

from ...module_utils.host.services import CDI_REFRESH_PATH, CDI_REFRESH_SERVICE
from ..documents.comparison import Comparison, Remedy, compared
from ..documents.observed import Observed, Service
from ..documents.stack import ContainerToolkit
from .names import CONTAINER_TOOLKIT_PACKAGES
from .packages import compare_packages, compare_unwanted, named
from .services import compare_running

COMPONENT = "container_toolkit"


def compare_container_toolkit(planned: ContainerToolkit | None, absent: bool, observed: Observed) -> list[Comparison]:
    """Compare what is planned; what is to be absent has no packages."""
    if planned is None:
        there = named(CONTAINER_TOOLKIT_PACKAGES, observed.packages or {}) if absent else []
        return compare_unwanted(COMPONENT, there, observed)
    return [
        *compare_packages(COMPONENT, planned.packages, observed),
        *(_services(observed) if planned.cdi_refresh else ()),
        *_specification(planned, observed),
    ]


def _services(observed: Observed) -> Iterator[Comparison]:
    for name, must_run in ((CDI_REFRESH_PATH, True), (CDI_REFRESH_SERVICE, False)):
        yield compare_running(COMPONENT, name, observed.services.get(name, Service()), must_run)


def _specification(planned: ContainerToolkit, observed: Observed) -> Iterator[Comparison]:
    """Compare the driver that the specification is for; until the installed one is loaded, it cannot be written.

    Where no module is found on disk, the one that is loaded counts.
    """
    driver = observed.driver
    if driver is None or driver.loaded is None or driver.installed not in (None, driver.loaded):
        return
    wanted, found = driver.loaded, observed.cdi.get(planned.cdi)
    shown = f"for driver {found or '?'}" if planned.cdi in observed.cdi else None
    yield compared(COMPONENT, planned.cdi, f"for driver {wanted}", shown, found == wanted, Remedy.GENERATE, "cdi")
