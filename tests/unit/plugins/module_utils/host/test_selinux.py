# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""SELinux's mode and booleans, from the kernel's files."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import selinux
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.rocky9_selinux import machine


def read(root, files):
    return selinux.read_selinux(tree(root, files))


@pytest.mark.parametrize(
    ("enforce", "configured", "expected"),
    [
        ("1", "enforcing", ("enforcing", "enforcing")),
        ("0", "enforcing", ("permissive", "enforcing")),
        ("1", "permissive", ("enforcing", "permissive")),
        (None, "disabled", ("disabled", "disabled")),
        (None, "enforcing", ("disabled", "enforcing")),
        ("", "enforcing", (None, "enforcing")),
    ],
)
def test_the_mode_and_what_is_configured(tmp_path, enforce, configured, expected):
    found = read(tmp_path, machine(enforce, configured))
    assert (found["mode"], found["configured"]) == expected


def test_a_node_without_selinux_has_no_fact(tmp_path):
    assert read(tmp_path, {"/etc/os-release": "ID=ubuntu\n", "/sys/module/apparmor/parameters/enabled": "Y"}) is None


def test_the_booleans_that_matter(tmp_path):
    found = read(tmp_path, machine(booleans=["deny_execmem", "httpd_can_network_connect"]))["booleans"]
    assert set(found) == set(selinux.BOOLEANS) - {"allow_execmem"}  # which the reference policy has
    assert [name for name, one in found.items() if one["active"] or one["pending"]] == ["deny_execmem"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("0 1", {"active": False, "pending": True}),
        ("1 0\n", {"active": True, "pending": False}),
        ("2 0", None),
        ("1", None),
        ("", None),
    ],
)
def test_a_boolean_is_two_digits_or_left_out(tmp_path, content, expected):
    found = read(tmp_path, {**machine(), "/sys/fs/selinux/booleans/secure_mode": content})["booleans"]
    assert found.get("secure_mode") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELINUX=enforcing\n", "enforcing"),
        ("SELINUX= Permissive   # for now\n", "permissive"),
        ("SELINUX=disabled\nSELINUX=enforcing\n", "disabled"),
        ("SELINUX=maybe\nSELINUX=enforcing\n", "enforcing"),
        (" SELINUX=enforcing\n", None),
        ("#SELINUX=enforcing\nSELINUXTYPE=targeted\n", None),
        ("selinux=enforcing\n", None),
        ("", None),
    ],
)
def test_the_configuration_is_read_as_libselinux_does(text, expected):
    assert selinux.configured(text) == expected


@pytest.mark.parametrize(("label", "kind"), [
    (b"unconfined_u:object_r:ssh_home_t:s0\0", "ssh_home_t"),
    (b"system_u:object_r:user_tmp_t:s0:c0.c1023", "user_tmp_t"),
    (b"\xff", ""),
    (b"", ""),
])  # fmt: skip
def test_labels_of_what_sshd_reads(tmp_path, monkeypatch, label, kind):
    home = "/home/trainer"
    files = {
        **machine("1", "enforcing"),
        f"{home}/.ssh/authorized_keys": "key",
        "/home/other/.ssh/authorized_keys": "key",
    }
    here = tree(tmp_path, files)

    def getxattr(path, name):
        assert name == "security.selinux"
        if not selinux.os.path.exists(path) or path.endswith("/.ssh"):
            raise OSError("no such attribute")
        return label

    monkeypatch.setattr(selinux.os, "getxattr", getxattr)
    assert selinux.read_labels(here, home) == {f"{home}/.ssh/authorized_keys": kind}
    assert selinux.read_labels(here, "/home/nowhere") == {}
    assert selinux.read_labels(here, None) is None
    assert selinux.read_labels(tree(tmp_path / "without", {"/etc/os-release": "ID=debian\n"}), home) is None
