# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import Observed
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Package
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.change import (
    happened,
    hold_arguments,
    not_installed,
    predicted,
    release_arguments,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.packages.plan import PackagePlan, Steps

BEFORE = Observed(packages={"a": "1", "b": "1", "same": "1"}, leftover_packages={"old": "0"})


def test_what_happened():
    change = happened(BEFORE, Observed(packages={"a": "2", "c": "1", "same": "1"}))

    assert change.result() == {"installed": {"a": "2", "c": "1"}, "removed": ["b"]}
    assert change.lines() == (["a 1", "b 1"], ["a 2", "c 1"])
    assert not happened(BEFORE, BEFORE)


def test_what_is_predicted():
    todo = Steps(first=(Package("f"),), install=(Package("a", "2.*"),), remove=("b", "old"))
    change = predicted(todo, BEFORE)

    assert change.result() == {"installed": {"f": "any version", "a": "2.*"}, "removed": ["b", "old"]}
    assert change.lines() == (["a 1", "b 1", "old (configuration)"], ["a 2.*", "f any version"])
    assert not predicted(Steps(optional=("o",)), BEFORE)


def test_what_the_hold_is_told():
    plan = PackagePlan("x", held=("a*",), excluded=("ab",), services=("s",), module_stream="m:1", hold_kernel=True)
    shared = {"name": "x", "packages": ["a*"], "services": ["s"], "module_stream": "m:1", "lock_timeout": 5}

    assert hold_arguments(plan, 5) == {**shared, "excluded": ["ab"], "kernel": True}
    # What another hold keeps may have to go, too.
    assert release_arguments(plan, 5) == {**shared, "state": "released"}
    assert "module_stream" not in release_arguments(PackagePlan("x", held=()), 5)


def test_what_is_left_out_is_named():
    failure = not_installed(Steps(first=(Package("f"),), install=(Package("a"),)), "gpu-1")
    assert failure["cause"] == "not_installed"
    assert failure["msg"].startswith("f, a should be installed on gpu-1 now but is not: ")
