# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook site on nodes that are as planned: how many tasks begin, and whose variables they read. `make bench` measures on hosts."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
from collections import Counter

import pytest
from ansible.release import __version__
from ansible_collections.allreduce.gpu.plugins.lookup.pynvml import pynvml_file
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.nccl import read_nccl
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.pcie_facts import read_pcie
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.rdma_facts import read_rdma
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.tuning_facts import read_tuning
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.requests import request_digest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.places import environment_directory
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.decide import decide
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.questions import question_from_facts

from tests.bench.measure import started
from tests.support.command import CHECKOUT, play, write_inventory
from tests.unit.plugins.plugin_utils.drift import states

# Tasks that begin, next to one for each role that is off.
MOST = 46
REQUEST = {"driver": "535", "driver_source": "distribution", "pytorch": "2.13.0", "pytorch_index": "cpu"}
BASE = (
    "build-essential",
    "ca-certificates",
    "chrony",
    "pciutils",
    "pkg-config",
    "python3-apt",
    "python3.11",
    "python3.11-venv",
)
FACTS = {
    "distribution": "Debian",
    "distribution_version": "12.11",
    "os_family": "Debian",
    "architecture": "x86_64",
    "nodename": "gpu-1",
    "default_ipv4": {"address": "10.0.0.1"},
    "ssh_host_key_ed25519_public": base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + b"h" * 32).decode(),
}
OTHER = {
    "nodename": "gpu-2",
    "default_ipv4": {"address": "10.0.0.2"},
    "ssh_host_key_ed25519_public": base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + b"o" * 32).decode(),
}
# Roles with plays of their own, which have no hosts where nobody asks for the role.
OWN_PLAYS = {"monitoring", "slurm"}
# Roles that have something to do on nodes without GPUs. The others are off and cost one task each, to decide so.
ON = {"stack", "base", "nvidia_driver", "cluster_ssh", "python_env", "frameworks", *OWN_PLAYS}
SITE = (CHECKOUT / "playbooks" / "site.yml").read_text(encoding="utf-8")
OFF = sorted(set(re.findall(r"import_role:\s+name: allreduce\.gpu\.(\w+)", SITE)) - ON)


def converged():
    """Return the fact gpu_node_state of a node that is as planned, with the digest and the text of its environment's lock."""
    question = question_from_facts({"request": REQUEST}, {**FACTS, "gpu_node": {"gpus": []}}, __version__)
    stack = decide(question)["stack"]
    state, plan = states.as_planned(stack), states.planned(stack)
    state["packages"].update(dict.fromkeys(BASE, "1.0-1"))
    state["uv"] = uv_version()
    state["nvml_binding"] = hashlib.sha256(pynvml_file().read_bytes()).hexdigest()
    (environment,) = plan.environments
    measured = state["environments"][environment.name]["lock"]
    digest, lock = lock_of(environment, plan.os, measured["packages"])
    measured["digest"] = hashlib.sha256(lock.encode()).hexdigest()[:16]
    place = environment_directory(stack["environments"][0], stack["os"], lock)
    state["environments"][environment.name]["target"] = place
    return state, (digest, lock)


def lock_of(environment, system, pins):
    """Return the digest of an environment's request, and the text of a lock of these pins."""
    lines = [f"{name}=={version} --hash=sha256:{'0' * 64}" for name, version in pins.items()]
    digest = request_digest(environment, system)
    return digest, "\n".join([f"# request: {digest}", *lines]) + "\n"


