# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster that the role installs: what is written where, what leads to a restart, what is refused, what goes."""

import gzip
import os
import re
import subprocess

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.node.state import RECORDS
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.comparison import Comparison, Remedy, Status
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.parsing import DocumentError
from ansible_collections.allreduce.gpu.plugins.plugin_utils.documents.slurm import Asked, Job
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.sentences import describe
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm import backup, cluster, installed, programs
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm.answer import READS_OF_OTHERS, SUBJECT
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm.compare import (
    compare_asked,
    compare_services,
)
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm.request import (
    WRITTEN,
    misfits,
    problems,
    request,
)

from tests.support.local_play import CHECKOUT
from tests.support.slurm import cluster_hosts as hosts
from tests.support.slurm import cluster_node as node
from tests.support.slurm import measured

PRESENT = {"slurm_state": "present"}


def answer(known, name="ctl"):
    return installed.answer(node(known, name), installed.shared(node(known, name)))


def sentences(found):
    return [describe(one) for one in found["problems"]]


def files(found, part="files"):
    return {one["path"]: one.get("content", "") for one in found[part]}


def keys(text):
    return dict(line.split("=", 1) for line in text.splitlines() if re.match(r"[A-Za-z]+=", line))


def test_the_controller_s_files():
    found = answer(hosts())
    assert found["problems"] == []
    conf = files(found)["/etc/slurm/slurm.conf"]
    words = keys(conf)
    expected = {
        "SlurmctldHost": "ctl(10.0.0.1)", "SelectType": "select/cons_tres", "TaskPlugin": "task/cgroup,task/affinity",
        "PropagateResourceLimitsExcept": "MEMLOCK", "ReturnToService": "1", "UnkillableStepTimeout": "180",
        "PrologFlags": "Contain", "AccountingStorageTRES": "gres/gpu", "SlurmctldParameters": "enable_configless",
    }  # fmt: skip
    assert expected.items() <= words.items()
    # What others name comes before what names them.
    assert [path for path, content in files(found).items() if content][-1] == "/etc/slurm/slurm.conf"
    assert conf.index("Include allreduce_nodes.conf") < conf.index("PartitionName=gpu Nodes=ALL Default=YES")
    assert "NodeName=gpu-1 NodeAddr=10.0.0.2 Boards=1" in files(found)["/etc/slurm/allreduce_nodes.conf"]
    assert "ConstrainDevices=yes" in files(found)["/etc/slurm/cgroup.conf"]
    assert [one["name"] for one in found["services"]] == ["munge", "mariadb", "slurmdbd", "slurmctld"]


@pytest.mark.parametrize("status", [0, 1])
def test_slurmctld_is_told_of_its_files_also_by_the_run_after_one_that_ended_before(tmp_path, status):
    """The file that says so is a record, which a measurement names, and goes when slurmctld has been told."""
    found = answer(hosts())
    sent = [
        one
        for one in found["files"]
        if one["path"].startswith("/etc/slurm/") and not one["path"].endswith("slurmdbd.conf")
    ]
    assert len(sent) > 3 and all(one["then"] == ["touch", installed.DUE] for one in sent)
    place, _slash, record = installed.DUE.rpartition("/")
    controller = CHECKOUT / "roles" / "slurm" / "tasks" / "controller.yml"
    assert place == RECORDS and f"'{record.removesuffix('.json')}' in __slurm_records" in controller.read_text("utf-8")
    due, program = tmp_path / record, tmp_path / "scontrol"
    due.touch()
    program.write_text(f"#!/bin/sh\nexit {status}\n", "utf-8")
    program.chmod(0o755)
    command = [one.replace(installed.DUE, str(due)) for one in found["told"]]
    done = subprocess.run(command, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}, check=False)
    assert (done.returncode, due.exists()) == (status, bool(status))


def test_the_controller_knows_the_names_of_all_hosts_that_ask_for_jobs():
    known = hosts()
    (one,) = [one for one in answer(known)["files"] if one["path"] == "/etc/hosts"]
    assert one["block"] == "10.0.0.1 ctl\n10.0.0.2 gpu-1\n10.0.0.3 gpu-2\n"
    (gone,) = [one for one in installed.removed(node(known))["files"] if one["path"] == "/etc/hosts"]
    assert gone == {**one, "block": ""}


def test_the_database_has_no_password():
    text = files(answer(hosts()))["/etc/slurm/slurmdbd.conf"]
    assert "StorageHost=localhost\nStorageUser=slurm\n" in text and "StoragePass" not in text
    known = hosts()
    known["ctl"]["ansible_facts"]["gpu_node_state"]["packages"] = {installed.BINARIES: "24.11"}
    (one,) = [one for one in answer(known)["files"] if one["path"].endswith("slurmdbd.conf")]
    assert (one["mode"], one["owner"]) == ("0600", "slurm")


def test_a_node_gets_no_file_of_slurm_s():
    found = answer(hosts(), "gpu-1")
    assert found["problems"] == [] and found["files"] == []
    unit = files(found, "first")["/etc/systemd/system/slurmd.service.d/allreduce.conf"]
    assert "SLURMD_OPTIONS=--conf-server=10.0.0.1:6817\n" in unit
    assert "LimitMEMLOCK=infinity" in unit and "ConditionPathExists=\n" in unit


def test_a_login_node_has_the_commands_and_the_controller_s_files_and_its_name_is_known():
    known = hosts(login=True)
    found, ours = answer(known, "login"), answer(known)
    assert (found["problems"], found["packages"]) == ([], ["munge", "slurm-wlm-basic-plugins", "slurm-client"])
    assert [one["name"] for one in found["services"]] == ["munge"]
    told = {path: text for path, text in files(found, "first").items() if path != installed.INSTALLED}
    assert told == {path: files(ours)[path] for path in told}
    assert {"/etc/slurm/slurm.conf", "/etc/slurm/allreduce_nodes.conf"} <= set(told)
    assert not any(path.endswith("slurmdbd.conf") for path in told)  # whose database it is
    (names,) = [one for one in ours["files"] if one["path"] == "/etc/hosts"]
    assert names["block"].endswith("10.0.0.4 login\n")
    gone = {one["path"] for one in installed.removed(node(known, "login"))["files"]}
    assert set(told) <= gone


