# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lock: the stacks a cluster was planned with, so that newer tables never move a running cluster silently.

One entry per kind of host: its inputs (what was asked, and of which host) and the whole stack. The file is also a
valid inventory that sets one private variable, since it may lie in an inventory directory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import yaml

from ..documents.lock import Lock
from ..documents.parsing import DocumentError, parse
from ..drift.components import PACKAGED
from ..problems.problem import Problem, ProblemError

Keys = tuple[str, ...]  # the way to a part of a stack
FORMAT = 2
VARIABLE = "__stack_lock"
HEADER = """---
# The stacks this cluster was planned with, written by the playbook plan. Keep it under version control.
# site installs what is recorded here. To accept what newer tables or requests bring, run plan with -e stack_lock_renew=true.
"""
# Of a stack: what may differ without the stack being another one.
TALK = ("reasons", "warnings", "update", "inputs", "table_version", "kind", "disk_mib", "published")
# Of a stack: what follows from the rest, so that it is told only where nothing else differs. * is any name.
FOLLOWS = (
    *((one.name, "packages") for one in PACKAGED), ("driver", "pinning_packages"), ("driver", "components"), ("driver", "module_stream"),
    ("driver", "held"), ("driver", "conflicting"), ("driver", "precompiled"), ("driver", "dkms_module"),
    ("driver", "installer_options"), ("repository",), ("cuda", "home"), ("cuda", "held"), ("container_toolkit", "cdi"),
    ("container_toolkit", "cdi_refresh"),
    ("environments", "*", "requirements"), ("environments", "*", "index", "url"), ("environments", "*", "conda"),
    ("environments", "*", "build"), ("environments", "*", "libraries"), ("environments", "*", "interpreter", "path"),
    ("environments", "*", "interpreter", "packages"),
)  # fmt: skip

# Of a stack: what nothing read, and is planned no more; a lock may still have it.
DROPPED = (("repository", "key_sha1"), ("repository", "pin_priority"), ("repository", "module_hotfixes"))

# Of a stack: what a lock of an older collection does not have, which is not a difference. * is any name.
ADDED = (("environments", "*", "interpreter"), ("environments", "*", "libraries"))


class LockError(ProblemError):
    """A lock that cannot be read, or that no longer fits a host."""


def read(path: str | None) -> list[dict] | None:
    """Return the entries of a lock file; None where there is none."""
    if not path or not Path(path).is_file():
        return None
    try:
        lock = yaml.safe_load(Path(path).read_text(encoding="utf-8"))["all"]["vars"][VARIABLE]
        entries, number = lock["entries"], lock["format"]
    except (yaml.YAMLError, KeyError, TypeError, OSError, UnicodeDecodeError, RecursionError) as error:
        raise LockError(Problem("lock_unreadable", path)) from error
    if number != FORMAT:
        raise LockError(Problem("lock_format", path, {"found": number, "supported": FORMAT}))
    try:
        parse(Lock, lock)
    except DocumentError as error:
        wrong = {"place": error.path, "value": error.value, "expected": error.expected}
        raise LockError(Problem("lock_damaged", path, wrong)) from error
    return entries


def text(entries: Sequence[Mapping]) -> str:
    """Return the lock file for these entries, in an order that does not depend on theirs."""
    ordered = sorted((plain(entry) for entry in entries), key=lambda entry: _key(entry["inputs"]))
    lock = {"format": FORMAT, "entries": ordered}
    return HEADER + yaml.safe_dump({"all": {"vars": {VARIABLE: lock}}}, sort_keys=True, width=120)


def planned_text(plan: Mapping, path: str) -> str:
    """Return the lock file with the stacks of a plan (see plan.plan) put into what the one at this path has; "" means no file."""
    return text(renewed(read(path), [answer["stack"] for kind in plan["stacks"] for answer in kind["answers"]]))


