# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""preflight as a task in a play of the user's own, over an inventory without any reachable host."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[4]
PLAY = """\
---
- name: Check
  hosts: all
  gather_facts: false
  vars: {play_vars}
  tasks:
    - name: Refuse input that cannot be meant
      allreduce.gpu.preflight:
        ignore: [cluster_ssh_foreign]
      register: checked
    - name: Write what was found
      ansible.builtin.copy:
        content: "{{{{ checked | to_json }}}}"
        dest: {result}
      delegate_to: localhost
      connection: local
      run_once: true
"""


@pytest.fixture
def check(tmp_path):
    """Run the action on inventory lines; give its output and, when it passed, its result."""
    executable = Path(sys.executable).with_name("ansible-playbook")
    if not executable.exists():
        executable = shutil.which("ansible-playbook")

    def run(inventory, play_vars="{}", name="hosts.ini"):
        (tmp_path / name).write_text(inventory, encoding="utf-8")
        result = tmp_path / "result.json"
        (tmp_path / "play.yml").write_text(PLAY.format(play_vars=play_vars, result=result), encoding="utf-8")
        done = subprocess.run(
            [str(executable), "-i", str(tmp_path / name), str(tmp_path / "play.yml")],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env=dict(os.environ, ANSIBLE_LOCALHOST_WARNING="false", COLUMNS="1000", ANSIBLE_NOCOLOR="1"),
        )
        text = result.read_text(encoding="utf-8") if result.exists() else None
        return done.returncode, done.stdout + done.stderr, json.loads(text) if text else None

    return run


def test_right_and_foreign_names_pass_without_a_connection(check):
    code, output, result = check(
        "[gpu_nodes]\nno-such-host[1:3] cluster_ssh_user=mia cluster_ssh_foreign=1 my_thing=2\n"
    )
    assert code == 0, output
    assert result["problems"] == []
    assert result["checked"] > 10


def test_misspelt_group_variable_fails_with_one_sentence(check):
    code, output, _result = check("[gpu_nodes]\na\nb\n[other]\nc\n[gpu_nodes:vars]\ncluster_ssh_usr=mia\n")
    assert code == 2
    expected = "Unknown variable cluster_ssh_usr (set for group gpu_nodes); did you mean cluster_ssh_user?"
    assert expected in " ".join(output.split())


def test_play_variable_is_looked_at(check):
    code, output, _result = check("[gpu_nodes]\na\n", play_vars="{python_env_noindex: true}")
    assert code == 2
    assert "(set in the play); did you mean python_env_no_index?" in " ".join(output.split())


def test_a_word_of_the_sites_own_is_only_warned_about(check):
    code, output, _result = check("[gpu_nodes]\na base_image=x\n")
    assert code == 0, output
    assert "[WARNING]: Unknown variable base_image (set for host a); role base has no such" in " ".join(output.split())


def test_an_encrypted_value_is_not_opened(check, tmp_path):
    secret = "$ANSIBLE_VAULT;1.1;AES256\n" + "61" * 40
    hosts = {"gpu_nodes": {"hosts": {"a": {"train_user": "VAULT", "train_variables": {"TOKEN": "VAULT"}}}}}
    text = yaml.safe_dump(hosts).replace("VAULT", f"!vault {json.dumps(secret)}")
    code, output, result = check(text, name="hosts.yml")
    assert code == 0, output
    assert result["problems"] == []


def test_a_second_run_on_the_same_nodes_is_refused_until_the_first_ends(tmp_path):
    """The first run is a process that waits, as ansible-playbook does on a worker."""
    hosts = "[gpu_nodes]\ngpu-1 ansible_host=10.0.0.1\n"
    (tmp_path / "hosts.ini").write_text(hosts, encoding="utf-8")
    task = {"allreduce.gpu.preflight": {"measured": True, "exclusive": True}}
    pause = {"ansible.builtin.wait_for": {"path": str(tmp_path / "go"), "timeout": 120}, "delegate_to": "localhost"}
    pause["connection"] = "local"
    play = {"hosts": "gpu_nodes", "gather_facts": False}
    (tmp_path / "first.yml").write_text(json.dumps([{**play, "tasks": [task, pause]}]), encoding="utf-8")
    (tmp_path / "second.yml").write_text(json.dumps([{**play, "tasks": [task]}]), encoding="utf-8")
    program = Path(sys.executable).with_name("ansible-playbook")
    environment = dict(os.environ, ANSIBLE_HOME=str(tmp_path / "home"), COLUMNS="1000", ANSIBLE_NOCOLOR="1")

    def command(name, *options):
        return [str(program), "-i", str(tmp_path / "hosts.ini"), str(tmp_path / name), *options]

    def second(*options):
        return subprocess.run(
            command("second.yml", *options), capture_output=True, text=True, check=False, cwd=ROOT, env=environment
        )

    with subprocess.Popen(command("first.yml"), cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as first:
        deadline = time.monotonic() + 120
        while not list((tmp_path / "home" / "allreduce" / "runs").glob("*.json")) and time.monotonic() < deadline:
            time.sleep(0.1)
        refused, predicted = second(), second("--check")
        (tmp_path / "go").touch()
    assert refused.returncode != 0
    assert "has been running site on gpu-1 since " in refused.stdout
    assert f"(process {first.pid})" in refused.stdout
    assert predicted.returncode == 0, predicted.stdout
    assert second().returncode == 0


def test_a_home_that_cannot_be_written_is_a_warning(tmp_path):
    (tmp_path / "hosts.ini").write_text("[gpu_nodes]\ngpu-1\n", encoding="utf-8")
    task = {"allreduce.gpu.preflight": {"measured": True, "exclusive": True}}
    play = [{"hosts": "gpu_nodes", "gather_facts": False, "tasks": [task]}]
    (tmp_path / "play.yml").write_text(json.dumps(play), encoding="utf-8")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "allreduce").write_text("a file", encoding="utf-8")  # root may write any directory
    done = subprocess.run(
        [str(Path(sys.executable).with_name("ansible-playbook")), "-i", "hosts.ini", "play.yml"],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env=dict(os.environ, ANSIBLE_CONFIG=str(ROOT / "ansible.cfg"), ANSIBLE_COLLECTIONS_PATH=str(ROOT / ".collections"),
                 ANSIBLE_HOME=str(tmp_path / "home"), COLUMNS="1000", ANSIBLE_NOCOLOR="1"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert "This run cannot be noted in" in done.stdout + done.stderr