@pytest.mark.parametrize(("login", "words"), [
    ({"slurm_state": "absent"}, ""),
    ({"gpu_cluster_address": "", "ansible_host": "login.example.org"}, ""),
    ({}, "10.0.0.4 login\n"),
])  # fmt: skip
def test_a_login_node_that_is_none_or_has_no_address_is_in_no_file_of_names(login, words):
    known = hosts(login=True)
    known["login"].update(login)
    (names,) = [one for one in answer(known)["files"] if one["path"] == "/etc/hosts"]
    assert names["block"] == "10.0.0.1 ctl\n10.0.0.2 gpu-1\n10.0.0.3 gpu-2\n" + words


def test_a_login_node_has_the_name_of_the_inventory_whatever_it_calls_itself():
    known = changed(hosts(login=True), "login", name="gpu-1")
    (names,) = [one for one in answer(known)["files"] if one["path"] == "/etc/hosts"]
    assert names["block"].endswith("10.0.0.3 gpu-2\n10.0.0.4 login\n")
    assert sentences(answer(known, "login"))[0].startswith(
        "login calls itself 'gpu-1', and Slurm would have to know it as 'login'"
    )


def test_a_login_node_is_refused_with_the_cluster_or_for_its_release():
    known = hosts(login=True)
    known["login"]["ansible_facts"]["distribution_version"] = "12.9"
    assert sentences(answer(known, "login"))[0].startswith(
        "login has Slurm 22.05, which slurmctld 24.11 of ctl does not take"
    )
    assert answer(known)["problems"] == []
    known["gpu-1"]["gpu_cluster_address"] = ""
    assert answer(known, "login")["problems"] == answer(known)["problems"] != []


@pytest.mark.parametrize(("version", "word"), [("12.9", "cgroup/v1"), ("13.1", "disabled")])
def test_without_cgroups_each_release_has_a_word_for_it(version, word):
    known = hosts(slurm_cgroups=False)
    for one in known.values():
        one["ansible_facts"]["distribution_version"] = version
        one["ansible_facts"]["gpu_slurm"]["confines"] = False
    found = answer(known)
    assert files(found)["/etc/slurm/cgroup.conf"].endswith(f"\nCgroupPlugin={word}\n")
    words = keys(files(found)["/etc/slurm/slurm.conf"])
    assert (words["TaskPlugin"], words["ProctrackType"]) == ("task/affinity", "proctrack/linuxproc")
    assert "PrologFlags" not in words


def test_srun_waits_at_known_ports_where_there_is_a_firewall():
    assert "SrunPortRange" not in files(answer(hosts()))["/etc/slurm/slurm.conf"]
    found = answer(hosts(firewall_state="present"))
    assert "\nSrunPortRange=61001-64000\n" in files(found)["/etc/slurm/slurm.conf"]


@pytest.mark.parametrize(
    ("variables", "slurmctld", "slurmd"),
    [
        ({}, False, False),
        ({"slurm_extra_lines": ["PriorityWeightAge=5"]}, False, False),
        ({"slurm_partition": "all_gpus"}, False, False),
        ({"slurm_features": ["scratch"]}, True, True),
        ({"slurm_extra_lines": ["prioritytype=priority/basic"]}, True, True),
        ({"slurm_cgroups": False}, True, True),
    ],
)
def test_a_change_restarts_what_needs_it_and_nothing_else(variables, slurmctld, slurmd):
    before, after = hosts(), hosts(**variables)
    for name, unit, expected in (("ctl", "slurmctld", slurmctld), ("gpu-1", "slurmd", slurmd)):
        path = installed.DROP_IN % unit
        assert (files(answer(before, name), "first")[path] != files(answer(after, name), "first")[path]) is expected
        assert (files(answer(before, name)) != files(answer(after, name))) is (name == "ctl" and bool(variables))


def test_a_line_of_the_user_s_takes_the_place_of_ours():
    conf = files(answer(hosts(slurm_extra_lines=["PriorityWeightAge=5"])))["/etc/slurm/slurm.conf"]
    assert re.findall("(?m)^PriorityWeightAge=(.*)$", conf) == ["5"]


def test_keys_that_hold_the_cluster_together_are_not_the_user_s():
    free = {
        "returntoservice", "rebootprogram", "resumetimeout", "unkillablesteptimeout", "prioritytype", "priorityweightfairshare",
        "priorityweightage",
    }  # fmt: skip
    conf = files(answer(hosts(slurm_numa_node_as_socket=True, firewall_state="present")))["/etc/slurm/slurm.conf"]
    assert {key.lower() for key in keys(conf)} - free - {"partitionname"} <= WRITTEN
    assert not free & WRITTEN


def changed(known, host, **facts):
    known[host]["ansible_facts"]["gpu_slurm"].update(facts)
    return known


def on(known, name, version):
    known[name]["ansible_facts"]["distribution_version"] = version
    return known


REFUSED = [
    (on(hosts(), "gpu-2", "12"), "gpu-2 has Slurm 22.05, which slurmctld 24.11 of ctl does not take"),
    (on(on(hosts(), "ctl", "12"), "gpu-1", "12"), "gpu-2 has Slurm 24.11, which slurmctld 22.05 of ctl does not take"),
    (changed(hosts(), "gpu-2", confines=False), "The kernel of gpu-2 does not give cgroups the controllers"),
    (on(hosts(), "gpu-2", "11"), "There is no Slurm for gpu-2: the role installs that of Debian 12, Debian 13, not of debian 11"),
    (changed(hosts(), "gpu-2", memory_kib=None), "The kernel of gpu-2 does not show how much memory there is"),
]  # fmt: skip


