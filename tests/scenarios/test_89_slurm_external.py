# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Slurm cluster that others set up and run: the role describes its nodes to it, and touches nothing else.

Set up as an administrator would on Debian 12, by hand, without accounting; slurmctld sends the files to the nodes.
"""

import re

import pytest
from cluster import KEEP
from slurm_hosts import ON, Queue

pytestmark = pytest.mark.lab

EXTERNAL = {**ON, "slurm_state": "external"}
INSTALL = "export DEBIAN_FRONTEND=noninteractive; apt-get update -qq && apt-get install -qq -y --no-install-recommends munge {} > /dev/null"
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
SLURMD = """
[Unit]
ConditionPathExists=
[Service]
ExecStart=
ExecStart=/usr/sbin/slurmd -D --conf-server {controller}
"""
START = "systemctl daemon-reload; systemctl restart munge; systemctl enable -q {0}; systemctl restart {0}"
# Everything of the administrator's: the role changes none of it.
FILES = "cd /etc; sha256sum slurm/slurm.conf slurm/gres.conf slurm/cgroup.conf munge/munge.key systemd/system/slurmd.service.d/* 2>/dev/null"


class Theirs(Queue):
    """A controller and two nodes with four GPUs each, of which that Slurm knows nothing at first."""

    def __init__(self):
        super().__init__("debian12", "theirs")
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
            self.write(
                node, "/etc/systemd/system/slurmd.service.d/theirs.conf", SLURMD.format(controller=self.controller)
            )
        self.write(self.controller, "/etc/slurm/cgroup.conf", "CgroupPlugin=cgroup/v1\n")
        self.write(self.controller, "/etc/slurm/gres.conf", "# none yet\n")
        self.describe(WITHOUT_US.format(names=",".join(self.nodes)))
        self.restart()

    def write(self, host, path, content):
        self.on(host, f"mkdir -p $(dirname {path}); cat > {path} <<'END'\n{content}END")

    def describe(self, nodes):
        """Write their slurm.conf with these lines about the nodes."""
        content = THEIRS.format(controller=self.controller, address=self.address, nodes=nodes)
        self.write(self.controller, "/etc/slurm/slurm.conf", content)

    def restart(self):
        """In the order of docs/slurm.md: a slurmd that still has the old lines reports no GPUs, for which its node is drained."""
        for node in self.nodes:
            self.on(node, "systemctl stop slurmd")
        self.on(self.controller, START.format("slurmctld"))
        for node in self.nodes:
            self.on(node, START.format("slurmd"))

    def files(self):
        return {host: self.on(host, FILES, check=False) for host in self.hosts}


@pytest.fixture(scope="module")
def theirs():
    made = Theirs()
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
    # Nobody has told Slurm of them yet.
    assert set(failed(theirs.checks(tmp_path, theirs.nodes[0], EXTERNAL))) == {"slurm_gpus", "slurm_node"}


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


def test_30_a_line_that_was_edited_is_named_and_mended(theirs, tmp_path):
    path = "/etc/slurm/allreduce_nodes.conf"
    before = theirs.on(theirs.controller, f"cat {path}")
    theirs.on(theirs.controller, f"sed -i 's/RealMemory=[0-9]*/RealMemory=100/' {path}")
    theirs.run("scontrol reconfigure")
    assert set(failed(theirs.checks(tmp_path, theirs.nodes[0], EXTERNAL))) == {"slurm_node"}
    changes, _said = theirs.play(EXTERNAL)
    assert changes[theirs.controller] == 1
    assert theirs.on(theirs.controller, f"cat {path}") == before


def test_80_absent_takes_only_ours_away(theirs):
    theirs.describe(WITHOUT_US.format(names=",".join(theirs.nodes)))
    theirs.write(theirs.controller, "/etc/slurm/gres.conf", "# none\n")
    theirs.restart()
    before = theirs.files()
    theirs.play({**EXTERNAL, "slurm_state": "absent"})
    assert theirs.files() == before
    assert theirs.on(theirs.controller, "ls /etc/slurm | grep allreduce", check=False) == ""
    theirs.until("sinfo --noheader --format='%P %D %T'", "theirs* 2 idle")
    assert theirs.run("srun --nodes=2 true") == ""
