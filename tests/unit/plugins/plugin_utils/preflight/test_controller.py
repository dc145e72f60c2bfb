# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import re
import sys
from pathlib import Path

import pytest
import yaml
from ansible.utils.display import Display
from ansible_collections.allreduce.gpu.plugins.action import preflight
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.controller import (
    controller_problems,
    core_problems,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.world import UNRESOLVED
from ansible_collections.allreduce.gpu.plugins.plugin_utils.problems.text import describe
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).resolve().parents[5]

HERE = {"stack_lock": "{tmp}/stack.lock.yml", "stack_sbom": "", "stack_pylock": "", "stack_uv": "no-such-uv"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, []),
        ({"stack_lock": ""}, []),
        ({"stack_lock": "stack.lock.yml"}, []),
        ({"stack_lock": UNRESOLVED}, []),
        ({"stack_lock": "{tmp}/gone/stack.lock.yml"}, [("no_lock_directory", "{tmp}/gone/stack.lock.yml")]),
        ({"stack_pylock": "pylock", "stack_uv": "sh"}, []),
        ({"stack_pylock": "pylock", "stack_uv": sys.executable}, []),
        ({"stack_pylock": "pylock"}, [("pylock_no_uv", "no-such-uv")]),
    ],
)
def test_what_the_controller_lacks(tmp_path, change, expected):
    values = {name: value.replace("{tmp}", str(tmp_path)) if isinstance(value, str) else value
              for name, value in {**HERE, **change}.items()}  # fmt: skip
    found = [(one.code, one.subject.replace(str(tmp_path), "{tmp}")) for one in controller_problems(values)]
    assert found == expected


@pytest.mark.parametrize(("there", "codes"), [(object(), []), (None, ["sbom_no_library"])])
def test_bills_of_materials_need_their_library(monkeypatch, there, codes):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: there)
    assert [one.code for one in controller_problems({"stack_sbom": "sbom"})] == codes
    assert controller_problems({"stack_sbom": ""}) == []


# CVE-2024-11079 in the changelogs of ansible-core.
CORES = [
    ("2.15.13", "2.16.14"), ("2.16.0", "2.16.14"), ("2.16.13", "2.16.14"), ("2.16.14rc1", "2.16.14"), ("2.16.14", None),
    ("2.16.19", None), ("2.17.0", "2.17.7"), ("2.17.6", "2.17.7"), ("2.17.7", None), ("2.17.14", None), ("2.18.0", "2.18.1"),
    ("2.18.1", None), ("2.18.19", None), ("2.19.0", None), ("2.19.14", None), ("2.22.0.dev0", None), ("3.0.0", None),
]  # fmt: skip


@pytest.mark.parametrize(("version", "safe"), CORES)
def test_only_releases_of_ansible_core_that_run_no_templates_of_nodes(version, safe):
    (problem,) = core_problems(version) or [None]
    assert (problem.detail["safe"] if problem else None) == safe
    assert problem is None or describe(problem).startswith(f"ansible-core {version} runs what a node says as code")


def test_the_metadata_and_the_requirements_agree_with_the_releases_that_are_refused():
    metadata = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))["requires_ansible"]
    numbers = [f"2.{minor}.{patch}" for minor in range(14, 23) for patch in range(30)]
    assert [one for one in numbers if one in SpecifierSet(metadata)] == [
        one for one in numbers if not core_problems(one)
    ]
    texts = {path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("requirements*.txt")}
    pinned = {name: re.findall(r"(?m)^ansible-core==(\S+)", text) for name, text in texts.items()}
    assert {"requirements.txt", "requirements-216.txt"} <= {name for name, found in pinned.items() if found}
    assert [one for found in pinned.values() for one in found if core_problems(one)] == []


def test_nothing_is_read_under_a_release_that_is_refused(monkeypatch):
    monkeypatch.setattr(preflight, "ansible_version", "2.18.0")
    monkeypatch.setattr(preflight.ActionBase, "run", lambda *_: {})
    action = object.__new__(preflight.ActionModule)
    action._display = Display()
    result = action.run(task_vars={})
    assert result["failed"] and [one["code"] for one in result["problems"]] == ["unsafe_core"]
