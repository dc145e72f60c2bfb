# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sacctmgr with an accounting of its own, for what the role asks of it: it prints, changes and refuses as the real one."""

import json
import re
from types import SimpleNamespace

from ansible_collections.allreduce.gpu.plugins.module_utils.machine.files import FileTree
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.slurm_accounting import RECORD, settle

CLUSTER = "cluster"
QOS = {
    "Priority": "0", "MaxWall": "", "GrpTRES": "", "MaxTRESPerUser": "", "MaxJobsPerUser": "", "Preempt": "",
}  # fmt: skip
ACCOUNT = {
    "ParentName": "", "FairShare": "1", "GrpTRES": "", "MaxTRESPerJob": "", "QOSLevel": "", "DefaultQOS": "",
}  # fmt: skip
TRES = ("GrpTRES", "MaxTRESPerUser", "MaxTRESPerJob")


class Refused(Exception):
    """What the real one says and ends with 1 for."""


class Sacctmgr:
    """qos: name -> fields; accounts: name -> fields; users: (account, user, partition); defaults: user -> account.

    jobs: accounts with running jobs; asked: the arguments of each change.
    """

    def __init__(self):
        self.qos = {"normal": dict(QOS)}
        self.accounts = {"root": {**ACCOUNT, "QOSLevel": "normal"}}
        self.users = {("root", "root", "")}
        self.defaults = {"root": "root"}
        self.registered, self.jobs, self.asked = True, set(), []
        # What "show account" shows, and accounts of another cluster.
        self.listed, self.elsewhere = {"root"}, set()

    def everything(self):
        """All that is there, for comparisons."""
        return (
            {name: dict(one) for name, one in self.qos.items()},
            {name: dict(one) for name, one in self.accounts.items()},
            set(self.users),
            dict(self.defaults),
            set(self.listed),
        )

    def run(self, arguments, data=None):
        """(exit code, output) of a command line that begins with a timeout."""
        assert arguments[0] == "timeout" and arguments[1].isdigit() and arguments[2] == "sacctmgr"
        assert all(re.fullmatch(r"[\w=,./:+-]+", one) for one in arguments), arguments
        words = arguments[3:]
        try:
            if words[:2] == ["--parsable2", "--noheader"]:
                return 0, "".join("|".join(line) + "\n" for line in self._show(words[2:]))
            assert words.pop(0) == "--immediate"
            self.asked.append(words)
            getattr(self, f"_{words[0]}_{words[1]}")(*_parsed(words[2:]))
            return 0, ""
        except Refused as error:
            return 1, str(error)

    def _show(self, words):
        entity, fields = words[1], words[-1][len("format=") :].split(",")
        if entity == "qos":
            return [[{"Name": name, **one}[field] for field in fields] for name, one in self.qos.items()]
        if entity == "tres":
            return [["cpu", ""], ["gres", "gpu"]] if self.registered else [["cpu", ""]]
        assert words[1] == "associations"
        theirs = [
            {**ACCOUNT, "Cluster": "other", "Account": one, "User": "", "Partition": ""} for one in self.elsewhere
        ]
        if not self.registered:
            return [[line[field] for field in fields] for line in theirs]
        users = [
            {**ACCOUNT, "Cluster": CLUSTER, "Account": account, "User": user, "Partition": partition}
            for account, user, partition in sorted(self.users)
        ]
        if "OnlyDefaults" in words:
            assert f"cluster={CLUSTER}" in words
            lines = [one for one in users if self.defaults.get(one["User"]) == one["Account"]]
        else:
            assert "WOPLimits" in words
            lines = [
                {**one, "Cluster": CLUSTER, "Account": name, "User": "", "Partition": ""}
                for name, one in self.accounts.items()
            ]
            lines += users + theirs
        return [[line[field] for field in fields] for line in lines]

    def _add_qos(self, where, given):
        name = where["name"]
        if name in self.qos:
            raise Refused(" Nothing new added.")
        self.qos[name] = dict(QOS)
        self._modify_qos(where, given)

    def _modify_qos(self, where, given):
        for one in filter(None, given.get("Preempt", "").split(",")):
            if one not in self.qos:
                raise Refused(f" You gave a bad qos '{one}'.")
        _set(self.qos[where["name"]], given)

    def _delete_qos(self, where, _given):
        if any(one["DefaultQOS"] == where["name"] for one in self.accounts.values()):
            raise Refused(" Error with request: it is a default")
        del self.qos[where["name"]]
        for one in (*self.accounts.values(), *self.qos.values()):
            for field in {"QOSLevel", "Preempt"} & set(one):
                one[field] = ",".join(name for name in one[field].split(",") if name != where["name"])

    def _add_account(self, where, given):
        name = where["name"]
        if name in self.accounts:
            raise Refused(" Nothing new added.")
        self.accounts[name] = {**ACCOUNT, "ParentName": "root"}
        self.listed.add(name)
        self._modify_account(where, given)

    def _modify_account(self, where, given):
        assert where["cluster"] == CLUSTER
        account = self.accounts[where["name"]]
        changed = dict(account)
        _set(changed, {"ParentName" if key == "Parent" else key: value for key, value in given.items()})
        above = changed["ParentName"]
        while above != "root":
            if above not in self.accounts or above == where["name"]:
                raise Refused(f" Parent account '{above}' doesn't exist on cluster")
            above = self.accounts[above]["ParentName"]
        allowed = set(filter(None, changed["QOSLevel"].split(",")))
        if allowed - set(self.qos):
            raise Refused(" You gave a bad qos")
        if changed["DefaultQOS"] and changed["DefaultQOS"] not in allowed:
            raise Refused(" Error with request: the default is not among its qos")
        account.update(changed)

    def _add_user(self, where, _given):
        if where["account"] not in self.accounts:
            raise Refused(" This account doesn't exist.")
        for user in where["name"].split(","):
            self.users.add((where["account"], user, ""))
            self.defaults.setdefault(user, where["account"])

    def _modify_user(self, where, given):
        assert any(one[:2] == (given["DefaultAccount"], where["name"]) for one in self.users)
        self.defaults[where["name"]] = given["DefaultAccount"]

    def _delete_user(self, where, _given):
        account, user = where["account"], where["name"]
        left = {one for one in self.users if one[1] == user and one[0] != account}
        if left and self.defaults[user] == account:
            raise Refused(" Error with request: You can not remove the default account of a user")
        if account in self.jobs:
            raise Refused(" Error with request: Job(s) active, cancel job(s) before remove\n  JobID = 1")
        self.users -= {one for one in self.users if one[:2] == (account, user)}
        if not left:
            del self.defaults[user]

    def _delete_account(self, where, _given):
        if where["name"] in self.jobs:
            raise Refused(" Error with request: Job(s) active, cancel job(s) before remove\n  JobID = 1")
        for name in [name for name, one in self.accounts.items() if one["ParentName"] == where["name"]]:
            self._delete_account({**where, "name": name}, {})
        del self.accounts[where["name"]]
        if "cluster" not in where:
            self.listed.discard(where["name"])
            self.elsewhere.discard(where["name"])
        self.users = {one for one in self.users if one[0] != where["name"]}


