# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of role monitoring that only together make sense are refused before the first role, and each once."""

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.roles import (
    misfits,
    role_problems,
    subject_problems,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.world import UNRESOLVED, World
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects import MONITORING, SUBJECTS

GROUPS = {"gpu_nodes": ["gpu-1", "gpu-2"], "controllers": ["ctl"]}
GOOD = {"monitoring_state": "present", "monitoring_password": "correct horse battery"}


def told(variables, groups=None, play=None, resolve=lambda host, value: value):
    groups = GROUPS if groups is None else groups
    hosts = {host: dict(variables) for members in groups.values() for host in members}
    world = World(hosts=hosts, groups=groups, playing=list(hosts), play=play or {})
    return [(one.code, one.subject) for one in misfits(world, resolve, MONITORING)]


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        ({}, []),
        ({"monitoring_password": ""}, [("monitoring_no_password", "monitoring_password")]),
        ({"monitoring_password": None}, [("monitoring_no_password", "monitoring_password")]),
        ({"monitoring_password": "", "monitoring_state": "absent"}, []),
        ({"monitoring_password": "short"}, []),  # told by its form
        ({"monitoring_tls_key": "/key"}, [("monitoring_tls", "monitoring_tls_certificate, monitoring_tls_authority")]),
    ],
)
def test_what_is_missing_is_told_once_for_all_hosts(change, problems):
    assert told({**GOOD, **change}) == problems


def test_without_a_controller_nobody_would_ask():
    assert told(GOOD, {"gpu_nodes": ["gpu-1"]}) == [("monitoring_no_controller", "controllers")]
    assert told({}, {"gpu_nodes": ["gpu-1"]}) == []


def test_a_play_decides_for_all_hosts():
    assert told({"monitoring_state": "present"}, play={"monitoring_password": "correct horse battery"}) == []
    assert told(GOOD, play={"monitoring_password": ""}) == [("monitoring_no_password", "monitoring_password")]


def test_what_is_not_known_yet_is_not_judged():
    assert (
        told(
            {**GOOD, "monitoring_password": "{{ later }}"},
            resolve=lambda host, value: UNRESOLVED if "{{" in value else value,
        )
        == []
    )


def test_other_hosts_are_not_watched():
    assert told({"monitoring_state": "present"}, {"login": ["login-1"]}) == []


def test_the_preflight_asks_for_it():
    hosts = {name: {"monitoring_state": "present"} for members in GROUPS.values() for name in members}
    world = World(hosts=hosts, groups=GROUPS, playing=list(hosts))
    (found,) = role_problems(world, lambda host, value: value)
    assert found.code == "monitoring_no_password"


STRANGE = ["", "x", "a,b", "²", 5, -1, 10**400, float("inf"), float("nan"), True, [1], [[1]], {"a": 1}, {1: 2, "b": 3}]


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: str(value)[:9])
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda one: one.name)
def test_a_value_of_the_wrong_type_is_left_to_the_check_of_types(subject, value):
    """Where it ended in a traceback instead, no other problem of the inventory was told."""
    for name in subject.defaults:
        given = {**GOOD, f"{subject.name}_state": "present", name: value}
        hosts = {host: dict(given) for members in GROUPS.values() for host in members}
        world = World(hosts=hosts, groups=GROUPS, playing=list(hosts), play={})
        assert isinstance(subject_problems(world, lambda host, value: value, subject), list)