def played(place, playbook, *options, variables=None, answers=None, packages=(), **measured):
    """Return one run of a playbook on two of them.

    variables: of the nodes; answers: of more modules, or {node: those}; packages: more of them; measured: more of the nodes' state.
    """
    state, (digest, lock) = converged()
    state["packages"].update(dict.fromkeys(packages, "1.0-1"))
    state.update(measured)
    given = {"gpu_stack_request": REQUEST, "stack_lock": "", **(variables or {})}
    nodes = {"hosts": {"gpu-1": {}, "gpu-2": {}}, "vars": given}
    write_inventory(place, {"gpu_nodes": nodes, "controllers": {"hosts": {"gpu-1": {}}}})
    kept = place / "inventory" / "python.locks" / f"{digest}.txt"  # as the run that made the environments left it
    kept.parent.mkdir()
    kept.write_text(lock, encoding="utf-8")
    key = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + b"k" * 32).decode()
    modules = {
        "setup": {"ansible_facts": FACTS},
        "node_state": {"ansible_facts": {"gpu_node": {"gpus": [], "nics": []}, "gpu_node_state": state}},
        "config_files": {"changed_paths": []},
        "ssh_keys": {"public_key": f"ssh-ed25519 {key} trainer", "next_public_key": None, "account": True, "rotated": True, "record": None},
        **(answers or {}),
    }  # fmt: skip
    modules["gpu-2"] = {"setup": {"ansible_facts": {**FACTS, **OTHER}}, **modules.get("gpu-2", {})}
    (place / "answers.json").write_text(json.dumps(modules), encoding="utf-8")
    return play(
        place,
        playbook,
        *options,
        ANSIBLE_CALLBACK_PLUGINS=os.pathsep.join(
            str(CHECKOUT / "tests" / one / "callback_plugins") for one in ("support", "bench")
        ),
        ANSIBLE_CALLBACKS_ENABLED="answers,executions,others",
        ALLREDUCE_ANSWERS=str(place / "answers.json"),
        ALLREDUCE_EXECUTIONS=str(place / "executions"),
        ALLREDUCE_RECORD="1",
        ALLREDUCE_OTHERS=str(place / "others"),
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return played(tmp_path_factory.mktemp("noop"), "site")


def uv_version():
    """Return the version of uv that role python_env installs."""
    text = (CHECKOUT / "roles" / "python_env" / "defaults" / "main.yml").read_text(encoding="utf-8")
    return re.search(r'^python_env_uv_version: "?([\d.]+)', text, re.M)[1]


def test_nothing_changes(run):
    assert run.status == 0, run.output
    for name in ("gpu-1", "gpu-2"):
        assert re.search(rf"{name} : ok=\d+ changed=0 ", run.words), run.output
    assert "as an inventory source" not in run.words, run.output  # of what site writes next to the hosts


def sent(run):
    """Return the rows of the modules that were sent to nodes: {host, module, arguments, …}."""
    lines = (run.directory / "executions").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["host"] != "localhost"]


def test_the_last_screen_has_the_next_commands(run):
    screen = run.output.partition("No task failed on 2 of 2 nodes. Next:\n")[2].splitlines()
    inventory = "-i inventory"  # below the directory that the user is in
    commands = [line.split(maxsplit=2)[1:] for line in screen[:3]]
    assert [rest for _program, rest in commands] == [
        f"allreduce.gpu.{playbook} {inventory}" for playbook in ("verify", "train", "report")
    ]
    # A shell without the virtual environment finds no program without its path.
    assert [program for program, _rest in commands if not shutil.which(program)] == []
    assert screen[3] == "  undo      <role>_state: absent in the inventory, then site again"


def test_only_what_measures_is_sent(run, tmp_path):
    """The first run notes its files, and is told of them as measured; the one after it measures, and keeps the pair of keys."""
    state, dummy = converged()
    noted = {"gpu-1": {}, "gpu-2": {}}
    for row in sent(run):
        if row["module"].endswith("config_files"):
            noted[row["host"]].update(row["arguments"]["noted"])
    answers = {
        name: {"node_state": {"ansible_facts": {"gpu_node": {"gpus": []}, "gpu_node_state": {**state, "files": files}}}}
        for name, files in noted.items()
    }
    second = played(tmp_path, "site", answers=answers)
    assert second.status == 0, second.output
    names = Counter((row["host"], row["module"].rpartition(".")[2]) for row in sent(second))
    assert names == Counter((node, one) for node in noted for one in ("setup", "node_state", "ssh_keys"))


def test_few_tasks_begin(run):
    assert OFF
    assert started(run.output) - len(OFF) <= MOST, Counter(re.findall(r"TASK \[allreduce\.gpu\.(\w+) :", run.output))


@pytest.mark.parametrize("role", OFF)
def test_a_role_that_is_off_begins_one_task(run, role):
    assert len(re.findall(rf"TASK \[allreduce\.gpu\.{role} :", run.output)) == 1


@pytest.mark.parametrize("role", sorted(OWN_PLAYS))
def test_what_nobody_asked_for_begins_none(run, role):
    assert f"allreduce.gpu.{role}" not in run.output


# Roles whose decisions for a node depend on the other nodes.
TOGETHER = {
    "firewall_state": "present",
    "qos_state": "present",
    "monitoring_state": "present",
    "monitoring_password": "correct horse battery",
    "slurm_state": "external",
}
WATCHING = ("prometheus", "prometheus-alertmanager", "prometheus-node-exporter")
BOTH = ["10.0.0.1", "10.0.0.2"]  # each node's own is one of them
FIREWALL = {"interfaces": {"eth0": BOTH}, "ssh_ports": [22], "nft": {"installed": True}}
ETH0 = {"addresses": BOTH, "speed": 10000, "shaped": {"root": None}}
QOS = {"tc": True, "nft": True, "kernel": {"htb": True}, "interfaces": {"eth0": ETH0}}


