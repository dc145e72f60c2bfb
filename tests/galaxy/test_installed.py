# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The archive in an empty project, as the README shows it, with each ansible-core of CORES."""

import os
import re
import sys
from pathlib import Path

import pytest
import yaml

from .conftest import CHECKOUT, run

# Directories of programs; without nox it is the ansible-core of this environment.
CORES = os.environ.get("CORES", str(Path(sys.executable).parent)).split(os.pathsep)
# One group, and what is known about its nodes, so that playbook plan contacts none.
INVENTORY = {"gpu_nodes": {"hosts": {f"gpu-{number}": {"ansible_host": f"192.0.2.1{number}"} for number in (1, 2)}}}
NODES = {"os": "ubuntu 22.04", "gpus": ["NVIDIA A100-SXM4-80GB"] * 4}


@pytest.fixture(scope="module", params=CORES, ids=lambda path: Path(path).parent.name)
def project(request, released, tmp_path_factory):
    """Run a program of this ansible-core in a project in which the collection was installed."""
    place = tmp_path_factory.mktemp("project")
    path = f"{request.param}{os.pathsep}{released.env['PATH']}"
    env = {**released.env, "HOME": str(place), "PATH": path, "ANSIBLE_NOCOLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}

    def call(*command):
        return run(*command, cwd=place, env=env)

    (place / "ansible.cfg").write_text("[defaults]\ninject_facts_as_vars = false\n", encoding="utf-8")
    (place / "hosts.yml").write_text(yaml.safe_dump(INVENTORY), encoding="utf-8")
    call("ansible-galaxy", "collection", "install", released.files["allreduce-gpu-0.1.0.tar.gz"])
    return call, place


def test_site_is_found_with_all_its_roles(project):
    call, _place = project
    said = call("ansible-playbook", "--syntax-check", "-i", "hosts.yml", "allreduce.gpu.site")
    assert said.stdout.rstrip().endswith("ansible_collections/allreduce/gpu/playbooks/site.yml")


def test_a_site_of_ones_own(project):
    """site.yml of a user's repository, as the README shows it."""
    call, place = project
    readme = (CHECKOUT / "docs" / "cluster.md").read_text(encoding="utf-8")
    (place / "site.yml").write_text(re.search(r"^- import_playbook: .*\n", readme, re.MULTILINE)[0], encoding="utf-8")
    listing = ("ansible-playbook", "--list-tasks", "-i", "hosts.yml")
    own, ours = (call(*listing, playbook).stdout.splitlines() for playbook in ("site.yml", "allreduce.gpu.site"))
    assert "playbook: site.yml" in own
    plays = [line for line in own if line.startswith("  play #")]
    assert [line for line in plays if "Reconcile the nodes with the plan" in line]
    assert [untagged(line) for line in own[2:]] == [untagged(line) for line in ours[2:]]


def untagged(line):
    """A line of a listing without its tags, which have no order."""
    return line.partition("TAGS:")[0]


def test_everything_is_described(project):
    call, place = project
    described = yaml.safe_load(call("ansible-doc", "--metadata-dump", "allreduce.gpu").stdout)["all"]
    collection = next(place.rglob("ansible_collections/allreduce/gpu"))
    files = {"module": "plugins/modules/*.py", "filter": "plugins/filter/[!_]*.py", "lookup": "plugins/lookup/[!_]*.py"}
    for kind, pattern in files.items():
        names = {f"allreduce.gpu.{path.stem}" for path in collection.glob(pattern)}
        assert names <= set(described[kind]), kind
        assert not [name for name in names if "error" in described[kind][name]]
    roles = {f"allreduce.gpu.{path.name}" for path in (collection / "roles").iterdir()}
    assert roles == set(described["role"])


def test_a_plan_of_described_nodes(project):
    call, place = project
    (place / "group_vars").mkdir(exist_ok=True)
    (place / "group_vars" / "gpu_nodes.yml").write_text(yaml.safe_dump({"gpu_stack_host": NODES}), encoding="utf-8")
    said = call("ansible-playbook", "-i", "hosts.yml", "allreduce.gpu.plan")
    assert "WARNING" not in said.stdout + said.stderr
    assert "DEPRECATION" not in said.stdout + said.stderr
    assert yaml.safe_load((place / "stack.lock.yml").read_text(encoding="utf-8"))


def test_the_repository_is_installed_as_the_readme_says(released, tmp_path):
    """From git, it is the archive's content."""
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    command = re.search(r"^\$ (ansible-galaxy collection install )git\+https://\S+$", readme, re.MULTILINE)[1].split()
    env = {**released.env, "HOME": str(tmp_path), "PATH": f"{CORES[0]}{os.pathsep}{released.env['PATH']}"}
    sources = {"git": f"git+file://{released.copy}", "archive": released.files["allreduce-gpu-0.1.0.tar.gz"]}
    found = {}
    for name, source in sources.items():
        run(*command, source, "-p", tmp_path / name, cwd=tmp_path, env=env)
        files = tmp_path / name / "ansible_collections" / "allreduce" / "gpu"
        found[name] = sorted(str(path.relative_to(files)) for path in files.rglob("*") if path.is_file())
    assert "playbooks/plan.yml" in found["git"]
    assert found["git"] == found["archive"]
