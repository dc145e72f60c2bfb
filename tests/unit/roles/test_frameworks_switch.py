# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role frameworks makes what changes beside the environment in use: with the real uv, and wheels of one module, on this machine."""

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
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

from tests.support.local_play import CHECKOUT, Run, run_roles
from tests.support.wheel import wheel

UV = Path(sys.executable).parent / "uv"
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
PRINTS = "def main():\n    import sys\n    print({!r}, sys.prefix)\n"
BROKEN = "raise ImportError('libmissing.so.1: cannot open shared object file')\n"

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not UV.exists() or os.geteuid() != 0, reason="uv is not installed beside this Python, or this is not root"
    ),
]


class Node:
    """A node whose directories are below one of the test's."""

    def __init__(self, place, monkeypatch):
        self.place, self.envs, self.locks, self.wheels = place, place / "envs", place / "locks", place / "wheels"
        for directory in (self.envs, self.wheels):
            directory.mkdir()
        monkeypatch.setattr(environments, "LOCKS", str(self.locks))
        # catboost is one of those that are imported to see whether an environment works.
        for version, text in (("1.0", None), ("2.0", None), ("3.0", BROKEN)):
            wheel(self.wheels, "catboost", version, text or PRINTS.format(version), scripts=["boost"])
        wheel(self.wheels, "other", "1.0")

    def state(self):
        tree = FileTree("/")
        return {
            "package_manager": "apt", "packages": {}, "environments": environments.read_environments(tree, str(self.envs)),
            "environments_kept": environments.read_kept(tree, str(self.envs)),
        }  # fmt: skip

    def play(self, version, *options, **variables) -> Run:
        """Run role frameworks for that version of catboost; what role python_env does is done."""
        environment = {
            "name": "main", "python": PYTHON, "accelerator": "cpu", "requirements": [f"catboost=={version}", "other"], "index": None,
            "interpreter": {"source": "path", "path": sys.executable, "packages": []},
        }  # fmt: skip
        platform = {"id": "debian", "version": "12", "arch": "x86_64", "family": "debian"}
        facts = {
            "gpu_stack": {"os": platform, "gpus": [], "environments": [environment]}, "gpu_node": {"gpus": []},
            "gpu_node_state": self.state(),
        }  # fmt: skip
        defaults, system = (
            yaml.safe_load((CHECKOUT / "roles/python_env" / name).read_text(encoding="utf-8"))
            for name in ("defaults/main.yml", "vars/debian.yml")
        )
        given = {
            **system, "__python_env_done": [{**environment, "uv": defaults["python_env_uv_version"]}], "__python_env_uv": str(UV),
            "__python_env_root": str(self.envs), "__frameworks_lock_directory": str(self.locks),
            "__frameworks_solve_directory": str(self.place / "solve"),
            "python_env_find_links": [str(self.wheels)], "python_env_no_index": True, "frameworks_distribute_user": "root",
            "python_env_environment": {"UV_CACHE_DIR": str(self.place / "cache")}, **variables,
        }  # fmt: skip
        (self.place / "executions.jsonl").unlink(missing_ok=True)
        return run_roles(self.place, ["frameworks"], facts, "--extra-vars", json.dumps(given), *options)

    def succeed(self, version, *options, **variables):
        run = self.play(version, *options, **variables)
        assert run.status == 0, run.output
        return run

    def says(self, path="main"):
        return subprocess.run([self.envs / path / "bin" / "boost"], capture_output=True, text=True, check=True).stdout

    def there(self):
        return set(os.listdir(self.envs))

    def in_use(self):
        return os.readlink(self.envs / "main")


@pytest.fixture
def node(tmp_path, monkeypatch):
    """A node with version 1.0 in use."""
    made = Node(tmp_path, monkeypatch)
    made.succeed("1.0")
    return made


def changed(run):
    return int(re.search(r"changed=(\d+)", run.output)[1])


