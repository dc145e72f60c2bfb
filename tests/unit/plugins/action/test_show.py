# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines are printed as they are in every configuration, and without what would command a terminal."""

import json
import os
import subprocess
import sys

import pytest

from tests.support.command import CHECKOUT

LONG = "  nccl_fabric: NCCL's variables are 'a' instead of \"b\": " + "word " * 40 + "run site again"
LINES = ["gpu-1: failed", LONG, "\x1b[31mred\x1b[0m"]
SHOWN = f"gpu-1: failed\n{LONG}\nred\n"


def shown(place, config, errors=(), **variables):
    """Return what a play prints and how it ends, in a user's own configuration."""
    (place / "ansible.cfg").write_text("[defaults]\n" + config, "utf-8")
    tasks = [{"allreduce.gpu.show": {"lines": LINES, "errors": [*errors]}, "register": "found", "run_once": True}]
    tasks.append({"ansible.builtin.assert": {"that": "found.lines[2] == 'red' and not found.changed"}})
    (place / "play.yml").write_text(json.dumps([{"hosts": "all", "gather_facts": False, "tasks": tasks}]), "utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"), "ANSIBLE_CONFIG": "ansible.cfg"}
    command = [sys.executable, "-m", "ansible", "playbook", "-i", "a,b,", "-c", "local", "play.yml"]
    return subprocess.run(
        command,
        cwd=place,
        env={**environment, "COLUMNS": "80", **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_errors_are_shown_in_levels_and_fail(tmp_path):
    errors = [{"what": "lost cannot be reached\x1b[31m", "fix": "check power"}, {"what": "x is 1", "why": "a\nb"}]
    done = shown(tmp_path, "", errors)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "error: lost cannot be reached.\n  fix: Check power.\n\nerror: x is 1.\n  why: a b.\n" in done.stdout
    assert '"msg": "lost cannot be reached; check power. x is 1 (a\\nb)."' in done.stdout


@pytest.mark.parametrize(
    "config", ["", "callback_result_format = yaml\n", "display_skipped_hosts = false\nnocolor = true\n"]
)
def test_text_in_any_configuration(tmp_path, config):
    done = shown(tmp_path, config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(SHOWN) == 1


def test_nothing_is_printed_between_json(tmp_path):
    """A callback whose output is JSON for programs, as ansible.posix has some."""
    (tmp_path / "callback_plugins").mkdir()
    (tmp_path / "callback_plugins" / "as_json.py").write_text(
        "from ansible.plugins.callback import CallbackBase\n"
        "class CallbackModule(CallbackBase):\n"
        "    CALLBACK_VERSION, CALLBACK_TYPE, CALLBACK_NAME = 2.0, 'stdout', 'as_json'\n"
        "    def v2_playbook_on_stats(self, stats):\n"
        "        print('{}')\n",
        "utf-8",
    )
    done = shown(tmp_path, "callback_plugins = callback_plugins\nstdout_callback = as_json\n")
    assert (done.returncode, done.stdout) == (0, "{}\n"), done.stdout + done.stderr
