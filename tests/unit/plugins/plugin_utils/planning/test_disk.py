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


def shortage(stack, state):
    return [one.line for one in disk_shortage(stack, state)]


def test_enough_room():
    assert shortage(STACK, {"disk_free_mib": {"/": 5000, "/opt": 5001}}) == []


def test_nothing_known():
    assert shortage(STACK, {}) == []


def test_each_file_system_that_is_too_small_is_named():
    found = shortage(STACK, {"disk_free_mib": {"/": 100, "/opt": 200}})
    assert len(found) == 2
    assert found[0].startswith("100 MiB are free under /, but about 1.5 GiB are needed for driver;")
    assert "200 MiB are free under /opt" in found[1] and "needed for environment main;" in found[1]


def test_directories_of_one_file_system_are_added_up():
    found = shortage(STACK, {"disk_free_mib": {"/": 2000, "/opt": 2000}})
    assert found[0].startswith(
        "1.9 GiB are free under / and /opt, but about 3.0 GiB are needed for driver, environment main;"
    )


def test_what_is_installed_needs_no_room():
    state = {
        "disk_free_mib": {"/": 1, "/opt": 2},
        "driver": {"installed": "535.261.03"},
        "environments": {"main": MAIN},
    }
    assert shortage(STACK, state) == []


def test_a_toolkit_needs_room_until_all_its_packages_are_there_in_their_version():
    stack = resolve({"os": "ubuntu 22.04", "gpus": ["A40"], "request": {"cuda": "12.1", "pytorch": "none"}})["stack"]
    there = {one["name"]: (one["version"] or "1").replace("*", "1") for one in stack["cuda"]["packages"]}
    free = {"disk_free_mib": {"/": 100}, "driver": {"installed": f"{stack['driver']['branch']}.1"}}
    assert shortage(stack, {**free, "packages": there}) == []
    first = next(iter(there))
    for packages in ({**there, first: "0.1"}, {name: there[name] for name in there if name != first}, None):
        (found,) = shortage(stack, {**free, "packages": packages})
        assert "are needed for cuda;" in found


def test_environments_are_known_by_their_name_and_not_by_the_text():
    parts = [{**part, "part": "some words"} for part in STACK["disk_mib"]]
    state = {"disk_free_mib": {"/": 1}, "driver": {"installed": "535.261.03"}, "environments": {"main": MAIN}}
    assert shortage({**STACK, "disk_mib": parts}, state) == []
    assert shortage({**STACK, "disk_mib": parts}, {**state, "environments": {"other": MAIN}}) != []


def test_a_stack_locked_by_an_older_collection_is_judged_by_its_text():
    """Until component and name were added, part alone said what takes the room."""
    parts = [{key: part[key] for key in ("part", "directory", "mib")} for part in STACK["disk_mib"]]
    older = {**STACK, "disk_mib": [*parts, {"part": "cuda", "directory": "/", "mib": 9000}]}
    state = {"disk_free_mib": {"/": 9000}, "driver": {"installed": "535.261.03"}, "environments": {"main": MAIN}}
    assert shortage(older, state) == []
    (found,) = shortage(older, {**state, "environments": {}})
    assert "needed for environment main, cuda;" in found


@pytest.mark.parametrize("found", [{}, {"lock": {"request": "0" * 16, "packages": {}}}], ids=["no lock", "another"])
def test_an_environment_that_is_replaced_needs_room_beside_the_old_one(found):
    state = {"disk_free_mib": {"/": 1}, "driver": {"installed": "535.261.03"}, "environments": {"main": found}}
    (said,) = shortage(STACK, state)
    assert said.startswith("1 MiB are free under /opt, but about") and "needed for environment main;" in said
    kept = {"directory": ".main-0123456789ab", "name": "main", "request": REQUEST}
    assert shortage(STACK, {**state, "environments_kept": [kept]}) == []
    assert shortage(STACK, {**state, "environments_kept": [{**kept, "name": "other"}]}) != []


ENVIRONMENTS, CACHE = "/opt/allreduce/envs", "/opt/allreduce/cache"
DRIVER_INSTALLED = {"driver": {"installed": "535.261.03"}}


@pytest.mark.parametrize(
    ("free", "where"),
    [
        ({"/": 99000, "/opt": 99000, ENVIRONMENTS: 57, CACHE: 99000}, ENVIRONMENTS),
        ({"/": 99000, "/opt": 99000, ENVIRONMENTS: 99000, CACHE: 57}, CACHE),
        ({"/": 99000, "/opt": 99000, ENVIRONMENTS: 57, CACHE: 57}, f"{CACHE} and {ENVIRONMENTS}"),
        ({"/": 99000, "/opt": 57, ENVIRONMENTS: 57, CACHE: 57}, "/opt"),
        ({"/": 57, "/opt": 57, ENVIRONMENTS: 99000, CACHE: 99000}, None),
        ({"/": 99000, "/opt": 99000}, None),
    ],
)
def test_the_file_systems_that_environments_fill_are_those_that_count(free, where):
    found = shortage(STACK, {"disk_free_mib": free, **DRIVER_INSTALLED})
    assert [text.split(", but")[0] for text in found] == ([f"57 MiB are free under {where}"] if where else [])


def test_room_is_told_in_units_that_people_read():
    (found,) = shortage(STACK, {"disk_free_mib": {"/": 9000, "/opt": 1499}, **DRIVER_INSTALLED})
    assert found.startswith("1.4 GiB are free under /opt, but about 1.5 GiB are needed for environment main;")