@pytest.mark.parametrize("name", ["ctl", "gpu-1"])
@pytest.mark.parametrize(("known", "sentence"), REFUSED)
def test_what_is_wrong_with_one_node_is_refused_on_all_hosts(known, sentence, name):
    assert any(one.startswith(sentence) for one in sentences(answer(known, name)))


def test_a_slurm_of_somebody_else_is_not_touched():
    found = sentences(answer(changed(hosts(), "ctl", foreign=True)))
    assert found == [
        "ctl has a /etc/slurm/slurm.conf that this role did not write; set slurm_state: external to describe the nodes to that cluster, "
        "or remove the file."
    ]


def test_a_node_waits_for_no_controller_that_was_left_out():
    known = {name: one for name, one in hosts().items() if name != "ctl"}
    assert sentences(answer(known, "gpu-1"))[0].startswith("Slurm's controller ctl was not set up in this run")


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ({"gpu_nodes": ["gpu-1"]}, "slurm_state is present, but the inventory has no hosts in the group controllers"),
        ({"gpu_nodes": ["gpu-1"], "controllers": ["a", "b"]}, "is for one controller, and group controllers has a, b"),
        ({"gpu_nodes": ["gpu-1"], "controllers": ["gpu-1"]}, "gpu-1 is in groups controllers and gpu_nodes"),
        (
            {"gpu_nodes": ["gpu-1"], "controllers": ["c"], "login_nodes": ["gpu-1"]},
            "gpu-1 is in groups login_nodes and gpu_nodes, where",
        ),
        (
            {"gpu_nodes": ["gpu-1"], "controllers": ["c"], "login_nodes": ["c"]},
            "c is in groups login_nodes and controllers, where",
        ),
    ],
)
def test_what_the_inventory_lacks(groups, words):
    (found,) = misfits(groups, PRESENT)
    assert words in describe(found)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (
            {"slurm_extra_lines": ["SelectType=select/linear"]},
            "slurm_extra_lines has SelectType, which the role writes",
        ),
        ({"slurm_extra_lines": ["nodename=x"]}, "slurm_extra_lines has nodename"),
        ({"slurm_extra_lines": ["Include /etc/passwd"]}, "write each as Key=Value"),
        ({"slurm_extra_lines": ["A=b\nSlurmUser=root"]}, "write each as Key=Value"),
        ({"slurm_extra_lines": ["A=b\\"]}, "write each as Key=Value"),
        ({"slurm_cluster_name": "Cluster One"}, "slurm_cluster_name is 'Cluster One'"),
        ({"slurm_partition": "default"}, "slurm_partition is 'default'"),
        ({"slurm_directory": "/opt/slurm"}, "slurm_directory is for slurm_state: external"),
        ({"slurm_autodetect": "nvml"}, "slurm_autodetect is nvml, whose plugin"),
    ],
)
def test_what_cannot_be_meant(variables, words):
    (found,) = problems({**PRESENT, **variables})
    assert words in describe(found)


def test_what_was_there_before_stays_when_the_role_s_goes():
    known = hosts()
    state = known["gpu-1"]["ansible_facts"]["gpu_node_state"]
    state["packages"] = {"munge": "0.5"}
    record = files(answer(known, "gpu-1"), "first")[installed.INSTALLED]
    assert '"slurmd"' in record and '"munge"' not in record
    # A second run finds what the first brought, and does not forget it.
    ours = ["slurm-client", "slurm-wlm-basic-plugins", "slurmd"]
    state["packages"].update(dict.fromkeys(ours, "24.11"))
    assert files(answer(changed(known, "gpu-1", installed=ours), "gpu-1"), "first")[installed.INSTALLED] == record
    state["services"] = dict.fromkeys(["munge", "slurmd", "mariadb"], {"enabled": True, "active": True})
    gone = installed.removed(node(known, "gpu-1"))
    assert (gone["services"], gone["packages"]) == (["slurmd"], ours)


@pytest.mark.parametrize(("asked", "drops"), [({}, False), ({"slurm_delete_accounting": True}, True)])
def test_the_accounting_goes_only_where_that_is_asked_for(asked, drops):
    known = changed(hosts(slurm_state="absent", **asked), "ctl", installed=["mariadb-server"])
    known["ctl"]["ansible_facts"]["gpu_node_state"]["packages"] = {"mariadb-server": "11"}
    assert installed.removed(node(known))["drops"] is drops


def judged(**asked):
    given = {"controller": "10.0.0.1", "reachable": True, "accounting": True, "answers": True, "state": "idle", **asked}
    return {(one.kind, one.subject): one.observed for one in compare_asked(Asked(**given)) if one.differs}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({}, {}),
        ({"state": "mixed"}, {}),
        ({"reachable": False}, {("controller", "slurmctld"): "does not answer at 10.0.0.1"}),
        ({"accounting": False}, {("controller", "slurmdbd"): "does not answer at 10.0.0.1"}),
        ({"answers": False}, {("trust", "slurmctld"): "refuses this node: its key of munge, or its clock, is another one"}),
        ({"state": "drained", "reason": "fan\x1b[0m"}, {("state", "node"): "drained (fan)"}),
        ({"state": "idle*"}, {("state", "node"): "idle* (without a reason)"}),
        ({"state": ""}, {("state", "node"): "not of the cluster (without a reason)"}),
    ],
)  # fmt: skip
def test_what_the_controller_says_is_judged(asked, expected):
    assert judged(**asked) == expected


