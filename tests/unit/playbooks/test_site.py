# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook site on hosts whose facts are known and whose stack is empty: what is decided, how often, with which tags."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from ansible.release import __version__
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.decide import decide
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.questions import question_from_facts

from tests.support.command import CHECKOUT, play, write_inventory

# What has nothing to do where no part of a stack is planned.
IDLE = [
    "cuda_repository", "rdma", "nvidia_driver", "fabric_manager", "gpu_settings", "container_toolkit", "gpu_local_fact", "cuda_toolkit", "cudnn", "nccl",
    "python_env", "frameworks", "tuning", "pcie", "firewall", "qos", "scratch", "health",
]  # fmt: skip
SITE = "allreduce.gpu.site"
REQUEST = {"pytorch": "none"}
STATE = {"package_manager": "apt", "packages": {}, "leftover_packages": {}, "services": {}, "environments": {}}


def facts(number, distribution, version):
    """What role stack would gather and measure on a host without GPUs."""
    return {
        "distribution": distribution,
        "distribution_version": version,
        "architecture": "x86_64",
        "default_ipv4": {"address": f"10.0.0.{number + 1}"},
        "gpu_node": {"gpus": []},
        "gpu_node_state": STATE,
    }


KEYS = ("distribution", "distribution_version", "architecture", "default_ipv4", "gpu_node", "gpu_node_state")
# Facts come before site, which then has nothing to measure.
KNOWN = {
    "name": "Know the hosts",
    "hosts": "gpu_nodes",
    "gather_facts": False,
    "tags": ["always"],
    "tasks": [{"ansible.builtin.set_fact": {"cacheable": True, **{key: "{{ known." + key + " }}" for key in KEYS}}}],
}


class Site:
    """Six hosts of two kinds whose facts are known."""

    def __init__(self, directory, **groups):
        self.directory = directory
        systems = (("Debian", "12.11"), ("Ubuntu", "22.04"))
        self.facts = {f"gpu-{number}": facts(number, *systems[number % 2]) for number in range(6)}
        nodes = {name: {"known": known} for name, known in self.facts.items()}
        gpu_nodes = {"hosts": nodes, "vars": {"gpu_stack_request": REQUEST}}
        write_inventory(directory, {"gpu_nodes": gpu_nodes, **groups})

    def play(self, book, *options):
        """Run plays after one another, with a file of what was decided."""
        path = self.directory / "book.yml"
        path.write_text(json.dumps([{"import_playbook": one} if isinstance(one, str) else one for one in book]))
        (self.directory / "decisions").write_text("")
        return play(
            self.directory,
            path,
            *options,
            ANSIBLE_CALLBACK_PLUGINS=str(CHECKOUT / "tests" / "support" / "callback_plugins"),
            ANSIBLE_CALLBACKS_ENABLED="decisions",
            ALLREDUCE_DECISIONS=str(self.directory / "decisions"),
        )

    def decisions(self):
        """(how often the resolver was asked, by system; the stacks that hosts were given)."""
        rows = [json.loads(line) for line in (self.directory / "decisions").read_text(encoding="utf-8").splitlines()]
        given = [(row["host"], row["stack"]) for row in rows if "host" in row]
        assert len(dict(given)) == len(given), "a host is given a stack once"
        return Counter(row["asked"] for row in rows if "asked" in row), dict(given)

    def resolved(self):
        """What resolve_stack publishes for every host without a lock."""
        return {
            name: decide(question_from_facts({"request": REQUEST}, known, __version__))["stack"]
            for name, known in self.facts.items()
        }


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_each_kind_is_resolved_once_and_every_host_gets_what_was_shown(site):
    run = site.play([KNOWN, SITE], "--tags", ",".join(IDLE))
    assert run.status == 0, run.output
    assert not run.contacted
    asked, given = site.decisions()
    assert asked == {"debian 12.11": 1, "ubuntu 22.04": 1}
    assert given == site.resolved()


DEPENDS = "{{ 'present' if ansible_facts.distribution == 'Debian' else 'open' }}"


