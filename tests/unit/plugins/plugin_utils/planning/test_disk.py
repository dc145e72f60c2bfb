# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Room for a stack."""

from __future__ import annotations

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Environment, System
from ansible_collections.allreduce.gpu.plugins.plugin_utils.drift.requests import request_digest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.planning.disk import disk_shortage
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.resolve import resolve

STACK = resolve({"os": "debian 12", "request": {"driver": "535"}})["stack"]
REQUEST = request_digest(parse(Environment, STACK["environments"][0]), parse(System, STACK["os"]))
MAIN = {"lock": {"request": REQUEST, "packages": {}}}


def test_enough_room():
    assert disk_shortage(STACK, {"disk_free_mib": {"/": 5000, "/opt": 5001}}) == []


def test_nothing_known():
    assert disk_shortage(STACK, {}) == []


def test_each_file_system_that_is_too_small_is_named():
    found = disk_shortage(STACK, {"disk_free_mib": {"/": 100, "/opt": 200}})
    assert len(found) == 2
    assert found[0].startswith("100 MiB are free under /, but driver need about")
    assert "under /opt, but environment main need about" in found[1]


def test_directories_of_one_file_system_are_added_up():
    found = disk_shortage(STACK, {"disk_free_mib": {"/": 2000, "/opt": 2000}})
    assert found[0].startswith("2000 MiB are free under / and /opt, but driver, environment main need about 3000")


def test_what_is_installed_needs_no_room():
    state = {
        "disk_free_mib": {"/": 1, "/opt": 2},
        "driver": {"installed": "535.261.03"},
        "environments": {"main": MAIN},
    }
    assert disk_shortage(STACK, state) == []


def test_environments_are_known_by_their_name_and_not_by_the_text():
    parts = [{**part, "part": "some words"} for part in STACK["disk_mib"]]
    state = {"disk_free_mib": {"/": 1}, "driver": {"installed": "535.261.03"}, "environments": {"main": MAIN}}
    assert disk_shortage({**STACK, "disk_mib": parts}, state) == []
    assert disk_shortage({**STACK, "disk_mib": parts}, {**state, "environments": {"other": MAIN}}) != []


def test_a_stack_locked_by_an_older_collection_is_judged_by_its_text():
    """Until component and name were added, part alone said what takes the room."""
    parts = [{key: part[key] for key in ("part", "directory", "mib")} for part in STACK["disk_mib"]]
    older = {**STACK, "disk_mib": [*parts, {"part": "cuda", "directory": "/", "mib": 9000}]}
    state = {"disk_free_mib": {"/": 9000}, "driver": {"installed": "535.261.03"}, "environments": {"main": MAIN}}
    assert disk_shortage(older, state) == []
    (found,) = disk_shortage(older, {**state, "environments": {}})
    assert "environment main, cuda need about" in found


@pytest.mark.parametrize("found", [{}, {"lock": {"request": "0" * 16, "packages": {}}}], ids=["no lock", "another"])
def test_an_environment_that_is_replaced_needs_room_beside_the_old_one(found):
    state = {"disk_free_mib": {"/": 1}, "driver": {"installed": "535.261.03"}, "environments": {"main": found}}
    (said,) = disk_shortage(STACK, state)
    assert said.startswith("1 MiB are free under /opt, but environment main need about")
    kept = {"directory": ".main-0123456789ab", "name": "main", "request": REQUEST}
    assert disk_shortage(STACK, {**state, "environments_kept": [kept]}) == []
    assert disk_shortage(STACK, {**state, "environments_kept": [{**kept, "name": "other"}]}) != []
