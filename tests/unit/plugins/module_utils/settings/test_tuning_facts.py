# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fact gpu_tuning of recorded machines."""

import pytest
from ansible_collections.allreduce.gpu.plugins.module_utils.settings import tuning_facts, tuning_record
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.files_helper import tree
from ansible_collections.allreduce.gpu.tests.unit.plugins.module_utils.tuning_helper import BOOT, server

ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
ens1\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0
ens1\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
ens2\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
ens3\t0001000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
ens4\t0001000A\t0100000A\t0003\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""
KEYS = ["vm.swappiness", "net.ipv4.tcp_rmem", "vm.none"]


def test_rails_that_share_a_subnet():
    assert tuning_facts.shared_subnets(ROUTES) == [{"subnet": "0000000A/00FFFFFF", "interfaces": ["ens1", "ens2"]}]
    assert tuning_facts.shared_subnets(None) == []


def test_the_whole_fact(tmp_path):
    files = {**server(), "/proc/net/route": ROUTES, "/proc/net/arp": "IP address\n10.0.0.2\n10.0.0.3\n"}
    files["/etc/sysctl.d/10-x.conf"] = "vm.swappiness = 1\n"
    fact = tuning_facts.read_tuning(tree(tmp_path, files), KEYS, ["slurmd"], ["ens1"])
    assert (fact["numa_nodes"], fact["neighbours"], fact["container"], fact["recorded"]) == (2, 2, False, False)
    assert (fact["memory_kib"], fact["huge_page_kib"]) == (1056000000, 2048)
    assert fact["sysctl"]["vm.swappiness"] == {"running": "60", "original": "60"}
    assert fact["sysctl"]["vm.none"] == {"running": None, "original": None}
    assert {name: one["running"] for name, one in fact["switches"].items()} == {
        "governor": "schedutil",
        "idle_latency": "0",
        "transparent_hugepage": "madvise",
    }
    assert [line["file"] for line in fact["sysctl_lines"]] == ["/etc/sysctl.d/10-x.conf"]
    assert fact["interfaces"]["ens1"]["cpus"] == "2-3" and fact["limits"]["fresh"] is None


@pytest.mark.parametrize("driver", ["none\n", None])
def test_latency_limits_that_nothing_heeds_do_not_count(tmp_path, driver):
    files = server()
    files["/sys/devices/system/cpu/cpuidle/current_driver"] = driver or ""
    if driver is None:
        del files["/sys/devices/system/cpu/cpuidle/current_driver"]
    assert "idle_latency" not in tuning_facts.read_tuning(tree(tmp_path, files), [])["switches"]


def test_what_was_before_the_first_change_is_told(tmp_path):
    files = server()
    made = tree(tmp_path, files)
    governors = {f"/sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor": "powersave" for n in range(4)}
    record = {**tuning_record.empty(made), "values": {"/proc/sys/vm/swappiness": "30", **governors}}
    tree(tmp_path, {tuning_record.PATH: tuning_record.dump(record)})
    fact = tuning_facts.read_tuning(made, ["vm.swappiness"])
    assert fact["recorded"] is True
    assert fact["sysctl"]["vm.swappiness"] == {"running": "60", "original": "30"}
    assert fact["switches"]["governor"] == {"running": "schedutil", "original": "powersave"}


def test_what_was_recorded_of_interrupts_ends_with_the_boot(tmp_path):
    made = tree(tmp_path, server())
    values = {"/proc/irq/120/smp_affinity_list": "0", "/proc/sys/vm/swappiness": "30"}
    record = {**tuning_record.empty(made), "values": values}
    tree(tmp_path, {tuning_record.PATH: tuning_record.dump(record)})
    assert tuning_record.load(made)["values"] == values
    tree(tmp_path, {"/proc/sys/kernel/random/boot_id": BOOT.replace("5d2c", "0000")})
    assert tuning_record.load(made)["values"] == {"/proc/sys/vm/swappiness": "30"}


@pytest.mark.parametrize("text", ['{"format": 2}', "no JSON"])
def test_a_record_of_somebody_else_is_refused(tmp_path, text):
    with pytest.raises(ValueError):
        tuning_record.load(tree(tmp_path, {tuning_record.PATH: text}))
