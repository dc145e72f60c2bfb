# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From bare to converged, with a power cut on the way; then runs that change nothing."""

import os
import signal
import time

import pytest

from tests.bench.measure import playbook

pytestmark = pytest.mark.lab

EXECUTIONS_LIMIT = 35  # per host, of a no-change site run


def _wait_for(cluster, host, command, seconds=600):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if cluster.on(host, command, check=False).strip():
            return
        time.sleep(0.2)
    raise AssertionError(f"{host}: {command} printed nothing within {seconds} s")


def test_killed_in_the_middle_of_dpkg(cluster):
    """SIGKILL for the controller, and for dpkg on one host, while packages are being unpacked."""
    process = cluster.start("playbooks/site.yml")
    _wait_for(cluster, cluster.hosts[1], "pgrep -f '[d]pkg.*(--unpack|--configure)'")
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    cluster.on(cluster.hosts[1], "pkill -KILL apt-get; pkill -KILL apt; pkill -KILL dpkg", check=False)
    left = cluster.on(cluster.hosts[1], "dpkg --audit; ls /var/lib/dpkg/updates")
    assert left.strip(), "the kill came too late: dpkg had nothing left to do"


def test_the_next_run_converges(cluster):
    run = cluster.play("playbooks/site.yml")
    assert run.status == 0, run.output[-8000:]
    for host in cluster.hosts:
        assert cluster.on(host, "dpkg --audit") == ""


def test_driver_is_the_real_one(cluster):
    for host in cluster.hosts:
        built = cluster.on(host, "dkms status")
        assert "535." in built
        assert ": installed" in built, built
        # The real nvidia-smi, which finds no driver loaded: this host has no GPU.
        said = cluster.on(host, "nvidia-smi 2>&1; true")
        assert "NVIDIA-SMI has failed" in said or "No devices were found" in said, said


def test_nothing_waits_for_a_gpu_that_is_not_there(cluster):
    for host in cluster.hosts:
        # Debian's package itself tries to start it once: "failed" there.
        assert cluster.on(host, "systemctl is-active nvidia-persistenced", check=False).strip() != "active"
        assert cluster.on(host, "ls /var/lib/allreduce/reboot-pending 2>/dev/null", check=False) == ""


def test_second_run_changes_nothing(cluster):
    cost = playbook("site", cluster.inventory)
    assert cost.changed, "no recap"
    assert all(count == 0 for count in cost.changed.values()), cost.changed
    assert cost.per_host() <= EXECUTIONS_LIMIT, cost.executions


def test_check_mode_on_converged_hosts(cluster):
    before = cluster.fingerprints()
    run = cluster.play("playbooks/site.yml", "--check", "--diff")
    assert run.status == 0, run.output
    assert "Found existing ssh key" not in run.words
    assert all(counts["changed"] == 0 for counts in run.recap.values()), run.output
    assert cluster.fingerprints() == before
