# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the value of a role variable with its argument spec, down to the keys of dictionaries."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.errors import ArgumentValueError

from ..problems.problem import Problem

# What Ansible would convert without a word: a dictionary or a list to the text of its Python form, a number to a list of its text.
COLLECTIONS = (Mapping, list, tuple)
NOT_CONVERTED: dict[str, tuple[type, ...]] = {"str": COLLECTIONS, "path": COLLECTIONS, "list": (int, float)}
# Ansible's check of a number takes more, or ends with an error of its own; int() and float() read all of these.
NUMBERS = {
    "int": re.compile(r"\s*[+-]?[0-9]+\s*"),
    "float": re.compile(r"\s*[+-]?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?\s*", re.I),
}
LARGEST = 2**63


def value_problems(path: str, value: Any, option: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of a value, about the variable, key or element at this path.

    option: the variable's entry in an argument spec
    """
    if value is None and option.get("default") is None:
        return
    kind, choices = option.get("type", "str"), option.get("choices")
    if isinstance(value, NOT_CONVERTED.get(kind, ())) or _is_no_number(value, kind):
        yield Problem("wrong_type", path, {"type": kind, "value": value})
        return
    if kind == "str" and isinstance(value, float):
        yield Problem("number_without_quotes", path, {"value": value})
        return
    # With a default, null is a value; without, it says that nothing is set.
    spec = {"type": kind, "default": option.get("default"), **({"choices": choices} if choices else {})}
    result = ArgumentSpecValidator({"value": spec}).validate({"value": value})
    if result.error_messages:
        wrong_choice = any(isinstance(error, ArgumentValueError) for error in result.errors.errors)
        yield (
            Problem("wrong_choice", path, {"choices": list(choices), "value": value})
            if wrong_choice and choices
            else Problem("wrong_type", path, {"type": kind, "value": value})
        )
        return
    yield from _parts(path, result.validated_parameters["value"], option)


def _is_no_number(value: Any, kind: str) -> bool:
    """Return True if a value for a number is text that is none, not finite, or larger than a counter."""
    if kind not in NUMBERS or isinstance(value, bool):
        return False
    if isinstance(value, str):
        if len(value) > 30 or not NUMBERS[kind].fullmatch(value):
            return True
        value = float(value)
    return isinstance(value, (int, float)) and not -LARGEST < value < LARGEST


def _parts(path: str, value: Any, option: Mapping[str, Any]) -> Iterator[Problem]:
    keys = option.get("options")
    if isinstance(value, list):
        element = {"type": option.get("elements", "raw"), "options": keys}
        for number, one in enumerate(value):
            yield from value_problems(f"{path}[{number}]", one, element)
    elif isinstance(value, Mapping) and keys:
        yield from _key_problems(path, value, keys)


def _key_problems(path: str, value: Mapping[str, Any], keys: Mapping[str, Mapping[str, Any]]) -> Iterator[Problem]:
    for key, one in value.items():
        if key in keys:
            yield from value_problems(f"{path}.{key}", one, keys[key])
        else:
            nearest = difflib.get_close_matches(str(key), keys, n=1)
            yield (
                Problem("misspelt_key", f"{path}.{key}", {"nearest": nearest[0]})
                if nearest
                else Problem("unknown_key", f"{path}.{key}", {"keys": list(keys)})
            )
    for key, option in keys.items():
        if option.get("required") and key not in value:
            yield Problem("missing_key", path, {"key": key})
