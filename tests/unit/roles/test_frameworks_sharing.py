# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes that share the directory of environments, as on a shared file system, and nodes that give each other wheels and locks.

They are directories of this machine, with the real uv.
"""

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.packages import environments

from tests.support.local_play import CHECKOUT, run_roles
from tests.support.wheel import wheel

UV = Path(sys.executable).parent / "uv"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
NODES = ("gpu-1", "gpu-2", "gpu-3")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not UV.exists() or os.geteuid() != 0, reason="uv is not installed beside this Python, or this is not root"
    ),
]


class Cluster:
    """Three nodes; roots: the directory of environments of each."""

    def __init__(self, place, monkeypatch, roots):
        self.place, self.roots, self.monkeypatch = place, {node: place / roots[node] for node in NODES}, monkeypatch
        (place / "wheels").mkdir()
        for name, version in (("other", "1.0"), ("other", "2.0")):
            wheel(place / "wheels", name, version)

    def state(self, node):
        self.monkeypatch.setattr(environments, "LOCKS", str(self.place / node / "locks"))
        tree, root = FileTree("/"), str(self.roots[node])
        return {
            "package_manager": "apt", "packages": {}, "environments": environments.read_environments(tree, root),
            "environments_kept": environments.read_kept(tree, root),
        }  # fmt: skip

    def stack(self, version, **more):
        environment = {
            "name": "main", "python": PYTHON, "accelerator": "cpu", "requirements": [f"other=={version}"], "index": None,
            "interpreter": {"source": "path", "path": sys.executable, "packages": []}, **more,
        }  # fmt: skip
        platform = {"id": "debian", "version": "12", "arch": "x86_64", "family": "debian"}
        return {"os": platform, "gpus": [], "environments": [environment]}

    def play(self, stacks, *options):
        defaults, system = (
            yaml.safe_load((CHECKOUT / "roles/python_env" / name).read_text(encoding="utf-8"))
            for name in ("defaults/main.yml", "vars/debian.yml")
        )
        done = {
            node: [{**one, "uv": defaults["python_env_uv_version"]} for one in stacks[node]["environments"]]
            for node in NODES
        }
        mine = {"roots": {node: str(root) for node, root in self.roots.items()}, "done": done, "stacks": stacks,
                "states": {node: self.state(node) for node in NODES}}  # fmt: skip
        given = {
            **system, **mine, "__python_env_done": "{{ done[inventory_hostname] }}", "__python_env_uv": str(UV),
            "__python_env_root": "{{ roots[inventory_hostname] }}",
            "__frameworks_lock_directory": str(self.place) + "/{{ inventory_hostname }}/locks",
            "__frameworks_solve_directory": str(self.place) + "/{{ inventory_hostname }}/solve",
            "python_env_find_links": [str(self.place / "wheels")], "python_env_no_index": True, "python_env_keep": 0,
            "frameworks_distribute_user": "root",
            "python_env_environment": {"UV_CACHE_DIR": str(self.place) + "/{{ inventory_hostname }}/cache"},
        }  # fmt: skip
        facts = {"gpu_stack": "{{ stacks[inventory_hostname] }}", "gpu_node": {"gpus": []},
                 "gpu_node_state": "{{ states[inventory_hostname] }}"}  # fmt: skip
        (self.place / "executions.jsonl").unlink(missing_ok=True)
        return run_roles(
            self.place, ["frameworks"], facts, "--extra-vars", json.dumps(given), "--forks", "3", *options, hosts=NODES
        )

    def succeed(self, version, *options):
        run = self.play({node: self.stack(version) for node in NODES}, *options)
        assert run.status == 0, run.output
        return run

    def version(self, node):
        program = "import other; print(other.VERSION)"
        python = self.roots[node] / "main" / "bin" / "python"
        return subprocess.run([python, "-c", program], capture_output=True, text=True, check=True).stdout.strip()

    def lock(self, node):
        return (self.place / node / "locks" / "main.txt").read_text(encoding="utf-8")


def did(run, task):
    """The nodes on which a task of the role changed something, in the order of the output."""
    parts = re.split(r"^TASK \[allreduce\.gpu\.frameworks : ", run.output, flags=re.M)
    return sorted(
        node for part in parts if part.startswith(task) for node in re.findall(r"^changed: \[([^]]+)\]", part, re.M)
    )


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    return lambda *roots: Cluster(tmp_path, monkeypatch, dict(zip(NODES, roots, strict=True)))


def test_one_of_those_that_share_makes_it_and_the_others_verify_and_record_it(cluster):
    nodes = cluster("shared", "own", "shared")
    run = nodes.succeed("1.0")
    assert did(run, "Create environment main") == did(run, "Install environment main") == ["gpu-1", "gpu-2"], run.output
    assert did(run, "Activate environment main") == [*NODES]
    assert {nodes.version(node) for node in NODES} == {"1.0"}
    assert len({nodes.lock(node) for node in NODES}) == 1
    (first,) = {path.name for path in nodes.roots["gpu-1"].iterdir()} - {"main"}  # no mark is left

    run = nodes.succeed("1.0")
    assert not re.search(r"changed=[1-9]", run.output), run.output
    assert "Mark the directory" not in run.output

    # As on a node that comes later: the environment is there, and its lock is not.
    (nodes.place / "gpu-3" / "locks" / "main.txt").unlink()
    own = nodes.roots["gpu-1"] / "main" / "allreduce-lock.txt"
    before = own.stat().st_ino
    run = nodes.succeed("1.0")
    assert did(run, "Activate environment main") == ["gpu-3"], run.output
    assert did(run, "Create environment main") == did(run, "Install environment main") == []
    assert (nodes.lock("gpu-3"), own.stat().st_ino) == (nodes.lock("gpu-1"), before)

    run = nodes.succeed("2.0")
    assert did(run, "Install environment main") == ["gpu-1", "gpu-2"]
    assert {nodes.version(node) for node in NODES} == {"2.0"}
    # Nobody knows what processes of other nodes use, so an older one goes only where the directory is the node's own.
    assert first in os.listdir(nodes.roots["gpu-3"])
    assert len(os.listdir(nodes.roots["gpu-2"])) == 2


def test_marks_that_a_killed_run_left_go(cluster):
    nodes = cluster("shared", "own", "shared")
    nodes.roots["gpu-1"].mkdir()
    for name in (".shared-abcdefgh.gpu-1", ".shared-abcdefgh.elsewhere"):
        (nodes.roots["gpu-1"] / name).touch()
    nodes.succeed("1.0")
    assert [path.name for path in nodes.roots["gpu-1"].glob(".shared-*")] == [".shared-abcdefgh.elsewhere"]


def test_different_plans_for_one_directory_are_refused(cluster):
    nodes = cluster("shared", "shared", "own")
    run = nodes.play({node: nodes.stack("2.0" if node == "gpu-2" else "1.0") for node in NODES})
    assert run.status != 0
    said = " ".join(run.output.split())
    assert f"gpu-2 and gpu-1 share {nodes.roots['gpu-1']}, and their plans of main differ;" in said
    assert did(run, "Create environment main") == ["gpu-1", "gpu-3"]
    assert nodes.version("gpu-1") == "1.0"
    assert not (nodes.place / "gpu-2" / "locks").exists()


# A connection of a few lines: from one directory to another. In place of a hostile node's, what stands in the file `sends`.
SSH = """#!/bin/sh
while [ "$#" -gt 2 ]; do shift; done
[ ! -e {place}/sends ] || exec cat {place}/sends
exec sh -c "$(echo "$2" | sed "s,/gpu-[0-9]/given/,/gpu-${{1##*.}}/given/,")"
"""
RUNUSER = '#!/bin/sh\nshift 3; exec "$@"\n'


@pytest.fixture
def apart(cluster, tmp_path, monkeypatch):
    """Nodes with a directory each; only the first has an index, and all reach each other."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("ssh", SSH.format(place=tmp_path)), ("runuser", RUNUSER)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    nodes = cluster("one", "two", "three")
    given = {
        "gpu_cluster_address": "10.0.0.{{ inventory_hostname[-1] }}",
        "__frameworks_wheel_directory": f"{tmp_path}/{{{{ inventory_hostname }}}}/given",
        "python_env_find_links": "{{ [wheels] if inventory_hostname == 'gpu-1' else [] }}",
        "wheels": f"{tmp_path}/wheels",
    }
    return nodes, lambda **more: ("--extra-vars", json.dumps({**given, **more}))


def test_wheels_go_from_node_to_node_and_locks_to_the_controller(apart):
    nodes, given = apart
    run = nodes.succeed("1.0", *given())
    assert "comes from the package index" not in run.output
    assert {nodes.version(node) for node in NODES} == {"1.0"}
    assert did(run, "Create environment main") == did(run, "Install environment main") == [*NODES]
    assert not [path for node in NODES for path in (nodes.place / node / "given").glob("*")]
    (kept,) = (nodes.place / "python.locks").iterdir()
    assert {nodes.lock(node) for node in NODES} == {kept.read_text(encoding="utf-8")}
    run = nodes.succeed("1.0", *given())
    assert not re.search(r"changed=[1-9]", run.output), run.output


def test_what_a_node_sends_instead_of_wheels_is_not_installed(apart):
    nodes, given = apart
    (nodes.place / "sends").write_bytes(b"PK\3\4" * 10_000)
    run = nodes.succeed("1.0", *given(python_env_find_links=[str(nodes.place / "wheels")]))
    said = " ".join(run.output.split())
    for node in NODES[1:]:
        assert (
            "Environment main comes from the package index, not from gpu-1: other-1.0-py3-none-any.whl that 10.0.0.1"
            in said
        )
        assert nodes.version(node) == "1.0"
        assert not (nodes.place / node / "given" / "main").exists()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--find-links {place}/evil", "The line '--find-links {place}/evil' is not a package"),
        ("other @ file://{place}/evil/other-1.0-py3-none-any.whl --hash=sha256:{digest}", "is not a package"),
        ("evil==1.0 --hash=sha256:{digest}", None),  # of an index, and no difference to see
    ],
)
def test_no_node_changes_the_lock_of_the_others(apart, line, told):
    nodes, given = apart
    nodes.succeed("1.0", *given())
    (nodes.place / "evil").mkdir()
    wheel(nodes.place / "evil", "evil", "1.0")
    digest = hashlib.sha256((nodes.place / "evil" / "evil-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    before, path = nodes.lock("gpu-2"), nodes.place / "gpu-1" / "locks" / "main.txt"
    path.write_text(before + line.format(place=nodes.place, digest=digest) + "\n", encoding="utf-8")
    run = nodes.succeed("1.0", *given(python_env_find_links=[str(nodes.place / "wheels"), str(nodes.place / "evil")]))
    assert (told is None) or told.format(place=nodes.place)[:60] in " ".join(run.output.split())
    assert {nodes.lock(node) for node in NODES} == {before}
    for node in NODES:
        assert not list(nodes.roots[node].glob("main/lib/python3*/site-packages/evil*"))
    assert did(run, "Install environment main") in ([], ["gpu-1"])
