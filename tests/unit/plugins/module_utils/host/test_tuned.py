# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The daemon tuned on recorded machines: old and new releases, asked or not."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.host import tuned
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree

OLD = {
    "/usr/sbin/tuned-adm": "",
    "/etc/systemd/system/multi-user.target.wants/tuned.service": ("link", "/usr/lib/systemd/system/tuned.service"),
    "/usr/lib/tuned/accelerator-performance/tuned.conf": "",
    "/usr/lib/tuned/throughput-performance/tuned.conf": "",
    "/etc/tuned/active_profile": "virtual-guest\n",
    "/etc/tuned/profile_mode": "auto\n",
}
NEW = {**OLD, "/usr/lib/tuned/profiles/throughput-performance/tuned.conf": ""}


@pytest.mark.parametrize(
    ("files", "directory", "bases"),
    [
        (OLD, "/etc/tuned/allreduce", ["accelerator-performance", "throughput-performance"]),
        (NEW, "/etc/tuned/profiles/allreduce", ["throughput-performance"]),
    ],
    ids=["old", "new"],
)
def test_where_profiles_are(tmp_path, files, directory, bases):
    found = tuned.read(tree(tmp_path, files))
    assert (found["directory"], found["bases"]) == (directory, bases)
    assert (found["in_charge"], found["profile"], found["mode"], found["verified"]) == (
        True,
        "virtual-guest",
        "auto",
        None,
    )


@pytest.mark.parametrize(
    "without", ["/usr/sbin/tuned-adm", "/etc/systemd/system/multi-user.target.wants/tuned.service"]
)
def test_what_does_not_start_is_not_in_charge(tmp_path, without):
    files = {path: text for path, text in OLD.items() if path != without}
    found = tuned.read(tree(tmp_path, files), lambda arguments: pytest.fail("asked"))
    assert found["in_charge"] is False


@pytest.mark.parametrize(("output", "verified"), [("", True), (None, False)])
def test_it_is_asked_whether_its_profile_is_applied(tmp_path, output, verified):
    """Of what this kernel or machine has."""
    asked = []

    def run(arguments):
        asked.append(arguments)
        return output

    assert tuned.read(tree(tmp_path, OLD), run)["verified"] is verified
    assert asked == [["tuned-adm", "verify", "--ignore-missing"]]


@pytest.mark.parametrize(
    ("profile", "mode", "command"),
    [
        ("allreduce", "manual", ["tuned-adm", "profile", "allreduce"]),
        ("a b", "", ["tuned-adm", "profile", "a", "b"]),
        ("virtual-guest", "auto", ["tuned-adm", "auto_profile"]),
        ("", "", ["tuned-adm", "off"]),
    ],
)
def test_the_command(profile, mode, command):
    assert tuned.command(profile, mode) == command
