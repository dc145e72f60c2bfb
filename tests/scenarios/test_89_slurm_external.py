# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Slurm cluster that others set up and run: the role describes its nodes to it, and touches nothing else.

Set up as an administrator would on Debian 12 and 13, by hand, without accounting; slurmctld sends the files to the nodes.
"""

import json
import re

import pytest
from cluster import CHECKOUT, KEEP
from slurm_hosts import FAULT, HEALTH, IDLE, ON, PLAYBOOK, REASON, Queue

pytestmark = pytest.mark.lab

EXTERNAL = {**ON, "slurm_state": "external"}
WATCHED = {**EXTERNAL, **HEALTH}
# No service starts yet: slurmd of Debian 13 would look for a controller for a minute and a half.
INSTALL = """
export DEBIAN_FRONTEND=noninteractive
printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d && chmod +x /usr/sbin/policy-rc.d
apt-get update -qq && apt-get install -qq -y --no-install-recommends munge {} > /dev/null && rm /usr/sbin/policy-rc.d
"""
THEIRS = """
ClusterName=theirs
SlurmctldHost={controller}({address})
SlurmUser=slurm
SlurmctldParameters=enable_configless
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
ReturnToService=2
{nodes}
PartitionName=theirs Nodes=ALL Default=YES DefMemPerCPU=100
"""
WITHOUT_US = "NodeName={names} CPUs=2 RealMemory=500"
INCLUDED = "Include allreduce_nodes.conf"
# Debian 13's unit waits for a word of slurmd's that -D does not give; Debian 12's knows no other way.
SLURMD = """
[Unit]
ConditionPathExists=
[Service]
Type=simple
ExecStart=
ExecStart=/usr/sbin/slurmd -D --conf-server {controller}
"""
# Of nodes that have the files of the cluster themselves.
WITH_FILES = "[Service]\nType=simple\nExecStart=\nExecStart=/usr/sbin/slurmd -D\n"
UNIT = "/etc/systemd/system/slurmd.service.d/theirs.conf"
COPIED = ("slurm.conf", "gres.conf", "cgroup.conf", "allreduce_gres.conf", "allreduce_nodes.conf")
FORGET = "systemctl stop slurmd; rm -rf /run/slurm/conf"
START = "systemctl daemon-reload; systemctl restart munge; systemctl enable -q {0}; systemctl restart {0}"
# What the role has on a host.
OURS = "ls -d /etc/slurm/allreduce_* /opt/allreduce/lib/slurm/* /var/lib/allreduce/slurm* 2>/dev/null"
# Everything of the administrator's: the role changes none of it.
FILES = "cd /etc; sha256sum slurm/slurm.conf slurm/gres.conf slurm/cgroup.conf munge/munge.key systemd/system/slurmd.service.d/* 2>/dev/null"


class Theirs(Queue):
    """A controller and two nodes with four GPUs each, of which that Slurm knows nothing at first."""

    def __init__(self, distribution):
        super().__init__(distribution, "theirs")
        addresses = {host: self.on(host, "hostname --all-ip-addresses").split()[0] for host in self.hosts}
        names = "\n".join(f"{address} {host}" for host, address in addresses.items())
        for host in self.hosts:
            self.on(host, f"echo '{names}' >> /etc/hosts")
            self.on(
                host, INSTALL.format("slurmctld slurm-client" if host == self.controller else "slurmd slurm-client")
            )
        self.address = addresses[self.controller]
        key = self.on(self.controller, "base64 -w0 /etc/munge/munge.key")
        for node in self.nodes:
            self.on(node, f"echo {key} | base64 -d > /etc/munge/munge.key")
            self.write(node, UNIT, SLURMD.format(controller=self.controller))
        plugin = "cgroup/v1" if distribution == "debian12" else "disabled"
        self.write(self.controller, "/etc/slurm/cgroup.conf", f"CgroupPlugin={plugin}\n")
        self.write(self.controller, "/etc/slurm/gres.conf", "# none yet\n")
        self.describe(WITHOUT_US.format(names=",".join(self.nodes)))
        self.restart()

    def write(self, host, path, content):
        self.on(host, f"mkdir -p $(dirname {path}); cat > {path} <<'END'\n{content}END")

    def describe(self, nodes, more=""):
        """Write their slurm.conf with these lines about the nodes, and more of them."""
        content = THEIRS.format(controller=self.controller, address=self.address, nodes=nodes) + more
        self.write(self.controller, "/etc/slurm/slurm.conf", content)

    def restart(self):
        """In the order of docs/slurm.md: a slurmd that still has the old lines reports no GPUs, for which its node is drained."""
        for node in self.nodes:
            self.on(node, "systemctl stop slurmd")
        self.on(self.controller, START.format("slurmctld"))
        for node in self.nodes:
            self.on(node, START.format("slurmd"))

    def refused(self, variables):
        """The words of a run that fails and changes nothing, neither of theirs nor of ours."""
        before = {host: self.on(host, f"{FILES}; {OURS}", check=False) for host in self.hosts}
        run = self.cluster.play(PLAYBOOK, "-e", json.dumps(variables), inventory=self.inventory)
        assert run.status != 0 and not any(one["changed"] for one in run.recap.values()), run.output[-6000:]
        assert {host: self.on(host, f"{FILES}; {OURS}", check=False) for host in self.hosts} == before
        return run.words

    def files(self):
        return {host: self.on(host, FILES, check=False) for host in self.hosts}


@pytest.fixture(scope="module", params=["debian13", "debian12"])
def theirs(request):
    made = Theirs(request.param)
    yield made
    if not KEEP:
        made.cluster.down()


def failed(checks):
    return {name: reason for name, (status, reason) in checks.items() if status != "passed"}


def test_10_the_files_are_written_next_to_theirs_which_stay_as_they_are(theirs, tmp_path):
    theirs.until("sinfo --noheader --format='%P %D %T'", "theirs* 2 idle")
    before = theirs.files()
    changes, said = theirs.play(EXTERNAL)
    assert changes[theirs.controller] > 0, said[-3000:]
    assert INCLUDED in said
    assert theirs.files() == before
    again, said = theirs.play(EXTERNAL)
    assert set(again.values()) == {0}, said[-3000:]
    assert theirs.run("squeue --noheader") == ""
    # Nobody has told Slurm of them yet. Its controller is asked about the node, and nothing else of theirs is judged.
    checks = theirs.checks(tmp_path, theirs.nodes[0], EXTERNAL)
    assert set(failed(checks)) == {"slurm_gpus", "slurm_node"}
    assert set(checks) == {"slurm_gpus", "slurm_node", "slurm_controller", "slurm_trust", "slurm_state"}


def test_20_once_they_are_included_slurm_has_the_gpus_as_measured(theirs, tmp_path):
    theirs.describe(INCLUDED)
    theirs.write(theirs.controller, "/etc/slurm/gres.conf", "Include allreduce_gres.conf\n")
    theirs.restart()
    theirs.until("sinfo --noheader --format='%P %D %T'", "theirs* 2 idle")
    assert re.match(r"gpu:[^:]+:4", theirs.run(f"sinfo --noheader --format=%G --nodes={theirs.nodes[0]}"))
    devices = theirs.run("srun --gres=gpu:2 sh -c 'echo $CUDA_VISIBLE_DEVICES'")
    assert re.fullmatch(r"[0-3],[0-3]", devices)
    assert failed(theirs.checks(tmp_path, theirs.nodes[0], EXTERNAL)) == {}
    again, said = theirs.play(EXTERNAL)
    assert set(again.values()) == {0}, said[-3000:]


def test_25_a_job_is_run_through_their_cluster_where_that_is_asked_for(theirs, tmp_path):
    first, second = theirs.nodes
    for host in theirs.hosts:
        theirs.on(host, "useradd --uid 4321 --create-home ada")
    asked = {"verify_slurm_job": True, "verify_user": "ada"}
    for node in theirs.nodes:
        assert theirs.checks(tmp_path, node, EXTERNAL, **asked)["slurm_job"][0] == "passed"
    # Their default partition is another one, as where GPUs have one of their own.
    theirs.describe(INCLUDED, "PartitionName=batch Default=YES\n")
    theirs.run("scontrol reconfigure")
    theirs.until_state(first, *IDLE)
    # One without nodes is listed with any.
    assert "theirs" in theirs.run(f"sinfo --noheader --nodes={first} --format=%P").split()
    assert theirs.checks(tmp_path, first, EXTERNAL, **asked)["slurm_job"][0] == "passed"
    # What their cluster refuses is theirs to see to.
    theirs.describe(INCLUDED)
    theirs.on(theirs.controller, "sed -i 's/^PartitionName=theirs.*/& AllowGroups=root/' /etc/slurm/slurm.conf")
    theirs.run("scontrol reconfigure")
    theirs.until_state(first, *IDLE)
    status, reason = theirs.checks(tmp_path, first, EXTERNAL, **asked)["slurm_job"]
    assert status == "failed" and "a job did not run: " in reason and "those who run that cluster" in reason, reason
    theirs.describe(INCLUDED)
    theirs.run("scontrol reconfigure")
    theirs.until_state(first, *IDLE)
    # A node of slurmd alone has nothing to submit with.
    theirs.on(second, "mv /usr/bin/sinfo /usr/bin/elsewhere")
    status, reason = theirs.checks(tmp_path, second, EXTERNAL, **asked)["slurm_job"]
    assert (status, reason) == (
        "skipped",
        "this node has no sinfo, or no slurm.conf for it, to ask the controller with",
    )
    theirs.on(second, "mv /usr/bin/elsewhere /usr/bin/sinfo")
    assert "slurm_job" not in theirs.checks(tmp_path, first, EXTERNAL)


def test_30_a_line_that_was_edited_is_named_and_mended(theirs, tmp_path):
    path = "/etc/slurm/allreduce_nodes.conf"
    before = theirs.on(theirs.controller, f"cat {path}")
    theirs.on(theirs.controller, f"sed -i 's/RealMemory=[0-9]*/RealMemory=100/' {path}")
    theirs.run("scontrol reconfigure")
    assert set(failed(theirs.checks(tmp_path, theirs.nodes[0], EXTERNAL))) == {"slurm_node"}
    changes, _said = theirs.play(EXTERNAL)
    assert changes[theirs.controller] == 1
    assert theirs.on(theirs.controller, f"cat {path}") == before


def test_40_the_controller_is_found_where_slurmd_finds_it(theirs, tmp_path):
    first, second = theirs.nodes
    # Of a slurmd that does not run, only its options are left.
    theirs.on(first, FORGET)
    checks = theirs.checks(tmp_path, first, EXTERNAL)
    assert (checks["slurm_controller"][0], checks["slurm_state"][0]) == ("passed", "skipped"), checks
    theirs.on(first, f"rm {UNIT}; systemctl daemon-reload")
    checks = theirs.checks(tmp_path, first, EXTERNAL)
    assert checks["slurm_controller"] == (
        "skipped", "no controller is known: neither slurm.conf nor the options of slurmd on this node name one",
    )  # fmt: skip
    assert not {"slurm_trust", "slurm_state"} & set(checks)
    theirs.write(first, UNIT, SLURMD.format(controller=theirs.controller))
    theirs.on(first, START.format("slurmd"))
    # A node with files of its own.
    theirs.on(second, f"{FORGET}; mkdir -p /etc/slurm")
    for name in COPIED:
        theirs.write(second, f"/etc/slurm/{name}", theirs.on(theirs.controller, f"cat /etc/slurm/{name}"))
    theirs.write(second, UNIT, WITH_FILES)
    theirs.on(second, START.format("slurmd"))
    theirs.until_state(second, *IDLE)
    assert failed(theirs.checks(tmp_path, second, EXTERNAL)) == {}
    theirs.on(theirs.controller, "systemctl stop slurmctld")
    found = failed(theirs.checks(tmp_path, second, EXTERNAL))
    assert set(found) == {"slurm_controller"} and "those who run that cluster" in found["slurm_controller"]
    theirs.on(theirs.controller, "systemctl start slurmctld")
    theirs.on(second, f"{FORGET}; cd /etc/slurm; rm {' '.join(COPIED)}")
    theirs.write(second, UNIT, SLURMD.format(controller=theirs.controller))
    theirs.on(second, START.format("slurmd"))
    theirs.until("sinfo --noheader --format='%P %D %T'", "theirs* 2 idle")


def test_50_with_the_lines_of_the_documentation_its_health_decides_about_a_node(theirs, tmp_path):
    first, second = theirs.nodes
    changes, said = theirs.play(WATCHED)
    assert changes[theirs.controller] == 0 and changes[first] and changes[second]
    assert "docs/slurm.md has the lines" in " ".join(said.split())
    theirs.describe(INCLUDED, documented_lines())
    theirs.run("scontrol reconfigure")
    again, said = theirs.play(WATCHED)
    assert set(again.values()) == {0} and "docs/slurm.md" not in said, said[-3000:]
    theirs.judge(first)
    theirs.judge(second)
    assert failed(theirs.checks(tmp_path, second, WATCHED)) == {}
    theirs.judge(second, FAULT)
    theirs.until_state(second, "drained", REASON)
    assert theirs.states()[first] == IDLE
    assert theirs.run("srun --gres=gpu:1 hostname") == first
    theirs.judge(second)
    # Without accounting, Slurm 24.11 keeps the reason of a node that is back in service, and lists it no more.
    theirs.until(f"sinfo --noheader --format=%T --nodes={second}; sinfo --noheader --list-reasons", "idle")
    # A node whose health nobody watches keeps the programs, which slurm.conf names for all.
    changes, _said = theirs.play({**WATCHED, "slurm_health": False})
    assert set(changes.values()) == {0}
    assert theirs.run("srun --nodes=2 --gres=gpu:1 true") == ""


def test_70_what_their_files_use_is_not_removed(theirs):
    words = theirs.refused({**WATCHED, "slurm_state": "absent"})
    for line in (
        "Include allreduce_gres.conf in /etc/slurm/gres.conf:1",
        "Include allreduce_nodes.conf in /etc/slurm/slurm.conf:14",
    ):
        assert line in words
    for key in ("Prolog", "Epilog", "HealthCheckProgram"):
        assert f"{key} in /run/slurm/conf/slurm.conf:" in words
    theirs.until("sinfo --noheader --format='%P %D %T'", "theirs* 2 idle")


def documented_lines():
    """The lines for health programs that an administrator copies."""
    found = (CHECKOUT / "docs" / "slurm.md").read_text(encoding="utf-8").partition("\nHealthCheckProgram=")
    return "HealthCheckProgram=" + found[2].partition("```")[0]


def test_80_absent_takes_only_ours_away(theirs):
    theirs.describe(WITHOUT_US.format(names=",".join(theirs.nodes)))
    theirs.write(theirs.controller, "/etc/slurm/gres.conf", "# none\n")
    theirs.restart()
    before = theirs.files()
    theirs.play({**WATCHED, "slurm_state": "absent"})
    assert theirs.files() == before
    assert {host: theirs.on(host, OURS, check=False) for host in theirs.hosts} == dict.fromkeys(theirs.hosts, "")
    theirs.until("sinfo --noheader --format='%P %D %T'", "theirs* 2 idle")
    assert theirs.run("srun --nodes=2 true") == ""
