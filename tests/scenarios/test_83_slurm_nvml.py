# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that nobody here wrote read the simulated hardware: Slurm's NVML plugin on every machine with GPUs, and ibstat.

Slurm is Debian's, started as `slurmd -G`, which prints what it detects. Not proven: that a job gets these GPUs, since there are no
device files. A host has fewer processors than the machines, so GPUs are told to be near those that it has.
"""

import re
from dataclasses import dataclass

import pytest
from cluster import KEEP, Cluster

from tests.lab.nvml import machines, recording

pytestmark = pytest.mark.lab

HOST = machines.a100_nvlink()
MACHINES = [machine for machine in (make() for make in machines.MACHINES) if machine.gpus]
# The driver's packages are not what is tested: a library of this name is what they would bring.
DRIVER = "touch /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15; sh /srv/machine/files/lab-machine load"
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
MINORS = "/proc/driver/nvidia-caps/mig-minors"
RECORD = re.compile(r"Gres Name=gpu Type=(\S+) Count=1 .*? File=(\S+) .*?Links=(\S+)")


@dataclass(frozen=True, order=True)
class Gres:
    """What Slurm makes of a GPU or of an instance of one."""

    type: str
    files: str
    links: str


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
        ask = f"SIMULATED_NVML={PROFILE} slurmd"
        self.on("sed -i /^NodeName=/d /etc/slurm/slurm.conf")
        self.on(f"{ask} -C 2>/dev/null | grep ^NodeName= > /root/node; cat /root/node >> /etc/slurm/slurm.conf")
        return self.on(f"{ask} {options} 2>&1")


@pytest.fixture(scope="module")
def slurm():
    made = Asked()
    yield made
    if not KEEP:
        made.cluster.down()


def expected(machine):
    """What Slurm is to detect: names in lower case with underscores, links counted, -1 for the GPU itself."""
    found = []
    for gpu in machine.gpus:
        name, device = gpu.model.name.lower().replace(" ", "_"), f"/dev/nvidia{gpu.minor}"
        if gpu.mig:
            found += instances(machine, gpu, name.partition("-")[0], device)
            continue
        remotes = [remote for _kind, remote in gpu.links]
        counts = ["-1" if other is gpu else str(remotes.count(other.address)) for other in machine.gpus]
        found.append(Gres(name, device, ",".join(counts)))
    return found


def instances(machine, gpu, name, device):
    """An instance has two device files of its own, and no links."""
    numbers = {text: number for number, text in enumerate(recording.capabilities(machine), 1)}
    for part in gpu.mig:
        place = f"gpu{machine.gpus.index(gpu)}/gi{part.gpu_instance}"
        caps = [numbers[f"{place}/access"], numbers[f"{place}/ci0/access"]]
        files = [device, *(f"/dev/nvidia-caps/nvidia-cap{cap}" for cap in caps)]
        slices, memory = part.name.rpartition(" ")[2].split("g.")[0], (part.memory_mib + 512) // 1024
        yield Gres(f"{name}_{slices}g.{memory}gb", ",".join(files), "(null)")


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: machine.name)
def test_slurm_detects_the_machine(slurm, machine, tmp_path):
    slurm.become(machine, tmp_path)
    said = slurm.slurmd("-G")
    found = [Gres(*words) for words in RECORD.findall(said)]
    assert sorted(found) == sorted(expected(machine)), said


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
