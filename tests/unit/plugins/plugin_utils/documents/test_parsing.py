# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.observed import (
    Environment,
    Kernel,
    Observed,
    Service,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError, Words, parse
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.stack import Stack


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Part:
    name: str
    count: int = 1


@dataclass(frozen=True)
class Document:
    text: str
    number: int = 7
    share: float = 0.5
    flag: bool = True
    known: bool | None = None
    maybe: str | None = "default"
    words: tuple[str, ...] = ("default",)
    parts: tuple[Part, ...] = ()
    part: Part | None = None
    sizes: dict[str, int] = field(default_factory=lambda: {"default": 1})
    since: Any = None
    said: Words | None = None
    colour: Colour = Colour.RED


class AnsibleText(str):
    """Ansible marks text by a subclass."""


class AnsibleNumber(int):
    """Ansible marks numbers, too."""


def test_what_is_absent_takes_its_default():
    assert parse(Document, {"text": "a"}) == Document("a")


def test_every_kind_of_value():
    document = {
        "text": "a", "number": 2, "share": 0.25, "flag": False, "known": True, "maybe": "b", "words": ["c", "d"],
        "parts": [{"name": "e"}, {"name": "f", "count": 3}], "part": {"name": "g"}, "sizes": {"/": 4}, "since": [1],
    }  # fmt: skip
    assert parse(Document, document) == Document(
        "a", 2, 0.25, False, True, "b", ("c", "d"), (Part("e"), Part("f", 3)), Part("g"), {"/": 4}, [1]
    )


@pytest.mark.parametrize("name", ["number", "share", "flag", "words", "parts", "sizes"])
def test_null_is_the_default_where_the_type_has_no_null(name):
    assert parse(Document, {"text": "a", name: None}) == Document("a")


@pytest.mark.parametrize("name", ["known", "maybe", "part", "since"])
def test_null_is_null_where_the_type_has_it(name):
    assert getattr(parse(Document, {"text": "a", "maybe": "b", name: None}), name) is None


def test_keys_that_are_not_known_are_ignored():
    assert parse(Document, {"text": "a", "of a newer writer": object(), 5: 6}) == Document("a")


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("number", 3.0, 3),
        ("number", AnsibleNumber(3), 3),
        ("number", -1, -1),
        ("number", 10**400, 10**400),
        ("share", 1, 1.0),
        ("share", AnsibleNumber(2), 2.0),
        ("text", AnsibleText("b"), "b"),
        ("maybe", AnsibleText("b"), "b"),
        ("words", ("b", AnsibleText("c")), ("b", "c")),
        ("said", 8, "8"),
        ("said", AnsibleNumber(8), "8"),
        ("said", AnsibleText("c"), "c"),
        ("colour", "blue", Colour.BLUE),
        ("colour", AnsibleText("blue"), Colour.BLUE),
        ("sizes", {AnsibleText("/"): AnsibleNumber(1), 5: 2}, {"/": 1, "5": 2}),
    ],
)
def test_values_come_out_as_plain_types(name, value, expected):
    found = getattr(parse(Document, {"text": "a", name: value}), name)
    assert found == expected
    assert type(found) is type(expected)
    inner = list(zip(found, expected, strict=True)) if isinstance(expected, (tuple, dict)) else []
    assert all(type(one) is type(other) for one, other in inner)


WRONG = [
    ({}, "text", None, "given (text)"),
    ({"text": None}, "text", None, "text"),
    ({"text": 5}, "text", 5, "text"),
    ({"text": b"a"}, "text", b"a", "text"),
    ({"number": "3"}, "number", "3", "a whole number"),
    ({"number": 3.5}, "number", 3.5, "a whole number"),
    ({"number": True}, "number", True, "a whole number"),
    ({"share": "0.5"}, "share", "0.5", "a number"),
    ({"share": False}, "share", False, "a number"),
    ({"flag": "yes"}, "flag", "yes", "true or false"),
    ({"flag": 1}, "flag", 1, "true or false"),
    ({"said": []}, "said", [], "text or a number"),
    ({"said": True}, "said", True, "text or a number"),
    ({"colour": "green"}, "colour", "green", "one of red, blue"),
    ({"colour": 1}, "colour", 1, "one of red, blue"),
    ({"known": 0}, "known", 0, "true or false"),
    ({"maybe": []}, "maybe", [], "text"),
    ({"words": "abc"}, "words", "abc", "a list"),
    ({"words": {"a": 1}}, "words", {"a": 1}, "a list"),
    ({"words": ["a", 1]}, "words[1]", 1, "text"),
    ({"words": [None]}, "words[0]", None, "text"),
    ({"parts": [{"name": "a"}, "b"]}, "parts[1]", "b", "a mapping"),
    ({"parts": [{}]}, "parts[0].name", None, "given (text)"),
    ({"parts": [{"name": "a", "count": "2"}]}, "parts[0].count", "2", "a whole number"),
    ({"part": ["a"]}, "part", ["a"], "a mapping"),
    ({"part": {"name": 1}}, "part.name", 1, "text"),
    ({"sizes": [1]}, "sizes", [1], "a mapping"),
    ({"sizes": {"/opt": "1"}}, "sizes./opt", "1", "a whole number"),
]


@pytest.mark.parametrize(("changed", "path", "value", "expected"), WRONG)
@pytest.mark.parametrize("place", ["", "gpu_stack"])
def test_a_value_of_another_type_is_refused_with_its_path(changed, path, value, expected, place):
    document = changed if "text" in changed or not changed else {"text": "a", **changed}
    with pytest.raises(DocumentError) as raised:
        parse(Document, document, place)
    path = f"{place}.{path}" if place else path
    assert (raised.value.path, raised.value.value, raised.value.expected) == (path, value, expected)
    assert str(raised.value) == f"{path} is {value!r}; it must be {expected}"


@pytest.mark.parametrize("value", [None, [], "text", 5])
def test_a_document_is_a_mapping(value):
    with pytest.raises(DocumentError, match="^the document is .*; it must be a mapping$"):
        parse(Document, value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(DocumentError, match="it must be a whole number"):
        parse(Document, {"text": "a", "number": value})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 10**400])
def test_what_is_no_finite_number_is_refused(value):
    with pytest.raises(DocumentError, match="it must be a number"):
        parse(Document, {"text": "a", "share": value})


def test_the_facts_of_a_node():
    state = {
        "kernel": {"running": "6.1", "installed": None, "headers": ["6.1"]},
        "packages": {"bash": "5", "gone": None},
        "services": {"chrony": {"enabled": True, "active": None}},
        "environments": {"main": {"python": "3.11.2", "packages": {}, "lock": None}},
    }
    assert parse(Observed, state) == Observed(
        kernel=Kernel("6.1", headers=("6.1",)),
        packages={"bash": "5", "gone": None},
        services={"chrony": Service(True, None)},
        environments={"main": Environment("3.11.2")},
    )
    assert parse(Observed, {}) == Observed()
    assert parse(Stack, {}) == Stack()
