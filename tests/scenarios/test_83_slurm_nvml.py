# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that nobody here wrote read the simulated hardware: Slurm's NVML plugin on every machine with GPUs, and ibstat.

What that plugin detects is also what role slurm writes without it.

Slurm is Debian's, started as `slurmd -G`, which prints what it detects. Not proven: that a job gets these GPUs, since there are no
device files. A host has fewer processors than the machines, so GPUs are told to be near those that it has.
"""

import re

import pytest
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm.decide import model_of
from ansible_collections.allreduce.gpu.plugins.plugin_utils.subjects.slurm.lines import GRES, files
from cluster import KEEP, Cluster
from slurm_hosts import DRIVER

from tests.lab.nvml import machines, recording
from tests.support.slurm import Gres, expected, measured

pytestmark = pytest.mark.lab

HOST = machines.a100_nvlink()
MACHINES = [machine for machine in (make() for make in machines.MACHINES) if machine.gpus]
INSTALL = """
sed -i 's/ main$/ main contrib/' /etc/apt/sources.list
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install -y --no-install-recommends slurmd slurm-wlm-nvml-plugin infiniband-diags
"""
# Cgroups are the machine's that the host runs on, in whatever mode; nothing is started in one here.
CONFIGURE = """
mkdir -p /var/spool/slurmd /etc/slurm
echo CgroupPlugin=disabled > /etc/slurm/cgroup.conf
echo AutoDetect=nvml > /etc/slurm/gres.conf
cat > /etc/slurm/slurm.conf <<END
ClusterName=lab
SlurmctldHost=$(hostname)
SlurmUser=root
ProctrackType=proctrack/linuxproc
GresTypes=gpu
END
"""
PROFILE = "/root/profile"
SLURMD = f"SIMULATED_NVML={PROFILE} slurmd"
GRES_CONF = "/etc/slurm/gres.conf"
# The file that role slurm writes and the cluster's gres.conf includes, here about the host itself.
WRITTEN = "/etc/slurm/allreduce_gres.conf"
NODE = "gpu-1"
MINORS = "/proc/driver/nvidia-caps/mig-minors"
RECORD = re.compile(r"Gres Name=gpu Type=(\S+) Count=1 .*? File=(\S+)(?:.* Links=(\S+))?")


class Asked:
    """A host with Slurm."""

    def __init__(self):
        self.cluster = Cluster("slurm", 1, "--distribution", "debian13", "--machine", HOST.name)
        self.on(f"set -e\n{INSTALL}\n{DRIVER}\n{CONFIGURE}")
        self.processors = int(self.on("nproc"))

    def on(self, command):
        return self.cluster.on(self.cluster.hosts[0], command)

    def become(self, machine, place, without=""):
        """Let NVML answer as a machine does, but for some words; of the kernel's trees only the numbers of instances change."""
        recording.record(machine, place, around=False)
        lines = (place / "profile").read_text(encoding="utf-8").replace(without, "").splitlines()
        lines = [line for line in lines if " cpu_affinity " not in line]
        lines += [f"{index} cpu_affinity {self.near(index)}" for index in range(len(machine.gpus))]
        minors = (place / "proc/driver/nvidia-caps/mig-minors").read_text(encoding="utf-8")
        self.write(PROFILE, "\n".join(lines) + "\n")
        self.write(MINORS, minors)

    def near(self, index):
        """The processor of a GPU: others for its neighbours, as far as there are."""
        return index % self.processors

    def write(self, path, text):
        self.on(f"cat > {path} <<'END'\n{text}END")

    def slurmd(self, options):
        """What slurmd says of the machine; the node's own line of slurm.conf is what it says itself."""
        self.on("sed -i /^NodeName=/d /etc/slurm/slurm.conf")
        self.on(f"{SLURMD} -C 2>/dev/null | grep ^NodeName= > /root/node; cat /root/node >> /etc/slurm/slurm.conf")
        return self.on(f"{SLURMD} {options} 2>&1")

    def slurmd_with(self, written):
        """What slurmd says of a file that gres.conf includes, for the node's last line; device files are made, of /dev/null's kind."""
        name = self.on("hostname -s").strip()
        self.write(WRITTEN, written.replace(f"NodeName={NODE} ", f"NodeName={name} "))
        devices = sorted(set(re.findall(r"/dev/[\w/-]+", written)))
        made = "".join(f"mkdir -p $(dirname {one}); test -e {one} || mknod {one} c 1 3\n" for one in devices)
        self.on(f"set -e\n{made}echo Include {WRITTEN.rpartition('/')[2]} >> {GRES_CONF}")
        try:
            return self.on(f"{SLURMD} -G 2>&1")
        finally:
            self.on(f"rm {WRITTEN}; sed -i /^Include/d {GRES_CONF}")


