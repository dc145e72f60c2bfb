# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.action import dkms
from ansible_collections.allreduce.gpu.tests.support.fake_node import FakeNode, act

OLD, NEW, LATER = "535.261.03", "535.309.01", "550.1"
RUNNING, NEWEST = "6.1.0-40-amd64", "6.1.0-41-amd64"
DRIVER = {"version": NEW, "branch": "535", "source": "nvidia", "dkms_module": "nvidia"}
COMPILED = {"packages": [{"name": "m"}], "replaces": []}


def build(version, kernel=None, status="installed"):
    return {"module": "nvidia", "version": version, "kernel": kernel, "arch": "x86_64", "status": status}


def node(*builds, **more):
    kernel = {"running": RUNNING, "newest": NEWEST, "installed": [RUNNING, NEWEST], "headers": [RUNNING, NEWEST]}
    return FakeNode(dkms=list(builds), kernel={**kernel, **more.pop("kernel", {})}, **more)


def run(one, check=False, **variables):
    stack = {"gpus": [{"model": "A40", "count": 1}], "driver": variables.pop("driver", DRIVER)}
    return act(dkms, one, {"gpu_stack": stack}, check, variables)


def built(one, version=NEW):
    return {row["kernel"] for row in one.dkms if row["version"] == version and row["status"] == "installed"}


STATES = {
    "never built": ([build(NEW, status="added")], [RUNNING, NEWEST]),
    "built for the running kernel only": ([build(NEW, RUNNING)], [NEWEST]),
    "built for the newest kernel only": ([build(NEW, NEWEST)], [RUNNING]),
    "an older version of the branch runs": ([build(OLD, RUNNING), build(NEW, NEWEST)], [RUNNING]),
    "built for a third kernel only": ([build(NEW, "6.1.0-39-amd64")], [RUNNING, NEWEST]),
    "interrupted": ([build(NEW, RUNNING), build(NEW, NEWEST, "built")], [NEWEST]),
}


@pytest.mark.parametrize("state", STATES)
def test_change(state):
    builds, kernels = STATES[state]
    one = node(*builds)
    result = run(one)

    assert result["changed"]
    assert result["kernels"] == kernels
    assert {RUNNING, NEWEST} <= built(one)
    assert one.modules() == ["kernel_module_archive", *["command"] * len(kernels), "node_state"]
    assert result["ansible_facts"]["gpu_node_state"]["dkms"] == one.dkms
    assert not run(one)["changed"]


@pytest.mark.parametrize("state", STATES)
def test_change_in_check_mode(state):
    builds, kernels = STATES[state]
    one = node(*builds)
    result = run(one, check=True)

    assert result["changed"]
    assert result["kernels"] == kernels
    assert result["diff"][0]["after"].splitlines() == [f"nvidia {NEW} for {kernel}" for kernel in kernels]
    assert one.calls == []


@pytest.mark.parametrize("check", [False, True])
def test_no_change(check):
    one = node(build(OLD, RUNNING, "built"), build(NEW, RUNNING), build(NEW, NEWEST))
    result = run(one, check)

    assert not result["changed"]
    assert result["diff"] == []
    assert one.calls == []


@pytest.mark.parametrize(
    ("driver", "variables"),
    [
        (None, {}),
        ({**DRIVER, "dkms_module": None}, {}),
        ({**DRIVER, "precompiled": COMPILED}, {"nvidia_driver_precompiled": True}),
        (DRIVER, {"nvidia_driver_state": "absent"}),
    ],
)
def test_no_module_to_build_is_skipped(driver, variables):
    one = node()
    assert run(one, driver=driver, **variables)["skipped"]
    assert one.calls == []


def test_a_module_of_packages_to_be_installed_comes_with_them():
    one = node(kernel={"headers": []})
    result = run(one, check=True)

    assert not result["changed"]
    assert "failed" not in result


def test_the_archives_own_version_decides_for_a_distribution_driver():
    one = node(build(OLD, status="added"), build(LATER, status="added"))
    result = run(one, driver={**DRIVER, "source": "distribution"})

    assert result["changed"]
    assert {RUNNING, NEWEST} == built(one, OLD)


def test_a_kernel_without_headers_is_told_and_the_other_one_built():
    one = node(build(NEW, status="added"), kernel={"headers": [NEWEST]})
    result = run(one)

    assert result["kernels"] == [NEWEST]
    assert f"Kernel {RUNNING} of gpu-1 gets no driver module" in result["warnings"][0]


def test_no_kernel_with_headers_is_a_failure():
    result = run(node(build(NEW, status="added"), kernel={"headers": []}))

    assert result["cause"] == "no_kernel_headers"
    assert result["msg"] == (
        f"The driver's kernel module could not be built on gpu-1: no headers of kernel {RUNNING}, {NEWEST} are installed: "
        "set base_kernel_headers to true and run role base."
    )


def test_a_container_has_the_headers_of_a_kernel_it_does_not_run():
    one = node(
        build(NEW, status="added"), kernel={"running": "host", "installed": [], "newest": None, "headers": [NEWEST]}
    )
    assert run(one)["kernels"] == [NEWEST]


def test_a_module_that_dkms_does_not_know_is_a_failure():
    result = run(node(build(LATER, status="added")))

    assert result["cause"] == "module_missing"
    assert "DKMS has no module nvidia of the planned version" in result["msg"]
    assert f"it has nvidia {LATER}" in result["msg"]


def test_the_compilers_last_lines_are_shown():
    result = run(node(build(NEW, status="added"), builds=False))

    assert result["cause"] == "dkms_build_failed"
    assert result["msg"].startswith(
        "The driver's kernel module could not be built on gpu-1: a kernel module could not be built: "
    )
    assert result["msg"].endswith("nv.c:12: error: too few arguments")


def test_without_headers_nothing_fails_where_nothing_lacks():
    one = node(build(NEW, RUNNING), build(NEW, NEWEST), kernel={"headers": []})
    assert not run(one)["changed"]
    assert one.modules() == []
