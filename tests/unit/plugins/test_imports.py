# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every plugin can be imported without the libraries it uses, as ansible-test's import check wants it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLUGINS = ROOT / "plugins"
# What Python finds as None among its modules cannot be imported, as if it were not installed.
SCRIPT = """
import importlib, sys
sys.modules[{hidden!r}] = None
sys.path.insert(0, {root!r})
failed = []
for name in {names!r}:
    try:
        importlib.import_module(name)
    except BaseException as error:
        failed.append(f"{{name}}: {{type(error).__name__}}: {{error}}")
print("\\n".join(failed))
"""


def modules(*folders: str) -> list[str]:
    """Return the names under which Python imports the files of folders of plugins/."""
    files = sorted(file for folder in folders for file in (PLUGINS / folder).rglob("*.py") if file.stem != "__init__")
    return [".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files]


@pytest.mark.parametrize("hidden", ["packaging", "pynvml", "tomllib"])
def test_plugins_import_without_a_library(hidden):
    """A name that a library gives is not used while a file is imported."""
    names = modules("action", "filter", "lookup", "module_utils", "modules", "plugin_utils")
    script = SCRIPT.format(hidden=hidden, root=str(ROOT), names=names)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("", 0), done.stderr
