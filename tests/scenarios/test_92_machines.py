# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine with a kernel of its own: values of the whole kernel, limits above the first process's, boots, power cuts, its clock.

What containers cannot show. Emulated: a boot takes a minute on an idle processor.
"""

import json
import time

import pytest
from cluster import KEEP, Cluster
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
# The battery of the clock is empty: it starts somewhere in the past.
LATE = """
systemctl disable -q --now chrony
date --set='2026-01-01 00:00' && hwclock --systohc
systemctl reboot
"""
SERVE_TIME = """
apt-get -q update && apt-get -y -q install chrony
printf 'local stratum 3\nallow\n' > /etc/chrony/conf.d/lab.conf
systemctl restart chrony
"""
FOLLOW = "echo 'server {address} iburst' > /etc/chrony/sources.d/lab.sources; systemctl enable -q --now chrony; chronyc waitsync 30"


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
    assert machines.broken_files(host) == ""
    tune(machines)
    assert tune(machines) == 0
    assert shown(machines) == TUNED
    tune(machines, tuning_state="absent")


def clock_behind(machines):
    """Seconds between this machine's clock and the machine's."""
    return time.time() - int(machines.on(machines.hosts[0], "date +%s"))


def test_30_a_clock_that_is_late_at_boot_is_told_and_the_time_service_puts_it_right(machines, tmp_path):
    [host] = machines.hosts
    machines.boots(host, LATE)
    assert clock_behind(machines) > 86400
    assert machines.checked(host, tmp_path)["clock_synchronised"] == ("failed", "no")
    server = Cluster("clock", 1, "--wheels", "uv")
    try:
        server.on(server.hosts[0], SERVE_TIME)
        machines.on(host, FOLLOW.format(address=server.address(server.hosts[0])))
        assert abs(clock_behind(machines)) < 5
        assert machines.checked(host, tmp_path)["clock_synchronised"] == ("passed", "yes")
    finally:
        server.down()
