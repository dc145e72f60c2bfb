# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input to each playbook as a user runs it: an exit status, a sentence, and no host contacted."""

from __future__ import annotations

import json
import re

import pytest
import yaml

from tests.support.command import CHECKOUT, play, write_inventory

IMPORT = "ansible.builtin.import_role"
PLAYBOOKS = ("plan", "site", "verify", "train", "benchmark", "report")
each_playbook = pytest.mark.parametrize("playbook", PLAYBOOKS)


def cluster(**variables):
    """An inventory of two GPU nodes and a login node, with these variables for the GPU nodes."""
    nodes = {"gpu-1": {"gpu_cluster_address": "10.0.0.1"}, "gpu-2": {"gpu_cluster_address": "10.0.0.2"}}
    return {"gpu_nodes": {"hosts": nodes, "vars": variables}, "controllers": {"hosts": {"login": {}}}}


def refused(run, *sentences, status=2):
    """The run failed with this status before a host was contacted or changed, and said SENTENCES; docs/cluster.md has the statuses."""
    assert run.status == status, run.output
    assert [sentence for sentence in sentences if sentence not in run.words] == [], run.output
    assert not run.contacted
    assert "changed=1" not in run.output
    assert run.lock is None
    assert "Traceback" not in run.output


@pytest.mark.parametrize("options", [[], ["--limit", "gpu-1"]], ids=["all", "limited"])
def test_a_wrong_group(tmp_path, options):
    inventory = cluster()
    write_inventory(tmp_path, {"gpu_servers": inventory["gpu_nodes"]})
    source = tmp_path / "inventory"
    refused(
        play(tmp_path, "site", *options),
        f"The inventory ({source}) has no hosts in the group gpu_nodes; list the hosts with GPUs there.",
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "does not exist; name yours with -i."),
        ("", "Ansible read no hosts from the inventory"),
        ("[gpu_nodes\n", "Ansible read no hosts from the inventory"),
    ],
)
def test_an_inventory_that_is_not_read(tmp_path, text, sentence):
    write_inventory(tmp_path, cluster())
    (hosts,) = (tmp_path / "inventory").glob("hosts*")
    if text is None:
        (tmp_path / "inventory").rename(tmp_path / "elsewhere")
    else:
        hosts.write_text(text, encoding="utf-8")
    refused(play(tmp_path, "site"), sentence)


@pytest.mark.parametrize(
    ("place", "options"),
    [
        ("group_vars/gpu_nodes.yml", []),
        ("host_vars/gpu-2.yml", []),
        ("host_vars/gpu-2.yml", ["--limit", "gpu-1"]),  # those of gpu-1 Ansible would read before the first task
    ],
)
def test_variables_that_are_no_yaml(tmp_path, place, options):
    """ansible-core 2.16 names file and line by itself, in other words."""
    write_inventory(tmp_path, cluster())
    file = tmp_path / "inventory" / place
    file.parent.mkdir()
    file.write_text("train_launcher: torchrun\n train_user: mia\n", encoding="utf-8")
    run = play(tmp_path, "site", *options)
    refused(run, str(file), status=run.status or 2)
    assert re.search(r"at line 2, column \d+ \(.+\); correct the file\.|: line 2, column", run.words), run.output


@each_playbook
def test_every_problem_at_once_with_a_limit(tmp_path, playbook):
    inventory = cluster(
        nvidia_driver_reboot_alowed=True,
        train_port="high",
        gpu_stack_host={"os": "debian 12", "nvswitches": "six"},
        gpu_stack_request={"drivr": "535"},
    )
    inventory["gpu_nodes"]["hosts"] = {
        "gpu-1": {"gpu_cluster_address": "10.0.0.1"},
        "gpu-2": {"gpu_cluster_address": "10.0.0.1"},
        "gpu-3": {"gpu_cluster_address": "gpu-3"},
    }
    write_inventory(tmp_path, inventory)
    refused(
        play(tmp_path, playbook, "--limit", "gpu-2", "--tags", "nosuch", "-e", "train_scrpit=x -e plan_mesure=true"),
        "Unknown variable nvidia_driver_reboot_alowed (set for group gpu_nodes); did you mean nvidia_driver_reboot_allowed?",
        "Unknown variable train_scrpit (set on the command line); did you mean train_script?",
        "train_port (set for group gpu_nodes) is 'high'; set it to a whole number.",
        "gpu_stack_host.nvswitches (set for group gpu_nodes) is 'six'; set it to a whole number.",
        "gpu_stack_request.drivr (set for group gpu_nodes) is not a known key; did you mean driver?",
        "gpu-1, gpu-2 have the same cluster address 10.0.0.1;",
        "gpu_cluster_address of gpu-3 is 'gpu-3'; set it to an IP address.",
        "No task has the tag nosuch; choose from",
    )


