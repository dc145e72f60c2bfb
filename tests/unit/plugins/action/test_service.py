# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.errors import AnsibleError
from ansible_collections.allreduce.gpu.plugins.action import service
from ansible_collections.allreduce.gpu.plugins.plugin_utils.node.units import UNITS
from ansible_collections.allreduce.gpu.tests.support.fake_node import FakeNode, act

NAME = "nvidia-persistenced"
OFF = {"enabled": False, "active": False}
ON = {"enabled": True, "active": True}


def run(one, check=False, **arguments):
    return act(service, one, {}, check, name=NAME, **arguments)


CHANGES = [
    (OFF, {"enabled": True, "state": "started"}, ON),
    (OFF, {"enabled": True}, {"enabled": True, "active": False}),
    (ON, {"enabled": False, "state": "stopped"}, OFF),
    ({"enabled": True, "active": False}, {"state": "started"}, ON),
]


@pytest.mark.parametrize(("before", "wanted", "after"), CHANGES)
def test_change(before, wanted, after):
    one = FakeNode(services={NAME: dict(before)})
    result = run(one, **wanted)

    assert result["changed"]
    assert one.services[NAME] == after
    assert one.modules() == ["systemd_service", "node_state"]
    assert result["ansible_facts"]["gpu_node_state"]["services"][NAME] == after
    assert not run(one, **wanted)["changed"]


@pytest.mark.parametrize(("before", "wanted", "after"), CHANGES)
def test_change_in_check_mode(before, wanted, after):
    one = FakeNode(services={NAME: dict(before)})
    result = run(one, check=True, **wanted)

    assert result["changed"]
    assert result["diff"][0]["before"] != result["diff"][0]["after"]
    assert one.calls == []


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(("_before", "wanted", "after"), CHANGES)
def test_no_change(_before, wanted, after, check):
    one = FakeNode(services={NAME: dict(after)})
    result = run(one, check, **wanted)

    assert not result["changed"]
    assert one.calls == []


@pytest.mark.parametrize("check", [False, True])
def test_what_is_off_stays_off_where_its_unit_has_gone(check):
    """A drop-in without its unit: systemd has something to read again, and nothing to stop."""
    one = FakeNode(services={NAME: {**OFF, "outdated": True}})
    result = run(one, check, enabled=False, state="stopped")

    assert not result["changed"]
    assert one.calls == []


@pytest.mark.parametrize(("check", "modules"), [(False, ["systemd_service"]), (True, [])])
def test_a_changed_unit_is_read_again(check, modules):
    one = FakeNode(services={NAME: dict(ON)})
    result = run(one, check, enabled=True, daemon_reload=True)

    assert not result["changed"]
    assert one.modules() == modules


@pytest.mark.parametrize("active", [False, True])
@pytest.mark.parametrize(("outdated", "arguments"), [(False, {"daemon_reload": True}), (True, {})])
def test_a_service_that_shall_run_is_restarted_with_its_changed_unit(outdated, arguments, active):
    one = FakeNode(services={NAME: {"enabled": True, "active": active, "outdated": outdated}})
    result = run(one, enabled=True, state="started", **arguments)

    assert result["changed"]
    assert "unit in use: no" in result["diff"][0]["before"]
    (_name, given), _measured = one.calls
    assert (given["state"], given["daemon_reload"]) == ("restarted", True)
    assert one.services[NAME] == {**ON, "outdated": False}
    assert not run(one, enabled=True, state="started")["changed"]


def test_a_service_that_shall_run_with_its_changed_unit_in_check_mode():
    one = FakeNode(services={NAME: {**ON, "outdated": True}})
    result = run(one, check=True, enabled=True, state="started")

    assert result["changed"]
    assert one.calls == []


def test_a_service_that_came_up_since_it_was_measured_is_no_change():
    one = FakeNode(services={NAME: dict(ON)})
    result = act(service, one, {"gpu_node_state": {"services": {}}}, name=NAME, enabled=True, state="started")

    assert not result["changed"]
    assert result["diff"] == []
    assert result["ansible_facts"]["gpu_node_state"]["services"][NAME] == ON


@pytest.mark.parametrize("check", [False, True])
def test_a_service_that_is_not_there_is_off(check):
    one = FakeNode()
    assert not run(one, check, enabled=False, state="stopped")["changed"]
    assert one.calls == []


def test_a_service_to_come_is_predicted():
    assert run(FakeNode(), check=True, enabled=True)["changed"]


def test_systemds_words_are_told():
    result = run(FakeNode(), enabled=True)

    assert result["failed"]
    assert result["msg"].startswith(
        f"The service {NAME} could not be set on gpu-1: Could not find the requested service"
    )


def test_nothing_wanted_is_refused():
    with pytest.raises(AnsibleError, match="enabled, state"):
        run(FakeNode())


@pytest.mark.parametrize("check", [False, True])
def test_a_unit_that_nobody_declares_is_refused_before_the_node_is_asked(check):
    """Nothing measures it: on a node that has the state, it would be set again by each run."""
    one = FakeNode(services={"mine": dict(ON)})
    with pytest.raises(
        AnsibleError, match="The service mine is not measured, as no component and no settings subject has it"
    ):
        act(service, one, {}, check, name="mine", enabled=True, state="started")
    assert one.calls == []


@pytest.mark.parametrize("name", UNITS)
def test_what_is_declared_costs_nothing_once_it_is_set(name):
    one = FakeNode(services={name: dict(OFF)})
    assert act(service, one, name=name, enabled=True, state="started")["changed"]
    one.calls.clear()
    assert not act(service, one, name=name, enabled=True, state="started")["changed"]
    assert one.calls == []
