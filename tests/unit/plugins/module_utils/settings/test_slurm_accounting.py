# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""QoS, accounts and users as declared, against a sacctmgr that refuses what the real one refuses."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import slurm_accounting, slurm_accounting_text
from ansible_collections.allreduce.gpu.plugins.module_utils.settings.slurm_accounting import RECORD
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.sacctmgr_helper import ACCOUNT, QOS, Host

LONG = {"name": "long", "priority": 10, "max_minutes": 2880, "gpus_per_user": 2, "jobs_per_user": 3, "gpus": 8}
SHORT = {"name": "short", "max_minutes": 60, "preempts": ["long"]}
PHYSICS = {"name": "physics", "shares": 3, "users": ["ada", "bob"], "gpus": 4, "qos": ["long", "short"], "default_qos": "long"}  # fmt: skip
OPTICS = {"name": "optics", "parent": "physics", "users": ["eve", "ada"], "gpus_per_job": 1}


@pytest.fixture
def host(tmp_path):
    return Host(tmp_path)


def test_what_is_declared_is_made_in_an_order_that_works_and_then_nothing_is_left_to_do(host):
    done = host.settle([SHORT, LONG], [OPTICS, PHYSICS])
    assert done["changed"]
    qos, accounts, users, defaults, _listed = host.accounting.everything()
    assert qos["long"] == {
        "Priority": "10", "MaxWall": "2-00:00:00", "GrpTRES": "gres/gpu=8", "MaxTRESPerUser": "gres/gpu=2",
        "MaxJobsPerUser": "3", "Preempt": "",
    }  # fmt: skip
    assert (qos["short"]["MaxWall"], qos["short"]["Preempt"]) == ("01:00:00", "long")
    assert accounts["physics"] == {
        "ParentName": "root", "FairShare": "3", "GrpTRES": "gres/gpu=4", "MaxTRESPerJob": "", "QOSLevel": "long,short",
        "DefaultQOS": "long",
    }  # fmt: skip
    assert accounts["optics"] == {**ACCOUNT, "ParentName": "physics", "MaxTRESPerJob": "gres/gpu=1"}
    assert users == {
        ("root", "root", ""), ("physics", "ada", ""), ("physics", "bob", ""), ("optics", "ada", ""), ("optics", "eve", ""),
    }  # fmt: skip
    # The first account of the declaration that names a user.
    assert defaults["ada"] == "optics"
    again = host.settle([SHORT, LONG], [OPTICS, PHYSICS])
    assert not again["changed"] and again["commands"] == [] and again["before"] == again["after"] == done["after"]
    assert done["after"] == [
        "qos short: priority=0 max_minutes=60 preempts=long",
        "qos long: priority=10 max_minutes=2880 gpus=8 gpus_per_user=2 jobs_per_user=3",
        "account optics: parent=physics shares=1 gpus_per_job=1",
        "account physics: parent=root shares=3 gpus=4 qos=long,short default_qos=long",
        "user eve: account=optics", "user ada: account=optics", "user ada: account=physics", "user bob: account=physics",
    ]  # fmt: skip


def test_check_mode_says_the_same_and_changes_nothing(host):
    before = host.accounting.everything()
    predicted = host.settle([LONG], [PHYSICS, OPTICS][:0], check=True)
    assert host.accounting.everything() == before and host.record() is None and host.accounting.asked == []
    assert predicted == host.settle([LONG])


def test_check_mode_before_anything_is_installed(host):
    host.machine.run = lambda arguments: (127, "there is no such program")
    predicted = host.settle([LONG], check=True)
    assert predicted["changed"] and predicted["before"] == []
    assert predicted["unread"].endswith("ended with 127: there is no such program")


def test_a_new_cluster_is_waited_for_until_slurmctld_has_registered_it(host):
    host.accounting.registered = False
    assert host.settle([LONG], [])["changed"]
    assert host.slept == 4
    host.accounting.registered = False
    with pytest.raises(ValueError, match="slurmctld has not registered cluster cluster and its GPUs"):
        host.settle([LONG], [], wait=0)


