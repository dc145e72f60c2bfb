# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the desired state of a node with the observed one. The only judge of plan against node."""

from __future__ import annotations

from ..documents.comparison import Comparison
from ..documents.observed import Observed
from ..documents.stack import Component, Stack
from .container_toolkit import compare_container_toolkit
from .desired import Desired
from .driver import compare_absent, compare_driver
from .environments import compare_environments
from .names import CUDNN_PACKAGES, DCGM_PACKAGES
from .packages import compare_packages, compare_unwanted, named, others
from .services import compare_fabric_manager, compare_imex, compare_node


def compare(desired: Desired, observed: Observed) -> list[Comparison]:
    """Return a comparison for everything the plan asks for, in the order in which roles work."""
    stack = desired.stack
    fabric = (stack.fabric_manager, stack.imex)
    return [
        *compare_node(observed),
        *(compare_driver(stack.driver, observed, bool(stack.gpus), fabric) if stack.driver else []),
        *(compare_absent(desired.driver_patterns, observed) if "driver" in desired.absent else []),
        *(_fabric(stack, observed) if not (stack.driver and stack.driver.is_left) else []),
        *compare_container_toolkit(stack.container_toolkit, "container_toolkit" in desired.absent, observed),
        *(compare_packages("cuda", stack.cuda.packages, observed) if stack.cuda else []),
        *_cudnn(desired, observed),
        *(compare_packages("nccl", stack.nccl.packages, observed) if stack.nccl else []),
        *(_dcgm(stack.dcgm, observed) if stack.dcgm else []),
        *compare_environments(stack.environments, stack.os, observed),
    ]


def drift(desired: Desired, observed: Observed) -> list[Comparison]:
    """Return what differs from the plan; what could not be measured is among it."""
    return [comparison for comparison in compare(desired, observed) if comparison.differs]


def _fabric(stack: Stack, observed: Observed) -> list[Comparison]:
    return [*compare_fabric_manager(stack.fabric_manager, observed), *compare_imex(stack.imex, observed)]


def _cudnn(desired: Desired, observed: Observed) -> list[Comparison]:
    """Packages of another major version or CUDA build lie beside the planned ones; the linker would find one of them."""
    planned = desired.stack.cudnn
    if planned is not None:
        return [
            *compare_packages("cudnn", planned.packages, observed),
            *compare_unwanted("cudnn", others(planned, CUDNN_PACKAGES, observed), observed),
        ]
    absent = named(CUDNN_PACKAGES, observed.packages or {}) if "cudnn" in desired.absent else []
    return compare_unwanted("cudnn", absent, observed)


def _dcgm(planned: Component, observed: Observed) -> list[Comparison]:
    """Another DCGM, and plugins for the CUDA of another driver, want a core of another version."""
    unwanted = others(planned, DCGM_PACKAGES, observed)
    return [*compare_packages("dcgm", planned.packages, observed), *compare_unwanted("dcgm", unwanted, observed)]
