# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role verify passes every limit of module gpu_health on, and leaves meaning and default to the module."""

from pathlib import Path

import yaml
from ansible_collections.allreduce.gpu.plugins.modules import gpu_health

ROLE = Path(__file__).resolve().parents[3] / "roles" / "verify"
# Where things are read from: no limits.
PLACES = {"kernel_log", "root", "record"}
# What would be taken for an option of all that the role checks.
RENAMED = {"skip_checks": "health_skip_checks", "seconds": "health_seconds"}


def load(name: str):
    return yaml.safe_load((ROLE / name).read_text(encoding="utf-8"))


def variable(name: str) -> str:
    return RENAMED.get(name, name)


def limits() -> dict:
    return {name: o for name, o in yaml.safe_load(gpu_health.DOCUMENTATION)["options"].items() if name not in PLACES}


def test_every_limit_of_the_module_is_passed_on():
    [task] = [one for one in load("tasks/measure.yml") if "allreduce.gpu.gpu_health" in one]
    passed = task["allreduce.gpu.gpu_health"]
    assert passed.keys() == limits().keys()
    assert all(
        text == f"{{{{ verify_{variable(name)} | default(omit) }}}}"
        for name, text in passed.items()
        if name != "gpu_count"
    )
    assert passed["gpu_count"] == "{{ verify_gpu_count | default(__verify_plan.gpu_count or omit) }}"


def test_the_variables_have_the_types_of_the_module_and_its_defaults():
    options = load("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    kept = ("type", "elements", "choices")
    for name, limit in limits().items():
        option = options[f"verify_{variable(name)}"]
        assert {key: option[key] for key in kept if key in option} == {key: limit[key] for key in kept if key in limit}
        assert f"gpu_health#module:{name})" in str(option["description"])
        assert "default" not in option and f"verify_{variable(name)}" not in load("defaults/main.yml")


def test_gpus_compute_unless_it_is_said_that_they_do_not():
    assert load("defaults/main.yml")["verify_gpu_compute"] is True
    notes = [one["ansible.builtin.set_fact"] for one in load("tasks/measure.yml") if "ansible.builtin.set_fact" in one]
    assert [one["__verify_gpu_compute"] for one in notes if "__verify_gpu_compute" in one] == [
        "{{ verify_gpu_compute | bool }}"
    ]


def test_collectives_are_told_what_they_run_on():
    """Left to themselves they would take the processor where a GPU fails."""
    [task] = [one for one in load("tasks/collectives.yml") if "allreduce.gpu.torchrun" in one]
    assert task["allreduce.gpu.torchrun"]["args"] == ["--device", "{{ __verify_plan.collectives.device }}"]
    assert task["allreduce.gpu.torchrun"]["start_timeout"] == "{{ verify_start_timeout }}"
    assert task["allreduce.gpu.torchrun"]["nproc_per_node"] == "{{ __verify_plan.collectives.nproc_per_node }}"


def test_the_network_costs_no_remote_execution_of_its_own():
    """What is measured by default comes with what tries the other nodes anyway; bandwidth is a file that is left out."""
    [probe] = [
        one["allreduce.gpu.node_probe"] for one in load("tasks/measure.yml") if "allreduce.gpu.node_probe" in one
    ]
    assert probe["network"] == "{{ __verify_plan.network or omit }}"
    files = sorted(
        path.name for path in (ROLE / "tasks").glob("*.yml") if "network_bandwidth" in path.read_text("utf-8")
    )
    assert files == ["bandwidth_round.yml"]
    [bandwidth] = [one for one in load("tasks/main.yml") if "bandwidth.yml" in str(one)]
    assert "ansible.builtin.include_tasks" in bandwidth and bandwidth["when"] == "__verify_measures_bandwidth"
    assert load("defaults/main.yml")["verify_network_bandwidth"] is False


def test_a_server_is_there_before_its_client():
    tasks = [
        one["allreduce.gpu.network_bandwidth"]
        for one in load("tasks/bandwidth_round.yml")
        if "allreduce.gpu.network_bandwidth" in one
    ]
    assert [one["role"] for one in tasks] == ["server", "client"]
    assert tasks[0]["port"] == tasks[1]["port"] and tasks[0]["user"] == tasks[1]["user"]


def test_what_is_unknown_fails_unless_the_user_accepts_it():
    assert load("defaults/main.yml")["verify_accept_unknown"] is False
    [task] = [one for one in load("tasks/conclude.yml") if "errors" in one.get("allreduce.gpu.show", ())]
    assert "_verification_summary(verify_accept_unknown | bool)" in task["vars"]["__verify_verdict"]