def test_what_is_no_longer_declared_goes_and_what_others_made_stays(host):
    host.accounting.run(["timeout", "9", "sacctmgr", "--immediate", "add", "qos", "name=theirs", "Priority=5"])
    host.accounting.run(
        ["timeout", "9", "sacctmgr", "--immediate", "add", "account", "name=chemistry", "cluster=cluster"]
    )
    others = host.accounting.everything()
    host.settle([LONG, SHORT], [PHYSICS, OPTICS])
    host.settle([{**SHORT, "preempts": []}], [{**PHYSICS, "qos": ["short"], "default_qos": "short", "users": ["bob"]}])
    qos, accounts, users, defaults, _listed = host.accounting.everything()
    assert set(qos) == {"normal", "theirs", "short"} and set(accounts) == {"root", "chemistry", "physics"}
    assert users == {("root", "root", ""), ("physics", "bob", "")} and defaults == {"root": "root", "bob": "physics"}
    assert host.record() == {"format": 1, "qos": ["short"], "accounts": ["physics"], "users": [["physics", "bob"]]}
    assert host.settle()["changed"]
    assert host.accounting.everything() == others and host.record() is None
    assert not host.settle()["changed"]


def test_what_was_there_before_is_brought_to_the_declaration_and_stays_when_that_goes(host):
    host.accounting.qos["long"] = {**QOS, "Priority": "3", "GrpTRES": "cpu=10,gres/gpu=2", "MaxJobsPerUser": "9"}
    host.settle([{"name": "long", "gpus": 6}, {"name": "normal", "gpus_per_user": 1}])
    assert host.accounting.qos["long"] == {**QOS, "GrpTRES": "cpu=10,gres/gpu=6"}
    assert host.record() is None
    host.settle()
    assert set(host.accounting.qos) == {"normal", "long"}


def test_an_account_that_another_cluster_has_goes_from_this_one_only(host):
    host.accounting.elsewhere = {"physics"}
    host.settle([], [{"name": "physics"}, {"name": "optics"}])
    host.settle()
    assert host.accounting.elsewhere == {"physics"} and host.accounting.listed == {"root", "physics"}
    assert set(host.accounting.accounts) == {"root"}


def test_a_limit_that_is_no_longer_declared_is_taken_away(host):
    host.settle([LONG], [{**PHYSICS, "qos": ["long"]}])
    host.settle([{"name": "long"}], [{"name": "physics", "users": ["ada", "bob"]}])
    assert host.accounting.qos["long"] == QOS
    assert host.accounting.accounts["physics"] == {**ACCOUNT, "ParentName": "root"}


def test_accounts_change_places(host):
    host.settle([], [{"name": "a"}, {"name": "b", "parent": "a"}, {"name": "c", "parent": "b"}])
    host.settle([], [{"name": "a", "parent": "c"}, {"name": "c"}])
    assert {name: one["ParentName"] for name, one in host.accounting.accounts.items()} == {
        "root": "", "a": "c", "c": "root",
    }  # fmt: skip


def test_who_moves_to_another_account_has_that_one_as_default(host):
    host.settle([], [{"name": "physics", "users": ["ada"]}, {"name": "optics"}])
    host.settle([], [{"name": "physics"}, {"name": "optics", "users": ["ada"]}])
    assert host.accounting.defaults["ada"] == "optics" and ("physics", "ada", "") not in host.accounting.users