def test_nothing_is_said_of_a_controller_that_nobody_asked():
    assert compare_asked(None) == []


@pytest.mark.parametrize("row", programs.load(), ids=lambda row: f"{row.id}-{row.version}")
def test_the_rows_name_what_the_role_needs(row):
    assert row.slurm in row.joins and row.source
    assert {"munge", installed.BINARIES} <= {*row.controller} & {*row.node}
    assert set(row.pids) == {"slurmctld", "slurmdbd", "slurmd"}


def test_what_is_read_of_other_hosts_is_enough():
    """Of the others, lookup _others returns these paths alone."""
    assert {"slurm_state", "gpu_cluster_address", "firewall_state", "ansible_facts.gpu_slurm"} <= set(READS_OF_OTHERS)
    assert {"munge", "slurmd", "slurmctld", "slurmdbd", "mariadb"} == set(SUBJECT.units)


def test_memory_is_shared_among_processors():
    assert cluster.memory_per_processor([]) == 0
    assert request(PRESENT).cgroups is True


@pytest.mark.parametrize("name", ["ctl\n10.0.0.9 gpu-1", "ctl\nSlurmUser=root", "", "a b"])
def test_a_controller_whose_name_is_no_name_is_refused(name):
    """It stands in /etc/hosts and slurm.conf."""
    known = hosts()
    known["ctl"]["ansible_facts"]["gpu_slurm"]["name"] = name
    found = answer(known)
    assert "files" not in found
    assert any("which Slurm does not take for a node" in one for one in sentences(found))


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (None, ("a job that sees 4 GPUs", "", "unknown")),
        (Job(4), ("a job that sees 4 GPUs", "a job sees 4", "as_planned")),
        (Job(2), ("a job that sees 4 GPUs", "a job sees 2", "differs")),
        (Job(None, "srun: error\x1b[31m"), ("a job that sees 4 GPUs", "a job did not run: srun: error", "differs")),
    ],
)
def test_what_a_job_saw_is_judged(job, expected):
    asked = Asked("10.0.0.1", True, True, True, "idle", "none", job)
    (found,) = [one for one in compare_asked(asked, 4, True) if one.kind == "job"]
    assert (found.desired, found.observed, found.status.value) == expected
    assert not [one for one in compare_asked(asked, 4) if one.kind == "job"]


@pytest.mark.parametrize(
    ("variables", "user"),
    [
        ({}, None),
        ({"verify_slurm_job": False, "cluster_ssh_user": "ada"}, None),
        ({"verify_slurm_job": True, "cluster_ssh_user": "ada"}, "ada"),
        ({"verify_slurm_job": "yes", "cluster_ssh_user": "ada"}, "ada"),
        ({"verify_slurm_job": True}, None),
    ],
)
def test_a_job_is_run_where_it_is_asked_for(variables, user):
    assert SUBJECT.asked(variables, "verify").get("job_user") == user


SLURM_CONF = """\
# Written by role allreduce.gpu.slurm; slurm_extra_lines adds to it.
ClusterName=cluster
SlurmctldHost=ctl(10.0.0.1)
SlurmctldPort=6817
SlurmdPort=6818
SlurmUser=slurm
AuthType=auth/munge
SlurmctldParameters=enable_configless
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
SlurmctldPidFile=/run/slurmctld/slurmctld.pid
SlurmdPidFile=/run/slurm/slurmd.pid
ProctrackType=proctrack/cgroup
TaskPlugin=task/cgroup,task/affinity
JobAcctGatherType=jobacct_gather/cgroup
PrologFlags=Contain
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=7648
GresTypes=gpu
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=10.0.0.1
AccountingStoragePort=6819
AccountingStorageTRES=gres/gpu
PropagateResourceLimitsExcept=MEMLOCK
ReturnToService=1
RebootProgram=/sbin/reboot
ResumeTimeout=1800
UnkillableStepTimeout=180
PriorityType=priority/multifactor
PriorityWeightFairshare=10000
PriorityWeightAge=1000
Include allreduce_nodes.conf
PartitionName=gpu Nodes=ALL Default=YES State=UP MaxTime=INFINITE TRESBillingWeights=CPU=1.0,GRES/gpu=32.0
"""
SLURMDBD_CONF = """\
# Written by role allreduce.gpu.slurm; slurm_extra_lines adds to it.
AuthType=auth/munge
DbdHost=ctl
DbdAddr=10.0.0.1
DbdPort=6819
SlurmUser=slurm
StorageType=accounting_storage/mysql
StorageHost=localhost
StorageUser=slurm
StorageLoc=slurm_acct_db
LogFile=/var/log/slurm/slurmdbd.log
PidFile=/run/slurmdbd/slurmdbd.pid
"""
HEAD = "# Written by role allreduce.gpu.slurm; slurm_extra_lines adds to it.\n"


def test_the_controller_s_files_are_told_whole():
    found = files(answer(hosts()))
    assert list(found) == [
        "/etc/hosts", "/var/spool/slurmctld", "/etc/slurm/slurmdbd.conf", "/etc/slurm/allreduce_gres.conf",
        "/etc/slurm/allreduce_nodes.conf", "/etc/slurm/gres.conf", "/etc/slurm/cgroup.conf", "/etc/slurm/slurm.conf",
        "/etc/slurm/topology.conf",
    ]  # fmt: skip
    assert found["/etc/slurm/slurm.conf"] == SLURM_CONF
    assert found["/etc/slurm/slurmdbd.conf"] == SLURMDBD_CONF
    assert found["/etc/slurm/gres.conf"] == f"{HEAD}Include allreduce_gres.conf\n"
    assert found["/etc/slurm/cgroup.conf"] == f"{HEAD}ConstrainCores=yes\nConstrainDevices=yes\nConstrainRAMSpace=yes\n"


