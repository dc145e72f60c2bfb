# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The plan of many hosts: who is asked what, and what comes together."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Environment, System
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.requests import request_digest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.extras import with_packages
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning import lock
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning import plan as planning
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.decide import decide
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.plan import plan, planned_stack
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.questions import question_from_facts
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.text import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.input_error import InputError

from tests.support.calls import calls

DESCRIBED = {"gpu_stack_host": {"os": "ubuntu 22.04", "gpus": ["A40"]}, "gpu_stack_request": {"driver": "580"}}
MEASURED = {
    "ansible_facts": {
        "distribution": "Debian",
        "distribution_version": "12.12",
        "architecture": "x86_64",
        "gpu_node": {"gpus": []},
        "gpu_node_state": {"disk_free_mib": {"/": 100000, "/opt": 20}},
    }
}


def planned(**hosts):
    return plan(hosts, "2.19.0")


def test_equal_hosts_come_together_whatever_they_are_called():
    found = planned(b=DESCRIBED, a=DESCRIBED, c={**DESCRIBED, "gpu_stack_request": {"driver": "535"}})
    assert [one["hosts"] for one in found["stacks"]] == [["a", "b"], ["c"]]


def test_hosts_that_ask_differently_and_get_the_same_come_together():
    spelt = {**DESCRIBED, "gpu_stack_host": {"os": "ubuntu 22.04", "gpus": ["NVIDIA A40"]}}
    assert [one["hosts"] for one in planned(a=DESCRIBED, b=spelt)["stacks"]] == [["a", "b"]]


def test_what_was_measured_goes_before_what_is_described():
    found = planned(a={**MEASURED, "gpu_stack_host": {"os": "ubuntu 22.04", "gpus": ["A40"]}})
    assert found["stacks"][0]["stack"]["os"]["id"] == "debian"


def test_a_profile_and_a_constraint_over_it():
    host = {"gpu_stack_host": {"os": "ubuntu 22.04", "gpus": ["A40"]}, "gpu_stack_profile": "pytorch-lts-driver"}
    found = planned(a=host, b={**host, "gpu_stack_request": {"pytorch": "2.8"}})
    assert [one["stack"]["driver"]["branch"] for one in found["stacks"]] == ["580", "580"]
    assert len(found["stacks"]) == 2


@pytest.mark.parametrize(
    ("variables", "says", "instead"),
    [
        ({"gpu_stack_request": {"driver": "535", "pytorch": "2.15.0"}}, "needs driver 580.65.06 or newer", True),
        ({"gpu_stack_request": {"driver": "999"}}, "driver '999' is not known", False),
        ({"gpu_stack_host": {"os": "ubuntu 22.04", "gpus": ["A99"]}}, "GPU 'A99' is not known", False),
        ({"gpu_stack_request": {"pytorch": 2.10}}, "as the number 2.1; quote the version: '2.1' or '2.10'", False),
        ({"gpu_stack_host": {}}, "No operating system is given", False),
        (
            {"python_env_python": "uv"},
            "python_env_python (set for this host) is 'uv'; choose auto",
            False,
        ),
        (
            {"python_env_python": "distribution", "gpu_stack_request": {"python": "3.12"}},
            "ubuntu 22.04 has Python 3.10 for environments, not 3.12",
            True,
        ),
    ],
)
def test_what_is_refused_stops_nobody_else(variables, says, instead):
    found = planned(a=DESCRIBED, b={**DESCRIBED, **variables})
    assert [one["hosts"] for one in found["stacks"]] == [["a"]]
    (refused,) = found["refused"]
    assert refused["hosts"] == ["b"]
    assert says in refused["reasons"][0]
    assert bool(refused["instead"]) == instead


def test_hosts_that_ask_differently_and_are_refused_alike_come_together():
    constraint = {"gpu_stack_request": {"driver": "999"}}
    found = planned(
        a={**DESCRIBED, **constraint}, b={**DESCRIBED, **constraint, "gpu_stack_take_charge": True}, c=MEASURED
    )
    assert [one["hosts"] for one in found["refused"]] == [["a", "b"]]