@pytest.mark.parametrize(("limit", "status"), [("gpu-0,gpu-2", 0), ("gpu-0,gpu-1", 2)])
def test_a_value_that_depends_on_facts_is_refused_before_a_node_is_changed(site, limit, status):
    """No role is off by its tag: those that are asked for are not the only ones that are judged."""
    values = json.dumps({"firewall_state": DEPENDS})
    run = site.play([KNOWN, SITE], "--tags", "nccl", "--limit", limit, "-e", values)
    assert run.status == status, run.output
    assert not run.contacted
    refusal = "firewall_state (set on the command line) is 'open'; choose from absent, present, disabled."
    assert (refusal in run.words) == bool(status)
    assert ("PLAY [Reconcile" in run.output) != bool(status)


@pytest.mark.long
def test_the_roles_of_site_do_not_validate_their_arguments_again(site):
    """Ansible does so for those that others depend on, whatever a playbook says."""
    run = site.play([KNOWN, SITE], "--tags", ",".join(IDLE))
    assert run.status == 0, run.output
    validated = re.findall(r"TASK \[allreduce\.gpu\.(\w+) : Validating arguments", run.output)
    assert set(validated) == {"stack", "python_env", "frameworks"}
    assert validated.count("python_env") == validated.count("frameworks") == 1


@pytest.mark.parametrize("role", ["cuda_repository", "nccl", "frameworks"])
def test_a_role_can_be_selected_by_its_tag_and_has_its_plan(site, role):
    run = site.play([KNOWN, SITE], "--tags", role, "--limit", "gpu-1,gpu-2")
    assert run.status == 0, run.output
    assert not run.contacted
    asked, given = site.decisions()
    assert asked == {"debian 12.11": 1, "ubuntu 22.04": 1}
    assert given == {name: site.resolved()[name] for name in ("gpu-1", "gpu-2")}
    assert run.words.count("kind") == 2, "the plan is shown"


def test_check_mode_without_a_lock(site):
    run = site.play([KNOWN, SITE], "--tags", "nccl", "--check")
    assert run.status == 0, run.output
    assert run.lock is None
    asked, given = site.decisions()
    assert sum(asked.values()) == 2
    assert given == site.resolved()


@pytest.mark.long
def test_a_renewed_plan_is_followed_in_the_same_run(site):
    first = site.play([KNOWN, "allreduce.gpu.plan"])
    assert first.status == 0, first.output
    lock = site.directory / "inventory" / "stack.lock.yml"
    lock.write_text(re.sub("table_version: .*", "table_version: old", first.lock), encoding="utf-8")
    kept = site.play([KNOWN, SITE], "--tags", "nccl")
    assert kept.status == 0, kept.output
    assert {stack["table_version"] for stack in site.decisions()[1].values()} == {"old"}

    renewed = site.play([KNOWN, SITE], "--tags", "nccl", "-e", "stack_lock_renew=true")
    assert renewed.status == 0, renewed.output
    current = {stack["table_version"] for stack in site.resolved().values()}
    assert {stack["table_version"] for stack in site.decisions()[1].values()} == current
    assert renewed.lock == first.lock


def role_stack(**variables):
    """A play of the user's own."""
    return {
        "hosts": "gpu_nodes",
        "gather_facts": False,
        "vars": {"stack_lock": "", **variables},
        "roles": ["allreduce.gpu.stack"],
    }


@pytest.mark.parametrize("before", [[], ["allreduce.gpu.plan"]])
def test_a_role_that_asks_for_something_else_resolves_for_itself(site, before):
    run = site.play([KNOWN, *before, role_stack(gpu_stack_request={**REQUEST, "cuda": "12.4"})])
    assert run.status == 0, run.output
    _asked, given = site.decisions()
    assert len(given) == 6
    assert all(stack["cuda"]["version"].startswith("12.4") for stack in given.values())


def test_packages_beside_the_frameworks_reach_the_stack_of_every_host(site):
    wanted = {"gpu_stack_request": {"pytorch": "2.13.0"}, "python_env_packages": ["catboost", "mpi4py>=4.1"]}
    run = site.play([KNOWN, role_stack(**wanted)])
    assert run.status == 0, run.output
    given = site.decisions()[1]
    lines = [environment["requirements"] for stack in given.values() for environment in stack["environments"]]
    assert lines == [["torch==2.13.0", "numpy", "catboost", "mpi4py>=4.1"]] * len(site.facts)


def test_a_role_follows_the_plan_that_the_run_has_shown(site):
    run = site.play([KNOWN, "allreduce.gpu.plan", role_stack()])
    assert run.status == 0, run.output
    asked, given = site.decisions()
    assert sum(asked.values()) == 2
    assert given == site.resolved()


