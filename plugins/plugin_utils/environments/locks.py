# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lock files of Python environments: who asks for what, who solves it, and who has it already. Pure."""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

with suppress(ImportError):  # ansible-core depends on it; only ansible-test's import check runs without it
    from packaging.utils import canonicalize_name

from ..documents.observed import Environment as Found
from ..documents.parsing import parse
from ..documents.stack import Environment, System
from ..drift.environments import beside_conda, by_conda, compare_interpreter, compare_with_lock, compiled_packages
from ..drift.interpreters import executable
from ..drift.requests import request_digest
from ..problems.text import describe
from .pins import lock_problem, read_pins

__all__ = ["assign", "describe_environments", "lock_texts", "locked_packages", "request_of"]

_DIGEST = re.compile(r"^# request: (?P<digest>[0-9a-f]{16})$", re.MULTILINE)


def locked_packages(text: str) -> dict[str, str]:
    """Return {canonical name: version} of a lock; LockError, a ValueError, for anything else."""
    return {name: pin.version for name, pin in read_pins(text).items()}


def request_of(text: str) -> str | None:
    """Return the digest of the request that a lock answers, None where it names none."""
    match = _DIGEST.search(text)
    return match["digest"] if match else None


def _is_installed(lock: str, planned: Environment, found: Mapping | None) -> bool:
    """Return True if the environment holds exactly what the lock says: drift names no difference.

    One that role python_env has to rebuild does not count, whatever was measured in it before.
    """
    if not lock or not found:
        return False
    observed, compiled = parse(Found, found), compiled_packages(planned)
    installed: dict[str, str | None] = {
        str(canonicalize_name(name)): version for name, version in observed.packages.items() if name not in compiled
    }
    comparisons = compare_interpreter("environment", planned, observed, known=True)
    locked = dict[str, str | None](locked_packages(lock))
    return (
        not _changed_packages(planned, found)
        and not any(one.differs for one in comparisons)
        and not compare_with_lock("environment", locked, beside_conda(planned, locked, installed))
    )


def _changed_packages(planned: Environment, found: Mapping | None) -> list[str]:
    """Return the packages of the lock whose files are not as they were installed, which the installer takes for installed."""
    return sorted(set((found or {}).get("changed_files") or {}) - set(compiled_packages(planned)))


def _wheel_index(environment: Mapping, override: str | None, no_index: bool) -> dict | None:
    """Return the framework's own wheel index, or None when wheels come from elsewhere.

    override: None keeps the resolver's address, an empty string drops it, {name} in it stands for the index name.
    """
    index = environment.get("index")
    if not index or no_index or override == "":
        return None
    return {"name": index["name"], "url": (override or index["url"]).replace("{name}", index["name"])}


def lock_texts(files: Iterable[Mapping]) -> dict[str, str]:
    """Return {environment name: text of its lock}, from the looped results of allreduce.gpu.read_file."""
    texts = {}
    for result in files:
        try:
            text = base64.b64decode(result.get("content") or "", validate=True).decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            text = ""
        texts[result["item"]["name"]] = text
    return texts


def describe_environments(
    environments: Iterable[Mapping],
    platform: Mapping,
    files: Iterable[Mapping],
    installed: Mapping | None,
    index_url: str | None = None,
    no_index: bool = False,
    relock: bool = False,
) -> dict[str, dict]:
    """Return a host's environments by name: what each asks for, the host's valid lock, whether that is installed, and which
    packages of it have to be installed again; conda: whether they are installed next to what conda brings; executable: its interpreter;
    refused: why the host's text is not a lock, though it claims to be one of this request; relock: whether it has to be solved again.

    platform: {id, version, arch}; files: results of module read_file; installed: environments of gpu_node_state
    """
    texts = lock_texts(files)
    described = {}
    for environment in environments:
        index = _wheel_index(environment, index_url, no_index)
        planned = parse(Environment, environment)
        digest = request_digest(planned, parse(System, platform))
        text = texts.get(environment["name"], "")
        found = (installed or {}).get(environment["name"])
        answers = request_of(text) == digest
        problem = lock_problem(text, planned.requirements) if answers else None
        lock = text if answers and problem is None and not relock else ""
        described[environment["name"]] = {
            "name": environment["name"],
            "python": environment["python"],
            "requirements": list(environment["requirements"]),
            "index": index,
            "digest": digest,
            "lock": lock,
            "refused": describe(problem) if problem else "",
            "relock": relock,
            "installed": _is_installed(lock, planned, found),
            "reinstall": _changed_packages(planned, found),
            "conda": by_conda(planned),
            "executable": executable(planned, parse(System, platform)),
        }
    return described


def assign(
    hosts: Mapping[str, Mapping[str, Mapping]], kept: Mapping[str, str] | None = None
) -> dict[str, dict[str, str]]:
    """Map the digest of each request to the host that answers for it and its lock.

    The lock is that which the controller keeps; without one, that of most hosts, so that a new node gets what the others have, and a
    single one cannot choose for them. An empty lock is to be solved by that host, the first that asks.

    hosts: name -> its described environments, in the play's order; kept: digest -> the lock that the controller keeps
    """
    asking: dict[str, list[tuple[str, Mapping]]] = {}
    for host, environments in hosts.items():
        for environment in environments.values():
            asking.setdefault(environment["digest"], []).append((host, environment))
    return {digest: _answer(asked, (kept or {}).get(digest, "")) for digest, asked in asking.items()}


def _answer(asked: Sequence[tuple[str, Mapping]], kept: str) -> dict[str, str]:
    locks = Counter(one["lock"] for _host, one in asked if one["lock"])
    common = locks.most_common(1)[0][0] if locks else ""
    lock = common if not kept or any(one["relock"] for _host, one in asked) else kept
    return {"host": next((host for host, one in asked if lock and one["lock"] == lock), asked[0][0]), "lock": lock}