@pytest.mark.parametrize(
    ("made", "named"),
    [
        ({"users": {("physics", "eve", "")}}, "eve"),
        ({"users": {("physics", "bob", "gpu")}}, "bob"),
        ({"accounts": {"theirs": {**ACCOUNT, "ParentName": "physics"}}}, "account theirs"),
    ],
)
def test_an_account_in_which_others_made_something_does_not_go(host, made, named):
    host.settle([LONG], [{"name": "physics", "users": ["ada"]}])
    host.accounting.users |= made.get("users", set())
    host.accounting.accounts.update(made.get("accounts", {}))
    before = host.accounting.everything()
    with pytest.raises(ValueError, match=f"account physics is no longer declared, and has {named}, which this role"):
        host.settle()
    assert host.accounting.everything() == before and host.record()["accounts"] == ["physics"]


def test_an_account_in_which_jobs_run_goes_the_next_time(host):
    host.settle([], [{"name": "physics", "users": ["ada"]}])
    host.accounting.jobs = {"physics"}
    with pytest.raises(ValueError, match=r"ended with 1: Error with request: Job\(s\) active, cancel job\(s\) before"):
        host.settle()
    assert host.record()["users"] == [["physics", "ada"]]
    host.accounting.jobs = set()
    assert host.settle()["changed"] and "physics" not in host.accounting.accounts


def test_what_sacctmgr_did_not_do_without_saying_so_is_an_error(host):
    run = host.accounting.run
    host.machine.run = lambda arguments: (0, " Nothing modified\n") if "--immediate" in arguments else run(arguments)
    with pytest.raises(ValueError, match="sacctmgr did not do modify qos where name=normal .*; it said: Nothing modif"):
        host.settle([{"name": "normal", "gpus": 1}])


def test_an_interrupted_run_is_taken_up(host):
    run, count = host.accounting.run, iter(range(100))

    def interrupted(arguments):
        if "--immediate" in arguments and next(count) == 2:
            return 1, "sacctmgr: error: slurmdbd:\tConnection refused\n"
        return run(arguments)

    host.machine.run = interrupted
    with pytest.raises(ValueError, match="ended with 1: sacctmgr: error: slurmdbd: Connection refused"):
        host.settle([LONG], [{**PHYSICS, "qos": ["long"]}, OPTICS])
    host.machine.run = run
    assert host.settle([LONG], [{**PHYSICS, "qos": ["long"]}, OPTICS])["changed"]
    host.settle()
    assert set(host.accounting.accounts) == {"root"} and host.record() is None


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ("normal|0|\n", "sacctmgr printed 'normal|0|' where Name, Priority, MaxWall"),
        ("normal|many|||||\n", "'many' is no number"),
        ("normal|0|tomorrow||||\n", "'tomorrow' is no time"),
        ("normal|0||gres/gpu||| \n", "'gres/gpu' are no limits"),
        ("nor\x1bmal|0|||||\n", "sacctmgr printed 'nor mal|0|||||' where"),
    ],
)
def test_what_sacctmgr_cannot_have_meant_is_an_error(host, answer, sentence):
    run = host.accounting.run
    host.machine.run = lambda arguments: (0, answer) if "qos" in arguments else run(arguments)
    with pytest.raises(ValueError) as raised:
        host.settle([LONG], wait=0)
    assert sentence in str(raised.value)
    assert host.accounting.asked == []


def test_a_record_of_another_version_is_an_error(host):
    (host.place / "var/lib/allreduce").mkdir(parents=True)
    (host.place / RECORD.lstrip("/")).write_text('{"format": 2}', encoding="utf-8")
    with pytest.raises(ValueError, match=r"slurm_accounting\.json is not of this version"):
        host.settle([LONG])


@pytest.mark.parametrize(
    ("text", "minutes"), [("", None), ("00:30:00", 30), ("1-00:00:00", 1440), ("10-02:03:59", 14523)]
)
def test_times(text, minutes):
    assert slurm_accounting_text.minutes(text) == minutes


def test_the_program_has_a_deadline(host):
    asked = []

    def run(arguments):
        asked.append(arguments)
        return host.accounting.run(arguments)

    host.machine.run = run
    host.settle([LONG])
    assert all(one[:3] == ["timeout", str(slurm_accounting.SECONDS), "sacctmgr"] for one in asked)
