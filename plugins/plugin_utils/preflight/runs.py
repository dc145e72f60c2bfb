# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of site that meet: each leaves a file on the controller while its process lives, and a second one on the same nodes is refused."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ..documents.files import write_json
from ..problems.phrases import hostlist
from ..problems.problem import Problem


@dataclass(frozen=True)
class Run:
    """A run. began: when its process started, as the kernel counts; since: for people, ISO 8601; nodes: address of each by its name."""

    machine: str
    user: str
    pid: int
    began: str
    since: str
    nodes: Mapping[str, str]


def node_address(name: str, variables: Mapping[str, Any]) -> str:
    """Return the address that tells one machine from another: where Ansible connects to, as far as it is known without a template."""
    return f"{variables.get('ansible_host', name)}:{variables.get('ansible_port', 22)}"


def process_start(pid: int) -> str:
    """Return when a process started, in ticks since boot; empty when there is none, or no procfs.

    One that has ended, and for which its parent has not waited yet, does not count.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    after_name = text.rpartition(")")[2].split()
    return "" if after_name[0] in "ZX" else after_name[19]  # proc_pid_stat(5), fields 3 and 22


def is_alive(run: Run) -> bool:
    """Tell whether the process of a run on this machine still lives."""
    if run.began:
        return process_start(run.pid) == run.began
    try:
        os.kill(run.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def claim(directory: Path, own: Run, alive: Callable[[Run], bool] = is_alive) -> list[Problem]:
    """Return a problem for each other run on the same nodes; leave a file for this one if there is none.

    A file whose process is gone is removed.
    """
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (directory / "lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        file = directory / f"{own.machine}-{own.pid}.json"
        problems = [
            found for path in sorted(directory.glob("*.json")) if path != file for found in _met(path, own, alive)
        ]
        if not problems:
            write_json(file, asdict(own))
    return problems


def _met(path: Path, own: Run, alive: Callable[[Run], bool]) -> Iterable[Problem]:
    other = _read(path)
    if other is None:
        return
    here = other.machine == own.machine
    if here and not alive(other):
        path.unlink()
        return
    addresses = set(own.nodes.values())
    shared = [name for name, address in other.nodes.items() if address in addresses]
    if shared:
        code = "run_in_progress" if here else "run_elsewhere"
        yield Problem(code, hostlist(shared), {**asdict(other), "file": str(path)})


def _read(path: Path) -> Run | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return Run(**{field.name: found[field.name] for field in fields(Run)})
    except (OSError, ValueError, TypeError, KeyError):
        return None
