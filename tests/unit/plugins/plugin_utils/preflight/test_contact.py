# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hosts on which nothing can be done, by cause."""

import pytest
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible_collections.allreduce.gpu.plugins.plugin_utils.preflight.contact import contact_problems

LOST = {"unreachable": True}
FAILED = {"failed": True, "msg": "no python"}
BARRED = {"failed": True, "msg": "Missing sudo password"}


@pytest.mark.parametrize(
    ("gathered", "root", "found"),
    [
        ({"a": {}, "b": {"skipped": True}}, {"a": {}, "b": {}}, []),
        (
            {"b": LOST, "a": LOST, "c": {}},
            {"a": {}, "b": {}, "c": {}},
            [("unreachable", ["a", "b"]), ("some_lost", "!a:!b")],
        ),
        ({"a": BARRED, "b": BARRED}, {"a": BARRED, "b": {"rc": 1, "failed": True}}, [("not_root", ["a", "b"])]),
        ({"a": FAILED}, {"a": {"rc": 0}}, [("no_facts", "no python")]),
        ({"a": FAILED}, {"a": LOST}, [("unreachable", ["a"])]),
        (
            {"a": LOST, "b": BARRED, "c": FAILED, "d": {}},
            {"a": {}, "b": BARRED, "c": {"rc": 0}, "d": {}},
            [("unreachable", ["a"]), ("not_root", ["b"]), ("no_facts", "no python"), ("some_lost", "!a:!b:!c")],
        ),
        (
            {"a": LOST, "b": BARRED, "c": FAILED},
            {"a": {}, "b": BARRED, "c": {"rc": 0}},
            [("unreachable", ["a"]), ("not_root", ["b"]), ("no_facts", "no python")],
        ),
    ],
)
def test_every_lost_host_is_named_once_with_its_cause(gathered, root, found):
    problems = contact_problems(gathered, root)
    said = ("lost", "error", "limit")
    assert [(one.code, next(one.detail[key] for key in said if key in one.detail)) for one in problems] == found


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        ("", {"a-1", "a-3", "b-1"}),
        ("a", {"a-1", "a-3"}),
        ("a:!a-1", {"a-3"}),
        ("a-*,b", {"a-1", "a-3", "b-1"}),
        ("a-1,a-2,b-1", {"a-1", "b-1"}),
        ("all:&a", {"a-1", "a-3"}),
        ("a[1:2]", {"a-3"}),
        ("~a-[12]", {"a-1"}),
    ],
)
def test_who_goes_on_is_among_those_of_this_run(limit, left, tmp_path):
    """By Ansible's own reading of the limit that is proposed."""
    (tmp_path / "hosts").write_text("[a]\na-1\na-2\na-3\n[b]\nb-1\nb-2\n")
    inventory = InventoryManager(loader=DataLoader(), sources=[str(tmp_path / "hosts")])
    inventory.subset(limit or None)
    lost = {"a-2", "b-2"}
    run = {host.name for host in inventory.get_hosts()}
    problems = contact_problems({name: LOST if name in lost else {} for name in run}, dict.fromkeys(run, {}), limit)
    inventory.subset(problems[-1].detail["limit"])
    assert {host.name for host in inventory.get_hosts()} == left
