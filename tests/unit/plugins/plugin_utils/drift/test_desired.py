# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import SecureBoot
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import (
    Component,
    Driver,
    Gpus,
    Package,
    Precompiled,
    Stack,
    Toolkit,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.components import BY_HOLD, PACKAGED
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.desired import DEFAULTS, desired
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.names import DRIVER_PACKAGES

ROLES = Path(__file__).resolve().parents[5] / "roles"
GPUS = (Gpus("A40"),)
DRIVER = Driver(
    version="535.309.01",
    branch="535",
    held=("nvidia-*",),
    conflicting=("nvidia-dkms",),
    packages=(Package("nvidia-driver", "535.309.01-1"), Package("kmod-dkms", "535.309.01-1")),
    dkms_module="nvidia",
    module_stream="535-dkms",
    precompiled=Precompiled((Package("kmod-nvidia-535"),), ("kmod-dkms",), "535"),
)
PLAIN = replace(DRIVER, precompiled=None)
CUDA = Toolkit(packages=(Package("cuda-toolkit-12-4", "12.4.1-1"),), held=("cuda-*-12-4",))
CUDNN = Component(packages=(Package("libcudnn9"),))
STACK = Stack(gpus=GPUS, driver=DRIVER, cuda=CUDA, cudnn=CUDNN, python="3.11")


# Of the roles that are in charge of a component, and of the toolkit's, which may bring it another name.
IN_CHARGE = sorted({*(one.role for one in PACKAGED if one.role), "cuda_toolkit"})


@pytest.mark.parametrize("role", IN_CHARGE)
def test_the_defaults_are_those_of_the_roles(role):
    text = (ROLES / role / "defaults" / "main.yml").read_text(encoding="utf-8")
    ours = {name: value for name, value in DEFAULTS.items() if name.startswith(f"{role}_")}
    assert ours
    assert {name: yaml.safe_load(text).get(name) for name in ours} == ours, f"roles/{role}/defaults/main.yml"


@pytest.mark.parametrize("one", PACKAGED, ids=lambda one: one.name)
def test_a_component_that_a_role_can_take_away_names_it(one):
    place = ROLES / one.name / "meta" / "argument_specs.yml"
    specs = yaml.safe_load(place.read_text(encoding="utf-8"))["argument_specs"] if place.exists() else {"main": {}}
    state = f"{one.name}_state" in specs["main"].get("options", {})
    assert not state or one.role == one.name, f"Packaged (drift/components.py) has no role={one.name!r}"


def test_every_default_is_that_of_a_role():
    assert [name for name in DEFAULTS if not name.startswith(tuple(f"{role}_" for role in IN_CHARGE))] == []


def test_without_variables_only_the_prebuilt_modules_are_left_out():
    found = desired(STACK, {"pytorch_state": "absent"})
    assert found.stack == replace(STACK, driver=PLAIN)
    assert (found.absent, found.driver_patterns) == (frozenset(), ("nvidia-*",))


@pytest.mark.parametrize(
    ("variables", "driver", "cudnn", "absent"),
    [
        ({"nvidia_driver_state": "absent"}, None, CUDNN, {"driver"}),
        ({"cudnn_state": "absent"}, PLAIN, None, {"cudnn"}),
        ({"nvidia_driver_state": "absent", "cudnn_state": "absent"}, None, None, {"driver", "cudnn"}),
        # The archive takes the packages' place: they are not planned, and nobody removes what is there.
        ({"cudnn_archive": "/srv/cudnn.tar.xz"}, PLAIN, None, set()),
        ({"cudnn_archive": "/srv/cudnn.tar.xz", "cudnn_state": "absent"}, PLAIN, None, {"cudnn"}),
    ],
)
def test_what_is_absent(variables, driver, cudnn, absent):
    found = desired(STACK, variables)
    assert (found.stack.driver, found.stack.cudnn, found.absent) == (driver, cudnn, absent)


@pytest.mark.parametrize(
    ("driver", "patterns"),
    [
        (None, DRIVER_PACKAGES),
        (DRIVER, ("nvidia-*",)),
        (replace(DRIVER, held=()), ("nvidia-dkms",)),
    ],
)
def test_an_absent_driver_is_found_by_the_patterns_of_the_plan(driver, patterns):
    found = desired(replace(STACK, driver=driver), {"nvidia_driver_state": "absent"})
    assert (found.driver_patterns, found.absent, found.stack.driver) == (patterns, {"driver"}, None)


@pytest.mark.parametrize(
    ("gpus", "value", "planned"),
    [
        (GPUS, False, True),
        ((), False, False),
        ((), True, True),
        ((), "yes", True),
        ((), "True", True),
        ((), "no", False),
        ((), "", False),
        ((), None, False),
    ],
)
def test_a_node_without_a_gpu_is_not_touched_unless_asked(gpus, value, planned):
    found = desired(replace(STACK, gpus=gpus), {"nvidia_driver_without_gpu": value})
    assert found.stack.driver == (PLAIN if planned else None)
    assert found.absent == frozenset()


COMPILED = replace(
    DRIVER,
    packages=(Package("nvidia-driver", "535.309.01-1"), Package("kmod-nvidia-535")),
    module_stream="535",
)


@pytest.mark.parametrize(
    ("driver", "value", "expected"),
    [
        (DRIVER, True, COMPILED),
        (DRIVER, "true", COMPILED),
        (DRIVER, False, PLAIN),
        (PLAIN, True, PLAIN),
    ],
)
def test_prebuilt_modules_replace_packages_where_asked_and_published(driver, value, expected):
    found = desired(replace(STACK, driver=driver), {"nvidia_driver_precompiled": value})
    assert found.stack.driver == expected


DISTRIBUTION = replace(DRIVER, source="distribution")
SIGNED = replace(COMPILED, source="distribution")
BUILT = replace(PLAIN, source="distribution")
NO_CONSOLE = {"nvidia_driver_console": False}
ON = SecureBoot(enforced=True, shim=True, key="unknown")


@pytest.mark.parametrize(
    ("driver", "variables", "secure_boot", "expected"),
    [
        (DISTRIBUTION, NO_CONSOLE, ON, SIGNED),
        (DISTRIBUTION, {"nvidia_driver_console": "no"}, ON, SIGNED),
        (DISTRIBUTION, {}, replace(ON, shim=False), SIGNED),
        (DISTRIBUTION, {"nvidia_driver_precompiled": "auto", **NO_CONSOLE}, replace(ON, key=None), SIGNED),
        (DISTRIBUTION, {}, ON, BUILT),
        (DISTRIBUTION, NO_CONSOLE, replace(ON, key="enrolled"), BUILT),
        (DISTRIBUTION, NO_CONSOLE, replace(ON, enforced=False), BUILT),
        (DISTRIBUTION, NO_CONSOLE, replace(ON, enforced=None), BUILT),
        (DISTRIBUTION, {"nvidia_driver_precompiled": False, **NO_CONSOLE}, ON, BUILT),
        # Nobody says that NVIDIA's are signed with a key that the kernel trusts.
        (DRIVER, NO_CONSOLE, ON, PLAIN),
    ],
)
def test_modules_that_the_distribution_signs_are_taken_where_no_key_can_be_enrolled(
    driver, variables, secure_boot, expected
):
    assert desired(replace(STACK, driver=driver), variables, secure_boot).stack.driver == expected


def test_more_toolkits_lie_beside_the_planned_one():
    found = desired(STACK, {"cuda_toolkit_also": ["11.8", 12.1]}).stack.cuda
    assert found.packages == (*CUDA.packages, Package("cuda-toolkit-11-8"), Package("cuda-toolkit-12-1"))
    assert found.held == (*CUDA.held, "cuda-*-11-8", "cuda-*-12-1", "lib*-11-8", "lib*-12-1")
    assert desired(replace(STACK, cuda=None), {"cuda_toolkit_also": ["11.8"]}).stack.cuda is None


def test_a_fact_is_parsed_and_a_wrong_one_refused():
    found = desired({"gpus": [{"model": "A40", "count": 8}], "driver": {"branch": "535"}, "kind": "x"}, {})
    assert (found.stack.gpu_count, found.stack.driver) == (8, Driver(branch="535"))
    with pytest.raises(DocumentError) as raised:
        desired({"driver": {"packages": [{"version": "1"}]}}, {})
    assert raised.value.path == "gpu_stack.driver.packages[0].name"


@pytest.mark.parametrize(
    ("name", "expected"),
    [("driver", PLAIN), ("cuda-toolkit", CUDA), ("cudnn", CUDNN), ("nccl", None), ("fabric-manager", None)],
)
def test_a_component_by_its_hold(name, expected):
    assert BY_HOLD[name].planned(desired(STACK, {})) == expected