def test_what_the_user_and_the_nodes_change_in_slurm_conf():
    known = hosts(
        slurm_cgroups=False, slurm_numa_node_as_socket=True, firewall_state="present", slurm_cluster_name="north", slurm_partition="all_gpus",
        slurm_extra_lines=["priorityweightage=5", "MaxArraySize=9"],
    )  # fmt: skip
    assert set(files(answer(known))["/etc/slurm/slurm.conf"].splitlines()) ^ set(SLURM_CONF.splitlines()) == {
        "ClusterName=cluster", "ClusterName=north",
        "ProctrackType=proctrack/cgroup", "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/cgroup,task/affinity", "TaskPlugin=task/affinity",
        "JobAcctGatherType=jobacct_gather/cgroup", "JobAcctGatherType=jobacct_gather/linux",
        "PrologFlags=Contain",
        "PriorityWeightAge=1000", "priorityweightage=5", "MaxArraySize=9",
        "SlurmdParameters=numa_node_as_socket", "SrunPortRange=61001-64000",
        "PartitionName=gpu Nodes=ALL Default=YES State=UP MaxTime=INFINITE TRESBillingWeights=CPU=1.0,GRES/gpu=32.0",
        "PartitionName=all_gpus Nodes=ALL Default=YES State=UP MaxTime=INFINITE TRESBillingWeights=CPU=1.0,GRES/gpu=32.0",
    }  # fmt: skip


def machine(known, name, other):
    """The cluster with another machine as one of its nodes."""
    facts = known[name]["ansible_facts"]
    found = measured(other)
    facts["gpu_node"] = found["gpu_node"]
    facts["gpu_slurm"] = {**found["gpu_slurm"], "name": name, "confines": True}
    return known


@pytest.mark.parametrize(
    ("others", "memory", "weight"),
    [
        ({}, "7648", " TRESBillingWeights=CPU=1.0,GRES/gpu=32.0"),
        # 256 processors with 8 GPUs.
        ({"gpu-1": "dgx-a100", "gpu-2": "dgx-a100"}, "3824", " TRESBillingWeights=CPU=1.0,GRES/gpu=32.0"),
        # The largest share counts, and the least memory.
        ({"gpu-2": "rtx-3090-3080"}, "7648", " TRESBillingWeights=CPU=1.0,GRES/gpu=32.0"),
        ({"gpu-1": "rtx-3090-3080", "gpu-2": "rtx-3090-3080"}, "30592", " TRESBillingWeights=CPU=1.0,GRES/gpu=16.0"),
        ({"gpu-1": "no-gpu", "gpu-2": "no-gpu"}, "122368", ""),
    ],
)
def test_a_gpu_weighs_its_share_of_the_processors(others, memory, weight):
    known = hosts()
    for name, other in others.items():
        machine(known, name, other)
    conf = files(answer(known))["/etc/slurm/slurm.conf"]
    assert keys(conf)["DefMemPerCPU"] == memory
    assert conf.endswith(f"\nPartitionName=gpu Nodes=ALL Default=YES State=UP MaxTime=INFINITE{weight}\n")


@pytest.mark.parametrize(
    ("known", "daemons"),
    [
        (hosts(slurm_numa_node_as_socket=True), ["slurmctld", "slurmd"]),
        (hosts(slurm_cluster_name="north"), ["slurmctld", "slurmd"]),
        (hosts(slurm_extra_lines=["SlurmctldTimeout=9"]), []),
        (hosts(slurm_extra_lines=["PriorityType=priority/basic"]), ["slurmctld", "slurmd"]),
        (hosts(firewall_state="present"), []),
        (hosts(health_state="present"), []),
        ({**hosts(), "ctl": {**hosts()["ctl"], "gpu_cluster_address": "10.0.0.9"}}, ["slurmdbd", "slurmctld", "slurmd"]),
        (machine(hosts(), "gpu-2", "no-gpu"), ["slurmctld", "slurmd"]),
        (hosts(), []),
    ],
    ids=["sockets", "cluster", "another line", "a line of the start", "firewall", "health", "address", "node", "nothing"],
)  # fmt: skip
def test_who_starts_again_after_which_change(known, daemons):
    """What slurm.conf(5) says is read as a daemon starts, and nothing else: a restart of slurmctld takes seconds from everybody."""
    found = []
    for name, units in (("ctl", ("slurmdbd", "slurmctld")), ("gpu-1", ("slurmd",))):
        before, after = (files(answer(one, name), "first") for one in (hosts(), known))
        found += [unit for unit in units if before[installed.DROP_IN % unit] != after[installed.DROP_IN % unit]]
    assert found == daemons


def test_another_value_of_the_user_s_starts_daemons_again():
    digests = {
        installed.shared(node(hosts(slurm_extra_lines=lines)))["digest"]
        for lines in (
            [],
            ["prioritytype=priority/basic"],
            ["PriorityType=priority/multifactor"],
            ["prioritytype=priority/site=1"],
        )
    }
    assert len(digests) == 4


def test_a_line_that_has_more_than_one_sign_takes_the_place_of_ours():
    conf = files(answer(hosts(health_state="present", slurm_extra_lines=["SchedulerParameters=bf_window=5"])))[
        "/etc/slurm/slurm.conf"
    ]
    assert re.findall("(?m)^SchedulerParameters=(.*)$", conf) == ["bf_window=5"]


def test_an_address_that_was_only_measured_is_one():
    known = hosts()
    known["ctl"]["gpu_cluster_address"] = ""
    known["ctl"]["ansible_facts"]["default_ipv4"] = {"address": "10.0.0.7"}
    assert installed.shared(node(known))["address"] == "10.0.0.7"


