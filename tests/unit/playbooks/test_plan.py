# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook plan as a user runs it, on the reference inventories and on a lock, with no host in reach."""

from __future__ import annotations

import json
import os
import shutil
import sys
from functools import cache
from pathlib import Path

import pytest
from packaging.pylock import Pylock

from tests.support.command import CHECKOUT, play, write_inventory
from tests.support.newer_tables import NEWER, add_newer_pytorch, difference, newest_pytorch
from tests.support.package_index import OWN_CLIENTS, serving
from tests.support.wheel import wheel

PROGRAMS = (Path(sys.prefix) / "bin").resolve()  # as in the first line of ansible-playbook
REFERENCES = ("a40-ubuntu2004", "a100-ubuntu2204", "a100-el8", "multi-gpu-workstation")
S0_AS_WRITTEN = {
    "driver": "535", "cuda": "12.0", "cudnn": "latest", "tensorflow": "2.12.0", "pytorch": "latest",
    "pytorch_index": "cu120", "horovod": "0.28.1", "cupy": "latest", "python": "3.10",
}  # fmt: skip


def run(directory, *options, **where):
    """Playbook plan on the inventory in DIRECTORY."""
    return play(directory, "plan", *options, **where)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """name -> its run, each made once."""

    @cache
    def planned(name):
        directory = tmp_path_factory.mktemp(name)
        ignored = shutil.ignore_patterns("stack.lock.yml", ".*")
        shutil.copytree(CHECKOUT / "inventories" / name, directory / "inventory", ignore=ignored)
        return run(directory, PATH=f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}")

    return planned


@pytest.mark.parametrize("name", REFERENCES)
def test_a_reference_system_is_planned_without_contacting_a_host(reference, name):
    planned = reference(name)
    assert planned.status == 0, planned.output
    assert not planned.contacted
    assert "UNREACHABLE" not in planned.output
    assert "WARNING" not in planned.output
    assert planned.lock is not None


def test_it_ends_with_the_commands_to_type_next(reference):
    planned = reference("a100-ubuntu2204")
    assert planned.output.partition("PLAY RECAP")[0].rstrip().splitlines()[-4:] == [
        "Next:",
        "  preview   ansible-playbook allreduce.gpu.site -i inventory --check --diff",
        "  apply     ansible-playbook allreduce.gpu.site -i inventory",
        "ok: [a100-1]",
    ]


def test_the_commands_run_in_a_shell_without_the_virtual_environment(tmp_path):
    write_inventory(tmp_path, described("gpu-1"))
    planned = run(tmp_path, PATH=os.defpath)
    assert f"  apply     {PROGRAMS}/ansible-playbook allreduce.gpu.site -i inventory\n" in planned.output


def test_a_plan_that_is_refused_names_no_next_command(tmp_path):
    write_inventory(tmp_path, described("gpu-1"))
    planned = run(tmp_path, "-e", json.dumps({"gpu_stack_request": {"pytorch": "2.0", "python": "3.13"}}))
    assert planned.status != 0 and "Next:" not in planned.output


@pytest.mark.parametrize("name", REFERENCES)
def test_it_reads_well_on_80_columns(reference, name):
    assert [line for line in reference(name).lines if len(line) > 80] == []


@pytest.mark.parametrize(
    ("name", "sentences"),
    [
        ("a40-ubuntu2004", ["1 host, kind", "4 x A40", "driver 535.", "cuda 11.8.0", "pytorch 2.0.1", "tensorflow 2.12.0", "horovod 0.28.1"]),
        ("a100-ubuntu2204", ["2 hosts, kind", "4 x A100 SXM4 80GB", "cuda 12.1.1", "cu121 wheels", "Python 3.10"]),
        ("a100-el8", ["4 hosts, kind", "rocky 8", "cuda 12.1.1", "Python 3.8 from the distribution, pytorch 2.4.1", "nccl 2.17.1"]),
        ("multi-gpu-workstation", ["1 x GeForce RTX 3080, 1 x GeForce RTX 3090", "driver 460.106.00", "cuda 11.2.2", "warning driver branch 460"]),
    ],
)  # fmt: skip
def test_it_says_what_and_why(reference, name, sentences):
    words = reference(name).words
    assert [sentence for sentence in [*sentences, "why driver"] if sentence not in words] == []


def test_s0_as_written_is_refused_with_reasons_and_what_works(tmp_path):
    shutil.copytree(CHECKOUT / "inventories" / "a40-ubuntu2004", tmp_path / "inventory")
    constraints = {"gpu_stack_profile": "", "gpu_stack_request": S0_AS_WRITTEN}
    planned = run(tmp_path, "-e", json.dumps(constraints))
    assert planned.status != 0
    assert not planned.contacted
    assert "1 host, refused: a40-1" in planned.words
    assert "PyTorch never had an index cu120" in planned.words
    assert "TensorFlow 2.12.0 is built for CUDA 11.8 with cuDNN 8.6" in planned.words
    assert "suggestion cuda: 11.8.0, pytorch_index: cu118" in planned.words
    assert "No stack for a40-1; the plan above says why." in planned.words
    assert planned.lock is None