@pytest.fixture(scope="module")
def slurm():
    made = Asked()
    yield made
    if not KEEP:
        made.cluster.down()


def records(said):
    """What slurmd -G printed, without cores; an instance has no links."""
    return sorted(Gres(kind, devices, links or "(null)") for kind, devices, links in RECORD.findall(said))


def derived(machine):
    """The file that role slurm writes for a machine, as NODE of a cluster; no cores, since those of the host are others."""
    facts = measured(machine.name)
    places = [{"package": 0, "cores": 1, "threads": 1}]
    facts = {**facts, "gpu_slurm": {**facts["gpu_slurm"], "places": places, "name": NODE}}
    return files([(model_of(NODE, {"ansible_facts": facts}), "none")])[GRES]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_slurm_detects_the_machine(slurm, machine, tmp_path):
    slurm.become(machine, tmp_path)
    said = slurm.slurmd("-G")
    assert records(said) == sorted(expected(machine)), said


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_slurm_takes_what_role_slurm_writes_as_what_it_detects(slurm, machine, tmp_path):
    """Type, files and links of every GPU and instance; gres.conf asks for detection, which the role's lines switch off for the node."""
    slurm.become(machine, tmp_path)
    detected = slurm.slurmd("-G")
    said = slurm.slurmd_with(derived(machine))
    assert records(said) == records(detected) and records(detected), said


def test_slurm_makes_a_name_of_what_an_instance_has(slurm, tmp_path):
    """Where the driver's name of it does not tell."""
    machine = machines.a100_mig()
    slurm.become(machine, tmp_path, without=" MIG 3g.20gb")
    assert [words[0] for words in RECORD.findall(slurm.slurmd("-G"))] == [one.type for one in expected(machine)]


def test_slurm_takes_the_affinity_of_each_gpu(slurm, tmp_path):
    slurm.become(HOST, tmp_path)
    said = slurm.slurmd("-G -vvv")
    ranges = re.findall(r"CPU Affinity Range - Machine: (\S+)", said)
    assert ranges == [str(slurm.near(index)) for index in range(len(HOST.gpus))], said


def test_slurm_has_no_name_of_a_gpu_that_is_lost(slurm, tmp_path):
    slurm.become(HOST.change(1, lost=True), tmp_path)
    assert "Gres=gpu:nvidia_a100-sxm4-40gb:3,gpu:1\n" in slurm.on(f"SIMULATED_NVML={PROFILE} slurmd -C 2>&1")


def test_ibstat_reads_the_adapters(slurm):
    """The host's own, in /sys since its boot."""
    said = slurm.on("ibstat")
    assert re.findall(r"^CA '(\w+)'$", said, re.M) == [nic.name for nic in HOST.nics]
    assert re.findall(r"^\s+State: (\w+)$", said, re.M) == [nic.state.capitalize() for nic in HOST.nics]
    assert re.findall(r"^\s+Rate: (\d+)$", said, re.M) == [str(nic.rate_gbps) for nic in HOST.nics]
    assert re.findall(r"^\s+Link layer: (\w+)$", said, re.M) == [nic.link_layer for nic in HOST.nics]
