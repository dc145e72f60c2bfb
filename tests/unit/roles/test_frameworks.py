# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What roles python_env and frameworks hand to uv."""

import base64
import json
import re
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
    environment.filters["to_json"] = json.dumps
    packages = load("roles/frameworks/vars/main.yml")["__frameworks_index_packages"]
    return environment.get_template(name).render(
        __frameworks_item=item, __frameworks_index_packages=packages, inventory_hostname="gpu-1", **more
    )


def test_uv_on_nodes_is_the_one_the_project_is_tested_with():
    pinned = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    match = re.search(r"^uv==(\S+) ((?:\\\n\s+--hash=\S+\s*)+)", pinned, re.MULTILINE)
    defaults = load("roles/python_env/defaults/main.yml")
    assert defaults["python_env_uv_version"] == match[1]
    assert set(defaults["python_env_uv_hashes"]) <= set(re.findall(r"--hash=(\S+)", match[2]))


@pytest.mark.parametrize("index", [INDEX, None])
def test_only_frameworks_are_bound_to_their_index(index):
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads(rendered("pyproject.toml.j2", {**MAIN, "index": index}))
    assert project["project"]["dependencies"] == MAIN["requirements"]
    assert project["project"]["requires-python"] == "==3.11.*"
    if index is None:
        assert "tool" not in project
    else:
        (entry,) = project["tool"]["uv"]["index"]
        assert (entry["url"], entry["explicit"]) == (INDEX["url"], True)
        assert {source["index"] for source in project["tool"]["uv"]["sources"].values()} == {entry["name"]}


def test_a_written_lock_is_recognized_in_the_next_run():
    item = {**MAIN, "digest": request_digest(MAIN, PLATFORM, INDEX)}
    text = rendered("lock.txt.j2", item, __frameworks_solution=SimpleNamespace(stdout="torch==2.13.0+cpu"))
    found = {"item": {"name": "main"}, "content": base64.b64encode(text.encode()).decode()}
    environment = describe_environments([{**MAIN, "index": INDEX}], PLATFORM, [found], {})["main"]
    assert environment["lock"] == text
