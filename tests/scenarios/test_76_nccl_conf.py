# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NCCL's file on a host: written, reported, and put back with every byte; and PCIe, where there are no GPUs to change it for."""

import json

import pytest
from cluster import KEEP, Cluster

pytestmark = pytest.mark.lab

PLAYBOOK = "tests/scenarios/nccl_conf.yml"
# What an administrator may have left, as a command: a byte that is not text, and no end of the last line.
THEIRS = r"printf 'NCCL_DEBUG = WARN\r\n# \377 old\nNCCL_P2P_DISABLE=1' > /etc/nccl.conf && chmod 640 /etc/nccl.conf"
WANTED = {
    "nccl_conf_state": "present",
    "nccl_conf_variables": {"NCCL_IB_TC": 106},
    "pcie_state": "present",
    "pcie_acs_redirect": "clear",
    "pcie_max_read_request": 4096,
}
FILES = (
    "find /etc /opt/allreduce /var/lib/allreduce -xdev \\( -type f -o -type l -o -type d \\) -not -path '/etc/ssh/*'"
    " -not -name .updated -printf '%p %y %m %u:%g %s %l\\n' 2>/dev/null | LC_ALL=C sort;"
    " find /etc -xdev -type f -not -path '/etc/ssh/*' -exec md5sum {} + | LC_ALL=C sort"
)


class Host:
    """One bare host, and the roles played against it."""

    def __init__(self):
        self.cluster = Cluster("nccl-conf", 1, "--distribution", "debian12")
        self.name = self.cluster.hosts[0]

    def ask(self, command):
        return self.cluster.on(self.name, command)

    def play(self, *options, **variables):
        """Return what the run printed, on one line, and the number of changes."""
        run = self.cluster.play(PLAYBOOK, "-e", json.dumps(variables), *options)
        assert run.status == 0, run.output[-6000:]
        return run.words, run.recap[self.name]["changed"]


@pytest.fixture(scope="module")
def host():
    made = Host()
    yield made
    if not KEEP:
        made.cluster.down()


def test_there_and_back(host):
    host.play()
    host.ask(THEIRS)
    before = host.ask(FILES)
    shown, changes = host.play("--check", "--diff", **WANTED)
    assert changes == 1 and "+NCCL_IB_TC=106" in shown and host.ask(FILES) == before
    output, changes = host.play(**WANTED)
    assert changes == 1 and "has NCCL_DEBUG, NCCL_P2P_DISABLE, for which no measurement gives a reason" in output
    assert host.ask("cat /etc/nccl.conf").splitlines()[1:] == ["# Declared in the inventory.", "NCCL_IB_TC=106"]
    assert host.play(**WANTED)[1] == 0
    assert host.cluster.measured(host.name, "nccl_facts")["applied"]
    assert host.play()[1] == 1
    assert host.ask(FILES) == before
    assert host.play()[1] == 0


def test_without_a_line_there_is_no_file(host):
    host.ask("rm -f /etc/nccl.conf")
    assert host.play(nccl_conf_state="present")[1] == 0
    assert host.ask("test ! -e /etc/nccl.conf && echo none").strip() == "none"
