# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether systemd-logind removes shared memory, and which of its files has the last word."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import logind
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree


@pytest.mark.parametrize(("output", "running"), [("b true\n", "yes"), ("b false\n", "no"), ("", None), (None, None)])
def test_the_daemon_is_asked(tmp_path, output, running):
    asked = []

    def ask(arguments):
        asked.append(arguments[0])
        return output

    assert logind.read(tree(tmp_path, {}), ask) == {"running": running, "ours": False, "overriding": None}
    assert asked == ["busctl"]


def test_a_recorded_tree_is_not_asked(tmp_path):
    assert logind.read(tree(tmp_path, {logind.DROP_IN: ""}), None) == {
        "running": None,
        "ours": True,
        "overriding": None,
    }


LATER = "/etc/systemd/logind.conf.d/99-site.conf"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({LATER: "[Login]\n# RemoveIPC=no\nRemoveIPC = yes\n"}, (LATER, 3, "yes")),
        ({"/usr/lib/systemd/logind.conf.d/99-x.conf": "RemoveIPC=no\n"}, ("/usr/lib/systemd/logind.conf.d/99-x.conf", 1, "no")),
        # Hidden by the administrator's file of the same name.
        ({LATER: "[Login]\n", "/usr/lib/systemd/logind.conf.d/99-site.conf": "RemoveIPC=yes\n"}, None),
        # Read before ours.
        ({"/etc/systemd/logind.conf": "RemoveIPC=yes\n", "/etc/systemd/logind.conf.d/50-x.conf": "RemoveIPC=yes\n"}, None),
        ({"/etc/systemd/logind.conf.d/99-x.conf.bak": "RemoveIPC=yes\n"}, None),
        ({LATER: "KillUserProcesses=yes\n"}, None),
    ],
    ids=["later", "package", "hidden", "before", "no_conf", "other_key"],
)  # fmt: skip
def test_the_file_that_has_the_last_word(tmp_path, files, expected):
    found = logind.overriding(tree(tmp_path, {logind.DROP_IN: "RemoveIPC=no\n", **files}))
    assert (found and (found["file"], found["line"], found["value"])) == expected
