# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what Slurm is told on a node with what was measured of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...documents.comparison import Comparison, Remedy, Status, compared
from ...documents.slurm import Asked, Job
from ...problems.phrases import clean
from .lines import GRES

COMPONENT = "slurm"


def compare_lines(desired: Mapping[str, Sequence[str]], found: Mapping[str, Sequence[str] | None]) -> list[Comparison]:
    """Return a comparison for each file: its lines about the node, without the node's name, in any order."""
    return [_compared(file, lines, found.get(file)) for file, lines in desired.items()]


def _compared(file: str, desired: Sequence[str], found: Sequence[str] | None) -> Comparison:
    seen = None if found is None else _shown(found)
    return compared(
        COMPONENT, file, _shown(desired), seen, sorted(found or ()) == sorted(desired), Remedy.RECONFIGURE, _kind(file)
    )


def _kind(file: str) -> str:
    return "gpus" if file == GRES else "node"


def _shown(lines: Sequence[str]) -> str:
    return "; ".join(lines) or "no line"


# States of a node that can be given jobs (sinfo(1), NODE STATE CODES); others are somebody's or some fault's decision.
AVAILABLE = ("idle", "mixed", "allocated", "completing", "planned", "reserved")


def compare_services(names: Sequence[str], state: Mapping[str, Mapping[str, Any]]) -> list[Comparison]:
    """Return a comparison for each service of a node. state: what systemd says."""
    return [_service(name, state.get(name) or {}) for name in names]


def _service(name: str, found: Mapping[str, Any]) -> Comparison:
    known = [found.get(key) for key in ("enabled", "active")]
    words = " and ".join(key if found.get(key) else f"not {key}" for key in ("enabled", "active"))
    agrees = None if None in known else all(known)
    return compared(COMPONENT, name, "enabled and active", words, agrees, Remedy.APPLY, "service")


def compare_asked(asked: Asked | None, gpus: int = 0, wants_job: bool = False, ours: bool = True) -> list[Comparison]:
    """Return comparisons of what the controller says: that it and its accounting answer, that it trusts the node, and whether jobs can run there.

    asked: None where it was not asked, which verification does; gpus: of the node; wants_job: whether a job was to be run; ours: whether the
    role installed the cluster. One of others may have its accounting anywhere, and no run of site repairs it.
    """
    if asked is None or not (ours or asked.controller):
        return []
    site = Remedy.APPLY if ours else Remedy.OTHERS
    found = [_port("slurmctld", asked.controller, asked.reachable, site)]
    if ours:
        found.append(_port("slurmdbd", asked.controller, asked.accounting, site))
    if not asked.reachable or (asked.answers is None and not ours):
        return found
    trusted = (
        "takes this node" if asked.answers else "refuses this node: its key of munge, or its clock, is another one"
    )
    found.append(compared(COMPONENT, "slurmctld", "takes this node", trusted, asked.answers, site, "trust"))
    if asked.answers:
        seen = asked.state or "not of the cluster"
        words = seen if asked.state in AVAILABLE else f"{seen} ({clean(asked.reason) or 'without a reason'})"
        found.append(compared(COMPONENT, "node", "available", words, asked.state in AVAILABLE, Remedy.RESUME, "state"))
    if wants_job:
        # Which users, partitions and limits others have is theirs to say; how many GPUs the node has is ours.
        did_not_run = asked.job is not None and asked.job.seen is None
        found.append(_job(asked.job, gpus, site if ours or did_not_run else Remedy.RECONFIGURE))
    return found


def _job(job: Job | None, gpus: int, remedy: Remedy) -> Comparison:
    """Return comparisons of what a job saw. None was run where the node is not idle: that is another check's, or other jobs run there."""
    desired = f"a job that sees {gpus} GPU{'s' * (gpus != 1)}"
    if job is None:
        return compared(COMPONENT, "job", desired, None, None, Remedy.MEASURE, "job")
    seen = f"a job did not run: {clean(job.reason)}" if job.seen is None else f"a job sees {job.seen}"
    return compared(COMPONENT, "job", desired, seen, job.seen == gpus, remedy, "job")


def _port(service: str, address: str, answers: bool, remedy: Remedy) -> Comparison:
    seen = "answers" if answers else f"does not answer at {address or 'any address'}"
    return compared(COMPONENT, service, "answers", seen, answers, remedy, "controller")


def compare_refused(sentence: str) -> list[Comparison]:
    """Return the differences on a node that cannot be described to Slurm."""
    return [compared(COMPONENT, GRES, "as measured", sentence, False, Remedy.DECLARE, "gpus")]


def compare_unmeasured() -> list[Comparison]:
    """Return the one comparison of a node that is Slurm's and was not looked at."""
    return [compared(COMPONENT, GRES, "as measured", None, None, Remedy.MEASURE, "gpus")]


def compare_unwanted(recorded: bool) -> list[Comparison]:
    """Return the differences on a host that is not Slurm's: that it still has files for it."""
    if not recorded:
        return []
    return [Comparison(COMPONENT, GRES, "as it was", "ours", Status.UNWANTED, Remedy.APPLY, "gpus")]
