# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tell why only a reboot brings an installed driver into use, or takes a removed one away."""

from __future__ import annotations

from typing import NamedTuple

from ..documents.comparison import Remedy
from ..documents.observed import Observed
from .driver import compare_driver
from .packaged import Desired

SENTENCES = {
    "removed": "the removed driver {loaded} is still loaded",
    "parameters": "parameters of the driver's kernel module have changed",
    "key": (
        "driver {installed} cannot load until its signing key is enrolled at the console at the next boot: reboot and choose Enroll MOK"
    ),
    "other": "driver {loaded} is loaded, {installed} is installed",
    "not_loadable": "driver {installed} cannot be loaded into the running kernel {kernel}",
}


class Reboot(NamedTuple):
    """A reboot that is due; both empty where none is."""

    code: str = ""
    reason: str = ""


def reboot_due(desired: Desired, observed: Observed, parameters_changed: bool = False) -> Reboot:
    """Return the reason why a reboot is due. parameters_changed: the module's parameters were written since the node booted.

    Once recorded, changed parameters stand until the node has restarted.
    """
    driver = observed.driver
    if driver is None:
        return Reboot()
    if "driver" in desired.absent:
        code = "removed" if driver.loaded and not driver.installed else ""
    elif not driver.installed:
        code = ""
    elif driver.loaded == driver.installed:
        recorded = observed.reboot_pending is not None and observed.reboot_pending.code == "parameters"
        code = "parameters" if parameters_changed or recorded else ""
    elif _awaits_key(desired, observed):
        code = "key"
    else:
        code = "other" if driver.loaded else "not_loadable" if desired.stack.gpus else ""
    words = {"loaded": driver.loaded, "installed": driver.installed, "kernel": observed.kernel.running}
    return Reboot(code, SENTENCES[code].format(**words)) if code else Reboot()


def _awaits_key(desired: Desired, observed: Observed) -> bool:
    """Return True if a person has to confirm the signing key at the console, where the firmware asks for some seconds only."""
    planned, has_gpu = desired.stack.driver, bool(desired.stack.gpus)
    found = compare_driver(planned, observed, has_gpu) if planned else []
    return any(one.differs and one.remedy is Remedy.CONFIRM for one in found)