def _parsed(words):
    """What a command is about, and what it sets."""
    where, given = {}, {}
    for word in words:
        if word in ("where", "set"):
            continue
        key, _equals, value = word.partition("=")
        (where if key in ("name", "cluster", "account") else given)[key] = value
    return where, given


def _set(fields, given):
    for key, value in given.items():
        if key in TRES:
            pairs = dict(one.split("=") for one in fields[key].split(",") if one)
            pairs.update(one.split("=") for one in value.split(","))
            fields[key] = ",".join(f"{name}={count}" for name, count in pairs.items() if count != "-1")
        elif key == "MaxWall" and value != "-1":
            days, rest = divmod(int(value), 1440)
            fields[key] = f"{days}-" * bool(days) + f"{rest // 60:02}:{rest % 60:02}:00"
        else:
            fields[key] = {"Priority": "0", "FairShare": "1"}.get(key, "") if value == "-1" else value


class Host:
    """A controller with its accounting and a disk."""

    def __init__(self, place):
        self.accounting, self.place, self.slept = Sacctmgr(), place, 0
        self.machine = SimpleNamespace(tree=FileTree(str(place)), run=self.accounting.run, sleep=self._sleep)

    def _sleep(self, seconds):
        self.slept += seconds
        self.accounting.registered = self.slept > 3

    def settle(self, qos=(), accounts=(), check=False, wait=60):
        options = {"cluster": CLUSTER, "qos": list(qos), "accounts": list(accounts), "wait": wait}
        return settle(options, self.machine, check)

    def record(self):
        path = self.place / RECORD.lstrip("/")
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