def plain(value):
    """Return ordinary Python values out of whatever Ansible wraps them in."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, Iterable):
        return [plain(one) for one in value]
    return value


def renewed(entries: Sequence[Mapping] | None, stacks: Iterable[Mapping]) -> list[dict]:
    """Return the entries with the stacks of these hosts put in; entries of hosts that were not planned stay.

    So do entries of an older collection that only lack what was not planned then (ADDED).
    """
    by_inputs = {_key(entry["inputs"]): plain(entry) for entry in entries or ()}
    for stack in stacks:
        stack = plain({name: value for name, value in stack.items() if name != "update"})
        inputs = stack.pop("inputs")
        old = by_inputs.get(_key(inputs))
        if old is None or old["stack"] != _as_known_to(old["stack"], stack):
            by_inputs[_key(inputs)] = {"inputs": inputs, "stack": stack}
    return list(by_inputs.values())


def _as_known_to(old: Mapping, stack: Mapping) -> dict:
    """Return the stack without what the old one, by name, does not plan in its environments (ADDED)."""
    known = {one["name"]: one for one in old["environments"]}
    added = {rule[-1] for rule in ADDED}
    environments = [
        {key: value for key, value in one.items() if key not in added or key in known.get(one["name"], one)}
        for one in stack["environments"]
    ]
    return {**stack, "environments": environments}


def _key(inputs: Mapping) -> str:
    """One text for equal inputs, whatever order their keys came in."""
    return json.dumps(plain(inputs), sort_keys=True)


def entry_for(entries: Sequence[Mapping] | None, inputs: Mapping) -> Mapping | None:
    """Return the entry of exactly this host and request."""
    return next((entry for entry in entries or () if entry["inputs"] == plain(inputs)), None)


def nearest_entry(entries: Sequence[Mapping], inputs: Mapping) -> Mapping:
    """Return the entry that differs from this host and request in the fewest points."""
    return min(entries, key=lambda entry: len(changes(entry, inputs)))


def locked_stack(entry: Mapping, new: Mapping | None) -> dict:
    """Return the stack of an entry; its ``update`` says what renewing would make of it."""
    update = differences(entry, new) if new else ["the tables now refuse this stack"]
    return {**entry["stack"], "inputs": entry["inputs"], "update": update}


def changed_inputs(entries: Sequence[Mapping], inputs: Mapping) -> str:
    """Return the differences from the entry that comes nearest."""
    return "; ".join(changes(nearest_entry(entries, inputs), inputs)) if entries else "it has no entries"


def changes(entry: Mapping, inputs: Mapping) -> list[str]:
    """Return the differences of host and request from an entry's, a text for each."""
    old, new = entry["inputs"], plain(inputs)
    return [text for name in new for text in _change(name, old.get(name), new[name])]


def _change(name: str, old, new) -> list[str]:
    """Return the differences of an input: of two dictionaries, each key that differs."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return [text for key in {**old, **new} for text in _change(f"{name}.{key}", old.get(key), new.get(key))]
    return [f"{name} was {_short(old)} and is {_short(new)}"] if old != new else []


def _short(value) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {one}" for name, one in value.items()) or "empty"
    if isinstance(value, list):
        return ", ".join(str(one) for one in value) or "none"
    return "none" if value is None else str(value)


def differences(entry: Mapping, new: Mapping) -> list[str]:
    """Return the changes from a locked stack to a new one, a line for each part.

    What follows from the rest (FOLLOWS), such as packages from versions, is told only when nothing else is different.
    """
    before, after = (
        _flat({name: value for name, value in plain(stack).items() if name not in TALK})
        for stack in (entry["stack"], new)
    )
    paths = [path for path in {**before, **after} if before.get(path, "") != after.get(path, "")]
    paths = [path for path in paths if path not in DROPPED and not _unheard_of(path, before)]
    told = [path for path in paths if not follows(path)] or paths
    return [f"{'.'.join(path)}: {before.get(path) or 'none'} -> {after.get(path) or 'none'}" for path in told]


def follows(path: Keys) -> bool:
    """Return True if a part of a stack follows from the rest."""
    return _under(path, FOLLOWS)


def _under(path: Keys, rules: Iterable[Keys]) -> bool:
    return any(
        len(path) >= len(rule) and all(key in ("*", part) for key, part in zip(rule, path, strict=False))
        for rule in rules
    )


def _unheard_of(path: Keys, before: Mapping[Keys, str]) -> bool:
    """Return True if the lock is of a collection that did not plan this part yet, for an environment it has."""
    if not _under(path, ADDED) or path[:2] not in {one[:2] for one in before}:
        return False
    return not any(one[:3] == path[:3] for one in before)


def _flat(value, path: Keys = ()) -> dict[Keys, str]:
    """Return the leaves by their paths; entries of lists that have a name go by it."""
    if isinstance(value, Mapping) and value:
        return {key: one for name, part in value.items() for key, one in _flat(part, (*path, name)).items()}
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        named = {str(one.get("name", one.get("model", place))): one for place, one in enumerate(value)}
        return {key: one for name, part in named.items() for key, one in _flat(_unnamed(part), (*path, name)).items()}
    if isinstance(value, list):
        return {path: ", ".join(str(one) for one in value)}
    return {path: "" if value is None or value == {} else str(value)}


def _unnamed(part: Mapping) -> Mapping:
    return {name: value for name, value in part.items() if name not in ("name", "model")}
