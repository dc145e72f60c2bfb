# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from types import SimpleNamespace

import pytest
from ansible.errors import AnsibleError
from ansible.parsing.dataloader import DataLoader
from ansible_collections.allreduce.gpu.plugins.action import resolve_stack
from ansible_collections.allreduce.gpu.plugins.action.resolve_stack import ActionModule
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning import lock
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.plan import plan

FACTS = {"distribution": "Debian", "distribution_version": "12.11", "architecture": "x86_64"}


def resolve(facts=None, check=False, host="gpu-1", **arguments):
    task = SimpleNamespace(
        args=arguments, check_mode=check, async_val=0, diff=False, action="allreduce.gpu.resolve_stack"
    )
    connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir="unused"))
    action = ActionModule(task, connection, None, DataLoader(), None, None)
    action._load_name = task.action
    return action.run(task_vars={"ansible_facts": facts or FACTS, "inventory_hostname": host})


@pytest.mark.parametrize("check", [False, True])
def test_facts_are_enough(check):
    result = resolve(check=check)
    assert list(result["stack"]["environments"][0]["frameworks"]) == ["pytorch"]
    assert result["changed"] is False
    assert result["conflicts"] == []
    assert "ansible_facts" not in result


def test_publish():
    result = resolve(publish=True)
    assert result["ansible_facts"]["gpu_stack"] == result["stack"]


def test_gpus_of_the_node_are_taken():
    facts = {
        **FACTS,
        "gpu_node": {"gpus": [{"name": "NVIDIA A40", "pci_device_id": "0x2235", "compute_capability": "8.6"}]},
    }
    assert resolve(facts)["stack"]["gpus"] == [{"model": "A40", "compute_capability": "8.6", "count": 1}]
    assert resolve(facts, gpus=[])["stack"]["gpus"] == []


def test_a_conflict_fails_with_the_whole_answer():
    with pytest.raises(AnsibleError, match="needs driver 580.65.06 or newer"):
        resolve(gpus=["A40"], request={"driver": "535", "pytorch": "2.15.0"})


def test_a_conflict_is_shown_as_what_why_and_what_to_do(capsys):
    with pytest.raises(AnsibleError):
        resolve(gpus=["A40"], request={"driver": "535", "pytorch": "2.15.0"})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "error: driver 535 and pytorch 2.15.0 do not fit together."
    assert [line.split(":")[0] for line in lines if ": " in line[:8]] == ["error", "  why", "  fix", "error", "  fix"]
    assert max(map(len, lines)) <= 80


def test_a_conflict_is_reported_when_asked_for():
    result = resolve(gpus=["A40"], request={"driver": "535", "pytorch": "2.15.0"}, on_conflict="report", publish=True)
    assert result["stack"] is None
    assert result["conflicts"][0]["between"] == ["driver", "pytorch"]
    assert result["suggestion"]["request"]
    assert "ansible_facts" not in result


def test_packages_come_with_every_environment():
    split = {"pytorch": "latest", "tensorflow": "latest", "environments": "split"}
    plain = resolve(request=split)["stack"]["environments"]
    result = resolve(request=split, packages=["catboost", "mpi4py>=4.1"], publish=True)
    assert len(plain) == 2
    for with_them, without in zip(result["stack"]["environments"], plain, strict=True):
        assert with_them == {**without, "requirements": [*without["requirements"], "catboost", "mpi4py>=4.1"]}
    assert result["ansible_facts"]["gpu_stack"] == result["stack"]


def test_packages_of_a_host_come_to_what_was_planned():
    variables = {"ansible_facts": FACTS}
    planned = plan({"gpu-1": variables}, "2.19.3")
    result = resolve(plan=planned, packages=["catboost"])
    assert result["stack"]["environments"][0]["requirements"][-1] == "catboost"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"packages": ["tensorflow"]},
            r"python_env_packages \(gpu-1\) has 'tensorflow', .* request it as tensorflow in gpu_stack_request",
        ),
        ({"gpus": ["A99"]}, "GPU 'A99' is not known"),
        (
            {"gpus": ["8 x A100-SXM4-80GB"]},
            "gpus has .8 x A100-SXM4-80GB.; list A100-SXM4-80GB 8 times, once for each GPU",
        ),
        ({"gpus": ["A100-SXM4-80GB x 8"]}, "list A100-SXM4-80GB 8 times, once for each GPU"),
        ({"gpus": ["8X H100"]}, "list H100 8 times"),
        ({"gpus": ["gtx 9999"]}, "GPU 'gtx 9999' is not known"),
        ({"os": "slackware 15"}, "Operating system 'slackware 15' is not supported"),
        ({"request": {"pytroch": "2"}}, "did you mean pytorch"),
        ({"profile": "pytorch-stabel"}, "There is no profile 'pytorch-stabel'; the nearest ones are pytorch-stable"),
    ],
)
def test_bad_input_is_one_sentence(arguments, message):
    with pytest.raises(AnsibleError, match=message):
        resolve(**arguments)


def test_the_running_ansible_core_is_the_default(monkeypatch):
    monkeypatch.setattr(resolve_stack, "ansible_version", "2.19.3")
    with pytest.raises(AnsibleError, match="platform Python of rocky 8"):
        resolve(os="rocky 8")
    assert resolve(os="rocky 8", ansible_core="2.16")["stack"]


def test_a_profile_with_a_constraint_laid_over_it():
    result = resolve(os="ubuntu 20.04", gpus=["A40"], profile="a40-ubuntu2004", request={"cupy": "none"})
    assert result["stack"]["environments"][0]["frameworks"] == {
        "horovod": "0.28.1",
        "pytorch": "2.0.1",
        "tensorflow": "2.12.0",
    }


def test_a_lock_that_does_not_fit(tmp_path):
    path = tmp_path / "stack.lock.yml"
    path.write_text(lock.text(lock.renewed(None, [resolve()["stack"]])), encoding="utf-8")
    assert resolve(lock=str(path))["stack"]["update"] == []
    with pytest.raises(AnsibleError, match="no longer fits this host") as error:
        resolve(lock=str(path), request={"pytorch": "2.12"})
    assert error.value.result["cause"] == "lock_outdated"
    assert "-e stack_lock_renew=true" in str(error.value)
    assert resolve(lock=str(path), request={"pytorch": "2.12"}, renew=True)["stack"]["update"]


def test_a_plan_is_followed_where_it_was_shown_for_this_host():
    hosts = {"gpu-1": {"ansible_facts": FACTS}}
    shown = plan(hosts, "2.19.0")
    result = resolve(plan=shown, publish=True, host="gpu-1")
    assert result["ansible_facts"]["gpu_stack"] == resolve()["stack"]
    assert (result["conflicts"], result["suggestion"], result["warnings"]) == ([], None, result["stack"]["warnings"])
    other = resolve(plan=shown, request={"pytorch": "2.12"}, host="gpu-1")
    assert other["stack"]["environments"][0]["frameworks"]["pytorch"].startswith("2.12")