def slurm_facts(name):
    """Return what a node with Slurm's controller measures of itself."""
    fact = {
        "name": name, "version": "24.11.5", "memory_kib": 2**24, "configured": True,
        "places": [{"package": 0, "node": 0, "cores": 8, "threads": 2, "cpus": "0-15"}],
    }  # fmt: skip
    return {"ansible_facts": {"gpu_slurm": fact}, "applied": None}


MEASURED = {
    "slurm_facts": slurm_facts("gpu-1"),
    "gpu-2": {"slurm_facts": slurm_facts("gpu-2")},
    "firewall_facts": {"ansible_facts": {"gpu_firewall": FIREWALL}, "applied": None},
    "qos_facts": {"ansible_facts": {"gpu_qos": QOS}, "applied": None},
}


def readers(run):
    """Return the tasks that each node runs and that read another node's variables: with them, n nodes cost n * n."""
    lines = (run.directory / "others").read_text(encoding="utf-8").splitlines()
    return {json.loads(line)["task"] for line in lines}


def test_no_task_of_each_node_reads_the_variables_of_others(run):
    assert readers(run) == set()


def test_nor_does_one_of_verify(tmp_path):
    """The probes have no answers here, so that it fails at its end."""
    run = played(tmp_path, "verify", "-e", "verify_collectives=false")
    assert "checks could not be decided" in run.words, run.output
    assert readers(run) == set()


@pytest.mark.parametrize("playbook", ["site", "verify"])
def test_nor_does_one_of_a_role_about_the_whole_cluster(tmp_path, playbook):
    """What modules say of the node is invented, so verify fails at its end."""
    options = ("-e", "verify_collectives=false") if playbook == "verify" else ()
    run = played(tmp_path, playbook, *options, variables=TOGETHER, answers=MEASURED, packages=WATCHING)
    assert readers(run) == set(), run.output
    if playbook == "site":
        (written,) = (
            row["arguments"]["files"]
            for row in sent(run)
            if row["role"] == "allreduce.gpu.slurm" and row["arguments"].get("files")
        )
        line = "Boards=1 SocketsPerBoard=1 CoresPerSocket=8 ThreadsPerCore=2 RealMemory=15360"
        assert f"\nNodeName=gpu-[1-2] {line}\n" in written[1]["content"]
    reached = "Write configuration, rules and targets" if playbook == "site" else "Write the results"
    assert f": {reached}]" in run.output
    assert run.status == 0 or playbook == "verify", run.output


# Role: the module that measures for it, and its fact on a node that has nothing of what the role sets up.
SETTINGS = {
    "firewall": ("firewall_facts", lambda tree: {"gpu_firewall": FIREWALL}),
    "qos": ("qos_facts", lambda tree: {"gpu_qos": QOS}),
    "nccl": ("nccl_facts", lambda tree: {"gpu_nccl": read_nccl(tree)}),
    "pcie": ("pcie_facts", lambda tree: {"gpu_pcie": read_pcie(tree)}),
    "rdma": ("rdma_facts", lambda tree: {"gpu_rdma": read_rdma(tree, tree)}),
    "tuning": ("tuning_facts", lambda tree: {"gpu_tuning": read_tuning(tree, [])}),
}


@pytest.mark.long
def test_what_was_applied_and_holds_is_not_applied_again(tmp_path):
    """Each node measures the digest that the module was given on it, as the modules that measure do (test_applied.py)."""
    facts = {name: {"ansible_facts": fact(FileTree(str(tmp_path)))} for name, fact in SETTINGS.values()}
    variables = {f"{'nccl_conf' if role == 'nccl' else role}_state": "present" for role in SETTINGS}
    variables["pcie_max_read_request"] = 4096

    def applied(name, answers):
        """Return {role: {node: digest}} of the modules that were sent to apply settings."""
        (tmp_path / name).mkdir()
        run = played(tmp_path / name, "site", variables=variables, answers=answers, records=["rdma"])
        assert run.status == 0, run.output
        found = {}
        for line in (run.directory / "executions").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["module"].rpartition(".")[2] in ("firewall", "qos", "rdma", "tuning"):
                found.setdefault(row["role"].rpartition(".")[2], {})[row["host"]] = row["arguments"]["applied"]
        return found

    none = {name: {**fact, "applied": None} for name, fact in facts.items()}
    first = applied("first", none)
    assert {role: sorted(nodes) for role, nodes in first.items()} == dict.fromkeys(SETTINGS, ["gpu-1", "gpu-2"])
    own = {
        node: {name: {**facts[name], "applied": first[role][node]} for role, (name, _fact) in SETTINGS.items()}
        for node in ("gpu-1", "gpu-2")
    }
    assert applied("second", own) == {}
