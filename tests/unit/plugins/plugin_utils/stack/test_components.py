# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What every component has, and that there is no second list of them."""

from __future__ import annotations

import ast
import inspect
import pkgutil
from pathlib import Path

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack import components
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.components import COMPONENTS, FRAMEWORKS, component
from ansible_collections.allreduce.gpu.plugins.plugin_utils.stack.request_keys import KEYS

NAMES = [one.name for one in COMPONENTS]
STACK = Path(components.__file__).parents[1]


def test_every_room_is_listed_once():
    rooms = [found.name for found in pkgutil.iter_modules(components.__path__)]
    assert sorted(NAMES) == sorted(rooms), "each file or folder of stack/components is in COMPONENTS"


def test_the_default_framework_is_told_first_and_what_lives_beside_others_last():
    assert FRAMEWORKS[0] == "pytorch"
    beside = [name for name in FRAMEWORKS if component(name).beside]
    assert beside == list(FRAMEWORKS[-len(beside) :])


@pytest.mark.parametrize("name", NAMES)
def test_a_component_is_asked_for_by_its_name_first(name):
    assert component(name).keys[0].name == name


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_key_has_documentation_and_an_example(key):
    assert key.docs
    assert all(text.endswith(".") for text in key.docs)
    assert key.sample


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_is_imported_and_takes_room(name):
    assert component(name).module
    assert set(component(name).size) == {"cuda", "cpu"}


@pytest.mark.parametrize("name", NAMES)
def test_a_room_owns_rules_about_its_component_alone_or_about_what_it_depends_on(name):
    for rule in component(name).rules:
        assert name in (*rule.scope, rule.needs) or name == "python", rule.name
        room = inspect.getmodule(rule.check).__name__.rpartition(".components.")[2]
        # What lives beside PyTorch shares rules, which each adds to its own.
        assert room.split(".")[0] == name or (room == "pytorch.beside" and component(name).beside == ("pytorch",))


@pytest.mark.parametrize("path", sorted(STACK.glob("*.py")), ids=lambda path: path.name)
def test_what_serves_every_component_knows_no_framework_by_name(path):
    known = {key.name for name in FRAMEWORKS for key in component(name).keys}
    texts = [one.value for one in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(one, ast.Constant)]
    assert known.intersection(text for text in texts if isinstance(text, str)) == set()