def test_another_version_is_made_beside_the_one_in_use(node, tmp_path):
    """First, unchanged, another one predicted and made, one that does not work, and the first again, without its wheels."""
    first, lock = node.in_use(), (node.locks / "main.txt").read_text()
    assert re.fullmatch(r"\.main-[0-9a-f]{12}", first)
    assert (node.there(), node.says().split()) == ({"main", first}, ["1.0", str(node.envs / first)])
    assert (node.envs / "main" / "bin" / "activate.csh").exists()

    run = node.succeed("1.0")
    # The ping of the test: no lock is read.
    assert (changed(run), len(run.executions), node.in_use()) == (0, 1, first), run.output

    run = node.succeed("2.0", "--check", "--diff")
    assert f"-{node.envs}/main: {first}\n+{node.envs}/main: a new one\n" in run.output
    assert node.there() == {"main", first}

    run = node.play("3.0")
    said = " ".join(run.output.split())
    assert run.status == 2
    assert (
        "Environment main was not replaced, as the new one does not work: catboost cannot be imported: ImportError: libmissing.so.1:"
        f" cannot open shared object file; the one before it stays in use, {first}."
    ) in said
    assert (node.in_use(), (node.locks / "main.txt").read_text()) == (first, lock)
    assert node.says().startswith("1.0 ")
    (broken,) = node.there() - {"main", first}

    node.succeed("2.0")
    second = node.in_use()
    assert second not in (first, broken)
    assert (node.there(), node.says().split()) == ({"main", first, second}, ["2.0", str(node.envs / second)])
    assert "catboost==2.0" in (node.locks / "main.txt").read_text()
    assert node.says(first).split() == ["1.0", str(node.envs / first)]

    (tmp_path / "wheels").rename(tmp_path / "away")
    run = node.succeed("1.0", "--diff")
    assert f"-{node.envs}/main: {second}\n+{node.envs}/main: {first}\n" in run.output
    assert (node.in_use(), changed(run)) == (first, 1), run.output
    assert (node.locks / "main.txt").read_text() == lock


def test_what_stays_and_what_goes(node):
    """A repair in its place, a directory from before there were links, a copy of what stays, and nothing older."""
    first = node.in_use()
    (file,) = (node.envs / first).glob("lib/*/site-packages/other.py")
    file.write_text("# by hand\n")
    node.succeed("1.0")
    assert (node.in_use(), node.there(), file.read_text()) == (first, {"main", first}, "VERSION = '1.0'\n")

    (node.envs / "main").unlink()
    (node.envs / first).rename(node.envs / "main")
    (node.envs / "main" / "allreduce-lock.txt").unlink()
    run = node.succeed("1.0")
    assert (node.in_use(), node.there(), changed(run)) == (first, {"main", first}, 1), run.output

    copied = file.stat().st_mtime_ns
    node.succeed("2.0", python_env_keep=0)
    assert node.there() == {"main", node.in_use()}
    (other,) = (node.envs / node.in_use()).glob("lib/*/site-packages/other.py")
    assert other.stat().st_mtime_ns == copied


def test_an_environment_with_horovod_is_taken_into_use_when_that_is_in_it(tmp_path):
    """In check mode, as there is no Horovod to compile."""
    stack = resolve({"os": "debian 12", "request": {"horovod": "0.28.1"}})["stack"]
    facts = {
        "gpu_stack": stack, "gpu_node": {"gpus": []},
        "gpu_node_state": {"package_manager": "apt", "packages": {}, "environments": {}, "horovod_builds": {}, "container": False},
    }  # fmt: skip
    run = run_roles(
        tmp_path,
        ["horovod"],
        facts,
        "--check",
        "--diff",
        "--extra-vars",
        json.dumps({"__python_env_root": str(tmp_path)}),
    )
    assert run.status == 0, run.output
    took = re.findall(r"TASK \[allreduce.gpu.(\w+) : Activate environment main\] \**\n(.*)", run.output)
    assert took == [("horovod", "--- before")], run.output
    assert f"+{tmp_path}/main: a new one" in run.output
