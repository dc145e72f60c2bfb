# Copyright: The allreduce.gpu authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A host is tuned and put back. What belongs to the whole kernel is proven on recorded trees: hosts of the lab share one."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from cluster import CHECKOUT, KEEP, Cluster, environment

pytestmark = pytest.mark.lab

PLAYBOOK = "tests/scenarios/tuning.yml"
RMEM = "net.ipv4.tcp_rmem"
WANTED = {
    "tuning_state": "present",
    "tuning_transport": "tcp",
    "tuning_sysctl": {"net.ipv4.tcp_fin_timeout": 33, "net.ipv4.conf.all.arp_ignore": 1},
    # Above the first process's own limit nobody can go in a container; the first two are below it.
    "tuning_limits": {"nofile": 4321, "memlock": 4 * 1024 * 1024, "nproc": "unlimited"},
    "tuning_limit_services": ["ssh"],
}
SYSCTL = "/etc/sysctl.d/90-allreduce.conf"
FILES = (
    "find /etc /opt/allreduce /var/lib/allreduce -xdev \\( -type f -o -type l -o -type d \\) -not -path '/etc/ssh/*'"
    " -not -name .updated -printf '%p %y %m %u:%g %s %l\\n' 2>/dev/null | LC_ALL=C sort;"
    " find /etc -xdev -type f -not -path '/etc/ssh/*' -exec md5sum {} + | LC_ALL=C sort"
)
VALUES = "sysctl -a 2>/dev/null | grep -E '^(net\\.ipv4\\.(tcp_|conf\\.)|net\\.core\\.[rw]mem|vm\\.(swappiness|zone|min_free)|kernel\\.numa)'"
DEFAULTS = (
    "systemctl show --property=DefaultLimitNOFILE,DefaultLimitNOFILESoft,DefaultLimitMEMLOCK,DefaultLimitMEMLOCKSoft"
)

LOGIND = "busctl get-property org.freedesktop.login1 /org/freedesktop/login1 org.freedesktop.login1.Manager RemoveIPC"


def kernel():
    """{path: text} of the table's kernel parameters and switches on the machine that runs the hosts."""
    table = yaml.safe_load((CHECKOUT / "data" / "tuning" / "settings.yml").read_text("utf-8"))["rows"]
    paths = [Path("/proc/sys", row["subject"].replace(".", "/")) for row in table if row["kind"] == "sysctl"]
    paths += sorted(Path("/sys/devices/system/cpu").glob("cpu*/cpufreq/scaling_governor"))
    paths += [Path("/sys/kernel/mm/transparent_hugepage/enabled"), Path("/proc/sys/fs/nr_open")]
    return {path: path.read_text("utf-8") for path in paths if path.exists()}


