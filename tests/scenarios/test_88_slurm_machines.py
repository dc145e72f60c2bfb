# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Slurm on a node with a kernel of its own: cgroups keep a job from the GPUs, processors and memory of others, also after a boot.

The controller is a container, which confines nothing. The device files have no driver behind them: to open one that a job may use ends
with ENXIO, and one that it may not with EPERM, since the kernel asks the cgroup before the driver.
"""

import json
import time

import pytest
import yaml
from cluster import KEEP, Cluster
from machine_hosts import Machines
from slurm_hosts import DEVICES, DRIVER

from tests.lab import hardware

pytestmark = pytest.mark.lab

PLAYBOOK = "tests/scenarios/slurm.yml"
GPUS = "a100-nvlink"
ON = {
    "gpu_stack_request": {"pytorch": "2.13.0", "pytorch_index": "cpu"}, "nvidia_driver_without_gpu": False, "slurm_state": "present",
}  # fmt: skip
# What the kernel says to a process that opens each GPU's device file, and how many processors it may run on.
LOOK = """
import errno, os, resource
said = {}
for number in range(4):
    try:
        os.close(os.open(f"/dev/nvidia{number}", os.O_RDWR))
    except OSError as error:
        said[number] = errno.errorcode[error.errno]
print([number for number in said if said[number] == "ENXIO"], [number for number in said if said[number] == "EPERM"])
print(len(os.sched_getaffinity(0)), resource.getrlimit(resource.RLIMIT_MEMLOCK)[0] == resource.RLIM_INFINITY)
"""


class Confined(Machines):
    """A machine with four simulated GPUs, and the container that is its controller."""

    def __init__(self):
        super().__init__("confined", 1)
        self.control = Cluster("confinedctl", 1, "--wheels", "uv")
        self.node, self.controller = self.hosts[0], self.control.hosts[0]
        self._give_gpus()
        self.both = self.edit_inventory(self.inventory.with_name("confined-both"), self._with_controller)

    def _give_gpus(self):
        self.send_hardware(self.node, GPUS)
        self.on(self.node, f"{hardware.INSTALL}\n{DRIVER}\n{DEVICES}")

    def _with_controller(self, content):
        path = self.control.inventory / "hosts.yml"
        other = yaml.safe_load(path.read_text(encoding="utf-8"))["gpu_nodes"]
        content["controllers"] = other

    def down(self):
        """Remove both."""
        super().down()
        if hasattr(self, "control"):
            self.control.down()

    def set_up(self, **more):
        """{host: number of changes} of a run that succeeds."""
        run = self.play(PLAYBOOK, "-e", json.dumps({**ON, **more}), inventory=self.both)
        assert run.status == 0, run.output[-6000:]
        return {host: run.recap[host]["changed"] for host in (self.node, self.controller)}

    def run(self, command, seconds=300):
        """What a command on the controller prints."""
        return self.control.on(self.controller, f"timeout {seconds} {command}").strip()

    def until(self, command, expected, seconds=300):
        """Wait until a command on the controller prints this."""
        end = time.monotonic() + seconds
        while (said := self.run(command)) != expected:
            assert time.monotonic() < end, f"{command}: {said}"
            time.sleep(2)

    def boot(self):
        """The id of the node's present boot; nothing while it is down."""
        return self.on(self.node, "cat /proc/sys/kernel/random/boot_id", check=False).strip()

    def come_back(self, before, state="1 idle"):
        """Wait until the node has booted again, slurmd has ended for want of devices, and with them the node has this state."""
        end = time.monotonic() + 900
        while self.boot() in ("", before):
            assert time.monotonic() < end, self.run(f"scontrol show node {self.node}")
            time.sleep(5)
        assert self.on(self.node, "ls /dev/nvidia[0-9] 2>/dev/null || true") == ""
        # As before the driver is loaded. It waits for a while, and is started again.
        while self.on(self.node, "systemctl show --property NRestarts --value slurmd").strip() == "0":
            assert time.monotonic() < end
            time.sleep(5)
        self.on(self.node, DEVICES)
        # Of a node that is gone, slurmctld knows nothing new for five minutes (SlurmdTimeout).
        started = self.on(self.node, 'date --date="$(uptime --since)" +%s')
        while self.registered() < int(started) - 60:
            assert time.monotonic() < end, self.run(f"scontrol show node {self.node}")
            time.sleep(5)
        self.until("sinfo --noheader --format='%D %T'", state)

    def registered(self):
        """The time, in seconds since 1970, of the boot that slurmctld last heard of."""
        said = self.run(f"scontrol show node {self.node} | grep -o 'BootTime=[^ ]*'").removeprefix("BootTime=")
        return int(self.run(f"date --date={said} +%s"))

    def look(self, *options):
        """(GPUs that a job may open, those that it may not), processors, whether it may lock memory."""
        gpus, others = self.run(f"srun {' '.join(options)} python3 /usr/local/bin/look").splitlines()
        may, may_not = (yaml.safe_load(part + "]") for part in gpus.rstrip("]").split("] "))
        processors, locks = others.split()
        return may, may_not, int(processors), locks == "True"


