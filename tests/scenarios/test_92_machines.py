# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine with a kernel of its own is tuned: values of the whole kernel, limits above the first process's, boots, power cuts.

What containers cannot show. Emulated: a boot takes a minute on an idle processor.
"""

import json
import time

import pytest
from cluster import KEEP
from machine_hosts import Machines

pytestmark = pytest.mark.lab

PLAYBOOK = "tests/scenarios/tuning.yml"
ARGUMENT = "iommu=pt"
TASK = "allreduce.gpu.tuning : Apply the settings and record the previous values"
WANTED = {
    "tuning_state": "present",
    "tuning_transport": "tcp",
    "tuning_sysctl": {"vm.swappiness": 7, "kernel.numa_balancing": 0, "net.ipv4.tcp_fin_timeout": 33},
    "tuning_limits": {"memlock": "unlimited", "nofile": 654321},
    "tuning_limit_services": ["ssh"],
    "tuning_kernel_arguments": [ARGUMENT],
}
# Of the kernel, of a session over SSH, and of a unit.
SHOW = """
cat /proc/sys/vm/swappiness /proc/sys/kernel/numa_balancing /proc/sys/net/ipv4/tcp_fin_timeout
su ansible -l -c 'ulimit -l; ulimit -n'
systemd-run --quiet --pipe --wait sh -c 'ulimit -l; ulimit -Hn'
"""
TUNED = ["7", "0", "33", "unlimited", "654321", "unlimited", "654321"]
# Files that the role writes: none is cut off, and none is left of a write that did not end.
FILES = """
for file in /etc/sysctl.d/90-allreduce.conf /etc/security/limits.d/90-allreduce.conf /var/lib/allreduce/*.json; do
  [ ! -e "$file" ] || [ -s "$file" ] || echo "empty: $file"
done
find /etc /var/lib/allreduce /opt/allreduce -xdev \\( -name '*.part' -o -name '.ansible_tmp*' -o -name '*.tmp' \\) 2>/dev/null
for file in /var/lib/allreduce/*.json; do [ ! -e "$file" ] || python3 -m json.tool "$file" > /dev/null; done
"""


@pytest.fixture(scope="module")
def machines():
    made = Machines("kernel", 1)
    yield made
    if not KEEP:
        made.down()


def tune(machines, **more):
    """The number of changes."""
    run = machines.play(PLAYBOOK, "-e", json.dumps({**WANTED, **more}))
    assert run.status == 0, run.output[-6000:]
    return run.recap[machines.hosts[0]]["changed"]


def shown(machines):
    return machines.on(machines.hosts[0], SHOW).split()


def test_10_values_of_the_whole_kernel_and_limits_hold_over_a_boot(machines):
    [host] = machines.hosts
    before = shown(machines)
    assert before != TUNED
    assert tune(machines) > 0
    assert tune(machines) == 0
    assert shown(machines) == TUNED
    boot = machines.on(host, "cat /proc/sys/kernel/random/boot_id")
    machines.reboot(host)
    assert machines.on(host, "cat /proc/sys/kernel/random/boot_id") != boot
    assert shown(machines) == TUNED
    assert ARGUMENT in machines.on(host, "cat /proc/cmdline").split()
    assert tune(machines) == 0
    assert tune(machines, tuning_state="absent") > 0
    machines.reboot(host)
    assert shown(machines) == before
    assert ARGUMENT not in machines.on(host, "cat /proc/cmdline").split()
    assert tune(machines, tuning_state="absent") == 0


# Seconds after the task that applies the settings has begun: it measures first, and has written everything after some seconds.
@pytest.mark.parametrize("seconds", [1, 4, 7, 10])
def test_20_a_power_cut_in_the_middle_is_made_good_by_the_next_run(machines, seconds):
    [host] = machines.hosts
    process = machines.start(PLAYBOOK, "-e", json.dumps(WANTED))
    while TASK not in process.stdout.readline():
        assert process.poll() is None, "the task did not begin"
    time.sleep(seconds)
    assert process.poll() is None, "the run had ended"
    machines.cut_power(host)
    process.kill()
    process.communicate()
    machines.power_on(host)
    assert machines.on(host, FILES) == ""
    tune(machines)
    assert tune(machines) == 0
    assert shown(machines) == TUNED
    tune(machines, tuning_state="absent")
