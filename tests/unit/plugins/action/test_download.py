# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that run for minutes say so, without a callback."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from ansible.plugins.action.normal import ActionModule as Normal
from ansible.utils.display import Display
from ansible_collections.allreduce.gpu.plugins.action import download
from ansible_collections.allreduce.gpu.plugins.plugin_utils.node import beat

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize("name", ["conda_env", "environment_archive", "stage"])
def test_ansible_runs_it_for_modules_that_copy_or_unpack_gigabytes(name):
    routing = yaml.safe_load((ROOT / "meta" / "runtime.yml").read_text(encoding="utf-8"))["plugin_routing"]["modules"]
    assert routing[name] == {"action_plugin": "allreduce.gpu.download"}
    assert (ROOT / "plugins" / "modules" / f"{name}.py").exists()


def test_the_module_runs_as_it_would_with_a_line_now_and_then(monkeypatch, capsys):
    def run(self, tmp=None, task_vars=None):
        time.sleep(0.35)
        return {"changed": True, "given": task_vars}

    monkeypatch.setattr(beat, "EVERY", 0.1)
    monkeypatch.setattr(Normal, "run", run)
    action = download.ActionModule.__new__(download.ActionModule)
    action._task = SimpleNamespace(get_name=lambda include_role_fqcn: "cudnn : Download the archive")
    action._display = Display()
    variables = {"inventory_hostname": "gpu-1"}
    assert action.run(task_vars=variables) == {"changed": True, "given": variables}
    assert "gpu-1  0s  cudnn : Download" in capsys.readouterr().out