@pytest.mark.parametrize("config", ["", "callback_result_format = yaml\n"])
def test_problems_are_shown_in_levels_in_any_configuration(tmp_path, config):
    write_inventory(tmp_path, cluster(nvidia_driver_reboot_alowed=True, train_port="high"))
    (tmp_path / "own.cfg").write_text(f"[defaults]\ninject_facts_as_vars = true\n{config}", encoding="utf-8")
    lines = play(tmp_path, "plan", ANSIBLE_CONFIG=str(tmp_path / "own.cfg")).lines
    begins = next(number for number, line in enumerate(lines) if line.startswith("error: "))
    ends = next(number for number, line in enumerate(lines) if line.startswith(("[ERROR]", "fatal: ")))
    shown = lines[begins:ends]
    assert shown[0].startswith("error: Unknown variable nvidia_driver_reboot_alowed")
    assert max(map(len, shown)) <= 80
    heads = [line[:7] for line in shown if line[:1] == "e" or line[2:5] in ("why", "fix")]
    assert heads == ["error: ", "  fix: ", "error: ", "  fix: ", "error: ", "  why: ", "  fix: "]


@pytest.mark.parametrize(
    ("playbook", "variables", "options", "sentences"),
    [
        (
            "plan",
            {"verify_colectives": False},
            ["-e", '{"gpu_stack_request": "latest"}', "-e", "plan_mesure=true report_direktory=x train_nodse=1 benchmark_epochs=1"],
            [
                "Unknown variable verify_colectives (set for group gpu_nodes); did you mean verify_collectives?",
                "Unknown variable plan_mesure (set on the command line); did you mean plan_measure?",
                "Unknown variable report_direktory (set on the command line); did you mean report_directory?",
                "Unknown variable train_nodse (set on the command line); did you mean train_nodes?",
                "Unknown variable benchmark_epochs (set on the command line); role benchmark has no such option.",
                "gpu_stack_request (set on the command line) is 'latest'; set it to a dictionary.",
            ],
        ),
        (
            "site",
            {},
            ["--tags", "nccl,nvidia-driver,xyz", "--skip-tags", "nvidia_drivers", "-e", "gpu_package_lock_timeout=soon"],
            [
                "gpu_package_lock_timeout (set on the command line) is 'soon'",
                "No task has the tag nvidia_drivers; did you mean nvidia_driver?",
                "No task has the tag nvidia-driver; did you mean nvidia_driver?",
                "No task has the tag xyz; choose from base, cluster_ssh, container_toolkit,",
            ],
        ),
        (
            "plan",
            {"gpu_stack_request": {"driver": "{{ no_such }}"}},
            ["--limit", "gpu-1", "-e", "stack_pylock=a stack_uv=no-such-uv"],
            [
                "uses no_such, which nothing defines for gpu-1, gpu-2;",
                "The controller has no no-such-uv, which resolves what stack_pylock asks for; install it",
            ],
        ),
        ("site", {"gpu_stack_host": "{{ no_such }}"}, [], ["gpu_stack_host (set for group gpu_nodes) uses no_such, which nothing"]),
        (
            "plan",
            {},
            ["-e", "stack_lock=/no/such/stack.lock.yml"],
            ["stack_lock is /no/such/stack.lock.yml, and there is no directory /no/such; create it"],
        ),
        ("plan", {}, ["--limit", "login"], ["The limit login leaves no host of the group gpu_nodes; choose from gpu-1, gpu-2."]),
        (
            "verify",
            {"gpu_cluster_address": "10.0.0.9"},
            ["-e", "gpu_cluster_address=10.0.0.9"],
            ["gpu-1, gpu-2 have the same cluster address 10.0.0.9"],
        ),
        ("train", {}, ["-e", "train_script=no/such.py"], ["train_script names no/such.py, which does not exist in"]),
        ("train", {}, ["--limit", "gpu-1"], ["gpu-2 should train but takes no part in this play"]),
        ("train", {}, ["-f", "1"], ["Training on 2 nodes needs as many forks, but Ansible runs with 1; add '-f 2'"]),
        (
            "benchmark",
            {"benchmark_reference": [{"model": "vit", "gpus": 0, "images_per_second": "fast"}]},
            [],
            [
                "benchmark_reference[0].images_per_second (set for group gpu_nodes) is 'fast'; set it to a number.",
                "benchmark_reference[0].model (set for group gpu_nodes) is 'vit'; choose from resnet50, vit_b_16.",
            ],
        ),
        ("benchmark", {}, ["-e", "benchmark_port=0"], ["port is 0; set it to a number from 1 to 65535."]),
        (
            "benchmark",
            {},
            ["-e", "benchmark_nodes=3"],
            ["benchmark_nodes is 3, but group gpu_nodes has 2 hosts; set a number from 1 to 2, or names."],
        ),
        (
            "benchmark",
            {},
            ["-e", "benchmark_nodes=gpu-9"],
            ["benchmark_nodes names hosts outside group gpu_nodes: gpu-9; choose from gpu-1, gpu-2."],
        ),
        ("benchmark", {}, ["--limit", "gpu-1"], ["gpu-2 should train but takes no part in this play"]),
    ],
)  # fmt: skip
def test_each_problem_is_one_sentence(tmp_path, playbook, variables, options, sentences):
    write_inventory(tmp_path, cluster(**variables))
    run = play(tmp_path, playbook, *options)
    refused(run, *sentences)
    assert run.words.count("subject:") == len(sentences), run.output


