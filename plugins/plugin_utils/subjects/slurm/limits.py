# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QoS and accounts that a user declares: what cannot be meant, and what slurm.conf has to say for them to count.

Names are in lower case, as the accounting keeps them (sacctmgr(1), DESCRIPTION), and none is one that sacctmgr takes for a list, a
number or a sign before a list. Limits count only with AccountingStorageEnforce (slurm.conf(5)); a QoS is wanted for each job then.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...problems.problem import Problem
from ..options import as_list

QOS, ACCOUNTS = "slurm_qos", "slurm_accounts"
# The QoS that Slurm makes itself, for users without a declared one; and the account above all.
NORMAL, ROOT = "normal", "root"
_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,39}")
# useradd(8) of the distributions.
_USER = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")
# Of numbers: the least and the most. Slurm keeps 32 bits; a year is longer than any job.
_RANGES = {
    "priority": (0, 1_000_000), "max_minutes": (1, 525_600), "gpus": (0, 1_000_000), "gpus_per_user": (0, 1_000_000),
    "jobs_per_user": (0, 1_000_000), "shares": (1, 1_000_000), "gpus_per_job": (0, 1_000_000),
}  # fmt: skip
ENFORCED = "associations,limits,qos"
# In slurm.conf, so that whoever reads a difference sees it.
COMMENT = "# QoS or limits are declared: users without an account cannot submit jobs, and those that wait stay pending (InvalidAccount).\n"
Entries = Sequence[Mapping[str, Any]]


def problems(qos: Entries, accounts: Entries) -> Iterator[Problem]:
    """Yield the problems of each variable by itself. Entries without a name are refused by the argument spec."""
    qos, accounts = ([one for one in entries if one.get("name")] for entries in (qos, accounts))
    for variable, entries in ((QOS, qos), (ACCOUNTS, accounts)):
        names = [str(one["name"]) for one in entries]
        for name in dict.fromkeys(names):
            if not _NAME.fullmatch(name) or (variable, name) == (ACCOUNTS, ROOT):
                yield Problem("slurm_no_account_name", name, {"variable": variable})
            elif names.count(name) > 1:
                yield Problem("slurm_twice", name, {"variable": variable})
        for one in entries:
            for key, (least, most) in _RANGES.items():
                if one.get(key) is not None and not least <= int(one[key]) <= most:
                    detail = {"variable": variable, "key": key, "value": one[key], "least": least, "most": most}
                    yield Problem("slurm_no_limit", str(one["name"]), detail)
    yield from _preempted(qos)
    yield from _places(accounts)
    for one in accounts:
        yield from _members(one)


def _preempted(qos: Entries) -> Iterator[Problem]:
    names = {str(one["name"]) for one in qos}
    for one in qos:
        for other in map(str, as_list(one.get("preempts"))):
            if other not in names or other == one["name"]:
                yield Problem("slurm_no_preempted", str(one["name"]), {"other": other})


def _places(accounts: Entries) -> Iterator[Problem]:
    """Yield accounts below an undeclared one, or below themselves."""
    above = {str(one["name"]): str(one.get("parent") or ROOT) for one in accounts if one["name"] != ROOT}
    for name, parent in above.items():
        if parent not in (ROOT, *above):
            yield Problem("slurm_no_parent", name, {"other": parent})
        seen, upper = {name}, parent
        while upper in above and upper not in seen:
            seen.add(upper)
            upper = above[upper]
        if upper == name:
            yield Problem("slurm_circle", name)


def _members(account: Mapping[str, Any]) -> Iterator[Problem]:
    name, allowed = str(account["name"]), list(map(str, as_list(account.get("qos"))))
    users = list(map(str, as_list(account.get("users"))))
    for user in dict.fromkeys(users):
        if not _USER.fullmatch(user) or user == ROOT:
            yield Problem("slurm_no_user_name", user, {"account": name})
        elif users.count(user) > 1:
            yield Problem("slurm_user_twice", user, {"account": name})
    if account.get("default_qos") and str(account["default_qos"]) not in allowed:
        yield Problem("slurm_no_default_qos", name, {"other": account["default_qos"]})


def misfits(qos: Entries, accounts: Entries) -> Iterator[Problem]:
    """Yield the undeclared QoS of accounts."""
    known = {NORMAL, *(str(one.get("name")) for one in qos)}
    for one in accounts:
        for name in dict.fromkeys(map(str, as_list(one.get("qos")))):
            if name not in known:
                yield Problem("slurm_unknown_qos", name, {"account": str(one.get("name"))})


def keys(qos: Entries, accounts: Entries) -> dict[str, str]:
    """Return the keys of slurm.conf: none where accounts only share, with which jobs of users without an account go on."""
    limited = any(one.get(key) not in (None, "", []) for one in accounts for key in ("gpus", "gpus_per_job", "qos"))
    found = {"AccountingStorageEnforce": ENFORCED} if qos or limited else {}
    if any(int(one.get("priority") or 0) for one in qos):
        # As much as fair share: without a weight, priorities of QoS count for nothing (slurm.conf(5), PriorityWeightQOS).
        found["PriorityWeightQOS"] = "10000"
    if any(as_list(one.get("preempts")) for one in qos):
        # Suspended jobs would keep their GPUs (slurm.conf(5), PreemptMode, SUSPEND).
        found.update(PreemptType="preempt/qos", PreemptMode="REQUEUE")
    return found


def declared(cluster: str, qos: Entries, accounts: Entries) -> dict[str, Any]:
    """Return the options of module slurm_accounting."""
    return {"cluster": cluster, "qos": [dict(one) for one in qos], "accounts": [dict(one) for one in accounts]}
