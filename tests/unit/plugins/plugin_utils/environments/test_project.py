# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What uv is given to solve: requirements, indexes, the node's Python and glibc."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.environments.project import (
    PLATFORMS,
    platform,
    project,
    pylock_requests,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.tables import Tables, load

INDEX = {"name": "cpu", "url": "https://wheels.example/cpu"}
MAIN = {"name": "main", "python": "3.11", "requirements": ["torch==2.13.0", "numpy"]}


@pytest.mark.parametrize("index", [INDEX, None])
def test_only_frameworks_are_bound_to_their_index(index):
    tomllib = pytest.importorskip("tomllib")
    found = tomllib.loads(project({**MAIN, "index": index}))
    assert found["project"]["dependencies"] == MAIN["requirements"]
    assert found["project"]["requires-python"] == "==3.11.*"
    if index is None:
        assert "tool" not in found
    else:
        (entry,) = found["tool"]["uv"]["index"]
        assert (entry["url"], entry["explicit"]) == (INDEX["url"], True)
        assert {source["index"] for source in found["tool"]["uv"]["sources"].values()} == {entry["name"]}


@pytest.mark.parametrize(
    ("os", "arch", "name"),
    [
        ("ubuntu 22.04", "x86_64", "x86_64-manylinux_2_35"),
        ("rocky 8", "aarch64", "aarch64-manylinux_2_28"),
        ("ubuntu 18.04", "x86_64", "x86_64-manylinux_2_17"),
        ("debian 13", "x86_64", "x86_64-manylinux_2_40"),
    ],
    ids=["as it is", "other processors", "between two", "newer than all"],
)
def test_wheels_are_looked_for_that_the_nodes_glibc_takes(os, arch, name):
    number, _space, version = os.partition(" ")
    assert platform(load(), {"id": number, "version": version, "arch": arch}) == name


def test_wheels_are_looked_for_that_every_node_takes_where_its_glibc_is_not_known():
    tables = load()
    distros = {**tables.subjects["distros"], "rows": [{**row, "glibc": None} for row in tables.rows("distros")]}
    unknown = Tables("a test", {**tables.subjects, "distros": distros})
    assert platform(unknown, {"id": "ubuntu", "version": "22.04", "arch": "x86_64"}) == "x86_64-manylinux_2_17"


def test_uv_knows_every_platform(uv_help):
    wanted = {f"{arch}-manylinux_{one.replace('.', '_')}" for one in PLATFORMS for arch in ("x86_64", "aarch64")}
    assert [one for one in sorted(wanted) if one not in uv_help] == []


def plan(**more):
    stack = resolve({"os": "ubuntu 22.04", "gpus": ["A40"], "request": {"pytorch": "2.6", "cupy": "13.3.0"}, **more})
    return {"stacks": [{"hosts": ["gpu-1", "gpu-2"], "stack": stack["stack"]}]}


def test_every_environment_has_a_file_of_its_own():
    found = pylock_requests(plan(environments="split"), {})
    assert [one["file"] for one in found] == ["gpu-1/pylock.pytorch.toml", "gpu-1/pylock.cupy.toml"]
    assert found[0]["arguments"] == ["--python-version", "3.10", "--python-platform", "x86_64-manylinux_2_35"]


def test_an_environment_of_conda_has_none():
    assert pylock_requests(plan(interpreter="conda"), {"gpu-1": {}}) == []


def test_packages_and_indexes_are_those_of_the_first_host():
    variables = {
        "python_env_packages": ["mpi4py>=4.1"], "python_env_index_url": "https://index.example/simple",
        "python_env_find_links": ["/srv/wheels", "https://links.example"], "python_env_no_index": "on",
        "python_env_environment": {"HTTPS_PROXY": "http://proxy.example"}, "frameworks_index_url": "https://torch.example",
    }  # fmt: skip
    [found] = pylock_requests(plan(), {"gpu-1": variables, "gpu-2": {}})
    assert '"mpi4py>=4.1"' in found["project"]
    assert 'url = "https://torch.example"' in found["project"]
    assert found["arguments"][-1] == "--no-index"
    assert found["environment"] == {
        "HTTPS_PROXY": "http://proxy.example", "UV_DEFAULT_INDEX": "https://index.example/simple",
        "UV_FIND_LINKS": "/srv/wheels,https://links.example", "UV_NO_PROGRESS": "1", "UV_PYTHON_DOWNLOADS": "never",
    }  # fmt: skip


@pytest.fixture(scope="module")
def uv_help():
    uv = Path(sys.executable).with_name("uv")
    return subprocess.run([uv, "pip", "compile", "--help"], capture_output=True, text=True, check=True).stdout
