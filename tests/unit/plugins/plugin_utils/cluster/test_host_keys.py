# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node is known by the host key it was first seen with, and whoever has another one is refused."""

import subprocess

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster.host_keys import (
    changed_keys,
    fingerprint,
    pinned_keys,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.cluster.records import Record

OLD, NEW, RSA = "ssh-ed25519 b2xk", "ssh-ed25519 bmV3", "ssh-rsa cnNh"


def record(owner, time, **known):
    return Record(owner, {name: {"name": name, "host_key": key} for name, key in known.items()}, time)


@pytest.mark.parametrize(
    ("records", "pin"),
    [
        ([], None),
        ([record("b", 1, b=OLD)], None),
        ([record("b", 1, a=None)], None),
        ([record("a", 1, a=OLD)], OLD),  # of a cluster of one
        ([record("b", 1, a=OLD), record("c", 2, a=NEW)], NEW),
        ([record("b", 2, a=OLD), record("c", 1, a=NEW)], OLD),
        ([record("a", 9, a=NEW), record("b", 1, a=OLD)], OLD),  # whoever answers as a says what they like of a
        ([record("b", 2, a=None), record("c", 1, a=OLD)], OLD),
        ([record("b", 9, a=NEW), record("c", 1, a=OLD), record("d", 2, a=OLD)], OLD),  # most say so, whatever is newer
        (
            [record("b", 9, a=NEW), record("c", 1, a=OLD), record("a", 1, a=OLD)],
            OLD,
        ),  # and a itself decides between two
    ],
)
def test_what_a_node_is_known_by(records, pin):
    assert pinned_keys(["a"], records) == ({} if pin is None else {"a": pin})


@pytest.mark.parametrize(
    ("all_keys", "usable", "accepted", "refused"),
    [
        ([OLD], [OLD], None, False),
        ([RSA, OLD], [RSA, OLD], None, False),
        ([OLD, RSA], [RSA], None, False),  # a node in FIPS mode: it still has the key, which not all may use
        ([NEW], [NEW], None, True),
        ([NEW], [NEW], NEW, False),
        ([NEW], [NEW], OLD, True),
        ([NEW, RSA], [NEW, RSA], RSA, True),  # it would be known by the other one
        ([], [], None, True),
        ([], [], NEW, True),
    ],
)
def test_who_is_refused(all_keys, usable, accepted, refused):
    given = {"a": fingerprint(accepted)} if accepted else {}
    problems = changed_keys({"a": {"all": all_keys, "usable": usable}}, {"a": OLD}, given)
    assert [(one.code, one.subject) for one in problems] == ([("changed_host_key", "a")] if refused else [])
    assert all(one.detail["known"] == fingerprint(OLD) for one in problems)


def test_who_is_not_known_yet_is_taken():
    assert changed_keys({"a": {"all": [NEW], "usable": [NEW]}}, {"b": OLD}, {}) == []


def test_fingerprints_are_those_that_openssh_shows(tmp_path):
    path = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    shown = subprocess.run(["ssh-keygen", "-l", "-f", path], capture_output=True, text=True, check=True).stdout
    assert fingerprint((tmp_path / "key.pub").read_text()) == shown.split()[1]
