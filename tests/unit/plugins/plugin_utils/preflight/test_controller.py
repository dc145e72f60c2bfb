# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
import sys

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.controller import controller_problems
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.world import UNRESOLVED

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
