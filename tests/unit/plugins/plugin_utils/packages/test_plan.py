# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
from fnmatch import fnmatchcase

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import Observed
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Package, Stack
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.components import BY_HOLD, PACKAGED
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.desired import desired
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.reconcile import drift
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.managers import manager_of
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.plan import (
    Steps,
    absent_plan,
    component_plan,
    own_plan,
    steps,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import COMPONENTS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

# Everything that can be asked for, and versions of what the others depend on.
REQUEST = {one.name: "latest" for one in PACKAGED if one.name in {part.name for part in COMPONENTS}}
REQUEST |= {"driver": "570", "cuda": "12.8", "cudnn": "9", "nccl": "2", "dcgm": "4", "container_toolkit": "1.17"}
# What a component needs and is not its own.
OF_OTHERS = {"dkms", "infiniband-diags"}
HOSTS = {
    "ubuntu 22.04": {"os": "ubuntu 22.04", "gpus": ["NVIDIA A100-SXM4-80GB"] * 8},
    "rocky 9.6": {"os": "rocky 9.6", "gpus": ["NVIDIA A100-SXM4-80GB"] * 8},
}


@pytest.fixture(scope="module", params=HOSTS)
def stack(request):
    answer = resolve({**HOSTS[request.param], "request": REQUEST, "ansible_core": "2.16"})
    assert answer["stack"], answer["conflicts"]
    missing = [name for name in REQUEST if not answer["stack"].get(name)]
    assert not missing, "asked for and not in the stack: the component's result (stack/components)"
    # What only nodes of a rack have, who have no fabric manager.
    tray = resolve(
        {**HOSTS[request.param], "gpus": ["GB200"] * 4, "request": {"driver": "570"}, "ansible_core": "2.16"}
    )
    return {**answer["stack"], "imex": tray["stack"]["imex"]}


def test_every_component_of_the_host_is_packaged():
    names = {one.name for one in COMPONENTS if one.place == "host"}
    assert names <= {one.name for one in PACKAGED}, "each component of the host has its record in drift/components.py"
    fields = {one.name for one in dataclasses.fields(Stack)}
    assert {one.name for one in PACKAGED} <= fields, "each record has its field of Stack in documents/stack.py"


@pytest.mark.parametrize("name", BY_HOLD)
def test_a_component_is_what_the_stack_names(stack, name):
    wanted = desired(stack, {})
    plan = component_plan(name, wanted)

    assert {package.name for package in plan.packages} == {one["name"] for one in stack[BY_HOLD[name].name]["packages"]}
    assert plan.held, f"Packaged of {BY_HOLD[name].name} (drift/components.py) has no patterns of its packages: held"
    free = {one.name for one in plan.packages if not any(fnmatchcase(one.name, pattern) for pattern in plan.held)}
    assert free <= OF_OTHERS, "no pattern in held names these packages"
    assert steps(plan, Observed(packages={})).install == plan.packages


@pytest.mark.parametrize("name", BY_HOLD)
def test_nothing_is_left_to_do_exactly_where_drift_names_no_package(stack, name):
    wanted = desired(stack, {})
    plan = component_plan(name, wanted)
    exact = {package.name: (package.version or "1").replace("*", "1") for package in (*plan.packages, *plan.first)}
    for packages in ({}, exact, {**exact, "libcudnn8": "8.9"}, dict(list(exact.items())[1:])):
        observed = Observed(packages=packages)
        named = [
            one
            for one in drift(wanted, observed)
            if one.component == BY_HOLD[name].name
            and one.kind == "package"
            and one.remedy.value in ("install", "remove")
        ]
        assert bool(steps(plan, observed)) == bool(named)


@pytest.mark.parametrize("name", BY_HOLD)
def test_what_is_not_planned_has_no_plan(stack, name):
    assert component_plan(name, desired({**stack, BY_HOLD[name].name: None}, {})) is None


@pytest.mark.parametrize("name", BY_HOLD)
def test_nothing_but_the_component_itself_is_compared(stack, name, monkeypatch):
    """An action asks two or three times; the rest of the stack is for verify."""
    wanted, made, create = desired(stack, {}), [], Comparison.__init__
    plan = component_plan(name, wanted)

    def count(one, component, *given, **named):
        made.append(component)
        create(one, component, *given, **named)

    monkeypatch.setattr(Comparison, "__init__", count)
    steps(plan, Observed(packages={}))
    assert made
    assert set(made) == {BY_HOLD[name].name}
    assert len(made) <= len((*plan.first, *plan.packages)) + 6  # services, kernel modules, what is loaded


def test_the_fabric_managers_packages_are_held_with_it_and_not_with_the_driver(stack):
    wanted = desired(stack, {})
    driver, fabric_manager = component_plan("driver", wanted), component_plan("fabric-manager", wanted)

    assert set(driver.excluded) <= set(fabric_manager.held)


def test_dependencies_take_the_drivers_version_where_nvidia_has_several(stack):
    assert component_plan("driver", desired(stack, {})).version == f"{stack['driver']['version']}-*"
    other = {**stack, "driver": {**stack["driver"], "source": "distribution"}}
    assert component_plan("driver", desired(other, {})).version is None


@pytest.mark.parametrize("name", BY_HOLD)
def test_what_is_absent_is_removed_and_no_longer_held(stack, name):
    wanted = desired(stack, {f"{one.role}_state": "absent" for one in PACKAGED if one.role})
    whole = component_plan(name, desired(stack, {}))
    installed = {package.name: "1" for package in whole.packages if package.name not in OF_OTHERS}
    plan = absent_plan(name, wanted)

    assert set(steps(plan, Observed(packages=installed)).remove) <= set(installed)
    assert steps(plan, Observed(packages=installed)).remove, f"no pattern in held names one of {sorted(installed)}"
    assert not steps(plan, Observed(packages={"bash": "5"}))
    assert plan.held


INSTALLED = {"nvidia-smi": "535.309.01-0+deb12u1", "bash": "1:5.2"}


@pytest.mark.parametrize(
    ("wanted", "specs"),
    [
        ([], []),
        (["bash"], []),
        (["chrony"], ["chrony"]),
        ([{"name": "nvidia-smi", "version": "535.*"}], []),
        ([{"name": "nvidia-smi", "version": "535.309.01-0+deb12u1"}], []),
        ([{"name": "nvidia-smi", "version": "550.*"}], ["nvidia-smi=550.*"]),
        ([{"name": "nvidia-smi", "version": None}], []),
        ([{"name": "libcuda1", "version": None}], ["libcuda1"]),
        ([{"name": "bash", "version": "5.*"}], []),
        ([{"name": "bash", "version": "2:5.*"}], ["bash=2:5.*"]),
    ],
)
def test_what_is_missing(wanted, specs):
    todo = steps(own_plan("own", {"packages": wanted}), Observed(packages=INSTALLED))
    assert manager_of("apt", 1, None).install(todo.install)[0].arguments["name"] == specs


OWN = {
    "packages": ["git", {"name": "make", "version": "4.*"}],
    "first": [{"name": "epel-release", "version": None}],
    "optional": ["headers"],
    "unwanted": ["old-*", "git"],
    "unpinning": ["old-pin*"],
}


def test_packages_of_ones_own():
    plan = own_plan("own", OWN)

    assert plan.held is None
    assert steps(
        plan, Observed(packages={"old-a": "1", "make": "1:4.3"}, leftover_packages={"old-pin-3": "1"})
    ) == Steps(
        unpin=("old-pin-3",),
        first=(Package("epel-release"),),
        install=(Package("git"),),
        optional=("headers",),
        remove=("old-a",),
    )


def test_packages_of_ones_own_that_shall_go():
    plan = own_plan("own", {**OWN, "held": ["gds*"]}, absent=True)

    there = Observed(packages={"git": "2", "gds-tools": "1", "bash": "5"})
    assert steps(plan, there) == Steps(remove=("gds-tools", "git"))


@pytest.mark.parametrize("wrong", [["git"], {"version": "1"}, {"name": "a", "versions": "1"}, 3])
def test_what_is_no_package_is_refused(wrong):
    with pytest.raises(ValueError, match="is not a package"):
        own_plan("own", {"packages": [wrong]})


@pytest.mark.parametrize(
    ("there", "first"),
    [
        ({"datacenter-gpu-manager": "1:3.3.9"}, ("datacenter-gpu-manager",)),
        (
            {"datacenter-gpu-manager-4-core": "1:4.5.3-1", "datacenter-gpu-manager-4-cuda11": "1:4.5.3-1"},
            ("datacenter-gpu-manager-4-cuda11",),
        ),
        ({"datacenter-gpu-manager-exporter": "4.8.2-1", "datacenter-gpu-manager-4-multinode": "1:4.6.1-1"}, ()),
    ],
)
def test_what_wants_another_core_of_dcgm_goes_before_the_planned_one_comes(stack, there, first):
    wanted = desired(stack, {})
    todo = steps(component_plan("dcgm", wanted), Observed(packages=there))
    assert (todo.unpin, todo.remove) == (first, ())
    assert todo.install == wanted.stack.dcgm.packages


def test_the_exporter_is_not_held_with_dcgm(stack):
    held = component_plan("dcgm", desired(stack, {})).held
    names = ("datacenter-gpu-manager", "datacenter-gpu-manager-4-multinode", "datacenter-gpu-manager-exporter")
    assert [any(fnmatchcase(name, pattern) for pattern in held) for name in names] == [True, True, False]
