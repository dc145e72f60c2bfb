# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables of one of many hosts, of which few have templates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

FACTS = "ansible_facts"
# What can be taken as it is unless it has a template. Other values are encrypted, or objects of Ansible's own.
PLAIN = (str, int, float, list, tuple, dict)


def may_be_template(value: Any) -> bool:
    """Return True if a value has text that Jinja might read; Ansible itself would render all of it to tell."""
    if isinstance(value, Mapping):
        return any(may_be_template(key) or may_be_template(one) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        return any(map(may_be_template, value))
    if isinstance(value, str):
        return "{{" in value or "{%" in value or "{#" in value
    return not (value is None or isinstance(value, PLAIN))  # encrypted, or an object of Ansible's own


class Variables(Mapping[str, Any]):
    """Take a value as it was written where that is what it means, since Ansible needs a millisecond to resolve a host's variables.

    written: the variables with their templates; resolved: gives those that Ansible has resolved, and is asked once at most
    """

    def __init__(self, written: Mapping[str, Any], resolved: Callable[[], Mapping[str, Any]]) -> None:
        self._written, self._ask = written, resolved
        self._resolved: Mapping[str, Any] | None = None

    def __getitem__(self, name: str) -> Any:
        value = self._written[name]
        if name == FACTS or not may_be_template(value):
            return value
        if self._resolved is None:
            self._resolved = self._ask()
        return self._resolved[name]

    def __contains__(self, name: object) -> bool:
        return name in self._written

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def __len__(self) -> int:
        return len(self._written)
