# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The desired state: the stack, as the variables of roles narrow it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ansible.module_utils.parsing.convert_bool import boolean

from ..documents.observed import SecureBoot
from ..documents.parsing import parse
from ..documents.stack import Driver, Package, Stack, Toolkit
from .components import PACKAGED
from .names import DRIVER_PACKAGES
from .packaged import Desired

# Public variables that change what is desired, with the defaults of their roles (a test compares).
DEFAULTS: dict[str, Any] = {
    **{f"{one.role}_state": "present" for one in PACKAGED if one.role},
    "nvidia_driver_without_gpu": False,
    "nvidia_driver_precompiled": "auto",
    "nvidia_driver_console": True,
    "nvidia_driver_hold_kernel": False,
    "nvidia_driver_persistence": True,
    "cuda_toolkit_also": [],
    "cudnn_archive": "",
}
NOT_ENFORCED = SecureBoot()


def desired(
    stack: Mapping[str, Any] | Stack, variables: Mapping[str, Any], secure_boot: SecureBoot = NOT_ENFORCED
) -> Desired:
    """Return the desired state of a node; raise DocumentError for a stack of the wrong shape.

    stack: fact gpu_stack; variables: the node's, of which those in DEFAULTS count; secure_boot: as observed, which
    decides whether modules that come signed are needed.
    """
    plan = stack if isinstance(stack, Stack) else parse(Stack, stack, "gpu_stack")
    options = {name: _given(variables, name) for name in DEFAULTS}
    absent = {one.name for one in PACKAGED if one.role and options[f"{one.role}_state"] == "absent"}
    if plan.driver and plan.driver.is_left:
        absent -= {"driver"}
    left_out = {*absent, *(["cudnn"] if options["cudnn_archive"] else [])}
    narrowed: dict[str, Any] = {
        "driver": _driver(plan, options, secure_boot),
        "cuda": _toolkit(plan.cuda, options["cuda_toolkit_also"]),
        **dict.fromkeys(left_out),
    }
    hold_kernel, persistence = (options[f"nvidia_driver_{name}"] for name in ("hold_kernel", "persistence"))
    return Desired(replace(plan, **narrowed), frozenset(absent), _patterns(plan.driver), hold_kernel, persistence)


def desired_driver(stack: Mapping[str, Any], variables: Mapping[str, Any]) -> Driver | None:
    """Return the driver that a node is to have; None where none is planned, or the node does not get it."""
    if not stack.get("driver"):
        return None
    return desired(stack, {key: variables[key] for key in DEFAULTS if key in variables}).stack.driver


def _given(variables: Mapping[str, Any], name: str) -> Any:
    value = variables.get(name, DEFAULTS[name])
    if isinstance(DEFAULTS[name], bool):
        return boolean(value, strict=False)
    return value


def _driver(plan: Stack, options: Mapping[str, Any], secure_boot: SecureBoot) -> Driver | None:
    """A host without a GPU is not touched unless the user says so."""
    driver = plan.driver
    if driver is None or options["nvidia_driver_state"] == "absent":
        return None
    if not (plan.gpus or options["nvidia_driver_without_gpu"]):
        return None
    if not (driver.precompiled and _wants_precompiled(driver, options, secure_boot)):
        return replace(driver, precompiled=None)
    kept = tuple(package for package in driver.packages if package.name not in driver.precompiled.replaces)
    return replace(driver, packages=kept + driver.precompiled.packages, module_stream=driver.precompiled.module_stream)


def _wants_precompiled(driver: Driver, options: Mapping[str, Any], secure_boot: SecureBoot) -> bool:
    """Return True if to take modules that come compiled; ``auto``: where only signed ones load and no key can be enrolled.

    Those of the distribution are signed with a key that its kernels trust.
    """
    choice = options["nvidia_driver_precompiled"]
    if choice != "auto":
        return bool(boolean(choice, strict=False))
    enrollable = secure_boot.key == "enrolled" or (options["nvidia_driver_console"] and secure_boot.shim)
    return bool(secure_boot.enforced) and not enrollable and driver.source == "distribution"


def _toolkit(planned: Toolkit | None, also: list[str]) -> Toolkit | None:
    """Add toolkits in addition to the planned one; each has a directory of its own."""
    if planned is None or not also:
        return planned
    numbers = [str(version).replace(".", "-") for version in also]
    packages = tuple(Package(f"cuda-toolkit-{number}") for number in numbers)
    held = tuple(pattern.format(number) for pattern in ("cuda-*-{}", "lib*-{}") for number in numbers)
    return replace(planned, packages=planned.packages + packages, held=planned.held + held)


def _patterns(driver: Driver | None) -> tuple[str, ...]:
    return (driver.held or driver.conflicting) if driver else DRIVER_PACKAGES