@pytest.fixture(scope="module")
def confined():
    made = Confined()
    yield made
    if not KEEP:
        made.down()


def test_10_the_role_confines_where_the_kernel_can(confined):
    assert all(confined.set_up().values())
    assert set(confined.set_up().values()) == {0}
    confined.until("sinfo --noheader --format='%D %T'", "1 idle")
    confined.on(confined.node, f"cat > /usr/local/bin/look <<'END'{LOOK}END")


def test_20_a_job_opens_its_own_gpus_only(confined):
    may, may_not, processors, locks = confined.look("--gres=gpu:1", "--cpus-per-task=1", "--mem=100M")
    assert (len(may), sorted(may + may_not), processors, locks) == (1, [0, 1, 2, 3], 1, True)
    may, may_not, _processors, _locks = confined.look("--gres=gpu:3", "--mem=100M")
    assert (len(may), len(may_not)) == (3, 1)
    assert confined.look("--mem=100M")[:2] == ([], [0, 1, 2, 3])
    # Two at the same time, which share none.
    asked = (
        "--gres=gpu:2 --cpus-per-task=1 --mem=100M --output=/tmp/look-%j --wrap='python3 /usr/local/bin/look; sleep 20'"
    )
    jobs = [confined.run(f"sbatch --parsable {asked}") for _turn in range(2)]
    confined.until(f"squeue --noheader --jobs={','.join(jobs)} --format=%T", "RUNNING\nRUNNING", 60)
    confined.until(f"squeue --noheader --jobs={','.join(jobs)}", "")
    said = [confined.on(confined.node, f"head -1 /tmp/look-{job}").split("]")[0].strip("[ ") for job in jobs]
    assert sorted(",".join(said).replace(" ", "").split(",")) == ["0", "1", "2", "3"]


def test_30_a_job_that_takes_more_memory_than_its_own_ends_and_no_other(confined):
    other = confined.run("sbatch --parsable --mem=100M --wrap='sleep 60'")
    confined.until(f"squeue --noheader --jobs={other} --format=%T", "RUNNING")
    greedy = "bytearray(400 << 20)"
    job = confined.run(f"sbatch --parsable --mem=100M --wrap='python3 -c \"{greedy}\"'")
    confined.until(f"squeue --noheader --jobs={job}", "")
    confined.until(f"sacct --allocations --noheader --parsable2 --format=State --jobs={job}", "OUT_OF_MEMORY")
    confined.until(f"sacct --allocations --noheader --parsable2 --format=State --jobs={other}", "COMPLETED")


def test_40_a_boot_that_slurm_is_asked_for_waits_for_jobs_and_brings_the_node_back(confined):
    boot = confined.boot()
    job = confined.run("sbatch --parsable --mem=100M --wrap='sleep 30'")
    confined.until(f"squeue --noheader --jobs={job} --format=%T", "RUNNING")
    confined.run(f"scontrol reboot ASAP nextstate=RESUME reason=kernel {confined.node}")
    confined.come_back(boot)
    confined.until(f"sacct --allocations --noheader --parsable2 --format=State --jobs={job}", "COMPLETED")
    may, may_not, _processors, locks = confined.look("--gres=gpu:2", "--mem=100M")
    assert (len(may), len(may_not), locks) == (2, 2, True)


def test_45_after_a_power_cut_it_is_down_until_somebody_resumes_it(confined):
    boot = confined.boot()
    confined.cut_power(confined.node)
    confined.power_on(confined.node)
    confined.come_back(boot, "1 down")
    assert confined.run("sinfo --noheader --format=%E") == "Node unexpectedly rebooted"
    confined.run(f"scontrol update NodeName={confined.node} State=RESUME")
    confined.until("sinfo --noheader --format='%D %T'", "1 idle")
    may, may_not, _processors, locks = confined.look("--gres=gpu:2", "--mem=100M")
    assert (len(may), len(may_not), locks) == (2, 2, True)
    assert set(confined.set_up().values()) == {0}


def test_50_removal_leaves_no_confinement(confined):
    assert all(confined.set_up(slurm_state="absent").values())
    assert set(confined.set_up(slurm_state="absent").values()) == {0}
    assert (
        confined.on(confined.node, "ls -d /etc/slurm /sys/fs/cgroup/system.slice/slurmstepd.scope 2>/dev/null || true")
        == ""
    )