def test_what_is_wrong_with_the_host_itself_is_told_first():
    no_packages = "There is no Slurm for gpu-2: the role installs that of Debian 12, Debian 13, not of debian 11; "
    (found,) = sentences(answer(on(hosts(), "gpu-2", "11"), "gpu-2"))
    assert found.startswith(no_packages)
    assert sentences(answer(on(hosts(slurm_partition="all"), "gpu-2", "11"), "gpu-2")) == [
        "slurm_partition is 'all'; write it like gpu."
    ]


UNIT = re.compile(r"# Written by role allreduce\.gpu\.slurm for the configuration [0-9a-f]{16}\.\n")


def test_drop_ins_are_told_whole():
    first = files(answer(hosts()), "first")
    assert [path.split("/")[4].partition(".")[0] for path in list(first)[2:]] == ["slurmdbd", "slurmctld"]
    saved = "ExecStartPre=+/opt/allreduce/lib/slurm-backup\nTimeoutStartSec=infinity\n"
    for unit, more in (("slurmdbd", saved), ("slurmctld", "")):
        text = first[f"/etc/systemd/system/{unit}.service.d/allreduce.conf"]
        assert UNIT.match(text)
        words = f"[Unit]\nStartLimitIntervalSec=0\n\n[Service]\n{more}Restart=on-failure\nRestartSec=10\n"
        assert UNIT.sub("", text) == words
    text = files(answer(hosts(), "gpu-1"), "first")["/etc/systemd/system/slurmd.service.d/allreduce.conf"]
    assert UNIT.match(text)
    assert UNIT.sub("", text) == (
        "[Unit]\nStartLimitIntervalSec=0\nConditionPathExists=\nAfter=nvidia-persistenced.service nvidia-fabricmanager.service\n\n"
        "[Service]\nEnvironmentFile=\nEnvironment=SLURMD_OPTIONS=--conf-server=10.0.0.1:6817\nLimitMEMLOCK=infinity\n"
        "Restart=on-failure\nRestartSec=10\n"
    )


# Programs of the controller that the script starts; their output and failures are files of a test.
PROGRAMS = {
    "slurmdbd": "cat {root}/version",
    "mariadb": "cat {root}/tables",
    "mariadb-dump": 'echo "$@" > {root}/dumped; cat {root}/accounting',
}

TABLES = "acct_table\ncluster_job_table\n"