def test_a_request_that_is_no_dictionary():
    with pytest.raises(InputError, match="wrong_request") as error:
        planned(a={**DESCRIBED, "gpu_stack_request": "latest"})
    assert describe(error.value.problems[0]).startswith("gpu_stack_request is 'latest'; set it to a dictionary")


def test_a_disk_that_is_too_small_is_told_with_its_host():
    assert planned(a=DESCRIBED, b=MEASURED)["shortages"][0].startswith("b: 20 MiB are free under /opt")


@pytest.mark.parametrize("packages", [["catboost", "torchvision"], "catboost, torchvision"], ids=["list", "text"])
def test_an_environment_with_more_packages_is_known_when_it_is_there(packages):
    """What is installed takes no further room: its request names the packages."""
    stack = planned(b=MEASURED)["stacks"][0]["stack"]
    whole = with_packages(stack, ["catboost", "torchvision"])
    digest = request_digest(parse(Environment, whole["environments"][0]), parse(System, stack["os"]))
    facts = MEASURED["ansible_facts"]
    state = {**facts["gpu_node_state"], "environments": {"main": {"lock": {"request": digest, "packages": {}}}}}
    measured = {"ansible_facts": {**facts, "gpu_node_state": state}}
    assert planned(b={**measured, "python_env_packages": packages})["shortages"] == []
    assert planned(b=measured)["shortages"] != []


def enforcing(on, **state):
    """An Ubuntu with a GPU whose administrator uses SELinux."""
    booleans = {"secure_mode_insmod": {"active": on, "pending": on}}
    known = {"selinux": {"mode": "enforcing", "configured": "enforcing", "booleans": booleans}, **state}
    return {**DESCRIBED, "ansible_facts": {"gpu_node_state": known}}


@pytest.mark.parametrize(
    ("variables", "obstacles"),
    [
        (enforcing(True), ["b: SELinux's boolean secure_mode_insmod is on"]),
        (enforcing(False), []),
        (enforcing(True, driver={"loaded": "580.95.05", "installed": "580.95.05"}), []),
        ({**enforcing(True), "nvidia_driver_state": "absent"}, []),
        ({**enforcing(True), "gpu_stack_host": {"os": "ubuntu 22.04", "gpus": []}}, []),
        (MEASURED, []),
    ],
    ids=["no module loads", "modules load", "the driver is there", "no driver wanted", "no GPU", "not SELinux"],
)
def test_a_host_that_would_load_no_driver_is_told(variables, obstacles):
    assert [text.split(",")[0] for text in planned(a=DESCRIBED, b=variables)["obstacles"]] == obstacles


@pytest.mark.parametrize(
    ("system", "variables", "obstacles"),
    [
        ("rocky 9", {}, []),
        ("rocky 9", {"monitoring_state": "present"}, ["b: Neither rocky 9 nor EPEL has Prometheus"]),
        ("rocky 9", {"monitoring_state": "present", "monitoring_repository": {"url": "https://x.example.org"}}, []),
        ("ubuntu 20.04", {"monitoring_state": "present"}, ["b: There is no monitoring for ubuntu 20.04 (its node"]),
        ("ubuntu 20.04", {"slurm_state": "present"}, ["b: There is no Slurm for b: the role installs that of De"]),
        ("ubuntu 20.04", {"slurm_state": "external"}, []),
        ("debian 12", {"monitoring_state": "present"}, []),
    ],
)
def test_a_host_that_could_not_be_monitored_or_scheduled_is_told(system, variables, obstacles):
    host = {"gpu_stack_host": {"os": system, "gpus": []}, **variables}
    found = planned(b=host)["obstacles"]
    assert len(found) == len(obstacles)
    assert all(text.startswith(start) for text, start in zip(found, obstacles, strict=True))


