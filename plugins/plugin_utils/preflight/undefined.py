# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find names in templates that nothing defines. Pure: a value and what is known in, names out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jinja2 import Environment, TemplateSyntaxError, nodes
from jinja2.defaults import DEFAULT_NAMESPACE

# What every template may use: Jinja's own globals, and those that Ansible adds to them.
GLOBALS = frozenset(
    {*DEFAULT_NAMESPACE, "loop", "lookup", "query", "q", "now", "undef", "omit", "role_name", "role_path"}
)
FACTS = "ansible_"
PARSER = Environment(autoescape=True)  # parses only: nothing is rendered


def undefined_names(value: Any, known: Mapping[str, Any]) -> set[str]:
    """Return the names that the templates in a value use, also by way of other variables, and that are not known.

    known: variables, unresolved, by name. Facts and what is not a template have none; neither has a template that cannot be parsed.
    """
    found: set[str] = set()
    seen: set[str] = set()
    pending = list(_used(value))
    while pending:
        name = pending.pop()
        if name in seen or name in GLOBALS or name.startswith(FACTS):
            continue
        seen.add(name)
        if name in known:
            pending += _used(known[name])
        else:
            found.add(name)
    return found


def has_template(value: Any) -> bool:
    """Return True if a value has a template that uses a name, so that no host has to be looked at where it has none."""
    return next(_used(value), None) is not None


def _used(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for one in value.values():
            yield from _used(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _used(one)
    elif isinstance(value, str) and ("{{" in value or "{%" in value):
        try:
            names = list(PARSER.parse(value).find_all(nodes.Name))
        except TemplateSyntaxError:
            return
        stored = {one.name for one in names if one.ctx != "load"}
        yield from (one.name for one in names if one.name not in stored)
