# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What roles python_env and frameworks hand to uv."""

import base64
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jinja2
import pytest
import yaml
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Environment, System
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift import requests
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.locks import (
    describe_environments,
)

from tests.support.local_play import run_roles
from tests.support.wheel import wheel

ROOT = Path(__file__).resolve().parents[3]
ROLE = ROOT / "roles" / "frameworks"
INDEX = {"name": "cpu", "url": "https://wheels.example/cpu"}


def request_digest(environment, platform, index):
    """The digest of an environment with another index."""
    return requests.request_digest(parse(Environment, {**environment, "index": index}), parse(System, platform))


MAIN = {"name": "main", "python": "3.11", "accelerator": "cpu", "requirements": ["torch==2.13.0", "numpy"]}
PLATFORM = {"id": "debian", "version": "12", "arch": "x86_64"}


def load(path):
    """A YAML file of the collection."""
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def rendered(name, item, **more):
    """A template of the role, for one environment."""
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(ROLE / "templates"), keep_trailing_newline=True)
    return environment.get_template(name).render(__frameworks_item=item, inventory_hostname="gpu-1", **more)


def test_uv_on_nodes_is_the_one_the_project_is_tested_with():
    pinned = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    match = re.search(r"^uv==(\S+) ((?:\\\n\s+--hash=\S+\s*)+)", pinned, re.MULTILINE)
    defaults = load("roles/python_env/defaults/main.yml")
    assert defaults["python_env_uv_version"] == match[1]
    assert set(defaults["python_env_uv_hashes"]) <= set(re.findall(r"--hash=(\S+)", match[2]))


def test_a_written_lock_is_recognized_in_the_next_run():
    item = {**MAIN, "digest": request_digest(MAIN, PLATFORM, INDEX)}
    solved = f"torch==2.13.0+cpu --hash=sha256:{'a' * 64}\nnumpy==2.4.6 --hash=sha256:{'b' * 64}"
    text = rendered("lock.txt.j2", item, __frameworks_solution=SimpleNamespace(stdout=solved))
    found = {"item": {"name": "main"}, "content": base64.b64encode(text.encode()).decode()}
    environment = describe_environments([{**MAIN, "index": INDEX}], PLATFORM, [found], {})["main"]
    assert environment["lock"] == text


def by_conda(site, name, version):
    """Write a distribution as a package of conda brings it."""
    info = site / f"{name}-{version}.dist-info"
    info.mkdir()
    (site / f"{name}.py").write_text(f"VERSION = '{version}'\n")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "INSTALLER").write_text("conda\n")
    files = [f"{name}.py", *(f"{info.name}/{file}" for file in ("INSTALLER", "METADATA", "RECORD"))]
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def test_wheels_beside_what_conda_brings(tmp_path):
    """uv solves so that conda's packages fit, and leaves them alone. The environment is a virtual one with what conda would write."""
    uv = Path(sys.executable).parent / "uv"
    if not uv.exists() or os.geteuid() != 0:
        pytest.skip("uv is not installed beside this Python, or this is not root, who owns what the role writes")
    (tmp_path / "wheels").mkdir()
    for name, version in (("alpha", "1.0"), ("beta", "1.0"), ("beta", "2.0")):
        wheel(tmp_path / "wheels", name, version)
    prefix = tmp_path / "envs" / "main"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, prefix], check=True)
    (site,) = prefix.glob("lib/python3*/site-packages")
    by_conda(site, "beta", "1.0")
    by_conda(site, "gamma", "3.0")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    environment = {
        "name": "main", "python": python, "accelerator": "cpu", "requirements": ["alpha", "beta"], "index": None,
        "interpreter": {"source": "conda", "path": None, "packages": []},
    }  # fmt: skip
    facts = {
        "gpu_stack": {"os": {**PLATFORM, "family": "debian"}, "gpus": [], "environments": [environment]},
        "gpu_node": {"gpus": []}, "gpu_node_state": {"package_manager": "apt", "packages": {}, "environments": {}},
    }  # fmt: skip
    version = load("roles/python_env/defaults/main.yml")["python_env_uv_version"]
    given = {
        **load("roles/python_env/vars/debian.yml"),
        "__python_env_done": [{**environment, "uv": version}], "__python_env_uv": str(uv), "__python_env_root": str(tmp_path / "envs"),
        "__python_env_conda_made": {"main": {"at": "main", "lock": "@EXPLICIT\n"}}, "__python_env_remade": ["main"], "__python_env_relocked": True,
        "__frameworks_lock_directory": str(tmp_path / "locks"), "__frameworks_solve_directory": str(tmp_path / "solve"),
        "python_env_find_links": [str(tmp_path / "wheels")], "python_env_no_index": True,
        "python_env_environment": {"UV_CACHE_DIR": str(tmp_path / "cache")},
    }  # fmt: skip
    run = run_roles(tmp_path, ["frameworks"], facts, "--extra-vars", json.dumps(given))
    assert run.status == 0, run.output
    lock = (tmp_path / "locks" / "main.txt").read_text()
    assert re.findall(r"(?m)^\w+==\S+", lock) == ["alpha==1.0", "beta==1.0"]
    found = {path.name.partition("-")[0]: (path / "INSTALLER").read_text().strip() for path in site.glob("*.dist-info")}
    assert found == {"alpha": "uv", "beta": "conda", "gamma": "conda"}
    assert (site / "gamma.py").exists()


EMPTY = {
    "gpu_stack": {"os": {"id": "debian", "version": "12", "family": "debian", "arch": "x86_64"}, "environments": []},
    "gpu_node_state": {"environments": {}},
}


@pytest.mark.parametrize(
    ("roles", "times"),
    [
        (["horovod"], 1),
        (["frameworks", "horovod"], 1),
        (["horovod", "horovod"], 1),
        (["frameworks", "frameworks"], 2),
        (["horovod", "frameworks"], 2),
    ],
)
def test_the_environments_are_made_once_for_a_role_that_depends_on_them(tmp_path, roles, times):
    run = run_roles(tmp_path, roles, EMPTY, "--extra-vars", "frameworks_relock=true")
    assert run.status == 0, run.output
    assert run.output.count("frameworks : Choose where the environments are created]") == times


@pytest.mark.parametrize(("boot", "kept"), [(None, True), ("this", True), ("an earlier one", False), ("", False)])
def test_what_uv_unpacked_before_another_boot_is_not_taken(tmp_path, boot, kept):
    words, cache = load("roles/python_env/vars/main.yml")["__python_env_umask"], tmp_path / "cache"
    noted = cache / f"boot-{os.uname().nodename}"
    this = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    (cache / "archive").mkdir(parents=True)
    if boot is not None:
        noted.write_text(this if boot == "this" else boot)
    found = subprocess.run(
        [*words, "/bin/sh", "-c", "umask; exit 7"], env={**os.environ, "UV_CACHE_DIR": str(cache)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (found.returncode, found.stdout) == (7, "0022\n")
    assert ((cache / "archive").exists(), noted.read_text()) == (kept, this)
