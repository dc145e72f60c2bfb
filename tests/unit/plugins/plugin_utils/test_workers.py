# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What importing plugins does to a process: plugins are loaded before the first fork; the garbage collector stays as the user has it.

Each in a process of its own: in this one, other tests have imported plugins.
"""

import json
import subprocess
import sys

import pytest

from tests.support.command import CHECKOUT

LOADED = """
import importlib, json, sys
from ansible.plugins import loader
from ansible.plugins.loader import init_plugin_loader
init_plugin_loader([sys.argv[1]])
importlib.import_module("ansible_collections.allreduce.gpu.plugins.action." + sys.argv[2])
wrappers = [bool(one._cached_non_collection_wrappers) for one in (loader.filter_loader, loader.test_loader)]
print(json.dumps([wrappers, sorted(sys.modules)]))
"""
COLLECTED = """
import gc, importlib, json, sys
from ansible.plugins.loader import init_plugin_loader
init_plugin_loader([sys.argv[1]])
state = lambda: [gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()]
before, changed = state(), []
for name in sys.argv[2:]:
    importlib.import_module("ansible_collections.allreduce.gpu.plugins." + name)
    changed += [name] if state() != before else []
    before = state()
print(json.dumps(changed))
"""
PLUGINS = CHECKOUT / "plugins"


def python(program, *arguments):
    argv = [sys.executable, "-c", program, str(CHECKOUT / ".collections"), *arguments]
    return json.loads(subprocess.run(argv, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("action", ["preflight", "resolve_stack"])
def test_workers_inherit_plugins(action):
    wrappers, modules = python(LOADED, action)
    assert wrappers == [True, True]
    collection = "ansible_collections.allreduce.gpu.plugins.lookup"
    plugins = {"ansible.plugins.action.normal", "ansible.plugins.connection.ssh", f"{collection}._template"}
    assert plugins | {f"{collection}._os_variables", f"{collection}.pynvml"} <= set(modules)


def test_no_import_tunes_the_garbage_collector():
    paths = [path for path in sorted(PLUGINS.glob("*/*.py")) if not path.parent.name.endswith("_utils")]
    assert {"action", "callback", "filter", "lookup", "modules"} <= {path.parent.name for path in paths}
    assert python(COLLECTED, *(f"{path.parent.name}.{path.stem}" for path in paths)) == []