def test_nodes_that_are_not_described_are_reached(tmp_path):
    inventory = {"gpu_nodes": {"hosts": {"gpu-1": {"ansible_host": "192.0.2.1"}}}}
    write_inventory(tmp_path, inventory)
    planned = run(tmp_path)
    assert planned.contacted
    assert planned.status != 0
    assert "1 of 1 nodes cannot be reached, so nothing was touched: gpu-1;" in planned.words


def test_described_nodes_are_reached_when_asked_for(tmp_path):
    write_inventory(tmp_path, described("gpu-1"))
    planned = run(tmp_path, "-e", "plan_measure=true")
    assert planned.contacted
    assert planned.status != 0


@pytest.mark.parametrize("options", [[], ["--check"]], ids=["run", "check"])
def test_nodes_without_sudo_are_named_together_with_those_that_are_lost(tmp_path, options):
    sudo, nowhere = tmp_path / "sudo", tmp_path / "nowhere"
    sudo.write_text("#!/bin/sh\necho 'sudo: a password is required' >&2; exit 1\n", encoding="utf-8")
    nowhere.write_text("#!/bin/sh\nexit 255\n", encoding="utf-8")
    sudo.chmod(0o755)
    nowhere.chmod(0o755)
    barred = {"ansible_become_exe": str(sudo)}
    hosts = {"gpu-1": barred, "gpu-2": barred, "gpu-3": {"ansible_ssh_executable": str(nowhere)}}
    write_inventory(tmp_path, {"gpu_nodes": {"hosts": hosts}})
    planned = run(tmp_path, *options, ssh='for command; do :; done; exec sh -c "$command"')
    assert planned.status != 0
    assert "1 of 3 nodes cannot be reached, so nothing was touched: gpu-3;" in planned.words
    assert (
        "2 of 3 nodes do not let the SSH user become root, so nothing was touched: gpu-1, gpu-2; allow it to use sudo "
        "there, or give its password with -K." in planned.words
    )


def described(*names):
    host = {"os": "debian 12", "gpus": []}
    variables = {"gpu_stack_host": host, "gpu_stack_request": {"driver": "535"}}
    return {"gpu_nodes": {"hosts": dict.fromkeys(names), "vars": variables}}