@pytest.fixture
def controller_host(tmp_path):
    """The backup's script on a host of its own directories; run() returns (exit code, output)."""
    (tmp_path / "bin").mkdir()
    for name, line in PROGRAMS.items():
        program = tmp_path / "bin" / name
        program.write_text("#!/bin/sh\n" + line.format(root=tmp_path) + "\n", encoding="utf-8")
        program.chmod(0o755)
    (tmp_path / "accounting").write_text("42 jobs", encoding="utf-8")
    text = backup.SCRIPT.replace("/usr/sbin/", "").replace("/var/", f"{tmp_path}/var/")
    (tmp_path / "var" / "lib" / "allreduce").mkdir(parents=True)

    def run(version, tables):
        (tmp_path / "version").write_text(f"slurm-wlm {version}\n", encoding="utf-8")
        (tmp_path / "tables").write_text(tables, encoding="utf-8")
        environment = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
        done = subprocess.run(["bash", "-c", text], env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    run.root, run.saved = tmp_path, lambda: sorted((tmp_path / "var" / "backups" / "slurm").glob("*"))
    return run


def test_the_accounting_is_saved_before_another_version_starts_on_it_and_only_then(controller_host):
    # There is nothing to save yet.
    assert controller_host("22.05.8", "") == (0, "") and controller_host.saved() == []
    assert controller_host("22.05.8", TABLES) == (0, "") and controller_host.saved() == []
    code, said = controller_host("24.11.5", TABLES)
    (saved,) = controller_host.saved()
    assert code == 0 and f"before slurmdbd 24.11.5 starts, the accounting of 22.05.8 was saved in {saved}" in said
    assert saved.name.startswith("slurm_acct_db-22.05.8-") and saved.stat().st_mode & 0o777 == 0o600
    assert gzip.decompress(saved.read_bytes()) == b"42 jobs"
    assert controller_host("24.11.5", TABLES) == (0, "") and controller_host.saved() == [saved]


def test_an_accounting_of_which_no_version_is_known_is_saved(controller_host):
    assert controller_host("24.11.5", TABLES)[0] == 0
    assert [one.name.split("-")[1] for one in controller_host.saved()] == ["unknown"]


def test_slurmdbd_does_not_start_where_its_database_was_not_saved(controller_host):
    (controller_host.root / "accounting").unlink()
    for _turn in range(2):
        assert controller_host("24.11.5", TABLES)[0] != 0
    assert not any(one.suffix == ".gz" for one in controller_host.saved())


def test_an_address_of_ip_version_6_is_in_brackets():
    known = hosts()
    known["ctl"]["gpu_cluster_address"] = "fd00::1"
    unit = files(answer(known, "gpu-1"), "first")["/etc/systemd/system/slurmd.service.d/allreduce.conf"]
    assert "SLURMD_OPTIONS=--conf-server=[fd00::1]:6817\n" in unit


def test_what_is_done_on_each_kind_of_host():
    packages = [
        "munge",
        "slurm-wlm-basic-plugins",
        "slurm-wlm-mysql-plugin",
        "slurm-client",
        "slurmctld",
        "slurmdbd",
        "mariadb-server",
    ]
    found = answer(hosts())
    assert (
        set(found) == {"problems", "first", "packages", "files", "services", "told", "accounting"}
        and found["packages"] == packages
    )
    assert [one["path"] for one in found["files"] if "then" in one] == [
        f"/etc/slurm/{name}"
        for name in (
            "allreduce_gres.conf",
            "allreduce_nodes.conf",
            "gres.conf",
            "cgroup.conf",
            "slurm.conf",
            "topology.conf",
        )
    ]
    assert found["services"] == [
        {"name": name, "unit": f"/etc/systemd/system/{name}.service.d/allreduce.conf"}
        for name in ("munge", "mariadb", "slurmdbd", "slurmctld")
    ]
    directory, database = found["files"][1:3]
    assert directory == {
        "path": "/var/spool/slurmctld",
        "state": "directory",
        "mode": "0755",
        "owner": "root",
        "group": "root",
    }
    assert (database["mode"], database["owner"], database["group"]) == ("0600", "root", "root")
    found = answer(hosts(), "gpu-1")
    assert found["packages"] == ["munge", "slurm-wlm-basic-plugins", "slurm-client", "slurmd"]
    assert [one["name"] for one in found["services"]] == ["munge", "slurmd"]


def test_what_was_brought_is_recorded():
    record = files(answer(hosts(), "gpu-1"), "first")["/var/lib/allreduce/slurm_installed.json"]
    assert record == '{"format": 1, "packages": ["munge", "slurm-client", "slurm-wlm-basic-plugins", "slurmd"]}\n'


def test_all_that_goes():
    known = hosts(slurm_state="absent")
    facts = known["ctl"]["ansible_facts"]
    ours = ["mariadb-server", "munge", "slurmctld", "slurmdbd", "gone-by-hand"]
    facts["gpu_slurm"]["installed"] = ours
    facts["gpu_node_state"]["packages"] = dict.fromkeys([*ours[:4], "slurm-client"], "1")
    facts["gpu_node_state"]["services"] = {
        "munge": {"enabled": True}, "mariadb": {"active": True}, "slurmctld": {"enabled": True, "active": True},
        "slurmdbd": {"enabled": False, "active": False},
    }  # fmt: skip
    found = installed.removed(node(known))
    # Who uses a service stops before it.
    assert (found["services"], found["packages"]) == (["slurmctld", "mariadb", "munge"], ours[:4])
    assert [one["path"] for one in found["files"]] == [
        "/etc/hosts",
        *(f"/etc/systemd/system/{name}.service.d/allreduce.conf" for name in ("slurmctld", "slurmdbd", "slurmd")),
        "/opt/allreduce/lib/slurm-backup",
        "/var/lib/allreduce/slurmdbd_version",
        installed.DUE,
        *(
            f"/etc/slurm/{name}"
            for name in (
                "slurm.conf",
                "cgroup.conf",
                "gres.conf",
                "slurmdbd.conf",
                "topology.conf",
                "allreduce_gres.conf",
                "allreduce_nodes.conf",
            )
        ),
    ]
    assert {one.get("state") for one in found["files"]} == {None, "absent"} and found["files"][0]["block"] == ""
    assert found["record"] == [{"path": "/var/lib/allreduce/slurm_installed.json", "state": "absent"}]


def test_a_host_that_has_nothing_loses_nothing():
    known = hosts(slurm_state="absent")
    found = installed.removed(node(known))
    assert (found["services"], found["packages"], found["drops"]) == ([], [], False)


def test_facts_of_the_wrong_shape():
    known = changed(hosts(), "ctl", installed="all")
    for judge in (installed.removed, installed.shared, lambda about: installed.answer(about, {})):
        with pytest.raises(DocumentError, match=r"^gpu_slurm\.installed"):
            judge(node(known))


def test_services_of_slurm_s_go_whoever_brought_the_package():
    known = hosts(slurm_state="absent")
    services = dict.fromkeys(["munge", "mariadb", "slurmdbd", "slurmctld", "slurmd"], {"active": True})
    known["ctl"]["ansible_facts"]["gpu_node_state"]["services"] = services
    assert installed.removed(node(known))["services"] == ["slurmd", "slurmctld", "slurmdbd"]


def test_what_all_nodes_are_told_of_the_cluster():
    known = hosts()
    found = installed.shared(node(known))
    assert (found["problems"], found["address"], found["checked"]) == ([], "10.0.0.1", False)
    assert re.fullmatch("[0-9a-f]{16}", found["digest"])
    assert installed.shared(node(known, "gpu-1")) == found == installed.shared(node(known, "gpu-2"))
    assert installed.shared(node(hosts(health_state="present")))["checked"] is True


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        ({**hosts(), "ctl": {**hosts()["ctl"], "slurm_state": "external"}}, (
            "Slurm's controller ctl was not set up in this run; make it reachable, run without --limit, and set slurm_state: present for it, too."
        )),
        (on(hosts(), "ctl", "11.7"), (
            "There is no Slurm for ctl: the role installs that of Debian 12, Debian 13, not of debian 11.7; install Slurm yourself and set "
            "slurm_state: external."
        )),
        (on(hosts(), "gpu-2", "12"), (
            "gpu-2 has Slurm 22.05, which slurmctld 24.11 of ctl does not take; upgrade the older of both, or set slurm_state: absent for the "
            "node."
        )),
        (changed(hosts(), "gpu-2", confines=False), (
            "The kernel of gpu-2 does not give cgroups the controllers cpu, cpuset and memory; set slurm_cgroups: false for all hosts, with "
            "which jobs are not confined to their GPUs, or repair that."
        )),
        (changed(hosts(), "ctl", name="all"), (
            "ctl is called 'all', which Slurm does not take for a node; "
            "give it another host name, or, with slurm_state: external, set slurm_node_name."
        )),
        ({**hosts(), "gpu-2": {**hosts()["gpu-2"], "gpu_cluster_address": ""}}, (
            "The address of gpu-2 is not known; set gpu_cluster_address."
        )),
        ({**hosts(), "ctl": {**hosts()["ctl"], "gpu_cluster_address": ""}}, (
            "The address of ctl is not known; set gpu_cluster_address."
        )),
    ],
)  # fmt: skip
def test_what_is_wrong_with_the_cluster_is_one_sentence(known, sentence):
    assert sentences(installed.shared(node(known))) == [sentence]
    assert sentence in sentences(answer(known, "gpu-1"))


