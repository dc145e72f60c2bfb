# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock against the inventory: what a host is stands in one of them."""

from __future__ import annotations

from functools import partial

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning import lock, lock_check
from ansible_collections.allreduce.gpu.tests.support.frozen_tables import TABLES, resolve
from ansible_collections.allreduce.gpu.tests.support.newer_tables import difference, with_newer_pytorch

VERSION = "2.18.0"
HOST = {"os": "ubuntu 22.04", "gpus": ["A40"] * 4}
REQUEST = {"driver": "580"}
LEFT = {"driver_owner": {"name": "DGX OS 7.2.1"}, "installed_driver": {"version": "580.95.05"}}
lines = lock_check.lines
newer_tables = partial(with_newer_pytorch, TABLES)


def check_lock(hosts, version, path, renew=False, tables=TABLES):
    return lock_check.check_lock(hosts, version, path, renew, tables)


def described(request, host=None):
    return {"gpu_stack_host": HOST if host is None else host, "gpu_stack_request": request}


@pytest.fixture
def path(tmp_path):
    """A lock of four A40, and of a processor's host."""
    stacks = [resolve({**HOST, "request": REQUEST})["stack"], resolve({"os": "debian 12", "request": {}})["stack"]]
    file = tmp_path / "stack.lock.yml"
    file.write_text(lock.text(lock.renewed(None, stacks)), encoding="utf-8")
    return str(file)


@pytest.mark.parametrize(
    "variables",
    [described(REQUEST), {"gpu_stack_request": REQUEST}, {"gpu_stack_request": {}}],
    ids=["described", "as the lock has it", "the other kind of the lock"],
)
@pytest.mark.parametrize("renew", [False, True])
def test_what_is_asked_for_stands_in_the_lock(path, variables, renew):
    assert lines(check_lock({"gpu-1": variables}, VERSION, path, renew)) == []


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        (described({"driver": "570"}), ["request.driver was 580 and is 570", "driver.version: "]),
        ({"gpu_stack_request": {"driver": "570"}}, ["request.driver was 580 and is 570", "driver.version: "]),
        (described(REQUEST, {**HOST, "gpus": ["A40"] * 2}), ["gpus was 4 x A40 and is 2 x A40", "gpus.A40.count: 4 -> 2"]),
        (described({"driver": "390"}), ["driver '390' is not known"]),
        (described({**REQUEST, "cuda": "12.0", "tensorflow": "2.12.0"}), ["TensorFlow 2.12.0 is built for CUDA 11.8"]),
    ],
    ids=["request", "request, host from the lock", "host", "unknown version", "refused"],
)  # fmt: skip
def test_what_differs_is_told(path, variables, told):
    found = lines(check_lock({"gpu-2": variables, "gpu-1": variables}, VERSION, path))
    assert found[0] == "gpu-1, gpu-2:"
    text = " ".join(line.strip() for line in found)
    assert [one for one in told if one not in text] == [], text
    assert max(map(len, found)) <= 72


def test_newer_tables_are_a_difference_only_when_the_lock_is_to_be_renewed(path):
    hosts = {"gpu-1": described({}, {"os": "debian 12"}), "gpu-2": {"gpu_stack_request": {}}}
    assert lines(check_lock(hosts, VERSION, path, tables=newer_tables())) == []
    assert lines(check_lock(hosts, VERSION, path, renew=True, tables=newer_tables())) == [
        "gpu-1:",
        f"- {difference(TABLES)}",
    ]


def test_a_driver_that_is_left_to_somebody_else_stays_theirs(tmp_path):
    file = tmp_path / "stack.lock.yml"
    stack = resolve({**HOST, **LEFT, "request": {}})["stack"]
    file.write_text(lock.text(lock.renewed(None, [stack])), encoding="utf-8")
    assert lines(check_lock({"gpu-1": {"gpu_stack_request": {}}}, VERSION, str(file))) == []
    found = " ".join(lines(check_lock({"gpu-1": {"gpu_stack_request": {"pytorch": "2.12"}}}, VERSION, str(file))))
    assert "environments.main.frameworks.pytorch" in found
    assert "driver" not in found


def test_a_lock_that_is_not_there_is_no_lock_that_fits(tmp_path):
    with pytest.raises(lock.LockError) as raised:
        check_lock({"gpu-1": described(REQUEST)}, VERSION, str(tmp_path / "stack.lock.yml"))
    assert raised.value.problems[0].code == "lock_missing"
