# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Units of roles on Debian 12: how much of the host each can reach, and that it does its job within.

Those of qos, gpu_settings, health and the persistence daemon are at work in other scenarios; that of firewall restores after a reboot in its own.
"""

import json
import re

import pytest
import yaml
from cluster import CHECKOUT, KEEP, Cluster

pytestmark = pytest.mark.lab

RECORDED = yaml.safe_load(CHECKOUT.joinpath("tests", "scenarios", "exposure.yml").read_text(encoding="utf-8"))
FIN_TIMEOUT = "/proc/sys/net/ipv4/tcp_fin_timeout"
QUEUE = "/sys/class/net/eth0/tx_queue_len"


class Host:
    def __init__(self):
        self.cluster = Cluster("units", 1, "--distribution", "debian12")
        self.name = self.cluster.hosts[0]
        templates = {unit: row["template"] for unit, row in RECORDED.items()}
        run = self.cluster.play("tests/scenarios/units.yml", "-e", json.dumps({"unit_templates": templates}))
        assert run.status == 0, run.output[-6000:]
        self.ask("mkdir -p /etc/allreduce /var/lib/allreduce; systemctl daemon-reload")

    def ask(self, command):
        return self.cluster.on(self.name, command)

    def declare(self, name, **content):
        self.ask(f"echo '{json.dumps(content)}' > /etc/allreduce/{name}.json")

    def start(self, unit):
        """Start it to its end; what it said."""
        self.ask(f"systemctl start {unit} || {{ journalctl -n 20 -u {unit}; exit 1; }}")
        return self.ask(f"journalctl --output=cat -u {unit}")


@pytest.fixture(scope="module")
def host():
    made = Host()
    yield made
    if not KEEP:
        made.cluster.down()


def test_every_unit_of_a_role_is_recorded():
    written = {str(path.relative_to(CHECKOUT)) for path in CHECKOUT.glob("roles/*/templates/*.service.j2")}
    assert written == {row["template"] for row in RECORDED.values()}


@pytest.mark.parametrize("unit", RECORDED)
def test_a_unit_reaches_no_more_than_recorded(host, unit):
    instance = f"{unit}eth0" if unit.endswith("@") else unit
    said = host.ask(f"systemd-analyze security --no-pager {instance}.service")
    exposure = re.search(r"exposure level for \S+: ([0-9.]+)", said)
    assert exposure and float(exposure[1]) <= RECORDED[unit]["exposure"], said


@pytest.mark.parametrize("unit", RECORDED)
def test_systemd_knows_every_setting(host, unit):
    instance = f"{unit}eth0" if unit.endswith("@") else unit
    said = host.ask(f"systemd-analyze verify --man=no {instance}.service 2>&1; true")
    assert [line for line in said.splitlines() if unit in line and "not executable" not in line] == []


def test_tuning_writes_and_records_without_a_capability(host):
    before = host.ask(f"cat {FIN_TIMEOUT}").strip()
    wanted = str(int(before) + 1)
    host.declare("tuning", values=[{"path": FIN_TIMEOUT, "value": wanted}], interfaces=[])
    assert f"{FIN_TIMEOUT}: {before} -> {wanted}" in host.start("allreduce-tuning.service")
    assert host.ask(f"cat {FIN_TIMEOUT}").strip() == wanted
    assert json.loads(host.ask("cat /var/lib/allreduce/tuning.json"))["values"] == {FIN_TIMEOUT: before}


def test_rdma_sets_an_interface(host):
    host.declare("rdma", interfaces={"eth0": {"values": [{"path": QUEUE, "value": "1234"}]}})
    host.start("allreduce-rdma@eth0.service")
    assert host.ask(f"cat {QUEUE}").strip() == "1234"


def test_pcie_reads_a_whole_configuration_space(host):
    """The declared registers are those of bridges and adapters, which no host of the lab has; the kernel cuts what others read."""
    host.declare("pcie", values=[])
    host.start("allreduce-pcie.service")
    space = host.ask("ls -d /sys/bus/pci/devices/*/config | head -1").strip()
    copy = "/var/lib/allreduce/config"
    place = "/run/systemd/system/allreduce-pcie.service.d"
    lines = f"[Service]\\nExecStart=\\nExecStart=/usr/bin/cp {space} {copy}\\n"
    host.ask(f"mkdir -p {place}; printf '{lines}' > {place}/copy.conf; systemctl daemon-reload")
    host.start("allreduce-pcie.service")
    assert int(host.ask(f"stat -c %s {copy}")) == int(host.ask(f"cat {space} | wc -c")) > 64
