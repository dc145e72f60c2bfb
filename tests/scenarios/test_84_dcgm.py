# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's exporter comes from NVIDIA's repository, reads our counters file, and a real Prometheus scrapes it; DCGM comes in the
version of the plan and stays there.

Debian, apt, Prometheus and the unit are real. The exporter is a stand-in of the lab's mirror that ends where NVIDIA's ends (unknown
options and fields, malformed lines, no DCGM, no driver) and asks for the password; that DCGM reads a GPU is not proven.
"""

import json
import time
import urllib.parse

import pytest
from cluster import KEEP, Cluster

pytestmark = pytest.mark.lab

PLAYBOOK = "tests/scenarios/dcgm.yml"
PASSWORD = "correct horse battery"
COUNTERS = "/etc/allreduce/monitoring/dcgm-counters.csv"
SERVICE = "nvidia-dcgm-exporter"
MANAGER = "datacenter-gpu-manager-4"
# The driver's packages are not what is tested: a library of this name is what they would bring.
DRIVER = "touch /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15; sh /srv/machine/files/lab-machine load"
REQUEST = {"pytorch": "2.13.0", "pytorch_index": "cpu"}
ON = {
    "gpu_stack_request": REQUEST,
    "monitoring_state": "present",
    "monitoring_password": PASSWORD,
    "monitoring_scrape_interval": "5s",
    "monitoring_dcgm_exporter": True,
}


class Watched:
    """One node that watches itself."""

    def __init__(self):
        self.cluster = Cluster(
            "dcgm", 1, "--distribution", "debian12", "--mirror", "--machine", "a100-nvlink", "--wheels", "uv"
        )
        self.node = self.cluster.hosts[0]
        self.on(DRIVER)
        self.address = self.on("hostname -I").split()[0]
        self.inventory = self.cluster.edit_inventory(self.cluster.inventory.with_name("dcgm-watched"), self.group)

    def group(self, content):
        nodes = content["gpu_nodes"]
        content["controllers"] = {"hosts": dict(nodes["hosts"]), "vars": dict(nodes["vars"])}

    def on(self, command, check=True):
        return self.cluster.on(self.node, command, check)

    def play(self, **variables):
        run = self.cluster.play(PLAYBOOK, "-e", json.dumps({**ON, **variables}), inventory=self.inventory)
        assert run.status == 0, run.output[-6000:]
        return run.recap[self.node]["changed"]

    def plan(self, dcgm, driver, **variables):
        """Ask for a DCGM and a driver, which nobody installs here; return what a second run does after it."""
        variables["gpu_stack_request"] = {**REQUEST, "dcgm": dcgm, "driver": driver}
        assert self.play(**variables)
        return self.play(**variables)

    def packages(self):
        """{package: version} of DCGM and its exporter."""
        lines = self.on("dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' 'datacenter-gpu-manager*'")
        there = (line.split() for line in lines.splitlines())
        return {words[1]: words[2] for words in there if words[0] == "installed"}

    def query(self, words):
        """{GPU: value} of an expression, as Prometheus has it."""
        url = f"http://{self.address}:9090/api/v1/query?query={urllib.parse.quote(words)}"
        text = self.on(f"curl -sf -u 'allreduce:{PASSWORD}' '{url}'")
        return {one["metric"].get("gpu"): one["value"][1] for one in json.loads(text)["data"]["result"]}


@pytest.fixture(scope="module")
def watched():
    made = Watched()
    yield made
    if not KEEP:
        made.cluster.down()


def test_10_the_exporter_comes_and_a_second_run_changes_nothing(watched):
    assert watched.play()
    assert watched.play() == 0
    assert watched.packages() == {f"{MANAGER}-core": "1:4.6.1-1", "datacenter-gpu-manager-exporter": "4.8.2-1"}
    assert MANAGER not in watched.on("apt-mark showhold")
    assert watched.on(f"systemctl is-active {SERVICE}").strip() == "active"


def test_20_prometheus_has_what_the_exporter_reads_of_each_gpu(watched):
    watched.on("apt-get -qq install -y curl > /dev/null 2>&1")
    deadline = time.monotonic() + 60
    while len(found := watched.query('DCGM_FI_DEV_GPU_TEMP{job="dcgm"}')) != 4:
        assert time.monotonic() < deadline, found
        time.sleep(2)
    assert set(found) == {"0", "1", "2", "3"}
    assert watched.query('up{job="dcgm"}') == {None: "1"}


def test_30_it_tells_nobody_without_the_password(watched):
    ask = "curl -s -o /dev/null -w '%{http_code}' "
    url = f"http://{watched.address}:9400/metrics"
    assert watched.on(f"{ask} {url}") == "401"
    assert watched.on(f"{ask} -u 'allreduce:{PASSWORD}' {url}") == "200"


def test_40_a_field_that_it_does_not_know_ends_it(watched):
    """As NVIDIA's: what test_10 found active read our file to its end."""
    watched.on(f"cp {COUNTERS} /root/counters; echo 'DCGM_FI_DEV_GPU_RECOVERY_ACTION, gauge, x' >> {COUNTERS}")
    watched.on(f"systemctl restart {SERVICE}; sleep 3")
    assert "could not find DCGM field" in watched.on("tail -n 5 /var/dcgm-exporter.log")
    watched.on(f"cp /root/counters {COUNTERS}; systemctl restart {SERVICE}")


def test_50_it_goes_where_it_is_not_wanted(watched):
    assert watched.play(monitoring_state="absent")
    assert watched.on(f"systemctl is-active {SERVICE}", check=False).strip() == "inactive"
    assert watched.on(f"ls {COUNTERS}", check=False) == ""


def planned(version, cuda):
    """The packages of a planned DCGM with plugins for a CUDA."""
    names = ("core", "proprietary", f"cuda{cuda}", f"proprietary-cuda{cuda}")
    return {f"{MANAGER}-{name}": f"1:{version}-1" for name in names}


def test_60_dcgm_comes_in_the_version_of_the_plan_without_the_monitoring_and_is_held(watched):
    assert watched.plan("4.5.3", "580", monitoring_state="absent") == 0
    there = watched.packages()
    assert there.pop("datacenter-gpu-manager-exporter") == "4.8.2-1"
    assert there == planned("4.5.3", 13)
    assert set(there) <= set(watched.on("apt-mark showhold").split())
    watched.on("DEBIAN_FRONTEND=noninteractive apt-get -qq -y upgrade > /dev/null 2>&1", check=False)
    assert planned("4.5.3", 13).items() <= watched.packages().items()


def test_70_plugins_of_another_cuda_go_with_the_driver_and_the_exporter_runs_on(watched):
    assert watched.plan("4.6.1", "550") == 0
    there = watched.packages()
    assert there.pop("datacenter-gpu-manager-exporter") == "4.8.2-1"
    assert there == planned("4.6.1", 12)
    assert watched.on(f"systemctl is-active {SERVICE}").strip() == "active"


def test_80_who_asks_no_more_keeps_it(watched):
    watched.play()
    assert planned("4.6.1", 12).items() <= watched.packages().items()
