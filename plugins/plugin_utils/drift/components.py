# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The packaged components: each is a record here, and whatever else has to know them loops over PACKAGED."""

from __future__ import annotations

from ...module_utils.host.services import CDI_REFRESH_PATH, CDI_REFRESH_SERVICE, FABRIC_MANAGER, IMEX
from ..documents.comparison import Comparison
from ..documents.observed import Observed, Service
from .container_toolkit import compare_container_toolkit
from .driver import compare_absent, compare_driver
from .names import (
    CONTAINER_TOOLKIT_PACKAGES,
    CUDNN_PACKAGES,
    DCGM_HELD,
    DCGM_PACKAGES,
    FABRIC_MANAGER_HELD,
    NCCL_PACKAGES,
)
from .packaged import Desired, Packaged
from .services import compare_disabled, compare_fabric_manager, compare_imex, compare_running

PERSISTENCE = "nvidia-persistenced"


def _driver(packaged: Packaged, desired: Desired, observed: Observed) -> list[Comparison]:
    stack = desired.stack
    if stack.driver:
        found = compare_driver(stack.driver, observed, bool(stack.gpus), (stack.fabric_manager, stack.imex))
        return found if stack.driver.is_left else [*found, *_persistence(desired, observed)]
    return compare_absent(desired.driver_patterns, observed) if packaged.name in desired.absent else []


def _persistence(desired: Desired, observed: Observed) -> list[Comparison]:
    """Compare the persistence daemon, where the node tells of it: without one GPUs lose settings with the last program that uses them."""
    unit = observed.services.get(PERSISTENCE, Service())
    if unit.enabled is None:
        return []
    if not desired.persistence:
        return compare_disabled("driver", PERSISTENCE, unit)
    must_run = bool(desired.stack.gpus) and observed.driver is not None and observed.driver.loaded is not None
    return [compare_running("driver", PERSISTENCE, unit, must_run)]


def _fabric_manager(packaged: Packaged, desired: Desired, observed: Observed) -> list[Comparison]:
    return [] if _is_left(desired) else compare_fabric_manager(desired.stack.fabric_manager, observed)


def _imex(packaged: Packaged, desired: Desired, observed: Observed) -> list[Comparison]:
    return [] if _is_left(desired) else compare_imex(desired.stack.imex, observed)


def _is_left(desired: Desired) -> bool:
    """Return True if the services of the fabric belong to the owner of the driver."""
    return desired.stack.driver is not None and desired.stack.driver.is_left


def _container_toolkit(packaged: Packaged, desired: Desired, observed: Observed) -> list[Comparison]:
    return compare_container_toolkit(desired.stack.container_toolkit, packaged.name in desired.absent, observed)


# In the order in which roles work.
PACKAGED = (
    Packaged(
        "driver", "driver", role="nvidia_driver", unpinning=("nvidia-driver-pinning*",), units=(PERSISTENCE,),
        unattended=("nvidia-*",), compare=_driver,
    ),
    Packaged(
        "fabric_manager", "fabric manager", held=FABRIC_MANAGER_HELD, units=(FABRIC_MANAGER,), unattended=(FABRIC_MANAGER,),
        compare=_fabric_manager,
    ),
    Packaged("imex", "IMEX", held=FABRIC_MANAGER_HELD, units=(IMEX,), unattended=(IMEX,), compare=_imex),
    Packaged(
        "container_toolkit", "container toolkit", role="container_toolkit", held=CONTAINER_TOOLKIT_PACKAGES,
        units=(CDI_REFRESH_PATH, CDI_REFRESH_SERVICE), compare=_container_toolkit,
    ),
    Packaged("cuda", "CUDA", hold="cuda-toolkit"),
    Packaged("cudnn", "cuDNN", role="cudnn", held=CUDNN_PACKAGES, alone=CUDNN_PACKAGES),
    Packaged("nccl", "NCCL", held=NCCL_PACKAGES),
    # Another DCGM, and plugins for the CUDA of another driver, want a core of another version.
    Packaged("dcgm", "DCGM", held=DCGM_HELD, alone=DCGM_PACKAGES, unpinning=DCGM_PACKAGES),
)  # fmt: skip
BY_HOLD = {one.hold or one.name.replace("_", "-"): one for one in PACKAGED}