class Host:
    """One bare host, and the role played against it."""

    def __init__(self):
        self.cluster = Cluster("tuning", 1, "--distribution", "debian12")
        self.name = self.cluster.hosts[0]
        self.kernel = kernel()

    @property
    def ceiling(self):
        """Processes that the first one may have at most."""
        return limits_of(self.ask("cat /proc/1/limits"))["Max processes"][1]

    def ask(self, command):
        return self.cluster.on(self.name, command)

    def login(self, command):
        """What a command prints that comes over a new connection of SSH."""
        inventory = str(self.cluster.inventory)
        argv = [
            "ansible",
            self.name,
            "-i",
            inventory,
            "-m",
            "raw",
            "-a",
            command,
            "--ssh-extra-args=-o ControlPath=none",  # the inventory has common ones
        ]
        done = subprocess.run(
            argv, cwd=CHECKOUT, env=environment(CHECKOUT / "ansible.cfg"), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def play(self, *options, playbook=PLAYBOOK, **variables):
        return self.cluster.play(playbook, "-e", json.dumps(variables), *options)

    def tune(self, *options, **more):
        """What the user declares; the run, and the number of changes."""
        run = self.play(*options, **{**WANTED, **more})
        assert run.status == 0, run.output[-6000:]
        return run, run.recap[self.name]["changed"]

    def state(self):
        """Files with their bytes and modes, values of the kernel, and what systemd and logind do."""
        return {what: self.ask(what).splitlines() for what in (FILES, VALUES, DEFAULTS, LOGIND)}


@pytest.fixture(scope="module")
def host():
    made = Host()
    yield made
    if not KEEP:
        made.cluster.down()


@pytest.fixture(scope="module")
def before(host):
    """The host as it is before the first change."""
    run = host.play()
    assert run.status == 0 and run.recap[host.name]["changed"] == 0, run.output[-6000:]
    return host.state()


def test_check_mode_predicts_and_changes_nothing(host, before):
    run, changes = host.tune("--check", "--diff")
    assert changes and f"+++ after: {SYSCTL}" in run.output and "+net.ipv4.tcp_fin_timeout = 33" in run.output
    assert host.state() == before


def test_apply(host, before):
    run, changes = host.tune()
    assert changes
    assert host.ask(f"sysctl -n {RMEM} net.ipv4.tcp_fin_timeout net.ipv4.conf.all.arp_ignore").split() == [
        "4096", "131072", "134217728", "33", "1",
    ]  # fmt: skip
    text = host.ask(f"cat {SYSCTL}")
    settings = [line for line in text.splitlines() if " = " in line]
    assert len(settings) == 4 and text.count("\n# ") == 4, text
    # What belongs to the kernel of all hosts stays, and is said to.
    assert "vm.swappiness (the kernel belongs to the container's host)" in run.words
    assert f"nproc {host.ceiling} (no process can have more here)" in run.words
    assert [line for line in host.state()[VALUES] if line.startswith(("vm.", "kernel."))] == [
        line for line in before[VALUES] if line.startswith(("vm.", "kernel."))
    ]


def test_the_second_run_changes_nothing(host):
    assert host.tune()[1] == 0
    assert host.tune("--check", "--diff")[1] == 0
    # The next run does not send the module that applies.
    assert host.cluster.measured(host.name, "tuning_facts")["applied"]


LIMITS = ("Max processes", "Max open files", "Max locked memory")


def limits_of(text):
    """{name: [soft, hard]} of /proc/PID/limits."""
    found = {name: line for line in text.splitlines() for name in LIMITS if line.startswith(name)}
    return {name: line.removeprefix(name).split()[:2] for name, line in found.items()}


@pytest.mark.parametrize(
    ("how", "name", "expected"),
    [
        ("runuser -l ansible -c 'cat /proc/self/limits'", "Max open files", ["4321", "4321"]),
        ("runuser -l ansible -c 'cat /proc/self/limits'", "Max locked memory", ["4194304", "4194304"]),
        ("systemd-run --quiet --wait --pipe cat /proc/self/limits", "Max open files", ["1024", "4321"]),
        ("systemd-run --quiet --wait --pipe cat /proc/self/limits", "Max locked memory", ["4194304", "4194304"]),
        ("runuser -l ansible -c 'cat /proc/self/limits'", "Max processes", None),
        ("systemd-run --quiet --wait --pipe cat /proc/self/limits", "Max processes", None),
    ],
)
def test_limits_are_those_of_processes(host, how, name, expected):
    """None: all that this machine gives."""
    assert limits_of(host.ask(how))[name] == (expected or [host.ceiling] * 2)


def test_a_login_over_ssh_gets_them(host):
    """On a new connection: one that lasts keeps what it began with."""
    limits = limits_of(host.login("cat /proc/self/limits"))
    assert limits == {
        "Max processes": [host.ceiling] * 2, "Max open files": ["4321"] * 2, "Max locked memory": ["4194304"] * 2,
    }  # fmt: skip


def test_logind_keeps_shared_memory(host, before):
    assert before[LOGIND] == ["b true"] and host.state()[LOGIND] == ["b false"]
    assert "\nRemoveIPC=no\n" in host.ask("cat /etc/systemd/logind.conf.d/90-allreduce.conf")


def test_sysctl_of_the_distribution_gives_the_same(host):
    """At boot, every file is read again in its order; here only for what the host has for itself, not for all hosts."""
    host.ask("sysctl -q -w net.ipv4.tcp_fin_timeout=60")
    host.ask("sysctl -q --system --pattern='^net\\.ipv4\\.'")
    assert host.tune()[1] == 0


def test_a_file_that_would_override_is_named_and_nothing_changes(host):
    host.ask(f"echo '{RMEM} = 4096 87380 6291456' > /etc/sysctl.d/99-site.conf")
    state = host.state()
    run = host.play(**WANTED)
    host.ask("rm /etc/sysctl.d/99-site.conf")
    assert run.status != 0
    assert f"{RMEM} would not stay '4096 131072 134217728': line 1 of /etc/sysctl.d/99-site.conf" in run.words
    assert "/etc/sysctl.d/99-site.conf" in "".join(state[FILES])


def test_verify_asks_for_a_restart_until_it_happened(host, tmp_path):
    """A host with nothing else on it fails other checks; those of tuning are in the document."""
    assert tuning_checks(host, tmp_path)["tuning_limit"]["status"] == "failed"
    found = tuning_checks(host, tmp_path)["tuning_limit"]
    assert "of ssh is" in found["reason"] and found["fix"].startswith("restart the service")
    # The connection of the plays, too, has its limits from before; here it belongs to the service, which lets it live.
    host.ask("systemctl restart ssh; pkill -f '^sshd: ansible'; true")
    found = tuning_checks(host, tmp_path)
    assert {name: one["status"] for name, one in found.items()} == {
        "tuning_sysctl": "passed",
        "tuning_limit": "passed",
        "tuning_logind": "passed",
    }, found
    host.ask(f"sysctl -q -w {RMEM}='4096 87380 6291456'")
    assert f"{RMEM} is 4096 87380 6291456 instead of" in tuning_checks(host, tmp_path)["tuning_sysctl"]["reason"]
    assert host.tune()[1] > 0


def tuning_checks(host, place):
    more = {"report_directory": str(place), "verify_collectives": False, "verify_peers": []}
    run = host.play(playbook="playbooks/verify.yml", **WANTED, **more)
    assert (place / "verify.json").exists(), run.output[-6000:]
    (node,) = json.loads((place / "verify.json").read_text(encoding="utf-8"))["nodes"].values()
    (place / "verify.json").unlink()
    return {one["name"]: one for one in node["checks"] if one["name"].startswith("tuning_")}


def test_what_is_declared_no_more_is_put_back(host, before):
    host.tune(tuning_sysctl={}, tuning_limit_services=[])
    now = host.ask("sysctl net.ipv4.tcp_fin_timeout net.ipv4.conf.all.arp_ignore").splitlines()
    assert set(now) <= set(before[VALUES])
    assert "ssh.service.d" not in "".join(host.state()[FILES])


def test_removal_restores_byte_for_byte_and_value_for_value(host, before):
    run = host.play()
    assert run.status == 0 and run.recap[host.name]["changed"] > 0, run.output[-6000:]
    assert host.state() == before
    assert host.play().recap[host.name]["changed"] == 0


def test_the_machine_below_is_as_it_was(host):
    """Its kernel is every host's, and not the role's to change."""
    assert kernel() == host.kernel
