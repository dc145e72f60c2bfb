# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a lab changed of the machine is brought back; in a network namespace of the test's own where something is really changed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import machine, paths

BARE = """*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [0:0]
COMMIT
"""
# As netavark 1.4 leaves it behind.
LEFT = """*filter
:INPUT ACCEPT [0:0]
:FORWARD ACCEPT [5:300]
:MINE - [0:0]
:NETAVARK_FORWARD - [0:0]
-A INPUT -j MINE
-A FORWARD -m comment --comment "netavark firewall plugin rules" -j NETAVARK_FORWARD
-A NETAVARK_FORWARD -s 10.203.7.0/24 -j ACCEPT
COMMIT
"""


def test_chains_of_netavark_go_with_the_rules_that_lead_to_them():
    assert machine.removals("filter", BARE, LEFT) == [
        ["-t", "filter", "-D", "FORWARD", "-m", "comment", "--comment", "netavark firewall plugin rules", "-j", "NETAVARK_FORWARD"],
        ["-t", "filter", "-F", "NETAVARK_FORWARD"],
        ["-t", "filter", "-X", "NETAVARK_FORWARD"],
    ]  # fmt: skip


@pytest.mark.parametrize(("before", "now"), [(LEFT, LEFT), (BARE, BARE), ("", BARE), (LEFT, BARE), ("", "")])
def test_chains_that_were_there_stay(before, now):
    assert machine.removals("filter", before, now) == []


BEFORE = {
    "fs/file-max": "100", "net/ipv4/ip_forward": "0", "net/ipv4/conf/all/forwarding": "0", "vm/swappiness": "60",
    "net/ipv4/conf/eth0/accept_redirects": "1", "net/ipv4/conf/gone/forwarding": "0", "net/ipv4/conf/default/forwarding": "0",
}  # fmt: skip
NOW = {
    "fs/file-max": "200", "net/ipv4/ip_forward": "1", "net/ipv4/conf/all/forwarding": "1", "vm/swappiness": "60",
    "net/ipv4/conf/eth0/accept_redirects": "0", "net/ipv4/conf/default/forwarding": "1", "net/ipv4/conf/new/forwarding": "1",
}  # fmt: skip


def test_what_sets_others_comes_first():
    assert list(machine.changes(BEFORE, NOW, keep_forwarding=False).items()) == [
        ("net/ipv4/ip_forward", "0"),
        ("net/ipv4/conf/all/forwarding", "0"),
        ("net/ipv4/conf/default/forwarding", "0"),
        ("fs/file-max", "100"),
        ("net/ipv4/conf/eth0/accept_redirects", "1"),
    ]


def test_what_somebody_else_needs_stays():
    assert machine.changes(BEFORE, NOW, keep_forwarding=True) == {"fs/file-max": "100"}


def test_where_nothing_changed_nothing_is_written():
    assert machine.changes(BEFORE, dict(BEFORE), keep_forwarding=False) == {}


def test_settings_of_this_machine_are_read():
    found = machine.sysctls()
    assert found["net/ipv4/ip_forward"] == Path("/proc/sys/net/ipv4/ip_forward").read_text(encoding="utf-8").strip()
    assert not [key for key in found if "/random/" in key or "ns_last_pid" in key or "file-nr" in key]


def test_a_record_of_this_boot_is_kept_and_one_of_another_is_not(monkeypatch, tmp_path):
    """A lab that was interrupted, or another checkout's, knows how the machine was; after a restart nobody does."""
    monkeypatch.setattr(paths, "RUN", tmp_path / "run")
    monkeypatch.setattr(machine, "_firewall", dict)
    monkeypatch.setattr(machine, "sysctls", lambda: {"fs/file-max": "1"})
    machine.remember()
    monkeypatch.setattr(machine, "sysctls", lambda: {"fs/file-max": "2"})
    machine.remember()
    assert machine._read()["sysctl"] == {"fs/file-max": "1"}
    monkeypatch.setattr(machine, "_boot", lambda: "another")
    machine.remember()
    assert machine._read()["sysctl"] == {"fs/file-max": "2"}


# Does what a lab does to a machine, twice: as two checkouts.
PROGRAM = """
import subprocess
import sys
from pathlib import Path

from tests.lab import machine, paths

def iptables(*words):
    subprocess.run(["iptables", *words], check=True)

def state():
    settings = {key: value for key, value in machine.sysctls().items() if key.startswith("net/ipv4/conf/") or key.endswith("ip_forward")}
    rules = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=False)
    return settings, machine._firewall(), rules.stdout

mine, other = Path(sys.argv[1]) / "allreduce-lab-a", Path(sys.argv[1]) / "allreduce-lab-b"
if sys.argv[2] == "firewall":
    iptables("-N", "MINE"), iptables("-A", "FORWARD", "-j", "MINE"), iptables("-t", "nat", "-A", "POSTROUTING", "-j", "MASQUERADE")
forward = Path("/proc/sys/net/ipv4/ip_forward")
forward.write_text("0")  # a namespace takes over what the machine has
before = state()
for paths.RUN in (mine, other):
    machine.remember()
    paths.RUN.mkdir()
    forward.write_text("1")
    for table, chain, rule in (("filter", "NETAVARK_FORWARD", "FORWARD"), ("nat", "NETAVARK-1A2B", "POSTROUTING")):
        subprocess.run(["iptables", "-t", table, "-N", chain], stderr=subprocess.DEVNULL)
        iptables("-t", table, "-A", rule, "-m", "comment", "--comment", "of netavark", "-j", chain)
        iptables("-t", table, "-A", chain, "-s", "10.203.7.0/24", "-j", "ACCEPT")
changed = state()
assert changed[0] != before[0] and changed[1] != before[1], (changed, before)
for paths.RUN in (mine, other):
    assert state() == changed, "the other lab still runs"
    paths.RUN.rmdir()
    machine.restore()
assert state() == before, (state(), before)
assert not list(mine.parent.iterdir())
"""


@pytest.mark.parametrize("firewall", ["firewall", "none"])
def test_the_last_lab_brings_the_machine_back(tmp_path, firewall):
    own = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--mount-proc", "--pid", "--fork"]
    done = subprocess.run(
        [*own, sys.executable, "-c", PROGRAM, str(tmp_path), firewall], cwd=Path(__file__).parents[3], capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
