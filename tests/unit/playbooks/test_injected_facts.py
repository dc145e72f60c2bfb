# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module of a node returns facts named like variables of roles, with both of Ansible's settings."""

from __future__ import annotations

import json
import sys

import pytest
import yaml

from tests.support.command import play

TAKEN = {
    "cluster_ssh_authorized_keys": ["ssh-ed25519 AAAA evil"],
    "gpu_cluster_address": "10.0.0.66",
    "stack_lock": "/tmp/evil",
    "__cluster_ssh_record_path": "/tmp/evil",
}
GIVEN = {
    "cluster_ssh_authorized_keys": ["ssh-ed25519 AAAA mia"],
    "gpu_cluster_address": "10.0.0.1",
    "stack_lock": "/srv/lock",
}
SENTENCE = "Set inject_facts_as_vars = false under [defaults] in ansible.cfg, or ANSIBLE_INJECT_FACT_VARS=false in the environment"
MODULE = f"""#!{sys.executable}
import json
print(json.dumps({{"changed": False, "ansible_facts": {TAKEN!r}}}))
"""


def run(directory, injects, *, preflight):
    """A play on one node, whose module answers as the node likes; what the variables are afterwards, and the run."""
    (directory / "library").mkdir()
    (directory / "library" / "answers.py").write_text(MODULE, encoding="utf-8")
    tasks = [
        {"name": "Ask the node", "answers": {}},
        {
            "name": "Write the variables",
            "ansible.builtin.copy": {
                "content": "{{ dict(names | zip(names | map('extract', vars))) | to_json }}",
                "dest": f"{directory}/seen.json",
                "mode": "0600",
            },
            "vars": {"names": list(GIVEN)},
        },
    ]
    plays = [{"name": "Check", "ansible.builtin.import_playbook": "allreduce.gpu.preflight"}] if preflight else []
    plays.append({"name": "Ask", "hosts": "gpu_nodes", "gather_facts": False, "tasks": tasks})
    (directory / "play.yml").write_text(yaml.safe_dump(plays, sort_keys=False), encoding="utf-8")
    node = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, **GIVEN}
    (directory / "inventory").mkdir()
    (directory / "inventory" / "hosts.yml").write_text(
        yaml.safe_dump({"gpu_nodes": {"hosts": {"gpu-1": node}}}), encoding="utf-8"
    )
    done = play(directory, directory / "play.yml", ANSIBLE_INJECT_FACT_VARS=str(injects).lower())
    seen = directory / "seen.json"
    return done, json.loads(seen.read_text(encoding="utf-8")) if seen.exists() else None


def test_where_facts_become_variables_a_node_could_set_ours(tmp_path):
    """What preflight is for: should Ansible ever end this, the refusal can go."""
    done, seen = run(tmp_path, True, preflight=False)
    assert done.status == 0, done.output
    assert seen == {name: TAKEN[name] for name in GIVEN}


def test_preflight_refuses_before_a_node_is_asked(tmp_path):
    done, seen = run(tmp_path, True, preflight=True)
    assert done.status != 0 and SENTENCE in done.words
    assert seen is None and "Ask the node" not in done.output


@pytest.mark.parametrize("preflight", [False, True])
def test_where_they_do_not_a_users_variables_stay(tmp_path, preflight):
    done, seen = run(tmp_path, False, preflight=preflight)
    assert done.status == 0, done.output
    assert seen == GIVEN