def test_what_cannot_be_resolved_yet_is_left_to_the_roles(tmp_path):
    variables = {
        "gpu_stack_host": {"os": "debian 12", "gpus": []},
        "gpu_stack_request": {"driver": "{{ ansible_facts.driver_branch }}", "pytorch": "none"},
        "train_variables": "{{ lookup('ansible.builtin.file', '/no/such/file') }}",
        "train_port": "{{ 29500 + 1 }}",
        "verify_user": "{{ cluster_ssh_user | default('trainer') }}",
    }
    write_inventory(tmp_path, cluster(**variables))
    run = play(tmp_path, "preflight")
    assert run.status == 0, run.output
    assert not run.contacted
    assert "WARNING" not in run.output


def test_a_template_with_a_wrong_result_is_refused(tmp_path):
    write_inventory(tmp_path, cluster(train_port="{{ 'high' }}", gpu_cluster_address="{{ inventory_hostname }}"))
    inventory = yaml.safe_load((tmp_path / "inventory" / "hosts.yml").read_text(encoding="utf-8"))
    inventory["gpu_nodes"]["hosts"] = {"gpu-1": {}, "gpu-2": {}}
    (tmp_path / "inventory" / "hosts.yml").write_text(yaml.safe_dump(inventory), encoding="utf-8")
    refused(
        play(tmp_path, "preflight"),
        "train_port (set for group gpu_nodes) is 'high'",
        "gpu_cluster_address of gpu-1 is 'gpu-1'",
        "gpu_cluster_address of gpu-2 is 'gpu-2'",
    )


def test_tags_of_a_playbook_around_ours_are_known(tmp_path):
    write_inventory(tmp_path, cluster())
    book = [
        {"import_playbook": "allreduce.gpu.preflight"},
        {"hosts": "login", "gather_facts": False, "tags": ["app"], "tasks": []},
    ]
    book[1]["tasks"] = [{"name": "Say so", "ansible.builtin.debug": {"msg": "reached"}}]
    path = tmp_path / "mine.yml"
    path.write_text(json.dumps(book), encoding="utf-8")
    run = play(tmp_path, path, "--tags", "app", "--skip-tags", "molecule-notest,notest")  # as Molecule does
    assert run.status == 0, run.output
    assert "reached" in run.words
    refused(play(tmp_path, path, "--tags", "ap"), "No task has the tag ap; did you mean app?")


@each_playbook
def test_every_playbook_begins_with_preflight(playbook):
    book = yaml.safe_load((CHECKOUT / "playbooks" / f"{playbook}.yml").read_text(encoding="utf-8"))
    first = book[0]["ansible.builtin.import_playbook"]
    assert first == ("plan.yml" if playbook == "site" else "preflight.yml")


def test_every_role_of_site_has_its_tag():
    book = yaml.safe_load((CHECKOUT / "playbooks" / "site.yml").read_text(encoding="utf-8"))
    roles = {task[IMPORT]["name"]: task.get("tags") for one in book for task in one.get("tasks", []) if IMPORT in task}
    assert len(roles) > 10
    assert roles == {name: [name.removeprefix("allreduce.gpu.")] for name in roles}
