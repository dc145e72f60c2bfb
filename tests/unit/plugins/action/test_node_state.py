# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node is asked for the services that components and subjects declare, whichever way it is measured."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible_collections.allreduce.gpu.plugins.action import node_state
from ansible_collections.allreduce.gpu.plugins.module_utils.host.services import TIME_SERVICES
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.components import PACKAGED
from ansible_collections.allreduce.gpu.plugins.plugin_utils.node.units import UNITS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects import SUBJECTS


def asked(**arguments):
    """The options that the module runs with."""
    task = SimpleNamespace(args=arguments, check_mode=False, async_val=0, diff=False, action="allreduce.gpu.node_state")
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=None), has_native_async=False)
    action = node_state.ActionModule(task, connection, None, None, None, None)
    action._execute_module = lambda **given: {"changed": False, "given": task.args}
    return action.run(task_vars={})["given"]


@pytest.mark.parametrize("given", [{}, {"gpus": True}])
def test_a_task_that_names_no_services_measures_the_declared_ones(given):
    assert asked(**given) == {"services": list(UNITS), **given}


def test_a_task_may_name_its_own():
    assert asked(services=["sshd"]) == {"services": ["sshd"]}


@pytest.mark.parametrize("one", [*PACKAGED, *SUBJECTS], ids=lambda one: one.name)
def test_what_is_declared_is_measured(one):
    assert set(one.units) <= set(UNITS)
    assert isinstance(one.units, tuple), "units is a tuple"


def test_each_is_asked_for_once():
    assert len(set(UNITS)) == len(UNITS) > len(TIME_SERVICES) + 8
