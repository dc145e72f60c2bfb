# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turn JSON values into dataclasses: validated and converted once, where a document enters.

Our own code, because Galaxy users have nothing but ansible-core on the controller.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, NewType, TypeVar

T = TypeVar("T")
# Text, or a number that people read as text.
Words = NewType("Words", str)
# Characters of a value that an error shows.
LONGEST = 200


class DocumentError(ValueError):
    """A document that is not of its type: ``path`` (dotted), ``value`` and the ``expected`` type in words."""

    def __init__(self, path: str, value: object, expected: str) -> None:
        shown = repr(value)[:LONGEST]
        super().__init__(f"{path or 'the document'} is {shown}; it must be {expected}")
        self.path, self.value, self.expected = path, value, expected


def parse(cls: type[T], value: object, path: str = "") -> T:
    """Return VALUE as the dataclass CLS; raise DocumentError for a value of the wrong type or a missing key.

    Keys that the class does not have are ignored: newer writers may know more. A key that is absent, or null where the
    type has no None, takes the field's default. A class may raise ValueError, with the expected values in words.
    """
    if not isinstance(value, Mapping):
        raise DocumentError(path, value, "a mapping")
    found = {}
    for name, (kind, required) in _fields(typing.cast(type, cls)).items():
        place = f"{path}.{name}" if path else name
        given = value.get(name)
        if given is None and not required and not _optional(kind):
            continue
        if name not in value:
            if required:
                raise DocumentError(place, None, f"given ({_words(kind)})")
            continue
        found[name] = _convert(kind, given, place)
    try:
        return cls(**found)
    except ValueError as error:  # of a class that wants its values to agree
        raise DocumentError(path, value, str(error)) from None


@functools.cache
def _fields(cls: type) -> dict[str, tuple[Any, bool]]:
    """Return {name: (type, whether it has no default)}."""
    hints = typing.get_type_hints(cls)
    missing = dataclasses.MISSING
    return {
        field.name: (hints[field.name], field.default is missing and field.default_factory is missing)
        for field in dataclasses.fields(cls)
    }


def _convert(kind: Any, value: object, path: str) -> Any:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or kind is object:
        return value
    if origin in (types.UnionType, typing.Union):
        return None if value is None else _convert(_present(kind), value, path)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise DocumentError(path, value, "a list")
        return tuple(_convert(arguments[0], item, f"{path}[{place}]") for place, item in enumerate(value))
    if origin is dict:
        if not isinstance(value, Mapping):
            raise DocumentError(path, value, "a mapping")
        return {str(key): _convert(arguments[1], item, f"{path}.{key}") for key, item in value.items()}
    if dataclasses.is_dataclass(kind):
        return parse(typing.cast(type, kind), value, path)
    return _scalar(kind, value, path)


def _scalar(kind: Any, value: object, path: str) -> Any:
    """Ansible wraps text and numbers in subclasses; what comes out are the plain types."""
    if kind is bool and isinstance(value, bool):
        return value
    if kind is str and isinstance(value, str):
        return str(value)
    if kind is Words and isinstance(value, (str, int, float)) and not isinstance(value, bool):
        return str(value)
    if kind in (int, float) and isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            number = kind(value)
        except (OverflowError, ValueError):  # not finite, or too large for a float
            number = None
        if number is not None and (math.isfinite(number) if kind is float else number == value):
            return number
    if isinstance(kind, type) and issubclass(kind, Enum) and isinstance(value, str):
        with contextlib.suppress(ValueError):
            return kind(value)
    raise DocumentError(path, value, _words(kind))


def _optional(kind: Any) -> bool:
    return kind is Any or type(None) in typing.get_args(kind)


def _present(kind: Any) -> Any:
    """Return X of ``X | None``."""
    return next(one for one in typing.get_args(kind) if one is not type(None))


def _words(kind: Any) -> str:
    names = {str: "text", Words: "text or a number", int: "a whole number", float: "a number", bool: "true or false"}
    if type(None) in typing.get_args(kind):
        return f"{_words(_present(kind))} or null"
    if typing.get_origin(kind) is tuple:
        return "a list"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return f"one of {', '.join(str(one.value) for one in kind)}"
    return names.get(kind, "a mapping")
