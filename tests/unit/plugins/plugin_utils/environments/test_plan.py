# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The questions of the roles, with the variables that answer them."""

import pytest
from ansible_collections.allreduce.gpu.plugins.lookup._environments import DOCUMENTATION
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.plan import QUESTIONS

SYSTEM = {"id": "debian", "version": "12", "arch": "x86_64", "family": "debian"}
MEASURED = {"ansible_facts": {"gpu_stack": {"os": SYSTEM, "environments": []}, "gpu_node_state": {"environments": {}}}}
ASKED = {"main": {"digest": "a", "installed": False}}
PLACES = {"main": {"directory": ".main-0123456789ab", "switch": True, "late": False, "conda_lock": ""}}


def answer(question, own=None, **nodes):
    return QUESTIONS[question].answer(own or {}, {name.replace("_", "-"): one for name, one in nodes.items()})


def test_every_question_is_documented():
    for name, question in QUESTIONS.items():
        assert DOCUMENTATION.count(f"V({name})") == (2 if question.shared else 1), name


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        (MEASURED, True),
        ({**MEASURED, "frameworks_relock": False}, True),
        ({**MEASURED, "frameworks_relock": "no"}, True),
        # Asked for in the variables of one host.
        ({**MEASURED, "frameworks_relock": "yes"}, False),
        ({**MEASURED, "frameworks_relock": True}, False),
        ({"ansible_facts": {"gpu_stack": MEASURED["ansible_facts"]["gpu_stack"]}}, False),
        ({}, False),
    ],
)
def test_all_hosts_count(variables, expected):
    assert answer("settled", gpu_1=MEASURED, gpu_2=variables) is expected


def test_hosts_that_ask_get_it_from_the_address_of_another():
    nodes = {
        "gpu_1": {"__frameworks_places": ASKED, "gpu_cluster_address": "10.0.0.1"},
        "gpu_2": {"__frameworks_places": ASKED, "ansible_facts": {"default_ipv4": {"address": "10.0.0.2"}}},
        "gpu_3": {},
    }
    assert answer("archives", {"__frameworks_distribute": True}, **nodes) == {
        "main": {
            "downloaders": ["gpu-1"],
            "rounds": [{"gpu-2": {"source": "gpu-1", "downloader": "gpu-1", "address": "10.0.0.1"}}],
        }
    }
    assert answer("archives", {"__frameworks_distribute": False}, **nodes) == {
        "main": {"downloaders": [], "rounds": []}
    }


def test_a_mark_is_one_of_the_node_that_says_so():
    said = {
        "gpu_1": {"__frameworks_marker": {"path": "/e/.shared-a1_b2c3d.gpu-1"}},
        "gpu_2": {"__frameworks_marker": {"path": "/e/.shared-a1b2c3d4.gpu-1"}},
        "gpu_3": {"__frameworks_marker": {"path": "/e/main"}},
        "gpu_4": {"__frameworks_marker": {"path": "/e/.."}},
        "gpu_5": {"__frameworks_marker": {"failed": True, "msg": "Read-only file system"}},
        "login": {},
    }
    assert answer("markers", **said) == {"gpu-1": ".shared-a1_b2c3d.gpu-1"}


def test_those_that_see_a_file_share_with_whom_made_it():
    def node(*seen):
        return {"__frameworks_places": PLACES, "__frameworks_seen_markers": {"stdout_lines": [*seen]}}

    found = answer(
        "shares",
        {"__frameworks_markers": {"gpu-2": "2", "gpu-3": "3"}},
        gpu_1=node("2"),
        gpu_2=node("2"),
        gpu_3=node("3"),
        gpu_4={"__frameworks_places": PLACES},
        login={},
    )
    assert {host: (one["leader"], one["shared"]) for host, one in found.items()} == {
        "gpu-1": ("gpu-2", True),
        "gpu-2": ("gpu-2", True),
        "gpu-3": ("gpu-3", False),
        "gpu-4": ("gpu-4", False),
    }


@pytest.mark.parametrize(("switch", "expected"), [(True, True), (False, False)])
def test_one_node_with_something_to_activate_is_a_change(switch, expected):
    own = {"main": {**PLACES["main"], "switch": switch}}
    other = {"main": {**PLACES["main"], "switch": False}}
    nodes = {"gpu_1": {"__frameworks_places": other}, "gpu_2": {"__frameworks_places": own}, "login": {}}
    assert answer("changes", **nodes) is expected


def test_a_wheel_is_found_or_compiled_or_missing():
    name = "horovod-0.28.1-cp311-cp311-linux_x86_64.whl"
    found, compiled = {"file": name, "sha256": "1" * 64}, {"file": name, "sha256": "2" * 64}
    wrong = {"file": "../../etc/shadow", "sha256": "2" * 64}
    plan = {
        "a": {"host": "gpu-1", "version": "0.28.1", "wheel": found},
        "b": {"host": "gpu-2", "version": "0.28.1", "wheel": None},
        "c": {"host": "gpu-1", "version": "0.28.1", "wheel": None},
        "d": {"host": "gpu-2", "version": "0.28.1", "wheel": None},
    }
    nodes = {"gpu_1": {}, "gpu_2": {"__horovod_compiled": {"b": compiled, "d": wrong}}}
    assert answer("wheels", {"__horovod_plan": plan}, **nodes) == {"a": found, "b": compiled, "c": {}, "d": {}}


@pytest.mark.parametrize(
    ("found", "former", "stays"),
    [
        ({"conda": ["python"], "target": None}, "@EXPLICIT", True),  # a directory from before there were links
        ({"conda": ["python"], "target": None}, "another", False),
        ({"conda": ["python"], "target": ".main-0123456789ab"}, "@EXPLICIT", False),
        ({"conda": None, "target": None}, "@EXPLICIT", False),  # uv made it
        (None, "", False),
    ],
)
def test_conda_makes_it_beside_the_one_in_use_unless_that_is_a_directory_as_planned(found, former, stays):
    conda = {"source": "conda", "path": None, "packages": []}
    one = {"name": "main", "python": "3.12", "requirements": ["numpy"], "interpreter": conda}
    own = {
        "ansible_facts": {
            "gpu_stack": {"os": SYSTEM, "environments": [one]},
            "gpu_node_state": {"environments": {"main": found} if found else {}},
        },
        "__python_env_conda": {"main": {"digest": "d", "former": former}},
        "__python_env_conda_plan": {"d": {"host": "gpu-1", "lock": "@EXPLICIT"}},
    }
    made = answer("conda_made", own)["main"]
    assert made["lock"] == "@EXPLICIT"
    assert (made["at"] == "main") is stays
    assert stays or made["at"].startswith(".main-")


def test_nothing_that_conda_makes():
    """ansible-core before 2.19 asks for it even where an expression needs it only for other environments."""
    assert answer("conda_made", MEASURED) == {}