def test_a_described_host_gets_what_it_turns_out_to_be(site):
    nodes = {"gpu-0": {"known": site.facts["gpu-0"], "gpu_stack_host": {"os": "ubuntu 24.04", "gpus": []}}}
    inventory = {"gpu_nodes": {"hosts": nodes, "vars": {"gpu_stack_request": REQUEST}}}
    (site.directory / "inventory" / "hosts.yml").write_text(json.dumps(inventory), encoding="utf-8")
    run = site.play(["allreduce.gpu.plan", KNOWN, role_stack()])
    assert run.status == 0, run.output
    asked, given = site.decisions()
    assert asked == {"ubuntu 24.04": 1, "debian 12.11": 1}
    assert given == {"gpu-0": site.resolved()["gpu-0"]}


A40 = {"index": 0, "pci_address": "0000:01:00.0", "pci_device_id": "2235", "name": "NVIDIA A40"}


@pytest.mark.parametrize(("active", "status"), [(True, 2), (False, 0)])
def test_a_host_on_which_selinux_keeps_the_driver_out_is_refused_by_the_plan(site, active, status):
    """Site imports it, so nothing has changed by then."""
    booleans = {"secure_mode_insmod": {"active": active, "pending": active}}
    selinux = {"mode": "enforcing", "configured": "enforcing", "booleans": booleans}
    state = {**STATE, "package_manager": "dnf", "selinux": selinux}
    nodes = {"gpu-0": {"known": {**facts(0, "Rocky", "9.6"), "gpu_node": {"gpus": [A40]}, "gpu_node_state": state}}}
    inventory = {"gpu_nodes": {"hosts": nodes, "vars": {"gpu_stack_request": REQUEST}}}
    (site.directory / "inventory" / "hosts.yml").write_text(json.dumps(inventory), encoding="utf-8")
    run = site.play([KNOWN, "allreduce.gpu.plan"])
    assert run.status == status, run.output
    assert not run.contacted
    assert ("gpu-0: SELinux's boolean secure_mode_insmod is on" in run.words) is active
    assert (run.lock is None) is active, "what is refused is not kept"


def listed(playbook, option, inventory):
    """What ansible-playbook lists of a playbook in this checkout, as in a fresh clone; the name of the playbook is left out."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_NOCOLOR": "1", "PYTHONHASHSEED": "0"}  # tags are listed in the order of a set
    argv = [Path(sys.executable).parent / "ansible-playbook", playbook, "-i", inventory, option]
    done = subprocess.run(argv, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    name, lines = f"playbook: {playbook}", done.stdout.splitlines()
    return [line for line in lines if line != name]


@pytest.mark.parametrize("option", ["--list-tasks", "--list-hosts"])
def test_the_site_at_the_top_of_the_checkout_is_the_playbook(tmp_path, option):
    write_inventory(tmp_path, {"gpu_nodes": {"hosts": {"gpu-1": {}, "gpu-2": {}}}})
    inventory = tmp_path / "inventory"
    assert listed("site.yml", option, inventory) == listed("playbooks/site.yml", option, inventory)
    assert [line for line in listed("site.yml", option, inventory) if "Reconcile the nodes with the plan" in line]


@pytest.mark.parametrize(
    ("variables", "tags", "status"),
    [
        ({"slurm_state": "present"}, "nccl,slurm", 2),
        ({"monitoring_state": "present", "monitoring_password": "correct horse battery"}, "nccl,monitoring", 2),
        ({"slurm_state": "present"}, "nccl", 0),
        ({}, "nccl,slurm,monitoring", 0),
    ],
)
def test_a_controller_that_is_needed_is_named_before_a_node_is_changed(tmp_path, variables, tags, status):
    controllers = {"hosts": {"ctl": {"ansible_host": "192.0.2.1", **variables}}}
    run = Site(tmp_path, controllers=controllers).play([KNOWN, SITE], "--tags", tags)
    assert run.status == status, run.output
    assert run.contacted == bool(status), run.output
    refusal = "error: 1 of 1 nodes cannot be reached, so nothing was touched: ctl."
    assert (refusal in run.lines) == bool(status)
    assert ("PLAY [Reconcile" in run.output) != bool(status)
