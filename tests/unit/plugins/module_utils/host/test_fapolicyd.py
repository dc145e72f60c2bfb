# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""fapolicyd's state, from its files."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import fapolicyd
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

PYTHON = "/opt/allreduce/envs/main/bin/python"
CONFIG = {fapolicyd.CONFIG: "#\npermissive = 0\nwatch_fs = ext4,xfs\n"}
RUNNING = {
    "/run/fapolicyd.pid": "741\n",
    "/proc/741/comm": "fapolicyd\n",
    "/proc/741/cmdline": "/usr/sbin/fapolicyd\0",
}
OURS = {fapolicyd.PATH: fapolicyd.RULES, fapolicyd.COMPILED: fapolicyd.RULES}
DENY = "deny_audit perm=execute all : all\n"
NOTHING_OF_OURS = {"active": True, "permissive": False, "rules": "absent", "loaded": False, "others": False}


def read(root, *files):
    return fapolicyd.read_fapolicyd(tree(root, {path: text for one in files for path, text in one.items()}))


def test_a_node_without_it_has_no_fact(tmp_path):
    assert read(tmp_path, {"/etc/os-release": "ID=ubuntu\n"}) is None


@pytest.mark.parametrize(
    ("files", "different"),
    [
        ([CONFIG, RUNNING], {}),
        ([CONFIG], {"active": False}),
        ([CONFIG, RUNNING, {"/proc/741/comm": "bash\n"}], {"active": False}),
        ([RUNNING, {fapolicyd.CONFIG: "permissive = 1\n"}], {"permissive": True}),
        ([CONFIG, RUNNING, {"/proc/741/cmdline": "/usr/sbin/fapolicyd\0--permissive\0"}], {"permissive": True}),
        ([CONFIG, RUNNING, OURS], {"rules": "equal", "loaded": True}),
        ([CONFIG, RUNNING, OURS, {fapolicyd.COMPILED: DENY}], {"rules": "equal"}),
        ([CONFIG, RUNNING, OURS, {fapolicyd.PATH: DENY}], {"rules": "different", "loaded": True}),
        ([CONFIG, RUNNING, {fapolicyd.PATH: ""}], {"rules": "different"}),
        ([CONFIG, RUNNING, {fapolicyd.COMPILED: "allow perm=any uid=9 : dir=/opt/allreduce/"}], {"others": True}),
        ([CONFIG, RUNNING, {"/etc/fapolicyd/trust.d/x": "/opt/allreduce/uv/bin/uv 1 ab\n"}], {"others": True}),
        ([CONFIG, RUNNING, {"/etc/fapolicyd/fapolicyd.trust": "# /opt/allreduce/ would be\n"}], {}),
    ],
)
def test_the_fact(tmp_path, files, different):
    assert read(tmp_path, *files) == {**NOTHING_OF_OURS, **different}


def test_what_only_root_can_read_is_not_known(tmp_path):
    found = read(tmp_path, RUNNING, {"/usr/sbin/fapolicyd": ""})
    assert found == {**dict.fromkeys(NOTHING_OF_OURS), "active": True}


@pytest.mark.parametrize(
    ("different", "program", "expected"),
    [
        ({}, PYTHON, True),
        ({}, "/usr/bin/python3", False),
        ({"active": False}, PYTHON, False),
        ({"permissive": True}, PYTHON, False),
        ({"permissive": None, "loaded": None}, PYTHON, False),
        ({"loaded": True}, PYTHON, False),
        ({"others": True}, PYTHON, False),
    ],
)
def test_what_it_denies(different, program, expected):
    assert fapolicyd.denies({**NOTHING_OF_OURS, **different}, program) is expected


def test_a_node_without_it_denies_nothing():
    assert fapolicyd.denies(None, PYTHON) is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [("-r, --reload-rules    Notifies fapolicyd", True), ("-u, --update    Notifies fapolicyd", False)],
)
def test_a_daemon_before_1_3_takes_rules_only_when_it_starts(text, expected):
    assert fapolicyd.reloads(text) is expected


def test_no_rule_names_a_set_that_may_not_be_defined():
    assert all("%" not in line and line.startswith("allow perm=") for line in fapolicyd.lines(fapolicyd.RULES))