def test_a_lock_is_followed_and_its_refusal_told(tmp_path):
    path = tmp_path / "stack.lock.yml"
    stacks = [one["stack"] for one in planned(a=DESCRIBED)["stacks"]]
    path.write_text(lock.text(lock.renewed(None, stacks)), encoding="utf-8")
    assert plan({"a": DESCRIBED}, "2.19.0", str(path))["stacks"][0]["stack"]["update"] == []
    found = plan({"a": {**DESCRIBED, "gpu_stack_request": {"driver": "535"}}}, "2.19.0", str(path))
    assert "no longer fits this host" in found["refused"][0]["reasons"][0]


def test_the_lock_has_every_request_whatever_it_came_to(tmp_path):
    """Two requests with one answer had one entry, and the next plan was refused."""
    path = tmp_path / "stack.lock.yml"
    both = {"a": DESCRIBED, "b": {**DESCRIBED, "gpu_stack_request": {"driver": "580", "pytorch": "latest"}}}
    first = plan(both, "2.19.0")
    assert [kind["hosts"] for kind in first["stacks"]] == [["a", "b"]]
    path.write_text(lock.planned_text(first, str(path)), encoding="utf-8")
    again = plan(both, "2.19.0", str(path))
    assert again["refused"] == []
    assert [answer["stack"]["inputs"]["request"] for answer in again["stacks"][0]["answers"]] == [
        {"driver": "580"},
        {"driver": "580", "pytorch": "latest"},
    ]


def test_each_host_says_where_its_interpreter_comes_from():
    node = {**DESCRIBED, "gpu_stack_request": {"pytorch": "2.14.1"}}
    found = planned(a=node, b={**node, "python_env_python": "standalone"})
    sources = {kind["hosts"][0]: kind["stack"]["environments"][0]["interpreter"]["source"] for kind in found["stacks"]}
    assert sources == {"a": "distribution", "b": "standalone"}


def test_a_host_that_asks_for_another_interpreter_by_now_does_not_take_its_stack_from_the_plan():
    found = planned(b=MEASURED)
    facts = MEASURED["ansible_facts"]
    assert planned_stack(found, "b", question_from_facts({}, facts, "2.19.0"))
    assert planned_stack(found, "b", question_from_facts({"interpreter": "standalone"}, facts, "2.19.0")) is None


@pytest.mark.parametrize(
    ("host", "request_now", "taken"),
    [
        ("b", {}, True),
        ("a", {"driver": "580"}, False),
        ("b", {"driver": "535"}, False),
        ("c", {}, False),
    ],
)
def test_a_host_takes_its_stack_from_the_plan_it_was_measured_for(host, request_now, taken):
    """a is only described, c is not in the plan, and a request may differ from what was planned."""
    found = planned(a=DESCRIBED, b=MEASURED)
    question = question_from_facts({"request": request_now}, MEASURED["ansible_facts"], "2.19.0")
    stack = planned_stack(found, host, question)
    assert stack == (decide(question)["stack"] if taken else None)


def test_each_kind_of_a_thousand_hosts_is_resolved_once_and_found_quickly(monkeypatch):
    asked = []
    monkeypatch.setattr(planning, "decide", lambda question, **options: asked.append(question) or decide(question))
    hosts = {}
    for number in range(1000):
        facts = {**MEASURED["ansible_facts"], "distribution_version": f"{12 + number % 2}.1"}
        hosts[f"gpu-{number}"] = {"ansible_facts": facts}
    found = plan(hosts, "2.19.0")
    assert len(asked) == 2
    questions = {name: planning.host_question(variables, "2.19.0") for name, variables in hosts.items()}
    assert {planned_stack(found, *each)["os"]["version"] for each in questions.items()} == {"12", "13"}
    first, last = (calls(planned_stack, found, f"gpu-{number}", questions[f"gpu-{number}"]) for number in (0, 999))
    assert last < 2 * first, "the last host is found as quickly as the first"


def test_the_running_ansible_core_counts():
    host = {"gpu_stack_host": {"os": "rocky 8", "gpus": []}}
    assert planned(a=host)["refused"]
    assert planned(a={"gpu_stack_host": {**host["gpu_stack_host"], "ansible_core": "2.16"}})["stacks"]
