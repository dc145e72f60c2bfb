# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is loaded before the first fork, in a process of its own: here, other tests have loaded it."""

import json
import subprocess
import sys

import pytest

from tests.support.command import CHECKOUT

REPORT = """
import gc, importlib, json, sys
from ansible.plugins import loader
from ansible.plugins.loader import init_plugin_loader
init_plugin_loader([sys.argv[1]])
before = gc.get_freeze_count()
importlib.import_module("ansible_collections.allreduce.gpu.plugins.action." + sys.argv[2])
wrappers = [bool(one._cached_non_collection_wrappers) for one in (loader.filter_loader, loader.test_loader)]
print(json.dumps([before, gc.get_freeze_count(), gc.get_threshold()[0], wrappers, sorted(sys.modules)]))
"""


@pytest.mark.parametrize("action", ["preflight", "resolve_stack"])
def test_workers_inherit_plugins_and_frozen_memory(action):
    done = subprocess.run(
        [sys.executable, "-c", REPORT, str(CHECKOUT / ".collections"), action],
        capture_output=True,
        text=True,
        check=True,
    )
    before, after, threshold, wrappers, modules = json.loads(done.stdout)
    assert before == 0
    assert after > 10_000
    assert threshold == 200_000
    assert wrappers == [True, True]
    collection = "ansible_collections.allreduce.gpu.plugins.lookup"
    plugins = {"ansible.plugins.action.normal", "ansible.plugins.connection.ssh", f"{collection}._template"}
    assert plugins | {f"{collection}._os_variables", f"{collection}.pynvml"} <= set(modules)