def test_a_host_s_own_variables_are_judged_first():
    known = hosts(slurm_partition="all")
    assert (
        sentences(answer(known))
        == sentences(answer(known, "gpu-1"))
        == ["slurm_partition is 'all'; write it like gpu."]
    )
    assert set(answer(known)) == {"problems"}


@pytest.mark.parametrize(
    ("state", "version", "code"),
    [("present", "11", "slurm_no_packages"), ("present", "13", None), ("external", "11", None), (None, "11", None)],
)
def test_the_plan_says_where_there_is_no_slurm(state, version, code):
    found = installed.obstacle("gpu-1", {"slurm_state": state}, {"id": "debian", "version": version})
    assert ((found.code, found.subject) if found else None) == (code and (code, "gpu-1"))


def test_a_system_that_nobody_knows():
    found = installed.obstacle("gpu-1", PRESENT, {"id": "", "version": ""})
    assert "not of an unknown system; install Slurm yourself" in describe(found)


@pytest.mark.parametrize(
    ("facts", "is_there"),
    [
        ({}, False),
        ({"gpu_node_state": {}}, False),
        ({"gpu_node_state": {"records": ["slurm_installed"]}}, True),
        ({"gpu_node_state": {"records": ["slurm"]}}, False),
    ],
)  # fmt: skip
def test_what_was_installed_is_on_record(facts, is_there):
    assert installed.is_installed(facts) is is_there


AS_PLANNED = (Status.AS_PLANNED, Remedy.NONE)


@pytest.mark.parametrize(
    ("asked", "whole"),
    [
        ({}, ("slurmctld", "answers", "answers", *AS_PLANNED, "controller")),
        ({"reachable": False}, ("slurmctld", "answers", "does not answer at 10.0.0.1", Status.DIFFERS, Remedy.APPLY, "controller")),
        ({"reachable": False, "controller": ""}, (
            "slurmctld", "answers", "does not answer at any address", Status.DIFFERS, Remedy.APPLY, "controller",
        )),
        ({}, ("slurmdbd", "answers", "answers", *AS_PLANNED, "controller")),
        ({}, ("slurmctld", "takes this node", "takes this node", *AS_PLANNED, "trust")),
        ({"answers": False}, (
            "slurmctld", "takes this node", "refuses this node: its key of munge, or its clock, is another one",
            Status.DIFFERS, Remedy.APPLY, "trust",
        )),
        ({}, ("node", "available", "idle", *AS_PLANNED, "state")),
        ({"state": "drained", "reason": "fan"}, ("node", "available", "drained (fan)", Status.DIFFERS, Remedy.RESUME, "state")),
        ({}, ("job", "a job that sees 1 GPU", "", Status.UNKNOWN, Remedy.MEASURE, "job")),
        ({"job": Job(1)}, ("job", "a job that sees 1 GPU", "a job sees 1", *AS_PLANNED, "job")),
        ({"job": Job(0)}, ("job", "a job that sees 1 GPU", "a job sees 0", Status.DIFFERS, Remedy.APPLY, "job")),
        ({"job": Job(None, "x")}, ("job", "a job that sees 1 GPU", "a job did not run: x", Status.DIFFERS, Remedy.APPLY, "job")),
    ],
)  # fmt: skip
def test_what_the_controller_says_is_told_whole(asked, whole):
    given = {"controller": "10.0.0.1", "reachable": True, "accounting": True, "answers": True, "state": "idle", **asked}
    assert Comparison("slurm", *whole) in compare_asked(Asked(**given), 1, True)


def test_who_does_not_answer_is_asked_nothing_more():
    silent = compare_asked(Asked("10.0.0.1", False, True), 4, True)
    assert [one.subject for one in silent] == ["slurmctld", "slurmdbd"]
    refused = compare_asked(Asked("10.0.0.1", True, True), 4, True)
    assert [one.subject for one in refused] == ["slurmctld", "slurmdbd", "slurmctld", "job"]


@pytest.mark.parametrize(
    ("state", "whole"),
    [
        ({"enabled": True, "active": True}, ("enabled and active", *AS_PLANNED)),
        ({"enabled": True, "active": False}, ("enabled and not active", Status.DIFFERS, Remedy.APPLY)),
        ({"enabled": False, "active": True}, ("not enabled and active", Status.DIFFERS, Remedy.APPLY)),
        ({"enabled": False}, ("not enabled and not active", Status.UNKNOWN, Remedy.MEASURE)),
        (None, ("not enabled and not active", Status.UNKNOWN, Remedy.MEASURE)),
    ],
)
def test_services_are_told_whole(state, whole):
    found = compare_services(["munge", "slurmd"], {"slurmd": state, "munge": {"enabled": True, "active": True}})
    assert [one.subject for one in found] == ["munge", "slurmd"]
    assert found[1] == Comparison("slurm", "slurmd", "enabled and active", *whole, "service")


ROW = """\
rows:
  - {id: debian, version: "12", slurm: "22.05", source: é, joins: ["22.05"], controller: [a], node: [b], login: [c], pids: {slurmd: /run}}
"""


def test_rows_of_packages_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "TABLE", tmp_path / "packages.yml")
    programs.TABLE.write_text(ROW, "utf-8")
    expected = programs.Distribution(
        "debian", "12", "22.05", "é", ("22.05",), ("a",), ("b",), ("c",), {"slurmd": "/run"}
    )
    assert programs.load.__wrapped__() == (expected,)
    programs.TABLE.write_text(ROW + ROW.partition("\n")[2].replace("source: é, ", ""), "utf-8")
    with pytest.raises(DocumentError, match=r"^packages\[1\]\.source"):
        programs.load.__wrapped__()