@pytest.fixture
def collections(tmp_path):
    """A copy of the collection, whose tables a test may change."""
    target = tmp_path / "collections" / "ansible_collections" / "allreduce" / "gpu"
    for part in ("data", "meta", "playbooks", "plugins", "roles"):
        shutil.copytree(CHECKOUT / part, target / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(CHECKOUT / "galaxy.yml", target)
    return tmp_path / "collections"


@pytest.mark.long
def test_a_lock_outlives_newer_tables_and_renewing_shows_the_difference_first(tmp_path, collections):
    newest, update = newest_pytorch(), f"update {difference()}"
    write_inventory(tmp_path, described("gpu-1", "gpu-2"))
    first = run(tmp_path, collections=collections)
    assert first.status == 0, first.output
    assert f"pytorch {newest}" in first.words

    add_newer_pytorch(collections / "ansible_collections" / "allreduce" / "gpu")
    kept = run(tmp_path, collections=collections)
    assert kept.status == 0, kept.output
    assert f"env main Python 3.11 from the distribution, pytorch {newest} (cpu wheels)" in kept.words
    assert update in kept.words, "the plan says what a newer table would change"
    assert "changed=1" not in kept.output
    assert kept.lock == first.lock

    shown = run(tmp_path, "-e", "stack_lock_renew=true", "--check", "--diff", collections=collections)
    assert shown.status == 0, shown.output
    assert shown.lock == first.lock
    assert shown.words.index(update) < shown.words.index("Record the plan in the lock")

    renewed = run(tmp_path, "-e", "stack_lock_renew=true", collections=collections)
    assert renewed.status == 0, renewed.output
    assert f"env main Python 3.11 from the distribution, pytorch {NEWER} (cpu wheels)" in renewed.words
    assert NEWER in renewed.lock
    assert newest not in renewed.lock


def test_a_host_the_lock_does_not_fit_is_refused_with_what_changed(tmp_path):
    write_inventory(tmp_path, described("gpu-1"))
    assert run(tmp_path).status == 0
    planned = run(tmp_path, "-e", json.dumps({"gpu_stack_request": {"driver": "535", "pytorch": "2.12"}}))
    assert planned.status != 0
    assert "request.pytorch was none and is 2.12" in planned.words
    assert "stack_lock_renew=true" in planned.words


@pytest.mark.long
def test_bills_of_materials_are_written_for_each_kind_of_host(tmp_path):
    write_inventory(tmp_path, described("gpu-1", "gpu-2"))
    directory = tmp_path / "inventory" / "sbom"

    shown = run(tmp_path, "-e", "stack_sbom=sbom", "--check", "--diff")
    assert shown.status == 0, shown.output
    assert '+ "bomFormat": "CycloneDX"' in shown.words
    assert not directory.exists()

    assert run(tmp_path, "-e", "stack_sbom=sbom").status == 0
    assert [path.name for path in directory.iterdir()] == ["gpu-1.cdx.json"]
    document = json.loads((directory / "gpu-1.cdx.json").read_text(encoding="utf-8"))
    assert "torch" in {one["name"] for one in document["components"]}

    again = run(tmp_path, "-e", "stack_sbom=sbom")
    assert again.status == 0, again.output
    assert "changed=1" not in again.output


@pytest.mark.long
def test_each_environment_is_exported_as_a_pylock_that_keeps_what_it_has(tmp_path):
    tomllib = pytest.importorskip("tomllib")
    wheels, file = tmp_path / "wheels", tmp_path / "inventory" / "pylock" / "gpu-1" / "pylock.main.toml"
    wheels.mkdir()
    for name, number in (("torch", "2.13.0"), ("torch", "2.12.1"), ("numpy", "2.3.4")):
        wheel(wheels, name, number)
    hosts = described("gpu-1", "gpu-2")
    hosts["gpu_nodes"]["vars"] |= {
        "gpu_stack_request": {"pytorch": "2.13.0", "pytorch_index": "pypi"},
        "python_env_find_links": [str(wheels)], "python_env_no_index": True,
        "stack_uv": str(Path(sys.executable).with_name("uv")),
    }  # fmt: skip
    write_inventory(tmp_path, hosts)

    shown = run(tmp_path, "-e", "stack_pylock=pylock", "--check", "--diff")
    assert shown.status == 0, shown.output
    assert "+ lock-version" in shown.words.replace("+lock", "+ lock")
    assert not file.exists()

    first = run(tmp_path, "-e", "stack_pylock=pylock")
    assert first.status == 0, first.output
    lock = Pylock.from_dict(tomllib.loads(file.read_text(encoding="utf-8")))
    assert {one.name: str(one.version) for one in lock.packages} == {"torch": "2.13.0", "numpy": "2.3.4"}
    assert all(one.hashes for package in lock.packages for one in package.wheels)

    wheel(wheels, "numpy", "2.3.5")
    again = run(tmp_path, "-e", "stack_pylock=pylock")
    assert again.status == 0, again.output
    assert "changed=1" not in again.output


@pytest.mark.long
def test_a_release_of_yesterday_is_planned_from_the_index_and_then_from_the_lock(tmp_path):
    tags = [f"cp312-cp312-manylinux_2_28_{arch}" for arch in ("x86_64", "aarch64")]
    requires = ["cuda-toolkit[cudart]==13.2.2", "nvidia-cudnn-cu13==9.26.0.51", "nvidia-nccl-cu13==2.30.7"]
    hosts = described("gpu-1")
    hosts["gpu_nodes"]["vars"] |= {
        "gpu_stack_host": {"os": "ubuntu 24.04", "gpus": ["H100 SXM5 80GB"]},
        "gpu_stack_request": {"pytorch": "2.99.0"},
    }
    with serving({"torch": {"2.99.0": (tags, requires)}}) as index:
        hosts["gpu_nodes"]["vars"]["python_env_index_url"] = index.url
        write_inventory(tmp_path, hosts)
        shown = run(tmp_path, "--check", "-e", "explain=pytorch", **OWN_CLIENTS)
        first = run(tmp_path, **OWN_CLIENTS)
    assert (shown.status, shown.lock, first.status) == (0, None, 0), shown.output + first.output
    assert "warning PyTorch 2.99.0 is not in the tables" in shown.words
    assert "explained pytorch 2.99.0 (cu132): asked for as 2.99.0" in shown.words
    assert "source: package index" in first.lock

    again = run(tmp_path, **OWN_CLIENTS)
    assert (again.status, again.lock) == (0, first.lock), again.output
    refused = run(tmp_path, "-e", "stack_lock=", "-e", "stack_read_index=false", **OWN_CLIENTS)
    assert refused.status != 0
    assert "pytorch '2.99.0' is not known" in refused.words
    assert "The package index was not queried" in refused.words
